//! kernel/time/tick-sched.c: which CPU keeps the time, and which of its cache lines the ticks of all CPUs read.
//!
//! One CPU is in charge of jiffies and of the timekeeper, and writes their lines in each of its ticks. Every other
//! CPU's tick then finds that it has lost its copies of them. The clock itself is exact everywhere, at no cost.

use crate::cpu::Run;
use crate::engine::Sim;
use machine::hardware::Hardware;
use os::irq::{RCU_VEC, trace_softirq_raise};
use os::paths;
use sched::arch::Arch;
use sched::layout::GlobalLine;
use sched::scheduler::Scheduler;
use sched::trace::Interrupt;
use units::{CpuId, Ps};

/// `tick_do_timer_cpu` and `last_jiffies_update`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Timekeeping {
    /// The CPU in charge; `None` (`TICK_DO_TIMER_NONE`) while it sleeps without ticks.
    pub do_timer: Option<CpuId>,
    /// The last tick for which jiffies were counted, in ticks since boot.
    last_update: u64,
}

impl<const COSTS: bool, S: Scheduler<Arch = Hardware<COSTS>>> Sim<COSTS, S> {
    fn read_global(&mut self, cpu: CpuId, line: GlobalLine) {
        self.sched.arch_mut().read(cpu, line.line());
    }

    /// timekeeping.c: ktime_get(), for the cache lines that it reads.
    ///
    /// Differs: every CPU knows the time exactly; only the cache lines that reading it touches are modelled.
    pub(crate) fn ktime_get(&mut self, cpu: CpuId) {
        self.within(cpu, paths::KTIME_GET, |sim| sim.read_global(cpu, GlobalLine::Timekeeper));
    }

    /// timekeeping.c: ktime_get_update_offsets_now(), with which hrtimer_interrupt() begins. `misses`: how long the
    /// code and data up to here take to be fetched again.
    pub(crate) fn ktime_get_update_offsets_now(&mut self, cpu: CpuId, misses: Ps) {
        self.within(cpu, paths::KTIME_GET_UPDATE_OFFSETS_NOW, |sim| {
            sim.sched.arch_mut().stall(misses);
            sim.read_global(cpu, GlobalLine::Timekeeper);
            sim.read_global(cpu, GlobalLine::TimekeeperOffsets);
        });
    }

    /// tick-sched.c: tick_sched_timer(). `misses`: how long its code and data take to be fetched again. Returns whether
    /// the balancing softirq is to run.
    ///
    /// Differs: POSIX CPU timers are absent.
    pub(crate) fn tick_sched_timer(&mut self, cpu: CpuId, now: Ps, misses: Ps) -> bool {
        self.ktime_get(cpu);
        self.tick_sched_do_timer(cpu, now);
        self.within(cpu, paths::UPDATE_PROCESS_TIMES, |sim| {
            sim.within(cpu, paths::ACCOUNT_PROCESS_TICK, |sim| {
                sim.sched.arch_mut().stall(misses);
                let user_tick = matches!(sim.cpus[cpu].run, Run::User { .. });
                sim.sched.account_process_tick(cpu, user_tick);
            });
            if sim.sched.current(cpu).is_some() {
                let tick = sim.ticks.of(now.0);
                sim.os.rcu_check_callbacks(&mut sim.sched, cpu, tick);
                trace_softirq_raise(&mut sim.sched, cpu, Interrupt::Hardirq, RCU_VEC);
            }
            sim.sched.scheduler_tick(cpu)
        })
    }

    /// tick-sched.c: tick_sched_do_timer(). A CPU takes charge if no CPU is in charge.
    fn tick_sched_do_timer(&mut self, cpu: CpuId, now: Ps) {
        if self.timekeeping.do_timer.is_none() && !self.sched.tick_nohz_full_cpu(cpu) {
            self.timekeeping.do_timer = Some(cpu);
        }
        if self.timekeeping.do_timer == Some(cpu) {
            self.tick_do_update_jiffies64(cpu, now);
        }
    }

    /// tick-sched.c: tick_do_update_jiffies64(): do_timer() and update_wall_time(), if a period has passed that no CPU
    /// has counted.
    ///
    /// Differs: the sequence count is not a field of its own; missed ticks are counted without a loop.
    fn tick_do_update_jiffies64(&mut self, cpu: CpuId, now: Ps) {
        self.read_global(cpu, GlobalLine::JiffiesLock);
        let tick = self.ticks.of(now.0);
        if tick <= self.timekeeping.last_update {
            return;
        }
        self.timekeeping.last_update = tick;
        let arch = self.sched.arch_mut();
        arch.lock(cpu, GlobalLine::JiffiesLock.line());
        arch.write(cpu, GlobalLine::Jiffies.line());
        arch.unlock(cpu, GlobalLine::JiffiesLock.line());
        self.within(cpu, paths::UPDATE_WALL_TIME, |sim| {
            for line in [GlobalLine::Timekeeper, GlobalLine::TimekeeperOffsets] {
                sim.sched.arch_mut().write(cpu, line.line());
            }
        });
    }

    /// tick-sched.c: tick_nohz_stop_sched_tick(), the part about the timekeeper: a CPU that sleeps without ticks gives
    /// up the charge.
    pub(crate) fn drop_do_timer(&mut self, cpu: CpuId) {
        if self.timekeeping.do_timer == Some(cpu) {
            self.timekeeping.do_timer = None;
        }
    }

    /// tick-common.c: tick_handover_do_timer(): hands on the charge of a CPU that goes offline.
    ///
    /// Differs: if the new CPU sleeps without ticks, the CPU that ticks next takes the charge.
    pub(crate) fn hand_over_do_timer(&mut self, cpu: CpuId, to: CpuId) {
        if self.timekeeping.do_timer == Some(cpu) {
            self.timekeeping.do_timer = Some(to).filter(|&to| self.cpus[to].tick_at != Ps::NEVER);
        }
    }

    /// tick-sched.c: tick_nohz_restart_sched_tick(): catches up with the time that has passed without ticks, if no
    /// other CPU has counted it.
    pub(crate) fn catch_up(&mut self, cpu: CpuId) {
        if !COSTS {
            return;
        }
        self.ktime_get(cpu);
        let now = self.sched.arch().now(cpu);
        self.tick_do_update_jiffies64(cpu, now);
    }
}
