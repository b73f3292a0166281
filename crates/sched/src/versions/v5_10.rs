//! v5.10 (December 2020), as Debian 11 builds it: load balancing by group types, a search for an idle core, CPU and sibling
//! one after the other, load tracking with `runnable_avg` and estimated utilization.
//!
//! It is the long-term release 5.10.262, which has many changes of later versions; rules that are newer than v5.10 say so.

use super::{CoreRules, Kernel, V5_4};
use crate::autogroup::AutogroupRules;
use crate::core::{AffinityDest, UtilClamp, WakeList, WakeQueue};
use crate::cpufreq::CpufreqRules;
use crate::deadline::DlRules;
use crate::fair::balance::BalanceRules;
use crate::fair::bandwidth::BandwidthRules;
use crate::fair::load::LoadRules;
use crate::fair::numa::NumaRules;
use crate::fair::rules::EntityRules;
use crate::fair::wake::WakeRules;
use crate::features::{Feature, Features};
use crate::isolation::IsolationRules;
use crate::layout::Structures;
use crate::pelt::Pelt;
use crate::psi::Psi;
use crate::rt::RtRules;
use crate::syscalls::{AloneChanged, IdleWeight, NiceResched, PolicyChange};
use crate::sysctl;
use crate::topology::DomainRules;

pub const V5_10: Kernel = Kernel {
    name: "v5.10",
    core: CoreRules {
        wake_list: WakeList::CallSingle,
        wake_queue: WakeQueue::OrDescheduling,
        uclamp: UtilClamp::BeforeEnqueue,
        idle_weight: IdleWeight::Reweight,
        nice_resched: NiceResched::PrioChanged,
        alone_changed: AloneChanged::Nothing,
        policy_change: PolicyChange::InPlaceAny,
        affinity_dest: AffinityDest::Distributed,
        ..V5_4.core
    },
    pelt: Pelt::RunnableAvg,
    cpufreq: CpufreqRules::V5_10,
    domains: DomainRules::V5_10,
    entity: EntityRules::V5_10,
    load: LoadRules::V5_10,
    wake: WakeRules::V5_10,
    balance: BalanceRules::V5_10,
    numa: NumaRules::V5_10,
    bandwidth: BandwidthRules::V5_10,
    autogroup: AutogroupRules::V5_10,
    rt: RtRules::V5_10,
    dl: DlRules::V5_10,
    psi: Psi::AtDequeue,
    isolation: IsolationRules::V5_10,
    features: Features::new(FEATURES),
    feature_table: FEATURES,
    structures: Structures::V5_10,
    tunables: sysctl::V5_10,
    ..V5_4
};

/// kernel/sched/features.h of 5.10.262: ALT_PERIOD and BASE_SLICE are of v5.13, and RT_PUSH_IPI was on in v5.10 itself.
const FEATURES: &[(Feature, bool)] = &[
    (Feature::GENTLE_FAIR_SLEEPERS, true),
    (Feature::START_DEBIT, true),
    (Feature::NEXT_BUDDY, false),
    (Feature::LAST_BUDDY, true),
    (Feature::CACHE_HOT_BUDDY, true),
    (Feature::WAKEUP_PREEMPTION, true),
    (Feature::HRTICK, false),
    (Feature::DOUBLE_TICK, false),
    (Feature::NONTASK_CAPACITY, true),
    (Feature::TTWU_QUEUE, true),
    (Feature::SIS_AVG_CPU, false),
    (Feature::SIS_PROP, true),
    (Feature::WARN_DOUBLE_CLOCK, false),
    (Feature::RT_PUSH_IPI, false),
    (Feature::RT_RUNTIME_SHARE, false),
    (Feature::LB_MIN, false),
    (Feature::ATTACH_AGE_LOAD, true),
    (Feature::WA_IDLE, true),
    (Feature::WA_WEIGHT, true),
    (Feature::WA_BIAS, true),
    (Feature::UTIL_EST, true),
    (Feature::UTIL_EST_FASTUP, true),
    (Feature::ALT_PERIOD, true),
    (Feature::BASE_SLICE, true),
];
