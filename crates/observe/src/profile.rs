//! Where the CPUs' time went, by kernel function: as `perf report --stdio` shows it, and as folded stacks.
//!
//! The shape is perf 6.1's with `--children -g graph,0.5,caller`, its defaults. What differs: times are exact, so the
//! header tells no count of samples; symbols are names, so ties are broken by name where perf takes addresses.

use std::collections::BTreeMap;
use std::fmt::{self, Write};

const KERNEL: &str = "[kernel.kallsyms]";
/// Call chains below this share of the whole are not drawn.
const CHAIN_MIN_PERCENT: f64 = 0.5;

/// All time of all CPUs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    pub stacks: Vec<Stack>,
    pub cpus: usize,
    /// Simulated time.
    pub duration_ps: u64,
}

/// Time that was spent in the last of `frames`, called by the ones before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stack {
    /// `comm`; `swapper` for the idle task.
    pub task: String,
    /// Kernel functions, the outermost first. None: the task's own code.
    pub frames: Vec<String>,
    pub time_ps: u64,
}

impl Profile {
    /// What `perf report --stdio` would print.
    pub fn perf_report(&self) -> String {
        Table::new(self).to_string()
    }

    /// `task;outermost;...;innermost nanoseconds`, one line for each stack, in order of the text: what flame graphs are
    /// made of. Times are rounded to nanoseconds after equal stacks are added up.
    pub fn folded(&self) -> String {
        let mut folded: BTreeMap<String, u64> = BTreeMap::new();
        for stack in &self.stacks {
            let mut line = stack.task.replace(';', ":");
            for frame in stack.path() {
                line.push(';');
                line.push_str(frame);
            }
            *folded.entry(line).or_default() += stack.time_ps;
        }
        folded.into_iter().map(|(line, ps)| format!("{line} {}\n", (ps + 500) / 1_000)).collect()
    }
}

impl Stack {
    fn path(&self) -> impl Iterator<Item = &str> {
        let own = self.frames.is_empty().then_some("main");
        own.into_iter().chain(self.frames.iter().map(String::as_str))
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

/// A tree of call chains, in which a node is one function. What is counted is where chains end.
#[derive(Clone, Debug, Default)]
struct Chain<'a> {
    ends_ps: u64,
    below: BTreeMap<&'a str, Chain<'a>>,
}

/// Functions that always follow each other, and what follows them.
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

    /// The branches worth `min_ps`, the heaviest first. A branch ends where chains part or one of them ends, be what goes
    /// on worth drawing or not.
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
        // Stable: equal ones stay in order of name.
        branches.sort_by_key(|branch| std::cmp::Reverse(branch.total_ps));
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
            let path: Vec<&str> = stack.path().collect();
            let (object, level) = if stack.frames.is_empty() { (stack.task.as_str(), '.') } else { (KERNEL, 'k') };
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
                    // A function that calls itself is counted once for a stack, at its outermost.
                    let entry = entries.entry(key(function)).or_default();
                    entry.children_ps += stack.time_ps;
                    entry.chains.add(&path[depth..], stack.time_ps);
                }
            }
        }
        let mut rows: Vec<_> = entries.into_iter().collect();
        // Stable: what is equal stays in order of task, object, symbol. Callers stand above what they call.
        rows.sort_by_cached_key(|(_, entry)| std::cmp::Reverse((entry.children_ps, entry.self_ps, entry.chains.depth())));
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
        // One chain that all the time goes through needs no percentage.
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

    /// `pipes` are the columns of the levels above, each 11 wide: a bar where that level goes on, else blank.
    fn draw(&self, f: &mut fmt::Formatter<'_>, branches: &[Branch<'_>], margin: &str, pipes: &str) -> fmt::Result {
        const GAP: &str = "          ";
        for (i, branch) in branches.iter().enumerate() {
            let bar = if i + 1 == branches.len() { ' ' } else { '|' };
            let percent = self.percent(branch.total_ps);
            writeln!(f, "{margin}{pipes}|{GAP}")?;
            let mut text = String::new();
            for (line, function) in branch.functions.iter().enumerate() {
                if line == 0 {
                    writeln!(text, "{margin}{pipes}{bar}--{percent:.2}%--{function}")?;
                } else {
                    writeln!(text, "{margin}{pipes}{bar}{GAP}{function}")?;
                }
            }
            f.write_str(&text)?;
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
