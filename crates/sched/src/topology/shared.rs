//! topology.c: which domains share a `sched_domain_shared`, in kernels that decide this once all domains exist
//! ([`DomainShared::CacheAndCapacities`]).

use super::build::Builder;
use super::flags::SdFlags;
use super::*;

/// The `sched_domain_shared` of each CPU, if it is taken, and the flag of the domains that took it (`alloc_flags`).
struct Allocated(PerCpu<Option<(SdsId, SdFlags)>>);

impl Builder<'_> {
    /// The part of build_sched_domains() that gives domains their shared state: the widest domain that shares a cache and,
    /// if capacities differ, the narrowest that has all of them.
    pub(super) fn share_domains(&mut self) {
        if self.rules.shared == DomainShared::CacheLevels {
            return;
        }
        let mut allocated = Allocated(PerCpu::from_fn(self.topology.nr_cpus, |_| None));
        let has_asym = self.domains.sched_asym_cpucapacity;
        for cpu in self.cpu_map.iter() {
            let chain = self.chain(cpu);
            if has_asym {
                self.claim_asym_sched_domain_shared(&chain, &mut allocated);
            }
            let shares = |sd: SdId| self.domains[sd].flags.has(SdFlags::SD_SHARE_LLC);
            let widest = chain.iter().copied().take_while(|&sd| shares(sd)).last();
            if let Some(sd) = widest {
                self.init_sched_domain_shared(sd, SdFlags::SD_SHARE_LLC, &mut allocated);
            }
        }
    }

    /// topology.c: claim_asym_sched_domain_shared(). Not for NUMA domains, which overlap.
    fn claim_asym_sched_domain_shared(&mut self, chain: &[SdId], allocated: &mut Allocated) {
        let full = |sd: SdId| self.domains[sd].flags.has(SdFlags::SD_ASYM_CPUCAPACITY_FULL);
        if let Some(sd) = chain.iter().copied().find(|&sd| full(sd))
            && !self.domains[sd].flags.has(SdFlags::SD_NUMA)
        {
            self.init_sched_domain_shared(sd, SdFlags::SD_ASYM_CPUCAPACITY, allocated);
        }
    }

    /// topology.c: init_sched_domain_shared(). Takes the object of the first CPU of the domain that no domain of the other
    /// kind has; if there is none, that of the last CPU. Until load is first balanced, the number of its flag is in the
    /// place of the search length (nr_idle_scan).
    fn init_sched_domain_shared(&mut self, sd: SdId, flag: SdFlags, allocated: &mut Allocated) {
        let (weight, span) = (self.domains[sd].span_weight, self.domains.masks.get(self.domains[sd].span));
        let usable = |cpu: &CpuId| weight == 1 || allocated.0[*cpu].is_none_or(|(_, by)| by == flag);
        let found = span.iter().find(usable);
        let cpu = found.or(span.iter().last()).expect("a domain has CPUs");
        let (shared, _) = *allocated.0[cpu].get_or_insert_with(|| {
            self.domains.sdss.push(SchedDomainShared::default());
            (SdsId(self.domains.sdss.len() as u32 - 1), flag)
        });
        if found.is_some() {
            allocated.0[cpu] = Some((shared, flag));
            self.domains[shared].nr_idle_scan = flag.value(self.rules.flag_numbering);
        }
        self.domains[shared].nr_busy_cpus = weight;
        self.domains[sd].shared = Some(shared);
    }
}

impl Domains {
    /// Makes wakeups search as far as load balancing on an idle machine allows by the end of the boot
    /// (update_idle_cpu_scan).
    pub(crate) fn scan_as_when_idle(&mut self) {
        for cpu in (0..self.sd.len()).map(CpuId::new) {
            if let Some(shared) = self.sd_llc_shared[cpu] {
                self[shared].nr_idle_scan = self.sd_llc_size[cpu];
            }
            if let Some(sd) = self.sd_asym_cpucapacity[cpu]
                && self.rules.shared == DomainShared::CacheAndCapacities
                && let Some(shared) = self[sd].shared
            {
                self[shared].nr_idle_scan = self[sd].span_weight;
            }
        }
    }
}
