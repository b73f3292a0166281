//! How much memory this process can still take. If it takes more, the kernel kills it, or others lack that memory.

use crate::cgroup::folders;
use rustix::process::{Resource, getrlimit};
use std::fmt;
use std::fs;

/// The share of the remaining memory that an experiment may use.
const PART: u64 = 4;

/// The remaining memory, and what limits it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Left {
    bytes: u64,
    of: &'static str,
}

impl Left {
    /// `None` if the system does not tell.
    pub fn now() -> Option<Left> {
        let limit = |resource| getrlimit(resource).current;
        least(&|path| fs::read_to_string(path).ok(), limit(Resource::As), limit(Resource::Data))
    }

    /// Bytes that an experiment may use.
    pub fn allowance(self) -> usize {
        usize::try_from(self.bytes / PART).unwrap_or(usize::MAX)
    }
}

impl fmt::Display for Left {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a quarter of the {} MiB that {} leaves", self.bytes >> 20, self.of)
    }
}

/// A vector of `count` copies; `None` if there is no room for it.
pub fn filled<T: Clone>(value: T, count: usize) -> Option<Vec<T>> {
    let mut all = reserved(count)?;
    all.resize(count, value);
    Some(all)
}

/// An empty vector with room for `count`; its memory has not been touched.
pub fn reserved<T>(count: usize) -> Option<Vec<T>> {
    let mut all = Vec::new();
    all.try_reserve_exact(count).ok()?;
    Some(all)
}

fn least(read: &dyn Fn(&str) -> Option<String>, address_space: Option<u64>, data: Option<u64>) -> Option<Left> {
    let status = read("/proc/self/status").unwrap_or_default();
    let without = |limit: Option<u64>, used: &str| Some(limit?.saturating_sub(kib(&status, used)?));
    let cgroups = read("/proc/self/cgroup").unwrap_or_default();
    // If version 1 is mounted too, version 2 has a place of its own.
    let mounts = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];
    let second = mounts.into_iter().flat_map(|mount| folders(&cgroups, None, mount));
    let first = folders(&cgroups, Some("memory"), "/sys/fs/cgroup/memory");
    let limits = [
        (kib(&read("/proc/meminfo").unwrap_or_default(), "MemAvailable"), "this computer"),
        (second.filter_map(|folder| of_second(read, &folder)).min(), "a cgroup's memory.max"),
        (first.iter().filter_map(|folder| of_first(read, folder)).min(), "a cgroup's memory.limit_in_bytes"),
        (without(address_space, "VmSize"), "the limit of the address space (ulimit -v)"),
        (without(data, "VmData"), "the limit of data (ulimit -d)"),
    ];
    limits.into_iter().filter_map(|(bytes, of)| Some(Left { bytes: bytes?, of })).min_by_key(|left| left.bytes)
}

/// Bytes of a line such as `VmSize:    3896 kB`.
fn kib(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1 << 10)
}

/// What a cgroup of version 2 leaves. Above `memory.high` the kernel throttles it, which would spoil measurements too.
fn of_second(read: &dyn Fn(&str) -> Option<String>, folder: &str) -> Option<u64> {
    let number = |file: &str| read(&format!("{folder}/{file}"))?.trim().parse::<u64>().ok();
    let limit = number("memory.max").into_iter().chain(number("memory.high")).min()?;
    Some(unused(read, folder, limit, number("memory.current")?, "inactive_file"))
}

/// What a cgroup of version 1 leaves. Without a limit the file holds nearly the largest number there is.
fn of_first(read: &dyn Fn(&str) -> Option<String>, folder: &str) -> Option<u64> {
    let number = |file: &str| read(&format!("{folder}/memory.{file}"))?.trim().parse::<u64>().ok();
    let limit = number("limit_in_bytes")?;
    Some(unused(read, folder, limit, number("usage_in_bytes")?, "total_inactive_file"))
}

/// A cgroup's usage includes file pages that the kernel reclaims when needed.
fn unused(read: &dyn Fn(&str) -> Option<String>, folder: &str, limit: u64, used: u64, files: &str) -> u64 {
    let statistics = read(&format!("{folder}/memory.stat")).unwrap_or_default();
    let files = statistics.lines().find_map(|line| line.strip_prefix(files)?.trim().parse::<u64>().ok()).unwrap_or(0);
    limit.saturating_sub(used.saturating_sub(files))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    /// What is left if these files exist, in MiB, and what limits it.
    fn left(files: &[(&str, &str)], address_space: Option<u64>) -> Option<(u64, &'static str)> {
        let read = |path: &str| files.iter().find(|file| file.0 == path).map(|file| file.1.to_string());
        least(&read, address_space, None).map(|left| (left.bytes / MIB, left.of))
    }

    const COMPUTER: (&str, &str) = ("/proc/meminfo", "MemTotal: 8388608 kB\nMemAvailable:    4194304 kB\n");

    #[test]
    fn the_least_of_all_limits_counts() {
        assert_eq!(left(&[], None), None);
        assert_eq!(left(&[COMPUTER], None), Some((4_096, "this computer")));
        let status = ("/proc/self/status", "VmPeak:\t  300000 kB\nVmSize:\t  102400 kB\nVmData:\t 10240 kB\n");
        let address_space = "the limit of the address space (ulimit -v)";
        assert_eq!(left(&[COMPUTER, status], Some(300 * MIB)), Some((200, address_space)));
        assert_eq!(left(&[COMPUTER, status], Some(50 * MIB)), Some((0, address_space)));
        assert_eq!(left(&[COMPUTER, status], Some(1 << 40)), Some((4_096, "this computer")));
    }

    #[test]
    fn a_cgroup_and_those_above_it_are_heeded() {
        let current = |bytes: u64| bytes.to_string();
        let (full, half) = (current(300 * MIB), current(100 * MIB));
        let second = [
            COMPUTER,
            ("/proc/self/cgroup", "0::/user/mine\n"),
            ("/sys/fs/cgroup/user/mine/memory.max", "max\n"),
            ("/sys/fs/cgroup/user/mine/memory.current", &half),
            ("/sys/fs/cgroup/user/memory.max", "536870912\n"),
            ("/sys/fs/cgroup/user/memory.current", &full),
        ];
        assert_eq!(left(&second, None), Some((212, "a cgroup's memory.max")));
        let files = ("/sys/fs/cgroup/user/memory.stat", "anon 1\ninactive_file 104857600\n");
        assert_eq!(left(&[&second[..], &[files]].concat(), None), Some((312, "a cgroup's memory.max")));
        let high = ("/sys/fs/cgroup/user/mine/memory.high", "134217728\n");
        assert_eq!(left(&[&second[..], &[high]].concat(), None), Some((28, "a cgroup's memory.max")));
        // Version 1; a container sees its own part of the tree as the whole.
        let first = [
            COMPUTER,
            ("/proc/self/cgroup", "4:memory:/docker/0123\n0::/\n"),
            ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "536870912\n"),
            ("/sys/fs/cgroup/memory/memory.usage_in_bytes", &full),
            ("/sys/fs/cgroup/memory/memory.stat", "inactive_file 5\ntotal_inactive_file 104857600\n"),
        ];
        assert_eq!(left(&first, None), Some((312, "a cgroup's memory.limit_in_bytes")));
        let none = ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
        let without: Vec<_> = first.iter().map(|file| if file.0 == none.0 { none } else { *file }).collect();
        assert_eq!(left(&without, None), Some((4_096, "this computer")));
    }

    #[test]
    fn what_there_is_no_room_for_is_none() {
        assert_eq!(filled(7u8, 3), Some(vec![7; 3]));
        assert_eq!(filled(7u64, usize::MAX / 16), None);
        let now = Left::now().expect("this system tells");
        assert!(now.allowance() > 0 && now.to_string().starts_with("a quarter of the "), "{now}");
    }
}
