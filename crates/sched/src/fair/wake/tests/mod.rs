//! Decisions of the wake path on small machines, derived by hand from the kernel's code.
//!
//! Machines are set up directly: which tasks run where, and what the averages are. Loads are those of nice-0 tasks that
//! always run, 1024 each, unless a test says otherwise.

mod affine;
mod capacities;
mod group_load;
mod idle_cores;
mod idlest;
mod idlest_types;
mod one_scan;
mod recorded;
mod situations;
mod stacking;
mod waker;

use super::*;
use crate::attr::SchedAttr;
use crate::behaviour::Rules;
use crate::core::{Boot, TaskInit};
use crate::cpu_topology::CpuTopology;
use crate::features::Feature;
use crate::pelt::SchedAvg;
use crate::sysctl::Sysctl;
use crate::testing::{Hand, MS, machine_of};
use crate::versions::{Kernel, V4_5_RC1, V4_15, V4_16, V4_19, V5_4, V5_10, V5_15, V6_1, V6_6, V6_12, V6_18, V7_2};
use std::ops::{Deref, DerefMut};
use units::{CpuMask, PerCpu};

const WAKE: SdFlags = SdFlags::SD_BALANCE_WAKE;
const FORK: SdFlags = SdFlags::SD_BALANCE_FORK;
const EXEC: SdFlags = SdFlags::SD_BALANCE_EXEC;
/// Load of a nice-0 task that always runs.
const FULL: u64 = 1024;

struct Machine(Sched<Hand>);

impl Deref for Machine {
    type Target = Sched<Hand>;
    fn deref(&self) -> &Sched<Hand> {
        &self.0
    }
}

impl DerefMut for Machine {
    fn deref_mut(&mut self) -> &mut Sched<Hand> {
        &mut self.0
    }
}

fn cpu(number: usize) -> CpuId {
    CpuId::new(number)
}

fn mask(cpus: &[usize]) -> CpuMask {
    cpus.iter().map(|&c| cpu(c)).collect()
}

/// Two sockets of four cores of two threads. Cores 0-3 are in socket 0, cores 4-7 in socket 1; CPU n + 8 is the second thread of
/// core n. The domains of a CPU are SMT (2 CPUs, 110%), MC (8, 117%) and NUMA (16, 125%); each CPU's capacity is 589.
fn two_sockets(kernel: Kernel) -> Machine {
    Machine::new(kernel, CpuTopology::symmetric(2, 1, 1, 4, 2))
}

/// Eight CPUs that share one LLC. Their only domain is MC (8 CPUs, 117%); each CPU's capacity is 1024.
fn uma(kernel: Kernel) -> Machine {
    Machine::new(kernel, CpuTopology::symmetric(1, 1, 1, 8, 1))
}

fn with(kernel: Kernel, key: &str, value: &str) -> Kernel {
    let mut kernel = kernel;
    assert_eq!(kernel.set(key, value), crate::versions::Switched::Done, "{key} = {value}");
    kernel
}

impl Machine {
    fn new(kernel: Kernel, topology: CpuTopology) -> Machine {
        // Not at boot: a jiffy of 0 means "never" in some places.
        Machine::up(machine_of(kernel, topology))
    }

    /// The same with `isolcpus=`.
    fn isolating(kernel: Kernel, topology: CpuTopology, isolated: &[usize]) -> Machine {
        let sysctl = Sysctl::new(topology.nr_cpus);
        let boot = Boot { sysctl, isolated: mask(isolated), ..Boot::new(kernel, topology, 250) };
        Machine::up(Sched::new(Hand::at(1_000 * MS), boot))
    }

    fn up(sched: Sched<Hand>) -> Machine {
        let mut m = Machine(sched);
        for on in 0..m.nr_cpus() {
            m.root_avg(on).last_update_time = 1;
        }
        m
    }

    /// A sleeping task that last ran on `on`, whose averages still contain its load.
    fn sleeper(&mut self, on: usize) -> TaskId {
        self.0.this_cpu = cpu(on);
        let init = TaskInit {
            comm: String::from("test"),
            attr: Some(SchedAttr::fair(Policy::Normal, 0)),
            cpus_allowed: None,
            mm: 1,
            group: ROOT_TASK_GROUP,
        };
        let p = self.sched_fork(None, init);
        self.task[p].state = TaskState::Interruptible;
        self.task[p].recent_used_cpu = cpu(on);
        let se = self.task[p].se;
        self.se[se].avg = SchedAvg { load_avg: FULL, runnable_avg: FULL, last_update_time: 1, ..SchedAvg::default() };
        let cfs = self.rq[cpu(on)].cfs;
        self.cfs_rq[cfs].avg.load_avg += FULL;
        p
    }

    /// Adds a task of full load to a CPU, which runs if nothing else does. It has no utilization.
    fn run(&mut self, on: usize) -> TaskId {
        let p = self.sleeper(on);
        self.task[p].state = TaskState::Running;
        let cfs = self.rq[cpu(on)].cfs;
        self.cfs_rq[cfs].avg.runnable_avg += FULL;
        self.rq[cpu(on)].nr_running += 1;
        let curr = self.rq[cpu(on)].curr.unwrap_or(p);
        self.set_curr(cpu(on), Some(curr));
        p
    }

    fn busy(&mut self, cpus: &[usize]) {
        for &c in cpus {
            self.run(c);
        }
    }

    /// `p` is woken by whatever runs on `waker`.
    fn select(&mut self, waker: usize, p: TaskId, sync: bool) -> usize {
        self.0.this_cpu = cpu(waker);
        let flags = if sync { WakeFlags::SYNC } else { WakeFlags::NONE };
        let prev = self.task[p].wake_cpu;
        self.select_task_rq_fair(p, prev, WAKE, flags).index()
    }

    fn allow(&mut self, p: TaskId, cpus: &[usize]) {
        self.task[p].cpus_allowed = mask(cpus).into();
        self.task[p].nr_cpus_allowed = cpus.len() as u16;
    }

    fn avg(&mut self, p: TaskId) -> &mut SchedAvg {
        let se = self.task[p].se;
        &mut self.se[se].avg
    }

    fn root_avg(&mut self, on: usize) -> &mut SchedAvg {
        let cfs = self.rq[cpu(on)].cfs;
        &mut self.cfs_rq[cfs].avg
    }

    fn has_idle_cores(&self, on: usize) -> bool {
        let shared = self.domains.sd_llc_shared[cpu(on)].expect("a cache that several CPUs share");
        self.domains[shared].has_idle_cores
    }
}
