//! Cases nobody chose: random scripts on random topologies, with tolerances that are fixed here, before anything is
//! compared.
//!
//! A seed is the same script under every kernel, but for the names of its groups' files. A script is one to four
//! *families* of tasks, each of which does one of the things that real programs do, with random times, CPUs, weights
//! and groups. It works for about two seconds. What the script is about is its [`Theme`].

mod changes;

use crate::arguments::RandomArguments;
use sched::core::cgroup::Hierarchy;
use sched::versions::Kernel;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use units::Prng;

/// As `fairground` writes a topology, and how many CPUs it has. QEMU can be all of them (`guest::machine`).
const TOPOLOGIES: [(&str, u64); 9] = [
    ("pack:1 l3:1 core:2 pu:1", 2),
    ("pack:1 l3:1 core:4 pu:1", 4),
    ("pack:1 l3:1 core:2 pu:2", 4),
    ("pack:1 l3:2 core:2 pu:1", 4),
    ("pack:2 [numa] l3:1 core:2 pu:1", 4),
    ("pack:1 l3:1 core:8 pu:1", 8),
    ("pack:1 l3:1 core:4 pu:2", 8),
    ("pack:1 l3:2 core:2 pu:2", 8),
    ("pack:2 [numa] l3:1 core:4 pu:1", 8),
];
/// Where the guests' machine files are: a folder of cases has nothing but cases.
const GUESTS: &str = "xtask/recorder/guest";
/// When hogs end. Before, the others have done their work if each of them has a CPU to itself.
const END_MS: u64 = 3100;
const WORK_US: u64 = 1_800_000;

/// The least work between two calls. A call and its wakeup take the guest, which is traced and whose CPUs share one
/// thread, 20 to 30 us more than the simulation, and with less work than this who sleeps would hang on that alone.
const CALL_US: u64 = 400;

/// How long a guest's CPU with something to do keeps the next one from its tick, about (docs/fidelity.md).
const TICK_TURN_US: u64 = 12;

/// What a family does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    /// Never sleeps, until the end.
    Hog,
    /// Works and sleeps until the next of its periods.
    Periodic,
    /// Works and sleeps.
    Sleeper,
    /// Two that hand a byte to and fro, and work between.
    Pair,
    /// One that serves several.
    Server,
    /// Is forked in the middle, works twice and ends.
    Forked,
    /// Periodic, of a real-time policy.
    RealTime,
    /// Two that yield.
    Yielder,
    /// Of the deadline class, within its budget or beyond it.
    Deadline,
}

/// What a script's tasks live through.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Theme {
    /// What they are and where they may run stays as it is.
    Steady,
    /// CPUs come and go, groups' files are written, and tasks change their CPUs, policies and groups.
    Changing,
}

impl Theme {
    /// What the files of its cases are named after.
    fn case_name(self) -> &'static str {
        match self {
            Theme::Steady => "random",
            Theme::Changing => "changing",
        }
    }

    /// The purpose of its stream of random numbers.
    fn stream(self) -> &'static str {
        match self {
            Theme::Steady => "a random case",
            Theme::Changing => "a changing case",
        }
    }

    /// How many families a script has.
    fn families(self) -> &'static [u64] {
        match self {
            Theme::Steady => &[1, 2, 2, 3, 3, 4],
            Theme::Changing => &[2, 3, 3, 4],
        }
    }

    /// As often as each of them shall come.
    fn kinds(self) -> &'static [Kind] {
        match self {
            Theme::Steady => &KINDS,
            Theme::Changing => &CHANGING_KINDS,
        }
    }
}

const KINDS: [Kind; 23] = {
    use Kind::*;
    [
        Hog, Hog, Hog, Hog, Hog, Periodic, Periodic, Periodic, Periodic, Sleeper, Sleeper, Sleeper, Sleeper, Pair,
        Pair, Pair, Server, Server, Forked, Forked, RealTime, Sleeper, Yielder,
    ]
};

const CHANGING_KINDS: [Kind; 14] = {
    use Kind::*;
    [Hog, Hog, Hog, Hog, Hog, Periodic, Periodic, Periodic, Sleeper, Sleeper, Pair, Forked, RealTime, Deadline]
};

/// Two files: a case without its recording, and the machine that it is simulated on.
pub struct Case {
    pub name: String,
    pub text: String,
    /// Cases of one topology with as many busy CPUs share it.
    pub machine_name: String,
    pub machine_text: String,
}

/// Writes the cases of some seeds, each into a file, and the machines that they are simulated on.
///
/// # Errors
/// A kernel that there is not, a folder that cannot be written.
pub fn write(arguments: &RandomArguments) -> Result<(), String> {
    let kernel = sched::versions::kernel(&arguments.kernel)
        .ok_or(format!("the unknown kernel {}; expected one of `fairground kernels list`", arguments.kernel))?;
    let project = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("the project's folder");
    let folder = arguments.folder.canonicalize().map_err(|error| format!("{}: {error}", arguments.folder.display()))?;
    let Ok(below) = folder.strip_prefix(project) else {
        let expected = format!("a folder of {}, whose machines the cases use", project.display());
        return Err(format!("{}; expected {expected}", folder.display()));
    };
    let above = "../".repeat(below.components().count());
    let write =
        |path: PathBuf, text: &str| std::fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()));
    for seed in arguments.seeds.clone() {
        let case = case(arguments.theme, seed, kernel, Hierarchy::of(kernel.cgroup.files), &format!("{above}{GUESTS}"));
        write(folder.join(format!("{}.toml", case.name)), &case.text)?;
        write(project.join(GUESTS).join(format!("{}.toml", case.machine_name)), &case.machine_text)?;
    }
    Ok(())
}

/// The case of a seed. `guests` is [`GUESTS`] as seen from the case.
pub fn case(theme: Theme, seed: u64, kernel: &Kernel, files: Hierarchy, guests: &str) -> Case {
    let mut script = Script::new(theme, seed, files);
    let families = script.one_of(theme.families());
    for name in ["a", "b", "c", "d"].into_iter().take(families as usize) {
        let kinds = theme.kinds();
        let kind = kinds[script.random.below(kinds.len() as u64) as usize];
        script.family(name, kind);
    }
    let (topology, nr_cpus) = script.topology;
    let busy = (script.busy_permille.div_ceil(1000)).clamp(1, nr_cpus);
    let machine_name = format!("guest-{busy}-of-{}", topology.replace([':', '[', ']'], "").replace(' ', "-"));
    let name = format!("{}-{seed}", theme.case_name());
    let text = format!(
        "# A script that chance wrote (cargo xtask random-cases), as its tolerances are that program's.\n\
         # Real: {}, in QEMU with one instruction per nanosecond, HZ=250; recorded by cargo xtask record-fidelity --samples 3.\n\
         machine = \"{guests}/{machine_name}.toml\"\nrecording = \"{name}.numbers.txt\"\nhz = 250\ncosts = true\niterations = 9\n\n\
         [[workload]]\nname = \"script\"\ntasks = \"\"\"\n{}\"\"\"\n\n\
         [[arm]]\nname = \"real\"\nkernel = \"{}\"\ncmdline = \"noise=1 numa_balancing=disable\"\n\
         sysctl = {{ \"kernel.sched_autogroup_enabled\" = 0 }}\n{}{}",
        kernel.name, script.lines, kernel.name, script.timeline, script.figures
    );
    Case { name, text, machine_text: machine(&machine_name, topology, busy), machine_name }
}

/// The recorder's guest with another topology, in which siblings are neighbours. All of its CPUs share one thread, so kernel paths take as many times
/// longer as CPUs are busy, and a CPU handles its tick when its turn comes.
fn machine(name: &str, topology: &str, busy: u64) -> String {
    let mut text = format!(
        "# The guest of guest-5-of-8.toml with another topology, while {busy} of its CPUs are busy. Written by cargo xtask random-cases.\n\
         name = \"{name}\"\nextends = \"guest-5-of-8.toml\"\n\
         description = \"{topology} in QEMU, an instruction a nanosecond, {busy} CPUs busy.\"\n\n\
         [topology]\nsynthetic = \"{topology}\"\nnumbering = \"as-listed\"\nhow = \"derived\"\nsource = \"the case's\"\n\n\
         [cycles_per_instruction]\n"
    );
    for price in ["paths", "idle_loop", "os", "net"] {
        let _ = writeln!(
            text,
            "{price} = {{ value = {busy}, unit = \"cycles/instruction\", range = [1, 8], how = \"derived\", \
             source = \"recorder/src/guest.rs: an instruction takes a nanosecond, and busy CPUs take turns\" }}"
        );
    }
    let jitter = TICK_TURN_US * (busy - 1);
    let _ = write!(
        text,
        "\n[tick]\njitter = {{ value = {jitter}, unit = \"us\", range = [0, 140], how = \"measured\", \
         source = \"docs/fidelity.md: {TICK_TURN_US} us for each other busy CPU\" }}\n"
    );
    text
}

struct Script {
    theme: Theme,
    random: Prng,
    topology: (&'static str, u64),
    files: Hierarchy,
    /// Those that have no group below them: in cgroup v2 only these may have tasks.
    leaves: Vec<String>,
    lines: String,
    /// The moments of its timeline.
    timeline: String,
    figures: String,
    /// The CPU that goes and comes back.
    leaving: Option<u64>,
    /// How many CPUs its tasks would use, if they had one each.
    busy_permille: u64,
}

impl Script {
    fn new(theme: Theme, seed: u64, files: Hierarchy) -> Script {
        let mut random = Prng::stream(seed, theme.stream(), 0);
        let topology = TOPOLOGIES[random.below(TOPOLOGIES.len() as u64) as usize];
        let mut script = Script {
            theme,
            random,
            topology,
            files,
            leaves: Vec::new(),
            lines: String::new(),
            timeline: String::new(),
            figures: String::new(),
            leaving: None,
            busy_permille: 0,
        };
        if script.chance(45) {
            script.groups();
        }
        if theme == Theme::Changing {
            script.moments();
        }
        script
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.random.below(100) < percent
    }

    fn one_of(&mut self, of: &[u64]) -> u64 {
        of[self.random.below(of.len() as u64) as usize]
    }

    /// Microseconds, in tens: as likely between 10 and 100 as between 100 and 1000.
    fn time_us(&mut self, low: u64, high: u64) -> u64 {
        let mut high = high;
        while high / 2 > low && self.chance(50) {
            high /= 2;
        }
        self.random.between((high / 2).max(low), high) / 10 * 10
    }

    fn groups(&mut self) {
        for index in 0..self.one_of(&[1, 2, 2, 3]) {
            let above = if self.chance(35) { self.leaves.pop() } else { None };
            let nested = above.is_some();
            let path = format!("{}/g{index}", above.unwrap_or_default());
            let weight = self.one_of(&[20, 50, 100, 100, 200, 400, 1000]);
            let quota = self
                .chance(20)
                .then(|| (self.one_of(&[20_000, 40_000, 60_000, 120_000]), self.one_of(&[50_000, 100_000])));
            // Version 1 refuses a quota that is more than what a group above has.
            let quota = quota.filter(|_| !nested);
            let _ = match self.files {
                Hierarchy::Unified => write!(self.lines, "group {path}: cpu.weight {weight}"),
                Hierarchy::Legacy => write!(self.lines, "group {path}: cpu.shares {}", weight * 1024 / 100),
            };
            let _ = match (quota, self.files) {
                (None, _) => writeln!(self.lines),
                (Some((quota, period)), Hierarchy::Unified) => writeln!(self.lines, "; cpu.max {quota} {period}"),
                (Some((quota, period)), Hierarchy::Legacy) => {
                    writeln!(self.lines, "; cpu.cfs_period_us {period}; cpu.cfs_quota_us {quota}")
                }
            };
            self.leaves.push(path);
        }
    }

    /// What a family's tasks have in common.
    fn keys(&mut self, pinned_percent: u64) -> String {
        let mut keys = String::new();
        if self.chance(25) {
            let nice = [-10, -5, -3, 1, 3, 5, 10, 19][self.random.below(8) as usize];
            let _ = write!(keys, " nice={nice}");
        }
        if !self.leaves.is_empty() && self.chance(70) {
            let _ = write!(keys, " group={}", self.leaves[self.random.below(self.leaves.len() as u64) as usize]);
        }
        if self.chance(pinned_percent) {
            let _ = write!(keys, " cpus={}", self.cpus());
        }
        keys
    }

    /// Some of the CPUs, as a list.
    fn cpus(&mut self) -> String {
        let nr_cpus = self.topology.1;
        let first = self.random.below(nr_cpus);
        let last = if self.chance(50) { first } else { self.random.between(first, nr_cpus - 1) };
        format!("{first}-{last}")
    }

    /// So much of `of_us` for each of `count` tasks.
    fn busy(&mut self, count: u64, work_us: u64, of_us: u64) {
        self.busy_permille += count * 1000 * work_us / of_us.max(1);
    }

    fn family(&mut self, name: &str, kind: Kind) {
        let begin = 100 + self.random.below(60);
        match kind {
            Kind::Hog => self.hog(name, begin),
            Kind::Periodic => {
                let slice = self.one_of(&[100, 300, 1000, 6000, 12_000, 30_000]);
                let slice = if self.chance(25) { format!(" slice={slice}us") } else { String::new() };
                let (count, keys) = (self.one_of(&[1, 1, 2, 3, self.topology.1]), self.keys(20) + &slice);
                self.periodic(kind, &format!("{name} count={count}{keys}: until {begin}ms"), count);
            }
            Kind::RealTime => {
                let policy = if self.chance(50) { "fifo" } else { "rr" };
                let priority = 1 + self.random.below(50);
                self.periodic(kind, &format!("{name} policy={policy}/{priority}: until {begin}ms"), 1);
            }
            Kind::Sleeper => self.sleeper(name, begin),
            Kind::Pair => self.pair(name, begin),
            Kind::Server => self.server(name, begin),
            Kind::Forked => self.forked(name),
            Kind::Deadline => self.deadline(name, begin),
            Kind::Yielder => {
                let (work, keys) = (self.time_us(200, 900), self.keys(20));
                let times = WORK_US / 2 / work;
                self.task(&format!("{name} count=2{keys}: until {begin}ms; {times} x (run {work}us; yield)"));
                self.busy(2, 1, 1);
            }
        }
        let both = |one: &str, other: &str| vec![format!("{name}{one}"), format!("{name}{other}")];
        let sides = match kind {
            Kind::Pair => both("x", "y"),
            Kind::Server => both("s", "c*"),
            Kind::RealTime | Kind::Deadline => vec![name.to_string()],
            _ => vec![format!("{name}*")],
        };
        sides.iter().for_each(|of| self.compare(of, kind));
    }

    fn hog(&mut self, name: &str, begin: u64) {
        let n = self.topology.1;
        let count = self.one_of(&[1, 1, 2, 3, n - 1, n, n + 1, 2 * n]);
        let policy = ["", "", "", "", "", "", " policy=batch", " policy=idle"][self.random.below(8) as usize];
        let keys = self.keys(20);
        let spins = self.spins(begin);
        self.task(&format!("{name} count={count}{keys}{policy}: until {begin}ms; {spins}"));
        self.busy(count, 1, 1);
    }

    fn periodic(&mut self, kind: Kind, head: &str, count: u64) {
        let period = self.time_us(4000, 60_000);
        let work = self.time_us(100, 8000).min(period / 20 * 10);
        let rounds = self.rounds(kind, WORK_US / period, &format!("run {work}us; every {period}us"));
        self.task(&format!("{head}; {rounds}"));
        self.busy(count, work, period);
    }

    fn sleeper(&mut self, name: &str, begin: u64) {
        let (work, sleep) = (self.time_us(50, 5000), self.time_us(300, 20_000));
        let n = self.topology.1;
        let (count, keys) = (self.one_of(&[1, 2, 3, n, n + 2]), self.keys(20));
        let round = format!("run {work}us; sleep {sleep}us");
        let rounds = self.rounds(Kind::Sleeper, WORK_US / (work + sleep), &round);
        self.task(&format!("{name} count={count}{keys}: until {begin}ms; {rounds}"));
        self.busy(count, work, work + sleep);
    }

    fn pair(&mut self, name: &str, begin: u64) {
        let (one, other, keys) = (self.time_us(CALL_US, 4000), self.time_us(CALL_US, 4000), self.keys(20));
        let keys_of_other = if self.chance(60) { keys.clone() } else { self.keys(20) };
        let times = WORK_US / (one + other + 60);
        let of_one = self.rounds(Kind::Pair, times, &format!("run {one}us; write {name}to; read {name}fro"));
        let of_other = self.rounds(Kind::Pair, times, &format!("read {name}to; run {other}us; write {name}fro"));
        self.task(&format!("{name}x{keys}: until {begin}ms; {of_one}"));
        self.task(&format!("{name}y{keys_of_other}: {of_other}"));
        self.busy(1, 1, 1);
    }

    fn server(&mut self, name: &str, begin: u64) {
        let (count, served, work) =
            (self.one_of(&[2, 3, 4, 5]), self.time_us(CALL_US, 1500), self.time_us(CALL_US, 5000));
        let (of_server, of_clients) = (self.keys(50), self.keys(0));
        let times = WORK_US / ((count * served).max(served + work) + 100);
        let asked = count * times;
        self.task(&format!("{name}s{of_server}: {asked} x (read {name}ask; run {served}us; write {name}done)"));
        for client in 0..count {
            let (begin, work) = (begin + 3 * client, work + 37 * client);
            let rounds = format!("{times} x (run {work}us; write {name}ask; read {name}done)");
            self.task(&format!("{name}c{client}{of_clients}: until {begin}ms; {rounds}"));
        }
        self.busy(count, work, work + served);
        self.busy(1, 1, 1);
    }

    fn forked(&mut self, name: &str) {
        let (work, keys) = (self.time_us(500, 60_000), self.keys(0));
        for index in 0..self.one_of(&[3, 5, 8]) {
            let (at, sleep) = (self.random.between(200, 2500), self.time_us(300, 5000));
            self.task(&format!("{name}{index}{keys} at={at}ms: run {work}us; sleep {sleep}us; run {work}us"));
        }
    }

    fn task(&mut self, line: &str) {
        let _ = writeln!(self.lines, "task {line}");
    }

    /// The figures of a family. Their tolerances:
    ///
    /// - CPU time: what one slice more or less is; for forked tasks what the guest's fork() and page faults take; for
    ///   tasks that call each other what the guest's calls take, which is traced and asks for the time; where CPUs come
    ///   and go some tens of milliseconds that this takes a real machine;
    /// - counts: what comes of chance in the recordings of a few phases. How often who serves others sleeps hangs on
    ///   how long a wakeup takes, and in the guest that is twice as long;
    /// - latencies: interrupts of the emulated machine are seen after up to 0.12 ms.
    fn compare(&mut self, of: &str, kind: Kind) {
        let several = of.ends_with('*');
        let hog = matches!(kind, Kind::Hog | Kind::Yielder);
        let calling = matches!(kind, Kind::Pair | Kind::Server);
        let (of_work, of_slice) = match kind {
            Kind::Forked => ("16", "1.5"),
            _ if calling => ("80", "0.3"),
            _ if self.leaving.is_some() => ("40", "0.3"),
            _ => ("10", "0.3"),
        };
        let (wakeups, preempted) = if calling { ("30", "40") } else { ("3", "15") };
        let mut figures = vec![("run_ms", "sum", of_work, "3")];
        if kind == Kind::Hog {
            figures.extend([("run_ms", "min", of_work, "6"), ("run_ms", "max", of_work, "6")]);
        }
        if !hog {
            figures.push(("wakeups", "sum", "5", wakeups));
            figures.extend([("latency_p50_us", "median", "50", "20"), ("latency_p90_us", "median", "150", "30")]);
        }
        figures.extend([
            ("migrations_in_wakeup", "sum", "10", "30"),
            ("migrations_other", "sum", "10", "30"),
            ("involuntary", "sum", "10", preempted),
            ("slice_p50_ms", "median", of_slice, "8"),
        ]);
        for (figure, over, within, percent) in figures {
            let over = if several { format!("over = \"{over}\"\n") } else { String::new() };
            let _ = write!(
                self.figures,
                "\n[[figure]]\nof = \"{of}\"\nfigure = \"{figure}\"\n{over}within = {within}\nwithin_percent = {percent}\n"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lab::experiment::Purpose;
    use lab::mistake::Unreadable;

    /// The guests' folder, and a case's machine and recording, of which there is none yet.
    struct Stored(String);

    impl lab::machines::Files for Stored {
        fn text(&self, path: &str) -> Result<String, Unreadable> {
            match path {
                _ if path.ends_with("guest-5-of-8.toml") => Ok(include_str!("../guest/guest-5-of-8.toml").to_string()),
                _ if path.ends_with(".toml") => Ok(self.0.clone()),
                _ => Err(Unreadable::from("no such file".to_string())),
            }
        }

        fn sysfs(&self, _: &str) -> Option<String> {
            None
        }
    }

    #[test]
    fn every_seed_is_a_case_that_a_guest_can_play() {
        for (name, files) in [("v4.5-rc1", Hierarchy::Legacy), ("v6.18", Hierarchy::Unified)] {
            let kernel = sched::versions::kernel(name).unwrap();
            let seeds = |theme| (0..100).map(move |seed| (theme, seed));
            for (theme, seed) in seeds(Theme::Steady).chain(seeds(Theme::Changing)) {
                let case = case(theme, seed, kernel, files, "guest");
                let mut draft =
                    lab::experiment::parse(&case.text, "x.toml").unwrap_or_else(|it| panic!("{seed}: {it}"));
                draft.recording = None;
                assert!(!draft.figures.is_empty(), "{seed}");
                draft.figures.clear();
                let files = Stored(case.machine_text);
                let case = draft.resolve(Purpose::Single, &files).unwrap_or_else(|it| panic!("{seed}: {it}"));
                let setup = case.setup(&case.jobs()[0]);
                let machine = setup.machine.machine().unwrap_or_else(|it| panic!("{seed}: {it}"));
                let topology = machine.description.topology();
                crate::guest::machine(topology).unwrap_or_else(|it| panic!("{seed}: {it}"));
                crate::program::of(&setup, topology.nr_cpus()).unwrap_or_else(|it| panic!("{seed}: {it}"));
            }
        }
    }

    #[test]
    fn a_seed_is_the_same_under_every_kernel_but_for_the_files_of_its_groups() {
        let of = |theme, name: &str| {
            let kernel = sched::versions::kernel(name).unwrap();
            case(theme, 7, kernel, Hierarchy::Unified, "guest").text.replace(name, "")
        };
        for theme in [Theme::Steady, Theme::Changing] {
            assert_eq!(of(theme, "v5.10"), of(theme, "v6.18"));
        }
    }
}
