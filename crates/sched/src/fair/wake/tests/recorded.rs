//! Decisions that a real kernel was observed to make, reproduced.

use super::*;
use std::collections::BTreeMap;

struct Decision {
    waker_cpu: usize,
    wakee: String,
    prev: usize,
    sync: bool,
    idle: Vec<usize>,
    result: usize,
}

fn recorded(text: &str) -> Vec<Decision> {
    let decision = |line: &str| {
        let fields: Vec<&str> = line.split(' ').collect();
        let [_time, waker_cpu, _waker, wakee, prev, flags, idle, result] = fields[..] else { panic!("{line}") };
        let number = |text: &str| text.parse().expect("a number");
        let flags = u32::from_str_radix(flags.trim_start_matches("0x"), 16).expect("flags in hexadecimal");
        assert_eq!(flags & !0x10, 0x8, "a wakeup, perhaps a sync one");
        Decision {
            waker_cpu: number(waker_cpu),
            wakee: wakee.to_string(),
            prev: number(prev),
            sync: flags & 0x10 != 0,
            idle: if idle == "-" { Vec::new() } else { idle.split(',').map(number).collect() },
            result: number(result),
        }
    };
    text.lines().filter(|line| !line.starts_with('#')).map(decision).collect()
}

/// A ring of three tasks on the two CPUs that six hogs leave free: each wakee is where its waker is, and goes to the
/// other CPU.
#[test]
fn a_ring_on_two_free_cpus_as_v6_1_places_it() {
    let decisions = recorded(include_str!("../../../../../../fidelity/linux-6.1/k-decisions.txt"));
    assert_eq!(decisions.len(), 450);
    for kernel in [V6_1, V6_12] {
        let mut recent_used: BTreeMap<&str, CpuId> = BTreeMap::new();
        for (row, d) in decisions.iter().enumerate() {
            let mut m = uma(kernel);
            for on in (0..8).filter(|on| !d.idle.contains(on)) {
                m.run(on);
            }
            let p = m.sleeper(d.prev);
            m.task[p].recent_used_cpu = recent_used.get(d.wakee.as_str()).copied().unwrap_or(cpu(d.prev));
            assert_eq!(m.select(d.waker_cpu, p, d.sync), d.result, "{} row {row}", kernel.name);
            recent_used.insert(&d.wakee, m.task[p].recent_used_cpu);
        }
    }
}
