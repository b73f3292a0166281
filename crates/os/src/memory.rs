//! The memory that programs touch: regions of pages, each page on the node of its first touch, and the faults by which
//! NUMA balancing observes the touches (mm/memory.c, mm/mempolicy.c, mm/migrate.c).
//!
//! A region is divided into batches of 2 MiB that are touched, unmapped and moved as a whole: a transparent huge page
//! of a process's own memory, or 512 pages that always go together. A task touches a region at a rate, in bytes per
//! second of its run time, in sweeps, each in a random order of its own. Tasks of one address space share its areas and
//! their marks. A region in several address spaces is shared memory: one set of pages, with marks for each address
//! space.
//!
//! Modelled: first touch, hinting faults, migration of pages; where the memory of a task lies ([`Memory::nodes_of`]),
//! from which follows how long it waits for it; nodes to which a task's memory is bound (`policy.rs`). Absent: full
//! nodes, other memory policies, pages that are only read, the interrupts that tell other CPUs of a changed page table.
//! Memory outside of regions is never touched.

mod fault;
mod policy;
mod sweep;

use crate::Os;
use sched::behaviour;
use sched::fair::numa::{CpuPid, PageTables};
use sched::sched::TaskId;
use sched::scheduler::Scheduler;
use std::collections::VecDeque;
use sweep::Sweep;
use units::{CpuId, Prng, Ps, unlikely};

/// Bytes and pages of a batch.
pub const BATCH_BYTES: u64 = 2 << 20;
const BATCH_PAGES: u64 = 512;

behaviour! {
    /// How much memory NUMA balancing moves to a node.
    pub enum MigrationLimit = "memory.migration_limit" {
        PerWindow = "per-window", since "v3.8", commit "", "128 MB in 100 ms; what is more stays, as failed";
        None = "none", since "v4.19", commit "efaffc5e40ae", "as much as faults ask for";
    }
}

/// A region of memory.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct RegionId(pub u32);

/// A region to create.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RegionSpec {
    pub bytes: u64,
    /// The node on which all of it is from the start. `None`: each page is allocated on the node of its first touch.
    pub node: Option<u16>,
    /// A device holds its pages: they cannot be moved.
    pub pinned: bool,
}

/// A batch of a region's pages.
#[derive(Clone, Copy, Debug)]
struct Batch {
    /// `None`: not allocated yet.
    node: Option<u16>,
    last_cpupid: CpuPid,
}

#[derive(Clone, Debug)]
struct Region {
    bytes: u64,
    batches: Vec<Batch>,
    /// How many batches are not allocated yet, and how many are on each node.
    absent: usize,
    on: Vec<(u16, u64)>,
    pinned: bool,
    /// Areas in which it is mapped.
    areas: Vec<u32>,
}

impl Region {
    /// Counts `batches` more on a node.
    fn count(&mut self, node: u16, batches: u64) {
        match self.on.iter_mut().find(|(known, _)| *known == node) {
            Some((_, count)) => *count += batches,
            None => self.on.push((node, batches)),
        }
    }

    /// Puts a batch on a node.
    fn place(&mut self, batch: u32, node: u16) {
        match self.batches[batch as usize].node.replace(node) {
            None => self.absent -= 1,
            Some(from) => {
                let on = self.on.iter_mut().find(|(known, _)| *known == from);
                on.expect("it was counted there").1 -= 1;
            }
        }
        self.count(node, 1);
    }
}

/// A region in an address space.
#[derive(Clone, Debug)]
struct Area {
    mm: u32,
    region: RegionId,
    /// Whether the next touch of the batch is a hinting fault.
    marked: Vec<bool>,
    nr_marked: usize,
}

/// What a task touches.
#[derive(Clone, Debug)]
struct TaskMemory {
    sweeps: Vec<Sweep>,
    /// Batches that the task has reached, and that must be there before it goes on: area and number.
    faults: VecDeque<(u32, u32)>,
}

/// What a node has received recently (until v4.19).
#[derive(Clone, Copy, Debug, Default)]
struct Window {
    /// End in ns.
    until: u64,
    pages: u64,
}

/// All memory that tasks touch.
#[derive(Clone, Debug)]
pub struct Memory {
    seed: u64,
    limit: MigrationLimit,
    regions: Vec<Region>,
    areas: Vec<Area>,
    /// By task.
    tasks: Vec<Option<Box<TaskMemory>>>,
    /// By task: the nodes to which its memory is bound.
    bound: Vec<Option<Vec<u16>>>,
    windows: Vec<Window>,
    /// How many tasks touch memory.
    touching: usize,
    /// Pages that were moved.
    pub pages_migrated: u64,
    /// Whether pages have come to a node since the last [`Memory::has_moved`].
    moved: bool,
}

impl Memory {
    pub(crate) fn new(limit: MigrationLimit) -> Memory {
        Memory {
            seed: 1,
            limit,
            regions: Vec::new(),
            areas: Vec::new(),
            tasks: Vec::new(),
            bound: Vec::new(),
            windows: Vec::new(),
            touching: 0,
            pages_migrated: 0,
            moved: false,
        }
    }

    /// Sets the seed for the orders of sweeps.
    pub fn set_seed(&mut self, seed: u64) {
        self.seed = seed;
    }

    /// Whether any task touches memory.
    #[inline]
    pub fn is_used(&self) -> bool {
        unlikely(self.touching > 0)
    }

    pub fn create_region(&mut self, spec: RegionSpec) -> RegionId {
        let batches = spec.bytes.div_ceil(BATCH_BYTES).max(1) as usize;
        let mut region = Region {
            bytes: spec.bytes,
            batches: vec![Batch { node: spec.node, last_cpupid: CpuPid::UNSET }; batches],
            absent: if spec.node.is_some() { 0 } else { batches },
            on: Vec::new(),
            pinned: spec.pinned,
            areas: Vec::new(),
        };
        if let Some(node) = spec.node {
            region.count(node, batches as u64);
        }
        self.regions.push(region);
        RegionId(self.regions.len() as u32 - 1)
    }

    /// How many pages of a region are on a node.
    pub fn pages_on(&self, region: RegionId, node: u16) -> u64 {
        let on = self.regions[region.0 as usize].on.iter().find(|(of, _)| *of == node);
        on.map_or(0, |(_, batches)| batches * BATCH_PAGES)
    }

    /// Where the memory that a task touches lies: nodes, each with its share in thousandths. Memory that is not there
    /// yet does not count.
    pub fn nodes_of(&self, task: TaskId) -> Vec<(u16, u64)> {
        let Some(of) = self.tasks.get(task.index()).and_then(Option::as_deref) else { return Vec::new() };
        let mut nodes: Vec<(u16, u128)> = Vec::new();
        for sweep in &of.sweeps {
            let region = &self.regions[self.areas[sweep.area as usize].region.0 as usize];
            // Even the slowest touch of the largest region counts as something.
            let rate = (u128::from(sweep.bytes_per_second()) << 32) / region.batches.len() as u128;
            for &(node, batches) in &region.on {
                let touched = rate * u128::from(batches);
                match nodes.iter_mut().find(|(known, _)| *known == node) {
                    Some((_, share)) => *share += touched,
                    None => nodes.push((node, touched)),
                }
            }
        }
        let all = nodes.iter().map(|(_, touched)| touched).sum::<u128>().max(1);
        let share = |(node, touched): (u16, u128)| (node, (touched * 1000 / all) as u64);
        nodes.into_iter().map(share).filter(|(_, share)| *share > 0).collect()
    }

    /// What a task touches: regions, the bytes of each, and how many of them it touches in a second.
    pub fn touched_by(&self, task: TaskId) -> impl Iterator<Item = (RegionId, u64, u64)> + '_ {
        let of = self.tasks.get(task.index()).and_then(Option::as_deref);
        of.into_iter().flat_map(|of| &of.sweeps).map(|sweep| {
            let region = self.areas[sweep.area as usize].region;
            (region, self.regions[region.0 as usize].bytes, sweep.bytes_per_second())
        })
    }

    /// Whether pages have come to a node since the last call: then [`Memory::nodes_of`] may have changed.
    pub fn has_moved(&mut self) -> bool {
        std::mem::take(&mut self.moved)
    }

    /// What a task touches; nothing so far if it is new here.
    fn of_task(&mut self, task: TaskId) -> &mut TaskMemory {
        if self.tasks.len() <= task.index() {
            self.tasks.resize_with(task.index() + 1, || None);
        }
        self.tasks[task.index()].get_or_insert_with(|| {
            self.touching += 1;
            Box::new(TaskMemory { sweeps: Vec::new(), faults: VecDeque::new() })
        })
    }

    fn task_mut(&mut self, task: TaskId) -> Option<&mut TaskMemory> {
        self.tasks.get_mut(task.index())?.as_deref_mut()
    }

    /// The area of a region in an address space. It is mapped if it is new.
    fn area_of<S: Scheduler>(&mut self, sched: &mut S, mm: u32, region: RegionId) -> u32 {
        if let Some(&area) =
            self.regions[region.0 as usize].areas.iter().find(|&&area| self.areas[area as usize].mm == mm)
        {
            return area;
        }
        let of = &mut self.regions[region.0 as usize];
        let batches = of.batches.len();
        self.areas.push(Area { mm, region, marked: vec![false; batches], nr_marked: 0 });
        let area = self.areas.len() as u32 - 1;
        of.areas.push(area);
        sched.numa_map(mm, batches as u64 * BATCH_PAGES, area);
        sched.add_mm_rss(mm, ((batches - of.absent) as u64 * BATCH_PAGES) as i64);
        area
    }

    /// Whether some batch of an area may fault.
    fn needs_faults(&self, area: u32) -> bool {
        let of = &self.areas[area as usize];
        of.nr_marked > 0 || self.regions[of.region.0 as usize].absent > 0
    }

    fn is_fault(&self, area: u32, batch: u32) -> bool {
        let of = &self.areas[area as usize];
        let batch = batch as usize;
        of.marked[batch] || self.regions[of.region.0 as usize].batches[batch].node.is_none()
    }

    /// A task has been in user mode for `spent`.
    pub fn ran(&mut self, task: TaskId, spent: Ps) {
        let Some(mut of) = self.tasks.get_mut(task.index()).and_then(Option::take) else { return };
        let TaskMemory { sweeps, faults } = &mut *of;
        for sweep in sweeps {
            let area = sweep.area;
            let found = |batch| faults.push_back((area, batch));
            sweep.advance(spent, self.needs_faults(area), |batch| self.is_fault(area, batch), found);
        }
        self.tasks[task.index()] = Some(of);
    }

    /// How long a task may stay in user mode until it reaches a batch that faults, or one at which this must be asked
    /// again; `None`: without limit.
    pub fn next_touch(&self, task: TaskId) -> Option<Ps> {
        let of = self.tasks.get(task.index())?.as_deref()?;
        let next = |sweep: &Sweep| {
            let area = sweep.area;
            self.needs_faults(area).then(|| sweep.next(|batch| self.is_fault(area, batch)))
        };
        of.sweeps.iter().filter_map(next).min()
    }
}

impl PageTables for Memory {
    fn vma_policy_mof(&self, task: TaskId) -> bool {
        Memory::vma_policy_mof(self, task)
    }

    fn change_prot_numa(&mut self, area: u32, from: u64, to: u64) -> u64 {
        let of = &mut self.areas[area as usize];
        let range = (from / BATCH_PAGES) as usize..to.div_ceil(BATCH_PAGES) as usize;
        let batches = &self.regions[of.region.0 as usize].batches[range.clone()];
        let mut updates = 0;
        for (marked, _) in of.marked[range].iter_mut().zip(batches).filter(|(_, batch)| batch.node.is_some()) {
            if !std::mem::replace(marked, true) {
                of.nr_marked += 1;
                updates += BATCH_PAGES;
            }
        }
        updates
    }
}

impl Os {
    /// From now on `task`, of the address space `mm`, touches this many bytes of a region in each second of its run
    /// time; 0: it leaves the region alone.
    pub fn touch_memory<S: Scheduler>(
        &mut self,
        sched: &mut S,
        (task, mm): (TaskId, u32),
        region: RegionId,
        bytes_per_second: u64,
    ) {
        let memory = &mut self.memory;
        let area = memory.area_of(sched, mm, region);
        let batches = memory.areas[area as usize].marked.len() as u32;
        let owner = (task.index() as u64) << 32 | u64::from(area);
        let random = Prng::stream(memory.seed, "memory", owner);
        let of = memory.of_task(task);
        of.sweeps.retain(|sweep| sweep.area != area);
        if bytes_per_second > 0 {
            of.sweeps.push(Sweep::new(area, batches, bytes_per_second, random));
        }
    }

    /// `task`, of the address space `mm`, touches every page of a region that is not there yet, on its way to user
    /// mode.
    pub fn populate_memory<S: Scheduler>(&mut self, sched: &mut S, (task, mm): (TaskId, u32), region: RegionId) {
        let memory = &mut self.memory;
        let area = memory.area_of(sched, mm, region);
        let batches = memory.regions[region.0 as usize].batches.iter().enumerate();
        let absent: Vec<u32> = batches.filter(|(_, it)| it.node.is_none()).map(|(number, _)| number as u32).collect();
        memory.of_task(task).faults.extend(absent.into_iter().map(|batch| (area, batch)));
    }

    /// A task has ended. Its address space goes with its last task. Regions stay as they are for the next task that
    /// touches them.
    pub fn exit_memory<S: Scheduler>(&mut self, sched: &mut S, task: TaskId, mm: u32) {
        let memory = &mut self.memory;
        if memory.tasks.get_mut(task.index()).and_then(Option::take).is_some() {
            memory.touching -= 1;
        }
        if mm != 0 && sched.exit_numa_mm(mm) {
            for (number, area) in memory.areas.iter().enumerate().filter(|(_, area)| area.mm == mm) {
                memory.regions[area.region.0 as usize].areas.retain(|&of| of as usize != number);
            }
        }
    }

    /// On its way to user mode `task` does one thing that must be done before: a scan of its memory, or a fault.
    /// Returns whether there was anything.
    pub fn exit_to_user_mode<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, task: TaskId) -> bool {
        if sched.numa_work_pending(task) {
            self.scan_memory(sched, cpu);
            return true;
        }
        if sched.cache_work_pending(task) {
            sched.task_cache_work(cpu);
            return true;
        }
        while let Some((area, batch)) = self.memory.task_mut(task).and_then(|of| of.faults.pop_front()) {
            // Another thread may have handled it first.
            if self.memory.is_fault(area, batch) {
                self.handle_mm_fault(sched, cpu, task, (area, batch));
                return true;
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_huge_region_that_is_touched_slowly_lies_somewhere() {
        let mut memory = Memory::new(MigrationLimit::None);
        let region = memory.create_region(RegionSpec { bytes: 1 << 40, node: Some(1), pinned: true });
        let batches = memory.regions[0].batches.len();
        memory.areas.push(Area { mm: 1, region, marked: vec![false; batches], nr_marked: 0 });
        let task = TaskId(3);
        // 100 KB/s of a terabyte.
        let sweep = Sweep::new(0, batches as u32, 100_000, Prng::stream(1, "test", 0));
        memory.of_task(task).sweeps.push(sweep);
        assert!(matches!(memory.nodes_of(task)[..], [(1, share)] if share > 0));
    }
}
