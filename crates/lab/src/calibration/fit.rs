//! Figures that cannot be measured alone. For each of them, a small experiment is simulated again and again, until the
//! simulation takes as long as the experiment did. No benchmark is among these experiments: in one a task writes and
//! reads a pipe alone; in the other two threads use semaphores, on one CPU and on two.

use super::write::machine_file;
use super::{Measurement, Observed};
use crate::experiment::{Draft, resolve_arm};
use crate::machines::Machine;
use crate::mistake::{Location, Mistake};
use crate::programs::{RT_APP, SCRIPT};
use crate::run::{Wanted, run};
use crate::setup::{FileSetup, KernelSetup, MachineSetup, Setup, WorkloadSetup};
use machine::description::is_hz;
use machine::topology::Distance;

/// The fitted figures, with the bounds that the measurements allow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Fitted {
    /// Cycles per instruction of `[paths]` and the idle loop, and of `[os]`.
    pub paths: Range,
    pub os: Range,
    /// Nanoseconds from a wakeup to the first instruction of a CPU that has just gone idle.
    pub wake: Range,
    /// Cycles of sending an interrupt.
    pub send: Range,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Range {
    pub value: f64,
    pub low: f64,
    pub high: f64,
}

impl Range {
    pub fn exactly(value: f64) -> Range {
        Range { value, low: value, high: value }
    }
}

/// A measured figure, and its simulation with the finished file.
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    pub name: String,
    pub unit: &'static str,
    pub measured: f64,
    pub simulated: f64,
    /// Whether the figure steered the fit; otherwise it is a prediction.
    pub fitted: bool,
}

/// Bounds of cycles per instruction, as machine files have them.
const PER_INSTRUCTION: (f64, f64) = (0.02, 50.0);
/// Bounds of leaving idle, in nanoseconds.
const WAKE: (f64, f64) = (1.0, 5_000_000.0);
/// How much is simulated for a fit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Effort {
    /// Rounds of a shorter and a longer run; the difference of their times gives the time of a round.
    pub rounds: [u64; 2],
    /// How often the prices that depend on each other are fitted.
    pub passes: usize,
}

impl Effort {
    pub const FULL: Effort = Effort { rounds: [100, 1_100], passes: 4 };
}

/// Why there is no figure.
pub(super) enum Stop {
    Mistake(Mistake),
    Interrupted,
}

impl From<Mistake> for Stop {
    fn from(mistake: Mistake) -> Stop {
        Stop::Mistake(mistake)
    }
}

/// What all simulations of a fit have in common.
#[derive(Clone, Copy)]
pub(super) struct Bench<'a> {
    pub observed: &'a Observed,
    pub arm: &'a str,
    pub effort: Effort,
    /// Polled now and then; true ends the fit.
    pub interrupted: &'a dyn Fn() -> bool,
}

/// The most steps of a search; it seldom takes six.
const STEPS: usize = 30;
/// A search ends when it is within this share of the target.
const NEAR: f64 = 0.001;
/// The simulation must come within this share of the measurement, far less than the measurement's own spread. If it
/// does not, a note says so.
pub(super) const FITTED: f64 = 0.01;

pub(super) fn fit(bench: Bench, notes: &mut Vec<String>) -> Result<Fitted, Stop> {
    let observed = bench.observed;
    let gigahertz = observed.gigahertz()?;
    let mut fitted = Fitted {
        paths: Range::exactly(0.5),
        os: Range::exactly(1.5),
        wake: Range::exactly(1_000.0),
        send: send(observed, gigahertz),
    };
    let pipe = observed.needed("pipe_self")?;
    let same = observed.needed("futex_pair.same")?;
    fitted.os = solve(pipe, PER_INSTRUCTION, "instructions of [os]", notes, |value| {
        simulate(bench, &Fitted { os: Range::exactly(value), ..fitted }, Experiment::PipeSelf)
    })?;
    // Each of the two prices has a small part in the other's experiment, so both are fitted again.
    let mut doubts = Vec::new();
    for _ in 0..bench.effort.passes {
        doubts.clear();
        fitted.paths = solve(same, PER_INSTRUCTION, "instructions of [paths]", &mut doubts, |value| {
            simulate(bench, &Fitted { paths: Range::exactly(value), ..fitted }, Experiment::Pair([0, 0]))
        })?;
        if let Some((pair, cpus)) = crossing(observed) {
            fitted.wake = solve(pair, WAKE, "leaving idle", &mut doubts, |value| {
                simulate(bench, &Fitted { wake: Range::exactly(value), ..fitted }, Experiment::Pair(cpus))
            })?;
        }
    }
    notes.extend(doubts);
    Ok(fitted)
}

/// The cost of the waker's call, less what the call would do on its own CPU. Half a round on one CPU contains that, but
/// a sleep and a switch too.
fn send(observed: &Observed, gigahertz: f64) -> Range {
    let whole = observed.measurement("wake_call.100");
    let Some((whole, half)) = whole.zip(observed.measurement("futex_pair.same")) else { return Range::exactly(400.0) };
    let cycles = |ns: f64| (ns * gigahertz).max(200.0);
    let high = cycles(whole.value);
    Range { value: cycles(whole.value - half.value / 2.0), low: cycles(whole.low - half.value / 2.0), high }.ordered()
}

impl Range {
    fn ordered(self) -> Range {
        Range { value: self.value, low: self.low.min(self.value), high: self.high.max(self.value) }
    }
}

/// The pair of CPUs that stands for wakeups across CPUs, and two CPUs of the topology at the same distance. `host`
/// measures wakeups after idleness with the same pair (`usual`).
pub(super) fn crossing(observed: &Observed) -> Option<(&Measurement, [usize; 2])> {
    let topology = &observed.topology;
    // Skips the distance from a CPU to itself, which is measured too.
    let mut distances = topology.distances().split_off(1);
    distances.sort_by_key(|distance| match distance {
        Distance::Llc => 0,
        Distance::Cluster => 1,
        Distance::Smt => usize::MAX,
        other => other.index(),
    });
    distances.into_iter().find_map(|distance| {
        let pair = observed.measurement(&format!("futex_pair.{}", distance.name()))?;
        let cpus = || topology.cpus().map(|(cpu, _)| cpu);
        let mut pairs = cpus().flat_map(|a| cpus().map(move |b| [a, b]));
        let as_near = pairs.find(|&[a, b]| topology.distance(a, b) == distance)?;
        Some((pair, as_near.map(units::CpuId::index)))
    })
}

/// Finds the value between `bounds` at which `simulated`, which grows with it, equals the measurement, and the values for
/// the ends of the measurement's range. If there is none, it returns the nearest value that it tried, and adds a note.
fn solve(
    measured: &Measurement,
    bounds: (f64, f64),
    what: &str,
    notes: &mut Vec<String>,
    simulated: impl Fn(f64) -> Result<f64, Stop>,
) -> Result<Range, Stop> {
    let found = search(measured.value, bounds, &simulated)?;
    notes.extend(found.doubt(measured, bounds, what));
    let at = |target: f64| search(target, bounds, &simulated).map(|found| found.value);
    Ok(Range { value: found.value, low: at(measured.low)?, high: at(measured.high)? }.ordered())
}

/// Where a search ended.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Found {
    value: f64,
    /// The simulated time at that value.
    simulated: f64,
    end: End,
}

/// Why a search ended.
#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    Reached,
    /// The target lies outside the bounds.
    Beyond,
    /// All steps were used, and none came near.
    OutOfSteps,
}

impl Found {
    /// The note for a search that did not reach the measurement.
    fn doubt(&self, measured: &Measurement, bounds: (f64, f64), what: &str) -> Option<String> {
        if (self.simulated / measured.value - 1.0).abs() <= FITTED {
            return None;
        }
        let tried = match self.end {
            End::Reached => return None,
            End::Beyond => format!("no price of {what} within {} and {} makes", bounds.0, bounds.1),
            End::OutOfSteps => format!("none of {STEPS} prices of {what} that were tried makes"),
        };
        let Measurement { name, value, .. } = measured;
        Some(format!(
            "{name}: {tried} the simulation take the measured {value:.0} ns; the nearest was taken, {:.4}, with which it takes {:.0} ns",
            self.value, self.simulated
        ))
    }
}

/// False position (the Illinois rule). It suits times, which grow with prices, and nearly in proportion.
fn search<E>(target: f64, bounds: (f64, f64), simulated: impl Fn(f64) -> Result<f64, E>) -> Result<Found, E> {
    let off = |value: f64| Ok::<f64, E>(simulated(value)? - target);
    let ((mut low, mut high), mut below, mut above) = (bounds, off(bounds.0)?, off(bounds.1)?);
    let ended = |(value, off): (f64, f64), end: End| Found { value, simulated: target + off, end };
    let mut nearest = if below.abs() <= above.abs() { (low, below) } else { (high, above) };
    if below >= 0.0 || above <= 0.0 {
        return Ok(ended(nearest, End::Beyond));
    }
    let mut last_was_low = None;
    for _ in 0..STEPS {
        let value = low - below * (high - low) / (above - below);
        let found = off(value)?;
        if found.abs() < nearest.1.abs() {
            nearest = (value, found);
        }
        if found.abs() <= NEAR * target {
            return Ok(ended(nearest, End::Reached));
        }
        let is_low = found < 0.0;
        // A bound that stays put for the second time counts only half.
        let share = if last_was_low == Some(is_low) { 0.5 } else { 1.0 };
        if is_low {
            (low, below, above) = (value, found, above * share);
        } else {
            (high, above, below) = (value, found, below * share);
        }
        last_was_low = Some(is_low);
    }
    Ok(ended(nearest, End::OutOfSteps))
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Experiment {
    /// A task that writes a byte to a pipe and reads it.
    PipeSelf,
    /// Two threads that wake each other, on these CPUs.
    Pair([usize; 2]),
    /// Two tasks on one CPU that yield to each other.
    Yield,
}

impl Experiment {
    fn workload(self, rounds: u64) -> WorkloadSetup {
        let (name, text) = match self {
            Experiment::PipeSelf => (SCRIPT, format!("task a cpus=0: {rounds} x (write p; read p)\n")),
            Experiment::Yield => {
                let steps = format!("until 1ms; {rounds} x (yield)");
                (SCRIPT, format!("task a cpus=0 process=p: {steps}\ntask b cpus=0 process=p: {steps}\n"))
            }
            Experiment::Pair([here, there]) => {
                let text = format!(
                    "{{\"tasks\": {{\
                     \"a\": {{\"loop\": {rounds}, \"cpus\": [{here}], \"sem_post\": \"ask\", \"sem_wait\": \"answer\"}},\
                     \"b\": {{\"loop\": {rounds}, \"cpus\": [{there}], \"sem_wait\": \"ask\", \"sem_post\": \"answer\"}}}}}}"
                );
                (RT_APP, text)
            }
        };
        let file = FileSetup { path: "calibration".to_string(), text: text.into() };
        WorkloadSetup { name: name.to_string(), parameters: Default::default(), file: Some(file), profile: Vec::new() }
    }
}

/// Nanoseconds of one round.
fn simulate(bench: Bench, fitted: &Fitted, experiment: Experiment) -> Result<f64, Stop> {
    let Bench { observed, arm, effort: Effort { rounds, .. }, interrupted } = bench;
    let at = Location::of("calibrate");
    let text = machine_file(observed, fitted, arm, None)?;
    let machine = Machine::parse(&text, "the machine being calibrated").unwrap_or_else(|mistake| panic!("{mistake}"));
    let draft = Draft::default().arm_option(arm);
    let hertz = observed.host.hz.filter(|&hertz| is_hz(hertz)).unwrap_or(250);
    let resolved = resolve_arm(&draft, machine.description.topology().nr_cpus(), hertz as u32)?;
    let took = |rounds: u64| {
        let setup = Setup {
            machine: MachineSetup::of(&machine),
            kernel: KernelSetup::of(&resolved),
            workload: experiment.workload(rounds),
            seed: 1,
            costs: true,
            time_limit_ns: 60_000_000_000,
            timeline: Vec::new(),
        };
        let run = run(&setup, Wanted { interrupted, ..Wanted::default() }, &at)?.ok_or(Stop::Interrupted)?;
        Ok::<u64, Stop>(run.outcome.simulated_ns - run.start.0)
    };
    let [short, long] = [took(rounds[0])?, took(rounds[1])?];
    Ok(long.saturating_sub(short) as f64 / (rounds[1] - rounds[0]) as f64)
}

/// All measurements that can be simulated, with the fitted prices.
pub(super) fn checks(bench: Bench, fitted: &Fitted) -> Result<Vec<Check>, Stop> {
    let observed = bench.observed;
    let mut checks = Vec::new();
    let mut add = |measured: &Measurement, experiment: Experiment, share: f64, is_fitted: bool| {
        let simulated = simulate(bench, fitted, experiment)? * share;
        let name = measured.name.clone();
        checks.push(Check { name, unit: "ns", measured: measured.value, simulated, fitted: is_fitted });
        Ok::<(), Stop>(())
    };
    add(observed.needed("pipe_self")?, Experiment::PipeSelf, 1.0, true)?;
    add(observed.needed("futex_pair.same")?, Experiment::Pair([0, 0]), 1.0, true)?;
    if let Some((pair, cpus)) = crossing(observed) {
        add(pair, Experiment::Pair(cpus), 1.0, true)?;
    }
    if let Some(switch) = observed.measurement("switch.yield") {
        // A round is one turn of each of the two.
        add(switch, Experiment::Yield, 0.5, false)?;
    }
    Ok(checks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_finds_what_grows() {
        let simulated = |value: f64| Ok::<f64, ()>(100.0 + 30.0 * value);
        let Found { value, end, .. } = search(400.0, (0.02, 50.0), simulated).unwrap();
        assert!((value - 10.0).abs() < 0.02, "{value}");
        assert_eq!(end, End::Reached);
        for (target, nearest) in [(50.0, 0.02), (5_000.0, 50.0)] {
            let Found { value, end, .. } = search(target, (0.02, 50.0), simulated).unwrap();
            assert_eq!((value, end), (nearest, End::Beyond));
        }
        // The search also handles steps and bends.
        let bent = |value: f64| Ok::<f64, ()>((value * value).floor());
        let Found { value, end, .. } = search(400.0, (0.02, 50.0), bent).unwrap();
        assert!((19.9..20.1).contains(&value), "{value}");
        assert_eq!(end, End::Reached);
    }

    #[test]
    fn a_range_is_what_the_ends_of_the_measurement_take() {
        // Up to 10 a unit takes 1 ns, from there on 90 ns.
        let bent = |value: f64| Ok::<f64, Stop>(100.0 + value + 89.0 * (value - 10.0).max(0.0));
        let (name, unit, ran) = ("pipe_self".to_string(), "ns".to_string(), String::new());
        let measured = Measurement { name, unit, value: 110.0, low: 105.0, high: 200.0, bursts: 9, ran };
        let mut notes = Vec::new();
        let Ok(Range { value, low, high }) = solve(&measured, (0.02, 50.0), "x", &mut notes, bent) else {
            panic!("nobody interrupts")
        };
        assert!(
            (value - 10.0).abs() < 0.2 && (low - 5.0).abs() < 0.2 && (high - 11.0).abs() < 0.2,
            "{value} {low} {high}"
        );
        assert!(notes.is_empty(), "{notes:?}");
    }

    #[test]
    fn a_search_out_of_steps_has_not_reached_its_target() {
        // At 10 the value jumps past the target.
        let leap = |value: f64| Ok::<f64, ()>(if value < 10.0 { 100.0 + value } else { 1_000.0 + value });
        let bounds = (0.02, 50.0);
        let found = search(400.0, bounds, leap).unwrap();
        assert_eq!(found.end, End::OutOfSteps);
        // The nearest value lies just below the jump; the search halves its way to it.
        assert!((9.9..10.0).contains(&found.value) && (109.9..110.0).contains(&found.simulated), "{found:?}");
        let (name, unit, ran) = ("pipe_self".to_string(), "ns".to_string(), String::new());
        let measured = Measurement { name, unit, value: 400.0, low: 390.0, high: 410.0, bursts: 9, ran };
        let said = found.doubt(&measured, bounds, "instructions of [os]").expect("a doubt");
        let begin = "pipe_self: none of 30 prices of instructions of [os] that were tried makes the simulation take the measured 400 ns; the nearest";
        assert!(said.starts_with(begin) && said.ends_with("with which it takes 110 ns"), "{said}");
        // A simulation's steps are seldom as small as the search's tolerance; a value this near counts as fitted.
        let step = |value: f64| Ok::<f64, ()>(if value < 10.0 { 396.5 } else { 403.5 });
        let found = search(400.0, bounds, step).unwrap();
        assert_eq!((found.end, found.doubt(&measured, bounds, "x")), (End::OutOfSteps, None), "{found:?}");
    }
}
