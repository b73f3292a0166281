//! topology.c: build_sched_domains() and what it calls for each CPU and level.

use super::capacity::BalanceClock;
use super::flags::{OVERLAPPING, SdFlags};
use super::levels::{Level, build_sched_topology, node_masks};
use super::masks::{MaskId, Masks};
use super::numa::sched_init_numa;
use super::rules::*;
use super::*;
use crate::cpu_topology::{CpuTopology, RECLAIM_DISTANCE, SCHED_CAPACITY_SCALE};
use std::collections::BTreeMap;

/// Domain parameters on the kernel's command line.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DomainParameters {
    /// `relax_domain_level=`
    pub relax_domain_level: Option<u32>,
    /// `sched_debug`, which makes kernels up to v5.11 read the whole distance table.
    pub sched_debug: bool,
}

/// What building depends on besides the topology, the CPUs and the kernel.
#[derive(Clone, Debug)]
pub struct DomainSetup {
    /// Online CPUs. A CPU on its way down is online but no longer active.
    pub online: CpuMask,
    /// The CPUs that were online when the machine had booted: x86 chooses its levels then, once and for all.
    pub booted: CpuMask,
    /// Now.
    pub jiffies: u64,
    /// Jiffies in a second.
    pub hz: u32,
    /// The machine's value. Kernels before v5.4 use 30 ([`ReclaimDistance`]).
    pub node_reclaim_distance: u32,
    pub parameters: DomainParameters,
    /// Priorities of the CPUs if Turbo Boost Max 3.0 ranks them (`arch_asym_cpu_priority()`); higher is better.
    pub arch_asym_cpu_priority: Option<PerCpu<i32>>,
    /// X86_FEATURE_HYBRID_CPU: big and small cores.
    pub hybrid: bool,
    /// The feature FORCE_SD_OVERLAP of kernels up to v4.12: treat all levels as overlapping.
    pub force_sd_overlap: bool,
    /// `rq->cpu_capacity` before building; 1024 at boot.
    pub cpu_capacity: PerCpu<u64>,
    /// `rq->cpu_capacity_orig` before building; 1024 at boot.
    pub cpu_capacity_orig: PerCpu<u64>,
}

impl DomainSetup {
    /// At boot, with all CPUs online, nothing on the command line, and 250 jiffies in a second.
    pub fn boot(topology: &CpuTopology) -> DomainSetup {
        let full = || PerCpu::from_fn(topology.nr_cpus, |_| u64::from(SCHED_CAPACITY_SCALE));
        DomainSetup {
            online: CpuMask::all(topology.nr_cpus),
            booted: CpuMask::all(topology.nr_cpus),
            jiffies: 0,
            hz: 250,
            node_reclaim_distance: topology.node_reclaim_distance,
            parameters: DomainParameters::default(),
            arch_asym_cpu_priority: None,
            hybrid: topology.hybrid,
            force_sd_overlap: false,
            cpu_capacity: full(),
            cpu_capacity_orig: full(),
        }
    }
}

/// topology.c: build_sched_domains().
///
/// `cpu_map` are the CPUs to balance between: active and not isolated. The others get no domain.
///
/// Differs: kernels before v5.6, but for 5.4.y, did not check that the masks of a level are equal or disjoint, and built nonsense from
/// others; here no version builds anything from them. Objects that end up unused are left out, so ids are dense and a
/// CPU's domains are neighbours.
///
/// # Panics
/// If `cpu_map` contains CPUs that are not online or not in the topology.
pub fn build_sched_domains(
    topology: &CpuTopology,
    cpu_map: &CpuMask,
    rules: &DomainRules,
    setup: &DomainSetup,
) -> Domains {
    assert!(setup.online.is_subset(&CpuMask::all(topology.nr_cpus)), "a CPU is online that the machine has not");
    assert!(cpu_map.is_subset(&setup.online), "domains need CPUs that are online");
    let mut builder = Builder::new(topology, cpu_map, rules, setup);
    if cpu_map.is_empty() || !builder.topology_span_sane() {
        return builder.finish(|_| None);
    }
    if matches!(rules.asym_capacity, AsymCapacity::OneLevel | AsymCapacity::FromOneLevel) {
        builder.asym_level = builder.asym_cpu_capacity_level();
    }
    builder.set_up_domains();
    if !builder.spans_sane() {
        return builder.finish(|_| None);
    }
    builder.build_groups();
    builder.allow_numa_imbalance();
    builder.share_domains();
    builder.calculate_capacities();
    let bases =
        PerCpu::from_fn(
            topology.nr_cpus,
            |cpu| {
                if cpu_map.contains(cpu) { builder.cpu_attach_domain(cpu) } else { None }
            },
        );
    builder.finish(|cpu| bases[cpu])
}

/// sched/topology.h: struct sd_data. The objects of one level, by the CPU they belong to.
pub(super) struct SdData {
    pub sd: PerCpu<Option<SdId>>,
    pub sg: PerCpu<Option<SgId>>,
    pub sgc: PerCpu<Option<SgcId>>,
    pub sds: PerCpu<Option<SdsId>>,
}

/// Domains under construction, including those that will turn out degenerate.
pub(super) struct Builder<'a> {
    pub topology: &'a CpuTopology,
    pub cpu_map: &'a CpuMask,
    pub cpu_map_id: MaskId,
    pub rules: &'a DomainRules,
    pub setup: &'a DomainSetup,
    pub levels: Vec<Level>,
    /// Indexed by level.
    pub data: Vec<SdData>,
    /// The CPUs of each capacity, if not all are equal (`asym_cap_list`).
    asym_cap_list: Vec<CpuMask>,
    /// The level that is asymmetric, or from which on domains are, where that is decided for all of a level at once.
    asym_level: Option<usize>,
    /// `cpu_map & mask`, for each mask requested so far.
    span_of: BTreeMap<MaskId, MaskId>,
    pub overlap: super::overlap::Found,
    pub domains: Domains,
}

impl<'a> Builder<'a> {
    fn new(
        topology: &'a CpuTopology,
        cpu_map: &'a CpuMask,
        rules: &'a DomainRules,
        setup: &'a DomainSetup,
    ) -> Builder<'a> {
        let mut masks = Masks::default();
        let mut warnings = Vec::new();
        let nodes = node_masks(topology, &setup.online);
        let mut levels = build_sched_topology(topology, &nodes, cpu_map, rules, setup, &mut masks);
        let numa = sched_init_numa(
            topology,
            &nodes,
            rules,
            setup.parameters.sched_debug,
            &mut masks,
            &mut levels,
            &mut warnings,
        );
        let cpu_map_id = masks.intern(cpu_map.clone());
        let nr_cpus = topology.nr_cpus;
        let data = (0..levels.len())
            .map(|_| SdData {
                sd: PerCpu::from_fn(nr_cpus, |_| None),
                sg: PerCpu::from_fn(nr_cpus, |_| None),
                sgc: PerCpu::from_fn(nr_cpus, |_| None),
                sds: PerCpu::from_fn(nr_cpus, |_| None),
            })
            .collect();
        Builder {
            topology,
            cpu_map,
            cpu_map_id,
            rules,
            setup,
            data,
            asym_cap_list: asym_cpu_capacity_scan(topology, rules),
            asym_level: None,
            span_of: BTreeMap::new(),
            overlap: super::overlap::Found::new(levels.len()),
            domains: Domains::without_any(topology, cpu_map, rules, setup, masks, numa, warnings),
            levels,
        }
    }

    /// topology.c: topology_span_sane(). Whether the masks of each level below NUMA are equal or disjoint.
    fn topology_span_sane(&mut self) -> bool {
        for level in self.levels.iter().filter(|level| !level.overlap) {
            if !self.are_equal_or_apart(self.cpu_map.iter().map(|cpu| level.mask[cpu])) {
                self.domains.warnings.push(DomainWarning::SpanNotSane { level: level.name });
                return false;
            }
        }
        true
    }

    /// The same for the spans, which a broken topology may have widened.
    fn spans_sane(&mut self) -> bool {
        for (level, data) in self.levels.iter().zip(&self.data).filter(|(level, _)| !level.overlap) {
            let spans = self.cpu_map.iter().filter_map(|cpu| data.sd[cpu]).map(|sd| self.domains[sd].span);
            if !self.are_equal_or_apart(spans) {
                self.domains.warnings.push(DomainWarning::SpanNotSane { level: level.name });
                return false;
            }
        }
        true
    }

    fn are_equal_or_apart(&self, masks: impl Iterator<Item = MaskId>) -> bool {
        let mut seen = vec![false; self.domains.masks.len()];
        let mut taken = CpuMask::new(self.topology.nr_cpus);
        for id in masks {
            if std::mem::replace(&mut seen[id.0 as usize], true) {
                continue;
            }
            let mask = self.domains.masks.get(id);
            if taken.intersects(mask) {
                return false;
            }
            taken.or_with(mask);
        }
        true
    }

    /// Each CPU's chain of domains, up to the first one that spans all CPUs.
    fn set_up_domains(&mut self) {
        let force_overlap = self.rules.overlap == OverlapGroups::FromFirstCpu && self.setup.force_sd_overlap;
        for cpu in self.cpu_map.iter() {
            let mut child = None;
            for level in 0..self.levels.len() {
                let sd = self.build_sched_domain(level, child, cpu);
                let flagged = self.rules.flag_numbering != FlagNumbering::ListedWithoutOverlap;
                if self.levels[level].overlap && flagged || force_overlap {
                    self.domains[sd].flags |= SdFlags::SD_OVERLAP;
                }
                self.data[level].sd[cpu] = Some(sd);
                self.domains.sched_asym_cpucapacity |= self.domains[sd].flags.has(SdFlags::SD_ASYM_CPUCAPACITY);
                child = Some(sd);
                if self.domains[sd].span == self.cpu_map_id {
                    break;
                }
            }
        }
    }

    /// topology.c: build_sched_domain().
    fn build_sched_domain(&mut self, level: usize, child: Option<SdId>, cpu: CpuId) -> SdId {
        let sd = self.sd_init(level, child, cpu);
        if let Some(child) = child {
            self.domains[sd].level = self.domains[child].level + 1;
            self.domains.sched_domain_level_max = self.domains.sched_domain_level_max.max(self.domains[sd].level);
            self.domains[child].parent = Some(sd);
            let (inner, outer) = (self.domains[child].span, self.domains[sd].span);
            if !self.domains.masks.is_subset(inner, outer) {
                let (child, parent) = (self.domains[child].name, self.domains[sd].name);
                self.domains.warnings.push(DomainWarning::ArchTopologyBorken { cpu, child, parent });
                let widened = self.domains.masks.get(outer).or(self.domains.masks.get(inner));
                self.domains[sd].span = self.domains.masks.intern(widened);
            }
        }
        self.set_domain_attribute(sd);
        sd
    }

    /// topology.c: sd_init().
    fn sd_init(&mut self, level: usize, child: Option<SdId>, cpu: CpuId) -> SdId {
        let tl = &self.levels[level];
        let mask = tl.mask[cpu];
        let span = self.span_within_map(mask);
        let tl = &self.levels[level];
        let sd_weight = self.domains.masks.weight(match self.rules.interval_weight {
            IntervalWeight::OfLevel => mask,
            IntervalWeight::OfSpan => span,
        });
        let mut sd = SchedDomain {
            parent: None,
            child,
            groups: SgId(u32::MAX),
            span,
            span_weight: self.domains.masks.weight(span),
            flags: tl.sd_flags,
            level: 0,
            name: tl.name,
            min_interval: sd_weight,
            max_interval: 2 * sd_weight,
            busy_factor: 0,
            imbalance_pct: 0,
            cache_nice_tries: 0,
            busy_idx: 0,
            idle_idx: 0,
            newidle_idx: 0,
            wake_idx: 0,
            forkexec_idx: 0,
            smt_gain: 0,
            imb_numa_nr: 0,
            nohz_idle: false,
            last_balance: self.setup.jiffies,
            balance_interval: sd_weight,
            nr_balance_failed: 0,
            newidle_call: 0,
            newidle_success: 0,
            newidle_ratio: 0,
            newidle_stamp: self.setup.jiffies * (1_000_000_000 / u64::from(self.setup.hz)),
            max_newidle_lb_cost: 0,
            next_decay_max_lb_cost: self.setup.jiffies,
            last_decay_max_lb_cost: self.setup.jiffies,
            avg_scan_cost: 0,
            shared: None,
        };
        if self.rules.newidle == NewidleHistory::HalfAtFirst {
            (sd.newidle_call, sd.newidle_success, sd.newidle_ratio) = (512, 256, 512);
        }
        sd.flags |= self.asym_cpu_capacity_flags(level, span);
        let distance = self.domains.numa.sched_domains_numa_distance.get(tl.numa_level).copied();
        if sd.flags.has(SdFlags::SD_ASYM_CPUCAPACITY) {
            self.tune_unequal(&mut sd);
        }
        self.tune(&mut sd, distance.unwrap_or(0));
        let of_levels = self.rules.shared == DomainShared::CacheLevels;
        if of_levels && self.rules.busy_cpus == BusyCpus::InDomainShared && sd.flags.has(SdFlags::SD_SHARE_LLC) {
            let sd_id = self.domains.masks.first(span);
            let shared = *self.data[level].sds[sd_id].get_or_insert_with(|| {
                self.domains.sdss.push(SchedDomainShared::default());
                SdsId(self.domains.sdss.len() as u32 - 1)
            });
            self.domains[shared].nr_busy_cpus = sd_weight;
            sd.shared = Some(shared);
        }
        self.domains.sds.push(sd);
        SdId(self.domains.sds.len() as u32 - 1)
    }

    /// The part of sd_init() for a domain whose CPUs differ in capacity.
    fn tune_unequal(&mut self, sd: &mut SchedDomain) {
        if let (AsymSiblings::Cleared, Some(child)) = (self.rules.asym_siblings, sd.child) {
            self.domains[child].flags -= SdFlags::SD_PREFER_SIBLING;
        }
        if self.rules.asym_capacity == AsymCapacity::OneLevel {
            sd.flags |= SdFlags::SD_BALANCE_WAKE;
            let mut below = sd.child;
            while let Some(lower) = below {
                self.domains[lower].flags |= SdFlags::SD_BALANCE_WAKE;
                below = self.domains[lower].child;
            }
        }
    }

    /// The second half of sd_init(): derives behaviour from topological properties.
    fn tune(&self, sd: &mut SchedDomain, numa_distance: u32) {
        sd.flags |=
            SdFlags::SD_BALANCE_NEWIDLE | SdFlags::SD_BALANCE_EXEC | SdFlags::SD_BALANCE_FORK | SdFlags::SD_WAKE_AFFINE;
        let siblings_in_llc = match self.rules.tuning {
            LevelTuning::SiblingsSmtAndPackage => false,
            LevelTuning::SiblingsBelowNuma | LevelTuning::WithoutIndices | LevelTuning::Tighter => true,
        };
        let old = self.rules.tuning != LevelTuning::Tighter;
        let indices = old && self.rules.tuning != LevelTuning::WithoutIndices;
        (sd.busy_factor, sd.imbalance_pct) = if old { (32, 125) } else { (16, 117) };
        if old {
            sd.flags |= SdFlags::SD_LOAD_BALANCE;
        }
        if sd.flags.has(SdFlags::SD_SHARE_CPUCAPACITY) {
            sd.flags |= SdFlags::SD_PREFER_SIBLING;
            sd.imbalance_pct = 110;
            // About 15% more than one thread alone.
            sd.smt_gain = if indices { 1178 } else { 0 };
        } else if sd.flags.has(SdFlags::SD_SHARE_LLC) {
            sd.flags |= if siblings_in_llc { SdFlags::SD_PREFER_SIBLING } else { SdFlags::NONE };
            sd.imbalance_pct = 117;
            sd.cache_nice_tries = 1;
            sd.busy_idx = if indices { 2 } else { 0 };
        } else if sd.flags.has(SdFlags::SD_NUMA) {
            sd.cache_nice_tries = 2;
            (sd.busy_idx, sd.idle_idx) = if indices { (3, 2) } else { (0, 0) };
            sd.flags |= SdFlags::SD_SERIALIZE;
            let reclaim_distance = match self.rules.reclaim_distance {
                ReclaimDistance::Constant => RECLAIM_DISTANCE,
                ReclaimDistance::OfMachine => self.setup.node_reclaim_distance,
            };
            if numa_distance > reclaim_distance {
                sd.flags -= SdFlags::SD_BALANCE_EXEC | SdFlags::SD_BALANCE_FORK | SdFlags::SD_WAKE_AFFINE;
            }
        } else {
            sd.flags |= SdFlags::SD_PREFER_SIBLING;
            sd.cache_nice_tries = 1;
            (sd.busy_idx, sd.idle_idx) = if indices { (2, 1) } else { (0, 0) };
        }
    }

    fn span_within_map(&mut self, mask: MaskId) -> MaskId {
        let masks = &mut self.domains.masks;
        let cpu_map = self.cpu_map;
        *self.span_of.entry(mask).or_insert_with(|| {
            let span = masks.get(mask).and(cpu_map);
            masks.intern(span)
        })
    }

    fn asym_cpu_capacity_flags(&self, level: usize, span: MaskId) -> SdFlags {
        match self.rules.asym_capacity {
            AsymCapacity::Unseen => SdFlags::NONE,
            AsymCapacity::OneLevel if self.asym_level == Some(level) => SdFlags::SD_ASYM_CPUCAPACITY,
            AsymCapacity::FromOneLevel if self.asym_level.is_some_and(|lowest| level >= lowest) => {
                SdFlags::SD_ASYM_CPUCAPACITY
            }
            AsymCapacity::OneLevel | AsymCapacity::FromOneLevel => SdFlags::NONE,
            AsymCapacity::Classified => self.asym_cpu_capacity_classify(span),
        }
    }

    /// topology.c: asym_cpu_capacity_level(). The lowest level from which on every CPU shares a domain with one of the greatest
    /// capacity; `None` if all are equal.
    fn asym_cpu_capacity_level(&self) -> Option<usize> {
        let mut asym_level = None;
        for cpu in self.cpu_map.iter() {
            let mut most = self.topology.capacity[cpu];
            for level in asym_level.unwrap_or(0)..self.levels.len() {
                let seen = self.domains.masks.get(self.levels[level].mask[cpu]).and(self.cpu_map);
                for other in seen.iter().filter(|&other| self.topology.capacity[other] > most).collect::<Vec<_>>() {
                    if self.topology.capacity[other] > most {
                        most = self.topology.capacity[other];
                        asym_level = Some(level);
                    }
                }
            }
        }
        asym_level
    }

    /// topology.c: asym_cpu_capacity_classify().
    fn asym_cpu_capacity_classify(&self, sd_span: MaskId) -> SdFlags {
        let span = self.domains.masks.get(sd_span);
        let spanned = self.asym_cap_list.iter().filter(|of_capacity| span.intersects(of_capacity)).count();
        let present = self.asym_cap_list.iter().filter(|of_capacity| self.cpu_map.intersects(of_capacity)).count();
        if spanned < 2 {
            SdFlags::NONE
        } else if spanned < present {
            SdFlags::SD_ASYM_CPUCAPACITY
        } else {
            SdFlags::SD_ASYM_CPUCAPACITY | SdFlags::SD_ASYM_CPUCAPACITY_FULL
        }
    }

    /// topology.c: set_domain_attribute().
    fn set_domain_attribute(&mut self, sd: SdId) {
        let Some(request) = self.setup.parameters.relax_domain_level else {
            return;
        };
        let idle_balance = SdFlags::SD_BALANCE_WAKE | SdFlags::SD_BALANCE_NEWIDLE;
        let sd = &mut self.domains[sd];
        match self.rules.relax_domain_level {
            RelaxDomainLevel::SwitchesBothWays if request < sd.level => sd.flags -= idle_balance,
            RelaxDomainLevel::SwitchesBothWays => sd.flags |= idle_balance,
            RelaxDomainLevel::SwitchesOffAbove if sd.level > request => sd.flags -= idle_balance,
            RelaxDomainLevel::SwitchesOff if sd.level >= request => sd.flags -= idle_balance,
            RelaxDomainLevel::SwitchesOffAbove | RelaxDomainLevel::SwitchesOff => {}
        }
    }

    /// The CPU's domains so far, bottom-up.
    pub(super) fn chain(&self, cpu: CpuId) -> Vec<SdId> {
        std::iter::successors(self.data[0].sd[cpu], |&sd| self.domains[sd].parent).collect()
    }

    fn build_groups(&mut self) {
        for cpu in self.cpu_map.iter() {
            for sd in self.chain(cpu) {
                self.domains[sd].span_weight = self.domains.masks.weight(self.domains[sd].span);
                if self.domains[sd].flags.has(OVERLAPPING) {
                    self.build_overlap_sched_groups(sd, cpu);
                } else {
                    self.build_sched_groups(sd, cpu);
                }
            }
        }
    }

    /// The part of build_sched_domains() that sets `imb_numa_nr`: by how many tasks a node may exceed another, so that
    /// no two share a last level cache while another cache is idle.
    fn allow_numa_imbalance(&mut self) {
        if self.rules.imb_numa_nr != ImbNumaNr::ByLlcs {
            return;
        }
        for cpu in self.cpu_map.iter() {
            let chain = self.chain(cpu);
            let (mut imb, mut imb_span) = (0, 1);
            for (at, &sd) in chain.iter().enumerate() {
                let shares = |sd: SdId| self.domains[sd].flags.has(SdFlags::SD_SHARE_LLC);
                let weight = |sd: SdId| self.domains[sd].span_weight;
                if at > 0 && !shares(sd) && shares(chain[at - 1]) {
                    let nr_llcs = weight(sd) / weight(chain[at - 1]);
                    imb = if nr_llcs == 1 { weight(sd) / 8 } else { nr_llcs }.max(1);
                    let first_numa =
                        chain[at + 1..].iter().find(|&&above| self.domains[above].flags.has(SdFlags::SD_NUMA));
                    imb_span = first_numa.map_or(weight(sd), |&above| weight(above));
                    self.domains[sd].imb_numa_nr = imb;
                } else {
                    let factor = (weight(sd) / imb_span).max(1);
                    self.domains[sd].imb_numa_nr = imb * factor;
                }
            }
        }
    }

    /// Computes capacities from the last CPU to the first, so that those of lower levels exist when higher levels sum
    /// them up.
    fn calculate_capacities(&mut self) {
        let clock = BalanceClock::new(self.setup.jiffies, self.setup.hz, self.cpu_online_count());
        let mut rqs = super::capacity::AtBoot {
            cpu_capacity: self.domains.cpu_capacity.clone(),
            cpu_capacity_orig: self.domains.cpu_capacity_orig.clone(),
        };
        let cpus = self.cpu_map.iter().collect::<Vec<_>>();
        for &cpu in cpus.iter().rev() {
            for sd in self.chain(cpu) {
                self.init_sched_groups_capacity(cpu, sd, clock, &mut rqs);
            }
        }
        self.domains.cpu_capacity = rqs.cpu_capacity;
        self.domains.cpu_capacity_orig = rqs.cpu_capacity_orig;
    }

    fn cpu_online_count(&self) -> u64 {
        self.setup.online.weight() as u64
    }
}

impl Domains {
    /// The state before any domain is attached: every CPU by itself.
    pub(super) fn without_any(
        topology: &CpuTopology,
        cpu_map: &CpuMask,
        rules: &DomainRules,
        setup: &DomainSetup,
        masks: Masks,
        numa: NumaTopology,
        warnings: Vec<DomainWarning>,
    ) -> Domains {
        let nr_cpus = topology.nr_cpus;
        let no_sd = || PerCpu::from_fn(nr_cpus, |_| None);
        Domains {
            rules: *rules,
            sds: Vec::new(),
            stats: Vec::new(),
            sgs: Vec::new(),
            sgcs: Vec::new(),
            sdss: Vec::new(),
            masks,
            arch_capacity: PerCpu::from_fn(nr_cpus, |cpu| u64::from(topology.capacity[cpu])),
            span: cpu_map.clone(),
            doms_cur: vec![cpu_map.clone()],
            sd: no_sd(),
            sd_llc: no_sd(),
            sd_llc_size: PerCpu::from_fn(nr_cpus, |_| 1),
            sd_llc_id: PerCpu::from_fn(nr_cpus, |cpu| match rules.llc_id {
                LlcId::OfDomain => cpu,
                LlcId::OfHardware => NO_LLC,
            }),
            sd_share_id: PerCpu::from_fn(nr_cpus, |cpu| cpu),
            sd_llc_shared: PerCpu::from_fn(nr_cpus, |_| None),
            sd_balance_shared: PerCpu::from_fn(nr_cpus, |_| None),
            sd_numa: no_sd(),
            sd_busy: no_sd(),
            sd_asym_packing: no_sd(),
            sd_asym_cpucapacity: no_sd(),
            sched_asym_cpucapacity: false,
            sched_cluster_active: false,
            sched_domain_level_max: 0,
            numa,
            cpu_capacity: setup.cpu_capacity.clone(),
            cpu_capacity_orig: setup.cpu_capacity_orig.clone(),
            warnings,
        }
    }
}

/// topology.c: asym_cpu_capacity_scan(). The CPUs of each capacity; empty if all are equal.
fn asym_cpu_capacity_scan(topology: &CpuTopology, rules: &DomainRules) -> Vec<CpuMask> {
    if rules.asym_capacity == AsymCapacity::Unseen {
        return Vec::new();
    }
    let mut by_capacity = BTreeMap::<_, CpuMask>::new();
    for (cpu, &capacity) in topology.capacity.iter() {
        by_capacity.entry(capacity).or_default().set(cpu);
    }
    if by_capacity.len() == 1 { Vec::new() } else { by_capacity.into_values().collect() }
}
