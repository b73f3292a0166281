//! fair.c, "Scheduling class tree data structure manipulation methods": the waiting entities of a queue, in order.
//!
//! The kernel keeps a red-black tree. What matters is its order: by `vruntime`, compared as a signed difference because
//! it wraps; equals stay in the order of their insertion, because the tree puts an equal to the right.

use crate::sched::SeId;
use units::prefetch_lines;

/// fair.c: entity_before().
/// Differs: takes bare vruntimes.
#[inline]
pub fn entity_before(a: u64, b: u64) -> bool {
    (a.wrapping_sub(b) as i64) < 0
}

/// sched.h: cfs_rq->tasks_timeline. Ordered by vruntime, since v6.6 by deadline.
///
/// An array, from the last to run to the first. Queues are short (few hold more than a hundred entities), the first
/// entity leaves and returns most often, and an array that ends with it then moves little.
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    entries: Vec<Entry>,
    /// The shortest and the longest slice of the waiting entities; meaningless while the timeline is empty.
    least: Extreme,
    greatest: Extreme,
}

/// One extreme of all slices (in ns), and how many entities ask for it.
#[derive(Clone, Copy, Debug, Default)]
struct Extreme {
    slice: u32,
    count: u32,
}

impl Extreme {
    fn of(slice: u32) -> Extreme {
        Extreme { slice, count: 1 }
    }

    /// Adds an entity. `beyond`: its slice exceeds the extreme.
    #[inline]
    fn add(&mut self, slice: u32, beyond: bool) {
        if beyond {
            *self = Extreme::of(slice);
        } else {
            self.count += u32::from(slice == self.slice);
        }
    }

    /// Removes an entity. Returns true if no other asks for this slice.
    #[inline]
    fn forget(&mut self, slice: u32) -> bool {
        self.count -= u32::from(slice == self.slice);
        self.count == 0
    }

    fn find(slices: impl Iterator<Item = u32> + Clone, pick: fn(u32, u32) -> u32) -> Extreme {
        let slice = slices.clone().reduce(pick).expect("it is not empty");
        Extreme { slice, count: slices.filter(|&other| other == slice).count() as u32 }
    }
}

/// A waiting entity, with copies of what searches need, so that they stay within the array. A queued entity's key and
/// vruntime never change.
#[derive(Clone, Copy, Debug)]
struct Entry {
    /// The vruntime or the deadline.
    key: u64,
    vruntime: u64,
    /// In ns.
    slice: u32,
    se: SeId,
}

impl Timeline {
    /// What `__enqueue_entity()` does to the tree until v6.5.
    #[inline]
    pub fn insert(&mut self, vruntime: u64, se: SeId) {
        self.insert_entry(Entry { key: vruntime, vruntime, slice: NO_SLICE, se });
    }

    /// What `__enqueue_entity()` does to the tree since v6.6. `slice` in ns.
    #[inline]
    pub fn insert_deadline(&mut self, deadline: u64, vruntime: u64, slice: u32, se: SeId) {
        if self.entries.is_empty() {
            (self.least, self.greatest) = (Extreme::of(slice), Extreme::of(slice));
        } else {
            self.add_slice(slice);
        }
        self.insert_entry(Entry { key: deadline, vruntime, slice, se });
    }

    #[inline]
    fn insert_entry(&mut self, entry: Entry) {
        match self.entries.last() {
            Some(first) if !entity_before(entry.key, first.key) => self.insert_behind(entry),
            _ => self.entries.push(entry),
        }
    }

    /// The same, if another entity runs first.
    fn insert_behind(&mut self, entry: Entry) {
        // Most go behind all others: an entity that just ran.
        let at = match self.entries.first() {
            Some(last) if entity_before(entry.key, last.key) => {
                self.entries.partition_point(|e| entity_before(entry.key, e.key))
            }
            _ => 0,
        };
        self.entries.insert(at, entry);
    }

    /// What `__dequeue_entity()` does to the tree until v6.5. `key` is the one with which `se` was inserted.
    ///
    /// # Panics
    /// If `se` is not here.
    #[inline]
    pub fn remove(&mut self, key: u64, se: SeId) {
        self.take(key, se);
    }

    /// What `__dequeue_entity()` does to the tree since v6.6.
    ///
    /// # Panics
    /// If `se` is not here.
    #[inline]
    pub fn remove_deadline(&mut self, deadline: u64, se: SeId) {
        let slice = self.take(deadline, se);
        if !self.entries.is_empty() {
            self.forget_slice(slice);
        }
    }

    /// Takes `se` out. Returns its slice.
    #[inline]
    fn take(&mut self, key: u64, se: SeId) -> u32 {
        match self.entries.last() {
            Some(&Entry { se: first, slice, .. }) if first == se => {
                self.entries.truncate(self.entries.len() - 1);
                slice
            }
            _ => self.take_behind(key, se),
        }
    }

    /// The same, if another entity runs first.
    #[inline(never)]
    fn take_behind(&mut self, key: u64, se: SeId) -> u32 {
        let at = self.position(key, se);
        self.entries.remove(at).slice
    }

    fn position(&self, key: u64, se: SeId) -> usize {
        let from = self.entries.partition_point(|e| entity_before(key, e.key));
        let among_equals = self.entries[from..].iter().position(|e| e.se == se);
        from + among_equals.unwrap_or_else(|| panic!("{se:?} with key {key} does not wait here"))
    }

    /// Prefetches the first entity, which is needed soon.
    #[inline(always)]
    pub fn foresee(&self) {
        prefetch_lines::<1, _>(&self.entries[self.entries.len().saturating_sub(1)..]);
    }

    /// The entity that runs first (`__pick_first_entity()`).
    #[inline]
    pub fn leftmost(&self) -> Option<SeId> {
        self.entries.last().map(|e| e.se)
    }

    /// The vruntime of the entity that runs first: the smallest, if the order is by vruntime.
    #[inline]
    pub fn leftmost_vruntime(&self) -> Option<u64> {
        self.entries.last().map(|e| e.vruntime)
    }

    /// The smallest vruntime of all, whatever the order (v6.6: `min_vruntime` of the tree's root).
    pub fn min_vruntime(&self) -> Option<u64> {
        let vruntimes = self.entries.iter().map(|e| e.vruntime);
        vruntimes.reduce(|least, vruntime| if entity_before(vruntime, least) { vruntime } else { least })
    }

    /// The first entity whose vruntime is `eligible`, with its key.
    #[inline]
    pub fn first_eligible(&self, eligible: impl Fn(u64) -> bool) -> Option<(u64, SeId)> {
        self.entries.iter().rev().find(|e| eligible(e.vruntime)).map(|e| (e.key, e.se))
    }

    /// Of the entities whose vruntime is `eligible` and whose key is the least the one with the least vruntime, with its key.
    pub fn first_eligible_by_vruntime(&self, eligible: impl Fn(u64) -> bool) -> Option<(u64, SeId)> {
        let mut best: Option<&Entry> = None;
        for entry in self.entries.iter().rev().filter(|e| eligible(e.vruntime)) {
            match best {
                Some(best) if best.key != entry.key => break,
                Some(best) if !entity_before(entry.vruntime, best.vruntime) => {}
                _ => best = Some(entry),
            }
        }
        best.map(|e| (e.key, e.se))
    }

    /// The entity after `se` (`__pick_next_entity()`).
    ///
    /// # Panics
    /// If `se` is not here.
    pub fn next_after(&self, key: u64, se: SeId) -> Option<SeId> {
        let at = self.position(key, se);
        at.checked_sub(1).map(|next| self.entries[next].se)
    }

    /// The entity that runs last (`__pick_last_entity()`).
    pub fn last(&self) -> Option<SeId> {
        self.entries.first().map(|e| e.se)
    }

    /// The shortest slice that a waiting entity asks for, in ns.
    #[inline]
    pub fn least_slice(&self) -> Option<u32> {
        (!self.is_empty()).then_some(self.least.slice)
    }

    /// The longest slice, in ns.
    #[inline]
    pub fn greatest_slice(&self) -> Option<u32> {
        (!self.is_empty()).then_some(self.greatest.slice)
    }

    /// A waiting entity asks for another slice.
    ///
    /// # Panics
    /// If `se` is not here.
    pub fn set_slice(&mut self, key: u64, se: SeId, slice: u32) {
        let at = self.position(key, se);
        let old = std::mem::replace(&mut self.entries[at].slice, slice);
        self.add_slice(slice);
        self.forget_slice(old);
    }

    #[inline]
    fn add_slice(&mut self, slice: u32) {
        self.least.add(slice, slice < self.least.slice);
        self.greatest.add(slice, slice > self.greatest.slice);
    }

    /// Removes an entity that asked for `slice` from the extremes; others remain.
    #[inline]
    fn forget_slice(&mut self, slice: u32) {
        if self.least.forget(slice) {
            self.least = Extreme::find(self.entries.iter().map(|e| e.slice), u32::min);
        }
        if self.greatest.forget(slice) {
            self.greatest = Extreme::find(self.entries.iter().map(|e| e.slice), u32::max);
        }
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

/// The slice under CFS, which does not use slices here.
const NO_SLICE: u32 = 0;

#[cfg(test)]
mod tests {
    use super::*;
    use units::Prng;

    /// The order in its simplest form: each entity goes behind the last one that is not greater.
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
        // Around the wrap, and in a range so narrow that there are many equals.
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
