//! What changes in a case of the theme `changing`: its timeline, and steps between the work of its tasks.

use super::{END_MS, Kind, Script, Theme, WORK_US};
use sched::core::cgroup::Hierarchy;
use std::fmt::Write;

impl Script {
    /// A CPU that goes and comes back, perhaps, and writes into the files of groups.
    pub(super) fn moments(&mut self) {
        let nr_cpus = self.topology.1;
        if self.chance(65) {
            let cpu = self.random.between(1, nr_cpus - 1);
            let gone = self.random.between(400, 1500);
            let back = gone + self.random.between(300, 1000);
            self.leaving = Some(cpu);
            self.moment(gone, &format!("offline = {cpu}"));
            self.moment(back, &format!("online = {cpu}"));
        }
        if self.leaves.is_empty() {
            return;
        }
        for _ in 0..self.one_of(&[0, 1, 2, 2, 3]) {
            let path = self.leaf();
            let at = self.random.between(300, 2600);
            // Version 1 refuses a quota that is more than what a group above has.
            let writes = if path.matches('/').count() == 1 && self.chance(40) { self.quota() } else { self.weight() };
            self.moment(at, &format!("cgroup = {{ \"{path}\" = {{ {writes} }} }}"));
        }
    }

    fn moment(&mut self, at_ms: u64, what: &str) {
        let _ = write!(self.timeline, "\n[[timeline]]\nat = \"{at_ms}ms\"\n{what}\n");
    }

    fn leaf(&mut self) -> String {
        self.leaves[self.random.below(self.leaves.len() as u64) as usize].clone()
    }

    fn weight(&mut self) -> String {
        let weight = self.one_of(&[20, 50, 100, 200, 400, 1000]);
        match self.files {
            Hierarchy::Unified => format!("\"cpu.weight\" = \"{weight}\""),
            Hierarchy::Legacy => format!("\"cpu.shares\" = \"{}\"", weight * 1024 / 100),
        }
    }

    /// A quota, or none from then on.
    fn quota(&mut self) -> String {
        let quota = self.chance(70).then(|| self.one_of(&[20_000, 40_000, 60_000, 120_000]));
        match (self.files, quota) {
            (Hierarchy::Unified, Some(quota)) => format!("\"cpu.max\" = \"{quota} 100000\""),
            (Hierarchy::Unified, None) => "\"cpu.max\" = \"max\"".to_string(),
            (Hierarchy::Legacy, Some(quota)) => format!("\"cpu.cfs_quota_us\" = \"{quota}\""),
            (Hierarchy::Legacy, None) => "\"cpu.cfs_quota_us\" = \"-1\"".to_string(),
        }
    }

    /// The changes of a family's tasks, each after so many thousandths of their work.
    pub(super) fn turns(&mut self, kind: Kind) -> Vec<(u64, String)> {
        if self.theme == Theme::Steady || kind == Kind::Deadline || !self.chance(85) {
            return Vec::new();
        }
        let mut after: Vec<u64> = (0..self.one_of(&[1, 1, 2, 3])).map(|_| self.random.between(150, 850)).collect();
        after.sort_unstable();
        after.into_iter().map(|after| (after, self.turn(kind))).collect()
    }

    fn turn(&mut self, kind: Kind) -> String {
        if !self.leaves.is_empty() && self.chance(35) {
            let path = if self.chance(20) { "/".to_string() } else { self.leaf() };
            return format!("enter {path}");
        }
        if self.chance(60) {
            return format!("cpus {}", self.cpus_that_stay());
        }
        // A hog of a real-time policy would take all of its CPU from the guest's own process.
        let of = if kind == Kind::Hog { 3 } else { 5 };
        match self.random.below(of) {
            0 => "policy normal".to_string(),
            1 => "policy batch".to_string(),
            2 => "policy idle".to_string(),
            3 => format!("policy fifo/{}", self.random.between(1, 50)),
            _ => format!("policy rr/{}", self.random.between(1, 50)),
        }
    }

    /// Some of the CPUs. Those that may be offline by then do not stand alone, as that would be refused.
    fn cpus_that_stay(&mut self) -> String {
        match (self.cpus(), self.leaving) {
            (cpus, Some(cpu)) if cpus == format!("{cpu}-{cpu}") => format!("0-{cpu}"),
            (cpus, _) => cpus,
        }
    }

    /// The steps of so many rounds, with the family's changes between them.
    pub(super) fn rounds(&mut self, kind: Kind, times: u64, round: &str) -> String {
        let (mut steps, mut done) = (String::new(), 0);
        for (after, change) in self.turns(kind) {
            let upto = times * after / 1000;
            if upto > done {
                let _ = write!(steps, "{} x ({round}); ", upto - done);
            }
            let _ = write!(steps, "{change}; ");
            done = upto;
        }
        let _ = write!(steps, "{} x ({round})", times - done);
        steps
    }

    /// The steps of a hog until the end.
    pub(super) fn spins(&mut self, begin_ms: u64) -> String {
        let mut steps = String::new();
        for (after, change) in self.turns(Kind::Hog) {
            let _ = write!(steps, "spin {}ms; {change}; ", begin_ms + (END_MS - begin_ms) * after / 1000);
        }
        let _ = write!(steps, "spin {END_MS}ms");
        steps
    }

    /// A task with a budget in each of its periods. Some work for longer than that, and are throttled.
    pub(super) fn deadline(&mut self, name: &str, begin: u64) {
        let period = self.random.between(5, 50) * 1000;
        let budget = period * self.random.between(8, 30) / 100;
        let within = self.chance(65);
        let work = if within { budget * self.random.between(20, 80) / 100 } else { budget * 3 / 2 };
        let every = if within { period } else { period * 2 };
        let rounds = format!("{} x (run {work}us; every {every}us)", WORK_US / every);
        self.task(&format!("{name} policy=deadline/{budget}us/{period}us: until {begin}ms; {rounds}"));
        self.busy(1, work, every);
    }
}
