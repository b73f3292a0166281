//! core.c: a task's beginning and end, as far as the scheduler is concerned.

use super::{Sched, TaskInit};
use crate::arch::Arch;
use crate::attr::SchedAttr;
use crate::errno::{Answer, Errno, Refusal};
use crate::load_weight::set_load_weight;
use crate::pelt::SchedAvg;
use crate::sched::*;
use crate::syscalls::normal_prio;
use crate::topology::SdFlags;
use crate::trace::Event;
use crate::versions::ClockUpdate;
use fentry::fentry;
use units::{CpuId, CpuMask, unlikely};

/// Kernel threads that are older than the run.
pub trait SleepsSinceBoot {
    /// Instead of waking up as a new task, `p`, which was just forked, has slept where it may run since boot: nothing of
    /// its load is left, and it wakes up as a sleeper does.
    fn asleep_since_boot(&mut self, p: TaskId);
}

impl<A: Arch> SleepsSinceBoot for Sched<A> {
    fn asleep_since_boot(&mut self, p: TaskId) {
        let here = self.task[p].cpu;
        let allowed: &CpuMask = self.task[p].cpus_allowed.as_ref();
        let cpu = if allowed.contains(here) { here } else { allowed.first().expect("a task may run somewhere") };
        if cpu != here {
            self.__set_task_cpu(p, cpu);
        }
        let task = &mut self.task[p];
        (task.wake_cpu, task.recent_used_cpu) = (cpu, cpu);
        task.state = TaskState::Interruptible;
        let se = task.se;
        let cfs = self.se[se].cfs_rq;
        let vruntime = self.cfs_rq[cfs].min_vruntime;
        let se = &mut self.se[se];
        se.avg = SchedAvg::default();
        (se.vruntime, se.vlag, se.deadline) = (vruntime, 0, 0);
    }
}

impl<A: Arch> Sched<A> {
    /// core.c: sched_fork(). The child exists, but cannot run yet.
    #[fentry]
    pub(crate) fn sched_fork(&mut self, parent: Option<TaskId>, init: TaskInit) -> TaskId {
        let attr = init.attr.unwrap_or_else(|| self.attr_of_child(parent));
        let cpu = self.cpu_of_child(&attr, init.cpus_allowed.as_ref());
        self.sched_idle_used |= attr.sched_policy == Policy::Idle;
        let static_prio = DEFAULT_PRIO + attr.sched_nice;
        let prio = normal_prio(attr.sched_policy, attr.sched_priority as u8, static_prio);
        // True if a user asked for the mask: not if the child inherits it, or is a kernel thread that the kernel binds.
        let asked = init.mm != 0 && init.cpus_allowed.as_ref().is_some_and(|cpus| !self.inherits(parent, cpus));
        let cpus_allowed = match init.cpus_allowed {
            Some(cpus) if asked => self.cpuset_cpus_allowed(cpus),
            Some(cpus) => cpus,
            None => self.default_affinity(),
        };
        let se = self.se.insert(SchedEntity::default());
        let task = TaskStruct {
            se,
            cpu,
            wake_cpu: cpu,
            recent_used_cpu: parent.map_or(cpu, |parent| self.task[parent].recent_used_cpu),
            // The child's task_struct begins as a copy of its parent's.
            wakee_flips: parent.map_or(0, |parent| self.task[parent].wakee_flips),
            last_wakee: parent.map_or(Link::NONE, |parent| self.task[parent].last_wakee),
            wakee_flip_decay_ts: parent.map_or(0, |parent| self.task[parent].wakee_flip_decay_ts),
            state: TaskState::New,
            policy: attr.sched_policy,
            sched_class: SchedClass::of(attr.sched_policy),
            alive: true,
            static_prio,
            prio,
            rt_priority: attr.sched_priority as u8,
            nr_cpus_allowed: cpus_allowed.weight() as u16,
            cpus_allowed: self.shared_mask(cpus_allowed),
            mm: init.mm,
            sched_task_group: init.group,
            ..TaskStruct::default()
        };
        let p = self.task.insert(task);
        let pid = self.next_pid;
        self.next_pid += 1;
        let cold = self.task_cold.insert(TaskCold {
            sched_reset_on_fork: attr.sched_flags.reset_on_fork,
            pid,
            comm: init.comm,
            css: init.group,
            ..TaskCold::default()
        });
        self.set_task_max_allowed_capacity(p);
        self.sched_autogroup_fork(parent, p);
        self.task[p].sched_task_group = self.autogroup_task_group(p, init.group);
        assert_eq!(p, cold, "the hot and the cold part of a task have one id");
        self.uclamp_fork(p, parent, &attr);
        self.se[se].task = Some(p);
        self.se[se].first_line = self.layout.first_of_se(se, Some(p));
        self.set_slice(se, attr.sched_runtime);
        self.se[se].load = set_load_weight(self.kernel.load_resolution, attr.sched_policy, static_prio);
        self.se[se].runnable_weight = self.se[se].load.weight;
        self.arch.new_task(p, pid, &self.task_cold[p].comm, prio);
        if self.numa.is_used() {
            self.init_numa_balancing(parent, p);
        }
        if self.balance.cache.is_followed() {
            self.sched_cache_fork(p);
        }
        self.set_task_rq(p, cpu);
        self.init_entity_runnable_average(se);
        self.task_fork(p);
        self.__set_task_cpu(p, cpu);
        if attr.sched_policy == Policy::Deadline {
            self.begin_deadline(p, &attr);
        }
        if unlikely(self.arch.tracing()) {
            self.trace(Event::SchedProcessFork { parent, child: p });
        }
        p
    }

    /// Whether a child as `init` describes it may be created.
    ///
    /// # Errors
    /// The answers of sched_setattr() to `init.attr` and of sched_setaffinity() to `init.cpus_allowed`; EAGAIN if a child would
    /// inherit the policy of a deadline task.
    pub(crate) fn may_fork(&self, parent: Option<TaskId>, init: &TaskInit) -> Answer {
        // Kernel threads may be bound to CPUs that are not active yet.
        let asked = init.cpus_allowed.as_ref().filter(|cpus| init.mm != 0 && !self.inherits(parent, cpus));
        if asked.is_some_and(|cpus| cpus.and(&self.cpu_active_mask).is_empty()) {
            return Err(Refusal::new(Errno::EINVAL, "no CPU of the affinity is up"));
        }
        match &init.attr {
            Some(attr) => {
                let cpu = self.cpu_of_child(attr, init.cpus_allowed.as_ref());
                self.check_attr(attr, cpu, init.cpus_allowed.as_ref())?;
                match attr.sched_policy {
                    Policy::Deadline => self.dl_new_task_fits(cpu, attr),
                    _ => Ok(()),
                }
            }
            None if self.attr_of_child(parent).sched_policy == Policy::Deadline => {
                Err(Refusal::new(Errno::EAGAIN, "a deadline task forks only with SCHED_FLAG_RESET_ON_FORK"))
            }
            None => Ok(()),
        }
    }

    /// Where a child is when its attributes are set. To become a deadline task it must be in the root domain of its CPUs:
    /// sched_setaffinity(), which a program calls before, has moved it there.
    fn cpu_of_child(&self, attr: &SchedAttr, cpus: Option<&CpuMask>) -> CpuId {
        let here = self.this_cpu;
        let asks = attr.sched_policy == Policy::Deadline && !attr.sched_flags.sugov;
        let elsewhere = cpus.filter(|cpus| asks && !cpus.contains(here));
        elsewhere.and_then(|cpus| cpus.and(&self.cpu_active_mask).first()).unwrap_or(here)
    }

    fn inherits(&self, parent: Option<TaskId>, cpus: &CpuMask) -> bool {
        parent.is_some_and(|parent| self.task[parent].cpus_allowed.as_ref() == cpus)
    }

    /// Sets a new task's deadline parameters, which have been admitted.
    fn begin_deadline(&mut self, p: TaskId, attr: &SchedAttr) {
        self.task[p].policy = Policy::Normal;
        self.sched_dl_overflow(p, attr).expect("may_fork() has asked");
        self.task[p].policy = Policy::Deadline;
        self.__setparam_dl(p, attr);
        self.switched_to_dl(self.task[p].cpu, p);
    }

    /// The attributes that sched_fork() hands on from the parent to its child.
    fn attr_of_child(&self, parent: Option<TaskId>) -> SchedAttr {
        let Some(parent) = parent else { return SchedAttr::NORMAL };
        let attr = self.get_params(parent);
        match (attr.sched_flags.reset_on_fork, attr.sched_policy.fair_policy()) {
            (false, _) => attr,
            (true, true) => SchedAttr::fair(attr.sched_policy, attr.sched_nice.max(0)),
            (true, false) => SchedAttr::NORMAL,
        }
    }

    /// core.c: wake_up_new_task().
    #[fentry]
    pub(crate) fn wake_up_new_task(&mut self, p: TaskId) {
        self.pi_lock(p);
        self.task[p].state = TaskState::Running;
        let cpu = self.select_task_rq(p, self.task[p].cpu, SdFlags::SD_BALANCE_FORK, WakeFlags::FORK);
        match self.kernel.core.clock {
            ClockUpdate::Enqueue => self.set_task_cpu(p, cpu),
            // v4.12 places the child without counting a migration.
            ClockUpdate::Callers => {
                self.task[p].recent_used_cpu = self.task[p].cpu;
                self.__set_task_cpu(p, cpu);
            }
        }
        self.rq_lock(cpu);
        // A task that begins as a deadline task gets its first budget like one that wakes up.
        let wakeup = self.task[p].sched_class == SchedClass::Dl;
        let mut flags = QueueFlags { initial: true, wakeup, ..QueueFlags::default() };
        if self.kernel.core.clock == ClockUpdate::Callers {
            self.update_rq_clock(cpu);
            flags.noclock = true;
        }
        self.post_init_entity_util_avg(p);
        self.activate_task(cpu, p, flags);
        if unlikely(self.arch.tracing()) {
            self.trace(Event::SchedWakeupNew { task: p, target_cpu: cpu });
        }
        self.check_preempt_curr(cpu, p, WakeFlags::FORK);
        self.task_woken(cpu, p);
        self.rq_unlock(cpu);
        self.pi_unlock(p);
    }

    /// Frees a dead task: core.c finish_task_switch() drops the last reference.
    ///
    /// Differs: `sched_process_free` fires at once, where the kernel waits for a grace period.
    pub(super) fn put_task_struct(&mut self, p: TaskId) {
        self.task_dead(p);
        if unlikely(self.arch.tracing()) {
            self.trace(Event::SchedProcessFree { task: p });
        }
        self.arch.task_gone(p);
        self.task[p].alive = false;
        self.end_deadline(p);
        if !self.dl_outlives(p) {
            self.free_task_struct(p);
        }
    }

    /// Frees the task's id for reuse.
    pub(crate) fn free_task_struct(&mut self, p: TaskId) {
        let se = self.task[p].se;
        self.se.remove(se);
        self.task.remove(p);
        let cold = self.task_cold.remove(p);
        self.rt_se.reset(p);
        self.dl_se.reset(p);
        self.task_numa_free(p);
        self.sched_autogroup_exit(cold.autogroup);
    }
}
