//! kernel/sysctl.c: the scheduler's run-time tunables: name, default, unit and meaning in one line each.

macro_rules! sysctls {
    ($( $field:ident: $name:literal, default $default:literal, $low:literal..=$high:literal $unit:literal, $scaling:ident, $doc:literal; )+) => {
        /// Values of `/proc/sys/kernel/sched_*`.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub struct Sysctl { $( #[doc = $doc] pub $field: u64, )+ }

        impl Sysctl {
            /// Every tunable, for help, parsing and reports.
            pub const TABLE: &'static [SysctlRow] = &[
                $( SysctlRow { name: $name, default: $default, range: ($low, $high), unit: $unit, scaling: Scaling::$scaling, doc: $doc }, )+
            ];

            /// The defaults on a machine with `nr_cpus` CPUs online.
            pub fn new(nr_cpus: usize) -> Sysctl {
                let factor = get_update_sysctl_factor(nr_cpus);
                Sysctl { $( $field: $default * match Scaling::$scaling { Scaling::Cpus => factor, Scaling::None => 1 }, )+ }
            }

            pub fn get(&self, name: &str) -> Option<u64> {
                match name { $( $name => Some(self.$field), )+ _ => None }
            }

            /// Sets a tunable by name. False when there is none of that name; the caller checks the range.
            pub fn set(&mut self, name: &str, value: u64) -> bool {
                match name { $( $name => self.$field = value, )+ _ => return false }
                true
            }
        }
    };
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
    pub name: &'static str,
    /// Before scaling.
    pub default: u64,
    pub range: (u64, u64),
    pub unit: &'static str,
    pub scaling: Scaling,
    pub doc: &'static str,
}

sysctls! {
    sched_latency: "kernel.sched_latency_ns", default 6000000, 100000..=1000000000 "ns", Cpus, "period in which every runnable task should run once";
    sched_min_granularity: "kernel.sched_min_granularity_ns", default 750000, 100000..=1000000000 "ns", Cpus, "shortest slice";
    sched_wakeup_granularity: "kernel.sched_wakeup_granularity_ns", default 1000000, 0..=1000000000 "ns", Cpus, "lead a woken task needs to preempt";
    sched_migration_cost: "kernel.sched_migration_cost_ns", default 500000, 0..=1000000000 "ns", None, "a task that ran this recently is cache hot";
    sched_nr_migrate: "kernel.sched_nr_migrate", default 32, 1..=1000000 "tasks", None, "most tasks one balancing pass moves";
    sched_time_avg: "kernel.sched_time_avg_ms", default 1000, 1..=100000 "ms", None, "window of the real-time load average";
    sched_child_runs_first: "kernel.sched_child_runs_first", default 0, 0..=1 "bool", None, "after fork the child runs before its parent";
    sched_schedstats: "kernel.sched_schedstats", default 0, 0..=1 "bool", None, "collect scheduler statistics";
}

/// fair.c: get_update_sysctl_factor(), with the default logarithmic scaling.
fn get_update_sysctl_factor(nr_cpus: usize) -> u64 {
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
    fn tunables_are_set_by_their_names() {
        let mut sysctl = Sysctl::new(8);
        assert!(sysctl.set("kernel.sched_nr_migrate", 8));
        assert_eq!(sysctl.get("kernel.sched_nr_migrate"), Some(8));
        assert!(!sysctl.set("kernel.sched_nothing", 1));
    }
}
