//! fair.c: how a task migrates to the node that it prefers, or to another one that is better than its own.

use super::{ActiveNodes, Destination, NumaGroupId, ScanReset, SecondChoice};
use crate::arch::Arch;
use crate::core::Sched;
use crate::sched::TaskId;
use crate::topology::NumaTopologyType;
use crate::trace::{Event, NumaSide};
use fentry::fentry;
use units::{CpuId, unlikely};

/// fair.c: enum numa_type (v5.7). What a node is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum NumaType {
    /// The node could run more tasks.
    #[default]
    HasSpare,
    FullyBusy,
    Overloaded,
}

/// fair.c: struct numa_stats. For loads, 1024 is a nice-0 task that always runs; for capacities and times, 1024 is a
/// CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct NumaStats {
    pub load: u64,
    pub compute_capacity: u64,
    pub nr_running: u32,
    // Until v5.6.
    /// About how many tasks the node can run.
    pub task_capacity: u32,
    pub has_free_capacity: bool,
    // From v5.7 on.
    pub runnable: u64,
    pub util: u64,
    pub weight: u32,
    pub node_type: NumaType,
    pub idle_cpu: Option<CpuId>,
}

/// fair.c: struct task_numa_env.
#[derive(Clone, Debug)]
pub(super) struct TaskNumaEnv {
    pub p: TaskId,
    pub src_cpu: CpuId,
    pub src_nid: u16,
    pub dst_cpu: CpuId,
    pub dst_nid: u16,
    pub imb_numa_nr: u32,
    pub src_stats: NumaStats,
    pub dst_stats: NumaStats,
    pub imbalance_pct: u64,
    pub dist: u32,
    /// The task to swap with; `None`: none, the task moves alone.
    pub best_task: Option<TaskId>,
    pub best_imp: i64,
    pub best_cpu: Option<CpuId>,
}

/// core.c: struct migration_swap_arg, and how far both stoppers have come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct MigrationSwap {
    pub src_task: TaskId,
    pub src_cpu: CpuId,
    pub dst_task: TaskId,
    /// The process number of `dst_task`, which may be gone when both CPUs have stopped.
    pub dst_pid: u32,
    pub dst_cpu: CpuId,
    pub src_stopped: bool,
    pub dst_stopped: bool,
    /// The result, once both CPUs have stopped.
    pub swapped: Option<bool>,
}

impl super::Numa {
    /// Registers a swap that is to be done.
    pub(crate) fn begin_swap(&mut self, swap: MigrationSwap) -> u32 {
        let free = self.swaps.iter().position(Option::is_none);
        let place = free.unwrap_or_else(|| {
            self.swaps.push(None);
            self.swaps.len() - 1
        });
        self.swaps[place] = Some(swap);
        place as u32
    }

    pub(crate) fn swap_mut(&mut self, number: u32) -> &mut MigrationSwap {
        self.swaps[number as usize].as_mut().expect("a swap is there until both CPUs know of its end")
    }

    pub(crate) fn end_swap(&mut self, number: u32) {
        self.swaps[number as usize] = None;
    }
}

impl<A: Arch> Sched<A> {
    /// fair.c: numa_migrate_preferred(). Tries to bring a task to the node it prefers; it retries, but not too often.
    pub(super) fn numa_migrate_preferred(&mut self, p: TaskId) {
        let task = &self.numa.task[p];
        let Some(preferred) = task.numa_preferred_nid else { return };
        if task.numa_faults.is_empty() {
            return;
        }
        let interval = self.hz.min(self.msecs_to_jiffies(task.numa_scan_period) / 16);
        self.numa.task[p].numa_migrate_retry = self.jiffies() + interval;
        if self.task_node(p) != preferred {
            self.task_numa_migrate(p, preferred);
        }
    }

    /// fair.c: update_numa_stats() and task_numa_find_cpu() of each kind, for the node `env.dst_nid`.
    fn look_at_node(&mut self, env: &mut TaskNumaEnv, taskimp: i64, groupimp: i64) {
        match self.kernel.numa.destination {
            Destination::ByCapacity => {
                env.dst_stats = self.update_numa_stats_by_capacity(env.dst_nid);
                if numa_has_capacity(env) {
                    self.task_numa_find_cpu_by_capacity(env, taskimp, groupimp);
                }
            }
            Destination::ByLoad => {
                env.dst_stats = self.update_numa_stats_by_load(env.dst_nid);
                self.task_numa_find_cpu_by_load(env, taskimp, groupimp);
            }
            Destination::ByNodeType => {
                env.dst_stats = self.update_numa_stats_by_node_type(env, env.dst_nid, true);
                self.task_numa_find_cpu_by_node_type(env, taskimp, groupimp);
            }
        }
    }

    /// fair.c: task_numa_migrate(). Looks for a place on the preferred node, then on others that are better than the
    /// task's own; moves the task there, or swaps it with a task that runs there.
    ///
    /// Differs: a task without a NUMA domain prefers its own node from now on, and is dequeued for this change; until
    /// v5.0 the kernel changes it without the queue's counts noticing.
    #[fentry]
    fn task_numa_migrate(&mut self, p: TaskId, preferred: u16) {
        let (src_cpu, src_nid) = (self.task[p].cpu, self.task_node(p));
        let Some(sd) = self.domains.sd_numa[src_cpu] else {
            // A cpuset confines the task to one node.
            return self.sched_setnuma(p, Some(src_nid));
        };
        let sd = &self.domains[sd];
        let mut env = TaskNumaEnv {
            p,
            src_cpu,
            src_nid,
            dst_cpu: src_cpu,
            dst_nid: preferred,
            imb_numa_nr: sd.imb_numa_nr,
            src_stats: NumaStats::default(),
            dst_stats: NumaStats::default(),
            imbalance_pct: u64::from(100 + (sd.imbalance_pct - 100) / 2),
            dist: self.topology.node_distance(src_nid, preferred),
            best_task: None,
            best_imp: 0,
            best_cpu: None,
        };
        env.src_stats = match self.kernel.numa.destination {
            Destination::ByCapacity => self.update_numa_stats_by_capacity(src_nid),
            Destination::ByLoad => self.update_numa_stats_by_load(src_nid),
            Destination::ByNodeType => self.update_numa_stats_by_node_type(&env, src_nid, false),
        };
        let mut weights = self.weights(p, src_nid, env.dist);
        let there = self.weights(p, preferred, env.dist);
        self.look_at_node(&mut env, there.0 - weights.0, there.1 - weights.1);
        let group = self.numa.task[p].numa_group;
        if env.best_cpu.is_none() || group.is_some_and(|group| self.is_spread(group)) {
            for nid in self.preferable_nodes().into_iter().filter(|&nid| nid != src_nid && nid != preferred) {
                // The distance to the node looked at before, in all versions.
                let dist = self.topology.node_distance(src_nid, env.dst_nid);
                if self.domains.numa.sched_numa_topology_type == NumaTopologyType::Backplane && dist != env.dist {
                    weights = self.weights(p, src_nid, dist);
                }
                let there = self.weights(p, nid, dist);
                let (taskimp, groupimp) = (there.0 - weights.0, there.1 - weights.1);
                if taskimp < 0 && groupimp < 0 {
                    continue;
                }
                (env.dist, env.dst_nid) = (dist, nid);
                self.look_at_node(&mut env, taskimp, groupimp);
            }
        }
        if let Some(group) = group {
            self.settle_on_node(&env, group);
        }
        self.migrate_to_best(&env);
    }

    /// `task_weight()` and `group_weight()`.
    fn weights(&self, p: TaskId, nid: u16, dist: u32) -> (i64, i64) {
        (self.task_weight(p, nid, dist), self.group_weight(p, nid, dist))
    }

    /// The part of task_numa_migrate() that makes a second-choice node the preferred one if the group uses it.
    fn settle_on_node(&mut self, env: &TaskNumaEnv, group: NumaGroupId) {
        let rules = self.kernel.numa;
        match rules.second_choice {
            SecondChoice::AnyNode => {
                let nid = env.best_cpu.map_or(env.src_nid, |cpu| self.cpu_to_node(cpu));
                if self.numa_preferred_nid(env.p) != Some(nid) {
                    self.sched_setnuma(env.p, Some(nid));
                }
            }
            SecondChoice::ActiveNode => {
                let asked = match rules.active_nodes {
                    ActiveNodes::Mask if env.best_cpu.is_none() => env.src_nid,
                    ActiveNodes::Mask | ActiveNodes::Share => env.dst_nid,
                };
                let counts = rules.active_nodes == ActiveNodes::Mask || self.is_spread(group);
                if counts && self.numa_is_active_node(asked, group) {
                    self.sched_setnuma(env.p, Some(env.dst_nid));
                }
            }
        }
    }

    /// The end of task_numa_migrate(): moves to the best place found.
    fn migrate_to_best(&mut self, env: &TaskNumaEnv) {
        let p = env.p;
        let Some(best_cpu) = env.best_cpu else {
            if self.kernel.numa.destination == Destination::ByNodeType {
                self.trace_stick_numa(p, env.src_cpu, None, None);
            }
            return;
        };
        if self.kernel.numa.scan_reset == ScanReset::NumaMigration {
            self.numa.task[p].numa_scan_period = self.task_scan_start(p);
        }
        match env.best_task {
            None => self.migrate_task_to(p, best_cpu),
            Some(other) => self.migrate_swap(p, other, best_cpu, env.src_cpu),
        }
    }

    /// The tracepoint sched_stick_numa: the task wanted to migrate, but stays.
    pub(crate) fn trace_stick_numa(
        &mut self,
        task: TaskId,
        src_cpu: CpuId,
        other: Option<TaskId>,
        dst_cpu: Option<CpuId>,
    ) {
        if unlikely(self.arch.tracing()) {
            let (src, dst) = (self.numa_side(Some(task), Some(src_cpu)), self.numa_side(other, dst_cpu));
            self.trace(Event::SchedStickNuma { src, dst });
        }
    }

    /// What tracepoints report about one side of a migration.
    ///
    /// Differs: the process number is that of the oldest remaining task that shares the address space.
    pub(crate) fn numa_side(&self, task: Option<TaskId>, cpu: Option<CpuId>) -> NumaSide {
        let tgid = |p: TaskId| {
            let mm = self.task[p].mm;
            let threads = self.task.iter().filter(|(_, other)| other.alive && other.mm == mm && mm != 0);
            threads.map(|(thread, _)| self.task_cold[thread].pid).min().unwrap_or(self.task_cold[p].pid)
        };
        NumaSide {
            task,
            tgid: task.map_or(0, tgid),
            ngid: task.map_or(0, |task| self.task_numa_group_id(task)),
            cpu,
            nid: cpu.map(|cpu| self.cpu_to_node(cpu)),
        }
    }
}

/// fair.c: numa_has_capacity() (until v4.16). Whether the node is less busy than the task's own.
fn numa_has_capacity(env: &TaskNumaEnv) -> bool {
    let (src, dst) = (&env.src_stats, &env.dst_stats);
    if src.has_free_capacity && !dst.has_free_capacity {
        return false;
    }
    src.load * dst.compute_capacity * env.imbalance_pct > dst.load * src.compute_capacity * 100
}
