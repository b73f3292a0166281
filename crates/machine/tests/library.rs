//! The machines that ship: their shapes, and the scheduler's domains on each, which are built from the one same topology.

use machine::description::{Description, How, builtin, parse};
use machine::topology::{Distance, Numbering, Topology, from_synthetic};
use sched::topology::{DomainRules, DomainSetup, SdFlags, SdId, build_sched_domains};
use units::{CpuId, CpuMask, Ps};

fn shipped(name: &str) -> Description {
    let (_, text) = builtin().iter().find(|(other, _)| *other == name).unwrap_or_else(|| panic!("no machine {name}"));
    parse(text, &format!("machines/{name}.toml")).unwrap_or_else(|error| panic!("{error}"))
}

/// The domains of a CPU from the lowest up, each as `NAME:number of CPUs`.
fn domains(topology: &Topology, rules: &DomainRules, cpu: usize) -> String {
    let topology = topology.cpu_topology();
    let all = CpuMask::all(topology.nr_cpus);
    let domains = build_sched_domains(&topology, &all, rules, &DomainSetup::boot(&topology));
    assert!(domains.warnings.is_empty(), "{:?}", domains.warnings);
    let levels = domains.for_each_domain(CpuId::new(cpu));
    let level = |sd: SdId| format!("{}:{}", domains[sd].name, domains.sched_domain_span(sd).weight());
    levels.map(level).collect::<Vec<_>>().join(" ")
}

#[test]
fn every_machine_has_the_shape_of_its_model() {
    let count = |name: &str| shipped(name).topology().summary();
    for (name, summary) in [
        ("ampere-altra-q80-33-2s", "2 packages, 2 NUMA nodes, 80 last level caches, 160 cores, 160 CPUs"),
        ("cloud-vm-2", "1 package, 1 NUMA node, 1 last level cache, 1 core, 2 CPUs"),
        ("core-i9-12900k", "1 package, 1 NUMA node, 1 last level cache, 16 cores, 24 CPUs"),
        ("epyc-7742-2s-nps1", "2 packages, 2 NUMA nodes, 32 last level caches, 128 cores, 256 CPUs"),
        ("epyc-7742-2s-nps2", "2 packages, 4 NUMA nodes, 32 last level caches, 128 cores, 256 CPUs"),
        ("epyc-7742-2s-nps4", "2 packages, 8 NUMA nodes, 32 last level caches, 128 cores, 256 CPUs"),
        ("epyc-7763-2s-nps1", "2 packages, 2 NUMA nodes, 16 last level caches, 128 cores, 256 CPUs"),
        ("epyc-7763-2s-nps2", "2 packages, 4 NUMA nodes, 16 last level caches, 128 cores, 256 CPUs"),
        ("epyc-7763-2s-nps4", "2 packages, 8 NUMA nodes, 16 last level caches, 128 cores, 256 CPUs"),
        ("epyc-9654", "1 package, 1 NUMA node, 12 last level caches, 96 cores, 192 CPUs"),
        ("kunpeng-920-6426", "1 package, 2 NUMA nodes, 2 last level caches, 64 cores, 64 CPUs"),
        ("power9-16c-2s", "2 packages, 2 NUMA nodes, 16 last level caches, 32 cores, 128 CPUs"),
        ("snapdragon-845", "1 package, 1 NUMA node, 1 last level cache, 8 cores, 8 CPUs"),
        ("sparc-t4-2", "2 packages, 2 NUMA nodes, 2 last level caches, 16 cores, 128 CPUs"),
        ("xeon-gold-6148-2s", "2 packages, 2 NUMA nodes, 2 last level caches, 40 cores, 80 CPUs"),
        ("xeon-platinum-8375c-2s", "2 packages, 2 NUMA nodes, 2 last level caches, 64 cores, 128 CPUs"),
        ("xeon-platinum-8480-2s", "2 packages, 2 NUMA nodes, 2 last level caches, 112 cores, 224 CPUs"),
    ] {
        assert_eq!(count(name), summary, "{name}");
    }
    assert!(builtin().len() >= 16);
    assert_eq!(shipped("kunpeng-920-6426").topology().clusters().len(), 16);
    // PC6 of these Xeons is dearer than C6 of their cores, and entered by all sockets together.
    for name in ["xeon-gold-6148-2s", "xeon-platinum-8375c-2s", "xeon-platinum-8480-2s"] {
        let machine = shipped(name);
        let package: Vec<bool> = machine.idle_states().iter().map(|state| state.package_wake.0 > 0).collect();
        assert_eq!((package, machine.packages_sleep_together()), (vec![false, false, false, true], true), "{name}");
    }
    assert_eq!(shipped("sparc-t4-2").topology().cores()[1].cpus.list(), "8-15");
    let nps4 = shipped("epyc-7742-2s-nps4");
    let distances = |from: u16| (0..8).map(|to| nps4.topology().node_distance(from, to)).collect::<Vec<_>>();
    assert_eq!(distances(5), [32, 32, 32, 32, 12, 10, 12, 12]);
    // The quadrants of a package are nearer than the other package, and the package is one distance of lines.
    assert_eq!(nps4.topology().distance(CpuId(0), CpuId(20)), Distance::Package);
    assert_eq!(nps4.topology().distance(CpuId(0), CpuId(64)), Distance::Remote(1));
    // What NPS4 does not say, NPS1 says.
    assert_eq!(nps4.figure("line.package"), shipped("epyc-7742-2s-nps1").figure("line.package"));
    assert!(
        nps4.figure("memory.local").unwrap().value < shipped("epyc-7742-2s-nps1").figure("memory.local").unwrap().value
    );
}

/// As the kernels build them: kernel/sched/topology.c of v4.16 and v6.1, whose tables of levels differ by the clusters.
#[test]
fn domains_are_built_from_the_same_topology() {
    let of = |name: &str, rules: &DomainRules, cpu: usize| domains(shipped(name).topology(), rules, cpu);
    let (old, new) = (&DomainRules::V4_16, &DomainRules::V6_1);
    for rules in [old, new] {
        assert_eq!(of("xeon-gold-6148-2s", rules, 0), "SMT:2 MC:40 NUMA:80");
        assert_eq!(of("epyc-7742-2s-nps1", rules, 0), "SMT:2 MC:8 DIE:128 NUMA:256");
        assert_eq!(of("epyc-7742-2s-nps2", rules, 0), "SMT:2 MC:8 NODE:64 NUMA:128 NUMA:256");
        assert_eq!(of("epyc-7763-2s-nps4", rules, 255), "SMT:2 MC:16 NODE:32 NUMA:128 NUMA:256");
        assert_eq!(of("epyc-9654", rules, 100), "SMT:2 MC:16 DIE:192");
        assert_eq!(of("sparc-t4-2", rules, 9), "SMT:8 MC:64 NUMA:128");
        assert_eq!(of("cloud-vm-2", rules, 1), "SMT:2");
        assert_eq!(of("snapdragon-845", rules, 5), "MC:8");
    }
    // The pair that shares a slice of both caches is the level that powerpc calls CACHE.
    assert_eq!(of("power9-16c-2s", old, 9), "SMT:4 MC:8 DIE:64 NUMA:128");
    assert_eq!(of("power9-16c-2s", new, 9), "SMT:4 CLS:8 DIE:64 NUMA:128");
    assert_eq!(of("kunpeng-920-6426", old, 33), "MC:32 NUMA:64");
    assert_eq!(of("kunpeng-920-6426", new, 33), "CLS:4 MC:32 NUMA:64");
    // Two cores behind one snoop control unit; the level above has the same two and goes.
    assert_eq!(of("ampere-altra-q80-33-2s", old, 3), "MC:2 DIE:80 NUMA:160");
    assert_eq!(of("ampere-altra-q80-33-2s", new, 3), "CLS:2 DIE:80 NUMA:160");
    // P-cores have two threads, E-cores share a second-level cache by four.
    assert_eq!(of("core-i9-12900k", old, 0), "SMT:2 MC:24");
    assert_eq!(of("core-i9-12900k", new, 0), "SMT:2 MC:24");
    assert_eq!(of("core-i9-12900k", old, 20), "MC:24");
    // v6.1 has no such level on hybrid processors.
    assert_eq!(of("core-i9-12900k", new, 20), "MC:24");
    assert_eq!(of("core-i9-12900k", &DomainRules::V6_12, 20), "CLS:4 MC:24");
    assert_eq!(of("ivybridge-ex-16s", new, 0), "SMT:2 MC:30 NUMA:60 NUMA:480");
}

/// amd.c: init_amd_zen_common() lets tasks be placed on the other socket of an EPYC, 32 away, from v5.4 on.
#[test]
fn the_sockets_of_an_epyc_are_near_each_other_from_v5_4_on() {
    let near = SdFlags::SD_BALANCE_EXEC | SdFlags::SD_BALANCE_FORK | SdFlags::SD_WAKE_AFFINE;
    let placed = |machine: &Description, rules: &DomainRules| {
        let topology = machine.topology().cpu_topology();
        let all = CpuMask::all(topology.nr_cpus);
        let domains = build_sched_domains(&topology, &all, rules, &DomainSetup::boot(&topology));
        let top = domains.for_each_domain(CpuId(0)).last().expect("a domain of all");
        (domains[top].flags.has_all(near), domains[top].flags.has(near))
    };
    for name in ["epyc-7742-2s-nps1", "epyc-7742-2s-nps4", "epyc-7763-2s-nps1", "epyc-7763-2s-nps2"] {
        let epyc = shipped(name);
        assert_eq!(placed(&epyc, &DomainRules::V4_16), (false, false), "{name}");
        assert_eq!(placed(&epyc, &DomainRules::V6_1), (true, true), "{name}");
        assert_eq!(placed(&epyc, &DomainRules::V6_12), (true, true), "{name}");
        // What it is written out as says so too; another topology with its prices is another processor.
        let again = parse(&epyc.to_toml(), "again.toml").unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(again.topology(), epyc.topology(), "{name}");
        let other = from_synthetic("pack:2 [numa] l3:1 core:4 pu:1", "t", Numbering::LinuxX86).expect("valid");
        assert!(epyc.with_topology(other, "a test", How::Guess).fact("processor.make").is_none());
    }
    assert_eq!(placed(&shipped("power9-16c-2s"), &DomainRules::V6_12), (false, false));
}

#[test]
fn cores_of_several_kinds_have_their_own_speed() {
    let phone = shipped("snapdragon-845");
    let of = |machine: &Description, cpu: usize| {
        let cpu = machine.topology().cpu(CpuId::new(cpu));
        (cpu.capacity, cpu.speed)
    };
    assert_eq!((of(&phone, 0), of(&phone, 7)), ((385, 385), (1024, 1024)));
    let model = phone.topology().energy_model().expect("an energy model");
    assert_eq!(model.domains.iter().map(|domain| domain.cpus.list()).collect::<Vec<_>>(), ["0-3", "4-7"]);
    assert!(model.schedutil);
    // Linux is told of one capacity where second threads are on, whatever the cores do.
    let hybrid = shipped("core-i9-12900k");
    assert_eq!((of(&hybrid, 0), of(&hybrid, 23)), ((1024, 1024), (1024, 564)));
    assert_eq!(hybrid.topology().kinds()[1].cpus.list(), "16-23");
}

#[test]
fn kinds_that_firmware_tells_apart_are_those_of_a_hybrid_processor() {
    let hybrid = shipped("core-i9-12900k").topology().cpu_topology();
    let perf = hybrid.highest_perf.expect("each kind is told of");
    assert_eq!((perf[CpuId(0)], perf[CpuId(15)], perf[CpuId(16)], hybrid.hybrid), (66, 66, 39, true));
    let phone = shipped("snapdragon-845").topology().cpu_topology();
    assert!(phone.highest_perf.is_none() && !phone.hybrid);
    let told = |kind: &str, perf: u32| {
        let figure = "unit = \"count\", range = [1, 254], how = \"guess\", source = \"s\"";
        format!("\n[kind.{kind}]\nhighest_perf = {{ value = {perf}, {figure} }}\n")
    };
    let topology = "[topology]\nsynthetic = \"pack:1 [numa] l3:1 core:4 pu:1\"\n\
        kinds = [{ name = \"good\", cpus = \"0-1\" }, { name = \"best\", cpus = \"2-3\" }]\n";
    let both = with_topology(&format!("{topology}{TOLD}{}{}", told("good", 40), told("best", 45))).unwrap();
    let perf = both.topology().cpu_topology().highest_perf.expect("each kind is told of");
    assert_eq!(perf.iter().map(|(_, perf)| *perf).collect::<Vec<_>>(), [40, 40, 45, 45]);
    let one = with_topology(&format!("{topology}{TOLD}{}", told("best", 45))).unwrap_err();
    assert!(one.contains("found a `highest_perf` of 2 CPUs of 4; expected one in each kind"), "{one}");
    let nothing = with_topology(&format!("{topology}{TOLD}{}{}", told("good", 255), told("best", 45))).unwrap_err();
    assert!(nothing.contains("255"), "{nothing}");
}

fn with_topology(topology: &str) -> Result<Description, String> {
    let text = format!("name = \"own\"\ndescription = \"d\"\nextends = \"xeon-e5-2670v3-2s\"\n{topology}");
    parse(&text, "own.toml").map_err(|error| error.to_string())
}

const TOLD: &str = "how = \"guess\"\nsource = \"s\"\n";

#[test]
fn memory_without_cpus_lies_beyond_the_sockets() {
    let synthetic = "synthetic = \"pack:2 [numa] l3:1 core:4 pu:2\"\nmemory_nodes = 1\n";
    let rows = "[topology.distances]\nrows = [[10, 21, 24], [21, 10, 28], [24, 28, 10]]\nrange = [20, 40]\n";
    let machine = with_topology(&format!("[topology]\n{synthetic}{TOLD}{rows}{TOLD}")).unwrap();
    let topology = machine.topology();
    assert_eq!(topology.nodes().len(), 3);
    assert!(topology.nodes()[2].cpus.is_empty());
    assert_eq!(topology.memory_distance(CpuId(0), 0), Distance::Same);
    assert_eq!(topology.memory_distance(CpuId(0), 1), Distance::Remote(1));
    assert_eq!(topology.memory_distance(CpuId(0), 2), Distance::Remote(2));
    // No CPU is that far from another, so lines need no price for it.
    assert_eq!(topology.distances().last(), Some(&Distance::Remote(1)));
    assert_eq!(domains(topology, &DomainRules::V6_1, 0), "SMT:2 MC:8 NUMA:16");
    let again = parse(&machine.to_toml(), "again").unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(again.topology(), topology);
    // Behind one socket: farther than the socket's own.
    let machine =
        with_topology(&format!("[topology]\nsynthetic = \"pack:1 [numa] l3:1 core:4 pu:2\"\nmemory_nodes = 2\n{TOLD}"));
    assert_eq!(machine.unwrap().topology().memory_distance(CpuId(3), 2), Distance::Remote(1));
}

#[test]
fn memory_has_a_price_at_every_distance() {
    let memory = |figures: &str| {
        let text = format!(
            "name = \"own\"\ndescription = \"d\"\nextends = \"xeon-platinum-8480-2s\"\n[topology]\n\
             synthetic = \"pack:2 [numa] l3:1 core:4 pu:2\"\nmemory_nodes = 1\n{TOLD}[topology.distances]\n\
             rows = [[10, 21, 30], [21, 10, 30], [30, 30, 10]]\nrange = [20, 40]\n{TOLD}{figures}"
        );
        parse(&text, "own.toml").map_err(|error| error.to_string())
    };
    let error = memory("").unwrap_err();
    let expected = "own.toml:1:1: found no `memory.remote_2` (the topology has memory at this distance); expected";
    assert!(error.starts_with(expected), "{error}");
    let figure = |name: &str, value: u32, unit: &str| {
        let range = format!("range = [1, {value}], how = \"guess\", source = \"s\"");
        format!("{name} = {{ value = {value}, unit = \"{unit}\", {range} }}\n")
    };
    let far = format!("[memory]\n{}", figure("remote_2", 350, "ns"));
    let machine = memory(&far).unwrap();
    assert_eq!(machine.memory_load(Distance::Remote(2)), Ps::from_ns(350));
    assert_eq!(machine.far_memory_ps_per_kib(), machine.memory_ps_per_kib(), "as the others where nothing is said");
    let slow = memory(&format!("{far}{}", figure("delivery_far", 16, "ps/B"))).unwrap();
    assert_eq!((slow.memory_ps_per_kib(), slow.far_memory_ps_per_kib()), (machine.memory_ps_per_kib(), 16 * 1024));
    let again = parse(&slow.to_toml(), "again").unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(again.far_memory_ps_per_kib(), 16 * 1024);
    let error = memory(&format!("{far}{}", figure("delivery_far", 11, "ns/B"))).unwrap_err();
    assert!(error.starts_with("own.toml:16:26: found the value 11 ns/B; expected from"), "{error}");
}

#[test]
fn clusters_kinds_and_capacities_of_equal_parts() {
    let synthetic = "synthetic = \"pack:1 [numa] l3:1 cluster:2 l2:4 core:1 pu:1\"\nnumbering = \"as-listed\"\n";
    let kinds = "kinds = [{ name = \"small\", cpus = \"0-3\" }]\ncapacity = [{ value = 500, cpus = \"0-3\" }]\n";
    let machine = with_topology(&format!("[topology]\n{synthetic}{kinds}{TOLD}")).unwrap();
    let topology = machine.topology();
    assert_eq!(topology.clusters().iter().map(CpuMask::list).collect::<Vec<_>>(), ["0-3", "4-7"]);
    assert_eq!((topology.cpu(CpuId(3)).speed, topology.cpu(CpuId(4)).speed), (500, 1024));
    assert_eq!(domains(topology, &DomainRules::V6_1, 0), "CLS:4 MC:8");
    assert_eq!(domains(topology, &DomainRules::V4_15, 0), "MC:8");
    let refused = |topology: &str| with_topology(&format!("[topology]\n{topology}{TOLD}")).unwrap_err();
    let error = refused("synthetic = \"l2:4 cluster:2 core:1 pu:1\"\n");
    assert!(error.starts_with("own.toml:5:19: found clusters inside L2 caches;"), "{error}");
    let error = refused("synthetic = \"core:4 pu:1\"\nmemory_nodes = 0\n");
    assert!(error.starts_with("own.toml:6:16: found the number 0; expected a whole number from 1 to 64"), "{error}");
    let error = refused("synthetic = \"core:4 pu:1\"\ncapacity = [{ value = 500, cpus = \"3-4\" }]\n");
    assert!(error.starts_with("own.toml:6:36: found CPU 4; expected CPUs among 0-3"), "{error}");
    for (line, place, found, rule) in [
        (
            "kinds = [{ name = \"a\", cpus = \"0-1\" }, { name = \"b\", cpus = \"1\" }]",
            "6:61",
            "CPU 1 in two kinds",
            "a kind of CPU",
        ),
        (
            "kinds = [{ name = \"a\", cpus = \"0\" }, { name = \"a\", cpus = \"1\" }]",
            "6:47",
            "the kind `a` for the second time",
            "a kind of CPU",
        ),
        ("kinds = [{ name = \"a\\nb\", cpus = \"0\" }]", "6:19", "the text \"a b\"", "a kind of CPU has a name"),
        (
            "capacity = [{ value = 500, cpus = \"0-1\" }, { value = 600, cpus = \"0\" }]",
            "6:66",
            "CPU 0 in two entries of capacity",
            "a CPU has one capacity",
        ),
    ] {
        let error = refused(&format!("synthetic = \"core:4 pu:1\"\n{line}\n"));
        assert!(error.starts_with(&format!("own.toml:{place}: found {found};")), "{error}");
        assert!(error.contains(&format!("(rule: {rule}")), "{error}");
    }
    let error = refused("cpus = 2\ncaches = [{ level = 9, kind = \"unified\", cpus = [\"0-1\"] }]\n");
    assert!(
        error.starts_with("own.toml:6:21: found the number 9; expected a whole number from 1 to 5 (rule: "),
        "{error}"
    );
    let error = parse("name = \"a\\nb\"\nextends = \"core-i7-3770\"\ndescription = \"d\"\n", "own.toml").unwrap_err();
    assert!(
        error.to_string().starts_with("own.toml:1:8: found the text \"a b\"; expected no ends of lines"),
        "{error}"
    );
    let kind =
        "[kind.smal]\nspeed = { value = 0.5, unit = \"ratio\", source = \"s\", how = \"guess\", range = [0.4, 0.6] }\n";
    let error = with_topology(&format!("[topology]\n{synthetic}{kinds}{TOLD}{kind}")).unwrap_err();
    assert!(error.starts_with("own.toml:11:7: found the kind `smal`, which no CPU is of; expected `small`"), "{error}");
    let kind = "[kind.small]\nmax = { value = 9, unit = \"GHz\", source = \"s\", how = \"guess\", range = [9, 9] }\n";
    let error = with_topology(&format!("[topology]\n{synthetic}{kinds}{TOLD}{kind}")).unwrap_err();
    assert!(error.contains("found kind.small.max = 9 GHz above frequency.max = "), "{error}");
}

#[test]
fn up_to_8192_cpus_and_eight_threads() {
    let topology = from_synthetic("pack:16 [numa] l3:1 core:64 pu:8", "t", Numbering::LinuxX86).unwrap();
    assert_eq!(topology.nr_cpus(), 8192);
    assert_eq!(topology.cores()[0].cpus.list(), "0,1024,2048,3072,4096,5120,6144,7168");
    assert_eq!(topology.distance(CpuId(0), CpuId(7168)), Distance::Smt);
    assert_eq!(topology.cpu(CpuId(7168)).thread, 7);
    assert_eq!(topology.distance(CpuId(0), CpuId(8191)), Distance::Remote(1));
    let four = from_synthetic("pack:2 [numa] l3:1 core:20 pu:4", "t", Numbering::AsListed).unwrap();
    assert_eq!(domains(&four, &DomainRules::V6_1, 5), "SMT:4 MC:80 NUMA:160");
    assert!(from_synthetic("pack:16 core:64 pu:9", "t", Numbering::LinuxX86).is_err());
}

#[test]
fn memory_has_a_limit_on_every_machine() {
    for (name, _) in builtin() {
        let machine = shipped(name);
        // Picoseconds for 1024 bytes: from 460 GB/s at most of a node with twelve channels down to a desktop's 25.6, of which four fifths are delivered.
        let delivery = machine.memory_ps_per_kib();
        assert!((2_200..52_000).contains(&delivery), "{name}: {delivery} ps/KiB");
    }
}

#[test]
fn what_leads_to_memory_has_a_limit_where_one_is_known() {
    // In GB/s: of what leads to a last level cache, and from one package to another.
    let known = [
        // It has one package, and its host's prices.
        ("cloud-vm-2", 0, 55),
        ("epyc-7742-2s-nps1", 46, 89),
        ("epyc-7742-2s-nps2", 46, 89),
        ("epyc-7742-2s-nps4", 46, 89),
        ("epyc-7763-2s-nps1", 51, 89),
        ("epyc-7763-2s-nps2", 51, 89),
        ("epyc-7763-2s-nps4", 51, 89),
        ("epyc-9654", 57, 0),
        ("xeon-gold-6148-2s", 0, 34),
        ("xeon-platinum-8375c-2s", 0, 55),
        ("xeon-platinum-8480-2s", 0, 105),
    ];
    let gb = |ps_per_kib: u64| 1_024_000u64.checked_div(ps_per_kib).unwrap_or(0);
    for (name, _) in builtin() {
        let machine = shipped(name);
        let found = (gb(machine.llc_link_ps_per_kib()), gb(machine.package_link_ps_per_kib()));
        let expected = known.iter().find(|(other, ..)| other == name).map_or((0, 0), |&(_, llc, link)| (llc, link));
        assert_eq!(found, expected, "{name}");
    }
}

#[test]
fn limits_of_what_leads_to_memory_are_figures_like_others() {
    let own = |figure: &str| {
        let text = format!("name = \"own\"\ndescription = \"d\"\nextends = \"core-i7-3770\"\n[memory]\n{figure}\n");
        parse(&text, "own.toml").map_err(|error| error.to_string())
    };
    let figure = |name: &str, value: &str, range: &str| {
        format!("{name} = {{ value = {value}, unit = \"ps/B\", range = {range}, how = \"guess\", source = \"s\" }}")
    };
    let both = format!("{}\n{}", figure("delivery_llc", "20", "[16, 25]"), figure("delivery_remote", "30", "[16, 40]"));
    let machine = own(&both).expect("a machine");
    let again = parse(&machine.to_toml(), "again").unwrap_or_else(|error| panic!("{error}"));
    for machine in [machine, again] {
        assert_eq!((machine.llc_link_ps_per_kib(), machine.package_link_ps_per_kib()), (20 * 1024, 30 * 1024));
    }
    for name in ["delivery_llc", "delivery_remote"] {
        let good = figure(name, "20", "[16, 25]");
        for (bad, found) in [
            (good.replace(", source = \"s\"", ""), "found no `source` in "),
            (good.replace("\"s\"", "\"\""), "found an empty `source`; expected source = "),
            (figure(name, "20", "[21, 25]"), "found the value 20 outside its range [21, 25]; expected a range that "),
            (figure(name, "0", "[0, 25]"), "found the value 0 ps/B; expected from 0.0009765625 to 10000 ps/B"),
            (figure(name, "10001", "[16, 20000]"), "found the value 10001 ps/B; expected from "),
            (good.replace("ps/B", "GHz"), "found the unit \"GHz\" for "),
        ] {
            let error = own(&bad).expect_err(&bad);
            let place = error.strip_prefix("own.toml:5:").and_then(|rest| rest.split_once(": "));
            assert!(place.is_some_and(|(_, message)| message.starts_with(found)), "{bad}: {error}");
        }
    }
    let error = own(&figure("delivery_lcc", "20", "[16, 25]")).expect_err("a slip of the hand");
    let slip = "own.toml:5:1: found the unknown name `delivery_lcc` in `memory`; expected `delivery_llc`, perhaps";
    assert!(error.starts_with(slip), "{error}");
}

#[test]
fn guesses_say_so() {
    for (name, _) in builtin() {
        let machine = shipped(name);
        for (figure_name, figure) in machine.figures() {
            let unread = figure.source.contains("not looked up") || figure.source.contains("not read");
            let owned = ["xeon-e5-2670v3-2s", "core-i7-3770", "ivybridge-ex-16s", "skylake-uma-8"].contains(name);
            assert!(owned || !unread || figure.how == How::Guess, "{name} {figure_name}: {}", figure.source);
        }
    }
}
