//! How load tracking is wired up, by kernel version. The arithmetic is [`crate::pelt::Pelt`].

use crate::behaviour;
use crate::fair::group::{GroupShares, LeafList};
use crate::pelt::{SumFloor, UtilEstimate};

behaviour! {
    /// When a new task's load is added to its queue.
    pub enum NewTaskAttach = "load.new_task_attach" {
        AtEnqueue = "at-enqueue", since "v4.3", commit "9d89c257dfb9",
            "when it is queued for the first time";
        AtOnce = "at-once", since "v4.8", commit "7dc603c9028e",
            "as soon as its utilization is estimated, and the groups above hear of it before it is queued";
        /// A new task that changes its group has nothing to take along then.
        Deferred = "deferred", since "v6.1", commit "d6531ab6e5c7",
            "when it is queued for the first time, again";
    }
}

behaviour! {
    /// The weight by which a new task's utilization is estimated from its queue's.
    pub enum NewTaskUtil = "load.new_task_util" {
        KeptWeight = "kept-weight", since "v4.7", commit "2b8c41daba32",
            "the kept one, 1024 times too large: half of what is free, as soon as the queue has any utilization";
        ShownWeight = "shown-weight", since "v6.10", commit "72bffbf57c52", "the shown one";
    }
}

behaviour! {
    /// Of how much of a CPU a new task is expected to use half of what is left.
    pub enum NewTaskCap = "load.new_task_cap" {
        WholeCpu = "whole-cpu", since "v4.7", commit "2b8c41daba32", "of a whole one, however small its own is";
        OwnCpu = "own-cpu", since "v4.19", commit "", "of its own one's capacity (after v4.16, by v4.19)";
    }
}

behaviour! {
    /// What becomes of the time that a task's CPU idled without updating its clock, when the task wakes up elsewhere.
    pub enum MigrateLag = "load.migrate_lag" {
        Ignored = "ignored", since "v4.3", commit "9d89c257dfb9", "the task did not sleep through it";
        Estimated = "estimated", since "v6.0", commit "e2f3e35f1f5a", "it is estimated, and the task aged by it";
    }
}

behaviour! {
    /// When a queue tells its group's sum (`tg->load_avg`) that its load has changed.
    pub enum TgLoadAvg = "load.tg_load_avg" {
        EveryChange = "every-change", since "v4.3", commit "9d89c257dfb9",
            "at each update, if it changed by more than a 64th";
        /// A queue that the sum still contains is not decayed.
        OncePerMillisecond = "once-per-ms", since "v6.7", commit "1528c661c24b",
            "the same, but not within a millisecond of the last time";
        OncePerMillisecondOfQueue = "once-per-ms-of-queue", since "v7.2", commit "",
            "the same, by the CPU's queue's clock instead of one that is read for it";
    }
}

behaviour! {
    /// What a CPU that goes offline leaves behind in the sums of groups.
    pub enum OfflineLoad = "load.offline" {
        Kept = "kept", since "v4.3", commit "9d89c257dfb9", "its queues' last load, for ever";
        Cleared = "cleared", since "v6.8", commit "f60a631ab9ed", "nothing, and an inactive CPU adds nothing";
    }
}

behaviour! {
    /// Whether aging the load of sleepers in a group tells the group above, in whose queue the group's entity is.
    pub enum BlockedNews = "load.blocked_news" {
        Untold = "untold", since "v4.10", commit "", "no: that queue's own turn comes";
        Told = "told", since "v5.13", commit "02da26ad5ed6", "yes";
    }
}

behaviour! {
    /// How the time of other classes and of interrupts is tracked.
    pub enum OtherClasses = "load.other_classes" {
        RtAvg = "rt-avg", since "v2.6.32", commit "e9e9250bc78e",
            "one sum of time (rt_avg), halved at the end of each period";
        Pelt = "pelt", since "v4.19", commit "371bf4273269",
            "averages of their own (avg_rt, avg_dl, avg_irq), decayed as the fair class's are";
    }
}

behaviour! {
    /// Which clock load averages age by, and where a CPU's capacity and frequency come in.
    pub enum LoadClock = "load.clock" {
        Task = "clock-task", since "v4.3", commit "9d89c257dfb9",
            "the CPU's clock for tasks (clock_task): capacity and frequency scale what each span of time adds";
        Pelt = "clock-pelt", since "v5.1", commit "23127296889f",
            "one of its own (clock_pelt), which is as slow as the CPU and catches up when it idles: a unit of it adds the same everywhere";
    }
}

behaviour! {
    /// Whether the architecture tells how fast a CPU runs (`arch_scale_freq_capacity()`).
    pub enum FrequencyInvariance = "load.frequency" {
        Unknown = "unknown", since "v2.6.23", commit "", "no: every CPU counts as running at full speed";
        ToldByDrivers = "told-by-drivers", since "v4.15", commit "0e27c567d167",
            "by ARM's drivers that set clocks themselves (scmi, cpufreq-dt), and by nobody else";
        ToldByIntel = "told-by-intel", since "v5.7", commit "1567c3e3467c",
            "by ARM's, and on Intel's CPUs from the counters APERF and MPERF";
        Told = "told", since "v5.11", commit "41ea667227ba", "by ARM's, and on Intel's and AMD's CPUs from the counters APERF and MPERF";
    }
}

behaviour! {
    /// When the clock of load tracking notes that a CPU goes idle, and how much idle time was lost to slowness ([`LoadClock::Pelt`]).
    pub enum LostIdle = "load.lost_idle" {
        AfterFair = "after-fair", since "v5.1", commit "23127296889f",
            "when the fair class had nothing left to run, not when a task of a higher class leaves an empty CPU";
        Always = "always", since "v6.18", commit "17e3e88ed0b6", "always; also in late releases of v5.10.y, v6.1.y, v6.12.y and v6.18.y";
    }
}

behaviour! {
    /// How load leaves a queue with a task that load balancing moves.
    pub enum MigrationDetach = "entity.migration_detach" {
        Removed = "removed", since "v4.3", commit "9d89c257dfb9",
            "noted as removed, and taken out at the queue's next update, as for a task that wakes elsewhere";
        Synchronous = "synchronous", since "v4.15", commit "144d8487bc6e",
            "at once: the lock of the queue it leaves is held";
        AtDequeue = "at-dequeue", since "v6.1", commit "e1f078f50478",
            "with the update that its dequeue makes anyway (DO_DETACH)";
    }
}

/// How load tracking is wired up, in one kernel version.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LoadRules {
    pub group_shares: GroupShares,
    pub leaf_list: LeafList,
    pub migration_detach: MigrationDetach,
    pub util_est: UtilEstimate,
    pub new_task_attach: NewTaskAttach,
    pub new_task_util: NewTaskUtil,
    pub new_task_cap: NewTaskCap,
    pub migrate_lag: MigrateLag,
    pub tg_load_avg: TgLoadAvg,
    pub sum_floor: SumFloor,
    pub offline: OfflineLoad,
    pub blocked_news: BlockedNews,
    pub other_classes: OtherClasses,
    pub clock: LoadClock,
    pub frequency: FrequencyInvariance,
    pub lost_idle: LostIdle,
}

impl LoadRules {
    /// v4.5-rc1 and v4.5.
    pub const V4_5: LoadRules = LoadRules {
        group_shares: GroupShares::QueueWeight,
        leaf_list: LeafList::HeadOrTail,
        migration_detach: MigrationDetach::Removed,
        util_est: UtilEstimate::Absent,
        new_task_attach: NewTaskAttach::AtEnqueue,
        new_task_util: NewTaskUtil::KeptWeight,
        new_task_cap: NewTaskCap::WholeCpu,
        migrate_lag: MigrateLag::Ignored,
        tg_load_avg: TgLoadAvg::EveryChange,
        sum_floor: SumFloor::Recomputed,
        offline: OfflineLoad::Kept,
        blocked_news: BlockedNews::Untold,
        other_classes: OtherClasses::RtAvg,
        clock: LoadClock::Task,
        frequency: FrequencyInvariance::Unknown,
        lost_idle: LostIdle::AfterFair,
    };

    /// v4.15 and v4.16.
    pub const V4_15: LoadRules = LoadRules {
        group_shares: GroupShares::LoadAverage,
        leaf_list: LeafList::BeforeParent,
        migration_detach: MigrationDetach::Synchronous,
        new_task_attach: NewTaskAttach::AtOnce,
        frequency: FrequencyInvariance::ToldByDrivers,
        ..LoadRules::V4_5
    };

    /// As in 4.19.108.
    pub const V4_19: LoadRules = LoadRules {
        util_est: UtilEstimate::EnqueuedAndSlowEwmaAnyCpu,
        new_task_cap: NewTaskCap::OwnCpu,
        other_classes: OtherClasses::Pelt,
        ..LoadRules::V4_15
    };

    /// As in 5.4.286, which is newer in `leaf_list` and `blocked_news` than v5.4 itself.
    pub const V5_4: LoadRules = LoadRules {
        leaf_list: LeafList::Propagated,
        util_est: UtilEstimate::EnqueuedAndSlowEwma,
        blocked_news: BlockedNews::Told,
        clock: LoadClock::Pelt,
        ..LoadRules::V4_19
    };

    /// As in 5.10.262, which is newer in `leaf_list`, `util_est`, `sum_floor`, `blocked_news` and `lost_idle` than v5.10 itself.
    pub const V5_10: LoadRules = LoadRules {
        util_est: UtilEstimate::EnqueuedAndEwma,
        group_shares: GroupShares::LoadAverageAlone,
        frequency: FrequencyInvariance::ToldByIntel,
        lost_idle: LostIdle::Always,
        ..LoadRules::V5_4
    };

    /// As in 5.15.135.
    pub const V5_15: LoadRules = LoadRules {
        frequency: FrequencyInvariance::Told,
        lost_idle: LostIdle::AfterFair,
        sum_floor: SumFloor::RecomputedAlways,
        leaf_list: LeafList::PropagatedKept,
        ..LoadRules::V5_10
    };

    pub const V6_1: LoadRules = LoadRules {
        lost_idle: LostIdle::Always,
        sum_floor: SumFloor::Cut,
        leaf_list: LeafList::Connected,
        migration_detach: MigrationDetach::AtDequeue,
        new_task_attach: NewTaskAttach::Deferred,
        migrate_lag: MigrateLag::Estimated,
        ..LoadRules::V5_15
    };

    /// As in 6.6.17.
    pub const V6_6: LoadRules = LoadRules { lost_idle: LostIdle::AfterFair, ..LoadRules::V6_1 };

    pub const V6_12: LoadRules = LoadRules {
        lost_idle: LostIdle::Always,
        group_shares: GroupShares::LoadAverageOfBusy,
        util_est: UtilEstimate::Ewma,
        new_task_util: NewTaskUtil::ShownWeight,
        tg_load_avg: TgLoadAvg::OncePerMillisecond,
        offline: OfflineLoad::Cleared,
        ..LoadRules::V6_6
    };

    /// As in 6.18.35, which is newer in `lost_idle` than v6.18 itself.
    pub const V6_18: LoadRules = LoadRules { util_est: UtilEstimate::EwmaAnyCpu, ..LoadRules::V6_12 };

    pub const V7_2: LoadRules = LoadRules {
        util_est: UtilEstimate::EwmaInUpdate,
        tg_load_avg: TgLoadAvg::OncePerMillisecondOfQueue,
        sum_floor: SumFloor::Whole,
        ..LoadRules::V6_18
    };

    pub const V7_3: LoadRules = LoadRules { group_shares: GroupShares::Concurrent, ..LoadRules::V7_2 };
}
