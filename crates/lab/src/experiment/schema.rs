//! `docs/experiment.schema.json` against the reader: what one takes, the other takes, as far as a schema can say it.

use super::{Purpose, parse};
use crate::json::schema::Schema;
use crate::machines::tests::Table as NoFiles;
use serde_json::Value;

fn schema() -> Schema {
    let root = serde_json::from_str(include_str!("../../../../docs/experiment.schema.json")).expect("JSON");
    let matches = |pattern: &str, text: &str| regex_lite::Regex::new(pattern).expect(pattern).is_match(text);
    Schema { root, matches }
}

/// An experiment with lines of its own at its top, in its first arm and behind its arms.
fn experiment(top: &str, arm: &str, behind: &str) -> String {
    format!(
        "machine = \"skylake-uma-8\"\n{top}\n[[workload]]\nname = \"script\"\n\
         tasks = \"\"\"\ngroup /web: cpu.weight 300\ntask a group=/web: run 9ms\n\"\"\"\n\
         [[arm]]\nname = \"a\"\nkernel = \"v4.15\"\n{arm}\n[[arm]]\nname = \"b\"\nkernel = \"v4.16\"\n{behind}\n"
    )
}

/// Holds both to `taken`.
fn check(text: &str, taken: bool) {
    let schema = schema();
    let value: Value = toml::from_str(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    let errors = schema.errors(&schema.root, &value, "");
    assert_eq!(errors.is_empty(), taken, "the schema: {errors:?}\n{text}");
    let read = parse(text, "x.toml").and_then(|draft| draft.resolve(Purpose::Comparison, &NoFiles::default()));
    assert_eq!(read.is_ok(), taken, "the reader: {:?}\n{text}", read.err().map(|mistake| mistake.to_string()));
}

#[test]
fn the_top_is_taken_by_both_or_by_neither() {
    let [taken, refused] = [
        &[
            "",
            "name = \".a..b\"",
            "about = \"one\\ntwo\"",
            "iterations = 10000",
            "iterations = \"auto\"",
            "iterations = \"auto:min=2,max=10000,half_width=0.001\"",
            "iterations = \"auto:half_width=.5,min=3\"",
            "iterations = \"auto:half_width=100\"",
            "iterations = \"auto:half_width=99.9\"",
        ][..],
        &[
            "name = \".\"",
            "name = \"..\"",
            "about = \"  \"",
            "iterations = \"5\"",
            "iterations = \"auto:min=1\"",
            "iterations = \"auto:max=10001\"",
            "iterations = \"auto:half_width=0\"",
            "iterations = \"auto:half_width=0.0009\"",
            "iterations = \"auto:half_width=100.1\"",
            "iterations = \"auto:half_width=1.1.1\"",
            "iterations = \"auto:half_width=1,\"",
        ],
    ];
    taken.iter().for_each(|top| check(&experiment(top, "", ""), true));
    refused.iter().for_each(|top| check(&experiment(top, "", ""), false));
}

#[test]
fn arms_are_taken_by_both_or_by_neither() {
    let [taken, refused] = [
        &[
            "sysctl = { sched_migration_cost_ns = 0 }",
            "sysctl = { sched_migration_cost_ns = \"0\" }",
            "sysctl.kernel.sched_rt_runtime_us = -1",
            "features = [\"NO_SIS_PROP\", \"SIS_AVG_CPU\"]",
            "features = []",
            "cpufreq = { driver = \"intel_pstate\", no_turbo = 1 }",
            "cpufreq = { driver = \"intel_pstate\", no_turbo = \"1\" }",
            "cmdline = \"noise=1\\nidle=halt\"",
        ][..],
        &[
            "sysctl = { sched_migration_cost_ns = true }",
            "features = [\"NO_SIS_PROP\", \"NO_SIS_PROP\"]",
            "features = [\"SIS_PROP=1\"]",
            "cpufreq = { driver = \"intel_pstate\", no_turbo = true }",
            "cmdline = \" \"",
            "config = [\"CONFIG_PREEMPT=y\", \"CONFIG_PREEMPT_NONE=y\"]",
        ],
    ];
    taken.iter().for_each(|arm| check(&experiment("", arm, ""), true));
    refused.iter().for_each(|arm| check(&experiment("", arm, ""), false));
}

#[test]
fn moments_are_taken_by_both_or_by_neither() {
    let driven = "cpufreq = { driver = \"acpi-cpufreq\" }\n[[arm]]\nname = \"c\"\nkernel = \"v4.16\"\ncpufreq.driver = \"acpi-cpufreq\"";
    let at =
        |rest: &&str| experiment("", driven, &format!("cpufreq.driver = \"acpi-cpufreq\"\n[[timeline]]\nat = {rest}"));
    let [taken, refused] = [
        &[
            "\"3600s\"\noffline = 1",
            "\"3600000ms\"\noffline = \"2-3,5\"",
            "\"3599999999us\"\noffline = \" 1\"",
            "\"0003600000000000ns\"\nonline = 1",
            "\"1ms\"\npartitions = []",
            "\"1ms\"\npartitions = [\"0-3\", \"4-7\"]",
            "\"1ms\"\narms = [\"a\"]\nfeatures = [\"NO_SIS_PROP\"]",
            "\"1ms\"\nfeatures = []\nsysctl = {}\noffline = 1",
            "\"1ms\"\nsysctl = { sched_migration_cost_ns = \"0\" }",
            "\"1ms\"\ncgroup = { \"/web\" = { \"cpu.weight\" = 50 } }",
            "\"1ms\"\ncpufreq = { governor = \"powersave\", scaling_max_freq = 2000000 }",
            "\"1ms\"\ncpuidle.state1.disable = 1",
            "\"1ms\"\ncpuidle = { \"state1.disable\" = \"0\" }",
            "\"1ms\"\ncpu_dma_latency = -1",
            "\"1ms\"\ncpu_dma_latency = \"default\"",
            "\"1ms\"\ncpu_dma_latency = 20",
        ][..],
        &[
            "\"3601s\"\noffline = 1",
            "\"3600001ms\"\noffline = 1",
            "\"4000000000us\"\noffline = 1",
            "\"3600000000001ns\"\noffline = 1",
            "\"10000s\"\noffline = 1",
            "\"1m\"\noffline = 1",
            "\"1ms\"\noffline = \"\"",
            "\"1ms\"\noffline = \"-3\"",
            "\"1ms\"\noffline = -3",
            "\"1ms\"\noffline = \"2,\"",
            "\"1ms\"\npartitions = [\"\"]",
            "\"1ms\"",
            "\"1ms\"\narms = [\"a\"]",
            "\"1ms\"\nfeatures = []",
            "\"1ms\"\nsysctl = {}",
            "\"1ms\"\nsysctl = { kernel = {} }",
            "\"1ms\"\ncgroup = {}",
            "\"1ms\"\ncgroup = { \"/web\" = {} }",
            "\"1ms\"\ncpufreq = {}",
            "\"1ms\"\ncpufreq = { driver = \"intel_pstate\" }",
            "\"1ms\"\ncpufreq = { boost = true }",
            "\"1ms\"\ncpuidle = {}",
            "\"1ms\"\ncpuidle = { state1 = {} }",
            "\"1ms\"\ncpu_dma_latency = -2",
            "\"1ms\"\ncpu_dma_latency = \"soon\"",
        ],
    ];
    taken.iter().for_each(|moment| check(&at(moment), true));
    refused.iter().for_each(|moment| check(&at(moment), false));
}
