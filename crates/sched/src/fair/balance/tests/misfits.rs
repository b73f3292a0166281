//! Balancing by load in v5.4: tasks too big for their CPU, better placed CPUs, and imbalances of nothing.

use super::*;
use crate::behaviour::Rules;
use crate::fair::balance::by_load::groups::GroupType;
use crate::versions::{V4_19, V5_4};

const CPU2: CpuId = CpuId(2);

/// CPUs 0 and 1 are little; 2 and 3 are big.
fn little_and_big(kernel: Kernel) -> Machine {
    let mut topology = CpuTopology::symmetric(1, 1, 1, 4, 1);
    [0, 1].iter().for_each(|&cpu| topology.capacity[CpuId(cpu)] = 400);
    machine(kernel, topology)
}

/// A task of that load on `cpu`, which is too big for it.
fn misfit_on(sched: &mut Machine, cpu: CpuId, load: u64) {
    sched.hogs(cpu, 1);
    sched.run_something(cpu);
    sched.cool_down();
    sched.rq[cpu].misfit_task_load = load;
}

#[test]
fn a_big_cpu_with_room_pulls_a_misfit_task_and_a_little_one_does_not() {
    for (dst, pulls) in [(CPU1, false), (CPU2, true)] {
        let mut sched = little_and_big(V5_4);
        misfit_on(&mut sched, CPU0, 500);
        sched.on_cpu(dst);
        let sd = sched.lowest_domain(dst);
        let mut env = sched.env(dst, sd, CpuIdleType::Idle);
        let group = sched.find_busiest_group_by_load(&mut env);
        assert!(sched.root_domain(CPU0).overload, "big CPUs that are about to idle are to search");
        assert_eq!(group.is_some(), pulls, "{dst}");
        let Some(group) = group else { continue };
        assert!(env.src_misfit && env.imbalance >= 500, "{env:?}");
        assert_eq!(sched.find_busiest_queue_by_load(&env, group), Some(CPU0));
        env.src_cpu = CPU0;
        assert!(sched.need_active_balance(&env), "what runs is pushed at once");
    }
}

#[test]
fn of_two_misfit_tasks_the_bigger_is_pulled() {
    // The same number of tasks with the same load.
    let mut sched = little_and_big(V5_4);
    misfit_on(&mut sched, CPU0, 500);
    misfit_on(&mut sched, CPU1, 600);
    sched.on_cpu(CPU2);
    let sd = sched.lowest_domain(CPU2);
    let mut env = sched.env(CPU2, sd, CpuIdleType::Idle);
    let sds = sched.update_sd_lb_stats_by_load(&mut env);
    assert_eq!(
        (sds.busiest_stat.group_type, sds.busiest_stat.group_misfit_task_load > 0),
        (GroupType::MisfitTask, true)
    );
    // A busy CPU that is as big has no room for it.
    let mut sched = little_and_big(V5_4);
    misfit_on(&mut sched, CPU0, 500);
    sched.hogs(CPU2, 1);
    sched.run_something(CPU2);
    let queue = sched.rq[CPU2].cfs;
    sched.cfs_rq[queue].avg.util_avg = 1024;
    let sds = sched.update_sd_lb_stats_by_load(&mut sched.env(CPU2, sd, CpuIdleType::NotIdle));
    assert_ne!(sds.busiest.map(|_| sds.busiest_stat.group_type), Some(GroupType::MisfitTask));
}

#[test]
fn a_task_alone_on_a_bigger_cpu_stays_there() {
    for (misfits, stays) in [("pulled", true), ("unseen", false)] {
        let mut kernel = V5_4;
        kernel.set("balance.misfits", misfits);
        let mut sched = little_and_big(kernel);
        sched.hogs(CPU2, 1);
        sched.run_something(CPU2);
        sched.cool_down();
        let sd = sched.lowest_domain(CPU0);
        let group = sched.domains.groups(sd).find(|&sg| sched.domains.sched_group_span(sg).contains(CPU2));
        let env = LbEnv { imbalance: 2000, ..sched.env(CPU0, sd, CpuIdleType::Idle) };
        sched.on_cpu(CPU0);
        assert_eq!(sched.find_busiest_queue_by_load(&env, group.expect("its own")).is_none(), stays, "{misfits}");
    }
}

#[test]
fn a_group_of_no_load_is_a_failure_until_v4_16() {
    // Affinity kept the level below from being balanced, but what is there weighs nothing.
    for (kernel, fails) in [(V4_16, true), (V4_19, false), (V5_4, false)] {
        let mut sched = machine(kernel, CpuTopology::symmetric(2, 1, 1, 2, 1));
        sched.hogs(CPU0, 1);
        sched.run_something(CPU0);
        sched.cool_down();
        let queue = sched.rq[CPU0].cfs;
        let avg = &mut sched.cfs_rq[queue].avg;
        (avg.load_avg, avg.runnable_avg) = (0, 0);
        sched.rq[CPU0].cpu_load = [0; 5];
        let sd = sched.domains[sched.lowest_domain(CPU2)].parent.expect("both nodes");
        let group = sched.domains.groups(sd).find(|&sg| sched.domains.sched_group_span(sg).contains(CPU0));
        let sgc = sched.domains[group.expect("a node")].sgc;
        sched.domains[sgc].imbalance = true;
        sched.on_cpu(CPU2);
        let mut env = sched.env(CPU2, sd, CpuIdleType::Idle);
        let found = sched.find_busiest_group_by_load(&mut env);
        assert_eq!((found.is_some(), env.imbalance), (fails, 0), "{}", sched.kernel.name);
    }
}

#[test]
fn tasks_without_load_count_as_one_in_v5_4() {
    for (kernel, moved) in [(V4_16, 3), (V4_19, 3), (V5_4, 2)] {
        let mut sched = flat(kernel, 2);
        for p in sched.hogs(CPU0, 4) {
            let se = sched.task[p].se;
            sched.se[se].avg.load_avg = 0;
        }
        sched.run_something(CPU0);
        sched.cool_down();
        let sd = sched.lowest_domain(CPU1);
        let mut env = LbEnv { src_cpu: CPU0, imbalance: 2, ..sched.env(CPU1, sd, CpuIdleType::Idle) };
        sched.on_cpu(CPU1);
        assert_eq!(sched.detach_tasks(&mut env), moved, "{}", sched.kernel.name);
        sched.attach_tasks(&mut env);
    }
}

#[test]
fn what_runs_is_pushed_to_a_better_placed_cpu_that_idles_since_v5_4() {
    // CPU 1 is of higher rank.
    let mut topology = CpuTopology::symmetric(1, 1, 1, 2, 1);
    topology.highest_perf = Some(units::PerCpu::from_fn(2, |cpu| [39, 66][cpu.index()]));
    for (kernel, idle, pushes) in [
        (V4_16, CpuIdleType::NewlyIdle, true),
        (V4_16, CpuIdleType::Idle, false),
        (V4_19, CpuIdleType::Idle, false),
        (V5_4, CpuIdleType::NewlyIdle, true),
        (V5_4, CpuIdleType::Idle, true),
        (V5_4, CpuIdleType::NotIdle, false),
    ] {
        let mut sched = machine(kernel, topology.clone());
        sched.hogs(CPU0, 1);
        sched.run_something(CPU0);
        sched.cool_down();
        let load = sched.weighted_cpuload(CPU0) as i64;
        sched.on_cpu(CPU1);
        let mut env = sched.env(CPU1, sched.lowest_domain(CPU1), idle);
        if idle != CpuIdleType::NotIdle {
            assert!(
                sched.find_busiest_group_by_load(&mut env).is_some(),
                "{}: all of it is to move",
                sched.kernel.name
            );
            assert_eq!(env.imbalance, load);
        }
        env.src_cpu = CPU0;
        assert_eq!(sched.need_active_balance(&env), pushes, "{} {idle:?}", sched.kernel.name);
    }
}
