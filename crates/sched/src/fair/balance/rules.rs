//! What differs between kernel versions in load balancing, each as a behaviour of its own.

use crate::behaviour;

/// One kernel's way to balance load. A version is its predecessor with a few fields changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BalanceRules {
    pub detach_order: DetachOrder,
    pub newidle_detach: NewidleDetach,
    pub all_pinned: AllPinned,
    pub active_balance: ActiveBalanceFailures,
    pub prefer_sibling: PreferSibling,
    pub asym_packing: PackingOrder,
    pub higher_capacity: HigherCapacity,
    pub force_balance: ForceBalance,
    pub above_capacity: LoadAboveCapacity,
    pub tickless_load: TicklessLoad,
    pub decayed_queues: DecayedQueues,
}

behaviour! {
    /// From which end of `rq->cfs_tasks` tasks are taken.
    pub enum DetachOrder = "balance.detach_order" {
        Head = "head", since "v3.4", commit "", "from the head: the task enqueued last is tried first";
        Tail = "tail", since "v4.15", commit "93824900a2e2",
            "from the tail: with the list kept by last run, the task that waits longest is tried first";
    }
}

behaviour! {
    /// How many tasks a CPU that is about to idle takes from one queue. A matter of the build, not of the version.
    pub enum NewidleDetach = "balance.newidle_detach" {
        Imbalance = "imbalance", since "before v4.5", commit "", "as the imbalance asks (CONFIG_PREEMPT off)";
        One = "one", since "before v4.5", commit "", "one, to keep the latency low (CONFIG_PREEMPT on)";
    }
}

behaviour! {
    /// Which CPUs may be tried when affinity holds all tasks of the busiest queue.
    pub enum AllPinned = "balance.all_pinned" {
        AnyActiveCpu = "any-active-cpu", since "before v4.5", commit "", "try again while any CPU of the machine is left";
        OutsideLocalGroup = "outside-local-group", since "v4.13", commit "65a4433aebe3",
            "try again while a CPU of the domain outside the own group is left; else leave it to the parent domain";
    }
}

behaviour! {
    /// What a successful active balance does to `nr_balance_failed`.
    pub enum ActiveBalanceFailures = "balance.active_balance_failures" {
        Kept = "kept", since "v2.6.7", commit "", "nothing: it stays one above cache_nice_tries";
        Reset = "reset", since "v4.7", commit "d02c071183e1", "sets it to zero";
    }
}

behaviour! {
    /// When SD_PREFER_SIBLING of the child domain makes a group overloaded.
    pub enum PreferSibling = "balance.prefer_sibling" {
        MoreThanOne = "more-than-one", since "v4.1", commit "",
            "when it runs more than one task and the local group has capacity";
        MoreThanLocal = "more-than-local", since "v4.13", commit "05b40e057734",
            "when it runs at least two tasks more than the local group, which has capacity";
    }
}

behaviour! {
    /// Where SD_ASYM_PACKING packs tasks.
    pub enum PackingOrder = "balance.asym_packing" {
        LowestCpu = "lowest-cpu", since "v2.6.36", commit "", "onto the CPUs of low numbers";
        Priority = "priority", since "v4.10", commit "afe06efdf07c",
            "onto the CPUs of high priority, and only when the pulling CPU is idle (v4.7)";
    }
}

behaviour! {
    /// Whether CPUs of small capacity pull from those of high capacity that run no more than a task each. Only in domains
    /// with SD_ASYM_CPUCAPACITY.
    pub enum HigherCapacity = "balance.higher_capacity" {
        Pulled = "pulled", since "v2.6.7", commit "", "yes";
        LeftAlone = "left-alone", since "v4.10", commit "", "no (compares min_capacity: bf475ce0a3dd)";
    }
}

behaviour! {
    /// When an overloaded group is pulled from without regard to average loads, if the local group has capacity.
    pub enum ForceBalance = "balance.force_balance" {
        NewlyIdle = "newly-idle", since "v2.6.38", commit "", "when the CPU is about to idle";
        AnyIdle = "any-idle", since "v4.13", commit "583ffd99d765", "when it idles too";
    }
}

behaviour! {
    /// The load by which an overloaded group exceeds its capacity.
    pub enum LoadAboveCapacity = "balance.load_above_capacity" {
        Capacity = "capacity", since "v2.6.34", commit "", "tasks * 1024 - capacity, a capacity taken for a load";
        Load = "load", since "v4.7", commit "", "the same as a share of the group's capacity, in units of nice-0 load";
    }
}

behaviour! {
    /// What `cpu_load[]` makes of time without ticks.
    pub enum TicklessLoad = "balance.tickless_load" {
        Idle = "idle", since "v3.5", commit "", "the end of it counts as idle; a tick within it forgets it";
        Recorded = "recorded", since "v4.7", commit "1f41906a6fda",
            "the load at its begin is recorded and counts, for ticks within it too";
    }
}

behaviour! {
    /// Whether group queues that have decayed to nothing stay on the list that `update_blocked_averages()` walks.
    pub enum DecayedQueues = "balance.decayed_queues" {
        Listed = "listed", since "v2.6.38", commit "", "they stay until their group is gone";
        Removed = "removed", since "v4.13", commit "a9e7f6544b9c", "they are taken off";
    }
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
        higher_capacity: HigherCapacity::Pulled,
        force_balance: ForceBalance::NewlyIdle,
        above_capacity: LoadAboveCapacity::Capacity,
        tickless_load: TicklessLoad::Idle,
        decayed_queues: DecayedQueues::Listed,
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

    pub const V6_1: BalanceRules = BalanceRules { ..BalanceRules::V4_16 };

    pub const V6_12: BalanceRules = BalanceRules { ..BalanceRules::V6_1 };
}
