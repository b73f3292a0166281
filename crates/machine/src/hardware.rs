//! The machine a scheduler runs on: each CPU's clock while it executes kernel code, what its accesses cost, the interrupts it
//! sends, its idle states, and the profile of it all.

mod energy;
mod frequency;
mod idle;
mod lines;
mod memory;
mod power_limit;
mod profile;
mod put_off;
mod smt;

pub use idle::Residency;
pub use put_off::PutOff;

use crate::disk::Disk;
use crate::energy::Meter;
use crate::frequency::Frequency;
use crate::idle::{IdleOptions, IdleRules, Packages};
use crate::java::Java;
use crate::lines::record::LineRecord;
use crate::lines::{Directory, Seat};
use crate::memory::MemoryLoad;
use crate::power_limit::PowerLimiter;
use crate::prices::{NR_PATHS, Prices};
use crate::profile::CallTree;
use crate::smt::{Siblings, SmtPrices, WorkKind};
use crate::topology::Topology;
use crate::warmth::Warmth;
use idle::{Cpuidles, Idling};
use sched::access::Path;
use sched::arch::Arch;
use sched::cpu_topology::SCHED_CAPACITY_SCALE;
use sched::layout::{Layout, Line};
use sched::sched::TaskId;
use sched::trace::{Context, Event, Ipi, Sink};
use units::{Capacity, CpuId, Cycles, Ns, Prng, Ps, Slots, prefetch_lines, unlikely};

/// Why a CPU was told something.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Notice {
    /// An interrupt by another CPU, or by itself.
    Ipi(Ipi),
    /// A store to the flags word it monitors.
    Monitor,
    /// The CPU's clock event device was set to another time: nothing arrives, but what the CPU waits for has changed.
    Timer,
    /// Nothing arrives either: [`Hardware::frequency_due`] has changed.
    Frequency,
}

/// One message between CPUs, and when it arrives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Message {
    pub at: Ps,
    pub to: CpuId,
    pub notice: Notice,
    /// How many requests the sender's path had put off before it sent this: their stalls delay the message.
    pub after: usize,
}

struct Cpu {
    /// Where the last path ended. While the CPU executes a path, [`Executing::clock`] is its clock.
    clock: Ps,
    ps_per_cycle: u64,
    /// The same while no other thread of its core is active.
    alone: u64,
    /// And while one other is, by the kind of that one's work.
    paired: [u64; 2],
    /// What kind of work it does in user mode, whether that work fetches lines from beyond the core's caches, and how
    /// much longer a cycle takes because of it.
    kind: WorkKind,
    demands: bool,
    longer: Ps,
    /// Not in an idle state: it takes its share of the core.
    active: bool,
    idling: Idling,
    /// Time spent in interrupts and softirqs, where that is accounted apart.
    irq_time: Ps,
    /// What the scheduler leaves to chance on this CPU.
    sched_rng: Prng,
}

/// The CPU that executes kernel code now, with what every charge to it needs to know.
struct Executing {
    cpu: CpuId,
    seat: Seat,
    clock: Ps,
    ps_per_cycle: u64,
}

/// A simulated machine. With `COSTS` false the cost model is off: nothing takes time but what programs ask for.
pub struct Hardware<const COSTS: bool> {
    /// Its clock is what every CPU's `sched_clock` shows.
    executing: Executing,
    profile: Option<Box<CallTree>>,
    lines: Directory,
    /// Who touches which line; `None` unless somebody wants to know.
    touched: Option<Box<LineRecord>>,
    /// Straight-line work of each path, by number.
    paths: [Cycles; NR_PATHS],
    pub topology: Topology,
    pub prices: Prices,
    /// What lies below a file system; `None` unless the machine file describes a disk. It takes its time even with the
    /// cost model off.
    pub disk: Option<Disk>,
    /// What a Java server's work takes; the same holds for it.
    pub java: Option<Java>,
    cpus: Slots<Cpu>,
    cpuidles: Cpuidles,
    packages: Packages,
    /// [`Prices::flushing_from`].
    flushing_from: usize,
    /// CONFIG_IRQ_TIME_ACCOUNTING.
    irq_accounting: bool,
    warmth: Warmth,
    /// `None` until a task declares what it asks of memory.
    memory_load: Option<Box<MemoryLoad>>,
    siblings: Siblings,
    /// Whether the threads of a core slow each other down.
    threads_share: bool,
    layout: Layout,
    outbox: Vec<Message>,
    /// What the current path leaves to be done when simulated time reaches it.
    put_off: Vec<PutOff>,
    sink: Option<Box<dyn Sink>>,
    /// Whether the sink hears bare tracepoints too.
    bare_tracepoints: bool,
    /// `None`: one frequency for the whole run.
    frequency: Option<Box<Frequency>>,
    /// The time of [`Hardware::frequency_due`] that the run loop knows.
    frequency_told: Ps,
    /// `None`: the machine file does not say what this machine draws.
    meter: Option<Box<Meter>>,
    /// `None`: nothing limits its power.
    power_limiter: Option<Box<PowerLimiter>>,
}

impl<const COSTS: bool> Hardware<COSTS> {
    /// `seed` decides what a real machine leaves to chance: the slice of the last level cache in which each line lies,
    /// and the scheduler's own random numbers.
    pub fn new(topology: Topology, prices: Prices, layout: Layout, rules: IdleRules, seed: u64) -> Hardware<COSTS> {
        let cpuidles = Cpuidles::new(&topology, &prices, rules, &IdleOptions::default());
        let cpus = topology
            .cpus()
            .map(|(cpu, _)| Cpu {
                sched_rng: Prng::stream(seed, "sched_rng", cpu.index() as u64),
                clock: Ps::ZERO,
                ps_per_cycle: prices.ps_per_cycle_at(topology.cpu(cpu).speed),
                alone: prices.ps_per_cycle_at(topology.cpu(cpu).speed),
                paired: smt::paired(&prices.smt, WorkKind::Compute, prices.ps_per_cycle_at(topology.cpu(cpu).speed)),
                kind: WorkKind::Compute,
                demands: false,
                longer: Ps::ZERO,
                active: false,
                idling: Idling::new(cpuidles.of(cpu)),
                irq_time: Ps::ZERO,
            })
            .collect();
        let lines = Directory::new(&topology, prices.lines.clone(), seed);
        let first = CpuId(0);
        let ps_per_cycle = prices.ps_per_cycle_at(topology.cpu(first).speed);
        let executing = Executing { cpu: first, seat: lines.seat(first), clock: Ps::ZERO, ps_per_cycle };
        Hardware {
            executing,
            lines,
            touched: None,
            paths: std::array::from_fn(|number| prices.path(Path(number as u16))),
            warmth: Warmth::new(&topology),
            memory_load: None,
            siblings: Siblings::new(&topology),
            threads_share: COSTS && prices.smt != SmtPrices::free(),
            cpus,
            cpuidles,
            packages: Packages::new(&topology, &prices),
            flushing_from: prices.flushing_from(),
            irq_accounting: false,
            layout,
            outbox: Vec::new(),
            put_off: Vec::new(),
            profile: None,
            sink: None,
            bare_tracepoints: false,
            frequency: None,
            frequency_told: Ps::NEVER,
            meter: None,
            power_limiter: None,
            topology,
            prices,
            disk: None,
            java: None,
        }
    }

    pub fn set_sink(&mut self, sink: Box<dyn Sink>) {
        self.sink = Some(sink);
    }

    /// From now on the sink hears bare tracepoints as well.
    pub fn trace_bare(&mut self) {
        self.bare_tracepoints = true;
    }

    pub fn take_sink(&mut self) -> Option<Box<dyn Sink>> {
        self.bare_tracepoints = false;
        self.sink.take()
    }

    /// Books time into a profile from `now` on.
    pub fn start_profile(&mut self, now: Ps) {
        self.profile = Some(Box::new(CallTree::new(self.cpus.len(), now)));
    }

    pub fn profile(&self) -> Option<&CallTree> {
        self.profile.as_deref()
    }

    /// From now on the time of interrupts is accounted apart.
    pub fn set_irq_accounting(&mut self) {
        self.irq_accounting = true;
    }

    #[inline]
    pub fn accounts_irq_time(&self) -> bool {
        self.irq_accounting
    }

    /// cputime.c: irqtime_account_irq(): `cpu` was in an interrupt, or in softirqs at its end, for so long.
    pub fn account_irq_time(&mut self, cpu: CpuId, time: Ps) {
        self.cpus[cpu.index()].irq_time += time;
    }

    // The clock of the CPU that executes.

    /// `cpu` begins to execute kernel code at `now`. All charges up to the next call are charged to it.
    #[inline]
    pub fn begin(&mut self, cpu: CpuId, now: Ps) {
        let executing = &mut self.executing;
        if executing.cpu != cpu {
            self.cpus[executing.cpu.index()].clock = executing.clock;
            if COSTS {
                executing.seat = self.lines.seat(cpu);
                executing.ps_per_cycle = self.cpus[cpu.index()].ps_per_cycle;
            }
        }
        executing.cpu = cpu;
        executing.clock = now;
    }

    /// Where `cpu`'s clock stands: at the end of what it executed last.
    #[inline]
    pub fn now(&self, cpu: CpuId) -> Ps {
        if unlikely(cpu != self.executing.cpu) { self.cpus[cpu.index()].clock } else { self.executing.clock }
    }

    /// How long a function's straight-line work takes the CPU that executes.
    #[inline(always)]
    fn work_of(&self, path: Path) -> Ps {
        Ps(self.paths[path.0 as usize].0 * self.executing.ps_per_cycle)
    }

    /// Charges time to the CPU that executes.
    #[inline(always)]
    fn charge(&mut self, time: Ps) {
        if COSTS {
            self.executing.clock += time;
            if unlikely(self.profile.is_some()) {
                self.book(time);
            }
        }
    }

    /// Picoseconds that one cycle of work takes `cpu` now.
    #[inline]
    pub fn ps_per_cycle(&self, cpu: CpuId) -> u64 {
        self.cpus[cpu.index()].ps_per_cycle
    }

    /// Messages that have been sent and not yet taken from here.
    #[inline]
    pub fn outbox(&mut self) -> &mut Vec<Message> {
        &mut self.outbox
    }
}

impl<const COSTS: bool> Arch for Hardware<COSTS> {
    const CHARGES: bool = COSTS;

    #[inline]
    fn sched_clock(&self, _cpu: CpuId) -> Ns {
        // Every clock of the machine is synchronised, so the executing CPU's clock is everybody's.
        self.executing.clock.ns()
    }

    #[inline]
    fn irq_time(&self, cpu: CpuId) -> Ns {
        if unlikely(self.irq_accounting) { self.cpus[cpu.index()].irq_time.ns() } else { Ns(0) }
    }

    #[inline]
    fn arch_scale_freq_capacity(&self, cpu: CpuId) -> Capacity {
        self.frequency.as_ref().map_or(SCHED_CAPACITY_SCALE, |frequency| frequency.scale(cpu))
    }

    fn scales_frequency(&self) -> bool {
        self.frequency.is_some()
    }

    fn driver_tells_frequency(&self) -> bool {
        self.frequency.as_ref().is_some_and(|frequency| frequency.driver_tells())
    }

    fn arch_scale_freq_tick(&mut self, cpu: CpuId) {
        let now = self.now(cpu);
        if let Some(frequency) = &mut self.frequency {
            frequency.scale_freq_tick(cpu, now);
        }
    }

    fn cpufreq_update_util(&mut self, by: CpuId, cpu: CpuId, time: Ns, iowait: bool) -> Option<u16> {
        self.update_util(by, cpu, time, iowait)
    }

    fn cpufreq_driver_resolve_freq(&self, cpu: CpuId, khz: u32) -> u32 {
        self.frequency.as_ref().map_or(khz, |frequency| frequency.resolve(cpu, khz))
    }

    fn cpufreq_driver_fast_switch(&mut self, by: CpuId, cpu: CpuId, khz: u32) -> u32 {
        self.fast_switch(by, cpu, khz)
    }

    fn cpufreq_driver_target(&mut self, by: CpuId, cpu: CpuId, khz: u32) -> (u32, Ns) {
        self.driver_target(by, cpu, khz)
    }

    fn policy_cpus(&self, policy: u16) -> &[CpuId] {
        self.frequency.as_ref().map_or(&[], |frequency| frequency.policy_cpus(policy.into()))
    }

    fn dbs_work_handler(&mut self, by: CpuId, policy: u16, iowait: &[CpuId]) -> Ns {
        self.sample(by, policy, iowait)
    }

    fn dbs_work_done(&mut self, by: CpuId, policy: u16) {
        self.sampled(by, policy);
    }

    fn cpufreq_driver_adjust_perf(&mut self, by: CpuId, cpu: CpuId, min_perf: u64, target_perf: u64, capacity: u64) {
        self.adjust_perf(by, cpu, (min_perf, target_perf, capacity));
    }

    fn bring_up(&mut self, cpu: CpuId) {
        self.begin(cpu, self.now(cpu));
    }

    fn sched_rng(&mut self, cpu: CpuId) -> u32 {
        (self.cpus[cpu.index()].sched_rng.next_u64() >> 32) as u32
    }

    fn send_ipi(&mut self, from: CpuId, to: CpuId, ipi: Ipi) {
        let work = Ps(self.prices.ipi_send.0 * self.ps_per_cycle(from));
        self.charge(work);
        let way = if COSTS { self.prices.ipi_delivery(self.topology.distance(from, to)) } else { Ps::ZERO };
        let at = self.now(from) + way;
        self.send(at, to, Notice::Ipi(ipi));
    }

    fn clockevents_program_event(&mut self, by: CpuId, cpu: CpuId) {
        self.send(self.now(by), cpu, Notice::Timer);
    }

    fn wake_polling_idle(&mut self, from: CpuId, to: CpuId) {
        let way = match COSTS {
            true => self.prices.lines.transfer[self.topology.distance(from, to).index()],
            false => Ps::ZERO,
        };
        // The watcher fetches the line back: the next store to it is a transfer again.
        if COSTS {
            self.fetch_back(to, self.layout.idle_thread_info(to));
        }
        self.send(self.now(from) + way, to, Notice::Monitor);
    }

    #[inline(always)]
    fn foresee_task(&self, task: TaskId) {
        self.warmth.foresee(task.index());
    }

    #[inline(always)]
    fn foresee_cpu(&self, cpu: CpuId) {
        prefetch_lines::<1, _>(&self.cpus[cpu.index()]);
        if COSTS {
            self.lines.foresee_seat(cpu);
        }
    }

    #[inline(always)]
    fn foresee_lines<const LINES: usize>(&self, first: Line) {
        if COSTS {
            self.lines.foresee::<LINES>(first);
        }
    }

    #[inline(always)]
    fn read(&mut self, by: CpuId, line: Line) {
        if COSTS {
            debug_assert_eq!(by, self.executing.cpu, "only the CPU that executes is charged");
            if !self.lines.reads_here(&self.executing.seat, line) {
                self.read_line(line);
            }
        }
    }

    /// The same as reading the lines one by one, but what does not change in between is looked up once.
    #[inline]
    fn look(&mut self, by: CpuId, paths: [Path; 2], lines: impl Iterator<Item = Line>) {
        if !COSTS {
            return;
        }
        if unlikely(self.profile.is_some()) {
            return lines.for_each(|line| {
                paths.into_iter().for_each(|path| self.path(by, path));
                self.read(by, line);
            });
        }
        debug_assert_eq!(by, self.executing.cpu, "only the CPU that executes is charged");
        let seat = self.executing.seat;
        let work = self.work_of(paths[0]) + self.work_of(paths[1]);
        let mut clock = self.executing.clock;
        lines.for_each(|line| {
            clock += work;
            if !self.lines.reads_here(&seat, line) {
                clock = self.look_line(line, clock);
            }
        });
        self.executing.clock = clock;
    }

    #[inline(always)]
    fn write(&mut self, by: CpuId, line: Line) {
        if COSTS {
            debug_assert_eq!(by, self.executing.cpu, "only the CPU that executes is charged");
            if !self.lines.writes_here(&self.executing.seat, line, self.executing.clock) {
                self.write_line(line);
            }
        }
    }

    #[inline(always)]
    fn write_fetched(&mut self, by: CpuId, line: Line) {
        if COSTS {
            debug_assert_eq!(by, self.executing.cpu, "only the CPU that executes is charged");
            if !self.lines.writes_here(&self.executing.seat, line, self.executing.clock) {
                self.fetch_line(line);
            }
        }
    }

    #[inline(always)]
    fn atomic(&mut self, by: CpuId, line: Line) {
        if COSTS {
            debug_assert_eq!(by, self.executing.cpu, "only the CPU that executes is charged");
            if !self.lines.writes_here(&self.executing.seat, line, self.executing.clock) {
                self.atomic_line(line);
            }
        }
    }

    #[inline(always)]
    fn lock(&mut self, by: CpuId, line: Line) {
        if COSTS {
            debug_assert_eq!(by, self.executing.cpu, "only the CPU that executes is charged");
            if !self.lines.locks_here(&self.executing.seat, line, self.executing.clock) {
                self.lock_line(line);
            }
        }
    }

    #[inline(always)]
    fn unlock(&mut self, _by: CpuId, line: Line) {
        if COSTS {
            self.lines.unlock(line, self.executing.clock);
            if unlikely(self.has_put_off()) {
                self.put_off_unlock(line);
            }
        }
    }

    #[inline]
    fn copy(&mut self, _by: CpuId, bytes: u64) {
        if COSTS {
            self.warmth.copied(self.executing.seat.llc(), bytes);
            self.charge(Ps(bytes * self.prices.copy_ps_per_byte));
        }
    }

    #[inline(always)]
    fn fetch(&mut self, by: CpuId, from: CpuId, bytes: u64) {
        if COSTS {
            debug_assert_eq!(by, self.executing.cpu, "only the CPU that executes is charged");
            if let Some(line) = self.lines.way_between(from, by) {
                self.fetch_by(line, bytes);
            }
        }
    }

    #[inline(always)]
    fn enter(&mut self, by: CpuId, path: Path) {
        if COSTS {
            debug_assert_eq!(by, self.executing.cpu, "only the CPU that executes is charged");
            self.executing.clock += self.work_of(path);
            if unlikely(self.profile.is_some()) {
                self.enter_profile(path);
                self.book(self.work_of(path));
            }
        }
    }

    #[inline(always)]
    fn enter_unpaid(&mut self, _by: CpuId, path: Path) {
        if COSTS && unlikely(self.profile.is_some()) {
            self.enter_profile(path);
        }
    }

    #[inline(always)]
    fn leave(&mut self, _by: CpuId) {
        if COSTS && unlikely(self.profile.is_some()) {
            self.leave_profile();
        }
    }

    #[inline(always)]
    fn path(&mut self, by: CpuId, path: Path) {
        if COSTS {
            debug_assert_eq!(by, self.executing.cpu, "only the CPU that executes is charged");
            self.executing.clock += self.work_of(path);
            if unlikely(self.profile.is_some()) {
                self.enter_profile(path);
                self.book(self.work_of(path));
                self.leave_profile();
            }
        }
    }

    #[inline]
    fn tracing(&self) -> bool {
        unlikely(self.sink.is_some())
    }

    #[inline]
    fn tracing_bare(&self) -> bool {
        unlikely(self.bare_tracepoints)
    }

    fn new_task(&mut self, task: TaskId, pid: u32, comm: &str, prio: i32) {
        self.warmth.forget(task.index());
        if let Some(sink) = &mut self.sink {
            sink.task(task, pid, comm, prio);
        }
    }

    fn task_changed(&mut self, task: TaskId, pid: u32, comm: &str, prio: i32) {
        if let Some(sink) = &mut self.sink {
            sink.task(task, pid, comm, prio);
        }
    }

    fn task_gone(&mut self, task: TaskId) {
        if let Some(sink) = &mut self.sink {
            sink.task_gone(task);
        }
    }

    fn trace_context(&mut self, context: Context) {
        if let Some(sink) = &mut self.sink {
            sink.context(context);
        }
    }

    fn trace(&mut self, by: CpuId, event: &Event) {
        let now = self.now(by).ns();
        if let Some(sink) = &mut self.sink {
            sink.event(now, by, event);
        }
    }
}
