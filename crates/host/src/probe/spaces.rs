//! How much longer a switch takes between two processes than between two threads of one: the address space changes, and
//! the translation buffer must be filled anew.

use super::pair::{ROUNDS, WARM};
use super::{Bench, Figure, Findings};
use crate::Error;
use crate::pinning::Pinned;
use crate::statistics::{Spread, median};
use rustix::io::{Errno, read, write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::Instant;

/// The bursts are divided into so many parts; their differences give the range.
const PARTS: usize = 8;

/// The word for the child.
pub const ANSWER: &str = "answer";

pub fn run(bench: &Bench) -> Result<Findings, Error> {
    let cpu = bench.computer.allowed[0];
    let _pinned = Pinned::to(cpu)?;
    let mut findings = Findings::default();
    match both(bench, cpu)? {
        Some(Bursts { threads, processes }) => {
            let ran = format!("two threads on CPU {cpu} that send each other a byte over a Unix socket: a round");
            findings.add("socket_pair.threads", "ns", &threads, ran);
            findings.add("socket_pair.processes", "ns", &processes, "the same between two processes, by turns with it");
            findings.figures.extend(longer(&threads, &processes).map(|spread| Figure {
                name: "switch.processes".to_string(),
                unit: "ns",
                spread,
                ran: format!("half of what a round over a Unix socket on CPU {cpu} takes longer between two processes than between two threads"),
            }));
        }
        None => {
            findings.unseen.push("switches between processes: the other one ended before it was told to".to_string())
        }
    }
    Ok(findings)
}

/// How much longer each of the two switches of a round takes between processes. It is the median difference between a
/// burst and the one before it, because a disturbance of either makes the difference larger or smaller. The range is
/// that of the medians of several parts.
fn longer(threads: &[f64], processes: &[f64]) -> Option<Spread> {
    let differences: Vec<f64> =
        threads.iter().zip(processes).map(|(threads, processes)| (processes - threads) / 2.0).collect();
    let value = median(&differences)?;
    let parts = differences.chunks(differences.len().div_ceil(PARTS)).filter_map(median);
    let (low, high) = parts.fold((value, value), |(low, high), part| (low.min(part), high.max(part)));
    // A difference of zero or less was not visible.
    Some(Spread { value, low, high, bursts: differences.len() }.map(|ns| ns.max(0.0)))
}

/// Nanoseconds per round trip of each burst.
#[derive(Default)]
struct Bursts {
    threads: Vec<f64>,
    processes: Vec<f64>,
}

/// The two kinds of burst alternate, so that slow changes do not enter the difference. `None` if one side went away.
fn both(bench: &Bench, cpu: usize) -> Result<Option<Bursts>, Error> {
    let failed = |error| Error::of_system("starting a process to switch to", error);
    let (to_thread, far) = UnixStream::pair().map_err(failed)?;
    let (to_process, theirs) = UnixStream::pair().map_err(failed)?;
    let theirs = OwnedFd::from(theirs);
    // The child is started on this CPU, and stays there. The command's own copies of the child's end are closed before
    // it is waited for.
    let mut child = bench
        .starter
        .command(&[ANSWER.to_string()])
        .stdin(theirs.try_clone().map_err(failed)?)
        .stdout(theirs)
        .spawn()
        .map_err(failed)?;
    let found = thread::scope(|scope| {
        let partner = scope.spawn(move || {
            let pinned = Pinned::to(cpu);
            answers(&far, &far);
            pinned.map(drop)
        });
        let mut bursts = Bursts::default();
        let mut there = true;
        for _ in 0..bench.effort.bursts {
            thread::sleep(bench.effort.pause);
            match (burst(&to_thread), burst(&to_process)) {
                (Some(threads), Some(processes)) => {
                    bursts.threads.push(threads);
                    bursts.processes.push(processes);
                }
                _ => {
                    there = false;
                    break;
                }
            }
        }
        // Either partner ends when its connection closes.
        drop((to_thread, to_process));
        let partner =
            partner.join().map_err(|_| Error::new("switching to a thread", "one that broke off", "none to"))?;
        partner.map(|()| there.then_some(bursts))
    });
    child.wait().map_err(failed)?;
    found
}

/// Nanoseconds per round trip; `None` if there is no answer any more.
fn burst(to: &UnixStream) -> Option<f64> {
    let round = || (send(to) && receive(to)).then_some(());
    (0..WARM).try_for_each(|_| round())?;
    let since = Instant::now();
    (0..ROUNDS).try_for_each(|_| round())?;
    Some(since.elapsed().as_nanos() as f64 / f64::from(ROUNDS))
}

fn send(to: impl AsFd) -> bool {
    loop {
        match write(&to, &[1]) {
            Err(Errno::INTR) => {}
            sent => return sent == Ok(1),
        }
    }
}

fn receive(from: impl AsFd) -> bool {
    loop {
        match read(&from, &mut [0u8; 1]) {
            Err(Errno::INTR) => {}
            received => return received == Ok(1),
        }
    }
}

/// The answering side, until this one ends.
fn answers(from: impl AsFd, to: impl AsFd) {
    while receive(&from) && send(&to) {}
}

/// The process that is switched to.
pub fn child() {
    answers(std::io::stdin(), std::io::stdout());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::computer::Computer;
    use crate::probe::Effort;
    use crate::starter::Starter;

    fn found(program: &str, words: &[&str]) -> Findings {
        let computer = Computer::this().unwrap();
        let starter = Starter { program: program.into(), words: words.iter().map(|word| word.to_string()).collect() };
        let bench = Bench { computer: &computer, placements: &[], effort: Effort::LEAST, starter: &starter };
        run(&bench).unwrap()
    }

    #[test]
    fn two_processes_answer_each_other() {
        // A program that copies its input to its output does what the child does.
        let found = found("/bin/sh", &["-c", "exec cat"]);
        assert_eq!(found.unseen, Vec::<String>::new());
        for name in ["socket_pair.threads", "socket_pair.processes", "switch.processes"] {
            let spread = found.figure(name).expect(name).spread;
            assert!(spread.low >= 0.0 && spread.bursts == Effort::LEAST.bursts, "{name}: {spread:?}");
        }
    }

    #[test]
    fn a_difference_is_that_of_most_bursts() {
        // Every third burst of the processes is disturbed, and every fourth of the threads.
        let disturbed =
            |burst: u32, of: u32| 9_000.0 + if burst.is_multiple_of(of) { 50_000.0 } else { f64::from(burst) };
        let threads: Vec<f64> = (0..80).map(|burst| disturbed(burst, 4)).collect();
        let processes: Vec<f64> = (0..80).map(|burst| disturbed(burst, 3) + 600.0).collect();
        let Spread { value, low, high, bursts } = longer(&threads, &processes).unwrap();
        assert_eq!((value, low, high, bursts), (300.0, 300.0, 300.0, 80));
        let Spread { value, low, high, .. } = longer(&processes, &threads).unwrap();
        assert_eq!((value, low, high), (0.0, 0.0, 0.0));
        assert_eq!(longer(&[], &[]), None);
    }

    #[test]
    fn a_process_that_ends_early_is_said() {
        let found = found("/bin/true", &[]);
        assert_eq!(found.figures, []);
        assert_eq!(found.unseen, ["switches between processes: the other one ended before it was told to"]);
    }
}
