//! What the profile is told: which functions who executes stands in, and what is booked there.

use super::Hardware;
use crate::profile::Frame;
use sched::access::Path;
use sched::arch::Arch;
use std::hint::cold_path;
use units::{CpuId, Ps, unlikely};

impl<const COSTS: bool> Hardware<COSTS> {
    /// Books a charge on the profile's stack.
    #[cold]
    #[inline(never)]
    pub(super) fn book(&mut self, time: Ps) {
        if let Some(profile) = &mut self.profile {
            profile.add(self.executing.cpu.index(), time);
        }
    }

    #[cold]
    #[inline(never)]
    pub(super) fn enter_profile(&mut self, path: Path) {
        if let Some(profile) = &mut self.profile {
            profile.enter(self.executing.cpu.index(), path);
        }
    }

    #[cold]
    #[inline(never)]
    pub(super) fn leave_profile(&mut self) {
        if let Some(profile) = &mut self.profile {
            profile.leave(self.executing.cpu.index());
        }
    }

    /// One of `pieces` of a long function's straight-line work, with nothing below it.
    pub fn work_piece(&mut self, cpu: CpuId, path: Path, pieces: u32) {
        if COSTS {
            if unlikely(self.profile.is_some()) {
                self.enter_profile(path);
            }
            let cycles = self.paths[path.0 as usize].0 / u64::from(pieces);
            self.charge(Ps(cycles * self.executing.ps_per_cycle));
            self.leave(cpu);
        }
    }

    /// What runs on `cpu` from now on, by the number of its name.
    pub fn profile_run(&mut self, cpu: CpuId, comm: u32) {
        if let Some(profile) = &mut self.profile {
            profile.run(cpu.index(), comm);
        }
    }

    #[inline]
    pub fn profiling(&self) -> bool {
        COSTS && unlikely(self.profile.is_some())
    }

    /// `cpu` stands in these functions of what runs there, which it has entered, and paid, before.
    #[inline]
    pub fn profile_stand(&mut self, cpu: CpuId, frames: &[Path]) {
        if COSTS && let Some(profile) = &mut self.profile {
            cold_path();
            profile.stand(cpu.index(), frames);
        }
    }

    /// What follows is done in `path`, which was paid before, until it is left.
    #[inline]
    pub fn profile_enter(&mut self, cpu: CpuId, path: Path) {
        if COSTS && let Some(profile) = &mut self.profile {
            cold_path();
            profile.enter(cpu.index(), path);
        }
    }

    /// Books user-mode time.
    pub fn profile_user(&mut self, cpu: CpuId, time: Ps) {
        if let Some(profile) = &mut self.profile {
            profile.add_frame(cpu.index(), Frame::User, time);
        }
    }
}
