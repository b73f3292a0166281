//! A parsed file as a benchmark: starts the process, and interprets what it reported.

use super::description::{Application, Event, Task, TaskId};
use super::fault::RtAppError;
use super::log::{self, ThreadLog};
use super::memory::Caches;
use super::process::Process;
use super::refusal::{self, Refused};
use crate::Instance;
use crate::groups::{GroupSpec, with_those_above};
use os::Os;
use sched::sched::{ROOT_TASK_GROUP, TgId};
use sim::engine::Sample;
use sim::program::TaskSpec;
use units::{Cycles, Ns, Ps};

/// An application that can be simulated. See [`super`] for what its table shows.
#[derive(Clone, Debug)]
pub struct RtApp {
    app: Application,
    cores: Cores,
    /// Tasks that may run, in the order of the file.
    operations: Vec<TaskId>,
}

/// What an application needs to know about its machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cores {
    pub nr_cpus: usize,
    /// Of a core of capacity 1024 at its highest frequency; it defines a microsecond of `run`.
    pub ps_per_cycle: u64,
    pub caches: Caches,
}

impl Cores {
    /// The cycles of so many microseconds of work. A single microsecond may not be a whole number of them: 3703.7 at 270 ps.
    /// Rounded up, because `runtime` looks at the clock after each piece of work, and does another piece if it was too short.
    pub(super) fn cycles(&self, us: u64) -> Cycles {
        Cycles(Ps::from(Ns::from_us(us)).0.div_ceil(self.ps_per_cycle))
    }
}

/// Makes an application ready to run on a machine of such cores.
///
/// # Errors
/// CPUs that the machine does not have.
pub fn instance(app: Application, cores: Cores) -> Result<RtApp, RtAppError> {
    assert!(cores.ps_per_cycle > 0, "a core without speed");
    app.check_cpus(cores.nr_cpus)?;
    let forked = |id: TaskId| app.steps().any(|(_, step)| step.event == Event::Fork(id));
    let runs = |&(index, id): &(usize, TaskId)| app.tasks[index].instances > 0 || forked(id);
    let tasks = (0..app.tasks.len()).map(|index| (index, TaskId(index as u32)));
    let operations = tasks.filter(runs).map(|(_, id)| id).collect();
    Ok(RtApp { app, cores, operations })
}

impl RtApp {
    /// Title of the table.
    pub const NAME: &'static str = "rt-app";
    /// Unit of the table.
    pub const UNIT: &'static str = "us";
    /// Samples are nanoseconds.
    pub const PER_UNIT: u64 = 1_000;

    pub fn application(&self) -> &Application {
        &self.app
    }

    /// The rows of the table: every task that may run, by name, in the order of the file.
    pub fn operations(&self) -> Vec<String> {
        self.operations.iter().map(|task| self.app.tasks[task.index()].name.clone()).collect()
    }

    /// The samples of row `operation` (an index into [`RtApp::operations`]), in nanoseconds and in the order of time:
    /// for a task with timers, from each timer's moment until its thread runs; for any other task, the length of each
    /// round of its phases. Empty if no thread slept for a timer, or no round ended.
    pub fn samples_of(&self, operation: usize, reported: &[Sample]) -> Vec<u64> {
        let id = self.operations[operation];
        log::times(&self.app, id, self.app.tasks[id.index()].has_timers(), reported)
    }

    /// The tasks without a sample, which have no row in the table.
    pub fn unmeasured(&self, reported: &[Sample]) -> Vec<&Task> {
        let empty = |&operation: &usize| self.samples_of(operation, reported).is_empty();
        let operations = (0..self.operations.len()).filter(empty);
        operations.map(|operation| &self.app.tasks[self.operations[operation].index()]).collect()
    }

    /// The log of each thread that came to run, as rt-app keeps it.
    pub fn logs(&self, reported: &[Sample]) -> Vec<ThreadLog> {
        log::logs(&self.app, reported)
    }

    /// For each task group of the file its index in [`Instance::groups`]; `None` for the root.
    fn group_places(&self) -> Vec<Option<usize>> {
        let groups = self.groups();
        self.app.taskgroups.iter().map(|path| groups.iter().position(|group| group.path == *path)).collect()
    }
}

impl Application {
    /// The task that exceeded rt-app's limit of [`super::FORK_LIMIT`] forks, at which rt-app gives up and the run ends.
    pub fn fork_limit_reached(&self, reported: &[Sample]) -> Option<TaskId> {
        let reached = reported.iter().find(|sample| sample.series == log::FORK_LIMIT_REACHED);
        reached.map(|sample| TaskId(sample.value as u32))
    }

    /// What the kernel refused a thread, at which rt-app gives up and the run ends.
    pub fn refused(&self, reported: &[Sample]) -> Option<Refused> {
        refusal::first(self, reported)
    }
}

impl Instance for RtApp {
    fn start(&self, os: &mut Os) -> Vec<TaskSpec> {
        self.start_in(os, &[])
    }

    /// The groups of the file and all above them, as rt-app creates them: with the kernel's default shares.
    fn groups(&self) -> Vec<GroupSpec> {
        let paths = self.app.taskgroups.iter().filter(|path| path.len() > 1);
        with_those_above(paths.map(|path| GroupSpec::new(path)))
    }

    fn start_in(&self, os: &mut Os, groups: &[TgId]) -> Vec<TaskSpec> {
        let id = |place: Option<usize>| place.map_or(ROOT_TASK_GROUP, |place| groups[place]);
        let groups = self.group_places().into_iter().map(id).collect();
        let process = Process::new(self.app.clone(), self.cores, groups, os);
        vec![Process::main(process)]
    }

    /// The samples of all tasks, in the order of [`RtApp::operations`].
    fn samples(&self, reported: &[Sample]) -> Vec<u64> {
        (0..self.operations.len()).flat_map(|operation| self.samples_of(operation, reported)).collect()
    }
}
