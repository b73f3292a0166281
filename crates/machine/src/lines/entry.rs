//! What the directory keeps of one line: who holds it, and until when it is on its way.

use units::Ps;

/// Who holds a line: the core that wrote last, or that read first, in the low half; whether it is [`MODIFIED`] or [`SHARED`]
/// above it. One word, because nearly every access asks for nothing else.
pub(super) type Holder = u32;

/// The owner alone holds it.
pub(super) const MODIFIED: Holder = 1 << 16;
/// Whoever is in the line's sharer set holds it.
pub(super) const SHARED: Holder = 1 << 17;
/// Nobody has touched it yet: the owner is the number of no core.
pub(super) const UNTOUCHED: Holder = u16::MAX as Holder;

/// What every access to a line looks at. Small: thousands of tasks have a dozen lines each.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    /// Until when the line is being moved or its lock is held, and for how many picoseconds it has been by then, without a gap.
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

    /// Occupies a line that nobody is moving for `way`.
    #[inline(always)]
    pub(super) fn occupy(&mut self, now: Ps, way: Ps) {
        self.busy_for = way.0 as u32;
        self.free_at = now + way;
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
        if wait.0 > u64::from(self.busy_for) { Ps::ZERO } else { wait }
    }

    /// Waits while the line is on its way to somebody else, then occupies it for `way`: how long it waits, and how long the line travels
    /// then. A request that comes before the
    /// present busy time began is served at once: CPUs are simulated one path after the other, so it may come late here although
    /// it came early in simulated time.
    #[inline(always)]
    pub(super) fn queue(&mut self, now: Ps, way: Ps) -> (Ps, Ps) {
        if now >= self.free_at {
            self.occupy(now, way);
            return (Ps::ZERO, way);
        }
        let wait = self.free_at - now;
        if wait.0 > u64::from(self.busy_for) {
            return (Ps::ZERO, way);
        }
        self.free_at += way;
        self.busy_for = self.busy_for.saturating_add(way.0 as u32);
        (wait, way)
    }
}
