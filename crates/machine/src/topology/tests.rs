//! The readers against each other and against small real files; every sort of bad input with its message.

use super::*;
use std::collections::BTreeMap;

mod kinds;
mod odd;

const V1: &str = include_str!("../../tests/fixtures/two-packages-v1.xml");
const V2: &str = include_str!("../../tests/fixtures/two-packages-v2.xml");
const V3: &str = include_str!("../../tests/fixtures/two-packages-v3.xml");
/// The machine from which the three fixtures were made, except for the distances.
const SYNTHETIC: &str = "pack:2 [numa(memory=1GiB)] l3:1(size=4MiB) l2:2(size=256KiB) core:1 pu:2(indexes=2*4:1*2)";

fn synthetic(text: &str) -> Topology {
    from_synthetic(text, "synthetic topology", Numbering::AsListed).unwrap()
}

fn refusal<T>(result: Result<T, TopologyError>) -> String {
    result.err().expect("bad input must be refused").to_string()
}

fn cpu(index: usize) -> CpuId {
    CpuId::new(index)
}

#[test]
fn the_three_formats_of_hwloc_read_alike() {
    let (v1, v2, v3) = (from_hwloc_xml(V1, "v1"), from_hwloc_xml(V2, "v2"), from_hwloc_xml(V3, "v3"));
    let (v1, v2, v3) = (v1.unwrap(), v2.unwrap(), v3.unwrap());
    assert_eq!(v1, v2);
    assert_eq!(v1.summary(), "2 packages, 2 NUMA nodes, 2 last level caches, 4 cores, 8 CPUs");
    assert_eq!(v1.cores()[0].cpus.list(), "0,4");
    assert_eq!(v1.node_distance(0, 1), 21);
    assert_eq!(v1.nodes()[1].memory_bytes, Some(1 << 30));
    assert_eq!((v1.cache_bytes(cpu(5), 2), v1.llc_bytes(cpu(5))), (Some(256 << 10), Some(4 << 20)));
    assert_eq!(v1.cache_bytes(cpu(5), 1), None);
    assert!(v1.notices().is_empty());

    assert_eq!(v3.kinds()[1], CpuKind::new("IntelAtom", parse_list("2-3,6-7").unwrap()));
    assert_eq!((v3.cpu(cpu(1)).capacity, v3.cpu(cpu(7)).capacity), (1024, 600));
    let same_capacity = |mut topology: Topology| {
        topology.kinds.clear();
        topology.cpus.iter_mut().for_each(|cpu| (cpu.capacity, cpu.speed) = (1024, 1024));
        topology
    };
    assert_eq!(same_capacity(v3), v2);
}

#[test]
fn synthetic_notation_is_what_hwloc_makes_of_it() {
    let mut from_text = synthetic(SYNTHETIC);
    let from_xml = from_hwloc_xml(V2, "v2").unwrap();
    from_text.distance.clone_from(&from_xml.distance);
    assert!(!from_text.distances_told && from_xml.distances_told);
    from_text.distances_told = true;
    assert_eq!(from_text, from_xml);
    let long = "Package:2 [NUMANode(memory=1073741824)] L3Cache:1(size=4194304) L2Cache:2(size=262144) Core:1 \
                PU:2(indexes=2*4)";
    assert_eq!(synthetic(long), synthetic(SYNTHETIC));
}

#[test]
fn numbers_run_depth_first_or_as_linux_gives_them() {
    let text = "pack:2 l3:1 core:12 pu:2";
    let hwloc = synthetic(text);
    assert_eq!(hwloc.cores()[1].cpus.list(), "2-3");
    assert_eq!(hwloc.packages()[1].cpus.list(), "24-47");
    let linux = from_synthetic(text, "t", Numbering::LinuxX86).unwrap();
    assert_eq!(linux.cores()[1].cpus.list(), "1,25");
    assert_eq!(linux.packages()[1].cpus.list(), "12-23,36-47");
    assert_eq!((linux.cpu(cpu(25)).thread, linux.cpu(cpu(25)).os_index), (1, 25));
    let with_nodes = "pack:2 [numa] l3:1 core:12 pu:2";
    let ours = from_synthetic(with_nodes, "t", Numbering::LinuxX86).unwrap().cpu_topology();
    let theirs = CpuTopology::symmetric(2, 1, 1, 12, 2);
    assert_eq!(format!("{ours:?}"), format!("{theirs:?}"));
}

#[test]
fn levels_without_types_are_named_as_hwloc_does() {
    assert_eq!(synthetic("2 3 2").summary(), "2 packages, 6 NUMA nodes, 6 last level caches, 12 cores, 12 CPUs");
    let deep = synthetic("2 2 2 2 2 2 2");
    assert_eq!(deep.summary(), "2 packages, 4 NUMA nodes, 8 last level caches, 64 cores, 128 CPUs");
    assert_eq!(deep.caches().len(), 8 + 16 + 32);
    assert_eq!(synthetic("4").cores().len(), 4);
}

#[test]
fn attached_nodes_are_numbered_from_the_inside_out() {
    let topology = synthetic("[numa] pack:2 [numa(memory=2GB)] core:2 pu:2");
    let cpus: Vec<String> = topology.nodes().iter().map(|node| node.cpus.list()).collect();
    // The machine's own node comes last, and has no CPUs left.
    assert_eq!(cpus, ["0-3", "4-7", ""]);
    assert_eq!(topology.nodes()[0].memory_bytes, Some(2_000_000_000));
    assert_eq!(topology.memory_distance(cpu(0), 0), Distance::Same);
    assert_eq!(topology.memory_distance(cpu(0), 1), Distance::Remote(1));
    assert_eq!(topology.memory_distance(cpu(0), 2), Distance::Remote(1));
}

#[test]
fn distances_name_the_nearest_thing_shared() {
    let topology = synthetic("pack:2 [numa] l3:2 l2:2 core:2 pu:2");
    let from_0 = |to: usize| topology.distance(cpu(0), cpu(to));
    assert_eq!(from_0(0), Distance::Same);
    assert_eq!(from_0(1), Distance::Smt);
    assert_eq!(from_0(2), Distance::Cluster);
    assert_eq!(from_0(4), Distance::Llc);
    assert_eq!(from_0(8), Distance::Package);
    assert_eq!(from_0(16), Distance::Remote(1));
    let expected: Vec<Distance> = (0..6).map(Distance::from_index).collect();
    assert_eq!(topology.distances(), expected);
    let kernel = topology.cpu_topology();
    assert_eq!(kernel.cluster[cpu(0)].list(), "0-3");
    assert_eq!(kernel.coregroup[cpu(0)].list(), "0-7");
}

#[test]
fn hops_rank_the_firmwares_distances_between_packages() {
    let four = synthetic("pack:4 [numa] core:1 pu:1");
    let rows = vec![vec![10, 16, 22, 16], vec![16, 10, 16, 22], vec![22, 16, 10, 16], vec![16, 22, 16, 10]];
    let table = |rows| DraftDistance { nodes: vec![0, 1, 2, 3], rows, at: Location::of("t") };
    let four = four.with_distances(table(rows)).unwrap();
    assert_eq!(four.distance(cpu(0), cpu(3)), Distance::Remote(1));
    assert_eq!(four.distance(cpu(1), cpu(3)), Distance::Remote(2));
    // Two packages on one node are at the nearest distance that packages can have; distances inside a package do not
    // count.
    let uma = synthetic("pack:2 core:2 pu:1");
    assert_eq!(uma.distance(cpu(0), cpu(2)), Distance::Remote(1));
    let split = synthetic("pack:1 numa:2 l3:1 core:2 pu:1");
    assert_eq!(split.distance(cpu(0), cpu(2)), Distance::Package);
    assert_eq!(split.distances().last(), Some(&Distance::Package));
}

#[test]
fn every_distance_follows_from_the_masks_of_the_scheduler() {
    for text in ["pack:2 [numa] l3:2 l2:2 core:2 pu:2", "2 2 2 2 2", "numa:2 core:3 pu:1", SYNTHETIC] {
        let topology = synthetic(text);
        let kernel = topology.cpu_topology();
        for (a, _) in topology.cpus() {
            for (b, _) in topology.cpus() {
                let expected = match () {
                    () if a == b => Distance::Same,
                    () if kernel.smt[a].contains(b) => Distance::Smt,
                    () if kernel.cluster[a].contains(b) => Distance::Cluster,
                    () if kernel.coregroup[a].contains(b) => Distance::Llc,
                    () if kernel.package[a].contains(b) => Distance::Package,
                    () => Distance::Remote(1),
                };
                assert_eq!(topology.distance(a, b), expected, "{text}: {a:?} to {b:?}");
            }
        }
    }
}

/// Descriptions, and the messages about them.
const BAD_SYNTHETIC: &[(&str, &str)] = &[
    ("", "column 1: found no levels; expected a description such as pack:2 l3:1 core:12 pu:2"),
    (
        "pack:2 cor3:2 pu:1",
        "column 8: found `cor3`; expected a type: pack, die, group, cluster, numa, l1 to l5 (l1d, l1i ...), core or pu",
    ),
    (
        "pack:2 l9:1 pu:1",
        "column 8: found `l9`; expected a type: pack, die, group, cluster, numa, l1 to l5 (l1d, l1i ...), core or pu",
    ),
    ("pack:0 pu:1", "column 6: found `0`; expected a number of objects, 1 or more"),
    ("pack:-1 pu:1", "column 6: found `-1`; expected a number of objects, 1 or more"),
    ("pack: pu:1", "column 6: found `pu:1`; expected a number of objects, 1 or more"),
    (
        "pack:2 core",
        "column 12: found the end of the text; expected `:` and a number after the type, a level such as core:12",
    ),
    (
        "pack:99999999999 pu:1",
        "column 1: found `pack:99999999999`, which makes 99999999999 of them; expected at most 8192 CPUs",
    ),
    ("pack:99999999999999999999999 pu:1", "column 6: found `99999999999999999999999`; expected at most 8192 CPUs"),
    ("pack:128 core:64 pu:2", "column 18: found `pu:2`, which makes 16384 of them; expected at most 8192 CPUs"),
    ("pack:2 core:2", "column 14: found no PUs; expected pu:1 or more as the last level"),
    ("core:2 pack:2 pu:1", "column 8: found packages inside cores; expected packages outside cores"),
    ("pack:2 l2:1 l3:1 pu:1", "column 13: found L3 caches inside L2 caches; expected L3 caches outside L2 caches"),
    ("pack:2 pack:2 pu:1", "column 8: found a second level of packages; expected each type once"),
    (
        "pack:2 2 pu:1",
        "column 8: found a level without type among levels with types; expected types for all levels or for none",
    ),
    ("pack:2(size=3) pu:1", "column 8: found the attribute `size`; expected memory= or indexes="),
    ("l3:1(size=lots) pu:1", "column 11: found the size `lots`; expected a size such as 32kB, 256KiB or 30MB"),
    (
        "l3:1(size=99999999TiB) pu:1",
        "column 11: found the size `99999999TiB`; expected a size such as 32kB, 256KiB or 30MB",
    ),
    ("l3:1(size=1 pu:1", "column 5: found `(` that is never closed; expected `)`"),
    ("pack:2 [core] pu:1", "column 9: found an attached object that is no NUMA node; expected [numa]"),
    ("pack:2 [numa pu:1", "column 14: found `pu:1`; expected `]`"),
    ("numa:2 [numa] pu:1", "column 9: found NUMA nodes both as a level and attached; expected one of the two"),
    ("pu:2(indexes=0,0)", "column 14: found `0,0`, which gives 0 twice; expected each number once"),
    ("pu:2(indexes=0,1,2)", "column 14: found 3 indexes; expected 2, one for each object"),
    ("pu:4(indexes=0*2)", "column 14: found `0*2`; expected a step and a count such as 2*24, both above 0"),
    ("pu:4(indexes=3*7)", "column 14: found `3*7`; expected loops over all 4 objects"),
    ("core:2 pu:2(indexes=core:die)", "column 26: found `die`; expected a level of this description"),
    (
        "pu:1(indexes=9000)",
        "column 14: found `9000` among 1 indexes; expected each number from 0 to 0 once: 0 is missing",
    ),
    (
        "pu:4(indexes=0,1,12,3)",
        "column 18: found `12` among 4 indexes; expected each number from 0 to 3 once: 2 is missing",
    ),
    (
        "numa:2(indexes=0,2) pu:2",
        "column 18: found `2` among 2 indexes; expected each number from 0 to 1 once: 1 is missing",
    ),
    ("2 1023 2 2", "column 3: found 2046 NUMA nodes; expected at most 1024"),
    ("l3:1(size=2TiB) pu:1", "column 1: found a level-3 cache of 2199023255552 bytes; expected at most 1 TiB"),
    ("l3:1(size=0) pu:1", "column 11: found a cache of 0 bytes; expected its size, or no size= where it is not known"),
    ("pu:2 core:1", "column 6: found cores inside PUs; expected cores outside PUs"),
    ("numa:2048 pu:1", "column 1: found 2048 NUMA nodes; expected at most 1024"),
    ("pu:2.5", "column 5: found `.5`; expected a space between levels"),
];

#[test]
fn bad_synthetic_text_says_the_column() {
    for (text, message) in BAD_SYNTHETIC {
        let refused = refusal(from_synthetic(text, "synthetic topology", Numbering::AsListed));
        assert_eq!(refused, format!("synthetic topology, {message}"), "{text}");
    }
}

/// `V3` with one text replaced by another.
fn edited(from: &str, to: &str) -> String {
    assert!(V3.contains(from), "the fixture has no {from}");
    refusal(from_hwloc_xml(&V3.replacen(from, to, 1), "m.xml"))
}

#[test]
fn bad_xml_says_line_and_column() {
    let cut = refusal(from_hwloc_xml(&V3[..V3.len() / 2], "m.xml"));
    assert!(cut.starts_with("m.xml:") && cut.contains("expected what `lstopo --of xml` writes, whole"), "{cut}");
    assert_eq!(
        refusal(from_hwloc_xml("<topology version=\"3.0\"/>", "m.xml")),
        "m.xml:1:1: found a topology without objects; expected an object of type Machine"
    );
    assert_eq!(
        refusal(from_hwloc_xml("<topology>\n <object type=\"Machine\"/></topology>", "m.xml")),
        "m.xml: found no CPUs; expected at least one"
    );
    assert_eq!(
        edited("version=\"3.0\"", "version=\"9.1\""),
        "m.xml:3:1: found hwloc XML version 9.1; expected version 1, 2 or 3"
    );
    assert_eq!(
        refusal(from_hwloc_xml("<svg/>", "m.xml")),
        "m.xml:1:1: found the element <svg>; expected <topology>, as `lstopo --of xml` writes it"
    );
    assert_eq!(
        edited("<object type=\"PU\" os_index=\"4\"", "<object type=\"PU\" os_index=\"0\""),
        "m.xml:11:13: found CPU number 0 for the second time; expected each CPU once"
    );
    assert_eq!(
        edited("os_index=\"4\" cpuset=\"0x00000010\"", "os_index=\"9000\""),
        "m.xml:11:13: found CPU number 9000; expected at most 8192 CPUs, numbered from 0 to 8191"
    );
    assert_eq!(
        edited("os_index=\"4\" cpuset", "os_index=\"-4\" cpuset"),
        "m.xml:11:31: found os_index=\"-4\"; expected a whole number as os_index, 0 or more"
    );
    assert!(edited("os_index=\"4\" cpuset", "cpuset").contains("found an object without os_index"));
    assert_eq!(
        edited("type=\"Core\" os_index=\"0\"", "type=\"Package\" os_index=\"0\""),
        "m.xml:9:11: found an object of type Package inside one of type Package; expected packages outside dies, \
         dies outside cores, cores outside PUs, each once"
    );
    assert_eq!(
        edited("type=\"Core\" os_index=\"0\"", "type=\"Kernel\""),
        "m.xml:9:11: found an object of type \"Kernel\"; expected Machine, Package, Die, Group, NUMANode, L1Cache to \
         L5Cache, L1iCache to L3iCache, Core or PU"
    );
    assert!(
        edited("type=\"Machine\"", "type=\"Package\"")
            .contains("a root object of type Package; expected one of type Machine")
    );
    assert_eq!(
        edited("cache_size=\"4194304\"", "cache_size=\"much\""),
        "m.xml:7:155: found cache_size=\"much\"; expected a whole number as cache_size, 0 or more"
    );
}

#[test]
fn contradictions_in_xml_are_found() {
    // A gap: the package claims a CPU that does not exist.
    assert_eq!(
        edited(
            "type=\"Package\" os_index=\"0\" cpuset=\"0x00000033\"",
            "type=\"Package\" os_index=\"0\" cpuset=\"0x00000133\""
        ),
        "m.xml:5:41: found a Package with CPU 8 in its cpuset and no such PU below it; expected a PU for \
         every CPU of a cpuset"
    );
    assert_eq!(
        edited(
            "type=\"Package\" os_index=\"0\" cpuset=\"0x00000033\"",
            "type=\"Package\" os_index=\"0\" cpuset=\"0x00000031\""
        ),
        "m.xml:5:41: found a Package with PU 1 below it that is not in its cpuset; expected every PU in \
         its parents' cpusets"
    );
    assert_eq!(
        edited("os_index=\"4\" cpuset=\"0x00000010\"", "os_index=\"4\" cpuset=\"0x0000001g\""),
        "m.xml:11:44: found cpuset with `0x0000001g` at its character 1; expected a mask such as 0x00000410,0x41041041"
    );
    assert!(
        edited("<object type=\"NUMANode\" os_index=\"1\"", "<object type=\"NUMANode\" os_index=\"0\"").contains(
            "found NUMA node 0 for the second time (the first is at m.xml:6:7); expected each NUMA node once"
        )
    );
    let no_node = "<object type=\"NUMANode\" os_index=\"1\" cpuset=\"0x000000cc\"";
    assert!(
        edited(no_node, "<object type=\"NUMANode\" os_index=\"1\" cpuset=\"0x0\"")
            .contains("found CPU 2 in no NUMA node; expected every CPU in a NUMA node")
    );
    let distances = "<u64values length=\"12\">10 21 21 10 </u64values>";
    let with = |values: &str| edited(distances, &format!("<u64values>{values}</u64values>"));
    assert_eq!(with("10 21 21"), "m.xml:40:3: found 3 u64values; expected 4, as nbobjs says");
    assert_eq!(with("10 21 21 x"), "m.xml:42:5: found `x` among the u64values; expected whole numbers");
    assert_eq!(
        with("10 900 21 10"),
        "m.xml:40:3: found distance 900 from NUMA node 0 to 1; expected 10 for a node and itself, 10 to 254 else"
    );
    assert!(with("10 5 21 10").contains("found distance 5 from NUMA node 0 to 1"));
    assert!(with("10 21 21 12").contains("found distance 12 from NUMA node 1 to 1"));
    assert!(with("0 0 0 0").contains("found distance 0 from NUMA node 0 to 0"));
    assert!(edited("nbobjs=\"2\"", "nbobjs=\"9999999999\"").contains("expected from 1 to 1024 NUMA nodes"));
    assert!(edited("nbobjs=\"2\"", "nbobjs=\"0\"").contains("expected from 1 to 1024 NUMA nodes"));
    assert!(edited("value=\"600\"", "value=\"2000\"").contains("expected a capacity from 1 to 1024"));
}

#[test]
fn hostile_xml_does_not_exhaust_the_reader() {
    let group = "<object type=\"Group\">";
    let deep = format!(
        "<topology><object type=\"Machine\">{}{}</object></topology>",
        group.repeat(100_000),
        "</object>".repeat(100_000)
    );
    let message = "m.xml:1:2113: found objects nested too deeply; expected at most 100 levels";
    assert_eq!(refusal(from_hwloc_xml(&deep, "m.xml")), message);
    let laughs = "<!DOCTYPE t [\n<!ENTITY a \"ha\"><!ENTITY b \"&a;&a;&a;\">]><topology>&b;</topology>";
    let message = "m.xml:2:1: found an entity declaration; expected XML without entities, as hwloc writes it";
    assert_eq!(refusal(from_hwloc_xml(laughs, "m.xml")), message);
}

#[test]
fn a_truncated_file_says_where_it_ends_and_in_what() {
    let cut = |to: &str| refusal(from_hwloc_xml(&V2[..V2.find(to).unwrap() + to.len()], "m.xml"));
    for (to, message) in [
        // Within a tag, after an open one, after a closed one, within a value.
        ("<object type=\"Pack", "found the end of the text inside <object>, which line"),
        ("<object type=\"Package\" ", "found the end of the text inside <object>, which line"),
        ("</object>", "found the end of the text inside <object>, which line"),
        ("<topology", "found the end of the text inside <topology>, which line"),
        (
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>",
            "found the end of the text (the document does not have a root node)",
        ),
    ] {
        let whole = &V2[..V2.find(to).unwrap() + to.len()];
        let end = Location::in_text("m.xml", whole, whole.trim_end().len());
        let error = cut(to);
        assert!(error.starts_with(&format!("{end}: {message}")), "{error}");
        assert!(error.ends_with("expected what `lstopo --of xml` writes, whole"), "{error}");
    }
    assert_eq!(
        refusal(from_hwloc_xml("<topology>\n<object name='>'>\n<a/>\n<!-- <b> -->\n", "m.xml")),
        "m.xml:4:13: found the end of the text inside <object>, which line 2, column 1 opens; \
         expected what `lstopo --of xml` writes, whole"
    );
    assert!(refusal(from_hwloc_xml(" \n", "m.xml")).starts_with("m.xml:1:1: found an empty file"));
}

#[test]
fn texts_in_xml_may_hold_what_ends_tags() {
    let note = "<info name=\"a > b\" value='\"/>'>\n</info>";
    let noted = V2.replacen("<object type=\"Package\"", &(note.repeat(200) + "<object type=\"Package\""), 1);
    assert_eq!(from_hwloc_xml(&noted, "m.xml"), from_hwloc_xml(V2, "m.xml"));
}

#[test]
fn offline_cpus_and_sparse_numbers_are_closed_up_and_said() {
    let xml = "<topology><object type=\"Machine\"><object type=\"Socket\" os_index=\"0\">\
        <object type=\"PU\" os_index=\"2\" cpuset=\"0x4\"/><object type=\"PU\" os_index=\"3\" cpuset=\"0x0\"/>\
        <object type=\"PU\" os_index=\"7\" cpuset=\"0x80\"/></object></object></topology>";
    let topology = from_hwloc_xml(xml, "m.xml").unwrap();
    assert_eq!(topology.nr_cpus(), 2);
    assert_eq!((topology.cpu(cpu(0)).os_index, topology.cpu(cpu(1)).os_index), (2, 7));
    assert_eq!(topology.notices()[0], "CPUs 3 are offline and left out");
    assert_eq!(topology.notices()[1], "CPUs 2,7 are numbered 0-1 here");
}

#[test]
fn of_several_nodes_near_a_cpu_the_most_particular_is_its_own() {
    // High-bandwidth memory beside ordinary memory, and a node of the whole machine.
    let node = |os: u32, cpus: &str| format!("<object type=\"NUMANode\" os_index=\"{os}\" cpuset=\"{cpus}\"/>");
    let pu = |os: u32| format!("<object type=\"PU\" os_index=\"{os}\" cpuset=\"0x{:x}\"/>", 1 << os);
    let package = |os: u32, first: u32, nodes: String| {
        format!("<object type=\"Package\" os_index=\"{os}\">{nodes}{}{}</object>", pu(first), pu(first + 1))
    };
    let xml = format!(
        "<topology version=\"2.0\"><object type=\"Machine\">{}{}{}</object></topology>",
        node(9, "0xf"),
        package(0, 0, node(0, "0x3") + &node(2, "0x3")),
        package(1, 2, node(1, "0xc"))
    );
    let topology = from_hwloc_xml(&xml, "m.xml").unwrap();
    let cpus: Vec<String> = topology.nodes().iter().map(|node| node.cpus.list()).collect();
    assert_eq!(cpus, ["0-1", "2-3", "", ""]);
    assert_eq!(topology.nodes()[3].os_index, 9);
    assert_eq!(topology.notices()[0], "NUMA nodes 0,1,2,9 are numbered 0-3 here");
}

/// A sysfs tree of two packages of two cores of two threads, numbered as Linux does, with CPU 7 offline.
fn sysfs_tree() -> BTreeMap<String, String> {
    let mut files = BTreeMap::new();
    let mut put = |path: &str, text: &str| {
        files.insert(format!("sys/devices/system/{path}"), format!("{text}\n"));
    };
    put("cpu/online", "0-6");
    put("cpu/present", "0-7");
    for cpu in 0..7usize {
        let core = cpu % 4;
        let siblings = if core == 3 { "3".to_string() } else { format!("{core},{}", core + 4) };
        let package = if core < 2 { "0-1,4-5" } else { "2-3,6" };
        put(&format!("cpu/cpu{cpu}/topology/core_cpus_list"), &siblings);
        put(&format!("cpu/cpu{cpu}/topology/package_cpus_list"), package);
        put(&format!("cpu/cpu{cpu}/topology/core_id"), &core.to_string());
        put(&format!("cpu/cpu{cpu}/topology/physical_package_id"), &(core / 2).to_string());
        for (index, level, kind, size, cpus) in [
            (0, 1, "Data", "32K", siblings.as_str()),
            (1, 1, "Instruction", "32K", siblings.as_str()),
            (2, 2, "Unified", "256K", siblings.as_str()),
            (3, 3, "Unified", "30720K", package),
        ] {
            let file = |name: &str| format!("cpu/cpu{cpu}/cache/index{index}/{name}");
            put(&file("level"), &level.to_string());
            put(&file("type"), kind);
            put(&file("size"), size);
            put(&file("shared_cpu_list"), cpus);
        }
    }
    put("node/online", "0-1");
    put("node/node0/cpulist", "0-1,4-5");
    put("node/node1/cpulist", "2-3,6-7");
    put("node/node0/distance", "10 21");
    put("node/node1/distance", "21 10");
    put("node/node1/meminfo", "Node 1 MemTotal:       65536 kB\nNode 1 MemFree:   1 kB");
    files
}

fn from_tree(files: &BTreeMap<String, String>) -> Result<Topology, TopologyError> {
    from_sysfs(&|path| files.get(path).cloned())
}

#[test]
fn a_sysfs_tree_reads_as_the_kernel_sees_it() {
    let topology = from_tree(&sysfs_tree()).unwrap();
    assert_eq!(topology.summary(), "2 packages, 2 NUMA nodes, 2 last level caches, 4 cores, 7 CPUs");
    assert_eq!(topology.notices(), ["CPUs 7 are not online and left out"]);
    assert_eq!(topology.distance(cpu(0), cpu(4)), Distance::Smt);
    assert_eq!(topology.distance(cpu(0), cpu(1)), Distance::Llc);
    assert_eq!(topology.distance(cpu(0), cpu(2)), Distance::Remote(1));
    assert_eq!(topology.llc_bytes(cpu(6)), Some(30 << 20));
    assert_eq!(topology.nodes()[1].memory_bytes, Some(64 << 20));
    assert_eq!(topology.packages()[1].os_index, Some(1));
}

#[test]
fn masks_will_do_where_there_are_no_lists() {
    for (core, package) in [("thread_siblings", "core_siblings"), ("core_cpus", "package_cpus")] {
        only_masks_will_do(core, package);
    }
}

/// `core` and `package` are the kernel's names of the masks of a core's CPUs and of a package's.
fn only_masks_will_do(core: &str, package: &str) {
    let mut files = sysfs_tree();
    files.insert("sys/devices/system/cpu/online".to_string(), "0-3\n".to_string());
    for cpu in 0..7 {
        let topology = format!("sys/devices/system/cpu/cpu{cpu}/topology");
        files.remove(&format!("{topology}/core_cpus_list"));
        files.remove(&format!("{topology}/package_cpus_list"));
        files.insert(format!("{topology}/{core}"), format!("{:08x}\n\0\0", 1 << cpu));
        files.insert(format!("{topology}/{package}"), if cpu < 2 { "00000003" } else { "0000000c" }.to_string());
        (0..4).for_each(|index| {
            files.remove(&format!("sys/devices/system/cpu/cpu{cpu}/cache/index{index}/level"));
        });
    }
    let topology = from_tree(&files).unwrap();
    assert_eq!(topology.summary(), "2 packages, 2 NUMA nodes, 2 last level caches, 4 cores, 4 CPUs");
    assert!(topology.notices()[1].starts_with("no cache is given"), "{:?}", topology.notices());
}

#[test]
fn what_a_cut_tree_does_not_say_is_told() {
    let mut files = sysfs_tree();
    files.retain(|path, _| !path.contains("/cpu2/") && !path.contains("/cpu6/"));
    let notices = from_tree(&files).unwrap().notices().to_vec();
    let told = |what: &str| notices.iter().any(|notice| notice.starts_with(what));
    assert!(told("of CPUs 2,6 the tree has nothing but their numbers"), "{notices:?}");
    assert!(told("CPUs 2,6 do not say what core they are of"), "{notices:?}");
    let only = BTreeMap::from([("sys/devices/system/cpu/online".to_string(), "0-31\n".to_string())]);
    let notices = from_tree(&only).unwrap().notices().to_vec();
    assert!(notices[0].starts_with("CPUs 0-31 do not say what core they are of: each is taken for one"), "{notices:?}");
}

#[test]
fn clusters_and_capacities_come_from_sysfs() {
    let mut files = sysfs_tree();
    for cpu in 0..7 {
        let cluster = if [0, 1, 4, 5].contains(&cpu) { "0-1,4-5" } else { "2-3,6" };
        files.insert(format!("sys/devices/system/cpu/cpu{cpu}/topology/cluster_cpus_list"), cluster.to_string());
        files.insert(format!("sys/devices/system/cpu/cpu{cpu}/cpu_capacity"), (1024 - cpu).to_string());
    }
    let topology = from_tree(&files).unwrap();
    assert_eq!(topology.distance(cpu(0), cpu(1)), Distance::Cluster);
    assert_eq!(topology.cpu(cpu(3)).capacity, 1021);
}

#[test]
fn bad_sysfs_trees_name_the_file() {
    let with = |path: &str, text: &str| {
        let mut files = sysfs_tree();
        files.insert(format!("sys/devices/system/{path}"), text.to_string());
        refusal(from_tree(&files))
    };
    assert_eq!(
        refusal(from_tree(&BTreeMap::new())),
        "sys/devices/system/cpu/online: found no CPUs; expected a tree with sys/devices/system/cpu/online"
    );
    assert_eq!(
        with("cpu/online", "0-"),
        "sys/devices/system/cpu/online:1:3: found the end of the text; expected a list of CPUs such as 0-3,8"
    );
    assert_eq!(
        with("cpu/online", "0-9000"),
        "sys/devices/system/cpu/online:1:1: found `0-9000`; expected CPU numbers up to 8191"
    );
    assert_eq!(
        with("cpu/cpu2/topology/package_cpus_list", "0-3"),
        "sys/devices/system/cpu/cpu2/topology/package_cpus_list: found CPU 0 in two packages (the other is at \
         sys/devices/system/cpu/cpu0/topology/package_cpus_list); expected each CPU in one package"
    );
    assert_eq!(
        with("cpu/cpu2/topology/core_cpus_list", "1,5"),
        "sys/devices/system/cpu/cpu2/topology/core_cpus_list: found CPUs 1,5; expected a set with CPU 2 itself"
    );
    assert_eq!(
        with("cpu/cpu0/cache/index3/size", "big"),
        "sys/devices/system/cpu/cpu0/cache/index3/size:1:1: found `big`; expected a size such as 32K"
    );
    assert_eq!(
        with("node/node1/distance", "21 5"),
        "sys/devices/system/node/node1/distance:1:1: found 5 from node 1 to itself; expected 10, as Linux has it"
    );
    assert_eq!(
        with("cpu/cpu0/cpu_capacity", "0"),
        "sys/devices/system/cpu/cpu0/cpu_capacity:1:1: found `0`; expected a capacity from 1 to 1024"
    );
    assert_eq!(
        with("node/node1/distance", "21"),
        "sys/devices/system/node/node1/distance:1:1: found 1 distances; expected 2, one for each node"
    );
    assert!(with("node/node1/distance", "21 -10").contains("found `-10`; expected distances such as 10 21"));
    let mut split = sysfs_tree();
    split.insert("sys/devices/system/node/node0/cpulist".to_string(), "0-1".to_string());
    split.insert("sys/devices/system/node/node1/cpulist".to_string(), "2-7".to_string());
    assert_eq!(
        refusal(from_tree(&split)),
        "sys/devices/system/cpu/cpu0/topology/core_cpus_list: found CPUs 0 and 4 in one core, but in two NUMA nodes; \
         expected a core inside one of the NUMA nodes"
    );
}

/// Hypervisors report such caches: each virtual CPU is a package, and all share one last level cache.
#[test]
fn a_cache_of_two_packages_is_left_out_and_told() {
    let mut files = sysfs_tree();
    for cpu in 0..7 {
        files.insert(format!("sys/devices/system/cpu/cpu{cpu}/cache/index3/shared_cpu_list"), "0-6\n".to_string());
    }
    let topology = from_tree(&files).unwrap();
    assert_eq!(topology.llcs().len(), 4, "level 2 is the last that is left");
    assert_eq!(topology.notices()[1..], ["a level-3 cache of CPUs 0 and 2, of two packages, is left out"]);
}
