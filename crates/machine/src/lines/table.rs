//! What the directory keeps of the lines of one region.

use super::WORD;
use super::entry::Entry;
use sched::layout::Line;
use std::ops::{Deref, DerefMut};

/// A vector of 32 bytes, what the region's lines are told apart by included: where the region is known only to the data (a task's lines or a
/// group's), the directory finds its table by one shift, which spares each test for a line that is here two instructions.
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

/// A line's entry and [address](super::ways::Ways::address), if anybody has touched it.
#[inline(always)]
pub(super) fn find(regions: &mut [Table<Entry>], line: Line) -> Option<(&mut Entry, u64)> {
    let table = &mut regions[line.region as usize];
    let address = table.address(line.index);
    Some((table.get_mut(line.index as usize)?, address))
}

/// Puts these cores into a sharer set, and nobody else.
#[inline(always)]
pub(super) fn fill(sharers: &mut [u64], cores: [u16; 3]) {
    for (number, word) in sharers.iter_mut().enumerate() {
        let bit = |core: u16| if core as usize / WORD == number { 1 << (core as usize % WORD) } else { 0 };
        *word = bit(cores[0]) | bit(cores[1]) | bit(cores[2]);
    }
}
