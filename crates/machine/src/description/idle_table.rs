//! `[idle]` in a machine file: how an idle CPU is woken, and its states, shallowest first.

use super::Description;
use super::error::DescriptionError;
use super::figure::Dimension;
use super::names::{FACTS, IDLE_KEYS, OPTIONAL_FACTS};
use super::read::{Bounds, RULE_COMPLETE, RULE_NAMES, push_figure, read_fact};
use super::toml_text::Table;
use crate::topology::excerpt;

const RULE_ORDER: &str = "idle states are in order: neither latency nor residency falls from one to the next";

/// `[idle]` with its facts and `[[idle.state]]`, shallowest first.
pub(super) fn read_idle(root: &Table, into: &mut Description) -> Result<(), DescriptionError> {
    let rule = "an idle state has a name, a declared latency and residency, and a true wake time";
    let Some(idle) = root.table("idle")? else {
        return Err(root.error("no [idle]", "[idle] with wake_by and [[idle.state]]", RULE_COMPLETE));
    };
    idle.only(&["wake_by", "package_scope", "state"], RULE_NAMES)?;
    for (name, allowed, _) in FACTS.iter().chain(OPTIONAL_FACTS) {
        let Some(value) = name.strip_prefix("idle.").and_then(|name| idle.get(name)) else { continue };
        into.facts.push(read_fact(&idle, &name["idle.".len()..], value, allowed)?);
    }
    let states = idle.array("state", "[[idle.state]]")?.unwrap_or_default();
    if states.is_empty() {
        return Err(idle.error("no idle states", "[[idle.state]], shallowest first", RULE_COMPLETE));
    }
    let known: Vec<&str> = std::iter::once("name").chain(IDLE_KEYS.iter().map(|key| key.0)).collect();
    for state in states {
        let table = idle.as_table("state", state)?;
        table.only(&known, RULE_NAMES)?;
        let name = table.string("name", rule)?;
        let at = table.get("name").unwrap_or(state);
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if !name.chars().all(plain) {
            let found = format!("the name \"{}\"", excerpt(name, 40));
            return Err(at.error(&found, "letters, digits, - and _", rule));
        }
        if into.idle_states.iter().any(|other| other == name) {
            return Err(at.error(&format!("the idle state {name} for the second time"), "each once", rule));
        }
        let named = table.named(format!("idle.{name}"));
        for (key, required, _) in IDLE_KEYS {
            let bounds = Bounds { dimensions: &[Dimension::Time], limits: Some((0, 10_000_000_000_000)) };
            match named.get(key) {
                Some(value) => push_figure(&named, key, value, &bounds, into)?,
                None if *required => {
                    let found = format!("no `{key}` in {}", named.title());
                    return Err(named.error(&found, &format!("{key} = {{ value = ... }}"), rule));
                }
                None => {}
            }
        }
        into.idle_states.push(name.to_string());
        check_order(&named, into)?;
    }
    Ok(())
}

/// That the last state is declared to be no shallower than the one before.
fn check_order(table: &Table, machine: &Description) -> Result<(), DescriptionError> {
    let [.., before, last] = machine.idle_states.as_slice() else { return Ok(()) };
    for key in ["exit_latency", "target_residency"] {
        let of = |state: &String| machine.figure(&format!("idle.{state}.{key}"));
        let (Some(shallow), Some(deep)) = (of(before), of(last)) else { continue };
        if deep.value < shallow.value {
            let found = format!("`{}` of {deep} after {before} with {shallow}", table.full_name(key));
            let at = table.get(key).map(|value| value.error(&found, &format!("{shallow} or more"), RULE_ORDER));
            return Err(at.unwrap_or_else(|| table.error(&found, &format!("{shallow} or more"), RULE_ORDER)));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::parse;

    const FIXTURE: &str = include_str!("../../tests/fixtures/two-sockets.toml");

    /// The fixture with the declared latency or residency of a state replaced, refused.
    fn refused(state: &str, key: &str, value: &str) -> String {
        let (head, rest) = FIXTURE.split_once(&format!("name = \"{state}\"\n")).expect("a state");
        let (before, rest) = rest.split_once(&format!("{key} = ")).expect("a key");
        let (_, after) = rest.split_once('\n').expect("a line");
        let figure =
            format!("{{ value = {value}, unit = \"us\", source = \"s\", how = \"guess\", range = [0, 9999] }}");
        let text = format!("{head}name = \"{state}\"\n{before}{key} = {figure}\n{after}");
        let line = head.lines().count() + 1 + before.lines().count() + 1;
        let error = parse(&text, "m.toml").expect_err("a bad file").to_string();
        error.strip_prefix(&format!("m.toml:{line}:")).unwrap_or_else(|| panic!("{error} at line {line}")).to_string()
    }

    #[test]
    fn states_do_not_become_shallower() {
        let message = refused("C6", "exit_latency", "1");
        assert!(
            message.contains("found `idle.C6.exit_latency` of 1 us after C3 with 33 us; expected 33 us or more"),
            "{message}"
        );
        assert!(message.contains("(rule: idle states are in order"), "{message}");
        let message = refused("C3", "target_residency", "0.5");
        assert!(message.contains("found `idle.C3.target_residency` of 0.5 us after C1E with 20 us"), "{message}");
    }
}
