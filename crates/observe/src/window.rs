//! A cut out of a stream: the events of `from..to`, preceded by the state they start from.

use crate::STRAGGLER;
use crate::runnable::Runnable;
use crate::tasks::Tasks;
use sched::sched::{TaskId, TaskState};
use sched::trace::{Context, Event, Sink};
use units::{CpuId, Ns, PerCpu};

/// Passes on what happens in `from..to`. Earlier events are summed up: when the window opens, living tasks are
/// announced, and each CPU begins, at `from`, with a switch to the task that runs there, its count of runnable tasks,
/// its idle state and its frequency. A CPU without events for [`STRAGGLER`] after `from` begins late in the stream, but
/// still with the time `from`. A wakeup before the window is lost.
pub struct Window<S: Sink> {
    sink: S,
    from: Ns,
    to: Ns,
    tasks: Tasks,
    before: PerCpu<Before>,
    runnable: Runnable,
    /// The latest time of any event.
    newest: Ns,
    stage: Stage,
    /// The context of the next event.
    context: Option<Context>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    Before,
    /// Some CPUs may still pass events from before the window.
    Opening,
    Inside,
    After,
}

#[derive(Clone, Debug, Default)]
struct Before {
    opened: bool,
    nr_running: Option<u32>,
    /// `Some(None)`: it has left its idle state.
    idle: Option<Option<u8>>,
    khz: Option<u32>,
}

impl<S: Sink> Window<S> {
    pub fn new(sink: S, nr_cpus: usize, from: Ns, to: Ns) -> Window<S> {
        assert!(from < to, "the window from {from} to {to} is empty");
        Window {
            sink,
            from,
            to,
            tasks: Tasks::new(nr_cpus),
            before: PerCpu::from_fn(nr_cpus, |_| Before::default()),
            runnable: Runnable::new(nr_cpus),
            newest: Ns::ZERO,
            stage: Stage::Before,
            context: None,
        }
    }

    /// The listener.
    pub fn sink(&self) -> &S {
        &self.sink
    }

    /// Returns the listener. If the run ended before `from`, it has heard no event.
    pub fn finish(mut self) -> S {
        if self.stage == Stage::Opening {
            self.open_all();
        }
        self.sink
    }

    fn announce(&mut self) {
        for (task, who) in self.tasks.iter() {
            self.sink.task(task, who.pid, &who.comm, who.prio);
        }
    }

    fn open(&mut self, cpu: CpuId) {
        let next = self.tasks.running(cpu);
        let (from, before) = (self.from, &mut self.before[cpu]);
        before.opened = true;
        if let Some(khz) = before.khz {
            self.sink.event(from, cpu, &Event::CpuFrequency { khz });
        }
        if next.is_some() {
            let event = Event::SchedSwitch { prev: None, prev_state: TaskState::Running, preempt: false, next };
            self.sink.event(from, cpu, &event);
        }
        if let Some(state) = before.idle {
            self.sink.event(from, cpu, &Event::CpuIdle { state });
        }
    }

    /// A count may be reported by another CPU than the one it is about, so all are passed on when the first CPU opens.
    fn open_counts(&mut self) {
        for (cpu, before) in self.before.iter() {
            if let Some(nr_running) = before.nr_running {
                self.sink.event(self.from, cpu, &Event::NrRunning { cpu, nr_running });
            }
        }
    }

    fn open_all(&mut self) {
        for cpu in (0..self.before.len()).map(CpuId::new) {
            if !self.before[cpu].opened {
                self.open(cpu);
            }
        }
        self.stage = Stage::Inside;
    }

    fn remember(&mut self, cpu: CpuId, event: &Event) {
        match *event {
            Event::NrRunning { cpu, nr_running } | Event::SchedUpdateNrRunning { cpu, nr_running, .. } => {
                self.before[cpu].nr_running = Some(nr_running);
                if self.stage != Stage::Before {
                    self.sink.event(self.from, cpu, &Event::NrRunning { cpu, nr_running });
                }
            }
            Event::CpuIdle { state } => self.before[cpu].idle = Some(state),
            Event::CpuFrequency { khz } => self.before[cpu].khz = Some(khz),
            _ => {}
        }
    }

    /// A count of runnable tasks as it is without what other CPUs, which are ahead, have done after the window.
    fn counted(&mut self, event: &Event) -> Option<Event> {
        let (cpu, change) = self.runnable.change(event)?;
        let nr_running = self.runnable.count(cpu, change);
        Some(match *event {
            Event::SchedUpdateNrRunning { change, .. } => Event::SchedUpdateNrRunning { cpu, change, nr_running },
            _ => Event::NrRunning { cpu, nr_running },
        })
    }

    fn advance(&mut self, time: Ns) {
        self.newest = self.newest.max(time);
        if self.stage == Stage::Before && self.newest >= self.from {
            self.stage = Stage::Opening;
            self.announce();
            self.open_counts();
        }
        if self.stage == Stage::Opening && self.newest > self.from + STRAGGLER {
            self.open_all();
        }
        if self.stage == Stage::Inside && self.newest > self.to + STRAGGLER {
            self.stage = Stage::After;
        }
    }
}

impl<S: Sink> Sink for Window<S> {
    fn context(&mut self, context: Context) {
        self.context = Some(context);
    }

    fn event(&mut self, time: Ns, cpu: CpuId, event: &Event) {
        self.advance(time);
        let context = self.context.take();
        if self.stage == Stage::After {
            return;
        }
        if time >= self.to {
            self.runnable.change(event);
            return;
        }
        let counted = self.counted(event);
        let event = counted.as_ref().unwrap_or(event);
        if time < self.from {
            self.remember(cpu, event);
        } else {
            if !self.before[cpu].opened {
                self.open(cpu);
            }
            if let Some(context) = context {
                self.sink.context(context);
            }
            self.sink.event(time, cpu, event);
        }
        self.tasks.passed(cpu, event);
    }

    fn task(&mut self, task: TaskId, pid: u32, comm: &str, prio: i32) {
        self.tasks.task(task, pid, comm, prio);
        if matches!(self.stage, Stage::Opening | Stage::Inside) {
            self.sink.task(task, pid, comm, prio);
        }
    }

    fn task_gone(&mut self, task: TaskId) {
        self.tasks.task_gone(task);
        if matches!(self.stage, Stage::Opening | Stage::Inside) {
            self.sink.task_gone(task);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Gantt;

    #[derive(Default)]
    struct Log(Vec<String>);

    impl Sink for Log {
        fn event(&mut self, time: Ns, cpu: CpuId, event: &Event) {
            let what = match event {
                Event::SchedSwitch { prev, next, .. } => {
                    format!("{:?} -> {:?}", prev.map(|task| task.0), next.map(|task| task.0))
                }
                Event::NrRunning { cpu, nr_running } => format!("{nr_running} on {cpu:?}"),
                other => format!("{other:?}"),
            };
            self.0.push(format!("{} {cpu:?} {what}", time.0));
        }

        fn task(&mut self, _task: TaskId, pid: u32, comm: &str, _prio: i32) {
            self.0.push(format!("{comm}/{pid}"));
        }

        fn task_gone(&mut self, task: TaskId) {
            self.0.push(format!("{task:?} gone"));
        }
    }

    fn switch(prev: Option<u32>, next: Option<u32>) -> Event {
        let (prev, next) = (prev.map(TaskId), next.map(TaskId));
        Event::SchedSwitch { prev, prev_state: TaskState::Interruptible, preempt: false, next }
    }

    const MS: u64 = 1_000_000;

    #[test]
    fn the_cut_begins_with_who_runs_where() {
        let mut window = Window::new(Log::default(), 3, Ns(10 * MS), Ns(30 * MS));
        window.task(TaskId(0), 100, "gone-early", 120);
        window.task(TaskId(1), 101, "ping", 120);
        window.task(TaskId(2), 102, "pong", 120);
        window.event(Ns(1), CpuId(0), &Event::CpuFrequency { khz: 2_300_000 });
        window.event(Ns(2), CpuId(0), &switch(None, Some(0)));
        window.event(Ns(3), CpuId(0), &Event::NrRunning { cpu: CpuId(1), nr_running: 1 });
        window.event(Ns(4), CpuId(2), &Event::CpuIdle { state: Some(1) });
        window.event(Ns(5), CpuId(0), &switch(Some(0), Some(1)));
        window.task_gone(TaskId(0));
        // CPU 1 is ahead of CPU 0, which then switches at a time still before the window.
        window.event(Ns(10 * MS + 7), CpuId(1), &switch(None, Some(2)));
        window.event(Ns(10 * MS - 9), CpuId(0), &switch(Some(1), None));
        window.task(TaskId(0), 103, "late", 120);
        window.event(Ns(10 * MS + 8), CpuId(0), &switch(None, Some(0)));
        window.event(Ns(25 * MS), CpuId(1), &switch(Some(2), None));
        window.event(Ns(30 * MS), CpuId(1), &switch(None, Some(2)));
        window.event(Ns(30 * MS - 1), CpuId(0), &switch(Some(0), None));
        // CPU 2 might still pass something.
        window.event(Ns(41 * MS), CpuId(0), &switch(None, Some(0)));
        window.task_gone(TaskId(0));
        assert_eq!(
            window.finish().0,
            [
                "ping/101",
                "pong/102",
                "10000000 cpu1 1 on cpu1",
                "10000007 cpu1 None -> Some(2)",
                "late/103",
                "10000000 cpu0 CpuFrequency { khz: 2300000 }",
                "10000008 cpu0 None -> Some(0)",
                "10000000 cpu2 CpuIdle { state: Some(1) }",
                "25000000 cpu1 Some(2) -> None",
                "29999999 cpu0 Some(0) -> None",
            ]
        );
    }

    #[test]
    fn counts_at_both_ends_are_of_their_times_though_other_cpus_are_ahead() {
        let count = |nr_running| Event::NrRunning { cpu: CpuId(0), nr_running };
        let mut window = Window::new(Log::default(), 2, Ns(10 * MS), Ns(20 * MS));
        window.event(Ns(1), CpuId(0), &count(2));
        window.event(Ns(10 * MS + 7), CpuId(1), &count(3));
        window.event(Ns(10 * MS - 9), CpuId(0), &count(2));
        window.event(Ns(20 * MS + 7), CpuId(1), &count(9));
        window.event(Ns(20 * MS - 9), CpuId(0), &count(8));
        let passed = ["10000000 cpu0 2", "10000007 cpu1 3", "10000000 cpu0 2", "19999991 cpu0 1"];
        assert_eq!(window.finish().0, passed.map(|passed| format!("{passed} on cpu0")));
    }

    #[test]
    fn a_task_that_runs_all_the_time_is_seen_though_it_passes_nothing() {
        let mut window = Window::new(Gantt::new(2, Ns(10 * MS), Ns(20 * MS), 10), 2, Ns(10 * MS), Ns(20 * MS));
        window.task(TaskId(1), 101, "hog", 120);
        window.task(TaskId(2), 102, "ping", 120);
        window.event(Ns(0), CpuId(0), &switch(None, Some(1)));
        window.event(Ns(12 * MS), CpuId(1), &switch(None, Some(2)));
        window.event(Ns(15 * MS), CpuId(1), &switch(Some(2), None));
        let picture = window.finish().finish().picture();
        assert_eq!(picture, "0 AAAAAAAAAA\n1 ..BBB.....\nA=hog/101 B=ping/102\n");
    }

    #[test]
    fn a_run_that_ends_before_the_window_leaves_it_empty() {
        let mut window = Window::new(Log::default(), 1, Ns(10), Ns(20));
        window.task(TaskId(1), 101, "ping", 120);
        window.event(Ns(5), CpuId(0), &switch(None, Some(1)));
        assert!(window.finish().0.is_empty());
    }
}
