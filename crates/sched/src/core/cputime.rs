//! cputime.c: what a tick interrupts, by which cpu.stat divides run time.

use super::Sched;
use crate::arch::Arch;
use crate::sched::TaskId;
use crate::scheduler::Scheduler;
use units::CpuId;

/// Time of a group's tasks, including the groups below, in ticks, by what each tick interrupted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct GroupTicks {
    pub user: u64,
    pub system: u64,
    /// The part of `user` that tasks with a nice level above 0 had.
    pub nice: u64,
}

impl<A: Arch> Sched<A> {
    /// cgroup.h: cgroup_account_cputime(), for a task that is not fair: other groups' run time is that of their entities. In ns.
    #[doc(alias = "cgroup_account_cputime")]
    pub(crate) fn cgroup_account_unfair_cputime(&mut self, p: TaskId, delta_exec: u64) {
        let mut group = Some(self.task_cold[p].css);
        while let Some(tg) = group {
            self.tg[tg].unfair_runtime += delta_exec;
            group = self.tg[tg].parent;
        }
    }

    /// cputime.c: account_process_tick(). `user_tick`: the tick interrupts user mode.
    ///
    /// Differs: every tick counts in full, even with irq time accounting, which would leave out interrupts; tasks and
    /// CPUs have no sums of their own.
    pub(crate) fn account_process_tick(&mut self, cpu: CpuId, user_tick: bool) {
        let Some(p) = self.rq[cpu].curr else { return };
        let nice = user_tick && self.current_is_nice(cpu);
        let mut group = Some(self.task_cold[p].css);
        // account_user_time(), account_system_time(): cgroup_account_cputime_field()
        while let Some(tg) = group {
            let group_of = &mut self.tg[tg];
            let ticks = &mut group_of.ticks;
            *if user_tick { &mut ticks.user } else { &mut ticks.system } += 1;
            ticks.nice += u64::from(nice);
            group = group_of.parent;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::cgroup::GroupFile;
    use crate::sched::{Policy, ROOT_TASK_GROUP, TgId};
    use crate::testing::{Hand, MS, machine, task_in};
    use crate::versions::{Kernel, V4_15, V6_1, V6_12};

    const CPU0: CpuId = CpuId(0);

    /// A task in the inner one of two nested groups. Returns the task, the outer group and the inner one.
    fn nested(kernel: Kernel) -> (Sched<Hand>, TaskId, TgId, TgId) {
        let mut s = machine(kernel, 1);
        let outer = s.sched_create_group(ROOT_TASK_GROUP, "outer", 1024);
        let inner = s.sched_create_group(outer, "inner", 1024);
        let p = s.fork(CPU0, task_in(inner, "t")).expect("it may begin");
        Scheduler::wake_up_new_task(&mut s, CPU0, p);
        Scheduler::schedule(&mut s, CPU0, false);
        (s, p, outer, inner)
    }

    #[test]
    fn run_time_of_a_real_time_task_is_its_groups_too() {
        for kernel in [V4_15, V6_1, V6_12] {
            let (mut s, p, outer, inner) = nested(kernel);
            let run = |s: &mut Sched<Hand>, ms: u64| {
                for _ in 0..ms {
                    s.arch.now += MS;
                    s.on_cpu(CPU0);
                    s.scheduler_tick();
                }
            };
            run(&mut s, 3);
            s.sched_setscheduler(p, Policy::Fifo, 1).expect("root may");
            run(&mut s, 4);
            for stat in [outer, inner].map(|tg| s.cgroup_read(tg, GroupFile::Stat).expect("cpu.stat")) {
                assert!(stat.starts_with("usage_usec 7000\n"), "{}: {stat}", kernel.name);
            }
        }
    }

    #[test]
    fn a_groups_run_time_is_divided_by_what_its_ticks_interrupted() {
        for (kernel, nice_time) in [(V4_15, None), (V6_1, None), (V6_12, Some("nice_usec 8000\n"))] {
            let (mut s, p, outer, inner) = nested(kernel);
            let tick = |s: &mut Sched<Hand>, user_tick| {
                s.arch.now += 4 * MS;
                s.on_cpu(CPU0);
                s.account_process_tick(CPU0, user_tick);
                s.scheduler_tick();
            };
            (0..4).for_each(|_| tick(&mut s, true));
            s.set_user_nice(p, 5);
            (0..2).for_each(|_| tick(&mut s, true));
            (0..2).for_each(|_| tick(&mut s, false));
            let expected = format!("usage_usec 32000\nuser_usec 24000\nsystem_usec 8000\n{}", nice_time.unwrap_or(""));
            for group in [outer, inner] {
                let stat = s.cgroup_read(group, GroupFile::Stat).expect("cpu.stat");
                assert!(stat.starts_with(&expected), "{}: {stat}", kernel.name);
                assert_eq!(stat.contains("nice_usec"), nice_time.is_some());
            }
        }
    }
}
