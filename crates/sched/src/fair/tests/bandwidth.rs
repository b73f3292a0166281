//! Quotas: what is left, what is throttled, and when that ends.

use super::*;
use crate::core::cfs_quota::Quota;
use crate::core::cgroup::{GroupFile, Hierarchy, QuotaAbove};
use crate::deadline::server::ServerCounted;
use crate::errno::Errno;
use crate::fair::bandwidth::{BandwidthRules, PeriodTooShort, RUNTIME_INF, Throttle};
use crate::rt::bandwidth::RtBandwidth;

const ALL: [Kernel; 10] = [V4_5_RC1, V4_15, V4_19, V5_4, V5_15, V6_1, V6_6, V6_12, V6_18, V7_2];

/// All kernels, each with each way of throttling.
pub(super) fn mixed() -> Vec<Kernel> {
    let each = |kernel: Kernel| {
        [Throttle::Queue, Throttle::TaskOncePicked, Throttle::Task]
            .map(|throttle| Kernel { bandwidth: BandwidthRules { throttle, ..kernel.bandwidth }, ..kernel })
    };
    ALL.into_iter().flat_map(each).collect()
}

impl Sched<Hand> {
    /// Lets so many milliseconds pass on CPU 0, while the running task is in a single system call.
    pub(super) fn run_ms_in_kernel(&mut self, ms: usize) {
        for _ in 0..ms {
            self.pass(MS);
            self.on_cpu(CPU0);
            while self.hrtimer_run() {}
            self.tick_in_kernel(CPU0);
            self.assert_counts();
        }
    }

    /// A group with a quota (in ms) per 100 ms.
    pub(super) fn limited(&mut self, parent: TgId, name: &str, quota_ms: u64) -> TgId {
        let tg = self.sched_create_group(parent, name, 1024);
        let limits = Quota { period: 100 * MS, quota: quota_ms * MS, burst: 0 };
        self.tg_set_cfs_bandwidth(tg, limits).expect("limits within bounds");
        tg
    }

    /// Lets so many milliseconds pass on `cpus` CPUs: timers, ticks, and the interrupts that CPUs send each other.
    pub(super) fn run_ms(&mut self, cpus: u16, ms: usize) {
        for _ in 0..ms {
            self.pass(MS);
            for cpu in (0..cpus).map(CpuId) {
                self.on_cpu(cpu);
                while self.hrtimer_run() {}
            }
            for cpu in (0..cpus).map(CpuId) {
                self.on_cpu(cpu);
                self.scheduler_ipi();
                self.tick(cpu);
            }
            self.assert_counts();
        }
    }

    /// A CPU's number of runnable tasks must be the number of tasks queued on it outside throttled queues, plus its fair server while that
    /// waits, where servers count; each queue's number must match what is below it.
    /// queue's is the same of what is below it.
    pub(super) fn assert_counts(&self) {
        for (cpu, rq) in self.rq.iter() {
            let root = &self.cfs_rq[rq.cfs];
            let stopper = u32::from(rq.stop_queued);
            assert_eq!(rq.nr_running, root.h_nr_running + self.servers_counted(cpu) + stopper, "{cpu:?}");
        }
        for (cfs, queue) in self.cfs_rq.iter() {
            let mut below = 0;
            for (_, se) in self.se.iter().filter(|(_, se)| se.on_rq && se.cfs_rq == cfs) {
                below += se.my_q.map_or(1, |group| self.cfs_rq[group].h_nr_running);
            }
            assert_eq!(queue.h_nr_running, below, "{cfs:?}");
        }
    }

    fn servers_counted(&self, cpu: CpuId) -> u32 {
        match self.kernel.dl.server_counted {
            ServerCounted::AsTask => self.dl[cpu].dl_nr_running,
            ServerCounted::Apart => 0,
        }
    }

    /// The number of fair tasks that may run on CPU 0.
    fn fair_running(&self) -> u32 {
        self.rq[CPU0].nr_running - self.servers_counted(CPU0)
    }

    pub(super) fn stat(&self, tg: TgId) -> (u32, u32, u64) {
        let cfs_b = &self.tg[tg].cfs_bandwidth;
        (cfs_b.nr_periods, cfs_b.nr_throttled, cfs_b.throttled_time / MS)
    }
}

#[test]
fn a_hog_runs_its_quota_of_each_period() {
    for kernel in mixed() {
        let mut s = machine(kernel, 1);
        let tg = s.limited(ROOT_TASK_GROUP, "a", 20);
        let p = s.task_in(tg, CPU0, 0);
        s.reschedule(CPU0);
        s.run_ms(1, 1000);
        let ran = s.se_of(p).sum_exec_runtime / MS;
        // The first period begins with a full pool in its middle.
        assert!((200..=240).contains(&ran), "{}: {ran} ms", kernel.name);
        let (periods, throttled, time) = s.stat(tg);
        assert!((9..=11).contains(&periods) && (9..=11).contains(&throttled), "{}: {periods} {throttled}", kernel.name);
        assert!((700..=810).contains(&time), "{}: {time} ms", kernel.name);
        assert_eq!(s.group_runtime(tg) / MS, ran);
    }
}

#[test]
fn a_period_that_is_too_short_for_its_timer_is_doubled_and_told() {
    let mut s = machine(V6_1, 1);
    let [a, b] = [("a", MS), ("b", 300 * MS)].map(|(name, period)| {
        let tg = s.sched_create_group(ROOT_TASK_GROUP, name, 1024);
        s.tg_set_cfs_bandwidth(tg, Quota { period, quota: 2 * period, burst: period }).expect("limits within bounds");
        tg
    });
    assert_eq!(s.periods_too_short(), []);
    s.pass(MS);
    let first = Ns(s.arch.now);
    for tg in [a, b, a, b, a] {
        s.scale_up_period(tg);
        s.pass(MS);
    }
    let told = |tg, at, times, longest| PeriodTooShort { tg, at, times, longest };
    // 600 ms do not double to more than a second.
    assert_eq!(s.periods_too_short(), [told(a, first, 3, false), told(b, Ns(first.0 + MS), 2, true)]);
    let limits = |tg: TgId| {
        let cfs_b = &s.tg[tg].cfs_bandwidth;
        [cfs_b.period, cfs_b.quota, cfs_b.burst].map(|ns| ns / MS)
    };
    assert_eq!([limits(a), limits(b)], [[8, 16, 8], [600, 1200, 600]]);
}

#[test]
fn since_v4_19_queues_go_on_in_the_order_in_which_they_were_throttled() {
    for (kernel, order) in [(V4_15, [1, 0]), (V4_19, [0, 1]), (V5_4, [0, 1])] {
        let mut s = machine(kernel, 2);
        let tg = s.limited(ROOT_TASK_GROUP, "a", 20);
        for cpu in [CPU0, CPU1] {
            s.task_in(tg, cpu, 0);
            s.reschedule(cpu);
        }
        let queues = s.tg[tg].cfs_rq.clone();
        for (cpu, &queue) in [CPU0, CPU1].into_iter().zip(queues.iter()) {
            while !s.cfs_rq_throttled(queue) {
                s.pass(MS);
                s.on_cpu(cpu);
                s.tick(cpu);
            }
        }
        let throttled: Vec<CfsRqId> = s.tg[tg].cfs_bandwidth.throttled_cfs_rq.iter().copied().collect();
        assert_eq!(throttled, order.map(|cpu| queues[cpu]), "{}", kernel.name);
    }
}

#[test]
fn while_it_is_throttled_nothing_of_it_is_runnable_and_others_run() {
    for kernel in mixed() {
        let by_task = kernel.bandwidth.throttle.by_task();
        let mut s = machine(kernel, 1);
        let tg = s.limited(ROOT_TASK_GROUP, "a", 20);
        let p = s.task_in(tg, CPU0, 0);
        s.reschedule(CPU0);
        s.run_ms(1, 40);
        let cfs = s.tg[tg].cfs_rq[0];
        assert!(s.cfs_rq_throttled(cfs) && s.throttled_hierarchy(cfs));
        assert_eq!((s.rq[CPU0].curr, s.rq[CPU0].nr_running), (None, 0));
        assert_eq!((s.cfs_rq[cfs].nr_running, s.task[p].on_rq), (u32::from(!by_task), OnRq::Queued));
        assert_eq!((s.se_of(p).on_rq, s.task_is_throttled(p)), (!by_task, by_task));
        let other = s.task(CPU0, 0);
        assert_eq!(s.reschedule(CPU0), Some(other));
        // A task that joins a throttled group waits with it, or until it is picked.
        let late = s.task_in(tg, CPU0, 0);
        let queued = if by_task { (2, 1) } else { (1, 2) };
        assert_eq!((s.fair_running(), s.cfs_rq[cfs].h_nr_running), queued, "{}", kernel.name);
        s.run_ms(1, 15);
        assert_eq!((s.se_of(late).sum_exec_runtime, s.fair_running()), (0, 1), "{}", kernel.name);
        let left: Vec<_> = s.throttled_limbo_list(cfs).collect();
        assert_eq!(left, if by_task { vec![late, p] } else { vec![] });
        s.run_ms(1, 100);
        assert!(s.se_of(late).sum_exec_runtime > 0);
    }
}

#[test]
fn balancing_takes_tasks_off_throttled_queues_since_v6_18() {
    for kernel in mixed() {
        let mut s = machine(kernel, 2);
        let tg = s.limited(ROOT_TASK_GROUP, "a", 5);
        s.task_in(tg, CPU0, 0);
        s.reschedule(CPU0);
        s.run_ms(2, 40);
        assert!(s.cfs_rq_throttled(s.tg[tg].cfs_rq[0]) && !s.cfs_rq_throttled(s.tg[tg].cfs_rq[1]));
        assert!(s.throttled_lb_pair(tg, CPU1, CPU0));
        assert_eq!(s.throttled_lb_pair(tg, CPU0, CPU1), kernel.bandwidth.throttle == Throttle::Queue);
    }
}

#[test]
fn new_domains_leave_throttled_queues_alone_by_v6_18() {
    for (kernel, stays) in [(V6_12, false), (V6_18, true), (V7_2, true)] {
        let mut s = machine(kernel, 2);
        let tg = s.limited(ROOT_TASK_GROUP, "a", 5);
        s.task_in(tg, CPU0, 0);
        s.reschedule(CPU0);
        s.run_ms(2, 40);
        s.on_cpu(CPU1);
        s.set_partitions(&[CpuMask::single(CPU0), CpuMask::single(CPU1)]).expect("they do not overlap");
        assert_eq!(s.cfs_rq_throttled(s.tg[tg].cfs_rq[0]), stays, "{}", kernel.name);
        // A CPU that goes offline is another matter.
        s.cpu_active_mask.clear(CPU0);
        s.rq_lock(CPU0);
        s.update_rq_clock(CPU0);
        s.unthrottle_offline_cfs_rqs(CPU0);
        s.rq_unlock(CPU0);
        assert!(!s.cfs_rq_throttled(s.tg[tg].cfs_rq[0]), "{}", kernel.name);
    }
}

#[test]
fn averages_stand_still_while_a_queue_is_throttled() {
    for kernel in mixed() {
        let mut s = machine(kernel, 1);
        let tg = s.limited(ROOT_TASK_GROUP, "a", 20);
        let p = s.task_in(tg, CPU0, 0);
        s.reschedule(CPU0);
        s.run_ms(1, 30);
        let cfs = s.tg[tg].cfs_rq[0];
        assert!(s.throttled_hierarchy(cfs), "{}", kernel.name);
        let (before, clock) = (s.se_of(p).avg, s.cfs_rq_clock_pelt(cfs));
        s.run_ms(1, 20);
        assert!(s.throttled_hierarchy(cfs));
        assert_eq!((s.se_of(p).avg, s.cfs_rq_clock_pelt(cfs)), (before, clock), "{}", kernel.name);
        // Without a quota its clock goes on where it stopped.
        let none = Quota { quota: RUNTIME_INF, ..s.quota(tg) };
        s.tg_set_cfs_bandwidth(tg, none).expect("no quota is fine");
        assert!(!s.cfs_bandwidth_used() && !s.throttled_hierarchy(cfs));
        assert!(s.cfs_rq_clock_pelt(cfs) - clock < MS, "{}", kernel.name);
        assert_eq!(s.fair_running(), 1);
    }
}

#[test]
fn the_tighter_of_two_nested_quotas_rules() {
    for kernel in mixed() {
        for (outer, inner, expected) in [(20, 50, 200), (50, 20, 200)] {
            let mut s = machine(kernel, 1);
            // cgroup v1 accepts no group with a quota below one with a smaller quota, nor does v2 before v4.16.
            s.cgroup_hierarchy = Hierarchy::Unified;
            s.kernel.cgroup.quota_above = QuotaAbove::Tightest;
            let above = s.limited(ROOT_TASK_GROUP, "a", outer);
            let below = s.limited(above, "b", inner);
            let p = s.task_in(below, CPU0, 0);
            s.reschedule(CPU0);
            s.run_ms(1, 1000);
            let ran = s.se_of(p).sum_exec_runtime / MS;
            assert!((expected..expected + 40).contains(&ran), "{} {outer} {inner}: {ran} ms", kernel.name);
        }
    }
}

#[test]
fn cgroup_v2_takes_more_below_than_above_since_v4_16() {
    for (kernel, taken) in [(V4_15, false), (V4_16, true), (V6_1, true)] {
        let mut s = machine(kernel, 1);
        assert_eq!(s.cgroup_hierarchy, Hierarchy::Unified);
        let above = s.limited(ROOT_TASK_GROUP, "a", 50);
        let below = s.sched_create_group(above, "b", 1024);
        let answer = s.cgroup_write(below, GroupFile::Max, "60000 100000");
        assert_eq!(answer.map_err(|refusal| refusal.errno), if taken { Ok(()) } else { Err(Errno::EINVAL) });
        assert_eq!(s.tg[below].cfs_bandwidth.hierarchical_quota, 1 << 19, "{}", kernel.name);
    }
}

#[test]
fn queues_of_several_cpus_share_one_budget() {
    for kernel in mixed() {
        let mut s = machine(kernel, 2);
        let tg = s.limited(ROOT_TASK_GROUP, "a", 40);
        let tasks = [s.task_in(tg, CPU0, 0), s.task_in(tg, CPU1, 0)];
        s.reschedule(CPU0);
        s.reschedule(CPU1);
        s.run_ms(2, 1000);
        let ran: u64 = tasks.iter().map(|&p| s.se_of(p).sum_exec_runtime / MS).sum();
        assert!((400..=450).contains(&ran), "{}: {ran} ms", kernel.name);
        let (_, throttled, time) = s.stat(tg);
        assert!((9..=11).contains(&throttled), "{}: {throttled}", kernel.name);
        assert!((1400..=1650).contains(&time), "{}: {time} ms", kernel.name);
    }
}

#[test]
fn what_an_idle_queue_gives_back_others_get_before_the_period_ends() {
    for kernel in mixed() {
        let mut s = machine(kernel, 2);
        let tg = s.limited(ROOT_TASK_GROUP, "a", 40);
        s.sysctl.sched_cfs_bandwidth_slice = 15_000;
        let hog = s.task_in(tg, CPU0, 0);
        let short = s.task_in(tg, CPU1, 0);
        s.reschedule(CPU0);
        s.reschedule(CPU1);
        // At the beginning of a period both take slices; then one sleeps, with nearly a whole slice left.
        s.run_ms(2, 1);
        s.sleep(CPU1);
        s.run_ms(2, 60);
        let ran = s.se_of(hog).sum_exec_runtime / MS;
        let other = s.se_of(short).sum_exec_runtime / MS;
        assert!(ran + other >= 38, "{}: {ran} + {other} ms", kernel.name);
    }
}

#[test]
fn a_burst_is_saved_up_and_counted() {
    let mut s = machine(V6_1, 1);
    let tg = s.limited(ROOT_TASK_GROUP, "a", 20);
    s.cgroup_write(tg, GroupFile::MaxBurst, "20000").expect("a burst within the quota");
    let p = s.task_in(tg, CPU0, 0);
    s.reschedule(CPU0);
    s.run_ms(1, 5);
    s.sleep(CPU0);
    s.run_ms(1, 300);
    s.wake_from(CPU0, p);
    s.reschedule(CPU0);
    let before = s.se_of(p).sum_exec_runtime;
    s.run_ms(1, 90);
    let ran = (s.se_of(p).sum_exec_runtime - before) / MS;
    assert!((39..=62).contains(&ran), "{ran} ms");
    s.run_ms(1, 110);
    let cfs_b = &s.tg[tg].cfs_bandwidth;
    assert!(cfs_b.nr_burst >= 1 && cfs_b.burst_time >= 15 * MS, "{cfs_b:?}");
}

#[test]
fn what_comes_below_a_throttled_queue_is_its_news_at_once_since_v5_4() {
    for (kernel, at_once) in [(V4_16, false), (V4_19, false), (V5_4, true), (V5_10, true)] {
        let mut s = machine(kernel, 1);
        let outer = s.limited(ROOT_TASK_GROUP, "a", 20);
        let inner = s.sched_create_group(outer, "b", 1024);
        s.task_in(inner, CPU0, 0);
        s.reschedule(CPU0);
        let queue = s.tg[outer].cfs_rq[0];
        while !s.cfs_rq_throttled(queue) {
            s.run_ms(1, 1);
        }
        s.cfs_rq[queue].propagate = false;
        s.task_in(inner, CPU0, 0);
        assert_eq!(s.cfs_rq[queue].propagate, at_once, "{}", kernel.name);
        assert_ne!(s.cfs_rq[s.tg[inner].cfs_rq[0]].propagate, at_once, "{}", kernel.name);
        assert_eq!(s.cfs_rq[queue].h_nr_running, 2, "{}", kernel.name);
    }
}

#[test]
fn bursts_are_told_of_since_v5_16() {
    for (kernel, told) in [(V5_15, false), (V6_1, true)] {
        let mut s = machine(kernel, 1);
        let tg = s.limited(ROOT_TASK_GROUP, "a", 20);
        s.cgroup_write(tg, GroupFile::MaxBurst, "20000").expect("a burst within the quota");
        assert_eq!(s.tg[tg].cfs_bandwidth.burst, 20 * MS, "{}", kernel.name);
        let stat = s.cgroup_read(tg, GroupFile::Stat).expect("a file of this kernel");
        assert!(stat.contains("nr_throttled 0"), "{stat}");
        assert_eq!(stat.contains("nr_bursts"), told, "{}: {stat}", kernel.name);
    }
    let mut s = machine(V5_10, 1);
    let tg = s.limited(ROOT_TASK_GROUP, "a", 20);
    assert!(s.cgroup_write(tg, GroupFile::MaxBurst, "20000").is_err(), "v5.10 knows no bursts");
}

/// A group on two CPUs whose queues used up their runtime, at the moment when one CPU's timer has refilled the pool: the group, and this
/// CPU and the other one, whose queue is still throttled.
fn refilled() -> (Sched<Hand>, TgId, CpuId, CpuId) {
    // Without a fair server, whose timer would come first.
    let mut kernel = V6_12;
    kernel.rt.bandwidth = RtBandwidth::Queues;
    let mut s = machine(kernel, 2);
    let tg = s.limited(ROOT_TASK_GROUP, "a", 20);
    for cpu in [CPU0, CPU1] {
        s.task_in(tg, cpu, 0);
        s.reschedule(cpu);
    }
    let queues = [s.tg[tg].cfs_rq[0], s.tg[tg].cfs_rq[1]];
    while !(s.cfs_rq_throttled(queues[0]) && s.cfs_rq_throttled(queues[1])) {
        s.run_ms(2, 1);
    }
    let timer = if s.hrtimers.next_event(CPU0).is_some() { CPU0 } else { CPU1 };
    let other = if timer == CPU0 { CPU1 } else { CPU0 };
    s.arch.now = s.hrtimers.next_event(timer).expect("the period's end").0;
    s.on_cpu(timer);
    assert!(s.hrtimer_run());
    assert!(!s.cfs_rq_throttled(queues[timer.index()]) && s.cfs_rq_throttled(queues[other.index()]));
    (s, tg, timer, other)
}

#[test]
fn other_cpus_queues_wait_for_their_own_cpu_since_v6_3() {
    let (mut s, tg, _, other) = refilled();
    s.on_cpu(other);
    s.scheduler_ipi();
    assert!(!s.cfs_rq_throttled(s.tg[tg].cfs_rq[other.index()]));
    s.assert_counts();
}

/// A queue that stayed on its CPU's list would never be unthrottled there again.
#[test]
fn a_cpu_looks_after_its_queues_though_the_quota_was_lifted_meanwhile() {
    let (mut s, tg, timer, other) = refilled();
    s.on_cpu(timer);
    let limits = s.quota(tg);
    s.tg_set_cfs_bandwidth(tg, Quota { quota: RUNTIME_INF, ..limits }).expect("no quota is fine");
    s.on_cpu(other);
    s.scheduler_ipi();
    assert!(!s.cfs_rq_runtime(s.tg[tg].cfs_rq[other.index()]).throttled_csd);
}

#[test]
fn a_period_without_use_stops_the_timer() {
    for kernel in ALL {
        let mut s = machine(kernel, 1);
        let tg = s.limited(ROOT_TASK_GROUP, "a", 20);
        assert!(s.hrtimers.next_event(CPU0).is_some(), "setting a quota starts the period");
        s.run_ms(1, 300);
        assert_eq!(s.hrtimers.next_event(CPU0), None, "{}", kernel.name);
        let (periods, throttled, _) = s.stat(tg);
        assert!(periods <= 3 && throttled == 0);
        s.task_in(tg, CPU0, 0);
        s.reschedule(CPU0);
        s.run_ms(1, 10);
        assert!(s.hrtimers.next_event(CPU0).is_some(), "{}", kernel.name);
    }
}

#[test]
fn groups_with_quotas_come_and_go() {
    for kernel in mixed() {
        let mut s = machine(kernel, 1);
        let tg = s.limited(ROOT_TASK_GROUP, "a", 5);
        let p = s.task_in(tg, CPU0, 0);
        s.reschedule(CPU0);
        s.run_ms(1, 40);
        assert!(s.throttled_hierarchy(s.tg[tg].cfs_rq[0]));
        // A task leaves a throttled group, and runs at once.
        s.on_cpu(CPU0);
        s.sched_move_task(p, ROOT_TASK_GROUP);
        assert_eq!(s.fair_running(), 1);
        assert_eq!(s.reschedule(CPU0), Some(p));
        s.sched_destroy_group(tg);
        assert!(!s.cfs_bandwidth_used());
        // The timer of v7.2's fair server is nearly a second away.
        let soon = s.rq[CPU0].clock + 500_000_000;
        assert!(s.hrtimers.next_event(CPU0).is_none_or(|at| at.0 > soon), "{}", s.kernel.name);
        s.run_ms(1, 200);
        s.assert_counts();
    }
}

#[test]
fn files_take_what_the_kernel_takes() {
    let mut s = machine(V6_1, 1);
    let tg = s.cgroup_mkdir(ROOT_TASK_GROUP, "a").expect("a name");
    let errno = |result: Result<(), crate::errno::Refusal>| result.map_err(|refusal| refusal.errno);
    assert_eq!(s.cgroup_mkdir(ROOT_TASK_GROUP, "a").map_err(|refusal| refusal.errno), Err(Errno::EEXIST));
    assert_eq!(s.cgroup_mkdir(ROOT_TASK_GROUP, "a/b").map_err(|refusal| refusal.errno), Err(Errno::EINVAL));
    for (file, text, answer) in [
        (GroupFile::Weight, "0", Err(Errno::ERANGE)),
        (GroupFile::Weight, "10001", Err(Errno::ERANGE)),
        (GroupFile::Weight, "much", Err(Errno::EINVAL)),
        (GroupFile::Weight, "300", Ok(())),
        (GroupFile::WeightNice, "-21", Err(Errno::ERANGE)),
        (GroupFile::Max, "999 100000", Err(Errno::EINVAL)),
        (GroupFile::Max, "50000 1000001", Err(Errno::EINVAL)),
        (GroupFile::Max, "", Err(Errno::EINVAL)),
        (GroupFile::Max, "max100000", Err(Errno::EINVAL)),
        (GroupFile::Max, "x 100000", Err(Errno::EINVAL)),
        // What sscanf("%20s %llu") ignores.
        (GroupFile::Max, "max 90000 7", Ok(())),
        (GroupFile::Max, "60000us x", Ok(())),
        (GroupFile::Max, "50000 100000", Ok(())),
        (GroupFile::MaxBurst, "50001", Err(Errno::EINVAL)),
        (GroupFile::MaxBurst, "50000", Ok(())),
        (GroupFile::Idle, "2", Err(Errno::EINVAL)),
        (GroupFile::Shares, "1024", Err(Errno::ENOENT)),
    ] {
        assert_eq!(errno(s.cgroup_write(tg, file, text)), answer, "{} {text}", file.name());
    }
    let read = |s: &Sched<Hand>, file| s.cgroup_read(tg, file).expect("a file of this kernel");
    assert_eq!(read(&s, GroupFile::Weight), "300\n");
    assert_eq!(read(&s, GroupFile::WeightNice), "-5\n");
    assert_eq!(read(&s, GroupFile::Max), "50000 100000\n");
    s.cgroup_write(tg, GroupFile::Idle, "1").expect("an idle group");
    assert_eq!(errno(s.cgroup_write(tg, GroupFile::Weight, "100")), Err(Errno::EINVAL), "an idle group has no weight");
    assert_eq!(s.cgroup_rmdir(tg), Ok(()));
}

#[test]
fn a_new_group_knows_the_quota_above_it() {
    for kernel in ALL {
        let mut s = machine(kernel, 1);
        let free = s.sched_create_group(ROOT_TASK_GROUP, "free", 1024);
        let above = s.limited(ROOT_TASK_GROUP, "a", 50);
        let below = s.sched_create_group(above, "b", 1024);
        let lowest = s.sched_create_group(below, "c", 1024);
        let quota = |tg: TgId| s.tg[tg].cfs_bandwidth.hierarchical_quota;
        assert_eq!(
            [free, above, below, lowest].map(quota),
            [RUNTIME_INF, 1 << 19, 1 << 19, 1 << 19],
            "{}",
            kernel.name
        );
    }
}

#[test]
fn cgroup_v1_takes_no_more_below_than_above() {
    let mut s = machine(V4_5_RC1, 1);
    assert_eq!(s.cgroup_hierarchy, Hierarchy::Legacy);
    let above = s.limited(ROOT_TASK_GROUP, "a", 50);
    let below = s.sched_create_group(above, "b", 1024);
    let refused = s.cgroup_write(below, GroupFile::CfsQuotaUs, "60000");
    assert_eq!(refused.map_err(|refusal| refusal.errno), Err(Errno::EINVAL));
    assert_eq!(s.cgroup_write(below, GroupFile::CfsQuotaUs, "40000"), Ok(()));
    let refused = s.cgroup_write(above, GroupFile::CfsQuotaUs, "30000");
    assert_eq!(refused.map_err(|refusal| refusal.errno), Err(Errno::EINVAL));
    assert_eq!(s.tg[below].cfs_bandwidth.hierarchical_quota, (40 << 20) / 100);
    assert_eq!(s.cgroup_write(above, GroupFile::Weight, "100").map_err(|refusal| refusal.errno), Err(Errno::ENOENT));
    let stat = s.cgroup_read(below, GroupFile::Stat).expect("cpu.stat");
    assert_eq!(stat, "nr_periods 0\nnr_throttled 0\nthrottled_time 0\n");
}
