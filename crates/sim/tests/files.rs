//! File systems: how those sleep who wait for a journal, and for how long its threads do.

use machine::hardware::Hardware;
use machine::idle::IdleRules;
use machine::prices::Prices;
use machine::topology::{Numbering, from_synthetic};
use os::fs::{Completion, Device, FileId, FsKind, FsOp, FsRules, ScsiPath, WriteCache};
use os::irq::IrqRules;
use os::timer_wheel::TimerWheel;
use os::workqueue::UnboundPods;
use os::{Os, OsRules};
use sched::core::{Boot, Sched};
use sched::sched::{TaskId, TaskState};
use sched::scheduler::Scheduler;
use sched::trace::{Event, Sink};
use sched::versions::V6_1;
use sim::engine::{End, LinuxSim, Sim};
use sim::program::{Op, Steps, TaskSpec};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use units::{CpuId, CpuMask, Ns};

/// Who slept and how, and from when until when, by name.
#[derive(Clone, Default)]
struct Sleeps(Rc<RefCell<Watched>>);

#[derive(Default)]
struct Watched {
    names: BTreeMap<TaskId, String>,
    since: BTreeMap<TaskId, (TaskState, Ns)>,
    sleeps: Vec<(String, TaskState, Ns, Ns)>,
}

impl Sink for Sleeps {
    fn event(&mut self, at: Ns, _cpu: CpuId, event: &Event) {
        let watched = &mut *self.0.borrow_mut();
        match event {
            Event::SchedSwitch { prev: Some(prev), prev_state, preempt: false, .. } => {
                watched.since.insert(*prev, (*prev_state, at));
            }
            Event::SchedWaking { task, .. } => {
                if let Some((state, since)) = watched.since.remove(task) {
                    watched.sleeps.push((watched.names[task].clone(), state, since, at));
                }
            }
            _ => {}
        }
    }

    fn task(&mut self, task: TaskId, _pid: u32, comm: &str, _prio: i32) {
        self.0.borrow_mut().names.insert(task, comm.to_string());
    }
}

impl Sleeps {
    fn of(&self, name: &str) -> Vec<(TaskState, Ns, Ns)> {
        let watched = self.0.borrow();
        let sleeps = watched.sleeps.iter().filter(|sleep| sleep.0 == name);
        sleeps.map(|&(_, state, since, until)| (state, since, until)).collect()
    }
}

/// Two CPUs on which nothing takes time but the disk.
fn machine(kind: FsKind, wheel: TimerWheel) -> (LinuxSim<false>, Sleeps) {
    mounted("pack:1 l3:1 core:2 pu:1", kind, wheel, Completion::Submitter, FsRules::V5_10)
}

fn mounted(
    shape: &str,
    kind: FsKind,
    wheel: TimerWheel,
    completion: Completion,
    rules: FsRules,
) -> (LinuxSim<false>, Sleeps) {
    mounted_by(shape, kind, wheel, completion, (OsRules::V6_1, rules))
}

fn mounted_by(
    shape: &str,
    kind: FsKind,
    wheel: TimerWheel,
    completion: Completion,
    rules: (OsRules, FsRules),
) -> (LinuxSim<false>, Sleeps) {
    mounted_at(250, shape, kind, wheel, completion, rules)
}

/// The same with a tick of `hz`.
fn mounted_at(
    hz: u32,
    shape: &str,
    kind: FsKind,
    wheel: TimerWheel,
    completion: Completion,
    (os, rules): (OsRules, FsRules),
) -> (LinuxSim<false>, Sleeps) {
    let topology = from_synthetic(shape, "test", Numbering::LinuxX86).expect("a valid machine");
    let kernel = V6_1;
    let sleeps = Sleeps::default();
    let mut hardware = Hardware::new(topology.clone(), Prices::free(), kernel.layout(), IdleRules::V4_15, 1);
    hardware.set_sink(Box::new(sleeps.clone()));
    let boot = Boot::new(kernel, topology.cpu_topology(), hz);
    let mut sim = Sim::new(Sched::new(hardware, boot), Os::new(os, hz));
    sim.os.fs_rules = rules;
    sim.os.irq.rules = IrqRules { wheel, ..IrqRules::V6_1 };
    let (write, flush) = (Ns(50_000), Ns(200_000));
    sim.os.mount(kind, Device::new(write, flush, 4, WriteCache::ForceUnitAccess, completion));
    sim.start_kernel_threads();
    (sim, sleeps)
}

fn writer(number: u32, times: u32) -> TaskSpec {
    let ops = (0..times).flat_map(move |time| {
        let file = FileId(number * 1_000 + time);
        let write = FsOp::Write { file, bytes: 8_192, fresh: true };
        [FsOp::Open { file, create: true }, write, FsOp::Fsync(file)].map(Op::Fs)
    });
    TaskSpec::new("writer", Steps(ops))
}

#[test]
fn who_waits_for_a_journal_does_so_uninterruptibly() {
    for kind in [FsKind::Xfs, FsKind::Ext4] {
        let (mut sim, sleeps) = machine(kind, TimerWheel::Levels);
        for number in 0..4 {
            sim.spawn(CpuId(0), writer(number, 20));
        }
        assert_eq!(sim.run(Ns::from_ms(10_000)), End::Finished);
        let writers = sleeps.of("writer");
        assert!(writers.len() > 4 * 20 * 2, "{kind:?}: for data, and for the journal: {}", writers.len());
        assert!(writers.iter().all(|sleep| sleep.0 == TaskState::Uninterruptible), "{kind:?}");
    }
}

#[test]
fn xfsaild_rests_as_long_as_the_wheel_makes_of_it() {
    for (wheel, jiffies, other) in [(TimerWheel::Cascading, 13, 14), (TimerWheel::Levels, 14, 13)] {
        let (mut sim, sleeps) = machine(FsKind::Xfs, wheel);
        // So many that a quarter of the log is to be written to its place.
        for number in 0..32 {
            sim.spawn(CpuId(0), writer(number, 600));
        }
        let rest = [Op::SleepUntil(Ns::from_ms(2_000))];
        sim.spawn(CpuId(1), TaskSpec::new("rest", Steps(rest.into_iter())));
        assert_eq!(sim.run(Ns::from_ms(10_000)), End::Finished);
        // 50 ms where there is nothing to push.
        let between = |(_, since, until): (TaskState, Ns, Ns)| until.0 / 4_000_000 - since.0 / 4_000_000;
        let rests: Vec<u64> = sleeps.of("xfsaild").into_iter().map(between).collect();
        assert!(rests.contains(&jiffies) && !rests.contains(&other), "{wheel:?}: {rests:?}");
    }
}

/// How often the workers of each CPU were woken while somebody on `cpu` wrote fresh blocks and made them durable. The disk's interrupt comes to
/// CPU 0, which shares a cache with CPU 1.
fn ended_by(cpu: u16, completion: Completion, scsi: ScsiPath) -> [usize; 4] {
    let rules = FsRules { scsi, ..FsRules::V5_10 };
    let (mut sim, sleeps) = mounted("pack:2 l3:1 core:2 pu:1", FsKind::Xfs, TimerWheel::Levels, completion, rules);
    let spec = TaskSpec { cpus: Some(CpuMask::single(CpuId(cpu))), ..writer(0, 20) };
    sim.spawn(CpuId(cpu), spec);
    assert_eq!(sim.run(Ns::from_ms(10_000)), End::Finished);
    [0, 1, 2, 3].map(|cpu| (0..2).map(|number| sleeps.of(&format!("kworker/{cpu}:{number}")).len()).sum())
}

#[test]
fn a_request_ends_in_the_caches_of_who_submitted_it() {
    // xfs_end_io() and what follows a write of the log are left to a worker of the CPU where the request ends.
    for scsi in [ScsiPath::Legacy, ScsiPath::Mq] {
        for (cpu, ends) in [(0, 0), (1, 0), (2, 2), (3, 3)] {
            let woken = ended_by(cpu, Completion::Fixed, scsi);
            let others: usize = woken.iter().sum::<usize>() - woken[ends];
            // What is counted are the sleeps in between: the first one began before the run.
            assert!(woken[ends] >= 19 && others == 0, "{scsi:?}, of CPU {cpu}: {woken:?}");
        }
    }
    let woken = ended_by(1, Completion::Submitter, ScsiPath::Mq);
    assert!(woken[1] >= 19 && woken[0] == 0, "{woken:?}");
}

/// Which pools' workers pushed checkpoints for writers on `cpus`, and how many slept on which CPU at the end.
fn pushed_by(shape: &str, unbound: UnboundPods, cpus: &[u16]) -> (Vec<String>, Vec<CpuId>) {
    let rules = (OsRules { unbound, ..OsRules::V6_1 }, FsRules::V5_10);
    let (mut sim, sleeps) = mounted_by(shape, FsKind::Xfs, TimerWheel::Levels, Completion::Submitter, rules);
    for (number, &cpu) in cpus.iter().enumerate() {
        let spec = TaskSpec { cpus: Some(CpuMask::single(CpuId(cpu))), ..writer(number as u32, 20) };
        sim.spawn(CpuId(cpu), spec);
    }
    assert_eq!(sim.run(Ns::from_ms(10_000)), End::Finished);
    let watched = sleeps.0.borrow();
    let woken = watched.sleeps.iter().filter(|(name, ..)| name.starts_with("kworker/u"));
    let mut pools: Vec<String> = woken.map(|(name, ..)| name.split(':').next().expect("a name").to_string()).collect();
    pools.sort();
    pools.dedup();
    let busy = |task: &TaskId| watched.sleeps.iter().any(|(name, ..)| *name == watched.names[task]);
    let unbound = watched.names.iter().filter(|(_, name)| name.starts_with("kworker/u")).map(|(task, _)| task);
    let mut on: Vec<CpuId> = unbound.filter(|task| busy(task)).map(|&task| sim.sched.task_cpu(task)).collect();
    on.sort();
    (pools, on)
}

#[test]
fn unbound_workers_are_those_of_the_node_or_of_the_cache() {
    use UnboundPods::{Cache, CacheShard, Node};
    // Two nodes of two caches of two CPUs. Pools are numbered behind each CPU's two.
    let shape = "pack:2 numa:1 l3:2 core:2 pu:1";
    let (pools, on) = pushed_by(shape, Node, &[5]);
    assert_eq!(pools, ["kworker/u17"]);
    assert!(on.iter().all(|cpu| cpu.0 >= 4), "its workers stay in the node: {on:?}");
    let (pools, on) = pushed_by(shape, Cache, &[5]);
    assert_eq!(pools, ["kworker/u18"]);
    assert!(on.iter().all(|&cpu| cpu == CpuId(4) || cpu == CpuId(5)), "they began on CPU 0: {on:?}");
    assert_eq!(pushed_by(shape, Cache, &[0, 6]).0, ["kworker/u16", "kworker/u19"]);
    assert_eq!(pushed_by("pack:1 l3:2 core:4 pu:1", Node, &[0, 6]).0, ["kworker/u16"], "one node, one pool");
    // A cache of 12 cores, which are one and a half times eight: two shards of six.
    let shape = "pack:1 l3:1 core:12 pu:1";
    assert_eq!(pushed_by(shape, Cache, &[5, 6]).0, ["kworker/u24"]);
    assert_eq!(pushed_by(shape, CacheShard, &[5, 6]).0, ["kworker/u24", "kworker/u25"]);
}

#[test]
fn files_are_stamped_once_in_a_jiffy_of_the_kernels_own() {
    let waits = |hz| {
        let rules = (OsRules::V6_1, FsRules::V5_10);
        let (kind, wheel) = (FsKind::Xfs, TimerWheel::Levels);
        let (mut sim, sleeps) = mounted_at(hz, "pack:1 l3:1 core:2 pu:1", kind, wheel, Completion::Submitter, rules);
        let file = FileId(1);
        let first = [FsOp::Write { file, bytes: 4_096, fresh: true }, FsOp::Fsync(file)].map(Op::Fs);
        let ops = (1..=100).flat_map(move |ms| {
            let write = [FsOp::Write { file, bytes: 4_096, fresh: false }, FsOp::Fsync(file)].map(Op::Fs);
            [Op::SleepUntil(Ns::from_ms(10 + ms))].into_iter().chain(write)
        });
        sim.spawn(CpuId(0), TaskSpec::new("writer", Steps(first.into_iter().chain(ops))));
        assert_eq!(sim.run(Ns::from_ms(1_000)), End::Finished);
        sleeps.of("writer").iter().filter(|sleep| sleep.0 == TaskState::Uninterruptible).count()
    };
    // For its data each time and for a flush of the disk, and in its place, once more, for the log when the file has got another stamp.
    let (slow, usual, fast) = (waits(100), waits(250), waits(1_000));
    assert!((210..=215).contains(&slow), "{slow}");
    assert!((225..=230).contains(&usual), "{usual}");
    assert!((300..=304).contains(&fast), "{fast}");
}
