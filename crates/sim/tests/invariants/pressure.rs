//! Pressure stall information counts who is there.

use machine::hardware::Hardware;
use sched::core::Sched;
use sched::core::cgroup::Hierarchy;
use sched::psi::Psi;
use sched::sched::{OnRq, ROOT_TASK_GROUP, TaskId, TaskState, TgId};
use units::CpuId;

/// The counts of each group and CPU are those of the tasks below it.
pub fn pressure<const COSTS: bool>(sched: &Sched<Hardware<COSTS>>) {
    if !sched.psi_enabled() {
        return;
    }
    for (group, _) in sched.tg.iter().filter(|(group, _)| !sched.is_autogroup(*group)) {
        for cpu in (0..sched.nr_cpus()).map(CpuId::new) {
            let Some(counted) = sched.psi_counts(group, cpu) else { continue };
            let (mut waiting, mut queued, mut runs) = (0, 0, false);
            let members =
                sched.task.iter().filter(|(p, task)| task.alive && task.cpu == cpu && is_below(sched, *p, group));
            for (p, task) in members {
                let asleep = match task.state {
                    TaskState::Interruptible | TaskState::Uninterruptible => true,
                    // Its CPU has yet to finish the wakeup; one that it was moved to for it counts no waiting of it.
                    TaskState::Waking => !task.sched_remote_wakeup,
                    TaskState::Running | TaskState::New | TaskState::Dead => false,
                };
                waiting += u32::from(asleep && task.in_iowait);
                queued += u32::from(task.on_rq == OnRq::Queued && !sched.se[task.se].sched_delayed);
                runs |= sched.rq[cpu].curr == Some(p) && sched.kernel.psi != Psi::ByQueued;
            }
            // Pressure is a thing of cgroup v2: where groups are v1's, as in the kernels without it, all tasks count as the system's.
            if sched.cgroup_hierarchy == Hierarchy::Legacy && group != ROOT_TASK_GROUP {
                assert_eq!(counted, (0, 0, false), "pressure of {group:?}, a group of v1");
                continue;
            }
            assert_eq!(counted, (waiting, queued, runs), "pressure of {group:?} on {cpu:?}: waiting, queued, runs");
        }
    }
}

fn is_below<const COSTS: bool>(sched: &Sched<Hardware<COSTS>>, p: TaskId, group: TgId) -> bool {
    let above = std::iter::successors(Some(sched.task_cold[p].css), |&tg| sched.tg[tg].parent);
    above.into_iter().any(|tg| tg == group)
}
