//! Requests that the kernel may refuse, and, in words, what it checks in each.

use sched::attr::SchedAttr;
use sched::deadline::bandwidth::OUTSIDE_LIMITS;
use sched::errno::Errno;
use sched::sched::Policy;
use sched::versions::Kernel;
use sim::program::Op;

/// A request to the kernel that may be refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Asked {
    Cpus,
    Policy,
    Clamps,
    /// Another thread.
    Fork,
}

impl Asked {
    pub const ALL: [Asked; 4] = [Asked::Cpus, Asked::Policy, Asked::Clamps, Asked::Fork];

    /// The request in `op` that may be refused, if there is one. A fork's result is checked where the thread goes on
    /// after it.
    pub fn of(op: &Op) -> Option<Asked> {
        match op {
            Op::SetAffinity(_) => Some(Asked::Cpus),
            Op::SetAttr(attr) => Some(Asked::of_attr(attr)),
            Op::SetPolicy { .. } => Some(Asked::Policy),
            _ => None,
        }
    }

    /// The request that sched_setattr() makes with these attributes.
    pub fn of_attr(attr: &SchedAttr) -> Asked {
        if attr.sched_flags.keep_all { Asked::Clamps } else { Asked::Policy }
    }

    /// Why `kernel` answers that request with `errno`.
    pub fn why_of(self, kernel: &Kernel, attr: &SchedAttr, errno: Errno) -> &'static str {
        match (self, errno, attr.check(kernel)) {
            (Asked::Policy, Errno::EINVAL, Err(refusal)) => refusal.why,
            // Nothing else of a deadline request is checked.
            (Asked::Policy, Errno::EINVAL, Ok(())) if attr.sched_policy == Policy::Deadline => OUTSIDE_LIMITS,
            _ => self.why(attr.sched_policy, errno),
        }
    }

    /// Why the kernel may answer with `errno`, given the policy that was asked for.
    pub fn why(self, policy: Policy, errno: Errno) -> &'static str {
        let deadline = policy == Policy::Deadline;
        match (self, errno) {
            (Asked::Cpus, Errno::EBUSY) => "a deadline task's CPUs are all CPUs of its root domain",
            (Asked::Cpus, _) => "none of these CPUs is up",
            (Asked::Policy, Errno::EBUSY) if deadline => {
                "the deadline tasks of these CPUs have reserved too much for another one like this"
            }
            (Asked::Policy, Errno::EPERM) if deadline => {
                "a deadline task may run on all CPUs of its root domain, and on no others"
            }
            (Asked::Policy, Errno::EINVAL) if deadline => {
                "a runtime of at least 1024 ns is not above its deadline, this not above its period, and the period within the kernel's limits"
            }
            (Asked::Policy, _) => "this kernel does not take these parameters",
            (Asked::Clamps, Errno::EINVAL) => "the lower clamp would be above the upper one",
            (Asked::Clamps, _) => "this kernel has no clamps of a task's utilization (since v5.3)",
            (Asked::Fork, _) => "a deadline task may not start others that would be deadline tasks too",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sched::attr::SchedFlags;
    use sched::versions::{V4_5_RC1, V6_1};

    #[test]
    fn a_policy_is_refused_for_what_is_wrong_with_it() {
        let why = |kernel: &Kernel, reclaim, sched_runtime, sched_deadline| {
            let sched_flags = SchedFlags { reclaim, ..SchedFlags::default() };
            let attr = SchedAttr { sched_policy: Policy::Deadline, sched_flags, ..SchedAttr::NORMAL };
            let attr = SchedAttr { sched_runtime, sched_deadline, ..attr };
            Asked::Policy.why_of(kernel, &attr, Errno::EINVAL)
        };
        assert!(
            why(&V4_5_RC1, true, 1_000_000, 10_000_000).contains("SCHED_FLAG_RECLAIM is not a flag of this kernel")
        );
        assert_eq!(why(&V4_5_RC1, false, 20_000_000, 10_000_000), "a runtime fits before its deadline");
        assert_eq!(why(&V6_1, true, 1_000_000, 10_000_000), OUTSIDE_LIMITS);
    }
}
