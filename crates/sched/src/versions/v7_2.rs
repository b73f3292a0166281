//! v7.2 (2026), as Debian builds 7.2.13.

use super::{CoreRules, Kernel, V6_18};
use crate::core::class::BalanceFair;
use crate::core::hrtick::Hrtick;
use crate::core::schedule::AvgIdle;
use crate::core::{MoveQueued, WakeCpu};
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
use crate::load_weight::LoadResolution;
use crate::rt::RtRules;
use crate::syscalls::{ClassChange, NiceResched};
use crate::sysctl;
use crate::topology::DomainRules;

pub const V7_2: Kernel = Kernel {
    name: "v7.2",
    core: CoreRules {
        balance_fair: BalanceFair::InPick,
        hrtick: Hrtick::Deadline,
        avg_idle: AvgIdle::AtSwitch,
        move_queued: MoveQueued::Preempts,
        class_change: ClassChange::Compared,
        nice_resched: NiceResched::IfChanged,
        wake_cpu: WakeCpu::Chosen,
        ..V6_18.core
    },
    cpufreq: CpufreqRules::V7_2,
    domains: DomainRules::V7_2,
    load: LoadRules::V7_2,
    entity: EntityRules::V7_2,
    wake: WakeRules::V7_2,
    balance: BalanceRules::V7_2,
    numa: NumaRules::V7_2,
    bandwidth: BandwidthRules::V7_2,
    rt: RtRules::V7_2,
    dl: DlRules::V7_2,
    isolation: IsolationRules::V7_2,
    structures: Structures::V7_2,
    features: Features::new(FEATURES),
    feature_table: FEATURES,
    tunables: sysctl::V7_2,
    load_resolution: LoadResolution::FineQuotient,
    ..V6_18
};

/// kernel/sched/features.h of v7.2.
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
    (Feature::PARANOID_AVG, false),
    (Feature::WAKEUP_PREEMPTION, true),
    (Feature::HRTICK, true),
    (Feature::HRTICK_DL, true),
    (Feature::NONTASK_CAPACITY, true),
    (Feature::TTWU_QUEUE, true),
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
    (Feature::LATENCY_WARN, false),
    (Feature::NI_RANDOM, true),
    (Feature::NI_RATE, true),
];
