//! Comparisons with the kernel's own code and with running kernels: see `recorded/README.md`.

use super::dump::{Era, dump};
use super::machine::Machine;
use crate::topology::*;
use units::CpuId;

fn check(name: &str, recorded: &str) {
    let sections = recorded.split('[').collect::<Vec<_>>();
    let machine = Machine::parse(sections[0]);
    assert!(sections.len() > 1, "{name}: nothing recorded");
    for section in &sections[1..] {
        let (version, expected) = section.split_once("]\n").expect("a version in brackets");
        let (_, era, rules) = Era::ALL.into_iter().find(|(known, ..)| *known == version).expect("a known version");
        let ours = dump(&machine.build(&rules), era);
        for (number, (ours, theirs)) in ours.lines().zip(expected.lines()).enumerate() {
            assert_eq!(ours, theirs, "{name}, {version}, line {}", number + 1);
        }
        assert_eq!(ours.lines().count(), expected.lines().count(), "{name}, {version}");
    }
}

#[test]
fn two_sockets() {
    check("two-sockets", include_str!("recorded/two-sockets.txt"));
}

#[test]
fn nodes_in_a_ring() {
    check("ring", include_str!("recorded/ring.txt"));
}

#[test]
fn nodes_in_a_line() {
    check("line", include_str!("recorded/line.txt"));
}

#[test]
fn chains_of_unequal_length() {
    check("square-with-diagonal", include_str!("recorded/square-with-diagonal.txt"));
}

#[test]
fn nodes_in_packages() {
    check("nodes-in-packages", include_str!("recorded/nodes-in-packages.txt"));
}

#[test]
fn clusters_of_unequal_cores() {
    check("clusters", include_str!("recorded/clusters.txt"));
}

fn fnv_1a(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[test]
fn random_machines_agree_with_the_kernels_own_code() {
    let mut compared = 0;
    for line in include_str!("recorded/digests.txt").lines().filter(|line| !line.starts_with('#')) {
        let mut fields = line.split(' ');
        let seed = fields.next().and_then(|seed| seed.parse().ok()).expect("a seed");
        let machine = Machine::random(seed);
        for ((version, era, rules), digest) in Era::ALL.into_iter().zip(fields) {
            if digest == "-" {
                continue;
            }
            let ours = dump(&machine.build(&rules), era);
            assert_eq!(format!("{:016x}", fnv_1a(&ours)), digest, "seed {seed}, {version}:\n{}", machine.text());
            compared += 1;
        }
    }
    assert!(compared > 800, "only {compared} comparisons");
}

/// What `/sys/kernel/debug/sched/domains/cpu0/domain0/flags` printed, for the lowest domain only, in QEMU with one
/// socket.
fn booted(cores: usize, threads: usize, rules: &DomainRules) -> (Domains, String) {
    let domains = Machine::nested(1, 1, 1, cores, threads).build(rules);
    let lowest = domains.sd[CpuId(0)].expect("a domain");
    let flags = domains[lowest].flags.names(rules.flag_numbering).join(" ");
    (domains, flags)
}

#[test]
fn booted_machines_of_one_socket_have_one_level() {
    let v6_1 =
        "SD_BALANCE_NEWIDLE SD_BALANCE_EXEC SD_BALANCE_FORK SD_WAKE_AFFINE SD_SHARE_PKG_RESOURCES SD_PREFER_SIBLING";
    let v6_12 = "SD_BALANCE_NEWIDLE SD_BALANCE_EXEC SD_BALANCE_FORK SD_WAKE_AFFINE SD_SHARE_LLC SD_PREFER_SIBLING";
    for cores in [2, 4, 8] {
        for (rules, expected) in [(DomainRules::V6_1, v6_1), (DomainRules::V6_12, v6_12)] {
            let (domains, flags) = booted(cores, 1, &rules);
            assert_eq!(flags, expected);
            for cpu in (0..cores).map(CpuId::new) {
                let chain = domains.for_each_domain(cpu).collect::<Vec<_>>();
                assert_eq!(chain.len(), 1, "the file system shows domain0 only");
                assert_eq!(domains[chain[0]].name, DomainName::Mc);
                assert_eq!(domains.sched_domain_span(chain[0]), &CpuMask::all(cores));
            }
        }
    }
}

#[test]
fn booted_eight_cpus_have_the_numbers_debugfs_showed() {
    let (domains, _) = booted(8, 1, &DomainRules::V6_1);
    for cpu in (0..8).map(CpuId::new) {
        let sd = &domains[domains.sd[cpu].expect("a domain")];
        // cpuN/domain0 MC min=8 max=16 busy_factor=16 imb=117 cache_nice=1
        assert_eq!((sd.name.to_string().as_str(), sd.min_interval, sd.max_interval), ("MC", 8, 16));
        assert_eq!((sd.busy_factor, sd.imbalance_pct, sd.cache_nice_tries), (16, 117, 1));
        // /proc/schedstat: domain0 ff
        assert_eq!(domains.masks.get(sd.span).hex(8), "ff");
    }
}

/// The levels of CPU 0 with the number of CPUs in each.
fn levels(machine: &Machine, rules: &DomainRules) -> Vec<(String, usize)> {
    let domains = machine.build(rules);
    let chain = domains.for_each_domain(CpuId(0));
    chain.map(|sd| (domains[sd].name.to_string(), domains.sched_domain_span(sd).weight())).collect()
}

#[test]
fn booted_machines_of_two_sockets_have_the_levels_their_notes_name() {
    let expect = |expected: &[(&str, usize)]| expected.iter().map(|&(n, w)| (n.to_string(), w)).collect::<Vec<_>>();
    let rules = DomainRules::V6_1;
    // "16llc: 2 sockets x 8 cores, one NUMA node (MC 8 + DIE 16)"
    let mut llcs = Machine::nested(1, 2, 1, 8, 1);
    llcs.cpus.iter_mut().for_each(|cpu| cpu.package = cpu.llc);
    assert_eq!(levels(&llcs, &rules), expect(&[("MC", 8), ("DIE", 16)]));
    // "16numa: the same with 2 NUMA nodes, distance 21 (MC 8 + NUMA)"
    let numa = Machine::nested(2, 1, 1, 8, 1).with_distances(|_, _| 21);
    assert_eq!(levels(&numa, &rules), expect(&[("MC", 8), ("NUMA", 16)]));
}
