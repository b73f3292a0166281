//! `measure`: real benchmarks on this computer's kernel; and the folders of measurements that `compare --measured` reads.

use crate::arguments::{MeasureArguments, MeasureFormat};
use crate::execute::{Patience, progress};
use crate::failure::Failure;
use crate::files::Disk;
use crate::output::{print, say, write_file, write_file_and_folders};
use crate::real_rt_app::RtApp;
use host::bench::{BENCHMARKS, Benchmark, Request, Starter, benchmark};
use host::computer::{Computer, CpuTimes, now_seconds, others_busy_permille, utc};
use lab::experiment::{Draft, MOST_ITERATIONS, WorkloadTable, file_name};
use lab::machines::Files;
use lab::measured::{Host, Measured, MeasuredOutcome, MeasuredRecord, report};
use lab::mistake::{Location, Mistake, Written};
use lab::programs::RT_APP;
use lab::setup::WorkloadSetup;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

const RECORDS: &str = "measured";
/// Share of the CPUs' time, in thousandths, from which others' work is worth a word.
const WORTH_A_WORD: u64 = 50;

/// `fairground measure`.
pub fn measure(arguments: &MeasureArguments) -> Result<(), Failure> {
    let computer = Computer::this()?;
    let iterations = Written::option("--iterations", &arguments.iterations).whole("iterations", 1, MOST_ITERATIONS)?;
    let tables = tables(arguments, computer.allowed.len())?;
    let plan = plan(&tables)?;
    let folder = arguments.out.as_ref().map(|out| folder(Path::new(out))).transpose()?;
    let patience = Patience::watch();
    let starter = starter()?;
    let host = facts(&computer);
    let bar = progress(plan.len() * iterations as usize, 0, arguments.quiet);
    let mut records: Vec<MeasuredRecord> = Vec::new();
    // By iteration, so that slow changes of the computer fall on all rows alike.
    'all: for iteration in 0..iterations as u32 {
        for (real, workload) in &plan {
            if patience.is_over() {
                break 'all;
            }
            let outcome = one(real, workload, &starter, &computer)?;
            let record = MeasuredRecord::new(host.clone(), workload.clone(), iteration, outcome);
            if let Some(folder) = &folder {
                store(folder, &record)?;
            }
            records.push(record);
            bar.inc(1);
        }
    }
    bar.finish_and_clear();
    if records.is_empty() {
        return Err(Failure::Mistake("interrupted: no run was finished, so nothing is kept".to_string()));
    }
    if !arguments.quiet {
        warn(&records);
    }
    let report = report(&tables, &records);
    if let Some(folder) = &folder {
        for (name, text) in [("measured.txt", &report.text), ("measured.json", &report.json)] {
            let path = folder.join(name);
            write_file(&path, text).map_err(|error| cannot_write(&path, &error))?;
        }
        if !arguments.quiet {
            say(&format!("measurements: {}", folder.display()));
        }
    }
    print(if arguments.format == MeasureFormat::Json { &report.json } else { &report.text })?;
    let (done, all) = (records.len(), plan.len() * iterations as usize);
    if done < all {
        return Err(Failure::Mistake(format!("interrupted: {done} of {all} runs are done")));
    }
    Ok(())
}

fn tables(arguments: &MeasureArguments, nr_cpus: usize) -> Result<Vec<WorkloadTable>, Failure> {
    let mut draft = Draft::default();
    for workload in &arguments.workloads {
        draft.workload_option(workload)?;
    }
    let mut notices = Vec::new();
    let tables = draft.tables(nr_cpus, &Disk, &mut notices)?;
    if !arguments.quiet {
        notices.iter().for_each(|notice| say(&format!("note: {notice}")));
    }
    Ok(tables)
}

/// What can be measured.
enum Real {
    Benchmark(&'static Benchmark),
    RtApp(RtApp),
}

impl Real {
    fn of(workload: &WorkloadSetup) -> Result<Real, Failure> {
        if let (RT_APP, Some(file)) = (workload.name.as_str(), &workload.file) {
            return Ok(Real::RtApp(RtApp::of(file)?));
        }
        benchmark(&workload.name).map(Real::Benchmark).ok_or_else(|| {
            let names: Vec<&str> = BENCHMARKS.iter().map(|benchmark| benchmark.name).chain([RT_APP]).collect();
            let found = format!("{}, of which there is no real benchmark here", workload.name);
            Mistake::new(&Location::of("measure"), found, names.join(", ")).into()
        })
    }

    fn run(&self, workload: &WorkloadSetup, starter: &Starter) -> Result<Vec<Vec<u64>>, Failure> {
        match self {
            Real::Benchmark(benchmark) => Ok((benchmark.run)(&Request { values: &workload.parameters, starter })?),
            Real::RtApp(app) => app.run(),
        }
    }

    fn differs(&self) -> &'static str {
        match self {
            Real::Benchmark(benchmark) => benchmark.differs,
            Real::RtApp(_) => "threads of this program, its locks and conditions are made of the library's own",
        }
    }
}

/// What is run in one iteration.
fn plan(tables: &[WorkloadTable]) -> Result<Vec<(Real, WorkloadSetup)>, Failure> {
    let mut plan = Vec::new();
    for table in tables {
        for point in 0..table.points.len() {
            let workload = table.workload(point);
            plan.push((Real::of(&workload)?, workload));
        }
    }
    Ok(plan)
}

/// This program, as it is started for further processes.
pub fn starter() -> Result<Starter, Failure> {
    let program = std::env::current_exe()
        .map_err(|error| Failure::Mistake(format!("the place of this program: {error}; expected /proc to be there")))?;
    Ok(Starter { program, words: vec!["host-child".to_string(), "--".to_string()] })
}

/// The computer, as records name it.
pub fn facts(computer: &Computer) -> Host {
    Host {
        cpu_model: computer.cpu_model.clone(),
        kernel: computer.kernel.clone(),
        cpus: list(&computer.allowed),
        virtual_machine: computer.virtual_machine,
        hz: computer.tick_hertz,
        preempt: computer.preempt.map(str::to_string),
        idle: computer.idle.clone(),
        halt_poll_ns: computer.halt_poll_ns,
    }
}

/// Ascending numbers as the kernel lists CPUs: `0-3,8`.
fn list(cpus: &[usize]) -> String {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for &cpu in cpus {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == cpu => *last = cpu,
            _ => runs.push((cpu, cpu)),
        }
    }
    let run =
        |&(first, last): &(usize, usize)| if first == last { first.to_string() } else { format!("{first}-{last}") };
    runs.iter().map(run).collect::<Vec<_>>().join(",")
}

fn one(
    real: &Real,
    workload: &WorkloadSetup,
    starter: &Starter,
    computer: &Computer,
) -> Result<MeasuredOutcome, Failure> {
    let others_busy_permille = others_busy_permille(&computer.allowed);
    let (began, before) = (now_seconds(), CpuTimes::now(&computer.allowed));
    let since = Instant::now();
    let samples = real.run(workload, starter)?;
    let elapsed_ns = since.elapsed().as_nanos() as u64;
    let during = CpuTimes::now(&computer.allowed).zip(before).map(|(after, before)| after.since(before));
    Ok(MeasuredOutcome {
        samples,
        elapsed_ns,
        began: utc(began),
        others_busy_permille,
        stolen_permille: during.map(CpuTimes::steal_permille),
        differs: real.differs().to_string(),
    })
}

/// What makes the figures doubtful.
fn warn(records: &[MeasuredRecord]) {
    let busiest = records.iter().filter_map(|record| record.outcome.others_busy_permille).max().unwrap_or(0);
    let stolen = records.iter().filter_map(|record| record.outcome.stolen_permille).max().unwrap_or(0);
    if busiest >= WORTH_A_WORD {
        say(&format!("note: others used up to {} % of the CPUs; the figures hold their share", busiest / 10));
    }
    if stolen >= WORTH_A_WORD {
        say(&format!("note: a hypervisor took up to {} % of the CPUs' time", stolen / 10));
    }
}

/// The folder, new or with earlier measurements: these are replaced run by run, so that a folder holds one set.
fn folder(folder: &Path) -> Result<PathBuf, Failure> {
    let records = folder.join(RECORDS);
    let foreign = !records.exists() && fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some());
    if foreign || folder.exists() && !folder.is_dir() {
        let found =
            if foreign { "a folder that is not empty and holds no measurements" } else { "a file of that name" };
        return Err(Failure::Mistake(format!("{}: found {found}; expected a new folder: --out DIR", folder.display())));
    }
    fs::create_dir_all(&records).map_err(|error| cannot_write(&records, &error))?;
    Ok(folder.to_path_buf())
}

fn store(folder: &Path, record: &MeasuredRecord) -> Result<(), Failure> {
    // Of the same workload in an earlier measurement nothing may be left beside the new.
    let records = folder.join(RECORDS);
    let values: Vec<String> =
        record.workload.parameters.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let text = record.workload.file.as_ref().map_or(String::new(), |file| lab::hash::sha256(file.text.as_bytes()));
    let name =
        file_name(&format!("{}-{}{}", record.workload.name, values.join("-"), text.get(..8).unwrap_or_default()));
    let place = records.join(name);
    if record.iteration == 0 && place.exists() {
        fs::remove_dir_all(&place).map_err(|error| cannot_write(&place, &error))?;
    }
    let path = place.join(format!("{:04}.json", record.iteration));
    write_file_and_folders(&path, record.to_json()).map_err(|error| cannot_write(&path, &error))
}

fn cannot_write(path: &Path, error: &std::io::Error) -> Failure {
    Failure::unwritten(path.display(), error, "a place for measurements: --out DIR")
}

/// Reads a folder of measurements.
pub fn measured(folder: &str) -> Result<Measured, Failure> {
    let at = Location::of(&format!("--measured {folder}"));
    let expected = "a folder of `fairground measure --out DIR`";
    let records = Path::new(folder).join(RECORDS);
    let entries = |path: &Path| {
        let entries = fs::read_dir(path)?.map(|entry| entry.map(|entry| entry.path()));
        let mut entries = entries.collect::<std::io::Result<Vec<PathBuf>>>()?;
        entries.sort();
        Ok::<_, std::io::Error>(entries)
    };
    let wrong = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::NotFound => Mistake::new(&at, "no folder of measurements", expected),
        _ => Mistake::new(&at, error.to_string(), expected),
    };
    let mut found = Vec::new();
    for place in entries(&records).map_err(wrong)? {
        for path in entries(&place).map_err(wrong)? {
            let path = path.display().to_string();
            let text = Disk.text(&path).map_err(|error| Mistake::file(&path, error, "a measurement"))?;
            found.push(MeasuredRecord::parse(&text, &path)?);
        }
    }
    if found.is_empty() {
        return Err(Mistake::new(&at, "no measurement", expected).into());
    }
    Ok(Measured { from: folder.to_string(), records: found })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_are_listed_in_runs() {
        assert_eq!(list(&[0, 1, 2, 3, 8, 10, 11]), "0-3,8,10-11");
        assert_eq!(list(&[5]), "5");
        assert_eq!(list(&[]), "");
    }
}
