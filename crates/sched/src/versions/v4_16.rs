//! v4.16 (April 2018): a waker remembers where it last found an idle CPU; wake_affine considers caches.

use super::{Kernel, V4_15};
use crate::core::cgroup::CgroupRules;
use crate::cpufreq::CpufreqRules;
use crate::deadline::DlRules;
use crate::fair::balance::BalanceRules;
use crate::fair::wake::WakeRules;
use crate::rt::RtRules;
use crate::topology::DomainRules;

pub const V4_16: Kernel = Kernel {
    name: "v4.16",
    cpufreq: CpufreqRules::V4_16,
    domains: DomainRules::V4_16,
    wake: WakeRules::V4_16,
    balance: BalanceRules::V4_16,
    rt: RtRules::V4_16,
    dl: DlRules::V4_16,
    cgroup: CgroupRules::V4_16,
    ..V4_15
};
