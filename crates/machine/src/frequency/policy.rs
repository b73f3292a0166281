//! cpufreq's drivers and governors, and what an administrator sets in `/sys/devices/system/cpu/cpufreq`.

use super::model::{Band, FullSpeed, Model, OperatingPoint};
use super::rules::{
    AcpiBoost, CppcDelay, CppcSwitch, FrequencyRules, NoTurbo, PassiveHwp, Sampling, TableLimits, TransitionDelay,
};
use crate::description::vendors_of_driver;
use units::Ps;

macro_rules! named {
    ($(#[$doc:meta])* pub enum $type:ident { $($(#[$vdoc:meta])* $variant:ident = $name:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum $type { $($(#[$vdoc])* $variant,)+ }

        impl $type {
            pub const ALL: &'static [$type] = &[$($type::$variant,)+];

            /// Its name in sysfs.
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
        /// A clock and a regulator that the device tree names.
        CpufreqDt = "cpufreq-dt",
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
    /// The vendors whose processors it drives, as in `processor.make`.
    pub fn vendors(self) -> &'static [&'static str] {
        vendors_of_driver(self.name())
    }

    /// Whether the driver has no governors but a policy of its own.
    pub fn is_active(self) -> bool {
        matches!(self, Driver::IntelPstate | Driver::AmdPstateEpp)
    }

    /// The governors that can be used with it.
    pub fn governors(self) -> &'static [Governor] {
        if self.is_active() { &[Governor::Performance, Governor::Powersave] } else { Governor::ALL }
    }

    /// Whether CPUs that share a clock are one policy. On x86 each CPU has its own policy, and the hardware takes the
    /// highest vote.
    pub fn shares_policies(self) -> bool {
        matches!(self, Driver::CppcCpufreq | Driver::Scmi | Driver::CpufreqDt)
    }

    /// The frequencies of a policy's table, if the driver has one and the machine file lists it: the operating points
    /// of the firmware.
    pub(super) fn freq_table(self, band: &Band) -> &[OperatingPoint] {
        if matches!(self, Driver::Scmi | Driver::CpufreqDt) { &band.points } else { &[] }
    }

    /// `cpuinfo_min_freq`, in kHz.
    pub fn min_khz(self, band: &Band) -> u32 {
        self.freq_table(band).first().map_or(band.min_khz, |point| point.khz)
    }

    /// The highest frequency to which a policy can be set, in kHz: `cpuinfo_max_freq`, unless the kernel uses another
    /// ([`Policy::cpuinfo_max_khz`]).
    pub fn max_khz(self, band: &Band) -> u32 {
        match self {
            // The table's highest entry: one MHz above the base frequency stands for everything above it.
            Driver::AcpiCpufreq if band.max_khz() > band.base_khz => band.base_khz + 1_000,
            Driver::AcpiCpufreq => band.base_khz,
            _ => self.freq_table(band).last().map_or(band.max_khz(), |point| point.khz),
        }
    }

    /// cpufreq.c: __resolve_freq(), within a policy's limits. If the machine file does not list the table, frequencies
    /// are multiples of a step; a driver without a table gets what was wanted.
    #[doc(alias = "cpufreq_driver_resolve_freq")]
    pub fn resolve(self, model: &Model, band: &Band, limits: Limits, khz: u32, relation: Relation) -> u32 {
        // If the limits contradict each other, the highest counts.
        let khz = khz.clamp(limits.min_khz.min(limits.max_khz), limits.max_khz);
        match self.freq_table(band) {
            [] if !self.has_table() => khz,
            [] => self.step_of(model, band, khz, relation),
            table => cpufreq_frequency_table_target(table, limits, khz, relation),
        }
    }

    /// What a driver that was asked for `khz` asks the hardware for, and the frequency that it then reports
    /// (`policy->cur`).
    ///
    /// Differs: the performance levels of amd-pstate and cppc_cpufreq count as multiples of the step here; amd-pstate
    /// takes the nearest of its levels.
    #[doc(alias = "intel_pstate_freq_to_hwp_rel")]
    pub(super) fn granted(
        self,
        model: &Model,
        band: &Band,
        limits: Limits,
        khz: u32,
        relation: Relation,
    ) -> (u32, u32) {
        if self.has_table() {
            return (khz, khz);
        }
        let level = self.step_of(model, band, khz, relation);
        match self {
            Driver::IntelPstate | Driver::IntelCpufreq => {
                // intel_pstate_prepare_request()
                let least = self.perf_limit(model, band, limits.min_khz);
                let level = level.clamp(least, self.perf_limit(model, band, limits.max_khz).max(least));
                (level, level)
            }
            _ => (level, khz),
        }
    }

    /// intel_pstate.c: intel_pstate_update_perf_limits(): a policy's limit as the hardware is told it, in whole levels. What
    /// is left of a division is lost, so the lowest frequency may be below what was written. amd-pstate-epp does the same.
    ///
    /// Differs: amd-pstate-epp of the newest kernels rounds up.
    #[doc(alias = "intel_pstate_update_perf_limits")]
    fn perf_limit(self, model: &Model, band: &Band, khz: u32) -> u32 {
        let counts = self.is_active() || self == Driver::IntelCpufreq;
        // These two are levels even if a machine file gives figures that are no multiples of the step.
        if !counts || khz == band.base_khz || khz >= band.max_khz() {
            return khz;
        }
        let step = model.step_khz.max(1);
        (khz / step * step).max(band.min_khz)
    }

    fn step_of(self, model: &Model, band: &Band, khz: u32, relation: Relation) -> u32 {
        let max = self.max_khz(band);
        if khz >= max {
            return max;
        }
        // Counted from the lowest frequency: tables of firmware begin there.
        let (min, step) = (band.min_khz, model.step_khz.max(1));
        let above = khz.saturating_sub(min);
        let low = min + above / step * step;
        let high = (min + above.div_ceil(step) * step).min(max);
        match relation {
            Relation::Lowest | Relation::LowestEfficient => high,
            Relation::Highest | Relation::HighestEfficient => low,
            Relation::ClosestEfficient if khz.abs_diff(low) <= khz.abs_diff(high) => low,
            Relation::ClosestEfficient => high,
        }
    }

    /// Whether any CPU may request a frequency for another one (`dvfs_possible_from_any_cpu`).
    pub(super) fn any_cpu_asks(self, rules: FrequencyRules) -> bool {
        match self {
            Driver::CppcCpufreq => rules.cppc_switch == CppcSwitch::Fast,
            _ => self.shares_policies(),
        }
    }

    /// `fast_switch_possible`: the driver asks the hardware by a register of the executing CPU, or by a store, so it
    /// can do so in the middle of the scheduler. Where that depends on firmware, the machine file may tell
    /// (`fast_switch`); otherwise the answer is yes.
    pub(super) fn switches_fast(self, model: &Model, rules: FrequencyRules) -> bool {
        let told = model.fast_switch.unwrap_or(true);
        match self {
            // On x86 a policy has one CPU and is not shared.
            Driver::AcpiCpufreq | Driver::IntelPstate | Driver::IntelCpufreq => true,
            // X86_FEATURE_CPPC; fast channels.
            Driver::AmdPstate | Driver::AmdPstateEpp | Driver::Scmi => told,
            // cppc_allow_fast_switch()
            Driver::CppcCpufreq => told && rules.cppc_switch == CppcSwitch::Fast,
            Driver::CpufreqDt => false,
        }
    }

    /// The frequency that load tracking takes for full speed. It depends on the processor's vendor, which the machine
    /// file names, or else on the driver.
    pub(super) fn full_speed(self, model: &Model) -> FullSpeed {
        let by_driver = match self {
            Driver::AcpiCpufreq | Driver::IntelPstate | Driver::IntelCpufreq => FullSpeed::FourCores,
            Driver::AmdPstate | Driver::AmdPstateEpp => FullSpeed::Halfway,
            Driver::CppcCpufreq | Driver::Scmi | Driver::CpufreqDt => FullSpeed::Highest,
        };
        model.full_speed.unwrap_or(by_driver)
    }

    /// Whether the driver has a table of frequencies (`policy->freq_table`).
    pub(super) fn has_table(self) -> bool {
        matches!(self, Driver::AcpiCpufreq | Driver::Scmi | Driver::CpufreqDt)
    }

    /// Whether a thread that asks it for a frequency sleeps until the hardware has it, because it waits for a message's
    /// answer, or for a clock and a regulator. With other drivers the thread leaves its request and goes on.
    pub(super) fn waits(self) -> bool {
        matches!(self, Driver::Scmi | Driver::CpufreqDt)
    }

    /// cpufreq.c: cpufreq_policy_transition_delay_us(): how long governors wait between two changes.
    ///
    /// Differs: v6.12 is told the delay by firmware under `scmi` (scmi_get_rate_limit()), and uses 600 microseconds
    /// under `amd-pstate` on processors with fast CPPC; neither is known here.
    fn transition_delay_us(self, model: &Model, rules: FrequencyRules, hardware: bool) -> u32 {
        let latency = model.declared_latency_us;
        match (self, rules.transition_delay) {
            // INTEL_CPUFREQ_TRANSITION_DELAY_HWP, INTEL_CPUFREQ_TRANSITION_DELAY
            (Driver::IntelPstate | Driver::IntelCpufreq, _) if hardware => 5_000,
            (Driver::IntelPstate | Driver::IntelCpufreq, _) => 500,
            // AMD_PSTATE_TRANSITION_DELAY
            (Driver::AmdPstate | Driver::AmdPstateEpp, _) => 1_000,
            _ if latency == 0 => 1_000,
            (Driver::CppcCpufreq, _) if rules.cppc_delay == CppcDelay::Own => latency,
            (_, TransitionDelay::Thousandfold) => (latency * 1_000).min(10_000),
            (_, TransitionDelay::HalfMore) => latency + latency / 2,
        }
    }

    /// The frequency that the hardware is asked for: the table's last entry means as fast as it can be.
    pub fn vote(self, band: &Band, khz: u32) -> u32 {
        if khz >= self.max_khz(band) && self == Driver::AcpiCpufreq { band.max_khz() } else { khz }
    }
}

/// cpufreq.h: CPUFREQ_RELATION_L, _H, _C and, with CPUFREQ_RELATION_E from v5.16 on, _LE, _HE and _CE.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Relation {
    /// The lowest frequency that is not below the target.
    Lowest,
    /// The highest frequency that is not above the target.
    Highest,
    /// Among the points that are not inefficient, if one of them is within the limits.
    LowestEfficient,
    HighestEfficient,
    ClosestEfficient,
}

/// cpufreq.h: cpufreq_frequency_table_target(): the entry of a table that `relation` wants.
#[doc(alias = "cpufreq_table_find_index_al")]
#[doc(alias = "cpufreq_table_find_index_ah")]
#[doc(alias = "cpufreq_table_find_index_ac")]
fn cpufreq_frequency_table_target(table: &[OperatingPoint], limits: Limits, khz: u32, relation: Relation) -> u32 {
    let efficient = match relation {
        Relation::Lowest | Relation::Highest => None,
        _ => index_of(table.iter().filter(|point| !point.inefficient), khz, relation),
    };
    match efficient {
        Some(found) if (limits.min_khz..=limits.max_khz).contains(&found) => found,
        _ => index_of(table.iter(), khz, relation).unwrap_or(khz),
    }
}

/// In a table of ascending frequencies; the nearest entry if none is on that side.
fn index_of<'a>(
    table: impl DoubleEndedIterator<Item = &'a OperatingPoint> + Clone,
    khz: u32,
    relation: Relation,
) -> Option<u32> {
    let above = table.clone().map(|point| point.khz).find(|&point| point >= khz);
    let below = table.map(|point| point.khz).rfind(|&point| point <= khz);
    match (relation, below, above) {
        (Relation::Lowest | Relation::LowestEfficient, _, Some(above)) => Some(above),
        (Relation::Highest | Relation::HighestEfficient, Some(below), _) => Some(below),
        (Relation::ClosestEfficient, Some(below), Some(above)) if khz - below > above - khz => Some(above),
        (_, below, above) => below.or(above),
    }
}

/// `energy_performance_preference`: 0 for performance alone, 255 for energy alone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Preference(pub u8);

impl Preference {
    /// By their names in sysfs.
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

/// `scaling_min_freq`, `scaling_max_freq` in kHz, and whether turbo is allowed (`no_turbo`, `boost`): either as
/// written, to every policy, or as one policy shows them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    pub min_khz: u32,
    pub max_khz: u32,
    pub turbo: bool,
}

/// How the frequencies of a machine are governed, the same for all CPUs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Policy {
    pub driver: Driver,
    pub governor: Governor,
    pub limits: Limits,
    /// `scaling_setspeed`, for the governor userspace, in kHz. `None`: nothing was written to it, and a policy is at
    /// its base frequency.
    pub setspeed_khz: Option<u32>,
    pub preference: Preference,
    /// Whether the hardware chooses (HWP).
    pub hardware: bool,
    /// intel_pstate raises the hardware's lowest choice for tasks that waited for a device.
    pub hwp_dynamic_boost: bool,
    pub rules: FrequencyRules,
    /// Length of a jiffy.
    pub tick: Ps,
    /// schedutil's `rate_limit_us`.
    pub rate_limit_us: u32,
    /// `sampling_rate` of ondemand and conservative, in microseconds, and the least value that it can have.
    pub sampling_rate_us: u32,
    pub min_sampling_rate_us: u32,
    /// Their `up_threshold`, in percent.
    pub up_threshold: u32,
    /// They count the time of tasks with a nice level above 0 as idle time.
    pub ignore_nice_load: bool,
    /// ondemand does not count waits for devices as idle time.
    pub io_is_busy: bool,
    /// Periods without an evaluation: ondemand's at the highest frequency, conservative's before it steps down.
    pub sampling_down_factor: u32,
    /// By how much less ondemand takes than it otherwise would, in thousandths.
    pub powersave_bias: u32,
    /// conservative's, in percent: the load below which it steps down, and the size of a step.
    pub down_threshold: u32,
    pub freq_step: u32,
}

impl Policy {
    /// A driver and a governor with all settings as after boot, under a kernel with `hz` ticks per second.
    pub fn new(model: &Model, driver: Driver, governor: Governor, rules: FrequencyRules, hz: u32) -> Policy {
        let hardware = match driver {
            Driver::IntelPstate => model.autonomous.is_some(),
            Driver::IntelCpufreq => model.autonomous.is_some() && rules.passive_hwp == PassiveHwp::With,
            _ => driver == Driver::AmdPstateEpp,
        };
        let tick = Ps(1_000_000_000_000 / u64::from(hz));
        let delay_us = driver.transition_delay_us(model, rules, hardware);
        let jiffies_us = |jiffies| (jiffies * tick.0 / 1_000_000) as u32;
        let least_us = match (rules.sampling, governor) {
            // cs_init(): MIN_SAMPLING_RATE_RATIO times ten; od_init(): MICRO_FREQUENCY_MIN_SAMPLE_RATE; MIN_LATENCY_MULTIPLIER.
            (Sampling::Timers, Governor::Conservative) => jiffies_us(20).max(20 * model.declared_latency_us),
            (Sampling::Timers, _) => (20 * model.declared_latency_us).max(10_000),
            // CPUFREQ_DBS_MIN_SAMPLING_INTERVAL
            (Sampling::Callbacks, _) => jiffies_us(2),
        };
        Policy {
            driver,
            governor,
            limits: Limits { min_khz: 0, max_khz: u32::MAX, turbo: true },
            setspeed_khz: None,
            preference: Preference(128),
            hardware,
            hwp_dynamic_boost: false,
            rules,
            tick,
            rate_limit_us: delay_us,
            min_sampling_rate_us: least_us,
            sampling_rate_us: match rules.sampling {
                // LATENCY_MULTIPLIER
                Sampling::Timers => least_us.max(model.declared_latency_us * 1_000),
                Sampling::Callbacks => least_us.max(delay_us),
            },
            // MICRO_FREQUENCY_UP_THRESHOLD, because idle time is known to the microsecond; DEF_FREQUENCY_UP_THRESHOLD.
            up_threshold: if governor == Governor::Conservative { 80 } else { 95 },
            ignore_nice_load: false,
            // should_io_be_busy(): true on Intel's processors, which are recognised here by their rule of full speed.
            io_is_busy: governor == Governor::Ondemand && driver.full_speed(model) == FullSpeed::FourCores,
            sampling_down_factor: 1,
            powersave_bias: 0,
            // DEF_FREQUENCY_DOWN_THRESHOLD, DEF_FREQUENCY_STEP
            down_threshold: 20,
            freq_step: 5,
        }
    }

    /// Whether intel_pstate chooses in software.
    pub(super) fn pstate_chooses(&self) -> bool {
        self.driver == Driver::IntelPstate && self.governor == Governor::Powersave && !self.hardware
    }

    /// Whether the governor chooses by how long CPUs idled.
    pub(super) fn samples_idle_time(&self) -> bool {
        !self.driver.is_active() && matches!(self.governor, Governor::Ondemand | Governor::Conservative)
    }

    /// Whether the hardware chooses by itself, rather than obeying.
    pub fn is_autonomous(&self) -> bool {
        self.hardware && self.driver.is_active()
    }

    /// cpufreq.c: cpufreq_set_policy(), with the driver's verify(): what the limits that are written to every policy
    /// become in a policy whose CPUs have this band. Where the lowest is above the highest, the highest holds.
    ///
    /// Differs: kernels before v5.3 refuse a lowest frequency above a policy's highest one. If no table entry lies within
    /// the limits, v6.1 takes the next higher entry, not the next lower.
    #[doc(alias = "cpufreq_frequency_table_verify")]
    #[doc(alias = "cpufreq_verify_within_cpu_limits")]
    pub(super) fn limits_of(&self, model: &Model, band: &Band) -> Limits {
        let Limits { min_khz, max_khz, turbo } = self.limits;
        let (driver, table) = (self.driver, self.driver.freq_table(band));
        let least = driver.min_khz(band);
        // Entries above the base frequency are CPUFREQ_BOOST_FREQ.
        let valid = |point: &&OperatingPoint| turbo || point.khz <= band.base_khz;
        let most = match table {
            [] => self.highest_khz(band),
            _ => table.iter().rfind(valid).map_or(least, |point| point.khz),
        };
        let mut max_khz = max_khz.clamp(least, most);
        let mut min_khz = min_khz.clamp(least, max_khz);
        if driver.has_table() {
            let all = Limits { min_khz: 0, max_khz: u32::MAX, turbo };
            let entry = |khz, relation| driver.resolve(model, band, all, khz, relation);
            if entry(min_khz, Relation::Lowest) > max_khz {
                max_khz = entry(max_khz, Relation::Highest);
                min_khz = min_khz.min(max_khz);
            }
            if self.rules.table_limits == TableLimits::Entries {
                max_khz = entry(max_khz, Relation::Highest);
                min_khz = entry(min_khz, Relation::Lowest).min(max_khz);
            }
        }
        Limits { min_khz, max_khz, turbo }
    }

    /// The highest frequency for which governors may ask if nothing was written to the files but `no_turbo` and
    /// `boost`.
    fn highest_khz(&self, band: &Band) -> u32 {
        let lowered = !self.limits.turbo && !self.driver.has_table();
        if lowered { band.base_khz } else { self.driver.max_khz(band) }
    }

    /// Whether firmware tells acpi-cpufreq and intel_pstate the processor's performance levels (_CPC): on AMD's, and on
    /// Intel's with hardware P-states.
    fn firmware_tells(&self, model: &Model) -> bool {
        model.autonomous.is_some() || self.driver.full_speed(model) == FullSpeed::Halfway
    }

    /// `cpuinfo_max_freq`, which governors use, in kHz.
    pub(super) fn cpuinfo_max_khz(&self, model: &Model, band: &Band) -> u32 {
        match self.driver {
            // acpi-cpufreq.c: get_max_boost_ratio()
            Driver::AcpiCpufreq if self.rules.acpi_boost == AcpiBoost::Told && self.firmware_tells(model) => {
                band.max_khz()
            }
            Driver::IntelPstate | Driver::IntelCpufreq if self.rules.no_turbo == NoTurbo::Stays => band.max_khz(),
            _ => self.highest_khz(band),
        }
    }

    /// Whether load tracking takes the base frequency as full speed (`arch_set_max_freq_ratio(true)`).
    pub(super) fn base_is_full_speed(&self, model: &Model) -> bool {
        match self.driver {
            Driver::IntelPstate | Driver::IntelCpufreq => !self.limits.turbo,
            Driver::AcpiCpufreq => self.rules.acpi_boost == AcpiBoost::Told && !self.firmware_tells(model),
            Driver::Scmi | Driver::CpufreqDt => !self.limits.turbo,
            Driver::AmdPstate | Driver::AmdPstateEpp | Driver::CppcCpufreq => false,
        }
    }

    /// The lowest frequency that the hardware may be asked for by a driver that leaves the choice to it, or makes it itself.
    pub(super) fn hardware_floor(&self, model: &Model, band: &Band, limits: Limits) -> u32 {
        match self.governor {
            Governor::Performance => self.hardware_ceiling(model, band, limits),
            _ => self.driver.perf_limit(model, band, limits.min_khz),
        }
    }

    /// The highest frequency that the hardware may be asked for by such a driver.
    pub(super) fn hardware_ceiling(&self, model: &Model, band: &Band, limits: Limits) -> u32 {
        let most = if limits.turbo { self.driver.max_khz(band) } else { band.base_khz };
        let least = self.driver.perf_limit(model, band, limits.min_khz);
        self.driver.perf_limit(model, band, limits.max_khz.min(most)).max(least)
    }

    /// What the hardware is asked for when the driver is asked for `khz`: without turbo, at most the base frequency.
    pub(super) fn as_vote(&self, band: &Band, khz: u32) -> u32 {
        let vote = self.driver.vote(band, khz);
        if self.limits.turbo { vote } else { vote.min(band.base_khz) }
    }

    /// The frequency of a policy when its governor has started and nothing has run.
    pub(super) fn first_choice(&self, model: &Model, band: &Band, limits: Limits) -> u32 {
        let all = Limits { min_khz: 0, max_khz: u32::MAX, ..limits };
        let base = || self.driver.resolve(model, band, all, band.base_khz, Relation::Highest);
        let (khz, relation) = match self.governor {
            Governor::Performance => (limits.max_khz, Relation::Highest),
            Governor::Userspace => (self.setspeed_khz.unwrap_or_else(base), Relation::Lowest),
            _ => (limits.min_khz, Relation::Lowest),
        };
        self.driver.resolve(model, band, limits, khz, relation)
    }

    /// The same, as each CPU's vote.
    pub(super) fn first_vote(&self, model: &Model, band: &Band, limits: Limits) -> u32 {
        if self.driver.is_active() {
            return self.hardware_floor(model, band, limits);
        }
        let relation = if self.governor == Governor::Performance { Relation::Highest } else { Relation::Lowest };
        let khz = self.first_choice(model, band, limits);
        self.as_vote(band, self.driver.granted(model, band, limits, khz, relation).0)
    }
}
