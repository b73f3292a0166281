//! Which fields share a line in each kernel, and the names of lines.

use super::*;
use crate::versions::{KERNELS, Kernel, V4_5_RC1, V4_15, V6_1, V7_2};

#[test]
fn the_first_statistics_share_a_line_with_vruntime_and_the_last_never_reach_the_links() {
    let layout = V4_5_RC1.layout();
    let task = TaskId(7);
    assert_eq!(layout.statistic(task, Statistic::WaitStart), layout.task(task, TaskLine::SeTimes));
    assert_eq!(layout.statistic(task, Statistic::SleepStart), layout.task(task, TaskLine::SeStatistics2));
    assert_eq!(layout.statistic(task, Statistic::NrWakeups), layout.task(task, TaskLine::SeStatistics3));
    assert_eq!(layout.statistic(task, Statistic::NrWakeupsAffine), layout.task(task, TaskLine::SeStatistics4));
    // 27 members of eight bytes: the last one ends where the line of the links begins.
    assert!(layout.of.statistics + 27 * 8 <= 5 * LINE_BYTES);
}

#[test]
fn later_kernels_keep_capacities_apart_from_clocks() {
    let (old, new) = (V4_5_RC1.layout(), V6_1.layout());
    assert_eq!(old.rq(CpuId(3), RqLine::Capacity), old.rq(CpuId(3), RqLine::Clock));
    assert_ne!(new.rq(CpuId(3), RqLine::Capacity), new.rq(CpuId(3), RqLine::Clock));
    assert_eq!(old.cfs_rq(CfsRqId(3), CfsRqLine::Removed), old.cfs_rq(CfsRqId(3), CfsRqLine::Contrib));
    assert_ne!(new.cfs_rq(CfsRqId(3), CfsRqLine::Removed), new.cfs_rq(CfsRqId(3), CfsRqLine::Contrib));
    // They begin with v4.15, or earlier.
    let between = V4_15.layout();
    assert_ne!(between.rq(CpuId(3), RqLine::Capacity), between.rq(CpuId(3), RqLine::Clock));
    assert_ne!(between.cfs_rq(CfsRqId(3), CfsRqLine::Removed), between.cfs_rq(CfsRqId(3), CfsRqLine::Contrib));
}

#[test]
fn what_waits_and_what_runs_lie_together_in_a_queue_of_v4_5_alone() {
    for (kernel, together) in [(V4_5_RC1, true), (V4_15, false), (V6_1, false)] {
        let layout = kernel.layout();
        let queue = CfsRqId(3);
        let of_group = layout.cfs_rq(queue, CfsRqLine::Load) == layout.cfs_rq(queue, CfsRqLine::Timeline);
        let root = layout.rq(CpuId(3), RqLine::Cfs) == layout.rq(CpuId(3), RqLine::CfsTimeline);
        assert_eq!([of_group, root], [together; 2], "{}", kernel.name);
    }
}

#[test]
fn who_looks_whether_wakeups_are_queued_meets_what_the_cpu_itself_counts_beside_them() {
    let beside = |kernel: &Kernel| {
        let layout = kernel.layout();
        let [list, counts, stats] =
            [RqLine::WakeList, RqLine::Counts, RqLine::Stats].map(|line| layout.rq(CpuId(3), line));
        [list == counts, list == stats]
    };
    assert_eq!([V4_5_RC1, V4_15, V6_1].map(|kernel| beside(&kernel)), [[true, false], [true, true], [false, false]]);
}

#[test]
fn a_look_at_what_runs_on_a_cpu_leaves_its_lock_alone_since_v7_2() {
    let looked_at = [RqLine::NrRunning, RqLine::Curr, RqLine::Pending, RqLine::Capacity];
    let on = |layout: &Layout| looked_at.map(|line| layout.rq(CpuId(3), line));
    let (old, new) = (V6_1.layout(), V7_2.layout());
    assert!(on(&old).contains(&old.rq(CpuId(3), RqLine::Lock)));
    assert!(on(&old).iter().any(|&line| line != on(&old)[0]));
    assert_eq!(on(&new), [on(&new)[0]; 4]);
    assert_ne!(on(&new)[0], new.rq(CpuId(3), RqLine::Lock));
    assert_eq!(new.rq(CpuId(3), RqLine::Load), new.rq(CpuId(3), RqLine::Lock));
}

#[test]
fn statistics_of_their_own_are_four_lines_behind_the_times() {
    let (layout, task) = (V6_1.layout(), TaskId(7));
    let line = |statistic| layout.statistic(task, statistic);
    assert_eq!(line(Statistic::WaitStart), layout.task(task, TaskLine::SeStatistics2));
    assert_eq!(line(Statistic::ExecMax), layout.task(task, TaskLine::SeStatistics3));
    assert_eq!(line(Statistic::NrWakeups), layout.task(task, TaskLine::SeStatistics4));
    assert_eq!(line(Statistic::NrWakeupsAffine), layout.task(task, TaskLine::SeStatistics5));
    assert_eq!(layout.task(task, TaskLine::SeLinks), layout.task(task, TaskLine::SeTimes));
}

#[test]
fn lines_have_names() {
    let layout = V4_5_RC1.layout();
    assert_eq!(layout.describe(layout.rq(CpuId(3), RqLine::WakeList)), "cpu3 rq.WakeList");
    assert_eq!(layout.describe(layout.task(TaskId(5), TaskLine::ThreadInfo)), "task 5 ThreadInfo");
    assert_eq!(layout.describe(layout.idle_thread_info(CpuId(2))), "cpu2 idle flags");
    assert_eq!(layout.describe(layout.global(GlobalLine::Jiffies)), "jiffies");
    assert_eq!(layout.describe(rcu_leaf(CpuId(40))), "rcu_node 2");
    assert_eq!(layout.contents(rcu_leaf(CpuId(40))), "rcu_node: lock, qsmask, gpnum");
    assert_eq!(layout.describe(layout.rt_rq(CpuId(3))), "cpu3 rq.rt");
    assert_eq!(layout.describe(layout.dl_rq(CpuId(0))), "cpu0 rq.dl");
    assert_eq!(layout.describe(layout.root_domain(2)), "root_domain 2");
    // A partition for each CPU: its line is nobody else's.
    assert_eq!(layout.describe(layout.root_domain(504)), "root_domain 504");
    assert_eq!(layout.describe(layout.root_domain(8191)), "root_domain 8191");
    assert_eq!(layout.describe(BALANCE_RUNNING), "balancing");
}

#[test]
fn what_lies_on_a_line_is_told_in_fields() {
    let layout = V4_5_RC1.layout();
    let tg = |field| layout.contents(layout.task_group(TgId(1), field));
    assert_eq!(tg(TaskGroupField::CfsRq), "task_group 1: se, cfs_rq");
    assert_eq!(tg(TaskGroupField::Shares), "task_group 1: shares");
    assert_eq!(tg(TaskGroupField::LoadAvg), "task_group 1: load_avg, parent");
    let clock = layout.contents(layout.rq(CpuId(3), RqLine::Clock));
    assert_eq!(clock, "cpu3 rq: clock, clock_task, nr_iowait, rd, sd, cpu_capacity");
    assert_eq!(layout.contents(layout.idle_thread_info(CpuId(2))), "cpu2 idle: thread_info.flags");
    assert_eq!(layout.contents(layout.global(GlobalLine::Cpupri)), "cpupri");
    assert_eq!(layout.contents(layout.task(TaskId(5), TaskLine::PiLock)), "task 5: pi_lock");
}

#[test]
fn packed_run_queues_meet_on_a_line() {
    let packed =
        |of: &Structures| Layout::new(of, LayoutRules { percpu_areas: PerCpuAreas::Packed, ..LayoutRules::V4_5 });
    let layout = packed(&Structures::V4_5);
    let (end, next) = (layout.rq(CpuId(0), RqLine::WakeList), layout.rq(CpuId(1), RqLine::Lock));
    assert_eq!(end, next);
    assert_eq!(
        layout.contents(end),
        "cpu0 rq: wake_list, idle_state, sched_count, ttwu_count; cpu1 rq: lock, nr_running, cpu_load"
    );
    // Two of these have whole lines.
    assert_ne!(layout.rq(CpuId(1), RqLine::WakeList), layout.rq(CpuId(2), RqLine::Lock));
    assert_eq!(layout.describe(layout.idle_thread_info(CpuId(2))), "cpu2 idle flags");
    // Nothing changes where the structure has whole lines.
    assert_eq!(packed(&Structures::V6_1), V6_1.layout());
}

#[test]
fn objects_do_not_overlap() {
    for kernel in KERNELS {
        let layout = kernel.layout();
        let Structures { rq, task, cfs_rq, se, .. } = layout.of;
        assert!(rq.iter().all(|&line| u32::from(line) < layout.of.rq_lines - 1));
        assert!(task.iter().all(|&line| u32::from(line) < TASK_LINES));
        assert!(cfs_rq.iter().all(|&line| u32::from(line) < layout.of.cfs_rq_lines));
        assert!(se.iter().all(|&line| u32::from(line) < layout.of.se_lines));
    }
    let layout = V4_5_RC1.layout();
    assert_ne!(layout.rq(CpuId(0), RqLine::WakeList), layout.idle_thread_info(CpuId(0)));
    assert_ne!(layout.idle_thread_info(CpuId(0)), layout.rq(CpuId(1), RqLine::Lock));
}
