//! How fast a thread runs beside what the other threads of its core run.
//!
//! A thread that computes wants the core's units all the time. One that waits for memory leaves them to its siblings
//! most of the time, and loses little to them. So a thread's speed depends on its own kind of work, on the siblings'
//! kind and, on cores with more than two threads, on how many are busy. An idle thread takes no share once it has
//! halted; one that polls executes, and takes its share.

use crate::topology::Topology;
use units::{CpuId, Slots};

/// What user-mode work mostly does. Kernel code counts as computing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum WorkKind {
    #[default]
    Compute,
    /// Waits for lines from beyond its core's caches.
    Memory,
}

/// Speeds in permille of a thread's speed alone.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SmtPrices {
    /// With one busy sibling: by the thread's own kind of work, then by the sibling's.
    pub pair: [[u64; 2]; 2],
    /// The speed of computing threads, by how many of them are busy; with none or one it is 1000.
    pub threads: Vec<u64>,
}

impl SmtPrices {
    /// The prices of threads that do not slow each other down.
    pub fn free() -> SmtPrices {
        SmtPrices { pair: [[1000; 2]; 2], threads: Vec::new() }
    }

    /// The speed of a thread whose siblings are busy with each kind of work in these numbers.
    pub fn speed(&self, own: WorkKind, siblings: [u64; 2]) -> u64 {
        let busy = siblings[0] + siblings[1];
        let sum = siblings[0] * self.pair[own as usize][0] + siblings[1] * self.pair[own as usize][1];
        match busy {
            0 => 1000,
            1 => sum,
            // The mean of what each sibling alone would leave, scaled down for having more than two threads.
            _ => (sum / busy * self.of_threads(busy as usize + 1) / self.of_threads(2)).max(1),
        }
    }

    /// Without a figure for this many threads, the core as a whole does no more than it does for the nearest smaller
    /// number that has one.
    fn of_threads(&self, busy: usize) -> u64 {
        let known = |threads: &usize| *threads == 2 || self.threads.get(*threads).is_some_and(|&speed| speed > 0);
        let nearest = (2..=busy).rev().find(known).unwrap_or(2);
        let speed = if nearest == 2 { self.pair[0][0] } else { self.threads[nearest] };
        speed * nearest as u64 / busy as u64
    }
}

/// The threads with which a CPU shares its core.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Beside {
    Nobody,
    /// The usual case: nearly all cores have at most two threads.
    One(CpuId),
    Several,
}

/// The other threads of each CPU's core.
#[derive(Clone, Debug)]
pub struct Siblings {
    beside: Slots<Beside>,
    /// The siblings of all CPUs, one CPU after the other; and where each CPU's begin.
    others: Vec<CpuId>,
    first: Vec<u32>,
}

impl Siblings {
    pub fn new(topology: &Topology) -> Siblings {
        let (mut others, mut first) = (Vec::new(), vec![0]);
        for (cpu, of) in topology.cpus() {
            others.extend(topology.cores()[of.core as usize].cpus.iter().filter(|&other| other != cpu));
            first.push(others.len() as u32);
        }
        let mut siblings = Siblings { beside: Slots::new(), others, first };
        siblings.beside = topology
            .cpus()
            .map(|(cpu, _)| match siblings.of(cpu) {
                [] => Beside::Nobody,
                &[other] => Beside::One(other),
                _ => Beside::Several,
            })
            .collect();
        siblings
    }

    #[inline]
    pub fn beside(&self, cpu: CpuId) -> Beside {
        self.beside[cpu.index()]
    }

    #[inline]
    pub fn of(&self, cpu: CpuId) -> &[CpuId] {
        &self.others[self.first[cpu.index()] as usize..self.first[cpu.index() + 1] as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::WorkKind::*;
    use super::*;
    use crate::topology::{Numbering, from_synthetic};

    fn prices() -> SmtPrices {
        SmtPrices { pair: [[600, 800], [750, 900]], threads: vec![0, 0, 0, 0, 350] }
    }

    fn speed(own: WorkKind, siblings: &[WorkKind]) -> u64 {
        let busy = |kind| siblings.iter().filter(|&&other| other == kind).count() as u64;
        prices().speed(own, [busy(Compute), busy(Memory)])
    }

    #[test]
    fn a_sibling_costs_what_its_work_and_the_own_say() {
        assert_eq!([speed(Compute, &[]), speed(Memory, &[])], [1000; 2]);
        assert_eq!([speed(Compute, &[Compute]), speed(Compute, &[Memory])], [600, 800]);
        assert_eq!([speed(Memory, &[Compute]), speed(Memory, &[Memory])], [750, 900]);
    }

    #[test]
    fn more_threads_get_less_each_by_the_figures_or_what_two_leave() {
        // There is no figure for three: they share the 1200 of two. There is one for four; five share that of four.
        assert_eq!(speed(Compute, &[Compute; 2]), 400);
        assert_eq!(speed(Compute, &[Compute; 3]), 350);
        assert_eq!(speed(Compute, &[Compute; 4]), 280);
        // The kinds matter: 800 where two computing threads would leave 600.
        assert_eq!(speed(Compute, &[Memory; 3]), 800 * 350 / 600);
        assert_eq!(speed(Compute, &[Memory, Compute]), 700 * 400 / 600);
    }

    #[test]
    fn siblings_are_the_other_threads_of_a_core() {
        let topology = from_synthetic("pack:1 core:2 pu:4", "test", Numbering::AsListed).expect("valid");
        let siblings = Siblings::new(&topology);
        assert_eq!(siblings.of(CpuId(5)), [CpuId(4), CpuId(6), CpuId(7)]);
        assert_eq!(siblings.beside(CpuId(5)), Beside::Several);
        let topology = from_synthetic("pack:1 core:2 pu:1", "test", Numbering::AsListed).expect("valid");
        assert!(Siblings::new(&topology).of(CpuId(1)).is_empty());
        assert_eq!(Siblings::new(&topology).beside(CpuId(1)), Beside::Nobody);
        let topology = from_synthetic("pack:1 core:2 pu:2", "test", Numbering::AsListed).expect("valid");
        assert_eq!(Siblings::new(&topology).beside(CpuId(3)), Beside::One(CpuId(2)));
    }
}
