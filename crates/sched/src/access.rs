//! The accessors through which the scheduler's functions touch memory; the machine decides what each access costs.
//!
//! Charges come in two kinds. `enter`/`leave`, through the [`fentry`](fentry::fentry) attribute, charge a function's straight-line work.
//! The accessors below charge a cache line that is read, written or updated atomically, or a lock taken or released. The algorithms call
//! them where the kernel first touches the line in a function; lines that only one CPU ever uses are not charged.

mod apart;
mod balance;
mod cache;
mod glance;
mod level;
mod path;
mod statistics;
mod task_group;

pub(crate) use glance::Glance;
pub(crate) use level::LevelLines;
pub use path::Path;

use crate::arch::Arch;
use crate::core::Sched;
use crate::layout::{CfsRqLine, GlobalLine, Line, RqLine, SeLine, Statistic, TaskLine};
use crate::sched::{CfsRqId, SeId, TaskId};
use crate::topology::{SdId, SdsId, SgcId};
use units::CpuId;

impl<A: Arch> Sched<A> {
    #[inline]
    pub(crate) fn enter(&mut self, path: Path) {
        self.arch.enter(self.this_cpu, path);
    }

    #[inline]
    pub(crate) fn leave(&mut self) {
        self.arch.leave(self.this_cpu);
    }

    /// Charges a function that is too small to have a body of its own here.
    #[inline]
    pub(crate) fn path(&mut self, path: Path) {
        self.arch.path(self.this_cpu, path);
    }

    /// kernel/sched/clock.h: local_clock(). In ns.
    #[inline]
    pub(crate) fn local_clock(&mut self) -> u64 {
        self.path(Path::sched_clock_cpu);
        self.arch.sched_clock(self.this_cpu).0
    }

    #[inline(always)]
    fn read(&mut self, line: Line) {
        self.arch.read(self.this_cpu, line);
    }

    #[inline(always)]
    fn write(&mut self, line: Line) {
        self.arch.write(self.this_cpu, line);
    }

    // The queues of the real-time classes, and what CPUs know of each other's.

    /// Changes a CPU's `rt_rq`.
    #[inline]
    pub(crate) fn write_rq_rt(&mut self, cpu: CpuId) {
        self.write(self.layout.rt_rq(cpu));
    }

    /// Looks at a CPU's `rt.highest_prio`.
    #[inline]
    pub(crate) fn read_rq_rt(&mut self, cpu: CpuId) {
        self.read(self.layout.rt_rq(cpu));
    }

    /// Changes a CPU's `dl_rq`.
    #[inline]
    pub(crate) fn write_rq_dl(&mut self, cpu: CpuId) {
        self.write(self.layout.dl_rq(cpu));
    }

    /// Looks at a CPU's `dl.earliest_dl`.
    #[inline]
    pub(crate) fn read_rq_dl(&mut self, cpu: CpuId) {
        self.read(self.layout.dl_rq(cpu));
    }

    /// Looks at the vectors of `rd->cpupri`.
    #[inline]
    pub(crate) fn read_cpupri(&mut self) {
        self.read(self.layout.global(GlobalLine::Cpupri));
    }

    /// Changes a vector of `rd->cpupri` and its count.
    #[inline]
    pub(crate) fn atomic_cpupri(&mut self) {
        self.arch.atomic(self.this_cpu, self.layout.global(GlobalLine::Cpupri));
    }

    // Locks.

    /// kernel/sched/sched.h: rq_lock().
    #[inline]
    pub(crate) fn rq_lock(&mut self, cpu: CpuId) {
        self.arch.lock(self.this_cpu, self.layout.rq(cpu, RqLine::Lock));
    }

    /// kernel/sched/sched.h: rq_unlock().
    #[inline]
    pub(crate) fn rq_unlock(&mut self, cpu: CpuId) {
        self.arch.unlock(self.this_cpu, self.layout.rq(cpu, RqLine::Lock));
    }

    /// `raw_spin_lock(&p->pi_lock)`.
    #[inline]
    pub(crate) fn pi_lock(&mut self, p: TaskId) {
        self.arch.lock(self.this_cpu, self.layout.task(p, TaskLine::PiLock));
    }

    #[inline]
    pub(crate) fn pi_unlock(&mut self, p: TaskId) {
        self.arch.unlock(self.this_cpu, self.layout.task(p, TaskLine::PiLock));
    }

    // `p->on_cpu`, which acts as a lock: a waker waits until the CPU that switches away from the task has finished with it.

    /// __schedule() takes `p` off its queue.
    #[inline]
    pub(crate) fn begin_off_cpu(&mut self, p: TaskId) {
        self.arch.lock(self.this_cpu, self.layout.task(p, TaskLine::State));
    }

    /// finish_lock_switch(): `p->on_cpu = 0`.
    #[inline]
    pub(crate) fn finish_off_cpu(&mut self, p: TaskId) {
        self.write(self.layout.task(p, TaskLine::State));
        self.arch.unlock(self.this_cpu, self.layout.task(p, TaskLine::State));
        self.task[p].off_cpu_at = self.arch.sched_clock(self.this_cpu).0;
    }

    /// `smp_cond_acquire(!p->on_cpu)`, then `p->state = TASK_WAKING`.
    #[inline]
    pub(crate) fn wait_until_off_cpu(&mut self, p: TaskId) {
        self.arch.lock(self.this_cpu, self.layout.task(p, TaskLine::State));
        self.arch.unlock(self.this_cpu, self.layout.task(p, TaskLine::State));
    }

    // struct rq.

    /// Looks at a CPU's `nr_running` and `cpu_load[]`, which share a line.
    #[inline]
    pub(crate) fn read_rq_load(&mut self, cpu: CpuId) {
        self.read(self.layout.rq(cpu, RqLine::NrRunning));
    }

    /// Looks at what `source_load()` and `target_load()` estimate from: the current load and, with an index, an average of it.
    #[inline]
    pub(crate) fn read_cpu_load(&mut self, cpu: CpuId, index: u32) {
        self.read_rq_runnable(cpu);
        if index > 0 {
            self.read_rq_load(cpu);
        }
    }

    /// Looks at a CPU's root `cfs_rq`: `load`, `nr_running`, `h_nr_running`.
    #[inline]
    pub(crate) fn read_rq_cfs(&mut self, cpu: CpuId) {
        self.read(self.layout.rq(cpu, RqLine::Cfs));
    }

    /// Looks at a CPU's capacity and domain pointers.
    #[inline]
    pub(crate) fn read_rq_capacity(&mut self, cpu: CpuId) {
        self.read(self.layout.rq(cpu, RqLine::Capacity));
    }

    /// Looks at `clock_idle` and `clock_pelt_idle`.
    #[inline]
    pub(crate) fn read_rq_clock(&mut self, cpu: CpuId) {
        self.read(self.layout.rq(cpu, RqLine::Clock));
    }

    /// Looks at `curr` of a CPU.
    #[inline]
    pub(crate) fn read_rq_curr(&mut self, cpu: CpuId) {
        self.read(self.layout.rq(cpu, RqLine::Curr));
    }

    /// Changes `curr`.
    #[inline]
    pub(crate) fn write_rq_curr(&mut self, cpu: CpuId) {
        self.write(self.layout.rq(cpu, RqLine::Curr));
    }

    /// Changes `clock` and `clock_task`.
    #[inline]
    pub(crate) fn write_rq_clock(&mut self, cpu: CpuId) {
        self.write(self.layout.rq(cpu, RqLine::Clock));
    }

    /// Changes `nr_running` or `cpu_load[]`.
    #[inline]
    pub(crate) fn write_rq_load(&mut self, cpu: CpuId) {
        self.write(self.layout.rq(cpu, RqLine::NrRunning));
    }

    /// Looks at `nohz_flags`.
    #[inline]
    pub(crate) fn read_rq_weight(&mut self, cpu: CpuId) {
        self.read(self.layout.rq(cpu, RqLine::Load));
    }

    /// Changes `rq.load` or `nr_switches`.
    #[inline]
    pub(crate) fn write_rq_weight(&mut self, cpu: CpuId) {
        self.write(self.layout.rq(cpu, RqLine::Load));
    }

    /// Changes `cfs_tasks`, `active_balance`.
    #[inline]
    pub(crate) fn write_rq_balance(&mut self, cpu: CpuId) {
        self.write(self.layout.rq(cpu, RqLine::Balance));
    }

    /// Changes `idle_stamp`, `avg_idle`.
    #[inline]
    pub(crate) fn write_rq_idle(&mut self, cpu: CpuId) {
        self.write(self.layout.rq(cpu, RqLine::Idle));
    }

    /// Looks at `idle_stamp` of a CPU.
    #[inline]
    pub(crate) fn read_rq_idle(&mut self, cpu: CpuId) {
        self.read(self.layout.rq(cpu, RqLine::Idle));
    }

    /// Changes `avg_rt`, which has a line of its own since v4.19, as have the next two.
    #[inline]
    pub(crate) fn write_rq_avg_rt(&mut self, cpu: CpuId) {
        self.write(self.layout.rq(cpu, RqLine::AvgRt));
    }

    /// Changes `avg_dl`.
    #[inline]
    pub(crate) fn write_rq_avg_dl(&mut self, cpu: CpuId) {
        self.write(self.layout.rq(cpu, RqLine::AvgDl));
    }

    /// Changes `avg_irq`.
    #[inline]
    pub(crate) fn write_rq_avg_irq(&mut self, cpu: CpuId) {
        self.write(self.layout.rq(cpu, RqLine::AvgIrq));
    }

    /// Changes a CPU's `rq_sched_info`.
    #[inline]
    pub(crate) fn write_rq_stats(&mut self, cpu: CpuId) {
        self.write(self.layout.rq(cpu, RqLine::Stats));
    }

    /// Changes the counters behind `rq_sched_info`: `yld_count`, `sched_count`, `sched_goidle`, `ttwu_count`, `ttwu_local`.
    #[inline]
    pub(crate) fn write_rq_counts(&mut self, cpu: CpuId) {
        self.write(self.layout.rq(cpu, RqLine::Counts));
    }

    /// kernel/sched/sched.h: idle_set_state(): changes `idle_state`.
    #[inline]
    pub(crate) fn write_idle_state(&mut self, cpu: CpuId) {
        self.write(self.layout.rq(cpu, RqLine::WakeList));
    }

    /// Changes `uclamp[]`.
    #[inline]
    pub(crate) fn write_rq_uclamp(&mut self, cpu: CpuId) {
        self.write(self.layout.rq(cpu, RqLine::Uclamp));
    }

    /// llist_add() on `wake_list`.
    #[inline]
    pub(crate) fn atomic_wake_list(&mut self, cpu: CpuId) {
        self.arch.atomic(self.this_cpu, self.layout.rq(cpu, RqLine::WakeList));
    }

    /// The flags word of whatever runs on `cpu`: TIF_NEED_RESCHED.
    #[inline]
    pub(crate) fn write_need_resched(&mut self, cpu: CpuId) {
        let line = match self.rq[cpu].curr {
            Some(p) => self.layout.task(p, TaskLine::ThreadInfo),
            None => self.layout.idle_thread_info(cpu),
        };
        self.arch.atomic(self.this_cpu, line);
    }

    // struct task_struct.

    /// Looks at `state`, `on_cpu`.
    #[inline]
    pub(crate) fn read_task(&mut self, p: TaskId) {
        self.read(self.layout.task(p, TaskLine::State));
    }

    /// Changes one of these.
    #[inline]
    pub(crate) fn write_task(&mut self, p: TaskId) {
        self.write(self.layout.task(p, TaskLine::State));
    }

    /// Looks at `policy`, `cpus_allowed`.
    #[inline]
    pub(crate) fn read_task_policy(&mut self, p: TaskId) {
        self.read(self.layout.task(p, TaskLine::SchedInfo));
    }

    /// Changes `sched_info`.
    #[inline]
    pub(crate) fn write_sched_info(&mut self, p: TaskId) {
        self.write(self.layout.task(p, TaskLine::SchedInfo));
    }

    /// Changes `nvcsw`, `nivcsw`.
    #[inline]
    pub(crate) fn write_switches(&mut self, p: TaskId) {
        self.write(self.layout.task(p, TaskLine::Switches));
    }

    // struct sched_entity.

    /// One of an entity's lines, a task's or a group's.
    #[inline(always)]
    fn se_line(&self, se: SeId, line: SeLine) -> Line {
        let entity = &self.se[se];
        self.layout.line_of_se(entity.first_line, entity.my_q.is_some(), line)
    }

    /// Changes `load`, `h_load`, `on_rq` (which is on the next line since v7.2), `run_node`.
    #[inline]
    pub(crate) fn write_se(&mut self, se: SeId) {
        self.write(self.se_line(se, SeLine::Load));
    }

    /// [`Sched::write_se`] of a group's entity.
    #[inline(always)]
    pub(crate) fn write_group_se(&mut self, se: SeId) {
        self.write(self.layout.line_of_se(self.se[se].first_line, true, SeLine::Load));
    }

    /// Changes `exec_start`, `sum_exec_runtime`, `vruntime`.
    #[inline]
    pub(crate) fn write_se_times(&mut self, se: SeId) {
        self.write(self.se_line(se, SeLine::Times));
    }

    /// Changes `avg`.
    #[inline]
    pub(crate) fn write_se_avg(&mut self, se: SeId) {
        self.write(self.se_line(se, SeLine::Avg));
    }

    /// Looks at `avg`.
    #[inline]
    pub(crate) fn read_se_avg(&mut self, se: SeId) {
        self.read(self.se_line(se, SeLine::Avg));
    }

    /// The cache line of one of an entity's statistics, which depends on the layout and on whether the entity is a group's.
    #[inline]
    fn statistic_line(&self, se: SeId, statistic: Statistic) -> Line {
        match self.se[se].task {
            Some(p) => self.layout.statistic(p, statistic),
            None => self.layout.group_statistic(self.se[se].first_line, statistic),
        }
    }

    /// Looks at one of an entity's statistics.
    #[inline]
    pub(crate) fn read_statistic(&mut self, se: SeId, statistic: Statistic) {
        if A::CHARGES {
            self.read(self.statistic_line(se, statistic));
        }
    }

    /// Changes one of an entity's statistics.
    #[inline]
    pub(crate) fn write_statistic(&mut self, se: SeId, statistic: Statistic) {
        if A::CHARGES {
            self.write(self.statistic_line(se, statistic));
        }
    }

    /// Looks at `parent`, `cfs_rq`, `my_q` of an entity.
    #[inline]
    pub(crate) fn read_se_links(&mut self, se: SeId) {
        self.read(self.se_line(se, SeLine::Links));
    }

    // struct cfs_rq.

    /// One of a queue's lines, a CPU's root one or a group's.
    #[inline(always)]
    fn cfs_line(&self, cfs_rq: CfsRqId, line: CfsRqLine) -> Line {
        let queue = &self.cfs_rq[cfs_rq];
        self.layout.line_of_cfs_rq(queue.first_byte, queue.of_group, line)
    }

    /// Changes `load`, `nr_running`, `min_vruntime`, `exec_clock`.
    #[inline]
    pub(crate) fn write_cfs_rq(&mut self, cfs_rq: CfsRqId) {
        self.write(self.cfs_line(cfs_rq, CfsRqLine::Load));
    }

    /// Looks at `load`, `nr_running`.
    #[inline]
    pub(crate) fn read_cfs_rq(&mut self, cfs_rq: CfsRqId) {
        self.read(self.cfs_line(cfs_rq, CfsRqLine::Load));
    }

    /// Changes the timeline, `curr` or a buddy.
    #[inline]
    pub(crate) fn write_cfs_timeline(&mut self, cfs_rq: CfsRqId) {
        self.write(self.cfs_line(cfs_rq, CfsRqLine::Timeline));
    }

    /// Changes `avg`, `runnable_load_*`.
    #[inline]
    pub(crate) fn write_cfs_avg(&mut self, cfs_rq: CfsRqId) {
        self.write(self.cfs_line(cfs_rq, CfsRqLine::Avg));
    }

    /// Looks at `avg`, `runnable_load_*`.
    #[inline]
    pub(crate) fn read_cfs_avg(&mut self, cfs_rq: CfsRqId) {
        self.read(self.cfs_line(cfs_rq, CfsRqLine::Avg));
    }

    /// Adds to `removed_*` from any CPU (atomically until v4.14, under `removed.lock` since).
    #[inline]
    pub(crate) fn atomic_cfs_removed(&mut self, cfs_rq: CfsRqId) {
        self.arch.atomic(self.this_cpu, self.cfs_line(cfs_rq, CfsRqLine::Removed));
    }

    /// Looks whether `removed_*` holds anything.
    #[inline]
    pub(crate) fn read_cfs_removed(&mut self, cfs_rq: CfsRqId) {
        self.read(self.cfs_line(cfs_rq, CfsRqLine::Removed));
    }

    /// Looks at a queue's `tg_load_avg_contrib` on the way into `update_tg_load_avg()`, if it lies on another line than what
    /// [`Self::read_cfs_removed`] reads.
    #[inline]
    pub(crate) fn read_cfs_contrib_apart(&mut self, cfs_rq: CfsRqId) {
        if A::CHARGES {
            let [removed, contrib] =
                [CfsRqLine::Removed, CfsRqLine::Contrib].map(|line| self.layout.cfs_rq(cfs_rq, line));
            if removed != contrib {
                self.read(contrib);
            }
        }
    }

    /// Looks at `tg_load_avg_contrib`.
    #[inline]
    pub(crate) fn read_cfs_contrib(&mut self, cfs_rq: CfsRqId) {
        self.read(self.cfs_line(cfs_rq, CfsRqLine::Contrib));
    }

    /// Changes `runtime_remaining`, which lies behind the averages.
    #[inline]
    pub(crate) fn write_cfs_rq_runtime(&mut self, cfs_rq: CfsRqId) {
        self.write(self.cfs_line(cfs_rq, CfsRqLine::Contrib));
    }

    // Domains and globals.

    /// Looks at a domain: its span, flags and groups. These are rarely written, so all CPUs share the line.
    #[inline]
    pub(crate) fn read_domain(&mut self, sd: SdId) {
        self.read(self.layout.domain(sd.0, 0));
    }

    /// Changes a domain's balancing state (`last_balance`, `balance_interval`, `nr_balance_failed`).
    #[inline]
    pub(crate) fn write_domain(&mut self, sd: SdId) {
        self.write(self.layout.domain(sd.0, 1));
    }

    /// Changes a domain's statistics: `lb_count[]` and the like, or `ttwu_*`.
    #[inline]
    pub(crate) fn write_domain_stats(&mut self, sd: SdId) {
        self.write(self.layout.domain(sd.0, 5));
    }

    /// Looks at what the CPUs of a cache share (`sched_domain_shared`, v4.9): one line for all of them.
    #[inline]
    pub(crate) fn read_domain_shared(&mut self, shared: SdsId) {
        self.read(self.layout.domain(shared.0, 6));
    }

    /// Changes `has_idle_cores`.
    #[inline]
    pub(crate) fn write_domain_shared(&mut self, shared: SdsId) {
        self.write(self.layout.domain(shared.0, 6));
    }

    /// Changes `nr_busy_cpus`.
    #[inline]
    pub(crate) fn atomic_domain_shared(&mut self, shared: SdsId) {
        self.arch.atomic(self.this_cpu, self.layout.domain(shared.0, 6));
    }

    /// Looks at a group's `sgc->capacity`: one line for all CPUs of the domain.
    #[inline]
    pub(crate) fn read_group_capacity(&mut self, sgc: SgcId) {
        self.read(self.layout.domain(sgc.0, 7));
    }

    /// Changes a group's `sgc->capacity`, `next_update`, `imbalance`.
    #[inline]
    pub(crate) fn write_group_capacity(&mut self, sgc: SgcId) {
        self.write(self.layout.domain(sgc.0, 7));
    }

    /// Changes a group's `sgc->nr_busy_cpus` (until v4.8).
    #[inline]
    pub(crate) fn atomic_group_capacity(&mut self, sgc: SgcId) {
        self.arch.atomic(self.this_cpu, self.layout.domain(sgc.0, 7));
    }

    /// Looks at `jiffies`, which one CPU writes in each tick.
    #[inline]
    pub(crate) fn read_jiffies(&mut self) {
        self.read(GlobalLine::Jiffies.line());
    }

    /// Looks at `rd->overload` of a CPU's root domain.
    #[inline]
    pub(crate) fn read_root_domain(&mut self, cpu: CpuId) {
        self.read(self.layout.root_domain(self.rq[cpu].rd.0));
    }

    /// Changes `rd->overload` of a CPU's root domain.
    #[inline]
    pub(crate) fn write_root_domain(&mut self, cpu: CpuId) {
        self.write(self.layout.root_domain(self.rq[cpu].rd.0));
    }
}
