//! Interrupts: the local timer, with its tick and its sleepers' timers, and the reschedule vector.

use crate::cpu::Run;
use crate::engine::Sim;
use crate::task::Pending;
use crate::timers::{Fires, Timers};
use machine::hardware::Hardware;
use os::irq::{After, RCU_VEC, SoftIrq, SoftWork, trace_softirq_raise, traced_softirq};
use os::timer_wheel::schedule_timeout;
use os::{Syscall, paths};
use sched::access::Path;
use sched::arch::Arch;
use sched::isolation::FullTick;
use sched::sched::WakeFlags;
use sched::scheduler::Scheduler;
use sched::trace::{Event, Interrupt, Ipi, trace_interrupt};
use units::{CpuId, Ps};

/// A tick's cache misses are spread over its functions in this many equal parts: one when it reads the clock, two in
/// update_process_times() and one in the softirq at its end.
const TICK_PARTS: u64 = 4;

/// hrtimer.c: hrtimer_interrupt(): how often it looks for timers that have come due meanwhile, and for how long it puts
/// them off at most.
const RETRIES: u32 = 3;
const LONGEST_HANG: Ps = Ps::from_ns(100_000_000);

impl<const COSTS: bool, S: Scheduler<Arch = Hardware<COSTS>>> Sim<COSTS, S> {
    /// Takes every interrupt that is due at `cpu`'s clock. The path that executes there has begun.
    #[inline(never)]
    pub(crate) fn interrupts(&mut self, cpu: CpuId) {
        let mut softirq = false;
        let began = self.sched.arch().now(cpu);
        self.sched.irq_enter(cpu);
        let mut last = paths::SMP_APIC_TIMER_INTERRUPT;
        let mut rounds = 0;
        loop {
            let now = self.sched.arch().now(cpu);
            let this = &mut self.cpus[cpu];
            if this.ipi_at <= now {
                this.ipi_at = Ps::NEVER;
                last = paths::SMP_RESCHEDULE_INTERRUPT;
                softirq |= self.ipi_interrupt(cpu);
            } else if this.timers.device() <= now {
                last = paths::COMMON_INTERRUPT;
                self.device_interrupt(cpu);
            } else if this.tick_at <= now || this.timers.next() <= now {
                last = paths::SMP_APIC_TIMER_INTERRUPT;
                softirq |= self.timer_interrupt(cpu, now);
                rounds += 1;
                if rounds >= RETRIES {
                    self.put_off_tick(cpu, began);
                }
            } else {
                break;
            }
        }
        if self.os.irq.local_softirq_pending(cpu) || (softirq && self.ksoftirqd_running(cpu)) {
            self.invoke_softirq(cpu, softirq, last);
        } else if softirq {
            // The softirq runs at the end of the interrupt that raised it.
            self.sched.arch_mut().profile_enter(cpu, last);
            self.sched.softirq_enter(cpu);
            self.within(cpu, paths::DO_SOFTIRQ, |sim| sim.rebalance_softirq(cpu));
            self.sched.arch_mut().leave(cpu);
        }
        self.sched.irq_exit(cpu);
        if self.sched.arch().accounts_irq_time() {
            let spent = self.sched.arch().now(cpu) - began;
            self.sched.arch_mut().account_irq_time(cpu, spent);
        }
        if self.sched.current(cpu).is_none() {
            self.tick_nohz_start_idle(cpu);
        } else if self.sched.tick_nohz_full_enabled() {
            self.tick_irq_exit(cpu);
        }
    }

    /// arch/x86: smp_reschedule_interrupt(), smp_call_function_single_interrupt() and smp_irq_work_interrupt(). Returns
    /// whether the balancing softirq is to run.
    ///
    /// Differs: work that is pending by several vectors is done, and charged, once, by the handler of the least urgent
    /// one.
    #[inline(always)]
    fn ipi_interrupt(&mut self, cpu: CpuId) -> bool {
        let mut pending = std::mem::take(&mut self.cpus[cpu].ipis);
        let mut by = Ipi::Reschedule;
        for ipi in Ipi::ALL {
            if pending & ipi.bit() == 0 {
                continue;
            }
            *self.os.irq.stat(cpu).ipi(ipi) += 1;
            by = ipi;
            pending &= !ipi.bit();
            if pending != 0 {
                trace_interrupt(&mut self.sched, cpu, Interrupt::Hardirq, || Event::IpiEntry(ipi));
                trace_interrupt(&mut self.sched, cpu, Interrupt::Hardirq, || Event::IpiExit(ipi));
            }
        }
        trace_interrupt(&mut self.sched, cpu, Interrupt::Hardirq, || Event::IpiEntry(by));
        let softirq = self.within(cpu, paths::SMP_RESCHEDULE_INTERRUPT, |sim| {
            let softirq = sim.sched.scheduler_ipi(cpu);
            sim.os.flush_smp_call_function_queue(&mut sim.sched, cpu, Interrupt::Hardirq);
            while let Some(policy) = sim.sched.dbs_work(cpu) {
                sim.os.queue_dbs_work(&mut sim.sched, cpu, policy);
            }
            softirq
        });
        trace_interrupt(&mut self.sched, cpu, Interrupt::Hardirq, || Event::IpiExit(by));
        softirq
    }

    /// hrtimer.c: the end of hrtimer_interrupt() if each of its rounds took until the next timer was due. The next
    /// timer is put off by as long as all rounds have taken since `began`, at most 100 ms, so that other work proceeds
    /// as well.
    ///
    /// Differs: only the tick is put off, not the timer that it shares with others.
    #[cold]
    fn put_off_tick(&mut self, cpu: CpuId, began: Ps) {
        let now = self.sched.arch().now(cpu);
        let tick_at = &mut self.cpus[cpu].tick_at;
        if *tick_at <= now {
            *tick_at = now + (now - began).min(LONGEST_HANG);
        }
    }

    /// tick-sched.c: tick_nohz_irq_exit() on a CPU of nohz_full= that does not idle: its tick stops or goes on.
    #[cold]
    fn tick_irq_exit(&mut self, cpu: CpuId) {
        if !self.sched.tick_nohz_full_cpu(cpu) {
            return;
        }
        let update = self.sched.tick_nohz_full_update_tick(cpu);
        self.tick_updated(cpu, update);
    }

    pub(crate) fn tick_updated(&mut self, cpu: CpuId, update: FullTick) {
        match update {
            FullTick::Unchanged => {}
            FullTick::Restarted => self.cpus[cpu].tick_at = self.next_tick(cpu, self.sched.arch().now(cpu)),
            FullTick::Stopped(until) => self.cpus[cpu].tick_at = until.map_or(Ps::NEVER, Ps::from),
        }
    }

    /// arch/x86: smp_apic_timer_interrupt(). Returns whether the balancing softirq is to run.
    fn timer_interrupt(&mut self, cpu: CpuId, now: Ps) -> bool {
        let vector = self.os.irq.rules.local_timer_vector;
        self.os.irq.stat(cpu).apic_timer_irqs += 1;
        // Traced before its cost is charged, so that the whole cost lies between entry and exit.
        trace_interrupt(&mut self.sched, cpu, Interrupt::Hardirq, || Event::LocalTimerEntry { vector });
        self.within(cpu, paths::SMP_APIC_TIMER_INTERRUPT, |sim| {
            let ticks = sim.cpus[cpu].tick_at <= now;
            let misses = if ticks { sim.sched.arch_mut().tick_misses(cpu) } else { Ps::ZERO };
            let softirq = sim.within(cpu, paths::HRTIMER_INTERRUPT, |sim| {
                sim.ktime_get_update_offsets_now(cpu, Ps(misses.0 / TICK_PARTS));
                loop {
                    if sim.cpus[cpu].timers.sched_first(now) {
                        sim.sched.hrtimer_run(cpu);
                        sim.reprogram(cpu);
                    } else if let Some(timer) = sim.cpus[cpu].timers.expire(now) {
                        sim.within(cpu, paths::HRTIMER_WAKEUP, |sim| sim.timer_expired(cpu, timer));
                    } else if sim.cpus[cpu].timers.watchdog() <= now {
                        sim.watchdog_timer_fn(cpu, now);
                    } else {
                        break;
                    }
                }
                if sim.sched.hrtimer_rearm(cpu) {
                    sim.reprogram(cpu);
                }
                sim.run_local_timers(cpu, now, ticks);
                let softirq = ticks && sim.tick(cpu, now, Ps(misses.0 * 2 / TICK_PARTS));
                // tick_program_event()
                sim.ktime_get(cpu);
                softirq
            });
            let rcu = ticks && sim.sched.current(cpu).is_some();
            trace_interrupt(&mut sim.sched, cpu, Interrupt::Hardirq, || Event::LocalTimerExit { vector });
            if rcu {
                // Differs: runs at once, before lower vectors that are pending.
                sim.within(cpu, paths::DO_SOFTIRQ, |sim| {
                    sim.sched.arch_mut().stall(Ps(misses.0 / TICK_PARTS));
                    let tick = sim.ticks.of(now.0);
                    sim.os.irq.softirq(cpu, RCU_VEC);
                    traced_softirq(&mut sim.sched, cpu, RCU_VEC, |sched| {
                        sim.os.rcu_process_callbacks(sched, cpu, tick)
                    });
                });
            }
            softirq
        })
    }

    /// The tick's timer has expired. Returns whether the balancing softirq is to run.
    fn tick(&mut self, cpu: CpuId, now: Ps, misses: Ps) -> bool {
        self.cpus[cpu].tick_at = self.next_tick(cpu, now);
        self.cpus[cpu].ticks += 1;
        self.cpus[cpu].got_idle_tick |= self.sched.current(cpu).is_none();
        self.within(cpu, paths::TICK_SCHED_TIMER, |sim| {
            let softirq = sim.tick_sched_timer(cpu, now, misses);
            if sim.sched.current(cpu).is_none() {
                let iowait = sim.counts_iowait(cpu);
                sim.sched.arch_mut().account_idle_time(cpu, iowait);
            }
            let nice = matches!(sim.cpus[cpu].run, Run::User { .. }) && sim.sched.current_is_nice(cpu);
            if let Some(policy) = sim.sched.arch_mut().frequency_tick(cpu, nice) {
                sim.os.queue_dbs_work(&mut sim.sched, cpu, policy);
            }
            softirq
        })
    }

    /// hrtimer.c: hrtimer_wakeup(), if the sleep for which it was armed still lasts; or a delayed acknowledgement.
    fn timer_expired(&mut self, cpu: CpuId, timer: crate::timers::Timer) {
        let Some(Some(context)) = self.tasks.get(timer.task.index()) else { return };
        if context.sleep == timer.sleep
            && matches!(
                context.pending,
                Pending::Syscall(Syscall::Sleep { .. } | Syscall::Net(_) | Syscall::Sugov(_) | Syscall::Worker(_))
            )
        {
            self.sched.wake(cpu, timer.task, WakeFlags::NONE);
        }
    }

    /// timer.c: run_local_timers(): leaves timeouts of the wheel that are due to their softirq. Deferrable ones run
    /// only in a tick, or when the softirq runs for other timeouts.
    ///
    /// Differs: if the tick is stopped, the kernel fires its timeouts by the tick's timer, which also does a tick's
    /// other work, and governors are told of a tick.
    fn run_local_timers(&mut self, cpu: CpuId, now: Ps, ticks: bool) {
        let runs = ticks || self.cpus[cpu].timers.wheel() <= now;
        let expire = |timers: &mut Timers| {
            timers.expire_wheel(now).or_else(|| if runs { timers.expire_deferrable(now) } else { None })
        };
        while let Some(timer) = expire(&mut self.cpus[cpu].timers) {
            let after = match timer.fires {
                Fires::Sleep { task, sleep } => {
                    let context = self.tasks.get(task.index()).and_then(Option::as_ref);
                    if context.is_none_or(|context| context.sleep != sleep) {
                        continue;
                    }
                    After::Wake(task)
                }
                Fires::Work { work, timer } => After::Queue { work, timer },
            };
            let first = !self.os.irq.is_pending(cpu, SoftIrq::Timer);
            self.os.irq.raise_softirq(cpu, SoftWork { vector: SoftIrq::Timer, rounds: 1, after });
            if first {
                trace_softirq_raise(&mut self.sched, cpu, Interrupt::Hardirq, SoftIrq::Timer.vec());
            }
        }
    }

    /// Ticks per second.
    pub(crate) fn hz(&self) -> u64 {
        1_000_000_000_000 / self.os.tick_period().0
    }

    /// timer.c: schedule_timeout(): when a timeout of `jiffies` fires if it is armed on `cpu` now.
    pub(crate) fn timeout(&self, cpu: CpuId, jiffies: u64) -> Ps {
        let now = self.ticks.of(self.sched.arch().now(cpu).0);
        let at = schedule_timeout(self.os.irq.rules.wheel, now, jiffies, self.hz() as u32);
        Ps(at * self.os.tick_period().0)
    }

    /// Runs `body` as the kernel function `path` on `cpu`.
    pub(crate) fn within<T>(&mut self, cpu: CpuId, path: Path, body: impl FnOnce(&mut Self) -> T) -> T {
        self.sched.arch_mut().enter(cpu, path);
        let value = body(self);
        self.sched.arch_mut().leave(cpu);
        value
    }
}
