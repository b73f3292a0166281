//! The menu governor (drivers/cpuidle/governors/menu.c).
//!
//! Two predictions of the coming idle time compete: the time to the next timer, corrected by how wrong that was in the
//! past, and the typical length of the last eight idles. The governor enters the deepest state whose target residency
//! fits.

mod intervals;

use super::table::StateTable;
use super::{Choice, IdleRules, MenuIowait, MenuOutliers, MenuRejected, MenuRule, MenuStopped, Outlook};
use super::{RESIDENCY_THRESHOLD_NS, SAFE_TIMER_TICKS, Usage};
use intervals::Intervals;
use units::unlikely;

/// Idles with and without tasks in iowait, by order of magnitude of the time to the next timer.
const BUCKETS: usize = 12;
const RESOLUTION: u64 = 1024;
const DECAY: u64 = 8;
/// In microseconds; an idle this long counts as a perfect prediction.
const MAX_INTERESTING_US: u64 = 50_000;
/// KTIME_MAX.
const NEVER_NS: u64 = i64::MAX as u64;

/// menu.c: struct menu_device, one per CPU.
/// Differs: starts as if booted some time ago.
#[derive(Clone, Debug)]
pub(super) struct Menu {
    /// There has been an idle from which the next choice is to learn, in the state entered last.
    needs_update: bool,
    tick_wakeup: bool,
    bucket: u8,
    last_state: u8,
    correction_factor: [u32; BUCKETS],
    intervals: Intervals,
    /// In microseconds until v4.16, in nanoseconds since.
    next_timer: u64,
}

impl Menu {
    pub fn new() -> Menu {
        Menu {
            needs_update: false,
            tick_wakeup: false,
            bucket: 0,
            last_state: 0,
            correction_factor: [(RESOLUTION * DECAY) as u32; BUCKETS],
            intervals: Intervals::after_boot(),
            next_timer: 0,
        }
    }

    /// menu.c: menu_select().
    #[inline]
    pub fn menu_select(&mut self, rules: &IdleRules, table: &StateTable, usage: &Usage, outlook: &Outlook) -> Choice {
        match rules.menu {
            MenuRule::Interactivity | MenuRule::NextTimerOff | MenuRule::NextTimer => {
                self.menu_select_us(rules, table, usage, outlook)
            }
            _ => self.menu_select_ns(rules, table, usage, outlook),
        }
    }

    /// menu.c: menu_select() until v4.16, which reckons in microseconds and has no say about the tick.
    /// Differs: an idle CPU's queue has no load, so the load has no part in the performance multiplier. An overdue
    /// timer is 0 us away; the kernel takes the negative time for more than an hour.
    fn menu_select_us(&mut self, rules: &IdleRules, table: &StateTable, usage: &Usage, outlook: &Outlook) -> Choice {
        if self.needs_update {
            self.needs_update = false;
            self.menu_update_us(table, usage);
        }
        let mut latency_req = table.latency_req_ns / 1000;
        if latency_req == 0 {
            return Choice::of(0);
        }
        let next_timer_us = outlook.sleep_length_ns / 1000;
        self.next_timer = next_timer_us;
        let iowaiters = counted_iowaiters(rules, outlook);
        self.bucket = which_bucket(next_timer_us, iowaiters);
        let factor = u64::from(self.correction_factor[usize::from(self.bucket)]);
        let corrected = (next_timer_us * factor + RESOLUTION * DECAY / 2) / (RESOLUTION * DECAY);
        let multiplier = performance_multiplier(iowaiters);
        let states = &table.states;
        let polls = states[0].polling;
        let (predicted_us, first) = if rules.menu == MenuRule::Interactivity {
            // A typical interval replaces the corrected timer, even if it is longer.
            let typical = self.intervals.get_typical_interval_by_root();
            let predicted = typical.filter(|&typical| next_timer_us > typical).unwrap_or(corrected);
            let interactivity_req = by_multiplier(predicted, multiplier);
            latency_req = latency_req.min(interactivity_req);
            (predicted, polls && interactivity_req > 20 && !states[1].disabled)
        } else {
            let typical = self.intervals.get_typical_interval(u64::from(u32::MAX)).unwrap_or(u64::MAX);
            let predicted = corrected.min(typical).min(next_timer_us);
            let c1 = &states[1];
            let far = next_timer_us > c1.target_residency_us.max(20);
            let first = polls && far && latency_req > c1.exit_latency_us && !c1.disabled;
            latency_req = latency_req.min(by_multiplier(predicted, multiplier));
            (predicted, first)
        };
        let mut chosen = usize::from(first);
        if rules.menu == MenuRule::NextTimer
            && let Some(enabled) = (chosen..states.len()).find(|&index| !states[index].disabled)
        {
            chosen = enabled;
        }
        for (index, state) in states.iter().enumerate().skip(chosen + 1) {
            if state.disabled {
                continue;
            }
            if state.target_residency_us <= predicted_us && state.exit_latency_us <= latency_req {
                chosen = index;
            } else if rules.menu != MenuRule::Interactivity {
                break;
            }
        }
        Choice::of(chosen)
    }

    /// menu.c: menu_select() since v4.17: decides about the tick as well.
    /// Differs: computes in nanoseconds; kernels before v5.6 did in whole microseconds.
    fn menu_select_ns(&mut self, rules: &IdleRules, table: &StateTable, usage: &Usage, outlook: &Outlook) -> Choice {
        if self.needs_update {
            self.needs_update = false;
            self.menu_update_ns(rules.menu, table, usage);
        } else if rules.menu_rejected == MenuRejected::Forgets && usage.last_residency_ns == 0 {
            self.intervals.menu_update_intervals(u32::MAX);
        }
        let mut latency_req = table.latency_req_ns;
        let before = matches!(rules.menu, MenuRule::TickBound | MenuRule::TickNextTimer);
        if before && latency_req == 0 {
            return Choice { state: 0, stop_tick: false, looked_at_timers: false };
        }
        let (mut predicted_ns, delta_tick, looked_at_timers) = match rules.menu {
            MenuRule::TypicalAlone | MenuRule::TypicalUncapped | MenuRule::TypicalShallow | MenuRule::TypicalFirst => {
                self.predict_typical_first(rules, table, outlook)
            }
            _ => {
                let predicted = self.predict_by_timer(rules, outlook, None);
                (predicted, outlook.delta_tick_ns, true)
            }
        };
        let states = &table.states;
        if !before
            && (latency_req == 0
                || ((self.next_timer < states[1].target_residency_ns || latency_req < states[1].exit_latency_ns)
                    && !states[0].disabled))
        {
            // The first state is the only choice, and a CPU that polls keeps its tick.
            let stop_tick = rules.menu != MenuRule::TickRetained && !states[0].polling;
            return Choice { state: 0, stop_tick, looked_at_timers };
        }
        let stopped = outlook.tick_stopped;
        if rules.menu != MenuRule::TypicalFirst
            && stopped
            && predicted_ns < table.tick_ns
            && self.may_stay_long(rules, table)
        {
            // Without a tick the CPU could stay in a shallow state for long.
            let most = if rules.menu == MenuRule::TickBound { table.tick_ns } else { NEVER_NS };
            predicted_ns = self.next_timer.min(most);
        } else if !is_uncapped(rules.menu) && !stopped {
            let multiplier = performance_multiplier(counted_iowaiters(rules, outlook));
            latency_req = latency_req.min(by_multiplier(predicted_ns, multiplier));
        }
        // The limit of users counts, not that of the prediction.
        let c1 = &states[1];
        let first = before
            && states[0].polling
            && self.next_timer > c1.target_residency_ns.max(20_000)
            && table.latency_req_ns > c1.exit_latency_ns
            && !c1.disabled;
        let search = Search {
            first: usize::from(first),
            rule: rules.menu,
            table,
            latency_req,
            next_timer: self.next_timer,
            delta_tick,
            stopped,
        };
        let (state, stop_tick) = search.deepest(predicted_ns);
        Choice { state, stop_tick, looked_at_timers }
    }

    /// The shorter of the corrected timer and the typical interval (`None`: to be found here), in nanoseconds.
    #[inline]
    fn predict_by_timer(&mut self, rules: &IdleRules, outlook: &Outlook, typical_us: Option<u64>) -> u64 {
        self.next_timer = outlook.sleep_length_ns;
        self.bucket = which_bucket(self.next_timer / 1000, counted_iowaiters(rules, outlook));
        let factor = u64::from(self.correction_factor[usize::from(self.bucket)]);
        let unit = RESOLUTION * DECAY * 1000;
        let predicted_us = (self.next_timer * factor + unit / 2) / unit;
        let most = i32::MAX as u64;
        let typical = typical_us.or_else(|| self.intervals.get_typical_interval(most)).unwrap_or(u32::MAX.into());
        predicted_us.min(typical) * 1000
    }

    /// The prediction of v6.6 and later, the time to the tick to be used with it, and whether timers were looked at.
    fn predict_typical_first(&mut self, rules: &IdleRules, table: &StateTable, outlook: &Outlook) -> (u64, u64, bool) {
        let typical = match rules.menu_outliers {
            MenuOutliers::Longest => self.intervals.get_typical_interval_of_some_time(i32::MAX as u64),
            MenuOutliers::EitherSideOrMost => self.intervals.get_typical_interval_by_squares(true),
            MenuOutliers::EitherSide => self.intervals.get_typical_interval_by_squares(false),
        };
        let typical = typical.unwrap_or(u32::MAX.into());
        let alone = rules.menu != MenuRule::TypicalFirst;
        if typical * 1000 <= RESIDENCY_THRESHOLD_NS && (alone || !outlook.tick_stopped) {
            self.next_timer = NEVER_NS;
            self.bucket = which_bucket(NEVER_NS / 1000, counted_iowaiters(rules, outlook));
            return (typical * 1000, table.tick_ns / 2, false);
        }
        let predicted = self.predict_by_timer(rules, outlook, Some(typical));
        let stuck = !alone && outlook.tick_stopped && predicted < table.tick_ns && self.may_stay_long(rules, table);
        (if stuck { self.next_timer } else { predicted }, outlook.delta_tick_ns, true)
    }

    /// Whether nothing is sure to end a shallow state soon while the tick is stopped.
    fn may_stay_long(&self, rules: &IdleRules, table: &StateTable) -> bool {
        match rules.menu_stopped {
            MenuStopped::Distrusts => true,
            MenuStopped::NearTimer => self.next_timer > SAFE_TIMER_TICKS * table.tick_ns,
        }
    }

    /// menu.c: menu_reflect().
    #[inline]
    pub fn menu_reflect(&mut self, usage: &mut Usage, state: usize, got_tick: bool) {
        usage.last_state = Some(state as u8);
        self.last_state = state as u8;
        self.needs_update = true;
        self.tick_wakeup = got_tick;
    }

    /// menu.c: menu_update() until v4.16.
    fn menu_update_us(&mut self, table: &StateTable, usage: &Usage) {
        let exit_latency = table.states[usize::from(self.last_state)].exit_latency_us;
        let residency = usage.last_residency_ns / 1000;
        let measured = if residency > 2 * exit_latency { residency - exit_latency } else { residency / 2 };
        let measured = measured.min(self.next_timer);
        self.learn(measured, MAX_INTERESTING_US);
        self.intervals.menu_update_intervals(measured as u32);
    }

    /// menu.c: menu_update() since v4.17.
    fn menu_update_ns(&mut self, rule: MenuRule, table: &StateTable, usage: &Usage) {
        const MAX_INTERESTING_NS: u64 = MAX_INTERESTING_US * 1000;
        let state = &table.states[usize::from(self.last_state)];
        let measured = if self.tick_wakeup && self.next_timer > table.tick_ns {
            // Without the tick the CPU would have slept on, for long but not for ever.
            9 * MAX_INTERESTING_NS / 10
        } else if state.polling && usage.poll_time_limit && rule != MenuRule::TickBound {
            self.next_timer
        } else if usage.last_residency_ns > 2 * state.exit_latency_ns {
            usage.last_residency_ns - state.exit_latency_ns
        } else {
            usage.last_residency_ns / 2
        };
        let measured = measured.min(self.next_timer);
        self.learn(measured, MAX_INTERESTING_NS);
        self.intervals.menu_update_intervals((measured / 1000) as u32);
    }

    /// The part of menu_update() that corrects the timer: a decaying average of measured over expected time.
    fn learn(&mut self, measured: u64, max_interesting: u64) {
        let factor = &mut self.correction_factor[usize::from(self.bucket)];
        *factor -= *factor / DECAY as u32;
        *factor += if self.next_timer > 0 && measured < max_interesting {
            (RESOLUTION * measured / self.next_timer) as u32
        } else {
            RESOLUTION as u32
        };
    }
}

/// The last part of menu_select() since v4.17.
struct Search<'a> {
    rule: MenuRule,
    /// The shallowest state that may be chosen.
    first: usize,
    table: &'a StateTable,
    latency_req: u64,
    next_timer: u64,
    delta_tick: u64,
    stopped: bool,
}

impl Search<'_> {
    /// The deepest state that fits `predicted_ns`, and whether the tick is to stop.
    fn deepest(&self, mut predicted_ns: u64) -> (usize, bool) {
        let states = &self.table.states;
        let mut chosen = None;
        for (index, state) in states.iter().enumerate().skip(self.first).filter(|(_, state)| !state.disabled) {
            let so_far = *chosen.get_or_insert(index);
            let too_slow = state.exit_latency_ns > self.latency_req;
            if state.target_residency_ns <= predicted_ns {
                if too_slow {
                    if matches!(self.rule, MenuRule::TickBound | MenuRule::TickNextTimer | MenuRule::TickRetained) {
                        // The tick goes on for as long as the state so far takes.
                        predicted_ns = states[so_far].target_residency_ns;
                    }
                    break;
                }
                chosen = Some(index);
                continue;
            }
            if self.rule == MenuRule::TickBound || (is_uncapped(self.rule) && too_slow) {
                break;
            }
            if states[so_far].polling && self.instead_of_polling(index, predicted_ns) {
                predicted_ns = state.target_residency_ns;
                chosen = Some(index);
                break;
            }
            if predicted_ns < self.table.tick_ns {
                break;
            }
            if !self.stopped {
                // If the tick wakes the CPU early from a shallow state, the governor chooses again.
                predicted_ns = states[so_far].target_residency_ns;
                break;
            }
            let shallow = states[so_far].target_residency_ns < self.table.tick_ns;
            let deeper = shallow && state.target_residency_ns <= self.delta_tick;
            return (if deeper { index } else { so_far }, true);
        }
        let chosen = chosen.unwrap_or(0);
        let goes_on = (states[chosen].polling || predicted_ns < self.table.tick_ns) && !self.stopped;
        if !goes_on {
            return (chosen, true);
        }
        if chosen > 0 && states[chosen].target_residency_ns > self.delta_tick {
            let fits = self.table.shallower(chosen, |state| state.target_residency_ns <= self.delta_tick);
            return (fits, false);
        }
        (chosen, false)
    }

    /// Whether a state that is deeper than the prediction allows is better than polling.
    fn instead_of_polling(&self, index: usize, predicted_ns: u64) -> bool {
        let state = &self.table.states[index];
        let timer_is_far = state.target_residency_ns <= self.next_timer;
        match self.rule {
            MenuRule::TickNextTimer => false,
            MenuRule::TypicalShallow | MenuRule::TypicalFirst => {
                timer_is_far
                    && state.target_residency_ns < RESIDENCY_THRESHOLD_NS
                    && state.exit_latency_ns <= predicted_ns
            }
            _ => timer_is_far && state.exit_latency_ns <= self.latency_req,
        }
    }
}

/// Whether the exit latency is limited by users alone, not by the prediction.
fn is_uncapped(rule: MenuRule) -> bool {
    matches!(rule, MenuRule::TypicalUncapped | MenuRule::TypicalShallow | MenuRule::TypicalFirst)
}

fn counted_iowaiters(rules: &IdleRules, outlook: &Outlook) -> u32 {
    if rules.menu_iowait == MenuIowait::Counts { outlook.nr_iowaiters } else { 0 }
}

/// menu.c: performance_multiplier(): how many exit latencies the predicted time must last.
fn performance_multiplier(nr_iowaiters: u32) -> u64 {
    1 + 10 * u64::from(nr_iowaiters)
}

/// Divides a time by the multiplier. Mostly no task waits, which saves the host a division for each idle.
#[inline(always)]
fn by_multiplier(time: u64, multiplier: u64) -> u64 {
    if unlikely(multiplier > 1) { time / multiplier } else { time }
}

/// menu.c: which_bucket().
fn which_bucket(duration_us: u64, nr_iowaiters: u32) -> u8 {
    let magnitude = match duration_us {
        0..10 => 0,
        10..100 => 1,
        100..1_000 => 2,
        1_000..10_000 => 3,
        10_000..100_000 => 4,
        _ => 5,
    };
    if nr_iowaiters > 0 { magnitude + BUCKETS as u8 / 2 } else { magnitude }
}
