//! What a kernel refuses in the files of a workload's groups, as a mistake at the place where the user wrote it.

use crate::mistake::{Mistake, listed};
use machine::topology::Location;
use sched::arch::Arch;
use sched::core::Sched;
use sched::core::cgroup::{CgroupFiles, GroupFile};
use sched::errno::Refusal;
use workloads::script::GroupLine;

/// A file of the group at `path`, written `at`.
pub fn refused_file<A: Arch>(
    at: &Location,
    sched: &Sched<A>,
    kernel: &str,
    path: &str,
    written: &GroupLine,
    refusal: Refusal,
) -> Mistake {
    let file = written.file.name();
    let writable = |file: GroupFile| !matches!(file, GroupFile::Stat | GroupFile::StatLocal);
    let has = sched.has_group_file(written.file);
    if has && writable(written.file) {
        let found = format!("`{}` for {file} of {path}, which {kernel} refuses: {refusal}", written.text);
        return Mistake::new(at, found, written.file.doc());
    }
    let known = GroupFile::ALL.iter().filter(|&&file| sched.has_group_file(file) && writable(file));
    let mut expected = format!("one of {}", listed(known.map(|file| file.name())));
    let why = if has { "has for reading only" } else { "does not have" };
    let mut mounted = "";
    if !written.file.is_in(sched.cgroup_hierarchy) && sched.kernel.cgroup.files == CgroupFiles::Unified {
        // The kernel has this file, but the hierarchy that its distributions mount does not.
        mounted = " with cgroup v2";
        expected.push_str(", or cgroup v1: cgroup.files=legacy in the arm");
    }
    Mistake::new(at, format!("{file}, which {kernel}{mounted} {why}"), expected)
}
