//! In which queue an entity's load counts, and when the group's sum is updated.

use super::*;
use crate::behaviour::Rules;
use crate::layout::{TaskGroupField, TgLoadAvgLine};

#[test]
fn a_new_task_is_heavy_and_in_old_kernels_a_full_cpu() {
    // v4.15: half of the free capacity, because the queue had no utilization.
    for (kernel, util) in [(V4_5_RC1, 1024), (V4_15, 512), (V4_16, 512)] {
        let mut s = machine(kernel, 1);
        let p = s.task(CPU0, 0);
        let (task, queue) = (&s.se_of(p).avg, &s.cfs_rq[s.rq[CPU0].cfs].avg);
        assert_eq!((task.load_avg, task.util_avg), (1024, util), "{}", kernel.name);
        assert_eq!((queue.load_avg, queue.util_avg), (1024, util), "{}", kernel.name);
        assert_eq!(queue.runnable_avg, 1024);
        assert_ne!(task.last_update_time, 0);
    }
}

#[test]
fn load_follows_a_task_to_another_cpu() {
    for (kernel, at_once) in [(V4_5_RC1, false), (V4_15, true), (V4_16, true)] {
        let mut s = machine(kernel, 2);
        let p = s.task(CPU0, 0);
        s.task[p].cpus_allowed = CpuMask::all(2).into();
        s.move_queued_task(p, CPU1);
        let [from, to] = [0, 1].map(CfsRqId);
        assert_eq!(s.cfs_rq[to].avg.load_avg, 1024, "{}", kernel.name);
        assert_eq!(s.cfs_rq[from].avg.load_avg, if at_once { 0 } else { 1024 }, "{}", kernel.name);
        assert_eq!(s.cfs_rq[from].removed.load_avg, if at_once { 0 } else { 1024 });
        s.pass(1_024);
        s.update_rq_clock(CPU0);
        assert!(s.update_cfs_rq_load_avg(from) != at_once);
        assert_eq!((s.cfs_rq[from].avg.load_avg, s.cfs_rq[from].removed.nr), (0, 0), "{}", kernel.name);
    }
}

#[test]
fn who_wakes_elsewhere_is_noted_as_removed() {
    for kernel in KERNELS {
        let mut s = machine(kernel, 2);
        let p = s.task(CPU0, 0);
        s.reschedule(CPU0);
        s.sleep(CPU0);
        s.task[p].state = TaskState::Waking;
        s.set_task_cpu(p, CPU1);
        assert_eq!((s.cfs_rq[CfsRqId(0)].removed.nr, s.cfs_rq[CfsRqId(0)].avg.load_avg), (1, 1024), "{}", kernel.name);
    }
}

#[test]
fn the_dead_leave_no_load_behind() {
    for kernel in KERNELS {
        let mut s = machine(kernel, 1);
        let p = s.task(CPU0, 0);
        s.reschedule(CPU0);
        s.ticks(CPU0, 10);
        s.on_cpu(CPU0);
        s.exit_current();
        assert_eq!(s.schedule(false), None);
        assert!(!s.task[p].alive);
        let cfs = s.rq[CPU0].cfs;
        assert_ne!(s.cfs_rq[cfs].removed.load_avg, 0, "{}", kernel.name);
        s.pass(1_024);
        s.update_rq_clock(CPU0);
        s.update_cfs_rq_load_avg(cfs);
        assert_eq!(s.cfs_rq[cfs].avg.load_avg, 0, "{}", kernel.name);
    }
}

#[test]
fn small_changes_are_kept_from_the_group() {
    for kernel in KERNELS {
        let mut s = machine(kernel, 1);
        let group = s.sched_create_group(ROOT_TASK_GROUP, "g", 1024);
        s.task_in(group, CPU0, 0);
        let cfs = s.tg[group].cfs_rq[0];
        assert_eq!((s.tg[group].load_avg, s.cfs_rq[cfs].tg_load_avg_contrib), (1024, 1024));
        let shared = s.layout.task_group(group, TaskGroupField::LoadAvg);
        // A 64th of 1024 is 16: that much more does not justify writing a shared line, one more does.
        for (load_avg, told) in [(1040, 1024), (1041, 1041), (1042, 1041), (1020, 1020)] {
            s.arch.touched.clear();
            let before = s.tg[group].load_avg;
            s.cfs_rq[cfs].avg.load_avg = load_avg;
            s.update_tg_load_avg(cfs);
            assert_eq!(s.tg[group].load_avg, told, "{}", kernel.name);
            assert_eq!(s.arch.touched.contains(&shared), told != before);
        }
        // Nothing reads the root group's sum, and it is not maintained.
        s.arch.touched.clear();
        s.update_tg_load_avg(s.rq[CPU0].cfs);
        assert_eq!((s.tg[ROOT_TASK_GROUP].load_avg, s.arch.touched.len()), (0, 0));
    }
}

#[test]
fn a_groups_load_reaches_the_root_at_once_in_new_kernels() {
    // A task that has run for long joins the group: v4.15 propagates its load at once; in v4.5 the group's entity has
    // to run as long itself.
    for (kernel, at_once) in [(V4_5_RC1, false), (V4_15, true)] {
        let mut s = machine(kernel, 1);
        let group = s.sched_create_group(ROOT_TASK_GROUP, "g", 1024);
        let p = s.task(CPU0, 0);
        s.reschedule(CPU0);
        s.ticks(CPU0, 300);
        let root = s.rq[CPU0].cfs;
        let before = s.cfs_rq[root].avg.util_avg;
        assert!(before > 1000);
        s.sched_move_task(p, group);
        let group_se = s.tg[group].se[0];
        let after = s.cfs_rq[root].avg.util_avg;
        if at_once {
            assert!(s.se[group_se].avg.util_avg.abs_diff(before) < 4, "{:?}", s.se[group_se].avg);
            assert!(after.abs_diff(before) < 8, "{after} {before}");
        } else {
            // In v4.5 the entity brings along its own full initial utilization.
            assert_eq!(s.se[group_se].avg.util_avg, 1024);
        }
        assert!(!s.cfs_rq[s.tg[group].cfs_rq[0]].propagate);
    }
}

#[test]
fn a_sleeper_that_changes_its_group_is_seen_at_the_root() {
    let mut s = machine(V4_15, 1);
    let group = s.sched_create_group(ROOT_TASK_GROUP, "g", 1024);
    let inner = s.sched_create_group(group, "inner", 1024);
    let p = s.runner(CPU0);
    s.ticks(CPU0, 300);
    s.sleep(CPU0);
    let root = s.rq[CPU0].cfs;
    let before = s.cfs_rq[root].avg.util_avg;
    s.sched_move_task(p, inner);
    let after = s.cfs_rq[root].avg.util_avg;
    assert!(before > 1000 && after.abs_diff(before) < 8, "{before} {after}");
}

#[test]
fn a_sleeper_is_aged_to_its_queues_time() {
    for kernel in KERNELS {
        let mut s = machine(kernel, 1);
        let a = s.runner(CPU0);
        s.task(CPU0, 0);
        s.sleep(CPU0);
        let before = s.se_of(a).avg.load_avg;
        // The other task's ticks keep the queue up to date: 32 ms later half of the load is left.
        s.ticks(CPU0, 32);
        assert_eq!(s.se_of(a).avg.load_avg, before);
        s.sync_entity_load_avg(s.task[a].se);
        let after = s.se_of(a).avg.load_avg;
        assert!(after.abs_diff(before / 2) < 25, "{}: {before} {after}", kernel.name);
        assert_eq!(s.se_of(a).avg.last_update_time, s.cfs_rq[s.rq[CPU0].cfs].avg.last_update_time);
    }
}

#[test]
fn a_nice_level_changes_the_load_at_once_only_in_new_kernels() {
    for (kernel, load) in [(V4_5_RC1, 1024), (V4_15, 335)] {
        let mut s = machine(kernel, 1);
        let p = s.task(CPU0, 0);
        s.reschedule(CPU0);
        s.ticks(CPU0, 500);
        s.set_user_nice(p, 5);
        let now = s.se_of(p).avg.load_avg;
        // v4.5 drops the rest below 1024 ns on each update, and always divides as at the end of a period.
        assert!(now.abs_diff(load) < 20, "{}: {now}", kernel.name);
        let queue = s.cfs_rq[s.rq[CPU0].cfs].avg.load_avg;
        assert!(queue.abs_diff(load) < 20, "{}: {queue}", kernel.name);
    }
}

/// What a tick of `CPU0` reads and changes of a group that runs on two CPUs, once for each position of `load_avg`.
#[test]
fn a_tick_reads_shares_where_the_other_cpu_adds_to_load_avg_only_if_they_share_a_line() {
    for kernel in KERNELS {
        for (line, shared) in [(TgLoadAvgLine::Shared, true), (TgLoadAvgLine::OwnLine, false)] {
            let mut kernel = kernel;
            kernel.layout.tg_load_avg = line;
            let mut s = machine(kernel, 2);
            let group = s.sched_create_group(ROOT_TASK_GROUP, "g", 1024);
            for cpu in [CPU0, CPU1] {
                s.task_in(group, cpu, 0);
                s.reschedule(cpu);
            }
            s.pass(MS);
            s.arch.touched.clear();
            s.on_cpu(CPU0);
            s.scheduler_tick();
            let of = |field| s.layout.task_group(group, field);
            assert!(s.arch.touched.contains(&of(TaskGroupField::Shares)), "{}", kernel.name);
            let added = of(TaskGroupField::LoadAvg);
            assert_eq!(added == of(TaskGroupField::Shares), shared, "{}", kernel.name);
        }
    }
}

/// v7.2 with one behaviour set to `value`.
fn v7_2_with(key: &str, value: &str) -> Sched<Hand> {
    let mut kernel = V7_2;
    kernel.set(key, value).expect("there is such a behaviour");
    machine(kernel, 1)
}

#[test]
fn what_a_sleeper_is_estimated_to_use_contains_what_it_ran_last_only_later() {
    // Twice 20 ms without a tick: utilization as of the enqueue, which is half of the free CPU, or as it is now.
    for (value, up_to_now) in [("ewma", false), ("ewma-in-update", true)] {
        let mut s = v7_2_with("load.util_est", value);
        let p = s.task(CPU0, 0);
        s.reschedule(CPU0);
        let before = s.se_of(p).avg.util_avg;
        s.pass(20 * MS);
        s.sleep(CPU0);
        let (estimate, now) = (s._task_util_est(p), s.se_of(p).avg.util_avg);
        assert!(now > before + 100, "{before} has become {now}");
        assert_eq!(estimate, if up_to_now { now } else { before }, "{value}");
    }
}

#[test]
fn until_v5_4_a_sleeper_counts_in_the_estimate_until_it_is_gone() {
    for kernel in [V4_19, V5_4] {
        let mut s = machine(kernel, 1);
        let p = s.task(CPU0, 0);
        let root = s.rq[CPU0].cfs;
        assert_eq!(s.cfs_rq[root].avg.util_est.enqueued, 1, "nothing is known of a new task");
        s.reschedule(CPU0);
        s.pass(20 * MS);
        s.tick(CPU0);
        let used = s.se_of(p).avg.util_avg;
        assert!(used > 600, "{used}");
        s.sleep(CPU0);
        let estimate = s.se_of(p).avg.util_est;
        assert_eq!(u64::from(estimate.enqueued), s.se_of(p).avg.util_avg | 1);
        assert_eq!(estimate.ewma, estimate.enqueued / 4, "the average starts at zero");
        assert_eq!(s.cfs_rq[root].avg.util_est.enqueued, 0);
        s.wake_from(CPU0, p);
        assert_eq!(s.cfs_rq[root].avg.util_est.enqueued, estimate.enqueued);
    }
}

#[test]
fn in_v4_19_an_estimate_grows_past_what_a_slow_cpu_has() {
    for (kernel, grows) in [(V4_19, true), (V5_4, false)] {
        let mut topology = CpuTopology::symmetric(1, 1, 1, 1, 1);
        topology.capacity[CPU0] = 512;
        let mut s = Sched::new(Hand::at(1_000 * MS), Boot::new(kernel, topology, 1000));
        let p = s.task(CPU0, 0);
        s.reschedule(CPU0);
        let se = s.task[p].se;
        s.se[se].avg.util_avg = 700;
        s.sleep(CPU0);
        assert_eq!(s.se_of(p).avg.util_est.enqueued > 512, grows, "{}", kernel.name);
    }
}

#[test]
fn what_a_slow_cpu_does_all_the_time_counts_in_full_where_the_clock_is_as_slow() {
    for (kernel, util) in [(V4_16, 500..=512), (V4_19, 500..=512), (V5_4, 920..=1024), (V5_10, 920..=1024)] {
        let mut topology = CpuTopology::symmetric(1, 1, 1, 1, 1);
        topology.capacity[CPU0] = 512;
        let mut s = Sched::new(Hand::at(1_000 * MS), Boot::new(kernel, topology, 1000));
        let p = s.task(CPU0, 0);
        // A new task expects half of what is left: of a whole CPU, or of this one.
        assert_eq!(s.se_of(p).avg.util_avg, if kernel == V4_16 { 512 } else { 256 }, "{}", kernel.name);
        s.reschedule(CPU0);
        for _ in 0..250 {
            s.pass(MS);
            s.tick(CPU0);
        }
        assert!(util.contains(&s.se_of(p).avg.util_avg), "{} {}", kernel.name, s.se_of(p).avg.util_avg);
        // Half of the 250 ms, until it idles.
        let lag = s.rq[CPU0].clock_task.wrapping_sub(s.rq_clock_pelt(CPU0)) / MS;
        assert_eq!(lag, if [V4_16, V4_19].contains(&kernel) { 0 } else { 125 }, "{}", kernel.name);
    }
}

#[test]
fn a_delayed_sleeper_that_leaves_the_class_leaves_its_estimate_only_once_later() {
    for (value, rest) in [("ewma", 0), ("ewma-in-update", 300)] {
        let mut s = v7_2_with("load.util_est", value);
        let sleeper = s.task(CPU0, 0);
        s.reschedule(CPU0);
        let other = s.task(CPU0, 0);
        for (p, estimate) in [(sleeper, 500), (other, 300)] {
            let se = s.task[p].se;
            s.se[se].avg.util_est.enqueued = estimate | crate::pelt::UTIL_AVG_UNCHANGED;
        }
        let root = s.rq[CPU0].cfs;
        s.cfs_rq[root].avg.util_est.enqueued = 800;
        s.pass(MS / 2);
        s.sleep(CPU0);
        assert!(s.se_of(sleeper).sched_delayed, "it ran ahead of the other one");
        assert_eq!(s.cfs_rq[root].avg.util_est.enqueued, 300, "{value}");
        s.sched_setscheduler(sleeper, Policy::Fifo, 1).expect("root may");
        assert_eq!(s.cfs_rq[root].avg.util_est.enqueued, rest, "{value}");
    }
}

#[test]
fn a_group_is_told_once_a_millisecond_of_a_clock_or_of_the_queues() {
    for (value, told) in [("once-per-ms", true), ("once-per-ms-of-queue", false)] {
        let mut s = v7_2_with("load.tg_load_avg", value);
        let group = s.sched_create_group(ROOT_TASK_GROUP, "g", 1024);
        s.task_in(group, CPU0, 0);
        let cfs = s.tg[group].cfs_rq[0];
        s.cfs_rq[cfs].last_update_tg_load_avg = s.rq[CPU0].clock;
        s.cfs_rq[cfs].avg.load_avg += 500;
        // Time passes with which the runqueue's clock has not been updated.
        s.pass(2 * MS);
        let before = s.tg[group].load_avg;
        s.update_tg_load_avg(cfs);
        assert_eq!(s.tg[group].load_avg != before, told, "{value}");
        s.update_rq_clock(CPU0);
        s.update_tg_load_avg(cfs);
        assert_ne!(s.tg[group].load_avg, before, "{value}");
    }
}

#[test]
fn what_an_empty_cpu_has_lost_is_noted_when_a_real_time_task_leaves_it_since_v6_18() {
    for (kernel, noted) in
        [(V5_4, false), (V5_10, true), (V5_15, false), (V6_1, true), (V6_6, false), (V6_12, true), (V6_18, true)]
    {
        for fifo in [true, false] {
            let mut s = machine(kernel, 1);
            let p = s.runner(CPU0);
            if fifo {
                assert_eq!(s.sched_setscheduler(p, Policy::Fifo, 10), Ok(()));
            }
            // Its clock lags behind by a millisecond, and utilization says that it never idles.
            let clock = &mut s.rq[CPU0].clock_pelt;
            clock.clock_pelt = clock.clock_pelt.wrapping_sub(MS);
            let cfs = s.rq[CPU0].cfs;
            s.cfs_rq[cfs].avg.util_sum = 60_000_000;
            s.sleep(CPU0);
            assert_eq!(s.rq[CPU0].clock_pelt.lost_idle_time != 0, noted || !fifo, "{}", kernel.name);
        }
    }
}
