//! teo as in v7.1, and two forms on the way to it (v6.19, v7.0): a hit is an idle that the timer ended, wakeups by the tick are counted apart, and a CPU that mostly
//! idles for microseconds does not look at timers.

use super::super::table::State;
use super::super::{SAFE_TIMER_TICKS, TeoRule};
use super::{
    Choice, DECAY_SHIFT, NEVER_NS, Outlook, PULSE, RESIDENCY_THRESHOLD_NS, StateTable, Teo, Usage, end_intercepts,
    keep, of_several,
};

/// teo.c: LATENCY_THRESHOLD_NS: if no more exit latency than this is allowed, the timer does not matter.
pub(super) const LATENCY_THRESHOLD_NS: u64 = RESIDENCY_THRESHOLD_NS / 2;

/// teo.c: what struct teo_cpu counts beside its bins.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Ticks {
    /// Wakeups by the tick.
    total_tick: u32,
    /// Idles of at most a tick that were not ended by a timer; in v6.14 to v6.18 those of at least a tick.
    pub(super) tick_intercepts: u32,
    pub(super) short_idles: u32,
    pub(super) tick_wakeup: bool,
    /// In v6.14 to v6.18: the tick, or the end of the time to poll, has ended an idle that could have been long.
    pub(super) artificial_wakeup: bool,
}

/// What the bins say about the enabled states.
#[derive(Default)]
struct Bins {
    /// The deepest enabled state; `None`: none is.
    deepest: Option<usize>,
    first: usize,
    /// The deepest state whose exit latency is allowed.
    constraint: usize,
    /// Over the bins before the deepest.
    intercepts: u32,
    hits: u32,
    /// The bin with most intercepts; the last one of several.
    most: usize,
}

/// teo.c: teo_decay(): a small rest goes to zero at once.
fn teo_decay(metric: &mut u32) {
    let delta = *metric >> DECAY_SHIFT;
    *metric = if delta > 0 { *metric - delta } else { 0 };
}

impl Teo {
    /// teo.c: the part of teo_update() since v6.19 that finds out how long the idle was, and whether that was short.
    fn measured_by_residency(&mut self, usage: &mut Usage, latency_ns: u64) -> u64 {
        teo_decay(&mut self.ticks.short_idles);
        if std::mem::take(&mut usage.poll_time_limit) {
            // It polled as long as it may, so the idle could have been long.
            return NEVER_NS;
        }
        let (measured, short) = Teo::without_latency(usage.last_residency_ns, latency_ns);
        self.ticks.short_idles += if short { PULSE } else { 0 };
        measured
    }

    /// How long an idle was without the latency of its state, and whether that was short, since v6.14.
    pub(super) fn without_latency(residency_ns: u64, latency_ns: u64) -> (u64, bool) {
        if residency_ns < latency_ns {
            return (residency_ns / 2, true);
        }
        let measured = residency_ns - latency_ns / 2;
        (measured, measured < RESIDENCY_THRESHOLD_NS)
    }

    /// teo.c: teo_update() since v6.19.
    fn teo_update_short_idles(&mut self, rule: TeoRule, table: &StateTable, usage: &mut Usage, last: usize) {
        let counts_all_hits = rule == TeoRule::TickWakeups;
        let latency_ns = table.states[last].exit_latency_ns;
        let measured = self.measured_by_residency(usage, latency_ns);
        let (mut timer, mut duration, mut total) = (0, 0, 0);
        for (index, (bin, state)) in self.bins.iter_mut().zip(&table.states).enumerate() {
            teo_decay(&mut bin.hits);
            teo_decay(&mut bin.intercepts);
            total += bin.hits + bin.intercepts;
            if state.target_residency_ns <= self.sleep_length_ns {
                timer = index;
                if state.target_residency_ns <= measured {
                    duration = index;
                }
            }
        }
        self.total = total + PULSE;
        let ticks = &mut self.ticks;
        teo_decay(&mut ticks.tick_intercepts);
        teo_decay(&mut ticks.total_tick);
        if ticks.tick_wakeup {
            ticks.total_tick += PULSE;
            let deepest = self.bins.len() - 1;
            if 3 * ticks.total_tick > 2 * self.total {
                // Mostly ticks wake it, so without the tick it could sleep longer.
                self.bins[deepest].hits += PULSE;
                return;
            }
            if !counts_all_hits && 3 * ticks.tick_intercepts < 2 * total {
                self.bins[timer].hits += PULSE;
                return;
            }
        }
        // An idle that lasted until the timer, less half an exit latency, was ended by it.
        let by_timer = counts_all_hits || (self.sleep_length_ns as i64) - (measured as i64) < (latency_ns / 2) as i64;
        if timer == duration && by_timer {
            self.bins[timer].hits += PULSE;
        } else {
            self.bins[duration].intercepts += PULSE;
            if measured <= table.tick_ns {
                ticks.tick_intercepts += PULSE;
            }
        }
    }

    fn bins_of_enabled(&self, table: &StateTable) -> Bins {
        let mut found = Bins { deepest: (!table.states[0].disabled).then_some(0), ..Bins::default() };
        let (mut intercepts, mut hits, mut largest) = (0, 0, 0);
        for (index, state) in table.states.iter().enumerate().skip(1) {
            let before = &self.bins[index - 1];
            hits += before.hits;
            intercepts += before.intercepts;
            if before.intercepts >= largest {
                (largest, found.most) = (before.intercepts, index - 1);
            }
            if state.disabled {
                continue;
            }
            if found.deepest.is_none() {
                found.first = index;
            }
            found.deepest = Some(index);
            if state.exit_latency_ns <= table.latency_req_ns {
                found.constraint = index;
            }
            (found.intercepts, found.hits) = (intercepts, hits);
        }
        found
    }

    /// The deepest enabled state, no deeper than the bin with most intercepts (since v7.0), that would have been right for
    /// more than half of the early wakeups. Until v7.0 it is as long as a tick, if that is `stopped`.
    fn where_most_end(&self, rule: TeoRule, table: &StateTable, deepest: usize, found: &Bins, stopped: bool) -> usize {
        let (states, most) = (&table.states, if rule == TeoRule::TickWakeups { usize::MAX } else { found.most });
        let mut least = found.first;
        if rule != TeoRule::ShortIdles && stopped {
            let long = |state: &State| state.target_residency_ns >= table.tick_ns;
            least += states[least..deepest].iter().position(long).unwrap_or(deepest - least);
        }
        if rule == TeoRule::MostIntercepts {
            if stopped && states[least].target_residency_ns == states[deepest].target_residency_ns {
                return deepest;
            }
            if least >= most && !states[least].disabled {
                return least;
            }
        }
        let (mut chosen, mut sum) = (deepest, 0);
        for index in (least..deepest).rev() {
            sum += self.bins[index].intercepts;
            if states[index].disabled {
                continue;
            }
            chosen = index;
            if 2 * sum > found.intercepts && index <= most {
                break;
            }
        }
        chosen
    }

    /// teo.c: teo_select() since v6.19.
    pub fn teo_select_short_idles(
        &mut self,
        rule: TeoRule,
        table: &StateTable,
        usage: &mut Usage,
        outlook: &Outlook,
    ) -> Choice {
        if let Some(last) = usage.last_state.take() {
            self.teo_update_short_idles(rule, table, usage, last.into());
        }
        self.sleep_length_ns = NEVER_NS;
        let states = &table.states;
        let found = self.bins_of_enabled(table);
        let first = found.first;
        let mut chosen = match of_several(table, outlook, found.deepest, first) {
            Ok(deepest) => deepest,
            Err(choice) => return choice,
        };
        if 2 * found.intercepts > self.total - found.hits {
            chosen = self.where_most_end(rule, table, chosen, &found, outlook.tick_stopped);
        }
        chosen = chosen.min(found.constraint);
        let shallow = chosen == 0 || states[chosen].target_residency_ns < RESIDENCY_THRESHOLD_NS;
        let indifferent = 2 * self.ticks.short_idles >= self.total || table.latency_req_ns < LATENCY_THRESHOLD_NS;
        // Since v7.1 a CPU whose tick is stopped may be in a shallow state, if a timer is sure to end it.
        let needs_timer = rule == TeoRule::ShortIdles && outlook.tick_stopped;
        if !needs_timer && shallow && indifferent {
            return keep(chosen, false);
        }
        let mut duration = outlook.sleep_length_ns;
        self.sleep_length_ns = duration;
        if needs_timer
            && duration > SAFE_TIMER_TICKS * table.tick_ns
            && states[chosen].target_residency_ns < table.tick_ns
        {
            // The CPU must not stay in a shallow state until a timer that is far away.
            let fits = |&index: &usize| !states[index].disabled && states[index].target_residency_ns <= duration;
            let deeper = (chosen + 1..=found.constraint).rev().find(fits);
            return Choice { state: deeper.unwrap_or(chosen), stop_tick: true, looked_at_timers: true };
        }
        if chosen == 0 {
            return keep(0, true);
        }
        if states[chosen].target_residency_ns > duration {
            chosen = table.shallower(chosen, |state| state.target_residency_ns <= duration);
        }
        let mostly_before_tick = match rule {
            TeoRule::TickWakeups => self.ticks.tick_intercepts > self.total / 2 + self.total / 8,
            _ => 3 * self.ticks.tick_intercepts >= 2 * self.total,
        };
        if states[chosen].target_residency_ns < table.tick_ns && mostly_before_tick {
            duration = table.tick_ns / 2;
        }
        end_intercepts(table, outlook, (chosen, first), duration, outlook.delta_tick_ns, true)
    }
}
