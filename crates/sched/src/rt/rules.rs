//! The differences between kernel versions in the real-time class.

use super::bandwidth::{PeriodClock, PeriodStart, RtBandwidth};
use super::migrate::{LowestChoice, OverloadRule, PushIpi, RtFit};
use crate::behaviour;

behaviour! {
    /// What is told of the time that real-time tasks run and wait.
    pub enum RtStatistics = "rt.statistics" {
        Untold = "untold", since "v2.6.23", commit "", "neither sched_stat_runtime nor schedstats";
        Told = "told", since "v5.16", commit "57a5c2dafca8", "as of fair tasks";
    }
}

behaviour! {
    /// Whether the wait of a real-time or deadline task ends, as far as schedstats know, when it leaves without having run.
    pub enum DequeuedWait = "rt.dequeued_wait" {
        GoesOn = "goes-on", since "v5.16", commit "57a5c2dafca8", "it goes on to when the task runs, wherever that is";
        Ends = "ends", since "v7.1", commit "", "it ends";
    }
}

behaviour! {
    /// Whether a waiting task that comes to the class, by a new policy or a priority that is lent, preempts.
    pub enum RtSwitchedTo = "rt.switched_to" {
        PushOnly = "push-only", since "v4.2", commit "",
            "no: it may be pushed elsewhere, and otherwise waits until somebody has the CPU choose again (only machines with one \
             CPU had it preempt)";
        Preempts = "preempts", since "v4.11", commit "", "as one that wakes there";
    }
}

behaviour! {
    /// Whether a deadline task counts as a real-time one (rt_task()): a task that wakes where one runs looks for another CPU at once.
    pub enum RtTask = "rt.deadline_counts" {
        Counts = "counts", since "v3.14", commit "", "yes, as its priority is below MAX_RT_PRIO";
        Apart = "apart", since "v6.12", commit "130fd056dd82", "no: who wakes there is queued, and then pushed";
    }
}

behaviour! {
    /// How much of each second real-time and deadline tasks may have if nobody says otherwise (kernel.sched_rt_runtime_us).
    pub enum RuntimeDefault = "rt.runtime_default" {
        Most = "most", since "v2.6.25", commit "", "950 ms";
        All = "all", since "v7.2", commit "", "all of it";
    }
}

impl RuntimeDefault {
    /// In microseconds.
    pub fn sysctl_sched_rt_runtime(self) -> u64 {
        match self {
            RuntimeDefault::Most => 950_000,
            RuntimeDefault::All => 1_000_000,
        }
    }
}

/// The differences within rt.c itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RtRules {
    pub bandwidth: RtBandwidth,
    pub period_start: PeriodStart,
    pub period_clock: PeriodClock,
    pub push_ipi: PushIpi,
    pub overload: OverloadRule,
    pub lowest_choice: LowestChoice,
    pub fit: RtFit,
    pub statistics: RtStatistics,
    pub dequeued_wait: DequeuedWait,
    pub switched_to: RtSwitchedTo,
    pub task: RtTask,
    pub runtime_default: RuntimeDefault,
}

impl RtRules {
    pub const V4_5: RtRules = RtRules {
        bandwidth: RtBandwidth::Queues,
        period_start: PeriodStart::NextPeriod,
        period_clock: PeriodClock::Stale,
        push_ipi: PushIpi::ByAsker,
        overload: OverloadRule::Migratory,
        lowest_choice: LowestChoice::First,
        fit: RtFit::Unseen,
        statistics: RtStatistics::Untold,
        dequeued_wait: DequeuedWait::GoesOn,
        switched_to: RtSwitchedTo::PushOnly,
        task: RtTask::Counts,
        runtime_default: RuntimeDefault::Most,
    };
    pub const V4_15: RtRules = RtRules {
        period_start: PeriodStart::AtOnce,
        push_ipi: PushIpi::ByRootDomain,
        switched_to: RtSwitchedTo::Preempts,
        ..RtRules::V4_5
    };
    /// As in 4.16.13, which is newer in `period_clock` than v4.16 itself.
    pub const V4_16: RtRules = RtRules { period_clock: PeriodClock::Fresh, ..RtRules::V4_15 };
    pub const V5_10: RtRules = RtRules { push_ipi: PushIpi::NotToSelf, fit: RtFit::LowerClamp, ..RtRules::V4_16 };

    /// As in 5.15.135, which is older in `push_ipi` than 5.10.262.
    pub const V5_15: RtRules =
        RtRules { push_ipi: PushIpi::ByRootDomain, lowest_choice: LowestChoice::Distributed, ..RtRules::V5_10 };
    pub const V6_1: RtRules =
        RtRules { push_ipi: PushIpi::NotToSelf, statistics: RtStatistics::Told, ..RtRules::V5_15 };
    pub const V6_6: RtRules = RtRules { push_ipi: PushIpi::ByRootDomain, ..RtRules::V6_1 };
    /// As in 6.12.117, which is newer in `push_ipi` than v6.12 itself.
    pub const V6_12: RtRules = RtRules {
        bandwidth: RtBandwidth::FairServer,
        push_ipi: PushIpi::NotToSelf,
        overload: OverloadRule::Pushable,
        task: RtTask::Apart,
        ..RtRules::V6_6
    };

    pub const V7_2: RtRules =
        RtRules { dequeued_wait: DequeuedWait::Ends, runtime_default: RuntimeDefault::All, ..RtRules::V6_12 };
}
