//! Package states: once all CPUs of a package are in a deep state, the package enters one too, which takes longer to
//! leave.

use crate::prices::Prices;
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
    /// How many of its CPUs are in a state that lets the package follow.
    deep: u32,
    since: Ps,
    residency: PackageResidency,
}

/// The packages of a machine.
#[derive(Clone, Debug)]
pub struct Packages {
    /// The first idle state of a CPU that lets its package follow; [`usize::MAX`] if none does.
    first: usize,
    of_cpu: Slots<u16>,
    /// The packages that enter by themselves. If all enter together, the first stands for all.
    packages: Vec<Package>,
    /// How many packages the machine has.
    count: usize,
}

impl Packages {
    pub fn new(topology: &Topology, prices: &Prices) -> Packages {
        let first = prices.idle_states.iter().position(|state| state.package_wake > Ps::ZERO).unwrap_or(usize::MAX);
        let count = topology.packages().len();
        let apart = if prices.packages_together { 1 } else { count };
        let of_cpu: Slots<u16> = topology.cpus().map(|(_, cpu)| cpu.package % apart as u16).collect();
        let package = |number: usize| Package {
            cpus: of_cpu.iter().filter(|&&of| usize::from(of) == number).count() as u32,
            deep: 0,
            since: Ps::ZERO,
            residency: PackageResidency::default(),
        };
        Packages { first, packages: (0..apart).map(package).collect(), of_cpu, count }
    }

    /// Whether packages follow their CPUs into that state.
    #[inline]
    pub fn follow(&self, state: usize) -> bool {
        state >= self.first
    }

    /// `cpu` has entered such a state at `now`. If it is the last of its package, the package follows.
    pub fn enter(&mut self, cpu: CpuId, now: Ps) {
        let package = &mut self.packages[usize::from(self.of_cpu[cpu.index()])];
        package.deep += 1;
        if package.deep == package.cpus {
            package.since = now;
            package.residency.entries += 1;
        }
    }

    /// `cpu` is woken from such a state at `now`. Returns whether its package has to wake as well.
    pub fn leave(&mut self, cpu: CpuId, now: Ps) -> bool {
        let package = &mut self.packages[usize::from(self.of_cpu[cpu.index()])];
        let whole = package.deep == package.cpus;
        package.deep -= 1;
        if whole {
            package.residency.idle += now.saturating_sub(package.since);
        }
        whole
    }

    /// What each package has counted up to `end`; empty where packages have no states.
    pub fn residency(&self, end: Ps) -> Vec<PackageResidency> {
        if self.first == usize::MAX {
            return Vec::new();
        }
        let of = |package: &Package| {
            let now = if package.deep == package.cpus { end.saturating_sub(package.since) } else { Ps::ZERO };
            PackageResidency { idle: package.residency.idle + now, ..package.residency }
        };
        self.packages.iter().map(of).cycle().take(self.count).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prices::IdleState;
    use crate::topology::{Numbering, from_synthetic};

    fn packages(together: bool, states: &[(&str, u64)]) -> Packages {
        let topology = from_synthetic("pack:2 core:2 pu:1", "test", Numbering::LinuxX86).expect("a valid machine");
        let state = |&(name, package_wake): &(&str, u64)| IdleState {
            package_wake: Ps::from_ns(package_wake),
            ..IdleState::declared(name, 1, 1)
        };
        let mut prices = Prices::free();
        prices.idle_states = states.iter().map(state).collect();
        prices.packages_together = together;
        Packages::new(&topology, &prices)
    }

    const DEEP: &[(&str, u64)] = &[("C1", 0), ("C6", 40_000)];

    fn expected(ns: u64, entries: u64) -> PackageResidency {
        PackageResidency { idle: Ps::from_ns(ns), entries }
    }

    #[test]
    fn a_package_follows_its_last_cpu_and_wakes_with_its_first() {
        let mut packages = packages(false, DEEP);
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
        assert_eq!(packages.residency(at(100)), [expected(40, 1), expected(20, 1)]);
        let without = self::packages(false, &[("C1", 0)]);
        assert!(without.residency(at(1)).is_empty() && !without.follow(0));
    }

    #[test]
    fn packages_that_sleep_together_wait_for_the_last_cpu_of_all() {
        let mut packages = packages(true, DEEP);
        let at = Ps::from_ns;
        (0..3).for_each(|cpu| packages.enter(CpuId(cpu), at(10)));
        assert!(!packages.leave(CpuId(0), at(20)), "a CPU of the other package is awake");
        packages.enter(CpuId(0), at(30));
        packages.enter(CpuId(3), at(40));
        assert!(packages.leave(CpuId(1), at(90)));
        assert!(!packages.leave(CpuId(2), at(95)));
        assert_eq!(packages.residency(at(100)), [expected(50, 1), expected(50, 1)]);
    }
}
