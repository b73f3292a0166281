//! `calibrate`: measures this computer's prices, and writes its machine file.

use crate::arguments::CalibrateArguments;
use crate::execute::Patience;
use crate::failure::Failure;
use crate::files::Disk;
use crate::measure::{facts, starter};
use crate::output::{NewFile, print, say};
use crate::progress::plain_bar;
use host::computer::{Computer, now_seconds, utc, wait_for_quiet};
use host::probe::{Bench, Effort, Findings, Nearness, PROBES, Placement, placements};
use host::starter::Starter;
use lab::calibration::{Calibration, Measurement, Observed, calibrate as make};
use lab::experiment::file_name;
use lab::machines::{Distance, Files, Topology, host_topology};
use lab::mistake::Written;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};
use units::CpuId;

/// We wait while others use more than this share of the CPUs' time, in thousandths.
const QUIET: u64 = 150;
/// From this share on, the figures should not be trusted without a second look.
const LOUD: u64 = 400;
/// Everything should take less than five minutes: after this time the rest is done with less effort.
const LONG: Duration = Duration::from_secs(200);

/// `fairground calibrate`.
pub fn calibrate(arguments: &CalibrateArguments) -> Result<(), Failure> {
    // The name is checked before minutes are spent.
    let name = name(&arguments.name)?;
    let file = arguments
        .out
        .as_ref()
        .map(|out| NewFile::named(Path::new(out)).map_err(|error| Failure::of_writing(error, out)));
    let file = file.transpose()?;
    let computer = Computer::this()?;
    let topology = host_topology(&|path| Disk.sysfs(path))?;
    let starter = starter()?;
    let patience = Patience::watch_beside(&starter);
    let pairs = placements(&computer.allowed, nearness(&topology));
    let since = Instant::now();
    let waiting = if arguments.quick { Duration::from_secs(5) } else { Duration::from_secs(30) };
    let mut findings = Findings::default();
    let busy = quiet(&computer, waiting, &patience);
    if busy > LOUD {
        findings.unseen.push(format!(
            "an idle computer: others used {} % of the CPUs; figures of two CPUs at once, and of idle ones, are doubtful",
            busy / 10
        ));
    }
    if let Some(quota) = computer.quota.filter(|&quota| quota < computer.allowed.len() as u64 * 1_000) {
        findings.unseen.push(format!("a whole computer: a cgroup's quota leaves {quota} thousandths of a CPU"));
    }
    findings.unseen.extend(computer.own_scheduler().map(|why| format!("the scheduler: {why}")));
    findings.append(measure(
        arguments,
        &Subject { computer: &computer, pairs: &pairs, starter: &starter },
        &patience,
        since,
    )?);
    let observed = observed(name, &computer, topology, &pairs, findings);
    if !arguments.quiet {
        observed.unseen.iter().for_each(|unseen| say(&format!("not seen: {unseen}")));
    }
    let calibration = make(&observed, &|| patience.is_over())?.ok_or_else(interrupted)?;
    if !arguments.quiet {
        calibration.notes.iter().for_each(|note| say(&format!("note: {note}")));
    }
    match arguments.out.as_ref().zip(file) {
        None => print(&calibration.text),
        Some((out, mut file)) => {
            let written = file.write_all(calibration.text.as_bytes()).and_then(|()| file.keep());
            written.map_err(|error| Failure::of_writing(error, out))?;
            if !arguments.quiet {
                say(&format!("machine file: {out}; took {:.0} s", since.elapsed().as_secs_f64()));
            }
            print(&table(&observed, &calibration))
        }
    }
}

/// The machine's name. Results are named after it, so it must be usable as a part of a file name.
fn name(given: &str) -> Result<&str, Failure> {
    let plain = file_name(given);
    if plain == given {
        return Ok(given);
    }
    let written = Written::option("--name", given);
    let like = if given.chars().any(|c| c.is_ascii_alphanumeric()) { &plain } else { "this" };
    let expected = format!("1 to 60 letters (a to z), digits, -, . and _, such as `{like}`");
    Err(written.mistake(format!("the machine's name {}", written.quoted()), expected).into())
}

/// How near two CPUs are, by the system's numbers. A CPU that the topology does not mention shares nothing.
fn nearness(topology: &Topology) -> impl Fn(usize, usize) -> Nearness {
    let known: BTreeMap<usize, CpuId> = topology.cpus().map(|(cpu, it)| (it.os_index as usize, cpu)).collect();
    move |a, b| match known.get(&a).zip(known.get(&b)).map(|(&a, &b)| topology.distance(a, b)) {
        Some(Distance::Same | Distance::Smt) => Nearness::Smt,
        Some(Distance::Cluster) => Nearness::Cluster,
        Some(Distance::Llc) => Nearness::Llc,
        Some(Distance::Package) => Nearness::Package,
        Some(Distance::Remote(hops)) => Nearness::Remote(hops),
        None => Nearness::Remote(1),
    }
}

/// Waits for others to finish, but still hears Ctrl-C. Returns how much of the CPUs they use at the end, in
/// thousandths.
fn quiet(computer: &Computer, waiting: Duration, patience: &Patience) -> u64 {
    let since = Instant::now();
    loop {
        let busy = wait_for_quiet(&computer.allowed, QUIET, Duration::from_millis(500)).unwrap_or(0);
        if busy <= QUIET || since.elapsed() >= waiting || patience.is_over() {
            return busy;
        }
    }
}

fn interrupted() -> Failure {
    Failure::Mistake("interrupted: nothing is written".to_string())
}

/// The computer to measure, and how this program is started as another process.
struct Subject<'a> {
    computer: &'a Computer,
    pairs: &'a [Placement],
    starter: &'a Starter,
}

fn measure(
    arguments: &CalibrateArguments,
    subject: &Subject,
    patience: &Patience,
    since: Instant,
) -> Result<Findings, Failure> {
    let bar = plain_bar("{msg}  {elapsed} passed", PROBES.len(), arguments.quiet);
    let mut findings = Findings::default();
    for probe in PROBES {
        if patience.is_over() {
            bar.finish_and_clear();
            return Err(interrupted());
        }
        bar.set_message(probe.name);
        // No thread moves the bar: a thread would share this process's file table, which makes the measured calls
        // slower.
        bar.tick();
        let short = arguments.quick || since.elapsed() > LONG;
        let effort = if short { Effort::QUICK } else { Effort::FULL };
        let Subject { computer, pairs: placements, starter } = *subject;
        let bench = Bench { computer, placements, effort, starter };
        // A terminal's Ctrl-C also ends the processes of a probe, which then reports that they failed.
        let found = (probe.run)(&bench).map_err(|error| if patience.is_over() { interrupted() } else { error.into() });
        findings.append(found?);
        bar.inc(1);
    }
    bar.finish_and_clear();
    Ok(findings)
}

fn observed(name: &str, computer: &Computer, topology: Topology, pairs: &[Placement], findings: Findings) -> Observed {
    let measurement = |figure: host::probe::Figure| Measurement {
        name: figure.name,
        unit: figure.unit.to_string(),
        value: figure.spread.value,
        low: figure.spread.low,
        high: figure.spread.high,
        bursts: figure.spread.bursts,
        ran: figure.ran,
    };
    let state = |state: &host::computer::IdleState| (state.name.clone(), state.latency_us, state.residency_us);
    let line = |pair: &Placement| (pair.nearness.name(), format!("line.{}-{}", pair.cpus[0], pair.cpus[1]));
    Observed {
        name: name.to_string(),
        host: facts(computer),
        topology,
        when: utc(now_seconds()),
        idle_states: computer.idle_states.iter().map(state).collect(),
        frequency: computer.frequency.clone(),
        measurements: findings.figures.into_iter().map(measurement).collect(),
        lines: pairs.iter().map(line).collect(),
        unseen: findings.unseen,
    }
}

/// The measurements, and the simulation's values for them.
fn table(observed: &Observed, calibration: &Calibration) -> String {
    let mut text = String::new();
    let width = observed.measurements.iter().map(|it| it.name.len()).max().unwrap_or(0);
    // Writing to a String cannot fail.
    let units = observed.measurements.iter().map(|it| it.unit.len()).max().unwrap_or(0).max("unit".len());
    let _ = writeln!(
        text,
        "{:<width$} {:>14}{:>14}{:>14}  {:<units$}  what was run",
        "measured", "value", "least", "most", "unit"
    );
    for it in &observed.measurements {
        let figures = format!("{:>14.3}{:>14.3}{:>14.3}", it.value, it.low, it.high);
        let _ = writeln!(text, "{:<width$} {figures}  {:<units$}  {}", it.name, it.unit, it.ran);
    }
    let _ = writeln!(text, "\n{:<width$} {:>14}{:>14}  (as {})", "simulated", "measured", "simulated", calibration.arm);
    for check in &calibration.checks {
        let kind = if check.fitted { "fitted" } else { "predicted" };
        let _ = writeln!(
            text,
            "{:<width$} {:>14.0}{:>14.0}  {} {kind} {:+.1}%",
            check.name,
            check.measured,
            check.simulated,
            check.unit,
            (check.simulated / check.measured - 1.0) * 100.0
        );
    }
    text
}
