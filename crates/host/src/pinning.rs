//! Which CPUs a thread may use, and how to restore that afterwards.

use crate::Error;
use rustix::io::Errno;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::fs;

/// The CPUs that this process may use, by the operating system's numbers: cgroups, containers and `taskset` are
/// respected.
///
/// # Errors
/// If the system does not tell.
pub fn allowed() -> Result<Vec<usize>, Error> {
    let set = mask("asking which CPUs may be used")?;
    Ok((0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).collect())
}

/// The CPUs that this thread may use. If the kernel has more CPUs than a set holds, it refuses to fill one, but it
/// still lists them in text. Then the CPUs that fit are used, as if `taskset` had left no others.
fn mask(doing: &str) -> Result<CpuSet, Error> {
    match sched_getaffinity(None) {
        Err(Errno::INVAL) => {
            let status = fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
            let none = || Error::new(doing, "none below the number 1024", "one of them: taskset, cpuset");
            written(&status).ok_or_else(none)
        }
        told => told.map_err(|error| Error::of_system(doing, error)),
    }
}

/// The set in a thread's `status` file, as far as it fits; `None` if no CPU fits.
fn written(status: &str) -> Option<CpuSet> {
    let text = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    let mut set = CpuSet::new();
    list(text.trim()).into_iter().filter(|&cpu| cpu < CpuSet::MAX_CPU).for_each(|cpu| set.set(cpu));
    (set.count() > 0).then_some(set)
}

/// The kernel's lists of CPUs: `0-3,8`.
pub(crate) fn list(text: &str) -> Vec<usize> {
    let range = |part: &str| {
        let (first, last) = part.trim().split_once('-').unwrap_or((part.trim(), part.trim()));
        Some(first.parse().ok()?..=last.parse().ok()?)
    };
    text.split(',').filter_map(range).flat_map(|range: std::ops::RangeInclusive<usize>| range).collect()
}

/// The thread runs on one CPU as long as this lives.
pub struct Pinned(CpuSet);

impl Pinned {
    /// # Errors
    /// A CPU that this process may not use.
    pub fn to(cpu: usize) -> Result<Pinned, Error> {
        let doing = format!("running on CPU {cpu} alone");
        if cpu >= CpuSet::MAX_CPU {
            return Err(Error::new(doing, "a number that no set of CPUs holds", "a CPU below 1024"));
        }
        let before = mask(&doing)?;
        let mut set = CpuSet::new();
        set.set(cpu);
        sched_setaffinity(None, &set).map_err(|error| Error::of_system(&doing, error))?;
        Ok(Pinned(before))
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // The old set was allowed before. If it no longer is, the thread stays where it is.
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
        let error = Pinned::to(CpuSet::MAX_CPU).err().expect("beyond every set");
        assert_eq!(error.expected, "a CPU below 1024");
    }

    #[test]
    fn a_kernel_of_more_cpus_than_a_set_holds_tells_them_in_words() {
        let told = |list: &str| {
            let set = written(&format!("Name:\tx\nCpus_allowed:\tff\nCpus_allowed_list:\t{list}\nMems_allowed:\t1\n"))?;
            Some((0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).collect::<Vec<_>>())
        };
        assert_eq!(told("0-1,7,1023-2047"), Some(vec![0, 1, 7, 1_023]));
        assert_eq!(told("1500-2047"), None);
        assert_eq!(written(""), None);
        // If both tell, they agree.
        let status = fs::read_to_string("/proc/thread-self/status").unwrap();
        assert_eq!(written(&status), Some(mask("a test").unwrap()));
    }

    #[test]
    fn lists_of_cpus() {
        assert_eq!(list("0-2,8\n"), [0, 1, 2, 8]);
        assert_eq!(list("5"), [5]);
        assert_eq!(list(""), Vec::<usize>::new());
    }
}
