//! Paths that asked for disputed cache lines: what the requests take is known when simulated time has come to them.
//!
//! [`machine::lines`] says which lines those are. The path was executed as though they had been at hand; now its CPU waits at each of
//! its requests for the turn of all others, and what follows in the path, the end of locks' being held, messages to other CPUs and the
//! path's own end, moves back by what the request stalled.
//!
//! Differs from a real machine in what the path reads and writes: it did so at its beginning, as all paths do.

use crate::cpu::Run;
use crate::engine::Sim;
use machine::hardware::{Hardware, Message, Notice, PutOff};
use sched::scheduler::Scheduler;
use units::{CpuId, Ps};

/// A path that has still to be settled.
pub(crate) struct Unsettled {
    /// What its CPU is to be in the middle of then, and until when, were nothing put off.
    run: Run,
    at: Ps,
    /// Where the path ended then.
    end: Ps,
    put_off: Vec<PutOff>,
    /// How many of those are done.
    done: usize,
    /// What they stalled.
    stalled: Ps,
    /// What it sent, the earliest last.
    messages: Vec<Message>,
}

impl Unsettled {
    /// Something was executed beside it for so long.
    pub fn delay(&mut self, time: Ps) {
        (self.at, self.end) = (self.at + time, self.end + time);
        if let Run::User { since } = &mut self.run {
            *since += time;
        }
    }

    /// When its next request is made.
    fn next(&self) -> Option<Ps> {
        self.put_off.get(self.done).map(|put_off| put_off.at + self.stalled)
    }
}

impl<const COSTS: bool, S: Scheduler<Arch = Hardware<COSTS>>> Sim<COSTS, S> {
    /// The path that `cpu` has just executed put something off.
    #[cold]
    #[inline(never)]
    pub(crate) fn begin_settling(&mut self, cpu: CpuId) {
        let this = &mut self.cpus[cpu];
        let arch = self.sched.arch_mut();
        let put_off = arch.take_put_off();
        // One that sleeps, or polls, takes nothing up before something wakes it: nobody waits for the answers.
        if this.run == Run::Idle {
            return;
        }
        // Timers and frequencies are set already; only who sets them knows when.
        let (mut messages, others): (Vec<_>, Vec<_>) =
            arch.outbox().drain(..).partition(|message| matches!(message.notice, Notice::Reschedule | Notice::Monitor));
        *arch.outbox() = others;
        messages.sort_by_key(|message| std::cmp::Reverse(message.at));
        let (run, at, end) = (this.run, this.at, arch.now(cpu));
        let unsettled = Unsettled { run, at, end, put_off, done: 0, stalled: Ps::ZERO, messages };
        this.run = Run::Unsettled;
        this.at = unsettled.next().expect("something was put off").max(self.now);
        self.unsettled[cpu.index()] = Some(Box::new(unsettled));
    }

    /// The time of the next request has come.
    #[cold]
    #[inline(never)]
    pub(crate) fn settle(&mut self, cpu: CpuId, now: Ps) {
        let mut unsettled = self.unsettled[cpu.index()].take().expect("who is unsettled has put something off");
        let mut at = now;
        while let Some(put_off) = unsettled.put_off.get(unsettled.done) {
            if put_off.is_request() && at > now {
                break;
            }
            unsettled.stalled += self.sched.arch_mut().answer(cpu, put_off, at);
            unsettled.done += 1;
            at = unsettled.next().unwrap_or(Ps::NEVER);
        }
        // What was sent before the next request is on its way for certain.
        while let Some(message) = unsettled.messages.pop_if(|message| message.at + unsettled.stalled <= at) {
            let at = message.at + unsettled.stalled;
            self.sched.arch_mut().outbox().push(Message { at, ..message });
        }
        if at < Ps::NEVER {
            self.cpus[cpu].at = at;
            self.unsettled[cpu.index()] = Some(unsettled);
            return;
        }
        let Unsettled { run, at, end, stalled, .. } = *unsettled;
        self.sched.arch_mut().end_at(cpu, end + stalled);
        if let Run::User { since } = run {
            return self.resume_user(cpu, since + stalled);
        }
        let this = &mut self.cpus[cpu];
        this.run = run;
        this.at = at + stalled;
    }
}
