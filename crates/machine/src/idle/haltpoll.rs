//! The haltpoll governor of virtual machines (drivers/cpuidle/governors/haltpoll.c). It polls before it halts, because
//! a halt goes through the hypervisor.

use super::table::StateTable;
use super::{Choice, HaltpollShrink, IdleRules, Usage};

/// The default of the module parameter guest_halt_poll_ns: the longest time to poll; 0: never poll.
pub const HALT_POLL_NS: u32 = 200_000;
/// The defaults of its other parameters: guest_halt_poll_grow, _grow_start and _shrink.
const GROW: u64 = 2;
const GROW_START_NS: u64 = 50_000;
const SHRINK: u64 = 2;

/// It keeps nothing but the limit, which is in the device.
#[derive(Clone, Debug)]
pub(super) struct Haltpoll;

impl Haltpoll {
    /// haltpoll.c: haltpoll_select().
    pub fn haltpoll_select(&self, table: &StateTable, usage: &Usage) -> Choice {
        let poll = Choice { state: 0, stop_tick: false, looked_at_timers: false };
        let halt = Choice { looked_at_timers: false, ..Choice::of(1) };
        if table.latency_req_ns == 0 {
            return poll;
        }
        match usage.last_state {
            _ if usage.poll_limit_ns == 0 => halt,
            Some(0) if usage.poll_time_limit => halt,
            _ => poll,
        }
    }

    /// haltpoll.c: adjust_poll_limit(): the limit grows while halts are short enough that polling would have covered
    /// them, and shrinks after long ones.
    fn adjust_poll_limit(&self, rules: &IdleRules, table: &StateTable, usage: &mut Usage) {
        let (limit, block_ns) = (usage.poll_limit_ns, usage.last_residency_ns);
        if block_ns > limit && block_ns <= table.halt_poll_ns {
            usage.poll_limit_ns = (limit * GROW).max(GROW_START_NS).min(table.halt_poll_ns);
        } else if block_ns > table.halt_poll_ns {
            let shrunk = limit / SHRINK;
            let resets = rules.haltpoll_shrink == HaltpollShrink::Resets && shrunk < GROW_START_NS;
            usage.poll_limit_ns = if resets { 0 } else { shrunk };
        }
    }

    /// haltpoll.c: haltpoll_reflect().
    pub fn haltpoll_reflect(&self, rules: &IdleRules, table: &StateTable, usage: &mut Usage, state: usize) {
        usage.last_state = Some(state as u8);
        if state != 0 {
            self.adjust_poll_limit(rules, table, usage);
        }
    }
}
