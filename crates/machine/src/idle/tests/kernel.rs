//! The governors' answers in long random series of idles, against those of the kernel's own code.
//!
//! Each digest is of the answers of drivers/cpuidle/governors/*.c in the named tree. The files were compiled unchanged,
//! with stubs for what they call (timers, the tick, tasks in iowait, the allowed latency, the clock, how busy the CPU is).
//! They were asked the same questions, and began with a memory of 10 ms idles where they remember some. v4.16.13's governors are
//! identical to v4.15's, teo and ladder of 5.15.135 to those of 6.1.192, haltpoll but for tracepoints, v6.6.17's ladder
//! and haltpoll to v6.1.192's, v6.18.35's to v6.12.117's.

use super::*;
use sched::versions::{settle, version};
use units::Prng;

/// Exit latency and target residency of states in microseconds (the first one polls if it needs none), and the length
/// of a tick.
const TABLES: [(&[(u32, u32)], u64); 6] = [
    (&[(0, 0), (2, 2), (10, 20), (33, 100), (133, 400)], 4_000_000),
    (&[(0, 0), (1, 2), (400, 800)], 1_000_000),
    (&[(1, 1), (885, 952)], 4_000_000),
    (&[(0, 0), (2, 2), (10, 20), (33, 100), (133, 6_000)], 4_000_000),
    (&[(0, 0), (1, 10), (2, 20), (5, 50), (10, 100), (100, 10_000), (200, 20_000)], 10_000_000),
    (&[(0, 0), (1, 1)], 4_000_000),
];
const CONFIGURATIONS: u32 = 12;
const IDLES: u32 = 400;

/// The conditions that hold while some forty idles follow each other.
struct Weather {
    usual_ns: u64,
    spread_ns: u64,
    timer_ns: u64,
    iowaiters: u32,
    tick_stopped: bool,
}

struct Series {
    random: Prng,
    /// All times are multiples of that.
    step_ns: u64,
    cpuidle: Cpuidle,
    device: Device,
    now_ns: u64,
    digest: u64,
}

impl Series {
    /// A number between two powers of two, small ones as often as large ones.
    fn any_size(&mut self, from: u32, to: u32) -> u64 {
        let power = 1u64 << (u64::from(from) + self.random.below(u64::from(to - from)));
        power + self.random.below(power)
    }

    fn stepped(&self, time_ns: u64) -> u64 {
        time_ns - time_ns % self.step_ns
    }

    fn weather(&mut self) -> Weather {
        let usual_ns = self.any_size(0, 30);
        Weather {
            usual_ns,
            spread_ns: [1, usual_ns / 20 + 1, usual_ns / 3 + 1, usual_ns * 2][self.random.below(4) as usize],
            timer_ns: self.any_size(8, 40),
            iowaiters: if self.random.below(4) == 0 { self.random.below(3) as u32 } else { 0 },
            tick_stopped: false,
        }
    }

    fn ask(&mut self, weather: &Weather) -> usize {
        let sleep_length_ns = match self.random.below(4) {
            0 => self.any_size(1, 39),
            _ => weather.timer_ns + self.random.below(weather.timer_ns / 8 + 1),
        };
        let sleep_length_ns = self.stepped(sleep_length_ns.min(FAR_NS));
        let tick = self.random.below(self.cpuidle.table.tick_ns);
        let tick = self.stepped(tick);
        let outlook = Outlook {
            now_ns: self.now_ns,
            sleep_length_ns,
            delta_tick_ns: if weather.tick_stopped { sleep_length_ns } else { sleep_length_ns.min(tick) },
            tick_stopped: weather.tick_stopped,
            nr_iowaiters: weather.iowaiters,
            utilized: self.now_ns.is_multiple_of(3),
        };
        let choice = self.cpuidle.select(&mut self.device, &outlook);
        let stop_tick = choice.stop_tick || weather.tick_stopped;
        let answer = choice.state as u64 * 2 + u64::from(stop_tick);
        self.digest = (self.digest ^ answer).wrapping_mul(0x0000_0100_0000_01b3);
        choice.state
    }

    fn idle(&mut self, weather: &Weather, state: usize) {
        let residency_ns = match self.random.below(8) {
            0 => self.any_size(0, 30),
            1 => 0,
            _ => weather.usual_ns + self.random.below(weather.spread_ns),
        };
        let residency_ns = self.stepped(residency_ns);
        let overhead = self.random.below(2_000);
        self.now_ns += residency_ns + self.stepped(overhead);
        let got_tick = self.random.below(10) == 0;
        let poll_time_limit = self.random.below(5) == 0 && self.cpuidle.table.states[state].polling;
        let woken = Woken { now_ns: self.now_ns, got_tick, poll_time_limit };
        self.cpuidle.reflect(&mut self.device, state, residency_ns, woken);
    }

    fn run(&mut self) {
        let mut weather = self.weather();
        for idle in 1..=IDLES {
            if idle % 40 == 0 {
                weather = Weather { tick_stopped: weather.tick_stopped, ..self.weather() };
            }
            if self.random.below(6) == 0 {
                weather.tick_stopped = self.random.below(3) == 0;
            }
            let state = self.ask(&weather);
            if self.random.below(25) == 0 {
                self.cpuidle.reject(&mut self.device);
                self.now_ns += 100;
            } else {
                self.idle(&weather, state);
            }
        }
    }
}

/// The digest of all answers by `rules`, to questions about multiples of `step_ns`.
fn answers(rules: IdleRules, step_ns: u64) -> u64 {
    let mut random = Prng::stream(1, "governors", 0);
    let mut digest = 0xcbf2_9ce4_8422_2325;
    for (states, tick_ns) in TABLES {
        let odd = |exit: u32| if step_ns == EVEN_US { exit % 2 } else { 0 };
        let state = |&(exit, residency): &(u32, u32)| IdleState::declared("state", exit + odd(exit), residency);
        let states: Vec<IdleState> = states.iter().map(state).collect();
        for configuration in 0..CONFIGURATIONS {
            let options = IdleOptions {
                states_off: if configuration % 4 == 3 { random.below(1 << states.len()) as u32 } else { 0 },
                latency_us: match configuration {
                    4 | 10 => Some(random.below(300) as u32),
                    11 => Some(0),
                    _ => None,
                },
                ..IdleOptions::default()
            };
            let mut cpuidle = Cpuidle { rules, table: StateTable::new(&states, &options) };
            cpuidle.table.tick_ns = tick_ns;
            let device = cpuidle.device();
            let mut series = Series { random, step_ns, cpuidle, device, now_ns: 1_000_000, digest };
            series.run();
            (random, digest) = (series.random, series.digest);
        }
    }
    digest
}

/// Kernels until v5.5 reckon in whole microseconds, our code in nanoseconds for all kernels. Both do the same with even
/// microseconds: a half of them is whole.
const EVEN_US: u64 = 2_000;

#[test]
fn governors_answer_as_the_kernels_own_do() {
    use Governor::{Haltpoll, Ladder, Menu, Teo};
    for (governor, rules, tree, expected) in [
        (Menu, IdleRules::V4_5, "v4.5", 0xebce_6286_5d29_1cf5),
        (Menu, IdleRules::V4_15, "v4.15", 0x4752_e71f_a5f7_7379),
        (Menu, IdleRules::V6_1, "v6.1.192", 0x9343_6a72_b092_ef28),
        (Menu, IdleRules::V6_6, "v6.6.17", 0x724f_2590_fe64_1999),
        (Menu, IdleRules::V6_12, "v6.12.117", 0x60f1_4a74_3e0c_9ad4),
        (Menu, IdleRules::V6_18, "v6.18.35", 0x94db_18de_6972_4c1b),
        (Menu, IdleRules::V7_2, "v7.2.13", 0x6ceb_e72a_80e5_fbab),
        (Teo, IdleRules::V6_1, "v6.1.192", 0x3683_cc71_29dc_ca6c),
        (Teo, IdleRules::V6_6, "v6.6.17", 0x8fc7_b28a_8768_e891),
        (Teo, IdleRules::V6_12, "v6.12.117", 0xa049_47e4_b8d2_3e26),
        (Teo, IdleRules::V6_18, "v6.18.35", 0xa085_68fa_3db0_6c87),
        (Teo, IdleRules::V7_2, "v7.2.13", 0x2a5e_b526_4daa_b68a),
        (Teo, IdleRules::V5_15, "v5.15.135", 0x3683_cc71_29dc_ca6c),
        (Ladder, IdleRules::V5_15, "v5.15.135", 0xfb10_5f83_109e_bed7),
        (Haltpoll, IdleRules::V5_15, "v5.15.135", 0xbda3_19b3_0fcf_ee0d),
        (Ladder, IdleRules::V4_5, "v4.5", 0xfb10_5f83_109e_bed7),
        (Ladder, IdleRules::V4_15, "v4.15", 0xfb10_5f83_109e_bed7),
        (Ladder, IdleRules::V6_1, "v6.1.192", 0xfb10_5f83_109e_bed7),
        (Ladder, IdleRules::V6_6, "v6.6.17", 0xfb10_5f83_109e_bed7),
        (Ladder, IdleRules::V6_12, "v6.12.117", 0xfb10_5f83_109e_bed7),
        (Ladder, IdleRules::V6_18, "v6.18.35", 0xfb10_5f83_109e_bed7),
        (Ladder, IdleRules::V7_2, "v7.2.13", 0xfb10_5f83_109e_bed7),
        (Haltpoll, IdleRules::V6_1, "v6.1.192", 0xbda3_19b3_0fcf_ee0d),
        (Haltpoll, IdleRules::V6_6, "v6.6.17", 0xbda3_19b3_0fcf_ee0d),
        (Haltpoll, IdleRules::V6_12, "v6.12.117", 0x4e94_cfa4_f347_35c1),
        (Haltpoll, IdleRules::V6_18, "v6.18.35", 0x4e94_cfa4_f347_35c1),
        (Haltpoll, IdleRules::V7_2, "v7.2.13", 0x4e94_cfa4_f347_35c1),
    ] {
        let step_ns = if governor == Ladder { 1_000 } else { 1 };
        let found = answers(IdleRules { governor, ..rules }, step_ns);
        assert_eq!(found, expected, "{found:#018x} of {governor:?}, not what {tree} answers");
    }
}

/// The rules of a tree's release as [`settle`] makes them of the kernel before it that was read.
fn derived(tree: &str) -> IdleRules {
    let read = [
        ("v4.5", IdleRules::V4_5),
        ("v4.15", IdleRules::V4_15),
        ("v4.19", IdleRules::V4_19),
        ("v5.4", IdleRules::V5_4),
        ("v5.10", IdleRules::V5_10),
        ("v5.15", IdleRules::V5_15),
        ("v6.1", IdleRules::V6_1),
        ("v6.6", IdleRules::V6_6),
        ("v6.12", IdleRules::V6_12),
        ("v6.18", IdleRules::V6_18),
        ("v7.2", IdleRules::V7_2),
    ];
    let wanted = version(tree);
    let (before, mut rules) = read.into_iter().rfind(|&(name, _)| version(name) <= wanted).expect("a kernel before it");
    // A kernel that was read is its const, with what late releases of its branch have.
    if version(before) != wanted {
        settle(&mut rules, tree);
    }
    rules
}

#[test]
fn governors_of_releases_between_answer_as_the_kernels_own_do() {
    use Governor::{Haltpoll, Ladder, Menu, Teo};
    // The trees whose governor answers so. v6.1's menu is missing: it forgets no rejected state, 6.1.192's does.
    for (governor, expected, trees) in [
        (Menu, 0x7cde_a3d8_9acd_d02d, "4.8.15 4.9.0 4.10.17 4.11.0 4.12.0"),
        (Menu, 0x4752_e71f_a5f7_7379, "4.13.4 4.14.5 4.16.13"),
        (Menu, 0xef68_8013_71ed_3ef2, "4.17.0"),
        (Menu, 0xb065_ade1_a491_c9e6, "4.19.108"),
        (Menu, 0x15aa_414c_c6cb_89f0, "4.20.0 5.0.1 5.2.1 5.3.1"),
        (Menu, 0x9953_7384_729c_c7c5, "5.4.286"),
        (
            Menu,
            0x3e81_7b32_efcf_c306,
            "5.6.4 5.7.14 5.8.1 5.9.1 5.11.0 5.12.9 5.14.0-rc5 5.15.16 5.17.0-rc5 5.19.0 6.0.0-rc1 6.2 6.2.1 6.3 \
             6.3.8 6.4 6.4.6 6.5 6.5.0",
        ),
        (Menu, 0x724f_2590_fe64_1999, "6.6 6.6.9 6.8.1 6.9.0"),
        (Menu, 0x5699_f584_3c83_b990, "6.13.7 6.14.0"),
        (Menu, 0x0298_3de7_3c12_4c7e, "6.17.0"),
        (Menu, 0x775e_505a_835f_6167, "6.19.0"),
        (Menu, 0x94db_18de_6972_4c1b, "7.0.0-mitosis"),
        (Menu, 0x6ceb_e72a_80e5_fbab, "7.1.3 7.1.5"),
        (Teo, 0x8cf8_569e_1bd7_4fce, "5.2.1 5.3.1"),
        (Teo, 0xaf0c_3174_6c8b_5754, "5.4.286"),
        (Teo, 0x74e0_f086_249c_ea76, "5.6.4 5.7.14 5.8.1 5.9.1 5.11.0 5.12.9"),
        (Teo, 0x3683_cc71_29dc_ca6c, "5.14.0-rc5 5.15.16 5.17.0-rc5 5.19.0 6.0.0-rc1 6.1 6.2 6.2.1"),
        (Teo, 0x341d_c786_215b_dedc, "6.3 6.3.8 6.4 6.4.6 6.5 6.5.0"),
        (Teo, 0x8fc7_b28a_8768_e891, "6.6 6.6.9 6.8.1 6.9.0"),
        (Teo, 0xd51a_3b83_e2bd_b4d8, "6.13.7"),
        (Teo, 0x2485_de4e_e283_c16d, "6.14.0 6.17.0"),
        (Teo, 0x5a66_4dd9_fb3e_c29f, "6.19.0"),
        (Teo, 0x49c7_c7b1_968a_79bc, "7.0.0-mitosis"),
        (Teo, 0x2a5e_b526_4daa_b68a, "7.1.3 7.1.5"),
        (Haltpoll, 0x8d52_76dd_a364_8258, "5.4.286"),
        (
            Haltpoll,
            0xbda3_19b3_0fcf_ee0d,
            "5.6.4 5.7.14 5.8.1 5.9.1 5.11.0 5.12.9 5.14.0-rc5 5.15.16 5.17.0-rc5 5.19.0 6.0.0-rc1 6.1 6.2 6.2.1 \
             6.3 6.3.8 6.4 6.4.6 6.5 6.5.0 6.6 6.6.9 6.8.1",
        ),
        (Haltpoll, 0x4e94_cfa4_f347_35c1, "6.9.0 6.13.7 6.14.0 6.17.0 6.19.0 7.0.0-mitosis 7.1.3 7.1.5"),
        (
            Ladder,
            0xfb10_5f83_109e_bed7,
            "4.8.15 4.9.0 4.10.17 4.11.0 4.12.0 4.13.4 4.14.5 4.16.13 4.17.0 4.19.108 4.20.0 5.0.1 5.2.1 5.3.1 \
             5.4.286 5.6.4 5.7.14 5.8.1 5.9.1 5.11.0 5.12.9 5.14.0-rc5 5.15.16 5.17.0-rc5 5.19.0 6.0.0-rc1 6.1 \
             6.2 6.2.1 6.3 6.3.8 6.4 6.4.6 6.5 6.5.0 6.6 6.6.9 6.8.1 6.9.0 6.13.7 6.14.0 6.17.0 6.19.0 \
             7.0.0-mitosis 7.1.3 7.1.5",
        ),
    ] {
        for tree in trees.split(' ') {
            let step_ns = match governor {
                Ladder => 1_000,
                _ if (version("v4.17")..version("v5.6")).contains(&version(tree)) => EVEN_US,
                _ => 1,
            };
            let found = answers(IdleRules { governor, ..derived(tree) }, step_ns);
            assert_eq!(found, expected, "{found:#018x} of {governor:?}, not what {tree} answers");
        }
    }
}
