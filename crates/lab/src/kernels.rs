//! Whole kernels: the scheduler's version, and what the same source tree does outside kernel/sched.

use crate::cpu_list::CpuLists;
use crate::mistake::{Mistake, Written, listed};
use machine::frequency::FrequencyRules;
use machine::idle::IdleRules;
use observe::Formats;
use os::OsRules;
use os::fs::FsRules;
use os::irq::IrqRules;
use os::preempt::Preempt;
use sched::behaviour::Rules;
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
    /// How it reads lists of CPUs on its command line.
    pub cpu_lists: CpuLists,
    /// The formats of its files.
    pub formats: Formats,
}

/// What a version does outside kernel/sched, and how it is built.
#[derive(Clone, Copy)]
struct Elsewhere {
    os: OsRules,
    idle: IdleRules,
    irq: IrqRules,
    fs: FsRules,
    frequency: FrequencyRules,
    formats: Formats,
    preempt_dynamic: bool,
    preempt_models: &'static [Preempt],
    cpu_lists: CpuLists,
}

impl Elsewhere {
    const V4_5: Elsewhere = Elsewhere {
        os: OsRules::V4_5,
        idle: IdleRules::V4_5,
        irq: IrqRules::V4_5,
        fs: FsRules::V4_5,
        frequency: FrequencyRules::V4_5,
        formats: Formats::V4_5,
        preempt_dynamic: false,
        preempt_models: &[Preempt::None, Preempt::Voluntary, Preempt::Full],
        cpu_lists: CpuLists::Ranges,
    };
    const V4_15: Elsewhere = Elsewhere {
        os: OsRules::V4_15,
        idle: IdleRules::V4_15,
        irq: IrqRules::V4_15,
        frequency: FrequencyRules::V4_15,
        formats: Formats::V4_15,
        cpu_lists: CpuLists::Parts,
        ..Self::V4_5
    };
    const V4_16: Elsewhere = Elsewhere {
        os: OsRules::V4_16,
        irq: IrqRules::V4_16,
        fs: FsRules::V4_16,
        frequency: FrequencyRules::V4_16,
        ..Self::V4_15
    };
    const V4_19: Elsewhere = Elsewhere {
        os: OsRules::V4_19,
        idle: IdleRules::V4_19,
        irq: IrqRules::V4_19,
        fs: FsRules::V4_19,
        frequency: FrequencyRules::V4_19,
        formats: Formats::V4_19,
        ..Self::V4_16
    };
    const V5_4: Elsewhere = Elsewhere {
        os: OsRules::V5_4,
        idle: IdleRules::V5_4,
        fs: FsRules::V5_4,
        frequency: FrequencyRules::V5_4,
        formats: Formats::V5_4,
        ..Self::V4_19
    };
    const V5_10: Elsewhere = Elsewhere {
        os: OsRules::V5_10,
        idle: IdleRules::V5_10,
        irq: IrqRules::V5_10,
        fs: FsRules::V5_10,
        frequency: FrequencyRules::V5_10,
        formats: Formats::V5_10,
        ..Self::V5_4
    };
    /// It knows PREEMPT_DYNAMIC (since v5.12), but only a build with PREEMPT has it: `preempt=` could choose there, and
    /// not in the VOLUNTARY one that distributions made.
    const V5_15: Elsewhere = Elsewhere {
        os: OsRules::V5_15,
        idle: IdleRules::V5_15,
        irq: IrqRules::V5_15,
        frequency: FrequencyRules::V5_15,
        formats: Formats::V5_15,
        cpu_lists: CpuLists::Names,
        ..Self::V5_10
    };
    const V6_1: Elsewhere = Elsewhere {
        os: OsRules::V6_1,
        idle: IdleRules::V6_1,
        irq: IrqRules::V6_1,
        frequency: FrequencyRules::V6_1,
        formats: Formats::V6_1,
        preempt_dynamic: true,
        ..Self::V5_15
    };
    const V6_6: Elsewhere = Elsewhere {
        os: OsRules::V6_6,
        idle: IdleRules::V6_6,
        irq: IrqRules::V6_6,
        frequency: FrequencyRules::V6_6,
        formats: Formats::V6_6,
        ..Self::V6_1
    };
    const V6_12: Elsewhere = Elsewhere {
        os: OsRules::V6_12,
        idle: IdleRules::V6_12,
        irq: IrqRules::V6_12,
        frequency: FrequencyRules::V6_12,
        formats: Formats::V6_12,
        ..Self::V6_6
    };
    /// x86 has lazy preemption since v6.13.
    const V6_18: Elsewhere = Elsewhere {
        os: OsRules::V6_18,
        idle: IdleRules::V6_18,
        frequency: FrequencyRules::V6_18,
        formats: Formats::V6_18,
        preempt_models: &[Preempt::None, Preempt::Voluntary, Preempt::Full, Preempt::Lazy],
        ..Self::V6_12
    };
    /// v7.0 left x86 only one model beside lazy preemption.
    const V7_2: Elsewhere = Elsewhere {
        os: OsRules::V7_2,
        idle: IdleRules::V7_2,
        frequency: FrequencyRules::V7_2,
        formats: Formats::V7_2,
        preempt_models: &[Preempt::Full, Preempt::Lazy],
        ..Self::V6_18
    };
    const V7_3: Elsewhere =
        Elsewhere { os: OsRules::V7_3, frequency: FrequencyRules::V7_3, formats: Formats::V7_3, ..Self::V7_2 };
}

const ELSEWHERE: &[(&str, Elsewhere)] = &[
    ("v4.5-rc1", Elsewhere::V4_5),
    ("v4.15", Elsewhere::V4_15),
    ("v4.16", Elsewhere::V4_16),
    ("v4.19", Elsewhere::V4_19),
    ("v5.4", Elsewhere::V5_4),
    ("v5.10", Elsewhere::V5_10),
    ("v5.15", Elsewhere::V5_15),
    ("v6.1", Elsewhere::V6_1),
    ("v6.6", Elsewhere::V6_6),
    ("v6.12", Elsewhere::V6_12),
    ("v6.18", Elsewhere::V6_18),
    ("v7.2", Elsewhere::V7_2),
    ("v7.3", Elsewhere::V7_3),
];

impl Build {
    /// The kernel of that name, if it is built.
    pub fn named(name: &str) -> Option<Build> {
        let sched = *versions::kernel(name)?;
        let &(_, elsewhere) = ELSEWHERE.iter().find(|(kernel, _)| *kernel == name)?;
        let Elsewhere { os, idle, irq, fs, frequency, formats, preempt_dynamic, preempt_models, cpu_lists } = elsewhere;
        Some(Build { sched, os, idle, irq, fs, frequency, preempt_dynamic, preempt_models, cpu_lists, formats })
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
            let Some(wanted) = version(&name.text) else { return name.unknown("kernel", names()) };
            let before = names().filter(|name| version(name) <= Some(wanted)).last();
            let after = names().find(|name| version(name) > Some(wanted));
            let nearest = before.into_iter().chain(after).map(|name| format!("`{name}`"));
            let nearest = nearest.collect::<Vec<_>>().join(" or ");
            name.mistake(
                format!("the unknown kernel {}", name.quoted()),
                format!("{nearest}, the nearest of {}", listed(names())),
            )
        })
    }

    /// Every behaviour, with this kernel's variant.
    pub fn settings(&self) -> Vec<Setting> {
        let rooms: [&dyn Rules; 7] =
            [&self.os, &self.idle, &self.irq, &self.fs, &self.os.net, &self.os.pi, &self.frequency];
        self.sched.settings().into_iter().chain(rooms.into_iter().flat_map(Rules::settings)).collect()
    }

    /// Switches one behaviour.
    pub fn set(&mut self, key: &str, value: &str) -> Switched {
        let rooms: [fn(&mut Build) -> &mut dyn Rules; 7] = [
            |it| &mut it.os,
            |it| &mut it.idle,
            |it| &mut it.irq,
            |it| &mut it.fs,
            |it| &mut it.os.net,
            |it| &mut it.os.pi,
            |it| &mut it.frequency,
        ];
        let answers = rooms.into_iter().map(|room| room(self).set(key, value));
        let known = answers.into_iter().find(|answer| *answer != Switched::UnknownKey);
        known.unwrap_or_else(|| self.sched.set(key, value))
    }
}

/// What `v4.16`, `v4.5-rc1`, `6.18.44-fc`, `6.8+` or `v6.1.y` (a long-term release) is a version of; `None` for other words.
pub fn version(name: &str) -> Option<(u32, u32)> {
    let mut parts =
        name.trim_start_matches('v').split(|letter: char| !letter.is_ascii_digit()).map(|part| part.parse().ok());
    Some((parts.next()??, parts.next()??))
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
            "v4.19",
            &[
                "frequency.sugov_remote",
                "dl.offline_migration",
                "balance.imbalance_flag",
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
                "tcp.full_segment",
                "tcp.quick_ack",
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
                "frequency.limits_step",
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
                "frequency.limits_step",
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
        assert!(
            error.contains("the unknown kernel `v4.51`; expected `v4.19` or `v5.4`, the nearest of v4.5-rc1,"),
            "{error}"
        );
        let expected = |name: &str| Build::choose(&Written::option("--arm", name)).unwrap_err().expected;
        assert!(expected("v6.13").starts_with("`v6.12` or `v6.18`, the nearest of"));
        assert!(
            expected("6.12").starts_with("`v6.12` or `v6.18`")
                && expected("v4.4").starts_with("`v4.5-rc1`, the nearest")
        );
        assert!(
            expected("v9.0").starts_with("`v7.3`, the nearest of")
                && expected("mainline").starts_with("one of v4.5-rc1,")
        );
    }
}
