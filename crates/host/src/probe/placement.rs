//! Pairs of CPUs by their distance.

use crate::pinning::list;
use std::collections::BTreeMap;
use std::fs;

/// What two CPUs share, from near to far.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Nearness {
    /// The core.
    Smt,
    /// A second-level cache or a cluster.
    Cluster,
    /// The last level cache.
    Llc,
    /// The package.
    Package,
    /// Only the computer; the number is the distance of their packages, counted from 1.
    Remote(u8),
}

impl Nearness {
    /// As machine files call it.
    pub fn name(self) -> String {
        match self {
            Nearness::Smt => "smt".to_string(),
            Nearness::Cluster => "cluster".to_string(),
            Nearness::Llc => "llc".to_string(),
            Nearness::Package => "package".to_string(),
            Nearness::Remote(hops) => format!("remote_{hops}"),
        }
    }
}

/// Two CPUs, the lower number first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Placement {
    pub cpus: [usize; 2],
    pub nearness: Nearness,
}

impl Placement {
    fn of(a: usize, b: usize, nearness: &impl Fn(usize, usize) -> Nearness) -> Placement {
        let cpus = [a.min(b), a.max(b)];
        Placement { cpus, nearness: nearness(cpus[0], cpus[1]) }
    }
}

/// The most CPUs that pairs are chosen from: on a large computer some pairs of each kind suffice. There are more CPUs
/// only if some nearness would be missing otherwise.
const MOST_CPUS: usize = 16;
/// So many of these are spread over all CPUs.
const SPREAD: usize = MOST_CPUS / 2;
/// So many pairs of each nearness suffice.
const ENOUGH: usize = 4;

/// Every pair of these CPUs, or of a subset that still has every nearness; the nearest pairs first. `nearness` gives
/// what the computer's topology says.
pub fn placements(cpus: &[usize], nearness: impl Fn(usize, usize) -> Nearness) -> Vec<Placement> {
    let some = if cpus.len() <= MOST_CPUS { cpus.to_vec() } else { chosen(cpus, &nearness) };
    let mut pairs: Vec<Placement> = pairs(&some, &nearness).collect();
    pairs.sort_by_key(|pair| (pair.nearness, pair.cpus));
    pairs
}

/// The pair that stands for wakeups across CPUs: two CPUs that share as much as possible without sharing a core. The
/// fit of a calibration chooses likewise.
pub fn usual(pairs: &[Placement]) -> Option<&Placement> {
    let order = |pair: &&Placement| match pair.nearness {
        Nearness::Llc => 0,
        Nearness::Cluster => 1,
        Nearness::Package => 2,
        Nearness::Remote(hops) => 2 + usize::from(hops),
        Nearness::Smt => usize::MAX,
    };
    pairs.iter().min_by_key(order)
}

fn pairs<'a>(
    cpus: &'a [usize],
    nearness: &'a impl Fn(usize, usize) -> Nearness,
) -> impl Iterator<Item = Placement> + 'a {
    let from = move |index: usize| cpus[index + 1..].iter().map(move |&b| Placement::of(cpus[index], b, nearness));
    (0..cpus.len()).flat_map(from)
}

/// Some CPUs spread over all, plus those needed for a nearness that is missing. Which nearness is missing depends on
/// the machine's numbering: if the parts of a computer are powers of two, a regular step may hit one CPU of each last
/// level cache, or one thread of each core.
fn chosen(cpus: &[usize], nearness: &impl Fn(usize, usize) -> Nearness) -> Vec<usize> {
    // The first pair of each nearness that exists.
    let mut there: BTreeMap<Nearness, [usize; 2]> = BTreeMap::new();
    for pair in pairs(cpus, nearness) {
        there.entry(pair.nearness).or_insert(pair.cpus);
    }
    let mut some: Vec<usize> = (0..SPREAD).map(|index| cpus[index * cpus.len() / SPREAD]).collect();
    let count = |some: &[usize], wanted: Nearness| pairs(some, nearness).filter(|it| it.nearness == wanted).count();
    for (&wanted, first) in &there {
        if count(&some, wanted) == 0 {
            match partner(cpus, &some, wanted, nearness) {
                Some(cpu) => some.push(cpu),
                None => some.extend(first.iter().filter(|cpu| !some.contains(cpu)).copied().collect::<Vec<_>>()),
            }
        }
    }
    // The rarest nearness comes first. One that no further CPU can increase is as frequent as it gets.
    let mut rare: Vec<Nearness> = there.into_keys().collect();
    while some.len() < MOST_CPUS {
        rare.retain(|&wanted| count(&some, wanted) < ENOUGH);
        let Some(&wanted) = rare.iter().min_by_key(|&&wanted| count(&some, wanted)) else { break };
        match partner(cpus, &some, wanted, nearness) {
            Some(cpu) => some.push(cpu),
            None => rare.retain(|&other| other != wanted),
        }
    }
    some.sort_unstable();
    some
}

/// Another CPU at this distance from one CPU of `some`, and from as few others of them as possible. So pairs of the
/// same kind lie in different places.
fn partner(
    cpus: &[usize],
    some: &[usize],
    wanted: Nearness,
    nearness: &impl Fn(usize, usize) -> Nearness,
) -> Option<usize> {
    let others = cpus.iter().filter(|cpu| !some.contains(cpu));
    let with =
        |cpu: usize| some.iter().filter(|&&other| Placement::of(cpu, other, nearness).nearness == wanted).count();
    others.map(|&cpu| (with(cpu), cpu)).filter(|&(pairs, _)| pairs > 0).min().map(|(_, cpu)| cpu)
}

/// The threads of a CPU's core, as the system lists them; this process may not be allowed to use all of them.
pub fn siblings(cpu: usize) -> Vec<usize> {
    let file = format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
    list(&fs::read_to_string(file).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use Nearness::{Cluster, Llc, Package, Remote, Smt};
    use std::collections::BTreeSet;

    /// A computer numbered as Linux does on x86: the first threads of all cores, package by package, then the second
    /// threads.
    #[derive(Clone, Copy)]
    struct Computer {
        packages: usize,
        llcs: usize,
        cores: usize,
        threads: usize,
        /// Cores that share a second-level cache.
        cluster: usize,
    }

    impl Computer {
        const fn new(packages: usize, llcs: usize, cores: usize, threads: usize) -> Computer {
            Computer { packages, llcs, cores, threads, cluster: 1 }
        }

        fn cpus(self) -> Vec<usize> {
            (0..self.packages * self.llcs * self.cores * self.threads).collect()
        }

        fn nearness(self, a: usize, b: usize) -> Nearness {
            let all = self.packages * self.llcs * self.cores;
            let (a, b) = (a % all, b % all);
            let package = |core: usize| core / (self.llcs * self.cores);
            match () {
                () if a == b => Smt,
                () if a / self.cores == b / self.cores
                    && a % self.cores / self.cluster == b % self.cores / self.cluster =>
                {
                    Cluster
                }
                () if a / self.cores == b / self.cores => Llc,
                () if package(a) == package(b) => Package,
                // The packages form a ring.
                () => Remote(if (package(a) + package(b)) % 2 == 1 { 1 } else { 2 }),
            }
        }
    }

    /// Checks that the pairs include every nearness that two of the CPUs have.
    fn check(name: &str, cpus: &[usize], nearness: impl Fn(usize, usize) -> Nearness) -> Vec<Placement> {
        let there: BTreeSet<Nearness> = pairs(cpus, &nearness).map(|pair| pair.nearness).collect();
        let found = placements(cpus, &nearness);
        let seen: BTreeSet<Nearness> = found.iter().map(|pair| pair.nearness).collect();
        assert_eq!(seen, there, "{name}");
        let used: BTreeSet<usize> = found.iter().flat_map(|pair| pair.cpus).collect();
        assert!((2..=MOST_CPUS).contains(&used.len()) && used.iter().all(|cpu| cpus.contains(cpu)), "{name}: {used:?}");
        assert_eq!(found, placements(cpus, &nearness), "{name}: twice the same");
        assert!(found.is_sorted_by_key(|pair| (pair.nearness, pair.cpus)), "{name}");
        found
    }

    #[test]
    fn every_nearness_of_a_large_computer_is_measured() {
        for (name, computer) in [
            ("2x EPYC 7742", Computer::new(2, 16, 4, 2)),
            ("2x EPYC 7763", Computer::new(2, 8, 8, 2)),
            ("2x EPYC 9654", Computer::new(2, 12, 8, 2)),
            ("2x EPYC 7302", Computer::new(2, 8, 2, 2)),
            ("Ryzen 5950X", Computer::new(1, 2, 8, 2)),
            ("2x Xeon 8480+", Computer::new(2, 1, 56, 2)),
            ("4 packages in a ring", Computer::new(4, 2, 8, 2)),
            ("no threads", Computer::new(2, 1, 64, 1)),
            ("clusters of four", Computer { cluster: 4, ..Computer::new(2, 1, 64, 1) }),
            ("one core for each cache", Computer::new(2, 16, 1, 2)),
        ] {
            let cpus = computer.cpus();
            let found = check(name, &cpus, |a, b| computer.nearness(a, b));
            // Sets that taskset might leave: no second threads, a part in the middle, every third CPU.
            let part = |keep: &dyn Fn(usize) -> bool| cpus.iter().copied().filter(|&cpu| keep(cpu)).collect::<Vec<_>>();
            check(name, &part(&|cpu| cpu < cpus.len() / 2), |a, b| computer.nearness(a, b));
            check(name, &part(&|cpu| cpu % 3 == 1), |a, b| computer.nearness(a, b));
            check(name, &part(&|cpu| cpu > 5 && cpu < cpus.len() - 3), |a, b| computer.nearness(a, b));
            for wanted in [Smt, Llc, Package, Remote(1)] {
                let pairs = found.iter().filter(|pair| pair.nearness == wanted).count();
                assert!(pairs == 0 || pairs >= 2, "{name}: {pairs} of {wanted:?}");
            }
        }
    }

    #[test]
    fn a_nearness_in_one_corner_is_found() {
        // One core has two threads, among four hundred cores, far from where steps of fifty fall.
        let nearness = |a: usize, b: usize| if (a, b) == (391, 392) { Smt } else { Llc };
        let cpus: Vec<usize> = (0..400).collect();
        let found = check("one core with threads", &cpus, nearness);
        assert_eq!(found[0], Placement { cpus: [391, 392], nearness: Smt });
        assert!(found.last().is_some_and(|pair| pair.cpus[1] >= 350), "they are spread over all");
    }

    #[test]
    fn few_cpus_are_all_measured() {
        let computer = Computer::new(1, 2, 2, 2);
        assert_eq!(check("small", &computer.cpus(), |a, b| computer.nearness(a, b)).len(), 8 * 7 / 2);
        assert_eq!(placements(&[3], |_, _| Smt), []);
        assert_eq!(placements(&[3, 4], |_, _| Package), [Placement { cpus: [3, 4], nearness: Package }]);
    }

    #[test]
    fn the_usual_pair_shares_a_cache_and_no_core() {
        let usual = |found: &[Placement]| usual(found).map(|pair| pair.nearness);
        let computer = Computer::new(2, 2, 2, 2);
        let found = placements(&computer.cpus(), |a, b| computer.nearness(a, b));
        assert_eq!(usual(&found), Some(Llc));
        assert_eq!(usual(&placements(&[0, 4], |_, _| Remote(2))), Some(Remote(2)));
        assert_eq!(usual(&placements(&[0, 4], |_, _| Smt)), Some(Smt));
        assert_eq!(usual(&[]), None);
    }
}
