//! Virtual time, placement, slices, lists.

use super::*;
use crate::access::Path;
use crate::cpufreq::{CpufreqRules, UpdateUtil};
use crate::fair::load::Step;
use crate::fair::rules::{EntityRules, TickSlice};
use crate::features::Feature;

#[test]
fn a_running_task_ages_by_its_weight_exactly() {
    for kernel in KERNELS {
        let mut s = machine(kernel, 1);
        let p = s.task(CPU0, 5);
        s.reschedule(CPU0);
        let start = s.se_of(p).vruntime;
        s.ticks(CPU0, 3);
        // 1 ms * 1024 / 335: the factor 1024 * 12820798, reduced to 32 bits (3282124288), times 1000000, divided by
        // 2^30.
        assert_eq!(s.se_of(p).vruntime.wrapping_sub(start), 3 * 3_056_716, "{}", kernel.name);
        assert_eq!(s.se_of(p).sum_exec_runtime, 3 * MS);
    }
}

#[test]
fn cpu_time_is_shared_by_weight() {
    for kernel in KERNELS {
        let mut s = machine(kernel, 1);
        let tasks = [0, 5, -5].map(|nice| s.task(CPU0, nice));
        s.ticks(CPU0, 10_000);
        let total: u64 = tasks.iter().map(|&p| s.se_of(p).sum_exec_runtime).sum();
        // The first tick finds the CPU idle.
        assert_eq!(total, 9_999 * MS);
        for (p, weight) in tasks.into_iter().zip([1024, 335, 3121]) {
            let ms = s.se_of(p).sum_exec_runtime / MS;
            let fair = 10_000 * weight / 4480;
            assert!(ms.abs_diff(fair) <= 20, "{}: {ms} ms of {fair}", kernel.name);
        }
    }
}

#[test]
fn a_new_task_starts_a_slice_behind_and_a_sleeper_half_a_latency_ahead() {
    for kernel in KERNELS {
        let mut s = machine(kernel, 1);
        let first = s.runner(CPU0);
        let second = s.task(CPU0, 0);
        // 6 ms * 1024 / 2048, by the inverse of 2048, rounded down to 2097151.
        assert_eq!(s.lead(second), 2_999_998, "{}", kernel.name);
        s.sleep(CPU0);
        assert_eq!(s.rq[CPU0].curr, Some(second));
        s.pass(50 * MS);
        s.wake_from(CPU0, first);
        let se = s.se_of(first);
        let credit = s.cfs_rq[se.cfs_rq].min_vruntime.wrapping_sub(se.vruntime);
        assert_eq!(credit, 3 * MS, "{}", kernel.name);
    }
}

#[test]
fn a_kernel_thread_that_has_slept_since_boot_wakes_up_at_home_as_a_sleeper_without_load() {
    for kernel in KERNELS.into_iter().chain([V6_6, V6_12, V7_3]) {
        let mut s = machine(kernel, 2);
        let hog = s.runner(CPU1);
        let init = TaskInit {
            comm: "kworker/1:0".to_owned(),
            attr: None,
            cpus_allowed: Some(CpuMask::single(CPU1)),
            mm: 0,
            group: ROOT_TASK_GROUP,
        };
        s.on_cpu(CPU0);
        let thread = s.sched_fork(None, init);
        s.asleep_since_boot(thread);
        s.pass(50 * MS);
        s.tick(CPU1);
        assert!(s.task[thread].cpu == CPU1 && s.rq[CPU1].curr == Some(hog));
        s.wake_from(CPU1, thread);
        assert_eq!((s.se_of(thread).avg.load_avg, s.se_of(thread).nr_migrations), (0, 0), "{}", kernel.name);
        if KERNELS.contains(&kernel) {
            assert_eq!(s.lead(thread), -3 * MS as i64, "{}", kernel.name);
        } else {
            assert_eq!(s.se_of(thread).vlag, 0, "{}", kernel.name);
        }
    }
}

#[test]
fn a_short_sleep_gains_nothing() {
    for kernel in KERNELS {
        let mut s = machine(kernel, 1);
        // Both start at the same place, so that the sleeper stays within its credit.
        s.features.set(Feature::START_DEBIT, false);
        let first = s.runner(CPU0);
        s.task(CPU0, 0);
        s.sleep(CPU0);
        let vruntime = s.se_of(first).vruntime;
        s.pass(MS / 10);
        s.wake_from(CPU0, first);
        assert_eq!(s.se_of(first).vruntime, vruntime, "{}", kernel.name);
    }
}

#[test]
fn features_change_placement() {
    let mut s = machine(V4_5_RC1, 1);
    s.features.set(Feature::START_DEBIT, false);
    s.features.set(Feature::GENTLE_FAIR_SLEEPERS, false);
    let first = s.runner(CPU0);
    let second = s.task(CPU0, 0);
    assert_eq!(s.lead(second), 0);
    s.sleep(CPU0);
    s.pass(50 * MS);
    s.wake_from(CPU0, first);
    let se = s.se_of(first);
    assert_eq!(s.cfs_rq[se.cfs_rq].min_vruntime.wrapping_sub(se.vruntime), 6 * MS);
}

#[test]
fn slices_divide_the_period_by_weight() {
    for mut kernel in KERNELS {
        if kernel.features.has(Feature::BASE_SLICE) {
            kernel.features.set(Feature::BASE_SLICE, false);
        }
        let mut s = machine(kernel, 1);
        let tasks = [0, 5, -5].map(|nice| s.task(CPU0, nice));
        for (p, weight) in tasks.into_iter().zip([1024u64, 335, 3121]) {
            let (cfs, se) = (s.rq[CPU0].cfs, s.task[p].se);
            let slice = s.sched_slice(cfs, se);
            let fair = 6 * MS * weight / 4480;
            // The inverse of 4480 is too small by less than a part in 4480, times 2^32 in 958698.
            assert!((fair - 7..=fair).contains(&slice), "{}: {slice} of {fair} ns", kernel.name);
        }
        // More than eight: the period grows, so that each gets 0.75 ms.
        let more = [0; 7].map(|nice| s.task(CPU0, nice));
        let (cfs, se) = (s.rq[CPU0].cfs, s.task[more[6]].se);
        let fair = 10 * 750_000 * 1024 / (4480 + 7 * 1024);
        assert!((fair - 9..=fair).contains(&s.sched_slice(cfs, se)), "{}", kernel.name);
    }
}

#[test]
fn the_period_grows_when_slices_no_longer_fit() {
    // Seven slices of 0.75 ms are more than 5 ms, but seven tasks are not more than 5 / 0.75, rounded up.
    let mut s = machine(V4_5_RC1, 1);
    s.sysctl_write(Tunable::sched_latency, 5 * MS).expect("a sound value");
    for (tasks, period) in [(7, 5 * MS), (8, 6 * MS)] {
        while s.rq[CPU0].nr_running < tasks {
            s.task(CPU0, 0);
        }
        let (cfs, waits) = (s.rq[CPU0].cfs, s.cfs_rq[s.rq[CPU0].cfs].tasks_timeline.leftmost().unwrap());
        let fair = period / u64::from(tasks);
        assert!((fair - 3..=fair).contains(&s.sched_slice(cfs, waits)), "{tasks} tasks");
        assert!(s.is_past_nr_latency(tasks) && !s.is_past_nr_latency(6));
    }
}

/// Whether the tick preempts a task that ran `ran` ns of its 3 ms and is `ahead` ns ahead of the waiting one.
fn tick_preempts(ran: u64, ahead: i64) -> bool {
    let mut s = machine(V4_15, 1);
    let runs = s.runner(CPU0);
    let waits = s.task(CPU0, 0);
    let cfs = s.rq[CPU0].cfs;
    let [se, pse] = [runs, waits].map(|p| s.task[p].se);
    s.se[se].prev_sum_exec_runtime = s.se[se].sum_exec_runtime;
    let key = s.se[pse].vruntime;
    s.cfs_rq[cfs].tasks_timeline.remove(key, pse);
    s.se[pse].vruntime = s.se[se].vruntime.wrapping_add(ran).wrapping_add_signed(-ahead);
    let key = s.se[pse].vruntime;
    s.cfs_rq[cfs].tasks_timeline.insert(key, pse);
    s.pass(ran);
    s.scheduler_tick();
    s.rq[CPU0].need_resched
}

#[test]
fn the_tick_preempts_who_is_a_slice_ahead_but_not_at_once() {
    assert!(tick_preempts(3 * MS, -100 * MS as i64), "the slice is used up");
    assert!(!tick_preempts(2_900_000, -100 * MS as i64));
    assert!(!tick_preempts(2_900_000, 2_900_000));
    assert!(tick_preempts(2_900_000, 3 * MS as i64));
    assert!(tick_preempts(750_000, 3 * MS as i64));
    assert!(!tick_preempts(749_999, 3 * MS as i64), "no slice is shorter than 0.75 ms");
}

#[test]
fn in_v6_3_the_tick_ends_a_slice_that_is_longer_than_the_latency() {
    for (tick_slice, ends) in [(TickSlice::Whole, false), (TickSlice::Latency, true)] {
        let kernel = Kernel { entity: EntityRules { tick_slice, ..V6_1.entity }, ..V6_1 };
        let mut s = machine(kernel, 1);
        let heavy = s.task(CPU0, -20);
        s.reschedule(CPU0);
        for _ in 0..12 {
            s.task(CPU0, 0);
        }
        s.rq[CPU0].need_resched = false;
        let (cfs, se) = (s.rq[CPU0].cfs, s.task[heavy].se);
        // 13 slices of 0.75 ms, of which the task has 88761 of 88761 + 12 * 1024 parts.
        assert!(s.sched_slice(cfs, se) > 8 * MS);
        s.pass(6 * MS + 1);
        s.scheduler_tick();
        assert_eq!(s.rq[CPU0].need_resched, ends, "{tick_slice:?}");
    }
}

#[test]
fn a_slice_ends_at_the_tick_after_it_is_used_up() {
    for kernel in KERNELS {
        let mut s = machine(kernel, 1);
        let a = s.runner(CPU0);
        let b = s.task(CPU0, 0);
        // 3 ms each, less the inverse's rounding, so that the third tick is past it. a's first slice began a tick
        // earlier, but at its end a is still ahead of b, which was placed 3 ms behind only then: a is picked again.
        let mut order = Vec::new();
        for _ in 0..9 {
            s.ticks(CPU0, 1);
            order.push(s.rq[CPU0].curr.unwrap());
        }
        assert_eq!(order, [a, a, b, b, b, a, a, a, b], "{}", kernel.name);
    }
}

#[test]
fn a_dequeued_current_holds_min_vruntime_back_in_old_kernels_only() {
    // v4.9 forgets it at once, so that the next update jumps to the waiting entity; earlier kernels wait for the
    // switch.
    for (kernel, jump) in [(V4_5_RC1, false), (V4_15, true)] {
        let mut s = machine(kernel, 1);
        s.runner(CPU0);
        let second = s.task(CPU0, 0);
        let cfs = s.rq[CPU0].cfs;
        let curr = s.cfs_rq[cfs].curr.unwrap();
        s.se[curr].on_rq = false;
        s.update_min_vruntime(cfs);
        let reached = s.cfs_rq[cfs].min_vruntime == s.se_of(second).vruntime;
        assert_eq!(reached, jump, "{}", kernel.name);
    }
}

#[test]
fn a_dequeue_advances_min_vruntime_as_each_version_meant_to() {
    for (kernel, advances) in [(V4_5_RC1, [true; 3]), (V4_15, [false, true, false])] {
        // The task goes to sleep; is put back at once; is put back in another group.
        for (at, advances) in advances.into_iter().enumerate() {
            let mut s = machine(kernel, 1);
            s.runner(CPU0);
            let far = s.task(CPU0, 0);
            let near = s.task(CPU0, 0);
            s.sleep(CPU0);
            let cfs = s.rq[CPU0].cfs;
            let near = if s.rq[CPU0].curr == Some(near) { far } else { near };
            // Nothing runs, so that the leaving entity is the one that holds min_vruntime back.
            let curr = s.rq[CPU0].curr.unwrap();
            s.put_prev_task_fair(CPU0, curr);
            let before = s.cfs_rq[cfs].min_vruntime;
            let leftmost = s.cfs_rq[cfs].tasks_timeline.leftmost().unwrap();
            let leaves = if leftmost == s.task[near].se { leftmost } else { s.task[curr].se };
            let flags = [
                QueueFlags { sleep: true, ..QueueFlags::default() },
                QueueFlags { save_restore: true, ..QueueFlags::default() },
                QueueFlags { save_restore: true, move_: true, ..QueueFlags::default() },
            ][at];
            s.dequeue_entity(cfs, leaves, flags, Step::Any);
            let moved = s.cfs_rq[cfs].min_vruntime != before;
            assert_eq!(moved, advances, "{}: {flags:?}", kernel.name);
        }
    }
}

#[test]
fn tasks_stand_in_each_versions_order_for_load_balancing() {
    for (kernel, by_last_run) in [(V4_5_RC1, false), (V4_15, true), (V4_16, true)] {
        let mut s = machine(kernel, 1);
        let a = s.runner(CPU0);
        let [b, c] = [0; 2].map(|nice| s.task(CPU0, nice));
        let order = |s: &Sched<Hand>| s.rq[CPU0].cfs_tasks.iter(&s.task).collect::<Vec<TaskId>>();
        assert_eq!(order(&s), [c, b, a]);
        assert_eq!(s.reschedule(CPU0), Some(a));
        assert_eq!(order(&s), if by_last_run { [a, c, b] } else { [c, b, a] }, "{}", kernel.name);
    }
}

#[test]
fn yielding_lets_the_others_go_first() {
    for kernel in KERNELS {
        let mut s = machine(kernel, 1);
        let a = s.runner(CPU0);
        let b = s.task(CPU0, 0);
        s.pass(MS / 10);
        // b starts a slice behind: it is within the wakeup granularity of 1 ms only after a has run most of its slice.
        s.on_cpu(CPU0);
        s.sched_yield();
        assert_eq!(s.rq[CPU0].clock_skip_update, ClockSkip::Requested);
        assert_eq!(s.schedule(false), Some(a), "{}", kernel.name);
        s.pass(2_200_000);
        s.sched_yield();
        assert_eq!(s.schedule(false), Some(b), "{}", kernel.name);
    }
}

#[test]
fn the_child_may_run_first() {
    for kernel in KERNELS {
        let mut s = machine(kernel, 1);
        s.sysctl.sched_child_runs_first = 1;
        let parent = s.runner(CPU0);
        let child = s.task(CPU0, 0);
        assert!(s.rq[CPU0].need_resched);
        assert_eq!(s.reschedule(CPU0), Some(child), "{}", kernel.name);
        assert!(s.lead(parent) > s.lead(child));
    }
}

#[test]
fn a_task_that_changes_cpus_keeps_its_place_relative_to_the_queue() {
    for kernel in KERNELS {
        let mut s = machine(kernel, 2);
        s.runner(CPU0);
        let moves = s.task(CPU0, 0);
        s.runner(CPU1);
        s.ticks(CPU1, 40);
        let lead = s.lead(moves);
        assert_eq!(lead, 2_999_998);
        let queues = [0, 1].map(|cfs| s.cfs_rq[CfsRqId(cfs)].min_vruntime);
        assert_eq!(queues[1].wrapping_sub(queues[0]), 40 * MS);
        s.task[moves].cpus_allowed = CpuMask::all(2).into();
        // CPU 0 has run for 41 ms more by now, which its min_vruntime follows, up to the task itself.
        s.move_queued_task(moves, CPU1);
        assert_eq!((s.task[moves].cpu, s.cfs_rq[CfsRqId(1)].nr_running), (CPU1, 2));
        assert_eq!(s.lead(moves), 0, "{}", kernel.name);
    }
}

#[test]
fn a_task_that_the_stopper_moves_stays_cache_hot_in_v5_4() {
    for (kernel, hot) in [(V4_16, false), (V4_19, false), (V5_4, true), (V5_10, false)] {
        let mut s = machine(kernel, 2);
        let moves = s.runner(CPU0);
        s.task(CPU0, 0);
        while s.rq[CPU0].curr == Some(moves) {
            s.ticks(CPU0, 1);
        }
        s.task[moves].cpus_allowed = CpuMask::all(2).into();
        s.move_queued_task(moves, CPU1);
        assert_eq!(s.se_of(moves).exec_start != 0, hot, "{}", kernel.name);
    }
}

#[test]
fn a_task_that_comes_into_a_group_from_another_cpu_is_told_of_twice_in_v5_4() {
    let told = |update_util: UpdateUtil| {
        let mut s = machine(Kernel { cpufreq: CpufreqRules { update_util, ..V5_4.cpufreq }, ..V5_4 }, 2);
        s.cpufreq_add_update_util_hook();
        let group = s.sched_create_group(ROOT_TASK_GROUP, "g", 1024);
        let p = s.task_in(group, CPU0, 0);
        s.reschedule(CPU0);
        s.ticks(CPU0, 5);
        s.sleep(CPU0);
        s.pass(MS);
        let calls = |s: &Sched<Hand>| s.arch.paths.iter().filter(|&&path| path == Path::cpufreq_update_util).count();
        let before = calls(&s);
        s.task[p].cpus_allowed = CpuMask::single(CPU1).into();
        s.wake_from(CPU1, p);
        assert_eq!(s.task[p].cpu, CPU1);
        calls(&s) - before
    };
    assert_eq!(told(UpdateUtil::Arrivals), told(UpdateUtil::Queued) + 1);
}

#[test]
fn a_sleeper_keeps_its_place_when_it_wakes_elsewhere() {
    for kernel in KERNELS {
        let mut s = machine(kernel, 2);
        let moves = s.runner(CPU0);
        s.runner(CPU1);
        s.ticks(CPU1, 40);
        s.sleep(CPU0);
        let lead = s.lead(moves);
        s.task[moves].state = TaskState::Waking;
        s.on_cpu(CPU1);
        s.task_waking_fair(moves);
        s.set_task_cpu(moves, CPU1);
        let flags = QueueFlags { wakeup: true, waking: true, migrated: true, ..QueueFlags::default() };
        s.enqueue_task(CPU1, moves, flags);
        assert_eq!((lead, s.lead(moves)), (0, 0), "{}", kernel.name);
    }
}

#[test]
fn a_better_nice_level_or_a_worse_one_of_the_running_task_reschedules() {
    for kernel in [V4_5_RC1, V4_15, V4_16] {
        for (of_runner, nice, expected) in [(true, 5, true), (true, -5, true), (false, 5, false), (false, -5, true)] {
            let mut s = machine(kernel, 1);
            let runs = s.runner(CPU0);
            let waits = s.task(CPU0, 0);
            s.rq[CPU0].need_resched = false;
            s.set_user_nice(if of_runner { runs } else { waits }, nice);
            assert_eq!(s.rq[CPU0].need_resched, expected, "{}: {of_runner} {nice}", kernel.name);
        }
    }
}

#[test]
fn a_lone_task_that_becomes_less_urgent_by_a_new_policy_reschedules_until_v5_5() {
    for (kernel, reschedules) in [(V4_5_RC1, true), (V4_15, true), (V6_1, false), (V6_12, false), (V6_18, false)] {
        let mut s = machine(kernel, 1);
        let p = s.runner(CPU0);
        s.rq[CPU0].need_resched = false;
        s.sched_setattr(p, &SchedAttr::fair(Policy::Batch, 5)).expect("less is always granted");
        assert_eq!(s.rq[CPU0].need_resched, reschedules, "{}", kernel.name);
    }
}

#[test]
fn later_a_new_nice_level_reschedules_where_it_matters() {
    // The waiting one starts 3 ms behind; after 5 ms more it is ahead of the running one, by more than the granularity.
    for (of_runner, nice, ran, expected) in [
        (true, 5, 0, true),
        (true, -5, 0, false),
        (false, 5, 0, false),
        (false, -5, 0, false),
        (false, -5, 5 * MS, true),
        (false, 5, 5 * MS, false),
    ] {
        let mut s = machine(V6_1, 1);
        let runs = s.runner(CPU0);
        s.set_user_nice(runs, 5);
        s.set_user_nice(runs, 0);
        assert!(!s.rq[CPU0].need_resched, "nobody else is there to be scheduled");
        let waits = s.task(CPU0, 0);
        s.pass(ran);
        s.rq[CPU0].need_resched = false;
        s.set_user_nice(if of_runner { runs } else { waits }, nice);
        assert_eq!(s.rq[CPU0].need_resched, expected, "{of_runner} {nice} after {ran} ns");
    }
}

#[test]
fn nice_changes_weight_and_order() {
    for kernel in KERNELS {
        let mut s = machine(kernel, 1);
        let [a, b] = [0, 0].map(|nice| s.task(CPU0, nice));
        s.reschedule(CPU0);
        s.ticks(CPU0, 20);
        let cfs = s.rq[CPU0].cfs;
        let nice_0 = kernel.load_resolution.nice_0_load();
        for p in [a, b] {
            s.set_user_nice(p, 5);
            s.set_user_nice(p, 5);
        }
        let shown = kernel.load_resolution.scale_load_down(s.cfs_rq[cfs].load.weight);
        assert_eq!((shown, s.cfs_rq[cfs].nr_running), (2 * 335, 2), "{}", kernel.name);
        let curr = s.rq[CPU0].curr.unwrap();
        assert_eq!(s.cfs_rq[cfs].curr, Some(s.task[curr].se));
        assert!(!s.se_of(curr).in_timeline);
        s.set_policy(a, Policy::Idle);
        assert_eq!(kernel.load_resolution.scale_load_down(s.se_of(a).load.weight), 3);
        s.set_policy(a, Policy::Batch);
        assert_eq!(kernel.load_resolution.scale_load_down(s.cfs_rq[cfs].load.weight), 2 * 335);
        assert_eq!(nice_0, kernel.load_resolution.scale_load(1024));
        s.ticks(CPU0, 10);
    }
}

#[test]
fn idle_policy_tasks_are_counted_up_to_the_root() {
    let mut s = machine(V4_16, 1);
    let group = s.sched_create_group(ROOT_TASK_GROUP, "g", 1024);
    let root = s.rq[CPU0].cfs;
    assert!(!s.sched_idle_cpu(CPU0), "nothing at all is queued");
    let first = s.task_in(group, CPU0, 0);
    assert_eq!((s.cfs_rq[root].h_nr_running, s.cfs_rq[root].idle_h_nr_running), (1, 0));
    s.set_policy(first, Policy::Idle);
    assert_eq!(s.cfs_rq[root].idle_h_nr_running, 1);
    assert!(s.sched_idle_cpu(CPU0));
    let second = s.task(CPU0, 0);
    assert!(!s.sched_idle_cpu(CPU0), "another task is queued as well");
    s.set_policy(second, Policy::Idle);
    assert_eq!((s.cfs_rq[root].h_nr_running, s.cfs_rq[root].idle_h_nr_running), (2, 2));
    assert!(s.sched_idle_cpu(CPU0));
}
