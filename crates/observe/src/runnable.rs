//! How many tasks each CPU has, at the times of the changes.
//!
//! An event tells the count that the simulation has when it executes the event's path. It executes paths as a whole, one
//! after the other, so of two changes of one CPU's count the one with the later time may come first: sorted by time, the
//! counts that events tell would jump back and forth. What an event *changes* does not depend on the order. So the
//! changes are taken from the stream as it comes, and added up again in the order of time.

use sched::trace::Event;
use units::{CpuId, PerCpu};

pub(crate) struct Runnable {
    /// As the stream told it last.
    told: PerCpu<u32>,
    /// The sum of the changes. Below zero while a task has gone whose wakeup has a later time (docs/statistics.md).
    sum: PerCpu<i64>,
}

impl Runnable {
    /// No CPU has a task.
    pub fn new(nr_cpus: usize) -> Runnable {
        Runnable { told: PerCpu::from_fn(nr_cpus, |_| 0), sum: PerCpu::from_fn(nr_cpus, |_| 0) }
    }

    /// What an event changes about which CPU's count, if it tells a count. For every event, as it comes.
    pub fn change(&mut self, event: &Event) -> Option<(CpuId, i64)> {
        let (Event::NrRunning { cpu, nr_running } | Event::SchedUpdateNrRunning { cpu, nr_running, .. }) = *event
        else {
            return None;
        };
        let before = std::mem::replace(&mut self.told[cpu], nr_running);
        Some((cpu, i64::from(nr_running) - i64::from(before)))
    }

    /// The count after that change. In the order of time.
    pub fn count(&mut self, cpu: CpuId, change: i64) -> u32 {
        self.sum[cpu] += change;
        u32::try_from(self.sum[cpu].max(0)).expect("no more tasks than there are")
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use units::Ns;

    pub const CPU: CpuId = CpuId(0);

    /// Eight tasks of CPU 0 sleep within 80 ns. A path of another CPU that woke a ninth one then, at 35 ns, was executed
    /// before them.
    pub fn stream() -> Vec<(Ns, CpuId, Event)> {
        let told = |nr_running| Event::NrRunning { cpu: CPU, nr_running };
        let mut stream = vec![(Ns(0), CPU, told(8)), (Ns(35), CpuId(1), told(9))];
        stream.extend((1..=8).map(|i| (Ns(10 * i), CPU, told(9 - i as u32))));
        stream
    }

    #[test]
    fn changes_add_up_in_the_order_of_time() {
        let mut runnable = Runnable::new(2);
        let stream = stream();
        let mut changes: Vec<(Ns, (CpuId, i64))> =
            stream.iter().map(|(time, _, event)| (*time, runnable.change(event).expect("a count"))).collect();
        changes.sort_by_key(|(time, _)| *time);
        let counts: Vec<u32> = changes.into_iter().map(|(_, (cpu, change))| runnable.count(cpu, change)).collect();
        assert_eq!(counts, [8, 7, 6, 5, 6, 5, 4, 3, 2, 1]);
    }

    #[test]
    fn a_task_that_has_gone_before_it_came_is_not_counted() {
        let mut runnable = Runnable::new(1);
        assert_eq!([-1, 1, 1].map(|change| runnable.count(CPU, change)), [0, 0, 1]);
    }
}
