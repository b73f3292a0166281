//! Package states: a package whose CPUs are all in a deep state goes there too, and takes longer to leave.

use crate::prices::IdleState;
use crate::topology::Topology;
use units::{CpuId, Ps, Slots};

/// What a package did in its own state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PackageResidency {
    pub idle: Ps,
    pub entries: u64,
}

#[derive(Clone, Debug)]
struct Package {
    cpus: u32,
    /// Those in a state from which the package may follow.
    deep: u32,
    since: Ps,
    residency: PackageResidency,
}

/// The packages of a machine.
#[derive(Clone, Debug)]
pub struct Packages {
    /// The first idle state of a CPU that lets its package follow; beyond all states where none does.
    first: usize,
    of_cpu: Slots<u16>,
    packages: Vec<Package>,
}

impl Packages {
    pub fn new(topology: &Topology, states: &[IdleState]) -> Packages {
        let first = states.iter().position(|state| state.package_wake > Ps::ZERO).unwrap_or(usize::MAX);
        let of_cpu: Slots<u16> = topology.cpus().map(|(_, cpu)| cpu.package).collect();
        let package = |number: usize| Package {
            cpus: of_cpu.iter().filter(|&&of| usize::from(of) == number).count() as u32,
            deep: 0,
            since: Ps::ZERO,
            residency: PackageResidency::default(),
        };
        let packages = (0..topology.packages().len()).map(package).collect();
        Packages { first, of_cpu, packages }
    }

    /// Whether packages follow CPUs into that state.
    #[inline]
    pub fn follow(&self, state: usize) -> bool {
        state >= self.first
    }

    /// `cpu` has entered such a state at `now`. The last of its package takes that along.
    pub fn enter(&mut self, cpu: CpuId, now: Ps) {
        let package = &mut self.packages[usize::from(self.of_cpu[cpu.index()])];
        package.deep += 1;
        if package.deep == package.cpus {
            package.since = now;
            package.residency.entries += 1;
        }
    }

    /// `cpu` is woken from such a state at `now`. Returns whether its package has to be as well.
    pub fn leave(&mut self, cpu: CpuId, now: Ps) -> bool {
        let package = &mut self.packages[usize::from(self.of_cpu[cpu.index()])];
        let whole = package.deep == package.cpus;
        package.deep -= 1;
        if whole {
            package.residency.idle += now.saturating_sub(package.since);
        }
        whole
    }

    /// What each package has counted up to `end`; nothing where packages have no states.
    pub fn residency(&self, end: Ps) -> Vec<PackageResidency> {
        if self.first == usize::MAX {
            return Vec::new();
        }
        let of = |package: &Package| {
            let now = if package.deep == package.cpus { end.saturating_sub(package.since) } else { Ps::ZERO };
            PackageResidency { idle: package.residency.idle + now, ..package.residency }
        };
        self.packages.iter().map(of).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::{Numbering, from_synthetic};

    #[test]
    fn a_package_follows_its_last_cpu_and_wakes_with_its_first() {
        let topology = from_synthetic("pack:2 core:2 pu:1", "test", Numbering::LinuxX86).expect("a valid machine");
        let state = |name: &str, package_wake| IdleState {
            name: name.to_string(),
            exit_latency_us: 1,
            target_residency_us: 1,
            polling: false,
            wake: Ps::ZERO,
            package_wake: Ps::from_ns(package_wake),
        };
        let mut packages = Packages::new(&topology, &[state("C1", 0), state("C6", 40_000)]);
        assert!(!packages.follow(0) && packages.follow(1));
        let at = Ps::from_ns;
        packages.enter(CpuId(0), at(10));
        packages.enter(CpuId(2), at(11));
        assert!(!packages.leave(CpuId(0), at(12)), "the other core is awake");
        packages.enter(CpuId(0), at(20));
        packages.enter(CpuId(1), at(30));
        assert!(packages.leave(CpuId(1), at(70)));
        assert!(!packages.leave(CpuId(0), at(75)), "it is awake already");
        packages.enter(CpuId(3), at(80));
        let residency = packages.residency(at(100));
        let expected = |ns, entries| PackageResidency { idle: at(ns), entries };
        assert_eq!(residency, [expected(40, 1), expected(20, 1)]);
        let without = Packages::new(&topology, &[state("C1", 0)]);
        assert!(without.residency(at(1)).is_empty() && !without.follow(0));
    }
}
