//! core.c: CPUs that come and go.

use super::Sched;
use crate::arch::Arch;
use crate::topology::RootDomain;
use units::CpuId;

impl<A: Arch> Sched<A> {
    /// What sched_cpu_activate() and build_sched_domains() note of a machine whose CPUs are all up.
    pub(super) fn init_hotplug(&mut self) {
        for cpu in (0..self.nr_cpus()).map(CpuId::new) {
            let siblings = &self.topology.smt[cpu];
            self.sched_smt_present += u32::from(siblings.weight() > 1 && siblings.first() == Some(cpu));
        }
        let span = self.domains.span.clone();
        let capacity = |cpu| self.domains.cpu_capacity_orig[cpu];
        let max_cpu_capacity = span.iter().map(capacity).max().unwrap_or(0);
        self.root_domains = vec![RootDomain { online: span.clone(), span, max_cpu_capacity, ..RootDomain::default() }];
    }

    /// `cpu_rq(cpu)->rd`
    #[inline]
    pub(crate) fn root_domain(&self, cpu: CpuId) -> &RootDomain {
        &self.root_domains[self.rq[cpu].rd.index()]
    }

    #[inline]
    pub(crate) fn root_domain_mut(&mut self, cpu: CpuId) -> &mut RootDomain {
        &mut self.root_domains[self.rq[cpu].rd.index()]
    }

    /// sched.h: sched_smt_active(). Whether some core has more than one thread online.
    #[inline]
    pub(crate) fn sched_smt_active(&self) -> bool {
        self.sched_smt_present > 0
    }
}
