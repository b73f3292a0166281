//! arch/x86/kernel/itmt.c: ranks of cores, which SD_ASYM_PACKING uses to pack tasks (Turbo Boost Max 3.0 and hybrid
//! processors).
//!
//! Differs: the ranks exist from boot on, whichever driver sets frequencies; in the kernel intel_pstate sets them, and
//! domains are rebuilt.

use crate::arch::Arch;
use crate::behaviour;
use crate::core::Sched;
use crate::cpu_topology::CpuTopology;
use crate::errno::{Answer, Errno, Refusal};
use crate::sysctl::Sysctl;
use units::{CpuId, PerCpu};

behaviour! {
    /// How the threads of a ranked core rank among each other.
    pub enum SiblingRank = "domains.sibling_rank" {
        Divided = "divided", since "v4.10", commit "5e76b2ab36b4",
            "the core's rank times the threads of a core, divided by 1, 2 ...: first threads stand before all second ones of equal cores";
        DividedBySquare = "divided-by-square", since "v5.16", commit "183b8ec38f1e",
            "the same divided by 1, 4 ...: second threads stand behind slower cores too";
        Alike = "alike", since "v6.5", commit "046a5a95c3b0", "they have the core's";
    }
}

/// itmt.c: sched_set_itmt_core_prio(), for all cores. The priority of each CPU; none if firmware reports all cores as
/// equal.
pub(crate) fn sched_set_itmt_core_prio(topology: &CpuTopology, rank: SiblingRank) -> Option<PerCpu<i32>> {
    let highest_perf = topology.highest_perf.as_ref().filter(|_| topology.ranks_cores())?;
    let smp_num_siblings = topology.smt.iter().map(|(_, smt)| smt.weight()).max().unwrap_or(1) as i32;
    Some(PerCpu::from_fn(topology.nr_cpus, |cpu| {
        let prio = highest_perf[cpu] as i32;
        let number = 1 + topology.smt[cpu].iter().take_while(|&sibling| sibling < cpu).count() as i32;
        match rank {
            SiblingRank::Divided => prio * smp_num_siblings / number,
            SiblingRank::DividedBySquare => prio * smp_num_siblings / (number * number),
            SiblingRank::Alike => prio,
        }
    }))
}

impl<A: Arch> Sched<A> {
    /// fair.c: arch_asym_cpu_priority(), or itmt.c's if cores are ranked. Higher is better.
    pub(crate) fn arch_asym_cpu_priority(&self, cpu: CpuId) -> i32 {
        self.sched_core_priority.as_ref().map_or(-i32::from(cpu.0), |priority| priority[cpu])
    }

    /// sched.h: sched_asym_prefer(). Whether SD_ASYM_PACKING would rather use CPU `a` than `b`.
    pub(crate) fn sched_asym_prefer(&self, a: CpuId, b: CpuId) -> bool {
        self.arch_asym_cpu_priority(a) > self.arch_asym_cpu_priority(b)
    }
}

impl<A: Arch> Sched<A> {
    /// itmt.c: sched_itmt_update_handler(). All domains are rebuilt, with or without SD_ASYM_PACKING.
    ///
    /// # Errors
    /// ENOENT if cores have no ranks: sched_set_itmt_support() creates the file when ranks are reported.
    pub(crate) fn sched_itmt_update_handler(&mut self, after: Sysctl) -> Answer {
        if self.sched_core_priority.is_none() {
            return Err(Refusal::new(Errno::ENOENT, "no core of this machine ranks above another"));
        }
        let changed = after.sched_itmt_enabled != self.sysctl.sched_itmt_enabled;
        self.sysctl = after;
        if changed {
            // x86_topology_update: no domain is kept.
            self.domains.doms_cur.clear();
            self.rebuild_sched_domains();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn second_threads_stand_behind_first_ones() {
        // A core with two threads of rank 66, and two cores with one thread of rank 39; Linux numbers second threads
        // last.
        let mut topology = CpuTopology::symmetric(1, 1, 1, 4, 1);
        let core = [CpuId(0), CpuId(3)].into_iter().collect::<units::CpuMask>();
        for cpu in [CpuId(0), CpuId(3)] {
            topology.smt[cpu] = core.clone();
        }
        let mut ranks = |perf: [u32; 4], rank| {
            topology.highest_perf = Some(PerCpu::from_fn(4, |cpu| perf[cpu.index()]));
            sched_set_itmt_core_prio(&topology, rank)
                .map(|priority| priority.iter().map(|(_, rank)| *rank).collect::<Vec<_>>())
        };
        let hybrid = [66, 39, 39, 66];
        // Worked out by hand: 66 * 2 / 1, 39 * 2 / 1, 66 * 2 / 2 and 66 * 2 / 4.
        assert_eq!(ranks(hybrid, SiblingRank::Divided), Some(vec![132, 78, 78, 66]));
        assert_eq!(ranks(hybrid, SiblingRank::DividedBySquare), Some(vec![132, 78, 78, 33]));
        assert_eq!(ranks(hybrid, SiblingRank::Alike), Some(vec![66, 39, 39, 66]));
        assert_eq!(ranks([50; 4], SiblingRank::Alike), None, "all alike: nobody is preferred");
    }
}
