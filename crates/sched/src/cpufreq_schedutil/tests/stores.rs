//! What changes while it governs, and how it comes and goes.

use super::*;
use crate::cpufreq::FollowsGovernors;
use crate::cpufreq_schedutil::thread::CpufreqThreads;
use crate::sched::IrqWork;

/// A busy CPU in a policy with a rate limit of a second. It has run for 100 ms.
fn busy(kernel: Kernel, policy: CpufreqPolicy) -> Sched<Hand> {
    let mut sched = machine(kernel, 1);
    sched.arch.khz = Some((1_000_000, 3_000_000));
    sched.schedutil_follows(CPUS[0], vec![CpufreqPolicy { rate_limit_us: 1_000_000, ..policy }]);
    let p = sched.fork(CPUS[0], task_in(ROOT_TASK_GROUP, "test")).expect("a fair task");
    Scheduler::wake_up_new_task(&mut sched, CPUS[0], p);
    Scheduler::schedule(&mut sched, CPUS[0], true);
    ticks(&mut sched, 25);
    sched
}

fn ticks(sched: &mut Sched<Hand>, number: u32) {
    for _ in 0..number {
        sched.arch.now += 4 * MS;
        Scheduler::scheduler_tick(sched, CPUS[0]);
    }
}

#[test]
fn new_limits_and_another_rate_limit_count_at_the_next_update() {
    for kernel in [V4_15, V5_4, V5_15, V6_1, V6_12] {
        let limits = CpufreqPolicy { min: 2_000_000, ..policy_of(&CPUS[..1]) };
        let within = |change: &dyn Fn(&mut Sched<Hand>)| {
            let mut sched = busy(kernel, policy_of(&CPUS[..1]));
            let before = sched.arch.mhz.len();
            sched.arch.khz = Some((2_900_000, 2_900_000));
            change(&mut sched);
            ticks(&mut sched, 2);
            sched.arch.mhz[before..].to_vec()
        };
        assert_eq!(within(&|_| ()), [], "{}", kernel.name);
        assert_eq!(
            within(&|sched| sched.sugov_limits(CPUS[0], std::slice::from_ref(&limits))),
            [2_900],
            "{}",
            kernel.name
        );
        assert_eq!(within(&|sched| sched.rate_limit_us_store(CPUS[0], 0)).first(), Some(&2_900), "{}", kernel.name);
    }
}

#[test]
fn a_governor_that_is_stopped_leaves_nothing_to_interrupts_and_its_threads_end() {
    let mut sched = busy(V6_1, CpufreqPolicy { fast_switch: false, ..policy_of(&CPUS[..1]) });
    assert_eq!(sched.irq_work[CPUS[0]], [IrqWork::Sugov(0)], "its thread is to be woken");
    let thread = sched.fork(CPUS[0], task_in(ROOT_TASK_GROUP, "sugov:0")).expect("a task");
    sched.sugov_kthread_started(0, thread);
    let current = sched.current(CPUS[0]);
    assert!(current.is_some() && sched.sugov_kthread_should_stop(CPUS[0], 0), "another task is not that thread");
    sched.irq_work[CPUS[0]].push(IrqWork::RtoPush);
    assert_eq!(sched.nobody_follows(CPUS[0]), (vec![thread], vec![]));
    assert_eq!(sched.irq_work[CPUS[0]], [IrqWork::RtoPush]);
    assert!(sched.sugov_kthread_should_stop(CPUS[0], 0));
    let before = sched.arch.paths.iter().filter(|&&path| path == Path::sugov_update).count();
    ticks(&mut sched, 5);
    assert_eq!(sched.arch.paths.iter().filter(|&&path| path == Path::sugov_update).count(), before);
    assert_eq!(sched.nobody_follows(CPUS[0]), (vec![], vec![]));
    // ondemand's sample, and what an interrupt was about to hand to a kworker.
    sched.driver_follows(CPUS[0]);
    sched.irq_work[CPUS[0]] = vec![IrqWork::Dbs(3)];
    sched.dbs_irq_work(7);
    assert_eq!(sched.nobody_follows(CPUS[0]), (vec![], vec![7, 3]));
    assert_eq!(sched.next_dbs_work(CPUS[0]), None);
}
