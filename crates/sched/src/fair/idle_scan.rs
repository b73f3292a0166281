//! fair.c: the search of select_idle_sibling() since v5.12: a single scan of the LLC for an idle core or an idle CPU.

use super::idle_sibling::Search;
use super::wake::{ClusterScan, CoreThreads, EmptyScan, IsolatedWaker, PreviousSibling, ScanBudget};
use crate::arch::Arch;
use crate::core::{Sched, update_avg};
use crate::features::Feature;
use crate::sched::*;
use crate::topology::{SdFlags, SdId, SgId};
use fentry::fentry;
use units::{CpuId, CpuMask, unlikely};

/// A scan in progress.
struct Scan {
    /// The kernel's counter: the scan gives up when it would drop to 0.
    nr: u32,
    has_idle_core: bool,
    /// An idle CPU seen on the way; with `has_idle_core`, one whose core is not entirely idle.
    idle_cpu: Option<CpuId>,
}

/// How the search continues after a span.
enum After {
    /// `select_idle_cpu()` returns this.
    Return(Option<CpuId>),
    /// The search goes on with the next part.
    GoOn,
}

/// cpumask.h: for_each_cpu_wrap(), over a mask that may change during the walk.
pub(in crate::fair) struct Wrap {
    start: usize,
    from: usize,
    wrapped: bool,
}

impl Wrap {
    /// Starts at `target` and wraps from the last CPU to the first.
    pub(in crate::fair) fn at(target: CpuId) -> Wrap {
        let start = target.index();
        Wrap { start, from: start, wrapped: false }
    }

    /// Starts at the CPU after `target` and wraps from the last CPU to the first.
    pub(in crate::fair) fn after(target: CpuId) -> Wrap {
        let start = target.index() + 1;
        Wrap { start, from: start, wrapped: false }
    }

    #[inline]
    pub(in crate::fair) fn next(&mut self, mask: &CpuMask) -> Option<CpuId> {
        if !self.wrapped {
            if let Some(cpu) = mask.next_from(self.from) {
                self.from = cpu.index() + 1;
                return Some(cpu);
            }
            self.wrapped = true;
            self.from = 0;
        }
        let cpu = mask.next_from(self.from).filter(|cpu| cpu.index() < self.start)?;
        self.from = cpu.index() + 1;
        Some(cpu)
    }
}

impl<A: Arch> Sched<A> {
    /// The end of `select_idle_sibling()`.
    pub(super) fn select_idle_core_or_cpu(&mut self, p: TaskId, sd: SdId, prev: CpuId, target: CpuId) -> Option<CpuId> {
        let mut has_idle_core = false;
        if self.sched_smt_active() {
            has_idle_core = self.test_idle_cores(target, false);
            if !has_idle_core && self.cpus_share_cache(prev, target) {
                let sibling = self.select_idle_smt_of_previous(p, sd, prev);
                if sibling.is_some() {
                    return sibling;
                }
            }
        }
        self.select_idle_cpu_one_scan(p, sd, has_idle_core, target)
    }

    /// fair.c: select_idle_cpu(). While idle cores are known, it takes an idle core or, failing that, the first idle
    /// CPU seen. Otherwise it takes the first idle CPU among as many as are worth looking at: with SIS_UTIL, what the
    /// utilization of the LLC leaves (`nr_idle_scan`, which load balancing updates); with SIS_PROP, what this CPU's
    /// idle time is worth.
    #[fentry(select_idle_cpu)]
    fn select_idle_cpu_one_scan(&mut self, p: TaskId, sd: SdId, has_idle_core: bool, target: CpuId) -> Option<CpuId> {
        self.read_task_policy(p);
        let this_cpu = self.smp_processor_id();
        if self.kernel.wake.isolated_waker == IsolatedWaker::Stays {
            self.domains.sd_llc[this_cpu]?;
        }
        let mut scan = Scan { nr: i32::MAX as u32, has_idle_core, idle_cpu: None };
        let mut timed = None;
        if self.sched_feat(Feature::SIS_PROP) && !has_idle_core {
            let this_sd = self.domains.sd_llc[this_cpu]?;
            scan.nr = self.proportional_scan(sd, this_sd);
            timed = Some((this_sd, self.local_clock()));
        }
        if self.sched_feat(Feature::SIS_UTIL)
            && let Some(shared) = self.domains.sd_llc_shared[target]
        {
            self.read_domain_shared(shared);
            scan.nr = self.domains[shared].nr_idle_scan + 1;
            if scan.nr == 1 {
                return None;
            }
        }
        let clusters = self.kernel.wake.cluster_scan == ClusterScan::ClusterFirst && self.domains.sched_cluster_active;
        let ends = self.kernel.wake.empty_scan == EmptyScan::Ends;
        let mut search = self.search(p);
        search.cpus.assign_and(search.domains.sched_domain_span(sd), search.allowed);
        if unlikely(ends && search.cpus.is_empty()) {
            return None;
        }
        let cluster = search.domains[sd].groups;
        if clusters
            && search.domains[cluster].flags.has(SdFlags::SD_CLUSTER)
            && let After::Return(found) = search.scan_cluster(&mut scan, cluster, target)
        {
            return found;
        }
        if let After::Return(found) = search.scan(&mut scan, target) {
            return found;
        }
        if has_idle_core {
            self.set_idle_cores(target, false);
        }
        if let Some((this_sd, begin)) = timed {
            self.account_scan(this_sd, begin);
        }
        scan.idle_cpu
    }

    /// How many CPUs SIS_PROP lets a scan of `sd` look at, for a waker whose LLC domain is `this_sd`.
    fn proportional_scan(&mut self, sd: SdId, this_sd: SdId) -> u32 {
        let this_cpu = self.smp_processor_id();
        let avg_idle = match self.kernel.wake.scan_budget {
            ScanBudget::AvgIdle => self.rq[this_cpu].avg_idle / 512,
            ScanBudget::WakeAvgIdle => {
                let now = self.jiffies();
                let rq = &mut self.rq[this_cpu];
                while rq.wake_stamp < now && rq.wake_avg_idle != 0 {
                    rq.wake_stamp += 1;
                    rq.wake_avg_idle >>= 1;
                }
                rq.wake_avg_idle
            }
        };
        let avg_cost = self.domains[this_sd].avg_scan_cost + 1;
        let span_avg = u64::from(self.domains[sd].span_weight) * avg_idle;
        if span_avg > 4 * avg_cost { (span_avg / avg_cost) as u32 } else { 4 }
    }

    /// Charges the duration of a scan to the average, and to the idle time that is left for scans.
    fn account_scan(&mut self, this_sd: SdId, begin: u64) {
        let time = self.local_clock() - begin;
        self.write_domain(this_sd);
        let rq = &mut self.rq[self.this_cpu];
        rq.wake_avg_idle = rq.wake_avg_idle.saturating_sub(time);
        update_avg(&mut self.domains[this_sd].avg_scan_cost, time);
    }

    /// fair.c: select_idle_smt(). An idle thread of the previous CPU's core, if it belongs to the LLC domain (with
    /// `isolcpus=` it may not).
    #[fentry(select_idle_smt)]
    fn select_idle_smt_of_previous(&mut self, p: TaskId, sd: SdId, prev: CpuId) -> Option<CpuId> {
        let anywhere = self.kernel.wake.previous_sibling == PreviousSibling::Any;
        let mut search = self.search(p);
        search.threads_of(prev).find(|&cpu| {
            cpu != prev
                && search.allowed.contains(cpu)
                && (anywhere || search.domains.sched_domain_span(sd).contains(cpu))
                && search.glance.is_free(cpu)
        })
    }
}

impl<A: Arch> Search<'_, A> {
    /// Scans the target's cluster, which the rest of the scan then leaves out.
    fn scan_cluster(&mut self, scan: &mut Scan, cluster: SgId, target: CpuId) -> After {
        let mut order = Wrap::after(target);
        let span = self.domains.sched_group_span(cluster);
        while let Some(cpu) = order.next(span) {
            if !self.cpus.contains(cpu) {
                continue;
            }
            if scan.has_idle_core {
                if let Some(core) = self.select_idle_core_of(cpu, scan) {
                    return After::Return(Some(core));
                }
                continue;
            }
            scan.nr -= 1;
            if scan.nr == 0 {
                return After::Return(None);
            }
            if self.glance.is_free(cpu) {
                return After::Return(Some(cpu));
            }
        }
        self.cpus.subtract(span);
        After::GoOn
    }

    /// Scans the remaining CPUs.
    fn scan(&mut self, scan: &mut Scan, target: CpuId) -> After {
        let mut order = Wrap::after(target);
        while let Some(cpu) = order.next(self.cpus) {
            if scan.has_idle_core {
                if let Some(core) = self.select_idle_core_of(cpu, scan) {
                    return After::Return(Some(core));
                }
                continue;
            }
            scan.nr -= 1;
            if scan.nr == 0 {
                return After::Return(None);
            }
            if self.glance.is_free(cpu) {
                scan.idle_cpu = Some(cpu);
                break;
            }
        }
        After::GoOn
    }

    /// fair.c: select_idle_core(). Returns `core` if all threads of its core are idle. Remembers the first idle CPU
    /// seen, and stops looking at a busy core once it has one.
    fn select_idle_core_of(&mut self, core: CpuId, scan: &mut Scan) -> Option<CpuId> {
        let mut idle = true;
        let of_domain = self.core_threads == CoreThreads::AllowedOfDomain;
        for cpu in self.threads_of(core) {
            if !self.glance.idle_cpu(cpu) {
                idle = false;
                if scan.idle_cpu.is_some() {
                    break;
                }
                if self.glance.choose_sched_idle_rq(cpu) && self.may_serve(cpu, of_domain) {
                    scan.idle_cpu = Some(cpu);
                    break;
                }
                continue;
            }
            if scan.idle_cpu.is_none() && self.may_serve(cpu, of_domain) {
                scan.idle_cpu = Some(cpu);
            }
        }
        if idle {
            return Some(core);
        }
        self.cpus.subtract(&self.smt[core]);
        None
    }

    /// Whether the task may use that thread, and, `of_domain`, whether it is among those that are searched.
    #[inline]
    fn may_serve(&self, cpu: CpuId, of_domain: bool) -> bool {
        if of_domain { self.cpus.contains(cpu) } else { self.allowed.contains(cpu) }
    }
}
