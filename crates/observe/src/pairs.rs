//! Tasks that wake each other, and on how many CPUs they do it.

use std::collections::BTreeMap;
use units::{CpuId, Ns};

/// So many tasks are followed, the first ones that wake or are woken by another: enough for the benchmarks whose pairs matter.
const MOST_TASKS: usize = 64;
/// Pairs that are told of.
const TOLD: usize = 3;

/// Counts while it listens, by process ids.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pairs {
    /// The smaller id first.
    wakeups: BTreeMap<(u32, u32), u64>,
    /// Time of each followed task on each CPU.
    ran: BTreeMap<u32, BTreeMap<CpuId, Ns>>,
}

/// Two tasks that woke each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    pub pids: (u32, u32),
    /// How often one woke the other.
    pub wakeups: u64,
    /// How many CPUs hold 99% of the time that both ran, those first that hold most of it.
    pub cpus: usize,
    /// Time on the CPU that holds most of it, and on all.
    pub busiest: Ns,
    pub run: Ns,
}

impl Pairs {
    pub fn woke(&mut self, waker: u32, wakee: u32) {
        if waker == wakee || !self.follows(waker) || !self.follows(wakee) {
            return;
        }
        *self.wakeups.entry((waker.min(wakee), waker.max(wakee))).or_default() += 1;
    }

    fn follows(&mut self, pid: u32) -> bool {
        if !self.ran.contains_key(&pid) {
            if self.ran.len() == MOST_TASKS {
                return false;
            }
            self.ran.insert(pid, BTreeMap::new());
        }
        true
    }

    pub fn ran(&mut self, pid: u32, cpu: CpuId, time: Ns) {
        if let Some(cpus) = self.ran.get_mut(&pid) {
            *cpus.entry(cpu).or_default() += time;
        }
    }

    /// The pairs with most wakeups, the first of them first.
    pub fn told(&self) -> Vec<Pair> {
        let mut pairs: Vec<_> = self.wakeups.iter().collect();
        pairs.sort_by_key(|&(pids, &wakeups)| (std::cmp::Reverse(wakeups), *pids));
        pairs.truncate(TOLD);
        pairs.into_iter().map(|(&pids, &wakeups)| self.pair(pids, wakeups)).collect()
    }

    fn pair(&self, pids: (u32, u32), wakeups: u64) -> Pair {
        let mut by_cpu: BTreeMap<CpuId, Ns> = BTreeMap::new();
        for (&cpu, &time) in [pids.0, pids.1].iter().flat_map(|pid| &self.ran[pid]) {
            *by_cpu.entry(cpu).or_default() += time;
        }
        let mut times: Vec<Ns> = by_cpu.into_values().collect();
        times.sort_by_key(|&time| std::cmp::Reverse(time));
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
        assert_eq!(told[0], Pair { pids: (5, 7), wakeups: 4, cpus: 3, busiest: Ns(650), run: Ns(1_000) });
        assert_eq!((told[1].pids, told[1].wakeups, told.len()), ((5, 9), 1, 2));
    }

    #[test]
    fn only_so_many_tasks_are_followed() {
        let mut pairs = Pairs::default();
        (1..=100).for_each(|pid| pairs.woke(pid, 1_000));
        assert_eq!(pairs.ran.len(), MOST_TASKS);
        assert_eq!(pairs.wakeups.len(), MOST_TASKS - 1);
    }
}
