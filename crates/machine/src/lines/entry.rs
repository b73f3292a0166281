//! What the directory keeps about one line: which cores hold it, and until when it is in flight.

use units::{Permille, Ps};

/// Who holds a line, in one word, because nearly every access needs nothing else. The low half is the owner: the core
/// that wrote last, or that read first. The bits above say who else holds it: nobody ([`MODIFIED`]), one more core with
/// a copy, or the cores of a sharer set ([`SET`]). Most lines have one writer and one reader; for those the sharer set
/// is never looked at.
pub(super) type Holder = u32;

/// The owner alone holds it.
pub(super) const MODIFIED: Holder = 1 << 16;
/// The cores in the line's sharer set hold it, at least three. From this value up, other cores may have copies.
pub(super) const SET: Holder = 1 << 17;
/// Set beside [`SET`]: the sharer set has cores of more than one last level cache.
pub(super) const SPREAD: Holder = 1 << 18;
/// In a shared line without a set, the bits from this one up name the core with the other copy: its number plus one.
/// They name the owner itself if nobody else has a copy.
const SECOND: u32 = 18;
/// No core has touched the line yet: the owner is a number that no core has.
pub(super) const UNTOUCHED: Holder = u16::MAX as Holder;

/// How [`Entry::holder`] names `core` as the second holder.
#[inline(always)]
pub(super) fn mark_of(core: u16) -> u16 {
    core + 1
}

/// A time in picoseconds in the range of [`Entry::busy_for`].
#[inline(always)]
fn in_short(time: Ps) -> u32 {
    time.0.min(u64::from(u32::MAX)) as u32
}

/// What every access to a line looks at. It is kept small: there are thousands of tasks, with a dozen lines each.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    /// `free_at` is when the line's transfer ends or its lock is released. `busy_for` is for how many picoseconds the
    /// line will have been busy by then, without a gap. It saturates at 4.3 ms.
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

    /// Whether all copies are clean.
    #[inline(always)]
    pub(super) fn is_shared(&self) -> bool {
        self.holder >= SET
    }

    /// Whether the sharers are listed in the line's sharer set.
    #[inline(always)]
    pub(super) fn has_set(&self) -> bool {
        self.holder & SET != 0
    }

    /// Of a shared line without a set: the core that has a copy beside the owner, or the owner itself if there is none.
    #[inline(always)]
    pub(super) fn second(&self) -> u16 {
        (self.holder >> SECOND) as u16 - 1
    }

    /// The owner and the core of this mark have clean copies, and nobody else.
    #[inline(always)]
    pub(super) fn share(&mut self, mark: u16) {
        self.holder = Holder::from(self.owner()) | Holder::from(mark) << SECOND;
    }

    /// From now on the sharer set says who has a copy.
    #[inline(always)]
    pub(super) fn begin_set(&mut self, spread: bool) {
        self.holder = Holder::from(self.owner()) | SET | if spread { SPREAD } else { 0 };
    }

    /// Whether the line has no set, and the core of this mark has the second copy.
    #[inline(always)]
    pub(super) fn has_second(&self, mark: u16) -> bool {
        self.holder >> SECOND == Holder::from(mark)
    }

    /// Begins a transfer of length `way` of a line that is not in flight.
    #[inline(always)]
    pub(super) fn occupy(&mut self, now: Ps, way: Ps) {
        self.busy_for = in_short(way);
        self.free_at = now + way;
    }

    /// The same for a way from the table of [`Ways`](super::ways::Ways), which fits into 32 bits.
    #[inline(always)]
    pub(super) fn occupy_short(&mut self, now: Ps, way: Ps) {
        debug_assert!(u32::try_from(way.0).is_ok(), "{way:?} is no way of the table");
        self.busy_for = way.0 as u32;
        self.free_at = now + way;
    }

    /// Prolongs the line's busy time to `end`, if it would end earlier.
    #[inline(always)]
    pub(super) fn last_until(&mut self, end: Ps) {
        if end > self.free_at {
            self.busy_for = self.busy_for.saturating_add(in_short(end - self.free_at));
            self.free_at = end;
        }
    }

    /// Whether a request that would wait this long came before the present busy time began. CPUs are simulated one path
    /// after the other, so the directory may see a request late that is early in simulated time.
    #[inline(always)]
    fn came_before(&self, wait: Ps) -> bool {
        in_short(wait) > self.busy_for
    }

    /// The line's lock is taken at `taken`; nobody had to wait for it.
    #[inline(always)]
    pub(super) fn hold(&mut self, taken: Ps) {
        if taken > self.free_at {
            self.busy_for = 0;
            self.free_at = taken;
        }
    }

    /// How long a reader waits for a line in flight to arrive. It does not prolong the busy time: a clean line is
    /// copied to many cores at once.
    #[inline(always)]
    pub(super) fn wait(&self, now: Ps) -> Ps {
        let wait = self.free_at.saturating_sub(now);
        if self.came_before(wait) { Ps::ZERO } else { wait }
    }

    /// Waits until the line has served earlier requests, then occupies it for what is left of `way`. Returns the wait,
    /// and how long the line then travels. The request itself travels while it waits, so at best only the share
    /// `handoff` of the way is left. A request that came before the present busy time began is served at once.
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
