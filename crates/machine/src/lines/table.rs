//! What the directory keeps of the lines of one region.

use super::WORD;
use std::ops::{Deref, DerefMut};

/// A vector of 32 bytes: where the region is known only to the data (a task's lines or a group's), the directory finds its table by one
/// shift, which spares each test for a line that is here two instructions.
#[derive(Clone, Debug)]
#[repr(align(32))]
pub(super) struct Table<T>(Vec<T>);

impl<T> Default for Table<T> {
    fn default() -> Table<T> {
        Table(Vec::new())
    }
}

impl<T> Deref for Table<T> {
    type Target = Vec<T>;
    #[inline(always)]
    fn deref(&self) -> &Vec<T> {
        &self.0
    }
}

impl<T> DerefMut for Table<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut Vec<T> {
        &mut self.0
    }
}

/// Puts these cores into a sharer set, and nobody else.
#[inline(always)]
pub(super) fn fill(sharers: &mut [u64], cores: [u16; 3]) {
    for (number, word) in sharers.iter_mut().enumerate() {
        let bit = |core: u16| if core as usize / WORD == number { 1 << (core as usize % WORD) } else { 0 };
        *word = bit(cores[0]) | bit(cores[1]) | bit(cores[2]);
    }
}
