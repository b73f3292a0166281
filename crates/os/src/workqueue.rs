//! kernel/workqueue.c: work that is left to kernel threads.
//!
//! The work of a bound queue is done by a worker of the pool of the CPU that queued it, of normal or high priority. The
//! work of an unbound queue is done by any worker of the pool of that CPU's pod ([`UnboundPods`]). When work comes and
//! none of its workers runs, a pool wakes its first idle worker. This is the concurrency management of bound pools. In
//! unbound pools no worker counts as running; there each worker that takes an item wakes the next worker for another
//! item.
//!
//! If a worker of a bound pool sleeps in the middle of its work and the pool has more to do, another worker takes over.
//!
//! Modelled: two workers for each bound pool of normal priority, where one kind of work sleeps, one for each of high priority, whose work never
//! does, and [`UNBOUND_WORKERS`] for each pod. Absent: the creation of workers on demand, rescuers, CPU-intensive work, limits of queues (`max_active`) but
//! for that of one ([`Workqueues::conversion_active`]), pods that change as CPUs go and come.

mod rules;
#[cfg(test)]
mod tests;

pub use rules::{UnboundPods, WorkerCounts, WorkerWakeup};

use crate::block::BioId;
use crate::kthread::driver_waits;
use crate::{Os, OsRules, Step, charge, paths};
use sched::arch::Arch;
use sched::layout::Line;
use sched::sched::{TaskId, TaskState, WakeFlags};
use sched::scheduler::Scheduler;
use std::collections::VecDeque;
use units::{CpuId, CpuMask, Ns};

/// workqueue.c: wq_cache_shard_size: the approximate number of cores of a shard.
const CACHE_SHARD_SIZE: usize = 8;

/// workqueue.c: llc_populate_cpu_shard_id(): divides the CPUs of a cache into shards of whole cores, as evenly as
/// possible, the larger ones first. `leader`: the first thread of a CPU's core.
#[doc(alias = "llc_calc_shard_layout")]
#[doc(alias = "llc_shard_is_full")]
pub fn cache_shards(cache: &CpuMask, leader: impl Fn(CpuId) -> CpuId) -> Vec<CpuMask> {
    let leads = |cpu: &CpuId| leader(*cpu) == *cpu;
    let cores = cache.iter().filter(leads).count();
    let count = ((cores + CACHE_SHARD_SIZE / 2) / CACHE_SHARD_SIZE).max(1);
    let size = |shard: usize| cores / count + usize::from(shard < cores % count);
    let mut shards = vec![CpuMask::default()];
    let mut cores_in_shard = 0;
    for cpu in cache.iter().filter(leads) {
        if cores_in_shard == size(shards.len() - 1) {
            shards.push(CpuMask::default());
            cores_in_shard = 0;
        }
        cores_in_shard += 1;
        let threads = cache.iter().filter(|&thread| leader(thread) == cpu);
        threads.for_each(|thread| shards.last_mut().expect("there is one").set(thread));
    }
    shards
}

/// Workers of an unbound pool.
pub const UNBOUND_WORKERS: usize = 4;

/// A pool, by its index in [`Workqueues`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PoolId(u32);

/// Where work is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Queue {
    /// By the CPU that queues it.
    Bound,
    /// The same, by a worker of nice -20 (`WQ_HIGHPRI`).
    BoundHighpri,
    /// `WQ_UNBOUND`
    Unbound,
}

/// A worker, and its progress.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Worker {
    pool: PoolId,
    /// Whether it is not among the idle ones.
    works: bool,
    /// What it is in the middle of, and whether it sleeps there.
    work: Option<Work>,
    asleep: bool,
}

impl Worker {
    pub fn new(pool: PoolId) -> Worker {
        Worker { pool, works: false, work: None, asleep: false }
    }
}

/// A work item.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Work {
    /// cpufreq_governor.c: dbs_work_handler(), for a policy by its number; `until`: when the wait of the driver that it
    /// has asked ends.
    Dbs { policy: u16, until: Option<Ns> },
    /// xfs_aops.c: xfs_end_io(): a write to fresh blocks is done; logs the new size of its file.
    EndIo(BioId),
    /// ext4/page-io.c: ext4_end_io_rsv_work(), for one request; it may sleep.
    ConvertUnwritten(BioId),
    /// xfs_log_cil.c: xlog_cil_push_work(); it may sleep.
    CilPush,
    /// block/blk-mq.c: blk_mq_requeue_work(): steps of durable writes.
    Requeue,
    /// xfs_log.c: xlog_iodone(), with the callbacks of what the buffer holds.
    LogDone(BioId),
    /// xfs_buf_item.c: xfs_buf_iodone_callbacks(): metadata is in its final place.
    BufDone(BioId),
    /// mm/vmstat.c: vmstat_update(), for the CPU that does it.
    VmstatUpdate,
    /// mm/vmstat.c: vmstat_shepherd().
    VmstatShepherd,
}

/// workqueue.h: struct delayed_work: work that is left to a worker when a timer of the wheel fires.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum DelayedWork {
    /// Of the CPU whose timer it is.
    VmstatUpdate,
    VmstatShepherd,
}

/// A worker that [`Os::workqueue_init`] requests.
#[derive(Clone, Debug)]
pub struct WorkerSpec {
    pub pool: PoolId,
    /// `kworker/...`
    pub comm: String,
    /// Where it may run; `None`: everywhere.
    pub cpus: Option<CpuMask>,
    pub highpri: bool,
}

#[derive(Clone, Debug)]
struct Pool {
    line: Line,
    items: VecDeque<Work>,
    /// In reverse order: the first one is last.
    idle: Vec<TaskId>,
    bound: bool,
    /// The workers that `nr_running` counts because they work and do not sleep; always 0 in an unbound pool.
    running: u32,
    /// In a bound pool, the workers that went to sleep in the middle of their work and have not run since.
    asleep: Vec<TaskId>,
    /// `__pod_cpumask`: where its workers are woken, although they may run elsewhere.
    pod: Option<CpuMask>,
}

impl Pool {
    /// `nr_running`, from which a pool knows whether a worker will look for more work; includes the workers that
    /// wq_worker_waking_up() counts.
    #[doc(alias = "wq_worker_waking_up")]
    fn nr_running<S: Scheduler>(&self, sched: &S, counts: WorkerCounts) -> u32 {
        let woken = match counts {
            WorkerCounts::Woken => self.asleep.iter().filter(|&&worker| sched.is_awake(worker)).count() as u32,
            WorkerCounts::Running => 0,
        };
        self.running + woken
    }

    /// workqueue.c: kick_pool_pick(): if there is work and none of the pool's workers runs (need_more_worker()), the
    /// first idle worker, which is the last that became idle. The worker stays on the idle list until it runs, so
    /// another call does no harm.
    fn kick_pool_pick<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, counts: WorkerCounts) -> Option<TaskId> {
        if self.items.is_empty() || self.nr_running(sched, counts) > 0 {
            return None;
        }
        let first = *self.idle.last()?;
        if let Some(pod) = &self.pod {
            sched.set_wake_cpu_within(cpu, first, pod);
        }
        Some(first)
    }

    /// workqueue.c: kick_pool(), wake_up_worker() until v6.5: wakes that worker.
    #[doc(alias = "wake_up_worker")]
    fn kick_pool<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, counts: WorkerCounts) {
        if let Some(worker) = self.kick_pool_pick(sched, cpu, counts) {
            sched.wake(cpu, worker, WakeFlags::NONE);
        }
    }

    /// Lets go of the pool's lock, and wakes a worker if there is need: under the lock or after it.
    fn kick_and_unlock<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, rules: &OsRules) {
        let picked = self.kick_pool_pick(sched, cpu, rules.counts);
        match (rules.worker_wakeup, picked) {
            (WorkerWakeup::Locked, Some(worker)) => {
                sched.wake(cpu, worker, WakeFlags::NONE);
                sched.arch_mut().unlock(cpu, self.line);
            }
            (_, picked) => {
                sched.arch_mut().unlock(cpu, self.line);
                if let Some(worker) = picked {
                    sched.wake(cpu, worker, WakeFlags::NONE);
                }
            }
        }
    }
}

/// All pools: for each CPU the normal and the high-priority one, then one for each pod.
#[derive(Clone, Debug, Default)]
pub struct Workqueues {
    pools: Vec<Pool>,
    /// The pod of each CPU.
    pod_of: Vec<u32>,
    /// The queue of ext4's conversions, which are done one at a time (fs/ext4/super.c: its `max_active` is 1): whether
    /// one is under way or in a pool, and those that wait for it.
    ///
    /// Differs: since v6.9 each node converts one at a time.
    conversion_active: bool,
    inactive_conversions: VecDeque<BioId>,
}

impl Workqueues {
    fn pool(&mut self, id: PoolId) -> &mut Pool {
        &mut self.pools[id.0 as usize]
    }

    fn id(&self, queue: Queue, cpu: CpuId) -> PoolId {
        PoolId(match queue {
            Queue::Bound => 2 * cpu.index() as u32,
            Queue::BoundHighpri => 2 * cpu.index() as u32 + 1,
            Queue::Unbound => 2 * self.pod_of.len() as u32 + self.pod_of[cpu.index()],
        })
    }
}

impl Os {
    /// Makes the pools of a machine with these `pods`, which contain every CPU once. Returns the workers that they
    /// need.
    pub fn workqueue_init(&mut self, pods: &[CpuMask]) -> Vec<WorkerSpec> {
        let nr_cpus = pods.iter().map(CpuMask::weight).sum();
        let pod_of = |cpu| pods.iter().position(|pod| pod.contains(cpu)).expect("every CPU is in a pod") as u32;
        self.workqueues.pod_of = (0..nr_cpus).map(CpuId::new).map(pod_of).collect();
        let alone = pods.len() == 1;
        let follows = self.rules.unbound != UnboundPods::Node && !alone;
        let pod_cpus = pods.iter().map(|pod| follows.then(|| pod.clone()));
        let bound = std::iter::repeat_n((true, None), 2 * nr_cpus);
        for (bound, pod) in bound.chain(pod_cpus.map(|pod| (false, pod))) {
            let line = self.allocate_named(&["worker_pool: lock, worklist"]);
            let (items, idle) = (VecDeque::new(), Vec::new());
            self.workqueues.pools.push(Pool { line, items, idle, bound, running: 0, asleep: Vec::new(), pod });
        }
        let mut workers = Vec::new();
        let mut worker = |pool: PoolId, comm: String, cpus: Option<CpuMask>, highpri: bool| {
            workers.push(WorkerSpec { pool, comm, cpus, highpri });
        };
        for cpu in (0..nr_cpus).map(CpuId::new) {
            for (queue, number, high) in [(Queue::Bound, 0, ""), (Queue::Bound, 1, ""), (Queue::BoundHighpri, 0, "H")] {
                let comm = format!("kworker/{}:{number}{high}", cpu.index());
                worker(self.workqueues.id(queue, cpu), comm, Some(CpuMask::single(cpu)), queue == Queue::BoundHighpri);
            }
        }
        for pod in pods {
            let pool = self.workqueues.id(Queue::Unbound, pod.first().expect("no pod is empty"));
            for number in 0..UNBOUND_WORKERS {
                worker(pool, format!("kworker/u{}:{number}", pool.0), (!follows && !alone).then(|| pod.clone()), false);
            }
        }
        workers
    }

    /// Adds a worker that sleeps.
    pub fn new_worker(&mut self, pool: PoolId, task: TaskId) {
        self.workqueues.pool(pool).idle.push(task);
    }

    /// Whether [`Os::workqueue_init`] has been called.
    pub fn has_workqueues(&self) -> bool {
        !self.workqueues.pools.is_empty()
    }

    /// What cpufreq_governor.c's dbs_irq_work() does, or the timer's handler until v4.5: leaves the sample of a policy
    /// to a worker of `cpu`.
    pub fn queue_dbs_work<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, policy: u16) {
        self.queue_work(sched, cpu, Queue::Bound, Work::Dbs { policy, until: None });
    }

    /// workqueue.c: cancel_work_sync(), of governors' samples that no worker has begun. Returns their policies.
    #[doc(alias = "cancel_work_sync")]
    pub fn cancel_dbs_works(&mut self) -> Vec<u16> {
        let mut cancelled = Vec::new();
        for pool in &mut self.workqueues.pools {
            pool.items.retain(|work| match *work {
                Work::Dbs { policy, until: None } => {
                    cancelled.push(policy);
                    false
                }
                _ => true,
            });
        }
        cancelled
    }

    /// workqueue.c: queue_work(): leaves `work` to a worker.
    pub(crate) fn queue_work<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, queue: Queue, work: Work) {
        self.queue_work_on(sched, cpu, cpu, queue, work);
    }

    /// workqueue.c: queue_work_on(): `cpu` leaves it to a worker of `of`.
    pub(crate) fn queue_work_on<S: Scheduler>(
        &mut self,
        sched: &mut S,
        cpu: CpuId,
        of: CpuId,
        queue: Queue,
        work: Work,
    ) {
        let id = self.workqueues.id(queue, of);
        let pool = self.workqueues.pool(id);
        charge(sched, cpu, paths::QUEUE_WORK);
        sched.arch_mut().lock(cpu, pool.line);
        pool.items.push_back(work);
        pool.kick_and_unlock(sched, cpu, &self.rules);
    }

    /// The same for a conversion of ext4's: while one is active, further ones are not put into a pool.
    #[doc(alias = "__queue_work")]
    pub(crate) fn queue_conversion<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, bio: BioId) {
        if !std::mem::replace(&mut self.workqueues.conversion_active, true) {
            return self.queue_work(sched, cpu, Queue::Unbound, Work::ConvertUnwritten(bio));
        }
        let id = self.workqueues.id(Queue::Unbound, cpu);
        let line = self.workqueues.pool(id).line;
        charge(sched, cpu, paths::QUEUE_WORK);
        sched.arch_mut().lock(cpu, line);
        self.workqueues.inactive_conversions.push_back(bio);
        sched.arch_mut().unlock(cpu, line);
    }

    /// workqueue.c: pwq_dec_nr_in_flight() of that queue, at the end of a conversion: puts the next one into the pool
    /// of the worker, which looks there at once.
    fn conversion_done(&mut self, pool: PoolId) {
        match self.workqueues.inactive_conversions.pop_front() {
            Some(bio) => self.workqueues.pool(pool).items.push_back(Work::ConvertUnwritten(bio)),
            None => self.workqueues.conversion_active = false,
        }
    }

    /// workqueue.c: worker_thread(): does the work that there is, then sleeps.
    pub(crate) fn worker_thread<S: Scheduler>(
        &mut self,
        sched: &mut S,
        cpu: CpuId,
        task: TaskId,
        worker: &mut Worker,
    ) -> Step {
        if std::mem::take(&mut worker.asleep) {
            self.wq_worker_running(task, worker.pool);
        }
        loop {
            let Some(work) = worker.work.take().or_else(|| self.next_work(sched, cpu, task, worker)) else {
                sched.set_current_state(cpu, TaskState::Interruptible);
                return Step::Sleep;
            };
            let (work, step) = match work {
                Work::Dbs { policy, until } => dbs_work(sched, cpu, policy, until),
                Work::VmstatUpdate => (work, self.vmstat_update(sched, cpu)),
                Work::VmstatShepherd => (work, self.vmstat_shepherd(sched, cpu)),
                work => (work, self.fs_work(sched, cpu, task, work)),
            };
            if let Step::Delay(_) = step {
                return step;
            }
            if let Step::Done(_) = step {
                if let Work::ConvertUnwritten(_) = work {
                    self.conversion_done(worker.pool);
                }
                continue;
            }
            worker.work = Some(work);
            if let Step::Sleep | Step::SleepUntil(_) = step {
                worker.asleep = true;
                self.wq_worker_sleeping(sched, cpu, task, worker.pool);
            }
            return step;
        }
    }

    /// The first item of a pool, unless another of its workers runs (keep_working(), need_more_worker()). Without an
    /// item `task` becomes the first of the idle workers. In pools where no worker counts as running, another worker is
    /// woken for the next item (process_one_work()).
    fn next_work<S: Scheduler>(
        &mut self,
        sched: &mut S,
        cpu: CpuId,
        task: TaskId,
        worker: &mut Worker,
    ) -> Option<Work> {
        let pool = self.workqueues.pool(worker.pool);
        sched.arch_mut().lock(cpu, pool.line);
        if worker.works {
            pool.running -= u32::from(pool.bound);
        } else {
            // worker_leave_idle()
            pool.idle.retain(|&other| other != task);
        }
        let work = if pool.nr_running(sched, self.rules.counts) == 0 { pool.items.pop_front() } else { None };
        worker.works = work.is_some();
        if worker.works {
            pool.running += u32::from(pool.bound);
            pool.kick_and_unlock(sched, cpu, &self.rules);
            charge(sched, cpu, paths::PROCESS_ONE_WORK);
        } else {
            pool.idle.push(task);
            sched.arch_mut().unlock(cpu, pool.line);
        }
        work
    }

    /// workqueue.c: wq_worker_sleeping(): an idle worker takes over the rest.
    ///
    /// Differs: until v5.1 the idle worker is woken by try_to_wake_up_local(), after the sleeper has left the run
    /// queue.
    fn wq_worker_sleeping<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, task: TaskId, id: PoolId) {
        let pool = self.workqueues.pool(id);
        if !pool.bound {
            return;
        }
        let counts = self.rules.counts;
        let locks = counts == WorkerCounts::Running;
        if locks {
            sched.arch_mut().lock(cpu, pool.line);
        }
        pool.running -= 1;
        pool.kick_pool(sched, cpu, counts);
        pool.asleep.push(task);
        if locks {
            sched.arch_mut().unlock(cpu, pool.line);
        }
    }

    /// workqueue.c: wq_worker_running(): the worker counts as running from here on, unless it has counted since its
    /// wakeup.
    fn wq_worker_running(&mut self, task: TaskId, id: PoolId) {
        let pool = self.workqueues.pool(id);
        if pool.bound {
            pool.asleep.retain(|&other| other != task);
            pool.running += 1;
        }
    }
}

/// A governor's sample: up to where its driver waits, or from there on.
fn dbs_work<S: Scheduler>(sched: &mut S, cpu: CpuId, policy: u16, until: Option<Ns>) -> (Work, Step) {
    let until = until.unwrap_or_else(|| {
        charge(sched, cpu, paths::DBS_WORK_HANDLER);
        let mut iowait = sched.arch().policy_cpus(policy).to_vec();
        iowait.retain(|&of| sched.nr_iowait_cpu(of) > 0);
        let wait = sched.arch_mut().dbs_work_handler(cpu, policy, &iowait);
        sched.arch().sched_clock(cpu) + wait
    });
    let step = driver_waits(sched, cpu, until).unwrap_or_else(|| {
        sched.arch_mut().dbs_work_done(cpu, policy);
        Step::Done(0)
    });
    (Work::Dbs { policy, until: Some(until) }, step)
}
