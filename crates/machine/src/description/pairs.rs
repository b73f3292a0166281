//! Figures that say nothing without each other.

use super::Description;
use super::error::DescriptionError;

const RULE_BOTH: &str = "figures of one mechanism stand together";

const PAIRS: [[&str; 2]; 2] =
    [["frequency.hwp_burst", "frequency.hwp_burst_still"], ["line.disputed_from", "line.window"]];

/// Refuses one figure of a pair without the other.
pub(super) fn check_pairs(machine: &Description) -> Result<(), DescriptionError> {
    for [one, other] in PAIRS {
        for (has, lacks) in [(one, other), (other, one)] {
            let named = machine.figures.iter().find(|named| named.name == has);
            if let (Some(named), None) = (named, machine.figure(lacks)) {
                let key = lacks.rsplit('.').next().unwrap_or(lacks);
                return Err(DescriptionError {
                    at: named.at.clone(),
                    found: format!("`{has}` without `{lacks}`"),
                    expected: format!("{key} = {{ value = ... }} beside it"),
                    rule: RULE_BOTH.to_string(),
                });
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::{builtin, parse};
    use super::*;

    #[test]
    fn a_figure_of_a_pair_does_not_stand_alone() {
        let (_, text) = builtin().iter().find(|(name, _)| name.starts_with("ivybridge-ex")).expect("it ships");
        let with = |lines: &str| {
            let text = text.replacen("[frequency]\n", &format!("[frequency]\n{lines}\n"), 1);
            parse(&text, "x.toml").map(|_| ()).map_err(|error| error.to_string())
        };
        let figure = |name: &str, value: &str, unit: &str| {
            let rest = "how = \"guess\", source = \"none\"";
            format!("{name} = {{ value = {value}, unit = \"{unit}\", range = [{value}, {value}], {rest} }}")
        };
        let (burst, still) = (figure("hwp_burst", "5", "ms"), figure("hwp_burst_still", "0.3", "ratio"));
        let alone = with(&still).unwrap_err();
        for said in ["`frequency.hwp_burst_still` without `frequency.hwp_burst`", RULE_BOTH] {
            assert!(alone.starts_with("x.toml:") && alone.contains(said), "{alone}");
        }
        assert!(with(&burst).unwrap_err().contains("hwp_burst_still = { value = ... } beside it"));
        assert_eq!(with(&format!("{burst}\n{still}")), Ok(()));
    }
}
