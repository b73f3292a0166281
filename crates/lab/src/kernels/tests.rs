//! Each kernel against what its behaviours say of themselves.

use super::*;
use sched::behaviour::Variant;
use std::cmp::Ordering;

/// What the long-term releases have that is newer than they are.
const BACKPORTED: &[(&str, &[&str])] = &[
    ("v4.16", &["rt.period_clock"]),
    (
        "v4.19",
        &[
            "frequency.sugov_remote",
            "dl.offline_migration",
            "balance.imbalance_flag",
            "balance.newidle_interval",
            "balance.new_ilb",
            "tick.ilb",
            "bandwidth.expiry",
            "bandwidth.throttled_accounting",
            "bandwidth.period_overrun",
            "bandwidth.throttled_leaf",
            "tcp.default_buffer",
            "tcp.grow_window",
        ],
    ),
    (
        "v5.4",
        &[
            "load_resolution",
            "frequency.sugov_remote",
            "domains.numa_distances",
            "domains.relax_domain_level",
            "entity.long_sleeper",
            "entity.leaf_list",
            "load.blocked_news",
            "balance.dst_group",
            "balance.per_cpu_kthreads",
            "balance.nohz",
            "bandwidth.throttle_asks",
            "bandwidth.period_overrun",
            "bandwidth.move_running",
            "tcp.full_segment",
            "tcp.quick_ack",
        ],
    ),
    (
        "v5.10",
        &[
            "core.idle_weight",
            "core.policy_change",
            "rt.push_ipi",
            "domains.numa_distances",
            "domains.relax_domain_level",
            "entity.long_sleeper",
            "entity.exec_start_reset",
            "load.util_est",
            "load.blocked_news",
            "load.lost_idle",
            "wake.idlest_stats",
            "balance.above_average",
            "balance.util_bound",
            "balance.dst_group",
            "balance.per_cpu_kthreads",
            "balance.nohz",
            "balance.kicked_resched",
            "idle.menu_rejected",
            "idle.tick_unchosen",
            "tcp.full_segment",
            "tcp.quick_ack",
            "tcp.pingpong",
            "epoll.wakeup",
            "frequency.at_limit",
            "frequency.acpi_boost",
            "frequency.limits_step",
        ],
    ),
    (
        "v5.15",
        &[
            "core.wake_queue",
            "entity.long_sleeper",
            "entity.exec_start_reset",
            "wake.affine_count",
            "balance.above_average",
            "tcp.full_segment",
            "tcp.quick_ack",
            "tcp.pingpong",
            "frequency.table_limits",
        ],
    ),
    (
        "v6.1",
        &[
            "psi.accounting",
            "stats.sleep_profile",
            "core.idle_weight",
            "rt.push_ipi",
            "domains.relax_domain_level",
            "domains.newidle_history",
            "entity.long_sleeper",
            "entity.exec_start_reset",
            "load.lost_idle",
            "wake.affine_count",
            "wake.recent_used_cpu",
            "wake.core_threads",
            "wake.idlest_stats",
            "balance.above_average",
            "balance.asym_compare",
            "balance.util_bound",
            "balance.hot_statistics",
            "balance.dst_group",
            "balance.kicked_resched",
            "idle.menu_rejected",
            "idle.tick_unchosen",
            "timer.slack",
            "tcp.full_segment",
            "tcp.quick_ack",
            "epoll.wakeup",
            "frequency.at_limit",
            "frequency.limits_step",
        ],
    ),
    (
        "v6.12",
        &[
            "core.wake_queue",
            "rt.push_ipi",
            "dl.new_limit",
            "domains.newidle_history",
            "entity.base_slice",
            "entity.pick_buddy",
            "entity.yield",
            "entity.idle_preempt",
            "entity.group_shares",
            "load.lost_idle",
            "wake.energy",
            "wake.idlest_stats",
            "balance.asym_compare",
            "balance.hot_statistics",
            "balance.kicked_resched",
            "numa.locality_reset",
            "cgroup.nice_time",
            "idle.menu_rejected",
            "tcp.payload",
            "epoll.wakeup",
            "frequency.deferred_steps",
            "frequency.at_limit",
            "frequency.limits_step",
        ],
    ),
    (
        "v6.18",
        &[
            "rt.push_ipi",
            "domains.newidle_history",
            "domains.interval_weight",
            "entity.yield",
            "entity.lag_limit",
            "entity.wakeup_preempt",
            "balance.serialized",
            "tcp.rcvbuf_growth",
            "frequency.limits_step",
        ],
    ),
    ("v7.2", &["balance.asym_compare"]),
];
/// What is as in an older kernel: it came back (`wake.wake_cap`, `idle.menu`), a long-term release alone has the newer
/// (`numa.locality_reset`), or the kernel is built so.
const AS_BEFORE: &[(&str, &[&str])] = &[
    ("v5.4", &["idle.governor"]),
    ("v5.10", &["idle.governor"]),
    ("v5.15", &["autogroup.default", "idle.governor"]),
    ("v6.1", &["wake.previous_sibling", "balance.detach_limit", "idle.governor"]),
    ("v6.6", &["autogroup.default", "idle.governor"]),
    ("v6.12", &["psi.accounting", "autogroup.default", "idle.governor"]),
    ("v6.18", &["autogroup.default", "idle.governor", "idle.menu"]),
    ("v7.2", &["autogroup.default", "idle.governor"]),
    ("v7.3", &["autogroup.default", "idle.governor"]),
];

#[test]
fn every_kernel_of_the_scheduler_is_a_whole_one() {
    for name in names() {
        let mut build = Build::named(name).unwrap_or_else(|| panic!("{name} is missing in ELSEWHERE"));
        for setting in build.settings() {
            assert_eq!(build.set(setting.key, setting.value.name), Switched::Done, "{}", setting.key);
        }
        assert_eq!(Build::named(name), Some(build));
    }
}

#[test]
fn kernels_have_of_each_behaviour_the_newest_variant_that_is_not_newer_than_they_are() {
    let (mut newer, mut older) = (Vec::new(), Vec::new());
    for name in names() {
        let of_kernel = version(name);
        for setting in Build::named(name).expect("a kernel").settings() {
            let releases = |variant: &Variant| {
                let all = std::iter::once(variant.since).chain(variant.again.iter().copied());
                all.map(version).filter(|came| *came <= of_kernel).max()
            };
            let newest = setting.choices.iter().filter_map(releases).max();
            // Where the kernel has nothing of what is asked, the first answer is as good as any.
            let newest = newest.unwrap_or(version(setting.choices[0].since));
            let own = releases(setting.value).unwrap_or(version(setting.value.since));
            match own.cmp(&newest) {
                Ordering::Less => older.push((name, setting.key)),
                Ordering::Equal => {}
                Ordering::Greater => newer.push((name, setting.key)),
            }
        }
    }
    let flat = |of: &[(&'static str, &[&'static str])]| {
        of.iter().flat_map(|(name, keys)| keys.iter().map(|key| (*name, *key))).collect::<Vec<_>>()
    };
    assert_eq!((newer, older), (flat(BACKPORTED), flat(AS_BEFORE)));
}

#[test]
fn releases_between_have_what_mainline_had() {
    let of = |name: &str, key: &str| {
        let build = Build::named(name).unwrap_or_else(|| panic!("{name}"));
        build.settings().into_iter().find(|setting| setting.key == key).expect("a behaviour").value.name
    };
    assert_eq!(["v6.2", "v6.3", "v6.5"].map(|name| of(name, "entity.tick_slice")), ["whole", "latency", "latency"]);
    // 6.1.192 has it, which v6.2 has not.
    assert_eq!(
        ["v6.1", "v6.2", "v6.3"].map(|name| of(name, "balance.above_average")),
        ["nothing", "busiest-surplus", "nothing"]
    );
    // What came back.
    assert_eq!(
        ["v6.0", "v6.8", "v6.9"].map(|name| of(name, "wake.previous_sibling")),
        ["of-domain", "any", "of-domain"]
    );
    let models = |name| Build::named(name).expect("a kernel").preempt_models.len();
    assert_eq!(["v6.11", "v6.13", "v6.19", "v7.0"].map(models), [3, 4, 4, 2]);
    assert_eq!(Build::named("v6.9").unwrap().formats, Build::named("v6.6").unwrap().formats);
    assert_eq!(Build::named("v6.12").unwrap().not_read_whole(), None);
    let told = Build::named("v6.2").unwrap().not_read_whole().expect("a caution");
    assert!(told.starts_with("v6.2 was not read whole: it is v6.1 with "), "{told}");
}

#[test]
fn every_release_between_is_a_whole_one() {
    for release in versions::releases() {
        let mut build = Build::named(release.name).expect("a kernel");
        assert!(!build.was_read() && build.preempt_models.contains(&build.os.preempt), "{}", release.name);
        for setting in build.settings() {
            assert_eq!(build.set(setting.key, setting.value.name), Switched::Done, "{}", setting.key);
        }
        assert_eq!(Build::named(release.name), Some(build));
    }
}

#[test]
fn keys_are_unique_across_rooms() {
    let build = Build::named("v4.5-rc1").unwrap();
    let mut keys: Vec<&str> = build.settings().iter().map(|setting| setting.key).collect();
    let count = keys.len();
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(keys.len(), count);
    let changed = diff(&build, &Build::named("v4.15").unwrap());
    assert!(changed.iter().any(|(a, b)| a.key == "idle.menu" && b.value.name == "next-timer"));
}

#[test]
fn x86_has_lazy_preemption_beside_the_others_and_then_instead_of_them() {
    let models = |name| {
        let build = Build::named(name).unwrap();
        (build.os.preempt.name(), build.preempt_models.iter().map(|model| model.name()).collect::<Vec<_>>().join(" "))
    };
    assert_eq!(models("v4.5-rc1"), ("none", "none voluntary full".to_string()));
    assert_eq!(models("v6.12"), ("voluntary", "none voluntary full".to_string()));
    assert_eq!(models("v6.18"), ("lazy", "none voluntary full lazy".to_string()));
    assert_eq!(models("v7.2"), ("lazy", "full lazy".to_string()));
    assert_eq!(models("v7.3"), ("lazy", "full lazy".to_string()));
}

#[test]
fn kernels_without_a_build_are_refused_by_name() {
    let error = Build::choose(&Written::option("--arm", "v4.51")).unwrap_err().to_string();
    assert!(
        error.contains("the unknown kernel `v4.51`; expected `v4.19` or `v5.4`, the nearest of v4.5-rc1,"),
        "{error}"
    );
    let expected = |name: &str| Build::choose(&Written::option("--arm", name)).unwrap_err().expected;
    assert!(expected("6.12").starts_with("`v6.12` or `v6.18`"));
    assert!(expected("v4.4").starts_with("`v4.5-rc1`, the nearest"));
    assert!(expected("v4.5").starts_with("`v4.5-rc1` or `v4.15`, the nearest"));
    assert!(
        expected("v9.0").starts_with("`v7.3`, the nearest of") && expected("mainline").starts_with("one of v4.5-rc1,")
    );
}
