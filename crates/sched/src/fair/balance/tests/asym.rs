//! CPUs that differ: in capacity, in rank, and in what the other threads of their cores do.

use super::*;
use crate::fair::balance::by_group_type::groups::GroupType;
use crate::topology::SgId;
use crate::versions::V7_3;
use units::PerCpu;

const CPU2: CpuId = CpuId(2);
const KERNELS: [Kernel; 2] = [V7_2, V7_3];

/// CPUs of capacity 400 among others of 1024.
fn with_little(mut topology: CpuTopology, little: &[u16]) -> CpuTopology {
    little.iter().for_each(|&cpu| topology.capacity[CpuId(cpu)] = 400);
    topology
}

impl Machine {
    fn widest_domain(&self, cpu: CpuId) -> SdId {
        self.domains.for_each_domain(cpu).last().expect("the CPU has a domain")
    }

    fn group_of(&self, sd: SdId, cpu: CpuId) -> SgId {
        let mut groups = self.domains.groups(sd);
        groups.find(|&group| self.domains.sched_group_span(group).contains(cpu)).expect("all CPUs are in groups")
    }

    fn one_hog_on(&mut self, cpu: CpuId) {
        self.hogs(cpu, 1);
        self.run_something(cpu);
    }

    /// The queue that `dst` finds in the group of `src`, when numbers of tasks are to be evened out.
    fn queue_found(&mut self, dst: CpuId, src: CpuId) -> Option<CpuId> {
        let sd = self.widest_domain(dst);
        let group = self.group_of(sd, src);
        self.on_cpu(dst);
        let env = LbEnv { migration_type: MigrationType::Task, ..self.env(dst, sd, CpuIdleType::Idle) };
        self.find_busiest_queue_by_group_type(&env, group)
    }
}

#[test]
fn a_misfit_task_hides_its_group_from_little_cpus_until_v7_2() {
    for (kernel, seen) in KERNELS.into_iter().zip([None, Some(GroupType::FullyBusy)]) {
        let mut sched = machine(kernel, with_little(CpuTopology::symmetric(1, 1, 1, 4, 1), &[0, 1]));
        sched.one_hog_on(CPU0);
        sched.cool_down();
        let cfs = sched.rq[CPU0].cfs;
        (sched.cfs_rq[cfs].avg.util_avg, sched.cfs_rq[cfs].avg.runnable_avg) = (400, 400);
        sched.rq[CPU0].misfit_task_load = 500;
        for (dst, expected) in [(CPU1, seen), (CPU2, Some(GroupType::MisfitTask))] {
            sched.set_overload(CPU0, false);
            sched.on_cpu(dst);
            let mut env = sched.env(dst, sched.widest_domain(dst), CpuIdleType::Idle);
            let sds = sched.update_sd_lb_stats(&mut env);
            let busiest = sds.busiest.map(|_| sds.busiest_stat.group_type);
            assert_eq!(busiest.filter(|_| sds.busiest_stat.sum_nr_running > 0), expected, "{} {dst}", kernel.name);
            assert!(sched.root_domain(CPU0).overload, "big CPUs that are about to idle are to search");
        }
    }
}

#[test]
fn a_little_cpu_sees_busy_big_ones_in_v6_6() {
    // It would be no better for their tasks. A group that is fully busy is a step above one with capacity left.
    for (kernel, seen) in [(V6_1, false), (V6_6, true), (V6_12, false), (V6_18, true), (V7_2, false)] {
        let mut sched = machine(kernel, with_little(CpuTopology::symmetric(1, 1, 1, 4, 1), &[0, 1]));
        sched.one_hog_on(CPU2);
        sched.cool_down();
        let cfs = sched.rq[CPU2].cfs;
        (sched.cfs_rq[cfs].avg.util_avg, sched.cfs_rq[cfs].avg.runnable_avg) = (1024, 1024);
        sched.on_cpu(CPU0);
        let mut env = sched.env(CPU0, sched.widest_domain(CPU0), CpuIdleType::Idle);
        let sds = sched.update_sd_lb_stats(&mut env);
        let fully_busy = sds.busiest.is_some() && sds.busiest_stat.group_type == GroupType::FullyBusy;
        assert_eq!(fully_busy, seen, "{}", kernel.name);
        assert_eq!(sched.queue_found(CPU0, CPU2), None, "{}: its only task stays", kernel.name);
    }
}

#[test]
fn a_misfit_task_moves_beside_a_busy_thread_in_v6_6() {
    // Cores 0 and 1 are big; 3 is the other thread of core 0, and 2 is little.
    let topology = with_little(CpuTopology::symmetric(1, 1, 1, 3, 2), &[2, 5]);
    for (kernel, seen) in [(V6_1, false), (V6_6, true), (V6_12, false), (V6_18, true), (V7_2, false)] {
        let mut sched = machine(kernel, topology.clone());
        sched.one_hog_on(CPU2);
        sched.cool_down();
        sched.rq[CPU2].misfit_task_load = 500;
        sched.one_hog_on(CpuId(3));
        sched.on_cpu(CPU0);
        let mut env = sched.env(CPU0, sched.widest_domain(CPU0), CpuIdleType::Idle);
        let sds = sched.update_sd_lb_stats(&mut env);
        let misfit = sds.busiest.is_some() && sds.busiest_stat.group_type == GroupType::MisfitTask;
        assert_eq!(misfit, seen, "{}", kernel.name);
    }
}

#[test]
fn a_busy_sibling_lets_go_of_a_sole_task_since_v7_3() {
    // Cores 0 and 1 are big; 3 is the other thread of core 0.
    let topology = with_little(CpuTopology::symmetric(1, 1, 1, 3, 2), &[2, 5]);
    for (kernel, shared) in KERNELS.into_iter().zip([None, Some(CPU0)]) {
        let mut sched = machine(kernel, topology.clone());
        sched.one_hog_on(CPU0);
        assert_eq!(sched.queue_found(CPU1, CPU0), None, "{}: it has its core for itself", kernel.name);
        sched.one_hog_on(CpuId(3));
        assert_eq!(sched.queue_found(CPU1, CPU0), shared, "{}", kernel.name);
        assert_eq!(sched.queue_found(CPU2, CPU0), shared, "{}: a little CPU takes it, too", kernel.name);
    }
}

#[test]
fn between_clusters_of_one_kind_a_sole_task_moves_since_v7_3() {
    let plain = with_little(CpuTopology::symmetric(1, 1, 1, 6, 1), &[4, 5]);
    let mut clustered = plain.clone();
    for cpu in (0..6).map(CpuId::new) {
        let first = cpu.0 / 2 * 2;
        clustered.cluster[cpu] = cpus(&[first, first + 1]);
    }
    for (kernel, alike) in KERNELS.into_iter().zip([None, Some(CPU0)]) {
        for (topology, found) in [(&plain, None), (&clustered, alike)] {
            let mut sched = machine(kernel, topology.clone());
            sched.one_hog_on(CPU0);
            sched.one_hog_on(CpuId(4));
            assert_eq!(sched.queue_found(CPU2, CPU0), found, "{}", kernel.name);
            assert_eq!(sched.queue_found(CpuId(5), CPU0), None, "{}: to a lower capacity", kernel.name);
            assert_eq!(sched.queue_found(CPU2, CpuId(4)), Some(CpuId(4)), "{}: to a higher one", kernel.name);
        }
    }
}

#[test]
fn a_cpu_of_higher_rank_pushes_a_task_out_of_its_cache_since_v7_3() {
    // CPUs 4 to 7 have a cache of their own and the higher rank.
    let mut topology = CpuTopology::symmetric(1, 1, 2, 4, 1);
    topology.highest_perf = Some(PerCpu::from_fn(8, |cpu| if cpu.0 < 4 { 100 } else { 200 }));
    for (kernel, pushed) in KERNELS.into_iter().zip([false, true]) {
        let mut sched = machine(kernel, topology.clone());
        let p = sched.hogs(CPU0, 1)[0];
        sched.run_something(CPU0);
        sched.account_llc_dequeue(CPU0, p);
        sched.balance.cache.task[p].preferred_llc = Some(0);
        sched.account_llc_enqueue(CPU0, p);
        let to_rank = |sched: &mut Machine, idle| {
            let dst = CpuId(4);
            let sd = sched.widest_domain(dst);
            assert!(sched.domains[sd].flags.has(SdFlags::SD_ASYM_PACKING));
            sched.on_cpu(dst);
            let env = LbEnv { src_cpu: CPU0, ..sched.env(dst, sd, idle) };
            sched.need_active_balance(&env)
        };
        assert_eq!(to_rank(&mut sched, CpuIdleType::Idle), pushed, "{}", kernel.name);
        assert!(!to_rank(&mut sched, CpuIdleType::NotIdle), "{}: ranks concern idle CPUs", kernel.name);
        sched.account_llc_dequeue(CPU0, p);
        sched.balance.cache.task[p].preferred_llc = None;
        sched.account_llc_enqueue(CPU0, p);
        assert!(to_rank(&mut sched, CpuIdleType::Idle), "{}: nothing is against it", kernel.name);
    }
}

#[test]
fn v5_15_compares_capacities_with_the_pulling_cpu_but_not_across_types() {
    let topology = with_little(CpuTopology::symmetric(1, 1, 1, 4, 1), &[0, 1]);
    let with_hog = |kernel| {
        let mut sched = machine(kernel, topology.clone());
        sched.one_hog_on(CPU2);
        sched.cool_down();
        let cfs = sched.rq[CPU2].cfs;
        (sched.cfs_rq[cfs].avg.util_avg, sched.cfs_rq[cfs].avg.runnable_avg) = (1024, 1024);
        sched
    };
    // Between CPUs of the same capacity, a task alone on its CPU stays there.
    let found = |kernel| with_hog(kernel).queue_found(CpuId(3), CPU2);
    assert_eq!([V5_10, V5_15, V6_1].map(found), [Some(CPU2), None, None]);
    // A little CPU finds the big one busier than the others, which idle, though it is no help.
    let busiest = |kernel| {
        let mut sched = with_hog(kernel);
        sched.on_cpu(CPU0);
        let mut env = sched.env(CPU0, sched.widest_domain(CPU0), CpuIdleType::Idle);
        let sds = sched.update_sd_lb_stats(&mut env);
        sds.busiest.map(|_| sds.busiest_stat.group_type)
    };
    assert_eq!([V5_10, V5_15].map(busiest), [Some(GroupType::FullyBusy); 2]);
    assert_ne!(busiest(V6_1), Some(GroupType::FullyBusy));
}

#[test]
fn a_task_alone_on_a_squeezed_cpu_makes_its_group_the_busiest_of_equal_ones_since_v6_1() {
    let busiest = |kernel| {
        let mut sched = machine(kernel, CpuTopology::symmetric(2, 1, 1, 2, 1));
        sched.one_hog_on(CPU2);
        sched.cool_down();
        let cfs = sched.rq[CPU2].cfs;
        (sched.cfs_rq[cfs].avg.util_avg, sched.cfs_rq[cfs].avg.runnable_avg) = (500, 500);
        // Its group has another CPU, which nothing squeezes.
        sched.rq[CPU2].cpu_capacity = 600;
        sched.on_cpu(CPU0);
        let mut env = sched.env(CPU0, sched.widest_domain(CPU0), CpuIdleType::Idle);
        let sds = sched.update_sd_lb_stats(&mut env);
        sds.busiest.map(|_| sds.busiest_stat.group_type)
    };
    assert_eq!([V6_1, V6_6, V6_12, V6_18].map(busiest), [Some(GroupType::MisfitTask); 4]);
    assert_ne!(busiest(V5_15), Some(GroupType::MisfitTask));
}
