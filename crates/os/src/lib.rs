//! The rest of the kernel that a task meets: processes, their memory, pipes, wait queues, locks in user space, sleeps.
//! It is written against [`sched::scheduler::Scheduler`], so any scheduler can stand behind it.
//!
//! A system call is a small state machine ([`Syscall`]). [`Os::step`] runs it until it is done or must sleep, and again
//! when its task has been woken and runs. [`preempt`] says when a task in the middle of a call gives way.

pub mod background;
mod block;
pub mod fs;
pub mod hrtimer;
pub mod irq;
pub mod kthread;
pub mod memory;
pub mod net;
pub mod paths;
pub mod pipe;
pub mod preempt;
pub mod process;
pub mod rcu;
pub mod sync;
pub mod timer_wheel;
pub mod vmstat;
pub mod wait;
pub mod workqueue;

use hrtimer::{PassedSleep, hrtimer_nanosleep};
use memory::{Memory, MigrationLimit};
use net::poll::EpollCall;
use net::{Net, NetCall, NetRules, Socket};
use pipe::{Pipe, PipeCall, PipeId, PipePages, PipePolled, PipeRoom, PipeRules, PipeSlots};
use preempt::Preempt;
use process::Processes;
use sched::access::Path;
use sched::arch::Arch;
use sched::layout::{Line, Region};
use sched::rules;
use sched::sched::{TaskId, TaskState};
use sched::scheduler::Scheduler;
use sched::trace::Interrupt;
use std::collections::BTreeMap;
use sync::rtmutex::PiRules;
use sync::{Sync, SyncCall};
use units::{CpuId, CpuMask, Ns, Prng, Ps, Slots};
use workqueue::DelayedWork;

/// What differs between kernel versions outside kernel/sched.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OsRules {
    pub pipe: PipeRules,
    pub slots: PipeSlots,
    pub room: PipeRoom,
    pub pages: PipePages,
    pub polled: PipePolled,
    pub passed_sleep: PassedSleep,
    /// A choice of the build or the command line.
    pub preempt: Preempt,
    pub migration_limit: MigrationLimit,
    pub net: NetRules,
    pub pi: PiRules,
    pub unbound: workqueue::UnboundPods,
    pub counts: workqueue::WorkerCounts,
    pub worker_wakeup: workqueue::WorkerWakeup,
}

/// Configured with the defaults of kernel/Kconfig.preempt (v4), or as Debian's kernels are (v5.4 and later).
impl OsRules {
    pub const V4_5: OsRules = OsRules {
        pipe: PipeRules::Single,
        slots: PipeSlots::Mutex,
        room: PipeRoom::WasFull,
        pages: PipePages::One,
        polled: PipePolled::Any,
        passed_sleep: PassedSleep::Sleeps,
        preempt: Preempt::None,
        migration_limit: MigrationLimit::PerWindow,
        net: NetRules::V4_5,
        pi: PiRules::V4_5,
        unbound: workqueue::UnboundPods::Node,
        counts: workqueue::WorkerCounts::Woken,
        worker_wakeup: workqueue::WorkerWakeup::Locked,
    };
    pub const V4_15: OsRules = OsRules { net: NetRules::V4_15, pi: PiRules::V4_15, ..OsRules::V4_5 };
    pub const V4_16: OsRules = OsRules { net: NetRules::V4_16, ..OsRules::V4_15 };
    pub const V4_19: OsRules =
        OsRules { migration_limit: MigrationLimit::None, net: NetRules::V4_19, ..OsRules::V4_16 };
    pub const V5_4: OsRules = OsRules {
        preempt: Preempt::Voluntary,
        net: NetRules::V5_4,
        counts: workqueue::WorkerCounts::Running,
        ..OsRules::V4_19
    };
    pub const V5_10: OsRules =
        OsRules { pipe: PipeRules::Split, slots: PipeSlots::RdWait, net: NetRules::V5_10, ..OsRules::V5_4 };
    pub const V5_15: OsRules = OsRules { net: NetRules::V5_15, pi: PiRules::V5_15, ..OsRules::V5_10 };
    pub const V6_1: OsRules = OsRules { net: NetRules::V6_1, ..OsRules::V5_15 };
    pub const V6_6: OsRules = OsRules { net: NetRules::V6_6, unbound: workqueue::UnboundPods::Cache, ..OsRules::V6_1 };
    pub const V6_12: OsRules = OsRules { slots: PipeSlots::MutexAgain, net: NetRules::V6_12, ..OsRules::V6_6 };

    pub const V6_18: OsRules = OsRules {
        room: PipeRoom::Drained,
        pages: PipePages::Two,
        net: NetRules::V6_18,
        preempt: Preempt::Lazy,
        ..OsRules::V6_12
    };

    pub const V7_2: OsRules = OsRules {
        pages: PipePages::Ahead,
        passed_sleep: PassedSleep::GoesOn,
        unbound: workqueue::UnboundPods::CacheShard,
        ..OsRules::V6_18
    };

    pub const V7_3: OsRules = OsRules {
        pages: PipePages::Pool,
        polled: PipePolled::EdgeTriggered,
        worker_wakeup: workqueue::WorkerWakeup::Unlocked,
        ..OsRules::V7_2
    };
}

rules! {
    OsRules {
        pipe, slots, room, pages, polled, passed_sleep, migration_limit, unbound, counts, worker_wakeup;
        preempt, net, pi
    }
}

/// All state of the rest of the kernel.
pub struct Os {
    pub rules: OsRules,
    pipes: Slots<Pipe>,
    pub processes: Processes,
    pub memory: Memory,
    pub sync: Sync,
    pub workqueues: workqueue::Workqueues,
    /// The mounted file system.
    fs: Option<Box<fs::FileSystem>>,
    /// The machine's disk, for programs that mount a file system on it. `None` unless set by code that knows the
    /// machine.
    pub disk: Option<fs::Device>,
    pub fs_rules: fs::FsRules,
    pub irq: irq::Irqs,
    rcu: rcu::Rcu,
    vmstat: vmstat::VmStat,
    seed: u64,
    /// 1 / HZ, the same for all CPUs.
    tick_period: Ps,
    net: Net,
    next_line: u32,
    /// What lies on each run of lines: its first line, the number of the object among its kind, and the name of each
    /// line.
    line_names: Vec<(u32, u32, &'static [&'static str])>,
    /// The number of objects of each kind, by the name of the kind's first line.
    objects: BTreeMap<&'static str, u32>,
    /// `/sys/devices/system/node/node*/cpulist`, for programs that stay on a node. Empty unless set by code that knows
    /// the machine.
    pub node_cpus: Vec<CpuMask>,
}

/// A system call under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Syscall {
    Read(PipeCall),
    Write(PipeCall),
    /// poll() for data on one pipe, without a time limit.
    Poll {
        pipe: PipeId,
        registered: bool,
    },
    /// clock_nanosleep() until a time of the simulated clock.
    Sleep {
        until: Ns,
        armed: bool,
    },
    /// schedule_timeout() of a kernel thread.
    Timeout {
        jiffies: u64,
        armed: bool,
    },
    /// A read of a block device that takes `time` to answer; `until`: when it will have answered.
    BlockIo {
        time: Ns,
        until: Option<Ns>,
    },
    /// wait4() for any one child.
    Wait {
        queued: bool,
    },
    /// The end of vfork().
    Vfork {
        child: TaskId,
    },
    Sync(SyncCall),
    Fs(fs::FsCall),
    /// The rounds of a worker, which never end.
    Worker(workqueue::Worker),
    Kjournald2(fs::Jbd2),
    /// The rounds of a thread of schedutil's, likewise.
    Sugov(kthread::Sugov),
    Xfsaild(fs::Xfsaild),
    /// A send or receive through a socket.
    Net(NetCall),
    /// poll() for data on one socket, without a time limit.
    PollSocket {
        socket: Socket,
        registered: bool,
    },
    EpollWait(EpollCall),
}

impl Syscall {
    /// Whether it turned out not to enter the kernel: locks among threads do not, unless a thread has to wait.
    #[inline]
    pub fn stayed_in_user_mode(&self) -> bool {
        matches!(self, Syscall::Sync(call) if call.stayed_in_user_mode())
    }
}

/// How far a system call got. It consists of a kind and one number, so that it is returned in registers: a value
/// written to memory in parts and then read as a whole stalls until all parts are there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// It returns this to its program (bytes, a count, or 0).
    Done(u64),
    /// Its task sleeps until it is woken.
    Sleep,
    /// The same, but a timer wakes it at this time if nothing did before.
    SleepUntil(Ns),
    /// It sleeps in schedule_timeout(): the timer wheel wakes it this many jiffies from now, if nothing did before.
    Timeout(u64),
    /// It is preempted where it stands, and will go on there.
    Preempted,
    /// It goes on, but other CPUs may act in between and find it in the middle.
    Continues,
    /// The same, and this work is to be queued after its interval.
    Delay(DelayedWork),
}

/// The value of `jiffies` at a time of the simulated clock. The clock's nanoseconds are rounded down, and a jiffy may begin in the
/// middle of one.
pub(crate) fn jiffies(now: Ns, tick_period: Ps) -> u64 {
    (now.0 * 1_000 + 999) / tick_period.0
}

impl Os {
    /// `hz` is the frequency of the tick.
    pub fn new(rules: OsRules, hz: u32) -> Os {
        let tick_period = Ps(1_000_000_000_000 / u64::from(hz));
        let mut os = Os {
            rules,
            pipes: Slots::new(),
            processes: Processes::default(),
            memory: Memory::new(rules.migration_limit),
            sync: Sync::default(),
            workqueues: workqueue::Workqueues::default(),
            fs: None,
            disk: None,
            fs_rules: fs::FsRules::V4_5,
            irq: irq::Irqs::default(),
            rcu: rcu::Rcu::default(),
            vmstat: vmstat::VmStat::default(),
            seed: 0,
            tick_period,
            net: Net::new(rules.net, tick_period),
            next_line: 0,
            line_names: Vec::new(),
            objects: BTreeMap::new(),
            node_cpus: Vec::new(),
        };
        os.processes.tasklist_lock = os.allocate_named(&["tasklist_lock"]);
        os
    }

    /// Sets the seed from which all random choices of this kernel and its programs follow; 0 unless set.
    pub fn set_seed(&mut self, seed: u64) {
        self.seed = seed;
        self.memory.set_seed(seed);
    }

    /// 1 / HZ.
    pub fn tick_period(&self) -> Ps {
        self.tick_period
    }

    /// The value of `jiffies` at a time of the simulated clock.
    pub(crate) fn jiffies(&self, now: Ns) -> u64 {
        jiffies(now, self.tick_period)
    }

    /// time.c: msecs_to_jiffies(), which rounds up.
    pub(crate) fn msecs_to_jiffies(&self, ms: u64) -> u64 {
        Ps::from(Ns::from_ms(ms)).0.div_ceil(self.tick_period.0)
    }

    /// The random stream for a `purpose` of `owner`, a program or anything else with a number.
    pub fn chance(&self, purpose: &str, owner: u64) -> Prng {
        Prng::stream(self.seed, purpose, owner)
    }

    /// kernel/smp.c: flush_smp_call_function_queue(): does what other CPUs have asked of `cpu`, which is to end
    /// requests and to free segments. `by`: what executes this, an interrupt or the idle loop.
    #[inline]
    pub fn flush_smp_call_function_queue<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, by: Interrupt) {
        self.trigger_softirq(sched, cpu, by);
        self.trigger_rx_softirq(sched, cpu, by);
    }

    /// Allocates one fresh cache line of kernel memory for each name. A name says what lies on its line: `object:
    /// fields`, or only the object.
    pub(crate) fn allocate_named(&mut self, names: &'static [&'static str]) -> Line {
        let first = Line { region: Region::Os, index: self.next_line };
        self.next_line += names.len() as u32;
        let made = self.objects.entry(names[0]).or_default();
        self.line_names.push((first.index, *made, names));
        *made += 1;
        first
    }

    /// What lies on a line of [`Region::Os`]: `pipe 3: mutex`. Objects are numbered by kind, in the order in which they
    /// were made.
    pub fn line_name(&self, line: Line) -> Option<String> {
        let at = self.line_names.partition_point(|(first, ..)| *first <= line.index).checked_sub(1)?;
        let (first, number, names) = self.line_names[at];
        let name = names.get((line.index - first) as usize)?;
        Some(match name.split_once(": ") {
            Some((object, fields)) => format!("{object} {number}: {fields}"),
            None => name.to_string(),
        })
    }

    /// The functions in which a call stands when it begins or goes on, or while it is `asleep`; the outermost first.
    /// Functions that [`Os::step`] enters come on top.
    pub fn frames(&self, call: &Syscall, asleep: bool) -> &'static [Path] {
        use paths::*;
        let (frames, call): (&[Path], &PipeCall) = match call {
            Syscall::Read(call) => (&[ENTRY_SYSCALL, SYS_READ, PIPE_READ, PIPE_WAIT], call),
            Syscall::Write(call) => (&[ENTRY_SYSCALL, SYS_WRITE, PIPE_WRITE, PIPE_WAIT], call),
            Syscall::Poll { .. } => return &[ENTRY_SYSCALL, SYS_POLL],
            Syscall::PollSocket { .. } => return &[ENTRY_SYSCALL, SYS_POLL],
            Syscall::EpollWait(_) => return &[ENTRY_SYSCALL, SYS_EPOLL_WAIT],
            Syscall::Sleep { .. } => return &[ENTRY_SYSCALL, HRTIMER_NANOSLEEP],
            Syscall::Timeout { .. } => return &[SCHEDULE_TIMEOUT],
            Syscall::BlockIo { .. } => return &[ENTRY_SYSCALL, SYS_READ, BLKDEV_DIRECT_IO],
            Syscall::Wait { .. } => return &[ENTRY_SYSCALL, SYS_WAIT4],
            Syscall::Vfork { .. } => return &[ENTRY_SYSCALL, DO_FORK],
            Syscall::Sync(_) if asleep => return &[FUTEX_WAIT],
            Syscall::Fs(_) => return &[ENTRY_SYSCALL],
            Syscall::Worker(_) | Syscall::Kjournald2(_) | Syscall::Xfsaild(_) | Syscall::Sugov(_) => return &[],
            Syscall::Sync(_) => return &[],
            Syscall::Net(call) => return Os::net_frames(call, asleep),
        };
        match (asleep, call.has_entered(), self.rules.pipe) {
            (true, _, PipeRules::Single) => frames,
            (true, _, PipeRules::Split) => &frames[..3],
            (false, true, _) => &frames[..2],
            (false, false, _) => &frames[..1],
        }
    }

    /// Runs `call` of the current task of `cpu` until it is done or sleeps.
    #[inline(always)]
    pub fn step<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, task: TaskId, call: &mut Syscall) -> Step {
        match call {
            Syscall::Read(read) => self.pipe_read(sched, cpu, task, read),
            Syscall::Write(write) => self.pipe_write(sched, cpu, task, write),
            Syscall::Poll { pipe, registered } => self.pipe_poll(sched, cpu, task, *pipe, registered),
            Syscall::Timeout { jiffies, armed } => schedule_timeout(sched, cpu, *jiffies, armed),
            Syscall::Sleep { until, armed } => hrtimer_nanosleep(sched, cpu, *until, armed, self.rules.passed_sleep),
            Syscall::BlockIo { time, until } => block::blkdev_direct_io(sched, cpu, *time, until),
            Syscall::Wait { queued } => self.wait4(sched, cpu, task, queued),
            Syscall::Vfork { child } => self.wait_for_vfork_done(sched, cpu, task, *child),
            Syscall::Sync(call) => self.sync_call(sched, cpu, task, call),
            Syscall::Fs(call) => {
                self.memory_counted(cpu);
                self.fs_call(sched, cpu, task, call)
            }
            Syscall::Worker(worker) => self.worker_thread(sched, cpu, task, worker),
            Syscall::Kjournald2(state) => self.kjournald2(sched, cpu, task, state),
            Syscall::Xfsaild(state) => self.xfsaild(sched, cpu, task, state),
            Syscall::Sugov(thread) => thread.kthread_worker_fn(sched, cpu),
            Syscall::Net(call) => {
                self.memory_counted(cpu);
                self.net_step(sched, cpu, task, call)
            }
            Syscall::PollSocket { socket, registered } => self.net.socket_poll(sched, cpu, task, *socket, registered),
            Syscall::EpollWait(call) => self.net.epoll_wait(sched, cpu, task, call),
        }
    }
}

/// preempt.h: preempt_enable(): whether the task on `cpu` is preempted here, if `rules` allow that.
pub(crate) fn preempt_enable<S: Scheduler>(sched: &S, cpu: CpuId, rules: OsRules) -> bool {
    rules.preempt.preempt_schedule() && sched.need_resched(cpu)
}

/// kernel/time/timer.c: schedule_timeout(): one sleep, which may end early.
fn schedule_timeout<S: Scheduler>(sched: &mut S, cpu: CpuId, jiffies: u64, armed: &mut bool) -> Step {
    if std::mem::replace(armed, true) {
        return Step::Done(0);
    }
    charge(sched, cpu, paths::SCHEDULE_TIMEOUT);
    sched.set_current_state(cpu, TaskState::Interruptible);
    Step::Timeout(jiffies)
}

/// Charges a function's price; it calls nothing.
pub(crate) fn charge<S: Scheduler>(sched: &mut S, cpu: CpuId, path: Path) {
    sched.arch_mut().path(cpu, path);
}

/// Runs `body` as the kernel function `path`: charges its price first, and keeps its name on the profile's stack until
/// it returns.
#[inline(always)]
pub(crate) fn within<S: Scheduler, T>(sched: &mut S, cpu: CpuId, path: Path, body: impl FnOnce(&mut S) -> T) -> T {
    sched.arch_mut().enter(cpu, path);
    let value = body(sched);
    sched.arch_mut().leave(cpu);
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_jiffy_begins_where_its_first_nanosecond_is_shown() {
        // 1 / 300 s are 3333333.3 ns: the clock shows 3333333 as the first one begins.
        let os = Os::new(OsRules::V6_1, 300);
        assert_eq!([0, 3_333_332, 3_333_333, 6_666_665, 6_666_666].map(|ns| os.jiffies(Ns(ns))), [0, 0, 1, 1, 2]);
        let os = Os::new(OsRules::V6_1, 250);
        assert_eq!([3_999_999, 4_000_000].map(|ns| os.jiffies(Ns(ns))), [0, 1]);
        assert_eq!([0, 1, 4, 5].map(|ms| os.msecs_to_jiffies(ms)), [0, 1, 1, 2]);
    }
}
