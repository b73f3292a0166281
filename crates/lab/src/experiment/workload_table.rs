//! The tables of a workload in an experiment; their rows are what runs measure.

use crate::mmtests::{Vintage, compares_time};
use crate::programs::{RT_APP, SCRIPT, TRACE};
use crate::setup::{FileSetup, WorkloadSetup};
use crate::statistics::Better;
use crate::tables::{Class, Operation, Published, Table};
use serde_json::Value;
use std::collections::BTreeMap;
use units::Ns;

/// One table of the report: a workload over a list of rows.
#[derive(Clone, Debug)]
pub struct WorkloadTable {
    /// The title, unless it is simply the workload's name.
    pub title: Option<String>,
    pub source: Source,
    /// Parameters that all rows share.
    pub parameters: BTreeMap<String, Value>,
    pub points: Vec<Point>,
    /// How much simulated time the workload asks for; zero if it ends by itself.
    pub duration: Ns,
    pub class: Class,
    pub unit: String,
    pub better: Better,
    /// Samples are integers: this many make one of the unit.
    pub per_unit: u64,
    pub decimals: usize,
    /// What a real machine measured with the first arm's kernel.
    pub published: Option<Published>,
    /// The shares of kernel functions that its runs measure too.
    pub profile: Option<ProfileTable>,
}

impl WorkloadTable {
    /// Whether the document has a row of this label; for times, in some vintage.
    pub(super) fn has_row(&self, label: &str) -> bool {
        match self.class {
            Class::Variabletime => Vintage::ALL.iter().any(|&vintage| compares_time(vintage, label)),
            _ => self.points.iter().flat_map(|point| &point.operations).any(|row| row == label),
        }
    }

    /// Whether reports tell the two tables apart by nothing but their rows.
    pub(super) fn is_titled_as(&self, other: &WorkloadTable) -> bool {
        fn said(of: &WorkloadTable) -> (&str, &str, &BTreeMap<String, Value>) {
            (of.title.as_deref().unwrap_or(of.source.name()), of.source.name(), &of.parameters)
        }
        said(self) == said(other)
    }

    /// The table of these rows; `None` without rows.
    pub fn table(&self, arms: Vec<String>, operations: Vec<Operation>, published: Option<Published>) -> Option<Table> {
        (!operations.is_empty()).then(|| Table {
            name: self.title.clone(),
            workload: self.source.name().to_string(),
            parameters: self.parameters.clone(),
            class: self.class.clone(),
            unit: self.unit.clone(),
            better: self.better,
            decimals: self.decimals,
            arms,
            operations,
            published,
        })
    }

    /// A sample in the table's unit.
    pub fn in_units(&self, sample: u64) -> f64 {
        sample as f64 / self.per_unit as f64
    }

    /// The workload that a run of one of its points executes.
    pub fn workload(&self, point: usize) -> WorkloadSetup {
        WorkloadSetup {
            name: self.source.name().to_string(),
            parameters: self.points[point].values.clone(),
            file: self.source.file().cloned(),
            profile: self.profile.as_ref().map_or(Vec::new(), |profile| profile.functions.clone()),
        }
    }
}

/// Where a workload's tasks come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// By its name in [`workloads::all`].
    Registered(&'static str),
    /// An rt-app file.
    RtApp(FileSetup),
    /// Tasks in a few lines.
    Script(FileSetup),
    /// The scripts of a recorded trace.
    Trace(FileSetup),
}

impl Source {
    pub fn name(&self) -> &'static str {
        match self {
            Source::Registered(name) => name,
            Source::RtApp(_) => RT_APP,
            Source::Script(_) => SCRIPT,
            Source::Trace(_) => TRACE,
        }
    }

    pub fn file(&self) -> Option<&FileSetup> {
        match self {
            Source::Registered(_) => None,
            Source::RtApp(file) | Source::Script(file) | Source::Trace(file) => Some(file),
        }
    }
}

/// One choice of a workload's parameters, which one run executes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Point {
    /// A name for its records.
    pub name: String,
    /// Labels of the rows that its run measures.
    pub operations: Vec<String>,
    /// Every parameter of the workload.
    pub values: BTreeMap<String, u64>,
}

/// Two tables of shares: of functions including what they call, and of functions by themselves.
#[derive(Clone, Debug, PartialEq)]
pub struct ProfileTable {
    /// The title of the first table; the second's has `-self` appended.
    pub title: String,
    pub functions: Vec<String>,
    /// What `perf report` showed on a real machine, in the order of the tables.
    pub published: [Option<Published>; 2],
}
