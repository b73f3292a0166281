//! Which tasks move, how many, and what prevents it.

use super::*;
use crate::features::Feature;
use crate::versions::V5_4;

#[test]
fn a_pile_of_hogs_spreads_over_idle_cpus() {
    for kernel in [V4_5_RC1, V4_15] {
        let mut sched = flat(kernel, 4);
        sched.hogs(CPU0, 8);
        sched.run_something(CPU0);
        sched.cool_down();
        // Each idle CPU in turn pulls what brings it to the average: 2 tasks of 8.
        for cpu in [1, 2, 3].map(CpuId) {
            let sd = sched.lowest_domain(cpu);
            sched.pass_ms(1);
            assert_eq!(sched.balance(cpu, sd, CpuIdleType::NewlyIdle), 2, "{}", sched.kernel.name);
        }
        assert_eq!(sched.nr_running(), [2, 2, 2, 2]);
        for cpu in [0, 1, 2, 3].map(CpuId) {
            let sd = sched.lowest_domain(cpu);
            assert_eq!(sched.balance(cpu, sd, CpuIdleType::NotIdle), 0, "balanced stays balanced");
        }
    }
}

#[test]
fn pinned_tasks_stay() {
    // Until v4.12 the retry finds no busiest group and treats that as balanced, which clears the flag for the parent.
    for (kernel, flagged, lb_nobusyg) in [(V4_5_RC1, false, 1), (V4_15, true, 0)] {
        let mut sched = machine(kernel, CpuTopology::symmetric(2, 1, 1, 2, 1));
        let p = [0, 1, 2].map(|_| sched.hog_for(CPU0, cpus(&[0])));
        sched.run_something(CPU0);
        sched.cool_down();
        let sd = sched.lowest_domain(CPU1);
        let interval = sched.domains[sd].balance_interval;
        assert_eq!(sched.balance(CPU1, sd, CpuIdleType::Idle), 0);
        assert_eq!(sched.nr_running(), [3, 0, 0, 0]);
        assert_eq!(sched.domains[sd].balance_interval, 2 * interval, "backs off");
        assert_eq!(sched.is_flagged_imbalanced(sd), flagged, "{}", sched.kernel.name);
        let stats = sched.domains.stats(sd);
        assert_eq!((stats.lb_balanced, stats.lb_nobusyg), ([1, 0, 0], [lb_nobusyg, 0, 0]));
        let failed = p.map(|p| sched.task_cold[p].statistics.nr_failed_migrations_affine);
        assert_eq!(failed, [1, 1, 1]);
    }
}

#[test]
fn some_pinned_tasks_flag_the_parent_group() {
    for kernel in [V4_5_RC1, V4_15] {
        let mut sched = machine(kernel, CpuTopology::symmetric(2, 1, 1, 2, 1));
        sched.hogs(CPU0, 1);
        sched.run_something(CPU0);
        for _ in 0..3 {
            sched.hog_for(CPU0, cpus(&[0]));
        }
        sched.cool_down();
        // The task that may move is running, the waiting one may not move.
        let sd = sched.lowest_domain(CPU1);
        assert_eq!(sched.balance(CPU1, sd, CpuIdleType::Idle), 0);
        assert!(sched.is_flagged_imbalanced(sd));
        assert_eq!(sched.domains[sd].nr_balance_failed, 1);
        // Until nothing is out of balance any more.
        sched.domains[sd].nr_balance_failed = 0;
        assert_eq!(sched.balance(CPU0, sched.lowest_domain(CPU0), CpuIdleType::NotIdle), 0);
        assert!(!sched.is_flagged_imbalanced(sd));
    }
}

#[test]
fn a_task_pinned_away_from_the_puller_goes_to_another_cpu_of_its_group() {
    for kernel in [V4_5_RC1, V4_15] {
        // Two sockets, CPUs 0,1 and 2,3. The tasks may run on 0 and on 3, but CPU 2 balances for its socket.
        let mut sched = machine(kernel, CpuTopology::symmetric(2, 1, 1, 2, 1));
        for _ in 0..4 {
            sched.hog_for(CPU0, cpus(&[0, 3]));
        }
        sched.run_something(CPU0);
        sched.cool_down();
        let cpu2 = CpuId(2);
        let sd = sched.domains[sched.lowest_domain(cpu2)].parent.expect("two sockets");
        // 4 tasks in one group of two, none in the other: two of them restore the balance.
        assert_eq!(sched.balance(cpu2, sd, CpuIdleType::Idle), 2, "{}", sched.kernel.name);
        assert_eq!(sched.nr_running(), [2, 0, 0, 2]);
    }
}

#[test]
fn who_could_not_take_a_task_is_not_asked_again() {
    let mut sched = machine(V4_5_RC1, CpuTopology::symmetric(2, 1, 1, 3, 1));
    let (first, second, third) = (CpuId(3), CpuId(4), CpuId(5));
    for allowed in [[0, 4], [0, 5], [0, 3]] {
        sched.hog_for(CPU0, cpus(&allowed));
    }
    sched.cool_down();
    let sd = sched.domains[sched.lowest_domain(first)].parent.expect("two sockets");
    let mut env = LbEnv { src_cpu: CPU0, imbalance: 3000, ..sched.env(first, sd, CpuIdleType::Idle) };
    // The task for the first CPU of the group moves there; those for the second and third move in further rounds,
    // except for the last one, which an idle CPU does not take.
    assert_eq!(sched.pull_tasks(&mut env), 2);
    assert_eq!(sched.nr_running(), [1, 0, 0, 1, 0, 1]);
    assert_eq!((env.dst_cpu, env.cpus.list().as_str()), (third, "0-2,4-5"));
    assert!(env.cpus.contains(second));
}

#[test]
fn hot_tasks_resist_until_balancing_has_failed_often_enough() {
    let mut sched = flat(V4_5_RC1, 2);
    let tasks = sched.hogs(CPU0, 2);
    sched.run_something(CPU0);
    sched.cool_down();
    // Both have just run.
    for &p in &tasks {
        let se = sched.task[p].se;
        sched.se[se].exec_start = sched.rq[CPU0].clock_task;
    }
    let sd = sched.lowest_domain(CPU1);
    assert_eq!(sched.domains[sd].cache_nice_tries, 1);
    for failed in 1..=2 {
        assert_eq!(sched.balance(CPU1, sd, CpuIdleType::Idle), 0);
        assert_eq!(sched.domains[sd].nr_balance_failed, failed);
    }
    assert_eq!(sched.balance(CPU1, sd, CpuIdleType::Idle), 1);
    assert_eq!(sched.domains[sd].nr_balance_failed, 0);
    let stats = sched.domains.stats(sd);
    assert_eq!((stats.lb_failed, stats.lb_hot_gained, stats.lb_gained), ([2, 0, 0], [1, 0, 0], [1, 0, 0]));
    let hot = tasks.iter().map(|&p| sched.task_cold[p].statistics.nr_failed_migrations_hot).sum::<u64>();
    assert_eq!(hot, 2, "two tries on the task that waits");
}

#[test]
fn a_buddy_is_hot_only_while_the_puller_is_busy() {
    let mut sched = flat(V4_5_RC1, 2);
    let tasks = sched.hogs(CPU0, 2);
    sched.cool_down();
    let env = sched.env(CPU1, sched.lowest_domain(CPU1), CpuIdleType::NotIdle);
    let env = LbEnv { src_cpu: CPU0, ..env };
    let root = sched.rq[CPU0].cfs;
    sched.cfs_rq[root].next = Some(sched.task[tasks[0]].se);
    sched.cfs_rq[root].last = None;
    assert!(!sched.task_hot(tasks[0], &env));
    sched.hogs(CPU1, 1);
    assert!(sched.task_hot(tasks[0], &env) && !sched.task_hot(tasks[1], &env));
    sched.features.set(Feature::CACHE_HOT_BUDDY, false);
    assert!(!sched.task_hot(tasks[0], &env));
}

#[test]
fn tasks_leave_from_the_end_that_the_kernel_takes_from() {
    for (kernel, order) in [(V4_5_RC1, [2, 1]), (V4_15, [0, 1])] {
        let mut sched = flat(kernel, 2);
        let tasks = sched.hogs(CPU0, 3);
        sched.cool_down();
        let sd = sched.lowest_domain(CPU1);
        let mut env = LbEnv { src_cpu: CPU0, imbalance: 2000, ..sched.env(CPU1, sd, CpuIdleType::NotIdle) };
        assert_eq!(sched.detach_tasks(&mut env), 2);
        assert_eq!(env.tasks, order.map(|i: usize| tasks[i]), "{}", sched.kernel.name);
        assert!(env.imbalance <= 0);
        sched.attach_tasks(&mut env);
        assert_eq!(sched.nr_running(), [1, 2]);
    }
}

#[test]
fn a_task_that_may_not_go_is_tried_last_the_next_time() {
    for kernel in [V4_5_RC1, V4_15] {
        let mut sched = flat(kernel, 2);
        let pinned = sched.hog_for(CPU0, cpus(&[0]));
        let free = sched.hogs(CPU0, 1)[0];
        let order = |sched: &Machine| sched.rq[CPU0].cfs_tasks.iter(&sched.task).collect::<Vec<_>>();
        assert_eq!(order(&sched), [free, pinned], "newest first");
        sched.task[free].cpus_allowed = cpus(&[0]).into();
        sched.cool_down();
        let sd = sched.lowest_domain(CPU1);
        let mut env =
            LbEnv { src_cpu: CPU0, imbalance: 2000, loop_max: 1, ..sched.env(CPU1, sd, CpuIdleType::NotIdle) };
        assert_eq!(sched.detach_tasks(&mut env), 0);
        assert!(env.flags.some_pinned);
        assert_eq!(order(&sched), [pinned, free], "{}", sched.kernel.name);
    }
}

#[test]
fn a_long_queue_is_taken_in_portions() {
    let mut sched = flat(V4_5_RC1, 2);
    sched.hogs(CPU0, 80);
    sched.cool_down();
    let sd = sched.lowest_domain(CPU1);
    let env = sched.env(CPU1, sd, CpuIdleType::NewlyIdle);
    let mut env = LbEnv { src_cpu: CPU0, imbalance: 1 << 40, loop_max: 100, ..env };
    // The step that notices that a break is due counts as one, and the last task is left.
    for (portion, breaks) in [(32, true), (31, true), (16, false)] {
        assert_eq!(sched.detach_tasks(&mut env), portion);
        assert_eq!(std::mem::take(&mut env.flags.need_break), breaks);
    }
}

#[test]
fn v6_6_looks_at_pinned_tasks_until_one_could_move() {
    for (kernel, moved) in [(V6_1, 0), (V6_6, 1), (V6_12, 0), (V6_18, 0)] {
        let mut sched = flat(kernel, 2);
        for _ in 0..4 {
            sched.hog_for(CPU0, cpus(&[0]));
        }
        sched.hogs(CPU0, 1);
        sched.run_something(CPU0);
        sched.cool_down();
        let sd = sched.lowest_domain(CPU1);
        let mut env = LbEnv { src_cpu: CPU0, imbalance: 1, loop_max: 2, ..sched.env(CPU1, sd, CpuIdleType::Idle) };
        (env.migration_type, env.flags.all_pinned) = (MigrationType::Task, true);
        assert_eq!(sched.detach_tasks(&mut env), moved, "{}", kernel.name);
        assert_eq!(env.loop_ > 3, moved > 0, "{}: {}", kernel.name, env.loop_);
    }
}

#[test]
fn one_pass_is_limited() {
    let mut sched = flat(V4_5_RC1, 2);
    sched.hogs(CPU0, 80);
    sched.run_something(CPU0);
    sched.cool_down();
    let sd = sched.lowest_domain(CPU1);
    sched.sysctl.sched_nr_migrate = 3;
    assert_eq!(sched.balance(CPU1, sd, CpuIdleType::NewlyIdle), 3);
    // Half of 77 + 3 would be 37 more. But a task's load is its part of the queue's load at the beginning of the jiffy,
    // over the load that is left: the sum of 77 / 77, 77 / 76, 77 / 75 ... reaches 37 with the 30th.
    sched.sysctl.sched_nr_migrate = 100;
    sched.pass_ms(1);
    assert_eq!(sched.balance(CPU1, sd, CpuIdleType::NewlyIdle), 30);
}

#[test]
fn a_task_that_runs_is_pushed_by_the_stopper_after_failures() {
    for (kernel, failures_after) in [(V4_5_RC1, 2), (V4_15, 0)] {
        // Two cores of two threads. Both threads of the first core are busy, the second core idles.
        let mut sched = machine(kernel, CpuTopology::symmetric(1, 1, 1, 2, 2));
        let sibling = CpuId(2);
        for cpu in [CPU0, sibling] {
            sched.hogs(cpu, 1);
            sched.run_something(cpu);
        }
        sched.cool_down();
        let sd = sched.domains[sched.lowest_domain(CPU1)].parent.expect("above the core");
        // Nothing waits, so nothing can be pulled: cache_nice_tries + 3 failures are needed.
        for failed in 1..=3 {
            assert_eq!(sched.balance(CPU1, sd, CpuIdleType::Idle), 0);
            assert_eq!(sched.domains[sd].nr_balance_failed, failed);
        }
        assert_eq!(sched.balance(CPU1, sd, CpuIdleType::Idle), 0);
        assert_eq!(sched.domains[sd].nr_balance_failed, 2, "cache_nice_tries + 1: the push may move a hot task");
        let busiest = sched.rq.iter().find(|(_, rq)| rq.active_balance).expect("a push is asked for").0;
        assert_eq!(sched.rq[busiest].push_cpu, CPU1);
        let stopper = sched.rq[busiest].stop;
        // Threads of one package share cache, so the waker itself queued the stopper.
        assert!(sched.rq[busiest].stop_queued && sched.rq[busiest].need_resched);
        assert_eq!(sched.run_something(busiest), stopper.expect("every CPU has one"));
        sched.cpu_stopper_thread();
        assert_eq!(sched.rq[CPU1].nr_running, 1);
        assert!(!sched.rq[busiest].active_balance);
        assert_eq!(sched.domains[sd].nr_balance_failed, failures_after, "{}", sched.kernel.name);
        let stats = sched.domains.stats(sd);
        assert_eq!((stats.alb_count, stats.alb_pushed, stats.alb_failed), (1, 1, 0));
    }
}

#[test]
fn what_a_push_does_to_the_interval() {
    // After too many failures, or because other work has taken most of the busy CPUs' capacity.
    let interval = |kernel, lost: bool| {
        let mut sched = machine(kernel, CpuTopology::symmetric(1, 1, 1, 2, 2));
        for cpu in [CPU0, CpuId(2)] {
            sched.hogs(cpu, 1);
            sched.run_something(cpu);
        }
        sched.cool_down();
        for cpu in [CPU0, CpuId(2)].into_iter().filter(|_| lost) {
            sched.rq[cpu].cpu_capacity = 300;
        }
        let sd = sched.domains[sched.lowest_domain(CPU1)].parent.expect("above the core");
        sched.domains[sd].nr_balance_failed = if lost { 0 } else { 3 };
        assert_eq!(sched.balance(CPU1, sd, CpuIdleType::Idle), 0);
        assert!(sched.rq.iter().any(|(_, rq)| rq.active_balance), "{} {lost}", sched.kernel.name);
        sched.domains[sd].balance_interval / sched.domains[sd].min_interval
    };
    assert_eq!([V4_16, V5_4, V5_10, V5_15, V6_1].map(|kernel| interval(kernel, false)), [2, 2, 2, 1, 1]);
    assert_eq!([V4_16, V5_4, V5_10, V5_15, V6_1].map(|kernel| interval(kernel, true)), [2, 1, 1, 1, 1]);
}

#[test]
fn what_runs_where_it_is_pinned_is_not_pushed() {
    let mut sched = flat(V4_5_RC1, 2);
    sched.hog_for(CPU0, cpus(&[0]));
    sched.run_something(CPU0);
    sched.cool_down();
    let sd = sched.lowest_domain(CPU1);
    sched.domains[sd].nr_balance_failed = 9;
    let mut env = LbEnv { src_cpu: CPU0, ..sched.env(CPU1, sd, CpuIdleType::Idle) };
    assert_eq!(sched.conclude(&mut env, CPU1, 0), Outcome::OnePinned);
    assert!(env.flags.all_pinned && !sched.rq[CPU0].active_balance);
}

#[test]
fn utilization_that_exceeds_the_imbalance_never_moves_in_v5_15() {
    let moved = |kernel, failed| {
        let mut sched = flat(kernel, 2);
        for p in sched.hogs(CPU0, 3) {
            let se = sched.task[p].se;
            sched.se[se].avg.util_avg = 500;
        }
        sched.run_something(CPU0);
        sched.cool_down();
        let sd = sched.lowest_domain(CPU1);
        sched.domains[sd].nr_balance_failed = failed;
        let env = sched.env(CPU1, sd, CpuIdleType::Idle);
        let mut env = LbEnv { src_cpu: CPU0, migration_type: MigrationType::Util, imbalance: 300, ..env };
        sched.on_cpu(CPU1);
        sched.detach_tasks(&mut env)
    };
    for kernel in [V5_10, V5_15, V6_1] {
        let relaxed = u32::from(kernel != V5_15);
        assert_eq!([0, 1].map(|failed| moved(kernel, failed)), [0, relaxed], "{}", kernel.name);
    }
}
