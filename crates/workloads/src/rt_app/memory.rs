//! What `mem`, `memrun` and `iorun` take: cycles of work, by the size of the buffer that they go through.
//!
//! rt-app's loops are overwriting with memset(), a read or write of each byte in turn, and following pointers. All three go through their buffer again and
//! again, so what they take is decided by the smallest cache that holds it. The caches are those of a common server core, not the machine's, and nobody
//! else is in them: a task's demand on caches and memory that others share is what a script's `set=` and `lines=` are for.

use super::description::{Buffer, Chain, MemAccess};
use units::Cycles;

/// A cache that holds buffers up to so many bytes, or memory.
struct Level {
    bytes: u64,
    /// Cycles to overwrite 64 bytes of it in a row (guess: 2, 2 to 4, 4 to 16, 12 to 40).
    line: u64,
    /// Cycles until a pointer in it has come (guess: 4 to 5, 12 to 16, 40 to 80, 200 to 500).
    pointer: u64,
}

const LEVELS: [Level; 4] = [
    Level { bytes: 32 << 10, line: 2, pointer: 5 },
    Level { bytes: 1 << 20, line: 4, pointer: 14 },
    Level { bytes: 16 << 20, line: 8, pointer: 60 },
    Level { bytes: u64::MAX, line: 20, pointer: 300 },
];
const LINE: u64 = 64;
/// A byte that is read or written, with its share of the loop (guess: 1 to 5); lines come ahead of it, from memory too.
const BYTE_MILLICYCLES: u64 = 1_500;
/// A write() to /dev/null, which looks at no byte of it (guess: 200 to 1000).
const WRITE: u64 = 400;

fn level(bytes: u64) -> &'static Level {
    LEVELS.iter().find(|level| bytes <= level.bytes).expect("memory holds everything")
}

/// `mem`: so many bytes overwritten, in rounds through a buffer of `buffer` bytes.
pub(super) fn mem(bytes: u32, buffer: u32) -> Cycles {
    let lines = u64::from(bytes).div_ceil(LINE);
    Cycles(lines * level(u64::from(bytes.min(buffer))).line)
}

/// `iorun`: so many bytes written, a buffer of `buffer` bytes at a time.
pub(super) fn iorun(bytes: u32, buffer: u32) -> Cycles {
    Cycles(u64::from(bytes.div_ceil(buffer)) * WRITE)
}

/// `memrun`: so many accesses to a buffer.
pub(super) fn memrun(access: MemAccess, count: u32, buffer: &Buffer) -> Cycles {
    let count = u64::from(count);
    match (access, buffer.chain) {
        (MemAccess::Chase, Some(chain)) => Cycles(count * follow(u64::from(buffer.bytes), chain)),
        _ => Cycles(count * BYTE_MILLICYCLES / 1_000),
    }
}

/// Cycles from one pointer to the next. Those that lie in a row come ahead of time, as fast as their lines do.
fn follow(bytes: u64, chain: Chain) -> u64 {
    let stride = u64::from(chain.stride_bytes);
    // Only the lines with a pointer in them are touched.
    let touched = level(bytes / stride.max(LINE) * LINE);
    let share_of_line = touched.line * stride.min(LINE) / LINE;
    if chain.random { touched.pointer } else { LEVELS[0].pointer.max(share_of_line) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn buffer(bytes: u32, stride_bytes: u32, random: bool) -> Buffer {
        Buffer { shared_as: None, bytes, chain: Some(Chain { stride_bytes, random }) }
    }

    #[test]
    fn overwriting_takes_longer_where_the_buffer_has_room_only_farther_out() {
        let cycles = |bytes, size| mem(bytes, size).0;
        assert_eq!([cycles(64, 4 << 20), cycles(65, 4 << 20), cycles(1 << 20, 32 << 10)], [2, 4, 32_768]);
        assert_eq!([cycles(1 << 20, 4 << 20), cycles(8 << 20, 4 << 20)], [65_536, 1 << 20]);
        assert_eq!(cycles(64 << 20, 64 << 20), 20 << 20);
    }

    #[test]
    fn a_write_takes_the_same_whatever_its_bytes() {
        assert_eq!([iorun(1, 4_096).0, iorun(4_096, 4_096).0, iorun(4_097, 4_096).0], [400, 400, 800]);
    }

    #[test]
    fn bytes_in_turn_come_at_the_pace_of_the_loop() {
        for access in [MemAccess::Read, MemAccess::Write] {
            let plain = Buffer { chain: None, ..buffer(64 << 20, 64, false) };
            assert_eq!(memrun(access, 1_000, &plain).0, 1_500);
        }
    }

    #[test]
    fn pointers_take_as_long_as_the_cache_that_holds_them_is_away() {
        let chase = |buffer: Buffer| memrun(MemAccess::Chase, 1_000, &buffer).0 / 1_000;
        let sizes = [16 << 10, 512 << 10, 8 << 20, 256 << 20];
        assert_eq!(sizes.map(|bytes| chase(buffer(bytes, 64, true))), [5, 14, 60, 300]);
        assert_eq!(sizes.map(|bytes| chase(buffer(bytes, 64, false))), [5, 5, 8, 20]);
        // A pointer every 4 KiB: a 64th of the lines; eight to a line: the first brings the others.
        assert_eq!([chase(buffer(1 << 20, 4_096, true)), chase(buffer(256 << 20, 8, false))], [5, 5]);
    }
}
