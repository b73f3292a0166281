//! Task groups around a workload: which ones to create, what to write into their files, and where the workload's tasks
//! start.

use machine::hardware::Hardware;
use sched::core::cgroup::GroupFile;
use sched::errno::Refusal;
use sched::sched::{ROOT_TASK_GROUP, TgId};
use sched::scheduler::Scheduler;
use sim::engine::Sim;
use units::CpuId;

/// A task group to create before the start, or more to be written into one that was specified before.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GroupSpec {
    /// The path from the root, as in `/above/below`. The root itself is `/` and always exists.
    pub path: String,
    /// What is written into its files, in this order.
    pub files: Vec<(GroupFile, String)>,
}

impl GroupSpec {
    /// A group with the kernel's defaults.
    pub fn new(path: &str) -> GroupSpec {
        GroupSpec { path: path.to_string(), files: Vec::new() }
    }
}

/// A group that the kernel refused as specified.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GroupError {
    /// Index of the group.
    pub group: usize,
    /// Index of the file; `None` if the group itself was refused.
    pub file: Option<usize>,
    pub refusal: Refusal,
}

/// Paths and ids of the groups that were created, in that order.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Groups {
    created: Vec<(String, TgId)>,
}

/// Adds the missing ancestors of each group, parents before children. A group comes again only where more is to be written.
pub fn with_those_above(specs: impl IntoIterator<Item = GroupSpec>) -> Vec<GroupSpec> {
    let mut all: Vec<GroupSpec> = Vec::new();
    for spec in specs {
        for (end, _) in spec.path.match_indices('/').skip(1) {
            let above = &spec.path[..end];
            if !all.iter().any(|spec| spec.path == above) {
                all.push(GroupSpec::new(above));
            }
        }
        let known = all.iter().any(|known| known.path == spec.path);
        match all.last_mut().filter(|last| last.path == spec.path) {
            Some(last) => last.files.extend(spec.files),
            None if known && spec.files.is_empty() => {}
            None => all.push(spec),
        }
    }
    all
}

impl Groups {
    /// The id of the group at that path; the root is `/`.
    pub fn get(&self, path: &str) -> Option<TgId> {
        if path == "/" {
            return Some(ROOT_TASK_GROUP);
        }
        self.created.iter().find(|(known, _)| known == path).map(|&(_, group)| group)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, TgId)> {
        self.created.iter().map(|(path, group)| (path.as_str(), *group))
    }

    /// Creates the groups that do not exist yet, parents before children, and writes their files.
    ///
    /// # Errors
    /// What the kernel refuses. The groups before the refused one exist then.
    pub fn create<S: Scheduler>(&mut self, sched: &mut S, specs: &[GroupSpec]) -> Result<(), GroupError> {
        for (number, spec) in specs.iter().enumerate() {
            let error = |file, refusal| GroupError { group: number, file, refusal };
            let group = match self.get(&spec.path) {
                Some(group) => group,
                None => {
                    let (above, name) = spec.path.rsplit_once('/').expect("a path begins with /");
                    let above = self.get(if above.is_empty() { "/" } else { above });
                    let parent = above.unwrap_or_else(|| panic!("{} comes before the group above it", spec.path));
                    let group = sched.cgroup_mkdir(CpuId(0), parent, name).map_err(|refusal| error(None, refusal))?;
                    self.created.push((spec.path.clone(), group));
                    group
                }
            };
            for (at, (file, text)) in spec.files.iter().enumerate() {
                sched.cgroup_write(CpuId(0), group, *file, text).map_err(|refusal| error(Some(at), refusal))?;
            }
        }
        Ok(())
    }
}

/// Creates groups on a simulated machine. A real set-up would run on some CPU; what it costs there is not part of the
/// run.
///
/// # Errors
/// As of [`Groups::create`].
pub fn create<const COSTS: bool, S>(
    sim: &mut Sim<COSTS, S>,
    groups: &mut Groups,
    specs: &[GroupSpec],
) -> Result<(), GroupError>
where
    S: Scheduler<Arch = Hardware<COSTS>>,
{
    if specs.is_empty() {
        return Ok(());
    }
    let now = sim.now();
    sim.sched.arch_mut().begin(CpuId(0), now.into());
    groups.create(&mut sim.sched, specs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_above_come_first_and_once() {
        let specs = ["/a/b/c", "/a", "/d"].map(GroupSpec::new);
        let all = with_those_above(specs);
        let paths: Vec<&str> = all.iter().map(|spec| spec.path.as_str()).collect();
        assert_eq!(paths, ["/a", "/a/b", "/a/b/c", "/d"]);
        let weight = |path| GroupSpec { files: vec![(GroupFile::Weight, "5".to_string())], ..GroupSpec::new(path) };
        let specs = [weight("/a/b"), weight("/a/b"), GroupSpec::new("/a"), weight("/a"), weight("/a/b")];
        let all = with_those_above(specs);
        let written: Vec<_> = all.iter().map(|spec| (spec.path.as_str(), spec.files.len())).collect();
        assert_eq!(written, [("/a", 0), ("/a/b", 2), ("/a", 1), ("/a/b", 1)], "in the order in which they were given");
    }
}
