//! v6.1 (December 2022), as Debian 12 builds it: load balancing by group types, a search for idle CPUs that is bounded
//! by utilization, load tracking with `runnable_avg` and estimated utilization.

use super::{CoreRules, Kernel, V5_15};
use crate::autogroup::AutogroupRules;
use crate::core::WakeIfIdle;
use crate::cpufreq::CpufreqRules;
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

pub const V6_1: Kernel = Kernel {
    name: "v6.1",
    core: CoreRules { idle_weight: IdleWeight::Reweight, wake_if_idle: WakeIfIdle::Resched, ..V5_15.core },
    cpufreq: CpufreqRules::V6_1,
    domains: DomainRules::V6_1,
    entity: EntityRules::V6_1,
    load: LoadRules::V6_1,
    wake: WakeRules::V6_1,
    balance: BalanceRules::V6_1,
    numa: NumaRules::V6_1,
    bandwidth: BandwidthRules::V6_1,
    autogroup: AutogroupRules::V6_1,
    isolation: IsolationRules::V6_1,
    rt: RtRules::V6_1,
    sleep_profile: SleepProfile::Absent,
    psi: Psi::PerGroupClock,
    features: Features::new(FEATURES),
    feature_table: FEATURES,
    structures: Structures::V6_1,
    tunables: sysctl::V6_1,
    ..V5_15
};

/// kernel/sched/features.h of v6.1.
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
    (Feature::RT_PUSH_IPI, false),
    (Feature::RT_RUNTIME_SHARE, false),
    (Feature::LB_MIN, false),
    (Feature::ATTACH_AGE_LOAD, true),
    (Feature::WA_IDLE, true),
    (Feature::WA_WEIGHT, true),
    (Feature::WA_BIAS, true),
    (Feature::UTIL_EST, true),
    (Feature::UTIL_EST_FASTUP, true),
    (Feature::LATENCY_WARN, false),
    (Feature::NI_RANDOM, true),
    (Feature::ALT_PERIOD, true),
    (Feature::BASE_SLICE, true),
];
