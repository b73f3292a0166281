//! The releases between kernels that were read: each is the kernel before it with what has come since.
//!
//! Of a kernel in [`KERNELS`] a whole source tree was read. Of a release between two of them only the differences are
//! known: each variant says which release has it first ([`Variant::releases`]), and the tables below say the same of
//! features and tunables. What came and went between two kernels without being a variant is missing. The structures,
//! and so the lines that members share, are those of the kernel before.

use super::{KERNELS, Kernel, Setting};
use crate::behaviour::{Rules, Variant};
use crate::features::{Feature, Features};
use crate::sysctl::Tunable;
use std::sync::LazyLock;

/// Mainline's releases between the first and the last kernel that was read, without those that were.
const RELEASES: &[&str] = &[
    "v4.6", "v4.7", "v4.8", "v4.9", "v4.10", "v4.11", "v4.12", "v4.13", "v4.14", "v4.17", "v4.18", "v4.20", "v5.0",
    "v5.1", "v5.2", "v5.3", "v5.5", "v5.6", "v5.7", "v5.8", "v5.9", "v5.11", "v5.12", "v5.13", "v5.14", "v5.16",
    "v5.17", "v5.18", "v5.19", "v6.0", "v6.2", "v6.3", "v6.4", "v6.5", "v6.7", "v6.8", "v6.9", "v6.10", "v6.11",
    "v6.13", "v6.14", "v6.15", "v6.16", "v6.17", "v6.19", "v7.0", "v7.1",
];

/// Behaviours that are a choice of who builds a kernel, and so the same until another kernel that was read.
const CHOICES: &[&str] = &["autogroup.default", "idle.governor", "balance.newidle_detach"];

/// The lines of features.h that came or changed, with their default, or went (`None`), in mainline's releases, in their order: from
/// features.h of trees of most releases. What none of them tells apart is from the commit's date.
const FEATURES: &[(&str, Feature, Option<bool>)] = &[
    ("v4.11", Feature::SIS_AVG_CPU, Some(false)),
    ("v4.12", Feature::WARN_DOUBLE_CLOCK, Some(false)),
    ("v4.13", Feature::SIS_PROP, Some(true)),
    ("v4.13", Feature::FORCE_SD_OVERLAP, None),
    ("v4.14", Feature::WA_IDLE, Some(true)),
    ("v4.14", Feature::WA_WEIGHT, Some(true)),
    ("v4.14", Feature::WA_BIAS, Some(true)),
    ("v4.17", Feature::UTIL_EST, Some(true)),
    ("v4.20", Feature::LB_BIAS, Some(false)),
    ("v5.3", Feature::LB_BIAS, None),
    ("v5.5", Feature::UTIL_EST_FASTUP, Some(true)),
    ("v5.10", Feature::RT_RUNTIME_SHARE, Some(false)),
    ("v5.12", Feature::SIS_AVG_CPU, None),
    ("v5.12", Feature::HRTICK_DL, Some(false)),
    ("v5.13", Feature::ALT_PERIOD, Some(true)),
    ("v5.13", Feature::BASE_SLICE, Some(true)),
    ("v5.13", Feature::LATENCY_WARN, Some(false)),
    ("v6.0", Feature::SIS_PROP, Some(false)),
    ("v6.0", Feature::SIS_UTIL, Some(true)),
    ("v6.6", Feature::PLACE_LAG, Some(true)),
    ("v6.6", Feature::PLACE_DEADLINE_INITIAL, Some(true)),
    ("v6.6", Feature::RUN_TO_PARITY, Some(true)),
    ("v6.6", Feature::HZ_BW, Some(true)),
    ("v6.6", Feature::GENTLE_FAIR_SLEEPERS, None),
    ("v6.6", Feature::START_DEBIT, None),
    ("v6.6", Feature::LAST_BUDDY, None),
    ("v6.6", Feature::ALT_PERIOD, None),
    ("v6.6", Feature::BASE_SLICE, None),
    ("v6.7", Feature::SIS_PROP, None),
    ("v6.8", Feature::UTIL_EST_FASTUP, None),
    ("v6.12", Feature::HZ_BW, None),
    ("v6.12", Feature::PLACE_REL_DEADLINE, Some(true)),
    ("v6.12", Feature::PREEMPT_SHORT, Some(true)),
    ("v6.12", Feature::DELAY_DEQUEUE, Some(true)),
    ("v6.12", Feature::DELAY_ZERO, Some(true)),
    ("v6.13", Feature::DOUBLE_TICK, None),
    ("v6.14", Feature::PICK_BUDDY, Some(true)),
    ("v6.19", Feature::NI_RANDOM, Some(true)),
    ("v7.1", Feature::HRTICK, Some(true)),
    ("v7.1", Feature::HRTICK_DL, Some(true)),
    ("v7.1", Feature::NI_RATE, Some(true)),
    ("v7.1", Feature::PARANOID_AVG, Some(false)),
    ("v7.2", Feature::RT_PUSH_IPI, Some(false)),
];

/// The same of tunables. Their names changed as they moved to debugfs.
const TUNABLES: &[(&str, &str, Option<Tunable>)] = &[
    ("v4.10", "kernel.sched_itmt_enabled", Some(Tunable::sched_itmt_enabled)),
    ("v4.19", "kernel.sched_time_avg_ms", None),
    ("v5.1", "kernel.sched_energy_aware", Some(Tunable::sched_energy_aware)),
    ("v5.3", "kernel.sched_util_clamp_min", Some(Tunable::sched_uclamp_util_min)),
    ("v5.3", "kernel.sched_util_clamp_max", Some(Tunable::sched_uclamp_util_max)),
    ("v5.9", "kernel.sched_util_clamp_min_rt_default", Some(Tunable::sched_uclamp_util_min_rt_default)),
    ("v5.9", "kernel.sched_deadline_period_max_us", Some(Tunable::sched_dl_period_max)),
    ("v5.9", "kernel.sched_deadline_period_min_us", Some(Tunable::sched_dl_period_min)),
    ("v5.13", "kernel.sched_latency_ns", None),
    ("v5.13", "sched/latency_ns", Some(Tunable::sched_latency)),
    ("v5.13", "kernel.sched_min_granularity_ns", None),
    ("v5.13", "sched/min_granularity_ns", Some(Tunable::sched_min_granularity)),
    ("v5.13", "kernel.sched_wakeup_granularity_ns", None),
    ("v5.13", "sched/wakeup_granularity_ns", Some(Tunable::sched_wakeup_granularity)),
    ("v5.13", "kernel.sched_migration_cost_ns", None),
    ("v5.13", "sched/migration_cost_ns", Some(Tunable::sched_migration_cost)),
    ("v5.13", "kernel.sched_nr_migrate", None),
    ("v5.13", "sched/nr_migrate", Some(Tunable::sched_nr_migrate)),
    ("v5.13", "kernel.numa_balancing_scan_delay_ms", None),
    ("v5.13", "sched/numa_balancing/scan_delay_ms", Some(Tunable::numa_balancing_scan_delay)),
    ("v5.13", "kernel.numa_balancing_scan_period_min_ms", None),
    ("v5.13", "sched/numa_balancing/scan_period_min_ms", Some(Tunable::numa_balancing_scan_period_min)),
    ("v5.13", "kernel.numa_balancing_scan_period_max_ms", None),
    ("v5.13", "sched/numa_balancing/scan_period_max_ms", Some(Tunable::numa_balancing_scan_period_max)),
    ("v5.13", "kernel.numa_balancing_scan_size_mb", None),
    ("v5.13", "sched/numa_balancing/scan_size_mb", Some(Tunable::numa_balancing_scan_size)),
    ("v5.16", "sched/idle_min_granularity_ns", Some(Tunable::sched_idle_min_granularity)),
    ("v6.6", "sched/latency_ns", None),
    ("v6.6", "sched/min_granularity_ns", None),
    ("v6.6", "sched/idle_min_granularity_ns", None),
    ("v6.6", "sched/wakeup_granularity_ns", None),
    ("v6.6", "sched/base_slice_ns", Some(Tunable::sched_base_slice)),
    ("v6.7", "kernel.sched_child_runs_first", None),
    ("v6.14", "kernel.sched_itmt_enabled", None),
    ("v6.14", "x86/sched_itmt_enabled", Some(Tunable::sched_itmt_enabled)),
];

static BETWEEN: LazyLock<Vec<Kernel>> = LazyLock::new(|| RELEASES.iter().copied().map(between).collect());

/// The releases between kernels that were read, the oldest first.
pub fn releases() -> &'static [Kernel] {
    &BETWEEN
}

/// What `v4.16`, `v4.5-rc1`, `6.18.44-fc`, `6.8+` or `v6.1.y` (a long-term release) is a version of; `None` for other
/// words.
pub fn version(name: &str) -> Option<(u32, u32)> {
    let mut parts =
        name.trim_start_matches('v').split(|letter: char| !letter.is_ascii_digit()).map(|part| part.parse().ok());
    Some((parts.next()??, parts.next()??))
}

/// The newest kernel that was read and is not newer than the one of that name; `None` if all are newer, or for other
/// words.
pub fn last_read(name: &str) -> Option<&'static Kernel> {
    let wanted = version(name)?;
    KERNELS.iter().rfind(|kernel| version(kernel.name) <= Some(wanted))
}

/// The variant that a release has: the one that came last.
fn as_of(setting: &Setting, release: (u32, u32)) -> &'static Variant {
    if CHOICES.contains(&setting.key) {
        return setting.value;
    }
    let came = |variant: &Variant| variant.releases().filter(|&came| came <= release).max();
    let last = setting.choices.iter().filter_map(came).max();
    let newest = || setting.choices.iter().rfind(|variant| came(variant) == last);
    // What is asked for may be in none, and of two that came with one release the one is here that was read.
    if last.is_none() || came(setting.value) == last { setting.value } else { newest().unwrap_or(setting.value) }
}

/// Switches each behaviour to what a release of mainline has.
///
/// # Panics
/// If that is no release's name.
pub fn settle(rules: &mut dyn Rules, release: &str) {
    let wanted = version(release).expect("a release");
    for setting in rules.settings() {
        let variant = as_of(&setting, wanted);
        if variant != setting.value {
            rules.set(setting.key, variant.name).expect("a variant of that behaviour");
        }
    }
}

/// A table of the kernel before a release with some changes: `None` takes a row out. New rows come where the next
/// kernel has them.
fn changed<K: Copy + PartialEq, V: Copy>(
    before: &[(K, V)],
    after: &[(K, V)],
    changes: impl Iterator<Item = (K, Option<V>)>,
) -> Vec<(K, V)> {
    let mut table = before.to_vec();
    for (key, value) in changes {
        match (value, table.iter().position(|row| row.0 == key)) {
            (None, Some(at)) => _ = table.remove(at),
            (None, None) => {}
            (Some(value), Some(at)) => table[at].1 = value,
            (Some(value), None) => {
                let earlier = after.iter().rev().skip_while(|row| row.0 != key).skip(1);
                let place = |row: &(K, V)| table.iter().position(|other| other.0 == row.0);
                let at = earlier.filter_map(place).next().map_or(0, |at| at + 1);
                let known = after.iter().any(|row| row.0 == key);
                table.insert(if known { at } else { table.len() }, (key, value));
            }
        }
    }
    table
}

/// The rows of a table up to a release.
fn up_to<K: Copy, V: Copy>(
    table: &'static [(&str, K, Option<V>)],
    release: &str,
) -> impl Iterator<Item = (K, Option<V>)> {
    let wanted = version(release);
    table.iter().filter(move |row| version(row.0) <= wanted).map(|row| (row.1, row.2))
}

fn between(name: &'static str) -> Kernel {
    let mut kernel = Kernel { name, ..*last_read(name).expect("the first kernel is older") };
    settle(&mut kernel, name);
    let [first, .., last] = KERNELS else { unreachable!("there are two kernels") };
    let next = KERNELS.iter().find(|next| version(next.name) > version(name)).unwrap_or(last);
    kernel.feature_table = changed(first.feature_table, next.feature_table, up_to(FEATURES, name)).leak();
    kernel.features = Features::new(kernel.feature_table);
    kernel.tunables = changed(first.tunables, next.tunables, up_to(TUNABLES, name)).leak();
    kernel
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn names_lie_between_kernels_that_were_read() {
        let [first, .., last] = KERNELS else { unreachable!() };
        for release in RELEASES {
            assert!(version(first.name) < version(release) && version(release) < version(last.name), "{release}");
            assert!(KERNELS.iter().all(|kernel| version(kernel.name) != version(release)), "{release}");
        }
        assert!(RELEASES.is_sorted_by_key(|release| version(release)));
        assert_eq!(last_read("v6.11").map(|kernel| kernel.name), Some("v6.6"));
        assert_eq!(last_read("v4.4"), None);
    }

    /// Features and tunables of the kernels that were read are mainline's, but for what late releases of long-term branches
    /// have that is newer.
    #[test]
    fn features_and_tunables_lead_to_each_kernel_that_was_read() {
        const LATER: &[(&str, &str)] = &[
            ("v5.4", "RT_RUNTIME_SHARE"),
            ("v5.10", "ALT_PERIOD"),
            ("v5.10", "BASE_SLICE"),
            ("v5.10", "RT_PUSH_IPI"),
            ("v5.15", "SIS_PROP"),
            ("v5.15", "SIS_UTIL"),
            ("v6.1", "NI_RANDOM"),
            ("v6.1", "RT_PUSH_IPI"),
            ("v6.12", "NI_RANDOM"),
            ("v6.12", "PICK_BUDDY"),
            ("v6.12", "RT_PUSH_IPI"),
            ("v6.18", "NI_RANDOM"),
        ];
        let mut others = Vec::new();
        for kernel in KERNELS {
            let table: BTreeMap<&str, bool> =
                kernel.feature_table.iter().map(|(feature, on)| (feature.name(), *on)).collect();
            let mainline = changed(KERNELS[0].feature_table, kernel.feature_table, up_to(FEATURES, kernel.name));
            let mainline: BTreeMap<&str, bool> = mainline.iter().map(|(feature, on)| (feature.name(), *on)).collect();
            let names = table.keys().chain(mainline.keys()).collect::<std::collections::BTreeSet<_>>();
            let differs = names.into_iter().filter(|name| table.get(**name) != mainline.get(**name));
            others.extend(differs.map(|name| (kernel.name, *name)));
            // No release follows that needs what is new in the last two.
            if version(kernel.name) >= version("v7.2") {
                continue;
            }
            let mut tunables = kernel.tunables.to_vec();
            let mut of_release = changed(KERNELS[0].tunables, kernel.tunables, up_to(TUNABLES, kernel.name));
            tunables.sort_unstable_by_key(|row| row.0);
            of_release.sort_unstable_by_key(|row| row.0);
            let of_release = of_release.iter().map(|row| row.0).collect::<Vec<_>>();
            assert_eq!(tunables.iter().map(|row| row.0).collect::<Vec<_>>(), of_release, "{}", kernel.name);
        }
        assert_eq!(others, LATER);
    }
}
