//! Paths that asked for disputed cache lines: how long a request takes is known when simulated time reaches it.
//!
//! [`machine::lines`] says which lines these are. The path was executed as though it had them. Now its CPU waits at
//! each of its requests until all earlier requests of other CPUs have been made. What follows in the path (releases of
//! locks, messages to other CPUs, the path's own end) moves back by the request's stall.
//!
//! Unlike on a real machine, the path has read and written its data at its beginning, as all paths do.

use crate::cpu::Run;
use crate::engine::Sim;
use machine::hardware::{Hardware, Message, Notice, PutOff};
use sched::scheduler::Scheduler;
use units::{CpuId, Ps};

/// A path that has still to be settled.
pub(crate) struct Unsettled {
    /// What its CPU would be in the middle of after the path, and until when, had nothing been put off.
    run: Run,
    at: Ps,
    /// Where the path would have ended then.
    end: Ps,
    put_off: Vec<PutOff>,
    /// How many of the put-off requests are done.
    done: usize,
    /// How long they have stalled.
    stalled: Ps,
    /// Messages that the path sent after the first of these requests, in reverse order.
    messages: Vec<Message>,
}

impl Unsettled {
    /// Something else was executed on this CPU for `time`.
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
        if this.run == Run::Idle {
            return self.settle_polling(cpu, &put_off);
        }
        // Timers and frequencies are already set; only their setter knows when. What was sent before the first request
        // is already on its way.
        let (mut messages, others): (Vec<_>, Vec<_>) = arch
            .outbox()
            .drain(..)
            .partition(|message| message.after > 0 && matches!(message.notice, Notice::Ipi(_) | Notice::Monitor));
        *arch.outbox() = others;
        messages.reverse();
        let (run, at, end) = (this.run, this.at, arch.now(cpu));
        let unsettled = Unsettled { run, at, end, put_off, done: 0, stalled: Ps::ZERO, messages };
        this.run = Run::Unsettled;
        this.at = unsettled.next().expect("something was put off").max(self.now);
        self.unsettled[cpu.index()] = Some(Box::new(unsettled));
    }

    /// A CPU that polls has taken an interrupt in its loop, and goes on there.
    ///
    /// Differs: nothing on this CPU waits for the answers, so they are given at once, ahead of other CPUs' requests for
    /// earlier times.
    fn settle_polling(&mut self, cpu: CpuId, put_off: &[PutOff]) {
        let arch = self.sched.arch_mut();
        let mut stalled = vec![Ps::ZERO];
        for put_off in put_off {
            let before = stalled[stalled.len() - 1];
            stalled.push(before + arch.answer(cpu, put_off, put_off.at + before));
        }
        for message in arch.outbox() {
            if matches!(message.notice, Notice::Ipi(_) | Notice::Monitor) {
                message.at += stalled[message.after];
            }
        }
        let all = stalled[put_off.len()];
        arch.end_at(cpu, arch.now(cpu) + all);
        let this = &mut self.cpus[cpu];
        this.at = arch.interrupted_polling(cpu, all, this.at);
    }

    /// Simulated time has reached the next request.
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
        // What was sent before the next request is now certain to be on its way.
        while let Some(message) = unsettled.messages.pop_if(|message| message.after <= unsettled.done) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::LinuxSim;
    use machine::idle::IdleRules;
    use machine::prices::Prices;
    use machine::topology::{Numbering, from_synthetic};
    use os::{Os, OsRules};
    use sched::arch::Arch;
    use sched::core::{Boot, Sched};
    use sched::layout::{Line, Region};
    use sched::trace::Ipi;
    use sched::versions::V6_1;

    const SUM: Line = Line { region: Region::TaskGroup, index: 2 };
    const SENDER: CpuId = CpuId(1);

    fn us(time: u64) -> Ps {
        Ps::from_ns(1_000 * time)
    }

    /// Four idle CPUs and a disputed line that takes 40 ns between any two of them. Interrupts take 700 ns to arrive.
    fn disputed() -> LinuxSim<true> {
        let topology = from_synthetic("pack:1 l3:1 core:4 pu:1", "test", Numbering::LinuxX86).expect("valid");
        let mut prices = Prices::free();
        prices.lines.transfer = vec![Ps::from_ns(40); 5];
        prices.ipi_delivery = Ps::from_ns(700);
        let hardware = Hardware::new(topology.clone(), prices, V6_1.layout(), IdleRules::V6_1, 1);
        let sched = Sched::new(hardware, Boot::new(V6_1, topology.cpu_topology(), 250));
        let mut sim = LinuxSim::<true>::new(sched, Os::new(OsRules::V6_1, 250));
        sim.idle(units::Ns(1_000_000));
        let arch = sim.sched.arch_mut();
        arch.dispute_from(1);
        for cpu in (0..4).cycle().take(8).map(CpuId::new) {
            arch.begin(cpu, us(1_001));
            arch.atomic(cpu, SUM);
        }
        assert_eq!(arch.disputed_lines(), 1);
        arch.take_put_off();
        arch.outbox().clear();
        sim
    }

    /// Lets CPU 2 ask for the line at that time, before any other CPU.
    fn taken_at(sim: &mut LinuxSim<true>, at: Ps) {
        let arch = sim.sched.arch_mut();
        arch.begin(CpuId(2), at);
        arch.atomic(CpuId(2), SUM);
        for put_off in arch.take_put_off() {
            arch.answer(CpuId(2), &put_off, at);
        }
    }

    #[test]
    fn what_a_polling_cpu_asks_for_in_an_interrupt_reaches_the_directory() {
        let mut sim = disputed();
        taken_at(&mut sim, us(2_000));
        let arch = sim.sched.arch_mut();
        arch.begin(SENDER, us(2_000));
        arch.send_ipi(SENDER, CpuId(0), Ipi::Reschedule);
        arch.atomic(SENDER, SUM);
        arch.send_ipi(SENDER, CpuId(3), Ipi::Reschedule);
        sim.cpus[SENDER].run = Run::Idle;
        sim.begin_settling(SENDER);
        let arch = sim.sched.arch_mut();
        let stalled = arch.now(SENDER) - us(2_000);
        assert!(stalled >= Ps::from_ns(40), "CPU 2 had the line: {stalled:?}");
        let arrive: Vec<Ps> = arch.outbox().drain(..).map(|message| message.at - us(2_000)).collect();
        assert_eq!(arrive, [Ps::from_ns(700), Ps::from_ns(700) + stalled]);
        assert!(sim.cpus[SENDER].run == Run::Idle && sim.unsettled[SENDER.index()].is_none());
        // A CPU that asks meanwhile waits until the line has arrived there.
        let arch = sim.sched.arch_mut();
        arch.begin(CpuId(3), us(2_000) + Ps::from_ns(1));
        arch.atomic(CpuId(3), SUM);
        let put_off = arch.take_put_off();
        let waits = arch.answer(CpuId(3), &put_off[0], put_off[0].at);
        assert!(waits > stalled, "{waits:?} after {stalled:?}");
    }

    #[test]
    fn a_message_moves_back_by_what_stalled_before_it_was_sent() {
        let mut sim = disputed();
        taken_at(&mut sim, us(2_000));
        let arch = sim.sched.arch_mut();
        arch.begin(SENDER, us(2_000));
        for to in [0, 2, 3] {
            arch.send_ipi(SENDER, CpuId(to), Ipi::Reschedule);
            arch.stall(Ps::from_ns(10));
            arch.atomic(SENDER, SUM);
        }
        let unmoved: Vec<Ps> = arch.outbox().iter().map(|message| message.at).collect();
        assert_eq!(unmoved, [0, 10, 20].map(|ns| us(2_000) + Ps::from_ns(700 + ns)));
        (sim.cpus[SENDER].run, sim.cpus[SENDER].at) = (Run::Kernel, us(2_000) + Ps::from_ns(30));
        sim.begin_settling(SENDER);
        let mut sent = Vec::new();
        loop {
            sent.extend(sim.sched.arch_mut().outbox().drain(..).map(|message| (message.to, message.at)));
            if sim.unsettled[SENDER.index()].is_none() {
                break;
            }
            let at = sim.cpus[SENDER].at;
            sim.now = at;
            // Another CPU takes the line before the second request.
            if sent.len() == 2 {
                taken_at(&mut sim, at - Ps::from_ns(1));
            }
            sim.settle(SENDER, at);
        }
        let delays: Vec<u64> =
            (0..).zip(&sent).map(|(n, (_, at))| (at.0 - us(2_000).0) / 1_000 - 700 - 10 * n).collect();
        assert_eq!(sent.iter().map(|(to, _)| to.0).collect::<Vec<_>>(), [0, 2, 3]);
        // The first message was sent before any request, the others after the first and the second request.
        assert_eq!(delays[0], 0);
        assert!(0 < delays[1] && delays[1] < delays[2], "{delays:?}");
        assert!(
            sim.cpus[SENDER].at >= us(2_000) + Ps::from_ns(30 + delays[2]),
            "the path ends behind its last request"
        );
    }
}
