//! The energy that a machine takes: power times time, over every stretch in which a core does one thing.
//!
//! While one of its threads executes or polls, a core draws what its domain's table says for its clock. Otherwise it
//! draws the power of the shallowest idle state among its threads. The time to leave a state counts as that state, as
//! in its residency. A package draws some power beside its cores, and less of it while it sleeps. Between two
//! frequencies of a table power is interpolated linearly; below the lowest one it falls in proportion to the frequency.
//! All values are integers: a microwatt for a picosecond is an attojoule.
//!
//! A power limit ([`PowerLimiter`](crate::power_limit::PowerLimiter)) chooses clocks by the power that is reckoned here. Nothing
//! else that is simulated depends on it.

use crate::description::Description;
use crate::frequency::{FrequencyTime, fixed_khz};
use crate::idle::PackageResidency;
use crate::prices::IdleState;
use crate::topology::Topology;
use units::{CpuId, CpuMask, Ps, Slots};

/// The power that a machine draws, as plain integers: `[energy]` of its machine file. In microwatts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Power {
    /// Each CPU's frequency on a machine whose clocks never change, in kHz.
    pub fixed_khz: Vec<u32>,
    /// Each CPU is in one domain.
    pub domains: Vec<DomainPower>,
    /// What a package draws beside its cores, awake and asleep.
    pub package: (u64, u64),
}

/// CPUs that share a clock.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DomainPower {
    pub cpus: CpuMask,
    /// Frequencies in kHz, and what a core draws at each while it executes; ascending, at least one.
    pub executing: Vec<(u64, u64)>,
    /// What a core draws in each idle state, by the state's name. Polling states are not among them.
    pub idle: Vec<(String, u64)>,
}

impl Power {
    /// The powers in a machine file; `None` if it leaves out a state of a CPU.
    pub fn of(machine: &Description) -> Option<Power> {
        let value = |name: &str| machine.figure(name).map(|figure| figure.value);
        let domain = |domain: &crate::description::EnergyDomain| {
            let state = |name: String| {
                let khz = value(&format!("{name}.frequency"))? / 1_000;
                Some((khz, value(&format!("{name}.power"))?))
            };
            let idle: Option<Vec<(String, u64)>> =
                domain.idle_names().map(|(state, name)| Some((state.to_string(), value(&name)?))).collect();
            Some(DomainPower {
                cpus: domain.cpus.clone(),
                executing: domain.state_names().map(state).collect::<Option<_>>()?,
                idle: idle.filter(|idle| !idle.is_empty())?,
            })
        };
        let domains: Vec<DomainPower> = machine.energy_domains().iter().map(domain).collect::<Option<_>>()?;
        if domains.is_empty() {
            return None;
        }
        let awake = value("energy.package.awake").unwrap_or(0);
        Some(Power {
            fixed_khz: fixed_khz(machine),
            domains,
            package: (awake, value("energy.package.asleep").unwrap_or(awake)),
        })
    }
}

impl Power {
    /// What the core of `cpu` draws in an idle state of that name, or executing, while its clock is at `khz`.
    ///
    /// # Panics
    /// If no domain has the CPU.
    pub fn drawn_uw(&self, cpu: CpuId, state: Option<&str>, khz: u32) -> u64 {
        let domain = self.domains.iter().find(|domain| domain.cpus.contains(cpu)).expect("each CPU is in a domain");
        let idle = state.and_then(|state| domain.idle_uw(state));
        idle.unwrap_or_else(|| domain.executing_uw(khz))
    }
}

impl DomainPower {
    /// What a core draws while it executes at `khz`.
    pub fn executing_uw(&self, khz: u32) -> u64 {
        let (_, top_uw) = *self.executing.last().expect("a domain has a frequency");
        let own = u64::from(khz);
        let above = self.executing.partition_point(|state| state.0 < own);
        match (above.checked_sub(1).map(|below| self.executing[below]), self.executing.get(above)) {
            (_, None) => top_uw,
            (None, Some(&(lowest, uw))) => uw * own / lowest,
            (Some((from, from_uw)), Some(&(to, to_uw))) => from_uw + (to_uw - from_uw) * (own - from) / (to - from),
        }
    }

    /// What a core draws in the idle state of that name; `None` for a polling state.
    pub fn idle_uw(&self, state: &str) -> Option<u64> {
        self.idle.iter().find(|(name, _)| name == state).map(|&(_, uw)| uw)
    }
}

/// What one core has done and drawn. Energy in attojoules.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CoreEnergy {
    /// Time at each frequency while a thread executed or polled, and the energy of that.
    pub executing: FrequencyTime,
    pub executing_aj: u128,
    /// Time in each idle state, from the shallowest, and the energy of that.
    pub idle: Vec<Ps>,
    pub idle_aj: Vec<u128>,
}

impl CoreEnergy {
    pub fn total_aj(&self) -> u128 {
        self.executing_aj + self.idle_aj.iter().sum::<u128>()
    }
}

/// A summary of [`CoreEnergy`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CoreDraw {
    pub executing: Ps,
    pub executing_aj: u128,
    pub idle_aj: u128,
    /// Whether a thread executes, or is on the way out of its idle state.
    pub awake: bool,
}

impl CoreDraw {
    /// What the core did since `before`, which is set to what it has done by now. Execution beside an idle stretch that
    /// was already counted can make a total smaller than before; the difference then comes off what follows.
    pub fn since(&self, before: &mut CoreDraw) -> CoreDraw {
        let done = CoreDraw {
            executing: self.executing.saturating_sub(before.executing),
            executing_aj: self.executing_aj.saturating_sub(before.executing_aj),
            idle_aj: self.idle_aj.saturating_sub(before.idle_aj),
            awake: self.awake,
        };
        before.executing += done.executing;
        before.executing_aj += done.executing_aj;
        before.idle_aj += done.idle_aj;
        done
    }
}

/// One thread of a core.
#[derive(Clone, Copy, Debug)]
struct Thread {
    /// `None`: it executes.
    state: Option<u8>,
    /// When the thread will execute, if it is on the way out of its state.
    leaves: Ps,
}

const EXECUTES: Thread = Thread { state: None, leaves: Ps::NEVER };

#[derive(Clone, Debug)]
struct Core {
    domain: usize,
    threads: Vec<Thread>,
    khz: u32,
    /// Power while executing at that frequency.
    executing_uw: u64,
    since: Ps,
    energy: CoreEnergy,
}

/// What the cores of a machine do, and the energy that takes.
#[derive(Clone, Debug)]
pub struct Meter {
    power: Power,
    cores: Vec<Core>,
    /// The core of each CPU, and which of the core's threads the CPU is.
    of_cpu: Slots<(u16, u16)>,
    /// What a core of each domain draws, by idle state.
    idle_uw: Vec<Vec<u64>>,
    package_cores: Vec<Vec<u16>>,
}

impl Core {
    /// Counts what the core's threads did until `now`, including threads that have left their states meanwhile. If
    /// `now` lies before the time already counted, it adds nothing.
    fn advance(&mut self, now: Ps, idle_uw: &[Vec<u64>]) {
        loop {
            let next = self.threads.iter_mut().filter(|thread| thread.leaves <= now).min_by_key(|thread| thread.leaves);
            let Some(leaves) = next.map(|thread| thread.leaves) else { break };
            self.count(leaves, idle_uw);
            self.threads.iter_mut().filter(|thread| thread.leaves == leaves).for_each(|thread| *thread = EXECUTES);
        }
        self.count(now, idle_uw);
    }

    /// Counts the time until `now`, in which the threads did what they do now.
    fn count(&mut self, now: Ps, idle_uw: &[Vec<u64>]) {
        let time = now.saturating_sub(self.since);
        if time == Ps::ZERO {
            return;
        }
        self.since = now;
        match self.state() {
            None => self.execute(time),
            Some(state) => {
                self.energy.idle[state] += time;
                self.energy.idle_aj[state] += u128::from(time.0) * u128::from(idle_uw[self.domain][state]);
            }
        }
    }

    /// The shallowest of its threads' states; `None`, which sorts before all states, if one of them executes.
    fn state(&self) -> Option<usize> {
        self.threads.iter().map(|thread| thread.state).min().flatten().map(usize::from)
    }

    /// What the core will have done by `end` if nothing else happens to it; what was already counted beyond `end` is
    /// included.
    fn until(&self, end: Ps, idle_uw: &[Vec<u64>]) -> CoreDraw {
        let mut draw = CoreDraw {
            executing: self.energy.executing.iter().fold(Ps::ZERO, |sum, (_, time)| sum + time),
            executing_aj: self.energy.executing_aj,
            idle_aj: self.energy.idle_aj.iter().sum(),
            awake: self.threads.iter().any(|thread| thread.state.is_none() || thread.leaves < Ps::NEVER),
        };
        let mut from = self.since;
        while from < end {
            let leave = self.threads.iter().map(|thread| thread.leaves).filter(|&leaves| leaves > from).min();
            let to = leave.unwrap_or(end).min(end);
            let executes = |thread: &&Thread| thread.state.is_none() || thread.leaves <= from;
            let time = to - from;
            match self.threads.iter().find(executes) {
                Some(_) => {
                    draw.executing += time;
                    draw.executing_aj += u128::from(time.0) * u128::from(self.executing_uw);
                }
                None => {
                    let state = self.state().expect("none of them executes");
                    draw.idle_aj += u128::from(time.0) * u128::from(idle_uw[self.domain][state]);
                }
            }
            from = to;
        }
        draw
    }

    fn execute(&mut self, time: Ps) {
        self.energy.executing.add(self.khz, time);
        self.energy.executing_aj += u128::from(time.0) * u128::from(self.executing_uw);
    }
}

impl Meter {
    /// The meter of a machine that has just booted, with its CPUs awake and with these idle states. `khz`: each CPU's
    /// frequency.
    ///
    /// # Panics
    /// If `power` leaves out a CPU, or an idle state that does not poll.
    pub fn new(topology: &Topology, power: Power, states: &[IdleState], khz: impl Fn(CpuId) -> u32) -> Meter {
        let idle_uw = |domain: &DomainPower| {
            let of = |state: &IdleState| match state.polling {
                true => 0,
                false => domain.idle_uw(&state.name).unwrap_or_else(|| panic!("no power of {}", state.name)),
            };
            states.iter().map(of).collect()
        };
        let core = |core: &crate::topology::Part| {
            let cpu = core.cpus.iter().next().expect("a core has a thread");
            let domain = power.domains.iter().position(|domain| domain.cpus.contains(cpu));
            let domain = domain.unwrap_or_else(|| panic!("no power of CPU {cpu}"));
            let khz = khz(cpu);
            let energy = CoreEnergy {
                idle: vec![Ps::ZERO; states.len()],
                idle_aj: vec![0; states.len()],
                ..CoreEnergy::default()
            };
            Core {
                domain,
                threads: core.cpus.iter().map(|_| EXECUTES).collect(),
                khz,
                executing_uw: power.domains[domain].executing_uw(khz),
                since: Ps::ZERO,
                energy,
            }
        };
        let thread = |core: u16, cpu: CpuId| {
            let threads = &topology.cores()[usize::from(core)].cpus;
            threads.iter().take_while(|&other| other != cpu).count() as u16
        };
        let package_cores = |package: &crate::topology::Part| {
            let of = |core: &crate::topology::Part| core.cpus.intersects(&package.cpus);
            (0..topology.cores().len()).filter(|&core| of(&topology.cores()[core])).map(|core| core as u16).collect()
        };
        Meter {
            cores: topology.cores().iter().map(core).collect(),
            of_cpu: topology.cpus().map(|(cpu, of)| (of.core, thread(of.core, cpu))).collect(),
            idle_uw: power.domains.iter().map(idle_uw).collect(),
            package_cores: topology.packages().iter().map(package_cores).collect(),
            power,
        }
    }

    /// `cpu` has entered an idle state that does not poll.
    pub fn idle(&mut self, cpu: CpuId, now: Ps, state: usize) {
        let (core, thread) = self.of_cpu[cpu.index()];
        let core = &mut self.cores[usize::from(core)];
        core.advance(now, &self.idle_uw);
        core.threads[usize::from(thread)] = Thread { state: Some(state as u8), leaves: Ps::NEVER };
    }

    /// `cpu` executes again from `first` on, or does so already.
    pub fn resume(&mut self, cpu: CpuId, first: Ps) {
        let (core, thread) = self.of_cpu[cpu.index()];
        let thread = &mut self.cores[usize::from(core)].threads[usize::from(thread)];
        // Polling is not a state here, so a CPU that polls may be on the way out of another state.
        if thread.state.is_some() && thread.leaves == Ps::NEVER {
            thread.leaves = first;
        }
    }

    /// From `from` to `to` `cpu` executed something that comes from outside the simulation, while it stays in its idle
    /// state.
    pub fn executed_beside(&mut self, cpu: CpuId, from: Ps, to: Ps) {
        let (core, thread) = self.of_cpu[cpu.index()];
        let core = &mut self.cores[usize::from(core)];
        core.advance(from, &self.idle_uw);
        let state = std::mem::replace(&mut core.threads[usize::from(thread)], EXECUTES);
        core.advance(to, &self.idle_uw);
        core.threads[usize::from(thread)] = state;
    }

    /// `cpu` runs at `khz` from `now` on.
    pub fn clock(&mut self, cpu: CpuId, now: Ps, khz: u32) {
        let (core, _) = self.of_cpu[cpu.index()];
        let core = &mut self.cores[usize::from(core)];
        if core.khz != khz {
            core.advance(now, &self.idle_uw);
            core.khz = khz;
            core.executing_uw = self.power.domains[core.domain].executing_uw(khz);
        }
    }

    pub fn power(&self) -> &Power {
        &self.power
    }

    /// Each core's energy up to `end`, in the order of the topology.
    pub fn cores(&self, end: Ps) -> Vec<CoreEnergy> {
        let until = |core: &Core| {
            let mut core = core.clone();
            core.advance(end, &self.idle_uw);
            core.energy
        };
        self.cores.iter().map(until).collect()
    }

    /// The cores of a package, and what each has done by `end`, in the order of the topology. It only looks: nothing is
    /// counted.
    pub fn package_cores(&self, package: usize, end: Ps) -> impl Iterator<Item = (usize, CoreDraw)> + '_ {
        let of = move |&core: &u16| (usize::from(core), self.cores[usize::from(core)].until(end, &self.idle_uw));
        self.package_cores[package].iter().map(of)
    }

    /// The energy of a package beside its cores up to `end`. It was in its own idle state for `slept`.
    pub fn package_own_aj(&self, end: Ps, slept: Ps) -> u128 {
        let (awake_uw, asleep_uw) = self.power.package;
        let own = |time: Ps, uw: u64| u128::from(time.0) * u128::from(uw);
        own(end.saturating_sub(slept), awake_uw) + own(slept.min(end), asleep_uw)
    }

    /// What a package draws while it sleeps (if it can) with all its cores in the deepest idle state.
    pub fn package_idle_uw(&self, package: usize) -> u64 {
        let deepest = |&core: &u16| self.idle_uw[self.cores[usize::from(core)].domain].last().copied().unwrap_or(0);
        self.package_cores[package].iter().map(deepest).sum::<u64>() + self.power.package.1
    }

    /// What a package draws with all its cores executing at their highest frequencies.
    pub fn package_most_uw(&self, package: usize) -> u64 {
        let most = |&core: &u16| self.power.domains[self.cores[usize::from(core)].domain].executing_uw(u32::MAX);
        self.package_cores[package].iter().map(most).sum::<u64>() + self.power.package.0
    }

    /// All energy up to `end`. `asleep`: each package's residency in its own idle state; empty where packages have
    /// none.
    pub fn read(&self, end: Ps, asleep: &[PackageResidency]) -> EnergyUse {
        let cores = self.cores(end);
        let states = self.idle_uw.first().map_or(0, Vec::len);
        let empty = |domain: &DomainPower| DomainEnergy {
            cpus: domain.cpus.clone(),
            executing_aj: 0,
            idle_aj: vec![0; states],
        };
        let mut domains: Vec<DomainEnergy> = self.power.domains.iter().map(empty).collect();
        for (core, energy) in self.cores.iter().zip(&cores) {
            let domain = &mut domains[core.domain];
            domain.executing_aj += energy.executing_aj;
            domain.idle_aj.iter_mut().zip(&energy.idle_aj).for_each(|(sum, aj)| *sum += aj);
        }
        let package = |(number, of): (usize, &Vec<u16>)| {
            let slept = asleep.get(number).map_or(Ps::ZERO, |package| package.idle);
            PackageEnergy {
                cores_aj: of.iter().map(|&core| cores[usize::from(core)].total_aj()).sum(),
                own_aj: self.package_own_aj(end, slept),
            }
        };
        EnergyUse { duration: end, domains, packages: self.package_cores.iter().enumerate().map(package).collect() }
    }
}

/// The energy of a domain's cores, in attojoules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DomainEnergy {
    pub cpus: CpuMask,
    pub executing_aj: u128,
    /// By idle state, from the shallowest; polling counts as executing.
    pub idle_aj: Vec<u128>,
}

impl DomainEnergy {
    pub fn total_aj(&self) -> u128 {
        self.executing_aj + self.idle_aj.iter().sum::<u128>()
    }
}

/// The energy of a package, in attojoules: of its cores, and of the package beside them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PackageEnergy {
    pub cores_aj: u128,
    pub own_aj: u128,
}

/// The energy that a machine took in this time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnergyUse {
    pub duration: Ps,
    pub domains: Vec<DomainEnergy>,
    pub packages: Vec<PackageEnergy>,
}

impl EnergyUse {
    pub fn total_aj(&self) -> u128 {
        self.packages.iter().map(|package| package.cores_aj + package.own_aj).sum()
    }

    /// The energy taken since `before` was read.
    pub fn since(&self, before: &EnergyUse) -> EnergyUse {
        let mut rest = self.clone();
        rest.duration = self.duration.saturating_sub(before.duration);
        for (domain, before) in rest.domains.iter_mut().zip(&before.domains) {
            domain.executing_aj -= before.executing_aj;
            domain.idle_aj.iter_mut().zip(&before.idle_aj).for_each(|(aj, before)| *aj -= before);
        }
        for (package, before) in rest.packages.iter_mut().zip(&before.packages) {
            package.cores_aj -= before.cores_aj;
            package.own_aj -= before.own_aj;
        }
        rest
    }
}

#[cfg(test)]
mod tests;
