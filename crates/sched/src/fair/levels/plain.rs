//! The usual case of the groups' steps in walks: a kernel with CFS and averages of v4.15 on, while everything is off that most runs do
//! without (schedstats, quotas, SCHED_IDLE, CPUs of less than full capacity). It does the same as [`super`], but in another order: first it
//! touches the lines of a step, in the same sequence as there, and then it computes, borrowing the entity and its queue once. What is
//! touched does not depend on what is computed, nor the other way round. A level that is not the usual case is left to the general walk.

use super::Walk;
use crate::access::LevelLines;
use crate::arch::Arch;
use crate::core::Sched;
use crate::fair::cfs::is_long_sleep;
use crate::fair::group::calc_group_weights;
use crate::fair::load::{
    Arithmetic, Released, Step, UpdateLoad, accrue_as, dequeue_runnable_load_avg, enqueue_runnable_load_avg,
    reweight_averages, running_clock,
};
use crate::fair::rules::{LongSleeper, MinVruntimeCurr};
use crate::features::Feature;
use crate::load_weight::calc_delta_fair;
use crate::pelt::{self, Pelt};
use crate::sched::*;
use fentry::fentry;
use units::CpuId;

/// What all steps of a walk share.
#[derive(Clone, Copy)]
struct Common {
    cpu: CpuId,
    /// That CPU's `clock_task`: no walk updates it.
    clock_task: u64,
    /// The clock of its queues' averages, none of which stands still.
    now: u64,
}

/// The place of a step: a group's entity, the queue it is on, and the group's own queue.
#[derive(Clone, Copy)]
struct Place {
    cfs: CfsRqId,
    se: SeId,
    group: CfsRqId,
}

/// What determines the weight of a group's entity, and the number of tasks in it.
#[derive(Clone, Copy)]
struct Weights {
    weight: u64,
    runnable: u64,
    tasks: u64,
}

/// The part of `update_curr()` that only computes: `entity` is `curr` of `cfs_rq`.
#[inline(always)]
fn charge(known: Arithmetic, cfs_rq: &mut CfsRq, entity: &mut SchedEntity, delta_exec: u64) {
    entity.exec_start = entity.exec_start.wrapping_add(delta_exec);
    entity.sum_exec_runtime += delta_exec;
    let delta = calc_delta_fair(known.resolution, delta_exec, &mut entity.load);
    entity.vruntime = entity.vruntime.wrapping_add(delta);
    // The entity is queued, and so counts in every version.
    cfs_rq.update_min_vruntime(Some(entity.vruntime));
}

impl Weights {
    /// Stores the number of tasks in the entity (`se_update_runnable()`), and reweights it (`reweight_entity()`).
    #[inline(always)]
    fn put_on(self, known: Arithmetic, cfs_rq: &mut CfsRq, entity: &mut SchedEntity, queued: bool) {
        if known.pelt == Pelt::RunnableAvg {
            entity.runnable_weight = self.tasks;
        }
        let load = LoadWeight { weight: self.weight, inv_weight: 0 };
        reweight_averages(known, cfs_rq, entity, load, self.runnable, queued);
    }
}

impl<A: Arch> Sched<A> {
    /// The arithmetic of walks whose groups may be the usual case.
    #[inline(always)]
    pub(super) fn plain_arithmetic(&self) -> Option<Released> {
        let other = self.schedstat_enabled() | self.cfs_bandwidth_used() | self.sched_idle_used | !self.full_scale;
        (!other).then_some(self.arithmetic)
    }

    /// Does as much of [`Sched::enqueue_groups`] as is the usual case.
    #[inline(always)]
    pub(super) fn enqueue_plain_groups(&mut self, known: Arithmetic, walk: &mut Walk) {
        let Some(first) = walk.level else { return };
        let common = self.common(known, first);
        let mut at = self.place(first);
        // The credit of a sleeper.
        let credit = self.sysctl.sched_latency >> u32::from(self.sched_feat(Feature::GENTLE_FAIR_SLEEPERS));
        let forgets = self.kernel.entity.long_sleeper == LongSleeper::Forgotten;
        loop {
            if self.cfs_rq[at.cfs].curr.is_some() {
                walk.level = Some(at.se);
                return;
            }
            self.enqueue_plain(known, common, at, credit, forgets);
            self.cfs_rq[at.cfs].h_nr_running += walk.change.tasks;
            walk.level = self.se[at.se].parent;
            match walk.level {
                Some(above) if !self.se[above].on_rq => at = self.above(at, above),
                _ => return,
            }
        }
    }

    /// `enqueue_entity()` of a group's entity that wakes on a queue where nothing runs.
    #[inline(always)]
    #[fentry(enqueue_entity)]
    fn enqueue_plain(&mut self, known: Arithmetic, common: Common, at: Place, credit: u64, forgets: bool) {
        let step = Step::Group(known);
        let lines = self.level_lines(at.cfs, at.se, step).fetched(step);
        self.write_cfs_rq_at(lines);
        self.write_se_at(lines);
        self.write_se_times_at(lines);
        let units = self.age_plain(common, at, UpdateLoad::ATTACH, lines);
        let weights = self.weigh_plain(known, at, lines, false, 0);
        let on_root = self.se[at.se].parent.is_none();
        if on_root {
            self.write_rq_weight(common.cpu);
        }
        self.write_cfs_timeline_at(lines);

        let (cfs_rq, entity) = (&mut self.cfs_rq[at.cfs], &mut self.se[at.se]);
        accrue_as(known, common.now, units, cfs_rq, entity, [false; 3]);
        weights.put_on(known, cfs_rq, entity, false);
        enqueue_runnable_load_avg(known, cfs_rq, entity);
        let weight = entity.load.weight;
        cfs_rq.load.update_load_add(weight);
        cfs_rq.nr_running += 1;
        let placed = cfs_rq.min_vruntime.wrapping_sub(credit);
        if crate::fair::timeline::entity_before(entity.vruntime, placed)
            || forgets && is_long_sleep(entity.exec_start, common.clock_task)
        {
            entity.vruntime = placed;
        }
        cfs_rq.tasks_timeline.insert(entity.vruntime, at.se);
        (entity.in_timeline, entity.on_rq) = (true, true);
        let unlisted = cfs_rq.nr_running == 1 && !cfs_rq.on_list;
        if on_root {
            self.rq[common.cpu].load.update_load_add(weight);
        }
        if unlisted {
            self.list_add_leaf_cfs_rq(at.cfs);
        }
    }

    /// Does as much of [`Sched::dequeue_groups`] as is the usual case: groups that the running task leaves. Returns true if others are left
    /// on the last group's queue.
    #[inline(always)]
    pub(super) fn dequeue_plain_groups(&mut self, known: Arithmetic, walk: &mut Walk, of_task: &QueueFlags) -> bool {
        let Some(first) = walk.level else { return false };
        let advance = self.kernel.entity.min_vruntime_dequeue.advances(of_task);
        let common = self.common(known, first);
        let mut at = self.place(first);
        loop {
            if self.cfs_rq[at.cfs].curr != Some(at.se) {
                walk.level = Some(at.se);
                return false;
            }
            self.dequeue_plain(known, common, at, advance);
            let cfs_rq = &mut self.cfs_rq[at.cfs];
            cfs_rq.h_nr_running -= walk.change.tasks;
            let inhabited = cfs_rq.load.weight != 0;
            walk.level = self.se[at.se].parent;
            match walk.level {
                Some(above) if !inhabited => at = self.above(at, above),
                Some(above) => {
                    if of_task.sleep {
                        self.prefer_whence_slept(above);
                    }
                    return true;
                }
                None => return inhabited,
            }
        }
    }

    /// `dequeue_entity()` of a running group's entity.
    #[inline(always)]
    #[fentry(dequeue_entity)]
    fn dequeue_plain(&mut self, known: Arithmetic, common: Common, at: Place, advance: bool) {
        let step = Step::Group(known);
        let lines = self.level_lines(at.cfs, at.se, step);
        self.write_cfs_rq_at(lines.fetched(step));
        self.write_se_at(lines);
        let delta_exec = self.not_charged(common, at.se);
        if delta_exec != 0 {
            self.touch_curr(lines);
        }
        let units = self.age_plain(common, at, UpdateLoad::UPDATE_TG, lines);
        self.clear_buddies(at.cfs, at.se);
        let on_root = self.se[at.se].parent.is_none();
        if on_root {
            self.write_rq_weight(common.cpu);
        }
        let weights = self.weigh_plain(known, at, lines, false, 0);
        let even_dequeued = self.kernel.entity.min_vruntime_curr == MinVruntimeCurr::EvenDequeued;

        let (cfs_rq, entity) = (&mut self.cfs_rq[at.cfs], &mut self.se[at.se]);
        if delta_exec != 0 {
            charge(known, cfs_rq, entity, delta_exec);
        }
        accrue_as(known, common.now, units, cfs_rq, entity, [true; 3]);
        dequeue_runnable_load_avg(known, cfs_rq, entity);
        entity.on_rq = false;
        let weight = entity.load.weight;
        cfs_rq.load.update_load_sub(weight);
        cfs_rq.nr_running -= 1;
        if advance {
            cfs_rq.update_min_vruntime(even_dequeued.then_some(entity.vruntime));
        }
        weights.put_on(known, cfs_rq, entity, false);
        let empty = cfs_rq.nr_running == 0;
        if on_root {
            self.rq[common.cpu].load.update_load_sub(weight);
        }
        if empty {
            self.update_idle_cfs_rq_clock_pelt(at.cfs);
        }
    }

    /// Does as much of [`Sched::update_levels_above`] as is the usual case.
    #[inline(always)]
    pub(super) fn update_plain_levels<const COMES: bool>(&mut self, known: Arithmetic, walk: &mut Walk) {
        let Some(first) = walk.level else { return };
        let common = self.common(known, first);
        let mut at = self.place(first);
        loop {
            if !self.se[at.se].on_rq {
                walk.level = Some(at.se);
                return;
            }
            self.update_plain_level(known, common, at);
            let count = &mut self.cfs_rq[at.cfs].h_nr_running;
            match COMES {
                true => *count += walk.change.tasks,
                false => *count -= walk.change.tasks,
            }
            walk.level = self.se[at.se].parent;
            let Some(above) = walk.level else { return };
            at = self.above(at, above);
        }
    }

    /// The net effect of an enqueue or a dequeue further down on a group's entity that is queued and stays so.
    #[inline(always)]
    fn update_plain_level(&mut self, known: Arithmetic, common: Common, at: Place) {
        let lines = self.level_lines(at.cfs, at.se, Step::Group(known));
        let units = self.age_plain(common, at, UpdateLoad::UPDATE_TG, lines);
        let curr = self.cfs_rq[at.cfs].curr;
        let running = curr == Some(at.se);
        let delta_exec = if running { self.not_charged(common, at.se) } else { 0 };
        let weights = self.weigh_plain(known, at, lines, true, delta_exec);

        let (cfs_rq, entity) = (&mut self.cfs_rq[at.cfs], &mut self.se[at.se]);
        accrue_as(known, common.now, units, cfs_rq, entity, [true, running, curr.is_some()]);
        if delta_exec != 0 {
            charge(known, cfs_rq, entity, delta_exec);
        }
        let (before, on_root) = (entity.load.weight, entity.parent.is_none());
        cfs_rq.load.update_load_sub(before);
        cfs_rq.load.update_load_add(weights.weight);
        weights.put_on(known, cfs_rq, entity, true);
        if on_root {
            let load = &mut self.rq[common.cpu].load;
            load.update_load_sub(before);
            load.update_load_add(weights.weight);
        }
    }

    // Parts of all steps.

    #[inline(always)]
    fn common(&self, known: Arithmetic, first: SeId) -> Common {
        let cpu = self.cfs_rq[self.se[first].cfs_rq].rq;
        let rq = &self.rq[cpu];
        Common { cpu, clock_task: rq.clock_task, now: running_clock(known.clock, rq).max(1) }
    }

    #[inline(always)]
    fn place(&self, se: SeId) -> Place {
        let entity = &self.se[se];
        Place { cfs: entity.cfs_rq, se, group: entity.my_q.expect("a group's entity") }
    }

    #[inline(always)]
    fn above(&self, at: Place, se: SeId) -> Place {
        Place { cfs: self.se[se].cfs_rq, se, group: at.cfs }
    }

    /// What `update_curr()` has to charge to a queue's `curr`, in ns.
    #[inline(always)]
    fn not_charged(&self, common: Common, curr: SeId) -> u64 {
        (common.clock_task.wrapping_sub(self.se[curr].exec_start) as i64).max(0) as u64
    }

    /// Touches the lines of `update_curr()`.
    #[inline(always)]
    #[fentry(update_curr)]
    fn touch_curr(&mut self, lines: LevelLines) {
        self.write_se_times_at(lines);
        self.write_cfs_rq_at(lines);
    }

    /// Does `update_load_avg()` if more has to be done than to let time pass within a period. Otherwise only touches its lines. Returns the
    /// units of time that have passed for the entity and for its queue.
    #[inline(always)]
    #[fentry(update_load_avg)]
    fn age_plain(&mut self, common: Common, at: Place, flags: UpdateLoad, lines: LevelLines) -> [u64; 2] {
        self.touch_load_avg(lines);
        let (entity, cfs_rq) = (&self.se[at.se], &self.cfs_rq[at.cfs]);
        let units = [pelt::units_passed(common.now, &entity.avg), pelt::units_passed(common.now, &cfs_rq.avg)];
        let stay = pelt::stays_in_period(units[0], &entity.avg) & pelt::stays_in_period(units[1], &cfs_rq.avg);
        let stood = cfs_rq.throttled_clock_pelt_time | u64::from(cfs_rq.throttle_count as u32);
        let news = u64::from(cfs_rq.removed.nr) | u64::from(self.cfs_rq[at.group].propagate);
        if stay && stood | news == 0 && entity.avg.last_update_time != 0 {
            units
        } else {
            self.bring_load_avg_up(at.cfs, at.se, flags);
            [0, 0]
        }
    }

    /// Touches the lines of `update_cfs_group()`, including those of `update_curr()` if a queued entity has run, and returns the new
    /// weights.
    #[inline(always)]
    #[fentry(update_cfs_shares)]
    fn weigh_plain(
        &mut self,
        known: Arithmetic,
        at: Place,
        lines: LevelLines,
        queued: bool,
        delta_exec: u64,
    ) -> Weights {
        let tg = self.cfs_rq[at.group].tg;
        let (shares, tg_load) = (self.tg_shares(tg), self.tg_load_avg(tg));
        self.write_group_se(at.se);
        if queued {
            if delta_exec != 0 {
                self.touch_curr(lines);
            }
            if self.se[at.se].parent.is_none() {
                let cpu = self.cfs_rq[at.cfs].rq;
                self.write_rq_weight(cpu);
                self.write_rq_weight(cpu);
            }
        }
        let group = &self.cfs_rq[at.group];
        let (weight, runnable) = calc_group_weights(known, group, shares, tg_load);
        Weights { weight, runnable, tasks: u64::from(group.h_nr_running - group.h_nr_delayed) }
    }
}
