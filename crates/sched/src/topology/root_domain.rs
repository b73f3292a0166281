//! Root domains: sets of CPUs that balance with each other and with no others. A single one spans all CPUs unless
//! exclusive cpusets divide them; CPUs without domains share one of their own.

use super::PerfDomain;
use crate::cpudeadline::Cpudl;
use crate::cpupri::Cpupri;
use crate::push_pull::Overloaded;
use units::{CpuId, CpuMask};

/// A root domain.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct RdId(pub u32);

impl RdId {
    #[inline]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// sched.h: struct root_domain.
#[derive(Clone, Debug, Default)]
pub struct RootDomain {
    pub span: CpuMask,
    /// The online CPUs of `span`.
    pub online: CpuMask,
    /// Whether some CPU has, or recently had, more than one runnable task. add_nr_running() sets it.
    pub overload: bool,
    /// Whether some CPU's tasks do not fit on it: then energy is ignored until they do. Used only with energy-aware
    /// scheduling (v5.0).
    pub overutilized: bool,
    /// Its performance domains; none without energy-aware scheduling.
    pub pd: Vec<PerfDomain>,
    /// The largest `cpu_capacity_orig` of its CPUs.
    pub max_cpu_capacity: u64,
    /// CPUs with deadline tasks that could run elsewhere.
    pub dlo: Overloaded,
    pub cpudl: Cpudl,
    /// `dl_bw.total_bw`: the bandwidth that deadline tasks have reserved; 2^20 is a CPU.
    pub total_bw: u64,
    /// CPUs with real-time tasks that could run elsewhere.
    pub rto: Overloaded,
    pub cpupri: Cpupri,
    /// Since v4.15: the CPU that was last told to push real-time tasks, on behalf of all that asked; `None` when all
    /// have been.
    pub rto_cpu: Option<CpuId>,
    pub rto_loop: u64,
    pub rto_loop_next: u64,
}
