//! Small, lopsided, partly offline and impossible machines.

use super::machine::Machine;
use super::{expected, outline};
use crate::cpu_topology::CpuTopology;
use crate::topology::*;
use units::{CpuId, CpuMask, PerCpu};

const ALL_RULES: [DomainRules; 11] = [
    DomainRules::V4_5,
    DomainRules::V4_15,
    DomainRules::V4_16,
    DomainRules::V5_4,
    DomainRules::V5_10,
    DomainRules::V5_15,
    DomainRules::V6_1,
    DomainRules::V6_6,
    DomainRules::V6_12,
    DomainRules::V6_18,
    DomainRules::V7_2,
];

#[test]
fn a_single_cpu_has_no_domains() {
    for rules in ALL_RULES {
        let domains = Machine::nested(1, 1, 1, 1, 1).build(&rules);
        let cpu = CpuId(0);
        assert_eq!((domains.sd[cpu], domains.sd_llc[cpu], domains.sd_numa[cpu]), (None, None, None));
        assert_eq!((domains.sd_llc_id[cpu], domains.sd_llc_size[cpu]), (cpu, 1));
        assert_eq!((domains.nr_domains(), domains.nr_groups(), domains.warnings.len()), (0, 0, 0));
        assert_eq!((domains.cpu_capacity[cpu], domains.describe(cpu)), (1024, "CPU0: no domains\n".to_string()));
    }
}

#[test]
fn a_core_with_two_threads_is_its_own_cache() {
    for rules in ALL_RULES {
        let domains = Machine::nested(1, 1, 1, 1, 2).build(&rules);
        assert_eq!(outline(&domains, 1), expected(&[("SMT:0-1", &["1", "0"])]));
        assert_eq!(domains.sd_llc[CpuId(1)], domains.sd[CpuId(1)]);
    }
}

#[test]
fn clusters_are_a_level_from_v5_16_on() {
    // Two clusters of 4 cores share an LLC.
    let machine = Machine::nested(1, 1, 2, 4, 1);
    assert_eq!(outline(&machine.build(&DomainRules::V4_15), 5)[0].0, "MC:0-7");
    for rules in [DomainRules::V6_1, DomainRules::V6_6, DomainRules::V6_12] {
        let domains = machine.build(&rules);
        assert_eq!(outline(&domains, 5), expected(&[("CLS:4-7", &["5", "6", "7", "4"]), ("MC:0-7", &["4-7", "0-3"])]));
        let cluster = domains.sd[CpuId(5)].expect("a cluster");
        let flagged = rules.cluster_level == ClusterLevel::Flagged;
        assert_eq!(domains[cluster].flags.has(SdFlags::SD_CLUSTER), flagged);
        assert_eq!(domains.sched_cluster_active, flagged);
        assert_eq!(domains.sd_share_id[CpuId(5)], CpuId(if flagged { 4 } else { 0 }));
        assert_eq!(domains.sd_llc_id[CpuId(5)], CpuId(0));
        assert_eq!(domains.cpus_share_resources(CpuId(5), CpuId(1)), !flagged);
        // Both levels share a cache, so both count busy CPUs; the count of sd_llc is the one that is read.
        assert_eq!(domains[domains[cluster].shared.expect("shared")].nr_busy_cpus, 4);
        assert_eq!(domains[domains.sd_llc_shared[CpuId(5)].expect("shared")].nr_busy_cpus, 8);
        // A group keeps the flag that it is a cluster.
        let mc = domains[cluster].parent.expect("MC");
        assert_eq!(domains[domains[mc].groups].flags, domains[cluster].flags);
    }
    let mut hybrid = machine;
    hybrid.hybrid = true;
    assert_eq!(outline(&hybrid.build(&DomainRules::V6_1), 5).len(), 1);
    for rules in [DomainRules::V6_6, DomainRules::V6_12] {
        assert_eq!(outline(&hybrid.build(&rules), 5).len(), 2);
    }
}

#[test]
fn clusters_of_one_core_are_removed() {
    let v6_6 = Machine::nested(1, 1, 4, 1, 2).build(&DomainRules::V6_6);
    let domains = Machine::nested(1, 1, 4, 1, 2).build(&DomainRules::V6_12);
    assert_eq!(outline(&v6_6, 2), outline(&domains, 2));
    assert_eq!(outline(&domains, 2).iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["SMT:2-3", "MC:0-7"]);
    let mc = domains.for_each_domain(CpuId(2)).last().expect("MC");
    assert_eq!(domains[mc].level, 2, "CLS, level 1, left a gap");
    assert!(!domains.sched_cluster_active);
    // The group of MC was the cluster's; it takes on the flags of the level left below, SMT.
    assert!(domains[domains[mc].groups].flags.has(SdFlags::SD_SHARE_CPUCAPACITY));
    let v6_1 = Machine::nested(1, 1, 4, 1, 2).build(&DomainRules::V6_1);
    let mc = v6_1.for_each_domain(CpuId(2)).last().expect("MC");
    assert!(!v6_1[v6_1[mc].groups].flags.has(SdFlags::SD_SHARE_CPUCAPACITY), "v6.1 forgot that");
}

#[test]
fn ranked_cores_are_packed() {
    let mut machine = Machine::nested(1, 1, 1, 2, 2);
    machine.itmt = true;
    for (number, cpu) in machine.cpus.iter_mut().enumerate() {
        cpu.priority = [1, 1, 5, 4][number];
    }
    let packed = |rules: &DomainRules| {
        let domains = machine.build(rules);
        let chain = domains.for_each_domain(CpuId(0));
        chain.map(|sd| domains[sd].flags.has(SdFlags::SD_ASYM_PACKING)).collect::<Vec<_>>()
    };
    assert_eq!(packed(&DomainRules::V4_5), [false, false]);
    assert_eq!(packed(&DomainRules::V4_15), [true, true]);
    assert_eq!([DomainRules::V6_6, DomainRules::V6_12].map(|rules| packed(&rules)), [[false, true], [false, true]]);
    let domains = machine.build(&DomainRules::V6_12);
    let mc = domains.for_each_domain(CpuId(0)).last();
    assert_eq!(domains.sd_asym_packing[CpuId(0)], mc, "found above SMT, which has no such flag");
    let preferred = |sg: SgId| domains[sg].asym_prefer_cpu;
    let of_groups = domains.groups(mc.expect("MC")).map(preferred).collect::<Vec<_>>();
    assert_eq!(of_groups, [Some(CpuId(0)), Some(CpuId(2))], "the first of equals, the highest of unequals");
}

#[test]
fn unequal_capacities_are_classified() {
    // Two LLCs of 2 CPUs, one big, one small; and an LLC with both kinds.
    let mut machine = Machine::nested(1, 3, 1, 2, 1);
    for (cpu, capacity) in machine.cpus.iter_mut().zip([1024, 1024, 400, 400, 1024, 400]) {
        cpu.capacity = capacity;
    }
    let domains = machine.build(&DomainRules::V6_1);
    assert!(domains.sched_asym_cpucapacity);
    let flags = |cpu: u16| domains.for_each_domain(CpuId(cpu)).map(|sd| domains[sd].flags).collect::<Vec<_>>();
    let full = SdFlags::SD_ASYM_CPUCAPACITY | SdFlags::SD_ASYM_CPUCAPACITY_FULL;
    assert_eq!(flags(0).iter().map(|flags| flags.has(full)).collect::<Vec<_>>(), [false, true]);
    assert_eq!(flags(4).iter().map(|flags| flags.has_all(full)).collect::<Vec<_>>(), [true, true]);
    assert!(!flags(0)[0].has(SdFlags::SD_PREFER_SIBLING), "no spreading over unequal CPUs");
    for (rules, spread) in [(&DomainRules::V7_2, false), (&DomainRules::V7_3, true)] {
        let domains = machine.build(rules);
        let child = domains.sd[CpuId(0)].expect("MC");
        assert_eq!(domains[child].flags.has(SdFlags::SD_PREFER_SIBLING), spread);
    }
    assert_eq!(domains.sd_asym_cpucapacity[CpuId(4)], domains.sd[CpuId(4)]);
    assert_eq!(domains.sd_asym_cpucapacity[CpuId(0)], domains.for_each_domain(CpuId(0)).last());
    let die = domains.for_each_domain(CpuId(4)).last().expect("DIE");
    let capacity = |sg: SgId| {
        (
            domains[domains[sg].sgc].capacity,
            domains[domains[sg].sgc].min_capacity,
            domains[domains[sg].sgc].max_capacity,
        )
    };
    assert_eq!(
        domains.groups(die).map(capacity).collect::<Vec<_>>(),
        [(1424, 400, 1024), (2048, 1024, 1024), (800, 400, 400)]
    );
    machine.cpus.push(super::machine::Cpu { core: 6, cluster: 6, llc: 3, capacity: 700, ..machine.cpus[0] });
    let domains = machine.build(&DomainRules::V6_1);
    let lowest = domains.sd[CpuId(4)].expect("MC");
    assert!(domains[lowest].flags.has(SdFlags::SD_ASYM_CPUCAPACITY));
    assert!(!domains[lowest].flags.has(SdFlags::SD_ASYM_CPUCAPACITY_FULL), "700 is missing");
}

#[test]
fn v5_10_flags_whole_levels_for_unequal_capacities() {
    let mut machine = Machine::nested(1, 3, 1, 2, 1);
    for (cpu, capacity) in machine.cpus.iter_mut().zip([1024, 1024, 400, 400, 1024, 400]) {
        cpu.capacity = capacity;
    }
    let flagged = |machine: &Machine, cpu: u16| {
        let domains = machine.build(&DomainRules::V5_10);
        let flags = domains.for_each_domain(CpuId(cpu)).map(|sd| domains[sd].flags.has(SdFlags::SD_ASYM_CPUCAPACITY));
        assert_eq!(domains.sd_asym_cpucapacity[CpuId(cpu)], domains.for_each_domain(CpuId(cpu)).last());
        flags.collect::<Vec<_>>()
    };
    // CPU 2 sees a bigger one only from DIE on. By then CPU 5, whose cache has both kinds, need not ask any more.
    assert_eq!([flagged(&machine, 0), flagged(&machine, 5)], [[false, true], [false, true]]);
    machine.cpus.truncate(2);
    machine.cpus[1].capacity = 400;
    assert_eq!(flagged(&machine, 0), [true]);
}

#[test]
fn v5_4_flags_one_level_of_unequal_capacities_and_lets_wakeups_balance_up_to_it() {
    // Each node has both kinds.
    let mut machine = Machine::nested(2, 1, 1, 2, 1);
    for (cpu, capacity) in machine.cpus.iter_mut().zip([1024, 400, 1024, 400]) {
        cpu.capacity = capacity;
    }
    let flags = |rules: &DomainRules, flag| {
        let domains = machine.build(rules);
        let first = domains.sd[CpuId(1)];
        assert_eq!(domains.sd_asym_cpucapacity[CpuId(1)], first);
        domains.for_each_domain(CpuId(1)).map(|sd| domains[sd].flags.has(flag)).collect::<Vec<_>>()
    };
    let (asym, wake) = (SdFlags::SD_ASYM_CPUCAPACITY, SdFlags::SD_BALANCE_WAKE);
    assert_eq!([flags(&DomainRules::V5_4, asym), flags(&DomainRules::V5_4, wake)], [[true, false], [true, false]]);
    assert_eq!([flags(&DomainRules::V5_10, asym), flags(&DomainRules::V5_10, wake)], [[true, true], [false, false]]);
}

#[test]
fn v5_4_has_the_old_margins_without_load_indices() {
    let tuned = |rules: &DomainRules| {
        let domains = Machine::nested(2, 1, 1, 2, 2).build(rules);
        let numbers = |sd: SdId| {
            let sd = &domains[sd];
            (sd.busy_factor, sd.imbalance_pct, sd.busy_idx, sd.flags.has(SdFlags::SD_LOAD_BALANCE))
        };
        domains.for_each_domain(CpuId(0)).map(numbers).collect::<Vec<_>>()
    };
    for rules in [&DomainRules::V4_16, &DomainRules::V4_19] {
        assert_eq!(tuned(rules), [(32, 110, 0, true), (32, 117, 2, true), (32, 125, 3, true)]);
    }
    assert_eq!(tuned(&DomainRules::V5_4), [(32, 110, 0, true), (32, 117, 0, true), (32, 125, 0, true)]);
    assert_eq!(tuned(&DomainRules::V5_10), [(16, 110, 0, false), (16, 117, 0, false), (16, 117, 0, false)]);
}

#[test]
fn cpus_that_left_and_cpus_that_are_leaving() {
    let topology = CpuTopology::symmetric(1, 1, 1, 4, 2);
    let up = |gone: &[u16]| (0..8).filter(|cpu| !gone.contains(cpu)).map(CpuId).collect::<CpuMask>();
    let build = |online: &[u16], active: &[u16]| {
        let setup = DomainSetup { online: up(online), ..DomainSetup::boot(&topology) };
        build_sched_domains(&topology, &up(active), &DomainRules::V4_15, &setup)
    };
    // CPU 3 is offline: its sibling is a core by itself.
    let domains = build(&[3], &[3]);
    assert_eq!(outline(&domains, 7), expected(&[("MC:0-2,4-7", &["7", "0,4", "1,5", "2,6"])]));
    assert_eq!((domains.sd[CpuId(3)], domains.sd_llc_id[CpuId(3)]), (None, CpuId(3)));
    assert_eq!(domains.cpu_capacity[CpuId(7)], 1024);
    let mc = &domains[domains.sd[CpuId(7)].expect("MC")];
    assert_eq!((mc.min_interval, mc.span_weight), (7, 7));
    // On its way down the CPU is online but not active: the masks, and the intervals computed from them, still count
    // it.
    let domains = build(&[], &[3]);
    let mc = &domains[domains.sd[CpuId(7)].expect("MC")];
    assert_eq!((mc.min_interval, mc.span_weight), (8, 7));
    assert_eq!(domains[mc.shared.expect("shared")].nr_busy_cpus, 8);
    assert_eq!(domains.span, up(&[3]));
}

#[test]
fn a_package_of_two_nodes_stays_one_with_a_node_offline() {
    // Two LLCs of two cores in each node. Levels are chosen at boot (set_sched_topology).
    let topology = CpuTopology::symmetric(1, 2, 2, 2, 1);
    let node = (0..4).map(CpuId).collect::<CpuMask>();
    let top = |rules: &DomainRules| {
        let setup = DomainSetup { online: node.clone(), ..DomainSetup::boot(&topology) };
        let domains = build_sched_domains(&topology, &node, rules, &setup);
        outline(&domains, 0).pop().expect("a domain")
    };
    for (rules, name) in [(DomainRules::V4_5, "NUMA:0-3"), (DomainRules::V4_15, "NODE:0-3")] {
        assert_eq!(expected(&[(name, &["0-1", "2-3"])]), [top(&rules)]);
    }
}

#[test]
fn isolated_cpus_are_on_their_own() {
    let mut machine = Machine::nested(2, 1, 1, 2, 1);
    machine.cpus[2].active = false;
    let domains = machine.build(&DomainRules::V6_12);
    assert_eq!(domains.sd[CpuId(2)], None);
    assert_eq!(outline(&domains, 3), expected(&[("NUMA:0-1,3", &["3", "0-1"])]));
    machine.cpus.iter_mut().for_each(|cpu| cpu.active = false);
    assert_eq!(machine.build(&DomainRules::V4_5).nr_domains(), 0);
}

#[test]
fn relax_domain_level_limits_idle_balancing() {
    let mut machine = Machine::nested(2, 1, 1, 2, 2);
    let idle_flags = |machine: &Machine, rules: &DomainRules| {
        let domains = machine.build(rules);
        let of = |flags: SdFlags| (flags.has(SdFlags::SD_BALANCE_NEWIDLE), flags.has(SdFlags::SD_BALANCE_WAKE));
        domains.for_each_domain(CpuId(0)).map(|sd| (domains[sd].level, of(domains[sd].flags))).collect::<Vec<_>>()
    };
    let (off, on, both) = ((false, false), (true, false), (true, true));
    assert_eq!(idle_flags(&machine, &DomainRules::V4_5), [(0, on), (1, on), (3, on)]);
    machine.relax_domain_level = Some(1);
    assert_eq!(idle_flags(&machine, &DomainRules::V4_5), [(0, both), (1, both), (3, off)]);
    // v5.15 has the levels SMT, MC, DIE, NODE and NUMA: what it was asked for is the last one that stays on.
    assert_eq!(idle_flags(&machine, &DomainRules::V5_15), [(0, on), (1, on), (4, off)]);
    assert_eq!(idle_flags(&machine, &DomainRules::V6_12), [(0, on), (2, off), (5, off)]);
    assert_eq!(idle_flags(&machine, &DomainRules::V6_6), [(0, on), (2, off), (5, off)]);
    // The level itself still balances until v6.9.
    machine.relax_domain_level = Some(2);
    assert_eq!(idle_flags(&machine, &DomainRules::V6_6), [(0, on), (2, on), (5, off)]);
    assert_eq!(idle_flags(&machine, &DomainRules::V6_12), [(0, on), (2, off), (5, off)]);
}

#[test]
fn masks_that_overlap_in_part_build_nothing() {
    let mut topology = CpuTopology::symmetric(1, 1, 1, 3, 1);
    topology.coregroup[CpuId(0)].clear(CpuId(2));
    topology.coregroup[CpuId(1)].clear(CpuId(0));
    for rules in ALL_RULES {
        let setup = DomainSetup::boot(&topology);
        let domains = build_sched_domains(&topology, &setup.online, &rules, &setup);
        assert_eq!(domains.warnings, [DomainWarning::SpanNotSane { level: DomainName::Mc }]);
        assert_eq!((domains.nr_domains(), domains.sd[CpuId(0)]), (0, None));
    }
}

#[test]
fn a_level_narrower_than_the_one_below_is_widened() {
    let mut machine = Machine::nested(1, 1, 1, 2, 2);
    machine.cpus.iter_mut().enumerate().for_each(|(number, cpu)| cpu.llc = number as u32);
    let domains = machine.build(&DomainRules::V4_15);
    assert_eq!(
        domains.warnings[0],
        DomainWarning::ArchTopologyBorken { cpu: CpuId(0), child: DomainName::Smt, parent: DomainName::Mc }
    );
    assert_eq!(domains.warnings.len(), 4);
    assert_eq!(outline(&domains, 3), expected(&[("SMT:2-3", &["3", "2"]), ("DIE:0-3", &["2-3", "0-1"])]));
}

#[test]
fn forced_overlap_ends_with_v4_12() {
    let mut machine = Machine::nested(1, 1, 1, 3, 1);
    machine.force_sd_overlap = true;
    let overlaps = |rules: &DomainRules| {
        let domains = machine.build(rules);
        assert_eq!(outline(&domains, 1), expected(&[("MC:0-2", &["1", "2", "0"])]));
        domains[domains.sd[CpuId(1)].expect("MC")].flags.has(SdFlags::SD_OVERLAP)
    };
    assert!(overlaps(&DomainRules::V4_5));
    assert!(!overlaps(&DomainRules::V4_15));
}

#[test]
fn capacities_follow_the_run_queues() {
    struct Pressed;
    impl CpuCapacities for Pressed {
        fn update_cpu_capacity(&mut self, cpu: CpuId, capacity_orig: u64) -> u64 {
            assert_eq!(capacity_orig, 1024);
            if cpu == CpuId(1) { 600 } else { capacity_orig }
        }
        fn capacity_of(&self, _cpu: CpuId) -> u64 {
            unreachable!("no level overlaps")
        }
    }
    let mut domains = Machine::nested(1, 2, 1, 2, 1).build(&DomainRules::V4_16);
    let chain = domains.for_each_domain(CpuId(1)).collect::<Vec<_>>();
    let clock = BalanceClock::new(5000, 250, 4);
    domains.update_group_capacity(chain[0], CpuId(1), clock, &mut Pressed);
    domains.update_group_capacity(chain[1], CpuId(1), clock, &mut Pressed);
    let sgc = &domains[domains[domains[chain[1]].groups].sgc];
    assert_eq!((sgc.capacity, sgc.min_capacity, sgc.max_capacity), (1624, 600, 1024));
    // A balance interval of 4 ms is one jiffy.
    assert_eq!(sgc.next_update, 5001);
}

#[test]
fn the_widest_cache_and_all_capacities_share_what_searches_know() {
    // Two LLCs, one of two big and one of two little CPUs, in one package.
    let mut machine = Machine::nested(1, 2, 1, 2, 1);
    for (cpu, capacity) in machine.cpus.iter_mut().zip([1024, 1024, 400, 400]) {
        cpu.capacity = capacity;
    }
    let shared = |domains: &Domains, cpu: u16| {
        let of = |at: &PerCpu<Option<SdsId>>| at[CpuId(cpu)].expect("shared");
        (of(&domains.sd_llc_shared), of(&domains.sd_balance_shared))
    };
    let old = machine.build(&DomainRules::V6_12);
    assert!((0..4).all(|cpu| shared(&old, cpu).0 == shared(&old, cpu).1), "that of the cache");
    assert_eq!(old[shared(&old, 0).1].nr_idle_scan, 0);
    let new = machine.build(&DomainRules::V7_2);
    let (llc, all) = shared(&new, 0);
    assert_eq!(new[new.sd_asym_cpucapacity[CpuId(0)].expect("all capacities")].shared, Some(all));
    assert!((0..4).all(|cpu| shared(&new, cpu).1 == all && shared(&new, cpu).0 != all));
    assert_eq!((shared(&new, 1).0 == llc, shared(&new, 2).0 == llc), (true, false));
    assert_eq!((new[llc].nr_busy_cpus, new[all].nr_busy_cpus), (2, 4));
    // The numbers of SD_SHARE_LLC and SD_ASYM_CPUCAPACITY.
    assert_eq!((new[llc].nr_idle_scan, new[all].nr_idle_scan), (0x200, 0x20));
    // Between nodes it is that of the LLC.
    let mut nodes = Machine::nested(2, 1, 1, 2, 1);
    for (cpu, capacity) in nodes.cpus.iter_mut().zip([1024, 1024, 400, 400]) {
        cpu.capacity = capacity;
    }
    let new = nodes.build(&DomainRules::V7_2);
    assert!(new.sd_asym_cpucapacity[CpuId(0)].is_some());
    assert!((0..4).all(|cpu| shared(&new, cpu).0 == shared(&new, cpu).1));
}

#[test]
fn narrower_caches_share_nothing_and_what_a_removed_level_had_goes_to_the_one_below() {
    let domains = Machine::nested(1, 1, 2, 4, 1).build(&DomainRules::V7_2);
    let cluster = domains.sd[CpuId(5)].expect("a cluster");
    assert_eq!(domains[cluster].shared, None);
    assert_eq!(domains[domains.sd_llc_shared[CpuId(5)].expect("shared")].nr_busy_cpus, 8);
    // The LLC of a single core is the level of its threads.
    let domains = Machine::nested(1, 1, 1, 1, 2).build(&DomainRules::V7_2);
    assert_eq!(domains[domains.sd[CpuId(0)].expect("threads")].name, DomainName::Smt);
    assert_eq!(domains.sd_llc_shared[CpuId(0)], domains.sd_llc_shared[CpuId(1)]);
    assert!(domains.sd_llc_shared[CpuId(0)].is_some());
}

#[test]
fn a_cache_is_one_across_partitions_from_v7_2_on() {
    for (rules, one) in [(DomainRules::V6_12, false), (DomainRules::V6_18, false), (DomainRules::V7_2, true)] {
        // One LLC of six CPUs, of which two are isolated and the others form two partitions.
        let topology = CpuTopology::symmetric(1, 1, 1, 6, 1);
        let setup = DomainSetup::boot(&topology);
        let map = |cpus: &[u16]| cpus.iter().map(|&cpu| CpuId(cpu)).collect::<CpuMask>();
        let whole = build_sched_domains(&topology, &map(&[0, 1, 2, 3]), &rules, &setup);
        let both = whole.partition_sched_domains(&topology, &[map(&[0, 1]), map(&[2, 3])], &setup);
        assert!(both.cpus_share_cache(CpuId(0), CpuId(1)));
        assert_eq!(both.cpus_share_cache(CpuId(0), CpuId(2)), one);
        assert_eq!(both.cpus_share_cache(CpuId(4), CpuId(5)), one, "never in a domain");
        assert!(!both.cpus_share_cache(CpuId(0), CpuId(4)));
        // A CPU that leaves a domain keeps its LLC.
        let less = both.partition_sched_domains(&topology, &[map(&[0, 1]), map(&[2])], &setup);
        assert_eq!(less.cpus_share_cache(CpuId(0), CpuId(3)), one);
        // The first interval is as long as the level, or the domain, is wide.
        let sd = both.sd[CpuId(0)].expect("a domain");
        let weight = if rules.interval_weight == IntervalWeight::OfSpan { 2 } else { 6 };
        assert_eq!(
            (both[sd].min_interval, both[sd].balance_interval, both[sd].max_interval),
            (weight, weight, 2 * weight)
        );
    }
}

#[test]
fn cores_of_one_thread_have_no_level_for_it_since_v6_18() {
    let level = |rules: &DomainRules, threads| {
        let domains = Machine::nested(1, 1, 2, 4, threads).build(rules);
        let mc = domains.for_each_domain(CpuId(2)).last().expect("MC");
        (domains[mc].name, domains[mc].level)
    };
    let kernels = [DomainRules::V6_12, DomainRules::V6_18, DomainRules::V7_2];
    assert_eq!(kernels.map(|rules| level(&rules, 1)), [2, 1, 1].map(|number| (DomainName::Mc, number)));
    assert_eq!(kernels.map(|rules| level(&rules, 2).1), [2; 3]);
}
