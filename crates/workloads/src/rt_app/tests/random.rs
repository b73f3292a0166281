//! Random applications, and those fixtures that the model covers: all must come to their end, with the cost model and
//! without.

use super::running::{KERNELS, Ran};
use super::*;
use machine::prices::Prices;
use sim::engine::{End, Sample};
use units::{Cycles, Ns, Prng, Ps};

/// Everything costs something, so that paths of different CPUs overlap.
fn prices() -> Prices {
    let mut prices = Prices::free();
    prices.paths.fill(Cycles(200));
    prices.lines.transfer.fill(Ps(60_000));
    prices.ipi_delivery = Ps(700_000);
    prices
}

fn samples<const COSTS: bool>(kernel: &str, cpus: usize, text: &str) -> Vec<Sample> {
    let prices = if COSTS { prices() } else { Prices::free() };
    let mut ran = Ran::<COSTS>::start_on(kernel, cpus, prices, text);
    // The duration of one second, and what threads still compute once it has passed.
    assert_eq!(ran.sim.run(Ns::from_ms(60_000)), End::Finished, "{kernel}, {cpus} CPUs, costs {COSTS}: {text}");
    for log in ran.rt_app.logs(&ran.sim.samples) {
        assert!(log.rows.iter().all(|row| row.run_us <= row.period_us + 1), "{}: {text}", log.thread);
        assert!(log.rows.is_sorted_by_key(|row| row.start_us), "{}: {text}", log.thread);
    }
    ran.sim.samples
}

#[test]
fn modelled_fixtures_run() {
    for (name, text) in FIXTURES.iter().filter(|(name, _)| ["plain.json", "locks.json", "frames.json"].contains(name)) {
        for (kernel, cpus) in KERNELS.iter().zip([1, 2, 4]) {
            assert!(samples::<true>(kernel, cpus, text).len() > 1000, "{name}");
            assert!(samples::<false>(kernel, cpus, text).len() > 1000, "{name}");
        }
    }
}

#[test]
fn applications_made_by_chance_end_and_do_so_the_same_way_twice() {
    for number in 0..60 {
        let text = application(&mut Prng::stream(1, "applications", number));
        let kernel = KERNELS[number as usize % KERNELS.len()];
        let cpus = 1 + number as usize % 4;
        samples::<false>(kernel, cpus, &text);
        let first = samples::<true>(kernel, cpus, &text);
        assert!(first == samples::<true>(kernel, cpus, &text), "another run, other samples: {text}");
    }
}

fn application(chance: &mut Prng) -> String {
    let tasks: Vec<String> = (0..2 + chance.below(5)).map(|number| self::task(number, chance)).collect();
    // This task is only forked: it must not use the barrier.
    let forked = r#""forked": {"instance": 0, "loop": 2, "run": 300, "sleep": 2000, "sem_wait": "s"}"#;
    format!("{{\"tasks\": {{{}, {forked}}}, \"global\": {{\"duration\": 1}}}}", tasks.join(",\n"))
}

fn task(number: u64, chance: &mut Prng) -> String {
    let phases: Vec<String> = (0..1 + chance.below(3)).map(|phase| self::phase(phase, chance)).collect();
    let instances = 1 + chance.below(3);
    let delay = chance.below(3) * 1500;
    let rounds = if chance.below(3) == 0 { 1 + chance.below(50) as i64 } else { -1 };
    let settings = format!("\"instance\": {instances}, \"delay\": {delay}, \"loop\": {rounds}");
    format!("\"t{number}\": {{{settings}, \"phases\": {{{}}}}}", phases.join(", "))
}

fn phase(number: u64, chance: &mut Prng) -> String {
    let settings = [
        "",
        "\"cpus\": [0], ",
        "\"priority\": -5, ",
        "\"policy\": \"SCHED_BATCH\", ",
        "\"policy\": \"SCHED_IDLE\", ",
        "\"policy\": \"SCHED_OTHER\", \"priority\": 3, ",
        "\"taskgroup\": \"/a\", ",
        "\"taskgroup\": \"/a/b\", ",
        "\"taskgroup\": \"/\", ",
    ];
    let settings = settings[chance.below(settings.len() as u64) as usize];
    let mut events: Vec<String> = (0..1 + chance.below(5)).map(|_| event(chance)).collect();
    events.push(format!("\"run\": {}", 200 + chance.below(3000)));
    let rounds = 1 + chance.below(4);
    format!("\"p{number}\": {{{settings}\"loop\": {rounds}, {}}}", events.join(", "))
}

fn event(chance: &mut Prng) -> String {
    let us = 100 + chance.below(2000);
    match chance.below(14) {
        0 => format!("\"sleep\": {us}"),
        1 => format!("\"runtime\": {us}"),
        2 => format!("\"timer\": {{\"ref\": \"unique\", \"period\": {us}}}"),
        3 => format!("\"timer\": {{\"ref\": \"shared\", \"period\": {us}, \"mode\": \"absolute\"}}"),
        4 => format!("\"lock\": \"m\", \"run\": {us}, \"unlock\": \"m\""),
        5 => format!("\"lock\": \"m\", \"sleep\": {us}, \"unlock\": \"m\""),
        6 => "\"lock\": \"m\", \"wait\": {\"ref\": \"c\", \"mutex\": \"m\"}, \"unlock\": \"m\"".into(),
        7 => "\"lock\": \"m\", \"sync\": {\"ref\": \"c\", \"mutex\": \"m\"}, \"unlock\": \"m\"".into(),
        8 => "\"signal\": \"c\", \"broad\": \"d\"".into(),
        9 => "\"suspend\": \"\"".into(),
        10 => format!("\"resume\": \"t{}\"", chance.below(2)),
        11 => "\"sem_post\": \"s\", \"yield\": \"\"".into(),
        12 => "\"barrier\": \"b\"".into(),
        _ => format!("\"sem_wait\": \"s\", \"fork\": \"forked\", \"sleep\": {us}"),
    }
}
