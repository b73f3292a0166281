//! Odd reports of computers: accepted as far as they are consistent, with notices.

use super::*;

/// Firmware errs: inconsistent parts are left out, and the rest can be written and read again.
#[test]
fn what_lies_in_no_order_is_left_out_and_told() {
    let mut files = sysfs_tree();
    let mut put = |path: &str, text: &str| files.insert(format!("sys/devices/system/cpu/{path}"), text.to_string());
    for cpu in [0, 2, 4, 6] {
        put(&format!("cpu{cpu}/topology/die_cpus_list"), "0,2,4,6");
    }
    for cpu in [0, 4] {
        put(&format!("cpu{cpu}/cache/index3/shared_cpu_list"), "0,4");
    }
    for cpu in [0, 1, 4, 5] {
        put(&format!("cpu{cpu}/cache/index2/shared_cpu_list"), "0-1,4-5");
    }
    for cpu in [1, 5] {
        put(&format!("cpu{cpu}/cache/index3/shared_cpu_list"), "1,5");
    }
    let topology = from_tree(&files).unwrap();
    let straddles = "a level-2 cache of CPUs 0 and 1, of which the level-3 cache at \
                     sys/devices/system/cpu/cpu0/cache/index3/shared_cpu_list has only the first, is left out";
    assert_eq!(
        topology.notices()[1..],
        ["a die of CPUs 0 and 2, of two packages, is left out".to_string(), straddles.to_string()]
    );
    assert!(topology.dies().is_empty());
    assert_eq!((topology.llcs().len(), topology.distance(cpu(0), cpu(1))), (3, Distance::Package));
}

#[test]
fn odd_distances_of_a_computer_are_told() {
    let with = |rows: [&str; 2]| {
        let mut files = sysfs_tree();
        for (node, row) in rows.into_iter().enumerate() {
            files.insert(format!("sys/devices/system/node/node{node}/distance"), format!("{row}\n"));
        }
        from_tree(&files).unwrap().notices()[1..].to_vec()
    };
    assert!(
        with(["10 21", "21 10"]).iter().all(|notice| notice.contains("numbered")),
        "{:?}",
        with(["10 21", "21 10"])
    );
    let one_way = "distances are not the same both ways: 21 from NUMA node 0 to 1, and 20 back";
    assert!(with(["10 21", "20 10"]).iter().any(|notice| notice == one_way), "{:?}", with(["10 21", "20 10"]));
    let near = with(["10 10", "10 10"]);
    assert!(near.iter().any(|notice| notice.starts_with("NUMA nodes 0 and 1 are 10 apart, as a node is")), "{near:?}");
    let xml = from_hwloc_xml(&V2.replacen("10 21 21 10", "10 21 20 10", 1), "m.xml").unwrap();
    assert_eq!(xml.notices(), [one_way]);
}

#[test]
fn the_biggest_cpus_that_are_online_have_the_whole_capacity() {
    let mut files = sysfs_tree();
    for cpu in 0..7 {
        let capacity = if cpu % 2 == 0 { "400" } else { "800" };
        files.insert(format!("sys/devices/system/cpu/cpu{cpu}/cpu_capacity"), capacity.to_string());
    }
    let topology = from_tree(&files).unwrap();
    assert_eq!([0, 1].map(|index| topology.cpu(cpu(index)).capacity), [512, 1024]);
    assert!(topology.notices().iter().any(|it| it == "capacities are scaled from 800 to 1024 for the biggest CPUs"));
}
