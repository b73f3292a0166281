//! Kernel threads that do others' work: workqueues' workers, and jbd2.

use crate::engine::Sim;
use crate::program::{AddressSpace, KernelLoop, Op, Outcome, Program, TaskSpec};
use machine::hardware::Hardware;
use sched::attr::SchedAttr;
use sched::scheduler::Scheduler;
use units::{CpuId, CpuMask};

/// A thread that goes round in the kernel for ever.
struct Forever(KernelLoop);

impl Program for Forever {
    fn next(&mut self, _last: Outcome) -> Op {
        Op::Kernel(self.0)
    }
}

fn kthread(comm: &str, cpu: Option<CpuId>, nice: i32, turns: KernelLoop) -> TaskSpec {
    TaskSpec {
        attr: Some(SchedAttr { sched_nice: nice, ..SchedAttr::NORMAL }),
        cpus: cpu.map(CpuMask::single),
        memory: AddressSpace::Kernel,
        ..TaskSpec::new(comm, Forever(turns))
    }
}

/// WQ_HIGHPRI's nice level (include/linux/workqueue.h: HIGHPRI_NICE_LEVEL).
const HIGHPRI_NICE_LEVEL: i32 = -20;

impl<const COSTS: bool, S: Scheduler<Arch = Hardware<COSTS>>> Sim<COSTS, S> {
    /// Starts the threads of the file system that was mounted, if one was: each CPU's two workers, a few that may run anywhere, jbd2.
    pub fn start_kernel_threads(&mut self) {
        let Some(journal) = self.os.fs_threads() else { return };
        for (pool, cpu, highpri) in self.os.workqueue_init(self.sched.nr_cpus()) {
            let comm = match cpu {
                Some(cpu) => format!("kworker/{}:0{}", cpu.index(), if highpri { "H" } else { "" }),
                None => "kworker/u:0".to_string(),
            };
            let nice = if highpri { HIGHPRI_NICE_LEVEL } else { 0 };
            self.spawn_daemon(kthread(&comm, cpu, nice, KernelLoop::Worker(pool)));
        }
        if journal {
            self.spawn_daemon(kthread("jbd2", None, 0, KernelLoop::Kjournald2));
        }
        if self.os.fs_wants_irq() {
            let everywhere = (0..self.sched.nr_cpus()).map(CpuId::new).collect();
            let irq = self.request_irq("sda", everywhere);
            self.os.set_fs_irq(irq);
        }
    }
}
