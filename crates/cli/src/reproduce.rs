//! `reproduce`.

use crate::arguments::{Format, ReproduceArguments, Selectors};
use crate::compare::{Session, comparison};
use crate::failure::Failure;
use crate::output::print;
use crate::select;
use crate::store::Store;
use lab::experiment::{Experiment, Job, Purpose};
use lab::mistake::Written;
use lab::studies::{STUDIES, Study, choose, merged};
use std::path::{Path, PathBuf};

/// `fairground reproduce`: each study's experiments, one after the other. What is stored of an earlier call is taken as it is.
pub fn reproduce(arguments: &ReproduceArguments) -> Result<(), Failure> {
    let studies: Vec<&Study> = match &arguments.studies[..] {
        [] => STUDIES.iter().collect(),
        names => names.iter().map(|name| choose(&Written::option("reproduce", name))).collect::<Result<_, _>>()?,
    };
    let selectors = Selectors {
        iterations: arguments.iterations.clone(),
        jobs: arguments.jobs.clone(),
        quiet: arguments.quiet,
        ..Selectors::default()
    };
    let mut all: Vec<(&Study, Experiment, PathBuf)> = Vec::new();
    for study in studies {
        for draft in study.drafts() {
            let experiment = select::chosen(draft?, &selectors, Purpose::Comparison)?;
            let own = Store::default_folder(&experiment);
            let folder = match (&arguments.out, own.file_name()) {
                (Some(out), Some(name)) => Path::new(out).join(name),
                _ => own,
            };
            all.push((study, experiment, folder));
        }
    }
    let mut session = Session::new(&selectors, arguments.format)?;
    // So that the time to go is that of everything from the beginning on.
    for (number, (_, experiment, folder)) in all.iter().enumerate() {
        let missing = experiment.jobs().into_iter().filter(|job| !Store::has(folder, experiment, job));
        session.course.expect(number, &missing.collect::<Vec<Job>>());
    }
    let mut documents = Vec::new();
    for (number, (study, experiment, folder)) in all.iter().enumerate() {
        session.course.say(&format!("{}: {} ({})", study.name, study.about, experiment.name));
        let report = comparison(&mut session, number, experiment, None, folder)?;
        let text = match arguments.format {
            Format::Text => &format!("{}: {}\n{}\n", study.name, study.about, report.text),
            Format::Csv => &report.csv,
            Format::Json => {
                documents.push(report.document);
                continue;
            }
        };
        session.course.hide(|| print(text))?;
    }
    drop(session);
    merged(documents).map_or(Ok(()), |document| print(&document.to_text()))
}
