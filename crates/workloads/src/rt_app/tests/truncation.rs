//! Truncated files. Other kinds of damage are left to the fuzz targets.

use super::*;

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
