//! Root domains: sets of CPUs that balance with each other and with no others. One spans all CPUs unless exclusive cpusets
//! divide them; CPUs without domains share one of their own.

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
    /// Those of `span` that are up.
    pub online: CpuMask,
    /// Some CPU has, or lately had, more than one runnable task. add_nr_running() sets it.
    pub overload: bool,
    /// Some CPU's tasks do not fit there: energy is no matter until they do. Only where it is one (v5.0).
    pub overutilized: bool,
    /// Its performance domains; none where energy is not reckoned with.
    pub pd: Vec<PerfDomain>,
    /// The largest `cpu_capacity_orig` of its CPUs.
    pub max_cpu_capacity: u64,
    /// CPUs with deadline tasks that could run elsewhere.
    pub dlo: Overloaded,
    pub cpudl: Cpudl,
    /// `dl_bw.total_bw`: what deadline tasks have reserved, out of 2^20 of a CPU.
    pub total_bw: u64,
    /// CPUs with real-time tasks that could run elsewhere.
    pub rto: Overloaded,
    pub cpupri: Cpupri,
    /// Since v4.15: who was told last to push real-time tasks, on behalf of all that asked; `None` when all were.
    pub rto_cpu: Option<CpuId>,
    pub rto_loop: u64,
    pub rto_loop_next: u64,
}
