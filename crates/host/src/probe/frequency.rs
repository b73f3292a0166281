//! How fast a CPU really runs: the time of a chain of operations that take one cycle each.

use super::{Bench, Findings};
use crate::Error;
use crate::pinning::Pinned;
use crate::statistics::Spread;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Steps of the chain between two looks at the clock.
const STEPS: u64 = 100_000;
/// Each step is a rotation and an addition. Each takes one cycle on every core of the last fifteen years, and neither
/// can begin before the other ends.
const CYCLES_PER_STEP: f64 = 2.0;

pub fn run(bench: &Bench) -> Result<Findings, Error> {
    let mut findings = Findings::default();
    let cpu = bench.computer.allowed[0];
    let _pinned = Pinned::to(cpu)?;
    // The first hundredth of a second lets a sleepy core get up to speed.
    let since = Instant::now();
    while since.elapsed() < Duration::from_millis(10) {
        black_box(chain(STEPS));
    }
    let bursts = bench.effort.repeat(gigahertz);
    let ran = format!("a chain of {STEPS} rotations and additions of one cycle each on CPU {cpu}, already warm");
    match Spread::of_rates(&bursts) {
        Some(spread) => {
            findings.figures.push(super::Figure { name: "frequency".to_string(), unit: "GHz", spread, ran });
        }
        None => findings.unseen.push("frequency: no burst came to an end".to_string()),
    }
    ramp(bench, cpu, &mut findings);
    match &bench.computer.frequency {
        Some(_) => {}
        None => findings.unseen.push(
            "frequency limits and governors: no cpufreq in sysfs; the file has the one frequency that was observed"
                .to_string(),
        ),
    }
    Ok(findings)
}

fn gigahertz() -> f64 {
    let since = Instant::now();
    black_box(chain(STEPS));
    STEPS as f64 * CYCLES_PER_STEP / since.elapsed().as_nanos() as f64
}

fn chain(steps: u64) -> u64 {
    let mut x = black_box(0x9e37_79b9_7f4a_7c15u64);
    let add = black_box(0x0123_4567_89ab_cdefu64);
    for _ in 0..steps {
        x = x.rotate_left(13).wrapping_add(add);
    }
    x
}

/// How fast the first work after a sleep is, as a share of a warm core's speed.
fn ramp(bench: &Bench, cpu: usize, findings: &mut Findings) {
    let times = (bench.effort.bursts / 20).max(3);
    let shares: Vec<f64> = (0..times)
        .map(|_| {
            std::thread::sleep(Duration::from_millis(20));
            let cold = gigahertz();
            let warm = (0..10).map(|_| gigahertz()).fold(cold, f64::max);
            cold / warm
        })
        .collect();
    let ran = format!(
        "speed of CPU {cpu} in the first 50 us after 20 ms of sleep, as a share of its best in the next 500 us"
    );
    if let Some(spread) = Spread::of_rates(&shares) {
        findings.figures.push(super::Figure { name: "speed_after_sleep".to_string(), unit: "ratio", spread, ran });
    }
}
