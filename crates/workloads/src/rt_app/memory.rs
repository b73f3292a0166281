//! The cost of `mem`, `memrun` and `iorun`: cycles of work, and lines fetched from beyond the core's own caches.
//!
//! rt-app's loops overwrite with memset(), read or write each byte in turn, or follow pointers. Each loop passes
//! through its buffer again and again, so the caches that hold the buffer decide how long it takes. A core's own caches
//! count as if nobody else used them (after a switch the task fetches again what others have evicted, as for every
//! working set). The last level cache and memory are the machine's, shared with all that run there.

use super::description::{Buffer, Chain, MemAccess};
use machine::memory::{Fetches, Order};
use machine::prices::Prices;
use machine::smt::WorkKind;
use os::memory::RegionId;
use sim::program::Op;
use units::Cycles;

/// Cycles to overwrite 64 sequential bytes in level 1 (guess: 2, 1 to 4), and further away (4, 2 to 8), where lines are
/// prefetched.
const ROW_CYCLES: [u64; 2] = [2, 4];
const ROW: u64 = 64;
/// Latency in cycles of a pointer load from level 1 (guess: 4 to 5).
const POINTER: u64 = 5;
/// Thousandths of a cycle to read or write a byte, including its share of the loop (guess: 1 to 5).
const BYTE_MILLICYCLES: u64 = 1_500;
/// Cycles of a write() to /dev/null, which does not look at the bytes (guess: 200 to 1000).
const WRITE: u64 = 400;

/// A core's own caches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Caches {
    pub line_bytes: u64,
    pub l1_bytes: u64,
    pub l2_bytes: u64,
    /// Latency in cycles of a load from level 2.
    pub l2_load: Cycles,
}

impl From<&Prices> for Caches {
    fn from(prices: &Prices) -> Caches {
        Caches {
            line_bytes: prices.line_bytes,
            l1_bytes: prices.l1_bytes,
            l2_bytes: prices.l2_bytes,
            l2_load: prices.l2_load,
        }
    }
}

/// One pass through memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pass {
    pub work: Cycles,
    pub fetches: Fetches,
    /// The most bytes of the buffer that 1000 cycles of work pass through.
    bytes: u64,
}

impl Pass {
    /// `work` cycles that pass through `working_set` bytes, one line in each `line_millicycles` thousandths of a cycle.
    fn lines(caches: &Caches, work: u64, line_millicycles: u64, working_set: u64, order: Order) -> Pass {
        let lines = (1_000_000 / line_millicycles) as u32;
        let beyond = if working_set > caches.l2_bytes { lines } else { 0 };
        let fetches = Fetches { lines: beyond, working_set, order };
        Pass { work: Cycles(work), fetches, bytes: u64::from(lines) * caches.line_bytes }
    }

    /// The operations of a task that passes through `region`, on a CPU of `ps_per_cycle`.
    pub fn ops(self, region: RegionId, ps_per_cycle: u64) -> Vec<Op> {
        let bytes_per_second = (self.bytes * 1_000_000_000 / ps_per_cycle).max(1);
        let mut ops = vec![Op::Touch { region, bytes_per_second }];
        if self.fetches.lines > 0 {
            ops.push(Op::Fetch { kind: WorkKind::Memory, fetches: self.fetches });
        }
        ops.push(Op::Work(self.work));
        if self.fetches.lines > 0 {
            ops.push(Op::Fetch { kind: WorkKind::Compute, fetches: Fetches::default() });
        }
        ops.push(Op::Touch { region, bytes_per_second: 0 });
        ops
    }
}

/// `mem`: overwrites `bytes` bytes, in rounds through a buffer of `buffer` bytes.
pub(super) fn mem(caches: &Caches, bytes: u32, buffer: u32) -> Pass {
    let set = u64::from(bytes.min(buffer));
    let row = ROW_CYCLES[usize::from(set > caches.l1_bytes)];
    let line = row * 1_000 * caches.line_bytes / ROW;
    Pass::lines(caches, u64::from(bytes).div_ceil(ROW) * row, line, set, Order::Ahead)
}

/// `iorun`: writes `bytes` bytes, a buffer of `buffer` bytes at a time.
pub(super) fn iorun(bytes: u32, buffer: u32) -> Cycles {
    Cycles(u64::from(bytes.div_ceil(buffer)) * WRITE)
}

/// `memrun`: makes `count` accesses to a buffer.
pub(super) fn memrun(caches: &Caches, access: MemAccess, count: u32, buffer: &Buffer) -> Pass {
    match (access, buffer.chain) {
        (MemAccess::Chase, Some(chain)) => follow(caches, u64::from(count), u64::from(buffer.bytes), chain),
        _ => {
            let (work, set) = (u64::from(count) * BYTE_MILLICYCLES / 1_000, u64::from(buffer.bytes.min(count)));
            Pass::lines(caches, work, caches.line_bytes * BYTE_MILLICYCLES, set, Order::Ahead)
        }
    }
}

/// Follows `count` pointers. Pointers that lie in sequence are prefetched, and come as fast as their lines do.
fn follow(caches: &Caches, count: u64, bytes: u64, chain: Chain) -> Pass {
    let stride = u64::from(chain.stride_bytes);
    // Only the lines with a pointer in them are touched.
    let line = caches.line_bytes;
    let set = bytes / stride.max(line) * line;
    if chain.random {
        let pointer = if set > caches.l1_bytes && set <= caches.l2_bytes { caches.l2_load.0 } else { POINTER };
        let pointer = pointer.max(POINTER);
        return Pass::lines(caches, count * pointer, pointer * 1_000, set, Order::Chained);
    }
    let in_line = (line / stride.min(line)).max(1);
    Pass::lines(caches, count * POINTER, POINTER * in_line * 1_000, set, Order::Ahead)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CACHES: Caches = Caches { line_bytes: 64, l1_bytes: 32 << 10, l2_bytes: 1 << 20, l2_load: Cycles(14) };

    fn buffer(bytes: u32, stride_bytes: u32, random: bool) -> Buffer {
        Buffer { shared_as: None, bytes, chain: Some(Chain { stride_bytes, random }) }
    }

    /// Cycles, and how many lines in 1000 of them come from beyond the core's caches.
    fn of(pass: Pass) -> (u64, u32) {
        (pass.work.0, pass.fetches.lines)
    }

    #[test]
    fn overwriting_takes_lines_from_where_the_buffer_has_room() {
        let passes = |bytes, size| of(mem(&CACHES, bytes, size));
        assert_eq!([passes(64, 4 << 20), passes(65, 4 << 20)], [(2, 0), (4, 0)]);
        assert_eq!([passes(1 << 20, 32 << 10), passes(1 << 20, 4 << 20)], [(32_768, 0), (65_536, 0)]);
        assert_eq!(passes(8 << 20, 4 << 20), (8 << 14 << 2, 250));
        assert_eq!(mem(&CACHES, 8 << 20, 4 << 20).fetches.working_set, 4 << 20, "rounds through the buffer");
    }

    #[test]
    fn lines_of_128_bytes_are_half_as_many() {
        let wide = Caches { line_bytes: 128, ..CACHES };
        let lines = |caches: &Caches| {
            let of = [
                mem(caches, 8 << 20, 4 << 20),
                memrun(caches, MemAccess::Read, 2 << 20, &Buffer { chain: None, ..buffer(64 << 20, 64, false) }),
                memrun(caches, MemAccess::Chase, 1_000, &buffer(256 << 20, 8, false)),
            ];
            of.map(|pass| (pass.work.0, pass.fetches.lines, pass.bytes))
        };
        let (narrow, wide) = (lines(&CACHES), lines(&wide));
        assert_eq!(narrow, [(131_072 * 4, 250, 16_000), (3 << 20, 10, 640), (5_000, 25, 1_600)]);
        assert_eq!(wide, [(131_072 * 4, 125, 16_000), (3 << 20, 5, 640), (5_000, 12, 1_536)]);
    }

    #[test]
    fn a_pass_is_as_fast_as_its_work() {
        // 16000 bytes in 1000 cycles of 270 ps.
        let ops = mem(&CACHES, 8 << 20, 4 << 20).ops(RegionId(0), 270);
        assert!(matches!(ops[0], Op::Touch { region: RegionId(0), bytes_per_second: 59_259_259_259 }));
    }

    #[test]
    fn a_write_takes_the_same_whatever_its_bytes() {
        assert_eq!([iorun(1, 4_096).0, iorun(4_096, 4_096).0, iorun(4_097, 4_096).0], [400, 400, 800]);
    }

    #[test]
    fn bytes_in_turn_come_at_the_pace_of_the_loop() {
        for access in [MemAccess::Read, MemAccess::Write] {
            let plain = Buffer { chain: None, ..buffer(64 << 20, 64, false) };
            assert_eq!(of(memrun(&CACHES, access, 1_000, &plain)), (1_500, 0), "of 64 MiB it reads 1000 bytes");
            // One line every 96 cycles.
            assert_eq!(of(memrun(&CACHES, access, 2 << 20, &plain)), (3 << 20, 10));
        }
    }

    #[test]
    fn pointers_take_as_long_as_the_cache_that_holds_them_is_away() {
        let chase = |buffer: Buffer| of(memrun(&CACHES, MemAccess::Chase, 1_000, &buffer));
        let sizes = [16 << 10, 512 << 10, 8 << 20];
        assert_eq!(sizes.map(|bytes| chase(buffer(bytes, 64, true))), [(5_000, 0), (14_000, 0), (5_000, 200)]);
        assert_eq!(memrun(&CACHES, MemAccess::Chase, 1, &buffer(8 << 20, 64, true)).fetches.order, Order::Chained);
        assert_eq!(sizes.map(|bytes| chase(buffer(bytes, 64, false))), [(5_000, 0), (5_000, 0), (5_000, 200)]);
        // A pointer every 4 KiB touches a 64th of the lines. With eight pointers to a line, the first brings the other
        // seven.
        assert_eq!(chase(buffer(1 << 20, 4_096, true)), (5_000, 0));
        assert_eq!(chase(buffer(256 << 20, 8, false)), (5_000, 25));
    }
}
