//! v6.18 (November 2025), as the long-term release 6.18.35: lazy preemption, and quotas that throttle tasks on their way to user mode.
//!
//! 6.18.35 is newer than v6.18 itself: it has `NI_RANDOM`, wakeup preemption by actions, lag limited by the longest slice, a yield that
//! forfeits the rest of the slice, and one search between nodes at a time. Some of what 6.12.117 has newer than v6.12 it lacks: see
//! `wake.idlest_stats`, `wake.energy`, `balance.asym_compare`, `numa.locality_reset` and `RT_PUSH_IPI`, which is on.

use super::{CoreRules, Kernel, V6_12};
use crate::core::{ReschedLazy, UtilClamp};
use crate::cpufreq::CpufreqRules;
use crate::deadline::DlRules;
use crate::fair::balance::BalanceRules;
use crate::fair::bandwidth::BandwidthRules;
use crate::fair::load::LoadRules;
use crate::fair::numa::NumaRules;
use crate::fair::rules::EntityRules;
use crate::fair::wake::WakeRules;
use crate::features::{Feature, Features};
use crate::isolation::IsolationRules;
use crate::layout::Structures;
use crate::sysctl;
use crate::topology::DomainRules;

pub const V6_18: Kernel = Kernel {
    name: "v6.18",
    core: CoreRules { uclamp: UtilClamp::BeforeIfAwake, resched_lazy: ReschedLazy::Lazy, ..V6_12.core },
    cpufreq: CpufreqRules::V6_18,
    domains: DomainRules::V6_18,
    load: LoadRules::V6_18,
    entity: EntityRules::V6_18,
    wake: WakeRules::V6_18,
    balance: BalanceRules::V6_18,
    numa: NumaRules::V6_18,
    bandwidth: BandwidthRules::V6_18,
    dl: DlRules::V6_18,
    isolation: IsolationRules::V6_18,
    features: Features::new(FEATURES),
    feature_table: FEATURES,
    structures: Structures::V6_18,
    tunables: sysctl::V6_18,
    ..V6_12
};

/// kernel/sched/features.h of 6.18.35.
const FEATURES: &[(Feature, bool)] = &[
    (Feature::PLACE_LAG, true),
    (Feature::PLACE_DEADLINE_INITIAL, true),
    (Feature::PLACE_REL_DEADLINE, true),
    (Feature::RUN_TO_PARITY, true),
    (Feature::PREEMPT_SHORT, true),
    (Feature::NEXT_BUDDY, false),
    (Feature::PICK_BUDDY, true),
    (Feature::CACHE_HOT_BUDDY, true),
    (Feature::DELAY_DEQUEUE, true),
    (Feature::DELAY_ZERO, true),
    (Feature::WAKEUP_PREEMPTION, true),
    (Feature::HRTICK, false),
    (Feature::HRTICK_DL, false),
    (Feature::NONTASK_CAPACITY, true),
    (Feature::TTWU_QUEUE, true),
    (Feature::SIS_UTIL, true),
    (Feature::WARN_DOUBLE_CLOCK, false),
    (Feature::RT_PUSH_IPI, true),
    (Feature::RT_RUNTIME_SHARE, false),
    (Feature::LB_MIN, false),
    (Feature::ATTACH_AGE_LOAD, true),
    (Feature::WA_IDLE, true),
    (Feature::WA_WEIGHT, true),
    (Feature::WA_BIAS, true),
    (Feature::UTIL_EST, true),
    (Feature::LATENCY_WARN, false),
    (Feature::NI_RANDOM, true),
];
