//! Schedstats: what they record, and that they cost nothing when off.

use super::*;
use crate::access::Path;
use crate::features::Feature;
use crate::latencytop::{LatencyRecord, WaitChannel};
use crate::layout::{Region, RqLine, SeLine, TaskLine};
use crate::profile::ProfileType;
use crate::scheduler::Scheduler;
use crate::stats::SchedstatsState;
use crate::sysctl::Tunable;

fn with_schedstats(kernel: Kernel, on: u64) -> Sched<Hand> {
    let mut s = machine(kernel, 1);
    s.sysctl.sched_schedstats = on;
    s.schedstats = SchedstatsState::new(&kernel, &s.sysctl);
    s
}

/// Runs, waits, sleeps, blocks and ticks, inside and outside a group.
fn a_bit_of_everything(s: &mut Sched<Hand>) {
    let group = s.sched_create_group(ROOT_TASK_GROUP, "g", 1024);
    let a = s.task(CPU0, 0);
    let b = s.task_in(group, CPU0, 0);
    s.reschedule(CPU0);
    s.ticks(CPU0, 8);
    let slept = s.rq[CPU0].curr.unwrap();
    s.sleep(CPU0);
    let other = if slept == a { b } else { a };
    s.ticks(CPU0, 3);
    s.wake_from(CPU0, slept);
    s.reschedule(CPU0);
    s.sleep_in(CPU0, TaskState::Uninterruptible);
    s.pass(MS);
    let blocked = if s.rq[CPU0].curr == Some(other) { slept } else { other };
    s.wake_from(CPU0, blocked);
    s.set_user_nice(a, 3);
    s.ticks(CPU0, 5);
}

fn is_statistics(s: &Sched<Hand>, line: Line) -> bool {
    let task = [TaskLine::SeStatistics2, TaskLine::SeStatistics3, TaskLine::SeStatistics4];
    match line.region {
        Region::Task => (0..8).any(|p| task.iter().any(|&l| s.layout.task(TaskId(p), l) == line)),
        // The group's entities: their links share the statistics' line, but the walk from a task does not stop there.
        Region::Se => (0..8).any(|se| s.layout.se(SeId(se), SeLine::Statistics) == line),
        _ => false,
    }
}

#[test]
fn switched_off_nothing_is_counted_or_touched() {
    for kernel in [V4_15, V4_16] {
        let mut s = with_schedstats(kernel, 0);
        a_bit_of_everything(&mut s);
        let touched: Vec<_> = s.arch.touched.iter().filter(|&&line| is_statistics(&s, line)).collect();
        assert_eq!(touched, Vec::<&Line>::new(), "{}", kernel.name);
        assert!(s.task_cold.iter().all(|(_, t)| t.statistics == SchedStatistics::default()));
        assert!(s.group_statistics.iter().all(|t| *t == SchedStatistics::default()));
        let rq = &s.rq[CPU0];
        assert_eq!((rq.yld_count, rq.sched_goidle, rq.ttwu_count), (0, 0, 0));
        assert!(s.cfs_rq.iter().all(|(_, q)| q.exec_clock == 0 && q.nr_spread_over == 0));
    }
}

#[test]
fn switched_on_or_without_a_switch_they_are_touched() {
    for (kernel, on) in [(V4_5_RC1, 0), (V4_15, 1)] {
        let mut s = with_schedstats(kernel, on);
        a_bit_of_everything(&mut s);
        assert!(s.arch.touched.iter().any(|&line| is_statistics(&s, line)), "{}", kernel.name);
        assert!(s.arch.touched.contains(&s.layout.rq(CPU0, RqLine::Stats)));
    }
}

#[test]
fn each_schedule_counts_itself_beside_the_wakeups() {
    let counted = |kernel: Kernel, on| {
        let mut s = with_schedstats(kernel, on);
        s.task(CPU0, 0);
        s.arch.touched.clear();
        s.reschedule(CPU0);
        let line = s.layout.rq(CPU0, RqLine::Counts);
        (s.rq[CPU0].sched_count, s.arch.touched.iter().filter(|&&touched| touched == line).count())
    };
    let (off, on) = (counted(V4_15, 0), counted(V4_15, 1));
    // In v4.5 the line has nothing else that a switch changes; in v4.15 it has the fields of sched_info, which cannot
    // be switched off.
    assert_eq!([off.0, on.0, counted(V4_5_RC1, 0).0], [0, 1, 1]);
    assert_eq!(on.1, off.1 + 1);
    assert_eq!(counted(V4_5_RC1, 0).1, 1);
}

#[test]
fn waiting_sleeping_and_blocking_are_summed() {
    for (kernel, on) in [(V4_5_RC1, 0), (V4_15, 1), (V4_16, 1)] {
        let mut s = with_schedstats(kernel, on);
        // A wakeup that preempts is followed by a switch at once; here time is to pass in between.
        s.features.set(Feature::WAKEUP_PREEMPTION, false);
        s.arch.tracing = true;
        s.runner(CPU0);
        let p = s.task(CPU0, 0);
        s.pass(3 * MS);
        assert_eq!(s.reschedule(CPU0), Some(p));
        s.pass(2 * MS);
        s.sleep(CPU0);
        s.pass(7 * MS);
        s.wake_from(CPU0, p);
        s.pass(MS);
        assert_eq!(s.reschedule(CPU0), Some(p));
        s.pass(MS);
        s.sleep_in(CPU0, TaskState::Uninterruptible);
        s.pass(5 * MS);
        s.task[p].in_iowait = true;
        s.rq[CPU0].nr_iowait = 1;
        s.wake_from(CPU0, p);
        let t = s.task_cold[p].statistics;
        assert_eq!((t.wait_count, t.wait_sum, t.wait_max), (2, 4 * MS, 3 * MS), "{}", kernel.name);
        assert_eq!((t.sleep_max, t.block_max, t.sum_sleep_runtime), (7 * MS, 5 * MS, 12 * MS));
        assert_eq!((t.iowait_count, t.iowait_sum, t.exec_max), (1, 5 * MS, 2 * MS));
        assert_eq!((t.sleep_start, t.block_start, t.wait_start), (0, 0, s.arch.now));
        assert_eq!(s.cfs_rq[s.rq[CPU0].cfs].exec_clock, 20 * MS);
        let delays: Vec<_> = s.arch.events.iter().filter_map(delay).filter(|d| d.0 == p).map(|d| d.1).collect();
        assert_eq!(delays, ["wait 3", "runtime 2", "sleep 7", "wait 1", "runtime 1", "iowait 5", "blocked 5"]);
    }
}

/// The tracepoints of statistics, in ms.
fn delay(event: &Event) -> Option<(TaskId, String)> {
    let (task, name, ns) = match event {
        Event::SchedStatWait { task, delay } => (task, "wait", delay),
        Event::SchedStatSleep { task, delay } => (task, "sleep", delay),
        Event::SchedStatIowait { task, delay } => (task, "iowait", delay),
        Event::SchedStatBlocked { task, delay } => (task, "blocked", delay),
        Event::SchedStatRuntime { task, runtime, .. } => (task, "runtime", runtime),
        _ => return None,
    };
    Some((*task, format!("{name} {}", ns.0 / MS)))
}

#[test]
fn sleeps_are_added_up_by_place() {
    const PIPE: WaitChannel = &[Path(300), Path(301)];
    const DISK: WaitChannel = &[Path(302)];
    let mut s = with_schedstats(V4_15, 0);
    let profiled = s.profile_setup(ProfileType::Sleep).and(s.sysctl_write(Tunable::latencytop, 1));
    assert_eq!(profiled, Ok(()));
    assert!(s.schedstat_enabled() && s.sysctl.sched_schedstats == 1, "both need them");
    let p = s.runner(CPU0);
    s.task[p].mm = 5;
    let sleep = |s: &mut Sched<Hand>, place: WaitChannel, state: TaskState, ns: u64| {
        s.pass(MS);
        Scheduler::set_wait_channel(s, p, place);
        s.sleep_in(CPU0, state);
        s.pass(ns);
        s.wake_from(CPU0, p);
        assert_eq!(s.reschedule(CPU0), Some(p));
    };
    sleep(&mut s, PIPE, TaskState::Interruptible, 3 * MS);
    sleep(&mut s, PIPE, TaskState::Interruptible, 2 * MS);
    // Longer than 5 ms, and intended.
    sleep(&mut s, PIPE, TaskState::Interruptible, 6 * MS);
    sleep(&mut s, DISK, TaskState::Uninterruptible, 6 * MS);
    // Units are 1024 ns; milliseconds are 2^20 ns.
    let us = |ns: u64| ns >> 10;
    let of_pipe = LatencyRecord { backtrace: PIPE, count: 2, time: us(3 * MS) + us(2 * MS), max: us(3 * MS) };
    let of_disk = LatencyRecord { backtrace: DISK, count: 1, time: us(6 * MS), max: us(6 * MS) };
    assert_eq!(s.latency_records(), [of_pipe, of_disk]);
    assert_eq!(s.task_cold[p].latency_record, [of_pipe, of_disk]);
    let hits: Vec<_> = s.profile_histogram().expect("it is on").collect();
    assert_eq!(hits, [(Path(302), (6 * MS) >> 20)]);
    // A kernel thread only has its own record; when off, nothing is added, and schedstats stay on.
    s.task[p].mm = 0;
    sleep(&mut s, DISK, TaskState::Uninterruptible, MS);
    assert_eq!((s.latency_records()[1].count, s.task_cold[p].latency_record[1].count), (1, 2));
    assert_eq!(s.sysctl_write(Tunable::latencytop, 0), Ok(()));
    sleep(&mut s, DISK, TaskState::Uninterruptible, MS);
    assert_eq!(s.task_cold[p].latency_record[1].count, 2);
    assert!(s.schedstat_enabled());
}

#[test]
fn runtime_is_traced_without_schedstats() {
    let mut s = with_schedstats(V4_16, 0);
    s.arch.tracing = true;
    let p = s.runner(CPU0);
    s.pass(2 * MS);
    s.sleep(CPU0);
    let delays: Vec<_> = s.arch.events.iter().filter_map(delay).collect();
    assert_eq!(delays, [(p, "runtime 1".to_owned()), (p, "runtime 2".to_owned())]);
}

#[test]
fn the_longest_slice_counts_only_among_others() {
    let mut s = with_schedstats(V4_5_RC1, 0);
    let [a, b] = [0, 0].map(|nice| s.task(CPU0, nice));
    s.ticks(CPU0, 20);
    let longest = |s: &Sched<Hand>, p: TaskId| s.task_cold[p].statistics.slice_max / MS;
    assert_eq!((longest(&s, a), longest(&s, b)), (3, 3));
}

#[test]
fn a_running_task_that_is_changed_waits_for_an_instant_in_new_kernels() {
    // v4.9 queues it before it runs again, and so counts a wait of zero length.
    for (kernel, waits) in [(V4_5_RC1, 1), (V4_15, 2)] {
        let mut s = with_schedstats(kernel, 1);
        let p = s.runner(CPU0);
        assert_eq!(s.task_cold[p].statistics.wait_count, 1);
        s.set_policy(p, Policy::Batch);
        let t = s.task_cold[p].statistics;
        assert_eq!((t.wait_count, t.wait_sum), (waits, 0), "{}", kernel.name);
    }
}

#[test]
fn a_wait_goes_on_across_a_migration() {
    for (kernel, on) in [(V4_5_RC1, 0), (V4_15, 1)] {
        let mut s = machine(kernel, 2);
        s.sysctl.sched_schedstats = on;
        s.schedstats = SchedstatsState::new(&kernel, &s.sysctl);
        s.features.set(Feature::WAKEUP_PREEMPTION, false);
        s.runner(CPU0);
        s.runner(CPU1);
        let waits = s.task(CPU0, 0);
        s.pass(2 * MS);
        s.task[waits].cpus_allowed = CpuMask::all(2).into();
        s.move_queued_task(waits, CPU1);
        s.pass(3 * MS);
        assert_eq!(s.reschedule(CPU1), Some(waits));
        let t = s.task_cold[waits].statistics;
        assert_eq!((t.wait_count, t.wait_sum), (1, 5 * MS), "{}", kernel.name);
    }
}

#[test]
fn a_wait_that_no_statistics_saw_begin_counts_from_boot_until_v5_10() {
    let wait = |kernel| {
        let mut s = with_schedstats(kernel, 0);
        let p = s.runner(CPU0);
        let waiting = s.task(CPU0, 0);
        assert_eq!(s.sysctl_write(Tunable::sched_schedstats, 1), Ok(()));
        s.pass(2 * MS);
        assert_eq!(s.rq[CPU0].curr, Some(p));
        s.sleep(CPU0);
        assert_eq!(s.rq[CPU0].curr, Some(waiting));
        (s.task_cold[waiting].statistics.wait_count, s.task_cold[waiting].statistics.wait_max, s.rq[CPU0].clock)
    };
    let (count, longest, now) = wait(V4_16);
    assert_eq!((count, longest), (1, now));
    for kernel in [V6_1, V6_6, V6_12] {
        let (count, longest, _) = wait(kernel);
        assert_eq!((count, longest), (0, 0));
    }
}
