//! kernel/sched/idle.c: an idle CPU's way into an idle state and out of it.

use crate::cpu::Run;
use crate::engine::Sim;
use machine::hardware::Hardware;
use machine::idle::{Choice, FAR_NS, Governor, Outlook, TeoRule, TickStop, Woken};
use os::paths;
use sched::access::Path;
use sched::arch::Arch;
use sched::scheduler::Scheduler;
use sched::trace::Event;
use units::{CpuId, Ps, unlikely};

/// teo.c: UTIL_THRESHOLD_SHIFT: what part of its capacity makes a CPU a busy one.
const UTIL_THRESHOLD_SHIFT: u32 = 6;

impl<const COSTS: bool, S: Scheduler<Arch = Hardware<COSTS>>> Sim<COSTS, S> {
    fn charge(&mut self, cpu: CpuId, path: Path) {
        self.sched.arch_mut().path(cpu, path);
    }

    /// idle.c: do_idle(): the CPU has switched to the idle task.
    #[inline(always)]
    pub(crate) fn begin_idle(&mut self, cpu: CpuId) {
        if COSTS || unlikely(self.vmstat.is_some()) {
            self.os.quiet_vmstat(&mut self.sched, cpu);
        }
        self.sched.idle_loop_enter(cpu);
        self.tick_nohz_start_idle(cpu);
        self.cpus[cpu].got_idle_tick = false;
        self.enter_idle(cpu, false);
    }

    /// tick-sched.c: tick_nohz_start_idle(): on entry to the idle loop and at the end of each interrupt in it.
    #[inline]
    pub(crate) fn tick_nohz_start_idle(&mut self, cpu: CpuId) {
        self.cpus[cpu].idle_entrytime = self.sched.arch().now(cpu);
    }

    /// Begins another round of the idle loop.
    #[inline(never)]
    fn idle_on(&mut self, cpu: CpuId) {
        // A store about something already seen has ended the state, and has nothing more to tell.
        if self.cpus[cpu].monitor_at <= self.sched.arch().now(cpu) {
            self.cpus[cpu].monitor_at = Ps::NEVER;
        }
        let got_tick = std::mem::take(&mut self.cpus[cpu].got_idle_tick);
        self.enter_idle(cpu, got_tick);
    }

    /// idle.c: one round of the idle loop: announces polling, chooses a state, and stops the tick before or after that.
    /// `got_tick`: the tick came in the last round, and the governor has not been told.
    #[inline(always)]
    pub(crate) fn enter_idle(&mut self, cpu: CpuId, got_tick: bool) {
        self.charge(cpu, paths::CPU_IDLE_LOOP);
        self.sched.set_polling(cpu, self.sched.arch().prices.mwait);
        self.reprogram(cpu);
        let near = self.wheel_is_near(cpu);
        if self.sched.arch().idle_rules().tick == TickStop::Always {
            self.tick_nohz_idle_stop_tick(cpu, near);
        }
        let choice = if self.sched.arch().idle_is_governed() {
            let outlook = self.outlook(cpu, !near);
            let choice = self.sched.arch_mut().choose_idle(cpu, &outlook);
            self.charge_choice(cpu, choice);
            choice
        } else {
            self.sched.arch_mut().take_only_idle(cpu, got_tick)
        };
        let asked = self.sched.arch().idle_rules().tick == TickStop::Governor;
        if asked && (choice.stop_tick || self.cpus[cpu].tick_at == Ps::NEVER) {
            self.tick_nohz_idle_stop_tick(cpu, near);
        }
        let prices = &self.sched.arch().prices;
        if !prices.mwait && prices.idle_states[choice.state].polling {
            self.sched.set_polling(cpu, true);
        }
        self.sched.write_idle_state(cpu);
        self.sched.arch_mut().begin_idle(cpu);
        self.charge(cpu, paths::CPUIDLE_ENTER);
        let now = self.sched.arch().now(cpu);
        let this = &mut self.cpus[cpu];
        this.run = Run::EnteringIdle;
        this.at = now;
    }

    /// tick-sched.c: tick_nohz_get_sleep_length() and whatever else a governor asks for. Times to timers count from
    /// when the idle loop was entered, or its last interrupt ended. After a poll that reached its limit that is some
    /// time ago.
    #[inline]
    pub(crate) fn outlook(&self, cpu: CpuId, may_stop: bool) -> Outlook {
        let keeps_time = self.keeps_time(cpu);
        let this = &self.cpus[cpu];
        let timer = this.timers.next_timer();
        let until = |at: Ps| at.saturating_sub(this.idle_entrytime).ns().0.min(FAR_NS);
        let sleep_length_ns = match self.sched.arch().idle_rules().tick {
            // The kernel writes it when the tick stops. That has not happened here since ticks began to come one by
            // one, so it is one period.
            TickStop::Always if keeps_time => self.os.tick_period().ns().0,
            _ if may_stop && !keeps_time => until(timer),
            _ => until(timer.min(this.tick_at)),
        };
        Outlook {
            now_ns: self.sched.arch().now(cpu).ns().0,
            sleep_length_ns,
            delta_tick_ns: until(timer.min(this.tick_at)),
            tick_stopped: this.tick_at == Ps::NEVER,
            nr_iowaiters: self.sched.nr_iowait_cpu(cpu),
            utilized: self.teo_cpu_is_utilized(cpu),
        }
    }

    /// teo.c: teo_cpu_is_utilized().
    fn teo_cpu_is_utilized(&self, cpu: CpuId) -> bool {
        let rules = self.sched.arch().idle_rules();
        let asks = rules.governor == Governor::Teo && matches!(rules.teo, TeoRule::RecentUtilized | TeoRule::Utilized);
        unlikely(asks) && {
            let (util, max_capacity) = self.sched.sched_cpu_util(cpu);
            util > max_capacity >> UTIL_THRESHOLD_SHIFT
        }
    }

    /// tick-sched.c: the part of can_stop_idle_tick() that makes one CPU keep the time for CPUs that run without ticks.
    #[inline]
    fn keeps_time(&self, cpu: CpuId) -> bool {
        unlikely(self.sched.tick_nohz_full_enabled()) && cpu == CpuId(0)
    }

    /// tick-sched.c: the part of tick_nohz_next_event() that keeps the tick running for a timeout of the wheel within
    /// the next period.
    #[inline]
    fn wheel_is_near(&self, cpu: CpuId) -> bool {
        let this = &self.cpus[cpu];
        let wheel = this.timers.wheel();
        wheel != Ps::NEVER && this.tick_at != Ps::NEVER && wheel <= this.tick_at
    }

    /// Charges the time of the governor's choice.
    #[inline(always)]
    fn charge_choice(&mut self, cpu: CpuId, choice: Choice) {
        let rules = self.sched.arch().idle_rules();
        let by_governor = rules.tick == TickStop::Governor;
        let select = match rules.governor {
            Governor::Menu => paths::MENU_SELECT,
            Governor::Teo => paths::TEO_SELECT,
            Governor::Ladder => paths::LADDER_SELECT_STATE,
            Governor::Haltpoll => paths::HALTPOLL_SELECT,
        };
        if by_governor && choice.looked_at_timers {
            self.charge(cpu, paths::TICK_NOHZ_GET_SLEEP_LENGTH);
        }
        self.charge(cpu, select);
    }

    /// tick-sched.c: tick_nohz_idle_stop_tick(): high-resolution timers do not need the tick; a timeout of the wheel
    /// that is `near` does.
    #[doc(alias = "__tick_nohz_idle_enter")]
    #[inline(always)]
    fn tick_nohz_idle_stop_tick(&mut self, cpu: CpuId, near: bool) {
        if self.keeps_time(cpu) {
            return;
        }
        if near || self.cpus[cpu].tick_at == Ps::NEVER {
            if unlikely(self.sched.tick_nohz_full_enabled()) {
                self.start_without_tick(cpu);
            }
            return self.sched.tick_nohz_idle_stop(cpu, false);
        }
        self.stop_running_tick(cpu);
    }

    /// The CPU idles without a tick; on CPUs of nohz_full= it may have run without one before.
    ///
    /// Differs: there, cputime.c: vtime_account_idle() knows the time by itself, and each entry into the loop starts a
    /// new count.
    fn start_without_tick(&mut self, cpu: CpuId) {
        let this = &self.cpus[cpu];
        if this.tick_at == Ps::NEVER {
            let since = this.idle_entrytime;
            self.sched.arch_mut().kcpustat_dyntick_start(cpu, since);
        }
    }

    #[inline(never)]
    fn stop_running_tick(&mut self, cpu: CpuId) {
        self.charge(cpu, paths::TICK_NOHZ_IDLE_ENTER);
        self.os.quiet_vmstat_with_tick(&mut self.sched, cpu);
        self.cpus[cpu].tick_at = Ps::NEVER;
        self.start_without_tick(cpu);
        self.drop_do_timer(cpu);
        self.sched.tick_nohz_idle_stop(cpu, true);
    }

    /// The path into idleness has ended: the CPU sleeps, unless something came meanwhile. In that case returns when it
    /// goes on, and how: it leaves the state at once ([`Run::LeavingIdle`]), or has not entered it.
    #[inline(always)]
    pub(crate) fn fall_asleep(&mut self, cpu: CpuId, now: Ps) -> Result<(), (Ps, Run)> {
        // Creating groups from outside the simulation took time on this CPU.
        let now = now.max(self.sched.arch().now(cpu));
        let this = &self.cpus[cpu];
        let (interrupt, monitor) = (this.interrupt_at() <= now, this.monitor_at <= now);
        if unlikely(monitor || self.must_reschedule(cpu, now)) {
            // idle.c: call_cpuidle() looks for the last time before the state is entered. After that the state itself
            // notices the store.
            if monitor && this.monitor_at > self.sched.arch().idle_began(cpu) {
                self.bounce_off_idle(cpu, now);
                return Err((now, Run::LeavingIdle));
            }
            self.sched.arch_mut().reject_idle(cpu);
            self.stay_active(cpu, now);
            return Err((now, Run::Kernel));
        }
        if unlikely(interrupt) {
            // Interrupts are off on the way: a waiting one ends the state as soon as it is entered.
            self.bounce_off_idle(cpu, now);
            return Err((now, Run::LeavingIdle));
        }
        let (state, poll_until) = self.sched.arch_mut().enter_idle(cpu, now);
        self.trace_idle(cpu, now, Some(state as u8));
        let latency = self.sched.arch().prices.idle_state_of(cpu, state).exit_latency_us;
        self.sched.set_idle_state(cpu, Some(latency));
        // A CPU that polls executes, so it keeps its share of the core.
        if self.sched.arch().polls_in(cpu, state) {
            self.stay_active(cpu, now);
        } else {
            self.set_active(cpu, now, false);
        }
        let this = &mut self.cpus[cpu];
        this.run = Run::Idle;
        this.at = poll_until;
        Ok(())
    }

    #[cold]
    #[inline(never)]
    fn bounce_off_idle(&mut self, cpu: CpuId, now: Ps) {
        let state = self.sched.arch_mut().bounce_off_idle(cpu, now);
        self.stay_active(cpu, now);
        self.trace_idle(cpu, now, Some(state as u8));
        self.trace_idle(cpu, now, None);
    }

    /// Something arrives at a CPU that is in an idle state.
    #[inline(always)]
    pub(crate) fn wake_cpu(&mut self, cpu: CpuId, now: Ps) {
        // Starting a task from outside the simulation may have taken time here.
        let mut now = now.max(self.sched.arch().now(cpu));
        if self.polls(cpu) {
            match self.interrupt_polling(cpu, now) {
                Some(left) => now = left,
                None => return,
            }
        }
        let iowait = self.counts_iowait(cpu);
        let first = self.sched.arch_mut().leave_idle(cpu, now, iowait);
        self.sched.set_idle_state(cpu, None);
        self.set_active(cpu, now, true);
        self.trace_idle(cpu, first, None);
        let this = &mut self.cpus[cpu];
        this.run = Run::LeavingIdle;
        this.at = first;
    }

    /// The interrupt that ended an idle state is over: the governor is told.
    #[inline(always)]
    pub(crate) fn reflect_on_idle(&mut self, cpu: CpuId) {
        if self.sched.arch().idle_is_governed() {
            let now_ns = self.sched.arch().now(cpu).ns().0;
            let this = &mut self.cpus[cpu];
            let woken = Woken {
                now_ns,
                got_tick: std::mem::take(&mut this.got_idle_tick),
                poll_time_limit: std::mem::take(&mut this.poll_time_limit),
            };
            self.sched.arch_mut().reflect_on_idle(cpu, woken);
        }
    }

    /// Whether idle time that ends now counts as waiting for a device. Only frequency governors ask for that.
    #[inline]
    pub(crate) fn counts_iowait(&self, cpu: CpuId) -> bool {
        self.sched.arch().frequency().is_some() && self.sched.nr_iowait_cpu(cpu) > 0
    }

    fn polls(&self, cpu: CpuId) -> bool {
        let hardware = self.sched.arch();
        hardware.idle_state(cpu).is_some_and(|(state, _)| hardware.polls_in(cpu, state))
    }

    /// poll_state.c: poll_idle(): something comes to a CPU that polls. Interrupts are taken in the loop, and end it
    /// only if they ask for something. Returns when the loop ends; `None` if it goes on.
    /// Differs: how long a round takes is as when the CPU began to poll.
    fn interrupt_polling(&mut self, cpu: CpuId, now: Ps) -> Option<Ps> {
        let mut after = now;
        if self.cpus[cpu].interrupt_at() <= now {
            self.sched.arch_mut().begin(cpu, now);
            let iowait = self.counts_iowait(cpu);
            self.sched.arch_mut().interrupts_polling(cpu, iowait);
            self.interrupts(cpu);
            self.tick_nohz_irq_exit(cpu);
            after = self.sched.arch().now(cpu);
            let end = self.cpus[cpu].at;
            self.cpus[cpu].at = self.sched.arch_mut().interrupted_polling(cpu, after - now, end);
        }
        let this = &self.cpus[cpu];
        if this.monitor_at <= after || self.must_reschedule(cpu, after) {
            return Some(after);
        }
        if this.at <= after {
            self.cpus[cpu].poll_time_limit = true;
            return Some(after);
        }
        None
    }

    /// tick-sched.c: tick_nohz_irq_exit(): until v4.16 the end of an interrupt stops an idle CPU's tick, if it ticks still
    /// or again. Here only for a CPU that polls: others soon stop it in the next round of the idle loop.
    fn tick_nohz_irq_exit(&mut self, cpu: CpuId) {
        let stops = self.sched.arch().idle_rules().tick == TickStop::Always && self.cpus[cpu].tick_at != Ps::NEVER;
        if stops && !self.sched.need_resched(cpu) {
            self.reprogram(cpu);
            let near = self.wheel_is_near(cpu);
            self.tick_nohz_idle_stop_tick(cpu, near);
        }
    }

    /// idle.c: the tail of the idle loop.
    #[inline(always)]
    pub(crate) fn leave_or_enter_idle(&mut self, cpu: CpuId) {
        let now = self.sched.arch().now(cpu);
        if unlikely(!self.must_reschedule(cpu, now)) {
            return self.idle_on(cpu);
        }
        self.cpus[cpu].monitor_at = Ps::NEVER;
        if self.cpus[cpu].tick_at == Ps::NEVER {
            let iowait = self.counts_iowait(cpu);
            self.sched.arch_mut().kcpustat_dyntick_stop(cpu, iowait);
            self.charge(cpu, paths::TICK_NOHZ_IDLE_EXIT);
            self.catch_up(cpu);
            if self.sched.tick_nohz_idle_restart(cpu) {
                self.cpus[cpu].tick_at = self.next_tick(cpu, now);
            }
        }
        self.sched.set_polling(cpu, false);
        let rebalance = self.sched.idle_loop_exit(cpu);
        self.flush_idle_calls(cpu, rebalance);
        self.switch(cpu, false);
    }

    /// When `cpu`'s next tick comes. Ticks of all CPUs fall on the same multiples of the period, up to the jitter of
    /// the machine's timers.
    pub(crate) fn next_tick(&self, cpu: CpuId, now: Ps) -> Ps {
        let tick = self.ticks.of(now.0) + 1;
        let at = Ps(tick * self.os.tick_period().0);
        let jitter = self.sched.arch().prices.tick_jitter;
        if COSTS && unlikely(jitter != Ps::ZERO) {
            return at + Ps(self.os.chance("tick", tick << 16 | u64::from(cpu.0)).below(jitter.0));
        }
        at
    }

    /// `cpu` begins or stops taking its share of its core.
    fn set_active(&mut self, cpu: CpuId, now: Ps, active: bool) {
        self.share_core(cpu, now, |hardware| hardware.set_active(cpu, active));
    }

    /// `cpu` does not halt. The first time since boot it begins to take its share so.
    #[inline]
    fn stay_active(&mut self, cpu: CpuId, now: Ps) {
        if unlikely(!self.sched.arch().is_active(cpu)) {
            self.set_active(cpu, now, true);
        }
    }

    fn trace_idle(&mut self, cpu: CpuId, at: Ps, state: Option<u8>) {
        // The clock moves whether or not there is a listener: tracing changes nothing.
        self.sched.arch_mut().begin(cpu, at);
        if unlikely(self.sched.arch().tracing()) {
            self.sched.arch_mut().trace(cpu, &Event::CpuIdle { state });
        }
    }
}
