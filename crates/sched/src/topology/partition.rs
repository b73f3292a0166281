//! topology.c: rebuilding domains when CPUs go on- or offline, and when exclusive cpusets divide them.

use super::attach::Moving;
use super::build::build_sched_domains;
use super::*;
use crate::cpu_topology::CpuTopology;

impl Domains {
    /// topology.c: sched_domains_free_llc_id(), since v7.2: an offline CPU has no LLC until it comes back. In earlier
    /// kernels, a CPU without domains at once has an LLC of its own.
    pub fn sched_domains_free_llc_id(&mut self, cpu: CpuId) {
        if self.rules.llc_id == LlcId::OfHardware {
            self.sd_llc_id[cpu] = NO_LLC;
        }
    }

    /// topology.c: partition_sched_domains(). The domains of these partitions, which are disjoint. Partitions that
    /// exist already keep their domains with all they have counted; the others are built. CPUs in none get no domain.
    pub fn partition_sched_domains(
        &self,
        topology: &CpuTopology,
        doms_new: &[CpuMask],
        setup: &DomainSetup,
    ) -> Domains {
        let span = doms_new.iter().fold(CpuMask::default(), |all, map| all.or(map));
        let built: Vec<Option<Domains>> = doms_new
            .iter()
            .map(|map| {
                let kept = self.doms_cur.contains(map);
                (!kept).then(|| build_sched_domains(topology, map, &self.rules, setup))
            })
            .collect();
        // Distances between nodes, and their masks, are those seen last.
        let seen = built.iter().flatten().last().unwrap_or(self);
        let (masks, numa) = (seen.masks.clone(), seen.numa.clone());
        let mut new = Domains::without_any(topology, &span, &self.rules, setup, masks, numa, Vec::new());
        new.doms_cur = doms_new.to_vec();
        if self.rules.llc_id == LlcId::OfHardware {
            // A CPU without domains keeps the LLC it had, if it is online.
            new.sd_llc_id = self.sd_llc_id.clone();
        }
        let mut kept = Moving::from(self);
        for (map, built) in doms_new.iter().zip(&built) {
            let Some(built) = built else {
                new.take_over(self, &mut kept, map);
                continue;
            };
            new.take_over(built, &mut Moving::from(built), map);
            new.warnings.extend(built.warnings.iter().cloned());
        }
        new
    }

    /// Takes over one partition of `from`, using the state of the move in `moving`.
    fn take_over(&mut self, from: &Domains, moving: &mut Moving, map: &CpuMask) {
        self.sched_asym_cpucapacity |= from.sched_asym_cpucapacity;
        self.sched_domain_level_max = self.sched_domain_level_max.max(from.sched_domain_level_max);
        for cpu in map.iter() {
            self.sd[cpu] = moving.move_chain(self, from.sd[cpu]);
            self.sd_llc_id[cpu] = from.sd_llc_id[cpu];
            self.attach_cpu(cpu);
            self.cpu_capacity[cpu] = from.cpu_capacity[cpu];
            self.cpu_capacity_orig[cpu] = from.cpu_capacity_orig[cpu];
        }
    }
}

impl From<&Domains> for Moving {
    fn from(domains: &Domains) -> Moving {
        Moving {
            sds: domains.sds.clone(),
            stats: domains.stats.clone(),
            sgs: domains.sgs.clone(),
            sgcs: domains.sgcs.clone(),
            sdss: domains.sdss.clone(),
            masks: Some(domains.masks.clone()),
            ..Moving::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::versions::KERNELS;

    fn mask(cpus: &[u16]) -> CpuMask {
        cpus.iter().map(|&cpu| CpuId(cpu)).collect()
    }

    /// A description of one CPU's domains, without their ids.
    fn chain(domains: &Domains, cpu: u16) -> Vec<String> {
        domains
            .for_each_domain(CpuId(cpu))
            .map(|sd| {
                let groups = |sd| domains.groups(sd).map(|sg| domains.sched_group_span(sg).list()).collect::<Vec<_>>();
                let d = &domains[sd];
                format!(
                    "{:?} {} {:?} {:?} {}",
                    d.name,
                    domains.sched_domain_span(sd).list(),
                    groups(sd),
                    d.flags,
                    d.last_balance
                )
            })
            .collect()
    }

    #[test]
    fn partitions_that_stay_keep_what_they_counted() {
        for kernel in KERNELS {
            let topology = CpuTopology::symmetric(2, 1, 1, 2, 2);
            let setup = DomainSetup { jiffies: 1, ..DomainSetup::boot(&topology) };
            let whole = build_sched_domains(&topology, &CpuMask::all(8), &kernel.domains, &setup);
            // The sockets are 0, 1, 4, 5 and 2, 3, 6, 7. Each becomes a partition.
            let sockets = [mask(&[0, 1, 4, 5]), mask(&[2, 3, 6, 7])];
            let later = DomainSetup { jiffies: 2, ..setup.clone() };
            let mut two = whole.partition_sched_domains(&topology, &sockets, &later);
            assert_eq!(two.doms_cur, sockets);
            assert!(two.for_each_domain(CpuId(0)).all(|sd| two.sched_domain_span(sd).is_subset(&sockets[0])));
            let sd = two.sd[CpuId(0)].expect("a domain");
            two.stats_mut(sd).lb_count[0] = 7;
            two[sd].nr_balance_failed = 3;

            // CPU 7 leaves: the other socket stays as it was, and its own looks as if built alone.
            let rest = [sockets[0].clone(), mask(&[2, 3, 6])];
            let online = mask(&[0, 1, 2, 3, 4, 5, 6]);
            let now = DomainSetup { jiffies: 3, online, ..setup };
            let three = two.partition_sched_domains(&topology, &rest, &now);
            let sd = three.sd[CpuId(0)].expect("a domain");
            assert_eq!((three.stats(sd).lb_count[0], three[sd].nr_balance_failed), (7, 3), "{}", kernel.name);
            assert_eq!(chain(&three, 0), chain(&two, 0));
            assert_eq!(
                (three.sd[CpuId(7)], three.sd_llc_id[CpuId(7)], three.sd_llc_size[CpuId(7)]),
                (None, if kernel.domains.llc_id == LlcId::OfHardware { CpuId(2) } else { CpuId(7) }, 1)
            );
            let alone = build_sched_domains(&topology, &rest[1], &kernel.domains, &now);
            for cpu in [2, 3, 6] {
                assert_eq!(chain(&three, cpu), chain(&alone, cpu), "{} CPU {cpu}", kernel.name);
            }
            assert_eq!(three.sd_llc_size[CpuId(2)], 3);

            // All CPUs together again give what the machine began with.
            let again = three.partition_sched_domains(
                &topology,
                &[CpuMask::all(8)],
                &DomainSetup { jiffies: 1, ..later.clone() },
            );
            for cpu in 0..8 {
                assert_eq!(chain(&again, cpu), chain(&whole, cpu), "{} CPU {cpu}", kernel.name);
            }
        }
    }
}
