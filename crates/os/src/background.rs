//! What kernels do by themselves (kernel/watchdog.c, mm/vmstat.c), on request, as far as it differs between them.

use sched::behaviour;

behaviour! {
    /// Who touches the time stamp by which the watchdog's timer sees that a CPU is not stuck.
    pub enum Softlockup = "noise.softlockup" {
        Threads = "threads", since "v2.6.36", commit "", "a thread of each CPU, watchdog/N";
        Stopper = "stopper", since "v4.19", commit "9cf57731b63e", "each CPU's stopper, migration/N, asked by the timer";
    }
}

behaviour! {
    /// What a CPU that goes idle does about its counters of memory, so that no work of its own has to come back for them.
    pub enum QuietVmstat = "idle.quiet_vmstat" {
        EachTime = "each-time", since "v4.5", commit "0eb77e988032",
            "says in a mask of all CPUs that its work is off and folds the counters of all zones until nothing is left, each time that it enters the idle loop";
        OnceOff = "once-off", since "v4.6", commit "f01f17d3705b",
            "the same, but once it is in the mask it only looks there (v4.5 has it, but not v4.5-rc1)";
        /// From v4.7 to v4.9, in v4.13 and v4.14 at each entry of the idle loop; from v4.10 to v4.12 not at all.
        WithTick = "with-tick", since "v4.7", commit "",
            "folds them as its tick stops (from v4.15 on; before, as it idles), if its work is pending; there is no mask";
    }
}

behaviour! {
    /// What a CPU's work on its counters of memory waits for.
    pub enum VmstatTimer = "noise.vmstat" {
        Standard = "standard", since "v2.6.0", commit "", "a timer that wakes an idle CPU";
        Deferrable = "deferrable", since "v4.6", commit "ccde8bd4014e",
            "one that a CPU without ticks does not wake for (v4.5 has it, but not v4.5-rc1)";
    }
}

behaviour! {
    /// Whether isolated CPUs, those of isolcpus= and nohz_full=, have such work.
    pub enum VmstatIsolated = "noise.vmstat_isolated" {
        Served = "served", since "v2.6.0", commit "", "they do";
        Spared = "spared", since "v6.5", commit "be5e015d107d", "nobody starts it there";
    }
}

behaviour! {
    /// What the thread of each node waits for that moves pages together.
    pub enum Kcompactd = "noise.kcompactd" {
        Asked = "asked", since "v4.6", commit "", "somebody who wants memory in one piece, who is not modelled";
        Proactive = "proactive", since "v5.9", commit "facdaa917c4d", "the same, and half a second: then it looks at how far the node is in pieces";
    }
}

behaviour! {
    /// Where a page that a CPU allocates is counted for its node (NUMA_HIT, NUMA_LOCAL).
    pub enum NumaEvents = "noise.numa_events" {
        Among = "among", since "v2.6.18", commit "", "among the counters for whose sake a CPU has work on them";
        Apart = "apart", since "v5.14", commit "f19298b9516c", "apart from them, where nobody adds them up without being asked";
    }
}
