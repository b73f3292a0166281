//! What differs between kernels in what they do by themselves (kernel/watchdog.c, mm/vmstat.c), where somebody asks for that.

use sched::behaviour;

behaviour! {
    /// Who touches the time stamp by which the watchdog's timer sees that a CPU is not stuck.
    pub enum Softlockup = "noise.softlockup" {
        Threads = "threads", since "v2.6.36", commit "", "a thread of each CPU, watchdog/N";
        Stopper = "stopper", since "v4.19", commit "9cf57731b63e", "each CPU's stopper, migration/N, asked by the timer";
    }
}

behaviour! {
    /// What a CPU's work on its counters of memory waits for.
    pub enum VmstatTimer = "noise.vmstat" {
        Standard = "standard", since "v2.6.0", commit "", "a timer that wakes an idle CPU";
        Deferrable = "deferrable", since "v4.7", commit "ccde8bd4014e", "one that a CPU without ticks does not wake for";
    }
}
