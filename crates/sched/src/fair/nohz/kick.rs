//! fair.c: when a busy CPU kicks an idle one, and which.

use super::NohzFlags;
use crate::arch::Arch;
use crate::core::Sched;
use crate::fair::balance::{KickIlb, KickedResched, MisfitStatus, NewIlb, NohzBalance, NohzCount, PackingOrder};
use crate::isolation::IlbCpus;
use crate::topology::SdId;
use crate::trace::Ipi;
use fentry::fentry;
use units::CpuId;

const BALANCE: NohzFlags = NohzFlags(NohzFlags::NOHZ_BALANCE_KICK.0 | NohzFlags::NOHZ_STATS_KICK.0);

impl<A: Arch> Sched<A> {
    /// fair.c: find_new_ilb(). The CPU that is to balance for all others.
    fn find_new_ilb(&mut self) -> Option<CpuId> {
        self.read_nohz();
        let new_ilb = self.kernel.balance.new_ilb;
        let spares_some = self.tick_nohz_full_enabled() && self.kernel.isolation.ilb == IlbCpus::Housekeeping;
        if spares_some && new_ilb != NewIlb::IdleCoreFirst {
            let mask = self.nohz.idle_cpus_mask.clone();
            return mask.iter().find(|&cpu| self.may_balance_for_others(cpu) && self.idle_cpu(cpu));
        }
        match new_ilb {
            NewIlb::FirstOfMask => {
                let ilb = self.nohz.idle_cpus_mask.first()?;
                self.idle_cpu(ilb).then_some(ilb)
            }
            NewIlb::FirstIdle => {
                let mut from = 0;
                loop {
                    let ilb = self.nohz.idle_cpus_mask.next_from(from)?;
                    from = ilb.index() + 1;
                    if ilb != self.this_cpu && self.idle_cpu(ilb) {
                        return Some(ilb);
                    }
                }
            }
            NewIlb::IdleCoreFirst => self.find_new_ilb_idle_core(),
        }
    }

    /// find_new_ilb() of [`NewIlb::IdleCoreFirst`]. To balance on a core that works on another thread would cost that thread
    /// capacity. Threads of a core that is known to be busy are not looked at.
    fn find_new_ilb_idle_core(&mut self) -> Option<CpuId> {
        let mut left = std::mem::take(&mut self.nohz.ilb_cpus);
        left.assign_and(&self.nohz.idle_cpus_mask, &self.cpu_online_mask);
        let (mut ilb_cpu, mut fallback) = (None, None);
        let mut from = 0;
        while let Some(cpu) = left.next_from(from) {
            from = cpu.index() + 1;
            if !self.may_balance_for_others(cpu) {
                continue;
            }
            let idle = self.idle_cpu(cpu);
            if idle && (!self.sched_smt_active() || self.is_core_idle(cpu)) {
                ilb_cpu = Some(cpu);
                break;
            }
            if idle {
                fallback = fallback.or(Some(cpu));
            }
            // Without a fallback an idle thread of this core may still become one.
            if self.sched_smt_active() && fallback.is_some() {
                self.topology.smt[cpu].iter().for_each(|sibling| left.clear(sibling));
            }
        }
        self.nohz.ilb_cpus = left;
        ilb_cpu.or(fallback)
    }

    /// fair.c: nohz_balancer_kick() until v4.16. Interrupts an idle CPU, which is to balance for all others.
    #[doc(alias = "nohz_balancer_kick")]
    #[fentry(nohz_balancer_kick)]
    pub(in crate::fair) fn kick_ilb_once(&mut self) {
        self.write_nohz_balance();
        self.nohz.next_balance += 1;
        let Some(ilb_cpu) = self.find_new_ilb() else { return };
        self.atomic_nohz_flags(ilb_cpu);
        let flags = self.rq[ilb_cpu].nohz_flags;
        if flags.has(NohzFlags::NOHZ_BALANCE_KICK) {
            return;
        }
        self.rq[ilb_cpu].nohz_flags = flags.with(NohzFlags::NOHZ_BALANCE_KICK);
        self.arch.send_ipi(self.this_cpu, ilb_cpu, Ipi::Reschedule);
    }

    /// fair.c: kick_ilb(). Makes an idle CPU do what the flags say for all others.
    pub(in crate::fair) fn kick_ilb(&mut self, flags: NohzFlags) {
        if self.kernel.balance.nohz == NohzBalance::AnyKickPutsOff {
            self.nohz.next_balance += 1;
            self.write_nohz_balance();
        } else if flags.has(NohzFlags::NOHZ_BALANCE_KICK) {
            self.nohz.next_balance = self.jiffies() + 1;
            self.write_nohz_balance();
        }
        let Some(ilb_cpu) = self.find_new_ilb() else { return };
        if self.kernel.balance.kick_ilb == KickIlb::IfNew {
            self.read_rq_weight(ilb_cpu);
            if self.rq[ilb_cpu].nohz_flags.has_all(flags) {
                return;
            }
        }
        self.atomic_nohz_flags(ilb_cpu);
        let before = self.rq[ilb_cpu].nohz_flags;
        self.rq[ilb_cpu].nohz_flags = before.with(flags);
        // The CPU that sets the first flag sends the call, or, before v5.8, the interrupt.
        if !before.has(NohzFlags::NOHZ_KICK_MASK) {
            match self.kernel.balance.nohz {
                NohzBalance::Flags => self.smp_call_function_single_async(ilb_cpu),
                NohzBalance::OneKick | NohzBalance::AnyKickPutsOff | NohzBalance::FlagsAndOwn => {
                    self.arch.send_ipi(self.this_cpu, ilb_cpu, Ipi::Reschedule);
                }
            }
        }
    }

    /// core.c: got_nohz_idle_kick(), and since v5.8 nohz_csd_func(). Whether the balancing softirq is to run.
    #[doc(alias = "nohz_csd_func")]
    pub(crate) fn got_nohz_idle_kick(&mut self) -> bool {
        let cpu = self.this_cpu;
        let flags = self.rq[cpu].nohz_flags;
        if !flags.has(NohzFlags::NOHZ_KICK_MASK) {
            return false;
        }
        match self.kernel.balance.nohz {
            NohzBalance::OneKick | NohzBalance::AnyKickPutsOff | NohzBalance::FlagsAndOwn => {
                if self.idle_cpu(cpu) && !self.rq[cpu].need_resched {
                    self.rq[cpu].idle_balance = true;
                    self.trace_sched_softirq();
                    return true;
                }
                self.atomic_nohz_flags(cpu);
                self.rq[cpu].nohz_flags = NohzFlags::NONE;
                false
            }
            NohzBalance::Flags => {
                self.atomic_nohz_flags(cpu);
                self.rq[cpu].nohz_flags = NohzFlags::NONE;
                let idle = self.idle_cpu(cpu);
                self.rq[cpu].idle_balance = idle;
                let stops = self.kernel.balance.kicked_resched == KickedResched::Stops;
                let begins = idle && !(stops && self.rq[cpu].need_resched);
                if begins {
                    self.rq[cpu].nohz_idle_balance = flags;
                    self.trace_sched_softirq();
                }
                begins
            }
        }
    }

    /// nohz_kick_needed() until v4.16. Decides on the tick whether idle CPUs are to be balanced.
    pub(in crate::fair) fn nohz_kick_needed(&mut self, cpu: CpuId) -> bool {
        if self.rq[cpu].idle_balance {
            return false;
        }
        self.set_cpu_sd_state_busy(cpu);
        self.nohz_balance_exit_idle(cpu);
        self.read_nohz_balance();
        if self.nohz.nr_cpus == 0 || self.jiffies() < self.nohz.next_balance {
            return false;
        }
        if self.rq[cpu].nr_running >= 2 || self.nr_busy_cpus(cpu) > 1 {
            return true;
        }
        self.is_squeezed(cpu) || self.better_placed_cpu_idles(cpu)
    }

    /// fair.c: nohz_balancer_kick(). Decides on the tick whether idle CPUs are to be balanced, or their load aged.
    #[fentry]
    pub(in crate::fair) fn nohz_balancer_kick(&mut self, cpu: CpuId) {
        if self.rq[cpu].idle_balance {
            return;
        }
        self.nohz_balance_exit_idle(cpu);
        let counted = self.kernel.balance.nohz_count == NohzCount::Counted;
        self.read_nohz_balance();
        if counted && self.nohz.nr_cpus == 0 {
            return;
        }
        let now = self.jiffies();
        let mut flags = NohzFlags::NONE;
        if self.nohz.has_blocked && now > self.nohz.next_blocked {
            flags = NohzFlags::NOHZ_STATS_KICK;
        }
        if now >= self.nohz.next_balance {
            if !counted {
                self.read_nohz();
                if self.nohz.idle_cpus_mask.is_empty() {
                    return;
                }
            }
            if self.is_balance_wanted(cpu) {
                flags = BALANCE;
            }
        }
        if self.nohz.needs_update {
            flags = flags.with(NohzFlags::NOHZ_NEXT_KICK);
        }
        if flags != NohzFlags::NONE {
            self.kick_ilb(flags);
        }
    }

    /// nohz_balancer_kick() between its labels: whether this CPU has something that an idle one could take.
    fn is_balance_wanted(&mut self, cpu: CpuId) -> bool {
        if self.rq[cpu].nr_running >= 2 || self.is_squeezed(cpu) || self.better_placed_cpu_idles(cpu) {
            return true;
        }
        // Where capacities differ, LLCs are not evened out: it is enough that tasks fit.
        if let Some(sd) = self.domains.sd_asym_cpucapacity[cpu] {
            return self.check_misfit_status(cpu, sd);
        }
        self.nr_busy_cpus(cpu) > 1
    }

    /// Whether a task runs on a CPU that has lost a part of its capacity.
    fn is_squeezed(&self, cpu: CpuId) -> bool {
        self.counted_tasks(cpu) >= 1 && self.rq[cpu].sd.is_some_and(|sd| self.check_cpu_capacity(cpu, sd))
    }

    /// fair.c: check_misfit_status(). Whether the CPU has a task that is too big for it and that another CPU might
    /// take.
    fn check_misfit_status(&self, cpu: CpuId, sd: SdId) -> bool {
        let misfit = self.rq[cpu].misfit_task_load > 0;
        match self.kernel.balance.misfit_status {
            MisfitStatus::AnyMisfit => misfit,
            MisfitStatus::WhereHelpful => {
                let smaller = self.capacity_orig_of(cpu) < self.root_domain(cpu).max_cpu_capacity;
                misfit && (smaller || self.check_cpu_capacity(cpu, sd))
            }
        }
    }

    /// Under SD_ASYM_PACKING: whether a better placed CPU is idle.
    fn better_placed_cpu_idles(&mut self, cpu: CpuId) -> bool {
        let Some(sd) = self.domains.sd_asym_packing[cpu] else { return false };
        let mut from = 0;
        while let Some(i) = self.domains.sched_domain_span(sd).next_from(from) {
            from = i.index() + 1;
            if !self.nohz.idle_cpus_mask.contains(i) {
                continue;
            }
            let better = match self.kernel.balance.asym_packing {
                // Only the first of them is considered.
                PackingOrder::LowestCpu => return i < cpu,
                PackingOrder::Priority | PackingOrder::PriorityAndSiblings => {
                    i != cpu && self.sched_asym_prefer(i, cpu)
                }
                PackingOrder::IdleCores => self.sched_asym(sd, i, cpu),
            };
            if better {
                return true;
            }
        }
        false
    }
}
