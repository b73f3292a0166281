use super::*;
use crate::experiment::{Draft, Purpose};
use crate::machines::tests::Table;
use crate::run::{Run, Wanted, run};
use crate::trace::{Cut, TraceFormat, Wish, trace};
use machine::topology::Location;
use std::collections::BTreeMap;
use units::{CpuId, CpuMask, Ns, Ps};

fn taken() -> EnergyUse {
    let domain = |cpu: u16, executing_mj: u128| DomainEnergy {
        cpus: CpuMask::single(CpuId(cpu)),
        executing_aj: executing_mj * 1_000_000_000_000_000,
        idle_aj: vec![0, 2_500_000_000_000_000, 0],
    };
    EnergyUse {
        duration: Ps::from_ns(10_000_000),
        domains: vec![domain(0, 10), domain(1, 5)],
        packages: vec![PackageEnergy { cores_aj: 20_000_000_000_000_000, own_aj: 1_000_000_000_000_000 }],
    }
}

#[test]
fn energy_is_told_by_domain_and_state_and_adds_up() {
    let states = ["POLL", "C1", "C6"].map(str::to_string);
    let expected = "
energy, mJ     executing            C1           sum
cpus 0            10.000         2.500        12.500
cpus 1             5.000         2.500         7.500
package 0: cores 20.000, beside them 1.000, sum 21.000
";
    assert_eq!(table(&taken(), &states), expected);
    let run = RunEnergy::since(Some(EnergyUse { packages: Vec::new(), ..taken() }), Some(taken()), None).unwrap();
    assert_eq!((run.taken.duration, run.taken.domains[0].total_aj()), (Ps::ZERO, 0));
    let run = RunEnergy { taken: taken(), operations: None };
    assert_eq!((shown(run.joules()), format!("{:.3}", run.watts())), ("21.00 mJ".to_string(), "2.100".to_string()));
}

#[test]
fn the_document_has_what_the_text_tells() {
    let (setup, run) = phone("v6.12");
    let samples = &run.outcome.samples;
    let of = |taken, of_run| EnergyResult::of(&setup, &run.hardware.idle.states, taken, of_run, samples);
    assert_eq!(of(None, run.energy.as_ref()), None);
    let of_run = RunEnergy { operations: Some((4, "loop")), ..run.energy.clone().unwrap() };
    let told = of(run.hardware.energy.as_ref(), Some(&of_run)).unwrap();
    let text = text(&setup, &run.hardware.idle.states, run.hardware.energy.as_ref(), Some(&of_run), samples);
    let mj = |nj: u64| format!("{:.3}", nj as f64 / 1e6);
    for domain in &told.domains {
        let line = text.lines().find(|line| line.starts_with(&format!("cpus {}", domain.cpus))).unwrap();
        assert!(line.contains(&mj(domain.executing_nj)) && line.contains(&mj(domain.idle[0].nj)), "{line}: {domain:?}");
    }
    assert!(text.contains(&format!("package 0: cores {}", mj(told.packages[0].cores_nj))), "{text}: {told:?}");
    let each = told.from_start.each.unwrap();
    assert_eq!((each.operation.as_str(), each.nj), ("loop", of_run.joules() / 4.0 * 1e9));
    assert_eq!(told.from_start.total_nj, EnergyTaken::from(of_run.taken.clone()).total_nj);
    assert!(told.total_nj > told.from_start.total_nj && told.from_start.duration_ns > 0);
}

#[test]
fn what_is_stored_is_whole_nanojoules() {
    let stored = EnergyTaken::from(taken());
    assert_eq!(stored.domains[1], ("1".to_string(), 5_000_000, 2_500_000));
    assert_eq!((stored.packages[0], stored.total_nj), ((20_000_000, 1_000_000), 21_000_000));
    let text = serde_json::to_string(&stored).unwrap();
    assert_eq!(serde_json::from_str::<EnergyTaken>(&text).unwrap(), stored);
}

#[test]
fn joules_have_a_unit_of_their_size() {
    assert_eq!([2.5, 0.0123, 4.56e-4, 7e-7].map(shown), ["2.500 J", "12.30 mJ", "456.0 uJ", "700.000 nJ"]);
}

/// Tasks that are forked onto big CPUs and run for half a millisecond in eight, as in the scenarios `energy` and
/// `energy_off`.
const SMALL_TASKS: &str = "task a on=4: 60 x (run 500us; sleep 7500us)\n\
    task b on=5: 60 x (run 500us; sleep 8500us)\n\
    task c on=4 at=1ms: 60 x (run 500us; sleep 6500us)\n";

fn phone(arm: &str) -> (Setup, Run) {
    let files = Table(BTreeMap::from([("small.txt", SMALL_TASKS.to_string())]));
    let mut draft = Draft::default();
    draft.machine_option("snapdragon-845");
    draft.workload_option("script:file=small.txt").unwrap();
    draft.arm_options(&[arm.to_string()], true).unwrap();
    let experiment = draft.resolve(Purpose::Single, &files).unwrap_or_else(|mistake| panic!("{mistake}"));
    let setup = experiment.setup(&experiment.jobs()[0]);
    let run = run(&setup, Wanted { observed: true, ..Wanted::default() }, &Location::of("a test"));
    let run = run.unwrap_or_else(|mistake| panic!("{mistake}")).expect("nobody interrupted");
    (setup, run)
}

#[test]
fn small_tasks_take_less_where_the_scheduler_places_them_by_energy() {
    for driver in ["", ",cpufreq.driver=scmi"] {
        let joules = |aware: u32| {
            let (_, run) = phone(&format!("v6.1,kernel.sched_energy_aware={aware}{driver}"));
            let taken = run.energy.expect("a phone with powers").taken;
            let [little, big] = taken.domains.as_slice() else { panic!("two domains") };
            assert_eq!(taken.total_aj(), little.total_aj() + big.total_aj());
            (taken.total_aj() as f64 / 1e18, little.executing_aj, big.executing_aj)
        };
        let (aware, unaware) = (joules(1), joules(0));
        assert!(aware.0 < unaware.0 * 0.9, "{driver}: {aware:?} J, and {unaware:?} J without");
        assert!(aware.2 < unaware.2 && aware.1 > unaware.1, "{driver}: {aware:?}, and {unaware:?} without");
    }
}

#[test]
fn what_is_observed_is_what_the_run_took() {
    let (setup, run) = phone("v6.12");
    let of_run = run.energy.as_ref().expect("a phone with powers");
    assert_eq!(run.observed.as_ref().and_then(|it| it.energy.clone()), Some(of_run.taken.clone().into()));
    let from_boot = run.hardware.energy.as_ref().expect("the same");
    assert!(from_boot.total_aj() > of_run.taken.total_aj());
    let text = text(&setup, &run.hardware.idle.states, Some(from_boot), Some(of_run), &run.outcome.samples);
    assert!(text.contains("\ncpus 0-3") && text.contains("\nfrom the workload's start: "), "{text}");
}

#[test]
fn operations_are_counted_or_follow_from_a_rate() {
    let (mut setup, run) = phone("v6.1");
    let of_run = RunEnergy { operations: None, ..run.energy.expect("a phone with powers") };
    setup.workload.name = "netperf-tcp-rr".to_string();
    let (watts, joules) = (of_run.watts(), of_run.joules());
    // 2000.5 transactions a second, in thousandths.
    let (each, name) = of_run.per_operation(&setup, &[vec![2_000_000, 2_001_000]]).expect("a rate");
    assert_eq!((each, name.as_str()), (watts / 2_000.5, "transaction"));
    let counted = RunEnergy { operations: Some((500, "loop")), ..of_run.clone() };
    assert_eq!(counted.per_operation(&setup, &[]), Some((joules / 500.0, "loop".to_string())));
    setup.workload.name = "schbench".to_string();
    assert_eq!(of_run.per_operation(&setup, &[vec![5]]), None);
}

#[test]
fn a_machine_without_powers_says_so() {
    let (setup, run) = phone("v6.1");
    let said = |setup: &Setup| text(setup, &run.hardware.idle.states, None, None, &[]);
    assert_eq!(said(&setup), "\nEnergy is not reckoned: what CPUs of snapdragon-845 draw is not known\n");
    assert_eq!(said(&Setup { costs: false, ..setup }), "\nEnergy is not reckoned: the cost model is off\n");
}

#[test]
fn a_trace_counts_power_where_it_is_known() {
    let (setup, _) = phone("v6.1,cpufreq.driver=scmi");
    let traced = |setup: &Setup| {
        let cut = Cut { from: Some(Ns::from_ms(5)), to: Some(Ns::from_ms(30)) };
        let wish = Wish { format: TraceFormat::Perfetto, cut, columns: 80, events: None };
        let done = trace(setup, wish, Vec::new(), &|| false).expect("a trace").expect("nobody interrupted");
        let named = |name: &[u8]| done.0.windows(name.len()).any(|bytes| bytes == name);
        (named(b"CPU 0 power"), named(b"CPU 7 power"))
    };
    assert_eq!(traced(&setup), (true, true));
    assert_eq!(traced(&Setup { costs: false, ..setup }), (false, false));
}
