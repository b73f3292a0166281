//! What the real-time and the deadline class share when tasks change CPUs: waiting tasks that may run elsewhere, CPUs that
//! have such tasks, the choice of the nearest CPU of a set, and moving a task under both queues' locks. Each class itself
//! decides the order of its tasks, and which CPUs are worth asking (rt/migrate.rs, deadline/migrate.rs).

use crate::arch::Arch;
use crate::core::Sched;
use crate::rt::migrate::LowestChoice;
use crate::sched::*;
use crate::topology::SdFlags;
use units::{CpuId, CpuMask};

/// A class that pushes and pulls tasks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum PushClass {
    Rt,
    Dl,
}

/// The waiting tasks of a queue that may run elsewhere, in the order of their keys, then of their arrival.
#[derive(Clone, Debug)]
pub struct Pushable<K> {
    waiting: Vec<(K, TaskId)>,
}

impl<K> Default for Pushable<K> {
    fn default() -> Pushable<K> {
        Pushable { waiting: Vec::new() }
    }
}

impl<K: Copy> Pushable<K> {
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// The task that is pushed first.
    #[inline]
    pub fn first(&self) -> Option<(K, TaskId)> {
        self.waiting.first().copied()
    }

    pub fn tasks(&self) -> impl Iterator<Item = TaskId> + '_ {
        self.waiting.iter().map(|&(_, p)| p)
    }

    /// `before`: whether the task with the first key is pushed before the one with the second.
    pub(crate) fn insert(&mut self, key: K, p: TaskId, before: impl Fn(K, K) -> bool) {
        debug_assert!(self.tasks().all(|task| task != p), "{p:?} waits already");
        let at = self.waiting.partition_point(|&(other, _)| !before(key, other));
        self.waiting.insert(at, (key, p));
    }

    /// Returns whether it was there.
    pub(crate) fn remove(&mut self, p: TaskId) -> bool {
        let at = self.waiting.iter().position(|&(_, task)| task == p);
        at.map(|at| self.waiting.remove(at)).is_some()
    }
}

/// A root domain's CPUs that have tasks of a class to give away: `rto_mask` and `rto_count`, `dlo_mask` and `dlo_count`.
#[derive(Clone, Debug, Default)]
pub struct Overloaded {
    pub mask: CpuMask,
    pub count: u32,
}

impl<A: Arch> Sched<A> {
    /// Records in the queue and in its root domain whether `cpu` has tasks to give away.
    pub(crate) fn set_overloaded(&mut self, cpu: CpuId, class: PushClass, overloaded: bool) {
        let before = match class {
            PushClass::Rt => &mut self.rt[cpu].overloaded,
            PushClass::Dl => &mut self.dl[cpu].overloaded,
        };
        if std::mem::replace(before, overloaded) != overloaded {
            self.tell_overloaded(cpu, class, overloaded);
        }
    }

    /// Records it in the root domain, unless the queue is offline.
    pub(crate) fn tell_overloaded(&mut self, cpu: CpuId, class: PushClass, overloaded: bool) {
        if !self.rq[cpu].online {
            return;
        }
        self.write_root_domain(cpu);
        let rd = self.root_domain_mut(cpu);
        let all = match class {
            PushClass::Rt => &mut rd.rto,
            PushClass::Dl => &mut rd.dlo,
        };
        if overloaded {
            all.mask.set(cpu);
            all.count += 1;
        } else {
            all.mask.clear(cpu);
            all.count -= 1;
        }
    }

    /// The end of find_lowest_rq() and find_later_rq(), given the suitable CPUs. Prefers the CPU where the task was; then
    /// this CPU, which is cheaper to preempt than one that must be notified; then what `choose` picks among the near ones,
    /// or all.
    pub(crate) fn nearest_cpu(
        &mut self,
        p: TaskId,
        mask: &CpuMask,
        choose: impl Fn(&mut Self, &CpuMask, &CpuMask) -> Option<CpuId>,
    ) -> Option<CpuId> {
        let cpu = self.task[p].cpu;
        if mask.contains(cpu) {
            return Some(cpu);
        }
        let this_cpu = Some(self.this_cpu).filter(|&this| mask.contains(this));
        let domains: Vec<_> = self.domains.for_each_domain(cpu).collect();
        for sd in domains {
            self.read_domain(sd);
            if !self.domains[sd].flags.has(SdFlags::SD_WAKE_AFFINE) {
                continue;
            }
            let span = self.domains.sched_domain_span(sd);
            if this_cpu.is_some_and(|this| span.contains(this)) {
                return this_cpu;
            }
            let near = mask.and(span);
            if let Some(best) = choose(self, mask, &near) {
                return Some(best);
            }
        }
        this_cpu.or_else(|| self.cpumask_choose(mask))
    }

    /// cpumask_any_and_distribute(), or its predecessor cpumask_first_and().
    pub(crate) fn cpumask_choose(&mut self, mask: &CpuMask) -> Option<CpuId> {
        match self.kernel.rt.lowest_choice {
            LowestChoice::First => mask.first(),
            LowestChoice::Distributed => self.cpumask_any_distribute(mask),
        }
    }

    /// The end of push_rt_task() and push_dl_task(). The queue of `to` was found, and is locked.
    pub(crate) fn push_to(&mut self, p: TaskId, from: CpuId, to: CpuId) {
        self.migrate_locked(p, from, to);
        self.resched_curr(to);
        self.rq_unlock(to);
    }

    /// The loop of pull_rt_task() and pull_dl_task(): visits each CPU in `overloaded` that is `worth` it, and takes what
    /// `pick` finds there, under both locks.
    pub(crate) fn pull_from(
        &mut self,
        this_cpu: CpuId,
        overloaded: &CpuMask,
        worth: impl Fn(&mut Self, CpuId) -> bool,
        pick: impl Fn(&Self, CpuId) -> Option<TaskId>,
    ) {
        let mut resched = false;
        for cpu in overloaded.iter().filter(|&cpu| cpu != this_cpu) {
            if !worth(self, cpu) {
                continue;
            }
            self.rq_lock(cpu);
            if let Some(p) = pick(self, cpu) {
                resched = true;
                self.migrate_locked(p, cpu, this_cpu);
            }
            self.rq_unlock(cpu);
        }
        if resched {
            self.resched_curr(this_cpu);
        }
    }

    /// deactivate_task(), set_task_cpu(), activate_task(), with both queues locked.
    fn migrate_locked(&mut self, p: TaskId, from: CpuId, to: CpuId) {
        self.task[p].on_rq = OnRq::Migrating;
        self.deactivate_task(from, p, QueueFlags::default());
        self.set_task_cpu(p, to);
        self.activate_task(to, p, QueueFlags::default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_urgent_comes_first_and_equals_in_order_of_arrival() {
        let mut pushable = Pushable::default();
        for (key, p) in [(5, 1), (3, 2), (5, 3), (3, 4)] {
            pushable.insert(key, TaskId(p), |a: i32, b| a < b);
        }
        assert_eq!(pushable.tasks().map(|p| p.0).collect::<Vec<_>>(), [2, 4, 1, 3]);
        assert!(pushable.remove(TaskId(2)) && !pushable.remove(TaskId(2)));
        assert_eq!(pushable.first(), Some((3, TaskId(4))));
    }
}
