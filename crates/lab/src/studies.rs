//! The published studies that fairground predicts: the experiments of each, as they ship in `experiments/`.

use crate::experiment::{Draft, parse};
use crate::json::Document;
use crate::mistake::{Mistake, Written};

/// A change of the kernel, and the tables that were published about it.
pub struct Study {
    pub name: &'static str,
    pub about: &'static str,
    /// Names and texts of files; each experiment has its own machine.
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

/// The study with that name.
///
/// # Errors
/// An unknown name, with the nearest.
pub fn choose(name: &Written) -> Result<&'static Study, Mistake> {
    let found = STUDIES.iter().find(|study| study.name == name.text);
    found.ok_or_else(|| name.unknown("study", STUDIES.iter().map(|study| study.name)))
}

impl Study {
    /// Its experiments, unchecked.
    pub fn drafts(&self) -> impl Iterator<Item = Result<Draft, Mistake>> {
        self.experiments.iter().map(|(path, text)| {
            let mut draft = parse(text, path)?;
            let name = path.trim_start_matches("experiments/").trim_end_matches(".toml");
            draft.name = Some(Written::option("reproduce", name));
            Ok(draft)
        })
    }
}

/// Merges several documents: the first one's subject, and the tables of all.
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

    /// The published tables: the study, a table's name, and the keys of its rows. For a profile the keys are functions.
    const PUBLISHED: &str = "\
schedstats netperf-tcp 64 128 256 1024 2048 3312 4096 8192 16384
schedstats tbench4 1 2 4 8 16 32 64 128 256 512 1024 2048 3072
schedstats tbench4-8core 1 2 4 8 16 32 64 128 256 512
schedstats hackbench-pipes 1 4 7 12 21 30 48 79 110 141 172 192
schedstats pipetest Min 1st-qrtle 2nd-qrtle 3rd-qrtle Max-90% Max-93% Max-95% Max-99% Max Mean Best99%Mean Best95%Mean Best90%Mean \
Best50%Mean Best10%Mean Best5%Mean Best1%Mean
recent-used-cpu dbench-xfs 1 2 4 8 64
load-avg-line java Max-jOPs Critical-jOPs
load-avg-line tick-profile smp_apic_timer_interrupt hrtimer_interrupt tick_sched_timer update_process_times scheduler_tick task_tick_fair \
update_cfs_shares
";

    #[test]
    fn published_tables_are_there_by_their_names_and_keys() {
        let mut found = std::collections::BTreeSet::new();
        for study in STUDIES {
            for draft in study.drafts() {
                let experiment = draft.and_then(|draft| draft.resolve(Purpose::Comparison, &NoFiles::default()));
                for table in experiment.unwrap_or_else(|error| panic!("{error}")).tables {
                    let title = table.title.as_deref().unwrap_or(table.source.name());
                    let mut keys: Vec<&str> =
                        table.published.iter().flat_map(|it| &it.rows).map(|row| &row.0[..]).collect();
                    if !keys.is_empty() {
                        found.insert(format!("{} {title} {}", study.name, keys.join(" ")));
                        let own = table.points.iter().flat_map(|point| &point.operations);
                        let rows =
                            if table.class == crate::tables::Class::Variabletime { keys.len() } else { own.count() };
                        assert!(rows >= keys.len(), "{title}: the keys are labels of its rows");
                    }
                    if let Some(profile) = &table.profile {
                        keys = profile.functions.iter().map(|function| &function[..]).collect();
                        found.insert(format!("{} {} {}", study.name, profile.title, keys.join(" ")));
                    }
                }
            }
        }
        for line in PUBLISHED.lines() {
            assert!(found.contains(line), "{line}: not among {found:#?}");
        }
    }

    #[test]
    fn a_study_that_is_none_is_refused() {
        let error = choose(&Written::option("reproduce", "schedstat")).err().expect("it is refused").to_string();
        assert!(error.contains("the unknown study `schedstat`; expected `schedstats`, perhaps"), "{error}");
    }
}
