//! kernel/sched/idle.c: an idle CPU's way into an idle state and out of it.

use crate::cpu::Run;
use crate::engine::Sim;
use machine::hardware::Hardware;
use os::paths;
use sched::access::Path;
use sched::arch::Arch;
use sched::scheduler::Scheduler;
use sched::trace::Event;
use units::{CpuId, Ps};

impl<const COSTS: bool, S: Scheduler<Arch = Hardware<COSTS>>> Sim<COSTS, S> {
    fn charge(&mut self, cpu: CpuId, path: Path) {
        self.sched.arch_mut().enter(cpu, path);
        self.sched.arch_mut().leave(cpu);
    }

    /// idle.c: do_idle(): the idle task was switched to.
    pub(crate) fn begin_idle(&mut self, cpu: CpuId) {
        self.sched.idle_loop_enter(cpu);
        self.enter_idle(cpu);
    }

    /// idle.c: one round of the idle loop: announces polling, stops the tick if no timer is near, chooses a state.
    pub(crate) fn enter_idle(&mut self, cpu: CpuId) {
        self.charge(cpu, paths::CPU_IDLE_LOOP);
        self.sched.set_polling(cpu, self.sched.arch().prices.mwait);
        let now = self.sched.arch().now(cpu);
        self.reprogram(cpu);
        let timer = self.cpus[cpu].timers.next();
        // Somebody keeps the time for CPUs that run without ticks.
        let keeps_time = cpu == CpuId(0) && self.sched.tick_nohz_full_enabled();
        if self.cpus[cpu].tick_at != Ps::NEVER && timer > now + self.tick_period && !keeps_time {
            self.charge(cpu, paths::TICK_NOHZ_IDLE_ENTER);
            self.cpus[cpu].tick_at = Ps::NEVER;
            self.sched.tick_nohz_idle_stop(cpu);
        }
        self.charge(cpu, paths::MENU_SELECT);
        self.charge(cpu, paths::CPUIDLE_ENTER);
        let now = self.sched.arch().now(cpu);
        let this = &mut self.cpus[cpu];
        this.run = Run::EnteringIdle;
        this.at = now;
    }

    /// The path into idleness has ended: sleeps, unless something came meanwhile.
    pub(crate) fn fall_asleep(&mut self, cpu: CpuId, now: Ps) {
        // Groups that were made from outside took time here.
        let now = now.max(self.sched.arch().now(cpu));
        let this = &self.cpus[cpu];
        let interrupted = this.interrupt_at() <= now || this.monitor_at <= now;
        if interrupted || self.must_reschedule(cpu, now) {
            return self.idle_interrupted(cpu, now);
        }
        let next_timer = self.cpus[cpu].timers.next().min(self.cpus[cpu].tick_at);
        let state = self.sched.arch_mut().enter_idle(cpu, now, next_timer);
        self.trace_idle(cpu, now, Some(state as u8));
        let latency = self.sched.arch().prices.idle_states[state].exit_latency_us;
        self.sched.set_idle_state(cpu, Some(latency));
        // A CPU that polls executes, and takes its share of the core.
        let polls = self.sched.arch().prices.idle_states[state].target_residency_us == 0;
        if !polls {
            self.set_active(cpu, now, false);
        }
        let this = &mut self.cpus[cpu];
        this.run = Run::Idle;
        this.at = Ps::NEVER;
    }

    /// Something arrives at a sleeping CPU.
    pub(crate) fn wake_cpu(&mut self, cpu: CpuId, now: Ps) {
        // A task may have been started from here meanwhile, which took its time.
        let now = now.max(self.sched.arch().now(cpu));
        let first = self.sched.arch_mut().leave_idle(cpu, now);
        self.sched.set_idle_state(cpu, None);
        self.set_active(cpu, now, true);
        self.trace_idle(cpu, first, None);
        let this = &mut self.cpus[cpu];
        this.run = Run::LeavingIdle;
        this.at = first;
    }

    /// An idle CPU executes: takes its interrupts, then reschedules or goes back to sleep.
    pub(crate) fn idle_interrupted(&mut self, cpu: CpuId, now: Ps) {
        self.sched.arch_mut().begin(cpu, now);
        self.due_interrupts(cpu, now);
        self.leave_or_enter_idle(cpu);
    }

    /// idle.c: the tail of the idle loop.
    pub(crate) fn leave_or_enter_idle(&mut self, cpu: CpuId) {
        let now = self.sched.arch().now(cpu);
        if !self.must_reschedule(cpu, now) {
            return self.enter_idle(cpu);
        }
        self.cpus[cpu].monitor_at = Ps::NEVER;
        if self.cpus[cpu].tick_at == Ps::NEVER {
            self.charge(cpu, paths::TICK_NOHZ_IDLE_EXIT);
            if self.sched.tick_nohz_idle_restart(cpu) {
                self.cpus[cpu].tick_at = self.next_tick(now);
            }
        }
        self.sched.set_polling(cpu, false);
        if self.sched.idle_loop_exit(cpu) {
            self.within(cpu, paths::DO_SOFTIRQ, |sim| sim.sched.run_rebalance_domains(cpu));
        }
        self.switch(cpu, false);
    }

    /// Ticks of all CPUs fall on the same multiples of the period.
    pub(crate) fn next_tick(&self, now: Ps) -> Ps {
        Ps((self.ticks.of(now.0) + 1) * self.tick_period.0)
    }

    /// `cpu` takes its share of its core or gives it up; what its sibling is doing takes another time from now on.
    fn set_active(&mut self, cpu: CpuId, now: Ps, active: bool) {
        // The sibling's progress so far was at the old speed.
        let Some(sibling) = self.sibling_in_user_mode(cpu) else {
            self.sched.arch_mut().set_active(cpu, active);
            return;
        };
        let Run::User { since } = self.cpus[sibling].run else { unreachable!("it is in user mode") };
        self.account_user(sibling, since, now.max(since));
        self.sched.arch_mut().set_active(cpu, active);
        self.resume_user(sibling, now.max(since));
        self.requeue(sibling);
    }

    fn sibling_in_user_mode(&self, cpu: CpuId) -> Option<CpuId> {
        let sibling = self.sched.arch().sibling(cpu)?;
        matches!(self.cpus[sibling].run, Run::User { .. }).then_some(sibling)
    }

    fn trace_idle(&mut self, cpu: CpuId, at: Ps, state: Option<u8>) {
        // The clock moves whether somebody listens or not: a listener changes nothing.
        self.sched.arch_mut().begin(cpu, at);
        if self.sched.arch().tracing() {
            self.sched.arch_mut().trace(cpu, &Event::CpuIdle { state });
        }
    }
}
