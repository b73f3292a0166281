//! `reproduce`.

use crate::arguments::{Format, ReproduceArguments, RunArguments, Selectors};
use crate::compare::comparison;
use crate::execute::Patience;
use crate::failure::Failure;
use crate::output::{print, say};
use crate::select;
use crate::store::Store;
use lab::experiment::Purpose;
use lab::mistake::Written;
use lab::studies::{STUDIES, Study, choose, merged};
use std::path::Path;

/// `fairground reproduce`: each study's experiments, one after the other. What is stored of an earlier call is taken as it is.
pub fn reproduce(arguments: &ReproduceArguments) -> Result<(), Failure> {
    let studies: Vec<&Study> = match &arguments.studies[..] {
        [] => STUDIES.iter().collect(),
        names => names.iter().map(|name| choose(&Written::option("reproduce", name))).collect::<Result<_, _>>()?,
    };
    let run = RunArguments {
        selectors: Selectors {
            iterations: arguments.iterations.clone(),
            jobs: arguments.jobs.clone(),
            quiet: arguments.quiet,
            ..Selectors::default()
        },
        format: arguments.format,
        out: None,
    };
    let patience = Patience::watch();
    let mut documents = Vec::new();
    for study in studies {
        for draft in study.drafts() {
            let experiment = select::chosen(draft?, &run.selectors, Purpose::Comparison)?;
            if !arguments.quiet {
                say(&format!("{}: {} ({})", study.name, study.about, experiment.name));
            }
            let own = Store::default_folder(&experiment);
            let folder = match (&arguments.out, own.file_name()) {
                (Some(out), Some(name)) => Path::new(out).join(name),
                _ => own,
            };
            let report = comparison(&experiment, None, &run, &folder, &patience)?;
            match arguments.format {
                Format::Text => print(&format!("{}: {}\n{}\n", study.name, study.about, report.text))?,
                Format::Csv => print(&report.csv)?,
                Format::Json => documents.push(report.document),
            }
        }
    }
    merged(documents).map_or(Ok(()), |document| print(&document.to_text()))
}
