//! What the scheduler's tests begin with.

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

/// A machine set by hand, on which all is free and everything is written down: one for all tests of this room, for each would be a
/// scheduler of its own to the compiler.
#[derive(Default)]
pub(crate) struct Hand {
    /// The time of all CPUs, in ns, which stands until a test moves it ...
    pub now: u64,
    /// ... or each load lets so much pass.
    pub ns_per_read: u64,
    /// How fast each CPU runs, 1024 = full; others do.
    pub freq: Vec<Capacity>,
    /// Time in interrupts of each CPU in ns, 0 for others.
    pub irq_time: Vec<u64>,
    /// What a cpufreq driver can do, in kHz: all of it where there is none.
    pub khz: Option<(u32, u32)>,
    /// What it was asked for, in MHz.
    pub mhz: Vec<u32>,
    /// Reschedule interrupts: from, to.
    pub interrupts: Vec<(CpuId, CpuId)>,
    /// Stores to the flags of idle CPUs that poll, which interrupt nobody: from, to.
    pub polled: Vec<(CpuId, CpuId)>,
    /// Lines that were loaded, those that were stored to, and all of them with those of atomic operations in the order of time.
    pub loaded: Vec<Line>,
    pub stored: Vec<Line>,
    pub touched: Vec<Line>,
    /// Those of locks that were taken.
    pub locked: Vec<Line>,
    /// Functions that began.
    pub paths: Vec<Path>,
    /// Whether somebody listens to tracepoints, and what was heard.
    pub tracing: bool,
    pub events: Vec<Event>,
}

impl Hand {
    /// At that time since boot, in ns.
    pub fn at(now: u64) -> Hand {
        Hand { now, ..Hand::default() }
    }

    /// Wakeups, in the order in which they were finished: who, and where.
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

/// A second after boot: so many CPUs that share a cache, at 250 Hz.
pub(crate) fn machine(kernel: Kernel, cpus: usize) -> Sched<Hand> {
    machine_of(kernel, CpuTopology::symmetric(1, 1, 1, cpus, 1))
}

/// The same with those CPUs.
pub(crate) fn machine_of(kernel: Kernel, topology: CpuTopology) -> Sched<Hand> {
    let sysctl = Sysctl::new(topology.nr_cpus);
    Sched::new(Hand::at(1_000 * MS), Boot { sysctl, ..Boot::new(kernel, topology, 250) })
}

/// `down` goes offline, all the way.
pub(crate) fn take_offline(s: &mut Sched<Hand>, down: CpuId) {
    let by = s.cpu_active_mask.iter().find(|&cpu| cpu != down).expect("another one stays");
    Scheduler::cpu_down(s, by, down).expect("nothing holds it");
    for _ in 0..10 {
        // A wakeup of the stopper may be queued.
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

/// CPUs that schedutil runs at one frequency, from 1.0 to 3.0 GHz, now at the lowest; it may be changed at any time, and from everywhere.
pub(crate) fn policy_of(cpus: &[CpuId]) -> CpufreqPolicy {
    CpufreqPolicy {
        cpus: cpus.to_vec(),
        min: 1_000_000,
        cpuinfo_max_freq: 3_000_000,
        cur: 1_000_000,
        rate_limit_us: 0,
        dvfs_possible_from_any_cpu: true,
        adjust_perf: false,
        fast_switch: true,
    }
}
