//! What the directory keeps of one line: who holds it, and until when it is on its way.

use units::{Permille, Ps};

/// Who holds a line, in one word, because nearly every access asks for nothing else: the core that wrote last, or that read first, in the
/// low half. Above it [`MODIFIED`], the owner alone; or one more core, the two of them having copies; or [`SET`]. So whoever has a line that
/// one core writes and one reads, as most are, stands here, and no sharer set is looked at.
pub(super) type Holder = u32;

/// The owner alone holds it.
pub(super) const MODIFIED: Holder = 1 << 16;
/// Whoever is in the line's sharer set holds it, three cores at least. From here on others may have copies.
pub(super) const SET: Holder = 1 << 17;
/// Of a sharer set: it has cores of more than one last level cache.
pub(super) const SPREAD: Holder = 1 << 18;
/// Of a line without a set: from this bit on stands which other core has a copy, its number plus one; the owner's own, if nobody.
const SECOND: u32 = 18;
/// Nobody has touched it yet: the owner is the number of no core.
pub(super) const UNTOUCHED: Holder = u16::MAX as Holder;

/// What stands for `core` as the second.
#[inline(always)]
pub(super) fn mark_of(core: u16) -> u16 {
    core + 1
}

/// A time in picoseconds as [`Entry::busy_for`] has it.
#[inline(always)]
fn in_short(time: Ps) -> u32 {
    time.0.min(u64::from(u32::MAX)) as u32
}

/// What every access to a line looks at. Small: thousands of tasks have a dozen lines each.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    /// Until when the line is being moved or its lock is held, and for how many picoseconds it has been by then, without a gap; the most that
    /// can be written stands for all that is longer (4.3 ms).
    pub(super) free_at: Ps,
    pub(super) busy_for: u32,
    pub(super) holder: Holder,
}

impl Entry {
    pub(super) const UNTOUCHED: Entry = Entry { free_at: Ps::ZERO, busy_for: 0, holder: UNTOUCHED };

    #[inline(always)]
    pub(super) fn owner(&self) -> u16 {
        self.holder as u16
    }

    /// Whether copies are clean.
    #[inline(always)]
    pub(super) fn is_shared(&self) -> bool {
        self.holder >= SET
    }

    /// Whether those who share it are in its sharer set.
    #[inline(always)]
    pub(super) fn has_set(&self) -> bool {
        self.holder & SET != 0
    }

    /// Of a shared line without a set: the core that has a copy beside the owner, or the owner again.
    #[inline(always)]
    pub(super) fn second(&self) -> u16 {
        (self.holder >> SECOND) as u16 - 1
    }

    /// The owner and `core` have it clean, and nobody else.
    #[inline(always)]
    pub(super) fn share(&mut self, mark: u16) {
        self.holder = Holder::from(self.owner()) | Holder::from(mark) << SECOND;
    }

    /// Who shares it stands in its sharer set from now on.
    #[inline(always)]
    pub(super) fn begin_set(&mut self, spread: bool) {
        self.holder = Holder::from(self.owner()) | SET | if spread { SPREAD } else { 0 };
    }

    /// The core of this mark has a copy of a line without a set.
    #[inline(always)]
    pub(super) fn has_second(&self, mark: u16) -> bool {
        self.holder >> SECOND == Holder::from(mark)
    }

    /// Occupies a line that nobody is moving for `way`.
    #[inline(always)]
    pub(super) fn occupy(&mut self, now: Ps, way: Ps) {
        self.busy_for = in_short(way);
        self.free_at = now + way;
    }

    /// The same where the way is one of [`Ways`](super::ways::Ways)'s table: it fits.
    #[inline(always)]
    pub(super) fn occupy_short(&mut self, now: Ps, way: Ps) {
        debug_assert!(u32::try_from(way.0).is_ok(), "{way:?} is no way of the table");
        self.busy_for = way.0 as u32;
        self.free_at = now + way;
    }

    /// What occupies the line goes on until `end`, if it did not last as long.
    #[inline(always)]
    pub(super) fn last_until(&mut self, end: Ps) {
        if end > self.free_at {
            self.busy_for = self.busy_for.saturating_add(in_short(end - self.free_at));
            self.free_at = end;
        }
    }

    /// Whether who has to wait so long came before the present busy time began: CPUs are simulated one path after the other, so a request may
    /// come late here although it came early in simulated time.
    #[inline(always)]
    fn came_before(&self, wait: Ps) -> bool {
        in_short(wait) > self.busy_for
    }

    /// Its lock is taken at `taken`, and nobody waited.
    #[inline(always)]
    pub(super) fn hold(&mut self, taken: Ps) {
        if taken > self.free_at {
            self.busy_for = 0;
            self.free_at = taken;
        }
    }

    /// How long whoever wants a copy waits for the line to arrive where it is on its way to: a clean line is copied to many at once.
    #[inline(always)]
    pub(super) fn wait(&self, now: Ps) -> Ps {
        let wait = self.free_at.saturating_sub(now);
        if self.came_before(wait) { Ps::ZERO } else { wait }
    }

    /// Waits while the line is on its way to somebody else, then occupies it for what is left of `way`: how long it waits, and how long the
    /// line travels then. The request travels while it waits, so that at best only the share `handoff` is left. One that came before the present
    /// busy time began is served at once.
    #[inline(always)]
    pub(super) fn queue(&mut self, now: Ps, way: Ps, handoff: Permille) -> (Ps, Ps) {
        if now >= self.free_at {
            self.occupy(now, way);
            return (Ps::ZERO, way);
        }
        let wait = self.free_at - now;
        if self.came_before(wait) {
            return (Ps::ZERO, way);
        }
        let left = Ps(handoff.of(way.0)).max(way.saturating_sub(wait));
        self.free_at += left;
        self.busy_for = self.busy_for.saturating_add(in_short(left));
        (wait, left)
    }
}
