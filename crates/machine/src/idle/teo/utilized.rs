//! teo as in v6.6: what v6.1 counts, and idles of a tick and more apart; a CPU that is busy is put to sleep less deeply; and
//! the timer is looked at last.

use super::super::table::State;
use super::{
    Choice, NEVER_NS, NR_RECENT, Outlook, PULSE, RESIDENCY_THRESHOLD_NS, StateTable, Sums, Teo, Usage, end_intercepts,
};

/// What the bins of the shallower states speak against the candidate with.
struct Against {
    sums: Sums,
    alt_intercepts: bool,
    alt_recent: bool,
}

impl Against {
    /// Whether more than half of what speaks against the candidate is in these bins.
    fn are_half(&self, sums: &Sums) -> bool {
        (!self.alt_recent || sums.recent.wrapping_mul(2) > self.sums.recent)
            && (!self.alt_intercepts || 2 * sums.intercepts > self.sums.intercepts)
    }
}

impl Teo {
    /// teo.c: teo_update() of v6.6.
    ///
    /// An idle of a tick or more takes its predecessor of nine events ago off the counts, but not out of the list: the next
    /// time round it is taken off again, and a count below zero is a large one.
    fn teo_update_utilized(&mut self, table: &StateTable, usage: &Usage, last: usize) {
        let measured = self.measured_ns(table, usage, last);
        let (timer, duration) = self.decay(table, measured);
        let place = self.next_recent;
        self.next_recent = (place + 1) % NR_RECENT;
        if let Some(oldest) = self.recent[place] {
            let recent = &mut self.bins[usize::from(oldest)].recent;
            *recent = recent.wrapping_sub(1);
        }
        self.total += PULSE;
        let Some(timer) = self.count_tick(table, measured, timer) else { return };
        if timer == duration {
            self.bins[timer].hits += PULSE;
            self.recent[place] = None;
        } else {
            let bin = &mut self.bins[duration];
            bin.intercepts += PULSE;
            bin.recent = bin.recent.wrapping_add(1);
            self.recent[place] = Some(duration as u8);
        }
    }

    /// teo.c: teo_select() of v6.6.
    pub fn teo_select_utilized(&mut self, table: &StateTable, usage: &mut Usage, outlook: &Outlook) -> Choice {
        if let Some(last) = usage.last_state.take() {
            self.teo_update_utilized(table, usage, last.into());
        }
        self.time_span_ns = outlook.now_ns;
        self.sleep_length_ns = NEVER_NS;
        let states = &table.states;
        let retain = |state: usize| Choice { state, stop_tick: false, looked_at_timers: false };
        let ok = |index: usize| !outlook.tick_stopped || states[index].target_residency_ns >= table.tick_ns;
        let only = |chosen: usize, first: usize| {
            let duration = states[chosen].target_residency_ns;
            end_intercepts(table, outlook, (chosen, first), duration, table.tick_ns / 2, false)
        };
        if states.len() < 3 && outlook.utilized {
            let first = !states[0].disabled && !states[0].polling && ok(0);
            return if first || states[1].disabled { retain(0) } else { only(1, 0) };
        }
        let found = self.candidate_of_all(table);
        let candidate = match found.state {
            None => return retain(0),
            Some(state) if state == found.first => return only(state, state),
            Some(state) => state,
        };
        let alt_intercepts = 2 * found.sums.intercepts > self.total - found.sums.hits;
        let alt_recent = found.sums.recent > NR_RECENT as u32 / 2;
        let mut chosen = candidate;
        if alt_intercepts || alt_recent {
            let against = Against { sums: found.sums, alt_intercepts, alt_recent };
            chosen = self.intercepted_utilized(table, candidate, &against, ok);
        }
        chosen = chosen.min(found.constraint);
        if outlook.utilized {
            chosen = awake(table, chosen, ok);
        }
        if chosen == 0 || (states[0].polling && states[chosen].target_residency_ns < RESIDENCY_THRESHOLD_NS) {
            return retain(chosen);
        }
        let mut duration = outlook.sleep_length_ns;
        self.sleep_length_ns = duration;
        if states[chosen].target_residency_ns > duration {
            let shallower = table.shallower(chosen, |state| state.target_residency_ns <= duration);
            chosen = if ok(shallower) { shallower } else { chosen };
        }
        let before_tick = found.passed.intercepts + self.bins.last().map_or(0, |bin| bin.intercepts);
        if states[chosen].target_residency_ns < table.tick_ns && before_tick > self.total / 2 + self.total / 8 {
            duration = table.tick_ns / 2;
        }
        end_intercepts(table, outlook, (chosen, found.first), duration, outlook.delta_tick_ns, true)
    }

    /// The deepest state that would have been right for more than half of the early wakeups.
    fn intercepted_utilized(
        &self,
        table: &StateTable,
        candidate: usize,
        against: &Against,
        ok: impl Fn(usize) -> bool,
    ) -> usize {
        let states = &table.states;
        let (mut suitable, mut sums) = (candidate, Sums::default());
        for index in (0..candidate).rev() {
            sums.add(&self.bins[index]);
            if against.are_half(&sums) {
                return if ok(index) && !states[index].disabled { index } else { suitable };
            }
            if states[index].disabled {
                continue;
            }
            if !ok(index) {
                if suitable != candidate {
                    continue;
                }
                break;
            }
            suitable = index;
        }
        candidate
    }
}

/// The next shallower state for a CPU that is busy, unless it polls there, or could stay in it for long without a tick.
fn awake(table: &StateTable, chosen: usize, ok: impl Fn(usize) -> bool) -> usize {
    let sleeps = |state: &State| !state.disabled && !state.polling;
    let shallower = table.states[..chosen].iter().rposition(sleeps);
    shallower.filter(|&index| ok(index)).unwrap_or(chosen)
}
