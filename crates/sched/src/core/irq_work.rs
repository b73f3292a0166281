//! irq_work.c: work that is to be done in an interrupt, possibly on another CPU.

use super::Sched;
use crate::arch::Arch;
use crate::sched::IrqWork;
use crate::trace::Ipi;
use units::CpuId;

impl<A: Arch> Sched<A> {
    /// irq_work.c: irq_work_queue_on(), and irq_work_queue() for the executing CPU. `cpu` does the work once it is
    /// interrupted.
    pub(crate) fn irq_work_queue_on(&mut self, cpu: CpuId, work: IrqWork) {
        self.irq_work[cpu].push(work);
        if self.irq_work[cpu].len() == 1 {
            let ipi = if cpu == self.this_cpu { Ipi::IrqWork } else { Ipi::CallFunctionSingle };
            self.arch.send_ipi(self.this_cpu, cpu, ipi);
        }
    }

    /// irq_work.c: irq_work_run().
    pub(crate) fn irq_work_run(&mut self) {
        let cpu = self.this_cpu;
        for work in std::mem::take(&mut self.irq_work[cpu]) {
            match work {
                IrqWork::RtoPush => self.rto_push_irq_work_func(),
                IrqWork::PushFor(asker) => self.try_to_push_tasks(asker),
                IrqWork::Sugov(policy) => self.sugov_irq_work(policy),
                IrqWork::Dbs(policy) => self.dbs_irq_work(policy),
            }
        }
    }
}
