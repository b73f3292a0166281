//! How bandwidth control differs between kernel versions.

use crate::behaviour;

behaviour! {
    /// How long a queue may keep the runtime it has got.
    pub enum RuntimeExpiry = "bandwidth.expiry" {
        ByClock = "by-clock", since "v3.2", commit "",
            "until the period ends in which it was handed out: what is left then is void";
        /// v4.19.y has it too.
        Never = "never", since "v5.4", commit "de53fd7aedb1", "until it is used, or the queue falls idle";
    }
}

behaviour! {
    /// What a new period brings.
    pub enum Refill = "bandwidth.refill" {
        Quota = "quota", since "v3.2", commit "", "the quota, whatever was left of the last one; none if the group was idle";
        BurstUncounted = "burst-uncounted", since "v5.14", commit "f4183717b370",
            "the quota on top of what was left, up to quota and burst together (cpu.max.burst); an idle group's as well";
        Burst = "burst", since "v5.16", commit "bcb1704a1ed2", "the same, and cpu.stat tells how often and how much more than the quota was used";
    }
}

impl Refill {
    /// Whether a group may save a burst.
    pub fn bursts(self) -> bool {
        self != Refill::Quota
    }
}

behaviour! {
    /// How a refilled group's throttled queues get their runtime.
    pub enum Distribute = "bandwidth.distribute" {
        Lump = "lump", since "v3.2", commit "",
            "from a copy of the group's runtime, which is lowered when all are served: meanwhile others may take the same";
        Pool = "pool", since "v5.7", commit "26a8b12747c9", "each takes its part from the group's runtime itself";
        OwnCpu = "own-cpu", since "v6.3", commit "8ad075c2eb1f",
            "the same, and each CPU unthrottles its own queue, told by an interrupt; the timer's CPU the last";
    }
}

behaviour! {
    /// Who leaves for it where a queue is throttled.
    ///
    /// With the tasks: the averages go on while something is queued, only a queue with runtime is unthrottled, a quota that is written leaves
    /// each queue a nanosecond, and balancing only spares CPUs where tasks would be throttled. What [`ThrottledLeaf`], [`ThrottledClock`],
    /// [`ThrottledAccounting`], [`ThrottleAsks`] and [`ThrottleLevels`] answer is not asked then.
    pub enum Throttle = "bandwidth.throttle" {
        Queue = "queue", since "v3.2", commit "",
            "the queue, at the next reschedule, with all that is below it, whatever that is in the middle of";
        TaskOncePicked = "task-once-picked", since "v6.18", commit "e1fad12dcb66",
            "each of its tasks, on its way to user mode, once it was picked when the queue had no runtime: not within a system call, nor kernel \
             threads at all";
        Task = "task", since "v7.2", commit "",
            "the same, but the queue is throttled when its runtime ends, no longer at the next reschedule: what runs then leaves without another pick";
    }
}

impl Throttle {
    /// Whether the queue stays, and tasks leave.
    #[inline]
    pub fn by_task(self) -> bool {
        self != Throttle::Queue
    }
}

behaviour! {
    /// Throttled queues of a CPU that goes on while the scheduling domains are built anew.
    pub enum UnthrottleOffline = "bandwidth.unthrottle_offline" {
        All = "all", since "v4.3", commit "", "are unthrottled, as those of one that goes offline";
        Inactive = "inactive", since "v6.14", commit "", "stay throttled";
    }
}

behaviour! {
    /// What a queue that ran out of runtime does before it is throttled.
    pub enum ThrottleAsks = "bandwidth.throttle_asks" {
        AtOnce = "at-once", since "v3.2", commit "",
            "nothing, and it goes to the front of the group's throttled queues, where a distribution under way does not see it";
        AtOnceAtEnd = "at-once-at-end", since "v4.19", commit "",
            "nothing, and it goes to the end of the group's throttled queues, unless a distribution is under way, which must not see it (after \
             v4.16, by v4.19)";
        OnceMore = "once-more", since "v5.8", commit "e98fa02c4f2e",
            "asks for a nanosecond once more, or else goes to the end of the group's throttled queues";
    }
}

behaviour! {
    /// The averages of the levels above a queue that is throttled, or no longer is, where their entities stay queued.
    pub enum ThrottleLevels = "bandwidth.throttle_levels" {
        CountsOnly = "counts-only", since "v3.2", commit "", "as they are: only the numbers of runnable tasks follow";
        ThrottledLevel = "throttled-level", since "v5.4.y", commit "",
            "as they are, but those of a throttled queue with whatever comes and goes below it (as in 5.4.286)";
        Averages = "averages", since "v5.7", commit "6212437f0f60", "brought up to date";
    }
}

behaviour! {
    /// What a throttled queue that is accounted for does.
    pub enum ThrottledAccounting = "bandwidth.throttled_accounting" {
        Assigns = "assigns", since "v3.2", commit "", "it asks for runtime like any other, and may get it while throttled";
        /// v4.19.y has it too.
        Nothing = "nothing", since "v5.3", commit "5e2d2cc2588b", "it asks for nothing";
    }
}

behaviour! {
    /// Unused runtime that comes back while a handing out of such runtime is on its way already.
    pub enum SlackTimer = "bandwidth.slack_timer" {
        PushForward = "push-forward", since "v3.2", commit "", "puts it off by another 5 ms";
        Once = "once", since "v5.3", commit "66567fcbaeca", "leaves it where it is";
    }
}

behaviour! {
    /// A period timer that finds, again and again, that its next period is over already.
    pub enum PeriodOverrun = "bandwidth.period_overrun" {
        Unbounded = "unbounded", since "v3.2", commit "", "goes on";
        /// v4.19.y has it too.
        ScaleUpBefore = "scale-up-before", since "v5.4", commit "4929a4e6faa0",
            "in every fourth round period and quota are doubled, as long as the period stays below a second, and then the group gets its runtime";
        ScaleUp = "scale-up", since "v5.8", commit "5a6d6a6ccb5f",
            "the same, with the burst, after the group has got its runtime (as in 5.4.286 and 5.10.262)";
    }
}

behaviour! {
    /// When a group's periods begin.
    pub enum PeriodOffset = "bandwidth.period_offset" {
        Aligned = "aligned", since "v4.3", commit "", "at multiples of the period since boot: all groups' at once";
        Interleaved = "interleaved", since "v6.4", commit "41abdba93747", "at an offset of the group's own";
    }
}

behaviour! {
    /// Throttled queues on the list of those that balancing ages.
    pub enum ThrottledLeaf = "bandwidth.throttled_leaf" {
        Listed = "listed", since "v3.2", commit "", "stay on it, and are passed over";
        /// v4.19.y has it too.
        UnlistedWhileEmpty = "unlisted-while-empty", since "v5.1", commit "31bc6aeaab1d",
            "leave it, and all queues below them, until something is queued there and they are unthrottled";
        Unlisted = "unlisted", since "v5.13", commit "a7b359fc6a37", "leave it, and all queues below them, until they are unthrottled";
    }
}

behaviour! {
    /// The time of a throttled queue that had been throttled before.
    pub enum ThrottledClock = "bandwidth.throttled_clock" {
        Unadjusted = "unadjusted", since "v3.8", commit "",
            "stands at the CPU's time, as if it had never been throttled: too late by what it had stood still before";
        Adjusted = "adjusted", since "v4.8", commit "1a99ae3f00d3", "stands where it was";
    }
}

behaviour! {
    /// Throttled time of a queue with nothing to run.
    pub enum ThrottledTime = "bandwidth.throttled_time" {
        Always = "always", since "v3.2", commit "", "counts as any";
        WhileQueued = "while-queued", since "v6.6", commit "79462e8c879a",
            "counts from when something is queued; the group's own, without what those above it throttled, counts apart";
    }
}

behaviour! {
    /// A group made below a throttled one.
    pub enum NewGroupThrottled = "bandwidth.new_group_throttled" {
        Unaware = "unaware", since "v3.2", commit "", "does not know that it is throttled";
        /// v4.7 did it when the group first had something to run (094f469172e0).
        Synchronised = "synchronised", since "v4.8", commit "55e16d30bd99", "is throttled from the start";
    }
}

behaviour! {
    /// A running task that moves to another group, which may be throttled.
    pub enum MoveRunning = "bandwidth.move_running" {
        GoesOn = "goes-on", since "v3.2", commit "", "goes on until its queue is next accounted for";
        Reschedules = "reschedules", since "v5.6", commit "2a4b03ffc69f", "must be picked again";
    }
}

/// How quotas are enforced, in one kernel version.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BandwidthRules {
    pub throttle: Throttle,
    pub unthrottle_offline: UnthrottleOffline,
    pub expiry: RuntimeExpiry,
    pub refill: Refill,
    pub distribute: Distribute,
    pub throttle_asks: ThrottleAsks,
    pub throttle_levels: ThrottleLevels,
    pub throttled_accounting: ThrottledAccounting,
    pub slack_timer: SlackTimer,
    pub period_overrun: PeriodOverrun,
    pub period_offset: PeriodOffset,
    pub throttled_leaf: ThrottledLeaf,
    pub throttled_clock: ThrottledClock,
    pub throttled_time: ThrottledTime,
    pub new_group_throttled: NewGroupThrottled,
    pub move_running: MoveRunning,
}

impl BandwidthRules {
    pub const V4_5: BandwidthRules = BandwidthRules {
        throttle: Throttle::Queue,
        unthrottle_offline: UnthrottleOffline::All,
        expiry: RuntimeExpiry::ByClock,
        refill: Refill::Quota,
        distribute: Distribute::Lump,
        throttle_asks: ThrottleAsks::AtOnce,
        throttle_levels: ThrottleLevels::CountsOnly,
        throttled_accounting: ThrottledAccounting::Assigns,
        slack_timer: SlackTimer::PushForward,
        period_overrun: PeriodOverrun::Unbounded,
        period_offset: PeriodOffset::Aligned,
        throttled_leaf: ThrottledLeaf::Listed,
        throttled_clock: ThrottledClock::Unadjusted,
        throttled_time: ThrottledTime::Always,
        new_group_throttled: NewGroupThrottled::Unaware,
        move_running: MoveRunning::GoesOn,
    };

    pub const V4_15: BandwidthRules = BandwidthRules {
        throttled_clock: ThrottledClock::Adjusted,
        new_group_throttled: NewGroupThrottled::Synchronised,
        ..BandwidthRules::V4_5
    };

    /// As in 4.19.108, which is newer in `expiry`, `throttled_accounting`, `period_overrun` and `throttled_leaf` than v4.19 itself.
    pub const V4_19: BandwidthRules = BandwidthRules {
        expiry: RuntimeExpiry::Never,
        throttle_asks: ThrottleAsks::AtOnceAtEnd,
        throttled_accounting: ThrottledAccounting::Nothing,
        period_overrun: PeriodOverrun::ScaleUpBefore,
        throttled_leaf: ThrottledLeaf::UnlistedWhileEmpty,
        ..BandwidthRules::V4_15
    };

    /// As in 5.4.286, which is newer in `throttle_asks`, `period_overrun` and `move_running` than v5.4 itself.
    pub const V5_4: BandwidthRules = BandwidthRules {
        throttle_asks: ThrottleAsks::OnceMore,
        throttle_levels: ThrottleLevels::ThrottledLevel,
        slack_timer: SlackTimer::Once,
        period_overrun: PeriodOverrun::ScaleUp,
        move_running: MoveRunning::Reschedules,
        ..BandwidthRules::V4_19
    };

    pub const V5_10: BandwidthRules = BandwidthRules {
        distribute: Distribute::Pool,
        throttle_levels: ThrottleLevels::Averages,
        ..BandwidthRules::V5_4
    };

    /// As in 5.15.135.
    pub const V5_15: BandwidthRules = BandwidthRules {
        refill: Refill::BurstUncounted,
        throttled_leaf: ThrottledLeaf::Unlisted,
        ..BandwidthRules::V5_10
    };

    pub const V6_1: BandwidthRules = BandwidthRules { refill: Refill::Burst, ..BandwidthRules::V5_15 };

    pub const V6_6: BandwidthRules = BandwidthRules {
        distribute: Distribute::OwnCpu,
        period_offset: PeriodOffset::Interleaved,
        throttled_time: ThrottledTime::WhileQueued,
        ..BandwidthRules::V6_1
    };

    pub const V6_12: BandwidthRules = BandwidthRules::V6_6;

    /// As in 6.18.35.
    pub const V6_18: BandwidthRules = BandwidthRules {
        throttle: Throttle::TaskOncePicked,
        unthrottle_offline: UnthrottleOffline::Inactive,
        ..BandwidthRules::V6_12
    };

    pub const V7_2: BandwidthRules = BandwidthRules { throttle: Throttle::Task, ..BandwidthRules::V6_18 };
}
