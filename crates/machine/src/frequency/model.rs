//! What a machine's hardware does with frequencies, as plain integers: `[frequency]` of its machine file.

use crate::description::{Description, Figure, NEEDED_BY_DRIVERS};
use crate::topology::Topology;
use units::{CpuId, CpuMask, Ps};

/// Which CPUs always run at one frequency, the highest that any of them asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sharing {
    Core,
    /// CPUs of one performance domain, else of one kind, else of one cluster.
    Cluster,
    Package,
    Machine,
}

/// Hardware that chooses frequencies by itself: Intel's HWP, AMD's CPPC in active mode.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Autonomous {
    /// Over so long it looks at how busy a CPU was.
    pub window: Ps,
    /// How long what it saw counts: the time constant of a moving mean; no shorter than a window.
    pub history: Ps,
    /// From the lowest to the highest frequency under full load.
    pub ramp: Ps,
    /// It chooses no lower frequency by itself.
    pub efficient_khz: u32,
    /// The share of time, in permille, for which a CPU is to be busy at the frequency chosen, at the middle preference.
    pub target: u32,
}

/// What the kernel takes for full speed when it tells load tracking how fast a CPU is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FullSpeed {
    /// Intel's: turbo with four cores, in a package of fewer with one; the base frequency where turbo is off.
    FourCores,
    /// AMD's: halfway from the base to the highest frequency, whether boost is on or off.
    Halfway,
    Highest,
}

/// The hardware. Frequencies in kHz.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Model {
    pub sharing: Sharing,
    pub autonomous: Option<Autonomous>,
    pub min_khz: u32,
    pub base_khz: u32,
    /// The highest frequency by active cores of a package, from one on; never rising.
    pub turbo_khz: Vec<u32>,
    /// Power or temperature allow no more than this for long.
    pub cap_khz: Option<u32>,
    /// Distance between two frequencies that can be asked for.
    pub step_khz: u32,
    /// From a request to the new frequency.
    pub transition: Ps,
    /// The least time between two changes of one domain.
    pub hold_off: Ps,
    /// What firmware declares a change to take (`cpuinfo_transition_latency`).
    pub declared_latency_us: u32,
    /// A core whose threads are in idle states that take as long to leave leaves its share of turbo to others.
    pub turbo_exit_latency_us: u32,
    /// Where the machine file says so; otherwise it goes by the driver.
    pub full_speed: Option<FullSpeed>,
    /// CPUs of a kind whose highest frequency is another one.
    pub kinds: Vec<(CpuMask, u32)>,
}

const PER_KHZ: u64 = 1_000;

fn khz(hertz: u64) -> u32 {
    u32::try_from(hertz / PER_KHZ).expect("at most 20 GHz, as the loader has checked")
}

/// Kinds of cores whose clocks show other frequencies than the fastest one's: their CPUs, and the highest.
fn kinds(machine: &Description) -> Vec<(CpuMask, u32)> {
    let highest = |name: &str| machine.figure(&format!("kind.{name}.max")).map(|highest| khz(highest.hertz()));
    let kinds = machine.topology().kinds().iter();
    kinds.filter_map(|kind| Some((kind.cpus.clone(), highest(&kind.name)?))).collect()
}

/// What the clock of `cpu` shows where those of the fastest kind, whose highest is `full`, show `khz`.
fn shown(kinds: &[(CpuMask, u32)], full: u32, cpu: CpuId, khz: u32) -> u32 {
    let Some((_, highest)) = kinds.iter().find(|(cpus, _)| cpus.contains(cpu)) else { return khz };
    (u64::from(khz) * u64::from(*highest) / u64::from(full)) as u32
}

/// What the clocks of a machine show, each CPU's, while its frequencies are not simulated.
pub fn fixed_khz(machine: &Description) -> Vec<u32> {
    let (kinds, fixed) = (kinds(machine), khz(machine.fixed_hertz()));
    let full = khz(machine.turbo_hertz(1).max(machine.base_hertz()));
    machine.topology().cpus().map(|(cpu, _)| shown(&kinds, full, cpu, fixed)).collect()
}

impl Autonomous {
    /// How a machine's hardware chooses, where it is let; otherwise the name of a figure that its file lacks.
    ///
    /// # Errors
    /// As said.
    pub fn of(machine: &Description) -> Result<Autonomous, &'static str> {
        let figure = |name: &'static str| machine.figure(name).ok_or(name);
        Ok(Autonomous {
            window: figure("frequency.hwp_window")?.time(),
            history: machine.figure("frequency.hwp_history").map_or(Ps::ZERO, Figure::time),
            efficient_khz: machine.figure("frequency.hwp_efficient").map_or(0, |figure| khz(figure.hertz())),
            ramp: figure("frequency.hwp_ramp")?.time(),
            target: figure("frequency.hwp_target")?.permille() as u32,
        })
    }
}

impl Model {
    /// The frequencies of a machine; otherwise the name of a figure that its file lacks.
    ///
    /// # Errors
    /// As said.
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
        let cores = machine.topology().packages().iter().map(|package| cores_of(machine.topology(), &package.cpus));
        let most = cores.max().unwrap_or(machine.topology().cores().len()).max(1) as u32;
        Ok(Model {
            sharing: match control {
                "machine" => Sharing::Machine,
                "package" => Sharing::Package,
                "cluster" => Sharing::Cluster,
                _ => Sharing::Core,
            },
            autonomous,
            min_khz: khz(machine.min_hertz()),
            base_khz: khz(machine.base_hertz()),
            turbo_khz: (1..=most).map(|active| khz(machine.turbo_hertz(active))).collect(),
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
            kinds: kinds(machine),
        })
    }

    /// What the clock of `cpu` shows where those of the fastest kind show `khz`: all kinds are governed on one scale.
    pub fn shown_khz(&self, cpu: CpuId, khz: u32) -> u32 {
        shown(&self.kinds, self.max_khz(), cpu, khz)
    }

    /// The highest of all frequencies.
    pub fn max_khz(&self) -> u32 {
        self.turbo_khz.first().copied().unwrap_or(self.base_khz).max(self.base_khz)
    }

    /// The highest frequency while so many cores of a package are active.
    pub fn limit_khz(&self, active_cores: u32, turbo: bool) -> u32 {
        let index = (active_cores.max(1) as usize).min(self.turbo_khz.len()) - 1;
        let by_cores = if turbo { self.turbo_khz[index] } else { self.base_khz };
        by_cores.min(self.cap_khz.unwrap_or(u32::MAX)).max(self.min_khz)
    }

    /// The number of the domain that a CPU is in.
    pub(super) fn domain(&self, topology: &Topology, cpu: CpuId) -> usize {
        let of = topology.cpu(cpu);
        match self.sharing {
            Sharing::Core => usize::from(of.core),
            Sharing::Cluster => {
                let domains = topology.energy_model().map_or(&[][..], |model| &model.domains);
                let domain = domains.iter().position(|domain| domain.cpus.contains(cpu));
                let kind = || topology.kinds().iter().position(|kind| kind.cpus.contains(cpu));
                domain.or_else(kind).unwrap_or(usize::from(of.cluster))
            }
            Sharing::Package => usize::from(of.package),
            Sharing::Machine => 0,
        }
    }
}

fn cores_of(topology: &Topology, cpus: &units::CpuMask) -> usize {
    topology.cores().iter().filter(|core| core.cpus.intersects(cpus)).count()
}
