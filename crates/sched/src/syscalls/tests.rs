//! Tasks that change their class, and how their CPUs react.

use super::*;
use crate::core::TaskInit;
use crate::scheduler::Scheduler;
use crate::testing::{Hand, MS, machine, policy_of, task_in};
use crate::versions::{CoreRules, V7_2};

const CPU0: CpuId = CpuId(0);

/// v7.2, except for the steps of a change of class; the variant that v7.2 has comes second.
fn changing() -> [(ClassChange, Kernel); 2] {
    [ClassChange::ByClasses, ClassChange::Compared]
        .map(|class_change| (class_change, Kernel { core: CoreRules { class_change, ..V7_2.core }, ..V7_2 }))
}

fn fifo(priority: u32) -> SchedAttr {
    SchedAttr { sched_policy: Policy::Fifo, sched_priority: priority, ..SchedAttr::NORMAL }
}

fn deadline() -> SchedAttr {
    SchedAttr { sched_policy: Policy::Deadline, sched_runtime: 4 * MS, sched_deadline: 10 * MS, ..SchedAttr::NORMAL }
}

impl Sched<Hand> {
    /// A task on CPU 0, which may run only there unless it `roams`.
    fn on_cpu0(&mut self, attr: SchedAttr, roams: bool) -> TaskId {
        let cpus_allowed = (!roams).then(|| CpuMask::single(CPU0));
        let init = TaskInit { attr: Some(attr), cpus_allowed, ..task_in(ROOT_TASK_GROUP, "test") };
        let p = self.fork(CPU0, init).expect("it is admitted");
        Scheduler::wake_up_new_task(self, CPU0, p);
        assert_eq!(self.task[p].cpu, CPU0);
        p
    }

    /// A running task.
    fn runs_on_cpu0(&mut self, attr: SchedAttr, roams: bool) -> TaskId {
        let p = self.on_cpu0(attr, roams);
        assert_eq!(Scheduler::schedule(self, CPU0, true), Some(p));
        p
    }

    fn becomes(&mut self, p: TaskId, attr: &SchedAttr) {
        Scheduler::sched_setattr(self, CPU0, p, attr).expect("it is admitted");
    }
}

#[test]
fn who_runs_and_rises_or_falls_has_its_cpu_choose_again_in_v7_2() {
    assert_eq!(changing()[1].1, V7_2);
    let changes = [
        (SchedAttr::NORMAL, fifo(5), false),
        (SchedAttr::NORMAL, deadline(), false),
        (fifo(5), deadline(), false),
        (deadline(), fifo(5), false),
        // A task that comes to the fair class always did.
        (fifo(5), SchedAttr::NORMAL, true),
        (deadline(), SchedAttr::NORMAL, true),
    ];
    for (class_change, kernel) in changing() {
        for (from, to, always) in changes {
            let mut s = machine(kernel, 1);
            let p = s.runs_on_cpu0(from, true);
            s.becomes(p, &to);
            let what = format!("{class_change:?}, {:?} to {:?}", from.sched_policy, to.sched_policy);
            assert_eq!(s.rq[CPU0].need_resched, always || class_change == ClassChange::Compared, "{what}");
            assert_eq!(Scheduler::schedule(&mut s, CPU0, true), Some(p), "{what}: nobody else is there");
        }
    }
}

#[test]
fn a_higher_priority_that_waits_behind_a_deadline_is_seen_as_that_ends_in_v7_2() {
    for (class_change, kernel) in changing() {
        let mut s = machine(kernel, 1);
        let p = s.runs_on_cpu0(deadline(), true);
        s.on_cpu0(fifo(10), true);
        assert!(!s.rq[CPU0].need_resched);
        s.becomes(p, &fifo(5));
        assert_eq!(s.rq[CPU0].need_resched, class_change == ClassChange::Compared, "{class_change:?}");
    }
}

#[test]
fn an_equal_that_cannot_go_elsewhere_comes_first_as_it_rises_in_v7_2() {
    for (class_change, kernel) in changing() {
        let mut s = machine(kernel, 2);
        let roamer = s.runs_on_cpu0(fifo(5), true);
        let bound = s.on_cpu0(SchedAttr::NORMAL, false);
        assert_eq!(Scheduler::schedule(&mut s, CPU0, true), Some(roamer));
        s.becomes(bound, &fifo(5));
        let compared = class_change == ClassChange::Compared;
        assert_eq!(s.rq[CPU0].need_resched, compared, "{class_change:?}");
        let next = Scheduler::schedule(&mut s, CPU0, true);
        assert_eq!(next, Some(if compared { bound } else { roamer }), "{class_change:?}");
    }
}

/// As in the kernel: the load that the queue lost is subtracted once more with the old weight, down to zero, and added
/// with the new one.
#[test]
fn the_load_of_who_leaves_the_fair_class_stays_for_a_while_in_v7_2() {
    for (class_change, kernel) in changing() {
        let mut s = machine(kernel, 1);
        let p = s.runs_on_cpu0(SchedAttr::NORMAL, true);
        let root = s.rq[CPU0].cfs;
        assert_eq!(s.cfs_rq[root].avg.load_avg, 1024);
        s.becomes(p, &fifo(5));
        let left = if class_change == ClassChange::Compared { 1024 } else { 0 };
        assert_eq!(s.cfs_rq[root].avg.load_avg, left, "{class_change:?}");
        assert_eq!(s.cfs_rq[root].avg.util_avg, 0, "{class_change:?}");
    }
}

#[test]
fn a_frequency_is_chosen_before_who_rises_is_seen_in_v7_2() {
    for ((class_change, kernel), mhz) in changing().into_iter().zip([&[1_875, 3_000][..], &[1_875, 1_000, 3_000]]) {
        let mut s = machine(kernel, 2);
        s.arch.khz = Some((1_000_000, 3_000_000));
        s.sugov_start(vec![policy_of(&[CPU0, CpuId(1)])]);
        let p = s.runs_on_cpu0(SchedAttr::NORMAL, false);
        s.becomes(p, &fifo(5));
        assert_eq!(s.arch.mhz, mhz, "{class_change:?}");
    }
}
