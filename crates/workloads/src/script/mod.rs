//! Scripts: tasks described in a few lines of text, for cases that no benchmark has. Scenarios and fidelity cases are
//! written in it.
//!
//! ```text
//! group /above: cpu.weight 300; cpu.max 50000 100000
//! # name   how it starts: what it does, in order
//! task hog nice=5 cpus=0 count=3: until 100ms; spin 10s
//! task a group=/above/below: 1000 x (run 1ms; write there; read back)
//! task b at=2ms cpus=0-1: 1000 x (read there; write back)
//! task irq policy=fifo/50: 100 x (sleep 1ms; run 50us)
//! ```
//!
//! | step | what the task does |
//! |---|---|
//! | `run T` | user-mode work until it has had that much CPU time |
//! | `work T` | user-mode work that a CPU alone on its core does in that time: takes longer beside a busy sibling or at a lower frequency |
//! | `spin T` | looks at the clock until it shows `T` since the start; its last look comes at most 1 ms late |
//! | `sleep T` | sleeps so long |
//! | `io T` | reads a block device that answers after so long, past the page cache |
//! | `until T` | sleeps until `T` since the start |
//! | `every T` | sleeps until `T` after the end of its last `every` or `until`: a period that does not drift |
//! | `yield` | sched_yield() |
//! | `cond_resched`, `might_sleep` | where a kernel thread may be preempted by kernels that are not built to preempt it anywhere |
//! | `enter /GROUP` | moves to the task group of that path, `/` being the root |
//! | `exec` | execve(): the task may be moved to an idler CPU first; its memory stays what it was |
//! | `setsid` | begins a session of its own, and with it an autogroup |
//! | `autogroup N` | gives its session's autogroup the nice level N |
//! | `cpus LIST` | sched_setaffinity(): from now on it may run on these only; refused, the task ends |
//! | `policy P` | sched_setattr() of a policy as `policy=` names them; refused, the task ends |
//! | `clamp MIN MAX` | sched_setattr() of utilization clamps: 0 to 1024, or `none`; refused, the task ends |
//! | `read P`, `write P` | one byte from or to the pipe of that name, which all tasks share |
//! | `lock X`, `unlock X` | pthread_mutex_lock() or unlock() of the mutex of that name |
//! | `touch M R` | from now on it touches so much of the memory `M` in each second of its run time |
//! | `leave M` | touches it no longer |
//! | `N x (...)` | the steps in the parentheses, N times |
//!
//! Times are whole numbers with `ns`, `us`, `ms` or `s`. A task is a process of its own or, with `kind=kthread`, a
//! kernel thread. `at=` is when it is forked (from the start). `on=` is the CPU that forks it (0 by default; only
//! scenarios, which place their tasks, use it). `count=N` makes N such tasks, named `hog0`, `hog1`, and so on.
//! `policy=` is `normal`, `batch`, `idle`, or `fifo/N` or `rr/N` with a priority from 1 to 99, or
//! `deadline/RUNTIME/DEADLINE/PERIOD` (no period: the deadline), or `reclaim/...` for the same with SCHED_FLAG_RECLAIM.
//! `group=` is the task group it starts in. `work=memory` says that its work mostly waits for memory. `set=8MB
//! lines=20` says that it uses 8 MB again and again, and fetches 20 lines of it from beyond its core's caches in 1000
//! cycles (without `set=`: of all that it touches). `session=` is the session of that name; its first task begins the
//! session, as `setsid` does.
//!
//! A `memory NAME SIZE` line declares memory that tasks touch. Its pages lie where they were touched first, or with
//! `node=N` on that node from the start; `pinned` pages cannot be moved. `process=NAME` makes tasks threads of one
//! process; memory that several processes touch is shared between them. Sizes are whole numbers with `KB`, `MB` or
//! `GB`, rates the same with `/s`.
//!
//! A `mutex NAME` line declares a mutex that tasks share. With `inherit` its waiters lend their priority to the owner,
//! as with PTHREAD_PRIO_INHERIT (a deadline task lends its deadline and budget).
//!
//! A `group` line writes into a group's files, as `echo 300 > cpu.weight` does, and creates the group. Starting a task
//! with `group=` creates that group too, if it does not exist. A task can `enter` only a group that was created in one
//! of these ways, or an ancestor of one.

mod groups;
mod keys;
mod listing;
mod parse;
mod reader;
mod run;

pub use parse::ScriptError;
pub use run::{Playing, Refused};

use crate::groups::{GroupError, GroupSpec, with_those_above};
use machine::smt::WorkKind;
use os::Os;
use os::memory::{RegionId, RegionSpec};
use os::pipe::PipeId;
use os::sync::MutexId;
use sched::attr::SchedAttr;
use sched::autogroup::Session;
use sched::core::cgroup::GroupFile;
use sched::sched::TgId;
use sim::program::{AddressSpace, TaskSpec};
use std::sync::Arc;
use units::{CpuId, CpuMask, Ns};

/// A parsed script.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Script {
    /// The tasks in the order of the text; a line with `count=` stands for that many.
    pub tasks: Vec<Task>,
    /// Names of the pipes, in the order of their first mention.
    pub pipes: Vec<String>,
    /// Task groups, in the order of their first mention: those with a line of their own, and those that tasks name.
    pub groups: Vec<Group>,
    /// Names of the sessions, in the order of their first mention.
    pub sessions: Vec<String>,
    /// Names of the processes with several tasks, in the order of their first mention.
    pub processes: Vec<String>,
    pub memory: Vec<Region>,
    pub mutexes: Vec<Mutex>,
    /// The CPU lists of steps, each as it stands in the text.
    pub affinities: Vec<Affinity>,
}

/// The CPUs of a step, and the position in the script: line and column, both from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Affinity {
    pub cpus: CpuMask,
    pub place: (u32, u32),
}

/// Memory that tasks touch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    pub name: String,
    pub spec: RegionSpec,
    /// The position of its node in the script, or else of its name: line and column, both from 1.
    pub place: (u32, u32),
}

/// A mutex that tasks share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mutex {
    pub name: String,
    /// Priority inheritance.
    pub inherit: bool,
}

/// One task group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    pub path: String,
    pub files: Vec<GroupLine>,
    /// Whether a line of its own creates it, or a task that starts in it; otherwise tasks only enter it.
    pub made: bool,
    pub line: u32,
    pub column: u32,
}

/// A text to write into a file of a group, and its position in the script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupLine {
    pub file: GroupFile,
    pub text: String,
    pub line: u32,
    pub column: u32,
}

/// One task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    pub name: String,
    /// Policy, nice level, and the slice that it asks for.
    pub attr: SchedAttr,
    /// `None`: all CPUs.
    pub cpus: Option<CpuMask>,
    /// The position of its first line in the script, or of its CPUs if it names some: line and column, both from 1.
    pub place: (u32, u32),
    /// The CPU that forks it, if the reader of the script places tasks.
    pub on: CpuId,
    /// When it is forked, from the start.
    pub at: Ns,
    /// The task group it starts in; `/` is the root. `None`: the group that the script is started in.
    pub group: Option<String>,
    /// The session it joins, an index into the script's; `None`: the session that the script is started in.
    pub session: Option<u32>,
    /// A process of its own, a thread of one with several tasks, or a kernel thread.
    pub memory: AddressSpace,
    /// What its work mostly does.
    pub kind: WorkKind,
    /// Bytes that it uses again and again, and how many lines of them it fetches from beyond its core's caches in 1000
    /// cycles.
    pub working_set: u64,
    pub lines: u32,
    steps: Arc<[Step]>,
    /// Line and column of each step, both from 1.
    places: Arc<[(u32, u32)]>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    Run(Ns),
    Work(Ns),
    Spin(Ns),
    Sleep(Ns),
    Io(Ns),
    Until(Ns),
    Every(Ns),
    Yield,
    CondResched,
    MightSleep,
    Setsid,
    Exec,
    Autogroup(i32),
    /// Index of a group in the script; `None` is the root.
    Enter(Option<u32>),
    /// A policy, or clamps. A policy keeps the task's nice level, whatever stands here.
    Attr(SchedAttr),
    Nice(i32),
    /// Index of a CPU list in the script.
    Cpus(u32),
    Read(u32),
    Write(u32),
    /// Indices of mutexes in the script.
    Lock(u32),
    Unlock(u32),
    /// Index of a memory in the script, and bytes touched in each second.
    Touch {
        region: u32,
        rate: u64,
    },
    /// Goes back to the step at `to` until the loop has run `times` times.
    Again {
        to: u32,
        times: u32,
    },
}

/// What the tasks of one run share.
#[derive(Clone, Debug)]
pub struct Shared {
    pipes: Vec<PipeId>,
    regions: Vec<RegionId>,
    mutexes: Vec<MutexId>,
    /// Ids of the script's groups.
    groups: Vec<TgId>,
    affinities: Arc<[CpuMask]>,
    names: Arc<Names>,
    start: Ns,
    nr_tasks: u32,
}

/// The script's names for what its tasks may wait for.
#[derive(Debug)]
struct Names {
    tasks: Vec<String>,
    pipes: Vec<String>,
    mutexes: Vec<String>,
}

impl Script {
    /// Reads a script. `first_line` is the number of the text's first line in its file.
    pub fn parse(text: &str, first_line: u32) -> Result<Script, ScriptError> {
        parse::parse(text, first_line)
    }

    /// Creates what the tasks share. `until`, `spin` and `at=` count from the moment `start`. `groups` are the ids of
    /// [`Script::groups`].
    pub fn share(&self, os: &mut Os, groups: Vec<TgId>, start: Ns) -> Shared {
        let pipes = self.pipes.iter().map(|_| os.create_pipe()).collect();
        Shared {
            pipes,
            regions: self.create_memory(os),
            mutexes: self.create_mutexes(os),
            groups,
            affinities: self.affinities.iter().map(|affinity| affinity.cpus.clone()).collect(),
            names: Arc::new(Names {
                tasks: self.tasks.iter().map(|task| task.name.clone()).collect(),
                pipes: self.pipes.clone(),
                mutexes: self.mutexes.iter().map(|mutex| mutex.name.clone()).collect(),
            }),
            start,
            nr_tasks: self.tasks.len() as u32,
        }
    }

    fn create_memory(&self, os: &mut Os) -> Vec<RegionId> {
        self.memory.iter().map(|region| os.memory.create_region(region.spec)).collect()
    }

    fn create_mutexes(&self, os: &mut Os) -> Vec<MutexId> {
        self.mutexes.iter().map(|mutex| if mutex.inherit { os.create_pi_mutex() } else { os.create_mutex() }).collect()
    }

    /// The script's groups, without ancestors that it does not name, and what it writes into their files, in the order of
    /// the text.
    pub fn group_specs(&self) -> Vec<GroupSpec> {
        let made = |group: &Group| ((group.line, group.column), GroupSpec::new(&group.path));
        let written = |group: &Group, line: &GroupLine| {
            let files = vec![(line.file, line.text.clone())];
            ((line.line, line.column), GroupSpec { files, ..GroupSpec::new(&group.path) })
        };
        let steps_of = |group| std::iter::once(made(group)).chain(group.files.iter().map(|line| written(group, line)));
        let mut steps: Vec<((u32, u32), GroupSpec)> = self.groups.iter().flat_map(steps_of).collect();
        steps.sort_by_key(|&(place, _)| place);
        steps.into_iter().map(|(_, spec)| spec).collect()
    }

    /// The position in the script of what the kernel refused (line and column, both from 1), and the line for the
    /// group's file.
    pub fn place_of(&self, error: &GroupError) -> Option<(u32, u32, Option<&GroupLine>)> {
        let specs = with_those_above(self.group_specs());
        let path = &specs[error.group].path;
        let group = self.groups.iter().find(|group| group.path == *path)?;
        let before: usize =
            specs[..error.group].iter().filter(|spec| spec.path == *path).map(|spec| spec.files.len()).sum();
        let file = error.file.and_then(|file| group.files.get(before + file));
        Some(file.map_or((group.line, group.column, None), |file| (file.line, file.column, Some(file))))
    }
}

impl Task {
    /// The task, ready to be forked into `group`. It reports to the series with its number in the script.
    pub fn spec(&self, number: usize, group: Option<TgId>, shared: &Shared) -> TaskSpec {
        let playing = Playing::new(number as u32, self, shared.clone());
        TaskSpec {
            attr: Some(self.attr),
            cpus: self.cpus.clone(),
            group,
            session: self.session.map(Session::Numbered),
            memory: self.memory,
            kind: self.kind,
            working_set: self.working_set,
            data: self.working_set,
            lines: self.lines,
            ..TaskSpec::new(&self.name, playing)
        }
    }
}
