//! Each target for a bounded number of cases. See the crate's documentation for how to do more.

use fuzz::targets::TARGETS;

fn test(name: &str) {
    TARGETS.iter().find(|target| target.name == name).expect("a target").test();
}

macro_rules! tests {
    ($( $name:ident )+) => {
        $( #[test] fn $name() { test(stringify!($name)); } )+

        #[test]
        fn every_target_is_tested_and_can_be_fuzzed() {
            let tested = [$( stringify!($name) ),+];
            assert_eq!(TARGETS.iter().map(|target| target.name).collect::<Vec<_>>(), tested);
            let manifest = include_str!("../Cargo.toml");
            for name in tested {
                assert!(manifest.contains(&format!("name = \"{name}\"\npath = \"fuzz_targets/{name}.rs\"")), "{name}");
            }
        }
    };
}

tests! { experiment machine_file hwloc_xml synthetic sysfs cpu_sets rt_app script trace arguments record measured }
