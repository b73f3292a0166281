//! Where a thread may run, and putting it back afterwards.

use crate::Error;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The CPUs this process may use, by the numbers of its operating system: cgroups, containers and `taskset` are heeded.
///
/// # Errors
/// A system that does not tell.
pub fn allowed() -> Result<Vec<usize>, Error> {
    let set = sched_getaffinity(None).map_err(|error| Error::of_system("asking which CPUs may be used", error))?;
    Ok((0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).collect())
}

/// While it lives, its thread runs on one CPU.
pub struct Pinned(CpuSet);

impl Pinned {
    /// # Errors
    /// A CPU that this process may not use.
    pub fn to(cpu: usize) -> Result<Pinned, Error> {
        let doing = format!("running on CPU {cpu} alone");
        let before = sched_getaffinity(None).map_err(|error| Error::of_system(&doing, error))?;
        let mut set = CpuSet::new();
        set.set(cpu);
        sched_setaffinity(None, &set).map_err(|error| Error::of_system(&doing, error))?;
        Ok(Pinned(before))
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // It was allowed before; should it not be any more, the thread stays where it is.
        let _ = sched_setaffinity(None, &self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pin_is_taken_out_again() {
        let before = allowed().unwrap();
        let pinned = Pinned::to(before[0]).unwrap();
        assert_eq!(allowed().unwrap(), before[..1]);
        drop(pinned);
        assert_eq!(allowed().unwrap(), before);
        assert!(Pinned::to(1_023).is_err());
    }
}
