//! What the profile is told: in which functions each CPU stands, and what time is booked there.

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

    /// Does one of `pieces` equal parts of a long function's straight-line work. The function calls nothing in it.
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

    /// The task that runs on `cpu` from now on, by the number of its name.
    pub fn profile_run(&mut self, cpu: CpuId, comm: u32) {
        if let Some(profile) = &mut self.profile {
            profile.run(cpu.index(), comm);
        }
    }

    #[inline]
    pub fn profiling(&self) -> bool {
        COSTS && unlikely(self.profile.is_some())
    }

    /// `cpu` goes on in the middle of these functions, which the task entered, and paid for, before.
    #[inline]
    pub fn profile_stand(&mut self, cpu: CpuId, frames: &[Path]) {
        if COSTS && let Some(profile) = &mut self.profile {
            cold_path();
            profile.stand(cpu.index(), frames);
        }
    }

    /// What follows is done in `path`, until it is left. Its work was paid for before.
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
