//! Tracepoints by name: which ones a kernel has, which are wanted, and the fields of those that print as `name=value`.
//!
//! A *bare* tracepoint is a hook for modules, without an event in tracefs. Its name is the kernel's; its fields here
//! are those with which such modules commonly show it.

use crate::formats::{Formats, Release, Span, StickNuma, UtilEstShown};
use crate::proc::SOFTIRQ_NAMES;
use crate::tasks::Tasks;
use sched::sched::TaskId;
use sched::trace::{Averages, Estimate, Event, Ipi, NumaSide};
use units::CpuId;

macro_rules! tracepoints {
    ($( $variant:ident = $name:literal, $kind:ident, $first:ident; )+) => {
        /// A tracepoint that something here passes.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        pub enum Tracepoint { $( $variant, )+ }

        impl Tracepoint {
            pub const ALL: &'static [Tracepoint] = &[ $( Tracepoint::$variant, )+ ];

            /// The kernel's name for it.
            pub fn name(self) -> &'static str {
                match self { $( Tracepoint::$variant => $name, )+ }
            }

            fn kind(self) -> Kind {
                match self { $( Tracepoint::$variant => Kind::$kind, )+ }
            }

            fn span(self) -> Span {
                Span::since(match self { $( Tracepoint::$variant => Release::$first, )+ })
            }
        }
    };
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    /// An event of include/trace/events.
    Event,
    /// The same, but it reports nothing while schedstats are off.
    Schedstat,
    /// DECLARE_TRACE().
    Bare,
}

tracepoints! {
    SchedProcessFork = "sched_process_fork", Event, V4_5;
    SchedProcessExec = "sched_process_exec", Event, V4_5;
    SchedProcessExit = "sched_process_exit", Event, V4_5;
    SchedProcessWait = "sched_process_wait", Event, V4_5;
    SchedProcessFree = "sched_process_free", Event, V4_5;
    SchedWaking = "sched_waking", Event, V4_5;
    SchedWakeup = "sched_wakeup", Event, V4_5;
    SchedWakeupNew = "sched_wakeup_new", Event, V4_5;
    SchedSwitch = "sched_switch", Event, V4_5;
    SchedMigrateTask = "sched_migrate_task", Event, V4_5;
    SchedStatWait = "sched_stat_wait", Schedstat, V4_5;
    SchedStatSleep = "sched_stat_sleep", Schedstat, V4_5;
    SchedStatIowait = "sched_stat_iowait", Schedstat, V4_5;
    SchedStatBlocked = "sched_stat_blocked", Schedstat, V4_5;
    // It reports without schedstats too, but the kernel asks for them all the same.
    SchedStatRuntime = "sched_stat_runtime", Schedstat, V4_5;
    SchedPiSetprio = "sched_pi_setprio", Event, V4_5;
    SchedWakeIdleWithoutIpi = "sched_wake_idle_without_ipi", Event, V4_5;
    SchedMoveNuma = "sched_move_numa", Event, V4_5;
    SchedStickNuma = "sched_stick_numa", Event, V4_5;
    SchedSwapNuma = "sched_swap_numa", Event, V4_5;
    CpuIdle = "cpu_idle", Event, V4_5;
    CpuFrequency = "cpu_frequency", Event, V4_5;
    IrqHandlerEntry = "irq_handler_entry", Event, V4_5;
    IrqHandlerExit = "irq_handler_exit", Event, V4_5;
    SoftirqRaise = "softirq_raise", Event, V4_5;
    SoftirqEntry = "softirq_entry", Event, V4_5;
    SoftirqExit = "softirq_exit", Event, V4_5;
    LocalTimerEntry = "local_timer_entry", Event, V4_5;
    LocalTimerExit = "local_timer_exit", Event, V4_5;
    RescheduleEntry = "reschedule_entry", Event, V4_5;
    RescheduleExit = "reschedule_exit", Event, V4_5;
    CallFunctionSingleEntry = "call_function_single_entry", Event, V4_5;
    CallFunctionSingleExit = "call_function_single_exit", Event, V4_5;
    IrqWorkEntry = "irq_work_entry", Event, V4_5;
    IrqWorkExit = "irq_work_exit", Event, V4_5;
    PeltCfs = "pelt_cfs_tp", Bare, V5_4;
    PeltSe = "pelt_se_tp", Bare, V5_4;
    PeltRt = "pelt_rt_tp", Bare, V5_4;
    PeltDl = "pelt_dl_tp", Bare, V5_4;
    PeltIrq = "pelt_irq_tp", Bare, V5_4;
    SchedCpuCapacity = "sched_cpu_capacity_tp", Bare, V5_10;
    SchedOverutilized = "sched_overutilized_tp", Bare, V5_4;
    SchedUtilEstCfs = "sched_util_est_cfs_tp", Bare, V5_10;
    SchedUtilEstSe = "sched_util_est_se_tp", Bare, V5_10;
    SchedUpdateNrRunning = "sched_update_nr_running_tp", Bare, V5_10;
}

/// irq_vectors.h: RESCHEDULE_VECTOR, CALL_FUNCTION_SINGLE_VECTOR, IRQ_WORK_VECTOR, of all kernels.
fn vector(ipi: Ipi) -> u64 {
    match ipi {
        Ipi::Reschedule => 0xfd,
        Ipi::CallFunctionSingle => 0xfb,
        Ipi::IrqWork => 0xf6,
    }
}

/// Tracepoints of the trees' include/trace/events/sched.h, and of their interrupts, that are never reported here: in
/// which kernels, and why not.
const NEVER_PASSED: &[(&str, Span, &str)] = &[
    ("sched_kthread_stop", Span::ALL, "kernel threads do not end here"),
    ("sched_kthread_stop_ret", Span::ALL, "kernel threads do not end here"),
    ("sched_kthread_work_queue_work", Span::since(Release::V5_4), "kthread_worker is not modelled"),
    ("sched_kthread_work_execute_start", Span::since(Release::V5_4), "kthread_worker is not modelled"),
    ("sched_kthread_work_execute_end", Span::since(Release::V5_4), "kthread_worker is not modelled"),
    ("sched_wait_task", Span::ALL, "nobody waits for a task to leave its CPU"),
    (
        "sched_prepare_exec",
        Span::since(Release::V6_12),
        "who executes another program (`exec` of a script) has no file, and so no interpreter, that could be named",
    ),
    ("sched_process_hang", Span::ALL, "nobody looks for hung tasks"),
    (
        "sched_skip_vma_numa",
        Span::since(Release::V6_12),
        "scans skip areas of memory, as the kernel's do, but tell nothing of it",
    ),
    ("pelt_thermal_tp", Span::since(Release::V5_10).until(Release::V6_12), "thermal pressure is not modelled"),
    ("pelt_hw_tp", Span::since(Release::V6_12), "hardware pressure is not modelled"),
    (
        "sched_compute_energy_tp",
        Span::since(Release::V6_12),
        "energy is computed, as in the kernel, but nothing is told of it",
    ),
    ("sched_skip_cpuset_numa", Span::since(Release::V6_18), "no group is kept off a task's own nodes"),
    ("sched_entry_tp", Span::since(Release::V6_18), "what it would tell stands in sched_switch"),
    ("sched_exit_tp", Span::since(Release::V6_18), "what it would tell stands in sched_switch"),
    ("sched_set_state_tp", Span::since(Release::V6_18), "states are set, as in the kernel, but nothing is told of it"),
    (
        "sched_set_need_resched_tp",
        Span::since(Release::V6_18),
        "flags are set, as in the kernel, but nothing is told of it",
    ),
    ("sched_dl_throttle_tp", Span::since(Release::V7_2), DEADLINES),
    ("sched_dl_replenish_tp", Span::since(Release::V7_2), DEADLINES),
    ("sched_dl_update_tp", Span::since(Release::V7_2), DEADLINES),
    ("sched_dl_server_start_tp", Span::since(Release::V7_2), DEADLINES),
    ("sched_dl_server_stop_tp", Span::since(Release::V7_2), DEADLINES),
    ("call_function_entry", Span::ALL, CALLS),
    ("call_function_exit", Span::ALL, CALLS),
];

/// Why these are absent.
const DEADLINES: &str = "deadline tasks and servers act, as in the kernel, but tell nothing of it";
const CALLS: &str = "no CPU has many others do something at once (`call_function_single_*` is told)";

impl Tracepoint {
    /// The event's tracepoint; `None` for a counter of ours.
    pub fn of(event: &Event) -> Option<Tracepoint> {
        Some(match event {
            Event::SchedProcessFork { .. } => Tracepoint::SchedProcessFork,
            Event::SchedProcessExec { .. } => Tracepoint::SchedProcessExec,
            Event::SchedProcessExit { .. } => Tracepoint::SchedProcessExit,
            Event::SchedProcessWait { .. } => Tracepoint::SchedProcessWait,
            Event::SchedProcessFree { .. } => Tracepoint::SchedProcessFree,
            Event::SchedWaking { .. } => Tracepoint::SchedWaking,
            Event::SchedWakeup { .. } => Tracepoint::SchedWakeup,
            Event::SchedWakeupNew { .. } => Tracepoint::SchedWakeupNew,
            Event::SchedSwitch { .. } => Tracepoint::SchedSwitch,
            Event::SchedMigrateTask { .. } => Tracepoint::SchedMigrateTask,
            Event::SchedStatWait { .. } => Tracepoint::SchedStatWait,
            Event::SchedStatSleep { .. } => Tracepoint::SchedStatSleep,
            Event::SchedStatIowait { .. } => Tracepoint::SchedStatIowait,
            Event::SchedStatBlocked { .. } => Tracepoint::SchedStatBlocked,
            Event::SchedStatRuntime { .. } => Tracepoint::SchedStatRuntime,
            Event::SchedPiSetprio { .. } => Tracepoint::SchedPiSetprio,
            Event::SchedWakeIdleWithoutIpi { .. } => Tracepoint::SchedWakeIdleWithoutIpi,
            Event::SchedMoveNuma { .. } => Tracepoint::SchedMoveNuma,
            Event::SchedStickNuma { .. } => Tracepoint::SchedStickNuma,
            Event::SchedSwapNuma { .. } => Tracepoint::SchedSwapNuma,
            Event::CpuIdle { .. } => Tracepoint::CpuIdle,
            Event::CpuFrequency { .. } => Tracepoint::CpuFrequency,
            Event::IrqHandlerEntry { .. } => Tracepoint::IrqHandlerEntry,
            Event::IrqHandlerExit { .. } => Tracepoint::IrqHandlerExit,
            Event::SoftirqRaise { .. } => Tracepoint::SoftirqRaise,
            Event::SoftirqEntry { .. } => Tracepoint::SoftirqEntry,
            Event::SoftirqExit { .. } => Tracepoint::SoftirqExit,
            Event::LocalTimerEntry { .. } => Tracepoint::LocalTimerEntry,
            Event::LocalTimerExit { .. } => Tracepoint::LocalTimerExit,
            Event::IpiEntry(Ipi::Reschedule) => Tracepoint::RescheduleEntry,
            Event::IpiExit(Ipi::Reschedule) => Tracepoint::RescheduleExit,
            Event::IpiEntry(Ipi::CallFunctionSingle) => Tracepoint::CallFunctionSingleEntry,
            Event::IpiExit(Ipi::CallFunctionSingle) => Tracepoint::CallFunctionSingleExit,
            Event::IpiEntry(Ipi::IrqWork) => Tracepoint::IrqWorkEntry,
            Event::IpiExit(Ipi::IrqWork) => Tracepoint::IrqWorkExit,
            Event::PeltCfs { .. } => Tracepoint::PeltCfs,
            Event::PeltSe { .. } => Tracepoint::PeltSe,
            Event::PeltRt { .. } => Tracepoint::PeltRt,
            Event::PeltDl { .. } => Tracepoint::PeltDl,
            Event::PeltIrq { .. } => Tracepoint::PeltIrq,
            Event::SchedCpuCapacity { .. } => Tracepoint::SchedCpuCapacity,
            Event::SchedOverutilized { .. } => Tracepoint::SchedOverutilized,
            Event::SchedUtilEstCfs { .. } => Tracepoint::SchedUtilEstCfs,
            Event::SchedUtilEstSe { .. } => Tracepoint::SchedUtilEstSe,
            Event::SchedUpdateNrRunning { .. } => Tracepoint::SchedUpdateNrRunning,
            Event::NrRunning { .. } => return None,
        })
    }

    /// The tracepoints that a kernel has.
    pub fn of_kernel(formats: Formats) -> impl Iterator<Item = Tracepoint> + Clone {
        Tracepoint::ALL.iter().copied().filter(move |tracepoint| formats.has(tracepoint.span()))
    }

    /// Why a tracepoint of this name is never reported in this kernel; `None` if it is reported, or no kernel has it.
    pub fn absent(name: &str, formats: Formats) -> Option<Absent> {
        if let Some(tracepoint) = Tracepoint::ALL.iter().find(|tracepoint| tracepoint.name() == name) {
            return (!formats.has(tracepoint.span())).then_some(Absent::InThisKernel);
        }
        let (_, span, why) = NEVER_PASSED.iter().find(|row| row.0 == name)?;
        Some(if formats.has(*span) { Absent::Here(why) } else { Absent::InThisKernel })
    }
}

/// Why a tracepoint is not reported.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Absent {
    /// Other kernels have it.
    InThisKernel,
    /// It does not happen in the simulation, or is not reported; the text says why.
    Here(&'static str),
}

/// A set of tracepoints.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Selection(u64);

impl Selection {
    pub const NONE: Selection = Selection(0);

    /// Every event that a kernel has in tracefs.
    pub fn events(formats: Formats) -> Selection {
        Tracepoint::of_kernel(formats).filter(|tracepoint| tracepoint.kind() != Kind::Bare).collect()
    }

    /// Those of them that have a message in Perfetto's schema.
    pub fn with_message(formats: Formats) -> Selection {
        let has = |tracepoint: &Tracepoint| {
            let generic = [
                Tracepoint::SchedPiSetprio,
                Tracepoint::SchedWakeIdleWithoutIpi,
                Tracepoint::SchedMoveNuma,
                Tracepoint::SchedStickNuma,
                Tracepoint::SchedSwapNuma,
                Tracepoint::RescheduleEntry,
                Tracepoint::RescheduleExit,
                Tracepoint::CallFunctionSingleEntry,
                Tracepoint::CallFunctionSingleExit,
                Tracepoint::IrqWorkEntry,
                Tracepoint::IrqWorkExit,
            ];
            tracepoint.kind() == Kind::Event && !generic.contains(tracepoint)
        };
        Tracepoint::of_kernel(formats).filter(has).collect()
    }

    pub fn add(&mut self, tracepoint: Tracepoint) {
        self.0 |= 1 << tracepoint as u32;
    }

    pub fn contains(self, tracepoint: Tracepoint) -> bool {
        self.0 & 1 << tracepoint as u32 != 0
    }

    pub fn iter(self) -> impl Iterator<Item = Tracepoint> {
        Tracepoint::ALL.iter().copied().filter(move |tracepoint| self.contains(*tracepoint))
    }

    /// Whether the listener must ask for bare tracepoints.
    pub fn has_bare(self) -> bool {
        self.iter().any(|tracepoint| tracepoint.kind() == Kind::Bare)
    }

    /// Those for which the kernel asks for schedstats.
    pub fn of_schedstats(self) -> impl Iterator<Item = Tracepoint> {
        self.iter().filter(|tracepoint| tracepoint.kind() == Kind::Schedstat)
    }

    /// Whether to show an event.
    pub(crate) fn shows(self, event: &Event) -> bool {
        Tracepoint::of(event).is_none_or(|tracepoint| self.contains(tracepoint))
    }
}

impl FromIterator<Tracepoint> for Selection {
    fn from_iter<I: IntoIterator<Item = Tracepoint>>(tracepoints: I) -> Selection {
        let mut selection = Selection::NONE;
        tracepoints.into_iter().for_each(|tracepoint| selection.add(tracepoint));
        selection
    }
}

pub(crate) fn softirq_name(vec: u8) -> &'static str {
    SOFTIRQ_NAMES[usize::from(vec)]
}

/// A field's value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Value {
    Text(String),
    Signed(i64),
    Unsigned(u64),
    /// Nanoseconds, which the kernel marks with their unit.
    Ns(u64),
}

impl std::fmt::Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Value::Text(text) => f.write_str(text),
            Value::Signed(number) => write!(f, "{number}"),
            Value::Unsigned(number) => write!(f, "{number}"),
            Value::Ns(ns) => write!(f, "{ns} [ns]"),
        }
    }
}

/// Names and values, in the order of printing.
pub(crate) type Fields = Vec<(&'static str, Value)>;

/// The fields of an event whose text consists only of its fields, and which has no message in Perfetto's schema.
pub(crate) fn fields(event: &Event, tasks: &Tasks, formats: Formats) -> Option<Fields> {
    let unsigned = Value::Unsigned;
    let cpu_of = |cpu: &CpuId| ("cpu", unsigned(cpu.0.into()));
    let who = |task: TaskId| {
        let who = tasks.who(Some(task), CpuId(0));
        [("comm", Value::Text(who.comm.clone())), ("pid", unsigned(who.pid.into()))]
    };
    let path_of = |path: &String| ("path", Value::Text(path.clone()));
    let delay = |task: TaskId, name, ns| who(task).into_iter().chain([(name, Value::Ns(ns))]).collect::<Fields>();
    Some(match event {
        Event::SchedStatWait { task, delay: ns }
        | Event::SchedStatSleep { task, delay: ns }
        | Event::SchedStatIowait { task, delay: ns }
        | Event::SchedStatBlocked { task, delay: ns } => delay(*task, "delay", ns.0),
        Event::SchedStatRuntime { task, runtime, vruntime } => {
            let mut fields = delay(*task, "runtime", runtime.0);
            if formats.runtime_with_vruntime {
                fields.push(("vruntime", Value::Ns(*vruntime)));
            }
            fields
        }
        Event::SchedPiSetprio { task, oldprio, newprio } => who(*task)
            .into_iter()
            .chain([("oldprio", Value::Signed((*oldprio).into())), ("newprio", Value::Signed((*newprio).into()))])
            .collect(),
        Event::SchedWakeIdleWithoutIpi { cpu } => vec![cpu_of(cpu)],
        Event::IpiEntry(ipi) | Event::IpiExit(ipi) => vec![("vector", unsigned(vector(*ipi)))],
        Event::SchedMoveNuma { src, dst } => numa_move(src, dst, tasks),
        Event::SchedStickNuma { src, dst } if formats.stick_numa == StickNuma::Task => numa_move(src, dst, tasks),
        Event::SchedStickNuma { src, dst } | Event::SchedSwapNuma { src, dst } => {
            let [src, dst] = [(src, SRC), (dst, DST)].map(|(side, names)| numa_side(side, names, tasks));
            src.into_iter().chain(dst).collect()
        }
        Event::PeltCfs { cpu, path, avg } => [cpu_of(cpu), path_of(path)].into_iter().chain(averages(avg)).collect(),
        Event::PeltSe { cpu, path, task, avg } => {
            let nobody = || [("comm", Value::Text("(null)".to_string())), ("pid", Value::Signed(-1))];
            let names = task.map_or_else(nobody, who);
            [cpu_of(cpu), path_of(path)].into_iter().chain(names).chain(averages(avg)).collect()
        }
        Event::PeltRt { cpu, avg } | Event::PeltDl { cpu, avg } | Event::PeltIrq { cpu, avg } => {
            [cpu_of(cpu)].into_iter().chain(averages(avg)).collect()
        }
        Event::SchedCpuCapacity { cpu, capacity, capacity_orig } => {
            vec![cpu_of(cpu), ("capacity", unsigned(*capacity)), ("capacity_orig", unsigned(*capacity_orig))]
        }
        Event::SchedOverutilized { overutilized, span } => {
            let last = span.iter().last().map_or(0, |cpu| cpu.index());
            let span = format!("0x{}", span.hex(last + 1));
            vec![("overutilized", unsigned((*overutilized).into())), ("span", Value::Text(span))]
        }
        Event::SchedUtilEstCfs { cpu, path, estimate: of } => {
            [cpu_of(cpu), path_of(path)].into_iter().chain(estimate(of, formats)).collect()
        }
        Event::SchedUtilEstSe { cpu, path, task, estimate: of } => {
            [cpu_of(cpu), path_of(path)].into_iter().chain(who(*task)).chain(estimate(of, formats)).collect()
        }
        Event::SchedUpdateNrRunning { cpu, change, nr_running } => vec![
            cpu_of(cpu),
            ("change", Value::Signed((*change).into())),
            ("nr_running", unsigned((*nr_running).into())),
        ],
        _ => return None,
    })
}

const SRC: [&str; 5] = ["src_pid", "src_tgid", "src_ngid", "src_cpu", "src_nid"];
const DST: [&str; 5] = ["dst_pid", "dst_tgid", "dst_ngid", "dst_cpu", "dst_nid"];

/// One side of a migration between nodes, under these names.
fn numa_side(side: &NumaSide, names: [&'static str; 5], tasks: &Tasks) -> [(&'static str, Value); 5] {
    let pid = side.task.map_or(0, |task| tasks.who(Some(task), CpuId(0)).pid);
    let place = |number: Option<u16>| number.map_or(-1, i64::from);
    let values = [pid.into(), side.tgid.into(), side.ngid.into(), place(side.cpu.map(|cpu| cpu.0)), place(side.nid)];
    std::array::from_fn(|at| (names[at], Value::Signed(values[at])))
}

/// A task, and the places that it moves between.
fn numa_move(src: &NumaSide, dst: &NumaSide, tasks: &Tasks) -> Fields {
    let src = numa_side(src, ["pid", "tgid", "ngid", "src_cpu", "src_nid"], tasks);
    src.into_iter().chain(numa_side(dst, DST, tasks).into_iter().skip(3)).collect()
}

fn averages(avg: &Averages) -> [(&'static str, Value); 4] {
    [("load", avg.load), ("runnable", avg.runnable), ("util", avg.util), ("update_time", avg.update_time)]
        .map(|(name, value)| (name, Value::Unsigned(value)))
}

fn estimate(of: &Estimate, formats: Formats) -> Fields {
    let number = |number: u32| Value::Unsigned(number.into());
    let mut fields = if formats.util_est == UtilEstShown::One {
        vec![("util_est", number(of.enqueued))]
    } else {
        vec![("enqueued", number(of.enqueued)), ("ewma", number(of.ewma))]
    };
    fields.push(("util", Value::Unsigned(of.util)));
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_tracepoint_has_a_name_and_a_place_of_its_own() {
        let mut names: Vec<&str> = Tracepoint::ALL.iter().map(|tracepoint| tracepoint.name()).collect();
        names.extend(NEVER_PASSED.iter().map(|row| row.0));
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
        assert!(Tracepoint::ALL.len() <= 64, "a selection is a word");
        for &tracepoint in Tracepoint::ALL {
            let alone: Selection = [tracepoint].into_iter().collect();
            assert_eq!(alone.iter().collect::<Vec<_>>(), [tracepoint]);
        }
    }

    #[test]
    fn migrations_between_nodes_print_as_each_kernel_prints_them() {
        let mut tasks = Tasks::new(4);
        tasks.task(TaskId(1), 21, "a", 120);
        tasks.task(TaskId(2), 22, "b", 120);
        let side = |task, cpu: u16| NumaSide {
            task,
            tgid: if task.is_some() { 20 } else { 0 },
            ngid: if task == Some(TaskId(1)) { 21 } else { 0 },
            cpu: Some(CpuId(cpu)),
            nid: Some(cpu / 2),
        };
        let (src, dst) = (side(Some(TaskId(1)), 0), side(Some(TaskId(2)), 3));
        let printed = |event: &Event, formats| {
            let fields = fields(event, &tasks, formats).unwrap();
            fields.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
        };
        let one = "pid=21 tgid=20 ngid=21 src_cpu=0 src_nid=0 dst_cpu=3 dst_nid=1";
        let both = "src_pid=21 src_tgid=20 src_ngid=21 src_cpu=0 src_nid=0 dst_pid=22 dst_tgid=20 dst_ngid=0 dst_cpu=3 dst_nid=1";
        assert_eq!(printed(&Event::SchedMoveNuma { src, dst }, Formats::V6_12), one);
        assert_eq!(printed(&Event::SchedStickNuma { src, dst }, Formats::V4_15), one);
        assert_eq!(printed(&Event::SchedStickNuma { src, dst }, Formats::V6_1), both);
        assert_eq!(printed(&Event::SchedSwapNuma { src, dst }, Formats::V4_5), both);
        let nowhere = printed(&Event::SchedStickNuma { src, dst: NumaSide::default() }, Formats::V6_1);
        assert!(nowhere.ends_with("src_nid=0 dst_pid=0 dst_tgid=0 dst_ngid=0 dst_cpu=-1 dst_nid=-1"), "{nowhere}");
    }

    #[test]
    fn kernels_have_what_their_headers_declare() {
        assert!(!Selection::events(Formats::V6_12).has_bare(), "hooks have no event");
        let has = |formats, name: &str| Tracepoint::of_kernel(formats).any(|tracepoint| tracepoint.name() == name);
        assert!(has(Formats::V6_1, "pelt_se_tp") && !has(Formats::V4_15, "pelt_se_tp"));
        assert_eq!(Tracepoint::absent("pelt_se_tp", Formats::V4_5), Some(Absent::InThisKernel));
        assert!(has(Formats::V5_4, "pelt_irq_tp") && !has(Formats::V5_4, "sched_cpu_capacity_tp"));
        assert_eq!(Tracepoint::absent("pelt_thermal_tp", Formats::V6_12), Some(Absent::InThisKernel));
        assert!(matches!(Tracepoint::absent("pelt_thermal_tp", Formats::V6_1), Some(Absent::Here(_))));
        assert_eq!(Tracepoint::absent("sched_entry_tp", Formats::V6_12), Some(Absent::InThisKernel));
        assert!(matches!(Tracepoint::absent("sched_entry_tp", Formats::V6_18), Some(Absent::Here(_))));
        assert_eq!(Tracepoint::absent("sched_dl_update_tp", Formats::V6_18), Some(Absent::InThisKernel));
        assert_eq!(Tracepoint::absent("sched_switch", Formats::V4_5), None);
        assert_eq!(Tracepoint::absent("sched_load_cfs_rq", Formats::V6_1), None);
    }
}
