//! How the frequencies of `[frequency]` must relate to each other, and what a machine with changing frequencies must
//! give.

use super::distance_rules::contradiction;
use super::error::DescriptionError;
use super::names::{GOVERNED_BY, NEEDED_BY_DRIVERS, NEEDED_BY_HARDWARE, vendors_of_driver};
use super::{Description, NamedFigure};
use crate::topology::CpuKind;

const RULE_ORDER: &str =
    "frequencies are in order: the lowest, the marked and the fixed, the highest, turbo falling with more cores";
const RULE_STEP: &str = "a step leads from one frequency to another";
const RULE_POINTS: &str = "the operating points of a kind of CPU end at its highest frequency";
const RULE_VENDOR: &str = "a driver of cpufreq is for the processors that it knows";
const RULE_HOST: &str = "a guest whose host governs frequencies has no driver of cpufreq";
const RULE_SIMULATED: &str = "a machine with a driver of cpufreq gives every figure that its frequencies need";

/// Refuses frequencies out of order, and a driver without the figures that it needs.
pub(super) fn check_frequencies(machine: &Description) -> Result<(), DescriptionError> {
    let named = |name: &str| machine.figures.iter().find(|named| named.name == name);
    let below = |low: &str, high: &str| match (named(low), named(high)) {
        (Some(low), Some(high)) if low.figure.value > high.figure.value => Err(contradiction(low, high, RULE_ORDER)),
        _ => Ok(()),
    };
    below("frequency.min", "frequency.base")?;
    below("frequency.base", "frequency.max")?;
    below("frequency.min", "frequency.fixed")?;
    below("frequency.fixed", "frequency.max")?;
    below("frequency.min", "frequency.cap")?;
    below("frequency.min", "frequency.hwp_efficient")?;
    below("frequency.hwp_efficient", "frequency.base")?;
    turbo_falls(machine, "frequency", "frequency.min")?;
    check_step(machine)?;
    for kind in machine.topology().kinds() {
        let section = format!("kind.{}", kind.name);
        let own = |name: &str| format!("{section}.{name}");
        let either = |name: &str| match named(&own(name)) {
            Some(_) => own(name),
            None => format!("frequency.{name}"),
        };
        // Frequencies that the kind does not have of its own are the machine's, as far as the kind reaches.
        below(&either("min"), &either("max"))?;
        below(&either("min"), &own("base"))?;
        below(&own("min"), &either("base"))?;
        below(&own("base"), &either("max"))?;
        below(&own("max"), "frequency.max")?;
        turbo_falls(machine, &section, &either("min"))?;
    }
    check_operating_points(machine)?;
    let Some(driver) = machine.facts.iter().find(|named| named.name == "frequency.driver") else { return Ok(()) };
    if machine.host_governs_frequencies() {
        return Err(DescriptionError {
            at: driver.at.clone(),
            found: format!("the driver {} beside {GOVERNED_BY} = host", driver.fact.value),
            expected: "one of the two".to_string(),
            rule: RULE_HOST.to_string(),
        });
    }
    let vendors = vendors_of_driver(&driver.fact.value);
    if let Some(vendor) = machine.vendor().filter(|vendor| !vendors.contains(vendor)) {
        return Err(DescriptionError {
            at: driver.at.clone(),
            found: format!("the driver {} on processors that are {vendor}'s", driver.fact.value),
            expected: format!("a driver for them; this one is for {}", vendors.join(" and ")),
            rule: RULE_VENDOR.to_string(),
        });
    }
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

/// Requires that the range of frequencies, if it is not a single one, contains two that are a step apart.
fn check_step(machine: &Description) -> Result<(), DescriptionError> {
    let named = |name: &str| machine.figures.iter().find(|named| named.name == name);
    let Some(step) = named("frequency.step") else { return Ok(()) };
    let room = machine.figure("frequency.max").zip(machine.figure("frequency.min"));
    let room = room.map_or(0, |(max, min)| max.value.saturating_sub(min.value));
    if room == 0 || step.figure.value <= room {
        return Ok(());
    }
    let unit = step.figure.unit;
    Err(DescriptionError {
        at: step.at.clone(),
        found: format!("{} = {}", step.name, step.figure),
        expected: format!(
            "{} {} at most, what lies between frequency.min and frequency.max",
            unit.text(room),
            unit.name
        ),
        rule: RULE_STEP.to_string(),
    })
}

/// Requires that turbo frequencies of a section do not rise with the active cores, nor end below the lowest frequency.
fn turbo_falls(machine: &Description, section: &str, min: &str) -> Result<(), DescriptionError> {
    let prefix = format!("{section}.");
    let mut bins: Vec<(u64, &NamedFigure)> = Vec::new();
    for named in &machine.figures {
        match named.name.strip_prefix(&prefix) {
            Some("max") => bins.push((0, named)),
            Some(name) => bins.extend(name.strip_prefix("turbo_").and_then(|cores| Some((cores.parse().ok()?, named)))),
            None => {}
        }
    }
    bins.sort_by_key(|&(cores, _)| cores);
    let mut fewer: Option<&NamedFigure> = None;
    for (_, more) in bins {
        if let Some(fewer) = fewer.filter(|fewer| fewer.figure.value < more.figure.value) {
            return Err(contradiction(more, fewer, RULE_ORDER));
        }
        fewer = Some(more);
    }
    let min = machine.figures.iter().find(|named| named.name == min);
    match (fewer, min) {
        (Some(last), Some(min)) if last.figure.value < min.figure.value => Err(contradiction(last, min, RULE_ORDER)),
        _ => Ok(()),
    }
}

/// Requires that operating points of CPUs whose kind has a highest frequency of its own do not exceed it.
fn check_operating_points(machine: &Description) -> Result<(), DescriptionError> {
    for domain in machine.energy_domains() {
        let of_kind = |kind: &&CpuKind| kind.cpus.intersects(&domain.cpus);
        let max = machine.topology().kinds().iter().find(of_kind).map(|kind| format!("kind.{}.max", kind.name));
        let named = |name: &str| machine.figures.iter().find(|named| named.name == name);
        let last = domain.state_names().last().and_then(|state| named(&format!("{state}.frequency")));
        if let (Some(last), Some(max)) = (last, max.and_then(|max| named(&max)))
            && last.figure.value != max.figure.value
        {
            return Err(DescriptionError {
                at: last.at.clone(),
                found: format!(
                    "CPUs {}, whose frequencies end at {}, beside {} = {}",
                    domain.cpus.list(),
                    last.figure,
                    max.name,
                    max.figure
                ),
                expected: format!("a last [[energy.domain.state]] at {}", max.figure),
                rule: RULE_POINTS.to_string(),
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::parse;

    const FIXTURE: &str = include_str!("../../tests/fixtures/two-sockets.toml");

    /// The fixture with lines inserted into its `[frequency]`.
    fn with(lines: &str) -> String {
        FIXTURE.replacen("[frequency]\n", &format!("[frequency]\n{lines}\n"), 1)
    }

    fn figure(name: &str, value: &str, unit: &str) -> String {
        format!(
            "{name} = {{ value = {value}, unit = \"{unit}\", range = [{value}, {value}], how = \"guess\", source = \"made up\" }}\n"
        )
    }

    #[test]
    fn periods_are_long_enough_to_come_to_an_end() {
        for (name, value, unit, least) in [
            ("hwp_window", "0", "ms", "from 0.01 to 1000 ms"),
            ("hwp_window", "9.999", "us", "from 10 to 1000000 us"),
            ("hwp_ramp", "0", "ms", "from 0.001 to 1000 ms"),
        ] {
            let error = refused(&with(&figure(name, value, unit)));
            assert!(error.contains(&format!("found the value {value} {unit}; expected {least} (rule: ")), "{error}");
        }
        // `sensitivity` goes through the whole range.
        let low = figure("hwp_window", "1", "ms").replace("[1,", "[0,");
        assert!(refused(&with(&low)).contains("expected from 0.01 to 1000 ms"), "{low}");
        parse(&with(&(figure("hwp_window", "10", "us") + &figure("hwp_ramp", "1", "us"))), "m.toml")
            .unwrap_or_else(|error| panic!("{error}"));
    }

    #[test]
    fn a_guest_has_no_driver_where_its_host_governs() {
        let fact = |name: &str, value: &str| {
            format!("{name} = {{ value = \"{value}\", how = \"guess\", source = \"made up\" }}\n")
        };
        let both = refused(&with(&(fact("governed_by", "host") + &fact("driver", "intel_pstate"))));
        assert!(
            both.contains("found the driver intel_pstate beside frequency.governed_by = host; expected one of"),
            "{both}"
        );
        let guest = parse(&with(&fact("governed_by", "host")), "m.toml").unwrap_or_else(|error| panic!("{error}"));
        let kernel = parse(&with(&fact("governed_by", "kernel")), "m.toml").unwrap_or_else(|error| panic!("{error}"));
        assert_eq!([guest, kernel].map(|machine| machine.host_governs_frequencies()), [true, false]);
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
        let (head, rest) = FIXTURE.split_once("\nfixed = ").expect("a frequency");
        let (_, tail) = rest.split_once('\n').expect("a line");
        let fixed = |value: &str| format!("{head}\n{}{tail}", figure("fixed", value, "GHz"));
        let line = head.lines().count() + 1;
        let message = refused(&fixed("3.2"));
        let start = format!(
            "m.toml:{line}:9: found frequency.fixed = 3.2 GHz above frequency.max = 3.1 GHz; expected frequency.fixed of 3.1 GHz or less (rule: frequencies are in order"
        );
        assert!(message.starts_with(&start), "{message}");
        parse(&fixed("3.1"), "m.toml").unwrap_or_else(|error| panic!("{error}"));
    }

    #[test]
    fn turbo_is_no_lower_than_the_lowest_frequency() {
        let low = refused(&with(&figure("turbo_16", "1.1", "GHz")));
        assert!(
            low.contains(
                "found frequency.turbo_16 = 1.1 GHz below frequency.min = 1.2 GHz; expected frequency.turbo_16 of 1.2 GHz or more (rule: frequencies are in order"
            ),
            "{low}"
        );
        parse(&with(&figure("turbo_16", "1.2", "GHz")), "m.toml").unwrap_or_else(|error| panic!("{error}"));
        // For a kind, its own lowest frequency, or the machine's.
        let lowest = "frequency.min = 0.8 GHz";
        for (of_kind, bound) in [("", lowest), (&*figure("min", "0.9", "GHz"), "kind.E-core.min = 0.9 GHz")] {
            let kind = format!("[kind.E-core]\n{of_kind}{}", figure("turbo_8", "0.7", "GHz"));
            let text = format!("name = \"own\"\nextends = \"core-i9-12900k\"\ndescription = \"d\"\n{kind}");
            let low = refused(&text);
            assert!(low.contains(&format!("kind.E-core.turbo_8 = 0.7 GHz below {bound}")), "{low}");
        }
    }

    #[test]
    fn a_step_leads_from_one_frequency_to_another() {
        let far = refused(&with(&figure("step", "2000", "MHz")));
        assert!(
            far.contains(
                "found frequency.step = 2000 MHz; expected 1900 MHz at most, what lies between frequency.min and frequency.max (rule: a step leads"
            ),
            "{far}"
        );
        parse(&with(&figure("step", "1900", "MHz")), "m.toml").unwrap_or_else(|error| panic!("{error}"));
    }

    #[test]
    fn a_driver_needs_its_figures() {
        let driver = "driver = { value = \"intel_pstate\", how = \"guess\", source = \"made up\" }\n";
        let bare = refused(&with(driver));
        assert!(bare.contains("found a driver, but no `frequency.step`; expected frequency.step = {"), "{bare}");
        let wrong = refused(&with(&driver.replace("intel_pstate", "intel_pstat")));
        assert!(wrong.contains("found \"intel_pstat\"; expected \"intel_pstate\", perhaps"), "{wrong}");
        let zen = "[processor]\nmake = { value = \"amd-zen\", how = \"guess\", source = \"made up\" }\n";
        let others = refused(&format!("{}\n{zen}", with(driver)));
        let expected = "found the driver intel_pstate on processors that are amd's; expected a driver for them; this one is for intel (";
        assert!(others.contains(expected), "{others}");
        let wrong = refused(&with(&driver.replace("intel_pstate", "longhaul")));
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
