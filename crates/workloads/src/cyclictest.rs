//! cyclictest: real-time threads that sleep until the next multiple of their interval and measure how late they wake.
//!
//! Each thread runs under SCHED_FIFO, all at the given priority (with `priospread` each one lower than the one before
//! it). It sleeps with clock_nanosleep() until an absolute time and records how much later than that it runs. A thread
//! that wakes after further multiples of its interval have passed skips them. As in the program's default, each
//! thread's interval is `distance` longer than the previous one's. `hogs` normal tasks load the machine meanwhile. The
//! program prints each thread's minimum, mean and maximum in whole microseconds; here each figure is over all threads.
//!
//! Real-time tasks' timers have no slack (kernel/time/hrtimer.c). With `priority` 0 the threads have the 50 us of slack
//! of every process, and the latencies include it.

use crate::latency::Latencies;
use crate::{Instance, Parameter, Summary, Values, Workload};
use os::Os;
use sched::attr::SchedAttr;
use sched::sched::Policy;
use sim::engine::Sample;
use sim::program::{AddressSpace, Op, Outcome, Program, TaskSpec};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use units::{Cycles, Ns};

/// Bytes of private cache that a thread uses again after a switch (guess, 2 to 8 KiB).
const WORKING_SET: u64 = 4 * 1024;
/// A hog works this long between two checks whether it should end.
const HOG: Cycles = Cycles(3_000_000);

pub const WORKLOAD: Workload = Workload {
    name: "cyclictest",
    summary: "how late timers wake real-time threads",
    parameters: &[
        Parameter { name: "threads", default: 1, range: (1, 4_096), unit: "threads", doc: "that measure" },
        Parameter { name: "interval", default: 1_000, range: (10, 10_000_000), unit: "us", doc: "of the first thread" },
        Parameter {
            name: "distance",
            default: 500,
            range: (0, 1_000_000),
            unit: "us",
            doc: "added for each further one",
        },
        Parameter { name: "loops", default: 10_000, range: (1, 10_000_000), unit: "loops", doc: "of the first thread" },
        Parameter { name: "priority", default: 80, range: (0, 99), unit: "", doc: "of the first one; 0: SCHED_OTHER" },
        Parameter {
            name: "priospread",
            default: 0,
            range: (0, 1),
            unit: "bool",
            doc: "each thread one priority below the one before it, down to 1",
        },
        Parameter { name: "hogs", default: 0, range: (0, 65_536), unit: "tasks", doc: "normal tasks that never sleep" },
    ],
    key: None,
    operation: "Lat",
    rows: &["Min", "Avg", "99th", "Max"],
    statistics: Summary::TimeFigure("Lat"),
    unit: "us",
    per_unit: 1_000,
    decimals: 2,
    build: |values: &Values| {
        Box::new(Cyclictest {
            threads: values.get("threads"),
            interval: Ns(values.get("interval") * 1_000),
            distance: Ns(values.get("distance") * 1_000),
            loops: values.get("loops"),
            priority: values.get("priority") as u32,
            spread: values.get("priospread") == 1,
            hogs: values.get("hogs"),
        })
    },
};

struct Cyclictest {
    threads: u64,
    interval: Ns,
    distance: Ns,
    loops: u64,
    priority: u32,
    /// Each thread's priority is one lower than the previous thread's.
    spread: bool,
    hogs: u64,
}

impl Cyclictest {
    /// The attributes of thread `number`.
    fn attr(&self, number: u64) -> SchedAttr {
        if self.priority == 0 {
            return SchedAttr::NORMAL;
        }
        let less = if self.spread { number as u32 } else { 0 };
        let sched_priority = self.priority.saturating_sub(less).max(1);
        SchedAttr { sched_policy: Policy::Fifo, sched_priority, ..SchedAttr::NORMAL }
    }
}

/// The figures that all threads add to.
#[derive(Default)]
struct Seen {
    latencies: RefCell<Latencies>,
    least: Cell<Option<u64>>,
    most: Cell<u64>,
    sum: Cell<u64>,
    count: Cell<u64>,
    done: Cell<bool>,
}

impl Seen {
    fn add(&self, late: Ns) {
        self.least.set(Some(self.least.get().map_or(late.0, |least| least.min(late.0))));
        self.most.set(self.most.get().max(late.0));
        self.sum.set(self.sum.get() + late.0);
        self.count.set(self.count.get() + 1);
        self.latencies.borrow_mut().record(late.0);
    }

    /// Nanoseconds, in the order of the rows.
    fn figures(&self) -> [u64; 4] {
        let mean = self.sum.get() / self.count.get().max(1);
        [self.least.get().unwrap_or(0), mean, self.latencies.borrow().percentile_seen(990), self.most.get()]
    }
}

impl Instance for Cyclictest {
    fn start(&self, _os: &mut Os) -> Vec<TaskSpec> {
        let seen = Rc::new(Seen::default());
        let measuring = (0..self.threads).map(|number| {
            let program = Measure {
                seen: seen.clone(),
                interval: Ns(self.interval.0 + number * self.distance.0),
                left: self.loops,
                first: number == 0,
                next: None,
                report: 0,
            };
            TaskSpec {
                attr: Some(self.attr(number)),
                memory: AddressSpace::Joined(0),
                working_set: WORKING_SET,
                ..TaskSpec::new("cyclictest", program)
            }
        });
        let hogs = (0..self.hogs).map(|_| TaskSpec::new("hog", Hog { seen: seen.clone() }));
        hogs.chain(measuring).collect()
    }

    fn samples(&self, reported: &[Sample]) -> Vec<u64> {
        reported.iter().map(|sample| sample.value).collect()
    }

    fn rows(&self, reported: &[Sample]) -> Vec<Vec<u64>> {
        self.samples(reported).into_iter().map(|figure| vec![figure]).collect()
    }
}

struct Measure {
    seen: Rc<Seen>,
    interval: Ns,
    left: u64,
    /// The first thread's loop count decides when all threads end.
    first: bool,
    /// The time at which it should wake.
    next: Option<Ns>,
    report: usize,
}

impl Program for Measure {
    fn next(&mut self, last: Outcome) -> Op {
        if let Some(next) = self.next {
            self.seen.add(Ns(last.now.0.saturating_sub(next.0)));
            self.left -= u64::from(self.first);
        }
        if self.left > 0 && !self.seen.done.get() {
            let since = self.next.unwrap_or(last.now);
            let intervals = last.now.0.saturating_sub(since.0).div_ceil(self.interval.0).max(1);
            let next = Ns(since.0 + intervals * self.interval.0);
            self.next = Some(next);
            return Op::SleepUntil(next);
        }
        self.next = None;
        self.seen.done.set(true);
        match self.seen.figures().get(self.report) {
            Some(&value) if self.first => {
                self.left = 0;
                self.report += 1;
                Op::Report { series: self.report as u32 - 1, value }
            }
            _ => Op::Exit,
        }
    }
}

struct Hog {
    seen: Rc<Seen>,
}

impl Program for Hog {
    fn next(&mut self, _last: Outcome) -> Op {
        if self.seen.done.get() { Op::Exit } else { Op::Work(HOG) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::run;

    #[test]
    fn real_time_threads_wake_when_their_time_comes_and_hogs_change_nothing() {
        for hogs in [0, 4] {
            let ran = run("cyclictest", 2, &[("threads", 2), ("loops", 100), ("hogs", hogs)]);
            assert_eq!(ran.rows().concat(), [0; 4], "{hogs} hogs");
        }
    }

    #[test]
    fn normal_threads_wake_when_their_slack_ends() {
        let ran = run("cyclictest", 2, &[("loops", 100), ("priority", 0)]);
        let [least, mean, _, most] = ran.rows().concat()[..] else { panic!("four figures") };
        assert!(least <= mean && mean <= most && most == 50_000, "{least} {mean} {most}");
    }

    #[test]
    fn without_a_priority_hogs_are_in_the_way() {
        let ran = run("cyclictest", 1, &[("loops", 500), ("hogs", 3), ("priority", 0), ("interval", 100)]);
        let most = ran.rows()[3][0];
        assert!(most > 1_000_000, "{most} ns");
    }

    #[test]
    fn latencies_of_any_length_are_told_apart_and_none_is_above_the_greatest() {
        let seen = Seen::default();
        for late in [1_000_001, 1_500_000, 300_000_000_001] {
            (0..100).for_each(|_| seen.add(Ns(late)));
            let [p99, most] = seen.figures()[2..] else { panic!("four figures") };
            assert!(most == late && p99 <= most && p99 * 257 > most * 256, "{p99} of {most} ns");
        }
    }

    fn measure(interval: u64) -> Measure {
        let (seen, interval) = (Rc::new(Seen::default()), Ns(interval));
        Measure { seen, interval, left: 10, first: true, next: None, report: 0 }
    }

    #[test]
    fn whoever_wakes_late_leaves_out_what_has_passed() {
        let mut measure = measure(100);
        let mut at = |now| match measure.next(Outcome { value: 0, now: Ns(now) }) {
            Op::SleepUntil(next) => next.0,
            _ => panic!("it sleeps"),
        };
        assert_eq!([at(1_000), at(1_105), at(1_350), at(1_450)], [1_100, 1_200, 1_400, 1_500]);
        // A wakeup that comes exactly on the multiple has not missed it.
        assert_eq!([at(1_800), at(1_801)], [1_800, 1_900]);
        assert_eq!(measure.seen.most.get(), 300);
    }

    #[test]
    fn priorities_differ_only_where_they_are_to_spread() {
        let priorities = |priority, spread| {
            let (threads, hogs) = (3, 0);
            let test = Cyclictest { threads, interval: Ns(1), distance: Ns(0), loops: 1, priority, spread, hogs };
            [0, 1, 2].map(|number| test.attr(number).sched_priority)
        };
        assert_eq!(priorities(80, false), [80; 3]);
        assert_eq!(priorities(80, true), [80, 79, 78]);
        assert_eq!(priorities(2, true), [2, 1, 1]);
        assert_eq!(priorities(0, true), [0; 3]);
    }
}
