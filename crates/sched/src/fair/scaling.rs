//! fair.c: tunables that grow with the number of CPUs, and what happens to them when that number changes.
//!
//! The kernel keeps two values of each: the effective one, and the *normalized* one, which would be effective on a
//! machine with one CPU. Whenever a runqueue goes online or offline, even if only root domains change, the effective
//! value is recomputed from the normalized one (`update_sysctl()`). Which CPUs count then depends on the moment: see
//! [`HotplugDomains`](crate::core::HotplugDomains) and [`RqOffline`](crate::core::RqOffline).

use super::rules::WrittenTunables;
use crate::arch::Arch;
use crate::core::Sched;
use crate::sysctl::{Scaling, Sysctl, Tunable, get_update_sysctl_factor};
use crate::versions::Kernel;
use units::CpuId;

/// The tunables that grow with the number of CPUs.
fn scaled() -> impl Iterator<Item = Tunable> {
    Tunable::ALL.iter().copied().filter(|tunable| tunable.row().scaling == Scaling::Cpus)
}

/// What the fair class keeps in addition to the tunables themselves.
#[derive(Debug)]
pub struct ScaledTunables {
    /// `normalized_sysctl_*`, in ns, for the tunables that grow with the number of CPUs; the other fields are unused.
    normalized: Sysctl,
    /// `sched_nr_latency` until v5.12: how many slices fit into the latency, computed when one of the two was last
    /// written and never since.
    pub(super) sched_nr_latency: u64,
}

impl ScaledTunables {
    /// The state of a machine on which no tunable was written.
    pub(crate) fn new(kernel: &Kernel) -> ScaledTunables {
        ScaledTunables { normalized: kernel.sysctl(1), sched_nr_latency: 8 }
    }
}

impl<A: Arch> Sched<A> {
    /// fair.c: update_sysctl(). Recomputes the tunables for the CPUs that are online now. This loses a written value,
    /// unless it was normalized.
    fn update_sysctl(&mut self) {
        let factor = get_update_sysctl_factor(self.cpu_online_mask.weight());
        for tunable in scaled() {
            self.sysctl.set(tunable, factor * self.scaled_tunables.normalized.get(tunable));
        }
    }

    /// fair.c: sched_update_scaling(). After one of these tunables was written: normalizes it to a machine with one
    /// CPU, rounding down.
    /// Differs: this is all of it until v5.12; later the kernel also does it when `tunable_scaling` is written, which
    /// is not possible here.
    #[doc(alias = "sched_proc_update_handler")]
    pub(crate) fn sched_update_scaling(&mut self) {
        self.scaled_tunables.sched_nr_latency =
            self.sysctl.sched_latency.div_ceil(self.sysctl.sched_min_granularity.max(1));
        if self.kernel.entity.written_tunables == WrittenTunables::Lost {
            return;
        }
        let factor = get_update_sysctl_factor(self.cpu_online_mask.weight());
        for tunable in scaled() {
            self.scaled_tunables.normalized.set(tunable, self.sysctl.get(tunable) / factor);
        }
    }

    /// Writes the values chosen for the machine after it has booted.
    pub(crate) fn write_scaled_tunables(&mut self, chosen: &Sysctl) {
        for tunable in scaled() {
            self.sysctl.set(tunable, chosen.get(tunable));
        }
        self.sched_update_scaling();
    }

    /// fair.c: rq_online_fair().
    pub(crate) fn rq_online_fair(&mut self, cpu: CpuId) {
        self.update_sysctl();
        self.update_runtime_enabled(cpu);
    }

    /// fair.c: rq_offline_fair().
    pub(crate) fn rq_offline_fair(&mut self, cpu: CpuId) {
        self.update_sysctl();
        self.unthrottle_offline_cfs_rqs(cpu);
        self.clear_tg_offline_cfs_rqs(cpu);
    }
}
