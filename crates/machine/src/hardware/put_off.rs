//! Requests for disputed lines: put off in a path, answered when their time has come.

use super::Hardware;
use crate::lines::record::Access;
use crate::profile::{Frame, Place};
use sched::layout::Line;
use units::{CpuId, Ps};

/// What a path left to be done at a moment of its own.
#[derive(Clone, Copy, Debug)]
pub struct PutOff {
    /// When, unless what comes before it in the path takes longer.
    pub at: Ps,
    line: Line,
    deed: Deed,
}

#[derive(Clone, Copy, Debug)]
enum Deed {
    /// An access to a disputed line, by the function that stands there in the profile, if there is one.
    Ask(Access, Option<Place>),
    /// The letting go of a lock that was held meanwhile.
    Unlock,
}

impl PutOff {
    /// Whether others' requests may come between: what it takes is known at its time only.
    pub fn is_request(&self) -> bool {
        matches!(self.deed, Deed::Ask(..))
    }
}

impl<const COSTS: bool> Hardware<COSTS> {
    /// Whether the path that has just ended put something off.
    #[inline(always)]
    pub fn has_put_off(&self) -> bool {
        COSTS && !self.put_off.is_empty()
    }

    /// Hands over what the last path put off, in its order.
    pub fn take_put_off(&mut self) -> Vec<PutOff> {
        std::mem::take(&mut self.put_off)
    }

    /// Lines are disputed when somebody has waited for more than so many ways' time: for tests, which want it sooner.
    pub fn dispute_from(&mut self, ways: u64) {
        self.lines.dispute_from(ways);
    }

    /// How many lines are disputed.
    pub fn disputed_lines(&self) -> usize {
        self.lines.disputed_lines()
    }

    /// The machine has booted: what its CPUs fought over on the way, all at one moment, is at peace.
    pub fn booted(&mut self) {
        self.put_off.clear();
        self.lines.forget_disputes();
    }

    /// Answers what `cpu` put off outside of its paths, whoever else might ask before.
    pub fn answer_at_once(&mut self, cpu: CpuId) {
        for put_off in self.take_put_off() {
            let now = self.now(cpu);
            let stall = self.answer(cpu, &put_off, now);
            self.end_at(cpu, now + stall);
        }
    }

    /// The path goes on as though the line were here.
    pub(super) fn put_off_request(&mut self, access: Access, line: Line) {
        let place = self.profile.as_ref().map(|profile| profile.place(self.executing.cpu.index()));
        self.put_off.push(PutOff { at: self.executing.clock, line, deed: Deed::Ask(access, place) });
    }

    #[cold]
    #[inline(never)]
    pub(super) fn put_off_unlock(&mut self, line: Line) {
        self.put_off.push(PutOff { at: self.executing.clock, line, deed: Deed::Unlock });
    }

    /// What `cpu` put off is done `now`: how long it stalls.
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

    /// What `cpu` executed last ended at `end`, as is known now.
    pub fn end_at(&mut self, cpu: CpuId, end: Ps) {
        if cpu == self.executing.cpu {
            self.executing.clock = end;
        }
        self.cpus[cpu.index()].clock = end;
    }
}
