//! The table of idle states from which governors choose, as the command line leaves it.

use super::FAR_NS;
use super::haltpoll::HALT_POLL_NS;
use crate::prices::IdleState;

/// What the command line says about idling.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IdleOptions {
    pub way: Way,
    /// `intel_idle.max_cstate=`: at most this many states beside polling.
    pub max_cstate: Option<u32>,
    /// `intel_idle.states_off=`: bit N disables state N.
    pub states_off: u32,
    /// What a process has written to /dev/cpu_dma_latency, in microseconds: states with a longer exit latency are not
    /// entered.
    pub latency_us: Option<u32>,
    /// `haltpoll.guest_halt_poll_ns=`: the longest time for which the governor haltpoll polls.
    pub halt_poll_ns: Option<u32>,
}

impl Default for IdleOptions {
    fn default() -> IdleOptions {
        IdleOptions { way: Way::Governed, max_cstate: None, states_off: 0, latency_us: None, halt_poll_ns: None }
    }
}

/// What decides how an idle CPU waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// The driver has a table and a governor chooses.
    Governed,
    /// `cpuidle.off=1`: the architecture's idle call, which is C1.
    Off,
    /// `idle=halt`: the same with the HLT instruction, which a store does not wake.
    Halt,
    /// `idle=poll`: the CPU enters no state at all.
    Poll,
}

/// cpuidle.h: struct cpuidle_state. Times as the driver declares them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct State {
    pub exit_latency_us: u64,
    pub target_residency_us: u64,
    pub exit_latency_ns: u64,
    pub target_residency_ns: u64,
    pub disabled: bool,
    /// CPUIDLE_FLAG_POLLING.
    pub polling: bool,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StateTable {
    pub states: Vec<State>,
    pub way: Way,
    /// The longest exit latency that is allowed.
    pub latency_req_ns: u64,
    /// TICK_NSEC.
    pub tick_ns: u64,
    /// haltpoll.c: guest_halt_poll_ns.
    pub halt_poll_ns: u64,
}

impl StateTable {
    /// `states`: those of the machine; a state without a target residency polls.
    pub fn new(states: &[IdleState], options: &IdleOptions) -> StateTable {
        let state = |(index, state): (usize, &IdleState)| State {
            exit_latency_us: state.exit_latency_us.into(),
            target_residency_us: state.target_residency_us.into(),
            exit_latency_ns: u64::from(state.exit_latency_us) * 1000,
            target_residency_ns: u64::from(state.target_residency_us) * 1000,
            disabled: options.states_off >> index & 1 != 0,
            polling: state.polling,
        };
        let polling = usize::from(states.first().is_some_and(|state| state.polling));
        let most = options.max_cstate.map_or(states.len(), |most| polling + most as usize);
        StateTable {
            states: states.iter().take(most).enumerate().map(state).collect(),
            way: options.way,
            latency_req_ns: StateTable::latency_req_ns(options.latency_us),
            tick_ns: 4_000_000,
            halt_poll_ns: options.halt_poll_ns.unwrap_or(HALT_POLL_NS).into(),
        }
    }

    /// The longest exit latency that is allowed where somebody holds /dev/cpu_dma_latency open with `latency_us`.
    pub fn latency_req_ns(latency_us: Option<u32>) -> u64 {
        latency_us.map_or(FAR_NS * 2, |us| u64::from(us) * 1000)
    }

    /// cpuidle.c: the part of cpuidle_poll_time() that looks at the table.
    pub fn poll_time_ns(&self) -> u64 {
        const POLL_MIN_NS: u64 = 10_000;
        let most = self.tick_ns / 16;
        let long = |state: &&State| !state.disabled && state.target_residency_ns >= POLL_MIN_NS;
        self.states.iter().skip(1).find(long).map_or(most, |state| state.target_residency_ns.min(most))
    }

    /// The same until v5.10.
    pub fn first_residency_ns(&self) -> u64 {
        let first = self.states.iter().skip(1).find(|state| !state.disabled);
        first.map_or(self.tick_ns, |state| state.target_residency_ns)
    }

    /// The next enabled state below `from`, and further below as long as `fits` is false; `from` if none is enabled.
    pub fn shallower(&self, from: usize, mut fits: impl FnMut(&State) -> bool) -> usize {
        let mut found = from;
        for (index, state) in self.states[..from].iter().enumerate().rev().filter(|(_, state)| !state.disabled) {
            found = index;
            if fits(state) {
                break;
            }
        }
        found
    }
}
