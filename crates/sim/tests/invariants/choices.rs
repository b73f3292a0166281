//! What random cases choose from.

use sched::sysctl::Tunable;

/// Features that a case may switch. Whatever their position, the invariants hold, but for the promise of balance: see `is_plain`.
pub const FEATURES: [&str; 25] = [
    "LB_MIN",
    "GENTLE_FAIR_SLEEPERS",
    "START_DEBIT",
    "NEXT_BUDDY",
    "LAST_BUDDY",
    "CACHE_HOT_BUDDY",
    "WAKEUP_PREEMPTION",
    "LB_BIAS",
    "TTWU_QUEUE",
    "SIS_AVG_CPU",
    "SIS_PROP",
    "WA_IDLE",
    "WA_WEIGHT",
    "WA_BIAS",
    "ATTACH_AGE_LOAD",
    "ALT_PERIOD",
    "BASE_SLICE",
    "PLACE_LAG",
    "PLACE_DEADLINE_INITIAL",
    "PLACE_REL_DEADLINE",
    "RUN_TO_PARITY",
    "PREEMPT_SHORT",
    "PICK_BUDDY",
    "DELAY_DEQUEUE",
    "DELAY_ZERO",
];

pub const SYSCTLS: [(Tunable, u64); 11] = [
    (Tunable::sched_latency, 100_000),
    (Tunable::sched_min_granularity, 10_000_000),
    (Tunable::sched_wakeup_granularity, 0),
    (Tunable::sched_migration_cost, 0),
    (Tunable::sched_migration_cost, 5_000_000),
    (Tunable::sched_nr_migrate, 2),
    (Tunable::sched_child_runs_first, 1),
    (Tunable::sched_schedstats, 1),
    (Tunable::sched_idle_min_granularity, 100_000),
    (Tunable::sched_base_slice, 100_000),
    (Tunable::sched_base_slice, 20_000_000),
];

/// 1 to 16 CPUs: flat, with SMT, with several last level caches, packages and NUMA nodes.
pub const MACHINES: [&str; 14] = [
    "pack:1 core:1 pu:1",
    "pack:1 core:2 pu:1",
    "pack:1 core:1 pu:2",
    "pack:1 core:3 pu:1",
    "pack:1 core:2 pu:2",
    "pack:2 core:2 pu:1",
    "pack:1 core:8 pu:1",
    "pack:2 core:2 pu:2",
    "pack:1 l3:2 core:2 pu:2",
    "pack:1 core:6 pu:2",
    "pack:2 numa:1 core:4 pu:1",
    "pack:2 numa:1 core:4 pu:2",
    "pack:2 numa:2 core:2 pu:2",
    "pack:4 numa:1 core:4 pu:1",
];
