//! What differs between kernel versions in kernel/workqueue.c.

use sched::behaviour;

behaviour! {
    /// Which CPUs share a pool of unbound workers, and where those run.
    pub enum UnboundPods = "workqueue.unbound" {
        Node = "node", since "v3.10", commit "4c16bd327c74", "those of a NUMA node, where its workers stay";
        Cache = "cache", since "v6.6", commit "8639ecebc9b1",
            "those of a last level cache (WQ_AFFN_CACHE); its workers may run everywhere, and are woken there";
        CacheShard = "cache-shard", since "v7.1", commit "",
            "the same of up to a dozen cores of such a cache (WQ_AFFN_CACHE_SHARD), eight where they come out even";
    }
}

behaviour! {
    /// From when on a worker of a bound pool counts again that slept in the middle of its work. While one counts, no other is asked.
    pub enum WorkerCounts = "workqueue.counts" {
        Woken = "woken", since "v2.6.36", commit "e22bee782b3b",
            "since it was woken (wq_worker_waking_up()): what comes before it runs is left to it";
        Running = "running", since "v5.2", commit "6d25be5782e4",
            "since it runs (wq_worker_running()): until then another one may be asked";
    }
}

behaviour! {
    /// Whether who leaves work, or takes it, holds the pool's lock while it wakes a worker.
    pub enum WorkerWakeup = "workqueue.wakeup" {
        Locked = "locked", since "v2.6.36", commit "", "it does: who wants the lock waits for the wakeup too";
        Unlocked = "unlocked", since "v7.3", commit "",
            "it picks the worker under the lock, and wakes it when it has let go of that; only who sleeps in the middle of its work still holds it";
    }
}
