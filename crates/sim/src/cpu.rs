//! One CPU, as the run loop sees it.

use crate::timers::Timers;
use machine::hardware::Notice;
use units::{Ps, unlikely};

/// What a CPU is in the middle of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Run {
    /// In an idle state, until an event arrives.
    Idle,
    /// On its way into an idle state: executes until `at`.
    EnteringIdle,
    /// Woken; it executes its first instruction at `at`.
    LeavingIdle,
    /// Executes a kernel path until `at`; then its task goes on.
    Kernel,
    /// Has executed a path whose requests for disputed lines are still to be answered, the next one at `at`.
    Unsettled,
    /// In user mode since `since`, until `at` if nothing interrupts it.
    User { since: Ps },
}

pub(crate) struct Cpu {
    pub run: Run,
    /// The end of what it is in the middle of. In an idle state NEVER, or until when it polls.
    pub at: Ps,
    /// The next tick; NEVER while it is stopped.
    pub tick_at: Ps,
    /// How many ticks there have been.
    pub ticks: u64,
    /// Pending notices, the earliest of each kind.
    pub ipi_at: Ps,
    pub monitor_at: Ps,
    /// The vectors of the interrupt at `ipi_at`: a bit for each [`Ipi`].
    pub ipis: u8,
    pub timers: Timers,
    /// The tick has come in this round of the idle loop, and the governor has not been told.
    pub got_idle_tick: bool,
    /// tick-sched.h: `ts->idle_entrytime`: when the idle loop was entered, or the last interrupt in it ended.
    pub idle_entrytime: Ps,
    /// Whether its polling reached the time limit.
    pub poll_time_limit: bool,
    /// Time that tasks have run here, up to the last switch to the idle task.
    pub busy: Ps,
    /// Since when tasks have been running here; `None` while the idle task runs.
    pub busy_since: Option<Ps>,
}

impl Cpu {
    pub fn new() -> Cpu {
        Cpu {
            run: Run::EnteringIdle,
            at: Ps::ZERO,
            tick_at: Ps::NEVER,
            ticks: 0,
            ipi_at: Ps::NEVER,
            monitor_at: Ps::NEVER,
            ipis: 0,
            timers: Timers::default(),
            got_idle_tick: false,
            idle_entrytime: Ps::ZERO,
            poll_time_limit: false,
            busy: Ps::ZERO,
            busy_since: None,
        }
    }

    pub fn notice(&mut self, notice: Notice, at: Ps) {
        match notice {
            Notice::Ipi(ipi) => {
                self.ipi_at = self.ipi_at.min(at);
                self.ipis |= ipi.bit();
            }
            Notice::Monitor => self.monitor_at = self.monitor_at.min(at),
            // Whoever delivers these asks the scheduler for the new times.
            Notice::Timer | Notice::Frequency => {}
        }
    }

    /// The next interrupt of any kind.
    #[inline]
    pub fn interrupt_at(&self) -> Ps {
        self.tick_at.min(self.ipi_at).min(self.timers.next())
    }

    /// Whether an interrupt has come by `now`.
    #[inline(always)]
    pub fn is_interrupted(&self, now: Ps) -> bool {
        unlikely(self.tick_at <= now) || unlikely(self.ipi_at <= now) || unlikely(self.timers.next() <= now)
    }

    /// Whether nothing but ticks will come.
    pub fn only_ticks(&self) -> bool {
        [self.timers.next(), self.ipi_at, self.monitor_at].iter().all(|&at| at == Ps::NEVER)
    }

    /// Whether it is in the middle of something that ends at `at`, whatever arrives.
    #[inline]
    pub fn executes(&self) -> bool {
        matches!(self.run, Run::EnteringIdle | Run::LeavingIdle | Run::Kernel | Run::Unsettled)
    }

    /// When this CPU has to be called again. A kernel path is not interrupted; what arrives meanwhile waits for its
    /// end.
    #[inline]
    pub fn key(&self) -> Ps {
        match self.run {
            Run::Idle => self.interrupt_at().min(self.monitor_at).min(self.at),
            Run::User { since } => self.at.min(self.interrupt_at().max(since)),
            Run::EnteringIdle | Run::LeavingIdle | Run::Kernel | Run::Unsettled => self.at,
        }
    }
}
