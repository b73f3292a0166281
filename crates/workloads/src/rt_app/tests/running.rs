//! Small applications, run with the cost model off. Only what they ask for takes time. Timers are the exception: they
//! are late by their slack of 50 us when nothing else interrupts.

use super::*;
use crate::Instance;
use crate::fixture::RULES;
use machine::hardware::Hardware;
use machine::idle::IdleRules;
use machine::prices::Prices;
use machine::topology::{Numbering, from_synthetic};
use os::Os;
use sched::core::{Boot, Sched};
use sched::sysctl::Sysctl;
use sim::engine::{End, LinuxSim, Sample, Sim};
use units::{CpuId, Ns};

pub(super) const KERNELS: [&str; 3] = ["v4.5-rc1", "v4.15", "v4.16"];
const LONG: Ns = Ns(3_600_000_000_000);

/// An application on its way.
pub(super) struct Ran<const COSTS: bool> {
    pub rt_app: RtApp,
    pub sim: LinuxSim<COSTS>,
}

impl<const COSTS: bool> Ran<COSTS> {
    /// Starts `text` at time 0 on `cpus` CPUs of one package, by `kernel`.
    pub fn start_on(kernel: &str, cpus: usize, prices: Prices, text: &str) -> Ran<COSTS> {
        Self::start(kernel, cpus, prices, app(text))
    }

    fn start(kernel: &str, cpus: usize, prices: Prices, application: Application) -> Ran<COSTS> {
        Self::start_in(kernel, &format!("pack:1 l3:1 core:{cpus} pu:1"), prices, application)
    }

    /// Starts an application at time 0 on a machine of that shape.
    pub fn start_in(kernel: &str, shape: &str, prices: Prices, application: Application) -> Ran<COSTS> {
        let topology = from_synthetic(shape, "test", Numbering::LinuxX86).expect("a valid machine");
        let cpus = topology.nr_cpus();
        let kernel = *sched::versions::kernel(kernel).expect("a kernel that is built");
        let cores = Cores { nr_cpus: cpus, ps_per_cycle: prices.ps_per_cycle, caches: (&prices).into() };
        let hardware = Hardware::new(topology.clone(), prices, kernel.layout(), IdleRules::V4_15, 1);
        let sysctl = Sysctl::new(cpus);
        let boot = Boot { sysctl, ..Boot::new(kernel, topology.cpu_topology(), 250) };
        let mut sim = Sim::new(Sched::new(hardware, boot), Os::new(RULES, 250));
        let rt_app = instance(application, cores).unwrap_or_else(|error| panic!("{error}"));
        for task in crate::start(&rt_app, &mut sim) {
            sim.spawn(CpuId(0), task);
        }
        Ran { rt_app, sim }
    }

    pub fn ended(mut self) -> Ran<COSTS> {
        assert_eq!(self.sim.run(LONG), End::Finished);
        self
    }

    /// The rows of the thread of this name.
    pub fn rows(&self, thread: &str) -> Vec<LogRow> {
        let logs = self.rt_app.logs(&self.sim.samples);
        let log = logs.iter().find(|log| log.thread == thread);
        log.unwrap_or_else(|| panic!("no thread is called {thread}")).rows.clone()
    }

    /// The name of the task that runs on `cpu` now.
    pub fn running_on(&self, cpu: u16) -> Option<String> {
        self.sim.sched.rq[CpuId(cpu)].curr.map(|task| self.sim.sched.task_cold[task].comm.clone())
    }
}

/// One CPU of 1 GHz without caches.
pub(super) fn one_cpu() -> Cores {
    Cores { nr_cpus: 1, ps_per_cycle: 1_000, caches: Caches::default() }
}

pub(super) fn run_on(kernel: &str, cpus: usize, text: &str) -> Ran<false> {
    Ran::start_on(kernel, cpus, Prices::free(), text).ended()
}

fn run(cpus: usize, text: &str) -> Ran<false> {
    run_on("v4.15", cpus, text)
}

fn slacks(rows: &[LogRow]) -> Vec<i64> {
    rows.iter().map(|row| row.slack_us).collect()
}

#[test]
fn a_slice_is_asked_for_where_somebody_listens() {
    let text = r#"{"tasks": {"own": {"dl-runtime": 3000, "phases": {
        "a": {"loop": 1, "run": 20000}, "b": {"priority": 1, "dl-runtime": 500000, "loop": 1, "run": 20000}}}}}"#;
    // The slice: 3 ms asked for, then half a second, of which the kernel grants 100 ms. The tunable's value is 0.7 ms
    // on one CPU.
    for (kernel, at_10_ms, at_30_ms) in [("v6.1", 0, 0), ("v6.12", 3_000_000, 100_000_000)] {
        let mut ran = Ran::<false>::start_on(kernel, 1, Prices::free(), text);
        for (at, slice) in [(10, at_10_ms), (30, at_30_ms)] {
            ran.sim.run(Ns::from_ms(at));
            let sched = &ran.sim.sched;
            let task = sched.rq[CpuId(0)].curr.expect("the thread runs");
            assert_eq!(sched.task_cold[task].comm, "own-0");
            let se = &sched.se[sched.task[task].se];
            assert_eq!((se.slice, se.custom_slice), (slice, slice != 0), "{kernel} after {at} ms");
        }
    }
}

#[test]
fn a_periodic_task_is_late_by_the_timer_slack_and_keeps_its_period() {
    for kernel in KERNELS {
        let ran = run_on(
            kernel,
            2,
            r#"{"tasks": {"beat": {"loop": 20, "cpus": [1], "run": 2000, "timer": {"ref": "unique", "period": 10000}}},
                "global": {"calibration": 100}}"#,
        );
        let rows = ran.rows("beat-0");
        assert_eq!(rows.len(), 20);
        let first = LogRow {
            perf: 20,
            run_us: 2000,
            period_us: 10_050,
            start_us: 0,
            end_us: 10_050,
            rel_start_us: 0,
            slack_us: 8000,
            c_duration_us: 2000,
            c_period_us: 10_000,
            wu_lat_us: 50,
        };
        assert_eq!(rows[0], first, "{kernel}");
        for (at, row) in rows.iter().enumerate().skip(1) {
            let start_us = 50 + 10_000 * at as u64;
            let late = LogRow {
                period_us: 10_000,
                start_us,
                end_us: start_us + 10_000,
                rel_start_us: start_us,
                slack_us: 7950,
                ..first
            };
            assert_eq!(*row, late, "{kernel}, row {at}");
        }
        assert_eq!(ran.rt_app.operations(), ["beat"]);
        assert_eq!(ran.rt_app.samples_of(0, &ran.sim.samples), [50_000; 20]);
        assert_eq!(ran.rt_app.samples(&ran.sim.samples), [50_000; 20]);
    }
}

#[test]
fn a_missed_moment_is_forgiven_by_relative_timers_and_adds_up_in_absolute_ones() {
    for (mode, slack) in [("relative", [-5000; 4]), ("absolute", [-5000, -10_000, -15_000, -20_000])] {
        let timer = format!(r#"{{"ref": "unique", "period": 10000, "mode": "{mode}"}}"#);
        let ran = run(1, &format!(r#"{{"tasks": {{"t": {{"loop": 4, "run": 15000, "timer": {timer}}}}}}}"#));
        let rows = ran.rows("t-0");
        assert_eq!(slacks(&rows), slack);
        assert!(rows.iter().all(|row| row.period_us == 15_000 && row.wu_lat_us == 0), "{rows:?}");
        assert_eq!(ran.rt_app.samples_of(0, &ran.sim.samples), [0; 0], "nobody slept for a timer");
    }
}

#[test]
fn slack_is_the_last_timers_or_the_sum() {
    // Timer A is missed in the second and third round; it counts on from there.
    let slack = |cumulative: bool| {
        let text = format!(
            r#"{{"tasks": {{"t": {{"loop": 3, "run": 1000, "timer": {{"ref": "uniqueA", "period": 5000}},
                "run": 1000, "timer": {{"ref": "uniqueB", "period": 10000}}}}}},
                "global": {{"cumulative_slack": {cumulative}}}}}"#
        );
        slacks(&run(1, &text).rows("t-0"))
    };
    assert_eq!(slack(false), [3950, 7950, 7950]);
    assert_eq!(slack(true), [4000 + 3950, -1050 + 7950, -5000 + 7950]);
}

#[test]
fn a_shared_timer_has_one_moment_for_all() {
    // Both threads wait for the shared timer's next moment, each 10 ms after the other's.
    let text = r#"{"tasks": {
        "a": {"loop": 2, "cpus": [0], "timer": {"ref": "tick", "period": 10000}},
        "b": {"loop": 2, "cpus": [1], "delay": 1000, "timer": {"ref": "tick", "period": 10000}}}}"#;
    let ran = run(2, text);
    let ends = |thread: &str| ran.rows(thread).iter().map(|row| row.end_us).collect::<Vec<_>>();
    assert_eq!(ends("a-0"), [10_050, 30_050]);
    assert_eq!(ends("b-1"), [20_050, 40_050]);
    let latencies = ran.rt_app.samples_of(0, &ran.sim.samples);
    assert_eq!(latencies, [50_000; 2], "each thread is late by the moment that it slept for");
}

#[test]
fn runs_are_work_and_runtimes_are_time() {
    // Two threads share a CPU: work takes twice as long, time does not.
    let pair = |event: &str| {
        let ran = run(1, &format!(r#"{{"tasks": {{"t": {{"instance": 2, "loop": 1, "{event}": 40000}}}}}}"#));
        ["t-0", "t-1"].map(|thread| ran.rows(thread)[0])
    };
    let work = pair("run").map(|row| row.end_us);
    assert_eq!(work.iter().max(), Some(&80_000));
    assert!(work.iter().min() > Some(&70_000), "{work:?}");
    for row in pair("runtime") {
        // `runtime` ends with the first piece of 32 us that ends after 40 ms; the other thread's turn comes in between.
        assert!((40_000..50_000).contains(&row.run_us), "{row:?}");
        assert_eq!(row.c_duration_us, 40_000);
    }
    let alone = run(1, r#"{"tasks": {"t": {"loop": 2, "runtime": 1000}}}"#).rows("t-0");
    assert_eq!(alone.iter().map(|row| (row.run_us, row.perf)).collect::<Vec<_>>(), [(1024, 1024); 2]);
}

#[test]
fn sleeps_and_delays_are_late_by_the_slack() {
    let text = r#"{"tasks": {"t": {"delay": 7000, "loop": 1, "phases": {
        "long": {"sleep": 20000}, "none": {"sleep": 0}, "short": {"loop": 2, "sleep": 1}}}}}"#;
    let rows = run(1, text).rows("t-0");
    assert_eq!(rows[0].rel_start_us, 7050);
    assert_eq!(rows.iter().map(|row| row.period_us).collect::<Vec<_>>(), [20_050, 50, 51, 51]);
}

#[test]
fn phases_and_rounds_go_in_the_order_of_the_file() {
    let text = r#"{"tasks": {"t": {"loop": 2, "phases": {"a": {"loop": 2, "run": 100}, "b": {"run": 300}}}}}"#;
    let rows = run(1, text).rows("t-0");
    assert_eq!(rows.iter().map(|row| row.run_us).collect::<Vec<_>>(), [100, 100, 300, 100, 100, 300]);
    assert_eq!(run(1, text).rt_app.samples_of(0, &run(1, text).sim.samples)[2], 300_000);
}

#[test]
fn phases_move_to_their_cpus_and_back_to_all() {
    for kernel in KERNELS {
        let text = r#"{"tasks": {"t": {"loop": 1, "cpus": [0], "phases": {
            "here": {"run": 5000}, "there": {"cpus": [1], "run": 5000}, "back": {"run": 5000}}}}}"#;
        let mut ran = Ran::<false>::start_on(kernel, 2, Prices::free(), text);
        for (ms, cpu) in [(2, 0), (7, 1), (12, 0)] {
            ran.sim.run(Ns::from_ms(ms));
            assert_eq!(ran.running_on(cpu).as_deref(), Some("t-0"), "{kernel} after {ms} ms");
            assert_eq!(ran.running_on(1 - cpu), None, "{kernel} after {ms} ms");
        }
        assert_eq!(ran.ended().rows("t-0").iter().map(|row| row.period_us).sum::<u64>(), 15_000);
    }
}

#[test]
fn groups_share_the_cpu_whatever_their_numbers() {
    let hogs = |many: &str, one: &str| {
        format!(
            r#"{{"tasks": {{
                "many": {{"instance": 3, "cpus": [0], {many} "run": 1000}}, "one": {{"cpus": [0], {one} "run": 1000}}}},
                "global": {{"duration": 4}}}}"#
        )
    };
    let share = |kernel: &str, text: &str| {
        let ran = run_on(kernel, 1, text);
        let rows: Vec<usize> = ran.rt_app.logs(&ran.sim.samples).iter().map(|log| log.rows.len()).collect();
        rows[3] * 100 / rows.iter().sum::<usize>()
    };
    for kernel in KERNELS {
        assert!((24..=26).contains(&share(kernel, &hogs("", ""))), "{kernel}");
        let grouped = hogs(r#""taskgroup": "/tg1","#, r#""taskgroup": "/tg2","#);
        assert!((49..=51).contains(&share(kernel, &grouped)), "{kernel}");
        // Inside one group all tasks are equal again, even if it is nested in another group.
        let nested = hogs(r#""taskgroup": "/a/b","#, r#""taskgroup": "/a/b","#);
        assert!((24..=26).contains(&share(kernel, &nested)), "{kernel}");
    }
    let rt_app = instance(app(&hogs(r#""taskgroup": "/a/b/c","#, r#""taskgroup": "/a/d","#)), one_cpu()).unwrap();
    let groups: Vec<String> = rt_app.groups().into_iter().map(|group| group.path).collect();
    assert_eq!(groups, ["/a", "/a/b", "/a/b/c", "/a/d"]);
}

#[test]
fn a_thread_may_change_its_group_and_return_to_the_root() {
    let text = r#"{"tasks": {
        "t": {"cpus": [0], "loop": 50, "taskgroup": "/", "phases": {
            "in": {"taskgroup": "/g", "run": 1000}, "out": {"taskgroup": "/", "run": 1000, "sleep": 100}}},
        "u": {"cpus": [0], "loop": 50, "taskgroup": "/g", "run": 3000}}}"#;
    for kernel in KERNELS {
        assert_eq!(run_on(kernel, 1, text).rows("t-0").len(), 100, "{kernel}");
    }
}

#[test]
fn nice_levels_and_policies_decide_the_share() {
    let share = |kernel: &str, settings: &str| {
        let text = format!(
            r#"{{"tasks": {{"t": {{"cpus": [0], {settings} "run": 1000}}, "other": {{"cpus": [0], "run": 1000}}}},
                "global": {{"duration": 4}}}}"#
        );
        let ran = run_on(kernel, 1, &text);
        let (own, other) = (ran.rows("t-0").len(), ran.rows("other-1").len());
        own * 1000 / (own + other)
    };
    for kernel in KERNELS {
        // prio_to_weight: 1024 against 335, 1024 against 9548, 1024 against 3.
        assert!((237..=257).contains(&share(kernel, r#""priority": 5,"#)), "{kernel}");
        assert!((893..=913).contains(&share(kernel, r#""priority": -10,"#)), "{kernel}");
        assert!((490..=510).contains(&share(kernel, r#""policy": "SCHED_BATCH","#)), "{kernel}");
        assert!((0..=8).contains(&share(kernel, r#""policy": "SCHED_IDLE","#)), "{kernel}");
    }
}

#[test]
fn a_phase_changes_the_policy_and_one_that_names_none_keeps_it() {
    let text = r#"{"tasks": {"t": {"loop": 2, "phases": {
        "as_it_is": {"run": 4000}, "idle": {"policy": "SCHED_IDLE", "run": 4000},
        "kept": {"run": 4000}, "nice": {"policy": "SCHED_OTHER", "priority": 7, "run": 4000}}}}}"#;
    let mut ran = Ran::<false>::start_on("v4.16", 1, Prices::free(), text);
    let mut seen = Vec::new();
    for round in 0..8 {
        ran.sim.run(Ns::from_ms(4 * round + 2));
        let task = ran.sim.sched.rq[CpuId(0)].curr.expect("the task runs");
        let task = &ran.sim.sched.task[task];
        seen.push((task.policy, task.static_prio - 120));
    }
    use sched::sched::Policy::{Idle, Normal};
    let rounds = [(Normal, 0), (Idle, 0), (Idle, 0), (Normal, 7), (Normal, 7), (Idle, 7), (Idle, 7), (Normal, 7)];
    assert_eq!(seen, rounds);
}

#[test]
fn the_same_application_runs_the_same_way() {
    let text = include_str!("../../../../../experiments/rt-app-example.json");
    let samples = |kernel| -> Vec<Sample> { run_on(kernel, 2, text).sim.samples };
    for kernel in KERNELS {
        assert_eq!(samples(kernel), samples(kernel));
    }
}

#[test]
fn costs_delay_what_was_free() {
    let mut prices = Prices::free();
    prices.paths.fill(units::Cycles(50));
    prices.ps_per_cycle = 500;
    let text = r#"{"tasks": {
        "beat": {"loop": 20, "run": 2000, "fork": "child", "timer": {"ref": "unique", "period": 10000}},
        "child": {"instance": 0, "loop": 2, "run": 100, "sleep": 20000}}}"#;
    let ran = Ran::<true>::start_on("v4.15", 2, prices, text).ended();
    for row in &ran.rows("beat-0")[1..] {
        assert!(row.wu_lat_us <= 51 && row.run_us >= 2000 && row.run_us < 2010, "{row:?}");
        assert!((9_999..=10_001).contains(&row.period_us), "{row:?}");
    }
    let latencies = ran.rt_app.samples_of(0, &ran.sim.samples);
    assert!(latencies.iter().all(|ns| (50_001..52_000).contains(ns)), "{latencies:?}");
}

#[test]
fn work_takes_its_time_where_no_whole_number_of_cycles_is_a_microsecond() {
    let text = r#"{"tasks": {"a": {"loop": 3, "run": 1000}, "b": {"loop": 3, "runtime": 3200}}}"#;
    for ps_per_cycle in [250, 270, 294, 999, 1_500] {
        let prices = Prices { ps_per_cycle, ..Prices::free() };
        let ran = Ran::<true>::start_on("v6.12", 2, prices, text).ended();
        for (row, asked) in [(0, 1_000_000), (1, 3_200_000)] {
            // A cycle more for each piece of work at most, of which `runtime` has a hundred.
            let samples = ran.rt_app.samples_of(row, &ran.sim.samples);
            assert!(samples.iter().all(|ns| (asked..=asked + 150).contains(ns)), "{ps_per_cycle} ps: {samples:?}");
        }
    }
}

#[test]
fn logs_look_like_rt_apps() {
    let text = r#"{"tasks": {"a": {"loop": 1, "run": 10},
        "late": {"loop": 2, "delay": 1000, "run": 1500, "timer": {"ref": "unique", "period": 1000}}}}"#;
    let ran = run(2, text);
    let logs = ran.rt_app.logs(&ran.sim.samples);
    let expected = concat!(
        "#idx     perf      run   period           start             end          rel_st      slack c_duration   c_period     wu_lat\n",
        "   1     1500     1500     1500            1050            2550            1050       -550       1500       1000          0\n",
        "   1     1500     1500     1500            2550            4050            2550       -500       1500       1000          0\n",
    );
    assert_eq!(log_text(&logs[1]), expected);
    assert_eq!((logs[1].thread.as_str(), logs[1].index, logs[1].task), ("late-1", 1, TaskId(1)));
}

#[test]
fn data_is_work() {
    let text = r#"{"tasks": {"t": {"loop": 2, "mem": 1048576, "iorun": 100,
        "memrun": {"type": "chase", "size": 8388608, "count": 1000}}}}"#;
    let ran = run(1, text);
    // At 1 GHz, with all memory at hand: 16384 lines of 4 cycles, one write, and 1000 pointers of 5 cycles.
    assert_eq!(ran.rt_app.samples_of(0, &ran.sim.samples), [65_536 + 400 + 5_000; 2]);
    let memory = Ran::<false>::start("v4.15", 2, Prices::free(), fixture("memory.json", Duplicates::Workgen)).ended();
    assert!(memory.rt_app.unmeasured(&memory.sim.samples).is_empty());
}
