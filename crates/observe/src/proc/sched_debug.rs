//! `/proc/sched_debug` (until v5.12) and `/sys/kernel/debug/sched/debug` (kernel/sched/debug.c: sched_debug_show()): everything
//! that a kernel says of its run queues at one moment.

use super::{SplitNs, split_ns, waits_and_sleeps};
use crate::formats::{
    Averages, ClassQueues, Formats, QueueCounts, Slices, StatisticsShown, TaskTable, UtilEstShown, VirtualTimes,
};
use crate::tasks::cut_comm;
use sched::arch::Arch;
use sched::core::Sched;
use sched::pelt::UTIL_AVG_UNCHANGED;
use sched::sched::{CfsRqId, SeId, TaskId, TaskState, TgId};
use std::fmt::{self, Write};
use units::{CpuId, Ns};

/// The file; [`fmt::Display`] prints it.
///
/// Differs: all clocks show the time of the reading; jiffies count from boot, where a kernel's begin five minutes below zero; there
/// are no real-time groups (CONFIG_RT_GROUP_SCHED is off).
pub struct SchedDebug<'a, A: Arch> {
    pub sched: &'a Sched<A>,
    pub formats: Formats,
    /// uname -r.
    pub release: &'a str,
    pub now: Ns,
    /// `cpu_khz`
    pub khz: u64,
}

/// Blocks of `.name : value`.
#[derive(Default)]
struct Block(String);

impl Block {
    fn field(&mut self, name: &str, value: impl fmt::Display) {
        let _ = writeln!(self.0, "  .{name:<30}: {value}");
    }

    fn tunable(&mut self, name: &str, value: impl fmt::Display) {
        let _ = writeln!(self.0, "  .{name:<40}: {value}");
    }

    fn head(&mut self, name: &str, value: impl fmt::Display) {
        let _ = writeln!(self.0, "{name:<40}: {value}");
    }

    fn line(&mut self, text: impl fmt::Display) {
        let _ = writeln!(self.0, "{text}");
    }
}

impl<A: Arch> SchedDebug<'_, A> {
    /// debug.c: sched_debug_header().
    fn sched_debug_header(&self, out: &mut Block) {
        let sysctl = &self.sched.sysctl;
        out.line(format!("Sched Debug Version: v0.11, {} #1", self.release));
        for clock in ["ktime", "sched_clk", "cpu_clk"] {
            out.head(clock, split_ns(self.now.0));
        }
        out.head("jiffies", self.now.0 / self.sched.tick_nsec);
        out.head("sched_clock_stable()", 1);
        out.line("\nsysctl_sched");
        if self.formats.slices == Slices::Base {
            out.tunable("sysctl_sched_base_slice", split_ns(sysctl.sched_base_slice));
        } else {
            out.tunable("sysctl_sched_latency", split_ns(sysctl.sched_latency));
            out.tunable("sysctl_sched_min_granularity", split_ns(sysctl.sched_min_granularity));
            if self.formats.slices == Slices::LatencyAndIdle {
                out.tunable("sysctl_sched_idle_min_granularity", split_ns(sysctl.sched_idle_min_granularity));
            }
            out.tunable("sysctl_sched_wakeup_granularity", split_ns(sysctl.sched_wakeup_granularity));
        }
        if self.formats.child_runs_first {
            out.tunable("sysctl_sched_child_runs_first", sysctl.sched_child_runs_first);
        }
        out.tunable("sysctl_sched_features", self.features());
        out.tunable("sysctl_sched_tunable_scaling", format!("1 ({})", self.formats.tunable_scaling));
        out.line("");
    }

    fn features(&self) -> u64 {
        let bits = self.sched.kernel.feature_table.iter().enumerate();
        bits.filter(|(_, (feature, _))| self.sched.features.sched_feat(*feature)).map(|(bit, _)| 1 << bit).sum()
    }

    fn shows_statistics(&self) -> bool {
        self.formats.statistics == StatisticsShown::Always || self.sched.schedstat_enabled()
    }

    /// debug.c: print_cpu().
    fn print_cpu(&self, out: &mut Block, cpu: CpuId) {
        let rq = &self.sched.rq[cpu];
        out.line(format!("cpu#{cpu}, {}.{:03} MHz", self.khz / 1000, self.khz % 1000));
        out.field("nr_running", rq.nr_running);
        if self.formats.cpu_load {
            out.field("load", rq.load.weight);
        }
        out.field("nr_switches", rq.nr_switches);
        if self.formats.nr_load_updates {
            out.field("nr_load_updates", rq.nr_load_updates);
        }
        out.field("nr_uninterruptible", rq.nr_uninterruptible);
        out.field("next_balance", split_ns(rq.next_balance));
        out.field("curr->pid", rq.curr.map_or(0, |p| self.sched.task_cold[p].pid));
        out.field("clock", split_ns(rq.clock));
        out.field("clock_task", split_ns(rq.clock_task));
        if self.formats.cpu_load {
            for (index, load) in rq.cpu_load.iter().enumerate() {
                out.field(&format!("cpu_load[{index}]"), load);
            }
        }
        let idle = |out: &mut Block| {
            out.field("avg_idle", rq.avg_idle);
            out.field("max_idle_balance_cost", rq.max_idle_balance_cost);
        };
        let always = self.formats.statistics == StatisticsShown::Always;
        if !always {
            idle(out);
        }
        if self.shows_statistics() {
            out.field("yld_count", rq.yld_count);
            out.field("sched_count", rq.sched_count);
            out.field("sched_goidle", rq.sched_goidle);
            if always {
                idle(out);
            }
            out.field("ttwu_count", rq.ttwu_count);
            out.field("ttwu_local", rq.ttwu_local);
        }
        let mut next = rq.leaf_cfs_rq_list.first.map(CfsRqId);
        while let Some(cfs) = next {
            self.print_cfs_rq(out, cpu, cfs);
            next = self.sched.cfs_rq[cfs].leaf_cfs_rq_list.next.get().map(CfsRqId);
        }
        self.print_rt_rq(out, cpu);
        self.print_dl_rq(out, cpu);
        self.print_rq(out, cpu);
        out.line("");
    }

    fn vruntime_of(&self, se: Option<SeId>) -> i64 {
        se.map_or(-1, |se| self.sched.se[se].vruntime as i64)
    }

    /// debug.c: print_cfs_rq().
    fn print_cfs_rq(&self, out: &mut Block, cpu: CpuId, cfs: CfsRqId) {
        let q = &self.sched.cfs_rq[cfs];
        out.line(format!("\ncfs_rq[{cpu}]:{}", self.sched.task_group_path(q.tg)));
        match self.formats.virtual_times {
            VirtualTimes::Spread => self.vruntimes(out, cfs),
            VirtualTimes::Average => self.virtual_times_and_least(out, cfs),
            VirtualTimes::Zero | VirtualTimes::Sums => self.virtual_times(out, cfs),
        }
        self.queue_counts(out, cfs);
        out.field("load", q.load.weight);
        self.averages(out, cfs);
        out.field("tg_load_avg_contrib", q.tg_load_avg_contrib);
        out.field("tg_load_avg", self.sched.tg[q.tg].load_avg);
        if self.formats.h_load {
            out.field("h_load", q.h_load);
        }
        out.field("throttled", u8::from(self.sched.cfs_rq_throttled(cfs)));
        out.field("throttle_count", q.throttle_count);
        self.print_cfs_group_stats(out, cpu, q.tg);
    }

    fn queue_counts(&self, out: &mut Block, cfs: CfsRqId) {
        let q = &self.sched.cfs_rq[cfs];
        let counts = self.formats.queue_counts;
        out.field(if counts == QueueCounts::Queued { "nr_queued" } else { "nr_running" }, q.nr_running);
        match counts {
            QueueCounts::Entities => return,
            QueueCounts::Hierarchy | QueueCounts::IdleEntities => out.field("h_nr_running", q.h_nr_running),
            QueueCounts::Delayed | QueueCounts::Queued => {
                out.field("h_nr_runnable", q.h_nr_running - q.h_nr_delayed);
                out.field("h_nr_queued", q.h_nr_running);
            }
        }
        if counts == QueueCounts::Queued {
            out.field("h_nr_idle", q.idle_h_nr_running);
            return;
        }
        if counts == QueueCounts::Delayed {
            out.field("h_nr_delayed", q.h_nr_delayed);
        }
        if counts != QueueCounts::Hierarchy {
            out.field("idle_nr_running", q.idle_nr_running);
        }
        out.field("idle_h_nr_running", q.idle_h_nr_running);
    }

    fn vruntimes(&self, out: &mut Block, cfs: CfsRqId) {
        let q = &self.sched.cfs_rq[cfs];
        let first = self.vruntime_of(q.tasks_timeline.leftmost());
        let last = self.vruntime_of(q.tasks_timeline.last());
        let rq0 = &self.sched.cfs_rq[self.sched.rq[CpuId(0)].cfs];
        out.field("exec_clock", split_ns(q.exec_clock));
        out.field("MIN_vruntime", SplitNs(first));
        out.field("min_vruntime", split_ns(q.min_vruntime));
        out.field("max_vruntime", SplitNs(last));
        out.field("spread", SplitNs(last.wrapping_sub(first)));
        out.field("spread0", split_ns(q.min_vruntime.wrapping_sub(rq0.min_vruntime)));
        out.field("nr_spread_over", q.nr_spread_over);
    }

    /// The same with EEVDF's average.
    ///
    /// Differs: `min_vruntime` is not kept. It is the least vruntime there is, which the kernel's does not follow when an entity is
    /// placed further back.
    fn virtual_times_and_least(&self, out: &mut Block, cfs: CfsRqId) {
        let q = &self.sched.cfs_rq[cfs];
        let left = self.vruntime_of(q.tasks_timeline.leftmost());
        let right = self.vruntime_of(q.tasks_timeline.last());
        let running = q.curr.map(|se| &self.sched.se[se]).filter(|se| se.on_rq).map(|se| se.vruntime);
        let least = match (running, q.tasks_timeline.min_vruntime()) {
            (Some(curr), Some(waiting)) if (curr.wrapping_sub(waiting) as i64) < 0 => curr,
            (curr, waiting) => waiting.or(curr).unwrap_or(q.zero_vruntime),
        };
        out.field("exec_clock", split_ns(q.exec_clock));
        out.field("left_vruntime", SplitNs(left));
        out.field("min_vruntime", split_ns(least));
        out.field("avg_vruntime", split_ns(self.sched.shown_avg_vruntime(cfs)));
        out.field("right_vruntime", SplitNs(right));
        out.field("spread", SplitNs(right.wrapping_sub(left)));
        out.field("nr_spread_over", q.nr_spread_over);
    }

    /// The same with `zero_vruntime`.
    ///
    /// Differs: v7.2 shifts weights where their sum would not fit, which does not happen here (`sum_shift`).
    fn virtual_times(&self, out: &mut Block, cfs: CfsRqId) {
        let q = &self.sched.cfs_rq[cfs];
        let timeline = &q.tasks_timeline;
        let left = timeline.min_vruntime().map_or(-1, |vruntime| vruntime as i64);
        let right = self.vruntime_of(timeline.last());
        let left_deadline = timeline.leftmost().map_or(-1, |se| self.sched.se[se].deadline as i64);
        out.field("left_deadline", SplitNs(left_deadline));
        out.field("left_vruntime", SplitNs(left));
        out.field("zero_vruntime", split_ns(q.zero_vruntime));
        if self.formats.virtual_times == VirtualTimes::Sums {
            let bits = q.sum_w_vruntime.unsigned_abs().checked_ilog2().map_or(-1, i64::from);
            out.field("sum_w_vruntime", format!("{} ({bits} bits)", q.sum_w_vruntime));
            out.field("sum_weight", q.sum_weight);
            out.field("sum_shift", q.sum_shift);
        }
        out.field("avg_vruntime", split_ns(self.sched.shown_avg_vruntime(cfs)));
        out.field("right_vruntime", SplitNs(right));
        out.field("spread", SplitNs(right.wrapping_sub(left)));
    }

    fn averages(&self, out: &mut Block, cfs: CfsRqId) {
        let q = &self.sched.cfs_rq[cfs];
        let averages = self.formats.averages;
        if averages == Averages::RunnableWeight {
            out.field("runnable_weight", q.runnable_weight);
        }
        out.field("load_avg", q.avg.load_avg);
        let runnable = if averages == Averages::Runnable { "runnable_avg" } else { "runnable_load_avg" };
        out.field(runnable, q.avg.runnable_avg);
        out.field("util_avg", q.avg.util_avg);
        let enqueued = q.avg.util_est.enqueued & !UTIL_AVG_UNCHANGED;
        match self.formats.util_est {
            UtilEstShown::No => {}
            UtilEstShown::Two => out.field("util_est_enqueued", enqueued),
            UtilEstShown::One => out.field("util_est", enqueued),
        }
        let (sign, runnable) = match averages {
            Averages::LoadAndUtil => ("removed_", None),
            Averages::RunnableWeight => ("removed.", Some("removed.runnable_sum")),
            Averages::Runnable => ("removed.", Some("removed.runnable_avg")),
        };
        out.field(&format!("{sign}load_avg"), q.removed.load_avg);
        out.field(&format!("{sign}util_avg"), q.removed.util_avg);
        if let Some(name) = runnable {
            out.field(name, q.removed.runnable_sum as i64);
        }
    }

    /// debug.c: print_cfs_group_stats(). Of the entity of a group; the root has none.
    fn print_cfs_group_stats(&self, out: &mut Block, cpu: CpuId, tg: TgId) {
        let Some(&se) = self.sched.tg[tg].se.get(cpu.index()) else { return };
        let entity = &self.sched.se[se];
        out.field("se->exec_start", split_ns(entity.exec_start));
        out.field("se->vruntime", split_ns(entity.vruntime));
        out.field("se->sum_exec_runtime", split_ns(entity.sum_exec_runtime));
        if self.shows_statistics() {
            let of = self.sched.group_statistics.get(se.index()).copied().unwrap_or_default();
            let at = if self.formats.statistics_placed { "se->statistics." } else { "" };
            for (name, value) in waits_and_sleeps(&of) {
                out.field(&format!("{at}{name}"), split_ns(value));
            }
            out.field(&format!("{at}wait_count"), of.wait_count);
        }
        out.field("se->load.weight", entity.load.weight);
        if self.formats.averages == Averages::RunnableWeight {
            out.field("se->runnable_weight", entity.runnable_weight);
        }
        out.field("se->avg.load_avg", entity.avg.load_avg);
        out.field("se->avg.util_avg", entity.avg.util_avg);
        match self.formats.averages {
            Averages::LoadAndUtil => {}
            Averages::RunnableWeight => out.field("se->avg.runnable_load_avg", entity.avg.runnable_avg),
            Averages::Runnable => out.field("se->avg.runnable_avg", entity.avg.runnable_avg),
        }
    }

    /// debug.c: print_rt_rq().
    fn print_rt_rq(&self, out: &mut Block, cpu: CpuId) {
        let rt = &self.sched.rt[cpu];
        out.line(format!("\nrt_rq[{cpu}]:"));
        out.field("rt_nr_running", rt.rt_nr_running);
        match self.formats.class_queues {
            ClassQueues::Running => {}
            ClassQueues::Migratory => out.field("rt_nr_migratory", rt.rt_nr_migratory),
            ClassQueues::Bandwidth => return,
        }
        out.field("rt_throttled", u8::from(rt.rt_throttled));
        out.field("rt_time", split_ns(rt.rt_time));
        out.field("rt_runtime", split_ns(rt.rt_runtime));
    }

    /// debug.c: print_dl_rq().
    fn print_dl_rq(&self, out: &mut Block, cpu: CpuId) {
        let dl = &self.sched.dl[cpu];
        out.line(format!("\ndl_rq[{cpu}]:"));
        out.field("dl_nr_running", dl.dl_nr_running);
        match self.formats.class_queues {
            ClassQueues::Running => return,
            ClassQueues::Migratory => out.field("dl_nr_migratory", dl.dl_nr_migratory),
            ClassQueues::Bandwidth => {}
        }
        // -1 means no limit.
        out.field("dl_bw->bw", self.sched.dl_bw_limit().map_or(-1, |bw| bw as i64));
        out.field("dl_bw->total_bw", self.sched.root_domain(cpu).total_bw);
    }

    /// debug.c: print_rq(). Every task of the CPU, asleep or not.
    fn print_rq(&self, out: &mut Block, cpu: CpuId) {
        out.line("\nrunnable tasks:");
        let table = self.formats.task_table;
        let (tag, dashes) = match table {
            TaskTable::Running => (" ", 106),
            TaskTable::State => (" S", 107),
            TaskTable::Wide | TaskTable::Blocked | TaskTable::Eevdf => (" S ", 109),
            TaskTable::EevdfWide | TaskTable::EevdfWeight => (" S ", 191),
        };
        if matches!(table, TaskTable::EevdfWide | TaskTable::EevdfWeight) {
            let weight = if table == TaskTable::EevdfWeight { "     weight" } else { "" };
            out.line(format!(
                "{tag}           task   PID{weight}       vruntime   eligible    deadline             slice          sum-exec      \
                 switches  prio         wait-time        sum-sleep       sum-block  node   group-id  group-path"
            ));
        } else {
            let names = "tree-key  switches  prio     wait-time             sum-exec        sum-sleep";
            out.line(format!("{tag}           task   PID         {names}"));
        }
        out.line("-".repeat(dashes));
        for p in self.by_process().into_iter().filter(|&p| self.sched.task[p].cpu == cpu) {
            self.print_task(out, cpu, p);
        }
    }

    /// for_each_process_thread(): processes in order of their first threads, each with its own.
    fn by_process(&self) -> Vec<TaskId> {
        let living = || self.sched.task.iter().filter(|(_, task)| task.alive);
        let pid = |p: TaskId| self.sched.task_cold[p].pid;
        let leader = |p: TaskId| {
            let mm = self.sched.task[p].mm;
            let of_one = living().filter(|(other, task)| *other == p || mm != 0 && task.mm == mm);
            of_one.map(|(other, _)| pid(other)).min()
        };
        let mut tasks: Vec<_> = living().map(|(p, _)| (leader(p), pid(p), p)).collect();
        tasks.sort_unstable();
        tasks.into_iter().map(|(.., p)| p).collect()
    }

    /// debug.c: print_task().
    fn print_task(&self, out: &mut Block, cpu: CpuId, p: TaskId) {
        let (task, cold) = (&self.sched.task[p], &self.sched.task_cold[p]);
        let se = &self.sched.se[task.se];
        let current = self.sched.rq[cpu].curr == Some(p);
        let table = self.formats.task_table;
        let state = match (table, current) {
            (TaskTable::Running, true) => "R".to_string(),
            (TaskTable::Running, false) => " ".to_string(),
            (_, true) => ">R".to_string(),
            (_, false) => format!(" {}", task_state_to_char(task.state)),
        };
        let gap = match table {
            TaskTable::Running | TaskTable::State | TaskTable::Eevdf => "",
            TaskTable::Wide | TaskTable::Blocked | TaskTable::EevdfWide | TaskTable::EevdfWeight => " ",
        };
        let (comm, pid, prio, switches) = (cut_comm(&cold.comm), cold.pid, task.prio, task.nvcsw + task.nivcsw);
        let weight = match table {
            TaskTable::EevdfWeight => format!(" {:>10}", self.sched.competing_weight(task.se)),
            _ => String::new(),
        };
        let head = format!("{state}{gap}{comm:>15} {pid:>5}{weight} {:9}", split_ns(se.vruntime));
        let shown = self.shows_statistics();
        let counted = |ns: u64| split_ns(if shown { ns } else { 0 });
        let of = &cold.statistics;
        let (waited, slept) = (counted(of.wait_sum), counted(of.sum_sleep_runtime));
        let ran = split_ns(se.sum_exec_runtime);
        let (node, group) = (self.sched.topology.node[cpu], self.sched.task_numa_group_id(p));
        let path = self.sched.task_group_path(task.sched_task_group);
        out.line(match table {
            TaskTable::Running | TaskTable::State | TaskTable::Wide => {
                format!("{head} {switches:>9} {prio:>5} {waited:9} {ran:9} {slept:9} {node} {group} {path}")
            }
            TaskTable::Blocked => {
                let blocked = counted(of.sum_block_runtime);
                format!("{head} {switches:>9} {prio:>5} {waited:9} {ran:9} {slept:9} {blocked:9} {node} {group} {path}")
            }
            TaskTable::Eevdf | TaskTable::EevdfWide | TaskTable::EevdfWeight => {
                let blocked = counted(of.sum_block_runtime);
                let eligible =
                    if self.sched.entity_eligible(self.sched.competes_on(task.se), task.se) { 'E' } else { 'N' };
                let custom = if se.custom_slice { 'S' } else { ' ' };
                let (deadline, slice) = (split_ns(se.deadline), split_ns(se.slice.into()));
                if table == TaskTable::Eevdf {
                    return out.line(format!(
                        "{head} {eligible} {deadline:9} {slice:9} {ran:9} {switches:>9} {prio:>5} \
                         {waited:9} {ran:9} {slept:9} {blocked:9} {node} {group} {path}"
                    ));
                }
                format!(
                    "{head}   {eligible}   {deadline:9} {custom} {slice:9} {ran:9} {switches:>9}   {prio:>5} \
                     {waited:9} {slept:9} {blocked:9}   {node}      {group}        {path}"
                )
            }
        });
    }
}

/// The letter of a state, as task_state_to_char() gives it.
fn task_state_to_char(state: TaskState) -> char {
    match state {
        TaskState::Running | TaskState::Waking | TaskState::New => 'R',
        TaskState::Interruptible => 'S',
        TaskState::Uninterruptible => 'D',
        TaskState::Dead => 'X',
    }
}

impl<A: Arch> fmt::Display for SchedDebug<'_, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = Block::default();
        self.sched_debug_header(&mut out);
        for cpu in self.sched.cpu_online_mask.iter() {
            self.print_cpu(&mut out, cpu);
        }
        f.write_str(&out.0)
    }
}
