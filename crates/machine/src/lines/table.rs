//! The directory's entries and sharer sets for the lines of one region.

use super::WORD;
use super::entry::Entry;
use sched::layout::Line;
use std::ops::{Deref, DerefMut};

/// A vector and the region's part of a line's address, in 32 bytes. Where the region is known only at run time (a
/// task's lines or a group's), the directory then finds its table by one shift. That saves two instructions in each
/// test for a line in the core's own caches.
#[derive(Clone, Debug)]
#[repr(align(32))]
pub(super) struct Table<T> {
    slots: Vec<T>,
    /// [`Ways::address`](super::ways::Ways::address) of the first line.
    first: u64,
}

impl<T> Table<T> {
    pub(super) fn new(first: u64) -> Table<T> {
        Table { slots: Vec::new(), first }
    }

    /// [`Ways::address`](super::ways::Ways::address) of a line.
    #[inline(always)]
    pub(super) fn address(&self, index: u32) -> u64 {
        self.first ^ u64::from(index)
    }
}

impl<T> Deref for Table<T> {
    type Target = Vec<T>;
    #[inline(always)]
    fn deref(&self) -> &Vec<T> {
        &self.slots
    }
}

impl<T> DerefMut for Table<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut Vec<T> {
        &mut self.slots
    }
}

/// A line's entry and [address](super::ways::Ways::address); `None` if nothing has touched so high a line yet.
#[inline(always)]
pub(super) fn find(regions: &mut [Table<Entry>], line: Line) -> Option<(&mut Entry, u64)> {
    let table = &mut regions[line.region as usize];
    let address = table.address(line.index);
    Some((table.get_mut(line.index as usize)?, address))
}

/// Makes a sharer set contain these cores and no others.
#[inline(always)]
pub(super) fn fill(sharers: &mut [u64], cores: [u16; 3]) {
    for (number, word) in sharers.iter_mut().enumerate() {
        let bit = |core: u16| if core as usize / WORD == number { 1 << (core as usize % WORD) } else { 0 };
        *word = bit(cores[0]) | bit(cores[1]) | bit(cores[2]);
    }
}
