//! `/proc/PID/sched` (kernel/sched/debug.c: proc_sched_show_task()) and `/proc/PID/schedstat`.

use super::{split_ns, waits_and_sleeps};
use crate::formats::{Averages, ClampsShown, Formats, PolicyParameters, StatisticsShown, UtilEstShown};
use sched::arch::Arch;
use sched::core::{ClampId, Sched};
use sched::pelt::UTIL_AVG_UNCHANGED;
use sched::sched::{Policy, SchedStatistics, TaskId};
use std::fmt::{self, Write};

/// The file of one task; [`fmt::Display`] prints it.
///
/// Differs: `clock-delta` is zero: reading the clock takes no time here.
pub struct TaskSched<'a, A: Arch> {
    pub sched: &'a Sched<A>,
    pub task: TaskId,
    /// Threads of its process.
    pub threads: usize,
    pub formats: Formats,
}

/// Lines of `name : value`, in the columns of the file.
#[derive(Default)]
struct Lines(String);

impl Lines {
    fn number(&mut self, name: &str, value: i64) {
        let _ = writeln!(self.0, "{name:<45}:{value:>21}");
    }

    /// The kernel prints unsigned counts as signed.
    fn count(&mut self, name: &str, value: u64) {
        self.number(name, value as i64);
    }

    fn time(&mut self, name: &str, ns: u64) {
        let _ = writeln!(self.0, "{name:<45}:{:14}", split_ns(ns));
    }
}

impl<A: Arch> TaskSched<'_, A> {
    fn statistics(&self, lines: &mut Lines, of: &SchedStatistics) {
        let at = if self.formats.statistics_placed { "se.statistics." } else { "" };
        let named = |name: &str| format!("{at}{name}");
        lines.time(&named("sum_sleep_runtime"), of.sum_sleep_runtime);
        if self.formats.block_time {
            lines.time(&named("sum_block_runtime"), of.sum_block_runtime);
        }
        for (name, value) in waits_and_sleeps(of) {
            lines.time(&named(name), value);
        }
        lines.count(&named("wait_count"), of.wait_count);
        lines.time(&named("iowait_sum"), of.iowait_sum);
        lines.count(&named("iowait_count"), of.iowait_count);
        if self.formats.statistics == StatisticsShown::Always {
            let migrations = self.sched.se[self.sched.task[self.task].se].nr_migrations;
            lines.count("se.nr_migrations", migrations.into());
        }
        let counts = [
            ("nr_migrations_cold", of.nr_migrations_cold),
            ("nr_failed_migrations_affine", of.nr_failed_migrations_affine),
            ("nr_failed_migrations_running", of.nr_failed_migrations_running),
            ("nr_failed_migrations_hot", of.nr_failed_migrations_hot),
            ("nr_forced_migrations", of.nr_forced_migrations),
            ("nr_wakeups", of.nr_wakeups),
            ("nr_wakeups_sync", of.nr_wakeups_sync),
            ("nr_wakeups_migrate", of.nr_wakeups_migrate),
            ("nr_wakeups_local", of.nr_wakeups_local),
            ("nr_wakeups_remote", of.nr_wakeups_remote),
            ("nr_wakeups_affine", of.nr_wakeups_affine),
            ("nr_wakeups_affine_attempts", of.nr_wakeups_affine_attempts),
            ("nr_wakeups_passive", of.nr_wakeups_passive),
            ("nr_wakeups_idle", of.nr_wakeups_idle),
        ];
        let uncounted = ["nr_migrations_cold", "nr_wakeups_passive", "nr_wakeups_idle"];
        for (name, value) in counts {
            if self.formats.uncounted || !uncounted.contains(&name) {
                lines.count(&named(name), value);
            }
        }
        self.averages_of_running(lines);
    }

    /// How long the task ran between two switches, and between two migrations, on average; all ones if there was none.
    fn averages_of_running(&self, lines: &mut Lines) {
        let task = &self.sched.task[self.task];
        let se = &self.sched.se[task.se];
        let per = |count: u64| se.sum_exec_runtime.checked_div(count).unwrap_or(u64::MAX);
        lines.time("avg_atom", per(task.nvcsw + task.nivcsw));
        lines.time("avg_per_cpu", per(se.nr_migrations.into()));
    }

    fn load(&self, lines: &mut Lines) {
        let se = &self.sched.se[self.sched.task[self.task].se];
        let avg = &se.avg;
        lines.count("se.load.weight", se.load.weight);
        match self.formats.averages {
            Averages::LoadAndUtil => {
                lines.count("se.avg.load_sum", avg.load_sum);
                lines.count("se.avg.util_sum", u64::from(avg.util_sum));
                lines.count("se.avg.load_avg", avg.load_avg);
            }
            Averages::RunnableWeight => {
                lines.count("se.runnable_weight", se.runnable_weight);
                lines.count("se.avg.load_sum", avg.load_sum);
                lines.count("se.avg.runnable_load_sum", avg.runnable_sum);
                lines.count("se.avg.util_sum", u64::from(avg.util_sum));
                lines.count("se.avg.load_avg", avg.load_avg);
                lines.count("se.avg.runnable_load_avg", avg.runnable_avg);
            }
            Averages::Runnable => {
                lines.count("se.avg.load_sum", avg.load_sum);
                lines.count("se.avg.runnable_sum", avg.runnable_sum);
                lines.count("se.avg.util_sum", u64::from(avg.util_sum));
                lines.count("se.avg.load_avg", avg.load_avg);
                lines.count("se.avg.runnable_avg", avg.runnable_avg);
            }
        }
        lines.count("se.avg.util_avg", avg.util_avg);
        lines.count("se.avg.last_update_time", avg.last_update_time);
        let enqueued = avg.util_est.enqueued & !UTIL_AVG_UNCHANGED;
        match self.formats.util_est {
            UtilEstShown::No => {}
            // v5.4's flag is the lowest bit of the estimate, and shown with it.
            UtilEstShown::Two => {
                lines.count("se.avg.util_est.ewma", u64::from(avg.util_est.ewma));
                lines.count("se.avg.util_est.enqueued", u64::from(enqueued))
            }
            UtilEstShown::One => lines.count("se.avg.util_est", u64::from(enqueued)),
        }
    }

    /// What was asked for, and what holds.
    fn clamps(&self, lines: &mut Lines) {
        let shown = match self.formats.clamps {
            ClampsShown::No => false,
            ClampsShown::WhereUsed => self.sched.uclamp_is_used(),
            ClampsShown::Always => true,
        };
        if shown {
            let asked = &self.sched.task_cold[self.task].uclamp_req;
            lines.count("uclamp.min", asked[ClampId::Min].value.into());
            lines.count("uclamp.max", asked[ClampId::Max].value.into());
            lines.count("effective uclamp.min", self.sched.uclamp_eff_value(self.task, ClampId::Min));
            lines.count("effective uclamp.max", self.sched.uclamp_eff_value(self.task, ClampId::Max));
        }
    }

    /// The policy and its parameters.
    fn policy(&self, lines: &mut Lines) {
        let task = &self.sched.task[self.task];
        lines.number("policy", policy_number(task.policy));
        lines.number("prio", i64::from(task.prio));
        let shown = self.formats.policy;
        if task.policy == Policy::Deadline && shown != PolicyParameters::No {
            let dl = &self.sched.dl_se[self.task];
            lines.number("dl.runtime", dl.runtime);
            lines.count("dl.deadline", dl.deadline);
        } else if task.policy.fair_policy() && shown == PolicyParameters::DeadlineAndSlice {
            lines.count("se.slice", self.sched.se[task.se].slice.into());
        }
    }

    /// debug.c: sched_show_numa().
    fn sched_show_numa(&self, lines: &mut Lines) {
        let task = &self.sched.task[self.task];
        let numa = &self.sched.numa;
        let of = numa.task(self.task);
        if task.mm != 0 {
            lines.number("mm->numa_scan_seq", numa.mm.get(&task.mm).map_or(0, |mm| mm.numa_scan_seq.into()));
        }
        lines.count("numa_pages_migrated", of.map_or(0, |of| of.numa_pages_migrated));
        lines.number("numa_preferred_nid", of.and_then(|of| of.numa_preferred_nid).map_or(-1, i64::from));
        lines.count("total_numa_faults", of.map_or(0, |of| of.total_numa_faults));
        let node = self.sched.topology.node[task.cpu];
        let group = self.sched.task_numa_group_id(self.task);
        let _ = writeln!(lines.0, "current_node={node}, numa_group_id={group}");
        for node in 0..self.sched.topology.nr_nodes() as u16 {
            let (mut task, mut group) = (numa.faults_on(self.task, node), numa.group_faults_on(self.task, node));
            if self.formats.numa_faults_swapped {
                (task, group) = ((task.1, task.0), (group.1, group.0));
            }
            let _ = writeln!(
                lines.0,
                "numa_faults node={node} task_private={} task_shared={} group_private={} group_shared={}",
                task.0, task.1, group.0, group.1
            );
        }
    }
}

/// uapi/linux/sched.h: SCHED_NORMAL and its kin; a stopper says SCHED_FIFO.
fn policy_number(policy: Policy) -> i64 {
    match policy {
        Policy::Normal => 0,
        Policy::Fifo | Policy::Stop => 1,
        Policy::Rr => 2,
        Policy::Batch => 3,
        Policy::Idle => 5,
        Policy::Deadline => 6,
    }
}

/// `/proc/PID/schedstat`: time on CPUs and time waiting, in nanoseconds, and how often it was switched to. Counted whether
/// schedstats are on or not.
pub fn task_schedstat<A: Arch>(sched: &Sched<A>, task: TaskId) -> String {
    let of = &sched.task[task];
    let ran = sched.se[of.se].sum_exec_runtime;
    format!("{ran} {} {}\n", of.sched_info.run_delay, of.sched_info.pcount)
}

impl<A: Arch> fmt::Display for TaskSched<'_, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (task, cold) = (&self.sched.task[self.task], &self.sched.task_cold[self.task]);
        let se = &self.sched.se[task.se];
        let mut lines = Lines::default();
        let comm = crate::tasks::cut_comm(&cold.comm);
        let _ = writeln!(lines.0, "{comm} ({}, #threads: {})\n{}", cold.pid, self.threads, "-".repeat(67));
        lines.time("se.exec_start", se.exec_start);
        lines.time("se.vruntime", se.vruntime);
        lines.time("se.sum_exec_runtime", se.sum_exec_runtime);
        let always = self.formats.statistics == StatisticsShown::Always;
        if !always {
            lines.number("se.nr_migrations", se.nr_migrations.into());
        }
        if always || self.sched.schedstat_enabled() {
            self.statistics(&mut lines, &cold.statistics);
        }
        lines.number("nr_switches", (task.nvcsw + task.nivcsw) as i64);
        lines.number("nr_voluntary_switches", task.nvcsw as i64);
        lines.number("nr_involuntary_switches", task.nivcsw as i64);
        self.load(&mut lines);
        self.clamps(&mut lines);
        self.policy(&mut lines);
        lines.number("clock-delta", 0);
        self.sched_show_numa(&mut lines);
        f.write_str(&lines.0)
    }
}
