//! `[idle]` in a machine file: how an idle CPU is woken, and its states, the shallowest first.

use super::Description;
use super::entry::{Bounds, RULE_COMPLETE, RULE_NAMES, push_figure, read_fact};
use super::error::DescriptionError;
use super::figure::Dimension;
use super::names::{FACTS, FLUSHES, IDLE_KEYS, IDLE_STATE_FACTS, KEYS, OPTIONAL_FACTS, OWN_CACHES};
use super::toml_text::{Node, Table};
use crate::topology::excerpt;

const RULE_ORDER: &str = "idle states are in order: neither latency nor residency falls from one to the next";
const RULE_WAKE: &str = "a deeper idle state may, in its range, take as long to wake as the one before";
const RULE_FLUSH: &str =
    "a deeper idle state keeps no more in the caches than a shallower one, and one that polls keeps all";

const RULE_ROOM: &str = "idle states have room in Linux's table (CPUIDLE_STATE_MAX of include/linux/cpuidle.h)";
/// include/linux/cpuidle.h: CPUIDLE_STATE_MAX.
const MOST_STATES: usize = 10;

const RULE: &str = "an idle state has a name, a declared latency and residency, and a true wake time";
const RULE_PACKAGE: &str =
    "into which idle states packages go is the machine's, how long waking takes then may be a kind's own";
const RULE_KIND: &str = "a kind of CPU has the machine's idle states, by name and in order, with figures of its own";

/// `[idle]` with its facts and `[[idle.state]]`, shallowest first.
pub(super) fn read_idle(root: &Table, into: &mut Description) -> Result<(), DescriptionError> {
    let Some(idle) = root.table("idle")? else {
        return Err(root.error("no [idle]", "[idle] with wake_by and [[idle.state]]", RULE_COMPLETE));
    };
    idle.only(&["wake_by", "governor", "halt_poll", "relax", "package_scope", "state"], RULE_NAMES)?;
    for (name, allowed, _) in FACTS.iter().chain(OPTIONAL_FACTS) {
        let Some(value) = name.strip_prefix("idle.").and_then(|name| idle.get(name)) else { continue };
        into.facts.push(read_fact(&idle, &name["idle.".len()..], value, allowed)?);
    }
    for key in KEYS {
        let Some((name, value)) = key.name.strip_prefix("idle.").and_then(|name| Some((name, idle.get(name)?))) else {
            continue;
        };
        push_figure(&idle, name, value, &Bounds::of(key), into)?;
    }
    let states = idle.array("state", "[[idle.state]]")?.unwrap_or_default();
    if states.is_empty() {
        return Err(idle.error("no idle states", "[[idle.state]], shallowest first", RULE_COMPLETE));
    }
    for state in states {
        let (table, name) = read_state(&idle, state, "idle", into)?;
        let at = table.get("name").unwrap_or(state);
        if into.idle_states.contains(&name) {
            return Err(at.error(&format!("the idle state {name} for the second time"), "each once", RULE));
        }
        if into.idle_states.len() == MOST_STATES {
            let found = format!("the idle state {name}, which is number {}", MOST_STATES + 1);
            let expected = format!("{MOST_STATES} at most, the one that polls included");
            return Err(at.error(&found, &expected, RULE_ROOM));
        }
        into.idle_states.push(name);
        check_order(&table, "idle", &into.idle_states, into)?;
    }
    Ok(())
}

/// `[[kind.NAME.idle.state]]`: the machine's states, as CPUs of one kind have them.
pub(super) fn read_idle_of_kind(kind: &Table, into: &mut Description) -> Result<(), DescriptionError> {
    let Some(idle) = kind.table("idle")? else { return Ok(()) };
    idle.only(&["state"], RULE_NAMES)?;
    let path = idle.path.clone();
    let states = idle.array("state", &format!("[[{path}.state]]"))?.unwrap_or_default();
    let known = into.idle_states.clone();
    for (index, state) in states.iter().enumerate() {
        let (table, name) = read_state(&idle, state, &path, into)?;
        let at = table.get("name").unwrap_or(state);
        if known.get(index) != Some(&name) {
            let expected = match known.get(index) {
                Some(expected) => format!("{expected}, which is number {} of [[idle.state]]", index + 1),
                None => format!("the {} states of [[idle.state]] and no more", known.len()),
            };
            return Err(at.error(&format!("the idle state {name}"), &expected, RULE_KIND));
        }
        check_order(&table, &path, &known[..=index], into)?;
        check_package_wake(&table, &path, &known[..=index], into)?;
        let polls =
            |prefix: &str| into.figure(&format!("{prefix}.{name}.target_residency")).map(|figure| figure.value == 0);
        if polls(&path) != polls("idle") {
            let found = format!("`{}` that polls, or not, unlike `idle.{name}`", table.path);
            return Err(at.error(
                &found,
                "a target_residency of 0 where [[idle.state]] has it, and nowhere else",
                RULE_KIND,
            ));
        }
    }
    match known.get(states.len()) {
        Some(missing) => {
            Err(idle.error(&format!("no {missing} in [[{path}.state]]"), "each of [[idle.state]]", RULE_KIND))
        }
        None => Ok(()),
    }
}

/// Requires that a kind's CPUs take longer to wake with their package only in states that packages enter: the last of
/// the machine's `states`, or an earlier one, must say so.
fn check_package_wake(
    table: &Table,
    prefix: &str,
    states: &[String],
    machine: &Description,
) -> Result<(), DescriptionError> {
    let takes = |prefix: &str, state: &String| {
        machine.figure(&format!("{prefix}.{state}.package_wake")).is_some_and(|wake| wake.value > 0)
    };
    let last = states.last().expect("the state itself");
    if !takes(prefix, last) || states.iter().any(|state| takes("idle", state)) {
        return Ok(());
    }
    let found = format!("`{}`, while packages do not go into {last}", table.full_name("package_wake"));
    let expected = format!("package_wake of {last}, or of a state before it, in [[idle.state]]");
    Err(table.get("package_wake").expect("it was read").error(&found, &expected, RULE_PACKAGE))
}

/// Reads one state. The names of its figures begin with `prefix` and its name. Returns that name.
fn read_state<'t, 'a>(
    idle: &Table<'t, 'a>,
    state: &'t Node<'a>,
    prefix: &str,
    into: &mut Description,
) -> Result<(Table<'t, 'a>, String), DescriptionError> {
    let table = idle.as_table("state", state)?;
    let facts = IDLE_STATE_FACTS.iter().map(|fact| fact.0);
    let known: Vec<&str> = std::iter::once("name").chain(IDLE_KEYS.iter().map(|key| key.0)).chain(facts).collect();
    table.only(&known, RULE_NAMES)?;
    let name = table.string("name", RULE)?.to_string();
    let at = table.get("name").unwrap_or(state);
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if !name.chars().all(plain) {
        let found = format!("the name \"{}\"", excerpt(&name, 40));
        return Err(at.error(&found, "letters, digits, - and _", RULE));
    }
    let named = table.named(format!("{prefix}.{name}"));
    for (key, required, _) in IDLE_KEYS {
        let bounds = Bounds { dimensions: &[Dimension::Time], limits: Some((0, 10_000_000_000_000)) };
        match named.get(key) {
            Some(value) => push_figure(&named, key, value, &bounds, into)?,
            None if *required => {
                let found = format!("no `{key}` in {}", named.title());
                return Err(named.error(&found, &format!("{key} = {{ value = ... }}"), RULE));
            }
            None => {}
        }
    }
    for (fact, allowed, _) in IDLE_STATE_FACTS {
        if let Some(value) = named.get(fact) {
            into.facts.push(read_fact(&named, fact, value, allowed)?);
        }
    }
    Ok((named, name))
}

/// Requires that the last of these states is declared no shallower than the one before, flushes at least as much, and
/// does not wake sooner. Its wake time may be less, since the two are determined separately, but not its whole range.
fn check_order(table: &Table, prefix: &str, states: &[String], machine: &Description) -> Result<(), DescriptionError> {
    let flushes = |state: &String| machine.flushes(prefix, state);
    let residency = |state: &String| machine.figure(&format!("{prefix}.{state}.target_residency"));
    let polls = |state: &String| residency(state).is_some_and(|us| us.value == 0);
    if let Some(last) = states.last().filter(|last| flushes(last) && polls(last)) {
        let found = format!("`{}` of {last}, which polls", table.full_name(FLUSHES));
        return Err(at_flushes(table, &found, "a state that halts the CPU"));
    }
    let [.., before, last] = states else { return Ok(()) };
    if flushes(before) && !flushes(last) {
        let found = format!("{last}, which flushes nothing, after {before}, which does");
        return Err(at_flushes(table, &found, &format!("flushes = {{ value = \"{OWN_CACHES}\", ... }}")));
    }
    for key in ["exit_latency", "target_residency"] {
        let of = |state: &String| machine.figure(&format!("{prefix}.{state}.{key}"));
        let (Some(shallow), Some(deep)) = (of(before), of(last)) else { continue };
        if deep.value < shallow.value {
            let found = format!("`{}` of {deep} after {before} with {shallow}", table.full_name(key));
            let at = table.get(key).map(|value| value.error(&found, &format!("{shallow} or more"), RULE_ORDER));
            return Err(at.unwrap_or_else(|| table.error(&found, &format!("{shallow} or more"), RULE_ORDER)));
        }
    }
    let wake = |state: &String| machine.figure(&format!("{prefix}.{state}.wake"));
    if let (Some(shallow), Some(deep)) = (wake(before), wake(last))
        && deep.range.1 < shallow.range.0
        // A polling loop is as slow as what it does between two looks.
        && !polls(before)
    {
        let found = format!(
            "`{}` of {deep}, all of whose range is below that of {before} with {shallow}",
            table.full_name("wake")
        );
        let expected = "ranges that overlap, or the states in their order";
        let at = table.get("wake").map(|value| value.error(&found, expected, RULE_WAKE));
        return Err(at.unwrap_or_else(|| table.error(&found, expected, RULE_WAKE)));
    }
    Ok(())
}

/// An error at the place where a state says what it flushes, or else at the state.
fn at_flushes(table: &Table, found: &str, expected: &str) -> DescriptionError {
    match table.get(FLUSHES) {
        Some(value) => value.error(found, expected, RULE_FLUSH),
        None => table.error(found, expected, RULE_FLUSH),
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use crate::idle::Governor;

    const FIXTURE: &str = include_str!("../../tests/fixtures/two-sockets.toml");

    /// The fixture with the declared latency or residency of a state replaced, which must be refused.
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
    fn a_governor_and_its_limit_are_read_and_written() {
        let governor = "governor = { value = \"haltpoll\", how = \"guess\", source = \"s\" }";
        let limit = "halt_poll = { value = 0, unit = \"ns\", range = [0, 0], how = \"guess\", source = \"s\" }";
        let with = |lines: &str| FIXTURE.replacen("[idle]\n", &format!("[idle]\n{lines}\n"), 1);
        let machine = parse(&with(&format!("{governor}\n{limit}")), "m.toml").unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(machine.idle_governor(), Some(Governor::Haltpoll));
        assert_eq!(machine.halt_poll_ns(), Some(0));
        let again = parse(&machine.to_toml(), "again.toml").unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(again.to_toml(), machine.to_toml());
        assert_eq!((again.idle_governor(), again.halt_poll_ns()), (Some(Governor::Haltpoll), Some(0)));
        let bare = parse(FIXTURE, "m.toml").unwrap_or_else(|error| panic!("{error}"));
        assert_eq!((bare.idle_governor(), bare.halt_poll_ns()), (None, None));
        let wrong = parse(&with(&governor.replace("haltpoll", "halt")), "m.toml").expect_err("no such").to_string();
        assert!(
            wrong.contains("found \"halt\"; expected \"haltpoll\", perhaps (rule: every fact is one of the words"),
            "{wrong}"
        );
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

    #[test]
    fn there_are_no_more_states_than_linux_has_room_for() {
        // The fixture has five.
        let with = |states: usize| {
            let time = "{ value = 200, unit = \"us\", range = [1, 9999], how = \"guess\", source = \"s\" }";
            let residency = time.replace("200", "900");
            let state = |number: usize| {
                format!(
                    "[[idle.state]]\nname = \"S{number}\"\nexit_latency = {time}\n\
                     target_residency = {residency}\nwake = {time}\n"
                )
            };
            let (head, tail) = FIXTURE.split_once("name = \"C6\"\n").expect("the last state");
            let (before, after) = tail.split_once("\n[").expect("what follows it");
            let states: String = (6..=states).map(state).collect();
            let head = format!("{head}name = \"C6\"\n{before}\n");
            (parse(&format!("{head}{states}[{after}"), "m.toml"), head.lines().count())
        };
        let (ten, _) = with(10);
        assert_eq!(ten.unwrap_or_else(|error| panic!("{error}")).idle_states().len(), 10);
        let (eleven, line) = with(11);
        assert_eq!(
            eleven.expect_err("one too many").to_string(),
            format!(
                "m.toml:{}:8: found the idle state S11, which is number 11; expected 10 at most, the one that polls included \
                 (rule: idle states have room in Linux's table (CPUIDLE_STATE_MAX of include/linux/cpuidle.h))",
                line + 5 * 5 + 2
            )
        );
    }

    #[test]
    fn a_deeper_state_may_not_wake_sooner_by_all_of_its_range() {
        // The guess for C3's wake time is 15 us, with a range of 4 to 33 us.
        let wake = |value: &str, range: &str| {
            let (head, rest) = FIXTURE.split_once("name = \"C6\"\n").expect("a state");
            let (before, rest) = rest.split_once("wake = ").expect("a key");
            let (_, after) = rest.split_once('\n').expect("a line");
            let figure =
                format!("{{ value = {value}, unit = \"us\", source = \"s\", how = \"guess\", range = {range} }}");
            let line = head.lines().count() + 1 + before.lines().count() + 1;
            let text = format!("{head}name = \"C6\"\n{before}wake = {figure}\n{after}");
            parse(&text, "m.toml").map_err(|error| (error.to_string(), format!("m.toml:{line}:")))
        };
        let (message, place) = wake("2", "[1, 3.9]").expect_err("sooner");
        assert!(message.starts_with(&place), "{message}");
        let found = "found `idle.C6.wake` of 2 us, all of whose range is below that of C3 with 15000 ns; expected ranges that overlap";
        assert!(message.contains(found), "{message}");
        assert!(message.contains("(rule: a deeper idle state may, in its range, take as long to wake"), "{message}");
        wake("2", "[1, 4]").unwrap_or_else(|(error, _)| panic!("they meet: {error}"));
    }

    /// The fixture with lines inserted after the names of states.
    fn fixture(lines: &[(&str, &str)]) -> String {
        lines.iter().fold(FIXTURE.to_string(), |text, (state, line)| {
            let name = format!("name = \"{state}\"\n");
            text.replacen(&name, &format!("{name}{line}\n"), 1)
        })
    }

    const FLUSHES: &str = "flushes = { value = \"own-caches\", how = \"guess\", source = \"s\" }";

    #[test]
    fn what_a_state_flushes_is_read_and_written() {
        let flushing = |machine: &super::Description| {
            let states = machine.idle_states().into_iter();
            states.filter(|state| state.flushes).map(|state| state.name).collect::<Vec<_>>()
        };
        let none = FLUSHES.replace("own-caches", "nothing");
        let text = fixture(&[("C1", &none), ("C3", FLUSHES), ("C6", FLUSHES)]);
        let machine = parse(&text, "m.toml").unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(flushing(&machine), ["C3", "C6"]);
        assert_eq!(machine.fact("idle.C1.flushes").map(|fact| fact.value.as_str()), Some("nothing"));
        let again = parse(&machine.to_toml(), "again.toml").unwrap_or_else(|error| panic!("{error}"));
        assert_eq!((flushing(&again), again.to_toml()), (flushing(&machine), machine.to_toml()));
        assert!(flushing(&parse(FIXTURE, "m.toml").unwrap()).is_empty(), "nothing is flushed that no file says");
        let shipped = |name: &str| {
            let file = super::super::shipped(name).expect("it ships");
            parse(&file.text, &file.file).unwrap_or_else(|error| panic!("{error}"))
        };
        assert_eq!(flushing(&shipped("core-i7-3770")), ["C3", "C6"]);
        assert!(flushing(&shipped("cloud-vm-2")).is_empty(), "what the host does is not known");
        let phone = shipped("snapdragon-845");
        assert_eq!(flushing(&phone), ["rail-off"]);
        let [(_, little)] = phone.idle_states_of_kinds().try_into().expect("one kind has its own");
        assert_eq!(little.iter().map(|state| state.flushes).collect::<Vec<_>>(), [false, true]);
        let again = parse(&phone.to_toml(), "again.toml").unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(again.idle_states_of_kinds(), phone.idle_states_of_kinds());
    }

    #[test]
    fn packages_go_into_the_machines_states_not_into_a_kinds_alone() {
        let wake = |us: u32| {
            let range = format!("range = [0, {us}]");
            format!("package_wake = {{ value = {us}, unit = \"us\", {range}, how = \"guess\", source = \"s\" }}\n")
        };
        let phone = super::super::shipped("snapdragon-845").expect("it ships").text;
        // Of the two states with that name the kind's comes first.
        let name = "name = \"rail-off\"\n";
        let with = |machine: &str, kind: &str| {
            let [head, between, tail] = phone.split(name).collect::<Vec<_>>().try_into().expect("two of the name");
            let text = format!("{head}{name}{kind}{between}{name}{machine}{tail}");
            (parse(&text, "m.toml").map(drop).map_err(|error| error.to_string()), head.lines().count() + 2)
        };
        let (refused, line) = with("", &wake(40));
        let message = refused.expect_err("a kind's alone");
        assert!(message.starts_with(&format!("m.toml:{line}:")), "{message} at {line}");
        let found =
            ".idle.rail-off.package_wake`, while packages do not go into rail-off; expected package_wake of rail-off";
        assert!(message.contains(found), "{message}");
        for (machine, kind) in [(wake(30), wake(40)), (String::new(), wake(0)), (wake(30), String::new())] {
            with(&machine, &kind).0.unwrap_or_else(|error| panic!("{error}"));
        }
    }

    #[test]
    fn deeper_states_flush_what_shallower_ones_do() {
        let refused = |lines: &[(&str, &str)], state: &str, below: usize| {
            let text = fixture(lines);
            let line = text.lines().position(|line| line == format!("name = \"{state}\"")).expect("a state") + below;
            let error = parse(&text, "m.toml").expect_err("a bad file").to_string();
            error
                .strip_prefix(&format!("m.toml:{line}:"))
                .unwrap_or_else(|| panic!("{error} at line {line}"))
                .to_string()
        };
        let rule = "(rule: a deeper idle state keeps no more in the caches than a shallower one, and one that polls keeps all)";
        let none = FLUSHES.replace("own-caches", "nothing");
        let message = refused(&[("C3", FLUSHES), ("C6", &none)], "C6", 2);
        assert!(
            message.contains("found C6, which flushes nothing, after C3, which does; expected flushes = {"),
            "{message}"
        );
        assert!(message.ends_with(rule), "{message}");
        // An error about a state that says nothing is reported at the state.
        let message = refused(&[("C3", FLUSHES)], "C6", 0);
        assert!(message.contains("found C6, which flushes nothing, after C3, which does"), "{message}");
        let message = refused(&[("POLL", FLUSHES)], "POLL", 2);
        assert!(message.contains("found `idle.POLL.flushes` of POLL, which polls; expected a state that"), "{message}");
        let message = refused(&[("C6", &FLUSHES.replace("own-caches", "l2"))], "C6", 2);
        assert!(
            message.contains("found \"l2\"; expected one of own-caches, nothing (rule: every fact is one of"),
            "{message}"
        );
        let message = refused(&[("C6", &FLUSHES.replace("own-caches", "own-cache"))], "C6", 2);
        assert!(message.contains("found \"own-cache\"; expected \"own-caches\", perhaps (rule"), "{message}");
        let message = refused(&[("C6", "flushes = \"own-caches\"")], "C6", 2);
        assert!(message.contains("(rule: every fact names its source)"), "{message}");
        let bare = phone("WFI", "name = \"WFI\"", &format!("name = \"WFI\"\n{FLUSHES}")).unwrap();
        let [(_, little)] = bare.idle_states_of_kinds().try_into().expect("one kind has its own");
        assert!(little[0].flushes && !bare.idle_states()[0].flushes, "each kind's is its own");
    }

    /// The phone's file, changed after the `[[kind.little.idle.state]]` of that name.
    fn phone(state: &str, from: &str, to: &str) -> Result<super::Description, String> {
        let file = super::super::shipped("snapdragon-845").expect("it ships");
        let table = format!("[[kind.little.idle.state]]\nname = \"{state}\"");
        let (head, tail) = file.text.split_once(&table).expect("the state");
        let changed = format!("{table}{tail}").replacen(from, to, 1);
        parse(&format!("{head}{changed}"), "m.toml").map_err(|error| error.to_string())
    }

    #[test]
    fn a_kind_has_the_machines_states_with_its_own_figures() {
        let machine = phone("WFI", "", "").unwrap();
        let [(cpus, states)] = machine.idle_states_of_kinds().try_into().expect("one kind has its own");
        let us = |states: &[super::super::IdleState]| {
            states
                .iter()
                .map(|state| (state.exit_latency.0 / 1_000_000, state.target_residency.0 / 1_000_000))
                .collect()
        };
        let (own, all): (Vec<_>, Vec<_>) = (us(&states), us(&machine.idle_states()));
        assert_eq!((cpus.list().as_str(), own, all), ("0-3", vec![(1, 1), (811, 1_890)], vec![(1, 1), (885, 952)]));
        let again = parse(&machine.to_toml(), "again.toml").unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(again.idle_states_of_kinds(), machine.idle_states_of_kinds());
        assert_eq!(again.to_toml(), machine.to_toml());
    }

    #[test]
    fn a_kind_has_no_other_states() {
        let refused = |state: &str, from: &str, to: &str| phone(state, from, to).expect_err("a bad table");
        let other = refused("rail-off", "\"rail-off\"", "\"retention\"");
        assert!(
            other.contains("found the idle state retention; expected rail-off, which is number 2 of [[idle.state]]"),
            "{other}"
        );
        assert!(other.contains("(rule: a kind of CPU has the machine's idle states, by name and in order"), "{other}");
        let unlike = refused(
            "WFI",
            "target_residency = { value = 1, unit = \"us\", range = [1, 1]",
            "target_residency = { value = 0, unit = \"us\", range = [0, 1]",
        );
        assert!(unlike.contains("found `kind.little.idle.WFI` that polls, or not, unlike `idle.WFI`"), "{unlike}");
        let falls = refused(
            "rail-off",
            "value = 811, unit = \"us\", range = [811, 811]",
            "value = 0, unit = \"us\", range = [0, 811]",
        );
        assert!(
            falls.contains("found `kind.little.idle.rail-off.exit_latency` of 0 us after WFI with 1 us"),
            "{falls}"
        );
        let bare = refused("rail-off", "wake = {", "wakes = {");
        assert!(bare.contains("found the unknown name `wakes` in `kind.little.idle.state`; expected `wake`"), "{bare}");
        let file = super::super::shipped("snapdragon-845").expect("it ships");
        let (head, tail) = file.text.split_once("[[kind.little.idle.state]]\nname = \"rail-off\"").expect("the state");
        let (_, tail) = tail.split_once("[frequency]").expect("what follows");
        let missing = parse(&format!("{head}[frequency]{tail}"), "m.toml").expect_err("one is missing").to_string();
        assert!(
            missing.contains("found no rail-off in [[kind.little.idle.state]]; expected each of [[idle.state]]"),
            "{missing}"
        );
        let package = refused("WFI", "name = \"WFI\"", "name = \"WFI\"\npackage = 3");
        assert!(package.contains("found the unknown name `package`"), "{package}");
    }
}
