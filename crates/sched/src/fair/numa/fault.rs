//! fair.c: hinting faults: how they are counted and averaged, and what follows from them.

use super::periods::{self, Faults};
use super::{CpuPid, FaultStats, LocalityReset, MemoryNodes, NR_NUMA_HINT_FAULT_BUCKETS, Placement, Preference};
use crate::arch::Arch;
use crate::core::Sched;
use crate::pelt::{LOAD_AVG_MAX, Pelt};
use crate::sched::TaskId;
use fentry::fentry;

/// A hinting fault, for task_numa_fault(). The flags are TNF_MIGRATED, TNF_SHARED, TNF_FAULT_LOCAL, TNF_MIGRATE_FAIL.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HintingFault {
    /// Which task touched the page before, and where.
    pub last_cpupid: CpuPid,
    /// The node on which the page lies now, after a possible move.
    pub mem_node: u16,
    pub pages: u64,
    pub migrated: bool,
    /// Whether several processes map the page.
    pub shared: bool,
    /// Whether the page was on the node of the CPU that touched it.
    pub local: bool,
    pub migrate_fail: bool,
}

impl<A: Arch> Sched<A> {
    /// fair.c: task_numa_fault(). The task that runs here touched a page that had been unmapped for sampling.
    #[fentry]
    pub(crate) fn task_numa_fault(&mut self, fault: HintingFault) {
        let p = self.rq[self.this_cpu].curr.expect("only a task touches memory");
        if !self.numa.is_on() || self.task[p].mm == 0 {
            return;
        }
        let cpu_node = self.task_node(p);
        if self.numa.task[p].numa_faults.is_empty() {
            let buckets = NR_NUMA_HINT_FAULT_BUCKETS * self.numa.nodes.len();
            let task = &mut self.numa.task[p];
            task.numa_faults = vec![0; buckets];
            task.total_numa_faults = 0;
            task.numa_faults_locality = [0; 3];
        }
        let private = fault.last_cpupid == CpuPid::UNSET
            || fault.last_cpupid.match_pid(self.task_cold[p].pid)
            || self.task_numa_group(p, fault.last_cpupid, fault.shared);
        let mut local = fault.local;
        // Shared memory is in the right place on any node that the group uses.
        if !private
            && !local
            && let Some(group) = self.numa.task[p].numa_group
        {
            local = self.spreads_over(group, cpu_node, fault.mem_node);
        }
        let due = self.jiffies() > self.numa.task[p].numa_migrate_retry;
        if due || self.kernel.numa.placement == Placement::EachScan {
            self.task_numa_placement(p);
        }
        if self.jiffies() > self.numa.task[p].numa_migrate_retry {
            self.numa_migrate_preferred(p);
        }
        let mem_idx = self.numa.task_faults_idx(FaultStats::MemBuf, fault.mem_node, private);
        let cpu_idx = self.numa.task_faults_idx(FaultStats::CpuBuf, cpu_node, private);
        let task = &mut self.numa.task[p];
        if fault.migrated {
            task.numa_pages_migrated += fault.pages;
        }
        if fault.migrate_fail {
            task.numa_faults_locality[2] += fault.pages;
        }
        task.numa_faults[mem_idx] += fault.pages;
        task.numa_faults[cpu_idx] += fault.pages;
        task.numa_faults_locality[usize::from(local)] += fault.pages;
    }

    /// Whether the group uses both nodes. From v4.6 on, a group on a single node is not spread.
    fn spreads_over(&self, group: super::NumaGroupId, cpu_node: u16, mem_node: u16) -> bool {
        let counts = match self.kernel.numa.active_nodes {
            super::ActiveNodes::Mask => true,
            super::ActiveNodes::Share => self.is_spread(group),
        };
        counts && self.numa_is_active_node(cpu_node, group) && self.numa_is_active_node(mem_node, group)
    }

    /// fair.c: numa_get_avg_runtime(). The run time since the last placement, and the time that passed; for a new task,
    /// both come from its load average.
    fn numa_get_avg_runtime(&mut self, p: TaskId) -> (u64, u64) {
        let se = &self.se[self.task[p].se];
        let (now, runtime) = (se.exec_start, se.sum_exec_runtime);
        let task = &mut self.numa.task[p];
        let average = if task.last_task_numa_placement != 0 {
            let period = now.wrapping_sub(task.last_task_numa_placement) as i64;
            (runtime - task.last_sum_exec_runtime, period.max(0) as u64)
        } else {
            let weight = self.kernel.load_resolution.scale_load_down(se.load.weight).max(1);
            let by_weight = self.kernel.pelt == Pelt::ByPeriod;
            (if by_weight { se.avg.load_sum / weight } else { se.avg.load_sum }, LOAD_AVG_MAX)
        };
        task.last_sum_exec_runtime = runtime;
        task.last_task_numa_placement = now;
        average
    }

    /// fair.c: task_numa_placement(). After each scan of the whole memory: halves the averages, adds the new faults,
    /// and chooses the preferred node.
    #[fentry]
    pub(super) fn task_numa_placement(&mut self, p: TaskId) {
        let seq = self.numa.mm[&self.task[p].mm].numa_scan_seq;
        if self.numa.task[p].numa_scan_seq == seq {
            return;
        }
        self.numa.task[p].numa_scan_seq = seq;
        self.numa.task[p].numa_scan_period_max = self.task_scan_max(p);
        let rules = self.kernel.numa;
        let [remote, local, _] = self.numa.task[p].numa_faults_locality;
        let (runtime, period) = self.numa_get_avg_runtime(p);
        let weight = (u128::from(runtime << 16) / u128::from(period + 1)) as u64;
        let group = self.numa.task[p].numa_group;
        let mut fault_types = [0; 2];
        let (mut max_faults, mut max_nid) = (0, None);
        let (mut max_group_faults, mut max_group_nid) = (0, None);
        for nid in self.numa.nids() {
            let (mut faults, mut group_faults) = (0u64, 0u64);
            for private in [false, true] {
                let (diff, f_diff, came) = self.decay_faults(p, nid, private, weight, remote + local + 1);
                fault_types[usize::from(private)] += came;
                let mem_idx = self.numa.task_faults_idx(FaultStats::Mem, nid, private);
                faults = faults.wrapping_add(self.numa.task[p].numa_faults[mem_idx]);
                if let Some(group) = group {
                    self.add_to_group(group, nid, private, diff, f_diff);
                    group_faults = group_faults.wrapping_add(self.numa.group[group].faults[mem_idx]);
                }
            }
            if faults > max_faults {
                (max_faults, max_nid) = (faults, Some(nid));
            }
            if group_faults > max_group_faults {
                (max_group_faults, max_group_nid) = (group_faults, Some(nid));
            }
        }
        if group.is_some() {
            max_nid = max_group_nid;
            if rules.preference == Preference::Group {
                max_faults = max_group_faults;
            }
        }
        if rules.memory_nodes == MemoryNodes::Nearest {
            max_nid = max_nid.map(|nid| self.numa_nearest_node(nid));
        }
        // Before v4.20 the period is adjusted before the task migrates, which may reset it.
        let early = rules.placement == Placement::EachScan;
        if early {
            self.update_task_scan_period(p, fault_types);
        }
        if let Some(group) = group {
            self.numa_group_count_active_nodes(group);
            max_nid = self.preferred_group_nid(p, max_nid);
        }
        if max_faults > 0 {
            if max_nid != self.numa.task[p].numa_preferred_nid {
                self.sched_setnuma(p, max_nid);
            }
            if early && Some(self.task_node(p)) != self.numa.task[p].numa_preferred_nid {
                self.numa_migrate_preferred(p);
            }
        }
        if !early {
            self.update_task_scan_period(p, fault_types);
        }
    }

    /// The loop body of task_numa_placement(): one kind of faults on one node. Returns the changes of both averages and
    /// the new pages. `weight` is run time per time, times 2^16: the CPU average counts touches by it, whatever their
    /// number.
    fn decay_faults(&mut self, p: TaskId, nid: u16, private: bool, weight: u64, total: u64) -> (i64, i64, u64) {
        let idx = |stats| self.numa.task_faults_idx(stats, nid, private);
        let [mem, cpu, mem_buf, cpu_buf] =
            [FaultStats::Mem, FaultStats::Cpu, FaultStats::MemBuf, FaultStats::CpuBuf].map(idx);
        let task = &mut self.numa.task[p];
        let came = std::mem::take(&mut task.numa_faults[mem_buf]);
        let diff = came.wrapping_sub(task.numa_faults[mem] / 2) as i64;
        let touched = std::mem::take(&mut task.numa_faults[cpu_buf]);
        let f_diff = (weight.wrapping_mul(touched) / total).wrapping_sub(task.numa_faults[cpu] / 2) as i64;
        task.numa_faults[mem] = task.numa_faults[mem].wrapping_add_signed(diff);
        task.numa_faults[cpu] = task.numa_faults[cpu].wrapping_add_signed(f_diff);
        task.total_numa_faults = task.total_numa_faults.wrapping_add_signed(diff);
        self.sched_cache_footprint(p, diff);
        (diff, f_diff, came)
    }

    /// mempolicy.c: numa_nearest_node(), among the nodes with CPUs.
    fn numa_nearest_node(&self, nid: u16) -> u16 {
        if self.numa.has_cpus(nid) {
            return nid;
        }
        let with_cpus = self.numa.nids().filter(|&other| self.numa.has_cpus(other));
        with_cpus.min_by_key(|&other| self.topology.node_distance(nid, other)).expect("some node has CPUs")
    }

    /// fair.c: update_task_scan_period(). `fault_types`: shared and private faults since the last adjustment.
    fn update_task_scan_period(&mut self, p: TaskId, fault_types: [u64; 2]) {
        let [shared, private] = fault_types;
        let [remote, local, failed] = self.numa.task[p].numa_faults_locality;
        // There is nothing to find, or pages cannot be moved: scan more slowly.
        if local + shared == 0 || failed != 0 {
            let task = &mut self.numa.task[p];
            task.numa_scan_period = task.numa_scan_period_max.min(task.numa_scan_period << 1);
            if self.kernel.numa.locality_reset == LocalityReset::Cleared {
                task.numa_faults_locality = [0; 3];
            }
            let next_scan = self.jiffies() + self.msecs_to_jiffies(self.numa.task[p].numa_scan_period);
            let mm = self.task[p].mm;
            self.numa.mm.get_mut(&mm).expect("its memory is scanned").numa_next_scan = next_scan;
            return;
        }
        let period = self.numa.task[p].numa_scan_period;
        let faults = Faults { remote, local, private, shared };
        let changed = period as i64 + periods::period_change(self.kernel.numa.scan_adjust, period, faults);
        let (low, high) = (self.task_scan_min(p), self.task_scan_max(p));
        let task = &mut self.numa.task[p];
        task.numa_scan_period = (changed.max(0) as u64).clamp(low, high);
        task.numa_faults_locality = [0; 3];
    }
}
