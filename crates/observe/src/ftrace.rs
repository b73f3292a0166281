//! The text of `/sys/kernel/tracing/trace`.
//!
//! Fields and their order are those of include/trace/events/sched.h and power.h from v4.5 to v6.1, the head of the
//! lines and of the file that of v4.5 to v4.16. Lines are merged over the CPUs in order of time, as the kernel merges
//! its per-CPU buffers; times are rounded to microseconds as there. Of the context flags only `irqs-off` is known, from
//! where the kernel passes each tracepoint; need-resched, interrupt context and preempt depth are printed as `.` (a
//! kernel without CONFIG_PREEMPT prints the depth so too). The header's line `entries-in-buffer/entries-written` is
//! left out, because a stream cannot know the counts at its top.

use crate::STRAGGLER;
use crate::output::Output;
use crate::tasks::{Tasks, Who};
use sched::sched::{TaskId, TaskState};
use sched::trace::{Event, Sink};
use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::io::{self, Write};
use units::{CpuId, Ns};

/// What `sched_switch` says of the task it takes off the CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PrevState {
    /// `p->state`, every bit of it: an exiting task is `x` (TASK_DEAD). Until v4.13.
    Raw,
    /// Only what /proc shows: an exiting task is `X` (EXIT_DEAD). 8ef9925b02, v4.14. A real kernel prints `Z` where a
    /// parent has still to wait for the child; whether it has is not known here.
    Reported,
}

impl PrevState {
    fn letters(self, state: TaskState, preempt: bool) -> &'static str {
        match (state, self) {
            (_, _) if preempt => "R+",
            (TaskState::Interruptible, _) => "S",
            (TaskState::Uninterruptible, _) => "D",
            (TaskState::Dead, PrevState::Raw) => "x",
            (TaskState::Dead, PrevState::Reported) => "X",
            (TaskState::Waking, PrevState::Raw) => "W",
            (TaskState::Running | TaskState::New | TaskState::Waking, _) => "R",
        }
    }
}

const HEADER: &str = "\
# tracer: nop
#
#                              _-----=> irqs-off
#                             / _----=> need-resched
#                            | / _---=> hardirq/softirq
#                            || / _--=> preempt-depth
#                            ||| /     delay
#           TASK-PID   CPU#  ||||    TIMESTAMP  FUNCTION
#              | |       |   ||||       |         |
";

/// Writes the text. Memory: the lines of the last millisecond of simulated time, and the living tasks' names.
pub struct Ftrace<W: Write> {
    output: Output<W>,
    tasks: Tasks,
    prev_state: PrevState,
    /// Lines that a straggler of another CPU may still precede.
    waiting: BinaryHeap<Line>,
    newest: Ns,
    sequence: u64,
}

impl<W: Write> Ftrace<W> {
    pub fn new(writer: W, nr_cpus: usize, prev_state: PrevState) -> Ftrace<W> {
        let mut output = Output::new(writer);
        output.write(HEADER.as_bytes());
        let tasks = Tasks::new(nr_cpus);
        Ftrace { output, tasks, prev_state, waiting: BinaryHeap::new(), newest: Ns::ZERO, sequence: 0 }
    }

    /// Writes what waits.
    ///
    /// # Errors
    /// The first error that writing met.
    pub fn finish(mut self) -> io::Result<W> {
        while let Some(line) = self.waiting.pop() {
            self.output.write(line.text.as_bytes());
        }
        self.output.finish()
    }

    fn line(&self, time: Ns, cpu: CpuId, event: &Event) -> Option<String> {
        let context = self.tasks.who(self.tasks.running(cpu), cpu);
        let comm = if context.pid == 0 { "<idle>" } else { &context.comm };
        let us = time.0.saturating_add(500) / 1_000;
        let (seconds, us) = (us / 1_000_000, us % 1_000_000);
        let (pid, flags, body) = (context.pid, irq_flags(event), self.body(cpu, event)?);
        Some(format!("{comm:>16}-{pid:<5} [{:03}] {flags} {seconds:>5}.{us:06}: {body}\n", cpu.0))
    }

    fn body(&self, cpu: CpuId, event: &Event) -> Option<String> {
        Some(match event {
            Event::SchedSwitch { prev, prev_state, preempt, next } => {
                let (prev, next) = (self.tasks.who(*prev, cpu), self.tasks.who(*next, cpu));
                format!(
                    "sched_switch: prev_comm={} prev_pid={} prev_prio={} prev_state={} ==> \
                     next_comm={} next_pid={} next_prio={}",
                    prev.comm,
                    prev.pid,
                    prev.prio,
                    self.prev_state.letters(*prev_state, *preempt),
                    next.comm,
                    next.pid,
                    next.prio
                )
            }
            Event::SchedWaking { task, target_cpu } => self.wakeup("sched_waking", *task, *target_cpu),
            Event::SchedWakeup { task, target_cpu } => self.wakeup("sched_wakeup", *task, *target_cpu),
            Event::SchedWakeupNew { task, target_cpu } => self.wakeup("sched_wakeup_new", *task, *target_cpu),
            Event::SchedMigrateTask { task, orig_cpu, dest_cpu } => {
                let Who { pid, comm, prio } = self.who(*task);
                format!("sched_migrate_task: comm={comm} pid={pid} prio={prio} orig_cpu={orig_cpu} dest_cpu={dest_cpu}")
            }
            Event::SchedProcessFork { parent, child } => {
                let (parent, child) = (self.tasks.who(*parent, cpu), self.who(*child));
                format!(
                    "sched_process_fork: comm={} pid={} child_comm={} child_pid={}",
                    parent.comm, parent.pid, child.comm, child.pid
                )
            }
            Event::SchedProcessExit { task } => {
                let Who { pid, comm, prio } = self.who(*task);
                format!("sched_process_exit: comm={comm} pid={pid} prio={prio}")
            }
            Event::SchedStatWait { task, delay } => self.delay("sched_stat_wait", *task, *delay),
            Event::SchedStatSleep { task, delay } => self.delay("sched_stat_sleep", *task, *delay),
            Event::SchedStatIowait { task, delay } => self.delay("sched_stat_iowait", *task, *delay),
            Event::SchedStatBlocked { task, delay } => self.delay("sched_stat_blocked", *task, *delay),
            Event::SchedStatRuntime { task, runtime, vruntime } => {
                let Who { pid, comm, .. } = self.who(*task);
                format!("sched_stat_runtime: comm={comm} pid={pid} runtime={} [ns] vruntime={vruntime} [ns]", runtime.0)
            }
            Event::SchedWakeIdleWithoutIpi { cpu } => format!("sched_wake_idle_without_ipi: cpu={cpu}"),
            // PWR_EVENT_EXIT is (u32)-1.
            Event::CpuIdle { state } => {
                format!("cpu_idle: state={} cpu_id={cpu}", state.map_or(u32::MAX, u32::from))
            }
            Event::CpuFrequency { khz } => format!("cpu_frequency: state={khz} cpu_id={cpu}"),
            Event::NrRunning { .. } => return None,
        })
    }

    fn who(&self, task: TaskId) -> &Who {
        self.tasks.who(Some(task), CpuId(0))
    }

    fn wakeup(&self, name: &str, task: TaskId, target_cpu: CpuId) -> String {
        let Who { pid, comm, prio } = self.who(task);
        format!("{name}: comm={comm} pid={pid} prio={prio} target_cpu={:03}", target_cpu.0)
    }

    fn delay(&self, name: &str, task: TaskId, delay: Ns) -> String {
        let Who { pid, comm, .. } = self.who(task);
        format!("{name}: comm={comm} pid={pid} delay={} [ns]", delay.0)
    }
}

/// Forks, exits and frequency changes are traced with interrupts on, all else under a lock that turns them off.
fn irq_flags(event: &Event) -> &'static str {
    match event {
        Event::SchedProcessFork { .. } | Event::SchedProcessExit { .. } | Event::CpuFrequency { .. } => "....",
        _ => "d...",
    }
}

impl<W: Write> Sink for Ftrace<W> {
    fn event(&mut self, time: Ns, cpu: CpuId, event: &Event) {
        if let Some(text) = self.line(time, cpu, event) {
            self.sequence += 1;
            self.waiting.push(Line { time, sequence: self.sequence, text });
        }
        self.tasks.passed(cpu, event);
        self.newest = self.newest.max(time);
        while self.waiting.peek().is_some_and(|line| line.time + STRAGGLER < self.newest) {
            if let Some(line) = self.waiting.pop() {
                self.output.write(line.text.as_bytes());
            }
        }
    }

    fn task(&mut self, task: TaskId, pid: u32, comm: &str, prio: i32) {
        self.tasks.task(task, pid, comm, prio);
    }

    fn task_gone(&mut self, task: TaskId) {
        self.tasks.task_gone(task);
    }
}

struct Line {
    time: Ns,
    sequence: u64,
    text: String,
}

/// The earliest line is the greatest: what a heap gives first.
impl Ord for Line {
    fn cmp(&self, other: &Line) -> Ordering {
        (other.time, other.sequence).cmp(&(self.time, self.sequence))
    }
}

impl PartialOrd for Line {
    fn partial_cmp(&self, other: &Line) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Line {
    fn eq(&self, other: &Line) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Line {}

#[cfg(test)]
mod tests {
    use super::*;

    const PING: TaskId = TaskId(0);
    const PONG: TaskId = TaskId(1);

    fn started(prev_state: PrevState) -> Ftrace<Vec<u8>> {
        let mut trace = Ftrace::new(Vec::new(), 2, prev_state);
        trace.task(PING, 101, "ping", 120);
        trace.task(PONG, 20_102, "pong-with-a-long-name", 139);
        trace
    }

    fn body(trace: Ftrace<Vec<u8>>) -> String {
        let text = String::from_utf8(trace.finish().expect("memory does not fail")).expect("text");
        text.strip_prefix(HEADER).expect("the header comes first").to_string()
    }

    fn switch(prev: Option<TaskId>, prev_state: TaskState, preempt: bool, next: Option<TaskId>) -> Event {
        Event::SchedSwitch { prev, prev_state, preempt, next }
    }

    #[test]
    fn every_event_prints_as_the_kernel_prints_it() {
        let mut trace = started(PrevState::Reported);
        let events = [
            Event::SchedProcessFork { parent: None, child: PING },
            Event::SchedWakeupNew { task: PING, target_cpu: CpuId(1) },
            Event::CpuIdle { state: None },
            switch(None, TaskState::Running, false, Some(PING)),
            Event::SchedWaking { task: PONG, target_cpu: CpuId(0) },
            Event::SchedWakeup { task: PONG, target_cpu: CpuId(0) },
            Event::SchedMigrateTask { task: PONG, orig_cpu: CpuId(1), dest_cpu: CpuId(0) },
            Event::SchedStatWait { task: PONG, delay: Ns(12) },
            Event::SchedStatSleep { task: PONG, delay: Ns(13) },
            Event::SchedStatIowait { task: PONG, delay: Ns(14) },
            Event::SchedStatBlocked { task: PONG, delay: Ns(15) },
            Event::SchedStatRuntime { task: PING, runtime: Ns(4_000_000), vruntime: 77 },
            Event::SchedWakeIdleWithoutIpi { cpu: CpuId(1) },
            switch(Some(PING), TaskState::Running, true, Some(PONG)),
            Event::NrRunning { cpu: CpuId(0), nr_running: 2 },
            Event::CpuFrequency { khz: 2_300_000 },
            Event::SchedProcessExit { task: PONG },
            switch(Some(PONG), TaskState::Dead, false, None),
            Event::CpuIdle { state: Some(2) },
        ];
        for (i, event) in events.iter().enumerate() {
            trace.event(Ns(5_000_000_000 + 1_000 * i as u64), CpuId(0), event);
        }
        let expected = "          \
          <idle>-0     [000] ....     5.000000: sched_process_fork: comm=swapper/0 pid=0 child_comm=ping child_pid=101
          <idle>-0     [000] d...     5.000001: sched_wakeup_new: comm=ping pid=101 prio=120 target_cpu=001
          <idle>-0     [000] d...     5.000002: cpu_idle: state=4294967295 cpu_id=0
          <idle>-0     [000] d...     5.000003: sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=ping next_pid=101 next_prio=120
            ping-101   [000] d...     5.000004: sched_waking: comm=pong-with-a-lon pid=20102 prio=139 target_cpu=000
            ping-101   [000] d...     5.000005: sched_wakeup: comm=pong-with-a-lon pid=20102 prio=139 target_cpu=000
            ping-101   [000] d...     5.000006: sched_migrate_task: comm=pong-with-a-lon pid=20102 prio=139 orig_cpu=1 dest_cpu=0
            ping-101   [000] d...     5.000007: sched_stat_wait: comm=pong-with-a-lon pid=20102 delay=12 [ns]
            ping-101   [000] d...     5.000008: sched_stat_sleep: comm=pong-with-a-lon pid=20102 delay=13 [ns]
            ping-101   [000] d...     5.000009: sched_stat_iowait: comm=pong-with-a-lon pid=20102 delay=14 [ns]
            ping-101   [000] d...     5.000010: sched_stat_blocked: comm=pong-with-a-lon pid=20102 delay=15 [ns]
            ping-101   [000] d...     5.000011: sched_stat_runtime: comm=ping pid=101 runtime=4000000 [ns] vruntime=77 [ns]
            ping-101   [000] d...     5.000012: sched_wake_idle_without_ipi: cpu=1
            ping-101   [000] d...     5.000013: sched_switch: prev_comm=ping prev_pid=101 prev_prio=120 prev_state=R+ ==> next_comm=pong-with-a-lon next_pid=20102 next_prio=139
 pong-with-a-lon-20102 [000] ....     5.000015: cpu_frequency: state=2300000 cpu_id=0
 pong-with-a-lon-20102 [000] ....     5.000016: sched_process_exit: comm=pong-with-a-lon pid=20102 prio=139
 pong-with-a-lon-20102 [000] d...     5.000017: sched_switch: prev_comm=pong-with-a-lon prev_pid=20102 prev_prio=139 prev_state=X ==> next_comm=swapper/0 next_pid=0 next_prio=120
          <idle>-0     [000] d...     5.000018: cpu_idle: state=2 cpu_id=0
";
        assert_eq!(body(trace), expected);
    }

    #[test]
    fn an_exit_shows_another_letter_before_v4_14() {
        let states = [
            (TaskState::Running, "R", "R"),
            (TaskState::Interruptible, "S", "S"),
            (TaskState::Uninterruptible, "D", "D"),
            (TaskState::Waking, "W", "R"),
            (TaskState::Dead, "x", "X"),
        ];
        for (state, raw, reported) in states {
            assert_eq!(PrevState::Raw.letters(state, false), raw);
            assert_eq!(PrevState::Reported.letters(state, false), reported);
        }
    }

    #[test]
    fn lines_of_all_cpus_come_in_order_of_time_and_times_round_to_the_nearest_microsecond() {
        let mut trace = started(PrevState::Raw);
        trace.event(Ns(3_600), CpuId(0), &Event::CpuIdle { state: Some(0) });
        trace.event(Ns(1_400), CpuId(1), &Event::CpuIdle { state: Some(1) });
        trace.event(Ns(3_600), CpuId(1), &Event::CpuIdle { state: Some(2) });
        trace.event(Ns(3_000_000), CpuId(0), &Event::CpuIdle { state: None });
        assert_eq!(trace.waiting.len(), 1, "what no straggler can precede has been written");
        let text = body(trace);
        let seen: Vec<&str> = text.lines().map(|line| &line[23..]).collect();
        assert_eq!(
            seen,
            [
                "[001] d...     0.000001: cpu_idle: state=1 cpu_id=1",
                "[000] d...     0.000004: cpu_idle: state=0 cpu_id=0",
                "[001] d...     0.000004: cpu_idle: state=2 cpu_id=1",
                "[000] d...     0.003000: cpu_idle: state=4294967295 cpu_id=0",
            ]
        );
    }

    #[test]
    #[should_panic(expected = "TaskId(7), which was never announced")]
    fn an_unknown_task_is_our_own_bug() {
        started(PrevState::Raw).event(Ns(0), CpuId(0), &Event::SchedProcessExit { task: TaskId(7) });
    }
}
