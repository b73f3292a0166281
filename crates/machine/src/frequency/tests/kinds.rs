//! Cores of several kinds: each has its own frequencies and is governed by them.

use super::*;
use crate::description::{Description, parse, shipped};
use sched::topology::EnergyAware;

fn machine(name: &str) -> Description {
    let file = shipped(name).expect("it ships");
    parse(&file.text, name).unwrap_or_else(|error| panic!("{error}"))
}

fn model_of(machine: &Description) -> Model {
    let mut model = Model::of(machine).unwrap_or_else(|missing| panic!("no {missing}"));
    model.em_cpufreq_update_efficiencies(machine.topology(), EnergyAware::ByFrequency);
    model
}

/// Four little CPUs, 300 to 1766.4 MHz, and four big ones, 825.6 to 2803.2.
fn phone(change: &dyn Fn(&mut Policy)) -> Frequency {
    let machine = machine("snapdragon-845");
    let model = model_of(&machine);
    let mut policy = Policy::new(&model, Driver::Scmi, Governor::Schedutil, FrequencyRules::V6_12, 250);
    change(&mut policy);
    Frequency::new(machine.topology(), model, policy)
}

#[test]
fn a_kind_has_its_own_operating_points() {
    let model = model_of(&machine("snapdragon-845"));
    let of = |cpu: u16| &model.bands[model.band_of(CpuId(cpu))];
    let points = |cpu| of(cpu).points.iter().map(|point| point.khz).collect::<Vec<_>>();
    assert_eq!(points(3), [300_000, 576_000, 902_400, 1_228_800, 1_516_800, 1_766_400]);
    assert_eq!(points(4), [825_600, 1_286_400, 1_689_600, 2_092_800, 2_400_000, 2_803_200]);
    // Milliwatts per megahertz: 0.188, 0.135, 0.095, 0.107, 0.126, 0.109; and 0.2411 before 0.2408.
    let efficient = |cpu| of(cpu).points.iter().map(|point| !point.inefficient).collect::<Vec<_>>();
    assert_eq!(efficient(0), [false, false, true, true, false, true]);
    assert_eq!(efficient(7), [true, false, true, true, true, true]);
    let whole = |cpu| (of(cpu).min_khz, of(cpu).base_khz, of(cpu).max_khz());
    assert_eq!((whole(0), whole(4)), ((300_000, 1_766_400, 1_766_400), (825_600, 2_803_200, 2_803_200)));
    // Without a table each kind goes in steps, on its own scale.
    assert_eq!(Driver::CppcCpufreq.max_khz(of(0)), 1_766_400);
}

#[test]
fn a_choice_is_an_operating_point_of_the_policy() {
    let frequency = phone(&|_| ());
    let chosen = |cpu, khz| frequency.resolve(CpuId(cpu), khz);
    assert_eq!(
        [400_000, 902_400, 902_401, 1_300_000, 9_000_000].map(|khz| chosen(0, khz)),
        [902_400, 902_400, 1_228_800, 1_766_400, 1_766_400]
    );
    assert_eq!([400_000, 826_000, 1_690_000].map(|khz| chosen(4, khz)), [825_600, 1_689_600, 2_092_800]);
    let all = Limits { min_khz: 0, max_khz: u32::MAX, turbo: true };
    let little = &frequency.model.bands[frequency.model.band_of(CpuId(0))];
    let of = |khz, relation| Driver::Scmi.resolve(&frequency.model, little, all, khz, relation);
    assert_eq!((of(400_000, Relation::Lowest), of(400_000, Relation::Highest)), (576_000, 300_000));
    assert_eq!((of(1_600_000, Relation::HighestEfficient), of(1_600_000, Relation::Highest)), (1_228_800, 1_516_800));
    assert_eq!((of(100_000, Relation::Highest), of(9_000_000, Relation::Lowest)), (300_000, 1_766_400));
    assert_eq!(
        (of(1_100_000, Relation::ClosestEfficient), of(1_000_000, Relation::ClosestEfficient)),
        (1_228_800, 902_400)
    );
    assert_eq!(of(1_065_600, Relation::ClosestEfficient), 902_400, "the lower of two as near");
}

#[test]
fn limits_are_written_to_every_policy_and_hold_as_far_as_it_goes() {
    let limits = |min_khz, max_khz| {
        let frequency = phone(&|policy| policy.limits = Limits { min_khz, max_khz, turbo: true });
        let of = |cpu: u16| {
            let limits = frequency.policies[frequency.cpus[usize::from(cpu)].policy].limits;
            (limits.min_khz, limits.max_khz)
        };
        (of(0), of(7), frequency.resolve(CpuId(0), 9_000_000))
    };
    assert_eq!(limits(0, u32::MAX), ((300_000, 1_766_400), (825_600, 2_803_200), 1_766_400));
    assert_eq!(limits(2_000_000, 2_500_000), ((1_766_400, 1_766_400), (2_092_800, 2_400_000), 1_766_400));
    // No entry lies between these limits; where no efficient one does, an inefficient one is taken.
    assert_eq!(limits(600_000, 700_000), ((576_000, 576_000), (825_600, 825_600), 576_000));
}

#[test]
fn utilization_is_scaled_by_what_the_policy_was_set_to() {
    let mut frequency = phone(&|_| ());
    let scales = |frequency: &Frequency| [0, 3, 4, 7].map(|cpu| frequency.scale(CpuId(cpu)));
    // 300 of 1766.4 MHz, 825.6 of 2803.2.
    assert_eq!(scales(&frequency), [173, 173, 301, 301]);
    assert_eq!(frequency.fast_switch(CpuId(2), 1_000_000, us(1_000)), 1_228_800);
    assert_eq!(scales(&frequency), [712, 712, 301, 301]);
    // There are no counters to read.
    frequency.scale_freq_tick(CpuId(2), us(4_000));
    assert_eq!(frequency.scale(CpuId(2)), 712);
    run(&mut frequency, us(9_000));
    assert_eq!([0, 3, 4].map(|cpu| frequency.khz(CpuId(cpu))), [1_228_800, 1_228_800, 825_600]);
    let told: Vec<(u32, u32)> =
        frequency.cpufreq_policies().iter().map(|policy| (policy.min, policy.cpuinfo_max_freq)).collect();
    assert_eq!(told, [(300_000, 1_766_400), (825_600, 2_803_200)]);
}

#[test]
fn work_goes_in_proportion_to_a_kinds_own_highest_frequency() {
    let mut frequency = phone(&|policy| policy.governor = Governor::Performance);
    // What a big core would take: the kind's own speed comes on top.
    let at_highest = 1_000_000_000 / 2_803_200;
    assert_eq!((frequency.ps_per_cycle(CpuId(4)), frequency.ps_per_cycle(CpuId(0))), (at_highest, at_highest));
    frequency.vote(CpuId(0), 883_200, us(1_000));
    (1..4).for_each(|cpu| frequency.vote(CpuId(cpu), 883_200, us(1_000)));
    run(&mut frequency, us(9_000));
    assert_eq!(frequency.ps_per_cycle(CpuId(0)), 2_000_000_000 / 2_803_200);
}

#[test]
fn a_kind_shares_no_clock_with_the_cluster_of_its_number() {
    let mut four = topology("pack:1 cluster:2 core:2 pu:1");
    let kind = |name: &str, cpus: &[u16]| CpuKind::new(name, cpus.iter().map(|&cpu| CpuId(cpu)).collect());
    // No kind is given for the CPUs of the first cluster.
    four.kinds = vec![kind("small", &[2, 3])];
    let of = |model: &Model| [0, 1, 2, 3].map(|cpu| model.domain(&four, CpuId(cpu)));
    let [first, same, small, also] = of(&model(Sharing::Cluster));
    assert_eq!((first, small), (same, also));
    assert_ne!(first, small);
}

#[test]
fn each_kinds_turbo_counts_its_own_cores() {
    let machine = machine("core-i9-12900k");
    let model = model_of(&machine);
    let policy = Policy::new(&model, Driver::IntelPstate, Governor::Performance, FrequencyRules::V6_1, 250);
    let mut frequency = Frequency::new(machine.topology(), model, policy);
    let khz = |frequency: &Frequency| [0, 20].map(|cpu| frequency.khz(CpuId(cpu)));
    assert_eq!(khz(&frequency), [4_900_000, 3_700_000]);
    // One P-core, with all E-cores beside it.
    (2..16).for_each(|cpu| frequency.halt(CpuId(cpu), us(1_000), true));
    run(&mut frequency, us(9_000));
    assert_eq!(khz(&frequency), [5_200_000, 3_700_000]);
    // The kernel takes the boot CPU's full speed for all: 5.0 GHz with four active cores.
    frequency.scale_freq_tick(CpuId(20), us(9_000));
    assert_eq!(frequency.scale(CpuId(20)), 3_700 * 1024 / 5_000);
}
