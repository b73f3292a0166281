//! The arithmetic of imbalance, worked out by hand.

use super::*;
use crate::fair::balance::by_load::groups::{GroupType, SdLbStats, SgLbStats};
use crate::topology::SgId;

/// A group of `cpus` CPUs with `tasks` tasks of load 1024 each.
fn group(cpus: u64, tasks: u64) -> SgLbStats {
    SgLbStats {
        avg_load: tasks * 1024 / cpus,
        group_load: tasks * 1024,
        sum_weighted_load: tasks * 1024,
        load_per_task: if tasks > 0 { 1024 } else { 0 },
        group_capacity: cpus * 1024,
        group_util: tasks.min(cpus) * 1024,
        sum_nr_running: tasks as u32,
        idle_cpus: cpus.saturating_sub(tasks) as u32,
        group_weight: cpus as u32,
        group_type: GroupType::Other,
        group_no_capacity: false,
        group_misfit_task_load: 0,
    }
}

fn two_groups(busiest: SgLbStats, local: SgLbStats) -> SdLbStats {
    let (total_load, total_capacity) =
        (busiest.group_load + local.group_load, busiest.group_capacity + local.group_capacity);
    SdLbStats {
        busiest: Some(SgId(0)),
        local: Some(SgId(1)),
        total_load,
        total_capacity,
        avg_load: 1024 * total_load / total_capacity,
        busiest_stat: busiest,
        local_stat: local,
    }
}

fn imbalance(kernel: Kernel, idle: CpuIdleType, mut sds: SdLbStats) -> i64 {
    let mut sched = flat(kernel, 2);
    let mut env = sched.env(CPU1, sched.lowest_domain(CPU1), idle);
    sched.calculate_imbalance_by_load(&mut env, &mut sds);
    env.imbalance
}

#[test]
fn the_imbalance_of_two_groups_by_hand() {
    let v4_5 = |busiest, local| imbalance(V4_5_RC1, CpuIdleType::NotIdle, two_groups(busiest, local));
    // 6 tasks on 4 CPUs against 2: averages 1536 and 512, mean 1024. 512 below the mean on 4 CPUs: 2048, 2 tasks.
    assert_eq!(v4_5(group(4, 6), group(4, 2)), 2048);
    // 6 tasks against 4: averages 1536 and 1024, mean 1280: 256 on 4 CPUs, one task.
    assert_eq!(v4_5(group(4, 6), group(4, 4)), 1024);
    // 3 against 2 on 2 CPUs: averages 1536 and 1024, mean 1280: 256 on 2 CPUs is 512, less than a task. A task, scaled
    // to the group, is 512: 1536 + 512 >= 1024 + 2 * 512, so it moves all the same.
    assert_eq!(v4_5(group(2, 3), group(2, 2)), 1024);
    // 5 against 4 on 4: averages 1280 and 1024, mean 1152: 128 on 4 CPUs; 1280 + 256 >= 1024 + 2 * 256.
    assert_eq!(v4_5(group(4, 5), group(4, 4)), 1024);
    // 9 against 8 on 16 and on 8: averages 576 and 1024, the busiest below the mean.
    // 576 + 64 < 1024 + 2 * 64; moving would use no more capacity: no imbalance.
    assert_eq!(v4_5(group(16, 9), group(8, 8)), 0);
}

#[test]
fn a_move_that_gains_capacity_is_made_by_hand() {
    // 100 of load in one task on 2 CPUs against one task of 10 on 2 CPUs; scaled averages 50 and 5, mean 27.
    let task = |load: u64| SgLbStats {
        avg_load: load / 2,
        group_load: load,
        sum_weighted_load: load,
        load_per_task: load,
        sum_nr_running: 1,
        ..group(2, 1)
    };
    // (50 - 27) * 2048 / 1024 = 46 > (27 - 5) * 2 = 44, less than the task of 100. imbn = 1, because 100 > 10: 50 + 50
    // >= 5 + 50, so the task moves.
    assert_eq!(imbalance(V4_5_RC1, CpuIdleType::NotIdle, two_groups(task(100), task(10))), 100);
    // Two tasks of 30 against one of 40: averages 30 and 20, mean 25: 10 to move. Scaled task 15, imbn = 2:
    // 30 + 15 < 20 + 30. Now 2 * 30 + 2 * 20 = 100 is used; after: 2 * 15 + 2 * min(40, 20 + 15) = 100. No gain.
    let two = SgLbStats { load_per_task: 30, sum_nr_running: 2, ..task(60) };
    assert_eq!(imbalance(V4_5_RC1, CpuIdleType::NotIdle, two_groups(two, task(40))), 10);
}

#[test]
fn two_overloaded_groups_leave_no_cpu_without_work() {
    let overloaded = |tasks| SgLbStats { group_type: GroupType::Overloaded, ..group(4, tasks) };
    // 12 tasks against 6 on 4 CPUs: 3072 and 1536, mean 2304. 768 above the mean; above the capacity 12 - 4 CPUs =
    // 8192, or 2048 for each CPU: the mean is the limit in both eras. 768 * 4 = 3 tasks.
    for kernel in [V4_5_RC1, V4_15] {
        assert_eq!(imbalance(kernel, CpuIdleType::NotIdle, two_groups(overloaded(12), overloaded(6))), 3072);
    }
    // 5 tasks of quadruple weight: 5120 on average, the other group 1280; mean 3200, 1920 above it. By capacity, 5 *
    // 1024 - 4096 = 1024 may move, which is a task for the whole group or a quarter of one per CPU:
    let heavy = SgLbStats { avg_load: 5120, group_load: 20480, load_per_task: 512, ..overloaded(5) };
    let sds = two_groups(heavy, overloaded(5));
    assert_eq!(imbalance(V4_5_RC1, CpuIdleType::NotIdle, sds), 1024 * 4);
    assert_eq!(imbalance(V4_15, CpuIdleType::NotIdle, sds), 1024 / 4 * 4);
}

#[test]
fn a_pinned_group_is_not_judged_by_its_average() {
    let pinned = SgLbStats { group_type: GroupType::Imbalanced, load_per_task: 3000, ..group(4, 4) };
    // Averages 1024 and 512, mean 768: 256 * 4 = 1024, which is no less than a task's load, limited to the mean, 768.
    assert_eq!(imbalance(V4_5_RC1, CpuIdleType::Idle, two_groups(pinned, group(4, 2))), 1024);
}

#[test]
fn excess_tasks_of_siblings_count_against_the_local_group_since_v4_13() {
    // Two cores of two threads: one task each. Before v4.13 any core with two tasks was overloaded, now only with two more.
    for (kernel, moved) in [(V4_5_RC1, GroupType::Overloaded), (V4_15, GroupType::Other)] {
        let mut sched = machine(kernel, CpuTopology::symmetric(1, 1, 1, 2, 2));
        for cpu in [CPU0, CpuId(2), CPU1] {
            sched.hogs(cpu, 1);
            sched.run_something(cpu);
        }
        let idle = CpuId(3);
        let sd = sched.domains[sched.lowest_domain(idle)].parent.expect("above the core");
        sched.on_cpu(idle);
        let mut env = sched.env(idle, sd, CpuIdleType::Idle);
        let sds = sched.update_sd_lb_stats_by_load(&mut env);
        assert_eq!(sds.busiest_stat.sum_nr_running, 2);
        assert_eq!(sds.busiest_stat.group_type, moved, "{}", sched.kernel.name);
    }
}

#[test]
fn what_counts_as_imbalance() {
    use CpuIdleType::{Idle, NewlyIdle, NotIdle};
    // Two CPUs of one cache: imbalance_pct 117.
    let judged = |kernel, idle, busiest, local| {
        let sched = flat(kernel, 2);
        let env = sched.env(CPU1, sched.lowest_domain(CPU1), idle);
        sched.is_out_of_balance(&env, &two_groups(busiest, local))
    };
    let v4_5 = |idle, busiest, local| judged(V4_5_RC1, idle, busiest, local);
    // 117 against 100 is not enough while the CPU is busy, 118 is.
    let load = |avg_load: u64| SgLbStats { avg_load, group_load: avg_load, group_capacity: 1024, ..group(1, 1) };
    assert!(!v4_5(NotIdle, load(117), load(100)) && v4_5(NotIdle, load(118), load(100)));
    assert!(!v4_5(NotIdle, load(100), load(118)), "the local group is the busier one");
    // An idle CPU compares numbers of idle CPUs instead: having one more than the other group is no imbalance.
    let with_idle = |idle_cpus, avg_load| SgLbStats { idle_cpus, ..load(avg_load) };
    assert!(!v4_5(Idle, with_idle(0, 200), with_idle(1, 100)) && v4_5(Idle, with_idle(0, 200), with_idle(2, 100)));
    assert!(v4_5(NewlyIdle, with_idle(0, 200), with_idle(1, 100)));
    let overloaded = SgLbStats { group_type: GroupType::Overloaded, group_no_capacity: true, ..with_idle(0, 200) };
    assert!(v4_5(Idle, overloaded, with_idle(1, 100)));
    // A heavy task makes the local group look busy, but it has room: it pulls all the same when about to idle, since
    // v4.13 when idle, never when busy.
    let heavy = SgLbStats { sum_nr_running: 1, group_weight: 2, ..load(5000) };
    for (idle, forced) in [(NewlyIdle, [true, true]), (Idle, [false, true]), (NotIdle, [false, false])] {
        assert_eq!([V4_5_RC1, V4_15].map(|kernel| judged(kernel, idle, overloaded, heavy)), forced);
    }
    let full = SgLbStats { sum_nr_running: 2, group_util: 1024, ..heavy };
    assert!(!v4_5(NewlyIdle, overloaded, full), "no room");
    // Averages do not matter if affinity is the problem.
    assert!(v4_5(NotIdle, SgLbStats { group_type: GroupType::Imbalanced, ..load(1) }, load(2)));
}

#[test]
fn the_busiest_queue_is_the_one_with_most_load_for_its_capacity() {
    // CPUs 0 and 1 in one socket, 2 in the other.
    let mut sched = machine(V4_5_RC1, CpuTopology::symmetric(2, 1, 1, 2, 1));
    let puller = CpuId(2);
    let sd = sched.domains[sched.lowest_domain(puller)].parent.expect("two sockets");
    let other = sched.domains[sched.domains[sd].groups].next;
    let busiest = |sched: &mut Machine, imbalance| {
        let env = LbEnv { imbalance, ..sched.env(puller, sd, CpuIdleType::NotIdle) };
        sched.find_busiest_queue_by_load(&env, other)
    };
    assert_eq!(busiest(&mut sched, 5000), None, "no load anywhere");
    sched.hogs(CPU0, 3);
    sched.hogs(CPU1, 2);
    assert_eq!(busiest(&mut sched, 100), Some(CPU0));
    // 2048 of load on a capacity of 500 is more than 3072 on 1024.
    sched.rq[CPU1].cpu_capacity = 500;
    assert_eq!(busiest(&mut sched, 100), Some(CPU1));
    // A single task that exceeds the imbalance is of no use, unless its CPU has lost capacity.
    let mut sched = machine(V4_5_RC1, CpuTopology::symmetric(2, 1, 1, 2, 1));
    sched.hogs(CPU0, 1);
    assert_eq!((busiest(&mut sched, 1023), busiest(&mut sched, 1024)), (None, Some(CPU0)));
    sched.rq[CPU0].cpu_capacity = 800;
    assert_eq!(busiest(&mut sched, 1023), Some(CPU0));
}

#[test]
fn until_v6_2_a_group_above_the_average_pulls_what_the_busiest_has_too_much() {
    use crate::fair::balance::by_group_type::groups::{GroupType, SdLbStats, SgLbStats};
    // The third group of the domain is idle, so that the average is below both.
    let group = |group_type, load| SgLbStats {
        group_type,
        group_load: load,
        avg_load: load,
        group_capacity: 1024,
        ..SgLbStats::default()
    };
    let mut sds = SdLbStats {
        local_stat: group(GroupType::FullyBusy, 1000),
        busiest_stat: group(GroupType::Overloaded, 1500),
        total_load: 2500,
        total_capacity: 3 * 1024,
        ..SdLbStats::default()
    };
    for (above_average, moved) in [(AboveAverage::BusiestSurplus, 1500 - 833), (AboveAverage::Nothing, 0)] {
        let kernel = Kernel { balance: BalanceRules { above_average, ..V5_10.balance }, ..V5_10 };
        let sched = flat(kernel, 2);
        let mut env = sched.env(CPU1, sched.lowest_domain(CPU1), CpuIdleType::NewlyIdle);
        sched.calculate_imbalance(&mut env, &mut sds);
        assert_eq!(env.imbalance, moved);
    }
}
