//! `measure`: real runs, their records, and predictions beside them. Only the presence of the figures is checked, not
//! their values.

mod program;

use program::{files, folder, run, run_well};
use std::path::Path;

const WORKLOADS: [&str; 2] = ["pipetest:batches=2,loops=3", "hackbench-pipes:groups=1,loops=1"];

/// Counts the figures below the heads of the text's tables; each must be a number.
fn figures(text: &str) -> usize {
    let mut lines = 0;
    for block in text.split("\n\n").skip(1) {
        for line in block.lines().filter(|line| !line.is_empty()).skip(2) {
            let words: Vec<&str> = line.split_whitespace().collect();
            let numbers = words[1..].iter().filter(|word| word.parse::<f64>().is_ok()).count();
            assert!(numbers >= 4, "{line}: in {text}");
            lines += 1;
        }
    }
    lines
}

fn measure(place: &Path) -> String {
    let said =
        run_well(place, &["measure", WORKLOADS[0], WORKLOADS[1], "--iterations", "2", "--out", "real", "--quiet"]);
    assert_eq!(said.stderr, "");
    said.stdout
}

#[test]
fn real_runs_are_reported_stored_and_predicted() {
    let place = folder("measure");
    let text = measure(&place);
    assert!(text.starts_with("measured ") && text.contains("2 iterations on the real kernel"), "{text}");
    assert_eq!(figures(&text), 17 + 1, "{text}");
    let stored = files(&place.join("real"));
    assert_eq!(stored.len(), 4 + 2, "{stored:?}");
    // A second measurement replaces the first.
    measure(&place);
    assert_eq!(files(&place.join("real")), stored);
    // One file was left half-written by a killed measurement, one was put there by somebody else: neither is a record.
    let record = stored.iter().find(|name| name.ends_with("0000.json")).expect("a record");
    let part = record.replace("0000.json", ".0001.json.4194999.fairground-part");
    for file in [&part[..], "measured/.DS_Store"] {
        std::fs::write(place.join("real").join(file), "{\"format\": 1, ").unwrap();
    }

    let mut arguments = vec!["compare", "--machine", "core-i7-3770", "--arm", "v6.12", "--iterations", "1"];
    arguments.extend(["--workload", WORKLOADS[0], "--workload", WORKLOADS[1], "--measured", "real", "--out", "out"]);
    let said = run_well(&place, &arguments);
    let predicted =
        said.stdout.split("predicted against measured (").nth(1).unwrap_or_else(|| panic!("{}", said.stdout));
    // The rows follow the place, the line about disturbances, and the heads.
    let rows: Vec<&str> = predicted.lines().skip(3).collect();
    assert_eq!(rows.len(), 18, "{predicted}");
    assert!(rows.iter().all(|row| row.ends_with('%')), "{predicted}");
    arguments.extend(["--format", "json"]);
    let document: serde_json::Value = serde_json::from_str(&run_well(&place, &arguments).stdout).expect("one document");
    let rows = document["measured"]["rows"].as_array().expect("rows");
    assert_eq!(rows.len(), 18);
    assert!(rows.iter().all(|row| row["predictions"][0]["difference_percent"].is_number()), "{rows:?}");
    assert_eq!(document["measured"]["unfinished"], serde_json::json!([]));
    // The state in which an interrupted measurement leaves the folder.
    let unfinished = record.split('/').nth(1).expect("the workload's folder");
    std::fs::write(place.join("real/measured.unfinished"), format!("{unfinished}\n")).unwrap();
    let document: serde_json::Value = serde_json::from_str(&run_well(&place, &arguments).stdout).expect("one document");
    let unfinished = document["measured"]["unfinished"].as_array().expect("a list");
    assert!(unfinished.len() == 1 && unfinished[0]["iterations"] == 2, "{unfinished:?}");

    // A measurement is no simulation, and cannot be replayed.
    let record = stored.iter().find(|name| name.ends_with("0000.json")).expect("a record");
    let said = run(&place, &["replay", &format!("real/{record}")]);
    assert_eq!(said.code, 2);
    assert!(said.stderr.contains("found a measurement on a real kernel"), "{}", said.stderr);
}

#[test]
fn two_sides_of_a_connection_are_measured() {
    let place = folder("measure-netperf");
    // Long enough for both sides to run at all on a busy computer.
    let short = "buffers=0,milliseconds=400,warmup=1";
    let workloads = [format!("netperf-tcp:size=64+4096,{short}"), format!("netperf-tcp-rr:size=1,{short},bind=1")];
    let said = run_well(&place, &["measure", &workloads[0], &workloads[1], "--iterations", "1", "--format", "json"]);
    let document: serde_json::Value = serde_json::from_str(&said.stdout).expect("one document");
    let means = |table: usize| {
        let rows = document["tables"][table]["rows"].as_array().expect("rows");
        rows.iter().map(|row| row["arms"][0]["mean"].as_f64().expect("a figure")).collect::<Vec<f64>>()
    };
    assert_eq!((means(0).len(), means(1).len()), (2, 1));
    assert!(means(0).iter().chain(&means(1)).all(|&rate| rate > 0.0), "{}", said.stdout);
    let said = run_well(&place, &["measure", "perf-bench-pipe:loops=5,threads=1", "--iterations", "1", "--quiet"]);
    assert!(said.stdout.contains("usecs-op"), "{}", said.stdout);
}

#[test]
fn an_rt_app_file_runs_for_real() {
    let place = folder("measure-rt-app");
    let text = r#"{"tasks": {
        "a": {"loop": 5, "run": 100, "sem_post": "s", "lock": "m", "unlock": "m"},
        "b": {"loop": 5, "sem_wait": "s", "timer": {"ref": "unique", "period": 3000}}}}"#;
    std::fs::write(place.join("pair.json"), text).unwrap();
    let said =
        run_well(&place, &["measure", "rt-app:file=pair.json", "--iterations", "2", "--format", "json", "--quiet"]);
    let document: serde_json::Value = serde_json::from_str(&said.stdout).expect("one document");
    let rows = document["tables"][0]["rows"].as_array().expect("rows");
    assert_eq!(rows.iter().map(|row| row["label"].as_str().unwrap()).collect::<Vec<_>>(), ["a", "b"]);
    assert!(rows[0]["arms"][0]["mean"].as_f64().is_some_and(|us| us > 0.0), "{rows:?}");

    std::fs::write(place.join("fifo.json"), text.replacen("\"loop\": 5", "\"loop\": 5, \"policy\": \"SCHED_FIFO\"", 1))
        .unwrap();
    let said = run(&place, &["measure", "rt-app:file=fifo.json"]);
    assert_eq!(said.code, 2);
    assert!(
        said.stderr.contains("fifo.json:2:") && said.stderr.contains("SCHED_FIFO, which is simulated but not"),
        "{}",
        said.stderr
    );
}

#[test]
fn what_cannot_be_measured_is_refused() {
    let place = folder("measure-refused");
    std::fs::create_dir(place.join("other")).unwrap();
    std::fs::write(place.join("other/file"), "x").unwrap();
    let pipetest = WORKLOADS[0];
    for (arguments, part) in [
        (&["measure"][..], "required"),
        (&["measure", "pipetst"], "`pipetest`, perhaps"),
        (&["measure", "pipetest:lops=5"], "`loops`, perhaps"),
        (&["measure", pipetest, "--iterations", "0"], "found iterations = 0; expected a whole number from 1 to 10000"),
        (&["measure", pipetest, "--out", "other"], "other: found a folder that is not empty and holds no measurements"),
        (&["measure", pipetest, "--out", "other/file"], "a file of that name"),
        (
            &["calibrate", "--out", "none/this.toml"],
            "none/this.toml: cannot be written: No such file or directory (os error 2); expected the name of a file: --out FILE",
        ),
        (&["calibrate", "--out", "other"], "other: cannot be written: a folder of that name is in the way"),
        (
            &["calibrate", "--name", "my box", "--out", "box.toml"],
            "error: --name my box: found the machine's name `my box`; expected 1 to 60 letters (a to z), digits, -, . and _, such as `my-box`\n",
        ),
        (&["calibrate", "--name", ""], "such as `this`"),
        (&["host-child", "nobody"], "the words that `fairground measure` starts its children with"),
        (
            &["compare", "--machine", "core-i7-3770", "--workload", "pipetest", "--arm", "v6.12", "--measured", "none"],
            "--measured none: found no folder of measurements",
        ),
    ] {
        let said = run(&place, arguments);
        assert_eq!(said.code, 2, "{arguments:?}: {}", said.stderr);
        assert!(said.stderr.contains(part), "{arguments:?}: {part:?} is missing in {}", said.stderr);
    }
}

#[test]
fn workers_of_schbench_are_measured_as_they_are_simulated() {
    let place = folder("measure-schbench");
    let short = "workers=2,runtime=1,interval=1,operations=1,cache_footprint=16";
    let workloads = [format!("schbench:{short}"), format!("schbench-rps:{short}")];
    let measure = ["measure", &workloads[0], &workloads[1], "--iterations", "1", "--out", "real", "--quiet"];
    assert_eq!(figures(&run_well(&place, &measure).stdout), 8 + 3);
    let compare = ["compare", "--machine", "core-i7-3770", "--arm", "v6.12", "--iterations", "1", "--measured", "real"];
    let said = run_well(&place, &[&compare[..], &["--workload", &workloads[0], "--workload", &workloads[1]]].concat());
    let predicted = said.stdout.split("predicted against measured (").nth(1).expect("predictions");
    assert_eq!(predicted.lines().skip(3).filter(|row| row.ends_with('%')).count(), 8 + 3, "{predicted}");
}
