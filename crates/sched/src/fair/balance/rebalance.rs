//! fair.c: when to balance: before going idle, and periodically, in the softirq that the tick or a kick raises.

use super::Balancing;
use crate::access::Path;
use crate::arch::Arch;
use crate::core::Sched;
use crate::topology::{CpuIdleType, SdFlags, SdId};
use fentry::fentry;
use units::{CpuId, Ns};

impl<A: Arch> Sched<A> {
    /// fair.c: get_sd_balance_interval(). In jiffies.
    fn get_sd_balance_interval(&self, sd: SdId, cpu_busy: bool) -> u64 {
        let domain = &self.domains[sd];
        let interval_ms = u64::from(domain.balance_interval) * if cpu_busy { u64::from(domain.busy_factor) } else { 1 };
        // Lengths of time do not depend on when it is.
        let clock = self.balance_clock(0);
        clock.msecs_to_jiffies(interval_ms).min(clock.max_load_balance_interval).max(1)
    }

    /// fair.c: update_next_balance(). For an idle CPU: moves `next_balance` (jiffies) to where the domain is due, if earlier.
    fn update_next_balance(&self, sd: SdId, next_balance: &mut u64) {
        let next = self.domains[sd].last_balance + self.get_sd_balance_interval(sd, false);
        *next_balance = (*next_balance).min(next);
    }

    /// `sched_clock_cpu()`, by which balancing measures its own cost. In ns.
    fn sched_clock_cpu(&mut self) -> u64 {
        self.path(Path::sched_clock_cpu);
        self.arch.sched_clock(self.this_cpu).0
    }

    /// fair.c: idle_balance(). Looks for work before the CPU goes idle, as far up its domains as it expects to idle longer
    /// than the search takes. The count of pulled tasks; -1 if a task of a higher class came meanwhile.
    ///
    /// Called with the queue's lock held, which it drops and takes again.
    #[fentry]
    pub(crate) fn idle_balance(&mut self, this_cpu: CpuId) -> i32 {
        let mut next_balance = self.jiffies() + self.balance.hz;
        let mut pulled_task = 0;
        self.write_rq_balance(this_cpu);
        self.rq[this_cpu].idle_stamp = self.rq[this_cpu].clock;
        self.read_root_domain();
        if self.rq[this_cpu].avg_idle < self.sysctl.sched_migration_cost || !self.balance.overload {
            if let Some(sd) = self.rq[this_cpu].sd {
                self.update_next_balance(sd, &mut next_balance);
            }
        } else {
            self.rq_unlock(this_cpu);
            self.update_blocked_averages(this_cpu);
            let (pulled, curr_cost) = self.newidle_balance_domains(this_cpu, &mut next_balance);
            self.rq_lock(this_cpu);
            let rq = &mut self.rq[this_cpu];
            rq.max_idle_balance_cost = rq.max_idle_balance_cost.max(curr_cost);
            // What was queued while the lock was dropped counts as pulled.
            pulled_task = pulled;
            if pulled_task == 0 && self.cfs_h_nr_running(this_cpu) > 0 {
                pulled_task = 1;
            }
        }
        let h_nr_running = self.cfs_h_nr_running(this_cpu);
        let rq = &mut self.rq[this_cpu];
        rq.next_balance = rq.next_balance.min(next_balance);
        if rq.nr_running != h_nr_running {
            pulled_task = -1;
        }
        if pulled_task != 0 {
            rq.idle_stamp = 0;
        }
        pulled_task
    }

    /// idle_balance() over the domains: tasks pulled, and what it cost in ns.
    fn newidle_balance_domains(&mut self, this_cpu: CpuId, next_balance: &mut u64) -> (i32, u64) {
        let (mut pulled_task, mut curr_cost) = (0, 0);
        let mut level = self.domains.sd[this_cpu];
        while let Some(sd) = level {
            level = self.domains[sd].parent;
            let flags = self.domains[sd].flags;
            if !flags.has(SdFlags::SD_LOAD_BALANCE) {
                continue;
            }
            if self.rq[this_cpu].avg_idle < curr_cost + self.domains[sd].max_newidle_lb_cost {
                self.update_next_balance(sd, next_balance);
                break;
            }
            if flags.has(SdFlags::SD_BALANCE_NEWIDLE) {
                let t0 = self.sched_clock_cpu();
                let mut continue_balancing = true;
                pulled_task = self.load_balance(this_cpu, sd, CpuIdleType::NewlyIdle, &mut continue_balancing) as i32;
                let domain_cost = self.sched_clock_cpu() - t0;
                let max = &mut self.domains[sd].max_newidle_lb_cost;
                *max = (*max).max(domain_cost);
                curr_cost += domain_cost;
            }
            self.update_next_balance(sd, next_balance);
            if pulled_task != 0 || self.rq[this_cpu].nr_running > 0 {
                break;
            }
        }
        (pulled_task, curr_cost)
    }

    /// fair.c: rebalance_domains(). Balances every domain of `cpu` that is due; `cpu` may be another, idle CPU.
    #[fentry]
    pub(in crate::fair) fn rebalance_domains(&mut self, cpu: CpuId, idle: CpuIdleType) {
        let mut idle = idle;
        let mut continue_balancing = true;
        let mut next_balance = self.jiffies() + 60 * self.balance.hz;
        let mut update_next_balance = false;
        let (mut need_decay, mut max_cost) = (false, 0);
        self.update_blocked_averages(cpu);
        let mut level = self.domains.sd[cpu];
        while let Some(sd) = level {
            level = self.domains[sd].parent;
            self.read_domain(sd);
            need_decay |= self.decay_newidle_cost(sd);
            max_cost += self.domains[sd].max_newidle_lb_cost;
            if !self.domains[sd].flags.has(SdFlags::SD_LOAD_BALANCE) {
                continue;
            }
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
            if idle == CpuIdleType::Idle && self.nohz.next_balance > next_balance {
                self.nohz.next_balance = next_balance;
            }
        }
    }

    /// The newidle cost of a domain loses about 1% a second. Whether it just did.
    fn decay_newidle_cost(&mut self, sd: SdId) -> bool {
        let jiffies = self.jiffies();
        let domain = &mut self.domains[sd];
        if jiffies <= domain.next_decay_max_lb_cost {
            return false;
        }
        domain.max_newidle_lb_cost = domain.max_newidle_lb_cost * 253 / 256;
        domain.next_decay_max_lb_cost = jiffies + self.balance.hz;
        true
    }

    /// rebalance_domains() for one domain. Its balance interval now, in jiffies.
    fn rebalance_domain(&mut self, cpu: CpuId, sd: SdId, idle: &mut CpuIdleType, continue_balancing: &mut bool) -> u64 {
        let mut interval = self.get_sd_balance_interval(sd, *idle != CpuIdleType::Idle);
        let need_serialize = self.domains[sd].flags.has(SdFlags::SD_SERIALIZE);
        let from = Ns(self.arch.sched_clock(self.this_cpu).0);
        if need_serialize && self.balance.balancing.is_held_at(from) {
            return interval;
        }
        if self.jiffies() >= self.domains[sd].last_balance + interval {
            if self.load_balance(cpu, sd, *idle, continue_balancing) > 0 {
                // Tasks may have gone to another CPU of the group, so this says nothing about `cpu`.
                *idle = if self.idle_cpu(cpu) { CpuIdleType::Idle } else { CpuIdleType::NotIdle };
            }
            self.domains[sd].last_balance = self.jiffies();
            interval = self.get_sd_balance_interval(sd, *idle != CpuIdleType::Idle);
        }
        if need_serialize {
            self.balance.balancing = Balancing { from, until: self.arch.sched_clock(self.this_cpu) };
        }
        interval
    }

    /// fair.c: run_rebalance_domains(). The softirq: first for others, so that what this CPU pulls for itself does not end it.
    #[fentry]
    pub(crate) fn run_rebalance_domains(&mut self) {
        let this_cpu = self.this_cpu;
        let idle = if self.rq[this_cpu].idle_balance { CpuIdleType::Idle } else { CpuIdleType::NotIdle };
        self.nohz_idle_balance(idle);
        self.rebalance_domains(this_cpu, idle);
    }

    /// fair.c: trigger_load_balance(). On the tick: whether the softirq is due; also kicks an idle CPU if that is.
    #[fentry]
    pub(crate) fn trigger_load_balance(&mut self, cpu: CpuId) -> bool {
        if self.on_null_domain(cpu) {
            return false;
        }
        let due = self.jiffies() >= self.rq[cpu].next_balance;
        if self.nohz_kick_needed(cpu) {
            self.nohz_balancer_kick();
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
