//! How a machine's hardware handles frequencies, as plain integers: `[frequency]` of its machine file.

use crate::description::{Description, Figure, NEEDED_BY_DRIVERS, is_frequency_of_kind};
use crate::topology::{CpuKind, Topology};
use sched::cpu_topology::SCHED_CAPACITY_SCALE;
use sched::topology::EnergyAware;
use units::{CpuId, CpuMask, Ps};

/// Which CPUs always run at one frequency, the highest for which any of them asks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sharing {
    Core,
    /// CPUs of one performance domain; without those, of one kind; without those, of one cluster.
    Cluster,
    Package,
    Machine,
}

/// How hardware that chooses by itself follows a core that is busy without a pause.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Burst {
    /// From the beginning to the first change.
    pub still: Ps,
    /// From there to the highest frequency.
    pub ramp: Ps,
}

impl Burst {
    /// `whole`: from the beginning to the highest frequency. `still`: the share of that in which nothing changes, in
    /// permille.
    fn new(whole: Ps, still: u64) -> Burst {
        let still = Ps(whole.0 * still / 1000);
        Burst { still, ramp: whole - still }
    }
}

/// Hardware that chooses frequencies by itself: Intel's HWP, AMD's CPPC in active mode.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Autonomous {
    /// The interval over which it measures how busy a CPU was.
    pub window: Ps,
    /// How long a measurement counts: the time constant of a moving mean; at least a window.
    pub history: Ps,
    /// From the lowest to the highest frequency under full load.
    pub ramp: Ps,
    /// Where it is known how long a core that was idle takes.
    pub burst: Option<Burst>,
    /// By itself it chooses no lower frequency.
    pub efficient_khz: u32,
    /// The share of time, in permille, for which a CPU is to be busy at the chosen frequency, at the middle preference.
    pub target: u32,
}

/// What the kernel takes for full speed when it tells load tracking how fast a CPU is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FullSpeed {
    /// Intel: the turbo frequency with four active cores, or with one in a package of fewer cores; the base frequency
    /// if turbo is off.
    FourCores,
    /// AMD: halfway from the base to the highest frequency, whether boost is on or off.
    Halfway,
    Highest,
}

/// An operating point: a frequency in a driver's table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OperatingPoint {
    pub khz: u32,
    /// CPUFREQ_INEFFICIENT_FREQ: a faster point takes no more energy for the same work.
    pub inefficient: bool,
}

/// The frequencies of CPUs of one kind, in kHz, as their clocks show them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Band {
    /// Empty in a machine's first band, which has all CPUs of no other band.
    pub cpus: CpuMask,
    /// Bands of the same number count their active cores together. 0 is for CPUs whose kind has no frequencies of its
    /// own.
    pub kind: usize,
    pub min_khz: u32,
    pub base_khz: u32,
    /// The highest frequency by the number of active cores in a package, from one on; never rising.
    pub turbo_khz: Vec<u32>,
    /// Ascending; empty if the machine file lists none.
    pub points: Vec<OperatingPoint>,
}

impl Band {
    /// The highest of all frequencies.
    pub fn max_khz(&self) -> u32 {
        self.turbo_khz.first().copied().unwrap_or(self.base_khz).max(self.base_khz)
    }
}

/// The hardware. Frequencies in kHz.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Model {
    pub sharing: Sharing,
    pub autonomous: Option<Autonomous>,
    /// The band of the fastest CPUs comes first.
    pub bands: Vec<Band>,
    /// The highest frequency that power or temperature allow for long.
    pub cap_khz: Option<u32>,
    /// The distance between two frequencies that can be asked for, where no table lists them.
    pub step_khz: u32,
    /// From a request until the new frequency.
    pub transition: Ps,
    /// The least time between two changes of one domain.
    pub hold_off: Ps,
    /// The duration of a change that the firmware declares (`cpuinfo_transition_latency`).
    pub declared_latency_us: u32,
    /// A core leaves its turbo share to others while all its threads are in idle states with at least this exit
    /// latency.
    pub turbo_exit_latency_us: u32,
    /// If the machine file says so; otherwise it follows from the driver.
    pub full_speed: Option<FullSpeed>,
    /// Whether firmware lets the driver switch in the middle of the scheduler, if the machine file says so.
    pub fast_switch: Option<bool>,
}

const PER_KHZ: u64 = 1_000;

fn khz(hertz: u64) -> u32 {
    u32::try_from(hertz / PER_KHZ).expect("at most 20 GHz, as the loader has checked")
}

/// The bands of a machine: one for all CPUs, and one for each kind with frequencies of its own and for each domain of
/// `[energy]`.
fn bands(machine: &Description) -> Vec<Band> {
    let topology = machine.topology();
    let cores = topology.packages().iter().map(|package| cores_of(topology, &package.cpus));
    let most = cores.max().unwrap_or(topology.cores().len()).max(1) as u32;
    let whole = Band {
        cpus: CpuMask::new(topology.nr_cpus()),
        kind: 0,
        min_khz: khz(machine.min_hertz()),
        base_khz: khz(machine.base_hertz()),
        turbo_khz: (1..=most).map(|active| khz(machine.turbo_hertz(active))).collect(),
        points: Vec::new(),
    };
    let mut bands = vec![whole.clone()];
    // For each CPU the number of its kind, if that has frequencies, and of its domain of [energy], if it has one.
    let mut parts: Vec<((usize, usize), CpuMask)> = Vec::new();
    for (cpu, _) in topology.cpus() {
        let kind = topology.kinds().iter().position(|kind| kind.cpus.contains(cpu) && has_frequencies(machine, kind));
        let domain = machine.energy_domains().iter().position(|domain| domain.cpus.contains(cpu));
        let part = (kind.map_or(0, |kind| kind + 1), domain.map_or(0, |domain| domain + 1));
        match parts.iter_mut().find(|(known, _)| *known == part) {
            _ if part == (0, 0) => {}
            Some((_, cpus)) => cpus.set(cpu),
            None => parts.push((part, CpuMask::single(cpu))),
        }
    }
    for ((kind, domain), cpus) in parts {
        let name = kind.checked_sub(1).map(|kind| topology.kinds()[kind].name.as_str());
        let points = domain.checked_sub(1).map_or(Vec::new(), |domain| points(machine, domain));
        bands.push(band(machine, &whole, (kind, name), points, cpus));
    }
    bands
}

/// The band of one kind; `whole` is the machine's.
fn band(
    machine: &Description,
    whole: &Band,
    (kind, name): (usize, Option<&str>),
    points: Vec<OperatingPoint>,
    cpus: CpuMask,
) -> Band {
    let topology = machine.topology();
    let own = |key: &str| Some(khz(machine.figure(&format!("kind.{}.{key}", name?))?.hertz()));
    let slower = cpus.iter().next().is_some_and(|cpu| topology.cpu(cpu).speed < SCHED_CAPACITY_SCALE);
    let ends = points.last().filter(|_| slower).map(|point| point.khz);
    let max = own("max").or(ends).unwrap_or(whole.max_khz());
    let turbo = |cores: u32| own(&format!("turbo_{cores}"));
    let has_turbo = (1..=255).any(|cores| turbo(cores).is_some());
    let limit = |(index, &of_machine): (usize, &u32)| match index + 1 {
        1 => turbo(1).unwrap_or(max),
        _ if !has_turbo => of_machine.min(max),
        cores => bin(cores as u32, turbo).unwrap_or(max).min(max),
    };
    let min = own("min").or(points.first().map(|point| point.khz)).unwrap_or(whole.min_khz);
    Band {
        cpus,
        kind,
        min_khz: min.min(max),
        base_khz: own("base").unwrap_or(whole.base_khz).min(max),
        turbo_khz: whole.turbo_khz.iter().enumerate().map(limit).collect(),
        points,
    }
}

/// What a turbo register's bins give for this many active cores: the bin with the least number that is at least
/// `cores`, or else the last bin.
pub(crate) fn bin<T>(cores: u32, of: impl Fn(u32) -> Option<T>) -> Option<T> {
    (cores..=255).find_map(&of).or_else(|| (1..cores).rev().find_map(&of))
}

fn has_frequencies(machine: &Description, kind: &CpuKind) -> bool {
    let prefix = format!("kind.{}.", kind.name);
    let of = |name: &str| name.strip_prefix(&prefix).is_some_and(is_frequency_of_kind);
    machine.figures().any(|(name, _)| of(name))
}

/// The operating points of an energy domain.
fn points(machine: &Description, domain: usize) -> Vec<OperatingPoint> {
    let point = |name: String| {
        let hertz = machine.figure(&format!("{name}.frequency"))?.hertz();
        Some(OperatingPoint { khz: khz(hertz), inefficient: false })
    };
    machine.energy_domains()[domain].state_names().filter_map(point).collect()
}

/// Each CPU's frequency, as its clock shows it, while frequencies are not simulated. The machine file's figure is for
/// the fastest CPUs; a smaller kind has less, in proportion to the highest frequency that it reaches.
pub fn fixed_khz(machine: &Description) -> Vec<u32> {
    let (bands, fixed) = (bands(machine), u64::from(khz(machine.fixed_hertz())));
    let full = u64::from(bands[0].max_khz());
    let shown = |band: &Band| (fixed * u64::from(band.max_khz()) / full) as u32;
    machine.topology().cpus().map(|(cpu, _)| shown(&bands[band_of(&bands, cpu)])).collect()
}

/// The number of the band that a CPU is in.
fn band_of(bands: &[Band], cpu: CpuId) -> usize {
    bands.iter().skip(1).position(|band| band.cpus.contains(cpu)).map_or(0, |number| number + 1)
}

impl Autonomous {
    /// The rule by which a machine's autonomous hardware chooses.
    ///
    /// # Errors
    /// The name of a figure that the machine file lacks.
    pub fn of(machine: &Description) -> Result<Autonomous, &'static str> {
        let figure = |name: &'static str| machine.figure(name).ok_or(name);
        let burst = machine.figure("frequency.hwp_burst").zip(machine.figure("frequency.hwp_burst_still"));
        Ok(Autonomous {
            window: figure("frequency.hwp_window")?.time(),
            history: machine.figure("frequency.hwp_history").map_or(Ps::ZERO, Figure::time),
            efficient_khz: machine.figure("frequency.hwp_efficient").map_or(0, |figure| khz(figure.hertz())),
            ramp: figure("frequency.hwp_ramp")?.time(),
            burst: burst.map(|(whole, still)| Burst::new(whole.time(), still.permille())),
            target: figure("frequency.hwp_target")?.permille() as u32,
        })
    }
}

impl Model {
    /// The frequencies of a machine.
    ///
    /// # Errors
    /// The name of a figure that the machine file lacks.
    pub fn of(machine: &Description) -> Result<Model, &'static str> {
        let control = machine.fact("frequency.control").map_or("core", |fact| fact.value.as_str());
        let figure = |name: &'static str| machine.figure(name).ok_or(name);
        for &name in NEEDED_BY_DRIVERS {
            figure(name)?;
        }
        let us = |time: Ps| u32::try_from(time.0 / 1_000_000).expect("at most a second, as the loader has checked");
        let autonomous = match control {
            "hardware" => Some(Autonomous::of(machine)?),
            _ => None,
        };
        Ok(Model {
            sharing: match control {
                "machine" => Sharing::Machine,
                "package" => Sharing::Package,
                "cluster" => Sharing::Cluster,
                _ => Sharing::Core,
            },
            autonomous,
            bands: bands(machine),
            cap_khz: machine.figure("frequency.cap").map(|figure| khz(figure.hertz())),
            step_khz: khz(figure("frequency.step")?.hertz()),
            transition: figure("frequency.transition_latency")?.time(),
            hold_off: figure("frequency.hold_off")?.time(),
            declared_latency_us: us(figure("frequency.declared_latency").map(Figure::time)?),
            turbo_exit_latency_us: us(figure("frequency.turbo_exit_latency").map(Figure::time)?),
            full_speed: machine.fact("frequency.full_speed").map(|fact| match fact.value.as_str() {
                "four-cores" => FullSpeed::FourCores,
                "halfway" => FullSpeed::Halfway,
                _ => FullSpeed::Highest,
            }),
            fast_switch: machine.fact("frequency.fast_switch").map(|fact| fact.value == "yes"),
        })
    }

    /// energy_model.c: em_cpufreq_update_efficiencies(): marks the operating points that the kernel's energy model finds inefficient.
    pub fn em_cpufreq_update_efficiencies(&mut self, topology: &Topology, rule: EnergyAware) {
        let Some(model) = topology.energy_model() else { return };
        for band in &mut self.bands {
            let told = model.domains.iter().find(|domain| domain.cpus.intersects(&band.cpus));
            let Some(told) = told.filter(|told| told.states.len() == band.points.len()) else { continue };
            let scale_cpu = band.cpus.iter().next().map_or(SCHED_CAPACITY_SCALE, |cpu| topology.cpu(cpu).capacity);
            let inefficient = told.inefficient(rule, scale_cpu.into());
            band.points.iter_mut().zip(inefficient).for_each(|(point, marked)| point.inefficient = marked);
        }
    }

    /// The highest of all frequencies of the fastest CPUs.
    pub fn max_khz(&self) -> u32 {
        self.bands[0].max_khz()
    }

    /// The number of the band that a CPU is in.
    pub fn band_of(&self, cpu: CpuId) -> usize {
        band_of(&self.bands, cpu)
    }

    /// The highest frequency of a band while this many cores of a package are active.
    pub fn limit_khz(&self, band: usize, active_cores: u32, turbo: bool) -> u32 {
        let band = &self.bands[band];
        let index = (active_cores.max(1) as usize).min(band.turbo_khz.len()) - 1;
        let by_cores = if turbo { band.turbo_khz[index] } else { band.base_khz };
        by_cores.min(self.cap_khz.unwrap_or(u32::MAX)).max(band.min_khz)
    }

    /// The number of the domain to which a CPU belongs. Performance domains, kinds and clusters are numbered
    /// separately.
    pub(super) fn domain(&self, topology: &Topology, cpu: CpuId) -> usize {
        let of = topology.cpu(cpu);
        match self.sharing {
            Sharing::Core => usize::from(of.core),
            Sharing::Cluster => {
                let domains = topology.energy_model().map_or(&[][..], |model| &model.domains);
                let kinds = topology.kinds();
                let domain = domains.iter().position(|domain| domain.cpus.contains(cpu));
                let kind = || kinds.iter().position(|kind| kind.cpus.contains(cpu)).map(|kind| domains.len() + kind);
                domain.or_else(kind).unwrap_or(domains.len() + kinds.len() + usize::from(of.cluster))
            }
            Sharing::Package => usize::from(of.package),
            Sharing::Machine => 0,
        }
    }
}

fn cores_of(topology: &Topology, cpus: &units::CpuMask) -> usize {
    topology.cores().iter().filter(|core| core.cpus.intersects(cpus)).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bin_is_of_the_least_number_of_cores_that_is_given_and_not_below() {
        let given = |cores: u32| [(2, 30), (4, 28), (8, 25)].iter().find(|bin| bin.0 == cores).map(|bin| bin.1);
        assert_eq!([1, 2, 3, 4, 5, 8].map(|cores| bin(cores, given)), [30, 30, 28, 28, 25, 25].map(Some));
        assert_eq!(bin(9, given), Some(25), "beyond all of them the last one");
        assert_eq!(bin(3, |_| None::<u32>), None);
    }
}
