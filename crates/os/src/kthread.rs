//! kernel/kthread.c: threads that do one kind of work whenever there is some.

use crate::Step;
use sched::arch::Arch;
use sched::sched::TaskState;
use sched::scheduler::Scheduler;
use units::{CpuId, Ns};

/// The thread `sugov:N` of a cpufreq policy, and its progress.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sugov {
    policy: u16,
    /// Until when the driver that it called waits for the hardware.
    until: Option<Ns>,
}

impl Sugov {
    pub fn new(policy: u16) -> Sugov {
        Sugov { policy, until: None }
    }

    /// kthread.c: kthread_worker_fn(): does the work that was queued for it, then sleeps; ends when the governor has.
    pub(crate) fn kthread_worker_fn<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId) -> Step {
        loop {
            if let Some(until) = self.until {
                if let Some(step) = driver_waits(sched, cpu, until) {
                    return step;
                }
                self.until = None;
                if !sched.sugov_kthread_should_stop(cpu, self.policy) {
                    sched.sugov_work_done(cpu, self.policy);
                }
            }
            if sched.sugov_kthread_should_stop(cpu, self.policy) {
                return Step::Done(0);
            }
            let Some(wait) = sched.sugov_work(cpu, self.policy) else {
                sched.set_current_state(cpu, TaskState::Interruptible);
                return Step::Sleep;
            };
            self.until = Some(sched.arch().sched_clock(cpu) + wait);
        }
    }
}

/// A cpufreq driver that waits for its hardware puts the calling task to sleep until the hardware is done. `None`: it
/// is done.
pub(crate) fn driver_waits<S: Scheduler>(sched: &mut S, cpu: CpuId, until: Ns) -> Option<Step> {
    (sched.arch().sched_clock(cpu) < until).then(|| {
        sched.set_current_state(cpu, TaskState::Uninterruptible);
        Step::SleepUntil(until)
    })
}
