//! fair.c: newly-idle balancing: a CPU looks for work before it goes idle.

use super::{
    NewidleAverages, NewidleBail, NewidleCost, NewidleDecay, NewidleDue, NewidleGate, NewidleOdds, NewidleStop,
};
use crate::access::Path;
use crate::arch::Arch;
use crate::core::Sched;
use crate::core::class::{BalanceFair, PickOrder};
use crate::features::Feature;
use crate::topology::{CpuIdleType, NewidleHistory, SdFlags, SdId};
use fentry::fentry;
use units::{CpuId, unlikely};

/// The number of sides of the NI_RANDOM dice, and of calls after which the success rate is recomputed.
const SIDES: u32 = 1024;

/// NI_RATE: 1024 calls that took 4 s make up for one side of the dice per 4 ms, in powers of two of ns.
const NI_RATE_SHIFT: u32 = 22;

impl<A: Arch> Sched<A> {
    /// `sched_clock_cpu()`, with which balancing measures its own cost. In ns.
    fn sched_clock_cpu(&mut self) -> u64 {
        self.path(Path::sched_clock_cpu);
        self.arch.sched_clock(self.this_cpu).0
    }

    /// fair.c: sched_balance_newidle(). Looks for work before the CPU goes idle, as far up its domains as the expected idle time
    /// exceeds the cost of a search. Returns the number of pulled tasks; -1 if a task of a higher class arrived meanwhile.
    ///
    /// Called with the queue's lock held, which it drops and takes again.
    /// Differs: v4.5 does not check whether the CPU is on its way down.
    #[doc(alias = "sched_balance_newidle")]
    #[doc(alias = "newidle_balance")]
    #[fentry]
    pub(crate) fn idle_balance(&mut self, this_cpu: CpuId) -> i32 {
        self.update_misfit_status(this_cpu, None);
        let for_wakeups = self.kernel.balance.newidle_bail != NewidleBail::BetweenDomains;
        if for_wakeups && !self.rq[this_cpu].wake_list.is_empty() {
            return 0;
        }
        let mut next_balance = self.jiffies() + self.hz;
        self.write_rq_idle(this_cpu);
        self.rq[this_cpu].idle_stamp = self.rq[this_cpu].clock;
        if unlikely(!self.cpu_active_mask.contains(this_cpu)) {
            return 0;
        }
        let mut pulled_task = 0;
        let searches = self.is_newidle_worth_while(this_cpu);
        if !searches {
            if let Some(sd) = self.rq[this_cpu].sd {
                self.update_next_balance(sd, &mut next_balance);
            }
            if self.kernel.balance.nohz.and_own() {
                self.age_for_others_newly_idle(this_cpu);
            }
        } else {
            let aged = self.age_before_newidle(this_cpu);
            self.rq_unlock(this_cpu);
            let (pulled, curr_cost) = self.newidle_balance_domains(this_cpu, &mut next_balance, aged);
            self.rq_lock(this_cpu);
            let rq = &mut self.rq[this_cpu];
            rq.max_idle_balance_cost = rq.max_idle_balance_cost.max(curr_cost);
            // A task queued while the lock was dropped counts as pulled.
            pulled_task = pulled;
            if pulled_task == 0 && self.cfs_h_nr_running(this_cpu) > 0 {
                pulled_task = 1;
            }
        }
        let h_nr_running = self.cfs_h_nr_running(this_cpu);
        let rq = &mut self.rq[this_cpu];
        rq.next_balance = rq.next_balance.min(next_balance);
        let looks = match (self.kernel.core.pick_order, self.kernel.core.balance_fair) {
            (PickOrder::PullInPick, _) => true,
            // Since v5.4 only after a search, during which the queue was unlocked.
            (_, BalanceFair::NothingRuns | BalanceFair::NoFairTask) => searches,
            // rq_modified_above() decides here: tasks that waited before do not count, and a path is atomic, so that none arrives
            // meanwhile.
            (_, BalanceFair::InPick) => false,
        };
        if looks && rq.nr_running != h_nr_running {
            pulled_task = -1;
        }
        if pulled_task != 0 {
            rq.idle_stamp = 0;
        } else {
            self.nohz_newidle_balance(this_cpu);
        }
        pulled_task
    }

    /// Whether a CPU has a task to give, and this one is going to idle long enough to look for it.
    fn is_newidle_worth_while(&mut self, this_cpu: CpuId) -> bool {
        let gate = self.kernel.balance.newidle_gate;
        // This gate first checks what the CPU knows about itself.
        if gate == NewidleGate::MigrationCost && self.rq[this_cpu].avg_idle < self.sysctl.sched_migration_cost {
            return false;
        }
        self.read_root_domain(this_cpu);
        let rq = &self.rq[this_cpu];
        let overload = self.root_domain(this_cpu).overload;
        match gate {
            NewidleGate::MigrationCost => overload,
            NewidleGate::DomainCost => {
                rq.sd.is_some_and(|sd| overload && rq.avg_idle >= self.domains[sd].max_newidle_lb_cost)
            }
        }
    }

    /// The part of idle_balance() that ages the CPU's load under the lock it already holds. Returns when that began, if it did.
    fn age_before_newidle(&mut self, this_cpu: CpuId) -> Option<u64> {
        if self.kernel.balance.newidle_averages == NewidleAverages::Relocked {
            return None;
        }
        let t0 = self.sched_clock_cpu();
        self.update_blocked_averages_locked(this_cpu);
        Some(t0)
    }

    /// The walk of idle_balance() over the domains. Returns the number of pulled tasks and the cost in ns. `aged`: the start of
    /// the measured time, if load was aged before.
    fn newidle_balance_domains(&mut self, this_cpu: CpuId, next_balance: &mut u64, aged: Option<u64>) -> (i32, u64) {
        let rules = self.kernel.balance;
        let with_averaging = rules.newidle_cost == NewidleCost::WithAveraging;
        let mut t0 = match aged {
            Some(t0) => t0,
            None if with_averaging => self.sched_clock_cpu(),
            None => 0,
        };
        if aged.is_none() {
            self.update_blocked_averages(this_cpu);
        }
        let (mut pulled_task, mut curr_cost) = (0, 0);
        let mut continue_balancing = true;
        let mut level = self.domains.sd[this_cpu];
        while let Some(sd) = level {
            level = self.domains[sd].parent;
            if rules.newidle_due == NewidleDue::First {
                self.update_next_balance(sd, next_balance);
            }
            let too_dear = self.rq[this_cpu].avg_idle < curr_cost + self.domains[sd].max_newidle_lb_cost;
            let mut weight = None;
            if !too_dear && self.domains[sd].flags.has(SdFlags::SD_BALANCE_NEWIDLE) {
                weight = self.newidle_weight(sd);
                if weight.is_none() {
                    continue;
                }
            }
            if let Some(weight) = weight {
                if !with_averaging {
                    t0 = self.sched_clock_cpu();
                }
                continue_balancing |= rules.newidle_stop == NewidleStop::TaskHere;
                pulled_task = self.load_balance(this_cpu, sd, CpuIdleType::NewlyIdle, &mut continue_balancing) as i32;
                let t1 = self.sched_clock_cpu();
                let domain_cost = t1 - t0;
                curr_cost += domain_cost;
                t0 = t1;
                let success = if pulled_task > 0 { weight } else { 0 };
                if self.kernel.domains.newidle != NewidleHistory::Absent {
                    self.update_newidle_stats(sd, success);
                }
                self.update_newidle_cost(sd, domain_cost);
            }
            if rules.newidle_due == NewidleDue::Afterwards {
                self.update_next_balance(sd, next_balance);
            }
            let rq = &self.rq[this_cpu];
            let task_here = match rules.newidle_stop {
                NewidleStop::TaskHere => {
                    let pending = rules.newidle_bail != NewidleBail::BetweenDomains && !rq.wake_list.is_empty();
                    rq.nr_running > 0 || pending
                }
                NewidleStop::NotOurs => !continue_balancing,
            };
            if too_dear || pulled_task != 0 || task_here {
                break;
            }
        }
        (pulled_task, curr_cost)
    }

    /// The weight of a success, which keeps the rate right although not every call searches; `None` if this call does not. With
    /// NI_RANDOM, a domain is searched as often as searches succeed: in about `newidle_ratio` + 1 of 1024 calls.
    fn newidle_weight(&mut self, sd: SdId) -> Option<u32> {
        if !self.sched_feat(Feature::NI_RANDOM) || self.kernel.domains.newidle == NewidleHistory::Absent {
            return Some(1);
        }
        if self.kernel.balance.newidle_odds == NewidleOdds::Certain && self.domains[sd].newidle_ratio >= SIDES {
            return Some(1);
        }
        let weight = 1 + self.domains[sd].newidle_ratio;
        if self.arch.sched_rng(self.this_cpu) % SIDES > weight {
            self.update_newidle_stats(sd, 0);
            return None;
        }
        Some((SIDES + weight / 2) / weight)
    }

    /// fair.c: update_newidle_stats(). The successes of the last 512 to 1024 calls, out of 1024. NI_RATE adds one for each 4 ms
    /// that the last 512 calls took, so that infrequent searches are not saved.
    pub(super) fn update_newidle_stats(&mut self, sd: SdId, success: u32) {
        let domain = &mut self.domains[sd];
        domain.newidle_call += 1;
        domain.newidle_success += success;
        if domain.newidle_call >= SIDES {
            let ratio = domain.newidle_success;
            let ratio = match self.kernel.balance.newidle_odds {
                NewidleOdds::AsCounted => ratio,
                NewidleOdds::Certain => self.newidle_rate(sd, ratio),
            };
            let domain = &mut self.domains[sd];
            domain.newidle_ratio = ratio;
            domain.newidle_call /= 2;
            domain.newidle_success /= 2;
        }
    }

    /// The new rate after `success` of 1024 calls succeeded.
    fn newidle_rate(&mut self, sd: SdId, success: u32) -> u32 {
        let now = self.sched_clock_cpu();
        let since = now.saturating_sub(std::mem::replace(&mut self.domains[sd].newidle_stamp, now));
        let seldom = if self.sched_feat(Feature::NI_RATE) { since >> NI_RATE_SHIFT } else { 0 };
        (seldom + u64::from(success)).min(u64::from(SIDES)) as u32
    }

    /// fair.c: update_newidle_cost(). Records the cost of a search (in ns; 0: there was none). Returns whether the known cost has
    /// just decayed by about 1%, as it does once per second.
    ///
    /// Differs: a call that searched also counts its success where searching costs nothing. Until v5.15 these were two pieces of
    /// code, of which the decaying one was never called with a cost.
    pub(super) fn update_newidle_cost(&mut self, sd: SdId, cost: u64) -> bool {
        let now = self.jiffies();
        let hz = self.hz;
        let sd = &mut self.domains[sd];
        let greatest = cost > sd.max_newidle_lb_cost;
        if greatest {
            sd.max_newidle_lb_cost = cost;
        }
        let decays = match self.kernel.balance.newidle_decay {
            NewidleDecay::EverySecond => cost == 0 && now > sd.next_decay_max_lb_cost,
            NewidleDecay::SinceMaximum => !greatest && now > sd.last_decay_max_lb_cost + hz,
        };
        if decays {
            sd.max_newidle_lb_cost = sd.max_newidle_lb_cost * 253 / 256;
            sd.next_decay_max_lb_cost = now + hz;
        }
        if decays || greatest {
            sd.last_decay_max_lb_cost = now;
        }
        decays
    }
}
