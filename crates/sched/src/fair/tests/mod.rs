//! The fair class on a machine that costs nothing, driven by hand.

mod averages;
mod bandwidth;
mod eevdf;
mod entities;
mod groups;
mod picks;
mod preemption;
mod random;
mod recorded;
mod rules;
mod sched_idle;
mod statistics;

use crate::arch::Arch;
use crate::attr::SchedAttr;
use crate::core::{Boot, Sched, TaskInit};
use crate::cpu_topology::CpuTopology;
use crate::layout::Line;
use crate::sched::*;
use crate::sysctl::Sysctl;
use crate::trace::Event;
use crate::versions::{Kernel, V4_5_RC1, V4_15, V4_16, V6_1, V6_12};
use units::{Capacity, CpuId, CpuMask, Ns};

const KERNELS: [Kernel; 4] = [V4_5_RC1, V4_15, V4_16, V6_1];
const CPU0: CpuId = CpuId(0);
const CPU1: CpuId = CpuId(1);
const MS: u64 = 1_000_000;

/// A machine with one clock for all CPUs, set by hand, that remembers what was touched.
#[derive(Default)]
struct Hand {
    now: u64,
    /// How fast each CPU runs, 1024 = full; others do.
    freq: Vec<Capacity>,
    /// Time in interrupts of each CPU in ns, 0 for others.
    irq_time: Vec<u64>,
    lines: Vec<Line>,
    tracing: bool,
    events: Vec<Event>,
}

impl Arch for Hand {
    fn sched_clock(&self, _cpu: CpuId) -> Ns {
        Ns(self.now)
    }

    fn arch_scale_freq_capacity(&self, cpu: CpuId) -> Capacity {
        self.freq.get(cpu.index()).copied().unwrap_or(1024)
    }

    fn irq_time(&self, cpu: CpuId) -> Ns {
        Ns(self.irq_time.get(cpu.index()).copied().unwrap_or(0))
    }

    fn smp_send_reschedule(&mut self, _from: CpuId, _to: CpuId) {}

    fn wake_polling_idle(&mut self, _from: CpuId, _to: CpuId) {}

    fn read(&mut self, _by: CpuId, line: Line) {
        self.lines.push(line);
    }

    fn write(&mut self, _by: CpuId, line: Line) {
        self.lines.push(line);
    }

    fn atomic(&mut self, _by: CpuId, line: Line) {
        self.lines.push(line);
    }

    fn tracing(&self) -> bool {
        self.tracing
    }

    fn trace(&mut self, _by: CpuId, event: &Event) {
        self.events.push(event.clone());
    }
}

/// `cpus` cores that share a cache, tunables of a single CPU (latency 6 ms, shortest slice 0.75 ms, wakeup granularity
/// 1 ms), one second after boot.
fn machine(kernel: Kernel, cpus: usize) -> Sched<Hand> {
    let boot = Boot { sysctl: Sysctl::new(1), ..Boot::new(kernel, CpuTopology::symmetric(1, 1, 1, cpus, 1), 1000) };
    Sched::new(Hand { now: 1_000 * MS, ..Hand::default() }, boot)
}

impl Sched<Hand> {
    /// A task of the root group that may run on `cpu` only, woken from there.
    fn task(&mut self, cpu: CpuId, nice: i32) -> TaskId {
        self.task_in(ROOT_TASK_GROUP, cpu, nice)
    }

    fn task_in(&mut self, group: TgId, cpu: CpuId, nice: i32) -> TaskId {
        self.forked(group, cpu, SchedAttr::fair(Policy::Normal, nice))
    }

    /// A task that has been so since its parent forked it.
    fn forked(&mut self, group: TgId, cpu: CpuId, attr: SchedAttr) -> TaskId {
        self.on_cpu(cpu);
        let init =
            TaskInit { comm: "t".to_owned(), attr: Some(attr), cpus_allowed: Some(CpuMask::single(cpu)), mm: 1, group };
        let p = self.sched_fork(None, init);
        self.wake_up_new_task(p);
        p
    }

    /// Another policy of the fair class.
    fn set_policy(&mut self, p: TaskId, policy: Policy) {
        self.sched_setscheduler(p, policy, 0).expect("a fair policy");
    }

    /// As [`Sched::task`], but running: first on its CPU, for a millisecond.
    fn runner(&mut self, cpu: CpuId) -> TaskId {
        let p = self.task(cpu, 0);
        assert_eq!(self.reschedule(cpu), Some(p), "the CPU was idle");
        self.ticks(cpu, 1);
        p
    }

    fn pass(&mut self, ns: u64) {
        self.arch.now += ns;
    }

    /// `cpu` chooses what runs, because it must.
    fn reschedule(&mut self, cpu: CpuId) -> Option<TaskId> {
        self.on_cpu(cpu);
        self.schedule(true)
    }

    /// What runs on `cpu` goes to sleep.
    fn sleep(&mut self, cpu: CpuId) -> Option<TaskId> {
        self.sleep_in(cpu, TaskState::Interruptible)
    }

    fn sleep_in(&mut self, cpu: CpuId, state: TaskState) -> Option<TaskId> {
        self.on_cpu(cpu);
        let p = self.rq[cpu].curr.expect("somebody runs");
        self.task[p].state = state;
        self.schedule(false)
    }

    fn wake_from(&mut self, cpu: CpuId, p: TaskId) {
        self.on_cpu(cpu);
        assert!(self.try_to_wake_up(p, WakeFlags::NONE));
    }

    /// A tick of `cpu`, and what follows from it.
    fn tick(&mut self, cpu: CpuId) {
        self.on_cpu(cpu);
        self.scheduler_tick();
        if self.rq[cpu].need_resched {
            self.schedule(true);
        }
    }

    fn ticks(&mut self, cpu: CpuId, count: usize) {
        for _ in 0..count {
            self.pass(MS);
            self.tick(cpu);
        }
    }

    fn se_of(&self, p: TaskId) -> &SchedEntity {
        &self.se[self.task[p].se]
    }

    /// vruntime as a distance from the queue's min_vruntime.
    fn lead(&self, p: TaskId) -> i64 {
        let se = self.se_of(p);
        se.vruntime.wrapping_sub(self.cfs_rq[se.cfs_rq].min_vruntime) as i64
    }
}
