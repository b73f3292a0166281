//! kernel/workqueue.c: work that is left to kernel threads.
//!
//! A bound queue's work is done by a worker of the pool of the CPU that queued it, normal or of high priority; an unbound queue's by any
//! worker of one pool whose workers may run everywhere. A pool wakes one idle worker when work comes and none of its workers runs
//! (concurrency management of bound pools; unbound ones wake one each time).
//!
//! When a worker sleeps in the middle of its work and its bound pool has more to do, another one of the pool takes over.
//!
//! Modelled: two workers for each bound pool of normal priority, where one kind of work sleeps, one for each of high priority, whose work never
//! does, and [`UNBOUND_WORKERS`] unbound ones. Absent: the creation of workers on demand, rescuers, CPU-intensive work.

use crate::block::BioId;
use crate::{Os, Step, charge, paths};
use sched::arch::Arch;
use sched::layout::Line;
use sched::sched::{TaskId, TaskState, WakeFlags};
use sched::scheduler::Scheduler;
use std::collections::VecDeque;
use units::CpuId;

/// Workers of the unbound pool.
pub const UNBOUND_WORKERS: usize = 4;

/// A pool by its place in [`Workqueues`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PoolId(u32);

/// Where work is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Queue {
    /// On the CPU that queues it.
    Bound,
    /// There, by a worker of nice -20 (`WQ_HIGHPRI`).
    BoundHighpri,
    /// `WQ_UNBOUND`
    Unbound,
}

/// A worker, and how far it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Worker {
    pool: PoolId,
    began: bool,
    /// What it is in the middle of; whether it sleeps there.
    work: Option<Work>,
    asleep: bool,
}

impl Worker {
    pub fn new(pool: PoolId) -> Worker {
        Worker { pool, began: false, work: None, asleep: false }
    }
}

/// Something to do, so far all of it for a file system.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Work {
    /// xfs_aops.c: xfs_end_io(): a write to fresh blocks is done; its file's size is logged.
    EndIo(BioId),
    /// ext4/page-io.c: ext4_end_io_rsv_work(), of one request; it may sleep.
    ConvertUnwritten(BioId),
    /// xfs_log_cil.c: xlog_cil_push_work(); it may sleep.
    CilPush,
    /// block/blk-mq.c: blk_mq_requeue_work(): steps of durable writes.
    Requeue,
    /// xfs_log.c: xlog_iodone(), with the callbacks of what the buffer holds.
    LogDone(BioId),
    /// xfs_buf_item.c: xfs_buf_iodone_callbacks(): metadata is in its place.
    BufDone(BioId),
}

#[derive(Clone, Debug)]
struct Pool {
    line: Line,
    items: VecDeque<Work>,
    idle: Vec<TaskId>,
    running: u32,
}

/// All pools: of each CPU the normal and the high-priority one, then the unbound one.
#[derive(Clone, Debug, Default)]
pub struct Workqueues {
    pools: Vec<Pool>,
}

impl Workqueues {
    fn pool(&mut self, id: PoolId) -> &mut Pool {
        &mut self.pools[id.0 as usize]
    }

    fn id(&self, queue: Queue, cpu: CpuId) -> PoolId {
        PoolId(match queue {
            Queue::Bound => 2 * cpu.index() as u32,
            Queue::BoundHighpri => 2 * cpu.index() as u32 + 1,
            Queue::Unbound => self.pools.len() as u32 - 1,
        })
    }
}

impl Os {
    /// Makes the pools of a machine with `nr_cpus` CPUs, and says which workers they need: the pool, the CPU, and whether it is of
    /// high priority.
    pub fn workqueue_init(&mut self, nr_cpus: usize) -> Vec<(PoolId, Option<CpuId>, bool)> {
        for _ in 0..=2 * nr_cpus {
            let line = self.allocate(1);
            let pool = Pool { line, items: VecDeque::new(), idle: Vec::new(), running: 0 };
            self.workqueues.pools.push(pool);
        }
        let of_cpu =
            |cpu: CpuId| [(Queue::Bound, cpu, false), (Queue::Bound, cpu, false), (Queue::BoundHighpri, cpu, true)];
        let bound = (0..nr_cpus).map(CpuId::new).flat_map(of_cpu);
        let bound = bound.map(|(queue, cpu, high)| (self.workqueues.id(queue, cpu), Some(cpu), high));
        let unbound = self.workqueues.id(Queue::Unbound, CpuId(0));
        bound.chain((0..UNBOUND_WORKERS).map(|_| (unbound, None, false))).collect()
    }

    /// workqueue.c: queue_work(): leaves `work` to a worker.
    pub(crate) fn queue_work<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, queue: Queue, work: Work) {
        let id = self.workqueues.id(queue, cpu);
        let pool = self.workqueues.pool(id);
        charge(sched, cpu, paths::QUEUE_WORK);
        sched.arch_mut().lock(cpu, pool.line);
        pool.items.push_back(work);
        if queue == Queue::Unbound || pool.running == 0 {
            // It runs from here on, as far as others' work is concerned.
            if let Some(worker) = pool.idle.pop() {
                pool.running += 1;
                sched.wake(cpu, worker, WakeFlags::NONE);
            }
        }
        sched.arch_mut().unlock(cpu, pool.line);
    }

    /// workqueue.c: worker_thread(): does what there is to do, and sleeps.
    pub(crate) fn worker_thread<S: Scheduler>(
        &mut self,
        sched: &mut S,
        cpu: CpuId,
        task: TaskId,
        worker: &mut Worker,
    ) -> Step {
        // wq_worker_waking_up(), where it slept in the middle of its work.
        if !std::mem::replace(&mut worker.began, true) || std::mem::take(&mut worker.asleep) {
            self.workqueues.pool(worker.pool).running += 1;
        }
        loop {
            let Some(work) = worker.work.take().or_else(|| self.next_work(sched, cpu, task, worker.pool)) else {
                sched.set_current_state(cpu, TaskState::Interruptible);
                return Step::Sleep { until: None };
            };
            let step = self.fs_work(sched, cpu, task, work);
            if let Step::Done(_) = step {
                continue;
            }
            worker.work = Some(work);
            if let Step::Sleep { .. } = step {
                worker.asleep = true;
                self.wq_worker_sleeping(sched, cpu, worker.pool);
            }
            return step;
        }
    }

    /// The first piece of work of a pool; without one `task` is among its idle workers.
    fn next_work<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, task: TaskId, id: PoolId) -> Option<Work> {
        let pool = self.workqueues.pool(id);
        sched.arch_mut().lock(cpu, pool.line);
        let work = pool.items.pop_front();
        if work.is_none() && !pool.idle.contains(&task) {
            pool.idle.push(task);
            pool.running = pool.running.saturating_sub(1);
        }
        sched.arch_mut().unlock(cpu, pool.line);
        if work.is_some() {
            charge(sched, cpu, paths::PROCESS_ONE_WORK);
        }
        work
    }

    /// workqueue.c: wq_worker_sleeping(): an idle worker goes on with the rest.
    fn wq_worker_sleeping<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, id: PoolId) {
        let pool = self.workqueues.pool(id);
        pool.running = pool.running.saturating_sub(1);
        if pool.running == 0
            && !pool.items.is_empty()
            && let Some(other) = pool.idle.pop()
        {
            pool.running += 1;
            sched.wake(cpu, other, WakeFlags::NONE);
        }
    }
}
