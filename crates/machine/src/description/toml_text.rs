//! A parsed TOML document that knows where everything stands and complains of what nobody asked for.

use super::error::DescriptionError;
use super::nearest::nearest_name;
use crate::topology::{Location, excerpt};
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The text of a machine file and its name.
#[derive(Clone, Copy)]
pub(super) struct Text<'a> {
    pub file: &'a str,
    pub text: &'a str,
}

impl<'a> Text<'a> {
    pub fn at(self, offset: usize) -> Location {
        Location::in_text(self.file, self.text, offset)
    }

    pub fn error(self, span: &Range<usize>, found: &str, expected: &str, rule: &str) -> DescriptionError {
        let (found, expected, rule) = (found.to_string(), expected.to_string(), rule.to_string());
        DescriptionError { at: self.at(span.start), found, expected, rule }
    }

    pub fn parse(self) -> Result<Spanned<DeTable<'a>>, DescriptionError> {
        DeTable::parse(self.text).map_err(|error| {
            let span = error.span().unwrap_or(0..0);
            // At the end of a truncated file there is nothing to point at.
            let found = match self.text.get(span.clone()).map(str::trim).filter(|text| !text.is_empty()) {
                Some(text) => format!("`{}` ({})", excerpt(text, 24), excerpt(error.message(), 160)),
                None => format!("TOML that does not parse ({})", excerpt(error.message(), 160)),
            };
            self.error(&span, &found, "a complete TOML document", "a machine file is TOML")
        })
    }
}

/// One table and what has been asked of it.
pub(super) struct Table<'t, 'a> {
    pub source: Text<'a>,
    /// Its dotted name, empty for the document.
    pub path: String,
    pub span: Range<usize>,
    entries: Vec<Entry<'t, 'a>>,
}

pub(super) struct Entry<'t, 'a> {
    pub name: &'t str,
    pub name_span: Range<usize>,
    pub value: &'t Spanned<DeValue<'a>>,
}

impl<'t, 'a> Table<'t, 'a> {
    pub fn new(source: Text<'a>, path: &str, span: Range<usize>, table: &'t DeTable<'a>) -> Table<'t, 'a> {
        let entry = |(key, value): (&'t Spanned<_>, &'t Spanned<DeValue<'a>>)| {
            let name: &'t std::borrow::Cow<'a, str> = key.get_ref();
            Entry { name: name.as_ref(), name_span: key.span(), value }
        };
        let mut entries: Vec<Entry> = table.iter().map(entry).collect();
        entries.sort_by_key(|entry| entry.name_span.start);
        Table { source, path: path.to_string(), span, entries }
    }

    /// The same under another dotted name.
    pub fn named(self, path: String) -> Table<'t, 'a> {
        Table { path, ..self }
    }

    /// The dotted name of one of its entries.
    pub fn full_name(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_string() } else { format!("{}.{name}", self.path) }
    }

    pub fn entries(&self) -> &[Entry<'t, 'a>] {
        &self.entries
    }

    pub fn get(&self, name: &str) -> Option<&'t Spanned<DeValue<'a>>> {
        self.entries.iter().find(|entry| entry.name == name).map(|entry| entry.value)
    }

    /// What it is in this document, for messages.
    pub fn title(&self) -> String {
        if self.path.is_empty() { "the file".to_string() } else { format!("`{}`", self.path) }
    }

    /// An error about this table as a whole.
    pub fn error(&self, found: &str, expected: &str, rule: &str) -> DescriptionError {
        self.source.error(&self.span, found, expected, rule)
    }

    /// An error about one value.
    pub fn error_at(&self, value: &Spanned<DeValue>, found: &str, expected: &str, rule: &str) -> DescriptionError {
        self.source.error(&value.span(), found, expected, rule)
    }

    /// Refuses entries that are not among `known`, naming the nearest.
    pub fn only(&self, known: &[&str], rule: &str) -> Result<(), DescriptionError> {
        match self.entries.iter().find(|entry| !known.contains(&entry.name)) {
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
        let found = format!("the unknown name `{}` in {}", excerpt(entry.name, 60), self.title());
        let expected = match nearest_name(entry.name, known.clone()) {
            Some(nearest) => format!("`{nearest}`, perhaps"),
            None => format!("one of {}", known.into_iter().collect::<Vec<_>>().join(", ")),
        };
        self.source.error(&entry.name_span, &found, &expected, rule)
    }

    /// A text that must be there and not be blank.
    pub fn string(&self, name: &str, rule: &str) -> Result<&'t str, DescriptionError> {
        let expected = format!("{name} = \"...\"");
        let Some(value) = self.get(name) else {
            return Err(self.error(&format!("no `{name}` in {}", self.title()), &expected, rule));
        };
        match value.get_ref().as_str() {
            Some(text) if !text.trim().is_empty() => Ok(text),
            Some(_) => Err(self.error_at(value, &format!("an empty `{name}`"), &expected, rule)),
            None => Err(self.error_at(value, &kind_of(value), &expected, rule)),
        }
    }

    /// A table among its entries, if it is there.
    pub fn table(&self, name: &str) -> Result<Option<Table<'t, 'a>>, DescriptionError> {
        self.get(name).map(|value| self.as_table(name, value)).transpose()
    }

    pub fn as_table(&self, name: &str, value: &'t Spanned<DeValue<'a>>) -> Result<Table<'t, 'a>, DescriptionError> {
        match value.get_ref().as_table() {
            Some(table) => Ok(Table::new(self.source, &self.full_name(name), value.span(), table)),
            None => {
                let expected = format!("a table `{}`", self.full_name(name));
                Err(self.error_at(value, &kind_of(value), &expected, "each section is a table"))
            }
        }
    }

    /// The elements of an array, if it is there.
    pub fn array(&self, name: &str, expected: &str) -> Result<Option<Vec<&'t Spanned<DeValue<'a>>>>, DescriptionError> {
        let Some(value) = self.get(name) else { return Ok(None) };
        match value.get_ref().as_array() {
            Some(array) => Ok(Some(array.iter().collect())),
            None => Err(self.error_at(value, &kind_of(value), expected, "lists are arrays")),
        }
    }
}

/// What a value is, with its text where it has a short one.
pub(super) fn kind_of(value: &Spanned<DeValue>) -> String {
    match value.get_ref() {
        DeValue::String(text) => format!("the text \"{}\"", excerpt(text, 40)),
        DeValue::Integer(number) => format!("the number {}", excerpt(number.as_str(), 40)),
        DeValue::Float(number) => format!("the number {}", excerpt(number.as_str(), 40)),
        DeValue::Boolean(value) => format!("{value}"),
        DeValue::Datetime(_) => "a date".to_string(),
        DeValue::Array(_) => "an array".to_string(),
        DeValue::Table(_) => "a table".to_string(),
    }
}

/// The text of a decimal number.
pub(super) fn number_text<'v>(value: &'v Spanned<DeValue>) -> Option<&'v str> {
    match value.get_ref() {
        DeValue::Integer(number) if number.radix() == 10 => Some(number.as_str()),
        DeValue::Float(number) => Some(number.as_str()),
        _ => None,
    }
}
