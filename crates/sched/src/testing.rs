//! The common setup of the scheduler's tests.

use crate::access::Path;
use crate::arch::Arch;
use crate::core::{Boot, Sched, TaskInit};
use crate::cpu_topology::CpuTopology;
use crate::cpufreq_schedutil::CpufreqPolicy;
use crate::layout::Line;
use crate::sched::{TaskId, TaskState, TgId};
use crate::scheduler::Scheduler;
use crate::sysctl::Sysctl;
use crate::trace::{Event, Ipi};
use crate::versions::Kernel;
use units::{Capacity, CpuId, Ns};

pub(crate) const MS: u64 = 1_000_000;

/// A machine that tests control by hand, on which everything is free and recorded. All tests of this crate share it, because
/// each machine of its own would be another scheduler to compile.
#[derive(Default)]
pub(crate) struct Hand {
    /// The time of all CPUs, in ns, which stands still until a test moves it ...
    pub now: u64,
    /// ... or which each load advances by this.
    pub ns_per_read: u64,
    /// The speed of each CPU, 1024 = full; CPUs not listed run at full speed.
    pub freq: Vec<Capacity>,
    /// Whether the driver of cpufreq tells the speeds.
    pub driver_tells: bool,
    /// The time in interrupts of each CPU, in ns; 0 for CPUs not listed.
    pub irq_time: Vec<u64>,
    /// The frequency range of a cpufreq driver, in kHz; any frequency if there is none.
    pub khz: Option<(u32, u32)>,
    /// The requested frequencies, in MHz.
    pub mhz: Vec<u32>,
    /// Reschedule interrupts: from, to.
    pub interrupts: Vec<(CpuId, CpuId)>,
    /// Stores to the flags of polling idle CPUs, which interrupt nothing: from, to.
    pub polled: Vec<(CpuId, CpuId)>,
    /// Lines that were loaded, lines that were stored to, and all of these with the lines of atomic operations, in the order
    /// of time.
    pub loaded: Vec<Line>,
    pub stored: Vec<Line>,
    pub touched: Vec<Line>,
    /// The lines of locks that were taken.
    pub locked: Vec<Line>,
    /// Functions that were entered.
    pub paths: Vec<Path>,
    /// Whether tracepoints have a listener, and what it received.
    pub tracing: bool,
    pub events: Vec<Event>,
}

impl Hand {
    /// A machine at that time since boot, in ns.
    pub fn at(now: u64) -> Hand {
        Hand { now, ..Hand::default() }
    }

    /// Wakeups, in the order in which they were finished: task and CPU.
    pub fn woken(&self) -> Vec<(TaskId, CpuId)> {
        let woken = |event: &Event| match event {
            Event::SchedWakeup { task, target_cpu } => Some((*task, *target_cpu)),
            _ => None,
        };
        self.events.iter().filter_map(woken).collect()
    }
}

impl Arch for Hand {
    fn sched_clock(&self, _cpu: CpuId) -> Ns {
        Ns(self.now)
    }

    fn driver_tells_frequency(&self) -> bool {
        self.driver_tells
    }

    fn arch_scale_freq_capacity(&self, cpu: CpuId) -> Capacity {
        self.freq.get(cpu.index()).copied().unwrap_or(1024)
    }

    fn irq_time(&self, cpu: CpuId) -> Ns {
        Ns(self.irq_time.get(cpu.index()).copied().unwrap_or(0))
    }

    fn cpufreq_driver_resolve_freq(&self, _cpu: CpuId, khz: u32) -> u32 {
        self.khz.map_or(khz, |(min, max)| khz.clamp(min, max))
    }

    fn cpufreq_driver_fast_switch(&mut self, _by: CpuId, _cpu: CpuId, khz: u32) -> u32 {
        self.mhz.push(khz / 1_000);
        khz
    }

    fn send_ipi(&mut self, from: CpuId, to: CpuId, _ipi: Ipi) {
        self.interrupts.push((from, to));
    }

    fn wake_polling_idle(&mut self, from: CpuId, to: CpuId) {
        self.polled.push((from, to));
    }

    fn read(&mut self, _by: CpuId, line: Line) {
        self.now += self.ns_per_read;
        self.loaded.push(line);
        self.touched.push(line);
    }

    fn write(&mut self, _by: CpuId, line: Line) {
        self.stored.push(line);
        self.touched.push(line);
    }

    fn atomic(&mut self, _by: CpuId, line: Line) {
        self.touched.push(line);
    }

    fn lock(&mut self, _by: CpuId, line: Line) {
        self.locked.push(line);
    }

    fn enter(&mut self, _by: CpuId, path: Path) {
        self.paths.push(path);
    }

    fn tracing(&self) -> bool {
        self.tracing
    }

    fn trace(&mut self, _by: CpuId, event: &Event) {
        self.events.push(event.clone());
    }
}

/// A machine a second after boot, with so many CPUs that share a cache, at 250 Hz.
pub(crate) fn machine(kernel: Kernel, cpus: usize) -> Sched<Hand> {
    machine_of(kernel, CpuTopology::symmetric(1, 1, 1, cpus, 1))
}

/// The same with the CPUs of `topology`.
pub(crate) fn machine_of(kernel: Kernel, topology: CpuTopology) -> Sched<Hand> {
    let sched_base_slice = kernel.sysctl(topology.nr_cpus).sched_base_slice;
    let sysctl = Sysctl { sched_base_slice, ..Sysctl::new(topology.nr_cpus) };
    Sched::new(Hand::at(1_000 * MS), Boot { sysctl, ..Boot::new(kernel, topology, 250) })
}

/// Takes `down` offline, all the way.
pub(crate) fn take_offline(s: &mut Sched<Hand>, down: CpuId) {
    let by = s.cpu_active_mask.iter().find(|&cpu| cpu != down).expect("another one stays");
    Scheduler::cpu_down(s, by, down).expect("nothing holds it");
    for _ in 0..10 {
        // A wakeup of the stopper may be pending.
        Scheduler::scheduler_ipi(s, down);
        let next = Scheduler::schedule(s, down, true);
        if next.is_some() && next == s.rq[down].stop {
            Scheduler::cpu_stopper_thread(s, down);
            Scheduler::set_current_state(s, down, TaskState::Interruptible);
            Scheduler::schedule(s, down, false);
        }
        if !s.is_online(down) {
            return;
        }
    }
    panic!("{down} stays");
}

pub(crate) fn task_in(group: TgId, comm: &str) -> TaskInit {
    TaskInit { comm: comm.to_string(), attr: None, cpus_allowed: None, mm: 1, group }
}

/// CPUs that schedutil runs at one frequency, from 1.0 to 3.0 GHz, now at the lowest; it may be changed at any time, and
/// from any CPU.
pub(crate) fn policy_of(cpus: &[CpuId]) -> CpufreqPolicy {
    CpufreqPolicy {
        cpus: cpus.to_vec(),
        min: 1_000_000,
        cpuinfo_min_freq: 1_000_000,
        cpuinfo_max_freq: 3_000_000,
        cur: 1_000_000,
        rate_limit_us: 0,
        dvfs_possible_from_any_cpu: true,
        adjust_perf: false,
        fast_switch: true,
    }
}
