//! sched.h: the structures of the scheduler. Fields bear the kernel's names; pointers become ids into arenas.

pub use crate::arena::Arena;
pub use crate::callbacks::{BalanceCallback, BalanceCallbacks, IrqWork};
use crate::core::HotplugState;
use crate::core::cputime::GroupTicks;
use crate::core::{Clamps, GroupClamps};
use crate::fair::bandwidth::CfsBandwidth;
use crate::fair::nohz::NohzFlags;
use crate::latencytop::{LatencyRecord, WaitChannel};
pub use crate::list::{Link, Links, ListHead};
use crate::pelt::{ClockPelt, Removed, SchedAvg};
use crate::topology::{RdId, SdId};
use std::sync::Arc;
use units::{CpuId, CpuMask};

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
        pub struct $name(pub u32);

        impl $name {
            #[inline]
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl From<u32> for $name {
            fn from(number: u32) -> $name {
                $name(number)
            }
        }

        impl From<$name> for u32 {
            fn from(id: $name) -> u32 {
                id.0
            }
        }
    };
}

id!(
    /// A task. An id is reused once its task is gone.
    TaskId
);
id!(
    /// A schedulable entity: a task's, or a group's on one CPU.
    SeId
);
id!(
    /// A fair runqueue: the root one of a CPU (with the same number as the CPU), or a group's on one CPU.
    CfsRqId
);
id!(
    /// A task group. [`ROOT_TASK_GROUP`] always exists.
    TgId
);

pub const ROOT_TASK_GROUP: TgId = TgId(0);

/// sched.h: TASK_RUNNING and its kin. A task has only one of them at a time here; `Waking` and `New` exist as in the kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum TaskState {
    #[default]
    Running,
    Interruptible,
    Uninterruptible,
    Waking,
    New,
    Dead,
}

/// sched.h: TASK_ON_RQ_QUEUED, TASK_ON_RQ_MIGRATING.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum OnRq {
    #[default]
    No,
    Queued,
    Migrating,
}

/// uapi/linux/sched.h: SCHED_NORMAL and its kin, and a policy for the stop class's own tasks, which the kernel calls SCHED_FIFO.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Policy {
    #[default]
    Normal,
    Batch,
    Idle,
    Fifo,
    Rr,
    Deadline,
    /// `migration/N`: above every other policy, never chosen by users.
    Stop,
}

/// sched.h: struct sched_class, as a closed set, the highest first. The idle task (`rq.curr == None`) belongs to the last.
/// `core/class.rs` dispatches the methods of the classes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum SchedClass {
    Stop,
    Dl,
    Rt,
    #[default]
    Fair,
    Idle,
}

/// sched.h: WF_SYNC, WF_FORK, WF_MIGRATED.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct WakeFlags {
    pub sync: bool,
    pub fork: bool,
    pub migrated: bool,
}

impl WakeFlags {
    pub const NONE: WakeFlags = WakeFlags { sync: false, fork: false, migrated: false };
    pub const SYNC: WakeFlags = WakeFlags { sync: true, ..WakeFlags::NONE };
    pub const FORK: WakeFlags = WakeFlags { fork: true, ..WakeFlags::NONE };
}

/// sched.h: ENQUEUE_* and DEQUEUE_* flags.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct QueueFlags {
    /// ENQUEUE_WAKEUP
    pub wakeup: bool,
    /// ENQUEUE_WAKING: `task_waking_fair` made vruntime relative (until v4.6; later kernels ignore it).
    pub waking: bool,
    /// ENQUEUE_MIGRATED: the wakeup (since v5.9 also the balancer) changed the CPU, and vruntime is relative (since v4.7; earlier
    /// kernels ignore it).
    pub migrated: bool,
    /// ENQUEUE_RESTORE / DEQUEUE_SAVE
    pub save_restore: bool,
    /// ENQUEUE_MOVE / DEQUEUE_MOVE (since v4.6)
    pub move_: bool,
    /// ENQUEUE_REPLENISH: a deadline task gets its next budget.
    pub replenish: bool,
    /// ENQUEUE_HEAD: ahead of the other tasks of its priority.
    pub head: bool,
    /// DEQUEUE_SLEEP
    pub sleep: bool,
    /// ENQUEUE_NOCLOCK / DEQUEUE_NOCLOCK: the caller has updated the clock (since v4.12).
    pub noclock: bool,
    /// ENQUEUE_INITIAL: a new task is enqueued for the first time (since v6.6).
    pub initial: bool,
    /// ENQUEUE_DELAYED / DEQUEUE_DELAYED: the task is still queued only because its dequeue was delayed (since v6.12).
    pub delayed: bool,
    /// DEQUEUE_SPECIAL: the task sleeps in a state that tolerates no spurious wakeup, so the dequeue must not be delayed (since
    /// v6.12).
    pub special: bool,
    /// DEQUEUE_THROTTLE: the task leaves because its queue is throttled (since v6.18).
    pub throttle: bool,
}

/// sched.h: struct load_weight. `weight` in units of NICE_0_LOAD / 1024 as the version scales it; `inv_weight` is
/// 2^32 / weight, 0 when not yet computed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LoadWeight {
    pub weight: u64,
    pub inv_weight: u32,
}

/// sched.h: struct sched_entity. Times in nanoseconds, `vruntime` in nanoseconds of nice-0 time, wrapping.
///
/// Field order: what each walk over an entity's levels reads lies in the first cache line of the host, the averages in the next
/// two.
#[derive(Clone, Debug, Default)]
#[repr(C, align(64))]
pub struct SchedEntity {
    pub cfs_rq: CfsRqId,
    pub depth: u16,
    pub on_rq: bool,
    /// Whether the entity is in the timeline. The running entity is on the queue, but not in the timeline.
    pub in_timeline: bool,
    pub my_q: Option<CfsRqId>,
    pub parent: Option<SeId>,
    /// The task this entity schedules; `None` for a group's.
    pub task: Option<TaskId>,
    /// The entity has gone to sleep, but stays queued until its lag is made up for (v6.12: DELAY_DEQUEUE).
    pub sched_delayed: bool,
    /// `deadline` is relative to `vruntime` until the entity is queued again (v6.8: PLACE_REL_DEADLINE).
    pub rel_deadline: bool,
    /// The slice was set for this entity; the tunable does not apply (v6.12).
    pub custom_slice: bool,
    /// [`Layout::first_of_se`](crate::layout::Layout::first_of_se).
    pub first_line: u32,
    pub vruntime: u64,
    pub exec_start: u64,
    pub sum_exec_runtime: u64,
    pub load: LoadWeight,
    /// For a group's entity, the weight of what is runnable below it (v4.15), or how many tasks are
    /// ([`Pelt::RunnableAvg`](crate::pelt::Pelt::RunnableAvg)).
    pub runnable_weight: u64,
    pub avg: SchedAvg,
    pub prev_sum_exec_runtime: u64,
    pub nr_migrations: u32,
    /// Run time that the entity asks for at once, in ns (v6.6): at most a second through the tunable, 100 ms through
    /// sched_setattr().
    pub slice: u32,
    /// When the entity should have received its slice, in virtual time of its queue (v6.6).
    pub deadline: u64,
    /// Lag: how far the queue's virtual time was ahead when the entity left it, or when its dequeue was delayed, in ns (v6.6).
    /// While the entity runs, this is the deadline with which it was picked, where that deadline protects it
    /// ([`SliceProtection::Deadline`](crate::fair::rules::SliceProtection)); in v6.18, what `vprot` is in others.
    pub vlag: i64,
    /// The vruntime up to which the entity is protected from preemption while it runs (v7.2).
    pub vprot: u64,
    /// A task's weight among all tasks of its CPU, where they compete on the root queue (v7.3).
    pub h_load: LoadWeight,
}

/// sched.h: struct sched_statistics. Times in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SchedStatistics {
    pub wait_start: u64,
    pub wait_max: u64,
    pub wait_count: u64,
    pub wait_sum: u64,
    pub iowait_count: u64,
    pub iowait_sum: u64,
    pub sleep_start: u64,
    pub sleep_max: u64,
    pub sum_sleep_runtime: u64,
    /// The uninterruptible part of `sum_sleep_runtime` (shown since v5.16).
    pub sum_block_runtime: u64,
    pub block_start: u64,
    pub block_max: u64,
    pub exec_max: u64,
    pub slice_max: u64,
    pub nr_migrations_cold: u64,
    pub nr_failed_migrations_affine: u64,
    pub nr_failed_migrations_running: u64,
    pub nr_failed_migrations_hot: u64,
    pub nr_forced_migrations: u64,
    pub nr_wakeups: u64,
    pub nr_wakeups_sync: u64,
    pub nr_wakeups_migrate: u64,
    pub nr_wakeups_local: u64,
    pub nr_wakeups_remote: u64,
    pub nr_wakeups_affine: u64,
    pub nr_wakeups_affine_attempts: u64,
    pub nr_wakeups_passive: u64,
    pub nr_wakeups_idle: u64,
}

/// sched.h: struct sched_info. Always kept (`/proc/PID/schedstat`), schedstats on or off.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SchedInfo {
    pub pcount: u64,
    pub run_delay: u64,
    pub last_arrival: u64,
    pub last_queued: u64,
}

/// sched.h: struct task_struct, the part read on every wakeup and switch: two cache lines of the host. Rarer fields are in
/// [`TaskCold`].
#[derive(Clone, Debug, Default)]
#[repr(align(64))]
pub struct TaskStruct {
    pub se: SeId,
    pub cpu: CpuId,
    pub wake_cpu: CpuId,
    /// select_idle_sibling()'s hint (v4.16).
    pub recent_used_cpu: CpuId,
    pub state: TaskState,
    pub on_rq: OnRq,
    pub on_cpu: bool,
    /// How `psi` counts the task.
    pub(crate) psi_flags: u8,
    /// When its CPU had finished switching away from the task (`on_cpu = 0`), in ns of that CPU's clock.
    pub off_cpu_at: u64,
    pub policy: Policy,
    pub sched_class: SchedClass,
    pub sched_contributes_to_load: bool,
    pub sched_remote_wakeup: bool,
    pub in_iowait: bool,
    /// PF_EXITING: the task has begun to exit.
    pub exiting: bool,
    /// False until the slot is given to a task, and again after that task is gone.
    pub alive: bool,
    pub static_prio: i32,
    pub prio: i32,
    /// 1..=99 under SCHED_FIFO and SCHED_RR; otherwise 0.
    pub rt_priority: u8,
    pub nr_cpus_allowed: u16,
    /// Shared by tasks that may run on the same CPUs: one mask stays in the host's cache, a mask per task would not.
    pub cpus_allowed: Arc<CpuMask>,
    /// Address space; tasks of one process share it. 0 = none (kernel thread).
    pub mm: u32,
    pub sched_task_group: TgId,
    pub wakee_flips: u32,
    pub last_wakee: Link,
    /// Jiffies.
    pub wakee_flip_decay_ts: u64,
    /// Neighbours on `rq.cfs_tasks`.
    pub group_node: Links,
    pub sched_info: SchedInfo,
    pub nvcsw: u64,
    pub nivcsw: u64,
}

// Room only for what each wakeup and switch needs.
const _: () = assert!(size_of::<TaskStruct>() == 128);

/// The rest of struct task_struct: what names, rarer system calls and reports read.
#[derive(Clone, Debug, Default)]
pub struct TaskCold {
    /// Capacity of the biggest CPU that the task may run on.
    pub max_allowed_capacity: u64,
    /// For a kernel thread whose CPU is down: the CPU to which it will be bound again.
    pub bound_to: Option<CpuId>,
    pub sched_reset_on_fork: bool,
    pub pid: u32,
    pub comm: String,
    /// The cgroup that the task is a member of (`task_css()`); `sched_task_group` may be its session's group instead.
    pub css: TgId,
    /// Its session's group, if it is not init's session (`signal->autogroup`).
    pub autogroup: Option<u32>,
    /// PF_EXITING
    pub exiting: bool,
    /// The task is to leave a throttled queue on its way to user mode (v6.18).
    pub(crate) sched_throttle_work: bool,
    /// The task has left a throttled queue and waits for the queue's runtime; `on_rq` is unchanged (v6.18).
    pub(crate) throttled: bool,
    /// The CPU that counts the task as waiting for a device, in kernels that count it until it runs.
    pub iowait_cpu: CpuId,
    /// The first of the tasks that wait for a lock which this one holds and lend it their priority (rt_mutex).
    pub pi_top_task: Option<TaskId>,
    pub statistics: SchedStatistics,
    /// Where the task sleeps or last slept; kept only while something reads it (`keeps_wait_channels`).
    pub wchan: WaitChannel,
    /// Its own sleeps, by place.
    pub latency_record: Vec<LatencyRecord>,
    /// Utilization clamps, as requested.
    pub uclamp_req: Clamps,
    /// Effective utilization clamps, while the task is queued.
    pub uclamp: Clamps,
}

/// sched.h: struct cfs_rq.
///
/// Field order: first what each walk over the levels reads, then the averages.
#[derive(Clone, Debug, Default)]
#[repr(C, align(64))]
pub struct CfsRq {
    /// The CPU this queue belongs to.
    pub rq: CpuId,
    /// The queue of an idle group (v5.15).
    pub idle: bool,
    pub on_list: bool,
    /// Whether any of `next`, `last`, `skip` is set.
    pub buddies: bool,
    /// Load-avg propagation up the hierarchy (v4.10 flag `propagate_avg`; v4.15 `propagate` and `prop_runnable_sum`).
    pub propagate: bool,
    /// False for the root queue of a CPU.
    pub of_group: bool,
    /// How often weights are halved when the average vruntime is summed up (v7.2: PARANOID_AVG).
    pub sum_shift: u8,
    /// The clock of its load averages stands still. Until v6.17 that is while `throttle_count` is not 0.
    pub pelt_clock_throttled: bool,
    pub tg: TgId,
    pub nr_running: u32,
    #[doc(alias = "h_nr_queued")]
    pub h_nr_running: u32,
    #[doc(alias = "h_curr")]
    pub curr: Option<SeId>,
    /// [`Layout::first_of_cfs_rq`](crate::layout::Layout::first_of_cfs_rq).
    pub first_byte: u32,
    pub load: LoadWeight,
    /// Sum of the `runnable_weight` of all queued entities (v4.15).
    pub runnable_weight: u64,
    pub min_vruntime: u64,
    pub tasks_timeline: crate::fair::timeline::Timeline,
    /// How many of this queue and those above it are throttled. Its clock stands still while any is (v6.18: and while nothing is
    /// queued).
    pub throttle_count: i32,
    /// How many of `h_nr_running` are [`SchedEntity::sched_delayed`] (v6.12).
    pub h_nr_delayed: u32,
    /// How many of `h_nr_running` are SCHED_IDLE (v5.4), or in an idle group below this queue (v5.15).
    pub idle_h_nr_running: u32,
    /// How many of the queue's own entities are idle: SCHED_IDLE tasks and idle groups (v5.16).
    pub idle_nr_running: u32,
    /// Total time that the clock of the load averages has stood still, in ns.
    #[doc(alias = "throttled_clock_task_time")]
    pub throttled_clock_pelt_time: u64,
    pub next: Option<SeId>,
    pub last: Option<SeId>,
    pub skip: Option<SeId>,
    /// `avg.runnable_avg` is the kernel's `runnable_load_avg`, which until v4.14 stood outside `avg`.
    pub avg: SchedAvg,
    pub removed: Removed,
    pub tg_load_avg_contrib: u64,
    pub prop_runnable_sum: i64,
    /// The CPU's clock when the queue last added its load to the group's (v6.7), in ns.
    pub last_update_tg_load_avg: u64,
    /// Where the clock of the load averages stood when it stopped, in ns.
    #[doc(alias = "throttled_clock_task")]
    pub throttled_clock_pelt: u64,
    /// `throttled_clock_pelt_time` when the queue was last seen empty (v6.0); `u64::MAX` while the clock stands still.
    pub throttled_pelt_idle: u64,
    pub exec_clock: u64,
    /// Sum of `weight * (vruntime - zero_vruntime)` over the waiting entities (v6.6).
    /// [`AverageWeights`](crate::fair::rules::AverageWeights) says which weights.
    #[doc(alias = "avg_vruntime")]
    pub sum_w_vruntime: i64,
    /// Sum of the same weights over the waiting entities (v6.6).
    #[doc(alias = "avg_load")]
    pub sum_weight: u64,
    /// A vruntime near the average, from which the sums count (v6.6 to v6.18: min_vruntime; 6.12.y follows v6.19).
    pub zero_vruntime: u64,
    pub h_load: u64,
    /// Jiffies.
    pub last_h_load_update: u64,
    pub h_load_next: Option<SeId>,
    pub nr_spread_over: u32,
    /// On a root queue where all tasks of the CPU compete (v7.3), the one that runs; `curr` is its entity on this level. The kernel's
    /// names are `curr` and `h_curr`.
    pub flat_curr: Option<SeId>,
    /// What the group's `runnable_avg` has of this queue (v7.3).
    pub tg_runnable_avg_contrib: u64,
    /// Neighbours on `rq.leaf_cfs_rq_list`.
    pub leaf_cfs_rq_list: Links,
}

/// sched.h: struct task_group. `cfs_rq` and `se` hold one id per CPU; the root group has no entities.
///
/// Field order: what the weights of a group's entities are computed from lies in one cache line of the host.
#[derive(Clone, Debug, Default)]
#[repr(C)]
pub struct TaskGroup {
    pub shares: u64,
    pub load_avg: u64,
    pub parent: Option<TgId>,
    pub cfs_rq: Vec<CfsRqId>,
    pub se: Vec<SeId>,
    pub children: Vec<TgId>,
    pub name: String,
    pub clamps: GroupClamps,
    /// `cpu.idle` (v5.15).
    pub idle: bool,
    pub cfs_bandwidth: CfsBandwidth,
    pub ticks: GroupTicks,
    /// Run time of its tasks of the real-time classes, including those of the groups below, in ns.
    pub unfair_runtime: u64,
    /// Sum of its queues' averages of runnable tasks, in 1024ths (v7.3).
    pub runnable_avg: u64,
}

/// What the idle task of a CPU remembers as a waker: `current` is the idle task when an interrupt wakes a task on an idle CPU.
/// The fields mean what they mean in [`TaskStruct`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct IdleTask {
    /// Since when the idle task runs, in ns of the queue's `clock_task`; kept where a deadline server needs it (v6.12).
    pub exec_start: u64,
    pub wakee_flips: u32,
    pub last_wakee: Link,
    /// Jiffies.
    pub wakee_flip_decay_ts: u64,
}

/// Number of `cpu_load[]` averages (until v5.3: the load-index rework).
pub const CPU_LOAD_IDX_MAX: usize = 5;

/// sched.h: struct rq. `curr == None` is the idle task.
///
/// Field order: what each switch and wakeup touches lies in the first two cache lines of the host.
#[derive(Clone, Debug, Default)]
#[repr(C, align(64))]
pub struct Rq {
    pub curr: Option<TaskId>,
    pub cpu: CpuId,
    /// TIF_NEED_RESCHED of whatever runs here.
    pub need_resched: bool,
    /// TIF_NEED_RESCHED_LAZY of the task that runs here (v6.13).
    pub need_resched_lazy: bool,
    /// TIF_POLLING_NRFLAG of the idle task: it polls its flags word and needs no interrupt.
    pub polling: bool,
    pub clock_skip_update: ClockSkip,
    pub hotplug: HotplugState,
    pub balance_callback: BalanceCallbacks,
    /// tick-sched.c: `ts->tick_stopped`. The CPU has no tick: it idles, or runs a single task (nohz_full=).
    pub tick_stopped: bool,
    pub nr_running: u32,
    /// The root fair queue.
    pub cfs: CfsRqId,
    pub clock: u64,
    pub clock_task: u64,
    /// Time of interrupts and of the hypervisor that `clock_task` has excluded so far, in ns.
    pub prev_irq_time: u64,
    pub nr_switches: u64,
    pub idle_stamp: u64,
    pub avg_idle: u64,
    pub max_idle_balance_cost: u64,
    pub load: LoadWeight,
    pub cfs_tasks: ListHead,
    pub rd: RdId,
    pub sd: Option<SdId>,
    /// The stopper task (`migration/N`), which is queued while it has work.
    pub stop: Option<TaskId>,
    pub stop_queued: bool,
    pub clock_pelt: ClockPelt,
    pub cpu_load: [u64; CPU_LOAD_IDX_MAX],
    /// Jiffies.
    pub last_load_update_tick: u64,
    /// Until v5.2.
    pub nr_load_updates: u64,
    pub leaf_cfs_rq_list: ListHead,
    /// v4.15: where the next child queue is inserted (`tmp_alone_branch`); `None` is the head of the list.
    pub tmp_alone_branch: Option<CfsRqId>,
    pub nr_uninterruptible: i64,
    /// Jiffies.
    pub next_balance: u64,
    pub cpu_capacity: u64,
    pub cpu_capacity_orig: u64,
    /// Load of the running task if the task is too big for this CPU, else 0 (v4.20).
    pub misfit_task_load: u64,
    pub idle_balance: bool,
    pub active_balance: bool,
    pub push_cpu: CpuId,
    /// Time of other classes and of interrupts, in ns times 1024, halved every period (until v4.18).
    pub rt_avg: u64,
    pub age_stamp: u64,
    /// The same, as PELT averages (v4.19).
    pub avg_rt: SchedAvg,
    pub avg_dl: SchedAvg,
    pub avg_irq: SchedAvg,
    /// Whether sleeping tasks or other classes still have load here (v4.17). Cleared once that load is found to have decayed.
    pub has_blocked_load: bool,
    /// Jiffies.
    pub last_blocked_load_update_tick: u64,
    /// `rq->idle_state->exit_latency`, in microseconds: how long the CPU takes to leave its idle state. `None` while it is in no
    /// idle state (`idle_state` is null).
    pub idle_exit_latency: Option<u32>,
    /// The idle task's own bookkeeping as a waker.
    pub idle: IdleTask,
    /// The part of the idle time that searches for an idle CPU may still spend, in ns (SIS_PROP, v5.14 to v6.4).
    pub wake_avg_idle: u64,
    /// When `wake_avg_idle` was renewed or last halved, in jiffies.
    pub wake_stamp: u64,
    pub nr_iowait: u32,
    /// Wakeups to be finished here, the oldest first. `ttwu_pending` (v5.8) is that this is not empty.
    pub wake_list: Vec<TaskId>,
    /// Whether the CPU is in `online` of its root domain.
    pub online: bool,
    // nohz
    /// Whether the CPU is in `nohz.idle_cpus_mask`: its tick is stopped, or was and no tick has found the CPU busy since.
    pub nohz_tick_stopped: bool,
    pub nohz_flags: NohzFlags,
    /// What the balancing softirq is to do on behalf of other CPUs (v5.8).
    pub nohz_idle_balance: NohzFlags,
    // schedstats
    pub rq_sched_info: SchedInfo,
    pub rq_cpu_time: u64,
    pub yld_count: u32,
    pub sched_count: u32,
    pub sched_goidle: u32,
    pub ttwu_count: u32,
    pub ttwu_local: u32,
}

/// sched.h: RQCF_REQ_SKIP, RQCF_ACT_SKIP.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ClockSkip {
    #[default]
    No,
    Requested,
    Active,
}

/// sched.h: MAX_RT_PRIO. Nice 0 is `DEFAULT_PRIO`; the idle task's priority is `MAX_PRIO`.
pub const MAX_DL_PRIO: i32 = 0;
pub const MAX_RT_PRIO: i32 = 100;
pub const DEFAULT_PRIO: i32 = 120;
pub const MAX_PRIO: i32 = 140;

impl Policy {
    /// kernel/sched/sched.h: fair_policy(), and idle_policy().
    #[doc(alias = "idle_policy")]
    #[inline]
    pub fn fair_policy(self) -> bool {
        matches!(self, Policy::Normal | Policy::Batch | Policy::Idle)
    }

    /// kernel/sched/sched.h: rt_policy(). Stoppers do not count: users cannot change them.
    #[inline]
    pub fn rt_policy(self) -> bool {
        matches!(self, Policy::Fifo | Policy::Rr)
    }

    /// include/linux/sched/rt.h: what rt_or_dl_task_policy(), formerly task_is_realtime(), checks of a task's policy.
    #[doc(alias = "task_is_realtime")]
    #[inline]
    pub fn rt_or_dl_policy(self) -> bool {
        self.rt_policy() || self == Policy::Deadline
    }
}
