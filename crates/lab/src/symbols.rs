//! The names of a profile's frames: the call chain that `perf report` shows for each priced function, by kernel
//! version.
//!
//! A price often covers several functions of the kernel that call each other, and their names change from version to
//! version. This module gives the chain of each as the source calls it; static functions with one caller are left out,
//! because compilers inline them. Names of `kernel/`, `net/`, `fs/pipe.c` and `fs/select.c` were looked up in the
//! trees. Those of the x86 entry code, the VFS, futexes and cpuidle drivers are known from real profiles, and were not
//! looked up.
//!
//! Known gaps: CPU 0's idle task stands below `cpu_startup_entry` like every other, not below `start_kernel`; a poller or a parent
//! in `wait4` is woken through `autoremove_wake_function` like every other sleeper, and an epoll file's callback stands below it; preemption on the way to user mode shows
//! without the interrupt or system call that it is the end of.

use crate::kernels::version;
use crate::prices::path_name;
mod rows;

use machine::prices::Prices;
use machine::profile::Frame;
use observe::{HALTED, Object, Stack};
use os::paths;
use rows::{Row, V4_5, V4_15, V4_16, V4_19, V5_4, V5_10, V5_15, V6_1, V6_6, V6_12, V6_18, V7_2, V7_3};
use sched::access::Path;
use std::collections::{BTreeMap, BTreeSet};
use units::Ps;

/// The chains of each version, where they differ from the version before.
const VERSIONS: &[(&str, &[Row])] = &[
    ("v4.5-rc1", V4_5),
    ("v4.15", V4_15),
    ("v4.16", V4_16),
    ("v4.19", V4_19),
    ("v5.4", V5_4),
    ("v5.10", V5_10),
    ("v5.15", V5_15),
    ("v6.1", V6_1),
    ("v6.6", V6_6),
    ("v6.12", V6_12),
    ("v6.18", V6_18),
    ("v7.2", V7_2),
    ("v7.3", V7_3),
];

/// Priced functions that a version's source declares inline, or calls from only one place: their time counts as their
/// callers'.
const INLINED: &[(&str, &[&str])] = &[("v4.5-rc1", &["entity_tick", "update_load_avg"])];

const PREFIX: &str = "prefix";

/// Work in user space that has a price of its own: its function, and the library that contains it.
const USER: (Path, &str, &str) = (paths::USER_LOCK, "pthread_mutex_lock", "libpthread.so.0");
/// Threads try to synchronize in user space first, so a call of the kernel for that is recorded without its callers.
/// These are the callers.
const IMPLIED: &[(Path, &[Path])] = &[
    (paths::FUTEX_WAIT, &[paths::ENTRY_SYSCALL]),
    (paths::FUTEX_WAKE, &[paths::ENTRY_SYSCALL]),
    (Path::try_to_wake_up, &[paths::ENTRY_SYSCALL, paths::FUTEX_WAKE]),
];

/// The function in which a polling CPU idles.
const POLLS_IN: &str = "poll_idle";

/// The versions up to the kernel of that name, or all if it is no kernel's.
fn up_to(kernel: &str) -> &'static [(&'static str, &'static [Row])] {
    let wanted = version(kernel);
    let last = VERSIONS.iter().rposition(|(of, _)| wanted.is_some() && version(of) <= wanted);
    &VERSIONS[..=last.unwrap_or(VERSIONS.len() - 1)]
}

/// The priced functions whose time counts as their callers', if these are the versions up to a kernel.
fn inlined(versions: &[(&str, &'static [Row])]) -> &'static [&'static str] {
    let newest = versions.last().map(|(version, _)| *version);
    INLINED.iter().find(|(of, _)| Some(*of) == newest).map_or(&[][..], |(_, names)| names)
}

/// The row of the newest of the versions that has one.
fn row(versions: &[(&str, &'static [Row])], below: &str, name: &str) -> Option<&'static str> {
    let rows = versions.iter().rev().flat_map(|(_, rows)| rows.iter());
    rows.filter(|row| row.0 == below && row.1 == name).map(|row| row.2).next()
}

fn priced() -> impl Iterator<Item = &'static str> {
    let user = path_name(USER.0);
    Path::NAMES.iter().chain(paths::NAMES).copied().filter(move |name| *name != user)
}

/// The frame that a priced function's own time is booked on, if called below that frame; `None` if that caller has no
/// row of its own.
fn booked_on(kernel: &str, below: &str, name: &'static str) -> Option<&'static str> {
    match row(up_to(kernel), below, name) {
        Some(chain) => chain.split_whitespace().find_map(|frame| frame.strip_suffix('*')),
        None => below.is_empty().then_some(name),
    }
}

/// The kernel functions that may occur in this kernel's profiles.
pub fn functions(kernel: &str) -> BTreeSet<&'static str> {
    let versions = up_to(kernel);
    let inlined = inlined(versions);
    let bare = priced().filter(|name| row(versions, "", name).is_none() && !inlined.contains(name));
    let keys = versions.iter().flat_map(|(_, rows)| rows.iter());
    let chains = keys.filter_map(|(below, name, _)| row(versions, below, name)).flat_map(str::split_whitespace);
    bare.chain(chains.map(|frame| frame.trim_end_matches('*'))).chain([POLLS_IN]).chain(HALTED).collect()
}

/// The price that a kernel's function comes under.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PricedAs {
    /// As machine files call it.
    pub name: &'static str,
    /// Profiles book the price's time on this function, so that a call of it is one payment.
    pub booked: bool,
}

/// By the names of this kernel's functions: the price that each comes under. A function that is on the way to a priced
/// one and has its price's name comes under that price as well (`schedule()` beside `__schedule()`).
pub fn priced_as(kernel: &str) -> BTreeMap<&'static str, PricedAs> {
    let mut found = BTreeMap::new();
    for name in priced() {
        let booked = booked_on(kernel, "", name).unwrap_or(name);
        found.entry(booked).or_insert(PricedAs { name, booked: true });
    }
    for name in priced() {
        found.entry(name).or_insert(PricedAs { name, booked: false });
    }
    found
}

/// This kernel's name for a function that some kernel calls `function`. `None` if this kernel has no such function by
/// itself.
pub fn called(function: &str, kernel: &str) -> Option<&'static str> {
    let functions = functions(kernel);
    if let Some(known) = functions.get(function) {
        return Some(*known);
    }
    let keys = VERSIONS.iter().flat_map(|(_, rows)| rows.iter()).map(|(below, name, _)| (*below, *name));
    let once = |(below, name): &(&str, &'static str)| {
        VERSIONS.iter().any(|(version, _)| booked_on(version, below, name) == Some(function))
    };
    let names = keys.filter(once).filter_map(|(below, name)| booked_on(kernel, below, name));
    let names: BTreeSet<&str> = names.filter(|name| functions.contains(name)).collect();
    if names.len() == 1 { names.first().copied() } else { None }
}

/// Names the frames of one kernel on one machine.
pub struct Symbols<'a> {
    versions: &'static [(&'static str, &'static [Row])],
    prices: &'a Prices,
    name: fn(Path) -> &'static str,
}

impl Symbols<'_> {
    /// For the kernel of that name, or for the newest. `name` gives the name of a path.
    pub fn of<'a>(kernel: &str, prices: &'a Prices, name: fn(Path) -> &'static str) -> Symbols<'a> {
        Symbols { versions: up_to(kernel), prices, name }
    }

    /// A stack of the profile; `comms` are the names of its tasks.
    pub fn stack(&self, frames: &[Frame], comms: &[String], time: Ps) -> Stack {
        let [Frame::Comm(comm), above @ ..] = frames else { panic!("a stack begins with who ran") };
        let task = comms[*comm as usize].clone();
        let root = match task.as_str() {
            _ if *comm == 0 => "idle",
            name if name.starts_with("migration/") => "stopper",
            _ => "task",
        };
        let stack = |object: Object, frames: Vec<&str>| {
            let frames = frames.into_iter().map(str::to_string).collect();
            Stack { task: task.clone(), object, frames, time_ps: time.0 }
        };
        match above {
            [] if root != "task" => stack(Object::Kernel, self.prefix(root).collect()),
            [] | [Frame::User] => stack(Object::Task, vec!["main"]),
            [Frame::Idle(state)] => stack(Object::Kernel, self.idle(*state)),
            [Frame::Kernel(path)] if *path == USER.0 => stack(Object::Library(USER.2), vec![USER.1]),
            _ => {
                let kernel = |frame: &Frame| match frame {
                    Frame::Kernel(path) => *path,
                    other => panic!("{other:?} stands above the kernel"),
                };
                let mut paths: Vec<Path> = above.iter().map(kernel).collect();
                if root == "task"
                    && let Some((_, callers)) = IMPLIED.iter().find(|(path, _)| *path == paths[0])
                {
                    paths.splice(..0, callers.iter().copied());
                }
                stack(Object::Kernel, self.chain(root, &paths))
            }
        }
    }

    /// The backtrace of a sleeping task, the outermost frame first, up to the call of the scheduler.
    pub fn asleep(&self, place: &[Path]) -> Vec<String> {
        let who = [Frame::Comm(1)];
        let frames: Vec<Frame> =
            who.into_iter().chain(place.iter().chain([&Path::schedule]).map(|&path| Frame::Kernel(path))).collect();
        let mut frames = self.stack(&frames, &[String::new(), String::new()], Ps::ZERO).frames;
        // A backtrace of a sleeper leaves out the functions of kernel/sched (in_sched_functions()).
        frames.retain(|frame| !["io_schedule", "schedule", "__schedule"].contains(&frame.as_str()));
        frames
    }

    /// The chain to the driver's function, through which every idle state is entered.
    fn idle(&self, state: u8) -> Vec<&'static str> {
        let mut chain = self.chain("idle", &[paths::CPUIDLE_ENTER]);
        chain.push(match &self.prices.idle_states[usize::from(state)] {
            state if state.polling => POLLS_IN,
            _ => self.prices.halts_in,
        });
        chain
    }

    fn chain(&self, root: &'static str, paths: &[Path]) -> Vec<&'static str> {
        let mut chain = Vec::new();
        let mut below = root;
        let inlined = inlined(self.versions);
        let seen = |&(depth, &path): &(usize, &Path)| depth == 0 || !inlined.contains(&(self.name)(path));
        let paths: Vec<Path> = paths.iter().enumerate().filter(seen).map(|(_, &path)| path).collect();
        for (depth, &path) in paths.iter().enumerate() {
            let name = (self.name)(path);
            let row = self.row(below, name);
            // A function that continues within itself appears only once.
            if row.is_none() && name == below {
                continue;
            }
            if row.is_none() && depth == 0 {
                chain.extend(self.prefix(root));
                // Interrupts of an idle CPU are taken where the CPU leaves its idle state.
                if root == "idle" && [paths::SMP_APIC_TIMER_INTERRUPT, paths::SMP_RESCHEDULE_INTERRUPT].contains(&path)
                {
                    chain = self.chain("idle", &[paths::CPUIDLE_ENTER]);
                }
            }
            let frames = row.or_else(|| self.row("", name)).unwrap_or(name);
            let last = depth + 1 == paths.len();
            for frame in frames.split_whitespace() {
                chain.push(frame.trim_end_matches('*'));
                if last && frame.ends_with('*') {
                    break;
                }
            }
            below = name;
        }
        chain
    }

    /// The frames that the stacks of a root begin with.
    fn prefix(&self, root: &str) -> impl Iterator<Item = &'static str> {
        self.row(root, PREFIX).unwrap_or_default().split_whitespace()
    }

    fn row(&self, below: &str, name: &str) -> Option<&'static str> {
        row(self.versions, below, name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(kernel: &str, frames: &[Frame]) -> String {
        let prices = Prices::free();
        let comms = ["swapper", "pipe-test", "migration/3"].map(str::to_string);
        let stack = Symbols::of(kernel, &prices, path_name).stack(frames, &comms, Ps(7));
        format!("{} {}", stack.task, stack.frames.join(";"))
    }

    fn kernel(comm: u32, paths: &[Path]) -> Vec<Frame> {
        [Frame::Comm(comm)].into_iter().chain(paths.iter().map(|&path| Frame::Kernel(path))).collect()
    }

    #[test]
    fn a_sleeping_reader_stands_where_its_kernel_has_it() {
        use paths::*;
        let sleeper = kernel(1, &[ENTRY_SYSCALL, SYS_READ, PIPE_READ, PIPE_WAIT, Path::schedule]);
        assert_eq!(
            named("v4.5-rc1", &sleeper),
            "pipe-test entry_SYSCALL_64_fastpath;sys_read;vfs_read;__vfs_read;pipe_read;pipe_wait;schedule;__schedule"
        );
        assert_eq!(
            named("v6.12", &sleeper),
            "pipe-test entry_SYSCALL_64_after_hwframe;do_syscall_64;__x64_sys_read;ksys_read;vfs_read;pipe_read;\
             prepare_to_wait_event;schedule;__schedule"
        );
        assert_eq!(
            named("v7.2", &sleeper),
            "pipe-test entry_SYSCALL_64_after_hwframe;do_syscall_64;__x64_sys_read;ksys_read;vfs_read;anon_pipe_read;\
             prepare_to_wait_event;schedule;__schedule"
        );
        // A function's own time is booked on its own frame, not on frames that it passes through.
        let own = kernel(1, &[ENTRY_SYSCALL, SYS_READ]);
        assert_eq!(named("v4.16", &own), "pipe-test entry_SYSCALL_64_after_hwframe;do_syscall_64;sys_read");
    }

    #[test]
    fn the_same_function_has_other_callers_elsewhere() {
        use paths::*;
        for (frames, expected) in [
            (kernel(1, &[Path::schedule]), "pipe-test exit_to_usermode_loop;schedule;__schedule"),
            (kernel(0, &[Path::schedule]), "swapper cpu_startup_entry;do_idle;schedule_idle;__schedule"),
            (kernel(2, &[Path::schedule]), "migration/3 ret_from_fork;kthread;smpboot_thread_fn;schedule;__schedule"),
            (kernel(1, &[FUTEX_WAKE]), "pipe-test entry_SYSCALL_64_fastpath;sys_futex;do_futex;futex_wake"),
            (
                kernel(1, &[Path::try_to_wake_up]),
                "pipe-test entry_SYSCALL_64_fastpath;sys_futex;do_futex;futex_wake;wake_up_q;try_to_wake_up",
            ),
            (kernel(1, &[USER_LOCK]), "pipe-test pthread_mutex_lock"),
            (kernel(1, &[]), "pipe-test main"),
            (
                kernel(0, &[SMP_APIC_TIMER_INTERRUPT]),
                "swapper cpu_startup_entry;do_idle;call_cpuidle;cpuidle_enter;cpuidle_enter_state;apic_timer_interrupt;\
                 smp_apic_timer_interrupt",
            ),
            (
                kernel(1, &[ENTRY_SYSCALL, SYS_WAIT4, SYS_WAIT4]),
                "pipe-test entry_SYSCALL_64_fastpath;sys_wait4;kernel_wait4;do_wait",
            ),
            (
                kernel(1, &[ENTRY_SYSCALL, DO_FORK, DO_FORK]),
                "pipe-test entry_SYSCALL_64_fastpath;sys_clone;_do_fork;copy_process",
            ),
        ] {
            assert_eq!(named("v4.15", &frames), expected);
        }
    }

    #[test]
    fn softirqs_bear_their_kernels_name_wherever_they_are_run() {
        use paths::*;
        let sender = kernel(1, &[DEV_QUEUE_XMIT, DO_SOFTIRQ]);
        let own_stack = "__local_bh_enable_ip;do_softirq;do_softirq_own_stack;__do_softirq";
        assert!(named("v4.15", &sender).ends_with(own_stack));
        assert!(named("v6.1", &sender).ends_with("__local_bh_enable_ip;do_softirq;__do_softirq"));
        assert!(named("v6.12", &sender).ends_with("__local_bh_enable_ip;do_softirq;handle_softirqs"));
        // Whoever calls it: transmission, a device's interrupt, the thread, or interrupts of the timer and others.
        for caller in [&[DEV_QUEUE_XMIT][..], &[NVME_IRQ], &[], &[SMP_APIC_TIMER_INTERRUPT]] {
            let run = named("v6.12", &kernel(1, &[caller, &[DO_SOFTIRQ]].concat()));
            assert!(run.ends_with("handle_softirqs") && !run.contains("__do_softirq"), "{run}");
        }
    }

    #[test]
    fn what_a_fork_takes_is_taken_by_copy_process() {
        use crate::experiment::{Draft, Purpose};
        use machine::topology::Location;
        // Also with a kernel that may be preempted in the middle of it; with processes and with threads.
        for (kernel, workload) in ["v4.15", "v6.12"].into_iter().flat_map(|of| [(of, "threads=0"), (of, "threads=1")]) {
            let mut draft = Draft::default();
            draft.machine_option("core-i7-3770");
            draft.workload_option(&format!("perf-bench-pipe:loops=1,{workload}")).unwrap();
            draft.arm_options(&[kernel.to_string()], true).unwrap();
            let experiment = draft.resolve(Purpose::Watch, &crate::machines::tests::Table::default()).unwrap();
            let wanted = crate::run::Wanted { profile: true, ..Default::default() };
            let run = crate::run::run(&experiment.setup(&experiment.jobs()[0]), wanted, &Location::of("a test"));
            let stacks = run.unwrap().expect("nobody interrupts it").profile.expect("it was asked for").stacks;
            let own = |name: &str| {
                let ends = stacks.iter().filter(|it| it.frames.last().is_some_and(|last| last == name));
                ends.map(|it| it.time_ps).sum::<u64>()
            };
            let others: u64 = ["_do_fork", "kernel_clone", "clone_thread"].into_iter().map(own).sum();
            assert!(own("copy_process") > 50 * others, "{kernel} {workload}: {others} of others");
        }
    }

    #[test]
    fn inline_functions_are_part_of_their_callers() {
        let tick = kernel(1, &[Path::task_tick_fair, Path::entity_tick, Path::update_load_avg]);
        assert!(named("v4.5-rc1", &tick).ends_with("task_tick_fair"));
        assert!(named("v4.15", &tick).ends_with("task_tick_fair;entity_tick;update_load_avg"));
        let enqueue = kernel(1, &[Path::enqueue_entity, Path::update_load_avg, Path::update_cfs_shares]);
        assert!(named("v4.5-rc1", &enqueue).ends_with("enqueue_entity;update_cfs_shares"));
    }

    #[test]
    fn idle_time_is_the_drivers() {
        let polling = [Frame::Comm(0), Frame::Idle(0)];
        let way = "cpu_startup_entry;call_cpuidle;cpuidle_enter;cpuidle_enter_state;poll_idle";
        let machine = crate::machines::Machine::named("core-i7-3770").expect("it ships");
        let prices = crate::prices::prices(&machine.description, "v7.2");
        let of_v4_5 = Symbols::of("v4.5-rc1", &prices, path_name);
        assert_eq!(of_v4_5.stack(&polling, &["swapper".to_string()], Ps(1)).frames.join(";"), way);
        let deep = prices.idle_states.len() as u8 - 1;
        let symbols = Symbols::of("v4.16", &prices, path_name);
        let stack = symbols.stack(&[Frame::Comm(0), Frame::Idle(deep)], &["swapper".to_string()], Ps(1));
        assert_eq!(stack.frames.last().map(String::as_str), Some("intel_idle"));
        let driver = |name: &str| {
            let machine = crate::machines::Machine::named(name).expect("it ships");
            crate::prices::prices(&machine.description, "v7.2").halts_in
        };
        assert_eq!(driver("epyc-9654"), "acpi_idle_enter");
        assert_eq!(driver("ampere-altra-q80-33-2s"), "cpu_do_idle");
        assert_eq!(driver("power9-16c-2s"), "stop_loop");
        assert_eq!(driver("sparc-t4-2"), "arch_cpu_idle");
    }

    #[test]
    fn a_function_is_known_by_the_name_of_any_kernel() {
        for (function, kernel, name) in [
            ("scheduler_tick", "v6.1", Some("scheduler_tick")),
            ("scheduler_tick", "v6.12", Some("sched_tick")),
            ("sched_tick", "v4.15", Some("scheduler_tick")),
            ("update_cfs_shares", "v4.15", Some("update_cfs_group")),
            ("update_cfs_group", "v4.5-rc1", Some("update_cfs_shares")),
            ("idle_balance", "v6.1", Some("newidle_balance")),
            ("newidle_balance", "v6.12", Some("sched_balance_newidle")),
            ("sched_balance_newidle", "v4.5-rc1", Some("idle_balance")),
            ("entry_SYSCALL_64_fastpath", "v6.12", Some("entry_SYSCALL_64_after_hwframe")),
            ("ksys_read", "v4.16", Some("sys_read")),
            ("intel_idle", "v4.15", Some("intel_idle")),
            ("pipe_read", "v7.2", Some("anon_pipe_read")),
            ("anon_pipe_write", "v6.12", Some("pipe_write")),
            ("pipe_read", "v6.18", Some("anon_pipe_read")),
            ("wakeup_preempt_fair", "v6.18", Some("check_preempt_wakeup_fair")),
            ("check_preempt_wakeup_fair", "v7.2", Some("wakeup_preempt_fair")),
            ("wakeup_preempt_fair", "v6.1", Some("check_preempt_wakeup")),
            ("sched_balance_newidle", "v7.2", Some("sched_balance_newidle")),
            ("update_cfs_group", "v7.2", Some("update_cfs_group")),
            ("update_cfs_group", "v7.3", Some("calc_concur_shares")),
            ("calc_concur_shares", "v6.12", Some("update_cfs_group")),
            ("pipe_read", "v7.3", Some("anon_pipe_read")),
            // A caller has no price, and so no other name.
            ("vfs_read", "v6.12", Some("vfs_read")),
            ("do_softirq_own_stack", "v6.1", None),
            ("__do_softirq", "v6.12", Some("handle_softirqs")),
            ("handle_softirqs", "v4.15", Some("__do_softirq")),
            // There it is part of its caller.
            ("update_load_avg", "v4.5-rc1", None),
            ("update_load_avg", "v4.15", Some("update_load_avg")),
            ("pthread_mutex_lock", "v4.15", None),
            ("schedul", "v4.15", None),
        ] {
            assert_eq!(called(function, kernel), name, "{function} in {kernel}");
        }
        // Every priced function has a name in every kernel, except those that are part of their callers.
        for (kernel, _) in VERSIONS {
            for name in priced() {
                let inlined = INLINED.iter().any(|(of, names)| of == kernel && names.contains(&name));
                let booked = booked_on(kernel, "", name).is_some_and(|name| functions(kernel).contains(name));
                assert!(booked || inlined, "{name} in {kernel}");
            }
        }
    }

    #[test]
    fn a_kernels_functions_come_under_prices() {
        let of = |kernel: &str, function: &str| priced_as(kernel).get(function).map(|as_| (as_.name, as_.booked));
        assert_eq!(of("v6.12", "__schedule"), Some(("schedule", true)));
        assert_eq!(of("v6.12", "schedule"), Some(("schedule", false)));
        assert_eq!(of("v6.12", "sched_balance_newidle"), Some(("idle_balance", true)));
        assert_eq!(of("v4.16", "sched_balance_newidle"), None);
    }

    #[test]
    fn rows_are_of_functions_that_are_priced_and_of_kernels_that_are_built() {
        let known: BTreeSet<&str> = Path::NAMES.iter().chain(paths::NAMES).copied().collect();
        let roots = ["", "task", "idle", "stopper"];
        for (version, rows) in VERSIONS {
            assert!(crate::kernels::names().any(|name| name == *version), "{version}");
            let mut keys = BTreeSet::new();
            for (below, name, chain) in rows.iter() {
                assert!(roots.contains(below) || known.contains(below), "{version}: {below}");
                assert!(known.contains(name) || *name == PREFIX, "{version}: {name}");
                assert_eq!(chain.matches('*').count(), usize::from(*name != PREFIX), "{version}: {chain}");
                assert!(keys.insert((below, name)), "{version}: {below}/{name} twice");
            }
        }
    }
}
