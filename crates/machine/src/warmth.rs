//! How much of its data a task finds in the caches of the core it comes to, and what fetching the rest costs.
//!
//! A task has a working set: the bytes that it uses again after a switch. It leaves them in level 1 and level 2 of its
//! core, as much as each holds, and in the last level cache. What others bring in there meanwhile pushes them out, byte
//! for byte. What level 1 lacks comes from level 2, and what that lacks from the last level cache. If the task comes to
//! another core of the same last level cache, its data comes from there; to a core elsewhere, it comes from the other
//! cache. What was pushed out of the last level cache as well comes from memory.
//!
//! Data is pushed out of a core's caches by what other tasks fetch of their working sets and use in their work
//! ([`WorkingSet::data`]; the whole cache if that is more than it holds), and by lines that tasks stream through
//! ([`Warmth::streamed`]). It is pushed out of a last level cache by what tasks stream from memory
//! ([`Warmth::streamed`]). Also, if all that tasks have touched there since is more than the cache holds, each task
//! loses the share of its data that does not fit. (Strict LRU would keep nothing of sets that take turns and are one
//! line too many; the caches of Intel's cores since Ivy Bridge adapt so that a part survives.)
//!
//! A core that sleeps deeply empties its own caches into the last level cache ([`Warmth::emptied`]). What a task left
//! in them comes back from there, and the last level cache has lost nothing by it. A level 2 that several cores share
//! keeps its content, as does one that is the last level.
//!
//! Each use counts: tasks that take turns for long push out more than they hold together.
//!
//! Modelled: a core's caches as least recently used, by whole working sets; the newest part of a set is in level 1.
//! Absent: what the kernel's code pushes out of level 1.

use crate::prices::Prices;
use crate::topology::{CacheKind, Distance, Topology};
use units::{CpuId, Ps, prefetch, unlikely};

/// The caches of a core, nearest first.
const OWN: usize = 2;
const L1: usize = 0;
const L2: usize = 1;

/// More than any cache holds.
const ALL: u64 = u64::MAX / 2;

/// What a task uses again after a switch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkingSet {
    pub bytes: u64,
    /// The part of them that the task's own work goes through again and again. Only for this part refilling level 1 has
    /// a price. What the kernel and its callers touch besides is in the prices of the kernel's functions, which were
    /// fitted to machines that have a level 1.
    pub data: u64,
}

/// Where a task's data was left.
#[derive(Clone, Copy, Debug)]
struct Left {
    cpu: CpuId,
    /// How much that core's caches, and its last level cache, had taken in by then.
    clock: [u64; OWN],
    llc_clock: u64,
    /// How much had come through the last level cache by then.
    passed: u64,
}

/// The working sets of all tasks, by task number, and what each cache has taken in.
#[derive(Clone, Debug)]
pub struct Warmth {
    left: Vec<Option<Left>>,
    /// Bytes brought into each core's caches so far.
    taken_in: Vec<[u64; OWN]>,
    /// How much level 2 had taken in when a tick last ran there: the tick's lines were in the cache then.
    ticked: Vec<u64>,
    /// One more than each of a core's caches had taken in when it was emptied last; 0 if it never was.
    emptied: Vec<[u64; OWN]>,
    /// For each core, whether its level 2 is emptied with it.
    own_level_2: Vec<bool>,
    /// Bytes brought into each last level cache that were not there.
    llc_taken_in: Vec<u64>,
    /// Bytes that came through each last level cache: working sets that a core did not have, and copied data.
    llc_passed: Vec<u64>,
}

impl Warmth {
    pub fn new(topology: &Topology) -> Warmth {
        Warmth {
            left: Vec::new(),
            taken_in: vec![[0; OWN]; topology.cores().len()],
            emptied: vec![[0; OWN]; topology.cores().len()],
            own_level_2: own_level_2(topology),
            ticked: vec![0; topology.cores().len()],
            llc_taken_in: vec![0; topology.llcs().len()],
            llc_passed: vec![0; topology.llcs().len()],
        }
    }

    /// The task's number goes to another task, which has left nothing anywhere.
    pub fn forget(&mut self, task: usize) {
        if let Some(left) = self.left.get_mut(task) {
            *left = None;
        }
    }

    /// The simulation is about to start or stop this task: prefetches its record into the host's cache.
    #[inline(always)]
    pub fn foresee(&self, task: usize) {
        if let Some(left) = self.left.get(task) {
            prefetch(left);
        }
    }

    /// A task with this working set begins to run on `cpu`, where a cycle takes `ps_per_cycle`. Returns how long it
    /// stalls to refill the caches.
    pub fn switch_in(
        &mut self,
        topology: &Topology,
        prices: &Prices,
        task: usize,
        set: WorkingSet,
        cpu: CpuId,
        ps_per_cycle: u64,
    ) -> Ps {
        if unlikely(self.left.len() <= task) {
            self.left.resize(task + 1, None);
        }
        let left = self.left[task];
        let core = topology.cpu(cpu).core as usize;
        let here = left.filter(|left| topology.cpu(left.cpu).core as usize == core);
        let sizes = prices.core_bytes(core);
        // What a cache of the core cannot hold was never in it.
        let kept = sizes.map(|size| set.bytes.min(size));
        let taken_in = [L1, L2].map(|level| match here {
            Some(left) => self.taken_in[core][level].saturating_sub(left.clock[level]),
            None => ALL,
        });
        let emptied = |level: usize| here.is_some_and(|left| left.clock[level] < self.emptied[core][level]);
        let others = [L1, L2].map(|level| if emptied(level) { ALL } else { taken_in[level] });
        let pushed_out =
            |level: usize, others: u64| (others + kept[level]).saturating_sub(sizes[level]).min(kept[level]);
        let missing = [L1, L2].map(|level| pushed_out(level, others[level]));
        let llc = topology.cpu(cpu).llc;
        // If the task comes from elsewhere, the last level cache has none of its data. What this core has emptied into
        // it takes no more room there than before.
        let (fetched, passed) = match left {
            Some(left) if topology.cpu(left.cpu).llc == llc => (missing[L2], pushed_out(L2, taken_in[L2])),
            // What no cache can hold is fetched again and again wherever the task runs: that is a part of its work.
            _ => {
                let from = left.map_or(llc, |left| topology.cpu(left.cpu).llc);
                let held = match prices.llc_bytes_of(from as usize) {
                    0 => set.bytes,
                    room => set.bytes.min(room),
                };
                (held, held)
            }
        };
        for (level, fetched) in [missing[L1], fetched].into_iter().enumerate() {
            // What its work uses becomes the newest data in the cache, whether it was fetched or not.
            let used = if set.data > sizes[level] { sizes[level] } else { set.data.min(others[level]) };
            self.taken_in[core][level] += used.max(fetched);
        }
        self.llc_passed[llc as usize] += passed;
        let Some(left) = left else {
            return refill(prices, fetched, prices.lines.llc_hit);
        };
        let per_line = match topology.distance(left.cpu, cpu) {
            Distance::Same | Distance::Smt | Distance::Cluster | Distance::Llc => prices.lines.llc_hit,
            far => prices.lines.transfer[far.index()],
        };
        let gone = self.gone(topology, prices, left, set.bytes).min(fetched);
        let memory = topology.memory_distance(cpu, topology.cpu(left.cpu).node);
        // Level 2 loses the oldest data first, and level 1 can be refilled only from what level 2 still has.
        let hottest = missing[L2].saturating_sub(kept[L2].saturating_sub(kept[L1]));
        let near = missing[L1].saturating_sub(hottest).min(set.data);
        refill(prices, fetched - gone, per_line)
            + refill(prices, gone, prices.memory_load(memory))
            + refill(prices, near, Ps(prices.l2_load.0 * ps_per_cycle))
    }

    /// How many bytes of a task's data others have pushed out of the last level cache where it was left.
    fn gone(&self, topology: &Topology, prices: &Prices, left: Left, working_set: u64) -> u64 {
        let llc = topology.cpu(left.cpu).llc as usize;
        let room = prices.llc_bytes_of(llc);
        let streamed = match self.llc_taken_in[llc] - left.llc_clock {
            0 => 0,
            others => (others + working_set).saturating_sub(room),
        };
        // All that came through since, including what this task now fetches: it loses the share for which the cache has
        // no room.
        let all = self.llc_passed[llc] - left.passed;
        let crowded = match all.saturating_sub(room) {
            over if over > 0 && room > 0 => (u128::from(working_set) * u128::from(over) / u128::from(all)) as u64,
            _ => 0,
        };
        streamed.max(crowded)
    }

    /// A tick on `cpu`: how long it waits for those of its code and data that the core's cache has lost since the last
    /// tick there.
    pub fn tick(&mut self, topology: &Topology, prices: &Prices, cpu: CpuId) -> Ps {
        let core = topology.cpu(cpu).core as usize;
        let size = prices.core_bytes(core)[L2];
        let kept = prices.tick_footprint.min(size);
        let others = match self.ticked[core] < self.emptied[core][L2] {
            true => ALL,
            false => self.taken_in[core][L2] - self.ticked[core],
        };
        let missing = (others + kept).saturating_sub(size).min(kept);
        self.taken_in[core][L2] += missing;
        self.ticked[core] = self.taken_in[core][L2];
        Ps(missing.div_ceil(prices.line_bytes) * prices.lines.llc_hit.0 / prices.tick_parallel)
    }

    /// The core of `cpu`, on which nothing runs, has emptied its own caches into the last level cache.
    pub fn emptied(&mut self, topology: &Topology, cpu: CpuId) {
        let core = topology.cpu(cpu).core as usize;
        let levels = if self.own_level_2[core] { OWN } else { L2 };
        for level in 0..levels {
            self.emptied[core][level] = self.taken_in[core][level] + 1;
        }
    }

    /// What runs on `cpu` brings this many bytes into its core's caches, to which it does not come back.
    pub fn passed(&mut self, topology: &Topology, cpu: CpuId, bytes: u64) {
        self.taken_in[topology.cpu(cpu).core as usize].iter_mut().for_each(|taken_in| *taken_in += bytes);
    }

    /// A CPU of this last level cache copies this many bytes.
    #[inline]
    pub fn copied(&mut self, llc: usize, bytes: u64) {
        self.llc_passed[llc] += bytes;
    }

    /// Lines pass through `cpu`'s caches. `own`: bytes that its core's caches did not have; `last`: bytes of these that
    /// its last level cache did not have either.
    pub fn streamed(&mut self, topology: &Topology, cpu: CpuId, own: u64, last: u64) {
        let cpu = topology.cpu(cpu);
        self.taken_in[cpu.core as usize].iter_mut().for_each(|taken_in| *taken_in += own);
        self.llc_taken_in[cpu.llc as usize] += last;
    }

    /// The task stops running on `cpu`. Its data is now the newest in that core's caches, so all older data is pushed
    /// out before it.
    #[inline(always)]
    pub fn switch_out(&mut self, topology: &Topology, task: usize, cpu: CpuId) {
        let core = topology.cpu(cpu).core as usize;
        if unlikely(self.left.len() <= task) {
            self.left.resize(task + 1, None);
        }
        let llc = topology.cpu(cpu).llc as usize;
        let (llc_clock, passed) = (self.llc_taken_in[llc], self.llc_passed[llc]);
        self.left[task] = Some(Left { cpu, clock: self.taken_in[core], llc_clock, passed });
    }
}

/// For each core, whether no other core uses its level 2 and there is a level behind it.
fn own_level_2(topology: &Topology) -> Vec<bool> {
    let mut own = vec![true; topology.cores().len()];
    let caches = topology.caches();
    for cache in caches.iter().filter(|cache| cache.level == 2 && cache.kind != CacheKind::Instruction) {
        let behind = caches.iter().any(|other| other.level > 2 && other.cpus.intersects(&cache.cpus));
        let cores = || cache.cpus.iter().map(|cpu| topology.cpu(cpu).core as usize);
        if !behind || cores().any(|core| cores().next() != Some(core)) {
            cores().for_each(|core| own[core] = false);
        }
    }
    own
}

/// How long it takes to fetch this many bytes, several lines at once.
fn refill(prices: &Prices, bytes: u64, per_line: Ps) -> Ps {
    Ps(bytes.div_ceil(prices.line_bytes) * per_line.0 / prices.refill_parallel)
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

    /// A task with this working set, all of it data of its own work, comes to a CPU of 1 GHz.
    fn come(w: &mut Warmth, t: &Topology, p: &Prices, task: usize, bytes: u64, cpu: u16) -> Ps {
        w.switch_in(t, p, task, WorkingSet { bytes, data: bytes }, CpuId(cpu), 1000)
    }

    #[test]
    fn a_task_that_stays_finds_its_data() {
        let (t, p, mut w) = setup();
        come(&mut w, &t, &p, 0, 6400, 0);
        w.switch_out(&t, 0, CpuId(0));
        assert_eq!(come(&mut w, &t, &p, 0, 6400, 0), Ps::ZERO);
        // The sibling thread has the same cache.
        w.switch_out(&t, 0, CpuId(0));
        assert_eq!(come(&mut w, &t, &p, 0, 6400, 4), Ps::ZERO);
    }

    #[test]
    fn moving_costs_by_how_far_the_data_lies() {
        let (t, p, mut w) = setup();
        w.switch_out(&t, 0, CpuId(0));
        assert_eq!(come(&mut w, &t, &p, 0, 6400, 1), Ps::from_ns(100 * 20 / 4));
        w.switch_out(&t, 0, CpuId(0));
        assert_eq!(come(&mut w, &t, &p, 0, 6400, 2), Ps::from_ns(100 * 100 / 4));
    }

    #[test]
    fn what_no_cache_holds_is_no_part_of_a_move() {
        let (t, mut p, mut w) = setup();
        p.llc_bytes = 1 << 20;
        let (held, more) = (1 << 20, 4 << 30);
        let price = |lines: u64, ns: u64| Ps::from_ns(lines * ns / 4);
        assert_eq!(come(&mut w, &t, &p, 0, more, 0), price(held / 64, 20));
        w.switch_out(&t, 0, CpuId(0));
        assert_eq!(come(&mut w, &t, &p, 0, more, 2), price(held / 64, 100));
    }

    #[test]
    fn what_others_run_pushes_it_out_byte_for_byte() {
        let (t, p, mut w) = setup();
        come(&mut w, &t, &p, 0, 6400, 0);
        w.switch_out(&t, 0, CpuId(0));
        // 64 KiB less 6400 bytes fit beside it; 640 bytes more push 640 out.
        come(&mut w, &t, &p, 1, 64 * 1024 - 6400 + 640, 0);
        assert_eq!(come(&mut w, &t, &p, 0, 6400, 0), Ps::from_ns(10 * 20 / 4));
    }

    #[test]
    fn what_streams_through_the_caches_pushes_data_out_to_memory() {
        let (t, mut p, mut w) = setup();
        p.llc_bytes = 1 << 20;
        p.lines.memory = Ps::from_ns(80);
        come(&mut w, &t, &p, 0, 6400, 0);
        w.switch_out(&t, 0, CpuId(0));
        // Streamed through the core's cache but not the last level cache: all of the data comes back from there.
        w.streamed(&t, CpuId(0), 64 * 1024, 0);
        assert_eq!(come(&mut w, &t, &p, 0, 6400, 0), Ps::from_ns(100 * 20 / 4));
        w.switch_out(&t, 0, CpuId(0));
        // A neighbouring core fills the cache that they share, except for 3200 bytes.
        w.streamed(&t, CpuId(1), 1 << 20, (1 << 20) - 3200);
        assert_eq!(come(&mut w, &t, &p, 0, 6400, 1), Ps::from_ns(50 * 20 / 4 + 50 * 80 / 4));
    }

    #[test]
    fn more_sets_than_the_last_level_cache_holds_lose_what_has_no_room() {
        let (t, mut p, mut w) = setup();
        (p.llc_bytes, p.lines.memory) = (1 << 20, Ps::from_ns(80));
        let set = 64 * 1024;
        // This many tasks take turns on one core, whose cache holds one of them.
        let mut cycle = |tasks: usize| {
            let mut last = Ps::ZERO;
            for _ in 0..3 {
                for task in 0..tasks {
                    last = come(&mut w, &t, &p, task, set, 0);
                    w.switch_out(&t, task, CpuId(0));
                }
            }
            last
        };
        assert_eq!(cycle(16), Ps::from_ns(1024 * 20 / 4), "sixteen fit");
        // A fifth of twenty sets has no room; partial lines count on both sides.
        let gone = (set / 5).div_ceil(64);
        assert_eq!(cycle(20), Ps::from_ns((1024 - gone + 1) * 20 / 4 + gone * 80 / 4));
        // What is copied takes room as well.
        let (t, mut p, mut w) = setup();
        (p.llc_bytes, p.lines.memory) = (1 << 20, Ps::from_ns(80));
        come(&mut w, &t, &p, 0, 6400, 0);
        w.switch_out(&t, 0, CpuId(0));
        w.copied(0, (2 << 20) - 6400);
        assert_eq!(come(&mut w, &t, &p, 0, 6400, 1), Ps::from_ns(50 * 20 / 4 + 50 * 80 / 4));
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
        // A task's working set has the same effect.
        w.switch_out(&t, 0, CpuId(0));
        w.passed(&t, CpuId(0), 1 << 20);
        assert_eq!(come(&mut w, &t, &p, 0, 6400, 0), Ps::from_ns(100 * 20 / 4));
    }

    #[test]
    fn what_a_tick_fetches_pushes_tasks_data_out() {
        let (t, mut p, mut w) = setup();
        (p.tick_footprint, p.tick_parallel) = (6400, 1);
        let whole = 64 * 1024;
        come(&mut w, &t, &p, 0, whole, 0);
        w.switch_out(&t, 0, CpuId(0));
        assert_eq!(w.tick(&t, &p, CpuId(0)), Ps::from_ns(100 * 20), "the task has left no room for it");
        assert_eq!(come(&mut w, &t, &p, 0, whole, 0), Ps::from_ns(100 * 20 / 4));
    }

    #[test]
    fn what_no_core_can_hold_is_fetched_again_only_from_another_last_level_cache() {
        let (t, p, mut w) = setup();
        let large = 4 * 64 * 1024;
        come(&mut w, &t, &p, 0, large, 0);
        w.switch_out(&t, 0, CpuId(0));
        assert_eq!(come(&mut w, &t, &p, 0, large, 0), Ps::ZERO);
        w.switch_out(&t, 0, CpuId(0));
        assert_eq!(come(&mut w, &t, &p, 0, large, 1), Ps::from_ns(1024 * 20 / 4));
        w.switch_out(&t, 0, CpuId(1));
        assert_eq!(come(&mut w, &t, &p, 0, large, 2), Ps::from_ns(4 * 1024 * 100 / 4));
    }

    #[test]
    fn a_core_that_empties_its_caches_gets_all_back_from_the_last_level_and_once() {
        let (t, mut p, mut w) = with_level_1();
        (p.llc_bytes, p.lines.memory) = (64 * 1024, Ps::from_ns(80));
        (p.tick_footprint, p.tick_parallel) = (640, 1);
        let set = 32 * 1024;
        come(&mut w, &t, &p, 0, set, 0);
        w.switch_out(&t, 0, CpuId(0));
        w.tick(&t, &p, CpuId(0));
        // Its sibling thread sleeps too. However often that happens: 512 lines of 20 ns, four at a time, none of them
        // from memory.
        for times in 1..4 {
            (0..times).for_each(|_| w.emptied(&t, CpuId(4)));
            assert_eq!(come(&mut w, &t, &p, 0, set, 0), Ps::from_ns(512 * 20 / 4), "{times} times");
            w.switch_out(&t, 0, CpuId(0));
            assert_eq!(w.tick(&t, &p, CpuId(0)), Ps::from_ns(10 * 20), "{times} times");
            assert_eq!(w.tick(&t, &p, CpuId(0)), Ps::ZERO, "the one before fetched it");
            assert_eq!(come(&mut w, &t, &p, 0, set, 0), Ps::ZERO, "it is there again");
            w.switch_out(&t, 0, CpuId(0));
        }
        // Another core has not slept: a task that goes there finds the same as ever.
        w.emptied(&t, CpuId(0));
        assert_eq!(come(&mut w, &t, &p, 0, set, 1), Ps::from_ns(512 * 20 / 4));
        w.switch_out(&t, 0, CpuId(1));
        w.emptied(&t, CpuId(0));
        assert_eq!(come(&mut w, &t, &p, 0, set, 1), Ps::ZERO);
    }

    #[test]
    fn a_level_2_that_is_shared_or_the_last_is_not_emptied() {
        let lost = |synthetic: &str| {
            let t = from_synthetic(synthetic, "test", Numbering::LinuxX86).expect("valid");
            let (_, p, _) = with_level_1();
            let mut w = Warmth::new(&t);
            come(&mut w, &t, &p, 0, 6400, 0);
            w.switch_out(&t, 0, CpuId(0));
            w.emptied(&t, CpuId(0));
            come(&mut w, &t, &p, 0, 6400, 0)
        };
        let (from_level_2, from_last) = (Ps::from_ns(100 * 12 / 4), Ps::from_ns(100 * 20 / 4));
        assert_eq!(lost("pack:1 l3:1 l2:2 core:1 pu:2"), from_last);
        assert_eq!(lost("pack:1 l3:1 l2:1 core:2 pu:2"), from_level_2, "it is the other core's as well");
        assert_eq!(lost("pack:1 l2:2 core:1 pu:2"), from_level_2, "there is nothing behind it");
    }

    /// 16 KiB of level 1, from which level 2 is 12 cycles away.
    fn with_level_1() -> (Topology, Prices, Warmth) {
        let (t, mut p, w) = setup();
        (p.l1_bytes, p.l2_load) = (16 * 1024, units::Cycles(12));
        (t, p, w)
    }

    #[test]
    fn level_1_is_refilled_from_level_2_of_what_others_pushed_out() {
        let (t, p, mut w) = with_level_1();
        // At first the data comes from beyond both levels, and fills both; then it is there.
        assert_eq!(come(&mut w, &t, &p, 0, 6400, 0), Ps::from_ns(100 * 20 / 4));
        w.switch_out(&t, 0, CpuId(0));
        assert_eq!(come(&mut w, &t, &p, 0, 6400, 0), Ps::ZERO);
        w.switch_out(&t, 0, CpuId(0));
        // 16 KiB less 6400 bytes fit beside it; 640 bytes more push 640 out: ten lines of 12 ns, four at a time.
        come(&mut w, &t, &p, 1, 16 * 1024 - 6400 + 640, 4);
        w.switch_out(&t, 1, CpuId(4));
        assert_eq!(come(&mut w, &t, &p, 0, 6400, 0), Ps::from_ns(10 * 12 / 4));
        w.switch_out(&t, 0, CpuId(0));
        // What streams through pushes data out of both levels: all of level 1, and of level 2 the 640 bytes for which
        // there is no room.
        w.passed(&t, CpuId(0), 64 * 1024 - 6400 + 640);
        assert_eq!(come(&mut w, &t, &p, 0, 6400, 0), Ps::from_ns(10 * 20 / 4 + 90 * 12 / 4));
        w.switch_out(&t, 0, CpuId(0));
        // On another core one fetch from the last level cache fills both levels: no line is paid for twice.
        assert_eq!(come(&mut w, &t, &p, 0, 6400, 1), Ps::from_ns(100 * 20 / 4));
    }

    #[test]
    fn of_a_set_beyond_level_1_its_newest_part_is_there() {
        let (t, p, mut w) = with_level_1();
        let set = 32 * 1024;
        come(&mut w, &t, &p, 0, set, 0);
        w.switch_out(&t, 0, CpuId(0));
        assert_eq!(
            come(&mut w, &t, &p, 0, set, 0),
            Ps::ZERO,
            "the other half is fetched all the time: part of its work"
        );
        w.switch_out(&t, 0, CpuId(0));
        come(&mut w, &t, &p, 1, 1600, 0);
        w.switch_out(&t, 1, CpuId(0));
        assert_eq!(come(&mut w, &t, &p, 0, set, 0), Ps(25 * 12_000 / 4), "what the other one took");
        w.switch_out(&t, 0, CpuId(0));
        assert_eq!(come(&mut w, &t, &p, 1, 1600, 0), Ps(25 * 12_000 / 4), "it went through more than level 1 holds");
        w.switch_out(&t, 1, CpuId(0));
        // Level 2 loses the oldest data first: 8 KiB of it, none of which was in level 1.
        w.passed(&t, CpuId(0), 40 * 1024 - 1600);
        let (far, near) = (8 * 1024 / 64, 16 * 1024 / 64);
        assert_eq!(come(&mut w, &t, &p, 0, set, 0), Ps(far * 20_000 / 4 + near * 12_000 / 4));
    }

    #[test]
    fn what_is_in_the_prices_of_functions_is_not_paid_again() {
        let (t, p, mut w) = with_level_1();
        let set = |bytes, data| WorkingSet { bytes, data };
        for data in [0, 640] {
            w.switch_in(&t, &p, 0, set(6400, data), CpuId(0), 1000);
            w.switch_out(&t, 0, CpuId(0));
            w.switch_in(&t, &p, 1, set(16 * 1024, 0), CpuId(0), 1000);
            w.switch_out(&t, 1, CpuId(0));
            let paid = w.switch_in(&t, &p, 0, set(6400, data), CpuId(0), 1000);
            assert_eq!(paid, Ps(data / 64 * 12_000 / 4), "{data} bytes of its own");
        }
    }
}
