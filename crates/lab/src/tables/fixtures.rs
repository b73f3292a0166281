//! Made-up measurements from integer arithmetic. The same formulas were fed to MMTests itself, at each of its three
//! states, to get the expected tables of the tests.

use std::collections::BTreeMap;

use super::{Class, Operation, Table};
use crate::statistics::Better;

/// SplitMix64 from a fixed seed, as a source of uniform numbers below a bound.
pub fn generator() -> impl FnMut(u64) -> u64 {
    seeded(1)
}

/// The same from any seed.
pub fn seeded(seed: u64) -> impl FnMut(u64) -> u64 {
    let mut state = seed;
    move |bound| {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((u128::from(z ^ (z >> 31)) * u128::from(bound)) >> 64) as u64
    }
}

/// Names of up to three arms.
pub const ARMS: [&str; 3] = ["4.5.0-rc1-vanilla", "4.5.0-rc1-nostats-v3r1", "4.6-next"];

fn table(workload: &str, class: Class, unit: &str, better: Better, arms: usize, operations: Vec<Operation>) -> Table {
    Table {
        name: None,
        workload: workload.into(),
        parameters: BTreeMap::from([("loops".to_string(), 1_000.into())]),
        class,
        unit: unit.into(),
        better,
        decimals: if workload.starts_with("hackbench") { 4 } else { 2 },
        arms: ARMS[..arms].iter().map(|name| name.to_string()).collect(),
        operations,
        published: None,
    }
}

/// Seconds with three decimals for 1, 4 and 12 groups, one sample per iteration.
pub fn hackbench(arms: usize, iterations: usize) -> Table {
    let seconds = |groups: i64, arm: i64, iteration: i64| {
        let noise = (iteration * 7 + groups * 3 + arm * 5) % 11;
        (groups * 100 + 64 + noise - arm * (groups % 3 + 1) * 3) as f64 / 1_000.0
    };
    let operations = [1, 4, 12].map(|groups| Operation {
        label: groups.to_string(),
        arms: (0..arms as i64)
            .map(|arm| (0..iterations as i64).map(|iteration| vec![seconds(groups, arm, iteration)]).collect())
            .collect(),
    });
    table("hackbench-pipes", Class::Multiops, "s", Better::Lower, arms, operations.into())
}

/// MB/s for 1, 64 and 128 clients, five samples per iteration.
pub fn throughput(arms: usize, iterations: usize) -> Table {
    let rate = |clients: i64, arm: i64, iteration: i64, second: i64| {
        let noise = (iteration * 311 + second * 97 + clients * 13 + arm * 29) % 503;
        (clients * 1_000 + noise + arm * clients * 17) as f64 / 10.0
    };
    let operations = [1, 64, 128].map(|clients| Operation {
        label: clients.to_string(),
        arms: (0..arms as i64)
            .map(|arm| {
                let run = |iteration| (0..5).map(|second| rate(clients, arm, iteration, second)).collect();
                (0..iterations as i64).map(run).collect()
            })
            .collect(),
    });
    table("tbench4", Class::Multiops, "MB/s", Better::Higher, arms, operations.into())
}

/// Microseconds per loop of 120 batches.
pub fn pipetest(arms: usize, iterations: usize) -> Table {
    let batch = |arm: i64, iteration: i64, batch: i64| {
        let place = (batch * 37 + arm * 11 + iteration * 5) % 120 * 6;
        (4_130 + place + batch * batch % 17 - arm * 90 + iteration * (arm + 1)) as f64 / 1_000.0
    };
    let arm = |arm: i64| -> Vec<Vec<f64>> {
        (0..iterations as i64).map(|iteration| (0..120).map(|i| batch(arm, iteration, i)).collect()).collect()
    };
    let operation = Operation { label: "Time".into(), arms: (0..arms as i64).map(arm).collect() };
    table("pipetest", Class::Variabletime, "us per loop", Better::Lower, arms, vec![operation])
}
