//! fair.c: find_idlest_cpu(): the slow path, for a new task, or one that is not to stay near its waker.

use super::wake::{
    CpuLoad, DisallowedLocalGroup, IdlestGroup, IdlestMeasure, IdlestNode, SchedIdleCpu, SingleCpuGroup, SlowPathStart,
    SpareCapacity,
};
use super::wake_affine::half_imbalance_pct;
use crate::arch::Arch;
use crate::core::Sched;
use crate::cpu_topology::SCHED_CAPACITY_SCALE;
use crate::load_weight::LoadResolution;
use crate::sched::*;
use crate::topology::{SdFlags, SdId, SgId};
use fentry::fentry;
use units::CpuId;

/// What `find_idlest_group()` sums up for a group. Loads are per unit of capacity; 1024 is a full CPU.
#[derive(Clone, Copy)]
struct GroupLoad {
    runnable_load: u64,
    /// Includes the load of sleepers.
    avg_load: u64,
    /// That of the CPU with the most.
    max_spare_cap: u64,
}

/// What `find_idlest_group()` knows after it has seen all groups.
struct Idlest {
    this: GroupLoad,
    /// The group with the least load other than the local one, and its loads.
    idlest: Option<SgId>,
    min: GroupLoad,
    /// The group of the CPU with the most spare capacity.
    most_spare_sg: Option<SgId>,
    most_spare: u64,
}

impl<A: Arch> Sched<A> {
    /// fair.c: find_idlest_cpu(), until v4.13 a part of select_task_rq_fair(). Starts at `sd`, the waking CPU's widest
    /// domain with `sd_flag`, and descends through ever lower domains, of this CPU or of the idlest one so far.
    #[fentry]
    pub(crate) fn find_idlest_cpu(
        &mut self,
        sd: SdId,
        p: TaskId,
        cpu: CpuId,
        prev_cpu: CpuId,
        sd_flag: SdFlags,
    ) -> CpuId {
        let mut new_cpu = match self.kernel.wake.slow_path_start {
            SlowPathStart::PreviousCpu => prev_cpu,
            SlowPathStart::WakingCpu => {
                self.read_task_policy(p);
                if !self.domains.sched_domain_span(sd).intersects(&self.task[p].cpus_allowed) {
                    return prev_cpu;
                }
                cpu
            }
        };
        let mut cpu = cpu;
        let mut level = Some(sd);
        while let Some(sd) = level {
            self.read_domain(sd);
            let child = self.domains[sd].child;
            if !self.domains[sd].flags.has(sd_flag) {
                level = child;
                continue;
            }
            let Some(group) = self.find_idlest_group(sd, p, cpu, sd_flag) else {
                level = child;
                continue;
            };
            new_cpu = self.find_idlest_group_cpu(group, p, cpu);
            if new_cpu == cpu {
                level = child;
                continue;
            }
            cpu = new_cpu;
            level = self.widest_below(cpu, self.domains[sd].span_weight, sd_flag);
        }
        new_cpu
    }

    /// The widest domain of `cpu` with the flag that has less than `span_weight` CPUs.
    fn widest_below(&self, cpu: CpuId, span_weight: u32, sd_flag: SdFlags) -> Option<SdId> {
        let domains = &self.domains;
        let below = domains.for_each_domain(cpu).take_while(|&sd| domains[sd].span_weight < span_weight);
        below.filter(|&sd| domains[sd].flags.has(sd_flag)).last()
    }

    /// fair.c: find_idlest_group(). `None`: keep the local group, that of `this_cpu`.
    fn find_idlest_group(&mut self, sd: SdId, p: TaskId, this_cpu: CpuId, sd_flag: SdFlags) -> Option<SgId> {
        if self.kernel.wake.idlest_group == IdlestGroup::ByType {
            return self.find_idlest_group_by_type(sd, p, this_cpu);
        }
        self.find_idlest_group_by_load(sd, p, this_cpu, sd_flag)
    }

    /// `find_idlest_group()` until v5.4.
    #[fentry(find_idlest_group)]
    fn find_idlest_group_by_load(&mut self, sd: SdId, p: TaskId, this_cpu: CpuId, sd_flag: SdFlags) -> Option<SgId> {
        let rules = self.kernel.wake;
        let domain = &self.domains[sd];
        let wakeup = sd_flag.has(SdFlags::SD_BALANCE_WAKE);
        let load_idx = if wakeup { domain.wake_idx } else { domain.forkexec_idx };
        let imbalance_scale = half_imbalance_pct(domain.imbalance_pct);
        let imbalance = nice_0_shown(self.kernel.load_resolution) * u64::from(domain.imbalance_pct - 100) / 100;
        let between_nodes = domain.flags.has(SdFlags::SD_NUMA);
        let measure = Measure { kind: rules.idlest_measure, imbalance, imbalance_scale };

        let found = self.look_at_groups(sd, p, this_cpu, load_idx, measure);
        if rules.spare_capacity != SpareCapacity::Ignored && !sd_flag.has(SdFlags::SD_BALANCE_FORK) {
            // Half of the task's utilization has to fit: if all of it had to, large tasks would find no place.
            let enough = self.task_util(p) / 2;
            let this_spare = found.this.max_spare_cap;
            if this_spare > enough && imbalance_scale * this_spare > 100 * found.most_spare {
                return None;
            }
            if found.most_spare > enough {
                return found.most_spare_sg;
            }
        }
        if rules.idlest_node == IdlestNode::ByMargin
            && between_nodes
            && found.min.runnable_load.wrapping_add(imbalance) >= found.this.runnable_load
        {
            return None;
        }
        found.idlest.filter(|_| !measure.keeps_local(found.this, found.min))
    }

    /// The loop of `find_idlest_group()`.
    fn look_at_groups(&mut self, sd: SdId, p: TaskId, this_cpu: CpuId, load_idx: u32, measure: Measure) -> Idlest {
        let full = GroupLoad { runnable_load: u64::MAX, avg_load: u64::MAX, max_spare_cap: 0 };
        let this = match self.kernel.wake.disallowed_local_group {
            DisallowedLocalGroup::Empty => GroupLoad { runnable_load: 0, avg_load: 0, max_spare_cap: 0 },
            DisallowedLocalGroup::Full => full,
        };
        let mut found = Idlest { this, idlest: None, min: full, most_spare_sg: None, most_spare: 0 };
        self.read_task_policy(p);
        let first = self.domains[sd].groups;
        let mut group = first;
        loop {
            let span = self.domains.sched_group_span(group);
            if span.intersects(&self.task[p].cpus_allowed) {
                let local_group = span.contains(this_cpu);
                let load = self.group_load(group, p, load_idx, local_group);
                if local_group {
                    found.this = load;
                } else {
                    found.see(group, load, measure);
                }
            }
            group = self.domains[group].next;
            if group == first {
                return found;
            }
        }
    }

    /// Sums up a group's CPUs for `find_idlest_group()`. Loads of other groups are estimated high.
    fn group_load(&mut self, group: SgId, p: TaskId, load_idx: u32, local_group: bool) -> GroupLoad {
        let (mut runnable_load, mut avg_load, mut max_spare_cap) = (0, 0, 0);
        let mut next = self.domains.sched_group_span(group).first();
        while let Some(i) = next {
            self.read_cpu_load(i, load_idx);
            runnable_load += if local_group { self.source_load(i, load_idx) } else { self.target_load(i, load_idx) };
            avg_load += self.cfs_rq_load_avg(self.rq[i].cfs);
            if self.kernel.wake.spare_capacity != SpareCapacity::Ignored {
                self.read_rq_capacity(i);
                max_spare_cap = self.capacity_spare_without(i, p).max(max_spare_cap);
            }
            next = self.domains.sched_group_span(group).next_from(i.index() + 1);
        }
        let sgc = self.domains[group].sgc;
        self.read_group_capacity(sgc);
        let capacity = self.domains[sgc].capacity;
        let scale = u64::from(SCHED_CAPACITY_SCALE);
        GroupLoad {
            runnable_load: runnable_load * scale / capacity,
            avg_load: avg_load * scale / capacity,
            max_spare_cap,
        }
    }

    /// fair.c: capacity_spare_without().
    #[doc(alias = "capacity_spare_wake")]
    fn capacity_spare_without(&self, cpu: CpuId, p: TaskId) -> u64 {
        let capacity = match self.kernel.wake.spare_capacity {
            SpareCapacity::Ignored => 0,
            SpareCapacity::OfWholeCpu => self.capacity_orig_of(cpu),
            SpareCapacity::OfWhatIsLeft => self.capacity_of(cpu),
        };
        capacity.saturating_sub(self.cpu_util_without(cpu, p))
    }

    /// fair.c: find_idlest_group_cpu(). Of the idle CPUs, the one in the shallowest idle state, or idle most recently;
    /// if there are none, the CPU with the least load, the first of equals. From v5.6 on, the first CPU that has only
    /// SCHED_IDLE tasks comes before them all, and in v5.4 before the loaded ones. `this_cpu` is in another group.
    /// Differs: without the kernel's preference for `this_cpu` among equals up to v4.15, which never applied
    /// (18cec7e0ddd5).
    #[fentry]
    #[doc(alias = "find_idlest_cpu")]
    pub(super) fn find_idlest_group_cpu(&mut self, group: SgId, p: TaskId, this_cpu: CpuId) -> CpuId {
        let rules = self.kernel.wake;
        if rules.single_cpu_group == SingleCpuGroup::Taken && self.domains[group].group_weight == 1 {
            return self.domains.sched_group_span(group).first().expect("a group has CPUs");
        }
        let mut min_load = u64::MAX;
        let mut min_exit_latency = u32::MAX;
        let mut latest_idle_timestamp = 0;
        let mut least_loaded_cpu = this_cpu;
        let (mut shallowest_idle_cpu, mut si_cpu) = (None, None);
        let last_resort = rules.sched_idle_cpu == SchedIdleCpu::LastResort;
        let mut next = self.domains.sched_group_span(group).first();
        while let Some(i) = next {
            next = self.domains.sched_group_span(group).next_from(i.index() + 1);
            if !self.cpumask_test(i, p) {
                continue;
            }
            if !last_resort && self.choose_sched_idle_rq(i, p) {
                return i;
            }
            if self.idle_cpu(i) {
                self.read_rq_idle(i);
                let rq = &self.rq[i];
                let shallower = rq.idle_exit_latency.is_some_and(|latency| latency < min_exit_latency);
                let as_shallow = rq.idle_exit_latency.is_none_or(|latency| latency == min_exit_latency);
                if shallower {
                    min_exit_latency = rq.idle_exit_latency.unwrap_or(min_exit_latency);
                }
                if shallower || as_shallow && rq.idle_stamp > latest_idle_timestamp {
                    latest_idle_timestamp = rq.idle_stamp;
                    shallowest_idle_cpu = Some(i);
                }
            } else if shallowest_idle_cpu.is_none() && si_cpu.is_none() {
                if last_resort && self.choose_sched_idle_rq(i, p) {
                    si_cpu = Some(i);
                    continue;
                }
                self.read_cpu_load(i, 0);
                let load = match rules.cpu_load {
                    CpuLoad::Runnable => self.weighted_cpuload(i),
                    CpuLoad::Average => self.cpu_load(i),
                };
                if load < min_load {
                    min_load = load;
                    least_loaded_cpu = i;
                }
            }
        }
        shallowest_idle_cpu.or(si_cpu).unwrap_or(least_loaded_cpu)
    }
}

/// `scale_load_down(NICE_0_LOAD)`.
fn nice_0_shown(resolution: LoadResolution) -> u64 {
    resolution.scale_load_down(resolution.nice_0_load())
}

/// The margins by which `find_idlest_group()` compares.
#[derive(Clone, Copy)]
struct Measure {
    kind: IdlestMeasure,
    /// imbalance_pct times the load of a nice-0 task.
    imbalance: u64,
    /// The half of imbalance_pct by which it exceeds 100.
    imbalance_scale: u64,
}

impl Measure {
    /// The end of `find_idlest_group()`: whether the idlest group is not idle enough to leave the local one. Sums and
    /// products wrap, as the kernel's do if a load is [`DisallowedLocalGroup::Full`].
    fn keeps_local(self, this: GroupLoad, min: GroupLoad) -> bool {
        let (imbalance, scale) = (self.imbalance, self.imbalance_scale);
        match self.kind {
            IdlestMeasure::RunnableLoad => this.runnable_load.wrapping_mul(100) < min.runnable_load.wrapping_mul(scale),
            IdlestMeasure::RunnableThenBlocked => {
                min.runnable_load > this.runnable_load.wrapping_add(imbalance)
                    || this.runnable_load < min.runnable_load.wrapping_add(imbalance)
                        && this.avg_load.wrapping_mul(100) < min.avg_load.wrapping_mul(scale)
            }
        }
    }
}

impl Idlest {
    /// One iteration of the loop of `find_idlest_group()`, for a group other than the local one.
    fn see(&mut self, group: SgId, load: GroupLoad, measure: Measure) {
        let min = &mut self.min;
        match measure.kind {
            IdlestMeasure::RunnableLoad => {
                if load.runnable_load < min.runnable_load {
                    *min = load;
                    self.idlest = Some(group);
                }
            }
            IdlestMeasure::RunnableThenBlocked => {
                let (imbalance, scale) = (measure.imbalance, measure.imbalance_scale);
                if min.runnable_load > load.runnable_load.wrapping_add(imbalance) {
                    *min = load;
                    self.idlest = Some(group);
                } else if load.runnable_load < min.runnable_load.wrapping_add(imbalance)
                    && min.avg_load.wrapping_mul(100) > load.avg_load.wrapping_mul(scale)
                {
                    // The runnable load to beat stays that of the previous group.
                    min.avg_load = load.avg_load;
                    self.idlest = Some(group);
                }
            }
        }
        if self.most_spare < load.max_spare_cap {
            self.most_spare = load.max_spare_cap;
            self.most_spare_sg = Some(group);
        }
    }
}
