//! Which CPU is told to reschedule, how urgently, and when a slice's timer is set for that.

use super::*;
use crate::core::TaskInit;
use crate::core::hrtick::Hrtick;
use crate::core::schedule::AvgIdle;
use crate::deadline::server::ServerIdle;
use crate::features::Feature;
use crate::hrtimer::ProgramsClock;
use crate::sched::*;
use crate::scheduler::Scheduler;
use crate::testing::{Hand, MS, machine, task_in};
use crate::versions::{Kernel, V5_15, V6_1, V6_12, V6_18, V7_2};
use units::{CpuMask, Ns};

const CPU0: CpuId = CpuId(0);
const CPU1: CpuId = CpuId(1);

/// Two CPUs that share a cache.
fn two_cpus(kernel: Kernel, lazy: bool, hrtick: bool) -> Sched<Hand> {
    let mut s = machine(kernel, 2);
    LazilyPreempted::sched_dynamic_update(&mut s, lazy);
    s.features.set(Feature::HRTICK, hrtick);
    s.sysctl.sched_base_slice = 10 * MS;
    s
}

impl Sched<Hand> {
    /// A task bound to CPU1 that has run there for 3 ms.
    fn hog(&mut self) -> TaskId {
        let init = TaskInit { cpus_allowed: Some(CpuMask::single(CPU1)), ..task_in(ROOT_TASK_GROUP, "hog") };
        let p = self.fork(CPU1, init).expect("a fair task");
        Scheduler::wake_up_new_task(self, CPU1, p);
        self.arch.now += MS;
        assert_eq!(Scheduler::schedule(self, CPU1, true), Some(p));
        self.arch.now += 3 * MS;
        p
    }

    /// A sleeping task bound to CPU1.
    fn sleeper(&mut self) -> TaskId {
        let p = self.hog();
        self.set_current_state(CPU1, TaskState::Interruptible);
        Scheduler::schedule(self, CPU1, false);
        self.arch.now += 20 * MS;
        p
    }

    /// CPU0 wakes a sleeper where a hog runs.
    fn woken_beside_a_hog(&mut self) {
        let sleeper = self.sleeper();
        self.hog();
        self.arch.interrupts.clear();
        assert!(self.wake(CPU0, sleeper, WakeFlags::NONE));
    }
}

#[test]
fn the_timer_that_ends_a_slice_asks_lazily_in_v6_18() {
    for (kernel, urgent) in [(V6_12, true), (V6_18, false), (V7_2, true)] {
        let mut s = two_cpus(kernel, true, true);
        let p = s.hog();
        assert!(!s.need_resched_any(CPU1));
        s.task_tick_fair(CPU1, p, true);
        assert_eq!((s.rq[CPU1].need_resched, s.rq[CPU1].need_resched_lazy), (urgent, !urgent), "{}", kernel.name);
    }
}

#[test]
fn a_fair_task_asks_lazily_only_where_preemption_is_lazy_and_a_tick_makes_it_urgent() {
    let absent = Kernel { core: crate::versions::CoreRules { resched_lazy: ReschedLazy::Absent, ..V7_2.core }, ..V7_2 };
    for (kernel, model, lazy) in [
        (V6_18, true, true),
        (V6_18, false, false),
        (V7_2, true, true),
        (V7_2, false, false),
        (absent, true, false),
        (V6_12, true, false),
    ] {
        let mut s = two_cpus(kernel, model, false);
        s.sysctl.sched_base_slice = MS;
        s.woken_beside_a_hog();
        assert_eq!((s.need_resched_lazy(CPU1), s.need_resched(CPU1)), (lazy, !lazy), "{} {model}", kernel.name);
        assert_eq!(s.arch.interrupts.len(), usize::from(!lazy), "nobody is interrupted for it");
        s.arch.now += MS;
        Scheduler::scheduler_tick(&mut s, CPU1);
        assert!(s.need_resched(CPU1));
        Scheduler::schedule(&mut s, CPU1, true);
        assert!(!s.need_resched(CPU1) && !s.need_resched_lazy(CPU1));
    }
}

#[test]
fn idle_cpus_that_are_woken_leave_the_idle_loop_since_v5_16_or_where_they_poll() {
    for (kernel, polls, leaves) in [(V5_15, false, false), (V5_15, true, true), (V6_1, false, true), (V6_1, true, true)]
    {
        let mut s = machine(kernel, 3);
        s.hog();
        Scheduler::set_polling(&mut s, CpuId(2), polls);
        s.arch.interrupts.clear();
        s.wake_up_all_idle_cpus(CPU0);
        assert_eq!((s.need_resched(CPU1), s.need_resched(CpuId(2))), (false, leaves), "{}", kernel.name);
        let told = |polls: bool| if polls { vec![(CPU0, CpuId(2))] } else { Vec::new() };
        assert_eq!((&s.arch.interrupts, &s.arch.polled), (&told(!polls), &told(polls)), "{}", kernel.name);
    }
}

#[test]
fn what_is_above_the_fair_class_never_asks_lazily() {
    let mut s = two_cpus(V7_2, true, false);
    let sleeper = s.sleeper();
    s.sched_setscheduler(sleeper, Policy::Fifo, 1).expect("a policy");
    s.hog();
    assert!(s.wake(CPU0, sleeper, WakeFlags::NONE));
    assert!(s.need_resched(CPU1) && !s.need_resched_lazy(CPU1));
}

#[test]
fn another_cpus_hrtick_is_armed_by_an_interrupt_for_the_deadline() {
    let mut s = two_cpus(V7_2, true, true);
    s.woken_beside_a_hog();
    assert_eq!(s.arch.interrupts, [(CPU0, CPU1)], "to arm its timer");
    assert!(!s.hrtick_active(CPU1));
    Scheduler::scheduler_ipi(&mut s, CPU1);
    assert!(s.hrtick_active(CPU1));

    let left = Kernel { core: crate::versions::CoreRules { hrtick: Hrtick::SliceLeft, ..V7_2.core }, ..V7_2 };
    let mut s = two_cpus(left, true, true);
    s.woken_beside_a_hog();
    assert!(s.arch.interrupts.is_empty() && s.hrtick_active(CPU1), "until v7.0 it is armed at once");
}

#[test]
fn a_slice_of_schedule_ends_at_its_deadline_and_little_differences_do_not_count() {
    let mut s = two_cpus(V7_2, true, true);
    s.sysctl.sched_base_slice = MS;
    s.woken_beside_a_hog();
    s.hrtimer_cancel(crate::hrtimer::SchedTimer::DlServer(CPU1));
    let next = Scheduler::schedule(&mut s, CPU1, true).expect("two tasks");
    let timer = crate::hrtimer::SchedTimer::Hrtick(CPU1);
    let left = |s: &Sched<Hand>, p: TaskId| {
        let se = &s.se[s.task[p].se];
        se.deadline - se.vruntime
    };
    assert_eq!(s.hrtimers.expires(timer), s.arch.now + left(&s, next));
    let armed = s.hrtimers.expires(timer);
    for (later, moves) in [(5_000, false), (5_001, true)] {
        s.on_cpu(CPU1);
        s.hrtick_start(CPU1, armed + later - s.arch.now);
        assert_eq!(s.hrtimers.expires(timer) != armed, moves, "{later} ns later");
    }
    // The slice was prolonged: the clock still fires at the old time, finds nothing to do, and is set again.
    assert_eq!(s.next_event(CPU1), Some(Ns(armed)));
    assert_eq!(ProgramsClock::hrtimer_get_next_event(&s, CPU1), Some(Ns(armed + 5_001)));
    s.arch.now = armed;
    assert!(!Scheduler::hrtimer_run(&mut s, CPU1));
    assert_eq!(s.next_event(CPU1), Some(Ns(armed + 5_001)));
    s.arch.now = armed + 5_001;
    assert!(Scheduler::hrtimer_run(&mut s, CPU1) && s.need_resched(CPU1), "not lazily");
    assert_eq!(s.next_event(CPU1), None);
}

#[test]
fn a_cpu_that_goes_idle_cancels_its_hrtick_but_not_the_interrupt() {
    let mut s = two_cpus(V7_2, true, true);
    s.sysctl.sched_base_slice = MS;
    s.woken_beside_a_hog();
    Scheduler::schedule(&mut s, CPU1, true);
    assert!(s.hrtick_active(CPU1));
    s.hrtimer_cancel(crate::hrtimer::SchedTimer::DlServer(CPU1));
    while s.rq[CPU1].curr.is_some() {
        s.set_current_state(CPU1, TaskState::Interruptible);
        Scheduler::schedule(&mut s, CPU1, false);
    }
    assert_eq!(s.rq[CPU1].curr, None);
    assert!(!s.hrtick_active(CPU1));
    assert!(s.next_event(CPU1).is_some() && ProgramsClock::hrtimer_get_next_event(&s, CPU1).is_none());
    assert!(ProgramsClock::hrtimer_rearm(&mut s, CPU1), "any interrupt of the clock sets it right");
    assert_eq!(s.next_event(CPU1), None);
}

#[test]
fn idleness_is_measured_to_the_switch_or_to_the_wakeup() {
    // This holds for kernels without a fair server, too.
    let cases = [(V7_2, AvgIdle::AtWakeup, true), (V7_2, AvgIdle::AtSwitch, false), (V6_1, AvgIdle::AtSwitch, false)];
    for (kernel, avg_idle, at_wakeup) in cases {
        let kernel = Kernel { core: crate::versions::CoreRules { avg_idle, ..kernel.core }, ..kernel };
        let mut s = two_cpus(kernel, true, false);
        let p = s.sleeper();
        s.rq[CPU1].avg_idle = 0;
        assert!(s.rq[CPU1].idle_stamp != 0);
        s.wake(CPU0, p, WakeFlags::NONE);
        Scheduler::idle_loop_exit(&mut s, CPU1);
        assert_eq!(s.rq[CPU1].idle_stamp == 0, at_wakeup);
        assert_eq!(s.rq[CPU1].avg_idle != 0, at_wakeup);
        Scheduler::schedule(&mut s, CPU1, false);
        assert!(s.rq[CPU1].idle_stamp == 0 && s.rq[CPU1].avg_idle != 0);
    }
}

#[test]
fn a_fair_server_is_put_off_once_while_its_cpu_idles_and_then_stops() {
    for (server_idle, accounted) in [(ServerIdle::Discounted, false), (ServerIdle::Accounted, true)] {
        let kernel = Kernel { dl: crate::deadline::DlRules { server_idle, ..V7_2.dl }, ..V7_2 };
        let mut s = two_cpus(kernel, true, false);
        s.sleeper();
        let begun = s.dl[CPU1].fair_server.deadline;
        assert!(s.dl[CPU1].fair_server.dl_server_active);
        for _ in 0..60 {
            s.arch.now += MS;
            Scheduler::scheduler_tick(&mut s, CPU1);
        }
        let server = &s.dl[CPU1].fair_server;
        assert_eq!((server.deadline > begun, server.dl_defer_idle), (accounted, accounted));
        let put_off = server.deadline;
        for _ in 0..100 {
            s.arch.now += MS;
            Scheduler::scheduler_tick(&mut s, CPU1);
        }
        assert_eq!(s.dl[CPU1].fair_server.deadline, put_off, "once");
        s.arch.now += 2_000 * MS;
        Scheduler::hrtimer_run(&mut s, CPU1);
        Scheduler::hrtimer_run(&mut s, CPU0);
        assert_eq!(!s.dl[CPU1].fair_server.dl_server_active, accounted, "nobody came");
    }
}

#[test]
fn who_comes_to_another_group_preempts_as_if_it_woke() {
    for (move_queued, preempts) in [(MoveQueued::Waits, false), (MoveQueued::Preempts, true)] {
        let kernel = Kernel { core: crate::versions::CoreRules { move_queued, ..V7_2.core }, ..V7_2 };
        let mut s = two_cpus(kernel, false, false);
        let sleeper = s.sleeper();
        let hog = s.hog();
        s.sched_setscheduler(hog, Policy::Idle, 0).expect("a policy");
        s.wake(CPU0, sleeper, WakeFlags::NONE);
        s.rq[CPU1].need_resched = false;
        let group = s.sched_create_group(ROOT_TASK_GROUP, "group", 1024);
        Scheduler::move_to_group(&mut s, CPU0, sleeper, group);
        assert_eq!(s.need_resched(CPU1), preempts);
    }
}
