//! Behaviour: what each scenario's tasks do, as a picture.

use super::scenario::Scenario;
use std::path::Path;

#[test]
fn every_scenario_looks_as_it_is_drawn() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios");
    let mut files: Vec<_> = std::fs::read_dir(&folder).expect("scenarios").flatten().map(|e| e.path()).collect();
    files.sort();
    assert!(!files.is_empty());
    let mut wrong = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file).expect("a readable scenario");
        let scenario = Scenario::parse(&text);
        let picture = scenario.picture();
        if picture == scenario.expected {
            continue;
        }
        if std::env::var_os("UPDATE_PICTURES").is_some() {
            let head = text.strip_suffix(&scenario.expected).expect("the picture ends the file");
            let head = head.strip_suffix('\n').map_or(head.to_string(), |h| format!("{h}\n"));
            std::fs::write(&file, head + &picture).expect("a writable scenario");
        }
        wrong.push(format!("{}:\nexpected\n{}came out\n{picture}", file.display(), scenario.expected));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
