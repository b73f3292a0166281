//! Rules for `[tick]` of a machine file.

use super::Description;
use super::error::DescriptionError;

const RULE: &str = "a tick is one that kernels are built with, as kernel/Kconfig.hz has them";

/// CONFIG_HZ can be one of these.
pub const HERTZ: [u64; 4] = [100, 250, 300, 1_000];

/// Whether a kernel can be built with so many ticks per second.
pub fn is_hz(hertz: u64) -> bool {
    HERTZ.contains(&hertz)
}

/// Refuses a tick that no kernel has.
pub(super) fn check_tick(machine: &Description) -> Result<(), DescriptionError> {
    let rate = machine.figures.iter().find(|named| named.name == "tick.rate");
    let Some(rate) = rate.filter(|rate| !is_hz(rate.figure.hertz())) else { return Ok(()) };
    Err(DescriptionError {
        at: rate.at.clone(),
        found: format!("{} = {}", rate.name, rate.figure),
        expected: format!("one of {} Hz", HERTZ.map(|hertz| hertz.to_string()).join(", ")),
        rule: RULE.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::parse;

    const FIXTURE: &str = include_str!("../../tests/fixtures/two-sockets.toml");

    #[test]
    fn a_tick_is_one_that_a_kernel_can_be_built_with() {
        let with = |value: &str, unit: &str, range: &str| {
            let (head, rest) = FIXTURE.split_once("[tick]\n").expect("a section");
            let (_, tail) = rest.split_once('\n').expect("a line");
            let figure =
                format!("{{ value = {value}, unit = \"{unit}\", range = {range}, how = \"guess\", source = \"s\" }}");
            let text = format!("{head}[tick]\nrate = {figure}\n{tail}");
            let line = head.lines().count() + 2;
            parse(&text, "m.toml").map_err(|error| (error.to_string(), format!("m.toml:{line}:8: ")))
        };
        for rate in ["333", "777", "1", "251"] {
            let (message, place) = with(rate, "Hz", "[1, 2000]").expect_err("no such tick");
            let expected = format!(
                "{place}found tick.rate = {rate} Hz; expected one of 100, 250, 300, 1000 Hz \
                 (rule: a tick is one that kernels are built with, as kernel/Kconfig.hz has them)"
            );
            assert_eq!(message, expected);
        }
        for (rate, unit, hertz) in [("100", "Hz", 100), ("250", "Hz", 250), ("300", "Hz", 300), ("0.001", "MHz", 1000)]
        {
            let machine = with(rate, unit, &format!("[{rate}, {rate}]")).unwrap_or_else(|(error, _)| panic!("{error}"));
            assert_eq!(machine.tick_hertz(), hertz);
        }
    }
}
