//! fair.c: periodic balancing, in the softirq that the tick or a kick raises.

use super::{Balancing, BusyInterval, IdlePolicyCpu, LbEnv, NewidleDecay, NohzBalance, Serialized};
use crate::arch::Arch;
use crate::core::Sched;
use crate::topology::{CpuIdleType, SdFlags, SdId};
use fentry::fentry;
use units::{CpuId, Ns};

impl<A: Arch> Sched<A> {
    /// fair.c: update_max_interval(). A tenth of a second for each CPU that is online.
    pub(crate) fn update_max_interval(&mut self) {
        self.balance.max_load_balance_interval = self.hz * self.cpu_online_mask.weight() as u64 / 10;
    }

    /// fair.c: get_sd_balance_interval(). In jiffies.
    fn get_sd_balance_interval(&self, sd: SdId, cpu_busy: bool) -> u64 {
        let domain = &self.domains[sd];
        let interval_ms = u64::from(domain.balance_interval) * if cpu_busy { u64::from(domain.busy_factor) } else { 1 };
        // Durations do not depend on the current time.
        let clock = self.balance_clock(0);
        let mut interval = clock.msecs_to_jiffies(interval_ms);
        if cpu_busy && self.kernel.balance.busy_interval == BusyInterval::OneJiffyLess {
            interval -= 1;
        }
        interval.min(clock.max_load_balance_interval).max(1)
    }

    /// fair.c: update_next_balance(), for an idle CPU: moves `next_balance` (jiffies) forward to when the domain is
    /// due, if that is earlier.
    pub(super) fn update_next_balance(&self, sd: SdId, next_balance: &mut u64) {
        let next = self.domains[sd].last_balance + self.get_sd_balance_interval(sd, false);
        *next_balance = (*next_balance).min(next);
    }

    /// Whether the CPU waits as long between balancing passes as a busy one.
    fn is_busy(&mut self, cpu: CpuId, idle: CpuIdleType) -> bool {
        let may_count_as_idle = self.kernel.balance.idle_policy_cpu == IdlePolicyCpu::Idle;
        idle != CpuIdleType::Idle && !(may_count_as_idle && self.sched_idle_cpu(cpu))
    }

    /// fair.c: rebalance_domains(). Balances every domain of `cpu` that is due; `cpu` may be another, idle CPU.
    #[doc(alias = "sched_balance_domains")]
    #[fentry]
    pub(in crate::fair) fn rebalance_domains(&mut self, cpu: CpuId, idle: CpuIdleType) {
        let mut idle = idle;
        let mut continue_balancing = true;
        let mut next_balance = self.jiffies() + 60 * self.hz;
        let mut update_next_balance = false;
        let (mut need_decay, mut max_cost) = (false, 0);
        if self.kernel.balance.nohz == NohzBalance::OneKick {
            self.update_blocked_averages(cpu);
        }
        let mut level = self.domains.sd[cpu];
        while let Some(sd) = level {
            level = self.domains[sd].parent;
            self.read_domain(sd);
            let decayed = self.update_newidle_cost(sd, 0);
            need_decay = match self.kernel.balance.newidle_decay {
                NewidleDecay::EverySecond => need_decay || decayed,
                NewidleDecay::SinceMaximum => decayed,
            };
            max_cost += self.domains[sd].max_newidle_lb_cost;
            if !continue_balancing {
                if need_decay {
                    continue;
                }
                break;
            }
            let interval = self.rebalance_domain(cpu, sd, &mut idle, &mut continue_balancing);
            let due = self.domains[sd].last_balance + interval;
            if next_balance > due {
                next_balance = due;
                update_next_balance = true;
            }
        }
        if need_decay {
            self.rq[cpu].max_idle_balance_cost = self.sysctl.sched_migration_cost.max(max_cost);
        }
        if update_next_balance {
            self.rq[cpu].next_balance = next_balance;
            let tells = self.kernel.balance.nohz != NohzBalance::Flags && idle == CpuIdleType::Idle;
            if tells && self.nohz.next_balance > next_balance {
                self.write_nohz_balance();
                self.nohz.next_balance = next_balance;
            }
        }
    }

    /// rebalance_domains() for one domain. Returns its current balance interval, in jiffies.
    fn rebalance_domain(&mut self, cpu: CpuId, sd: SdId, idle: &mut CpuIdleType, continue_balancing: &mut bool) -> u64 {
        let busy = self.is_busy(cpu, *idle);
        let mut interval = self.get_sd_balance_interval(sd, busy);
        let need_serialize =
            self.domains[sd].flags.has(SdFlags::SD_SERIALIZE) && self.kernel.balance.serialized != Serialized::Search;
        let from = Ns(self.arch.sched_clock(self.this_cpu).0);
        if need_serialize && !self.try_balancing(from) {
            return interval;
        }
        if self.jiffies() >= self.domains[sd].last_balance + interval {
            if self.load_balance(cpu, sd, *idle, continue_balancing) > 0 {
                // Tasks may have gone to another CPU of the group, so the result says nothing about `cpu`.
                *idle = if self.idle_cpu(cpu) { CpuIdleType::Idle } else { CpuIdleType::NotIdle };
            }
            self.domains[sd].last_balance = self.jiffies();
            let busy = self.is_busy(cpu, *idle);
            interval = self.get_sd_balance_interval(sd, busy);
        }
        if need_serialize {
            self.end_serialized(from);
        }
        interval
    }

    /// `spin_trylock(&balancing)` at this time, after a look at the lock, or
    /// `atomic_cmpxchg_acquire(&sched_balance_running, 0, 1)`.
    fn try_balancing(&mut self, now: Ns) -> bool {
        let held = self.balance.balancing.is_held_at(now);
        if held && self.kernel.balance.serialized == Serialized::PeriodicVisit {
            self.read_balance_running();
        } else {
            self.atomic_balance_running();
        }
        !held
    }

    /// The part of load_balance() that takes `sched_balance_running` for a serialized level. Returns whether the pass
    /// may go on.
    pub(super) fn begin_serialized(&mut self, env: &mut LbEnv) -> bool {
        if env.serialized.is_some() || !self.domains[env.sd].flags.has(SdFlags::SD_SERIALIZE) {
            return true;
        }
        self.atomic_balance_running();
        let now = self.arch.sched_clock(self.this_cpu);
        if self.balance.balancing.is_held_at(now) {
            return false;
        }
        env.serialized = Some(now);
        true
    }

    /// The part of load_balance() that releases it.
    pub(super) fn end_serialized(&mut self, from: Ns) {
        self.write_balance_running();
        self.balance.balancing = Balancing { from, until: self.arch.sched_clock(self.this_cpu) };
    }

    /// fair.c: run_rebalance_domains(). The softirq: balances for other CPUs first, because what this CPU pulls for
    /// itself would end that.
    #[doc(alias = "sched_balance_softirq")]
    #[fentry]
    pub(crate) fn run_rebalance_domains(&mut self) {
        let this_cpu = self.this_cpu;
        let idle = if self.rq[this_cpu].idle_balance { CpuIdleType::Idle } else { CpuIdleType::NotIdle };
        if self.nohz_idle_balance(idle) {
            return;
        }
        if self.kernel.balance.nohz != NohzBalance::OneKick {
            self.update_blocked_averages(this_cpu);
        }
        self.rebalance_domains(this_cpu, idle);
    }

    /// fair.c: trigger_load_balance(). Called on the tick: returns whether the softirq is due, and kicks an idle CPU if
    /// needed.
    /// Differs: v4.5 does not check whether the CPU is on its way down.
    #[doc(alias = "sched_balance_trigger")]
    #[fentry]
    pub(crate) fn trigger_load_balance(&mut self, cpu: CpuId) -> bool {
        if self.on_null_domain(cpu) || !self.cpu_active_mask.contains(cpu) {
            return false;
        }
        self.read_jiffies();
        let due = self.jiffies() >= self.rq[cpu].next_balance;
        if due {
            self.trace_sched_softirq();
        }
        match self.kernel.balance.nohz {
            NohzBalance::OneKick => {
                if self.nohz_kick_needed(cpu) {
                    self.kick_ilb_once();
                }
            }
            NohzBalance::AnyKickPutsOff | NohzBalance::FlagsAndOwn | NohzBalance::Flags => self.nohz_balancer_kick(cpu),
        }
        due
    }
}

impl Balancing {
    /// `!spin_trylock()` at this time.
    pub(super) fn is_held_at(&self, time: Ns) -> bool {
        self.from <= time && time < self.until
    }
}
