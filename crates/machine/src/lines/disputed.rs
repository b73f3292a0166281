//! Lines with a queue of requests, where the order of the requests decides what each of them costs.
//!
//! A path is executed as a whole. So a request from its middle reaches the directory before requests that other CPUs
//! have yet to make for earlier moments. Also, a CPU that got a line finds it still there when it asks again, although
//! in simulated time the CPUs that waited behind it have taken it meanwhile. Where hardly any CPU waits, neither
//! matters; where hundreds wait, nothing else matters.
//!
//! So, where the machine asks for it ([`LinePrices::disputed_from`](super::LinePrices)), a line that once had a queue
//! is *disputed* for good. No core finds it in its caches. A request for it is put off ([`Hardware::put_off`]), and the
//! path goes on as though it had the line. When simulated time reaches the request it is answered, in the one order of
//! all CPUs' clocks, and the rest of the path moves back by the stall.
//!
//! [`Hardware::put_off`]: crate::hardware::Hardware

use super::Directory;
use super::entry::{Entry, Holder, UNTOUCHED};
use super::record::{Access, Outcome};
use crate::topology::Topology;
use sched::layout::{Line, Region};
use units::{CpuId, Ps, unlikely};

/// The holder word of a disputed line: to code that looks only at the entry, nobody holds it.
const DISPUTED: Holder = UNTOUCHED - 2;

/// The disputed lines.
#[derive(Debug)]
pub(super) struct Disputed {
    /// How many times its own way a request must have waited behind others.
    queue: u64,
    /// The disputed lines with their true entries. There are few.
    entries: Vec<(Line, Entry)>,
    /// Shared lines that contain a lock. A request for one waits for the lock's holder, not for the line alone, so it
    /// is never disputed.
    locks: Vec<Line>,
    /// Whether a request for a disputed line is being answered.
    answering: bool,
}

impl Disputed {
    pub(super) fn none(queue: u64) -> Disputed {
        Disputed { queue, entries: Vec::new(), locks: Vec::new(), answering: false }
    }

    /// A request that waited no longer than this makes no line disputed, however short its way.
    pub(super) fn patience(&self, shortest: Ps) -> Ps {
        Ps(self.queue.saturating_mul(shortest.0))
    }

    fn number(&self, line: Line) -> Option<usize> {
        self.entries.iter().position(|&(other, _)| other == line)
    }
}

/// Whether all CPUs share the line, so that it belongs neither to one of them nor to a task.
fn is_everybodys(line: Line) -> bool {
    matches!(line.region, Region::TaskGroup | Region::Domain | Region::Global | Region::Statistics)
}

impl Directory {
    /// A request waited for `wait`, and the line then took `way` to come.
    #[inline(always)]
    pub(super) fn waited(&mut self, line: Line, wait: Ps, way: Ps) {
        self.queued += wait;
        if wait.0 > self.disputed.queue.saturating_mul(way.0.max(self.ways.near.0)) && !self.disputed.answering {
            self.dispute(line);
        }
    }

    #[cold]
    #[inline(never)]
    fn dispute(&mut self, line: Line) {
        if is_everybodys(line) && !self.disputed.locks.contains(&line) {
            let entry = &mut self.regions[line.region as usize][line.index as usize];
            self.disputed.entries.push((line, *entry));
            entry.holder = DISPUTED;
        }
    }

    /// From now on a line is disputed once a request for it has waited for more than this many times its way.
    pub fn dispute_from(&mut self, ways: u64) {
        self.disputed.queue = ways;
        self.patience = self.crowds.patience().min(self.disputed.patience(self.ways.near));
    }

    /// Makes every disputed line an ordinary one, until it has a queue again.
    pub fn forget_disputes(&mut self) {
        for (line, entry) in self.disputed.entries.drain(..) {
            self.regions[line.region as usize][line.index as usize] = entry;
        }
    }

    /// How many lines are disputed.
    pub fn disputed_lines(&self) -> usize {
        self.disputed.entries.len()
    }

    /// Whether requests for a line are to be put off until simulated time has reached them.
    #[inline]
    pub fn is_disputed(&self, line: Line) -> bool {
        self.entry(line).is_some_and(|entry| entry.holder == DISPUTED)
    }

    /// A lock is about to be taken in this line, so the line must never be disputed.
    #[inline(always)]
    pub fn bears_lock(&mut self, line: Line) {
        if unlikely(self.disputed.queue != u64::MAX) && is_everybodys(line) {
            self.note_lock(line);
        }
    }

    #[inline(never)]
    fn note_lock(&mut self, line: Line) {
        if !self.disputed.locks.contains(&line) {
            self.disputed.locks.push(line);
            if let Some(number) = self.disputed.number(line) {
                let (_, entry) = self.disputed.entries.swap_remove(number);
                self.regions[line.region as usize][line.index as usize] = entry;
            }
        }
    }

    /// Answers a request that was put off. Returns how long it stalls.
    pub fn answer(&mut self, access: Access, by: CpuId, line: Line, now: Ps) -> Ps {
        self.undisputed(line, |lines| {
            let seat = lines.true_seat(by);
            lines.access(access, &seat, line, now)
        })
    }

    /// The same, and says what came of it.
    pub fn answer_watched(&mut self, topology: &Topology, access: Access, by: CpuId, line: Line, now: Ps) -> Outcome {
        self.undisputed(line, |lines| lines.watched(topology, access, by, line, now))
    }

    /// Runs `body` with the line's true entry in place.
    fn undisputed<T>(&mut self, line: Line, body: impl FnOnce(&mut Directory) -> T) -> T {
        let (region, index) = (line.region as usize, line.index as usize);
        let Some(number) = self.disputed.number(line) else { return body(self) };
        let shown = std::mem::replace(&mut self.regions[region][index], self.disputed.entries[number].1);
        self.disputed.answering = true;
        let value = body(self);
        self.disputed.answering = false;
        self.disputed.entries[number].1 = std::mem::replace(&mut self.regions[region][index], shown);
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lines::Seat;
    use crate::lines::tests::{LATE, two_sockets_of};
    use crate::topology::{Numbering, from_synthetic};

    const SUM: Line = Line { region: Region::TaskGroup, index: 3 };
    const OWN: Line = Line { region: Region::Task, index: 3 };

    fn directory() -> Directory {
        let topology = from_synthetic("pack:2 l3:1 core:4 pu:1", "test", Numbering::LinuxX86).expect("valid");
        two_sockets_of(&topology)
    }

    fn seat(d: &Directory, cpu: usize) -> Seat {
        d.true_seat(CpuId::new(cpu))
    }

    /// Every core adds to a line at the same moment, `rounds` times.
    fn fight(d: &mut Directory, line: Line, rounds: usize) {
        for cpu in (0..8).cycle().take(8 * rounds) {
            let seat = seat(d, cpu);
            d.atomic(&seat, line, LATE);
        }
    }

    #[test]
    fn a_line_with_a_queue_is_disputed_unless_it_is_a_tasks_or_bears_a_lock() {
        let mut d = directory();
        fight(&mut d, OWN, 3);
        assert!(!d.is_disputed(OWN));
        d.atomic(&seat(&d, 0), SUM, Ps::ZERO);
        d.atomic(&seat(&d, 1), SUM, Ps::ZERO);
        assert!(!d.is_disputed(SUM), "one that waits is no queue");
        fight(&mut d, SUM, 3);
        assert!(d.is_disputed(SUM));
        for cpu in 0..8 {
            assert!(!d.reads_here(&seat(&d, cpu), SUM) && !d.writes_here(&seat(&d, cpu), SUM, LATE + LATE));
        }
        d.bears_lock(SUM);
        assert!(!d.is_disputed(SUM));
        assert!(d.writes_here(&seat(&d, 7), SUM, LATE + LATE), "who had it last has it");
        fight(&mut d, SUM, 3);
        assert!(!d.is_disputed(SUM));
    }

    #[test]
    fn who_waits_for_what_its_own_core_has_asked_for_disputes_nothing() {
        // Of a core's two threads the second waits for the way of the line, once, and the line goes no way to it.
        let topology = from_synthetic("pack:2 l3:1 core:4 pu:2", "test", Numbering::LinuxX86).expect("valid");
        let mut d = two_sockets_of(&topology);
        d.atomic(&seat(&d, 1), SUM, Ps::ZERO);
        for cpu in [0, 8] {
            assert_eq!(d.atomic(&seat(&d, cpu), SUM, LATE), Ps::from_ns(40));
        }
        assert!(!d.is_disputed(SUM));
    }

    #[test]
    fn who_looks_again_finds_that_those_who_waited_have_taken_it() {
        let mut d = directory();
        fight(&mut d, SUM, 3);
        let (begin, cpu) = (LATE + LATE, CpuId::new);
        let added: Vec<Ps> = (0..8).map(|n| begin + d.answer(Access::Atomic, cpu(n), SUM, begin)).collect();
        // One after the other: 40 ns within a socket, 118 ns to the other socket.
        assert_eq!(*added.last().expect("eight"), begin + Ps::from_ns(118 + 3 * 40 + 118 + 3 * 40));
        let looks = d.answer(Access::Load, cpu(0), SUM, added[0]);
        assert_eq!(
            added[0] + looks,
            added[7] + Ps::from_ns(118),
            "the first waits for all others, then fetches it back"
        );
        // Had nobody else asked in between, the line would still be there.
        let mut alone = directory();
        fight(&mut alone, SUM, 3);
        let end = begin + alone.answer(Access::Atomic, cpu(0), SUM, begin);
        assert_eq!(alone.answer(Access::Load, cpu(0), SUM, end), Ps::ZERO);
    }
}
