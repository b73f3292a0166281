//! v6.6 (October 2023): the first EEVDF.
//!
//! It is the long-term release 6.6.17, an early one: much that 5.10.262, 6.1.192 and 6.12.117 have is newer.

use super::{CoreRules, Kernel, V6_1};
use crate::autogroup::AutogroupRules;
use crate::core::{AffinityOffline, WakeRunning};
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
use crate::profile::SleepProfile;
use crate::psi::Psi;
use crate::rt::RtRules;
use crate::syscalls::IdleWeight;
use crate::sysctl;
use crate::topology::DomainRules;

pub const V6_6: Kernel = Kernel {
    name: "v6.6",
    core: CoreRules {
        wake_running: WakeRunning::Skips,
        affinity_offline: AffinityOffline::Kept,
        idle_weight: IdleWeight::WeightOnly,
        ..V6_1.core
    },
    cpufreq: CpufreqRules::V6_6,
    domains: DomainRules::V6_6,
    entity: EntityRules::V6_6,
    load: LoadRules::V6_6,
    wake: WakeRules::V6_6,
    balance: BalanceRules::V6_6,
    numa: NumaRules::V6_6,
    bandwidth: BandwidthRules::V6_6,
    autogroup: AutogroupRules::V6_6,
    isolation: IsolationRules::V6_6,
    rt: RtRules::V6_6,
    dl: DlRules::V6_6,
    sleep_profile: SleepProfile::Blocked,
    psi: Psi::PerChangeClock,
    structures: Structures::V6_6,
    features: Features::new(FEATURES),
    feature_table: FEATURES,
    tunables: sysctl::V6_6,
    ..V6_1
};

/// kernel/sched/features.h of 6.6.17.
const FEATURES: &[(Feature, bool)] = &[
    (Feature::PLACE_LAG, true),
    (Feature::PLACE_DEADLINE_INITIAL, true),
    (Feature::RUN_TO_PARITY, true),
    (Feature::NEXT_BUDDY, false),
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
    (Feature::HZ_BW, true),
];
