//! A script as a list for a program that plays it on a real kernel: loops are counted, names resolved, and each task
//! and step has a line.
//!
//! ```text
//! pipes 2
//! task hog0 0 1 /g - 0 -5 0 0 0 0 0 0 0
//! step spin 10100000000
//! ```
//!
//! After `task` come its name, time in ns, CPUs (`-`: any), group and session (`-`: none), then its attributes as
//! sched_setattr() takes them: policy, nice, priority, flags, runtime, deadline, period in ns, lower and upper clamp. A
//! line `process NAME` after it makes the task a thread of that process. Steps are those of the script; `again TO
//! TIMES` ends a loop that begins with the task's step TO; pipes are numbers.

use super::{Script, Step, Task};
use sched::attr::{ClampRequest, SchedAttr};
use sched::sched::Policy;
use sim::program::AddressSpace;
use std::fmt::Write;

/// Flags of sched_setattr(), uapi/linux/sched.h.
const RESET_ON_FORK: u64 = 0x01;
const RECLAIM: u64 = 0x02;
const KEEP_ALL: u64 = 0x18;
const UTIL_CLAMP_MIN: u64 = 0x20;
const UTIL_CLAMP_MAX: u64 = 0x40;

impl Script {
    /// The list.
    ///
    /// # Errors
    /// The line and name of a task that does what a user-space player cannot: what only the kernel does, touching
    /// memory at a rate, or taking a mutex (the player of scripts does not).
    pub fn listing(&self) -> Result<String, (u32, String)> {
        let mut text = format!("pipes {}\n", self.pipes.len());
        for task in &self.tasks {
            self.list(task, &mut text).map_err(|what| (task.place.0, format!("`{}`, {what}", task.name)))?;
        }
        Ok(text)
    }

    fn list(&self, task: &Task, text: &mut String) -> Result<(), &'static str> {
        let process = match task.memory {
            AddressSpace::Own => None,
            AddressSpace::Joined(process) => Some(process),
            _ => return Err("a kernel thread"),
        };
        if process.is_some_and(|_| !self.begins_with_its_process(task)) {
            return Err(
                "a thread that begins at another time, in another group or in another session than its process",
            );
        }
        let cpus = task.cpus.as_ref().map_or("-".to_string(), |cpus| cpus.list());
        let group = task.group.as_deref().unwrap_or("-");
        let session = task.session.map_or("-", |session| &self.sessions[session as usize]);
        let _ = writeln!(text, "task {} {} {cpus} {group} {session} {}", task.name, task.at.0, attributes(&task.attr));
        if let Some(process) = process {
            let _ = writeln!(text, "process {}", self.processes[process as usize]);
        }
        for step in &task.steps[..] {
            let _ = match *step {
                Step::Run(time) => writeln!(text, "step run {}", time.0),
                Step::Spin(time) => writeln!(text, "step spin {}", time.0),
                Step::Sleep(time) => writeln!(text, "step sleep {}", time.0),
                Step::Until(time) => writeln!(text, "step until {}", time.0),
                Step::Every(time) => writeln!(text, "step every {}", time.0),
                Step::Yield => writeln!(text, "step yield"),
                Step::Setsid => writeln!(text, "step setsid"),
                Step::Exec => return Err("which executes another program"),
                Step::Autogroup(nice) => writeln!(text, "step autogroup {nice}"),
                Step::Enter(place) => {
                    let path = place.map_or("/", |place| &self.groups[place as usize].path);
                    writeln!(text, "step enter {path}")
                }
                Step::Cpus(place) => writeln!(text, "step cpus {}", self.affinities[place as usize].cpus.list()),
                Step::Nice(nice) => writeln!(text, "step nice {nice}"),
                Step::Attr(attr) => writeln!(text, "step attr {}", attributes(&attr)),
                Step::Read(pipe) => writeln!(text, "step read {pipe}"),
                Step::Write(pipe) => writeln!(text, "step write {pipe}"),
                Step::Again { to, times } => writeln!(text, "step again {to} {times}"),
                // The machine decides how long such work takes, and an emulated machine has no speed of its own.
                Step::Work(_) => return Err("which works at a core's speed"),
                Step::Io(_) => return Err("which reads a block device"),
                Step::CondResched | Step::MightSleep => return Err("which does what only the kernel does"),
                Step::Touch { .. } => return Err("which touches memory at a rate"),
                Step::Lock(_) | Step::Unlock(_) => return Err("which takes a mutex"),
            };
        }
        Ok(())
    }

    /// Whether a thread begins when and where the first task of its process does; that task creates it.
    fn begins_with_its_process(&self, task: &Task) -> bool {
        let first = self.tasks.iter().find(|other| other.memory == task.memory).expect("a task of the script");
        (task.at, &task.group, task.session) == (first.at, &first.group, first.session)
    }
}

fn attributes(attr: &SchedAttr) -> String {
    // uapi/linux/sched.h.
    let policy = match attr.sched_policy {
        Policy::Normal => 0,
        Policy::Fifo => 1,
        Policy::Rr => 2,
        Policy::Batch => 3,
        Policy::Idle => 5,
        Policy::Deadline => 6,
        Policy::Stop => unreachable!("no script names it"),
    };
    let clamp = |request: ClampRequest, flag: u64| match request {
        ClampRequest::Keep => (0, 0),
        ClampRequest::Reset => (flag, i64::from(u32::MAX)),
        ClampRequest::Set(value) => (flag, value.into()),
    };
    let (min_flag, min) = clamp(attr.sched_util_min, UTIL_CLAMP_MIN);
    let (max_flag, max) = clamp(attr.sched_util_max, UTIL_CLAMP_MAX);
    let when = |asked: bool, flag: u64| if asked { flag } else { 0 };
    let asked = attr.sched_flags;
    let flags =
        when(asked.reset_on_fork, RESET_ON_FORK) | when(asked.reclaim, RECLAIM) | when(asked.keep_all, KEEP_ALL);
    format!(
        "{policy} {} {} {} {} {} {} {min} {max}",
        attr.sched_nice,
        attr.sched_priority,
        flags | min_flag | max_flag,
        attr.sched_runtime,
        attr.sched_deadline,
        attr.sched_period
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_becomes_a_list() {
        let text = "task a nice=-5 slice=3ms cpus=0-1,3 group=/g session=s at=2ms: 2 x (run 1ms; write p; read q); clamp 100 none\n\
                    task b policy=deadline/1ms/5ms: until 3ms; every 2ms; spin 4ms; enter /; autogroup -3; yield; setsid; cpus 0,2-3; nice -7";
        let expected = "pipes 2\n\
                        task a 2000000 0-1,3 /g s 0 -5 0 0 3000000 0 0 0 0\n\
                        step run 1000000\nstep write 0\nstep read 1\nstep again 0 2\n\
                        step attr 0 0 0 120 0 0 0 100 4294967295\n\
                        task b 0 - - - 6 0 0 0 1000000 5000000 5000000 0 0\n\
                        step until 3000000\nstep every 2000000\nstep spin 4000000\nstep enter /\nstep autogroup -3\n\
                        step yield\nstep setsid\nstep cpus 0,2-3\nstep nice -7\n";
        assert_eq!(Script::parse(text, 1).unwrap().listing().unwrap(), expected);
        let threads = Script::parse("task t count=2 process=p: yield", 1).unwrap().listing().unwrap();
        assert!(threads.ends_with("task t1 0 - - - 0 0 0 0 0 0 0 0 0\nprocess p\nstep yield\n"), "{threads}");
        for (text, refused) in [
            ("task a process=p: yield\ntask b process=p at=1ms: yield", "`b`, a thread that begins at another time"),
            ("task a: io 1ms", "`a`, which reads a block device"),
            ("task a: exec", "`a`, which executes another program"),
            ("task a kind=kthread: run 1ms", "`a`, a kernel thread"),
            ("memory m 1MB\ntask a: touch m 1MB/s", "`a`, which touches memory"),
        ] {
            let (line, found) = Script::parse(text, 7).unwrap().listing().unwrap_err();
            assert!(found.starts_with(refused) && line >= 7, "{line}: {found}");
        }
    }
}
