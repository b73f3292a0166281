//! A file system for tests. Nothing happens on it by itself.

use super::{Completion, Device, FsKind, WriteCache};
use crate::{Os, OsRules};
use sched::arch::Arch;
use sched::core::{Boot, Sched, TaskInit};
use sched::cpu_topology::CpuTopology;
use sched::sched::{ROOT_TASK_GROUP, TaskId};
use sched::scheduler::Scheduler;
use sched::trace::{Event, Ipi};
use sched::versions::V4_15;
use units::{CpuId, CpuMask, Ns};

pub(super) const CPU: CpuId = CpuId(0);

/// Time stands still; woken tasks are recorded.
#[derive(Default)]
pub(super) struct Still {
    pub woken: Vec<TaskId>,
}

impl Arch for Still {
    fn sched_clock(&self, _cpu: CpuId) -> Ns {
        Ns::from_ms(1_000)
    }
    fn send_ipi(&mut self, _from: CpuId, _to: CpuId, _ipi: Ipi) {}
    fn wake_polling_idle(&mut self, _from: CpuId, _to: CpuId) {}
    fn tracing(&self) -> bool {
        true
    }
    fn trace(&mut self, _by: CpuId, event: &Event) {
        if let Event::SchedWaking { task, .. } = event {
            self.woken.push(*task);
        }
    }
}

/// A CPU with three tasks, one of which runs, and a file system without workers.
pub(super) fn machine(kind: FsKind) -> (Sched<Still>, Os) {
    let mut sched = Sched::new(Still::default(), Boot::new(V4_15, CpuTopology::symmetric(1, 1, 1, 1, 1), 250));
    let mut os = Os::new(OsRules::V4_15, 250);
    os.workqueue_init(&[CpuMask::single(CPU)]);
    os.mount(kind, Device::new(Ns(50), Ns(200), 1, WriteCache::ForceUnitAccess, Completion::Submitter));
    for number in 0..3 {
        let comm = format!("writer {number}");
        let init = TaskInit { comm, attr: None, cpus_allowed: None, mm: 0, group: ROOT_TASK_GROUP };
        let task = sched.fork(CPU, init).expect("an ordinary task");
        Scheduler::wake_up_new_task(&mut sched, CPU, task);
    }
    Scheduler::schedule(&mut sched, CPU, false);
    (sched, os)
}
