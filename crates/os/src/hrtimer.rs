//! kernel/time/hrtimer.c: tasks that sleep until a time.

use crate::{Step, charge, paths};
use sched::arch::Arch;
use sched::behaviour;
use sched::sched::TaskState;
use sched::scheduler::Scheduler;
use units::{CpuId, Ns};

behaviour! {
    /// What becomes of a sleep until a time that has passed.
    pub enum PassedSleep = "hrtimer.passed_sleep" {
        Sleeps = "sleeps", since "v2.6.16", commit "", "the task goes to sleep, and the interrupt of its timer wakes it at once";
        GoesOn = "goes-on", since "v7.2", commit "",
            "its timer is not started, and the task goes on (hrtimer_start_range_ns_user(); after v6.18, by v7.2)";
    }
}

/// kernel/time/hrtimer.c: hrtimer_nanosleep(), and do_nanosleep().
///
/// Differs: v7.2 starts the timer all the same if another timer that has passed, but by less than its slack, waits on
/// the CPU ahead of it.
pub(crate) fn hrtimer_nanosleep<S: Scheduler>(
    sched: &mut S,
    cpu: CpuId,
    until: Ns,
    armed: &mut bool,
    passed: PassedSleep,
) -> Step {
    let looks = if *armed {
        true
    } else {
        charge(sched, cpu, paths::HRTIMER_NANOSLEEP);
        *armed = true;
        passed == PassedSleep::GoesOn
    };
    if looks && sched.arch().sched_clock(cpu) >= until {
        return Step::Done(0);
    }
    sched.set_current_state(cpu, TaskState::Interruptible);
    Step::SleepUntil(until)
}
