//! v6.12 (November 2024), as Debian 13 builds it: EEVDF instead of the pick of CFS.
//!
//! It is the long-term release 6.12.117; neither v6.12 itself nor 6.12.95, on which some fidelity cases were recorded.
//! Compared with those, 6.12.117 has `RT_PUSH_IPI` off, `dst_core_idle` in load balancing, `dl_defer_running` in the
//! deadline wakeup rule and 64-bit sums in `update_tg_cfs_runnable()`.

use super::{CoreRules, Kernel, V6_6};
use crate::core::cgroup::CgroupRules;
use crate::core::class::{BalanceFair, PickOrder};
use crate::core::schedule::ScheduleIdle;
use crate::core::{HotplugDomains, UtilClamp, WakeQueue};
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

pub const V6_12: Kernel = Kernel {
    name: "v6.12",
    core: CoreRules {
        wake_queue: WakeQueue::OrIdleButStoppers,
        uclamp: UtilClamp::AfterEnqueue,
        idle_weight: IdleWeight::Reweight,
        pick_order: PickOrder::PutAfterPick,
        balance_fair: BalanceFair::NoFairTask,
        schedule_idle: ScheduleIdle::Stays,
        hotplug_domains: HotplugDomains::AtOnce,
        ..V6_6.core
    },
    cpufreq: CpufreqRules::V6_12,
    domains: DomainRules::V6_12,
    load: LoadRules::V6_12,
    entity: EntityRules::V6_12,
    wake: WakeRules::V6_12,
    balance: BalanceRules::V6_12,
    numa: NumaRules::V6_12,
    bandwidth: BandwidthRules::V6_12,
    sleep_profile: SleepProfile::Absent,
    cgroup: CgroupRules::V6_12,
    rt: RtRules::V6_12,
    dl: DlRules::V6_12,
    psi: Psi::PerChangeClock,
    isolation: IsolationRules::V6_12,
    features: Features::new(FEATURES),
    feature_table: FEATURES,
    structures: Structures::V6_12,
    tunables: sysctl::V6_12,
    ..V6_6
};

/// kernel/sched/features.h of v6.12.
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
    (Feature::DOUBLE_TICK, false),
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
];
