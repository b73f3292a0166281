//! The ceiling that a package's power limit puts on its clocks: one frequency for all of them. A clock that cannot go
//! so low goes to its lowest.
//!
//! [`crate::power_limit`] finds the ceiling. Here it is applied to the clocks, as turbo limits are.

use super::{Frequency, What};
use units::{CpuId, Ps};

impl Frequency {
    /// A package is to look at `at` at what it drew: [`Frequency::step`] will say when.
    pub fn plan_power(&mut self, package: usize, at: Ps) {
        self.plan(at, What::Power(package));
    }

    /// The package of a CPU.
    pub fn package_of(&self, cpu: CpuId) -> usize {
        self.cpus[cpu.index()].package
    }

    /// The domain of a CPU's clock.
    pub fn domain_of(&self, cpu: CpuId) -> usize {
        self.cpus[cpu.index()].domain
    }

    pub fn nr_domains(&self) -> usize {
        self.domains.len()
    }

    /// The frequency that a domain would have without a power limit: its votes, within the turbo limits.
    pub fn unheld_khz(&self, domain: usize) -> u32 {
        let this = &self.domains[domain];
        let turbo = self.hardware_turbo;
        let by_cores = |package: usize| self.packages[package].by_cores(&self.model, this.band, turbo);
        let limit = this.other_packages.iter().fold(by_cores(this.package), |least, &other| least.min(by_cores(other)));
        self.voted(domain).min(limit).max(self.model.bands[this.band].min_khz)
    }

    /// The frequency that it would have under a ceiling.
    pub fn held_khz(&self, domain: usize, ceiling_khz: u32) -> u32 {
        let band = self.domains[domain].band;
        self.unheld_khz(domain).min(self.ceiling_of_band(band, ceiling_khz))
    }

    /// What a ceiling means for a band: the highest frequency up to it to which the band's clocks can be set, or else
    /// their lowest.
    fn ceiling_of_band(&self, band: usize, ceiling_khz: u32) -> u32 {
        let of = &self.model.bands[band];
        if ceiling_khz == u32::MAX {
            return ceiling_khz;
        }
        let points = self.policy.driver.freq_table(of);
        let highest = points.iter().rev().map(|point| point.khz).find(|&khz| khz <= ceiling_khz);
        highest.unwrap_or(if points.is_empty() { ceiling_khz } else { of.min_khz }).max(of.min_khz)
    }

    /// Every ceiling that makes a difference to a package, ascending, without the unlimited one: the frequencies of the
    /// driver's table, or multiples of the step where the driver has none.
    pub fn ceilings(&self, package: usize) -> Vec<u32> {
        let mut all = Vec::new();
        for &domain in &self.packages[package].domains {
            let band = &self.model.bands[self.domains[domain].band];
            let step = self.model.step_khz.max(1);
            match self.policy.driver.freq_table(band) {
                [] => all
                    .extend((band.min_khz.div_ceil(step)..).map(|n| n * step).take_while(|&khz| khz < band.max_khz())),
                points => all.extend(points.iter().map(|point| point.khz)),
            }
            all.push(band.min_khz);
        }
        all.sort_unstable();
        all.dedup();
        all
    }

    /// From `now` on a package's power allows no more than this ([`u32::MAX`]: everything). Its clocks follow as they
    /// follow turbo limits.
    pub fn set_ceiling(&mut self, package: usize, ceiling_khz: u32, now: Ps) {
        let bands: Vec<u32> = (0..self.model.bands.len()).map(|band| self.ceiling_of_band(band, ceiling_khz)).collect();
        self.packages[package].ceiling_khz = bands;
        self.active_changed(package, now);
    }
}
