//! Frequencies of CPUs: what governors ask for, what the hardware gives, and when.
//!
//! ```text
//! model.rs         the hardware, as plain integers     clock.rs      counters and residency of a CPU and a domain
//! policy.rs        drivers, governors, their settings  rules.rs      what differs between kernels
//! governed.rs      from governors to the hardware      dbs.rs        ondemand and conservative
//! hwp_boost.rs     waits for devices, there            ceiling.rs    what a package's power allows
//! intel_pstate.rs  Intel's driver where it chooses     autonomous.rs hardware that chooses by itself
//! stores.rs        what is written while a kernel runs
//! ```
//!
//! Each CPU *votes* for a frequency: its governor's choice, or that of autonomous hardware. CPUs that share a clock are
//! a *domain*. A domain runs at the highest vote of its CPUs that are not in a deep idle state. It runs no faster than
//! the turbo limits for the number of active cores, nor than the power ceilings, of all packages in which it has CPUs.
//! A change takes effect `transition` after the request, but no sooner than `hold_off` after the last change.
//!
//! The simulation spends nothing on a domain whose votes stay as they are, nor on CPUs that idle: a change is one
//! event, and autonomous hardware looks once per window, only at CPUs that were busy in it or run at its end.
//!
//! Times may lie before what was already counted, because a path is charged as a whole and its CPU's clock stands at
//! the path's end. Such a piece counts at the frequency with which it began.

mod autonomous;
mod ceiling;
mod clock;
mod dbs;
mod governed;
mod hwp_boost;
mod intel_pstate;
mod model;
mod policy;
mod rules;
mod stores;
#[cfg(test)]
mod tests;

pub use clock::{Counters, FrequencyTime};
pub use governed::Wish;
pub use model::{Autonomous, Band, Burst, FullSpeed, Model, OperatingPoint, Sharing, fixed_khz};
pub use policy::{Driver, Governor, Limits, Policy, Preference, Relation};
pub use rules::{
    AcpiBoost, AtLimit, CppcDelay, CppcSwitch, DeferredSteps, FrequencyRules, IdleTime, LimitsStep, LongSleep, NoTurbo,
    NoTurboScale, PassiveHwp, PstateIowait, PstateStart, PstateTarget, Sampling, StepFloor, TableLimits,
    TransitionDelay,
};
pub use stores::{File, Follower};

use crate::topology::Topology;
use autonomous::Window;
use clock::Clock;
use governed::Group;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use units::{Capacity, CpuId, Ps};

/// Something that happens at a planned time, ordered by time, then by when it was planned.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Event {
    at: Ps,
    sequence: u64,
    what: What,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum What {
    /// A domain evaluates its votes.
    Domain(usize),
    /// A package counts its active cores.
    Package(usize),
    /// Autonomous hardware evaluates a core's window.
    Window(usize),
    /// A package evaluates what it drew.
    Power(usize),
}

/// CPUs that share a clock.
struct Domain {
    cpus: Vec<CpuId>,
    /// The package of its first CPU.
    package: usize,
    /// The other packages in which it has CPUs.
    other_packages: Vec<usize>,
    /// The number of its band.
    band: usize,
    khz: u32,
    changed: Ps,
    /// Whether it will evaluate its votes.
    due: bool,
    time: FrequencyTime,
}

/// CPUs that share turbo limits.
struct Package {
    /// All domains that have CPUs in it.
    domains: Vec<usize>,
    /// By the number of the cores' kind ([`Band::kind`]).
    active_cores: Vec<u32>,
    /// By band.
    limit_khz: Vec<u32>,
    /// What its power limit allows, by band; [`u32::MAX`]: everything.
    ceiling_khz: Vec<u32>,
    reviewed: Ps,
    due: bool,
}

/// One CPU's state.
struct Cpu {
    domain: usize,
    package: usize,
    core: usize,
    /// The number of its kind in its package's count of active cores.
    kind: usize,
    /// The frequency for which it votes.
    vote: u32,
    /// Not in an idle state that is deep enough for it to lose its vote.
    awake: bool,
    clock: Clock,
    /// The policy to which it belongs.
    policy: usize,
    pstate: intel_pstate::CpuData,
    dbs: dbs::CpuDbsInfo,
    /// `CPUTIME_NICE`: user-mode time of tasks with a nice level above 0, by ticks.
    nice: Ps,
    boost: hwp_boost::HwpBoost,
    /// Its speed as load tracking is told it, and the counters from which that was computed.
    scale: Capacity,
    scaled_at: Counters,
}

/// What a cycle takes in picoseconds, times the kHz that it is at.
const PS_AT_KHZ: u64 = 1_000_000_000;

/// A domain whose frequency changes now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Change {
    pub domain: usize,
    pub khz: u32,
}

/// All frequencies of a machine.
pub struct Frequency {
    pub model: Model,
    policy: Policy,
    /// Whether the hardware itself lets clocks go above the base frequency.
    hardware_turbo: bool,
    /// [`Policy::base_is_full_speed`], as load tracking was told it last.
    base_is_full_speed: bool,
    /// A policy that was written has not yet reached the driver's timers (intel_pstate of v4.5).
    applied_by_timer: bool,
    cpus: Vec<Cpu>,
    /// The threads of each core, how many of them are awake, and the state of the autonomous hardware for it.
    threads: Vec<Vec<CpuId>>,
    awake_threads: Vec<u32>,
    windows: Vec<Window>,
    domains: Vec<Domain>,
    packages: Vec<Package>,
    policies: Vec<Group>,
    events: BinaryHeap<Reverse<Event>>,
    sequence: u64,
}

impl Domain {
    /// A domain without CPUs.
    fn new(package: usize, band: usize, khz: u32) -> Domain {
        let (cpus, other_packages, time) = (Vec::new(), Vec::new(), FrequencyTime::default());
        Domain { cpus, package, other_packages, band, khz, changed: Ps::ZERO, due: false, time }
    }

    /// Adds a CPU of a package.
    fn add(&mut self, cpu: CpuId, package: usize) {
        self.cpus.push(cpu);
        if !self.is_in(package) {
            self.other_packages.push(package);
        }
    }

    /// Whether it has CPUs in a package.
    fn is_in(&self, package: usize) -> bool {
        self.package == package || self.other_packages.contains(&package)
    }

    /// The least of what the packages in which it has CPUs allow.
    fn limit_khz(&self, packages: &[Package]) -> u32 {
        let limit = |package: usize| packages[package].limit_khz[self.band];
        self.other_packages.iter().fold(limit(self.package), |least, &other| least.min(limit(other)))
    }
}

impl Package {
    /// A package without CPUs.
    fn new(nr_kinds: usize, nr_bands: usize) -> Package {
        let (active_cores, ceiling_khz) = (vec![0; nr_kinds], vec![u32::MAX; nr_bands]);
        let (domains, limit_khz) = (Vec::new(), Vec::new());
        Package { domains, active_cores, limit_khz, ceiling_khz, reviewed: Ps::ZERO, due: false }
    }

    /// The turbo limit of a band for the number of cores that are active.
    fn by_cores(&self, model: &Model, band: usize, turbo: bool) -> u32 {
        model.limit_khz(band, self.active_cores[model.bands[band].kind], turbo)
    }

    /// What its active cores and its power limit allow, by band.
    fn limits(&self, model: &Model, turbo: bool) -> impl Iterator<Item = u32> {
        let limit = move |band| self.by_cores(model, band, turbo).min(self.ceiling_khz[band]);
        (0..model.bands.len()).map(limit)
    }
}

impl Cpu {
    /// A CPU that has just booted, in this domain, package and core.
    fn new((domain, package, core): (usize, usize, usize), kind: usize, policy: usize, vote: u32) -> Cpu {
        Cpu {
            domain,
            package,
            core,
            kind,
            vote,
            awake: true,
            clock: Clock::default(),
            policy,
            pstate: Default::default(),
            dbs: Default::default(),
            nice: Ps::ZERO,
            boost: Default::default(),
            scale: 1024,
            scaled_at: Counters::default(),
        }
    }
}

/// The policies of cpufreq, as their governor begins with them.
fn groups(topology: &Topology, model: &Model, policy: &Policy, limits: &[Limits], domains: &[Domain]) -> Vec<Group> {
    let groups: Vec<Vec<CpuId>> = match policy.driver.shares_policies() {
        true => domains.iter().map(|domain| domain.cpus.clone()).collect(),
        false => topology.cpus().map(|(cpu, _)| vec![cpu]).collect(),
    };
    let group = |cpus: Vec<CpuId>| {
        let band = model.band_of(cpus[0]);
        let cur = policy.first_choice(model, &model.bands[band], limits[band]);
        let setspeed = policy.setspeed_khz.unwrap_or(cur);
        Group { cpus, band, limits: limits[band], cur, setspeed, dbs: Default::default() }
    };
    groups.into_iter().map(group).collect()
}

impl Frequency {
    /// A machine whose CPUs have just booted and are awake, at the frequencies at which their driver leaves them.
    pub fn new(topology: &Topology, model: Model, policy: Policy) -> Frequency {
        let limits: Vec<Limits> = model.bands.iter().map(|band| policy.limits_of(&model, band)).collect();
        let mut domains: Vec<Domain> = Vec::new();
        // CPUs of two bands have two clocks, whatever else they share.
        let mut numbers: Vec<(usize, usize)> = Vec::new();
        let nr_kinds = 1 + model.bands.iter().map(|band| band.kind).max().unwrap_or(0);
        let nr_packages = topology.packages().len().max(1);
        let mut packages: Vec<Package> = Vec::new();
        packages.resize_with(nr_packages, || Package::new(nr_kinds, model.bands.len()));
        let mut cpus = Vec::new();
        let mut awake_threads = vec![0; topology.cores().len()];
        let mut threads = vec![Vec::new(); topology.cores().len()];
        for (cpu, of) in topology.cpus() {
            let band = model.band_of(cpu);
            let (number, kind) = ((model.domain(topology, cpu), band), model.bands[band].kind);
            let start = policy.first_vote(&model, &model.bands[band], limits[band]);
            let package = usize::from(of.package);
            let domain = numbers.iter().position(|&known| known == number).unwrap_or_else(|| {
                numbers.push(number);
                domains.push(Domain::new(package, band, start));
                domains.len() - 1
            });
            domains[domain].add(cpu, package);
            let core = usize::from(of.core);
            if awake_threads[core] == 0 {
                packages[package].active_cores[kind] += 1;
            }
            awake_threads[core] += 1;
            threads[core].push(cpu);
            let shared = if policy.driver.shares_policies() { domain } else { cpu.index() };
            cpus.push(Cpu::new((domain, package, core), kind, shared, start));
        }
        for (number, package) in packages.iter_mut().enumerate() {
            package.domains = (0..domains.len()).filter(|&domain| domains[domain].is_in(number)).collect();
            package.limit_khz = package.limits(&model, policy.limits.turbo).collect();
        }
        let policies = groups(topology, &model, &policy, &limits, &domains);
        let mut frequency = Frequency {
            hardware_turbo: policy.limits.turbo,
            base_is_full_speed: policy.base_is_full_speed(&model),
            applied_by_timer: false,
            model,
            policy,
            cpus,
            windows: vec![Window::default(); threads.len()],
            threads,
            awake_threads,
            domains,
            packages,
            policies,
            events: BinaryHeap::new(),
            sequence: 0,
        };
        frequency.start();
        frequency
    }

    /// Sets clocks, scales and planned evaluations as at boot.
    fn start(&mut self) {
        for index in 0..self.domains.len() {
            let khz = self.target(index);
            let domain = &mut self.domains[index];
            domain.khz = khz;
            for cpu in &domain.cpus {
                self.cpus[cpu.index()].clock = Clock::new(khz);
            }
        }
        (0..self.policies.len()).for_each(|number| self.arch_set_freq_scale(number));
        for cpu in 0..self.cpus.len() {
            self.watch(CpuId::new(cpu), Ps::ZERO);
        }
    }

    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// When something happens next; [`Ps::NEVER`]: not before somebody asks for another frequency.
    #[inline]
    pub fn next(&self) -> Ps {
        self.events.peek().map_or(Ps::NEVER, |event| event.0.at)
    }

    /// The frequency of `cpu`, in kHz.
    #[inline]
    pub fn khz(&self, cpu: CpuId) -> u32 {
        self.domains[self.cpus[cpu.index()].domain].khz
    }

    /// Picoseconds that `cpu`, at its present frequency, takes for one cycle of the fastest CPUs' work, if it were as
    /// fast as they are when it is at its highest frequency.
    pub fn ps_per_cycle(&self, cpu: CpuId) -> u64 {
        let domain = &self.domains[self.cpus[cpu.index()].domain];
        let (khz, whole) = (u64::from(domain.khz), u64::from(self.model.max_khz()));
        match u64::from(self.model.bands[domain.band].max_khz()) {
            own if own == whole => PS_AT_KHZ / khz,
            own => PS_AT_KHZ * own / (khz * whole),
        }
    }

    pub fn domain_cpus(&self, domain: usize) -> &[CpuId] {
        &self.domains[domain].cpus
    }

    /// Time at each frequency of the domain that `cpu` is in, up to `now`.
    pub fn time(&self, cpu: CpuId, now: Ps) -> FrequencyTime {
        let domain = &self.domains[self.cpus[cpu.index()].domain];
        let mut time = domain.time.clone();
        time.add(domain.khz, now.saturating_sub(domain.changed));
        time
    }

    /// Time that `cpu` executed, polling or not, at each frequency, up to `now`: all of its unhalted time.
    pub fn executed(&self, cpu: CpuId, now: Ps) -> FrequencyTime {
        self.cpus[cpu.index()].clock.executed(now)
    }

    /// The counters of `cpu`, up to `now`.
    pub fn counters(&self, cpu: CpuId, now: Ps) -> Counters {
        self.cpus[cpu.index()].clock.read(now)
    }

    /// Does what is due first, and adds to `changes` the domains that change their frequency with it. The changes take
    /// effect with [`Frequency::apply`]. Returns the package, if any, that is to evaluate what it drew until then.
    pub fn step(&mut self, changes: &mut Vec<Change>) -> Option<(usize, Ps)> {
        let Reverse(event) = self.events.pop()?;
        match event.what {
            What::Domain(domain) => {
                self.domains[domain].due = false;
                self.look(domain, changes);
            }
            What::Package(package) => {
                let limits = self.packages[package].limits(&self.model, self.hardware_turbo).collect();
                let this = &mut self.packages[package];
                (this.due, this.reviewed) = (false, event.at);
                let before = std::mem::replace(&mut this.limit_khz, limits);
                for index in 0..self.packages[package].domains.len() {
                    let domain = self.packages[package].domains[index];
                    let (band, due) = (self.domains[domain].band, self.domains[domain].due);
                    // A domain that is about to evaluate its votes will see the new limit then.
                    if before[band] != self.packages[package].limit_khz[band] && !due {
                        self.look(domain, changes);
                    }
                }
            }
            What::Window(core) => self.window_ends(core, event.at),
            What::Power(package) => return Some((package, event.at)),
        }
        None
    }

    fn look(&mut self, domain: usize, changes: &mut Vec<Change>) {
        let khz = self.target(domain);
        if khz != self.domains[domain].khz {
            changes.push(Change { domain, khz });
        }
    }

    /// A domain runs at another frequency from `at` on.
    pub fn apply(&mut self, change: Change, at: Ps) {
        let domain = &mut self.domains[change.domain];
        for cpu in &domain.cpus {
            self.cpus[cpu.index()].clock.set_khz(at, change.khz);
        }
        domain.time.add(domain.khz, at.saturating_sub(domain.changed));
        (domain.khz, domain.changed) = (change.khz, at);
    }

    /// The frequency that follows from a domain's votes and limits.
    fn target(&self, domain: usize) -> u32 {
        let this = &self.domains[domain];
        self.voted(domain).min(this.limit_khz(&self.packages)).max(self.model.bands[this.band].min_khz)
    }

    /// The highest of a domain's votes. If all its CPUs sleep its clock stands still, and what it shows does not
    /// matter.
    fn voted(&self, domain: usize) -> u32 {
        let this = &self.domains[domain];
        let votes = this.cpus.iter().map(|cpu| &self.cpus[cpu.index()]).filter(|cpu| cpu.awake).map(|cpu| cpu.vote);
        votes.max().unwrap_or(this.khz)
    }

    fn plan(&mut self, at: Ps, what: What) {
        self.sequence += 1;
        self.events.push(Reverse(Event { at, sequence: self.sequence, what }));
    }

    /// A domain's votes have changed: it evaluates them as soon as it may.
    fn votes_changed(&mut self, domain: usize, now: Ps) {
        if self.domains[domain].due || self.target(domain) == self.domains[domain].khz {
            return;
        }
        self.domains[domain].due = true;
        let at = self.domain_changes_at(domain, now);
        self.plan(at, What::Domain(domain));
    }

    /// When a domain gets a frequency that is asked for at `now`.
    fn domain_changes_at(&self, domain: usize, now: Ps) -> Ps {
        (now + self.model.transition).max(self.domains[domain].changed + self.model.hold_off)
    }

    /// The same for the domain of `cpu`.
    fn changes_at(&self, cpu: CpuId, now: Ps) -> Ps {
        self.domain_changes_at(self.cpus[cpu.index()].domain, now)
    }

    /// The number of a package's active cores, or its ceiling, has changed.
    fn active_changed(&mut self, package: usize, now: Ps) {
        let this = &self.packages[package];
        if this.due || this.limits(&self.model, self.hardware_turbo).eq(this.limit_khz.iter().copied()) {
            return;
        }
        let at = (now + self.model.transition).max(this.reviewed + self.model.hold_off);
        self.packages[package].due = true;
        self.plan(at, What::Package(package));
    }

    /// `cpu` votes for a frequency.
    pub fn vote(&mut self, cpu: CpuId, khz: u32, now: Ps) {
        let this = &mut self.cpus[cpu.index()];
        if std::mem::replace(&mut this.vote, khz) != khz {
            let domain = this.domain;
            self.votes_changed(domain, now);
        }
    }

    /// `cpu` idles from `now` on, polling or not.
    pub fn idle(&mut self, cpu: CpuId, now: Ps) {
        if self.policy.rules.idle_time == IdleTime::Measured {
            self.cpus[cpu.index()].clock.idles(now);
        }
    }

    /// Counts idle time of `cpu` up to `now`, while it may go on; `iowait`: while tasks that last ran there wait for a
    /// device.
    pub(super) fn account_idle(&mut self, cpu: CpuId, now: Ps, iowait: bool) {
        self.cpus[cpu.index()].clock.account_idle(now, iowait);
    }

    /// `cpu` stops idling.
    pub fn stop_idle(&mut self, cpu: CpuId, now: Ps, iowait: bool) {
        if self.policy.rules.idle_time == IdleTime::Measured {
            self.cpus[cpu.index()].clock.stop_idle(now, iowait);
        }
    }

    /// cputime.c: kcpustat_dyntick_start(): the tick of `cpu` stops; the CPU has been idle since `since`.
    pub fn kcpustat_dyntick_start(&mut self, cpu: CpuId, since: Ps) {
        if self.policy.rules.idle_time == IdleTime::WithoutTick {
            self.cpus[cpu.index()].clock.idles(since);
        }
    }

    /// cputime.c: kcpustat_dyntick_stop(): `cpu` leaves the idle loop, in which it had no tick.
    pub fn kcpustat_dyntick_stop(&mut self, cpu: CpuId, now: Ps, iowait: bool) {
        if self.policy.rules.idle_time == IdleTime::WithoutTick {
            self.cpus[cpu.index()].clock.stop_idle(now, iowait);
        }
    }

    /// cputime.c: account_idle_time(), by a tick that finds `cpu` idle.
    pub fn account_idle_time(&mut self, cpu: CpuId, iowait: bool) {
        if self.policy.rules.idle_time == IdleTime::WithoutTick {
            self.cpus[cpu.index()].clock.account_idle_time(self.policy.tick, iowait);
        }
    }

    /// `cpu` stops executing. `deep`: in a state whose exit latency is so long that its core loses its vote and its
    /// turbo share.
    pub fn halt(&mut self, cpu: CpuId, now: Ps, deep: bool) {
        let this = &mut self.cpus[cpu.index()];
        this.clock.stop(now);
        if deep {
            this.awake = false;
            let (domain, package, core, kind) = (this.domain, this.package, this.core, this.kind);
            self.awake_threads[core] -= 1;
            if self.awake_threads[core] == 0 {
                self.packages[package].active_cores[kind] -= 1;
                self.active_changed(package, now);
            }
            self.votes_changed(domain, now);
        }
    }

    /// `cpu` executes again.
    pub fn resume(&mut self, cpu: CpuId, now: Ps) {
        let this = &mut self.cpus[cpu.index()];
        this.clock.start(now);
        if !std::mem::replace(&mut this.awake, true) {
            let (domain, package, core, kind) = (this.domain, this.package, this.core, this.kind);
            self.awake_threads[core] += 1;
            if self.awake_threads[core] == 1 {
                self.packages[package].active_cores[kind] += 1;
                self.active_changed(package, now);
            }
            self.votes_changed(domain, now);
        }
        self.watch(cpu, now);
    }
}
