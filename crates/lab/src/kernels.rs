//! Whole kernels: the scheduler's version, and what the same source tree does outside kernel/sched.

use crate::mistake::{Mistake, Written, listed};
use machine::frequency::FrequencyRules;
use machine::idle::IdleRules;
use observe::proc::Formats;
use os::OsRules;
use os::fs::FsRules;
use os::hrtimer::PassedSleep;
use os::irq::IrqRules;
use os::memory::MigrationLimit;
use os::pipe::{PipePages, PipePolled, PipeRoom, PipeRules, PipeSlots};
use os::preempt::Preempt;
use os::workqueue::{UnboundPods, WorkerCounts, WorkerWakeup};
use sched::fair::balance::NewidleDetach;
use sched::versions::{self, Kernel, Setting, Switched};

/// A kernel build: all behaviours that differ between versions, under one set of keys.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Build {
    pub sched: Kernel,
    pub os: OsRules,
    pub idle: IdleRules,
    pub irq: IrqRules,
    pub fs: FsRules,
    pub frequency: FrequencyRules,
    /// PREEMPT_DYNAMIC (v5.12): the command line chooses the preemption model, which `os` holds.
    pub preempt_dynamic: bool,
    /// The preemption models that it can be built with, or be given on the command line.
    pub preempt_models: &'static [Preempt],
    /// The formats of its files.
    pub formats: Formats,
}

/// What each version does outside kernel/sched, and how it is built.
const ELSEWHERE: &[(&str, OsRules, IdleRules, IrqRules, FsRules, FrequencyRules, Formats)] = &[
    ("v4.5-rc1", OsRules::V4_5, IdleRules::V4_5, IrqRules::V4_5, FsRules::V4_5, FrequencyRules::V4_5, Formats::V4_5),
    ("v4.15", OsRules::V4_15, IdleRules::V4_15, IrqRules::V4_15, FsRules::V4_5, FrequencyRules::V4_15, Formats::V4_15),
    ("v4.16", OsRules::V4_16, IdleRules::V4_15, IrqRules::V4_16, FsRules::V4_16, FrequencyRules::V4_16, Formats::V4_15),
    ("v5.4", OsRules::V5_4, IdleRules::V5_4, IrqRules::V5_4, FsRules::V5_4, FrequencyRules::V5_4, Formats::V5_4),
    ("v5.10", OsRules::V5_10, IdleRules::V5_10, IrqRules::V5_4, FsRules::V5_10, FrequencyRules::V5_10, Formats::V5_10),
    ("v5.15", OsRules::V5_15, IdleRules::V5_15, IrqRules::V5_4, FsRules::V5_10, FrequencyRules::V5_15, Formats::V5_15),
    ("v6.1", OsRules::V6_1, IdleRules::V6_1, IrqRules::V6_1, FsRules::V5_10, FrequencyRules::V6_1, Formats::V6_1),
    ("v6.6", OsRules::V6_6, IdleRules::V6_6, IrqRules::V6_6, FsRules::V5_10, FrequencyRules::V6_6, Formats::V6_6),
    ("v6.12", OsRules::V6_12, IdleRules::V6_12, IrqRules::V6_12, FsRules::V5_10, FrequencyRules::V6_12, Formats::V6_12),
    ("v6.18", OsRules::V6_18, IdleRules::V6_18, IrqRules::V6_12, FsRules::V5_10, FrequencyRules::V6_18, Formats::V6_18),
    ("v7.2", OsRules::V7_2, IdleRules::V7_2, IrqRules::V7_2, FsRules::V5_10, FrequencyRules::V7_2, Formats::V7_2),
    ("v7.3", OsRules::V7_3, IdleRules::V7_2, IrqRules::V7_2, FsRules::V5_10, FrequencyRules::V7_3, Formats::V7_3),
];

/// Kernels without PREEMPT_DYNAMIC. v5.15 knows it (since v5.12), but only a build with PREEMPT has it: `preempt=` could
/// choose there, and not in the VOLUNTARY one that distributions made. So here the model is that of the build.
const WITHOUT_PREEMPT_DYNAMIC: &[&str] = &["v4.5-rc1", "v4.15", "v4.16", "v5.4", "v5.10", "v5.15"];

/// kernel/Kconfig.preempt: the choices that x86 has in a kernel and in those after it. Lazy preemption came with v6.13,
/// and v7.0 left only one model beside it.
const PREEMPT_MODELS: &[(&str, &[Preempt])] = &[
    ("v4.5-rc1", &[Preempt::None, Preempt::Voluntary, Preempt::Full]),
    ("v6.18", &[Preempt::None, Preempt::Voluntary, Preempt::Full, Preempt::Lazy]),
    ("v7.2", &[Preempt::Full, Preempt::Lazy]),
];

/// Those of one kernel.
fn preempt_models(name: &str) -> &'static [Preempt] {
    let age = |name: &str| names().position(|kernel| kernel == name);
    let known = PREEMPT_MODELS.iter().rev().find(|(since, _)| age(since) <= age(name));
    known.expect("the oldest kernel has some").1
}

impl Build {
    /// The kernel of that name, if it is built.
    pub fn named(name: &str) -> Option<Build> {
        let sched = *versions::kernel(name)?;
        let &(_, os, idle, irq, fs, frequency, formats) = ELSEWHERE.iter().find(|(kernel, ..)| *kernel == name)?;
        let preempt_dynamic = !WITHOUT_PREEMPT_DYNAMIC.contains(&name);
        let preempt_models = preempt_models(name);
        Some(Build { sched, os, idle, irq, fs, frequency, preempt_dynamic, preempt_models, formats })
    }

    /// Gives it another preemption model. If that is a choice of the build, it also decides what CONFIG_PREEMPT
    /// compiles into the scheduler.
    pub fn set_preempt(&mut self, preempt: Preempt) {
        self.os.preempt = preempt;
        if !self.preempt_dynamic {
            self.sched.balance.newidle_detach =
                if preempt == Preempt::Full { NewidleDetach::One } else { NewidleDetach::Imbalance };
        }
    }

    /// The modelled choices of its build.
    pub fn configs(&self) -> impl Iterator<Item = &'static str> + Clone + use<> {
        self.preempt_models.iter().map(|model| model.config())
    }

    /// As [`Build::named`], with a message.
    pub fn choose(name: &Written) -> Result<Build, Mistake> {
        Build::named(&name.text).ok_or_else(|| {
            let mut mistake = name.unknown("kernel", names());
            // There are few kernels, and the one with the nearest name need not be the one that was meant.
            if mistake.expected.ends_with("perhaps") {
                mistake.expected.push_str(&format!("; there are {}", listed(names())));
            }
            mistake
        })
    }

    /// Every behaviour, with this kernel's variant.
    pub fn settings(&self) -> Vec<Setting> {
        let mut settings = self.sched.settings();
        settings.extend([
            self.os.pipe.setting(),
            self.os.slots.setting(),
            self.os.room.setting(),
            self.os.pages.setting(),
            self.os.polled.setting(),
            self.os.passed_sleep.setting(),
            self.os.migration_limit.setting(),
            self.os.unbound.setting(),
            self.os.counts.setting(),
            self.os.worker_wakeup.setting(),
        ]);
        settings.extend(self.idle.settings());
        settings.extend(self.irq.settings());
        settings.extend(self.fs.settings());
        settings.extend(self.os.net.settings());
        settings.extend(self.os.pi.settings());
        settings.extend(self.frequency.settings());
        settings
    }

    /// Switches one behaviour.
    pub fn set(&mut self, key: &str, value: &str) -> Switched {
        match key {
            PipeRules::KEY => return self.os.pipe.switch(value),
            UnboundPods::KEY => return self.os.unbound.switch(value),
            WorkerCounts::KEY => return self.os.counts.switch(value),
            WorkerWakeup::KEY => return self.os.worker_wakeup.switch(value),
            PipeSlots::KEY => return self.os.slots.switch(value),
            PipeRoom::KEY => return self.os.room.switch(value),
            PipePages::KEY => return self.os.pages.switch(value),
            PipePolled::KEY => return self.os.polled.switch(value),
            PassedSleep::KEY => return self.os.passed_sleep.switch(value),
            MigrationLimit::KEY => return self.os.migration_limit.switch(value),
            _ => {}
        }
        let mut answer = self.idle.set(key, value);
        let unknown = |answer: &Switched| *answer == Switched::UnknownKey;
        if unknown(&answer) {
            answer = self.frequency.set(key, value);
        }
        if unknown(&answer) {
            answer = self.irq.set(key, value);
        }
        if unknown(&answer) {
            answer = self.fs.set(key, value);
        }
        if unknown(&answer) {
            answer = self.os.net.set(key, value);
        }
        if unknown(&answer) {
            answer = self.os.pi.set(key, value);
        }
        if unknown(&answer) { self.sched.set(key, value) } else { answer }
    }
}

/// The kernels that are built, the oldest first.
pub fn names() -> impl Iterator<Item = &'static str> + Clone {
    versions::KERNELS.iter().map(|kernel| kernel.name)
}

/// The differences of two kernels: each behaviour as the first and as the second has it.
pub fn diff(a: &Build, b: &Build) -> Vec<(Setting, Setting)> {
    a.settings().into_iter().zip(b.settings()).filter(|(a, b)| a.value != b.value).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cmp::Ordering;

    /// What the long-term releases have that is newer than they are.
    const BACKPORTED: &[(&str, &[&str])] = &[
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
                "balance.detach_bound",
                "balance.dst_group",
                "balance.per_cpu_kthreads",
                "bandwidth.throttle_asks",
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
                "entity.leaf_list",
                "load.util_est",
                "load.blocked_news",
                "load.lost_idle",
                "wake.idlest_stats",
                "balance.util_bound",
                "balance.dst_group",
                "balance.per_cpu_kthreads",
                "balance.nohz",
                "balance.kicked_resched",
                "idle.menu_rejected",
                "idle.tick_unchosen",
                "tcp.full_segment",
                "tcp.quick_ack",
                "epoll.wakeup",
                "frequency.at_limit",
                "frequency.acpi_boost",
            ],
        ),
        (
            "v5.15",
            &[
                "core.wake_queue",
                "entity.long_sleeper",
                "entity.exec_start_reset",
                "wake.affine_count",
                "tcp.full_segment",
                "tcp.quick_ack",
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
            ],
        ),
        (
            "v6.12",
            &[
                "domains.newidle_history",
                "load.lost_idle",
                "wake.energy",
                "wake.idlest_stats",
                "balance.asym_compare",
                "balance.hot_statistics",
                "balance.kicked_resched",
                "idle.menu_rejected",
                "epoll.wakeup",
                "frequency.deferred_steps",
            ],
        ),
        (
            "v6.18",
            &[
                "domains.newidle_history",
                "domains.interval_weight",
                "entity.lag_limit",
                "entity.wakeup_preempt",
                "load.lost_idle",
                "balance.serialized",
                "tcp.rcvbuf_growth",
            ],
        ),
    ];
    /// What is as in an older kernel: it came back (`wake.wake_cap`), a long-term release alone has the newer
    /// (`numa.locality_reset`), or the kernel is built so.
    const AS_BEFORE: &[(&str, &[&str])] = &[
        ("v5.4", &["idle.governor"]),
        ("v5.10", &["wake.wake_cap", "idle.governor"]),
        ("v5.15", &["wake.wake_cap", "autogroup.default", "idle.governor"]),
        ("v6.1", &["wake.wake_cap", "idle.governor"]),
        ("v6.6", &["wake.wake_cap", "autogroup.default", "idle.governor"]),
        (
            "v6.12",
            &[
                "psi.accounting",
                "wake.wake_cap",
                "wake.previous_sibling",
                "balance.detach_limit",
                "autogroup.default",
                "idle.governor",
            ],
        ),
        (
            "v6.18",
            &[
                "psi.accounting",
                "wake.wake_cap",
                "wake.previous_sibling",
                "balance.detach_limit",
                "numa.locality_reset",
                "autogroup.default",
                "idle.governor",
                "frequency.at_limit",
            ],
        ),
        (
            "v7.2",
            &[
                "psi.accounting",
                "frequency.sugov_limit",
                "wake.wake_cap",
                "wake.previous_sibling",
                "balance.detach_limit",
                "numa.locality_reset",
                "autogroup.default",
                "idle.governor",
            ],
        ),
        (
            "v7.3",
            &[
                "psi.accounting",
                "frequency.sugov_limit",
                "wake.wake_cap",
                "wake.previous_sibling",
                "balance.detach_limit",
                "autogroup.default",
                "idle.governor",
            ],
        ),
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

    /// What `v4.16`, `v4.5-rc1` or `v6.1.y` (a long-term release) is a version of.
    fn version(name: &str) -> (u32, u32) {
        let mut parts = name.trim_start_matches('v').split(['.', '-']).map(|part| part.parse().unwrap_or(0));
        (parts.next().unwrap_or(0), parts.next().unwrap_or(0))
    }

    #[test]
    fn kernels_have_of_each_behaviour_the_newest_variant_that_is_not_newer_than_they_are() {
        let (mut newer, mut older) = (Vec::new(), Vec::new());
        for name in names() {
            let of_kernel = version(name);
            for setting in Build::named(name).expect("a kernel").settings() {
                let known = setting.choices.iter().filter(|variant| version(variant.since) <= of_kernel);
                // Where the kernel has nothing of what is asked, the first answer is as good as any.
                let newest = known.max_by_key(|variant| version(variant.since)).unwrap_or(&setting.choices[0]);
                match version(setting.value.since).cmp(&version(newest.since)) {
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
            (
                build.os.preempt.name(),
                build.preempt_models.iter().map(|model| model.name()).collect::<Vec<_>>().join(" "),
            )
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
        assert!(error.contains("the unknown kernel `v4.51`; expected `v4.15`, perhaps"), "{error}");
    }
}
