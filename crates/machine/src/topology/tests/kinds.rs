//! Kinds of CPUs and their highest frequencies.

use super::*;

/// The tree of [`sysfs_tree`] with these values in `cpufreq/cpuinfo_max_freq` of each online CPU, with a driver.
fn with_frequencies(driver: &str, khz: [u64; 7]) -> BTreeMap<String, String> {
    let mut files = sysfs_tree();
    for (cpu, khz) in khz.into_iter().enumerate() {
        let cpufreq = format!("sys/devices/system/cpu/cpu{cpu}/cpufreq");
        files.insert(format!("{cpufreq}/cpuinfo_max_freq"), format!("{khz}\n"));
        files.insert(format!("{cpufreq}/scaling_driver"), format!("{driver}\n"));
        let highest_perf = if khz > 4_000_000 { 67 } else { 39 };
        files.insert(format!("sys/devices/system/cpu/cpu{cpu}/acpi_cppc/highest_perf"), format!("{highest_perf}\n"));
    }
    files
}

/// Two favoured cores, two others and three small ones.
const OF_TWO_KINDS: [u64; 7] = [5_200_000, 5_000_000, 3_900_000, 3_900_000, 5_200_000, 5_000_000, 3_900_000];

#[test]
fn kinds_are_known_by_their_highest_frequencies() {
    let kind = |name: &str, cpus: &str, mhz: u64, perf: Option<u32>| CpuKind {
        max_hertz: Some(mhz * 1_000_000),
        highest_perf: perf,
        ..CpuKind::new(name, parse_list(cpus).unwrap())
    };
    let of = |files: &BTreeMap<String, String>| from_tree(files).unwrap().kinds().to_vec();
    let mut files = with_frequencies("intel_pstate", OF_TWO_KINDS);
    let fast = kind("5200-MHz", "0-1,4-5", 5_200, Some(67));
    assert_eq!(of(&files), [fast.clone(), kind("3900-MHz", "2-3,6", 3_900, Some(39))]);
    // If Linux names the kinds, its names are used, even if some CPUs are offline. Firmware's figure counts only if all
    // CPUs of a kind have it.
    files.insert("sys/devices/cpu_core/cpus".to_string(), "0-1,4-5\n".to_string());
    files.insert("sys/devices/cpu_atom/cpus".to_string(), "2-3,6-7\n".to_string());
    files.insert("sys/devices/system/cpu/cpu2/acpi_cppc/highest_perf".to_string(), "255\n".to_string());
    assert_eq!(of(&files), [CpuKind { name: "cpu_core".to_string(), ..fast }, kind("cpu_atom", "2-3,6", 3_900, None)]);
    // Another driver has another scale; favoured cores are not a kind; a CPU that reports nothing belongs to no kind.
    let others = with_frequencies("amd-pstate", OF_TWO_KINDS);
    assert!(of(&others).iter().all(|kind| kind.highest_perf.is_none() && kind.max_hertz.is_some()));
    assert_eq!(of(&with_frequencies("intel_pstate", OF_TWO_KINDS.map(|khz| khz.max(4_700_000)))), []);
    // Nor are gradual steps: no gap of more than a tenth.
    let steps = [5_000_000, 4_700_000, 4_400_000, 4_100_000, 3_800_000, 3_600_000, 3_400_000];
    assert_eq!(of(&with_frequencies("amd-pstate", steps)), []);
    // An impossibly low value counts as not reported; equal names get numbers.
    assert_eq!(of(&with_frequencies("x", [900, 900, 900, 1, 1, 5, 5])), []);
    let slow = of(&with_frequencies("x", [1_900, 1_900, 1_400, 1_400, 1_100, 1_100, 1_100]));
    let names: Vec<&str> = slow.iter().map(|kind| kind.name.as_str()).collect();
    assert_eq!(names, ["1-MHz", "1-MHz 2", "1-MHz 3"]);
    let mut files = with_frequencies("intel_pstate", OF_TWO_KINDS);
    files.remove("sys/devices/system/cpu/cpu6/cpufreq/cpuinfo_max_freq");
    assert_eq!(of(&files)[1].cpus, parse_list("2-3").unwrap());
}

#[test]
fn kinds_that_overlap_name_both_files() {
    let mut files = sysfs_tree();
    files.insert("sys/devices/cpu_core/cpus".to_string(), "0-2\n".to_string());
    files.insert("sys/devices/cpu_atom/cpus".to_string(), "2-3\n".to_string());
    assert_eq!(
        refusal(from_tree(&files)),
        "sys/devices/cpu_atom/cpus: found CPU 2 in two kinds (the other is at sys/devices/cpu_core/cpus); expected each CPU in one kind"
    );
}

#[test]
fn names_that_hwloc_tells_are_made_fit() {
    let name =
        |name: &str| from_hwloc_xml(&V3.replacen("IntelAtom", name, 1), "m.xml").unwrap().kinds()[1].name.clone();
    assert_eq!(["a.b", "", " ", "IntelCore"].map(name), ["a_b", "kind 1", "kind 1", "IntelCore 2"]);
}

#[test]
fn bad_frequencies_name_the_file() {
    let with = |text: &str| {
        let mut files = sysfs_tree();
        files.insert("sys/devices/system/cpu/cpu1/cpufreq/cpuinfo_max_freq".to_string(), text.to_string());
        refusal(from_tree(&files))
    };
    assert_eq!(
        with("<unknown>"),
        "sys/devices/system/cpu/cpu1/cpufreq/cpuinfo_max_freq:1:1: found `<unknown>`; expected a whole number, 0 or more"
    );
    assert_eq!(
        with("20000001"),
        "sys/devices/system/cpu/cpu1/cpufreq/cpuinfo_max_freq:1:1: found `20000001`; expected a frequency in kHz, up to 20000000"
    );
}

#[test]
fn hwloc_tells_the_highest_frequency_of_a_kind() {
    let mhz = |mhz: &str| {
        let told =
            format!("<info name=\"CoreType\" value=\"IntelAtom\"/><info name=\"FrequencyMaxMHz\" value=\"{mhz}\"/>");
        V3.replacen("<info name=\"CoreType\" value=\"IntelAtom\"/>", &told, 1)
    };
    let told = |text: &str| from_hwloc_xml(&mhz(text), "m.xml").map(|topology| topology.kinds()[1].max_hertz);
    assert_eq!(["3900", "0"].map(|text| told(text).unwrap()), [Some(3_900_000_000), None]);
    for text in ["20001", "fast"] {
        let expected =
            format!("m.xml:52:3: found FrequencyMaxMHz \"{text}\"; expected a frequency in MHz, up to 20000");
        assert_eq!(refusal(told(text)), expected);
    }
}
