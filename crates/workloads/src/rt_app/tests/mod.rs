//! The fixtures stand in `tests/rt_app/` of this crate; each is one use of the grammar.

use super::*;

mod classes;
mod memory;
mod random;
mod reading;
mod refusals;
mod running;
mod threads;
mod truncation;

const FIXTURES: [(&str, &str); 7] = [
    ("plain.json", include_str!("../../../tests/rt_app/plain.json")),
    ("pipeline.json", include_str!("../../../tests/rt_app/pipeline.json")),
    ("phases.json", include_str!("../../../tests/rt_app/phases.json")),
    ("locks.json", include_str!("../../../tests/rt_app/locks.json")),
    ("realtime.json", include_str!("../../../tests/rt_app/realtime.json")),
    ("memory.json", include_str!("../../../tests/rt_app/memory.json")),
    ("frames.json", include_str!("../../../tests/rt_app/frames.json")),
];

fn fixture(name: &str, duplicates: Duplicates) -> Application {
    let (_, text) = FIXTURES.iter().find(|(n, _)| *n == name).expect("the fixture is in the table");
    parse(text, name, duplicates).unwrap_or_else(|error| panic!("{error}"))
}

fn app(text: &str) -> Application {
    parse(text, "test.json", Duplicates::Workgen).unwrap_or_else(|error| panic!("{error}"))
}

/// Reads a file with one task, whose contents are given.
fn task(contents: &str) -> Application {
    app(&format!("{{\"tasks\": {{\"t\": {{{contents}}}}}}}"))
}

fn at(line: u32, column: u32) -> Position {
    Position { line, column }
}

fn keys(phase: &Phase) -> Vec<&str> {
    phase.steps.iter().map(|step| step.key.as_str()).collect()
}

fn events(phase: &Phase) -> Vec<Event> {
    phase.steps.iter().map(|step| step.event.clone()).collect()
}

fn warned(app: &Application, kind: WarningKind) -> Vec<String> {
    app.warnings.iter().filter(|w| w.kind == kind).map(Warning::to_string).collect()
}
