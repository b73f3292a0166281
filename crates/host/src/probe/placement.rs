//! Pairs of CPUs by how near they are to each other.

use std::collections::BTreeMap;
use std::fs;

/// What two CPUs share.
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
    /// The computer.
    Remote,
}

impl Nearness {
    /// As machine files call it; the nearest remote distance stands for all.
    pub fn name(self) -> &'static str {
        match self {
            Nearness::Smt => "smt",
            Nearness::Cluster => "cluster",
            Nearness::Llc => "llc",
            Nearness::Package => "package",
            Nearness::Remote => "remote_1",
        }
    }

    pub const ALL: [Nearness; 5] =
        [Nearness::Smt, Nearness::Cluster, Nearness::Llc, Nearness::Package, Nearness::Remote];
}

/// Two CPUs, the lower number first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Placement {
    pub cpus: [usize; 2],
    pub nearness: Nearness,
}

/// CPUs of which pairs are measured: of a large computer some of each sort suffice.
const MOST_CPUS: usize = 16;

/// Every pair of these CPUs, or of some that are spread over them; the nearest first.
pub fn placements(cpus: &[usize]) -> Vec<Placement> {
    let some = spread(cpus, MOST_CPUS);
    let seats: BTreeMap<usize, Seat> = some.iter().map(|&cpu| (cpu, Seat::of(cpu))).collect();
    let mut pairs: Vec<Placement> = Vec::new();
    for (index, &a) in some.iter().enumerate() {
        for &b in &some[index + 1..] {
            pairs.push(Placement { cpus: [a, b], nearness: seats[&a].nearness(&seats[&b]) });
        }
    }
    pairs.sort_by_key(|pair| (pair.nearness, pair.cpus));
    pairs
}

/// The first half of them from the beginning, where siblings of one core and neighbours are, the rest spread over all.
fn spread(cpus: &[usize], most: usize) -> Vec<usize> {
    if cpus.len() <= most {
        return cpus.to_vec();
    }
    let step = cpus.len() as f64 / (most / 2) as f64;
    let mut some: Vec<usize> = (0..most / 2).map(|index| cpus[(index as f64 * step) as usize]).collect();
    for &first in &some.clone() {
        // With each a sibling or a neighbour.
        let near = siblings(first).into_iter().chain([first + 1]).find(|near| *near != first && cpus.contains(near));
        some.extend(near);
    }
    some.sort_unstable();
    some.dedup();
    some
}

fn siblings(cpu: usize) -> Vec<usize> {
    list(&topology(cpu, "thread_siblings_list").unwrap_or_default())
}

/// Whether the system shows other threads of its core.
pub fn has_sibling(cpu: usize) -> bool {
    siblings(cpu).iter().any(|&other| other != cpu)
}

fn topology(cpu: usize, file: &str) -> Option<String> {
    let text = fs::read_to_string(format!("/sys/devices/system/cpu/cpu{cpu}/topology/{file}")).ok()?;
    Some(text.trim().to_string())
}

/// What a CPU shares with whom; empty where the system does not say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Seat {
    core: String,
    /// Of the second-level cache; of the last level cache.
    l2: String,
    llc: String,
    package: String,
}

impl Seat {
    fn of(cpu: usize) -> Seat {
        let cache = |level: &dyn Fn(u64) -> bool| {
            let folder = |index: usize| format!("/sys/devices/system/cpu/cpu{cpu}/cache/index{index}");
            let read = |index: usize, file: &str| fs::read_to_string(format!("{}/{file}", folder(index))).ok();
            let caches = (0..16).map_while(|index| {
                let number = read(index, "level")?.trim().parse::<u64>().ok()?;
                let data = read(index, "type").is_none_or(|kind| kind.trim() != "Instruction");
                Some((number, data, read(index, "shared_cpu_list")?.trim().to_string()))
            });
            let found = caches.filter(|(number, data, _)| *data && level(*number)).max_by_key(|cache| cache.0);
            found.map(|cache| cache.2).unwrap_or_default()
        };
        Seat {
            core: topology(cpu, "thread_siblings_list").unwrap_or_default(),
            l2: cache(&|level| level == 2),
            llc: cache(&|level| level >= 2),
            package: topology(cpu, "package_cpus_list")
                .or_else(|| topology(cpu, "core_siblings_list"))
                .unwrap_or_default(),
        }
    }

    fn nearness(&self, other: &Seat) -> Nearness {
        let shared = |of: fn(&Seat) -> &String| !of(self).is_empty() && of(self) == of(other);
        if shared(|seat| &seat.core) {
            Nearness::Smt
        } else if shared(|seat| &seat.l2) {
            Nearness::Cluster
        } else if shared(|seat| &seat.llc) {
            Nearness::Llc
        } else if shared(|seat| &seat.package) {
            Nearness::Package
        } else {
            Nearness::Remote
        }
    }
}

/// The kernel's lists of CPUs: `0-3,8`.
pub(super) fn list(text: &str) -> Vec<usize> {
    let range = |part: &str| {
        let (first, last) = part.trim().split_once('-').unwrap_or((part.trim(), part.trim()));
        Some(first.parse().ok()?..=last.parse().ok()?)
    };
    text.split(',').filter_map(range).flat_map(|range: std::ops::RangeInclusive<usize>| range).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seat(core: &str, l2: &str, llc: &str, package: &str) -> Seat {
        let [core, l2, llc, package] = [core, l2, llc, package].map(str::to_string);
        Seat { core, l2, llc, package }
    }

    #[test]
    fn cpus_are_as_near_as_what_they_share() {
        let this = seat("0,8", "0,8", "0-3,8-11", "0-15");
        assert_eq!(this.nearness(&this), Nearness::Smt);
        assert_eq!(this.nearness(&seat("1,9", "0,8", "0-3,8-11", "0-15")), Nearness::Cluster);
        assert_eq!(this.nearness(&seat("1,9", "1,9", "0-3,8-11", "0-15")), Nearness::Llc);
        assert_eq!(this.nearness(&seat("4,12", "4,12", "4-7,12-15", "0-15")), Nearness::Package);
        assert_eq!(this.nearness(&seat("16", "16", "16", "16-31")), Nearness::Remote);
        // A system that says nothing shares nothing.
        assert_eq!(Seat::default().nearness(&Seat::default()), Nearness::Remote);
    }

    #[test]
    fn lists_of_cpus() {
        assert_eq!(list("0-2,8\n"), [0, 1, 2, 8]);
        assert_eq!(list("5"), [5]);
        assert_eq!(list(""), Vec::<usize>::new());
    }

    #[test]
    fn a_large_computer_is_sampled() {
        let many: Vec<usize> = (0..400).collect();
        let some = spread(&many, 16);
        assert!((8..=16).contains(&some.len()) && some[0] == 0 && some.last().is_some_and(|&last| last >= 300));
        assert_eq!(spread(&[3, 4], 16), [3, 4]);
    }
}
