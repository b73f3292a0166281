//! "The scheduler's statistics": the sums over a run's events.

use crate::histogram::Histogram;
use crate::pairs::{Pair, Pairs};
use crate::tasks::{Tasks, Who, cut_comm};
use sched::sched::{TaskId, TaskState};
use sched::trace::{Context, Event, Interrupt, Sink};
use std::collections::BTreeMap;
use std::fmt;
use units::{CpuId, Ns, PerCpu};

/// Counts while it listens. Memory: a histogram for each task name, the living tasks with the CPUs that each ran on,
/// and the pairs that wake each other.
///
/// A task *waits* from the moment it is queued (`sched_wakeup`, `sched_wakeup_new`, or a switch that leaves it
/// runnable) until it is switched to. Its *wakeup latency* begins earlier, at the decision to wake it (`sched_waking`).
pub struct Statistics {
    start: Ns,
    tasks: Tasks,
    living: Vec<Option<Living>>,
    cpus: PerCpu<CpuTime>,
    names: BTreeMap<String, NameTotals>,
    switches: u64,
    wakeups: u64,
    new_tasks: u64,
    migrations: u64,
    pairs: Pairs,
    /// That of the next event.
    context: Context,
}

#[derive(Clone, Debug, Default)]
struct CpuTime {
    busy: Ns,
    /// When the running task started to run.
    since: Ns,
}

#[derive(Clone, Copy, Debug, Default)]
struct Living {
    waking: Option<Ns>,
    queued: Option<Ns>,
    on_cpu: bool,
}

/// All tasks with the same name (`comm`), merged as `perf sched latency` does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NameTotals {
    /// How many tasks had the name.
    pub tasks: u64,
    /// The pid of the first of them.
    pub pid: u32,
    pub run: Ns,
    pub wait: Ns,
    /// How often one of them was switched to.
    pub switches: u64,
    pub migrations: u64,
    /// How often one of them was woken; its start does not count.
    pub wakeups: u64,
    /// From the decision to wake one, or from its start, until it runs.
    pub wakeup_latency: Histogram,
}

/// The sums at one moment. [`fmt::Display`] prints them as tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    pub duration: Ns,
    pub context_switches: u64,
    pub wakeups: u64,
    pub new_tasks: u64,
    pub migrations: u64,
    /// How long each CPU ran tasks other than the idle task.
    pub busy: Vec<Ns>,
    pub names: BTreeMap<String, NameTotals>,
    /// The pairs of tasks that woke each other most, with their names; the pair with most wakeups comes first.
    pub pairs: Vec<([String; 2], Pair)>,
    /// How many more wakeups each pair may have had: none, unless there were very many pairs.
    pub missing_wakeups: u64,
}

impl Statistics {
    /// `start` is when listening begins.
    pub fn new(nr_cpus: usize, start: Ns) -> Statistics {
        Statistics {
            start,
            tasks: Tasks::new(nr_cpus),
            living: Vec::new(),
            cpus: PerCpu::from_fn(nr_cpus, |_| CpuTime { busy: Ns::ZERO, since: start }),
            names: BTreeMap::new(),
            switches: 0,
            wakeups: 0,
            new_tasks: 0,
            migrations: 0,
            pairs: Pairs::default(),
            context: Context::default(),
        }
    }

    /// The sums up to `end`. Tasks that run or wait now are counted up to there.
    pub fn report(&self, end: Ns) -> Report {
        let mut pairs = self.pairs.clone();
        let mut names = self.names.clone();
        let mut busy: Vec<Ns> = self.cpus.iter().map(|(_, time)| time.busy).collect();
        for (cpu, time) in self.cpus.iter() {
            if let Some(task) = self.tasks.running(cpu) {
                let more = end.saturating_sub(time.since);
                busy[cpu.index()] += more;
                let who = self.tasks.who(Some(task), cpu);
                names.entry(who.comm.clone()).or_default().run += more;
                pairs.ran(who.pid, cpu, more);
            }
        }
        for (task, who) in self.tasks.iter() {
            if let Some(queued) = self.living[task.index()].and_then(|living| living.queued) {
                names.entry(who.comm.clone()).or_default().wait += end.saturating_sub(queued);
            }
        }
        Report {
            duration: end.saturating_sub(self.start),
            context_switches: self.switches,
            wakeups: self.wakeups,
            new_tasks: self.new_tasks,
            migrations: self.migrations,
            busy,
            names,
            missing_wakeups: pairs.missing(),
            pairs: pairs.told(),
        }
    }

    fn living(&mut self, task: TaskId) -> &mut Living {
        match self.living.get_mut(task.index()) {
            Some(Some(living)) => living,
            _ => panic!("an event mentions {task:?}, which was never announced or is gone"),
        }
    }

    fn totals(&mut self, task: TaskId) -> &mut NameTotals {
        let Who { comm, .. } = self.tasks.who(Some(task), CpuId(0));
        // entry() would copy the name each time.
        if !self.names.contains_key(comm) {
            self.names.insert(comm.clone(), NameTotals::default());
        }
        self.names.get_mut(comm).expect("inserted above")
    }

    fn switch(&mut self, time: Ns, cpu: CpuId, prev: Option<TaskId>, prev_state: TaskState, next: Option<TaskId>) {
        self.switches += 1;
        let ran = time.saturating_sub(self.cpus[cpu].since);
        self.cpus[cpu].since = time;
        if let Some(task) = prev {
            self.cpus[cpu].busy += ran;
            self.totals(task).run += ran;
            self.pairs.ran(self.tasks.who(Some(task), cpu).pid, cpu, ran);
            let living = self.living(task);
            living.on_cpu = false;
            if prev_state == TaskState::Running {
                living.queued = Some(time);
            }
        }
        if let Some(task) = next {
            let living = self.living(task);
            living.on_cpu = true;
            let (waking, queued) = (living.waking.take(), living.queued.take());
            let totals = self.totals(task);
            totals.switches += 1;
            if let Some(queued) = queued.or(waking) {
                totals.wait += time.saturating_sub(queued);
            }
            if let Some(waking) = waking {
                totals.wakeup_latency.record(time.saturating_sub(waking));
            }
        }
    }

    fn queued(&mut self, time: Ns, task: TaskId) {
        let living = self.living(task);
        if living.on_cpu {
            // It was woken before it had gone to sleep, so it never left its CPU.
            living.waking = None;
            return;
        }
        living.waking.get_or_insert(time);
        living.queued.get_or_insert(time);
    }
}

impl Sink for Statistics {
    fn event(&mut self, time: Ns, cpu: CpuId, event: &Event) {
        match *event {
            Event::SchedSwitch { prev, prev_state, next, .. } => self.switch(time, cpu, prev, prev_state, next),
            Event::SchedWaking { task, .. } => {
                self.living(task).waking.get_or_insert(time);
                // What an interrupt wakes has nothing to do with who runs there.
                let by_interrupt = self.context.interrupt == Interrupt::Hardirq;
                if let Some(waker) = self.tasks.running(cpu).filter(|_| !by_interrupt) {
                    let pid = |task| self.tasks.who(Some(task), cpu).pid;
                    self.pairs.woke(pid(waker), pid(task));
                }
            }
            Event::SchedWakeup { task, .. } => {
                self.wakeups += 1;
                self.totals(task).wakeups += 1;
                self.queued(time, task);
            }
            Event::SchedWakeupNew { task, .. } => {
                self.new_tasks += 1;
                self.queued(time, task);
            }
            Event::SchedMigrateTask { task, .. } => {
                self.migrations += 1;
                self.totals(task).migrations += 1;
            }
            _ => {}
        }
        self.context = Context::default();
        self.tasks.passed(cpu, event);
    }

    fn context(&mut self, context: Context) {
        self.context = context;
    }

    fn task(&mut self, task: TaskId, pid: u32, comm: &str, prio: i32) {
        if task.index() >= self.living.len() {
            self.living.resize(task.index() + 1, None);
        }
        let known = self.living[task.index()].is_some();
        if known && self.tasks.who(Some(task), CpuId(0)).comm == cut_comm(comm) {
            return;
        }
        self.tasks.task(task, pid, comm, prio);
        self.pairs.named(pid, cut_comm(comm));
        self.living[task.index()].get_or_insert_default();
        let totals = self.totals(task);
        totals.tasks += 1;
        if totals.tasks == 1 {
            totals.pid = pid;
        }
    }

    fn task_gone(&mut self, task: TaskId) {
        if self.living.get(task.index()).is_some_and(Option::is_some) {
            self.pairs.gone(self.tasks.who(Some(task), CpuId(0)).pid);
        }
        self.tasks.task_gone(task);
        if let Some(living) = self.living.get_mut(task.index()) {
            *living = None;
        }
    }
}

/// Rates and percentages for printing.
fn per(part: u64, whole: u64, scale: f64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 * scale / whole as f64 }
}

fn ms(time: Ns) -> String {
    format!("{:.3}", per(time.0, 1_000_000, 1.0))
}

fn us(time: Ns) -> String {
    format!("{:.1}", per(time.0, 1_000, 1.0))
}

impl Report {
    fn write_totals(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows = [
            ("context switches", self.context_switches),
            ("wakeups", self.wakeups),
            ("new tasks", self.new_tasks),
            ("migrations", self.migrations),
        ];
        writeln!(f, "Scheduler statistics of {} ms on {} CPUs", ms(self.duration), self.busy.len())?;
        writeln!(f)?;
        writeln!(f, "{:<18}{:>14}{:>14}", "", "count", "per second")?;
        for (name, count) in rows {
            writeln!(f, "{name:<18}{count:>14}{:>14.1}", per(count, self.duration.0, 1e9))?;
        }
        Ok(())
    }

    fn write_busy(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const ACROSS: usize = 8;
        let percent = |busy: &Ns| per(busy.0, self.duration.0, 100.0);
        let all: u64 = self.busy.iter().map(|busy| busy.0).sum();
        let mean = per(all, self.duration.0, 100.0) / self.busy.len().max(1) as f64;
        let lowest = self.busy.iter().min().map_or(0.0, percent);
        let highest = self.busy.iter().max().map_or(0.0, percent);
        writeln!(f, "CPUs busy, % of the time: mean {mean:.1}, lowest {lowest:.1}, highest {highest:.1}")?;
        let cells = |busy: &[Ns]| busy.iter().map(|busy| format!("{:>8.1}", percent(busy))).collect::<String>();
        let rows: Vec<String> = self.busy.chunks(ACROSS).map(cells).collect();
        let mut first = 0;
        for equal in rows.chunk_by(|one, next| one == next) {
            writeln!(f, "{:<8}{}", format!("cpu{}", first * ACROSS), equal[0])?;
            // On a machine with thousands of CPUs most may be idle.
            if equal.len() > 1 {
                let (next, last) = ((first + 1) * ACROSS, (first + equal.len()) * ACROSS - 1);
                writeln!(f, "cpu{next} to cpu{last}: the same")?;
            }
            first += equal.len();
        }
        Ok(())
    }

    fn write_names(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let label = |(comm, totals): (&String, &NameTotals)| match totals.tasks {
            1 => format!("{comm}:{}", totals.pid),
            tasks => format!("{comm}:({tasks})"),
        };
        let labels: Vec<String> = self.names.iter().map(label).collect();
        let width = labels.iter().map(String::len).max().unwrap_or(0).max("task".len());
        writeln!(
            f,
            "{:<width$}{:>14}{:>14}{:>12}{:>12}{:>12}{:>10}{:>10}{:>10}{:>10}",
            "task", "run ms", "wait ms", "switches", "migrations", "wakeups", "p50 us", "p90 us", "p99 us", "max us"
        )?;
        for (label, totals) in labels.iter().zip(self.names.values()) {
            let latency = &totals.wakeup_latency;
            writeln!(
                f,
                "{label:<width$}{:>14}{:>14}{:>12}{:>12}{:>12}{:>10}{:>10}{:>10}{:>10}",
                ms(totals.run),
                ms(totals.wait),
                totals.switches,
                totals.migrations,
                totals.wakeups,
                us(latency.percentile(50, 100)),
                us(latency.percentile(90, 100)),
                us(latency.percentile(99, 100)),
                us(latency.max())
            )?;
        }
        Ok(())
    }
}

impl Report {
    fn write_pairs(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let label =
            |([one, other], pair): &([String; 2], Pair)| format!("{one}:{} and {other}:{}", pair.pids.0, pair.pids.1);
        let labels: Vec<String> = self.pairs.iter().map(label).collect();
        let width = labels.iter().map(String::len).max().unwrap_or(0).max("pair".len());
        writeln!(
            f,
            "{:<width$}{:>12}{:>12}{:>8}{:>16}{:>14}",
            "pair", "wakeups", "per second", "CPUs", "busiest CPU, %", "run ms"
        )?;
        for (label, (_, pair)) in labels.iter().zip(&self.pairs) {
            writeln!(
                f,
                "{label:<width$}{:>12}{:>12.1}{:>8}{:>16.1}{:>14}",
                pair.wakeups,
                per(pair.wakeups, self.duration.0, 1e9),
                pair.cpus,
                per(pair.busiest.0, pair.run.0, 100.0),
                ms(pair.run)
            )?;
        }
        Ok(())
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write_totals(f)?;
        writeln!(f)?;
        self.write_busy(f)?;
        writeln!(f)?;
        writeln!(
            f,
            "Tasks of one name together; p50 to max: from the decision to wake one, or its start, until it runs, lower is better"
        )?;
        self.write_names(f)?;
        if self.pairs.is_empty() {
            return Ok(());
        }
        writeln!(f)?;
        let missing = match self.missing_wakeups {
            0 => String::new(),
            missing => format!("; up to {missing} wakeups of each pair are not counted"),
        };
        writeln!(f, "Tasks that wake each other most; CPUs: those that hold 99% of their time{missing}")?;
        self.write_pairs(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: u64 = 1_000;

    fn switch(prev: Option<u32>, prev_state: TaskState, next: Option<u32>) -> Event {
        Event::SchedSwitch { prev: prev.map(TaskId), prev_state, preempt: false, next: next.map(TaskId) }
    }

    fn waking(task: u32) -> Event {
        Event::SchedWaking { task: TaskId(task), target_cpu: CpuId(0) }
    }

    fn wakeup(task: u32) -> Event {
        Event::SchedWakeup { task: TaskId(task), target_cpu: CpuId(0) }
    }

    fn listen(events: &[(u64, u16, Event)]) -> Statistics {
        let mut statistics = Statistics::new(2, Ns::ZERO);
        for (id, comm) in ["ping", "pong", "hackbench", "hackbench"].into_iter().enumerate() {
            statistics.task(TaskId(id as u32), 101 + id as u32, comm, 120);
        }
        for (us, cpu, event) in events {
            statistics.event(Ns(us * US), CpuId(*cpu), event);
        }
        statistics
    }

    const R: TaskState = TaskState::Running;
    const S: TaskState = TaskState::Interruptible;

    #[test]
    fn latency_runs_from_the_decision_and_waiting_from_the_queue() {
        let statistics = listen(&[
            (10, 0, waking(0)),
            (13, 1, wakeup(0)),
            (20, 1, switch(None, R, Some(0))),
            (50, 1, switch(Some(0), S, None)),
        ]);
        let ping = &statistics.report(Ns(100 * US)).names["ping"];
        assert_eq!((ping.run, ping.wait, ping.switches), (Ns(30 * US), Ns(7 * US), 1));
        assert_eq!((ping.wakeup_latency.count(), ping.wakeup_latency.max()), (1, Ns(10 * US)));
    }

    #[test]
    fn pairs_are_told_with_the_cpus_they_use() {
        let statistics = listen(&[
            (0, 0, switch(None, R, Some(0))),
            (5, 0, waking(1)),
            (6, 0, wakeup(1)),
            (7, 1, switch(None, R, Some(1))),
            (10, 0, switch(Some(0), S, None)),
            (15, 1, waking(0)),
            (20, 1, switch(Some(1), S, None)),
        ]);
        let text = statistics.report(Ns(1_000 * US)).to_string();
        let line = text.lines().last().expect("pairs come last");
        let cells: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(cells, ["ping:101", "and", "pong:102", "2", "2000.0", "2", "56.5", "0.023"]);
    }

    #[test]
    fn who_is_interrupted_wakes_nobody() {
        let mut statistics = listen(&[(0, 0, switch(None, R, Some(0)))]);
        statistics.context(Context { interrupt: Interrupt::Hardirq, ..Context::default() });
        statistics.event(Ns(5 * US), CpuId(0), &waking(1));
        statistics.event(Ns(6 * US), CpuId(0), &wakeup(1));
        assert!(statistics.report(Ns(100 * US)).pairs.is_empty());
        // The context is that of one event.
        statistics.event(Ns(7 * US), CpuId(0), &waking(1));
        assert_eq!(statistics.report(Ns(100 * US)).pairs.len(), 1);
    }

    #[test]
    fn a_preempted_task_waits_but_was_not_woken() {
        let statistics = listen(&[
            (0, 0, switch(None, R, Some(0))),
            (5, 0, switch(Some(0), R, Some(1))),
            (9, 0, switch(Some(1), S, Some(0))),
        ]);
        let report = statistics.report(Ns(20 * US));
        let ping = &report.names["ping"];
        assert_eq!((ping.run, ping.wait, ping.switches), (Ns(16 * US), Ns(4 * US), 2));
        assert_eq!(ping.wakeup_latency.count(), 0);
        assert_eq!(report.busy, [Ns(20 * US), Ns::ZERO]);
        assert_eq!((report.context_switches, report.wakeups), (3, 0));
    }

    #[test]
    fn a_task_woken_before_it_slept_had_no_latency() {
        let statistics = listen(&[
            (0, 0, switch(None, R, Some(0))),
            (5, 1, waking(0)),
            (6, 1, wakeup(0)),
            (9, 0, switch(Some(0), S, None)),
            (50, 1, waking(0)),
            (50, 1, wakeup(0)),
            (54, 0, switch(None, R, Some(0))),
        ]);
        let ping = &statistics.report(Ns(60 * US)).names["ping"];
        assert_eq!((ping.wakeup_latency.count(), ping.wakeup_latency.max()), (1, Ns(4 * US)));
    }

    #[test]
    fn a_waking_that_overtakes_the_switch_to_sleep_counts() {
        let statistics = listen(&[
            (0, 0, switch(None, R, Some(0))),
            (5, 1, waking(0)),
            (7, 0, switch(Some(0), S, None)),
            (8, 1, wakeup(0)),
            (11, 0, switch(None, R, Some(0))),
        ]);
        let ping = &statistics.report(Ns(11 * US)).names["ping"];
        assert_eq!((ping.wakeup_latency.max(), ping.wait), (Ns(6 * US), Ns(3 * US)));
    }

    #[test]
    fn a_report_in_the_middle_counts_what_runs_and_waits() {
        let statistics = listen(&[(0, 0, switch(None, R, Some(0))), (2, 0, waking(1)), (2, 0, wakeup(1))]);
        let report = statistics.report(Ns(10 * US));
        assert_eq!((report.names["ping"].run, report.names["pong"].wait), (Ns(10 * US), Ns(8 * US)));
        assert_eq!(statistics.report(Ns(10 * US)), report, "asking changes nothing");
    }

    #[test]
    fn the_dead_stay_in_the_sums_and_their_ids_are_used_again() {
        let mut statistics =
            listen(&[(0, 0, switch(None, R, Some(2))), (5, 0, switch(Some(2), TaskState::Dead, None))]);
        statistics.task_gone(TaskId(2));
        statistics.task(TaskId(2), 200, "hackbench", 120);
        statistics.event(Ns(6 * US), CpuId(0), &switch(None, R, Some(2)));
        let hackbench = &statistics.report(Ns(7 * US)).names["hackbench"];
        assert_eq!((hackbench.tasks, hackbench.pid, hackbench.run), (3, 103, Ns(6 * US)));
    }

    #[test]
    fn rows_of_cpus_that_were_as_busy_as_those_above_are_named_not_printed() {
        let mut report = listen(&[(150, 1, switch(None, R, Some(2)))]).report(Ns(200 * US));
        let grid = |report: &Report| {
            let text = report.to_string();
            let lines: Vec<&str> = text.lines().skip_while(|line| !line.starts_with("CPUs busy")).skip(1).collect();
            lines.into_iter().take_while(|line| !line.is_empty()).map(str::to_string).collect::<Vec<String>>()
        };
        report.busy = vec![Ns::ZERO; 64];
        report.busy[20] = Ns(200 * US);
        let idle = "     0.0".repeat(8);
        let busy = format!("{}   100.0{}", "     0.0".repeat(4), "     0.0".repeat(3));
        let expected = [
            format!("cpu0    {idle}"),
            "cpu8 to cpu15: the same".to_string(),
            format!("cpu16   {busy}"),
            format!("cpu24   {idle}"),
            "cpu32 to cpu63: the same".to_string(),
        ];
        assert_eq!(grid(&report), expected);
        // A shorter last row is not equal.
        report.busy = vec![Ns::ZERO; 20];
        assert_eq!(
            grid(&report)[1..],
            ["cpu8 to cpu15: the same".to_string(), format!("cpu16   {}", "     0.0".repeat(4))]
        );
    }

    #[test]
    fn the_tables_print() {
        let mut statistics = listen(&[
            (0, 0, waking(0)),
            (0, 0, wakeup(0)),
            (4, 0, switch(None, R, Some(0))),
            (100, 0, Event::SchedMigrateTask { task: TaskId(2), orig_cpu: CpuId(0), dest_cpu: CpuId(1) }),
            (100, 0, Event::SchedWakeupNew { task: TaskId(2), target_cpu: CpuId(1) }),
            (150, 1, switch(None, R, Some(2))),
        ]);
        statistics.task(TaskId(0), 101, "ping", 100);
        let expected = "\
Scheduler statistics of 0.200 ms on 2 CPUs

                           count    per second
context switches               2       10000.0
wakeups                        1        5000.0
new tasks                      1        5000.0
migrations                     1        5000.0

CPUs busy, % of the time: mean 61.5, lowest 25.0, highest 98.0
cpu0        98.0    25.0

Tasks of one name together; p50 to max: from the decision to wake one, or its start, until it runs, lower is better
task                 run ms       wait ms    switches  migrations     wakeups    p50 us    p90 us    p99 us    max us
hackbench:(2)         0.050         0.050           1           1           0      50.0      50.0      50.0      50.0
ping:101              0.196         0.004           1           0           1       4.0       4.0       4.0       4.0
pong:102              0.000         0.000           0           0           0       0.0       0.0       0.0       0.0
";
        assert_eq!(statistics.report(Ns(200 * US)).to_string(), expected);
    }
}
