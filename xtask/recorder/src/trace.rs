//! Passes the guest's trace to the listener that also hears the simulation: lines of ftrace become events again.

use observe::{PerTask, TaskFigures};
use sched::sched::{TaskId, TaskState};
use sched::trace::{Event, Sink};
use std::collections::BTreeMap;
use units::{CpuId, Ns};

/// How a kernel's `sched_switch` names the state of the task that leaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum States {
    /// R: it can run on. S: it sleeps.
    AsTheyAre,
    /// One too high: S is a task that can run on, D one that sleeps. As read in v4.15's and v4.16's `__trace_sched_switch_state()`, and as they
    /// trace; v4.5 and v6.1 trace as above.
    OneTooHigh,
}

impl States {
    /// Of a kernel whose version begins like `4.15.0`.
    pub fn of(version: &str) -> States {
        let mut parts = version.split(['.', '-']).map_while(|part| part.parse::<u32>().ok());
        match (parts.next(), parts.next()) {
            (Some(4), Some(15..=16)) => States::OneTooHigh,
            _ => States::AsTheyAre,
        }
    }

    /// Whether who is in this state can run on. A task that was preempted in the kernel always has a plus sign.
    fn runnable(self, state: &str) -> bool {
        let running = match self {
            States::AsTheyAre => "R",
            States::OneTooHigh => "S",
        };
        state == running || state.ends_with('+')
    }
}

/// The figures of the tasks of these names.
///
/// # Errors
/// A line that is no event, or events that were lost.
pub fn figures(
    text: &str,
    states: States,
    names: &[String],
    nr_cpus: usize,
) -> Result<BTreeMap<String, TaskFigures>, String> {
    if let Some(lost) = text.lines().find(|line| line.contains("LOST")) {
        return Err(format!("the trace is not whole: {}", lost.trim()));
    }
    let lines: Vec<Line> = text.lines().filter(|line| is_event(line)).map(Line::read).collect::<Result<_, _>>()?;
    let mut sink = PerTask::new(nr_cpus);
    // A task gets its name only after the fork; its whole life is reported under that final name.
    let mut comm: BTreeMap<u32, &str> = BTreeMap::new();
    for line in &lines {
        for (pid, name) in line.named() {
            if names.iter().any(|known| known == name) || !comm.contains_key(&pid) {
                comm.insert(pid, name);
            }
        }
    }
    for (pid, name) in comm {
        sink.task(TaskId(pid), pid, name, 120);
    }
    for line in &lines {
        if let Some(event) = line.event(states)? {
            sink.event(line.time, line.cpu, &event);
        }
    }
    Ok(sink.finish().into_iter().filter(|(name, _)| names.contains(name)).collect())
}

fn is_event(line: &str) -> bool {
    !line.starts_with('#') && line.contains(": sched_")
}

/// `hog0-159 [001] d..2. 6.471527: sched_switch: prev_comm=... ==> next_comm=...`
struct Line<'a> {
    cpu: CpuId,
    time: Ns,
    event: &'a str,
    rest: &'a str,
}

impl<'a> Line<'a> {
    fn read(line: &'a str) -> Result<Line<'a>, String> {
        let read = || {
            // The line begins with the task's name, which may contain anything.
            let (head, event) = line.split_once(": sched_")?;
            let (event, rest) = event.split_once(": ")?;
            let (head, time) = head.rsplit_once(' ')?;
            let (_, cpu) = head.rsplit_once('[')?;
            let (cpu, _) = cpu.split_once(']')?;
            let (seconds, micro) = time.trim().split_once('.')?;
            let seconds: u64 = seconds.parse().ok()?;
            let micro: u64 = micro.parse().ok()?;
            let time = Ns(seconds * 1_000_000_000 + micro * 1_000);
            Some(Line { cpu: CpuId::new(cpu.parse().ok()?), time, event, rest })
        };
        read().ok_or_else(|| format!("found `{}` in the trace; expected an event of the scheduler", line.trim()))
    }

    /// The value of `key=`, up to the next space.
    fn word(&self, key: &str) -> Option<&'a str> {
        let (_, value) = self.rest.split_once(key)?;
        Some(value.split(' ').next().unwrap_or_default())
    }

    fn number(&self, key: &str) -> Result<u32, String> {
        let value = self.word(key).and_then(|text| text.parse().ok());
        value.ok_or_else(|| format!("found sched_{}: {}; expected {key} and a number", self.event, self.rest))
    }

    /// Process ids and names that the line mentions.
    fn named(&self) -> Vec<(u32, &'a str)> {
        let pair = |prefix: &str| {
            let (_, from) = self.rest.split_once(&format!("{prefix}comm="))?;
            let (name, from) = from.split_once(&format!(" {prefix}pid="))?;
            Some((from.split(' ').next()?.parse().ok()?, name))
        };
        match self.event {
            "switch" => ["prev_", "next_"].into_iter().filter_map(pair).collect(),
            _ => pair("").into_iter().collect(),
        }
    }

    fn event(&self, states: States) -> Result<Option<Event>, String> {
        let task = |key: &str| Ok::<_, String>(TaskId(self.number(key)?));
        let cpu = |key: &str| Ok::<_, String>(CpuId::new(self.number(key)? as usize));
        let runs = |pid: u32| Some(TaskId(pid)).filter(|_| pid != 0);
        Ok(Some(match self.event {
            "switch" => {
                let state = self.word("prev_state=").unwrap_or_default();
                Event::SchedSwitch {
                    prev: runs(self.number("prev_pid=")?),
                    prev_state: if states.runnable(state) { TaskState::Running } else { TaskState::Interruptible },
                    preempt: state.ends_with('+'),
                    next: runs(self.number("next_pid=")?),
                }
            }
            "waking" => Event::SchedWaking { task: task(" pid=")?, target_cpu: cpu("target_cpu=")? },
            "wakeup" => Event::SchedWakeup { task: task(" pid=")?, target_cpu: cpu("target_cpu=")? },
            "wakeup_new" => Event::SchedWakeupNew { task: task(" pid=")?, target_cpu: cpu("target_cpu=")? },
            "migrate_task" => Event::SchedMigrateTask {
                task: task(" pid=")?,
                orig_cpu: cpu("orig_cpu=")?,
                dest_cpu: cpu("dest_cpu=")?,
            },
            _ => return Ok(None),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "\
# tracer: nop
            init-1       [000] d..2.     5.000100: sched_wakeup_new: comm=init pid=70 prio=120 target_cpu=001
          <idle>-0       [001] d..2.     5.000150: sched_switch: prev_comm=swapper/1 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=init next_pid=70 next_prio=120
            hog0-70      [001] d..2.     5.000400: sched_switch: prev_comm=hog0 prev_pid=70 prev_prio=120 prev_state=S ==> next_comm=swapper/1 next_pid=0 next_prio=120
          <idle>-0       [001] d.h2.     5.100000: sched_waking: comm=hog0 pid=70 prio=120 target_cpu=001
          <idle>-0       [001] d.h2.     5.100010: sched_migrate_task: comm=hog0 pid=70 prio=120 orig_cpu=1 dest_cpu=0
          <idle>-0       [000] dNh2.     5.100020: sched_wakeup: comm=hog0 pid=70 prio=120 target_cpu=000
          <idle>-0       [000] d..2.     5.100030: sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=hog0 next_pid=70 next_prio=120
            hog0-70      [000] d..2.     5.104030: sched_switch: prev_comm=hog0 prev_pid=70 prev_prio=120 prev_state=R+ ==> next_comm=rcu sched x next_pid=12 next_prio=120
";

    #[test]
    fn lines_become_the_figures_of_tasks() {
        let all = figures(TRACE, States::AsTheyAre, &["hog0".to_string()], 2).unwrap();
        assert_eq!(all.len(), 1);
        let hog = &all["hog0"];
        assert_eq!((hog.wakeups, hog.migrations_in_wakeup, hog.voluntary, hog.involuntary), (1, 1, 1, 1));
        assert_eq!(hog.slices, [Ns(250_000), Ns(4_000_000)]);
        assert_eq!(hog.wake_latencies, [Ns(50_000), Ns(30_000)]);
        assert_eq!(hog.run.len(), 2);
    }

    #[test]
    fn some_kernels_name_states_one_too_high() {
        for (version, states) in [
            ("4.5.0", States::AsTheyAre),
            ("4.15.0-20-generic", States::OneTooHigh),
            ("6.1.0-56-amd64", States::AsTheyAre),
            ("6.12.117+deb12-amd64", States::AsTheyAre),
        ] {
            assert_eq!(States::of(version), states, "{version}");
        }
        let high = TRACE.replace("prev_state=S ", "prev_state=D ").replace("prev_state=R ", "prev_state=S ");
        let of = |text: &str, states| {
            let all = figures(text, states, &["hog0".to_string()], 2).unwrap();
            (all["hog0"].voluntary, all["hog0"].involuntary)
        };
        assert_eq!(of(&high, States::OneTooHigh), of(TRACE, States::AsTheyAre));
        // A switch to the idle task in TASK_RUNNING, which prints as S there.
        let turn = TRACE.replace("prev_state=R+", "prev_state=S");
        assert_eq!((of(&turn, States::OneTooHigh), of(&turn, States::AsTheyAre)), ((0, 2), (2, 0)));
    }

    #[test]
    fn a_trace_that_is_not_whole_is_refused() {
        let lost = format!("{TRACE}CPU:1 [LOST 17 EVENTS]\n");
        assert!(figures(&lost, States::AsTheyAre, &[], 2).unwrap_err().contains("LOST 17"));
        assert!(
            figures("x [one] 1: sched_switch: y", States::AsTheyAre, &[], 2).unwrap_err().contains("expected an event")
        );
    }
}
