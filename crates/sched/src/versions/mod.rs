//! Kernels as values: each is its predecessor with a diff, which reads as a changelog.

mod between;
mod v4_15;
mod v4_16;
mod v4_19;
mod v4_5;
mod v5_10;
mod v5_15;
mod v5_4;
mod v6_1;
mod v6_12;
mod v6_18;
mod v6_6;
mod v7_2;
mod v7_3;

pub use between::{last_read, releases, settle, version};
pub use v4_5::V4_5_RC1;
pub use v4_15::V4_15;
pub use v4_16::V4_16;
pub use v4_19::V4_19;
pub use v5_4::V5_4;
pub use v5_10::V5_10;
pub use v5_15::V5_15;
pub use v6_1::V6_1;
pub use v6_6::V6_6;
pub use v6_12::V6_12;
pub use v6_18::V6_18;
pub use v7_2::V7_2;
pub use v7_3::V7_3;

use crate::autogroup::{AutogroupDefault, AutogroupRules};
use crate::behaviour;
use crate::behaviour::{Rules, Variant};
use crate::core::cgroup::CgroupRules;
use crate::core::class::{BalanceFair, PickOrder};
use crate::core::hrtick::Hrtick;
use crate::core::schedule::{AvgIdle, ScheduleIdle};
use crate::core::{
    AffinityDest, AffinityOffline, CpuAllowed, Hotplug, HotplugDomains, IowaitCount, MoveQueued, ReschedLazy,
    RqOffline, UtilClamp, WakeCpu, WakeCurrent, WakeIfIdle, WakeList, WakeQueue, WakeRunning,
};
use crate::cpufreq::CpufreqRules;
use crate::deadline::DlRules;
use crate::fair::balance::BalanceRules;
use crate::fair::bandwidth::BandwidthRules;
use crate::fair::hrtick::HrtickTasks;
use crate::fair::load::LoadRules;
use crate::fair::numa::NumaRules;
use crate::fair::rules::EntityRules;
use crate::fair::wake::WakeRules;
use crate::features::{Feature, Features};
use crate::isolation::IsolationRules;
use crate::layout::{Layout, LayoutRules, Structures};
use crate::load_weight::LoadResolution;
use crate::pelt::Pelt;
use crate::profile::SleepProfile;
use crate::psi::Psi;
use crate::rt::RtRules;
use crate::stats::{Schedstats, UnseenWait};
use crate::stop_task::StopWait;
use crate::syscalls::{AloneChanged, ChangeOrder, ClassChange, IdleWeight, NiceChange, NiceResched, PolicyChange};
use crate::sysctl::{Sysctl, Tunable, TunableNames, get_update_sysctl_factor, short_name};
use crate::topology::DomainRules;

behaviour! {
    /// Who brings a run queue's clock up to date.
    pub enum ClockUpdate = "core.clock" {
        Enqueue = "enqueue", since "v2.6.23", commit "", "every enqueue and dequeue updates the clock";
        Callers = "callers", since "v4.12", commit "0a67d1ee30ef",
            "who takes the lock updates the clock once and says so (ENQUEUE_NOCLOCK)";
    }
}

/// The differences within core.c itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CoreRules {
    pub clock: ClockUpdate,
    pub wake_list: WakeList,
    pub wake_queue: WakeQueue,
    pub wake_current: WakeCurrent,
    pub wake_running: WakeRunning,
    pub uclamp: UtilClamp,
    pub iowait_count: IowaitCount,
    pub class_change: ClassChange,
    pub change_order: ChangeOrder,
    pub nice_change: NiceChange,
    pub hrtick_tasks: HrtickTasks,
    pub idle_weight: IdleWeight,
    pub nice_resched: NiceResched,
    pub alone_changed: AloneChanged,
    pub pick_order: PickOrder,
    pub balance_fair: BalanceFair,
    pub schedule_idle: ScheduleIdle,
    pub policy_change: PolicyChange,
    pub cpu_allowed: CpuAllowed,
    pub affinity_dest: AffinityDest,
    pub affinity_offline: AffinityOffline,
    pub stop_wait: StopWait,
    pub hotplug: Hotplug,
    pub hotplug_domains: HotplugDomains,
    pub rq_offline: RqOffline,
    pub resched_lazy: ReschedLazy,
    pub wake_if_idle: WakeIfIdle,
    pub wake_cpu: WakeCpu,
    pub hrtick: Hrtick,
    pub avg_idle: AvgIdle,
    pub move_queued: MoveQueued,
}

/// One kernel version: every behaviour that differs between versions, its debug features and its memory layout.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Kernel {
    pub name: &'static str,
    pub core: CoreRules,
    pub load_resolution: LoadResolution,
    pub pelt: Pelt,
    pub domains: DomainRules,
    pub entity: EntityRules,
    pub load: LoadRules,
    pub cpufreq: CpufreqRules,
    pub wake: WakeRules,
    pub balance: BalanceRules,
    pub numa: NumaRules,
    pub bandwidth: BandwidthRules,
    pub cgroup: CgroupRules,
    pub autogroup: AutogroupRules,
    pub rt: RtRules,
    pub dl: DlRules,
    pub isolation: IsolationRules,
    pub schedstats: Schedstats,
    pub unseen_wait: UnseenWait,
    pub psi: Psi,
    pub sleep_profile: SleepProfile,
    pub features: Features,
    /// SCHED_FEAT() with the default of each, in the order of this kernel's features.h: the bits of
    /// sysctl_sched_features.
    pub feature_table: &'static [(Feature, bool)],
    pub tunables: TunableNames,
    pub structures: Structures,
    pub layout: LayoutRules,
}

impl Kernel {
    /// The tunable of that name, with or without its directory (`kernel.`, `sched/`), if this kernel has it.
    pub fn tunable(&self, name: &str) -> Option<(&'static str, Tunable)> {
        self.tunables.iter().copied().find(|(full, _)| *full == name || short_name(full) == name)
    }

    /// Where the kernel's objects are in memory.
    pub fn layout(&self) -> Layout {
        Layout::new(&self.structures, self.layout)
    }

    /// The tunables as this kernel boots with `nr_cpus` CPUs online.
    pub fn sysctl(&self, nr_cpus: usize) -> Sysctl {
        let sched_autogroup_enabled = u64::from(self.autogroup.default == AutogroupDefault::On);
        let sched_rt_runtime = self.rt.runtime_default.sysctl_sched_rt_runtime();
        let sched_base_slice =
            self.entity.base_slice.normalized_sysctl_sched_base_slice() * get_update_sysctl_factor(nr_cpus);
        Sysctl { sched_autogroup_enabled, sched_rt_runtime, sched_base_slice, ..Sysctl::new(nr_cpus) }
    }
}

/// All kernels that were read, the oldest first.
pub const KERNELS: &[Kernel] =
    &[V4_5_RC1, V4_15, V4_16, V4_19, V5_4, V5_10, V5_15, V6_1, V6_6, V6_12, V6_18, V7_2, V7_3];

/// The kernel of that name: one that was read, or a release between two of them.
pub fn kernel(name: &str) -> Option<&'static Kernel> {
    KERNELS.iter().chain(releases()).find(|kernel| kernel.name == name)
}

/// One behaviour of a kernel, for listings, comparisons and switches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Setting {
    pub key: &'static str,
    /// The documentation of the behaviour; its first sentence is the question that its variants answer.
    pub doc: &'static str,
    pub value: &'static Variant,
    pub choices: &'static [Variant],
}

impl Setting {
    /// The question that the variants answer, without its full stop.
    pub fn question(&self) -> String {
        let paragraph = self.doc.split("\n\n").next().unwrap_or_default();
        let words = paragraph.split_whitespace().collect::<Vec<_>>().join(" ").replace(['`', '[', ']'], "");
        words.split(". ").next().unwrap_or_default().trim_end_matches('.').to_string()
    }
}

/// The result of switching a behaviour.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Switched {
    Done,
    /// No behaviour has that key.
    UnknownKey,
    /// The behaviour has no such variant, but these.
    UnknownValue(&'static [Variant]),
}

impl Switched {
    /// For callers who know that key and value exist; `what` is the message if they do not.
    ///
    /// # Panics
    /// Unless the behaviour was switched.
    pub fn expect(self, what: &str) {
        assert_eq!(self, Switched::Done, "{what}");
    }
}

/// The place of each behaviour in [`Kernel`]. A rule that is missing in its room does not compile.
macro_rules! behaviours {
    ($( $alone:ident ),+; $( $room:ident: $rules:ident { $( $field:ident ),* $(,)? } )+) => {
        $( crate::rules!($rules { $( $field ),* }); )+

        impl Rules for Kernel {
            fn settings(&self) -> Vec<Setting> {
                let mut settings = vec![ $( self.$alone.setting() ),+ ];
                $( settings.extend(self.$room.settings()); )+
                settings
            }

            fn set(&mut self, key: &str, value: &str) -> Switched {
                $( if self.$alone.setting().key == key {
                    return self.$alone.switch(value);
                } )+
                let rooms = [ $( &mut self.$room as &mut dyn Rules ),+ ];
                let answers = rooms.into_iter().map(|room| room.set(key, value));
                answers.into_iter().find(|answer| *answer != Switched::UnknownKey).unwrap_or(Switched::UnknownKey)
            }
        }
    };
}

behaviours! {
    load_resolution, pelt, schedstats, unseen_wait, psi, sleep_profile;
    core: CoreRules {
        clock, wake_list, wake_queue, wake_current, wake_running, uclamp, iowait_count, class_change, change_order, nice_change,
        idle_weight, nice_resched, alone_changed, hrtick_tasks, pick_order, balance_fair, schedule_idle,
        policy_change, cpu_allowed, affinity_dest, affinity_offline, stop_wait, hotplug, hotplug_domains, rq_offline,
        resched_lazy, wake_if_idle, hrtick, avg_idle, move_queued, wake_cpu,
    }
    cpufreq: CpufreqRules { update_util, schedutil, sugov_thread, sugov_busy, sugov_remote, sugov_limit }
    rt: RtRules { bandwidth, period_start, period_clock, push_ipi, overload, lowest_choice, fit, statistics, dequeued_wait, switched_to, task, runtime_default }
    dl: DlRules {
        tracking, admission, period_limits, reclaim, overflow, constrained, new_budget, runtime_scale, later_choice, fit,
        prio_changed, switched_to, leave_asleep, offline_migration, rebuild, new_limit, hotplug, cpus_of_rt,
        server_idle, server_counted,
    }
    domains: DomainRules {
        flag_numbering, cluster_level, package_level, node_level, numa_distances, numa_type, reclaim_distance, tuning,
        smt_capacity, degeneration, groups, overlap, overlap_capacity, group_flags, group_cores, busy_cpus,
        asym_capacity, asym_siblings, asym_packing, sibling_rank, imb_numa_nr, highest_flag, relax_domain_level, newidle,
        smt_level, interval_weight, shared, llc_id,
    }
    entity: EntityRules {
        pick, pick_levels, sleeper_vruntime, renormalise, waking_vruntime, min_vruntime_curr, min_vruntime_dequeue, long_sleeper,
        exec_start_reset, idle_sleeper, idle_slice, tick_slice, nr_latency, written_tunables, buddies_cleared, idle_left, group_idle, task_list,
        slice_of, base_slice, new_deadline, equal_deadlines, pick_buddy, yields, idle_preempt, reweight_lag,
        average_weights, lag_limit, delayed_lag, slice_protection, reweight, placed_lag, wakeup_preempt,
    }
    load: LoadRules {
        group_shares, leaf_list, migration_detach, util_est, new_task_attach, new_task_util, new_task_cap, migrate_lag, tg_load_avg, sum_floor, offline, blocked_news, other_classes,
        clock, frequency, lost_idle,
    }
    wake: WakeRules {
        record_wakee, wake_cap, sync_exit, wake_affine, idle_waker, idle_previous, cpu_load, equal_weight, affine_count,
        idle_sibling, scan_gate, scan_budget, cluster_scan, asym_idle, sched_idle_cpu, kthread_stacking, energy, energy_smt, recent_used_cpu,
        isolated_waker, core_threads, previous_sibling, idlest_group, idlest_stats, idlest_ties, idlest_averages, idlest_measure, idlest_node, spare_capacity, disallowed_local_group, slow_path_start, slow_path_util, single_cpu_group, empty_scan,
    }
    balance: BalanceRules {
        mechanism, detach_order, newidle_detach, all_pinned, active_balance, prefer_sibling, asym_packing, packing_pull, nothing_to_move,
        higher_capacity, force_balance, above_capacity, above_average, tickless_load, decayed_queues, sibling_imbalance,
        prefer_sibling_of, smt_balance, misfits, misfit_status, misfit_load, asym_compare, sole_task, reduced_capacity, empty_queues, busiest_util, util_pull, detach_bound, util_bound,
        active_balance_reason,
        active_balance_force, active_balance_interval, sibling_hot, hot_statistics, dst_group, imbalance_flag,
        misfit_failures, one_pinned, detach_limit, per_cpu_kthreads, should_we_balance, newidle_bail, newidle_gate, newidle_cost,
        newidle_decay, newidle_due, newidle_stop, newidle_interval, busy_interval, idle_policy_cpu, nohz, nohz_news, kicked_resched, new_ilb,
        kick_ilb, delayed_tasks, ineligible_tasks, counted_tasks, energy_overload, serialized, newidle_averages,
        newidle_odds, nohz_count, cache, cache_packing,
    }
    numa: NumaRules {
        active_nodes, scan_bounds, scan_adjust, scan_reset, locality_reset, early_migration, placement, preference,
        destination, second_choice, nearby_nodes, locality, new_threads, first_scan, first_migration, scan_areas, memory_nodes,
        equal_locality, swap_partners,
    }
    autogroup: AutogroupRules { default, exit }
    isolation: IsolationRules { can_stop, residual, stopped, idle_exit, timer_target, any_housekeeper, kthreads, ilb, boot_masks }
    cgroup: CgroupRules { files, nice_time, quota_above, wait_sum }
    layout: LayoutRules { tg_load_avg, task_group_cache, percpu_areas }
    bandwidth: BandwidthRules {
        expiry, refill, distribute, throttle_asks, throttle_levels, throttled_accounting, slack_timer, period_overrun,
        period_offset, throttled_leaf, throttled_clock, throttled_time, new_group_throttled, move_running,
        throttle, unthrottle_offline,
    }
}

/// The differences between two kernels: each behaviour as in the first and as in the second.
pub fn diff(a: &Kernel, b: &Kernel) -> Vec<(Setting, Setting)> {
    a.settings().into_iter().zip(b.settings()).filter(|(a, b)| a.value != b.value).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_are_found_by_name_and_only_built_ones() {
        let names: Vec<_> = KERNELS.iter().map(|k| k.name).collect();
        assert_eq!(
            names,
            [
                "v4.5-rc1", "v4.15", "v4.16", "v4.19", "v5.4", "v5.10", "v5.15", "v6.1", "v6.6", "v6.12", "v6.18",
                "v7.2", "v7.3"
            ]
        );
        assert_eq!(kernel("v4.16"), Some(&V4_16));
        assert_eq!(kernel("v4.5"), None);
    }

    #[test]
    fn keys_are_unique_and_values_are_among_the_choices() {
        for kernel in KERNELS {
            let settings = kernel.settings();
            let mut keys: Vec<_> = settings.iter().map(|s| s.key).collect();
            keys.sort_unstable();
            keys.dedup();
            assert_eq!(keys.len(), settings.len());
            for setting in settings {
                assert!(setting.choices.contains(setting.value), "{}", setting.key);
            }
        }
    }

    /// A rule that no list of settings contains could never be compared or switched.
    #[test]
    fn every_behaviour_is_listed() {
        // Setting each behaviour of one kernel to the other's value makes both equal, except for what is not a
        // behaviour.
        for target in KERNELS {
            let mut kernel = V4_5_RC1;
            for setting in target.settings() {
                assert_eq!(kernel.set(setting.key, setting.value.name), Switched::Done);
            }
            let Kernel { name, features, feature_table, tunables, structures, .. } = *target;
            let same = Kernel { name, features, feature_table, tunables, structures, ..kernel };
            assert_eq!(same, *target);
        }
    }

    #[test]
    fn switching_tells_a_wrong_key_from_a_wrong_value() {
        let mut kernel = V4_5_RC1;
        assert_eq!(kernel.set("core.clock", "callers"), Switched::Done);
        assert_eq!(kernel.core.clock, ClockUpdate::Callers);
        assert_eq!(kernel.set("core.cloc", "callers"), Switched::UnknownKey);
        assert_eq!(kernel.set("core.clock", "caller"), Switched::UnknownValue(ClockUpdate::VARIANTS));
        let changed = diff(&V4_5_RC1, &kernel);
        let [(before, after)] = changed[..] else { panic!("one behaviour differs, not {changed:?}") };
        assert_eq!((before.key, before.value.name, after.value.name), ("core.clock", "enqueue", "callers"));
    }

    #[test]
    fn features_are_each_versions_own() {
        assert!(!V4_5_RC1.features.has(Feature::SIS_PROP) && V4_15.features.sched_feat(Feature::SIS_PROP));
        assert!(V4_5_RC1.features.has(Feature::FORCE_SD_OVERLAP) && !V4_16.features.has(Feature::FORCE_SD_OVERLAP));
        assert_eq!(V4_5_RC1.features.iter().count(), 16);
        assert_eq!(V4_16.features.iter().count(), 21);
    }
}
