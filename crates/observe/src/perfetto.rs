//! A trace for ui.perfetto.dev: real ftrace scheduler events, so that CPU tracks, thread states, wakeup arrows and the
//! SQL tables `sched` and `thread_state` work, and a counter of runnable tasks for each CPU.
//!
//! Each wakeup is also a flow: an arrow from an instant `wakes` on the waker's track to an instant `woken` on the woken
//! task's, when that task gets to run. If an interrupt wakes it from the idle task, the arrow begins on the CPU's
//! track.
//!
//! Events without a message of their own in Perfetto's schema (`sched_stat_*`, `sched_wake_idle_without_ipi`,
//! `reschedule_*`, bare tracepoints) are written as its generic ones, with the kernel's name and fields, if the user
//! asks for them. Every task is shown as a process of its own, because the stream does not say which tasks share an
//! address space.
//!
//! Events of one CPU stand in the order of time, and within a nanosecond in the order in which they were passed. The
//! compact form of `sched_switch` would lose that order, so it is not used. Between CPUs Perfetto orders equal times as it
//! likes.
//!
//! The UI draws tracks for interrupts and softirqs by itself, from their events.
//!
//! Frequency and idle states are written only as `cpu_frequency` and `cpu_idle`: the UI draws its own counters from
//! them. The power that CPUs draw is a counter of ours, if it is known.

mod power;
mod schema;

pub use power::PowerOf;

use crate::by_time::ByTime;
use crate::formats::Formats;
use crate::output::Output;
use crate::runnable::Runnable;
use crate::tasks::{Tasks, Who};
use crate::tracepoints::{self, Selection, Tracepoint, Value};
use prost::Message;
use sched::sched::{TaskId, TaskState};
use sched::trace::{Event, Sink};
use schema::*;
use std::collections::BTreeSet;
use std::io::{self, Write};
use units::{CpuId, Ns, PerCpu};

/// Perfetto refuses events of CPUs from this number on (kMaxCpuCount in its ftrace tokenizer).
pub const PERFETTO_MAX_CPUS: usize = 1024;

/// A CPU's events are written out when they fill this many bytes.
const BUNDLE_BYTES: usize = 8 << 10;

const FTRACE_SEQUENCE: u32 = 1;
const TRACK_SEQUENCE: u32 = 2;

/// The group of the CPUs' counters; the track of CPU `n` is the number after it plus `n`.
const RUNNABLE_TRACKS: u64 = 1;
/// The group of the CPUs' wakeups from idle; the track of CPU `n` is the number after it plus `n`.
const WAKEUP_TRACKS: u64 = 1 << 32;
/// The track of task `pid` is this number plus `pid`.
const TASK_TRACKS: u64 = 2 << 32;

/// Writes the trace. Memory: 8 KiB for each CPU, the events of the last 10 ms of simulated time, and the living
/// tasks' names.
pub struct Perfetto<W: Write> {
    output: Output<W>,
    tasks: Tasks,
    /// Encoded [`FtraceEventBundle`]s, to which events are appended; empty when just written.
    bundles: PerCpu<Vec<u8>>,
    waiting: ByTime<Held>,
    runnable: Runnable,
    /// The values that the counters show.
    counters: PerCpu<Option<u32>>,
    /// By task id: whether the trace has a process with that pid and name.
    named: Vec<bool>,
    /// By task id: the flow of a wakeup after which the task has not run yet.
    woken: Vec<Option<u64>>,
    next_flow: u64,
    /// The tracks that the trace describes already, by number.
    described: BTreeSet<u64>,
    start: Ns,
    packet: Vec<u8>,
    formats: Formats,
    selection: Selection,
    /// `None` if it is not known what CPUs draw.
    power: Option<power::Power>,
}

/// What is written when its time has come.
enum Held {
    /// Of that CPU's bundle.
    Event(CpuId, Vec<u8>),
    /// A change of the count of runnable tasks. The count that an event tells is known when the event is written.
    Count { of: CpuId, change: i64, told: Option<Told> },
}

/// A `sched_update_nr_running_tp`: where, in the context of which task.
struct Told {
    by: CpuId,
    pid: u32,
    change: i32,
}

impl<W: Write> Perfetto<W> {
    /// `start` is the beginning of the trace: before its first switch each CPU is shown idle from there.
    ///
    /// # Errors
    /// More CPUs than Perfetto can show ([`PERFETTO_MAX_CPUS`]).
    pub fn new(
        writer: W,
        nr_cpus: usize,
        start: Ns,
        formats: Formats,
        selection: Selection,
    ) -> io::Result<Perfetto<W>> {
        if nr_cpus > PERFETTO_MAX_CPUS {
            let what = format!("Perfetto shows at most {PERFETTO_MAX_CPUS} CPUs, the machine has {nr_cpus}");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        }
        let mut trace = Perfetto {
            output: Output::new(writer),
            tasks: Tasks::new(nr_cpus),
            bundles: PerCpu::from_fn(nr_cpus, |_| Vec::with_capacity(BUNDLE_BYTES + 256)),
            waiting: ByTime::new(),
            runnable: Runnable::new(nr_cpus),
            counters: PerCpu::from_fn(nr_cpus, |_| None),
            named: Vec::new(),
            woken: Vec::new(),
            next_flow: 1,
            described: BTreeSet::new(),
            start,
            packet: Vec::new(),
            formats,
            selection,
            power: None,
        };
        trace.open_counters();
        let switches = trace.selection.contains(Tracepoint::SchedSwitch);
        for cpu in (0..nr_cpus).map(CpuId::new).filter(|_| switches) {
            let idle = trace.tasks.who(None, cpu).clone();
            let switch = switch_fields(&idle, 0, &idle);
            trace.push(start, cpu, FtraceFields::SchedSwitch(switch));
        }
        Ok(trace)
    }

    /// The writer has met an error: later events are lost.
    pub fn has_failed(&self) -> bool {
        self.output.has_failed()
    }

    /// Writes everything that is still held.
    ///
    /// # Errors
    /// The first error that writing met.
    pub fn finish(mut self) -> io::Result<W> {
        while let Some((time, held)) = self.waiting.earliest() {
            self.release(time, held);
        }
        for cpu in (0..self.tasks.nr_cpus()).map(CpuId::new) {
            if self.counters[cpu].is_none() {
                // No task ever ran there.
                self.count_runnable(self.start, cpu, 0);
            }
            self.flush(cpu);
        }
        self.output.finish()
    }

    fn write(&mut self, packet: &TracePacket) {
        self.packet.clear();
        self.packet.push(TRACE_PACKET_KEY);
        packet.encode_length_delimited(&mut self.packet).expect("a vector grows");
        self.output.write(&self.packet);
    }

    fn flush(&mut self, cpu: CpuId) {
        if self.bundles[cpu].is_empty() {
            return;
        }
        let bundle = std::mem::take(&mut self.bundles[cpu]);
        let mut packet = TracePacket {
            ftrace_events: Some(bundle),
            trusted_packet_sequence_id: Some(FTRACE_SEQUENCE),
            ..TracePacket::default()
        };
        self.write(&packet);
        let mut bundle = packet.ftrace_events.take().unwrap_or_default();
        bundle.clear();
        self.bundles[cpu] = bundle;
    }

    fn push(&mut self, time: Ns, cpu: CpuId, fields: FtraceFields) {
        let event = encoded(time, self.pid(cpu), fields);
        self.waiting.push(time, Held::Event(cpu, event));
    }

    /// The task that runs on `cpu`.
    fn pid(&self, cpu: CpuId) -> u32 {
        self.tasks.who(self.tasks.running(cpu), cpu).pid
    }

    fn push_count(&mut self, time: Ns, by: CpuId, event: &Event) {
        let Some((of, change)) = self.runnable.change(event) else { return };
        let told = match *event {
            Event::SchedUpdateNrRunning { change, .. } if self.selection.shows(event) => {
                Some(Told { by, pid: self.pid(by), change })
            }
            _ => None,
        };
        self.waiting.push(time, Held::Count { of, change, told });
    }

    fn release(&mut self, time: Ns, held: Held) {
        match held {
            Held::Event(cpu, event) => self.bundle(cpu, &event),
            Held::Count { of, change, told } => {
                let nr_running = self.runnable.count(of, change);
                self.count_runnable(time, of, nr_running);
                let Some(Told { by, pid, change }) = told else { return };
                let event = self.generic(&Event::SchedUpdateNrRunning { cpu: of, change, nr_running });
                let event = FtraceFields::Generic(event.expect("it has fields"));
                self.bundle(by, &encoded(time, pid, event));
            }
        }
    }

    fn bundle(&mut self, cpu: CpuId, event: &[u8]) {
        let bundle = &mut self.bundles[cpu];
        if bundle.is_empty() {
            let head = FtraceEventBundle { cpu: Some(u32::from(cpu.0)), event: Vec::new() };
            head.encode(bundle).expect("a vector grows");
        }
        bundle.extend(event);
        if bundle.len() >= BUNDLE_BYTES {
            self.flush(cpu);
        }
    }

    fn open_counters(&mut self) {
        let descriptor = TrackDescriptor {
            uuid: Some(RUNNABLE_TRACKS),
            name: Some("Runnable tasks".to_string()),
            child_ordering: Some(ORDER_EXPLICIT),
            ..TrackDescriptor::default()
        };
        self.write(&TracePacket {
            trusted_packet_sequence_id: Some(TRACK_SEQUENCE),
            sequence_flags: Some(SEQ_INCREMENTAL_STATE_CLEARED),
            track_descriptor: Some(descriptor),
            ..TracePacket::default()
        });
    }

    fn count_runnable(&mut self, time: Ns, cpu: CpuId, nr_running: u32) {
        let uuid = Some(RUNNABLE_TRACKS + 1 + u64::from(cpu.0));
        let before = self.counters[cpu].replace(nr_running);
        if before.is_none() {
            let counter = CounterDescriptor {
                unit_name: Some("tasks".to_string()),
                y_axis_share_key: Some("runnable tasks".to_string()),
            };
            let descriptor = TrackDescriptor {
                uuid,
                name: Some(format!("CPU {cpu} runnable tasks")),
                parent_uuid: Some(RUNNABLE_TRACKS),
                counter: Some(counter),
                sibling_order_rank: Some(i32::from(cpu.0)),
                ..TrackDescriptor::default()
            };
            self.describe(descriptor);
        }
        if before != Some(nr_running) {
            let counter_value = Some(i64::from(nr_running));
            let r#type = Some(TYPE_COUNTER);
            self.track_event(time, TrackEvent { r#type, track_uuid: uuid, counter_value, ..TrackEvent::default() });
        }
    }

    fn track_event(&mut self, time: Ns, event: TrackEvent) {
        self.write(&TracePacket {
            timestamp: Some(time.0),
            trusted_packet_sequence_id: Some(TRACK_SEQUENCE),
            track_event: Some(event),
            ..TracePacket::default()
        });
    }

    fn describe(&mut self, descriptor: TrackDescriptor) {
        self.write(&TracePacket {
            trusted_packet_sequence_id: Some(TRACK_SEQUENCE),
            track_descriptor: Some(descriptor),
            ..TracePacket::default()
        });
    }

    /// The track of a task, or of wakeups from idle on a CPU.
    fn wakeup_track(&mut self, task: Option<TaskId>, cpu: CpuId) -> u64 {
        let pid = self.tasks.who(task, cpu).pid;
        let uuid = match task {
            Some(_) => TASK_TRACKS + u64::from(pid),
            None => WAKEUP_TRACKS + 1 + u64::from(cpu.0),
        };
        if !self.described.insert(uuid) {
            return uuid;
        }
        if task.is_some() {
            let thread = ThreadDescriptor { pid: Some(pid as i32), tid: Some(pid as i32) };
            self.describe(TrackDescriptor { uuid: Some(uuid), thread: Some(thread), ..TrackDescriptor::default() });
            return uuid;
        }
        if self.described.insert(WAKEUP_TRACKS) {
            self.describe(TrackDescriptor {
                uuid: Some(WAKEUP_TRACKS),
                name: Some("Wakeups from idle".to_string()),
                child_ordering: Some(ORDER_EXPLICIT),
                ..TrackDescriptor::default()
            });
        }
        self.describe(TrackDescriptor {
            uuid: Some(uuid),
            name: Some(format!("CPU {cpu} wakeups from idle")),
            parent_uuid: Some(WAKEUP_TRACKS),
            sibling_order_rank: Some(i32::from(cpu.0)),
            ..TrackDescriptor::default()
        });
        uuid
    }

    /// Whatever runs on `cpu` wakes `task`.
    fn flow_begins(&mut self, time: Ns, cpu: CpuId, task: TaskId) {
        let flow = self.next_flow;
        self.next_flow += 1;
        self.woken[task.index()] = Some(flow);
        let track_uuid = Some(self.wakeup_track(self.tasks.running(cpu), cpu));
        let (r#type, name) = (Some(TYPE_INSTANT), Some("wakes".to_string()));
        self.track_event(time, TrackEvent { r#type, track_uuid, name, flow_ids: vec![flow], ..TrackEvent::default() });
    }

    /// The next task has arrived. The previous task was woken while it still ran.
    fn flow_ends(&mut self, time: Ns, cpu: CpuId, prev: Option<TaskId>, next: Option<TaskId>) {
        if let Some(prev) = prev {
            self.woken[prev.index()] = None;
        }
        let Some((task, flow)) = next.and_then(|task| Some((task, self.woken[task.index()].take()?))) else { return };
        let track_uuid = Some(self.wakeup_track(Some(task), cpu));
        let (r#type, name, terminating_flow_ids) = (Some(TYPE_INSTANT), Some("woken".to_string()), vec![flow]);
        self.track_event(time, TrackEvent { r#type, track_uuid, name, terminating_flow_ids, ..TrackEvent::default() });
    }

    /// Must be called for each task that an event mentions. Forks name their children; all other tasks are named here.
    fn name(&mut self, time: Ns, task: TaskId) {
        if std::mem::replace(&mut self.named[task.index()], true) {
            return;
        }
        let who = self.tasks.who(Some(task), CpuId(0));
        let process = Process {
            pid: Some(who.pid as i32),
            ppid: Some(0),
            cmdline: vec![who.comm.clone()],
            cmdline_is_comm: Some(true),
        };
        self.write(&TracePacket {
            process_tree: Some(ProcessTree { processes: vec![process] }),
            timestamp: Some(time.0),
            trusted_packet_sequence_id: Some(FTRACE_SEQUENCE),
            ..TracePacket::default()
        });
    }

    fn fork(&mut self, time: Ns, cpu: CpuId, parent: Option<TaskId>, child: TaskId) {
        self.named[child.index()] = true;
        let (parent, child) = (self.tasks.who(parent, cpu), self.tasks.who(Some(child), cpu));
        let task = TaskNewtask {
            pid: Some(child.pid as i32),
            comm: Some(child.comm.clone()),
            // Not CLONE_THREAD: a process of its own.
            clone_flags: Some(0),
        };
        let fork = SchedProcessFork {
            parent_comm: Some(parent.comm.clone()),
            parent_pid: Some(parent.pid as i32),
            child_comm: Some(child.comm.clone()),
            child_pid: Some(child.pid as i32),
        };
        self.push(time, cpu, FtraceFields::TaskNewtask(task));
        self.push(time, cpu, FtraceFields::SchedProcessFork(fork));
    }

    fn fields(&self, cpu: CpuId, event: &Event) -> Option<FtraceFields> {
        let wakeup = |task: &TaskId, target_cpu: &CpuId| {
            let who = self.tasks.who(Some(*task), cpu);
            SchedWakeup {
                comm: Some(who.comm.clone()),
                pid: Some(who.pid as i32),
                prio: Some(who.prio),
                success: Some(1),
                target_cpu: Some(i32::from(target_cpu.0)),
            }
        };
        let power = |state: u32| CpuPower { state: Some(state), cpu_id: Some(u32::from(cpu.0)) };
        Some(match event {
            Event::SchedSwitch { prev, prev_state, preempt, next } => {
                let (prev, next) = (self.tasks.who(*prev, cpu), self.tasks.who(*next, cpu));
                FtraceFields::SchedSwitch(switch_fields(prev, state_bits(*prev_state, *preempt), next))
            }
            Event::SchedWaking { task, target_cpu } => FtraceFields::SchedWaking(wakeup(task, target_cpu)),
            Event::SchedWakeup { task, target_cpu } => FtraceFields::SchedWakeup(wakeup(task, target_cpu)),
            Event::SchedWakeupNew { task, target_cpu } => FtraceFields::SchedWakeupNew(wakeup(task, target_cpu)),
            Event::SchedMigrateTask { task, orig_cpu, dest_cpu } => {
                let who = self.tasks.who(Some(*task), cpu);
                FtraceFields::SchedMigrateTask(SchedMigrateTask {
                    comm: Some(who.comm.clone()),
                    pid: Some(who.pid as i32),
                    prio: Some(who.prio),
                    orig_cpu: Some(i32::from(orig_cpu.0)),
                    dest_cpu: Some(i32::from(dest_cpu.0)),
                })
            }
            Event::SchedProcessExec { task } => {
                let who = self.tasks.who(Some(*task), cpu);
                FtraceFields::SchedProcessExec(SchedProcessExec {
                    filename: Some(who.comm.clone()),
                    pid: Some(who.pid as i32),
                    old_pid: Some(who.pid as i32),
                })
            }
            Event::SchedProcessExit { task } => {
                let who = self.tasks.who(Some(*task), cpu);
                FtraceFields::SchedProcessExit(SchedProcessExit {
                    comm: Some(who.comm.clone()),
                    pid: Some(who.pid as i32),
                    prio: Some(who.prio),
                })
            }
            Event::CpuIdle { state } => FtraceFields::CpuIdle(power(state.map_or(u32::MAX, u32::from))),
            Event::CpuFrequency { khz } => FtraceFields::CpuFrequency(power(*khz)),
            Event::SchedProcessFree { task } => FtraceFields::SchedProcessFree(self.process(Some(*task), cpu)),
            Event::SchedProcessWait { child } => {
                let pid = child.map_or(0, |child| self.tasks.who(Some(child), cpu).pid);
                let who = self.process(self.tasks.running(cpu), cpu);
                FtraceFields::SchedProcessWait(SchedProcess { pid: Some(pid as i32), ..who })
            }
            Event::SchedProcessFork { .. } | Event::NrRunning { .. } => return None,
            _ => return of_interrupt(event).or_else(|| Some(FtraceFields::Generic(self.generic(event)?))),
        })
    }

    fn process(&self, task: Option<TaskId>, cpu: CpuId) -> SchedProcess {
        let who = self.tasks.who(task, cpu);
        SchedProcess { comm: Some(who.comm.clone()), pid: Some(who.pid as i32), prio: Some(who.prio) }
    }

    fn generic(&self, event: &Event) -> Option<GenericFtraceEvent> {
        let field = |(name, value): (&str, Value)| {
            let value = match value {
                Value::Text(text) => GenericValue::Str(text),
                Value::Signed(number) => GenericValue::Int(number),
                Value::Unsigned(number) | Value::Ns(number) => GenericValue::Uint(number),
            };
            GenericField { name: Some(name.to_string()), value: Some(value) }
        };
        let fields = tracepoints::fields(event, &self.tasks, self.formats)?;
        let event_name = Some(Tracepoint::of(event)?.name().to_string());
        Some(GenericFtraceEvent { event_name, field: fields.into_iter().map(field).collect() })
    }
}

/// An event as a bundle holds it.
fn encoded(time: Ns, pid: u32, fields: FtraceFields) -> Vec<u8> {
    let event = FtraceEvent { timestamp: Some(time.0), pid: Some(pid), event: Some(fields) };
    let mut bytes = vec![BUNDLE_EVENT_KEY];
    event.encode_length_delimited(&mut bytes).expect("a vector grows");
    bytes
}

/// Interrupt and softirq events that have a message.
fn of_interrupt(event: &Event) -> Option<FtraceFields> {
    let softirq = |vec: u8| Softirq { vec: Some(vec.into()) };
    let local_timer = |vector: u8| LocalTimer { vector: Some(vector.into()) };
    Some(match event {
        Event::IrqHandlerEntry { irq, name } => {
            FtraceFields::IrqHandlerEntry(IrqHandlerEntry { irq: Some(*irq as i32), name: Some(name.clone()) })
        }
        Event::IrqHandlerExit { irq } => {
            FtraceFields::IrqHandlerExit(IrqHandlerExit { irq: Some(*irq as i32), ret: Some(1) })
        }
        Event::SoftirqRaise { vec } => FtraceFields::SoftirqRaise(softirq(*vec)),
        Event::SoftirqEntry { vec } => FtraceFields::SoftirqEntry(softirq(*vec)),
        Event::SoftirqExit { vec } => FtraceFields::SoftirqExit(softirq(*vec)),
        Event::LocalTimerEntry { vector } => FtraceFields::LocalTimerEntry(local_timer(*vector)),
        Event::LocalTimerExit { vector } => FtraceFields::LocalTimerExit(local_timer(*vector)),
        _ => return None,
    })
}

/// Tasks that must have a name when the event is read. A fork's child is named by the event itself.
fn mentioned(event: &Event) -> [Option<TaskId>; 2] {
    match *event {
        Event::SchedSwitch { prev, next, .. } => [prev, next],
        Event::SchedProcessFork { parent, .. } => [parent, None],
        Event::SchedProcessExec { task }
        | Event::SchedProcessExit { task }
        | Event::SchedWaking { task, .. }
        | Event::SchedWakeup { task, .. }
        | Event::SchedWakeupNew { task, .. }
        | Event::SchedMigrateTask { task, .. }
        | Event::SchedProcessFree { task } => [Some(task), None],
        _ => [None, None],
    }
}

fn switch_fields(prev: &Who, prev_state: i64, next: &Who) -> SchedSwitch {
    SchedSwitch {
        prev_comm: Some(prev.comm.clone()),
        prev_pid: Some(prev.pid as i32),
        prev_prio: Some(prev.prio),
        prev_state: Some(prev_state),
        next_comm: Some(next.comm.clone()),
        next_pid: Some(next.pid as i32),
        next_prio: Some(next.prio),
    }
}

/// The bits of `p->state` before v4.8, which Perfetto assumes for a trace that names no kernel release. `2048` is
/// TASK_STATE_MAX, the `+` of `R+`. An exit is EXIT_DEAD, which has the same value in all releases.
fn state_bits(state: TaskState, preempt: bool) -> i64 {
    match state {
        _ if preempt => 2048,
        TaskState::Running | TaskState::Waking | TaskState::New => 0,
        TaskState::Interruptible => 1,
        TaskState::Uninterruptible => 2,
        TaskState::Dead => 16,
    }
}

impl<W: Write> Sink for Perfetto<W> {
    fn event(&mut self, time: Ns, cpu: CpuId, event: &Event) {
        for task in mentioned(event).into_iter().flatten() {
            self.name(time, task);
        }
        match event {
            Event::NrRunning { .. } | Event::SchedUpdateNrRunning { .. } => self.push_count(time, cpu, event),
            // The event names the child, so it is not left out.
            Event::SchedProcessFork { parent, child } => self.fork(time, cpu, *parent, *child),
            _ => {
                if self.selection.shows(event)
                    && let Some(fields) = self.fields(cpu, event)
                {
                    self.push(time, cpu, fields);
                }
            }
        }
        match *event {
            Event::SchedWaking { task, .. } | Event::SchedWakeupNew { task, .. } => self.flow_begins(time, cpu, task),
            Event::SchedSwitch { prev, next, .. } => self.flow_ends(time, cpu, prev, next),
            _ => {}
        }
        self.count_power(time, cpu, event);
        self.tasks.passed(cpu, event);
        self.waiting.passed(time);
        while let Some((time, held)) = self.waiting.settled() {
            self.release(time, held);
        }
    }

    fn task(&mut self, task: TaskId, pid: u32, comm: &str, prio: i32) {
        self.tasks.task(task, pid, comm, prio);
        if task.index() >= self.named.len() {
            self.named.resize(task.index() + 1, false);
            self.woken.resize(task.index() + 1, None);
        }
        self.named[task.index()] = false;
        self.woken[task.index()] = None;
    }

    fn task_gone(&mut self, task: TaskId) {
        let pid = self.tasks.who(Some(task), CpuId(0)).pid;
        self.described.remove(&(TASK_TRACKS + u64::from(pid)));
        self.tasks.task_gone(task);
    }
}

#[cfg(test)]
mod tests;
