//! fair.c: "idle load balancing details": balancing for CPUs that idle without ticks.
//!
//! A CPU without ticks balances nothing by itself. So a busy CPU that finds on its tick that there is something to
//! balance kicks an idle one (`trigger_load_balance()`); the idle one then balances, in its softirq, on behalf of all
//! CPUs in `idle_cpus_mask`. Since v4.17 a kick says what it is for ([`NohzFlags`]): possibly only to age the load of
//! those CPUs, which nothing else does but newly-idle balancing.
//!
//! ```text
//! nohz.rs    which CPUs idle: nohz_balance_enter_idle, nohz_balance_exit_idle, nr_busy_cpus
//! kick.rs    when a CPU kicks (nohz_balancer_kick), and which one it kicks (find_new_ilb)
//! ilb.rs     what a kicked CPU does (nohz_idle_balance); aging load on the way to idleness (nohz_newidle_balance,
//!            nohz_run_idle_balance)
//! ```

mod ilb;
mod kick;

use super::balance::{NohzBalance, NohzCount, NohzNews};
use crate::access::Path;
use crate::arch::Arch;
use crate::core::Sched;
use crate::topology::{BusyCpus, SdId};
use fentry::fentry;
use units::{CpuId, CpuMask, unlikely};

/// fair.c: `nohz`.
#[derive(Clone, Debug, Default)]
pub struct Nohz {
    /// CPUs whose tick is stopped. A CPU that runs again stays in the mask until its first tick.
    pub idle_cpus_mask: CpuMask,
    /// The number of CPUs in `idle_cpus_mask`.
    pub nr_cpus: u32,
    /// When the first of them is due for balancing, in jiffies.
    pub next_balance: u64,
    /// Whether some of them may have load of sleepers that has to be aged (v4.17).
    pub has_blocked: bool,
    /// When to age that load next, in jiffies.
    pub next_blocked: u64,
    /// Whether a CPU has entered the mask since `next_balance` was computed (v5.16).
    pub needs_update: bool,
    /// `select_rq_mask`, as find_new_ilb() uses it (v7.3). All CPUs share one, because the search is a single step here.
    ilb_cpus: CpuMask,
}

/// sched.h: NOHZ_*_KICK. What a kicked CPU without ticks is to do on behalf of all others.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct NohzFlags(u8);

impl NohzFlags {
    pub const NONE: NohzFlags = NohzFlags(0);
    /// Balance.
    pub const NOHZ_BALANCE_KICK: NohzFlags = NohzFlags(1);
    /// Age load.
    pub const NOHZ_STATS_KICK: NohzFlags = NohzFlags(2);
    /// Age load on its own way to idleness; no CPU is kicked for this.
    pub const NOHZ_NEWILB_KICK: NohzFlags = NohzFlags(4);
    /// Find out when the first of them is due next.
    pub const NOHZ_NEXT_KICK: NohzFlags = NohzFlags(8);
    /// The flags that come with an interrupt.
    pub const NOHZ_KICK_MASK: NohzFlags = NohzFlags(1 | 2 | 8);

    /// Whether any of `flags` is set.
    #[inline]
    pub fn has(self, flags: NohzFlags) -> bool {
        self.0 & flags.0 != 0
    }

    /// Whether all of `flags` are set.
    #[inline]
    pub fn has_all(self, flags: NohzFlags) -> bool {
        self.0 & flags.0 == flags.0
    }

    #[inline]
    pub fn with(self, flags: NohzFlags) -> NohzFlags {
        NohzFlags(self.0 | flags.0)
    }

    #[inline]
    pub fn without(self, flags: NohzFlags) -> NohzFlags {
        NohzFlags(self.0 & !flags.0)
    }
}

/// How a CPU counts in its LLC.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum SdState {
    Busy,
    Idle,
}

impl<A: Arch> Sched<A> {
    /// The part of init_sched_fair_class() for idle CPUs.
    pub(super) fn init_nohz(&mut self) {
        self.nohz.idle_cpus_mask = CpuMask::new(self.nr_cpus());
        self.nohz.next_balance = self.jiffies();
        self.nohz.next_blocked = self.jiffies();
    }

    /// Changes `nohz_flags(cpu)`, which lie beside `rq.load`.
    fn atomic_nohz_flags(&mut self, cpu: CpuId) {
        self.write_rq_weight(cpu);
    }

    /// tick-sched.c: tick_nohz_idle_enter(), the scheduler's part, on each entry to the idle loop.
    #[inline(always)]
    pub(crate) fn tick_nohz_idle_enter(&mut self, cpu: CpuId) {
        if self.kernel.balance.nohz == NohzBalance::OneKick {
            self.set_cpu_sd_state_idle(cpu);
        }
    }

    /// fair.c: nohz_balance_enter_idle(). The tick of an idle CPU stops.
    ///
    /// Differs: cpu_load_update_nohz_start(), which tick-sched.c calls beside it, is called here.
    #[fentry]
    pub(crate) fn nohz_balance_enter_idle(&mut self, cpu: CpuId) {
        self.cpu_load_update_nohz_start(cpu);
        if unlikely(!self.cpu_active_mask.contains(cpu)) {
            return;
        }
        let flags = self.kernel.balance.nohz != NohzBalance::OneKick;
        if flags {
            self.rq[cpu].has_blocked_load = true;
        }
        if !self.rq[cpu].nohz_tick_stopped {
            if self.on_null_domain(cpu) {
                return;
            }
            self.rq[cpu].nohz_tick_stopped = true;
            self.atomic_nohz();
            self.count_nohz_cpu();
            self.nohz.idle_cpus_mask.set(cpu);
            self.nohz.nr_cpus += 1;
            if flags {
                self.set_cpu_sd_state_idle(cpu);
                self.nohz.needs_update = self.kernel.balance.nohz_news == NohzNews::Told;
            }
        }
        if flags {
            self.write_nohz_balance();
            self.nohz.has_blocked = true;
        }
    }

    /// Charges a change of `nohz.nr_cpus`, in kernels that have that count.
    fn count_nohz_cpu(&mut self) {
        if self.kernel.balance.nohz_count == NohzCount::Counted {
            self.atomic_nohz_nr_cpus();
        }
    }

    /// fair.c: nohz_balance_exit_idle(). Called on the first tick of a CPU that is busy again.
    #[fentry]
    pub(crate) fn nohz_balance_exit_idle(&mut self, cpu: CpuId) {
        if !self.rq[cpu].nohz_tick_stopped {
            return;
        }
        self.rq[cpu].nohz_tick_stopped = false;
        self.atomic_nohz();
        self.count_nohz_cpu();
        self.nohz.idle_cpus_mask.clear(cpu);
        self.nohz.nr_cpus -= 1;
        if self.kernel.balance.nohz != NohzBalance::OneKick {
            self.set_cpu_sd_state_busy(cpu);
        }
    }

    /// tick-sched.c: tick_nohz_idle_exit(), the scheduler's part. The tick is back; the CPU counts as idle until its
    /// first one.
    #[inline(always)]
    pub(crate) fn tick_nohz_idle_exit(&mut self, cpu: CpuId) {
        self.cpu_load_update_nohz_stop(cpu, false);
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

    /// Counts the CPU in or out of the busy CPUs of its LLC, unless it is counted so already.
    #[inline(always)]
    fn set_cpu_sd_state(&mut self, cpu: CpuId, state: SdState) {
        let counted_by = match self.kernel.domains.busy_cpus {
            BusyCpus::InGroupOfParent => self.domains.sd_busy[cpu],
            BusyCpus::InDomainShared => self.domains.sd_llc[cpu],
        };
        if let Some(sd) = counted_by
            && self.domains[sd].nohz_idle != (state == SdState::Idle)
        {
            self.change_cpu_sd_state(sd, state);
        }
    }

    #[inline(never)]
    fn change_cpu_sd_state(&mut self, sd: SdId, state: SdState) {
        let idle = state == SdState::Idle;
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

    /// How many CPUs of the LLC of `cpu` are busy.
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
}
