//! teo as in v5.4 to v5.13: each state counts how often the timer was right about it (hits), how often it was not although
//! the timer had asked for it (misses), and how often an idle ended early in it.

use super::{Choice, DECAY_SHIFT, Outlook, PULSE, StateTable, Teo, Usage, end_recent};

/// teo.c: INTERVALS.
const INTERVALS: usize = 8;

/// teo.c: struct teo_idle_state.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct State {
    pub early: u32,
    pub hits: u32,
    pub misses: u32,
}

/// teo.c: what struct teo_cpu has in these versions.
#[derive(Clone, Debug)]
pub(super) struct EarlyWakeups {
    pub(super) states: Vec<State>,
    /// How long the last idles were, as a ring.
    intervals: [u64; INTERVALS],
    next: usize,
}

impl EarlyWakeups {
    pub(super) fn new(table: &StateTable) -> EarlyWakeups {
        EarlyWakeups { states: vec![State::default(); table.states.len()], intervals: [u64::MAX; INTERVALS], next: 0 }
    }

    /// teo.c: teo_update(), given how long the idle was and what the timer had said. `places`: those in the ring of
    /// intervals; what goes beyond the last one is lost.
    fn update(&mut self, table: &StateTable, measured_ns: u64, sleep_length_ns: u64, places: usize) {
        let (mut timer, mut hit) = (None, None);
        for (index, (state, of)) in self.states.iter_mut().zip(&table.states).enumerate() {
            state.early -= state.early >> DECAY_SHIFT;
            if of.target_residency_ns <= sleep_length_ns {
                timer = Some(index);
                if of.target_residency_ns <= measured_ns {
                    hit = Some(index);
                }
            }
        }
        if let Some(timer) = timer {
            let of_timer = &mut self.states[timer];
            of_timer.hits -= of_timer.hits >> DECAY_SHIFT;
            of_timer.misses -= of_timer.misses >> DECAY_SHIFT;
            if hit.is_none_or(|hit| hit < timer) {
                of_timer.misses += PULSE;
                if let Some(hit) = hit {
                    self.states[hit].early += PULSE;
                }
            } else {
                of_timer.hits += PULSE;
            }
        }
        if let Some(place) = self.intervals.get_mut(self.next) {
            *place = measured_ns;
        }
        self.next = (self.next + 1) % places;
    }

    /// The mean of the last idles, if most of them were shorter than `duration_ns`.
    pub(super) fn usual_ns(&self, duration_ns: u64) -> Option<u64> {
        let (mut count, mut sum) = (0, 0u64);
        for &interval in self.intervals.iter().filter(|&&interval| interval < duration_ns) {
            count += 1;
            sum += interval;
        }
        (count > INTERVALS as u64 / 2).then(|| sum / count)
    }
}

/// What the walk over the states has found.
#[derive(Default)]
struct Found {
    /// The deepest state that the timer allows; `None`: none is enabled.
    state: Option<usize>,
    /// Its counts, or those of a deeper one that is disabled.
    counts: State,
    /// The state with most early wakeups, that before it, and how many they are.
    best: Option<usize>,
    before: Option<usize>,
    early: u32,
    /// The shallowest state whose exit latency is too long, or the number of states.
    constraint: usize,
}

impl Teo {
    /// Where teo_select() of v5.1 to v5.13 begins. `lost`: how many intervals of each round are not kept.
    pub(super) fn learn_from_last(&mut self, table: &StateTable, usage: &mut Usage, outlook: &Outlook, lost: usize) {
        if let Some(last) = usage.last_state.take() {
            let measured = self.measured_ns(table, usage, last.into());
            self.early.update(table, measured, self.sleep_length_ns, INTERVALS + lost);
        }
        self.time_span_ns = outlook.now_ns;
        self.sleep_length_ns = outlook.sleep_length_ns;
    }

    /// teo.c: teo_select() of v5.4 to v5.13.
    pub fn teo_select_hits(&mut self, table: &StateTable, usage: &mut Usage, outlook: &Outlook) -> Choice {
        self.learn_from_last(table, usage, outlook, 0);
        let mut duration = outlook.sleep_length_ns;
        let states = &table.states;
        // teo.c: teo_time_ok()
        let long_enough = |ns: u64| !outlook.tick_stopped || ns >= table.tick_ns;
        let found = self.walk(table, duration, long_enough);
        let mut chosen = found.state;
        if found.counts.hits <= found.counts.misses {
            let best = if found.best == found.state { found.before } else { found.best };
            if let Some(best) = best {
                chosen = Some(best);
                duration = states[best].target_residency_ns;
            }
        }
        let mut chosen = chosen.map_or(0, |state| state.min(found.constraint));
        if chosen > 0
            && let Some(usual) = self.early.usual_ns(duration).filter(|&usual| long_enough(usual))
        {
            duration = usual;
            if states[chosen].target_residency_ns > usual {
                chosen = table.shallower(chosen, |state| state.target_residency_ns <= usual);
            }
        }
        end_recent(table, outlook, chosen, 0, duration)
    }

    /// The walk of teo_select() over the states, up to the first enabled one that takes longer than the timer allows.
    fn walk(&self, table: &StateTable, duration_ns: u64, long_enough: impl Fn(u64) -> bool) -> Found {
        let mut found = Found { constraint: table.states.len(), ..Found::default() };
        for (index, state) in table.states.iter().enumerate() {
            let counts = self.early.states[index];
            if state.disabled {
                if state.target_residency_ns > duration_ns {
                    continue;
                }
                found.counts = counts;
                let Some(deepest) = found.state.filter(|_| found.early < counts.early) else { continue };
                if found.best == found.state {
                    found.early = counts.early;
                } else if long_enough(table.states[deepest].target_residency_ns) {
                    (found.before, found.best, found.early) = (found.best, Some(deepest), counts.early);
                }
                continue;
            }
            if found.state.is_none() {
                (found.state, found.counts) = (Some(index), counts);
            }
            if state.target_residency_ns > duration_ns {
                break;
            }
            if state.exit_latency_ns > table.latency_req_ns && found.constraint > index {
                found.constraint = index;
            }
            (found.state, found.counts) = (Some(index), counts);
            if found.early < counts.early && long_enough(state.target_residency_ns) {
                (found.before, found.best, found.early) = (found.best, Some(index), counts.early);
            }
        }
        found
    }
}
