//! The arithmetic of scan periods: how often a task's memory is scanned. Times in ms, sizes in pages of 4 KiB.

use super::rules::ScanAdjust;
use crate::sysctl::Sysctl;

/// fair.c: MAX_SCAN_WINDOW. No more than this is scanned, in MB per second.
const MAX_SCAN_WINDOW: u64 = 2560;

/// fair.c: NUMA_PERIOD_SLOTS, NUMA_PERIOD_THRESHOLD. Shares are counted in tenths; from seven on, things are as they
/// should be.
const NUMA_PERIOD_SLOTS: u64 = 10;
const NUMA_PERIOD_THRESHOLD: u64 = 7;

/// The pages of a mebibyte.
pub(super) const PAGES_PER_MB: u64 = 256;

/// The private and shared faults of a group, and the number of its tasks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Sharing {
    pub tasks: u64,
    pub private: u64,
    pub shared: u64,
}

impl Sharing {
    /// Lengthens a period in proportion to the number of tasks and the shared part of their faults.
    fn stretch(self, period: u64) -> u64 {
        period.wrapping_mul(self.tasks).wrapping_mul(self.shared + 1) / (self.private + self.shared + 1)
    }
}

/// fair.c: task_nr_scan_windows(). How many scans cover `rss` pages.
pub(super) fn task_nr_scan_windows(sysctl: &Sysctl, rss: u64) -> u64 {
    let window = sysctl.numa_balancing_scan_size * PAGES_PER_MB;
    rss.max(1).div_ceil(window)
}

/// fair.c: task_scan_min(). The shortest period: all memory within `scan_period_min`, but no faster than
/// [`MAX_SCAN_WINDOW`].
pub(super) fn task_scan_min(sysctl: &Sysctl, rss: u64) -> u64 {
    let windows = (MAX_SCAN_WINDOW / sysctl.numa_balancing_scan_size).max(1);
    let floor = 1000 / windows;
    floor.max(sysctl.numa_balancing_scan_period_min / task_nr_scan_windows(sysctl, rss))
}

/// fair.c: task_scan_start(). The first period. `sharing`: that of the task's group, in kernels that consider it.
pub(super) fn task_scan_start(sysctl: &Sysctl, rss: u64, sharing: Option<Sharing>) -> u64 {
    let smin = task_scan_min(sysctl, rss);
    smin.max(sharing.map_or(smin, |sharing| sharing.stretch(smin)))
}

/// fair.c: task_scan_max(). The longest period.
pub(super) fn task_scan_max(sysctl: &Sysctl, rss: u64, sharing: Option<Sharing>) -> u64 {
    let smin = task_scan_min(sysctl, rss);
    let smax = sysctl.numa_balancing_scan_period_max / task_nr_scan_windows(sysctl, rss);
    // The shortest period may exceed this, because the amount scanned per second is limited.
    smin.max(smax).max(sharing.map_or(0, |sharing| sharing.stretch(smax)))
}

/// The faults of a task since its period was adjusted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Faults {
    pub remote: u64,
    pub local: u64,
    pub private: u64,
    pub shared: u64,
}

/// The middle of update_task_scan_period(), if there were faults: by how much the period becomes longer, or (negative)
/// shorter.
pub(super) fn period_change(adjust: ScanAdjust, period: u64, faults: Faults) -> i64 {
    let Faults { remote, local, private, shared } = faults;
    let slot = period.div_ceil(NUMA_PERIOD_SLOTS) as i64;
    let local_ratio = local * NUMA_PERIOD_SLOTS / (local + remote).max(1);
    let longer = |ratio: u64| ((ratio - NUMA_PERIOD_THRESHOLD).max(1) as i64) * slot;
    let shorter = |ratio: u64| -((NUMA_PERIOD_THRESHOLD - ratio) as i64) * slot;
    match adjust {
        ScanAdjust::LocalFaults if local_ratio >= NUMA_PERIOD_THRESHOLD => longer(local_ratio),
        ScanAdjust::LocalFaults => {
            // Moving shared memory is of little use: others would move it away again.
            let private_ratio = (private * NUMA_PERIOD_SLOTS).div_ceil(private + shared + 1) as i64;
            shorter(local_ratio) * private_ratio / NUMA_PERIOD_SLOTS as i64
        }
        ScanAdjust::PrivateFaults => {
            let private_ratio = private * NUMA_PERIOD_SLOTS / (private + shared).max(1);
            if private_ratio >= NUMA_PERIOD_THRESHOLD {
                longer(private_ratio)
            } else if local_ratio >= NUMA_PERIOD_THRESHOLD {
                longer(local_ratio)
            } else {
                shorter(local_ratio.max(private_ratio))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MB: u64 = PAGES_PER_MB;

    #[test]
    fn bounds_follow_the_size_of_the_memory() {
        let sysctl = Sysctl::new(8);
        // Worked out by hand from the defaults: 256 MB a scan, 1 s to 60 s for a full one, 2560 MB a second at most.
        for (rss, windows, min, max) in [
            (0, 1, 1000, 60_000),
            (256 * MB, 1, 1000, 60_000),
            (256 * MB + 1, 2, 500, 30_000),
            (1024 * MB, 4, 250, 15_000),
            (4096 * MB, 16, 100, 3750),
            (256 * 1024 * MB, 1024, 100, 100),
        ] {
            assert_eq!(task_nr_scan_windows(&sysctl, rss), windows);
            assert_eq!((task_scan_min(&sysctl, rss), task_scan_max(&sysctl, rss, None)), (min, max));
        }
        let wide = Sysctl { numa_balancing_scan_size: 4096, ..sysctl };
        assert_eq!(task_scan_min(&wide, 256 * MB), 1000, "one window of more than a second's worth");
    }

    #[test]
    fn groups_that_share_are_scanned_less_often() {
        let sysctl = Sysctl::new(8);
        let sharing = |tasks, private, shared| Some(Sharing { tasks, private, shared });
        // 250 ms * 4 tasks * 3000 / 4000
        assert_eq!(task_scan_start(&sysctl, 1024 * MB, sharing(4, 1000, 2999)), 750);
        assert_eq!(task_scan_start(&sysctl, 1024 * MB, sharing(4, 3999, 0)), 250, "never below the shortest");
        assert_eq!(task_scan_max(&sysctl, 1024 * MB, sharing(4, 1000, 2999)), 45_000);
        assert_eq!(task_scan_max(&sysctl, 1024 * MB, sharing(2, 3999, 0)), 15_000);
    }

    #[test]
    fn periods_follow_local_faults_and_sharing() {
        let change = |adjust, remote, local, private, shared| {
            period_change(adjust, 1000, Faults { remote, local, private, shared })
        };
        use ScanAdjust::{LocalFaults, PrivateFaults};
        // All local: three slots of 100 ms longer; just seven tenths: one.
        assert_eq!(change(LocalFaults, 0, 100, 100, 0), 300);
        assert_eq!(change(LocalFaults, 30, 70, 100, 0), 100);
        // All remote: seven slots shorter, times the tenths of private faults (rounded up, with one more fault in the
        // divisor).
        assert_eq!(change(LocalFaults, 100, 0, 100, 0), -700);
        assert_eq!(change(LocalFaults, 100, 0, 20, 80), -140);
        assert_eq!(change(LocalFaults, 100, 0, 0, 100), 0);
        // Private memory moves by itself, wherever it is.
        assert_eq!(change(PrivateFaults, 100, 0, 100, 0), 300);
        assert_eq!(change(PrivateFaults, 0, 100, 0, 100), 300);
        assert_eq!(change(PrivateFaults, 50, 50, 20, 80), -200);
        assert_eq!(change(PrivateFaults, 100, 0, 50, 50), -200);
    }
}
