//! What frequencies of `[frequency]` must be to each other, and what a machine whose frequencies change must tell.

use super::error::DescriptionError;
use super::names::{NEEDED_BY_DRIVERS, NEEDED_BY_HARDWARE};
use super::{Description, NamedFigure};

const RULE_ORDER: &str = "frequencies are in order: the lowest, the marked, turbo falling with more cores";
const RULE_SIMULATED: &str = "a machine with a driver of cpufreq gives every figure that its frequencies need";

/// Refuses frequencies out of order, and a driver without the figures that it needs.
pub(super) fn check_frequencies(machine: &Description) -> Result<(), DescriptionError> {
    let named = |name: &str| machine.figures.iter().find(|named| named.name == name);
    let below = |low: &str, high: &str| match (named(low), named(high)) {
        (Some(low), Some(high)) if low.figure.value > high.figure.value => Err(out_of_order(low, high)),
        _ => Ok(()),
    };
    below("frequency.min", "frequency.base")?;
    below("frequency.base", "frequency.max")?;
    below("frequency.min", "frequency.fixed")?;
    below("frequency.min", "frequency.cap")?;
    below("frequency.min", "frequency.hwp_efficient")?;
    below("frequency.hwp_efficient", "frequency.base")?;
    for kind in machine.topology().kinds() {
        below("frequency.min", &format!("kind.{}.max", kind.name))?;
        below(&format!("kind.{}.max", kind.name), "frequency.max")?;
    }
    let turbo = |cores: u32| named(&format!("frequency.turbo_{cores}"));
    let mut fewer = named("frequency.max");
    for more in (1..=255).filter_map(turbo) {
        if let Some(fewer) = fewer.filter(|fewer| fewer.figure.value < more.figure.value) {
            return Err(out_of_order(more, fewer));
        }
        fewer = Some(more);
    }
    let Some(driver) = machine.facts.iter().find(|named| named.name == "frequency.driver") else { return Ok(()) };
    let hardware = machine.fact("frequency.control").is_some_and(|control| control.value == "hardware");
    let needed = NEEDED_BY_DRIVERS.iter().chain(NEEDED_BY_HARDWARE.iter().filter(|_| hardware));
    for name in needed {
        if named(name).is_none() {
            return Err(DescriptionError {
                at: driver.at.clone(),
                found: format!("a driver, but no `{name}`"),
                expected: format!("{name} = {{ value = ... }}"),
                rule: RULE_SIMULATED.to_string(),
            });
        }
    }
    Ok(())
}

fn out_of_order(low: &NamedFigure, high: &NamedFigure) -> DescriptionError {
    DescriptionError {
        at: low.at.clone(),
        found: format!("{} = {} above {} = {}", low.name, low.figure, high.name, high.figure),
        expected: format!("{} at most {}", low.name, high.figure),
        rule: RULE_ORDER.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse;

    const FIXTURE: &str = include_str!("../../tests/fixtures/two-sockets.toml");

    /// The fixture with lines put into its `[frequency]`.
    fn with(lines: &str) -> String {
        FIXTURE.replacen("[frequency]\n", &format!("[frequency]\n{lines}\n"), 1)
    }

    fn figure(name: &str, value: &str, unit: &str) -> String {
        format!(
            "{name} = {{ value = {value}, unit = \"{unit}\", range = [{value}, {value}], how = \"guess\", source = \"made up\" }}\n"
        )
    }

    fn refused(text: &str) -> String {
        parse(text, "m.toml").expect_err("a bad table").to_string()
    }

    #[test]
    fn frequencies_are_in_order() {
        let more = refused(&with(&figure("turbo_3", "9.9", "GHz")));
        assert!(more.contains("found frequency.turbo_3 = 9.9 GHz above frequency."), "{more}");
        assert!(more.contains("frequencies are in order"), "{more}");
        let cap = refused(&with(&figure("cap", "0.01", "GHz")));
        assert!(cap.contains("above frequency.cap = 0.01 GHz"), "{cap}");
    }

    #[test]
    fn a_driver_needs_its_figures() {
        let driver = "driver = { value = \"intel_pstate\", how = \"guess\", source = \"made up\" }\n";
        let bare = refused(&with(driver));
        assert!(bare.contains("found a driver, but no `frequency.step`; expected frequency.step = {"), "{bare}");
        let wrong = refused(&with(&driver.replace("intel_pstate", "intel_pstat")));
        assert!(wrong.contains("expected one of acpi-cpufreq, intel_pstate"), "{wrong}");
        let figures = [
            figure("step", "100", "MHz"),
            figure("transition_latency", "20", "us"),
            figure("hold_off", "500", "us"),
            figure("declared_latency", "10", "us"),
            figure("turbo_exit_latency", "30", "us"),
        ];
        let whole = with(&(driver.to_string() + &figures.concat()));
        let machine = parse(&whole, "m.toml").unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(machine.fact("frequency.driver").map(|fact| fact.value.as_str()), Some("intel_pstate"));
        let again = parse(&machine.to_toml(), "again.toml").unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(again.to_toml(), machine.to_toml());
        let model = crate::frequency::Model::of(&machine).expect("all figures");
        assert_eq!((model.step_khz, model.hold_off.ns().0, model.turbo_exit_latency_us), (100_000, 500_000, 30));
    }
}
