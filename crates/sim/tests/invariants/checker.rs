//! What must hold after every event, looked at from outside.

use super::budgets::Budgets;
use super::case::Case;
use super::energy;
use super::pressure::pressure;
use super::program::Ledger;
use super::structures::{competition, groups, is_competitor, sorted, task_lists, tasks, unsettle, who_runs};
use machine::hardware::Hardware;
use sched::core::{ClampId, Sched};
use sched::fair::rules::Pick;
use sched::fair::timeline::entity_before;
use sched::hrtimer::SchedTimer;
use sched::sched::{OnRq, Policy, Rq, SchedClass, TaskId};
use sched::trace::{Event, Sink};
use sim::engine::LinuxSim;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use units::{CpuId, Ns};

/// The structures are walked after every n-th event; a prime, so that no pattern of events hides behind it.
const WALK_EVERY: u64 = 3;
/// Energy is summed up after every n-th event.
const SUM_EVERY: u64 = 31;

/// prio_to_weight of nice -20: the heaviest task.
const MOST_WEIGHT: u64 = 88_761;

#[derive(Default)]
struct Runtime {
    number: Option<usize>,
    runtime: u64,
}

/// Follows tasks from their birth to their end: what they ran, by the tracepoints.
#[derive(Default)]
pub struct Lives {
    by_id: Vec<Runtime>,
    /// Task number and everything it ran, in ns.
    pub ended: Vec<(usize, u64)>,
    /// Of all tasks, in ns.
    pub total: u64,
    last_event: Vec<u64>,
    idle: BTreeMap<CpuId, Idle>,
}

/// What cpu_idle has told of a CPU.
#[derive(Default)]
struct Idle {
    state: Option<u8>,
    /// By state.
    entries: BTreeMap<u8, u64>,
}

impl Idle {
    fn told(&mut self, cpu: CpuId, state: Option<u8>) {
        assert_ne!(self.state.is_some(), state.is_some(), "{cpu} enters a state, then leaves it");
        self.state = state;
        if let Some(state) = state {
            *self.entries.entry(state).or_default() += 1;
        }
    }
}

pub struct Shared(pub Rc<RefCell<Lives>>);

impl Sink for Shared {
    fn event(&mut self, time: Ns, cpu: CpuId, event: &Event) {
        let mut lives = self.0.borrow_mut();
        let index = cpu.index();
        if lives.last_event.len() <= index {
            lives.last_event.resize(index + 1, 0);
        }
        assert!(
            time.0 >= lives.last_event[index],
            "{cpu}: a tracepoint at {time} after {} ns",
            lives.last_event[index]
        );
        lives.last_event[index] = time.0;
        if let Event::SchedStatRuntime { task, runtime, .. } = event {
            lives.total += runtime.0;
            lives.by_id[task.index()].runtime += runtime.0;
        }
        if let Event::CpuIdle { state } = event {
            lives.idle.entry(cpu).or_default().told(cpu, *state);
        }
    }

    fn task(&mut self, task: TaskId, _pid: u32, comm: &str, _prio: i32) {
        let mut lives = self.0.borrow_mut();
        let index = task.index();
        if lives.by_id.len() <= index {
            lives.by_id.resize_with(index + 1, Runtime::default);
        }
        let number = comm.strip_prefix('t').and_then(|n| n.parse().ok());
        // It is told again when its priority changes.
        if lives.by_id[index].number != number {
            lives.by_id[index] = Runtime { number, runtime: 0 };
        }
    }

    fn task_gone(&mut self, task: TaskId) {
        let mut lives = self.0.borrow_mut();
        let Runtime { number, runtime } = std::mem::take(&mut lives.by_id[task.index()]);
        lives.ended.push((number.expect("a task of the case"), runtime));
    }
}

pub struct Checker {
    lives: Rc<RefCell<Lives>>,
    ledger: Ledger,
    events: u64,
    min_vruntime: Vec<u64>,
    /// By queue: see [`competition`].
    unsettled: Vec<bool>,
    /// Whose queue that is: sessions' groups come and go, and their queues are used again.
    owner: Vec<String>,
    rq_clock: Vec<u64>,
    cpu_clock: Vec<u64>,
    /// How long a CPU may idle while another has too much, if anybody promises that.
    patience: Option<Ns>,
    idle_beside_work_since: Vec<Option<Ns>>,
    /// What each group may have used by now, by its id.
    budgets: Budgets,
    lag_is_bounded: bool,
    /// What runs in any class is told (rt.statistics), so that sums can be compared.
    all_told: bool,
    averages_are_bounded: bool,
    attached_twice: u64,
    /// Some groups have quotas, or had.
    limited: bool,
    /// Of each deadline task, by its id.
    reservations: Vec<Option<Reservation>>,
    reservations_hold: bool,
    stranded: Vec<bool>,
    /// By CPU: the number of a deadline task that runs there though it is on no queue, and since when.
    off_queue_since: Vec<Option<(usize, Ns)>>,
    /// By the task's number, in ns.
    off_queue: Vec<u64>,
    pub seen: Seen,
    /// The longest that was seen.
    pub longest_idle_beside_work: Ns,
}

impl Checker {
    pub fn new(case: &Case, nr_cpus: usize, lives: Rc<RefCell<Lives>>, ledger: Ledger) -> Checker {
        let numbers = ledger.borrow().len();
        Checker {
            lives,
            ledger,
            events: 0,
            min_vruntime: Vec::new(),
            unsettled: Vec::new(),
            owner: Vec::new(),
            rq_clock: vec![0; nr_cpus],
            cpu_clock: vec![0; nr_cpus],
            patience: case.is_plain().then(|| patience(nr_cpus, case.hz)),
            idle_beside_work_since: vec![None; nr_cpus],
            budgets: Budgets::default(),
            lag_is_bounded: !case.yields_far() && !case.changes_slices() && !case.mixes_slices(),
            averages_are_bounded: case.averages_are_bounded(),
            attached_twice: case.attached_twice(),
            limited: case.has_limits(),
            all_told: !case.has_classes() || case.tells_all(),
            seen: Seen::default(),
            reservations: Vec::new(),
            stranded: Vec::new(),
            off_queue_since: vec![None; nr_cpus],
            off_queue: vec![0; numbers],
            reservations_hold: case.reservations_hold(),
            longest_idle_beside_work: Ns::ZERO,
        }
    }

    pub fn check<const COSTS: bool>(&mut self, sim: &LinuxSim<COSTS>) {
        self.events += 1;
        self.clocks(sim);
        for cpu in (0..sim.sched.nr_cpus()).map(CpuId::new) {
            who_runs(&sim.sched, cpu);
            unsettle(&sim.sched, cpu, &mut self.unsettled);
        }
        self.off_queue(sim);
        self.conserves_work(sim);
        if self.events.is_multiple_of(SUM_EVERY) {
            energy::check(sim);
        }
        if self.events.is_multiple_of(WALK_EVERY) {
            self.queues(&sim.sched);
            tasks(&sim.sched, &mut self.stranded);
            pressure(&sim.sched);
            self.seen.look(&sim.sched);
            self.reservations(&sim.sched);
            self.averages(&sim.sched);
            groups(&sim.sched, self.limited);
            let written: u64 = self.ledger.borrow().iter().map(|asked| asked.limits).sum();
            self.seen.quota_without_tick |= self.budgets.check(sim, written);
            task_lists(&sim.sched);
        }
    }

    /// Time runs forwards on every CPU, and nobody ran longer than there was time.
    fn clocks<const COSTS: bool>(&mut self, sim: &LinuxSim<COSTS>) {
        let mut clocks = 0;
        for (cpu, rq) in sim.sched.rq.iter() {
            let index = cpu.index();
            let now = sim.sched.arch.now(cpu).0;
            assert!(
                now >= self.cpu_clock[index],
                "{cpu}'s clock went from {} ps back to {now} ps",
                self.cpu_clock[index]
            );
            assert!(rq.clock >= self.rq_clock[index], "rq.clock of {cpu} went backwards");
            (self.cpu_clock[index], self.rq_clock[index]) = (now, rq.clock);
            clocks += rq.clock;
        }
        let latest = self.cpu_clock.iter().max().expect("a CPU") / 1000;
        assert!(sim.sched.rq.iter().all(|(_, rq)| rq.clock <= latest), "a run queue's clock is in the future");
        // What is accounted on a queue are stretches of its clock that do not overlap.
        let total = self.lives.borrow().total;
        assert!(total <= clocks, "tasks ran {total} ns in {clocks} ns of all CPUs");
    }

    /// Who runs as a deadline task that is on no queue is not charged (update_curr_dl()): a task whose lent deadline ends between its own
    /// deadline and its next period is throttled by its enqueue (dl_check_constrained_dl()), and goes on until its CPU chooses again.
    fn off_queue<const COSTS: bool>(&mut self, sim: &LinuxSim<COSTS>) {
        for (cpu, rq) in sim.sched.rq.iter() {
            let is_off = |&p: &TaskId| sim.sched.task[p].sched_class == SchedClass::Dl && !sim.sched.dl_se[p].queued;
            let off = rq.curr.filter(is_off).and_then(|p| self.lives.borrow().by_id[p.index()].number);
            let seen = &mut self.off_queue_since[cpu.index()];
            if off != seen.map(|(number, _)| number) {
                let now = sim.now();
                if let Some((number, since)) = std::mem::replace(seen, off.map(|number| (number, now))) {
                    self.off_queue[number] += (now - since).0;
                }
            }
        }
    }

    /// No CPU idles for long while another has two tasks or more, where all tasks are alike and may run anywhere.
    fn conserves_work<const COSTS: bool>(&mut self, sim: &LinuxSim<COSTS>) {
        let Some(patience) = self.patience else { return };
        let now = sim.now();
        let runnable = |rq: &Rq| rq.nr_running - sim.sched.cfs_rq[rq.cfs].h_nr_delayed;
        let too_much = sim.sched.rq.iter().any(|(_, rq)| runnable(rq) >= 2);
        for (cpu, rq) in sim.sched.rq.iter() {
            let since = &mut self.idle_beside_work_since[cpu.index()];
            if !too_much || rq.curr.is_some() || rq.nr_running > 0 {
                *since = None;
                continue;
            }
            let idle = now.saturating_sub(*since.get_or_insert(now));
            self.longest_idle_beside_work = self.longest_idle_beside_work.max(idle);
            assert!(idle <= patience, "{cpu} has been idle for {idle} while another CPU had two tasks or more");
        }
    }

    /// Each queue holds what it says it holds.
    fn queues<const COSTS: bool>(&mut self, sched: &Sched<Hardware<COSTS>>) {
        let mut held = vec![Held::default(); sched.cfs_rq.len()];
        let mut waiting = vec![0; sched.cfs_rq.len()];
        for (id, se) in sched.se.iter().filter(|(_, se)| se.on_rq) {
            let held = &mut held[se.cfs_rq.index()];
            held.nr += 1;
            held.weight += se.load.weight;
            held.runnable += se.runnable_weight;
            let competes_on = sched.competes_on(id);
            let waits = is_competitor(sched, id) && sched.competing_curr(competes_on) != Some(id);
            assert_eq!(se.in_timeline, waits, "{id:?} is on {competes_on:?}: in its timeline, or its curr");
            waiting[competes_on.index()] += u32::from(waits);
            match (se.my_q, se.task) {
                (Some(queue), _) => {
                    let below = &sched.cfs_rq[queue];
                    assert_eq!(below.nr_running == 0, se.sched_delayed, "{id:?} is queued for {queue:?}");
                    held.tasks += below.h_nr_running;
                    held.delayed += below.h_nr_delayed;
                    held.idle += u32::from(below.idle);
                    held.idle_tasks += if below.idle { below.h_nr_running } else { below.idle_h_nr_running };
                }
                (None, Some(task)) => {
                    let idle = u32::from(sched.task[task].policy == Policy::Idle);
                    held.tasks += 1;
                    held.delayed += u32::from(se.sched_delayed);
                    held.idle += idle;
                    held.idle_tasks += idle;
                }
                (None, None) => panic!("{id:?} is nobody's"),
            }
        }
        self.min_vruntime.resize(sched.cfs_rq.len(), 0u64.wrapping_sub(1 << 20));
        self.owner.resize(sched.cfs_rq.len(), String::new());
        for (id, cfs) in sched.cfs_rq.iter() {
            let held = held[id.index()];
            assert_eq!(cfs.nr_running, held.nr, "{id:?}.nr_running");
            assert_eq!(cfs.h_nr_running, held.tasks, "{id:?}.h_nr_running");
            assert_eq!(cfs.h_nr_delayed, held.delayed, "{id:?}.h_nr_delayed");
            assert_eq!(cfs.idle_nr_running, held.idle, "{id:?}.idle_nr_running");
            assert_eq!(cfs.idle_h_nr_running, held.idle_tasks, "{id:?}.idle_h_nr_running");
            assert_eq!(cfs.load.weight, held.weight, "{id:?}.load.weight");
            if sched.kernel.pelt == sched::pelt::Pelt::Accumulate {
                assert_eq!(cfs.runnable_weight, held.runnable, "{id:?}.runnable_weight");
            }
            assert_eq!(cfs.tasks_timeline.len() as u32, waiting[id.index()], "{id:?}.tasks_timeline");
            let listed = cfs.on_list || cfs.pelt_clock_throttled;
            let by_task = sched.kernel.bandwidth.throttle.by_task();
            assert!(
                !by_task || cfs.nr_running == 0 || !cfs.pelt_clock_throttled,
                "{id:?} has load and its time stands still"
            );
            assert!(cfs.nr_running == 0 || listed, "{id:?} has load and is not on the leaf list");
            let owner = &sched.tg[cfs.tg].name;
            if self.owner[id.index()] != *owner {
                self.owner[id.index()].clone_from(owner);
                self.min_vruntime[id.index()] = cfs.min_vruntime;
            }
            assert!(!entity_before(cfs.min_vruntime, self.min_vruntime[id.index()]), "{id:?}.min_vruntime went back");
            self.min_vruntime[id.index()] = cfs.min_vruntime;
            sorted(sched, id);
            if sched.kernel.entity.pick == Pick::Eevdf {
                competition(sched, id, self.lag_is_bounded, &mut self.unsettled[id.index()]);
            }
        }
        for (cpu, rq) in sched.rq.iter() {
            assert_eq!(rq.load.weight, sched.cfs_rq[rq.cfs].load.weight, "rq.load of {cpu}");
        }
    }

    /// Averages stay below what could ever have been added to them: a difference that went below zero is far above. Not where tasks
    /// come back to the fair class with another weight: see [`Case::averages_are_bounded`].
    fn averages<const COSTS: bool>(&self, sched: &Sched<Hardware<COSTS>>) {
        // All tasks, and the entities of all groups, which begin as busy ones too.
        let everybody = (self.ledger.borrow().len() + sched.tg.len()) as u64;
        for (id, se) in sched.se.iter().filter(|(_, se)| se.task.is_some_and(|t| sched.task[t].alive)) {
            let avg = &se.avg;
            // A move to a queue whose periods begin elsewhere may count a part of one again (only v4.15 aligns them): 2% of the
            // largest sum each, which decays by as much in the next period.
            let bounded = avg.load_avg <= MOST_WEIGHT + MOST_WEIGHT / 20;
            assert!(!self.averages_are_bounded || bounded, "{id:?}.avg.load_avg is {}", avg.load_avg);
            assert!(avg.util_avg <= 1024 + 1024 / 20, "{id:?}.avg.util_avg is {}", avg.util_avg);
        }
        for (id, cfs) in sched.cfs_rq.iter() {
            let (load, runnable, util) = (cfs.avg.load_avg, cfs.avg.runnable_avg, cfs.avg.util_avg);
            let most = if self.averages_are_bounded { everybody * (MOST_WEIGHT + MOST_WEIGHT / 20) } else { u64::MAX };
            assert!(load <= most, "{id:?}.avg.load_avg is {load}");
            assert!(runnable <= most, "{id:?}.runnable_load_avg is {runnable}");
            let most = (everybody + self.attached_twice) * (1024 + 1024 / 20);
            assert!(util <= most, "{id:?}.avg.util_avg is {util}");
        }
    }

    /// After the last event: everybody has done what was asked, and was charged for it.
    pub fn finish<const COSTS: bool>(&mut self, sim: &LinuxSim<COSTS>) {
        energy::check(sim);
        let lives = self.lives.borrow();
        for cpu in sim.sched.rq.iter().map(|(cpu, _)| cpu) {
            let counted = sim.sched.arch.residency(cpu).entries.iter().enumerate().filter(|(_, count)| **count > 0);
            let counted: BTreeMap<u8, u64> = counted.map(|(state, &count)| (state as u8, count)).collect();
            let told = lives.idle.get(&cpu).map(|idle| idle.entries.clone()).unwrap_or_default();
            assert_eq!(told, counted, "idle states that {cpu} entered, by cpu_idle and as counted");
        }
        let ledger = self.ledger.borrow();
        let unfinished: Vec<usize> = (0..ledger.len()).filter(|&n| !ledger[n].finished).collect();
        assert!(unfinished.is_empty(), "tasks {unfinished:?} did not finish");
        assert_eq!(lives.ended.len(), ledger.len(), "every task that ended was once started");
        let mut asked_of_all = 0;
        for &(number, runtime) in &lives.ended {
            let asked = ledger[number];
            // Without costs a cycle takes a nanosecond, and nothing else takes time.
            let least =
                asked.run.0 + asked.work.0 * if COSTS { sim.sched.arch.prices.ps_per_cycle } else { 1000 } / 1000;
            asked_of_all += least;
            if !COSTS && self.all_told {
                let charged = runtime..=runtime + self.off_queue[number];
                assert!(
                    charged.contains(&least),
                    "task {number} was asked to run {least} ns and was charged {charged:?} ns"
                );
            }
        }
        let busy: u64 = sim.sched.rq.iter().map(|(cpu, _)| sim.busy(cpu).ns().0).sum();
        let rounded = sim.sched.nr_cpus() as u64 + ledger.len() as u64;
        assert!(asked_of_all <= busy + rounded, "asked {asked_of_all} ns, busy {busy} ns");
        let switches: u64 = sim.sched.rq.iter().map(|(_, rq)| rq.nr_switches).sum();
        let off_queue: u64 = self.off_queue.iter().sum();
        let slack = rounded + switches * slack_per_switch::<COSTS>(sim) + off_queue;
        assert!(!self.all_told || lives.total.abs_diff(busy) <= slack, "charged {} ns, busy {busy} ns", lives.total);
    }
}

/// What a run came across: whoever says that nothing is ever wrong should have looked at something.
#[derive(Clone, Copy, Default, Debug)]
pub struct Seen {
    pub real_time_runs: bool,
    pub deadline_runs: bool,
    pub deadline_is_throttled: bool,
    pub group_is_throttled: bool,
    pub cpu_is_offline: bool,
    pub several_root_domains: bool,
    pub clamps: bool,
    pub idle_group: bool,
    pub quota_without_tick: bool,
}

impl Seen {
    fn look<const COSTS: bool>(&mut self, sched: &Sched<Hardware<COSTS>>) {
        for (_, rq) in sched.rq.iter() {
            let class = rq.curr.map(|curr| sched.task[curr].sched_class);
            self.real_time_runs |= class == Some(SchedClass::Rt);
            self.deadline_runs |= class == Some(SchedClass::Dl);
            self.cpu_is_offline |= !rq.hotplug.is_online();
        }
        self.deadline_is_throttled |= sched.dl_se.iter().any(|(_, se)| se.dl_throttled);
        self.group_is_throttled |= sched.cfs_rq.iter().any(|(_, cfs)| cfs.throttle_count != 0);
        self.several_root_domains |= sched.root_domains.len() > 1;
        self.clamps |= sched.task_cold.iter().any(|(_, task)| task.uclamp_req[ClampId::Max].user_defined);
        self.idle_group |= sched.cfs_rq.iter().any(|(_, cfs)| cfs.idle && cfs.nr_running > 0);
    }

    pub fn and(self, other: Seen) -> Seen {
        Seen {
            real_time_runs: self.real_time_runs | other.real_time_runs,
            deadline_runs: self.deadline_runs | other.deadline_runs,
            deadline_is_throttled: self.deadline_is_throttled | other.deadline_is_throttled,
            group_is_throttled: self.group_is_throttled | other.group_is_throttled,
            cpu_is_offline: self.cpu_is_offline | other.cpu_is_offline,
            several_root_domains: self.several_root_domains | other.several_root_domains,
            clamps: self.clamps | other.clamps,
            idle_group: self.idle_group | other.idle_group,
            quota_without_tick: self.quota_without_tick | other.quota_without_tick,
        }
    }
}

/// What a deadline task has reserved, since when, and what it had run then.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Reservation {
    runtime: u64,
    period: u64,
    since: u64,
    ran: u64,
}

impl Checker {
    /// No deadline task runs more than it has reserved: its budget for each period that has begun, and what it overran its last one
    /// by before a tick noticed.
    fn reservations<const COSTS: bool>(&mut self, sched: &Sched<Hardware<COSTS>>) {
        if !self.reservations_hold {
            return;
        }
        self.reservations.resize(sched.task.len(), None);
        let now = sched.rq.iter().map(|(_, rq)| rq.clock).max().expect("a CPU");
        for (p, task) in sched.task.iter() {
            let place = &mut self.reservations[p.index()];
            // Who has borrowed a deadline has a new budget whenever the last one is used up.
            if !task.alive || task.sched_class != SchedClass::Dl || sched.dl_se[p].pi_se.is_some() {
                *place = None;
                continue;
            }
            let (se, ran) = (&sched.dl_se[p], sched.se[task.se].sum_exec_runtime);
            let (runtime, period) = (se.dl_runtime, se.dl_period);
            let held = *place.get_or_insert(Reservation { runtime, period, since: now, ran });
            if (held.runtime, held.period) != (runtime, period) || ran < held.ran {
                *place = Some(Reservation { runtime, period, since: now, ran });
                continue;
            }
            let periods = (now - held.since) / period + 2;
            let late = 2 * sched.tick_nsec + 1_000_000 + (now - held.since) / 50;
            let most = runtime * periods + late;
            let used = ran - held.ran;
            assert!(used <= most, "{p:?} ran {used} ns in {periods} periods, with {runtime} ns for each");
        }
    }
}

/// Whether a deadline task that is on no queue is throttled, and a timer will end that.
pub fn waits_for_budget<const COSTS: bool>(sched: &Sched<Hardware<COSTS>>, p: TaskId) -> bool {
    let waits = sched.dl_se[p].dl_throttled && sched.task[p].on_rq == OnRq::Queued;
    assert!(!waits || sched.hrtimers.is_queued(SchedTimer::DlTask(p)), "{p:?} is throttled for ever");
    waits
}

/// How far a task's runtime may be from what its CPU was busy for it, in ns, for each switch. A stretch is accounted by the queue's
/// clock, which stands still while it is said to be fresh (RQCF_REQ_SKIP): from the wakeup to the switch, so a task that wakes
/// a CPU is charged what that takes to leave its idle state, and the paths in between (20 us is more than they take).
fn slack_per_switch<const COSTS: bool>(sim: &LinuxSim<COSTS>) -> u64 {
    let deepest = sim.sched.arch.prices.all_idle_states().map(|state| state.wake).max().expect("an idle state");
    if COSTS { deepest.ns().0 + 20_000 } else { 0 }
}

/// The kernel promises no bound in so many words; this one follows from how it looks. It is the idle CPUs that pull, or one of them
/// on behalf of all: every `max_interval` at the least often (2 ms for each CPU of the domain, max_load_balance_interval at
/// most), plus a tick to notice and one for the kick. A hot task is left alone until two looks have failed, so the third or
/// fourth moves one. What they compare are averages whose half-life is 32 ms: two of those until a queue that has just grown
/// looks busier than one that has just emptied.
fn patience(nr_cpus: usize, hz: u32) -> Ns {
    let interval = Ns::from_ms((2 * nr_cpus as u64).min(100));
    let tick = Ns(1_000_000_000 / u64::from(hz));
    Ns(4 * (interval.0 + 2 * tick.0)) + Ns::from_ms(2 * 32)
}

#[derive(Clone, Copy, Default)]
struct Held {
    nr: u32,
    tasks: u32,
    delayed: u32,
    idle: u32,
    idle_tasks: u32,
    weight: u64,
    runnable: u64,
}
