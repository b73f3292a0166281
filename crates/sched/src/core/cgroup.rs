//! core.c: the `cpu` controller: groups as directories, and their files, in cgroup v1 and v2.
//!
//! ```text
//! v1   cpu.shares  cpu.idle  cpu.cfs_quota_us  cpu.cfs_period_us  cpu.cfs_burst_us  cpu.stat  cpu.stat.local
//! v2   cpu.weight  cpu.weight.nice  cpu.idle  cpu.max  cpu.max.burst  cpu.stat  cpu.stat.local
//! ```
//!
//! Each file takes and gives text in the kernel's own form and answers with the kernel's own errors. A machine has one of the two
//! hierarchies. Absent: real-time groups (`cpu.rt_*`).

use super::cfs_quota::Quota;
use super::cputime::GroupTicks;
use super::{ClampId, Sched, UtilClamp};
use crate::arch::Arch;
use crate::behaviour;
use crate::errno::{Answer, Errno, Refusal};
use crate::fair::bandwidth::{RUNTIME_INF, Refill, ThrottledTime};
use crate::fair::rules::GroupIdle;
use crate::load_weight::sched_prio_to_weight;
use crate::sched::*;
use crate::text::{kstrtox, scan_llu};
use std::fmt::Write as _;

behaviour! {
    /// Which hierarchies have a cpu controller.
    pub enum CgroupFiles = "cgroup.files" {
        Legacy = "legacy", since "v2.6.24", commit "", "cgroup v1 only";
        Unified = "unified", since "v4.15", commit "0d5936344f30", "cgroup v1, or v2: cpu.weight, cpu.weight.nice, cpu.max";
    }
}

behaviour! {
    /// What cpu.stat of cgroup v2 tells of niced tasks.
    pub enum NiceTime = "cgroup.nice_time" {
        InUser = "in-user", since "v4.15", commit "041cd640b2f3", "their time is user time";
        Apart = "apart", since "v6.13", commit "aefa398d93d5", "their user time once more, apart (nice_usec)";
    }
}

behaviour! {
    /// What becomes of a quota in cgroup v2 that is a greater part of a CPU than that of a group above.
    pub enum QuotaAbove = "cgroup.quota_above" {
        Refused = "refused", since "v4.15", commit "0d5936344f30", "it is refused (EINVAL), as cgroup v1 always does";
        Tightest = "tightest", since "v4.16", commit "c53593e5cb69", "it is taken: the tighter one holds";
    }
}

behaviour! {
    /// What cpu.stat of cgroup v1 tells of how long a group has waited for CPUs.
    pub enum WaitSum = "cgroup.wait_sum" {
        Untold = "untold", since "v2.6.24", commit "", "nothing";
        Told = "told", since "v4.19", commit "3d6c50c27bd6", "with schedstats, the sum over its CPUs (wait_sum)";
    }
}

/// How groups appear to users in one kernel version.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CgroupRules {
    pub files: CgroupFiles,
    pub nice_time: NiceTime,
    pub quota_above: QuotaAbove,
    pub wait_sum: WaitSum,
}

impl CgroupRules {
    pub const V4_5: CgroupRules = CgroupRules {
        files: CgroupFiles::Legacy,
        nice_time: NiceTime::InUser,
        quota_above: QuotaAbove::Refused,
        wait_sum: WaitSum::Untold,
    };
    pub const V4_15: CgroupRules = CgroupRules { files: CgroupFiles::Unified, ..CgroupRules::V4_5 };
    pub const V4_16: CgroupRules = CgroupRules { quota_above: QuotaAbove::Tightest, ..CgroupRules::V4_15 };
    pub const V4_19: CgroupRules = CgroupRules { wait_sum: WaitSum::Told, ..CgroupRules::V4_16 };
    pub const V6_12: CgroupRules = CgroupRules { nice_time: NiceTime::Apart, ..CgroupRules::V4_19 };
}

/// Which of the two hierarchies is mounted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Hierarchy {
    /// cgroup v1.
    Legacy,
    /// cgroup v2.
    Unified,
}

impl Hierarchy {
    /// What a distribution with this kernel mounts: v2 if the kernel has it.
    pub fn of(files: CgroupFiles) -> Hierarchy {
        match files {
            CgroupFiles::Legacy => Hierarchy::Legacy,
            CgroupFiles::Unified => Hierarchy::Unified,
        }
    }
}

macro_rules! files {
    ($( $name:ident: $file:literal, $hierarchy:pat, $doc:literal; )+) => {
        /// A file of a group's directory.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum GroupFile { $( #[doc = $doc] $name, )+ }

        impl GroupFile {
            pub const ALL: &'static [GroupFile] = &[ $( GroupFile::$name, )+ ];

            pub fn name(self) -> &'static str {
                match self { $( GroupFile::$name => $file, )+ }
            }

            pub fn doc(self) -> &'static str {
                match self { $( GroupFile::$name => $doc, )+ }
            }

            /// Whether directories of that hierarchy have the file.
            pub fn is_in(self, hierarchy: Hierarchy) -> bool {
                match self { $( GroupFile::$name => matches!(hierarchy, $hierarchy), )+ }
            }
        }
    };
}

files! {
    Shares: "cpu.shares", Hierarchy::Legacy, "weight among its siblings, 1024 = a default group, from 2 to 262144";
    Weight: "cpu.weight", Hierarchy::Unified, "weight among its siblings, 100 = a default group, from 1 to 10000";
    WeightNice: "cpu.weight.nice", Hierarchy::Unified, "the same as a nice level, from -20 to 19";
    Idle: "cpu.idle", _, "1: runs only when nobody else of its siblings would";
    Max: "cpu.max", Hierarchy::Unified, "quota and period in microseconds, `max` for no quota";
    MaxBurst: "cpu.max.burst", Hierarchy::Unified, "what it may save up beyond the quota, in microseconds";
    CfsQuotaUs: "cpu.cfs_quota_us", Hierarchy::Legacy, "quota in microseconds, -1 for none";
    CfsPeriodUs: "cpu.cfs_period_us", Hierarchy::Legacy, "period in microseconds";
    CfsBurstUs: "cpu.cfs_burst_us", Hierarchy::Legacy, "what it may save up beyond the quota, in microseconds";
    UclampMin: "cpu.uclamp.min", _, "utilization its tasks are served for at least, in percent of the biggest CPU";
    UclampMax: "cpu.uclamp.max", _, "utilization its tasks are served for at most, in percent of the biggest CPU, or `max`";
    Stat: "cpu.stat", _, "what it used and how often it was throttled";
    StatLocal: "cpu.stat.local", _, "how long its own tasks were throttled";
}

/// cgroup-defs.h: CGROUP_WEIGHT_MIN, CGROUP_WEIGHT_DFL, CGROUP_WEIGHT_MAX.
const CGROUP_WEIGHT: (u64, u64, u64) = (1, 100, 10_000);

const fn refuse(errno: Errno, why: &'static str) -> Refusal {
    Refusal::new(errno, why)
}

/// Microseconds into nanoseconds.
fn from_us(us: u64) -> Answer<u64> {
    us.checked_mul(1000).ok_or(refuse(Errno::EINVAL, "more microseconds than 64 bits of nanoseconds hold"))
}

/// core.c: cpu_period_quota_parse(): `sscanf("%20s %llu")`. In nanoseconds. If the second word is missing or not a number, the
/// period stays; anything after it is ignored.
fn cpu_period_quota_parse(text: &str, period: u64) -> Answer<(u64, u64)> {
    let wrong = refuse(Errno::EINVAL, "a quota and a period in microseconds, or `max` and a period");
    let text = text.trim_ascii_start();
    let ends = |&(at, letter): &(usize, char)| at >= 20 || letter.is_ascii_whitespace();
    let (word, rest) = text.split_at(text.char_indices().find(ends).map_or(text.len(), |(at, _)| at));
    let ns = |us: u64| us.wrapping_mul(1000);
    let quota = match scan_llu(word) {
        Some((us, _)) => ns(us),
        None if word == "max" => RUNTIME_INF,
        None => return Err(wrong),
    };
    Ok((quota, scan_llu(rest).map_or(period, |(us, _)| ns(us))))
}

fn divide_round_closest(a: u64, b: u64) -> u64 {
    (a + b / 2) / b
}

impl<A: Arch> Sched<A> {
    /// Whether the file exists with this kernel and its hierarchy.
    pub fn has_group_file(&self, file: GroupFile) -> bool {
        let kernel = &self.kernel;
        let version = match file {
            GroupFile::Weight | GroupFile::WeightNice | GroupFile::Max => kernel.cgroup.files == CgroupFiles::Unified,
            GroupFile::Idle => kernel.entity.group_idle == GroupIdle::Settable,
            GroupFile::MaxBurst | GroupFile::CfsBurstUs => kernel.bandwidth.refill.bursts(),
            GroupFile::UclampMin | GroupFile::UclampMax => kernel.core.uclamp != UtilClamp::Absent,
            GroupFile::StatLocal => kernel.bandwidth.throttled_time == ThrottledTime::WhileQueued,
            GroupFile::Shares | GroupFile::CfsQuotaUs | GroupFile::CfsPeriodUs | GroupFile::Stat => true,
        };
        version && file.is_in(self.cgroup_hierarchy)
    }

    fn group_file(&self, tg: TgId, file: GroupFile) -> Answer {
        if !self.has_group_file(file) {
            return Err(refuse(Errno::ENOENT, "this kernel, or this version of cgroups, has no such file"));
        }
        if tg != ROOT_TASK_GROUP || self.cgroup_hierarchy == Hierarchy::Legacy {
            return Ok(());
        }
        match file {
            // The root group is never throttled.
            GroupFile::StatLocal => Ok(()),
            GroupFile::Stat => Err(refuse(
                Errno::ENOENT,
                "the root group has it since v5.8, with the times of the whole machine, interrupts included, which are not modelled",
            )),
            _ => Err(refuse(Errno::ENOENT, "the root group has no such file")),
        }
    }

    /// Writes a group's file, as `echo TEXT > FILE` does.
    ///
    /// # Errors
    /// The kernel's: ENOENT for a file that does not exist, EINVAL and ERANGE for a text that the file does not accept.
    pub fn cgroup_write(&mut self, tg: TgId, file: GroupFile, text: &str) -> Answer {
        self.group_file(tg, file)?;
        let Quota { period, quota, burst } = self.quota(tg);
        match file {
            GroupFile::Shares => self.cpu_shares_write_u64(tg, kstrtox(text)?),
            GroupFile::Weight => self.cpu_weight_write_u64(tg, kstrtox(text)?),
            GroupFile::WeightNice => self.cpu_weight_nice_write_s64(tg, kstrtox(text)?),
            GroupFile::Idle => self.cpu_idle_write_s64(tg, kstrtox(text)?),
            GroupFile::Max => {
                let (quota, period) = cpu_period_quota_parse(text, period)?;
                self.tg_set_cfs_bandwidth(tg, Quota { period, quota, burst })
            }
            GroupFile::CfsQuotaUs => {
                let us: i64 = kstrtox(text)?;
                let quota = if us < 0 { RUNTIME_INF } else { from_us(us as u64)? };
                self.tg_set_cfs_bandwidth(tg, Quota { period, quota, burst })
            }
            GroupFile::CfsPeriodUs => {
                let period = from_us(kstrtox(text)?)?;
                self.tg_set_cfs_bandwidth(tg, Quota { period, quota, burst })
            }
            GroupFile::MaxBurst | GroupFile::CfsBurstUs => {
                let burst = from_us(kstrtox(text)?)?;
                self.tg_set_cfs_bandwidth(tg, Quota { period, quota, burst })
            }
            GroupFile::UclampMin => self.cpu_uclamp_write(tg, ClampId::Min, text),
            GroupFile::UclampMax => self.cpu_uclamp_write(tg, ClampId::Max, text),
            GroupFile::Stat | GroupFile::StatLocal => Err(refuse(Errno::EINVAL, "this file is for reading only")),
        }
    }

    /// What a group's file shows, including the newline.
    ///
    /// # Errors
    /// ENOENT for a file that does not exist.
    pub fn cgroup_read(&self, tg: TgId, file: GroupFile) -> Answer<String> {
        self.group_file(tg, file)?;
        let Quota { period, quota, burst } = self.quota(tg);
        let shares = self.kernel.load_resolution.scale_load_down(self.tg[tg].shares);
        Ok(match file {
            GroupFile::Shares => format!("{shares}\n"),
            GroupFile::Weight => format!("{}\n", divide_round_closest(shares * CGROUP_WEIGHT.1, 1024)),
            GroupFile::WeightNice => format!("{}\n", closest_nice(shares)),
            GroupFile::Idle => format!("{}\n", u32::from(self.tg[tg].idle)),
            GroupFile::Max if quota == RUNTIME_INF => format!("max {}\n", period / 1000),
            GroupFile::Max => format!("{} {}\n", quota / 1000, period / 1000),
            GroupFile::CfsQuotaUs if quota == RUNTIME_INF => "-1\n".to_string(),
            GroupFile::CfsQuotaUs => format!("{}\n", quota / 1000),
            GroupFile::CfsPeriodUs => format!("{}\n", period / 1000),
            GroupFile::MaxBurst | GroupFile::CfsBurstUs => format!("{}\n", burst / 1000),
            GroupFile::UclampMin => self.cpu_uclamp_print(tg, ClampId::Min),
            GroupFile::UclampMax => self.cpu_uclamp_print(tg, ClampId::Max),
            GroupFile::Stat => match self.cgroup_hierarchy {
                Hierarchy::Legacy => self.cpu_cfs_stat_show(tg),
                Hierarchy::Unified => self.cgroup_base_stat_show(tg) + &self.cpu_extra_stat_show(tg),
            },
            GroupFile::StatLocal => match self.cgroup_hierarchy {
                Hierarchy::Legacy => format!("throttled_time {}\n", self.throttled_time_self(tg)),
                Hierarchy::Unified => format!("throttled_usec {}\n", self.throttled_time_self(tg) / 1000),
            },
        })
    }

    // Weights.

    /// core.c: cpu_shares_write_u64(). A value out of bounds becomes the nearest bound.
    fn cpu_shares_write_u64(&mut self, tg: TgId, shares: u64) -> Answer {
        self.change_shares(tg, shares)
    }

    /// core.c: cpu_weight_write_u64().
    fn cpu_weight_write_u64(&mut self, tg: TgId, weight: u64) -> Answer {
        let (least, default, most) = CGROUP_WEIGHT;
        if !(least..=most).contains(&weight) {
            return Err(refuse(Errno::ERANGE, "a weight is from 1 to 10000"));
        }
        self.change_shares(tg, divide_round_closest(weight * 1024, default))
    }

    /// core.c: cpu_weight_nice_write_s64().
    fn cpu_weight_nice_write_s64(&mut self, tg: TgId, nice: i64) -> Answer {
        if !(-20..=19).contains(&nice) {
            return Err(refuse(Errno::ERANGE, "a nice level is from -20 to 19"));
        }
        self.change_shares(tg, u64::from(sched_prio_to_weight[(nice + 20) as usize]))
    }

    /// fair.c: sched_group_set_shares(), with the answer that the user gets.
    #[doc(alias = "sched_group_set_shares")]
    fn change_shares(&mut self, tg: TgId, shares: u64) -> Answer {
        if tg == ROOT_TASK_GROUP {
            return Err(refuse(Errno::EINVAL, "the root group's weight is fixed"));
        }
        if self.tg[tg].idle {
            return Err(refuse(Errno::EINVAL, "an idle group has the least weight, and no other"));
        }
        self.sched_group_set_shares(tg, shares);
        Ok(())
    }

    /// core.c: cpu_idle_write_s64().
    fn cpu_idle_write_s64(&mut self, tg: TgId, idle: i64) -> Answer {
        if tg == ROOT_TASK_GROUP {
            return Err(refuse(Errno::EINVAL, "the root group is never idle"));
        }
        if !(0..=1).contains(&idle) {
            return Err(refuse(Errno::EINVAL, "1 for an idle group, 0 for a normal one"));
        }
        self.sched_group_set_idle(tg, idle == 1);
        Ok(())
    }

    // Statistics.

    /// core.c: cpu_cfs_stat_show(), for cpu.stat of cgroup v1. Times in ns.
    fn cpu_cfs_stat_show(&self, tg: TgId) -> String {
        let cfs_b = &self.tg[tg].cfs_bandwidth;
        let mut out = format!(
            "nr_periods {}\nnr_throttled {}\nthrottled_time {}\n",
            cfs_b.nr_periods, cfs_b.nr_throttled, cfs_b.throttled_time
        );
        if self.kernel.cgroup.wait_sum == WaitSum::Told && self.schedstat_enabled() && tg != ROOT_TASK_GROUP {
            let waited: u64 = self.tg[tg].se.iter().map(|&se| self.group_wait_sum(se)).sum();
            let _ = writeln!(out, "wait_sum {waited}");
        }
        if self.kernel.bandwidth.refill == Refill::Burst {
            let _ = write!(out, "nr_bursts {}\nburst_time {}\n", cfs_b.nr_burst, cfs_b.burst_time);
        }
        out
    }

    fn group_wait_sum(&self, se: SeId) -> u64 {
        self.group_statistics.get(se.index()).map_or(0, |statistics| statistics.wait_sum)
    }

    /// core.c: cpu_extra_stat_show(), the controller's own part of cpu.stat of cgroup v2.
    fn cpu_extra_stat_show(&self, tg: TgId) -> String {
        let cfs_b = &self.tg[tg].cfs_bandwidth;
        let mut out = format!(
            "nr_periods {}\nnr_throttled {}\nthrottled_usec {}\n",
            cfs_b.nr_periods,
            cfs_b.nr_throttled,
            cfs_b.throttled_time / 1000
        );
        if self.kernel.bandwidth.refill == Refill::Burst {
            let _ = write!(out, "nr_bursts {}\nburst_usec {}\n", cfs_b.nr_burst, cfs_b.burst_time / 1000);
        }
        out
    }

    /// kernel/cgroup/rstat.c: cgroup_base_stat_cputime_show(), the first lines of cpu.stat, which every controller shows. Run
    /// time is exact; it is divided into user and system time in proportion to what the group's ticks interrupted.
    #[doc(alias = "cgroup_base_stat_cputime_show")]
    fn cgroup_base_stat_show(&self, tg: TgId) -> String {
        let usage = self.group_runtime(tg) + self.tg[tg].unfair_runtime;
        let GroupTicks { user, system, nice } = self.tg[tg].ticks;
        // cputime_adjust(): without any tick, all time counts as user time.
        let share = |part: u64| match user + system {
            0 => 0,
            all => (u128::from(usage) * u128::from(part) / u128::from(all)) as u64,
        };
        let in_system = share(system);
        let mut out = format!(
            "usage_usec {}\nuser_usec {}\nsystem_usec {}\n",
            usage / 1000,
            (usage - in_system) / 1000,
            in_system / 1000
        );
        if self.kernel.cgroup.nice_time == NiceTime::Apart {
            let _ = writeln!(out, "nice_usec {}", nice * self.tick_nsec / 1000);
        }
        out
    }

    /// The run time of the group's fair tasks on all CPUs, in ns.
    pub fn group_runtime(&self, tg: TgId) -> u64 {
        self.tg[tg].se.iter().map(|&se| self.se[se].sum_exec_runtime).sum()
    }

    /// core.c: throttled_time_self(). In ns, summed over the CPUs.
    fn throttled_time_self(&self, tg: TgId) -> u64 {
        self.tg[tg].cfs_rq.iter().map(|&cfs| self.cfs_rq_runtime(cfs).throttled_clock_self_time).sum()
    }

    // Directories.

    /// kernel/cgroup/cgroup.c: cgroup_mkdir(). A new group below `parent`, with the default weight and no quota.
    ///
    /// # Errors
    /// EINVAL for an invalid name, EEXIST for one that exists.
    pub fn cgroup_mkdir(&mut self, parent: TgId, name: &str) -> Answer<TgId> {
        if name.is_empty() || name == "." || name == ".." || name.contains(['/', '\n', '\0']) {
            return Err(refuse(Errno::EINVAL, "a group's name is that of a directory: without slashes and line ends"));
        }
        if self.tg[parent].children.iter().any(|&child| self.tg[child].name == name) {
            return Err(refuse(Errno::EEXIST, "the group above has one of that name"));
        }
        Ok(self.sched_create_group(parent, name, 1024))
    }

    /// kernel/cgroup/cgroup.c: cgroup_rmdir().
    ///
    /// # Errors
    /// EBUSY while there are tasks or groups in it, EPERM for the root group.
    pub fn cgroup_rmdir(&mut self, tg: TgId) -> Answer {
        if tg == ROOT_TASK_GROUP {
            return Err(refuse(Errno::EPERM, "the root group stays"));
        }
        if !self.tg[tg].children.is_empty() {
            return Err(refuse(Errno::EBUSY, "there are groups below it"));
        }
        if self.tasks_of_group(tg).next().is_some() {
            return Err(refuse(Errno::EBUSY, "there are tasks in it"));
        }
        self.sched_destroy_group(tg);
        Ok(())
    }

    fn tasks_of_group(&self, tg: TgId) -> impl Iterator<Item = TaskId> + '_ {
        self.task.iter().filter(move |(p, task)| task.alive && self.task_cold[*p].css == tg).map(|(p, _)| p)
    }

    /// A group's path from the root, as `/proc/PID/cgroup` shows it.
    pub fn cgroup_path(&self, tg: TgId) -> String {
        match self.tg[tg].parent {
            None => "/".to_string(),
            Some(ROOT_TASK_GROUP) => format!("/{}", self.tg[tg].name),
            Some(parent) => format!("{}/{}", self.cgroup_path(parent), self.tg[tg].name),
        }
    }
}

/// The nice level whose weight is nearest; of two equally near, the lower.
fn closest_nice(weight: u64) -> i32 {
    let distance = |&nice: &i32| u64::from(sched_prio_to_weight[(nice + 20) as usize]).abs_diff(weight);
    (-20..=19).min_by_key(distance).expect("forty levels")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::machine;
    use crate::versions::{V4_5_RC1, V6_12};

    #[test]
    fn cpu_max_is_read_as_the_kernel_reads_it() {
        let parse = |text| cpu_period_quota_parse(text, 100_000_000);
        assert_eq!(parse("50000 200000\n"), Ok((50_000_000, 200_000_000)));
        assert_eq!(parse("50000"), Ok((50_000_000, 100_000_000)));
        assert_eq!(parse("max 1000"), Ok((RUNTIME_INF, 1_000_000)));
        // Anything after the period is ignored, and a second word that is no number leaves the period as it is.
        assert_eq!(parse("1 2 3"), Ok((1_000, 2_000)));
        assert_eq!(parse("50000us long"), Ok((50_000_000, 100_000_000)));
        // "%20s": the first word ends after 20 letters.
        assert_eq!(parse("000000000000000000057"), Ok((5_000, 7_000)));
        for wrong in ["", "half", "max1000", "-1"] {
            assert_eq!(parse(wrong).map_err(|refusal| refusal.errno), Err(Errno::EINVAL), "{wrong:?}");
        }
    }

    #[test]
    fn the_root_group_has_few_files_and_says_which_are_missing_here() {
        let read = |kernel, file| machine(kernel, 1).cgroup_read(ROOT_TASK_GROUP, file);
        assert_eq!(read(V6_12, GroupFile::StatLocal), Ok("throttled_usec 0\n".to_string()));
        let why = |file| read(V6_12, file).expect_err("it is not there").to_string();
        assert!(why(GroupFile::Stat).contains("not modelled"), "{}", why(GroupFile::Stat));
        assert!(why(GroupFile::Max).contains("no such file"));
        assert!(read(V4_5_RC1, GroupFile::Stat).expect("cgroup v1").starts_with("nr_periods 0\nnr_throttled 0\n"));
    }

    #[test]
    fn the_closest_nice_level_is_found() {
        assert_eq!((closest_nice(1024), closest_nice(88_761), closest_nice(2)), (0, -20, 19));
        // 1001 is nearer to 1024 than to 820.
        assert_eq!(closest_nice(1001), 0);
    }
}
