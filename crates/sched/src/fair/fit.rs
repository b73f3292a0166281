//! fair.c: whether a task, or a utilization, fits on a CPU; and the search for an idle CPU on machines whose CPUs
//! differ in capacity. 1024 is a full CPU of the biggest kind.
//!
//! Differs: neither thermal nor firmware limits lower a CPU's capacity (`get_actual_cpu_capacity()`,
//! `thermal_load_avg()`).

use super::idle_scan::Wrap;
use super::wake::AsymIdle;
use crate::arch::Arch;
use crate::core::{ClampId, Sched, UtilClamp};
use crate::cpu_topology::SCHED_CAPACITY_SCALE;
use crate::features::Feature;
use crate::sched::TaskId;
use crate::topology::SdId;
use fentry::fentry;
use std::hint::cold_path;
use units::{CpuId, unlikely};

/// fair.c: fits_capacity(). Whether a utilization leaves 20% of a CPU's capacity free.
#[inline]
pub(super) fn fits_capacity(util: u64, capacity: u64) -> bool {
    util * 1280 < capacity * 1024
}

/// fair.c: the answers of util_fits_cpu(), from the worst.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Fits {
    /// 0
    No,
    /// -1: the task fits, except that its lower clamp asks for more than the CPU has.
    ButClamp,
    /// 1
    Yes,
}

/// What a task needs: its utilization and its clamps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Needs {
    pub util: u64,
    pub uclamp_min: u64,
    pub uclamp_max: u64,
}

impl<A: Arch> Sched<A> {
    /// The task's estimated utilization and its clamps.
    #[inline]
    pub(super) fn needs_of(&self, p: TaskId) -> Needs {
        Needs {
            util: self.task_util_est(p),
            uclamp_min: self.uclamp_eff_value(p, ClampId::Min),
            uclamp_max: self.uclamp_eff_value(p, ClampId::Max),
        }
    }

    /// fair.c: util_fits_cpu(). A task whose upper clamp is below the CPU's capacity fits whatever its utilization,
    /// except on the biggest CPU, which any task may overload.
    pub(super) fn util_fits_cpu(&self, needs: Needs, cpu: CpuId) -> Fits {
        let Needs { util, uclamp_min, uclamp_max } = needs;
        let fits = fits_capacity(util, self.capacity_of(cpu));
        if !self.uclamp_is_used() || self.kernel.core.uclamp == UtilClamp::FrequencyOnly {
            return if fits { Fits::Yes } else { Fits::No };
        }
        let capacity_orig = self.capacity_orig_of(cpu);
        let full = u64::from(SCHED_CAPACITY_SCALE);
        let on_top = capacity_orig == full && uclamp_max == full;
        let uclamp_max_fits = !on_top && uclamp_max <= capacity_orig;
        if !fits && !uclamp_max_fits {
            return Fits::No;
        }
        let uclamp_min = uclamp_min.min(uclamp_max);
        if util < uclamp_min && uclamp_min > capacity_orig { Fits::ButClamp } else { Fits::Yes }
    }

    /// fair.c: task_fits_cpu().
    pub(super) fn task_fits_cpu(&self, p: TaskId, cpu: CpuId) -> bool {
        self.util_fits_cpu(self.needs_of(p), cpu) == Fits::Yes
    }

    /// sched.h: sched_asym_cpucap_active(). Whether CPUs differ in capacity, and placement takes that into account.
    #[inline]
    pub(super) fn sched_asym_cpucap_active(&self) -> bool {
        unlikely(self.domains.sched_asym_cpucapacity) && self.kernel.wake.asym_idle != AsymIdle::Unseen
    }

    /// The beginning of select_idle_sibling(): what the task needs, if capacities matter.
    #[inline]
    pub(super) fn asym_needs(&mut self, p: TaskId) -> Option<Needs> {
        if !self.sched_asym_cpucap_active() {
            return None;
        }
        self.sync_entity_load_avg(self.task[p].se);
        Some(self.needs_of(p))
    }

    /// fair.c: asym_fits_cpu(). Any CPU will do if all have the same capacity.
    #[inline]
    pub(super) fn asym_fits_cpu(&mut self, needs: Option<Needs>, cpu: CpuId) -> bool {
        let Some(needs) = needs else { return true };
        cold_path();
        let whole = self.kernel.wake.asym_idle == AsymIdle::WholeCores && self.sched_smt_active();
        (!whole || self.is_core_idle(cpu)) && self.util_fits_cpu(needs, cpu) == Fits::Yes
    }

    /// fair.c: select_idle_capacity(). The first idle CPU from `target` on that fits; else the one that fits best, and
    /// among equals the biggest.
    pub(super) fn select_idle_capacity(&mut self, p: TaskId, needs: Needs, sd: SdId, target: CpuId) -> Option<CpuId> {
        match self.kernel.wake.asym_idle {
            AsymIdle::Unseen | AsymIdle::ByCapacity => self.select_idle_cpu_by_capacity(p, needs, sd, target),
            AsymIdle::WholeCores => self.select_idle_core_by_capacity(p, needs, sd, target),
        }
    }

    #[fentry(select_idle_capacity)]
    fn select_idle_cpu_by_capacity(&mut self, p: TaskId, needs: Needs, sd: SdId, target: CpuId) -> Option<CpuId> {
        self.read_task_policy(p);
        let mut cpus = std::mem::take(&mut self.select_rq_mask);
        cpus.assign_and(self.domains.sched_domain_span(sd), &self.task[p].cpus_allowed);
        let mut best = None;
        let mut best_key = (Fits::No, 0);
        for cpu in cpus.iter_wrap(target) {
            self.read_rq_capacity(cpu);
            let capacity = self.capacity_of(cpu);
            if !self.is_free(cpu, p) {
                continue;
            }
            let fits = self.util_fits_cpu(needs, cpu);
            let key = match fits {
                Fits::Yes => {
                    best = Some(cpu);
                    break;
                }
                Fits::ButClamp => (fits, self.capacity_orig_of(cpu)),
                Fits::No => (fits, capacity),
            };
            if key > best_key {
                best_key = key;
                best = Some(cpu);
            }
        }
        self.select_rq_mask = cpus;
        best
    }
}

/// fair.c: enum asym_fits_state. How well an idle CPU serves if it is not good enough to be taken at once, from the
/// best. While no idle core is known, every CPU counts as one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum AsymFits {
    /// ASYM_IDLE_UCLAMP_MISFIT: on an idle core, too small only for the lower clamp.
    CoreButClamp,
    /// ASYM_IDLE_COMPLETE_MISFIT: on an idle core, but too small.
    CoreTooSmall,
    /// ASYM_IDLE_THREAD_FITS: big enough, but beside a busy thread.
    ThreadFits,
    /// ASYM_IDLE_THREAD_UCLAMP_MISFIT
    ThreadButClamp,
    /// ASYM_IDLE_THREAD_MISFIT
    ThreadTooSmall,
}

impl AsymFits {
    /// `None`: the CPU is to be taken at once.
    fn of(fits: Fits, preferred_core: bool) -> Option<AsymFits> {
        Some(match (fits, preferred_core) {
            (Fits::Yes, true) => return None,
            (Fits::ButClamp, true) => AsymFits::CoreButClamp,
            (Fits::No, true) => AsymFits::CoreTooSmall,
            (Fits::Yes, false) => AsymFits::ThreadFits,
            (Fits::ButClamp, false) => AsymFits::ThreadButClamp,
            (Fits::No, false) => AsymFits::ThreadTooSmall,
        })
    }
}

impl<A: Arch> Sched<A> {
    /// select_idle_capacity() in kernels that prefer whole idle cores. If none is known, the scan looks only at as many
    /// CPUs as the domain's utilization leaves likely (SIS_UTIL); if it finds none, that is noted.
    #[fentry(select_idle_capacity)]
    fn select_idle_core_by_capacity(&mut self, p: TaskId, needs: Needs, sd: SdId, target: CpuId) -> Option<CpuId> {
        let has_idle_core = self.sched_smt_active() && self.test_idle_cores(target, false);
        self.read_task_policy(p);
        let mut nr = i32::MAX as u32;
        if self.sched_feat(Feature::SIS_UTIL)
            && let Some(shared) = self.domains[sd].shared
        {
            self.read_domain_shared(shared);
            nr = self.domains[shared].nr_idle_scan + 1;
            if nr == 1 {
                return None;
            }
        }
        let mut cpus = std::mem::take(&mut self.select_rq_mask);
        cpus.assign_and(self.domains.sched_domain_span(sd), &self.task[p].cpus_allowed);
        let (mut best, mut best_fits, mut best_capacity) = (None, AsymFits::ThreadTooSmall, 0);
        let mut order = Wrap::at(target);
        let mut ends_here = false;
        while let Some(cpu) = order.next(&cpus) {
            let preferred_core = !has_idle_core || self.is_core_idle(cpu);
            self.read_rq_capacity(cpu);
            if !has_idle_core {
                nr -= 1;
                if nr == 0 {
                    ends_here = true;
                    break;
                }
            }
            if !self.is_free(cpu, p) {
                continue;
            }
            let fits = self.util_fits_cpu(needs, cpu);
            let Some(rank) = AsymFits::of(fits, preferred_core) else {
                (best, ends_here) = (Some(cpu), true);
                break;
            };
            let capacity = if fits == Fits::ButClamp { self.capacity_orig_of(cpu) } else { self.capacity_of(cpu) };
            if rank < best_fits || rank == best_fits && capacity > best_capacity {
                (best, best_fits, best_capacity) = (Some(cpu), rank, capacity);
            }
        }
        self.select_rq_mask = cpus;
        if !ends_here && has_idle_core && best_fits > AsymFits::CoreTooSmall {
            self.set_idle_cores(target, false);
        }
        best
    }
}

#[cfg(test)]
mod tests {
    use super::fits_capacity;

    #[test]
    fn a_fifth_of_the_capacity_stays_free() {
        assert!(fits_capacity(819, 1024) && !fits_capacity(820, 1024));
        assert!(fits_capacity(356, 446) && !fits_capacity(357, 446));
    }
}
