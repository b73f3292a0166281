//! Which CPU finishes a wakeup, in which order, and what a waker need not wait for.

use super::*;
use crate::core::TaskInit;
use crate::cpu_topology::CpuTopology;
use crate::layout::{RqLine, TaskLine};
use crate::scheduler::Scheduler;
use crate::testing::{Hand, machine_of, take_offline, task_in};
use crate::versions::{Kernel, V4_5_RC1, V4_16, V5_4, V5_10, V6_1, V6_6, V6_12, V6_18, V7_2, kernel};
use units::CpuMask;

/// Two sockets of two CPUs each, a second after boot.
fn machine(kernel: Kernel) -> Sched<Hand> {
    let mut s = machine_of(kernel, CpuTopology::symmetric(2, 1, 1, 2, 1));
    s.arch.tracing = true;
    s
}

impl Sched<Hand> {
    /// A task bound to `cpu`, running there.
    fn running(&mut self, cpu: u16) -> TaskId {
        let cpu = CpuId(cpu);
        let init = TaskInit { cpus_allowed: Some(CpuMask::single(cpu)), ..task_in(ROOT_TASK_GROUP, "test") };
        let p = self.fork(cpu, init).expect("a fair task");
        Scheduler::wake_up_new_task(self, cpu, p);
        self.arch.now += 1_000_000;
        assert_eq!(Scheduler::schedule(self, cpu, true), Some(p));
        self.arch.now += 1_000_000;
        p
    }

    fn falls_asleep(&mut self, cpu: u16) {
        self.set_current_state(CpuId(cpu), TaskState::Interruptible);
        Scheduler::schedule(self, CpuId(cpu), false);
        self.arch.now += 1_000_000;
    }

    /// A task bound to `cpu`, asleep.
    fn asleep(&mut self, cpu: u16) -> TaskId {
        let p = self.running(cpu);
        self.falls_asleep(cpu);
        p
    }
}

#[test]
fn queued_wakeups_are_finished_newest_first_until_v5_8_and_oldest_first_since() {
    for (kernel, oldest_first) in [(V4_16, false), (V5_4, false), (V6_1, true), (V6_6, true), (V6_12, true)] {
        let mut s = machine(kernel);
        let tasks = [s.asleep(2), s.asleep(2), s.asleep(2)];
        s.arch.events.clear();
        for p in tasks {
            assert!(s.wake(CpuId(0), p, WakeFlags::NONE));
        }
        assert!(s.arch.woken().is_empty(), "{}: they wait for their CPU", kernel.name);
        assert_eq!(s.arch.interrupts, [(CpuId(0), CpuId(2))], "{}: one interrupt for all", kernel.name);
        Scheduler::scheduler_ipi(&mut s, CpuId(2));
        let mut expected = tasks.map(|p| (p, CpuId(2)));
        if !oldest_first {
            expected.reverse();
        }
        assert_eq!(s.arch.woken(), expected, "{}", kernel.name);
        assert!(s.rq[CpuId(2)].wake_list.is_empty());
    }
}

#[test]
fn idle_cpus_finish_their_wakeups_themselves_since_v6_0() {
    for (kernel, queued) in [(V4_16, false), (V5_4, false), (V5_10, false), (V6_1, true), (V6_6, true), (V6_12, true)] {
        let mut s = machine(kernel);
        let p = s.asleep(1);
        s.running(0);
        s.set_polling(CpuId(1), true);
        s.arch.interrupts.clear();
        assert!(s.wake(CpuId(0), p, WakeFlags::NONE));
        assert_eq!(s.rq[CpuId(1)].wake_list.len(), usize::from(queued), "{}", kernel.name);
        assert_eq!(s.arch.polled, [(CpuId(0), CpuId(1))], "{}: it polls", kernel.name);
        assert!(s.arch.interrupts.is_empty() && s.need_resched(CpuId(1)));
        assert!(!s.idle_cpu(CpuId(1)), "{}: not any more", kernel.name);
        s.idle_loop_exit(CpuId(1));
        assert_eq!(Scheduler::schedule(&mut s, CpuId(1), false), Some(p));
        // A busy CPU is not to be disturbed, nor is the waker's own.
        let mut s = machine(kernel);
        let (a, b) = (s.asleep(1), s.asleep(0));
        s.running(1);
        s.running(0);
        assert!(s.wake(CpuId(0), a, WakeFlags::NONE) && s.wake(CpuId(0), b, WakeFlags::NONE));
        assert!(s.rq[CpuId(1)].wake_list.is_empty() && s.rq[CpuId(0)].wake_list.is_empty(), "{}", kernel.name);
    }
    let mut s = machine(V6_1);
    s.features.set(Feature::TTWU_QUEUE, false);
    let (near, far) = (s.asleep(1), s.asleep(2));
    s.running(0);
    assert!(s.wake(CpuId(0), near, WakeFlags::NONE) && s.wake(CpuId(0), far, WakeFlags::NONE));
    assert!(s.rq.iter().all(|(_, rq)| rq.wake_list.is_empty()));
}

#[test]
fn stoppers_of_other_caches_wake_through_their_cpu_until_v6_6() {
    for (kernel, queued) in [(V4_16, true), (V6_1, true), (V6_6, true), (V6_12, false), (V6_18, false), (V7_2, false)] {
        let mut s = machine(kernel);
        let far = CpuId(2);
        let p = s.asleep(2);
        s.running(0);
        let stopper = s.rq[far].stop.expect("each CPU has a stopper");
        assert_eq!(s.ttwu_queue_cond(stopper, far, false), queued, "{}", kernel.name);
        assert!(s.ttwu_queue_cond(p, far, false), "{}: other tasks do", kernel.name);
    }
}

#[test]
fn a_task_still_being_switched_away_from_is_left_to_its_cpu() {
    for (kernel, left) in [(V4_16, false), (V5_4, false), (V5_10, true), (V6_1, true)] {
        let mut s = machine(kernel);
        s.running(0);
        let p = s.asleep(1);
        // The task may run on CPU 0 too, which shares the cache, but CPU 0 is not asked: the switch ends a microsecond
        // from now.
        s.set_cpus_allowed(CpuId(0), p, CpuMask::all(4)).expect("all CPUs are up");
        s.task[p].off_cpu_at = s.arch.now + 1_000;
        s.arch.locked.clear();
        assert!(s.wake(CpuId(0), p, WakeFlags::SYNC));
        let waited = s.arch.locked.contains(&s.layout.task(p, TaskLine::State));
        assert_eq!(waited, !left, "{}", kernel.name);
        assert_eq!(s.rq[CpuId(1)].wake_list.contains(&p), left, "{}", kernel.name);
        Scheduler::scheduler_ipi(&mut s, CpuId(1));
        assert_eq!(Scheduler::schedule(&mut s, CpuId(1), false), Some(p), "{}", kernel.name);
    }
    // If CPU 1 has another task to run, the waker waits and chooses, but not until late v5.10.y.
    let v5_9 = *kernel("v5.9").expect("a release");
    for (kernel, left) in [(v5_9, true), (V5_10, false), (V6_1, false)] {
        let mut s = machine(kernel);
        s.running(0);
        let p = s.asleep(1);
        s.running(1);
        s.task[p].off_cpu_at = s.arch.now + 1_000;
        s.arch.locked.clear();
        assert!(s.wake(CpuId(0), p, WakeFlags::NONE));
        let waited = s.arch.locked.contains(&s.layout.task(p, TaskLine::State));
        assert_eq!((waited, s.rq[CpuId(1)].wake_list.contains(&p)), (!left, left), "{}", kernel.name);
    }
}

#[test]
fn who_wakes_itself_takes_no_lock_since_v5_3() {
    for (kernel, shortcut) in [(V4_16, false), (V6_1, true)] {
        let mut s = machine(kernel);
        let p = s.running(0);
        s.set_current_state(CpuId(0), TaskState::Interruptible);
        s.arch.locked.clear();
        s.arch.events.clear();
        assert!(s.wake(CpuId(0), p, WakeFlags::NONE));
        assert_eq!(s.arch.locked.is_empty(), shortcut, "{}", kernel.name);
        assert_eq!((s.task[p].state, &s.arch.woken()[..]), (TaskState::Running, &[(p, CpuId(0))][..]));
        assert!(!s.wake(CpuId(0), p, WakeFlags::NONE), "{}: it does not sleep", kernel.name);
    }
}

#[test]
fn where_a_looker_learns_of_queued_wakeups_differs() {
    for (kernel, line) in [(V4_16, RqLine::WakeList), (V6_1, RqLine::Load)] {
        let mut s = machine(kernel);
        s.arch.loaded.clear();
        assert!(s.idle_cpu(CpuId(1)));
        let pending = s.layout.rq(CpuId(1), line);
        assert!(s.arch.loaded.contains(&pending), "{}", kernel.name);
    }
}

#[test]
fn who_is_woken_on_its_queue_ends_no_measure_of_idleness_since_v6_3() {
    for (kernel, ends) in [(V4_16, true), (V6_1, true), (V6_6, false), (V6_12, false)] {
        let mut s = machine(kernel);
        let p = s.running(0);
        s.set_current_state(CpuId(0), TaskState::Interruptible);
        s.rq[CpuId(0)].idle_stamp = 1;
        Scheduler::wake(&mut s, CpuId(1), p, WakeFlags::NONE);
        assert_eq!(s.task[p].state, TaskState::Running);
        assert_eq!(s.rq[CpuId(0)].idle_stamp == 0, ends, "{}", kernel.name);
    }
}

#[test]
fn who_stays_on_another_cpu_than_was_meant_wakes_from_there_next_time_in_v7_2() {
    for (kernel, next) in [(V6_12, 0), (V6_18, 0), (V7_2, 2)] {
        let mut s = machine(kernel);
        let p = s.asleep(2);
        s.task[p].wake_cpu = CpuId(0);
        assert!(s.wake(CpuId(2), p, WakeFlags::NONE));
        assert_eq!((s.task[p].cpu, s.task[p].wake_cpu), (CpuId(2), CpuId(next)), "{}", kernel.name);
    }
}

#[test]
fn a_cpu_that_goes_shares_no_cache() {
    // Where domains are rebuilt only afterwards, the CPU keeps its domains until it is gone.
    let kernels = [(V4_5_RC1, false), (V4_16, true), (V6_1, true), (V6_6, true), (V6_12, false), (V7_2, false)];
    for (kernel, until_gone) in kernels {
        let mut s = machine(kernel);
        let share = |s: &Sched<Hand>| s.cpus_share_cache(CpuId(2), CpuId(3));
        assert!(share(&s), "{}", kernel.name);
        Scheduler::cpu_down(&mut s, CpuId(0), CpuId(3)).expect("nothing is bound to it");
        assert_eq!(share(&s), until_gone, "{}", kernel.name);
        let mut s = machine(kernel);
        take_offline(&mut s, CpuId(3));
        assert!(!share(&s), "{}", kernel.name);
    }
}
