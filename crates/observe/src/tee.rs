//! One stream, several listeners.

use sched::sched::TaskId;
use sched::trace::{Context, Event, Sink};
use units::{CpuId, Ns};

/// Passes everything to each listener, in order.
pub struct Tee<'a>(pub Vec<&'a mut dyn Sink>);

impl Sink for Tee<'_> {
    fn context(&mut self, context: Context) {
        for sink in &mut self.0 {
            sink.context(context);
        }
    }

    fn event(&mut self, time: Ns, cpu: CpuId, event: &Event) {
        for sink in &mut self.0 {
            sink.event(time, cpu, event);
        }
    }

    fn task(&mut self, task: TaskId, pid: u32, comm: &str, prio: i32) {
        for sink in &mut self.0 {
            sink.task(task, pid, comm, prio);
        }
    }

    fn task_gone(&mut self, task: TaskId) {
        for sink in &mut self.0 {
            sink.task_gone(task);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default, PartialEq, Debug)]
    struct Log(Vec<String>);

    impl Sink for Log {
        fn event(&mut self, time: Ns, cpu: CpuId, event: &Event) {
            self.0.push(format!("{time:?} {cpu:?} {event:?}"));
        }

        fn task(&mut self, task: TaskId, pid: u32, comm: &str, prio: i32) {
            self.0.push(format!("{task:?} {pid} {comm} {prio}"));
        }

        fn task_gone(&mut self, task: TaskId) {
            self.0.push(format!("{task:?} gone"));
        }
    }

    #[test]
    fn every_listener_hears_everything() {
        let (mut one, mut two) = (Log::default(), Log::default());
        let mut tee = Tee(vec![&mut one, &mut two]);
        tee.task(TaskId(1), 10, "ping", 120);
        tee.event(Ns(5), CpuId(0), &Event::CpuIdle { state: Some(1) });
        tee.task_gone(TaskId(1));
        assert_eq!(one.0, ["TaskId(1) 10 ping 120", "5ns cpu0 CpuIdle { state: Some(1) }", "TaskId(1) gone"]);
        assert_eq!(one, two);
    }
}
