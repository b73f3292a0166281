//! fair.c, "select_task_rq_fair": which CPU a woken or new task goes to.
//!
//! ```text
//! wakeup         the waking CPU or the previous one (wake_affine) -> an idle CPU in that one's LLC (select_idle_sibling)
//! fork and exec  down this CPU's domains: idlest group -> idlest CPU in it -> its lower domains (find_idlest_cpu)
//! ```
//!
//! A wakeup also takes the slow path if a domain has SD_BALANCE_WAKE (`relax_domain_level=` sets it, and in v5.4 CPUs of
//! different capacities do) and the task should not stay near its waker (`wake_wide()`, `wake_cap()`).
//!
//! `current`, the waker, is the idle task if an interrupt wakes a task while nothing else runs.
//!
//! `ttwu_move_balance` of a domain stays 0: these kernels print it but never count it.

mod rules;
#[cfg(test)]
mod tests;

pub use rules::*;

use super::fit::fits_capacity;
use crate::arch::Arch;
use crate::core::Sched;
use crate::sched::*;
use crate::topology::{SdFlags, SdId};
use fentry::fentry;
use std::hint::cold_path;
use units::{CpuId, unlikely};

/// fair.c: capacity_margin. Utilization times 1280/1024 has to fit.
#[allow(non_upper_case_globals)]
const capacity_margin: i64 = 1280;

impl<A: Arch> Sched<A> {
    /// fair.c: select_task_rq_fair(). Chooses the CPU for `p`, which was on `prev_cpu` and is woken, forked or about to
    /// exec (`sd_flag`) by what runs on this CPU. The task may not be allowed there: the caller checks.
    #[fentry]
    pub(crate) fn select_task_rq_fair(
        &mut self,
        p: TaskId,
        prev_cpu: CpuId,
        sd_flag: SdFlags,
        flags: WakeFlags,
    ) -> CpuId {
        let cpu = self.smp_processor_id();
        let wakeup = sd_flag.has(SdFlags::SD_BALANCE_WAKE);
        if wakeup && self.kernel.wake.record_wakee == RecordWakee::AtSelect {
            self.record_wakee(p);
        }
        if wakeup
            && self.sched_energy_enabled()
            && let Some(cheapest) = self.find_energy_efficient_cpu(p, prev_cpu)
        {
            return cheapest;
        }
        let want_affine = wakeup && self.want_affine(p, cpu, prev_cpu);
        let (affine_sd, sd) = self.domains_to_search(cpu, prev_cpu, sd_flag, want_affine);

        if let Some(sd) = sd {
            cold_path();
            let fork = sd_flag.has(SdFlags::SD_BALANCE_FORK);
            if self.kernel.wake.slow_path_util == SlowPathUtil::Synced && !fork {
                self.sync_entity_load_avg(self.task[p].se);
            }
            return self.find_idlest_cpu(sd, p, cpu, prev_cpu, sd_flag);
        }
        let target = match affine_sd {
            Some(affine_sd) if cpu != prev_cpu => {
                let sync = flags.sync && !self.waker_ends();
                self.wake_affine(affine_sd, p, prev_cpu, sync)
            }
            _ => prev_cpu,
        };
        if !wakeup {
            return target;
        }
        let new_cpu = self.select_idle_sibling(p, prev_cpu, target);
        if self.kernel.wake.recent_used_cpu == RecentUsedCpu::ByWaker && want_affine {
            self.set_recent_used_cpu(cpu);
        }
        new_cpu
    }

    /// Whether the waker is about to exit, so that its `sync` is no promise to sleep.
    #[inline]
    fn waker_ends(&self) -> bool {
        self.kernel.wake.sync_exit == SyncExit::Ignored
            && self.rq[self.this_cpu].curr.is_some_and(|current| self.task[current].exiting)
    }

    /// The part of `select_task_rq_fair()` that decides whether the waking CPU is a candidate for the task.
    #[inline]
    fn want_affine(&mut self, p: TaskId, cpu: CpuId, prev_cpu: CpuId) -> bool {
        if self.wake_wide(p) {
            return false;
        }
        let asks = match self.kernel.wake.wake_cap {
            WakeCap::Absent => false,
            WakeCap::TaskTooLarge => true,
            WakeCap::EstimateTooLarge => self.domains.sched_asym_cpucapacity,
        };
        if asks && self.wake_cap(p, cpu, prev_cpu) {
            return false;
        }
        self.read_task_policy(p);
        self.cpumask_test(cpu, p)
    }

    /// The walk of `select_task_rq_fair()`: finds the lowest domain in which to compare the waking and the previous CPU
    /// or, if there is none, the widest one in which to search for the idlest CPU.
    fn domains_to_search(
        &mut self,
        cpu: CpuId,
        prev_cpu: CpuId,
        sd_flag: SdFlags,
        want_affine: bool,
    ) -> (Option<SdId>, Option<SdId>) {
        let mut widest = None;
        let mut level = self.domains.sd[cpu];
        while let Some(sd) = level {
            self.read_domain(sd);
            if !self.domains.is_balanced(sd) {
                break;
            }
            let domain = &self.domains[sd];
            let affine = want_affine && domain.flags.has(SdFlags::SD_WAKE_AFFINE);
            if affine && self.domains.sched_domain_span(sd).contains(prev_cpu) {
                return (Some(sd), None);
            }
            if domain.flags.has(sd_flag) {
                widest = Some(sd);
            } else if !want_affine {
                break;
            }
            level = domain.parent;
        }
        (None, widest)
    }

    /// `current->recent_used_cpu = cpu`. Nothing reads the idle task's.
    #[inline]
    fn set_recent_used_cpu(&mut self, cpu: CpuId) {
        if let Some(current) = self.rq[self.this_cpu].curr {
            self.write_task_wakees(current);
            self.task[current].recent_used_cpu = cpu;
        }
    }

    /// fair.c: record_wakee(). Counts how often the waker switches from one wakee to another; halved at most once a
    /// second.
    #[inline(always)]
    #[fentry]
    pub(crate) fn record_wakee(&mut self, p: TaskId) {
        let (jiffies, second) = (self.jiffies(), self.hz);
        let current = self.rq[self.this_cpu].curr;
        let (flips, last_wakee, decay_ts) = match current {
            Some(current) => {
                let task = &mut self.task[current];
                (&mut task.wakee_flips, &mut task.last_wakee, &mut task.wakee_flip_decay_ts)
            }
            None => {
                let idle = &mut self.rq[self.this_cpu].idle;
                (&mut idle.wakee_flips, &mut idle.last_wakee, &mut idle.wakee_flip_decay_ts)
            }
        };
        let (decay, flip) = (jiffies > *decay_ts + second, *last_wakee != Link::to(p));
        if unlikely(decay) {
            *flips >>= 1;
            *decay_ts = jiffies;
        }
        if flip {
            *last_wakee = Link::to(p);
            *flips = flips.wrapping_add(1);
        }
        if let Some(current) = current {
            if decay || flip { self.write_task_wakees(current) } else { self.read_task_wakees(current) }
        }
    }

    /// fair.c: wake_wide(). Whether waker and wakee have more partners than an LLC has CPUs (63b0e9edceec, v4.3): one
    /// must switch wakees at least that often, the other that many times as often.
    #[fentry]
    pub(crate) fn wake_wide(&mut self, p: TaskId) -> bool {
        self.read_task_wakees(p);
        let this = &self.rq[self.this_cpu];
        let waker = this.curr.map_or(this.idle.wakee_flips, |current| self.task[current].wakee_flips);
        let wakee = self.task[p].wakee_flips;
        let (master, slave) = (waker.max(wakee), waker.min(wakee));
        let factor = self.domains.sd_llc_size[self.this_cpu];
        slave >= factor && master >= slave.wrapping_mul(factor)
    }

    /// fair.c: wake_cap(). Whether the smaller of the two CPUs is too small for the task, on machines whose CPUs
    /// differ.
    #[fentry]
    fn wake_cap(&mut self, p: TaskId, cpu: CpuId, prev_cpu: CpuId) -> bool {
        self.read_rq_capacity(prev_cpu);
        let min_cap = self.capacity_orig_of(prev_cpu).min(self.capacity_orig_of(cpu)) as i64;
        let max_cap = self.root_domain(cpu).max_cpu_capacity as i64;
        if unlikely(max_cap - min_cap >= max_cap >> 3) {
            self.sync_entity_load_avg(self.task[p].se);
            return match self.kernel.wake.wake_cap {
                WakeCap::EstimateTooLarge => !fits_capacity(self.task_util_est(p), min_cap as u64),
                WakeCap::Absent | WakeCap::TaskTooLarge => min_cap * 1024 < self.task_util(p) as i64 * capacity_margin,
            };
        }
        false
    }

    // Utilization.

    /// fair.c: task_util(). 1024 is a full CPU.
    #[inline]
    pub(crate) fn task_util(&self, p: TaskId) -> u64 {
        self.se[self.task[p].se].avg.util_avg
    }
}
