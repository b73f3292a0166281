//! The sections with the work of kernel functions, and those with the work that a function takes from some kernel on:
//! `[since."v6.1".paths]`, in which kernels have their names.

use super::entry::{Bounds, RULE_NAMES, push_figure};
use super::error::DescriptionError;
use super::figure::Dimension;
use super::names::WORK;
use super::toml_text::Table;
use super::{Description, NamedFigure};
use sched::versions::{KERNELS, last_read};
use std::collections::{BTreeMap, BTreeSet};

const PREFIX: &str = "since.";
const RULE_WORK: &str = "work in instructions needs to know what an instruction takes on the machine";
const RULE_KERNEL: &str = "a kernel has its own name, in quotes: [since.\"v6.1\".paths]";
const RULE_SECTION: &str = "a function is in the same section for all kernels";
/// In cycles, or thousandths of instructions.
const AMOUNT: (u64, u64) = (0, 1_000_000_000);

/// The kernel and the name without it, of a figure of such a section: `v6.1` and `paths.schedule` of
/// `since.v6.1.paths.schedule`.
pub(super) fn split(name: &str) -> Option<(&str, &str)> {
    let rest = name.strip_prefix(PREFIX)?;
    // Kernels' names have dots, those of sections and functions have none.
    let (section, _) = rest.rmatch_indices('.').nth(1)?;
    Some((&rest[..section], &rest[section + 1..]))
}

/// Reads the sections of a table with the work of functions: in cycles, or in instructions with a price for each
/// section.
pub(super) fn read_work(root: &Table, into: &mut Description) -> Result<(), DescriptionError> {
    for section in WORK {
        let Some(table) = root.table(section)? else { continue };
        let factor = format!("cycles_per_instruction.{section}");
        for entry in table.entries() {
            let bounds = Bounds { dimensions: &[Dimension::Cycles, Dimension::Instructions], limits: Some(AMOUNT) };
            push_figure(&table, &entry.name, &entry.node, &bounds, into)?;
            let in_instructions =
                into.figures.last().is_some_and(|named| named.figure.unit.dimension == Dimension::Instructions);
            if in_instructions && into.figure(&factor).is_none() {
                let found = format!("instructions in `{}`, and no `{factor}`", table.full_name(&entry.name));
                return Err(entry.node.error(&found, &format!("{factor} = {{ value = ... }}, or cycles"), RULE_WORK));
            }
        }
    }
    Ok(())
}

/// Reads all sections of kernels, once the others are read. What a file says of a function for all kernels counts more
/// than what a file that it extends says for some.
pub(super) fn read_since(root: &Table, into: &mut Description) -> Result<(), DescriptionError> {
    let Some(since) = root.table("since")? else { return Ok(()) };
    let kernels = || KERNELS.iter().map(|kernel| kernel.name);
    for entry in since.entries() {
        if !kernels().any(|kernel| kernel == entry.name) {
            return Err(since.unknown(entry, kernels(), RULE_KERNEL));
        }
        let sections = since.as_table(&entry.name, &entry.node)?;
        sections.only(WORK, RULE_NAMES)?;
        read_work(&sections, into)?;
        for section in WORK {
            let Some(table) = sections.table(section)? else { continue };
            for named in table.entries() {
                let has = |section: &&&str| into.figure(&format!("{section}.{}", named.name)).is_some();
                if let Some(other) = WORK.iter().find(has).filter(|_| !has(&section)) {
                    let expected = format!("it in [since.\"{}\".{other}], as in [{other}]", entry.name);
                    let found = format!("`{}` in {}", named.name, table.title());
                    return Err(named.node.error(&found, &expected, RULE_SECTION));
                }
            }
        }
    }
    let depths: BTreeMap<String, usize> = into.figures.iter().map(|named| (named.name.clone(), named.depth)).collect();
    into.figures.retain(|named| {
        let plain = split(&named.name).and_then(|(_, plain)| depths.get(plain));
        plain.is_none_or(|&depth| depth >= named.depth)
    });
    Ok(())
}

impl Description {
    /// For each function of which some section of a kernel up to this one says what it takes: the newest of those
    /// figures, by the function's plain name. A release between kernels that were read counts as the one before it, and a
    /// kernel that is not known as the newest.
    fn newest(&self, kernel: &str) -> BTreeMap<&str, &NamedFigure> {
        let position = |kernel: &str| KERNELS.iter().position(|known| known.name == kernel);
        let last = last_read(kernel).and_then(|read| position(read.name)).unwrap_or(KERNELS.len() - 1);
        let mut newest: BTreeMap<&str, (usize, &NamedFigure)> = BTreeMap::new();
        for named in &self.figures {
            let Some((kernel, plain)) = split(&named.name) else { continue };
            let position = position(kernel).expect("the loader has checked it");
            if position <= last && newest.get(plain).is_none_or(|(other, _)| *other < position) {
                newest.insert(plain, (position, named));
            }
        }
        newest.into_iter().map(|(plain, (_, named))| (plain, named)).collect()
    }

    /// The machine as this kernel finds it: what a function takes is what the newest of the sections of kernels says
    /// that are not younger. A kernel that is not known counts as the newest.
    #[must_use]
    pub fn as_of(&self, kernel: &str) -> Description {
        let mut machine = self.clone();
        machine.figures.retain(|named| !named.name.starts_with(PREFIX));
        for (plain, NamedFigure { figure, .. }) in self.newest(kernel) {
            machine.replace(plain, figure.clone());
        }
        machine
    }

    /// The figures of work that this kernel does not pay: of younger kernels, and those that there are newer ones of.
    pub fn unpaid(&self, kernel: &str) -> BTreeSet<&str> {
        let newest = self.newest(kernel);
        let paid = |name: &str| match split(name) {
            Some((_, plain)) => newest.get(plain).is_some_and(|named| named.name == name),
            None => !newest.contains_key(name),
        };
        self.figures().map(|(name, _)| name).filter(|name| !paid(name)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::extends::Base;
    use super::super::parse_over;
    use super::*;
    use units::Cycles;

    fn cycles(name: &str, value: u32) -> String {
        format!(
            "{name} = {{ value = {value}, unit = \"cycles\", range = [1, 999], how = \"guess\", source = \"s\" }}\n"
        )
    }

    fn file(paths: &str, since: &str) -> String {
        let plain = include_str!("../../tests/fixtures/two-sockets.toml");
        plain.replacen("\n[paths]\n", &format!("\n[paths]\n{paths}"), 1) + since
    }

    fn since(kernel: &str, section: &str, figures: &[(&str, u32)]) -> String {
        let figures: String = figures.iter().map(|(name, value)| cycles(name, *value)).collect();
        format!("[since.\"{kernel}\".{section}]\n{figures}")
    }

    fn read(text: &str, base: &str) -> Result<Description, DescriptionError> {
        parse_over(text, "m.toml", &[Base { file: "base.toml".to_string(), text: base.into() }])
    }

    #[test]
    fn names_are_split_at_the_section() {
        assert_eq!(split("since.v6.1.paths.schedule"), Some(("v6.1", "paths.schedule")));
        assert_eq!(split("since.v4.5-rc1.idle_loop.cpu_idle_loop"), Some(("v4.5-rc1", "idle_loop.cpu_idle_loop")));
        assert_eq!(split("paths.schedule"), None);
    }

    #[test]
    fn each_kernel_takes_the_newest_that_it_has() {
        // Not in the order of the kernels.
        let text = since("v7.2", "paths", &[("schedule", 240)])
            + &since("v6.1", "paths", &[("schedule", 220)])
            + &since("v6.12", "paths", &[("pick_eevdf", 30)]);
        let machine = read(&file(&cycles("schedule", 100), &text), "").unwrap();
        let again = read(&machine.to_toml(), "").unwrap();
        for machine in [machine, again] {
            let work = |kernel: &str| {
                ["schedule", "pick_eevdf"].map(|name| machine.as_of(kernel).listed_path(name).map(|work| work.0))
            };
            assert_eq!(work("v4.16"), [Some(100), None]);
            assert_eq!(work("v6.1"), [Some(220), None]);
            assert_eq!(work("v6.12"), [Some(220), Some(30)]);
            assert_eq!(work("v7.2"), [Some(240), Some(30)]);
            let unpaid = |kernel: &str| machine.unpaid(kernel).into_iter().collect::<Vec<_>>();
            let [eevdf, v6, v7] = ["v6.12.paths.pick_eevdf", "v6.1.paths.schedule", "v7.2.paths.schedule"];
            let since = |names: &[&str]| names.iter().map(|name| format!("since.{name}")).collect::<Vec<_>>();
            assert_eq!(unpaid("v4.16"), since(&[v6, eevdf, v7]));
            assert_eq!(
                unpaid("v6.12"),
                ["paths.schedule".to_string()].into_iter().chain(since(&[v7])).collect::<Vec<_>>()
            );
        }
    }

    #[test]
    fn a_files_own_work_counts_more_than_its_bases() {
        let measured = file("", "").replacen("\n[os]\n", &format!("\n[os]\n{}", cycles("entry_SYSCALL_64", 571)), 1);
        let base = "[os]\n".to_string()
            + &cycles("entry_SYSCALL_64", 130)
            + &since("v6.1", "os", &[("entry_SYSCALL_64", 300), ("mutex_lock", 20)]);
        let work = |machine: &Description| ["entry_SYSCALL_64", "mutex_lock"].map(|name| machine.listed_os(name));
        let machine = read(&measured, &base).unwrap();
        assert_eq!(work(&machine.as_of("v6.12")), [Some(Cycles(571)), Some(Cycles(20))]);
        let machine = read(&file("", ""), &base).unwrap();
        assert_eq!(work(&machine.as_of("v6.12")), [Some(Cycles(300)), Some(Cycles(20))]);
        assert_eq!(work(&machine.as_of("v4.15")), [Some(Cycles(130)), None]);
    }

    #[test]
    fn mistakes_are_told_where_they_stand() {
        let refused = |kernel: &str, section: &str, names: &[&str]| {
            let text = file("", &since(kernel, section, &[("schedule", 1)]));
            let machine = read(&text, "");
            let error = machine.and_then(|machine| machine.check_names("paths", names)).unwrap_err();
            let line = text.lines().position(|line| line.starts_with("[since")).unwrap() as u32 + 1;
            let text = error.to_string();
            (text.strip_prefix(&format!("m.toml:{line}:")).map(String::from), text)
        };
        let (here, all) = refused("v6.2", "paths", &["schedule"]);
        assert!(here.is_some_and(|text| text.contains("the unknown name `v6.2` in `since`; expected `v6.1`")), "{all}");
        let (here, all) = refused("v6.1", "line", &["schedule"]);
        assert!(here.is_some_and(|text| text.contains("the unknown name `line` in `since.v6.1`")), "{all}");
        let (_, all) = refused("v6.1", "paths", &["shedule"]);
        assert!(all.contains("the unknown name `schedule` in [since.\"v6.1\".paths]; expected `shedule`"), "{all}");
    }
}
