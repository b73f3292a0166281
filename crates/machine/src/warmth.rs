//! What a task finds of its data in the caches of the core it comes to, and what fetching the rest costs.
//!
//! A task has a working set (bytes it uses again after a switch). It leaves it in the level-2 cache of its core, as much as that holds, and
//! in the last level cache; what others bring in there meanwhile pushes it out, byte for byte. On another core of the same last
//! level cache it comes from there, on one elsewhere from the other cache; and what was pushed out there as well, from memory.
//!
//! What pushes data out of a core's cache: others' working sets, and lines that tasks stream through it ([`Warmth::streamed`]). What
//! pushes it out of a last level cache: what they stream from memory ([`Warmth::streamed`]), and, where all that tasks have touched there
//! since is more than it holds, a share of everybody's data: as much of it as does not fit. (Least recently used would keep nothing of sets
//! that take turns, one line too many; the caches of Intel's cores since Ivy Bridge adapt so that a part survives.)
//!
//! Modelled: level 2 least recently used, whole working sets. Absent: level 1 on its own.

use crate::prices::Prices;
use crate::topology::{Distance, Topology};
use units::{CpuId, Ps};

/// Bytes of a cache line.
const LINE: u64 = 64;

/// Where a task's data was left.
#[derive(Clone, Copy, Debug)]
struct Left {
    cpu: CpuId,
    /// What that core's cache, and its last level cache, had taken in by then.
    clock: u64,
    llc_clock: u64,
    /// What had come through the last level cache by then.
    passed: u64,
}

/// The working sets of all tasks, by task number, and what each cache has taken in.
#[derive(Clone, Debug)]
pub struct Warmth {
    left: Vec<Option<Left>>,
    /// Bytes brought into each core's cache so far.
    taken_in: Vec<u64>,
    /// The same when a tick was last there: what it uses was in the cache then.
    ticked: Vec<u64>,
    /// Bytes brought into each last level cache that were not there.
    llc_taken_in: Vec<u64>,
    /// Bytes that came through each last level cache: working sets that a core did not have, and what was copied.
    llc_passed: Vec<u64>,
}

impl Warmth {
    pub fn new(topology: &Topology) -> Warmth {
        Warmth {
            left: Vec::new(),
            taken_in: vec![0; topology.cores().len()],
            ticked: vec![0; topology.cores().len()],
            llc_taken_in: vec![0; topology.llcs().len()],
            llc_passed: vec![0; topology.llcs().len()],
        }
    }

    /// The task's number goes to another: it has left nothing anywhere.
    pub fn forget(&mut self, task: usize) {
        if let Some(left) = self.left.get_mut(task) {
            *left = None;
        }
    }

    /// A task with `working_set` bytes begins to run on `cpu`: how long refilling the caches stalls it.
    pub fn switch_in(&mut self, topology: &Topology, prices: &Prices, task: usize, working_set: u64, cpu: CpuId) -> Ps {
        if self.left.len() <= task {
            self.left.resize(task + 1, None);
        }
        let core = topology.cpu(cpu).core as usize;
        // What the core's cache cannot hold was never there to be fetched again.
        let kept = working_set.min(prices.l2_bytes);
        let missing = match self.left[task] {
            Some(left) if topology.cpu(left.cpu).core as usize == core => {
                let others = self.taken_in[core].saturating_sub(left.clock);
                (others + kept).saturating_sub(prices.l2_bytes).min(kept)
            }
            Some(left) if topology.cpu(left.cpu).llc == topology.cpu(cpu).llc => kept,
            _ => working_set,
        };
        self.taken_in[core] += missing;
        self.llc_passed[topology.cpu(cpu).llc as usize] += missing;
        let Some(left) = self.left[task] else {
            return refill(prices, missing, prices.lines.llc_hit);
        };
        let per_line = match topology.distance(left.cpu, cpu) {
            Distance::Same | Distance::Smt | Distance::Cluster | Distance::Llc => prices.lines.llc_hit,
            far => prices.lines.transfer[far.index()],
        };
        let gone = self.gone(topology, prices, left, working_set).min(missing);
        let memory = topology.memory_distance(cpu, topology.cpu(left.cpu).node);
        refill(prices, missing - gone, per_line) + refill(prices, gone, prices.memory_load(memory))
    }

    /// What of a task's data others have pushed out of the last level cache where it was left: bytes.
    fn gone(&self, topology: &Topology, prices: &Prices, left: Left, working_set: u64) -> u64 {
        let llc = topology.cpu(left.cpu).llc as usize;
        let streamed = match self.llc_taken_in[llc] - left.llc_clock {
            0 => 0,
            others => (others + working_set).saturating_sub(prices.llc_bytes),
        };
        // What all came through since, what this task fetches now with it: the part of it that the cache has no room for.
        let all = self.llc_passed[llc] - left.passed;
        let crowded = match all.saturating_sub(prices.llc_bytes) {
            over if over > 0 && prices.llc_bytes > 0 => {
                (u128::from(working_set) * u128::from(over) / u128::from(all)) as u64
            }
            _ => 0,
        };
        streamed.max(crowded)
    }

    /// A tick on `cpu`: how long it waits for what of its code and data has been pushed out of the core's cache since the last one there.
    pub fn tick(&mut self, topology: &Topology, prices: &Prices, cpu: CpuId) -> Ps {
        let core = topology.cpu(cpu).core as usize;
        let kept = prices.tick_footprint.min(prices.l2_bytes);
        let others = self.taken_in[core] - self.ticked[core];
        let missing = (others + kept).saturating_sub(prices.l2_bytes).min(kept);
        self.taken_in[core] += missing;
        self.ticked[core] = self.taken_in[core];
        Ps(missing.div_ceil(LINE) * prices.lines.llc_hit.0 / prices.tick_parallel)
    }

    /// What runs on `cpu` brings so many bytes into its core's cache that it does not come back to.
    pub fn passed(&mut self, topology: &Topology, cpu: CpuId, bytes: u64) {
        self.taken_in[topology.cpu(cpu).core as usize] += bytes;
    }

    /// So many bytes are copied by a CPU of a last level cache.
    #[inline]
    pub fn copied(&mut self, llc: usize, bytes: u64) {
        self.llc_passed[llc] += bytes;
    }

    /// Lines pass through `cpu`'s caches: bytes that were not in its core's, and of these, bytes that were not in its last level cache.
    pub fn streamed(&mut self, topology: &Topology, cpu: CpuId, own: u64, last: u64) {
        let cpu = topology.cpu(cpu);
        self.taken_in[cpu.core as usize] += own;
        self.llc_taken_in[cpu.llc as usize] += last;
    }

    /// The task stops running on `cpu`: its data is the newest of that core's cache, which others must fill first.
    #[inline(always)]
    pub fn switch_out(&mut self, topology: &Topology, task: usize, cpu: CpuId) {
        let core = topology.cpu(cpu).core as usize;
        if self.left.len() <= task {
            self.left.resize(task + 1, None);
        }
        let llc = topology.cpu(cpu).llc as usize;
        let (llc_clock, passed) = (self.llc_taken_in[llc], self.llc_passed[llc]);
        self.left[task] = Some(Left { cpu, clock: self.taken_in[core], llc_clock, passed });
    }
}

/// How long it takes to fetch so many bytes, several lines at once.
fn refill(prices: &Prices, bytes: u64, per_line: Ps) -> Ps {
    Ps(bytes.div_ceil(LINE) * per_line.0 / prices.refill_parallel)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::{Numbering, from_synthetic};

    fn setup() -> (Topology, Prices, Warmth) {
        let topology = from_synthetic("pack:2 l3:1 core:2 pu:2", "test", Numbering::LinuxX86).expect("valid");
        let mut prices = Prices::free();
        prices.lines.llc_hit = Ps::from_ns(20);
        prices.lines.transfer[Distance::Remote(1).index()] = Ps::from_ns(100);
        prices.l2_bytes = 64 * 1024;
        prices.refill_parallel = 4;
        let warmth = Warmth::new(&topology);
        (topology, prices, warmth)
    }

    #[test]
    fn a_task_that_stays_finds_its_data() {
        let (t, p, mut w) = setup();
        w.switch_in(&t, &p, 0, 6400, CpuId(0));
        w.switch_out(&t, 0, CpuId(0));
        assert_eq!(w.switch_in(&t, &p, 0, 6400, CpuId(0)), Ps::ZERO);
        // The sibling thread has the same cache.
        w.switch_out(&t, 0, CpuId(0));
        assert_eq!(w.switch_in(&t, &p, 0, 6400, CpuId(4)), Ps::ZERO);
    }

    #[test]
    fn moving_costs_by_how_far_the_data_lies() {
        let (t, p, mut w) = setup();
        w.switch_out(&t, 0, CpuId(0));
        assert_eq!(w.switch_in(&t, &p, 0, 6400, CpuId(1)), Ps::from_ns(100 * 20 / 4));
        w.switch_out(&t, 0, CpuId(0));
        assert_eq!(w.switch_in(&t, &p, 0, 6400, CpuId(2)), Ps::from_ns(100 * 100 / 4));
    }

    #[test]
    fn what_others_run_pushes_it_out_byte_for_byte() {
        let (t, p, mut w) = setup();
        w.switch_in(&t, &p, 0, 6400, CpuId(0));
        w.switch_out(&t, 0, CpuId(0));
        // 64 KiB less 6400 bytes fit beside it; 640 bytes more push 640 out.
        w.switch_in(&t, &p, 1, 64 * 1024 - 6400 + 640, CpuId(0));
        assert_eq!(w.switch_in(&t, &p, 0, 6400, CpuId(0)), Ps::from_ns(10 * 20 / 4));
    }

    #[test]
    fn what_streams_through_the_caches_pushes_data_out_to_memory() {
        let (t, mut p, mut w) = setup();
        p.llc_bytes = 1 << 20;
        p.lines.memory = Ps::from_ns(80);
        w.switch_in(&t, &p, 0, 6400, CpuId(0));
        w.switch_out(&t, 0, CpuId(0));
        // Through the core's cache, but out of the last level cache: all comes from there.
        w.streamed(&t, CpuId(0), 64 * 1024, 0);
        assert_eq!(w.switch_in(&t, &p, 0, 6400, CpuId(0)), Ps::from_ns(100 * 20 / 4));
        w.switch_out(&t, 0, CpuId(0));
        // A core beside it fills the cache that they share, but for 3200 bytes.
        w.streamed(&t, CpuId(1), 1 << 20, (1 << 20) - 3200);
        assert_eq!(w.switch_in(&t, &p, 0, 6400, CpuId(1)), Ps::from_ns(50 * 20 / 4 + 50 * 80 / 4));
    }

    #[test]
    fn more_sets_than_the_last_level_cache_holds_lose_what_has_no_room() {
        let (t, mut p, mut w) = setup();
        (p.llc_bytes, p.lines.memory) = (1 << 20, Ps::from_ns(80));
        let set = 64 * 1024;
        // A cycle of that many tasks on one core, whose cache holds one of them.
        let mut cycle = |tasks: usize| {
            let mut last = Ps::ZERO;
            for _ in 0..3 {
                for task in 0..tasks {
                    last = w.switch_in(&t, &p, task, set, CpuId(0));
                    w.switch_out(&t, task, CpuId(0));
                }
            }
            last
        };
        assert_eq!(cycle(16), Ps::from_ns(1024 * 20 / 4), "sixteen fit");
        // Of twenty a fifth has no room; a line lies on both sides.
        let gone = (set / 5).div_ceil(64);
        assert_eq!(cycle(20), Ps::from_ns((1024 - gone + 1) * 20 / 4 + gone * 80 / 4));
        // What is copied takes room as well.
        let (t, mut p, mut w) = setup();
        (p.llc_bytes, p.lines.memory) = (1 << 20, Ps::from_ns(80));
        w.switch_in(&t, &p, 0, 6400, CpuId(0));
        w.switch_out(&t, 0, CpuId(0));
        w.copied(0, (2 << 20) - 6400);
        assert_eq!(w.switch_in(&t, &p, 0, 6400, CpuId(1)), Ps::from_ns(50 * 20 / 4 + 50 * 80 / 4));
    }

    #[test]
    fn a_tick_fetches_again_what_has_been_pushed_out_since_the_last_one() {
        let (t, mut p, mut w) = setup();
        (p.tick_footprint, p.tick_parallel) = (6400, 2);
        assert_eq!(w.tick(&t, &p, CpuId(0)), Ps::ZERO, "the cache holds whatever there is");
        // All but 1280 bytes of the cache: 20 of its 100 lines have no room beside that.
        w.passed(&t, CpuId(4), 64 * 1024 - 6400 + 1280);
        assert_eq!(w.tick(&t, &p, CpuId(0)), Ps::from_ns(20 * 20 / 2));
        assert_eq!(w.tick(&t, &p, CpuId(4)), Ps::ZERO, "its sibling was there just now");
        w.passed(&t, CpuId(0), 1 << 20);
        assert_eq!(w.tick(&t, &p, CpuId(0)), Ps::from_ns(100 * 20 / 2));
        // A task's set goes the same way.
        w.switch_out(&t, 0, CpuId(0));
        w.passed(&t, CpuId(0), 1 << 20);
        assert_eq!(w.switch_in(&t, &p, 0, 6400, CpuId(0)), Ps::from_ns(100 * 20 / 4));
    }

    #[test]
    fn what_no_core_can_hold_is_fetched_again_only_from_another_last_level_cache() {
        let (t, p, mut w) = setup();
        let large = 4 * 64 * 1024;
        w.switch_in(&t, &p, 0, large, CpuId(0));
        w.switch_out(&t, 0, CpuId(0));
        assert_eq!(w.switch_in(&t, &p, 0, large, CpuId(0)), Ps::ZERO);
        w.switch_out(&t, 0, CpuId(0));
        assert_eq!(w.switch_in(&t, &p, 0, large, CpuId(1)), Ps::from_ns(1024 * 20 / 4));
        w.switch_out(&t, 0, CpuId(1));
        assert_eq!(w.switch_in(&t, &p, 0, large, CpuId(2)), Ps::from_ns(4 * 1024 * 100 / 4));
    }
}
