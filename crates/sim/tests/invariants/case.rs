//! A random setup as plain data: printed when it fails, made smaller while it still does.

use super::prices::plausible;
use super::program::{Compiler, Ledger};
use machine::hardware::Hardware;
use machine::idle::IdleRules;
use machine::prices::Prices;
use machine::topology::{Numbering, Topology, from_synthetic};
use os::memory::MigrationLimit;
use os::net::NetRules;
use os::pipe::PipeRules;
use os::preempt::Preempt;
use os::sync::rtmutex::PiRules;
use os::{Os, OsRules};
use sched::behaviour::Rules;
use sched::core::{Boot, Sched};
use sched::features::Feature;
use sched::sched::Policy;
use sched::scheduler::Scheduler;
use sched::syscalls::{IdleWeight, NiceChange};
use sched::sysctl::{Sysctl, Tunable};
use sim::engine::{LinuxSim, Sim};
use sim::program::TaskSpec;
use sim::timeline::Change;
use units::{CpuId, Cycles, Ns, Prng};

#[path = "choices.rs"]
mod choices;

use choices::{FEATURES, MACHINES, SYSCTLS};

#[derive(Clone, Debug)]
pub struct Case {
    pub seed: u64,
    /// hwloc's synthetic notation.
    pub machine: String,
    pub kernel: &'static str,
    pub costs: bool,
    /// Idle CPUs watch their flags word; otherwise they need interrupts.
    pub mwait: bool,
    pub hz: u32,
    /// Toggled features, by name: those the kernel has are switched.
    pub toggled: Vec<&'static str>,
    /// Sysctls that are not at their defaults.
    pub sysctls: Vec<(Tunable, u64)>,
    pub pipes: PipeRules,
    /// Parent (0 is the root group, n the n-th of these) and shares.
    pub groups: Vec<(usize, u64)>,
    /// What each of these groups begins with, by its place in [`LIMITS`]; the rest begin without.
    pub limits: Vec<usize>,
    pub ensembles: Vec<Ensemble>,
    pub administration: Option<Administration>,
    /// What is done to the machine meanwhile.
    pub timeline: Vec<(Ns, Change)>,
    /// The capacity of every second CPU, of 1024.
    pub small_cpus: Option<u32>,
    /// Lines are disputed as soon as one waits for them.
    pub disputes: bool,
    /// Behaviours that are another kernel's.
    pub mixed: Vec<(&'static str, &'static str)>,
}

/// Another preemption model, CPUs without ticks, and what is switched in the middle of the run.
#[derive(Clone, Debug)]
pub struct Administration {
    pub preempt: Preempt,
    /// All CPUs but the first.
    pub nohz_full: bool,
    pub changes: Vec<(Ns, Switch)>,
}

#[derive(Clone, Copy, Debug)]
pub enum Switch {
    /// The other way round, if the kernel has it.
    Feature(&'static str),
    /// If the kernel has it.
    Sysctl(Tunable, u64),
}

/// Tasks that belong together.
#[derive(Clone, Debug)]
pub struct Ensemble {
    pub kind: Kind,
    /// When it starts, and on which CPU (modulo the machine's) it is forked.
    pub at: Ns,
    pub on: usize,
    pub rounds: u32,
    /// Bytes that each member keeps in the caches.
    pub working_set: u64,
    /// What each member does in a round, between the ensemble's own operations.
    pub members: Vec<Vec<Step>>,
}

#[derive(Clone, Copy, Debug)]
pub enum Kind {
    Solo,
    Ring { bytes: u64 },
    Star { bytes: u64 },
    Forks { threads: bool },
    Mutex,
    Barrier,
    Shelf { broadcast: bool },
    Semaphore,
}

#[derive(Clone, Copy, Debug)]
pub enum Step {
    Run(Ns),
    Work(Cycles),
    Sleep(Ns),
    Io(Ns),
    Yield,
    Nice(i32),
    Policy(Policy),
    /// A bit per CPU; ignored where no such CPU exists.
    Affinity(u64),
    /// 0 is the root group; ignored where the case has fewer groups.
    Group(usize),
    /// The n-th group gets other limits, by their place in [`LIMITS`]; ignored where the case has fewer groups.
    Limit(usize, usize),
    Setsid,
    Exec,
    Autogroup(i32),
    /// sched_setattr(), by its place in [`ATTRS`](super::dimensions::ATTRS).
    Attr(usize),
    /// The n-th group is weighed anew, by place in [`WEIGHTS`](super::dimensions::WEIGHTS); ignored where the case has fewer groups.
    Weigh(usize, usize),
}

/// What a group may use: quota and period in us, and what it may save up beyond the quota. No limit comes last.
pub const LIMITS: [Option<(u64, u64, u64)>; 7] = [
    Some((1_000, 20_000, 0)),
    Some((5_000, 10_000, 0)),
    Some((20_000, 100_000, 20_000)),
    Some((30_000, 20_000, 5_000)),
    Some((2_000, 1_000, 0)),
    Some((100_000, 50_000, 100_000)),
    None,
];

/// The least part of one CPU that a limit leaves: a twentieth.
const TIGHTEST: u64 = 20;

pub const KERNELS: [&str; 5] = ["v4.5-rc1", "v4.15", "v4.16", "v6.1", "v6.12"];

impl Case {
    pub fn random(seed: u64) -> Case {
        Case::random_among(seed, &KERNELS)
    }

    /// The same with one of these kernels.
    pub fn random_among(seed: u64, kernels: &[&'static str]) -> Case {
        let mut random = Prng::stream(seed, "case", 0);
        let mut pick = |bound: u64| random.below(bound) as usize;
        let mut case = Case {
            seed,
            machine: MACHINES[pick(MACHINES.len() as u64)].to_string(),
            kernel: kernels[pick(kernels.len() as u64)],
            costs: pick(3) > 0,
            mwait: pick(3) > 0,
            hz: [100, 250, 1000][pick(3)],
            toggled: Vec::new(),
            sysctls: Vec::new(),
            pipes: [PipeRules::Single, PipeRules::Split][pick(2)],
            groups: Vec::new(),
            limits: Vec::new(),
            ensembles: Vec::new(),
            administration: None,
            timeline: Vec::new(),
            small_cpus: None,
            disputes: false,
            mixed: Vec::new(),
        };
        if pick(2) == 0 {
            case.toggled = (0..1 + pick(4)).map(|_| FEATURES[pick(FEATURES.len() as u64)]).collect();
            case.toggled.sort_unstable();
            case.toggled.dedup();
            case.sysctls = (0..pick(4)).map(|_| SYSCTLS[pick(SYSCTLS.len() as u64)]).collect();
        }
        if pick(2) == 0 {
            for number in 0..1 + pick(5) {
                // At most three deep: the root, its children, theirs, and theirs.
                let depth = |case: &Case, group: usize| {
                    std::iter::successors(Some(group), |&g| (g > 0).then(|| case.groups[g - 1].0)).count() - 1
                };
                let parent = pick(number as u64 + 1);
                let parent = if depth(&case, parent) < 3 { parent } else { 0 };
                case.groups.push((parent, [2, 128, 1024, 4096][pick(4)]));
            }
        }
        let plain = pick(3) == 0;
        if plain && random.below(2) == 0 {
            case.ensembles.push(Ensemble::hogs(&mut random));
        }
        for _ in 0..1 + random.below(5) {
            let ensemble = Ensemble::random(&mut random, case.groups.len(), plain);
            case.ensembles.push(ensemble);
        }
        let kernel = sched::versions::kernel(case.kernel).expect("a kernel that is built");
        if kernel.core.nice_change == NiceChange::Reweight && kernel.core.idle_weight == IdleWeight::WeightOnly {
            case.spare_idle_policy();
        }
        case
    }

    /// The same with limits on its groups, and with sessions.
    pub fn with_limits(mut self) -> Case {
        let mut random = Prng::stream(self.seed, "limits", 0);
        if self.groups.is_empty() {
            self.groups.push((0, 1024));
        }
        let limit = |random: &mut Prng| random.below(LIMITS.len() as u64) as usize;
        self.limits = self.groups.iter().map(|_| limit(&mut random)).collect();
        let nr_groups = self.groups.len() as u64;
        for steps in self.ensembles.iter_mut().flat_map(|e| &mut e.members) {
            // Somebody should be in the groups.
            if random.below(2) == 0 {
                steps.insert(0, Step::Group(random.below(nr_groups + 1) as usize));
            }
            let at = random.below(steps.len() as u64 + 1) as usize;
            match random.below(8) {
                0 => steps.insert(at, Step::Limit(1 + random.below(nr_groups) as usize, limit(&mut random))),
                1 => steps.insert(at, Step::Setsid),
                2 => steps.insert(at, Step::Autogroup(random.below(40) as i32 - 20)),
                _ => {}
            }
        }
        self
    }

    /// The same with somebody who switches things while it runs.
    pub fn with_administration(mut self) -> Case {
        let mut random = Prng::stream(self.seed, "administration", 0);
        let mut pick = |bound: usize| random.below(bound as u64) as usize;
        let mut changes: Vec<(Ns, Switch)> = Vec::new();
        for _ in 0..pick(12) {
            let at = Ns::from_us(pick(60_000) as u64);
            changes.push((
                at,
                match pick(3) {
                    0 => {
                        let (tunable, value) = SYSCTLS[pick(SYSCTLS.len())];
                        Switch::Sysctl(tunable, value)
                    }
                    _ => Switch::Feature(FEATURES[pick(FEATURES.len())]),
                },
            ));
        }
        let preempt = match (self.kernel, pick(3)) {
            ("v6.18", 0) | ("v7.2", 0 | 1) => Preempt::Lazy,
            (_, choice) => Preempt::ALL[choice],
        };
        // Before v6.6 nobody counts in time what a single task without a tick uses of a quota.
        let counted = self.limits.is_empty() || matches!(self.kernel, "v6.12" | "v6.18");
        self.administration = Some(Administration { preempt, nohz_full: pick(2) == 0 && counted, changes });
        self
    }

    /// Every task alike, and balancing as it comes: no nice levels, policies, affinities, groups or yields anywhere.
    pub fn is_plain(&self) -> bool {
        let plain = |step: &Step| matches!(step, Step::Run(_) | Step::Work(_) | Step::Sleep(_) | Step::Io(_));
        self.toggled.is_empty()
            && self.limits.is_empty()
            && self.timeline.is_empty()
            && self.mixed.is_empty()
            && self.small_cpus.is_none()
            && self.sysctls.is_empty()
            && self.administration.is_none()
            && self.steps().all(plain)
    }

    /// Whether tasks both yield and change their weight. v6.12 keeps the deadline of a task whose weight changes as far away as its old
    /// weight had put it (core.c takes it off its queue meanwhile: PLACE_REL_DEADLINE), and a yield goes there: as far ahead as a
    /// slice of the lighter weight is long.
    pub fn yields_far(&self) -> bool {
        let yields = self.steps().any(|step| matches!(step, Step::Yield));
        yields
            && self
                .steps()
                .any(|step| matches!(step, Step::Nice(_) | Step::Policy(_) | Step::Attr(_) | Step::Weigh(..)))
    }

    pub fn steps(&self) -> impl Iterator<Item = &Step> {
        self.ensembles.iter().flat_map(|e| &e.members).flatten()
    }

    pub fn nr_cpus(&self) -> usize {
        self.topology().nr_cpus()
    }

    fn topology(&self) -> Topology {
        let topology = from_synthetic(&self.machine, "case", Numbering::LinuxX86).expect("a valid machine");
        match self.small_cpus {
            Some(capacity) => {
                let every_second = (0..topology.nr_cpus()).step_by(2).map(CpuId::new).collect();
                topology.with_capacity(&every_second, capacity)
            }
            None => topology,
        }
    }

    /// Whether slices change while tasks have lag of the old ones: because somebody sets `sched_base_slice`, or because a CPU
    /// that goes or comes puts the default in the place of what was set before (fair.c: update_sysctl()).
    pub fn changes_slices(&self) -> bool {
        let slice = |(_, switch): &(Ns, Switch)| matches!(switch, Switch::Sysctl(Tunable::sched_base_slice, _));
        let change = |(_, change): &(Ns, Change)| matches!(change, Change::Sysctl(Tunable::sched_base_slice, _));
        let hotplug = |(_, change): &(Ns, Change)| matches!(change, Change::CpuOffline(_) | Change::CpuOnline(_));
        let was_set = self.sysctls.iter().any(|(tunable, _)| *tunable == Tunable::sched_base_slice);
        self.administration.as_ref().is_some_and(|it| it.changes.iter().any(slice))
            || self.timeline.iter().any(change)
            || was_set && self.timeline.iter().any(hotplug)
    }

    /// Takes SCHED_IDLE out. From v4.15 to v6.10 a task that takes this policy keeps its averages (core.c: set_load_weight()); attached to a
    /// queue before its next period it counts as one of weight 3 that has this average (fair.c: attach_entity_load_avg()), and
    /// its next weight multiplies that: by 341 for nice 0, again and again. The kernel's numbers wrap then, and ours with them.
    fn spare_idle_policy(&mut self) {
        for step in self.ensembles.iter_mut().flat_map(|e| &mut e.members).flatten() {
            if matches!(step, Step::Policy(Policy::Idle)) {
                *step = Step::Policy(Policy::Batch);
            }
        }
    }

    /// Cases that are a little smaller, the smallest first.
    pub fn smaller(&self) -> Vec<Case> {
        let mut cases = Vec::new();
        let with = |ensembles: Vec<Ensemble>| Case { ensembles, ..self.clone() };
        for i in 0..self.ensembles.len() {
            let mut rest = self.ensembles.clone();
            rest.remove(i);
            cases.push(with(rest));
        }
        cases.extend(self.groups.len().checked_sub(1).map(|fewer| {
            let mut case = self.clone();
            case.groups.truncate(fewer);
            case.limits.truncate(fewer);
            case
        }));
        if !self.limits.is_empty() {
            cases.push(Case { limits: Vec::new(), ..self.clone() });
        }
        if let Some(administration) = &self.administration {
            cases.push(Case { administration: None, ..self.clone() });
            for i in 0..administration.changes.len() {
                let mut fewer = administration.clone();
                fewer.changes.remove(i);
                cases.push(Case { administration: Some(fewer), ..self.clone() });
            }
        }
        for i in 0..self.ensembles.len() {
            for smaller in self.ensembles[i].smaller() {
                let mut ensembles = self.ensembles.clone();
                ensembles[i] = smaller;
                cases.push(with(ensembles));
            }
        }
        for i in 0..self.toggled.len() {
            let mut case = self.clone();
            case.toggled.remove(i);
            cases.push(case);
        }
        for i in 0..self.sysctls.len() {
            let mut case = self.clone();
            case.sysctls.remove(i);
            cases.push(case);
        }
        for i in 0..self.timeline.len() {
            let mut case = self.clone();
            case.timeline.remove(i);
            cases.push(case);
        }
        for i in 0..self.mixed.len() {
            let mut case = self.clone();
            case.mixed.remove(i);
            cases.push(case);
        }
        if self.small_cpus.is_some() {
            cases.push(Case { small_cpus: None, ..self.clone() });
        }
        if self.costs {
            cases.push(Case { costs: false, ..self.clone() });
        }
        cases
    }

    /// Until when every such case is done, unless something is stuck: all it asks for on one CPU at the slowest, its sleeps
    /// and a tick for every step, tenfold.
    pub fn deadline(&self) -> Ns {
        let mut total = Ns::from_ms(1000);
        for ensemble in &self.ensembles {
            let per_step = ensemble.members.iter().flatten().map(|step| match step {
                Step::Run(time) | Step::Sleep(time) | Step::Io(time) => *time + Ns::from_ms(10),
                Step::Work(cycles) => Ns(cycles.0) + Ns::from_ms(10),
                _ => Ns::from_ms(10),
            });
            let round: Ns = per_step.fold(Ns::from_ms(10), |sum, time| sum + time);
            total += ensemble.at + Ns(round.0 * u64::from(ensemble.rounds));
        }
        let slow = !self.limits.is_empty() || self.has_classes();
        let small = 1024 / u64::from(self.small_cpus.unwrap_or(1024));
        Ns(total.0 * if slow { 10 * TIGHTEST } else { 10 } * small)
    }

    pub fn prices(&self) -> Prices {
        Prices { mwait: self.mwait, ..if self.costs { plausible() } else { Prices::free() } }
    }

    pub fn boot<const COSTS: bool>(&self, prices: Prices) -> LinuxSim<COSTS> {
        let topology = self.topology();
        let mut kernel = *sched::versions::kernel(self.kernel).expect("a kernel that is built");
        for feature in self.toggled.iter().map(|name| Feature::from_name(name).expect("a feature")) {
            if kernel.features.has(feature) {
                kernel.features.set(feature, !kernel.features.sched_feat(feature));
            }
        }
        for (key, value) in &self.mixed {
            kernel.set(key, value).expect("a behaviour of this kernel");
        }
        let mut sysctl = Sysctl::new(topology.nr_cpus());
        for (name, value) in &self.sysctls {
            sysctl.set(*name, *value);
        }
        let mut prices = prices;
        super::prices::of_kinds(&mut prices, &topology, self.seed);
        let power = super::energy::power(&topology, &prices.idle_states, self.seed);
        let mut hardware = Hardware::new(topology.clone(), prices, kernel.layout(), IdleRules::V4_15, self.seed);
        hardware.set_power(power);
        if self.disputes {
            hardware.dispute_from(0);
        }
        let boot = Boot { sysctl, ..Boot::new(kernel, topology.cpu_topology(), self.hz) };
        let mut sched = Sched::new(hardware, boot);
        // Its counts assert what they must be. A kernel without answers so.
        if self.seed.is_multiple_of(4) {
            let _ = sched.setup_psi(false);
        }
        let migration_limit = MigrationLimit::None;
        let administration = self.administration.as_ref();
        if administration.is_some_and(|it| it.nohz_full) {
            sched.tick_nohz_full_setup(&(0..sched.nr_cpus()).map(CpuId::new).collect());
        }
        let preempt = administration.map_or(Preempt::None, |it| it.preempt);
        let mut sim = Sim::new(
            sched,
            Os::new(
                OsRules {
                    pipe: self.pipes,
                    preempt,
                    migration_limit,
                    net: NetRules::V4_5,
                    pi: PiRules::V4_5,
                    ..OsRules::V4_5
                },
                self.hz,
            ),
        );
        let mut features = kernel.features;
        for &(at, switch) in administration.iter().flat_map(|it| &it.changes) {
            match switch {
                Switch::Feature(name) => {
                    let feature = Feature::from_name(name).expect("a feature");
                    if features.has(feature) {
                        let on = !features.sched_feat(feature);
                        features.set(feature, on);
                        sim.at(at, Change::Feature(feature, on));
                    }
                }
                Switch::Sysctl(tunable, value) => {
                    if kernel.tunables.iter().any(|&(_, known)| known == tunable) {
                        sim.at(at, Change::Sysctl(tunable, value));
                    }
                }
            }
        }
        sim
    }

    /// The ensembles' tasks in order of their start.
    pub fn tasks<const COSTS: bool>(&self, sim: &mut LinuxSim<COSTS>) -> (Vec<Start>, Ledger) {
        let mut compiler = Compiler::new(sim, self);
        let mut starts = Vec::new();
        for ensemble in &self.ensembles {
            for spec in compiler.compile(ensemble) {
                starts.push(Start { at: ensemble.at, on: ensemble.on, spec });
            }
        }
        let ledger = compiler.ledger;
        starts.sort_by_key(|start| start.at);
        (starts, ledger)
    }
}

pub struct Start {
    pub at: Ns,
    pub on: usize,
    pub spec: TaskSpec,
}

impl Start {
    /// Lets the clock reach the start, then starts the task.
    pub fn go<const COSTS: bool>(self, sim: &mut LinuxSim<COSTS>, watch: impl FnMut(&LinuxSim<COSTS>)) {
        if self.at > sim.now() && sim.run_watched(self.at, watch) != sim::engine::End::Time {
            sim.idle(self.at);
        }
        let nr_cpus = sim.sched.nr_cpus();
        let mut cpus = (self.on..self.on + nr_cpus).map(|cpu| CpuId::new(cpu % nr_cpus));
        let cpu = cpus.find(|&cpu| sim.sched.is_online(cpu)).expect("a CPU is up");
        sim.spawn(cpu, self.spec);
    }
}

impl Ensemble {
    fn random(random: &mut Prng, nr_groups: usize, plain: bool) -> Ensemble {
        let bytes = [1, 100, 4096, 10_000][random.below(4) as usize];
        let kind = match random.below(9) {
            0 | 1 => Kind::Solo,
            2 => Kind::Ring { bytes },
            3 => Kind::Star { bytes },
            4 => Kind::Forks { threads: random.below(2) == 0 },
            5 => Kind::Mutex,
            6 => Kind::Barrier,
            7 => Kind::Shelf { broadcast: random.below(2) == 0 },
            _ => Kind::Semaphore,
        };
        let most = if random.below(4) == 0 { 24 } else { 6 };
        let members = 2 + random.below(most);
        let steps = |random: &mut Prng| {
            let count = 1 + random.below(5);
            (0..count).map(|_| Step::random(random, nr_groups, plain)).collect()
        };
        Ensemble {
            kind,
            at: [Ns::ZERO, Ns::from_us(random.below(20_000))][random.below(2) as usize],
            on: random.below(16) as usize,
            rounds: 1 + random.below(12) as u32,
            working_set: [0, 0, 20_000, 1_000_000][random.below(4) as usize],
            members: (0..members).map(|_| steps(random)).collect(),
        }
    }

    /// Tasks that only run, of very different lengths: some CPUs are done when others still have several, which only balancing by
    /// the tick and by idle CPUs can help.
    fn hogs(random: &mut Prng) -> Ensemble {
        let members = 2 + random.below(30);
        let length = |random: &mut Prng| Ns::from_ms(1 + random.below(100) * random.below(4));
        Ensemble {
            kind: Kind::Solo,
            at: Ns::ZERO,
            on: random.below(16) as usize,
            rounds: 1,
            working_set: 0,
            members: (0..members).map(|_| vec![Step::Run(length(random))]).collect(),
        }
    }

    fn smaller(&self) -> Vec<Ensemble> {
        let mut all = Vec::new();
        let with = |members: Vec<Vec<Step>>| Ensemble { members, ..self.clone() };
        let nr = self.members.len();
        if nr > 2 {
            all.push(with(self.members[..nr.div_ceil(2).max(2)].to_vec()));
            all.push(with(self.members[..nr - 1].to_vec()));
        }
        if self.rounds > 1 {
            all.push(Ensemble { rounds: self.rounds / 2, ..self.clone() });
            all.push(Ensemble { rounds: self.rounds - 1, ..self.clone() });
        }
        if self.members.iter().any(|steps| steps.len() > 1) {
            all.push(with(self.members.iter().map(|steps| steps[..steps.len().div_ceil(2)].to_vec()).collect()));
        }
        for (i, steps) in self.members.iter().enumerate() {
            for at in 0..steps.len() {
                let mut members = self.members.clone();
                members[i].remove(at);
                all.push(with(members));
            }
        }
        if self.at > Ns::ZERO {
            all.push(Ensemble { at: Ns::ZERO, ..self.clone() });
        }
        all
    }
}
