//! The example of a workload of one's own: it is short, and does what it says.

#[allow(dead_code)]
#[path = "../examples/own_workload.rs"]
mod example;

use std::fs;

#[test]
fn the_example_is_short_and_runs_beside_our_own_workloads() {
    let text = include_str!("../examples/own_workload.rs");
    assert!(text.lines().count() < 60, "{} lines", text.lines().count());
    // The command is that of the example's head, with less work.
    let line = text.lines().find_map(|line| line.split_once(" -- ")).expect("a command line").1;
    let line = line.replace("clients=1+4+16", "clients=1+4,requests=20");
    let out = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("own-workload");
    let _ = fs::remove_dir_all(&out);
    let out_option = out.to_str().expect("a path").to_string();
    let more = ["--iterations", "2", "--quiet", "--out", &out_option];
    let arguments = std::iter::once("fairground").chain(line.split_whitespace()).chain(more);
    let code = fairground::run_with(&[example::COUNTER], arguments.map(str::to_string));
    assert_eq!(format!("{code:?}"), format!("{:?}", std::process::ExitCode::SUCCESS));
    let report = fs::read_to_string(out.join("report.csv")).expect("a report");
    assert!(report.contains("counter"), "{report}");
    // One client is answered before it works; four keep the server busy all the time.
    let document = fs::read_to_string(out.join("report.json")).expect("a document");
    assert!(document.contains("\"counter\""), "{document}");
}
