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
