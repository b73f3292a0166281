//! What one step up the hierarchy touches of an entity and of the queue it is on.
//!
//! These do what the accessors by id do, but look up both places only once: between two accesses that may charge, the
//! compiler would have to look everything up again.

use crate::arch::Arch;
use crate::core::Sched;
use crate::fair::load::Step;
use crate::layout::{CfsRqLine, Line, SeLine};
use crate::sched::{CfsRqId, SeId};
use units::unlikely;

/// Where the cache lines of an entity and of its queue begin, and whether each belongs to a group.
#[derive(Clone, Copy)]
pub(crate) struct LevelLines {
    entity: (u32, bool),
    queue: (u32, bool),
    /// Whether another CPU usually touched them last.
    fetched: bool,
}

impl LevelLines {
    /// The same lines, for a step at which a group's lines usually come from another CPU.
    #[inline(always)]
    pub(crate) fn fetched(self, step: Step) -> LevelLines {
        LevelLines { fetched: matches!(step, Step::Group(_)), ..self }
    }
}

impl<A: Arch> Sched<A> {
    #[inline(always)]
    pub(crate) fn level_lines(&self, cfs_rq: CfsRqId, se: SeId, step: Step) -> LevelLines {
        let (entity, queue) = (&self.se[se], &self.cfs_rq[cfs_rq]);
        let of_group = matches!(step, Step::Group(_)) || entity.my_q.is_some();
        let (entity, queue) = ((entity.first_line, of_group), (queue.first_byte, queue.of_group));
        LevelLines { entity, queue, fetched: false }
    }

    #[inline(always)]
    fn write_se_line(&mut self, at: LevelLines, line: SeLine) {
        self.write_level_line(at, self.layout.line_of_se(at.entity.0, at.entity.1, line));
    }

    #[inline(always)]
    fn write_cfs_line(&mut self, at: LevelLines, line: CfsRqLine) {
        self.write_level_line(at, self.layout.line_of_cfs_rq(at.queue.0, at.queue.1, line));
    }

    #[inline(always)]
    fn write_level_line(&mut self, at: LevelLines, line: Line) {
        match at.fetched {
            true => self.arch.write_fetched(self.this_cpu, line),
            false => self.write(line),
        }
    }

    /// [`Sched::write_se`].
    #[inline(always)]
    pub(crate) fn write_se_at(&mut self, at: LevelLines) {
        self.write_se_line(at, SeLine::Load);
    }

    /// [`Sched::write_se_times`].
    #[inline(always)]
    pub(crate) fn write_se_times_at(&mut self, at: LevelLines) {
        self.write_se_line(at, SeLine::Times);
    }

    /// [`Sched::write_se_avg`].
    #[inline(always)]
    pub(crate) fn write_se_avg_at(&mut self, at: LevelLines) {
        self.write_se_line(at, SeLine::Avg);
    }

    /// [`Sched::write_cfs_rq`].
    #[inline(always)]
    pub(crate) fn write_cfs_rq_at(&mut self, at: LevelLines) {
        self.write_cfs_line(at, CfsRqLine::Load);
    }

    /// [`Sched::write_cfs_timeline`].
    #[inline(always)]
    pub(crate) fn write_cfs_timeline_at(&mut self, at: LevelLines) {
        self.write_cfs_line(at, CfsRqLine::Timeline);
    }

    /// [`Sched::write_cfs_avg`].
    #[inline(always)]
    pub(crate) fn write_cfs_avg_at(&mut self, at: LevelLines) {
        self.write_cfs_line(at, CfsRqLine::Avg);
    }

    /// [`Sched::write_cfs_runnable_apart`].
    #[inline(always)]
    pub(crate) fn write_cfs_runnable_apart_at(&mut self, at: LevelLines) {
        if unlikely(self.layout.runnable_is_apart()) {
            self.write_cfs_line(at, CfsRqLine::Contrib);
        }
    }

    /// [`Sched::read_cfs_removed`].
    #[inline(always)]
    pub(crate) fn read_cfs_removed_at(&mut self, at: LevelLines) {
        self.read(self.layout.line_of_cfs_rq(at.queue.0, at.queue.1, CfsRqLine::Removed));
    }
}
