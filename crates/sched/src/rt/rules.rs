//! What differs between kernel versions in the real-time class.

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

/// rt.c's own differences.
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
    };
    pub const V4_15: RtRules =
        RtRules { period_start: PeriodStart::AtOnce, push_ipi: PushIpi::ByRootDomain, ..RtRules::V4_5 };
    pub const V6_1: RtRules = RtRules {
        period_clock: PeriodClock::Fresh,
        push_ipi: PushIpi::NotToSelf,
        lowest_choice: LowestChoice::Distributed,
        fit: RtFit::LowerClamp,
        statistics: RtStatistics::Told,
        ..RtRules::V4_15
    };
    pub const V6_12: RtRules =
        RtRules { bandwidth: RtBandwidth::FairServer, overload: OverloadRule::Pushable, ..RtRules::V6_1 };
}
