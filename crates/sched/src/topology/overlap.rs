//! topology.c: groups of NUMA levels, whose domains overlap.
//!
//! A domain that spans the nodes within some distance is divided into the child domains of its CPUs, which span the
//! nodes within the next smaller distance. Seen from different nodes these differ and overlap, so every CPU has a ring
//! of its own, with just enough groups to cover the domain. Groups with the same CPUs share a capacity.

use super::build::Builder;
use super::rules::OverlapGroups;
use super::*;
use std::collections::BTreeMap;

/// A group before it becomes part of a ring.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Planned {
    span: MaskId,
    sgc: SgcId,
    flags: SdFlags,
}

/// The CPUs that may share a ring: those of one node in domains of one span. CPUs of other nodes may see the same
/// groups, but removing a degenerate level marks the groups above it, and nodes differ in which levels are degenerate.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Sharers {
    node: Option<u16>,
    span: MaskId,
}

/// Rings and masks found so far.
pub(super) struct Found {
    /// Indexed by level: rings, each with the groups of which it consists.
    rings: Vec<Vec<(Sharers, Vec<Planned>, SgId)>>,
    /// Indexed by level: the last CPU done, and its ring.
    last: Vec<Option<(CpuId, Sharers, SgId)>>,
    /// By level and span of a group: the CPUs that may balance for it.
    balance_masks: BTreeMap<(usize, MaskId), MaskId>,
}

impl Found {
    pub fn new(levels: usize) -> Found {
        Found { rings: vec![Vec::new(); levels], last: vec![None; levels], balance_masks: BTreeMap::new() }
    }
}

impl Builder<'_> {
    /// topology.c: build_overlap_sched_groups().
    ///
    /// Differs: CPUs of a node share rings of the same groups in the same order.
    pub(super) fn build_overlap_sched_groups(&mut self, sd: SdId, cpu: CpuId) {
        self.domains[sd].groups = match self.rules.overlap {
            OverlapGroups::FromFirstCpu => self.build_overlap_sched_groups_from_first_cpu(sd, cpu),
            OverlapGroups::FromOwnCpu | OverlapGroups::Descended => {
                self.build_overlap_sched_groups_from_own_cpu(sd, cpu)
            }
        };
    }

    /// core.c: build_overlap_sched_groups(). One ring for all CPUs of the same span, each starting at its own place.
    fn build_overlap_sched_groups_from_first_cpu(&mut self, sd: SdId, cpu: CpuId) -> SgId {
        let (level, span) = (self.domains[sd].level as usize, self.domains[sd].span);
        let sharers = Sharers { node: None, span };
        let first = match self.overlap.last[level] {
            Some((_, last, ring)) if last == sharers => ring,
            _ => {
                let mut plan = Vec::new();
                for (i, sibling) in self.siblings(sd, self.domains.masks.first(span)) {
                    let span = match self.domains[sibling].child {
                        Some(child) => self.domains[child].span,
                        None => self.domains.masks.intern(CpuMask::single(i)),
                    };
                    let (sgc, new) = self.sgc_of(level, i, span);
                    if new {
                        self.domains[sgc].cpumask = self.build_group_mask(sd);
                    }
                    plan.push(Planned { span, sgc, flags: SdFlags::NONE });
                }
                self.ring_of(sharers, plan, sd)
            }
        };
        self.overlap.last[level] = Some((cpu, sharers, first));

        // The last group that this CPU balances for, or the first one it is in.
        let ring = std::iter::successors(Some(first), |&sg| Some(self.domains[sg].next).filter(|&next| next != first));
        let mut groups = None;
        for sg in ring {
            let contains = self.domains.sched_group_span(sg).contains(cpu);
            if (groups.is_none() && contains) || self.balances_for(sg) == Some(cpu) {
                groups = Some(sg);
            }
        }
        groups.expect("the groups of a domain cover its CPUs")
    }

    /// topology.c: build_overlap_sched_groups(), from v4.13 on.
    fn build_overlap_sched_groups_from_own_cpu(&mut self, sd: SdId, cpu: CpuId) -> SgId {
        let (level, span) = (self.domains[sd].level as usize, self.domains[sd].span);
        let sharers = Sharers { node: Some(self.topology.node[cpu]), span };
        // The previous CPU, if on the same node, made the same walk: the first group covers the node itself.
        let first = match self.overlap.last[level] {
            Some((before, last, ring)) if before.index() + 1 == cpu.index() && last == sharers => ring,
            _ => {
                let siblings = self.siblings(sd, cpu);
                let plan = siblings.into_iter().map(|(_, sibling)| self.init_overlap_sched_group(sibling, cpu));
                let plan = plan.collect();
                self.ring_of(sharers, plan, sd)
            }
        };
        self.overlap.last[level] = Some((cpu, sharers, first));
        first
    }

    /// Walks the domain's CPUs, from `start` on with wrap-around. Returns those that no earlier group covers, each with
    /// its domain on the same level or (descended) a lower one: the children of these are the groups.
    fn siblings(&self, sd: SdId, start: CpuId) -> Vec<(CpuId, SdId)> {
        let level = self.domains[sd].level as usize;
        let span = self.domains.sched_domain_span(sd);
        let mut covered = CpuMask::new(self.topology.nr_cpus);
        let mut siblings = Vec::new();
        for i in span.iter_wrap(start) {
            if covered.contains(i) {
                continue;
            }
            // A CPU whose chain ended lower, because it reaches all CPUs sooner, has no domain here.
            let Some(mut sibling) = self.data[level].sd[i] else {
                continue;
            };
            if self.rules.overlap == OverlapGroups::Descended && self.child_leaves(sibling, sd) {
                sibling = self.find_descended_sibling(sd, sibling);
            }
            match self.domains[sibling].child {
                Some(child) => covered.or_with(self.domains.sched_domain_span(child)),
                None => covered.set(i),
            }
            siblings.push((i, sibling));
        }
        siblings
    }

    fn child_leaves(&self, sibling: SdId, sd: SdId) -> bool {
        let outer = self.domains[sd].span;
        self.domains[sibling].child.is_some_and(|child| !self.domains.masks.is_subset(self.domains[child].span, outer))
    }

    /// topology.c: find_descended_sibling().
    fn find_descended_sibling(&self, sd: SdId, mut sibling: SdId) -> SdId {
        while let (true, Some(child)) = (self.child_leaves(sibling, sd), self.domains[sibling].child) {
            sibling = child;
        }
        // Levels that will turn out degenerate have no capacity of their own.
        while let Some(child) = self.domains[sibling].child {
            if self.domains[child].span != self.domains[sibling].span {
                break;
            }
            sibling = child;
        }
        sibling
    }

    /// core.c: build_group_mask(). The CPUs of the domain that have a domain on its level.
    fn build_group_mask(&mut self, sd: SdId) -> MaskId {
        let level = self.domains[sd].level as usize;
        let span = self.domains.sched_domain_span(sd);
        let mask = span.iter().filter(|&cpu| self.data[level].sd[cpu].is_some()).collect();
        self.domains.masks.intern(mask)
    }

    /// The first CPU in both the group and its mask.
    fn balances_for(&self, sg: SgId) -> Option<CpuId> {
        let mask = self.domains.group_balance_mask(sg);
        self.domains.sched_group_span(sg).iter().find(|&cpu| mask.contains(cpu))
    }

    /// topology.c: init_overlap_sched_group(). With the span that build_group_from_child_sched_domain() gives the
    /// group.
    fn init_overlap_sched_group(&mut self, sibling: SdId, cpu: CpuId) -> Planned {
        let level = self.domains[sibling].level as usize;
        let (span, flags) = match self.domains[sibling].child {
            Some(child) => (self.domains[child].span, self.group_flags(Some(child))),
            None => (self.domains[sibling].span, SdFlags::NONE),
        };
        let mut mask = self.build_balance_mask(level, span);
        if self.domains.masks.weight(mask) == 0 {
            let name = self.domains[sibling].name;
            self.domains.warnings.push(DomainWarning::EmptyBalanceMask { cpu, level: name });
            mask = self.domains.masks.intern(CpuMask::single(self.domains.masks.first(span)));
        }
        let (sgc, new) = self.sgc_of(level, self.domains.masks.first(mask), span);
        if new {
            self.domains[sgc].cpumask = mask;
        } else if self.domains[sgc].cpumask != mask {
            let level = self.domains[sibling].name;
            self.domains.warnings.push(DomainWarning::BalanceMasksDiffer { cpu, level });
        }
        Planned { span, sgc, flags }
    }

    /// topology.c: build_balance_mask(). The CPUs of a group whose own child domain equals the group: only they arrive
    /// at it.
    fn build_balance_mask(&mut self, level: usize, span: MaskId) -> MaskId {
        if let Some(&mask) = self.overlap.balance_masks.get(&(level, span)) {
            return mask;
        }
        let arrives = |cpu: CpuId| {
            let child = self.data[level].sd[cpu].and_then(|sibling| self.domains[sibling].child);
            child.is_some_and(|child| self.domains[child].span == span)
        };
        let mask = self.domains.masks.get(span).iter().filter(|&cpu| arrives(cpu)).collect();
        let mask = self.domains.masks.intern(mask);
        self.overlap.balance_masks.insert((level, span), mask);
        mask
    }

    /// The ring of these groups, new or known.
    fn ring_of(&mut self, sharers: Sharers, plan: Vec<Planned>, sd: SdId) -> SgId {
        let level = self.domains[sd].level as usize;
        let known = self.overlap.rings[level].iter().find(|(by, groups, _)| *by == sharers && *groups == plan);
        if let Some(&(_, _, first)) = known {
            return first;
        }
        let ring = plan.iter().map(|group| self.new_group(group.span, group.sgc, group.flags)).collect::<Vec<_>>();
        self.link(&ring, self.domains[sd].flags);
        self.overlap.rings[level].push((sharers, plan, ring[0]));
        ring[0]
    }
}
