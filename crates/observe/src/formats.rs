//! What a kernel's files and traces look like, as a value: each kernel is the one before it and what has changed since.
//!
//! The forms are those of the trees that were read (kernel/sched/debug.c and stats.c, fs/proc/softirqs.c,
//! kernel/trace/trace.c, include/trace/events/sched.h). A version in a comment is the first tree that has the form; the
//! change itself may have come in a release between it and the one before.

/// The trees that were read, oldest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Release {
    V4_5,
    V4_15,
    V4_19,
    V5_4,
    V5_10,
    V5_15,
    V6_1,
    V6_6,
    V6_12,
    V6_18,
    V7_2,
    V7_3,
}

/// Where there is a file or a tracepoint.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    first: Release,
    /// The first release without it.
    gone: Option<Release>,
}

impl Span {
    pub const ALL: Span = Span::since(Release::V4_5);

    pub const fn since(first: Release) -> Span {
        Span { first, gone: None }
    }

    /// The same, until `gone`, which has it no more.
    pub const fn until(self, gone: Release) -> Span {
        Span { gone: Some(gone), ..self }
    }

    pub fn contains(self, release: Release) -> bool {
        self.first <= release && self.gone.is_none_or(|gone| release < gone)
    }
}

/// The forms of one kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Formats {
    /// Which files and tracepoints there are.
    pub(crate) release: Release,
    pub(crate) schedstat: SchedstatVersion,
    pub(crate) statistics: StatisticsShown,
    /// The statistics of tasks and groups are named by their place in the entity (`se.statistics.wait_sum`).
    pub(crate) statistics_placed: bool,
    /// The time that tasks were blocked is among them.
    pub(crate) block_time: bool,
    /// So are three counters that nothing ever counted.
    pub(crate) uncounted: bool,
    pub(crate) slices: Slices,
    pub(crate) child_runs_first: bool,
    /// How sched_debug spells the scaling of tunables by the number of CPUs.
    pub(crate) tunable_scaling: &'static str,
    /// A CPU's `load` and its averages by ticks, `cpu_load[]`.
    pub(crate) cpu_load: bool,
    pub(crate) nr_load_updates: bool,
    pub(crate) virtual_times: VirtualTimes,
    pub(crate) queue_counts: QueueCounts,
    pub(crate) averages: Averages,
    pub(crate) util_est: UtilEstShown,
    /// A queue's `h_load`.
    pub(crate) h_load: bool,
    pub(crate) class_queues: ClassQueues,
    pub(crate) task_table: TaskTable,
    pub(crate) policy: PolicyParameters,
    pub(crate) clamps: ClampsShown,
    /// /proc/PID/sched prints faults of private pages as those of shared ones, and the other way round.
    pub(crate) numa_faults_swapped: bool,
    /// What /proc/softirqs calls the softirq of irq_poll.
    pub(crate) irq_poll: &'static str,
    pub(crate) trace_head: TraceHead,
    pub(crate) prev_state: PrevState,
    /// `sched_stat_runtime` tells the task's virtual time.
    pub(crate) runtime_with_vruntime: bool,
    pub(crate) stick_numa: StickNuma,
}

/// The version of `/proc/schedstat` (SCHEDSTAT_VERSION).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SchedstatVersion {
    V15 = 15,
    /// Balancing of busy CPUs stands before that of idle ones.
    V16 = 16,
    /// Domains have names, and imbalances are four.
    V17 = 17,
}

/// When the statistics that schedstats collect are shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum StatisticsShown {
    /// Whether they are collected or not. `nr_migrations` and a CPU's `avg_idle` count as such.
    Always,
    WhileCollected,
}

/// The tunables of time slices in sched_debug.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Slices {
    Latency,
    /// The same, and the granularity of tasks of SCHED_IDLE.
    LatencyAndIdle,
    /// EEVDF's.
    Base,
}

/// What sched_debug tells of a queue's virtual times.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum VirtualTimes {
    /// The least and the greatest.
    Spread,
    /// EEVDF's average, too.
    Average,
    /// `zero_vruntime`, which took the place of `min_vruntime` in 6.12.y.
    Zero,
    /// The sums behind the average, too.
    Sums,
}

/// What sched_debug counts on a queue, beside its entities.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum QueueCounts {
    Entities,
    /// Tasks of the queue and of those below, and those of SCHED_IDLE among them.
    Hierarchy,
    /// The same, and entities of SCHED_IDLE.
    IdleEntities,
    /// The same, and sleepers whose dequeue is delayed.
    Delayed,
    /// Fewer, under other names.
    Queued,
}

/// Which averages of load tracking are shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Averages {
    LoadAndUtil,
    /// And the weight of what is runnable.
    RunnableWeight,
    /// And the time that tasks are runnable.
    Runnable,
}

/// How an estimate of utilization is shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum UtilEstShown {
    No,
    /// What was enqueued, and its average.
    Two,
    /// The two became one.
    One,
}

/// What sched_debug tells of the queues of the real-time and the deadline class.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ClassQueues {
    Running,
    /// And tasks that may migrate, and the bandwidth of deadline tasks.
    Migratory,
    /// Only how many run, and that bandwidth.
    Bandwidth,
}

/// sched_debug's table of tasks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TaskTable {
    /// Whether a task runs.
    Running,
    /// Its state.
    State,
    /// The same, and wider.
    Wide,
    /// With the time that it was blocked.
    Blocked,
    /// With eligibility, deadline and slice.
    Eevdf,
    /// The same, in a head of its own.
    EevdfWide,
    /// With the weight among all of its CPU.
    EevdfWeight,
}

/// What /proc/PID/sched shows beside policy and priority.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum PolicyParameters {
    No,
    /// A deadline task's budget.
    Deadline,
    /// That, and a fair task's slice.
    DeadlineAndSlice,
}

/// Whether /proc/PID/sched tells a task's clamps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ClampsShown {
    No,
    /// The configurations that are followed are without `UCLAMP_TASK`. A run that uses clamps stands for a kernel with it.
    WhereUsed,
    Always,
}

/// What stands before an event in a trace's text, and above the first one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TraceHead {
    NarrowPid,
    /// By v5.10, and in late releases of v5.4.y.
    WidePid,
    /// With a column for whether the task may migrate (v5.12).
    MigrateDisable,
    /// The same; the column of interrupts tells about softirqs, too.
    BhDisabled,
}

/// The state in which `sched_switch` shows the task that it takes off the CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum PrevState {
    /// Every bit of `p->state`.
    Raw,
    /// What /proc shows (8ef9925b02, v4.14).
    Reported,
}

/// What `sched_stick_numa` tells.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum StickNuma {
    /// The task, and the places that it stays between.
    Task,
    /// Both sides, as of a swap (v5.7).
    BothSides,
}

impl Formats {
    pub const V4_5: Formats = Formats {
        release: Release::V4_5,
        schedstat: SchedstatVersion::V15,
        statistics: StatisticsShown::Always,
        statistics_placed: true,
        block_time: false,
        uncounted: true,
        slices: Slices::Latency,
        child_runs_first: true,
        tunable_scaling: "logaritmic",
        cpu_load: true,
        nr_load_updates: true,
        virtual_times: VirtualTimes::Spread,
        queue_counts: QueueCounts::Entities,
        averages: Averages::LoadAndUtil,
        util_est: UtilEstShown::No,
        h_load: false,
        class_queues: ClassQueues::Running,
        task_table: TaskTable::Running,
        policy: PolicyParameters::No,
        clamps: ClampsShown::No,
        numa_faults_swapped: true,
        // irq_poll was renamed by 511cbce2ff8b (v4.5-rc1); the row kept the old name for a while.
        irq_poll: "BLOCK_IOPOLL",
        trace_head: TraceHead::NarrowPid,
        prev_state: PrevState::Raw,
        runtime_with_vruntime: true,
        stick_numa: StickNuma::Task,
    };
    pub const V4_15: Formats = Formats {
        release: Release::V4_15,
        statistics: StatisticsShown::WhileCollected,
        averages: Averages::RunnableWeight,
        class_queues: ClassQueues::Migratory,
        task_table: TaskTable::State,
        policy: PolicyParameters::Deadline,
        irq_poll: "IRQ_POLL",
        prev_state: PrevState::Reported,
        ..Self::V4_5
    };
    pub const V4_19: Formats =
        Formats { release: Release::V4_19, util_est: UtilEstShown::Two, numa_faults_swapped: false, ..Self::V4_15 };
    pub const V5_4: Formats = Formats {
        release: Release::V5_4,
        tunable_scaling: "logarithmic",
        cpu_load: false,
        trace_head: TraceHead::WidePid,
        ..Self::V4_19
    };
    pub const V5_10: Formats = Formats {
        release: Release::V5_10,
        // 96e74ebf8d59 (v5.7).
        clamps: ClampsShown::WhereUsed,
        nr_load_updates: false,
        averages: Averages::Runnable,
        task_table: TaskTable::Wide,
        stick_numa: StickNuma::BothSides,
        ..Self::V5_4
    };
    /// Statistics are in late releases of v5.15.y as here (the tree is 5.15.135).
    pub const V5_15: Formats = Formats {
        release: Release::V5_15,
        statistics_placed: false,
        queue_counts: QueueCounts::Hierarchy,
        trace_head: TraceHead::MigrateDisable,
        ..Self::V5_10
    };
    pub const V6_1: Formats = Formats {
        release: Release::V6_1,
        block_time: true,
        slices: Slices::LatencyAndIdle,
        queue_counts: QueueCounts::IdleEntities,
        task_table: TaskTable::Blocked,
        trace_head: TraceHead::BhDisabled,
        ..Self::V5_15
    };
    pub const V6_6: Formats = Formats {
        release: Release::V6_6,
        slices: Slices::Base,
        virtual_times: VirtualTimes::Average,
        task_table: TaskTable::Eevdf,
        ..Self::V6_1
    };
    /// `util_est` and `vruntime` of events changed in v6.8.
    pub const V6_12: Formats = Formats {
        release: Release::V6_12,
        schedstat: SchedstatVersion::V16,
        child_runs_first: false,
        virtual_times: VirtualTimes::Zero,
        queue_counts: QueueCounts::Delayed,
        util_est: UtilEstShown::One,
        class_queues: ClassQueues::Bandwidth,
        task_table: TaskTable::EevdfWide,
        policy: PolicyParameters::DeadlineAndSlice,
        runtime_with_vruntime: false,
        ..Self::V6_6
    };
    pub const V6_18: Formats = Formats {
        release: Release::V6_18,
        clamps: ClampsShown::Always,
        schedstat: SchedstatVersion::V17,
        queue_counts: QueueCounts::Queued,
        ..Self::V6_12
    };
    pub const V7_2: Formats = Formats { release: Release::V7_2, virtual_times: VirtualTimes::Sums, ..Self::V6_18 };
    pub const V7_3: Formats = Formats {
        release: Release::V7_3,
        uncounted: false,
        h_load: true,
        task_table: TaskTable::EevdfWeight,
        ..Self::V7_2
    };

    /// Whether this kernel has a file.
    pub fn has(&self, span: Span) -> bool {
        span.contains(self.release)
    }
}
