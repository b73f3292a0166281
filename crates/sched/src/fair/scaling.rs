//! fair.c: tunables that grow with the number of CPUs, and what becomes of them when that number changes.
//!
//! The kernel keeps each of them twice: as it is used, and *normalized*, which is what it would be on a machine of one CPU. Whenever a
//! queue comes online or goes offline, be it for a change of root domains only, the first is made anew from the second
//! (`update_sysctl()`). How many CPUs count then is a matter of when that is: see [`HotplugDomains`](crate::core::HotplugDomains) and
//! [`RqOffline`](crate::core::RqOffline).

use super::rules::WrittenTunables;
use crate::arch::Arch;
use crate::core::Sched;
use crate::sysctl::{Scaling, Sysctl, Tunable, get_update_sysctl_factor};
use units::CpuId;

/// The tunables that grow with the number of CPUs.
fn scaled() -> impl Iterator<Item = Tunable> {
    Tunable::ALL.iter().copied().filter(|tunable| tunable.row().scaling == Scaling::Cpus)
}

/// What the fair class keeps beside the tunables themselves.
#[derive(Debug)]
pub struct ScaledTunables {
    /// `normalized_sysctl_*`, in ns, of those that grow with the number of CPUs; of the others nothing is read.
    normalized: Sysctl,
    /// `sched_nr_latency` until v5.12: slices that fit into the latency, of when one of them was last written. Made anew by nobody.
    pub(super) sched_nr_latency: u64,
}

impl ScaledTunables {
    /// Of a machine on which nothing was written.
    pub(crate) fn new() -> ScaledTunables {
        ScaledTunables { normalized: Sysctl::new(1), sched_nr_latency: 8 }
    }
}

impl<A: Arch> Sched<A> {
    /// fair.c: update_sysctl(). By the CPUs that are online now. What was written into a tunable goes with it, unless it was normalized.
    fn update_sysctl(&mut self) {
        let factor = get_update_sysctl_factor(self.cpu_online_mask.weight());
        for tunable in scaled() {
            self.sysctl.set(tunable, factor * self.scaled_tunables.normalized.get(tunable));
        }
    }

    /// fair.c: sched_update_scaling(). One of these tunables was written: what it is on a machine of one CPU, rounded down.
    /// Differs: until v5.12 alone; later the kernel does so when `tunable_scaling` is written, which cannot be done here.
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

    /// What was chosen for the machine is written when it is up.
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
