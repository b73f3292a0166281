//! Arithmetic and bookkeeping of NUMA balancing.

use super::balance::FbqType;
use super::by_capacity::task_capacity;
use super::by_node_type::numa_classify;
use super::migrate::{NumaStats, NumaType, TaskNumaEnv};
use super::*;
use crate::attr::SchedAttr;
use crate::core::{Boot, TaskInit};
use crate::sched::ROOT_TASK_GROUP;
use crate::testing::Hand;
use crate::topology::CpuIdleType;
use crate::versions::{Kernel, V4_5_RC1, V4_15, V4_19, V5_4, V5_10, V6_1, V6_6, V6_12, V6_18, V7_2, V7_3};

/// Page tables in which every page is present; records what is unmapped.
#[derive(Default)]
struct Tables(Vec<(u32, u64, u64)>);

impl PageTables for Tables {
    fn change_prot_numa(&mut self, area: u32, from: u64, to: u64) -> u64 {
        self.0.push((area, from, to));
        to - from
    }
}

const MB: u64 = 256;

/// A machine with nodes of two CPUs each at these distances, and a task of a process, running on CPU 0.
fn machine(kernel: Kernel, distance: &[&[u32]]) -> (Sched<Hand>, TaskId) {
    let mut topology = CpuTopology::symmetric(distance.len(), 1, 1, 2, 1);
    topology.distance = distance.iter().map(|row| row.to_vec()).collect();
    let nr_cpus = topology.nr_cpus;
    let features = kernel.features;
    let sysctl = kernel.sysctl(nr_cpus);
    let boot = Boot { features, sysctl, ..Boot::new(kernel, topology, 250) };
    let mut sched = Sched::new(Hand::default(), boot);
    let p = thread(&mut sched, CpuId(0));
    (sched, p)
}

/// A thread of address space 1, running on `cpu`.
fn thread(sched: &mut Sched<Hand>, cpu: CpuId) -> TaskId {
    sched.on_cpu(cpu);
    let attr = Some(SchedAttr::NORMAL);
    let cpus_allowed = Some(CpuMask::single(cpu));
    let init = TaskInit { comm: "t".to_string(), attr, cpus_allowed, mm: 1, group: ROOT_TASK_GROUP };
    let p = sched.sched_fork(sched.rq[cpu].curr, init);
    sched.wake_up_new_task(p);
    sched.schedule(false);
    assert_eq!(sched.rq[cpu].curr, Some(p));
    p
}

const TWO: &[&[u32]] = &[&[10, 20], &[20, 10]];
const BACKPLANE: &[&[u32]] = &[&[10, 16, 32, 32], &[16, 10, 32, 32], &[32, 32, 10, 16], &[32, 32, 16, 10]];
const RING: &[&[u32]] = &[&[10, 20, 30, 20], &[20, 10, 20, 30], &[30, 20, 10, 20], &[20, 30, 20, 10]];

fn fault(mem_node: u16, last: CpuPid) -> HintingFault {
    HintingFault {
        last_cpupid: last,
        mem_node,
        pages: 512,
        migrated: false,
        shared: false,
        local: mem_node == 0,
        migrate_fail: false,
    }
}

/// Lets a task that runs on CPU 0 scan all of its memory, at time `ms`.
fn scan(sched: &mut Sched<Hand>, p: TaskId, ms: u64) -> Vec<(u32, u64, u64)> {
    sched.arch.now = ms * 1_000_000;
    sched.numa.task[p].numa_work = true;
    let mut tables = Tables::default();
    sched.task_numa_work(&mut tables);
    tables.0
}

#[test]
fn who_touched_a_page_last_is_known_by_eight_bits() {
    let page = CpuPid::new(CpuId(300), 0x1234);
    assert!(page.match_pid(0x1234) && page.match_pid(0x5534) && !page.match_pid(0x1235));
    assert_eq!(page.cpu(), CpuId(300));
    assert!(CpuPid::UNSET.pid_unset() && !page.pid_unset());
    assert!(CpuPid::new(CpuId(3), 255).pid_unset(), "so does one whose number ends in all ones");
}

#[test]
fn nodes_are_as_full_as_their_cores() {
    // Worked out by hand: smt = ceil(1024 * cpus / capacity); cores = cpus / smt; at most the rounded capacity.
    for (cpus, capacity, tasks) in [(8, 8 * 1024, 8), (8, 8 * 589, 4), (2, 1500, 1), (2, 1535, 1), (4, 4 * 1023, 2)] {
        assert_eq!(task_capacity(cpus, capacity), tasks, "{cpus} CPUs of {capacity}");
    }
    let stats = |nr_running, util, runnable| NumaStats {
        compute_capacity: 4096,
        weight: 4,
        nr_running,
        util,
        runnable,
        ..NumaStats::default()
    };
    // Utilization counts as full from 4096 * 100 / 112 = 3657 on, waiting from 4096 * 112 / 100 = 4587 on.
    assert_eq!(numa_classify(112, &stats(3, 4096, 9000)), NumaType::HasSpare);
    assert_eq!(numa_classify(112, &stats(4, 3657, 4587)), NumaType::HasSpare);
    assert_eq!(numa_classify(112, &stats(4, 3658, 4587)), NumaType::FullyBusy);
    assert_eq!(numa_classify(112, &stats(5, 3658, 4587)), NumaType::Overloaded);
    assert_eq!(numa_classify(112, &stats(5, 3000, 4588)), NumaType::Overloaded);
}

#[test]
fn queues_are_told_apart_by_who_prefers_what() {
    assert_eq!(FbqType::classify(3, 2, 2), FbqType::Regular);
    assert_eq!(FbqType::classify(3, 3, 2), FbqType::Remote);
    assert_eq!(FbqType::classify(3, 3, 3), FbqType::All);
    assert!(FbqType::Regular < FbqType::Remote && FbqType::Remote < FbqType::All);
}

#[test]
fn scans_go_round_from_where_the_last_one_ended() {
    let (mut sched, p) = machine(V6_1, TWO);
    sched.numa_map(1, 300 * MB, 7);
    sched.numa_map(1, 300 * MB, 8);
    sched.add_mm_rss(1, (600 * MB) as i64);
    assert_eq!(scan(&mut sched, p, 900), [], "not within the first second");
    assert_eq!(scan(&mut sched, p, 1000), [(7, 0, 256 * MB)]);
    assert_eq!(scan(&mut sched, p, 1100), [], "not before its period has passed");
    assert_eq!(scan(&mut sched, p, 3000), [(7, 256 * MB, 300 * MB), (8, 0, 212 * MB)]);
    assert_eq!(sched.numa.mm[&1].numa_scan_seq, 0);
    assert_eq!(scan(&mut sched, p, 5000), [(8, 212 * MB, 300 * MB)]);
    assert_eq!((sched.numa.mm[&1].numa_scan_seq, sched.numa.mm[&1].numa_scan_offset), (1, 0));
    assert_eq!(scan(&mut sched, p, 7000), [(7, 0, 256 * MB)]);
}

#[test]
fn later_kernels_scan_what_the_task_was_seen_to_touch() {
    let (mut sched, p) = machine(V6_12, TWO);
    for area in [7, 8] {
        sched.numa_map(1, 100 * MB, area);
    }
    let all = [(7, 0, 100 * MB), (8, 0, 100 * MB)];
    assert_eq!(scan(&mut sched, p, 1000), all, "the first two times everything");
    assert_eq!(scan(&mut sched, p, 3000), all);
    sched.vma_set_access_pid_bit(8);
    assert_eq!(scan(&mut sched, p, 5000), [(8, 0, 100 * MB), (7, 0, 100 * MB)], "the other when nothing else is left");
    assert_eq!(sched.numa.mm[&1].numa_scan_seq, 2);
    assert_eq!(scan(&mut sched, p, 7000), [], "both were scanned this time");
    assert_eq!(sched.numa.mm[&1].numa_scan_seq, 3);
    // A task that has not been seen for two periods of four seconds is forgotten.
    assert_eq!(scan(&mut sched, p, 9000)[0].0, 8);
    assert_eq!(scan(&mut sched, p, 11_000), []);
    assert_eq!(scan(&mut sched, p, 13_000)[0].0, 7, "the first of those that nobody touches");
}

#[test]
fn v6_6_scans_what_nobody_touches_no_more() {
    let (mut sched, p) = machine(V6_6, TWO);
    for area in [7, 8] {
        sched.numa_map(1, 100 * MB, area);
    }
    let all = [(7, 0, 100 * MB), (8, 0, 100 * MB)];
    assert_eq!(scan(&mut sched, p, 1000), all, "the first two times everything");
    assert_eq!(scan(&mut sched, p, 3000), all);
    sched.vma_set_access_pid_bit(8);
    // After every scan the memory counts as scanned, and four seconds after the first one (and a delay) begins another period.
    for ms in [5000, 7000, 9000, 11_000] {
        assert_eq!(scan(&mut sched, p, ms), [(8, 0, 100 * MB)], "{ms}");
    }
    assert_eq!(sched.numa.mm[&1].numa_scan_seq, 6);
    for ms in [13_000, 15_000, 30_000] {
        assert_eq!(scan(&mut sched, p, ms), [], "{ms}");
    }
    // What comes later is not scanned at all: the first two times were the process's.
    sched.numa_map(1, 100 * MB, 9);
    for ms in [32_000, 34_000] {
        assert_eq!(scan(&mut sched, p, ms), [], "{ms}");
    }
}

#[test]
fn faults_are_halved_with_each_scan() {
    let (mut sched, p) = machine(V4_15, TWO);
    sched.numa_map(1, 200 * MB, 0);
    sched.add_mm_rss(1, (200 * MB) as i64);
    let own = CpuPid::new(CpuId(0), sched.task_cold[p].pid);
    // Node 1: 1024 pages in the first round, 512 in the second, none later: averages of 1024, 512 + 512, 512, 256.
    for (round, (pages, average)) in [(1024, 1024), (512, 1024), (0, 512), (0, 256)].into_iter().enumerate() {
        for _ in 0..pages / 512 {
            sched.task_numa_fault(fault(1, own));
        }
        scan(&mut sched, p, 10_000 * (round as u64 + 1));
        // The averages are computed on the next fault.
        sched.numa.task[p].numa_migrate_retry = u64::MAX;
        sched.task_numa_placement(p);
        assert_eq!(sched.numa.task_faults(p, 1), average, "round {round}");
        assert_eq!(sched.numa.task[p].total_numa_faults, average);
        assert_eq!(sched.numa.faults_on(p, 1), (average, 0), "all of them private");
    }
    assert_eq!(sched.numa.task[p].numa_preferred_nid, Some(1));
}

#[test]
fn weights_count_what_is_near() {
    // Of 1000 pages, 600 are on node 3, 400 on node 2.
    let weights = |kernel, distance, dist| {
        let (mut sched, p) = machine(kernel, distance);
        sched.numa_map(1, 256 * MB, 0);
        let mut faults = vec![0; NR_NUMA_HINT_FAULT_BUCKETS * 4];
        faults[sched.numa.task_faults_idx(FaultStats::Mem, 3, true)] = 600;
        faults[sched.numa.task_faults_idx(FaultStats::Mem, 2, false)] = 400;
        sched.numa.task[p].numa_faults = faults;
        sched.numa.task[p].total_numa_faults = 1000;
        [0, 1, 2, 3].map(|nid| sched.task_weight(p, nid, dist))
    };
    // Nodes at most as far as the compared distance count, from v4.19 on only nearer ones; never the farthest.
    assert_eq!(weights(V4_15, BACKPLANE, 16), [0, 0, 1000, 1000]);
    assert_eq!(weights(V6_1, BACKPLANE, 16), [0, 0, 400, 600]);
    assert_eq!(weights(V6_1, BACKPLANE, 32), [0, 0, 1000, 1000]);
    // In a ring neighbours count half: (30 - 20) / (30 - 10).
    assert_eq!(weights(V6_1, RING, 20), [300, 200, 700, 800]);
    // All nodes are one hop apart.
    let flat: &[&[u32]] = &[&[10, 20, 20, 20], &[20, 10, 20, 20], &[20, 20, 10, 20], &[20, 20, 20, 10]];
    assert_eq!(weights(V6_1, flat, 20), [0, 0, 400, 600]);
}

#[test]
fn threads_that_touch_the_same_pages_form_a_group() {
    let (mut sched, a) = machine(V4_15, TWO);
    let b = thread(&mut sched, CpuId(2));
    sched.numa_map(1, 256 * MB, 0);
    let [of_a, of_b] = [(0, a), (2, b)].map(|(cpu, p)| CpuPid::new(CpuId(cpu), sched.task_cold[p].pid));
    // Each task finds pages of the other: the first creates a group of its own, the second joins it.
    sched.on_cpu(CpuId(2));
    sched.task_numa_fault(fault(0, of_a));
    sched.on_cpu(CpuId(0));
    sched.task_numa_fault(fault(0, of_b));
    sched.on_cpu(CpuId(2));
    sched.task_numa_fault(fault(0, of_a));
    let group = sched.numa.task[a].numa_group.expect("a group");
    assert_eq!(sched.numa.task[b].numa_group, Some(group));
    assert_eq!(sched.numa.group[group].nr_tasks, 2);
    sched.task_numa_free(b);
    assert_eq!((sched.numa.group[group].nr_tasks, sched.numa.task(b).unwrap().numa_group), (1, None));
}

#[test]
fn processes_are_grouped_only_by_shared_memory() {
    for (shared, grouped) in [(false, false), (true, true)] {
        let (mut sched, a) = machine(V6_1, TWO);
        let b = thread(&mut sched, CpuId(2));
        sched.task[b].mm = 2;
        sched.numa_map(1, 256 * MB, 0);
        sched.numa_map(2, 256 * MB, 1);
        let [of_a, of_b] = [(0, a), (2, b)].map(|(cpu, p)| CpuPid::new(CpuId(cpu), sched.task_cold[p].pid));
        for (cpu, last) in [(2, of_a), (0, of_b), (2, of_a)] {
            sched.on_cpu(CpuId(cpu));
            sched.task_numa_fault(HintingFault { shared, ..fault(0, last) });
        }
        let groups = [a, b].map(|p| sched.numa.task[p].numa_group);
        assert_eq!(groups[0] == groups[1], grouped);
        // A page of an unrelated task was found by chance: this is a private fault.
        let private = sched.numa.task_faults_idx(FaultStats::MemBuf, 0, true);
        assert_eq!(sched.numa.task[b].numa_faults[private] > 0, !grouped);
    }
}

#[test]
fn pages_move_when_a_node_finds_them_twice() {
    let (mut sched, p) = machine(V4_5_RC1, TWO);
    sched.numa_map(1, 256 * MB, 0);
    let pid = sched.task_cold[p].pid;
    let moves = |sched: &mut Sched<Hand>, page: CpuPid| {
        let mut page = page;
        let moves = sched.should_numa_migrate_memory(p, &mut page, 1, CpuId(0));
        assert_eq!(page, CpuPid::new(CpuId(0), pid), "it is the last one now");
        moves
    };
    assert!(moves(&mut sched, CpuPid::UNSET), "the first fault");
    assert!(moves(&mut sched, CpuPid::new(CpuId(1), pid)), "its own");
    assert!(!moves(&mut sched, CpuPid::new(CpuId(2), pid)), "its own, from another node");
    assert!(moves(&mut sched, CpuPid::new(CpuId(1), pid + 1)), "another's, of this node");
    // Early in its life a task need not find its own pages twice (v4.20).
    sched.kernel.numa.early_migration = EarlyMigration::AtOnce;
    assert!(moves(&mut sched, CpuPid::new(CpuId(2), pid)));
    assert!(!moves(&mut sched, CpuPid::new(CpuId(2), pid + 1)));
}

#[test]
fn shared_pages_follow_the_cpus_that_use_them() {
    // CPU use of nodes 0 and 1, and memory on each; a page of node 1 is touched on node 0.
    for (cpu, mem, by_share) in [
        ([400, 100], [0, 1000], true),
        ([300, 100], [900, 100], false),
        ([100, 100], [100, 200], true),
        ([100, 100], [100, 130], false),
    ] {
        let (mut sched, p) = machine(V4_15, TWO);
        sched.numa_map(1, 256 * MB, 0);
        let own = CpuPid::new(CpuId(1), sched.task_cold[p].pid + 1);
        sched.task_numa_fault(fault(1, own));
        let group = sched.numa.task[p].numa_group.expect("it found another's page");
        for (nid, (cpu, mem)) in cpu.into_iter().zip(mem).enumerate() {
            let idx = |stats| sched.numa.task_faults_idx(stats, nid as u16, false);
            let (cpu_idx, mem_idx) = (idx(FaultStats::Cpu), idx(FaultStats::Mem));
            sched.numa.group[group].faults[cpu_idx] = cpu;
            sched.numa.group[group].faults[mem_idx] = mem;
        }
        let mut page = own;
        assert_eq!(sched.should_numa_migrate_memory(p, &mut page, 1, CpuId(0)), by_share, "{cpu:?} {mem:?}");
    }
}

#[test]
fn a_machine_of_one_node_has_nothing_to_balance() {
    let (mut sched, _) = machine(V6_12, &[&[10]]);
    sched.numa_map(1, 256 * MB, 0);
    assert!(!sched.numa.is_on() && sched.numa.is_used());
    sched.numa.set_numabalancing_state(true);
    assert!(!sched.numa.is_on());
}

#[test]
fn a_new_thread_prefers_what_its_creator_prefers_and_is_scanned_later() {
    let later = 60_000 + 8_000_000;
    for (kernel, stamp, retry) in [(V4_15, 0, 77), (V5_4, later, 77), (V5_10, later, 77), (V6_1, later, 0)] {
        let (mut sched, p) = machine(kernel, TWO);
        sched.numa_map(1, 256 * MB, 0);
        sched.numa.task[p].numa_preferred_nid = Some(1);
        sched.numa.task[p].numa_migrate_retry = 77;
        let task = TaskInit { comm: "t".to_string(), attr: None, cpus_allowed: None, mm: 1, group: ROOT_TASK_GROUP };
        let other = TaskInit { mm: 2, ..task.clone() };
        let child = sched.sched_fork(Some(p), task);
        let child = sched.numa.task(child).expect("its memory is scanned").clone();
        assert_eq!((child.numa_preferred_nid, child.node_stamp), (Some(1), stamp));
        assert_eq!(child.numa_migrate_retry, retry, "{}", kernel.name);
        assert_eq!(sched.numa.mm[&1].mm_users, 2);
        let process = sched.sched_fork(Some(p), other);
        assert_eq!(sched.numa_preferred_nid(process), None);
    }
}

#[test]
fn a_task_as_near_to_its_memory_on_both_nodes_may_be_hot() {
    for (kernel, [equal, nearer, farther]) in
        [(V6_12, [Some(false), Some(false), Some(true)]), (V7_2, [None, Some(false), Some(true)])]
    {
        let (mut sched, p) = machine(kernel, TWO);
        sched.numa_map(1, 256 * MB, 0);
        sched.task_numa_fault(fault(0, CpuPid::UNSET));
        let of = |sched: &mut Sched<Hand>, faults: [u64; 2]| {
            for (nid, faults) in faults.into_iter().enumerate() {
                let at = sched.numa.task_faults_idx(FaultStats::Mem, nid as u16, false);
                sched.numa.task[p].numa_faults[at] = faults;
            }
            sched.numa.task[p].numa_preferred_nid = None;
            sched.numa.task[p].total_numa_faults = 1000;
            sched.migrate_degrades_locality(p, CpuId(0), CpuId(2), CpuIdleType::NotIdle)
        };
        assert_eq!(of(&mut sched, [500, 500]), equal, "{}", kernel.name);
        assert_eq!(of(&mut sched, [400, 600]), nearer, "{}", kernel.name);
        assert_eq!(of(&mut sched, [600, 400]), farther, "{}", kernel.name);
    }
}

/// The search of a task on CPU 0 for a place on the second node, where the nodes have these loads.
fn to_the_other_node(p: TaskId, [src, dst]: [u64; 2]) -> TaskNumaEnv {
    let stats =
        |load| NumaStats { load, node_type: NumaType::FullyBusy, compute_capacity: 2048, ..NumaStats::default() };
    TaskNumaEnv {
        p,
        src_cpu: CpuId(0),
        src_nid: 0,
        dst_cpu: CpuId(0),
        dst_nid: 1,
        imb_numa_nr: 0,
        src_stats: stats(src),
        dst_stats: stats(dst),
        imbalance_pct: 112,
        dist: 20,
        best_task: None,
        best_imp: 0,
        best_cpu: None,
    }
}

#[test]
fn in_v4_19_and_v5_4_a_task_moves_where_loads_do_not_come_apart_and_changes_places_for_much() {
    moves_and_changes_places(V4_19);
    moves_and_changes_places(V5_4);
}

fn moves_and_changes_places(kernel: Kernel) {
    // One CPU of the other node idles, on the other one a task runs.
    let setup = || {
        let (mut sched, p) = machine(kernel, TWO);
        let other = thread(&mut sched, CpuId(2));
        for task in [p, other] {
            sched.task[task].cpus_allowed = CpuMask::all(4).into();
        }
        sched.numa_map(1, 256 * MB, 0);
        sched.on_cpu(CpuId(0));
        sched.task_numa_fault(fault(0, CpuPid::UNSET));
        (sched, p, other)
    };
    let search = |loads: [u64; 2], imp: i64, reserved: Option<u16>| {
        let (mut sched, p, other) = setup();
        if let Some(cpu) = reserved {
            sched.numa.rq[CpuId(cpu)].numa_migrate_on = true;
        }
        let mut env = to_the_other_node(p, loads);
        sched.task_numa_find_cpu_by_load(&mut env, imp, imp);
        let reserved = (0..4).map(CpuId).filter(|&cpu| sched.numa.rq[cpu].numa_migrate_on).collect::<Vec<_>>();
        (env.best_cpu, env.best_task.map(|task| task == other), reserved)
    };
    let (idle, busy) = (CpuId(3), CpuId(2));
    assert_eq!(search([4096, 0], 0, None), (Some(idle), None, vec![idle]), "any gain is enough");
    assert_eq!(
        search([0, 4096], 500, None),
        (Some(busy), Some(true), vec![busy]),
        "of equal loads, the nodes stay as they are"
    );
    assert_eq!(search([0, 4096], 29, None), (None, None, vec![]), "too little");
    assert_eq!(search([0, 4096], 30, None), (Some(busy), Some(true), vec![busy]));
    assert_eq!(search([0, 4096], 500, Some(2)), (None, None, vec![busy]), "somebody is on the way there");
    let swapped = (Some(busy), Some(true), vec![busy, idle]);
    assert_eq!(search([4096, 0], 500, Some(3)), swapped, "and so to the idle CPU, but the other one is left");
}

#[test]
fn nobody_changes_places_with_a_kernel_thread() {
    for (kernel, swaps) in [(V6_12, true), (V6_18, false), (V7_2, false)] {
        let (mut sched, p) = machine(kernel, TWO);
        let others = [2, 3].map(|cpu| thread(&mut sched, CpuId(cpu)));
        for other in others {
            sched.task[other].mm = 0;
            sched.task[other].cpus_allowed = CpuMask::all(4).into();
        }
        sched.task[p].cpus_allowed = CpuMask::all(4).into();
        sched.numa_map(1, 256 * MB, 0);
        sched.task_numa_fault(fault(0, CpuPid::UNSET));
        let mut env = to_the_other_node(p, [4096, 0]);
        sched.task_numa_find_cpu_by_node_type(&mut env, 500, 500);
        assert!(env.best_cpu.is_some(), "{}", kernel.name);
        assert_eq!(env.best_task.is_some(), swaps, "{}", kernel.name);
    }
}

#[test]
fn a_failed_migration_slows_every_later_scan_but_not_in_late_v6_12_and_v7_3() {
    for (kernel, failures) in [(V6_1, 3), (V6_12, 0), (V6_18, 3), (V7_2, 3), (V7_3, 0)] {
        let (mut sched, p) = machine(kernel, TWO);
        sched.numa_map(1, 200 * MB, 0);
        sched.add_mm_rss(1, (200 * MB) as i64);
        let own = CpuPid::new(CpuId(0), sched.task_cold[p].pid);
        sched.task_numa_fault(fault(0, own));
        sched.numa.task[p].numa_faults_locality[2] = 3;
        scan(&mut sched, p, 10_000);
        let before = sched.numa.task[p].numa_scan_period;
        sched.numa.task[p].numa_migrate_retry = u64::MAX;
        sched.task_numa_placement(p);
        let task = &sched.numa.task[p];
        assert_eq!(task.numa_scan_period, (2 * before).min(task.numa_scan_period_max), "{}", kernel.name);
        assert_eq!(task.numa_faults_locality[2], failures, "{}", kernel.name);
    }
}

#[test]
fn a_slice_that_ends_is_no_tick_to_memory_in_v7_2() {
    for (kernel, looks) in [(V6_12, true), (V7_2, false)] {
        let (mut sched, p) = machine(kernel, TWO);
        sched.numa_map(1, 200 * MB, 0);
        sched.add_mm_rss(1, (200 * MB) as i64);
        sched.numa.task[p].node_stamp = 0;
        let se = sched.task[p].se;
        sched.se[se].sum_exec_runtime = u64::MAX / 2;
        sched.task_tick_fair(CpuId(0), p, true);
        assert_eq!(sched.numa.task[p].node_stamp > 0, looks, "{}", kernel.name);
        sched.task_tick_fair(CpuId(0), p, false);
        assert!(sched.numa.task[p].node_stamp > 0, "{}", kernel.name);
    }
}
