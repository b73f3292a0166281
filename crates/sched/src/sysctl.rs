//! kernel/sysctl.c and sched/debug.c: the scheduler's run-time tunables: default, unit and meaning in one line each. The kernel
//! version decides which exist, and under what name ([`V4`], [`V4_10`], [`V4_19`], [`V5_4`], [`V5_10`], [`V5_15`], [`V6_1`], [`V6_6`], [`V6_12`], [`V6_18`], [`V7_2`], [`V7_3`]): until v5.12 they are
//! sysctls, later most of them are files below `/sys/kernel/debug`.
//!
//! Absent: `sched_tunable_scaling`; the factor stays the logarithmic one.

use crate::fair::cgroup_mode::CgroupMode;

macro_rules! tunables {
    ($( $field:ident: default $default:literal, $low:literal..=$high:literal $unit:literal, $scaling:ident, $doc:literal; )+) => {
        /// The values of the tunables.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub struct Sysctl { $( #[doc = $doc] pub $field: u64, )+ }

        /// A tunable, named like the kernel's variable without its `sysctl_`.
        #[allow(non_camel_case_types)]
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum Tunable { $( #[doc = $doc] $field, )+ }

        impl Tunable {
            pub const ALL: &'static [Tunable] = &[ $( Tunable::$field, )+ ];

            /// Default, range and meaning, for help, parsing and reports.
            pub fn row(self) -> &'static SysctlRow {
                const TABLE: &[SysctlRow] = &[
                    $( SysctlRow { default: $default, range: ($low, $high), unit: $unit, scaling: Scaling::$scaling, doc: $doc }, )+
                ];
                &TABLE[self as usize]
            }
        }

        impl Sysctl {
            /// The defaults on a machine with `nr_cpus` CPUs online.
            pub fn new(nr_cpus: usize) -> Sysctl {
                let factor = get_update_sysctl_factor(nr_cpus);
                Sysctl { $( $field: $default * match Scaling::$scaling { Scaling::Cpus => factor, Scaling::None => 1 }, )+ }
            }

            pub fn get(&self, tunable: Tunable) -> u64 {
                match tunable { $( Tunable::$field => self.$field, )+ }
            }

            /// Sets a tunable; the caller checks the range.
            pub fn set(&mut self, tunable: Tunable, value: u64) {
                match tunable { $( Tunable::$field => self.$field = value, )+ }
            }
        }
    };
}

impl Tunable {
    /// The words that stand for the values from 0 on, in the file of a tunable that takes no numbers.
    pub fn words(self) -> Option<&'static [&'static str]> {
        (self == Tunable::cgroup_mode).then_some(&CgroupMode::NAMES)
    }

    /// The numbers that may be written to it, of which the greatest value of `sched_rt_runtime_us` is none: it stands for
    /// -1 ([`RUNTIME_UNLIMITED`]).
    pub fn written_range(self) -> (u64, u64) {
        match self {
            Tunable::sched_rt_runtime => (0, i32::MAX as u64),
            _ => self.row().range,
        }
    }
}

/// Whether a default grows with the number of CPUs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scaling {
    /// By 1 + log2 of the CPUs, counted up to 8 (SCHED_TUNABLESCALING_LOG).
    Cpus,
    None,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SysctlRow {
    /// The default before scaling.
    pub default: u64,
    pub range: (u64, u64),
    pub unit: &'static str,
    pub scaling: Scaling,
    pub doc: &'static str,
}

tunables! {
    sched_latency: default 6000000, 100000..=1000000000 "ns", Cpus, "period in which every runnable task should run once";
    sched_min_granularity: default 750000, 100000..=1000000000 "ns", Cpus, "shortest slice";
    sched_idle_min_granularity: default 750000, 100000..=1000000000 "ns", None, "shortest slice of an idle entity beside others";
    sched_wakeup_granularity: default 1000000, 0..=1000000000 "ns", Cpus, "lead a woken task needs to preempt";
    // v6.6 has 750000.
    sched_base_slice: default 700000, 100000..=1000000000 "ns", Cpus, "slice of a task that asks for none";
    sched_migration_cost: default 500000, 0..=4294967295 "ns", None, "a task that ran this recently is cache hot; 4294967295, or -1 to a sysctl: always";
    sched_nr_migrate: default 32, 1..=1000000 "tasks", None, "most tasks one balancing pass moves";
    sched_cfs_bandwidth_slice: default 5000, 1..=2147483647 "us", None, "runtime that a queue takes from its group at once";
    sched_time_avg: default 1000, 1..=100000 "ms", None, "window of the real-time load average";
    sched_child_runs_first: default 0, 0..=2147483647 "bool", None, "after fork the child runs before its parent";
    sched_autogroup_enabled: default 1, 0..=1 "bool", None, "a task group for each session";
    sched_rt_period: default 1000000, 1..=2147483647 "us", None, "period in which real-time tasks have a budget";
    // v7.2 has 1000000.
    sched_rt_runtime: default 950000, 0..=4294967295 "us", None, "that budget, on each CPU; -1 is no limit";
    sched_rr_timeslice: default 100, 1..=2147483647 "ms", None, "slice of a SCHED_RR task; 0 or less: the default";
    sched_dl_period_max: default 4194304, 100..=4294967295 "us", None, "longest period of a deadline task";
    sched_dl_period_min: default 100, 0..=4194304 "us", None, "shortest period of a deadline task";
    sched_schedstats: default 0, 0..=1 "bool", None, "collect scheduler statistics";
    latencytop: default 0, 0..=1 "bool", None, "add up where tasks sleep; turns schedstats on";
    numa_balancing: default 1, 0..=1 "bool", None, "bring tasks and their memory to one node, where there are several";
    numa_balancing_scan_delay: default 1000, 0..=3600000 "ms", None, "before the first scan of a new process's memory";
    numa_balancing_scan_period_min: default 1000, 1..=3600000 "ms", None, "shortest time in which all memory of a task is scanned";
    numa_balancing_scan_period_max: default 60000, 1..=3600000 "ms", None, "longest";
    numa_balancing_scan_size: default 256, 1..=1048576 "MB", None, "memory that is scanned at once";
    sched_itmt_enabled: default 1, 0..=1 "bool", None, "bring tasks to cores of higher rank, where cores are ranked (Turbo Boost Max 3.0)";
    sched_energy_aware: default 1, 0..=1 "bool", None, "place tasks by energy where the machine has an energy model";
    sched_uclamp_util_min: default 1024, 0..=1024 "capacity", None, "the most that a task's lower clamp may be";
    sched_uclamp_util_max: default 1024, 0..=1024 "capacity", None, "the most that a task's upper clamp may be";
    sched_cache_user: default 1, 0..=1 "bool", None, "gather the threads of a process below one last level cache, where there are several";
    llc_aggr_tolerance: default 1, 0..=4294967295 "level", None, "how much bigger than a cache a process may be that is gathered: 1 not at all, 100 as big as it likes, 0 none";
    llc_epoch_period: default 2, 0..=4294967295 "jiffies", None, "a process looks so often where it runs, and forgets half of it; HZ/100";
    llc_epoch_affinity_timeout: default 5, 0..=4294967295 "epochs", None, "a process that has not looked for so long prefers no cache any more";
    llc_overaggr_pct: default 50, 0..=4294967295 "%", None, "use of a cache's CPUs from which on it is too much; half as much again where cores have one thread";
    llc_imb_pct: default 20, 0..=4294967295 "%", None, "by how much more a preferred cache may be used than another";
    cgroup_mode: default 2, 0..=4 "mode", None, "what a group weighs: its shares on each CPU (up) or together (smp), times the CPUs it keeps busy (concur), times all CPUs up to nice -20 (max), times its tasks (tasks)";
    sched_uclamp_util_min_rt_default: default 1024, 0..=1024 "capacity", None, "a real-time task's lower clamp if it asks for none";
}

impl Sysctl {
    /// The same on a kernel with so many ticks per second, on which some defaults depend.
    pub fn at_hz(self, hz: u32) -> Sysctl {
        Sysctl { llc_epoch_period: u64::from(hz / 100), ..self }
    }

    /// The reason why the kernel refuses a combination of values: what would be right.
    pub fn contradiction(&self) -> Option<&'static str> {
        if self.sched_rt_runtime != RUNTIME_UNLIMITED && self.sched_rt_runtime > self.sched_rt_period {
            return Some(
                "kernel.sched_rt_runtime_us no greater than kernel.sched_rt_period_us (EINVAL): set that one first",
            );
        }
        let clamps = self.sched_uclamp_util_min > self.sched_uclamp_util_max;
        clamps.then_some(
            "kernel.sched_util_clamp_min no greater than kernel.sched_util_clamp_max (EINVAL): set that one first",
        )
    }
}

/// `sched_rt_runtime_us` of -1: no limit for real-time tasks.
pub const RUNTIME_UNLIMITED: u64 = u32::MAX as u64;

/// The tunables of one version, by name.
pub type TunableNames = &'static [(&'static str, Tunable)];

/// kernel/sysctl.c from v4.5 to v4.16.
pub const V4: TunableNames = &[
    ("kernel.sched_latency_ns", Tunable::sched_latency),
    ("kernel.sched_min_granularity_ns", Tunable::sched_min_granularity),
    ("kernel.sched_wakeup_granularity_ns", Tunable::sched_wakeup_granularity),
    ("kernel.sched_migration_cost_ns", Tunable::sched_migration_cost),
    ("kernel.sched_nr_migrate", Tunable::sched_nr_migrate),
    ("kernel.sched_time_avg_ms", Tunable::sched_time_avg),
    ("kernel.sched_child_runs_first", Tunable::sched_child_runs_first),
    ("kernel.sched_cfs_bandwidth_slice_us", Tunable::sched_cfs_bandwidth_slice),
    ("kernel.sched_autogroup_enabled", Tunable::sched_autogroup_enabled),
    ("kernel.sched_rt_period_us", Tunable::sched_rt_period),
    ("kernel.sched_rt_runtime_us", Tunable::sched_rt_runtime),
    ("kernel.sched_rr_timeslice_ms", Tunable::sched_rr_timeslice),
    ("kernel.sched_schedstats", Tunable::sched_schedstats),
    ("kernel.latencytop", Tunable::latencytop),
    ("kernel.numa_balancing", Tunable::numa_balancing),
    ("kernel.numa_balancing_scan_delay_ms", Tunable::numa_balancing_scan_delay),
    ("kernel.numa_balancing_scan_period_min_ms", Tunable::numa_balancing_scan_period_min),
    ("kernel.numa_balancing_scan_period_max_ms", Tunable::numa_balancing_scan_period_max),
    ("kernel.numa_balancing_scan_size_mb", Tunable::numa_balancing_scan_size),
];

/// The same from v4.10 on, which has arch/x86/kernel/itmt.c.
pub const V4_10: TunableNames = &{
    let mut names = [("kernel.sched_itmt_enabled", Tunable::sched_itmt_enabled); V4.len() + 1];
    let mut i = 0;
    while i < V4.len() {
        names[i] = V4[i];
        i += 1;
    }
    names
};

/// kernel/sysctl.c of v4.19: the same without the time that real-time tasks' use is averaged over.
pub const V4_19: TunableNames = &{
    let mut names = [V4_10[0]; V4_10.len() - 1];
    let (mut i, mut kept) = (0, 0);
    while i < V4_10.len() {
        if !matches!(V4_10[i].1, Tunable::sched_time_avg) {
            names[kept] = V4_10[i];
            kept += 1;
        }
        i += 1;
    }
    names
};

/// kernel/sysctl.c of v5.4: v5.10's without limits of deadline tasks' periods and without a clamp of real-time tasks.
pub const V5_4: TunableNames = &{
    let mut names = [V5_10[0]; V5_10.len() - 3];
    let (mut i, mut kept) = (0, 0);
    while i < V5_10.len() {
        let later = matches!(
            V5_10[i].1,
            Tunable::sched_uclamp_util_min_rt_default | Tunable::sched_dl_period_max | Tunable::sched_dl_period_min
        );
        if !later {
            names[kept] = V5_10[i];
            kept += 1;
        }
        i += 1;
    }
    names
};

/// kernel/sysctl.c of v5.10.
pub const V5_10: TunableNames = &[
    ("kernel.sched_latency_ns", Tunable::sched_latency),
    ("kernel.sched_min_granularity_ns", Tunable::sched_min_granularity),
    ("kernel.sched_wakeup_granularity_ns", Tunable::sched_wakeup_granularity),
    ("kernel.sched_migration_cost_ns", Tunable::sched_migration_cost),
    ("kernel.sched_nr_migrate", Tunable::sched_nr_migrate),
    ("kernel.sched_child_runs_first", Tunable::sched_child_runs_first),
    ("kernel.sched_cfs_bandwidth_slice_us", Tunable::sched_cfs_bandwidth_slice),
    ("kernel.sched_energy_aware", Tunable::sched_energy_aware),
    ("kernel.sched_itmt_enabled", Tunable::sched_itmt_enabled),
    ("kernel.sched_util_clamp_min", Tunable::sched_uclamp_util_min),
    ("kernel.sched_util_clamp_max", Tunable::sched_uclamp_util_max),
    ("kernel.sched_util_clamp_min_rt_default", Tunable::sched_uclamp_util_min_rt_default),
    ("kernel.sched_autogroup_enabled", Tunable::sched_autogroup_enabled),
    ("kernel.sched_rt_period_us", Tunable::sched_rt_period),
    ("kernel.sched_rt_runtime_us", Tunable::sched_rt_runtime),
    ("kernel.sched_rr_timeslice_ms", Tunable::sched_rr_timeslice),
    ("kernel.sched_deadline_period_max_us", Tunable::sched_dl_period_max),
    ("kernel.sched_deadline_period_min_us", Tunable::sched_dl_period_min),
    ("kernel.sched_schedstats", Tunable::sched_schedstats),
    ("kernel.latencytop", Tunable::latencytop),
    ("kernel.numa_balancing", Tunable::numa_balancing),
    ("kernel.numa_balancing_scan_delay_ms", Tunable::numa_balancing_scan_delay),
    ("kernel.numa_balancing_scan_period_min_ms", Tunable::numa_balancing_scan_period_min),
    ("kernel.numa_balancing_scan_period_max_ms", Tunable::numa_balancing_scan_period_max),
    ("kernel.numa_balancing_scan_size_mb", Tunable::numa_balancing_scan_size),
];

/// sched_init_debug() and the tables of sysctls of v5.15.
pub const V5_15: TunableNames = &[
    ("sched/latency_ns", Tunable::sched_latency),
    ("sched/min_granularity_ns", Tunable::sched_min_granularity),
    ("sched/wakeup_granularity_ns", Tunable::sched_wakeup_granularity),
    ("sched/migration_cost_ns", Tunable::sched_migration_cost),
    ("sched/nr_migrate", Tunable::sched_nr_migrate),
    ("kernel.sched_child_runs_first", Tunable::sched_child_runs_first),
    ("kernel.sched_cfs_bandwidth_slice_us", Tunable::sched_cfs_bandwidth_slice),
    ("kernel.sched_energy_aware", Tunable::sched_energy_aware),
    ("kernel.sched_itmt_enabled", Tunable::sched_itmt_enabled),
    ("kernel.sched_util_clamp_min", Tunable::sched_uclamp_util_min),
    ("kernel.sched_util_clamp_max", Tunable::sched_uclamp_util_max),
    ("kernel.sched_util_clamp_min_rt_default", Tunable::sched_uclamp_util_min_rt_default),
    ("kernel.sched_autogroup_enabled", Tunable::sched_autogroup_enabled),
    ("kernel.sched_rt_period_us", Tunable::sched_rt_period),
    ("kernel.sched_rt_runtime_us", Tunable::sched_rt_runtime),
    ("kernel.sched_rr_timeslice_ms", Tunable::sched_rr_timeslice),
    ("kernel.sched_deadline_period_max_us", Tunable::sched_dl_period_max),
    ("kernel.sched_deadline_period_min_us", Tunable::sched_dl_period_min),
    ("kernel.sched_schedstats", Tunable::sched_schedstats),
    ("kernel.latencytop", Tunable::latencytop),
    ("kernel.numa_balancing", Tunable::numa_balancing),
    ("sched/numa_balancing/scan_delay_ms", Tunable::numa_balancing_scan_delay),
    ("sched/numa_balancing/scan_period_min_ms", Tunable::numa_balancing_scan_period_min),
    ("sched/numa_balancing/scan_period_max_ms", Tunable::numa_balancing_scan_period_max),
    ("sched/numa_balancing/scan_size_mb", Tunable::numa_balancing_scan_size),
];

/// sched_init_debug() and the tables of sysctls of v6.1.
pub const V6_1: TunableNames = &[
    ("sched/latency_ns", Tunable::sched_latency),
    ("sched/min_granularity_ns", Tunable::sched_min_granularity),
    ("sched/idle_min_granularity_ns", Tunable::sched_idle_min_granularity),
    ("sched/wakeup_granularity_ns", Tunable::sched_wakeup_granularity),
    ("sched/migration_cost_ns", Tunable::sched_migration_cost),
    ("sched/nr_migrate", Tunable::sched_nr_migrate),
    ("kernel.sched_child_runs_first", Tunable::sched_child_runs_first),
    ("kernel.sched_cfs_bandwidth_slice_us", Tunable::sched_cfs_bandwidth_slice),
    ("kernel.sched_energy_aware", Tunable::sched_energy_aware),
    ("kernel.sched_itmt_enabled", Tunable::sched_itmt_enabled),
    ("kernel.sched_util_clamp_min", Tunable::sched_uclamp_util_min),
    ("kernel.sched_util_clamp_max", Tunable::sched_uclamp_util_max),
    ("kernel.sched_util_clamp_min_rt_default", Tunable::sched_uclamp_util_min_rt_default),
    ("kernel.sched_autogroup_enabled", Tunable::sched_autogroup_enabled),
    ("kernel.sched_rt_period_us", Tunable::sched_rt_period),
    ("kernel.sched_rt_runtime_us", Tunable::sched_rt_runtime),
    ("kernel.sched_rr_timeslice_ms", Tunable::sched_rr_timeslice),
    ("kernel.sched_deadline_period_max_us", Tunable::sched_dl_period_max),
    ("kernel.sched_deadline_period_min_us", Tunable::sched_dl_period_min),
    ("kernel.sched_schedstats", Tunable::sched_schedstats),
    ("kernel.latencytop", Tunable::latencytop),
    ("kernel.numa_balancing", Tunable::numa_balancing),
    ("sched/numa_balancing/scan_delay_ms", Tunable::numa_balancing_scan_delay),
    ("sched/numa_balancing/scan_period_min_ms", Tunable::numa_balancing_scan_period_min),
    ("sched/numa_balancing/scan_period_max_ms", Tunable::numa_balancing_scan_period_max),
    ("sched/numa_balancing/scan_size_mb", Tunable::numa_balancing_scan_size),
];

/// sched_init_debug() and the tables of sysctls of v6.6.
///
/// Nothing heeds `sched_child_runs_first` any more.
pub const V6_6: TunableNames = &[
    ("sched/base_slice_ns", Tunable::sched_base_slice),
    ("sched/migration_cost_ns", Tunable::sched_migration_cost),
    ("sched/nr_migrate", Tunable::sched_nr_migrate),
    ("kernel.sched_child_runs_first", Tunable::sched_child_runs_first),
    ("kernel.sched_cfs_bandwidth_slice_us", Tunable::sched_cfs_bandwidth_slice),
    ("kernel.sched_energy_aware", Tunable::sched_energy_aware),
    ("kernel.sched_itmt_enabled", Tunable::sched_itmt_enabled),
    ("kernel.sched_util_clamp_min", Tunable::sched_uclamp_util_min),
    ("kernel.sched_util_clamp_max", Tunable::sched_uclamp_util_max),
    ("kernel.sched_util_clamp_min_rt_default", Tunable::sched_uclamp_util_min_rt_default),
    ("kernel.sched_autogroup_enabled", Tunable::sched_autogroup_enabled),
    ("kernel.sched_rt_period_us", Tunable::sched_rt_period),
    ("kernel.sched_rt_runtime_us", Tunable::sched_rt_runtime),
    ("kernel.sched_rr_timeslice_ms", Tunable::sched_rr_timeslice),
    ("kernel.sched_deadline_period_max_us", Tunable::sched_dl_period_max),
    ("kernel.sched_deadline_period_min_us", Tunable::sched_dl_period_min),
    ("kernel.sched_schedstats", Tunable::sched_schedstats),
    ("kernel.latencytop", Tunable::latencytop),
    ("kernel.numa_balancing", Tunable::numa_balancing),
    ("sched/numa_balancing/scan_delay_ms", Tunable::numa_balancing_scan_delay),
    ("sched/numa_balancing/scan_period_min_ms", Tunable::numa_balancing_scan_period_min),
    ("sched/numa_balancing/scan_period_max_ms", Tunable::numa_balancing_scan_period_max),
    ("sched/numa_balancing/scan_size_mb", Tunable::numa_balancing_scan_size),
];

/// sched_init_debug() and the tables of sysctls of v6.12.
pub const V6_12: TunableNames = &[
    ("sched/base_slice_ns", Tunable::sched_base_slice),
    ("sched/migration_cost_ns", Tunable::sched_migration_cost),
    ("sched/nr_migrate", Tunable::sched_nr_migrate),
    ("kernel.sched_cfs_bandwidth_slice_us", Tunable::sched_cfs_bandwidth_slice),
    ("kernel.sched_energy_aware", Tunable::sched_energy_aware),
    ("kernel.sched_itmt_enabled", Tunable::sched_itmt_enabled),
    ("kernel.sched_util_clamp_min", Tunable::sched_uclamp_util_min),
    ("kernel.sched_util_clamp_max", Tunable::sched_uclamp_util_max),
    ("kernel.sched_util_clamp_min_rt_default", Tunable::sched_uclamp_util_min_rt_default),
    ("kernel.sched_autogroup_enabled", Tunable::sched_autogroup_enabled),
    ("kernel.sched_rt_period_us", Tunable::sched_rt_period),
    ("kernel.sched_rt_runtime_us", Tunable::sched_rt_runtime),
    ("kernel.sched_rr_timeslice_ms", Tunable::sched_rr_timeslice),
    ("kernel.sched_deadline_period_max_us", Tunable::sched_dl_period_max),
    ("kernel.sched_deadline_period_min_us", Tunable::sched_dl_period_min),
    ("kernel.sched_schedstats", Tunable::sched_schedstats),
    ("kernel.latencytop", Tunable::latencytop),
    ("kernel.numa_balancing", Tunable::numa_balancing),
    ("sched/numa_balancing/scan_delay_ms", Tunable::numa_balancing_scan_delay),
    ("sched/numa_balancing/scan_period_min_ms", Tunable::numa_balancing_scan_period_min),
    ("sched/numa_balancing/scan_period_max_ms", Tunable::numa_balancing_scan_period_max),
    ("sched/numa_balancing/scan_size_mb", Tunable::numa_balancing_scan_size),
];

/// sched_init_debug() and the tables of sysctls of v6.18.
pub const V6_18: TunableNames = &[
    ("sched/base_slice_ns", Tunable::sched_base_slice),
    ("sched/migration_cost_ns", Tunable::sched_migration_cost),
    ("sched/nr_migrate", Tunable::sched_nr_migrate),
    ("kernel.sched_cfs_bandwidth_slice_us", Tunable::sched_cfs_bandwidth_slice),
    ("kernel.sched_energy_aware", Tunable::sched_energy_aware),
    ("x86/sched_itmt_enabled", Tunable::sched_itmt_enabled),
    ("kernel.sched_util_clamp_min", Tunable::sched_uclamp_util_min),
    ("kernel.sched_util_clamp_max", Tunable::sched_uclamp_util_max),
    ("kernel.sched_util_clamp_min_rt_default", Tunable::sched_uclamp_util_min_rt_default),
    ("kernel.sched_autogroup_enabled", Tunable::sched_autogroup_enabled),
    ("kernel.sched_rt_period_us", Tunable::sched_rt_period),
    ("kernel.sched_rt_runtime_us", Tunable::sched_rt_runtime),
    ("kernel.sched_rr_timeslice_ms", Tunable::sched_rr_timeslice),
    ("kernel.sched_deadline_period_max_us", Tunable::sched_dl_period_max),
    ("kernel.sched_deadline_period_min_us", Tunable::sched_dl_period_min),
    ("kernel.sched_schedstats", Tunable::sched_schedstats),
    ("kernel.latencytop", Tunable::latencytop),
    ("kernel.numa_balancing", Tunable::numa_balancing),
    ("sched/numa_balancing/scan_delay_ms", Tunable::numa_balancing_scan_delay),
    ("sched/numa_balancing/scan_period_min_ms", Tunable::numa_balancing_scan_period_min),
    ("sched/numa_balancing/scan_period_max_ms", Tunable::numa_balancing_scan_period_max),
    ("sched/numa_balancing/scan_size_mb", Tunable::numa_balancing_scan_size),
];

/// sched_init_debug() and the tables of sysctls of v7.2.
pub const V7_2: TunableNames = &[
    ("sched/base_slice_ns", Tunable::sched_base_slice),
    ("sched/migration_cost_ns", Tunable::sched_migration_cost),
    ("sched/nr_migrate", Tunable::sched_nr_migrate),
    ("kernel.sched_cfs_bandwidth_slice_us", Tunable::sched_cfs_bandwidth_slice),
    ("kernel.sched_energy_aware", Tunable::sched_energy_aware),
    ("x86/sched_itmt_enabled", Tunable::sched_itmt_enabled),
    ("kernel.sched_util_clamp_min", Tunable::sched_uclamp_util_min),
    ("kernel.sched_util_clamp_max", Tunable::sched_uclamp_util_max),
    ("kernel.sched_util_clamp_min_rt_default", Tunable::sched_uclamp_util_min_rt_default),
    ("kernel.sched_autogroup_enabled", Tunable::sched_autogroup_enabled),
    ("kernel.sched_rt_period_us", Tunable::sched_rt_period),
    ("kernel.sched_rt_runtime_us", Tunable::sched_rt_runtime),
    ("kernel.sched_rr_timeslice_ms", Tunable::sched_rr_timeslice),
    ("kernel.sched_deadline_period_max_us", Tunable::sched_dl_period_max),
    ("kernel.sched_deadline_period_min_us", Tunable::sched_dl_period_min),
    ("kernel.sched_schedstats", Tunable::sched_schedstats),
    ("kernel.latencytop", Tunable::latencytop),
    ("kernel.numa_balancing", Tunable::numa_balancing),
    ("sched/numa_balancing/scan_delay_ms", Tunable::numa_balancing_scan_delay),
    ("sched/numa_balancing/scan_period_min_ms", Tunable::numa_balancing_scan_period_min),
    ("sched/numa_balancing/scan_period_max_ms", Tunable::numa_balancing_scan_period_max),
    ("sched/numa_balancing/scan_size_mb", Tunable::numa_balancing_scan_size),
    ("sched/llc_balancing/enabled", Tunable::sched_cache_user),
    ("sched/llc_balancing/aggr_tolerance", Tunable::llc_aggr_tolerance),
    ("sched/llc_balancing/epoch_period", Tunable::llc_epoch_period),
    ("sched/llc_balancing/epoch_affinity_timeout", Tunable::llc_epoch_affinity_timeout),
    ("sched/llc_balancing/overaggr_pct", Tunable::llc_overaggr_pct),
    ("sched/llc_balancing/imb_pct", Tunable::llc_imb_pct),
];

/// sched_init_debug() and the tables of sysctls of v7.3.
pub const V7_3: TunableNames = &[
    ("sched/base_slice_ns", Tunable::sched_base_slice),
    ("sched/cgroup_mode", Tunable::cgroup_mode),
    ("sched/migration_cost_ns", Tunable::sched_migration_cost),
    ("sched/nr_migrate", Tunable::sched_nr_migrate),
    ("kernel.sched_cfs_bandwidth_slice_us", Tunable::sched_cfs_bandwidth_slice),
    ("kernel.sched_energy_aware", Tunable::sched_energy_aware),
    ("x86/sched_itmt_enabled", Tunable::sched_itmt_enabled),
    ("kernel.sched_util_clamp_min", Tunable::sched_uclamp_util_min),
    ("kernel.sched_util_clamp_max", Tunable::sched_uclamp_util_max),
    ("kernel.sched_util_clamp_min_rt_default", Tunable::sched_uclamp_util_min_rt_default),
    ("kernel.sched_autogroup_enabled", Tunable::sched_autogroup_enabled),
    ("kernel.sched_rt_period_us", Tunable::sched_rt_period),
    ("kernel.sched_rt_runtime_us", Tunable::sched_rt_runtime),
    ("kernel.sched_rr_timeslice_ms", Tunable::sched_rr_timeslice),
    ("kernel.sched_deadline_period_max_us", Tunable::sched_dl_period_max),
    ("kernel.sched_deadline_period_min_us", Tunable::sched_dl_period_min),
    ("kernel.sched_schedstats", Tunable::sched_schedstats),
    ("kernel.latencytop", Tunable::latencytop),
    ("kernel.numa_balancing", Tunable::numa_balancing),
    ("sched/numa_balancing/scan_delay_ms", Tunable::numa_balancing_scan_delay),
    ("sched/numa_balancing/scan_period_min_ms", Tunable::numa_balancing_scan_period_min),
    ("sched/numa_balancing/scan_period_max_ms", Tunable::numa_balancing_scan_period_max),
    ("sched/numa_balancing/scan_size_mb", Tunable::numa_balancing_scan_size),
    ("sched/llc_balancing/enabled", Tunable::sched_cache_user),
    ("sched/llc_balancing/aggr_tolerance", Tunable::llc_aggr_tolerance),
    ("sched/llc_balancing/epoch_period", Tunable::llc_epoch_period),
    ("sched/llc_balancing/epoch_affinity_timeout", Tunable::llc_epoch_affinity_timeout),
    ("sched/llc_balancing/overaggr_pct", Tunable::llc_overaggr_pct),
    ("sched/llc_balancing/imb_pct", Tunable::llc_imb_pct),
];

/// A tunable's name without its directory, which users may omit.
pub fn short_name(name: &str) -> &str {
    let places = ["kernel.", "sched/", "x86/"];
    places.iter().find_map(|place| name.strip_prefix(place)).unwrap_or(name)
}

/// fair.c: get_update_sysctl_factor(), with the default logarithmic scaling.
pub(crate) fn get_update_sysctl_factor(nr_cpus: usize) -> u64 {
    let cpus = nr_cpus.clamp(1, 8) as u64;
    1 + u64::from(cpus.ilog2())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_scale_with_the_logarithm_of_the_cpus() {
        // Recorded from real kernels with 2, 4 and 8 CPUs: latency 12, 18, 24 ms.
        for (cpus, latency, granularity, wakeup) in [
            (1, 6_000_000, 750_000, 1_000_000),
            (2, 12_000_000, 1_500_000, 2_000_000),
            (4, 18_000_000, 2_250_000, 3_000_000),
        ] {
            let sysctl = Sysctl::new(cpus);
            assert_eq!(sysctl.sched_latency, latency);
            assert_eq!(sysctl.sched_min_granularity, granularity);
            assert_eq!(sysctl.sched_wakeup_granularity, wakeup);
        }
        assert_eq!(Sysctl::new(48), Sysctl::new(8));
        assert_eq!(Sysctl::new(8).sched_latency, 24_000_000);
    }

    #[test]
    fn the_slice_of_eevdf_scales_as_recorded() {
        // Recorded from a 6.12 kernel with 2 and 4 CPUs: 1.4 and 2.1 ms.
        for (cpus, slice) in [(1, 700_000), (2, 1_400_000), (4, 2_100_000), (8, 2_800_000), (16, 2_800_000)] {
            assert_eq!(Sysctl::new(cpus).sched_base_slice, slice);
        }
        assert_eq!(Sysctl::new(8).sched_idle_min_granularity, 750_000);
    }

    #[test]
    fn each_tunable_is_set_alone() {
        for &tunable in Tunable::ALL {
            let mut sysctl = Sysctl::new(8);
            sysctl.set(tunable, 123);
            let changed = Tunable::ALL.iter().filter(|&&other| sysctl.get(other) != Sysctl::new(8).get(other));
            assert!(changed.eq([&tunable]));
            assert_eq!(sysctl.get(tunable), 123);
        }
    }

    #[test]
    fn itmts_switch_is_a_sysctl_until_v6_12() {
        let place = |names: TunableNames| names.iter().find(|(_, of)| *of == Tunable::sched_itmt_enabled).unwrap().0;
        let places = ["kernel.sched_itmt_enabled", "x86/sched_itmt_enabled", "x86/sched_itmt_enabled"];
        assert_eq!([V6_12, V6_18, V7_2].map(place), places);
        assert_eq!([V6_12, V6_18, V7_2].map(|names| short_name(place(names))), ["sched_itmt_enabled"; 3]);
    }

    #[test]
    fn the_fair_classs_tunables_are_below_debug_since_v5_13() {
        let place = |names: TunableNames, of| names.iter().find(|(_, tunable)| *tunable == of).map(|(name, _)| *name);
        let latency = [V5_10, V5_15, V6_1].map(|names| place(names, Tunable::sched_latency));
        assert_eq!(latency, [Some("kernel.sched_latency_ns"), Some("sched/latency_ns"), Some("sched/latency_ns")]);
        let idle = [V5_15, V6_1].map(|names| place(names, Tunable::sched_idle_min_granularity));
        assert_eq!(idle, [None, Some("sched/idle_min_granularity_ns")]);
    }

    #[test]
    fn names_are_unique_within_a_version_even_shortened() {
        for names in [V4, V4_10, V4_19, V5_4, V5_10, V5_15, V6_1, V6_6, V6_12, V6_18, V7_2, V7_3] {
            let mut short: Vec<_> = names.iter().map(|(name, _)| short_name(name)).collect();
            short.sort_unstable();
            short.dedup();
            assert_eq!(short.len(), names.len());
        }
    }
}
