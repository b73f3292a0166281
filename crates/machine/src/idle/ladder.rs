//! The ladder governor: up and down one state at a time (drivers/cpuidle/governors/ladder.c).

use super::table::StateTable;
use super::{Choice, Usage};

const PROMOTION_COUNT: u32 = 4;
const DEMOTION_COUNT: u32 = 1;

/// Consecutive idles that were long enough for the next deeper state, and consecutive ones that were too short for this
/// one.
#[derive(Clone, Copy, Default, Debug)]
struct Stats {
    promotion_count: u32,
    demotion_count: u32,
}

/// ladder.c: struct ladder_device, one per CPU.
#[derive(Clone, Debug)]
pub(super) struct Ladder {
    stats: Vec<Stats>,
    last_state: usize,
}

/// The state below which no CPU is demoted: polling is entered only if no latency at all is allowed.
fn first_of(table: &StateTable) -> usize {
    usize::from(table.states[0].polling && table.states.len() > 1)
}

impl Ladder {
    /// ladder.c: what ladder_enable_device() begins with.
    pub fn new(table: &StateTable) -> Ladder {
        Ladder { stats: vec![Stats::default(); table.states.len()], last_state: first_of(table) }
    }

    /// ladder.c: ladder_do_selection().
    fn ladder_do_selection(&mut self, new: usize) -> Choice {
        self.stats[self.last_state] = Stats::default();
        self.last_state = new;
        Choice { looked_at_timers: false, ..Choice::of(new) }
    }

    /// ladder.c: ladder_select_state().
    /// Differs: computes in nanoseconds; kernels before v5.6 did in whole microseconds.
    pub fn ladder_select_state(&mut self, table: &StateTable, usage: &Usage) -> Choice {
        let (latency_req, last) = (table.latency_req_ns, self.last_state);
        if latency_req == 0 {
            return self.ladder_do_selection(0);
        }
        let first = first_of(table);
        let state = &table.states[last];
        // The threshold of both directions is the state's exit latency. The comparison is unsigned: an idle shorter
        // than the exit latency, or a state that was not entered, counts as a very long idle.
        let threshold = state.exit_latency_ns;
        let residency = usage.last_residency_ns.wrapping_sub(threshold);
        if let Some(next) = table.states.get(last + 1)
            && !next.disabled
            && residency > threshold
            && next.exit_latency_ns <= latency_req
        {
            let stats = &mut self.stats[last];
            stats.promotion_count += 1;
            stats.demotion_count = 0;
            if stats.promotion_count >= PROMOTION_COUNT {
                return self.ladder_do_selection(last + 1);
            }
        }
        if last > first && (state.disabled || state.exit_latency_ns > latency_req) {
            let fits = |&index: &usize| table.states[index].exit_latency_ns <= latency_req;
            let back = (first + 1..last).rev().find(fits).unwrap_or(first);
            return self.ladder_do_selection(back);
        }
        if last > first && residency < threshold {
            let stats = &mut self.stats[last];
            stats.demotion_count += 1;
            stats.promotion_count = 0;
            if stats.demotion_count >= DEMOTION_COUNT {
                return self.ladder_do_selection(last - 1);
            }
        }
        Choice { looked_at_timers: false, ..Choice::of(last) }
    }

    /// ladder.c: ladder_reflect().
    pub fn ladder_reflect(&mut self, state: usize) {
        if state > 0 {
            self.last_state = state;
        }
    }
}
