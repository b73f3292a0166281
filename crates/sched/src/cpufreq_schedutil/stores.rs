//! What changes while schedutil governs: the policies' limits, and its tunable.

use super::{CpufreqPolicy, Sugov};
use crate::sched::TaskId;

impl Sugov {
    /// The threads of its policies.
    pub(crate) fn threads(&self) -> Vec<TaskId> {
        self.policies.iter().filter_map(|sg_policy| sg_policy.work.thread).collect()
    }

    /// cpufreq_schedutil.c: sugov_limits(), for all policies, once the clocks are within them where the driver does not switch
    /// in the scheduler: the next update asks whatever the time.
    pub(crate) fn sugov_limits(&mut self, policies: &[CpufreqPolicy]) {
        for (sg_policy, policy) in self.policies.iter_mut().zip(policies) {
            let of = &mut sg_policy.policy;
            (of.min, of.cpuinfo_max_freq, of.cur) = (policy.min, policy.cpuinfo_max_freq, policy.cur);
            sg_policy.limits_changed = true;
        }
    }

    /// cpufreq_schedutil.c: rate_limit_us_store().
    pub(crate) fn rate_limit_us_store(&mut self, rate_limit_us: u32) {
        for sg_policy in &mut self.policies {
            sg_policy.policy.rate_limit_us = rate_limit_us;
            sg_policy.freq_update_delay_ns = u64::from(rate_limit_us) * 1_000;
        }
    }
}
