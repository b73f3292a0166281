//! Ctrl-C and worse: finished runs are kept, labelled and taken up again, and nothing is half-written.

mod program;

use program::{Said, TINY, fairground, files, folder, run_well, said};
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// [`TINY`] with other options in addition to, or instead of, its own.
fn compare<'a>(more: &[&'a str]) -> Vec<&'a str> {
    let own = if more.contains(&"--iterations") { &TINY[..TINY.len() - 2] } else { TINY };
    ["compare"].iter().chain(own).chain(more).copied().collect()
}

/// The program as a terminal starts it. If the tests run in the background, signals may be ignored, and the program
/// would inherit that.
fn heedful(place: &Path) -> Command {
    let mut command = Command::new("env");
    command.arg("--default-signal=HUP,INT,TERM").arg(fairground(place).get_program()).current_dir(place);
    command
}

/// Starts the program, and waits until a file exists.
fn started(place: &Path, arguments: &[&str], file: &str) -> Child {
    let child = heedful(place).args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_for(&place.join(file));
    child
}

fn wait_for(file: &Path) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !file.exists() {
        assert!(Instant::now() < deadline, "no {} after a minute", file.display());
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn send(signal: &str, child: &Child) {
    send_at_once(&[signal], child);
}

/// One signal of each name, as fast as they can be sent.
fn send_at_once(signals: &[&str], child: &Child) {
    let kills: Vec<String> = signals.iter().map(|signal| format!("kill -{signal} {}", child.id())).collect();
    assert!(Command::new("sh").args(["-c", &kills.join("; ")]).status().unwrap().success());
}

fn interrupt(child: Child) -> Said {
    send("INT", &child);
    said(child.wait_with_output().unwrap())
}

/// The program's output when Ctrl-C comes as soon as a file exists.
fn interrupted(place: &Path, arguments: &[&str], file: &str) -> Said {
    interrupt(started(place, arguments, file))
}

#[test]
fn an_interrupted_comparison_is_kept_labelled_and_taken_up() {
    let place = folder("interrupt");
    let arguments = compare(&["--out", "out", "--jobs", "1", "--iterations", "2000"]);
    let interrupted = interrupted(&place, &arguments, "out/records/0-pipetest-Time/1-nostats/0003.json");
    assert_eq!(interrupted.code, 2, "{}", interrupted.stderr);
    assert!(interrupted.stdout.starts_with("PARTIAL: "), "{}", interrupted.stdout);
    assert!(interrupted.stderr.contains(" of 4000 runs are kept in out; the same command goes on from there"));
    assert!(fs::read_to_string(place.join("out/report.partial.txt")).unwrap().starts_with("PARTIAL: "));
    assert!(!place.join("out/report.txt").exists());
    assert!(files(&place).iter().all(|file| !file.contains("/.")), "something is half written");
    let whole = run_well(&place, &compare(&["--out", "out", "--iterations", "3"]));
    assert!(whole.stderr.starts_with("note: 6 of 6 runs are taken from out\n"), "{}", whole.stderr);
    assert!(!place.join("out/report.partial.txt").exists());
}

#[test]
fn signals_that_come_together_are_one_interruption() {
    let place = folder("timeout");
    let arguments = compare(&["--out", "out", "--jobs", "1", "--iterations", "2000"]);
    let child = started(&place, &arguments, "out/records/0-pipetest-Time/1-nostats/0003.json");
    // timeout(1) sends two of one name, of which a process may hear one.
    send_at_once(&["TERM", "INT"], &child);
    let stopped = said(child.wait_with_output().unwrap());
    assert_eq!(stopped.code, 2, "{}", stopped.stderr);
    assert!(stopped.stdout.starts_with("PARTIAL: "), "{}", stopped.stdout);
    assert!(stopped.stderr.contains(" of 4000 runs are kept in out; the same command goes on from there"));

    let measure = ["measure", "hackbench-pipes:groups=1,loops=100", "--iterations", "2000", "--out", "real"];
    let first = "real/measured/hackbench-pipes-groups-1-loops-100-messages-0-threads-0/0000.json";
    let child = started(&place, &measure, first);
    send_at_once(&["TERM", "INT"], &child);
    let stopped = said(child.wait_with_output().unwrap());
    assert_eq!(stopped.code, 2, "{}", stopped.stderr);
    assert!(stopped.stdout.starts_with("PARTIAL: "), "{}", stopped.stdout);
    assert!(stopped.stderr.ends_with(" of 2000 runs are kept in real; the same command goes on from there\n"));
}

#[test]
fn a_terminal_that_goes_away_is_an_interruption_unless_the_user_said_nohup() {
    let place = folder("hangup");
    let third = |out: &str| format!("{out}/records/0-pipetest-Time/1-nostats/0003.json");
    let child = started(&place, &compare(&["--out", "out", "--jobs", "1", "--iterations", "2000"]), &third("out"));
    // One from the shell, and one from the kernel.
    send("HUP", &child);
    send("HUP", &child);
    let stopped = said(child.wait_with_output().unwrap());
    assert_eq!(stopped.code, 2, "{}", stopped.stderr);
    assert!(stopped.stderr.contains(" of 4000 runs are kept in out; the same command goes on from there"));
    assert!(fs::read_to_string(place.join("out/report.partial.txt")).unwrap().starts_with("PARTIAL: "));

    let command = fairground(&place);
    let arguments = compare(&["--out", "ignored", "--jobs", "1", "--iterations", "40"]);
    let child = Command::new("nohup")
        .arg(command.get_program())
        .args(&arguments)
        .current_dir(&place)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    wait_for(&place.join(third("ignored")));
    send("HUP", &child);
    let whole = said(child.wait_with_output().unwrap());
    assert_eq!(whole.code, 0, "{}", whole.stderr);
    assert!(place.join("ignored/report.txt").exists());
}

/// The output of `measure` when a terminal's Ctrl-C, which reaches all its processes, comes as soon as a file exists.
fn interrupted_measurement(place: &Path, workloads: &[&str], file: &str) -> Said {
    use std::os::unix::process::CommandExt;
    let mut command = heedful(place);
    command.arg("measure").args(workloads).args(["--iterations", "50", "--out", "out/real", "--quiet"]);
    let child = command.process_group(0).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_for(&place.join(file));
    let kill = format!("kill -INT -{}", child.id());
    assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
    let stopped = said(child.wait_with_output().unwrap());
    assert_eq!(stopped.code, 2, "{}", stopped.stderr);
    stopped
}

#[test]
fn interrupted_measurements_are_kept_and_labelled_and_without_any_nothing_is() {
    let (short, long) = ("hackbench-pipes:groups=1,loops=1", "hackbench-pipes:groups=2,loops=2000");
    let place = folder("interrupt-measure");
    let first = "out/real/measured/hackbench-pipes-groups-1-loops-1-messages-0-threads-0/0000.json";
    let stopped = interrupted_measurement(&place, &[short, long], first);
    // The second run's processes hear it too, unless they did not exist yet.
    let done = if stopped.stdout.starts_with("PARTIAL: 1 ") { 1 } else { 2 };
    let label = format!("PARTIAL: {done} of 100 runs\n\nmeasured ");
    assert!(stopped.stdout.starts_with(&label), "{}", stopped.stdout);
    let told =
        format!("error: interrupted: {done} of 100 runs are kept in out/real; the same command goes on from there\n");
    assert!(stopped.stderr.ends_with(&told), "{}", stopped.stderr);
    assert_eq!(fs::read_to_string(place.join("out/real/measured.partial.txt")).unwrap(), stopped.stdout);
    assert!(!place.join("out/real/measured.txt").exists());
    run_well(&place, &["measure", short, "--iterations", "1", "--out", "out/real", "--quiet"]);
    assert!(place.join("out/real/measured.txt").exists() && !place.join("out/real/measured.partial.txt").exists());

    let place = folder("interrupt-measure-at-once");
    let stopped = interrupted_measurement(&place, &[long], "out/real/measured");
    if stopped.stdout.is_empty() {
        assert!(stopped.stderr.ends_with("error: interrupted: no run was finished, so nothing is kept\n"));
        assert_eq!(fs::read_dir(&place).unwrap().count(), 0);
    } else {
        assert!(stopped.stdout.starts_with("PARTIAL: 1 of 50 runs\n"), "{}", stopped.stdout);
    }
}

#[test]
fn a_signal_to_the_process_alone_lets_the_run_end_that_it_meets() {
    let place = folder("interrupt-measure-alone");
    let long = "schbench:workers=1,runtime=2,interval=1,operations=1,cache_footprint=16";
    let measure =
        ["measure", "hackbench-pipes:groups=1,loops=1", long, "--iterations", "1", "--out", "real", "--quiet"];
    let first = "real/measured/hackbench-pipes-groups-1-loops-1-messages-0-threads-0/0000.json";
    let child = started(&place, &measure, first);
    // By then the other run has begun; it lasts two seconds.
    std::thread::sleep(Duration::from_millis(500));
    let whole = interrupt(child);
    assert_eq!(whole.code, 0, "{}", whole.stderr);
    assert!(whole.stdout.starts_with("measured ") && whole.stdout.contains("schbench"), "{}", whole.stdout);

    fs::remove_dir_all(place.join("real")).unwrap();
    let child = started(&place, &measure, first);
    std::thread::sleep(Duration::from_millis(500));
    send("INT", &child);
    std::thread::sleep(Duration::from_millis(400));
    let since = Instant::now();
    let stopped = interrupt(child);
    assert_eq!((stopped.code, stopped.stdout.as_str()), (2, ""), "{}", stopped.stderr);
    assert_eq!(stopped.stderr, "error: interrupted twice: ended at once; what was stored before is kept\n");
    assert!(since.elapsed() < Duration::from_secs(1) && place.join(first).exists());
}

/// The processes that a measurement has started and that still exist.
fn children_of(process: u32) -> Vec<u32> {
    let of = |entry: fs::DirEntry| {
        let words = fs::read_to_string(entry.path().join("cmdline")).ok()?;
        let is_one = words.contains("host-child") && words.contains(&process.to_string());
        entry.file_name().to_str()?.parse().ok().filter(|_| is_one)
    };
    fs::read_dir("/proc").unwrap().flatten().filter_map(of).collect()
}

#[test]
fn a_benchmarks_processes_end_with_the_measurement_however_that_ends() {
    for (test, signals) in [("insisted", &["INT", "INT"][..]), ("killed", &["KILL"])] {
        let place = folder(&format!("orphans-{test}"));
        // Some minutes of work for forty processes, none of which has a reason to end.
        let workload = "hackbench-pipes:groups=1,loops=1000000";
        let mut command = heedful(&place);
        command.args(["measure", workload, "--iterations", "1", "--quiet"]).stderr(Stdio::null());
        let mut child = command.stdout(Stdio::null()).spawn().unwrap();
        let until = |what: &str, is: &dyn Fn() -> bool| {
            let deadline = Instant::now() + Duration::from_secs(60);
            while !is() {
                assert!(Instant::now() < deadline, "{test}: {what} after a minute: {:?}", children_of(child.id()));
                std::thread::sleep(Duration::from_millis(20));
            }
        };
        until("not all processes are there", &|| children_of(child.id()).len() >= 40);
        for signal in signals {
            send(signal, &child);
            std::thread::sleep(Duration::from_millis(400));
        }
        child.wait().unwrap();
        let since = Instant::now();
        while !children_of(child.id()).is_empty() && since.elapsed() < Duration::from_secs(5) {
            std::thread::sleep(Duration::from_millis(20));
        }
        let left = children_of(child.id());
        left.iter().for_each(|process| drop(Command::new("kill").args(["-KILL", &process.to_string()]).status()));
        assert_eq!(left, [0; 0], "{test}: they are still there");
    }
}

#[test]
fn a_killed_measurement_goes_on_with_what_it_has_and_a_whole_one_begins_anew() {
    let place = folder("killed-measure");
    let measure =
        |iterations| ["measure", "hackbench-pipes:groups=1,loops=1", "--iterations", iterations, "--out", "real"];
    let records = "real/measured/hackbench-pipes-groups-1-loops-1-messages-0-threads-0";
    let record = |number: u32| fs::read_to_string(place.join(format!("{records}/{number:04}.json"))).unwrap();
    let mut child = started(&place, &measure("2000"), &format!("{records}/0003.json"));
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(!place.join("real/measured.txt").exists() && place.join("real/measured.unfinished").exists());
    let (third, stored) = (record(2), files(&place.join(records)).len());
    fs::write(place.join(format!("{records}/0001.json")), "{\"format\":1,").unwrap();

    // The folder has three of the four runs that it needs, and others that it does not.
    let again = run_well(&place, &measure("4"));
    assert!(again.stderr.contains("note: 3 of 4 runs are taken from real\n"), "{}", again.stderr);
    assert!(again.stdout.contains("4 iterations on the real kernel"), "{}", again.stdout);
    assert!(stored >= 4 && record(2) == third && record(1).ends_with("}\n"));
    assert_eq!(files(&place.join("real")).len(), 4 + 2, "{:?}", files(&place.join("real")));

    let anew = run_well(&place, &measure("3"));
    assert!(!anew.stderr.contains("are taken from"), "{}", anew.stderr);
    assert!(record(2) != third && files(&place.join("real")).len() == 3 + 2);
}

#[test]
fn a_killed_comparison_goes_on_and_ends_as_if_nothing_had_happened() {
    let place = folder("killed");
    let arguments = |out| compare(&["--out", out, "--jobs", "2", "--iterations", "40", "--quiet"]);
    let whole = run_well(&place, &arguments("whole"));
    let mut child = started(&place, &arguments("out"), "out/records/0-pipetest-Time/1-nostats/0005.json");
    // SIGKILL: nothing is cleaned up.
    child.kill().unwrap();
    assert_eq!(child.wait_with_output().unwrap().stdout, b"");
    let stored = files(&place.join("out/records")).len();
    assert!(stored < 80, "it was killed too late: {stored} files");
    // A file as a run leaves it when it is killed while writing. No process has this number.
    let half = place.join("out/records/0-pipetest-Time/1-nostats/.0039.json.4194999.fairground-part");
    fs::write(&half, "{\"format\":1,").unwrap();

    let again = run_well(&place, &arguments("out"));
    assert_eq!(again.stdout, whole.stdout);
    assert!(!half.exists());
    assert_eq!(files(&place.join("out")), files(&place.join("whole")));
    let without_cost = |path: String| {
        let mut record: serde_json::Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
        record.as_object_mut().unwrap().remove("host_cpu_ns").expect("the cost");
        record.to_string()
    };
    for file in files(&place.join("whole/records")) {
        let record = |of: &str| without_cost(place.join(of).join("records").join(&file).to_string_lossy().to_string());
        assert_eq!(record("out"), record("whole"), "{file}");
    }
    let report = |of: &str, file: &str| fs::read_to_string(place.join(of).join(file)).unwrap();
    for file in ["report.txt", "report.csv", "report.html", "samples.csv"] {
        assert_eq!(report("out", file), report("whole", file), "{file}");
    }
}

#[test]
fn an_interruption_before_any_run_has_ended_leaves_nothing() {
    let place = folder("interrupt-at-once");
    let long = ["--machine", "core-i7-3770", "--workload", "hackbench-pipes:groups=40,loops=100000"];
    for command in ["compare", "run"] {
        let arms: &[&str] = if command == "run" { &["--arm", "v4.15"] } else { &["--arm", "v4.15", "--arm", "v4.16"] };
        let arguments = [&[command, "--out", "out/here", "--quiet"], &long[..], arms].concat();
        let interrupted = interrupted(&place, &arguments, "out/here/fairground.json");
        assert_eq!((interrupted.code, interrupted.stdout.as_str()), (2, ""), "{}", interrupted.stderr);
        assert_eq!(interrupted.stderr, "error: interrupted: no run was finished, so nothing is kept\n");
        assert_eq!(files(&place), [""; 0]);
    }
}

#[test]
fn runs_that_were_interrupted_go_on() {
    let place = folder("interrupt-run");
    let arguments = |out, iterations| {
        let own = ["run", "--machine", "core-i7-3770", "--workload", "pipetest:batches=2,loops=5", "--arm", "v6.12"];
        [&own[..], &["--out", out, "--jobs", "1", "--iterations", iterations]].concat()
    };
    let stopped = interrupted(&place, &arguments("out", "4000"), "out/records/0-pipetest-Time/0-v6.12/0003.json");
    assert_eq!(stopped.code, 2, "{}", stopped.stderr);
    assert!(stopped.stdout.starts_with("PARTIAL: "), "{}", stopped.stdout);
    let kept = " of 4000 runs are kept in out; the same command goes on from there\n";
    assert!(stopped.stderr.ends_with(kept), "{}", stopped.stderr);
    assert!(fs::read_to_string(place.join("out/report.partial.txt")).unwrap().starts_with("PARTIAL: "));
    assert!(files(&place).iter().all(|file| !file.contains("/.")), "something is half written");
    // A run whose file was lost in the meantime is run again, with the same result as if nothing had happened.
    fs::remove_file(place.join("out/statistics/0-pipetest-Time/0-v6.12/0001.txt")).unwrap();
    let whole = run_well(&place, &arguments("out", "3"));
    assert_eq!(whole.stderr, "note: 2 of 3 runs are taken from out\nresults: out\n");
    assert_eq!(whole.stdout, run_well(&place, &arguments("other", "3")).stdout);
    assert!(!place.join("out/report.partial.txt").exists());
}

#[test]
fn an_interrupted_trace_leaves_nothing() {
    let place = folder("interrupt-trace");
    let long = ["--machine", "core-i7-3770", "--workload", "hackbench-pipes:groups=40,loops=100000", "--arm", "v4.16"];
    let child = fairground(&place)
        .args([&["trace"], &long[..], &["--out", "t"]].concat())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The file has another name until it is complete.
    let unfinished = place.join(format!(".t.{}.fairground-part", child.id()));
    let deadline = Instant::now() + Duration::from_secs(60);
    while !unfinished.metadata().is_ok_and(|file| file.len() > 0) {
        assert!(Instant::now() < deadline, "nothing is written after a minute");
        std::thread::sleep(Duration::from_millis(1));
    }
    let stopped = interrupt(child);
    assert_eq!((stopped.code, stopped.stdout.as_str()), (2, ""));
    assert_eq!(stopped.stderr, "error: interrupted: nothing is kept of a single run\n");
    assert_eq!(files(&place), [""; 0]);
}

#[test]
fn an_interrupted_study_has_its_place_in_the_overview() {
    let place = folder("interrupt-study");
    let arguments = ["reproduce", "schedstats", "--out", "out", "--jobs", "1"];
    // The folder of the first experiment is named after its workload.
    let child = fairground(&place).args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let deadline = Instant::now() + Duration::from_secs(120);
    while !files(&place).iter().any(|file| file.contains("/records/") && file.ends_with("0000.json")) {
        assert!(Instant::now() < deadline, "no record after two minutes");
        std::thread::sleep(Duration::from_millis(20));
    }
    let stopped = interrupt(child);
    assert_eq!(stopped.code, 2, "{}", stopped.stderr);
    assert!(stopped.stderr.contains("; the same command goes on from there\n"), "{}", stopped.stderr);
    let page = fs::read_to_string(place.join("out/index.html")).unwrap();
    let link = page.split("href=\"").find(|rest| rest.contains("/report.partial.html")).expect("a link");
    assert!(place.join("out").join(link.split('"').next().unwrap()).exists(), "{link}");
    assert!(page.contains("PARTIAL: runs are missing") && page.contains("fairground reproduce load-avg-line"));
    assert!(files(&place).iter().all(|file| !file.contains("/.")), "something is half written");
}

#[test]
fn a_killed_ranking_goes_on_and_ends_as_if_nothing_had_happened() {
    let place = folder("killed-ranking");
    let figures = ["--figures", "line.*", "--figures", "cycles_per_instruction.*"];
    let arguments = |out| [&["sensitivity"], TINY, &figures, &["--jobs", "1", "--out", out]].concat();
    let whole = run_well(&place, &arguments("whole"));
    let mut child = started(&place, &arguments("out"), "out/trials.jsonl");
    let lines = || fs::read_to_string(place.join("out/trials.jsonl")).unwrap().lines().count();
    let deadline = Instant::now() + Duration::from_secs(60);
    while lines() < 6 {
        assert!(Instant::now() < deadline, "no run after a minute");
        std::thread::sleep(Duration::from_millis(1));
    }
    // SIGKILL: nothing is cleaned up, and the last line may be incomplete.
    child.kill().unwrap();
    child.wait().unwrap();
    let path = place.join("out/trials.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    let (kept, _) = text.trim_end().rsplit_once('\n').unwrap();
    let kept: Vec<&str> = kept.lines().collect();
    assert!(kept.len() < fs::read_to_string(place.join("whole/trials.jsonl")).unwrap().lines().count());
    fs::write(&path, kept.join("\n") + "\n{\"setup\":\"0a").unwrap();
    let again = run_well(&place, &arguments("out"));
    assert_eq!(again.stdout, whole.stdout);
    // One line is for the program, and one for each run.
    assert!(again.stderr.contains(&format!("note: {} of ", kept.len() - 1)), "{}", again.stderr);
    assert_eq!(files(&place.join("out")), files(&place.join("whole")));
    // Runs of another program do not count.
    fs::write(&path, text.replacen("\"sources\":\"", "\"sources\":\"0", 1)).unwrap();
    let other = run_well(&place, &arguments("out"));
    assert!(!other.stderr.contains("are taken from"), "{}", other.stderr);
    assert_eq!(other.stdout, whole.stdout);
}

#[test]
fn an_interrupted_ranking_is_kept_and_labelled() {
    let place = folder("interrupt-ranking");
    let long = ["--machine", "core-i7-3770", "--workload", "pipetest:batches=40,loops=500", "--arm", "v4.16"];
    let arguments = [&["sensitivity"], &long[..], &["--iterations", "100", "--jobs", "1", "--out", "out"]].concat();
    let child = started(&place, &arguments, "out/trials.jsonl");
    let deadline = Instant::now() + Duration::from_secs(60);
    while fs::read_to_string(place.join("out/trials.jsonl")).unwrap().lines().count() < 3 {
        assert!(Instant::now() < deadline, "no run after a minute");
        std::thread::sleep(Duration::from_millis(5));
    }
    let stopped = interrupt(child);
    assert_eq!(stopped.code, 2, "{}", stopped.stderr);
    assert!(
        stopped.stderr.ends_with(" runs are kept in out; the same command goes on from there\n"),
        "{}",
        stopped.stderr
    );
    assert_eq!(fs::read_to_string(place.join("out/sensitivity.partial.txt")).unwrap(), stopped.stdout);
    // A figure that was never tried is not one without influence.
    let ranking = fs::read_to_string(place.join("out/sensitivity.partial.json")).unwrap();
    let ranking: serde_json::Value = serde_json::from_str(&ranking).unwrap();
    let count = |of: &str| ranking[of].as_array().unwrap().len();
    assert_eq!((count("figures"), count("without_influence")), (0, 0));
    let told =
        format!("\nuncertain figures not tried yet: {}; the same command goes on with them\n", count("not_tried"));
    assert!(count("not_tried") > 100 && stopped.stdout.contains(&told), "{}", stopped.stdout);
    assert!(!place.join("out/sensitivity.txt").exists());
}
