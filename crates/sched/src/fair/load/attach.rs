//! fair.c: how entities are attached to queues and detached, and what is propagated to the groups above.

use super::{MigrateLag, MigrationDetach, NewTaskAttach, UpdateLoad};
use crate::access::Path;
use crate::arch::Arch;
use crate::core::Sched;
use crate::cpufreq::ChangePlace;
use crate::fair::group::LeafList;
use crate::fair::rules::{ExecStartReset, Pick, SleeperVruntime};
use crate::features::Feature;
use crate::pelt::{self, Pelt};
use crate::sched::*;
use fentry::fentry;
use units::CpuId;

impl<A: Arch> Sched<A> {
    /// fair.c: attach_entity_load_avg(). `place`: [`ChangePlace::Moved`] or [`ChangePlace::Arrived`].
    pub(crate) fn attach_entity_load_avg(&mut self, cfs: CfsRqId, se: SeId, place: ChangePlace) {
        self.path(Path::attach_entity_load_avg);
        let age = self.sched_feat(Feature::ATTACH_AGE_LOAD);
        let (load, scale) = (self.load_of(se), self.scale_of_time(self.cfs_rq[cfs].rq));
        let (cfs_rq, avg) = (&mut self.cfs_rq[cfs], &mut self.se[se].avg);
        pelt::attach_entity_load_avg(self.kernel.pelt, self.kernel.load.sum_floor, scale, age, cfs_rq, avg, load);
        self.cfs_rq_util_change(cfs, place);
        self.trace_pelt_cfs_tp(cfs);
    }

    /// fair.c: detach_entity_load_avg().
    pub(crate) fn detach_entity_load_avg(&mut self, cfs: CfsRqId, se: SeId) {
        self.path(Path::detach_entity_load_avg);
        let (load, scale) = (self.load_of(se), self.scale_of_time(self.cfs_rq[cfs].rq));
        let (cfs_rq, avg) = (&mut self.cfs_rq[cfs], &mut self.se[se].avg);
        pelt::detach_entity_load_avg(self.kernel.pelt, self.kernel.load.sum_floor, scale, cfs_rq, avg, load);
        self.cfs_rq_util_change(cfs, ChangePlace::Moved);
        self.trace_pelt_cfs_tp(cfs);
    }

    /// fair.c: attach_entity_cfs_rq(); until v4.7 only the attaching.
    pub(crate) fn attach_entity_cfs_rq(&mut self, se: SeId) {
        let cfs = self.se[se].cfs_rq;
        if self.kernel.pelt == Pelt::ByPeriod {
            self.attach_entity_load_avg(cfs, se, ChangePlace::Moved);
            return;
        }
        let skip_age_load = !self.sched_feat(Feature::ATTACH_AGE_LOAD);
        self.update_load_avg(cfs, se, UpdateLoad { skip_age_load, ..UpdateLoad::NONE });
        self.attach_entity_load_avg(cfs, se, ChangePlace::Moved);
        self.update_tg_load_avg(cfs);
        self.propagate_entity_cfs_rq(se);
    }

    /// fair.c: detach_entity_cfs_rq(); until v4.7 only the detaching.
    pub(crate) fn detach_entity_cfs_rq(&mut self, se: SeId) {
        let cfs = self.se[se].cfs_rq;
        if self.kernel.pelt == Pelt::ByPeriod {
            self.detach_entity_load_avg(cfs, se);
            return;
        }
        if self.kernel.load.new_task_attach == NewTaskAttach::Deferred && self.se[se].avg.last_update_time == 0 {
            return;
        }
        self.update_load_avg(cfs, se, UpdateLoad::NONE);
        self.detach_entity_load_avg(cfs, se);
        self.update_tg_load_avg(cfs);
        self.propagate_entity_cfs_rq(se);
    }

    /// fair.c: propagate_entity_cfs_rq(). Propagates what was attached or detached to every level above.
    fn propagate_entity_cfs_rq(&mut self, se: SeId) {
        let rule = self.kernel.load.leaf_list;
        if matches!(rule, LeafList::Propagated | LeafList::PropagatedKept) {
            return self.propagate_and_list(se);
        }
        let listed = rule == LeafList::Connected;
        let cfs = self.se[se].cfs_rq;
        if listed && !self.cfs_rq_pelt_clock_throttled(cfs) {
            self.list_add_leaf_cfs_rq(cfs);
        }
        if listed && self.queue_is_off(cfs) {
            return;
        }
        let mut level = self.se[se].parent;
        while let Some(se) = level {
            let cfs = self.se[se].cfs_rq;
            let throttled = self.queue_is_off(cfs);
            if throttled && !listed {
                return;
            }
            self.update_load_avg(cfs, se, UpdateLoad::UPDATE_TG);
            if throttled {
                return;
            }
            if listed && !self.cfs_rq_pelt_clock_throttled(cfs) {
                self.list_add_leaf_cfs_rq(cfs);
            }
            level = self.se[se].parent;
        }
    }

    /// The same under [`LeafList::Propagated`] and [`LeafList::PropagatedKept`]: above a throttled queue it only lists, until the branch is connected.
    fn propagate_and_list(&mut self, se: SeId) {
        self.list_add_leaf_cfs_rq(self.se[se].cfs_rq);
        let mut level = self.se[se].parent;
        while let Some(se) = level {
            let cfs = self.se[se].cfs_rq;
            if !self.queue_is_off(cfs) {
                self.update_load_avg(cfs, se, UpdateLoad::UPDATE_TG);
                self.list_add_leaf_cfs_rq(cfs);
            } else {
                self.list_add_leaf_cfs_rq(cfs);
                if self.rq[self.cfs_rq[cfs].rq].tmp_alone_branch.is_none() {
                    return;
                }
            }
            level = self.se[se].parent;
        }
    }

    /// fair.c: sync_entity_load_avg(). Ages a sleeping entity up to its queue's last update, without taking the queue's
    /// lock.
    pub(crate) fn sync_entity_load_avg(&mut self, se: SeId) {
        let cfs = self.se[se].cfs_rq;
        self.read_cfs_avg(cfs);
        self.write_se_avg(se);
        let now = self.cfs_rq[cfs].avg.last_update_time;
        let (load, scale) = (self.load_of(se), self.scale_of_time(self.cfs_rq[cfs].rq));
        pelt::sync_entity_load_avg(self.kernel.pelt, scale, now, &mut self.se[se].avg, load);
    }

    /// fair.c: remove_entity_load_avg(). A sleeping entity leaves its queue, which processes that in its next update.
    /// An entity that was never attached has nothing to remove (until v4.7; later there is none).
    #[inline]
    pub(crate) fn remove_entity_load_avg(&mut self, se: SeId) {
        if self.kernel.pelt != Pelt::ByPeriod || self.se[se].avg.last_update_time != 0 {
            self.remove_attached_load_avg(se);
        }
    }

    #[fentry(remove_entity_load_avg)]
    fn remove_attached_load_avg(&mut self, se: SeId) {
        let cfs = self.se[se].cfs_rq;
        self.read_cfs_avg(cfs);
        self.write_se_avg(se);
        self.atomic_cfs_removed(cfs);
        let (load, scale) = (self.load_of(se), self.scale_of_time(self.cfs_rq[cfs].rq));
        let (cfs_rq, avg) = (&mut self.cfs_rq[cfs], &mut self.se[se].avg);
        let now = cfs_rq.avg.last_update_time;
        pelt::remove_entity_load_avg(self.kernel.pelt, scale, now, &mut cfs_rq.removed, avg, load);
    }

    /// fair.c: set_task_rq_fair(). Ages an entity that takes its load along up to the old queue's time, and gives it
    /// the new queue's time.
    fn set_task_rq_fair(&mut self, se: SeId, prev: CfsRqId, next: CfsRqId) {
        if !self.sched_feat(Feature::ATTACH_AGE_LOAD) || self.se[se].avg.last_update_time == 0 {
            return;
        }
        let (then, now) = (self.cfs_rq[prev].avg.last_update_time, self.cfs_rq[next].avg.last_update_time);
        let (load, scale) = (self.load_of(se), self.scale_of_time(self.cfs_rq[prev].rq));
        let avg = &mut self.se[se].avg;
        pelt::__update_load_avg_blocked_se(self.kernel.pelt, then, scale, avg, load);
        avg.last_update_time = now;
    }

    /// kernel/sched/sched.h: set_task_rq(). Points a task at its group's queue of `cpu`.
    /// Differs: updates `depth` at once; the kernel does when the entity is attached.
    pub(crate) fn set_task_rq(&mut self, p: TaskId, cpu: CpuId) {
        let (tg, se) = (self.task[p].sched_task_group, self.task[p].se);
        self.read_tg_cfs_rq(tg);
        self.read_tg_se(tg);
        let cfs = self.tg[tg].cfs_rq[cpu.index()];
        let parent = self.tg[tg].se.get(cpu.index()).copied();
        self.set_task_rq_fair(se, self.se[se].cfs_rq, cfs);
        let depth = parent.map_or(0, |parent| self.se[parent].depth + 1);
        let se = &mut self.se[se];
        se.cfs_rq = cfs;
        se.parent = parent;
        se.depth = depth;
    }

    /// fair.c: migrate_task_rq_fair(). A task is about to change CPUs: its old queue forgets its load, and the task is
    /// no longer cache-hot.
    #[fentry]
    pub(crate) fn migrate_task_rq_fair(&mut self, p: TaskId) {
        let task = &self.task[p];
        let (se, state, on_rq) = (task.se, task.state, task.on_rq);
        self.write_se_times(se);
        let rules = self.kernel.entity;
        let moves_over = rules.pick == Pick::Cfs && rules.sleeper_vruntime == SleeperVruntime::RelativeOnMigration;
        if moves_over && state == TaskState::Waking {
            self.read_cfs_rq(self.se[se].cfs_rq);
            let entity = &mut self.se[se];
            entity.vruntime = entity.vruntime.wrapping_sub(self.cfs_rq[entity.cfs_rq].min_vruntime);
        }
        match self.kernel.load.migration_detach {
            MigrationDetach::Synchronous if on_rq == OnRq::Migrating => self.detach_entity_cfs_rq(se),
            MigrationDetach::AtDequeue if on_rq == OnRq::Migrating => {}
            _ => {
                self.remove_entity_load_avg(se);
                if self.kernel.load.migrate_lag == MigrateLag::Estimated {
                    self.migrate_se_pelt_lag(se);
                }
            }
        }
        let se = &mut self.se[se];
        se.avg.last_update_time = 0;
        if rules.exec_start_reset == ExecStartReset::AtMigration {
            se.exec_start = 0;
        }
    }

    /// What `dequeue_entity()` makes `update_load_avg()` do in addition.
    #[inline]
    pub(crate) fn dequeue_action(&self, se: SeId) -> UpdateLoad {
        let do_detach = self.kernel.load.migration_detach == MigrationDetach::AtDequeue
            && self.se[se].task.is_some_and(|p| self.task[p].on_rq == OnRq::Migrating);
        UpdateLoad { do_detach, ..UpdateLoad::UPDATE_TG }
    }

    /// fair.c: task_dead_fair().
    pub(crate) fn task_dead_fair(&mut self, p: TaskId) {
        let (cpu, se) = (self.task[p].cpu, self.task[p].se);
        self.end_delayed_dequeue(cpu, se);
        self.remove_entity_load_avg(se);
    }
}
