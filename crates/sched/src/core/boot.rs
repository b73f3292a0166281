//! What a scheduler is booted with.

use crate::cpu_topology::CpuTopology;
use crate::features::{Feature, Features};
use crate::itmt::sched_set_itmt_core_prio;
use crate::sysctl::Sysctl;
use crate::topology::{DomainParameters, DomainSetup};
use crate::versions::Kernel;
use units::{CpuMask, PerCpu};

#[derive(Clone, Debug)]
pub struct Boot {
    pub kernel: Kernel,
    pub topology: CpuTopology,
    /// Timer frequency in Hz: 100, 250, 300 or 1000.
    pub hz: u32,
    pub features: Features,
    pub sysctl: Sysctl,
    /// `isolcpus=`
    pub isolated: CpuMask,
    pub domain_parameters: DomainParameters,
}

impl Boot {
    /// A kernel with its built-in features and tunables, and an empty command line.
    pub fn new(kernel: Kernel, topology: CpuTopology, hz: u32) -> Boot {
        Boot {
            features: kernel.features,
            sysctl: kernel.sysctl(topology.nr_cpus).at_hz(hz),
            kernel,
            topology,
            hz,
            isolated: CpuMask::default(),
            domain_parameters: DomainParameters::default(),
        }
    }

    /// What is known of the CPUs when their domains are first built, and the ranks of their cores.
    pub(super) fn domain_setup(&self) -> (DomainSetup, Option<PerCpu<i32>>) {
        let ranks = sched_set_itmt_core_prio(&self.topology, self.kernel.domains.sibling_rank);
        let setup = DomainSetup {
            hz: self.hz,
            parameters: self.domain_parameters,
            arch_asym_cpu_priority: ranks.clone().filter(|_| self.sysctl.sched_itmt_enabled != 0),
            force_sd_overlap: self.features.sched_feat(Feature::FORCE_SD_OVERLAP),
            ..DomainSetup::boot(&self.topology)
        };
        (setup, ranks)
    }
}
