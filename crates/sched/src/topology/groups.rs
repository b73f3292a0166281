//! topology.c: groups of levels whose domains do not overlap. All CPUs of a domain share them.

use super::build::Builder;
use super::capacity::{AtBoot, BalanceClock};
use super::flags::SdFlags;
use super::rules::{GroupBuilding, GroupCores, GroupFlags};
use super::*;
use crate::cpu_topology::SCHED_CAPACITY_SCALE;

impl Builder<'_> {
    /// topology.c: get_group(). The group of `cpu` on a level: its child domain's CPUs, or the CPU alone.
    fn get_group(&mut self, cpu: CpuId, level: usize) -> SgId {
        let child = self.data[level].sd[cpu].and_then(|sd| self.domains[sd].child);
        let span = match child {
            Some(child) => self.domains[child].span,
            None => self.domains.masks.intern(CpuMask::single(cpu)),
        };
        let first = self.domains.masks.first(span);
        if let Some(sg) = self.data[level].sg[first] {
            return sg;
        }
        let mask = match self.rules.groups {
            GroupBuilding::ByFirstCpu => self.domains.masks.intern(CpuMask::all(self.topology.nr_cpus)),
            GroupBuilding::ByEveryCpu => span,
        };
        let (sgc, _) = self.sgc_of(level, first, span);
        self.domains[sgc].cpumask = mask;
        let sg = self.new_group(span, sgc, self.group_flags(child));
        self.data[level].sg[first] = Some(sg);
        sg
    }

    /// The flags that a group keeps of its child domain.
    pub(super) fn group_flags(&self, child: Option<SdId>) -> SdFlags {
        match (self.rules.group_flags, child) {
            (GroupFlags::OfChild | GroupFlags::OfKeptChild, Some(child)) => self.domains[child].flags,
            (GroupFlags::Absent, _) | (_, None) => SdFlags::NONE,
        }
    }

    /// The capacity of a CPU on a level, and whether it is new. Its mask is still the one of `span`.
    pub(super) fn sgc_of(&mut self, level: usize, cpu: CpuId, span: MaskId) -> (SgcId, bool) {
        if let Some(sgc) = self.data[level].sgc[cpu] {
            return (sgc, false);
        }
        let sgc = SgcId(self.domains.sgcs.len() as u32);
        self.data[level].sgc[cpu] = Some(sgc);
        let full = u64::from(SCHED_CAPACITY_SCALE);
        self.domains.sgcs.push(SchedGroupCapacity {
            capacity: full * u64::from(self.domains.masks.weight(span)),
            min_capacity: full,
            max_capacity: full,
            next_update: 0,
            imbalance: false,
            nr_busy_cpus: 0,
            id: cpu,
            cpumask: span,
        });
        (sgc, true)
    }

    /// Creates a group, which is a ring by itself for now.
    pub(super) fn new_group(&mut self, span: MaskId, sgc: SgcId, flags: SdFlags) -> SgId {
        let sg = SgId(self.domains.sgs.len() as u32);
        self.domains.sgs.push(SchedGroup {
            next: sg,
            cpumask: span,
            group_weight: self.domains.masks.weight(span),
            cores: 0,
            sgc,
            asym_prefer_cpu: None,
            flags,
        });
        sg
    }

    /// Links the groups of a domain with these flags into a ring.
    ///
    /// Also sets `cores` and `asym_prefer_cpu`, as init_sched_groups_capacity() does once for each CPU of the domain.
    pub(super) fn link(&mut self, ring: &[SgId], sd_flags: SdFlags) {
        for (at, &sg) in ring.iter().enumerate() {
            self.domains[sg].next = ring[(at + 1) % ring.len()];
            if self.rules.group_cores == GroupCores::Counted {
                self.domains[sg].cores = self.count_cores(sg);
            }
            if sd_flags.has(SdFlags::SD_ASYM_PACKING) {
                self.domains[sg].asym_prefer_cpu = self.most_preferred_cpu(sg);
            }
        }
    }

    fn count_cores(&self, sg: SgId) -> u32 {
        let span = self.domains.sched_group_span(sg);
        // A core counts through the first of its threads that is in the group.
        let counts = |cpu: CpuId| {
            let siblings = self.domains.masks.get(self.levels[0].mask[cpu]);
            siblings.iter().find(|&sibling| span.contains(sibling)) == Some(cpu)
        };
        span.iter().filter(|&cpu| counts(cpu)).count() as u32
    }

    /// The first of the CPUs with the highest priority (sched_asym_prefer()).
    fn most_preferred_cpu(&self, sg: SgId) -> Option<CpuId> {
        let priority = self.setup.arch_asym_cpu_priority.as_ref()?;
        let mut cpus = self.domains.sched_group_span(sg).iter();
        let first = cpus.next()?;
        Some(cpus.fold(first, |best, cpu| if priority[cpu] > priority[best] { cpu } else { best }))
    }

    /// topology.c: build_sched_groups().
    ///
    /// Differs: in the kernel every CPU links the ring anew; here only the last CPU of the domain does, whose order is
    /// the one that stays.
    pub(super) fn build_sched_groups(&mut self, sd: SdId, cpu: CpuId) {
        let level = self.domains[sd].level as usize;
        let span = self.domains[sd].span;
        let sg = self.get_group(cpu, level);
        self.domains[sd].groups = sg;
        let linker = match self.rules.groups {
            GroupBuilding::ByFirstCpu => self.domains.masks.first(span),
            GroupBuilding::ByEveryCpu => self.domains.masks.last(span),
        };
        if cpu != linker {
            return;
        }
        let mut covered = CpuMask::new(self.topology.nr_cpus);
        let mut ring = Vec::new();
        let cpus = self.domains.masks.get(span).iter_wrap(cpu).collect::<Vec<_>>();
        for i in cpus {
            if covered.contains(i) {
                continue;
            }
            let sg = self.get_group(i, level);
            covered.or_with(self.domains.sched_group_span(sg));
            ring.push(sg);
        }
        self.link(&ring, self.domains[sd].flags);
    }

    /// topology.c: init_sched_groups_capacity(). Sets the capacity of the group whose balance CPU is `cpu`.
    pub(super) fn init_sched_groups_capacity(&mut self, cpu: CpuId, sd: SdId, clock: BalanceClock, rqs: &mut AtBoot) {
        let sg = self.domains[sd].groups;
        if cpu != self.domains.group_balance_cpu(sg) {
            return;
        }
        self.domains.update_group_capacity(sd, cpu, clock, rqs);
        if self.rules.busy_cpus == BusyCpus::InGroupOfParent {
            let (sgc, weight) = (self.domains[sg].sgc, self.domains[sg].group_weight);
            self.domains[sgc].nr_busy_cpus = weight;
        }
    }
}
