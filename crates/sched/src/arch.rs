//! The scheduler's one door outwards: time, interrupts to other CPUs, the price of what it touches, and tracepoints.

use crate::access::Path;
use crate::layout::Line;
use crate::sched::TaskId;
use crate::trace::{Context, Event, Ipi};
use units::{Capacity, CpuId, Ns};

/// What the scheduler needs from the machine it runs on. Every method that charges defaults to free, so that an
/// implementation without a cost model compiles to nothing.
///
/// `by` is the CPU that executes the code (the kernel's `smp_processor_id()`), which is often not the CPU whose run
/// queue is worked on.
pub trait Arch {
    /// Whether anything that is charged costs something. `false` spares the scheduler to find out which lines it touches.
    const CHARGES: bool = true;

    /// The clock of `cpu`, in nanoseconds since boot, including what the path running there has been charged so far.
    fn sched_clock(&self, cpu: CpuId) -> Ns;

    /// How fast `cpu` runs now, 1024 = as fast as it can for long. Capacity is apart from this.
    #[inline]
    fn arch_scale_freq_capacity(&self, _cpu: CpuId) -> Capacity {
        1024
    }

    /// Whether that ever changes while the kernel runs.
    #[inline]
    fn scales_frequency(&self) -> bool {
        true
    }

    /// sched.h: arch_scale_freq_tick(). The tick of `cpu`: what [`Arch::arch_scale_freq_capacity`] tells is brought up to date.
    #[inline]
    fn arch_scale_freq_tick(&mut self, _cpu: CpuId) {}

    /// A driver of cpufreq is told that the utilization of `cpu` may have changed; `iowait`: a task wakes there that waited for a
    /// device. `time` is the clock of that CPU's run queue. The policy, by its number, of whose governor `by` is to leave work to a
    /// kworker, by an interrupt to itself.
    #[inline]
    fn cpufreq_update_util(&mut self, _by: CpuId, _cpu: CpuId, _time: Ns, _iowait: bool) -> Option<u16> {
        None
    }

    /// cpufreq.c: cpufreq_driver_resolve_freq(). The frequency of the driver of `cpu`, within its limits, for `khz` or the next above.
    #[inline]
    fn cpufreq_driver_resolve_freq(&self, _cpu: CpuId, khz: u32) -> u32 {
        khz
    }

    /// cpufreq.c: cpufreq_driver_fast_switch(). The policy of `cpu` is to run at `khz`; the frequency that the driver asks for.
    #[inline]
    fn cpufreq_driver_fast_switch(&mut self, _by: CpuId, _cpu: CpuId, khz: u32) -> u32 {
        khz
    }

    /// cpufreq.c: __cpufreq_driver_target(), by a thread: the policy of `cpu` is to run at `khz` or the next above. What the driver asks
    /// for, and how long it waits for its hardware.
    #[inline]
    fn cpufreq_driver_target(&mut self, _by: CpuId, _cpu: CpuId, khz: u32) -> (u32, Ns) {
        (khz, Ns(0))
    }

    /// The CPUs of a policy, by its number.
    #[inline]
    fn policy_cpus(&self, _policy: u16) -> &[CpuId] {
        &[]
    }

    /// cpufreq_governor.c: dbs_work_handler(), by a kworker: a governor's sample of a policy, of whose CPUs these have tasks that wait for a
    /// device. How long the driver waits that it asks.
    #[inline]
    fn dbs_work_handler(&mut self, _by: CpuId, _policy: u16, _iowait: &[CpuId]) -> Ns {
        Ns(0)
    }

    /// The rest of it, when the driver is done.
    #[inline]
    fn dbs_work_done(&mut self, _by: CpuId, _policy: u16) {}

    /// cpufreq.c: cpufreq_driver_adjust_perf(). At least `min_perf` of `capacity`, and best `target_perf`.
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

    /// Time (ns since boot) that `cpu` has spent in interrupts, and not had from its hypervisor: `irq_time_read()` plus
    /// `paravirt_steal_clock()`. It is taken from `clock_task`.
    #[inline]
    fn irq_time(&self, _cpu: CpuId) -> Ns {
        Ns(0)
    }

    /// smp_send_reschedule(), arch_send_call_function_single_ipi(), arch_irq_work_raise(). It arrives later, in `scheduler_ipi`.
    fn send_ipi(&mut self, from: CpuId, to: CpuId, ipi: Ipi);

    /// Stores to the monitored flags word of an idle CPU that polls it (mwait): it leaves idle without an interrupt.
    fn wake_polling_idle(&mut self, from: CpuId, to: CpuId);

    /// The first of the scheduler's own timers on `cpu` is another than before: [`HrTimers::next_event`] says when that CPU is to be
    /// interrupted. A machine without a clock that interrupts needs not listen.
    ///
    /// [`HrTimers::next_event`]: crate::hrtimer::HrTimers::next_event
    #[inline]
    fn clockevents_program_event(&mut self, _by: CpuId, _cpu: CpuId) {}

    /// sched.h: sched_rng(). 32 random bits from `cpu`'s own generator (v6.19; in late releases of v6.1.y and v6.12.y). A
    /// machine without one has newly idle CPUs search always.
    fn sched_rng(&mut self, _cpu: CpuId) -> u32 {
        0
    }

    /// `cpu` comes up while the machine boots: what follows is executed by it, from where its clock stands.
    #[inline]
    fn bring_up(&mut self, _cpu: CpuId) {}

    /// A task is soon to be woken or to run: a machine may fetch what it keeps of it meanwhile.
    #[inline(always)]
    fn foresee_task(&self, _task: TaskId) {}

    /// So is a CPU to execute.
    #[inline(always)]
    fn foresee_cpu(&self, _cpu: CpuId) {}

    /// `LINES` lines from `first` on are soon to be touched.
    #[inline(always)]
    fn foresee_lines<const LINES: usize>(&self, _first: Line) {}

    /// One load from a cache line; its price depends on who holds the line, and how.
    #[inline]
    fn read(&mut self, _by: CpuId, _line: Line) {}

    /// Loads one after the other, each after the straight-line work of `path`: a search that finds nothing.
    #[inline]
    fn look(&mut self, by: CpuId, path: Path, lines: impl Iterator<Item = Line>) {
        for line in lines {
            self.path(by, path);
            self.read(by, line);
        }
    }

    /// One plain store to a cache line (the store buffer hides a part of a miss).
    #[inline]
    fn write(&mut self, _by: CpuId, _line: Line) {}

    /// The same of a line that another CPU mostly has: a machine may have that case in line.
    #[inline(always)]
    fn write_fetched(&mut self, by: CpuId, line: Line) {
        self.write(by, line);
    }

    /// One locked read-modify-write (`atomic_add`, `cmpxchg`): nothing of a miss is hidden, and writers queue up.
    #[inline]
    fn atomic(&mut self, _by: CpuId, _line: Line) {}

    /// Takes a spin lock: waits until whoever holds it lets go, then moves its line here.
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

    /// A kernel function begins: pays its straight-line price and stands on the profile's stack until `leave`.
    #[inline]
    fn enter(&mut self, _by: CpuId, _path: Path) {}

    #[inline]
    fn leave(&mut self, _by: CpuId) {}

    /// Both at once: a function with nothing below it.
    #[inline]
    fn path(&mut self, by: CpuId, path: Path) {
        self.enter(by, path);
        self.leave(by);
    }

    /// Whether anybody listens to tracepoints: building an event costs time that an untraced run must not pay.
    #[inline]
    fn tracing(&self) -> bool {
        false
    }

    /// Whether somebody listens to bare tracepoints as well, which pass more often than all others together.
    #[inline]
    fn tracing_bare(&self) -> bool {
        false
    }

    /// A task came to be: what names it in traces and profiles. `prio` is the kernel's (120 = nice 0).
    #[inline]
    fn new_task(&mut self, _task: TaskId, _pid: u32, _comm: &str, _prio: i32) {}

    /// Its name or priority changed.
    #[inline]
    fn task_changed(&mut self, _task: TaskId, _pid: u32, _comm: &str, _prio: i32) {}

    /// A task is gone; its id may be given to another.
    #[inline]
    fn task_gone(&mut self, _task: TaskId) {}

    /// A tracepoint is passed on `by`, at that CPU's clock.
    #[inline]
    fn trace(&mut self, _by: CpuId, _event: &Event) {}
    /// In what state `by` passes the event that follows.
    fn trace_context(&mut self, _context: Context) {}
}
