//! What a limit on the power of packages requires, and how low it may be.

use super::error::DescriptionError;
use super::{Description, NamedFigure};
use crate::topology::Part;
use units::Ps;

const RULE_POWERS: &str = "what packages draw is limited where the file tells what CPUs draw in every state";
const RULE_WINDOW: &str = "a limit holds for a mean over a window, which is no shorter than a control interval";
const RULE_LEAST: &str = "a package can keep its limit with all its cores executing at their lowest frequency";

/// MSR_PKG_ENERGY_STATUS "is updated every ~1msec" (Intel's manual, volume 3, 14.9.3): firmware has no newer data.
const INTERVAL: Ps = Ps(1_000_000_000);

impl Description {
    /// How often packages with a limit evaluate what they drew: not more often than their clocks can follow.
    pub fn power_interval(&self) -> Ps {
        let time = |name: &str| self.figure(name).map(super::Figure::time);
        let follows = ["frequency.transition_latency", "frequency.hold_off"].map(|name| time(name).unwrap_or(Ps::ZERO));
        time("frequency.power_interval").unwrap_or(INTERVAL).max(follows[0] + follows[1])
    }

    /// What a package draws with all its cores executing at the lowest frequency whose power is known, in microwatts;
    /// the most, if packages differ. `None` unless the file gives the power of every state.
    pub fn least_package_power(&self) -> Option<u64> {
        let known = !self.energy.is_empty() && self.energy.iter().all(|domain| !domain.idle.is_empty());
        let lowest = |core: &Part| {
            let domain = self.energy.iter().find(|domain| domain.cpus.intersects(&core.cpus))?;
            Some(self.figure(&format!("{}.power", domain.state_names().next()?))?.value)
        };
        let cores = |package: &Part| -> u64 {
            let cores = self.topology.cores().iter().filter(|core| core.cpus.intersects(&package.cpus));
            cores.filter_map(lowest).sum()
        };
        let most = self.topology.packages().iter().map(cores).max().filter(|_| known)?;
        Some(most + self.figure("energy.package.awake").map_or(0, |figure| figure.value))
    }
}

/// Refuses a limit without powers or a window, and a limit that cannot be kept.
pub(super) fn check_power_limit(machine: &Description) -> Result<(), DescriptionError> {
    let named = |name: &str| machine.figures.iter().find(|named| named.name == name);
    let wrong = |of: &NamedFigure, found: String, expected: String, rule: &str| {
        Err(DescriptionError { at: of.at.clone(), found, expected, rule: rule.to_string() })
    };
    let interval = machine.power_interval();
    if let Some(window) = named("frequency.power_window").filter(|window| window.figure.time() < interval) {
        let expected = format!("{} us, a control interval, or more", interval.0.div_ceil(1_000_000));
        return wrong(window, format!("{} = {}", window.name, window.figure), expected, RULE_WINDOW);
    }
    let Some(limit) = named("frequency.power_limit") else { return Ok(()) };
    let said = format!("{} = {}", limit.name, limit.figure);
    let Some(least) = machine.least_package_power() else {
        let expected = "[energy] with the power of every frequency and every idle state, or no limit".to_string();
        return wrong(limit, format!("{said} on a machine whose powers are not told"), expected, RULE_POWERS);
    };
    if named("frequency.power_window").is_none() {
        let expected = "power_window = { value = ... } beside it".to_string();
        return wrong(limit, format!("{said}, but no `frequency.power_window`"), expected, RULE_WINDOW);
    }
    if limit.figure.value < least {
        let unit = limit.figure.unit;
        return wrong(limit, said, format!("{} {} or more", unit.text(least), unit.name), RULE_LEAST);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::builtin;
    use super::*;

    /// The phone, whose cores draw 4 * 56.5 + 4 * 186.4 = 971.6 mW at their lowest frequencies, with these lines in its
    /// `[frequency]`.
    fn phone(lines: &str) -> Result<Description, String> {
        let (_, text) = builtin().iter().find(|(name, _)| name.starts_with("snapdragon")).expect("it ships");
        let text = text.replacen("[frequency]\n", &format!("[frequency]\n{lines}"), 1);
        super::super::parse(&text, "m.toml").map_err(|error| error.to_string())
    }

    fn figure(name: &str, value: &str, unit: &str) -> String {
        let rest = "how = \"guess\", source = \"made up\"";
        format!("{name} = {{ value = {value}, unit = \"{unit}\", range = [{value}, {value}], {rest} }}\n")
    }

    fn limit(value: &str, unit: &str) -> String {
        figure("power_limit", value, unit) + &figure("power_window", "1000", "ms")
    }

    #[test]
    fn a_limit_is_read() {
        let machine = phone(&limit("2", "W")).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(machine.figure("frequency.power_limit").map(|figure| figure.value), Some(2_000_000));
        assert_eq!(machine.least_package_power(), Some(971_600));
        // A transition of 100 us and a hold-off of 500 us are less than the default interval.
        assert_eq!(machine.power_interval(), Ps(1_000_000_000));
        let short = phone(&figure("power_interval", "200", "us")).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(short.power_interval(), Ps(600_000_000));
        let again = super::super::parse(&machine.to_toml(), "again.toml").unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(again.to_toml(), machine.to_toml());
        let borrowed = machine.clone().with_topology(machine.topology().clone(), "a test", super::super::How::Guess);
        assert_eq!((borrowed.figure("frequency.power_limit"), borrowed.least_package_power()), (None, None));
        phone(&limit("971.6", "mW")).unwrap_or_else(|error| panic!("{error}"));
    }

    #[test]
    fn a_limit_that_cannot_be_kept_is_refused() {
        let refused = |lines: &str| phone(lines).expect_err("a bad limit");
        let low = refused(&limit("971.5", "mW"));
        assert!(low.starts_with("m.toml:"), "{low}");
        assert!(
            low.contains(": found frequency.power_limit = 971.5 mW; expected 971.6 mW or more (rule: a package can"),
            "{low}"
        );
        assert!(refused(&limit("0", "W")).contains("found the value 0"));
        assert!(refused(&limit("-1", "W")).contains("found the value -1"));
        assert!(refused(&limit("10001", "W")).contains("found the value 10001"));
        assert!(refused(&limit("2", "MHz")).contains("expected one of uW, mW, W"));
        let bare = refused(&figure("power_limit", "2", "W"));
        assert!(bare.contains("found frequency.power_limit = 2 W, but no `frequency.power_window`"), "{bare}");
        let window = |value: &str, unit: &str| refused(&figure("power_window", value, unit));
        assert!(window("0", "ms").contains("found the value 0"));
        let short = window("999", "us");
        assert!(
            short.contains("found frequency.power_window = 999 us; expected 1000 us, a control interval, or"),
            "{short}"
        );
        let fixture = include_str!("../../tests/fixtures/two-sockets.toml");
        let text = fixture.replacen("[frequency]\n", &format!("[frequency]\n{}", limit("200", "W")), 1);
        let error = super::super::parse(&text, "m.toml").expect_err("no powers").to_string();
        assert!(
            error.contains("found frequency.power_limit = 200 W on a machine whose powers are not told"),
            "{error}"
        );
    }
}
