//! Two sockets of 12 cores with 2 threads, the machine of most published tables.

use super::{expected, outline};
use crate::cpu_topology::CpuTopology;
use crate::topology::*;
use units::CpuId;

fn xeon(rules: &DomainRules) -> Domains {
    let mut topology = CpuTopology::symmetric(2, 1, 1, 12, 2);
    (topology.distance[0][1], topology.distance[1][0]) = (21, 21);
    let setup = DomainSetup::boot(&topology);
    build_sched_domains(&topology, &setup.online, rules, &setup)
}

const CORES_OF_SOCKET_0: [&str; 12] =
    ["0,24", "1,25", "2,26", "3,27", "4,28", "5,29", "6,30", "7,31", "8,32", "9,33", "10,34", "11,35"];

#[test]
fn the_levels_of_v4_5_are_smt_mc_and_numa() {
    let domains = xeon(&DomainRules::V4_5);
    let chain = domains.for_each_domain(CpuId(0)).collect::<Vec<_>>();
    let [smt, mc, numa] = chain[..] else { panic!("{} domains instead of 3", chain.len()) };
    let (smt, mc, numa) = (&domains[smt], &domains[mc], &domains[numa]);
    assert_eq!([smt.name, mc.name, numa.name], [DomainName::Smt, DomainName::Mc, DomainName::Numa]);
    // DIE, level 2, spans what MC spans: removed.
    assert_eq!([smt.level, mc.level, numa.level], [0, 1, 3]);

    // 0x0001 LOAD_BALANCE, 0x2 NEWIDLE, 0x4 EXEC, 0x8 FORK, 0x20 WAKE_AFFINE, 0x80 SHARE_CPUCAPACITY,
    // 0x200 SHARE_PKG_RESOURCES, 0x400 SERIALIZE, 0x1000 PREFER_SIBLING, 0x2000 OVERLAP, 0x4000 NUMA.
    let value = |sd: &SchedDomain| sd.flags.value(FlagNumbering::ByHand);
    assert_eq!(value(smt), 0x12af);
    // SD_PREFER_SIBLING is what remains of DIE.
    assert_eq!(value(mc), 0x122f);
    assert_eq!(value(numa), 0x642f);

    assert_eq!([smt.imbalance_pct, mc.imbalance_pct, numa.imbalance_pct], [110, 117, 125]);
    assert_eq!([smt.cache_nice_tries, mc.cache_nice_tries, numa.cache_nice_tries], [0, 1, 2]);
    assert_eq!([smt.busy_idx, mc.busy_idx, numa.busy_idx], [0, 2, 3]);
    assert_eq!([smt.idle_idx, mc.idle_idx, numa.idle_idx], [0, 0, 2]);
    assert_eq!([smt.smt_gain, mc.smt_gain, numa.smt_gain], [1178, 0, 0]);
    assert_eq!([smt.min_interval, mc.min_interval, numa.min_interval], [2, 24, 48]);
    assert_eq!([smt.max_interval, mc.max_interval, numa.max_interval], [4, 48, 96]);
    assert!([smt, mc, numa].iter().all(|sd| sd.busy_factor == 32 && sd.newidle_idx == 0 && sd.wake_idx == 0));
    assert!([smt, mc, numa].iter().all(|sd| sd.balance_interval == sd.min_interval && sd.shared.is_none()));
}

#[test]
fn rings_begin_with_the_cpus_own_group() {
    let sockets = ["0-11,24-35", "12-23,36-47"];
    for rules in [DomainRules::V4_5, DomainRules::V4_15, DomainRules::V6_1, DomainRules::V6_12] {
        let domains = xeon(&rules);
        assert_eq!(
            outline(&domains, 0),
            expected(&[("SMT:0,24", &["0", "24"]), ("MC:0-11,24-35", &CORES_OF_SOCKET_0), ("NUMA:0-47", &sockets),])
        );
        let mut from_core_11 = CORES_OF_SOCKET_0;
        from_core_11.rotate_left(11);
        assert_eq!(
            outline(&domains, 35),
            expected(&[("SMT:11,35", &["35", "11"]), ("MC:0-11,24-35", &from_core_11), ("NUMA:0-47", &sockets),])
        );
        assert_eq!(outline(&domains, 36)[2].1, [sockets[1], sockets[0]]);
    }
}

#[test]
fn groups_of_the_same_cpus_are_shared() {
    let domains = xeon(&DomainRules::V4_5);
    let group =
        |cpu: u16, level: usize| domains[domains.for_each_domain(CpuId(cpu)).nth(level).expect("a domain")].groups;
    assert_eq!(group(3, 1), group(27, 1));
    assert_ne!(group(3, 1), group(4, 1));
    // 48 threads, 24 cores, one ring of 2 nodes: it is the same ring seen from either node.
    assert_eq!(domains.nr_groups(), 48 + 24 + 2);
    assert_eq!(domains.nr_domains(), 48 * 3);
    assert_eq!(domains.group_balance_cpu(group(27, 1)), CpuId(3));
    assert_eq!(domains.group_balance_cpu(group(40, 2)), CpuId(12));
}

#[test]
fn capacities_sum_up() {
    let capacities = |rules: &DomainRules| {
        let domains = xeon(rules);
        let of = |sd: SdId| domains[domains[domains[sd].groups].sgc].capacity;
        let of_levels = domains.for_each_domain(CpuId(24)).map(of).collect::<Vec<_>>();
        (of_levels, domains.cpu_capacity[CpuId(24)], domains.cpu_capacity_orig[CpuId(24)])
    };
    // A thread is half of 1178, which is a core with both threads busy.
    assert_eq!(capacities(&DomainRules::V4_5), (vec![589, 1178, 12 * 1178], 589, 589));
    assert_eq!(capacities(&DomainRules::V4_16), (vec![589, 1178, 12 * 1178], 589, 589));
    assert_eq!(capacities(&DomainRules::V6_1), (vec![1024, 2048, 24 * 1024], 1024, 1024));
}

#[test]
fn pointers_to_the_cache_and_the_nodes() {
    for rules in [DomainRules::V4_5, DomainRules::V4_15, DomainRules::V6_12] {
        let domains = xeon(&rules);
        let cpu = CpuId(36);
        let chain = domains.for_each_domain(cpu).collect::<Vec<_>>();
        assert_eq!((domains.sd_llc[cpu], domains.sd_numa[cpu]), (Some(chain[1]), Some(chain[2])));
        assert_eq!((domains.sd_llc_size[cpu], domains.sd_llc_id[cpu]), (24, CpuId(12)));
        assert_eq!(domains.sd_share_id[cpu], CpuId(12));
        assert!(domains.cpus_share_cache(cpu, CpuId(12)) && !domains.cpus_share_cache(cpu, CpuId(11)));
        assert_eq!((domains.sd_asym_packing[cpu], domains.sd_asym_cpucapacity[cpu]), (None, None));
        assert_eq!(domains.lowest_flag_domain(cpu, SdFlags::SD_SHARE_LLC), Some(chain[0]));
        assert_eq!(domains.highest_flag_domain(cpu, SdFlags::SD_WAKE_AFFINE), Some(chain[2]));
        assert_eq!(domains.for_each_lower_domain(chain[2]).collect::<Vec<_>>(), [chain[2], chain[1], chain[0]]);
        assert_eq!(domains.numa.sched_max_numa_distance, 21);
        assert!(domains.numa.find_numa_distance(10) && domains.numa.find_numa_distance(21));
        assert!(!domains.numa.find_numa_distance(20));
        match rules.busy_cpus {
            BusyCpus::InGroupOfParent => {
                assert_eq!((domains.sd_busy[cpu], domains.sd_llc_shared[cpu]), (Some(chain[2]), None));
                assert_eq!(domains[domains[domains[chain[2]].groups].sgc].nr_busy_cpus, 24);
            }
            BusyCpus::InDomainShared => {
                let shared = domains.sd_llc_shared[cpu].expect("shared by the cache");
                assert_eq!(domains[shared].nr_busy_cpus, 24);
                assert_eq!(domains.sd_llc_shared[CpuId(13)], Some(shared));
                assert_ne!(domains.sd_llc_shared[CpuId(0)], Some(shared));
                assert_eq!(domains.sd_busy[cpu], None);
            }
        }
    }
}

#[test]
fn versions_differ_in_little() {
    let v4_15 = xeon(&DomainRules::V4_15);
    let v6_12 = xeon(&DomainRules::V6_12);
    let numbers = |domains: &Domains| {
        let number = |sd: SdId| (domains[sd].busy_factor, domains[sd].imbalance_pct, domains[sd].imb_numa_nr);
        domains.for_each_domain(CpuId(0)).map(number).collect::<Vec<_>>()
    };
    assert_eq!(numbers(&v4_15), [(32, 110, 0), (32, 117, 0), (32, 125, 0)]);
    // One LLC per node: an imbalance of an eighth of 24 CPUs is allowed.
    assert_eq!(numbers(&v6_12), [(16, 110, 0), (16, 117, 0), (16, 117, 3)]);
    let cores = |sd: SdId| v6_12.groups(sd).map(|sg| v6_12[sg].cores).collect::<Vec<_>>();
    assert_eq!(v6_12.for_each_domain(CpuId(0)).map(cores).collect::<Vec<_>>(), [vec![1, 1], vec![1; 12], vec![12, 12]]);
    // The node's own level counts, but the threshold is still the earlier one.
    assert_eq!(xeon(&DomainRules::V4_5).numa.sched_numa_topology_type, NumaTopologyType::Direct);
    assert_eq!(v4_15.numa.sched_numa_topology_type, NumaTopologyType::Backplane);
    assert_eq!(v6_12.numa.sched_numa_topology_type, NumaTopologyType::Direct);
}

#[test]
fn described_as_a_kernel_logs_it() {
    let text = xeon(&DomainRules::V4_5).describe(CpuId(24));
    let mut lines = text.lines();
    let mut next = || lines.next().unwrap_or_default();
    assert_eq!(next(), "CPU24: sd_llc_id=0 sd_llc_size=24");
    assert_eq!(
        next(),
        " domain-0: span=0,24 level=SMT interval=2-4ms busy_factor=32 imbalance_pct=110 cache_nice_tries=0 busy_idx=0 \
         idle_idx=0 smt_gain=1178"
    );
    assert_eq!(
        next(),
        "  flags=SD_LOAD_BALANCE SD_BALANCE_NEWIDLE SD_BALANCE_EXEC SD_BALANCE_FORK SD_WAKE_AFFINE SD_SHARE_CPUCAPACITY \
         SD_SHARE_PKG_RESOURCES SD_PREFER_SIBLING"
    );
    assert_eq!(next(), "  groups: 24:{ span=24 cap=589 }, 0:{ span=0 cap=589 }");
    assert!(text.ends_with("12:{ span=12-23,36-47 mask=0-47 cap=14136 }\n"), "{text}");
    let text = xeon(&DomainRules::V6_12).describe(CpuId(24));
    assert!(
        text.contains(
            "level=NUMA interval=48-96ms busy_factor=16 imbalance_pct=117 cache_nice_tries=2 imb_numa_nr=3\n"
        )
    );
    assert!(text.ends_with("  groups: 0:{ span=0-11,24-35 cap=24576 }, 12:{ span=12-23,36-47 cap=24576 }\n"), "{text}");
}
