//! fair.c: the calls that maintain load averages of entities and queues. The arithmetic is in [`crate::pelt`].
//!
//! Every entity is *attached* to at most one queue, whose averages then contain it, asleep or not. An entity whose
//! `last_update_time` is zero is not attached.
//!
//! ```text
//! arithmetic.rs  the arithmetic, known at compile time
//! attach.rs      attaching entities to queues and detaching them
//! clock.rs       the clock by which averages age
//! cpu.rs         loads of a whole CPU
//! others.rs      time of other classes and of interrupts
//! util_est.rs    what a task will use when it wakes
//! tg.rs          a group's sum over all CPUs
//! rules.rs       what differs between versions
//! tracepoints.rs bare tracepoints
//! ```

mod arithmetic;
mod attach;
mod clock;
mod cpu;
mod others;
mod rules;
mod tg;
mod tracepoints;
mod util_est;

pub(crate) use arithmetic::{Arithmetic, Released, Step, in_arithmetic, with_arithmetic};
use clock::queue_clock;
pub(crate) use clock::{is_full_scale, running_clock};
pub use rules::{
    BlockedNews, FrequencyInvariance, LoadClock, LoadRules, LostIdle, MigrateLag, MigrationDetach, NewTaskAttach,
    NewTaskCap, NewTaskUtil, OfflineLoad, OtherClasses, TgLoadAvg,
};

use crate::access::LevelLines;
use crate::arch::Arch;
use crate::core::Sched;
use crate::cpu_topology::SCHED_CAPACITY_SCALE;
use crate::cpufreq::ChangePlace;
use crate::load_weight::LoadResolution;
use crate::pelt::{self, CfsRqLoad, EntityLoad, GroupNews, Pelt, Rate, SCHED_CAPACITY_SHIFT, Scale, UtilEstimate};
use crate::sched::*;
use fentry::fentry;
use units::unlikely;

/// fair.c: UPDATE_TG, SKIP_AGE_LOAD, DO_ATTACH, DO_DETACH: what `update_load_avg()` does in addition.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct UpdateLoad {
    /// Tells the task group if the queue's load changed.
    pub update_tg: bool,
    /// Leaves the entity's own averages alone.
    pub skip_age_load: bool,
    /// Attaches the entity if it is detached.
    pub do_attach: bool,
    /// Detaches the entity.
    pub do_detach: bool,
}

impl UpdateLoad {
    pub(crate) const NONE: UpdateLoad =
        UpdateLoad { update_tg: false, skip_age_load: false, do_attach: false, do_detach: false };
    pub(crate) const UPDATE_TG: UpdateLoad = UpdateLoad { update_tg: true, ..UpdateLoad::NONE };
    pub(crate) const ATTACH: UpdateLoad = UpdateLoad { update_tg: true, do_attach: true, ..UpdateLoad::NONE };
}

/// An entity's weights as the averages need them (se_weight(), se_runnable()). `running`: it is `curr` of its queue.
#[inline]
fn entity_load(pelt: Pelt, resolution: LoadResolution, entity: &SchedEntity, running: bool) -> EntityLoad {
    let runnable = match pelt {
        Pelt::ByPeriod | Pelt::Accumulate => resolution.scale_load_down(entity.runnable_weight),
        Pelt::RunnableAvg if entity.sched_delayed => 0,
        Pelt::RunnableAvg if entity.my_q.is_none() => u64::from(entity.on_rq),
        Pelt::RunnableAvg => entity.runnable_weight,
    };
    EntityLoad { weight: resolution.scale_load_down(entity.load.weight), runnable, on_rq: entity.on_rq, running }
}

/// A queue's weights as the averages need them.
#[inline]
fn queue_load(pelt: Pelt, resolution: LoadResolution, cfs_rq: &CfsRq) -> CfsRqLoad {
    let runnable = match pelt {
        Pelt::ByPeriod | Pelt::Accumulate => resolution.scale_load_down(cfs_rq.runnable_weight),
        Pelt::RunnableAvg => u64::from(cfs_rq.h_nr_running - cfs_rq.h_nr_delayed),
    };
    CfsRqLoad { weight: resolution.scale_load_down(cfs_rq.load.weight), runnable, running: cfs_rq.curr.is_some() }
}

/// Lets time pass for an entity and for its queue, by their `units` each, within their current periods.
#[inline(always)]
fn accrue_both(
    arithmetic: Arithmetic,
    now: u64,
    units: [u64; 2],
    cfs_rq: &mut CfsRq,
    (se, entity): (SeId, &mut SchedEntity),
) {
    let (on_rq, curr) = (entity.on_rq, cfs_rq.curr);
    accrue_as(arithmetic, now, units, cfs_rq, entity, [on_rq, curr == Some(se), curr.is_some()]);
}

/// The same, for a caller that knows whether the entity is queued, whether it runs, and whether its queue has a running entity.
#[inline(always)]
pub(crate) fn accrue_as(
    Arithmetic { pelt, resolution, .. }: Arithmetic,
    now: u64,
    units: [u64; 2],
    cfs_rq: &mut CfsRq,
    entity: &mut SchedEntity,
    [on_rq, running, queue_runs]: [bool; 3],
) {
    let load = entity_load(pelt, resolution, entity, running);
    let queued = u64::from(on_rq);
    let (counts, runnable) = match pelt {
        Pelt::ByPeriod => (if on_rq { load.weight } else { 0 }, 0),
        Pelt::Accumulate => (queued, queued),
        Pelt::RunnableAvg => (queued, load.runnable << SCHED_CAPACITY_SHIFT),
    };
    pelt::accrue(pelt, now, units[0], &mut entity.avg, Rate { load: counts, runnable, running });

    let load = queue_load(pelt, resolution, cfs_rq);
    let runnable = match pelt {
        Pelt::ByPeriod => load.weight,
        Pelt::Accumulate => load.runnable,
        Pelt::RunnableAvg => load.runnable << SCHED_CAPACITY_SHIFT,
    };
    pelt::accrue(pelt, now, units[1], &mut cfs_rq.avg, Rate { load: load.weight, runnable, running: queue_runs });
}

/// What changed when averages were brought up to now.
#[derive(Clone, Copy)]
struct Aged {
    entity: bool,
    queue: bool,
}

/// The common part of `update_load_avg()` and its kin: brings a queue, and `entity` of it if given, up to now.
#[inline(always)]
fn age(
    Arithmetic { pelt, clock, floor, resolution, .. }: Arithmetic,
    scale: Scale,
    rq: &Rq,
    cfs_rq: &mut CfsRq,
    entity: Option<(SeId, &mut SchedEntity)>,
) -> Aged {
    let now = queue_clock(clock, rq, cfs_rq);
    let mut aged = Aged { entity: false, queue: false };
    if let Some((se, entity)) = entity {
        let load = entity_load(pelt, resolution, entity, cfs_rq.curr == Some(se));
        aged.entity = pelt::__update_load_avg_se(pelt, now, scale, &mut entity.avg, load);
    }
    let load = queue_load(pelt, resolution, cfs_rq);
    aged.queue = pelt::update_cfs_rq_load_avg(pelt, floor, now, scale, cfs_rq, load);
    aged
}

/// [`age`] on a CPU that does not have full capacity at full speed, or with an arithmetic that no kernel has.
#[inline(never)]
fn age_any(
    arithmetic: Arithmetic,
    scale: Scale,
    rq: &Rq,
    cfs_rq: &mut CfsRq,
    entity: Option<(SeId, &mut SchedEntity)>,
) -> Aged {
    age(arithmetic, scale, rq, cfs_rq, entity)
}

impl<A: Arch> Sched<A> {
    /// fair.c: cfs_rq_runnable_avg().
    #[inline]
    #[doc(alias = "cfs_rq_runnable_load_avg")]
    pub(crate) fn cfs_rq_runnable_avg(&self, cfs: CfsRqId) -> u64 {
        self.cfs_rq[cfs].avg.runnable_avg
    }

    /// fair.c: cfs_rq_load_avg().
    #[inline]
    pub(crate) fn cfs_rq_load_avg(&self, cfs: CfsRqId) -> u64 {
        self.cfs_rq[cfs].avg.load_avg
    }

    /// [`entity_load`] by id.
    #[inline]
    fn load_of(&self, se: SeId) -> EntityLoad {
        let entity = &self.se[se];
        let running = self.cfs_rq[entity.cfs_rq].curr == Some(se);
        entity_load(self.kernel.pelt, self.kernel.load_resolution, entity, running)
    }

    /// fair.c: init_entity_runnable_average().
    pub(crate) fn init_entity_runnable_average(&mut self, se: SeId) {
        let entity = &mut self.se[se];
        let weight = self.kernel.load_resolution.scale_load_down(entity.load.weight);
        entity.avg = pelt::init_entity_runnable_average(self.kernel.pelt, weight, entity.task.is_some());
        entity.runnable_weight = match self.kernel.pelt {
            Pelt::ByPeriod | Pelt::Accumulate => entity.load.weight,
            Pelt::RunnableAvg => 0,
        };
    }

    /// sched.h: se_update_runnable(). Stores the number of tasks in a group in its entity.
    ///
    /// On v7.3's flat queue a task that slept late leaves the count of runnable ones a second time, and returns to it only when it has
    /// left all levels ([`super::flat`]): until the next update its group's entity has one too few, and where the count was zero,
    /// 2^32 - 1.
    #[inline]
    pub(crate) fn se_update_runnable(&mut self, se: SeId) {
        if self.kernel.pelt == Pelt::RunnableAvg
            && let Some(group) = self.se[se].my_q
        {
            let group = &self.cfs_rq[group];
            self.se[se].runnable_weight = u64::from(group.h_nr_running.wrapping_sub(group.h_nr_delayed));
        }
    }

    /// The same, as part of one step of a walk.
    #[inline(always)]
    pub(crate) fn se_update_runnable_in(&mut self, step: Step, se: SeId) {
        if self.arithmetic_of(step).pelt == Pelt::RunnableAvg {
            self.se_update_runnable(se);
        }
    }

    /// fair.c: post_init_entity_util_avg(). Gives a new task a share of its queue's utilization. From v4.7 to v6.0 the task is
    /// attached at once ([`NewTaskAttach`]).
    pub(crate) fn post_init_entity_util_avg(&mut self, p: TaskId) {
        let (se, attach) = (self.task[p].se, self.kernel.load.new_task_attach);
        let fair = self.task[p].sched_class == SchedClass::Fair;
        let cfs = self.se[se].cfs_rq;
        if fair || attach != NewTaskAttach::Deferred {
            let (entity, cfs_rq) = (&mut self.se[se], &self.cfs_rq[cfs]);
            let weight = match self.kernel.load.new_task_util {
                NewTaskUtil::KeptWeight => entity.load.weight,
                NewTaskUtil::ShownWeight => self.kernel.load_resolution.scale_load_down(entity.load.weight),
            };
            let cpu_scale = match self.kernel.load.new_task_cap {
                NewTaskCap::WholeCpu => SCHED_CAPACITY_SCALE,
                NewTaskCap::OwnCpu => self.topology.capacity[cfs_rq.rq],
            };
            pelt::post_init_entity_util_avg(self.kernel.pelt, &mut entity.avg, &cfs_rq.avg, weight, cpu_scale);
        }
        if attach == NewTaskAttach::AtEnqueue {
            return;
        }
        if !fair {
            // As if it had been attached and had left again.
            self.se[se].avg.last_update_time = self.cfs_rq_clock_pelt(cfs);
        } else if attach == NewTaskAttach::AtOnce {
            self.attach_entity_cfs_rq(se);
        }
    }

    /// [`age`], with the usual cases compiled separately: this is the hottest place in the whole scheduler.
    #[inline(always)]
    fn bring_up_to_now(&mut self, cfs: CfsRqId, se: Option<SeId>) -> Aged {
        let any = self.any_arithmetic();
        let cpu = self.cfs_rq[cfs].rq;
        if unlikely(!self.full_scale) {
            let scale = self.scale_of_time(cpu);
            let entity = se.map(|se| (se, &mut self.se[se]));
            return age_any(any, scale, &self.rq[cpu], &mut self.cfs_rq[cfs], entity);
        }
        let (rq, cfs_rq) = (&self.rq[cpu], &mut self.cfs_rq[cfs]);
        let entity = se.map(|se| (se, &mut self.se[se]));
        macro_rules! age_as {
            ($pelt:ident, $clock:ident) => {
                age(Arithmetic { pelt: Pelt::$pelt, clock: LoadClock::$clock, ..any }, Scale::FULL, rq, cfs_rq, entity)
            };
        }
        match (any.pelt, any.clock) {
            (Pelt::ByPeriod, LoadClock::Task) => age_as!(ByPeriod, Task),
            (Pelt::Accumulate, LoadClock::Task) => age_as!(Accumulate, Task),
            (Pelt::Accumulate, LoadClock::Pelt) => age_as!(Accumulate, Pelt),
            (Pelt::RunnableAvg, LoadClock::Pelt) => age_as!(RunnableAvg, Pelt),
            (Pelt::ByPeriod, LoadClock::Pelt) | (Pelt::RunnableAvg, LoadClock::Task) => {
                age_any(any, Scale::FULL, rq, cfs_rq, entity)
            }
        }
    }

    /// fair.c: update_cfs_rq_load_avg(). Brings a queue up to now; returns whether its load changed.
    /// Differs: has no profile stack of its own, because it is inlined into its callers.
    pub(crate) fn update_cfs_rq_load_avg(&mut self, cfs: CfsRqId) -> bool {
        self.write_cfs_avg(cfs);
        self.read_cfs_removed(cfs);
        self.write_cfs_runnable_apart(cfs);
        let aged = self.bring_up_to_now(cfs, None);
        self.trace_aged(cfs, None, aged);
        if aged.queue {
            self.cfs_rq_util_change(cfs, ChangePlace::Aged);
        }
        aged.queue
    }

    /// The tracepoints in `__update_load_avg_se()` and `__update_load_avg_cfs_rq()`.
    ///
    /// Differs: a queue is also reported when load was removed from it within a period.
    #[inline]
    fn trace_aged(&mut self, cfs: CfsRqId, se: Option<SeId>, aged: Aged) {
        if !self.arch.tracing_bare() {
            return;
        }
        if let Some(se) = se
            && aged.entity
        {
            self.trace_pelt_se_tp(se);
        }
        if aged.queue {
            self.trace_pelt_cfs_tp(cfs);
        }
    }

    /// fair.c: propagate_entity_load_avg(). Passes on to a group's entity what was added to the group's queue and what left it.
    fn propagate_entity_load_avg(&mut self, cfs: CfsRqId, se: SeId, group: CfsRqId) -> bool {
        let weight = self.kernel.load_resolution.scale_load_down(self.cfs_rq[group].load.weight);
        let Some(news) = GroupNews::take(&mut self.cfs_rq[group], weight) else { return false };
        let (load, scale) = (self.load_of(se), self.scale_of_time(self.cfs_rq[cfs].rq));
        let (cfs_rq, avg) = (&mut self.cfs_rq[cfs], &mut self.se[se].avg);
        pelt::propagate_entity_load_avg(self.kernel.pelt, self.kernel.load.sum_floor, scale, cfs_rq, avg, load, &news);
        self.trace_pelt_cfs_tp(cfs);
        self.trace_pelt_se_tp(se);
        true
    }

    /// fair.c: update_load_avg(). Brings an entity and its queue up to now.
    #[inline(never)]
    #[fentry]
    pub(crate) fn update_load_avg(&mut self, cfs: CfsRqId, se: SeId, flags: UpdateLoad) {
        self.touch_load_avg(self.level_lines(cfs, se, Step::Any));
        self.update_touched_load_avg(cfs, se, flags);
    }

    /// The same, as part of one step of a walk.
    #[inline(always)]
    pub(crate) fn update_load_avg_in(&mut self, step: Step, cfs: CfsRqId, se: SeId, flags: UpdateLoad, at: LevelLines) {
        match step {
            Step::Any => self.update_load_avg(cfs, se, flags),
            Step::Group(arithmetic) => self.update_load_avg_in_line(arithmetic, (cfs, se), flags, at),
        }
    }

    #[inline(always)]
    #[fentry(update_load_avg)]
    fn update_load_avg_in_line(
        &mut self,
        arithmetic: Arithmetic,
        (cfs, se): (CfsRqId, SeId),
        flags: UpdateLoad,
        at: LevelLines,
    ) {
        self.touch_load_avg(at);
        if !self.accrue_load_avg(arithmetic, cfs, se, flags) {
            self.bring_load_avg_up(cfs, se, flags);
        }
    }

    /// The same, for callers just before which it has often been called, so that nothing is left to do.
    #[inline(always)]
    #[fentry(update_load_avg)]
    pub(crate) fn update_load_avg_again(&mut self, cfs: CfsRqId, se: SeId, flags: UpdateLoad, at: LevelLines) {
        self.touch_load_avg(at);
        if !self.has_no_news(cfs, se) {
            self.update_late_load_avg(cfs, se, flags);
        }
    }

    /// The rest of `update_load_avg()`, if it was called before but time has passed since.
    #[inline(never)]
    fn update_late_load_avg(&mut self, cfs: CfsRqId, se: SeId, flags: UpdateLoad) {
        self.update_touched_load_avg(cfs, se, flags);
    }

    /// Touches the cache lines that `update_load_avg()` always touches.
    #[inline(always)]
    pub(crate) fn touch_load_avg(&mut self, at: LevelLines) {
        self.write_se_avg_at(at);
        self.write_cfs_avg_at(at);
        self.read_cfs_removed_at(at);
        self.write_cfs_runnable_apart_at(at);
    }

    /// Whether no unit of time has passed since the last update, and an attached entity and its queue received nothing from
    /// elsewhere.
    #[inline(always)]
    fn has_no_news(&self, cfs: CfsRqId, se: SeId) -> bool {
        let (entity, cfs_rq) = (&self.se[se], &self.cfs_rq[cfs]);
        let now = queue_clock(self.kernel.load.clock, &self.rq[cfs_rq.rq], cfs_rq);
        entity.avg.last_update_time != 0
            && pelt::units_passed(now, &entity.avg) | pelt::units_passed(now, &cfs_rq.avg) == 0
            && cfs_rq.removed.nr == 0
            && entity.my_q.is_none_or(|group| !self.cfs_rq[group].propagate)
    }

    #[inline(always)]
    fn update_touched_load_avg(&mut self, cfs: CfsRqId, se: SeId, flags: UpdateLoad) {
        if !with_arithmetic!(self, arithmetic, self.accrue_load_avg(arithmetic, cfs, se, flags)) {
            self.bring_load_avg_up(cfs, se, flags);
        }
    }

    /// The usual case of `update_load_avg()`: the entity is attached, neither it nor its queue received anything from elsewhere,
    /// and no period ends. Then only sums grow, and nothing has to be propagated. Returns false, having done nothing, if this is
    /// another case.
    #[inline(always)]
    fn accrue_load_avg(&mut self, arithmetic: Arithmetic, cfs: CfsRqId, se: SeId, flags: UpdateLoad) -> bool {
        let (entity, cfs_rq) = (&self.se[se], &self.cfs_rq[cfs]);
        let now = queue_clock(arithmetic.clock, &self.rq[cfs_rq.rq], cfs_rq);
        let plain = entity.avg.last_update_time != 0
            && cfs_rq.removed.nr == 0
            && !(flags.do_detach | flags.skip_age_load)
            && entity.my_q.is_none_or(|group| !self.cfs_rq[group].propagate);
        if !plain {
            return false;
        }
        let units = [pelt::units_passed(now, &entity.avg), pelt::units_passed(now, &cfs_rq.avg)];
        // Frequent when it is called twice on one path.
        if units == [0, 0] {
            return true;
        }
        let stay = pelt::stays_in_period(units[0], &entity.avg) & pelt::stays_in_period(units[1], &cfs_rq.avg);
        if !(stay & self.full_scale) {
            return false;
        }
        accrue_both(arithmetic, now, units, &mut self.cfs_rq[cfs], (se, &mut self.se[se]));
        true
    }

    /// The general body of `update_load_avg()`.
    #[cold]
    #[inline(never)]
    pub(crate) fn bring_load_avg_up(&mut self, cfs: CfsRqId, se: SeId, flags: UpdateLoad) {
        let entity = &self.se[se];
        let (attached, group) = (entity.avg.last_update_time != 0, entity.my_q);
        let ages = self.kernel.pelt == Pelt::ByPeriod || attached && !flags.skip_age_load;
        let aged = self.bring_up_to_now(cfs, ages.then_some(se));
        self.trace_aged(cfs, Some(se), aged);
        if aged.entity && self.kernel.load.util_est != UtilEstimate::Absent {
            pelt::cfs_se_util_change(self.kernel.load.util_est, &mut self.se[se].avg);
        }
        let mut decayed = aged.queue;
        if decayed {
            self.cfs_rq_util_change(cfs, ChangePlace::Aged);
        }
        if let Some(group) = group {
            decayed |= self.propagate_entity_load_avg(cfs, se, group);
        }
        if unlikely(flags.do_attach && !attached) {
            self.attach_entity_load_avg(cfs, se, ChangePlace::Arrived);
            self.update_tg_load_avg(cfs);
        } else if unlikely(flags.do_detach) {
            self.detach_entity_load_avg(cfs, se);
            self.update_tg_load_avg(cfs);
        } else if decayed {
            self.cfs_rq_util_change(cfs, ChangePlace::End);
            if flags.update_tg {
                self.update_tg_load_avg(cfs);
            }
        }
    }

    /// fair.c: enqueue_entity_load_avg(). Updates the averages of an entity about to be queued; attaches it if it is detached.
    /// Differs: from v4.15 on this is the kernel's plain call of `update_load_avg()`.
    #[inline(always)]
    pub(crate) fn enqueue_entity_load_avg(&mut self, cfs: CfsRqId, se: SeId, step: Step, at: LevelLines) {
        if self.arithmetic_of(step).pelt == Pelt::ByPeriod {
            self.enqueue_entity_load_avg_by_period(cfs, se);
        } else {
            self.update_load_avg_in(step, cfs, se, UpdateLoad::ATTACH, at);
        }
    }

    /// `enqueue_entity_load_avg()` up to v4.9.
    /// Differs: the caller adds the runnable load, after attaching, which does not change the amount.
    #[fentry(enqueue_entity_load_avg)]
    fn enqueue_entity_load_avg_by_period(&mut self, cfs: CfsRqId, se: SeId) {
        self.write_se_avg(se);
        self.write_cfs_avg(cfs);
        self.read_cfs_removed(cfs);
        self.write_cfs_runnable_apart(cfs);
        let migrated = self.se[se].avg.last_update_time == 0;
        let decayed = self.bring_up_to_now(cfs, (!migrated).then_some(se)).queue;
        if migrated {
            self.attach_entity_load_avg(cfs, se, ChangePlace::Moved);
        }
        if decayed || migrated {
            self.update_tg_load_avg(cfs);
        }
    }
}

/// fair.c: enqueue_runnable_load_avg(), until v5.6.
#[inline(always)]
pub(crate) fn enqueue_runnable_load_avg(
    Arithmetic { pelt, resolution, .. }: Arithmetic,
    cfs_rq: &mut CfsRq,
    se: &SchedEntity,
) {
    if pelt != Pelt::RunnableAvg {
        cfs_rq.runnable_weight += se.runnable_weight;
        pelt::enqueue_runnable_load_avg(pelt, &mut cfs_rq.avg, &se.avg, entity_load(pelt, resolution, se, false));
    }
}

/// fair.c: dequeue_runnable_load_avg(), until v5.6 (until v4.14 the end of dequeue_entity_load_avg()).
#[inline(always)]
pub(crate) fn dequeue_runnable_load_avg(
    Arithmetic { pelt, resolution, .. }: Arithmetic,
    cfs_rq: &mut CfsRq,
    se: &SchedEntity,
) {
    if pelt != Pelt::RunnableAvg {
        cfs_rq.runnable_weight -= se.runnable_weight;
        pelt::dequeue_runnable_load_avg(pelt, &mut cfs_rq.avg, &se.avg, entity_load(pelt, resolution, se, false));
    }
}

/// The part of `reweight_entity()` that concerns averages: replaces the entity's weights by `load` and `runnable`. The caller
/// corrects the weight of the queue of a queued entity.
#[inline(always)]
pub(crate) fn reweight_averages(
    arithmetic: Arithmetic,
    cfs_rq: &mut CfsRq,
    entity: &mut SchedEntity,
    load: LoadWeight,
    runnable: u64,
    queued: bool,
) {
    match arithmetic.pelt {
        Pelt::ByPeriod => reweight_by_period(cfs_rq, entity, load, runnable),
        Pelt::Accumulate | Pelt::RunnableAvg => reweight(arithmetic, cfs_rq, entity, load, runnable, queued),
    }
}

/// The sums of these kernels carry the weight with which they were counted: nothing to correct.
fn reweight_by_period(cfs_rq: &mut CfsRq, entity: &mut SchedEntity, load: LoadWeight, runnable: u64) {
    let runnable_weight = std::mem::replace(&mut entity.runnable_weight, runnable);
    entity.load = load;
    if entity.on_rq {
        cfs_rq.runnable_weight = cfs_rq.runnable_weight - runnable_weight + runnable;
    }
}

/// The same since v4.15: the entity leaves its queue's load with the old weight and returns with the new one.
#[inline(always)]
fn reweight(
    Arithmetic { pelt, floor, resolution, .. }: Arithmetic,
    cfs_rq: &mut CfsRq,
    entity: &mut SchedEntity,
    load: LoadWeight,
    runnable: u64,
    queued: bool,
) {
    let before = entity_load(pelt, resolution, entity, false);
    if queued {
        pelt::dequeue_runnable_load_avg(pelt, &mut cfs_rq.avg, &entity.avg, before);
    }
    pelt::dequeue_load_avg(pelt, floor, &mut cfs_rq.avg, &entity.avg, before.weight);
    // The inverse of an unchanged weight stays the same.
    if entity.load.weight != load.weight {
        entity.load = load;
    }
    if pelt != Pelt::RunnableAvg {
        if queued {
            cfs_rq.runnable_weight = cfs_rq.runnable_weight - entity.runnable_weight + runnable;
        }
        entity.runnable_weight = runnable;
    }
    let after = entity_load(pelt, resolution, entity, false);
    pelt::reweight_load_avg(pelt, &mut entity.avg, after);
    pelt::enqueue_load_avg(floor, &mut cfs_rq.avg, &entity.avg, after.weight);
    if queued {
        pelt::enqueue_runnable_load_avg(pelt, &mut cfs_rq.avg, &entity.avg, after);
    }
}
