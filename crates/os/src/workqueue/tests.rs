//! Tests of pools and their workers.

use super::*;
use sched::core::{Boot, Sched, SleepsSinceBoot, TaskInit};
use sched::cpu_topology::CpuTopology;
use sched::sched::ROOT_TASK_GROUP;
use sched::trace::Ipi;
use sched::versions::V4_15;

/// Time stands still, and messages are dropped.
struct Still;

impl Arch for Still {
    fn sched_clock(&self, _cpu: CpuId) -> Ns {
        Ns::from_ms(1_000)
    }
    fn send_ipi(&mut self, _from: CpuId, _to: CpuId, _ipi: Ipi) {}
    fn wake_polling_idle(&mut self, _from: CpuId, _to: CpuId) {}
}

const CPU: CpuId = CpuId(0);

/// Two CPUs whose unbound pool has two workers that sleep; the second is the first idle one.
fn machine() -> (Sched<Still>, Os, PoolId, [TaskId; 2]) {
    machine_of(Still)
}

fn machine_of<A: Arch>(arch: A) -> (Sched<A>, Os, PoolId, [TaskId; 2]) {
    let mut sched = Sched::new(arch, Boot::new(V4_15, CpuTopology::symmetric(1, 1, 1, 2, 1), 250));
    let mut os = Os::new(OsRules::V4_15, 250);
    let specs = os.workqueue_init(&[[CPU, CpuId(1)].into_iter().collect()]);
    let pool = specs.last().expect("unbound workers come last").pool;
    let workers = ["first", "second"].map(|comm| {
        let comm = comm.to_string();
        let init = TaskInit { comm, attr: None, cpus_allowed: None, mm: 0, group: ROOT_TASK_GROUP };
        let task = sched.fork(CPU, init).expect("an ordinary task");
        sched.asleep_since_boot(task);
        os.new_worker(pool, task);
        task
    });
    (sched, os, pool, workers)
}

#[test]
fn the_first_idle_worker_is_asked_until_it_runs_and_then_asks_the_next() {
    let (mut sched, mut os, pool, [next, first]) = machine();
    for _ in 0..2 {
        os.queue_work(&mut sched, CPU, Queue::Unbound, Work::Requeue);
        assert_eq!([next, first].map(|worker| sched.is_awake(worker)), [false, true], "only {first:?} has been asked");
    }
    let mut worker = Worker::new(pool);
    assert_eq!(os.next_work(&mut sched, CPU, first, &mut worker), Some(Work::Requeue));
    assert!(sched.is_awake(next));
    assert_eq!(os.workqueues.pool(pool).idle, [next], "it is idle until it runs");
    assert_eq!(os.next_work(&mut sched, CPU, first, &mut worker), Some(Work::Requeue));
    assert_eq!(os.next_work(&mut sched, CPU, first, &mut worker), None);
    assert_eq!(os.workqueues.pool(pool).idle, [next, first], "whoever becomes idle is the first to be asked");
}

#[test]
fn conversions_of_ext4_are_done_one_at_a_time() {
    let (mut sched, mut os, pool, [other, first]) = machine();
    let [one, two, three] = [0, 1, 2].map(BioId);
    for bio in [one, two, three] {
        os.queue_conversion(&mut sched, CPU, bio);
    }
    let mut workers = [Worker::new(pool), Worker::new(pool)];
    assert_eq!(os.next_work(&mut sched, CPU, first, &mut workers[0]), Some(Work::ConvertUnwritten(one)));
    assert_eq!(os.next_work(&mut sched, CPU, other, &mut workers[1]), None, "though it sleeps there");
    for bio in [two, three] {
        os.conversion_done(pool);
        assert_eq!(os.next_work(&mut sched, CPU, first, &mut workers[0]), Some(Work::ConvertUnwritten(bio)));
    }
    // Meanwhile the work of other queues is done.
    os.queue_work(&mut sched, CPU, Queue::Unbound, Work::Requeue);
    assert_eq!(os.next_work(&mut sched, CPU, other, &mut workers[1]), Some(Work::Requeue));
    os.conversion_done(pool);
    assert_eq!(os.next_work(&mut sched, CPU, first, &mut workers[0]), None);
    os.queue_conversion(&mut sched, CPU, one);
    assert_eq!(os.next_work(&mut sched, CPU, other, &mut workers[1]), Some(Work::ConvertUnwritten(one)));
}

#[test]
fn of_a_bound_pools_workers_one_goes_on() {
    let (mut sched, mut os, _, [one, other]) = machine();
    let id = os.workqueues.id(Queue::Bound, CPU);
    let mut workers = [Worker::new(id), Worker::new(id)];
    for _ in 0..3 {
        os.queue_work(&mut sched, CPU, Queue::Bound, Work::Requeue);
    }
    assert!(os.next_work(&mut sched, CPU, one, &mut workers[0]).is_some());
    os.wq_worker_sleeping(&mut sched, CPU, one, id);
    assert!(os.next_work(&mut sched, CPU, other, &mut workers[1]).is_some());
    // The worker that slept in its work goes on with it; the other one leaves the rest to it.
    os.wq_worker_running(one, id);
    assert!(os.next_work(&mut sched, CPU, other, &mut workers[1]).is_none());
    assert!(os.next_work(&mut sched, CPU, one, &mut workers[0]).is_some());
}

#[test]
fn who_sleeps_in_the_middle_of_its_work_has_the_next_worker_asked_for_the_rest() {
    for (queued, asked) in [(1, false), (2, true)] {
        let (mut sched, mut os, _, [one, other]) = machine();
        let id = os.workqueues.id(Queue::Bound, CPU);
        for _ in 0..queued {
            os.queue_work(&mut sched, CPU, Queue::Bound, Work::Requeue);
        }
        let mut worker = Worker::new(id);
        assert!(os.next_work(&mut sched, CPU, one, &mut worker).is_some());
        os.new_worker(id, other);
        os.wq_worker_sleeping(&mut sched, CPU, one, id);
        assert_eq!(sched.is_awake(other), asked, "{queued} pieces of work");
    }
}

#[test]
fn a_worker_that_was_woken_is_waited_for_or_not() {
    for (counts, asked) in [(WorkerCounts::Woken, false), (WorkerCounts::Running, true)] {
        let (mut sched, mut os, _, [one, other]) = machine();
        os.rules.counts = counts;
        // It runs, sleeps in the middle of its work and is woken.
        sched.wake_up_new_task(CPU, one);
        let cpu = sched.task_cpu(one);
        let id = os.workqueues.id(Queue::Bound, cpu);
        os.new_worker(id, other);
        assert_eq!(Scheduler::schedule(&mut sched, cpu, false), Some(one));
        os.workqueues.pool(id).running = 1;
        sched.set_current_state(cpu, TaskState::Uninterruptible);
        os.wq_worker_sleeping(&mut sched, cpu, one, id);
        assert_eq!(Scheduler::schedule(&mut sched, cpu, false), None);
        assert_eq!(os.workqueues.pool(id).nr_running(&sched, counts), 0, "it sleeps");
        assert!(sched.wake(cpu, one, WakeFlags::NONE));
        os.queue_work(&mut sched, cpu, Queue::Bound, Work::Requeue);
        assert_eq!(sched.is_awake(other), asked, "{counts:?}");
        // When it runs, it counts as the running worker.
        os.wq_worker_running(one, id);
        let mut worker = Worker { works: true, ..Worker::new(id) };
        assert_eq!(os.next_work(&mut sched, cpu, one, &mut worker), Some(Work::Requeue));
        assert_eq!(os.workqueues.pool(id).asleep, []);
    }
}
/// The locks that are taken and given back, in order.
#[derive(Default)]
struct Locks(Vec<(Line, bool)>);

impl Arch for Locks {
    fn sched_clock(&self, _cpu: CpuId) -> Ns {
        Ns::from_ms(1_000)
    }
    fn send_ipi(&mut self, _from: CpuId, _to: CpuId, _ipi: Ipi) {}
    fn wake_polling_idle(&mut self, _from: CpuId, _to: CpuId) {}
    fn lock(&mut self, _by: CpuId, line: Line) {
        self.0.push((line, true));
    }
    fn unlock(&mut self, _by: CpuId, line: Line) {
        self.0.push((line, false));
    }
}

#[test]
fn the_pools_lock_is_held_while_a_worker_is_woken_or_was_before() {
    for (wakeup, under) in [(WorkerWakeup::Locked, true), (WorkerWakeup::Unlocked, false)] {
        let (mut sched, mut os, pool, [other, first]) = machine_of(Locks::default());
        os.rules.worker_wakeup = wakeup;
        let line = os.workqueues.pool(pool).line;
        // Whether others are taken before it is given back, and after.
        let others_locks = |sched: &mut Sched<Locks>| {
            let locks = std::mem::take(&mut sched.arch.0);
            let at = |taken| locks.iter().position(|lock| *lock == (line, taken)).expect("it is taken");
            let (from, to) = (at(true), at(false));
            (to - from > 1, locks.len() - to > 1)
        };
        sched.arch.0.clear();
        os.queue_work(&mut sched, CPU, Queue::Unbound, Work::Requeue);
        assert_eq!([other, first].map(|worker| sched.is_awake(worker)), [false, true]);
        assert_eq!(others_locks(&mut sched), (under, !under), "who leaves work: {wakeup:?}");
        os.queue_work(&mut sched, CPU, Queue::Unbound, Work::Requeue);
        sched.arch.0.clear();
        let mut worker = Worker::new(pool);
        assert!(os.next_work(&mut sched, CPU, first, &mut worker).is_some());
        assert!(sched.is_awake(other), "the second piece is for the other worker");
        assert_eq!(others_locks(&mut sched), (under, !under), "who takes it: {wakeup:?}");
    }
}
