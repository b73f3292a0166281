//! cpufreq's drivers and governors, and what an administrator sets in `/sys/devices/system/cpu/cpufreq`.

use super::Model;

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
}

impl Policy {
    /// A driver and a governor with everything as after boot.
    pub fn new(model: &Model, driver: Driver, governor: Governor) -> Policy {
        Policy {
            driver,
            governor,
            limits: Limits { min_khz: model.min_khz, max_khz: driver.max_khz(model), turbo: true },
            setspeed_khz: driver.resolve(model, model.base_khz, Relation::Highest),
            preference: Preference(128),
            hardware: model.autonomous.is_some() && driver.is_active(),
        }
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

    /// A frequency within the limits, as the hardware is asked for it.
    pub fn within_limits(&self, model: &Model, khz: u32, relation: Relation) -> u32 {
        let most = self.driver.vote(model, self.limits.max_khz);
        let clamped = khz.min(self.limits.max_khz).max(self.limits.min_khz);
        self.driver.vote(model, self.driver.resolve(model, clamped, relation)).min(most)
    }

    /// What every CPU asks for when the governor has started and nothing has run.
    pub(super) fn first_vote(&self, model: &Model) -> u32 {
        match self.governor {
            Governor::Performance => self.hardware_ceiling(model),
            Governor::Userspace => self.within_limits(model, self.setspeed_khz, Relation::Lowest),
            _ => self.within_limits(model, self.limits.min_khz, Relation::Lowest),
        }
    }
}
