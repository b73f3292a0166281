//! User mode: what a task has done when its CPU stops, and how long the rest takes.

use crate::cpu::Run;
use crate::engine::Sim;
use crate::task::Pending;
use machine::hardware::Hardware;
use sched::scheduler::Scheduler;
use units::{CpuId, Cycles, Ps, unlikely};

/// What is left of a task's work. It may be stopped, and its CPU's speed change, in the middle of a cycle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Work {
    left: Cycles,
    /// What has been spent on the first of them, where each takes `cycle`.
    begun: Ps,
    cycle: Ps,
}

impl Work {
    pub fn new(left: Cycles) -> Work {
        Work { left, begun: Ps::ZERO, cycle: Ps::ZERO }
    }

    /// A cycle takes that long now: the one that is begun is as far as it was.
    fn at(&mut self, ps_per_cycle: u64) {
        if unlikely(self.cycle.0 != ps_per_cycle) {
            if self.begun > Ps::ZERO {
                self.begun.0 = scaled(self.begun.0, ps_per_cycle, self.cycle.0);
            }
            self.cycle.0 = ps_per_cycle;
        }
    }

    /// So much time has been spent on it.
    fn spend(&mut self, time: Ps, ps_per_cycle: u64) {
        self.at(ps_per_cycle);
        let spent = self.begun.0 + time.0;
        self.left.0 = self.left.0.saturating_sub(spent / ps_per_cycle);
        self.begun.0 = spent % ps_per_cycle;
    }

    fn is_done(&self) -> bool {
        self.left.0 == 0
    }

    /// What it takes to the end.
    fn time(&mut self, ps_per_cycle: u64) -> Ps {
        self.at(ps_per_cycle);
        Ps(self.left.0 * ps_per_cycle).saturating_sub(self.begun)
    }
}

/// `value * to / from`. In 64 bits where they suffice, as they do for cycles of up to 4 ms: a division of 128 bits takes several times as long,
/// and CPUs whose frequencies move come here with up to every sixth scheduling event (`bench pingpong-8-intel-pstate`).
fn scaled(value: u64, to: u64, from: u64) -> u64 {
    match value.checked_mul(to) {
        Some(product) => product / from,
        None => (u128::from(value) * u128::from(to) / u128::from(from)) as u64,
    }
}

impl<const COSTS: bool, S: Scheduler<Arch = Hardware<COSTS>>> Sim<COSTS, S> {
    /// The current task of `cpu` was in user mode from `since` to `now`.
    pub(crate) fn account_user(&mut self, cpu: CpuId, since: Ps, now: Ps) {
        let spent = now - since;
        self.sched.arch_mut().profile_user(cpu, spent);
        let ps_per_cycle = self.sched.arch().user_ps_per_cycle(cpu);
        let task = self.sched.current(cpu).expect("user mode belongs to a task");
        if unlikely(self.os.memory.is_used()) {
            self.os.memory.ran(task, spent);
        }
        if unlikely(self.sched.arch().demands(cpu)) {
            self.sched.arch_mut().streamed(cpu, spent);
        }
        let context = self.context(task);
        let (pending, passes) = (&mut context.pending, context.passes);
        match pending {
            Pending::Work(work) => {
                work.spend(spent, ps_per_cycle);
                if work.is_done() {
                    *pending = Pending::Nothing;
                }
            }
            Pending::RunFor(left) => {
                *left = left.saturating_sub(spent);
                if *left == Ps::ZERO {
                    *pending = Pending::Nothing;
                }
            }
            Pending::SpinUntil(end) => {
                if now >= *end {
                    *pending = Pending::Nothing;
                }
            }
            // It was done when the sibling's coming or going changed its speed.
            Pending::Nothing => {}
            Pending::Syscall(_) | Pending::Long { .. } | Pending::Executed | Pending::Dying | Pending::Unborn => {
                unreachable!("user mode is no system call")
            }
        }
        if unlikely(passes > 0) {
            self.sched.arch_mut().passed(cpu, spent, passes);
        }
    }

    /// The current task of `cpu` goes on in user mode at `now`.
    pub(crate) fn resume_user(&mut self, cpu: CpuId, now: Ps) {
        let ps_per_cycle = self.sched.arch().user_ps_per_cycle(cpu);
        let task = self.sched.current(cpu).expect("user mode belongs to a task");
        let mut length = match &mut self.context(task).pending {
            Pending::Work(work) => work.time(ps_per_cycle),
            Pending::RunFor(left) => *left,
            Pending::SpinUntil(end) => end.saturating_sub(now),
            _ => Ps::ZERO,
        };
        if unlikely(self.os.memory.is_used()) {
            length = length.min(self.os.memory.next_touch(task).unwrap_or(length));
        }
        let this = &mut self.cpus[cpu];
        this.run = Run::User { since: now };
        this.at = now + length;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn begun_cycles_scale_alike_in_64_bits_and_in_128() {
        // On both sides of where the product leaves 64 bits.
        let (edge, from) = (u64::MAX / 3_001, 1 << 53);
        for value in [0, 1, 999, edge - 1, edge, edge + 1, from - 1] {
            let wide = u128::from(value) * 3_001 / u128::from(from);
            assert_eq!(u128::from(scaled(value, 3_001, from)), wide, "{value}");
        }
        assert!(edge < from);
    }

    #[test]
    fn work_that_is_stopped_again_and_again_takes_no_longer() {
        let mut work = Work::new(Cycles(1000));
        let mut spent = Ps::ZERO;
        // 1000 cycles of 30 ns, stopped every 7 ns.
        while !work.is_done() {
            let step = work.time(30_000).min(Ps(7_000));
            work.spend(step, 30_000);
            spent += step;
        }
        assert_eq!(spent, Ps(30_000 * 1000));
    }

    #[test]
    fn a_cycle_that_is_half_done_is_half_done_at_every_speed() {
        let mut work = Work::new(Cycles(10));
        work.spend(Ps(1_500), 1_000);
        assert_eq!(work.time(1_000), Ps(8_500));
        assert_eq!(work.time(40_000), Ps(8_500 * 40));
        work.spend(Ps(20_000), 40_000);
        assert_eq!(work.time(400), Ps(8 * 400));
        work.spend(Ps(8 * 400), 400);
        assert!(work.is_done());
    }
}
