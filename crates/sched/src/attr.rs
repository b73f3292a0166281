//! uapi/linux/sched/types.h: struct sched_attr, the argument of sched_setattr().

use crate::sched::Policy;

/// struct sched_attr, verbatim. Times in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SchedAttr {
    pub sched_policy: Policy,
    pub sched_flags: SchedFlags,
    /// -20..=19; for SCHED_NORMAL and SCHED_BATCH.
    pub sched_nice: i32,
    /// 1..=99 for SCHED_FIFO and SCHED_RR, 0 for all others.
    pub sched_priority: u32,
    /// SCHED_DEADLINE's budget in each period. For a fair task its slice; 0 is the default slice (v6.12).
    pub sched_runtime: u64,
    /// When the task must have had its budget, from the start of the period.
    pub sched_deadline: u64,
    /// The period; 0: the same as the deadline.
    pub sched_period: u64,
    /// The least and the greatest utilization for which the task is served.
    pub sched_util_min: ClampRequest,
    pub sched_util_max: ClampRequest,
}

/// SCHED_FLAG_RESET_ON_FORK, SCHED_FLAG_RECLAIM, SCHED_FLAG_KEEP_ALL, SCHED_FLAG_SUGOV.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SchedFlags {
    /// Children begin with SCHED_NORMAL, and with nice 0 unless the parent is nicer.
    pub reset_on_fork: bool,
    /// GRUB: a deadline task also runs in time that others have reserved but do not use (since v4.13).
    pub reclaim: bool,
    /// Policy and parameters stay: the request concerns only the clamps (since v5.3).
    pub keep_all: bool,
    /// A thread of schedutil, which precedes all other deadline tasks and has no budget (since v4.16). Only the kernel
    /// sets it.
    pub sugov: bool,
}

/// The request for one utilization clamp (SCHED_FLAG_UTIL_CLAMP_MIN, _MAX).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ClampRequest {
    /// The clamp stays as it is.
    #[default]
    Keep,
    /// -1: the task drops its request.
    Reset,
    /// 0 to 1024.
    Set(u32),
}

impl SchedAttr {
    /// A policy of the fair class with a nice level.
    pub const fn fair(policy: Policy, nice: i32) -> SchedAttr {
        SchedAttr { sched_policy: policy, sched_nice: nice, ..SchedAttr::NORMAL }
    }

    /// SCHED_NORMAL with nice 0.
    pub const NORMAL: SchedAttr = SchedAttr {
        sched_policy: Policy::Normal,
        sched_flags: SchedFlags { reset_on_fork: false, reclaim: false, keep_all: false, sugov: false },
        sched_nice: 0,
        sched_priority: 0,
        sched_runtime: 0,
        sched_deadline: 0,
        sched_period: 0,
        sched_util_min: ClampRequest::Keep,
        sched_util_max: ClampRequest::Keep,
    };

    /// A request for clamps alone.
    pub const fn clamps(min: ClampRequest, max: ClampRequest) -> SchedAttr {
        SchedAttr {
            sched_flags: SchedFlags { keep_all: true, ..SchedAttr::NORMAL.sched_flags },
            sched_util_min: min,
            sched_util_max: max,
            ..SchedAttr::NORMAL
        }
    }

    /// Whether clamps are requested (SCHED_FLAG_UTIL_CLAMP).
    pub(crate) fn asks_for_clamps(&self) -> bool {
        (self.sched_util_min, self.sched_util_max) != (ClampRequest::Keep, ClampRequest::Keep)
    }
}
