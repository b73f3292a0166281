//! v5.15 (October 2021): one search for an idle core or CPU, bounded by utilization; groups that are idle as a whole; quotas with a burst.
//!
//! It is the long-term release 5.15.135, which has changes of later versions (SIS_UTIL among them), but fewer than the younger releases of
//! v5.10 and v6.1 that stand beside it: rules that are newer than v5.15 say so, as do those in which 5.10.262 is newer.

use super::{CoreRules, Kernel, V5_10};
use crate::autogroup::AutogroupRules;
use crate::core::{Hotplug, RqOffline, WakeQueue};
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
use crate::psi::Psi;
use crate::rt::RtRules;
use crate::stats::UnseenWait;
use crate::syscalls::IdleWeight;
use crate::sysctl;
use crate::topology::DomainRules;

pub const V5_15: Kernel = Kernel {
    name: "v5.15",
    core: CoreRules {
        wake_queue: WakeQueue::OrIdle,
        idle_weight: IdleWeight::WeightOnly,
        hotplug: Hotplug::BalancePush,
        rq_offline: RqOffline::Inactive,
        ..V5_10.core
    },
    cpufreq: CpufreqRules::V5_15,
    domains: DomainRules::V5_15,
    entity: EntityRules::V5_15,
    load: LoadRules::V5_15,
    wake: WakeRules::V5_15,
    balance: BalanceRules::V5_15,
    numa: NumaRules::V5_15,
    bandwidth: BandwidthRules::V5_15,
    autogroup: AutogroupRules::V5_15,
    rt: RtRules::V5_15,
    dl: DlRules::V5_15,
    psi: Psi::AtSwitch,
    isolation: IsolationRules::V5_15,
    unseen_wait: UnseenWait::Ignored,
    features: Features::new(FEATURES),
    feature_table: FEATURES,
    structures: Structures::V5_15,
    tunables: sysctl::V5_15,
    ..V5_10
};

/// kernel/sched/features.h of 5.15.135: SIS_UTIL is of v6.0, and in v5.15 itself SIS_PROP was on.
const FEATURES: &[(Feature, bool)] = &[
    (Feature::GENTLE_FAIR_SLEEPERS, true),
    (Feature::START_DEBIT, true),
    (Feature::NEXT_BUDDY, false),
    (Feature::LAST_BUDDY, true),
    (Feature::CACHE_HOT_BUDDY, true),
    (Feature::WAKEUP_PREEMPTION, true),
    (Feature::HRTICK, false),
    (Feature::HRTICK_DL, false),
    (Feature::DOUBLE_TICK, false),
    (Feature::NONTASK_CAPACITY, true),
    (Feature::TTWU_QUEUE, true),
    (Feature::SIS_PROP, false),
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
    (Feature::UTIL_EST_FASTUP, true),
    (Feature::LATENCY_WARN, false),
    (Feature::ALT_PERIOD, true),
    (Feature::BASE_SLICE, true),
];
