//! Where the scheduler's objects lie in memory, as data: which fields share a cache line follows from the structures of the
//! kernel configuration and from the allocator's alignment. Nothing else in the house knows.
//!
//! Offsets are those of an x86-64 v4.5 kernel with `FAIR_GROUP_SCHED`, `CFS_BANDWIDTH` and `SCHEDSTATS`, derived by adding up
//! field sizes in include/linux/sched.h and kernel/sched/sched.h. Fields nobody else reads are left out.

use crate::sched::{CfsRqId, SeId, TaskId, TgId};
use units::CpuId;

/// Bytes of a cache line on every machine modelled so far.
pub const LINE_BYTES: u32 = 64;

/// One cache line of kernel memory. Regions keep the numbers dense, so that a directory can be an array.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Line {
    pub region: Region,
    pub index: u32,
}

/// What kind of memory a line belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Region {
    /// `struct rq` of each CPU.
    Rq,
    /// `struct task_struct`, with its `sched_entity`, and the `thread_info` flags.
    Task,
    /// A group's `cfs_rq` of one CPU.
    CfsRq,
    /// A group's `sched_entity` on one CPU.
    Se,
    /// `struct task_group`.
    TaskGroup,
    /// `struct sched_domain` and what hangs off it.
    Domain,
    /// `nohz`, the root domain's masks and other globals.
    Global,
    /// Everything of the rest of the kernel: pipes, wait queues, futex buckets. Numbered by `os`.
    Os,
}

impl Region {
    pub const ALL: [Region; 8] = [
        Region::Rq,
        Region::Task,
        Region::CfsRq,
        Region::Se,
        Region::TaskGroup,
        Region::Domain,
        Region::Global,
        Region::Os,
    ];
}

/// Lines of `struct rq`, in order of address; `struct rq` starts on a line of its own (`DEFINE_PER_CPU_SHARED_ALIGNED`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum RqLine {
    /// lock, nr_running, cpu_load[]: kept together "because remote CPUs use both" (kernel/sched/sched.h).
    Lock,
    /// nohz_flags, load, nr_switches.
    Load,
    /// cfs: load, nr_running, h_nr_running, exec_clock, min_vruntime.
    Cfs,
    /// cfs: tasks_timeline, curr, next, last, skip.
    CfsTimeline,
    /// cfs: avg, runnable_load.
    CfsAvg,
    /// cfs: tg_load_avg_contrib, removed_*.
    CfsContrib,
    /// curr, idle, stop, next_balance, prev_mm.
    Curr,
    /// clock, clock_task, nr_iowait, rd, sd, cpu_capacity.
    Clock,
    /// idle_balance, active_balance, cfs_tasks, rt_avg, idle_stamp, avg_idle.
    Balance,
    /// rq_sched_info, rq_cpu_time, yld_count, sched_count, ttwu_count, ttwu_local.
    Stats,
    /// wake_list, idle_state.
    WakeList,
    /// avg_rt (v4.19), as each `sched_avg` on a line of its own.
    AvgRt,
    /// avg_dl.
    AvgDl,
    /// avg_irq.
    AvgIrq,
    /// uclamp (v5.3).
    Uclamp,
}

/// Lines of `struct task_struct` that the scheduler touches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum TaskLine {
    /// state, flags, on_cpu, wakee_flips, last_wakee, wake_cpu, on_rq, prio.
    State,
    /// se: load, run_node, group_node, on_rq.
    Se,
    /// se: exec_start, sum_exec_runtime, vruntime, prev_sum_exec_runtime, nr_migrations, the first of its statistics.
    SeTimes,
    /// se.statistics: waiting, sleeping, blocking; which ones exactly is [`Layout::statistic`]'s affair, as in the next two.
    SeStatistics2,
    /// se.statistics: maxima, migrations.
    SeStatistics3,
    /// se.statistics: wakeups.
    SeStatistics4,
    /// se: depth, parent, cfs_rq, my_q.
    SeLinks,
    /// se.avg (`____cacheline_aligned_in_smp`).
    SeAvg,
    /// policy, nr_cpus_allowed, cpus_allowed, sched_info.
    SchedInfo,
    /// pi_lock.
    PiLock,
    /// nvcsw, nivcsw.
    Switches,
    /// thread_info: flags (TIF_NEED_RESCHED, TIF_POLLING_NRFLAG). For an idle task this is the line mwait monitors.
    ThreadInfo,
}

/// Lines of a group's `cfs_rq`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum CfsRqLine {
    Load,
    Timeline,
    Avg,
    Contrib,
}

/// Lines of a group's `sched_entity`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum SeLine {
    Load,
    Times,
    Statistics,
    Avg,
}

/// Fields of `struct task_group` that several CPUs touch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TaskGroupField {
    /// The arrays `se` and `cfs_rq`, read on every walk up the hierarchy.
    Arrays,
    Shares,
    LoadAvg,
    /// cfs_bandwidth.lock and the budget behind it.
    CfsBandwidth,
}

/// Global lines.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum GlobalLine {
    /// nohz.idle_cpus_mask, nohz.nr_cpus.
    NohzMask,
    /// nohz.next_balance, nohz.load_balancer flags.
    NohzBalance,
    /// root_domain: overload, span.
    RootDomain,
    /// jiffies and the timekeeper's sequence.
    Jiffies,
    /// rd->cpupri: the vectors in use and their counts.
    Cpupri,
}

/// Names of the lines of each object, in the order of their enumerations.
const RQ_NAMES: [&str; 15] = [
    "Lock",
    "Load",
    "Cfs",
    "CfsTimeline",
    "CfsAvg",
    "CfsContrib",
    "Curr",
    "Clock",
    "Balance",
    "Stats",
    "WakeList",
    "AvgRt",
    "AvgDl",
    "AvgIrq",
    "Uclamp",
];
const TASK_NAMES: [&str; 12] = [
    "State",
    "Se",
    "SeTimes",
    "SeStatistics2",
    "SeStatistics3",
    "SeStatistics4",
    "SeLinks",
    "SeAvg",
    "SchedInfo",
    "PiLock",
    "Switches",
    "ThreadInfo",
];
const CFS_RQ_NAMES: [&str; 4] = ["Load", "Timeline", "Avg", "Contrib"];
const SE_NAMES: [&str; 4] = ["Load", "Times", "Statistics", "Avg"];
const GLOBAL_NAMES: [&str; 5] = ["nohz.mask", "nohz.balance", "root_domain", "jiffies", "cpupri"];

/// The layout of one kernel build: what a change such as "give `load_avg` a line of its own" edits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Layout {
    /// Bytes from one `struct task_group` to the next in its slab.
    pub task_group_stride: u32,
    /// Byte offsets within `struct task_group`.
    pub task_group_arrays: u32,
    pub task_group_shares: u32,
    pub task_group_load_avg: u32,
    pub task_group_cfs_bandwidth: u32,
    /// Byte offset of `statistics` within `struct sched_entity`, which starts on a line of its own.
    pub statistics: u32,
}

/// Members of `struct sched_statistics`, by their place in it: eight bytes each.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Statistic {
    WaitStart = 0,
    WaitCount = 2,
    WaitSum = 3,
    SleepStart = 6,
    BlockStart = 9,
    ExecMax = 11,
    SliceMax = 12,
    NrFailedMigrations = 14,
    NrWakeups = 18,
    NrWakeupsLocal = 21,
    NrWakeupsAffine = 23,
}

/// From here on the global lines are the CPUs' queues of the real-time and the deadline class, two each; before them are the root
/// domains.
const FIRST_CLASS_QUEUE: u32 = 1024;
const TASK_LINES: u32 = 16;
const RQ_LINES: u32 = 16;
const CFS_RQ_LINES: u32 = 4;
const SE_LINES: u32 = 4;
/// A `struct sched_domain` with schedstats is 6 lines; each CPU has its own copy of each level.
const DOMAIN_LINES: u32 = 8;

impl Layout {
    /// `load_avg` `____cacheline_aligned`, task groups from an aligned slab cache (v4.4: b0367629acf6, v4.5).
    pub const LOAD_AVG_ALIGNED: Layout = Layout {
        task_group_stride: 512,
        task_group_arrays: 184,
        task_group_shares: 200,
        task_group_load_avg: 256,
        task_group_cfs_bandwidth: 344,
        statistics: 104,
    };

    pub fn rq(&self, cpu: CpuId, line: RqLine) -> Line {
        Line { region: Region::Rq, index: u32::from(cpu.0) * RQ_LINES + line as u32 }
    }

    /// The flags word of the idle task of `cpu`, which a polling idle loop monitors.
    pub fn idle_thread_info(&self, cpu: CpuId) -> Line {
        Line { region: Region::Rq, index: u32::from(cpu.0) * RQ_LINES + RQ_LINES - 1 }
    }

    pub fn task(&self, task: TaskId, line: TaskLine) -> Line {
        Line { region: Region::Task, index: task.0 * TASK_LINES + line as u32 }
    }

    /// The line of one of a task's statistics.
    pub fn statistic(&self, task: TaskId, statistic: Statistic) -> Line {
        let line = (self.statistics + 8 * statistic as u32) / LINE_BYTES;
        Line { region: Region::Task, index: task.0 * TASK_LINES + TaskLine::Se as u32 + line }
    }

    pub fn cfs_rq(&self, cfs_rq: CfsRqId, line: CfsRqLine) -> Line {
        Line { region: Region::CfsRq, index: cfs_rq.0 * CFS_RQ_LINES + line as u32 }
    }

    pub fn se(&self, se: SeId, line: SeLine) -> Line {
        Line { region: Region::Se, index: se.0 * SE_LINES + line as u32 }
    }

    pub fn task_group(&self, tg: TgId, field: TaskGroupField) -> Line {
        let offset = match field {
            TaskGroupField::Arrays => self.task_group_arrays,
            TaskGroupField::Shares => self.task_group_shares,
            TaskGroupField::LoadAvg => self.task_group_load_avg,
            TaskGroupField::CfsBandwidth => self.task_group_cfs_bandwidth,
        };
        Line { region: Region::TaskGroup, index: (tg.0 * self.task_group_stride + offset) / LINE_BYTES }
    }

    /// Line `line` (0: span, groups, balance intervals; 1: statistics of idle balance; ...) of a domain's memory.
    pub fn domain(&self, sd: u32, line: u32) -> Line {
        debug_assert!(line < DOMAIN_LINES);
        Line { region: Region::Domain, index: sd * DOMAIN_LINES + line }
    }

    /// What a line is, for people: `cpu3 rq.Lock`, `task 5 SeAvg`. Lines of `os` and of domains go by number.
    pub fn describe(&self, line: Line) -> String {
        let (object, offset) = match line.region {
            Region::Rq => (line.index / RQ_LINES, line.index % RQ_LINES),
            Region::Task => (line.index / TASK_LINES, line.index % TASK_LINES),
            Region::CfsRq => (line.index / CFS_RQ_LINES, line.index % CFS_RQ_LINES),
            Region::Se => (line.index / SE_LINES, line.index % SE_LINES),
            Region::Domain => (line.index / DOMAIN_LINES, line.index % DOMAIN_LINES),
            Region::TaskGroup | Region::Global | Region::Os => (line.index, 0),
        };
        match line.region {
            Region::Rq if offset == RQ_LINES - 1 => format!("cpu{object} idle flags"),
            Region::Rq => format!("cpu{object} rq.{}", RQ_NAMES[offset as usize]),
            Region::Task => format!("task {object} {}", TASK_NAMES[offset as usize]),
            Region::CfsRq => format!("cfs_rq {object} {}", CFS_RQ_NAMES[offset as usize]),
            Region::Se => format!("se {object} {}", SE_NAMES[offset as usize]),
            Region::Domain => format!("domain {object} line {offset}"),
            Region::TaskGroup => format!("task_group line {object}"),
            Region::Global if object >= FIRST_CLASS_QUEUE => {
                let class = ["rt", "dl"][(object % 2) as usize];
                format!("cpu{} rq.{class}", (object - FIRST_CLASS_QUEUE) / 2)
            }
            Region::Global => match GLOBAL_NAMES.get(object as usize) {
                Some(name) => name.to_string(),
                None => format!("root_domain {}", object as usize - GLOBAL_NAMES.len() + 1),
            },
            Region::Os => format!("os line {object}"),
        }
    }

    /// A CPU's `rq->rt`: highest_prio, rt_nr_running, overloaded, rt_time. The lists behind them are this CPU's own. It is kept
    /// apart from the other lines of `struct rq`, whose numbers are taken.
    pub fn rt_rq(&self, cpu: CpuId) -> Line {
        Line { region: Region::Global, index: FIRST_CLASS_QUEUE + 2 * u32::from(cpu.0) }
    }

    /// A CPU's `rq->dl`: earliest_dl, dl_nr_running, overloaded.
    pub fn dl_rq(&self, cpu: CpuId) -> Line {
        Line { region: Region::Global, index: FIRST_CLASS_QUEUE + 2 * u32::from(cpu.0) + 1 }
    }

    pub fn global(&self, line: GlobalLine) -> Line {
        Line { region: Region::Global, index: line as u32 }
    }

    /// `overload` and `span` of a root domain. The first is every machine's, others come with partitions.
    pub fn root_domain(&self, number: u32) -> Line {
        match number {
            0 => self.global(GlobalLine::RootDomain),
            _ => Line { region: Region::Global, index: GLOBAL_NAMES.len() as u32 + number - 1 },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_aligned_load_avg_shares_its_line_with_nothing() {
        let layout = Layout::LOAD_AVG_ALIGNED;
        for tg in 0..4 {
            let line = |field| layout.task_group(TgId(tg), field);
            assert_ne!(line(TaskGroupField::LoadAvg), line(TaskGroupField::Shares));
            assert_ne!(line(TaskGroupField::LoadAvg), line(TaskGroupField::Arrays));
        }
    }

    #[test]
    fn the_first_statistics_share_a_line_with_vruntime_and_the_last_never_reach_the_links() {
        let layout = Layout::LOAD_AVG_ALIGNED;
        let task = TaskId(7);
        assert_eq!(layout.statistic(task, Statistic::WaitStart), layout.task(task, TaskLine::SeTimes));
        assert_eq!(layout.statistic(task, Statistic::SleepStart), layout.task(task, TaskLine::SeStatistics2));
        assert_eq!(layout.statistic(task, Statistic::NrWakeups), layout.task(task, TaskLine::SeStatistics3));
        assert_eq!(layout.statistic(task, Statistic::NrWakeupsAffine), layout.task(task, TaskLine::SeStatistics4));
        // 27 of eight bytes: the last one ends where the links' line begins.
        assert!(layout.statistics + 27 * 8 <= 5 * LINE_BYTES);
    }

    #[test]
    fn lines_have_names() {
        let layout = Layout::LOAD_AVG_ALIGNED;
        assert_eq!(layout.describe(layout.rq(CpuId(3), RqLine::WakeList)), "cpu3 rq.WakeList");
        assert_eq!(layout.describe(layout.task(TaskId(5), TaskLine::ThreadInfo)), "task 5 ThreadInfo");
        assert_eq!(layout.describe(layout.idle_thread_info(CpuId(2))), "cpu2 idle flags");
        assert_eq!(layout.describe(layout.global(GlobalLine::Jiffies)), "jiffies");
        assert_eq!(layout.describe(layout.rt_rq(CpuId(3))), "cpu3 rq.rt");
        assert_eq!(layout.describe(layout.dl_rq(CpuId(0))), "cpu0 rq.dl");
    }

    #[test]
    fn objects_do_not_overlap() {
        let layout = Layout::LOAD_AVG_ALIGNED;
        assert!((RqLine::Uclamp as u32) < RQ_LINES - 1);
        assert!((TaskLine::ThreadInfo as u32) < TASK_LINES);
        assert_ne!(layout.rq(CpuId(0), RqLine::WakeList), layout.idle_thread_info(CpuId(0)));
        assert_ne!(layout.idle_thread_info(CpuId(0)), layout.rq(CpuId(1), RqLine::Lock));
    }
}
