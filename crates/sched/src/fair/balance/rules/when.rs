//! Behaviours: when balancing is tried, by which CPU, and what it may cost.

use crate::behaviour;

behaviour! {
    /// Which CPU of a group balances for it.
    pub enum ShouldWeBalance = "balance.should_we_balance" {
        FirstIdleCpu = "first-idle-cpu", since "v3.12", commit "", "the first that idles, or the first";
        IdleCoreFirst = "idle-core-first", since "v6.6", commit "b1bfeab9b002",
            "the first whose core idles, if that is no domain of SMT siblings; else the first that idles, or the first";
    }
}

behaviour! {
    /// When newly-idle balancing is given up, because a task has come meanwhile.
    pub enum NewidleBail = "balance.newidle_bail" {
        BetweenDomains = "between-domains", since "v2.6.7", commit "", "after each domain";
        ForWakeups = "for-wakeups", since "v5.14", commit "e5e678e4fea2",
            "the same, also when a wakeup is on the way (ttwu_pending); then it does not even begin";
        BeforeEachSearch = "before-each-search", since "v6.0", commit "792b9f65a568", "the same, and before each search";
    }
}

behaviour! {
    /// When a CPU that is about to idle does not look for work.
    pub enum NewidleGate = "balance.newidle_gate" {
        MigrationCost = "migration-cost", since "v2.6.31", commit "", "when it expects to idle less than sched_migration_cost";
        DomainCost = "domain-cost", since "v5.16", commit "c5b0a7eefc70",
            "when it expects to idle less than a search of its lowest domain costs";
    }
}

behaviour! {
    /// What newly-idle balancing counts as its cost.
    pub enum NewidleCost = "balance.newidle_cost" {
        Search = "search", since "v3.13", commit "", "the search in each domain";
        WithAveraging = "with-averaging", since "v5.16", commit "9e9af819db5d",
            "the same, and for the first domain what update_blocked_averages() took";
    }
}

behaviour! {
    /// When `max_newidle_lb_cost` of a domain decays, by about 1%.
    pub enum NewidleDecay = "balance.newidle_decay" {
        EverySecond = "every-second", since "v3.13", commit "", "every second, on a periodic visit";
        SinceMaximum = "since-maximum", since "v5.16", commit "e60b56e46b38",
            "a second after the last decay or the last maximum, on any visit; rq->max_idle_balance_cost when the widest does";
    }
}

behaviour! {
    /// When newly-idle balancing notes at which time its domains are due.
    pub enum NewidleDue = "balance.newidle_due" {
        Afterwards = "afterwards", since "v3.13", commit "", "after the balance of each";
        First = "first", since "v5.16", commit "8ea9183db4ad", "before it";
    }
}

behaviour! {
    /// When newly-idle balancing does not go on to the next domain.
    pub enum NewidleStop = "balance.newidle_stop" {
        TaskHere = "task-here", since "v2.6.7", commit "", "when a task was pulled or has come";
        NotOurs = "not-ours", since "v6.10", commit "c829d6818b60",
            "when a task was pulled, or another CPU balances, which is so when a task has come";
    }
}

behaviour! {
    /// What newly-idle balancing that finds nothing does to the balance interval.
    pub enum NewidleInterval = "balance.newidle_interval" {
        Doubled = "doubled", since "v2.6.7", commit "", "doubles it";
        Kept = "kept", since "v5.0", commit "3f130a37c442", "nothing";
    }
}

behaviour! {
    /// How long a busy CPU waits between two balances of a domain.
    pub enum BusyInterval = "balance.busy_interval" {
        Whole = "whole", since "v2.6.7", commit "", "busy_factor times the interval";
        OneJiffyLess = "one-jiffy-less", since "v5.10", commit "e4d32e4d5444", "a jiffy less, so that levels do not meet again and again";
    }
}

behaviour! {
    /// Whether a CPU that runs only SCHED_IDLE tasks is busy for periodic balancing.
    pub enum IdlePolicyCpu = "balance.idle_policy_cpu" {
        Busy = "busy", since "v2.6.23", commit "", "yes";
        Idle = "idle", since "v5.6", commit "323af6deaf70", "no: it balances as often as an idle one";
    }
}

behaviour! {
    /// How CPUs without ticks are balanced for.
    pub enum NohzBalance = "balance.nohz" {
        OneKick = "one-kick", since "v3.1", commit "", "a kicked CPU balances for all others, then for itself; blocked load ages with it";
        AnyKickPutsOff = "any-kick-puts-off", since "v4.17", commit "a4064fb614f8",
            "kicks say what to do: age blocked load and balance, or only age it (NOHZ_STATS_KICK), for all others, then for the kicked CPU itself; \
             one that goes idle ages for them instead of a search for work, or in the groups that it searches; either kick puts the next balance \
             off by a jiffy, and when that is due is known of all others that were looked at, not of the kicked CPU itself (as in 4.19.108)";
        FlagsAndOwn = "flags-and-own", since "v5.9", commit "",
            "the same, but a kick to balance alone puts it off, to the next jiffy, and when it is due is known only if all were looked at, the kicked CPU too";
        Flags = "flags", since "v5.13", commit "c6f886546cb8",
            "the same for the others alone; one that found no work may age for them on its way into the idle loop; also in late releases of v5.10.y";
    }
}

impl NohzBalance {
    /// Whether the kicked CPU works for all others and for itself, and one that goes idle may age load for others.
    #[inline]
    pub fn and_own(self) -> bool {
        matches!(self, NohzBalance::AnyKickPutsOff | NohzBalance::FlagsAndOwn)
    }
}

behaviour! {
    /// Whether a CPU whose tick stops brings forward when the next balance for such CPUs is due, where kicks say what to do.
    pub enum NohzNews = "balance.nohz_news" {
        Untold = "untold", since "v4.17", commit "", "no: the next balance comes when the last one said";
        Told = "told", since "v5.16", commit "7fd7a9e0caba", "yes, by a kick that has it reckoned anew (NOHZ_NEXT_KICK)";
    }
}

behaviour! {
    /// Whether a CPU without ticks balances for others while it is told to reschedule (`need_resched()`).
    ///
    /// Since v5.8 a kick itself tells so an idle CPU that polls (b2a02fc43a1f), as CPUs do that wait with MWAIT.
    pub enum KickedResched = "balance.kicked_resched" {
        Stops = "stops", since "v3.1", commit "", "no: it does not begin, or goes no further";
        StopsIfBusy = "stops-if-busy", since "v6.13", commit "ff47a0acfcce",
            "yes, unless it has something to run (begun in any case: ea9cffc0a154); also in late releases of v5.10.y, v6.1.y and v6.12.y";
    }
}

behaviour! {
    /// Which CPU without ticks is kicked.
    pub enum NewIlb = "balance.new_ilb" {
        FirstOfMask = "first-of-mask", since "v3.1", commit "", "the first of the mask, or none if that one does not idle now";
        /// v4.19.y has it too.
        FirstIdle = "first-idle", since "v5.2", commit "9b019acb72e4",
            "the first of the mask that idles now; since v5.11 not the kicker, which a tick's kick never finds there";
        IdleCoreFirst = "idle-core-first", since "v7.3", commit "",
            "the first of the mask whose core idles; else the first that idles";
    }
}

behaviour! {
    /// Whether a kick that adds nothing to one that is on its way touches the flags.
    pub enum KickIlb = "balance.kick_ilb" {
        Always = "always", since "v4.17", commit "a4064fb614f8", "yes";
        IfNew = "if-new", since "v6.11", commit "f90cc919f9e5", "no: they are read first";
    }
}

behaviour! {
    /// How a busy CPU's tick sees that some CPUs idle without ticks.
    pub enum NohzCount = "balance.nohz_count" {
        Counted = "counted", since "v2.6.36", commit "",
            "by their number, which each of them changes, and each tick looks at";
        MaskWhenDue = "mask-when-due", since "v7.0", commit "",
            "by their mask, and only when they are due to be balanced";
    }
}

behaviour! {
    /// What `cpu_load[]` makes of time without ticks.
    pub enum TicklessLoad = "balance.tickless_load" {
        Idle = "idle", since "v3.5", commit "", "the end of it counts as idle; a tick within it forgets it";
        Recorded = "recorded", since "v4.7", commit "1f41906a6fda",
            "the load at its begin is recorded and counts, for ticks within it too";
        Absent = "absent", since "v5.3", commit "5e83eafbfd3b", "there is no cpu_load[]";
    }
}

behaviour! {
    /// Whether group queues that have decayed to nothing stay on the list that `update_blocked_averages()` walks.
    pub enum DecayedQueues = "balance.decayed_queues" {
        Listed = "listed", since "v2.6.38", commit "", "they stay until their group is gone";
        Removed = "removed", since "v4.13", commit "a9e7f6544b9c", "they are taken off";
    }
}

behaviour! {
    /// What of balancing between nodes only one CPU of the machine does at a time (SD_SERIALIZE).
    pub enum Serialized = "balance.serialized" {
        PeriodicVisit = "periodic-visit", since "v2.6.26", commit "",
            "a periodic visit of the domain, due or not, by a lock (balancing); the domain stays due for whoever comes second";
        FlaggedVisit = "flagged-visit", since "v6.10", commit "214c1b7f1395",
            "the same by a flag, which is tried to be set without a look at it first (sched_balance_running; after v6.1, by v6.12)";
        Search = "search", since "v6.19", commit "",
            "the search, newly idle ones too, of the CPU that is to do it; who comes second counts as balanced \
             (sched_balance_running; after v6.18, by v7.2; also in late releases of v6.18.y)";
    }
}

behaviour! {
    /// Under which lock a CPU that looks for work before it idles ages its own load.
    pub enum NewidleAverages = "balance.newidle_averages" {
        Relocked = "relocked", since "v3.13", commit "", "it drops its queue's lock and takes it again, and looks at the clock again";
        BeforeUnlock = "before-unlock", since "v7.0", commit "", "the one that it has, before it drops it";
    }
}

behaviour! {
    /// What NI_RANDOM makes of a domain in which nearly every search succeeds.
    pub enum NewidleOdds = "balance.newidle_odds" {
        AsCounted = "as-counted", since "v6.19", commit "33cf66d88306", "the rate, which may exceed all calls, says how often to search";
        Certain = "certain", since "v7.1", commit "",
            "the rate ends at all calls, and then no dice are thrown; with NI_RATE seldom searches raise it";
    }
}
