//! What is wrong with a machine file, where, and against which rule.

use crate::topology::{Location, TopologyError};
use std::fmt;

/// A machine file that cannot be used. Its text is one line: the place, what was found, what was expected, the rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DescriptionError {
    pub at: Location,
    pub found: String,
    pub expected: String,
    pub rule: String,
}

impl fmt::Display for DescriptionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: found {}; expected {} (rule: {})", self.at, self.found, self.expected, self.rule)
    }
}

impl std::error::Error for DescriptionError {}

impl From<TopologyError> for DescriptionError {
    fn from(error: TopologyError) -> DescriptionError {
        DescriptionError {
            at: error.at,
            found: error.found,
            expected: error.expected,
            rule: "a topology is whole and without contradictions".to_string(),
        }
    }
}
