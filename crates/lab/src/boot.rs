//! How a kernel is built and booted, besides its version: CONFIG_HZ, and the parameters of its command line.

use crate::cpufreq::command_line;
use crate::kernels::Build;
use crate::mistake::{Mistake, Written};
use machine::idle::Governor;
use sched::profile::SleepProfile;
use sched::psi::Psi;
use sched::topology::NumaDistances;

/// A modelled parameter of the command line.
pub struct Parameter {
    pub name: &'static str,
    /// If empty, the parameter takes no value.
    pub values: &'static [&'static str],
    pub meaning: &'static str,
    /// Whether a kernel reads it.
    pub has: fn(&Build) -> bool,
    pub effect: Effect,
}

/// What reading a parameter does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effect {
    /// It is kept in the setup, and does what it does at boot.
    Kept,
    /// The sysctl of that name begins with another value.
    Schedstats,
    NumaBalancing,
    Autogroup,
    /// It is another kernel build's behaviour.
    Preempt,
    IdleGovernor,
    /// It is read with other parameters or with the machine.
    Isolation,
    Cpufreq,
}

pub const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "schedstats",
        values: &["enable", "disable"],
        meaning: "collect scheduler statistics from boot on",
        has: |_| true,
        effect: Effect::Schedstats,
    },
    Parameter {
        name: "numa_balancing",
        values: &["enable", "disable"],
        meaning: "bring tasks and their memory to one node, where there are several",
        has: |_| true,
        effect: Effect::NumaBalancing,
    },
    Parameter {
        name: "noautogroup",
        values: &[],
        meaning: "no task group for each session, until kernel.sched_autogroup_enabled says otherwise",
        has: |_| true,
        effect: Effect::Autogroup,
    },
    Parameter {
        name: "preempt",
        values: &["none", "voluntary", "full", "lazy"],
        meaning: "where a task that executes in the kernel gives way (since v5.12)",
        has: |build| build.preempt_dynamic,
        effect: Effect::Preempt,
    },
    Parameter {
        name: "nohz_full",
        values: &["CPUS"],
        meaning: "CPUs that run a single task without a tick",
        has: |_| true,
        effect: Effect::Isolation,
    },
    Parameter {
        name: "isolcpus",
        values: &["CPUS"],
        meaning: "CPUs that are not balanced, where tasks come only by affinity",
        has: |_| true,
        effect: Effect::Isolation,
    },
    Parameter {
        name: "relax_domain_level",
        values: &["0..99"],
        meaning: "the level of domains up to which idle CPUs look for work (0 none, 1 the first, -1 as without it): what it does from there on is domains.relax_domain_level's",
        has: |_| true,
        effect: Effect::Kept,
    },
    Parameter {
        name: "sched_debug",
        values: &[],
        meaning: "all rows of the distance table make NUMA levels, not only node 0's (until v5.11)",
        has: |build| build.sched.domains.numa_distances == NumaDistances::FromNode0,
        effect: Effect::Kept,
    },
    Parameter {
        name: "psi",
        values: &["0", "1"],
        meaning: "account for the time in which tasks wait for CPUs and devices (1)",
        has: |build| build.sched.psi != Psi::Absent,
        effect: Effect::Kept,
    },
    Parameter {
        name: "cpuidle.governor",
        values: &["ladder", "menu", "teo", "haltpoll"],
        meaning: "the governor of idle states (since v5.0)",
        has: |build| build.idle.has(Governor::Teo),
        effect: Effect::IdleGovernor,
    },
    Parameter {
        name: "haltpoll.guest_halt_poll_ns",
        values: &["0..4294967295"],
        meaning: "the longest that the governor haltpoll polls before it halts, in ns (200000)",
        has: |build| build.idle.has(Governor::Haltpoll),
        effect: Effect::Kept,
    },
    Parameter {
        name: "cpuidle.off",
        values: &["0", "1"],
        meaning: "no governor: the shallowest state, always (1)",
        has: |_| true,
        effect: Effect::Kept,
    },
    Parameter {
        name: "idle",
        values: &["poll", "halt"],
        meaning: "idle CPUs poll always, or halt by an instruction that only an interrupt ends",
        has: |_| true,
        effect: Effect::Kept,
    },
    Parameter {
        name: "intel_idle.max_cstate",
        values: &["1..2147483647"],
        meaning: "at most so many states of the table beside polling",
        has: |_| true,
        effect: Effect::Kept,
    },
    Parameter {
        name: "intel_idle.states_off",
        values: &["0..4294967295"],
        meaning: "a bit for each state of the table that is not to be entered (since v5.6)",
        has: |build| build.idle.states_off,
        effect: Effect::Kept,
    },
    Parameter {
        name: "intel_pstate",
        values: command_line::WORDS,
        meaning: "in which mode Intel's driver of cpufreq works, or that it does not, and without hardware P-states; several words joined by +",
        has: |_| true,
        effect: Effect::Cpufreq,
    },
    Parameter {
        name: "cpu_dma_latency",
        values: &["0..2000000000"],
        meaning: "not of the command line: what a process holds in /dev/cpu_dma_latency, the exit latency that is allowed, in us",
        has: |_| true,
        effect: Effect::Kept,
    },
    Parameter {
        name: "noise",
        values: &["0", "1"],
        meaning: "not of the command line: whether the kernel's own threads (vmstat, watchdog, kcompactd, RCU) run beside the workload",
        has: |_| true,
        effect: Effect::Kept,
    },
    Parameter {
        name: "profile",
        values: &["sleep", "schedule"],
        meaning: "count where tasks are blocked (turns schedstats on), or calls of the scheduler: /proc/profile",
        has: |_| true,
        effect: Effect::Kept,
    },
];

impl Parameter {
    /// Whether its name is a switch, which is written without a value.
    pub fn is_switch(&self) -> bool {
        self.values.is_empty()
    }

    /// Whether it takes that value. An entry of `values` may be a range of whole numbers, such as `0..99`.
    pub fn takes(&self, text: &str) -> bool {
        if self.is_switch() {
            return text.is_empty();
        }
        self.values.iter().any(|value| match self.range() {
            Some((low, high)) => text.parse().is_ok_and(|number: u64| (low..=high).contains(&number)),
            None => *value == text,
        })
    }

    /// The values that a kernel knows.
    pub fn values_of<'a>(&'a self, build: &'a Build) -> impl Iterator<Item = &'static str> + Clone + 'a {
        let no_sleep = self.name == "profile" && build.sched.sleep_profile == SleepProfile::Absent;
        let of_pstate = self.name == command_line::PARAMETER;
        let of_preempt = self.name == "preempt";
        let absent = move |value| {
            no_sleep && value == "sleep"
                || of_pstate && !command_line::has(build, value)
                || of_preempt && !build.preempt_models.iter().any(|model| model.name() == value)
        };
        self.values.iter().copied().filter(move |&value| !absent(value))
    }

    /// The range of numbers that it takes, if it takes numbers.
    pub fn range(&self) -> Option<(u64, u64)> {
        let (low, high) = self.values.first()?.split_once("..")?;
        Some((low.parse().ok()?, high.parse().ok()?))
    }
}

/// The parameter of that name.
pub fn parameter(name: &str) -> Option<&'static Parameter> {
    PARAMETERS.iter().find(|parameter| parameter.name == name)
}

/// Parameters of real kernels that lead to nothing here, and what would be right instead.
const NOT_MODELLED: &[(&str, &str)] = &[
    ("amd_pstate", "cpufreq.driver=amd-pstate (passive) or amd-pstate-epp (active), in kernels that have it"),
    ("clocksource", NOTHING),
    ("default_hugepagesz", NOTHING),
    ("highres", "no such word: timers always have high resolution"),
    ("hlt", NOTHING),
    ("irqaffinity", "no such word: each device's interrupt stays where the machine file and its queue put it"),
    ("kthread_cpus", NOTHING),
    ("maxcpus", "another machine, or `offline` in a timeline"),
    ("mitigations", "no such word: prices are those of the machine file"),
    ("nmi_watchdog", "noise=1 for the watchdog's threads, or nothing"),
    ("nohlt", "no such word: idle CPUs do not poll there"),
    ("nohz", "no such word: idle CPUs may always stop their tick"),
    ("nosmt", "another machine, or `offline` in a timeline"),
    ("nosoftlockup", "noise=1 for the watchdog's threads, or nothing"),
    ("nowatchdog", "nothing: without noise=1 the watchdog's threads do not run"),
    ("nr_cpus", "another machine, or `offline` in a timeline"),
    ("numa", "another machine"),
    ("possible_cpus", "another machine, or `offline` in a timeline"),
    ("powersave", "cpuidle.off=1, which is near it, or nothing"),
    ("processor.max_cstate", "intel_idle.max_cstate, on Intel's processors"),
    ("rcu_nocb_poll", NOTHING),
    ("rcu_nocbs", "no such word: of RCU only noise=1 has a thread"),
    ("skew_tick", "no such word: where each CPU's tick falls is not to be chosen"),
    ("threadirqs", "no such word: interrupts are handled where they are taken"),
    ("transparent_hugepage", NOTHING),
    ("tsc", NOTHING),
    ("watchdog_thresh", NOTHING),
    ("workqueue.power_efficient", NOTHING),
];
const NOTHING: &str = "an arm without it";

/// What to say of a parameter that real kernels have and that is not modelled.
pub fn not_modelled(name: &Written) -> Option<Mistake> {
    let (_, expected) = NOT_MODELLED.iter().find(|(known, _)| *known == name.text)?;
    Some(name.mistake(format!("{}, a parameter that is not modelled", name.quoted()), *expected))
}

/// The names of all parameters.
pub fn names() -> impl Iterator<Item = &'static str> + Clone {
    PARAMETERS.iter().map(|parameter| parameter.name)
}
