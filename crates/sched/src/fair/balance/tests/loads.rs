//! Loads as balancing sees them: tasks in groups, blocked load, and capacities.

use super::*;
use crate::topology::SdFlags;

#[test]
fn a_task_in_a_group_weighs_its_share_of_the_share() {
    let mut sched = flat(V4_5_RC1, 2);
    let group = sched.sched_create_group(ROOT_TASK_GROUP, "a", 1024);
    let p = sched.hog_in(group, CPU0, CpuMask::all(2));
    let queue = sched.tg[group].cfs_rq[0];
    let root = sched.rq[CPU0].cfs;
    let entity = sched.tg[group].se[0];
    sched.cfs_rq[root].avg.load_avg = 2047;
    sched.se[entity].avg.load_avg = 1024;
    sched.cfs_rq[queue].avg.load_avg = 2047;
    let se = sched.task[p].se;
    sched.se[se].avg.load_avg = 1024;
    // The group is 2047 * 1024 / 2048 = 1023 of the CPU's load, and the task half of that: 1024 * 1023 / 2048.
    assert_eq!(sched.task_h_load(p), 511);
    assert_eq!((sched.cfs_rq[root].h_load, sched.cfs_rq[queue].h_load), (2047, 1023));
    // Within a jiffy the group's share stays the same, the task's own part does not.
    sched.se[entity].avg.load_avg = 0;
    sched.se[se].avg.load_avg = 512;
    assert_eq!(sched.task_h_load(p), 255);
    sched.pass_ms(1);
    assert_eq!(sched.task_h_load(p), 0);
}

#[test]
fn a_task_weighs_something_in_the_very_first_jiffy() {
    let mut sched = flat(V4_5_RC1, 2);
    sched.arch.now = 0;
    let p = sched.hogs(CPU0, 1)[0];
    assert_eq!(sched.task_h_load(p), 1024 * 1024 / 1025);
}

#[test]
fn what_blocked_decays_and_later_kernels_forget_its_queue() {
    for (kernel, listed) in [(V4_5_RC1, true), (V4_15, false)] {
        let mut sched = flat(kernel, 2);
        let group = sched.sched_create_group(ROOT_TASK_GROUP, "a", 1024);
        sched.hog_in(group, CPU0, CpuMask::all(2));
        let p = sched.run_something(CPU0);
        sched.pass_ms(100);
        sched.on_cpu(CPU0);
        sched.scheduler_tick();
        sched.task[p].state = TaskState::Interruptible;
        assert_eq!(sched.schedule(false), None);
        let queue = sched.tg[group].cfs_rq[0];
        assert!(sched.cfs_rq[queue].avg.load_avg > 500 && sched.tg[group].load_avg > 500);
        let mut before = sched.cfs_rq[queue].avg.load_avg;
        for _ in 0..3 {
            // 32 periods of 2^20 ns.
            sched.arch.now += 32 << 20;
            sched.update_blocked_averages(CPU0);
            let now = sched.cfs_rq[queue].avg.load_avg;
            assert!(now.abs_diff(before / 2) <= 1, "half of it is left: {before} to {now}");
            before = now;
        }
        sched.pass_ms(5_000);
        sched.update_blocked_averages(CPU0);
        assert_eq!((sched.cfs_rq[queue].avg.load_avg, sched.tg[group].load_avg), (0, 0));
        assert_eq!(sched.cfs_rq[queue].on_list, listed, "{}", sched.kernel.name);
    }
}

#[test]
fn balancing_renews_capacities() {
    // Two threads of a core share 1178 of 1024; real-time tasks take a quarter of the first one.
    let mut sched = machine(V4_5_RC1, CpuTopology::symmetric(1, 1, 1, 2, 2));
    assert_eq!((sched.capacity_of(CPU0), sched.capacity_orig_of(CPU0)), (589, 589));
    sched.on_cpu(CPU0);
    sched.update_rq_clock(CPU0);
    sched.rq[CPU0].age_stamp = sched.rq[CPU0].clock;
    sched.rq[CPU0].rt_avg = sched.sched_avg_period() / 4 * 1024;
    let core = sched.lowest_domain(CPU0);
    let package = sched.domains[core].parent.expect("two cores");
    assert!(!sched.check_cpu_capacity(CPU0, core));
    let capacity = |sched: &Machine, sd: SdId| sched.domains[sched.domains[sched.domains[sd].groups].sgc].capacity;
    sched.balance(CPU0, core, CpuIdleType::NotIdle);
    assert_eq!((sched.capacity_of(CPU0), sched.capacity_orig_of(CPU0)), (441, 589));
    assert_eq!((capacity(&sched, core), capacity(&sched, package)), (441, 1178));
    sched.balance(CPU0, package, CpuIdleType::NotIdle);
    assert_eq!(capacity(&sched, package), 441 + 589);
    assert!(sched.check_cpu_capacity(CPU0, core), "a quarter is more than the 10% of this level");
    // Newly-idle balancing does not update them, unless they are old.
    sched.rq[CPU0].rt_avg = 0;
    sched.balance(CPU0, core, CpuIdleType::NewlyIdle);
    assert_eq!(sched.capacity_of(CPU0), 441);
    sched.pass_ms(1000);
    sched.balance(CPU0, core, CpuIdleType::NewlyIdle);
    assert_eq!(sched.capacity_of(CPU0), 589);
}

#[test]
fn a_squeezed_task_is_pushed_to_a_cpu_with_room() {
    let mut sched = flat(V4_5_RC1, 2);
    sched.hogs(CPU0, 1);
    sched.run_something(CPU0);
    sched.cool_down();
    sched.rq[CPU0].cpu_capacity = 700;
    let sd = sched.lowest_domain(CPU1);
    let env = LbEnv { src_cpu: CPU0, ..sched.env(CPU1, sd, CpuIdleType::Idle) };
    // 700 * 117% < 1024: worth it, even without a failure before.
    assert!(sched.need_active_balance(&env));
    let busy = LbEnv { src_cpu: CPU0, ..sched.env(CPU1, sd, CpuIdleType::NotIdle) };
    assert!(!sched.need_active_balance(&busy));
    sched.rq[CPU1].cpu_capacity = 800;
    assert!(!sched.need_active_balance(&env), "not worth it for a CPU that is squeezed as well");
}

#[test]
fn guesses_lean_both_ways_unless_told_not_to() {
    let mut sched = flat(V4_5_RC1, 2);
    sched.hogs(CPU0, 2);
    sched.rq[CPU0].cpu_load = [0, 500, 3000, 0, 0];
    let guesses = |sched: &Machine, index| (sched.source_load(CPU0, index), sched.target_load(CPU0, index));
    assert_eq!(guesses(&sched, 0), (2048, 2048));
    // Index n reads average n - 1.
    assert_eq!(guesses(&sched, 2), (500, 2048));
    assert_eq!(guesses(&sched, 3), (2048, 3000));
    sched.features.set(crate::features::Feature::LB_BIAS, false);
    assert_eq!(guesses(&sched, 3), (2048, 2048));
    assert_eq!((sched.cpu_avg_load_per_task(CPU0), sched.cpu_avg_load_per_task(CPU1)), (1024, 0));
}

#[test]
fn packing_brings_tasks_to_the_first_cpu() {
    for (kernel, busy_pulls) in [(V4_5_RC1, false), (V4_15, false)] {
        let mut sched = flat(kernel, 2);
        let sd = sched.lowest_domain(CPU0);
        sched.domains[sd].flags |= SdFlags::SD_ASYM_PACKING;
        sched.hogs(CPU1, 1);
        sched.run_something(CPU1);
        sched.cool_down();
        let mut env = sched.env(CPU0, sd, CpuIdleType::Idle);
        // One task against none is no imbalance of averages between idle CPUs, but all of its load is to be pulled.
        assert!(sched.find_busiest_group_by_load(&mut env).is_some());
        assert_eq!(env.imbalance, 1024, "{}", sched.kernel.name);
        let newly = LbEnv { src_cpu: CPU1, ..sched.env(CPU0, sd, CpuIdleType::NewlyIdle) };
        assert!(sched.need_active_balance(&newly), "what runs is pushed at once");
        let mut env = sched.env(CPU0, sd, CpuIdleType::NotIdle);
        sched.hogs(CPU0, 1);
        assert_eq!(sched.find_busiest_group_by_load(&mut env).is_some(), busy_pulls);
    }
}
