//! That the parts of a machine lie inside each other, as they do in hardware: threads in cores, cores in clusters and dies, dies in
//! packages, caches in those of the next level.
//!
//! Who writes a machine down is told where it contradicts itself. What a real machine tells is taken as far as it goes: firmware and
//! hypervisors err, and the rest of what they tell is of use.

use super::draft::{Draft, DraftCache, DraftPart};
use super::{CacheKind, Location, TopologyError};
use units::{CpuId, CpuMask};

/// Where each CPU is: the sets of a division, and the index of each CPU's own.
pub(super) struct Division<'a> {
    pub sets: &'a [CpuMask],
    pub of: &'a [u16],
}

impl Division<'_> {
    fn of(&self, cpu: CpuId) -> &CpuMask {
        &self.sets[usize::from(self.of[cpu.index()])]
    }

    /// A CPU of `cpus`, and one of its set that is missing there.
    fn cut_by(&self, cpus: &CpuMask) -> Option<(CpuId, CpuId)> {
        let missing = |cpu: CpuId| self.of(cpu).iter().find(|&other| !cpus.contains(other));
        cpus.iter().find_map(|cpu| Some((cpu, missing(cpu)?)))
    }

    /// The first of `cpus`, and one of another set.
    fn crossed_by(&self, cpus: &CpuMask) -> Option<(CpuId, CpuId)> {
        let first = cpus.first()?;
        Some((first, cpus.iter().find(|cpu| self.of[cpu.index()] != self.of[first.index()])?))
    }
}

/// What is wrong with a part, and what it should be.
type Fault = (String, &'static str);

impl Draft {
    /// That clusters and dies have whole cores, dies and caches of data the CPUs of one package and no part of a core, and that what shares
    /// a cache shares all caches of higher levels. A die or a cache that a machine tells otherwise is left out.
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

    /// Whether a part stays: one with a fault does not, and is told of.
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

    /// A cache of data some of whose CPUs share one of a higher level, while others do not.
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
