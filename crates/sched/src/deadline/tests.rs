//! What scenarios cannot express: tasks that are changed by others, CPUs and partitions that go away while bandwidth is
//! reserved, the fair server's accounts.

use super::*;
use crate::attr::{SchedAttr, SchedFlags};
use crate::core::TaskInit;
use crate::errno::Errno;
use crate::hrtimer::SchedTimer;

use crate::scheduler::Scheduler;
use crate::sysctl::{RUNTIME_UNLIMITED, Tunable};
use crate::testing::{Hand, MS, machine, task_in};
use crate::topology::SdFlags;
use crate::versions::{V4_5_RC1 as V4_5, V4_15, V4_16, V6_1, V6_6, V6_12, V6_18, V7_2};
use units::CpuMask;

const CPU0: CpuId = CpuId(0);
const CPU1: CpuId = CpuId(1);

fn deadline(runtime_ms: u64, period_ms: u64) -> SchedAttr {
    SchedAttr {
        sched_policy: Policy::Deadline,
        sched_runtime: runtime_ms * MS,
        sched_deadline: period_ms * MS,
        ..SchedAttr::NORMAL
    }
}

impl Sched<Hand> {
    fn later(&mut self, ms: u64) {
        self.arch.now += ms * MS;
    }

    fn starts(&mut self, cpu: CpuId, attr: SchedAttr) -> TaskId {
        let init = TaskInit { attr: Some(attr), ..task_in(ROOT_TASK_GROUP, "test") };
        let p = self.fork(cpu, init).expect("it is admitted");
        Scheduler::wake_up_new_task(self, cpu, p);
        p
    }

    fn sleeps(&mut self, cpu: CpuId) {
        Scheduler::set_current_state(self, cpu, TaskState::Interruptible);
        Scheduler::schedule(self, cpu, false);
    }

    fn reserved(&self, cpu: CpuId) -> u64 {
        self.root_domain(cpu).total_bw
    }
}

#[test]
fn who_comes_to_the_class_while_it_waits_preempts_but_not_in_v4_5() {
    for (kernel, preempts) in [(V4_5, false), (V4_15, true), (V6_1, true), (V6_6, true), (V6_12, true)] {
        let mut s = machine(kernel, 1);
        let hog = s.starts(CPU0, SchedAttr::NORMAL);
        assert_eq!(Scheduler::schedule(&mut s, CPU0, true), Some(hog));
        let other = s.starts(CPU0, SchedAttr::NORMAL);
        s.rq[CPU0].need_resched = false;
        Scheduler::sched_setattr(&mut s, CPU0, other, &deadline(4, 10)).expect("it is admitted");
        assert_eq!(s.rq[CPU0].need_resched, preempts, "{}", kernel.name);
    }
}

#[test]
fn a_sleeper_that_leaves_the_class_uses_its_bandwidth_no_more_since_v4_18() {
    for (kernel, left) in [(V4_16, to_ratio_of(4, 10)), (V6_1, 0)] {
        let mut s = machine(kernel, 1);
        let p = s.starts(CPU0, deadline(4, 10));
        Scheduler::schedule(&mut s, CPU0, true);
        s.sleeps(CPU0);
        assert_eq!(s.dl[CPU0].running_bw, to_ratio_of(4, 10), "until its 0-lag time");
        Scheduler::sched_setattr(&mut s, CPU0, p, &SchedAttr::NORMAL).expect("anybody may leave");
        assert_eq!((s.dl[CPU0].running_bw, s.dl[CPU0].this_bw), (left, 0), "{}", kernel.name);
    }
}

fn to_ratio_of(runtime_ms: u64, period_ms: u64) -> u64 {
    bandwidth::to_ratio(period_ms * MS, runtime_ms * MS)
}

/// A thread of schedutil.
fn special() -> SchedAttr {
    SchedAttr { sched_flags: SchedFlags { sugov: true, ..SchedFlags::default() }, ..deadline(1, 10) }
}

#[test]
fn threads_of_schedutil_come_before_earlier_deadlines_and_reserve_and_exhaust_nothing() {
    for kernel in [V4_16, V6_1, V6_6, V6_12] {
        let name = kernel.name;
        let mut s = machine(kernel, 1);
        let before = (s.reserved(CPU0), s.dl[CPU0].this_bw, s.dl[CPU0].running_bw);
        let thread = s.starts(CPU0, special());
        assert_eq!(Scheduler::schedule(&mut s, CPU0, true), Some(thread), "{name}");
        // Its budget is 1 ms.
        s.later(5);
        Scheduler::scheduler_tick(&mut s, CPU0);
        assert!(!s.rq[CPU0].need_resched && !s.dl_se[thread].dl_throttled, "{name}: it runs on");
        let now = (s.reserved(CPU0), s.dl[CPU0].this_bw, s.dl[CPU0].running_bw);
        assert_eq!(now, before, "{name}: nothing is reserved, and nothing counts as used");
        s.sleeps(CPU0);
        let urgent = s.starts(CPU0, deadline(2, 4));
        assert_eq!(Scheduler::schedule(&mut s, CPU0, true), Some(urgent), "{name}");
        s.rq[CPU0].need_resched = false;
        Scheduler::wake(&mut s, CPU0, thread, WakeFlags::NONE);
        assert!(s.rq[CPU0].need_resched, "{name}: a later deadline preempts");
    }
}

#[test]
fn users_cannot_make_threads_of_schedutil() {
    let mut s = machine(V6_12, 1);
    let p = s.starts(CPU0, SchedAttr::NORMAL);
    let refusal = Scheduler::sched_setattr(&mut s, CPU0, p, &special()).expect_err("the flag is the kernel's");
    assert_eq!(refusal.errno, Errno::EINVAL);
}

#[test]
fn a_cpu_stays_up_while_the_others_could_not_take_its_deadline_tasks() {
    for kernel in [V4_5, V4_15, V4_16, V6_1, V6_6, V6_12, V7_2] {
        let mut s = machine(kernel, 2);
        s.starts(CPU0, deadline(6, 10));
        let second = s.starts(CPU1, deadline(6, 10));
        let refusal = Scheduler::cpu_down(&mut s, CPU0, CPU1).expect_err("1.2 of one CPU");
        assert_eq!(refusal.errno, Errno::EBUSY, "{}", kernel.name);
        assert!(s.rq[CPU1].hotplug.is_active(), "{}", kernel.name);
        Scheduler::sched_setattr(&mut s, CPU0, second, &deadline(2, 10)).expect("less than before");
        Scheduler::cpu_down(&mut s, CPU0, CPU1).expect("0.8 of one CPU");
    }
}

#[test]
fn what_the_fair_server_of_a_cpu_has_does_not_keep_it_up_since_v6_18() {
    let down = |s: &mut Sched<Hand>, cpu: CpuId| Scheduler::cpu_down(s, CPU0, cpu).map_err(|refusal| refusal.errno);
    for (kernel, alone, full) in [
        (V6_1, Ok(()), Ok(())),
        (V6_12, Err(Errno::EBUSY), Err(Errno::EBUSY)),
        (V6_18, Ok(()), Ok(())),
        (V7_2, Ok(()), Ok(())),
    ] {
        // Alone in its root domain, where only its own server has reserved anything.
        let mut s = machine(kernel, 4);
        Scheduler::set_partitions(&mut s, CPU0, &[std::iter::once(CpuId(3)).collect()]).expect("nobody is there");
        assert_eq!(down(&mut s, CpuId(3)), alone, "{}", kernel.name);
        // 90% by tasks and twice 5% by servers, of the 95% of one CPU.
        let mut s = machine(kernel, 2);
        for cpu in [CPU0, CPU1] {
            s.starts(cpu, deadline(450, 1000));
        }
        assert_eq!(down(&mut s, CPU1), full, "{}", kernel.name);
    }
    // The last CPU of a root domain stays for a task, even if no limit is enforced.
    let mut s = machine(V7_2, 1);
    s.sysctl.set(Tunable::sched_rt_runtime, RUNTIME_UNLIMITED);
    assert_eq!(s.dl_bw_limit(), None);
    s.starts(CPU0, deadline(1, 10));
    assert!(s.dl_bw_check_overflow(CPU0).is_err());
}

#[test]
fn a_partition_does_not_shrink_below_what_is_reserved() {
    let cpus = |list: &[usize]| list.iter().map(|&cpu| CpuId::new(cpu)).collect::<CpuMask>();
    for kernel in [V4_16, V6_1, V6_6, V6_12] {
        let mut s = machine(kernel, 4);
        Scheduler::set_partitions(&mut s, CPU0, &[cpus(&[0, 1])]).expect("nobody is there");
        for cpu in [CPU0, CPU1] {
            s.starts(cpu, deadline(6, 10));
        }
        let refusal = Scheduler::set_partitions(&mut s, CPU0, &[cpus(&[0])]).expect_err("1.2 of one CPU");
        assert_eq!(refusal.errno, Errno::EBUSY, "{}", kernel.name);
        Scheduler::set_partitions(&mut s, CPU0, &[cpus(&[0, 1, 2])]).expect("it grows");
    }
}

#[test]
fn a_new_root_domain_knows_what_is_reserved_since_v5_4() {
    for (kernel, of_one) in [(V4_5, 0), (V4_16, 0), (V6_1, 1)] {
        let mut s = machine(kernel, 4);
        s.starts(CPU0, deadline(4, 10));
        assert_eq!(s.reserved(CPU0), to_ratio_of(4, 10));
        let half = [CPU0, CPU1].into_iter().collect::<CpuMask>();
        Scheduler::set_partitions(&mut s, CPU0, &[half]).expect("two CPUs are enough");
        let here =
            s.task.iter().find(|(_, task)| task.sched_class == SchedClass::Dl).map(|(p, _)| p).expect("it is there");
        assert_eq!(s.reserved(s.task[here].cpu), of_one * to_ratio_of(4, 10), "{}", kernel.name);
        assert_eq!(s.reserved(CpuId(3)), 0, "{}", kernel.name);
    }
}

#[test]
fn what_is_reserved_is_counted_again_after_a_new_limit_since_v6_17() {
    for (kernel, counted) in [(V4_15, 0), (V6_1, 0), (V6_6, 0), (V6_12, to_ratio_of(4, 10) / 2)] {
        let mut s = machine(kernel, 2);
        s.starts(CPU0, deadline(4, 10));
        s.sysctl_write(Tunable::sched_rt_runtime, 900_000).expect("enough");
        let free = to_ratio_of(90, 100) - counted;
        assert_eq!([CPU0, CPU1].map(|cpu| s.dl[cpu].extra_bw), [free; 2], "{}", kernel.name);
        let reserved = s.reserved(CPU0);
        assert!(s.sysctl_write(Tunable::sched_rt_runtime, 100_000).is_err(), "less than is reserved");
        assert_eq!(s.reserved(CPU0), reserved, "{}", kernel.name);
        assert_eq!(s.dl[CPU0].extra_bw, free - counted, "{}: and once more", kernel.name);
    }
}

#[test]
fn fair_servers_are_counted_again_with_the_tasks_since_v6_18() {
    for (kernel, servers) in [(V6_12, 0), (V6_18, 2), (V7_2, 2)] {
        let mut s = machine(kernel, 2);
        s.starts(CPU0, deadline(2, 10));
        let server = s.dl[CPU0].fair_server.dl_bw;
        let task = to_ratio_of(2, 10);
        assert_eq!(s.reserved(CPU0), 2 * server + task, "{}", kernel.name);
        // Nothing changes, but domains are rebuilt.
        s.sysctl_write(Tunable::sched_rt_period, s.sysctl.sched_rt_period).expect("it was so before");
        assert_eq!(s.reserved(CPU0), servers * server + task, "{}", kernel.name);
        if servers > 0 {
            let limit = s.dl_bw_limit().expect("95%");
            assert_eq!(s.dl[CPU1].extra_bw, limit - 2 * (server / 2) - task / 2, "{}", kernel.name);
        }
    }
}

#[test]
fn threads_of_schedutil_are_counted_when_domains_are_rebuilt_until_v6_18() {
    for (kernel, counted) in [(V6_12, 1), (V6_18, 0), (V7_2, 0)] {
        let reserved = |thread: bool| {
            let mut s = machine(kernel, 2);
            if thread {
                s.starts(CPU0, special());
            }
            s.sysctl_write(Tunable::sched_rt_period, s.sysctl.sched_rt_period).expect("it was so before");
            s.reserved(CPU0)
        };
        assert_eq!(reserved(true), reserved(false) + counted * to_ratio_of(1, 10), "{}", kernel.name);
    }
}

#[test]
fn a_fair_server_that_waits_counts_as_a_task_until_v6_18() {
    for (kernel, counts) in [(V6_12, 1), (V6_18, 0), (V7_2, 0)] {
        let mut s = machine(kernel, 1);
        let fifo = SchedAttr { sched_policy: Policy::Fifo, sched_priority: 1, ..SchedAttr::NORMAL };
        let spinner = s.starts(CPU0, fifo);
        assert_eq!(Scheduler::schedule(&mut s, CPU0, true), Some(spinner));
        let starving = s.starts(CPU0, SchedAttr::NORMAL);
        assert_eq!((s.rq[CPU0].nr_running, s.dl[CPU0].dl_nr_running), (2, 0), "it is deferred");
        s.later(980);
        while Scheduler::hrtimer_run(&mut s, CPU0) {}
        assert_eq!((s.rq[CPU0].nr_running, s.dl[CPU0].dl_nr_running), (2 + counts, 1), "{}", kernel.name);
        assert_eq!(Scheduler::schedule(&mut s, CPU0, true), Some(starving));
    }
}

#[test]
fn a_deadline_that_stays_reschedules_nobody_in_v7_2() {
    for (kernel, again) in [(V6_12, true), (V6_18, true), (V7_2, false)] {
        let mut s = machine(kernel, 1);
        let [first, second] = [deadline(2, 10), deadline(2, 20)].map(|attr| s.starts(CPU0, attr));
        assert_eq!(Scheduler::schedule(&mut s, CPU0, true), Some(first));
        // The waiting task has the earlier deadline now, but nothing was notified.
        s.dl_se[second].deadline = s.dl_se[first].deadline - MS;
        s.rq[CPU0].need_resched = false;
        let old = s.get_prio(CPU0, second);
        s.prio_changed(CPU0, second, old);
        assert_eq!(s.rq[CPU0].need_resched, again, "{}", kernel.name);
        s.prio_changed(CPU0, second, crate::core::class::OldPrio { deadline: old.deadline + MS, ..old });
        assert!(s.rq[CPU0].need_resched, "{}", kernel.name);
    }
}

#[test]
fn where_it_may_run_brings_a_late_task_no_budget_in_v7_2() {
    for (kernel, of_affinity) in [(V6_12, true), (V6_18, true), (V7_2, false)] {
        let fresh = |change: fn(&mut Sched<Hand>, TaskId)| {
            let mut s = machine(kernel, 2);
            let [first, second] = [deadline(2, 10), deadline(2, 20)].map(|attr| s.starts(CPU0, attr));
            assert_eq!(Scheduler::schedule(&mut s, CPU0, true), Some(first));
            s.later(30);
            change(&mut s, second);
            dl_time_before(s.arch.now, s.dl_se[second].deadline)
        };
        assert_eq!(
            fresh(|s, p| s.set_cpus_allowed_ptr(p, CpuMask::single(CPU0)).expect("they are there")),
            of_affinity,
            "{}",
            kernel.name
        );
        assert!(
            fresh(|s, p| Scheduler::sched_setattr(s, CPU0, p, &deadline(1, 20)).expect("less than before")),
            "{}",
            kernel.name
        );
    }
}

#[test]
fn a_fair_server_waits_longer_by_what_fair_tasks_had_from_when_its_timer_expired() {
    let mut s = machine(V6_12, 1);
    let timer = SchedTimer::DlServer(CPU0);
    let fifo = SchedAttr { sched_policy: Policy::Fifo, sched_priority: 1, ..SchedAttr::NORMAL };
    let first = s.starts(CPU0, fifo);
    assert_eq!(Scheduler::schedule(&mut s, CPU0, true), Some(first));
    s.later(1_500);
    let begin = s.arch.now;
    let task = s.starts(CPU0, SchedAttr::NORMAL);
    assert_eq!(s.hrtimers.expires(timer) - begin, 950 * MS);
    s.sleeps(CPU0);
    assert_eq!(s.rq[CPU0].curr, Some(task));
    s.later(10);
    let second = s.starts(CPU0, fifo);
    assert_eq!(Scheduler::schedule(&mut s, CPU0, true), Some(second));
    // Interrupts were off for a while: the server has 7 ms to wait when its timer runs, counted from when it should
    // have run.
    s.later(943);
    assert!(Scheduler::hrtimer_run(&mut s, CPU0));
    assert!(s.hrtimers.is_queued(timer));
    assert_eq!(s.hrtimers.expires(timer) - begin, 957 * MS);
}

#[test]
fn idleness_uses_up_the_fair_server_whoever_ends_it() {
    let mut s = machine(V6_12, 1);
    let task = s.starts(CPU0, SchedAttr::NORMAL);
    assert_eq!(Scheduler::schedule(&mut s, CPU0, true), Some(task));
    s.later(1);
    s.sleeps(CPU0);
    let before = s.dl[CPU0].fair_server.runtime;
    s.later(20);
    let spinner = s.starts(CPU0, SchedAttr { sched_policy: Policy::Fifo, sched_priority: 1, ..SchedAttr::NORMAL });
    assert_eq!(Scheduler::schedule(&mut s, CPU0, true), Some(spinner));
    assert_eq!(s.dl[CPU0].fair_server.runtime, before - 20 * MS as i64);
}

#[test]
fn who_leaves_a_real_time_policy_is_on_its_lists_no_more() {
    let fifo = SchedAttr { sched_policy: Policy::Fifo, sched_priority: 1, ..SchedAttr::NORMAL };
    for kernel in [V4_5, V4_15, V6_1, V6_6, V6_12] {
        for to in [SchedAttr::NORMAL, deadline(4, 10)] {
            let mut s = machine(kernel, 1);
            let p = s.starts(CPU0, fifo);
            assert_eq!(Scheduler::schedule(&mut s, CPU0, true), Some(p));
            Scheduler::sched_setattr(&mut s, CPU0, p, &to).expect("it is admitted");
            assert!(!s.rt_se[p].on_list, "{}", kernel.name);
            s.later(1);
            s.sleeps(CPU0);
            assert_eq!(s.rq[CPU0].curr, None, "{}", kernel.name);
            assert_eq!(s.se[s.task[p].se].sum_exec_runtime, MS, "{}", kernel.name);
        }
    }
}

#[test]
fn a_task_that_leaves_and_returns_within_its_period_is_admitted_once() {
    for kernel in [V4_15, V6_1, V6_6, V6_12] {
        let mut s = machine(kernel, 1);
        let p = s.starts(CPU0, deadline(8, 10));
        assert_eq!(Scheduler::schedule(&mut s, CPU0, true), Some(p));
        let others = s.reserved(CPU0) - to_ratio_of(8, 10);
        Scheduler::sched_setattr(&mut s, CPU0, p, &SchedAttr::NORMAL).expect("anybody may leave");
        let reclaim = SchedFlags { reclaim: true, ..SchedFlags::default() };
        let back = SchedAttr { sched_flags: reclaim, ..deadline(1, 10) };
        Scheduler::sched_setattr(&mut s, CPU0, p, &back).expect("less than before");
        assert_eq!(s.reserved(CPU0), others + to_ratio_of(1, 10), "{}", kernel.name);
        assert_eq!(s.dl[CPU0].this_bw, others + to_ratio_of(1, 10), "{}", kernel.name);
    }
}

/// Before v5.11 the task looks, too, but finds its own CPU the lowest: cpupri does not know about deadline tasks.
#[test]
fn a_real_time_task_that_wakes_beside_a_deadline_task_looks_elsewhere_until_v6_11() {
    for (kernel, elsewhere) in [(V4_5, false), (V4_16, false), (V6_1, true), (V6_6, true), (V6_12, false)] {
        let mut s = machine(kernel, 2);
        let runs = s.starts(CPU0, deadline(4, 10));
        let (here, other) = if s.task[runs].cpu == CPU0 { (CPU0, CPU1) } else { (CPU1, CPU0) };
        assert_eq!(Scheduler::schedule(&mut s, here, false), Some(runs));
        let fifo = SchedAttr { sched_policy: Policy::Fifo, sched_priority: 10, ..SchedAttr::NORMAL };
        let init = TaskInit { attr: Some(fifo), ..task_in(ROOT_TASK_GROUP, "woken") };
        let p = s.fork(here, init).expect("anybody may");
        s.on_cpu(here);
        let found = s.select_task_rq_rt(p, here, SdFlags::SD_BALANCE_WAKE);
        assert_eq!(found, if elsewhere { other } else { here }, "{}", kernel.name);
    }
}
