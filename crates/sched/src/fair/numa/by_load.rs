//! fair.c: the choice of a place on another node, of v4.19 and v5.4: where the loads of the nodes do not come apart.

use super::NodeWalk;
use super::by_node_type::{SMALLIMP, load_too_imbalanced};
use super::migrate::{NumaStats, TaskNumaEnv};
use crate::arch::Arch;
use crate::core::Sched;
use crate::sched::TaskId;
use fentry::fentry;

impl<A: Arch> Sched<A> {
    /// fair.c: update_numa_stats(), of v4.19 and v5.4: the load of what is queued, and the capacity.
    #[fentry(update_numa_stats)]
    #[doc(alias = "update_numa_stats")]
    pub(super) fn update_numa_stats_by_load(&mut self, nid: u16) -> NumaStats {
        let mut stats = NumaStats::default();
        let mut walk = NodeWalk::of(nid);
        while let Some(cpu) = self.next_of_node(&mut walk) {
            self.read_rq_runnable(cpu);
            stats.load += self.weighted_cpuload(cpu);
            stats.compute_capacity += self.capacity_of(cpu);
        }
        stats
    }

    /// fair.c: task_numa_find_cpu(), of v4.19 and v5.4.
    #[doc(alias = "task_numa_find_cpu")]
    pub(super) fn task_numa_find_cpu_by_load(&mut self, env: &mut TaskNumaEnv, taskimp: i64, groupimp: i64) {
        let load = self.task_h_load(env.p) as i64;
        let maymove = !shifts_too_much(load, env);
        let mut walk = NodeWalk::of(env.dst_nid);
        while let Some(cpu) = self.next_of_node(&mut walk) {
            if self.cpumask_test(cpu, env.p) {
                env.dst_cpu = cpu;
                self.task_numa_compare_by_load(env, taskimp, groupimp, maymove);
            }
        }
    }

    /// fair.c: task_numa_compare(), of v4.19 and v5.4. Whether `env.dst_cpu` is a better place than the best so far: for swapping
    /// with the task that runs there or, if `maymove`, for moving there alone. The search goes on in any case.
    #[fentry(task_numa_compare)]
    #[doc(alias = "task_numa_compare")]
    fn task_numa_compare_by_load(&mut self, env: &mut TaskNumaEnv, taskimp: i64, groupimp: i64, maymove: bool) {
        let moveimp = if self.numa.task[env.p].numa_group.is_some() { groupimp } else { taskimp };
        if self.numa.rq[env.dst_cpu].numa_migrate_on {
            return;
        }
        self.read_rq_curr(env.dst_cpu);
        let cur = self.rq[env.dst_cpu].curr.filter(|&cur| !self.is_exiting(cur));
        let Some(cur) = cur else {
            if maymove && moveimp >= env.best_imp {
                self.task_numa_assign_by_load(env, None, moveimp);
            }
            return;
        };
        if cur == env.p || !self.cpumask_test(env.src_cpu, cur) {
            return;
        }
        let imp = self.swap_imp_by_node_type(env, cur, moveimp, taskimp);
        if maymove && moveimp > imp && moveimp > env.best_imp {
            return self.task_numa_assign_by_load(env, None, moveimp);
        }
        if imp < SMALLIMP || imp <= env.best_imp + SMALLIMP / 2 {
            return;
        }
        let load = self.task_h_load(env.p) as i64 - self.task_h_load(cur) as i64;
        if load == 0 || !shifts_too_much(load, env) {
            self.task_numa_assign_by_load(env, Some(cur), imp);
        }
    }

    /// task_numa_compare() from `assign` on, and task_numa_assign(): records the best place so far and reserves it, unless somebody
    /// else is on the way there. A task that moves alone may find an idle CPU nearby.
    fn task_numa_assign_by_load(&mut self, env: &mut TaskNumaEnv, task: Option<TaskId>, imp: i64) {
        if task.is_none() {
            env.dst_cpu = self.select_idle_sibling(env.p, env.src_cpu, env.dst_cpu);
        }
        if std::mem::replace(&mut self.numa.rq[env.dst_cpu].numa_migrate_on, true) {
            return;
        }
        if let Some(best_cpu) = env.best_cpu {
            self.numa.rq[best_cpu].numa_migrate_on = false;
        }
        env.best_task = task;
        env.best_imp = imp;
        env.best_cpu = Some(env.dst_cpu);
    }
}

/// Whether the nodes' loads would differ more than now once `load` has gone to the other one.
fn shifts_too_much(load: i64, env: &TaskNumaEnv) -> bool {
    load_too_imbalanced(env.src_stats.load as i64 - load, env.dst_stats.load as i64 + load, env)
}
