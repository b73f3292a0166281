//! Whole kernels: the scheduler's version, and what the same source tree does outside kernel/sched.

use crate::cpu_list::CpuLists;
use crate::mistake::{Mistake, Written, listed};
use machine::frequency::FrequencyRules;
use machine::idle::{self, IdleRules};
use observe::Formats;
use os::OsRules;
use os::fs::FsRules;
use os::irq::IrqRules;
use os::preempt::Preempt;
use sched::behaviour::Rules;
use sched::fair::balance::NewidleDetach;
pub use sched::versions::version;
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

type Change = fn(&mut Build);

/// What releases between kernels that were read have since them, and that is no behaviour. All else of that kind is as in the
/// kernel before: formats, defaults that Debian chooses, what frequency's files take.
const SINCE: &[(&str, Change)] = &[
    // schedutil.
    ("v4.7", |build| build.frequency.governors = FrequencyRules::V4_15.governors),
    ("v4.9", |build| build.cpu_lists = CpuLists::Parts),
    ("v5.1", |build| build.idle.governors = &[idle::Governor::Ladder, idle::Governor::Menu, idle::Governor::Teo]),
    ("v5.6", |build| build.idle.states_off = true),
    ("v5.8", |build| build.idle.governor_switch = true),
    ("v5.14", |build| build.cpu_lists = CpuLists::Names),
    // amd-pstate, and amd-pstate-epp.
    ("v5.17", |build| build.frequency.drivers = FrequencyRules::V6_1.drivers),
    ("v6.3", |build| build.frequency.drivers = FrequencyRules::V6_6.drivers),
    ("v6.13", |build| build.preempt_models = Elsewhere::V6_18.preempt_models),
    ("v7.0", |build| build.preempt_models = Elsewhere::V7_2.preempt_models),
];

impl Build {
    /// The kernel of that name: one that was read, or a release between two of them.
    pub fn named(name: &str) -> Option<Build> {
        let sched = *versions::kernel(name)?;
        let read = versions::last_read(name)?;
        let &(_, elsewhere) = ELSEWHERE.iter().find(|(kernel, _)| *kernel == read.name)?;
        let Elsewhere { os, idle, irq, fs, frequency, formats, preempt_dynamic, preempt_models, cpu_lists } = elsewhere;
        let mut build =
            Build { sched, os, idle, irq, fs, frequency, preempt_dynamic, preempt_models, cpu_lists, formats };
        if !build.was_read() {
            versions::settle(&mut build, name);
            let since = SINCE.iter().filter(|(release, _)| version(release) > version(read.name));
            since.filter(|(release, _)| version(release) <= version(name)).for_each(|(_, change)| change(&mut build));
        }
        Some(build)
    }

    /// Whether the whole tree was read, and not only what has changed since another one.
    pub fn was_read(&self) -> bool {
        names().any(|name| name == self.sched.name)
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

    /// What must be said of a release that was not read whole.
    pub fn not_read_whole(&self) -> Option<String> {
        if self.was_read() {
            return None;
        }
        let (name, read) = (self.sched.name, versions::last_read(self.sched.name)?.name);
        let changes = diff(&Build::named(read)?, self).len();
        Some(format!(
            "{name} was not read whole: it is {read} with {changes} behaviours of later releases (docs/kernels.md)"
        ))
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
                format!("{nearest}, the nearest of {} and the releases between them", listed(names())),
            )
        })
    }
}

impl Rules for Build {
    fn settings(&self) -> Vec<Setting> {
        let rooms: [&dyn Rules; 7] =
            [&self.os, &self.idle, &self.irq, &self.fs, &self.os.net, &self.os.pi, &self.frequency];
        self.sched.settings().into_iter().chain(rooms.into_iter().flat_map(Rules::settings)).collect()
    }

    fn set(&mut self, key: &str, value: &str) -> Switched {
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

/// The kernels that were read, the oldest first.
pub fn names() -> impl Iterator<Item = &'static str> + Clone {
    versions::KERNELS.iter().map(|kernel| kernel.name)
}

/// The differences of two kernels: each behaviour as the first and as the second has it.
pub fn diff(a: &Build, b: &Build) -> Vec<(Setting, Setting)> {
    a.settings().into_iter().zip(b.settings()).filter(|(a, b)| a.value != b.value).collect()
}

#[cfg(test)]
mod tests;
