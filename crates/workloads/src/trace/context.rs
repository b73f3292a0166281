//! On whose behalf each event passed: by the handlers that are under way on its CPU, else by its flags.

use super::event::{Context, Event, Handler, Recorded, What};
use std::collections::BTreeMap;

/// interrupt.h: TIMER_SOFTIRQ, SCHED_SOFTIRQ, HRTIMER_SOFTIRQ and RCU_SOFTIRQ, which no task raises for what it does itself.
const NEVER_A_TASKS: [u32; 4] = [1, 7, 8, 9];

/// What is under way on a CPU.
#[derive(Default)]
struct Cpu {
    /// Handlers of hardware's interrupts.
    handlers: u32,
    /// A softirq, as far as it is known on whose behalf.
    softirq: Option<Context>,
    /// Vectors that wait for their softirq, on whose behalf they were raised first, and who ran then.
    raised: BTreeMap<u32, (Context, Option<u32>)>,
}

impl Cpu {
    /// What executes, by an event's flags where no handler is under way. A handler that no event tells of may interrupt a softirq.
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
                // One that waits already is on behalf of who raised it first.
                let context = self.context(event.context);
                self.raised.entry(vec).or_insert((context, event.running));
            }
            What::Handler { of: Handler::Softirq(vec), begins: true } => {
                self.softirq = Some(match self.raised.remove(&vec) {
                    _ if NEVER_A_TASKS.contains(&vec) => Context::Interrupt,
                    // Of another task than its softirq interrupts: not of this one's doing, for all that is known.
                    Some((Context::Task, by)) if by != event.running => Context::Softirq,
                    Some((context, _)) => context,
                    None => Context::Softirq,
                });
            }
            What::Handler { of: Handler::Softirq(_), begins: false } => self.softirq = None,
            // Nobody switches within a handler, but where softirqs are threads: the end of one was not recorded, or is another's.
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
