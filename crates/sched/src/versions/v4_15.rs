//! v4.15 (January 2018): PELT rewritten, group weights derived from it, absolute vruntime in sleep, searches for idle
//! CPUs in proportion to idle time.

use super::{ClockUpdate, CoreRules, Kernel, V4_5_RC1};
use crate::autogroup::AutogroupRules;
use crate::core::cgroup::CgroupRules;
use crate::core::class::PickOrder;
use crate::core::{HotplugDomains, IowaitCount};
use crate::cpufreq::CpufreqRules;
use crate::deadline::DlRules;
use crate::fair::balance::BalanceRules;
use crate::fair::bandwidth::BandwidthRules;
use crate::fair::hrtick::HrtickTasks;
use crate::fair::load::LoadRules;
use crate::fair::numa::NumaRules;
use crate::fair::rules::EntityRules;
use crate::fair::wake::WakeRules;
use crate::features::{Feature, Features};
use crate::isolation::IsolationRules;
use crate::layout::{LayoutRules, Structures};
use crate::load_weight::LoadResolution;
use crate::pelt::Pelt;
use crate::profile::SleepProfile;
use crate::psi::Psi;
use crate::rt::RtRules;
use crate::stats::{Schedstats, UnseenWait};
use crate::stop_task::StopWait;
use crate::syscalls::{ChangeOrder, NiceChange, PolicyChange};
use crate::topology::DomainRules;

pub const V4_15: Kernel = Kernel {
    name: "v4.15",
    structures: Structures::V4_15,
    layout: LayoutRules::V4_5,
    core: CoreRules {
        clock: ClockUpdate::Callers,
        iowait_count: IowaitCount::UntilWoken,
        change_order: ChangeOrder::EnqueueFirst,
        nice_change: NiceChange::Reweight,
        hrtick_tasks: HrtickTasks::WholeCpu,
        pick_order: PickOrder::PullInPick,
        policy_change: PolicyChange::InPlace,
        stop_wait: StopWait::Yields,
        hotplug_domains: HotplugDomains::Afterwards,
        ..V4_5_RC1.core
    },
    load_resolution: LoadResolution::Fine,
    pelt: Pelt::Accumulate,
    cpufreq: CpufreqRules::V4_15,
    domains: DomainRules::V4_15,
    entity: EntityRules::V4_15,
    load: LoadRules::V4_15,
    wake: WakeRules::V4_15,
    balance: BalanceRules::V4_15,
    numa: NumaRules::V4_15,
    bandwidth: BandwidthRules::V4_15,
    autogroup: AutogroupRules::V4_15,
    cgroup: CgroupRules::V4_15,
    rt: RtRules::V4_15,
    dl: DlRules::V4_15,
    isolation: IsolationRules::V4_15,
    schedstats: Schedstats::Tunable,
    unseen_wait: UnseenWait::Counts,
    sleep_profile: SleepProfile::Blocked,
    psi: Psi::Absent,
    features: Features::new(FEATURES),
    feature_table: FEATURES,
    tunables: crate::sysctl::V4_10,
};

/// kernel/sched/features.h of v4.15.
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
];
