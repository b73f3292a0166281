//! Charges: what one wakeup touches, in order, function by function. A readable review of the cost model.
//!
//! The expected lists are `tests/charges/*.txt`; run with `UPDATE_CHARGES=1` to write what comes out, then read it.

use sched::access::Path as Function;
use sched::arch::Arch;
use sched::core::{Boot, Sched, TaskInit};
use sched::cpu_topology::CpuTopology;
use sched::layout::{Layout, Line};
use sched::sched::{ROOT_TASK_GROUP, TaskId, TaskState, WakeFlags};
use sched::scheduler::Scheduler;
use sched::sysctl::Sysctl;
use std::path::Path;
use units::{CpuId, Ns};

/// A machine on which everything is free and everything is written down.
#[derive(Default)]
struct Recorder {
    now: u64,
    depth: usize,
    listening: bool,
    out: String,
}

impl Recorder {
    fn note(&mut self, what: &str) {
        if self.listening {
            self.out.push_str(&"  ".repeat(self.depth));
            self.out.push_str(what);
            self.out.push('\n');
        }
    }

    fn line(&mut self, how: &str, line: Line) {
        let name = Layout::LOAD_AVG_ALIGNED.describe(line);
        self.note(&format!("{how} {name}"));
    }
}

impl Arch for Recorder {
    fn sched_clock(&self, _cpu: CpuId) -> Ns {
        Ns(self.now)
    }
    fn smp_send_reschedule(&mut self, _from: CpuId, to: CpuId) {
        self.note(&format!("interrupt to {to:?}"));
    }
    fn wake_polling_idle(&mut self, _from: CpuId, to: CpuId) {
        self.note(&format!("store wakes {to:?}"));
    }
    fn read(&mut self, _by: CpuId, line: Line) {
        self.line("read", line);
    }
    fn write(&mut self, _by: CpuId, line: Line) {
        self.line("write", line);
    }
    fn atomic(&mut self, _by: CpuId, line: Line) {
        self.line("atomic", line);
    }
    fn lock(&mut self, _by: CpuId, line: Line) {
        self.line("lock", line);
    }
    fn unlock(&mut self, _by: CpuId, line: Line) {
        self.line("unlock", line);
    }
    fn enter(&mut self, _by: CpuId, path: Function) {
        self.note(&format!("{}()", Function::NAMES[path.0 as usize]));
        self.depth += 1;
    }
    fn leave(&mut self, _by: CpuId) {
        self.depth -= 1;
    }
}

/// A waker on CPU 0 of four, its wakee asleep on the idle CPU 1.
fn waker_and_wakee(kernel: &str, schedstats: &str) -> (Sched<Recorder>, TaskId, TaskId) {
    let mut kernel = *sched::versions::kernel(kernel).expect("a kernel that is built");
    kernel.set("stats.schedstats", schedstats).expect("a behaviour");
    let boot = Boot {
        kernel,
        topology: CpuTopology::symmetric(1, 1, 1, 4, 1),
        hz: 250,
        features: kernel.features,
        sysctl: Sysctl::new(4),
        isolated: Default::default(),
    };
    let mut sched = Sched::new(Recorder::default(), boot);
    for cpu in 0..4 {
        sched.set_polling(CpuId(cpu), true);
    }
    let task = |sched: &mut Sched<Recorder>, comm: &str, cpu: u16| {
        let init = TaskInit {
            comm: comm.to_string(),
            attr: None,
            cpus_allowed: Some([CpuId(cpu)].into_iter().collect()),
            mm: u32::from(cpu) + 1,
            group: ROOT_TASK_GROUP,
        };
        let task = sched.fork(CpuId(cpu), init).expect("a fair task");
        sched.wake_up_new_task(CpuId(cpu), task);
        sched.set_polling(CpuId(cpu), false);
        assert_eq!(Scheduler::schedule(sched, CpuId(cpu), false), Some(task));
        sched.set_cpus_allowed(CpuId(cpu), task, (0..4).map(CpuId).collect()).expect("all CPUs are up");
        task
    };
    let waker = task(&mut sched, "waker", 0);
    let wakee = task(&mut sched, "wakee", 1);
    sched.arch.now = 3_000_000;
    sched.set_current_state(CpuId(1), TaskState::Interruptible);
    assert_eq!(Scheduler::schedule(&mut sched, CpuId(1), false), None);
    sched.set_polling(CpuId(1), true);
    sched.arch.now = 5_000_000;
    (sched, waker, wakee)
}

/// What the waker's CPU touches in the wakeup, then the wakee's in its switch.
fn one_wakeup(kernel: &str, schedstats: &str) -> String {
    let (mut sched, _waker, wakee) = waker_and_wakee(kernel, schedstats);
    sched.arch.listening = true;
    assert!(sched.wake(CpuId(0), wakee, WakeFlags::SYNC));
    sched.arch.note("--");
    sched.set_polling(CpuId(1), false);
    assert_eq!(Scheduler::schedule(&mut sched, CpuId(1), false), Some(wakee));
    std::mem::take(&mut sched.arch.out)
}

fn compare(name: &str, actual: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/charges").join(name);
    if std::env::var_os("UPDATE_CHARGES").is_some() {
        std::fs::write(&path, actual).expect("a writable list");
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(expected == actual, "{name} has changed; it is now\n{actual}");
}

#[test]
fn what_a_wakeup_touches() {
    for kernel in ["v4.5-rc1", "v4.15", "v4.16"] {
        compare(&format!("wakeup-{kernel}.txt"), &one_wakeup(kernel, "tunable"));
    }
    compare("wakeup-v4.5-rc1-schedstats.txt", &one_wakeup("v4.5-rc1", "always"));
}

#[test]
fn every_schedule_is_counted() {
    let (sched, ..) = waker_and_wakee("v4.5-rc1", "always");
    // CPU 1 switched to the wakee, then to idle.
    assert_eq!((sched.rq[CpuId(1)].sched_count, sched.rq[CpuId(1)].sched_goidle), (2, 1));
    let (sched, ..) = waker_and_wakee("v4.5-rc1", "tunable");
    assert_eq!((sched.rq[CpuId(1)].sched_count, sched.rq[CpuId(1)].sched_goidle), (0, 0));
}

#[test]
fn schedstats_that_are_off_touch_nothing() {
    let touched = |schedstats| -> Vec<String> {
        let text = one_wakeup("v4.5-rc1", schedstats);
        text.lines().map(str::trim).map(String::from).collect()
    };
    // The entity's links share a line with the last statistics; reading them is no statistics.
    let statistics =
        |lines: &[String]| lines.iter().filter(|l| l.contains("SeStatistics") && !l.starts_with("read")).count();
    let (on, off) = (touched("always"), touched("tunable"));
    assert!(statistics(&on) > 0, "statistics that are on touch their lines");
    assert_eq!(statistics(&off), 0, "statistics that are off touch nothing: {off:#?}");
    assert!(!off.iter().any(|l| l.starts_with("ttwu_stat") || l.starts_with("update_stats")));
}
