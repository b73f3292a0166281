//! cpufreq's drivers and governors, and what an administrator sets in `/sys/devices/system/cpu/cpufreq`.

use super::Model;
use super::rules::{FrequencyRules, Sampling, TransitionDelay};
use units::Ps;

macro_rules! named {
    ($(#[$doc:meta])* pub enum $type:ident { $($(#[$vdoc:meta])* $variant:ident = $name:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum $type { $($(#[$vdoc])* $variant,)+ }

        impl $type {
            pub const ALL: &'static [$type] = &[$($type::$variant,)+];

            /// As sysfs calls it.
            pub fn name(self) -> &'static str {
                match self { $($type::$variant => $name,)+ }
            }

            pub fn from_name(name: &str) -> Option<$type> {
                $type::ALL.iter().copied().find(|it| it.name() == name)
            }
        }
    };
}

named! {
    /// `scaling_driver`
    pub enum Driver {
        /// A table of frequencies from the firmware, the highest of which stands for all of turbo.
        AcpiCpufreq = "acpi-cpufreq",
        /// Intel's own, with the choice in the driver or in the hardware.
        IntelPstate = "intel_pstate",
        /// The same, passive: it carries out what a governor chooses.
        IntelCpufreq = "intel_cpufreq",
        AmdPstate = "amd-pstate",
        /// The hardware chooses, by a preference.
        AmdPstateEpp = "amd-pstate-epp",
        CppcCpufreq = "cppc_cpufreq",
        Scmi = "scmi",
    }
}

named! {
    /// `scaling_governor`
    pub enum Governor {
        Performance = "performance",
        /// With `intel_pstate` and `amd-pstate-epp` the dynamic choice, with other drivers the lowest frequency.
        Powersave = "powersave",
        Userspace = "userspace",
        Ondemand = "ondemand",
        Conservative = "conservative",
        Schedutil = "schedutil",
    }
}

impl Driver {
    /// Whether the driver has no governors but a policy of its own.
    pub fn is_active(self) -> bool {
        matches!(self, Driver::IntelPstate | Driver::AmdPstateEpp)
    }

    /// The governors that it works with.
    pub fn governors(self) -> &'static [Governor] {
        if self.is_active() { &[Governor::Performance, Governor::Powersave] } else { Governor::ALL }
    }

    /// Whether CPUs that share a clock are one policy. On x86 each CPU has its own, and hardware takes the highest vote.
    pub fn shares_policies(self) -> bool {
        matches!(self, Driver::CppcCpufreq | Driver::Scmi)
    }

    /// `cpuinfo_max_freq`, in kHz.
    pub fn max_khz(self, model: &Model) -> u32 {
        match self {
            // What the table's highest entry is called: one MHz above the base frequency stands for everything above it.
            Driver::AcpiCpufreq if model.max_khz() > model.base_khz => model.base_khz + 1_000,
            Driver::AcpiCpufreq => model.base_khz,
            _ => model.max_khz(),
        }
    }

    /// The frequencies that it has are multiples of a step; `relation` as cpufreq's.
    pub fn resolve(self, model: &Model, khz: u32, relation: Relation) -> u32 {
        let max = self.max_khz(model);
        if khz >= max {
            return max;
        }
        // Counted from the lowest: tables of firmware begin there.
        let (min, step) = (model.min_khz, model.step_khz.max(1));
        let above = khz.saturating_sub(min);
        let low = min + above / step * step;
        let high = (min + above.div_ceil(step) * step).min(max);
        match relation {
            Relation::Lowest => high,
            Relation::Highest => low,
            Relation::Closest if khz.abs_diff(low) <= khz.abs_diff(high) => low,
            Relation::Closest => high,
        }
    }

    /// Whether any CPU may ask for the frequencies of another (`dvfs_possible_from_any_cpu`).
    pub(super) fn any_cpu_asks(self) -> bool {
        matches!(self, Driver::CppcCpufreq | Driver::Scmi)
    }

    /// cpufreq.c: cpufreq_policy_transition_delay_us(): governors wait so long between two changes.
    fn transition_delay_us(self, model: &Model, rules: FrequencyRules, hardware: bool) -> u32 {
        let latency = model.declared_latency_us;
        match (self, rules.transition_delay) {
            // INTEL_CPUFREQ_TRANSITION_DELAY_HWP, INTEL_CPUFREQ_TRANSITION_DELAY
            (Driver::IntelPstate | Driver::IntelCpufreq, _) if hardware => 5_000,
            (Driver::IntelPstate | Driver::IntelCpufreq, _) => 500,
            // AMD_PSTATE_TRANSITION_DELAY
            (Driver::AmdPstate | Driver::AmdPstateEpp, _) => 1_000,
            (Driver::CppcCpufreq, _) => latency,
            (Driver::AcpiCpufreq | Driver::Scmi, _) if latency == 0 => 1_000,
            (Driver::AcpiCpufreq | Driver::Scmi, TransitionDelay::Thousandfold) => (latency * 1_000).min(10_000),
            (Driver::AcpiCpufreq | Driver::Scmi, TransitionDelay::HalfMore) => latency + latency / 2,
        }
    }

    /// What the hardware is asked for: the table's last entry is as fast as it can.
    pub fn vote(self, model: &Model, khz: u32) -> u32 {
        if khz >= self.max_khz(model) { model.max_khz() } else { khz }
    }
}

/// cpufreq.h: CPUFREQ_RELATION_L, _H and _C.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Relation {
    /// The lowest frequency that is not below.
    Lowest,
    /// The highest that is not above.
    Highest,
    Closest,
}

/// `energy_performance_preference`: 0 for performance alone, 255 for energy alone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Preference(pub u8);

impl Preference {
    /// As the driver names them.
    pub const NAMES: &'static [(&'static str, Preference)] = &[
        ("default", Preference(128)),
        ("performance", Preference(0)),
        ("balance_performance", Preference(128)),
        ("balance_power", Preference(192)),
        ("power", Preference(255)),
    ];

    pub fn from_name(name: &str) -> Option<Preference> {
        Preference::NAMES.iter().find(|known| known.0 == name).map(|known| known.1)
    }
}

/// `scaling_min_freq`, `scaling_max_freq` in kHz, and whether turbo is allowed (`no_turbo`, `boost`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    pub min_khz: u32,
    pub max_khz: u32,
    pub turbo: bool,
}

/// How the frequencies of a machine are governed. All CPUs alike.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Policy {
    pub driver: Driver,
    pub governor: Governor,
    pub limits: Limits,
    /// `scaling_setspeed`, for the governor userspace, in kHz.
    pub setspeed_khz: u32,
    pub preference: Preference,
    /// The hardware chooses (HWP).
    pub hardware: bool,
    /// intel_pstate raises the hardware's lowest choice for tasks that waited for a device.
    pub hwp_dynamic_boost: bool,
    pub rules: FrequencyRules,
    /// Length of a jiffy.
    pub tick: Ps,
    /// schedutil's `rate_limit_us`.
    pub rate_limit_us: u32,
    /// `sampling_rate` of ondemand and conservative, in microseconds.
    pub sampling_rate_us: u32,
    /// Their `up_threshold`, in percent.
    pub up_threshold: u32,
}

impl Policy {
    /// A driver and a governor with everything as after boot, under a kernel that ticks `hz` times in a second.
    pub fn new(model: &Model, driver: Driver, governor: Governor, rules: FrequencyRules, hz: u32) -> Policy {
        let hardware = model.autonomous.is_some() && matches!(driver, Driver::IntelPstate | Driver::IntelCpufreq)
            || driver == Driver::AmdPstateEpp;
        let tick = Ps(1_000_000_000_000 / u64::from(hz));
        let delay_us = driver.transition_delay_us(model, rules, hardware);
        Policy {
            driver,
            governor,
            limits: Limits { min_khz: model.min_khz, max_khz: driver.max_khz(model), turbo: true },
            setspeed_khz: driver.resolve(model, model.base_khz, Relation::Highest),
            preference: Preference(128),
            hardware,
            hwp_dynamic_boost: false,
            rules,
            tick,
            rate_limit_us: delay_us,
            sampling_rate_us: match rules.sampling {
                // MICRO_FREQUENCY_MIN_SAMPLE_RATE, and what latency asks for.
                Sampling::Timers => (model.declared_latency_us * 1_000).max(10_000),
                Sampling::Callbacks => delay_us.max((2 * tick.0 / 1_000_000) as u32),
            },
            // MICRO_FREQUENCY_UP_THRESHOLD, where idle time is known to the microsecond; DEF_FREQUENCY_UP_THRESHOLD.
            up_threshold: if governor == Governor::Conservative { 80 } else { 95 },
        }
    }

    /// Whether intel_pstate chooses by itself.
    pub(super) fn pstate_chooses(&self) -> bool {
        self.driver == Driver::IntelPstate && self.governor == Governor::Powersave && !self.hardware
    }

    /// Whether a governor chooses by how long CPUs idled.
    pub(super) fn samples_idle_time(&self) -> bool {
        !self.driver.is_active() && matches!(self.governor, Governor::Ondemand | Governor::Conservative)
    }

    /// Whether hardware chooses, and not just obeys.
    pub fn is_autonomous(&self) -> bool {
        self.hardware && self.driver.is_active()
    }

    /// The lowest that may be asked for.
    pub(super) fn hardware_floor(&self, model: &Model) -> u32 {
        match self.governor {
            Governor::Performance => self.hardware_ceiling(model),
            _ => self.limits.min_khz,
        }
    }

    /// The highest that may be asked for.
    pub(super) fn hardware_ceiling(&self, model: &Model) -> u32 {
        let most = if self.limits.turbo { self.driver.max_khz(model) } else { model.base_khz };
        self.driver.vote(model, self.limits.max_khz.min(most)).max(self.limits.min_khz)
    }

    /// What the hardware is asked for where the driver is for `khz`: without turbo, no more than the base frequency.
    pub(super) fn as_vote(&self, model: &Model, khz: u32) -> u32 {
        let vote = self.driver.vote(model, khz);
        if self.limits.turbo { vote } else { vote.min(model.base_khz) }
    }

    /// What every policy is at when the governor has started and nothing has run.
    pub(super) fn first_choice(&self, model: &Model) -> u32 {
        let (khz, relation) = match self.governor {
            Governor::Performance => (self.limits.max_khz, Relation::Highest),
            Governor::Userspace => (self.setspeed_khz, Relation::Lowest),
            _ => (self.limits.min_khz, Relation::Lowest),
        };
        self.driver.resolve(model, khz.clamp(self.limits.min_khz, self.limits.max_khz), relation)
    }

    /// The same, as every CPU asks for it.
    pub(super) fn first_vote(&self, model: &Model) -> u32 {
        match self.governor {
            Governor::Performance => self.hardware_ceiling(model),
            _ => self.as_vote(model, self.first_choice(model)),
        }
    }
}
