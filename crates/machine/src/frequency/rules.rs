//! What differs between kernels in drivers/cpufreq.

use super::{Driver, Governor};

/// drivers/cpufreq of one kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FrequencyRules {
    pub drivers: &'static [Driver],
    pub governors: &'static [Governor],
    /// Where the driver has no policy of its own. Kernels of 4.x are built as distributions did; from v6.1 on it is the choice that
    /// drivers/cpufreq/Kconfig makes where nobody does.
    pub default_governor: Governor,
    /// `energy_performance_preference` is a file.
    pub preference: bool,
}

impl FrequencyRules {
    /// v4.5-rc1 and v4.5.
    pub const V4_5: FrequencyRules = FrequencyRules {
        drivers: &[Driver::AcpiCpufreq, Driver::IntelPstate],
        governors: &[Governor::Performance, Governor::Powersave, Governor::Userspace],
        default_governor: Governor::Ondemand,
        preference: false,
    };

    /// v4.15 and v4.16.
    pub const V4_15: FrequencyRules = FrequencyRules {
        drivers: &[Driver::AcpiCpufreq, Driver::IntelPstate, Driver::IntelCpufreq, Driver::CppcCpufreq],
        preference: true,
        ..FrequencyRules::V4_5
    };

    pub const V6_1: FrequencyRules = FrequencyRules {
        drivers: &[
            Driver::AcpiCpufreq,
            Driver::IntelPstate,
            Driver::IntelCpufreq,
            Driver::AmdPstate,
            Driver::CppcCpufreq,
            Driver::Scmi,
        ],
        default_governor: Governor::Schedutil,
        ..FrequencyRules::V4_15
    };

    pub const V6_12: FrequencyRules = FrequencyRules { drivers: Driver::ALL, ..FrequencyRules::V6_1 };
}
