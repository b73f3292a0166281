//! The governors' answers against values derived by hand from their sources.

use super::table::IdleOptions;
use super::*;
use crate::prices::IdleState;
use sched::behaviour::Rules;
use sched::versions::Switched;

mod kernel;

/// Haswell's table as intel_idle declares it.
fn haswell() -> Vec<IdleState> {
    [("POLL", 0, 0), ("C1", 2, 2), ("C1E", 10, 20), ("C3", 33, 100), ("C6", 133, 400)]
        .map(|(name, exit, residency)| IdleState::declared(name, exit, residency))
        .to_vec()
}

/// A CPU that idles by `rules`.
struct Idler {
    cpuidle: Cpuidle,
    device: Device,
    now_us: u64,
    tick_stopped: bool,
    iowaiters: u32,
    utilized: bool,
}

impl Idler {
    fn new(rules: IdleRules) -> Idler {
        Idler::with(rules, &IdleOptions::default())
    }

    fn with(rules: IdleRules, options: &IdleOptions) -> Idler {
        let cpuidle = Cpuidle { rules, table: StateTable::new(&haswell(), options) };
        let device = cpuidle.device();
        Idler { cpuidle, device, now_us: 0, tick_stopped: false, iowaiters: 0, utilized: false }
    }

    fn select(&mut self, next_timer_us: u64, tick_us: u64) -> Choice {
        let outlook = Outlook {
            now_ns: self.now_us * 1000,
            sleep_length_ns: next_timer_us * 1000,
            delta_tick_ns: if self.tick_stopped { next_timer_us } else { next_timer_us.min(tick_us) } * 1000,
            tick_stopped: self.tick_stopped,
            nr_iowaiters: self.iowaiters,
            utilized: self.utilized,
        };
        self.cpuidle.select(&mut self.device, &outlook)
    }

    fn woken(&mut self, state: usize, idle_us: u64, got_tick: bool) {
        self.now_us += idle_us;
        let woken = Woken { now_ns: self.now_us * 1000, got_tick, poll_time_limit: false };
        self.cpuidle.reflect(&mut self.device, state, idle_us * 1000, woken);
        self.now_us += 1;
    }

    /// The choice after many idles of this length, with the next timer always this far away.
    fn settled(&mut self, next_timer_us: u64, idle_us: u64) -> Choice {
        for _ in 0..64 {
            let choice = self.select(next_timer_us, 4_000);
            self.woken(choice.state, idle_us, false);
        }
        self.select(next_timer_us, 4_000)
    }
}

fn settled(rules: IdleRules, next_timer_us: u64, idle_us: u64) -> usize {
    Idler::new(rules).settled(next_timer_us, idle_us).state
}

#[test]
fn periodic_wakeups_settle_in_the_deepest_state_that_fits() {
    // A millisecond between wakeups: C6 (400 us). 150 us: C3. 60 us: C1E, by every form of the menu governor.
    for rules in [
        IdleRules::V4_5,
        IdleRules::V4_15,
        IdleRules::V6_1,
        IdleRules::V6_6,
        IdleRules::V6_12,
        IdleRules::V6_18,
        IdleRules::V7_2,
    ] {
        assert_eq!(settled(rules, 100_000, 1_000), 4, "{rules:?}");
        assert_eq!(settled(rules, 100_000, 150), 3, "{rules:?}");
        assert_eq!(settled(rules, 100_000, 60), 2, "{rules:?}");
    }
}

#[test]
fn microsecond_idles_poll_until_v4_5_and_halt_since() {
    assert_eq!(settled(IdleRules::V4_5, 4_000, 3), 0);
    assert_eq!(settled(IdleRules::V4_15, 4_000, 7), 1);
    // Three microseconds, exit included, count as one, which is less than C1's target residency. In v4.6 that is no
    // reason to poll unless a timer is near; later forms require C1's exit latency (2 us) to be no more than the
    // prediction.
    let after_c1 = |rules| {
        let mut idler = Idler::new(rules);
        for _ in 0..8 {
            idler.select(4_000, 4_000);
            idler.woken(1, 3, false);
        }
        idler.select(4_000, 4_000).state
    };
    let later = [IdleRules::V4_15, IdleRules::V6_1, IdleRules::V6_6, IdleRules::V6_12];
    assert_eq!(later.map(after_c1), [1, 0, 0, 0]);
    assert_eq!(settled(IdleRules::V6_12, 4_000, 7), 1);
    // A timer at most 20 us away, and a prediction below C1's target residency.
    assert_eq!(settled(IdleRules::V4_15, 1, 1), 0);
    assert_eq!(settled(IdleRules::V4_15, 15, 15), 1);
}

#[test]
fn a_short_prediction_keeps_the_tick_and_a_long_one_does_not() {
    for rules in [IdleRules::V6_1, IdleRules::V6_6, IdleRules::V6_12] {
        let short = Idler::new(rules).settled(100_000, 150);
        assert!(!short.stop_tick, "{rules:?}");
        let long = Idler::new(rules).settled(100_000, 20_000);
        assert_eq!((long.state, long.stop_tick), (4, true), "{rules:?}");
        // With the tick stopped, a prediction shorter than a tick is not believed: 100 ms to the timer, so C6.
        let mut stopped = Idler::new(rules);
        stopped.tick_stopped = true;
        assert_eq!(stopped.settled(100_000, 150).state, 4, "{rules:?}");
        // A millisecond would be enough for C6, but the tick goes on and comes in 50 us: C1E.
        let mut soon = Idler::new(rules);
        soon.settled(100_000, 1_000);
        let choice = soon.select(100_000, 50);
        assert_eq!((choice.state, choice.stop_tick), (2, false), "{rules:?}");
    }
    // Earlier the idle loop did not ask the governor.
    assert!(Idler::new(IdleRules::V4_15).settled(100_000, 150).stop_tick);
}

#[test]
fn in_v4_19_a_state_that_is_too_slow_to_leave_keeps_the_tick_too() {
    // C6 fits, but who is allowed no more than 40 us of latency is left in C3, for 100 us at least.
    for (rules, keeps) in [(IdleRules::V4_19, true), (IdleRules::V5_4, false)] {
        let mut idler = Idler::with(rules, &IdleOptions { latency_us: Some(40), ..IdleOptions::default() });
        let choice = idler.settled(100_000, 20_000);
        assert_eq!((choice.state, choice.stop_tick), (3, !keeps), "{rules:?}");
    }
}

#[test]
fn in_v4_19_only_a_near_timer_lets_it_poll() {
    // Wakeups after 1 us each, and the next timer so far away.
    let state = |rules, next_timer_us| Idler::new(rules).settled(next_timer_us, 1).state;
    let states = [IdleRules::V4_19, IdleRules::V5_4].map(|rules| [15, 100].map(|timer| state(rules, timer)));
    assert_eq!(states, [[0, 1], [0, 0]]);
}

#[test]
fn short_typical_intervals_spare_the_look_at_timers_since_v6_6() {
    for rules in [IdleRules::V6_6, IdleRules::V6_12] {
        assert!(!Idler::new(rules).settled(4_000, 9).looked_at_timers);
    }
    // v6.6 spares it without a tick, too, and then expects to idle for ever.
    let stopped = |rules| {
        let mut idler = Idler::new(rules);
        idler.settled(4_000, 9);
        idler.tick_stopped = true;
        let choice = idler.select(60, 4_000);
        (choice.state, choice.looked_at_timers)
    };
    assert_eq!([IdleRules::V6_6, IdleRules::V6_12].map(stopped), [(4, false), (2, true)]);
    assert!(Idler::new(IdleRules::V6_12).settled(4_000, 40).looked_at_timers);
    assert!(Idler::new(IdleRules::V6_1).settled(4_000, 9).looked_at_timers);
}

#[test]
fn a_short_prediction_is_believed_without_a_tick_where_a_timer_is_near() {
    // Woken after 150 us each time, with the tick stopped. A timer 7 ms away is within two ticks of 4 ms, one 9 ms away
    // is not.
    let state = |rules, next_timer_us| {
        let mut idler = Idler::new(rules);
        idler.tick_stopped = true;
        idler.settled(next_timer_us, 150).state
    };
    for (rules, near) in [(IdleRules::V6_12, 4), (IdleRules::V6_18, 4), (IdleRules::V7_2, 3)] {
        assert_eq!([state(rules, 7_000), state(rules, 9_000)], [near, 4], "{:?}", rules.menu_stopped);
        // v6.1's form of menu with either rule.
        let early = IdleRules { menu_stopped: rules.menu_stopped, ..IdleRules::V6_1 };
        assert_eq!([state(early, 7_000), state(early, 9_000)], [near, 4], "{:?}", rules.menu_stopped);
    }
}

#[test]
fn one_short_idle_makes_menu_expect_another_until_the_farther_outlier_goes() {
    // Seven idles of 2 ms, then one of 5 us, with no timer near: v6.12 drops the seven and chooses C1.
    let state = |rules| {
        let mut idler = Idler::new(rules);
        idler.settled(100_000, 2_000);
        idler.woken(1, 7, false);
        idler.select(100_000, 4_000).state
    };
    let longest = IdleRules { menu_outliers: MenuOutliers::Longest, ..IdleRules::V7_2 };
    assert_eq!([IdleRules::V6_12, longest, IdleRules::V6_18, IdleRules::V7_2].map(state), [1, 1, 4, 4]);
}

#[test]
fn tasks_in_iowait_forbid_slow_states_until_they_are_ignored() {
    // With one such task: predicted 1000 us divided by 11 allow 90 us of exit latency, less than C6's 133.
    for (rules, expected) in [(IdleRules::V4_5, 3), (IdleRules::V4_15, 3), (IdleRules::V6_1, 3), (IdleRules::V6_12, 4)]
    {
        let mut idler = Idler::new(rules);
        idler.iowaiters = 1;
        assert_eq!(idler.settled(100_000, 1_000).state, expected, "{rules:?}");
    }
}

#[test]
fn a_tick_that_wakes_means_the_idle_could_have_been_long() {
    // Always woken by the tick after 300 us, with a timer 100 ms away: this is learned as 45 ms, so in the end the tick
    // is stopped.
    let mut idler = Idler::new(IdleRules::V6_1);
    for _ in 0..16 {
        let choice = idler.select(100_000, 300);
        idler.woken(choice.state, 300, true);
    }
    let choice = idler.select(100_000, 300);
    assert_eq!((choice.state, choice.stop_tick), (4, true));
}

#[test]
fn states_that_were_not_entered_make_late_menus_forget() {
    let after_rejections = |rules, times| {
        let mut idler = Idler::new(rules);
        idler.settled(100_000, 150);
        for _ in 0..times {
            let Idler { cpuidle, device, .. } = &mut idler;
            cpuidle.reject(device);
            idler.select(100_000, 4_000);
        }
        // For a timer of this magnitude no correction was learned: with eight idles of 150 us remembered C3, without
        // them C6.
        idler.select(5_000, 4_000).state
    };
    let remembers = IdleRules { menu_rejected: MenuRejected::Nothing, ..IdleRules::V6_1 };
    for (rules, expected) in
        [(IdleRules::V4_5, 3), (IdleRules::V4_15, 3), (remembers, 3), (IdleRules::V6_1, 4), (IdleRules::V6_12, 4)]
    {
        assert_eq!(after_rejections(rules, 8), expected, "{rules:?}");
        // One rejection leaves enough of them. Both this choice and the next see a rejection, so six are left.
        assert_eq!(after_rejections(rules, 1), 3, "{rules:?}");
    }
}

fn teo(rules: IdleRules) -> IdleRules {
    IdleRules { governor: Governor::Teo, ..rules }
}

#[test]
fn teo_trusts_the_timer_until_intercepts_outweigh() {
    let kernels = [IdleRules::V5_10, IdleRules::V6_1, IdleRules::V6_6, IdleRules::V6_12, IdleRules::V7_2];
    for rules in kernels.map(teo) {
        // Without experience: the deepest state that the timer allows.
        assert_eq!(Idler::new(rules).select(100_000, 4_000).state, 4);
        assert_eq!(Idler::new(rules).select(150, 4_000).state, 3);
        // Idles that last as long as the timer says are hits.
        assert_eq!(settled(rules, 1_000, 1_000), 4);
        // All idles end after 150 us, in C3's bin (100 to 400 us): intercepts there.
        let early = Idler::new(rules).settled(100_000, 150);
        assert_eq!(early.state, 3, "{rules:?}");
        assert!(!early.stop_tick, "{rules:?}");
        // 60 us: in C1E's bin.
        assert_eq!(settled(rules, 100_000, 60), 2);
    }
}

#[test]
fn teo_changes_its_mind_by_recent_intercepts_until_v6_6_and_by_their_weight_alone_in_v6_12() {
    // Long idles first, then early ones: five of the last nine are enough in v6.1.
    let turns = |rules| {
        let mut idler = Idler::new(rules);
        for _ in 0..64 {
            let choice = idler.select(2_000, 4_000);
            idler.woken(choice.state, 2_000, false);
        }
        (1..20).find(|_| {
            let choice = idler.select(2_000, 4_000);
            idler.woken(choice.state, 250, false);
            idler.select(2_000, 4_000).state == 3
        })
    };
    // By weight: with p = 1024 and hits H = 8 p at first, after n intercepts I = 8 p (1 - (7/8)^n) must exceed H
    // (7/8)^n, which holds from n = 6 on (7/8^5 = 0.51, 7/8^6 = 0.45).
    assert_eq!(turns(teo(IdleRules::V6_1)), Some(5));
    assert_eq!(turns(teo(IdleRules::V6_6)), Some(5));
    assert_eq!(turns(teo(IdleRules::V6_12)), Some(6));
}

#[test]
fn teo_of_v6_3_lets_a_busy_cpu_sleep_one_state_less_deeply_but_not_poll() {
    let v6_3 = IdleRules { teo: TeoRule::RecentUtilized, ..IdleRules::V6_1 };
    let state = |utilized, options: &IdleOptions, next_timer_us| {
        let mut idler = Idler::with(teo(v6_3), options);
        idler.utilized = utilized;
        idler.select(next_timer_us, 4_000).state
    };
    let all = IdleOptions::default();
    assert_eq!([false, true].map(|utilized| state(utilized, &all, 100_000)), [4, 3]);
    let shallow = IdleOptions { states_off: 0b11100, ..IdleOptions::default() };
    assert_eq!([false, true].map(|utilized| state(utilized, &shallow, 100_000)), [1, 1]);
    // v6.6 looks at the timer last, and stays in C3.
    assert_eq!([false, true].map(|utilized| state(utilized, &all, 150)), [3, 2]);
}

#[test]
fn teo_of_v6_6_lets_a_busy_cpu_sleep_one_state_less_deeply() {
    let state = |utilized, options: &IdleOptions, next_timer_us| {
        let mut idler = Idler::with(teo(IdleRules::V6_6), options);
        idler.utilized = utilized;
        idler.select(next_timer_us, 4_000).state
    };
    let all = IdleOptions::default();
    assert_eq!([false, true].map(|utilized| state(utilized, &all, 100_000)), [4, 3]);
    // No shallower one than C1: it does not poll for that. The timer bounds what comes out.
    let shallow = IdleOptions { states_off: 0b11100, ..IdleOptions::default() };
    assert_eq!([false, true].map(|utilized| state(utilized, &shallow, 100_000)), [1, 1]);
    assert_eq!([false, true].map(|utilized| state(utilized, &all, 150)), [3, 3]);
    // Where the tick has stopped, C3's residency is too short to be sure that something ends it.
    let mut stopped = Idler::new(teo(IdleRules::V6_6));
    (stopped.utilized, stopped.tick_stopped) = (true, true);
    assert_eq!(stopped.select(100_000, 4_000).state, 4);
}

#[test]
fn teo_goes_by_the_mean_of_recent_idles_in_v5_10() {
    // Idles of 150 and 350 us by turns, all in C3's bin, and timers far away: misses outweigh, and C3 has most early wakeups.
    let mut idler = Idler::new(teo(IdleRules::V5_10));
    for round in 0..64 {
        let choice = idler.select(100_000, 4_000);
        idler.woken(choice.state, if round % 2 == 0 { 150 } else { 350 }, false);
    }
    assert_eq!(idler.select(100_000, 4_000).state, 3);
    // Five of the last eight were of 15 us: their mean, without half of the exit latency, fits C1 alone, though C3 still has more
    // early wakeups. With four of eight it does not count.
    let after = |short: usize| {
        let mut idler = idler_after(&[150, 350], 64);
        for _ in 0..short {
            let choice = idler.select(100_000, 4_000);
            idler.woken(choice.state, 15, false);
        }
        idler.select(100_000, 4_000).state
    };
    let turns = (1..=8).find(|&short| after(short) < 3).expect("the ring has eight");
    assert_eq!(turns, 5, "durations below C3's residency are those that count");
}

/// A CPU after `rounds` idles of these lengths by turns, with the timer far away.
fn idler_after(lengths: &[u64], rounds: usize) -> Idler {
    let mut idler = Idler::new(teo(IdleRules::V5_10));
    for round in 0..rounds {
        let choice = idler.select(100_000, 4_000);
        idler.woken(choice.state, lengths[round % lengths.len()], false);
    }
    idler
}

#[test]
fn the_polling_state_ends_with_the_next_ones_residency_in_v5_10() {
    let rules = [IdleRules::V4_15, IdleRules::V4_19, IdleRules::V5_10, IdleRules::V5_15, IdleRules::V6_1];
    let limits = rules.map(|rules| {
        let mut idler = Idler::new(rules);
        idler.cpuidle.table.tick_ns = 4_000_000;
        idler.cpuidle.cpuidle_poll_time(&idler.device)
    });
    // A sixteenth of a tick, C1's 2 us, and C1E's 20.
    assert_eq!(limits, [None, Some(250_000), Some(2_000), Some(20_000), Some(20_000)]);
}

#[test]
fn teo_counts_ticks_and_short_idles_apart_in_v7_2() {
    // Idles of 150 us, then only ticks. v6.12 takes the first tick for a hit of the timer; v7.2 ignores it as long as
    // it remembers short idles.
    let after_ticks = |rules| {
        let mut idler = Idler::new(teo(rules));
        idler.settled(100_000, 150);
        let mut stopped_after = None;
        for round in 0..64 {
            let choice = idler.select(100_000, 4_000);
            if choice.stop_tick {
                stopped_after = Some(round);
                break;
            }
            idler.woken(choice.state, 3_900, true);
        }
        stopped_after
    };
    assert_eq!([IdleRules::V6_12, IdleRules::V7_2].map(after_ticks), [Some(4), Some(12)]);
    // C1 in any case, which v6.12 enters without looking at timers. Idles of at least 15 us, without half of C1's exit
    // latency, are not short.
    let looks = |rules, idle_us| Idler::new(teo(rules)).settled(100_000, idle_us).looked_at_timers;
    assert_eq!([12, 18].map(|us| looks(IdleRules::V6_12, us)), [false, false]);
    for rules in [IdleRules::V6_18, IdleRules::V7_2] {
        assert_eq!([12, 18].map(|us| looks(rules, us)), [false, true]);
    }
}

#[test]
fn the_ladder_is_climbed_after_four_long_idles_and_left_at_once() {
    let rules = IdleRules { governor: Governor::Ladder, ..IdleRules::V4_15 };
    let mut idler = Idler::new(rules);
    let mut states = Vec::new();
    for round in 0..21 {
        let choice = idler.select(100_000, 4_000);
        states.push(choice.state);
        // Thresholds are compared unsigned: an idle shorter than the exit latency (C6's 133 us, C3's 33 us) is long; an
        // idle between that and twice that is short.
        let idle_us = match round {
            14 => 100,
            15 => 200,
            16 => 20,
            _ => 500,
        };
        idler.woken(choice.state, idle_us, false);
    }
    // C1 first, where even an idle of no length counts as long; then each fourth idle promotes. 100 us in C6 count as
    // long, 200 us demote; 20 us in C3 are the first of four.
    assert_eq!(states, [1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 4, 3, 3, 3, 3, 4]);
}

#[test]
fn haltpoll_polls_as_long_as_that_is_worth_it() {
    let haltpoll = |rules| IdleRules { governor: Governor::Haltpoll, ..rules };
    for (rules, shrunk) in [(haltpoll(IdleRules::V6_1), Some(25_000)), (haltpoll(IdleRules::V6_12), None)] {
        let mut idler = Idler::new(rules);
        // No limit yet: it halts, and is woken 100 us later. From now on it polls first, for 50 us.
        assert_eq!(idler.select(4_000, 4_000).state, 1);
        idler.woken(1, 100, false);
        assert_eq!(idler.select(4_000, 4_000).state, 0);
        assert_eq!(idler.cpuidle.cpuidle_poll_time(&idler.device), Some(50_000));
        idler.cpuidle.reflect(
            &mut idler.device,
            0,
            50_000,
            Woken { now_ns: 0, got_tick: false, poll_time_limit: true },
        );
        assert_eq!(idler.select(4_000, 4_000).state, 1, "the window is over");
        idler.woken(1, 900, false);
        // A halt of 900 us was too long to poll for: the limit is halved. That is below its start value, so since v6.9
        // it becomes none.
        assert_eq!(idler.select(4_000, 4_000).state, usize::from(shrunk.is_none()));
        assert!(shrunk.is_none() || idler.cpuidle.cpuidle_poll_time(&idler.device) == shrunk);
    }
    let rules = haltpoll(IdleRules::V6_1);
    // guest_halt_poll_ns=0 never polls; a small one caps what polling starts with.
    for (halt_poll_ns, state, limit) in [(0, 1, None), (20_000, 0, Some(20_000))] {
        let options = IdleOptions { halt_poll_ns: Some(halt_poll_ns), ..IdleOptions::default() };
        let mut idler = Idler::with(rules, &options);
        idler.woken(1, 15, false);
        assert_eq!(idler.select(4_000, 4_000).state, state);
        assert!(limit.is_none() || idler.cpuidle.cpuidle_poll_time(&idler.device) == limit);
    }
}

#[test]
fn the_table_is_what_the_command_line_leaves() {
    let options = |options: IdleOptions| Idler::with(IdleRules::V6_12, &options).settled(100_000, 20_000).state;
    assert_eq!(options(IdleOptions { max_cstate: Some(2), ..IdleOptions::default() }), 2);
    assert_eq!(options(IdleOptions { states_off: 0b10000, ..IdleOptions::default() }), 3);
    assert_eq!(options(IdleOptions { latency_us: Some(50), ..IdleOptions::default() }), 3);
    assert_eq!(options(IdleOptions { latency_us: Some(0), ..IdleOptions::default() }), 0);
    let table = StateTable::new(&haswell(), &IdleOptions::default());
    // C1E is the first state that needs 10 us; a sixteenth of 4 ms is more.
    assert_eq!(table.poll_time_ns(), 20_000);
    let shallow = StateTable::new(&haswell(), &IdleOptions { max_cstate: Some(1), ..IdleOptions::default() });
    assert_eq!(shallow.poll_time_ns(), 250_000);
}

#[test]
fn every_behaviour_is_set_by_its_key() {
    let mut rules = IdleRules::V4_5;
    for setting in IdleRules::V7_2.settings() {
        assert_eq!(rules.set(setting.key, setting.value.name), Switched::Done, "{}", setting.key);
    }
    // No behaviours: the governors that were built, a word of the command line, and whether a file can be written.
    let governors = IdleRules::V7_2.governors;
    assert_eq!(IdleRules { states_off: true, governor_switch: true, governors, ..rules }, IdleRules::V7_2);
    assert_eq!(rules.set("idle.men", "tick"), Switched::UnknownKey);
}
