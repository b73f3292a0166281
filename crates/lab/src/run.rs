//! One run: a setup goes in, an outcome comes out, and listeners hear its events.
//!
//! The seed decides what chance decides on a real machine: on which CPU the first task starts, how long the machine
//! idles before (up to [`LONGEST_START`], so that the phase of the tick varies), and in which slice of the last level
//! cache each line lies.

use crate::cpufreq;
use crate::deadlock;
use crate::energy::RunEnergy;
use crate::groups;
use crate::hash::sha256;
use crate::idle;
use crate::kernels::Build;
use crate::lines::{self, TouchedLines};
use crate::mistake::Mistake;
use crate::model::Model;
use crate::observed::{Counts, HardwareTotals, Observed, core_frequencies};
use crate::powercap;
use crate::prices::prices;
use crate::proc::{self, Reading};
use crate::record::{Ending, Outcome};
use crate::setup::Setup;
use crate::timeline;
use crate::warning::Warning;
use crate::window::{Window, end_of, executed, profile};
use machine::description::Description;
use machine::energy::Power;
use machine::frequency::{Frequency, Governor, Policy, fixed_khz};
use machine::hardware::Hardware;
use machine::lines::LineTotals;
use machine::power_limit::PowerLimit;
use machine::prices::Prices;
use machine::topology::Location;
use observe::Formats;
use observe::Profile;
use os::Os;
use os::irq::IrqTime;
use sched::arch::Arch;
use sched::core::{Boot, NoLongerAffine, Sched};
use sched::errno::Refusal;
use sched::fair::bandwidth::PeriodTooShort;
use sched::fair::load::FrequencyInvariance;
use sched::profile::ProfileType;
use sched::trace::{Event, Sink};
use sim::engine::{End, LinuxSim};
use std::fmt::Write;
use units::{CpuId, Ns, PerCpu, Prng, Ps};
use workloads::{GroupError, GroupSpec, Groups};

/// The longest idle time before the first task.
pub const LONGEST_START: Ns = Ns::from_ms(10);
/// The simulated time, and the number of events, between two checks for an interruption. Events are limited too,
/// because some take no time.
const SLICE: Ns = Ns::from_ms(1);
const SLICE_EVENTS: u64 = 1 << 21;

/// What a caller wants from a run besides its outcome.
pub struct Wanted<'a> {
    /// Hears every tracepoint.
    pub sink: Option<Box<dyn Sink>>,
    /// Whether the sink hears bare tracepoints too.
    pub bare_tracepoints: bool,
    pub profile: bool,
    /// How the run used its machine; with `profile` also the functions where time went.
    pub observed: bool,
    /// Which functions touch which cache line.
    pub lines: bool,
    pub schedstat: bool,
    /// Files of procfs and debugfs.
    pub reading: Option<Reading>,
    /// The run ends here, unless the workload has ended before.
    pub until: Option<Ns>,
    /// Polled now and then; true ends the run.
    pub interrupted: &'a dyn Fn() -> bool,
}

impl Default for Wanted<'_> {
    fn default() -> Self {
        Wanted {
            sink: None,
            bare_tracepoints: false,
            profile: false,
            observed: false,
            lines: false,
            schedstat: false,
            reading: None,
            until: None,
            interrupted: &|| false,
        }
    }
}

/// A run that has ended.
#[derive(Clone, Debug)]
pub struct Run {
    pub outcome: Outcome,
    pub profile: Option<Profile>,
    pub observed: Option<Observed>,
    pub lines: Option<TouchedLines>,
    /// The text of `/proc/schedstat` at the end.
    pub schedstat: Option<String>,
    /// The texts of the files that were asked for, in their order.
    pub files: Vec<String>,
    pub hardware: HardwareTotals,
    /// Cache lines that moved from the workload's start on, and how long accesses waited for them.
    pub lines_moved: LineTotals,
    /// From the workload's start on; `None` as in [`HardwareTotals::energy`].
    pub energy: Option<RunEnergy>,
    /// The path of each group that has a quota, and its `cpu.stat` at the end.
    pub group_stats: Vec<(String, String)>,
    /// Files that the benchmark itself would write, one for each thread: the thread's number, the file's name and its
    /// text.
    pub logs: Vec<(u32, String, String)>,
    /// When the workload's first task was started, in simulated time.
    pub start: Ns,
}

/// When and on which CPU a setup's first task is started.
pub fn start(setup: &Setup, nr_cpus: usize) -> (Ns, CpuId) {
    let mut chance = Prng::stream(setup.seed, "start", 0);
    let cpu = CpuId::new(chance.below(nr_cpus as u64) as usize);
    (Ns(chance.below(LONGEST_START.0)), cpu)
}

/// Runs a setup. `None` if interrupted. `at` is the setup's place, for the message if it does not fit this program.
///
/// # Errors
/// A setup that names things which do not exist. A setup made from an experiment never does.
pub fn run(setup: &Setup, wanted: Wanted, at: &Location) -> Result<Option<Run>, Mistake> {
    let (machine, prices, model) = prepare(setup, at)?;
    if setup.costs {
        simulate::<true>(setup, &machine, prices, &model, wanted, at)
    } else {
        simulate::<false>(setup, &machine, prices, &model, wanted, at)
    }
}

/// Checks whether this program can run a setup: everything that [`run`] checks before something runs.
///
/// # Errors
/// As of [`run`].
pub fn check(setup: &Setup, at: &Location) -> Result<(), Mistake> {
    let (machine, ..) = prepare(setup, at)?;
    setup.kernel.isolation(machine.topology().nr_cpus(), at)?;
    setup.kernel.build(machine.topology().nr_cpus(), at).map(drop)
}

fn prepare(setup: &Setup, at: &Location) -> Result<(Description, Prices, Model), Mistake> {
    let machine = setup.machine.machine()?.description;
    let prices = if setup.costs { prices(&machine, &setup.kernel.name) } else { Prices::free() };
    // Work given in microseconds is at the highest frequency.
    let ps_per_cycle = match governed(setup, &machine, at)? {
        Some((model, ..)) => 1_000_000_000 / u64::from(model.max_khz()),
        None => prices.ps_per_cycle,
    };
    let model = Model::of(setup, machine.topology().nr_cpus(), ps_per_cycle, &prices, at)?;
    Ok((machine, prices, model))
}

/// The hardware's frequencies, their driver and governor, and the power limit.
type Governed = (machine::frequency::Model, Policy, Option<PowerLimit>);

/// How the frequencies of a run are governed, and what limits its packages' power; `None` if frequencies are fixed.
fn governed(setup: &Setup, machine: &Description, at: &Location) -> Result<Option<Governed>, Mistake> {
    if !setup.costs {
        return Ok(None);
    }
    let (build, ..) = setup.kernel.build(machine.topology().nr_cpus(), at)?;
    let settings = cpufreq::settings_of(&setup.kernel.cpufreq, at);
    let governed = cpufreq::choose(machine, &setup.kernel.name, &build, setup.kernel.hz, &settings)?;
    let limits = cpufreq::settings_of(&setup.kernel.powercap, at);
    let limit = powercap::choose(machine, governed.is_some(), &limits)?;
    Ok(governed.map(|(model, policy)| (model, policy, limit)))
}

/// The task groups that a setup's workload creates.
///
/// # Errors
/// As of [`run`].
pub fn groups(setup: &Setup, at: &Location) -> Result<Vec<GroupSpec>, Mistake> {
    Ok(prepare(setup, at)?.2.instance().groups())
}

/// Applies the timeline of a setup on its machine, without its tasks. Returns the first change that the kernel refuses,
/// and its answer.
///
/// # Errors
/// As of [`run`].
pub fn rehearse(setup: &Setup, at: &Location) -> Result<Option<(usize, Refusal)>, Mistake> {
    let (machine, _, model) = prepare(setup, at)?;
    let (mut sim, build) = boot::<false>(setup, &machine, Prices::free(), &mut Wanted::default(), at)?;
    let mut groups = Groups::default();
    workloads::start_among(model.instance(), &mut sim, &mut groups)
        .map_err(|error| refused_group(setup, &model, &sim.sched, &error))?;
    let changes = timeline::changes(setup, &build, |path| groups.get(path), at)?;
    for (index, (at, change)) in changes.into_iter().enumerate() {
        sim.at(at, change);
        sim.idle(at + Ns(1));
        if let Some(refused) = sim.refused.first() {
            return Ok(Some((index, refused.refusal)));
        }
    }
    Ok(None)
}

/// The kernel's refusal of a workload's group, as a mistake at the place where the user wrote it.
fn refused_group<A: Arch>(setup: &Setup, model: &Model, sched: &Sched<A>, error: &GroupError) -> Mistake {
    let kernel = &setup.kernel.name;
    let path = &model.instance().groups()[error.group].path;
    let input = setup.workload.file.as_ref().map_or(&setup.workload.name, |file| &file.path);
    let place = match model {
        Model::Script(script) => script.place_of(error),
        Model::Registered(_) | Model::RtApp(_) | Model::Trace(_) => None,
    };
    let (line, column) = place.as_ref().map(|&(line, column, _)| (line, column)).unzip();
    let at = Location { input: input.clone(), line, column };
    let Some((_, _, Some(written))) = place else {
        let found = format!("the group {path}, which {kernel} refuses: {}", error.refusal);
        return Mistake::new(&at, found, "groups that it allows");
    };
    groups::refused_file(&at, sched, kernel, path, written, error.refusal)
}

/// Gives the machine the caller's sink, and announces the frequency of each CPU to it.
fn listen<const COSTS: bool>(hardware: &mut Hardware<COSTS>, machine: &Description, wanted: &mut Wanted) {
    let Some(sink) = wanted.sink.take() else { return };
    hardware.set_sink(sink);
    if wanted.bare_tracepoints {
        hardware.trace_bare();
    }
    let fixed = if COSTS && hardware.frequency().is_none() { fixed_khz(machine) } else { Vec::new() };
    for cpu in (0..machine.topology().nr_cpus()).map(CpuId::new) {
        let khz = fixed.get(cpu.index()).copied().unwrap_or_else(|| hardware.khz(cpu));
        hardware.trace(cpu, &Event::CpuFrequency { khz });
    }
}

/// Lets frequencies move if they are governed, computes energy if powers are known, and limits power if there is a
/// limit. Returns the governor.
fn power<const COSTS: bool>(
    hardware: &mut Hardware<COSTS>,
    machine: &Description,
    governed: Option<Governed>,
) -> Option<Governor> {
    let (governor, limit) = match governed {
        Some((model, policy, limit)) => {
            let governor = policy.governor;
            hardware.set_frequency(Frequency::new(machine.topology(), model, policy));
            (Some(governor), limit)
        }
        None => (None, None),
    };
    if let Some(power) = Power::of(machine) {
        hardware.set_power(power);
    }
    if let Some(limit) = limit {
        hardware.set_power_limit(limit);
    }
    governor
}

/// A machine that has just booted.
fn boot<const COSTS: bool>(
    setup: &Setup,
    machine: &Description,
    prices: Prices,
    wanted: &mut Wanted,
    at: &Location,
) -> Result<(LinuxSim<COSTS>, Build), Mistake> {
    let topology = machine.topology();
    let nr_cpus = topology.nr_cpus();
    let (build, features, sysctl) = setup.kernel.build(nr_cpus, at)?;
    let (nohz_full, isolated) = setup.kernel.isolation(nr_cpus, at)?;
    let idle_rules = idle::rules(setup, machine, &build.idle);
    let mut hardware = Hardware::<COSTS>::new(topology.clone(), prices, build.sched.layout(), idle_rules, setup.seed);
    hardware.disk = Some(machine.disk());
    hardware.java = Some(machine.java());
    let polls = !COSTS || hardware.prices.idle_states.first().is_some_and(|state| state.polling);
    hardware.set_idle_options(&idle::options(setup, machine, &build.idle, polls, at)?);
    let governor = power(&mut hardware, machine, governed(setup, machine, at)?);
    // This must come before the scheduler is created, because the scheduler announces its own tasks.
    listen(&mut hardware, machine, wanted);
    let mut cpu_topology = topology.cpu_topology();
    let llcs = machine.llc_bytes();
    cpu_topology.llc_bytes = PerCpu::from_fn(nr_cpus, |cpu| llcs[usize::from(topology.cpu(cpu).llc)]);
    if let (Some(governor), Some(energy)) = (governor, &mut cpu_topology.energy_model) {
        energy.schedutil = governor == Governor::Schedutil;
    }
    let mut kernel = build.sched;
    // init_freq_invariance() of these versions looks for Intel's processors among x86's; ARM's drivers tell by themselves.
    if kernel.load.frequency == FrequencyInvariance::ToldByIntel && machine.vendor() == Some("amd") {
        kernel.load.frequency = FrequencyInvariance::Unknown;
    }
    let boot = Boot {
        kernel,
        topology: cpu_topology,
        hz: setup.kernel.hz,
        features,
        sysctl,
        isolated: isolated.clone(),
        domain_parameters: setup.kernel.domain_parameters(),
    };
    let mut sched = Sched::new(hardware, boot);
    follow(&mut sched, governor);
    if let Some(value) = setup.kernel.parameters.get("psi") {
        sched.setup_psi(value == "1").expect("a kernel that knows the parameter");
    }
    sched.tick_nohz_full_setup(&nohz_full);
    let profiled = match setup.kernel.parameters.get("profile").map(String::as_str) {
        Some("sleep") => Some(ProfileType::Sleep),
        Some("schedule") => Some(ProfileType::Sched),
        _ => None,
    };
    if let Some(kind) = profiled {
        sched.profile_setup(kind).map_err(|refused| {
            Mistake::new(at, format!("the parameter profile: {refused}"), "a record of this version")
        })?;
    }
    let mut os = Os::new(build.os, setup.kernel.hz);
    os.irq.rules = build.irq;
    os.fs_rules = build.fs;
    if build.irq.time == IrqTime::On {
        sched.arch.set_irq_accounting();
    }
    os.set_seed(setup.seed);
    let mut sim = LinuxSim::<COSTS>::new(sched, os);
    sim.start_cpufreq_threads(timeline::leaves_samples(setup));
    Ok((sim, build))
}

/// Reports utilization to the governor, if it wants that.
fn follow<const COSTS: bool>(sched: &mut Sched<Hardware<COSTS>>, governor: Option<Governor>) {
    let Some(frequency) = sched.arch.frequency() else { return };
    if governor == Some(Governor::Schedutil) {
        let policies = frequency.cpufreq_policies();
        sched.sugov_start(policies);
    } else if frequency.wants_updates() {
        sched.cpufreq_add_update_util_hook();
    }
}

/// Starts the kernel's own threads, if they are asked for. A benchmark in haste starts the same ones itself.
fn make_noise<const COSTS: bool>(sim: &mut LinuxSim<COSTS>, setup: &Setup, model: &Model) {
    let noise = setup.kernel.parameters.get("noise").is_some_and(|value| value == "1");
    if noise && model.instance().haste().is_none() {
        sim.start_noise(setup.seed, None);
    }
}

fn simulate<const COSTS: bool>(
    setup: &Setup,
    machine: &Description,
    prices: Prices,
    model: &Model,
    mut wanted: Wanted,
    at: &Location,
) -> Result<Option<Run>, Mistake> {
    let (mut sim, build) = boot::<COSTS>(setup, machine, prices, &mut wanted, at)?;
    make_noise(&mut sim, setup, model);
    let (start, cpu) = start(setup, sim.sched.nr_cpus());
    // The process that starts the workload has init's affinity, which excludes isolated CPUs.
    let cpus = || sim.sched.cpu_online_mask.iter().filter(|&other| !sim.sched.isolated.contains(other));
    let cpu = cpus().find(|&other| other >= cpu).or_else(|| cpus().next()).expect("a CPU is not isolated");
    sim.idle(start);
    let mut window = Window::of(&setup.workload.profile, &setup.kernel.name);
    let profiled = wanted.profile || window.is_some();
    book(&mut sim, profiled, wanted.lines, start);
    let before = wanted.observed.then(|| HardwareTotals::of(&sim.sched.arch, start.into()));
    let energy_before = sim.sched.arch.energy(start.into());
    let lines_before = sim.sched.arch.line_totals();
    begin(&mut sim, setup, &build, model, (start, cpu), at)?;
    let limit = Ns(setup.time_limit_ns).min(wanted.until.unwrap_or(Ns::MAX));
    let mut reached = start;
    let (mut files, mut reading) = (Vec::new(), wanted.reading.take());
    let end = loop {
        if (wanted.interrupted)() {
            return Ok(None);
        }
        if let Some(wanted) = reading.take_if(|wanted| wanted.at.is_some_and(|at| at <= reached)) {
            files = read_all(&sim, machine, &wanted, build.formats, reached)?;
        }
        let stop = reading.as_ref().and_then(|wanted| wanted.at).unwrap_or(Ns::MAX);
        let until = Ns(reached.0.saturating_add(SLICE.0)).min(limit).min(stop);
        let Some(end) = sim.run_events(until, SLICE_EVENTS) else { continue };
        if let Some(window) = &mut window {
            window.look(&sim.samples, &|| profile(&sim, &setup.kernel.name, start));
        }
        match end {
            End::Time if until < limit => reached = until,
            end => break end,
        }
    };
    let _ = sim.sched.arch.take_sink();
    // Files to be read after the end are not there; by then the tasks are gone too.
    if let Some(wanted) = reading.filter(|wanted| wanted.at.is_none_or(|at| at <= end_of(&sim))) {
        files = read_all(&sim, machine, &wanted, build.formats, end_of(&sim))?;
    }
    let shares = window.map(|window| window.rows(&|| profile(&sim, &setup.kernel.name, start)));
    Ok(Some(Run {
        outcome: outcome(&sim, end, model, warnings(setup, model, &sim, end), shares),
        logs: model.logs(&sim.samples),
        profile: wanted.profile.then(|| profile(&sim, &setup.kernel.name, start)),
        observed: before.map(|before| observed(&sim, setup, start, &before, profiled)),
        lines: wanted
            .lines
            .then(|| lines::touched(&sim, &setup.kernel.name, Ps::from(end_of(&sim)).saturating_sub(start.into()))),
        schedstat: wanted.schedstat.then(|| proc::schedstat(&sim, build.formats, end_of(&sim))),
        files,
        hardware: HardwareTotals::of(&sim.sched.arch, end_of(&sim).into()),
        lines_moved: sim.sched.arch.line_totals().since(&lines_before),
        energy: RunEnergy::since(
            energy_before,
            sim.sched.arch.energy(end_of(&sim).into()),
            model.operations(&sim.samples),
        ),
        group_stats: proc::quota_groups(&sim),
        start,
    }))
}

/// Starts the workload at the given time on the given CPU, and schedules the changes of the administrator.
fn begin<const COSTS: bool>(
    sim: &mut LinuxSim<COSTS>,
    setup: &Setup,
    build: &Build,
    model: &Model,
    (start, cpu): (Ns, CpuId),
    at: &Location,
) -> Result<(), Mistake> {
    let mut groups = Groups::default();
    let tasks = workloads::start_among(model.instance(), sim, &mut groups)
        .map_err(|error| refused_group(setup, model, &sim.sched, &error))?;
    let changes = timeline::changes(setup, build, |path| groups.get(path), at)?;
    for (at, change) in changes {
        sim.at(start + at, change);
    }
    for task in tasks {
        sim.spawn(cpu, task);
    }
    Ok(())
}

/// Books time on kernel functions from `start` on, and records who touches which line.
fn book<const COSTS: bool>(sim: &mut LinuxSim<COSTS>, functions: bool, lines: bool, start: Ns) {
    if functions || lines {
        sim.sched.arch.start_profile(start.into());
    }
    if lines {
        sim.sched.arch.record_lines();
    }
}

fn read_all<const COSTS: bool>(
    sim: &LinuxSim<COSTS>,
    machine: &Description,
    wanted: &Reading,
    formats: Formats,
    now: Ns,
) -> Result<Vec<String>, Mistake> {
    // On x86 this is the nominal frequency, the rate of the time stamp counter, whatever the governor and the clocks.
    let cpu_khz = machine.base_hertz() / 1000;
    wanted.files.iter().map(|file| proc::read(sim, file, formats, cpu_khz, now)).collect()
}

/// What the user should know of a run, unless the caller asked for an early end.
fn warnings<const COSTS: bool>(setup: &Setup, model: &Model, sim: &LinuxSim<COSTS>, end: End) -> Vec<Warning> {
    let whole = end != End::Time || end_of(sim) >= Ns(setup.time_limit_ns);
    let mut warnings = model.warnings(&sim.sched.kernel, &sim.samples, &sim.refused_requests, whole);
    warnings.extend(sim.sched.affinity.no_longer_affine.iter().map(no_longer_affine));
    warnings.extend(sim.sched.periods_too_short().iter().map(|short| period_too_short(short, &sim.sched)));
    warnings.extend(timeline::warnings(setup, sim, whole));
    if matches!(end, End::Deadlock { .. }) {
        let file = setup.workload.file.as_ref().map(|file| file.path.as_str());
        warnings.push(deadlock::told(&sim.sleepers(), file).into());
    }
    warnings
}

/// The line in the kernel's log about a task that lost its last CPU, and what it means.
fn no_longer_affine(NoLongerAffine { comm, cpu, at, times }: &NoLongerAffine) -> Warning {
    let more = if *times > 1 { format!(", and {} more after it", times - 1) } else { String::new() };
    Warning::timed(
        format!("process \"{comm}\" is no longer affine to CPU {cpu} since "),
        *at,
        format!("{more}: no CPU of its affinity was up, so it may use all"),
    )
}

/// The lines in the kernel's log about a group's timer that cannot keep pace with its period, and what the kernel did.
fn period_too_short<A: Arch>(short: &PeriodTooShort, sched: &Sched<A>) -> Warning {
    let PeriodTooShort { tg, at, times, longest } = *short;
    let period = sched.tg[tg].cfs_bandwidth.period / 1000;
    let done = match longest {
        false => format!("kernel doubled period and quota {times} times, the period is {period} us now"),
        true => format!("kernel doubled period and quota up to {period} us, the longest is a second"),
    };
    let group = sched.task_group_path(tg);
    Warning::timed(
        format!("the period of group {group} is too short for its timer since "),
        at,
        format!(": the {done}"),
    )
}

fn outcome<const COSTS: bool>(
    sim: &LinuxSim<COSTS>,
    end: End,
    model: &Model,
    warnings: Vec<Warning>,
    shares: Option<Vec<Vec<u64>>>,
) -> Outcome {
    let end = match end {
        End::Finished => Ending::Finished,
        End::Time => Ending::Time,
        End::Deadlock { sleeping } => Ending::Deadlock { sleeping: sleeping as u64 },
    };
    Outcome {
        end,
        samples: model.samples(&sim.samples).into_iter().chain(shares.into_iter().flatten()).collect(),
        reported: sim.samples.iter().map(|sample| (sample.at.0, sample.series, sample.value)).collect(),
        events: sim.events,
        context_switches: sim.sched.rq.iter().map(|(_, rq)| rq.nr_switches).sum(),
        wakeups: sim.sched.nr_wakeups,
        simulated_ns: end_of(sim).0,
        warnings,
        digest: digest(sim, end),
    }
}

/// A hash over everything that shows a run's decisions: what was reported and when, and each CPU's clock, work and
/// switches.
fn digest<const COSTS: bool>(sim: &LinuxSim<COSTS>, end: Ending) -> String {
    let mut text = format!("{end:?} {} {} {}\n", end_of(sim).0, sim.events, sim.sched.nr_wakeups);
    for sample in &sim.samples {
        let _ = writeln!(text, "{} {} {}", sample.at.0, sample.series, sample.value);
    }
    for (cpu, rq) in sim.sched.rq.iter() {
        let hardware = &sim.sched.arch;
        let residency = hardware.residency(cpu);
        let idle: Vec<String> = residency
            .entries
            .iter()
            .zip(&residency.idle)
            .map(|(entries, time)| format!("{entries}/{}", time.0))
            .collect();
        let (clock, busy) = (hardware.now(cpu).0, sim.busy(cpu).0);
        let _ = writeln!(text, "{cpu} {clock} {busy} {} {}", rq.nr_switches, idle.join(" "));
    }
    for core in core_frequencies(&sim.sched.arch, Ps::from(end_of(sim))) {
        let time: Vec<String> = core.time.iter().map(|(khz, time)| format!("{khz}:{}", time.0)).collect();
        let _ = writeln!(text, "{} {} {}", core.cpu, core.counters.cycles, time.join(" "));
    }
    let lines = sim.sched.arch.line_totals();
    let _ = writeln!(text, "{} {}", lines.requests, lines.took.0);
    sha256(text.as_bytes())
}

/// What was observed from `start` on; `before` is what the machine had counted by then.
fn observed<const COSTS: bool>(
    sim: &LinuxSim<COSTS>,
    setup: &Setup,
    start: Ns,
    before: &HardwareTotals,
    profiled: bool,
) -> Observed {
    let after = HardwareTotals::of(&sim.sched.arch, end_of(sim).into());
    let counts = Counts {
        migrations: sim.sched.nr_migrations,
        wakeups: sim.sched.nr_wakeups,
        context_switches: sim.sched.rq.iter().map(|(_, rq)| rq.nr_switches).sum(),
    };
    let profile = if profiled { executed(sim, &setup.kernel.name, start) } else { Profile::default() };
    Observed::between(before, &after, counts, &profile)
}
