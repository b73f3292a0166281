//! Fields of `struct task_group`, which all CPUs of a group share.

use crate::arch::Arch;
use crate::core::Sched;
use crate::layout::TaskGroupField;
use crate::sched::TgId;

impl<A: Arch> Sched<A> {
    /// Looks at `tg->se`, the array of the group's entities, which is not written once the group exists.
    #[inline]
    pub(crate) fn read_tg_se(&mut self, tg: TgId) {
        self.read(self.layout.task_group(tg, TaskGroupField::Se));
    }

    /// Looks at `tg->cfs_rq`, the array of its queues.
    #[inline]
    pub(crate) fn read_tg_cfs_rq(&mut self, tg: TgId) {
        self.read(self.layout.task_group(tg, TaskGroupField::CfsRq));
    }

    /// Looks at `tg->parent`.
    #[inline]
    pub(crate) fn read_tg_parent(&mut self, tg: TgId) {
        self.read(self.layout.task_group(tg, TaskGroupField::Parent));
    }

    /// `tg->shares`.
    #[inline]
    pub(crate) fn tg_shares(&mut self, tg: TgId) -> u64 {
        self.read(self.layout.task_group(tg, TaskGroupField::Shares));
        self.tg[tg].shares
    }

    /// `atomic_long_read(&tg->load_avg)`.
    #[inline]
    pub(crate) fn tg_load_avg(&mut self, tg: TgId) -> u64 {
        self.read(self.layout.task_group(tg, TaskGroupField::LoadAvg));
        self.tg[tg].load_avg
    }

    /// `atomic_long_add(delta, &tg->load_avg)`.
    #[inline]
    pub(crate) fn tg_load_avg_add(&mut self, tg: TgId, delta: i64) {
        self.arch.atomic(self.this_cpu, self.layout.task_group(tg, TaskGroupField::LoadAvg));
        let load_avg = &mut self.tg[tg].load_avg;
        *load_avg = load_avg.wrapping_add_signed(delta);
    }

    /// `atomic_long_add(delta, &tg->runnable_avg)`, which lies beside `load_avg`.
    #[inline]
    pub(crate) fn tg_runnable_avg_add(&mut self, tg: TgId, delta: i64) {
        self.arch.atomic(self.this_cpu, self.layout.task_group(tg, TaskGroupField::LoadAvg));
        let runnable_avg = &mut self.tg[tg].runnable_avg;
        *runnable_avg = runnable_avg.wrapping_add_signed(delta);
    }

    /// `raw_spin_lock(&cfs_b->lock)`: a group's bandwidth pool. Every CPU of the group takes this line for every slice.
    #[inline]
    pub(crate) fn cfs_b_lock(&mut self, tg: TgId) {
        self.arch.lock(self.this_cpu, self.layout.task_group(tg, TaskGroupField::CfsBandwidth));
    }

    #[inline]
    pub(crate) fn cfs_b_unlock(&mut self, tg: TgId) {
        self.arch.unlock(self.this_cpu, self.layout.task_group(tg, TaskGroupField::CfsBandwidth));
    }
}
