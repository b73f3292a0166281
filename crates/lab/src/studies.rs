//! The published studies that are predicted: each one's experiments, as they ship in `experiments/`.

use crate::experiment::{Draft, parse};
use crate::json::Document;
use crate::mistake::{Mistake, Written};

/// A change of the kernel, and the tables that were published of it.
pub struct Study {
    pub name: &'static str,
    pub about: &'static str,
    /// File names and texts, each on a machine of its own.
    pub experiments: &'static [(&'static str, &'static str)],
}

pub const STUDIES: &[Study] = &[
    Study {
        name: "schedstats",
        about: "schedstats becomes a switch that is off by default (v4.5-rc1)",
        experiments: &[
            ("experiments/schedstats.toml", include_str!("../../../experiments/schedstats.toml")),
            ("experiments/schedstats-hackbench.toml", include_str!("../../../experiments/schedstats-hackbench.toml")),
            ("experiments/schedstats-8core.toml", include_str!("../../../experiments/schedstats-8core.toml")),
        ],
    },
    Study {
        name: "load-avg-line",
        about: "task_group.load_avg moves to a cache line of its own (v4.5-rc1)",
        experiments: &[
            ("experiments/load-avg-line.toml", include_str!("../../../experiments/load-avg-line.toml")),
            ("experiments/load-avg-line-curve.toml", include_str!("../../../experiments/load-avg-line-curve.toml")),
            ("experiments/load-avg-line-growth.toml", include_str!("../../../experiments/load-avg-line-growth.toml")),
        ],
    },
    Study {
        name: "recent-used-cpu",
        about: "select_idle_sibling() looks at a recently used CPU (v4.16)",
        experiments: &[
            ("experiments/recent-used-cpu.toml", include_str!("../../../experiments/recent-used-cpu.toml")),
            ("experiments/recent-used-cpu-numa.toml", include_str!("../../../experiments/recent-used-cpu-numa.toml")),
        ],
    },
];

/// The study of that name.
///
/// # Errors
/// An unknown name, with the nearest.
pub fn choose(name: &Written) -> Result<&'static Study, Mistake> {
    let found = STUDIES.iter().find(|study| study.name == name.text);
    found.ok_or_else(|| name.unknown("study", STUDIES.iter().map(|study| study.name)))
}

impl Study {
    /// Its experiments as written.
    pub fn drafts(&self) -> impl Iterator<Item = Result<Draft, Mistake>> {
        self.experiments.iter().map(|(path, text)| {
            let mut draft = parse(text, path)?;
            let name = path.trim_start_matches("experiments/").trim_end_matches(".toml");
            draft.name = Some(Written::option("reproduce", name));
            Ok(draft)
        })
    }
}

/// One document of several: the first's subject, the tables of all.
pub fn merged(documents: impl IntoIterator<Item = Document>) -> Option<Document> {
    documents.into_iter().reduce(|mut all, next| {
        all.tables.extend(next.tables);
        all.events += next.events;
        all.cpu_seconds += next.cpu_seconds;
        all
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Purpose;
    use crate::machines::tests::Table as NoFiles;

    #[test]
    fn every_study_resolves_and_names_its_tables_once() {
        for study in STUDIES {
            let mut titles: Vec<String> = Vec::new();
            for draft in study.drafts() {
                let draft = draft.unwrap_or_else(|error| panic!("{error}"));
                let experiment = draft.resolve(Purpose::Comparison, &NoFiles::default());
                let experiment = experiment.unwrap_or_else(|error| panic!("{error}"));
                let title = |table: &crate::experiment::WorkloadTable| {
                    table.title.clone().unwrap_or_else(|| table.source.name().to_string())
                };
                titles.extend(experiment.tables.iter().map(title));
            }
            let count = titles.len();
            titles.sort();
            titles.dedup();
            assert_eq!(titles.len(), count, "{}: {titles:?}", study.name);
        }
    }

    #[test]
    fn a_study_that_is_none_is_refused() {
        let error = choose(&Written::option("reproduce", "schedstat")).err().expect("it is refused").to_string();
        assert!(error.contains("the unknown study `schedstat`; expected `schedstats`, perhaps"), "{error}");
    }
}
