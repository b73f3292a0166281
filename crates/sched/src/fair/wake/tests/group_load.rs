//! effective_load(): how load moves between CPUs within a group's shares.

use super::*;

/// A group with `load` on each CPU, runnable and average alike, all of it contained in the group's sum; its entities
/// weigh their part of `shares`.
fn load_group(m: &mut Machine, tg: TgId, shares: u64, load: &[u64]) {
    let sum: u64 = load.iter().sum();
    m.tg[tg].shares = shares;
    m.tg[tg].load_avg = sum;
    for (on, &load) in load.iter().enumerate() {
        let (cfs, se) = (m.tg[tg].cfs_rq[on], m.tg[tg].se[on]);
        let queue = &mut m.cfs_rq[cfs];
        queue.load.weight = load;
        queue.avg.load_avg = load;
        queue.tg_load_avg_contrib = load;
        m.se[se].avg.load_avg = shares * load / sum;
    }
}

fn four_cpus() -> Machine {
    Machine::new(V4_5_RC1, CpuTopology::symmetric(1, 1, 1, 4, 1))
}

#[test]
fn without_a_group_load_is_load() {
    let mut m = four_cpus();
    assert_eq!(m.effective_load(ROOT_TASK_GROUP, cpu(0), 1024, 1024), 1024);
    assert_eq!(m.effective_load(ROOT_TASK_GROUP, cpu(0), -300, -300), -300);
    assert_eq!(m.effective_load(ROOT_TASK_GROUP, cpu(0), 0, 1024), 0);
}

#[test]
fn seven_tasks_of_a_group_and_one_more() {
    // Weights 2, 4, 1, 0 of 7; with one more on CPU 0 they are 3, 4, 1, 0 of 8.
    let mut m = four_cpus();
    let tg = m.sched_create_group(ROOT_TASK_GROUP, "g", 1024);
    load_group(&mut m, tg, 1024, &[2 * 1024, 4 * 1024, 1024, 0]);
    // 1024 * 3/8 - 1024 * 2/7 = 384 - 292.
    assert_eq!(m.effective_load(tg, cpu(0), 1024, 1024), 92);
    // 1024 * 4/8 - 1024 * 4/7 = 512 - 585.
    assert_eq!(m.effective_load(tg, cpu(1), 0, 1024), -73);
    // On a CPU where the group has nothing: 1024 * 1/8 - 0 for the task; if the task goes elsewhere, the smallest
    // weight, 2.
    assert_eq!(m.effective_load(tg, cpu(3), 1024, 1024), 128);
    assert_eq!(m.effective_load(tg, cpu(3), 0, 1024), 2);
    // One task leaves CPU 0 for good: 1024 * 1/6 - 292 = 170 - 292.
    assert_eq!(m.effective_load(tg, cpu(0), -1024, -1024), -122);
    // All of the group on one CPU: it has all shares, whatever comes.
    load_group(&mut m, tg, 1024, &[1024, 0, 0, 0]);
    assert_eq!(m.effective_load(tg, cpu(0), 1024, 1024), 0);
    // The last one leaves: w = W = 0 leaves the shares unchanged.
    assert_eq!(m.effective_load(tg, cpu(0), -1024, -1024), 0);
}

#[test]
fn a_group_in_a_group() {
    // The outer group: shares 2048, 1024 of load on CPU 0 and 3072 on CPU 1: entities 512 and 1536.
    // The inner one: shares 1024, 1024 on each of the two CPUs: entities 512 each.
    let mut m = four_cpus();
    let outer = m.sched_create_group(ROOT_TASK_GROUP, "outer", 2048);
    let inner = m.sched_create_group(outer, "inner", 1024);
    load_group(&mut m, outer, 2048, &[1024, 3072, 0, 0]);
    load_group(&mut m, inner, 1024, &[1024, 1024, 0, 0]);
    // Inner: 1024 * 2048/3072 - 512 = 682 - 512 = 170. Outer: w = 1024 + 170, W = 4096 (the change of the inner group
    // does not change the outer one's total): 2048 * 1194 / 4096 - 512 = 597 - 512.
    assert_eq!(m.effective_load(inner, cpu(0), 1024, 1024), 85);
    // The other side: 1024 * 1024/3072 - 512 = -171; 2048 * (3072 - 171) / 4096 - 1536 = 1450 - 1536.
    assert_eq!(m.effective_load(inner, cpu(1), 0, 1024), -86);
}

#[test]
fn the_totals_own_part_is_the_queues_weight() {
    // CPU 0 has added 1000 to the group's sum, its average has grown to 1500 and its weight is 2048: W = 5000 - 1000 +
    // 2048 = 6048.
    let mut m = four_cpus();
    let tg = m.sched_create_group(ROOT_TASK_GROUP, "g", 1024);
    load_group(&mut m, tg, 1024, &[1000, 4000, 0, 0]);
    let (cfs, se) = (m.tg[tg].cfs_rq[0], m.tg[tg].se[0]);
    m.cfs_rq[cfs].load.weight = 2048;
    m.cfs_rq[cfs].avg.load_avg = 1500;
    m.se[se].avg.load_avg = 300;
    // (1500 + 500) * 1024 / (6048 + 500) - 300 = 312 - 300.
    assert_eq!(m.effective_load(tg, cpu(0), 500, 500), 12);
}

#[test]
fn a_queue_that_loses_more_than_it_has_weighs_less_than_nothing() {
    // Its task has run on while its average is from earlier: w = 1000 - 1024, W = 4000 + 1024 - 1024.
    let mut m = four_cpus();
    let tg = m.sched_create_group(ROOT_TASK_GROUP, "g", 1024);
    load_group(&mut m, tg, 1024, &[1000, 4000, 0, 0]);
    let cfs = m.tg[tg].cfs_rq[0];
    m.cfs_rq[cfs].load.weight = 1024;
    // -24 * 1024 / 4000 - 204, not 2 - 204.
    assert_eq!(m.effective_load(tg, cpu(0), -1024, -1024), -210);
    // If it would weigh 0 or 1 it has the smallest weight: w = 0, and 7 * 1024 / 4007.
    assert_eq!(m.effective_load(tg, cpu(0), -1000, -1024), 2 - 204);
    assert_eq!(m.effective_load(tg, cpu(0), -993, -1017), 2 - 204);
}

#[test]
fn a_groups_shares_decide_whether_its_task_is_pulled() {
    // Both sockets run one task of the root group; on the second, two tasks of the group run as well. The group's
    // shares count there: a root task is pulled because of that; a member of a small group adds almost nothing and is
    // pulled as well; but if the whole group is on this side already, waking it here costs nothing at all.
    let target = |here: u64, there: u64| {
        let mut m = two_sockets(V4_5_RC1);
        let tg = m.sched_create_group(ROOT_TASK_GROUP, "g", 1024);
        m.run(0);
        let mut load = [0; 16];
        (load[0], load[4]) = (here, there);
        load_group(&mut m, tg, 1024, &load);
        let p = m.sleeper(4);
        m.task[p].sched_task_group = tg;
        m.root_avg(4).runnable_avg = 500;
        m.select(0, p, false)
    };
    // Here 1024 + (1024 - 1024), there 500 + 2 (1024 is all of W - 1024): 100 * 1024 > 112 * 502.
    assert_eq!(target(1024, 0), 4);
    // Here 1024 + 1024/2, there 500 + (512 - 1024), which is less than nothing.
    assert_eq!(target(0, 1024), 4);
}

#[test]
fn a_sync_waker_of_a_group_leaves_its_shares_to_the_others() {
    // The waker is on CPU 0 and another task of its group on CPU 4, with 512 of 1024 shares each. Without the waker,
    // 512 - 510 are left here (the smallest weight is 2), and 1024 there, all shares: 100 * (2 + 1024) <= 112 * (512 +
    // 512). The woken task belongs to the root group.
    let target = |sync, here, there| {
        let mut m = two_sockets(V4_5_RC1);
        let tg = m.sched_create_group(ROOT_TASK_GROUP, "g", 1024);
        let mut load = [0; 16];
        (load[0], load[4]) = (FULL, FULL);
        load_group(&mut m, tg, 1024, &load);
        for (on, runnable) in [(0, here), (4, there)] {
            let p = m.run(on);
            m.task[p].sched_task_group = tg;
            m.root_avg(on).runnable_avg = runnable;
        }
        let p = m.sleeper(4);
        m.select(0, p, sync)
    };
    assert_eq!(target(true, 512, 512), 1);
    // 100 * (512 + 1024) > 112 * 512.
    assert_eq!(target(false, 512, 512), 5);
    // With 1024 of others here, only 510 leave: 100 * (1536 - 510 + 1024) > 112 * (1000 + 512).
    assert_eq!(target(true, 1536, 1000), 5);
    assert_eq!(target(true, 1536, 1319), 1, "205000 <= 112 * 1831");
    assert_eq!(target(true, 1536, 1318), 5);
}
