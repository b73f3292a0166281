//! Frequencies that change: what the run loop does at [`Hardware::frequency_due`], and what idle states do to clocks.

use super::{Hardware, Notice};
use crate::frequency::{Change, File, Frequency, Policy, Wish};
use sched::access::Path;
use sched::arch::Arch;
use sched::trace::Event;
use units::{CpuId, Ns, Ps, unlikely};

impl<const COSTS: bool> Hardware<COSTS> {
    /// Lets the CPUs' frequencies change, from boot on. With the cost model off, time does not depend on frequency, so
    /// nothing happens.
    pub fn set_frequency(&mut self, frequency: Frequency) {
        if COSTS {
            self.frequency = Some(Box::new(frequency));
            for cpu in (0..self.cpus.len()).map(CpuId::new) {
                self.update_speed(cpu);
            }
            self.tell_frequency();
        }
    }

    /// `None`: all CPUs run at one frequency for the whole run.
    pub fn frequency(&self) -> Option<&Frequency> {
        self.frequency.as_deref()
    }

    /// The frequency at which `cpu` runs, in kHz, as its clock shows it.
    pub fn khz(&self, cpu: CpuId) -> u32 {
        match &self.frequency {
            Some(frequency) => frequency.khz(cpu),
            None => u32::try_from(1_000_000_000 / self.prices.ps_per_cycle).unwrap_or(u32::MAX),
        }
    }

    /// Picoseconds that a cycle takes while no other thread of the core is active.
    pub(super) fn ps_per_cycle_alone(&self, cpu: CpuId) -> u64 {
        let speed = self.topology.cpu(cpu).speed;
        match &self.frequency {
            Some(frequency) => self.prices.stretched(frequency.ps_per_cycle(cpu), speed),
            None => self.prices.ps_per_cycle_at(speed),
        }
    }

    /// The idle loop of `cpu`, entered at `since`, has stopped its tick.
    #[inline]
    pub fn kcpustat_dyntick_start(&mut self, cpu: CpuId, since: Ps) {
        if let Some(frequency) = &mut self.frequency {
            frequency.kcpustat_dyntick_start(cpu, since);
        }
    }

    /// The idle loop of `cpu` is left without a tick; `iowait`: while tasks wait for a device.
    #[inline]
    pub fn kcpustat_dyntick_stop(&mut self, cpu: CpuId, iowait: bool) {
        let now = self.now(cpu);
        if let Some(frequency) = &mut self.frequency {
            frequency.kcpustat_dyntick_stop(cpu, now, iowait);
        }
    }

    /// A tick has found `cpu` idle; `iowait`: while tasks wait for a device.
    pub fn account_idle_time(&mut self, cpu: CpuId, iowait: bool) {
        if let Some(frequency) = &mut self.frequency {
            frequency.account_idle_time(cpu, iowait);
        }
    }

    /// A tick of `cpu`, which drives the timers of drivers and governors that have one. `nice`: the tick interrupts a
    /// task with a nice level above 0, in user mode. Returns the policy, if any, whose sample is left to a kworker of
    /// `cpu`.
    pub fn frequency_tick(&mut self, cpu: CpuId, nice: bool) -> Option<u16> {
        let now = self.now(cpu);
        let policy = self.frequency.as_mut()?.tick(cpu, nice, now);
        self.tell_frequency();
        policy
    }

    /// [`sched::arch::Arch::cpufreq_update_util`]
    #[cold]
    pub(super) fn update_util(&mut self, by: CpuId, cpu: CpuId, time: Ns, iowait: bool) -> Option<u16> {
        let now = self.now(by);
        let policy = self.frequency.as_mut()?.update_util(by, cpu, time, iowait, now);
        self.tell_frequency();
        policy
    }

    /// [`sched::arch::Arch::cpufreq_driver_fast_switch`]
    #[cold]
    pub(super) fn fast_switch(&mut self, by: CpuId, cpu: CpuId, khz: u32) -> u32 {
        let now = self.now(by);
        let Some(frequency) = &mut self.frequency else { return khz };
        let khz = frequency.fast_switch(cpu, khz, now);
        self.tell_frequency();
        khz
    }

    /// [`sched::arch::Arch::cpufreq_driver_target`]
    #[cold]
    pub(super) fn driver_target(&mut self, by: CpuId, cpu: CpuId, khz: u32) -> (u32, Ns) {
        let Some(frequency) = &self.frequency else { return (khz, Ns(0)) };
        let (policy, another) = frequency.wanted(cpu, khz);
        let wait = self.__cpufreq_driver_target(by, policy, another);
        (self.frequency.as_ref().map_or(khz, |frequency| frequency.cur(policy)), wait)
    }

    /// [`sched::arch::Arch::dbs_work_handler`]
    #[cold]
    pub(super) fn sample(&mut self, by: CpuId, policy: u16, iowait: &[CpuId]) -> Ns {
        let now = self.now(by);
        let Some(frequency) = &mut self.frequency else { return Ns(0) };
        let another = frequency.dbs_work_handler(policy.into(), iowait, now);
        self.__cpufreq_driver_target(by, policy.into(), another)
    }

    /// cpufreq.c: __cpufreq_driver_target(): a thread on `by` asks for another frequency for a policy. Returns how long
    /// it waits for the driver.
    fn __cpufreq_driver_target(&mut self, by: CpuId, policy: usize, another: Option<Wish>) -> Ns {
        let Some(wish) = another else { return Ns(0) };
        self.path(by, Path::__cpufreq_driver_target);
        let now = self.now(by);
        let Some(frequency) = &mut self.frequency else { return Ns(0) };
        let done = frequency.driver_target(policy, wish, now);
        self.tell_frequency();
        Ns(done.saturating_sub(now).0.div_ceil(1_000))
    }

    /// [`sched::arch::Arch::dbs_work_done`]
    pub(super) fn sampled(&mut self, by: CpuId, policy: u16) {
        let now = self.now(by);
        if let Some(frequency) = &mut self.frequency {
            frequency.dbs_work_done(policy.into(), now);
        }
    }

    /// [`sched::arch::Arch::cpufreq_driver_adjust_perf`]
    #[cold]
    pub(super) fn adjust_perf(&mut self, by: CpuId, cpu: CpuId, (min, target, capacity): (u64, u64, u64)) {
        let now = self.now(by);
        if let Some(frequency) = &mut self.frequency {
            frequency.adjust_perf(cpu, min, target, capacity, now);
            self.tell_frequency();
        }
    }

    /// A process on `by` has written a file of cpufreq ([`Frequency::store`]).
    pub fn store_cpufreq(&mut self, by: CpuId, file: File, policy: &Policy, iowait: &[CpuId]) {
        let now = self.now(by);
        if let Some(frequency) = &mut self.frequency {
            frequency.store(file, policy.clone(), iowait, now);
            self.tell_frequency();
        }
    }

    /// [`Frequency::dbs_stop`]
    pub fn dbs_stop(&mut self, cancelled: &[u16]) {
        if let Some(frequency) = &mut self.frequency {
            frequency.dbs_stop(cancelled);
        }
    }

    /// When [`Hardware::frequency_step`] is to be called. [`Ps::NEVER`]: not until a [`Notice::Frequency`] says when.
    pub fn frequency_due(&self) -> Ps {
        self.frequency.as_ref().map_or(Ps::NEVER, |frequency| frequency.next())
    }

    /// Tells the run loop when the next step is due, if that has changed.
    pub(super) fn tell_frequency(&mut self) {
        let due = self.frequency_due();
        if due != self.frequency_told {
            self.frequency_told = due;
            self.send(due, CpuId(0), Notice::Frequency);
        }
    }

    /// Does what is due. Adds to `changes` the domains that now change their frequency. Each is to be handed to
    /// [`Hardware::change_frequency`] once its CPUs' work up to now has been accounted.
    pub fn frequency_step(&mut self, changes: &mut Vec<Change>) {
        let due = self.frequency.as_mut().and_then(|frequency| frequency.step(changes));
        if let Some((package, at)) = due {
            self.review_power(package, at);
        }
    }

    /// A domain runs at another frequency from `at` on.
    pub fn change_frequency(&mut self, change: Change, at: Ps) {
        let Some(frequency) = &mut self.frequency else { return };
        frequency.apply(change, at);
        for index in 0..self.domain_len(change.domain) {
            let cpu = self.domain_cpu(change.domain, index);
            let khz = self.khz(cpu);
            self.update_speed(cpu);
            if let Some(meter) = &mut self.meter {
                meter.clock(cpu, at, change.khz);
            }
            let at = at.max(self.now(cpu)).ns();
            if let Some(sink) = &mut self.sink {
                sink.event(at, cpu, &Event::CpuFrequency { khz });
            }
        }
    }

    /// The run loop has done what was due. Returns when it has to step next.
    pub fn frequency_done(&mut self) -> Ps {
        self.frequency_told = self.frequency_due();
        self.frequency_told
    }

    pub fn domain_len(&self, domain: usize) -> usize {
        self.frequency.as_ref().map_or(0, |frequency| frequency.domain_cpus(domain).len())
    }

    /// The CPUs of a domain, by number.
    ///
    /// # Panics
    /// If all CPUs run at one frequency, so that there are no domains.
    pub fn domain_cpu(&self, domain: usize, index: usize) -> CpuId {
        self.frequency.as_ref().expect("domains change only where there are some").domain_cpus(domain)[index]
    }

    /// `cpu` enters an idle state: its clock may stop.
    pub(super) fn halt_clock(&mut self, cpu: CpuId, now: Ps, state: usize) {
        let polls = self.polls_in(cpu, state);
        let state = self.prices.idle_state_of(cpu, state);
        if let Some(frequency) = &mut self.frequency {
            frequency.idle(cpu, now);
            // A polling CPU executes, so its clock goes on.
            if polls {
                return;
            }
            let deep = state.exit_latency_us >= frequency.model.turbo_exit_latency_us;
            frequency.halt(cpu, now, deep);
            if deep {
                self.tell_frequency();
            }
        }
    }

    /// `cpu` has left its idle state, or polled; `iowait`: while tasks waited for a device.
    pub(super) fn resume_clock(&mut self, cpu: CpuId, first: Ps, iowait: bool) {
        if let Some(frequency) = &mut self.frequency {
            frequency.stop_idle(cpu, first, iowait);
            frequency.resume(cpu, first);
            if unlikely(self.power_limiter.is_some()) {
                self.wake_limiter(cpu, first);
            }
            self.tell_frequency();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frequency::{Band, Driver, FrequencyRules, Governor, Model, Policy, Sharing};
    use crate::idle::IdleRules;
    use crate::prices::{IdleState, Prices};
    use crate::topology::{Numbering, from_synthetic};
    use sched::versions::V6_1;
    use units::CpuMask;

    #[test]
    fn a_core_leaves_its_turbo_to_others_in_a_state_that_takes_as_long_to_leave_as_the_machine_says() {
        let freed = |exit_latency_us: u32| {
            let topology = from_synthetic("pack:1 core:2 pu:1", "test", Numbering::LinuxX86).expect("valid");
            let state = IdleState { polling: false, ..IdleState::declared("C", exit_latency_us, 100) };
            let prices = Prices { idle_states: vec![state], ..Prices::free() };
            let band = Band {
                cpus: CpuMask::new(2),
                kind: 0,
                min_khz: 1_000_000,
                base_khz: 2_000_000,
                turbo_khz: vec![3_000_000, 2_500_000],
                points: Vec::new(),
            };
            let model = Model {
                sharing: Sharing::Core,
                autonomous: None,
                bands: vec![band],
                cap_khz: None,
                step_khz: 100_000,
                transition: Ps::ZERO,
                hold_off: Ps::ZERO,
                declared_latency_us: 10,
                turbo_exit_latency_us: 30,
                full_speed: None,
                fast_switch: None,
            };
            let policy = Policy::new(&model, Driver::IntelPstate, Governor::Performance, FrequencyRules::V6_1, 250);
            let mut hardware = Hardware::<true>::new(topology.clone(), prices, V6_1.layout(), IdleRules::V6_1, 1);
            hardware.set_frequency(Frequency::new(&topology, model, policy));
            hardware.take_only_idle(CpuId(0), false);
            hardware.enter_idle(CpuId(0), Ps::from_ns(1_000));
            let mut changes = Vec::new();
            if hardware.frequency_due() < Ps::NEVER {
                hardware.frequency_step(&mut changes);
            }
            changes
        };
        assert_eq!(freed(29), []);
        assert_eq!(freed(30), [Change { domain: 1, khz: 3_000_000 }]);
    }
}
