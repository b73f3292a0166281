//! fair.c: the choice of a place on another node, from v5.7 on: in accord with the load balancer.

use super::migrate::{NumaStats, NumaType, TaskNumaEnv};
use super::{NodeWalk, SwapPartners};
use crate::arch::Arch;
use crate::core::Sched;
use crate::fair::balance::adjust_numa_imbalance;
use crate::fair::idle_scan::Wrap;
use crate::sched::TaskId;
use crate::topology::ImbNumaNr;
use fentry::fentry;
use units::CpuId;

/// fair.c: SMALLIMP. A swap is worth at most 1998; a 64th of that does not justify a migration.
pub(super) const SMALLIMP: i64 = 30;

/// fair.c: numa_classify().
pub(super) fn numa_classify(imbalance_pct: u64, stats: &NumaStats) -> NumaType {
    let (capacity, pct) = (stats.compute_capacity, imbalance_pct);
    let overused = capacity * 100 < stats.util * pct || capacity * pct < stats.runnable * 100;
    let has_room = capacity * 100 > stats.util * pct && capacity * pct > stats.runnable * 100;
    if stats.nr_running > stats.weight && overused {
        NumaType::Overloaded
    } else if stats.nr_running < stats.weight || has_room {
        NumaType::HasSpare
    } else {
        NumaType::FullyBusy
    }
}

/// fair.c: load_too_imbalanced(). Whether the loads of both nodes, relative to their capacities, would differ by more
/// than now.
pub(super) fn load_too_imbalanced(src_load: i64, dst_load: i64, env: &TaskNumaEnv) -> bool {
    let (src, dst) = (&env.src_stats, &env.dst_stats);
    let apart = |src_load: i64, dst_load: i64| {
        (dst_load * src.compute_capacity as i64 - src_load * dst.compute_capacity as i64).abs()
    };
    apart(src_load, dst_load) > apart(src.load as i64, dst.load as i64)
}

impl<A: Arch> Sched<A> {
    /// fair.c: update_numa_stats() (v5.7). `find_idle`: records an idle CPU that the task may use, on an idle core if
    /// there is one.
    #[fentry(update_numa_stats)]
    #[doc(alias = "update_numa_stats")]
    pub(super) fn update_numa_stats_by_node_type(&mut self, env: &TaskNumaEnv, nid: u16, find_idle: bool) -> NumaStats {
        let mut stats = NumaStats::default();
        let mut idle_core = None;
        let mut walk = NodeWalk::of(nid);
        while let Some(cpu) = self.next_of_node(&mut walk) {
            self.read_rq_load(cpu);
            self.read_cfs_avg(self.rq[cpu].cfs);
            stats.load += self.cpu_load(cpu);
            stats.runnable += self.cpu_runnable(cpu);
            stats.util += self.cpu_util_cfs(cpu);
            stats.nr_running += self.counted_tasks(cpu);
            stats.compute_capacity += self.capacity_of(cpu);
            stats.weight += 1;
            if !find_idle || self.rq[cpu].nr_running != 0 || !self.idle_cpu(cpu) {
                continue;
            }
            if self.numa.rq[cpu].numa_migrate_on || !self.cpumask_test(cpu, env.p) {
                continue;
            }
            stats.idle_cpu = stats.idle_cpu.or(Some(cpu));
            idle_core = self.numa_idle_core(idle_core, cpu);
        }
        stats.node_type = numa_classify(env.imbalance_pct, &stats);
        stats.idle_cpu = idle_core.or(stats.idle_cpu);
        stats
    }

    /// fair.c: numa_idle_core().
    fn numa_idle_core(&mut self, idle_core: Option<CpuId>, cpu: CpuId) -> Option<CpuId> {
        if !self.sched_smt_active() || idle_core.is_some() || !self.test_idle_cores(cpu, false) {
            return idle_core;
        }
        self.is_core_idle(cpu).then_some(cpu)
    }

    /// fair.c: task_numa_find_cpu().
    pub(super) fn task_numa_find_cpu_by_node_type(&mut self, env: &mut TaskNumaEnv, taskimp: i64, groupimp: i64) {
        let maymove;
        if env.dst_stats.node_type == NumaType::HasSpare {
            // Do nothing that the load balancer would undo.
            let src_running = i64::from(env.src_stats.nr_running) - 1;
            let dst_running = env.dst_stats.nr_running + 1;
            let imbalance = (i64::from(dst_running) - src_running).max(0);
            let rule = self.kernel.domains.imb_numa_nr;
            let allowed = if rule == ImbNumaNr::Quarter { env.dst_stats.weight } else { env.imb_numa_nr };
            maymove = adjust_numa_imbalance(rule, imbalance, dst_running, allowed) == 0;
            if maymove && let Some(idle) = env.dst_stats.idle_cpu {
                env.dst_cpu = idle;
                return self.task_numa_assign(env, None, 0);
            }
        } else {
            let load = self.task_h_load(env.p) as i64;
            let (src, dst) = (env.src_stats.load as i64, env.dst_stats.load as i64);
            maymove = !load_too_imbalanced(src - load, dst + load, env);
        }
        let mut walk = NodeWalk::of(env.dst_nid);
        while let Some(cpu) = self.next_of_node(&mut walk) {
            if !self.cpumask_test(cpu, env.p) {
                continue;
            }
            env.dst_cpu = cpu;
            if self.task_numa_compare(env, taskimp, groupimp, maymove) {
                break;
            }
        }
    }

    /// fair.c: task_numa_assign(). Records the best place so far and reserves it; if it is reserved already, takes
    /// another idle CPU of the node.
    fn task_numa_assign(&mut self, env: &mut TaskNumaEnv, task: Option<TaskId>, imp: i64) {
        let is_new = env.best_cpu != Some(env.dst_cpu);
        if is_new && std::mem::replace(&mut self.numa.rq[env.dst_cpu].numa_migrate_on, true) {
            let Some(other) = self.another_idle_cpu(env) else { return };
            self.numa.rq[other].numa_migrate_on = true;
            env.dst_cpu = other;
        }
        if let Some(best_cpu) = env.best_cpu.filter(|&best| best != env.dst_cpu) {
            self.numa.rq[best_cpu].numa_migrate_on = false;
        }
        env.best_task = task;
        env.best_imp = imp;
        env.best_cpu = Some(env.dst_cpu);
    }

    /// An idle CPU of the node that no task is migrating to, starting after `env.dst_cpu`.
    fn another_idle_cpu(&mut self, env: &TaskNumaEnv) -> Option<CpuId> {
        let mut order = Wrap::after(env.dst_cpu);
        while let Some(cpu) = order.next(self.numa.cpumask_of_node(env.dst_nid)) {
            if Some(cpu) != env.best_cpu
                && self.cpu_online_mask.contains(cpu)
                && self.idle_cpu(cpu)
                && self.cpumask_test(cpu, env.p)
                && !self.numa.rq[cpu].numa_migrate_on
            {
                return Some(cpu);
            }
        }
        None
    }

    /// fair.c: task_numa_compare(). Whether `env.dst_cpu` is a better place than the best so far: for swapping with the
    /// task that runs there or, if `maymove`, for moving there alone. Returns whether to stop looking.
    #[fentry]
    fn task_numa_compare(&mut self, env: &mut TaskNumaEnv, taskimp: i64, groupimp: i64, maymove: bool) -> bool {
        let group = self.numa.task[env.p].numa_group;
        let moveimp = if group.is_some() { groupimp } else { taskimp };
        if self.numa.rq[env.dst_cpu].numa_migrate_on {
            return false;
        }
        self.read_rq_curr(env.dst_cpu);
        let with_memory = self.kernel.numa.swap_partners == SwapPartners::WithMemory;
        let swaps = |&cur: &TaskId| !(self.is_exiting(cur) || with_memory && self.task[cur].mm == 0);
        let cur = self.rq[env.dst_cpu].curr.filter(swaps);
        let Some(cur) = cur else {
            return maymove && moveimp >= env.best_imp && self.assign_and_stop(env, None, moveimp, maymove);
        };
        if cur == env.p {
            return true;
        }
        if !self.cpumask_test(env.src_cpu, cur) {
            return false;
        }
        // Whether the swap would bring the other task to the node it prefers.
        let comes_home = |sched: &Self, task: TaskId| sched.numa_preferred_nid(task) == Some(env.src_nid);
        let best_comes_home = env.best_task.is_some_and(|best| comes_home(self, best));
        let cur_comes_home = comes_home(self, cur);
        if best_comes_home && !cur_comes_home {
            return false;
        }
        let cur_group = self.numa.task(cur).and_then(|task| task.numa_group);
        let may_be_of_group = self.kernel.numa.swap_partners == SwapPartners::AnyTask;
        if !may_be_of_group && cur_group == group && env.dst_stats.node_type == NumaType::HasSpare {
            // One task would gain what the other loses.
            return false;
        }
        let mut imp = self.swap_imp_by_node_type(env, cur, moveimp, taskimp);
        if self.numa_preferred_nid(cur) == Some(env.dst_nid) {
            imp -= imp / 16;
        }
        if cur_comes_home {
            imp += imp / 8;
        }
        if maymove && moveimp > imp && moveimp > env.best_imp {
            return self.assign_and_stop(env, None, moveimp, maymove);
        }
        if env.best_task.is_some() && cur_comes_home && !best_comes_home {
            return self.assign_and_stop(env, Some(cur), imp, maymove);
        }
        if imp < SMALLIMP || imp <= env.best_imp + SMALLIMP / 2 {
            return false;
        }
        let load = self.task_h_load(env.p) as i64 - self.task_h_load(cur) as i64;
        let (src, dst) = (env.src_stats.load as i64, env.dst_stats.load as i64);
        if load != 0 && load_too_imbalanced(src - load, dst + load, env) {
            return false;
        }
        self.assign_and_stop(env, Some(cur), imp, maymove)
    }

    /// What swapping is worth to both tasks. v5.4 has it too.
    pub(super) fn swap_imp_by_node_type(&self, env: &TaskNumaEnv, cur: TaskId, imp: i64, taskimp: i64) -> i64 {
        let group = self.numa.task[env.p].numa_group;
        let cur_group = self.numa.task(cur).and_then(|task| task.numa_group);
        let task_gain = self.task_weight(cur, env.src_nid, env.dist) - self.task_weight(cur, env.dst_nid, env.dist);
        if cur_group == group {
            let imp = taskimp + task_gain;
            return if cur_group.is_some() { imp - imp / 16 } else { imp };
        }
        if cur_group.is_some() && group.is_some() {
            imp + self.group_weight(cur, env.src_nid, env.dist) - self.group_weight(cur, env.dst_nid, env.dist)
        } else {
            imp + task_gain
        }
    }

    /// task_numa_compare() from `assign` on. Returns whether to stop looking: an idle CPU is good enough, and so is a
    /// swap that brings the other task to its preferred node when moving alone is out of the question.
    fn assign_and_stop(&mut self, env: &mut TaskNumaEnv, cur: Option<TaskId>, imp: i64, maymove: bool) -> bool {
        if cur.is_none() {
            let mut cpu = env.dst_stats.idle_cpu.unwrap_or(env.dst_cpu);
            if let Some(best_cpu) = env.best_cpu
                && !self.idle_cpu(cpu)
                && self.idle_cpu(best_cpu)
            {
                cpu = best_cpu;
            }
            env.dst_cpu = cpu;
        }
        self.task_numa_assign(env, cur, imp);
        if maymove
            && cur.is_none()
            && let Some(best_cpu) = env.best_cpu
            && self.idle_cpu(best_cpu)
        {
            return true;
        }
        let best = env.best_task.filter(|_| !maymove);
        best.is_some_and(|best| self.numa_preferred_nid(best) == Some(env.src_nid))
    }
}
