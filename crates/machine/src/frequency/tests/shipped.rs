//! How long the hardware of the machines that ship takes from idle to the highest frequency.

use super::*;
use crate::description::{Description, builtin, parse};

/// The time that a machine file's own source tells, in microseconds. Where it tells one time, it is met to a window.
const PUBLISHED: [(&str, u64, u64); 6] = [
    // "Around 30 ms", Skylake: AnandTech 2017.
    ("skylake-uma-8", 25_000, 35_000),
    // 10 to 15 ms, Kaby Lake: the same.
    ("xeon-gold-6148-2s xeon-platinum-8375c-2s", 10_000, 15_000),
    // "Just over 5 ms", Core i5-12600: Chips and Cheese 2022, addendum on clock ramps.
    ("core-i9-12900k xeon-platinum-8480-2s", 4_200, 6_200),
    // 17.45 ms, Ryzen 9 3950X, and 9 ms, mobile Zen 2: Chips and Cheese 2022 on clock ramps.
    ("epyc-7742-2s-nps1 epyc-7742-2s-nps2 epyc-7742-2s-nps4", 9_000, 17_450),
    // "A couple milliseconds" to 3.7 of 4.4 GHz, mobile Zen 3: the same.
    ("epyc-7763-2s-nps1 epyc-7763-2s-nps2 epyc-7763-2s-nps4", 2_000, 5_500),
    // Nothing was found; as Zen 3.
    ("epyc-9654", 2_000, 5_500),
];

#[test]
fn after_idle_each_machine_is_at_its_highest_frequency_when_its_source_says() {
    let mut tried = 0;
    for (name, text) in builtin() {
        let machine = parse(text, name).unwrap_or_else(|error| panic!("{error}"));
        if machine.figure("frequency.hwp_ramp").is_none() || machine.host_governs_frequencies() {
            continue;
        }
        let row = PUBLISHED.iter().find(|row| row.0.split(' ').any(|of| of == *name));
        let &(_, least, most) = row.unwrap_or_else(|| panic!("{name} has hardware that chooses, and no row here"));
        let last = CpuId::new(machine.topology().nr_cpus() - 1);
        let phases = [0, 150, 300, 450, 600, 750, 900].map(|phase| us(100_000 + phase));
        for (cpu, from) in [CpuId(0), last].into_iter().flat_map(|cpu| phases.map(|from| (cpu, from))) {
            let took = time_to_highest(&machine, cpu, from);
            assert!((least..=most).contains(&took), "{name}, CPU {cpu}: {took} us; expected {least} to {most}");
        }
        tried += 1;
    }
    assert_eq!(tried, PUBLISHED.iter().map(|row| row.0.split(' ').count()).sum::<usize>());
}

/// How long a CPU takes that is busy from some time on, in microseconds. Before that, all sleep.
fn time_to_highest(machine: &Description, cpu: CpuId, from: Ps) -> u64 {
    let mut model = Model::of(machine).unwrap_or_else(|missing| panic!("no {missing}"));
    model.autonomous = Some(Autonomous::of(machine).unwrap_or_else(|missing| panic!("no {missing}")));
    let driver = if machine.vendor() == Some("amd") { Driver::AmdPstateEpp } else { Driver::IntelPstate };
    let highest = model.limit_khz(model.band_of(cpu), 1, true);
    let policy = Policy::new(&model, driver, Governor::Powersave, FrequencyRules::V6_12, 250);
    assert_eq!(policy.preference, Preference(128));
    let mut frequency = Frequency::new(machine.topology(), model, policy);
    for cpu in 0..machine.topology().nr_cpus() {
        frequency.halt(CpuId::new(cpu), Ps::ZERO, true);
    }
    run(&mut frequency, from);
    frequency.resume(cpu, from);
    let told = run(&mut frequency, Ps(from.0 + us(200_000).0));
    let reached = told.iter().find(|change| change.2 == highest).unwrap_or_else(|| panic!("{told:?}, not {highest}"));
    reached.0 - from.0 / 1_000_000
}
