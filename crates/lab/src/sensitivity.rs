//! What a result rests on: each uncertain number of an experiment's machine is moved to the ends of its range, one at a
//! time.
//!
//! A number is uncertain if it is a guess or was fitted, and it is varied if it has a range. Other numbers with a range
//! are varied if the user names them. Every variation meets the same chance as the unvaried machine: run *i* of each
//! has the same seed. If the runs of a variation's first iteration equal the unvaried machine's bit for bit, the number
//! has no influence, and the other iterations are not run.

mod ranking;

pub use ranking::{Move, Moved, Ranking};

use crate::cpufreq::{self, settings_of};
use crate::experiment::{Experiment, Job};
use crate::hash::sha256;
use crate::machines::Machine;
use crate::mistake::{Mistake, Written};
use crate::record::Outcome;
use crate::setup::Setup;
use crate::trace::fits;
use machine::description::{Description, Figure, How, nearest_name};
use machine::topology::Location;
use std::collections::{BTreeMap, BTreeSet};

/// The tick of arms that give no `hz`.
const TICK: &str = "tick.rate";

/// An end of a range.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum End {
    Low,
    High,
}

/// A number of the machine that may have another value.
#[derive(Clone, Debug)]
pub struct Uncertain {
    pub name: String,
    pub figure: Figure,
}

/// The machine with one number at one end of its range.
struct Variation {
    /// Index into [`Plan::uncertain`].
    figure: usize,
    end: End,
    experiment: Experiment,
}

/// One run: on the unvaried machine (`None`), or of a variation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Trial {
    variation: Option<usize>,
    job: Job,
}

pub type Results = BTreeMap<Trial, Outcome>;

/// What is to be run.
pub struct Plan {
    experiment: Experiment,
    pub uncertain: Vec<Uncertain>,
    variations: Vec<Variation>,
    /// Ends of ranges that do not make a valid machine, why not, and which value is run instead.
    pub impossible: Vec<String>,
    /// Uncertain figures whose range is a single value, so that nothing can be said about them.
    pub without_room: Vec<String>,
}

impl Plan {
    /// `patterns` choose among the figures whose range has room (`line.*`); without patterns, all uncertain ones are
    /// chosen. Each end needs a machine, which takes a while if there are hundreds. So `go_on` is told how many figures
    /// are done, and of how many, and may stop; then there is no plan.
    ///
    /// # Errors
    /// If a pattern matches no figure with room.
    pub fn new(
        experiment: Experiment,
        patterns: &[Written],
        go_on: &mut dyn FnMut(usize, usize) -> bool,
    ) -> Result<Option<Plan>, Mistake> {
        let description = experiment.machine.description.clone();
        let uncertain = choose(&experiment, patterns)?;
        let without_room = without_room(&description, patterns);
        let mut plan = Plan { experiment, uncertain, variations: Vec::new(), impossible: Vec::new(), without_room };
        for index in 0..plan.uncertain.len() {
            if !go_on(index, plan.uncertain.len()) {
                return Ok(None);
            }
            for end in [End::Low, End::High] {
                plan.vary(&description, index, end);
            }
        }
        Ok(Some(plan))
    }

    fn vary(&mut self, description: &Description, index: usize, end: End) {
        let Uncertain { name, figure } = &self.uncertain[index];
        let value = if end == End::Low { figure.range.0 } else { figure.range.1 };
        if value == figure.value {
            return;
        }
        let machine = |value: u64| {
            let mut varied = description.clone();
            varied.replace(name, Figure { value, ..figure.clone() });
            // It goes through the text form, so that the runs have setups like any other, and the rules of machine
            // files apply.
            on(Machine::parse(&varied.to_toml(), name)?, &self.experiment, name == TICK)
        };
        let text = |value: u64| format!("{} {}", figure.unit.text(value), figure.unit.name);
        let (experiment, note) = match machine(value) {
            Ok(experiment) => (Some(experiment), None),
            Err(mistake) => {
                let (instead, run) = farthest(figure.value, value, |value| machine(value).ok()).unzip();
                let instead = instead.map_or(String::new(), |instead| format!(", but {}", text(instead)));
                (run, Some(format!("{name} = {} is not run{instead}: found {}", text(value), mistake.found)))
            }
        };
        self.impossible.extend(note);
        self.variations.extend(experiment.map(|experiment| Variation { figure: index, end, experiment }));
    }

    /// The name for its results.
    pub fn name(&self) -> &str {
        &self.experiment.name
    }

    /// Rankings with the same identity may share a folder, whichever figures they vary.
    pub fn identity(&self) -> String {
        sha256(format!("sensitivity of {}", self.experiment.identity()).as_bytes())
    }

    /// Number of variations.
    pub fn variations(&self) -> usize {
        self.variations.len()
    }

    /// The runs that come first: all on the unvaried machine, and the first iteration of each variation.
    pub fn first(&self) -> Vec<Trial> {
        let jobs = self.experiment.jobs();
        let base = jobs.iter().map(|&job| Trial { variation: None, job });
        let first = |variation: usize| {
            let first = jobs.iter().filter(|job| job.iteration == 0);
            first.map(move |&job| Trial { variation: Some(variation), job })
        };
        base.chain((0..self.variations.len()).flat_map(first)).collect()
    }

    /// The runs that come next: the other iterations of the variations that made a difference.
    pub fn rest(&self, results: &Results) -> Vec<Trial> {
        let jobs = self.experiment.jobs();
        let differing = (0..self.variations.len()).filter(|&variation| self.differs(variation, results) == Some(true));
        let others = |variation: usize| {
            let others = jobs.iter().filter(|job| job.iteration > 0);
            others.map(move |&job| Trial { variation: Some(variation), job })
        };
        differing.flat_map(others).collect()
    }

    /// Whether a variation's first iteration differs from the unvaried machine's; `None` while runs that could show it
    /// are missing.
    fn differs(&self, variation: usize, results: &Results) -> Option<bool> {
        let first = self.experiment.jobs().into_iter().filter(|job| job.iteration == 0);
        let digest = |variation, job| results.get(&Trial { variation, job }).map(|outcome| &outcome.digest);
        let compared: Vec<Option<bool>> =
            first.map(|job| Some(digest(Some(variation), job)? != digest(None, job)?)).collect();
        if compared.contains(&Some(true)) {
            return Some(true);
        }
        (!compared.contains(&None)).then_some(false)
    }

    /// The experiment that a trial belongs to.
    pub fn experiment(&self, trial: &Trial) -> &Experiment {
        trial.variation.map_or(&self.experiment, |variation| &self.variations[variation].experiment)
    }

    pub fn setup(&self, trial: &Trial) -> Setup {
        self.experiment(trial).setup(&trial.job)
    }

    pub fn job(&self, trial: &Trial) -> Job {
        trial.job
    }

    /// One line that identifies the run.
    pub fn title(&self, trial: &Trial) -> String {
        let title = self.experiment.title(&trial.job);
        match trial.variation.map(|variation| &self.variations[variation]) {
            None => title,
            Some(of) => {
                let end = if of.end == End::Low { "lowest" } else { "highest" };
                format!("{title}, {} at its {end}", self.uncertain[of.figure].name)
            }
        }
    }
}

/// The farthest value from `value` towards `end` that works, if `end` itself does not: rules between figures allow one
/// of them all values up to some limit. It tries 64ths of the way.
fn farthest<T>(value: u64, end: u64, at: impl Fn(u64) -> Option<T>) -> Option<(u64, T)> {
    const STEPS: u64 = 64;
    let step = |number: u64| {
        let way = (u128::from(value.abs_diff(end)) * u128::from(number) / u128::from(STEPS)) as u64;
        if end < value { value - way } else { value + way }
    };
    let (mut possible, mut not) = (0, STEPS);
    let mut found = None;
    while not - possible > 1 {
        let middle = possible.midpoint(not);
        match at(step(middle)) {
            Some(there) => (possible, found) = (middle, Some((step(middle), there))),
            None => not = middle,
        }
    }
    found.filter(|&(found, _)| found != value)
}

/// The experiment on another machine, whose tick may differ.
fn on(machine: Machine, experiment: &Experiment, ticks: bool) -> Result<Experiment, Mistake> {
    let mut varied = Experiment { machine, ..experiment.clone() };
    if ticks {
        let (description, at) = (&varied.machine.description, Location::of(TICK));
        for arm in varied.arms.iter_mut().filter(|arm| !arm.says_hz) {
            let hz = description.tick_hertz() as u32;
            // What the arm sets itself does not go with the tick.
            if arm.sysctl == arm.sysctl.at_hz(arm.hz) {
                arm.sysctl = arm.sysctl.at_hz(hz);
            }
            arm.hz = hz;
            // A governor looks no more often than the tick allows.
            cpufreq::choose(description, &arm.kernel, &arm.build, arm.hz, &settings_of(&arm.cpufreq, &at))?;
        }
    }
    Ok(varied)
}

/// The figures to vary.
fn choose(experiment: &Experiment, patterns: &[Written]) -> Result<Vec<Uncertain>, Mistake> {
    let description = &experiment.machine.description;
    let told = experiment.arms.iter().all(|arm| arm.says_hz);
    let kernels = experiment.arms.iter().map(|arm| description.unpaid(&arm.kernel));
    let unpaid = kernels.reduce(|all, own| &all & &own).unwrap_or_default();
    let varied = |it: &Uncertain| (!told || it.name != TICK) && !unpaid.contains(it.name.as_str());
    let all: Vec<Uncertain> = with_room(description).filter(varied).collect();
    for pattern in patterns {
        check(pattern, description, &all, told, &unpaid)?;
    }
    let chosen = |it: &Uncertain| match patterns {
        [] => is_uncertain(&it.figure),
        patterns => fits_any(patterns, &it.name),
    };
    Ok(all.into_iter().filter(chosen).collect())
}

fn is_uncertain(figure: &Figure) -> bool {
    matches!(figure.how, How::Guess | How::Fitted)
}

fn fits_any(patterns: &[Written], name: &str) -> bool {
    patterns.iter().any(|pattern| fits(pattern.text.trim(), name))
}

/// The uncertain figures without room in their range, among those that the patterns choose, or among all without
/// patterns.
fn without_room(description: &Description, patterns: &[Written]) -> Vec<String> {
    let fixed = description.figures().filter(|(_, figure)| is_uncertain(figure) && figure.range.0 == figure.range.1);
    let names = fixed.map(|(name, _)| name.to_string());
    names.filter(|name| patterns.is_empty() || fits_any(patterns, name)).collect()
}

/// The numbers of a machine whose range has room.
fn with_room(description: &Description) -> impl Iterator<Item = Uncertain> {
    let figures = description.figures().filter(|(_, figure)| figure.range.0 < figure.range.1);
    figures.map(|(name, figure)| Uncertain { name: name.to_string(), figure: figure.clone() })
}

/// Checks a pattern. `told` says that all arms give their own `hz`, and `unpaid` are figures that none of their kernels
/// pays.
fn check(
    pattern: &Written,
    description: &Description,
    with_room: &[Uncertain],
    told: bool,
    unpaid: &BTreeSet<&str>,
) -> Result<(), Mistake> {
    let text = pattern.text.trim();
    if with_room.iter().any(|figure| fits(text, &figure.name)) {
        return Ok(());
    }
    if told && fits(text, TICK) {
        let found = format!("the figure {text}, which is not varied: all arms have their own hz");
        return Err(pattern.mistake(found, "another figure, or arms without hz"));
    }
    if let Some(name) = unpaid.iter().find(|name| fits(text, name)) {
        let found = format!("the figure {name}, which the kernels of the arms do not pay");
        return Err(pattern.mistake(found, "a figure that one of them pays"));
    }
    if let Some((name, figure)) = description.figures().find(|(name, _)| fits(text, name)) {
        let (how, unit) = (figure.how.name(), figure.unit);
        let range = format!("{} to {} {}", unit.text(figure.range.0), unit.text(figure.range.1), unit.name);
        let found = format!("no figure with room in its range ({name} is {how}, {range}) for {}", pattern.quoted());
        return Err(pattern.mistake(found, "a figure whose lowest and highest value differ"));
    }
    let expected = match nearest_name(text, with_room.iter().map(|figure| figure.name.as_str())) {
        Some(nearest) => format!("`{nearest}`, perhaps"),
        None => {
            "a name such as line.llc, or a pattern such as paths.*: `fairground machines show` lists them".to_string()
        }
    };
    Err(pattern.mistake(format!("no figure of the machine for {}", pattern.quoted()), expected))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::{Draft, Purpose};
    use crate::machines::tests::Table;
    use crate::run::{Wanted, run};

    fn plan(arms: &[&str], patterns: &[&str]) -> Result<Plan, Mistake> {
        let mut draft = Draft::default();
        draft.machine_option("core-i7-3770");
        draft.workload_option("pipetest:batches=2,loops=20").unwrap();
        let arms: Vec<String> = arms.iter().map(|arm| arm.to_string()).collect();
        draft.arm_options(&arms, false).unwrap();
        draft.iterations = Some(Written::option("--iterations", "3"));
        let experiment = draft.resolve(Purpose::Prediction, &Table::default()).unwrap();
        let patterns: Vec<Written> = patterns.iter().map(|text| Written::option("--figures", text)).collect();
        Ok(Plan::new(experiment, &patterns, &mut |_, _| true)?.expect("nobody interrupted"))
    }

    fn run_all(plan: &Plan) -> Results {
        let mut results = Results::new();
        let go = |trial: &Trial| {
            run(&plan.setup(trial), Wanted::default(), &Location::of("a test")).unwrap().unwrap().outcome
        };
        for trial in plan.first() {
            results.insert(trial, go(&trial));
        }
        for trial in plan.rest(&results) {
            results.insert(trial, go(&trial));
        }
        results
    }

    #[test]
    fn what_a_result_rests_on_comes_first() {
        let plan = plan(
            &["before=v4.5-rc1", "after=v4.5-rc1,stats.schedstats=tunable"],
            &["cycles_per_instruction.os", "line.read_stall", "paths.dl_*", "os.pipe_*"],
        )
        .unwrap();
        let ranking = Ranking::new(&plan, &run_all(&plan));
        assert!(!ranking.rows.is_empty() && !ranking.partial);
        let moves = |name: &str| ranking.figures.iter().any(|figure| figure.figure == name);
        assert!(moves("cycles_per_instruction.os") && moves("os.pipe_write"), "{}", ranking.to_text(99));
        // No task of the deadline class runs here.
        assert!(ranking.without_influence.iter().any(|name| name == "paths.dl_server_start"));
        let text = ranking.to_text(1);
        let line = text.lines().find(|line| line.contains(" (") && line.contains(" to ")).expect("a figure");
        assert!(line.starts_with(&ranking.figures[0].figure), "{text}");
        assert!(text.contains("figures more that move something") && text.contains("without influence here"), "{text}");
        let json: serde_json::Value = serde_json::from_str(&ranking.to_json()).unwrap();
        assert_eq!(json["figures"][0]["figure"], ranking.figures[0].figure.as_str());
    }

    #[test]
    fn one_arm_is_ranked_by_its_level() {
        let plan = plan(&["only=v6.12"], &["idle_loop.menu_select", "line.llc"]).unwrap();
        // A published figure is varied if the user asks for it.
        assert_eq!((plan.uncertain.len(), plan.variations()), (2, 4));
        let unasked = choose(&plan.experiment, &[]).unwrap();
        assert!(unasked.len() > 100 && unasked.iter().all(|it| matches!(it.figure.how, How::Guess | How::Fitted)));
        let results = run_all(&plan);
        let ranking = Ranking::new(&plan, &results);
        let line = ranking.figures.iter().find(|figure| figure.figure == "line.llc").expect("a figure that moves it");
        assert_eq!(line.how, plan.uncertain.iter().find(|it| it.name == "line.llc").unwrap().figure.how.name());
        assert!(ranking.figures.iter().all(|figure| figure.low.change.is_none() && figure.high.change.is_none()));
        // A ranking by level has no second column for levels.
        assert!(!ranking.to_text(9).contains("level low"), "{}", ranking.to_text(9));
    }

    #[test]
    fn what_was_not_tried_is_not_without_influence() {
        let plan = plan(&["only=v4.15"], &["paths.dl_server_start", "line.llc", "frequency.turbo_2"]).unwrap();
        let results = run_all(&plan);
        let whole = Ranking::new(&plan, &results);
        assert!(!whole.partial && whole.not_tried.is_empty() && !whole.to_text(9).contains("not tried"));
        assert_eq!((whole.figures.len(), whole.without_influence.len()), (2, 1));
        let name = |of: &Trial| of.variation.map(|it| plan.uncertain[plan.variations[it].figure].name.as_str());
        let only = |keep: &dyn Fn(&Trial) -> bool| -> Results {
            results.iter().filter(|(trial, _)| keep(trial)).map(|(trial, outcome)| (*trial, outcome.clone())).collect()
        };
        let left = |ranking: &Ranking| (ranking.without_influence.len(), ranking.not_tried.len());

        // Only runs on the unvaried machine.
        let partial = Ranking::new(&plan, &only(&|trial| trial.variation.is_none()));
        assert!(partial.partial && partial.figures.is_empty() && left(&partial) == (0, 3), "{partial:?}");
        let text = partial.to_text(9);
        assert!(text.starts_with("PARTIAL") && !text.contains("~ may be noise"), "{text}");
        assert!(text.contains("\nuncertain figures not tried yet: 3; the same command goes on with them\n"), "{text}");
        assert!(text.contains("\nuncertain figures without influence here: 0\n"), "{text}");
        let json: serde_json::Value = serde_json::from_str(&partial.to_json()).unwrap();
        assert_eq!(json["not_tried"].as_array().map(Vec::len), Some(3));

        // If those are missing, no difference can be seen either.
        let partial = Ranking::new(&plan, &only(&|trial| trial.variation.is_some()));
        assert!(partial.figures.is_empty() && left(&partial) == (0, 3), "{partial:?}");

        // If a variation's second iteration is missing, its third is still paired with the unvaried machine's third.
        let second = |trial: &Trial| trial.variation.is_some() && trial.job.iteration == 1;
        let by_third = Ranking::new(&plan, &only(&|trial| trial.job.iteration != 1));
        let partial = Ranking::new(&plan, &only(&|trial| !second(trial)));
        assert!(partial.partial && partial.figures == by_third.figures, "{partial:?}");

        // A figure counts as without influence only if both ends were run. If one end moves something, the figure has a
        // line.
        let partial = Ranking::new(&plan, &only(&|trial| name(trial).is_none_or(|name| name.starts_with("paths."))));
        assert_eq!((left(&partial), partial.figures.len()), ((1, 2), 0));
        let low = |trial: &Trial| trial.variation.is_none_or(|it| plan.variations[it].end == End::Low);
        let partial = Ranking::new(&plan, &only(&low));
        assert!(partial.partial && left(&partial) == (0, 1), "{partial:?}");
        // For one of the figures, the highest value is the machine's own.
        let highs: Vec<(&str, bool)> =
            partial.figures.iter().map(|figure| (figure.figure.as_str(), figure.high.not_tried)).collect();
        assert_eq!(highs, [("frequency.turbo_2", false), ("line.llc", true)]);
        assert!(partial.to_text(9).contains("; ? is not tried yet"), "{}", partial.to_text(9));
    }

    #[test]
    fn what_no_arms_kernel_pays_is_not_varied() {
        let names = |arms: &[&str], pattern: &str| {
            plan(arms, &[pattern]).map(|plan| plan.uncertain.into_iter().map(|it| it.name).collect::<Vec<_>>())
        };
        assert_eq!(names(&["only=v4.5-rc1"], "*paths.schedule").unwrap(), ["paths.schedule"]);
        assert_eq!(names(&["only=v6.12"], "*paths.schedule").unwrap(), ["since.v6.1.paths.schedule"]);
        assert_eq!(names(&["a=v4.5-rc1", "b=v6.1"], "*paths.schedule").unwrap().len(), 2);
        let mistake = names(&["only=v4.5-rc1"], "since.v6.1.paths.schedule").unwrap_err().to_string();
        assert!(
            mistake.contains("which the kernels of the arms do not pay; expected a figure that one of them"),
            "{mistake}"
        );
    }

    #[test]
    fn distances_between_nodes_are_figures_too() {
        let mut draft = Draft::default();
        draft.machine_option("ivybridge-ex-16s");
        draft.workload_option("pipetest:batches=1,loops=1").unwrap();
        draft.arm_options(&["only=v6.12".to_string()], false).unwrap();
        let experiment = draft.resolve(Purpose::Prediction, &Table::default()).unwrap();
        let patterns = [Written::option("--figures", "*distance*")];
        let plan = Plan::new(experiment.clone(), &patterns, &mut |_, _| true).unwrap().expect("nobody interrupted");
        let names: Vec<&str> = plan.uncertain.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names, ["topology.distances.17", "topology.distances.19"]);
        let at = |variation: &Variation| {
            let topology = variation.experiment.machine.description.topology();
            (topology.node_distance(0, 1), topology.node_distance(0, 2), topology.node_distance(15, 2))
        };
        let ends: Vec<_> = plan.variations.iter().map(at).collect();
        assert_eq!(ends, [(12, 19, 19), (18, 19, 19), (17, 18, 18), (17, 60, 60)]);
        assert!(plan.impossible.is_empty());
        // Interrupting between two figures gives no plan; the callback has heard how far it was.
        let mut told = Vec::new();
        let mut interrupt = |done, all| {
            told.push((done, all));
            done < 1
        };
        assert!(Plan::new(experiment, &patterns, &mut interrupt).unwrap().is_none());
        assert_eq!(told, [(0, 2), (1, 2)]);
    }

    #[test]
    fn guesses_that_no_range_lets_move_are_named() {
        let planned = |patterns: &[&str]| plan(&["only=v4.15"], patterns).unwrap();
        let text = |plan: &Plan| Ranking::new(plan, &Results::new()).to_text(9);
        let mut all = planned(&[]);
        let figure = all.experiment.machine.description.figure("frequency.min").cloned();
        assert!(figure.is_some_and(|it| is_uncertain(&it) && it.range.0 == it.range.1), "another figure for this test");
        let one = "note: 1 uncertain figure is not moved, as its range has no room: frequency.min\n";
        assert!(text(&all).ends_with(one), "{}", text(&all));
        assert!(text(&planned(&["frequency.*"])).ends_with(one));
        assert!(!text(&planned(&["line.llc"])).contains("no room"));
        all.without_room.push("line.lcc".to_string());
        let two = "note: 2 uncertain figures are not moved, as their ranges have no room: frequency.min, line.lcc\n";
        assert!(text(&all).ends_with(two), "{}", text(&all));
    }

    #[test]
    fn patterns_that_choose_nothing() {
        let refused = |pattern: &str| plan(&["a=v4.15"], &[pattern]).err().expect("a mistake").to_string();
        let error = refused("line.lcc");
        assert_eq!(
            error,
            "--figures line.lcc: found no figure of the machine for `line.lcc`; expected `line.llc`, perhaps"
        );
        let error = refused("cache.line_size");
        assert!(error.contains("(cache.line_size is vendor, 64 to 64 B)"), "{error}");
        let error = plan(&["a=v4.15,hz=250"], &["tick.rate"]).err().expect("a mistake").to_string();
        assert!(error.contains("not varied: all arms have their own hz"), "{error}");
    }

    #[test]
    fn the_tick_is_that_of_arms_without_one() {
        let plan = plan(&["own=v4.15,hz=300", "machine's=v4.15"], &["tick.rate"]).unwrap();
        let hz = |experiment: &Experiment| experiment.arms.iter().map(|arm| arm.hz).collect::<Vec<_>>();
        let ends: Vec<_> = plan.variations.iter().map(|it| (it.end, hz(&it.experiment))).collect();
        assert_eq!(ends, [(End::Low, vec![300, 100]), (End::High, vec![300, 1000])]);
        // Only the arm with another tick runs differently.
        let results = run_all(&plan);
        let digest = |variation, arm| {
            let of = |trial: &&Trial| trial.variation == variation && trial.job.arm == arm && trial.job.iteration == 0;
            &results[results.keys().find(of).expect("a trial")].digest
        };
        assert_eq!(digest(Some(1), 0), digest(None, 0));
        assert_ne!(digest(Some(1), 1), digest(None, 1));
    }

    #[test]
    fn ends_at_which_there_is_no_machine_are_told() {
        // The lowest frequency may not be above the marked one, nor the marked one below it.
        let plan = plan(&["a=v4.15"], &["frequency.*"]).unwrap();
        assert!(plan.uncertain.iter().any(|figure| figure.name == "frequency.fixed"));
        for line in &plan.impossible {
            assert!(line.contains(" is not run"), "{line}");
        }
    }

    #[test]
    fn the_farthest_value_is_found_in_either_direction() {
        let below = |limit: u64| move |value: u64| (value < limit).then_some(());
        assert_eq!(farthest(0, 640, below(100)).map(|it| it.0), Some(90));
        assert_eq!(farthest(1_000, 360, |value| (value > 900).then_some(())).map(|it| it.0), Some(910));
        assert_eq!(farthest(0, 640, below(10)), None);
        assert_eq!(farthest(5, 6, below(6)), None, "there is nothing in between");
    }
}
