//! Storage behind ids: the one place of the workspace where an index is not checked.
//!
//! Every id is made by the owner of the storage: a [`crate::PerCpu`] has a slot for each CPU of the machine, an arena
//! gives out the ids of its own slots, and neither ever shrinks. So a wrong id is a bug of ours; builds with debug
//! assertions, such as the tests, stop at it. docs/decisions/0005 has the measurement that justifies it.
#![allow(unsafe_code)]

use std::ops::{Deref, DerefMut, Index, IndexMut};

/// A vector indexed by numbers that were made together with its slots.
///
/// Not for numbers that come from anywhere else: those go through `get`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Slots<T>(Vec<T>);

impl<T> Slots<T> {
    pub const fn new() -> Slots<T> {
        Slots(Vec::new())
    }

    pub fn push(&mut self, value: T) {
        self.0.push(value);
    }

    /// Makes room for `len` slots. It never removes any.
    pub fn grow_with(&mut self, len: usize, make: impl FnMut() -> T) {
        if self.0.len() < len {
            self.0.resize_with(len, make);
        }
    }
}

impl<T> FromIterator<T> for Slots<T> {
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> Slots<T> {
        Slots(values.into_iter().collect())
    }
}

impl<T> Deref for Slots<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<T> DerefMut for Slots<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.0
    }
}

impl<T> Index<usize> for Slots<T> {
    type Output = T;
    #[inline(always)]
    fn index(&self, slot: usize) -> &T {
        debug_assert!(slot < self.0.len(), "slot {slot} of {}", self.0.len());
        // SAFETY: the number was made with the slot it names, and slots are never taken away.
        unsafe { self.0.get_unchecked(slot) }
    }
}

impl<T> IndexMut<usize> for Slots<T> {
    #[inline(always)]
    fn index_mut(&mut self, slot: usize) -> &mut T {
        debug_assert!(slot < self.0.len(), "slot {slot} of {}", self.0.len());
        // SAFETY: as above.
        unsafe { self.0.get_unchecked_mut(slot) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_keep_their_places_while_they_grow() {
        let mut slots: Slots<u32> = (0..3).collect();
        slots.push(3);
        slots.grow_with(6, || 9);
        slots.grow_with(2, || 0);
        slots[1] = 7;
        assert_eq!(*slots, [0, 7, 2, 3, 9, 9]);
    }

    #[test]
    #[cfg(debug_assertions)]
    #[should_panic(expected = "slot 1 of 1")]
    fn a_number_of_no_slot_is_seen_where_tests_run() {
        let slots: Slots<u32> = (0..1).collect();
        let _ = slots[1];
    }
}
