//! `extends = "..."`: a machine file that only says how a machine differs from another one, or from a base.
//!
//! What a file gives replaces what the file that it extends gives, name by name within a section. A figure is replaced
//! as a whole, and so are `[topology]`, `[energy]` and a list such as `[[idle.state]]`. `name` and `description` are
//! never inherited, nor are `[energy]` and `[kind]` by a file with a topology of its own.

use super::error::DescriptionError;
use super::nearest::nearest_name;
use super::toml_text::{Node, Table, Text, Value};
use super::{BASES, builtin};
use crate::topology::excerpt;
use std::sync::Arc;

const RULE: &str = "a machine file extends one other, which ships or is a file, and never itself";
/// How many files may extend each other in a chain; more are an oversight.
const MOST: usize = 8;
/// Sections that one file gives as a whole: parts of two topologies do not make one.
const WHOLE: &[&str] = &["topology", "energy"];
/// What a file with a topology of its own does not inherit.
const OF_TOPOLOGY: &[&str] = &["energy", "kind"];
/// What each file says about itself only.
const OWN: &[&str] = &["name", "description", "extends"];

/// A file that another extends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Base {
    /// Its name, for messages.
    pub file: String,
    pub text: Arc<str>,
}

/// Finds the file that an `extends` names: from its text, and the name of the file that contains it. `None` if it names
/// no file; an error if the file cannot be read.
pub type FindBase<'a> = dyn Fn(&str, &str) -> Option<Result<Base, String>> + 'a;

/// A built-in base or machine.
pub fn shipped(name: &str) -> Option<Base> {
    let machine = builtin().iter().map(|(name, text)| (*name, *text, "machines"));
    let base = BASES.iter().map(|(name, text)| (*name, *text, "machines/bases"));
    let found = machine.chain(base).find(|(shipped, ..)| *shipped == name);
    found.map(|(name, text, folder)| Base { file: format!("{folder}/{name}.toml"), text: text.into() })
}

/// The files that a machine file extends, the nearest first: with the file itself, all that determines the machine.
///
/// # Errors
/// If one of the files is not TOML, extends a file that `find` does not know and that is not built in, or extends
/// itself.
pub fn bases(text: &str, file: &str, find: &FindBase) -> Result<Vec<Base>, DescriptionError> {
    let mut chain: Vec<Base> = Vec::new();
    let own = file;
    loop {
        let (file, text) = chain.last().map_or((file, text), |base| (base.file.as_str(), &*base.text));
        let next = next_base(own, Text::new(file, text, chain.len()), &chain, find)?;
        match next {
            Some(base) => chain.push(base),
            None => return Ok(chain),
        }
    }
}

/// The file that `source` extends. `chain` has led from the machine's `own` file to `source`.
fn next_base(own: &str, source: Text, chain: &[Base], find: &FindBase) -> Result<Option<Base>, DescriptionError> {
    let file = source.file;
    let document = source.parse()?;
    let root = Table::new("", &document).expect("a document is a table");
    let Some(value) = root.get("extends") else { return Ok(None) };
    let written = root.string("extends", RULE)?;
    let base = match find(written, file).or_else(|| shipped(written).map(Ok)) {
        Some(Ok(base)) => base,
        Some(Err(why)) => {
            return Err(value.error(&format!("`{}`: {why}", excerpt(written, 80)), "a file that can be read", RULE));
        }
        None => {
            let names = || builtin().iter().map(|(name, _)| *name).chain(BASES.iter().map(|(name, _)| *name));
            let expected = match nearest_name(written, names()) {
                Some(nearest) => format!("`{nearest}`, perhaps"),
                None => format!("a path such as \"./base.toml\", or one of {}", names().collect::<Vec<_>>().join(", ")),
            };
            return Err(value.error(&format!("the unknown base `{}`", excerpt(written, 80)), &expected, RULE));
        }
    };
    let itself = file == base.file || chain.iter().any(|other| other.file == base.file);
    if itself || chain.len() >= MOST {
        let (found, expected) = match itself {
            true => (
                format!("`{}`, which is extended by itself in the end", excerpt(written, 80)),
                "a file that does not lead back here".to_string(),
            ),
            false => (
                format!("`{}` below the {MOST} files that {} already extends", excerpt(written, 80), excerpt(own, 80)),
                format!("at most {MOST} files, each of which extends the next"),
            ),
        };
        return Err(value.error(&found, &expected, RULE));
    }
    Ok(Some(base))
}

/// The file's document, laid over those of `chain`, the nearest first.
pub(super) fn resolve<'a>(text: &'a str, file: &'a str, chain: &'a [Base]) -> Result<Node<'a>, DescriptionError> {
    let mut resolved = Text::new(file, text, 0).parse()?;
    for (index, base) in chain.iter().enumerate() {
        let mut below = Text::new(&base.file, &base.text, index + 1).parse()?;
        let own_topology = Table::new("", &resolved).is_some_and(|root| root.get("topology").is_some());
        if let Value::Table(entries) = &mut below.value {
            entries.retain(|entry| !OWN.contains(&entry.name.as_str()));
            // Energy refers to CPUs by number, kinds to names in a topology.
            entries.retain(|entry| !(own_topology && OF_TOPOLOGY.contains(&entry.name.as_str())));
        }
        resolved = resolved.over(below, WHOLE);
    }
    Ok(resolved)
}

#[cfg(test)]
mod tests {
    use super::super::{parse, parse_over};
    use super::*;
    use units::{Cycles, Ps};

    const TOPOLOGY: &str = "[topology]\nsynthetic = \"core:2 pu:2\"\nsource = \"s\"\nhow = \"guess\"\n";

    fn file(rest: &str) -> String {
        format!("name = \"own\"\ndescription = \"d\"\n{rest}")
    }

    /// Finds `./NAME.toml` among `files`.
    fn read(text: &str, files: &[(&str, &str)]) -> Result<crate::description::Description, String> {
        let find = |written: &str, _: &str| {
            let written = written.strip_prefix("./")?;
            let found = files.iter().find(|(name, _)| *name == written);
            let base = |(name, text): &(&str, &str)| Base { file: (*name).to_string(), text: (*text).into() };
            Some(found.map(base).ok_or_else(|| "no such file".to_string()))
        };
        let chain = bases(text, "own.toml", &find).map_err(|error| error.to_string())?;
        parse_over(text, "own.toml", &chain).map_err(|error| error.to_string())
    }

    #[test]
    fn a_file_says_only_in_what_it_differs() {
        let smt = "{ value = 9, unit = \"ns\", source = \"mine\", how = \"measured\", range = [8, 10] }";
        let rest = format!("extends = \"xeon-e5-2670v3-2s\"\n[line]\nsmt = {smt}\n");
        let (own, base) = (parse(&file(&rest), "own.toml").unwrap(), shipped("xeon-e5-2670v3-2s").unwrap());
        let base = parse(&base.text, &base.file).unwrap();
        assert_eq!((own.name(), own.about()), ("own", "d"));
        assert_eq!(own.topology(), base.topology());
        assert_eq!(own.figure("line.smt").unwrap().source, "mine");
        assert_eq!(own.figure("line.llc"), base.figure("line.llc"));
        assert_eq!(own.figures().next().unwrap().0, "line.smt", "what the file itself says comes first");
        assert_eq!(own.figures().count(), base.figures().count());
        assert_eq!(own.idle_states(), base.idle_states());

        // Another topology removes energy, which refers to CPUs by number; a list of idle states is replaced as a
        // whole.
        let state = |name: &str| {
            let us = "{ value = 1, unit = \"us\", source = \"s\", how = \"guess\", range = [1, 2] }";
            format!("[[idle.state]]\nname = \"{name}\"\nexit_latency = {us}\ntarget_residency = {us}\nwake = {us}\n")
        };
        let rest = format!("extends = \"xeon-e5-2670v3-2s\"\n{TOPOLOGY}{}", state("ONLY"));
        let own = parse(&file(&rest), "own.toml").unwrap();
        assert_eq!(own.topology().nr_cpus(), 4);
        assert_eq!(own.idle_states().len(), 1);
        assert_eq!(own.fact("idle.wake_by"), base.fact("idle.wake_by"));
    }

    #[test]
    fn what_is_said_of_a_kind_stands_beside_what_the_extended_file_says_of_it() {
        let base = "{ value = 2, unit = \"GHz\", range = [2, 2], how = \"guess\", source = \"s\" }";
        let rest = format!("extends = \"core-i9-12900k\"\n[kind.E-core]\nbase = {base}\n");
        let own = parse(&file(&rest), "own.toml").unwrap();
        let theirs = parse(&shipped("core-i9-12900k").unwrap().text, "i9").unwrap();
        let of = |name: &str| (own.figure(name).map(|it| it.value), theirs.figure(name).map(|it| it.value));
        assert_ne!(of("kind.E-core.base").0, of("kind.E-core.base").1);
        for name in ["kind.E-core.speed", "kind.E-core.max"] {
            let (own, theirs) = of(name);
            assert!(own.is_some() && own == theirs, "{name}");
        }
    }

    #[test]
    fn instructions_cost_what_the_machine_says() {
        let cpi = "{ value = 1.5, unit = \"cycles/instruction\", source = \"s\", how = \"guess\", range = [1, 2] }";
        let count = "{ value = 25, unit = \"instructions\", source = \"s\", how = \"guess\", range = [1, 50] }";
        let rest = format!(
            "extends = \"core-i7-3770\"\n[cycles_per_instruction]\npaths = {cpi}\n[paths]\nschedule = {count}\n"
        );
        let own = parse(&file(&rest), "own.toml").unwrap();
        // 37.5, rounded to even.
        assert_eq!(own.listed_path("schedule"), Some(Cycles(38)));
        let base = parse(&shipped("core-i7-3770").unwrap().text, "i7").unwrap();
        // The base's instructions at the file's own price of one, and what the base gives in cycles.
        let exit = base.figure("paths.do_exit").unwrap().value;
        // In thousandths, and at half a cycle more than one.
        let (whole, rest) = (exit * 3 / 2_000, exit * 3 % 2_000);
        let up = rest > 1_000 || rest == 1_000 && whole % 2 == 1;
        assert_eq!(own.listed_path("do_exit"), Some(Cycles(whole + u64::from(up))));
        assert_eq!(own.listed_os("do_exit"), Some(Cycles(150_000)));
        assert_eq!(base.line_transfer(crate::topology::Distance::Llc), Ps(21_000));
        let fixture = include_str!("../../tests/fixtures/two-sockets.toml");
        let text = fixture.replacen("[paths]\n", &format!("[paths]\nschedule = {count}\n"), 1);
        let line = text.lines().position(|line| line.starts_with("schedule")).unwrap() + 1;
        assert_eq!(
            parse(&text, "m.toml").unwrap_err().to_string(),
            format!(
                "m.toml:{line}:12: found instructions in `paths.schedule`, and no `cycles_per_instruction.paths`; expected \
                 cycles_per_instruction.paths = {{ value = ... }}, or cycles (rule: {})",
                "work in instructions needs to know what an instruction takes on the machine"
            )
        );
    }

    #[test]
    fn mistakes_are_told_with_the_file_that_they_stand_in() {
        let error = |text: &str, files: &[(&str, &str)]| read(text, files).unwrap_err();
        let own = file("extends = \"./middle.toml\"\n");
        let middle = "extends = \"core-i7-3770\"\n[smt]\nsped = 1\n";
        let message = error(&own, &[("middle.toml", middle)]);
        assert!(message.starts_with("middle.toml:3:1: found the unknown name `sped` in `smt`;"), "{message}");
        let middle = "extends = \"core-i7-3770\"\n[smt]\nspeed = 1\n";
        let message = error(&own, &[("middle.toml", middle)]);
        assert!(message.starts_with("middle.toml:3:9: found the number 1 for `smt.speed`;"), "{message}");

        let message = error(&file("extends = \"linux-x68\"\n"), &[]);
        assert_eq!(
            message,
            format!("own.toml:3:11: found the unknown base `linux-x68`; expected `linux-x86`, perhaps (rule: {RULE})")
        );
        let message = error(&own, &[]);
        assert!(
            message.starts_with("own.toml:3:11: found `./middle.toml`: no such file; expected a file"),
            "{message}"
        );
        let message = error(&file("extends = 3\n"), &[]);
        assert!(message.starts_with("own.toml:3:11: found the number 3; expected extends = \"...\""), "{message}");
        let message =
            error(&own, &[("middle.toml", "extends = \"./last.toml\""), ("last.toml", "extends = \"./middle.toml\"")]);
        assert!(
            message.starts_with("last.toml:1:11: found `./middle.toml`, which is extended by itself in the end;"),
            "{message}"
        );
        let message = error(&file("extends = \"./own.toml\"\n"), &[("own.toml", "")]);
        assert!(message.starts_with("own.toml:3:11: found `./own.toml`, which is extended by itself"), "{message}");
        // A base is no machine: what it lacks, the machine must give.
        let message = error(&file("extends = \"linux-x86\"\n"), &[]);
        assert!(message.starts_with("own.toml:1:1: found no [topology];"), "{message}");
    }
}
