//! fair.c: load averages of entities and queues, where the kernel calls for them. The arithmetic is [`crate::pelt`]'s.
//!
//! Every entity is *attached* to one queue at most: the queue's averages then contain it, asleep or not. An entity whose
//! `last_update_time` is zero is attached to none.

use crate::access::Path;
use crate::arch::Arch;
use crate::behaviour;
use crate::core::Sched;
use crate::features::Feature;
use crate::load_weight::LoadResolution;
use crate::pelt::{self, CfsRqLoad, EntityLoad, GroupNews, Pelt, Scale};
use crate::sched::*;
use fentry::fentry;
use units::CpuId;

behaviour! {
    /// How load leaves a queue with a task that load balancing moves.
    pub enum MigrationDetach = "entity.migration_detach" {
        Removed = "removed", since "v4.3", commit "9d89c257dfb9",
            "noted as removed, and taken out at the queue's next update, as for a task that wakes elsewhere";
        Synchronous = "synchronous", since "v4.15", commit "144d8487bc6e",
            "at once: the lock of the queue it leaves is held";
    }
}

/// fair.c: UPDATE_TG, SKIP_AGE_LOAD, DO_ATTACH: what `update_load_avg()` does besides.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct UpdateLoad {
    /// Tells the task group if the queue's load changed.
    pub update_tg: bool,
    /// Leaves the entity's own averages as they are.
    pub skip_age_load: bool,
    /// Attaches the entity if it is not.
    pub do_attach: bool,
}

impl UpdateLoad {
    pub(crate) const NONE: UpdateLoad = UpdateLoad { update_tg: false, skip_age_load: false, do_attach: false };
    pub(crate) const UPDATE_TG: UpdateLoad = UpdateLoad { update_tg: true, ..UpdateLoad::NONE };
    pub(crate) const ATTACH: UpdateLoad = UpdateLoad { update_tg: true, do_attach: true, ..UpdateLoad::NONE };
}

/// x86 tells no frequency (until v5.7), and `arch_scale_cpu_capacity()` without a domain is a whole CPU.
const SCALE: Scale = Scale::FULL;

/// What the averages need to know of an entity (se_weight(), se_runnable()); `running`: it is its queue's `curr`.
#[inline]
fn entity_load(resolution: LoadResolution, entity: &SchedEntity, running: bool) -> EntityLoad {
    EntityLoad {
        weight: resolution.scale_load_down(entity.load.weight),
        runnable: resolution.scale_load_down(entity.runnable_weight),
        on_rq: entity.on_rq,
        running,
    }
}

/// The queue's part of `update_load_avg()`: true if its load changed.
#[inline]
fn update_queue(pelt: Pelt, resolution: LoadResolution, now: u64, cfs_rq: &mut CfsRq) -> bool {
    let load = CfsRqLoad {
        weight: resolution.scale_load_down(cfs_rq.load.weight),
        runnable: resolution.scale_load_down(cfs_rq.runnable_weight),
        running: cfs_rq.curr.is_some(),
    };
    pelt::update_cfs_rq_load_avg(pelt, now, SCALE, cfs_rq, load)
}

impl<A: Arch> Sched<A> {
    /// fair.c: cfs_rq_clock_task(). In ns.
    /// Differs: never 0, which the averages take for *not attached*. A real clock has run for a while before there are tasks, a
    /// simulated one stands at 0 when the first ones come.
    #[inline]
    pub(crate) fn cfs_rq_clock_task(&self, cfs: CfsRqId) -> u64 {
        self.rq[self.cfs_rq[cfs].rq].clock_task.max(1)
    }

    /// fair.c: cfs_rq_runnable_load_avg().
    #[inline]
    pub(crate) fn cfs_rq_runnable_load_avg(&self, cfs: CfsRqId) -> u64 {
        self.cfs_rq[cfs].avg.runnable_avg
    }

    /// fair.c: cfs_rq_load_avg().
    #[inline]
    pub(crate) fn cfs_rq_load_avg(&self, cfs: CfsRqId) -> u64 {
        self.cfs_rq[cfs].avg.load_avg
    }

    /// fair.c: cpu_load(). The load of a CPU with what sleeps there, 1024 = a nice-0 task that always runs (v5.5).
    #[inline]
    pub(crate) fn cpu_load(&self, cpu: CpuId) -> u64 {
        self.cfs_rq_load_avg(self.rq[cpu].cfs)
    }

    /// fair.c: cpu_runnable(). Time that tasks of the CPU run or wait, 1024 = one task that always does (v5.7).
    ///
    /// Differs: nothing in kernels that do not track it.
    #[inline]
    pub(crate) fn cpu_runnable(&self, cpu: CpuId) -> u64 {
        match self.kernel.pelt {
            Pelt::ByPeriod | Pelt::Accumulate => 0,
            Pelt::RunnableAvg => self.cfs_rq[self.rq[cpu].cfs].avg.runnable_avg,
        }
    }

    /// sched.h: cpu_util_cfs(). What fair tasks use of the CPU, at most its capacity.
    #[doc(alias = "cpu_util")]
    #[inline]
    pub(crate) fn cpu_util_cfs(&self, cpu: CpuId) -> u64 {
        self.cfs_rq[self.rq[cpu].cfs].avg.util_avg.min(self.capacity_orig_of(cpu))
    }

    /// fair.c: cpu_util_cfs_boost(). The same, or what tasks there wait for as well, if that is more (v6.5).
    #[inline]
    pub(crate) fn cpu_util_cfs_boost(&self, cpu: CpuId) -> u64 {
        self.cpu_util_cfs(cpu).max(self.cpu_runnable(cpu)).min(self.capacity_orig_of(cpu))
    }

    /// fair.c: task_util_est(). What the task is expected to use of a full CPU.
    #[inline]
    pub(crate) fn task_util_est(&self, p: TaskId) -> u64 {
        self.se[self.task[p].se].avg.util_avg
    }

    /// [`entity_load`] by id.
    #[inline]
    fn load_of(&self, se: SeId) -> EntityLoad {
        let entity = &self.se[se];
        entity_load(self.kernel.load_resolution, entity, self.cfs_rq[entity.cfs_rq].curr == Some(se))
    }

    /// fair.c: init_entity_runnable_average().
    pub(crate) fn init_entity_runnable_average(&mut self, se: SeId) {
        let entity = &mut self.se[se];
        let weight = self.kernel.load_resolution.scale_load_down(entity.load.weight);
        entity.avg = pelt::init_entity_runnable_average(self.kernel.pelt, weight, entity.task.is_some());
        entity.runnable_weight = entity.load.weight;
    }

    /// fair.c: post_init_entity_util_avg(). A new task's share of its queue's utilization; then it is attached.
    /// Differs: does nothing in kernels that attach a new task when it is queued (until v4.7).
    pub(crate) fn post_init_entity_util_avg(&mut self, se: SeId) {
        if self.kernel.pelt == Pelt::ByPeriod {
            return;
        }
        let entity = &mut self.se[se];
        let cfs_rq = &self.cfs_rq[entity.cfs_rq];
        let cpu_scale = SCALE.cpu;
        pelt::post_init_entity_util_avg(self.kernel.pelt, &mut entity.avg, &cfs_rq.avg, entity.load.weight, cpu_scale);
        self.attach_entity_cfs_rq(se);
    }

    /// fair.c: update_cfs_rq_load_avg(). True if the queue's load changed.
    /// Differs: stands on no profile stack of its own, as it is inlined into whoever calls it.
    #[inline]
    pub(crate) fn update_cfs_rq_load_avg(&mut self, now: u64, cfs: CfsRqId) -> bool {
        self.write_cfs_avg(cfs);
        self.read_cfs_contrib(cfs);
        update_queue(self.kernel.pelt, self.kernel.load_resolution, now, &mut self.cfs_rq[cfs])
    }

    /// fair.c: update_tg_load_avg(). Adds to the group's sum what changed here since the last time, if that is more than a
    /// 64th (or `force`).
    #[inline]
    pub(crate) fn update_tg_load_avg(&mut self, cfs: CfsRqId, force: bool) {
        let cfs_rq = &mut self.cfs_rq[cfs];
        if cfs_rq.tg == ROOT_TASK_GROUP {
            return;
        }
        let delta = cfs_rq.avg.load_avg.wrapping_sub(cfs_rq.tg_load_avg_contrib) as i64;
        if force || delta.unsigned_abs() > cfs_rq.tg_load_avg_contrib / 64 {
            cfs_rq.tg_load_avg_contrib = cfs_rq.avg.load_avg;
            let tg = cfs_rq.tg;
            self.tg_load_avg_add(tg, delta);
        }
    }

    /// fair.c: propagate_entity_load_avg(). A group's entity follows what came to the group's queue and what left it.
    fn propagate_entity_load_avg(&mut self, cfs: CfsRqId, se: SeId, group: CfsRqId) -> bool {
        let weight = self.kernel.load_resolution.scale_load_down(self.cfs_rq[group].load.weight);
        let Some(news) = GroupNews::take(&mut self.cfs_rq[group], weight) else { return false };
        let load = self.load_of(se);
        let (cfs_rq, avg) = (&mut self.cfs_rq[cfs], &mut self.se[se].avg);
        pelt::propagate_entity_load_avg(self.kernel.pelt, SCALE, cfs_rq, avg, load, &news);
        true
    }

    /// fair.c: update_load_avg(). Brings an entity and its queue up to now.
    #[fentry]
    pub(crate) fn update_load_avg(&mut self, cfs: CfsRqId, se: SeId, flags: UpdateLoad) {
        self.write_se_avg(se);
        self.write_cfs_avg(cfs);
        self.read_cfs_contrib(cfs);
        let (pelt, resolution) = (self.kernel.pelt, self.kernel.load_resolution);
        let (cfs_rq, entity) = (&mut self.cfs_rq[cfs], &mut self.se[se]);
        let now = self.rq[cfs_rq.rq].clock_task.max(1);
        let attached = entity.avg.last_update_time != 0;
        if pelt == Pelt::ByPeriod || attached && !flags.skip_age_load {
            let load = entity_load(resolution, entity, cfs_rq.curr == Some(se));
            pelt::__update_load_avg_se(pelt, now, SCALE, &mut entity.avg, load);
        }
        let mut decayed = update_queue(pelt, resolution, now, cfs_rq);
        if let Some(group) = entity.my_q {
            decayed |= self.propagate_entity_load_avg(cfs, se, group);
        }
        if flags.do_attach && !attached {
            self.attach_entity_load_avg(cfs, se);
            self.update_tg_load_avg(cfs, false);
        } else if decayed && flags.update_tg {
            self.update_tg_load_avg(cfs, false);
        }
    }

    /// fair.c: enqueue_entity_load_avg(). Averages of an entity about to be queued; attaches it if it is not.
    /// Differs: from v4.15 on this is the kernel's plain call of `update_load_avg()`.
    #[inline]
    pub(crate) fn enqueue_entity_load_avg(&mut self, cfs: CfsRqId, se: SeId) {
        if self.kernel.pelt == Pelt::ByPeriod {
            self.enqueue_entity_load_avg_by_period(cfs, se);
        } else {
            self.update_load_avg(cfs, se, UpdateLoad::ATTACH);
        }
    }

    /// `enqueue_entity_load_avg()` up to v4.9.
    /// Differs: the runnable load is added by the caller, after attaching, which leaves what is added as it is.
    #[fentry(enqueue_entity_load_avg)]
    fn enqueue_entity_load_avg_by_period(&mut self, cfs: CfsRqId, se: SeId) {
        self.write_se_avg(se);
        self.write_cfs_avg(cfs);
        self.read_cfs_contrib(cfs);
        let (pelt, resolution) = (self.kernel.pelt, self.kernel.load_resolution);
        let (cfs_rq, entity) = (&mut self.cfs_rq[cfs], &mut self.se[se]);
        let now = self.rq[cfs_rq.rq].clock_task.max(1);
        let migrated = entity.avg.last_update_time == 0;
        if !migrated {
            let load = entity_load(resolution, entity, cfs_rq.curr == Some(se));
            pelt::__update_load_avg_se(pelt, now, SCALE, &mut entity.avg, load);
        }
        let decayed = update_queue(pelt, resolution, now, cfs_rq);
        if migrated {
            self.attach_entity_load_avg(cfs, se);
        }
        if decayed || migrated {
            self.update_tg_load_avg(cfs, false);
        }
    }

    /// fair.c: enqueue_runnable_load_avg().
    #[inline]
    pub(crate) fn enqueue_runnable_load_avg(&mut self, cfs: CfsRqId, se: SeId) {
        let (cfs_rq, se) = (&mut self.cfs_rq[cfs], &self.se[se]);
        let load = entity_load(self.kernel.load_resolution, se, false);
        cfs_rq.runnable_weight += se.runnable_weight;
        pelt::enqueue_runnable_load_avg(self.kernel.pelt, &mut cfs_rq.avg, &se.avg, load);
    }

    /// fair.c: dequeue_runnable_load_avg(); until v4.14 the end of dequeue_entity_load_avg().
    #[inline]
    pub(crate) fn dequeue_runnable_load_avg(&mut self, cfs: CfsRqId, se: SeId) {
        let (cfs_rq, se) = (&mut self.cfs_rq[cfs], &self.se[se]);
        let load = entity_load(self.kernel.load_resolution, se, false);
        cfs_rq.runnable_weight -= se.runnable_weight;
        pelt::dequeue_runnable_load_avg(self.kernel.pelt, &mut cfs_rq.avg, &se.avg, load);
    }

    /// The averages' part of `reweight_entity()`: puts `load` and `runnable` in place of the entity's weights. The caller has
    /// taken a queued entity out of its queue's weight.
    pub(crate) fn reweight_averages(&mut self, cfs: CfsRqId, se: SeId, load: LoadWeight, runnable: u64) {
        let pelt = self.kernel.pelt;
        let on_rq = self.se[se].on_rq;
        if pelt == Pelt::ByPeriod {
            // The sums of this era carry the weight they were counted with: nothing to correct.
            let entity = &mut self.se[se];
            let runnable_weight = std::mem::replace(&mut entity.runnable_weight, runnable);
            entity.load = load;
            if on_rq {
                let cfs_rq = &mut self.cfs_rq[cfs];
                cfs_rq.runnable_weight = cfs_rq.runnable_weight - runnable_weight + runnable;
            }
            return;
        }
        if on_rq {
            self.dequeue_runnable_load_avg(cfs, se);
        }
        let before = self.load_of(se).weight;
        pelt::dequeue_load_avg(pelt, &mut self.cfs_rq[cfs].avg, &self.se[se].avg, before);
        self.se[se].load = load;
        self.se[se].runnable_weight = runnable;
        let after = self.load_of(se);
        pelt::reweight_load_avg(pelt, &mut self.se[se].avg, after);
        pelt::enqueue_load_avg(&mut self.cfs_rq[cfs].avg, &self.se[se].avg, after.weight);
        if on_rq {
            self.enqueue_runnable_load_avg(cfs, se);
        }
    }

    // Attaching and detaching.

    /// fair.c: attach_entity_load_avg().
    pub(crate) fn attach_entity_load_avg(&mut self, cfs: CfsRqId, se: SeId) {
        self.path(Path::attach_entity_load_avg);
        let age = self.sched_feat(Feature::ATTACH_AGE_LOAD);
        let load = self.load_of(se);
        let (cfs_rq, avg) = (&mut self.cfs_rq[cfs], &mut self.se[se].avg);
        pelt::attach_entity_load_avg(self.kernel.pelt, SCALE, age, cfs_rq, avg, load);
    }

    /// fair.c: detach_entity_load_avg().
    pub(crate) fn detach_entity_load_avg(&mut self, cfs: CfsRqId, se: SeId) {
        self.path(Path::detach_entity_load_avg);
        let load = self.load_of(se);
        let (cfs_rq, avg) = (&mut self.cfs_rq[cfs], &mut self.se[se].avg);
        pelt::detach_entity_load_avg(self.kernel.pelt, SCALE, cfs_rq, avg, load);
    }

    /// fair.c: attach_entity_cfs_rq(); until v4.7 only the attaching.
    pub(crate) fn attach_entity_cfs_rq(&mut self, se: SeId) {
        let cfs = self.se[se].cfs_rq;
        if self.kernel.pelt == Pelt::ByPeriod {
            self.attach_entity_load_avg(cfs, se);
            return;
        }
        let skip_age_load = !self.sched_feat(Feature::ATTACH_AGE_LOAD);
        self.update_load_avg(cfs, se, UpdateLoad { skip_age_load, ..UpdateLoad::NONE });
        self.attach_entity_load_avg(cfs, se);
        self.update_tg_load_avg(cfs, false);
        self.propagate_entity_cfs_rq(se);
    }

    /// fair.c: detach_entity_cfs_rq(); until v4.7 only the detaching.
    pub(crate) fn detach_entity_cfs_rq(&mut self, se: SeId) {
        let cfs = self.se[se].cfs_rq;
        if self.kernel.pelt == Pelt::ByPeriod {
            self.detach_entity_load_avg(cfs, se);
            return;
        }
        self.update_load_avg(cfs, se, UpdateLoad::NONE);
        self.detach_entity_load_avg(cfs, se);
        self.update_tg_load_avg(cfs, false);
        self.propagate_entity_cfs_rq(se);
    }

    /// fair.c: propagate_entity_cfs_rq(). Tells every level above what came or left.
    fn propagate_entity_cfs_rq(&mut self, se: SeId) {
        let mut level = self.se[se].parent;
        while let Some(se) = level {
            self.update_load_avg(self.se[se].cfs_rq, se, UpdateLoad::UPDATE_TG);
            level = self.se[se].parent;
        }
    }

    /// fair.c: sync_entity_load_avg(). Ages a sleeping entity up to its queue's last update, without the queue's lock.
    pub(crate) fn sync_entity_load_avg(&mut self, se: SeId) {
        let cfs = self.se[se].cfs_rq;
        self.read_cfs_avg(cfs);
        self.write_se_avg(se);
        let now = self.cfs_rq[cfs].avg.last_update_time;
        let load = self.load_of(se);
        pelt::sync_entity_load_avg(self.kernel.pelt, SCALE, now, &mut self.se[se].avg, load);
    }

    /// fair.c: remove_entity_load_avg(). A sleeping entity leaves its queue, which learns of it at its next update. One that
    /// was never attached has nothing to remove (until v4.7; later there is none).
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
        let load = self.load_of(se);
        let (cfs_rq, avg) = (&mut self.cfs_rq[cfs], &mut self.se[se].avg);
        let now = cfs_rq.avg.last_update_time;
        pelt::remove_entity_load_avg(self.kernel.pelt, SCALE, now, &mut cfs_rq.removed, avg, load);
    }

    /// fair.c: set_task_rq_fair(). An entity that takes its load along is aged up to the old queue's time, and gets the new
    /// queue's.
    fn set_task_rq_fair(&mut self, se: SeId, prev: CfsRqId, next: CfsRqId) {
        if !self.sched_feat(Feature::ATTACH_AGE_LOAD) || self.se[se].avg.last_update_time == 0 {
            return;
        }
        let (then, now) = (self.cfs_rq[prev].avg.last_update_time, self.cfs_rq[next].avg.last_update_time);
        let load = self.load_of(se);
        let avg = &mut self.se[se].avg;
        pelt::__update_load_avg_blocked_se(self.kernel.pelt, then, SCALE, avg, load);
        avg.last_update_time = now;
    }

    /// kernel/sched/sched.h: set_task_rq(). Points a task at its group's queue of `cpu`.
    /// Differs: keeps `depth` true at once, where the kernel does so when the entity is attached.
    pub(crate) fn set_task_rq(&mut self, p: TaskId, cpu: units::CpuId) {
        let (tg, se) = (self.task[p].sched_task_group, self.task[p].se);
        self.read_tg_arrays(tg);
        let cfs = self.tg[tg].cfs_rq[cpu.index()];
        let parent = self.tg[tg].se.get(cpu.index()).copied();
        self.set_task_rq_fair(se, self.se[se].cfs_rq, cfs);
        let depth = parent.map_or(0, |parent| self.se[parent].depth + 1);
        let se = &mut self.se[se];
        se.cfs_rq = cfs;
        se.parent = parent;
        se.depth = depth;
    }

    /// fair.c: migrate_task_rq_fair(). A task is about to change CPUs: its queue forgets its load, and it its heat.
    #[fentry]
    pub(crate) fn migrate_task_rq_fair(&mut self, p: TaskId) {
        use super::entity::SleeperVruntime;
        let task = &self.task[p];
        let (se, state, on_rq) = (task.se, task.state, task.on_rq);
        self.write_se_times(se);
        if self.kernel.entity.sleeper_vruntime == SleeperVruntime::RelativeOnMigration && state == TaskState::Waking {
            self.read_cfs_rq(self.se[se].cfs_rq);
            let entity = &mut self.se[se];
            entity.vruntime = entity.vruntime.wrapping_sub(self.cfs_rq[entity.cfs_rq].min_vruntime);
        }
        let synchronous = self.kernel.entity.migration_detach == MigrationDetach::Synchronous;
        if synchronous && on_rq == OnRq::Migrating {
            self.detach_entity_cfs_rq(se);
        } else {
            self.remove_entity_load_avg(se);
        }
        let se = &mut self.se[se];
        se.avg.last_update_time = 0;
        se.exec_start = 0;
    }

    /// fair.c: task_dead_fair().
    pub(crate) fn task_dead_fair(&mut self, p: TaskId) {
        self.remove_entity_load_avg(self.task[p].se);
    }
}
