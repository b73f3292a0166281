//! The controller: starts all threads, raises the rate of requests step by step, and derives the figures from the curve
//! of response times.
//!
//! A step first settles, then counts. It compares the requests that were issued in it, or should have been, with those
//! that were answered in it. If fewer than [`SETTLED_PERMILLE`] were answered, the step is tried once more, and then it
//! fails. After each step the rate is zero until all requests are answered.
//!
//! ```text
//! the search      doubles the rate until it fails, then halves what lies between: the highest rate that settles, the curve's 100%
//! the curve       up from `step` per cent, by a quarter of the rate or by `step`, whichever is more, until a step fails
//! its last stride halved until it is one per cent: the last step that passes is max-jOPS
//! ```
//!
//! SPECjbb2015 walks the curve by one per cent at a time, and goes on for three failing steps. Here a stride passes
//! over rates that it would visit; what comes after the first failure does not affect the figures.
//!
//! SPECjbb2015's steps last a minute and more, so that every group collects many times in each. A step here is shorter
//! than the time between two collections: how many it sees would be chance. So no group collects by itself while the
//! controller measures a curve. A step watches the time between collections, then one group's collection and its
//! consequences, for [`PAUSES_SEEN`] times the pause. The share of late answers is combined from both, weighted by how
//! many collections there are at that rate. A pause is what the machine file says, or a multiple of that where
//! collectors wait for CPUs. The loss that pauses cause at the highest rate is computed likewise.

use super::{Bench, LIMITS_US, Pace, injector, post};
use crate::MEASURED;
use sim::program::{Op, Outcome, Program, TaskSpec};
use std::rc::Rc;
use units::Ns;

/// Share of a step's requests that must be answered in it.
const SETTLED_PERMILLE: u64 = 980;
/// The rate for each group at which the search begins.
const FIRST_RATE: u64 = 8_000;
/// How often the search halves the interval that holds the highest settled rate.
const HALVINGS: u32 = 3;
/// Steps of the search are shorter by this factor.
const SEARCH_PART: u64 = 2;
/// The next step adds the rate divided by this.
const STRIDE: u64 = 4;
/// A collection is watched for this many pauses: the pause itself, and the time its group needs to catch up.
const PAUSES_SEEN: u64 = 2;
/// Shares are counted in millionths.
const WHOLE: u64 = 1_000_000;
/// The share of answers that may miss a bound which still counts as met: the bound applies to the 99th percentile.
const MAY_BE_LATE: u64 = WHOLE / 100;
/// Time between two checks whether all requests are answered.
const DRAIN: Ns = Ns(5_000_000);
/// Rate of the warm-up, in per cent of the highest.
const WARM_UP_PERCENT: u64 = 10;

/// The result of one step.
#[derive(Clone, Copy, Default)]
struct Point {
    rate: u64,
    settled: bool,
    /// For each bound the share of requests that were answered later than it.
    late: [u64; LIMITS_US.len()],
}

enum Plan {
    Preset,
    /// Doubles the rate until a step does not settle, then halves the interval.
    Search {
        settled: u64,
        failed: Option<u64>,
        halvings: u32,
    },
    WarmUp {
        highest: u64,
    },
    /// In per cent of the highest rate: this step, the last that passed, and the first that failed.
    Curve {
        highest: u64,
        percent: u64,
        passed: u64,
        failed: Option<u64>,
    },
}

enum State {
    Setsid,
    Start,
    Settle,
    Count,
    Counting,
    Counted,
    Collecting,
    Collected,
    Judge,
    Drain,
    Stop,
    Join,
    Joined,
    Report(usize),
}

pub struct Controller {
    bench: Rc<Bench>,
    starts: std::vec::IntoIter<TaskSpec>,
    /// Threads that have not exited, without the selectors, which read until their connections end.
    writers: usize,
    plan: Plan,
    rate: u64,
    /// This step repeats a failed one.
    again: bool,
    /// Requests that were already late to be issued when counting began.
    overdue: u64,
    /// The result of this step so far.
    point: Point,
    /// How long this step's collection has been watched.
    seen: Ns,
    /// How long the last collection took, as a rounded multiple of the work of each of its threads.
    pauses: u64,
    curve: Vec<Point>,
    /// Requests a second that were answered at the preset rate.
    answered: u64,
    outbox: Vec<Op>,
    state: State,
}

impl Controller {
    /// `selectors` is the number of selectors among `starts`.
    pub fn new(bench: Rc<Bench>, starts: Vec<TaskSpec>, selectors: usize) -> Controller {
        let groups = bench.groups() as u64;
        let writers = starts.len() - selectors;
        let (plan, rate) = match bench.rules.pace {
            Pace::Preset { rate } => (Plan::Preset, rate * groups),
            Pace::Curve { .. } => (Plan::Search { settled: 0, failed: None, halvings: 0 }, FIRST_RATE * groups),
        };
        let starts = starts.into_iter();
        Controller {
            bench,
            starts,
            writers,
            plan,
            rate,
            again: false,
            overdue: 0,
            point: Point::default(),
            seen: Ns::ZERO,
            pauses: 1,
            curve: Vec::new(),
            answered: 0,
            outbox: Vec::new(),
            state: State::Setsid,
        }
    }

    /// How long the step settles, and how long it counts.
    fn times(&self) -> (Ns, Ns) {
        let rules = &self.bench.rules;
        match self.plan {
            Plan::Search { .. } => (Ns(rules.settle.0 / SEARCH_PART), Ns(rules.steady.0 / SEARCH_PART)),
            Plan::Preset | Plan::WarmUp { .. } | Plan::Curve { .. } => (rules.settle, rules.steady),
        }
    }

    fn set_rate(&self, rate: u64) {
        let control = &self.bench.control;
        control.rate.set(rate);
        control.epoch.set(control.epoch.get() + 1);
        control.arrivals.borrow_mut().fill(None);
    }

    /// Requests that should have been issued by now, except those that are due since the injectors' last look.
    fn overdue(&self, now: Ns) -> u64 {
        let arrivals = self.bench.control.arrivals.borrow();
        let late: u64 = arrivals.iter().flatten().map(|due| now.0.saturating_sub(due.0 + injector::SLEEP.0)).sum();
        // Each injector has the same share of the rate.
        let all = u128::from(late) * u128::from(self.rate) / 1_000_000_000;
        (all / arrivals.len().max(1) as u128) as u64
    }

    fn begin_to_count(&mut self, now: Ns) {
        self.overdue = self.overdue(now);
        let control = &self.bench.control;
        control.injected.set(0);
        control.completed.set(0);
        control.counting_since.set(now);
        control.response_times.take();
    }

    /// The result of the counting.
    fn counted(&self, now: Ns) -> Point {
        let control = &self.bench.control;
        let response_times = control.response_times.borrow();
        let due = (control.injected.get() + self.overdue(now)).saturating_sub(self.overdue);
        Point {
            rate: self.rate,
            settled: control.completed.get() * 1_000 >= due * SETTLED_PERMILLE,
            late: LIMITS_US.map(|limit_us| response_times.share_above(limit_us, WHOLE)),
        }
    }

    /// Whether a collection matters to this step: it has settled, and every lower rate has met at least the loosest
    /// bound.
    fn asks_for_a_collection(&self) -> bool {
        matches!(self.plan, Plan::Curve { .. }) && self.point.settled && may_meet_a_bound(&self.curve, self.rate)
    }

    /// Makes one group collect; the groups take turns.
    fn collect(&mut self, now: Ns) {
        self.begin_to_count(now);
        self.seen = Ns::ZERO;
        let woken = self.bench.jvms[self.collects()].borrow_mut().collect();
        self.outbox.extend(woken.into_iter().map(post));
    }

    /// The group that collects in this step.
    fn collects(&self) -> usize {
        self.curve.len() % self.bench.groups()
    }

    /// How much longer the effect of a collection must be watched.
    fn unseen(&mut self) -> Option<Ns> {
        let pause = self.bench.rules.costs.pause.ns();
        let jvm = self.bench.jvms[self.collects()].borrow();
        let wanted = if self.seen == Ns::ZERO {
            Ns(PAUSES_SEEN * pause.0)
        } else if jvm.stops() {
            self.seen + pause
        } else {
            let took = jvm.collected.0.saturating_sub(self.bench.control.counting_since.get().0);
            self.pauses = ((took + pause.0 / 2) / pause.0.max(1)).max(1);
            Ns(PAUSES_SEEN * self.pauses * pause.0)
        };
        let more = wanted.0.saturating_sub(self.seen.0);
        self.seen += Ns(more);
        (more > 0).then_some(Ns(more))
    }

    /// The share of time, at this rate, for which some group is in a collection or its aftermath.
    fn collecting(&self) -> u64 {
        let costs = &self.bench.rules.costs;
        let bytes = u128::from(self.rate) * u128::from(costs.allocation) * u128::from(self.seen.0) / 1_000_000_000;
        (bytes * u128::from(WHOLE) / u128::from(costs.young.max(1))).min(u128::from(WHOLE)) as u64
    }

    /// Judges the step that ends here, and returns the next rate; `None` after the last step.
    fn judge(&mut self, now: Ns) -> Option<u64> {
        let control = &self.bench.control;
        let point = self.point;
        // A short step may fail because many requests came just before its end: it gets a second try.
        self.again = !point.settled && !self.again && !matches!(self.plan, Plan::Preset);
        if self.again {
            return Some(self.rate);
        }
        let Pace::Curve { step_percent } = self.bench.rules.pace else {
            let counted = u128::from(now.0 - control.counting_since.get().0);
            self.answered = (u128::from(control.completed.get()) * 1_000_000_000 / counted) as u64;
            return None;
        };
        match &mut self.plan {
            Plan::Preset => unreachable!("it has no curve"),
            Plan::Search { settled, failed, halvings } => {
                if point.settled {
                    *settled = point.rate;
                } else {
                    *failed = Some(point.rate);
                }
                match *failed {
                    None => return Some(point.rate * 2),
                    Some(failed) if *halvings < HALVINGS && failed - *settled > 1 => {
                        // Halvings are not counted until some rate has settled: the first rate was too high.
                        *halvings += u32::from(*settled > 0);
                        return Some(*settled + (failed - *settled) / 2);
                    }
                    Some(_) => {}
                }
                let highest = (*settled).max(1);
                self.plan = Plan::WarmUp { highest };
                Some((highest * WARM_UP_PERCENT / 100).max(1))
            }
            Plan::WarmUp { highest } => {
                let highest = *highest;
                self.plan = Plan::Curve { highest, percent: step_percent, passed: 0, failed: None };
                Some((highest * step_percent / 100).max(1))
            }
            Plan::Curve { highest, percent, passed, failed } => {
                self.curve.push(point);
                match point.settled {
                    true => *passed = *percent,
                    false => *failed = Some(*percent),
                }
                *percent = match *failed {
                    None => *passed + step_percent.max(*passed / STRIDE),
                    Some(failed) if failed - *passed > 1 => *passed + (failed - *passed) / 2,
                    Some(_) => return None,
                };
                Some((*highest * *percent / 100).max(1))
            }
        }
    }

    /// The step has been seen between collections and in one: computes how late its answers are in the long run.
    fn put_together(&mut self, now: Ns) {
        let (share, seen) = (self.collecting(), self.counted(now));
        for (late, then) in self.point.late.iter_mut().zip(seen.late) {
            *late = (*late * (WHOLE - share) + then * share) / WHOLE;
        }
    }

    /// Reports the mark that ends what a preset rate's profile covers.
    fn end_step(&mut self, now: Ns) -> Option<Op> {
        if let State::Collected = self.state {
            self.put_together(now);
        }
        self.set_rate(0);
        if let Some(rate) = self.judge(now) {
            self.rate = rate;
            self.state = State::Drain;
            return None;
        }
        self.state = State::Stop;
        matches!(self.plan, Plan::Preset).then_some(Op::Report { series: MEASURED, value: 0 })
    }

    /// Makes every thread exit.
    fn stop(&mut self) {
        self.state = State::Join;
        self.bench.control.stopping.set(true);
        for jvm in &self.bench.jvms {
            let jvm = jvm.borrow();
            let parked = jvm.pools.iter().flat_map(|pool| pool.parked.iter().map(|&worker| pool.threads[worker]));
            let all = parked.chain(jvm.collectors.iter().copied()).chain(jvm.stopped.iter().copied());
            self.outbox.extend(all.map(post));
        }
    }

    /// The rate served in the long run, pauses included, if `rate` is served between pauses.
    fn through_pauses(&self, rate: u64) -> u64 {
        let costs = &self.bench.rules.costs;
        let of_group = u128::from(rate / self.bench.groups() as u64);
        let pause = u128::from(costs.pause.0) * u128::from(self.pauses);
        let bytes_in_a_pause = of_group * u128::from(costs.allocation) * pause / 1_000_000_000_000;
        let young = u128::from(costs.young.max(1));
        (u128::from(rate) * young / (young + bytes_in_a_pause)) as u64
    }

    /// A thread has exited. Once no thread is left that writes, the connections are closed.
    fn joined(&mut self) {
        let last = self.writers == 1;
        self.writers = self.writers.saturating_sub(1);
        for jvm in self.bench.jvms.iter().filter(|_| last) {
            let jvm = jvm.borrow();
            self.outbox.extend(jvm.inboxes.iter().map(|inbox| Op::Shutdown { socket: inbox.writer }));
        }
    }

    /// max-jOPS, critical-jOPS, and the rate at each bound.
    fn figures(&self) -> Vec<u64> {
        if let Plan::Preset = self.plan {
            return vec![self.answered];
        }
        // Steps come out of order, because a failed stride is halved.
        let mut curve = self.curve.clone();
        curve.sort_by_key(|point| point.rate);
        let max =
            curve.iter().take_while(|point| point.settled).last().map_or(0, |point| self.through_pauses(point.rate));
        let at: Vec<u64> = (0..LIMITS_US.len()).map(|bound| rate_within(&curve, bound).min(max)).collect();
        [max, geometric_mean(&at)].into_iter().chain(at).collect()
    }
}

/// Whether no lower rate has missed the loosest bound. Higher rates may have missed it: a failed stride is halved, so
/// steps come out of order.
fn may_meet_a_bound(curve: &[Point], rate: u64) -> bool {
    curve.iter().all(|point| point.rate >= rate || point.late[LIMITS_US.len() - 1] <= MAY_BE_LATE)
}

/// The rate up to which the 99th percentile stays within limit number `bound`. It is interpolated linearly, by the
/// share of late answers, between the last step that meets the bound and the first that does not. If that one does not
/// settle, it is the last step that meets the bound.
fn rate_within(curve: &[Point], bound: usize) -> u64 {
    let good = curve.iter().take_while(|point| point.settled && point.late[bound] <= MAY_BE_LATE).count();
    let last = good.checked_sub(1).map_or(Point::default(), |last| curve[last]);
    match curve.get(good) {
        Some(bad) if bad.settled => {
            let more = bad.late[bound] - last.late[bound];
            last.rate + (bad.rate - last.rate) * (MAY_BE_LATE - last.late[bound]) / more
        }
        _ => last.rate,
    }
}

/// The fifth root of the product of five rates, rounded down.
fn geometric_mean(rates: &[u64]) -> u64 {
    let product: u128 = rates.iter().map(|&rate| u128::from(rate)).product();
    let count = rates.len() as u32;
    let (mut low, mut high) = (0, rates.iter().copied().max().unwrap_or(0));
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        if u128::from(middle).pow(count) <= product { low = middle } else { high = middle - 1 }
    }
    low
}

impl Program for Controller {
    fn next(&mut self, last: Outcome) -> Op {
        loop {
            if let Some(op) = self.outbox.pop() {
                return op;
            }
            match self.state {
                // The user who starts the benchmark has a terminal, and with it a session, of his own.
                State::Setsid => {
                    self.state = State::Start;
                    return Op::Setsid;
                }
                State::Start => match self.starts.next() {
                    Some(spec) => return Op::Fork(Box::new(spec)),
                    None => self.state = State::Settle,
                },
                State::Settle => {
                    self.set_rate(self.rate);
                    self.state = State::Count;
                    return Op::SleepFor(self.times().0);
                }
                State::Count => {
                    self.begin_to_count(last.now);
                    self.state = State::Counting;
                    if let Plan::Preset = self.plan {
                        return Op::Report { series: MEASURED, value: 1 };
                    }
                }
                State::Counting => {
                    self.state = State::Counted;
                    return Op::SleepFor(self.times().1);
                }
                State::Counted => {
                    self.point = self.counted(last.now);
                    self.state = State::Judge;
                    if self.asks_for_a_collection() {
                        self.collect(last.now);
                        self.state = State::Collecting;
                    }
                }
                State::Collecting => match self.unseen() {
                    Some(time) => return Op::SleepFor(time),
                    None => self.state = State::Collected,
                },
                State::Judge | State::Collected => {
                    if let Some(mark) = self.end_step(last.now) {
                        return mark;
                    }
                }
                State::Drain if self.bench.control.in_flight.get() > 0 => return Op::SleepFor(DRAIN),
                State::Drain => self.state = State::Settle,
                State::Stop => self.stop(),
                State::Join => {
                    self.state = State::Joined;
                    return Op::Wait;
                }
                State::Joined if last.value == 0 => self.state = State::Report(0),
                State::Joined => {
                    self.joined();
                    self.state = State::Join;
                }
                State::Report(row) => {
                    let Some(&value) = self.figures().get(row) else { return Op::Exit };
                    self.state = State::Report(row + 1);
                    return Op::Report { series: row as u32, value };
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn critical_is_the_geometric_mean_as_a_published_log_has_it() {
        assert_eq!(geometric_mean(&[4_774, 7_442, 9_643, 11_833, 13_791]), 8_902);
        assert_eq!(geometric_mean(&[0, 7_442, 9_643, 11_833, 13_791]), 0);
        assert_eq!(geometric_mean(&[u64::MAX >> 40; 5]), u64::MAX >> 40);
    }

    #[test]
    fn a_bound_is_met_between_the_last_step_within_it_and_the_first_beyond() {
        let point = |rate, late| Point { rate, settled: true, late: [late, late / 20, 0, 0, 0] };
        let curve = [point(100, 2_000), point(200, 6_000), point(300, 26_000), point(400, 8_000)];
        assert_eq!(rate_within(&curve, 0), 220);
        assert_eq!(rate_within(&curve[2..], 0), 115);
        // No step misses the bound: the last one counts.
        assert_eq!(rate_within(&curve, 1), 400);
        // A step that does not settle ends the curve at the step before.
        let failed = Point { settled: false, ..point(300, 7_000) };
        assert_eq!(rate_within(&[curve[0], curve[1], failed], 0), 200);
    }

    #[test]
    fn what_a_collection_does_is_asked_where_no_lower_rate_has_missed_all_bounds() {
        let point = |rate, late| Point { rate, settled: late == 0, late: [late; 5] };
        let curve = [point(100, 0), point(200, 500_000)];
        assert!(may_meet_a_bound(&curve, 150), "the failed step's stride is halved");
        assert!(may_meet_a_bound(&curve, 200), "its second try");
        assert!(!may_meet_a_bound(&curve, 250));
    }
}
