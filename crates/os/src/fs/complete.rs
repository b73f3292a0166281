//! Where a request ends: block/blk-softirq.c, or block/blk-mq.c since v5.9.
//!
//! A device with a queue for each CPU interrupts the CPU that submitted the request, and the request ends in the
//! interrupt's handler. A device with a single queue always interrupts the same CPU, and its requests end in
//! BLOCK_SOFTIRQ: on that CPU, if it shares a cache with the CPU that submitted the request (QUEUE_FLAG_SAME_COMP,
//! `rq_affinity` 1, the default); otherwise on the submitting CPU, by a call to it. This holds for the old path
//! (v2.6.28), and for blk-mq with one queue since v4.20 (36e765392e48); blk_mq_complete_need_ipi() makes the same test.
//!
//! Differs: blk-mq of v4.19 and before ends such a request in the handler itself, or in the call. Since v6.9 or so (af550e4c9682) CPUs of
//! different capacity do not count as sharing a cache here; that is absent.

use super::device::Completion;
use crate::Os;
use crate::block::BioId;
use crate::irq::{SoftIrq, trace_softirq_raise};
use sched::behaviour;
use sched::scheduler::Scheduler;
use sched::trace::Interrupt;
use units::{CpuId, Slots, unlikely};

behaviour! {
    /// Which block layer drives a SCSI disk (and so a SATA one) that has one queue.
    pub enum ScsiPath = "scsi.path" {
        Legacy = "legacy", since "v2.6.0", commit "",
            "the old one (scsi_mod.use_blk_mq=0): a flush goes to the device at once, and ends where the interrupt comes";
        Mq = "blk-mq", since "v4.19", commit "d5038a13eca7",
            "blk-mq, alone since v5.0 (f664a3cc17b7): kblockd sends every flush, and it ends as if the first who waits for it had submitted it";
    }
}

/// Requests that are done but have not been ended, by CPU.
#[derive(Clone, Debug, Default)]
pub(super) struct Completions {
    /// blk_cpu_done
    done: Slots<Vec<BioId>>,
    /// Among the function calls queued for a CPU.
    called: Slots<Vec<BioId>>,
}

fn of(lists: &mut Slots<Vec<BioId>>, cpu: CpuId) -> &mut Vec<BioId> {
    lists.grow_with(cpu.index() + 1, Vec::new);
    &mut lists[cpu.index()]
}

impl Os {
    /// block/blk-softirq.c: blk_complete_request(), with __blk_complete_request(): the device's interrupt has reported
    /// that a request is done.
    #[doc(alias = "__blk_complete_request")]
    #[doc(alias = "blk_mq_complete_request")]
    #[doc(alias = "blk_mq_complete_request_remote")]
    pub fn blk_complete_request<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, id: BioId) {
        let fs = self.fs();
        if fs.device.completion == Completion::Submitter {
            return self.bio_endio(sched, cpu, id);
        }
        let submitter = fs.bios.bio(id).submitter;
        let ccpu = submitter.filter(|&ccpu| !sched.cpus_share_cache(cpu, ccpu) && sched.is_online(ccpu));
        if let Some(ccpu) = ccpu {
            let called = of(&mut fs.completions.called, ccpu);
            called.push(id);
            // generic_exec_single(): a CPU that finds a call queued there knows that its interrupt is on the way.
            if called.len() == 1 {
                sched.smp_call_function_single_async(cpu, ccpu);
            }
        } else {
            of(&mut fs.completions.done, cpu).push(id);
            if self.irq.raise_bare(cpu, SoftIrq::Block) {
                trace_softirq_raise(sched, cpu, Interrupt::Hardirq, SoftIrq::Block.vec());
            }
        }
    }

    /// blk-softirq.c: trigger_softirq(), for all requests that other CPUs have sent to `cpu`.
    #[inline]
    pub(crate) fn trigger_softirq<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, by: Interrupt) {
        if unlikely(self.take_called(cpu)) {
            trace_softirq_raise(sched, cpu, by, SoftIrq::Block.vec());
        }
    }

    /// Leaves the requests that were sent to `cpu` to its softirq. Returns whether there were any.
    #[inline]
    fn take_called(&mut self, cpu: CpuId) -> bool {
        let Some(completions) = self.fs.as_mut().map(|fs| &mut fs.completions) else { return false };
        let Some(called) = completions.called.get_mut(cpu.index()).filter(|called| !called.is_empty()) else {
            return false;
        };
        let called = std::mem::take(called);
        of(&mut completions.done, cpu).extend(called);
        self.irq.raise_bare(cpu, SoftIrq::Block);
        true
    }

    /// blk-softirq.c: blk_done_softirq()
    pub fn blk_done_softirq<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId) {
        let Some(fs) = self.fs.as_mut() else { return };
        for id in std::mem::take(of(&mut fs.completions.done, cpu)) {
            self.bio_endio(sched, cpu, id);
        }
    }

    /// blk-mq.c: blk_softirq_cpu_dead(): `heir` ends the requests that were left to a CPU that went offline.
    pub fn blk_softirq_cpu_dead(&mut self, offline: CpuId, heir: CpuId) {
        self.take_called(offline);
        let Some(fs) = self.fs.as_mut() else { return };
        let left = std::mem::take(of(&mut fs.completions.done, offline));
        of(&mut fs.completions.done, heir).extend(left);
    }
}
