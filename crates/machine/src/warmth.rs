//! What a task finds of its data in the caches of the core it comes to, and what fetching the rest costs.
//!
//! A task has a working set (bytes it uses again after a switch). It leaves it in the level-2 cache of its core; what others run
//! there meanwhile pushes it out, byte for byte. On another core nothing is left, and everything comes from the last level
//! cache, or from the other one, if the task crossed into it.
//!
//! Modelled: one level of private cache, least recently used, whole working sets. Absent: limits of the last level cache
//! and of memory bandwidth; level 1 on its own.

use crate::prices::Prices;
use crate::topology::{Distance, Topology};
use units::{CpuId, Ps};

/// Bytes of a cache line.
const LINE: u64 = 64;

/// Where a task's data was left.
#[derive(Clone, Copy, Debug)]
struct Left {
    cpu: CpuId,
    /// What that core's cache had taken in by then.
    clock: u64,
}

/// The working sets of all tasks, by task number, and what each core's private cache has taken in.
#[derive(Clone, Debug)]
pub struct Warmth {
    left: Vec<Option<Left>>,
    /// Bytes brought into each core's cache so far.
    taken_in: Vec<u64>,
}

impl Warmth {
    pub fn new(topology: &Topology) -> Warmth {
        Warmth { left: Vec::new(), taken_in: vec![0; topology.cores().len()] }
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
        let missing = match self.left[task] {
            Some(left) if topology.cpu(left.cpu).core as usize == core => {
                let others = self.taken_in[core].saturating_sub(left.clock);
                (others + working_set).saturating_sub(prices.l2_bytes).min(working_set)
            }
            _ => working_set,
        };
        self.taken_in[core] += missing;
        let per_line = match self.left[task] {
            Some(left) => match topology.distance(left.cpu, cpu) {
                Distance::Same | Distance::Smt | Distance::Cluster | Distance::Llc => prices.lines.llc_hit,
                far => prices.lines.transfer[far.index()],
            },
            None => prices.lines.llc_hit,
        };
        Ps(missing.div_ceil(LINE) * per_line.0 / prices.refill_parallel)
    }

    /// The task stops running on `cpu`: its data is the newest of that core's cache, which others must fill first.
    pub fn switch_out(&mut self, topology: &Topology, task: usize, cpu: CpuId) {
        let core = topology.cpu(cpu).core as usize;
        if self.left.len() <= task {
            self.left.resize(task + 1, None);
        }
        self.left[task] = Some(Left { cpu, clock: self.taken_in[core] });
    }
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
}
