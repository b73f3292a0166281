//! Tasks that wake each other, and on how many CPUs they do it.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use units::{CpuId, Ns};

/// The most pairs that are counted at a time: 10 MB. When there are more, every pair loses the same number of wakeups,
/// at most one in `MOST_PAIRS / 4` of all wakeups (the counters of Misra and Gries). So the pairs that wake each other
/// most stay known.
const MOST_PAIRS: usize = 1 << 17;
/// The most exited tasks that are remembered at a time.
const MOST_GONE: usize = 1 << 12;
/// The number of pairs that are reported.
const TOLD: usize = 3;

/// Two process ids, the smaller first.
type Pids = (u32, u32);

/// Counts while it listens, by process ids. Memory: the living tasks, with the CPUs that each ran on, and
/// [`MOST_PAIRS`].
#[derive(Clone, Debug, Default)]
pub(crate) struct Pairs {
    wakeups: BTreeMap<Pids, u64>,
    tasks: BTreeMap<u32, Task>,
    gone: usize,
    /// The most wakeups that may be missing in any count.
    missing: u64,
}

#[derive(Clone, Debug, Default)]
struct Task {
    /// The task's name, or its last one.
    comm: String,
    ran: BTreeMap<CpuId, Ns>,
    gone: bool,
}

/// Two tasks that woke each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    pub pids: (u32, u32),
    /// How often one woke the other.
    pub wakeups: u64,
    /// How many CPUs hold 99% of the time that both ran, counting the CPUs with most of it first.
    pub cpus: usize,
    /// Time on the CPU that holds most of it, and on all CPUs.
    pub busiest: Ns,
    pub run: Ns,
}

impl Pairs {
    pub fn named(&mut self, pid: u32, comm: &str) {
        self.tasks.entry(pid).or_default().comm = comm.to_string();
    }

    pub fn woke(&mut self, waker: u32, wakee: u32) {
        if waker == wakee {
            return;
        }
        *self.wakeups.entry((waker.min(wakee), waker.max(wakee))).or_default() += 1;
        if self.wakeups.len() > MOST_PAIRS {
            self.forget_the_gone();
            self.forget_rare_pairs();
        }
    }

    pub fn ran(&mut self, pid: u32, cpu: CpuId, time: Ns) {
        *self.tasks.entry(pid).or_default().ran.entry(cpu).or_default() += time;
    }

    pub fn gone(&mut self, pid: u32) {
        if let Some(task) = self.tasks.get_mut(&pid) {
            task.gone = true;
            self.gone += 1;
        }
        if self.gone > MOST_GONE {
            self.forget_the_gone();
        }
    }

    /// The pairs of an exited task grow no more, so only the first few of them are kept.
    fn forget_the_gone(&mut self) {
        let Pairs { wakeups, tasks, gone, .. } = self;
        let is_gone = |pid: u32| tasks.get(&pid).is_none_or(|task| task.gone);
        let ended = most(wakeups.iter().filter(|((one, other), _)| is_gone(*one) || is_gone(*other)));
        wakeups.retain(|pids, _| !is_gone(pids.0) && !is_gone(pids.1) || ended.iter().any(|(kept, _)| kept == pids));
        let kept: BTreeSet<u32> = ended.iter().flat_map(|((one, other), _)| [*one, *other]).collect();
        tasks.retain(|pid, task| !task.gone || kept.contains(pid));
        // The kept ones do not count, or each further exit would make all be examined again.
        *gone = 0;
    }

    /// Takes so many wakeups from each pair that half of the pairs remain.
    fn forget_rare_pairs(&mut self) {
        if self.wakeups.len() <= MOST_PAIRS / 2 {
            return;
        }
        let mut counts: Vec<u64> = self.wakeups.values().copied().collect();
        let middle = counts.len() / 2;
        let taken = *counts.select_nth_unstable(middle).1;
        self.wakeups.retain(|_, wakeups| {
            *wakeups = wakeups.saturating_sub(taken);
            *wakeups > 0
        });
        self.missing += taken;
    }

    /// The pairs with most wakeups, and their names; the pair with most comes first.
    pub fn told(&self) -> Vec<([String; 2], Pair)> {
        let named = |pid: u32| self.tasks.get(&pid).map(|task| task.comm.clone()).unwrap_or_default();
        let told = most(self.wakeups.iter()).into_iter();
        told.map(|(pids, wakeups)| ([named(pids.0), named(pids.1)], self.pair(pids, wakeups))).collect()
    }

    /// How many more wakeups each pair may have had: none, unless there were very many pairs.
    pub fn missing(&self) -> u64 {
        self.missing
    }

    fn pair(&self, pids: Pids, wakeups: u64) -> Pair {
        let mut by_cpu: BTreeMap<CpuId, Ns> = BTreeMap::new();
        let tasks = [pids.0, pids.1].into_iter().filter_map(|pid| self.tasks.get(&pid));
        for (&cpu, &time) in tasks.flat_map(|task| &task.ran) {
            *by_cpu.entry(cpu).or_default() += time;
        }
        let mut times: Vec<Ns> = by_cpu.into_values().collect();
        times.sort_by_key(|&time| Reverse(time));
        let run = times.iter().fold(Ns::ZERO, |sum, &time| sum + time);
        let mut sum = Ns::ZERO;
        let mut enough = |time: &&Ns| {
            let before = sum;
            sum += **time;
            before.0 * 100 < run.0 * 99
        };
        let cpus = times.iter().take_while(|time| enough(time)).count();
        Pair { pids, wakeups, cpus, busiest: times.first().copied().unwrap_or_default(), run }
    }
}

/// The [`TOLD`] pairs with most wakeups.
fn most<'a>(pairs: impl Iterator<Item = (&'a Pids, &'a u64)>) -> Vec<(Pids, u64)> {
    let mut most: Vec<(Pids, u64)> = Vec::with_capacity(TOLD + 1);
    for (&pids, &wakeups) in pairs {
        let at = most.partition_point(|&(kept, of_kept)| (Reverse(of_kept), kept) < (Reverse(wakeups), pids));
        if at < TOLD {
            most.insert(at, (pids, wakeups));
            most.truncate(TOLD);
        }
    }
    most
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_uses_the_cpus_that_hold_nearly_all_of_its_time() {
        let mut pairs = Pairs::default();
        for _ in 0..3 {
            pairs.woke(7, 5);
        }
        pairs.woke(5, 7);
        pairs.woke(5, 9);
        pairs.woke(5, 5);
        // 8 has woken nobody.
        for (pid, cpu, time) in [(5, 0, 600), (7, 1, 300), (7, 0, 50), (5, 2, 45), (5, 3, 5), (8, 4, 999), (9, 2, 1)] {
            pairs.ran(pid, CpuId(cpu), Ns(time));
        }
        let told = pairs.told();
        let told: Vec<Pair> = told.into_iter().map(|(_, pair)| pair).collect();
        assert_eq!(told[0], Pair { pids: (5, 7), wakeups: 4, cpus: 3, busiest: Ns(650), run: Ns(1_000) });
        assert_eq!((told[1].pids, told[1].wakeups, told.len()), ((5, 9), 1, 2));
    }

    #[test]
    fn the_busiest_pair_may_be_the_last_of_thousands() {
        let mut pairs = Pairs::default();
        (1..=5_000).for_each(|pid| pairs.woke(pid, 10_000 + pid));
        (0..3).for_each(|_| pairs.woke(15_000, 5_000));
        pairs.woke(4_000, 14_000);
        let told: Vec<_> = pairs.told().into_iter().map(|(_, pair)| (pair.pids, pair.wakeups)).collect();
        assert_eq!(told, [((5_000, 15_000), 4), ((4_000, 14_000), 2), ((1, 10_001), 1)]);
    }

    #[test]
    fn time_counts_from_before_the_first_wakeup() {
        let mut pairs = Pairs::default();
        pairs.ran(5, CpuId(0), Ns(300));
        pairs.woke(5, 7);
        pairs.ran(7, CpuId(1), Ns(100));
        assert_eq!(pairs.told()[0].1.run, Ns(400));
    }

    #[test]
    fn of_tasks_that_are_gone_only_the_busiest_pairs_are_remembered() {
        let mut pairs = Pairs::default();
        for pid in 2..=10_000 {
            pairs.named(pid, "child");
            pairs.ran(pid, CpuId(0), Ns(10));
            pairs.woke(1, pid);
            if pid == 3_000 {
                (0..4).for_each(|_| pairs.woke(pid, 1));
            }
            pairs.gone(pid);
        }
        assert!(pairs.tasks.len() <= MOST_GONE + 2 * TOLD && pairs.wakeups.len() <= MOST_GONE + TOLD);
        let (names, pair) = &pairs.told()[0];
        assert_eq!((pair.pids, pair.wakeups, pair.run), ((1, 3_000), 5, Ns(10)));
        assert_eq!(names[1], "child");
    }

    #[test]
    fn more_pairs_than_are_counted_cost_each_as_much_as_is_told() {
        let mut pairs = Pairs::default();
        (1..=1_000).for_each(|pid| pairs.named(pid, "many"));
        for one in 1..=1_000 {
            (one + 1..=1_000).for_each(|other| pairs.woke(one, other));
            (0..10).for_each(|_| pairs.woke(999, 1_000));
        }
        let (told, missing) = (pairs.told(), pairs.missing());
        assert!(pairs.wakeups.len() <= MOST_PAIRS);
        assert_eq!((told[0].1.pids, told[0].1.wakeups <= 10_001), ((999, 1_000), true));
        assert!(missing > 0 && told[0].1.wakeups + missing >= 10_001, "{missing} of {}", told[0].1.wakeups);
        assert!(missing <= (1_000 * 999 / 2 + 10_000) / (MOST_PAIRS as u64 / 2));
    }
}
