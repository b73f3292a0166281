//! Scripts as programs, and the figures of a replay.

use super::{Begin, Replay, Step, Task};
use crate::Instance;
use os::Os;
use os::sync::{SemaphoreId, SyncOp};
use sched::attr::SchedAttr;
use sched::sched::Policy;
use sim::engine::Sample;
use sim::program::{AddressSpace, Op, Outcome, Program, TaskSpec};
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use units::{CpuId, CpuMask, Ns};

/// The number of tasks with rows of their own: those with the most run time.
const MOST_ROWS: usize = 16;
/// The timer slack of a normal task. A recorded sleep already contains it.
const SLACK: Ns = Ns(50_000);
/// The time from the first task's start until the replay of the recording begins, and the time that each task adds.
const GRACE: Ns = Ns::from_ms(5);
const GRACE_EACH: Ns = Ns(50_000);
/// More CPU time than a task can get on any machine.
const MOST_CPU_TIME: u64 = 1 << 50;

/// One row of a replay's table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Row {
    pub label: String,
    /// The series that holds its one sample, in nanoseconds.
    series: u32,
}

/// The rows for all tasks together, in the order of their series.
const TOTALS: [&str; 7] = ["makespan", "run", "wait", "lat-50.0th", "lat-90.0th", "lat-99.0th", "lat-max"];
/// Thousandths of the latencies' rows.
const PERMILLE: [u64; 4] = [500, 900, 990, 1_000];
/// The rows for one task.
const OWN: [&str; 3] = ["run", "wait", "lat-99.0th"];

impl Replay {
    /// The rows. For all tasks together: the time until the last one's end, their CPU time, the time that is neither
    /// that nor sleep, and percentiles of wakeup latencies (from a wakeup, or the end of a sleep, to the task's next
    /// step). For those with the most run time, the same for each alone.
    pub fn table(&self) -> Vec<Row> {
        let totals = TOTALS.iter().zip(0..).map(|(label, series)| Row { label: label.to_string(), series });
        let own = OWN.iter().enumerate().flat_map(|(kind, label)| {
            let row = move |(at, task): (usize, &u32)| {
                let label = format!("{label}-{}", self.label(*task));
                Row { label, series: own_series(at, kind) }
            };
            self.measured().into_iter().enumerate().map(move |(at, task)| row((at, &task))).collect::<Vec<Row>>()
        });
        totals.chain(own).collect()
    }

    /// Tasks with rows of their own, the busiest first.
    fn measured(&self) -> Vec<u32> {
        let mut busiest: Vec<(u64, u32)> =
            self.tasks.iter().zip(0..).map(|(task, at)| (task.run_time().0, at)).collect();
        busiest.sort_by_key(|&(run, at)| (std::cmp::Reverse(run), at));
        busiest.into_iter().map(|(_, task)| task).take(MOST_ROWS).collect()
    }

    /// The task's name, with its index if several tasks have that name.
    fn label(&self, task: u32) -> String {
        let name = &self.tasks[task as usize].name;
        let alone = self.tasks.iter().filter(|other| other.name == *name).count() == 1;
        if alone { name.clone() } else { format!("{name}.{task}") }
    }
}

fn own_series(at: usize, kind: usize) -> u32 {
    (TOTALS.len() + at * OWN.len() + kind) as u32
}

impl Task {
    /// The CPU time of its script.
    pub fn run_time(&self) -> Ns {
        let run = |step: &Step| if let Step::Run(time) = *step { time.0 } else { 0 };
        Ns(self.steps.iter().map(run).fold(0, u64::saturating_add))
    }
}

/// A replay on a machine.
#[derive(Clone, Debug)]
pub struct Playback {
    replay: Replay,
    nr_cpus: usize,
}

impl Playback {
    /// # Panics
    /// If the recording names a CPU that the machine does not have ([`Replay::nr_cpus`]).
    pub fn new(replay: Replay, nr_cpus: usize) -> Playback {
        assert!(replay.nr_cpus() <= nr_cpus, "a recording of {} CPUs on {nr_cpus}", replay.nr_cpus());
        Playback { replay, nr_cpus }
    }

    pub fn replay(&self) -> &Replay {
        &self.replay
    }
}

impl Instance for Playback {
    fn start(&self, os: &mut Os) -> Vec<TaskSpec> {
        let shared = Rc::new(Shared::new(self, os));
        let there = |task: &(u32, &Task)| task.1.begin != Begin::Forked;
        let tasks = (0..).zip(&self.replay.tasks).filter(there);
        tasks.map(|(number, _)| shared.spec(number)).collect()
    }

    fn samples(&self, reported: &[Sample]) -> Vec<u64> {
        reported.iter().filter(|sample| sample.series == 0).map(|sample| sample.value).collect()
    }

    fn rows(&self, reported: &[Sample]) -> Vec<Vec<u64>> {
        let of = |row: &Row| {
            reported.iter().filter(|sample| sample.series == row.series).map(|sample| sample.value).collect()
        };
        self.replay.table().iter().map(of).collect()
    }
}

/// The wakeups of one task by another.
struct Pair {
    semaphore: SemaphoreId,
    /// The times of the wakeups that nobody has waited for yet.
    made: VecDeque<Ns>,
}

/// What the tasks of a run share.
struct Shared {
    replay: Replay,
    nr_cpus: usize,
    /// Waker and wakee of each pair, in order.
    pairs: Vec<(u32, u32)>,
    made: RefCell<Vec<Pair>>,
    /// By task: the index of its own rows.
    own_rows: BTreeMap<u32, usize>,
    measured: RefCell<Measured>,
}

#[derive(Default)]
struct Measured {
    /// When the replay of the recording begins.
    start: Option<Ns>,
    latencies: Vec<u64>,
    run: u64,
    wait: u64,
    ended: usize,
}

impl Shared {
    fn new(playback: &Playback, os: &mut Os) -> Shared {
        let replay = &playback.replay;
        let wakes = |(me, task): (u32, &Task)| {
            let wake = move |step: &Step| if let Step::Wake(wakee) = *step { Some((me, wakee)) } else { None };
            task.steps.iter().filter_map(wake).collect::<Vec<(u32, u32)>>()
        };
        let mut pairs: Vec<(u32, u32)> = (0..).zip(&replay.tasks).flat_map(wakes).collect();
        pairs.sort_unstable();
        pairs.dedup();
        let made = pairs.iter().map(|_| Pair { semaphore: os.create_semaphore(), made: VecDeque::new() }).collect();
        Shared {
            pairs,
            made: RefCell::new(made),
            own_rows: replay.measured().into_iter().zip(0..).collect(),
            measured: RefCell::default(),
            nr_cpus: playback.nr_cpus,
            replay: replay.clone(),
        }
    }

    fn pair(&self, waker: u32, wakee: u32) -> usize {
        self.pairs.binary_search(&(waker, wakee)).expect("each wait has its wakeup")
    }

    fn spec(self: &Rc<Self>, number: u32) -> TaskSpec {
        let task = &self.replay.tasks[number as usize];
        let memory = match task.process {
            _ if task.kernel => AddressSpace::Kernel,
            Some(process) => AddressSpace::Joined(process),
            None => AddressSpace::Own,
        };
        let player = Player::new(self.clone(), number);
        TaskSpec { attr: Some(attr(task.prio)), memory, ..TaskSpec::new(&task.name, player) }
    }
}

/// The attributes that a recorded priority stands for.
fn attr(prio: i32) -> SchedAttr {
    if prio >= 100 {
        return SchedAttr::fair(Policy::Normal, prio.min(139) - 120);
    }
    let sched_priority = (99 - prio).clamp(1, 99).cast_unsigned();
    SchedAttr { sched_policy: Policy::Fifo, sched_priority, ..SchedAttr::NORMAL }
}

#[derive(Clone, Copy)]
enum Stage {
    /// The task goes to the CPU where it was first recorded,
    Place,
    /// may leave from there,
    Unbind,
    /// and begins with the others.
    Begin,
    Ask,
    Asked,
    Steps,
    /// It waits for the pair's wakeup, and has slept since then.
    Waiting {
        pair: usize,
        since: Ns,
    },
    Sleeping {
        since: Ns,
        length: Ns,
    },
    Total,
    /// Figures are still to be reported.
    Report,
}

struct Player {
    shared: Rc<Shared>,
    me: u32,
    at: usize,
    stage: Stage,
    prio: i32,
    born: Ns,
    /// The task's CPU time when its script began, and the CPU time that the script has asked for.
    base: u64,
    asked: u64,
    slept: u64,
    latencies: Vec<u64>,
    figures: Vec<(u32, u64)>,
}

impl Player {
    fn new(shared: Rc<Shared>, me: u32) -> Player {
        let task = &shared.replay.tasks[me as usize];
        let (prio, forked) = (task.prio, task.begin == Begin::Forked);
        Player {
            me,
            at: 0,
            stage: if forked { Stage::Ask } else { Stage::Place },
            prio,
            born: Ns::ZERO,
            base: 0,
            asked: 0,
            slept: 0,
            latencies: Vec::new(),
            figures: Vec::new(),
            shared,
        }
    }

    fn task(&self) -> &Task {
        &self.shared.replay.tasks[self.me as usize]
    }

    /// When the replay of the recording begins; the first caller determines it.
    fn start(&self, now: Ns) -> Ns {
        let tasks = self.shared.replay.tasks.len() as u64;
        let start = &mut self.shared.measured.borrow_mut().start;
        *start.get_or_insert(now + GRACE + Ns(GRACE_EACH.0 * tasks))
    }

    fn step(&mut self, now: Ns) -> Option<Op> {
        let step = *self.task().steps.get(self.at)?;
        self.at += 1;
        Some(match step {
            Step::Run(time) => {
                self.asked = self.asked.saturating_add(time.0).min(MOST_CPU_TIME);
                Op::RunUntil(Ns(self.base + self.asked))
            }
            Step::Wake(wakee) => {
                let pair = self.shared.pair(self.me, wakee);
                let pair = &mut self.shared.made.borrow_mut()[pair];
                pair.made.push_back(now);
                Op::Sync(SyncOp::SemaphorePost(pair.semaphore))
            }
            Step::Wait(waker) => {
                let pair = self.shared.pair(waker, self.me);
                self.stage = Stage::Waiting { pair, since: now };
                Op::Sync(SyncOp::SemaphoreWait(self.shared.made.borrow()[pair].semaphore))
            }
            Step::Sleep(length) if length > SLACK || self.prio < 100 => {
                self.stage = Stage::Sleeping { since: now, length };
                // A real-time task's timers have no slack.
                Op::SleepFor(if self.prio < 100 { length } else { length - SLACK })
            }
            Step::Sleep(length) | Step::Io(length) => {
                self.stage = Stage::Sleeping { since: now, length };
                Op::BlockIo(length)
            }
            Step::Prio(prio) => {
                self.prio = prio;
                Op::SetAttr(Box::new(attr(prio)))
            }
            Step::Fork(child) => Op::Fork(Box::new(self.shared.spec(child))),
        })
    }

    /// The task, asleep since `since`, was woken at `woken` and runs again.
    fn woke(&mut self, since: Ns, woken: Ns, now: Ns) {
        // A wakeup before the sleep does not count.
        if woken > since {
            self.slept += (woken - since).0;
            self.latencies.push(now.saturating_sub(woken).0);
        }
    }

    /// Reports the task's figures at its end; after the last task also the totals.
    fn total(&mut self, run: u64, now: Ns) {
        // This is time in run queues, time on the way there (the interrupt, the end of the CPU's idling), and whatever
        // else is not the task's CPU time.
        let wait = (now - self.born).0.saturating_sub(run).saturating_sub(self.slept);
        if let Some(&row) = self.shared.own_rows.get(&self.me) {
            let own = [Some(run), Some(wait), percentile(&mut self.latencies, 990)];
            let own = own.into_iter().enumerate();
            self.figures.extend(own.filter_map(|(kind, value)| Some((own_series(row, kind), value?))));
        }
        let mut all = self.shared.measured.borrow_mut();
        all.run += run;
        all.wait += wait;
        all.latencies.append(&mut self.latencies);
        all.ended += 1;
        if all.ended == self.shared.replay.tasks.len() {
            let makespan = all.start.map_or(0, |start| now.saturating_sub(start).0);
            let latencies = PERMILLE.map(|permille| percentile(&mut all.latencies, permille));
            let totals = [Some(makespan), Some(all.run), Some(all.wait)].into_iter().chain(latencies);
            self.figures.extend(totals.zip(0..).filter_map(|(value, series)| Some((series, value?))));
        }
    }
}

/// The smallest value that at least so many thousandths of the values do not exceed; `None` if there are none.
fn percentile(values: &mut [u64], permille: u64) -> Option<u64> {
    values.sort_unstable();
    let rank = (values.len() as u64 * permille).div_ceil(1_000).max(1);
    values.get(rank as usize - 1).copied()
}

impl Program for Player {
    fn next(&mut self, last: Outcome) -> Op {
        loop {
            match self.stage {
                Stage::Place => {
                    self.start(last.now);
                    self.stage = if self.task().bound { Stage::Begin } else { Stage::Unbind };
                    return Op::SetAffinity(CpuMask::single(CpuId::new(self.task().cpu as usize)));
                }
                Stage::Unbind => {
                    self.stage = Stage::Begin;
                    return Op::SetAffinity(CpuMask::all(self.shared.nr_cpus));
                }
                Stage::Begin => {
                    self.stage = Stage::Ask;
                    if let Begin::At(time) = self.task().begin {
                        return Op::SleepUntil(self.start(last.now) + time);
                    }
                }
                Stage::Ask => {
                    self.stage = Stage::Asked;
                    return Op::RunUntil(Ns::ZERO);
                }
                Stage::Asked => {
                    self.base = last.value;
                    self.born = last.now;
                    self.stage = Stage::Steps;
                }
                Stage::Steps => match self.step(last.now) {
                    Some(op) => return op,
                    None => {
                        self.stage = Stage::Total;
                        return Op::RunUntil(Ns::ZERO);
                    }
                },
                Stage::Waiting { pair, since } => {
                    let woken = self.shared.made.borrow_mut()[pair].made.pop_front();
                    self.woke(since, woken.unwrap_or(since), last.now);
                    self.stage = Stage::Steps;
                }
                Stage::Sleeping { since, length } => {
                    self.woke(since, since + length, last.now);
                    self.stage = Stage::Steps;
                }
                Stage::Total => {
                    self.total(last.value - self.base, last.now);
                    self.stage = Stage::Report;
                }
                Stage::Report => match self.figures.pop() {
                    Some((series, value)) => return Op::Report { series, value },
                    None => return Op::Exit,
                },
            }
        }
    }
}
