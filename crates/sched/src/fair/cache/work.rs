//! fair.c: the look at all CPUs that a task takes on its way to user mode, to find the last level cache (LLC) in which its
//! process runs.

use super::CacheGroupId;
use crate::arch::Arch;
use crate::core::Sched;
use crate::sched::TaskId;
use fentry::fentry;
use units::{CpuId, CpuMask, unlikely};

/// Work of cache-aware scheduling that a task does on its way to user mode. A scheduler without it need not implement this.
pub trait TaskCacheWork {
    /// Whether any task has such work.
    fn has_cache_work(&self) -> bool {
        false
    }

    /// Whether `task` is to call `task_cache_work` on its way to user mode.
    fn cache_work_pending(&self, _task: TaskId) -> bool {
        false
    }

    /// The current task of `cpu` looks where its process runs.
    fn task_cache_work(&mut self, _cpu: CpuId) {}
}

impl<A: Arch> TaskCacheWork for Sched<A> {
    #[inline]
    fn has_cache_work(&self) -> bool {
        unlikely(self.balance.cache.nr_works > 0)
    }

    fn cache_work_pending(&self, task: TaskId) -> bool {
        self.has_cache_work() && self.balance.cache.task[task].cache_work
    }

    fn task_cache_work(&mut self, cpu: CpuId) {
        self.on_cpu(cpu);
        Sched::task_cache_work(self);
    }
}

/// fair.c: update_avg_scale(). An average that moves more slowly with a bigger LLC.
pub(super) fn update_avg_scale(avg: u64, sample: u64, llc_size: u32) -> u64 {
    let divisor = i64::from((llc_size >> 2).clamp(2, 8));
    avg.wrapping_add_signed(sample.wrapping_sub(avg) as i64 / divisor)
}

/// What the process does in one LLC.
struct Occupancy {
    /// The sum, over the LLC's CPUs, of the process's part of a CPU's run time; NICE_0_LOAD is all of it.
    sum: u64,
    most: u64,
    cpu: Option<CpuId>,
}

impl<A: Arch> Sched<A> {
    /// fair.c: task_tick_cache(). The first task of its process in an epoch is to look.
    #[inline(never)]
    #[fentry]
    pub(in crate::fair) fn task_tick_cache(&mut self, cpu: CpuId, curr: TaskId) {
        let Some(group) = self.balance.cache.task[curr].group else { return };
        let epoch = self.balance.cache.rq[cpu].cpu_epoch;
        self.read_cache_group(group);
        if self.balance.cache.group[group].epoch.wrapping_sub(epoch) as i64 >= 0 {
            return;
        }
        self.write_cache_group(group);
        let cache = &mut self.balance.cache;
        if !std::mem::replace(&mut cache.task[curr].cache_work, true) {
            cache.nr_works += 1;
            cache.group[group].epoch = epoch;
        }
    }

    /// fair.c: task_cache_work(). Finds the LLC in which the process of the current task ran most, and how many of its tasks run.
    /// The preference only changes to an LLC in which it ran more than twice as much as in the present one.
    #[fentry]
    pub(crate) fn task_cache_work(&mut self) {
        let curr_cpu = self.this_cpu;
        let p = self.rq[curr_cpu].curr.expect("a task is on its way to user mode");
        let cache = &mut self.balance.cache;
        cache.nr_works -= u32::from(std::mem::take(&mut cache.task[p].cache_work));
        let Some(group) = cache.task[p].group.filter(|_| !self.task[p].exiting) else { return };
        let now = self.jiffies();
        if (now.wrapping_sub(self.balance.cache.group[group].next_scan) as i64) < 0 {
            return;
        }
        self.write_cache_group(group);
        self.balance.cache.group[group].next_scan = now + self.llc_epoch_period();
        if self.invalid_llc_nr(group, curr_cpu) || self.exceed_llc_capacity(group, curr_cpu) {
            return self.forget_preferred_llc(group);
        }
        let mut cpus = self.get_scan_cpumasks(p, group);
        let preferred = self.balance.cache.group[group].cpu.and_then(|cpu| self.llc_id(cpu));
        let (mut most, mut most_cpu, mut current, mut nr_running) = (0, None, 0, 0);
        while let Some(cpu) = cpus.first() {
            let Some(sd) = self.domains.sd_llc[cpu] else {
                cpus.clear(cpu);
                continue;
            };
            cpus.subtract(self.domains.sched_domain_span(sd));
            let occupancy = self.occupancy_of_llc(cpu, group, &mut nr_running);
            if occupancy.sum > most {
                (most, most_cpu) = (occupancy.sum, occupancy.cpu);
            }
            if preferred.is_some() && self.llc_id(cpu) == preferred {
                current = occupancy.sum;
            }
        }
        let llc_size = self.domains.sd_llc_size[curr_cpu];
        self.write_cache_group(group);
        let of = &mut self.balance.cache.group[group];
        if most > 2 * current {
            of.cpu = most_cpu;
        }
        of.nr_running_avg = update_avg_scale(of.nr_running_avg, nr_running, llc_size);
    }

    /// The loop body of task_cache_work(): the CPUs in the LLC of `cpu`. Adds to `nr_running` those that run a task of the
    /// process.
    fn occupancy_of_llc(&mut self, cpu: CpuId, group: CacheGroupId, nr_running: &mut u64) -> Occupancy {
        let sd = self.domains.sd_llc[cpu].expect("the caller has it");
        let mut found = Occupancy { sum: 0, most: 0, cpu: None };
        let mut from = 0;
        while let Some(i) = self.domains.sched_domain_span(sd).next_from(from) {
            from = i.index() + 1;
            let occ = self.fraction_mm_sched(i, group);
            found.sum += occ;
            if occ > found.most {
                (found.most, found.cpu) = (occ, Some(i));
            }
            self.read_rq_curr(i);
            if let Some(curr) = self.rq[i].curr {
                self.read_task(curr);
                let same = self.balance.cache.task[curr].group == Some(group) && !self.task[curr].exiting;
                *nr_running += u64::from(same);
            }
        }
        found
    }

    /// fair.c: fraction_mm_sched(). The process's part of the fair tasks' run time on a CPU; NICE_0_LOAD is all of it.
    #[fentry]
    fn fraction_mm_sched(&mut self, cpu: CpuId, group: CacheGroupId) -> u64 {
        self.cpu_epoch_lock(cpu);
        self.write_cache_time(cpu);
        let (now, period) = (self.jiffies(), self.llc_epoch_period());
        let cache = &mut self.balance.cache;
        cache.__update_mm_sched(cpu, group, now, period);
        let runtime = cache.group[group].pcpu_sched[cpu.index()].runtime;
        let nice_0_load = self.kernel.load_resolution.nice_0_load();
        let occ = nice_0_load.wrapping_mul(runtime) / (cache.rq[cpu].cpu_runtime + 1);
        self.cpu_epoch_unlock(cpu);
        occ
    }

    /// fair.c: get_scan_cpumasks(). All CPUs; for a task that prefers a node, the CPUs of that node, of the preferred LLC's node,
    /// and of its own.
    pub(super) fn get_scan_cpumasks(&self, p: TaskId, group: CacheGroupId) -> CpuMask {
        let preferred = self.numa_preferred_nid(p).filter(|_| self.numa.is_on());
        let Some(nid) = preferred else { return self.cpu_online_mask.clone() };
        let mut cpus = self.numa.cpumask_of_node(nid).clone();
        for cpu in self.balance.cache.group[group].cpu.into_iter().chain([self.task[p].cpu]) {
            cpus.or_with(self.numa.cpumask_of_node(self.cpu_to_node(cpu)));
        }
        cpus.and(&self.cpu_online_mask)
    }
}
