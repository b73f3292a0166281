//! Deferred work: what is done once a queue's lock is free, or by an interrupt on another CPU.

use units::CpuId;

/// irq_work.h: struct irq_work, the scheduler's: what an interrupt sent to a CPU is to do there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IrqWork {
    /// `rd->rto_push_work` (v4.15)
    RtoPush,
    /// `rt_rq->push_work` of the CPU that pulls (until v4.14).
    PushFor(CpuId),
    /// `sg_policy->irq_work`, by the policy's number.
    Sugov(u16),
    /// `policy_dbs->irq_work`, the same.
    Dbs(u16),
}

/// kernel/sched/sched.h: struct balance_callback. Work for when the queue's lock is free or the switch is over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BalanceCallback {
    PushRtTasks,
    PullRtTask,
    PushDlTasks,
    PullDlTask,
}

/// `rq->balance_callback`: what was queued last comes first.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct BalanceCallbacks {
    queued: [Option<BalanceCallback>; 4],
    len: u8,
}

impl BalanceCallbacks {
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// kernel/sched/sched.h: queue_balance_callback(). A callback that is queued already stays in place.
    #[doc(alias = "queue_balance_callback")]
    pub fn push(&mut self, callback: BalanceCallback) {
        if !self.queued.contains(&Some(callback)) {
            self.queued[usize::from(self.len)] = Some(callback);
            self.len += 1;
        }
    }

    pub fn pop(&mut self) -> Option<BalanceCallback> {
        self.len = self.len.checked_sub(1)?;
        self.queued[usize::from(self.len)].take()
    }
}
