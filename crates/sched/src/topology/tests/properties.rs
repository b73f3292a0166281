//! What holds for every machine and version, and what the shortcuts of the builder must not change.

use super::dump::{Era, dump};
use super::machine::Machine;
use crate::topology::*;
use units::CpuId;

#[test]
fn domains_and_groups_are_well_formed() {
    for seed in 0..150 {
        let machine = Machine::random(seed);
        for (version, _, rules) in Era::ALL {
            let domains = machine.build(&rules);
            assert!(domains.warnings.is_empty(), "seed {seed}, {version}: {:?}", domains.warnings);
            for (cpu, _) in domains.sd.iter() {
                let mut child = None;
                for sd in domains.for_each_domain(cpu) {
                    check(&domains, cpu, sd, child, &format!("seed {seed}, {version}, {cpu:?}"));
                    child = Some(sd);
                }
            }
        }
    }
}

fn check(domains: &Domains, cpu: CpuId, sd: SdId, child: Option<SdId>, at: &str) {
    let span = domains.sched_domain_span(sd);
    assert!(span.contains(cpu) && span.weight() > 1, "{at}");
    assert_eq!(domains[sd].child, child, "{at}");
    assert_eq!(domains[sd].span_weight as usize, span.weight(), "{at}");
    if let Some(child) = child {
        assert!(domains.sched_domain_span(child).is_subset(span), "{at}");
        assert!(domains[child].level < domains[sd].level, "{at}");
    }
    let overlap = domains[sd].flags.has(SdFlags::SD_OVERLAP | SdFlags::SD_NUMA);
    let mut covered = CpuMask::default();
    for (at_group, sg) in domains.groups(sd).enumerate() {
        let group = domains.sched_group_span(sg);
        assert_eq!(domains[sg].group_weight as usize, group.weight(), "{at}");
        assert!(at_group > 0 || group.contains(cpu), "{at}: the ring begins elsewhere");
        assert!(overlap || !covered.intersects(group), "{at}: groups overlap");
        assert!(group.contains(domains.group_balance_cpu(sg)), "{at}");
        assert!(domains[domains[sg].sgc].capacity > 0, "{at}");
        covered.or_with(group);
    }
    assert!(span.is_subset(&covered), "{at}: {} is covered by {}", span.list(), covered.list());
    let leaves = domains.rules.overlap != OverlapGroups::Descended && overlap;
    assert!(leaves || covered == *span, "{at}: groups reach out of the domain");
}

#[test]
fn building_is_a_pure_function() {
    for seed in [3, 14, 77] {
        let machine = Machine::random(seed);
        for (_, era, rules) in Era::ALL {
            assert_eq!(dump(&machine.build(&rules), era), dump(&machine.build(&rules), era));
        }
    }
}

/// The order in which a walk from `start` around `span` meets groups, given each CPU's group.
fn walk(span: &CpuMask, start: CpuId, group_of: impl Fn(CpuId) -> CpuMask) -> Vec<CpuMask> {
    let (mut covered, mut met) = (CpuMask::default(), Vec::new());
    for cpu in span.iter_wrap(start) {
        if !covered.contains(cpu) {
            covered.or_with(&group_of(cpu));
            met.push(group_of(cpu));
        }
    }
    met
}

/// The groups from the CPU's own on, if every CPU of the domain links the shared ring in turn, as in the kernel.
fn relinked(span: &CpuMask, cpu: CpuId, group_of: impl Fn(CpuId) -> CpuMask) -> Vec<CpuMask> {
    let mut next = Vec::<(CpuMask, CpuMask)>::new();
    for linker in span.iter() {
        let met = walk(span, linker, &group_of);
        next = (0..met.len()).map(|at| (met[at].clone(), met[(at + 1) % met.len()].clone())).collect();
    }
    let mut ring = vec![group_of(cpu)];
    while ring.len() < next.len() {
        let last = &ring[ring.len() - 1];
        let (_, after) = next.iter().find(|(group, _)| group == last).expect("a linked group");
        ring.push(after.clone());
    }
    ring
}

#[test]
fn rings_are_what_every_cpu_linking_anew_leaves() {
    let mut odd = 0;
    for seed in 0..120 {
        let machine = Machine::random(seed);
        let domains = machine.build(&DomainRules::V4_15);
        for (cpu, _) in domains.sd.iter() {
            for sd in domains.for_each_domain(cpu) {
                let span = domains.sched_domain_span(sd);
                if domains[sd].flags.has(SdFlags::SD_OVERLAP) {
                    continue;
                }
                let level = domains[sd].level;
                let group_of = |other: CpuId| {
                    let below = domains.for_each_domain(other).filter(|&below| domains[below].level < level).last();
                    below.map_or(CpuMask::single(other), |below| domains.sched_domain_span(below).clone())
                };
                let ring = domains.groups(sd).map(|sg| domains.sched_group_span(sg).clone()).collect::<Vec<_>>();
                assert_eq!(ring, relinked(span, cpu, group_of), "seed {seed}, {cpu:?}, level {level}");
                odd += usize::from(ring != walk(span, cpu, group_of));
            }
        }
    }
    assert!(odd > 0, "no numbering among these machines makes a difference");
}

#[test]
fn eight_thousand_cpus_share_masks_and_groups() {
    let topology = crate::cpu_topology::CpuTopology::symmetric(16, 1, 4, 64, 2);
    let setup = DomainSetup::boot(&topology);
    for rules in [DomainRules::V4_5, DomainRules::V6_12] {
        let domains = build_sched_domains(&topology, &setup.online, &rules, &setup);
        assert_eq!(domains.nr_domains(), 8192 * 4);
        // Threads, cores, LLCs, nodes, the machine, and the empty set.
        assert!(domains.masks.len() <= 8192 + 4096 + 64 + 16 + 1 + 1, "{} masks", domains.masks.len());
        // All but the machine are groups; every node has at most two rings of nodes (for first and second threads).
        assert!(domains.nr_groups() <= 8192 + 4096 + 64 + 16 * 2 * 16, "{} groups", domains.nr_groups());
    }
}
