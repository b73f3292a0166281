//! `/proc/schedstat` in its version 15, as kernels v4.5 to v6.6 print it, in version 16, that of v6.12, and in 17, that of v6.18
//! (kernel/sched/stats.c: show_schedstat()). All counters only grow; tools take differences. Times are nanoseconds.

use crate::formats::{Formats, SchedstatVersion};
use sched::sched::Rq;
use sched::topology::Domains;
use std::fmt;
use units::{CpuId, CpuMask, PerCpu};

/// What the file shows; [`fmt::Display`] prints it.
#[derive(Clone, Copy)]
pub struct Schedstat<'a> {
    /// The kernel's count of ticks at the time of reading (a real kernel's begins at -300 seconds).
    pub jiffies: u64,
    pub cpu_online_mask: &'a CpuMask,
    pub rq: &'a PerCpu<Rq>,
    pub domains: &'a Domains,
    pub formats: Formats,
}

impl Schedstat<'_> {
    fn cpu(&self, f: &mut fmt::Formatter<'_>, cpu: CpuId) -> fmt::Result {
        let (rq, version) = (&self.rq[cpu], self.formats.schedstat);
        // The zero was a counter of the O(1) scheduler's second array.
        writeln!(
            f,
            "cpu{cpu} {} 0 {} {} {} {} {} {} {}",
            rq.yld_count,
            rq.sched_count,
            rq.sched_goidle,
            rq.ttwu_count,
            rq.ttwu_local,
            rq.rq_cpu_time,
            rq.rq_sched_info.run_delay,
            rq.rq_sched_info.pcount
        )?;
        for (number, sd) in self.domains.for_each_domain(cpu).enumerate() {
            write!(f, "domain{number}")?;
            if version == SchedstatVersion::V17 {
                write!(f, " {}", self.domains[sd].name)?;
            }
            write!(f, " {}", self.domains.sched_domain_span(sd).hex(self.rq.len()))?;
            let stats = self.domains.stats(sd);
            // The counters are numbered idle, busy, newly idle.
            let order = if version == SchedstatVersion::V15 { [0, 1, 2] } else { [1, 0, 2] };
            for idle_type in order {
                for counter in [&stats.lb_count, &stats.lb_balanced, &stats.lb_failed] {
                    write!(f, " {}", counter[idle_type])?;
                }
                let imbalances = [
                    stats.lb_imbalance_load[idle_type],
                    stats.lb_imbalance_util[idle_type],
                    stats.lb_imbalance_task[idle_type],
                    stats.lb_imbalance_misfit[idle_type],
                ];
                if version == SchedstatVersion::V17 {
                    for imbalance in imbalances {
                        write!(f, " {imbalance}")?;
                    }
                } else {
                    write!(f, " {}", imbalances.into_iter().fold(0, u32::wrapping_add))?;
                }
                for counter in [&stats.lb_gained, &stats.lb_hot_gained, &stats.lb_nobusyq, &stats.lb_nobusyg] {
                    write!(f, " {}", counter[idle_type])?;
                }
            }
            for counter in [
                stats.alb_count,
                stats.alb_failed,
                stats.alb_pushed,
                stats.sbe_count,
                stats.sbe_balanced,
                stats.sbe_pushed,
                stats.sbf_count,
                stats.sbf_balanced,
                stats.sbf_pushed,
                stats.ttwu_wake_remote,
                stats.ttwu_move_affine,
                stats.ttwu_move_balance,
            ] {
                write!(f, " {counter}")?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

impl fmt::Display for Schedstat<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "version {}", self.formats.schedstat as u32)?;
        writeln!(f, "timestamp {}", self.jiffies)?;
        for cpu in self.cpu_online_mask.iter() {
            self.cpu(f, cpu)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sched::cpu_topology::CpuTopology;
    use sched::topology::{DomainRules, DomainSetup, build_sched_domains};

    /// Two packages of 12 cores with 2 threads each: an SMT, an MC and a NUMA domain for each CPU.
    fn machine() -> (PerCpu<Rq>, Domains) {
        let topology = CpuTopology::symmetric(2, 1, 1, 12, 2);
        let all = CpuMask::all(topology.nr_cpus);
        let setup = DomainSetup::boot(&topology);
        let domains = build_sched_domains(&topology, &all, &DomainRules::V4_15, &setup);
        (PerCpu::from_fn(topology.nr_cpus, |cpu| Rq { cpu, ..Rq::default() }), domains)
    }

    #[test]
    fn every_field_stands_where_the_kernel_prints_it() {
        let (mut rq, mut domains) = machine();
        let cpu = CpuId(25);
        let cpu_rq = &mut rq[cpu];
        cpu_rq.yld_count = 1;
        cpu_rq.sched_count = 3;
        cpu_rq.sched_goidle = 4;
        cpu_rq.ttwu_count = 5;
        cpu_rq.ttwu_local = 6;
        cpu_rq.rq_cpu_time = 7_000_000_000;
        cpu_rq.rq_sched_info.run_delay = 8;
        cpu_rq.rq_sched_info.pcount = 9;
        let middle = domains.for_each_domain(cpu).nth(1).expect("a domain of the package");
        let stats = domains.stats_mut(middle);
        stats.lb_count = [1, 9, 17];
        stats.lb_balanced = [2, 10, 18];
        stats.lb_failed = [3, 11, 19];
        (stats.lb_imbalance_load, stats.lb_imbalance_util) = ([4, 9, 17], [0, 1, 1]);
        (stats.lb_imbalance_task, stats.lb_imbalance_misfit) = ([0, 1, 1], [0, 1, 1]);
        stats.lb_gained = [5, 13, 21];
        stats.lb_hot_gained = [6, 14, 22];
        stats.lb_nobusyq = [7, 15, 23];
        stats.lb_nobusyg = [8, 16, 24];
        (stats.alb_count, stats.alb_failed, stats.alb_pushed) = (25, 26, 27);
        (stats.sbe_count, stats.sbe_balanced, stats.sbe_pushed) = (28, 29, 30);
        (stats.sbf_count, stats.sbf_balanced, stats.sbf_pushed) = (31, 32, 33);
        (stats.ttwu_wake_remote, stats.ttwu_move_affine, stats.ttwu_move_balance) = (34, 35, 36);
        let online = CpuMask::single(cpu);
        let mut file = Schedstat {
            jiffies: 4_294_937_296,
            cpu_online_mask: &online,
            rq: &rq,
            domains: &domains,
            formats: Formats::V4_5,
        };
        let text = file.to_string();
        let zeros = " 0".repeat(36);
        let counted: String = (1..=36).map(|counter| format!(" {counter}")).collect();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[..3], ["version 15", "timestamp 4294937296", "cpu25 1 0 3 4 5 6 7000000000 8 9"]);
        assert_eq!(
            lines[3..],
            [
                format!("domain0 0000,02000002{zeros}"),
                format!("domain1 000f,ff000fff{counted}"),
                format!("domain2 ffff,ffffffff{zeros}"),
            ]
        );
        file.formats = Formats::V6_12;
        let text = file.to_string();
        let busy_first: String = (9..=16).chain(1..=8).chain(17..=36).map(|counter| format!(" {counter}")).collect();
        assert!(text.starts_with("version 16\n"));
        assert_eq!(text.lines().nth(4), Some(format!("domain1 000f,ff000fff{busy_first}").as_str()));
        file.formats = Formats::V6_18;
        let since_v6_15 = file.to_string();
        file.formats = Formats::V7_2;
        let text = file.to_string();
        assert_eq!(text, since_v6_15);
        let busy = "9 10 11 9 1 1 1 13 14 15 16";
        let idle = "1 2 3 4 0 0 0 5 6 7 8";
        let newly = "17 18 19 17 1 1 1 21 22 23 24";
        let rest: String = (25..=36).map(|counter| format!(" {counter}")).collect();
        assert!(text.starts_with("version 17\n"));
        let line = format!("domain1 MC 000f,ff000fff {busy} {idle} {newly}{rest}");
        assert_eq!(text.lines().nth(4), Some(line.as_str()));
    }

    #[test]
    fn only_cpus_that_are_online_are_shown() {
        let (rq, domains) = machine();
        let online: CpuMask = [CpuId(0), CpuId(47)].into_iter().collect();
        let formats = Formats::V4_5;
        let text = Schedstat { jiffies: 0, cpu_online_mask: &online, rq: &rq, domains: &domains, formats }.to_string();
        let cpus: Vec<&str> = text.lines().filter(|line| line.starts_with("cpu")).collect();
        assert_eq!(cpus, ["cpu0 0 0 0 0 0 0 0 0 0", "cpu47 0 0 0 0 0 0 0 0 0"]);
    }
}
