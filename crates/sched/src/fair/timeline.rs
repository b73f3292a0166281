//! fair.c, "Scheduling class tree data structure manipulation methods": what waits on a queue, by vruntime.
//!
//! The kernel keeps a red-black tree. What counts is the order it gives: by `vruntime`, compared as a signed difference
//! because it wraps, and among equals the one that came first stands first, as the tree's insertion sends an equal to
//! the right.

use crate::sched::SeId;

/// fair.c: entity_before().
/// Differs: takes bare vruntimes.
#[inline]
pub fn entity_before(a: u64, b: u64) -> bool {
    (a.wrapping_sub(b) as i64) < 0
}

/// sched.h: cfs_rq->tasks_timeline.
///
/// One array, from the last to run to the first: queues are short (few hold more than a hundred), the first leaves and
/// comes back most, and an array that ends in the first moves little then.
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    entries: Vec<Entry>,
}

/// A waiting entity and its key, copied so that searching stays within the array. A queued entity's vruntime never changes.
#[derive(Clone, Copy, Debug)]
struct Entry {
    vruntime: u64,
    se: SeId,
}

impl Timeline {
    /// What `__enqueue_entity()` does to the tree.
    #[inline]
    pub fn insert(&mut self, vruntime: u64, se: SeId) {
        // Most insertions go to one of the ends: behind everything (the one that just ran), or before it (a wakeup).
        let at = match self.entries.first() {
            Some(last) if entity_before(vruntime, last.vruntime) => {
                self.entries.partition_point(|e| entity_before(vruntime, e.vruntime))
            }
            _ => 0,
        };
        self.entries.insert(at, Entry { vruntime, se });
    }

    /// What `__dequeue_entity()` does to the tree. `vruntime` is what `se` was inserted with.
    ///
    /// # Panics
    /// If `se` is not here.
    #[inline]
    pub fn remove(&mut self, vruntime: u64, se: SeId) {
        if self.entries.last().is_some_and(|e| e.se == se) {
            self.entries.pop();
        } else {
            let at = self.position(vruntime, se);
            self.entries.remove(at);
        }
    }

    fn position(&self, vruntime: u64, se: SeId) -> usize {
        let from = self.entries.partition_point(|e| entity_before(vruntime, e.vruntime));
        let among_equals = self.entries[from..].iter().position(|e| e.se == se);
        from + among_equals.unwrap_or_else(|| panic!("{se:?} with vruntime {vruntime} does not wait here"))
    }

    /// Who runs first (`__pick_first_entity()`).
    #[inline]
    pub fn leftmost(&self) -> Option<SeId> {
        self.entries.last().map(|e| e.se)
    }

    /// The smallest vruntime.
    #[inline]
    pub fn leftmost_vruntime(&self) -> Option<u64> {
        self.entries.last().map(|e| e.vruntime)
    }

    /// The one after `se` (`__pick_next_entity()`).
    ///
    /// # Panics
    /// If `se` is not here.
    pub fn next_after(&self, vruntime: u64, se: SeId) -> Option<SeId> {
        let at = self.position(vruntime, se);
        at.checked_sub(1).map(|next| self.entries[next].se)
    }

    /// Who runs last (`__pick_last_entity()`).
    pub fn last(&self) -> Option<SeId> {
        self.entries.first().map(|e| e.se)
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// From the first to run to the last.
    pub fn iter(&self) -> impl Iterator<Item = SeId> + '_ {
        self.entries.iter().rev().map(|e| e.se)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::Prng;

    /// The order as one would write it down: each comes to stand behind the last that is not greater.
    #[derive(Default)]
    struct Naive(Vec<(u64, SeId)>);

    impl Naive {
        fn insert(&mut self, vruntime: u64, se: SeId) {
            let mut at = self.0.len();
            while at > 0 && entity_before(vruntime, self.0[at - 1].0) {
                at -= 1;
            }
            self.0.insert(at, (vruntime, se));
        }
    }

    #[test]
    fn agrees_with_a_plain_list_on_random_input() {
        let mut random = Prng::stream(5, "timeline", 0);
        // Around the wrap, and narrow enough for many equals.
        for (base, width) in [(u64::MAX - 40, 80), (1 << 40, 5), (0u64.wrapping_sub(1 << 20), 1 << 24)] {
            let (mut timeline, mut naive) = (Timeline::default(), Naive::default());
            for number in 0..3_000 {
                if random.below(5) < 3 || naive.0.is_empty() {
                    let vruntime = base.wrapping_add(random.below(width));
                    timeline.insert(vruntime, SeId(number));
                    naive.insert(vruntime, SeId(number));
                } else {
                    let at = if random.below(2) == 0 { 0 } else { random.below(naive.0.len() as u64) as usize };
                    let (vruntime, se) = naive.0[at];
                    assert_eq!(timeline.next_after(vruntime, se), naive.0.get(at + 1).map(|e| e.1));
                    timeline.remove(vruntime, se);
                    naive.0.remove(at);
                }
                assert_eq!(timeline.leftmost(), naive.0.first().map(|e| e.1));
                assert_eq!(timeline.leftmost_vruntime(), naive.0.first().map(|e| e.0));
                assert_eq!(timeline.last(), naive.0.last().map(|e| e.1));
                assert_eq!((timeline.len(), timeline.is_empty()), (naive.0.len(), naive.0.is_empty()));
            }
            assert!(timeline.iter().eq(naive.0.iter().map(|e| e.1)));
        }
    }

    #[test]
    fn equals_run_in_the_order_they_came() {
        let mut timeline = Timeline::default();
        for se in 1..=3 {
            timeline.insert(100, SeId(se));
        }
        timeline.insert(99, SeId(4));
        timeline.insert(u64::MAX, SeId(5));
        assert!(timeline.iter().eq([5, 4, 1, 2, 3].map(SeId)), "u64::MAX lies before 99");
        timeline.remove(100, SeId(1));
        timeline.insert(100, SeId(1));
        assert!(timeline.iter().eq([5, 4, 2, 3, 1].map(SeId)));
    }

    #[test]
    #[should_panic(expected = "does not wait here")]
    fn removing_what_is_not_here_is_our_bug() {
        let mut timeline = Timeline::default();
        timeline.insert(1, SeId(1));
        timeline.remove(1, SeId(2));
    }
}
