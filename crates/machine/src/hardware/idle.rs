//! Idle CPUs: the states they enter and how long they stay there.

use super::Hardware;
use crate::idle::{
    Choice, Cpuidle, Device, IdleOptions, IdleRules, Outlook, PackageResidency, Packages, StateTable, Way, Woken,
};
use crate::profile::Frame;
use units::{CpuId, Ps};

/// What a CPU did in its idle states, each from the shallowest: what `/sys/devices/system/cpu/cpuN/cpuidle` counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Residency {
    pub idle: Vec<Ps>,
    pub entries: Vec<u64>,
    /// Idles that were too short for their state while a shallower one was there.
    pub above: Vec<u64>,
    /// Idles that were long enough for the next deeper state.
    pub below: Vec<u64>,
}

/// One CPU's idling.
pub(super) struct Idling {
    device: Device,
    /// What the governor chose last.
    chosen: usize,
    state: Option<usize>,
    /// Since when, less what was executed meanwhile.
    since: Ps,
    /// When it entered the state, as the governor measures it.
    entered: Ps,
    /// The state left last and how long it was in it, for the governor to reflect on.
    left: (usize, u64),
    pub residency: Residency,
}

impl Idling {
    pub fn new(cpuidle: &Cpuidle) -> Idling {
        let states = cpuidle.table.states.len();
        Idling {
            device: cpuidle.device(),
            chosen: 0,
            state: None,
            since: Ps::ZERO,
            entered: Ps::ZERO,
            left: (0, 0),
            residency: Residency {
                idle: vec![Ps::ZERO; states],
                entries: vec![0; states],
                above: vec![0; states],
                below: vec![0; states],
            },
        }
    }

    /// cpuidle.c: the part of cpuidle_enter_state() that judges the choice by what came of it.
    fn judge(&mut self, table: &StateTable, state: usize, residency_ns: u64) {
        let enabled = |(index, state): (usize, &crate::idle::State)| (!state.disabled).then_some(index);
        let of = &table.states[state];
        if residency_ns < of.target_residency_ns {
            if table.states[..state].iter().enumerate().find_map(enabled).is_some() {
                self.residency.above[state] += 1;
            }
        } else if let Some(rest) = residency_ns.checked_sub(of.exit_latency_ns)
            && let Some(next) = table.states[state + 1..].iter().find(|next| !next.disabled)
            && rest >= next.target_residency_ns
        {
            self.residency.below[state] += 1;
        }
    }
}

impl<const COSTS: bool> Hardware<COSTS> {
    /// What the command line says about idling; before the first CPU idles.
    pub fn set_idle_options(&mut self, options: &IdleOptions) {
        let states = &mut self.prices.idle_states;
        match options.way {
            Way::Governed => {}
            Way::Poll => states.truncate(1),
            Way::Off | Way::Halt => {
                let shallowest = states.iter().position(|state| !state.polling).unwrap_or(0);
                states.swap(0, shallowest);
                states.truncate(1);
                self.prices.mwait &= options.way == Way::Off;
            }
        }
        let tick_ns = self.cpuidle.table.tick_ns;
        self.cpuidle.table = StateTable { tick_ns, ..StateTable::new(&self.prices.idle_states, options) };
        self.prices.idle_states.truncate(self.cpuidle.table.states.len());
        self.packages = Packages::new(&self.topology, &self.prices);
        for cpu in self.topology.cpus().map(|(cpu, _)| cpu) {
            self.cpus[cpu.index()].idling = Idling::new(&self.cpuidle);
        }
    }

    /// The length of a tick.
    pub fn set_tick(&mut self, tick: Ps) {
        self.cpuidle.table.tick_ns = tick.ns().0;
    }

    pub fn idle_rules(&self) -> &IdleRules {
        &self.cpuidle.rules
    }

    /// Whether a governor is asked, and there is something to choose.
    #[inline]
    pub fn idle_is_governed(&self) -> bool {
        self.cpuidle.is_governed()
    }

    pub fn residency(&self, cpu: CpuId) -> &Residency {
        &self.cpus[cpu.index()].idling.residency
    }

    /// What each package has counted up to `end`; nothing where packages have no states of their own.
    pub fn package_residency(&self, end: Ps) -> Vec<PackageResidency> {
        self.packages.residency(end)
    }

    /// The idle loop of `cpu` asks for a state.
    #[inline]
    pub fn choose_idle(&mut self, cpu: CpuId, outlook: &Outlook) -> Choice {
        let idling = &mut self.cpus[cpu.index()].idling;
        let choice = self.cpuidle.select(&mut idling.device, outlook);
        idling.chosen = choice.state;
        choice
    }

    /// The same where there is nothing to choose.
    #[inline]
    pub fn take_only_idle(&mut self, cpu: CpuId) -> Choice {
        self.cpus[cpu.index()].idling.chosen = 0;
        self.cpuidle.only_choice()
    }

    /// A CPU that goes offline takes the deepest state that it may.
    pub fn choose_deepest_idle(&mut self, cpu: CpuId) {
        let deepest = self.cpuidle.table.states.iter().rposition(|state| !state.disabled);
        self.cpus[cpu.index()].idling.chosen = deepest.unwrap_or(0);
    }

    /// `cpu` must reschedule before it has entered what was chosen.
    pub fn reject_idle(&mut self, cpu: CpuId) {
        self.cpuidle.reject(&mut self.cpus[cpu.index()].idling.device);
    }

    /// `cpu` enters the state that was chosen, at `now`. Returns it, and until when it polls there at the longest.
    pub fn enter_idle(&mut self, cpu: CpuId, now: Ps) -> (usize, Ps) {
        let idling = &mut self.cpus[cpu.index()].idling;
        let state = idling.chosen;
        idling.state = Some(state);
        (idling.since, idling.entered) = (now, now);
        idling.residency.entries[state] += 1;
        if self.packages.follow(state) {
            self.packages.enter(cpu, now);
        }
        let limit = match self.prices.idle_states[state].polling {
            true => self.cpuidle.cpuidle_poll_time(&idling.device),
            false => None,
        };
        self.halt_clock(cpu, now, state);
        self.meter_idle(cpu, now, state);
        (state, limit.map_or(Ps::NEVER, |ns| now + Ps::from_ns(ns)))
    }

    /// Something wakes `cpu` at `now`: when it executes its first instruction.
    pub fn leave_idle(&mut self, cpu: CpuId, now: Ps) -> Ps {
        let idling = &mut self.cpus[cpu.index()].idling;
        let state = idling.state.take().expect("only an idle CPU leaves idle");
        let mut wake = self.prices.idle_states[state].wake;
        if self.packages.follow(state) && self.packages.leave(cpu, now) {
            wake += self.prices.idle_states[state].package_wake;
        }
        let first = now + if COSTS { wake } else { Ps::ZERO };
        let idle = first.saturating_sub(idling.since);
        idling.residency.idle[state] += idle;
        let residency_ns = first.saturating_sub(idling.entered).ns().0;
        idling.left = (state, residency_ns);
        idling.judge(&self.cpuidle.table, state, residency_ns);
        self.resume_clock(cpu, first);
        self.meter_resume(cpu, first);
        if let Some(profile) = &mut self.profile {
            let since = first - idle;
            let booked = first.saturating_sub(since.max(profile.since()));
            profile.add_frame(cpu.index(), Frame::Idle(state as u8), booked);
        }
        first
    }

    /// An interrupt that was pending ended the state of `cpu` as it was entered.
    pub fn bounce_off_idle(&mut self, cpu: CpuId) {
        let idling = &mut self.cpus[cpu.index()].idling;
        idling.left = (idling.chosen, 0);
        idling.residency.entries[idling.chosen] += 1;
    }

    /// After the interrupt that ended it: the governor of `cpu` reflects on the idle.
    #[inline]
    pub fn reflect_on_idle(&mut self, cpu: CpuId, woken: Woken) {
        let idling = &mut self.cpus[cpu.index()].idling;
        let (state, residency_ns) = idling.left;
        self.cpuidle.reflect(&mut idling.device, state, residency_ns, woken);
    }

    /// `cpu` executed something for `time` that is told from outside, while it stays in its idle state: no idle time.
    pub fn executed_beside_idle(&mut self, cpu: CpuId, time: Ps) {
        let idling = &mut self.cpus[cpu.index()].idling;
        idling.since += time;
        idling.entered += time;
        let to = self.now(cpu);
        if let Some(meter) = &mut self.meter {
            meter.executed_beside(cpu, to.saturating_sub(time), to);
        }
    }

    /// `cpu` took an interrupt for `time` while it polls: not idle, but the governor does not see that.
    pub fn interrupted_polling(&mut self, cpu: CpuId, time: Ps) {
        self.cpus[cpu.index()].idling.since += time;
    }

    /// The state `cpu` is in, and since when; `None` if it is not idle.
    pub fn idle_state(&self, cpu: CpuId) -> Option<(usize, Ps)> {
        let idling = &self.cpus[cpu.index()].idling;
        idling.state.map(|state| (state, idling.since))
    }
}
