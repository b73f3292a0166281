//! The arithmetic of imbalance, worked out by hand.

use super::*;
use crate::fair::balance::groups::{GroupType, SdLbStats, SgLbStats};
use crate::topology::SgId;

/// A group of `cpus` CPUs with `tasks` tasks of load 1024.
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
    sched.calculate_imbalance(&mut env, &mut sds);
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
    // to the group, is 512: 1536 + 512 >= 1024 + 2 * 512, so it goes all the same.
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
    // (50 - 27) * 2048 / 1024 = 46 > (27 - 5) * 2 = 44, less than the task of 100. imbn = 1, because 100 > 10:
    // 50 + 50 >= 5 + 50, so the task goes.
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
    // 8192, for each CPU 2048: the mean binds in both eras. 768 * 4 = 3 tasks.
    for kernel in [V4_5_RC1, V4_15] {
        assert_eq!(imbalance(kernel, CpuIdleType::NotIdle, two_groups(overloaded(12), overloaded(6))), 3072);
    }
    // 5 tasks of quadruple weight: 5120 on average, the other group 1280; mean 3200, 1920 above it. By capacity,
    // 5 * 1024 - 4096 = 1024 may go, which is a task for the whole group or a quarter of one per CPU:
    let heavy = SgLbStats { avg_load: 5120, group_load: 20480, load_per_task: 512, ..overloaded(5) };
    let sds = two_groups(heavy, overloaded(5));
    assert_eq!(imbalance(V4_5_RC1, CpuIdleType::NotIdle, sds), 1024 * 4);
    assert_eq!(imbalance(V4_15, CpuIdleType::NotIdle, sds), 1024 / 4 * 4);
}

#[test]
fn a_pinned_group_is_not_judged_by_its_average() {
    let pinned = SgLbStats { group_type: GroupType::Imbalanced, load_per_task: 3000, ..group(4, 4) };
    // Averages 1024 and 512, mean 768: 256 * 4 = 1024, not less than a task's load, held to the mean, 768.
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
        let env = sched.env(idle, sd, CpuIdleType::Idle);
        let sds = sched.update_sd_lb_stats(&env);
        assert_eq!(sds.busiest_stat.sum_nr_running, 2);
        assert_eq!(sds.busiest_stat.group_type, moved, "{}", sched.kernel.name);
    }
}
