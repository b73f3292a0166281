//! The timer events oriented governor (drivers/cpuidle/governors/teo.c).
//!
//! Every idle state has a bin. If the idle's length falls into the same bin as the next timer, it is a hit in that bin;
//! if the idle ended earlier, it is an intercept in the bin of its own length. Both counts decay. Where intercepts
//! outweigh, the governor chooses a shallower state than the timer allows.

mod early_hits;
mod hits;
mod short_idles;
mod tick_intercepts;
mod utilized;

use super::table::StateTable;
use super::{Choice, IdleRules, Outlook, RESIDENCY_THRESHOLD_NS, TeoRule, TeoStopped, Usage, Woken};

const PULSE: u32 = 1024;
const DECAY_SHIFT: u32 = 3;
const NR_RECENT: usize = 9;
/// KTIME_MAX.
const NEVER_NS: u64 = i64::MAX as u64;

/// teo.c: struct teo_bin.
#[derive(Clone, Copy, Default, Debug)]
struct Bin {
    intercepts: u32,
    hits: u32,
    /// How many of the last nine events were intercepts in this bin.
    recent: u32,
}

/// Sums over the bins of all shallower states.
#[derive(Clone, Copy, Default, Debug)]
struct Sums {
    intercepts: u32,
    hits: u32,
    recent: u32,
}

impl Sums {
    fn add(&mut self, bin: &Bin) {
        self.intercepts += bin.intercepts;
        self.hits += bin.hits;
        self.recent = self.recent.wrapping_add(bin.recent);
    }
}

/// teo.c: struct teo_cpu.
#[derive(Clone, Debug)]
pub(super) struct Teo {
    /// The time from the choice to the wakeup; until the wakeup, when the choice was made.
    time_span_ns: u64,
    sleep_length_ns: u64,
    bins: Vec<Bin>,
    total: u32,
    /// Hits after more than a tick, if no state needs that long.
    tick_hits: u32,
    recent: [Option<u8>; NR_RECENT],
    next_recent: usize,
    ticks: short_idles::Ticks,
    early: hits::EarlyWakeups,
}

/// The deepest candidate, and the sums over the bins on the way to it.
struct Candidate {
    /// `None`: no state is enabled.
    state: Option<usize>,
    first: usize,
    /// The deepest state whose exit latency is allowed.
    constraint: usize,
    /// Over the bins before the candidate.
    sums: Sums,
    /// Over all bins that were passed.
    passed: Sums,
}

impl Teo {
    /// teo.c: what teo_enable_device() begins with.
    pub fn new(table: &StateTable) -> Teo {
        Teo {
            time_span_ns: 0,
            sleep_length_ns: 0,
            bins: vec![Bin::default(); table.states.len()],
            total: 0,
            tick_hits: 0,
            recent: [None; NR_RECENT],
            next_recent: 0,
            ticks: short_idles::Ticks::default(),
            early: hits::EarlyWakeups::new(table),
        }
    }

    /// teo.c: the part of teo_update() that finds out how long the idle was, without the exit latency.
    fn measured_ns(&self, table: &StateTable, usage: &Usage, last: usize) -> u64 {
        if self.time_span_ns >= self.sleep_length_ns {
            return u64::MAX;
        }
        let latency = table.states[last].exit_latency_ns;
        let residency = usage.last_residency_ns;
        if residency >= latency { residency - latency / 2 } else { residency / 2 }
    }

    /// teo.c: the part of teo_update() that decays the bins and finds the bins of the timer and of the idle.
    fn decay(&mut self, table: &StateTable, measured_ns: u64) -> (usize, usize) {
        let (mut timer, mut duration) = (0, 0);
        self.total = 0;
        for (index, (bin, state)) in self.bins.iter_mut().zip(&table.states).enumerate() {
            bin.hits -= bin.hits >> DECAY_SHIFT;
            bin.intercepts -= bin.intercepts >> DECAY_SHIFT;
            self.total += bin.hits + bin.intercepts;
            if state.target_residency_ns <= self.sleep_length_ns {
                timer = index;
                if state.target_residency_ns <= measured_ns {
                    duration = index;
                }
            }
        }
        (timer, duration)
    }

    /// teo.c: teo_update() as in v6.1.
    fn teo_update_recent(&mut self, table: &StateTable, usage: &Usage, last: usize) {
        let (timer, duration) = self.decay(table, self.measured_ns(table, usage, last));
        let place = self.next_recent;
        self.next_recent = (place + 1) % NR_RECENT;
        if let Some(oldest) = self.recent[place] {
            self.bins[usize::from(oldest)].recent -= 1;
        }
        if timer == duration {
            self.bins[timer].hits += PULSE;
            self.recent[place] = None;
        } else {
            self.bins[duration].intercepts += PULSE;
            self.bins[duration].recent += 1;
            self.recent[place] = Some(duration as u8);
        }
        self.total += PULSE;
    }

    /// teo.c: teo_update() of v6.12.
    fn teo_update_intercepts(&mut self, table: &StateTable, usage: &Usage, last: usize) {
        let measured = self.measured_ns(table, usage, last);
        let (timer, duration) = self.decay(table, measured);
        self.total += PULSE;
        let Some(timer) = self.count_tick(table, measured, timer) else { return };
        if timer == duration {
            self.bins[timer].hits += PULSE;
        } else {
            self.bins[duration].intercepts += PULSE;
        }
    }

    /// The part of teo_update() of v6.6 to v6.12 for idles of a tick and more, which have one more bin, with hits only, where no
    /// state is as long. `None` if this idle was a hit there, else the timer's bin.
    fn count_tick(&mut self, table: &StateTable, measured_ns: u64, timer: usize) -> Option<usize> {
        let deepest = table.states.last().map_or(0, |state| state.target_residency_ns);
        if deepest >= table.tick_ns {
            return Some(timer);
        }
        self.tick_hits -= self.tick_hits >> DECAY_SHIFT;
        self.total += self.tick_hits;
        if table.tick_ns > self.sleep_length_ns {
            return Some(timer);
        }
        if table.tick_ns > measured_ns {
            return Some(table.states.len());
        }
        self.tick_hits += PULSE;
        None
    }

    /// Sums the bins up to the deepest enabled state whose target residency is at most `duration_ns`.
    fn candidate(&self, table: &StateTable, duration_ns: u64, shallowest_enabled: bool) -> Candidate {
        let mut found = Candidate {
            state: shallowest_enabled.then_some(0),
            first: 0,
            constraint: 0,
            sums: Sums::default(),
            passed: Sums::default(),
        };
        for (index, state) in table.states.iter().enumerate().skip(1) {
            found.passed.add(&self.bins[index - 1]);
            if state.disabled {
                continue;
            }
            if found.state.is_none() {
                (found.state, found.first) = (Some(index), index);
            }
            if state.target_residency_ns > duration_ns {
                break;
            }
            found.state = Some(index);
            if state.exit_latency_ns <= table.latency_req_ns {
                found.constraint = index;
            }
            found.sums = found.passed;
        }
        found
    }

    /// teo.c: teo_select() from v5.14 on, as in v6.1; with what v6.3 does where the CPU is `utilized`.
    pub fn teo_select_recent(
        &mut self,
        table: &StateTable,
        usage: &mut Usage,
        outlook: &Outlook,
        utilized: bool,
    ) -> Choice {
        if let Some(last) = usage.last_state.take() {
            self.teo_update_recent(table, usage, last.into());
        }
        self.time_span_ns = outlook.now_ns;
        let mut duration = outlook.sleep_length_ns;
        self.sleep_length_ns = duration;
        let states = &table.states;
        let shallowest = !states[0].disabled;
        if shallowest && states[1].target_residency_ns > duration {
            return end_recent(table, outlook, 0, 0, duration);
        }
        if states.len() < 3 && utilized {
            let sleeps = states.iter().position(|state| !state.disabled && !state.polling);
            if let Some(shallowest) = sleeps {
                return end_recent(table, outlook, shallowest, 0, duration);
            }
        }
        let found = self.candidate(table, duration, shallowest);
        let mut chosen = match found.state {
            Some(state) if state != found.first => state,
            other => return end_recent(table, outlook, other.unwrap_or(0), found.first, duration),
        };
        let alt_intercepts = 2 * found.sums.intercepts > self.total - found.sums.hits;
        let alt_recent = found.sums.recent > NR_RECENT as u32 / 2;
        if alt_intercepts || alt_recent {
            let wanted = Wanted { sums: found.sums, alt_intercepts, alt_recent };
            (chosen, duration) = self.intercepted_recent(table, outlook, chosen, duration, &wanted);
        }
        chosen = chosen.min(found.constraint);
        if utilized {
            chosen = shallower_sleep(table, chosen, duration);
        }
        end_recent(table, outlook, chosen, found.first, duration)
    }

    /// The deepest state that would have been right for more than half of the early wakeups, and its idle duration.
    fn intercepted_recent(
        &self,
        table: &StateTable,
        outlook: &Outlook,
        candidate: usize,
        duration_ns: u64,
        wanted: &Wanted,
    ) -> (usize, u64) {
        let states = &table.states;
        let long_enough = |span: u64| !outlook.tick_stopped || span >= table.tick_ns;
        let mut suitable = (candidate, duration_ns);
        let mut sums = Sums::default();
        for index in (0..candidate).rev() {
            sums.add(&self.bins[index]);
            // teo.c: teo_middle_of_bin()
            let span = (states[index].target_residency_ns + states[index + 1].target_residency_ns) / 2;
            let usable = long_enough(span) && !states[index].disabled;
            if wanted.are_half(&sums) {
                return if usable { (index, span) } else { suitable };
            }
            if states[index].disabled {
                continue;
            }
            if !long_enough(span) {
                if suitable.0 != candidate {
                    continue;
                }
                break;
            }
            suitable = (index, span);
        }
        (candidate, duration_ns)
    }

    /// teo.c: teo_select() of v6.12.
    pub fn teo_select_intercepts(
        &mut self,
        rules: &IdleRules,
        table: &StateTable,
        usage: &mut Usage,
        outlook: &Outlook,
    ) -> Choice {
        if let Some(last) = usage.last_state.take() {
            self.teo_update_intercepts(table, usage, last.into());
        }
        self.time_span_ns = outlook.now_ns;
        self.sleep_length_ns = NEVER_NS;
        let states = &table.states;
        let found = self.candidate_of_all(table);
        let mut chosen = match of_several(table, outlook, found.state, found.first) {
            Ok(deepest) => deepest,
            Err(choice) => return choice,
        };
        let deepest = chosen;
        if 2 * found.sums.intercepts > self.total - found.sums.hits {
            chosen = self.intercepted(table, outlook, chosen, found.sums.intercepts);
        }
        if chosen == 0 && deepest > 0 {
            // Whether that was right shows only when the timer is known.
            self.sleep_length_ns = outlook.sleep_length_ns;
            return keep(0, true);
        }
        chosen = chosen.min(found.constraint);
        if chosen == 0 || (states[0].polling && states[chosen].target_residency_ns < RESIDENCY_THRESHOLD_NS) {
            return keep(chosen, false);
        }
        let mut duration = outlook.sleep_length_ns;
        self.sleep_length_ns = duration;
        chosen = before_timer(rules, table, outlook, chosen, duration);
        let before_tick = found.passed.intercepts + self.bins.last().map_or(0, |bin| bin.intercepts);
        if states[chosen].target_residency_ns < table.tick_ns && before_tick > self.total / 2 + self.total / 8 {
            duration = table.tick_ns / 2;
        }
        end_intercepts(table, outlook, (chosen, found.first), duration, outlook.delta_tick_ns, true)
    }

    /// [`Teo::candidate`] of v6.12: the deepest enabled state, whatever the timer says. `first` stays 0 if state 0 is
    /// enabled.
    fn candidate_of_all(&self, table: &StateTable) -> Candidate {
        self.candidate(table, u64::MAX, !table.states[0].disabled)
    }

    /// The deepest state that would have been right for more than half of the early wakeups.
    fn intercepted(&self, table: &StateTable, outlook: &Outlook, candidate: usize, intercepts: u32) -> usize {
        let states = &table.states;
        // teo.c: teo_state_ok()
        let long_enough = |index: usize| !outlook.tick_stopped || states[index].target_residency_ns >= table.tick_ns;
        let (mut suitable, mut sum) = (candidate, 0);
        for index in (0..candidate).rev() {
            sum += self.bins[index].intercepts;
            if 2 * sum > intercepts {
                return if long_enough(index) && !states[index].disabled { index } else { suitable };
            }
            if states[index].disabled {
                continue;
            }
            if !long_enough(index) {
                if suitable != candidate {
                    continue;
                }
                break;
            }
            suitable = index;
        }
        candidate
    }

    /// teo.c: teo_reflect().
    pub fn teo_reflect(&mut self, rule: TeoRule, table: &StateTable, usage: &mut Usage, state: usize, woken: Woken) {
        usage.last_state = Some(state as u8);
        if matches!(rule, TeoRule::TickWakeups | TeoRule::MostIntercepts | TeoRule::ShortIdles) {
            self.ticks.tick_wakeup = woken.got_tick;
            return;
        }
        let artificial = usage.poll_time_limit || (woken.got_tick && self.sleep_length_ns > table.tick_ns);
        if artificial {
            usage.poll_time_limit = false;
        }
        if rule == TeoRule::TickIntercepts {
            self.ticks.artificial_wakeup = artificial;
        } else if artificial {
            self.time_span_ns = self.sleep_length_ns;
        } else {
            self.time_span_ns = woken.now_ns - self.time_span_ns;
        }
    }
}

/// What indicates that an early wakeup is likely.
struct Wanted {
    sums: Sums,
    alt_intercepts: bool,
    alt_recent: bool,
}

impl Wanted {
    fn are_half(&self, sums: &Sums) -> bool {
        (!self.alt_recent || 2 * sums.recent > self.sums.recent)
            && (!self.alt_intercepts || 2 * sums.intercepts > self.sums.intercepts)
    }
}

/// teo.c: teo_find_shallower_state() of v6.3 with `no_poll`: a state below `from` that does not poll, and still lower ones
/// as long as they are worth it only for more than `duration_ns`.
fn shallower_sleep(table: &StateTable, from: usize, duration_ns: u64) -> usize {
    let mut found = from;
    for (index, state) in table.states[..from].iter().enumerate().rev() {
        if state.disabled || state.polling {
            continue;
        }
        found = index;
        if state.target_residency_ns <= duration_ns {
            break;
        }
    }
    found
}

/// The part of teo_select() that takes a shallower state than `chosen` where the timer comes too early for it.
fn before_timer(rules: &IdleRules, table: &StateTable, outlook: &Outlook, chosen: usize, duration_ns: u64) -> usize {
    if table.states[chosen].target_residency_ns <= duration_ns {
        return chosen;
    }
    let shallower = table.shallower(chosen, |state| state.target_residency_ns <= duration_ns);
    let stays = rules.teo_stopped == TeoStopped::Stays
        && outlook.tick_stopped
        && table.states[shallower].target_residency_ns < table.tick_ns;
    if stays { chosen } else { shallower }
}

/// The end of teo_select() as in v6.1.
fn end_recent(table: &StateTable, outlook: &Outlook, chosen: usize, first: usize, duration_ns: u64) -> Choice {
    let states = &table.states;
    if (!states[chosen].polling && duration_ns >= table.tick_ns) || outlook.tick_stopped {
        return Choice::of(chosen);
    }
    let state = within_tick(table, chosen, first, outlook.delta_tick_ns);
    Choice { state, stop_tick: false, looked_at_timers: true }
}

/// The choice of a state with which the tick goes on.
fn keep(state: usize, looked_at_timers: bool) -> Choice {
    Choice { state, stop_tick: false, looked_at_timers }
}

/// Where teo_select() begins since v6.12: the deepest enabled state, or what is chosen if there is none but the `first`.
fn of_several(table: &StateTable, outlook: &Outlook, deepest: Option<usize>, first: usize) -> Result<usize, Choice> {
    match deepest {
        None => Err(keep(0, false)),
        Some(only) if only == first => {
            let duration = table.states[only].target_residency_ns;
            Err(end_intercepts(table, outlook, (only, first), duration, table.tick_ns / 2, false))
        }
        Some(deepest) => Ok(deepest),
    }
}

/// The same in v6.12. `chosen`: the chosen state, and the first enabled one.
fn end_intercepts(
    table: &StateTable,
    outlook: &Outlook,
    (chosen, first): (usize, usize),
    duration_ns: u64,
    delta_tick_ns: u64,
    looked_at_timers: bool,
) -> Choice {
    if (!table.states[chosen].polling && duration_ns >= table.tick_ns) || outlook.tick_stopped {
        return Choice { state: chosen, stop_tick: true, looked_at_timers };
    }
    Choice { state: within_tick(table, chosen, first, delta_tick_ns), stop_tick: false, looked_at_timers }
}

/// The tick goes on, so a state with a target residency beyond the next tick is too deep.
fn within_tick(table: &StateTable, chosen: usize, first: usize, delta_tick_ns: u64) -> usize {
    if chosen > first && table.states[chosen].target_residency_ns > delta_tick_ns {
        return table.shallower(chosen, |state| state.target_residency_ns <= delta_tick_ns);
    }
    chosen
}
