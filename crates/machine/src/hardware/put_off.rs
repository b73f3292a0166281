//! Requests for disputed lines: put off when a path makes them, answered when simulated time reaches them.

use super::{Hardware, Message, Notice};
use crate::lines::record::Access;
use crate::profile::{Frame, Place};
use sched::layout::Line;
use units::{CpuId, Ps};

/// Something that a path left to be done at its own moment.
#[derive(Clone, Copy, Debug)]
pub struct PutOff {
    /// When it is due, unless what comes before it in the path takes longer.
    pub at: Ps,
    line: Line,
    deed: Deed,
}

#[derive(Clone, Copy, Debug)]
enum Deed {
    /// An access to a disputed line, with the function that made it, if there is a profile.
    Ask(Access, Option<Place>),
    /// The release of a lock that was held meanwhile.
    Unlock,
}

impl PutOff {
    /// Whether other CPUs' requests may come before it, so that its cost is not known before its time.
    pub fn is_request(&self) -> bool {
        matches!(self.deed, Deed::Ask(..))
    }
}

impl<const COSTS: bool> Hardware<COSTS> {
    /// Whether the path that has just ended put anything off.
    #[inline(always)]
    pub fn has_put_off(&self) -> bool {
        COSTS && !self.put_off.is_empty()
    }

    /// The executing path notifies another CPU. The message arrives at `at`, unless requests that the path put off
    /// before stall it.
    pub(super) fn send(&mut self, at: Ps, to: CpuId, notice: Notice) {
        self.outbox.push(Message { at, to, notice, after: self.put_off.len() });
    }

    /// Hands over what the last path put off, in the order of the path.
    pub fn take_put_off(&mut self) -> Vec<PutOff> {
        std::mem::take(&mut self.put_off)
    }

    /// From now on a line is disputed once a request has waited for more than this many times its way. For tests, which
    /// want that early.
    pub fn dispute_from(&mut self, ways: u64) {
        self.lines.dispute_from(ways);
    }

    /// How many lines are disputed.
    pub fn disputed_lines(&self) -> usize {
        self.lines.disputed_lines()
    }

    /// The machine has booted: forgets the disputes of the boot, all of which happens at one moment.
    pub fn booted(&mut self) {
        self.put_off.clear();
        self.lines.forget_disputes();
    }

    /// Answers at once what `cpu` put off outside of its paths, without regard to others that might ask earlier.
    pub fn answer_at_once(&mut self, cpu: CpuId) {
        for put_off in self.take_put_off() {
            let now = self.now(cpu);
            let stall = self.answer(cpu, &put_off, now);
            self.end_at(cpu, now + stall);
        }
    }

    /// Puts off an access. The path goes on as though its core had the line.
    ///
    /// A load soon after another load of the same line ([`LinePrices::window`](crate::lines::LinePrices)) needs no request
    /// of its own: the line comes to both.
    pub(super) fn put_off_request(&mut self, access: Access, line: Line) {
        let now = self.executing.clock;
        let is_load = |deed: Deed| matches!(deed, Deed::Ask(Access::Load, _));
        let before = self.put_off.iter().rev().take_while(|other| other.at + self.prices.lines.window >= now);
        if access == Access::Load && before.into_iter().any(|other| other.line == line && is_load(other.deed)) {
            return self.note_here(access, line);
        }
        let place = self.profile.as_ref().map(|profile| profile.place(self.executing.cpu.index()));
        self.put_off.push(PutOff { at: now, line, deed: Deed::Ask(access, place) });
    }

    #[cold]
    #[inline(never)]
    pub(super) fn put_off_unlock(&mut self, line: Line) {
        self.put_off.push(PutOff { at: self.executing.clock, line, deed: Deed::Unlock });
    }

    /// `cpu` does now what it put off. Returns how long that stalls.
    pub fn answer(&mut self, cpu: CpuId, put_off: &PutOff, now: Ps) -> Ps {
        let line = put_off.line;
        let (access, place) = match put_off.deed {
            Deed::Ask(access, place) => (access, place),
            Deed::Unlock => {
                self.lines.unlock(line, now);
                return Ps::ZERO;
            }
        };
        let stall = match &mut self.touched {
            None => self.lines.answer(access, cpu, line, now),
            Some(touched) => {
                let outcome = self.lines.answer_watched(&self.topology, access, cpu, line, now);
                let function = self.profile.as_ref().zip(place).map(|(profile, place)| profile.function(place));
                touched.add(line, function.unwrap_or(Frame::User), self.topology.cpu(cpu).node, access, outcome);
                outcome.stall
            }
        };
        if let Some((profile, place)) = self.profile.as_mut().zip(place) {
            profile.add_at(place, stall);
        }
        stall
    }

    /// What `cpu` executed last ended at `end`, as is now known.
    pub fn end_at(&mut self, cpu: CpuId, end: Ps) {
        if cpu == self.executing.cpu {
            self.executing.clock = end;
        }
        self.cpus[cpu.index()].clock = end;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::idle::IdleRules;
    use crate::prices::Prices;
    use crate::topology::{Numbering, from_synthetic};
    use sched::arch::Arch;
    use sched::layout::Region;
    use sched::versions::V4_16;

    const SUM: Line = Line { region: Region::TaskGroup, index: 2 };
    const LOCK: Line = Line { region: Region::Rq, index: 2 };

    /// Four cores that have fought over a line until it is disputed.
    fn disputed() -> Hardware<true> {
        let topology = from_synthetic("pack:1 l3:1 core:4 pu:1", "test", Numbering::LinuxX86).expect("valid");
        let mut prices = Prices::free();
        prices.lines.transfer = vec![Ps::from_ns(40); 5];
        prices.lines.window = Ps::from_ns(50);
        let mut hardware = Hardware::<true>::new(topology, prices, V4_16.layout(), IdleRules::V4_15, 1);
        hardware.dispute_from(1);
        for cpu in (0..4).cycle().take(8).map(CpuId::new) {
            hardware.begin(cpu, Ps::from_ns(1000));
            hardware.atomic(cpu, SUM);
        }
        assert_eq!(hardware.disputed_lines(), 1);
        hardware.take_put_off();
        hardware
    }

    #[test]
    fn loads_of_one_line_are_under_way_together_and_nothing_else_is() {
        let mut hardware = disputed();
        let cpu = CpuId(0);
        for (at, atomic) in [(0, true), (20, false), (40, false), (80, false), (120, false)] {
            hardware.begin(cpu, Ps::from_ns(5000 + at));
            if atomic { hardware.atomic(cpu, SUM) } else { hardware.read(cpu, SUM) }
        }
        assert_eq!(hardware.now(cpu), Ps::from_ns(5120), "the path goes on");
        let at: Vec<u64> = hardware.take_put_off().iter().map(|put_off| put_off.at.0 / 1000 - 5000).collect();
        assert_eq!(at, [0, 20, 80]);
    }

    #[test]
    fn a_lock_that_is_held_over_a_request_is_held_for_longer() {
        let mut hardware = disputed();
        let (holder, other) = (CpuId(0), CpuId(1));
        hardware.begin(holder, Ps::from_ns(5000));
        hardware.lock(holder, LOCK);
        hardware.atomic(holder, SUM);
        hardware.unlock(holder, LOCK);
        let list = hardware.take_put_off();
        assert_eq!(list.iter().map(PutOff::is_request).collect::<Vec<_>>(), [true, false]);
        let stall = hardware.answer(holder, &list[0], list[0].at);
        assert!(stall > Ps::ZERO);
        hardware.answer(holder, &list[1], list[1].at + stall);
        hardware.begin(other, Ps::from_ns(5001));
        hardware.lock(other, LOCK);
        assert!(hardware.now(other) > list[1].at + stall);
    }
}
