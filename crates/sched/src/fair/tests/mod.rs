//! The fair class, driven by hand on a machine that costs nothing.

mod averages;
mod bandwidth;
mod by_task;
mod eevdf;
mod entities;
mod first_eevdf;
mod flat;
mod groups;
mod lag;
mod picks;
mod preemption;
mod protection;
mod random;
mod recorded;
mod rules;
mod scaling;
mod sched_idle;
mod statistics;
mod vectors;
mod wakeups;

use crate::attr::SchedAttr;
use crate::core::{Boot, Sched, SleepsSinceBoot, TaskInit};
use crate::cpu_topology::CpuTopology;
use crate::layout::Line;
use crate::sched::*;
use crate::sysctl::{Sysctl, Tunable};
use crate::testing::{Hand, MS};
use crate::trace::Event;
use crate::versions::{
    Kernel, V4_5_RC1, V4_15, V4_16, V4_19, V5_4, V5_10, V5_15, V6_1, V6_6, V6_12, V6_18, V7_2, V7_3,
};
use units::{CpuId, CpuMask, Ns};

const KERNELS: [Kernel; 7] = [V4_5_RC1, V4_15, V4_16, V4_19, V5_4, V5_15, V6_1];
const CPU0: CpuId = CpuId(0);
const CPU1: CpuId = CpuId(1);

/// `cpus` cores that share a cache, tunables of a single CPU (latency 6 ms, shortest slice 0.75 ms, wakeup granularity
/// 1 ms), one second after boot.
fn machine(kernel: Kernel, cpus: usize) -> Sched<Hand> {
    let boot = Boot { sysctl: Sysctl::new(1), ..Boot::new(kernel, CpuTopology::symmetric(1, 1, 1, cpus, 1), 1000) };
    Sched::new(Hand::at(1_000 * MS), boot)
}

impl Sched<Hand> {
    /// A task of the root group that may run only on `cpu` and is woken there.
    fn task(&mut self, cpu: CpuId, nice: i32) -> TaskId {
        self.task_in(ROOT_TASK_GROUP, cpu, nice)
    }

    fn task_in(&mut self, group: TgId, cpu: CpuId, nice: i32) -> TaskId {
        self.forked(group, cpu, SchedAttr::fair(Policy::Normal, nice))
    }

    /// A task that has had these attributes since its parent forked it.
    fn forked(&mut self, group: TgId, cpu: CpuId, attr: SchedAttr) -> TaskId {
        self.on_cpu(cpu);
        let init =
            TaskInit { comm: "t".to_owned(), attr: Some(attr), cpus_allowed: Some(CpuMask::single(cpu)), mm: 1, group };
        let p = self.sched_fork(None, init);
        self.wake_up_new_task(p);
        p
    }

    /// Sets another policy of the fair class.
    fn set_policy(&mut self, p: TaskId, policy: Policy) {
        self.sched_setscheduler(p, policy, 0).expect("a fair policy");
    }

    /// Whether what runs on `cpu` is to be scheduled away, at once or soon.
    fn is_to_reschedule(&self, cpu: CpuId) -> bool {
        self.rq[cpu].need_resched
    }

    /// Like [`Sched::task`], but running: first on its CPU, for a millisecond.
    fn runner(&mut self, cpu: CpuId) -> TaskId {
        let p = self.task(cpu, 0);
        assert_eq!(self.reschedule(cpu), Some(p), "the CPU was idle");
        self.ticks(cpu, 1);
        p
    }

    fn pass(&mut self, ns: u64) {
        self.arch.now += ns;
    }

    /// `cpu` picks its next task, because it must reschedule.
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
        self.tick_in_kernel(cpu);
        self.reach_user_mode(cpu);
    }

    /// The same, while the running task is in the middle of a system call.
    fn tick_in_kernel(&mut self, cpu: CpuId) {
        self.on_cpu(cpu);
        self.scheduler_tick();
        if self.rq[cpu].need_resched {
            self.schedule(true);
        }
    }

    /// The running task of `cpu` does the work that is due before it reaches user mode; so does a task that replaces
    /// it.
    fn reach_user_mode(&mut self, cpu: CpuId) {
        self.on_cpu(cpu);
        while let Some(p) = self.rq[cpu].curr
            && self.task_has_throttle_work(p)
            && self.throttle_cfs_rq_work()
        {
            self.schedule(false);
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
