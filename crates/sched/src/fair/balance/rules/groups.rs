//! Behaviours: which group of CPUs is the busiest, and by how much.

use crate::behaviour;

behaviour! {
    /// By what groups of CPUs are compared.
    pub enum Mechanism = "balance.mechanism" {
        ByLoad = "by-load", since "v2.6.7", commit "", "by average load, with exceptions; what moves is load";
        ByGroupType = "by-group-type", since "v5.5", commit "0b0695f2b34a",
            "by the type of each group (has_spare ... overloaded); what moves is load, utilization, a number of tasks or a misfit";
    }
}

behaviour! {
    /// When groups with spare capacity spread tasks over the siblings of a domain, and when they count as unequal.
    pub enum SiblingImbalance = "balance.sibling_imbalance" {
        Tasks = "tasks", since "v5.5", commit "0b0695f2b34a", "by the difference of their tasks";
        ByCores = "by-cores", since "v6.6", commit "7ff1693236f5",
            "for CPUs that idle only; by the difference of tasks per core, where the groups' numbers of cores differ";
    }
}

behaviour! {
    /// Whose SD_PREFER_SIBLING counts.
    pub enum PreferSiblingOf = "balance.prefer_sibling_of" {
        Child = "child", since "v2.6.34", commit "", "the child domain's of the CPU that pulls";
        BusiestGroup = "busiest-group", since "v6.5", commit "43726bdedd29", "the flags of the busiest group, which are its child domain's";
    }
}

behaviour! {
    /// Whether a core that runs several tasks on its threads is a reason to pull.
    pub enum SmtBalance = "balance.smt_balance" {
        Absent = "absent", since "v5.5", commit "0b0695f2b34a", "no";
        Present = "present", since "v6.6", commit "fee1759e4f04", "yes: group_smt_balance, between misfit and asym packing";
    }
}

behaviour! {
    /// Whether a group is pulled from for the sake of a task that is too big for its CPU, where CPUs differ in capacity, under
    /// [`Mechanism::ByLoad`].
    pub enum Misfits = "balance.misfits" {
        Unseen = "unseen", since "v2.6.7", commit "", "no";
        Pulled = "pulled", since "v4.20", commit "cad68e552e77",
            "yes, by CPUs that are bigger by a quarter and have room, whatever the averages say; and a task alone on a bigger CPU stays there";
    }
}

behaviour! {
    /// Which misfit tasks have an idle CPU kicked on the tick, and which group of several with misfits is the busiest.
    pub enum MisfitStatus = "balance.misfit_status" {
        WhereHelpful = "where-helpful", since "v5.1", commit "",
            "those on a CPU that is not the biggest of the root domain, or lost capacity; of equal groups the last, as of those of equal rank (SD_ASYM_PACKING)";
        AnyMisfit = "any-misfit", since "v6.10", commit "22d5607400c6",
            "every one: a task on the biggest CPU it may use is no misfit; of equal groups the first";
    }
}

behaviour! {
    /// Which misfit tasks make a group misfit, where CPUs differ in capacity. Any says that the root domain is overloaded.
    pub enum MisfitLoad = "balance.misfit_load" {
        Any = "any", since "v5.5", commit "0b0695f2b34a",
            "every one: a CPU that is no help to it does not pull from the group at all, whatever else runs there";
        IfHelpful = "if-helpful", since "v7.3", commit "",
            "those of a group without a CPU as big as the pulling one; else the group is judged by its other tasks";
    }
}

behaviour! {
    /// When a queue with one task is pulled from, where CPUs differ in capacity and the pulling one has no more of it.
    pub enum SoleTask = "balance.sole_task" {
        ByCapacity = "by-capacity", since "v5.5", commit "0b0695f2b34a", "never";
        BySiblingsAndClusters = "by-siblings-and-clusters", since "v7.3", commit "",
            "when another thread of its core is busy; and, where there are clusters, when both CPUs are of the same kind";
    }
}

behaviour! {
    /// How groups, and queues with one task, are compared where CPUs differ in capacity (SD_ASYM_CPUCAPACITY), under
    /// [`Mechanism::ByGroupType`].
    pub enum AsymCompare = "balance.asym_compare" {
        LocalGroup = "local-group", since "v5.5", commit "0b0695f2b34a",
            "groups with the local one, by a quarter, and only within a type; queues with the pulling CPU; where energy counts and \
             nothing is overutilized, misfits do not";
        PullingCpuWithinType = "pulling-cpu-within-type", since "v5.13", commit "4aed8aa41524",
            "both with the pulling CPU, by 5%, but groups with a task for each CPU only within a type; where energy counts and nothing is overutilized, misfits do not";
        MisfitsFirst = "misfits-first", since "v6.3", commit "e5ed0550c04c",
            "the same, but misfits move whatever energy says";
        PullingCpu = "pulling-cpu", since "v7.3", commit "",
            "the same, across types, and misfits move to CPUs of idle cores only";
    }
}

behaviour! {
    /// Whether a task alone on a CPU that lost capacity makes its group misfit where CPUs do not differ in capacity.
    pub enum ReducedCapacity = "balance.reduced_capacity" {
        Unseen = "unseen", since "v5.5", commit "0b0695f2b34a", "no: only a failed balance may push it away";
        Misfit = "misfit", since "v6.0", commit "c82a69629c53", "yes, for CPUs that idle";
    }
}

behaviour! {
    /// Whether a queue without fair tasks can be the busiest, by the load of its sleepers.
    pub enum EmptyQueues = "balance.empty_queues" {
        Chosen = "chosen", since "v5.5", commit "0b0695f2b34a", "yes: the balance then fails";
        Skipped = "skipped", since "v5.12", commit "fc488ffd4297", "no";
    }
}

behaviour! {
    /// Where utilization is pulled from a group that is overloaded to one with room.
    pub enum UtilPull = "balance.util_pull" {
        AnyDomain = "any-domain", since "v5.5", commit "0b0695f2b34a", "in every domain";
        AboveLlc = "above-llc", since "v5.10", commit "16b0a7a1a0af", "between last level caches; within one tasks are evened out";
    }
}

behaviour! {
    /// What a CPU's utilization is where the busiest queue is sought by utilization.
    pub enum BusiestUtil = "balance.busiest_util" {
        LoneToo = "lone-too", since "v5.5", commit "0b0695f2b34a", "util_avg or the estimate, of a queue with one task as well";
        Plain = "plain", since "v5.7", commit "c32b4308295a", "the same, of queues with two tasks or more: one that runs cannot be taken";
        Boosted = "boosted", since "v6.5", commit "7d0583cf9ec7", "as much as runnable_avg, if that is more: contention counts";
    }
}

behaviour! {
    /// When SD_PREFER_SIBLING of the child domain makes a group overloaded.
    pub enum PreferSibling = "balance.prefer_sibling" {
        MoreThanOne = "more-than-one", since "v4.1", commit "ea67821b9a3e",
            "when it runs more than one task and the local group has capacity";
        MoreThanLocal = "more-than-local", since "v4.12", commit "05b40e057734",
            "when it runs at least two tasks more than the local group, which has capacity";
    }
}

behaviour! {
    /// Where SD_ASYM_PACKING packs tasks.
    pub enum PackingOrder = "balance.asym_packing" {
        LowestCpu = "lowest-cpu", since "v2.6.36", commit "", "onto the CPUs of low numbers";
        Priority = "priority", since "v4.10", commit "afe06efdf07c",
            "onto the CPUs of high priority, and only when the pulling CPU is idle (v4.7)";
        PriorityAndSiblings = "priority-and-siblings", since "v5.16", commit "4006a72bdd93",
            "the same, with regard to the busy SMT siblings of both sides (asym_smt_can_pull_tasks())";
        IdleCores = "idle-cores", since "v6.5", commit "eefefa716c9f",
            "between cores only to those that idle with all threads, where lower ones may help as well";
    }
}

behaviour! {
    /// What moves to a better placed CPU (SD_ASYM_PACKING), and when the running task is pushed there, under [`Mechanism::ByLoad`].
    pub enum PackingPull = "balance.packing_pull" {
        NewlyIdle = "newly-idle", since "v4.10", commit "",
            "the group's load as its average says, rounded; what runs is pushed to a CPU that is about to idle";
        AnyIdle = "any-idle", since "v5.1", commit "46a745d90585", "the group's load; what runs is pushed to a CPU that idles, too";
    }
}

behaviour! {
    /// What follows when a busiest group is found, but no load to move.
    pub enum NothingToMove = "balance.nothing_to_move" {
        Failure = "failure", since "v2.6.7", commit "", "balancing fails, and after some failures what runs is pushed all the same";
        Balanced = "balanced", since "v4.19", commit "", "the domain is balanced (after v4.16, by v4.19)";
    }
}

behaviour! {
    /// Whether CPUs of small capacity pull from those of high capacity that run no more than a task each. Only in domains
    /// with SD_ASYM_CPUCAPACITY.
    pub enum HigherCapacity = "balance.higher_capacity" {
        Pulled = "pulled", since "v2.6.7", commit "", "yes";
        LeftAlone = "left-alone", since "v4.10", commit "9e0994c0a1c1", "no (compares min_capacity: bf475ce0a3dd)";
    }
}

behaviour! {
    /// When an overloaded group is pulled from without regard to average loads, if the local group has capacity.
    pub enum ForceBalance = "balance.force_balance" {
        NewlyIdle = "newly-idle", since "v2.6.38", commit "", "when the CPU is about to idle";
        AnyIdle = "any-idle", since "v4.15", commit "583ffd99d765", "when it idles too";
    }
}

behaviour! {
    /// The load by which an overloaded group exceeds its capacity.
    pub enum LoadAboveCapacity = "balance.load_above_capacity" {
        Capacity = "capacity", since "v2.6.34", commit "", "tasks * 1024 - capacity, a capacity taken for a load";
        Load = "load", since "v4.7", commit "cfa10334318d", "the same as a share of the group's capacity, in units of nice-0 load";
    }
}

behaviour! {
    /// What a group with capacity pulls from an overloaded one that has more load than it, if its own is above the average already.
    pub enum AboveAverage = "balance.above_average" {
        BusiestSurplus = "busiest-surplus", since "v5.5", commit "0b0695f2b34a",
            "what the other has above the average: what it lacks itself is a negative number that counts as a large one";
        Nothing = "nothing", since "v6.3", commit "91dcf1e8068e", "nothing; also in late releases of v5.10.y, v5.15.y and v6.1.y";
    }
}

behaviour! {
    /// Which fair tasks balancing, wakeups on the slow path and NUMA balancing count on a CPU.
    pub enum CountedTasks = "balance.counted_tasks" {
        Queued = "queued", since "v2.6.38", commit "", "all that are queued: since v6.12 sleepers among them that owe service (DELAY_DEQUEUE)";
        Runnable = "runnable", since "v6.14", commit "", "those that want to run (h_nr_runnable; after v6.12, by v6.18)";
    }
}

behaviour! {
    /// Whether a group may be overloaded while energy-aware placement looks after it.
    pub enum EnergyOverload = "balance.energy_overload" {
        ByUse = "by-use", since "v5.5", commit "", "yes, as any other, by its tasks and what they use";
        IfOverutilized = "if-overutilized", since "v7.1", commit "",
            "only if tasks of one of its CPUs do not fit there; to placement it never is";
    }
}
