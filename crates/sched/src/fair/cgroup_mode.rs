//! fair.c: how many times its shares a group weighs (`cgroup_mode`, v7.3; [`GroupShares::Concurrent`](super::group::GroupShares)).
//!
//! The shares of a group that is busy on many CPUs are divided among them, so that each of its tasks there weighs little against one
//! outside. The mode says what is divided instead.

use super::group::calc_smp_shares;
use crate::arch::Arch;
use crate::core::Sched;
use crate::cpu_topology::SCHED_CAPACITY_SCALE;
use crate::load_weight::{LoadResolution, sched_prio_to_weight};
use crate::sched::*;

/// sched/debug.c: the values of the tunable `cgroup_mode`, in the order of the kernel's names for them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CgroupMode {
    /// `up`: nothing is divided; the group weighs its shares on each CPU.
    Up,
    /// `smp`: the shares, as before v7.3.
    Smp,
    /// `concur`: the shares times the runnable tasks, at most once for each CPU. The default.
    Concur,
    /// `max`: the shares times the CPUs; no part is more than a task of nice -20 weighs.
    Max,
    /// `tasks`: the shares times the runnable tasks.
    Tasks,
}

impl CgroupMode {
    /// The kernel's names for the values, in their order.
    pub const NAMES: [&str; 5] = ["up", "smp", "concur", "max", "tasks"];

    /// What the tunable's value means; the kernel takes any other for the default.
    pub fn of(value: u64) -> CgroupMode {
        use CgroupMode::{Concur, Max, Smp, Tasks, Up};
        [Up, Smp, Concur, Max, Tasks].get(value as usize).copied().unwrap_or(Concur)
    }
}

impl<A: Arch> Sched<A> {
    /// fair.c: calc_up_shares(), calc_smp_shares(), calc_concur_shares(), calc_max_shares(), calc_tasks_shares(). The weight of the
    /// entity that represents the queue `group`, in the scale of stored weights.
    #[doc(alias = "calc_concur_shares")]
    pub(super) fn calc_mode_shares(&mut self, resolution: LoadResolution, group: CfsRqId, shares: u64) -> u64 {
        let mode = CgroupMode::of(self.sysctl.cgroup_mode);
        if mode == CgroupMode::Up {
            return shares;
        }
        let tg = self.cfs_rq[group].tg;
        let tg_load = self.tg_load_avg(tg);
        let (cpus, tasks) = (self.tg_cpus(), self.tg_tasks(tg));
        let (divided, most) = match mode {
            CgroupMode::Up | CgroupMode::Smp => (shares, shares),
            CgroupMode::Concur => (shares * tasks.min(cpus), shares * tasks.min(cpus)),
            CgroupMode::Max => (shares * cpus, resolution.scale_load(sched_prio_to_weight[0].into())),
            CgroupMode::Tasks => (shares * tasks, shares * tasks),
        };
        calc_smp_shares(resolution, &self.cfs_rq[group], divided, most, tg_load).0
    }

    /// fair.c: tg_cpus(). How many CPUs a group may use.
    /// Differs: groups have no cpusets here, so that is all that are online.
    fn tg_cpus(&self) -> u64 {
        self.cpu_online_mask.weight() as u64
    }

    /// fair.c: tg_tasks(). How many tasks of the group are runnable, on average, rounded down, but one at least. The sum lies beside
    /// `load_avg`, which has just been looked at.
    fn tg_tasks(&self, tg: TgId) -> u64 {
        (self.tg[tg].runnable_avg / u64::from(SCHED_CAPACITY_SCALE)).max(1)
    }
}
