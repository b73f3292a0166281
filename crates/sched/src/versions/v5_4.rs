//! v5.4 (November 2019): utilization clamps that choose frequencies, classes that balance before a task is picked, pressure stall
//! information.
//!
//! It is the long-term release 5.4.286, which has some changes of later versions; rules that are newer than v5.4 say so. No
//! distribution's package of it is followed: it is built as Debian builds v5.10, but that it groups sessions, as the tree's own
//! configuration has it.

use super::{CoreRules, Kernel, V4_19};
use crate::core::class::PickOrder;
use crate::core::{UtilClamp, WakeCurrent};
use crate::cpufreq::CpufreqRules;
use crate::deadline::DlRules;
use crate::fair::balance::BalanceRules;
use crate::fair::bandwidth::BandwidthRules;
use crate::fair::load::LoadRules;
use crate::fair::rules::EntityRules;
use crate::fair::wake::WakeRules;
use crate::features::{Feature, Features};
use crate::isolation::IsolationRules;
use crate::layout::Structures;
use crate::load_weight::LoadResolution;
use crate::psi::Psi;
use crate::sysctl;
use crate::topology::DomainRules;

pub const V5_4: Kernel = Kernel {
    name: "v5.4",
    core: CoreRules {
        wake_current: WakeCurrent::Shortcut,
        uclamp: UtilClamp::FrequencyOnly,
        pick_order: PickOrder::BalanceFirst,
        ..V4_19.core
    },
    load_resolution: LoadResolution::FineFloor,
    cpufreq: CpufreqRules::V5_4,
    domains: DomainRules::V5_4,
    entity: EntityRules::V5_4,
    load: LoadRules::V5_4,
    wake: WakeRules::V5_4,
    balance: BalanceRules::V5_4,
    bandwidth: BandwidthRules::V5_4,
    dl: DlRules::V5_4,
    psi: Psi::ByQueued,
    isolation: IsolationRules::V5_4,
    features: Features::new(FEATURES),
    feature_table: FEATURES,
    structures: Structures::V5_4,
    tunables: sysctl::V5_4,
    ..V4_19
};

/// kernel/sched/features.h of 5.4.286.
const FEATURES: &[(Feature, bool)] = &[
    (Feature::GENTLE_FAIR_SLEEPERS, true),
    (Feature::START_DEBIT, true),
    (Feature::NEXT_BUDDY, false),
    (Feature::LAST_BUDDY, true),
    (Feature::CACHE_HOT_BUDDY, true),
    (Feature::WAKEUP_PREEMPTION, true),
    (Feature::HRTICK, false),
    (Feature::DOUBLE_TICK, false),
    (Feature::NONTASK_CAPACITY, true),
    (Feature::TTWU_QUEUE, true),
    (Feature::SIS_AVG_CPU, false),
    (Feature::SIS_PROP, true),
    (Feature::WARN_DOUBLE_CLOCK, false),
    (Feature::RT_PUSH_IPI, true),
    (Feature::RT_RUNTIME_SHARE, false),
    (Feature::LB_MIN, false),
    (Feature::ATTACH_AGE_LOAD, true),
    (Feature::WA_IDLE, true),
    (Feature::WA_WEIGHT, true),
    (Feature::WA_BIAS, true),
    (Feature::UTIL_EST, true),
];
