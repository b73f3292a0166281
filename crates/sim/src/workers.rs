//! Kernel threads that do work for others: workqueues' workers, jbd2, xfsaild, schedutil's threads.

use crate::engine::Sim;
use crate::program::{AddressSpace, KernelLoop, Op, Outcome, Program, TaskSpec};
use machine::hardware::Hardware;
use os::workqueue::{UnboundPods, cache_shards};
use sched::attr::SchedAttr;
use sched::autogroup::Session;
use sched::cpufreq_schedutil::thread::SugovKthread;
use sched::scheduler::Scheduler;
use units::{CpuId, CpuMask};

/// A thread that loops in the kernel for ever.
struct Forever(KernelLoop);

impl Program for Forever {
    fn next(&mut self, _last: Outcome) -> Op {
        Op::Kernel(self.0)
    }
}

fn kthread(comm: &str, nice: i32, turns: KernelLoop) -> TaskSpec {
    TaskSpec {
        attr: Some(SchedAttr { sched_nice: nice, ..SchedAttr::NORMAL }),
        memory: AddressSpace::Kernel,
        ..TaskSpec::new(comm, Forever(turns))
    }
}

/// A thread that does one kind of work until it is told to stop.
struct UntilStopped(Option<KernelLoop>);

impl Program for UntilStopped {
    fn next(&mut self, _last: Outcome) -> Op {
        self.0.take().map_or(Op::Exit, Op::Kernel)
    }
}

fn sugov_thread(thread: SugovKthread) -> TaskSpec {
    TaskSpec {
        attr: Some(thread.attr),
        cpus: thread.cpus,
        memory: AddressSpace::Kernel,
        ..TaskSpec::new(&thread.comm, UntilStopped(Some(KernelLoop::Sugov(thread.policy))))
    }
}

/// WQ_HIGHPRI's nice level (include/linux/workqueue.h: HIGHPRI_NICE_LEVEL).
const HIGHPRI_NICE_LEVEL: i32 = -20;

impl<const COSTS: bool, S: Scheduler<Arch = Hardware<COSTS>>> Sim<COSTS, S> {
    /// Starts the threads that carry out governors' choices: schedutil's, if its driver needs them, and workers, if
    /// other governors leave their samples to them.
    /// `later`: a governor that will come leaves its samples to workers.
    pub fn start_cpufreq_threads(&mut self, later: bool) {
        if self.sched.arch().frequency().is_some_and(|frequency| later || frequency.leaves_samples()) {
            self.start_workers();
        }
        for thread in self.sched.sugov_kthread_create() {
            let policy = thread.policy;
            let task = self.spawn_daemon(sugov_thread(thread));
            self.sched.sugov_kthread_started(policy, task);
        }
    }

    /// The same for schedutil's threads while the kernel runs, by what executes on `cpu`.
    ///
    /// Differs: kthreadd forks them.
    pub(crate) fn start_sugov_threads(&mut self, cpu: CpuId) {
        for thread in self.sched.sugov_kthread_create() {
            let policy = thread.policy;
            let task = self.fork_task(cpu, None, sugov_thread(thread), false).expect("the kernel's own is not refused");
            self.sched.set_session(cpu, task, Session::Init);
            self.outlives_programs(task);
            self.sched.sugov_kthread_started(policy, task);
            self.sched.wake_up_new_task(cpu, task);
        }
    }

    /// Starts the threads of the mounted file system, if there is one: jbd2 or xfsaild, and workers if there are none
    /// yet.
    pub fn start_kernel_threads(&mut self) {
        let Some(journal) = self.os.fs_threads() else { return };
        self.start_workers();
        let (comm, turns) = if journal { ("jbd2", KernelLoop::Kjournald2) } else { ("xfsaild", KernelLoop::Xfsaild) };
        self.spawn_daemon(kthread(comm, 0, turns));
        if self.os.fs_wants_irq() {
            let everywhere = (0..self.sched.nr_cpus()).map(CpuId::new).collect();
            let irq = self.request_irq("sda", everywhere);
            self.os.set_fs_irq(irq);
        }
    }

    /// Starts each CPU's workers, and a few that may run anywhere, unless they are there. They have been asleep since
    /// boot.
    pub(crate) fn start_workers(&mut self) {
        if self.os.has_workqueues() {
            return;
        }
        let pods = self.pods();
        for worker in self.os.workqueue_init(&pods) {
            let pool = worker.pool;
            let nice = if worker.highpri { HIGHPRI_NICE_LEVEL } else { 0 };
            let spec = TaskSpec {
                cpus: worker.cpus.map(|cpus| self.housekeeping(cpus)),
                ..kthread(&worker.comm, nice, KernelLoop::Worker(pool))
            };
            let task = self.daemon_asleep(spec);
            self.os.new_worker(pool, task);
        }
    }

    /// workqueue.c: wq_numa_init(), or workqueue_init_topology() since v6.6: the groups of CPUs that share unbound
    /// workers.
    fn pods(&self) -> Vec<CpuMask> {
        if self.os.rules.unbound == UnboundPods::Node {
            return self
                .sched
                .arch()
                .topology
                .nodes()
                .iter()
                .map(|node| node.cpus.clone())
                .filter(|cpus| !cpus.is_empty())
                .collect();
        }
        let mut pods: Vec<CpuMask> = Vec::new();
        for cpu in (0..self.sched.nr_cpus()).map(CpuId::new) {
            let shares = |pod: &CpuMask| pod.first().is_some_and(|other| self.sched.cpus_share_cache(cpu, other));
            match pods.iter().position(shares) {
                Some(pod) => pods[pod].set(cpu),
                None => pods.push(CpuMask::single(cpu)),
            }
        }
        if self.os.rules.unbound == UnboundPods::CacheShard {
            let leader =
                |cpu: CpuId| self.sched.arch().siblings(cpu).iter().fold(cpu, |first, &other| first.min(other));
            pods = pods.iter().flat_map(|cache| cache_shards(cache, leader)).collect();
            pods.sort_by_key(CpuMask::first);
        }
        pods
    }

    /// The CPUs of a pod that are not isolated, or all of them if all are (wq_unbound_cpumask).
    fn housekeeping(&self, cpus: CpuMask) -> CpuMask {
        let kept = self.sched.kthread_cpus().filter(|_| cpus.weight() > 1).map(|kthreads| cpus.and(&kthreads));
        kept.filter(|kept| !kept.is_empty()).unwrap_or(cpus)
    }
}
