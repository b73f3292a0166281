//! What scenarios cannot express: tasks that others turn into real-time tasks while they wait, and a budget of zero.

use super::*;
use crate::scheduler::Scheduler;
use crate::sysctl::Tunable;
use crate::testing::{Hand, MS, machine, task_in};
use crate::versions::{Kernel, V4_5_RC1 as V4_5, V4_15, V4_16, V6_1, V6_6, V6_12, V6_18, V7_2};

const CPU0: CpuId = CpuId(0);

/// A CPU on which one fair task runs and another waits. Returns both.
fn one_waits(kernel: Kernel) -> (Sched<Hand>, TaskId, TaskId) {
    let mut s = machine(kernel, 1);
    for comm in ["first", "second"] {
        let init = task_in(ROOT_TASK_GROUP, comm);
        let p = s.fork(CPU0, init).expect("it may begin");
        Scheduler::wake_up_new_task(&mut s, CPU0, p);
    }
    Scheduler::schedule(&mut s, CPU0, false);
    let runs = s.rq[CPU0].curr.expect("one of them");
    let waits = s.task.iter().find(|(p, task)| *p != runs && task.policy == Policy::Normal).expect("the other").0;
    s.rq[CPU0].need_resched = false;
    (s, runs, waits)
}

#[test]
fn who_comes_to_the_class_while_it_waits_preempts_but_not_in_v4_5() {
    for (kernel, preempts) in [(V4_5, false), (V4_15, true), (V6_1, true), (V6_6, true), (V6_12, true)] {
        let (mut s, _, waits) = one_waits(kernel);
        s.sched_setscheduler(waits, Policy::Fifo, 10).expect("anybody may");
        assert_eq!(s.rq[CPU0].need_resched, preempts, "{}", kernel.name);
    }
}

#[test]
fn a_nice_level_of_one_who_was_lent_a_priority_changes_nothing_yet() {
    for kernel in [V4_5, V4_15, V4_16, V6_1, V6_6, V6_12] {
        let (mut s, runs, waits) = one_waits(kernel);
        s.sched_setscheduler(waits, Policy::Fifo, 10).expect("anybody may");
        s.rt_mutex_setprio(runs, Some(waits));
        s.rq[CPU0].need_resched = false;
        s.set_user_nice(runs, 10);
        assert!(!s.rq[CPU0].need_resched, "{}", kernel.name);
    }
}

#[test]
fn without_any_budget_nothing_is_throttled() {
    for kernel in [V4_5, V4_15, V4_16, V6_1, V6_6] {
        for (budget, throttled) in [(950_000, true), (0, false)] {
            let (mut s, runs, _) = one_waits(kernel);
            s.sysctl_write(Tunable::sched_rt_runtime, budget).expect("nothing is reserved");
            s.sched_setscheduler(runs, Policy::Fifo, 10).expect("anybody may");
            s.arch.now += 960 * MS;
            s.on_cpu(CPU0);
            s.scheduler_tick();
            assert_eq!(s.rt[CPU0].rt_throttled, throttled, "{}", kernel.name);
        }
    }
}

#[test]
fn a_second_has_950_ms_for_real_time_tasks_until_v7_2_gives_them_all_of_it() {
    for kernel in crate::versions::KERNELS {
        let all = ["v7.2", "v7.3"].contains(&kernel.name);
        let by_default = if all { 1_000_000 } else { 950_000 };
        assert_eq!(kernel.sysctl(1).sched_rt_runtime, by_default, "{}", kernel.name);
    }
}

#[test]
fn a_wait_that_ends_elsewhere_begins_anew_in_v7_2() {
    for (kernel, waits) in [(V6_12, true), (V6_18, true), (V7_2, false)] {
        let (mut s, _, waits_here) = one_waits(kernel);
        s.sysctl_write(Tunable::sched_schedstats, 1).expect("it is a switch");
        s.sched_setscheduler(waits_here, Policy::Fifo, 10).expect("anybody may");
        let begin = |s: &Sched<Hand>| s.task_cold[waits_here].statistics.wait_start;
        assert!(begin(&s) > 0);
        s.on_cpu(CPU0);
        s.dequeue_task(CPU0, waits_here, QueueFlags::default());
        assert_eq!(begin(&s) > 0, waits, "{}", kernel.name);
    }
}

#[test]
fn a_nice_level_of_a_waiting_task_that_was_lent_a_priority_is_no_news_in_v7_2() {
    for (kernel, looks) in [(V6_12, true), (V6_18, true), (V7_2, false)] {
        let (mut s, _, waits) = one_waits(kernel);
        let lender = s.fork(CPU0, task_in(ROOT_TASK_GROUP, "lender")).expect("it may begin");
        s.sched_setscheduler(lender, Policy::Fifo, 10).expect("anybody may");
        s.rt_mutex_setprio(waits, Some(lender));
        assert!(std::mem::take(&mut s.rq[CPU0].need_resched));
        s.set_user_nice(waits, 10);
        assert_eq!(s.rq[CPU0].need_resched, looks, "{}", kernel.name);
    }
}
