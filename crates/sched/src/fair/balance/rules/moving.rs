//! Behaviours: what moves, and what happens when nothing does.

use crate::behaviour;

behaviour! {
    /// From which end of `rq->cfs_tasks` tasks are taken.
    pub enum DetachOrder = "balance.detach_order" {
        Head = "head", since "v3.4", commit "", "from the head: the task enqueued last is tried first";
        Tail = "tail", since "v4.15", commit "93824900a2e2",
            "from the tail: with the list kept by last run, the task that waits longest is tried first";
    }
}

behaviour! {
    /// How many tasks a CPU that is about to idle takes from one queue. A matter of the build, not of the version: a kernel with PREEMPT_DYNAMIC,
    /// as those here are from v6.1 on, is built for preemption (CONFIG_PREEMPTION), whatever model it is booted with.
    pub enum NewidleDetach = "balance.newidle_detach" {
        Imbalance = "imbalance", since "before v4.5", commit "", "as the imbalance asks (built without preemption)";
        One = "one", since "before v4.5", commit "", "one, to keep the latency low (built for preemption)";
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
    /// How much more load than the imbalance a task may have and still move.
    pub enum DetachBound = "balance.detach_bound" {
        Half = "half", since "v2.6.23", commit "", "half of it must fit; a load of 0 counts as 0";
        HalfOfSome = "half-of-some", since "v5.4.y", commit "", "half of it must fit; a load of 0 counts as 1";
        HalfUnlessFailing = "half-unless-failing", since "v5.5", commit "0b0695f2b34a",
            "half of it must fit, until balancing has failed more often than cache_nice_tries; a load of 0 counts as 0";
        SomeUnlessFailing = "some-unless-failing", since "v5.8", commit "01cfcde9c26d", "the same; a load of 0 counts as 1";
        Relaxed = "relaxed", since "v5.10", commit "5a7f55590467",
            "the whole must fit, half of it after one failure, a quarter after two ...; a load of 0 counts as 1";
    }
}

behaviour! {
    /// How much more utilization than the imbalance a task may have and still move.
    pub enum UtilBound = "balance.util_bound" {
        Whole = "whole", since "v5.5", commit "0b0695f2b34a", "none, however often balancing failed";
        Relaxed = "relaxed", since "v6.8", commit "3af7524b1419",
            "after one failure half of it must fit, after two a quarter ...; also in late releases of v5.10.y and v6.1.y";
    }
}

behaviour! {
    /// Which failures lead to active balancing.
    pub enum ActiveBalanceReason = "balance.active_balance_reason" {
        AnyFailure = "any-failure", since "v2.6.7", commit "", "any, when they are too many";
        TaskImbalance = "task-imbalance", since "v5.12", commit "e9b9734b7465", "those to even out numbers of tasks, when they are too many";
    }
}

behaviour! {
    /// How active balancing gets past the rule for cache-hot tasks.
    pub enum ActiveBalanceForce = "balance.active_balance_force" {
        ByFailures = "by-failures", since "v2.6.7", commit "", "nr_balance_failed becomes more than cache_nice_tries";
        ByFlag = "by-flag", since "v5.13", commit "23fb06d9602b", "LBF_ACTIVE_LB";
    }
}

behaviour! {
    /// The balance interval after an active balance was begun.
    pub enum ActiveBalanceInterval = "balance.active_balance_interval" {
        Doubled = "doubled", since "v2.6.7", commit "", "twice as long";
        DoubledUnlessVoluntary = "doubled-unless-voluntary", since "v5.1", commit "46a745d90585",
            "twice as long, but the shortest if there is reason for another than failures";
        Kept = "kept", since "v5.12", commit "e9b9734b7465", "as it was, or the shortest if there is reason for another";
    }
}

behaviour! {
    /// Whether a task is cache hot for its CPU's SMT siblings.
    pub enum SiblingHot = "balance.sibling_hot" {
        Hot = "hot", since "v2.6.23", commit "", "as for any other CPU";
        Cold = "cold", since "v5.10", commit "ec73240b1627", "never: siblings share the caches";
    }
}

behaviour! {
    /// When a forced migration of a hot task is counted.
    pub enum HotStatistics = "balance.hot_statistics" {
        Allowed = "allowed", since "v2.6.23", commit "", "when it is allowed to move";
        Detached = "detached", since "v6.14", commit "a430d99e3490", "when it moves; also in late releases of v6.1.y and v6.12.y";
    }
}

behaviour! {
    /// Who else of the own group may take a task that the pulling CPU may not.
    pub enum DstGroup = "balance.dst_group" {
        Span = "span", since "v3.6", commit "", "every CPU of the group";
        BalanceMask = "balance-mask", since "v6.5", commit "0dd37d6dd33a",
            "those that may balance for it, fewer where groups overlap; also in late releases of v5.4.y and v5.10.y, and in 6.1.42 and later of \
             6.1";
    }
}

behaviour! {
    /// What a balanced domain means for the flag by which it had told its parent that affinity is in the way.
    pub enum ImbalanceFlag = "balance.imbalance_flag" {
        Cleared = "cleared", since "v3.13", commit "", "cleared";
        /// v4.19.y has it too.
        KeptIfPinned = "kept-if-pinned", since "v5.4", commit "f6cad8df6b30",
            "kept if the last queue tried had pinned tasks only";
    }
}

behaviour! {
    /// Whether balancing that failed to move a misfit task counts as failure.
    pub enum MisfitFailures = "balance.misfit_failures" {
        Counted = "counted", since "v4.20", commit "cad68e552e77", "as any other, and the interval grows";
        Ignored = "ignored", since "v6.10", commit "58eeb2d79b54", "no, and the interval stays";
    }
}

behaviour! {
    /// What balancing learns of pinned tasks from a queue whose running task may not come.
    pub enum OnePinned = "balance.one_pinned" {
        AsAllPinned = "as-all-pinned", since "v2.6.7", commit "", "all are taken for pinned: the interval may grow beyond its maximum";
        AsFound = "as-found", since "v5.12", commit "8a41dfcda7a3", "pinned are those that were looked at; none, when a queue was emptied (v5.13: acb4decc1e90)";
    }
}

behaviour! {
    /// When balancing gives up that has looked at as many tasks as it may (sched_nr_migrate).
    pub enum DetachLimit = "balance.detach_limit" {
        Always = "always", since "v2.6.25", again "v6.10", commit "", "then";
        OnceMovable = "once-movable", since "v6.1", commit "b0defa7ae03e",
            "as soon as one of them was not kept by affinity; all tasks of the queue are looked at for that";
    }
}

behaviour! {
    /// What a kernel thread that belongs to one CPU says about affinity.
    pub enum PerCpuKthreads = "balance.per_cpu_kthreads" {
        Pinned = "pinned", since "v2.6.7", commit "", "it is pinned, as any task with one CPU";
        Disregarded = "disregarded", since "v5.13", commit "9bcb959d05ee", "nothing: balancing does not look at it";
    }
}

behaviour! {
    /// Whether tasks that sleep, and are still queued for what they owe (DELAY_DEQUEUE), are moved.
    pub enum DelayedTasks = "balance.delayed_tasks" {
        Moved = "moved", since "v6.12", commit "", "as any other";
        WithLoad = "with-load", since "v6.14", commit "", "only to even out load, which they count for";
    }
}

behaviour! {
    /// Whether tasks that have had more than their share, and would have to compete where they come to, are moved.
    pub enum IneligibleTasks = "balance.ineligible_tasks" {
        Moved = "moved", since "v6.6", commit "", "as any other";
        AfterFailure = "after-failure", since "v6.14", commit "",
            "only once balancing has failed (nr_balance_failed), with the feature PLACE_LAG";
    }
}
