//! v4.5-rc1 (January 2016), the oldest kernel here: it is defined in full and inherits nothing.

use super::{ClockUpdate, CoreRules, Kernel};
use crate::autogroup::AutogroupRules;
use crate::core::cgroup::CgroupRules;
use crate::core::class::{BalanceFair, PickOrder};
use crate::core::hrtick::Hrtick;
use crate::core::schedule::{AvgIdle, ScheduleIdle};
use crate::core::{
    AffinityDest, AffinityOffline, CpuAllowed, Hotplug, HotplugDomains, IowaitCount, MoveQueued, ReschedLazy,
    RqOffline, UtilClamp, WakeCpu, WakeCurrent, WakeIfIdle, WakeList, WakeQueue, WakeRunning,
};
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
use crate::syscalls::{AloneChanged, ChangeOrder, ClassChange, IdleWeight, NiceChange, NiceResched, PolicyChange};
use crate::sysctl;
use crate::topology::DomainRules;

pub const V4_5_RC1: Kernel = Kernel {
    name: "v4.5-rc1",
    core: CoreRules {
        clock: ClockUpdate::Enqueue,
        wake_list: WakeList::RunQueue,
        wake_queue: WakeQueue::OtherCaches,
        wake_current: WakeCurrent::Locked,
        wake_running: WakeRunning::Preempts,
        uclamp: UtilClamp::Absent,
        iowait_count: IowaitCount::UntilItRuns,
        class_change: ClassChange::ByClasses,
        change_order: ChangeOrder::CurrentFirst,
        nice_change: NiceChange::WeightOnly,
        hrtick_tasks: HrtickTasks::OwnQueue,
        idle_weight: IdleWeight::WeightOnly,
        nice_resched: NiceResched::Any,
        alone_changed: AloneChanged::AsAny,
        pick_order: PickOrder::PullInPick,
        balance_fair: BalanceFair::NothingRuns,
        schedule_idle: ScheduleIdle::PicksAgain,
        policy_change: PolicyChange::Requeued,
        cpu_allowed: CpuAllowed::Online,
        affinity_dest: AffinityDest::First,
        affinity_offline: AffinityOffline::Dropped,
        stop_wait: StopWait::Sleeps,
        hotplug: Hotplug::StopMachine,
        hotplug_domains: HotplugDomains::Fallback,
        rq_offline: RqOffline::Dying,
        resched_lazy: ReschedLazy::Absent,
        wake_if_idle: WakeIfIdle::Interrupt,
        wake_cpu: WakeCpu::Meant,
        hrtick: Hrtick::SliceLeft,
        avg_idle: AvgIdle::AtWakeup,
        move_queued: MoveQueued::Waits,
    },
    load_resolution: LoadResolution::Shown,
    pelt: Pelt::ByPeriod,
    cpufreq: CpufreqRules::V4_5,
    domains: DomainRules::V4_5,
    entity: EntityRules::V4_5,
    load: LoadRules::V4_5,
    wake: WakeRules::V4_5,
    balance: BalanceRules::V4_5,
    numa: NumaRules::V4_5,
    bandwidth: BandwidthRules::V4_5,
    autogroup: AutogroupRules::V4_5,
    cgroup: CgroupRules::V4_5,
    rt: RtRules::V4_5,
    dl: DlRules::V4_5,
    isolation: IsolationRules::V4_5,
    schedstats: Schedstats::Always,
    unseen_wait: UnseenWait::Counts,
    sleep_profile: SleepProfile::Blocked,
    psi: Psi::Absent,
    features: Features::new(FEATURES),
    feature_table: FEATURES,
    tunables: sysctl::V4,
    structures: Structures::V4_5,
    layout: LayoutRules::V4_5,
};

/// kernel/sched/features.h of v4.5-rc1.
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
    (Feature::RT_PUSH_IPI, true),
    (Feature::FORCE_SD_OVERLAP, false),
    (Feature::RT_RUNTIME_SHARE, true),
    (Feature::LB_MIN, false),
    (Feature::ATTACH_AGE_LOAD, true),
];
