//! fair.c, "CFS bandwidth control machinery": what a group may use of each period.

use crate::arch::Arch;
use crate::core::Sched;
use crate::sched::TgId;

impl<A: Arch> Sched<A> {
    /// fair.c: sched_cfs_period_timer().
    pub(crate) fn sched_cfs_period_timer(&mut self, tg: TgId) {
        unreachable!("no group has a quota yet: {tg:?}");
    }

    /// fair.c: sched_cfs_slack_timer().
    pub(crate) fn sched_cfs_slack_timer(&mut self, tg: TgId) {
        unreachable!("no group has a quota yet: {tg:?}");
    }
}
