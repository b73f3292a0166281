//! What EEVDF tells balancing: which tasks only seem to be there, and which have had more than their share.

use super::*;
use crate::cpu_topology::{EmPerfDomain, EmState, EnergyModel};
use crate::fair::balance::by_group_type::groups::GroupType;

/// Whether the task may move from CPU 0 to CPU 1.
fn may_go(sched: &mut Machine, p: TaskId, migration_type: MigrationType) -> bool {
    let sd = sched.lowest_domain(CPU1);
    sched.on_cpu(CPU1);
    let mut env = LbEnv { src_cpu: CPU0, migration_type, ..sched.env(CPU1, sd, CpuIdleType::Idle) };
    sched.can_migrate_task(p, &mut env)
}

#[test]
fn a_sleeper_that_is_still_queued_goes_with_load_only() {
    for (kernel, alone) in [(V6_12, true), (V6_18, false), (V7_2, false)] {
        let mut sched = flat(kernel, 2);
        let p = sched.hogs(CPU0, 2)[1];
        sched.cool_down();
        let se = sched.task[p].se;
        sched.se[se].sched_delayed = true;
        for other in [MigrationType::Task, MigrationType::Util, MigrationType::Misfit] {
            assert_eq!(may_go(&mut sched, p, other), alone, "{} {other:?}", sched.kernel.name);
        }
        assert!(may_go(&mut sched, p, MigrationType::Load), "{}", sched.kernel.name);
        sched.se[se].sched_delayed = false;
        assert!(may_go(&mut sched, p, MigrationType::Task), "{}", sched.kernel.name);
    }
}

#[test]
fn who_had_more_than_its_share_competes_elsewhere_only_after_a_failure() {
    for (kernel, at_once) in [(V6_12, true), (V6_18, false), (V7_2, false)] {
        let mut sched = flat(kernel, 2);
        let tasks = sched.hogs(CPU0, 2);
        let p = tasks[1];
        sched.cool_down();
        let se = sched.task[p].se;
        sched.se[se].vruntime = sched.se[se].vruntime.wrapping_add(1_000_000_000);
        assert!(may_go(&mut sched, p, MigrationType::Task), "{}: nobody is there", sched.kernel.name);
        sched.hogs(CPU1, 1);
        assert_eq!(may_go(&mut sched, p, MigrationType::Task), at_once, "{}", sched.kernel.name);
        assert!(may_go(&mut sched, tasks[0], MigrationType::Task), "{}: the other is eligible", sched.kernel.name);
        let sd = sched.lowest_domain(CPU1);
        sched.domains[sd].nr_balance_failed = 1;
        assert!(may_go(&mut sched, p, MigrationType::Task), "{}", sched.kernel.name);
        sched.domains[sd].nr_balance_failed = 0;
        assert_eq!(sched.sched_feat_set(Feature::PLACE_LAG, false), Ok(()));
        assert!(may_go(&mut sched, p, MigrationType::Task), "{}: its lag is lost anyway", sched.kernel.name);
    }
}

#[test]
fn sleepers_that_are_still_queued_do_not_count() {
    for (kernel, counted) in [(V6_12, 2), (V6_18, 1), (V7_2, 1)] {
        let mut sched = flat(kernel, 2);
        sched.hogs(CPU0, 2);
        sched.cool_down();
        let cfs = sched.rq[CPU0].cfs;
        sched.cfs_rq[cfs].h_nr_delayed = 1;
        let sd = sched.lowest_domain(CPU1);
        sched.on_cpu(CPU1);
        let mut env = sched.env(CPU1, sd, CpuIdleType::Idle);
        let sds = sched.update_sd_lb_stats(&mut env);
        let stats = sds.busiest_stat;
        assert_eq!((stats.sum_h_nr_running, stats.sum_nr_running), (counted, 2), "{}", sched.kernel.name);
        // A queue with no other task is not the busiest.
        sched.cfs_rq[cfs].h_nr_delayed = 2;
        let group = sds.busiest.expect("that of CPU 0");
        env.migration_type = MigrationType::Task;
        let found = sched.find_busiest_queue_by_group_type(&env, group);
        assert_eq!(found, (counted == 2).then_some(CPU0), "{}", sched.kernel.name);
        sched.cfs_rq[cfs].h_nr_delayed = 0;
    }
}

/// Two little CPUs of capacity 400 and two big ones below one cache, with a model of their energy.
fn little_and_big(kernel: Kernel) -> Machine {
    let domain = |cpus: &[u16], mhz: u64, mw: u64| EmPerfDomain {
        cpus: cpus.iter().map(|&cpu| CpuId(cpu)).collect(),
        states: vec![EmState { frequency_khz: mhz * 1000, power_uw: mw * 1000 }],
    };
    let mut topology = CpuTopology::symmetric(1, 1, 1, 4, 1);
    for little in [CPU0, CPU1] {
        topology.capacity[little] = 400;
    }
    let domains = vec![domain(&[0, 1], 2000, 400), domain(&[2, 3], 3000, 2000)];
    topology.energy_model = Some(EnergyModel { domains, schedutil: true });
    machine(kernel, topology)
}

#[test]
fn where_energy_is_looked_after_a_group_is_overloaded_only_if_a_cpu_is_overutilized() {
    // CPU 0 has two tasks that use 100 of 400 and wait long: 400 * 117 < 1000 * 100. 319 would fit, 320 does not.
    for (kernel, util, group_type) in
        [(V6_12, 100, GroupType::Overloaded), (V7_2, 100, GroupType::FullyBusy), (V7_2, 320, GroupType::Overloaded)]
    {
        let mut sched = little_and_big(kernel);
        assert!(sched.sched_energy_enabled());
        sched.hogs(CPU0, 2);
        sched.cool_down();
        let cfs = sched.rq[CPU0].cfs;
        let avg = &mut sched.cfs_rq[cfs].avg;
        (avg.util_avg, avg.runnable_avg) = (util, 1000);
        avg.util_est.enqueued = 0;
        sched.on_cpu(CPU1);
        let sd = sched.lowest_domain(CPU1);
        let mut env = sched.env(CPU1, sd, CpuIdleType::Idle);
        let sds = sched.update_sd_lb_stats(&mut env);
        assert_eq!(sds.busiest_stat.group_type, group_type, "{} {util}", sched.kernel.name);
    }
}

#[test]
fn each_kind_of_imbalance_is_counted_by_itself() {
    let mut sched = flat(V7_2, 4);
    sched.hogs(CPU0, 8);
    sched.run_something(CPU0);
    sched.cool_down();
    let sd = sched.lowest_domain(CPU1);
    assert!(sched.balance(CPU1, sd, CpuIdleType::Idle) > 0);
    // A CPU in the same LLC with room: tasks are counted, and half of the difference between 0 and 1 idle CPUs.
    let by_task = |sched: &Machine| sched.domains.stats(sd).lb_imbalance_task[0];
    let stats = sched.domains.stats(sd).clone();
    assert!(by_task(&sched) > 0);
    assert_eq!((stats.lb_imbalance_load, stats.lb_imbalance_util, stats.lb_imbalance_misfit), ([0; 3], [0; 3], [0; 3]));
    for (migration_type, expected) in
        [(MigrationType::Load, [7, 0, 0]), (MigrationType::Util, [7, 7, 0]), (MigrationType::Misfit, [7, 7, 7])]
    {
        let env = LbEnv { migration_type, imbalance: 7, ..sched.env(CPU1, sd, CpuIdleType::NotIdle) };
        sched.update_lb_imbalance_stat(&env);
        let stats = sched.domains.stats(sd);
        let counted = [stats.lb_imbalance_load, stats.lb_imbalance_util, stats.lb_imbalance_misfit];
        assert_eq!(counted.map(|of| of[1]), expected);
    }
    assert_eq!(by_task(&sched), stats.lb_imbalance_task[0]);
}
