//! topology.c: which domains a CPU keeps, and the pointers to those that are used often.

use super::build::Builder;
use super::flags::{LISTED_GROUPS_MASK, SD_DEGENERATE_GROUPS_MASK, SdFlags};
use super::rules::{AsymCapacity, BusyCpus, Degeneration, DomainShared, GroupFlags, LlcId};
use super::*;
use crate::cpu_topology::CpuTopology;
use std::collections::BTreeMap;
use std::mem::take;

impl Builder<'_> {
    fn has_one_group(&self, sd: SdId) -> bool {
        let first = self.domains[sd].groups;
        self.domains[first].next == first
    }

    /// topology.c: sd_degenerate(). Whether balancing in this domain can have no effect.
    fn sd_degenerate(&self, sd: SdId) -> bool {
        let need_groups = match self.rules.degeneration {
            Degeneration::ListedFlags => LISTED_GROUPS_MASK,
            Degeneration::NeedsGroups => SD_DEGENERATE_GROUPS_MASK,
        };
        let flags = self.domains[sd].flags;
        if self.domains.masks.weight(self.domains[sd].span) == 1 {
            return true;
        }
        if flags.has(need_groups) && !self.has_one_group(sd) {
            return false;
        }
        !flags.has(SdFlags::SD_WAKE_AFFINE)
    }

    /// topology.c: sd_parent_degenerate(). Whether `parent` adds nothing to `sd`.
    fn sd_parent_degenerate(&self, sd: SdId, parent: SdId) -> bool {
        if self.sd_degenerate(parent) {
            return true;
        }
        if self.domains[sd].span != self.domains[parent].span {
            return false;
        }
        let mut pflags = self.domains[parent].flags;
        if self.has_one_group(parent) {
            pflags -= match self.rules.degeneration {
                Degeneration::ListedFlags if self.topology.nr_nodes() == 1 => {
                    LISTED_GROUPS_MASK | SdFlags::SD_PREFER_SIBLING | SdFlags::SD_SERIALIZE
                }
                Degeneration::ListedFlags => LISTED_GROUPS_MASK | SdFlags::SD_PREFER_SIBLING,
                Degeneration::NeedsGroups => SD_DEGENERATE_GROUPS_MASK,
            };
        }
        self.domains[sd].flags.has_all(pflags)
    }

    /// topology.c: cpu_attach_domain(). Removes domains that contribute nothing; returns the lowest domain that stays.
    pub(super) fn cpu_attach_domain(&mut self, cpu: CpuId) -> Option<SdId> {
        let base = self.data[0].sd[cpu]?;
        let mut tmp = base;
        while let Some(parent) = self.domains[tmp].parent {
            if !self.sd_parent_degenerate(tmp, parent) {
                tmp = parent;
                continue;
            }
            let grandparent = self.domains[parent].parent;
            self.domains[tmp].parent = grandparent;
            if self.rules.shared == DomainShared::CacheAndCapacities && self.domains[parent].shared.is_some() {
                self.domains[tmp].shared = self.domains[parent].shared.take();
            }
            if let Some(grandparent) = grandparent {
                self.domains[grandparent].child = Some(tmp);
                if self.rules.group_flags == GroupFlags::OfKeptChild {
                    let (own_group, flags) = (self.domains[grandparent].groups, self.domains[tmp].flags);
                    self.domains[own_group].flags = flags;
                }
            }
            // The spans are equal, so what holds for the parent's children holds for this one's, too.
            let inherited = self.domains[parent].flags & SdFlags::SD_PREFER_SIBLING;
            self.domains[tmp].flags |= inherited;
        }
        if !self.sd_degenerate(base) {
            return Some(base);
        }
        let parent = self.domains[base].parent?;
        // The kernel means to clear the flags of all groups of the ring, but reaches only the first.
        let own_group = self.domains[parent].groups;
        self.domains[own_group].flags = SdFlags::NONE;
        self.domains[parent].child = None;
        Some(parent)
    }

    /// The finished domains: those reachable from `base` of each CPU, numbered CPU by CPU, and what they refer to.
    pub(super) fn finish(self, base: impl Fn(CpuId) -> Option<SdId>) -> Domains {
        let mut domains = self.domains;
        let mut built = Moving {
            sds: take(&mut domains.sds),
            sgs: take(&mut domains.sgs),
            sgcs: take(&mut domains.sgcs),
            sdss: take(&mut domains.sdss),
            ..Moving::default()
        };
        for cpu in (0..domains.sd.len()).map(CpuId::new) {
            domains.sd[cpu] = built.move_chain(&mut domains, base(cpu));
        }
        for cpu in self.cpu_map.iter() {
            if self.rules.llc_id == LlcId::OfHardware {
                domains.sd_llc_id[cpu] = llc_id(self.topology, cpu);
            }
            domains.attach_cpu(cpu);
        }
        domains
    }
}

/// The first CPU that shares the last level cache of `cpu` (`llc_mask()`).
///
/// Differs: serves as a label of the cache; the kernel numbers caches in the order in which it found them.
pub(crate) fn llc_id(topology: &CpuTopology, cpu: CpuId) -> CpuId {
    let mut sharing = topology.coregroup[cpu].iter();
    sharing.find(|&other| topology.node[other] == topology.node[cpu]).unwrap_or(cpu)
}

/// Domains that are being moved into others: the source, and the new ids of what has arrived.
#[derive(Default)]
pub(super) struct Moving {
    pub sds: Vec<SchedDomain>,
    /// Empty if nothing has been counted yet.
    pub stats: Vec<DomainStats>,
    pub sgs: Vec<SchedGroup>,
    pub sgcs: Vec<SchedGroupCapacity>,
    pub sdss: Vec<SchedDomainShared>,
    /// Set if masks have other ids at the destination.
    pub masks: Option<Masks>,
    pub(super) sg: BTreeMap<SgId, SgId>,
    pub(super) sgc: BTreeMap<SgcId, SgcId>,
    pub(super) shared: BTreeMap<SdsId, SdsId>,
}

impl Moving {
    /// Moves one CPU's domains, from `base` up.
    pub(super) fn move_chain(&mut self, to: &mut Domains, base: Option<SdId>) -> Option<SdId> {
        let first = to.sds.len() as u32;
        let mut next = base;
        while let Some(from) = next {
            let mut sd = self.sds[from.0 as usize].clone();
            let id = to.sds.len() as u32;
            next = sd.parent;
            sd.parent = next.map(|_| SdId(id + 1));
            sd.child = (id > first).then(|| SdId(id - 1));
            sd.groups = self.move_ring(to, sd.groups);
            sd.shared = sd.shared.map(|shared| self.move_shared(to, shared));
            sd.span = self.mask(to, sd.span);
            to.sds.push(sd);
            to.stats.push(self.stats.get(from.0 as usize).cloned().unwrap_or_default());
        }
        base.map(|_| SdId(first))
    }

    fn mask(&self, to: &mut Domains, mask: MaskId) -> MaskId {
        match &self.masks {
            Some(masks) => to.masks.intern(masks.get(mask).clone()),
            None => mask,
        }
    }

    fn move_ring(&mut self, to: &mut Domains, first: SgId) -> SgId {
        if let Some(&moved) = self.sg.get(&first) {
            return moved;
        }
        let begin = to.sgs.len() as u32;
        let mut old = first;
        loop {
            let mut sg = self.sgs[old.0 as usize].clone();
            let id = SgId(to.sgs.len() as u32);
            self.sg.insert(old, id);
            old = sg.next;
            sg.next = if old == first { SgId(begin) } else { SgId(id.0 + 1) };
            sg.cpumask = self.mask(to, sg.cpumask);
            sg.sgc = self.move_capacity(to, sg.sgc);
            to.sgs.push(sg);
            if old == first {
                return SgId(begin);
            }
        }
    }

    fn move_capacity(&mut self, to: &mut Domains, sgc: SgcId) -> SgcId {
        if let Some(&moved) = self.sgc.get(&sgc) {
            return moved;
        }
        let mut moved = self.sgcs[sgc.0 as usize].clone();
        moved.cpumask = self.mask(to, moved.cpumask);
        to.sgcs.push(moved);
        let id = SgcId(to.sgcs.len() as u32 - 1);
        self.sgc.insert(sgc, id);
        id
    }

    fn move_shared(&mut self, to: &mut Domains, shared: SdsId) -> SdsId {
        let Moving { sdss, shared: moved, .. } = self;
        *moved.entry(shared).or_insert_with(|| {
            to.sdss.push(sdss[shared.0 as usize].clone());
            SdsId(to.sdss.len() as u32 - 1)
        })
    }
}

impl Domains {
    /// What cpu_attach_domain() and build_sched_domains() record for a CPU whose chain of domains is in place.
    pub(super) fn attach_cpu(&mut self, cpu: CpuId) {
        self.update_top_cache_domain(cpu);
        self.sched_cluster_active |= self.lowest_flag_domain(cpu, SdFlags::SD_CLUSTER).is_some();
    }

    /// topology.c: update_top_cache_domain().
    fn update_top_cache_domain(&mut self, cpu: CpuId) {
        let llc = self.highest_flag_domain(cpu, SdFlags::SD_SHARE_LLC);
        self.sd_llc[cpu] = llc;
        let mut id = cpu;
        self.sd_llc_size[cpu] = 1;
        if let Some(sd) = llc {
            id = self.masks.first(self[sd].span);
            self.sd_llc_size[cpu] = self.masks.weight(self[sd].span);
            self.sd_llc_shared[cpu] = self[sd].shared;
            if self.rules.busy_cpus == BusyCpus::InGroupOfParent {
                self.sd_busy[cpu] = self[sd].parent;
            }
        }
        if self.rules.llc_id == LlcId::OfDomain {
            self.sd_llc_id[cpu] = id;
        }
        if let Some(cluster) = self.lowest_flag_domain(cpu, SdFlags::SD_CLUSTER) {
            id = self.masks.first(self[cluster].span);
        }
        self.sd_share_id[cpu] = id;
        self.sd_numa[cpu] = self.lowest_flag_domain(cpu, SdFlags::SD_NUMA);
        self.sd_asym_packing[cpu] = self.highest_flag_domain(cpu, SdFlags::SD_ASYM_PACKING);
        let asym = self.lowest_flag_domain(
            cpu,
            match self.rules.asym_capacity {
                AsymCapacity::OneLevel | AsymCapacity::FromOneLevel => SdFlags::SD_ASYM_CPUCAPACITY,
                AsymCapacity::Unseen | AsymCapacity::Classified => SdFlags::SD_ASYM_CPUCAPACITY_FULL,
            },
        );
        self.sd_asym_cpucapacity[cpu] = asym;
        let of_capacities = match self.rules.shared {
            DomainShared::CacheLevels => None,
            DomainShared::CacheAndCapacities => asym.and_then(|sd| self[sd].shared),
        };
        self.sd_balance_shared[cpu] = of_capacities.or(self.sd_llc_shared[cpu]);
    }
}
