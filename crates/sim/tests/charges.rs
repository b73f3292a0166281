//! Charges: what one wakeup touches, in order, function by function. A readable review of the cost model.
//!
//! The expected lists are `tests/charges/*.txt`; run with `UPDATE_CHARGES=1` to write what comes out, then read it.

use os::net::{Buffers, NetCall, NetRules, Receive, Transport};
use os::pipe::{PAGE_SIZE, PipeCall, PipePages, PipeSlots};
use os::{Os, OsRules, Step, Syscall};
use sched::access::Path as Function;
use sched::arch::Arch;
use sched::behaviour::Rules;
use sched::core::{Boot, Sched, TaskInit};
use sched::cpu_topology::CpuTopology;
use sched::layout::{Layout, Line};
use sched::sched::{ROOT_TASK_GROUP, TaskId, TaskState, WakeFlags};
use sched::scheduler::Scheduler;
use sched::sysctl::{Sysctl, Tunable};
use sched::trace::Ipi;
use std::cell::Cell;
use std::path::Path;
use units::{CpuId, Ns};

/// A machine on which everything is free and everything is written down.
#[derive(Default)]
struct Recorder {
    now: u64,
    depth: usize,
    listening: bool,
    out: String,
    /// How often the clock was looked at, priced or not.
    clock_reads: Cell<u32>,
    /// What names lines.
    layout: Option<Layout>,
}

impl Recorder {
    fn note(&mut self, what: &str) {
        if self.listening {
            self.out.push_str(&"  ".repeat(self.depth));
            self.out.push_str(what);
            self.out.push('\n');
        }
    }

    fn line(&mut self, how: &str, line: Line) {
        let name = self.layout.expect("each kernel has its own").describe(line);
        self.note(&format!("{how} {name}"));
    }
}

impl Arch for Recorder {
    fn sched_clock(&self, _cpu: CpuId) -> Ns {
        self.clock_reads.set(self.clock_reads.get() + 1);
        Ns(self.now)
    }
    fn send_ipi(&mut self, _from: CpuId, to: CpuId, _ipi: Ipi) {
        self.note(&format!("interrupt to {to:?}"));
    }
    fn wake_polling_idle(&mut self, _from: CpuId, to: CpuId) {
        self.note(&format!("store wakes {to:?}"));
    }
    fn read(&mut self, _by: CpuId, line: Line) {
        self.line("read", line);
    }
    fn write(&mut self, _by: CpuId, line: Line) {
        self.line("write", line);
    }
    fn atomic(&mut self, _by: CpuId, line: Line) {
        self.line("atomic", line);
    }
    fn lock(&mut self, _by: CpuId, line: Line) {
        self.line("lock", line);
    }
    fn unlock(&mut self, _by: CpuId, line: Line) {
        self.line("unlock", line);
    }
    fn enter(&mut self, _by: CpuId, path: Function) {
        let elsewhere = path.0.checked_sub(Function::FIRST_OS).map(|number| os::paths::NAMES[number as usize]);
        let name = elsewhere.unwrap_or_else(|| Function::NAMES[path.0 as usize]);
        self.note(&format!("{name}()"));
        self.depth += 1;
    }
    fn enter_unpaid(&mut self, _by: CpuId, _path: Function) {
        self.depth += 1;
    }
    fn leave(&mut self, _by: CpuId) {
        self.depth -= 1;
    }
}

/// A waker on CPU 0 of four, its wakee asleep on the idle CPU 1.
fn waker_and_wakee(kernel: &str, schedstats: &str) -> (Sched<Recorder>, TaskId, TaskId) {
    waker_and_wakee_of(kernel, &[("stats.schedstats", schedstats)], |_| ())
}

/// The same with other behaviours, and with what is set before anything runs.
fn waker_and_wakee_of(
    kernel: &str,
    behaviours: &[(&str, &str)],
    set: impl Fn(&mut Sched<Recorder>),
) -> (Sched<Recorder>, TaskId, TaskId) {
    let mut kernel = *sched::versions::kernel(kernel).expect("a kernel that is built");
    for (key, value) in behaviours {
        kernel.set(key, value).expect("a behaviour");
    }
    let boot = Boot { sysctl: Sysctl::new(4), ..Boot::new(kernel, CpuTopology::symmetric(1, 1, 1, 4, 1), 250) };
    let layout = Some(kernel.layout());
    let mut sched = Sched::new(Recorder { layout, ..Recorder::default() }, boot);
    set(&mut sched);
    for cpu in 0..4 {
        sched.set_polling(CpuId(cpu), true);
    }
    let task = |sched: &mut Sched<Recorder>, comm: &str, cpu: u16| {
        let init = TaskInit {
            comm: comm.to_string(),
            attr: None,
            cpus_allowed: Some([CpuId(cpu)].into_iter().collect()),
            mm: u32::from(cpu) + 1,
            group: ROOT_TASK_GROUP,
        };
        let task = sched.fork(CpuId(cpu), init).expect("a fair task");
        sched.wake_up_new_task(CpuId(cpu), task);
        sched.set_polling(CpuId(cpu), false);
        assert_eq!(Scheduler::schedule(sched, CpuId(cpu), false), Some(task));
        sched.set_cpus_allowed(CpuId(cpu), task, (0..4).map(CpuId).collect()).expect("all CPUs are up");
        task
    };
    let waker = task(&mut sched, "waker", 0);
    let wakee = task(&mut sched, "wakee", 1);
    sched.arch.now = 3_000_000;
    sched.set_current_state(CpuId(1), TaskState::Interruptible);
    assert_eq!(Scheduler::schedule(&mut sched, CpuId(1), false), None);
    sched.set_polling(CpuId(1), true);
    sched.arch.now = 5_000_000;
    (sched, waker, wakee)
}

/// What the waker's CPU touches in the wakeup, then the wakee's in its switch.
fn one_wakeup(kernel: &str, schedstats: &str) -> String {
    let (sched, _waker, wakee) = waker_and_wakee(kernel, schedstats);
    recorded(sched, wakee).0
}

/// The same, and how often the clock was read.
fn recorded(mut sched: Sched<Recorder>, wakee: TaskId) -> (String, u32) {
    sched.arch.listening = true;
    sched.arch.clock_reads.set(0);
    assert!(sched.wake(CpuId(0), wakee, WakeFlags::SYNC));
    sched.arch.note("--");
    sched.set_polling(CpuId(1), false);
    if !sched.rq[CpuId(1)].wake_list.is_empty() {
        // Since v6.0 an idle CPU finishes its wakeups itself.
        sched.idle_loop_exit(CpuId(1));
    }
    assert_eq!(Scheduler::schedule(&mut sched, CpuId(1), false), Some(wakee));
    (std::mem::take(&mut sched.arch.out), sched.arch.clock_reads.get())
}

fn compare(name: &str, actual: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/charges").join(name);
    if std::env::var_os("UPDATE_CHARGES").is_some() {
        std::fs::write(&path, actual).expect("a writable list");
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(expected == actual, "{name} has changed; it is now\n{actual}");
}

#[test]
fn what_a_wakeup_touches() {
    for kernel in ["v4.5-rc1", "v4.15", "v4.16", "v6.12"] {
        compare(&format!("wakeup-{kernel}.txt"), &one_wakeup(kernel, "tunable"));
    }
    compare("wakeup-v4.5-rc1-schedstats.txt", &one_wakeup("v4.5-rc1", "always"));
}

#[test]
fn every_schedule_is_counted() {
    let (sched, ..) = waker_and_wakee("v4.5-rc1", "always");
    // CPU 1 switched to the wakee, then to idle.
    assert_eq!((sched.rq[CpuId(1)].sched_count, sched.rq[CpuId(1)].sched_goidle), (2, 1));
    let (sched, ..) = waker_and_wakee("v4.5-rc1", "tunable");
    assert_eq!((sched.rq[CpuId(1)].sched_count, sched.rq[CpuId(1)].sched_goidle), (0, 0));
}

/// Lines and functions of statistics that can be turned off.
fn is_statistics(line: &str) -> bool {
    let functions =
        ["ttwu_stat()", "update_stats_", "enqueue_sleeper()", "psi_group_change()", "__account_scheduler_latency()"];
    // The entity's links share a line with the last statistics; reading them is no statistics.
    functions.iter().any(|name| line.starts_with(name)) || line.contains("SeStatistics") && !line.starts_with("read")
}

/// Every kernel, with statistics that have a switch.
const KERNELS: [&str; 5] = ["v4.5-rc1", "v4.15", "v4.16", "v6.1", "v6.12"];

/// What a wakeup and a switch touch, and clock reads, with the kernel's statistics as `set` leaves them.
fn wakeup_with(kernel: &str, more: &[(&str, &str)], set: impl Fn(&mut Sched<Recorder>)) -> (Vec<String>, u32) {
    let behaviours = [&[("stats.schedstats", "tunable")][..], more].concat();
    let (sched, _waker, wakee) = waker_and_wakee_of(kernel, &behaviours, set);
    let (text, reads) = recorded(sched, wakee);
    (text.lines().map(|line| line.trim().to_string()).collect(), reads)
}

fn set_tunable(sched: &mut Sched<Recorder>, tunable: Tunable) {
    Scheduler::sysctl_write(sched, CpuId(0), tunable, 1).expect("a tunable of this kernel");
}

#[test]
fn statistics_that_are_off_touch_nothing() {
    for kernel in KERNELS {
        // Pressure, which is on in kernels that have it, is asked of below. A kernel without answers so.
        let (off, off_reads) = wakeup_with(kernel, &[], |sched| _ = sched.setup_psi(false));
        assert!(!off.iter().any(|line| is_statistics(line)), "{kernel}: {off:#?}");
        assert!(!off.iter().any(|line| line.contains("statistics line")), "{kernel}: {off:#?}");
        // With them on the same happens in the same order, and between it nothing but statistics.
        let (on, on_reads) = wakeup_with(kernel, &[], |sched| {
            let _ = sched.setup_psi(false);
            set_tunable(sched, Tunable::sched_schedstats);
        });
        let mut rest = off.iter();
        let mut next = rest.next();
        let mut within = false;
        for line in &on {
            if Some(line) == next {
                next = rest.next();
                within = false;
                continue;
            }
            // A function of statistics may touch a line that they share with the entity's times.
            let counts = line.contains("rq.Stats") || line.starts_with("write ") && line.ends_with("rq.WakeList");
            let shared = counts || line.starts_with("write domain ") || within;
            assert!(is_statistics(line) || shared, "{kernel}: {line} is no statistics: {on:#?}");
            within = line.ends_with("()");
        }
        assert_eq!(next, None, "{kernel}: with statistics something else is missing");
        assert!(on.iter().filter(|line| is_statistics(line)).count() >= 4, "{kernel}: they are on");
        assert_eq!(off_reads, on_reads, "{kernel}: the run queue's clock is all that schedstats need");
    }
}

#[test]
fn a_kernel_that_could_account_pressure_and_does_not_is_one_that_cannot() {
    for kernel in ["v6.1", "v6.12"] {
        let without = wakeup_with(kernel, &[("psi.accounting", "absent"), ("stats.sleep_profile", "absent")], |_| ());
        assert_eq!(wakeup_with(kernel, &[], |sched| sched.setup_psi(false).expect("it has it")), without, "{kernel}");
        let (on, reads) = wakeup_with(kernel, &[], |_| ());
        assert!(on.iter().any(|line| line == "psi_group_change()") && reads > without.1, "{kernel}");
    }
}

#[test]
fn latencytop_pays_for_itself_and_for_schedstats() {
    const PLACE: &[Function] = &[Function::schedule];
    for kernel in KERNELS {
        let (mut sched, _waker, wakee) = waker_and_wakee_of(kernel, &[("stats.schedstats", "tunable")], |sched| {
            set_tunable(sched, Tunable::latencytop);
        });
        sched.set_wait_channel(wakee, PLACE);
        let (text, _) = recorded(sched, wakee);
        assert_eq!(text.matches("__account_scheduler_latency()").count(), 1, "{kernel}: {text}");
        assert_eq!(text.matches("lock statistics line 0").count(), 2, "{kernel}: its lock is taken and given back");
        assert!(text.contains("ttwu_stat()"), "{kernel}: schedstats are on");
    }
}

/// How many locked instructions who writes three pages into a pipe and reads them again executes beside the mutex.
fn locked_in_a_pipe(slots: PipeSlots) -> usize {
    let (mut sched, waker, _) = waker_and_wakee("v6.1", "tunable");
    let mut os = Os::new(OsRules { slots, ..OsRules::V6_1 }, 250);
    let pipe = os.create_pipe();
    sched.arch.listening = true;
    for mut call in [Syscall::Write, Syscall::Read].map(|call| call(PipeCall::new(pipe, 3 * PAGE_SIZE))) {
        assert_eq!(os.step(&mut sched, CpuId(0), waker, &mut call), Step::Done(3 * PAGE_SIZE));
    }
    sched.arch.out.lines().filter(|line| line.trim_start().starts_with("atomic")).count()
}

#[test]
fn a_pipes_slots_are_moved_under_the_readers_lock_from_v5_5_to_v6_6() {
    let [before, between, after] = [PipeSlots::Mutex, PipeSlots::RdWait, PipeSlots::MutexAgain].map(locked_in_a_pipe);
    assert_eq!(between, before + 2 * 3, "for each page that is filled, and for each that is drained");
    assert_eq!(after, before);
}

/// What who writes so many bytes into an empty pipe, reads them and writes them again allocates each time, and whether before it takes the mutex.
fn pages_allocated(pages: PipePages, bytes: u64) -> [(usize, bool); 2] {
    let (mut sched, waker, _) = waker_and_wakee("v6.12", "tunable");
    let mut os = Os::new(OsRules { pages, ..OsRules::V6_12 }, 250);
    let pipe = os.create_pipe();
    sched.arch.listening = true;
    [(); 2].map(|()| {
        let mut written = String::new();
        for mut call in [Syscall::Write, Syscall::Read].map(|call| call(PipeCall::new(pipe, bytes))) {
            sched.arch.out.clear();
            assert_eq!(os.step(&mut sched, CpuId(0), waker, &mut call), Step::Done(bytes));
            if written.is_empty() {
                written = sched.arch.out.clone();
            }
        }
        let allocated = |text: &str| text.matches("alloc_page").count();
        let before = written.split("mutex_lock").next().expect("there is always a first");
        (allocated(&written), allocated(before) > 0)
    })
}

#[test]
fn long_writes_allocate_their_pages_ahead_in_v7_2_and_all_in_v7_3_and_pipes_keep_two() {
    use PipePages::{Ahead, One, Pool};
    assert_eq!(pages_allocated(One, 100), [(1, false), (0, false)]);
    assert_eq!(pages_allocated(Ahead, 100), [(1, false), (0, false)]);
    assert_eq!(pages_allocated(One, 3 * PAGE_SIZE), [(3, false), (2, false)]);
    assert_eq!(pages_allocated(Ahead, 3 * PAGE_SIZE), [(3, true), (3, true)]);
    // Eight ahead, four more of which the second time two were kept.
    assert_eq!(pages_allocated(Ahead, 12 * PAGE_SIZE), [(12, true), (10, true)]);
    // v7.3: short ones too, but nobody allocates ahead what was kept: two.
    assert_eq!(pages_allocated(Pool, 100), [(1, true), (0, false)]);
    assert_eq!(pages_allocated(Pool, 3 * PAGE_SIZE), [(3, true), (1, true)]);
    assert_eq!(pages_allocated(Pool, 12 * PAGE_SIZE), [(12, true), (10, true)]);
}

/// How often each of two sends to a reader who sleeps looks at the reader, who does not run meanwhile.
fn looks_at_a_sleeping_reader(net: NetRules) -> [usize; 2] {
    let (mut sched, waker, wakee) = waker_and_wakee("v4.15", "tunable");
    let mut os = Os::new(OsRules { net, ..OsRules::V4_15 }, 250);
    let (from, to) = os.connect(Transport::Tcp { nodelay: true }, Buffers::default());
    sched.wake(CpuId(0), wakee, WakeFlags::NONE);
    assert_eq!(Scheduler::schedule(&mut sched, CpuId(1), false), Some(wakee));
    let mut read = Syscall::Net(NetCall::receive(to, 100, Receive::default()));
    assert!(matches!(os.step(&mut sched, CpuId(1), wakee, &mut read), Step::Sleep));
    assert_eq!(Scheduler::schedule(&mut sched, CpuId(1), false), None);
    sched.arch.listening = true;
    [(); 2].map(|()| {
        sched.arch.out.clear();
        let mut send = Syscall::Net(NetCall::send(from, 100));
        while !matches!(os.step(&mut sched, CpuId(0), waker, &mut send), Step::Done(_)) {}
        sched.arch.out.lines().filter(|line| line.trim_start().starts_with("try_to_wake_up()")).count()
    })
}

#[test]
fn a_woken_reader_stands_on_its_sockets_queue_until_it_runs_since_v4_10() {
    assert_eq!(looks_at_a_sleeping_reader(NetRules::V4_5), [1, 0], "who wakes it takes it off");
    for net in [NetRules::V4_15, NetRules::V6_1, NetRules::V6_12] {
        assert_eq!(looks_at_a_sleeping_reader(net), [1, 1], "{net:?}");
    }
}
