//! Parsed TOML documents that know the place of each value, can be laid one over another, and report unknown names.

use super::error::DescriptionError;
use super::nearest::nearest_name;
use crate::topology::{Lines, Location, excerpt};
use std::ops::Range;
use std::rc::Rc;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

const RULE_ONCE: &str = "a machine file is TOML, where each name of a table stands once";
/// The TOML parser's message for a name that occurs twice; its place is the second one.
const DUPLICATE: &str = "duplicate key";

/// The text of a machine file and its name.
#[derive(Clone)]
pub(super) struct Text<'a> {
    pub file: &'a str,
    /// How many files of the chain of `extends` lead from the machine's own to this one; 0: it is the machine's own.
    pub depth: usize,
    lines: Rc<Lines<'a>>,
}

impl<'a> Text<'a> {
    pub fn new(file: &'a str, text: &'a str, depth: usize) -> Text<'a> {
        Text { file, depth, lines: Rc::new(Lines::new(text)) }
    }

    pub fn at(&self, offset: usize) -> Location {
        self.lines.locate(self.file, offset)
    }

    pub fn error(&self, span: &Range<usize>, found: &str, expected: &str, rule: &str) -> DescriptionError {
        let (found, expected, rule) = (found.to_string(), expected.to_string(), rule.to_string());
        DescriptionError { at: self.at(span.start), found, expected, rule }
    }

    /// The document as a table.
    pub fn parse(self) -> Result<Node<'a>, DescriptionError> {
        let text = self.lines.text();
        let document = DeTable::parse(text).map_err(|error| {
            let span = error.span().unwrap_or(0..0);
            let pointed_at = text.get(span.clone()).map(str::trim).filter(|text| !text.is_empty());
            if let Some(name) = pointed_at.filter(|_| error.message() == DUPLICATE) {
                let found = format!("`{}` for the second time", excerpt(name, 24));
                return self.error(&span, &found, "each name once", RULE_ONCE);
            }
            // At the end of a truncated file there is no text to point at.
            let found = match pointed_at {
                Some(text) => format!("`{}` ({})", excerpt(text, 24), excerpt(error.message(), 160)),
                None => format!("TOML that does not parse ({})", excerpt(error.message(), 160)),
            };
            self.error(&span, &found, "a complete TOML document", "a machine file is TOML")
        })?;
        let value = Value::Table(entries(&self, document.into_inner()));
        Ok(Node { source: self, span: 0..0, value })
    }
}

/// A value of a document, with its place.
pub(super) struct Node<'a> {
    pub source: Text<'a>,
    pub span: Range<usize>,
    pub value: Value<'a>,
}

pub(super) enum Value<'a> {
    Text(String),
    /// As written; `decimal` unless it is in another base.
    Number {
        text: String,
        decimal: bool,
    },
    Boolean(bool),
    Date,
    Array(Vec<Node<'a>>),
    /// In the order of the file.
    Table(Vec<Entry<'a>>),
}

pub(super) struct Entry<'a> {
    pub name: String,
    pub name_span: Range<usize>,
    pub node: Node<'a>,
}

fn entries<'a>(source: &Text<'a>, table: DeTable<'a>) -> Vec<Entry<'a>> {
    let entry = |(key, value): (Spanned<std::borrow::Cow<'a, str>>, Spanned<DeValue<'a>>)| {
        let name_span = key.span();
        Entry { name: key.into_inner().into_owned(), name_span, node: Node::of(source, value) }
    };
    let mut entries: Vec<Entry> = table.into_iter().map(entry).collect();
    entries.sort_by_key(|entry| entry.name_span.start);
    entries
}

impl<'a> Node<'a> {
    fn of(source: &Text<'a>, value: Spanned<DeValue<'a>>) -> Node<'a> {
        let span = value.span();
        let value = match value.into_inner() {
            DeValue::String(text) => Value::Text(text.into_owned()),
            DeValue::Integer(number) => {
                Value::Number { text: number.as_str().to_string(), decimal: number.radix() == 10 }
            }
            DeValue::Float(number) => Value::Number { text: number.as_str().to_string(), decimal: true },
            DeValue::Boolean(value) => Value::Boolean(value),
            DeValue::Datetime(_) => Value::Date,
            DeValue::Array(array) => Value::Array(array.into_iter().map(|value| Node::of(source, value)).collect()),
            DeValue::Table(table) => Value::Table(entries(source, table)),
        };
        Node { source: source.clone(), span, value }
    }

    pub fn error(&self, found: &str, expected: &str, rule: &str) -> DescriptionError {
        self.source.error(&self.span, found, expected, rule)
    }

    pub fn at(&self) -> Location {
        self.source.at(self.span.start)
    }

    pub fn as_str(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    pub fn as_bool(&self) -> Option<bool> {
        match self.value {
            Value::Boolean(value) => Some(value),
            _ => None,
        }
    }

    pub fn as_array(&self) -> Option<&[Node<'a>]> {
        match &self.value {
            Value::Array(array) => Some(array),
            _ => None,
        }
    }

    /// The text of a decimal number.
    pub fn number_text(&self) -> Option<&str> {
        match &self.value {
            Value::Number { text, decimal: true } => Some(text),
            _ => None,
        }
    }

    /// What it is, with its text if that is short.
    pub fn kind(&self) -> String {
        match &self.value {
            Value::Text(text) => format!("the text \"{}\"", excerpt(text, 40)),
            Value::Number { text, decimal: true } => format!("the number {}", excerpt(text, 40)),
            Value::Number { .. } => "a number that is not decimal".to_string(),
            Value::Boolean(value) => format!("{value}"),
            Value::Date => "a date".to_string(),
            Value::Array(_) => "an array".to_string(),
            Value::Table(_) => "a table".to_string(),
        }
    }

    /// This document laid over the one that it extends: what it says is kept, name by name, in sections and sections
    /// within these; what it does not say comes from `below`. The sections and names in `alone` come from one document
    /// only.
    pub fn over(self, below: Node<'a>, alone: &[&str]) -> Node<'a> {
        let Node { source, span, value } = self;
        let (Value::Table(mut own), Value::Table(below)) = (value, below.value) else {
            unreachable!("documents are tables");
        };
        lay_over(&mut own, below, alone);
        Node { source, span, value: Value::Table(own) }
    }
}

/// As [`Node::over`] says, for the entries of two tables.
fn lay_over<'a>(own: &mut Vec<Entry<'a>>, below: Vec<Entry<'a>>, alone: &[&str]) {
    for entry in below {
        let Some(mine) = own.iter_mut().find(|mine| mine.name == entry.name) else {
            own.push(entry);
            continue;
        };
        if let (Value::Table(mine), Value::Table(theirs)) = (&mut mine.node.value, entry.node.value)
            && !alone.contains(&entry.name.as_str())
            && !is_figure(mine)
        {
            lay_over(mine, theirs, alone);
        }
    }
}

/// `{ value = ..., ... }`, which is replaced as a whole, unlike a section.
fn is_figure(entries: &[Entry]) -> bool {
    entries.iter().any(|entry| entry.name == "value")
}

/// A table and its place.
pub(super) struct Table<'t, 'a> {
    pub source: Text<'a>,
    /// Its dotted name, empty for the document.
    pub path: String,
    pub span: Range<usize>,
    entries: &'t [Entry<'a>],
}

impl<'t, 'a> Table<'t, 'a> {
    /// The node's table, if it is one.
    pub fn new(path: &str, node: &'t Node<'a>) -> Option<Table<'t, 'a>> {
        let Value::Table(entries) = &node.value else { return None };
        Some(Table { source: node.source.clone(), path: path.to_string(), span: node.span.clone(), entries })
    }

    /// The same under another dotted name.
    pub fn named(self, path: String) -> Table<'t, 'a> {
        Table { path, ..self }
    }

    /// The dotted name of one of its entries.
    pub fn full_name(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_string() } else { format!("{}.{name}", self.path) }
    }

    pub fn entries(&self) -> &'t [Entry<'a>] {
        self.entries
    }

    pub fn get(&self, name: &str) -> Option<&'t Node<'a>> {
        self.entries.iter().find(|entry| entry.name == name).map(|entry| &entry.node)
    }

    /// What messages call it.
    pub fn title(&self) -> String {
        if self.path.is_empty() { "the file".to_string() } else { format!("`{}`", self.path) }
    }

    /// An error about this table as a whole.
    pub fn error(&self, found: &str, expected: &str, rule: &str) -> DescriptionError {
        self.source.error(&self.span, found, expected, rule)
    }

    /// Refuses entries that are not among `known`, and suggests the nearest name.
    pub fn only(&self, known: &[&str], rule: &str) -> Result<(), DescriptionError> {
        match self.entries.iter().find(|entry| !known.contains(&entry.name.as_str())) {
            None => Ok(()),
            Some(entry) => Err(self.unknown(entry, known.iter().copied(), rule)),
        }
    }

    pub fn unknown<'n>(
        &self,
        entry: &Entry,
        known: impl IntoIterator<Item = &'n str> + Clone,
        rule: &str,
    ) -> DescriptionError {
        let found = format!("the unknown name `{}` in {}", excerpt(&entry.name, 60), self.title());
        let expected = match nearest_name(&entry.name, known.clone()) {
            Some(nearest) => format!("`{nearest}`, perhaps"),
            None => format!("one of {}", known.into_iter().collect::<Vec<_>>().join(", ")),
        };
        entry.node.source.error(&entry.name_span, &found, &expected, rule)
    }

    /// A text that must be present and not blank.
    pub fn string(&self, name: &str, rule: &str) -> Result<&'t str, DescriptionError> {
        let expected = format!("{name} = \"...\"");
        let Some(value) = self.get(name) else {
            return Err(self.error(&format!("no `{name}` in {}", self.title()), &expected, rule));
        };
        match value.as_str() {
            Some(text) if !text.trim().is_empty() => Ok(text),
            Some(_) => Err(value.error(&format!("an empty `{name}`"), &expected, rule)),
            None => Err(value.error(&value.kind(), &expected, rule)),
        }
    }

    /// The table `name` among its entries, if it is present.
    pub fn table(&self, name: &str) -> Result<Option<Table<'t, 'a>>, DescriptionError> {
        self.get(name).map(|value| self.as_table(name, value)).transpose()
    }

    pub fn as_table(&self, name: &str, value: &'t Node<'a>) -> Result<Table<'t, 'a>, DescriptionError> {
        let path = self.full_name(name);
        Table::new(&path, value)
            .ok_or_else(|| value.error(&value.kind(), &format!("a table `{path}`"), "each section is a table"))
    }

    /// The elements of an array, if it is present.
    pub fn array(&self, name: &str, expected: &str) -> Result<Option<&'t [Node<'a>]>, DescriptionError> {
        let Some(value) = self.get(name) else { return Ok(None) };
        match value.as_array() {
            Some(array) => Ok(Some(array)),
            None => Err(value.error(&value.kind(), expected, "lists are arrays")),
        }
    }
}
