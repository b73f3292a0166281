//! Quotas: no group uses more than it may, and who is throttled is let go again.

use machine::hardware::Hardware;
use sched::core::Sched;
use sched::fair::bandwidth::{NewGroupThrottled, RUNTIME_INF};
use sched::hrtimer::SchedTimer;
use sched::sched::{TaskId, TgId};
use sim::engine::LinuxSim;
use units::CpuId;

/// What each group may have used by now, by its id.
#[derive(Default)]
pub struct Budgets(Vec<Budget>);

/// Since when a group has had its limits, and what it had used then.
#[derive(Clone, Default)]
struct Budget {
    limits: Option<(u64, u64, u64, u64)>,
    since: u64,
    used: u64,
    unnoticed: Vec<Unnoticed>,
    /// What those ran, in ns of the clock.
    forgiven: u64,
}

/// A quota that a CPU without a tick has not noticed. Until something calls the scheduler there, a task of the group runs on.
///
/// That is v6.12's own gap: sched_can_stop_tick() is asked when a CPU's number of tasks changes (sched_update_tick_dependency()), and
/// sched_fair_update_stop_tick() when a fair task is picked; tg_set_cfs_bandwidth() sets runtime_enabled on each CPU's queue, but
/// neither sets TICK_DEP_BIT_SCHED nor kicks anybody. So who already runs alone on a CPU of nohz_full= goes on (and soon) without a tick,
/// until sched_tick_remote() accounts for it, which is once a second.
#[derive(Clone, Copy)]
struct Unnoticed {
    cpu: CpuId,
    task: TaskId,
    since: u64,
    last: u64,
}

impl Budgets {
    /// Who is throttled is listed, waits for a timer that will come, and holds back what is below; and no group uses more than it may.
    /// (Not where tasks are throttled, and the group has others below it: who is picked in one of those after another that was throttled there
    /// is not told. v7.2's set_next_task_fair() asks for runtime only on levels that change hands.)
    /// `written`: how often anybody wrote a group's limits, which fills it up and forgives what it owes. Whether somebody runs whose
    /// quota is not noticed.
    pub fn check<const COSTS: bool>(&mut self, sim: &LinuxSim<COSTS>, written: u64) -> bool {
        let sched = &sim.sched;
        let now = sched.rq.iter().map(|(_, rq)| rq.clock).max().expect("a CPU");
        self.0.resize(sched.tg.len(), Budget::default());
        for tg in sched.groups_below_root() {
            throttling(sched, tg);
            let cfs_b = &sched.tg[tg].cfs_bandwidth;
            let limits = (cfs_b.quota, cfs_b.period, cfs_b.burst, written);
            let budget = &mut self.0[tg.index()];
            let used = sched.group_runtime(tg);
            if budget.limits != Some(limits) || used < budget.used {
                let unnoticed = match cfs_b.quota {
                    RUNTIME_INF => Vec::new(),
                    _ => unnoticed(sched, tg, now),
                };
                *budget = Budget { limits: Some(limits), since: now, used, unnoticed, forgiven: 0 };
            }
            if cfs_b.quota == RUNTIME_INF {
                continue;
            }
            budget.forgive(sched, now);
            // Full when it was set, and once for each period that has begun; a tick finds what is used up, and each CPU may be a tick
            // late. Who joins a throttled group while running has the time of a system call before it notices.
            let periods = (now - budget.since) / cfs_b.period + 2;
            let late = (2 * sched.tick_nsec + 1_000_000) * sched.nr_cpus() as u64;
            let most = cfs_b.quota * periods + cfs_b.burst + late + (now - budget.since) / 20 + budget.forgiven;
            let ran = used - budget.used;
            if !sched.tg[tg].children.is_empty() && sched.kernel.bandwidth.throttle.by_task() {
                continue;
            }
            assert!(ran <= most, "{tg:?} ran {ran} ns in {periods} periods, with {} ns for each", cfs_b.quota);
        }
        self.0.iter().any(|budget| !budget.unnoticed.is_empty())
    }
}

impl Budget {
    /// Counts what ran unnoticed since the last look, and forgets who has a tick again or has been switched away.
    fn forgive<const COSTS: bool>(&mut self, sched: &Sched<Hardware<COSTS>>, now: u64) {
        let second = 1_000_000_000 + 2 * sched.tick_nsec;
        let forgiven = &mut self.forgiven;
        self.unnoticed.retain_mut(|it| {
            *forgiven += now - it.last;
            it.last = now;
            assert!(now - it.since <= second, "{}: sched_tick_remote() has not accounted for {:?}", it.cpu, it.task);
            sched.may_stop_tick(it.cpu) && sched.rq[it.cpu].curr == Some(it.task)
        });
    }
}

/// The CPUs that may go without their tick while they run a task of the group or of one below it.
fn unnoticed<const COSTS: bool>(sched: &Sched<Hardware<COSTS>>, tg: TgId, now: u64) -> Vec<Unnoticed> {
    let runs_there = |task: TaskId| {
        let mut level = Some(sched.cfs_rq[sched.se[sched.task[task].se].cfs_rq].tg);
        while let Some(group) = level.filter(|&group| group != tg) {
            level = sched.tg[group].parent;
        }
        level.is_some()
    };
    let without = sched.rq.iter().filter(|&(cpu, _)| sched.may_stop_tick(cpu));
    let running = without.filter_map(|(cpu, rq)| Some((cpu, rq.curr.filter(|&task| runs_there(task))?)));
    // Without a tick what somebody runs is told in one piece, with what it ran before.
    let told = |task: TaskId| now.min(sched.se[sched.task[task].se].exec_start);
    running.map(|(cpu, task)| Unnoticed { cpu, task, since: now, last: told(task) }).collect()
}

fn throttling<const COSTS: bool>(sched: &Sched<Hardware<COSTS>>, tg: TgId) {
    let group = &sched.tg[tg];
    let mut listed = vec![0; sched.nr_cpus()];
    for cfs in sched.throttled_queues(tg) {
        listed[sched.cfs_rq[cfs].rq.index()] += 1;
    }
    for (cpu, &cfs) in group.cfs_rq.iter().enumerate() {
        let queue = sched.cfs_rq_runtime(cfs);
        assert_eq!(listed[cpu], u32::from(queue.throttled), "{cfs:?} is throttled and listed as such");
        assert!(!queue.throttled || queue.runtime_enabled, "{cfs:?} is throttled without a quota");
        let mut above = 0;
        let mut level = Some(tg);
        while let Some(tg) = level {
            above += i32::from(sched.cfs_rq_runtime(sched.tg[tg].cfs_rq[cpu]).throttled);
            level = sched.tg[tg].parent;
        }
        let aware = sched.kernel.bandwidth.new_group_throttled == NewGroupThrottled::Synchronised;
        assert!(!aware || sched.cfs_rq[cfs].throttle_count == above, "{cfs:?}.throttle_count");
    }
    let waits = listed.iter().any(|&listed| listed > 0);
    let timer = sched.hrtimers.is_queued(SchedTimer::CfsPeriod(tg));
    assert!(!waits || timer, "{tg:?} is throttled and no period will end it");
}
