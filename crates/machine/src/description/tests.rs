//! The built-in machines, files that are refused, and round trips.

use super::*;
use crate::topology::{Numbering, from_synthetic};
use std::collections::BTreeMap;

/// A machine of two sockets. Unlike those of the built-in machines its numbers never change.
const XEON: &str = include_str!("../../tests/fixtures/two-sockets.toml");

fn shipped(name: &str) -> Description {
    let (_, text) = builtin().iter().find(|(other, _)| *other == name).expect("a machine that ships");
    parse(text, &format!("machines/{name}.toml")).unwrap_or_else(|error| panic!("{error}"))
}

fn two_sockets() -> Description {
    parse(XEON, "m.toml").unwrap_or_else(|error| panic!("{error}"))
}

fn cpu(index: usize) -> CpuId {
    CpuId::new(index)
}

#[test]
fn the_machines_that_ship_load_and_bear_their_names() {
    for (name, _) in builtin() {
        let machine = shipped(name);
        assert_eq!(machine.name(), *name);
        assert!(machine.topology().notices().is_empty(), "{name}: {:?}", machine.topology().notices());
        assert!(machine.figures().count() > 40, "{name}");
        for (figure_name, figure) in machine.figures() {
            assert!(figure.range.0 <= figure.value && figure.value <= figure.range.1, "{name} {figure_name}");
            // A fitted number could have been another one.
            assert!(figure.range.0 < figure.range.1 || figure.how != How::Fitted, "{name} {figure_name}");
        }
        let states = machine.idle_states();
        assert!(states.is_sorted_by_key(|state| (state.exit_latency, state.target_residency)), "{name}");
        assert!(states.iter().all(|state| state.wake <= state.exit_latency.max(Ps::from_ns(50_000))), "{name}");
        assert!(machine.min_hertz() <= machine.base_hertz() && machine.base_hertz() <= machine.fixed_hertz());
    }
}

#[test]
fn figures_are_asked_for_by_what_they_are() {
    let xeon = two_sockets();
    assert_eq!(xeon.topology().summary(), "2 packages, 2 NUMA nodes, 2 last level caches, 24 cores, 48 CPUs");
    assert_eq!(xeon.topology().distance(cpu(0), cpu(24)), Distance::Smt);
    assert_eq!(xeon.topology().distance(cpu(0), cpu(12)), Distance::Remote(1));
    assert_eq!(xeon.topology().node_distance(0, 1), 21);
    assert_eq!(xeon.line_transfer(Distance::Smt), Ps(7_600));
    assert_eq!(xeon.line_transfer(Distance::Llc), Ps(40_000));
    assert_eq!(xeon.line_transfer(Distance::Remote(1)), Ps(118_000));
    assert_eq!(xeon.line_transfer(Distance::Same), Ps::ZERO);
    assert_eq!(xeon.memory_load(Distance::Same), Ps(95_000));
    assert_eq!(xeon.memory_load(Distance::Remote(1)), Ps(146_000));
    assert_eq!((xeon.l2_bytes()[0], xeon.llc_bytes()), (256 << 10, vec![30 << 20; 2]));
    assert_eq!(xeon.copy_ps_per_kib(), 81_920);
    assert_eq!((xeon.turbo_hertz(1), xeon.turbo_hertz(12)), (3_100_000_000, 2_600_000_000));
    assert_eq!(xeon.default_path_cycles(), Cycles(60));
    let c6 = xeon.idle_states().pop().unwrap();
    assert_eq!((c6.exit_latency, c6.target_residency), (Ps::from_ns(133_000), Ps::from_ns(400_000)));
}

#[test]
fn the_machines_have_the_shape_of_their_studies() {
    let xeon = shipped("xeon-e5-2670v3-2s");
    assert_eq!(xeon.topology(), two_sockets().topology());
    let declared = |machine: &Description| {
        let deepest = machine.idle_states().pop().unwrap();
        (deepest.name, deepest.exit_latency, deepest.target_residency)
    };
    assert_eq!(declared(&xeon), ("C6".to_string(), Ps::from_ns(133_000), Ps::from_ns(400_000)));

    let big = shipped("ivybridge-ex-16s");
    assert_eq!(big.topology().nr_cpus(), 480);
    assert_eq!(big.topology().distance(cpu(0), cpu(15)), Distance::Remote(1));
    assert_eq!(big.topology().distance(cpu(0), cpu(30)), Distance::Remote(2));
    assert_eq!(big.topology().distance(cpu(0), cpu(240)), Distance::Smt);
    assert_eq!(declared(&big), ("C6".to_string(), Ps::from_ns(88_000), Ps::from_ns(700_000)));
    // Beyond the distances that have prices: the price of the farthest that has one.
    assert_eq!(big.line_transfer(Distance::Remote(9)), big.line_transfer(Distance::Remote(2)));

    for name in ["core-i7-3770", "skylake-uma-8"] {
        let small = shipped(name);
        assert_eq!(small.topology().summary(), "1 package, 1 NUMA node, 1 last level cache, 4 cores, 8 CPUs");
        assert_eq!(small.topology().cores()[0].cpus.list(), "0,4");
    }
    let i7 = shipped("core-i7-3770");
    assert!(i7.turbo_hertz(4) < i7.turbo_hertz(3) && i7.turbo_hertz(3) < i7.turbo_hertz(2));
    assert_eq!(i7.turbo_hertz(9), i7.turbo_hertz(4));
}

#[test]
fn a_turbo_bin_holds_for_up_to_so_many_active_cores() {
    let bins = |given: &[(u32, &str)], cores: u32| {
        let line = |&(n, ghz): &(u32, &str)| {
            format!(
                "turbo_{n} = {{ value = {ghz}, unit = \"GHz\", range = [{ghz}, {ghz}], how = \"guess\", source = \"made up\" }}\n"
            )
        };
        let without: String =
            XEON.lines().filter(|line| !line.starts_with("turbo_")).map(|line| line.to_string() + "\n").collect();
        let lines: String = given.iter().map(line).collect();
        let text = without.replacen("[frequency]\n", &format!("[frequency]\n{lines}"), 1);
        let machine = parse(&text, "m.toml").unwrap_or_else(|error| panic!("{error}"));
        machine.turbo_hertz(cores) / 100_000_000
    };
    let given = [(1, "3.0"), (2, "2.9"), (4, "2.8"), (8, "2.6")];
    let of = |cores: &[u32]| cores.iter().map(|&cores| bins(&given, cores)).collect::<Vec<_>>();
    assert_eq!(of(&[1, 2, 3, 4, 5, 6, 8]), [30, 29, 28, 28, 26, 26, 26]);
    assert_eq!(of(&[9, 12, 400]), [26; 3], "beyond all that are given: the last one's");
    assert_eq!((bins(&[], 1), bins(&[], 12)), (31, 31), "none are given: the highest");
    assert_eq!((bins(&[(12, "2.6")], 1), bins(&[(12, "2.6")], 2)), (31, 26), "one core's is the highest of all");
}

#[test]
fn figures_come_in_the_order_of_the_file() {
    let xeon = two_sockets();
    let names: Vec<&str> = xeon.figures().map(|(name, _)| name).collect();
    assert_eq!(names[..3], ["default_path_cycles", "topology.distances.21", "frequency.base"]);
    assert_eq!(names.last(), Some(&"idle.C6.wake"));
    assert_eq!(xeon.facts().map(|(name, _)| name).collect::<Vec<_>>(), ["frequency.control", "idle.wake_by"]);
}

#[test]
fn a_users_topology_borrows_prices_as_guesses() {
    let topology = |text: &str| from_synthetic(text, "t", Numbering::AsListed).unwrap();
    assert_eq!(default_prices(&topology("pack:2 l3:1 core:12 pu:2")).0, "xeon-e5-2670v3-2s");
    assert_eq!(default_prices(&topology("pack:8 core:2 pu:1")).0, "ivybridge-ex-16s");
    assert_eq!(default_prices(&topology("core:4 pu:2")).0, "skylake-uma-8");
    assert_eq!(default_prices(&topology("l3:1 core:32 pu:2")).0, "xeon-e5-2670v3-2s");
    // The shape of a built-in machine leads to that machine; a desktop's shape occurs twice.
    for (name, text) in builtin() {
        let machine = parse(text, name).unwrap_or_else(|error| panic!("{error}"));
        let desktop = ["core-i7-3770", "skylake-uma-8"].contains(name);
        assert_eq!(prices_of_shape(machine.topology()), Some(if desktop { "skylake-uma-8" } else { name }));
    }
    // Eight cores of one kind are no phone, and a server whose cores' frequencies differ is no desktop hybrid.
    assert_eq!(prices_of_shape(&topology("pack:1 l3:1 core:8 pu:1")), None);
    let mixed = |text: &str, capacity: u32| {
        let topology = topology(text);
        let half: CpuMask = (0..topology.nr_cpus() / 2).map(CpuId::new).collect();
        let mut mixed = topology.with_capacity(&half, capacity);
        mixed.kinds = vec![CpuKind::new("cpu_core", half.clone()), CpuKind::new("b", CpuMask::default())];
        mixed
    };
    let of_eight = |capacity| prices_of_shape(&mixed("pack:1 l3:1 core:8 pu:1", capacity));
    assert_eq!([of_eight(500), of_eight(1_010)], [Some("snapdragon-845"), None]);
    assert_eq!(default_prices(&mixed("l3:1 core:16 pu:1", 800)).0, "snapdragon-845");
    assert_eq!(default_prices(&mixed("l3:1 core:16 pu:1", 1_010)).0, "core-i9-12900k");
    assert_eq!(default_prices(&mixed("l3:1 core:64 pu:1", 800)).0, "xeon-e5-2670v3-2s");
    let mut intels = mixed("l3:1 core:16 pu:1", 600);
    intels.kinds[1].name = "cpu_atom".to_string();
    assert_eq!(default_prices(&intels), ("core-i9-12900k", "which has CPUs of several kinds too"));
    assert_eq!(prices_of_shape(&topology("pack:2 [numa] l3:16 l2:4 core:1 pu:2")), Some("epyc-7742-2s-nps1"));
    assert_eq!(prices_of_shape(&topology("pack:2 [numa] l3:16 l2:3 core:1 pu:2")), None);

    let mine = for_topology(
        "mine",
        topology("pack:2 [numa] l3:2(size=16MiB) l2:2(size=1MiB) core:1 pu:2"),
        "hearsay",
        How::Published,
    );
    let Fact { source, how, .. } = mine.topology_fact();
    assert_eq!((source.as_str(), *how), ("hearsay", How::Published));
    assert_eq!(mine.name(), "mine");
    assert_eq!(mine.topology().nr_cpus(), 16);
    let sizes = ["cache.l2_size", "cache.llc_size"];
    assert!(mine.figures().all(|(name, figure)| (figure.how == How::Guess) != sizes.contains(&name)));
    assert!(mine.facts().all(|(_, fact)| fact.how == How::Guess));
    let llc = mine.figure("line.llc").unwrap();
    let theirs = shipped("xeon-e5-2670v3-2s").figure("line.llc").unwrap().clone();
    assert_eq!(llc.source, format!("taken from xeon-e5-2670v3-2s: {}", theirs.source));
    assert_eq!((llc.value, llc.range), (theirs.value, (theirs.range.0 / 2, theirs.range.1 * 2)));
    // Sizes that the topology knows are kept.
    assert_eq!((mine.l2_bytes(), mine.llc_bytes()), (vec![1 << 20; 8], vec![16 << 20; 4]));
    assert_eq!(mine.line_transfers()[Distance::Package.index()], mine.figure("line.package").unwrap().time());
}

#[test]
fn threads_of_cores_without_numbers_are_written_too() {
    let xml = include_str!("../../tests/fixtures/two-packages-v3.xml");
    let numbered = crate::topology::from_hwloc_xml(xml, "x").unwrap();
    let plain: Vec<&str> = xml.split("<object type=\"Core\" os_index=").collect();
    assert!(plain.len() > 2, "the fixture numbers its cores");
    let strip = |rest: &str| rest.split_once(' ').expect("more attributes").1.to_string();
    let rest: String = plain[1..].iter().map(|rest| format!("<object type=\"Core\" {}", strip(rest))).collect();
    let topology = crate::topology::from_hwloc_xml(&format!("{}{rest}", plain[0]), "x").unwrap();
    assert!(topology.cores().iter().all(|core| core.os_index.is_none()));
    let text = for_topology("x", topology, "there", How::Measured).to_toml();
    let again = parse(&text, "x").unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(again.topology().cores().len(), numbered.cores().len());
    assert!(again.topology().cores().len() < again.topology().nr_cpus());
}

#[test]
fn prices_are_those_of_the_machine_with_the_same_processor() {
    let topology = |text: &str| from_synthetic(text, "t", Numbering::AsListed).unwrap();
    let prices = |model: &str| prices_of_processor(model, &topology("pack:2 [numa] l3:1 core:4 pu:2"));
    for (model, machine) in [
        ("Intel(R) Core(TM) i7-3770 CPU @ 3.40GHz", Some("core-i7-3770")),
        ("Intel(R) Core(TM) i7-3770K CPU @ 3.50GHz", None),
        ("12th Gen Intel(R) Core(TM) i9-12900K", Some("core-i9-12900k")),
        ("Intel(R) Xeon(R) CPU E5-2670 v3 @ 2.30GHz", Some("xeon-e5-2670v3-2s")),
        ("Intel(R) Xeon(R) CPU E5-2670 v2 @ 2.50GHz", None),
        ("Intel(R) Xeon(R) Platinum 8375C CPU @ 2.90GHz", Some("xeon-platinum-8375c-2s")),
        ("Intel(R) Xeon(R) Platinum 8480+", Some("xeon-platinum-8480-2s")),
        ("Intel(R) Xeon(R) Processor", None),
        ("AMD EPYC 7763 64-Core Processor", Some("epyc-7763-2s-nps1")),
        ("AMD EPYC 9654 96-Core Processor", Some("epyc-9654")),
        ("POWER9, altivec supported", Some("power9-16c-2s")),
        ("Qualcomm Technologies, Inc SDM845", Some("snapdragon-845")),
        ("", None),
    ] {
        assert_eq!(prices(model), machine, "{model}");
    }
    let rome = |text: &str| prices_of_processor("AMD EPYC 7742 64-Core Processor", &topology(text)).unwrap();
    assert_eq!(rome("pack:2 group:4 [numa] l3:2 core:4 pu:2"), "epyc-7742-2s-nps4");
    assert_eq!(rome("pack:2 group:2 [numa] l3:2 core:4 pu:2"), "epyc-7742-2s-nps2");
    assert_eq!(rome("pack:1 group:3 [numa] l3:2 core:4 pu:2"), "epyc-7742-2s-nps1", "none has three");
}

/// However many of a processor's CPUs a user has: a virtual machine has few of them.
#[test]
fn every_machines_prices_fit_other_topologies() {
    for (prices, _) in builtin() {
        for text in
            ["core:1 pu:1", "l3:1 core:2 pu:2", "pack:2 group:2 [numa] l3:2 l2:2 core:2 pu:4", "pack:5 core:1 pu:1"]
        {
            let topology = from_synthetic(text, "t", Numbering::AsListed).unwrap();
            let machine = with_prices(prices, "mine", topology, "hearsay", How::Measured);
            let again =
                parse(&machine.to_toml(), "mine.toml").unwrap_or_else(|error| panic!("{prices} for {text}: {error}"));
            assert!(machine.about().ends_with(&format!("Prices of {prices}.")), "{}", machine.about());
            assert_eq!(again.topology().nr_cpus(), machine.topology().nr_cpus(), "{prices}");
        }
    }
}

#[test]
fn a_machine_that_is_written_reads_back_as_itself() {
    let plain = |machine: &Description| {
        let figures: BTreeMap<String, Figure> =
            machine.figures().map(|(name, f)| (name.to_string(), f.clone())).collect();
        let facts: Vec<(String, Fact)> = machine.facts().map(|(name, f)| (name.to_string(), f.clone())).collect();
        (machine.name().to_string(), machine.about().to_string(), figures, facts, machine.idle_states())
    };
    for (name, _) in builtin() {
        let machine = shipped(name);
        let again = parse(&machine.to_toml(), "again.toml").unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(plain(&again), plain(&machine));
        assert_eq!(again.topology(), machine.topology());
        assert_eq!(again.to_toml(), parse(&again.to_toml(), "again.toml").unwrap().to_toml());
    }
}

#[test]
fn topologies_without_symmetry_are_written_and_read() {
    let mut topology = crate::topology::from_hwloc_xml(
        include_str!("../../tests/fixtures/two-packages-v3.xml"),
        "two-packages-v3.xml",
    )
    .unwrap();
    topology.nodes.iter_mut().for_each(|node| node.memory_bytes = None);
    let machine = for_topology("a \"quoted\" name", topology, "a test", How::Guess);
    let again = parse(&machine.to_toml(), "again.toml").unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(again.topology(), machine.topology());
    assert_eq!(again.topology().cpu(cpu(7)).capacity, 600);
    assert_eq!(again.name(), "a \"quoted\" name");
}

#[test]
fn prices_can_be_replaced_and_names_checked() {
    let mut xeon = two_sockets();
    let figure = Figure { value: 50_000, ..xeon.figure("line.llc").unwrap().clone() };
    xeon.replace("line.llc", figure);
    assert_eq!(xeon.line_transfer(Distance::Llc), Ps(50_000));

    let priced =
        "\n[paths]\nshedule = { value = 10, unit = \"cycles\", source = \"s\", how = \"guess\", range = [1, 20] }\n";
    let text = XEON.replacen("\n[paths]\n", priced, 1);
    let machine = parse(&text, "m.toml").unwrap();
    assert_eq!(machine.listed_path("shedule"), Some(Cycles(10)));
    let line = text.lines().position(|line| line.starts_with("shedule")).unwrap() + 1;
    assert_eq!(
        machine.check_names("paths", &["schedule", "try_to_wake_up"]).unwrap_err().to_string(),
        format!(
            "m.toml:{line}:11: found the unknown name `shedule` in [paths]; expected `schedule`, perhaps \
             (rule: only known names, so that a slip of the hand is not ignored)"
        )
    );
    assert_eq!(machine.check_names("paths", &["shedule"]), Ok(()));
}

/// The Xeon's file with one text replaced by another, which must be refused. Returns the message without place and
/// rule, and the line's text.
fn edited(from: &str, to: &str) -> (String, String) {
    assert!(XEON.contains(from), "the file has no {from}");
    let text = XEON.replacen(from, to, 1);
    let error = parse(&text, "m.toml").expect_err("a bad file must be refused");
    assert!(!error.rule.is_empty() && error.at.input == "m.toml");
    let line = text.lines().nth(error.at.line.unwrap_or(1) as usize - 1).unwrap_or_default();
    let column = error.at.column.unwrap_or(1) as usize - 1;
    (format!("found {}; expected {}", error.found, error.expected), line.chars().skip(column).collect())
}

const SMT: &str = "speed = { value = 0.62, unit = \"ratio\", range = [0.5, 0.75], how = \"guess\", source = ";

#[test]
fn a_number_without_unit_source_how_or_range_is_refused() {
    let table = "`smt.speed`";
    let with = |to: &str| edited(SMT, to);
    let rest = "range = [0.5, 0.75], how = \"guess\", source = ";
    assert_eq!(
        with(&format!("speed = {{ unit = \"ratio\", {rest}")).0,
        format!("found no `value` in {table}; expected value = a number")
    );
    assert_eq!(
        with(&format!("speed = {{ value = 0.62, {rest}")).0,
        format!("found no `unit` in {table}; expected unit = one of ratio, percent, permille")
    );
    assert_eq!(
        with("speed = { value = 0.62, unit = \"ratio\", how = \"guess\", source = ").0,
        format!("found no `range` in {table}; expected range = [lowest, highest]")
    );
    assert_eq!(
        with("speed = { value = 0.62, unit = \"ratio\", range = [0.5, 0.75], source = ").0,
        format!("found no `how` in {table}; expected how = one of measured, vendor, published, derived, fitted, guess")
    );
    let (message, at) = edited("how = \"guess\", source = \"two threads", "how = \"guess\", sauce = \"two threads");
    assert_eq!(message, format!("found the unknown name `sauce` in {table}; expected `source`, perhaps"));
    assert!(at.starts_with("sauce ="), "{at}");
    let (message, at) =
        with("speed = 0.62\nold = { value = 0.62, unit = \"ratio\", range = [0.5, 0.75], how = \"guess\", source = ");
    assert!(message.starts_with("found the number 0.62 for `smt.speed`; expected { value = ..., unit ="), "{message}");
    assert!(at.starts_with("0.62"), "{at}");
    assert_eq!(
        edited(
            "\"two threads of kernel-heavy integer code do 1.2 to 1.3 times the work of one; not looked up\"",
            "\" \""
        )
        .0,
        "found an empty `source`; expected source = \"...\""
    );
}

#[test]
fn numbers_must_be_sound() {
    let with = |value: &str, range: &str| {
        let to = format!("speed = {{ value = {value}, unit = \"ratio\", range = {range}, how = \"guess\", source = ");
        edited(SMT, &to)
    };
    let (message, at) = with("0.9", "[0.5, 0.75]");
    assert_eq!(message, "found the value 0.9 outside its range [0.5, 0.75]; expected a range that contains the value");
    assert!(at.starts_with("0.9,"), "{at}");
    assert_eq!(
        with("0.6", "[0.75, 0.5]").0,
        "found a range that ends below its beginning; expected range = [lowest, highest]"
    );
    assert_eq!(with("0.6", "[0.5]").0, "found a range of one number; expected range = [lowest, highest]");
    assert_eq!(with("0.6", "0.5").0, "found the number 0.5; expected range = [lowest, highest]");
    assert_eq!(with("-0.6", "[0.5, 0.75]").0, "found the value -0.6; expected 0 or more");
    assert_eq!(with("0", "[0, 0.75]").0, "found the value 0 ratio; expected from 0.001 to 1 ratio");
    assert_eq!(with("1e3", "[0.5, 0.75]").0, "found the value 1e3; expected a decimal number without exponent");
    assert_eq!(with("nan", "[0.5, 0.75]").0, "found the value nan; expected a decimal number without exponent");
    assert_eq!(with("0x1", "[0.5, 0.75]").0, "found a number that is not decimal as value; expected a decimal number");
    assert_eq!(with("\"0.6\"", "[0.5, 0.75]").0, "found the text \"0.6\" as value; expected a decimal number");
    assert_eq!(
        with("0.62345", "[0.5, 0.75]").0,
        "found the value 0.62345 ratio; expected a whole number of permille below 2^64"
    );
    assert_eq!(
        with("99999999999999999999999999", "[0.5, 0.75]").0,
        "found the value 99999999999999999999999999; expected a number of at most 24 digits"
    );
    let (message, at) = edited("unit = \"ratio\", range = [0.5", "unit = \"ns\", range = [0.5");
    assert_eq!(message, "found the unit \"ns\" for `smt.speed`; expected one of ratio, percent, permille");
    assert!(at.starts_with("\"ns\""), "{at}");
    let (message, _) = edited("how = \"guess\", source = \"two threads", "how = \"gess\", source = \"two threads");
    assert_eq!(message, "found how = \"gess\"; expected \"guess\", perhaps");
}

#[test]
fn names_and_sections_must_be_known_and_complete() {
    assert_eq!(
        edited("[smt]\nspeed", "[smt]\nsped").0,
        "found the unknown name `sped` in `smt`; expected `speed`, perhaps"
    );
    assert_eq!(edited("[smt]", "[smpt]").0, "found the unknown name `smpt` in the file; expected `smt`, perhaps");
    assert_eq!(edited("name = \"two-sockets\"\n", "").0, "found no `name` in the file; expected name = \"...\"");
    assert!(edited("remote_1 = { value = 118", "remote_7 = { value = 118").0.starts_with("found no `line.remote_1`"));
    assert!(edited("[smt]\nspeed", "[smt]\n# speed").0.starts_with("found no `smt.speed`"));
    assert_eq!(edited("value = \"mwait\"", "value = \"magic\"").0, "found \"magic\"; expected one of mwait, interrupt");
    assert_eq!(
        edited("name = \"C6\"", "name = \"C3\"").0,
        "found the idle state C3 for the second time; expected each once"
    );
    assert_eq!(
        edited("name = \"C6\"", "name = \"C 6\"").0,
        "found the name \"C 6\"; expected letters, digits, - and _"
    );
    assert!(edited("[[idle.state]]", "[[idle.stat]]").0.starts_with("found the unknown name `stat` in `idle`"));
}

#[test]
fn toml_and_topology_errors_keep_their_place() {
    let half = &XEON[..XEON.find("range = [29").unwrap()];
    let error = parse(half, "m.toml").unwrap_err();
    assert_eq!(error.at.line, Some(half.lines().count() as u32), "{error}");
    assert_eq!(error.rule, "a machine file is TOML");
    assert!(parse("", "m.toml").unwrap_err().to_string().starts_with("m.toml:1:1: found no `name` in the file"));

    let twice = |from: &str, to: &str| {
        let error = parse(&XEON.replacen(from, to, 1), "m.toml").expect_err("a name twice").to_string();
        error.strip_prefix("m.toml:").unwrap_or_else(|| panic!("{error}")).to_string()
    };
    let rule = "(rule: a machine file is TOML, where each name of a table stands once)";
    assert_eq!(
        twice("[smt]\nspeed", "[smt]\nspeed = 1\nspeed"),
        format!("33:1: found `speed` for the second time; expected each name once {rule}")
    );
    assert_eq!(
        twice("[copy]", "[smt]"),
        format!("68:2: found `smt` for the second time; expected each name once {rule}")
    );
    assert_eq!(
        twice("{ value = 2.3, ", "{ value = 2.3, value = 2.3, "),
        format!("25:23: found `value` for the second time; expected each name once {rule}")
    );

    let (message, at) = edited("core:1 pu:2\"", "cores:1 pu:2\"");
    assert_eq!(
        message,
        "found `cores`; expected a type: pack, die, group, cluster, numa, l1 to l5 (l1d, l1i ...), core or pu"
    );
    assert!(at.starts_with("cores:1"), "{at}");
    assert_eq!(
        edited("numbering = \"linux-x86\"", "numbering = \"windows\"").0.split(';').next(),
        Some("found the text \"windows\"")
    );
    assert_eq!(
        edited("rows = [[10, 21], [21, 10]]", "rows = [[10, 21]]").0,
        "found 1 row of 2 distances; expected 2 rows of 2"
    );
    assert_eq!(
        edited("rows = [[10, 21], [21, 10]]", "rows = [[10, 20, 30], [21, 10]]").0,
        "found 2 rows of 3, 2 distances; expected 2 rows of 2"
    );
    let (message, at) = edited("[21, 10]]", "[22, 10]]");
    assert_eq!(
        message,
        "found distance 22 from node 1 to 0, and 21 back; expected 21, or `asymmetric = true` if the firmware's table is \
         like that"
    );
    assert!(at.starts_with("22, 10]"), "{at}");
    let lopsided = XEON.replacen("rows = [[10, 21], [21, 10]]", "asymmetric = true\nrows = [[10, 21], [22, 10]]", 1);
    let machine = parse(&lopsided, "m.toml").unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((machine.topology().node_distance(0, 1), machine.topology().node_distance(1, 0)), (21, 22));
    let again = parse(&machine.to_toml(), "again.toml").unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(again.topology(), machine.topology());
    // No distance is shorter than a node's to itself, whatever a range says.
    assert_eq!(
        edited("range = [20, 31]", "range = [9, 31]").0,
        "found the number 9; expected a whole number from 11 to 254"
    );
    assert_eq!(edited("[[10, 21]", "[[10, 9]").0, "found the number 9; expected a whole number from 20 to 31");
    assert_eq!(edited("[21, 10]]", "[21, 12]]").0, "found the number 12; expected 10");
    assert_eq!(edited("[[10, 21]", "[[10, 60]").0, "found the number 60; expected a whole number from 20 to 31");
}

#[test]
fn listed_topologies_are_checked() {
    let synthetic = "synthetic = \"pack:2 [numa] l3:1 l2:12 l1d:1 core:1 pu:2\"\nnumbering = \"linux-x86\"";
    let with = |to: &str| edited(synthetic, to);
    let good = "cpus = 4\npackages = [\"0,2\", \"1,3\"]\nnodes = [\"0,2\", \"1,3\"]\ncores = [\"0,2\", \"1,3\"]\n";
    let machine = parse(&XEON.replacen(synthetic, good, 1), "m.toml").unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(machine.topology().distance(cpu(0), cpu(2)), Distance::Smt);
    assert_eq!(machine.topology().node_distance(0, 1), 21);

    assert_eq!(with("cpus = 9000").0, "found the number 9000; expected a whole number from 1 to 8192");
    assert_eq!(with("cpus = 0").0, "found the number 0; expected a whole number from 1 to 8192");
    let (message, at) = with("cpus = 4\npackages = [\"0,2\", \"2-3\"]");
    assert!(message.starts_with("found CPU 2 in two packages (the other is at m.toml:13:13)"), "{message}");
    assert!(at.starts_with("\"2-3\""), "{at}");
    assert_eq!(
        with("cpus = 4\npackages = [\"0-2\"]").0,
        "found CPU 3 in no package, though others are in one; expected every CPU in a package"
    );
    let (message, at) = with("cpus = 4\ncores = [\"0-1\", \"2-x\"]");
    assert_eq!(message, "found `x`; expected a list of CPUs such as 0-3,8");
    assert!(at.starts_with("x\""), "{at}");
    assert_eq!(with("cpus = 4\ncores = [\"3-4\"]").0, "found CPU 4; expected CPUs among 0-3");
    assert!(
        with("cpus = 4\ncaches = [{ level = 3, kind = \"big\", cpus = [\"0-3\"] }]")
            .0
            .contains("unified, data or instruction")
    );
    assert!(with("cpus = 4\nsockets = [\"0-3\"]").0.starts_with("found the unknown name `sockets`"));
}

#[test]
fn parts_of_a_listed_topology_lie_inside_each_other() {
    let synthetic = "synthetic = \"pack:2 [numa] l3:1 l2:12 l1d:1 core:1 pu:2\"\nnumbering = \"linux-x86\"";
    let cores = "cpus = 8\npackages = [\"0-3\", \"4-7\"]\ncores = [\"0-1\", \"2-3\", \"4-5\", \"6-7\"]\n";
    let two_nodes = "nodes = [\"0-3\", \"4-7\"]\n";
    let caches = |inner: &str, outer: &str| {
        let cache = |level: u8, cpus: &str| format!("{{ level = {level}, kind = \"unified\", cpus = [{cpus}] }}");
        format!("caches = [{}, {}]\n", cache(2, inner), cache(3, outer))
    };
    let fine = format!("dies = [\"0-1\", \"2-3\"]\nclusters = [\"0-3\"]\n{}", caches("\"0-1\", \"4-7\"", "\"0-3\""));
    for lists in ["", &fine] {
        let text = XEON.replacen(synthetic, &format!("{cores}{two_nodes}{lists}"), 1);
        parse(&text, "m.toml").unwrap_or_else(|error| panic!("{error}"));
    }
    for (lists, message, place) in [
        (
            "nodes = [\"0-3\", \"3-7\"]".to_string(),
            "found CPU 3 in two NUMA nodes (the other is at m.toml:15:10); expected each CPU in one NUMA node",
            "\"3-7\"",
        ),
        (
            format!("{two_nodes}clusters = [\"0-2\"]"),
            "found a cluster of CPU 2 without CPU 3, a thread of its core; expected a cluster of whole cores",
            "\"0-2\"",
        ),
        (
            format!("{two_nodes}dies = [\"0-1\", \"2-5\"]"),
            "found a die of CPUs 2 and 4, of two packages; expected a die of CPUs of one package",
            "\"2-5\"",
        ),
        (
            format!("{two_nodes}dies = [\"0-2\"]"),
            "found a die of CPU 2 without CPU 3, a thread of its core; expected a die of whole cores",
            "\"0-2\"",
        ),
        (
            format!("{two_nodes}{}", caches("\"0-3\"", "\"0-1\", \"2-3\"")),
            "found a level-2 cache of CPUs 0 and 2, of which the level-3 cache at m.toml:16:99 has only the first; expected a cache of CPUs that share the caches of the levels beyond",
            "\"0-3\"",
        ),
    ] {
        let (found, at) = edited(synthetic, &format!("{cores}{lists}"));
        assert_eq!(found, message);
        assert!(at.starts_with(place), "{found}: {at}");
    }
}

#[test]
fn caches_are_as_large_as_the_figures_say_and_small_cores_have_their_own() {
    for (name, text) in builtin() {
        let machine = parse(text, name).unwrap_or_else(|error| panic!("{error}"));
        let (topology, biggest) = (machine.topology(), machine.topology().biggest_cpu());
        let figure = |name: &str| machine.figure(name).expect("required").bytes();
        // What is given twice agrees: a figure that is varied alone changes the caches in proportion.
        for (name, level) in [("cache.l1d_size", 1), ("cache.l2_size", 2)] {
            let told = topology.cache_bytes(biggest, level);
            assert!(told.is_none_or(|told| told == figure(name)), "{}: {name}, {told:?}", machine.name());
        }
        assert!(topology.llc_bytes(biggest).is_none_or(|told| told == figure("cache.llc_size")), "{}", machine.name());
    }
    assert_eq!(shipped("snapdragon-845").l2_bytes(), [[128 << 10; 4], [256 << 10; 4]].concat());
    let hybrid = shipped("core-i9-12900k").l2_bytes();
    assert_eq!((hybrid[0], hybrid[8]), (1280 << 10, 512 << 10), "four small cores share 2 MiB");
    // A figure in a file that inherits all else from another is not ignored.
    let larger = "name = \"x\"\nextends = \"xeon-gold-6148-2s\"\ndescription = \"x\"\n[cache]\nllc_size = { value = 500, unit = \"MiB\", range = [500, 500], how = \"guess\", source = \"x\" }\n";
    assert_eq!(parse(larger, "x.toml").expect("valid").llc_bytes(), [500 << 20; 2]);
}
