//! `reproduce`.

use crate::arguments::{Format, ReproduceArguments, Selectors};
use crate::compare::{Session, comparison};
use crate::failure::Failure;
use crate::output::{print, write_file};
use crate::select;
use crate::store::{Folder, Store, Stored, cannot_write};
use lab::experiment::{Experiment, Job, Purpose};
use lab::html::overview::{MARK, Part, overview};
use lab::mistake::Written;
use lab::studies::{STUDIES, Study, choose, merged};
use std::fs;
use std::path::{Path, PathBuf};

/// The overview page of the reports.
const OVERVIEW: &str = "index.html";

/// An experiment of a study, and the folder of its results, relative to the common folder.
struct Planned {
    study: &'static Study,
    experiment: Experiment,
    folder: String,
}

/// `fairground reproduce`: runs the experiments of each study, one after the other. Stored runs of an earlier call are
/// used as they are.
pub fn reproduce(arguments: &ReproduceArguments) -> Result<(), Failure> {
    let studies: Vec<&'static Study> = match &arguments.studies[..] {
        [] => STUDIES.iter().collect(),
        names => names.iter().map(|name| choose(&Written::option("reproduce", name))).collect::<Result<_, _>>()?,
    };
    run(&studies, STUDIES, arguments, &print)
}

/// Runs `studies`; `all` are those that the overview shows.
fn run(
    studies: &[&'static Study],
    all: &'static [Study],
    arguments: &ReproduceArguments,
    print: &dyn Fn(&str) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let selectors = Selectors {
        iterations: arguments.iterations.clone(),
        jobs: arguments.jobs.clone(),
        quiet: arguments.quiet,
        ..Selectors::default()
    };
    let planned = plan(studies, &selectors)?;
    // Studies that were not asked for may have been run before.
    let quiet = Selectors { quiet: true, ..Selectors::default() };
    let shown = plan(&all.iter().collect::<Vec<_>>(), &quiet)?;
    let place = arguments.out.as_ref().map_or_else(Store::place, PathBuf::from);
    check_overview(&place)?;
    let mut session = Session::new(&selectors, arguments.format)?;
    // All runs are known from the beginning, so that the remaining time covers everything.
    for (number, Planned { experiment, folder, .. }) in planned.iter().enumerate() {
        let folder = place.join(folder);
        let missing = experiment.jobs().into_iter().filter(|job| !Store::has(&folder, experiment, job));
        session.course.expect(number, &missing.collect::<Vec<Job>>());
    }
    let mut documents = Vec::new();
    for (number, Planned { study, experiment, folder }) in planned.iter().enumerate() {
        session.course.say(&format!("{}: {} ({})", study.name, study.about, experiment.name));
        let report = comparison(&mut session, number, experiment, None, &place.join(folder));
        // The overview is also written after an interruption.
        let written = write_overview(&place, all, &shown);
        let report = report?;
        written?;
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
    session.course.say(&format!("overview: {}", place.join(OVERVIEW).display()));
    drop(session);
    merged(documents).map_or(Ok(()), |document| print(&document.to_text()))
}

fn plan(studies: &[&'static Study], selectors: &Selectors) -> Result<Vec<Planned>, Failure> {
    let mut planned = Vec::new();
    for study in studies {
        for draft in study.drafts() {
            let experiment = select::chosen(draft?, selectors, Purpose::Comparison)?;
            planned.push(Planned { study, folder: Store::folder_name(&experiment), experiment });
        }
    }
    Ok(planned)
}

/// Refuses a place where a page that is not ours would be overwritten, and the folder of a single experiment.
fn check_overview(place: &Path) -> Result<(), Failure> {
    let path = place.join(OVERVIEW);
    let refuse = |path: &Path, found: &str| {
        let expected = "a new folder, or one with results of this command: --out DIR";
        Err(Failure::Mistake(format!("{}: found {found}; expected {expected}", path.display())))
    };
    if Folder::is_one(place) {
        return refuse(place, "the results of one experiment");
    }
    match fs::read(&path) {
        Ok(page) if !String::from_utf8_lossy(&page).contains(MARK) => refuse(&path, "a page that is not ours"),
        _ => Ok(()),
    }
}

/// Writes the overview page of the existing reports, if there are any.
fn write_overview(place: &Path, studies: &[Study], planned: &[Planned]) -> Result<(), Failure> {
    let found: Vec<Stored> = planned.iter().map(|of| Stored::find(&place.join(&of.folder))).collect();
    if found.iter().all(|report| matches!(report, Stored::Missing)) {
        return Ok(());
    }
    let parts = |study: &Study| {
        let own = planned.iter().zip(&found).filter(|(of, _)| of.study.name == study.name);
        own.map(|(of, found)| Part { name: &of.experiment.name, folder: &of.folder, state: found.state() }).collect()
    };
    let studies: Vec<(&Study, Vec<Part>)> = studies.iter().map(|study| (study, parts(study))).collect();
    let path = place.join(OVERVIEW);
    write_file(&path, overview(&studies)).map_err(|error| cannot_write(&path, &error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use lab::json::Document;
    use std::cell::RefCell;

    const ONE: &str = "\
machine = \"core-i7-3770\"
iterations = 2
workload = [{ name = \"hackbench-pipes\", title = \"pipes\", groups = [1, 2], loops = 1, published = { source = \"x\", 1 = 0.1 } }]
arm = [{ name = \"a\", kernel = \"v4.15\" }, { name = \"b\", kernel = \"v4.16\" }]
";
    const TWO: &str = "\
machine = \"core-i7-3770\"
iterations = 2
workload = [{ name = \"pipetest\", batches = 2, loops = 2 }]
arm = [{ name = \"a\", kernel = \"v4.15\" }, { name = \"b\", kernel = \"v4.16\" }]
";
    static STUDIES: [Study; 2] = [
        Study { name: "first", about: "one thing", experiments: &[("experiments/one.toml", ONE)] },
        Study { name: "second", about: "another", experiments: &[("experiments/two.toml", TWO)] },
    ];

    /// What the command prints for `studies`.
    fn printed(studies: &[&'static Study], out: &Path, format: Format) -> Result<String, Failure> {
        let arguments = ReproduceArguments {
            studies: Vec::new(),
            iterations: None,
            jobs: Some("1".to_string()),
            format,
            out: Some(out.to_string_lossy().into_owned()),
            quiet: true,
        };
        let all = RefCell::new(String::new());
        run(studies, &STUDIES, &arguments, &|text| {
            all.borrow_mut().push_str(text);
            Ok(())
        })?;
        Ok(all.into_inner())
    }

    fn folder(test: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("fairground-{test}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        path
    }

    /// Links that lead from the overview to other files.
    fn links(page: &str) -> Vec<&str> {
        let all = page.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next());
        all.filter(|link| !link.starts_with('#')).collect()
    }

    #[test]
    fn the_overview_leads_to_every_report_also_of_earlier_calls() {
        let place = folder("overview");
        let text = printed(&[&STUDIES[0]], &place, Format::Text).unwrap();
        assert!(text.starts_with("first: one thing\nmachine ") && text.contains("within 10%: "), "{text}");
        let page = || fs::read_to_string(place.join(OVERVIEW)).unwrap();
        let said = |page: &str, part: &str| assert!(page.contains(part), "{part} is missing in {page}");
        said(&page(), "<code>fairground reproduce second</code>");
        assert_eq!(links(&page()).len(), 2, "the report and its table");
        let json = printed(&[&STUDIES[1]], &place, Format::Json).unwrap();
        let document: Document = serde_json::from_str(&json).unwrap();
        assert_eq!((document.tables.len(), document.tables[0].workload.as_str()), (1, "pipetest"));
        let page = page();
        assert_eq!(links(&page).len(), 4);
        for link in links(&page) {
            let (file, part) = link.split_once('#').unwrap_or((link, ""));
            let report = fs::read_to_string(place.join(file)).unwrap_or_else(|error| panic!("{link}: {error}"));
            assert!(report.contains(&format!("id=\"{part}\"")) || part.is_empty(), "{link}");
        }
        // Both studies at once, from stored runs: one document.
        let both = printed(&[&STUDIES[0], &STUDIES[1]], &place, Format::Json).unwrap();
        assert_eq!(serde_json::from_str::<Document>(&both).unwrap().tables.len(), 2);
        // One report is incomplete, and one is missing.
        let first = place.join(links(&page)[0]);
        fs::rename(&first, first.with_file_name("report.partial.html")).unwrap();
        write_overview(&place, &STUDIES, &plan(&[&STUDIES[0], &STUDIES[1]], &Selectors::default()).unwrap()).unwrap();
        let page = fs::read_to_string(place.join(OVERVIEW)).unwrap();
        said(&page, "PARTIAL: runs are missing");
        assert!(links(&page)[0].ends_with("/report.partial.html"));
        fs::remove_dir_all(&place).unwrap();
    }

    #[test]
    fn the_page_of_somebody_else_stays() {
        let place = folder("other-page");
        fs::write(place.join(OVERVIEW), "<p>mine</p>").unwrap();
        let refused = printed(&[&STUDIES[0]], &place, Format::Text).unwrap_err();
        assert!(
            matches!(&refused, Failure::Mistake(text) if text.contains("index.html: found a page that is not ours; expected"))
        );
        assert_eq!(fs::read_dir(&place).unwrap().count(), 1);
        fs::remove_dir_all(&place).unwrap();
    }
}
