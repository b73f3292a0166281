//! The structures of each version: which of their members share a cache line.

use super::{Structures, TaskGroupStructure};

impl Structures {
    /// v4.5-rc1, with timers of 96 bytes in `struct rq` (`TIMER_STATS`) and `nr_spread_over` in each queue (`SCHED_DEBUG`). `struct rq` has 2728
    /// bytes. Within it: cfs 112, curr 2264, clock 2312, cpu_capacity 2352; cfs_tasks 2440, idle_stamp 2472; rq_sched_info 2648, rq_cpu_time 2680,
    /// yld_count 2688, sched_count 2692, ttwu_count 2700, wake_list 2712, idle_state 2720. Within `struct cfs_rq`: load 0, nr_running 16,
    /// min_vruntime 32, tasks_timeline 40, curr 56, next 64, avg 96 (its util_avg 128), runnable_load_avg 144, tg_load_avg_contrib 152,
    /// removed_load_avg 160, h_load 176. Within `struct sched_entity`: on_rq 56, exec_start 64, vruntime 80, statistics 104, depth 320, parent 328,
    /// cfs_rq 336, avg 384, 448 bytes in all; a group's begins on a line of its own, too. Within `struct task_struct`: state 0, on_cpu 40, last_wakee
    /// 56, wake_cpu 64, on_rq 68, sched_class 88, se 128.
    pub const V4_5: Structures = Structures {
        task_group: TaskGroupStructure::V4_4,
        statistics: 104,
        statistics_behind_block_max: 0,
        statistics_behind_slice_max: 8,
        group_statistics: Some(104),
        runnable_with_contrib: true,
        // The timeline shares Cfs's line; the last six share those of Clock, CfsContrib, Balance, Lock, Load and WakeList.
        rq: [0, 1, 2, 2, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 7, 5, 8, 0, 1, 10],
        // Wakees shares State's line.
        task: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 6, 12, 0],
        cfs_rq: [0, 0, 1, 2, 2],
        se: [0, 1, 2, 6, 5],
        rq_lines: 16,
        cfs_rq_lines: 4,
        se_lines: 7,
        rq_tail: 40,
    };

    /// v4.15: `runnable_weight` was inserted before `run_node`, so everything after it in an entity moved by eight bytes: statistics 112, depth 328,
    /// avg 384. `cfs.removed` is aligned to a line of its own, so `struct rq` has whole lines (2880 bytes). Within it: cfs.nr_running 152,
    /// tasks_timeline 176, cfs.curr 192, load_avg 264, removed 320, tg_load_avg_contrib 384; curr 2416, clock 2464, sd 2496, cpu_capacity 2504;
    /// cfs_tasks 2592, idle_stamp 2624; rq_cpu_time 2816, ttwu_count 2836, wake_list 2848, idle_state 2856. Within `struct cfs_rq`: curr 64, load_avg
    /// 136, removed 192, tg_load_avg_contrib 256; within `struct task_struct`: state 16, on_cpu 56, wakee_flips 64, last_wakee 80, wake_cpu and on_rq
    /// from 88 on.
    pub const V4_15: Structures = Structures {
        task_group: TaskGroupStructure::V4_5,
        statistics: 112,
        group_statistics: Some(112),
        runnable_with_contrib: false,
        // Stats and Counts share WakeList's line, NrRunning the lock's, Pending Load's.
        rq: [0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 10, 11, 12, 13, 14, 15, 16, 17, 0, 1, 10],
        // ThreadInfo shares State's line (x86's THREAD_INFO_IN_TASK), Wakees OnRq's.
        task: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 0, 6, 12, 12],
        cfs_rq: [0, 1, 2, 3, 4],
        rq_lines: 20,
        cfs_rq_lines: 5,
        rq_tail: 0,
        ..Structures::V4_5
    };

    /// v4.19, from the types (DWARF) of 4.19.108 as the recorder builds old kernels: without real-time groups, and without the time of
    /// interrupts, whose average (`avg_irq`) a line of its own would have.
    ///
    /// Within `struct cfs_rq` (448 bytes): runnable_weight 16, nr_running 24, min_vruntime 40, tasks_timeline 48, curr 64, avg 128, removed 192,
    /// tg_load_avg_contrib 256; `struct sched_entity` is that of v4.15. Within `struct rq` (3008 bytes): nr_running 4, cpu_load 24, nohz_flags 88, load
    /// 96, nr_switches 120, cfs 128, rt 576, dl 2280, curr 2416, next_balance 2440, clock 2464, clock_task 2472, rd 2488, sd 2496, cpu_capacity 2504,
    /// active_balance 2532, cfs_tasks 2592, avg_rt 2624, avg_dl 2688, idle_stamp 2752, rq_sched_info 2912, rq_cpu_time 2944, ttwu_count 2964, wake_list
    /// 2976, idle_state 2984. Within `struct task_struct`: state 16, wake_entry 48, on_cpu 56, wakee_flips 64, last_wakee 80, recent_used_cpu 88,
    /// wake_cpu 92, on_rq 96, sched_class 120, se 128. What is told apart here lies as in v4.15.
    pub const V4_19: Structures = Structures { task_group: TaskGroupStructure::V4_19, ..Structures::V4_15 };

    /// v5.4, from the types (DWARF) of 5.4.286 with the configuration of Debian's 5.10: without clamps and real-time groups.
    ///
    /// Within `struct cfs_rq` (448 bytes): runnable_weight 16, nr_running 24, min_vruntime 48, tasks_timeline 56, so that the tree's root is on the
    /// line of the load, its leftmost entity (64) on that of curr 72; avg 128, removed 192, tg_load_avg_contrib 256. `struct sched_entity` (448 bytes)
    /// is that of v4.15: runnable_weight 16, run_node 24, on_rq 64, exec_start 72, vruntime 88, statistics 112, depth 328, parent 336, cfs_rq 344, avg
    /// 384. Within `struct rq` (3072 bytes): nr_running 4, nohz_flags 48 (beside the lock), nr_switches 64, alone; cfs 128, rt 576, dl 2280, curr 2416,
    /// next_balance 2440, clock 2464, clock_task 2496, rd 2528, sd 2536, cpu_capacity 2544, active_balance 2584, cfs_tasks 2640, avg_rt 2688, avg_dl
    /// 2752, idle_stamp 2816, rq_sched_info 2984, rq_cpu_time 3016, ttwu_count 3036, wake_list 3048, idle_state 3056. Within `struct task_struct`: state
    /// 16, wake_entry 48, on_cpu 56, wakee_flips 64, last_wakee 80, recent_used_cpu 88, wake_cpu 92, on_rq 96, sched_class 120, se 128. `Load` is
    /// nr_switches.
    pub const V5_4: Structures = Structures {
        task_group: TaskGroupStructure::V5_4,
        // Stats and Counts share WakeList's line, as before; Capacity shares Clock's (clock_task).
        rq: [0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 10, 11, 12, 13, 14, 7, 16, 17, 0, 1, 10],
        ..Structures::V4_15
    };

    /// v5.10, from the types of Debian's 5.10.262, without clamps. Within `struct cfs_rq` (448 bytes): nr_running 16, tasks_timeline 48,
    /// curr 64, avg 128, removed 192, tg_load_avg_contrib 256; within `struct sched_entity` (448 bytes): on_rq 56, exec_start 64, vruntime 80,
    /// statistics 104, parent 328, cfs_rq 336, avg 384. Within `struct rq` (3072 bytes): nr_running 4, nohz_csd 64, ttwu_pending 104,
    /// nr_switches 112, cfs 128, rt 576, dl 2280, curr 2416, clock 2464, clock_task 2496, rd 2528, cpu_capacity 2544, active_balance 2592,
    /// cfs_tasks 2648, avg_rt 2688, avg_dl 2752, idle_stamp 2816, rq_sched_info 2984, rq_cpu_time 3016, ttwu_count 3036. Within `struct
    /// task_struct`: state 16, on_cpu 44, wakee_flips 68, last_wakee 80, recent_used_cpu 88, wake_cpu 92, on_rq 96, se 128.
    pub const V5_10: Structures = Structures {
        task_group: TaskGroupStructure::V5_10,
        statistics: 104,
        group_statistics: Some(104),
        // Counts shares the line of Stats, WakeList's is another.
        rq: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 7, 16, 17, 0, 1, 9],
        ..Structures::V5_4
    };

    /// v5.15, from the types (DWARF) of 5.15.135 as the recorder builds old kernels: with `SCHED_CORE`, without clamps, steal time and real-time
    /// groups. Within `struct cfs_rq` (448 bytes): tasks_timeline 64, curr 80, avg 128, removed 192, tg_load_avg_contrib 256. Within `struct
    /// sched_entity` (256 bytes), which has no statistics any more (5.15.y; v5.15 itself is as v5.10): on_rq 56, exec_start 64, vruntime 80, depth
    /// 104, parent 112, cfs_rq 120, my_q 128, avg 192; `struct sched_statistics`, aligned to a line: block_max 80, exec_max 88, nr_wakeups 144,
    /// nr_wakeups_affine 184, 256 bytes in all. Within `struct rq` (3200 bytes): nr_running 4, nohz_csd 64, ttwu_pending 104, nr_switches 112, cfs
    /// 128, rt 576, dl 2272, curr 2400, next_balance 2424, clock 2448, clock_task 2496, rd 2544, sd 2552, cpu_capacity 2560, active_balance 2608,
    /// cfs_tasks 2672, avg_rt 2688, avg_dl 2752, idle_stamp 2816, rq_sched_info 2984, rq_cpu_time 3016, ttwu_count 3036. Within `struct
    /// task_struct`: __state 24, on_cpu 52, wakee_flips 76, last_wakee 88, recent_used_cpu 96, wake_cpu 100, on_rq 104, sched_class 128, se 192,
    /// stats 768. `Capacity` is cpu_capacity, as rd and sd are still on the line of clock_task.
    pub const V5_15: Structures = Structures {
        task_group: TaskGroupStructure::V5_15,
        statistics: 128,
        group_statistics: None,
        rq: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 0, 1, 9],
        task: [0, 1, 2, 3, 4, 5, 2, 7, 8, 9, 10, 0, 6, 12, 12],
        se: [0, 1, 2, 3, 1],
        se_lines: 5,
        ..Structures::V5_10
    };

    /// v6.1. Within `struct cfs_rq`: tasks_timeline 64, avg 128, removed 192, tg_load_avg_contrib 256. Within `struct sched_entity`:
    /// exec_start 64, parent 112, cfs_rq 120, avg 192. Within `struct rq`: clock_task 2496, rd
    /// 2560, cpu_capacity 2576, cfs_tasks 2680, idle_stamp 2944. Within `struct task_struct`: __state 24, on_cpu 52, wakee_flips 72,
    /// recent_used_cpu 96, wake_cpu 100, on_rq 104, se 128.
    pub const V6_1: Structures =
        Structures { task_group: TaskGroupStructure::V6_1, statistics_behind_block_max: 8, ..Structures::V5_15 };

    /// v6.6, from the types of a 6.6.17 with `SCHED_CORE` and NUMA for 512 CPUs, without clamps and `IRQ_TIME_ACCOUNTING`. Within
    /// `struct sched_entity` (256 bytes): run_node 16, deadline 40, group_node 56, on_rq 72, exec_start 80, vruntime 104, vlag 112, slice 120, parent
    /// 144, cfs_rq 152, my_q 160, avg 192: what leads up and down is a line further than in v6.1. Within `struct cfs_rq` (448 bytes): nr_running 16,
    /// avg_vruntime 32, min_vruntime 56, tasks_timeline 80, curr 96, avg 128, removed 192, tg_load_avg_contrib 256. Within `struct rq` (3392 bytes):
    /// nr_running 4, nohz_csd 64, ttwu_pending 104, nr_switches 112, cfs 128, rt 576, dl 2272, curr 2408, next_balance 2432, clock 2456, clock_task
    /// 2496, rd 2560, cpu_capacity 2576, active_balance 2616, cfs_tasks 2680, avg_rt 2752, avg_dl 2816, idle_stamp 2880, rq_cpu_time 3080, ttwu_count
    /// 3100. `struct task_group` and the first 128 bytes of `struct task_struct` are those of v6.1.
    pub const V6_6: Structures =
        Structures { task: [0, 1, 2, 3, 4, 5, 12, 7, 8, 9, 10, 0, 6, 13, 13], se: [0, 1, 2, 3, 4], ..Structures::V6_1 };

    /// v6.12. Within `struct sched_entity`: deadline 40, on_rq 80, exec_start 88, vruntime 112, slice 128, parent 152, cfs_rq 160, avg 192. The lines
    /// of the other structures are those of v6.1.
    pub const V6_12: Structures = Structures { task_group: TaskGroupStructure::V6_12, ..Structures::V6_6 };

    /// v6.18, from the types (DWARF) of 6.18.35 with the configuration of Debian's 6.18.15: with `SCHED_CLASS_EXT`, `UCLAMP_TASK` and
    /// `PREEMPT_LAZY`, without `SCHED_CORE`. What is told apart here lies as in v6.12 but for `struct task_group`.
    ///
    /// Within `struct cfs_rq` (512 bytes): nr_queued 16, sum_w_vruntime 32, zero_vruntime 48, tasks_timeline 56, so that the tree's root is on the
    /// line of the load, its leftmost entity (64) on that of curr 72; avg 128, removed 192, tg_load_avg_contrib 264, h_load 288. Within `struct
    /// sched_entity` (256 bytes): deadline 40, min_slice 56, max_slice 64, on_rq 88, exec_start 96, vruntime 120, vlag 128, slice 136, parent 160,
    /// cfs_rq 168, my_q 176, avg 192. Within `struct rq` (3904 bytes): nr_running 4, nohz_csd 64, nohz_flags 100, ttwu_pending 104, nr_switches 112,
    /// uclamp 128, cfs 256, rt 768, dl 2440, scx 2544, fair_server 2816, curr 3088, next_balance 3120, clock 3144, clock_task 3200, rd 3264,
    /// cpu_capacity 3280, active_balance 3312, cfs_tasks 3376, avg_rt 3392, avg_dl 3456, idle_stamp 3520, rq_sched_info 3688, rq_cpu_time 3736,
    /// ttwu_count 3756. Within `struct task_struct`: __state 24, on_cpu 52, wakee_flips 72, recent_used_cpu 96, wake_cpu 100, on_rq 104, se 128, stats
    /// 960.
    pub const V6_18: Structures = Structures { task_group: TaskGroupStructure::V6_18, ..Structures::V6_12 };

    /// v7.2, from the types (BTF) of Debian's 7.2.13: with `SCHED_CLASS_EXT`, `UCLAMP_TASK` and `SCHED_CACHE`, without `SCHED_CORE`.
    ///
    /// What other CPUs only look at begins `struct rq`, apart from the lock: nr_running 0, ttwu_pending 12, cpu_capacity 16, curr 24, idle 32;
    /// then on a line of their own nr_switches 64, lock 72, nohz_flags 80. Within it further: uclamp 128, cfs 256, next_balance 3640,
    /// clock_task 3712, clock 3728, rd 3784, sd 3792, active_balance 3824, cfs_tasks 3888, avg_rt 3904, avg_dl 3968, idle_stamp 4032,
    /// hrtick_timer 4128, sched_count 4308, 4480 bytes in all. `Capacity` is cpu_capacity, for which it is looked at, not rd and sd.
    /// Within `struct cfs_rq`: tasks_timeline 64, avg 128, removed 192, tg_load_avg_contrib 264, 512 bytes in all; within
    /// `struct sched_entity`: deadline 40, on_rq 88, exec_start 96, vruntime 120, slice 144, parent 168, cfs_rq 176, avg 256: the lines of
    /// v6.12, as far as they are told apart here. A group's queue, entity and statistics of one CPU lie one behind the other
    /// (`struct cfs_tg_state`), each on lines of its own, so that they share none, as before. Within `struct task_struct`, whose on_cpu and on_rq
    /// are bytes: __state 24, on_cpu 52, on_rq 53, wakee_flips 72, recent_used_cpu 96, wake_cpu 100, se 128.
    pub const V7_2: Structures = Structures {
        task_group: TaskGroupStructure::V7_2,
        // OnRq shares State's line; wake_cpu shares Wakees', which a waker reads next (wake_wide()).
        task: [0, 1, 2, 3, 4, 5, 12, 7, 8, 9, 10, 0, 6, 0, 13],
        // Curr, Capacity and Pending share NrRunning's line; Load the lock's.
        rq: [1, 1, 2, 3, 4, 5, 0, 7, 8, 9, 10, 11, 12, 13, 14, 0, 16, 17, 0, 0, 9],
        ..Structures::V6_18
    };

    /// v7.3, from the types (BTF) of Debian's 7.3.4, configured as its 7.2.13. What is told apart here lies as in v7.2 but for statistics and
    /// `struct task_group`.
    ///
    /// Within `struct cfs_rq`, of 512 bytes as before: load 0, nr_queued 16, h_nr_queued 20, sum_w_vruntime 32, zero_vruntime 48; tasks_timeline 64,
    /// curr 80, next 88, h_curr 96; avg 128; removed 192; last_update_tg_load_avg 256, tg_load_avg_contrib 264, tg_runnable_avg_contrib 272, h_load
    /// 296; rq 320, tg 352. So `h_curr` is on the line of the timeline, `tg_runnable_avg_contrib` on that of `tg_load_avg_contrib`, and in the root
    /// queue, at 256 of `struct rq`, likewise (h_curr 352, tg_runnable_avg_contrib 528). Behind the queues `struct rq` grew by four lines (rt 768, dl
    /// 2440, then 672 bytes of scx): next_balance 3896, clock_task 3968, clock 3984, rd 4040, sd 4048, active_balance 4080, cfs_tasks 4144, avg_rt
    /// 4160, avg_dl 4224, idle_stamp 4288, hrtick_timer 4384, sched_count 4564, 4736 bytes in all.
    ///
    /// Within `struct sched_entity`, of 320 bytes as before: load 0, h_load 16, run_node 32, deadline 56; min_vruntime 64, on_rq 104, exec_start 112,
    /// sum_exec_runtime 120; prev_sum_exec_runtime 128, vruntime 136, vlag 144, slice 160, depth 176, parent 184; cfs_rq 192, my_q 200; avg 256. So
    /// `h_load`, the weight in the flat queue, is beside `load`; `SeTimes` is exec_start, from which vruntime and what follows it moved to the next
    /// line, which ends with parent; `SeLinks` is cfs_rq. `struct sched_statistics` lost nr_migrations_cold, so that nr_wakeups_affine is on the line
    /// of the other counts of wakeups. The first 448 bytes of `struct task_struct` are those of v7.2.
    pub const V7_3: Structures =
        Structures { task_group: TaskGroupStructure::V7_3, statistics_behind_slice_max: 0, ..Structures::V7_2 };
}

#[cfg(test)]
mod tests {
    use crate::layout::*;
    use crate::versions::{KERNELS, Kernel, V4_5_RC1, V4_15, V5_4, V5_10, V5_15, V6_1, V7_2, V7_3};

    #[test]
    fn a_groups_entity_is_laid_out_as_a_tasks_is() {
        for kernel in [V4_5_RC1, V4_15] {
            let (layout, se) = (kernel.layout(), SeId(5));
            let first = layout.first_of_se(se, None);
            let behind = |statistic| layout.group_statistic(first, statistic).index - first;
            assert_eq!(layout.group_statistic(first, Statistic::WaitStart), layout.se(se, SeLine::Times));
            let statistics =
                [Statistic::WaitSum, Statistic::SleepStart, Statistic::ExecMax, Statistic::NrWakeupsAffine];
            assert_eq!(statistics.map(behind), [2, 2, 3, 4], "{}", kernel.name);
            // Writers of counts do not take `my_q` or the averages away from their readers.
            assert_eq!([SeLine::Links, SeLine::Avg].map(|line| layout.se(se, line).index - first), [5, 6]);
            assert_eq!(layout.describe(layout.group_statistic(first, Statistic::ExecMax)), "se 5 Statistics");
            // The next one begins right after it.
            assert_eq!(layout.first_of_se(SeId(6), None) - first, 7);
        }
    }

    #[test]
    fn what_a_waker_changes_in_a_sleeper_is_on_two_lines_until_v7_2_and_what_it_notes_of_itself_on_the_first_in_v4_5() {
        for kernel in KERNELS {
            let layout = kernel.layout();
            let with_state = |line| layout.task(TaskId(3), line) == layout.task(TaskId(3), TaskLine::State);
            let (first, last) = (kernel.name == V4_5_RC1.name, [V7_2.name, V7_3.name].contains(&kernel.name));
            let lines = [TaskLine::OnRq, TaskLine::Wakees, TaskLine::ThreadInfo].map(with_state);
            assert_eq!(lines, [last, first, !first], "{}", kernel.name);
        }
    }

    #[test]
    fn v5_15_has_statistics_apart_and_counts_affine_wakeups_where_it_counts_the_others() {
        let apart = |kernel: Kernel| {
            let layout = kernel.layout();
            layout.statistic(TaskId(3), Statistic::WaitStart) != layout.task(TaskId(3), TaskLine::SeTimes)
        };
        assert_eq!([V5_10, V5_15, V6_1].map(apart), [false, true, true]);
        let together = |kernel: Kernel| {
            let of = |statistic| kernel.layout().statistic(TaskId(3), statistic);
            of(Statistic::NrWakeups) == of(Statistic::NrWakeupsAffine)
        };
        // What v6.1 has between them moves the last one to the next line (sum_block_runtime).
        assert_eq!([V5_15, V6_1].map(together), [true, false]);
    }

    #[test]
    fn v5_15_keeps_capacities_apart_from_clocks() {
        let with_clock = |kernel: Kernel| {
            let layout = kernel.layout();
            layout.rq(CpuId(3), RqLine::Capacity) == layout.rq(CpuId(3), RqLine::Clock)
        };
        assert_eq!([V4_15, V5_4, V5_10, V5_15, V6_1].map(with_clock), [false, true, true, false, false]);
    }

    #[test]
    fn v5_4_has_entities_of_v4_15_and_counts_beside_the_list_of_wakeups() {
        let counts = |kernel: Kernel| {
            let layout = kernel.layout();
            layout.rq(CpuId(3), RqLine::Counts) == layout.rq(CpuId(3), RqLine::WakeList)
        };
        assert_eq!([V4_15, V5_4, V5_10].map(counts), [true, true, false]);
        let [before, after] = [Structures::V4_15, Structures::V5_4];
        assert_eq!((before.se, before.statistics, before.task), (after.se, after.statistics, after.task));
    }

    #[test]
    fn v7_3_counts_affine_wakeups_where_it_counts_the_others() {
        for (kernel, together) in [(V7_2, false), (V7_3, true)] {
            let of = |statistic| kernel.layout().statistic(TaskId(3), statistic);
            let [first, local, affine] =
                [Statistic::NrWakeups, Statistic::NrWakeupsLocal, Statistic::NrWakeupsAffine].map(of);
            assert_eq!((first == local, first == affine), (true, together), "{}", kernel.name);
            // What stands before the member that is gone is where it was.
            assert_eq!(of(Statistic::ExecMax), V7_2.layout().statistic(TaskId(3), Statistic::ExecMax));
        }
    }

    #[test]
    fn v7_3_tells_apart_the_lines_that_v7_2_does() {
        let (before, after) = (Structures::V7_2, Structures::V7_3);
        assert_eq!((before.rq, before.task, before.cfs_rq, before.se), (after.rq, after.task, after.cfs_rq, after.se));
    }

    #[test]
    fn v4_5_a_queue_has_its_timeline_beside_its_load_and_the_runnable_load_beside_what_is_removed() {
        let (layout, cfs_rq, cpu) = (V4_5_RC1.layout(), CfsRqId(3), CpuId(1));
        let of = |line| layout.cfs_rq(cfs_rq, line);
        assert_eq!(of(CfsRqLine::Timeline), of(CfsRqLine::Load));
        assert_eq!(of(CfsRqLine::Contrib), of(CfsRqLine::Removed));
        assert_ne!(of(CfsRqLine::Avg), of(CfsRqLine::Removed));
        assert_eq!(layout.rq(cpu, RqLine::CfsTimeline), layout.rq(cpu, RqLine::Cfs));
        assert_eq!(layout.rq_runnable(cpu), layout.rq(cpu, RqLine::CfsRemoved));
        let later = V6_1.layout();
        assert_eq!(later.rq_runnable(cpu), later.rq(cpu, RqLine::CfsAvg));
    }
}
