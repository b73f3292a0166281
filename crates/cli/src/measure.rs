//! `measure`: real benchmarks on this computer's kernel.

use crate::arguments::{MeasureArguments, MeasureFormat};
use crate::execute::Patience;
use crate::failure::Failure;
use crate::files::Disk;
use crate::measured_folder::Folder;
use crate::output::{print, say};
use crate::progress::still_bar;
use crate::real_rt_app::RtApp;
use host::bench::{BENCHMARKS, Benchmark, Request, benchmark};
use host::computer::{Computer, CpuTimes, now_seconds, others_busy_permille, utc};
use host::starter::Starter;
use lab::experiment::{Draft, MOST_ITERATIONS, WorkloadTable, workload_names};
use lab::listing::runs;
use lab::measured::{Host, MeasuredOutcome, MeasuredRecord, MeasuredReport, report};
use lab::mistake::{Location, Mistake, Written};
use lab::programs::RT_APP;
use lab::setup::WorkloadSetup;
use std::path::Path;
use std::time::Instant;

/// From this share of the CPUs' time, in thousandths, the work of others is worth mentioning.
const WORTH_A_WORD: u64 = 50;

/// `fairground measure`.
pub fn measure(arguments: &MeasureArguments) -> Result<(), Failure> {
    let computer = Computer::this()?;
    let iterations = Written::option("--iterations", &arguments.iterations).whole("iterations", 1, MOST_ITERATIONS)?;
    let tables = tables(arguments, &computer.allowed)?;
    let plan = plan(&tables, &computer.allowed)?;
    let host = facts(&computer);
    let workloads: Vec<&WorkloadSetup> = plan.iter().map(|(_, workload)| workload).collect();
    // This comes before the folder is made, because an interruption must not leave an empty folder behind.
    let starter = starter()?;
    let patience = Patience::watch_beside(&starter);
    let out = arguments.out.as_ref().map(Path::new);
    let opened = out.map(|out| Folder::open(out, &workloads, &host, iterations as u32)).transpose()?;
    let (folder, mut records) = opened.map_or((None, Vec::new()), |(folder, records)| (Some(folder), records));
    let all = plan.len() * iterations as usize;
    if let (Some(folder), false, false) = (&folder, records.is_empty(), arguments.quiet) {
        say(&format!("note: {} of {all} runs are taken from {}", records.len(), folder.path().display()));
    }
    let bar = still_bar("runs", all, records.len(), arguments.quiet);
    // Iteration by iteration, so that slow changes of the computer affect all rows alike.
    let order = (0..iterations as u32).flat_map(|iteration| plan.iter().map(move |row| (iteration, row)));
    let ended = order.take_while(|_| !patience.is_over()).try_for_each(|(iteration, (real, workload))| {
        let done = |record: &MeasuredRecord| record.iteration == iteration && record.workload == *workload;
        if records.iter().any(done) {
            return Ok(());
        }
        let outcome = match one(real, workload, &starter, &computer) {
            // A terminal's Ctrl-C also ends the benchmark's own processes: this run does not count.
            Err(_) if patience.is_over() => return Ok(()),
            outcome => outcome?,
        };
        let record = MeasuredRecord::new(host.clone(), workload.clone(), iteration, outcome);
        folder.as_ref().map_or(Ok(()), |folder| folder.store(&record))?;
        records.push(record);
        bar.inc(1);
        Ok::<(), Failure>(())
    });
    bar.finish_and_clear();
    if let (true, Some(folder)) = (records.is_empty(), &folder) {
        folder.discard();
    }
    ended?;
    if records.is_empty() {
        return Err(Failure::interrupted_at_first());
    }
    records.sort_by_key(|record| record.iteration);
    if !arguments.quiet {
        warn(&computer, &records);
    }
    finish(arguments, folder.as_ref(), report(&tables, &records), (records.len(), all))
}

/// Stores and prints the results, of which a part may be missing.
fn finish(
    arguments: &MeasureArguments,
    folder: Option<&Folder>,
    report: MeasuredReport,
    (done, all): (usize, usize),
) -> Result<(), Failure> {
    let partial = done < all;
    let label = if partial { format!("PARTIAL: {done} of {all} runs\n\n") } else { String::new() };
    let text = label + &report.text;
    if let Some(folder) = folder {
        folder.report(partial, &text, &report.json)?;
        if !arguments.quiet {
            say(&format!("measurements: {}", folder.path().display()));
        }
    }
    match arguments.format {
        MeasureFormat::Text => print(&text)?,
        // Programs that read JSON must not mistake a part for the whole.
        MeasureFormat::Json if partial => {}
        MeasureFormat::Json => print(&report.json)?,
    }
    if !partial {
        return Ok(());
    }
    Err(Failure::interrupted(format_args!("{done} of {all}"), folder.map(Folder::path)))
}

fn tables(arguments: &MeasureArguments, allowed: &[usize]) -> Result<Vec<WorkloadTable>, Failure> {
    // CPUs have the kernel's numbers; some below the highest may not be allowed.
    let nr_cpus = allowed.last().map_or(1, |last| last + 1);
    let mut draft = Draft::default();
    for workload in &arguments.workloads {
        draft.workload(&Written::option("measure", workload))?;
    }
    // This comes before files are read, which may turn out to suit only another computer. An unknown workload is reported
    // by a message of its own.
    let unreal =
        |name: &&str| workload_names().any(|known| known == *name) && *name != RT_APP && benchmark(name).is_none();
    if let Some(name) = draft.workloads.iter().map(|workload| workload.name.text.as_str()).find(unreal) {
        return Err(no_benchmark(name));
    }
    let mut notices = Vec::new();
    let tables = draft.tables(nr_cpus, &Disk, &mut notices)?;
    if !arguments.quiet {
        notices.iter().for_each(|notice| say(&format!("note: {notice}")));
    }
    Ok(tables)
}

fn no_benchmark(name: &str) -> Failure {
    let names: Vec<&str> = BENCHMARKS.iter().map(|benchmark| benchmark.name).chain([RT_APP]).collect();
    let found = format!("{name}, of which there is no real benchmark here");
    Mistake::new(&Location::of("measure"), found, names.join(", ")).into()
}

/// Something that can be measured.
enum Real {
    Benchmark(&'static Benchmark),
    RtApp(RtApp),
}

impl Real {
    fn of(workload: &WorkloadSetup, allowed: &[usize]) -> Result<Real, Failure> {
        if let (RT_APP, Some(file)) = (workload.name.as_str(), &workload.file) {
            return Ok(Real::RtApp(RtApp::of(file, allowed)?));
        }
        benchmark(&workload.name).map(Real::Benchmark).ok_or_else(|| no_benchmark(&workload.name))
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

/// The runs of one iteration.
fn plan(tables: &[WorkloadTable], allowed: &[usize]) -> Result<Vec<(Real, WorkloadSetup)>, Failure> {
    let mut plan = Vec::new();
    for table in tables {
        for point in 0..table.points.len() {
            let workload = table.workload(point);
            plan.push((Real::of(&workload, allowed)?, workload));
        }
    }
    Ok(plan)
}

/// How this program is started for further processes.
pub fn starter() -> Result<Starter, Failure> {
    let program = std::env::current_exe()
        .map_err(|error| Failure::Mistake(format!("the place of this program: {error}; expected /proc to be there")))?;
    Ok(Starter { program, words: vec!["host-child".to_string(), "--".to_string()] })
}

/// The computer, in the form of records.
pub fn facts(computer: &Computer) -> Host {
    Host {
        cpu_model: computer.cpu_model.clone(),
        kernel: computer.kernel.clone(),
        cpus: runs(&computer.allowed),
        virtual_machine: computer.virtual_machine,
        hz: computer.tick_hertz,
        preempt: computer.preempt.map(str::to_string),
        idle: computer.idle.clone(),
        halt_poll_ns: computer.halt_poll_ns,
    }
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

/// Warns of conditions that make the figures doubtful.
fn warn(computer: &Computer, records: &[MeasuredRecord]) {
    if let Some(why) = computer.own_scheduler() {
        say(&format!("note: {why}"));
    }
    let busiest = records.iter().filter_map(|record| record.outcome.others_busy_permille).max().unwrap_or(0);
    let stolen = records.iter().filter_map(|record| record.outcome.stolen_permille).max().unwrap_or(0);
    if busiest >= WORTH_A_WORD {
        say(&format!("note: others used up to {} % of the CPUs; the figures hold their share", busiest / 10));
    }
    if stolen >= WORTH_A_WORD {
        say(&format!("note: a hypervisor took up to {} % of the CPUs' time", stolen / 10));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_of_a_file_are_those_that_may_be_used() {
        let path = std::env::temp_dir().join(format!("fairground-cpus-{}.json", std::process::id()));
        let planned = |cpu: usize, allowed: &[usize]| {
            std::fs::write(&path, format!("{{\"tasks\": {{\"a\": {{\"loop\": 1, \"cpus\": [{cpu}], \"run\": 1}}}}}}"))
                .expect("written");
            let arguments = MeasureArguments {
                workloads: vec![format!("rt-app:file={}", path.display())],
                iterations: "1".to_string(),
                out: None,
                format: MeasureFormat::Text,
                quiet: true,
            };
            plan(&tables(&arguments, allowed)?, allowed).map(drop)
        };
        for (cpu, allowed, refused) in [
            (1, &[1][..], None),
            (2, &[0, 2], None),
            (0, &[1], Some("1:37: found CPU 0, which this process may not use; expected CPUs among 1")),
            (1, &[0, 2, 3], Some("1:37: found CPU 1, which this process may not use; expected CPUs among 0,2-3")),
            (2, &[0, 1], Some("1:37: \"cpus\" names CPU 2, but the machine has 2 CPUs")),
        ] {
            let said = planned(cpu, allowed).err().map(|failure| format!("{failure:?}"));
            let fits = match (&said, refused) {
                (Some(said), Some(part)) => said.replace("\\\"", "\"").contains(part),
                (None, None) => true,
                _ => false,
            };
            assert!(fits, "{cpu} of {allowed:?}: {said:?}");
        }
        std::fs::remove_file(&path).expect("it is there");
    }
}
