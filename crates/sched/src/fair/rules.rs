//! Behaviours of entities that differ between kernel versions.

use crate::behaviour;

behaviour! {
    /// How the entities of a queue share its CPU.
    pub enum Pick = "entity.pick" {
        Cfs = "cfs", since "v2.6.23", commit "bf0f6f24a1ec",
            "who has the least vruntime runs next, for its share of a period";
        Eevdf = "eevdf", since "v6.6", commit "147f3efaa241",
            "of those who are owed time the one with the earliest virtual deadline runs next, for the slice it asks for";
    }
}

behaviour! {
    /// With whom a task in a group competes for its CPU.
    ///
    /// The flat way needs the pick by deadline and throttling by task: otherwise it is each level.
    pub enum PickLevels = "entity.pick_levels" {
        Each = "each", since "v2.6.24", commit "",
            "with the others of its group, while the group's entity competes one level up: a pick at each level";
        Flat = "flat", since "v7.3", commit "",
            "with all tasks of the CPU, on the root queue, by the product of its shares on the way up: one pick; groups keep loads only";
    }
}

behaviour! {
    /// What becomes of a sleeper's vruntime until it is queued again.
    pub enum SleeperVruntime = "entity.sleeper_vruntime" {
        RelativeOnWakeup = "relative-on-wakeup", since "v2.6.33", commit "88ec22d3edb7",
            "every wakeup makes it relative to the old queue (task_waking), the enqueue absolute again (ENQUEUE_WAKING)";
        RelativeOnMigration = "relative-on-migration", since "v4.7", commit "b5179ac70de8",
            "it stays absolute, and is moved over only when the wakeup changes the CPU (ENQUEUE_MIGRATED)";
    }
}

behaviour! {
    /// When an enqueue adds the queue's min_vruntime to a relative vruntime.
    pub enum Renormalise = "entity.renormalise" {
        BeforeUpdateCurr = "before-update-curr", since "v2.6.33", commit "88ec22d3edb7",
            "before the running entity is accounted: at some moment in the past";
        AfterUpdateCurr = "after-update-curr", since "v4.7", commit "2f950354e6d5",
            "after it, so that who comes from another CPU gains no time";
    }
}

behaviour! {
    /// Which task that is being woken is taken to have a relative vruntime, when it changes its group.
    pub enum WakingVruntime = "entity.waking_vruntime" {
        Relative = "relative", since "v4.7", commit "b5179ac70de8", "any, also one that stays on its CPU and whose vruntime is absolute";
        RelativeIfMigrated = "relative-if-migrated", since "v4.19", commit "d0cdb3ce8834", "one that changes its CPU";
    }
}

behaviour! {
    /// Whether an entity that has just been dequeued, but is still `curr`, holds min_vruntime back.
    pub enum MinVruntimeCurr = "entity.min_vruntime_curr" {
        EvenDequeued = "even-dequeued", since "v2.6.28", commit "", "yes";
        OnlyQueued = "only-queued", since "v4.9", commit "b60205c7c558", "no: only while on_rq";
    }
}

behaviour! {
    /// Whether a dequeue ends by advancing min_vruntime.
    pub enum MinVruntimeDequeue = "entity.min_vruntime_dequeue" {
        Always = "always", since "v3.2", commit "", "always";
        OnlyToRestore = "only-to-restore", since "v4.9", commit "b60205c7c558",
            "only if the entity is put back at once: the reverse of what was meant";
        UnlessRestored = "unless-restored", since "v4.19", commit "9845c49cc9bb",
            "unless the entity is put back at once, which would lose what the others gained";
    }
}

behaviour! {
    /// What of a sleeper's vruntime counts when it is placed.
    pub enum LongSleeper = "entity.long_sleeper" {
        Compared = "compared", since "v2.6.24", commit "",
            "it is compared with where sleepers are placed, the later counts; the comparison fails after years of virtual time";
        /// v5.4.y, v5.10.y and v6.1.y have it too.
        Forgotten = "forgotten", since "v6.3", commit "829c1651e9c4", "after 104 days of sleep nothing: the sleeper is placed as any other";
    }
}

behaviour! {
    /// When a task that changes its CPU stops being cache hot.
    pub enum ExecStartReset = "entity.exec_start_reset" {
        AtMigration = "at-migration", since "v3.3", commit "", "as it leaves";
        /// move_queued_task() queues it without ENQUEUE_MIGRATED.
        AtActivation = "at-activation", since "v5.4.y", commit "",
            "after it was placed on its new queue, when it wakes there or balancing takes it there; not where a new affinity or the stopper moves it \
             (as in 5.4.286)";
        /// v5.10.y and v6.1.y have it too.
        AtEnqueue = "at-enqueue", since "v6.3", commit "a53ce18cacb4", "after it was placed on its new queue, which looks how long it slept";
    }
}

behaviour! {
    /// What a woken SCHED_IDLE task, or idle group, is credited.
    pub enum IdleSleeper = "entity.idle_sleeper" {
        Latency = "latency", since "v2.6.24", commit "", "a latency period, as anybody";
        MinGranularity = "min-granularity", since "v5.16", commit "2cae3948edd4", "the shortest slice";
    }
}

behaviour! {
    /// The shortest slice (BASE_SLICE) of an idle entity.
    pub enum IdleSlice = "entity.idle_slice" {
        MinGranularity = "min-granularity", since "v5.13", commit "0c2de3f054a5", "the same as anybody's";
        IdleMinGranularity = "idle-min-granularity", since "v5.16", commit "51ce83ed523b", "one of its own, while others are queued beside it";
    }
}

behaviour! {
    /// How long a slice may be until the tick ends it, for CFS.
    pub enum TickSlice = "entity.tick_slice" {
        Whole = "whole", since "v2.6.24", commit "", "as long as its weight among many makes it";
        Latency = "latency", since "v6.3", commit "79ba1e607d68", "no longer than the latency period";
    }
}

behaviour! {
    /// How many entities a queue can hold before slices no longer fit into the latency (sched_nr_latency).
    pub enum NrLatency = "entity.nr_latency" {
        Ratio = "ratio", since "v2.6.24", commit "",
            "latency / min_granularity: writing either sysctl computes it anew";
        /// Files below debugfs have no handler that would.
        Eight = "eight", since "v5.13", commit "8a99b6833c88", "8, whatever latency and min_granularity are set to";
    }
}

behaviour! {
    /// What becomes of a value that was written into one of the tunables that grow with the number of CPUs when that number may have
    /// changed: a CPU comes or goes, or queues change their root domain.
    pub enum WrittenTunables = "entity.written_tunables" {
        Normalized = "normalized", since "v2.6.33", commit "",
            "it grows and shrinks with the number of CPUs as the default does";
        /// Files below debugfs have no handler that would.
        Lost = "lost", since "v5.13", commit "8a99b6833c88", "the default is there again";
    }
}

behaviour! {
    /// When an entity stops being its queue's buddy.
    pub enum BuddiesCleared = "entity.buddies_cleared" {
        WhenPicked = "when-picked", since "v2.6.31", commit "", "when it is picked";
        WhenSet = "when-set", since "v5.14", commit "21f56ffe4482", "when it becomes curr: not if it was before";
    }
}

behaviour! {
    /// What happens when the last task that is not SCHED_IDLE leaves a CPU.
    pub enum IdleLeft = "entity.idle_left" {
        Nothing = "nothing", since "v2.6.23", commit "", "nothing";
        BalanceSoon = "balance-soon", since "v5.6", commit "323af6deaf70", "periodic balancing is due at once, to pull better work";
    }
}

behaviour! {
    /// Whether a group can be idle as a whole (`cpu.idle`).
    pub enum GroupIdle = "entity.group_idle" {
        Absent = "absent", since "v2.6.24", commit "", "no";
        Settable = "settable", since "v5.15", commit "304000390f88", "yes: it weighs 3, and what is in it preempts nobody outside, as long as groups are picked at each level";
    }
}

behaviour! {
    /// Who decides under EEVDF how long slices are.
    pub enum SliceOf = "entity.slice_of" {
        Tunable = "tunable", since "v6.6", commit "", "base_slice_ns, for all tasks and groups";
        Task = "task", since "v6.12", commit "857b158dc5e8",
            "the task, with sched_setattr() (sched_runtime), else base_slice_ns; a group asks for the shortest slice below it";
    }
}

behaviour! {
    /// How long base_slice_ns is on a machine with one CPU, unless it is written.
    pub enum BaseSlice = "entity.base_slice" {
        Us750 = "750-us", since "v6.6", commit "", "0.75 ms: 3 ms on eight CPUs or more";
        Us700 = "700-us", since "v6.15", commit "2ae891b82695",
            "0.7 ms: 2.8 ms on eight CPUs or more, a little less than three ticks of a millisecond";
    }
}

behaviour! {
    /// How far away the first deadline of a new task is, with PLACE_DEADLINE_INITIAL.
    pub enum NewDeadline = "entity.new_deadline" {
        /// The half one is set at fork (task_fork_fair()), and lost when the task is queued.
        WholeSlice = "whole-slice", since "v6.6", commit "", "a whole slice, which is not what was meant";
        HalfSlice = "half-slice", since "v6.12", commit "c40dd90ac045", "half a slice";
    }
}

behaviour! {
    /// Which of those whose deadlines are equal runs.
    pub enum EqualDeadlines = "entity.equal_deadlines" {
        /// The order of the tree, which is by vruntime.
        LeastService = "least-service", since "v6.6", commit "", "what runs already, else the one with the least vruntime";
        FirstCome = "first-come", since "v6.8", commit "2227a957e1d5", "the one that was queued first, before what runs";
    }
}

behaviour! {
    /// Which feature lets the next buddy be picked before those with earlier deadlines.
    pub enum PickBuddy = "entity.pick_buddy" {
        NextBuddy = "next-buddy", since "v6.6", commit "",
            "NEXT_BUDDY, which is off: neither the task that yield_to() names nor the group that a task fell asleep in is preferred";
        Own = "own", since "v6.14", commit "2a77e4be12cb", "PICK_BUDDY, which is on";
    }
}

behaviour! {
    /// What sched_yield() costs under EEVDF.
    pub enum Yield = "entity.yield" {
        Postponed = "postponed", since "v6.6", commit "",
            "the deadline moves by a slice, each time, and it is no longer protected: who waits runs first, if it is owed something";
        Forfeited = "forfeited", since "v6.19", commit "79104becf42b",
            "what is left of the slice counts as used up, if the task is owed something";
    }
}

behaviour! {
    /// How a wakeup under EEVDF tells that an idle task or group gives way.
    pub enum IdlePreempt = "entity.idle_preempt" {
        Kept = "kept", since "v6.6", commit "",
            "by the tasks' policies, without WAKEUP_PREEMPTION too, and only then by the groups that compete; what is idle stays protected, \
             so that it may be picked again";
        Cancelled = "cancelled", since "v6.15", commit "f553741ac8c0",
            "by what competes, with WAKEUP_PREEMPTION; what is idle is no longer protected";
    }
}

behaviour! {
    /// How the lag of a queued entity is reckoned that gets another weight.
    pub enum ReweightLag = "entity.reweight_lag" {
        /// If it waits; what runs counts among those on the queue.
        FromOthers = "from-others", since "v6.7", commit "eab03c23c2a1",
            "from the average of the others, without what ran since the last update, and without a limit (as in 6.6.17)";
        FromAll = "from-all", since "v6.9", commit "1560d1f6eb6b", "from the average of all, and limited as ever";
    }
}

behaviour! {
    /// By which weights a queue's average vruntime is taken.
    pub enum AverageWeights = "entity.average_weights" {
        Shown = "shown", since "v6.6", commit "",
            "as they are shown, 1024 for nice 0; everything in 64 bits";
        /// With PARANOID_AVG they are halved, for good, whenever a sum would overflow.
        Kept = "kept", since "v7.1", commit "",
            "as they are kept, 1024 times finer, and eligibility in 128 bits";
    }
}

behaviour! {
    /// The most that an entity may be owed, or owe.
    pub enum LagLimit = "entity.lag_limit" {
        OwnSlice = "own-slice", since "v6.6", commit "", "two of its slices, or a tick if that is more";
        LongestSlice = "longest-slice", since "v7.0", commit "",
            "the longest slice on its queue and a tick";
    }
}

behaviour! {
    /// What is owed to a task whose dequeue was delayed, when it leaves or is woken.
    pub enum DelayedLag = "entity.delayed_lag" {
        AtEnd = "at-end", since "v6.12", commit "",
            "what it is owed then, at most nothing (DELAY_ZERO); woken, it is placed anew if it was owed something";
        Kept = "kept", since "v7.1", commit "",
            "the same, but it owes no more than when it fell asleep; woken, it is placed anew if either limit holds it";
    }
}

behaviour! {
    /// How long what was picked is protected from others that wait.
    pub enum SliceProtection = "entity.slice_protection" {
        Deadline = "deadline", since "v6.6", commit "",
            "to its deadline, with RUN_TO_PARITY; nothing happens at the end but the end of the slice";
        /// Who wakes with a slice that is shorter still shortens it (RUN_TO_PARITY). `vprot` and `vlag` are one field.
        ShortestSliceInLag = "shortest-slice-in-lag", since "v6.17", commit "052c3d87c82e",
            "for the shortest slice on its queue, without RUN_TO_PARITY for the unscaled base slice; then it is rescheduled. What it is owed is \
             reckoned in the same place, so the protection is lost as a running group gets another weight, or a running task another nice level, \
             policy, group or set of CPUs";
        ShortestSlice = "shortest-slice", since "v7.0", commit "",
            "the same, and kept whatever else changes";
        /// A wakeup that does not preempt counts the shortest slice from the average vruntime, if the running one is ahead of it.
        UntilIneligible = "until-ineligible", since "v7.3", commit "",
            "the same, but where somebody asks for less, until it is owed nothing any more (with PREEMPT_SHORT)";
    }
}

behaviour! {
    /// What of an entity that is not queued goes along with a new weight.
    ///
    /// Of one that is queued, what it is owed and what is left of its slice always do.
    pub enum Reweight = "entity.reweight" {
        Lag = "lag", since "v6.6", commit "", "what it is owed";
        /// A running entity counts among the others, with its new weight and at its old place, when it is placed.
        PlacedAnew = "placed-anew", since "v6.13", commit "6d71a9c61604",
            "and what is left of its slice, if it comes back with that; one that is queued is placed anew, as if it came with them: with more lag than it had, so that enough of it is left";
        LagAndDeadline = "lag-and-deadline", since "v7.1", commit "",
            "the same, but one that is queued stays where its lag says";
    }
}

behaviour! {
    /// How the lag is reckoned with which an entity has to join others, so that it has its own lag when it is among them.
    pub enum PlacedLag = "entity.placed_lag" {
        Product = "product", since "v6.6", commit "",
            "as a product with the weight of all, which wraps where weights are far apart: then a light entity is owed much that owed it";
        Sum = "sum", since "v7.3", commit "", "as a sum of two parts, each of which fits";
    }
}

behaviour! {
    /// Whether a woken task preempts under EEVDF.
    pub enum WakeupPreempt = "entity.wakeup_preempt" {
        Pick = "pick", since "v6.6", commit "",
            "if it would be picked now, where a shorter slice may end the other one's protection before";
        /// Grown in steps; buddies that heed WF_SYNC came with v6.19.
        ActionsAfterBuddy = "actions-after-buddy", since "v6.19", commit "",
            "the same, but a new or a sleeping task only by a shorter slice, protection ends only if it preempts, sleepers that \
             would be picked leave, and with NEXT_BUDDY it becomes the next one, without preempting a waker that says it is about to sleep; the \
             next one, if it is owed something, goes before any shorter slice (also in late releases of v6.18.y)";
        Actions = "actions", since "v7.1", commit "",
            "the same, but a shorter slice goes before the next one";
        Shorter = "shorter", since "v7.3", commit "",
            "the same, but even while a reschedule is due (with PREEMPT_SHORT); one with a shorter slice if it is only eligible: it is the \
             next one then; who preempts ends the protection, who does not may shorten it";
    }
}

impl BaseSlice {
    /// fair.c: normalized_sysctl_sched_base_slice, in ns. Writing `base_slice_ns` does not change it; only a change of the scaling
    /// would (sched_update_scaling()).
    pub fn normalized_sysctl_sched_base_slice(self) -> u64 {
        match self {
            BaseSlice::Us750 => 750_000,
            BaseSlice::Us700 => 700_000,
        }
    }
}

/// The behaviour of entities in one kernel version.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EntityRules {
    pub pick: Pick,
    pub pick_levels: PickLevels,
    pub sleeper_vruntime: SleeperVruntime,
    pub renormalise: Renormalise,
    pub waking_vruntime: WakingVruntime,
    pub min_vruntime_curr: MinVruntimeCurr,
    pub min_vruntime_dequeue: MinVruntimeDequeue,
    pub long_sleeper: LongSleeper,
    pub exec_start_reset: ExecStartReset,
    pub idle_sleeper: IdleSleeper,
    pub idle_slice: IdleSlice,
    pub tick_slice: TickSlice,
    pub nr_latency: NrLatency,
    pub written_tunables: WrittenTunables,
    pub buddies_cleared: BuddiesCleared,
    pub idle_left: IdleLeft,
    pub group_idle: GroupIdle,
    pub task_list: TaskList,
    pub slice_of: SliceOf,
    pub base_slice: BaseSlice,
    pub new_deadline: NewDeadline,
    pub equal_deadlines: EqualDeadlines,
    pub pick_buddy: PickBuddy,
    pub yields: Yield,
    pub idle_preempt: IdlePreempt,
    pub reweight_lag: ReweightLag,
    pub average_weights: AverageWeights,
    pub lag_limit: LagLimit,
    pub delayed_lag: DelayedLag,
    pub slice_protection: SliceProtection,
    pub reweight: Reweight,
    pub placed_lag: PlacedLag,
    pub wakeup_preempt: WakeupPreempt,
}

behaviour! {
    /// Where `rq->cfs_tasks` keeps a task: load balancing takes from the list's end.
    pub enum TaskList = "entity.task_list" {
        ByEnqueue = "by-enqueue", since "v2.6.39", commit "", "by enqueue, the newest first";
        ByLastRun = "by-last-run", since "v4.15", commit "93824900a2e2",
            "who is picked moves to the front, so the end holds what ran longest ago";
    }
}

impl EntityRules {
    /// v4.5-rc1 and v4.5.
    pub const V4_5: EntityRules = EntityRules {
        pick: Pick::Cfs,
        pick_levels: PickLevels::Each,
        sleeper_vruntime: SleeperVruntime::RelativeOnWakeup,
        renormalise: Renormalise::BeforeUpdateCurr,
        waking_vruntime: WakingVruntime::Relative,
        min_vruntime_curr: MinVruntimeCurr::EvenDequeued,
        min_vruntime_dequeue: MinVruntimeDequeue::Always,
        long_sleeper: LongSleeper::Compared,
        exec_start_reset: ExecStartReset::AtMigration,
        idle_sleeper: IdleSleeper::Latency,
        idle_slice: IdleSlice::MinGranularity,
        tick_slice: TickSlice::Whole,
        nr_latency: NrLatency::Ratio,
        written_tunables: WrittenTunables::Normalized,
        buddies_cleared: BuddiesCleared::WhenPicked,
        idle_left: IdleLeft::Nothing,
        group_idle: GroupIdle::Absent,
        task_list: TaskList::ByEnqueue,
        slice_of: SliceOf::Tunable,
        base_slice: BaseSlice::Us750,
        new_deadline: NewDeadline::WholeSlice,
        equal_deadlines: EqualDeadlines::LeastService,
        pick_buddy: PickBuddy::NextBuddy,
        yields: Yield::Postponed,
        idle_preempt: IdlePreempt::Kept,
        reweight_lag: ReweightLag::FromOthers,
        average_weights: AverageWeights::Shown,
        lag_limit: LagLimit::OwnSlice,
        delayed_lag: DelayedLag::AtEnd,
        slice_protection: SliceProtection::Deadline,
        reweight: Reweight::Lag,
        placed_lag: PlacedLag::Product,
        wakeup_preempt: WakeupPreempt::Pick,
    };

    /// v4.15 and v4.16.
    pub const V4_15: EntityRules = EntityRules {
        sleeper_vruntime: SleeperVruntime::RelativeOnMigration,
        renormalise: Renormalise::AfterUpdateCurr,
        min_vruntime_curr: MinVruntimeCurr::OnlyQueued,
        min_vruntime_dequeue: MinVruntimeDequeue::OnlyToRestore,
        task_list: TaskList::ByLastRun,
        ..EntityRules::V4_5
    };

    /// As in 4.19.108.
    pub const V4_19: EntityRules = EntityRules {
        waking_vruntime: WakingVruntime::RelativeIfMigrated,
        min_vruntime_dequeue: MinVruntimeDequeue::UnlessRestored,
        ..EntityRules::V4_15
    };

    /// As in 5.4.286, which is newer in `long_sleeper` than v5.4 itself, and in `exec_start_reset` neither as v5.4 nor as v5.10.
    pub const V5_4: EntityRules = EntityRules {
        long_sleeper: LongSleeper::Forgotten,
        exec_start_reset: ExecStartReset::AtActivation,
        ..EntityRules::V4_19
    };

    /// As in 5.10.262.
    pub const V5_10: EntityRules = EntityRules {
        idle_left: IdleLeft::BalanceSoon,
        exec_start_reset: ExecStartReset::AtEnqueue,
        ..EntityRules::V5_4
    };

    /// As in 5.15.135.
    pub const V5_15: EntityRules = EntityRules {
        nr_latency: NrLatency::Eight,
        written_tunables: WrittenTunables::Lost,
        buddies_cleared: BuddiesCleared::WhenSet,
        group_idle: GroupIdle::Settable,
        ..EntityRules::V5_10
    };

    pub const V6_1: EntityRules = EntityRules {
        idle_sleeper: IdleSleeper::MinGranularity,
        idle_slice: IdleSlice::IdleMinGranularity,
        ..EntityRules::V5_15
    };

    /// As in 6.6.17.
    pub const V6_6: EntityRules =
        EntityRules { pick: Pick::Eevdf, tick_slice: TickSlice::Latency, ..EntityRules::V6_1 };

    /// As in 6.12.117, which is newer in `base_slice`, `yields` and `idle_preempt` than v6.12 itself.
    pub const V6_12: EntityRules = EntityRules {
        slice_of: SliceOf::Task,
        base_slice: BaseSlice::Us700,
        new_deadline: NewDeadline::HalfSlice,
        equal_deadlines: EqualDeadlines::FirstCome,
        pick_buddy: PickBuddy::Own,
        yields: Yield::Forfeited,
        idle_preempt: IdlePreempt::Cancelled,
        reweight_lag: ReweightLag::FromAll,
        ..EntityRules::V6_6
    };

    /// As in 6.18.35, which is newer in `yields`, `lag_limit` and `wakeup_preempt` than v6.18 itself.
    pub const V6_18: EntityRules = EntityRules {
        lag_limit: LagLimit::LongestSlice,
        slice_protection: SliceProtection::ShortestSliceInLag,
        reweight: Reweight::PlacedAnew,
        wakeup_preempt: WakeupPreempt::ActionsAfterBuddy,
        ..EntityRules::V6_12
    };

    pub const V7_2: EntityRules = EntityRules {
        average_weights: AverageWeights::Kept,
        slice_protection: SliceProtection::ShortestSlice,
        delayed_lag: DelayedLag::Kept,
        reweight: Reweight::LagAndDeadline,
        wakeup_preempt: WakeupPreempt::Actions,
        ..EntityRules::V6_18
    };

    pub const V7_3: EntityRules = EntityRules {
        pick_levels: PickLevels::Flat,
        slice_protection: SliceProtection::UntilIneligible,
        placed_lag: PlacedLag::Sum,
        wakeup_preempt: WakeupPreempt::Shorter,
        ..EntityRules::V7_2
    };
}
