//! Balancing on small machines: hogs are queued by hand, and every step is worked out beside its test.

mod asym;
mod imbalance;
mod loads;
mod misfits;
mod moving;
mod nohz;
mod runnable;
mod when;

use super::*;
use crate::attr::SchedAttr;
use crate::core::{Boot, TaskInit};
use crate::cpu_topology::CpuTopology;
use crate::features::Feature;
use crate::sched::{Policy, ROOT_TASK_GROUP, TaskState, TgId};
use crate::scheduler::Scheduler;
use crate::sysctl::Sysctl;
use crate::testing::Hand;
use crate::versions::{Kernel, V4_5_RC1, V4_15, V4_16, V5_10, V5_15, V6_1, V6_6, V6_12, V6_18, V7_2};

type Machine = Sched<Hand>;

const CPU0: CpuId = CpuId(0);
const CPU1: CpuId = CpuId(1);

/// One second after boot, nothing running. 1000 Hz.
fn machine(kernel: Kernel, topology: CpuTopology) -> Machine {
    let sysctl = Sysctl { sched_schedstats: 1, ..Sysctl::new(topology.nr_cpus) };
    let boot = Boot { sysctl, ..Boot::new(kernel, topology, 1000) };
    let mut sched = Sched::new(Hand::default(), boot);
    sched.pass_ms(1000);
    sched
}

/// One socket of single-threaded cores that share a cache.
fn flat(kernel: Kernel, cpus: usize) -> Machine {
    machine(kernel, CpuTopology::symmetric(1, 1, 1, cpus, 1))
}

fn cpus(list: &[u16]) -> CpuMask {
    list.iter().map(|&cpu| CpuId(cpu)).collect()
}

impl Machine {
    fn pass_ms(&mut self, ms: u64) {
        self.arch.now += ms * 1_000_000;
    }

    /// A task that wants to run forever, queued on `cpu` and allowed on `allowed`.
    fn hog_for(&mut self, cpu: CpuId, allowed: CpuMask) -> TaskId {
        self.hog_in(ROOT_TASK_GROUP, cpu, allowed)
    }

    fn hog_in(&mut self, group: TgId, cpu: CpuId, allowed: CpuMask) -> TaskId {
        self.on_cpu(cpu);
        let init = TaskInit {
            comm: String::from("hog"),
            attr: Some(SchedAttr::fair(Policy::Normal, 0)),
            cpus_allowed: Some(CpuMask::single(cpu)),
            mm: 1,
            group,
        };
        let p = self.sched_fork(None, init);
        self.wake_up_new_task(p);
        self.task[p].nr_cpus_allowed = allowed.weight() as u16;
        self.task[p].cpus_allowed = allowed.into();
        p
    }

    fn hogs(&mut self, cpu: CpuId, count: usize) -> Vec<TaskId> {
        let all = CpuMask::all(self.nr_cpus());
        (0..count).map(|_| self.hog_for(cpu, all.clone())).collect()
    }

    fn run_something(&mut self, cpu: CpuId) -> TaskId {
        self.on_cpu(cpu);
        self.schedule(false).expect("something to run")
    }

    /// Makes every task look as if it had not run for long, and `cpu_load[]` as if all had been queued forever.
    fn cool_down(&mut self) {
        self.pass_ms(1000);
        for cpu in (0..self.nr_cpus()).map(CpuId::new) {
            self.on_cpu(cpu);
            self.update_rq_clock(cpu);
            let load = self.weighted_cpuload(cpu);
            self.rq[cpu].cpu_load = [load; 5];
        }
    }

    /// One jiffy: ticks on all CPUs except those that idle without them, the softirqs and stoppers that follow, and the
    /// interrupts that these send.
    fn jiffy(&mut self) {
        self.pass_ms(1);
        for cpu in (0..self.nr_cpus()).map(CpuId::new) {
            if !self.rq[cpu].tick_stopped && Scheduler::scheduler_tick(self, cpu) {
                Scheduler::run_rebalance_domains(self, cpu);
            }
            self.settle(cpu);
        }
        while let Some((_, to)) = self.arch.interrupts.pop() {
            if Scheduler::scheduler_ipi(self, to) {
                Scheduler::run_rebalance_domains(self, to);
            }
            self.settle(to);
        }
    }

    /// The CPU does what it was told: it switches, runs its stopper, stops or restarts its tick.
    fn settle(&mut self, cpu: CpuId) {
        while self.rq[cpu].need_resched || self.rq[cpu].curr.is_some() && self.rq[cpu].curr == self.rq[cpu].stop {
            if self.rq[cpu].tick_stopped {
                self.tick_nohz_idle_restart(cpu);
            }
            let next = Scheduler::schedule(self, cpu, true);
            if next.is_some() && next == self.rq[cpu].stop {
                Scheduler::cpu_stopper_thread(self, cpu);
                Scheduler::set_current_state(self, cpu, TaskState::Interruptible);
                Scheduler::schedule(self, cpu, false);
            }
        }
        if self.rq[cpu].curr.is_none() && !self.rq[cpu].tick_stopped {
            self.go_idle(cpu);
        }
    }

    /// The idle loop up to where the tick stops.
    fn go_idle(&mut self, cpu: CpuId) {
        self.idle_loop_enter(cpu);
        self.tick_nohz_idle_stop(cpu, true);
    }

    /// Whether the parent domain's own group is flagged.
    fn is_flagged_imbalanced(&self, sd: SdId) -> bool {
        let parent = self.domains[sd].parent.expect("a domain above");
        self.domains[self.domains[self.domains[parent].groups].sgc].imbalance
    }

    fn nr_running(&self) -> Vec<u32> {
        self.rq.iter().map(|(_, rq)| rq.nr_running).collect()
    }

    fn lowest_domain(&self, cpu: CpuId) -> SdId {
        self.domains.sd[cpu].expect("the CPU has a domain")
    }

    fn balance(&mut self, cpu: CpuId, sd: SdId, idle: CpuIdleType) -> u32 {
        self.on_cpu(cpu);
        let mut continue_balancing = true;
        self.load_balance(cpu, sd, idle, &mut continue_balancing)
    }

    fn env(&self, cpu: CpuId, sd: SdId, idle: CpuIdleType) -> LbEnv {
        LbEnv {
            dst_grpmask: Some(self.domains[self.domains[sd].groups].cpumask),
            cpus: CpuMask::all(self.nr_cpus()),
            loop_max: SCHED_NR_MIGRATE_BREAK,
            ..LbEnv::new(sd, cpu, idle)
        }
    }
}
