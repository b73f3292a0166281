//! Where the scheduler's objects are in memory, as data. Which fields share a cache line follows from the kernel's structures in
//! one configuration and from the allocator's alignment. No other module knows this.
//!
//! Offsets are those of x86-64 kernels with `FAIR_GROUP_SCHED`, `CFS_BANDWIDTH` and `SCHEDSTATS` (v6.1 and v6.12 as Debian builds
//! them: with `SCHED_CORE` and `NUMA_BALANCING`, without `UCLAMP_TASK`; for v7.2 see there), derived by adding up field sizes in
//! include/linux/sched.h and kernel/sched/sched.h. Fields that nothing else reads are left out.

mod names;
mod rules;
mod structures;
mod task_group;
#[cfg(test)]
mod tests;

pub use names::Part;
pub use rules::{LayoutRules, PerCpuAreas, TaskGroupCache, TgLoadAvgLine};
pub use task_group::{TaskGroupField, TaskGroupStructure};

use crate::sched::{CfsRqId, SeId, TaskId, TgId};
use task_group::TaskGroupLayout;
use units::{CpuId, NR_CPUS};

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
    /// The rest of the kernel: pipes, wait queues, futex buckets. Numbered by `os`.
    Os,
    /// latencytop's lock, then `struct psi_group_cpu` of each group and CPU.
    Statistics,
    /// Cache-aware scheduling (v7.2): the lines of each CPU and each process, see [`CacheLine`].
    SchedCache,
}

impl Region {
    pub const ALL: [Region; 10] = [
        Region::Rq,
        Region::Task,
        Region::CfsRq,
        Region::Se,
        Region::TaskGroup,
        Region::Domain,
        Region::Global,
        Region::Os,
        Region::Statistics,
        Region::SchedCache,
    ];
}

/// Lines of `struct rq`, in order of address; `struct rq` starts on a line of its own (`DEFINE_PER_CPU_SHARED_ALIGNED`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum RqLine {
    /// lock.
    Lock,
    /// nohz_flags, load, nr_switches.
    Load,
    /// cfs: load, nr_running, h_nr_running, exec_clock, min_vruntime.
    Cfs,
    /// cfs: tasks_timeline, curr, next, last, skip.
    CfsTimeline,
    /// cfs: avg, runnable_load.
    CfsAvg,
    /// cfs: tg_load_avg_contrib, h_load.
    CfsContrib,
    /// curr, idle, stop, next_balance, prev_mm.
    Curr,
    /// clock, clock_task, clock_pelt, nr_iowait.
    Clock,
    /// idle_balance, active_balance, cfs_tasks, rt_avg.
    Balance,
    /// rq_sched_info, rq_cpu_time.
    Stats,
    /// wake_list, idle_state.
    WakeList,
    /// avg_rt (v4.19); like each `sched_avg`, on a line of its own.
    AvgRt,
    /// avg_dl.
    AvgDl,
    /// avg_irq.
    AvgIrq,
    /// uclamp (v5.3).
    Uclamp,
    /// rd, sd, cpu_capacity.
    Capacity,
    /// cfs: removed.
    CfsRemoved,
    /// idle_stamp, avg_idle, max_idle_balance_cost.
    Idle,
    /// nr_running, cpu_load[]: kept with the lock "because remote CPUs use both" (kernel/sched/sched.h), until v7.2 separates
    /// them.
    NrRunning,
    /// ttwu_pending (v5.8).
    Pending,
    /// yld_count, sched_count, sched_goidle, ttwu_count, ttwu_local.
    Counts,
}

/// Lines of `struct task_struct` that the scheduler touches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum TaskLine {
    /// state, flags, on_cpu.
    State,
    /// se: load, run_node, group_node, on_rq.
    Se,
    /// se: exec_start, sum_exec_runtime, vruntime, prev_sum_exec_runtime, nr_migrations, the first of its statistics.
    SeTimes,
    /// se.statistics: waiting, sleeping, blocking; [`Layout::statistic`] decides which exactly, also for the next two.
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
    /// The last of its statistics, if they begin on a line of their own.
    SeStatistics5,
    /// on_rq; wake_cpu and prio until v7.2.
    OnRq,
    /// wakee_flips, last_wakee, recent_used_cpu.
    Wakees,
}

/// Lines of a group's `cfs_rq`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum CfsRqLine {
    Load,
    Timeline,
    Avg,
    Contrib,
    Removed,
}

/// Lines of a group's `sched_entity`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum SeLine {
    Load,
    Times,
    Statistics,
    Avg,
    /// parent, cfs_rq, my_q.
    Links,
}

/// Lines of cache-aware scheduling. The first three belong to a CPU, the last one to a process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum CacheLine {
    /// rq: cpu_epoch_lock (which is aligned to a line of its own), cpu_runtime, cpu_epoch.
    Epoch,
    /// sched_cache_time, of all processes.
    Time,
    /// sd->llc_counts of the lowest domain.
    Counts,
    /// sched_cache_group.
    Group,
}

/// Global lines.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum GlobalLine {
    /// nohz.idle_cpus_mask: memory of its own (`CPUMASK_OFFSTACK`), or as many bytes as a line has before the rest of `nohz`.
    NohzMask,
    /// nohz.nr_cpus, nohz.next_balance, since v4.17 nohz.has_blocked.
    NohzBalance,
    /// root_domain: overload, span.
    RootDomain,
    /// jiffies, aligned to a line of its own.
    Jiffies,
    /// rd->cpupri: the vectors in use and their counts.
    Cpupri,
    /// jiffies_lock, and beside it last_jiffies_update.
    JiffiesLock,
    /// tk_core: its sequence and what ktime_get() reads.
    Timekeeper,
    /// tk_core: the offsets between clocks and the sequence of their changes.
    TimekeeperOffsets,
    /// rcu_state: the numbers of grace periods.
    RcuState,
}

impl GlobalLine {
    /// The line, the same in every layout.
    #[inline]
    pub const fn line(self) -> Line {
        Line { region: Region::Global, index: self as u32 }
    }
}

/// `balancing`, since v6.10 `sched_balance_running`: taken by a CPU that balances between nodes.
pub const BALANCE_RUNNING: Line = Line { region: Region::Global, index: FIRST_RCU_LEAF - 1 };

/// The `rcu_node` to which `cpu` reports: its lock, the CPUs that it waits for, the numbers of grace periods.
#[inline]
pub const fn rcu_leaf(cpu: CpuId) -> Line {
    Line { region: Region::Global, index: FIRST_RCU_LEAF + cpu.0 as u32 / RCU_FANOUT_LEAF }
}

/// Where the lines of [`SeLine`] are in a task, and those of [`CfsRqLine`] in `struct rq`. A task's statistics are spread
/// ([`Layout::statistic`]): only the first of their lines is listed.
const ENTITY_IN_TASK: [TaskLine; NR_SE_LINES] =
    [TaskLine::Se, TaskLine::SeTimes, TaskLine::SeStatistics2, TaskLine::SeAvg, TaskLine::SeLinks];
const QUEUE_IN_RQ: [RqLine; NR_CFS_RQ_LINES] =
    [RqLine::Cfs, RqLine::CfsTimeline, RqLine::CfsAvg, RqLine::CfsContrib, RqLine::CfsRemoved];

const NR_RQ_LINES: usize = 21;
const NR_TASK_LINES: usize = 15;
const NR_CFS_RQ_LINES: usize = 5;
const NR_SE_LINES: usize = 5;
const NR_GLOBAL_LINES: u32 = 9;
const NR_CACHE_LINES: u32 = 4;

/// The structures of one kernel version, as its headers declare them for one configuration.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Structures {
    pub task_group: TaskGroupStructure,
    /// Byte offset of `statistics` within `struct sched_entity`, which starts on a line of its own. If a task has them elsewhere
    /// (v5.16), as if they followed the entity's first two lines.
    pub statistics: u32,
    /// Bytes of statistics between `block_max` and `exec_max`: eight for `sum_block_runtime` (v5.16).
    pub statistics_behind_block_max: u32,
    /// Bytes of statistics between `slice_max` and `nr_failed_migrations_affine`: eight for `nr_migrations_cold`, until v7.3.
    pub statistics_behind_slice_max: u32,
    /// Byte offset of the statistics inside a group's entity; `None`: they are one separate line ([`SeLine::Statistics`]).
    group_statistics: Option<u32>,
    /// Whether `runnable_load_avg` is on the line of `tg_load_avg_contrib`, not on that of the averages before it.
    runnable_with_contrib: bool,
    /// The line of its object on which each member of [`RqLine`], [`TaskLine`], [`CfsRqLine`] and [`SeLine`] is: those with the
    /// same number share a line.
    rq: [u8; NR_RQ_LINES],
    task: [u8; NR_TASK_LINES],
    cfs_rq: [u8; NR_CFS_RQ_LINES],
    se: [u8; NR_SE_LINES],
    /// Lines from one object to the next of its kind, not counting those left out.
    rq_lines: u32,
    cfs_rq_lines: u32,
    se_lines: u32,
    /// Bytes of `struct rq` after its last full line: the next one begins there, unless it is aligned.
    rq_tail: u32,
}

/// Where everything is in one kernel build: its structures, laid out as [`LayoutRules`] says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Layout {
    of: Structures,
    task_group: TaskGroupLayout,
    /// Byte offset of each member of [`RqLine`] within its `struct rq`, and bytes from one `struct rq` to the next.
    rq: [u16; NR_RQ_LINES],
    rq_bytes: u32,
    /// Where an entity's lines are, in lines: relative to the first of the task to which it belongs, and to the first of a
    /// group's entity. Below, where a queue's are, in bytes: relative to its `struct rq`, and to the start of a group's queue.
    /// They are added to [`Layout::first_of_se`] and [`Layout::first_of_cfs_rq`].
    entity: [[u8; 2]; NR_SE_LINES],
    queue: [[u16; 2]; NR_CFS_RQ_LINES],
    /// The flags words of idle tasks: region, first line, and lines from one CPU's to the next.
    idle_flags: (Region, u32, u32),
    /// See [`Structures::runnable_with_contrib`].
    runnable_with_contrib: bool,
}

/// Members of `struct sched_statistics`, by their position among those that every version has: eight bytes each.
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
    NrFailedMigrations = 13,
    NrWakeups = 17,
    NrWakeupsLocal = 20,
    NrWakeupsAffine = 22,
}

impl Structures {
    /// Byte offset of a member within `struct sched_statistics`.
    fn within_statistics(&self, statistic: Statistic) -> u32 {
        let behind = |last: Statistic, bytes: u32| if statistic as u8 > last as u8 { bytes } else { 0 };
        8 * statistic as u32
            + behind(Statistic::BlockStart, self.statistics_behind_block_max)
            + behind(Statistic::SliceMax, self.statistics_behind_slice_max)
    }
}

/// From here on the global lines are RCU's leaves, one for so many CPUs each (CONFIG_RCU_FANOUT_LEAF).
const FIRST_RCU_LEAF: u32 = 512;
const RCU_FANOUT_LEAF: u32 = 16;
/// From here on the global lines are the real-time and deadline queues of the CPUs, two lines each.
const FIRST_CLASS_QUEUE: u32 = FIRST_RCU_LEAF + NR_CPUS as u32 / RCU_FANOUT_LEAF;
/// After the lines of as many CPUs as possible: flags words of idle tasks, if they are not beside the runqueues.
const FIRST_IDLE_FLAGS: u32 = FIRST_CLASS_QUEUE + 2 * NR_CPUS as u32;
/// After those the root domains of partitions, of which there may be as many as CPUs.
const FIRST_ROOT_DOMAIN: u32 = FIRST_IDLE_FLAGS + NR_CPUS as u32;
const TASK_LINES: u32 = 16;
/// A `struct sched_domain` with schedstats is 6 lines; each CPU has its own copy of each level.
const DOMAIN_LINES: u32 = 8;

impl Layout {
    pub fn new(of: &Structures, rules: LayoutRules) -> Layout {
        let mut rq = of.rq.map(|line| u16::from(line) * LINE_BYTES as u16);
        // The last line of an object belongs to the idle task, which is no part of it.
        let mut rq_bytes = of.rq_lines * LINE_BYTES;
        let mut idle_flags = (Region::Rq, of.rq_lines - 1, of.rq_lines);
        if rules.percpu_areas == PerCpuAreas::Packed && of.rq_tail != 0 {
            // wake_list ends the structure: what follows on its line belongs to the next CPU.
            let (last, end) = (rq_bytes - LINE_BYTES, rq[RqLine::WakeList as usize]);
            for line in rq.iter_mut().filter(|line| **line == end) {
                *line = last as u16;
            }
            rq_bytes = last + of.rq_tail;
            idle_flags = (Region::Global, FIRST_IDLE_FLAGS, 1);
        }
        let task_group = TaskGroupLayout::new(of.task_group, rules.tg_load_avg, rules.task_group_cache);
        let entity = std::array::from_fn(|line| [of.task[ENTITY_IN_TASK[line] as usize], of.se[line]]);
        let bytes = |line: u8| u16::from(line) * LINE_BYTES as u16;
        let queue = std::array::from_fn(|line| [rq[QUEUE_IN_RQ[line] as usize], bytes(of.cfs_rq[line])]);
        let runnable_with_contrib = of.runnable_with_contrib;
        Layout { of: *of, task_group, rq, rq_bytes, entity, queue, idle_flags, runnable_with_contrib }
    }

    #[inline]
    pub fn rq(&self, cpu: CpuId, line: RqLine) -> Line {
        let address = u32::from(cpu.0) * self.rq_bytes + u32::from(self.rq[line as usize]);
        Line { region: Region::Rq, index: address / LINE_BYTES }
    }

    /// The flags word of the idle task of `cpu`, which a polling idle loop monitors.
    #[inline]
    pub fn idle_thread_info(&self, cpu: CpuId) -> Line {
        let (region, first, lines) = self.idle_flags;
        Line { region, index: first + u32::from(cpu.0) * lines }
    }

    pub fn task(&self, task: TaskId, line: TaskLine) -> Line {
        Line { region: Region::Task, index: task.0 * TASK_LINES + u32::from(self.of.task[line as usize]) }
    }

    /// The line of one of a task's statistics.
    pub fn statistic(&self, task: TaskId, statistic: Statistic) -> Line {
        let line = (self.of.statistics + self.of.within_statistics(statistic)) / LINE_BYTES;
        Line { region: Region::Task, index: task.0 * TASK_LINES + TaskLine::Se as u32 + line }
    }

    /// The line of one of the statistics of a group's entity, whose lines begin with `first`.
    pub fn group_statistic(&self, first: u32, statistic: Statistic) -> Line {
        match self.of.group_statistics {
            Some(statistics) => {
                let line = (statistics + self.of.within_statistics(statistic)) / LINE_BYTES;
                Line { region: Region::Se, index: first + line }
            }
            None => self.line_of_se(first, true, SeLine::Statistics),
        }
    }

    /// Whether `runnable_load_avg` is on another line than the averages of its queue: on [`CfsRqLine::Contrib`].
    #[inline]
    pub fn runnable_is_apart(&self) -> bool {
        self.runnable_with_contrib
    }

    /// The line of `p->on_rq`, if it is another one than that of `p->state`.
    #[inline]
    pub fn on_rq_apart(&self, task: TaskId) -> Option<Line> {
        let apart = self.of.task[TaskLine::OnRq as usize] != self.of.task[TaskLine::State as usize];
        apart.then(|| self.task(task, TaskLine::OnRq))
    }

    /// Where `runnable_load_avg` of a CPU's root queue lies.
    #[inline]
    pub fn rq_runnable(&self, cpu: CpuId) -> Line {
        self.rq(cpu, if self.runnable_with_contrib { RqLine::CfsContrib } else { RqLine::CfsAvg })
    }

    /// A line of a group's queue on one CPU.
    pub fn cfs_rq(&self, cfs_rq: CfsRqId, line: CfsRqLine) -> Line {
        self.line_of_cfs_rq(self.first_of_cfs_rq(cfs_rq, None), true, line)
    }

    /// A line of a group's entity on one CPU.
    pub fn se(&self, se: SeId, line: SeLine) -> Line {
        self.line_of_se(self.first_of_se(se, None), true, line)
    }

    /// Where the lines of an entity begin, `task`'s or a group's: the base that [`Layout::line_of_se`] takes.
    pub fn first_of_se(&self, se: SeId, task: Option<TaskId>) -> u32 {
        task.map_or(se.0 * self.of.se_lines, |task| task.0 * TASK_LINES)
    }

    /// A line of an entity, a task's or a group's: every level of every walk needs several, so this is only a lookup in a row of
    /// a table.
    #[inline(always)]
    pub fn line_of_se(&self, first: u32, group: bool, line: SeLine) -> Line {
        let region = if group { Region::Se } else { Region::Task };
        Line { region, index: first + u32::from(self.entity[line as usize][usize::from(group)]) }
    }

    /// Where the lines of a queue begin, the root queue of CPU `root` or a group's.
    pub fn first_of_cfs_rq(&self, cfs_rq: CfsRqId, root: Option<CpuId>) -> u32 {
        root.map_or(cfs_rq.0 * self.of.cfs_rq_lines * LINE_BYTES, |cpu| u32::from(cpu.0) * self.rq_bytes)
    }

    /// A line of a queue, a root queue or a group's.
    #[inline(always)]
    pub fn line_of_cfs_rq(&self, first: u32, group: bool, line: CfsRqLine) -> Line {
        let region = if group { Region::CfsRq } else { Region::Rq };
        let address = first + u32::from(self.queue[line as usize][usize::from(group)]);
        Line { region, index: address / LINE_BYTES }
    }

    #[inline]
    pub fn task_group(&self, tg: TgId, field: TaskGroupField) -> Line {
        self.task_group.line(tg, field)
    }

    /// Line `line` (0: span, groups, balance intervals; 1: statistics of idle balance; ...) of a domain's memory.
    pub fn domain(&self, sd: u32, line: u32) -> Line {
        debug_assert!(line < DOMAIN_LINES);
        Line { region: Region::Domain, index: sd * DOMAIN_LINES + line }
    }

    /// A CPU's `rq->rt`: highest_prio, rt_nr_running, overloaded, rt_time. Only this CPU touches the lists behind them. It is
    /// kept apart from the other lines of `struct rq`, whose numbers are taken.
    pub fn rt_rq(&self, cpu: CpuId) -> Line {
        Line { region: Region::Global, index: FIRST_CLASS_QUEUE + 2 * u32::from(cpu.0) }
    }

    /// A CPU's `rq->dl`: earliest_dl, dl_nr_running, overloaded.
    pub fn dl_rq(&self, cpu: CpuId) -> Line {
        Line { region: Region::Global, index: FIRST_CLASS_QUEUE + 2 * u32::from(cpu.0) + 1 }
    }

    /// A line of cache-aware scheduling of the CPU or the process with that number.
    #[inline]
    pub fn sched_cache(&self, number: u32, line: CacheLine) -> Line {
        Line { region: Region::SchedCache, index: number * NR_CACHE_LINES + line as u32 }
    }

    pub fn global(&self, line: GlobalLine) -> Line {
        line.line()
    }

    /// `overload` and `span` of a root domain. The first root domain exists on every machine, others come with partitions.
    pub fn root_domain(&self, number: u32) -> Line {
        match number {
            0 => self.global(GlobalLine::RootDomain),
            _ => Line { region: Region::Global, index: FIRST_ROOT_DOMAIN + number - 1 },
        }
    }
}
