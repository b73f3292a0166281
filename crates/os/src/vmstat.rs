//! mm/vmstat.c: memory counters that each CPU keeps for itself, and adds to the global ones when it goes idle, or once a
//! second.
//!
//! Each zone has some forty of them. A CPU that goes idle does something about its own ([`QuietVmstat`]). On request
//! ([`Os::start_shepherd_timer`]) there is also the work that adds them up: a CPU whose counters have changed does it a
//! second later again, one whose counters have not leaves it to the shepherd, a work of one CPU that looks at all others
//! once a second. Until some version before v4.15 ([`QuietVmstat`]) a mask of all CPUs says whose work is off.
//!
//! Which counters change is known of pages of pipes only, for which global lines are fetched where they are added. Of
//! anything else that allocates or frees memory (a process, a file, a packet) it is only known that some have: such a
//! CPU's work comes back, and no line is fetched for them.

use crate::background::{NumaEvents, QuietVmstat, VmstatIsolated};
use crate::workqueue::{DelayedWork, Queue, Work};
use crate::{Os, Step, charge, paths, within};
use sched::arch::Arch;
use sched::layout::Line;
use sched::scheduler::Scheduler;
use units::{CpuId, unlikely};

/// The mask, and two lines of the global sums. An allocated page counts in `NR_ALLOC_BATCH`, which is at the begin of
/// the sums, and in `NUMA_HIT` and `NUMA_LOCAL`, which are at their end.
const GLOBAL: &[&str] = &["cpu_stat_off", "vm_stat: NR_ALLOC_BATCH", "vm_stat: NUMA_HIT, NUMA_LOCAL"];

/// The same two lines of a zone.
const ZONE: &[&str] = &["zone: vm_stat[NR_ALLOC_BATCH]", "zone: vm_stat[NUMA_HIT, NUMA_LOCAL]"];

/// Zones of the first node beside its ZONE_NORMAL: ZONE_DMA, ZONE_DMA32.
const LOW_ZONES: usize = 2;

/// The state of these counters.
#[derive(Clone, Debug, Default)]
pub struct VmStat {
    /// [`GLOBAL`], and [`ZONE`] of each node's ZONE_NORMAL; allocated at their first use.
    global: Option<Line>,
    zones: Vec<Line>,
    /// For each CPU, whether those of its counters (`vm_stat_diff`) are not zero in which a page of a pipe counts.
    changed: Vec<bool>,
    /// The work of each CPU; none where nobody has started the shepherd.
    works: Vec<CpuWork>,
}

/// A CPU's `vmstat_work`.
#[derive(Clone, Copy, Debug, Default)]
struct CpuWork {
    /// delayed_work_pending(): it waits for its timer or for a worker.
    pending: bool,
    /// The number of the timer that it waits for; one with another number was cancelled.
    timer: u32,
    /// Whether the CPU is in `cpu_stat_off`.
    off: bool,
    /// Whether any other counter is not zero.
    changed: bool,
}

fn nth(first: Line, index: u32) -> Line {
    Line { index: first.index + index, ..first }
}

impl Os {
    /// page_alloc.c: zone_statistics(), and what buffered_rmqueue() counts as well, for a page that `cpu` has
    /// allocated.
    #[inline]
    pub(crate) fn zone_statistics(&mut self, cpu: CpuId) {
        if self.irq.rules.numa_events == NumaEvents::Apart {
            return;
        }
        let changed = &mut self.vmstat.changed;
        if unlikely(changed.len() <= cpu.index()) {
            changed.resize(cpu.index() + 1, false);
        }
        changed[cpu.index()] = true;
    }

    /// `cpu` has allocated or freed memory: some counters of its own have changed.
    #[inline]
    pub fn memory_counted(&mut self, cpu: CpuId) {
        if let Some(work) = self.vmstat.works.get_mut(cpu.index()) {
            work.changed = true;
        }
    }

    /// vmstat.c: need_update(): whether a CPU's counters have changed since they were last added up.
    fn need_update(&self, cpu: CpuId) -> bool {
        self.vmstat.changed.get(cpu.index()) == Some(&true)
            || self.vmstat.works.get(cpu.index()).is_some_and(|work| work.changed)
    }

    /// vmstat.c: start_shepherd_timer(): from now on a machine of `nr_cpus` CPUs adds up its counters. The shepherd
    /// itself is [`DelayedWork::VmstatShepherd`], for the caller to queue.
    pub fn start_shepherd_timer(&mut self, nr_cpus: usize) {
        // At rest since boot: every CPU has been found to have nothing to add.
        self.vmstat.works = vec![CpuWork { off: true, ..CpuWork::default() }; nr_cpus];
    }

    /// vmstat.c: quiet_vmstat(), called by the idle loop when `cpu` enters it.
    ///
    /// Differs: without a shepherd a CPU that is in the mask stays there.
    #[inline(always)]
    pub fn quiet_vmstat<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId) {
        let rule = self.irq.rules.quiet_vmstat;
        if unlikely(rule != QuietVmstat::WithTick) {
            self.quiet_vmstat_by(rule, sched, cpu);
        }
    }

    #[inline(never)]
    fn quiet_vmstat_by<S: Scheduler>(&mut self, rule: QuietVmstat, sched: &mut S, cpu: CpuId) {
        let cpu_stat_off = self.vmstat_lines(sched);
        within(sched, cpu, paths::QUIET_VMSTAT, |sched| {
            sched.arch_mut().atomic(cpu, cpu_stat_off);
            let was_off = self.vmstat.works.get_mut(cpu.index()).map(|work| std::mem::replace(&mut work.off, true));
            if rule == QuietVmstat::EachTime {
                if was_off == Some(false) {
                    self.cancel_vmstat_work(cpu);
                }
                while self.refresh_cpu_vm_stats(sched, cpu, cpu_stat_off) {}
            } else if was_off == Some(false) && self.need_update(cpu) {
                self.refresh_cpu_vm_stats(sched, cpu, cpu_stat_off);
            }
        });
    }

    /// The same where the tick stops ([`QuietVmstat::WithTick`]). The work's timer stays.
    #[inline]
    pub fn quiet_vmstat_with_tick<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId) {
        let work = self.vmstat.works.get(cpu.index());
        if unlikely(work.is_some_and(|work| work.pending)) && self.irq.rules.quiet_vmstat == QuietVmstat::WithTick {
            self.quiet_pending_work(sched, cpu);
        }
    }

    #[inline(never)]
    fn quiet_pending_work<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId) {
        charge(sched, cpu, paths::NEED_UPDATE);
        if self.need_update(cpu) {
            self.fold_all(sched, cpu);
        }
    }

    /// vmstat.c: vmstat_cpu_down_prep(), vmstat_cpuup_callback() until v4.9: `cpu` goes down, and its work with it.
    #[doc(alias = "vmstat_cpu_down_prep")]
    pub fn cancel_vmstat_work(&mut self, cpu: CpuId) {
        if let Some(work) = self.vmstat.works.get_mut(cpu.index()) {
            work.pending = false;
            work.timer = work.timer.wrapping_add(1);
        }
    }

    /// The number for a timer that is armed for this work; [`Os::delayed_work_timer_fn`] wants it back.
    pub fn delayed_work_timer(&self, cpu: CpuId, work: DelayedWork) -> u32 {
        match work {
            DelayedWork::VmstatUpdate => self.vmstat.works[cpu.index()].timer,
            DelayedWork::VmstatShepherd => 0,
        }
    }

    /// workqueue.c: delayed_work_timer_fn(): the timer of a delayed work fires on `cpu`: it is left to a worker.
    pub fn delayed_work_timer_fn<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, work: DelayedWork, timer: u32) {
        let item = match work {
            DelayedWork::VmstatShepherd => Work::VmstatShepherd,
            DelayedWork::VmstatUpdate if self.vmstat.works[cpu.index()].timer != timer => return,
            DelayedWork::VmstatUpdate => Work::VmstatUpdate,
        };
        self.queue_work(sched, cpu, Queue::Bound, item);
    }

    /// vmstat.c: vmstat_update(): adds up `cpu`'s counters, and does so again in a second if any had changed.
    pub(crate) fn vmstat_update<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId) -> Step {
        // process_one_work() has cleared it.
        self.vmstat.works[cpu.index()].pending = false;
        let changed = self.fold_all(sched, cpu);
        let masks = self.irq.rules.quiet_vmstat != QuietVmstat::WithTick;
        if masks {
            let cpu_stat_off = self.vmstat_lines(sched);
            sched.arch_mut().atomic(cpu, cpu_stat_off);
        }
        let work = &mut self.vmstat.works[cpu.index()];
        let again = match self.irq.rules.quiet_vmstat {
            // Who finds the CPU in the mask, because it was idle since, takes it out and leaves it at that.
            QuietVmstat::OnceOff => changed && !std::mem::replace(&mut work.off, false),
            QuietVmstat::EachTime | QuietVmstat::WithTick => changed,
        };
        if !changed {
            work.off = true;
        }
        if !again {
            return Step::Done(0);
        }
        work.pending = true;
        Step::Delay(DelayedWork::VmstatUpdate)
    }

    /// vmstat.c: vmstat_shepherd(): brings back the work of CPUs whose counters have changed, and looks again in a
    /// second.
    pub(crate) fn vmstat_shepherd<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId) -> Step {
        let rules = self.irq.rules;
        let masks = rules.quiet_vmstat != QuietVmstat::WithTick;
        for other in (0..self.vmstat.works.len()).map(CpuId::new) {
            let work = self.vmstat.works[other.index()];
            let spared = rules.vmstat_isolated == VmstatIsolated::Spared && sched.cpu_is_isolated(other);
            if spared || !sched.is_online(other) || if masks { !work.off } else { work.pending } {
                continue;
            }
            charge(sched, cpu, paths::NEED_UPDATE);
            if !self.need_update(other) {
                continue;
            }
            if masks {
                let cpu_stat_off = self.vmstat_lines(sched);
                sched.arch_mut().atomic(cpu, cpu_stat_off);
            }
            let work = &mut self.vmstat.works[other.index()];
            work.off = false;
            if !std::mem::replace(&mut work.pending, true) {
                self.queue_work_on(sched, cpu, other, Queue::Bound, Work::VmstatUpdate);
            }
        }
        Step::Delay(DelayedWork::VmstatShepherd)
    }

    /// refresh_cpu_vm_stats() by the work, of all zones at once. Returns whether any counter was not zero.
    fn fold_all<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId) -> bool {
        let global = self.vmstat_lines(sched);
        within(sched, cpu, paths::VMSTAT_UPDATE, |sched| {
            let (pages, others) = self.take_changed(cpu);
            if pages {
                let zone = self.vmstat.zones[usize::from(sched.cpu_to_node(cpu))];
                add_to(sched, cpu, zone);
                add_to(sched, cpu, nth(global, 1));
            }
            pages || others
        })
    }

    /// Whether the counters of pages were not zero, and any others.
    fn take_changed(&mut self, cpu: CpuId) -> (bool, bool) {
        let pages = self.vmstat.changed.get_mut(cpu.index()).is_some_and(std::mem::take);
        let work = self.vmstat.works.get_mut(cpu.index());
        (pages, work.is_some_and(|work| std::mem::take(&mut work.changed)))
    }

    /// vmstat.c: refresh_cpu_vm_stats(), with fold_diff(). Returns whether any counter was not zero.
    fn refresh_cpu_vm_stats<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, global: Line) -> bool {
        let (pages, others) = self.take_changed(cpu);
        for _ in 0..self.vmstat.zones.len() + LOW_ZONES {
            charge(sched, cpu, paths::REFRESH_CPU_VM_STATS);
        }
        if pages {
            let zone = self.vmstat.zones[usize::from(sched.cpu_to_node(cpu))];
            add_to(sched, cpu, zone);
        }
        within(sched, cpu, paths::FOLD_DIFF, |sched| {
            if pages {
                add_to(sched, cpu, nth(global, 1));
            }
        });
        pages || others
    }

    /// The line of the mask. The first call allocates all lines.
    fn vmstat_lines<S: Scheduler>(&mut self, sched: &S) -> Line {
        if let Some(global) = self.vmstat.global {
            return global;
        }
        let global = self.allocate_named(GLOBAL);
        let last = (0..sched.nr_cpus()).map(|cpu| sched.cpu_to_node(CpuId::new(cpu))).max().unwrap_or(0);
        self.vmstat.zones = (0..=last).map(|_| self.allocate_named(ZONE)).collect();
        self.vmstat.global = Some(global);
        global
    }
}

/// `atomic_long_add()` on three counters, two of which share a line.
fn add_to<S: Scheduler>(sched: &mut S, cpu: CpuId, first: Line) {
    for line in [first, nth(first, 1), nth(first, 1)] {
        sched.arch_mut().atomic(cpu, line);
    }
}
