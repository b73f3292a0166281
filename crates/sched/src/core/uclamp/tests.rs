//! Clamps of tasks, groups and the system, and how runqueues aggregate them.

use super::*;
use crate::attr::{ClampRequest, SchedAttr};
use crate::core::TaskInit;
use crate::core::cgroup::GroupFile;
use crate::errno::Errno;
use crate::layout::RqLine;
use crate::scheduler::Scheduler;
use crate::sysctl::Sysctl;
use crate::testing::{Hand, MS, machine, policy_of, task_in};
use crate::versions::{CoreRules, Kernel, V4_16, V5_4, V5_10, V6_1, V6_12, V6_18, V7_2};
use units::CpuMask;

const CPU0: CpuId = CpuId(0);

impl Sched<Hand> {
    /// A task of the group, queued on CPU 0.
    fn queued(&mut self, group: TgId) -> TaskId {
        let init = TaskInit { cpus_allowed: Some(CpuMask::single(CPU0)), ..task_in(group, "test") };
        let p = self.fork(CPU0, init).expect("a fair task");
        Scheduler::wake_up_new_task(self, CPU0, p);
        p
    }

    fn clamp(&mut self, p: TaskId, min: u32, max: u32) {
        self.sched_setattr(p, &SchedAttr::clamps(ClampRequest::Set(min), ClampRequest::Set(max)))
            .expect("sound clamps");
    }

    fn effective(&self, p: TaskId) -> (u64, u64) {
        (self.uclamp_eff_value(p, ClampId::Min), self.uclamp_eff_value(p, ClampId::Max))
    }

    fn of_queue(&self) -> (u64, u64) {
        (self.uclamp.uclamp_rq_get(CPU0, ClampId::Min), self.uclamp.uclamp_rq_get(CPU0, ClampId::Max))
    }
}

#[test]
fn buckets_are_a_fifth_of_the_capacity() {
    assert_eq!(UCLAMP_BUCKET_DELTA, 205);
    let ids = [0, 204, 205, 409, 410, 819, 820, 1024].map(uclamp_bucket_id);
    assert_eq!(ids, [0, 0, 1, 1, 2, 3, 4, 4]);
}

#[test]
fn a_queues_clamps_are_the_greatest_of_its_tasks() {
    for kernel in [V6_1, V6_12] {
        let mut s = machine(kernel, 2);
        let [a, b] = [(); 2].map(|()| s.queued(ROOT_TASK_GROUP));
        s.clamp(a, 100, 500);
        // No clamp had been requested when `b` was enqueued, so `b` is not counted.
        assert_eq!(s.of_queue(), (100, 500), "{}", kernel.name);
        s.clamp(b, 300, 400);
        assert_eq!(s.of_queue(), (300, 500), "{}", kernel.name);
        assert_eq!(s.effective(b), (300, 400));
        // Within a bucket the greatest value stays until the bucket is empty.
        s.clamp(b, 220, 450);
        assert_eq!(s.of_queue(), (220, 500), "{}", kernel.name);
        let c = s.queued(ROOT_TASK_GROUP);
        assert_eq!(s.of_queue(), (220, 1024), "{}: a task without clamps takes the cap away", kernel.name);
        s.clamp(c, 0, 410);
        assert_eq!(s.of_queue(), (220, 500), "{}", kernel.name);
        s.clamp(a, 0, 420);
        assert_eq!(s.of_queue(), (220, 500), "{}: 410, 420 and 450 share the bucket of 500", kernel.name);
    }
}

#[test]
fn an_idle_queue_keeps_the_last_upper_clamp() {
    let mut s = machine(V6_1, 2);
    assert_eq!((s.of_queue(), s.uclamp.uclamp_rq_is_idle(CPU0)), ((0, 1024), true));
    let p = s.queued(ROOT_TASK_GROUP);
    s.clamp(p, 200, 600);
    assert!(!s.uclamp.uclamp_rq_is_idle(CPU0));
    assert_eq!(Scheduler::schedule(&mut s, CPU0, true), Some(p));
    s.set_current_state(CPU0, TaskState::Interruptible);
    assert_eq!(Scheduler::schedule(&mut s, CPU0, false), None);
    assert_eq!((s.of_queue(), s.uclamp.uclamp_rq_is_idle(CPU0)), ((0, 600), true));
    // A task that is enqueued brings its own clamps and ignores what is left of the last one.
    let other = s.queued(ROOT_TASK_GROUP);
    assert_eq!(s.of_queue(), (0, 1024));
    s.clamp(other, 0, 300);
    assert_eq!(s.of_queue(), (0, 300));
}

#[test]
fn utilization_is_clamped_by_the_queue_and_by_who_comes() {
    // In v5.4 the last clamps of an idle queue count, too; here nobody was there, and nothing is clamped from above.
    for (kernel, on_idle) in [(V5_4, [300, 400, 700]), (V5_10, [300, 400, 500]), (V6_1, [300, 400, 500])] {
        utilization_is_clamped(kernel, on_idle);
    }
}

fn utilization_is_clamped(kernel: Kernel, on_idle: [u64; 3]) {
    let mut s = machine(kernel, 2);
    assert_eq!(s.uclamp_rq_util_with(CPU0, 700, None), 700, "nobody asked");
    let p = s.queued(ROOT_TASK_GROUP);
    s.clamp(p, 200, 600);
    assert_eq!([100, 400, 700].map(|util| s.uclamp_rq_util_with(CPU0, util, None)), [200, 400, 600]);
    let q = s.queued(ROOT_TASK_GROUP);
    s.clamp(q, 300, 500);
    // Both are on CPU 0. CPU 1 has no task, so only the task that would be added counts there.
    let found = [100, 400, 700].map(|util| s.uclamp_rq_util_with(CpuId(1), util, Some(q)));
    assert_eq!(found, on_idle, "{}", kernel.name);
    assert_eq!([100, 400, 700].map(|util| s.uclamp_rq_util_with(CPU0, util, Some(q))), [300, 400, 600]);
}

#[test]
fn groups_limit_what_their_tasks_ask_for() {
    let mut s = machine(V6_1, 2);
    let outer = s.sched_create_group(ROOT_TASK_GROUP, "outer", 1024);
    let inner = s.sched_create_group(outer, "inner", 1024);
    let p = s.queued(inner);
    s.cgroup_write(inner, GroupFile::UclampMin, "50").expect("a percentage");
    s.cgroup_write(inner, GroupFile::UclampMax, "75.5").expect("a percentage");
    assert_eq!(s.cgroup_read(inner, GroupFile::UclampMax).expect("a file"), "75.50\n");
    assert_eq!(s.cgroup_read(outer, GroupFile::UclampMax).expect("a file"), "max\n");
    // The parent has a lower clamp of 0, which limits the child's; 75.5% is 773.
    assert_eq!(s.effective(p), (0, 773));
    s.cgroup_write(outer, GroupFile::UclampMin, "max").expect("max");
    assert_eq!(s.effective(p), (512, 773));
    s.clamp(p, 100, 900);
    assert_eq!(s.effective(p), (512, 773), "no less than the group's lower clamp, no more than the upper one");
    assert_eq!(s.of_queue(), (512, 773), "at once, for queued tasks too");
    s.cgroup_write(outer, GroupFile::UclampMax, "25").expect("a percentage");
    assert_eq!(s.effective(p), (256, 256), "a lower clamp never exceeds the upper one");
    for (text, errno) in [("101", Errno::ERANGE), ("-3", Errno::ERANGE), ("much", Errno::EINVAL)] {
        let refused = s.cgroup_write(outer, GroupFile::UclampMin, text);
        assert_eq!(refused.map_err(|refusal| refusal.errno), Err(errno), "{text}");
    }
    // A group created below has what its parent has.
    let late = s.sched_create_group(inner, "late", 1024);
    let q = s.queued(late);
    assert_eq!(s.effective(q), (0, 256));
}

#[test]
fn the_system_limits_everybody() {
    let mut s = machine(V6_1, 2);
    let p = s.queued(ROOT_TASK_GROUP);
    s.clamp(p, 600, 900);
    let limit = |s: &mut Sched<Hand>, min, max| {
        let limits = Sysctl { sched_uclamp_util_min: min, sched_uclamp_util_max: max, ..Sysctl::new(1) };
        s.sysctl_sched_uclamp_handler(&limits).map_err(|refusal| refusal.errno)
    };
    assert_eq!(limit(&mut s, 512, 800), Ok(()));
    assert_eq!((s.effective(p), s.of_queue()), ((512, 800), (512, 800)));
    assert_eq!(limit(&mut s, 900, 800), Err(Errno::EINVAL));
    assert_eq!(limit(&mut s, 0, 1025), Err(Errno::EINVAL));
    assert_eq!(s.effective(p), (512, 800));
    assert!(Sysctl { sched_uclamp_util_max: 5, ..Sysctl::new(1) }.contradiction().is_some());
}

#[test]
fn requests_that_make_no_sense_are_refused() {
    let mut s = machine(V6_1, 2);
    let p = s.queued(ROOT_TASK_GROUP);
    let ask = |s: &mut Sched<Hand>, min, max| {
        s.sched_setattr(p, &SchedAttr::clamps(min, max)).map_err(|refusal| refusal.errno)
    };
    assert_eq!(ask(&mut s, ClampRequest::Set(1025), ClampRequest::Keep), Err(Errno::EINVAL));
    assert_eq!(ask(&mut s, ClampRequest::Set(600), ClampRequest::Set(500)), Err(Errno::EINVAL));
    assert!(!s.uclamp_is_used(), "a refused request switches nothing on");
    assert_eq!(ask(&mut s, ClampRequest::Keep, ClampRequest::Set(500)), Ok(()));
    assert_eq!(ask(&mut s, ClampRequest::Set(501), ClampRequest::Keep), Err(Errno::EINVAL));
    assert_eq!(ask(&mut s, ClampRequest::Set(500), ClampRequest::Reset), Ok(()));
    assert_eq!(s.effective(p), (500, 1024));
    let mut s = machine(V4_16, 2);
    let p = s.queued(ROOT_TASK_GROUP);
    let refused = s.sched_setattr(p, &SchedAttr::clamps(ClampRequest::Set(1), ClampRequest::Keep));
    assert_eq!(refused.map_err(|refusal| refusal.errno), Err(Errno::E2BIG));
    let group = s.sched_create_group(ROOT_TASK_GROUP, "g", 1024);
    let refused = s.cgroup_write(group, GroupFile::UclampMin, "5");
    assert_eq!(refused.map_err(|refusal| refusal.errno), Err(Errno::ENOENT));
}

#[test]
fn children_ask_for_what_their_parents_ask_for() {
    let mut s = machine(V6_12, 2);
    let p = s.queued(ROOT_TASK_GROUP);
    s.clamp(p, 10, 20);
    assert_eq!(Scheduler::schedule(&mut s, CPU0, true), Some(p));
    let child = s.queued(ROOT_TASK_GROUP);
    assert_eq!(s.effective(child), (10, 20));
}

#[test]
fn children_of_who_resets_on_fork_ask_for_nothing() {
    let mut s = machine(V6_12, 2);
    let p = s.queued(ROOT_TASK_GROUP);
    s.clamp(p, 10, 20);
    s.task_cold[p].sched_reset_on_fork = true;
    assert_eq!(Scheduler::schedule(&mut s, CPU0, true), Some(p));
    let child = s.queued(ROOT_TASK_GROUP);
    assert_eq!(s.effective(child), (0, 1024));
}

#[test]
fn real_time_tasks_ask_for_a_whole_cpu_by_default() {
    let mut s = machine(V6_1, 2);
    let p = s.queued(ROOT_TASK_GROUP);
    s.sched_setscheduler(p, Policy::Fifo, 5).expect("a priority");
    assert_eq!(s.effective(p), (1024, 1024));
    let by_default = Sysctl { sched_uclamp_util_min_rt_default: 300, ..Sysctl::new(1) };
    s.sysctl_sched_uclamp_handler(&by_default).expect("a sound default");
    assert!(s.uclamp_is_used());
    assert_eq!(s.effective(p), (300, 1024));
    s.sched_setscheduler(p, Policy::Normal, 0).expect("a policy");
    assert_eq!((s.effective(p), s.of_queue()), ((0, 1024), (0, 1024)));
    s.clamp(p, 100, 200);
    s.sched_setscheduler(p, Policy::Fifo, 5).expect("a priority");
    assert_eq!((s.effective(p), s.of_queue()), ((100, 200), (100, 200)), "what it has asked for stays");
}

#[test]
fn clamps_come_with_a_policy_or_alone() {
    for kernel in [V6_1, V6_12] {
        let mut s = machine(kernel, 2);
        let p = s.queued(ROOT_TASK_GROUP);
        let attr = SchedAttr { sched_util_max: ClampRequest::Set(400), ..SchedAttr::fair(Policy::Batch, 3) };
        s.sched_setattr(p, &attr).expect("a policy and a clamp");
        assert_eq!((s.task[p].policy, s.effective(p)), (Policy::Batch, (0, 400)));
        let vruntime = s.se[s.task[p].se].vruntime;
        s.clamp(p, 50, 300);
        assert_eq!((s.task[p].policy, s.get_params(p).sched_nice), (Policy::Batch, 3), "{}", kernel.name);
        assert_eq!(s.se[s.task[p].se].vruntime, vruntime);
        assert_eq!(s.effective(p), (50, 300));
    }
}

#[test]
fn until_somebody_asks_nothing_is_touched() {
    let mut s = machine(V6_1, 2);
    let line = s.layout.rq(CPU0, RqLine::Uclamp);
    s.queued(ROOT_TASK_GROUP);
    assert!(!s.arch.stored.contains(&line));
    let p = s.queued(ROOT_TASK_GROUP);
    s.clamp(p, 1, 2);
    assert!(s.arch.stored.contains(&line));
}

/// v7.2, but with a choice of when a queue learns of clamps.
fn learning(uclamp: UtilClamp) -> Kernel {
    Kernel { core: CoreRules { uclamp, ..V7_2.core }, ..V7_2 }
}

#[test]
fn a_frequency_is_chosen_by_the_clamps_of_who_comes_but_not_in_v6_12() {
    assert_eq!(learning(UtilClamp::BeforeIfAwake), V7_2);
    assert_eq!(V6_18.core.uclamp, UtilClamp::BeforeIfAwake);
    let variants = [UtilClamp::BeforeEnqueue, UtilClamp::AfterEnqueue, UtilClamp::BeforeIfAwake];
    // 1875 MHz: what a new task's initial utilization asks for.
    for (uclamp, mhz) in variants.into_iter().zip([&[1_875, 3_000][..], &[1_875], &[1_875, 3_000]]) {
        let mut s = machine(learning(uclamp), 1);
        s.arch.khz = Some((1_000_000, 3_000_000));
        s.sugov_start(vec![policy_of(&[CPU0])]);
        let p = s.queued(ROOT_TASK_GROUP);
        s.clamp(p, 1024, 1024);
        assert_eq!(Scheduler::schedule(&mut s, CPU0, true), Some(p));
        s.set_current_state(CPU0, TaskState::Interruptible);
        assert_eq!(Scheduler::schedule(&mut s, CPU0, false), None);
        s.arch.now += 1_000 * MS;
        assert!(Scheduler::wake(&mut s, CPU0, p, WakeFlags::NONE));
        assert_eq!(s.arch.mhz, mhz, "{uclamp:?}");
        assert_eq!(s.of_queue(), (1024, 1024), "{uclamp:?}");
    }
}

#[test]
fn a_sleeper_that_stays_queued_is_counted_where_nobody_asks_whether_it_is_awake() {
    let variants = [UtilClamp::BeforeEnqueue, UtilClamp::AfterEnqueue, UtilClamp::BeforeIfAwake];
    for (uclamp, asleep) in variants.into_iter().zip([700, 100, 100]) {
        let mut s = machine(learning(uclamp), 1);
        let [p, q] = [(700, 900), (100, 900)].map(|(min, max)| {
            let p = s.queued(ROOT_TASK_GROUP);
            s.clamp(p, min, max);
            p
        });
        assert_eq!(Scheduler::schedule(&mut s, CPU0, true), Some(p));
        s.arch.now += MS;
        s.set_current_state(CPU0, TaskState::Interruptible);
        assert_eq!(Scheduler::schedule(&mut s, CPU0, false), Some(q));
        assert!(s.se[s.task[p].se].sched_delayed, "it has had more than its share");
        assert_eq!(s.of_queue().0, 100, "{uclamp:?}");
        // A change of the nice level makes it leave the queue and come back.
        s.set_user_nice(p, 1);
        assert!(s.se[s.task[p].se].sched_delayed, "{uclamp:?}");
        assert_eq!(s.of_queue().0, asleep, "{uclamp:?}");
        if asleep == 100 {
            assert!(Scheduler::wake(&mut s, CPU0, p, WakeFlags::NONE));
            assert_eq!(s.of_queue().0, 700, "{uclamp:?}: as it wakes");
        }
    }
}
