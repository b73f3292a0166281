//! Checks that the parts of a machine are nested as in hardware: threads in cores, cores in clusters and dies, dies in
//! packages, caches in those of the next level.
//!
//! In a machine that was written by hand a contradiction is an error. A real machine's data is accepted as far as it is
//! consistent: firmware and hypervisors err, and the rest of what they report is useful.

use super::draft::{Draft, DraftCache, DraftPart};
use super::{CacheKind, Location, TopologyError};
use units::{CpuId, CpuMask};

/// A division of the CPUs: its sets, and for each CPU the index of its set.
pub(super) struct Division<'a> {
    pub sets: &'a [CpuMask],
    pub of: &'a [u16],
}

impl Division<'_> {
    fn of(&self, cpu: CpuId) -> &CpuMask {
        &self.sets[usize::from(self.of[cpu.index()])]
    }

    /// A CPU of `cpus`, and a CPU of its set that `cpus` lacks.
    fn cut_by(&self, cpus: &CpuMask) -> Option<(CpuId, CpuId)> {
        let missing = |cpu: CpuId| self.of(cpu).iter().find(|&other| !cpus.contains(other));
        cpus.iter().find_map(|cpu| Some((cpu, missing(cpu)?)))
    }

    /// The first of `cpus`, and one that is in another set.
    fn crossed_by(&self, cpus: &CpuMask) -> Option<(CpuId, CpuId)> {
        let first = cpus.first()?;
        Some((first, cpus.iter().find(|cpu| self.of[cpu.index()] != self.of[first.index()])?))
    }
}

/// What is wrong with a part, and what was expected.
type Fault = (String, &'static str);

impl Draft {
    /// Requires that clusters and dies consist of whole cores, that dies and data caches have CPUs of one package only
    /// and cut no core, and that CPUs that share a cache also share the caches of higher levels. A die or a cache of a
    /// real machine that violates this is left out.
    pub(super) fn require_nested(&mut self, cores: &Division, packages: &Division) -> Result<(), TopologyError> {
        if self.by_hand {
            for cluster in &self.clusters {
                let fault = self.cut_core(&cluster.cpus, cores).map(|found| (found, "whole cores"));
                self.check("cluster", &cluster.at, fault)?;
            }
        }
        let mut notices = Vec::new();
        let mut dies: Vec<DraftPart> = Vec::new();
        for die in &self.dies {
            let fault = self.misplaced(&die.cpus, cores, packages);
            if self.keeps("die", &die.at, fault, &mut notices)? {
                dies.push(die.clone());
            }
        }
        let mut caches: Vec<DraftCache> = Vec::new();
        for cache in &self.caches {
            let of_data = cache.kind != CacheKind::Instruction;
            let fault = self.misplaced(&cache.cpus, cores, packages).filter(|_| of_data);
            if self.keeps(&format!("level-{} cache", cache.level), &cache.at, fault, &mut notices)? {
                caches.push(cache.clone());
            }
        }
        let mut nested: Vec<DraftCache> = Vec::new();
        for cache in &caches {
            let fault = self.straddled(cache, &caches);
            if self.keeps(&format!("level-{} cache", cache.level), &cache.at, fault, &mut notices)? {
                nested.push(cache.clone());
            }
        }
        (self.dies, self.caches) = (dies, nested);
        self.notices.extend(notices);
        Ok(())
    }

    /// Whether a part is kept. A faulty one is an error if the machine was written by hand, and otherwise left out with
    /// a notice.
    fn keeps(
        &self,
        what: &str,
        at: &Location,
        fault: Option<Fault>,
        notices: &mut Vec<String>,
    ) -> Result<bool, TopologyError> {
        let Some((found, _)) = fault.as_ref().filter(|_| !self.by_hand) else {
            return self.check(what, at, fault).map(|()| true);
        };
        notices.push(format!("a {what} of {found}, is left out"));
        Ok(false)
    }

    fn check(&self, what: &str, at: &Location, fault: Option<Fault>) -> Result<(), TopologyError> {
        let Some((found, expected)) = fault else { return Ok(()) };
        let sort = what.rsplit(' ').next().unwrap_or(what);
        Err(TopologyError::new(at.clone(), format!("a {what} of {found}"), format!("a {sort} of {expected}")))
    }

    fn misplaced(&self, cpus: &CpuMask, cores: &Division, packages: &Division) -> Option<Fault> {
        if let Some((first, other)) = packages.crossed_by(cpus) {
            let found = format!("CPUs {} and {}, of two packages", self.number(first), self.number(other));
            return Some((found, "CPUs of one package"));
        }
        Some((self.cut_core(cpus, cores)?, "whole cores"))
    }

    fn cut_core(&self, cpus: &CpuMask, cores: &Division) -> Option<String> {
        let (cpu, other) = cores.cut_by(cpus)?;
        Some(format!("CPU {} without CPU {}, a thread of its core", self.number(cpu), self.number(other)))
    }

    /// The fault of a data cache some of whose CPUs share a cache of a higher level while others do not.
    fn straddled(&self, cache: &DraftCache, caches: &[DraftCache]) -> Option<Fault> {
        let of_data = |cache: &&DraftCache| cache.kind != CacheKind::Instruction;
        let higher = caches.iter().filter(of_data).filter(|other| other.level > cache.level);
        let outer = higher
            .filter(|_| of_data(&cache))
            .find(|outer| outer.cpus.intersects(&cache.cpus) && !cache.cpus.is_subset(&outer.cpus))?;
        let inside = cache.cpus.iter().find(|&cpu| outer.cpus.contains(cpu))?;
        let outside = cache.cpus.iter().find(|&cpu| !outer.cpus.contains(cpu))?;
        let (inside, outside) = (self.number(inside), self.number(outside));
        let found = format!(
            "CPUs {inside} and {outside}, of which the level-{} cache at {} has only the first",
            outer.level, outer.at
        );
        Some((found, "CPUs that share the caches of the levels beyond"))
    }
}
