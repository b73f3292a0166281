//! v4.19 (October 2018): the time of real-time and deadline tasks and of interrupts tracked as the fair class's is, estimated
//! utilization, kicks that only age the load of idle CPUs.
//!
//! It is the long-term release 4.19.108, which has some changes of later versions; rules that are newer than v4.19 say so. No
//! distribution's package of it is followed: it is built as v4.16 is.

use super::{CoreRules, Kernel, V4_16};
use crate::core::CpuAllowed;
use crate::core::cgroup::CgroupRules;
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

pub const V4_19: Kernel = Kernel {
    name: "v4.19",
    core: CoreRules { cpu_allowed: CpuAllowed::Active, ..V4_16.core },
    cpufreq: CpufreqRules::V4_19,
    domains: DomainRules::V4_19,
    entity: EntityRules::V4_19,
    load: LoadRules::V4_19,
    wake: WakeRules::V4_19,
    balance: BalanceRules::V4_19,
    numa: NumaRules::V4_19,
    bandwidth: BandwidthRules::V4_19,
    cgroup: CgroupRules::V4_19,
    dl: DlRules::V4_19,
    isolation: IsolationRules::V4_19,
    features: Features::new(FEATURES),
    feature_table: FEATURES,
    structures: Structures::V4_19,
    tunables: sysctl::V4_19,
    ..V4_16
};

/// kernel/sched/features.h of 4.19.108.
const FEATURES: &[(Feature, bool)] = &[
    (Feature::GENTLE_FAIR_SLEEPERS, true),
    (Feature::START_DEBIT, true),
    (Feature::NEXT_BUDDY, false),
    (Feature::LAST_BUDDY, true),
    (Feature::CACHE_HOT_BUDDY, true),
    (Feature::WAKEUP_PREEMPTION, true),
    (Feature::HRTICK, false),
    (Feature::DOUBLE_TICK, false),
    (Feature::LB_BIAS, true),
    (Feature::NONTASK_CAPACITY, true),
    (Feature::TTWU_QUEUE, true),
    (Feature::SIS_AVG_CPU, false),
    (Feature::SIS_PROP, true),
    (Feature::WARN_DOUBLE_CLOCK, false),
    (Feature::RT_PUSH_IPI, true),
    (Feature::RT_RUNTIME_SHARE, true),
    (Feature::LB_MIN, false),
    (Feature::ATTACH_AGE_LOAD, true),
    (Feature::WA_IDLE, true),
    (Feature::WA_WEIGHT, true),
    (Feature::WA_BIAS, true),
    (Feature::UTIL_EST, true),
];
