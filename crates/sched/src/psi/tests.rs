//! What counts as which pressure, and the averages.

use super::*;

#[test]
fn states_follow_from_the_counts() {
    let names = |waiting, running, oncpu: bool| {
        let mask = test_states(&[waiting, running], if oncpu { PSI_ONCPU } else { 0 });
        let name = ["io some", "io full", "cpu some", "cpu full", "nonidle"];
        (0..NR_PSI_STATES).filter(|state| mask & 1 << state != 0).map(|state| name[state]).collect::<Vec<_>>()
    };
    assert!(names(0, 0, false).is_empty());
    assert_eq!(names(0, 1, true), ["nonidle"]);
    assert_eq!(names(0, 2, true), ["cpu some", "nonidle"]);
    assert_eq!(names(0, 1, false), ["cpu some", "cpu full", "nonidle"]);
    assert_eq!(names(1, 0, false), ["io some", "io full", "nonidle"]);
    assert_eq!(names(1, 1, true), ["io some", "nonidle"]);
}

#[test]
fn until_v5_10_one_queued_task_of_a_group_does_not_wait_whoever_runs() {
    let of = |waiting, running| states_by_queued(&[waiting, running]);
    let [nonidle, cpu] = [PSI_NONIDLE, PSI_CPU_SOME].map(|state| 1 << state);
    assert_eq!([of(0, 0), of(0, 1), of(0, 2)], [0, nonidle, nonidle | cpu]);
    let io = [PSI_IO_SOME, PSI_IO_FULL].map(|state| 1 << state);
    assert_eq!([of(1, 0), of(1, 1), of(1, 2)], [nonidle | io[0] | io[1], nonidle | io[0], nonidle | io[0] | cpu]);
}

#[test]
fn averages_are_the_load_averages_fixed_point() {
    // A minute in which half of each period is stalled: 30 steps towards 50%.
    let mut avg = [0; 3];
    for _ in 0..30 {
        calc_avgs(&mut avg, 0, 1_000_000_000, 2_000_000_000);
    }
    // 50 (1 - (1677/2048)^30) and so on, except for the rounding up in each step.
    let percent = avg.map(|avg| avg * 100 / FIXED_1);
    for (percent, exact) in percent.into_iter().zip([4988, 3157, 930]) {
        assert!(percent.abs_diff(exact) < 40, "{percent} of {exact}");
    }
    // Missed periods decay at once as they would have one by one, up to rounding.
    let mut at_once = avg;
    calc_avgs(&mut at_once, 9, 0, 2_000_000_000);
    let mut by_steps = avg;
    for _ in 0..10 {
        calc_avgs(&mut by_steps, 0, 0, 2_000_000_000);
    }
    for (once, steps) in at_once.into_iter().zip(by_steps) {
        assert!(once.abs_diff(steps) < 40, "{at_once:?} {by_steps:?}");
    }
    assert_eq!(fixed_power_int(EXP[0], 0), FIXED_1);
    assert_eq!(fixed_power_int(EXP[0], 1), EXP[0]);
}

#[test]
fn v5_10_accounts_for_a_sleep_and_for_the_switch_after_it_apart_v5_4_for_the_sleep_alone() {
    use crate::core::TaskInit;
    use crate::cpu_topology::CpuTopology;
    use crate::layout::Region;
    use crate::scheduler::Scheduler;
    use crate::testing::{machine_of, task_in};
    use crate::versions::{V5_4, V5_10, V5_15, V6_1, V6_6};
    use units::CpuMask;

    // Two tasks on CPU 0, in no cgroup: one falls asleep, and the other runs.
    let kernels = [(V5_4, 1, false), (V5_10, 2, false), (V5_15, 1, true), (V6_1, 1, true), (V6_6, 1, true)];
    for (kernel, changes, shows_full) in kernels {
        let runs = kernel.psi != Psi::ByQueued;
        let mut s = machine_of(kernel, CpuTopology::symmetric(1, 1, 1, 1, 1));
        let cpu = CpuId(0);
        for _ in 0..2 {
            let init = TaskInit { cpus_allowed: Some(CpuMask::single(cpu)), ..task_in(ROOT_TASK_GROUP, "test") };
            let p = s.fork(cpu, init).expect("a fair task");
            Scheduler::wake_up_new_task(&mut s, cpu, p);
            s.arch.now += 1_000_000;
        }
        let first = Scheduler::schedule(&mut s, cpu, true);
        s.arch.now += 1_000_000;
        assert_eq!(s.psi_counts(ROOT_TASK_GROUP, cpu), Some((0, 2, runs)));
        s.set_current_state(cpu, TaskState::Interruptible);
        s.arch.touched.clear();
        assert_ne!(Scheduler::schedule(&mut s, cpu, false), first);
        let of_group = |line: &&crate::layout::Line| line.region == Region::Statistics && line.index >= 1;
        assert_eq!(s.arch.touched.iter().filter(of_group).count(), changes, "{}", kernel.name);
        assert_eq!(s.psi_counts(ROOT_TASK_GROUP, cpu), Some((0, 1, runs)), "{}", kernel.name);
        assert_eq!([PsiRes::Cpu, PsiRes::Io].map(|res| s.psi_shows_full(res)), [shows_full, true]);
    }
}

#[test]
fn who_is_moved_until_v5_15_leaves_nothing_behind_but_its_cpu() {
    use crate::core::TaskInit;
    use crate::cpu_topology::CpuTopology;
    use crate::scheduler::Scheduler;
    use crate::testing::{machine_of, task_in};
    use crate::versions::{V5_10, V5_15, V6_1};
    use units::CpuMask;

    let moved = |kernel| {
        let mut s = machine_of(kernel, CpuTopology::symmetric(1, 1, 1, 1, 1));
        let cpu = CpuId(0);
        let init = TaskInit { cpus_allowed: Some(CpuMask::single(cpu)), ..task_in(ROOT_TASK_GROUP, "test") };
        let p = s.fork(cpu, init).expect("a fair task");
        Scheduler::wake_up_new_task(&mut s, cpu, p);
        assert_eq!(Scheduler::schedule(&mut s, cpu, true), Some(p));
        s.psi_dequeue(p, QueueFlags::default());
        (s, p, cpu)
    };
    for (kernel, left, runs) in [(V5_10, TSK_ONCPU, true), (V5_15, TSK_ONCPU, true), (V6_1, 0, false)] {
        let (s, p, cpu) = moved(kernel);
        let found = (s.task[p].psi_flags, s.psi_counts(ROOT_TASK_GROUP, cpu));
        assert_eq!(found, (left, Some((0, 0, runs))), "{}", kernel.name);
    }
    let (mut s, p, cpu) = moved(V5_10);
    // With kernels whose sleepers leave their queue late: one that waits for a device is moved while it is there.
    s.psi_task_change(p, TSK_ONCPU, TSK_IOWAIT);
    s.psi_dequeue(p, QueueFlags::default());
    assert_eq!((s.task[p].psi_flags, s.psi_counts(ROOT_TASK_GROUP, cpu)), (0, Some((0, 0, false))));
}
