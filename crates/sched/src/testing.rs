//! What tests begin with that need no more of a machine than a clock.

use crate::arch::Arch;
use crate::core::{Boot, Sched, TaskInit};
use crate::cpu_topology::CpuTopology;
use crate::sched::TgId;
use crate::sysctl::Sysctl;
use crate::versions::Kernel;
use units::{CpuId, Ns};

pub(crate) const MS: u64 = 1_000_000;

/// The time of all CPUs, in ns, which stands until a test moves it; nobody is told anything.
pub(crate) struct Clock(pub u64);

impl Arch for Clock {
    fn sched_clock(&self, _cpu: CpuId) -> Ns {
        Ns(self.0)
    }
    fn smp_send_reschedule(&mut self, _from: CpuId, _to: CpuId) {}
    fn wake_polling_idle(&mut self, _from: CpuId, _to: CpuId) {}
}

/// A second after boot: so many CPUs that share a cache, at 250 Hz.
pub(crate) fn machine(kernel: Kernel, cpus: usize) -> Sched<Clock> {
    let topology = CpuTopology::symmetric(1, 1, 1, cpus, 1);
    let sysctl = Sysctl::new(topology.nr_cpus);
    Sched::new(Clock(1_000 * MS), Boot { sysctl, ..Boot::new(kernel, topology, 250) })
}

pub(crate) fn task_in(group: TgId, comm: &str) -> TaskInit {
    TaskInit { comm: comm.to_string(), attr: None, cpus_allowed: None, mm: 1, group }
}
