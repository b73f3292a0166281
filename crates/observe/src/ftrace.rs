//! The text of `/sys/kernel/tracing/trace`.
//!
//! Fields and their order are those of each kernel's include/trace/events/{sched,power,irq}.h and x86's irq_vectors.h;
//! so are the heads of the lines and of the file. Lines of all CPUs are merged in order of time, as the kernel merges
//! its per-CPU buffers, and times are rounded to microseconds as there.
//!
//! Context flags: where the kernel passes each tracepoint tells `irqs-off`; the scheduler tells need-resched and
//! interrupt context (`h`, `s`). `N` stands for `n` too: a mark by another CPU that has not been folded into the
//! preempt count yet. When a softirq runs at the end of a system call, what it wakes has the call's flags, between that
//! softirq's events. Where softirqs are off (`b`, and `D` with interrupts, since v6.1 or so) is not shown. The preempt
//! depth is printed as `.` (as a kernel without CONFIG_PREEMPT does). The header's line
//! `entries-in-buffer/entries-written` is left out, because a stream cannot know the counts at its top.

use crate::by_time::ByTime;
use crate::formats::{Formats, PrevState, TraceHead};
use crate::output::Output;
use crate::runnable::Runnable;
use crate::tasks::{Tasks, Who};
use crate::tracepoints::{self, Selection, Tracepoint};
use sched::sched::{TaskId, TaskState};
use sched::trace::{Context, Event, Interrupt, Sink};
use std::io::{self, Write};
use units::{CpuId, Ns};

/// The letter that `sched_switch` shows for the task it takes off the CPU. An exiting task is `x` (TASK_DEAD) in its raw
/// state, and `X` (EXIT_DEAD) in what is reported. A real kernel prints `Z` if a parent still has to wait for the child;
/// whether it has is not known here.
fn prev_state(shown: PrevState, state: TaskState, preempt: bool) -> &'static str {
    let raw = shown == PrevState::Raw;
    match state {
        _ if preempt => "R+",
        TaskState::Interruptible => "S",
        TaskState::Uninterruptible => "D",
        TaskState::Dead if raw => "x",
        TaskState::Dead => "X",
        TaskState::Waking if raw => "W",
        TaskState::Running | TaskState::New | TaskState::Waking => "R",
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

const HEADER_WITH_WIDE_PID: &str = "\
# tracer: nop
#
#                                _-----=> irqs-off
#                               / _----=> need-resched
#                              | / _---=> hardirq/softirq
#                              || / _--=> preempt-depth
#                              ||| /     delay
#           TASK-PID     CPU#  ||||   TIMESTAMP  FUNCTION
#              | |         |   ||||      |         |
";

const HEADER_WITHOUT_BH: &str = "\
# tracer: nop
#
#                                _-----=> irqs-off
#                               / _----=> need-resched
#                              | / _---=> hardirq/softirq
#                              || / _--=> preempt-depth
#                              ||| / _-=> migrate-disable
#                              |||| /     delay
#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION
#              | |         |   |||||     |         |
";

/// Recorded from kernels v6.1 and v6.12.
const HEADER_WITH_MIGRATE_DISABLE: &str = "\
# tracer: nop
#
#                                _-----=> irqs-off/BH-disabled
#                               / _----=> need-resched
#                              | / _---=> hardirq/softirq
#                              || / _--=> preempt-depth
#                              ||| / _-=> migrate-disable
#                              |||| /     delay
#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION
#              | |         |   |||||     |         |
";

/// Writes the text. Memory: the lines of the last 10 ms of simulated time, and the names of the living tasks.
pub struct Ftrace<W: Write> {
    output: Output<W>,
    tasks: Tasks,
    formats: Formats,
    selection: Selection,
    waiting: ByTime<Line>,
    runnable: Runnable,
    /// The context of the next event.
    context: Context,
}

impl<W: Write> Ftrace<W> {
    pub fn new(writer: W, nr_cpus: usize, formats: Formats, selection: Selection) -> Ftrace<W> {
        let mut output = Output::new(writer);
        let header = match formats.trace_head {
            TraceHead::NarrowPid => HEADER,
            TraceHead::WidePid => HEADER_WITH_WIDE_PID,
            TraceHead::MigrateDisable => HEADER_WITHOUT_BH,
            TraceHead::BhDisabled => HEADER_WITH_MIGRATE_DISABLE,
        };
        output.write(header.as_bytes());
        let tasks = Tasks::new(nr_cpus);
        Ftrace {
            output,
            tasks,
            formats,
            selection,
            waiting: ByTime::new(),
            runnable: Runnable::new(nr_cpus),
            context: Context::default(),
        }
    }

    /// The writer has met an error: later events are lost.
    pub fn has_failed(&self) -> bool {
        self.output.has_failed()
    }

    /// Writes the waiting lines.
    ///
    /// # Errors
    /// The first error that writing met.
    pub fn finish(mut self) -> io::Result<W> {
        while let Some((_, line)) = self.waiting.earliest() {
            self.write(line);
        }
        self.output.finish()
    }

    fn write(&mut self, line: Line) {
        match line {
            Line::Text(text) => self.output.write(text.as_bytes()),
            Line::Count { of, change, told } => {
                let nr_running = self.runnable.count(of, change);
                let Some(Told { head, change }) = told else { return };
                let body = self.body(of, &Event::SchedUpdateNrRunning { cpu: of, change, nr_running });
                self.output.write(line_of(&head, &body.expect("it has fields")).as_bytes());
            }
        }
    }

    fn line(&mut self, time: Ns, cpu: CpuId, event: &Event) -> Option<Line> {
        if self.selection.contains(Tracepoint::SchedUpdateNrRunning)
            && let Some((of, change)) = self.runnable.change(event)
        {
            let told = match *event {
                Event::SchedUpdateNrRunning { change, .. } => Some(Told { head: self.head(time, cpu, event), change }),
                _ => None,
            };
            return Some(Line::Count { of, change, told });
        }
        if !self.selection.shows(event) {
            return None;
        }
        Some(Line::Text(line_of(&self.head(time, cpu, event), &self.body(cpu, event)?)))
    }

    /// What comes before the event's name.
    fn head(&self, time: Ns, cpu: CpuId, event: &Event) -> String {
        let context = self.tasks.who(self.tasks.running(cpu), cpu);
        let comm = if context.pid == 0 { "<idle>" } else { &context.comm };
        let us = time.0.saturating_add(500) / 1_000;
        let (seconds, us) = (us / 1_000_000, us % 1_000_000);
        let (pid, flags) = (context.pid, flags(event, self.context));
        let (width, migrate_disable) = match self.formats.trace_head {
            TraceHead::NarrowPid => (5, ""),
            TraceHead::WidePid => (7, ""),
            TraceHead::MigrateDisable | TraceHead::BhDisabled => (7, "."),
        };
        let stamp = format!("{flags}{migrate_disable} {seconds:>5}.{us:06}");
        format!("{comm:>16}-{pid:<width$} [{:03}] {stamp}", cpu.0)
    }

    fn body(&self, cpu: CpuId, event: &Event) -> Option<String> {
        Some(match event {
            Event::SchedSwitch { prev, prev_state: state, preempt, next } => {
                let (prev, next) = (self.tasks.who(*prev, cpu), self.tasks.who(*next, cpu));
                format!(
                    "sched_switch: prev_comm={} prev_pid={} prev_prio={} prev_state={} ==> \
                     next_comm={} next_pid={} next_prio={}",
                    prev.comm,
                    prev.pid,
                    prev.prio,
                    prev_state(self.formats.prev_state, *state, *preempt),
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
            // The file's name is not known; it is printed as the task's.
            Event::SchedProcessExec { task } => {
                let Who { pid, comm, .. } = self.who(*task);
                format!("sched_process_exec: filename={comm} pid={pid} old_pid={pid}")
            }
            // Differs: v6.18 and later show at the end (`group_dead`) whether it was the last thread of its process, which
            // is not known here.
            Event::SchedProcessExit { task } => {
                let Who { pid, comm, prio } = self.who(*task);
                format!("sched_process_exit: comm={comm} pid={pid} prio={prio}")
            }
            Event::SchedProcessFree { task } => {
                let Who { pid, comm, prio } = self.who(*task);
                format!("sched_process_free: comm={comm} pid={pid} prio={prio}")
            }
            // Name and priority are those of the waiting task.
            Event::SchedProcessWait { child } => {
                let Who { comm, prio, .. } = self.tasks.who(self.tasks.running(cpu), cpu);
                let pid = child.map_or(0, |child| self.who(child).pid);
                format!("sched_process_wait: comm={comm} pid={pid} prio={prio}")
            }
            // PWR_EVENT_EXIT is (u32)-1.
            Event::CpuIdle { state } => {
                format!("cpu_idle: state={} cpu_id={cpu}", state.map_or(u32::MAX, u32::from))
            }
            Event::CpuFrequency { khz } => format!("cpu_frequency: state={khz} cpu_id={cpu}"),
            Event::IrqHandlerEntry { irq, name } => format!("irq_handler_entry: irq={irq} name={name}"),
            Event::IrqHandlerExit { irq } => format!("irq_handler_exit: irq={irq} ret=handled"),
            Event::SoftirqRaise { vec } => softirq("softirq_raise", *vec),
            Event::SoftirqEntry { vec } => softirq("softirq_entry", *vec),
            Event::SoftirqExit { vec } => softirq("softirq_exit", *vec),
            Event::LocalTimerEntry { vector } => format!("local_timer_entry: vector={vector}"),
            Event::LocalTimerExit { vector } => format!("local_timer_exit: vector={vector}"),
            _ => {
                let fields = tracepoints::fields(event, &self.tasks, self.formats)?;
                let fields: Vec<String> = fields.iter().map(|(name, value)| format!("{name}={value}")).collect();
                format!("{}: {}", Tracepoint::of(event)?.name(), fields.join(" "))
            }
        })
    }

    fn who(&self, task: TaskId) -> &Who {
        self.tasks.who(Some(task), CpuId(0))
    }

    fn wakeup(&self, name: &str, task: TaskId, target_cpu: CpuId) -> String {
        let Who { pid, comm, prio } = self.who(task);
        format!("{name}: comm={comm} pid={pid} prio={prio} target_cpu={:03}", target_cpu.0)
    }
}

fn softirq(name: &str, vec: u8) -> String {
    format!("{name}: vec={vec} [action={}]", tracepoints::softirq_name(vec))
}

/// The four columns of flags. Forks, exits, frequency changes and softirqs are traced with interrupts on, all other
/// events with interrupts off.
fn flags(event: &Event, context: Context) -> String {
    let irqs_off = match event {
        Event::SchedProcessFork { .. }
        | Event::SchedProcessExec { .. }
        | Event::SchedProcessExit { .. }
        | Event::SchedProcessWait { .. }
        | Event::SchedProcessFree { .. }
        | Event::SoftirqEntry { .. }
        | Event::SoftirqExit { .. }
        | Event::CpuFrequency { .. } => '.',
        _ => 'd',
    };
    // trace_output.c: trace_print_lat_fmt(). Lazy rescheduling folds nothing into the preempt count.
    let need_resched = match (context.need_resched, context.need_resched_lazy) {
        (true, true) => 'B',
        (true, false) => 'N',
        (false, true) => 'l',
        (false, false) => '.',
    };
    let interrupt = match context.interrupt {
        Interrupt::None => '.',
        Interrupt::Softirq => 's',
        Interrupt::Hardirq => 'h',
    };
    format!("{irqs_off}{need_resched}{interrupt}.")
}

impl<W: Write> Sink for Ftrace<W> {
    fn context(&mut self, context: Context) {
        self.context = context;
    }

    fn event(&mut self, time: Ns, cpu: CpuId, event: &Event) {
        if let Some(line) = self.line(time, cpu, event) {
            self.waiting.push(time, line);
        }
        self.context = Context::default();
        self.tasks.passed(cpu, event);
        self.waiting.passed(time);
        while let Some((_, line)) = self.waiting.settled() {
            self.write(line);
        }
    }

    fn task(&mut self, task: TaskId, pid: u32, comm: &str, prio: i32) {
        self.tasks.task(task, pid, comm, prio);
    }

    fn task_gone(&mut self, task: TaskId) {
        self.tasks.task_gone(task);
    }
}

enum Line {
    Text(String),
    /// A change of the count of runnable tasks. The count that a line tells is known when the line is written.
    Count {
        of: CpuId,
        change: i64,
        told: Option<Told>,
    },
}

/// The line of a `sched_update_nr_running_tp`.
struct Told {
    head: String,
    change: i32,
}

fn line_of(head: &str, body: &str) -> String {
    format!("{head}: {body}\n")
}

#[cfg(test)]
mod tests;
