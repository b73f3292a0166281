//! User mode: how much work a task has done when its CPU stops, and how long the rest takes.

use crate::cpu::Run;
use crate::engine::Sim;
use crate::task::Pending;
use machine::hardware::Hardware;
use sched::scheduler::Scheduler;
use units::{CpuId, Cycles, Ps, unlikely};

/// What is left of a task's work. It may be stopped, and its CPU's speed may change, in the middle of a cycle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Work {
    /// How long the rest takes if a cycle takes `cycle` picoseconds.
    rest: Ps,
    cycle: u64,
}

impl Work {
    /// In work that nobody has begun, a cycle counts as one picosecond, until a CPU says how long it takes there.
    pub fn new(left: Cycles) -> Work {
        Work { rest: Ps(left.0), cycle: 1 }
    }

    /// From now on a cycle takes `ps_per_cycle`. A cycle that has begun keeps its progress, rounded up to a picosecond.
    #[inline(always)]
    fn at(&mut self, ps_per_cycle: u64) {
        if self.cycle != ps_per_cycle {
            self.rest.0 = match self.rest.0.checked_mul(ps_per_cycle) {
                Some(product) if self.cycle == 1 => product,
                Some(product) => product.div_ceil(self.cycle),
                None => scaled(self.rest.0, ps_per_cycle, self.cycle),
            };
            self.cycle = ps_per_cycle;
        }
    }

    /// `time` has been spent on the work.
    #[inline(always)]
    fn spend(&mut self, time: Ps, ps_per_cycle: u64) {
        self.at(ps_per_cycle);
        self.rest = self.rest.saturating_sub(time);
    }

    fn is_done(&self) -> bool {
        self.rest == Ps::ZERO
    }

    /// How long the rest takes.
    #[inline(always)]
    fn time(&mut self, ps_per_cycle: u64) -> Ps {
        self.at(ps_per_cycle);
        self.rest
    }
}

/// `value * to / from`, rounded up, for values that overflow 64 bits: work that takes hours.
#[cold]
#[inline(never)]
fn scaled(value: u64, to: u64, from: u64) -> u64 {
    (u128::from(value) * u128::from(to)).div_ceil(u128::from(from)) as u64
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
            // It was done when a sibling's start or end changed the speed.
            Pending::Nothing => {}
            Pending::Syscall(_) | Pending::Long { .. } | Pending::Executed | Pending::Dying => {
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
    fn work_scales_alike_in_64_bits_and_in_128() {
        // On both sides of where the product overflows 64 bits.
        let edge = u64::MAX / 3_001;
        for rest in [0, 1, 999, edge - 1, edge, edge + 1, edge + 999] {
            let mut work = Work { rest: Ps(rest), cycle: 4_007 };
            assert_eq!(work.time(3_001), Ps(scaled(rest, 3_001, 4_007)), "{rest}");
            assert_eq!(work.cycle, 3_001);
        }
    }

    #[test]
    fn work_is_what_whole_cycles_and_a_begun_one_make_of_it() {
        let (left, old, new) = (1_000, 413, 331);
        for spent in 0..3 * old {
            let mut work = Work::new(Cycles(left));
            work.spend(Ps(spent), old);
            let (whole, begun) = (left - spent / old, spent % old);
            assert_eq!(work.time(old), Ps(whole * old - begun));
            assert_eq!(work.time(new), Ps(whole * new - begun * new / old), "after {spent} ps");
        }
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
