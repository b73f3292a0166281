//! kernel/profile.c: `profile=` on the command line: a histogram over the kernel's functions.
//!
//! Differs: counts functions, not addresses. `profile=2` and the like (a sample on each tick that interrupts the
//! kernel) are absent: nothing is interrupted within a path here, so there would be no samples.

use crate::access::Path;
use crate::arch::Arch;
use crate::behaviour;
use crate::core::Sched;
use crate::errno::{Answer, Errno, Refusal};
use std::collections::BTreeMap;
use units::unlikely;

behaviour! {
    /// Whether the histogram can be of sleeps.
    pub enum SleepProfile = "stats.sleep_profile" {
        Blocked = "blocked", since "v2.6.22", commit "", "profile=sleep counts milliseconds of uninterruptible sleeps by their place";
        Absent = "absent", since "v6.11", commit "b88f55389ad2",
            "it is gone, also from 6.1.y (the tree is 6.1.192): the parameter does nothing";
    }
}

/// profile.h: SLEEP_PROFILING, SCHED_PROFILING.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ProfileType {
    Sleep,
    Sched,
}

/// The histogram.
#[derive(Clone, Debug, Default)]
pub struct ProfileState {
    prof_on: Option<ProfileType>,
    /// By the number of the function.
    hits: BTreeMap<u16, u64>,
}

impl<A: Arch> Sched<A> {
    /// profile.c: profile_setup(). Called at boot. Profiling sleeps turns schedstats on.
    ///
    /// # Errors
    /// EINVAL for what this kernel cannot profile.
    pub fn profile_setup(&mut self, kind: ProfileType) -> Answer {
        if kind == ProfileType::Sleep {
            if self.kernel.sleep_profile == SleepProfile::Absent {
                return Err(Refusal::new(Errno::EINVAL, "this kernel profiles no sleeps"));
            }
            self.force_schedstat_enabled();
        }
        self.profile.prof_on = Some(kind);
        Ok(())
    }

    /// `prof_on == kind`
    #[inline]
    pub(crate) fn profiles(&self, kind: ProfileType) -> bool {
        unlikely(self.profile.prof_on == Some(kind))
    }

    /// profile.c: profile_hits().
    #[inline]
    pub(crate) fn profile_hits(&mut self, kind: ProfileType, function: Path, hits: u64) {
        if self.profiles(kind) {
            *self.profile.hits.entry(function.0).or_default() += hits;
        }
    }

    /// The histogram, by function; `None` while profiling is off.
    pub fn profile_histogram(&self) -> Option<impl Iterator<Item = (Path, u64)> + '_> {
        self.profile.prof_on?;
        Some(self.profile.hits.iter().map(|(&number, &hits)| (Path(number), hits)))
    }
}
