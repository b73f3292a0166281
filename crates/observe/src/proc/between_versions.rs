//! What the files of v4.19, v5.4, v5.10, v6.18, v7.2 and v7.3 say differently from those of the version before, about the same machine.

use super::{SchedDebug, TaskSched};
use crate::formats::Formats;
use sched::arch::Arch;
use sched::core::{Boot, Sched, TaskInit};
use sched::cpu_topology::CpuTopology;
use sched::pelt::UtilEst;
use sched::sched::{ROOT_TASK_GROUP, TaskId};
use sched::scheduler::Scheduler;
use sched::sysctl::Sysctl;
use sched::trace::Ipi;
use sched::versions::V7_3;
use units::{CpuId, Ns};

const CPU: CpuId = CpuId(0);
const VERSIONS: [Formats; 2] = [Formats::V7_2, Formats::V7_3];

/// Time stands still.
struct Still;

impl Arch for Still {
    fn sched_clock(&self, _cpu: CpuId) -> Ns {
        Ns::from_ms(1_000)
    }
    fn send_ipi(&mut self, _from: CpuId, _to: CpuId, _ipi: Ipi) {}
    fn wake_polling_idle(&mut self, _from: CpuId, _to: CpuId) {}
}

/// A CPU that runs one task, with schedstats.
fn machine() -> (Sched<Still>, TaskId) {
    let sysctl = Sysctl { sched_schedstats: 1, ..Sysctl::new(1) };
    let boot = Boot { sysctl, ..Boot::new(V7_3, CpuTopology::symmetric(1, 1, 1, 1, 1), 250) };
    let mut sched = Sched::new(Still, boot);
    let init = TaskInit { comm: String::from("hog"), attr: None, cpus_allowed: None, mm: 0, group: ROOT_TASK_GROUP };
    let task = sched.fork(CPU, init).expect("an ordinary task");
    Scheduler::wake_up_new_task(&mut sched, CPU, task);
    Scheduler::schedule(&mut sched, CPU, false);
    (sched, task)
}

/// The lines of the second text that the first has not, and the other way round.
fn differences([before, after]: [String; 2]) -> [Vec<String>; 2] {
    let only_in = |text: &str, other: &str| {
        text.lines().filter(|line| !other.lines().any(|of| of == *line)).map(String::from).collect::<Vec<_>>()
    };
    [only_in(&before, &after), only_in(&after, &before)]
}

#[test]
fn counters_that_never_counted_are_gone() {
    let (sched, task) = machine();
    let text = |formats| TaskSched { sched: &sched, task, threads: 1, formats }.to_string();
    let [gone, new] = differences(VERSIONS.map(text));
    let names: Vec<&str> = gone.iter().map(|line| line.split(' ').next().unwrap_or_default()).collect();
    assert_eq!(names, ["nr_migrations_cold", "nr_wakeups_passive", "nr_wakeups_idle"]);
    assert!(new.is_empty(), "{new:?}");
}

#[test]
fn v4_19_and_v5_4_show_estimates_with_their_lowest_bit() {
    let (mut sched, task) = machine();
    let se = sched.task[task].se;
    sched.se[se].avg.util_est = UtilEst { enqueued: 401, ewma: 100 };
    for formats in [Formats::V4_19, Formats::V5_4] {
        let text = TaskSched { sched: &sched, task, threads: 1, formats }.to_string();
        let shown = |name: &str| {
            let line = text.lines().find(|line| line.starts_with(name)).expect("a line");
            line.rsplit(' ').next().expect("a figure").to_string()
        };
        assert_eq!(["se.avg.util_est.enqueued", "se.avg.util_est.ewma"].map(shown), ["401", "100"]);
    }
}

#[test]
fn tasks_have_a_weight_and_queues_the_load_above_them() {
    let (mut sched, _) = machine();
    let root = sched.rq[CPU].cfs;
    sched.cfs_rq[root].h_load = 777;
    let text = |formats| SchedDebug { sched: &sched, formats, release: "7", now: Ns::ZERO, khz: 0 }.to_string();
    let [gone, new] = differences(VERSIONS.map(text));
    let after = |line: &str, name: &str| line.find(name).map(|at| at + name.len()).expect("a column");
    assert_eq!(new[0], format!("  .{:<30}: 777", "h_load"));
    let (head, row) = (&new[1], new.iter().find(|line| line.starts_with(">R")).expect("the hog runs"));
    assert!(head.starts_with(" S            task   PID     weight       vruntime   eligible    deadline  "), "{head}");
    // A task of nice 0, in the kernel's finer unit.
    let weight = &row[after(row, "hog")..][6..17];
    assert_eq!(weight, "    1048576");
    assert_eq!(gone.len() + 1, new.len(), "but for the queue's line, lines are replaced");
    for (before, line) in gone.iter().zip(&new[1..]) {
        assert_eq!(before.len() + 11, line.len(), "{line}");
    }
}

/// Names of the fields that the one and the other show.
fn fields(sched: &Sched<Still>, versions: [Formats; 2]) -> [Vec<String>; 2] {
    let text = |formats| SchedDebug { sched, formats, release: "5", now: Ns::ZERO, khz: 0 }.to_string();
    let name =
        |line: &String| line.strip_prefix("  .").and_then(|line| line.split([' ', ':']).next()).map(String::from);
    differences(versions.map(text)).map(|lines| lines.iter().filter_map(name).collect())
}

#[test]
fn v5_4_keeps_no_loads_of_ticks_but_weights_of_what_is_runnable_which_v5_10_has_not() {
    let (mut sched, _) = machine();
    sched.rq[CPU].load.weight = 12345;
    let [gone, new] = fields(&sched, [Formats::V4_15, Formats::V4_19]);
    assert_eq!((gone, new), (vec![], vec![String::from("util_est_enqueued")]), "v4.19 keeps them");
    let [gone, new] = fields(&sched, [Formats::V4_19, Formats::V5_4]);
    let ticks = (0..5).map(|index| format!("cpu_load[{index}]"));
    let scaling = String::from("sysctl_sched_tunable_scaling");
    assert_eq!(gone, [scaling.clone(), String::from("load")].into_iter().chain(ticks).collect::<Vec<_>>());
    assert_eq!(new, [scaling]);
    let [gone, new] = fields(&sched, [Formats::V5_4, Formats::V5_10]);
    assert_eq!(gone, ["nr_load_updates", "runnable_weight", "runnable_load_avg", "removed.runnable_sum"]);
    assert_eq!(new, ["runnable_avg", "removed.runnable_avg"]);
}

#[test]
fn queues_have_other_names_in_v6_18_and_sums_in_v7_2() {
    let (sched, _) = machine();
    let text = |formats| SchedDebug { sched: &sched, formats, release: "6", now: Ns::ZERO, khz: 0 }.to_string();
    let names = |versions: [Formats; 2]| {
        let name =
            |line: &String| line.trim_start_matches([' ', '.']).split(' ').next().unwrap_or_default().to_string();
        differences(versions.map(text)).map(|lines| lines.iter().map(name).collect::<Vec<_>>())
    };
    let [gone, new] = names([Formats::V6_12, Formats::V6_18]);
    // The CPU's own `nr_running` is the same line.
    assert_eq!(gone, ["h_nr_delayed", "idle_nr_running", "idle_h_nr_running"]);
    assert_eq!(new, ["nr_queued", "h_nr_idle"]);
    let [gone, new] = names([Formats::V6_18, Formats::V7_2]);
    assert!(gone.is_empty(), "{gone:?}");
    assert_eq!(new, ["sum_w_vruntime", "sum_weight", "sum_shift"]);
}
