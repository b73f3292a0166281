//! For tests, including those of the command line, which include this file by its path: checks documents against
//! `docs/compare.schema.json`, and experiments against `docs/experiment.schema.json`.

use serde_json::{Map, Value};

/// As much of JSON Schema 2020-12 as our schemas use. Any other keyword is an error, so that none is silently ignored.
pub struct Schema {
    pub root: Value,
    /// Whether a text has a pattern in it.
    pub matches: fn(pattern: &str, text: &str) -> bool,
}

impl Schema {
    /// The errors in a value.
    pub fn errors(&self, schema: &Value, value: &Value, place: &str) -> Vec<String> {
        let mut errors = Vec::new();
        self.check(schema, value, place, &mut errors);
        errors
    }

    fn check(&self, schema: &Value, value: &Value, place: &str, errors: &mut Vec<String>) {
        let Value::Object(keywords) = schema else { return assert_eq!(schema, &Value::Bool(true), "{place}") };
        for (keyword, wanted) in keywords {
            let fine = match keyword.as_str() {
                "$schema" | "title" | "description" | "default" | "$defs" | "required" | "additionalProperties" => true,
                "$ref" => {
                    let pointer = wanted.as_str().unwrap().strip_prefix('#').expect("references stay inside");
                    self.check(self.root.pointer(pointer).expect(pointer), value, place, errors);
                    true
                }
                "type" => types_of(wanted).any(|name| has_type(value, name)),
                "enum" => wanted.as_array().unwrap().contains(value),
                "minimum" => value.as_f64().is_none_or(|number| number >= wanted.as_f64().unwrap()),
                "maximum" => value.as_f64().is_none_or(|number| number <= wanted.as_f64().unwrap()),
                "minItems" => value.as_array().is_none_or(|items| items.len() as u64 >= wanted.as_u64().unwrap()),
                "maxItems" => value.as_array().is_none_or(|items| items.len() as u64 <= wanted.as_u64().unwrap()),
                "maxProperties" => {
                    value.as_object().is_none_or(|members| members.len() as u64 <= wanted.as_u64().unwrap())
                }
                "uniqueItems" => {
                    let items = value.as_array().map_or(&[][..], Vec::as_slice);
                    items.iter().enumerate().all(|(index, item)| !items[..index].contains(item))
                }
                "pattern" => value.as_str().is_none_or(|text| (self.matches)(wanted.as_str().unwrap(), text)),
                "not" => !self.errors(wanted, value, place).is_empty(),
                "anyOf" | "oneOf" => {
                    let fitting = wanted.as_array().unwrap().iter();
                    let fitting = fitting.filter(|schema| self.errors(schema, value, place).is_empty()).count();
                    fitting == 1 || fitting > 1 && keyword == "anyOf"
                }
                "items" => {
                    for (index, item) in value.as_array().into_iter().flatten().enumerate() {
                        self.check(wanted, item, &format!("{place}/{index}"), errors);
                    }
                    true
                }
                "properties" => {
                    for (name, part) in value.as_object().into_iter().flatten() {
                        if let Some(schema) = wanted.get(name) {
                            self.check(schema, part, &format!("{place}/{name}"), errors);
                        }
                    }
                    true
                }
                other => panic!("the schema uses {other}, which this walk does not know"),
            };
            if !fine {
                errors.push(format!("{place}: {keyword}"));
            }
        }
        if let Value::Object(members) = value {
            self.check_names(keywords, members, place, errors);
        }
    }

    /// `required` and `additionalProperties`.
    fn check_names(
        &self,
        keywords: &Map<String, Value>,
        members: &Map<String, Value>,
        place: &str,
        errors: &mut Vec<String>,
    ) {
        for name in keywords.get("required").and_then(Value::as_array).into_iter().flatten() {
            if !members.contains_key(name.as_str().unwrap()) {
                errors.push(format!("{place}: {name} is missing"));
            }
        }
        if let Some(of_others) = keywords.get("additionalProperties").filter(|wanted| wanted.is_object()) {
            let named = keywords.get("properties").and_then(Value::as_object);
            for (name, part) in members.iter().filter(|(name, _)| named.is_none_or(|named| !named.contains_key(*name)))
            {
                self.check(of_others, part, &format!("{place}/{name}"), errors);
            }
        }
        if keywords.get("additionalProperties") == Some(&Value::Bool(false)) {
            let known = keywords["properties"].as_object().unwrap();
            errors.extend(
                members
                    .keys()
                    .filter(|name| !known.contains_key(*name))
                    .map(|name| format!("{place}: {name} is not known")),
            );
        }
    }
}

fn types_of(wanted: &Value) -> impl Iterator<Item = &str> {
    let several = wanted.as_array().into_iter().flatten();
    several.chain(wanted.is_string().then_some(wanted)).map(|name| name.as_str().unwrap())
}

fn has_type(value: &Value, name: &str) -> bool {
    match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "number" => value.is_number(),
        "integer" => value.is_u64() || value.is_i64(),
        other => panic!("no such type: {other}"),
    }
}

pub fn schema() -> Schema {
    let text = include_str!("../../../../docs/compare.schema.json");
    let matches = |pattern: &str, _: &str| panic!("{pattern}: this schema has no patterns");
    Schema { root: serde_json::from_str(text).expect("the schema is JSON"), matches }
}

/// The errors in a document.
pub fn errors_in(value: &Value) -> Vec<String> {
    let schema = schema();
    schema.errors(&schema.root, value, "")
}
