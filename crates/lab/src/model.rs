//! The workload of a setup: its tasks, and the results of its run.

use crate::mistake::Mistake;
use crate::programs::{RT_APP, SCRIPT, TRACE, application, gave_up, refusal, replay, script};
use crate::setup::Setup;
use crate::warning::Warning;
use machine::prices::Prices;
use machine::topology::Location;
use sched::versions::Kernel;
use sim::engine::{RefusedRequest, Sample};
use workloads::rt_app::{self, Cores, RtApp, log_text};
use workloads::script::Script;
use workloads::trace::Playback;
use workloads::{Instance, Values};

/// The workload of a setup.
pub(crate) enum Model {
    Registered(Box<dyn Instance>),
    RtApp(Box<RtApp>),
    Script(Script),
    Trace(Playback),
}

impl Model {
    pub fn of(
        setup: &Setup,
        nr_cpus: usize,
        ps_per_cycle: u64,
        prices: &Prices,
        at: &Location,
    ) -> Result<Model, Mistake> {
        let Some(file) = &setup.workload.file else { return Ok(Model::Registered(registered(setup, at)?)) };
        if setup.workload.name == SCRIPT && setup.workload.parameters.is_empty() {
            return Ok(Model::Script(script(file)?));
        }
        if setup.workload.name == TRACE && setup.workload.parameters.is_empty() {
            return Ok(Model::Trace(Playback::new(replay(file, nr_cpus)?, nr_cpus)));
        }
        if setup.workload.name != RT_APP || !setup.workload.parameters.is_empty() {
            return Err(Mistake::new(
                at,
                format!("{} with a file", setup.workload.name),
                "rt-app, script or trace, without parameters",
            ));
        }
        let cores = Cores { nr_cpus, ps_per_cycle, caches: prices.into() };
        Ok(Model::RtApp(Box::new(rt_app::instance(application(file)?, cores)?)))
    }

    pub fn instance(&self) -> &dyn Instance {
        match self {
            Model::Registered(instance) => instance.as_ref(),
            Model::RtApp(app) => app.as_ref(),
            Model::Script(script) => script,
            Model::Trace(playback) => playback,
        }
    }

    /// Samples of each row.
    pub fn samples(&self, reported: &[Sample]) -> Vec<Vec<u64>> {
        match self {
            Model::Registered(instance) => instance.rows(reported),
            Model::RtApp(app) => (0..app.operations().len()).map(|row| app.samples_of(row, reported)).collect(),
            Model::Trace(playback) => playback.rows(reported),
            Model::Script(script) => (0..script.tasks.len())
                .map(|row| reported.iter().filter(|it| it.series as usize == row).map(|it| it.value).collect())
                .collect(),
        }
    }

    /// How many units of what a user would count the run did.
    pub fn operations(&self, reported: &[Sample]) -> Option<(u64, &'static str)> {
        match self {
            Model::Registered(instance) => instance.operations(reported),
            Model::RtApp(_) | Model::Script(_) | Model::Trace(_) => None,
        }
    }

    /// What the user should know of a run. With `whole` the run came to its end, so what is missing would never have
    /// come.
    pub fn warnings(
        &self,
        kernel: &Kernel,
        reported: &[Sample],
        refused: &[RefusedRequest],
        whole: bool,
    ) -> Vec<Warning> {
        let app = match self {
            Model::Registered(_) | Model::Trace(_) => return unheard(refused),
            Model::RtApp(app) => app,
            Model::Script(script) => {
                return script.refused(kernel, reported).map(|refused| refusal(script, &refused)).collect();
            }
        };
        let unmeasured = app.unmeasured(reported).into_iter().filter(|_| whole).map(|task| {
            let missing =
                if task.has_timers() { "slept for none of its timers" } else { "ended no round of its phases" };
            format!("\"{}\" has no row: it {missing}", task.name).into()
        });
        gave_up(app.application(), reported).chain(unmeasured).collect()
    }

    pub fn logs(&self, reported: &[Sample]) -> Vec<(u32, String, String)> {
        let Model::RtApp(app) = self else { return Vec::new() };
        app.logs(reported).iter().map(|log| (log.index, log.thread.clone(), log_text(log))).collect()
    }
}

/// Requests that the kernel refused to tasks whose programs do not check the result: one line for each request and
/// error.
fn unheard(refused: &[RefusedRequest]) -> Vec<Warning> {
    let line = |RefusedRequest { at, comm, request, refusal, times }: &RefusedRequest| {
        let (errno, meaning, why) = (refusal.errno.name(), refusal.errno.meaning(), refusal.why);
        let more = if *times > 1 { format!(", and {} more after it", times - 1) } else { String::new() };
        let before = format!("the kernel refused \"{comm}\" {request} with {errno} ({meaning}) at ");
        Warning::timed(before, *at, format!("{more}: {why}; it goes on without"))
    };
    refused.iter().map(line).collect()
}

/// A workload from the registry, by name.
fn registered(setup: &Setup, at: &Location) -> Result<Box<dyn Instance>, Mistake> {
    let of = &setup.workload;
    let Some(workload) = workloads::workload(&of.name) else {
        return Err(Mistake::new(at, format!("the workload {}", of.name), "one that this program knows"));
    };
    let mut values = Values::defaults(workload);
    for (name, &value) in &of.parameters {
        let parameter = workload.parameters.iter().find(|parameter| parameter.name == name);
        if parameter.is_none_or(|parameter| !(parameter.range.0..=parameter.range.1).contains(&value)) {
            let found = format!("the parameter {name} = {value} of {}", of.name);
            return Err(Mistake::new(at, found, "one that this program knows"));
        }
        values.set(name, value);
    }
    Ok((workload.build)(&values))
}

#[cfg(test)]
mod tests {
    use crate::experiment::{Purpose, parse};
    use crate::machines::tests::Table;
    use crate::run::{Wanted, run};
    use machine::topology::Location;
    use units::Ns;

    /// The warnings of a workload on four CPUs, of which CPU 1 goes offline. The run ends at `until`.
    fn warnings(workload: &str, offline_at: &str, until: Option<Ns>) -> Vec<String> {
        let text = format!(
            "machine = \"pack:1 core:4 pu:1\"\n[[workload]]\n{workload}\n[[arm]]\nname = \"a\"\nkernel = \"v6.1\"\n\
             [[timeline]]\nat = \"{offline_at}\"\noffline = 1\n"
        );
        let experiment =
            parse(&text, "x.toml").and_then(|draft| draft.resolve(Purpose::Single, &Table::default())).unwrap();
        let setup = experiment.setup(&experiment.jobs()[0]);
        let run = run(&setup, Wanted { until, ..Wanted::default() }, &Location::of("x.toml")).unwrap().unwrap();
        run.outcome.warnings.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn cpus_that_a_benchmark_asks_for_in_vain_are_told() {
        let netperf = "name = \"netperf-tcp-rr\"\nbind = 2\nmilliseconds = 20";
        let [told] = &warnings(netperf, "0ms", None)[..] else { panic!("one request") };
        assert!(
            told.starts_with("the kernel refused \"netserver\" CPUs 1 with EINVAL (invalid argument) at "),
            "{told}"
        );
        assert!(told.ends_with(" ms: no CPU of the affinity is up; it goes on without"), "{told}");
        assert_eq!(warnings(&netperf.replace("bind = 2", "bind = 1"), "0ms", None), Vec::<String>::new());
    }

    #[test]
    fn who_sleeps_for_good_is_told_with_the_step() {
        let tasks = |tasks: &str| format!("name = \"script\"\ntasks = \"\"\"\n{tasks}\"\"\"");
        let read = tasks("task a: run 1ms; 2 x (write p; read p; yield); read q\n");
        let told = "1 task asleep that nothing will ever wake: \"a\" in `read q` (x.toml:5:48)";
        assert!(warnings(&read, "0ms", None).contains(&told.to_string()), "{:?}", warnings(&read, "0ms", None));
        let locks = tasks("mutex m\ntask a: lock m\ntask b at=1ms count=6: lock m; unlock m\n");
        let [told] = &warnings(&locks, "0ms", None)[..] else { panic!("one") };
        assert!(
            told.starts_with(
                "6 tasks asleep that nothing will ever wake: \"b0\" in `lock m` (x.toml:7:24) kept by a task that has ended, \"b1\""
            ),
            "{told}"
        );
        assert!(told.ends_with("\"b3\" in `lock m` (x.toml:7:24) kept by a task that has ended, and 2 more"), "{told}");
        let cross = tasks("mutex m\nmutex n\ntask a: lock m; run 1ms; lock n\ntask b: lock n; run 1ms; lock m\n");
        let told = "2 tasks asleep that nothing will ever wake: \"a\" in `lock n` (x.toml:7:26) kept by \"b\", \
                    \"b\" in `lock m` (x.toml:8:26) kept by \"a\"";
        assert_eq!(warnings(&cross, "0ms", None), [told]);
    }

    #[test]
    fn the_kernels_threads_of_a_short_warm_up_are_there_once() {
        let digest = |workload: &str, cmdline: &str| {
            let text = format!(
                "machine = \"pack:1 core:4 pu:1\"\n[[workload]]\nname = \"tbench4\"\n{workload}\n[[arm]]\nname = \"a\"\n\
                 kernel = \"v6.1\"\n{cmdline}\n"
            );
            let experiment =
                parse(&text, "x.toml").and_then(|draft| draft.resolve(Purpose::Single, &Table::default())).unwrap();
            let setup = experiment.setup(&experiment.jobs()[0]);
            run(&setup, Wanted::default(), &Location::of("x.toml")).unwrap().unwrap().outcome.digest
        };
        let noise = "cmdline = \"noise=1\"";
        let short = "clients = 2\nmilliseconds = 40\nwarmup = 20";
        assert_eq!(digest(short, noise), digest(short, ""));
        let none = "clients = 2\nmilliseconds = 40\nwarmup = 0";
        assert_ne!(digest(none, noise), digest(none, ""));
    }

    #[test]
    fn a_run_that_is_cut_short_does_not_miss_what_comes_later() {
        let script = "name = \"script\"\ntasks = \"task a: run 30ms\"";
        let late = "timeline: `offline=1` at 50 ms did not come, the run had ended";
        assert_eq!(warnings(script, "50ms", None), [late]);
        assert_eq!(warnings(script, "50ms", Some(Ns::from_ms(15))), Vec::<String>::new());
    }
}
