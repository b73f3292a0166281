//! Writes to tunables and features of the running kernel: what each `proc_handler` checks and does besides storing the value.

use super::Sched;
use crate::arch::Arch;
use crate::deadline::bandwidth::{Admission, NewLimit, to_ratio};
use crate::errno::{Answer, Errno, Refusal};
use crate::features::Feature;
use crate::sysctl::{Scaling, Sysctl, Tunable};
use units::CpuId;

impl<A: Arch> Sched<A> {
    /// `echo VALUE > FILE` of a tunable.
    ///
    /// # Errors
    /// ENOENT for a tunable that this kernel or this machine lacks (`sched_itmt_enabled` without ranked cores), EINVAL for a value that is
    /// out of range or contradicts another tunable, EBUSY for a real-time runtime below what deadline tasks have reserved, EOPNOTSUPP for
    /// `sched_energy_aware` if the machine, the kernel or the governor does not support it.
    pub(crate) fn sysctl_write(&mut self, tunable: Tunable, value: u64) -> Answer {
        if !self.kernel.tunables.iter().any(|&(_, known)| known == tunable) {
            return Err(Refusal::new(Errno::ENOENT, "this kernel has no such tunable"));
        }
        let (low, high) = tunable.row().range;
        if !(low..=high).contains(&value) {
            return Err(Refusal::new(Errno::EINVAL, "the value is out of range"));
        }
        let before = self.sysctl;
        let mut after = before;
        after.set(tunable, value);
        match tunable {
            Tunable::sched_rt_period | Tunable::sched_rt_runtime => self.sched_rt_handler(after),
            Tunable::sched_uclamp_util_min
            | Tunable::sched_uclamp_util_max
            | Tunable::sched_uclamp_util_min_rt_default => {
                self.sysctl_sched_uclamp_handler(&after)?;
                self.sysctl = after;
                Ok(())
            }
            Tunable::sched_energy_aware => self.sched_energy_aware_handler(after),
            Tunable::latencytop => self.sysctl_latencytop(value != 0),
            Tunable::numa_balancing => {
                self.sysctl = after;
                self.numa.set_numabalancing_state(value != 0);
                Ok(())
            }
            Tunable::sched_schedstats => self.sysctl_schedstats(value != 0),
            Tunable::sched_itmt_enabled => self.sched_itmt_update_handler(after),
            Tunable::sched_cache_user => {
                self.sysctl = after;
                self.sched_cache_active_set();
                Ok(())
            }
            _ => {
                self.sysctl = after;
                if tunable.row().scaling == Scaling::Cpus {
                    self.sched_update_scaling();
                }
                Ok(())
            }
        }
    }

    /// debug.c: sched_feat_set(). Takes effect the next time the feature is read.
    ///
    /// # Errors
    /// EINVAL for a feature that this kernel lacks.
    pub(crate) fn sched_feat_set(&mut self, feature: Feature, on: bool) -> Answer {
        if !self.features.has(feature) {
            return Err(Refusal::new(Errno::EINVAL, "this kernel has no such feature"));
        }
        self.features.set(feature, on);
        Ok(())
    }

    /// rt.c: sched_rt_handler(). Period and runtime of the real-time and the deadline class.
    /// Differs: a value out of range, or a read, does not rebuild domains.
    fn sched_rt_handler(&mut self, after: Sysctl) -> Answer {
        let answer = self.sched_rt_do_global(after);
        // This happens after a refused write too: the reservations of tasks are then subtracted from the free bandwidth once more.
        if self.kernel.dl.new_limit == NewLimit::Recounts {
            self.rebuild_sched_domains();
        }
        answer
    }

    /// rt.c: sched_rt_do_global(), after the values have been found valid.
    #[doc(alias = "sched_rt_global_validate")]
    fn sched_rt_do_global(&mut self, after: Sysctl) -> Answer {
        if after.contradiction().is_some() {
            return Err(Refusal::new(Errno::EINVAL, "sched_rt_runtime_us is above sched_rt_period_us"));
        }
        let before = std::mem::replace(&mut self.sysctl, after);
        if let Err(refusal) = self.sched_dl_global_validate() {
            self.sysctl = before;
            return Err(refusal);
        }
        // sched_rt_global_constraints() without group scheduling, and sched_dl_do_global().
        let runtime = self.global_rt_runtime();
        for cpu in (0..self.nr_cpus()).map(CpuId::new) {
            self.rt[cpu].rt_runtime = runtime;
            self.init_dl_rq_bw_ratio(cpu);
        }
        Ok(())
    }

    /// deadline.c: sched_dl_global_validate(). Whether the reservations fit the new limit. By [`Admission::Cpus`] the reservations of a
    /// whole root domain are compared with the limit of a single CPU.
    fn sched_dl_global_validate(&self) -> Answer {
        let new_bw = to_ratio(self.global_rt_period(), self.global_rt_runtime());
        for rd in &self.root_domains {
            let cpus = match self.kernel.dl.admission {
                Admission::Cpus => 1,
                Admission::CpusForLimit | Admission::Capacity => rd.span.and(&self.cpu_active_mask).weight() as u64,
            };
            if new_bw * cpus < rd.total_bw {
                return Err(Refusal::new(Errno::EBUSY, "deadline tasks have reserved more than that"));
            }
        }
        Ok(())
    }

    /// topology.c: sched_energy_aware_handler(). Domains are rebuilt, with or without performance domains.
    fn sched_energy_aware_handler(&mut self, after: Sysctl) -> Answer {
        if self.kernel.wake.energy.by_performance() {
            self.sched_is_eas_possible(&self.cpu_active_mask)?;
        }
        self.sysctl = after;
        self.rebuild_sched_domains();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::Boot;
    use crate::cpu_topology::CpuTopology;
    use crate::testing::Hand;
    use crate::versions::{Kernel, V4_5_RC1, V4_15, V5_4, V6_1, V6_12};
    use units::PerCpu;

    fn machine(kernel: Kernel) -> Sched<Hand> {
        machine_with(kernel, CpuTopology::symmetric(1, 1, 2, 1, 1))
    }

    fn machine_with(kernel: Kernel, topology: CpuTopology) -> Sched<Hand> {
        let boot = Boot::new(kernel, topology, 250);
        Sched::new(Hand::at(1_000_000_000), boot)
    }

    fn refused(answer: Answer) -> Option<Errno> {
        answer.err().map(|refusal| refusal.errno)
    }

    #[test]
    fn a_kernel_without_the_tunable_has_no_such_file() {
        assert_eq!(refused(machine(V6_12).sysctl_write(Tunable::sched_latency, 1_000_000)), Some(Errno::ENOENT));
        assert_eq!(refused(machine(V4_5_RC1).sysctl_write(Tunable::sched_schedstats, 1)), Some(Errno::ENOENT));
        assert_eq!(refused(machine(V4_15).sched_feat_set(Feature::SIS_UTIL, true)), Some(Errno::EINVAL));
    }

    #[test]
    fn values_hold_from_the_write_on() {
        let mut s = machine(V4_15);
        assert!(!s.schedstat_enabled());
        assert_eq!(s.sysctl_write(Tunable::sched_schedstats, 1), Ok(()));
        assert!(s.schedstat_enabled() && s.sysctl.sched_schedstats == 1);
        assert_eq!(s.sysctl_write(Tunable::sched_latency, 1_000_000), Ok(()));
        assert_eq!(s.sysctl.sched_latency, 1_000_000);
        assert_eq!(refused(s.sysctl_write(Tunable::sched_latency, 1)), Some(Errno::EINVAL));
        assert_eq!(s.sched_feat_set(Feature::SIS_PROP, false), Ok(()));
        assert!(!s.sched_feat(Feature::SIS_PROP));
    }

    #[test]
    fn a_real_time_runtime_reaches_the_queues_or_nothing_does() {
        let mut s = machine(V4_15);
        assert_eq!(s.sysctl_write(Tunable::sched_rt_runtime, 400_000), Ok(()));
        assert!(s.rt.iter().all(|(_, rt)| rt.rt_runtime == 400_000_000));
        assert_eq!(refused(s.sysctl_write(Tunable::sched_rt_period, 300_000)), Some(Errno::EINVAL));
        assert_eq!(s.sysctl.sched_rt_period, 1_000_000);
        // Two CPUs, on which a deadline task has reserved a bit more than half.
        s.root_domains[0].total_bw = 600_000;
        assert_eq!(refused(s.sysctl_write(Tunable::sched_rt_runtime, 200_000)), Some(Errno::EBUSY));
        assert_eq!(s.sysctl.sched_rt_runtime, 400_000);
        assert!(s.rt.iter().all(|(_, rt)| rt.rt_runtime == 400_000_000));
        // Each of the two may have so much, as later kernels see it.
        let mut s = machine(V5_4);
        s.root_domains[0].total_bw = 600_000;
        assert_eq!(refused(s.sysctl_write(Tunable::sched_rt_runtime, 200_000)), Some(Errno::EBUSY));
        assert_eq!(s.sysctl_write(Tunable::sched_rt_runtime, 300_000), Ok(()));
    }

    #[test]
    fn ranks_of_cores_are_heeded_or_not_where_there_are_some() {
        let topology = |perf: [u32; 2]| {
            let mut topology = CpuTopology::symmetric(1, 1, 1, 2, 1);
            topology.highest_perf = Some(PerCpu::from_fn(2, |cpu| perf[cpu.index()]));
            topology
        };
        let packs = |s: &Sched<Hand>| s.domains.sd_asym_packing[CpuId(0)].is_some();
        let mut s = machine_with(V6_1, topology([50, 40]));
        assert!(packs(&s));
        let write = |s: &mut Sched<Hand>, value| (s.sysctl_write(Tunable::sched_itmt_enabled, value), packs(s));
        assert_eq!(write(&mut s, 0), (Ok(()), false));
        assert_eq!(write(&mut s, 0), (Ok(()), false));
        assert_eq!(write(&mut s, 1), (Ok(()), true));
        let mut alike = machine_with(V6_1, topology([50, 50]));
        assert_eq!(refused(alike.sysctl_write(Tunable::sched_itmt_enabled, 0)), Some(Errno::ENOENT));
        let mut before = machine_with(V4_5_RC1, topology([50, 40]));
        assert_eq!(refused(before.sysctl_write(Tunable::sched_itmt_enabled, 0)), Some(Errno::ENOENT));
    }

    #[test]
    fn energy_awareness_needs_an_energy_model_where_the_kernel_looks() {
        assert_eq!(refused(machine(V6_12).sysctl_write(Tunable::sched_energy_aware, 0)), Some(Errno::EOPNOTSUPP));
        assert_eq!(machine(V6_1).sysctl_write(Tunable::sched_energy_aware, 0), Ok(()));
    }
}
