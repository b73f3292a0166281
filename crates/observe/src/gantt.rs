//! An ASCII Gantt chart: a row for each CPU, a column for each slot of time.
//!
//! A cell shows which task held the CPU longest in its slot: its letter, or `.` for the idle task. Letters go to tasks
//! in the order of their first appearance, column by column, and in each column from the first CPU down: `A`-`Z`,
//! `a`-`z`, `0`-`9`, then `#` for all others.

use crate::tasks::Tasks;
use sched::sched::TaskId;
use sched::trace::{Event, Sink};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use units::{CpuId, Ns, PerCpu};

const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const IDLE: char = '.';
const NO_LETTER_LEFT: char = '#';

/// Draws the window `from..to`. Memory: one cell per CPU and column, and the tasks of the current slots.
pub struct Gantt {
    from: Ns,
    to: Ns,
    columns: usize,
    tasks: Tasks,
    rows: PerCpu<Row>,
    /// Names of the processes that have a cell.
    comms: BTreeMap<u32, String>,
}

#[derive(Clone, Debug, Default)]
struct Row {
    /// For each finished slot the process that gets its cell; 0 is idle.
    cells: Vec<u32>,
    /// Time of each process in the current slot, in order of appearance.
    slot: Vec<(u32, Ns)>,
    /// When the running task started to run (within the window).
    since: Ns,
    pid: u32,
    switched: bool,
}

/// What [`Gantt`] has seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    from: Ns,
    to: Ns,
    /// `cells[cpu][column]`: a process id, 0 is idle.
    cells: Vec<Vec<u32>>,
    comms: BTreeMap<u32, String>,
}

impl Gantt {
    /// # Panics
    /// If the window is empty, or has no columns, or more columns than nanoseconds.
    pub fn new(nr_cpus: usize, from: Ns, to: Ns, columns: usize) -> Gantt {
        assert!(from < to, "the window from {from} to {to} is empty");
        assert!(columns > 0 && columns as u64 <= (to - from).0, "{columns} columns for {}", to - from);
        let row = Row { since: from, ..Row::default() };
        Gantt {
            from,
            to,
            columns,
            tasks: Tasks::new(nr_cpus),
            rows: PerCpu::from_fn(nr_cpus, |_| row.clone()),
            comms: BTreeMap::new(),
        }
    }

    /// Tasks that run now keep running until the window's end.
    pub fn finish(mut self) -> Picture {
        for cpu in (0..self.rows.len()).map(CpuId::new) {
            self.run_until(cpu, self.to);
        }
        let cells: Vec<Vec<u32>> = self.rows.iter().map(|(_, row)| row.cells.clone()).collect();
        let shown: BTreeSet<u32> = cells.iter().flatten().copied().collect();
        self.comms.retain(|pid, _| shown.contains(pid));
        Picture { from: self.from, to: self.to, cells, comms: self.comms }
    }

    /// Slots divide the window evenly, to the nanosecond.
    fn slot_end(&self, column: usize) -> Ns {
        let length = u128::from((self.to - self.from).0);
        self.from + Ns((length * (column as u128 + 1) / self.columns as u128) as u64)
    }

    fn run_until(&mut self, cpu: CpuId, time: Ns) {
        let time = time.min(self.to);
        while self.rows[cpu].since < time {
            let slot_end = self.slot_end(self.rows[cpu].cells.len());
            let row = &mut self.rows[cpu];
            let until = slot_end.min(time);
            row.add(until - row.since);
            row.since = until;
            if until == slot_end {
                row.close_slot();
            }
        }
    }
}

impl Row {
    fn add(&mut self, time: Ns) {
        match self.slot.iter_mut().find(|(pid, _)| *pid == self.pid) {
            Some((_, total)) => *total += time,
            None => self.slot.push((self.pid, time)),
        }
    }

    /// If times are equal the earlier task wins, but never the idle task.
    fn close_slot(&mut self) {
        let order = |&(pid, time): &(u32, Ns)| (time, pid != 0);
        let mut winner = (0, Ns::ZERO);
        for entry in self.slot.drain(..) {
            if order(&entry) > order(&winner) {
                winner = entry;
            }
        }
        self.cells.push(winner.0);
    }
}

impl Sink for Gantt {
    fn event(&mut self, time: Ns, cpu: CpuId, event: &Event) {
        let Event::SchedSwitch { prev, next, .. } = event else { return };
        // Only a CPU's first switch tells which task ran before it.
        if !self.rows[cpu].switched {
            self.rows[cpu].switched = true;
            self.rows[cpu].pid = self.tasks.who(*prev, cpu).pid;
        }
        for task in [prev, next].into_iter().flatten() {
            let who = self.tasks.who(Some(*task), cpu);
            if !self.comms.contains_key(&who.pid) && time < self.to {
                self.comms.insert(who.pid, who.comm.clone());
            }
        }
        self.run_until(cpu, time);
        self.rows[cpu].pid = self.tasks.who(*next, cpu).pid;
    }

    fn task(&mut self, task: TaskId, pid: u32, comm: &str, prio: i32) {
        self.tasks.task(task, pid, comm, prio);
    }

    fn task_gone(&mut self, task: TaskId) {
        self.tasks.task_gone(task);
    }
}

impl Picture {
    /// How many cells show a process.
    pub fn cells_of(&self, pid: u32) -> usize {
        self.cells.iter().flatten().filter(|&&cell| cell == pid).count()
    }

    /// Process ids in the order in which they get letters.
    fn order(&self) -> Vec<u32> {
        let columns = self.cells.first().map_or(0, Vec::len);
        let (mut order, mut seen) = (Vec::new(), BTreeSet::from([0]));
        for column in 0..columns {
            order.extend(self.cells.iter().map(|row| row[column]).filter(|&pid| seen.insert(pid)));
        }
        order
    }

    fn rows(&self, order: &[u32]) -> Vec<String> {
        let letters: BTreeMap<u32, u8> = order.iter().copied().zip(LETTERS.iter().copied()).collect();
        let letter = |pid: &u32| match letters.get(pid) {
            _ if *pid == 0 => IDLE,
            Some(&letter) => char::from(letter),
            None => NO_LETTER_LEFT,
        };
        self.cells.iter().map(|row| row.iter().map(letter).collect()).collect()
    }

    /// The rows, and the tasks of the letters, without a time axis: the form of expected pictures in tests.
    ///
    /// ```text
    /// 0 AAAA..BB
    /// 1 ..BBBB..
    /// A=ping/101 B=pong/102
    /// ```
    pub fn picture(&self) -> String {
        let order = self.order();
        let width = (self.cells.len().max(1) - 1).to_string().len();
        let mut out = String::new();
        for (cpu, row) in self.rows(&order).iter().enumerate() {
            out.push_str(&format!("{cpu:>width$} {row}\n"));
        }
        let legend: Vec<String> = order
            .iter()
            .zip(LETTERS)
            .map(|(pid, letter)| format!("{}={}/{pid}", char::from(*letter), self.comms[pid]))
            .collect();
        if !legend.is_empty() {
            out.push_str(&legend.join(" "));
            out.push('\n');
        }
        out
    }

    /// Two lines: times above every tenth (or twentieth ...) column, and marks below them.
    fn axis(&self, left: usize, columns: usize, unit: Unit) -> String {
        let at = |column: usize| {
            let length = u128::from((self.to - self.from).0);
            unit.show(self.from + Ns((length * column as u128 / columns as u128) as u64))
        };
        let fits = |step: &usize| (0..=columns).step_by(*step).all(|column| at(column).len() < *step);
        let step = (1..).map(|tens| tens * 10).find(fits).unwrap_or(columns);
        let (mut times, mut marks) = (" ".repeat(left), " ".repeat(left));
        for column in (0..=columns).step_by(step) {
            times.push_str(&format!("{:<step$}", at(column)));
            marks.push_str(&format!("{:<step$}", "|"));
        }
        format!("{} {}\n{}\n", times.trim_end(), unit.name(), marks.trim_end())
    }
}

/// Prints a time axis too, and a legend with one line for each task.
impl fmt::Display for Picture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let order = self.order();
        let columns = self.cells.first().map_or(0, Vec::len);
        let unit = if self.to - self.from < Ns::from_ms(10) { Unit::Microseconds } else { Unit::Milliseconds };
        let left = format!("cpu{}", self.cells.len().max(1) - 1).len() + 1;
        f.write_str(&self.axis(left, columns, unit))?;
        for (cpu, row) in self.rows(&order).iter().enumerate() {
            writeln!(f, "{:<left$}{row}", format!("cpu{cpu}"))?;
        }
        let comm_width = order.iter().map(|pid| self.comms[pid].len()).max().unwrap_or(0);
        writeln!(f)?;
        for (pid, letter) in order.iter().zip(LETTERS) {
            writeln!(f, "{}  {:<comm_width$}  pid {pid}", char::from(*letter), self.comms[pid])?;
        }
        if order.len() > LETTERS.len() {
            writeln!(f, "{NO_LETTER_LEFT}  {} more tasks", order.len() - LETTERS.len())?;
        }
        writeln!(f, "{IDLE}  idle")
    }
}

#[derive(Clone, Copy)]
enum Unit {
    Microseconds,
    Milliseconds,
}

impl Unit {
    fn name(self) -> &'static str {
        match self {
            Unit::Microseconds => "us",
            Unit::Milliseconds => "ms",
        }
    }

    /// At most three decimals, truncated, without zeros at the end.
    fn show(self, time: Ns) -> String {
        let thousandths = match self {
            Unit::Microseconds => time.0,
            Unit::Milliseconds => time.0 / 1_000,
        };
        let exact = format!("{}.{:03}", thousandths / 1_000, thousandths % 1_000);
        exact.trim_end_matches('0').trim_end_matches('.').to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sched::sched::TaskState;

    fn gantt(nr_cpus: usize, from: Ns, to: Ns, columns: usize) -> Gantt {
        let mut gantt = Gantt::new(nr_cpus, from, to, columns);
        for (id, comm) in ["ping", "pong", "kworker/0:1"].into_iter().enumerate() {
            gantt.task(TaskId(id as u32), 101 + id as u32, comm, 120);
        }
        gantt
    }

    fn switch(gantt: &mut Gantt, time: Ns, cpu: u16, prev: Option<u32>, next: Option<u32>) {
        let (prev, next) = (prev.map(TaskId), next.map(TaskId));
        let event = Event::SchedSwitch { prev, prev_state: TaskState::Running, preempt: false, next };
        gantt.event(time, CpuId(cpu), &event);
    }

    #[test]
    fn two_tasks_take_turns() {
        let mut gantt = gantt(2, Ns::ZERO, Ns::from_us(8), 8);
        switch(&mut gantt, Ns::from_us(2), 1, None, Some(1));
        switch(&mut gantt, Ns::from_us(2), 0, None, Some(0));
        switch(&mut gantt, Ns::from_us(4), 0, Some(0), Some(2));
        switch(&mut gantt, Ns::from_us(5), 0, Some(2), Some(0));
        switch(&mut gantt, Ns::from_us(6), 1, Some(1), None);
        let picture = gantt.finish().picture();
        assert_eq!(picture, "0 ..AACAAA\n1 ..BBBB..\nA=ping/101 B=pong/102 C=kworker/0:1/103\n");
    }

    #[test]
    fn the_longest_in_a_slot_wins_and_a_task_wins_over_idle() {
        let mut gantt = gantt(1, Ns::ZERO, Ns(40), 4);
        switch(&mut gantt, Ns(5), 0, None, Some(0));
        switch(&mut gantt, Ns(10), 0, Some(0), Some(1));
        switch(&mut gantt, Ns(13), 0, Some(1), Some(0));
        switch(&mut gantt, Ns(15), 0, Some(0), Some(1));
        switch(&mut gantt, Ns(17), 0, Some(1), Some(2));
        switch(&mut gantt, Ns(24), 0, Some(2), None);
        assert_eq!(gantt.finish().picture(), "0 AB..\nA=ping/101 B=pong/102\n");
    }

    #[test]
    fn a_window_opens_with_whoever_ran_before_and_ends_where_it_ends() {
        let mut gantt = gantt(1, Ns(100), Ns(200), 10);
        switch(&mut gantt, Ns(20), 0, None, Some(1));
        switch(&mut gantt, Ns(150), 0, Some(1), Some(0));
        switch(&mut gantt, Ns(250), 0, Some(0), Some(2));
        assert_eq!(gantt.finish().picture(), "0 AAAAABBBBB\nA=pong/102 B=ping/101\n");
    }

    #[test]
    fn what_ran_before_the_first_switch_seen_is_its_prev() {
        let mut gantt = gantt(2, Ns::ZERO, Ns(4), 4);
        switch(&mut gantt, Ns(2), 0, Some(1), None);
        assert_eq!(gantt.finish().picture(), "0 AA..\n1 ....\nA=pong/102\n");
    }

    #[test]
    fn slots_that_do_not_divide_the_window_still_fill_it() {
        let mut gantt = gantt(1, Ns::ZERO, Ns(10), 3);
        switch(&mut gantt, Ns(0), 0, None, Some(0));
        assert_eq!(gantt.finish().picture(), "0 AAA\nA=ping/101\n");
    }

    #[test]
    fn the_chart_has_an_axis_and_a_legend() {
        let mut gantt = gantt(11, Ns::from_us(500), Ns::from_us(2_500), 40);
        switch(&mut gantt, Ns::from_us(600), 0, None, Some(0));
        switch(&mut gantt, Ns::from_us(1_600), 0, Some(0), None);
        switch(&mut gantt, Ns::from_us(1_000), 10, None, Some(2));
        let chart = gantt.finish().to_string();
        let lines: Vec<&str> = chart.lines().collect();
        assert_eq!(lines[0], "      500       1000      1500      2000      2500 us");
        assert_eq!(lines[1], "      |         |         |         |         |");
        assert_eq!(lines[2], "cpu0  ..AAAAAAAAAAAAAAAAAAAA..................");
        assert_eq!(lines[3], "cpu1  ........................................");
        assert_eq!(lines[12], "cpu10 ..........BBBBBBBBBBBBBBBBBBBBBBBBBBBBBB");
        assert_eq!(lines[13..], ["", "A  ping         pid 101", "B  kworker/0:1  pid 103", ".  idle"]);
    }

    #[test]
    fn long_times_take_wider_steps_of_the_axis() {
        let gantt = gantt(1, Ns(1_234_567_891_000), Ns(1_234_667_891_000), 40);
        let chart = gantt.finish().to_string();
        assert!(chart.starts_with("     1234567.891         1234617.891         1234667.891 ms\n"), "{chart}");
    }

    #[test]
    fn letters_run_out_visibly() {
        let mut gantt = Gantt::new(1, Ns::ZERO, Ns(64), 64);
        for id in 0..64 {
            gantt.task(TaskId(id), 1 + id, "t", 120);
            let prev = id.checked_sub(1);
            switch(&mut gantt, Ns(u64::from(id)), 0, prev, Some(id));
        }
        let picture = gantt.finish();
        assert!(picture.picture().starts_with("0 ABC"));
        assert!(picture.picture().contains("789##\n"));
        assert!(picture.to_string().contains("\n#  2 more tasks\n"));
    }

    #[test]
    #[should_panic(expected = "is empty")]
    fn an_empty_window_is_refused() {
        gantt(1, Ns(5), Ns(5), 1);
    }
}
