//! Damaged files: whatever the bytes, reading ends, without panic, in a description or in a message with a place.

use super::*;
use units::Prng;

fn survives(bytes: &[u8], duplicates: Duplicates) -> bool {
    match parse_bytes(bytes, "damaged.json", duplicates) {
        Ok(app) => {
            assert!(app.tasks.iter().all(|task| task.phases.iter().all(|phase| !phase.steps.is_empty())));
            true
        }
        Err(error) => {
            let lines = bytes.split(|&b| b == b'\n').count() as u32;
            assert!((1..=lines).contains(&error.position.line) && error.position.column >= 1, "{error}");
            assert!(!error.found.is_empty() && !error.right.is_empty() && !error.to_string().contains('\n'), "{error}");
            false
        }
    }
}

#[test]
fn a_file_cut_anywhere_is_refused_until_it_is_whole() {
    for (name, text) in FIXTURES {
        let whole = text.rfind('}').map_or(0, |brace| brace + 1);
        for end in 0..=text.len() {
            let complete = survives(&text.as_bytes()[..end], Duplicates::Workgen);
            assert_eq!(complete, end >= whole, "{name} cut at byte {end}");
        }
    }
}

#[test]
fn a_cut_file_says_so() {
    let text = FIXTURES[0].1;
    let error = parse(&text[..text.find("7000").expect("the fixture has it")], "cut.json", Duplicates::Workgen)
        .expect_err("it is cut");
    assert_eq!(
        error.to_string(),
        "cut.json:3:37: the file ends inside the object that begins at line 3, column 13; \
         close it with '}'; is the file cut off?"
    );
    let error = parse(&text[..text.find("leep").expect("the fixture has it")], "cut.json", Duplicates::Workgen)
        .expect_err("it is cut");
    assert_eq!(
        error.to_string(),
        "cut.json:3:28: the string that begins here has no end; close its quotes; is the file cut off?"
    );
}

#[test]
fn flipped_and_foreign_bytes_never_panic() {
    // Bytes that mean something to the grammar come more often than chance would bring them.
    const TELLING: &[u8] = b"{}[],:\"'\\/*-0189.eEtTnN \n\x00\x80\xff";
    let mut prng = Prng::stream(1, "rt-app mutations", 0);
    for (_, text) in FIXTURES {
        for round in 0..3_000 {
            let mut bytes = text.as_bytes().to_vec();
            for _ in 0..prng.between(1, 4) {
                let at = prng.below(bytes.len() as u64) as usize;
                match prng.below(4) {
                    0 => bytes[at] ^= 1 << prng.below(8),
                    1 => bytes[at] = TELLING[prng.below(TELLING.len() as u64) as usize],
                    2 => bytes.insert(at, TELLING[prng.below(TELLING.len() as u64) as usize]),
                    _ => drop(bytes.remove(at)),
                }
            }
            survives(&bytes, if round % 2 == 0 { Duplicates::Workgen } else { Duplicates::JsonC });
        }
    }
}

#[test]
fn shuffled_tokens_never_panic() {
    let tokens: Vec<&str> = FIXTURES.iter().flat_map(|(_, text)| text.split_inclusive([' ', ',', ':', '\n'])).collect();
    let mut prng = Prng::stream(2, "rt-app mutations", 0);
    for _ in 0..3_000 {
        let mut text = String::from("{\"tasks\": {\"t\": {");
        for _ in 0..prng.between(1, 40) {
            text.push_str(tokens[prng.below(tokens.len() as u64) as usize]);
        }
        survives(text.as_bytes(), Duplicates::Workgen);
        text.push_str("\"run\": 1}}}");
        survives(text.as_bytes(), Duplicates::Workgen);
    }
}
