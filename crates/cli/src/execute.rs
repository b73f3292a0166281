//! Runs jobs in parallel, with a progress bar, and handles Ctrl-C.

use crate::failure::Failure;
use crate::output::{say, write_file_and_folders};
use host::child::{HERALD, second_comes};
use host::starter::Starter;
use lab::record::Record;
use lab::setup::Setup;
use std::any::Any;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Instant;

/// The most threads at the same time.
pub const MOST_JOBS: u64 = 1024;

/// Whether the user has asked to stop.
#[derive(Clone)]
pub struct Patience(Arc<AtomicBool>);

impl Patience {
    /// From now on Ctrl-C is noticed; a second one ends the program at once. A terminal that closes is noticed, too.
    pub fn watch() -> Patience {
        use signal_hook::consts::{SIGINT, SIGTERM};
        use signal_hook::flag;
        use signal_hook::low_level::pipe;
        let patience = Patience::of_terminal();
        let heard = UnixStream::pair().and_then(|(here, there)| {
            for signal in [SIGINT, SIGTERM] {
                flag::register(signal, patience.0.clone())?;
                pipe::register(signal, here.try_clone()?)?;
            }
            thread::Builder::new().spawn(move || {
                if second_comes(there) {
                    signal_hook::low_level::exit(2);
                }
            })
        });
        if let Err(error) = heard {
            say(&format!("Ctrl-C will lose the run that it interrupts: {error}"));
        }
        patience
    }

    /// Notices a terminal that closes, and so far nothing else.
    fn of_terminal() -> Patience {
        use signal_hook::consts::SIGHUP;
        use signal_hook::flag::register;
        let asked = Arc::new(AtomicBool::new(false));
        // The shell and the kernel may each send a SIGHUP, so the second says no more than the first. nohup(1) sets it
        // to be ignored, and that must stay so.
        if !is_ignored(SIGHUP)
            && let Err(error) = register(SIGHUP, asked.clone())
        {
            say(&format!("a closed terminal will lose the run that it interrupts: {error}"));
        }
        Patience(asked)
    }

    /// The same for a process that measures itself: another process hears of a second Ctrl-C, reports it and ends this
    /// one. A thread that waits for it would share this process's file table, which makes every read and write slower.
    pub fn watch_beside(starter: &Starter) -> Patience {
        use signal_hook::consts::{SIGINT, SIGTERM, SIGUSR1};
        use signal_hook::flag::{register, register_conditional_shutdown};
        use signal_hook::low_level::pipe;
        let patience = Patience::of_terminal();
        let asked = || patience.0.clone();
        let told = UnixStream::pair().and_then(|(here, there)| {
            register_conditional_shutdown(SIGUSR1, 2, Arc::new(AtomicBool::new(true)))?;
            pipe::register(SIGINT, here.try_clone()?)?;
            pipe::register(SIGTERM, here)?;
            let mut herald = starter.command(&[HERALD.to_string()]);
            // A process group of its own, because a terminal's Ctrl-C is meant for the processes that it ends.
            herald.stdin(OwnedFd::from(there)).stdout(Stdio::null()).process_group(0).spawn()
        });
        if let Err(error) = told {
            say(&format!("a second Ctrl-C will not end this before its run has ended: {error}"));
        }
        for signal in [SIGINT, SIGTERM] {
            if let Err(error) = register(signal, asked()) {
                say(&format!("Ctrl-C will lose the run that it interrupts: {error}"));
            }
        }
        patience
    }

    pub fn is_over(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Whether this process was started with that signal ignored; false if the system does not tell.
fn is_ignored(signal: i32) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask >> (signal - 1) & 1 == 1
}

/// Does `work` for each job on `threads` threads, and passes the results to `done` in the order in which they finish.
/// `work` gets a function to call now and then, which says whether to give up; `work` then returns `None`. A failure
/// ends all jobs except those before it. If several fail, the first job's failure is returned, so the number of threads
/// does not matter. When the user's patience ends, some jobs are not done.
pub fn execute<J: Copy + Send + Sync, T: Send>(
    jobs: &[J],
    threads: usize,
    patience: &Patience,
    work: impl Fn(&J, &dyn Fn() -> bool) -> Result<Option<T>, Failure> + Sync,
    mut done: impl FnMut(J, T) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let next = AtomicUsize::new(0);
    let failed = AtomicUsize::new(usize::MAX);
    let give_up = |number: usize| patience.is_over() || failed.load(Ordering::Relaxed) < number;
    let (sender, receiver) = mpsc::channel();
    let mut result = Ok(());
    thread::scope(|scope| {
        for _ in 0..threads.min(jobs.len()) {
            let sender = sender.clone();
            let (next, give_up, work) = (&next, &give_up, &work);
            scope.spawn(move || {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some(job) = jobs.get(number).filter(|_| !give_up(number)) else { break };
                    if let Some(result) = work(job, &|| give_up(number)).transpose() {
                        // The receiver outlives every sender.
                        let _ = sender.send((number, result));
                    }
                }
            });
        }
        drop(sender);
        for (number, outcome) in receiver {
            if let Err(failure) = outcome.and_then(|value| done(jobs[number], value))
                && number < failed.fetch_min(number, Ordering::Relaxed)
            {
                result = Err(failure);
            }
        }
    });
    result
}

/// CPU time of this thread so far, in nanoseconds; if the system does not tell, the time since `since`.
pub fn thread_cpu_ns(since: Instant) -> u64 {
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let first = text.split_whitespace().next().and_then(|number| number.parse().ok());
    first.unwrap_or_else(|| since.elapsed().as_nanos() as u64)
}

/// Where a setup is kept for later examination, if the program panics in its run.
pub enum Keep<'a> {
    At(&'a Path),
    /// Among the temporary files.
    Aside,
    /// It is stored at this place already.
    Stored(&'a str),
}

/// Runs `body`, a run of `setup`. If the program panics there, that is our fault: keeps the setup, and says how to run
/// it again.
pub fn guarded<T>(setup: &Setup, keep: Keep, body: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    let payload = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(result) => return result,
        Err(payload) => payload,
    };
    let path = match keep {
        Keep::At(path) => path.to_path_buf(),
        Keep::Aside => std::env::temp_dir().join(format!("fairground-broken-{}.json", &setup.hash()[..12])),
        Keep::Stored(path) => PathBuf::from(path),
    };
    let stored = match keep {
        Keep::Stored(_) => Ok(()),
        _ => store_broken(setup, &path),
    };
    let again = match stored {
        Ok(()) => format!("this command runs it again: fairground replay {}", path.display()),
        Err(error) => format!("its setup could not be stored in {}: {error}", path.display()),
    };
    Err(Failure::Ours(format!("a run broke off, by a fault of ours: {}; {again}", words(payload.as_ref()))))
}

fn store_broken(setup: &Setup, path: &Path) -> io::Result<()> {
    write_file_and_folders(path, Record::new(setup.clone(), None, 0).to_json())
}

fn words(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<String>().cloned();
    text.or_else(|| payload.downcast_ref::<&str>().map(|text| text.to_string()))
        .unwrap_or_else(|| "no words".to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use lab::experiment::Job;
    use std::sync::Mutex;

    fn jobs(count: usize) -> Vec<Job> {
        (0..count).map(|point| Job { table: 0, point, arm: 0, iteration: 0 }).collect()
    }

    fn patient() -> Patience {
        Patience(Arc::new(AtomicBool::new(false)))
    }

    #[test]
    fn every_job_is_done_once() {
        let mut done = Vec::new();
        let work = |job: &Job, _: &dyn Fn() -> bool| Ok(Some(job.point * 2));
        let keep = |job: Job, twice| {
            done.push((job.point, twice));
            Ok(())
        };
        execute(&jobs(100), 4, &patient(), work, keep).unwrap();
        done.sort_unstable();
        assert_eq!(done, (0..100).map(|point| (point, point * 2)).collect::<Vec<_>>());
    }

    #[test]
    fn the_first_failure_ends_the_batch() {
        let started = Mutex::new(0);
        let work = |job: &Job, _: &dyn Fn() -> bool| {
            *started.lock().unwrap() += 1;
            if job.point == 3 { Err(Failure::Mistake("three".to_string())) } else { Ok(Some(())) }
        };
        let ended = execute(&jobs(100_000), 1, &patient(), work, |_, ()| Ok(()));
        assert!(matches!(ended, Err(Failure::Mistake(message)) if message == "three"));
        assert!(*started.lock().unwrap() < 100_000);
    }

    #[test]
    fn of_several_failures_the_first_jobs_is_told() {
        // The second job fails at once; the first fails only when it knows of that.
        for _ in 0..20 {
            let second_is_out = AtomicBool::new(false);
            let work = |job: &Job, give_up: &dyn Fn() -> bool| -> Result<Option<()>, Failure> {
                match job.point {
                    0 => {
                        while !second_is_out.load(Ordering::Relaxed) {
                            thread::yield_now();
                        }
                    }
                    1 => {}
                    _ => return Ok((!give_up()).then_some(())),
                }
                second_is_out.store(true, Ordering::Relaxed);
                assert!(job.point != 0 || !give_up(), "what comes later ends nothing before it");
                Err(Failure::Mistake(job.point.to_string()))
            };
            let ended = execute(&jobs(100), 2, &patient(), work, |_, ()| Ok(()));
            assert!(matches!(ended, Err(Failure::Mistake(message)) if message == "0"));
        }
    }

    #[test]
    fn lost_patience_keeps_what_is_done() {
        let patience = patient();
        let mut done = 0;
        let work = |job: &Job, give_up: &dyn Fn() -> bool| {
            if job.point == 5 {
                patience.0.store(true, Ordering::Relaxed);
            }
            Ok((!give_up()).then_some(()))
        };
        let keep = |_, ()| {
            done += 1;
            Ok(())
        };
        execute(&jobs(100), 1, &patience, work, keep).unwrap();
        assert_eq!(done, 5);
    }

    #[test]
    fn a_fault_of_ours_says_how_to_see_it_again() {
        let mut draft = lab::experiment::Draft::default();
        draft.machine_option("core-i7-3770");
        draft.workload_option("pipetest").unwrap();
        draft.arm_options(&["v4.15".to_string()], true).unwrap();
        let experiment = draft.resolve(lab::experiment::Purpose::Watch, &crate::files::Disk).unwrap();
        let setup = experiment.setup(&experiment.jobs()[0]);
        let path = std::env::temp_dir().join(format!("fairground-test-{}.json", std::process::id()));
        let failure = guarded::<()>(&setup, Keep::At(&path), || panic!("the sky fell")).unwrap_err();
        let message = failure.message().unwrap();
        let again = format!("the sky fell; this command runs it again: fairground replay {}", path.display());
        assert!(message.contains(&again), "{message}");
        let record = Record::parse(&fs::read_to_string(&path).unwrap(), "x").unwrap();
        assert_eq!((record.setup, record.outcome), (setup, None));
        fs::remove_file(&path).unwrap();
    }
}
