//! The estimate of a task's utilization when it wakes: from its utilization when it last went to sleep, and an average
//! of those.
//!
//! `util_avg` decays while a task sleeps, so a task that slept long looks small when it wakes, whatever it did before.
//! The estimate remembers (commit 7f65ea42eb00, v4.17).

use super::SchedAvg;
use crate::behaviour;

/// sched.h: UTIL_AVG_UNCHANGED. The estimate comes from the current `util_avg`: no time has been added since.
pub const UTIL_AVG_UNCHANGED: u32 = 1 << 31;
/// pelt.h: UTIL_AVG_UNCHANGED, until v5.12: a bit of the estimate itself, which is set whenever the estimate is used.
const UTIL_AVG_UNCHANGED_LOWEST: u32 = 1;
/// sched.h: UTIL_EST_WEIGHT_SHIFT. A new sample counts a quarter.
const UTIL_EST_WEIGHT_SHIFT: u32 = 2;
/// fair.c: UTIL_EST_MARGIN. 1% of a CPU; smaller differences are ignored.
const UTIL_EST_MARGIN: i64 = 1024 / 100;

behaviour! {
    /// How a task's utilization is estimated, with the feature UTIL_EST.
    pub enum UtilEstimate = "load.util_est" {
        Absent = "absent", since "v2.6.23", commit "", "it is not";
        /// [`UTIL_AVG_UNCHANGED`] is the lowest bit, so an estimate is odd, and that of a new task 1. A sample that is within a
        /// hundredth of a CPU of the average is none. The queue's sum follows only when the task, and what it leaves empty, is gone:
        /// who is told meanwhile of a new utilization counts it still.
        EnqueuedAndSlowEwmaAnyCpu = "enqueued-and-slow-ewma-any-cpu", since "v4.17", commit "7f65ea42eb00",
            "the larger of the last sample and an average that moves a quarter of the way up as well as down, both taken when the task \
             has left its queue";
        EnqueuedAndSlowEwma = "enqueued-and-slow-ewma", since "v5.1", commit "10a35e6812aa",
            "the same, but not on a CPU without idle time, where a task seems smaller than it is";
        /// Grown in steps: UTIL_EST_FASTUP with b8c96361402a (v5.5), [`UTIL_AVG_UNCHANGED`] in the upper bit with
        /// 68d7a190682a (v5.13). The variant is both.
        EnqueuedAndEwma = "enqueued-and-ewma", since "v5.13", commit "68d7a190682a",
            "the larger of the last sample and a moving average, both taken when the task has left its queue";
        /// Grown in steps: one number (11137d384996) that stays while the task has to wait (50181c0cff31, both v6.8), taken
        /// before the task leaves its queue (v6.12, with the delayed dequeue). The variant is all of them.
        Ewma = "ewma", since "v6.8", commit "11137d384996",
            "a moving average (since v6.8, 11137d384996) that follows at once upwards, and stays while the task has to wait; taken before it leaves (v6.12)";
        /// A task whose delayed dequeue ends has left its queue's sum when it fell asleep, and does not leave it again.
        EwmaAnyCpu = "ewma-any-cpu", since "v6.16", commit "f2d650618bc7", "the same, on CPUs without idle time too";
        EwmaInUpdate = "ewma-in-update", since "v7.2", commit "",
            "the same, with the utilization up to now";
    }
}

/// sched.h: struct util_est. 1024 = a whole CPU.
///
/// A queue uses only `enqueued`: the sum of its tasks' estimates. Since [`UtilEstimate::Ewma`] only the average exists,
/// in `enqueued`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct UtilEst {
    /// The last sample, with [`UTIL_AVG_UNCHANGED`].
    pub enqueued: u32,
    pub ewma: u32,
}

impl UtilEstimate {
    /// UTIL_AVG_UNCHANGED.
    #[inline]
    fn unchanged(self) -> u32 {
        match self {
            UtilEstimate::EnqueuedAndSlowEwmaAnyCpu | UtilEstimate::EnqueuedAndSlowEwma => UTIL_AVG_UNCHANGED_LOWEST,
            _ => UTIL_AVG_UNCHANGED,
        }
    }
}

impl UtilEst {
    /// fair.c: _task_util_est().
    #[inline]
    pub fn _task_util_est(self, form: UtilEstimate) -> u64 {
        u64::from(match form {
            UtilEstimate::EnqueuedAndSlowEwmaAnyCpu | UtilEstimate::EnqueuedAndSlowEwma => {
                self.ewma.max(self.enqueued) | UTIL_AVG_UNCHANGED_LOWEST
            }
            _ => self.ewma.max(self.enqueued & !UTIL_AVG_UNCHANGED),
        })
    }

    /// fair.c: util_est_enqueue(). Adds a task's estimate to the queue's.
    #[inline]
    pub fn util_est_enqueue(&mut self, form: UtilEstimate, task: UtilEst) {
        self.enqueued = self.enqueued.wrapping_add(task._task_util_est(form) as u32);
    }

    /// fair.c: util_est_dequeue().
    #[inline]
    pub fn util_est_dequeue(&mut self, form: UtilEstimate, task: UtilEst) {
        self.enqueued = self.enqueued.saturating_sub(task._task_util_est(form) as u32);
    }
}

/// pelt.h: cfs_se_util_change(). Time was added to `util_avg`, so the next sleep gives a new sample.
#[inline]
pub fn cfs_se_util_change(form: UtilEstimate, avg: &mut SchedAvg) {
    avg.util_est.enqueued &= !form.unchanged();
}

/// fair.c: util_est_update(), for a task that goes to sleep. `capacity` is that of its CPU when nothing else runs
/// there, `fastup` the feature UTIL_EST_FASTUP.
///
/// Differs: the caller has checked the feature UTIL_EST, and whether the task sleeps.
pub fn util_est_update(form: UtilEstimate, avg: &mut SchedAvg, capacity: u64, fastup: bool) {
    if avg.util_est.enqueued & form.unchanged() != 0 {
        return;
    }
    match form {
        UtilEstimate::Absent => {}
        UtilEstimate::EnqueuedAndSlowEwmaAnyCpu => util_est_update_slow(avg, u64::MAX),
        UtilEstimate::EnqueuedAndSlowEwma => util_est_update_slow(avg, capacity),
        UtilEstimate::EnqueuedAndEwma => util_est_update_enqueued(avg, capacity, fastup),
        UtilEstimate::Ewma => util_est_update_ewma(avg, capacity),
        UtilEstimate::EwmaAnyCpu | UtilEstimate::EwmaInUpdate => util_est_update_ewma(avg, u64::MAX),
    }
}

fn util_est_update_slow(avg: &mut SchedAvg, capacity: u64) {
    let enqueued = avg.util_avg as u32 | UTIL_AVG_UNCHANGED_LOWEST;
    let ewma = avg.util_est.ewma;
    let ewma_diff = i64::from(enqueued) - i64::from(ewma);
    if !within_margin(ewma_diff) && avg.util_avg <= capacity {
        avg.util_est = UtilEst { enqueued, ewma: moved(ewma, ewma_diff) };
    }
}

fn util_est_update_enqueued(avg: &mut SchedAvg, capacity: u64, fastup: bool) {
    let UtilEst { enqueued: last, mut ewma } = avg.util_est;
    let enqueued = avg.util_avg as u32;
    if fastup && ewma < enqueued {
        ewma = enqueued;
    } else {
        let ewma_diff = i64::from(enqueued) - i64::from(ewma);
        if within_margin(ewma_diff) {
            if within_margin(i64::from(last) - i64::from(enqueued)) {
                return;
            }
        } else if avg.util_avg > capacity {
            // The CPU had no idle time left: the sample shows what the CPU gave, not what the task would use.
            return;
        } else {
            ewma = moved(ewma, ewma_diff);
        }
    }
    avg.util_est = UtilEst { enqueued: enqueued | UTIL_AVG_UNCHANGED, ewma };
}

fn util_est_update_ewma(avg: &mut SchedAvg, capacity: u64) {
    let mut ewma = avg.util_est.enqueued;
    let dequeued = avg.util_avg as u32;
    if ewma <= dequeued {
        ewma = dequeued;
    } else {
        let diff = i64::from(ewma - dequeued);
        if diff >= UTIL_EST_MARGIN {
            if u64::from(dequeued) > capacity {
                return;
            }
            // The task had to wait for a part of the time it wanted to run: the sample is too small.
            if u64::from(dequeued) + UTIL_EST_MARGIN as u64 >= avg.runnable_avg {
                ewma = moved(ewma, -diff);
            }
        }
    }
    avg.util_est.enqueued = ewma | UTIL_AVG_UNCHANGED;
}

/// `ewma + diff / 4`, rounded down.
fn moved(ewma: u32, diff: i64) -> u32 {
    (((i64::from(ewma) << UTIL_EST_WEIGHT_SHIFT) + diff) >> UTIL_EST_WEIGHT_SHIFT) as u32
}

/// fair.c: within_margin().
fn within_margin(value: i64) -> bool {
    value.abs() < UTIL_EST_MARGIN
}

#[cfg(test)]
mod tests {
    use super::*;

    fn updated(form: UtilEstimate, util_est: UtilEst, util_avg: u64, runnable_avg: u64) -> UtilEst {
        let mut avg = SchedAvg { util_avg, runnable_avg, util_est, ..SchedAvg::default() };
        util_est_update(form, &mut avg, 1024, true);
        avg.util_est
    }

    const FLAG: u32 = UTIL_AVG_UNCHANGED;

    #[test]
    fn the_average_follows_at_once_upwards_and_by_a_quarter_downwards() {
        let form = UtilEstimate::EnqueuedAndEwma;
        let up = updated(form, UtilEst::default(), 400, 400);
        assert_eq!(up, UtilEst { enqueued: 400 | FLAG, ewma: 400 });
        let down = updated(form, UtilEst { enqueued: 400, ewma: 400 }, 201, 201);
        // 400 - 199 / 4 = 350.25
        assert_eq!(down, UtilEst { enqueued: 201 | FLAG, ewma: 350 });
        assert_eq!(down._task_util_est(form), 350);

        let form = UtilEstimate::Ewma;
        assert_eq!(updated(form, UtilEst::default(), 400, 400).enqueued, 400 | FLAG);
        assert_eq!(updated(form, UtilEst { enqueued: 400, ewma: 0 }, 201, 201).enqueued, 350 | FLAG);
    }

    #[test]
    fn small_changes_are_no_news() {
        let before = UtilEst { enqueued: 405, ewma: 400 };
        assert_eq!(updated(UtilEstimate::EnqueuedAndEwma, before, 396, 396), before);
        // The sample changed, the average hardly.
        let before = UtilEst { enqueued: 450, ewma: 400 };
        let after = updated(UtilEstimate::EnqueuedAndEwma, before, 396, 396);
        assert_eq!(after, UtilEst { enqueued: 396 | FLAG, ewma: 400 });
        assert_eq!(updated(UtilEstimate::Ewma, UtilEst { enqueued: 400, ewma: 0 }, 391, 391).enqueued, 400 | FLAG);
    }

    #[test]
    fn a_sample_that_was_taken_is_not_taken_again() {
        for form in [UtilEstimate::EnqueuedAndEwma, UtilEstimate::Ewma] {
            let before = UtilEst { enqueued: 100 | FLAG, ewma: 0 };
            assert_eq!(updated(form, before, 700, 700), before);
            let mut avg = SchedAvg { util_est: before, ..SchedAvg::default() };
            cfs_se_util_change(form, &mut avg);
            assert_eq!(avg.util_est.enqueued, 100);
        }
    }

    #[test]
    fn in_v5_4_estimates_are_odd_and_climb_slowly() {
        let form = UtilEstimate::EnqueuedAndSlowEwma;
        assert_eq!(UtilEst::default()._task_util_est(form), 1);
        // 0 + 401 / 4, then 100 + (401 - 100) / 4.
        let first = updated(form, UtilEst::default(), 400, 400);
        assert_eq!((first, first._task_util_est(form)), (UtilEst { enqueued: 401, ewma: 100 }, 401));
        assert_eq!(updated(form, first, 800, 800), first, "the sample was taken");
        let mut avg = SchedAvg { util_est: first, ..SchedAvg::default() };
        cfs_se_util_change(form, &mut avg);
        let second = updated(form, avg.util_est, 400, 400);
        assert_eq!(second, UtilEst { enqueued: 401, ewma: 175 });
        // Nine more than the average is no news, and the last sample stays.
        let near = UtilEst { enqueued: 600, ewma: 400 };
        assert_eq!(updated(form, near, 409, 409), near);
        assert_eq!(updated(form, near, 410, 410), UtilEst { enqueued: 411, ewma: 402 });
        let mut queue = UtilEst::default();
        queue.util_est_enqueue(form, second);
        queue.util_est_enqueue(form, UtilEst::default());
        assert_eq!(queue.enqueued, 402);
        queue.util_est_dequeue(form, second);
        assert_eq!(queue.enqueued, 1);
    }

    #[test]
    fn who_had_to_wait_keeps_the_estimate() {
        let before = UtilEst { enqueued: 400, ewma: 0 };
        assert_eq!(updated(UtilEstimate::Ewma, before, 200, 211).enqueued, 400 | FLAG);
        assert_eq!(updated(UtilEstimate::Ewma, before, 200, 210).enqueued, 350 | FLAG);
    }

    #[test]
    fn a_cpu_without_idle_time_tells_nothing() {
        for form in [UtilEstimate::EnqueuedAndSlowEwma, UtilEstimate::EnqueuedAndEwma, UtilEstimate::Ewma] {
            let before = UtilEst { enqueued: 900, ewma: 900 };
            let mut avg = SchedAvg { util_avg: 600, runnable_avg: 600, util_est: before, ..SchedAvg::default() };
            util_est_update(form, &mut avg, 512, true);
            assert_eq!(avg.util_est, before);
        }
    }

    #[test]
    fn in_v4_19_a_cpu_without_idle_time_tells_as_much_as_any() {
        let before = UtilEst { enqueued: 900, ewma: 900 };
        let mut avg = SchedAvg { util_avg: 600, util_est: before, ..SchedAvg::default() };
        util_est_update(UtilEstimate::EnqueuedAndSlowEwmaAnyCpu, &mut avg, 512, true);
        // 900 - 299 / 4
        assert_eq!(avg.util_est, UtilEst { enqueued: 601, ewma: 825 });
    }

    #[test]
    fn later_a_cpu_without_idle_time_tells_as_much_as_any() {
        for form in [UtilEstimate::EwmaAnyCpu, UtilEstimate::EwmaInUpdate] {
            let before = UtilEst { enqueued: 900, ewma: 0 };
            let mut avg = SchedAvg { util_avg: 600, runnable_avg: 600, util_est: before, ..SchedAvg::default() };
            util_est_update(form, &mut avg, 512, true);
            // 900 - 300 / 4
            assert_eq!(avg.util_est.enqueued, 825 | FLAG);
        }
    }

    #[test]
    fn without_fastup_the_average_climbs_by_a_quarter() {
        let util_est = UtilEst { enqueued: 100, ewma: 100 };
        let mut avg = SchedAvg { util_avg: 500, util_est, ..SchedAvg::default() };
        util_est_update(UtilEstimate::EnqueuedAndEwma, &mut avg, 1024, false);
        assert_eq!(avg.util_est, UtilEst { enqueued: 500 | FLAG, ewma: 200 });
    }

    #[test]
    fn a_queue_adds_up_its_tasks() {
        let task = UtilEst { enqueued: 300 | FLAG, ewma: 200 };
        let (form, mut queue) = (UtilEstimate::EnqueuedAndEwma, UtilEst::default());
        queue.util_est_enqueue(form, task);
        queue.util_est_enqueue(form, task);
        queue.util_est_dequeue(form, task);
        assert_eq!(queue.enqueued, 300);
        queue.util_est_dequeue(form, UtilEst { enqueued: 0, ewma: 500 });
        assert_eq!(queue.enqueued, 0);
    }
}
