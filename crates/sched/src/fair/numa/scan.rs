//! fair.c: the scanner: which stretch of a task's memory is unmapped next, and when.

use super::periods::{self, PAGES_PER_MB, Sharing};
use super::{FirstMigration, FirstScan, NumaTask, ScanAreas, ScanBounds, ScanReset};
use crate::arch::Arch;
use crate::core::Sched;
use crate::sched::TaskId;
use fentry::fentry;
use units::CpuId;

/// The pages of a huge page.
const HPAGE_PAGES: u64 = 512;

/// What NUMA balancing needs from the page tables of a scanned process.
pub trait PageTables {
    /// mempolicy.c: change_prot_numa(). Makes the next touch of each present page fault; `from` and `to` are pages
    /// counted from the start of the area. Returns for how many pages that is new.
    fn change_prot_numa(&mut self, area: u32, from: u64, to: u64) -> u64;
    /// mempolicy.c: vma_policy_mof(). Whether what `task` touches may be unmapped and moved to it; not if a memory
    /// policy of its own decides where it lies.
    fn vma_policy_mof(&self, _task: TaskId) -> bool {
        true
    }
}

/// The fields of struct mm_struct for NUMA balancing. Addresses and sizes in pages of 4 KiB.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NumaMm {
    /// How often the whole memory has been scanned.
    pub numa_scan_seq: u32,
    pub numa_scan_offset: u64,
    /// Jiffies.
    pub numa_next_scan: u64,
    /// How many tasks share the address space.
    pub mm_users: u32,
    /// How many pages are present (get_mm_rss()).
    pub rss: u64,
    /// In the order of their addresses.
    pub vmas: Vec<Vma>,
}

/// mm_types.h: struct vm_area_struct, for memory that can move.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vma {
    pub vm_start: u64,
    pub vm_end: u64,
    /// The number of the area in the page tables.
    pub area: u32,
    pub numab_state: Option<VmaNumabState>,
}

/// mm_types.h: struct vma_numab_state (v6.4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VmaNumabState {
    /// Jiffies.
    pub next_scan: u64,
    pub pids_active_reset: u64,
    /// The tasks that touched the area, by a hash of the process number: in the last period, and in this one.
    pub pids_active: [u64; 2],
    pub start_scan_seq: u32,
    pub prev_scan_seq: u32,
}

/// A scan in progress.
struct Scan {
    start: u64,
    /// How many pages may still be unmapped, and how many looked at.
    pages: i64,
    virtpages: i64,
}

impl Scan {
    /// Scans a part of an area, until either ends. Returns whether the scan ends.
    fn area(&mut self, vma: &Vma, tables: &mut dyn PageTables) -> bool {
        loop {
            self.start = self.start.max(vma.vm_start);
            let end = (self.start + self.pages as u64).next_multiple_of(HPAGE_PAGES).min(vma.vm_end);
            let updates = tables.change_prot_numa(vma.area, self.start - vma.vm_start, end - vma.vm_start);
            let length = (end - self.start) as i64;
            // Pages that are absent or unmapped already are only skipped.
            if updates > 0 {
                self.pages -= length;
            }
            self.virtpages -= length;
            self.start = end;
            if self.pages <= 0 || self.virtpages <= 0 {
                return true;
            }
            if end == vma.vm_end {
                return false;
            }
        }
    }
}

/// The bit of a task's process number in `pids_active` (hash_32() of 6 bits).
fn pid_bit(pid: u32) -> u64 {
    const GOLDEN_RATIO_32: u32 = 0x61C8_8647;
    1 << (pid.wrapping_mul(GOLDEN_RATIO_32) >> 26)
}

impl<A: Arch> Sched<A> {
    fn rss_of(&self, p: TaskId) -> u64 {
        self.numa.mm.get(&self.task[p].mm).map_or(0, |mm| mm.rss)
    }

    /// How a group's sharing affects the periods of its tasks, in kernels where it does.
    fn sharing_of(&self, p: TaskId) -> Option<Sharing> {
        let group = self.numa.task(p).and_then(|task| task.numa_group);
        group.filter(|_| self.kernel.numa.scan_bounds == ScanBounds::Sharing).map(|group| self.numa.sharing(group))
    }

    pub(super) fn task_scan_min(&self, p: TaskId) -> u64 {
        periods::task_scan_min(&self.sysctl, self.rss_of(p))
    }

    pub(super) fn task_scan_start(&self, p: TaskId) -> u64 {
        periods::task_scan_start(&self.sysctl, self.rss_of(p), self.sharing_of(p))
    }

    pub(super) fn task_scan_max(&self, p: TaskId) -> u64 {
        periods::task_scan_max(&self.sysctl, self.rss_of(p), self.sharing_of(p))
    }

    // Address spaces.

    /// mmap(): the process of `mm` gets another area of `pages` pages, behind all others. `area` is its number in the
    /// page tables.
    ///
    /// Differs: an address space counts from its first area on; in the kernel, from the fork of its first task on.
    pub(crate) fn numa_map(&mut self, mm: u32, pages: u64, area: u32) {
        assert_ne!(mm, 0, "kernel threads have no memory of their own");
        if !self.numa.mm.contains_key(&mm) {
            self.begin_mm(mm);
        }
        let numa_mm = self.numa.mm.get_mut(&mm).expect("it was made above");
        let vm_start = numa_mm.vmas.last().map_or(0, |vma| vma.vm_end);
        numa_mm.vmas.push(Vma { vm_start, vm_end: vm_start + pages, area, numab_state: None });
    }

    fn begin_mm(&mut self, mm: u32) {
        self.numa.begin();
        let users: Vec<TaskId> =
            self.task.iter().filter(|(_, task)| task.alive && task.mm == mm).map(|(p, _)| p).collect();
        for &p in &users {
            self.numa.task.ensure(p);
            self.numa.task[p] = self.new_numa_task(0);
        }
        let numa_next_scan = self.jiffies() + self.msecs_to_jiffies(self.sysctl.numa_balancing_scan_delay);
        let mm_users = users.len() as u32;
        self.numa.mm.insert(mm, NumaMm { numa_next_scan, mm_users, ..NumaMm::default() });
    }

    /// So many pages were added, or removed.
    pub(crate) fn add_mm_rss(&mut self, mm: u32, pages: i64) {
        let mm = self.numa.mm.get_mut(&mm).expect("pages lie in areas");
        mm.rss = mm.rss.checked_add_signed(pages).expect("only pages that are there go");
    }

    fn new_numa_task(&self, numa_scan_seq: u32) -> NumaTask {
        NumaTask { numa_scan_seq, numa_scan_period: self.sysctl.numa_balancing_scan_delay, ..NumaTask::default() }
    }

    /// fair.c: init_numa_balancing() (v5.1; before, a part of `__sched_fork()`). A new thread in scanned memory prefers
    /// the node that its creator prefers.
    pub(crate) fn init_numa_balancing(&mut self, parent: Option<TaskId>, p: TaskId) {
        let mm = self.task[p].mm;
        let Some(numa_mm) = self.numa.mm.get_mut(&mm) else { return };
        numa_mm.mm_users += 1;
        let (seq, users) = (numa_mm.numa_scan_seq, numa_mm.mm_users);
        let mut task = self.new_numa_task(seq);
        if let Some(parent) = parent.filter(|&parent| self.task[parent].mm == mm) {
            task.numa_preferred_nid = self.numa_preferred_nid(parent);
            if self.kernel.numa.first_scan == FirstScan::Staggered {
                // In ns, except for the first bound, which is in ms and therefore usually the smaller one.
                let periods = self.numa.task[parent].numa_scan_period * u64::from(users) * 1_000_000;
                task.node_stamp = self.task_scan_max(parent).min(u64::from(periods as u32)) + 2 * self.tick_nsec;
            }
        }
        if self.kernel.numa.first_migration == FirstMigration::WithCreator
            && let Some(creator) = parent.and_then(|parent| self.numa.task(parent))
        {
            task.numa_migrate_retry = creator.numa_migrate_retry;
        }
        self.numa.task.ensure(p);
        self.numa.task[p] = task;
    }

    /// A task leaves its address space; the last one ends it. Returns whether it was the last.
    pub(crate) fn exit_numa_mm(&mut self, mm: u32) -> bool {
        let Some(numa_mm) = self.numa.mm.get_mut(&mm) else { return false };
        numa_mm.mm_users -= 1;
        let last = numa_mm.mm_users == 0;
        if last {
            self.numa.mm.remove(&mm);
        }
        last
    }

    // When.

    /// fair.c: task_tick_numa(). A task scans once it has run for a period: so busy tasks scan, and only after some
    /// work.
    pub(in crate::fair) fn task_tick_numa(&mut self, curr: TaskId) {
        let Some(mm) = self.numa.mm.get(&self.task[curr].mm) else { return };
        let next_scan = mm.numa_next_scan;
        if self.is_exiting(curr) || self.numa.task[curr].numa_work {
            return;
        }
        let now = self.se[self.task[curr].se].sum_exec_runtime;
        let period = self.numa.task[curr].numa_scan_period * 1_000_000;
        if now <= self.numa.task[curr].node_stamp + period {
            return;
        }
        if self.numa.task[curr].node_stamp == 0 {
            self.numa.task[curr].numa_scan_period = self.task_scan_start(curr);
        }
        self.numa.task[curr].node_stamp += period;
        self.numa.task[curr].numa_work = self.jiffies() >= next_scan;
    }

    /// fair.c: task_numa_work(). On its way to user mode, the current task unmaps the next stretch of its memory.
    #[fentry]
    pub(crate) fn task_numa_work(&mut self, tables: &mut dyn PageTables) {
        let p = self.rq[self.this_cpu].curr.expect("a task is on its way to user mode");
        self.numa.task[p].numa_work = false;
        if self.is_exiting(p) {
            return;
        }
        let now = self.jiffies();
        let id = self.task[p].mm;
        let Some(next_scan) = self.numa.mm.get(&id).map(|mm| mm.numa_next_scan).filter(|&next| now >= next) else {
            return;
        };
        if self.numa.task[p].numa_scan_period == 0 {
            self.numa.task[p].numa_scan_period_max = self.task_scan_max(p);
            self.numa.task[p].numa_scan_period = self.task_scan_start(p);
        }
        let after = now + self.msecs_to_jiffies(self.numa.task[p].numa_scan_period);
        let mm = self.numa.mm.get_mut(&id).expect("it was there above");
        debug_assert_eq!(mm.numa_next_scan, next_scan, "nobody scans meanwhile");
        mm.numa_next_scan = after;
        // Makes it likely that another thread scans next.
        self.numa.task[p].node_stamp += 2 * self.tick_nsec;
        if !tables.vma_policy_mof(p) {
            // The scan skips every area, and so has reached the end.
            return self.numa.mm.get_mut(&id).expect("it was there above").reset_ptenuma_scan();
        }
        let pages = (self.sysctl.numa_balancing_scan_size * PAGES_PER_MB) as i64;
        let mut scan = Scan { start: 0, pages, virtpages: pages * 8 };
        match self.kernel.numa.scan_areas {
            ScanAreas::All => self.scan_all(id, &mut scan, tables),
            ScanAreas::AccessedAlone => self.scan_accessed_alone(id, self.task_cold[p].pid, &mut scan, tables),
            ScanAreas::Accessed => self.scan_accessed(id, self.task_cold[p].pid, &mut scan, tables),
        }
    }

    /// task_numa_work() until v6.3: continues where the last scan ended, area by area.
    fn scan_all(&mut self, id: u32, scan: &mut Scan, tables: &mut dyn PageTables) {
        let mm = self.numa.mm.get_mut(&id).expect("the caller has it");
        scan.start = mm.numa_scan_offset;
        let mut first = mm.vmas.partition_point(|vma| vma.vm_end <= scan.start);
        if first == mm.vmas.len() {
            mm.reset_ptenuma_scan();
            (scan.start, first) = (0, 0);
        }
        let ended = mm.vmas[first..].iter().any(|vma| scan.area(vma, tables));
        if ended {
            mm.numa_scan_offset = scan.start;
        } else {
            mm.reset_ptenuma_scan();
        }
    }

    /// task_numa_work() of v6.6: scans areas that the task was seen to touch, all tasks' in the first two scans of the memory.
    fn scan_accessed_alone(&mut self, id: u32, pid: u32, scan: &mut Scan, tables: &mut dyn PageTables) {
        let now = self.jiffies();
        let delay = self.msecs_to_jiffies(self.sysctl.numa_balancing_scan_delay);
        let reset_period = self.msecs_to_jiffies(4 * self.sysctl.numa_balancing_scan_delay);
        let mm = self.numa.mm.get_mut(&id).expect("the caller has it");
        scan.start = mm.numa_scan_offset;
        let mut at = mm.vmas.partition_point(|vma| vma.vm_end <= scan.start);
        if at == mm.vmas.len() {
            mm.reset_ptenuma_scan();
            (scan.start, at) = (0, 0);
        }
        let seq = mm.numa_scan_seq;
        for vma in &mut mm.vmas[at..] {
            let state = vma.numab_state.get_or_insert(VmaNumabState {
                next_scan: now + delay,
                pids_active_reset: now + delay + reset_period,
                ..VmaNumabState::default()
            });
            if seq != 0 && now < state.next_scan || seq >= 2 && !state.was_seen(pid) {
                continue;
            }
            if seq != 0 && now > state.pids_active_reset {
                state.pids_active_reset += reset_period;
                state.pids_active = [state.pids_active[1], 0];
            }
            if scan.area(vma, tables) {
                mm.numa_scan_offset = scan.start;
                return;
            }
        }
        mm.reset_ptenuma_scan();
    }

    /// task_numa_work() from v6.7 on: scans areas that the task was seen to touch; if there are none, the first other
    /// one.
    fn scan_accessed(&mut self, id: u32, pid: u32, scan: &mut Scan, tables: &mut dyn PageTables) {
        let now = self.jiffies();
        let delay = self.msecs_to_jiffies(self.sysctl.numa_balancing_scan_delay);
        let reset_period = self.msecs_to_jiffies(4 * self.sysctl.numa_balancing_scan_delay);
        let mm = self.numa.mm.get_mut(&id).expect("the caller has it");
        let mut forced = false;
        loop {
            scan.start = mm.numa_scan_offset;
            let mut at = mm.vmas.partition_point(|vma| vma.vm_end <= scan.start);
            if at == mm.vmas.len() {
                mm.reset_ptenuma_scan();
                (scan.start, at) = (0, 0);
            }
            let mut skipped = false;
            let ended = loop {
                let Some(vma) = mm.vmas.get_mut(at) else { break false };
                at += 1;
                let seq = mm.numa_scan_seq;
                let state = vma.numab_state.get_or_insert(VmaNumabState {
                    next_scan: now + delay,
                    pids_active_reset: now + delay + reset_period,
                    pids_active: [0; 2],
                    start_scan_seq: seq,
                    prev_scan_seq: seq.wrapping_sub(1),
                });
                if seq != 0 && now < state.next_scan {
                    continue;
                }
                if seq != 0 && now > state.pids_active_reset {
                    state.pids_active_reset += reset_period;
                    state.pids_active = [state.pids_active[1], 0];
                }
                if state.prev_scan_seq == seq {
                    mm.numa_scan_offset = vma.vm_end;
                    continue;
                }
                if !forced && !vma_is_accessed(vma.vm_start, state, seq, mm.numa_scan_offset, mm.mm_users, pid) {
                    skipped = true;
                    continue;
                }
                if scan.area(vma, tables) {
                    break true;
                }
                state_of(vma).prev_scan_seq = seq;
                if forced {
                    break true;
                }
            };
            if ended {
                mm.numa_scan_offset = scan.start;
                return;
            }
            if forced || !skipped {
                mm.reset_ptenuma_scan();
                return;
            }
            forced = true;
        }
    }

    /// mm.h: vma_set_access_pid_bit(). The current task was seen to touch an area (v6.4).
    pub(crate) fn vma_set_access_pid_bit(&mut self, area: u32) {
        let p = self.rq[self.this_cpu].curr.expect("a task touches memory");
        let pid = self.task_cold[p].pid;
        let mm = self.numa.mm.get_mut(&self.task[p].mm).expect("it has memory");
        let vma = mm.vmas.iter_mut().find(|vma| vma.area == area);
        if let Some(state) = vma.and_then(|vma| vma.numab_state.as_mut()) {
            state.pids_active[1] |= pid_bit(pid);
        }
    }

    /// fair.c: update_scan_period(). `p` is about to move to `new_cpu`.
    pub(crate) fn update_scan_period(&mut self, p: TaskId, new_cpu: CpuId) {
        if self.kernel.numa.scan_reset != ScanReset::NodeChange || !self.numa.is_on() {
            return;
        }
        let (src, dst) = (self.task_node(p), self.cpu_to_node(new_cpu));
        let Some(task) = self.numa.task(p) else { return };
        if self.task[p].mm == 0 || task.numa_faults.is_empty() || self.is_exiting(p) || src == dst {
            return;
        }
        let preferred = task.numa_preferred_nid;
        // Before its first scan is complete, any move resets the period.
        if task.numa_scan_seq != 0 && (preferred == Some(dst) || preferred.is_some_and(|nid| nid != src)) {
            return;
        }
        self.numa.task[p].numa_scan_period = self.task_scan_start(p);
    }
}

impl NumaMm {
    /// fair.c: reset_ptenuma_scan(). All memory has been scanned.
    fn reset_ptenuma_scan(&mut self) {
        self.numa_scan_seq += 1;
        self.numa_scan_offset = 0;
    }
}

impl VmaNumabState {
    /// Whether the task with that process number was seen to touch the area, in this period or the last.
    fn was_seen(&self, pid: u32) -> bool {
        (self.pids_active[0] | self.pids_active[1]) & pid_bit(pid) != 0
    }
}

fn state_of(vma: &mut Vma) -> &mut VmaNumabState {
    vma.numab_state.as_mut().expect("an area that is scanned has its state")
}

/// fair.c: vma_is_accessed(). Whether the task with that process number is to scan the area that begins at `vm_start`:
/// the first two times; if it was seen to touch the area; if the scan has got past the area's start; or if the others
/// have not scanned it for long.
fn vma_is_accessed(vm_start: u64, state: &VmaNumabState, seq: u32, offset: u64, threads: u32, pid: u32) -> bool {
    seq.wrapping_sub(state.start_scan_seq) < 2
        || state.was_seen(pid)
        || offset > vm_start
        || seq > state.prev_scan_seq.wrapping_add(threads)
}
