//! Files of cpufreq and cpuidle that an administrator writes while the kernel runs.

use crate::engine::Sim;
use machine::frequency::{File, Follower, Governor, Policy};
use machine::hardware::Hardware;
use machine::idle::Governor as IdleGovernor;
use sched::sched::{TaskId, WakeFlags};
use sched::scheduler::Scheduler;
use units::CpuId;

/// A change of how clocks or idle states are governed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Governed {
    /// A file below `/sys/devices/system/cpu/cpufreq`, for all policies, and what all files show from then on. With fixed
    /// clocks nothing happens.
    Cpufreq(File, Box<Policy>),
    /// `/sys/devices/system/cpu/cpu*/cpuidle/stateN/disable`
    IdleState { state: usize, disabled: bool },
    /// `/sys/devices/system/cpu/cpuidle/current_governor`
    IdleGovernor(IdleGovernor),
    /// What a process holds in /dev/cpu_dma_latency, in microseconds; `None`: it closes the file.
    CpuDmaLatency(Option<u32>),
}

impl<const COSTS: bool, S: Scheduler<Arch = Hardware<COSTS>>> Sim<COSTS, S> {
    /// The administrator's shell, on `by`, makes a change.
    pub(crate) fn govern(&mut self, by: CpuId, change: &Governed) {
        match change {
            Governed::Cpufreq(file, policy) => self.store_cpufreq(by, *file, policy),
            Governed::IdleState { state, disabled } => {
                self.sched.arch_mut().disable_idle_state(*state, *disabled);
            }
            Governed::IdleGovernor(governor) => {
                // cpuidle_uninstall_idle_handler()
                if self.sched.arch_mut().cpuidle_switch_governor(*governor) {
                    self.sched.wake_up_all_idle_cpus(by);
                }
            }
            Governed::CpuDmaLatency(latency_us) => self.cpu_latency_qos_apply(by, *latency_us),
        }
    }

    /// kernel/power/qos.c: cpu_latency_qos_apply(), cpuidle_latency_notify() until v5.6: another limit makes idle CPUs
    /// choose anew.
    #[doc(alias = "cpuidle_latency_notify")]
    fn cpu_latency_qos_apply(&mut self, by: CpuId, latency_us: Option<u32>) {
        if self.sched.arch_mut().pm_qos_update_target(latency_us) {
            self.sched.wake_up_all_idle_cpus(by);
        }
    }

    fn store_cpufreq(&mut self, by: CpuId, file: File, policy: &Policy) {
        let Some(frequency) = self.sched.arch().frequency() else { return };
        let (before, governor) = (frequency.policy().follower(), frequency.policy().governor);
        let another = governor != policy.governor;
        let threads = if another { self.stop_governor(by) } else { Vec::new() };
        let iowait: Vec<CpuId> =
            (0..self.sched.nr_cpus()).map(CpuId::new).filter(|&cpu| self.sched.nr_iowait_cpu(cpu) > 0).collect();
        self.sched.arch_mut().store_cpufreq(by, file, policy, &iowait);
        if another || before != policy.follower() {
            self.follow(by, policy, another);
        } else if before == Follower::Schedutil {
            self.tell_schedutil(by, file, policy);
        }
        // kthread_stop()
        for thread in threads {
            self.sched.wake(by, thread, WakeFlags::NONE);
        }
        if another && (governor == Governor::Schedutil || policy.governor == Governor::Schedutil) {
            self.sched.sched_cpufreq_governor_change(by, policy.governor == Governor::Schedutil);
        }
    }

    /// cpufreq.c: cpufreq_stop_governor(), for all policies. Returns the threads that are to end.
    fn stop_governor(&mut self, by: CpuId) -> Vec<TaskId> {
        let (threads, mut cancelled) = self.sched.nobody_follows(by);
        cancelled.extend(self.os.cancel_dbs_works());
        self.sched.arch_mut().dbs_stop(&cancelled);
        threads
    }

    /// Those who are told of utilization now.
    fn follow(&mut self, by: CpuId, policy: &Policy, another: bool) {
        match policy.follower() {
            Follower::Nobody if another => {}
            Follower::Nobody => _ = self.sched.nobody_follows(by),
            Follower::Driver => self.sched.driver_follows(by),
            Follower::Schedutil => {
                let policies = self.cpufreq_policies();
                self.sched.schedutil_follows(by, policies);
                self.start_sugov_threads(by);
                self.tell_schedutil(by, File::Governor, policy);
            }
        }
    }

    fn tell_schedutil(&mut self, by: CpuId, file: File, policy: &Policy) {
        match file {
            File::RateLimit => self.sched.rate_limit_us_store(by, policy.rate_limit_us),
            File::Governor | File::Limits | File::Turbo => {
                let policies = self.cpufreq_policies();
                self.sched.sugov_limits(by, &policies);
            }
            _ => {}
        }
    }

    fn cpufreq_policies(&self) -> Vec<sched::cpufreq_schedutil::CpufreqPolicy> {
        self.sched.arch().frequency().map_or(Vec::new(), |frequency| frequency.cpufreq_policies())
    }
}
