//! kernel/kthread.c: threads that do one kind of work, when somebody leaves some.

use crate::Step;
use sched::arch::Arch;
use sched::sched::TaskState;
use sched::scheduler::Scheduler;
use units::{CpuId, Ns};

/// The thread `sugov:N` of a policy of cpufreq, and how far it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sugov {
    policy: u16,
    /// Until when the driver that it has asked waits for the hardware.
    until: Option<Ns>,
}

impl Sugov {
    pub fn new(policy: u16) -> Sugov {
        Sugov { policy, until: None }
    }

    /// kthread.c: kthread_worker_fn(): does what was left to it, and sleeps.
    pub(crate) fn kthread_worker_fn<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId) -> Step {
        loop {
            if let Some(until) = self.until {
                if let Some(step) = driver_waits(sched, cpu, until) {
                    return step;
                }
                self.until = None;
                sched.sugov_work_done(cpu, self.policy);
            }
            let Some(wait) = sched.sugov_work(cpu, self.policy) else {
                sched.set_current_state(cpu, TaskState::Interruptible);
                return Step::Sleep;
            };
            self.until = Some(sched.arch().sched_clock(cpu) + wait);
        }
    }
}

/// A driver of cpufreq that waits for its hardware sleeps until that has done what it was asked for, whoever asks it; `None`: it has.
pub(crate) fn driver_waits<S: Scheduler>(sched: &mut S, cpu: CpuId, until: Ns) -> Option<Step> {
    (sched.arch().sched_clock(cpu) < until).then(|| {
        sched.set_current_state(cpu, TaskState::Uninterruptible);
        Step::SleepUntil(until)
    })
}
