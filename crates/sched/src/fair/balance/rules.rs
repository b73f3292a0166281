//! The differences between kernel versions in load balancing, each as a behaviour of its own.

mod groups;
mod moving;
mod when;

pub use groups::*;
pub use moving::*;
pub use when::*;

use crate::fair::cache::{CacheAware, CachePacking};

/// How one kernel version balances load. A version is its predecessor with a few fields changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BalanceRules {
    pub mechanism: Mechanism,
    pub detach_order: DetachOrder,
    pub newidle_detach: NewidleDetach,
    pub all_pinned: AllPinned,
    pub active_balance: ActiveBalanceFailures,
    pub prefer_sibling: PreferSibling,
    pub asym_packing: PackingOrder,
    pub packing_pull: PackingPull,
    pub nothing_to_move: NothingToMove,
    pub higher_capacity: HigherCapacity,
    pub force_balance: ForceBalance,
    pub above_capacity: LoadAboveCapacity,
    pub above_average: AboveAverage,
    pub tickless_load: TicklessLoad,
    pub decayed_queues: DecayedQueues,
    pub sibling_imbalance: SiblingImbalance,
    pub prefer_sibling_of: PreferSiblingOf,
    pub smt_balance: SmtBalance,
    pub misfits: Misfits,
    pub misfit_status: MisfitStatus,
    pub misfit_load: MisfitLoad,
    pub asym_compare: AsymCompare,
    pub sole_task: SoleTask,
    pub reduced_capacity: ReducedCapacity,
    pub empty_queues: EmptyQueues,
    pub busiest_util: BusiestUtil,
    pub util_pull: UtilPull,
    pub detach_bound: DetachBound,
    pub util_bound: UtilBound,
    pub active_balance_reason: ActiveBalanceReason,
    pub active_balance_force: ActiveBalanceForce,
    pub active_balance_interval: ActiveBalanceInterval,
    pub sibling_hot: SiblingHot,
    pub hot_statistics: HotStatistics,
    pub dst_group: DstGroup,
    pub imbalance_flag: ImbalanceFlag,
    pub misfit_failures: MisfitFailures,
    pub one_pinned: OnePinned,
    pub detach_limit: DetachLimit,
    pub per_cpu_kthreads: PerCpuKthreads,
    pub should_we_balance: ShouldWeBalance,
    pub newidle_bail: NewidleBail,
    pub newidle_gate: NewidleGate,
    pub newidle_cost: NewidleCost,
    pub newidle_decay: NewidleDecay,
    pub newidle_due: NewidleDue,
    pub newidle_stop: NewidleStop,
    pub newidle_interval: NewidleInterval,
    pub busy_interval: BusyInterval,
    pub idle_policy_cpu: IdlePolicyCpu,
    pub nohz: NohzBalance,
    pub nohz_news: NohzNews,
    pub kicked_resched: KickedResched,
    pub new_ilb: NewIlb,
    pub kick_ilb: KickIlb,
    pub delayed_tasks: DelayedTasks,
    pub ineligible_tasks: IneligibleTasks,
    pub counted_tasks: CountedTasks,
    pub energy_overload: EnergyOverload,
    pub serialized: Serialized,
    pub newidle_averages: NewidleAverages,
    pub newidle_odds: NewidleOdds,
    pub nohz_count: NohzCount,
    pub cache: CacheAware,
    pub cache_packing: CachePacking,
}

impl BalanceRules {
    /// v4.5-rc1 and v4.5.
    pub const V4_5: BalanceRules = BalanceRules {
        detach_order: DetachOrder::Head,
        newidle_detach: NewidleDetach::Imbalance,
        all_pinned: AllPinned::AnyActiveCpu,
        active_balance: ActiveBalanceFailures::Kept,
        prefer_sibling: PreferSibling::MoreThanOne,
        asym_packing: PackingOrder::LowestCpu,
        packing_pull: PackingPull::NewlyIdle,
        nothing_to_move: NothingToMove::Failure,
        higher_capacity: HigherCapacity::Pulled,
        force_balance: ForceBalance::NewlyIdle,
        above_capacity: LoadAboveCapacity::Capacity,
        above_average: AboveAverage::BusiestSurplus,
        tickless_load: TicklessLoad::Idle,
        decayed_queues: DecayedQueues::Listed,
        mechanism: Mechanism::ByLoad,
        sibling_imbalance: SiblingImbalance::Tasks,
        prefer_sibling_of: PreferSiblingOf::Child,
        smt_balance: SmtBalance::Absent,
        misfits: Misfits::Unseen,
        misfit_status: MisfitStatus::WhereHelpful,
        misfit_load: MisfitLoad::Any,
        asym_compare: AsymCompare::LocalGroup,
        sole_task: SoleTask::ByCapacity,
        reduced_capacity: ReducedCapacity::Unseen,
        empty_queues: EmptyQueues::Chosen,
        busiest_util: BusiestUtil::LoneToo,
        util_pull: UtilPull::AnyDomain,
        detach_bound: DetachBound::Half,
        util_bound: UtilBound::Whole,
        active_balance_reason: ActiveBalanceReason::AnyFailure,
        active_balance_force: ActiveBalanceForce::ByFailures,
        active_balance_interval: ActiveBalanceInterval::Doubled,
        sibling_hot: SiblingHot::Hot,
        hot_statistics: HotStatistics::Allowed,
        dst_group: DstGroup::Span,
        imbalance_flag: ImbalanceFlag::Cleared,
        misfit_failures: MisfitFailures::Counted,
        one_pinned: OnePinned::AsAllPinned,
        detach_limit: DetachLimit::Always,
        per_cpu_kthreads: PerCpuKthreads::Pinned,
        should_we_balance: ShouldWeBalance::FirstIdleCpu,
        newidle_bail: NewidleBail::BetweenDomains,
        newidle_gate: NewidleGate::MigrationCost,
        newidle_cost: NewidleCost::Search,
        newidle_decay: NewidleDecay::EverySecond,
        newidle_due: NewidleDue::Afterwards,
        newidle_stop: NewidleStop::TaskHere,
        newidle_interval: NewidleInterval::Doubled,
        busy_interval: BusyInterval::Whole,
        idle_policy_cpu: IdlePolicyCpu::Busy,
        nohz: NohzBalance::OneKick,
        nohz_news: NohzNews::Untold,
        kicked_resched: KickedResched::Stops,
        new_ilb: NewIlb::FirstOfMask,
        kick_ilb: KickIlb::Always,
        delayed_tasks: DelayedTasks::Moved,
        ineligible_tasks: IneligibleTasks::Moved,
        counted_tasks: CountedTasks::Queued,
        energy_overload: EnergyOverload::ByUse,
        serialized: Serialized::PeriodicVisit,
        newidle_averages: NewidleAverages::Relocked,
        newidle_odds: NewidleOdds::AsCounted,
        nohz_count: NohzCount::Counted,
        cache: CacheAware::Absent,
        cache_packing: CachePacking::After,
    };

    pub const V4_15: BalanceRules = BalanceRules {
        detach_order: DetachOrder::Tail,
        all_pinned: AllPinned::OutsideLocalGroup,
        active_balance: ActiveBalanceFailures::Reset,
        prefer_sibling: PreferSibling::MoreThanLocal,
        asym_packing: PackingOrder::Priority,
        higher_capacity: HigherCapacity::LeftAlone,
        force_balance: ForceBalance::AnyIdle,
        above_capacity: LoadAboveCapacity::Load,
        tickless_load: TicklessLoad::Recorded,
        decayed_queues: DecayedQueues::Removed,
        ..BalanceRules::V4_5
    };

    /// v4.16 balances as v4.15 does.
    pub const V4_16: BalanceRules = BalanceRules::V4_15;

    /// As in 4.19.108, which is newer in `imbalance_flag` and `new_ilb` than v4.19 itself.
    pub const V4_19: BalanceRules = BalanceRules {
        nothing_to_move: NothingToMove::Balanced,
        imbalance_flag: ImbalanceFlag::KeptIfPinned,
        newidle_interval: NewidleInterval::Kept,
        nohz: NohzBalance::AnyKickPutsOff,
        new_ilb: NewIlb::FirstIdle,
        ..BalanceRules::V4_16
    };

    /// As in 5.4.286, which is newer in `detach_bound`, `dst_group` and `per_cpu_kthreads` than v5.4 itself.
    pub const V5_4: BalanceRules = BalanceRules {
        packing_pull: PackingPull::AnyIdle,
        misfits: Misfits::Pulled,
        detach_bound: DetachBound::HalfOfSome,
        active_balance_interval: ActiveBalanceInterval::DoubledUnlessVoluntary,
        dst_group: DstGroup::BalanceMask,
        per_cpu_kthreads: PerCpuKthreads::Disregarded,
        nohz: NohzBalance::FlagsAndOwn,
        tickless_load: TicklessLoad::Absent,
        ..BalanceRules::V4_19
    };

    /// As in 5.10.262, which is newer in `above_average`, `dst_group`, `per_cpu_kthreads`, `util_bound`, `kicked_resched` and `nohz` than v5.10 itself.
    pub const V5_10: BalanceRules = BalanceRules {
        mechanism: Mechanism::ByGroupType,
        busiest_util: BusiestUtil::Plain,
        util_pull: UtilPull::AboveLlc,
        above_average: AboveAverage::Nothing,
        detach_bound: DetachBound::Relaxed,
        util_bound: UtilBound::Relaxed,
        sibling_hot: SiblingHot::Cold,
        busy_interval: BusyInterval::OneJiffyLess,
        idle_policy_cpu: IdlePolicyCpu::Idle,
        nohz: NohzBalance::Flags,
        kicked_resched: KickedResched::StopsIfBusy,
        ..BalanceRules::V5_4
    };

    /// As in 5.15.135, which is older than 5.10.262 in `dst_group`, `util_bound` and `kicked_resched`.
    pub const V5_15: BalanceRules = BalanceRules {
        active_balance_reason: ActiveBalanceReason::TaskImbalance,
        active_balance_force: ActiveBalanceForce::ByFlag,
        active_balance_interval: ActiveBalanceInterval::Kept,
        dst_group: DstGroup::Span,
        util_bound: UtilBound::Whole,
        kicked_resched: KickedResched::Stops,
        one_pinned: OnePinned::AsFound,
        newidle_bail: NewidleBail::ForWakeups,
        asym_compare: AsymCompare::PullingCpuWithinType,
        empty_queues: EmptyQueues::Skipped,
        ..BalanceRules::V5_10
    };

    /// As in 6.1.192.
    pub const V6_1: BalanceRules = BalanceRules {
        newidle_detach: NewidleDetach::One,
        asym_packing: PackingOrder::PriorityAndSiblings,
        hot_statistics: HotStatistics::Detached,
        dst_group: DstGroup::BalanceMask,
        util_bound: UtilBound::Relaxed,
        kicked_resched: KickedResched::StopsIfBusy,
        newidle_bail: NewidleBail::BeforeEachSearch,
        newidle_gate: NewidleGate::DomainCost,
        newidle_cost: NewidleCost::WithAveraging,
        newidle_decay: NewidleDecay::SinceMaximum,
        newidle_due: NewidleDue::First,
        nohz_news: NohzNews::Told,
        asym_compare: AsymCompare::PullingCpu,
        reduced_capacity: ReducedCapacity::Misfit,
        ..BalanceRules::V5_15
    };

    /// As in 6.6.17, which is older than 6.1.192 in `asym_compare`, `hot_statistics`, `util_bound` and `kicked_resched`.
    pub const V6_6: BalanceRules = BalanceRules {
        asym_packing: PackingOrder::IdleCores,
        sibling_imbalance: SiblingImbalance::ByCores,
        prefer_sibling_of: PreferSiblingOf::BusiestGroup,
        smt_balance: SmtBalance::Present,
        asym_compare: AsymCompare::MisfitsFirst,
        busiest_util: BusiestUtil::Boosted,
        util_bound: UtilBound::Whole,
        hot_statistics: HotStatistics::Allowed,
        detach_limit: DetachLimit::OnceMovable,
        should_we_balance: ShouldWeBalance::IdleCoreFirst,
        kicked_resched: KickedResched::Stops,
        ..BalanceRules::V6_1
    };

    /// As in 6.12.117, which is newer in `asym_compare`, `hot_statistics` and `kicked_resched` than v6.12 itself.
    pub const V6_12: BalanceRules = BalanceRules {
        misfit_status: MisfitStatus::AnyMisfit,
        asym_compare: AsymCompare::PullingCpu,
        util_bound: UtilBound::Relaxed,
        hot_statistics: HotStatistics::Detached,
        detach_limit: DetachLimit::Always,
        misfit_failures: MisfitFailures::Ignored,
        newidle_stop: NewidleStop::NotOurs,
        serialized: Serialized::FlaggedVisit,
        kicked_resched: KickedResched::StopsIfBusy,
        kick_ilb: KickIlb::IfNew,
        ..BalanceRules::V6_6
    };

    /// As in 6.18.35, which is newer in `serialized` than v6.18 itself, and older in `asym_compare` than 6.12.117.
    pub const V6_18: BalanceRules = BalanceRules {
        asym_compare: AsymCompare::MisfitsFirst,
        delayed_tasks: DelayedTasks::WithLoad,
        ineligible_tasks: IneligibleTasks::AfterFailure,
        counted_tasks: CountedTasks::Runnable,
        serialized: Serialized::Search,
        ..BalanceRules::V6_12
    };

    pub const V7_2: BalanceRules = BalanceRules {
        asym_compare: AsymCompare::PullingCpu,
        energy_overload: EnergyOverload::IfOverutilized,
        newidle_averages: NewidleAverages::BeforeUnlock,
        newidle_odds: NewidleOdds::Certain,
        nohz_count: NohzCount::MaskWhenDue,
        cache: CacheAware::PreferredLlc,
        ..BalanceRules::V6_18
    };

    /// As in 7.3.4.
    ///
    /// Differs: what v7.3 rewrote around the end of a search changes nothing here. It begins no active balance while the
    /// busiest CPU's task is on its way off that CPU, which nobody sees here, because a CPU switches in a single step. And it
    /// shortens the balance interval after every active balance it begins, where [`ActiveBalanceInterval::Kept`] asks a second
    /// time whether there is a reason: here nothing happens in between, so there still is one.
    pub const V7_3: BalanceRules = BalanceRules {
        misfit_load: MisfitLoad::IfHelpful,
        sole_task: SoleTask::BySiblingsAndClusters,
        new_ilb: NewIlb::IdleCoreFirst,
        cache_packing: CachePacking::Before,
        ..BalanceRules::V7_2
    };
}
