//! What differs between kernels in drivers/cpufreq, and in what the architecture code says about frequencies.

use super::{Driver, Governor};
use sched::{behaviour, rules};

behaviour! {
    /// Who lets drivers and governors (but schedutil) take their samples.
    pub enum Sampling = "frequency.sampling" {
        Timers = "timers", since "v2.6.9", commit "", "timers that wake no idle CPU, looked at by its tick";
        Callbacks = "callbacks", since "v4.6", commit "34e2c555f3e1", "the scheduler, whenever it tells of utilization";
    }
}

behaviour! {
    /// How intel_pstate chooses, where hardware does not.
    pub enum PstateTarget = "frequency.intel_pstate" {
        Controller = "controller", since "v3.9", commit "",
            "a controller steers the current frequency towards 97% busy while not idle, or by a third of samples where a CPU idled long";
        BusyFraction = "busy-fraction", since "v4.14", commit "9d0ef7af1f2d",
            "a quarter more than the busy share of the highest frequency, and half of what it was above that";
    }
}

behaviour! {
    /// What a task that waited for a device does to intel_pstate's choice.
    pub enum PstateIowait = "frequency.intel_pstate_iowait" {
        AtOnce = "at-once", since "v4.14", commit "7bde2d50014d",
            "the CPU counts as busy all the time (where load decides, from 09c448d3c61f on), and a sample is taken at once";
        Doubling = "doubling", since "v5.1", commit "", "it counts as busy for an eighth of the time, then a quarter, a half, all of it";
    }
}

behaviour! {
    /// How long a governor waits between two changes where its driver does not say.
    pub enum TransitionDelay = "frequency.transition_delay" {
        Thousandfold = "thousandfold", since "v4.14", commit "e948bc8fbee0",
            "a thousand times the declared latency, at most 10 ms";
        HalfMore = "half-more", since "v6.12", commit "37c6dccd6837", "the declared latency and half of it";
    }
}

behaviour! {
    /// When ondemand and conservative take a CPU for one that has slept long, whose load is what it was before.
    pub enum LongSleep = "frequency.long_sleep" {
        Elapsed = "elapsed", since "v3.15", commit "", "after two sampling periods without a sample";
        Idle = "idle", since "v4.18", commit "7592019634f8", "after so much idle time";
    }
}

behaviour! {
    /// How idle time is known to ondemand and conservative.
    pub enum IdleTime = "frequency.idle_time" {
        Measured = "measured", since "v2.6.31", commit "", "from the way into the idle loop to the way out, interrupts aside";
        WithoutTick = "without-tick", since "v7.2", commit "",
            "measured, interrupts and all, while the tick is stopped; while it goes on, each tick that finds the CPU idle counts for a whole one";
    }
}

behaviour! {
    /// What becomes of conservative's steps down while a CPU sleeps through its samples.
    pub enum DeferredSteps = "frequency.deferred_steps" {
        Lost = "lost", since "v2.6.12", commit "", "a sample after a sleep is one";
        Counted = "counted", since "v4.10", commit "00bfe05889e9", "it steps down once for each period that was slept through";
        /// 6.12.y has it too (the tree is 6.12.117), 6.18.35 and 7.2.13 have not.
        CountedWhereIdle = "counted-where-idle", since "v7.3", commit "",
            "the same, unless the whole sample, sleep and all, was busier than down_threshold";
    }
}

behaviour! {
    /// How far down conservative's own figure goes.
    pub enum StepFloor = "frequency.step_floor" {
        Zero = "zero", since "v2.6.12", commit "",
            "below the lowest frequency, as long as it is above zero: the step up after it begins there";
        /// 5.4.286, 5.15.135, 6.6.17 and 6.18.35 let a step of its own go below, which the driver and the next sample undo.
        Lowest = "lowest", since "v4.19", commit "", "to the lowest frequency (after v4.16, by v4.19)";
    }
}

behaviour! {
    /// What conservative does where it has reached the lowest or the highest frequency by its own figure.
    pub enum AtLimit = "frequency.at_limit" {
        Clock = "clock", since "v2.6.12", commit "", "nothing where its figure is at the highest, or the clock at the lowest";
        Nothing = "nothing", since "v4.8", commit "d352cf47d93e",
            "nothing, though the clock may be faster: a sleep through many periods takes the figure down, and asks for nothing";
        Asks = "asks", since "v7.2", commit "",
            "it asks the driver for it (the trees are 5.10.262, 6.1.192 and 6.12.117, but not 5.4.286, 5.15.135, 6.6.17 and 6.18.35)";
    }
}

behaviour! {
    /// Whether cppc_cpufreq can switch in the middle of the scheduler.
    pub enum CppcSwitch = "frequency.cppc_switch" {
        Thread = "thread", since "before v4.5", commit "",
            "it cannot: schedutil's threads ask it, on CPUs of the policy (the driver: 5477fb3bd1e8)";
        Fast = "fast", since "v5.19", commit "3cc30dd00a58", "it can, where registers are in memory; any CPU may (by v6.1)";
    }
}

behaviour! {
    /// How long governors wait between two changes under cppc_cpufreq.
    pub enum CppcDelay = "frequency.cppc_delay" {
        AsOthers = "as-others", since "v4.13", commit "", "as under other drivers (by v4.15)";
        Own = "own", since "v4.16", commit "", "as long as the firmware takes";
    }
}

behaviour! {
    /// What acpi-cpufreq takes for the highest frequency, and load tracking under it for full speed.
    pub enum AcpiBoost = "frequency.acpi_boost" {
        Entry = "entry", since "v2.6.20", commit "", "the table's last entry, one MHz above the base frequency; the vendor's full speed";
        Told = "told", since "v5.11", commit "3c55e94c0ade",
            "the highest that firmware tells of (_CPC); where it tells nothing the entry, and full speed is the base";
    }
}

behaviour! {
    /// Whether intel_cpufreq works with hardware P-states.
    pub enum PassiveHwp = "frequency.passive_hwp" {
        Without = "without", since "v4.10", commit "", "without: passive mode switches them off, and asks for P-states (by v4.15)";
        With = "with", since "v5.9", commit "", "with them, where the hardware has them";
    }
}

behaviour! {
    /// In which mode Intel's driver starts where hardware P-states are absent or `intel_pstate=no_hwp`, and no other word says which.
    pub enum PstateStart = "frequency.intel_pstate_start" {
        Active = "active", since "v3.9", commit "", "active, as intel_pstate; `intel_pstate=active` is no word yet";
        Passive = "passive", since "v5.8", commit "", "passive, as intel_cpufreq";
    }
}

behaviour! {
    /// What `no_turbo` does to the highest frequency of a policy of Intel's drivers (`cpuinfo_max_freq`).
    pub enum NoTurbo = "frequency.no_turbo" {
        Stays = "stays", since "v3.9", commit "", "it stays what turbo reaches: governors reckon with it, and what they ask for is bounded";
        Lowers = "lowers", since "v6.10", commit "e8217b4bece3", "it is the base frequency";
    }
}

behaviour! {
    /// What `scaling_min_freq` and `scaling_max_freq` between two entries of a driver's table become.
    pub enum TableLimits = "frequency.table_limits" {
        Written = "written", since "v2.6.0", commit "",
            "limits as they were written: a governor that takes the lowest entry not below its choice may exceed the highest";
        /// 5.15.135 has it too, 5.10.262 has not.
        Entries = "entries", since "v5.16", commit "151717690694",
            "the entries next to them, within the limits (the tree of v5.15 is 5.15.135, which has it)";
    }
}

behaviour! {
    /// What `no_turbo` does to what load tracking takes for full speed (arch_set_max_freq_ratio()), if it is written while the kernel runs.
    pub enum NoTurboScale = "frequency.no_turbo_scale" {
        Boot = "boot", since "v5.7", commit "", "nothing: it is what it was at boot";
        Follows = "follows", since "v5.19", commit "addca285120b", "it is the base frequency while turbo is off";
    }
}

behaviour! {
    /// What conservative's own figure becomes when a policy's limits change.
    pub enum LimitsStep = "frequency.limits_step" {
        Stays = "stays", since "v2.6.12", commit "", "it stays, unless it is beyond them";
        /// The fix of April 2026 went to all stable trees; 5.15.135 and 6.6.17 are older.
        Current = "current", since "v7.0", commit "", "the policy's frequency (in 6.1.192 and 6.12.117, and in 5.10.262 and 6.18.35 by their dates)";
    }
}

/// drivers/cpufreq of one kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FrequencyRules {
    pub sampling: Sampling,
    pub pstate: PstateTarget,
    pub pstate_iowait: PstateIowait,
    pub transition_delay: TransitionDelay,
    pub long_sleep: LongSleep,
    pub idle_time: IdleTime,
    pub deferred_steps: DeferredSteps,
    pub step_floor: StepFloor,
    pub at_limit: AtLimit,
    pub cppc_switch: CppcSwitch,
    pub cppc_delay: CppcDelay,
    pub acpi_boost: AcpiBoost,
    pub passive_hwp: PassiveHwp,
    pub pstate_start: PstateStart,
    pub no_turbo: NoTurbo,
    pub table_limits: TableLimits,
    pub no_turbo_scale: NoTurboScale,
    pub limits_step: LimitsStep,
    pub drivers: &'static [Driver],
    pub governors: &'static [Governor],
    /// The default governor for drivers without a policy of their own. Kernels up to v5.4 are built as distributions did;
    /// from v5.10 on it is the default of drivers/cpufreq/Kconfig.
    pub default_governor: Governor,
    /// Whether the file `energy_performance_preference` exists.
    pub preference: bool,
    /// Whether that of intel_pstate accepts numbers, and refuses what the policy `performance` would override.
    pub preference_numbers: bool,
    /// Whether the file `hwp_dynamic_boost` exists.
    pub hwp_boost: bool,
    /// Whether amd-pstate-epp has the file `boost` (since v6.11).
    pub epp_boost: bool,
    /// Whether a lowest frequency above the highest may be written, which then counts as the highest (since v5.3).
    pub limits_cross: bool,
}

impl FrequencyRules {
    /// v4.5-rc1 and v4.5.
    pub const V4_5: FrequencyRules = FrequencyRules {
        sampling: Sampling::Timers,
        pstate: PstateTarget::Controller,
        pstate_iowait: PstateIowait::AtOnce,
        transition_delay: TransitionDelay::Thousandfold,
        long_sleep: LongSleep::Elapsed,
        idle_time: IdleTime::Measured,
        deferred_steps: DeferredSteps::Lost,
        step_floor: StepFloor::Zero,
        at_limit: AtLimit::Clock,
        cppc_switch: CppcSwitch::Thread,
        cppc_delay: CppcDelay::AsOthers,
        acpi_boost: AcpiBoost::Entry,
        passive_hwp: PassiveHwp::Without,
        pstate_start: PstateStart::Active,
        no_turbo: NoTurbo::Stays,
        table_limits: TableLimits::Written,
        no_turbo_scale: NoTurboScale::Boot,
        limits_step: LimitsStep::Stays,
        drivers: &[Driver::AcpiCpufreq, Driver::IntelPstate, Driver::CpufreqDt],
        governors: &[
            Governor::Performance,
            Governor::Powersave,
            Governor::Userspace,
            Governor::Ondemand,
            Governor::Conservative,
        ],
        default_governor: Governor::Ondemand,
        preference: false,
        preference_numbers: false,
        hwp_boost: false,
        epp_boost: false,
        limits_cross: false,
    };

    pub const V4_15: FrequencyRules = FrequencyRules {
        sampling: Sampling::Callbacks,
        deferred_steps: DeferredSteps::Counted,
        at_limit: AtLimit::Nothing,
        pstate: PstateTarget::BusyFraction,
        drivers: &[
            Driver::AcpiCpufreq,
            Driver::IntelPstate,
            Driver::IntelCpufreq,
            Driver::CppcCpufreq,
            Driver::CpufreqDt,
        ],
        governors: Governor::ALL,
        preference: true,
        ..FrequencyRules::V4_5
    };

    pub const V4_16: FrequencyRules = FrequencyRules { cppc_delay: CppcDelay::Own, ..FrequencyRules::V4_15 };

    pub const V4_19: FrequencyRules = FrequencyRules {
        long_sleep: LongSleep::Idle,
        step_floor: StepFloor::Lowest,
        hwp_boost: true,
        drivers: &[
            Driver::AcpiCpufreq,
            Driver::IntelPstate,
            Driver::IntelCpufreq,
            Driver::CppcCpufreq,
            Driver::Scmi,
            Driver::CpufreqDt,
        ],
        ..FrequencyRules::V4_16
    };

    pub const V5_4: FrequencyRules =
        FrequencyRules { pstate_iowait: PstateIowait::Doubling, limits_cross: true, ..FrequencyRules::V4_19 };

    /// As in 5.10.262, which is newer in `at_limit` and `acpi_boost` than v5.10 itself.
    pub const V5_10: FrequencyRules = FrequencyRules {
        at_limit: AtLimit::Asks,
        limits_step: LimitsStep::Current,
        preference_numbers: true,
        acpi_boost: AcpiBoost::Told,
        passive_hwp: PassiveHwp::With,
        pstate_start: PstateStart::Passive,
        default_governor: Governor::Schedutil,
        ..FrequencyRules::V5_4
    };

    /// As in 5.15.135, which is older in `at_limit` than 5.10.262, and newer in `table_limits` than v5.15 itself.
    pub const V5_15: FrequencyRules = FrequencyRules {
        at_limit: AtLimit::Nothing,
        limits_step: LimitsStep::Stays,
        table_limits: TableLimits::Entries,
        ..FrequencyRules::V5_10
    };

    pub const V6_1: FrequencyRules = FrequencyRules {
        at_limit: AtLimit::Asks,
        limits_step: LimitsStep::Current,
        no_turbo_scale: NoTurboScale::Follows,
        cppc_switch: CppcSwitch::Fast,
        drivers: &[
            Driver::AcpiCpufreq,
            Driver::IntelPstate,
            Driver::IntelCpufreq,
            Driver::AmdPstate,
            Driver::CppcCpufreq,
            Driver::Scmi,
            Driver::CpufreqDt,
        ],
        ..FrequencyRules::V5_15
    };

    /// As in 6.6.17.
    pub const V6_6: FrequencyRules = FrequencyRules {
        at_limit: AtLimit::Nothing,
        limits_step: LimitsStep::Stays,
        drivers: Driver::ALL,
        ..FrequencyRules::V6_1
    };

    /// As in 6.12.117, which is newer in `deferred_steps` and `at_limit` than v6.12 itself.
    pub const V6_12: FrequencyRules = FrequencyRules {
        transition_delay: TransitionDelay::HalfMore,
        deferred_steps: DeferredSteps::CountedWhereIdle,
        at_limit: AtLimit::Asks,
        limits_step: LimitsStep::Current,
        no_turbo: NoTurbo::Lowers,
        epp_boost: true,
        ..FrequencyRules::V6_6
    };

    /// As in 6.18.35, which is older in `deferred_steps` and `at_limit` than 6.12.117.
    pub const V6_18: FrequencyRules =
        FrequencyRules { deferred_steps: DeferredSteps::Counted, at_limit: AtLimit::Nothing, ..FrequencyRules::V6_12 };

    pub const V7_2: FrequencyRules =
        FrequencyRules { idle_time: IdleTime::WithoutTick, at_limit: AtLimit::Asks, ..FrequencyRules::V6_18 };

    pub const V7_3: FrequencyRules =
        FrequencyRules { deferred_steps: DeferredSteps::CountedWhereIdle, ..FrequencyRules::V7_2 };
}

rules! {
    FrequencyRules {
        sampling, pstate, pstate_iowait, transition_delay, long_sleep, idle_time, deferred_steps, step_floor, at_limit, cppc_switch,
        cppc_delay, acpi_boost, passive_hwp, pstate_start, no_turbo, table_limits, no_turbo_scale, limits_step;
        drivers, governors, default_governor, preference, preference_numbers, hwp_boost,
        epp_boost, limits_cross
    }
}
