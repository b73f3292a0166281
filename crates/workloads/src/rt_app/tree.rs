//! The file as a tree with positions, in the order of the file. Repeated names are resolved here.

use super::Duplicates;
use super::fault::{Fault, Position, Warning, WarningKind, quoted};
use super::lexical::Source;
use jsonc_parser::ast;
use jsonc_parser::common::Ranged;
use std::collections::{BTreeMap, BTreeSet};

pub(super) struct Node {
    pub value: Value,
    pub position: Position,
}

pub(super) enum Value {
    Null,
    Boolean(bool),
    /// The text as written: the caller that wants an integer parses it.
    Number(String),
    Text(String),
    List(Vec<Node>),
    Object(Vec<Entry>),
}

pub(super) struct Entry {
    /// The name, with workgen's number if it was repeated.
    pub name: String,
    /// The name as the file writes it.
    pub written: String,
    /// Where the same name occurred before in this object; only set when repetitions are kept.
    pub first: Option<Position>,
    /// The position of the name.
    pub position: Position,
    pub node: Node,
}

const KEPT: &str =
    "all are kept, in order, as workgen does; rt-app alone keeps the last value of each, at the first place";
const LAST_COUNTS: &str =
    "the last value of each counts, at the first place, as in rt-app alone; workgen would keep all, in order";

pub(super) struct Builder<'a> {
    source: &'a Source,
    duplicates: Duplicates,
    pub warnings: Vec<Warning>,
}

impl<'a> Builder<'a> {
    pub fn new(source: &'a Source, duplicates: Duplicates) -> Builder<'a> {
        Builder { source, duplicates, warnings: Vec::new() }
    }

    pub fn node(&mut self, value: &ast::Value<'_>) -> Node {
        let position = self.source.position(value.start());
        let value = match value {
            ast::Value::NullKeyword(_) => Value::Null,
            ast::Value::BooleanLit(literal) => Value::Boolean(literal.value),
            ast::Value::NumberLit(literal) => Value::Number(literal.value.to_string()),
            ast::Value::StringLit(literal) => Value::Text(literal.value.to_string()),
            ast::Value::Array(array) => Value::List(array.elements.iter().map(|v| self.node(v)).collect()),
            ast::Value::Object(object) => Value::Object(self.entries(object)),
        };
        Node { value, position }
    }

    fn entries(&mut self, object: &ast::Object<'_>) -> Vec<Entry> {
        let mut entries = Vec::with_capacity(object.properties.len());
        for property in &object.properties {
            let written = property.name.as_str().to_string();
            let position = self.source.position(property.name.start());
            let node = self.node(&property.value);
            entries.push(Entry { name: written.clone(), written, first: None, position, node });
        }
        match self.duplicates {
            Duplicates::Workgen => self.number_repetitions(entries),
            Duplicates::JsonC => self.keep_last_values(entries),
        }
    }

    /// workgen's rule: a repeated name gets the object's counter appended; the counter grows until the result is
    /// unused.
    fn number_repetitions(&mut self, mut entries: Vec<Entry>) -> Vec<Entry> {
        let mut first_uses: BTreeMap<String, Position> = BTreeMap::new();
        let mut taken: BTreeSet<String> = BTreeSet::new();
        let mut counter = 1_u32;
        let mut repeated = Repeated::default();
        for entry in &mut entries {
            if taken.contains(&entry.name) {
                while taken.contains(&format!("{}{counter}", entry.written)) {
                    counter += 1;
                }
                entry.name = format!("{}{counter}", entry.written);
                entry.first = first_uses.get(&entry.written).copied();
                repeated.note(entry);
            }
            taken.insert(entry.name.clone());
            first_uses.entry(entry.written.clone()).or_insert(entry.position);
        }
        if let Some(warning) = repeated.warning(KEPT) {
            self.warnings.push(warning);
        }
        entries
    }

    /// json-c's rule: the last value counts, at the place of the first.
    fn keep_last_values(&mut self, entries: Vec<Entry>) -> Vec<Entry> {
        let mut places: BTreeMap<String, usize> = BTreeMap::new();
        let mut kept: Vec<Entry> = Vec::with_capacity(entries.len());
        let mut repeated = Repeated::default();
        for entry in entries {
            match places.get(&entry.written) {
                Some(&place) => {
                    repeated.note(&entry);
                    kept[place] = entry;
                }
                None => {
                    places.insert(entry.written.clone(), kept.len());
                    kept.push(entry);
                }
            }
        }
        if let Some(warning) = repeated.warning(LAST_COUNTS) {
            self.warnings.push(warning);
        }
        kept
    }
}

/// The repetitions of one object.
#[derive(Default)]
struct Repeated {
    names: Vec<String>,
    at: Option<Position>,
}

impl Repeated {
    fn note(&mut self, entry: &Entry) {
        self.at.get_or_insert(entry.position);
        // Keeps few enough names to read; the position leads to the rest.
        if self.names.len() < 4 && !self.names.contains(&entry.written) {
            self.names.push(entry.written.clone());
        }
    }

    fn warning(&self, reading: &str) -> Option<Warning> {
        let names = self.names.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(", ");
        let text = format!("repeated names in one object ({names}): {reading}");
        self.at.map(|position| Warning { position, kind: WarningKind::Duplicates, text })
    }
}

impl Node {
    /// What the value is, for a message.
    pub fn describe(&self) -> String {
        match &self.value {
            Value::Null => "null".into(),
            Value::Boolean(value) => value.to_string(),
            Value::Number(digits) => quoted(digits).trim_matches('"').to_string(),
            Value::Text(text) => quoted(text),
            Value::List(_) => "an array".into(),
            Value::Object(_) => "an object".into(),
        }
    }

    pub fn is_null(&self) -> bool {
        matches!(self.value, Value::Null)
    }

    fn wrong(&self, key: &str, right: &str) -> Fault {
        Fault::new(self.position, format!("{} is {}", quoted(key), self.describe()), format!("it should be {right}"))
    }

    /// An integer in `low..=high`; `what` describes it with its unit, as in `a whole number of microseconds`.
    pub fn integer(&self, key: &str, low: i64, high: i64, what: &str) -> Result<i64, Fault> {
        let Value::Number(digits) = &self.value else {
            return Err(self.wrong(key, &format!("{what}, {low} to {high}")));
        };
        // A number too long for an i64 is out of every range.
        match digits.parse::<i64>() {
            Ok(number) if (low..=high).contains(&number) => Ok(number),
            _ => Err(self.wrong(key, &format!("{what}, {low} to {high}"))),
        }
    }

    pub fn text(&self, key: &str, what: &str) -> Result<&str, Fault> {
        match &self.value {
            Value::Text(text) => Ok(text),
            _ => Err(self.wrong(key, what)),
        }
    }

    pub fn boolean(&self, key: &str) -> Result<bool, Fault> {
        match self.value {
            Value::Boolean(value) => Ok(value),
            _ => Err(self.wrong(key, "true or false")),
        }
    }

    pub fn object(&self, key: &str, what: &str) -> Result<&[Entry], Fault> {
        match &self.value {
            Value::Object(entries) => Ok(entries),
            _ => Err(self.wrong(key, what)),
        }
    }

    /// A non-empty array of integers in `0..=high`, in the order of the file.
    pub fn indices(&self, key: &str, high: i64, what: &str, example: &str) -> Result<Vec<u16>, Fault> {
        let right = format!("an array of {what}, such as {example}");
        let Value::List(nodes) = &self.value else {
            return Err(self.wrong(key, &right));
        };
        if nodes.is_empty() {
            return Err(Fault::new(
                self.position,
                format!("{} is an empty array", quoted(key)),
                format!("it should be {right}; leave it out for all"),
            ));
        }
        let index = |node: &Node| node.integer(key, 0, high, what).map(|number| number as u16);
        nodes.iter().map(index).collect()
    }

    /// The fault for a value that is not one of the valid ones.
    pub fn not_one_of(&self, key: &str, suggestion: String) -> Fault {
        Fault::new(self.position, format!("{} is {}", quoted(key), self.describe()), suggestion)
    }
}

impl Entry {
    /// Refuses a second use of a name that can only have one value.
    pub fn refuse_repetition(&self) -> Result<(), Fault> {
        match self.first {
            Some(first) => Err(Fault::new(
                self.position,
                format!("{} is given twice, first at {first}", quoted(&self.written)),
                "keep one of them",
            )),
            None => Ok(()),
        }
    }
}

/// The value of a property; a null value counts as not given, as in rt-app.
pub(super) fn property<'a>(entries: &'a [Entry], name: &str) -> Option<&'a Node> {
    entries.iter().find(|entry| entry.written == name).map(|entry| &entry.node).filter(|node| !node.is_null())
}
