use crate::fixture::{Ran, run};

/// Short steps on four CPUs of 1 GHz, without collections: 15 messages of 54 us and the issue of 6 us keep a CPU for 816 us, so 4902
/// requests a second fill the machine.
const SHORT: [(&str, u64); 6] =
    [("workers", 8), ("gc_threads", 4), ("settle", 100), ("steady", 400), ("step", 10), ("young_mib", 1_000_000)];
/// The same at one rate.
const PRESET: [(&str, u64); 5] =
    [("workers", 8), ("gc_threads", 4), ("settle", 100), ("steady", 2_000), ("young_mib", 1_000_000)];

fn figures(ran: &Ran) -> Vec<u64> {
    ran.rows().concat()
}

#[test]
fn the_highest_rate_is_what_the_cpus_can_do() {
    let figures = figures(&run("specjbb", 4, &SHORT));
    assert_eq!(figures.len(), 7);
    let max = figures[0];
    assert!((4_902 * 85 / 100..=4_902 * 105 / 100).contains(&max), "{max}");
    // Looser bounds are met at higher rates, and the mean lies between them.
    assert!(figures[2..].is_sorted(), "{figures:?}");
    assert!((figures[2]..=figures[6]).contains(&figures[1]), "{figures:?}");
}

#[test]
fn pauses_cost_the_tight_bounds_most() {
    // 16 MiB hold 1490 requests: at 4000 a second all stops for 30 ms two or three times a second.
    let paused = [("young_mib", 16), ("gc_pause", 30)];
    let without = figures(&run("specjbb", 4, &SHORT));
    let with = figures(&run("specjbb", 4, &[&SHORT[..], &paused].concat()));
    // Within 10 ms is what no pause touches a hundredth of.
    assert!(with[2] * 2 < without[2], "{with:?} instead of {without:?}");
    assert!(with[6] * 2 > without[6], "{with:?} instead of {without:?}");
}

#[test]
fn groups_share_the_machine_and_hand_tasks_to_each_other() {
    let four = figures(&run("specjbb", 4, &[&SHORT[..], &[("groups", 4), ("remote", 50)]].concat()));
    assert!((4_902 * 80 / 100..=4_902 * 105 / 100).contains(&four[0]), "{four:?}");
}

#[test]
fn a_preset_rate_is_served_up_to_what_the_cpus_can_do() {
    for (rate, served) in [(1_000, 1_000), (4_000, 4_000), (8_000, 4_902)] {
        let ran = run("specjbb-preset", 4, &[&PRESET[..], &[("rate", rate)]].concat());
        let [answered] = figures(&ran)[..] else { panic!("one row") };
        assert!(answered.abs_diff(served) < served * 4 / 100, "{answered} of {rate}");
        // When what counts began and ended, for profiles.
        let marks: Vec<(u64, u64)> =
            ran.sim.samples.iter().filter(|it| it.series == crate::MEASURED).map(|it| (it.value, it.at.0)).collect();
        let [(1, began), (0, ended)] = marks[..] else { panic!("{marks:?}") };
        assert!((ended - began).abs_diff(2_000_000_000) < 10_000_000, "{marks:?}");
    }
}

/// Wakeups for a hundred requests that are answered, threads' beginnings and ends aside.
fn wakeups_per_hundred(rate: u64, more: &[(&str, u64)]) -> u64 {
    let ran = |seconds: u64| {
        let parameters = [&PRESET[..], &[("rate", rate), ("steady", seconds * 1_000)], more].concat();
        let ran = run("specjbb-preset", 16, &parameters);
        (ran.wakeups(), figures(&ran)[0] * seconds)
    };
    let (short, long) = (ran(2), ran(12));
    (long.0 - short.0) * 100 / (long.1 - short.1)
}

#[test]
fn a_request_on_an_idle_machine_wakes_an_injector_and_three_workers() {
    // 50 a second: each finds everybody asleep. Its injector wakes by timer; a worker for its first task, which keeps a bundle of the
    // three, and two others. Whoever ends last does the reply itself.
    let alone = wakeups_per_hundred(50, &[("injectors", 1)]);
    assert!((390..=420).contains(&alone), "{alone}");
    // All bundles go to the other group, and their last sends the reply home: three and one instead of two.
    let apart = wakeups_per_hundred(50, &[("injectors", 1), ("groups", 2), ("remote", 100)]);
    assert!((590..=620).contains(&apart), "{apart}");
}

#[test]
fn a_busy_machine_hardly_wakes_anybody() {
    // 16 CPUs can do 19600 a second, and there are workers enough to keep all of them busy.
    let busy = wakeups_per_hundred(19_000, &[("workers", 32)]);
    assert!(busy < 200, "{busy}");
}

#[test]
fn tasks_that_are_taken_together_are_no_more_and_no_less_work() {
    for at_once in [1, 16] {
        let more = [("rate", 8_000), ("at_once", at_once)];
        let [answered] = figures(&run("specjbb-preset", 4, &[&PRESET[..], &more].concat()))[..] else {
            panic!("one row")
        };
        assert!(answered.abs_diff(4_902) < 200, "{answered} with {at_once}");
    }
}

#[test]
fn groups_that_are_bound_stay_on_their_nodes() {
    // The fixture's machine is one node: two groups share it, and nobody is kept off it.
    let more = [("rate", 1_000), ("groups", 2), ("bind", 1)];
    let [answered] = figures(&run("specjbb-preset", 4, &[&PRESET[..], &more].concat()))[..] else { panic!("one row") };
    assert!(answered.abs_diff(2_000) < 80, "{answered}");
}

#[test]
#[should_panic(expected = "rate = 0 is outside 1..=10000000")]
fn a_rate_of_nothing_is_refused() {
    run("specjbb-preset", 1, &[("rate", 0)]);
}

#[test]
#[should_panic(expected = "a known parameter")]
fn the_curve_knows_no_rate() {
    run("specjbb", 1, &[("rate", 1_000)]);
}
