//! Comparisons: what they print and store, and how they continue and replay.

mod program;

use lab::json::Document;
use program::{TINY, fairground, files, folder, run, run_well, said};
use std::fs;
use std::path::Path;
use std::process::Stdio;

/// [`TINY`] with other options in addition to, or instead of, its own.
fn compare<'a>(more: &[&'a str]) -> Vec<&'a str> {
    let own = if more.contains(&"--iterations") { &TINY[..TINY.len() - 2] } else { TINY };
    ["compare"].iter().chain(own).chain(more).copied().collect()
}

#[test]
fn a_comparison_prints_tables_and_stores_everything() {
    let place = folder("stores");
    let said = run_well(&place, &compare(&["--out", "out"]));
    assert!(said.stdout.contains("\npipetest\n"), "{}", said.stdout);
    assert!(said.stdout.contains("vanilla               nostats\n"), "{}", said.stdout);
    assert!(said.stdout.contains("\nBest1%Mean  Time"), "{}", said.stdout);
    assert_eq!(said.stderr, "results: out\n");
    let out = place.join("out");
    assert_eq!(
        files(&out),
        [
            "fairground.json",
            "records/0-pipetest-Time/0-vanilla/0000.json",
            "records/0-pipetest-Time/0-vanilla/0001.json",
            "records/0-pipetest-Time/1-nostats/0000.json",
            "records/0-pipetest-Time/1-nostats/0001.json",
            "report.csv",
            "report.html",
            "report.json",
            "report.txt",
            "samples.csv",
            "samples.parquet",
        ]
    );
    assert_eq!(fs::read_to_string(out.join("report.txt")).unwrap(), said.stdout);
}

#[test]
fn results_have_a_folder_of_their_own_without_being_asked() {
    let place = folder("default-folder");
    let said = run_well(&place, &compare(&[]));
    let line = said.stderr.trim();
    let name = line.strip_prefix("results: results/core-i7-3770-pipetest-").unwrap_or_else(|| panic!("{line}"));
    assert_eq!(name.len(), 8);
    assert!(place.join(line.strip_prefix("results: ").unwrap()).join("report.txt").exists());
}

#[test]
fn the_json_is_one_document_and_does_not_depend_on_the_number_of_jobs() {
    let place = folder("jobs");
    let json = |jobs: &str| {
        let arguments = compare(&["--out", jobs, "--jobs", jobs, "--format", "json", "--quiet"]);
        let said = run_well(&place, &arguments);
        assert_eq!(said.stderr, "");
        let document: Document = serde_json::from_str(&said.stdout).expect("the document and nothing else");
        document
    };
    let (one, two) = (json("1"), json("2"));
    assert!(one.cpu_seconds > 0.0);
    assert_eq!(Document { cpu_seconds: 0.0, ..one.clone() }, Document { cpu_seconds: 0.0, ..two });
    assert_eq!((one.tables.len(), one.tables[0].rows.len()), (1, 17));
    let row = &one.tables[0].rows[0];
    assert_eq!((row.arms[1].name.as_str(), row.arms[1].samples.len()), ("nostats", 2));
    assert!(row.change[0].percent.is_some() && row.change[0].low.is_some());
    assert!(one.events > 0 && one.machine["cpus"] == 8);
    assert_eq!((one.seed, one.iterations, one.costs), (1, 2, true));
    let [vanilla, nostats] = &one.arms[..] else { panic!("two arms: {:?}", one.arms) };
    assert_eq!((vanilla.name.as_str(), vanilla.kernel.as_str(), vanilla.set.len()), ("vanilla", "v4.5-rc1", 0));
    assert_eq!(nostats.set, ["stats.schedstats=tunable"]);
    assert_eq!(nostats.behaviours["stats.schedstats"], "tunable");
    assert!(nostats.features["TTWU_QUEUE"] && nostats.sysctls.contains_key("kernel.sched_nr_migrate"));
    // Records agree byte for byte, except for their cost.
    let record = |jobs: &str| {
        let path = place.join(jobs).join("records/0-pipetest-Time/1-nostats/0001.json");
        let mut record: serde_json::Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
        record.as_object_mut().unwrap().remove("host_cpu_ns").expect("the cost");
        record
    };
    assert_eq!(record("1"), record("2"));
}

#[test]
fn a_page_and_every_sample_lie_beside_the_report() {
    let place = folder("page");
    run_well(&place, &compare(&["--out", "out", "--quiet"]));
    let read = |file: &str| fs::read_to_string(place.join("out").join(file)).unwrap();
    let page = read("report.html");
    assert!(page.starts_with("<!DOCTYPE html>\n") && page.ends_with("</html>\n"));
    // What was observed in the first iteration is in the records, and from there in the report.
    for part in
        ["What the machine did", "<td class=\"text\">nostats</td><td>", "Where time went", "<code>ttwu_stat</code>"]
    {
        assert!(page.contains(part), "{part}");
    }
    assert!(read("records/0-pipetest-Time/1-nostats/0000.json").contains(",\"observed\":{\"duration_ns\":"));
    assert!(!read("records/0-pipetest-Time/1-nostats/0001.json").contains("observed"));
    let samples = read("samples.csv");
    // Two batches in each of two runs of two arms.
    assert_eq!(samples.lines().count(), 1 + 2 * 2 * 2);
    assert!(samples.lines().nth(1).unwrap().starts_with("pipetest,pipetest,batches=2;bind=0;loops=5,Time,vanilla,0,"));
    let parquet = fs::read(place.join("out/samples.parquet")).unwrap();
    assert!(parquet.starts_with(b"PAR1") && parquet.ends_with(b"PAR1"));
    // The same again from what is stored.
    run_well(&place, &compare(&["--out", "out", "--quiet"]));
    assert_eq!(read("report.html"), page);
}

#[test]
fn csv_is_long_and_tidy() {
    let place = folder("csv");
    let said = run_well(&place, &compare(&["--format", "csv", "--quiet"]));
    let mut lines = said.stdout.lines();
    assert_eq!(lines.next(), Some("table,workload,parameters,unit,better,label,arm,measure,iteration,value"));
    assert!(lines.all(|line| line.starts_with("pipetest,pipetest,batches=2;bind=0;loops=5,")));
}

#[test]
fn seeds_and_iterations_change_what_they_should() {
    let place = folder("seeds");
    let samples = |more: &[&str]| {
        let said = run_well(&place, &compare(&[&["--format", "json", "--quiet"], more].concat()));
        let document: Document = serde_json::from_str(&said.stdout).unwrap();
        document.tables[0].rows[9].arms[0].samples.clone()
    };
    let two = samples(&["--out", "a"]);
    // More iterations continue in the same folder, and do not change the existing ones.
    let four = samples(&["--out", "a", "--iterations", "4"]);
    assert_eq!((&four[..2], four.len()), (&two[..], 4));
    assert_ne!(samples(&["--out", "b", "--seed", "2"]), two);
}

#[test]
fn what_is_missing_is_done_again_and_what_is_there_is_not() {
    let place = folder("resume");
    let first = run_well(&place, &compare(&["--out", "out"]));
    let records = place.join("out/records/0-pipetest-Time");
    fs::remove_file(records.join("1-nostats/0001.json")).unwrap();
    // An incomplete record counts as missing.
    fs::write(records.join("0-vanilla/0000.json"), "{\"format\":1,").unwrap();
    let again = run_well(&place, &compare(&["--out", "out"]));
    assert_eq!(again.stdout, first.stdout);
    assert_eq!(again.stderr, "note: 2 of 4 runs are taken from out\nresults: out\n");
}

#[test]
fn intervals_decide_how_many_iterations_there_are_whatever_the_jobs() {
    let place = folder("auto");
    let auto = |out: &str, jobs: &str, format: &str| {
        let iterations = "auto:min=2,max=9,half_width=0.02";
        let more = ["--out", out, "--jobs", jobs, "--iterations", iterations, "--format", format, "--quiet"];
        run_well(&place, &compare(&more)).stdout
    };
    let one: Document = serde_json::from_str(&auto("one", "1", "json")).unwrap();
    let four: Document = serde_json::from_str(&auto("four", "4", "json")).unwrap();
    assert_eq!(Document { cpu_seconds: 0.0, ..one.clone() }, Document { cpu_seconds: 0.0, ..four });
    let adaptive = one.adaptive.expect("the rule is in the document");
    assert_eq!((adaptive.min, adaptive.max, adaptive.half_width, one.iterations), (2, 9, 0.02, 9));
    let text = auto("one", "2", "text");
    assert!(
        text.contains("\nruns     2 to 9 iterations, until intervals are within +-0.02%, paired by seed"),
        "{text}"
    );
    let line = text.lines().find(|line| line.starts_with("intervals within +-0.02%: ")).expect("what is wide");
    // The two batches of five loops differ, so the extremes' intervals stay wide, and all iterations were run.
    let runs = one.tables[0].rows[0].arms[0].n;
    assert!(runs > 2 && runs <= 9, "{line}");
    let narrow = one.tables[0].rows.iter().flat_map(|row| &row.change).all(|it| it.half_width().unwrap() <= 0.02);
    assert!(narrow || runs == 9, "{line}");
    assert_eq!(files(&place.join("one/records")).len(), 2 * runs);
    // A stored run beyond those that are needed changes nothing.
    run_well(&place, &compare(&["--out", "four", "--iterations", "12", "--quiet"]));
    assert_eq!(auto("four", "2", "text"), text);
}

#[test]
fn records_replay() {
    let place = folder("replay");
    run_well(&place, &compare(&["--out", "out", "--quiet"]));
    let path = "out/records/0-pipetest-Time/1-nostats/0001.json";
    let agrees = run_well(&place, &["replay", path]);
    assert!(agrees.stdout.starts_with("agrees: "), "{}", agrees.stdout);
    let text = fs::read_to_string(place.join(path)).unwrap();
    let change = |from: &str, to: &str| {
        assert!(text.contains(from), "{from}");
        fs::write(place.join("changed.json"), text.replacen(from, to, 1)).unwrap();
        run(&place, &["replay", "changed.json"])
    };
    let differs = change("\"samples\":[[", "\"samples\":[[1");
    assert_eq!(differs.code, 1);
    assert!(differs.stdout.starts_with("differs\nsample 0: recorded 1"), "{}", differs.stdout);
    assert!(differs.stderr.contains("its outcome was changed"), "{}", differs.stderr);
    let all = run_well(&place, &["replay", "out"]);
    assert!(all.stdout.lines().all(|line| line.contains(".json: agrees: ")), "{}", all.stdout);
    assert!(all.stderr.contains("of 4 records 0 differ"), "{}", all.stderr);
    // A comparison does not go on from a record whose samples were changed.
    fs::copy(place.join("changed.json"), place.join(path)).unwrap();
    assert_eq!(run(&place, &["replay", "out"]).code, 1);
    let again = run_well(&place, &compare(&["--out", "out"]));
    assert!(again.stderr.contains("3 of 4 runs are taken"), "{}", again.stderr);
    let outcome = &text[text.find("\"outcome\"").unwrap()..text.find("\"host_cpu_ns\"").unwrap()];
    assert!(fs::read_to_string(place.join(path)).unwrap().contains(outcome), "it was run again");
    let other = change("\"sources\":\"", "\"sources\":\"0");
    assert_eq!(other.code, 0);
    assert!(other.stderr.contains("note: recorded by fairground"), "{}", other.stderr);
    for (from, to, message) in [
        ("\"format\":1", "\"format\":7", "changed.json: found a record of format 7; expected format 1"),
        ("\"pipetest\"", "\"pipe\"", "changed.json: found the workload pipe"),
        ("\"name\":\"v4.5-rc1\"", "\"name\":\"v9\"", "changed.json: found the kernel v9"),
        ("\"outcome\":", "\"outcom\":", "changed.json:1:"),
    ] {
        let wrong = change(from, to);
        assert_eq!(wrong.code, 2, "{}", wrong.stderr);
        assert!(wrong.stderr.contains(message), "{}", wrong.stderr);
    }
    fs::write(place.join("changed.json"), &text[..text.len() / 2]).unwrap();
    assert_eq!(run(&place, &["replay", "changed.json"]).code, 2);
}

#[test]
fn an_experiment_file_and_options_meet() {
    let place = folder("file");
    fs::create_dir(place.join("sub")).unwrap();
    let machine = run_well(&place, &["machines", "import", "pack:1 l3:1 core:2 pu:2"]);
    fs::write(place.join("sub/own.toml"), machine.stdout).unwrap();
    let text = "\
machine = \"own.toml\"
iterations = 1
[[workload]]
name = \"hackbench-pipes\"
groups = [1, 2]
loops = 1
[[arm]]
name = \"old\"
kernel = \"v4.15\"
[[arm]]
name = \"new\"
kernel = \"v4.16\"
features = [\"NO_SIS_PROP\"]
";
    fs::write(place.join("sub/test.toml"), text).unwrap();
    let said = run_well(&place, &["compare", "sub/test.toml"]);
    assert!(said.stdout.contains("arm      new = v4.16 NO_SIS_PROP, 250 Hz"), "{}", said.stdout);
    assert!(said.stdout.contains("Amean     2"), "{}", said.stdout);
    assert!(said.stderr.starts_with("results: results/test-"), "{}", said.stderr);
    let arguments = ["compare", "sub/test.toml", "--workload", "pipetest:batches=1,loops=1", "--arm", "third=v4.15"];
    let said = run_well(&place, &arguments);
    assert!(said.stdout.contains("arm      third = v4.15") && !said.stdout.contains("hackbench"), "{}", said.stdout);
    let single =
        run_well(&place, &["run", "sub/test.toml", "--arm", "new", "--workload", "pipetest:batches=1,loops=1"]);
    assert!(single.stdout.contains("arm      new = v4.16 NO_SIS_PROP"), "{}", single.stdout);
    assert!(single.stdout.contains("context switches"), "{}", single.stdout);
}

#[test]
fn nobody_reading_is_no_failure() {
    let place = folder("closed");
    let closed = |arguments: &[&str]| {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = fairground(&place).args(arguments).stdout(writer).stderr(Stdio::piped()).output().unwrap();
        let said = said(output);
        assert_eq!((said.code, said.stderr.contains("panicked")), (0, false), "{arguments:?}: {}", said.stderr);
    };
    closed(&["kernels", "show", "v4.15"]);
    closed(&["completions", "bash"]);
    closed(&compare(&["--out", "out"]));
    closed(&trace_to_stdout());
    assert!(Path::new(&place).join("out/report.txt").exists());
}

fn trace_to_stdout() -> Vec<&'static str> {
    [&["trace"], &TINY[..4], &["--arm", "v4.15", "--out", "-", "--format", "ftrace"]].concat()
}

#[test]
fn an_rt_app_file_is_a_workload() {
    let place = folder("rt-app-runs");
    let text = "\
{ \"tasks\": {
    \"ticker\": { \"instance\": 2, \"loop\": 5, \"run\": 100, \"timer\": { \"ref\": \"unique\", \"period\": 1000 } },
    \"worker\": { \"loop\": 3, \"run\": 500, \"sleep\": 200 } } }
";
    fs::write(place.join("a.json"), text).unwrap();
    let selectors = ["--machine", "core-i7-3770", "--workload", "rt-app:file=a.json", "--arm", "v4.15"];
    let arguments =
        [&["compare"], &selectors[..], &["--arm", "v4.16", "--iterations", "2", "--format", "json", "--out", "out"]];
    let document: Document = serde_json::from_str(&run_well(&place, &arguments.concat()).stdout).unwrap();
    let table = &document.tables[0];
    assert_eq!((table.unit.as_str(), &table.parameters["file"]), ("us", &"a.json".into()));
    assert_eq!(table.rows.iter().map(|row| row.label.as_str()).collect::<Vec<_>>(), ["ticker", "worker"]);
    // A round of the worker takes at least its work and its sleep.
    assert!(table.rows[1].arms[0].min >= 700.0);
    run_well(&place, &["replay", "out/records/0-rt-app-a/1-v4.16/0001.json"]);
    let single = run_well(&place, &[&["run"], &selectors[..], &["--out", "single"]].concat());
    assert!(single.stdout.contains("ticker-0") && single.stdout.contains("worker-2"), "{}", single.stdout);
    let logs: Vec<String> = files(&place.join("single/logs/0-rt-app-a/0-v4.15/0000"));
    assert_eq!(logs, ["0-ticker-0.log", "1-ticker-1.log", "2-worker-2.log"]);
}

#[test]
fn threads_of_long_names_have_a_log_each() {
    let place = folder("rt-app-long-names");
    let name = "a".repeat(80);
    let text =
        format!("{{ \"tasks\": {{ \"{name}\": {{ \"instance\": 2, \"loop\": 3, \"run\": 500, \"sleep\": 200 }} }} }}");
    fs::write(place.join("a.json"), text).unwrap();
    let selectors = ["--machine", "core-i7-3770", "--workload", "rt-app:file=a.json", "--arm", "v4.15"];
    run_well(&place, &[&["run"], &selectors[..], &["--out", "single"]].concat());
    let logs: Vec<String> = files(&place.join("single/logs/0-rt-app-a/0-v4.15/0000"));
    let cut = &name[..60];
    assert_eq!(logs, [format!("0-{cut}.log"), format!("1-{cut}.log")]);
}
