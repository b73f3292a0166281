//! Which kernels have cache-aware scheduling.

use crate::behaviour;

behaviour! {
    /// Whether load balancing gathers the threads of a process below one last level cache.
    pub enum CacheAware = "cache.aware" {
        Absent = "absent", since "v2.6.23", commit "", "no";
        PreferredLlc = "preferred-llc", since "v7.2", commit "",
            "yes, where there are several: a process prefers the cache below which it runs most, as long as its threads and its \
             memory fit there, and its threads are pulled towards it and held back from leaving it (CONFIG_SCHED_CACHE)";
    }
}

behaviour! {
    /// Whether an idle CPU of higher priority (SD_ASYM_PACKING) takes tasks from the last level cache that they prefer.
    pub enum CachePacking = "cache.asym_packing" {
        After = "after", since "v7.2", commit "", "only if no preference is against it";
        Before = "before", since "v7.3", commit "",
            "yes; and from a group over which the pulling CPU has priority nothing is pulled because of preferences";
    }
}
