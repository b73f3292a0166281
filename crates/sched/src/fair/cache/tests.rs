//! Cache-aware scheduling on small machines, driven by hand.

use super::balance::{LlcLimits, LlcMig, LlcStats};
use super::process::get_sched_cache_scale;
use super::work::update_avg_scale;
use super::*;
use crate::attr::SchedAttr;
use crate::behaviour::Rules;
use crate::core::{Boot, TaskInit};
use crate::cpu_topology::CpuTopology;
use crate::fair::balance::{LbEnv, MigrationType, SgLbStats};
use crate::sched::{Policy, ROOT_TASK_GROUP, TaskState};
use crate::scheduler::Scheduler;
use crate::sysctl::Tunable;
use crate::testing::{Hand, MS};
use crate::topology::CpuIdleType;
use crate::versions::{Kernel, V6_12, V7_2, V7_3};

type Machine = Sched<Hand>;

const JIFFY: u64 = 4 * MS;

/// A second after boot at 250 Hz, with nothing running: so many nodes, LLCs in each, cores in each, threads in each.
fn machine(kernel: Kernel, [nodes, llcs, cores, threads]: [usize; 4]) -> Machine {
    let topology = CpuTopology::symmetric(nodes, 1, llcs, cores, threads);
    Sched::new(Hand::at(1_000 * MS), Boot::new(kernel, topology, 250))
}

fn cpus(list: impl IntoIterator<Item = u16>) -> CpuMask {
    list.into_iter().map(CpuId).collect()
}

impl Machine {
    /// A task of process `mm` that wants to run forever, started on `cpu`, and allowed everywhere from then on.
    fn thread(&mut self, mm: u32, cpu: u16) -> TaskId {
        let cpu = CpuId(cpu);
        self.on_cpu(cpu);
        if self.rq[cpu].tick_stopped {
            self.tick_nohz_idle_restart(cpu);
        }
        let init = TaskInit {
            comm: String::from("t"),
            attr: Some(SchedAttr::fair(Policy::Normal, 0)),
            cpus_allowed: Some(CpuMask::single(cpu)),
            mm,
            group: ROOT_TASK_GROUP,
        };
        let p = self.sched_fork(None, init);
        self.wake_up_new_task(p);
        let all = CpuMask::all(self.nr_cpus());
        self.task[p].nr_cpus_allowed = all.weight() as u16;
        self.task[p].cpus_allowed = all.into();
        self.schedule(false);
        p
    }

    /// Lets a jiffy pass: ticks, their consequences, and the work of tasks on their way to user mode.
    fn jiffy_and_work(&mut self) {
        self.arch.now += JIFFY;
        for cpu in (0..self.nr_cpus()).map(CpuId::new) {
            if !self.rq[cpu].tick_stopped && Scheduler::scheduler_tick(self, cpu) {
                Scheduler::run_rebalance_domains(self, cpu);
            }
            self.settle_and_work(cpu);
        }
        while let Some((_, to)) = self.arch.interrupts.pop() {
            if Scheduler::scheduler_ipi(self, to) {
                Scheduler::run_rebalance_domains(self, to);
            }
            self.settle_and_work(to);
        }
    }

    fn jiffies_pass(&mut self, count: usize) {
        (0..count).for_each(|_| self.jiffy_and_work());
    }

    fn settle_and_work(&mut self, cpu: CpuId) {
        while self.rq[cpu].need_resched || self.rq[cpu].curr.is_some() && self.rq[cpu].curr == self.rq[cpu].stop {
            if self.rq[cpu].tick_stopped {
                self.tick_nohz_idle_restart(cpu);
            }
            let next = Scheduler::schedule(self, cpu, true);
            if next.is_some() && next == self.rq[cpu].stop {
                Scheduler::cpu_stopper_thread(self, cpu);
                Scheduler::set_current_state(self, cpu, TaskState::Interruptible);
                Scheduler::schedule(self, cpu, false);
            }
        }
        match self.rq[cpu].curr {
            Some(curr) if self.cache_work_pending(curr) => TaskCacheWork::task_cache_work(self, cpu),
            Some(_) => {}
            None if self.rq[cpu].tick_stopped => {}
            None => {
                self.idle_loop_enter(cpu);
                self.tick_nohz_idle_stop(cpu, true);
            }
        }
    }

    /// Ends a task that runs somewhere.
    fn exit(&mut self, p: TaskId) {
        let cpu = self.task[p].cpu;
        assert_eq!(self.rq[cpu].curr, Some(p), "only who runs can end");
        self.on_cpu(cpu);
        self.exit_current();
        self.schedule(false);
    }

    fn nr_running_at_most(&self, most: u32) -> bool {
        self.rq.iter().all(|(_, rq)| rq.nr_running <= most)
    }

    fn preferred(&self, p: TaskId) -> Option<LlcId> {
        self.balance.cache.task[p].preferred_llc
    }

    fn llc_of(&self, p: TaskId) -> LlcId {
        self.balance.cache.llc_id[self.task[p].cpu]
    }

    /// How many tasks of `all` are in each LLC.
    fn below(&self, all: &[TaskId]) -> Vec<usize> {
        let of = |llc| all.iter().filter(|&&p| self.llc_of(p) == llc).count();
        (0..self.balance.cache.nr_llcs as LlcId).map(of).collect()
    }

    /// Checks the counts of queued tasks against a recount.
    fn check_counts(&self) {
        for (cpu, rq) in self.balance.cache.rq.iter() {
            let queued: Vec<TaskId> = self
                .task
                .iter()
                .filter(|(_, task)| task.alive && task.cpu == cpu && self.se[task.se].on_rq)
                .map(|(p, _)| p)
                .collect();
            for (llc, &count) in rq.llc_counts.iter().enumerate() {
                let prefer = queued.iter().filter(|&&p| self.preferred(p) == Some(llc as LlcId)).count();
                assert_eq!(count as usize, prefer, "{cpu}, cache {llc}");
            }
            let there = |p: &&TaskId| self.preferred(**p) == self.llc_id(cpu) && self.llc_id(cpu).is_some();
            let awake = |p: &&TaskId| !self.se[self.task[**p].se].sched_delayed;
            assert_eq!(rq.nr_pref_llc_running as usize, queued.iter().filter(there).filter(awake).count(), "{cpu}");
        }
    }
}

// Arithmetic.

#[test]
fn what_ran_is_halved_with_each_epoch() {
    let mut s = machine(V7_2, [1, 2, 2, 1]);
    let p = s.thread(7, 0);
    let group = s.balance.cache.task[p].group.expect("a process");
    let cache = &mut s.balance.cache;
    cache.group[group].pcpu_sched = vec![SchedCacheTime::default(); 4];
    cache.group[group].pcpu_sched[0] = SchedCacheTime { runtime: 800, epoch: 10 };
    cache.rq[CpuId(0)] = CacheRq { cpu_runtime: 1600, cpu_epoch: 10, cpu_epoch_next: 100, ..CacheRq::default() };
    // An epoch goes on until it is over: 100 is its last jiffy. After that one begins every two jiffies, or a part of
    // them.
    for (now, epoch, next, ran, all) in
        [(100, 10, 100, 800, 1600), (101, 11, 102, 400, 800), (105, 13, 106, 100, 200), (900, 410, 900, 0, 0)]
    {
        cache.__update_mm_sched(CpuId(0), group, now, 2);
        let (time, rq) = (cache.group[group].pcpu_sched[0], &cache.rq[CpuId(0)]);
        assert_eq!((rq.cpu_epoch, rq.cpu_epoch_next, time.runtime, rq.cpu_runtime), (epoch, next, ran, all), "{now}");
        assert_eq!(time.epoch, epoch);
    }
}

#[test]
fn the_average_of_running_tasks_is_slower_for_bigger_caches() {
    // A quarter of the CPUs, from 2 to 8; the rest of the division by it remains as a difference.
    for (llc_size, divisor) in [(1, 2), (4, 2), (16, 4), (32, 8), (128, 8)] {
        assert_eq!(update_avg_scale(10, 10 + 3 * divisor, llc_size), 13, "{llc_size} CPUs");
        assert_eq!(update_avg_scale(10, 10 + divisor - 1, llc_size), 10);
        assert_eq!(update_avg_scale(100, 100 - 2 * divisor, llc_size), 98);
    }
    assert_eq!(update_avg_scale(3, 0, 4), 2, "towards zero");
}

#[test]
fn tolerance_scales_what_fits() {
    assert_eq!([0, 1, 2, 99].map(|tolerance| get_sched_cache_scale(tolerance, 256)), [0, 1, 257, 25_089].map(Some));
    assert_eq!(get_sched_cache_scale(100, 256), None);
}

#[test]
fn a_move_between_caches_is_decided_by_the_use_of_both() {
    // Rows are the source's utilization in percent, columns the destination's, before the move of a task with zero
    // utilization.
    use LlcMig::{Forbid as N, Llc as Y, Unrestricted as G};
    let limits = LlcLimits { overaggr_pct: 50, imb_pct: 20 };
    let stats = |pct: u64| LlcStats { util: pct * 160, capacity: 16_000 };
    let rows = |to_preferred| {
        [30, 40, 50, 60]
            .map(|src| [30, 40, 50, 60].map(|dst| limits.can_migrate(stats(src), stats(dst), 0, to_preferred)))
    };
    // From 50% on an LLC is full, and a fifth more than the other is noticeable: 50 is, compared with 40.
    assert_eq!(rows(true), [[Y, Y, N, N], [Y, Y, N, N], [Y, Y, G, G], [Y, Y, G, G]]);
    assert_eq!(rows(false), [[N, N, N, N], [N, N, N, N], [Y, Y, G, G], [Y, Y, G, G]]);
    // The task's own utilization leaves one LLC and adds to the other: 45% and 5% are 50.
    let of = |src, dst, util: u64| limits.can_migrate(stats(src), stats(dst), util * 160, true);
    assert_eq!([of(45, 45, 1), of(45, 45, 5), of(60, 45, 5)], [Y, N, G]);
    // LLCs of which nothing is known yet.
    assert_eq!(limits.can_migrate(LlcStats::default(), LlcStats::default(), 0, true), G);
}

#[test]
fn where_cores_have_one_thread_caches_are_filled_further() {
    assert_eq!(machine(V7_2, [1, 2, 2, 1]).llc_limits().overaggr_pct, 75);
    assert_eq!(machine(V7_2, [1, 2, 2, 2]).llc_limits().overaggr_pct, 50);
}

// The switch.

#[test]
fn it_is_active_where_a_cache_has_others_beside_it() {
    let active = |kernel, shape| machine(kernel, shape).balance.cache.is_active();
    assert!(active(V7_2, [1, 2, 2, 1]));
    assert!(active(V7_2, [2, 1, 4, 2]), "two nodes of one cache each");
    assert!(!active(V7_2, [1, 1, 8, 2]), "one cache");
    assert!(!active(V7_2, [1, 8, 1, 1]), "nothing can be gathered on one CPU");
    assert!(!active(V6_12, [1, 2, 2, 1]));
    let mut without = V7_2;
    without.set("cache.aware", "absent").expect("a behaviour");
    assert!(!active(without, [1, 2, 2, 1]));
}

#[test]
fn it_is_switched_by_a_file_and_by_partitions() {
    let mut s = machine(V7_2, [1, 2, 2, 1]);
    assert_eq!(s.sysctl_write(Tunable::sched_cache_user, 0), Ok(()));
    assert!(!s.balance.cache.is_active());
    assert_eq!(s.sysctl_write(Tunable::sched_cache_user, 1), Ok(()));
    assert!(s.balance.cache.is_active());
    // Each LLC is a partition: no task can be moved from one to the other.
    Scheduler::set_partitions(&mut s, CpuId(0), &[cpus([0, 1]), cpus([2, 3])]).expect("they do not overlap");
    assert!(!s.balance.cache.is_active());
    Scheduler::set_partitions(&mut s, CpuId(0), &[]).expect("no partitions");
    assert!(s.balance.cache.is_active());
    assert!(machine(V6_12, [1, 2, 2, 1]).sysctl_write(Tunable::sched_cache_user, 0).is_err(), "no such file");
}

#[test]
fn a_partition_has_its_part_of_a_cache() {
    let mut topology = CpuTopology::symmetric(1, 1, 2, 4, 1);
    topology.llc_bytes = PerCpu::from_fn(8, |_| 32 << 20);
    let mut s = Sched::new(Hand::at(0), Boot::new(V7_2, topology, 250));
    let bytes = |s: &Machine| [0, 3, 4].map(|cpu| s.balance.cache.rq[CpuId(cpu)].llc_bytes >> 20);
    assert_eq!(bytes(&s), [32, 32, 32]);
    Scheduler::set_partitions(&mut s, CpuId(0), &[cpus([0])]).expect("a partition");
    assert_eq!(bytes(&s), [0, 24, 32], "a single CPU has no domain");
}

// Preference.

#[test]
fn four_threads_below_two_caches_gather_below_one() {
    let mut s = machine(V7_2, [1, 2, 8, 1]);
    // Three threads here, one there: the first LLC has more of the process's time.
    let all: Vec<TaskId> = [0, 1, 2, 8].map(|cpu| s.thread(7, cpu)).to_vec();
    s.jiffies_pass(4);
    assert_eq!(s.below(&all), [3, 1]);
    assert!(all.iter().all(|&p| s.preferred(p) == Some(0)), "they have looked");
    s.jiffies_pass(100);
    assert_eq!(s.below(&all), [4, 0]);
    assert!(s.nr_running_at_most(1), "each on a CPU of its own");
    s.check_counts();
}

#[test]
fn without_it_they_are_spread_over_both() {
    let mut without = V7_2;
    without.set("cache.aware", "absent").expect("a behaviour");
    for kernel in [without, V6_12] {
        let mut s = machine(kernel, [1, 2, 8, 1]);
        for cpu in [0, 1, 2, 8] {
            s.thread(7, cpu);
        }
        s.jiffies_pass(104);
        let busy = |cpus: std::ops::Range<u16>| cpus.filter(|&cpu| s.rq[CpuId(cpu)].nr_running > 0).count();
        assert_eq!((busy(0..8), busy(8..16)), (2, 2), "{}", s.kernel.name);
    }
}

#[test]
fn a_single_thread_prefers_nothing() {
    let mut s = machine(V7_2, [1, 2, 4, 1]);
    let (alone, other) = (s.thread(7, 0), s.thread(8, 4));
    s.jiffies_pass(50);
    assert_eq!([alone, other].map(|p| s.preferred(p)), [None, None]);
    assert!(s.balance.cache.group_of(7).is_some_and(|group| group.cpu.is_none()));
    // A thread that is left alone loses its preference.
    let second = s.thread(7, 1);
    s.jiffies_pass(10);
    assert_eq!([alone, second].map(|p| s.preferred(p)), [Some(0), Some(0)]);
    s.exit(second);
    s.jiffies_pass(2);
    assert_eq!(s.preferred(alone), None);
    s.check_counts();
}

#[test]
fn more_threads_than_a_cache_has_cores_do_not_gather() {
    let mut s = machine(V7_2, [1, 2, 4, 2]);
    // Eight CPUs of four cores in each LLC: four tasks at once times two threads are no less than 80% of eight.
    let all: Vec<TaskId> = (0..4).chain(4..8).map(|cpu| s.thread(7, cpu)).collect();
    s.jiffies_pass(200);
    let group = s.balance.cache.group_of(7).expect("a process");
    assert!(group.nr_running_avg >= 4, "{}", group.nr_running_avg);
    assert_eq!(group.cpu, None);
    assert!(all.iter().all(|&p| s.preferred(p).is_none()));
    assert_eq!(s.below(&all), [4, 4]);
    s.check_counts();
    // With a tolerance of 3, three times as many would still fit.
    assert_eq!(s.sysctl_write(Tunable::llc_aggr_tolerance, 3), Ok(()));
    s.jiffies_pass(20);
    assert!(all.iter().any(|&p| s.preferred(p).is_some()));
}

#[test]
fn who_has_not_looked_for_a_while_prefers_nothing() {
    let mut s = machine(V7_2, [1, 2, 4, 1]);
    let [a, b] = [0, 1].map(|cpu| s.thread(7, cpu));
    s.jiffies_pass(10);
    assert_eq!(s.preferred(a), Some(0));
    // The epochs of this CPU advance, those of the process do not: no thread gets to look.
    let group = s.balance.cache.task[a].group.expect("a process");
    s.balance.cache.rq[CpuId(0)].cpu_epoch = s.balance.cache.group[group].epoch + 6;
    s.on_cpu(CpuId(0));
    s.arch.now += MS;
    s.update_rq_clock(CpuId(0));
    s.account_mm_sched(CpuId(0), a, MS);
    assert_eq!((s.preferred(a), s.preferred(b)), (None, Some(0)), "the other finds that out when it runs");
}

#[test]
fn the_preferred_cache_changes_only_for_twice_as_much() {
    let mut s = machine(V7_2, [1, 2, 4, 1]);
    let p = s.thread(7, 0);
    s.thread(7, 4);
    s.jiffies_pass(6);
    let group = s.balance.cache.task[p].group.expect("a process");
    // All time of each CPU belongs to the process, so that each CPU counts as one.
    let mut look = |here: usize, there: usize, preferred: u16| {
        let cache = &mut s.balance.cache;
        for cpu in 0..8 {
            let ran = if cpu % 4 < if cpu < 4 { here } else { there } { 1000 * MS } else { 0 };
            let epoch = cache.rq[CpuId(cpu as u16)].cpu_epoch;
            cache.group[group].pcpu_sched[cpu] = SchedCacheTime { runtime: ran, epoch };
            cache.rq[CpuId(cpu as u16)].cpu_runtime = 1000 * MS;
        }
        cache.group[group].cpu = Some(CpuId(preferred));
        (cache.group[group].next_scan, cache.group[group].nr_running_avg) = (0, 0);
        s.on_cpu(CpuId(0));
        Sched::task_cache_work(&mut s);
        s.balance.cache.group[group].cpu
    };
    assert_eq!(look(1, 2, 0), Some(CpuId(0)), "twice is not more than twice");
    assert_eq!(look(1, 3, 0), Some(CpuId(4)));
    assert_eq!(look(1, 3, 5), Some(CpuId(5)), "it is there already");
    assert_eq!(look(3, 1, 5), Some(CpuId(0)));
}

#[test]
fn a_process_that_touches_more_than_a_cache_holds_does_not_gather() {
    let mut topology = CpuTopology::symmetric(2, 1, 2, 4, 1);
    topology.llc_bytes = PerCpu::from_fn(16, |_| 32 << 20);
    let mut s = Sched::new(Hand::at(1_000 * MS), Boot::new(V7_2, topology, 250));
    let [a, b] = [0, 4].map(|cpu| s.thread(7, cpu));
    s.numa_map(7, 1 << 18, 0);
    let group = s.balance.cache.task[a].group.expect("a process");
    let exceeds = |s: &Machine| s.exceed_llc_capacity(group, CpuId(0));
    s.sched_cache_footprint(a, 8192);
    assert!(!exceeds(&s), "32 MB fit");
    s.sched_cache_footprint(b, 1);
    assert!(exceeds(&s));
    s.sysctl.llc_aggr_tolerance = 2;
    assert!(!exceeds(&s), "257 times as much would");
    s.sysctl.llc_aggr_tolerance = 1;
    // A task that ends takes its faults out of the footprint.
    s.numa.task[b].total_numa_faults = 100;
    s.exit(b);
    assert!(!exceeds(&s));
    s.sched_cache_footprint(a, -10_000);
    assert_eq!(s.balance.cache.group[group].footprint, 0, "never less than nothing");
}

#[test]
fn a_task_prefers_no_cache_off_the_node_that_it_prefers() {
    let mut s = machine(V7_2, [2, 2, 4, 1]);
    let [a, b] = [0, 4].map(|cpu| s.thread(7, cpu));
    s.numa_map(7, 1 << 10, 0);
    s.numa.task[b].numa_preferred_nid = Some(1);
    let group = s.balance.cache.task[a].group.expect("a process");
    s.balance.cache.group[group].cpu = Some(CpuId(1));
    s.jiffy_and_work();
    assert_eq!((s.preferred(a), s.preferred(b)), (Some(0), None));
    // The task looks on its own node, on that of the preferred LLC, and where it is.
    assert_eq!(s.get_scan_cpumasks(a, group), CpuMask::all(16));
    assert_eq!(s.get_scan_cpumasks(b, group), CpuMask::all(16));
    s.balance.cache.group[group].cpu = Some(CpuId(9));
    s.task[b].cpu = CpuId(9);
    assert_eq!(s.get_scan_cpumasks(b, group), cpus(8..16));
    s.task[b].cpu = CpuId(4);
}

// Balancing.

#[test]
fn active_balancing_leaves_alone_whoever_is_where_it_prefers_to_be() {
    for (prefers, leaves) in [(Some(0), true), (Some(1), false), (None, false)] {
        let mut s = machine(V7_2, [1, 2, 4, 1]);
        let p = s.thread(7, 0);
        s.thread(7, 1);
        s.account_llc_dequeue(CpuId(0), p);
        s.balance.cache.task[p].preferred_llc = prefers;
        s.account_llc_enqueue(CpuId(0), p);
        let sd = s.domains[s.domains.sd_llc[CpuId(4)].expect("a cache")].parent.expect("both caches");
        let mut env = LbEnv::new(sd, CpuId(4), CpuIdleType::Idle);
        env.src_cpu = CpuId(0);
        assert_eq!(s.alb_break_llc(&env), leaves, "{prefers:?}");
        env.migration_type = MigrationType::Misfit;
        assert!(!s.alb_break_llc(&env), "a task that does not fit goes first");
    }
}

#[test]
fn a_cpu_of_higher_rank_takes_from_a_cache_who_prefers_it_since_v7_3() {
    // CPUs 4 to 7 have a cache of their own and the higher rank.
    let mut topology = CpuTopology::symmetric(1, 1, 2, 4, 1);
    topology.highest_perf = Some(PerCpu::from_fn(8, |cpu| if cpu.0 < 4 { 100 } else { 200 }));
    for (kernel, packs) in [(V7_2, false), (V7_3, true)] {
        let mut s = Sched::new(Hand::at(1_000 * MS), Boot::new(kernel, topology.clone(), 250));
        let p = s.thread(7, 0);
        s.thread(7, 1);
        let group = s.balance.cache.task[p].group.expect("its process");
        s.balance.cache.group[group].cpu = Some(CpuId(0));
        for cpu in [0, 4].map(CpuId) {
            let shared = s.domains.sd_llc_shared[cpu].expect("a cache");
            (s.domains[shared].util_avg, s.domains[shared].capacity) = (100, 4096);
        }
        let sd = s.domains[s.domains.sd_llc[CpuId(4)].expect("a cache")].parent.expect("both caches");
        for (idle, stays) in [(CpuIdleType::Idle, !packs), (CpuIdleType::NotIdle, true)] {
            let mut env = LbEnv::new(sd, CpuId(4), idle);
            env.src_cpu = CpuId(0);
            assert_eq!(s.migrate_degrades_llc(p, &env), stays, "{}", kernel.name);
        }
        // And a group that is to be packed is not pulled from because of preferences.
        let env = LbEnv::new(sd, CpuId(4), CpuIdleType::Idle);
        let other = s.domains[s.domains[sd].groups].next;
        for (group_asym_packing, pulled) in [(false, true), (true, !packs)] {
            let sgs = SgLbStats { nr_pref_dst_llc: 1, group_asym_packing, ..SgLbStats::default() };
            assert_eq!(s.llc_balance(&env, &sgs, other), pulled, "{}", kernel.name);
        }
    }
}

#[test]
fn counts_follow_tasks_that_sleep_delayed_move_and_lose_their_domains() {
    let mut s = machine(V7_2, [1, 2, 4, 1]);
    let all: Vec<TaskId> = [0, 0, 1, 1, 4].map(|cpu| s.thread(7, cpu)).to_vec();
    for step in 0..60 {
        s.jiffy_and_work();
        s.check_counts();
        // The task that runs on CPU 0 sleeps, delayed or not; later it is woken.
        s.on_cpu(CpuId(0));
        if let Some(curr) = s.rq[CpuId(0)].curr.filter(|_| step % 3 == 0) {
            s.task[curr].state = TaskState::Interruptible;
            s.schedule(false);
        }
        s.check_counts();
        if step % 3 == 2 {
            for &p in &all {
                s.try_to_wake_up(p, crate::sched::WakeFlags::NONE);
            }
            s.check_counts();
        }
    }
    assert!(all.iter().any(|&p| s.preferred(p).is_some()));
    // New domains start counting from zero: a task queued before is not counted until it has been dequeued once.
    s.rebuild_sched_domains();
    s.check_counts();
    Scheduler::set_partitions(&mut s, CpuId(0), &[cpus([0, 1, 4, 5])]).expect("a partition");
    assert!(s.balance.cache.rq[CpuId(0)].llc_counts.iter().all(|&count| count == 0));
    s.jiffies_pass(30);
}
