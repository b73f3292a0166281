//! Accesses to lines that are not in the core's own caches, and their recording.
//!
//! Each kind of access has one short function for its usual case, with all other cases behind it.

use super::Hardware;
use crate::lines::LineTotals;
use crate::lines::record::{Access, LineRecord, Outcome, Supply};
use crate::profile::Frame;
use sched::layout::Line;
use units::{CpuId, Ps, unlikely};

impl<const COSTS: bool> Hardware<COSTS> {
    pub fn line_totals(&self) -> LineTotals {
        self.lines.totals()
    }

    /// From now on records who touches which line. Needs the profile, which knows the functions.
    pub fn record_lines(&mut self) {
        assert!(self.profile.is_some(), "functions are known to the profile");
        self.touched = Some(Box::default());
        self.lines.blindfold();
        self.executing.seat = self.lines.seat(self.executing.cpu);
    }

    pub fn lines_touched(&self) -> Option<&LineRecord> {
        self.touched.as_deref()
    }

    #[cold]
    #[inline(never)]
    fn watch_line(&mut self, access: Access, line: Line) {
        let cpu = self.executing.cpu;
        let outcome = self.lines.watched(&self.topology, access, cpu, line, self.executing.clock);
        let frame = self.profile.as_ref().map_or(Frame::User, |profile| profile.here(cpu.index()));
        if let Some(touched) = &mut self.touched {
            touched.add(line, frame, self.topology.cpu(cpu).node, access, outcome);
        }
        self.charge(outcome.stall);
    }

    /// Records an access for which no line moves.
    pub(super) fn note_here(&mut self, access: Access, line: Line) {
        let cpu = self.executing.cpu;
        if let Some(touched) = &mut self.touched {
            let frame = self.profile.as_ref().map_or(Frame::User, |profile| profile.here(cpu.index()));
            let outcome = Outcome { supply: Supply::Here, queued: Ps::ZERO, stall: Ps::ZERO };
            touched.add(line, frame, self.topology.cpu(cpu).node, access, outcome);
        }
    }

    #[inline(never)]
    pub(super) fn read_line(&mut self, line: Line) {
        match self.lines.read_usual(&self.executing.seat, line, self.executing.clock) {
            Some(stall) => self.charge(stall),
            None => self.read_shared_line(line),
        }
    }

    /// A load of a line that many CPUs look at; most such lines have a sharer set. Returns when it is done.
    #[inline(never)]
    pub(super) fn look_line(&mut self, line: Line, now: Ps) -> Ps {
        match self.lines.read_shared(&self.executing.seat, line, now) {
            Some(stall) => now + stall,
            None => self.look_unshared_line(line, now),
        }
    }

    #[inline(never)]
    fn look_unshared_line(&mut self, line: Line, now: Ps) -> Ps {
        self.executing.clock = now;
        self.read_line(line);
        self.executing.clock
    }

    #[inline(never)]
    fn read_shared_line(&mut self, line: Line) {
        match self.lines.read_shared(&self.executing.seat, line, self.executing.clock) {
            Some(stall) => self.charge(stall),
            None => self.read_queued_line(line),
        }
    }

    #[inline(never)]
    fn read_queued_line(&mut self, line: Line) {
        match self.lines.read_queued(&self.executing.seat, line, self.executing.clock) {
            Some(stall) => self.charge(stall),
            None => self.read_third_line(line),
        }
    }

    #[inline(never)]
    fn read_third_line(&mut self, line: Line) {
        match self.lines.read_third(&self.executing.seat, line, self.executing.clock) {
            Some(stall) => self.charge(stall),
            None => self.read_any_line(line),
        }
    }

    /// `watcher`, which idles, fetches a line that another CPU has just written.
    #[inline(never)]
    pub(super) fn fetch_back(&mut self, watcher: CpuId, line: Line) {
        if unlikely(self.touched.is_some()) {
            return self.watch_fetch_back(watcher, line);
        }
        let seat = self.lines.true_seat(watcher);
        self.lines.fetch_watched(&seat, line, self.executing.clock);
    }

    #[cold]
    #[inline(never)]
    fn watch_fetch_back(&mut self, watcher: CpuId, line: Line) {
        let outcome = self.lines.fetch_watched_and_tell(&self.topology, watcher, line, self.executing.clock);
        let state = self.idle_state(watcher).map_or(0, |(state, _)| state as u8);
        if let Some(touched) = &mut self.touched {
            touched.add(line, Frame::Idle(state), self.topology.cpu(watcher).node, Access::Load, outcome);
        }
    }

    #[inline(never)]
    fn read_any_line(&mut self, line: Line) {
        if self.lines.is_disputed(line) {
            return self.put_off_request(Access::Load, line);
        }
        if self.touched.is_some() {
            return self.watch_line(Access::Load, line);
        }
        let stall = self.lines.read(&self.executing.seat, line, self.executing.clock);
        self.charge(stall);
    }

    #[inline(never)]
    pub(super) fn write_line(&mut self, line: Line) {
        self.fetch_line(line);
    }

    /// The inlined part of [`Hardware::write_line`].
    #[inline(always)]
    pub(super) fn fetch_line(&mut self, line: Line) {
        match self.lines.write_usual(&self.executing.seat, line, self.executing.clock) {
            Some(stall) => self.charge(stall),
            None => self.write_shared_line(line),
        }
    }

    #[inline(never)]
    fn write_shared_line(&mut self, line: Line) {
        match self.lines.write_shared(&self.executing.seat, line, self.executing.clock) {
            Some(stall) => self.charge(stall),
            None => self.write_awaited_line(line),
        }
    }

    #[inline(never)]
    fn write_awaited_line(&mut self, line: Line) {
        match self.lines.write_awaited(&self.executing.seat, line, self.executing.clock) {
            Some(stall) => self.charge(stall),
            None => self.write_any_line(line),
        }
    }

    #[inline(never)]
    fn write_any_line(&mut self, line: Line) {
        if self.lines.is_disputed(line) {
            return self.put_off_request(Access::Store, line);
        }
        if self.touched.is_some() {
            return self.watch_line(Access::Store, line);
        }
        let stall = self.lines.write(&self.executing.seat, line, self.executing.clock);
        self.charge(stall);
    }

    #[inline(never)]
    pub(super) fn atomic_line(&mut self, line: Line) {
        match self.lines.atomic_usual(&self.executing.seat, line, self.executing.clock) {
            Some(stall) => self.charge(stall),
            None => self.atomic_shared_line(line),
        }
    }

    #[inline(never)]
    fn atomic_shared_line(&mut self, line: Line) {
        match self.lines.atomic_shared(&self.executing.seat, line, self.executing.clock) {
            Some(stall) => self.charge(stall),
            None => self.atomic_any_line(line),
        }
    }

    #[inline(never)]
    fn atomic_any_line(&mut self, line: Line) {
        if self.lines.is_disputed(line) {
            return self.put_off_request(Access::Atomic, line);
        }
        if self.touched.is_some() {
            return self.watch_line(Access::Atomic, line);
        }
        let stall = self.lines.atomic(&self.executing.seat, line, self.executing.clock);
        self.charge(stall);
    }

    #[inline(never)]
    pub(super) fn lock_line(&mut self, line: Line) {
        match self.lines.atomic_usual(&self.executing.seat, line, self.executing.clock) {
            Some(stall) => self.charge(stall),
            None => self.lock_shared_line(line),
        }
    }

    #[inline(never)]
    fn lock_shared_line(&mut self, line: Line) {
        self.lines.bears_lock(line);
        match self.lines.lock_shared(&self.executing.seat, line, self.executing.clock) {
            Some(stall) => self.charge(stall),
            None => self.lock_any_line(line),
        }
    }

    #[inline(never)]
    fn lock_any_line(&mut self, line: Line) {
        if self.touched.is_some() {
            return self.watch_line(Access::Lock, line);
        }
        let stall = self.lines.lock(&self.executing.seat, line, self.executing.clock);
        self.charge(stall);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::idle::IdleRules;
    use crate::prices::Prices;
    use crate::topology::{Numbering, from_synthetic};
    use sched::arch::Arch;
    use sched::versions::V6_1;

    /// Two packages of two cores with two threads: a line travels for 8 ns between threads, 40 ns between cores, 118 ns between packages.
    fn hardware() -> Hardware<true> {
        let topology = from_synthetic("pack:2 [numa] l3:1 core:2 pu:2", "test", Numbering::AsListed).expect("valid");
        let mut prices = Prices::free();
        let ways = [0, 8, 40, 40, 60, 118].map(Ps::from_ns);
        prices.lines.transfer[..ways.len()].copy_from_slice(&ways);
        prices.refill_parallel = 4;
        Hardware::new(topology, prices, V6_1.layout(), IdleRules::V6_1, 1)
    }

    const WAKER: CpuId = CpuId(0);

    #[test]
    fn a_store_wakes_who_watches_its_line_once_that_has_come_there() {
        for (watcher, way) in [(1, 8), (2, 40), (4, 118)] {
            let mut hardware = hardware();
            hardware.begin(WAKER, Ps::from_ns(1_000));
            hardware.wake_polling_idle(WAKER, CpuId(watcher));
            let told = hardware.outbox().pop().expect("the watcher is told");
            assert_eq!((told.to, told.at), (CpuId(watcher), Ps::from_ns(1_000 + way)), "{watcher}");
        }
    }

    #[test]
    fn the_watcher_fetches_the_line_back_so_that_each_store_to_it_travels() {
        let mut hardware = hardware();
        let watcher = CpuId(2);
        let line = hardware.layout.idle_thread_info(watcher);
        let mut store = |at: u64, wakes: bool| {
            hardware.begin(WAKER, Ps::from_ns(at));
            hardware.atomic(WAKER, line);
            let took = hardware.now(WAKER) - Ps::from_ns(at);
            if wakes {
                hardware.wake_polling_idle(WAKER, watcher);
            }
            took
        };
        store(1_000, true);
        assert_eq!(store(2_000, false), Ps::from_ns(40), "the watcher has a copy");
        assert_eq!(store(3_000, false), Ps::ZERO, "and nobody told it this time");
    }

    #[test]
    fn the_first_line_of_what_is_fetched_is_waited_for_and_others_come_behind_it() {
        let took = |from: u16, bytes: u64| {
            let mut hardware = hardware();
            hardware.begin(WAKER, Ps::ZERO);
            hardware.fetch(WAKER, CpuId(from), bytes);
            hardware.now(WAKER).0
        };
        // Four at a time.
        assert_eq!([1, 64, 65, 128, 640].map(|bytes| took(2, bytes)), [40_000, 40_000, 50_000, 50_000, 130_000]);
        assert_eq!([64, 640].map(|bytes| took(4, bytes)), [118_000, 118_000 + 9 * 118_000 / 4]);
        assert_eq!([0, 1].map(|from| took(from, 640)), [0; 2], "the core has it");
    }
}
