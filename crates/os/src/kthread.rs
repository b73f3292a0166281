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
    ///
    /// A driver that waits for its hardware sleeps until it has done what it was asked for.
    pub(crate) fn kthread_worker_fn<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId) -> Step {
        loop {
            if let Some(until) = self.until {
                if sched.arch().sched_clock(cpu) < until {
                    sched.set_current_state(cpu, TaskState::Uninterruptible);
                    return Step::Sleep { until: Some(until) };
                }
                self.until = None;
                sched.sugov_work_done(cpu, self.policy);
            }
            let Some(wait) = sched.sugov_work(cpu, self.policy) else {
                sched.set_current_state(cpu, TaskState::Interruptible);
                return Step::Sleep { until: None };
            };
            self.until = Some(sched.arch().sched_clock(cpu) + wait);
        }
    }
}
