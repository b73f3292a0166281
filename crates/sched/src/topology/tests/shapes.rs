//! Machines of several nodes, worked out by hand.

use super::machine::Machine;
use super::{expected, outline};
use crate::topology::*;
use units::CpuId;

/// Four nodes of two cores at the corners of a square: 16 along an edge, 22 across.
fn square() -> Machine {
    Machine::nested(4, 1, 1, 2, 1).with_distances(|a, b| if (a ^ b).count_ones() == 1 { 16 } else { 22 })
}

#[test]
fn a_square_in_v4_5_begins_with_the_first_cpu() {
    let domains = square().build(&DomainRules::V4_5);
    assert_eq!(
        outline(&domains, 0),
        expected(&[("MC:0-1", &["0", "1"]), ("NUMA:0-5", &["0-1", "2-3", "4-5"]), ("NUMA:0-7", &["0-5", "2-7"])])
    );
    // CPU 2 is the first of 2-7 and balances for it.
    assert_eq!(
        outline(&domains, 2),
        expected(&[("MC:2-3", &["2", "3"]), ("NUMA:0-3,6-7", &["2-3", "6-7", "0-1"]), ("NUMA:0-7", &["2-7", "0-5"]),])
    );
    // Its neighbour balances for nothing, and so begins with the first group that contains it; neither is its child
    // domain.
    assert_eq!(outline(&domains, 3)[2].1, ["0-5", "2-7"]);
    let top = domains.for_each_domain(CpuId(3)).last().expect("a top level");
    let sg = domains[top].groups;
    assert_eq!(domains.group_balance_mask(sg), &CpuMask::all(8));
    assert_eq!(domains.group_balance_cpu(sg), CpuId(0));
    assert_eq!(domains.numa.sched_numa_topology_type, NumaTopologyType::GluelessMesh);
}

#[test]
fn a_square_from_v4_13_on_begins_with_the_own_cpu() {
    for rules in [DomainRules::V4_15, DomainRules::V4_16, DomainRules::V6_1, DomainRules::V6_12] {
        let domains = square().build(&rules);
        assert_eq!(
            outline(&domains, 3),
            expected(&[
                ("MC:2-3", &["3", "2"]),
                ("NUMA:0-3,6-7", &["2-3", "6-7", "0-1"]),
                ("NUMA:0-7", &["0-3,6-7", "0-1,4-7"]),
            ])
        );
        let top = domains.for_each_domain(CpuId(3)).last().expect("a top level");
        let masks = domains.groups(top).map(|sg| domains.group_balance_mask(sg).list()).collect::<Vec<_>>();
        // Only node 1 has the child domain 0-3,6-7, and only node 2 has 0-1,4-7.
        assert_eq!(masks, ["2-3", "4-5"]);
        let text = domains.describe(CpuId(3));
        assert!(
            text.contains("  groups: 2:{ span=0-3,6-7 mask=2-3 cap=6144 }, 4:{ span=0-1,4-7 mask=4-5 cap=6144 }"),
            "{text}"
        );
        // Each node sees a different group: only the capacity is shared.
        let of = |cpu: u16| domains.for_each_domain(CpuId(cpu)).last().map(|sd| domains[sd].groups).expect("a group");
        assert_ne!(of(0), of(2));
        assert_eq!(of(2), of(3));
    }
}

/// The examples in the kernel's source above build_balance_mask(), one CPU per node.
#[test]
fn rings_squares_and_lines_are_as_the_kernel_draws_them() {
    let drawn = |machine: &Machine, rules: &DomainRules, cpu: u16| {
        let all = outline(&machine.build(rules), cpu);
        all.into_iter().map(|(domain, groups)| format!("{domain} {}", groups.join(" "))).collect::<Vec<_>>()
    };
    let ring = Machine::nested(4, 1, 1, 1, 1).with_distances(|a, b| if (a + b).is_multiple_of(2) { 30 } else { 20 });
    for rules in [DomainRules::V4_15, DomainRules::V6_1] {
        assert_eq!(drawn(&ring, &rules, 0), ["NUMA:0-1,3 0 1 3", "NUMA:0-3 0-1,3 1-3"]);
        assert_eq!(drawn(&ring, &rules, 1), ["NUMA:0-2 1 2 0", "NUMA:0-3 0-2 0,2-3"]);
        assert_eq!(drawn(&ring, &rules, 2), ["NUMA:1-3 2 3 1", "NUMA:0-3 1-3 0-1,3"]);
        assert_eq!(drawn(&ring, &rules, 3), ["NUMA:0,2-3 3 0 2", "NUMA:0-3 0,2-3 0-2"]);
    }
    let diagonal = Machine::nested(4, 1, 1, 1, 1).with_distances(|a, b| if a.abs_diff(b) == 3 { 30 } else { 20 });
    for rules in [DomainRules::V4_15, DomainRules::V6_1] {
        assert_eq!(drawn(&diagonal, &rules, 0), ["NUMA:0-2 0 1 2", "NUMA:0-3 0-2 1-3"]);
        assert_eq!(drawn(&diagonal, &rules, 1), ["NUMA:0-3 1 2 3 0"]);
        assert_eq!(drawn(&diagonal, &rules, 3), ["NUMA:1-3 3 1 2", "NUMA:0-3 1-3 0-2"]);
    }
    let line = Machine::nested(4, 1, 1, 1, 1).with_distances(|a, b| 10 + 10 * a.abs_diff(b) as u32);
    // The child domain of node 2, 1-3, would extend beyond 0-2: the node is used instead.
    assert_eq!(drawn(&line, &DomainRules::V6_1, 0), ["NUMA:0-1 0 1", "NUMA:0-2 0-1 2", "NUMA:0-3 0-2 1-3"]);
    assert_eq!(drawn(&line, &DomainRules::V4_15, 0), ["NUMA:0-1 0 1", "NUMA:0-2 0-1 1-3", "NUMA:0-3 0-2 1-3"]);
}

/// Four blades of four sockets: 16 within a blade, 40 between blades.
fn blades() -> Machine {
    Machine::nested(16, 1, 1, 2, 1).with_distances(|a, b| if a / 4 == b / 4 { 16 } else { 40 })
}

#[test]
fn sixteen_sockets() {
    for rules in [DomainRules::V4_5, DomainRules::V4_15, DomainRules::V6_1, DomainRules::V6_12] {
        let domains = blades().build(&rules);
        assert_eq!(
            outline(&domains, 10),
            expected(&[
                ("MC:10-11", &["10", "11"]),
                ("NUMA:8-15", &["10-11", "12-13", "14-15", "8-9"]),
                ("NUMA:0-31", &["8-15", "16-23", "24-31", "0-7"]),
            ])
        );
        let flags = domains.for_each_domain(CpuId(10)).map(|sd| domains[sd].flags).collect::<Vec<_>>();
        let near = SdFlags::SD_BALANCE_EXEC | SdFlags::SD_BALANCE_FORK | SdFlags::SD_WAKE_AFFINE;
        assert!(flags[1].has_all(near));
        assert!(!flags[2].has(near), "beyond the reclaim distance: {:?}", flags[2]);
        assert!(flags[2].has(SdFlags::SD_BALANCE_NEWIDLE));
        let mut far_reaching = blades();
        far_reaching.node_reclaim_distance = 40;
        let domains = far_reaching.build(&rules);
        let top = domains.for_each_domain(CpuId(10)).last().expect("a top level");
        assert_eq!(domains[top].flags.has_all(near), rules.reclaim_distance == ReclaimDistance::OfMachine);
    }
}

#[test]
fn imbalance_between_nodes_grows_with_the_distance() {
    // Two nodes of four LLCs of 4 CPUs in each of two blades: one task per LLC of a node.
    let machine = Machine::nested(4, 4, 1, 4, 1).with_distances(|a, b| if a / 2 == b / 2 { 12 } else { 32 });
    let domains = machine.build(&DomainRules::V6_12);
    let imb =
        domains.for_each_domain(CpuId(0)).map(|sd| (domains[sd].name, domains[sd].imb_numa_nr)).collect::<Vec<_>>();
    assert_eq!(
        imb,
        [(DomainName::Mc, 0), (DomainName::Pkg, 4), (DomainName::Numa, 4), (DomainName::Numa, 4 * (64 / 32))]
    );
}

#[test]
fn nodes_of_memory_only_count_in_old_kernels() {
    let mut machine = Machine::nested(2, 1, 1, 2, 1);
    machine.distance = vec![vec![10, 20, 28], vec![20, 10, 28], vec![28, 28, 10]];
    let levels = |rules: &DomainRules| machine.build(rules).numa.sched_domains_numa_distance;
    assert_eq!(levels(&DomainRules::V4_5), [20, 28]);
    assert_eq!(levels(&DomainRules::V4_15), [10, 20, 28]);
    assert_eq!(levels(&DomainRules::V5_4), [10, 20, 28]);
    assert_eq!(levels(&DomainRules::V5_10), [10, 20, 28]);
    assert_eq!(levels(&DomainRules::V6_1), [10, 20]);
    // The level of 28 spans the same CPUs and is removed; yet the machine counts as a mesh.
    let old = machine.build(&DomainRules::V4_5);
    assert_eq!(outline(&old, 0).len(), 2);
    assert_eq!(old.numa.sched_max_numa_distance, 28);
}

#[test]
fn old_kernels_read_the_row_of_node_0_unless_told_to_debug() {
    let mut machine = Machine::nested(3, 1, 1, 2, 1).with_distances(|a, b| if a.min(b) == 0 { 20 } else { 30 });
    let levels = |machine: &Machine, rules: &DomainRules| machine.build(rules).numa.sched_domains_numa_distance;
    assert_eq!(levels(&machine, &DomainRules::V4_5), [20]);
    for rules in [DomainRules::V5_4, DomainRules::V5_10, DomainRules::V6_1] {
        assert_eq!(levels(&machine, &rules), [10, 20, 30]);
    }
    machine.sched_debug = true;
    assert_eq!(levels(&machine, &DomainRules::V4_5), [20, 30]);
    // Without level 30, CPUs of nodes 1 and 2 never see each other, and no domain spans the machine.
    machine.sched_debug = false;
    assert_eq!(
        outline(&machine.build(&DomainRules::V4_5), 2),
        expected(&[("MC:2-3", &["2", "3"]), ("NUMA:0-3", &["2-3", "0-1"])])
    );
}

#[test]
fn nodes_inside_a_package_replace_its_level() {
    // Two LLCs of 2 CPUs in each of two nodes of one package.
    let mut machine = Machine::nested(2, 2, 1, 2, 1).with_distances(|_, _| 12);
    machine.cpus.iter_mut().for_each(|cpu| cpu.package = 0);
    assert_eq!(
        outline(&machine.build(&DomainRules::V4_5), 0),
        expected(&[("MC:0-1", &["0", "1"]), ("NUMA:0-7", &["0-1", "2-3", "4-5", "6-7"])]),
        "nothing spans a node before v4.15"
    );
    assert_eq!(
        outline(&machine.build(&DomainRules::V4_15), 0),
        expected(&[("MC:0-1", &["0", "1"]), ("NODE:0-3", &["0-1", "2-3"]), ("NUMA:0-7", &["0-3", "4-7"])])
    );
    // A cache that the firmware reports as shared by both nodes is cut at the node.
    machine.cpus.iter_mut().for_each(|cpu| cpu.llc = 0);
    assert_eq!(
        outline(&machine.build(&DomainRules::V6_12), 5)[0],
        ("MC:4-7".into(), ["5", "6", "7", "4"].map(String::from).into())
    );
}

#[test]
fn a_distance_that_is_none_switches_numa_off() {
    let machine = Machine::nested(2, 1, 1, 2, 1).with_distances(|_, _| 300);
    let domains = machine.build(&DomainRules::V6_1);
    assert_eq!(domains.warnings, [DomainWarning::InvalidDistance { distance: 300 }]);
    assert_eq!(outline(&domains, 0), expected(&[("MC:0-1", &["0", "1"])]));
    assert_eq!(outline(&machine.build(&DomainRules::V4_15), 0).len(), 2, "no such check before v5.12");
}
