//! fair.c: "idle load balancing details": balancing for CPUs that idle without ticks.
//!
//! A CPU without ticks balances nothing by itself. So a busy one that sees on its tick that there is something to balance
//! kicks an idle one with the reschedule interrupt (`trigger_load_balance()`); that one, in its softirq, balances
//! on behalf of all CPUs in `idle_cpus_mask`.

use super::balance::PackingOrder;
use crate::access::Path;
use crate::arch::Arch;
use crate::core::Sched;
use crate::topology::{BusyCpus, CpuIdleType};
use fentry::fentry;
use units::{CpuId, CpuMask};

/// fair.c: `nohz`.
#[derive(Clone, Debug, Default)]
pub struct Nohz {
    /// CPUs whose tick is stopped. One that runs again stays in until its first tick.
    pub idle_cpus_mask: CpuMask,
    /// How many these are.
    pub nr_cpus: u32,
    /// When the earliest of them is due, in jiffies.
    pub next_balance: u64,
}

/// As what a CPU counts among those of its cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum SdState {
    Busy,
    Idle,
}

impl<A: Arch> Sched<A> {
    /// What init_sched_fair_class() does for idle CPUs.
    pub(super) fn init_nohz(&mut self) {
        self.nohz.idle_cpus_mask = CpuMask::new(self.nr_cpus());
        self.nohz.next_balance = self.jiffies();
    }

    /// fair.c: find_new_ilb(). The first CPU of the mask, or none: if that one is not idle now, no other is asked.
    fn find_new_ilb(&mut self) -> Option<CpuId> {
        self.read_nohz();
        let ilb = self.nohz.idle_cpus_mask.first()?;
        self.idle_cpu(ilb).then_some(ilb)
    }

    /// fair.c: nohz_balancer_kick(). Interrupts an idle CPU, which is to balance for all others.
    #[fentry]
    pub(super) fn nohz_balancer_kick(&mut self) {
        self.nohz.next_balance += 1;
        let Some(ilb_cpu) = self.find_new_ilb() else { return };
        self.atomic_nohz_flags(ilb_cpu);
        if std::mem::replace(&mut self.rq[ilb_cpu].nohz_balance_kick, true) {
            return;
        }
        self.arch.smp_send_reschedule(self.this_cpu, ilb_cpu);
    }

    /// `nohz_flags(cpu)`, which lie beside `rq.load`.
    fn atomic_nohz_flags(&mut self, cpu: CpuId) {
        self.write_rq_weight(cpu);
    }

    /// core.c: got_nohz_idle_kick(), and what scheduler_ipi() does about it. Whether the balancing softirq is to run.
    pub(crate) fn got_nohz_idle_kick(&mut self) -> bool {
        let cpu = self.this_cpu;
        if !self.rq[cpu].nohz_balance_kick {
            return false;
        }
        if self.idle_cpu(cpu) && !self.rq[cpu].need_resched {
            self.rq[cpu].idle_balance = true;
            return true;
        }
        self.atomic_nohz_flags(cpu);
        self.rq[cpu].nohz_balance_kick = false;
        false
    }

    /// fair.c: nohz_balance_enter_idle(). The tick of an idle CPU stops.
    ///
    /// Differs: the two calls that tick-sched.c makes beside it are made here, set_cpu_sd_state_idle() (on each entry to
    /// idle) and cpu_load_update_nohz_start().
    #[fentry]
    pub(crate) fn nohz_balance_enter_idle(&mut self, cpu: CpuId) {
        self.set_cpu_sd_state_idle(cpu);
        self.cpu_load_update_nohz_start(cpu);
        if self.rq[cpu].in_nohz_idle_mask || self.on_null_domain(cpu) {
            return;
        }
        self.atomic_nohz();
        self.nohz.idle_cpus_mask.set(cpu);
        self.nohz.nr_cpus += 1;
        self.rq[cpu].in_nohz_idle_mask = true;
    }

    /// fair.c: nohz_balance_exit_idle(). The first tick on a CPU that is busy again.
    #[fentry]
    fn nohz_balance_exit_idle(&mut self, cpu: CpuId) {
        if self.rq[cpu].in_nohz_idle_mask {
            self.atomic_nohz();
            self.nohz.idle_cpus_mask.clear(cpu);
            self.nohz.nr_cpus -= 1;
            self.rq[cpu].in_nohz_idle_mask = false;
        }
    }

    /// tick-sched.c: tick_nohz_idle_exit(), the scheduler's part. The tick is back; the CPU counts as idle until it hits.
    pub(crate) fn tick_nohz_idle_exit(&mut self, cpu: CpuId) {
        self.cpu_load_update_nohz_stop(cpu);
    }

    /// fair.c: on_null_domain().
    pub(super) fn on_null_domain(&self, cpu: CpuId) -> bool {
        self.rq[cpu].sd.is_none()
    }

    /// fair.c: set_cpu_sd_state_busy().
    fn set_cpu_sd_state_busy(&mut self, cpu: CpuId) {
        self.set_cpu_sd_state(cpu, SdState::Busy);
    }

    /// fair.c: set_cpu_sd_state_idle().
    fn set_cpu_sd_state_idle(&mut self, cpu: CpuId) {
        self.set_cpu_sd_state(cpu, SdState::Idle);
    }

    /// Counts the CPU in or out of its cache's busy ones.
    fn set_cpu_sd_state(&mut self, cpu: CpuId, state: SdState) {
        let counted_by = match self.kernel.domains.busy_cpus {
            BusyCpus::InGroupOfParent => self.domains.sd_busy[cpu],
            BusyCpus::InDomainShared => self.domains.sd_llc[cpu],
        };
        let Some(sd) = counted_by else { return };
        let idle = state == SdState::Idle;
        if self.domains[sd].nohz_idle == idle {
            return;
        }
        self.enter(match state {
            SdState::Busy => Path::set_cpu_sd_state_busy,
            SdState::Idle => Path::set_cpu_sd_state_idle,
        });
        self.write_domain(sd);
        self.domains[sd].nohz_idle = idle;
        let nr_busy_cpus = match self.kernel.domains.busy_cpus {
            BusyCpus::InGroupOfParent => {
                let sgc = self.domains[self.domains[sd].groups].sgc;
                self.atomic_group_capacity(sgc);
                &mut self.domains[sgc].nr_busy_cpus
            }
            BusyCpus::InDomainShared => {
                let shared = self.domains[sd].shared.expect("CPUs that share cache share a count");
                self.atomic_domain_shared(shared);
                &mut self.domains[shared].nr_busy_cpus
            }
        };
        *nr_busy_cpus = if idle { *nr_busy_cpus - 1 } else { *nr_busy_cpus + 1 };
        self.leave();
    }

    /// The busy CPUs of `cpu`'s last level cache.
    fn nr_busy_cpus(&mut self, cpu: CpuId) -> u32 {
        match self.kernel.domains.busy_cpus {
            BusyCpus::InGroupOfParent => {
                let Some(sd) = self.domains.sd_busy[cpu] else { return 0 };
                let sgc = self.domains[self.domains[sd].groups].sgc;
                self.read_group_capacity(sgc);
                self.domains[sgc].nr_busy_cpus
            }
            BusyCpus::InDomainShared => {
                let Some(shared) = self.domains.sd_llc_shared[cpu] else { return 0 };
                self.read_domain_shared(shared);
                self.domains[shared].nr_busy_cpus
            }
        }
    }

    /// fair.c: nohz_kick_needed(). On the tick: whether to have idle CPUs balanced.
    pub(super) fn nohz_kick_needed(&mut self, cpu: CpuId) -> bool {
        if self.rq[cpu].idle_balance {
            return false;
        }
        self.set_cpu_sd_state_busy(cpu);
        self.nohz_balance_exit_idle(cpu);
        self.read_nohz();
        if self.nohz.nr_cpus == 0 || self.jiffies() < self.nohz.next_balance {
            return false;
        }
        if self.rq[cpu].nr_running >= 2 || self.nr_busy_cpus(cpu) > 1 {
            return true;
        }
        let squeezed = self.rq[cpu].sd.is_some_and(|sd| self.check_cpu_capacity(cpu, sd));
        if self.cfs_h_nr_running(cpu) >= 1 && squeezed {
            return true;
        }
        self.better_placed_cpu_idles(cpu)
    }

    /// nohz_kick_needed(), its SD_ASYM_PACKING part.
    fn better_placed_cpu_idles(&self, cpu: CpuId) -> bool {
        let Some(sd) = self.domains.sd_asym_packing[cpu] else { return false };
        let mut idle = self.domains.sched_domain_span(sd).iter().filter(|&i| self.nohz.idle_cpus_mask.contains(i));
        match self.kernel.balance.asym_packing {
            PackingOrder::LowestCpu => idle.next().is_some_and(|first| first < cpu),
            PackingOrder::Priority => idle.any(|i| i != cpu && self.sched_asym_prefer(i, cpu)),
        }
    }

    /// fair.c: nohz_idle_balance(). On a CPU that was kicked: balances for every idle CPU without a tick that is due.
    #[fentry]
    pub(super) fn nohz_idle_balance(&mut self, idle: CpuIdleType) {
        let this_cpu = self.this_cpu;
        if idle == CpuIdleType::Idle && self.rq[this_cpu].nohz_balance_kick {
            self.balance_for_others(this_cpu);
        }
        self.rq[this_cpu].nohz_balance_kick = false;
    }

    fn balance_for_others(&mut self, this_cpu: CpuId) {
        let mut next_balance = self.jiffies() + 60 * self.balance.hz;
        let mut update_next_balance = false;
        let mut from = 0;
        self.read_nohz();
        while let Some(balance_cpu) = self.nohz.idle_cpus_mask.next_from(from) {
            from = balance_cpu.index() + 1;
            if balance_cpu == this_cpu || !self.idle_cpu(balance_cpu) {
                continue;
            }
            // This CPU has work of its own now: the next one that is kicked goes on.
            if self.rq[this_cpu].need_resched {
                break;
            }
            self.read_rq_curr(balance_cpu);
            if self.jiffies() >= self.rq[balance_cpu].next_balance {
                self.rq_lock(balance_cpu);
                self.update_rq_clock(balance_cpu);
                self.cpu_load_update_idle(balance_cpu);
                self.rq_unlock(balance_cpu);
                self.rebalance_domains(balance_cpu, CpuIdleType::Idle);
            }
            if next_balance > self.rq[balance_cpu].next_balance {
                next_balance = self.rq[balance_cpu].next_balance;
                update_next_balance = true;
            }
        }
        if update_next_balance {
            self.nohz.next_balance = next_balance;
        }
    }
}
