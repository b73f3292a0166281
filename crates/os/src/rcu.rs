//! kernel/rcu/tree.c, as far as the tick is concerned: which lines a CPU reads, and when it reports a quiescent state.
//!
//! On a busy machine callbacks always wait, so one grace period follows another. In its tick a CPU notices that one has
//! begun; in its next tick it notices that it has been in user mode, or has switched tasks, since. Each time its
//! softirq takes the lock of the CPU's leaf of the tree. So a grace period takes three ticks: one in which the CPUs see
//! it, one in which they report, one until the next grace period begins.
//!
//! Modelled: the leaves, with that rhythm on all CPUs at once. Differs: who would note a beginning and finds the leaf's lock taken waits for it;
//! note_gp_changes() leaves it for the next tick. Absent: callbacks, the tree's upper levels, the thread that drives grace periods
//! (its writes are made by the first CPU that meets a new one), CPUs whose quiescent state is found by it, and everything outside the tick.

use crate::{Os, charge, paths, within};
use sched::arch::Arch;
use sched::layout::{GlobalLine, rcu_leaf};
use sched::scheduler::Scheduler;
use units::CpuId;

/// From one grace period to the next, in ticks (guess: three at least where every CPU ticks).
const GRACE_PERIOD: u64 = 3;

/// The state of RCU.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rcu {
    /// The number of the grace period that has begun last.
    gpnum: u64,
}

impl Os {
    /// tree.c: rcu_check_callbacks(), in the tick of a CPU that does not idle.
    pub fn rcu_check_callbacks<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, tick: u64) {
        within(sched, cpu, paths::RCU_CHECK_CALLBACKS, |sched| {
            if tick / GRACE_PERIOD > self.rcu.gpnum {
                self.rcu.gpnum = tick / GRACE_PERIOD;
                sched.arch_mut().write(cpu, GlobalLine::RcuState.line());
            }
            for line in [GlobalLine::RcuState.line(), GlobalLine::Jiffies.line(), rcu_leaf(cpu)] {
                sched.arch_mut().read(cpu, line);
            }
        });
    }

    /// tree.c: rcu_process_callbacks(): notes the begin of a grace period, or reports to it, if this is the tick for
    /// one of them.
    pub fn rcu_process_callbacks<S: Scheduler>(&self, sched: &mut S, cpu: CpuId, tick: u64) {
        if tick % GRACE_PERIOD == GRACE_PERIOD - 1 {
            return;
        }
        within(sched, cpu, paths::RCU_PROCESS_CALLBACKS, |sched| {
            sched.arch_mut().lock(cpu, rcu_leaf(cpu));
            charge(sched, cpu, paths::NOTE_GP_CHANGES);
            sched.arch_mut().unlock(cpu, rcu_leaf(cpu));
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::OsRules;
    use sched::core::{Boot, Sched};
    use sched::cpu_topology::CpuTopology;
    use sched::layout::Line;
    use sched::trace::Ipi;
    use sched::versions::V4_16;
    use units::Ns;

    /// Writes and locks, by the CPU.
    #[derive(Default)]
    struct Touches {
        writes: Vec<(CpuId, Line)>,
        locks: Vec<(CpuId, Line)>,
    }

    impl Arch for Touches {
        fn sched_clock(&self, _cpu: CpuId) -> Ns {
            Ns::from_ms(1_000)
        }
        fn send_ipi(&mut self, _from: CpuId, _to: CpuId, _ipi: Ipi) {}
        fn wake_polling_idle(&mut self, _from: CpuId, _to: CpuId) {}
        fn write(&mut self, by: CpuId, line: Line) {
            self.writes.push((by, line));
        }
        fn lock(&mut self, by: CpuId, line: Line) {
            self.locks.push((by, line));
        }
    }

    #[test]
    fn each_cpu_takes_its_leafs_lock_in_two_ticks_of_three_and_one_begins_the_next_period() {
        let mut sched = Sched::new(Touches::default(), Boot::new(V4_16, CpuTopology::symmetric(1, 1, 1, 2, 1), 250));
        let mut os = Os::new(OsRules::V4_15, 250);
        let cpus = [CpuId(0), CpuId(1)];
        for tick in 300..309 {
            (sched.arch.writes, sched.arch.locks) = (Vec::new(), Vec::new());
            // The second one meets it first.
            for cpu in [cpus[1], cpus[0]] {
                os.rcu_check_callbacks(&mut sched, cpu, tick);
                os.rcu_process_callbacks(&mut sched, cpu, tick);
            }
            let begins = if tick % 3 == 0 { vec![(cpus[1], GlobalLine::RcuState.line())] } else { Vec::new() };
            let locks =
                if tick % 3 == 2 { Vec::new() } else { [cpus[1], cpus[0]].map(|cpu| (cpu, rcu_leaf(cpu))).to_vec() };
            assert_eq!((&sched.arch.writes, &sched.arch.locks), (&begins, &locks), "tick {tick}");
        }
    }
}
