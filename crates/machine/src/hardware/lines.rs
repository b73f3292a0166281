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
