//! kernel/workqueue.c: work that is left to kernel threads.
//!
//! A bound queue's work is done by a worker of the pool of the CPU that queued it, normal or of high priority; an unbound queue's by any
//! worker of the pool of that CPU's pod ([`UnboundPods`]). A pool wakes one idle worker when work comes and none of its workers runs
//! (concurrency management of bound pools; unbound ones wake one each time).
//!
//! When a worker sleeps in the middle of its work and its bound pool has more to do, another one of the pool takes over.
//!
//! Modelled: two workers for each bound pool of normal priority, where one kind of work sleeps, one for each of high priority, whose work never
//! does, and [`UNBOUND_WORKERS`] for each pod. Absent: the creation of workers on demand, rescuers, CPU-intensive work, pods that change as CPUs go and
//! come.

use crate::block::BioId;
use crate::kthread::driver_waits;
use crate::{Os, Step, charge, paths};
use sched::arch::Arch;
use sched::behaviour;
use sched::layout::Line;
use sched::sched::{TaskId, TaskState, WakeFlags};
use sched::scheduler::Scheduler;
use std::collections::VecDeque;
use units::{CpuId, CpuMask, Ns};

behaviour! {
    /// Which CPUs share a pool of unbound workers, and where those run.
    pub enum UnboundPods = "workqueue.unbound" {
        Node = "node", since "v3.10", commit "4c16bd327c74", "those of a NUMA node, where its workers stay";
        Cache = "cache", since "v6.6", commit "8639ecebc9b1",
            "those of a last level cache (WQ_AFFN_CACHE); its workers may run everywhere, and are woken there";
    }
}

/// Workers of an unbound pool.
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
    /// `new`: it sleeps ([`Os::new_worker`]) until somebody wakes it for work; otherwise it begins by itself.
    pub fn new(pool: PoolId, new: bool) -> Worker {
        Worker { pool, began: new, work: None, asleep: false }
    }
}

/// Something to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Work {
    /// cpufreq_governor.c: dbs_work_handler(), of a policy by its number; until when the driver that it has asked waits.
    Dbs { policy: u16, until: Option<Ns> },
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

/// A worker that [`Os::workqueue_init`] asks for.
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
    idle: Vec<TaskId>,
    /// Workers that have never run.
    new: Vec<TaskId>,
    running: u32,
    /// `__pod_cpumask`, where its workers are to be woken though they may run elsewhere.
    pod: Option<CpuMask>,
}

impl Pool {
    /// workqueue.c: kick_pool(), wake_up_worker() until v6.5: an idle worker, if there is one, is to look.
    #[doc(alias = "wake_up_worker")]
    fn kick_pool<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId) {
        if let Some(worker) = self.idle.pop() {
            if let Some(pod) = &self.pod {
                sched.set_wake_cpu_within(cpu, worker, pod);
            }
            sched.wake(cpu, worker, WakeFlags::NONE);
        } else if let Some(worker) = self.new.pop() {
            sched.wake_up_new_task(cpu, worker);
        } else {
            return;
        }
        // It runs from here on, as far as others' work is concerned.
        self.running += 1;
    }
}

/// All pools: of each CPU the normal and the high-priority one, then each pod's.
#[derive(Clone, Debug, Default)]
pub struct Workqueues {
    pools: Vec<Pool>,
    /// Of which pod each CPU is.
    pod_of: Vec<u32>,
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
    /// Makes the pools of a machine with these `pods`, of which every CPU is in one, and says which workers they need.
    pub fn workqueue_init(&mut self, pods: &[CpuMask]) -> Vec<WorkerSpec> {
        let nr_cpus = pods.iter().map(CpuMask::weight).sum();
        let pod_of = |cpu| pods.iter().position(|pod| pod.contains(cpu)).expect("every CPU is in a pod") as u32;
        self.workqueues.pod_of = (0..nr_cpus).map(CpuId::new).map(pod_of).collect();
        let alone = pods.len() == 1;
        let follows = self.rules.unbound == UnboundPods::Cache && !alone;
        let pod_cpus = pods.iter().map(|pod| follows.then(|| pod.clone()));
        for pod in std::iter::repeat_n(None, 2 * nr_cpus).chain(pod_cpus) {
            let line = self.allocate(1);
            let pool = Pool { line, items: VecDeque::new(), idle: Vec::new(), new: Vec::new(), running: 0, pod };
            self.workqueues.pools.push(pool);
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

    /// A worker sleeps that has never run.
    pub fn new_worker(&mut self, pool: PoolId, task: TaskId) {
        self.workqueues.pool(pool).new.push(task);
    }

    /// Whether [`Os::workqueue_init`] has been called.
    pub fn has_workqueues(&self) -> bool {
        !self.workqueues.pools.is_empty()
    }

    /// What cpufreq_governor.c's dbs_irq_work() does, or until v4.5 the timer's handler: leaves the sample of a policy to a worker of `cpu`.
    pub fn queue_dbs_work<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, policy: u16) {
        self.queue_work(sched, cpu, Queue::Bound, Work::Dbs { policy, until: None });
    }

    /// workqueue.c: queue_work(): leaves `work` to a worker.
    pub(crate) fn queue_work<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, queue: Queue, work: Work) {
        let id = self.workqueues.id(queue, cpu);
        let pool = self.workqueues.pool(id);
        charge(sched, cpu, paths::QUEUE_WORK);
        sched.arch_mut().lock(cpu, pool.line);
        pool.items.push_back(work);
        if queue == Queue::Unbound || pool.running == 0 {
            pool.kick_pool(sched, cpu);
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
            let (work, step) = match work {
                Work::Dbs { policy, until } => dbs_work(sched, cpu, policy, until),
                work => (work, self.fs_work(sched, cpu, task, work)),
            };
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
        if pool.running == 0 && !pool.items.is_empty() {
            pool.kick_pool(sched, cpu);
        }
    }
}

/// A governor's sample, up to where its driver waits, or from there on.
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
