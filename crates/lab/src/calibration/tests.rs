//! Calibrations of a computer that does not exist.

use super::*;
use machine::description::How;
use machine::idle::Governor;
use machine::topology::{Numbering, from_synthetic};

/// A two-CPU computer of plausible figures.
pub(crate) fn observed() -> Observed {
    let measurement = |(name, unit, value): (&str, &str, f64)| Measurement {
        name: name.to_string(),
        unit: unit.to_string(),
        value,
        low: value * 0.9,
        high: value * 1.3,
        bursts: 99,
        ran: format!("the experiment \"{name}\""),
    };
    let measurements = [
        ("frequency", "GHz", 4.0),
        ("syscall", "ns", 100.0),
        ("pipe_self", "ns", 500.0),
        ("futex_wake", "ns", 150.0),
        ("futex_wait_refused", "ns", 200.0),
        ("copy", "ns/B", 0.04),
        ("size.l1", "B", 32768.0),
        ("size.l2", "B", 1048576.0),
        ("size.llc", "B", 33554432.0),
        ("load.l1", "ns", 1.2),
        ("load.l2", "ns", 4.0),
        ("load.llc", "ns", 12.0),
        ("load.memory", "ns", 110.0),
        ("bandwidth.half", "GB/s", 20.0),
        ("bandwidth.all", "GB/s", 25.0),
        ("line.0-1", "ns", 25.0),
        ("switch.yield", "ns", 1_000.0),
        ("switch.processes", "ns", 150.0),
        ("futex_pair.same", "ns", 3_500.0),
        ("futex_pair.llc", "ns", 9_000.0),
        ("wake.10", "ns", 4_000.0),
        ("wake.1000", "ns", 6_000.0),
        ("wake_call.100", "ns", 2_500.0),
        ("process_exit", "ns", 90_000.0),
    ];
    Observed {
        name: "this".to_string(),
        host: Host {
            cpu_model: "A \"quoted\" CPU".to_string(),
            kernel: "6.18.4 #1".to_string(),
            cpus: "0-1".to_string(),
            virtual_machine: true,
            hz: Some(250),
            preempt: None,
            idle: None,
            halt_poll_ns: None,
        },
        topology: from_synthetic("pack:1 [numa] l3:1 l2:2 core:1 pu:1", "test", Numbering::LinuxX86).unwrap(),
        when: "2026-01-01 00:00".to_string(),
        idle_states: Vec::new(),
        frequency: None,
        measurements: measurements.map(measurement).to_vec(),
        lines: vec![("llc".to_string(), "line.0-1".to_string())],
        unseen: vec!["something\nsplit".to_string()],
    }
}

/// As users run it.
fn calibrate(observed: &Observed) -> Result<Calibration, Mistake> {
    super::calibrate(observed, &|| false).map(|calibration| calibration.expect("nobody interrupts it"))
}

/// With shorter runs, for tests where the fit's accuracy does not matter.
fn roughly(observed: &Observed) -> Calibration {
    match with_effort(observed, Effort { rounds: [10, 60], passes: 1 }, &|| false) {
        Ok(calibration) => calibration,
        Err(Stop::Mistake(mistake)) => panic!("{mistake}"),
        Err(Stop::Interrupted) => panic!("nobody interrupts it"),
    }
}

#[test]
fn an_interrupted_fit_ends_in_the_middle_of_a_run() {
    // Each simulation polls more than once.
    for most in [0, 7] {
        let asked = std::cell::Cell::new(0);
        let interrupted = || {
            asked.set(asked.get() + 1);
            asked.get() > most
        };
        assert!(super::calibrate(&observed(), &interrupted).unwrap().is_none());
        assert_eq!(asked.get(), most + 1);
    }
}

#[test]
fn a_calibrated_machine_takes_as_long_as_was_measured() {
    let calibration = calibrate(&observed()).unwrap();
    assert_eq!(calibration.arm, "v6.18");
    assert_eq!(calibration.notes, Vec::<String>::new());
    for check in &calibration.checks {
        let off = (check.simulated / check.measured - 1.0).abs();
        assert!(off < if check.fitted { fit::FITTED } else { 1.0 }, "{check:?}");
    }
    let machine = Machine::parse(&calibration.text, "x").unwrap().description;
    assert_eq!(machine.fixed_hertz(), 4_000_000_000);
    assert_eq!(machine.listed_os("entry_SYSCALL_64"), Some(units::Cycles(400)));
    let switch = machine.figure("paths.switch_mm").expect("it was measured");
    assert_eq!((switch.value, switch.range, switch.how.name()), (600, (540, 780), "derived"));
    assert_eq!(machine.tick_hertz(), 250);
    // 25 bytes a ns. Two CPUs read little more than one does, so they have met the limit.
    assert_eq!(machine.memory_ps_per_kib(), 40 * 1024);
    let delivery = machine.figure("memory.delivery").expect("it was measured");
    assert_eq!(delivery.range, (31_508, 45_511), "32.5 and 22.5 bytes a ns");
    assert!(!delivery.source.contains("no more"), "{}", delivery.source);
    assert!(!machine.wakes_by_mwait());
    let line = machine.figure("line.llc").unwrap();
    assert_eq!((line.value, line.how.name()), (25_000, "measured"));
    assert!(line.source.contains("the experiment \"line.0-1\""));
    assert!(calibration.text.starts_with("# Measured by `fairground calibrate` on 2026-01-01 00:00, UTC.\n"));
    assert!(calibration.text.contains("# Not seen: something split\n"));
}

#[test]
fn a_switch_between_processes_that_was_not_seen_stays_a_guess() {
    for seen in [None, Some(0.0)] {
        let mut observed = observed();
        observed.measurements.retain_mut(|it| {
            it.value = if it.name == "switch.processes" { seen.unwrap_or(it.value) } else { it.value };
            it.name != "switch.processes" || seen.is_some()
        });
        let text = roughly(&observed).text;
        let machine = Machine::parse(&text, "x").unwrap().description;
        assert_eq!(machine.figure("paths.switch_mm").expect("the base has it").how.name(), "guess");
    }
}

#[test]
fn memory_beyond_the_own_node_is_a_guess_at_every_distance() {
    let mut observed = observed();
    let topology = "pack:1 group:2 [numa] l3:1 core:1 pu:1";
    observed.topology = from_synthetic(topology, "test", Numbering::LinuxX86).unwrap();
    observed.lines = vec![("package".to_string(), "line.0-1".to_string())];
    let machine = Machine::parse(&roughly(&observed).text, "x").unwrap().description;
    let package = machine.figure("memory.package").expect("the other node of the package");
    assert_eq!((package.value, package.how.name()), (132_000, "guess"), "a fifth more than 110 ns");
    assert!(machine.figure("memory.remote_1").is_none(), "there is no such distance");
}

#[test]
fn memory_that_its_cpus_do_not_exhaust_may_deliver_more() {
    let mut observed = observed();
    let line = |observed: &Observed| {
        let mut out = String::new();
        write::delivery(observed, &mut out);
        out
    };
    for it in observed.measurements.iter_mut().filter(|it| it.name == "bandwidth.all") {
        it.value = 38.0;
    }
    let more = line(&observed);
    assert!(more.starts_with("delivery = { value = 26947, unit = \"ps/KiB\", range = [6737, "), "{more}");
    assert!(more.contains("memory may deliver it"), "{more}");
    observed.measurements.retain(|it| it.name != "bandwidth.all");
    assert_eq!(line(&observed), "", "what was not measured is no limit");
}

#[test]
fn idle_states_are_the_drivers() {
    let mut observed = observed();
    observed.host.idle = Some("intel_idle/menu".to_string());
    observed.idle_states =
        vec![("POLL".to_string(), 0, 0), ("C1".to_string(), 2, 2), ("deep idle".to_string(), 133, 400)];
    observed.frequency = Some((1_200_000, 4_000_000, "schedutil".to_string()));
    let calibration = roughly(&observed);
    let machine = Machine::parse(&calibration.text, "x").unwrap().description;
    let states = machine.idle_states();
    assert_eq!(states.iter().map(|state| state.name.as_str()).collect::<Vec<_>>(), ["POLL", "C1", "deep-idle"]);
    // The difference is how much longer a wakeup takes after a longer idleness.
    assert_eq!(states[2].wake.0 - states[1].wake.0, 2_000_000);
    assert!(machine.wakes_by_mwait());
    assert_eq!(machine.min_hertz(), 1_200_000_000);
}

#[test]
fn a_figure_that_is_missing_is_named() {
    let mut observed = observed();
    observed.measurements.retain(|measurement| measurement.name != "pipe_self");
    let error = calibrate(&observed).unwrap_err().to_string();
    assert!(error.starts_with("calibrate: found no figure of pipe_self"), "{error}");
}

#[test]
fn one_cpu_is_a_computer_too() {
    let mut observed = observed();
    observed.topology = from_synthetic("pack:1 [numa] l3:1 l2:1 core:1 pu:1", "test", Numbering::LinuxX86).unwrap();
    observed.lines.clear();
    observed
        .measurements
        .retain(|it| !it.name.starts_with("wake") && it.name != "futex_pair.llc" && it.name != "line.0-1");
    roughly(&observed);
}

#[test]
fn the_speed_beside_a_sibling_is_the_measured_one() {
    let speed = |measured: Option<f64>| {
        let mut observed = observed();
        observed.topology = from_synthetic("pack:1 [numa] l3:1 l2:1 core:1 pu:2", "test", Numbering::LinuxX86).unwrap();
        observed.lines[0].0 = "smt".to_string();
        observed.measurements.extend(measured.map(|value| Measurement {
            name: "speed_beside_sibling".to_string(),
            unit: "ratio".to_string(),
            value,
            low: value * 0.9,
            high: value * 1.1,
            bursts: 99,
            ran: "beside another".to_string(),
        }));
        let [paths, os, wake, send] = [0.5, 1.5, 1_000.0, 400.0].map(fit::Range::exactly);
        let text = write::machine_file(&observed, &fit::Fitted { paths, os, wake, send }, "v6.12", None).unwrap();
        let machine = Machine::parse(&text, "a test").unwrap_or_else(|mistake| panic!("{mistake}\n{text}")).description;
        let figure = machine.figure("smt.speed").unwrap();
        (figure.value, figure.range, figure.how)
    };
    assert_eq!(speed(Some(0.7)), (700, (630, 770), How::Measured));
    assert_eq!(speed(Some(0.95)).1, (855, 1_000));
    // If nothing is known, the figure is that of every machine that says nothing.
    assert_eq!(speed(None).2, How::Guess);
}

#[test]
fn what_cannot_be_met_is_said() {
    let mut observed = observed();
    for it in observed.measurements.iter_mut().filter(|it| it.name == "futex_pair.llc") {
        (it.value, it.low) = (10.0, 9.0);
    }
    let calibration = roughly(&observed);
    assert!(calibration.notes[0].starts_with("futex_pair.llc: no price of leaving idle"), "{:?}", calibration.notes);
}

#[test]
fn the_arm_is_what_is_known_of_the_kernel() {
    let mut host = observed().host;
    assert_eq!(nearest_arm(&host), "v6.18");
    host.preempt = Some("none".to_string());
    assert_eq!(nearest_arm(&host), "v6.18,preempt=none");
    // The preemption model of this kernel is built in.
    host.kernel = "4.16.3".to_string();
    assert_eq!(nearest_arm(&host), "v4.16");
}

#[test]
fn the_governor_of_idle_states_stands_in_the_file() {
    let of = |idle: Option<&str>, halt_poll_ns: Option<u64>| {
        let mut observed = observed();
        observed.host.idle = idle.map(str::to_string);
        observed.host.halt_poll_ns = halt_poll_ns;
        let [paths, os, wake, send] = [0.5, 1.5, 1_000.0, 400.0].map(fit::Range::exactly);
        let text = write::machine_file(&observed, &fit::Fitted { paths, os, wake, send }, "v6.12", None).unwrap();
        let machine = Machine::parse(&text, "a test").unwrap_or_else(|mistake| panic!("{mistake}")).description;
        (machine.idle_governor(), machine.halt_poll_ns())
    };
    assert_eq!(of(Some("acpi_idle/teo"), None), (Some(Governor::Teo), None));
    assert_eq!(of(Some("haltpoll/haltpoll"), Some(0)), (Some(Governor::Haltpoll), Some(0)));
    // A driver that is not simulated, a driver that is not known, and no driver.
    for idle in [Some("intel_idle/tomorrow"), Some("acpi_idle/unknown"), None] {
        assert_eq!(of(idle, None), (None, None));
    }
}

#[test]
fn the_nearest_kernel_is_not_newer() {
    for (release, kernel) in [
        ("6.18.44-fc #1", "v6.18"),
        ("6.17.0", "v6.12"),
        ("6.1.0-13-amd64", "v6.1"),
        ("6.6.1", "v6.6"),
        ("6.5.1", "v6.1"),
        ("5.4.0-216-generic", "v5.4"),
        ("4.19.0-27-amd64", "v4.19"),
        ("4.18.20", "v4.16"),
        ("4.16.3", "v4.16"),
        ("3.10", "v4.5-rc1"),
    ] {
        assert_eq!(nearest_kernel(release), kernel, "{release}");
    }
}

/// The machine without the fits, which take long.
fn unfitted(observed: &Observed) -> machine::description::Description {
    let exactly = fit::Range::exactly;
    let fitted = fit::Fitted { paths: exactly(0.5), os: exactly(1.5), wake: exactly(1_000.0), send: exactly(400.0) };
    let text = write::machine_file(observed, &fitted, "v6.12", None).expect("every figure is there");
    Machine::parse(&text, "x").unwrap_or_else(|mistake| panic!("{mistake}")).description
}

#[test]
fn the_pair_that_idleness_is_fitted_to_is_the_one_that_is_named() {
    let mut observed = observed();
    let pair = observed.measurements.iter().find(|it| it.name == "futex_pair.llc").expect("it is there");
    let pair = |name: &str| Measurement { name: name.to_string(), ran: format!("on two of {name}"), ..pair.clone() };
    let pairs = ["smt", "llc", "package", "remote_1", "remote_2"].map(|name| pair(&format!("futex_pair.{name}")));
    observed.measurements.retain(|it| it.name != "futex_pair.llc");
    observed.measurements.extend(pairs);
    for (topology, named) in [
        ("pack:2 [numa] l3:2 core:2 pu:2", "llc"),
        ("pack:2 [numa] l3:2 core:1 pu:2", "package"),
        ("pack:2 [numa] l3:1 core:1 pu:2", "remote_1"),
        ("pack:1 [numa] l3:1 core:1 pu:2", "smt"),
    ] {
        observed.topology = from_synthetic(topology, "test", Numbering::LinuxX86).unwrap();
        let [paths, os, wake, send] = [0.5, 1.5, 1_000.0, 400.0].map(fit::Range::exactly);
        let text = write::machine_file(&observed, &fit::Fitted { paths, os, wake, send }, "v6.12", None)
            .unwrap_or_else(|mistake| panic!("{mistake}"));
        assert_eq!(text.matches("on two of futex_pair.").count(), 1, "{topology}");
        assert!(text.contains(&format!("on two of futex_pair.{named};")), "{topology}: {text}");
    }
}

#[test]
fn a_clock_beyond_what_the_driver_declares_is_believed() {
    let mut observed = observed();
    for (declared, min, max) in [
        ((1_200_000, 3_600_000), 1_200, 4_000),
        ((4_200_000, 4_500_000), 4_000, 4_500),
        ((800_000, 4_000_000), 800, 4_000),
    ] {
        observed.frequency = Some((declared.0, declared.1, "schedutil".to_string()));
        let machine = unfitted(&observed);
        assert_eq!(machine.min_hertz(), min * 1_000_000, "{declared:?}");
        assert_eq!(machine.figure("frequency.max").map(|max| max.value), Some(max * 1_000_000), "{declared:?}");
    }
}

#[test]
fn every_distance_of_the_computer_has_a_price_and_none_that_is_less_than_a_nearer_one() {
    let mut observed = observed();
    observed.topology = from_synthetic("pack:2 [numa] l3:2 core:2 pu:2", "test", Numbering::LinuxX86).unwrap();
    let pair = |name: &str, value: f64| Measurement {
        name: name.to_string(),
        unit: "ns".to_string(),
        value,
        low: value * 0.9,
        high: value * 1.3,
        bursts: 9,
        ran: "a pair".to_string(),
    };
    let prices = |lines: &[(&str, f64)]| {
        let mut observed = observed.clone();
        observed.lines = lines.iter().map(|(distance, _)| (distance.to_string(), format!("pair.{distance}"))).collect();
        observed.measurements.extend(lines.iter().map(|(distance, value)| pair(&format!("pair.{distance}"), *value)));
        let machine = unfitted(&observed);
        ["smt", "llc", "package", "remote_1"].map(|name| {
            machine.figure(&format!("line.{name}")).map_or((0, "none"), |it| (it.value / 1_000, it.how.name()))
        })
    };
    let all = [("smt", 10.0), ("llc", 25.0), ("package", 80.0), ("remote_1", 140.0)];
    let seen = "measured";
    assert_eq!(prices(&all), [(10, seen), (25, seen), (80, seen), (140, seen)]);
    // A process that may use only some of the CPUs.
    assert_eq!(prices(&all[..2]), [(10, seen), (25, seen), (25, "guess"), (25, "guess")]);
    assert_eq!(prices(&all[3..]), [(140, "guess"), (140, "guess"), (140, "guess"), (140, seen)]);
    assert_eq!(prices(&[]), [(40, "guess"); 4]);
    // A hypervisor has placed them elsewhere than it says.
    let other = [("smt", 90.0), ("llc", 25.0), ("package", 20.0), ("remote_1", 140.0)];
    assert_eq!(prices(&other), [(90, seen), (90, "derived"), (90, "derived"), (140, seen)]);
}
