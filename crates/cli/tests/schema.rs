//! Checks the output of `--format json`, and the files in folders of results, against the schema that ships in `docs/`.

mod program;
#[path = "../../lab/src/json/schema.rs"]
#[allow(dead_code)]
mod schema;

use program::{TINY, folder, run_well};
use schema::errors_in;
use serde_json::Value;
use std::fs;

fn valid(text: &str) -> Value {
    let value: Value = serde_json::from_str(text).expect("one document and nothing else");
    assert_eq!(errors_in(&value), [] as [String; 0]);
    value
}

/// Checks that the states of CPUs and cores account for all of a run's time.
fn assert_adds_up(residency: &Value) {
    let [run] = residency.as_array().unwrap().as_slice() else { panic!("{residency}") };
    let all = run["duration_ns"].as_u64().unwrap();
    let times =
        |of: &Value| -> Vec<u64> { of.as_array().unwrap().iter().map(|entry| entry["ns"].as_u64().unwrap()).collect() };
    let (cpus, cores) = (run["cpus"].as_array().unwrap(), run["cores"].as_array().unwrap());
    assert!(cpus.len() >= cores.len() && !cores.is_empty());
    for (number, cpu) in cpus.iter().enumerate() {
        assert_eq!(cpu["cpu"], number);
        // Each time is rounded down to the nanosecond.
        let idle = times(&cpu["idle"]);
        let sum = cpu["executing_ns"].as_u64().unwrap() + idle.iter().sum::<u64>();
        assert!(sum <= all && sum + idle.len() as u64 >= all, "{cpu} of {all}");
    }
    assert!(cpus.iter().any(|cpu| cpu["executing_ns"].as_u64() > Some(0)));
    for core in cores {
        let at = times(&core["frequencies"]);
        let sum = at.iter().sum::<u64>();
        assert!(sum <= all && sum + at.len() as u64 >= all, "{core} of {all}");
    }
}

#[test]
fn documents_of_every_command_follow_the_schema() {
    let place = folder("schema");
    let json = |arguments: &[&[&str]]| {
        valid(&run_well(&place, &[&arguments.concat()[..], &["--format", "json", "--quiet"]].concat()).stdout)
    };
    let own = &TINY[..TINY.len() - 2];
    json(&[&["compare"], TINY, &["--out", "two"]]);
    valid(&fs::read_to_string(place.join("two/report.json")).unwrap());
    // With one iteration there is no interval and no deviation; with `auto` the number of iterations differs between
    // rows.
    let one = json(&[&["compare"], own, &["--iterations", "1"]]);
    assert!(one["tables"][0]["rows"][0]["change"][0]["low"].is_null(), "{one}");
    let auto = json(&[&["compare"], own, &["--iterations", "auto:min=2,max=3,half_width=0.01", "--out", "auto"]]);
    assert_eq!(auto["adaptive"]["max"], 3);
    let run = || json(&[&["run"], &TINY[..4], &["--arm", "v6.12", "--out", "single"]]);
    let (single, again) = (run(), run());
    assert_eq!((single["arms"].as_array().unwrap().len(), &single["iterations"]), (1, &Value::from(1)));
    // The stored document says the same, also when a later call reads it.
    for text in [fs::read_to_string(place.join("single/report.json")).unwrap(), again.to_string()] {
        assert_eq!(valid(&text)["residency"], single["residency"]);
    }
    assert_adds_up(&single["residency"]);
    // Energy and packages' states, if the machine file has figures for them.
    let short = ["--workload", "pipetest:batches=1,loops=20", "--arm", "v6.12"];
    let phone = json(&[&["run", "--machine", "snapdragon-845"], &short, &["--out", "phone"]]);
    let energy = &phone["residency"][0]["energy"];
    let sum = energy["packages"].as_array().unwrap().iter().flat_map(|it| [&it["cores_nj"], &it["own_nj"]]);
    let sum: u64 = sum.map(|nj| nj.as_u64().unwrap()).sum();
    assert!(energy["total_nj"].as_u64().unwrap().abs_diff(sum) <= 2 && sum > 0, "{energy}");
    assert_eq!(energy["from_start"]["each"]["operation"], "loop");
    let stored = valid(&fs::read_to_string(place.join("phone/report.json")).unwrap());
    assert_eq!(&stored["residency"][0]["energy"], energy);
    // And the effect of a power limit on them.
    let limit = "v6.12,cpufreq.driver=scmi,powercap.constraint_0_power_limit_uw=2000000,powercap.constraint_0_time_window_us=100000";
    let limited =
        json(&[&["run", "--machine", "snapdragon-845", "--workload", "pipetest:batches=1,loops=20", "--arm", limit]]);
    let limited = &limited["residency"][0]["power_limit"];
    assert_eq!((limited["limit_uw"].as_u64(), limited["packages"][0]["held_ns"].as_u64()), (Some(2_000_000), Some(0)));
    let server = json(&[&["run", "--machine", "xeon-gold-6148-2s"], &short]);
    let server = &server["residency"][0];
    assert_eq!((server["packages"].as_array().unwrap().len(), server.get("energy")), (2, None));
    // Several workloads and arms, a published column, shares of functions, a harmonic mean and a single figure.
    let text = "\
machine = \"skylake-uma-8\"
iterations = 2
[[workload]]
name = \"hackbench-pipes\"
title = \"pipes\"
groups = [1, 2]
loops = 2
published = { source = \"x\", 2 = 0.5 }
profile = { title = \"shares\", functions = [\"schedule\"] }
[[workload]]
name = \"netperf-tcp\"
size = [64]
milliseconds = 20
[[workload]]
name = \"schbench\"
workers = 2
runtime = 1
[[arm]]
name = \"a\"
kernel = \"v4.15\"
[[arm]]
name = \"b\"
kernel = \"v4.16\"
[[arm]]
name = \"c\"
kernel = \"v6.12\"
";
    fs::write(place.join("x.toml"), text).unwrap();
    let all = json(&[&["compare", "x.toml"]]);
    let of = |member: &str| -> Vec<String> {
        let tables = all["tables"].as_array().unwrap();
        tables.iter().map(|table| table[member].as_str().unwrap_or("-").to_string()).collect()
    };
    assert_eq!(of("name"), ["pipes", "shares", "shares-self", "-", "-"]);
    assert_eq!(of("statistic"), ["Amean", "value", "value", "Hmean", "Amean"]);
    assert_eq!(all["tables"][0]["published"]["2"], 0.5);
}
