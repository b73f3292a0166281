//! A kernel thread bound to its CPU, and which wakees it may leave behind there.

use super::*;
use crate::scheduler::Scheduler;

/// A kernel thread, bound to `on`, runs there; other tasks run on `busy`. It wakes a task that was on `prev`.
fn woken_by_kthread(kernel: Kernel, on: usize, busy: &[usize], prev: usize) -> (Machine, TaskId) {
    let mut m = uma(kernel);
    let kthread = m.run(on);
    m.task[kthread].mm = 0;
    m.allow(kthread, &[on]);
    m.busy(busy);
    let p = m.sleeper(prev);
    (m, p)
}

#[test]
fn the_wakee_stays_with_the_bound_thread_that_worked_for_it() {
    for kernel in [V6_1, V6_12] {
        let (mut m, p) = woken_by_kthread(kernel, 2, &[], 2);
        assert_eq!(m.select(2, p, false), 2, "{}", kernel.name);
        assert_eq!(m.task[p].recent_used_cpu, cpu(2), "left before it is looked at");
        let (mut m, p) = woken_by_kthread(with(kernel, "wake.kthread_stacking", "absent"), 2, &[], 2);
        assert_eq!(m.select(2, p, false), 3, "{}", kernel.name);
    }
    let (mut m, p) = woken_by_kthread(V4_16, 2, &[], 2);
    assert_eq!(m.select(2, p, false), 3);
    let (mut m, p) = woken_by_kthread(with(V4_16, "wake.kthread_stacking", "same-cpu"), 2, &[], 2);
    assert_eq!(m.select(2, p, false), 2);
}

#[test]
fn stacking_needs_a_bound_kernel_thread_alone_on_the_wakees_cpu() {
    let (mut m, p) = woken_by_kthread(V6_1, 2, &[2], 2);
    assert_eq!(m.select(2, p, false), 3, "another task waits there");
    let (mut m, p) = woken_by_kthread(V6_1, 2, &[5], 5);
    assert_ne!(m.select(2, p, false), 2, "the wakee was elsewhere");
    let (mut m, p) = woken_by_kthread(V6_1, 2, &[], 2);
    let kthread = m.rq[cpu(2)].curr.unwrap();
    m.allow(kthread, &[2, 3]);
    assert_eq!(m.select(2, p, false), 3, "it is not bound");
    m.allow(kthread, &[2]);
    m.task[kthread].mm = 7;
    assert_eq!(m.select(2, p, false), 3, "it is no kernel thread");
    m.task[kthread].mm = 0;
    m.irq_enter(cpu(2));
    assert_eq!(m.select(2, p, false), 3, "it was interrupted: the wakeup is not its own");
    m.irq_exit(cpu(2));
    assert_eq!(m.select(2, p, false), 2);
}
