//! Recordings in each format, what is made of them, and a simulation's own recording, replayed.

mod cut;

use super::event::{Recorded, What};
use super::{Begin, Playback, Replay, Step, Task, read};
use crate::fixture::{Ran, boot, instance, play};
use crate::script::Script;
use observe::{Ftrace, Perfetto, Selection};
use sched::trace::{Event, Sink};
use sched::versions::{Kernel, V4_15, V6_12};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use units::{CpuId, Ns};

fn of(text: &str) -> Replay {
    read(text.as_bytes()).unwrap_or_else(|error| panic!("{error:?}"))
}

fn task<'a>(replay: &'a Replay, name: &str) -> &'a Task {
    replay.tasks.iter().find(|task| task.name == name).unwrap_or_else(|| panic!("{name} in {replay:?}"))
}

/// The steps of a task as stored, without the rest of its lines.
fn script(replay: &Replay, name: &str) -> String {
    let text = replay.text();
    let mut lines = text.lines().skip_while(|line| !line.ends_with(&format!("name={name}")));
    lines.nth(1).unwrap_or_else(|| panic!("{name} in {text}")).to_string()
}

/// `a` runs, wakes `b` and sleeps; `b` waits 10 us in a run queue, runs, is preempted by `c`, runs on, wakes `a` and sleeps.
const PING: &str = "\
               a-1     [000] d..2.     1.000000: sched_waking: comm=b pid=2 prio=120 target_cpu=001
               a-1     [000] d..2.     1.000020: sched_switch: prev_comm=a prev_pid=1 prev_prio=120 prev_state=S ==> next_comm=swapper/0 next_pid=0 next_prio=120
          <idle>-0     [001] d..2.     1.000030: sched_switch: prev_comm=swapper/1 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=b next_pid=2 next_prio=120
               b-2     [001] d.h4.     1.000040: sched_waking: comm=c pid=3 prio=98 target_cpu=001
               b-2     [001] d..2.     1.000042: sched_switch: prev_comm=b prev_pid=2 prev_prio=120 prev_state=R+ ==> next_comm=c next_pid=3 next_prio=98
               c-3     [001] d..2.     1.000050: sched_switch: prev_comm=c prev_pid=3 prev_prio=98 prev_state=S ==> next_comm=b next_pid=2 next_prio=120
               b-2     [001] d..2.     1.000060: sched_waking: comm=a pid=1 prio=120 target_cpu=000
               b-2     [001] d..2.     1.000061: sched_switch: prev_comm=b prev_pid=2 prev_prio=120 prev_state=D ==> next_comm=swapper/1 next_pid=0 next_prio=120
          <idle>-0     [000] d..2.     1.000070: sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=a next_pid=1 next_prio=120
          <idle>-0     [001] d.h2.     1.000161: sched_waking: comm=b pid=2 prio=120 target_cpu=001
          <idle>-0     [001] d..2.     1.000165: sched_switch: prev_comm=swapper/1 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=b next_pid=2 next_prio=120
               a-1     [000] d..2.     1.000170: sched_switch: prev_comm=a prev_pid=1 prev_prio=120 prev_state=X ==> next_comm=swapper/0 next_pid=0 next_prio=120
               b-2     [001] d..2.     1.000200: sched_switch: prev_comm=b prev_pid=2 prev_prio=120 prev_state=S ==> next_comm=swapper/1 next_pid=0 next_prio=120
";

/// The same lines as another program prints them; `head` writes each line's beginning.
fn rewritten(head: impl Fn(&str, &str, &str) -> String) -> String {
    let line = |line: &str| {
        let (who, rest) = line.split_once('[').expect("a CPU");
        let (time, event) = rest.split_once(": ").expect("a time");
        let time = time.split_whitespace().last().expect("a time");
        head(who.trim(), &rest[..3], &format!("{time}: {event}")) + "\n"
    };
    PING.lines().map(line).collect()
}

#[test]
fn run_sleep_and_wake_are_told_from_waiting_and_preemption() {
    let replay = of(PING);
    assert_eq!(replay.end, Ns(200_000));
    // 20 us, none of it before the wakeup; woken by b; 100 us.
    assert_eq!(script(&replay, "a"), "w1 r20000 b1 r100000");
    // 12 us and 10 us around the preemption; woken by a; a device's 100 us in state D; 35 us.
    assert_eq!(script(&replay, "b"), "b0 r22000 w0 r1000 i100000 r35000");
    // A timer's.
    assert_eq!(script(&replay, "c"), "r8000");
    assert_eq!(task(&replay, "a").begin, Begin::At(Ns(0)));
    assert_eq!(task(&replay, "b").begin, Begin::Waiting);
    assert_eq!((task(&replay, "c").begin, task(&replay, "c").prio), (Begin::At(Ns(40_000)), 98));
    assert_eq!((task(&replay, "b").cpu, replay.nr_cpus()), (1, 2));
    assert_eq!(replay.notice.line(), None);
    assert_eq!(read(replay.text().as_bytes()), Ok(replay));
}

#[test]
fn every_program_prints_the_same_recording() {
    let expected = of(PING);
    let perf = |who: &str, cpu: &str, event: &str| {
        let (comm, pid) = who.rsplit_once('-').expect("a pid");
        format!("{comm:>16} {pid:>7} [{cpu}] {}", event.replacen(": ", ": sched:", 1))
    };
    // Without flags the wakeup of c counts as the work of the task in whose context it happened.
    let perf = rewritten(perf);
    assert_eq!(script(&of(&perf), "a"), script(&expected, "a"));
    assert_eq!(script(&of(&perf), "b"), script(&expected, "b").replace("r22000", "r10000 w2 r12000"));
    let trace_cmd = rewritten(|who, cpu, event| format!("{who:>20} [{cpu}] {event}"));
    assert_eq!(script(&of(&format!("cpus=2\n{trace_cmd}")), "b"), script(&of(&perf), "b"));
    let plugin = |who: &str, cpu: &str, event: &str| {
        let short = |prefix: &str, text: &str| {
            let field =
                |name: &str| text.split(&format!("{prefix}{name}=")).nth(1).expect(name).split(' ').next().unwrap();
            format!("{}:{} [{}]", field("comm"), field("pid"), field("prio"))
        };
        let (time, rest) = event.split_once(": ").expect("a time");
        let (name, fields) = rest.split_once(": ").expect("an event");
        let fields = match fields.split_once("prev_state=").and_then(|(_, rest)| rest.split_once(" ==> ")) {
            Some((state, _)) => format!("{} {state} ==> {}", short("prev_", fields), short("next_", fields)),
            None => short("", fields) + " CPU:001",
        };
        format!("{who:>22} ( 12) [{cpu}] d..2. {time}: {name}:        {fields}")
    };
    let plugin = rewritten(plugin);
    assert!(plugin.contains("b:2 [120] R+ ==> c:3 [98]"), "{plugin}");
    assert_eq!(script(&of(&plugin), "a"), script(&expected, "a"));
}

#[test]
fn a_wakeup_may_pass_before_the_switch_that_it_ends() {
    // Kernels emit this order when the waker is faster than the task that goes to sleep. Waking a task that has not
    // gone to sleep does not count.
    let text = "\
        a-1 [000] 1.000000: sched_waking: comm=b pid=2 prio=120 target_cpu=001\n\
        b-2 [001] 1.000001: sched_switch: prev_comm=b prev_pid=2 prev_prio=120 prev_state=S ==> next_comm=b2 next_pid=9 next_prio=120\n\
        b2-9 [001] 1.000003: sched_switch: prev_comm=b2 prev_pid=9 prev_prio=120 prev_state=R ==> next_comm=b next_pid=2 next_prio=120\n\
        a-1 [000] 1.000005: sched_waking: comm=b pid=2 prio=120 target_cpu=001\n\
        b-2 [001] 1.000007: sched_switch: prev_comm=b prev_pid=2 prev_prio=120 prev_state=R ==> next_comm=b2 next_pid=9 next_prio=120\n";
    let replay = of(text);
    assert_eq!(script(&replay, "b"), "r1000 b0 r4000");
    assert_eq!(script(&replay, "a"), "w1 r7000");
}

#[test]
fn forks_and_priorities_and_bound_threads_are_kept() {
    let text = "\
        sh-1 [000] 1.000010: sched_process_fork: comm=sh pid=1 child_comm=sh child_pid=2\n\
        sh-1 [000] 1.000012: sched_wakeup_new: comm=sh pid=2 prio=125 target_cpu=001\n\
        sh-1 [000] 1.000020: sched_switch: prev_comm=sh prev_pid=1 prev_prio=120 prev_state=S ==> next_comm=kworker/0:1H next_pid=7 next_prio=100\n\
        <idle>-0 [001] 1.000021: sched_switch: prev_comm=swapper/1 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=make next_pid=2 next_prio=125\n\
        make-2 [001] 1.000031: sched_switch: prev_comm=make prev_pid=2 prev_prio=130 prev_state=S ==> next_comm=swapper/1 next_pid=0 next_prio=120\n";
    let replay = of(text);
    assert_eq!(script(&replay, "sh"), "f1 r10000");
    assert_eq!(script(&replay, "make"), "r10000 p130");
    let make = task(&replay, "make");
    assert_eq!((make.begin, make.prio), (Begin::Forked, 125));
    let worker = task(&replay, "kworker/0:1H");
    assert!(worker.bound && worker.kernel && worker.prio == 100, "{worker:?}");
    assert!(!task(&replay, "sh").bound);
}

/// `a` runs, and the interrupts during its run wake the others. A line may have flags before a bar.
fn woken_within(lines: &[&str]) -> Replay {
    let switch = |time: &str, prev: &str, state: &str, next: &str| {
        let of = |task: &str| match task {
            "a" => 1,
            "b" => 2,
            _ => 0,
        };
        format!(
            "x-{} [000] {time}: sched_switch: prev_comm={prev} prev_pid={} prev_prio=120 prev_state={state} ==> \
             next_comm={next} next_pid={} next_prio=120\n",
            of(prev),
            of(prev),
            of(next)
        )
    };
    let mut text = switch("1.000000", "b", "S", "a");
    for line in lines {
        let (flags, event) = line.split_once('|').unwrap_or(("", line));
        text += &format!("a-1 [000] {flags} 1.000010: {event}\n");
    }
    text += &switch("1.000020", "a", "R", "b");
    text += &switch("1.000030", "b", "S", "a");
    of(&text)
}

#[test]
fn handlers_tell_interrupts_from_what_they_interrupt() {
    const WAKING: &str = "sched_waking: comm=b pid=2 prio=120 target_cpu=000";
    const FLAGGED: &str = "d.H.|sched_waking: comm=b pid=2 prio=120 target_cpu=000";
    let (slept, waited) = ("s10000 r10000", "b1 r10000");
    let cases: [(&[&str], &str); 16] = [
        (&[WAKING], waited),
        (&["local_timer_entry: vector=236", WAKING, "local_timer_exit: vector=236"], slept),
        (&["irq_handler_entry: irq=3 name=eth0", WAKING, "irq_handler_exit: irq=3 ret=handled"], slept),
        (&["reschedule_entry: vector=253", "reschedule_exit: vector=253", WAKING], waited),
        // Nothing tells who raised the softirq, so nothing says that it was a device.
        (&["softirq_entry: vec=3 [action=NET_RX]", WAKING, "softirq_exit: vec=3 [action=NET_RX]"], waited),
        (&["softirq_entry: vec=1 [action=TIMER]", WAKING], slept),
        (&["softirq_raise: vec=3 [action=NET_RX]", "softirq_entry: vec=3 [action=NET_RX]", WAKING], waited),
        (
            &[
                "irq_handler_entry: irq=3 name=eth0",
                "softirq_raise: vec=3 [action=NET_RX]",
                "irq_handler_exit: irq=3 ret=handled",
                "softirq_entry: vec=3 [action=NET_RX]",
                WAKING,
            ],
            slept,
        ),
        // A softirq raised another one, which runs at its end.
        (
            &[
                "softirq_entry: vec=1 [action=TIMER]",
                "softirq_raise: vec=3 [action=NET_RX]",
                "softirq_exit: vec=1 [action=TIMER]",
                "softirq_entry: vec=3 [action=NET_RX]",
                WAKING,
            ],
            slept,
        ),
        (&["softirq_entry: vec=1 [action=TIMER]", "softirq_exit: vec=1 [action=TIMER]", WAKING], waited),
        // Handlers that no event reports, in the middle of a softirq and of a raise.
        (&["softirq_raise: vec=3 [action=NET_RX]", "softirq_entry: vec=3 [action=NET_RX]", FLAGGED], slept),
        (
            &[
                "d.h.|softirq_raise: vec=3 [action=NET_RX]",
                "..s.|softirq_entry: vec=3 [action=NET_RX]",
                "d.s.|sched_waking: comm=b pid=2 prio=120 target_cpu=000",
            ],
            slept,
        ),
        // An invalid vector or number is a softirq of unknown kind.
        (&["softirq_raise: vec=257 [action=X]", "softirq_entry: vec=257 [action=X]", WAKING], waited),
        (&["softirq_entry: vec=-1 [action=X]", WAKING], waited),
        (&["softirq_entry: vec=4294967297 [action=X]", WAKING], waited),
        (&["ipi_entry: (Rescheduling interrupts)", "ipi_exit: (Rescheduling interrupts)", WAKING], waited),
    ];
    for (lines, expected) in cases {
        let replay = woken_within(lines);
        assert_eq!(script(&replay, "b"), expected, "{lines:?}");
        assert_eq!(replay.notice.line(), None, "{lines:?}");
    }
    // It was raised by another task than it interrupts: it is treated as if the raiser were unknown, and the wakee is
    // woken that way out of idle too.
    let of_another = "\
        x-2 [000] 1.000000: sched_switch: prev_comm=b prev_pid=2 prev_prio=120 prev_state=S ==> next_comm=c next_pid=3 next_prio=120\n\
        c-3 [000] 1.000001: softirq_raise: vec=3 [action=NET_RX]\n\
        c-3 [000] 1.000002: sched_switch: prev_comm=c prev_pid=3 prev_prio=120 prev_state=S ==> next_comm=a next_pid=1 next_prio=120\n\
        a-1 [000] 1.000010: softirq_entry: vec=3 [action=NET_RX]\n\
        a-1 [000] 1.000010: sched_waking: comm=b pid=2 prio=120 target_cpu=000\n\
        a-1 [000] 1.000010: softirq_exit: vec=3 [action=NET_RX]\n\
        a-1 [000] 1.000020: sched_switch: prev_comm=a prev_pid=1 prev_prio=120 prev_state=S ==> next_comm=b next_pid=2 next_prio=120\n\
        b-2 [000] 1.000030: sched_switch: prev_comm=b prev_pid=2 prev_prio=120 prev_state=S ==> next_comm=swapper/0 next_pid=0 next_prio=120\n\
        x-0 [000] 1.000040: softirq_entry: vec=3 [action=NET_RX]\n\
        x-0 [000] 1.000040: sched_waking: comm=b pid=2 prio=120 target_cpu=000\n\
        x-0 [000] 1.000040: softirq_exit: vec=3 [action=NET_RX]\n\
        x-0 [000] 1.000050: sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=b next_pid=2 next_prio=120\n\
        b-2 [000] 1.000060: sched_switch: prev_comm=b prev_pid=2 prev_prio=120 prev_state=S ==> next_comm=c next_pid=3 next_prio=120\n";
    assert_eq!(script(&of(of_another), "b"), "s10000 r10000 s10000 r10000");
    let (raise, entry) = ("softirq_raise: vec=3 [action=NET_RX]\n", "a-1 [000] 1.000010: softirq_entry");
    let of_its_own = of_another.replace(&format!("c-3 [000] 1.000001: {raise}"), "");
    let of_its_own = of_its_own.replace(entry, &format!("a-1 [000] 1.000009: {raise}{entry}"));
    assert!(script(&of(&of_its_own), "b").starts_with('b'), "{of_its_own}");
    // A handler whose end was not recorded ends at the next switch.
    let text = "\
        x-2 [000] 1.000000: sched_switch: prev_comm=b prev_pid=2 prev_prio=120 prev_state=S ==> next_comm=c next_pid=3 next_prio=120\n\
        c-3 [000] 1.000001: local_timer_entry: vector=236\n\
        c-3 [000] 1.000002: sched_switch: prev_comm=c prev_pid=3 prev_prio=120 prev_state=S ==> next_comm=a next_pid=1 next_prio=120\n\
        a-1 [000] 1.000010: sched_waking: comm=b pid=2 prio=120 target_cpu=000\n\
        a-1 [000] 1.000020: sched_switch: prev_comm=a prev_pid=1 prev_prio=120 prev_state=S ==> next_comm=b next_pid=2 next_prio=120\n\
        b-2 [000] 1.000030: sched_switch: prev_comm=b prev_pid=2 prev_prio=120 prev_state=S ==> next_comm=c next_pid=3 next_prio=120\n";
    assert!(script(&of(text), "b").starts_with('b'));
}

#[test]
fn what_was_lost_is_not_made_up() {
    // b leaves CPU 1 and comes back, and no event shows it.
    let (before, after) = PING.split_once("               b-2     [001] d.h4.").expect("b is there");
    let lost = format!(
        "{before}CPU:1 [LOST 3 EVENTS]\n{}",
        after.lines().skip(3).map(|line| format!("{line}\n")).collect::<String>()
    );
    let replay = of(&lost);
    assert_eq!(replay.notice.lost, 3);
    assert!(replay.notice.line().expect("a notice").contains("1 place where events were lost"));
    // It ran from 30 us on, and was seen again when it woke a.
    assert_eq!(script(&replay, "b"), "b0 s30000 w0 r1000 i100000 r35000");
    let gap: String = PING.lines().filter(|line| !line.contains("0.000042")).map(|line| format!("{line}\n")).collect();
    assert_eq!(of(&gap.replace("next_comm=c next_pid=3", "next_comm=d next_pid=4")).notice.gaps, 1);
    // A file that was cut in the middle of a line.
    let cut = of(&PING[..PING.len() - 100]);
    assert_eq!((cut.notice.unreadable, cut.tasks.len()), (1, 3));
}

#[test]
fn other_events_are_counted_and_left_out() {
    let text = PING.replacen(
        "               c-3",
        "               c-3     [001] d..1.     1.000050: sys_enter: NR 1 (3)\n               c-3",
        1,
    );
    let replay = of(&text);
    assert_eq!(replay.notice.line().as_deref(), Some("1 event of other kinds left out (sys_enter: 1)"));
    assert_eq!(replay.text(), of(PING).text());
}

#[test]
fn what_is_no_recording_is_refused_with_its_place() {
    let cases: [(&[u8], &str); 12] = [
        (b"", "an empty file"),
        (b"#!/bin/sh\necho hello\n", "`echo hello`"),
        (b"\x17\x08\x44tracing\x00", "a trace.dat"),
        (b"PERFILE2\x00", "a perf.data"),
        (b"\x1f\x8b\x08", "gzip"),
        (b"\x7fELF\x02\x01\x01\x00", "bytes that begin with 0x7f"),
        (b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "no Perfetto packet"),
        (b"\x0a\x04\x92\x03\x01a", "compressed packets"),
        (b"a-1 [000] 1.000000: sys_enter: NR 1\n", "1 events, but no sched_switch"),
        (
            b"a-1 [000] 2.0: sched_stat: x\na-1 [000] 1.5: sched_stat: x\n",
            "time going backwards on CPU 0, from 2.000000000 to 1.500000000",
        ),
        (b"a-1 [000] 2.0: sched_switch: prev_comm=a\nx", "sched_switch: prev_comm=a"),
        (b"fairground trace 1\nend 5\ntask prio=120 cpu=0 at=0 name=a\nr1 q2\n", "`q2`"),
    ];
    for (bytes, found) in cases {
        let error = read(bytes).expect_err(found);
        assert!(error.found.contains(found), "{error:?} for {found}");
        assert!(!error.expected.is_empty() && !error.found.contains('\n'), "{error:?}");
    }
    let far = PING.replace("[001]", "[9999]");
    assert!(read(far.as_bytes()).expect_err("a CPU").found.contains("CPU 9999"));
    let place = |text: &[u8]| read(text).expect_err("a mistake").place;
    assert_eq!(place(b"a-1 [000] 2.0: sched_switch: prev_comm=a\nx"), Some((1, 16)));
    assert_eq!(place(b"fairground trace 1\nend 5\ntask prio=120 cpu=0 at=0 name=a\nr1 q2\n"), Some((4, 4)));
}

#[test]
fn scripts_that_could_not_end_are_refused() {
    let of = |tasks: &str| read(format!("fairground trace 1\nend 5\n{tasks}").as_bytes());
    let waits = "task prio=120 cpu=0 at=0 name=a\nb1\ntask prio=120 cpu=0 at=0 name=b\nr5\n";
    assert!(of(waits).expect_err("a wait").found.contains("wakeups of task 0 by task 1"));
    let forked = "task prio=120 cpu=0 forked name=a\nf0\n";
    assert!(of(forked).expect_err("a fork").found.contains("a fork of task 0"));
    assert!(of("task prio=120 cpu=0 forked name=a\n\n").expect_err("never").found.contains("forked 0 times"));
}

/// One protobuf field.
fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    [&[number << 3 | 2, bytes.len() as u8], bytes].concat()
}

fn numbers(number: u8, values: &[u8]) -> Vec<u8> {
    field(number, values)
}

#[test]
fn perfettos_compact_columns_say_the_same() {
    // CPU 1: b (pid 2) comes at 30 ns, c at 42, b at 50; c woken at 40 by an interrupt.
    let compact = [
        field(5, b"b"),
        field(5, b"c"),
        numbers(1, &[30, 12, 8, 10]),
        numbers(2, &[0, 0, 1, 1]),
        numbers(3, &[2, 3, 2, 0]),
        numbers(4, &[120, 98, 120, 120]),
        numbers(6, &[0, 1, 0, 0]),
        numbers(7, &[40]),
        numbers(8, &[3]),
        numbers(10, &[98]),
        numbers(11, &[1]),
        numbers(12, &[8]),
    ];
    let bundle = [&[1 << 3, 1][..], &field(4, &compact.concat())].concat();
    let replay = read(&field(1, &field(1, &bundle))).expect("a trace");
    assert_eq!(script(&replay, "b"), "r22");
    assert_eq!(script(&replay, "c"), "r8");
    assert_eq!((task(&replay, "b").begin, task(&replay, "c").begin), (Begin::At(Ns(0)), Begin::At(Ns(10))));
}

/// A listener that outlives the machine.
struct Shared<T>(Rc<RefCell<Option<T>>>);

impl<T: Sink> Sink for Shared<T> {
    fn event(&mut self, time: Ns, cpu: CpuId, event: &Event) {
        self.0.borrow_mut().as_mut().expect("it listens").event(time, cpu, event);
    }

    fn task(&mut self, task: sched::sched::TaskId, pid: u32, comm: &str, prio: i32) {
        self.0.borrow_mut().as_mut().expect("it listens").task(task, pid, comm, prio);
    }

    fn task_gone(&mut self, task: sched::sched::TaskId) {
        self.0.borrow_mut().as_mut().expect("it listens").task_gone(task);
    }
}

/// A listener for the machine, and a function that returns it afterwards.
fn shared<T: Sink + 'static>(sink: T) -> (Box<dyn Sink>, impl FnOnce() -> T) {
    let shared = Rc::new(RefCell::new(Some(sink)));
    let taken = shared.clone();
    (Box::new(Shared(shared)), move || taken.borrow_mut().take().expect("it is there"))
}

const FORMATS: observe::Formats = observe::Formats::V4_15;

/// Runs an instance and returns what was recorded of it, as Perfetto's file, or in text.
fn recorded(instance: Box<dyn crate::Instance>, cpus: usize, kernel: Kernel, text: bool) -> (Ran<true>, Vec<u8>) {
    let run = |sink| play(instance, boot(cpus, kernel, Some(sink)));
    if text {
        let sink = Ftrace::new(Vec::new(), cpus, FORMATS, Selection::events(FORMATS));
        let (sink, taken) = shared(sink);
        let ran = run(sink);
        return (ran, taken().finish().expect("memory does not fail"));
    }
    let sink = Perfetto::new(Vec::new(), cpus, Ns::ZERO, FORMATS, Selection::events(FORMATS)).expect("a small machine");
    let (sink, taken) = shared(sink);
    let ran = run(sink);
    (ran, taken().finish().expect("memory does not fail"))
}

/// Wakeups of tasks by others, and CPU time by task.
fn totals(replay: &Replay) -> (usize, Vec<(String, Ns)>) {
    let wakes = replay.count(|step| matches!(step, Step::Wake(_)));
    let mut run: Vec<(String, Ns)> = replay.tasks.iter().map(|task| (task.name.clone(), task.run_time())).collect();
    run.sort();
    (wakes, run)
}

/// Times from a wakeup to the switch that follows it, in order of size.
fn latencies(bytes: &[u8]) -> Vec<u64> {
    let mut recorded = Recorded::new();
    super::perfetto::read(bytes, &mut recorded).expect("our own trace");
    recorded.events.sort_by_key(|event| event.time);
    let mut woken: BTreeMap<u32, Ns> = BTreeMap::new();
    let mut latencies = Vec::new();
    for event in &recorded.events {
        match event.what {
            What::Waking(who) => drop(woken.insert(who.pid, event.time)),
            What::Switch { next, .. } => {
                latencies.extend(woken.remove(&next.pid).map(|since| (event.time - since).0));
            }
            _ => {}
        }
    }
    latencies.sort_unstable();
    latencies
}

/// The value of a row of a replay.
fn row(ran: &Ran<true>, replay: &Replay, label: &str) -> u64 {
    let at = replay.table().iter().position(|row| row.label == label).expect("a row");
    ran.rows()[at][0]
}

fn assert_near(what: &str, ours: u64, recorded: u64, percent: u64, slack: u64) {
    assert!(ours.abs_diff(recorded) <= recorded * percent / 100 + slack, "{what}: {ours}, recorded {recorded}");
}

/// Two tasks that wake each other, one that a timer wakes, and one that gets in their way.
const TASKS: &str = "\
    task a: 200 x (run 300us; write there; read back)\n\
    task b: 200 x (read there; run 150us; write back)\n\
    task timer: 80 x (sleep 1ms; run 200us)\n\
    task hog nice=5: run 40ms; sleep 1ms; run 20ms\n";

fn replayed(replay: &Replay, cpus: usize, kernel: Kernel) -> (Ran<true>, Vec<u8>) {
    recorded(Box::new(Playback::new(replay.clone(), cpus)), cpus, kernel, false)
}

fn recording_of(tasks: &str, cpus: usize, text: bool) -> (Replay, Vec<u8>) {
    let script = Box::new(Script::parse(tasks, 1).expect("a script"));
    let (_, bytes) = recorded(script, cpus, V4_15, text);
    (read(&bytes).expect("our own trace"), bytes)
}

#[test]
fn what_is_left_out_is_told_by_the_kernels_names() {
    let left_out = |text| recording_of(TASKS, 2, text).0.notice.skipped;
    let (of_perfetto, of_text) = (left_out(false), left_out(true));
    let process = ["sched_process_exit", "sched_process_free", "sched_process_wait"];
    for name in ["cpu_idle", "sched_migrate_task"].into_iter().chain(process) {
        let count = of_perfetto.get(name);
        assert!(count.is_some() && count == of_text.get(name), "{name}: {of_perfetto:?} {of_text:?}");
    }
}

/// If every task finds a free CPU, all waits sleep, and so are recorded.
#[test]
fn a_replay_of_a_recording_wakes_and_runs_and_waits_as_recorded() {
    let (first, bytes) = recording_of(TASKS, 4, false);
    let (ran, bytes_again) = replayed(&first, 4, V4_15);
    let second = read(&bytes_again).expect("our own trace");
    let (wakes, run) = totals(&first);
    // The two wake each other 200 times each; every task that ends, except the last, wakes the parent.
    assert_eq!(wakes, 403);
    assert_eq!(totals(&second).0, wakes);
    let sleeps =
        |replay: &Replay| task(replay, "timer").steps.iter().filter(|step| matches!(step, Step::Sleep(_))).count();
    assert_eq!((sleeps(&first), sleeps(&second)), (80, 80), "timers wake as timers");
    for name in ["a", "b", "timer", "hog"] {
        let label = format!("run-{name}");
        // Ticks of some 2 us each may hit other tasks than in the recording, a few of them.
        assert_near(&label, row(&ran, &first, &label), task(&first, name).run_time().0, 0, 10_000);
    }
    assert_near("makespan", row(&ran, &first, "makespan"), first.end.0, 1, 0);
    let (waits, waits_again) = (latencies(&bytes), latencies(&bytes_again));
    for percent in [50, 90, 99] {
        let at = |values: &[u64]| values[values.len() * percent / 100];
        assert_near(&format!("{percent}% of the latencies"), at(&waits_again), at(&waits), 10, 100);
    }
    // Another scheduler has the same work to do; text has it to the microsecond.
    let (ran, _) = replayed(&first, 4, V6_12);
    assert_near("run", row(&ran, &first, "run"), run.iter().map(|(_, time)| time.0).sum(), 0, 20_000);
    let (text, _) = recording_of(TASKS, 4, true);
    assert_eq!((totals(&text).0, sleeps(&text)), (wakes, 80));
    assert_near("run of a in text", task(&text, "a").run_time().0, task(&first, "a").run_time().0, 1, 0);
}

/// Each `a` waits for the answer before it writes again, and each `b` gives one. This restores waits that the recording
/// lacks because `a` had not yet come to its read.
fn with_all_waits(replay: &Replay) -> Replay {
    let of = |name: &str| replay.tasks.iter().position(|task| task.name == name).expect("it is there");
    let (a, b) = (of("a"), of("b"));
    let (from_b, to_b, to_a) = (Step::Wait(b as u32), Step::Wake(b as u32), Step::Wake(a as u32));
    let mut whole = replay.clone();
    let mut steps: Vec<Step> = Vec::new();
    let mut waited = true;
    for &step in &replay.tasks[a].steps {
        if step == to_b && !std::mem::take(&mut waited) {
            let written = steps.iter().rposition(|&before| before == to_b).expect("it has written");
            steps.insert(written + 1, from_b);
        }
        waited |= step == from_b;
        steps.push(step);
    }
    whole.tasks[a].steps = steps;
    let mut steps: Vec<Step> = Vec::new();
    let mut answered = true;
    for &step in &replay.tasks[b].steps {
        if step == Step::Wait(a as u32) && !std::mem::take(&mut answered) {
            steps.push(to_a);
        }
        answered |= step == to_a;
        steps.push(step);
    }
    whole.tasks[b].steps = steps;
    whole
}

/// On two CPUs, the task that `a` wakes preempts `a`, which then finds the answer ready. Such waits leave no event, so
/// a replay runs ahead.
#[test]
fn waits_that_come_to_no_sleep_are_missing_and_nothing_else_is() {
    let (first, _) = recording_of(TASKS, 2, false);
    let (wakes, run) = totals(&first);
    assert!((300..320).contains(&wakes), "{wakes} wakeups");
    let (ran, bytes) = replayed(&first, 2, V4_15);
    for name in ["a", "b", "timer", "hog"] {
        let label = format!("run-{name}");
        assert_near(&label, row(&ran, &first, &label), task(&first, name).run_time().0, 0, 10_000);
    }
    let again = read(&bytes).expect("our own trace");
    assert!(totals(&again).0 < wakes);
    let makespan = row(&ran, &first, "makespan");
    assert!((first.end.0 * 9 / 10..first.end.0).contains(&makespan), "{makespan} of {}", first.end.0);
    let (ran, _) = replayed(&first, 2, V6_12);
    assert_near("run", row(&ran, &first, "run"), run.iter().map(|(_, time)| time.0).sum(), 0, 20_000);
    // With these waits restored, the replay lies within what the program itself gives if its times vary by up to 2 us.
    let whole = with_all_waits(&first);
    let (ran, bytes) = replayed(&whole, 2, V4_15);
    let mut given: Vec<(u64, usize)> = Vec::new();
    for (at, bt, timer) in (0..125).map(|n| (n / 25, n / 5 % 5, n % 5)) {
        let tasks = TASKS.replace("run 300us", &format!("run {}us", 298 + at));
        let tasks = tasks.replace("run 150us", &format!("run {}us", 148 + bt));
        let (other, _) =
            recording_of(&tasks.replace("sleep 1ms; run 200", &format!("sleep {}us; run 200", 998 + timer)), 2, false);
        given.push((other.end.0, totals(&other).0));
    }
    let within = |what: &str, value: u64, of: &dyn Fn(&(u64, usize)) -> u64| {
        let (least, most) = (given.iter().map(of).min().expect("many"), given.iter().map(of).max().expect("many"));
        assert!(
            (least * 995 / 1_000..=most * 1_005 / 1_000).contains(&value),
            "{what}: {value}, not {least} to {most}"
        );
    };
    within("makespan", row(&ran, &whole, "makespan"), &|given| given.0);
    within("wakeups", totals(&read(&bytes).expect("our own trace")).0 as u64, &|given| given.1 as u64);
}

#[test]
fn what_many_share_is_done_in_another_order_but_all_of_it() {
    let parameters = [("frames", 30)];
    let (_, bytes) = recorded(instance("ffmpeg-like", &parameters), 2, V4_15, false);
    let first = read(&bytes).expect("our own trace");
    for kernel in [V4_15, V6_12] {
        let (ran, _) = replayed(&first, 2, kernel);
        let run = totals(&first).1.iter().map(|(_, time)| time.0).sum();
        assert_near("run", row(&ran, &first, "run"), run, 1, 0);
        assert_near("makespan", row(&ran, &first, "makespan"), first.end.0, 10, 0);
        let posted = first.count(|step| matches!(step, Step::Wait(_)));
        assert_eq!(totals(&first).0, posted, "each waits for its own wakeup");
    }
}

#[test]
fn a_task_on_a_cpu_has_its_place_in_a_text() {
    let text = "# a\n  x-3 [001] 1.0: sched_waking: comm=y pid=4\n <idle>-0 [031] 1.1: sched_waking: comm=x pid=3\n  y-4 [031] 1.2: z: 0\n";
    let place = |cpu, task| super::place_of_cpu(text.as_bytes(), cpu, task);
    assert_eq!((place(31, "y"), place(31, "other"), place(1, "y")), (Some((4, 8)), Some((3, 12)), Some((2, 8))));
    assert_eq!((place(2, "y"), super::place_of_cpu(b"\x0aPerfetto", 31, "y")), (None, None));
}
