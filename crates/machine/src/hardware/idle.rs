//! Idle CPUs: the states they enter and how long they stay there.

use super::Hardware;
use crate::profile::Frame;
use units::{CpuId, Ps};

/// Time each CPU spent in each idle state, and elsewhere.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Residency {
    /// By idle state, from the shallowest.
    pub idle: Vec<Ps>,
    pub entries: Vec<u64>,
}

impl<const COSTS: bool> Hardware<COSTS> {
    pub fn residency(&self, cpu: CpuId) -> &Residency {
        &self.cpus[cpu.index()].residency
    }

    /// `cpu` goes idle at `now`, with its next timer at `next_timer`. Returns the state it enters.
    pub fn enter_idle(&mut self, cpu: CpuId, now: Ps, next_timer: Ps) -> usize {
        let sleep_us = next_timer.saturating_sub(now).0 / 1_000_000;
        // The kernel's clock event devices reach a few hundred seconds; beyond, all is one.
        let state = self.cpus[cpu.index()].menu.select(&self.prices.idle_states, sleep_us.min(1_000_000_000));
        let this = &mut self.cpus[cpu.index()];
        this.idle_state = Some(state);
        this.idle_since = now;
        this.residency.entries[state] += 1;
        self.halt_clock(cpu, now, state);
        state
    }

    /// Something wakes `cpu` at `now`: when it executes its first instruction.
    pub fn leave_idle(&mut self, cpu: CpuId, now: Ps) -> Ps {
        let this = &mut self.cpus[cpu.index()];
        let state = this.idle_state.take().expect("only an idle CPU leaves idle");
        let wake = self.prices.idle_states[state].wake;
        let first = now + if COSTS { wake } else { Ps::ZERO };
        let idle = first.saturating_sub(this.idle_since);
        this.residency.idle[state] += idle;
        this.menu.reflect(&self.prices.idle_states, idle.0 / 1_000_000);
        self.resume_clock(cpu, first);
        if let Some(profile) = &mut self.profile {
            let since = first - idle;
            let booked = first.saturating_sub(since.max(profile.since()));
            profile.add_frame(cpu.index(), Frame::Idle(state as u8), booked);
        }
        first
    }

    /// `cpu` executed something for `time` that is told from outside, while it stays in its idle state: no idle time.
    pub fn executed_beside_idle(&mut self, cpu: CpuId, time: Ps) {
        self.cpus[cpu.index()].idle_since += time;
    }

    /// The state `cpu` is in, and since when; `None` if it is not idle.
    pub fn idle_state(&self, cpu: CpuId) -> Option<(usize, Ps)> {
        let this = &self.cpus[cpu.index()];
        this.idle_state.map(|state| (state, this.idle_since))
    }
}
