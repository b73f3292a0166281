//! The queues' structures agree with each other: who runs, who waits in which order, what sums and lists say.

use super::checker::waits_for_budget;
use machine::hardware::Hardware;
use sched::core::Sched;
use sched::deadline::changes::{DlPrioChanged, DlSwitchedTo};
use sched::deadline::server::ServerCounted;
use sched::fair::bandwidth::Throttle;
use sched::fair::group::GroupShares;
use sched::fair::rules::{LagLimit, Pick, Reweight};
use sched::fair::timeline::entity_before;
use sched::sched::{CfsRqId, OnRq, SchedClass, SchedEntity, SeId, TaskId, TaskState};
use units::CpuId;

/// A lighter entity's weight (a small share of a small group) counts as 2 in sums, and as what it is where lag is kept while it
/// changes: its lag has no bound. While it runs it drives the average far ahead of the others, and those who are placed there stay
/// ahead when it has got its weight, or has gone.
const LEAST_TRUE_WEIGHT: u64 = 2 << 10;

/// How many of its slices, or ticks, an entity may owe or be owed. One each way if nobody comes or goes; those who do move the
/// average for all. Not quite seven were seen.
const LAG_SLICES: i128 = 10;

pub fn who_runs<const COSTS: bool>(sched: &Sched<Hardware<COSTS>>, cpu: CpuId) {
    let rq = &sched.rq[cpu];
    let root = &sched.cfs_rq[rq.cfs];
    let (rt, dl) = (&sched.rt[cpu], &sched.dl[cpu]);
    let of_rt = if rt.rt_queued { rt.rt_nr_running } else { 0 };
    let apart = sched.kernel.dl.server_counted == ServerCounted::Apart;
    let of_dl = dl.dl_nr_running - u32::from(apart && dl.fair_server.queued);
    let others = of_rt + of_dl + u32::from(rq.stop_queued);
    assert_eq!(rq.nr_running, root.h_nr_running + others, "nr_running of {cpu}");
    assert!(rq.hotplug.is_online() || rq.curr.is_none() && rq.nr_running == 0, "{cpu} is offline and has tasks");
    let of_fair = rq.curr.filter(|&curr| sched.task[curr].sched_class == SchedClass::Fair);
    let flat_curr = of_fair.filter(|_| sched.kernel.picks_flat()).map(|curr| sched.task[curr].se);
    assert_eq!(root.flat_curr, flat_curr, "who competes while it runs on {cpu}");
    let Some(curr) = rq.curr else {
        assert!(root.curr.is_none(), "{cpu} is idle and its queue has a curr");
        return;
    };
    let task = &sched.task[curr];
    assert!(task.alive && task.on_cpu, "{curr:?} runs on {cpu}: alive {}, on_cpu {}", task.alive, task.on_cpu);
    assert_eq!(task.cpu, cpu, "{curr:?} runs on {cpu} and belongs elsewhere");
    assert_eq!(task.on_rq, OnRq::Queued, "{curr:?} runs on {cpu} and is not queued there");
    if task.sched_class != SchedClass::Fair {
        assert!(root.curr.is_none(), "{curr:?} of no fair class runs on {cpu} and its fair queue has a curr");
        return;
    }
    let mut level = Some(task.se);
    let mut queue = rq.cfs;
    while let Some(se) = level {
        queue = sched.se[se].cfs_rq;
        assert_eq!(sched.cfs_rq[queue].curr, Some(se), "{curr:?} runs, and {queue:?} has another curr");
        assert_eq!(sched.cfs_rq[queue].rq, cpu, "{curr:?} runs on {cpu} from another CPU's queue");
        level = sched.se[se].parent;
    }
    assert_eq!(queue, rq.cfs, "the walk up from {curr:?} ends at the root queue");
}

/// Whether the entity competes with others: all do but groups' where all tasks of a CPU have one queue (v7.3).
pub fn is_competitor<const COSTS: bool>(sched: &Sched<Hardware<COSTS>>, se: SeId) -> bool {
    sched.se[se].task.is_some() || !sched.kernel.picks_flat()
}

/// Notes the queues where an entity below [`LEAST_TRUE_WEIGHT`] runs on `cpu`.
pub fn unsettle<const COSTS: bool>(sched: &Sched<Hardware<COSTS>>, cpu: CpuId, unsettled: &mut Vec<bool>) {
    unsettled.resize(sched.cfs_rq.len(), false);
    let fair = |curr: &TaskId| sched.task[*curr].sched_class == SchedClass::Fair;
    let mut level = sched.rq[cpu].curr.filter(fair).map(|curr| sched.task[curr].se);
    while let Some(se) = level {
        let entity = &sched.se[se];
        unsettled[sched.competes_on(se).index()] |=
            sched.competing_weight(se) < LEAST_TRUE_WEIGHT && is_competitor(sched, se);
        level = entity.parent;
    }
}

/// The timeline's order is that of the entities' vruntimes, or deadlines.
pub fn sorted<const COSTS: bool>(sched: &Sched<Hardware<COSTS>>, id: CfsRqId) {
    let mut before: Option<SeId> = None;
    for se in sched.cfs_rq[id].tasks_timeline.iter() {
        let entity = &sched.se[se];
        assert!(entity.on_rq && entity.in_timeline && sched.competes_on(se) == id, "{se:?} waits on {id:?}");
        if let Some(before) = before {
            let key = |se: &SchedEntity| match sched.kernel.entity.pick {
                Pick::Cfs => se.vruntime,
                Pick::Eevdf => se.deadline,
            };
            let (a, b) = (key(&sched.se[before]), key(entity));
            assert!(!entity_before(b, a), "{id:?} has {before:?} ({a}) before {se:?} ({b})");
        }
        before = Some(se);
    }
}

/// EEVDF's sums over what waits, and lag: what an entity is owed is bounded, and so is what it owes.
/// `unsettled`: a light entity, or one that nobody looks at, was here since the queue held one or none.
pub fn competition<const COSTS: bool>(
    sched: &Sched<Hardware<COSTS>>,
    id: CfsRqId,
    lag_is_bounded: bool,
    unsettled: &mut bool,
) {
    let cfs = &sched.cfs_rq[id];
    let shown = |se: SeId| i128::from(sched.kernel.load_resolution.scale_load_down(sched.competing_weight(se)));
    let weight = |se: SeId| i128::from(sched.avg_vruntime_weight(id, sched.competing_weight(se)));
    let key = |se: SeId| i128::from(sched.se[se].vruntime.wrapping_sub(cfs.zero_vruntime) as i64);
    let waiting: Vec<SeId> = cfs.tasks_timeline.iter().collect();
    let sum = |all: &[SeId]| all.iter().map(|&se| weight(se) * key(se)).sum::<i128>();
    let load = |all: &[SeId]| all.iter().map(|&se| weight(se)).sum::<i128>();
    assert_eq!(i128::from(cfs.sum_w_vruntime), sum(&waiting), "{id:?}.sum_w_vruntime");
    assert_eq!(i128::from(cfs.sum_weight), load(&waiting), "{id:?}.sum_weight");
    let curr = sched.competing_curr(id).filter(|&curr| sched.se[curr].on_rq);
    let all: Vec<SeId> = waiting.into_iter().chain(curr).collect();
    let (sum, load) = (sum(&all), load(&all));
    let light = all.iter().any(|&se| sched.competing_weight(se) < LEAST_TRUE_WEIGHT);
    let forgotten = all.iter().any(|&se| is_forgotten(sched, se, cfs.rq));
    let placed = all.iter().any(|&se| may_be_placed_anew(sched, se));
    let taken_off = sched.competing_curr(id).is_some_and(|curr| is_taken_off(sched, curr));
    *unsettled = light || forgotten || placed || taken_off || *unsettled && all.len() > 1;
    if !lag_is_bounded || *unsettled {
        return;
    }
    for &se in &all {
        let entity = &sched.se[se];
        let lag = (sum - key(se) * load) * shown(se) / load / 1024;
        let slice = u64::from(match sched.kernel.entity.lag_limit {
            LagLimit::OwnSlice => entity.slice,
            LagLimit::LongestSlice => all.iter().map(|&se| sched.se[se].slice).max().expect("one is here"),
        });
        let most = LAG_SLICES * i128::from(slice.max(sched.tick_nsec));
        assert!(lag.abs() <= most, "{id:?} owes {se:?} {lag} ns, whose slice is {} ns", entity.slice);
    }
}

/// Whether another weight may leave a running entity far ahead: v6.18 places it where its lag says from the average vruntime, in which it
/// counts itself with the new weight where it was. A group that was light, had run ahead and gets heavy is the average by then, and so stays
/// there, owing as many times as much.
fn may_be_placed_anew<const COSTS: bool>(sched: &Sched<Hardware<COSTS>>, se: SeId) -> bool {
    sched.kernel.entity.reweight == Reweight::PlacedAnew && sched.se[se].my_q.is_some()
}

/// Whether a quota took a group off its queue that still runs there, until the CPU switches. If it is given runtime before that, it is placed
/// first and weighed then (enqueue_entity() of who is `curr`): with the lag that its weight off the queue makes of its own. That is the
/// least weight if the group has no load yet, so milliseconds become minutes, and stay.
fn is_taken_off<const COSTS: bool>(sched: &Sched<Hardware<COSTS>>, curr: SeId) -> bool {
    let entity = &sched.se[curr];
    entity.my_q.is_some() && !entity.on_rq
}

/// Whether a group's entity stays queued after its last task, until it has made up for what it owes, on a CPU of nohz_full= where nobody
/// comes to see that it has: sched_can_stop_tick() counts tasks (h_nr_queued), of which such a group has none, so who runs there alone
/// goes on without ticks, ahead of the other by as long as it likes.
fn is_forgotten<const COSTS: bool>(sched: &Sched<Hardware<COSTS>>, se: SeId, cpu: CpuId) -> bool {
    let entity = &sched.se[se];
    entity.sched_delayed && entity.my_q.is_some() && sched.tick_nohz_full_cpu(cpu)
}

/// Every task is somewhere: runnable on one queue, on its way to one, or asleep and on none. `stranded`: by task, see [`is_stranded`].
pub fn tasks<const COSTS: bool>(sched: &Sched<Hardware<COSTS>>, stranded: &mut Vec<bool>) {
    stranded.resize(sched.task.len(), false);
    let mut on_wake_list = vec![0; sched.task.len()];
    for (_, rq) in sched.rq.iter() {
        rq.wake_list.iter().for_each(|p| on_wake_list[p.index()] += 1);
    }
    for (p, task) in sched.task.iter().filter(|(_, task)| task.alive) {
        let stopper = task.sched_class == SchedClass::Stop;
        let queued = match task.sched_class {
            SchedClass::Stop => sched.rq[task.cpu].stop_queued,
            SchedClass::Rt => sched.rt_se[p].on_rq,
            // A throttled one is on no queue, and its timer brings it back.
            SchedClass::Dl => sched.on_dl_rq(p) || waits_for_budget(sched, p),
            SchedClass::Fair | SchedClass::Idle => sched.se[task.se].on_rq || waits_for_runtime(sched, p),
        };
        assert_eq!(queued, task.on_rq == OnRq::Queued, "{p:?} ({:?}) is {:?}", task.state, task.on_rq);
        let asleep = matches!(task.state, TaskState::Interruptible | TaskState::Uninterruptible);
        assert!(asleep || !sched.se[task.se].sched_delayed, "{p:?} is {:?}, and its dequeue delayed", task.state);
        assert_ne!(task.on_rq, OnRq::Migrating, "{p:?} was left in the middle of a migration");
        let running = sched.rq[task.cpu].curr == Some(p);
        assert_eq!(task.on_cpu, running, "{p:?} on {}: on_cpu, and whether it is curr", task.cpu);
        assert_eq!(on_wake_list[p.index()], u32::from(task.state == TaskState::Waking), "{p:?} on wake lists");
        match task.state {
            TaskState::Running => assert!(queued, "{p:?} is runnable and on no queue"),
            TaskState::Waking => assert!(!queued, "{p:?} is on a wake list and on a queue"),
            TaskState::Interruptible | TaskState::Uninterruptible => {
                assert_eq!(queued, sched.se[task.se].sched_delayed, "{p:?} sleeps on a queue");
            }
            TaskState::New | TaskState::Dead => panic!("{p:?} was left {:?}", task.state),
        }
        if queued && !stopper {
            let allowed = &sched.task[p].cpus_allowed;
            let may_stay = running || sched.rq[task.cpu].stop_queued;
            let strays = is_stranded(sched, p, stranded);
            let may_stay = may_stay || allowed.contains(task.cpu) || strays;
            assert!(may_stay, "{p:?} ({:?}) waits on {}, may only run on {allowed:?}", task.sched_class, task.cpu);
            assert_eq!(
                sched.cfs_rq[sched.se[task.se].cfs_rq].tg, task.sched_task_group,
                "{p:?} is on its group's queue"
            );
        }
    }
}

/// Whether a deadline task waits on a CPU that its affinity excludes, because none that it names was up when it came there: its own
/// went away while it was throttled, and dl_task_offline_migration() then takes any CPU at all, in every version, and leaves the
/// affinity as it was (select_fallback_rq() would have widened it). It may stay there when its CPUs come back, until somebody moves it.
fn is_stranded<const COSTS: bool>(sched: &Sched<Hardware<COSTS>>, p: TaskId, stranded: &mut [bool]) -> bool {
    let (task, allowed) = (&sched.task[p], &sched.task[p].cpus_allowed);
    let strays = task.sched_class == SchedClass::Dl && !allowed.contains(task.cpu);
    let known = &mut stranded[p.index()];
    *known = strays && (*known || allowed.and(&sched.cpu_active_mask).is_empty());
    *known
}

/// Whether a deadline task waits on a CPU that idles and that nobody tells: it idles on until something else has it look, and who waits for
/// the task's mutex waits as long. Two kernels' faults come to this.
///
/// - A deadline was lent to it while it was throttled there, until v6.2 (prio_changed_dl(); 7ea98dfa4491, "Add more reschedule cases to
///   prio_changed_dl()", has this very case).
/// - A deadline was lent to a fair task whose group was throttled there, by which it came to the class, in v4.5 (switched_to_dl()).
pub fn is_overlooked<const COSTS: bool>(sched: &Sched<Hardware<COSTS>>) -> bool {
    let rules = &sched.kernel.dl;
    let silent = rules.prio_changed == DlPrioChanged::EarliestHere || rules.switched_to == DlSwitchedTo::PushOnly;
    let waits =
        |p: TaskId, cpu: CpuId| sched.on_dl_rq(p) && sched.dl_se[p].pi_se.is_some() && sched.rq[cpu].curr.is_none();
    let mut tasks = sched.task.iter().filter(|(_, task)| task.alive);
    silent && tasks.any(|(p, task)| waits(p, task.cpu))
}

/// Whether a task has left its queue because that is throttled: then it waits there until it is not, and does not run.
fn waits_for_runtime<const COSTS: bool>(sched: &Sched<Hardware<COSTS>>, p: TaskId) -> bool {
    let (task, se) = (&sched.task[p], &sched.se[sched.task[p].se]);
    let listed = sched.throttled_limbo_list(se.cfs_rq).filter(|&other| other == p).count();
    // One that left the class meanwhile, and came back asleep, learns when it wakes whether it still is.
    let waits = sched.task_is_throttled(p) && task.on_rq == OnRq::Queued && !se.on_rq;
    assert_eq!(listed, usize::from(waits), "{p:?} is throttled, and listed as such");
    let rests = !se.on_rq && !task.on_cpu && task.state == TaskState::Running;
    assert!(!waits || rests && sched.cfs_rq[se.cfs_rq].throttle_count != 0, "{p:?} ({:?}) is throttled", task.state);
    waits
}

/// A group's load is the sum of what its queues said they contribute.
pub fn groups<const COSTS: bool>(sched: &Sched<Hardware<COSTS>>, limited: bool) {
    for (id, tg) in sched.tg.iter() {
        let parts: u64 = tg.cfs_rq.iter().map(|&cfs| sched.cfs_rq[cfs].tg_load_avg_contrib).sum();
        assert_eq!(tg.load_avg, parts, "{id:?}.load_avg");
        let parts: u64 = tg.cfs_rq.iter().map(|&cfs| sched.cfs_rq[cfs].tg_runnable_avg_contrib).sum();
        assert_eq!(tg.runnable_avg, parts, "{id:?}.runnable_avg");
        for (cpu, &se) in tg.se.iter().enumerate() {
            let queue = sched.se[se].my_q.expect("a group's entity has a queue");
            let throttled = sched.cfs_rq_runtime(queue).throttled && sched.kernel.bandwidth.throttle == Throttle::Queue;
            let needed = sched.cfs_rq[queue].nr_running > 0 && !throttled || sched.se[se].sched_delayed;
            assert_eq!(sched.se[se].on_rq, needed, "entity of {id:?} on CPU {cpu}");
            // One that was never queued may have the weight it was made with; nobody weighs one that was queued while throttled (with
            // quotas, even if that took no time), nor one that is still queued for an empty queue (DELAY_DEQUEUE).
            let weighed = !limited && sched.cfs_rq[queue].nr_running > 0 && sched.se[se].on_rq;
            let least = if weighed { 2 } else { u64::MAX };
            let times = match sched.kernel.load.group_shares {
                GroupShares::Concurrent => sched.nr_cpus() as u64,
                _ => 1,
            };
            assert!(
                sched.se[se].load.weight <= (tg.shares * times).max(least),
                "{id:?} weighs more than its shares on CPU {cpu}"
            );
        }
    }
}

/// `rq->cfs_tasks` lists the tasks that are queued there, each once.
pub fn task_lists<const COSTS: bool>(sched: &Sched<Hardware<COSTS>>) {
    let mut listed = 0;
    for (cpu, rq) in sched.rq.iter() {
        let (mut at, mut before) = (rq.cfs_tasks.first, None);
        while let Some(number) = at {
            let task = &sched.task[TaskId(number)];
            assert!(task.cpu == cpu && sched.se[task.se].on_rq, "task {number} on the list of {cpu}");
            assert_eq!(task.group_node.prev.get(), before, "links of task {number} on the list of {cpu}");
            (before, at) = (at, task.group_node.next.get());
            listed += 1;
            assert!(listed <= sched.task.len(), "the list of {cpu} runs in a circle");
        }
        assert_eq!(rq.cfs_tasks.last, before, "end of the list of {cpu}");
    }
    let fair = |task: &sched::sched::TaskStruct| task.alive && sched.se[task.se].on_rq;
    assert_eq!(listed, sched.task.iter().filter(|(_, task)| fair(task)).count(), "tasks on all lists");
}
