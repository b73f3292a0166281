//! A CPU's domains as text: what a kernel logs with `sched_verbose`, plus the numbers of sd_init().

use super::*;
use crate::cpu_topology::SCHED_CAPACITY_SCALE;
use std::fmt::Write;

impl Domains {
    /// The CPU's domains from the lowest up, each in three lines: span and numbers, flags by their names in this
    /// version, and groups, starting with the CPU's own. A group shows the id of its capacity and what is unusual: the
    /// CPUs that balance for it if not all do, its capacity if it is not 1024.
    pub fn describe(&self, cpu: CpuId) -> String {
        if self.sd[cpu].is_none() {
            return format!("CPU{cpu}: no domains\n");
        }
        let mut out = format!("CPU{cpu}: sd_llc_id={} sd_llc_size={}\n", self.sd_llc_id[cpu], self.sd_llc_size[cpu]);
        for (number, sd) in self.for_each_domain(cpu).enumerate() {
            self.describe_domain(&mut out, number, sd);
        }
        out
    }

    fn describe_domain(&self, out: &mut String, number: usize, id: SdId) {
        let sd = &self[id];
        let mut line = |text: std::fmt::Arguments| {
            // Writing to a String cannot fail.
            let _ = out.write_fmt(text);
        };
        line(format_args!(" domain-{number}: span={} level={}", self.sched_domain_span(id).list(), sd.name));
        line(format_args!(
            " interval={}-{}ms busy_factor={} imbalance_pct={} cache_nice_tries={}",
            sd.min_interval, sd.max_interval, sd.busy_factor, sd.imbalance_pct, sd.cache_nice_tries
        ));
        if matches!(self.rules.tuning, LevelTuning::SiblingsSmtAndPackage | LevelTuning::SiblingsBelowNuma) {
            line(format_args!(" busy_idx={} idle_idx={} smt_gain={}", sd.busy_idx, sd.idle_idx, sd.smt_gain));
        }
        if self.rules.imb_numa_nr == ImbNumaNr::ByLlcs {
            line(format_args!(" imb_numa_nr={}", sd.imb_numa_nr));
        }
        line(format_args!("\n  flags={}\n", sd.flags.names(self.rules.flag_numbering).join(" ")));
        let groups = self.groups(id).map(|sg| self.describe_group(id, sg)).collect::<Vec<_>>();
        line(format_args!("  groups: {}\n", groups.join(", ")));
    }

    fn describe_group(&self, sd: SdId, sg: SgId) -> String {
        let sgc = &self[self[sg].sgc];
        let mut text = format!("{}:{{ span={}", sgc.id, self.sched_group_span(sg).list());
        if self[sd].flags.has(super::flags::OVERLAPPING) && sgc.cpumask != self[sg].cpumask {
            text += &format!(" mask={}", self.group_balance_mask(sg).list());
        }
        if sgc.capacity != u64::from(SCHED_CAPACITY_SCALE) {
            text += &format!(" cap={}", sgc.capacity);
        }
        text + " }"
    }
}
