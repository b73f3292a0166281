//! teo as in v6.14 to v6.18: hits and intercepts by state, the intercepts of a tick and more apart, and a CPU that mostly idles for
//! microseconds does not look at timers.

use super::short_idles::LATENCY_THRESHOLD_NS;
use super::{
    Choice, DECAY_SHIFT, IdleRules, NEVER_NS, Outlook, PULSE, RESIDENCY_THRESHOLD_NS, StateTable, Teo, Usage,
    before_timer, end_intercepts, keep, of_several,
};

/// Takes an eighth off, and nothing off what is less than eight.
fn decay(metric: &mut u32) {
    *metric -= *metric >> DECAY_SHIFT;
}

impl Teo {
    /// teo.c: the part of teo_update() of v6.18 that finds out how long the idle was, and whether that was short.
    fn measured_if_genuine(&mut self, usage: &Usage, latency_ns: u64) -> u64 {
        decay(&mut self.ticks.short_idles);
        if self.ticks.artificial_wakeup {
            return u64::MAX;
        }
        let (measured, short) = Teo::without_latency(usage.last_residency_ns, latency_ns);
        self.ticks.short_idles += if short { PULSE } else { 0 };
        measured
    }

    /// teo.c: teo_update() of v6.18. The total decays by itself, so it is not quite the sum of the bins.
    fn teo_update_tick_intercepts(&mut self, table: &StateTable, usage: &Usage, last: usize) {
        let measured = self.measured_if_genuine(usage, table.states[last].exit_latency_ns);
        let total = self.total;
        let (timer, duration) = self.decay(table, measured);
        self.total = total;
        let tick_intercepts = &mut self.ticks.tick_intercepts;
        decay(tick_intercepts);
        if timer == duration {
            self.bins[timer].hits += PULSE;
        } else {
            self.bins[duration].intercepts += PULSE;
            *tick_intercepts += if measured >= table.tick_ns { PULSE } else { 0 };
        }
        decay(&mut self.total);
        self.total += PULSE;
    }

    /// teo.c: teo_select() of v6.18.
    pub fn teo_select_tick_intercepts(
        &mut self,
        rules: &IdleRules,
        table: &StateTable,
        usage: &mut Usage,
        outlook: &Outlook,
    ) -> Choice {
        if let Some(last) = usage.last_state.take() {
            self.teo_update_tick_intercepts(table, usage, last.into());
        }
        self.sleep_length_ns = NEVER_NS;
        let states = &table.states;
        let found = self.candidate_of_all(table);
        let mut chosen = match of_several(table, outlook, found.state, found.first) {
            Ok(deepest) => deepest,
            Err(choice) => return choice,
        };
        if 2 * found.sums.intercepts > self.total.wrapping_sub(found.sums.hits) {
            chosen = self.intercepted(table, outlook, chosen, found.sums.intercepts);
        }
        chosen = chosen.min(found.constraint);
        let shallow = chosen == 0 || states[chosen].target_residency_ns < RESIDENCY_THRESHOLD_NS;
        let indifferent = 2 * self.ticks.short_idles >= self.total || table.latency_req_ns < LATENCY_THRESHOLD_NS;
        if shallow && indifferent {
            return keep(chosen, false);
        }
        let mut duration = outlook.sleep_length_ns;
        self.sleep_length_ns = duration;
        if chosen == 0 {
            return keep(0, true);
        }
        chosen = before_timer(rules, table, outlook, chosen, duration);
        let beyond_tick = self.ticks.tick_intercepts > self.total / 2 + self.total / 8;
        if states[chosen].target_residency_ns < table.tick_ns && beyond_tick {
            duration = table.tick_ns / 2;
        }
        end_intercepts(table, outlook, (chosen, found.first), duration, outlook.delta_tick_ns, true)
    }
}
