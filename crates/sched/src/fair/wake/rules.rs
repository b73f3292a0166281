//! The differences between kernel versions in where a woken or new task goes.

use crate::behaviour;
use crate::topology::EnergyAware;

behaviour! {
    /// When a waker takes note of whom it wakes (`record_wakee()`).
    pub enum RecordWakee = "wake.record_wakee" {
        AtWaking = "at-waking", since "v3.12", commit "62470419e993",
            "at every wakeup (task_waking_fair)";
        AtSelect = "at-select", since "v4.7", commit "c58d25f371f5",
            "when a CPU is chosen: not for a task that may run on one CPU only";
    }
}

behaviour! {
    /// Whether a wakeup that would leave a task on too small a CPU takes the slow path (`wake_cap()`).
    pub enum WakeCap = "wake.wake_cap" {
        Absent = "absent", since "v2.6.32", again "v5.7", commit "", "never: until v4.8, and again (v5.7: 000619680c37)";
        TaskTooLarge = "task-too-large", since "v4.9", commit "3273163c6775",
            "if CPUs differ by more than an eighth, and the task's utilization exceeds 80% of the smaller one's capacity";
        EstimateTooLarge = "estimate-too-large", since "v4.20", commit "3b1baa6496e6",
            "the same with the task's estimated utilization, which has to stay below 80%; only where domains know that capacities differ";
    }
}

behaviour! {
    /// Whether a sync wakeup by a task that is about to end is one.
    pub enum SyncExit = "wake.sync_exit" {
        Counts = "counts", since "v2.6.32", commit "", "yes";
        Ignored = "ignored", since "v4.17", commit "24d0c1d6e65f",
            "no: nobody will sleep on this CPU for it (PF_EXITING)";
    }
}

behaviour! {
    /// How `wake_affine()` chooses between the waking and the previous CPU.
    pub enum WakeAffine = "wake.wake_affine" {
        EffectiveLoad = "effective-load", since "v2.6.38", commit "",
            "by load, as it would be after the wakeup and with the group's shares moved (effective_load)";
        /// The toggles WA_IDLE, WA_WEIGHT and WA_BIAS switch its parts.
        IdleOrWeight = "idle-or-weight", since "v4.14", commit "d153b153446f",
            "the waking CPU if it is idle or about to be (wake_affine_idle), else by load (wake_affine_weight, f2cdd9cc6c97)";
    }
}

behaviour! {
    /// Whether `wake_affine_idle()` pulls a task to an idle waking CPU out of another cache. An idle CPU wakes from interrupts.
    pub enum IdleWaker = "wake.idle_waker" {
        AnyCache = "any-cache", since "v4.14", commit "d153b153446f", "yes";
        SharedCache = "shared-cache", since "v4.16", commit "7332dec055f2", "no: only from the cache it shares";
    }
}

behaviour! {
    /// Whether `wake_affine_idle()` leaves a task alone whose previous CPU is as idle as the waking one, and shares its cache.
    pub enum IdlePrevious = "wake.idle_previous" {
        Ignored = "ignored", since "v4.14", commit "d153b153446f", "no";
        Kept = "kept", since "v4.16", commit "806486c377e3", "yes: what an interrupt has in cache may matter less";
        Preferred = "preferred", since "v5.11", commit "d8fcb81f1acf",
            "yes, and an idle previous CPU in any cache goes before a comparison of loads";
    }
}

behaviour! {
    /// Which load of a CPU wakeups compare: `wake_affine_weight()` and `find_idlest_group_cpu()`.
    pub enum CpuLoad = "wake.cpu_load" {
        Runnable = "runnable", since "v4.3", commit "",
            "of the tasks that want to run, guessed low or high from cpu_load[] (source_load, target_load) while there is that";
        Average = "average", since "v5.5", commit "11f10e5420f6",
            "of all tasks that belong to the CPU, sleepers included (cpu_load())";
    }
}

behaviour! {
    /// Whether `wake_affine_weight()` pulls a task when the loads after the move are equal.
    pub enum EqualWeight = "wake.equal_weight" {
        Pulls = "pulls", since "v4.14", commit "f2cdd9cc6c97", "yes";
        Stays = "stays", since "v4.17", commit "082f764a2f3f", "no, except on a sync wakeup";
    }
}

behaviour! {
    /// What `wake_affine()` counts as a move (`nr_wakeups_affine`, `ttwu_move_affine`).
    pub enum AffineCount = "wake.affine_count" {
        AnyDecision = "any-decision", since "v4.14", commit "d153b153446f",
            "any choice, also that of the previous CPU";
        Moves = "moves", since "v6.4", commit "39afe5d6fc59", "only that of the waking CPU; also in late releases of v5.15.y and v6.1.y";
    }
}

behaviour! {
    /// How `select_idle_sibling()` looks for an idle CPU in the target's cache.
    pub enum IdleSibling = "wake.idle_sibling" {
        IdleGroups = "idle-groups", since "v3.9", commit "",
            "the first group of CPUs that are all idle, from the cache's domain downwards";
        /// `has_idle_cores`, which starts the first search, is kept in `sched_domain_shared`: see `sd_busy_cpus`.
        CoreCpuSmt = "core-cpu-smt", since "v4.9", commit "10e2f1acd010",
            "an idle core, else an idle CPU as far as searching pays (SIS_PROP, v4.13: 1ad3aaf3fcd2), else a sibling";
        CoreCpuSmtOfDomain = "domain-core-cpu-smt", since "v5.4.y", commit "",
            "the same, but only the CPUs that the task may use count as looked at, and a sibling must be in the cache's domain (after 5.4.6, by \
             5.4.286)";
        CoreCpuSmtOfAllowed = "allowed-core-cpu-smt", since "v5.7", commit "bec2860a2bd6",
            "the same, and a core's threads are looked at up to the first busy one";
        OneScan = "one-scan", since "v5.12", commit "9fe1f127b913",
            "an idle core or, in the same scan, an idle CPU from the one after the target on (v5.15: 56498cfb045d); while no \
             idle core is known the previous CPU's siblings first (v5.13: c722f35b513f)";
    }
}

behaviour! {
    /// Whether a cache is not searched for an idle CPU where the waker's usually idles for a shorter time than a search takes, with a
    /// factor of 512.
    pub enum ScanGate = "wake.scan_gate" {
        Always = "always", since "v4.9", commit "10e2f1acd010", "it is not";
        IfAsked = "if-asked", since "v4.11", commit "4c77b18cf8b7", "it is, without the feature SIS_AVG_CPU";
    }
}

behaviour! {
    /// From which idle time SIS_PROP reckons how many CPUs to look at.
    pub enum ScanBudget = "wake.scan_budget" {
        AvgIdle = "avg-idle", since "v4.13", commit "1ad3aaf3fcd2", "this CPU's average idle time / 512";
        WakeAvgIdle = "wake-avg-idle", since "v5.14", commit "94aafc3ee31d",
            "what is left of it: half, less the time of searches since, halved each jiffy the CPU stays busy";
    }
}

behaviour! {
    /// What the search for an idle CPU does where the task may run on none of the cache's, and idle cores are known of.
    pub enum EmptyScan = "wake.empty_scan" {
        Forgets = "forgets", since "v4.9", commit "10e2f1acd010", "it finds none, and so there are said to be none";
        Ends = "ends", since "v7.1", commit "", "it does not begin";
    }
}

behaviour! {
    /// Whether a cache made of clusters (CPUs that share a level-2 cache or its tags) is searched cluster first.
    pub enum ClusterScan = "wake.cluster_scan" {
        Absent = "absent", since "v4.9", commit "10e2f1acd010", "no";
        ClusterFirst = "cluster-first", since "v6.7", commit "8881e1639f1f",
            "the target's cluster, then the rest; an idle previous or recently used CPU of another cluster waits until both \
             found nothing (22165f61d0c4)";
    }
}

behaviour! {
    /// Whether the search for an idle CPU heeds capacities, where CPUs differ in them.
    pub enum AsymIdle = "wake.asym_idle" {
        Unseen = "unseen", since "v2.6.32", commit "", "no";
        ByCapacity = "by-capacity", since "v5.7", commit "b7a331615d25",
            "yes: among all CPUs that differ, caches or not, the first idle one that fits, else the biggest; a target or \
             previous CPU that does not fit is no choice (v5.10: b4c9c9f15649; clamps: v6.2, a2e7f03ed28f)";
        WholeCores = "whole-cores", since "v7.2", commit "25a32e400a14",
            "the same, but a CPU beside a busy thread fits nobody: a whole idle core goes first, even one that is too small; no more CPUs are looked at than SIS_UTIL allows";
    }
}

behaviour! {
    /// Whether a CPU that runs nothing but SCHED_IDLE tasks serves a woken or new task as an idle one does.
    pub enum SchedIdleCpu = "wake.sched_idle_cpu" {
        Busy = "busy", since "v2.6.32", commit "", "no";
        LastResort = "last-resort", since "v5.4", commit "3c29e651e16d",
            "yes, if it is the first that is looked at, the previous or a recently used one; of others if none idles, and a search for an idle \
             one has been cut short";
        AsIdle = "as-idle", since "v5.6", commit "17346452b25b", "yes";
        AsIdleForOthers = "as-idle-for-others", since "v7.1", commit "",
            "yes, unless the task is SCHED_IDLE too";
    }
}

behaviour! {
    /// Whether a kernel thread bound to the CPU may leave its wakee there, on top of itself.
    pub enum KthreadStacking = "wake.kthread_stacking" {
        Absent = "absent", since "v2.6.32", commit "", "no";
        SameCpu = "same-cpu", since "v5.6", commit "52262ee567ad",
            "yes, if that is where the wakee was and nobody else runs: its work is done (not from interrupts, v5.17: \
             8b4e74ccb582)";
    }
}

behaviour! {
    /// Whether `select_idle_sibling()` tries a CPU that the task used recently before it searches.
    pub enum RecentUsedCpu = "wake.recent_used_cpu" {
        Absent = "absent", since "v2.6.32", commit "", "no";
        ByWaker = "by-waker", since "v4.16", commit "32e839dda3ba",
            "yes: where the task was when it last woke another, or its previous CPU after such a choice";
        /// Where the task has been forbidden the CPU, another one that it may use is sought as for any wrong choice
        /// (`select_fallback_rq()`).
        PreviousUnchecked = "previous-unchecked", since "v5.15", commit "89aafd67f28c",
            "yes: the previous CPU of the wakeup before, noted whenever the target and the previous CPU are not idle; but whether the \
             task may run there is asked of the previous CPU of this wakeup";
        Previous = "previous", since "v6.5", commit "ae2ad293d6be", "the same, if the task may run there; also in late releases of v6.1.y";
    }
}

behaviour! {
    /// Whether a waker whose own CPU is below no cache domain (`isolcpus=`) looks for an idle CPU in that of the target.
    pub enum IsolatedWaker = "wake.isolated_waker" {
        Stays = "stays", since "v4.9", commit "10e2f1acd010",
            "no: its search cannot say what it costs; until v5.11 it looks for an idle core and an idle sibling of the target all the same";
        Searches = "searches", since "v6.1", commit "96c1c0cfe493", "yes, unless SIS_PROP asks for the cost";
    }
}

behaviour! {
    /// Which idle thread of a busy core is remembered while an idle core is looked for, under [`IdleSibling::OneScan`].
    pub enum CoreThreads = "wake.core_threads" {
        Allowed = "allowed", since "v5.12", commit "9fe1f127b913", "any that the task may use, also one outside the domain (`isolcpus=`)";
        AllowedOfDomain = "allowed-of-domain", since "v6.9", commit "23d04d8c6b8e", "one that is in the domain, too; also in late releases of v6.1.y";
    }
}

behaviour! {
    /// Which CPUs of a group say how busy it is for a new task, where groups are told apart by type.
    pub enum IdlestStats = "wake.idlest_stats" {
        AllCpus = "all-cpus", since "v5.5", commit "57abff067a08", "all";
        AllowedCpus = "allowed-cpus", since "v6.19", commit "52c120621e43",
            "those that the task may use; also in late releases of v5.10.y, v6.1.y and v6.12.y";
    }
}

behaviour! {
    /// Which of several groups with as many idle CPUs is the idlest.
    pub enum IdlestTies = "wake.idlest_ties" {
        First = "first", since "v5.5", commit "57abff067a08", "the first";
        Utilization = "utilization", since "v5.9", commit "3edecfef0280", "the one of the lowest utilization";
    }
}

behaviour! {
    /// What `find_idlest_group()` takes for the load of groups without an idle CPU.
    pub enum IdlestAverages = "wake.idlest_averages" {
        Nil = "nil", since "v5.5", commit "57abff067a08", "none: a task stays in the group that it comes from";
        Computed = "computed", since "v5.7", commit "6c8116c914b6", "their load by their capacity";
    }
}

behaviour! {
    /// What `find_idlest_group()` tells groups apart by.
    pub enum IdlestGroup = "wake.idlest_group" {
        ByLoad = "by-load", since "v2.6.18", commit "", "load, and from v4.10 spare capacity";
        ByType = "by-type", since "v5.5", commit "57abff067a08",
            "how busy they are (group types), then idle CPUs, utilization or load; an imbalance between nodes is allowed";
    }
}

behaviour! {
    /// What `find_idlest_group()` compares groups by.
    pub enum IdlestMeasure = "wake.idlest_measure" {
        RunnableLoad = "runnable-load", since "v4.3", commit "",
            "load of the tasks that want to run; half of imbalance_pct in favour of where the task is forked";
        RunnableThenBlocked = "runnable-then-blocked", since "v4.10", commit "6b94780e45c1",
            "that load if it differs by more than imbalance_pct of a nice-0 task, else load with that of sleepers";
    }
}

behaviour! {
    /// When a task leaves its node for one of less load, under [`IdlestGroup::ByLoad`].
    pub enum IdlestNode = "wake.idlest_node" {
        AsGroup = "as-group", since "v3.6", commit "", "as it leaves any other group";
        ByMargin = "by-margin", since "v4.17", commit "",
            "if the load of the tasks that want to run is less there by imbalance_pct of a nice-0 task, at least";
    }
}

behaviour! {
    /// Whether placement reckons with energy on machines whose cores have several threads.
    pub enum EnergySmt = "wake.energy_smt" {
        Reckoned = "reckoned", since "v5.0", commit "", "yes";
        Refused = "refused", since "v5.7", commit "", "no";
    }
}

behaviour! {
    /// Whether `find_idlest_group()` first looks for a CPU with room, except at fork (f519a3f1c6b7).
    pub enum SpareCapacity = "wake.spare_capacity" {
        Ignored = "ignored", since "v2.6.32", commit "", "no";
        OfWholeCpu = "of-whole-cpu", since "v4.10", commit "6a0b19c0f39a",
            "yes: for the task's utilization by half, in a CPU's whole capacity";
        OfWhatIsLeft = "of-what-is-left", since "v4.16", commit "f453ae2200b0",
            "yes, in the capacity that interrupts and real-time tasks leave";
    }
}

behaviour! {
    /// What `find_idlest_group()` takes for the load of the group it is called from, if the task may not run there.
    pub enum DisallowedLocalGroup = "wake.disallowed_local_group" {
        Empty = "empty", since "v2.6.32", commit "", "none, so that no other group beats it";
        /// The greatest load plus a margin wraps to less than the margin in the comparison of runnable loads.
        Full = "full", since "v4.15", commit "0d10ab952e99", "the greatest, so that any other group should beat it";
    }
}

behaviour! {
    /// Where a task goes if the slow path finds nothing idler than where it started.
    pub enum SlowPathStart = "wake.slow_path_start" {
        PreviousCpu = "previous-cpu", since "v2.6.32", commit "", "its previous CPU";
        WakingCpu = "waking-cpu", since "v4.15", commit "93f50f90247e",
            "the CPU that wakes it; its previous one if it may not run in the domain at all (6fee85ccbc76)";
    }
}

behaviour! {
    /// How old the utilization is that the slow path knows of a sleeper.
    pub enum SlowPathUtil = "wake.slow_path_util" {
        Stale = "stale", since "v2.6.32", commit "", "as it fell asleep";
        Synced = "synced", since "v4.15", commit "ea16f0ea6c3d", "aged up to its queue's last update (not at fork)";
    }
}

behaviour! {
    /// Whether the CPU of a group that has only one is looked at before it is chosen.
    pub enum SingleCpuGroup = "wake.single_cpu_group" {
        Examined = "examined", since "v3.18", commit "83a0a96a5f26",
            "yes; one that idles without an idle state, and since when is not known, is not taken";
        Taken = "taken", since "v4.9", commit "eaecf41f5abf", "no";
    }
}

behaviour! {
    /// Which idle thread of the previous CPU's core is taken while no idle core is known, under [`IdleSibling::OneScan`].
    pub enum PreviousSibling = "wake.previous_sibling" {
        OfDomain = "of-domain", since "v5.13", again "v6.9", commit "c722f35b513f", "one that is in the cache's domain";
        Any = "any", since "v6.1", commit "3e6efe87cd5c",
            "any that the task may use, also one outside the domain (`isolcpus=`; after v5.15, by v6.6; late releases of v6.1.y and v6.12.y ask \
             again)";
    }
}

/// How one kernel version places woken and new tasks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WakeRules {
    pub record_wakee: RecordWakee,
    pub wake_cap: WakeCap,
    pub sync_exit: SyncExit,
    pub wake_affine: WakeAffine,
    pub idle_waker: IdleWaker,
    pub idle_previous: IdlePrevious,
    pub cpu_load: CpuLoad,
    pub equal_weight: EqualWeight,
    pub affine_count: AffineCount,
    pub idle_sibling: IdleSibling,
    pub scan_gate: ScanGate,
    pub scan_budget: ScanBudget,
    pub cluster_scan: ClusterScan,
    pub empty_scan: EmptyScan,
    pub asym_idle: AsymIdle,
    pub sched_idle_cpu: SchedIdleCpu,
    pub kthread_stacking: KthreadStacking,
    pub energy: EnergyAware,
    pub energy_smt: EnergySmt,
    pub recent_used_cpu: RecentUsedCpu,
    pub isolated_waker: IsolatedWaker,
    pub core_threads: CoreThreads,
    pub previous_sibling: PreviousSibling,
    pub idlest_stats: IdlestStats,
    pub idlest_ties: IdlestTies,
    pub idlest_averages: IdlestAverages,
    pub idlest_group: IdlestGroup,
    pub idlest_measure: IdlestMeasure,
    pub idlest_node: IdlestNode,
    pub spare_capacity: SpareCapacity,
    pub disallowed_local_group: DisallowedLocalGroup,
    pub slow_path_start: SlowPathStart,
    pub slow_path_util: SlowPathUtil,
    pub single_cpu_group: SingleCpuGroup,
}

impl WakeRules {
    /// v4.5-rc1 and v4.5.
    pub const V4_5: WakeRules = WakeRules {
        record_wakee: RecordWakee::AtWaking,
        wake_cap: WakeCap::Absent,
        sync_exit: SyncExit::Counts,
        wake_affine: WakeAffine::EffectiveLoad,
        idle_waker: IdleWaker::AnyCache,
        idle_previous: IdlePrevious::Ignored,
        cpu_load: CpuLoad::Runnable,
        equal_weight: EqualWeight::Pulls,
        affine_count: AffineCount::AnyDecision,
        idle_sibling: IdleSibling::IdleGroups,
        scan_gate: ScanGate::Always,
        scan_budget: ScanBudget::AvgIdle,
        cluster_scan: ClusterScan::Absent,
        empty_scan: EmptyScan::Forgets,
        asym_idle: AsymIdle::Unseen,
        sched_idle_cpu: SchedIdleCpu::Busy,
        kthread_stacking: KthreadStacking::Absent,
        energy: EnergyAware::Absent,
        energy_smt: EnergySmt::Reckoned,
        recent_used_cpu: RecentUsedCpu::Absent,
        isolated_waker: IsolatedWaker::Stays,
        core_threads: CoreThreads::Allowed,
        previous_sibling: PreviousSibling::OfDomain,
        idlest_stats: IdlestStats::AllCpus,
        idlest_ties: IdlestTies::First,
        idlest_averages: IdlestAverages::Nil,
        idlest_group: IdlestGroup::ByLoad,
        idlest_measure: IdlestMeasure::RunnableLoad,
        idlest_node: IdlestNode::AsGroup,
        spare_capacity: SpareCapacity::Ignored,
        disallowed_local_group: DisallowedLocalGroup::Empty,
        slow_path_start: SlowPathStart::PreviousCpu,
        slow_path_util: SlowPathUtil::Stale,
        single_cpu_group: SingleCpuGroup::Examined,
    };

    pub const V4_15: WakeRules = WakeRules {
        scan_gate: ScanGate::IfAsked,
        record_wakee: RecordWakee::AtSelect,
        wake_cap: WakeCap::TaskTooLarge,
        wake_affine: WakeAffine::IdleOrWeight,
        idle_sibling: IdleSibling::CoreCpuSmt,
        idlest_measure: IdlestMeasure::RunnableThenBlocked,
        spare_capacity: SpareCapacity::OfWholeCpu,
        disallowed_local_group: DisallowedLocalGroup::Full,
        slow_path_start: SlowPathStart::WakingCpu,
        slow_path_util: SlowPathUtil::Synced,
        single_cpu_group: SingleCpuGroup::Taken,
        ..WakeRules::V4_5
    };

    pub const V4_16: WakeRules = WakeRules {
        idle_waker: IdleWaker::SharedCache,
        idle_previous: IdlePrevious::Kept,
        recent_used_cpu: RecentUsedCpu::ByWaker,
        spare_capacity: SpareCapacity::OfWhatIsLeft,
        ..WakeRules::V4_15
    };

    /// As in the long-term release 4.19.108.
    pub const V4_19: WakeRules = WakeRules {
        sync_exit: SyncExit::Ignored,
        equal_weight: EqualWeight::Stays,
        idlest_node: IdlestNode::ByMargin,
        ..WakeRules::V4_16
    };

    /// As in the long-term release 5.4.286, which is newer in `idle_sibling` than v5.4 itself.
    pub const V5_4: WakeRules = WakeRules {
        wake_cap: WakeCap::EstimateTooLarge,
        idle_sibling: IdleSibling::CoreCpuSmtOfDomain,
        sched_idle_cpu: SchedIdleCpu::LastResort,
        energy: EnergyAware::WholeDomains,
        ..WakeRules::V4_19
    };

    /// As in the long-term release 5.10.262, which is newer in `idlest_stats` and in what `kthread_stacking` asks than v5.10 itself.
    pub const V5_10: WakeRules = WakeRules {
        wake_cap: WakeCap::Absent,
        asym_idle: AsymIdle::ByCapacity,
        kthread_stacking: KthreadStacking::SameCpu,
        idle_sibling: IdleSibling::CoreCpuSmtOfAllowed,
        cpu_load: CpuLoad::Average,
        sched_idle_cpu: SchedIdleCpu::AsIdle,
        energy_smt: EnergySmt::Refused,
        idlest_group: IdlestGroup::ByType,
        idlest_stats: IdlestStats::AllowedCpus,
        idlest_ties: IdlestTies::Utilization,
        idlest_averages: IdlestAverages::Computed,
        ..WakeRules::V5_4
    };

    /// As in the long-term release 5.15.135, which is newer in `affine_count` than v5.15 itself.
    pub const V5_15: WakeRules = WakeRules {
        energy: EnergyAware::CandidateDomains,
        idle_previous: IdlePrevious::Preferred,
        affine_count: AffineCount::Moves,
        idle_sibling: IdleSibling::OneScan,
        scan_budget: ScanBudget::WakeAvgIdle,
        recent_used_cpu: RecentUsedCpu::PreviousUnchecked,
        idlest_stats: IdlestStats::AllCpus,
        ..WakeRules::V5_10
    };

    /// As in the long-term release 6.1.192, which is newer in `affine_count`, `recent_used_cpu`, `core_threads` and `idlest_stats` than
    /// v6.1 itself.
    pub const V6_1: WakeRules = WakeRules {
        energy: EnergyAware::ByFrequency,
        recent_used_cpu: RecentUsedCpu::Previous,
        isolated_waker: IsolatedWaker::Searches,
        core_threads: CoreThreads::AllowedOfDomain,
        idlest_stats: IdlestStats::AllowedCpus,
        ..WakeRules::V5_15
    };

    /// As in the long-term release 6.6.17, which is older in `core_threads`, `previous_sibling` and `idlest_stats` than 6.1.192.
    pub const V6_6: WakeRules = WakeRules {
        energy: EnergyAware::ByBoostedFrequency,
        core_threads: CoreThreads::Allowed,
        previous_sibling: PreviousSibling::Any,
        idlest_stats: IdlestStats::AllCpus,
        ..WakeRules::V6_1
    };

    pub const V6_12: WakeRules = WakeRules {
        cluster_scan: ClusterScan::ClusterFirst,
        energy: EnergyAware::ByPerformance,
        core_threads: CoreThreads::AllowedOfDomain,
        previous_sibling: PreviousSibling::OfDomain,
        idlest_stats: IdlestStats::AllowedCpus,
        ..WakeRules::V6_6
    };

    /// As in the long-term release 6.18.35, which is older in `idlest_stats` and `energy` than 6.12.117.
    pub const V6_18: WakeRules =
        WakeRules { energy: EnergyAware::ByPerformanceAlone, idlest_stats: IdlestStats::AllCpus, ..WakeRules::V6_12 };

    pub const V7_2: WakeRules = WakeRules {
        asym_idle: AsymIdle::WholeCores,
        empty_scan: EmptyScan::Ends,
        sched_idle_cpu: SchedIdleCpu::AsIdleForOthers,
        energy: EnergyAware::ByPerformance,
        idlest_stats: IdlestStats::AllowedCpus,
        ..WakeRules::V6_18
    };
}
