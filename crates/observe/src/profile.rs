//! Where the CPUs' time went, by kernel function, as `perf report --stdio` shows it, and as folded stacks.
//!
//! The format is perf 6.1's with its defaults, `--children -g graph,0.5,caller`. It differs in two points: times are
//! exact, so the header gives no count of samples; and symbols are names, so ties are broken by name where perf uses
//! addresses.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt;

const KERNEL: &str = "[kernel.kallsyms]";
/// Call chains below this share of the whole are not drawn.
const CHAIN_MIN_PERCENT: f64 = 0.5;

/// The time of all CPUs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    pub stacks: Vec<Stack>,
    pub cpus: usize,
    /// Simulated time.
    pub duration_ps: u64,
}

/// Time spent in the last of `frames`, called by the ones before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stack {
    /// `comm`; `swapper` for the idle task.
    pub task: String,
    /// Where its functions come from.
    pub object: Object,
    /// Functions, the outermost first; at least one.
    pub frames: Vec<String>,
    pub time_ps: u64,
}

/// perf's shared object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Object {
    Kernel,
    /// The program with the task's name.
    Task,
    Library(&'static str),
}

/// The functions in which a CPU halts; perf's cycles do not count there.
pub const HALTED: [&str; 6] =
    ["intel_idle", "acpi_idle_enter", "cpu_do_idle", "stop_loop", "arch_cpu_idle", "default_idle"];

impl Profile {
    /// What was booked since `earlier`, an earlier profile of the same machine.
    pub fn since(&self, earlier: &Profile) -> Profile {
        let mut before: BTreeMap<(&str, Object, &[String]), u64> = BTreeMap::new();
        for stack in &earlier.stacks {
            *before.entry((&stack.task, stack.object, &stack.frames)).or_default() += stack.time_ps;
        }
        let mut stacks = Vec::new();
        for stack in &self.stacks {
            let before = before.get_mut(&(&stack.task[..], stack.object, &stack.frames[..]));
            // Several stacks may have the same name: each takes from what is left.
            let taken = before.map_or(0, |before| {
                let taken = stack.time_ps.min(*before);
                *before -= taken;
                taken
            });
            if stack.time_ps > taken {
                stacks.push(Stack { time_ps: stack.time_ps - taken, ..stack.clone() });
            }
        }
        Profile { stacks, cpus: self.cpus, duration_ps: self.duration_ps - earlier.duration_ps }
    }

    /// A kernel function's share of the time that CPUs did not halt, with what it called and by itself, in millionths
    /// of one per cent: what `perf report` shows for the whole machine with the event cycles.
    pub fn share(&self, function: &str) -> (u64, u64) {
        let (mut all, mut children, mut own) = (0, 0, 0);
        for stack in &self.stacks {
            let last = stack.frames.last().map_or("", String::as_str);
            if HALTED.contains(&last) {
                continue;
            }
            all += stack.time_ps;
            if stack.object == Object::Kernel && stack.frames.iter().any(|frame| frame == function) {
                children += stack.time_ps;
                own += if last == function { stack.time_ps } else { 0 };
            }
        }
        let part = |ps: u64| (u128::from(ps) * 100_000_000 / u128::from(all.max(1))) as u64;
        (part(children), part(own))
    }

    /// What `perf report --stdio` would print.
    pub fn perf_report(&self) -> String {
        Table::new(self).to_string()
    }

    /// `task;outermost;...;innermost nanoseconds`, one line for each stack, sorted as text: the input of flame graphs.
    /// Times are rounded to nanoseconds after equal stacks are added up.
    pub fn folded(&self) -> String {
        let mut folded: BTreeMap<String, u64> = BTreeMap::new();
        for stack in &self.stacks {
            let mut line = stack.task.replace(';', ":");
            for frame in &stack.frames {
                line.push(';');
                line.push_str(frame);
            }
            *folded.entry(line).or_default() += stack.time_ps;
        }
        folded.into_iter().map(|(line, ps)| format!("{line} {}\n", (ps + 500) / 1_000)).collect()
    }
}

/// A row: one function in the tasks of one name.
#[derive(Clone, Debug, Default)]
struct Entry<'a> {
    /// Time in it and in what it called.
    children_ps: u64,
    self_ps: u64,
    chains: Chain<'a>,
}

/// A tree of call chains whose nodes are functions. Time is counted where chains end.
#[derive(Clone, Debug, Default)]
struct Chain<'a> {
    ends_ps: u64,
    below: BTreeMap<&'a str, Chain<'a>>,
}

/// Functions that always follow each other, and their continuations.
struct Branch<'a> {
    functions: Vec<&'a str>,
    total_ps: u64,
    below: Vec<Branch<'a>>,
}

impl<'a> Chain<'a> {
    fn add(&mut self, path: &[&'a str], time_ps: u64) {
        match path.split_first() {
            None => self.ends_ps += time_ps,
            Some((first, rest)) => self.below.entry(first).or_default().add(rest, time_ps),
        }
    }

    fn total_ps(&self) -> u64 {
        self.ends_ps + self.below.values().map(Chain::total_ps).sum::<u64>()
    }

    fn depth(&self) -> usize {
        self.below.values().map(|below| below.depth() + 1).max().unwrap_or(0)
    }

    /// The branches of at least `min_ps`, the heaviest first. A branch ends where chains part or one of them ends, even
    /// if the continuation is too small to draw.
    fn branches(&self, min_ps: f64) -> Vec<Branch<'a>> {
        let mut branches: Vec<Branch<'a>> = Vec::new();
        for (&function, mut chain) in &self.below {
            let total_ps = chain.total_ps();
            if (total_ps as f64) < min_ps {
                continue;
            }
            let mut functions = vec![function];
            while let (0, 1, Some((next, below))) = (chain.ends_ps, chain.below.len(), chain.below.first_key_value()) {
                functions.push(next);
                chain = below;
            }
            branches.push(Branch { functions, total_ps, below: chain.branches(min_ps) });
        }
        // The sort is stable: equal branches stay in order of name.
        branches.sort_by_key(|branch| Reverse(branch.total_ps));
        branches
    }
}

struct Table<'a> {
    profile: &'a Profile,
    total_ps: u64,
    /// (task, object, symbol with its `[k]` or `[.]`).
    rows: Vec<((&'a str, &'a str, String), Entry<'a>)>,
}

impl<'a> Table<'a> {
    fn new(profile: &'a Profile) -> Table<'a> {
        let mut entries: BTreeMap<(&str, &str, String), Entry<'_>> = BTreeMap::new();
        for stack in profile.stacks.iter().filter(|stack| stack.time_ps > 0) {
            let path: Vec<&str> = stack.frames.iter().map(String::as_str).collect();
            let (object, level) = match stack.object {
                Object::Kernel => (KERNEL, 'k'),
                Object::Task => (stack.task.as_str(), '.'),
                Object::Library(name) => (name, '.'),
            };
            let key = |function: &str| (stack.task.as_str(), object, format!("[{level}] {function}"));
            for (depth, function) in path.iter().enumerate() {
                if depth + 1 == path.len() {
                    let entry = entries.entry(key(function)).or_default();
                    entry.self_ps += stack.time_ps;
                    entry.chains.add(&path, stack.time_ps);
                    if !path[..depth].contains(function) {
                        entry.children_ps += stack.time_ps;
                    }
                } else if !path[..depth].contains(function) {
                    // A recursive function counts once per stack, at its outermost frame.
                    let entry = entries.entry(key(function)).or_default();
                    entry.children_ps += stack.time_ps;
                    entry.chains.add(&path[depth..], stack.time_ps);
                }
            }
        }
        let mut rows: Vec<_> = entries.into_iter().collect();
        // Callers come before what they call. The sort is stable: equal rows stay in order of task, object, symbol.
        rows.sort_by_cached_key(|(_, entry)| {
            (Reverse(entry.children_ps), entry.self_ps, Reverse(entry.chains.depth()))
        });
        Table { profile, total_ps: profile.stacks.iter().map(|stack| stack.time_ps).sum(), rows }
    }

    fn percent(&self, ps: u64) -> f64 {
        if self.total_ps == 0 { 0.0 } else { ps as f64 * 100.0 / self.total_ps as f64 }
    }

    fn header(&self, f: &mut fmt::Formatter<'_>, widths: [usize; 3]) -> fmt::Result {
        let [task, object, symbol] = widths;
        writeln!(f, "# nrcpus online : {}", self.profile.cpus)?;
        writeln!(f, "# sample duration : {:>10.3} ms", self.profile.duration_ps as f64 / 1e9)?;
        writeln!(f, "#")?;
        writeln!(f, "# Exact times of event 'cpu-clock', nothing is sampled")?;
        writeln!(f, "# Event count (approx.): {}", self.total_ps / 1_000)?;
        writeln!(f, "#")?;
        writeln!(f, "# Children      Self  {:<task$}  {:<object$}  {:<symbol$}", "Command", "Shared Object", "Symbol")?;
        writeln!(f, "# ........  ........  {:.<task$}  {:.<object$}  {:.<symbol$}", "", "", "")?;
        writeln!(f, "#")
    }

    fn chains(&self, f: &mut fmt::Formatter<'_>, entry: &Entry<'_>) -> fmt::Result {
        const MARGIN: usize = 12;
        let mut branches = entry.chains.branches(self.total_ps as f64 * CHAIN_MIN_PERCENT / 100.0);
        let mut margin = MARGIN;
        let chains_ps = entry.chains.total_ps();
        let drawn = !branches.is_empty();
        // A single chain with all the time needs no percentage.
        if let [branch] = branches.as_mut_slice()
            && branch.total_ps == chains_ps
        {
            writeln!(f, "{:margin$}|", "")?;
            for (i, function) in branch.functions.iter().enumerate() {
                let lead = if i == 0 { "---" } else { "   " };
                writeln!(f, "{:margin$}{lead}{function}", "")?;
            }
            margin += 3;
            branches = std::mem::take(&mut branch.below);
        }
        self.draw(f, &branches, &" ".repeat(margin), "")?;
        if drawn { writeln!(f) } else { Ok(()) }
    }

    /// `pipes` are the columns of the outer levels, each 11 wide: a bar if that level goes on, else blank.
    fn draw(&self, f: &mut fmt::Formatter<'_>, branches: &[Branch<'_>], margin: &str, pipes: &str) -> fmt::Result {
        const GAP: &str = "          ";
        for (i, branch) in branches.iter().enumerate() {
            let bar = if i + 1 == branches.len() { ' ' } else { '|' };
            let percent = self.percent(branch.total_ps);
            writeln!(f, "{margin}{pipes}|{GAP}")?;
            for (line, function) in branch.functions.iter().enumerate() {
                match line {
                    0 => writeln!(f, "{margin}{pipes}{bar}--{percent:.2}%--{function}")?,
                    _ => writeln!(f, "{margin}{pipes}{bar}{GAP}{function}")?,
                }
            }
            self.draw(f, &branch.below, margin, &format!("{pipes}{bar}{GAP}"))?;
        }
        Ok(())
    }
}

impl fmt::Display for Table<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let widest = |head: &str, cells: &mut dyn Iterator<Item = usize>| cells.max().unwrap_or(0).max(head.len());
        let task = widest("Command", &mut self.rows.iter().map(|((task, ..), _)| task.len()));
        let object = widest("Shared Object", &mut self.rows.iter().map(|((_, object, _), _)| object.len()));
        let symbol = widest("Symbol", &mut self.rows.iter().map(|((.., symbol), _)| symbol.len()));
        self.header(f, [task, object, symbol])?;
        for ((comm, dso, name), entry) in &self.rows {
            let (children, own) = (self.percent(entry.children_ps), self.percent(entry.self_ps));
            writeln!(f, " {children:>8.2}% {own:>8.2}%  {comm:<task$}  {dso:<object$}  {name}")?;
            self.chains(f, entry)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stack(task: &str, frames: &str, time_ps: u64) -> Stack {
        let object = if frames == "main" { Object::Task } else { Object::Kernel };
        let frames = frames.split_whitespace().map(str::to_string).collect();
        Stack { task: task.to_string(), object, frames, time_ps }
    }

    fn profile(stacks: Vec<Stack>) -> Profile {
        Profile { stacks, cpus: 2, duration_ps: 5_000_000_000 }
    }

    /// perf's bars end in blanks; here `~` stands for them.
    fn marked(report: &str) -> String {
        report.lines().map(|line| line.replace("|          ", "|~").trim_end().to_string() + "\n").collect()
    }

    #[test]
    fn the_report_has_perfs_shape() {
        let report = profile(vec![
            stack("swapper", "do_idle cpuidle_enter", 4_000_000_000),
            stack("ping", "main", 1_000_000_000),
            stack("ping", "sys_write pipe_write __wake_up_sync_key try_to_wake_up", 3_000_000_000),
            stack("ping", "sys_write pipe_write", 1_000_000_000),
            stack("ping", "sys_write pipe_write mutex_lock", 500_000_000),
            stack("ping", "sys_write pipe_write schedule __schedule", 480_000_000),
            stack("ping", "sys_write pipe_write rare", 20_000_000),
        ])
        .perf_report();
        let expected = "\
# nrcpus online : 2
# sample duration :      5.000 ms
#
# Exact times of event 'cpu-clock', nothing is sampled
# Event count (approx.): 10000000
#
# Children      Self  Command  Shared Object      Symbol
# ........  ........  .......  .................  ......................
#
    50.00%     0.00%  ping     [kernel.kallsyms]  [k] sys_write
            |
            ---sys_write
               pipe_write
               |~
               |--30.00%--__wake_up_sync_key
               |~try_to_wake_up
               |~
               |--5.00%--mutex_lock
               |~
                --4.80%--schedule
                          __schedule

    50.00%    10.00%  ping     [kernel.kallsyms]  [k] pipe_write
            |~
            |--40.00%--pipe_write
            |~|~
            |~|--30.00%--__wake_up_sync_key
            |~|~try_to_wake_up
            |~|~
            |~|--5.00%--mutex_lock
            |~|~
            |~ --4.80%--schedule
            |~           __schedule
            |~
             --10.00%--sys_write
                       pipe_write

    40.00%     0.00%  swapper  [kernel.kallsyms]  [k] do_idle
            |
            ---do_idle
               cpuidle_enter

    40.00%    40.00%  swapper  [kernel.kallsyms]  [k] cpuidle_enter
            |
            ---do_idle
               cpuidle_enter

    30.00%     0.00%  ping     [kernel.kallsyms]  [k] __wake_up_sync_key
            |
            ---__wake_up_sync_key
               try_to_wake_up

    30.00%    30.00%  ping     [kernel.kallsyms]  [k] try_to_wake_up
            |
            ---sys_write
               pipe_write
               __wake_up_sync_key
               try_to_wake_up

    10.00%    10.00%  ping     ping               [.] main
            |
            ---main

     5.00%     5.00%  ping     [kernel.kallsyms]  [k] mutex_lock
            |
            ---sys_write
               pipe_write
               mutex_lock

     4.80%     0.00%  ping     [kernel.kallsyms]  [k] schedule
            |
            ---schedule
               __schedule

     4.80%     4.80%  ping     [kernel.kallsyms]  [k] __schedule
            |
            ---sys_write
               pipe_write
               schedule
               __schedule

     0.20%     0.20%  ping     [kernel.kallsyms]  [k] rare
";
        assert_eq!(marked(&report), expected);
    }

    #[test]
    fn a_function_that_calls_itself_counts_once() {
        let report = profile(vec![stack("t", "walk walk walk", 3_000), stack("t", "walk", 1_000)]).perf_report();
        let rows: Vec<&str> = report.lines().filter(|line| line.ends_with("[k] walk")).collect();
        assert_eq!(rows, ["   100.00%   100.00%  t        [kernel.kallsyms]  [k] walk"]);
    }

    #[test]
    fn shares_are_of_the_time_that_cpus_did_not_halt_since_a_moment() {
        let idle = "do_idle cpuidle_enter intel_idle";
        let before = profile(vec![stack("swapper", idle, 5_000), stack("java", "tick update", 1_000)]);
        let after = profile(vec![
            stack("swapper", idle, 9_000),
            stack("swapper", "do_idle poll_idle", 1_000),
            stack("java", "main", 5_000),
            stack("java", "tick update", 2_500),
            stack("java", "tick", 500),
            stack("sh", "tick update", 1_000),
        ]);
        let later = after.since(&before);
        // 1000 of polling, 5000 in user mode, 1500 and 1000 in the update, 500 in the tick itself.
        assert_eq!(later.share("update"), (27_777_777, 27_777_777));
        assert_eq!(later.share("tick"), (33_333_333, 5_555_555));
        assert_eq!(later.share("main"), (0, 0));
        assert_eq!(later.stacks.iter().map(|stack| stack.time_ps).sum::<u64>(), 13_000);
        assert_eq!(profile(vec![]).share("tick"), (0, 0));
    }

    #[test]
    fn nothing_measured_is_an_empty_table() {
        let report = profile(vec![]).perf_report();
        assert!(report.ends_with("# ........  ........  .......  .............  ......\n#\n"), "{report}");
    }

    #[test]
    fn folded_stacks_add_up_and_round_to_nanoseconds() {
        let folded = profile(vec![
            stack("ping", "sys_read pipe_read", 1_400),
            stack("swapper", "do_idle", 2_000_499),
            stack("ping", "sys_read pipe_read", 1_400),
            stack("a;b", "main", 5_000),
        ])
        .folded();
        assert_eq!(folded, "a:b;main 5\nping;sys_read;pipe_read 3\nswapper;do_idle 2000\n");
    }
}
