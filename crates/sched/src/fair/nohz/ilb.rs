//! fair.c: the idle load balancer: one CPU works for all that idle without ticks.

use super::NohzFlags;
use crate::access::Path;
use crate::arch::Arch;
use crate::core::Sched;
use crate::fair::balance::{KickedResched, NohzBalance};
use crate::fair::idle_scan::Wrap;
use crate::topology::CpuIdleType;
use fentry::fentry;
use units::CpuId;

/// pelt.h: LOAD_AVG_PERIOD, in ms. Load halves in this time.
const LOAD_AVG_PERIOD: u64 = 32;

impl<A: Arch> Sched<A> {
    /// fair.c: nohz_idle_balance(). Runs on a kicked CPU. Returns whether there is nothing else to do in this softirq.
    #[fentry]
    pub(in crate::fair) fn nohz_idle_balance(&mut self, idle: CpuIdleType) -> bool {
        let this_cpu = self.this_cpu;
        match self.kernel.balance.nohz {
            NohzBalance::OneKick => {
                if idle == CpuIdleType::Idle && self.rq[this_cpu].nohz_flags.has(NohzFlags::NOHZ_BALANCE_KICK) {
                    self.balance_for_others(this_cpu);
                }
                self.rq[this_cpu].nohz_flags = NohzFlags::NONE;
                false
            }
            NohzBalance::AnyKickPutsOff | NohzBalance::FlagsAndOwn => {
                let flags = self.rq[this_cpu].nohz_flags;
                if !flags.has(NohzFlags::NOHZ_KICK_MASK) {
                    return false;
                }
                self.atomic_nohz_flags(this_cpu);
                self.rq[this_cpu].nohz_flags = NohzFlags::NONE;
                let kicked = idle == CpuIdleType::Idle;
                if kicked {
                    self.balance_for_others_and_own(this_cpu, flags, idle);
                }
                kicked
            }
            NohzBalance::Flags => {
                let flags = std::mem::take(&mut self.rq[this_cpu].nohz_idle_balance);
                let kicked = flags != NohzFlags::NONE && idle == CpuIdleType::Idle;
                if kicked {
                    self._nohz_idle_balance(this_cpu, flags);
                }
                kicked
            }
        }
    }

    /// nohz_idle_balance() until v4.16: balances for every other idle CPU without a tick that is due.
    fn balance_for_others(&mut self, this_cpu: CpuId) {
        let mut next_balance = self.jiffies() + 60 * self.hz;
        let mut update_next_balance = false;
        let mut from = 0;
        self.read_nohz();
        while let Some(balance_cpu) = self.nohz.idle_cpus_mask.next_from(from) {
            from = balance_cpu.index() + 1;
            if balance_cpu == this_cpu || !self.idle_cpu(balance_cpu) {
                continue;
            }
            // This CPU has work of its own now: the next kicked CPU goes on.
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
            self.write_nohz_balance();
            self.nohz.next_balance = next_balance;
        }
    }

    /// fair.c: update_nohz_stats(). Ages the load of a CPU that idles without ticks, once per jiffy unless `force`.
    /// Returns whether some is left.
    pub(in crate::fair) fn update_nohz_stats(&mut self, cpu: CpuId, force: bool) -> bool {
        if !self.rq[cpu].has_blocked_load || !self.nohz.idle_cpus_mask.contains(cpu) {
            return false;
        }
        if !force && self.jiffies() <= self.rq[cpu].last_blocked_load_update_tick {
            return true;
        }
        self.update_blocked_averages(cpu);
        self.rq[cpu].has_blocked_load
    }

    /// LOAD_AVG_PERIOD, in jiffies.
    fn load_avg_period(&self) -> u64 {
        self.balance_clock(0).msecs_to_jiffies(LOAD_AVG_PERIOD)
    }

    /// Load was aged just now, though some is left.
    pub(in crate::fair) fn put_off_next_blocked(&mut self) {
        self.write_nohz_balance();
        self.nohz.next_blocked = self.jiffies() + self.load_avg_period();
    }

    /// fair.c: _nohz_idle_balance(). Does what the flags say for every idle CPU without ticks, this one last.
    fn _nohz_idle_balance(&mut self, this_cpu: CpuId, flags: NohzFlags) {
        let now = self.jiffies();
        let mut next_balance = now + 60 * self.hz;
        let (mut update_next_balance, mut has_blocked_load) = (false, false);
        let ages = flags.has(NohzFlags::NOHZ_STATS_KICK);
        let stops = self.kernel.balance.kicked_resched == KickedResched::Stops;
        // A CPU that goes idle from now on sets these again.
        self.nohz.has_blocked &= !ages;
        self.nohz.needs_update &= !flags.has(NohzFlags::NOHZ_NEXT_KICK);
        self.write_nohz_balance();
        self.read_nohz();
        let mut order = Wrap::after(this_cpu);
        while let Some(balance_cpu) = order.next(&self.nohz.idle_cpus_mask) {
            if !self.idle_cpu(balance_cpu) {
                continue;
            }
            // This CPU has work of its own now: the next kicked CPU goes on.
            if self.rq[this_cpu].need_resched && (stops || !self.idle_cpu(this_cpu)) {
                self.nohz.needs_update |= flags.has(NohzFlags::NOHZ_NEXT_KICK);
                self.nohz.has_blocked |= has_blocked_load || ages;
                return;
            }
            if ages {
                has_blocked_load |= self.update_nohz_stats(balance_cpu, false);
            }
            self.read_rq_curr(balance_cpu);
            if self.jiffies() >= self.rq[balance_cpu].next_balance {
                self.rq_lock(balance_cpu);
                self.update_rq_clock(balance_cpu);
                self.rq_unlock(balance_cpu);
                if flags.has(NohzFlags::NOHZ_BALANCE_KICK) {
                    self.rebalance_domains(balance_cpu, CpuIdleType::Idle);
                }
            }
            if next_balance > self.rq[balance_cpu].next_balance {
                next_balance = self.rq[balance_cpu].next_balance;
                update_next_balance = true;
            }
        }
        if update_next_balance || ages || has_blocked_load {
            self.write_nohz_balance();
        }
        if update_next_balance {
            self.nohz.next_balance = next_balance;
        }
        if ages {
            self.nohz.next_blocked = now + self.load_avg_period();
        }
        self.nohz.has_blocked |= has_blocked_load;
    }

    /// `_nohz_idle_balance()` of [`NohzBalance::and_own`]: always ages the load of every idle CPU without ticks, and
    /// balances for it if the flags say so; this CPU itself comes last, but not before it is idle. Returns whether all were
    /// seen.
    fn balance_for_others_and_own(&mut self, this_cpu: CpuId, flags: NohzFlags, idle: CpuIdleType) -> bool {
        let now = self.jiffies();
        let mut next_balance = now + 60 * self.hz;
        let (mut update_next_balance, mut has_blocked_load) = (false, false);
        let balances = flags.has(NohzFlags::NOHZ_BALANCE_KICK);
        let known_late = self.kernel.balance.nohz == NohzBalance::AnyKickPutsOff;
        // A CPU that goes idle from now on sets this again.
        self.nohz.has_blocked = false;
        self.write_nohz_balance();
        self.read_nohz();
        let mut from = 0;
        while let Some(balance_cpu) = self.nohz.idle_cpus_mask.next_from(from) {
            from = balance_cpu.index() + 1;
            if balance_cpu == this_cpu || !self.idle_cpu(balance_cpu) {
                continue;
            }
            if self.rq[this_cpu].need_resched {
                self.nohz.has_blocked = true;
                if known_late && update_next_balance {
                    self.write_nohz_balance();
                    self.nohz.next_balance = next_balance;
                }
                return false;
            }
            has_blocked_load |= self.update_nohz_stats(balance_cpu, true);
            self.read_rq_curr(balance_cpu);
            if self.jiffies() >= self.rq[balance_cpu].next_balance {
                self.rq_lock(balance_cpu);
                self.update_rq_clock(balance_cpu);
                self.cpu_load_update_idle(balance_cpu);
                self.rq_unlock(balance_cpu);
                if balances {
                    self.rebalance_domains(balance_cpu, CpuIdleType::Idle);
                }
            }
            if next_balance > self.rq[balance_cpu].next_balance {
                next_balance = self.rq[balance_cpu].next_balance;
                update_next_balance = true;
            }
        }
        self.write_nohz_balance();
        if update_next_balance && !known_late {
            self.nohz.next_balance = next_balance;
        }
        if idle != CpuIdleType::NewlyIdle {
            self.update_blocked_averages(this_cpu);
            has_blocked_load |= self.rq[this_cpu].has_blocked_load;
        }
        if balances {
            self.rebalance_domains(this_cpu, CpuIdleType::Idle);
        }
        if update_next_balance && known_late {
            self.nohz.next_balance = next_balance;
        }
        self.nohz.next_blocked = now + self.load_avg_period();
        self.nohz.has_blocked |= has_blocked_load;
        true
    }

    /// `nohz_newidle_balance()` of [`NohzBalance::and_own`], instead of a search for work: ages the load of other idle
    /// CPUs at once, or has another CPU do the rest.
    pub(in crate::fair) fn age_for_others_newly_idle(&mut self, this_cpu: CpuId) {
        if self.rq[this_cpu].avg_idle < self.sysctl.sched_migration_cost {
            return;
        }
        self.read_nohz_balance();
        if !self.nohz.has_blocked || self.jiffies() < self.nohz.next_blocked {
            return;
        }
        self.rq_unlock(this_cpu);
        if !self.balance_for_others_and_own(this_cpu, NohzFlags::NOHZ_STATS_KICK, CpuIdleType::NewlyIdle) {
            self.kick_ilb(NohzFlags::NOHZ_STATS_KICK);
        }
        self.rq_lock(this_cpu);
    }

    /// fair.c: nohz_run_idle_balance(). On the way into the idle loop: ages the load of the CPUs that idle already.
    #[inline(always)]
    pub(crate) fn nohz_run_idle_balance(&mut self, cpu: CpuId) {
        if self.kernel.balance.nohz == NohzBalance::Flags {
            self.run_idle_balance_by_flags(cpu);
        }
    }

    /// The body of `nohz_run_idle_balance()` in kernels that have it.
    #[inline(never)]
    fn run_idle_balance_by_flags(&mut self, cpu: CpuId) {
        self.path(Path::nohz_run_idle_balance);
        self.atomic_nohz_flags(cpu);
        let flags = self.rq[cpu].nohz_flags;
        self.rq[cpu].nohz_flags = flags.without(NohzFlags::NOHZ_NEWILB_KICK);
        // A kicked CPU does so anyway.
        if flags == NohzFlags::NOHZ_NEWILB_KICK && !self.rq[cpu].need_resched {
            self._nohz_idle_balance(cpu, NohzFlags::NOHZ_STATS_KICK);
        }
    }

    /// fair.c: nohz_newidle_balance(). Newly-idle balancing found nothing: decides whether the CPU should age load
    /// instead.
    ///
    /// Differs: does nothing before v4.17; until v5.12 see [`Sched::age_for_others_newly_idle`].
    pub(in crate::fair) fn nohz_newidle_balance(&mut self, this_cpu: CpuId) {
        if self.kernel.balance.nohz != NohzBalance::Flags
            || self.rq[this_cpu].avg_idle < self.sysctl.sched_migration_cost
        {
            return;
        }
        self.read_nohz_balance();
        if !self.nohz.has_blocked || self.jiffies() < self.nohz.next_blocked {
            return;
        }
        self.atomic_nohz_flags(this_cpu);
        let flags = self.rq[this_cpu].nohz_flags;
        self.rq[this_cpu].nohz_flags = flags.with(NohzFlags::NOHZ_NEWILB_KICK);
    }
}
