//! core.c: which CPUs a task may use, and how it moves when its CPU is no longer one of them.

use super::Sched;
use crate::arch::Arch;
use crate::behaviour;
use crate::errno::{Answer, Errno, Refusal};
use crate::fair::rules::ExecStartReset;
use crate::sched::*;
use crate::stop_task::StopWork;
use crate::topology::SdFlags;
use fentry::fentry;
use std::sync::Arc;
use units::{CpuId, CpuMask, Ns, unlikely};

behaviour! {
    /// On which CPUs a task may be placed while some come or go.
    pub enum CpuAllowed = "core.cpu_allowed" {
        Online = "online", since "v2.6.38", commit "", "all that are online";
        Active = "active", since "v4.17", commit "175f0e25abea",
            "those that are not on their way down, but for kernel threads bound to one";
    }
}

behaviour! {
    /// Where a task goes that may no longer use its CPU.
    pub enum AffinityDest = "core.affinity_dest" {
        First = "first", since "v2.6.23", commit "", "to the first CPU it may use";
        Distributed = "distributed", since "v5.7", commit "46a87b3851f0",
            "to the one after the last that was chosen by the same CPU, round and round";
    }
}

behaviour! {
    /// What sched_setaffinity() makes of CPUs that are offline, in a task of the top cpuset.
    pub enum AffinityOffline = "core.affinity_offline" {
        Dropped = "dropped", since "v2.6.24", commit "", "they leave the mask, and do not come back to it with the CPU";
        Kept = "kept", since "v6.2", commit "3fb906e7fabb", "they stay in it";
    }
}

/// State of the tasks' masks that belongs to no single task.
#[derive(Clone, Debug, Default)]
pub struct AffinityState {
    /// The mask that was last given to a task.
    last_mask: Arc<CpuMask>,
    /// What select_fallback_rq() writes into the kernel's log: one entry for each kind, in the order of their first events.
    pub no_longer_affine: Vec<NoLongerAffine>,
}

/// Tasks of one name that lost the last CPU they were allowed on, and have been allowed on all since.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoLongerAffine {
    pub comm: String,
    /// The CPU where they were.
    pub cpu: CpuId,
    /// When the first of them was moved.
    pub at: Ns,
    pub times: u64,
}

impl<A: Arch> Sched<A> {
    /// The affinity of the first process, which all others inherit: all CPUs but isolated ones (sched_init_smp()).
    pub(super) fn default_affinity(&self) -> CpuMask {
        (0..self.nr_cpus()).map(CpuId::new).filter(|&cpu| !self.isolated.contains(cpu)).collect()
    }

    /// core.c: is_cpu_allowed(). Whether the task may be placed on `cpu`.
    #[inline]
    pub(crate) fn is_cpu_allowed(&self, p: TaskId, cpu: CpuId) -> bool {
        if !self.cpumask_test(cpu, p) {
            return false;
        }
        match self.kernel.core.cpu_allowed {
            CpuAllowed::Online => self.rq[cpu].hotplug.is_online(),
            // A kernel thread may stay on a CPU that is no longer active.
            CpuAllowed::Active => {
                self.rq[cpu].hotplug.is_active()
                    || self.task[p].mm == 0
                        && self.rq[cpu].hotplug.is_online()
                        && (self.kthread_is_per_cpu(p) || !self.rq[cpu].hotplug.is_dying())
            }
        }
    }

    /// core.c: select_task_rq().
    ///
    /// Differs: v4.5 does not call cpumask_any() here, and its bound kernel threads leave a CPU that is on its way down.
    pub(super) fn select_task_rq(&mut self, p: TaskId, cpu: CpuId, sd_flag: SdFlags, flags: WakeFlags) -> CpuId {
        let mut cpu = cpu;
        if self.task[p].nr_cpus_allowed > 1 {
            cpu = self.class_select_task_rq(p, cpu, sd_flag, flags);
        } else if unlikely(!self.cpumask_test(cpu, p)) {
            // cpumask_any(): the CPU that the task is bound to, which may be on its way down.
            cpu = self.task[p].cpus_allowed.first().unwrap_or(cpu);
        }
        if unlikely(!self.is_cpu_allowed(p, cpu)) {
            cpu = self.select_fallback_rq(self.task[p].cpu, p);
        }
        cpu
    }

    /// core.c: select_fallback_rq(). A CPU for a task that cannot stay on `cpu`, on the same node if possible. If the task may
    /// use no CPU that is up, it may use all from now on.
    ///
    /// Differs: the kernel first asks the task's cpuset; for tasks of the top cpuset that is all CPUs (v4.5 to v4.16: those that
    /// are up).
    pub(crate) fn select_fallback_rq(&mut self, cpu: CpuId, p: TaskId) -> CpuId {
        let node = self.topology.node[cpu];
        let fits = |sched: &Self, dest: CpuId| sched.rq[dest].hotplug.is_active() && sched.is_cpu_allowed(p, dest);
        let allowed = |sched: &Self| {
            let all = || sched.task[p].cpus_allowed.iter().filter(|dest| dest.index() < sched.nr_cpus());
            let near = all().find(|&dest| sched.topology.node[dest] == node && fits(sched, dest));
            near.or_else(|| all().find(|&dest| fits(sched, dest)))
        };
        if let Some(dest) = allowed(self) {
            return dest;
        }
        let possible = CpuMask::all(self.nr_cpus());
        self.do_set_cpus_allowed(p, possible);
        self.note_no_longer_affine(p, cpu);
        allowed(self).expect("a CPU is up")
    }

    /// Notes in the log that a task lost its affinity, every time (the kernel limits the rate). Tasks without an address space
    /// are left out, that is kernel threads, and exiting tasks, which never see user mode again.
    fn note_no_longer_affine(&mut self, p: TaskId, cpu: CpuId) {
        let cold = &self.task_cold[p];
        if self.task[p].mm == 0 || cold.exiting {
            return;
        }
        let log = &mut self.affinity.no_longer_affine;
        if let Some(same) = log.iter_mut().find(|told| told.cpu == cpu && told.comm == cold.comm) {
            same.times += 1;
            return;
        }
        let at = self.arch.sched_clock(self.this_cpu);
        log.push(NoLongerAffine { comm: cold.comm.clone(), cpu, at, times: 1 });
    }

    /// core.c: do_set_cpus_allowed(), for a task that the caller has locked. A queued task is dequeued meanwhile.
    pub(super) fn do_set_cpus_allowed(&mut self, p: TaskId, mask: CpuMask) {
        if self.task[p].on_rq == OnRq::Queued {
            self.change_allowed_cpus(p, |sched| sched.set_cpus_allowed_common(p, mask));
        } else {
            self.set_cpus_allowed_common(p, mask);
        }
    }

    /// Shares the mask that the last task was given, if it is the same.
    pub(super) fn shared_mask(&mut self, mask: CpuMask) -> Arc<CpuMask> {
        if *self.affinity.last_mask != mask {
            self.affinity.last_mask = Arc::new(mask);
        }
        self.affinity.last_mask.clone()
    }

    /// core.c: set_cpus_allowed_common(), and what the deadline class does before it.
    fn set_cpus_allowed_common(&mut self, p: TaskId, mask: CpuMask) {
        if self.task[p].sched_class == SchedClass::Dl {
            self.set_cpus_allowed_dl(p, &mask);
        }
        self.task[p].nr_cpus_allowed = mask.weight() as u16;
        self.task[p].cpus_allowed = self.shared_mask(mask);
        self.set_task_max_allowed_capacity(p);
    }

    /// core.c: sched_setaffinity(), with a mask that a user asks for, after cpuset_cpus_allowed() has restricted it.
    ///
    /// # Errors
    /// Those of set_cpus_allowed_ptr(), and EBUSY for a deadline task.
    pub(crate) fn sched_setaffinity(&mut self, p: TaskId, mask: CpuMask) -> Answer {
        let mask = self.cpuset_cpus_allowed(mask);
        self.dl_task_check_affinity(p, &mask)?;
        self.set_cpus_allowed_ptr(p, mask)
    }

    /// cpuset.c: cpuset_cpus_allowed(), for the top cpuset, intersected with a mask.
    ///
    /// Differs: tasks are in no other cpuset; a partition does not remove its CPUs from any task's mask.
    pub(super) fn cpuset_cpus_allowed(&self, mask: CpuMask) -> CpuMask {
        match self.kernel.core.affinity_offline {
            AffinityOffline::Dropped => mask.and(&self.cpu_online_mask),
            AffinityOffline::Kept => mask,
        }
    }

    /// core.c: set_cpus_allowed_ptr(). The task is dequeued while its mask changes, and moved if the mask excludes its CPU. If
    /// the task is running, the caller must make it schedule away.
    ///
    /// Differs: a task that is just being woken keeps the CPU it was given.
    ///
    /// # Errors
    /// EINVAL if no CPU of the mask is up.
    #[fentry]
    pub(crate) fn set_cpus_allowed_ptr(&mut self, p: TaskId, mask: CpuMask) -> Answer {
        if *self.task[p].cpus_allowed == mask {
            return Ok(());
        }
        let Some(dest) = self.affinity_dest(&mask) else {
            return Err(Refusal::new(Errno::EINVAL, "no CPU of the affinity is up"));
        };
        self.pi_lock(p);
        self.do_set_cpus_allowed(p, mask);
        let cpu = self.task[p].cpu;
        if !self.cpumask_test(cpu, p) && self.task[p].on_rq == OnRq::Queued {
            if self.task[p].on_cpu {
                self.stop_one_cpu(cpu, StopWork::Migrate(p, dest));
            } else {
                self.move_queued_task(p, dest);
            }
        }
        self.pi_unlock(p);
        Ok(())
    }

    /// cpumask_any_and(cpu_valid_mask, new_mask)
    fn affinity_dest(&mut self, mask: &CpuMask) -> Option<CpuId> {
        let valid = mask.and(&self.cpu_active_mask);
        match self.kernel.core.affinity_dest {
            AffinityDest::First => valid.first(),
            AffinityDest::Distributed => self.cpumask_any_distribute(&valid),
        }
    }

    /// lib/cpumask.c: cpumask_any_distribute(). The CPU of `mask` that follows the one chosen last on this CPU.
    #[doc(alias = "cpumask_any_and_distribute")]
    pub(crate) fn cpumask_any_distribute(&mut self, mask: &CpuMask) -> Option<CpuId> {
        let prev = &mut self.distribute_cpu_mask_prev[self.this_cpu];
        let next = mask.next_from(prev.index() + 1).or_else(|| mask.first())?;
        *prev = next;
        Some(next)
    }

    /// workqueue.c: what kick_pool() does to a worker's `wake_cpu` (v6.6; 57a01eafdcf7 of v6.9, and of v6.6.y, has it look at CPUs that are up).
    pub(crate) fn set_wake_cpu_within(&mut self, p: TaskId, pod: &CpuMask) {
        if !pod.contains(self.task[p].wake_cpu)
            && let Some(cpu) = self.cpumask_any_distribute(&pod.and(&self.cpu_online_mask))
        {
            self.task[p].wake_cpu = cpu;
        }
    }

    /// core.c: sched_exec(). The current task is about to execute another program. This is the moment at which it loses least by
    /// moving, so it moves if another CPU is less busy.
    pub(crate) fn sched_exec(&mut self) {
        let cpu = self.this_cpu;
        let p = self.rq[cpu].curr.expect("a task executes a program");
        self.pi_lock(p);
        let dest_cpu = self.class_select_task_rq(p, cpu, SdFlags::SD_BALANCE_EXEC, WakeFlags::NONE);
        self.pi_unlock(p);
        if dest_cpu != cpu && self.cpu_active_mask.contains(dest_cpu) {
            self.stop_one_cpu(cpu, StopWork::Exec(p, dest_cpu));
        }
    }

    /// core.c: migration_cpu_stop(), as called for sched_exec().
    pub(crate) fn sched_exec_stop(&mut self, p: TaskId, dest_cpu: CpuId) {
        let task = &self.task[p];
        if task.alive && task.cpu == self.this_cpu && task.on_rq == OnRq::Queued {
            self.__migrate_task(p, dest_cpu);
        }
    }

    /// core.c: migration_cpu_stop(), on the stopper of the CPU that the task had to leave.
    pub(crate) fn migration_cpu_stop(&mut self, p: TaskId, dest_cpu: CpuId) {
        let here = self.this_cpu;
        let task = &self.task[p];
        if task.alive && task.cpu == here && task.on_rq == OnRq::Queued && !self.cpumask_test(here, p) {
            self.__migrate_task(p, dest_cpu);
        }
    }

    /// core.c: __migrate_task(). Moves the task, unless it may no longer go to `dest_cpu`.
    pub(super) fn __migrate_task(&mut self, p: TaskId, dest_cpu: CpuId) {
        if self.is_cpu_allowed(p, dest_cpu) && self.rq[dest_cpu].hotplug.is_active() {
            self.move_queued_task(p, dest_cpu);
        } else if !self.cpumask_test(self.task[p].cpu, p) {
            // Its affinity changed again meanwhile, or the destination goes down: choose another CPU.
            let dest = self.select_fallback_rq(self.task[p].cpu, p);
            self.move_queued_task(p, dest);
        }
    }

    /// core.c: move_queued_task().
    pub(crate) fn move_queued_task(&mut self, p: TaskId, new_cpu: CpuId) {
        let old = self.task[p].cpu;
        self.rq_lock(old);
        self.task[p].on_rq = OnRq::Migrating;
        self.dequeue_task(old, p, QueueFlags::default());
        self.set_task_cpu(p, new_cpu);
        self.rq_unlock(old);
        self.rq_lock(new_cpu);
        let (se, last_ran) = (self.task[p].se, self.se[self.task[p].se].exec_start);
        self.enqueue_task(new_cpu, p, QueueFlags { migrated: true, ..QueueFlags::default() });
        if self.kernel.entity.exec_start_reset == ExecStartReset::AtActivation {
            // This kernel queues it without that flag, by which psi knows here that the task does not wake.
            self.se[se].exec_start = last_ran;
        }
        self.task[p].on_rq = OnRq::Queued;
        self.check_preempt_curr(new_cpu, p, WakeFlags::NONE);
        self.rq_unlock(new_cpu);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::TaskInit;
    use crate::core::hotplug::HotplugState;
    use crate::scheduler::Scheduler;
    use crate::testing::{machine, task_in};
    use crate::versions::{V4_15, V4_16, V6_1, V6_12};

    #[test]
    fn a_kernel_thread_starts_on_the_cpu_it_is_bound_to_though_that_is_on_its_way_down() {
        for kernel in [V4_15, V4_16, V6_1, V6_12] {
            let mut s = machine(kernel, 2);
            s.rq[CpuId(1)].hotplug = HotplugState::Inactive;
            let mask: CpuMask = [CpuId(1)].into_iter().collect();
            let init = TaskInit { mm: 0, cpus_allowed: Some(mask), ..task_in(ROOT_TASK_GROUP, "bound/1") };
            let p = s.fork(CpuId(0), init).expect("it is admitted");
            Scheduler::wake_up_new_task(&mut s, CpuId(0), p);
            assert_eq!((s.task[p].cpu, s.task[p].nr_cpus_allowed), (CpuId(1), 1), "{}", kernel.name);
        }
    }
}
