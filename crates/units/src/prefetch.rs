//! Prefetching into the host's caches. With [`crate::Slots`], one of the two places of the workspace with unsafe code.
//!
//! With thousands of tasks, hardly anything that an event touches is in the host's nearer caches when the event comes.
//! An early load does not help: instructions behind a load that misses wait in the processor's window of a few hundred
//! instructions. A prefetch leaves that window at once. docs/speed.md says what it gains; decision 5, why it may be
//! unsafe.
#![allow(unsafe_code)]

/// Bytes of one of the host's cache lines.
const LINE: usize = 64;

/// Prefetches all of `value`. It changes nothing, and does nothing on hosts without such an instruction.
#[inline(always)]
pub fn prefetch<T>(value: &T) {
    let (size, first) = (const { size_of::<T>() }, address(value));
    for number in 0..size.div_ceil(LINE) {
        line(first.wrapping_add(number * LINE));
    }
    // The value need not begin at a cache line's begin, and may then extend into one more line.
    if size > 1 && align_of::<T>() < LINE {
        line(first.wrapping_add(size - 1));
    }
}

/// Prefetches the first `LINES` cache lines of a value that begins at the begin of a line. With one line, the value may
/// begin anywhere.
#[inline(always)]
pub fn prefetch_lines<const LINES: usize, T: ?Sized>(value: &T) {
    for number in 0..LINES {
        line(address(value).wrapping_add(number * LINE));
    }
}

fn address<T: ?Sized>(value: &T) -> *const i8 {
    (&raw const *value).cast()
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn line(at: *const i8) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: a prefetch reads nothing that the program sees and faults at no address.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(at) }
}

#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
fn line(_at: *const i8) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn asking_for_a_value_changes_nothing_whatever_its_size() {
        let (nothing, byte, page) = ((), 7_u8, vec![[5_u64; 17]; 31]);
        prefetch(&nothing);
        prefetch(&byte);
        prefetch(&page[30]);
        prefetch_lines::<3, _>(page.as_slice());
        prefetch_lines::<1, dyn std::fmt::Debug>(&page);
        assert_eq!((byte, page.concat().iter().sum::<u64>()), (7, 5 * 17 * 31));
    }
}
