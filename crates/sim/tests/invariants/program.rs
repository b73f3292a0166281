//! What the tasks of a case do: scripts compiled from its ensembles, none of which can deadlock by itself.

use super::case::{Case, Ensemble, Kind, LIMITS, Step};
use super::dimensions::{ATTRS, WEIGHTS};
use machine::hardware::Hardware;
use os::pipe::PipeId;
use os::sync::{CondId, MutexId, SemaphoreId, SyncOp};
use sched::core::Sched;
use sched::core::cgroup::{GroupFile, Hierarchy};
use sched::sched::{Policy, ROOT_TASK_GROUP, TgId};
use sched::scheduler::Scheduler;
use sim::engine::LinuxSim;
use sim::program::{AddressSpace, GroupWrite, Op, Outcome, Program, TaskSpec};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use units::{CpuId, CpuMask, Cycles, Ns, Prng};

/// What was asked of one task, and whether it has done it.
#[derive(Clone, Copy, Default, Debug)]
pub struct Asked {
    /// `Op::RunFor`, in all.
    pub run: Ns,
    /// `Op::Work`, in all.
    pub work: Cycles,
    pub finished: bool,
    /// How often it has written a group's limits.
    pub limits: u64,
}

/// By task number, which is in the task's name.
pub type Ledger = Rc<RefCell<Vec<Asked>>>;

/// One entry of a script.
enum Action {
    Step(Step),
    Read(PipeId, u64),
    /// A read was asked for so many bytes and may have returned fewer.
    ReadRest(PipeId, u64),
    Write(PipeId, u64),
    Sync(SyncOp),
    Fork(Script),
    /// wait4() until no child is left.
    WaitAll,
    /// Takes an item under the mutex, waiting on the condition while there is none.
    Consume(Shelf),
    /// Puts one there, and tells one waiter, or all.
    Produce(Shelf),
}

/// A shelf for a producer and consumers.
#[derive(Clone)]
struct Shelf {
    mutex: MutexId,
    cond: CondId,
    items: Rc<Cell<u64>>,
    broadcast: bool,
}

/// How far a `Consume`, `Produce` or `WaitAll` is.
enum Phase {
    Outside,
    /// The lock was asked for, or a child waited for.
    Locked,
    /// The lock is to be given back.
    Leaving,
}

struct Script {
    number: usize,
    actions: VecDeque<Action>,
    phase: Phase,
    groups: Rc<Vec<TgId>>,
    nr_cpus: usize,
    working_set: u64,
    memory: AddressSpace,
    ledger: Ledger,
    /// The file with a group's quota.
    file: GroupFile,
}

impl Program for Script {
    fn next(&mut self, last: Outcome) -> Op {
        loop {
            let Some(action) = self.actions.pop_front() else {
                self.ledger.borrow_mut()[self.number].finished = true;
                return Op::Exit;
            };
            return match action {
                Action::Step(step) => match self.step(step) {
                    Some(op) => op,
                    None => continue,
                },
                Action::Read(pipe, bytes) => {
                    self.actions.push_front(Action::ReadRest(pipe, bytes));
                    Op::Read { pipe, bytes }
                }
                Action::ReadRest(_, bytes) if last.value == bytes => continue,
                Action::ReadRest(pipe, bytes) => {
                    assert!(last.value > 0 && last.value < bytes, "a read of {bytes} bytes returned {}", last.value);
                    self.actions.push_front(Action::Read(pipe, bytes - last.value));
                    continue;
                }
                Action::Write(pipe, bytes) => Op::Write { pipe, bytes },
                Action::Sync(op) => Op::Sync(op),
                Action::Fork(script) => Op::Fork(Box::new(script.spec())),
                Action::WaitAll => {
                    // The outcome that comes first is another operation's: nobody has waited yet.
                    let first = matches!(self.phase, Phase::Outside);
                    if !first && last.value == 0 {
                        self.phase = Phase::Outside;
                        continue;
                    }
                    self.phase = Phase::Locked;
                    self.actions.push_front(Action::WaitAll);
                    Op::Wait
                }
                Action::Consume(shelf) => self.consume(shelf),
                Action::Produce(shelf) => self.produce(shelf),
            };
        }
    }
}

impl Script {
    fn step(&self, step: Step) -> Option<Op> {
        Some(match step {
            Step::Run(time) => Op::RunFor(time),
            Step::Work(cycles) => Op::Work(cycles),
            Step::Sleep(time) => Op::SleepFor(time),
            Step::Io(time) => Op::BlockIo(time),
            Step::Yield => Op::Yield,
            Step::Nice(nice) => Op::SetNice(nice),
            Step::Policy(policy) => Op::SetPolicy { policy, priority: 0 },
            Step::Affinity(bits) => {
                let mask: CpuMask = (0..self.nr_cpus).filter(|cpu| bits >> cpu & 1 != 0).map(CpuId::new).collect();
                if mask.weight() == 0 {
                    return None;
                }
                Op::SetAffinity(mask)
            }
            Step::Group(number) => Op::MoveToGroup(*self.groups.get(number)?),
            Step::Attr(number) => Op::SetAttr(Box::new(ATTRS[number])),
            Step::Weigh(number, weight) => {
                let group = *self.groups.get(number)?;
                let (file, text) = WEIGHTS[weight];
                Op::WriteGroup(Box::new(GroupWrite { group, file, text: text.to_string() }))
            }
            Step::Setsid => Op::Setsid,
            Step::Exec => Op::Exec,
            Step::Autogroup(nice) => Op::SetAutogroupNice(nice),
            Step::Limit(number, limit) => {
                let group = *self.groups.get(number).filter(|_| number > 0)?;
                self.ledger.borrow_mut()[self.number].limits += 1;
                let text = max(self.file, LIMITS[limit]);
                Op::WriteGroup(Box::new(GroupWrite { group, file: self.file, text }))
            }
        })
    }

    fn consume(&mut self, shelf: Shelf) -> Op {
        let (mutex, cond) = (shelf.mutex, shelf.cond);
        match self.phase {
            Phase::Outside => {
                self.phase = Phase::Locked;
                self.actions.push_front(Action::Consume(shelf));
                Op::Sync(SyncOp::Lock(mutex))
            }
            _ if shelf.items.get() == 0 => {
                self.actions.push_front(Action::Consume(shelf));
                Op::Sync(SyncOp::Wait(cond, mutex))
            }
            _ => {
                shelf.items.set(shelf.items.get() - 1);
                self.phase = Phase::Outside;
                Op::Sync(SyncOp::Unlock(mutex))
            }
        }
    }

    fn produce(&mut self, shelf: Shelf) -> Op {
        let (mutex, cond, broadcast) = (shelf.mutex, shelf.cond, shelf.broadcast);
        match self.phase {
            Phase::Outside => {
                self.phase = Phase::Locked;
                self.actions.push_front(Action::Produce(shelf));
                Op::Sync(SyncOp::Lock(mutex))
            }
            Phase::Locked => {
                shelf.items.set(shelf.items.get() + 1);
                self.phase = Phase::Leaving;
                self.actions.push_front(Action::Produce(shelf));
                Op::Sync(if broadcast { SyncOp::Broadcast(cond) } else { SyncOp::Signal(cond) })
            }
            Phase::Leaving => {
                self.phase = Phase::Outside;
                Op::Sync(SyncOp::Unlock(mutex))
            }
        }
    }

    fn spec(self) -> TaskSpec {
        let (name, working_set, memory) = (format!("t{}", self.number), self.working_set, self.memory);
        TaskSpec { working_set, data: working_set / 2, memory, ..TaskSpec::new(&name, self) }
    }
}

/// Creates what the case's ensembles share, and their scripts.
pub struct Compiler<'a, const COSTS: bool> {
    pub sim: &'a mut LinuxSim<COSTS>,
    pub ledger: Ledger,
    groups: Rc<Vec<TgId>>,
    /// Of the ensemble that is being compiled.
    working_set: u64,
}

impl<'a, const COSTS: bool> Compiler<'a, COSTS> {
    pub fn new(sim: &'a mut LinuxSim<COSTS>, case: &Case) -> Compiler<'a, COSTS> {
        let mut groups = vec![ROOT_TASK_GROUP];
        for (number, &(parent, shares)) in case.groups.iter().enumerate() {
            let sched: &mut Sched<_> = &mut sim.sched;
            let group = sched.create_group(groups[parent.min(number)], &format!("g{number}"), shares);
            groups.push(group);
            if let Some(&limit) = case.limits.get(number) {
                // A burst is refused where there is none, or no quota that great.
                let file = quota_file(sched);
                let _ = sched.cgroup_write(group, file, &max(file, LIMITS[limit]));
                if let Some((_, _, burst)) = LIMITS[limit] {
                    let _ = sched.cgroup_write(group, GroupFile::MaxBurst, &burst.to_string());
                }
            }
        }
        Compiler { sim, ledger: Ledger::default(), groups: Rc::new(groups), working_set: 0 }
    }

    fn script(&mut self, steps: &[Step], rounds: u32, frame: impl Fn(&mut VecDeque<Action>, &[Step])) -> Script {
        let mut actions = VecDeque::new();
        for _ in 0..rounds {
            frame(&mut actions, steps);
        }
        self.finish(actions)
    }

    /// Writes down what the actions ask for.
    fn finish(&mut self, actions: VecDeque<Action>) -> Script {
        let mut asked = Asked::default();
        for action in &actions {
            match action {
                Action::Step(Step::Run(time)) => asked.run += *time,
                Action::Step(Step::Work(cycles)) => asked.work += *cycles,
                _ => {}
            }
        }
        self.ledger.borrow_mut().push(asked);
        Script {
            number: self.ledger.borrow().len() - 1,
            actions,
            phase: Phase::Outside,
            groups: self.groups.clone(),
            nr_cpus: self.sim.sched.nr_cpus(),
            working_set: self.working_set,
            memory: AddressSpace::Own,
            ledger: self.ledger.clone(),
            file: quota_file(&self.sim.sched),
        }
    }

    /// The tasks to start for one ensemble.
    pub fn compile(&mut self, ensemble: &Ensemble) -> Vec<TaskSpec> {
        self.working_set = ensemble.working_set;
        let scripts = match ensemble.kind {
            Kind::Solo => self.each(ensemble, |_, actions, steps| actions.extend(run(steps))),
            Kind::Ring { bytes } => self.ring(ensemble, bytes),
            Kind::Star { bytes } => self.star(ensemble, bytes),
            Kind::Forks { threads } => vec![self.forks(ensemble, threads)],
            Kind::Mutex => {
                let mutex = self.create_mutex(ensemble);
                self.each(ensemble, |_, actions, steps| {
                    let (inside, outside) = steps.split_at(steps.len() / 2);
                    actions.push_back(Action::Sync(SyncOp::Lock(mutex)));
                    actions.extend(run(inside));
                    actions.push_back(Action::Sync(SyncOp::Unlock(mutex)));
                    actions.extend(run(outside));
                })
            }
            Kind::Barrier => {
                let barrier = self.sim.os.create_barrier(ensemble.members.len() as u32);
                self.each(ensemble, |_, actions, steps| {
                    actions.extend(run(steps));
                    actions.push_back(Action::Sync(SyncOp::Barrier(barrier)));
                })
            }
            Kind::Shelf { broadcast } => self.shelf(ensemble, broadcast),
            Kind::Semaphore => self.semaphore(ensemble),
        };
        scripts.into_iter().map(Script::spec).collect()
    }

    fn each(&mut self, ensemble: &Ensemble, frame: impl Fn(usize, &mut VecDeque<Action>, &[Step])) -> Vec<Script> {
        let members = ensemble.members.iter().enumerate();
        members.map(|(i, steps)| self.script(steps, ensemble.rounds, |a, s| frame(i, a, s))).collect()
    }

    /// A token goes round; the first member starts it.
    fn ring(&mut self, ensemble: &Ensemble, bytes: u64) -> Vec<Script> {
        let nr = ensemble.members.len();
        let pipes: Vec<PipeId> = (0..nr).map(|_| self.sim.os.create_pipe()).collect();
        self.each(ensemble, |i, actions, steps| {
            let (read, write) = (Action::Read(pipes[i], bytes), Action::Write(pipes[(i + 1) % nr], bytes));
            if i == 0 {
                actions.push_back(write);
                actions.push_back(read);
                actions.extend(run(steps));
            } else {
                actions.push_back(read);
                actions.extend(run(steps));
                actions.push_back(write);
            }
        })
    }

    /// The first member sends one message to each of the others, and takes their answers from one pipe.
    fn star(&mut self, ensemble: &Ensemble, bytes: u64) -> Vec<Script> {
        let nr = ensemble.members.len();
        let pipes: Vec<PipeId> = (0..nr).map(|_| self.sim.os.create_pipe()).collect();
        self.each(ensemble, |i, actions, steps| {
            if i == 0 {
                actions.extend(pipes[1..].iter().map(|&pipe| Action::Write(pipe, bytes)));
                actions.extend((1..nr).map(|_| Action::Read(pipes[0], bytes)));
                actions.extend(run(steps));
            } else {
                actions.push_back(Action::Read(pipes[i], bytes));
                actions.extend(run(steps));
                actions.push_back(Action::Write(pipes[0], bytes));
            }
        })
    }

    /// The first member forks the others and waits for them, `rounds` times.
    fn forks(&mut self, ensemble: &Ensemble, threads: bool) -> Script {
        let mut actions = VecDeque::new();
        for _ in 0..ensemble.rounds {
            for steps in &ensemble.members[1..] {
                let mut child = self.script(steps, 1, |actions, steps| actions.extend(run(steps)));
                if threads {
                    child.memory = AddressSpace::Parent;
                }
                actions.push_back(Action::Fork(child));
            }
            actions.extend(run(&ensemble.members[0]));
            actions.push_back(Action::WaitAll);
        }
        self.finish(actions)
    }

    /// Half of them lend their waiters' priority to the owner.
    fn create_mutex(&mut self, ensemble: &Ensemble) -> MutexId {
        match ensemble.rounds.is_multiple_of(2) {
            true => self.sim.os.create_pi_mutex(),
            false => self.sim.os.create_mutex(),
        }
    }

    fn shelf(&mut self, ensemble: &Ensemble, broadcast: bool) -> Vec<Script> {
        let (mutex, cond) = (self.create_mutex(ensemble), self.sim.os.create_cond());
        let shelf = Shelf { mutex, cond, items: Rc::default(), broadcast };
        let consumers = ensemble.members.len() - 1;
        self.each(ensemble, |i, actions, steps| {
            if i == 0 {
                (0..consumers).for_each(|_| {
                    actions.push_back(Action::Produce(shelf.clone()));
                    actions.extend(run(steps));
                });
            } else {
                actions.push_back(Action::Consume(shelf.clone()));
                actions.extend(run(steps));
            }
        })
    }

    fn semaphore(&mut self, ensemble: &Ensemble) -> Vec<Script> {
        let semaphore: SemaphoreId = self.sim.os.create_semaphore();
        let waiters = ensemble.members.len() - 1;
        self.each(ensemble, |i, actions, steps| {
            if i == 0 {
                actions.extend((0..waiters).map(|_| Action::Sync(SyncOp::SemaphorePost(semaphore))));
                actions.extend(run(steps));
            } else {
                actions.push_back(Action::Sync(SyncOp::SemaphoreWait(semaphore)));
                actions.extend(run(steps));
            }
        })
    }
}

fn run(steps: &[Step]) -> impl Iterator<Item = Action> + '_ {
    steps.iter().map(|&step| Action::Step(step))
}

/// Where the kernel takes a quota: cgroup v1 takes the period apart.
fn quota_file<const COSTS: bool>(sched: &Sched<Hardware<COSTS>>) -> GroupFile {
    match sched.cgroup_hierarchy {
        Hierarchy::Legacy => GroupFile::CfsQuotaUs,
        Hierarchy::Unified => GroupFile::Max,
    }
}

/// A limit as it is written into `file`; for v1 as much of its period of 100 ms.
fn max(file: GroupFile, limit: Option<(u64, u64, u64)>) -> String {
    match (file, limit) {
        (GroupFile::CfsQuotaUs, None) => "-1".to_string(),
        (GroupFile::CfsQuotaUs, Some((quota, period, _))) => (quota * 100_000 / period).to_string(),
        (_, None) => "max".to_string(),
        (_, Some((quota, period, _))) => format!("{quota} {period}"),
    }
}

/// The fair policies that a step may choose.
pub const POLICIES: [Policy; 3] = [Policy::Normal, Policy::Batch, Policy::Idle];

impl Case {
    /// The same with tasks that execute other programs on their way.
    pub fn with_programs(mut self) -> Case {
        let mut random = Prng::stream(self.seed, "programs", 0);
        for steps in self.ensembles.iter_mut().flat_map(|e| &mut e.members) {
            for _ in 0..random.below(4) {
                steps.insert(random.below(steps.len() as u64 + 1) as usize, Step::Exec);
            }
        }
        self
    }
}

impl Step {
    pub fn random(random: &mut Prng, nr_groups: usize, plain: bool) -> Step {
        // Lengths from a microsecond to some ticks, all orders of magnitude alike.
        let mut length = || {
            let order = [1_000, 10_000, 100_000, 1_000_000, 10_000_000][random.below(5) as usize];
            random.between(order / 2, 2 * order)
        };
        let length = length();
        match random.below(if plain { 7 } else { 14 }) {
            0..=2 => Step::Run(Ns(length)),
            3 => Step::Work(Cycles(length)),
            4 | 5 => Step::Sleep(Ns(length)),
            6 => Step::Io(Ns(length)),
            7 | 8 => Step::Yield,
            9 => Step::Nice(random.below(40) as i32 - 20),
            10 => Step::Policy(POLICIES[random.below(3) as usize]),
            11 => Step::Affinity(if random.below(4) == 0 { u64::MAX } else { random.next_u64() & random.next_u64() }),
            _ => Step::Group(random.below(nr_groups as u64 + 1) as usize),
        }
    }
}
