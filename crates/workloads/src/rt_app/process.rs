//! The process of a running application: what its threads share, and main, which starts the threads and waits for them.

use super::FORK_LIMIT;
use super::description::{
    Application, BarrierId, Buffer, BufferId, Calibration, ConditionId, Event, MutexId, SemaphoreId, TaskId,
};
use super::log::{FORK_LIMIT_REACHED, MAIN_START};
use super::memory;
use super::program::Thread;
use super::run::Cores;
use super::settings::Settings;
use os::Os;
use os::memory::{RegionId, RegionSpec};
use os::sync::{self, SyncOp};
use sched::sched::{TaskId as KernelTaskId, TgId};
use sim::program::{AddressSpace, Op, Outcome, Program, TaskSpec};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use units::{CpuMask, Cycles, Ns};

/// Bytes of private cache that a thread uses again after a switch, apart from its buffers: its stack and rt-app's data
/// for the thread (guess, 2 to 8 KiB; the loop that `run` executes touches no memory).
const WORKING_SET: u64 = 4 * 1024;
/// Length of a task's name in the kernel (TASK_COMM_LEN, less the zero).
const LONGEST_COMM: usize = 15;

/// What the threads share: the description, the kernel objects made for it, and memory.
pub(super) struct Process {
    pub app: Application,
    pub cores: Cores,
    /// The loop time that rt-app would have calibrated; 1 where the file does not give it, so that a loop takes a
    /// nanosecond.
    pub ns_per_loop: u64,
    /// By [`super::TaskgroupId`].
    pub groups: Vec<TgId>,
    /// Main's; the threads of the start inherit them.
    settings: Settings,
    /// All threads of the start meet here before they begin.
    pub start: sync::BarrierId,
    mutexes: Vec<sync::MutexId>,
    conditions: Vec<sync::CondId>,
    /// One more than the application names: nobody ever posts the last ([`Process::never`]).
    semaphores: Vec<sync::SemaphoreId>,
    /// rt-app makes its barriers of these.
    barriers: Vec<(sync::MutexId, sync::CondId)>,
    /// By task: the buffer of its `mem`, if it has that event. At the start the buffer has never been touched.
    own_buffers: Vec<Option<RegionId>>,
    /// The buffers of `memrun`, which main has filled before the threads start.
    buffers: Vec<RegionId>,
    pub memory: RefCell<Memory>,
}

/// Variables of the process.
pub(super) struct Memory {
    /// Threads go on while this is true (rt-app: `continue_running`).
    pub running: bool,
    /// When the first thread began (rt-app: `t_zero`); timers and delays count from it.
    pub zero: Ns,
    /// The last moment of each shared timer, by id; `None` before its first use.
    pub timers: Vec<Option<Ns>>,
    /// By barrier: how many more threads have to arrive before one of them opens it (rt-app: `waiting`).
    pub missing: Vec<u32>,
    /// By semaphore: threads that are in `sem_wait`.
    pub at_semaphore: Vec<u32>,
    /// The threads so far, by index.
    threads: Vec<Known>,
    /// The number of forks, by task.
    forks: Vec<u32>,
    /// Whether some thread has called mlockall().
    locked: bool,
}

impl Process {
    /// Creates what the threads meet at. `groups` are the ids of the application's task groups.
    pub fn new(app: Application, cores: Cores, groups: Vec<TgId>, os: &mut Os) -> Process {
        let resources = &app.resources;
        let threads = app.threads().count() as u32;
        let memory = Memory {
            running: true,
            zero: Ns::ZERO,
            timers: vec![None; resources.timers.len()],
            missing: resources.barriers.iter().map(|barrier| barrier.users.saturating_sub(1)).collect(),
            at_semaphore: vec![0; resources.semaphores.len() + 1],
            threads: vec![Known::Started; threads as usize],
            forks: vec![0; app.tasks.len()],
            locked: false,
        };
        let ns_per_loop = match app.global.calibration.as_ref().map(|calibration| calibration.value) {
            Some(Calibration::NsPerLoop(ns)) => u64::from(ns).max(1),
            Some(Calibration::Cpu(_)) | None => 1,
        };
        let inherits = app.global.pi_enabled.as_ref().is_some_and(|enabled| enabled.value);
        let mut create_mutex = || if inherits { os.create_pi_mutex() } else { os.create_mutex() };
        let mutexes = resources.mutexes.iter().map(|_| create_mutex()).collect();
        let mutexes_of_barriers: Vec<sync::MutexId> = resources.barriers.iter().map(|_| create_mutex()).collect();
        let mut region = |bytes: u32| os.memory.create_region(RegionSpec { bytes: bytes.into(), ..Default::default() });
        let buffers = resources.buffers.iter().map(|buffer| region(buffer.bytes)).collect();
        let mut own_buffer =
            |task: usize| app.overwrites(TaskId(task as u32)).then(|| region(app.global.mem_buffer_bytes));
        let own_buffers = (0..app.tasks.len()).map(&mut own_buffer).collect();
        Process {
            ns_per_loop,
            groups,
            settings: Settings::of_main(CpuMask::all(cores.nr_cpus)),
            start: os.create_barrier(threads),
            mutexes,
            conditions: resources.conditions.iter().map(|_| os.create_cond()).collect(),
            semaphores: (0..=resources.semaphores.len()).map(|_| os.create_semaphore()).collect(),
            barriers: mutexes_of_barriers.into_iter().map(|mutex| (mutex, os.create_cond())).collect(),
            own_buffers,
            buffers,
            memory: RefCell::new(memory),
            cores,
            app,
        }
    }

    pub fn mutex(&self, id: MutexId) -> sync::MutexId {
        self.mutexes[id.index()]
    }

    pub fn condition(&self, id: ConditionId) -> sync::CondId {
        self.conditions[id.index()]
    }

    pub fn semaphore(&self, id: SemaphoreId) -> sync::SemaphoreId {
        self.semaphores[id.index()]
    }

    /// A semaphore that nobody posts, for a thread that waits for itself.
    pub fn never(&self) -> SemaphoreId {
        SemaphoreId(self.semaphores.len() as u32 - 1)
    }

    pub fn barrier(&self, id: BarrierId) -> (sync::MutexId, sync::CondId) {
        self.barriers[id.index()]
    }

    /// The buffer of a task that has `mem`.
    pub fn own_buffer(&self, task: TaskId) -> RegionId {
        self.own_buffers[task.index()].expect("a task with mem has a buffer")
    }

    pub fn buffer(&self, id: BufferId) -> RegionId {
        self.buffers[id.index()]
    }

    /// What main does with the buffers of `memrun` before there are threads: rt-app fills them while it reads its file.
    fn fill_buffers(&self) -> Vec<Op> {
        let filled = self.buffers.iter().zip(&self.app.resources.buffers);
        let ops = |(&region, buffer): (&RegionId, &Buffer)| {
            let pass = memory::mem(&self.cores.caches, buffer.bytes, buffer.bytes);
            let fill = pass.ops(region, self.cores.ps_per_cycle);
            std::iter::once(Op::Populate(region)).chain(fill)
        };
        filled.flat_map(ops).collect()
    }

    /// mlockall(), which brings in all memory that nobody has touched yet. Only the first thread to call it has
    /// anything to do.
    pub fn lock_pages(&self) -> Vec<Op> {
        let untouched = self.own_buffers.iter().flatten();
        if !self.app.global.lock_pages || std::mem::replace(&mut self.memory.borrow_mut().locked, true) {
            return Vec::new();
        }
        // One cycle of work takes the task back to user mode.
        untouched.flat_map(|&region| [Op::Populate(region), Op::Work(Cycles(1))]).collect()
    }

    /// Bytes that threads of `task` use again after a switch: their own, and the buffers that a core's caches hold.
    /// Larger buffers are fetched in each pass anyway.
    fn working_set(&self, task: TaskId) -> (u64, u64) {
        let own = self.own_buffers[task.index()].map(|_| u64::from(self.app.global.mem_buffer_bytes));
        let mut used: Vec<BufferId> = Vec::new();
        for step in self.app.tasks[task.index()].phases.iter().flat_map(|phase| &phase.steps) {
            if let Event::MemRun { buffer, .. } = step.event
                && !used.contains(&buffer)
            {
                used.push(buffer);
            }
        }
        let run = used.iter().map(|id| u64::from(self.app.resources.buffers[id.index()].bytes));
        let held = own.into_iter().chain(run).filter(|&bytes| bytes <= self.cores.caches.l2_bytes);
        let data = held.sum::<u64>();
        (WORKING_SET + data, data)
    }

    pub fn running(&self) -> bool {
        self.memory.borrow().running
    }

    /// Ends the application: clears `running` and wakes every thread that waits for others. Together with
    /// [`Process::next_interrupt`] this is what rt-app's pthread_cancel() does. A thread that computes finishes that
    /// event first.
    pub fn stop(&self) -> Vec<Op> {
        let mut memory = self.memory.borrow_mut();
        memory.running = false;
        let conditions = self.conditions.iter().chain(self.barriers.iter().map(|(_, condition)| condition));
        let broadcasts = conditions.map(|&condition| SyncOp::Broadcast(condition));
        let waiting = self.semaphores.iter().zip(&memory.at_semaphore);
        let posts = waiting.flat_map(|(&id, &count)| (0..count).map(move |_| SyncOp::SemaphorePost(id)));
        broadcasts.chain(posts).map(Op::Sync).collect()
    }

    /// Interrupts the next thread, from index `from` on, that has not ended. The operation must be issued before the
    /// thread can end.
    pub fn next_interrupt(&self, from: &mut usize) -> Option<Op> {
        let memory = self.memory.borrow();
        while let Some(thread) = memory.threads.get(*from) {
            *from += 1;
            if let Known::As(task) = thread {
                return Some(Op::Interrupt(*task));
            }
        }
        None
    }

    /// A thread of `task`, started by a thread with the settings `starter`. `fork` is its number among the task's
    /// forks.
    fn thread(process: &Rc<Process>, task: TaskId, index: u32, fork: Option<u32>, starter: &Settings) -> TaskSpec {
        // If the name is too long for the kernel, rt-app leaves its own name to the thread; here the thread's name is
        // cut.
        let name = process.app.thread_name(task, index, fork);
        let end = (0..=LONGEST_COMM).rev().find(|&end| name.is_char_boundary(end)).unwrap_or(0);
        let comm = if name.len() <= LONGEST_COMM { &name } else { &name[..end] };
        let settings = starter.inherited();
        let thread = Thread::new(process.clone(), task, index, fork, settings.clone());
        let (working_set, data) = process.working_set(task);
        let spec = TaskSpec { memory: AddressSpace::Parent, working_set, data, ..TaskSpec::new(comm, thread) };
        settings.apply(spec)
    }

    /// The next fork of `task`, by a thread with the settings `starter`, and its index. `Err` if this exceeds the limit
    /// of forks, at which rt-app ends itself.
    pub fn fork(process: &Rc<Process>, task: TaskId, starter: &Settings) -> Result<(u32, TaskSpec), Op> {
        let mut memory = process.memory.borrow_mut();
        let fork = memory.forks[task.index()];
        if fork == FORK_LIMIT {
            return Err(Op::Report { series: FORK_LIMIT_REACHED, value: u64::from(task.0) });
        }
        memory.forks[task.index()] += 1;
        let index = memory.threads.len() as u32;
        memory.threads.push(Known::Started);
        Ok((index, Process::thread(process, task, index, Some(fork), starter)))
    }

    /// Records which kernel task a started thread has become. If the application has ended in the meantime, returns the
    /// operation that interrupts it.
    pub fn adopt(&self, index: u32, task: u64) -> Option<Op> {
        let mut memory = self.memory.borrow_mut();
        let task = KernelTaskId(task as u32);
        let thread = &mut memory.threads[index as usize];
        if *thread == Known::Ended {
            return None;
        }
        *thread = Known::As(task);
        (!memory.running).then_some(Op::Interrupt(task))
    }

    /// The thread is about to exit; the kernel may give its number to another task.
    pub fn bury(&self, index: u32) {
        self.memory.borrow_mut().threads[index as usize] = Known::Ended;
    }

    /// The main thread.
    pub fn main(process: Process) -> TaskSpec {
        let threads: VecDeque<TaskId> = process.app.threads().collect();
        let main =
            Main { process: Rc::new(process), threads, created: 0, ops: VecDeque::new(), state: MainState::Start };
        TaskSpec { working_set: WORKING_SET, ..TaskSpec::new("rt-app", main) }
    }
}

/// What the process knows about one of its threads.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Known {
    Started,
    /// The kernel's number for it; it has not exited.
    As(KernelTaskId),
    Ended,
}

enum MainState {
    Start,
    Filled,
    Create,
    Created,
    Sleep,
    Stop,
    /// Has interrupted all threads below this index.
    Interrupt(usize),
    Join,
    Joined,
}

/// rt-app's main(), after it has read its file: starts the threads, sleeps for the duration, stops them, waits for all.
/// Differs: it waits for any thread, while rt-app joins them one by one.
struct Main {
    process: Rc<Process>,
    /// Not yet created.
    threads: VecDeque<TaskId>,
    created: u32,
    ops: VecDeque<Op>,
    state: MainState,
}

impl Main {
    fn advance(&mut self, last: Outcome) {
        let duration = self.process.app.global.duration_s.as_ref().map(|d| Ns::from_ms(1000 * u64::from(d.value)));
        let (op, state) = match self.state {
            MainState::Start => {
                self.ops.extend(self.process.fill_buffers());
                self.state = MainState::Filled;
                return;
            }
            MainState::Filled => (Op::Report { series: MAIN_START, value: last.now.0 }, MainState::Create),
            MainState::Create => {
                let Some(task) = self.threads.pop_front() else {
                    self.state = if duration.is_some() { MainState::Sleep } else { MainState::Join };
                    return;
                };
                self.created += 1;
                let thread = Process::thread(&self.process, task, self.created - 1, None, &self.process.settings);
                (Op::Fork(Box::new(thread)), MainState::Created)
            }
            MainState::Created => {
                self.ops.extend(self.process.adopt(self.created - 1, last.value));
                self.state = MainState::Create;
                return;
            }
            MainState::Sleep => (Op::SleepFor(duration.expect("it sleeps for the duration")), MainState::Stop),
            MainState::Stop => {
                self.ops.extend(self.process.stop());
                self.state = MainState::Interrupt(0);
                return;
            }
            MainState::Interrupt(mut from) => match self.process.next_interrupt(&mut from) {
                Some(op) => (op, MainState::Interrupt(from)),
                None => {
                    self.state = MainState::Join;
                    return;
                }
            },
            MainState::Joined if last.value == 0 => (Op::Exit, MainState::Joined),
            MainState::Join | MainState::Joined => (Op::Wait, MainState::Joined),
        };
        self.ops.push_back(op);
        self.state = state;
    }
}

impl Program for Main {
    fn next(&mut self, last: Outcome) -> Op {
        loop {
            if let Some(op) = self.ops.pop_front() {
                return op;
            }
            self.advance(last);
        }
    }
}
