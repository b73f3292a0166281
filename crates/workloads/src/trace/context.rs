//! On whose behalf each event happened: the handlers under way on its CPU tell, or else its flags.

use super::event::{Context, Event, Handler, Recorded, What};
use std::collections::BTreeMap;

/// interrupt.h: TIMER_SOFTIRQ, SCHED_SOFTIRQ, HRTIMER_SOFTIRQ and RCU_SOFTIRQ, which no task raises on its own behalf.
const NEVER_A_TASKS: [u32; 4] = [1, 7, 8, 9];

/// What is under way on a CPU.
#[derive(Default)]
struct Cpu {
    /// How many hardware interrupt handlers are under way.
    handlers: u32,
    /// The softirq under way, by what is known of its originator.
    softirq: Option<Context>,
    /// Vectors raised and not yet run: on whose behalf they were first raised, and which task ran then.
    raised: BTreeMap<u32, (Context, Option<u32>)>,
}

impl Cpu {
    /// The context that executes; the event's flags decide if no handler is under way. A softirq may be interrupted by
    /// a handler that no event reports.
    fn context(&self, flags: Context) -> Context {
        match self.softirq {
            _ if self.handlers > 0 || flags == Context::Interrupt => Context::Interrupt,
            Some(context) => context,
            None => flags,
        }
    }

    fn pass(&mut self, event: &Event) {
        match event.what {
            What::Handler { of: Handler::Interrupt, begins: true } => self.handlers += 1,
            What::Handler { of: Handler::Interrupt, begins: false } => {
                self.handlers = self.handlers.saturating_sub(1);
            }
            What::Raise(vec) => {
                // If the vector is already pending, it stays on behalf of its first raiser.
                let context = self.context(event.context);
                self.raised.entry(vec).or_insert((context, event.running));
            }
            What::Handler { of: Handler::Softirq(vec), begins: true } => {
                self.softirq = Some(match self.raised.remove(&vec) {
                    _ if NEVER_A_TASKS.contains(&vec) => Context::Interrupt,
                    // Raised by another task than the one it interrupts. As far as is known, it is not that one's
                    // doing.
                    Some((Context::Task, by)) if by != event.running => Context::Softirq,
                    Some((context, _)) => context,
                    None => Context::Softirq,
                });
            }
            What::Handler { of: Handler::Softirq(_), begins: false } => self.softirq = None,
            // Tasks do not switch within a handler, unless softirqs run in threads. So a handler's end was not
            // recorded, or is another CPU's.
            What::Switch { .. } => (self.handlers, self.softirq) = (0, None),
            What::Lost(_) => *self = Cpu::default(),
            _ => {}
        }
    }
}

/// Gives each event its context. Events stand in the order of time.
pub(super) fn resolve(recorded: &mut Recorded) {
    let mut cpus: BTreeMap<u32, Cpu> = BTreeMap::new();
    for event in &mut recorded.events {
        let cpu = cpus.entry(event.cpu).or_default();
        cpu.pass(event);
        event.context = cpu.context(event.context);
    }
}
