//! fair.c: the choice of a place on another node, until v4.16: by the loads of both nodes.

use super::NodeWalk;
use super::migrate::{NumaStats, TaskNumaEnv};
use crate::arch::Arch;
use crate::core::Sched;
use crate::cpu_topology::SCHED_CAPACITY_SCALE;
use crate::sched::TaskId;
use fentry::fentry;

const SCALE: u64 = SCHED_CAPACITY_SCALE as u64;

/// The end of update_numa_stats(): how many tasks a node of `cpus` CPUs can run: as many as it has cores, which its
/// capacity tells, because siblings have less.
pub(super) fn task_capacity(cpus: u64, compute_capacity: u64) -> u32 {
    let smt = (SCALE * cpus).div_ceil(compute_capacity.max(1)).max(1);
    (cpus / smt).min((compute_capacity + SCALE / 2) / SCALE) as u32
}

/// fair.c: load_too_imbalanced(). Whether loads would differ by more than `imbalance_pct` allows, and by more than they
/// do now.
fn load_too_imbalanced(src_load: i64, dst_load: i64, env: &TaskNumaEnv) -> bool {
    let (src, dst) = (&env.src_stats, &env.dst_stats);
    let (src_capacity, dst_capacity) = (src.compute_capacity as i64, dst.compute_capacity as i64);
    let pct = env.imbalance_pct as i64;
    let imbalance = |a: i64, b: i64| {
        let (low, high) = (a.min(b), a.max(b));
        (high * src_capacity * 100) - (low * dst_capacity * pct)
    };
    let imb = imbalance(src_load, dst_load);
    imb > 0 && imb > imbalance(src.load as i64, dst.load as i64)
}

impl<A: Arch> Sched<A> {
    /// fair.c: update_numa_stats(), until v4.16.
    #[fentry(update_numa_stats)]
    #[doc(alias = "update_numa_stats")]
    pub(super) fn update_numa_stats_by_capacity(&mut self, nid: u16) -> NumaStats {
        let mut stats = NumaStats::default();
        let mut cpus = 0;
        let mut walk = NodeWalk::of(nid);
        while let Some(cpu) = self.next_of_node(&mut walk) {
            self.read_rq_load(cpu);
            self.read_rq_runnable(cpu);
            stats.nr_running += self.rq[cpu].nr_running;
            stats.load += self.weighted_cpuload(cpu);
            stats.compute_capacity += self.capacity_of(cpu);
            cpus += 1;
        }
        if cpus > 0 {
            stats.task_capacity = task_capacity(cpus, stats.compute_capacity);
            stats.has_free_capacity = stats.nr_running < stats.task_capacity;
        }
        stats
    }

    /// fair.c: task_numa_find_cpu(), until v4.16.
    #[doc(alias = "task_numa_find_cpu")]
    pub(super) fn task_numa_find_cpu_by_capacity(&mut self, env: &mut TaskNumaEnv, taskimp: i64, groupimp: i64) {
        let mut walk = NodeWalk::of(env.dst_nid);
        while let Some(cpu) = self.next_of_node(&mut walk) {
            if self.cpumask_test(cpu, env.p) {
                env.dst_cpu = cpu;
                self.task_numa_compare_by_capacity(env, taskimp, groupimp);
            }
        }
    }

    /// fair.c: task_numa_compare(), until v4.16. Whether `env.dst_cpu` is a better place than the best so far, for
    /// moving there alone or for swapping with the task that runs there. `taskimp`, `groupimp`: by how much the share
    /// of the task's own memory, or of its group's, is greater there, in thousandths.
    #[fentry(task_numa_compare)]
    #[doc(alias = "task_numa_compare")]
    fn task_numa_compare_by_capacity(&mut self, env: &mut TaskNumaEnv, taskimp: i64, groupimp: i64) {
        let group = self.numa.task[env.p].numa_group;
        let moveimp = if group.is_some() { groupimp } else { taskimp };
        let mut imp = moveimp;
        self.read_rq_curr(env.dst_cpu);
        let cur = self.rq[env.dst_cpu].curr.filter(|&cur| !self.is_exiting(cur));
        if cur == Some(env.p) {
            return;
        }
        if let Some(cur) = cur {
            if !self.cpumask_test(env.src_cpu, cur) {
                return;
            }
            imp = self.swap_imp(env, cur, imp, taskimp);
        }
        if imp <= env.best_imp && moveimp <= env.best_imp {
            return;
        }
        match cur {
            None if env.src_stats.nr_running <= env.src_stats.task_capacity && !env.dst_stats.has_free_capacity => {
                return;
            }
            None => {}
            // With one task on each of the CPUs, balance is not affected.
            Some(_)
                if imp > env.best_imp
                    && self.rq[env.src_cpu].nr_running == 1
                    && self.rq[env.dst_cpu].nr_running == 1 =>
            {
                return assign(env, cur, imp);
            }
            Some(_) => {}
        }
        let load = self.task_h_load(env.p) as i64;
        let mut dst_load = env.dst_stats.load as i64 + load;
        let mut src_load = env.src_stats.load as i64 - load;
        if moveimp > imp && moveimp > env.best_imp && !load_too_imbalanced(src_load, dst_load, env) {
            // A little less than its worth, so that an idle CPU is preferred.
            return assign(env, None, moveimp - 1);
        }
        if imp <= env.best_imp {
            return;
        }
        if let Some(cur) = cur {
            let load = self.task_h_load(cur) as i64;
            dst_load -= load;
            src_load += load;
        }
        if load_too_imbalanced(src_load, dst_load, env) {
            return;
        }
        if cur.is_none() {
            env.dst_cpu = self.select_idle_sibling(env.p, env.src_cpu, env.dst_cpu);
        }
        assign(env, cur, imp);
    }

    /// What swapping is worth to both tasks.
    fn swap_imp(&self, env: &TaskNumaEnv, cur: TaskId, imp: i64, taskimp: i64) -> i64 {
        let group = self.numa.task[env.p].numa_group;
        let cur_group = self.numa.task(cur).and_then(|task| task.numa_group);
        let task_gain = self.task_weight(cur, env.src_nid, env.dist) - self.task_weight(cur, env.dst_nid, env.dist);
        if cur_group == group {
            let imp = taskimp + task_gain;
            // Tasks of one group do not swap for a small gain.
            return if cur_group.is_some() { imp - imp / 16 } else { imp };
        }
        match cur_group {
            Some(_) => {
                imp + self.group_weight(cur, env.src_nid, env.dist) - self.group_weight(cur, env.dst_nid, env.dist)
            }
            None => imp + task_gain,
        }
    }
}

/// task_numa_assign(), until v4.16.
fn assign(env: &mut TaskNumaEnv, task: Option<TaskId>, imp: i64) {
    env.best_task = task;
    env.best_imp = imp;
    env.best_cpu = Some(env.dst_cpu);
}
