//! teo as in v5.1 to v5.3: what v5.4 counts, but disabled states have no say, a long exit latency ends the search, and the
//! recent idles are compared with the state that was found.

use super::{Choice, Outlook, StateTable, Teo, Usage, end_recent};

impl Teo {
    /// teo.c: teo_select() of v5.1 to v5.3. The ring of recent idles has a ninth place there, beyond its end.
    pub fn teo_select_early_hits(&mut self, table: &StateTable, usage: &mut Usage, outlook: &Outlook) -> Choice {
        self.learn_from_last(table, usage, outlook, 1);
        let states = &table.states;
        let long_enough = |ns: u64| !outlook.tick_stopped || ns >= table.tick_ns;
        let (state, mut duration) = self.early_candidate(table, outlook.sleep_length_ns, long_enough);
        let mut chosen = state.unwrap_or(0);
        if chosen > 0
            && let Some(usual) = self.early.usual_ns(states[chosen].target_residency_ns)
            && long_enough(usual)
        {
            duration = usual;
            chosen = table.shallower(chosen, |state| state.target_residency_ns <= usual);
        }
        end_recent(table, outlook, chosen, 0, duration)
    }

    /// The state by timer and counts (`None`: none is enabled), and for how long an idle it is.
    fn early_candidate(
        &self,
        table: &StateTable,
        duration_ns: u64,
        long_enough: impl Fn(u64) -> bool,
    ) -> (Option<usize>, u64) {
        let (mut found, mut best, mut early) = (None, None, 0);
        for (index, state) in table.states.iter().enumerate() {
            let counts = self.early.states[index];
            if state.disabled {
                if best.is_some() {
                    early = early.max(counts.early);
                }
                continue;
            }
            let so_far = *found.get_or_insert(index);
            if state.target_residency_ns > duration_ns {
                break;
            }
            if state.exit_latency_ns > table.latency_req_ns {
                // The tick goes on for as long as the state so far takes.
                return (found, table.states[so_far].target_residency_ns);
            }
            found = Some(index);
            if early < counts.early && long_enough(state.target_residency_ns) {
                (best, early) = (found, counts.early);
            }
        }
        let misses = |state: usize| self.early.states[state].hits <= self.early.states[state].misses;
        match best.filter(|_| found.is_some_and(misses)) {
            Some(best) => (Some(best), table.states[best].target_residency_ns),
            None => (found, duration_ns),
        }
    }
}
