//! The scheduler's interface to the outside: time, interrupts to other CPUs, the cost of what it touches, and tracepoints.

use crate::access::Path;
use crate::layout::Line;
use crate::sched::TaskId;
use crate::trace::{Context, Event, Ipi};
use units::{Capacity, CpuId, Ns};

/// What the scheduler needs from the machine it runs on. Every method that charges a cost defaults to doing nothing, so an
/// implementation without a cost model compiles to nothing.
///
/// `by` is the CPU that executes the code (the kernel's `smp_processor_id()`), which is often not the CPU whose runqueue is
/// changed.
pub trait Arch {
    /// Whether charges cost anything. With `false` the scheduler does not compute which lines it touches.
    const CHARGES: bool = true;

    /// The clock of `cpu`, in nanoseconds since boot, including what the path that runs there has been charged so far.
    fn sched_clock(&self, cpu: CpuId) -> Ns;

    /// The current speed of `cpu`; 1024 is the highest that it can sustain. Independent of its capacity.
    #[inline]
    fn arch_scale_freq_capacity(&self, _cpu: CpuId) -> Capacity {
        1024
    }

    /// Whether that speed ever changes while the kernel runs.
    #[inline]
    fn scales_frequency(&self) -> bool {
        true
    }

    /// Whether the driver of cpufreq tells the architecture which clock it sets (arch_set_freq_scale(), drivers of ARM's).
    fn driver_tells_frequency(&self) -> bool {
        false
    }

    /// sched.h: arch_scale_freq_tick(). The tick of `cpu`: updates what [`Arch::arch_scale_freq_capacity`] returns.
    #[inline]
    fn arch_scale_freq_tick(&mut self, _cpu: CpuId) {}

    /// Tells a cpufreq driver that the utilization of `cpu` may have changed. `iowait`: a task wakes there that waited for a
    /// device. `time` is the clock of that CPU's runqueue. Returns the number of the policy whose governor has work for a
    /// kworker, which `by` is to queue through an interrupt to itself.
    #[inline]
    fn cpufreq_update_util(&mut self, _by: CpuId, _cpu: CpuId, _time: Ns, _iowait: bool) -> Option<u16> {
        None
    }

    /// cpufreq.c: cpufreq_driver_resolve_freq(). The frequency of the driver of `cpu`, within its limits, that is `khz` or
    /// the next above.
    #[inline]
    fn cpufreq_driver_resolve_freq(&self, _cpu: CpuId, khz: u32) -> u32 {
        khz
    }

    /// cpufreq.c: cpufreq_driver_fast_switch(). Makes the policy of `cpu` run at `khz`; returns the frequency that the
    /// driver requests.
    #[inline]
    fn cpufreq_driver_fast_switch(&mut self, _by: CpuId, _cpu: CpuId, khz: u32) -> u32 {
        khz
    }

    /// cpufreq.c: __cpufreq_driver_target(), called by a thread: makes the policy of `cpu` run at `khz` or the next
    /// frequency above. Returns what the driver requests, and how long it waits for its hardware.
    #[inline]
    fn cpufreq_driver_target(&mut self, _by: CpuId, _cpu: CpuId, khz: u32) -> (u32, Ns) {
        (khz, Ns(0))
    }

    /// The CPUs of a policy, by its number.
    #[inline]
    fn policy_cpus(&self, _policy: u16) -> &[CpuId] {
        &[]
    }

    /// cpufreq_governor.c: dbs_work_handler(), in a kworker: a governor samples a policy; tasks wait for a device on the
    /// CPUs in `_iowait`. Returns how long the driver waits for its hardware.
    #[inline]
    fn dbs_work_handler(&mut self, _by: CpuId, _policy: u16, _iowait: &[CpuId]) -> Ns {
        Ns(0)
    }

    /// The rest of dbs_work_handler(), after the driver is done.
    #[inline]
    fn dbs_work_done(&mut self, _by: CpuId, _policy: u16) {}

    /// cpufreq.c: cpufreq_driver_adjust_perf(). Requests at least `min_perf` of `capacity`, and ideally `target_perf`.
    #[inline]
    fn cpufreq_driver_adjust_perf(
        &mut self,
        _by: CpuId,
        _cpu: CpuId,
        _min_perf: u64,
        _target_perf: u64,
        _capacity: u64,
    ) {
    }

    /// Time (ns since boot) that `cpu` has spent in interrupts or lost to its hypervisor: `irq_time_read()` plus
    /// `paravirt_steal_clock()`. It is excluded from `clock_task`.
    #[inline]
    fn irq_time(&self, _cpu: CpuId) -> Ns {
        Ns(0)
    }

    /// smp_send_reschedule(), arch_send_call_function_single_ipi(), arch_irq_work_raise(). The interrupt arrives later, in
    /// `scheduler_ipi`.
    fn send_ipi(&mut self, from: CpuId, to: CpuId, ipi: Ipi);

    /// Stores to the monitored flags word of an idle CPU that polls it (mwait), which then leaves idle without an interrupt.
    fn wake_polling_idle(&mut self, from: CpuId, to: CpuId);

    /// The first of the scheduler's own timers on `cpu` has changed: [`HrTimers::next_event`] says when to interrupt that
    /// CPU. A machine without a timer interrupt can ignore this.
    ///
    /// [`HrTimers::next_event`]: crate::hrtimer::HrTimers::next_event
    #[inline]
    fn clockevents_program_event(&mut self, _by: CpuId, _cpu: CpuId) {}

    /// sched.h: sched_rng(). 32 random bits from `cpu`'s own generator (v6.19; also in late releases of v6.1.y and v6.12.y).
    /// On a machine without one, newly idle CPUs always search.
    fn sched_rng(&mut self, _cpu: CpuId) -> u32 {
        0
    }

    /// `cpu` comes up during the boot: it executes what follows, from its clock's current time on.
    #[inline]
    fn bring_up(&mut self, _cpu: CpuId) {}

    /// A task is about to be woken or to run: a machine may prefetch its own data about it.
    #[inline(always)]
    fn foresee_task(&self, _task: TaskId) {}

    /// The same for a CPU that is about to execute.
    #[inline(always)]
    fn foresee_cpu(&self, _cpu: CpuId) {}

    /// `LINES` lines, from `first` on, are about to be touched.
    #[inline(always)]
    fn foresee_lines<const LINES: usize>(&self, _first: Line) {}

    /// A load from a cache line; the cost depends on which CPU holds the line, and in which state.
    #[inline]
    fn read(&mut self, _by: CpuId, _line: Line) {}

    /// A series of loads, each after the straight-line work of `paths`: a search that finds nothing.
    #[inline]
    fn look(&mut self, by: CpuId, paths: [Path; 2], lines: impl Iterator<Item = Line>) {
        for line in lines {
            paths.into_iter().for_each(|path| self.path(by, path));
            self.read(by, line);
        }
    }

    /// A plain store to a cache line (the store buffer hides a part of a miss).
    #[inline]
    fn write(&mut self, _by: CpuId, _line: Line) {}

    /// The same for a line that is usually in another CPU's cache: a machine may inline that case.
    #[inline(always)]
    fn write_fetched(&mut self, by: CpuId, line: Line) {
        self.write(by, line);
    }

    /// A locked read-modify-write (`atomic_add`, `cmpxchg`): nothing of a miss is hidden, and writers queue up.
    #[inline]
    fn atomic(&mut self, _by: CpuId, _line: Line) {}

    /// Takes a spin lock: waits until the holder releases it, then moves its line here.
    #[inline]
    fn lock(&mut self, _by: CpuId, _line: Line) {}

    #[inline]
    fn unlock(&mut self, _by: CpuId, _line: Line) {}

    /// Copies `bytes` between user and kernel memory, both in this CPU's caches.
    #[inline]
    fn copy(&mut self, _by: CpuId, _bytes: u64) {}

    /// Reads `bytes` that `from` wrote last: a stream of lines from that CPU's caches.
    #[inline]
    fn fetch(&mut self, _by: CpuId, _from: CpuId, _bytes: u64) {}

    /// A kernel function begins: it pays its straight-line cost and is on the profile's stack until `leave`.
    #[inline]
    fn enter(&mut self, _by: CpuId, _path: Path) {}

    /// The same, but what it pays for it pays at another time.
    #[inline]
    fn enter_unpaid(&mut self, _by: CpuId, _path: Path) {}

    #[inline]
    fn leave(&mut self, _by: CpuId) {}

    /// Both at once, for a function that calls nothing.
    #[inline]
    fn path(&mut self, by: CpuId, path: Path) {
        self.enter(by, path);
        self.leave(by);
    }

    /// Whether anything listens to tracepoints: building an event costs time that an untraced run must not pay.
    #[inline]
    fn tracing(&self) -> bool {
        false
    }

    /// Whether anything listens to bare tracepoints as well, which fire more often than all others together.
    #[inline]
    fn tracing_bare(&self) -> bool {
        false
    }

    /// A task was created: its name and number for traces and profiles. `prio` is the kernel's (120 = nice 0).
    #[inline]
    fn new_task(&mut self, _task: TaskId, _pid: u32, _comm: &str, _prio: i32) {}

    /// A task's name or priority has changed.
    #[inline]
    fn task_changed(&mut self, _task: TaskId, _pid: u32, _comm: &str, _prio: i32) {}

    /// A task is gone; its id may be reused.
    #[inline]
    fn task_gone(&mut self, _task: TaskId) {}

    /// A tracepoint fires on `by`, at that CPU's clock.
    #[inline]
    fn trace(&mut self, _by: CpuId, _event: &Event) {}
    /// The context in which the next event fires on `by`.
    fn trace_context(&mut self, _context: Context) {}
}
