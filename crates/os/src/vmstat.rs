//! mm/vmstat.c: memory counters that each CPU keeps for itself, and adds to the global ones when it goes idle.
//!
//! Each zone has some forty of them. A CPU that goes idle notes in a mask of all CPUs that its own periodic work on
//! them is off ([`QuietVmstat`]), for which it has to fetch the mask's line, and then folds the counters of every zone.
//!
//! Absent: the shepherd, which once a second removes CPUs from the mask whose counters have changed, and the timer that
//! is then cancelled; counters that change by anything but pages of pipes (slabs, packets, page faults).

use crate::background::QuietVmstat;
use crate::{Os, charge, paths, within};
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
    /// For each CPU, whether some of its counters are not zero (`vm_stat_diff`).
    changed: Vec<bool>,
}

fn nth(first: Line, index: u32) -> Line {
    Line { index: first.index + index, ..first }
}

impl Os {
    /// page_alloc.c: zone_statistics(), and what buffered_rmqueue() counts as well, for a page that `cpu` has
    /// allocated.
    #[inline]
    pub(crate) fn zone_statistics(&mut self, cpu: CpuId) {
        let changed = &mut self.vmstat.changed;
        if unlikely(changed.len() <= cpu.index()) {
            changed.resize(cpu.index() + 1, false);
        }
        changed[cpu.index()] = true;
    }

    /// vmstat.c: quiet_vmstat(), called by the idle loop when `cpu` enters it.
    ///
    /// Differs: once a CPU is in the mask it stays there.
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
            while rule == QuietVmstat::EachTime && self.refresh_cpu_vm_stats(sched, cpu, cpu_stat_off) {}
        });
    }

    /// vmstat.c: refresh_cpu_vm_stats(), with fold_diff(). Returns whether any counter was not zero.
    fn refresh_cpu_vm_stats<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, global: Line) -> bool {
        let changed = self.vmstat.changed.get_mut(cpu.index()).is_some_and(std::mem::take);
        for _ in 0..self.vmstat.zones.len() + LOW_ZONES {
            charge(sched, cpu, paths::REFRESH_CPU_VM_STATS);
        }
        if changed {
            let zone = self.vmstat.zones[usize::from(sched.cpu_to_node(cpu))];
            add_to(sched, cpu, zone);
        }
        within(sched, cpu, paths::FOLD_DIFF, |sched| {
            if changed {
                add_to(sched, cpu, nth(global, 1));
            }
        });
        changed
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
