//! The program's messages about wrong input, word for word: `bad_input/messages.txt` is a table of mistakes of every
//! kind. Each ends with exit code 2, one message, nothing on stdout, and no file changed. `UPDATE_MESSAGES=1` writes
//! the current messages into it; read them afterwards.
//!
//! A case is a line `== what is wrong`, its files (`--- NAME`, then the text, in which `\x00` and `\e` stand for bytes
//! that are hard to see), the command after `$`, and the expected stderr. There `<n>` stands for a figure that the
//! simulation measures, a single number above 0, so that changed prices do not change the table.

mod program;

use program::{files, folder, run, words};
use std::fmt::Write;
use std::fs;
use std::path::Path;

const TABLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/bad_input/messages.txt");
/// The parts of a comparison besides the one that is wrong: `$M`, `$W` and `$A` in a command.
const PARTS: [(&str, &str); 3] = [
    ("$M", "--machine core-i7-3770"),
    ("$W", "--workload pipetest:batches=1,loops=1"),
    ("$A", "--arm a=v4.15 --arm b=v4.16"),
];

/// Stands for a figure that the simulation measures.
const MEASURED: &str = "<n>";

#[derive(Default)]
struct Case {
    title: String,
    files: Vec<(String, String)>,
    command: String,
    message: String,
}

/// The text before the first case, and the cases.
fn read(table: &str) -> (String, Vec<Case>) {
    let (mut head, mut cases) = (String::new(), Vec::<Case>::new());
    for line in table.lines() {
        if let Some(title) = line.strip_prefix("== ") {
            cases.push(Case { title: title.to_string(), ..Case::default() });
            continue;
        }
        let Some(case) = cases.last_mut() else {
            head += &format!("{line}\n");
            continue;
        };
        if let Some(name) = line.strip_prefix("--- ") {
            case.files.push((name.to_string(), String::new()));
        } else if let Some(command) = line.strip_prefix("$ ") {
            case.command = command.to_string();
        } else if !case.command.is_empty() {
            case.message += &format!("{line}\n");
        } else if let Some((_, text)) = case.files.last_mut() {
            *text += &format!("{line}\n");
        }
    }
    cases.iter_mut().for_each(|case| case.message.truncate(case.message.trim_end().len()));
    (head, cases)
}

/// The words of a case's command.
fn arguments(command: &str) -> Vec<String> {
    words(&PARTS.iter().fold(command.to_string(), |command, (short, long)| command.replace(short, long)))
}

/// The program's message, and everything that is wrong about how it ends.
fn said(place: &Path, case: &Case) -> (String, Vec<String>) {
    let _ = fs::remove_dir_all(place);
    fs::create_dir_all(place).expect("a folder");
    for (name, text) in &case.files {
        let path = place.join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        let bytes = text.trim_end_matches('\n').replace("\\e", "\u{1b}");
        // A file that must not be text gets a byte that no text contains.
        let bytes: Vec<u8> = bytes.split("\\xff").collect::<Vec<_>>().join("\u{1}").bytes().collect();
        let bytes: Vec<u8> = bytes.into_iter().map(|byte| if byte == 1 { 0xff } else { byte }).collect();
        fs::write(path, bytes).expect("a file");
    }
    let before = files(place);
    let arguments = arguments(&case.command);
    let said = run(place, &arguments.iter().map(String::as_str).collect::<Vec<_>>());
    let mut faults = Vec::new();
    let mut fault = |wrong: bool, what: String| {
        if wrong {
            faults.push(format!("{}: {what}", case.title))
        }
    };
    fault(said.code != 2, format!("exit code {}", said.code));
    fault(!said.stdout.is_empty(), format!("stdout has {}", said.stdout));
    fault(files(place) != before, format!("files are {:?}", files(place)));
    let errors = said.stderr.lines().filter(|line| line.starts_with("error: ")).count();
    fault(errors != 1, format!("{errors} messages"));
    (said.stderr.trim_end().to_string(), faults)
}

/// Whether the program said what is expected.
fn agrees(expected: &str, said: &str) -> bool {
    let mut parts = expected.split(MEASURED);
    let mut rest = said.strip_prefix(parts.next().expect("never empty"));
    for part in parts {
        rest = rest.and_then(|rest| {
            let digits = rest.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(rest.len());
            let number: f64 = rest[..digits].parse().ok()?;
            rest[digits..].strip_prefix(part).filter(|_| number > 0.0)
        });
    }
    rest == Some("")
}

#[test]
fn a_measured_figure_is_a_number_and_the_rest_is_word_for_word() {
    assert!(agrees("below <n> ms", "below 5.113727 ms") && agrees("<n> of <n>", "1 of 2"));
    for said in
        ["below  ms", "below 0.000 ms", "below -5 ms", "below 5.1.2 ms", "below 5 ms!", "above 5 ms", "below many ms"]
    {
        assert!(!agrees("below <n> ms", said), "{said}");
    }
    assert!(agrees("as it is", "as it is") && !agrees("as it is", "as it is not") && !agrees("as it is", "as it"));
}

#[test]
fn every_mistake_has_its_message() {
    let place = folder("messages");
    let text = fs::read_to_string(TABLE).expect("the table");
    let (head, cases) = read(&text);
    assert!(cases.len() >= 60, "{} cases", cases.len());
    let (mut now, mut faults) = (head, Vec::new());
    for case in &cases {
        let (message, wrong) = said(&place.join("case"), case);
        faults.extend(wrong);
        let agrees = agrees(&case.message, &message);
        if !agrees {
            faults.push(format!("{}:\n  expected {}\n  found    {message}", case.title, case.message));
        }
        let _ = writeln!(now, "== {}", case.title);
        for (name, text) in &case.files {
            let _ = write!(now, "--- {name}\n{text}");
        }
        let message = if agrees { &case.message } else { &message };
        let _ = writeln!(now, "$ {}\n{message}\n", case.command);
    }
    if std::env::var_os("UPDATE_MESSAGES").is_some() {
        fs::write(TABLE, now.trim_end().to_string() + "\n").expect("the table");
        faults.retain(|fault| !fault.contains("\n  expected "));
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
