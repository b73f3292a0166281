//! What a machine file has by default: sections of the base `linux-x86` that are not about processors.

use super::builtin::BASES;
use super::figure::How;
use super::names::key_of;
use super::read::read_figures;
use super::toml_text::{Table, Text};
use super::{Description, Fact};
use crate::topology::{Numbering, from_synthetic};

pub(super) const BASE: &str = "linux-x86";

/// A machine that has only what [`BASE`] says in one of its sections.
///
/// # Panics
/// If that base does not load or lacks the section, which the tests exclude.
pub(super) fn usual(section: &str) -> Description {
    let (name, text) = BASES.iter().find(|(name, _)| *name == BASE).expect("a base that ships");
    let file = format!("machines/bases/{name}.toml");
    let document = Text::new(&file, text, 0).parse().unwrap_or_else(|error| panic!("{error}"));
    let root = Table::new("", &document).expect("a document is a table");
    let table = root.table(section).unwrap_or_else(|error| panic!("{error}"));
    let table = table.unwrap_or_else(|| panic!("the base lacks [{section}]"));
    let topology = from_synthetic("core:1 pu:1", &file, Numbering::AsListed).expect("one CPU");
    let mut machine = Description {
        name: name.to_string(),
        about: String::new(),
        topology,
        topology_fact: Fact { value: String::new(), source: String::new(), how: How::Guess },
        figures: Vec::new(),
        facts: Vec::new(),
        idle_states: Vec::new(),
        energy: Vec::new(),
        file: file.clone(),
    };
    read_figures(&table, &mut machine, &|name| key_of(name)).unwrap_or_else(|error| panic!("{error}"));
    machine
}
