//! mm/memory.c and mm/migrate.c: what happens at the touch of a page that is not there, or that the NUMA scanner has
//! unmapped.

use super::{BATCH_BYTES, BATCH_PAGES, Memory, MigrationLimit, Window};
use crate::{Os, charge, paths, within};
use sched::arch::Arch;
use sched::fair::numa::HintingFault;
use sched::sched::TaskId;
use sched::scheduler::Scheduler;
use units::CpuId;

/// migrate.c: migrate_interval_millisecs, in ns, and ratelimit_pages: 128 MB.
const WINDOW_NS: u64 = 100_000_000;
const PAGES_PER_WINDOW: u64 = 128 << 8;

impl Memory {
    /// migrate.c: numamigrate_update_ratelimit() (until v4.19). Returns whether a node has received enough for now.
    fn numamigrate_update_ratelimit(&mut self, node: u16, now_ns: u64) -> bool {
        if self.limit == MigrationLimit::None {
            return false;
        }
        if self.windows.len() <= usize::from(node) {
            self.windows.resize(usize::from(node) + 1, Window::default());
        }
        let window = &mut self.windows[usize::from(node)];
        if now_ns > window.until {
            *window = Window { until: now_ns + WINDOW_NS, pages: 0 };
        }
        if window.pages > PAGES_PER_WINDOW {
            return true;
        }
        window.pages += BATCH_PAGES;
        false
    }
}

impl Os {
    /// fair.c: task_numa_work(), for the task that runs on `cpu`. Charges its work on the page tables.
    pub(super) fn scan_memory<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId) {
        let before: usize = self.memory.areas.iter().map(|area| area.nr_marked).sum();
        sched.task_numa_work(cpu, &mut self.memory);
        let after: usize = self.memory.areas.iter().map(|area| area.nr_marked).sum();
        for _ in before..after {
            charge(sched, cpu, paths::CHANGE_PROT_NUMA);
        }
    }

    /// memory.c: handle_mm_fault(), for a batch of an area.
    pub(super) fn handle_mm_fault<S: Scheduler>(
        &mut self,
        sched: &mut S,
        cpu: CpuId,
        task: TaskId,
        (area, batch): (u32, u32),
    ) {
        let of = &self.memory.areas[area as usize];
        if of.marked[batch as usize] {
            within(sched, cpu, paths::DO_NUMA_PAGE, |sched| self.do_numa_page(sched, cpu, task, (area, batch)));
        } else {
            charge(sched, cpu, paths::DO_ANONYMOUS_PAGE);
            // The new memory is cleared.
            sched.arch_mut().copy(cpu, BATCH_BYTES);
            let node = self.memory.policy_node(sched, task, sched.cpu_to_node(cpu));
            let region = &mut self.memory.regions[of.region.0 as usize];
            region.place(batch, node);
            self.memory.moved = true;
            for &area in &region.areas {
                sched.add_mm_rss(self.memory.areas[area as usize].mm, BATCH_PAGES as i64);
            }
            self.memory_counted(cpu);
        }
    }

    /// memory.c: do_numa_page(), and huge_memory.c: do_huge_pmd_numa_page(). The scanner has unmapped the page: moves
    /// it to this node if the scheduler says so, maps it again, and reports the fault to the scheduler.
    fn do_numa_page<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, task: TaskId, (area, batch): (u32, u32)) {
        let node = sched.cpu_to_node(cpu);
        let may_move = self.memory.vma_policy_mof(task);
        let of = &mut self.memory.areas[area as usize];
        of.marked[batch as usize] = false;
        of.nr_marked -= 1;
        let region = &mut self.memory.regions[of.region.0 as usize];
        let (pinned, shared) = (region.pinned, region.areas.len() > 1);
        let page = &mut region.batches[batch as usize];
        let (from, last_cpupid) = (page.node.expect("only what is there is taken away"), page.last_cpupid);
        sched.vma_set_access_pid_bit(cpu, area);
        let wanted = may_move && sched.should_numa_migrate_memory(cpu, &mut page.last_cpupid, from) && from != node;
        let migrated = wanted && self.migrate_misplaced_page(sched, cpu, node, pinned);
        if migrated {
            let region = self.memory.areas[area as usize].region;
            self.memory.regions[region.0 as usize].place(batch, node);
            self.memory.moved = true;
        }
        sched.task_numa_fault(
            cpu,
            HintingFault {
                last_cpupid,
                mem_node: if migrated { node } else { from },
                pages: BATCH_PAGES,
                migrated,
                shared,
                local: from == node,
                migrate_fail: wanted && !migrated,
            },
        );
    }

    /// migrate.c: migrate_misplaced_page(): copies a page to `node`. Returns whether that was possible.
    fn migrate_misplaced_page<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, node: u16, pinned: bool) -> bool {
        let now = sched.arch().sched_clock(cpu).0;
        if self.memory.numamigrate_update_ratelimit(node, now) || pinned {
            return false;
        }
        charge(sched, cpu, paths::MIGRATE_MISPLACED_PAGE);
        sched.arch_mut().copy(cpu, BATCH_BYTES);
        self.memory.pages_migrated += BATCH_PAGES;
        true
    }
}
