//! CPUs without ticks: which are kicked, which CPU balances for which, and what happens to their load averages.

use super::*;
use crate::fair::nohz::NohzFlags;
use crate::layout::GlobalLine;
use crate::versions::{V4_19, V5_4, V7_3};

const CPU2: CpuId = CpuId(2);

/// Two hogs on the first CPU; the others idle without ticks.
fn one_busy_cpu(kernel: Kernel, topology: CpuTopology) -> Machine {
    let mut sched = machine(kernel, topology);
    for cpu in (1..sched.nr_cpus()).map(CpuId::new) {
        sched.go_idle(cpu);
    }
    sched.hogs(CPU0, 2);
    sched.run_something(CPU0);
    sched.cool_down();
    sched
}

#[test]
fn a_busy_tick_kicks_the_first_idle_cpu_which_balances_for_all() {
    for kernel in [V4_5_RC1, V4_15] {
        let mut sched = one_busy_cpu(kernel, CpuTopology::symmetric(1, 1, 1, 4, 1));
        assert_eq!((sched.nohz.nr_cpus, sched.nohz.idle_cpus_mask.list().as_str()), (3, "1-3"));
        let next_balance = sched.nohz.next_balance;
        sched.on_cpu(CPU0);
        sched.scheduler_tick();
        assert_eq!(sched.arch.interrupts, [(CPU0, CPU1)]);
        assert_eq!(sched.nohz.next_balance, next_balance + 1, "the next tick may kick again");
        // A second kick before the first has arrived has no effect.
        sched.on_cpu(CPU0);
        sched.trigger_load_balance(CPU0);
        assert_eq!(sched.arch.interrupts.len(), 1);

        assert!(Scheduler::scheduler_ipi(&mut sched, CPU1), "the softirq is raised");
        assert!(sched.rq[CPU1].idle_balance);
        Scheduler::run_rebalance_domains(&mut sched, CPU1);
        // Other CPUs come first: the waiting task goes to CPU 2, which is notified.
        assert_eq!(sched.nr_running(), [1, 0, 1, 0], "{}", sched.kernel.name);
        assert_eq!(sched.arch.interrupts[1..], [(CPU1, CPU2)]);
        assert_eq!(sched.rq[CPU1].nohz_flags, NohzFlags::NONE);
        let due = [1, 2, 3].map(|cpu| sched.rq[CpuId(cpu)].next_balance).into_iter().min();
        assert_eq!(Some(sched.nohz.next_balance), due);
    }
}

#[test]
fn a_kick_that_finds_its_cpu_busy_is_dropped() {
    let mut sched = one_busy_cpu(V4_5_RC1, CpuTopology::symmetric(1, 1, 1, 2, 1));
    sched.on_cpu(CPU0);
    assert!(sched.nohz_kick_needed(CPU0));
    sched.kick_ilb_once();
    sched.hogs(CPU1, 1);
    assert!(!Scheduler::scheduler_ipi(&mut sched, CPU1));
    assert!(sched.rq[CPU1].nohz_flags == NohzFlags::NONE && !sched.rq[CPU1].idle_balance);
}

#[test]
fn who_balances_for_others_stops_when_work_comes() {
    let mut sched = one_busy_cpu(V4_5_RC1, CpuTopology::symmetric(1, 1, 1, 4, 1));
    sched.on_cpu(CPU1);
    sched.rq[CPU1].nohz_flags = NohzFlags::NOHZ_BALANCE_KICK;
    sched.rq[CPU1].need_resched = true;
    sched.nohz_idle_balance(CpuIdleType::Idle);
    assert_eq!(sched.nr_running(), [2, 0, 0, 0]);
    assert_eq!(sched.rq[CPU1].nohz_flags, NohzFlags::NONE);
    // Nor does a CPU begin that is no longer idle.
    sched.rq[CPU1].nohz_flags = NohzFlags::NOHZ_BALANCE_KICK;
    sched.rq[CPU1].need_resched = false;
    sched.nohz_idle_balance(CpuIdleType::NotIdle);
    assert_eq!(sched.nr_running(), [2, 0, 0, 0]);
    sched.rq[CPU1].nohz_flags = NohzFlags::NOHZ_BALANCE_KICK;
    sched.nohz_idle_balance(CpuIdleType::Idle);
    assert_eq!(sched.nr_running(), [1, 0, 1, 0]);
}

#[test]
fn only_the_first_cpu_of_the_mask_is_asked() {
    let mut sched = one_busy_cpu(V4_5_RC1, CpuTopology::symmetric(1, 1, 1, 4, 1));
    // CPU 1 works, but has not had a tick since.
    sched.hogs(CPU1, 1);
    sched.run_something(CPU1);
    sched.arch.interrupts.clear();
    sched.on_cpu(CPU0);
    sched.trigger_load_balance(CPU0);
    assert_eq!(sched.arch.interrupts, []);
    // Its tick removes it.
    sched.on_cpu(CPU1);
    sched.trigger_load_balance(CPU1);
    assert_eq!((sched.nohz.nr_cpus, sched.nohz.idle_cpus_mask.list().as_str()), (2, "2-3"));
    sched.on_cpu(CPU0);
    sched.pass_ms(1);
    sched.trigger_load_balance(CPU0);
    assert_eq!(sched.arch.interrupts, [(CPU0, CPU2)]);
}

#[test]
fn no_kick_before_its_time_or_without_need() {
    let mut sched = one_busy_cpu(V4_5_RC1, CpuTopology::symmetric(1, 1, 1, 4, 1));
    sched.on_cpu(CPU0);
    sched.nohz.next_balance = sched.jiffies() + 1;
    assert!(!sched.nohz_kick_needed(CPU0));
    sched.pass_ms(1);
    assert!(sched.nohz_kick_needed(CPU0));
    // A single task is a reason only while another CPU of the LLC is busy.
    let mut sched = machine(V4_15, CpuTopology::symmetric(1, 1, 1, 4, 1));
    for cpu in [CPU1, CPU2, CpuId(3)] {
        sched.go_idle(cpu);
    }
    for (cpu, needed) in [(CPU0, false), (CPU1, true), (CPU0, true)] {
        if sched.rq[cpu].nr_running == 0 {
            sched.hogs(cpu, 1);
            sched.run_something(cpu);
        }
        sched.on_cpu(cpu);
        assert_eq!(sched.nohz_kick_needed(cpu), needed);
    }
}

#[test]
fn busy_cpus_of_a_cache_are_counted_where_each_era_counts_them() {
    // Two sockets of two cores. v4.5 counts in the first group of the domain above the LLC, v4.15 in the LLC domain.
    let count = |sched: &Machine, cpu: CpuId| match sched.domains.sd_llc_shared[cpu] {
        Some(shared) => sched.domains[shared].nr_busy_cpus,
        None => {
            let sd = sched.domains.sd_busy[cpu].expect("two sockets");
            sched.domains[sched.domains[sched.domains[sd].groups].sgc].nr_busy_cpus
        }
    };
    for kernel in [V4_5_RC1, V4_15] {
        let mut sched = machine(kernel, CpuTopology::symmetric(2, 1, 1, 2, 1));
        let counts = |sched: &Machine| [count(sched, CPU0), count(sched, CPU2)];
        assert_eq!(counts(&sched), [2, 2], "{}", sched.kernel.name);
        for _ in 0..2 {
            sched.go_idle(CPU1);
            assert_eq!(counts(&sched), [1, 2], "once idle is idle");
            // The tick's return alone changes nothing; the first busy tick does.
            sched.tick_nohz_idle_restart(CPU1);
        }
        sched.hogs(CPU1, 1);
        sched.run_something(CPU1);
        sched.on_cpu(CPU1);
        sched.scheduler_tick();
        assert_eq!(counts(&sched), [2, 2]);
        assert_eq!(sched.nohz.nr_cpus, 0);
    }
}

#[test]
fn time_without_ticks_is_caught_up_with_when_they_return() {
    // All averages are 1024; 3 ticks are missed with nothing to do. From v4.7 on, the load when the tick stopped
    // counts.
    for (kernel, expected) in [(V4_5_RC1, [0, 128, 432, 686, 840]), (V4_15, [0, 128, 432, 686, 840])] {
        let mut sched = flat(kernel, 2);
        sched.rq[CPU0].cpu_load = [1024; 5];
        sched.go_idle(CPU0);
        sched.rq[CPU0].last_load_update_tick = sched.jiffies();
        sched.pass_ms(3);
        sched.tick_nohz_idle_restart(CPU0);
        assert_eq!(sched.rq[CPU0].cpu_load, expected, "{}", sched.kernel.name);
        // No tick is missed twice.
        sched.tick_nohz_idle_restart(CPU0);
        assert_eq!(sched.rq[CPU0].cpu_load, expected);
    }
}

#[test]
fn a_tick_amid_time_without_ticks() {
    // Before v4.7 this counts as one tick, later as all that were missed: 1024 >> 3, and 1024 / 2 for one.
    for (kernel, average) in [(V4_5_RC1, 512), (V4_15, 128)] {
        let mut sched = flat(kernel, 2);
        sched.rq[CPU0].cpu_load = [1024; 5];
        sched.go_idle(CPU0);
        sched.rq[CPU0].last_load_update_tick = sched.jiffies();
        sched.pass_ms(3);
        sched.on_cpu(CPU0);
        sched.scheduler_tick();
        assert_eq!(sched.rq[CPU0].cpu_load[1], average, "{}", sched.kernel.name);
    }
}

#[test]
fn who_stops_its_tick_tells_when_it_is_due_since_v5_16() {
    for (kernel, told) in [(V5_10, false), (V5_15, false), (V6_1, true)] {
        let mut sched = one_busy_cpu(kernel, CpuTopology::symmetric(1, 1, 1, 2, 1));
        sched.go_idle(CPU1);
        assert_eq!((sched.nohz.has_blocked, sched.nohz.needs_update), (true, told), "{}", kernel.name);
    }
}

#[test]
fn a_kicked_cpu_that_polls_balances_for_nobody_in_v5_15() {
    for (kernel, polls, balances) in
        [(V5_10, true, true), (V5_15, true, false), (V5_15, false, true), (V6_1, true, true)]
    {
        let mut sched = one_busy_cpu(kernel, CpuTopology::symmetric(1, 1, 1, 4, 1));
        Scheduler::set_polling(&mut sched, CPU1, polls);
        sched.arch.interrupts.clear();
        sched.nohz.next_balance = sched.jiffies();
        sched.on_cpu(CPU0);
        sched.nohz_balancer_kick(CPU0);
        assert_eq!(sched.rq[CPU1].need_resched, polls, "the kick tells it to leave its loop");
        sched.on_cpu(CPU1);
        assert_eq!(sched.got_nohz_idle_kick(), balances, "{} polls: {polls}", kernel.name);
        assert_eq!(sched.rq[CPU1].nohz_flags, NohzFlags::NONE, "the kick is over in any case");
        // Nor does it go on where it has begun.
        sched.rq[CPU1].nohz_idle_balance = NohzFlags::NOHZ_KICK_MASK;
        sched.nohz_idle_balance(CpuIdleType::Idle);
        assert_eq!(sched.nr_running()[2] == 1, balances, "{} polls: {polls}", kernel.name);
    }
}

#[test]
fn in_v4_19_and_v5_4_a_kicked_cpu_ages_and_balances_for_others_then_for_itself() {
    for kernel in [V4_19, V5_4] {
        let mut sched = one_busy_cpu(kernel, CpuTopology::symmetric(1, 1, 1, 4, 1));
        sched.hogs(CPU0, 2);
        sched.cool_down();
        sched.nohz.next_balance = sched.jiffies();
        sched.on_cpu(CPU0);
        sched.nohz_balancer_kick(CPU0);
        assert_eq!(sched.arch.interrupts, [(CPU0, CPU1)], "as any reschedule interrupt");
        assert!(Scheduler::scheduler_ipi(&mut sched, CPU1), "the softirq is raised");
        assert!(sched.rq[CPU1].nohz_flags.has(NohzFlags::NOHZ_BALANCE_KICK), "it asks what to do");
        Scheduler::run_rebalance_domains(&mut sched, CPU1);
        assert_eq!(sched.rq[CPU1].nohz_flags, NohzFlags::NONE);
        // Four hogs: CPUs 2 and 3 come first, and what is left then is for the kicked one.
        assert_eq!(sched.nr_running(), [1, 1, 1, 1], "{}", kernel.name);
        let now = sched.jiffies();
        assert_eq!([1, 2, 3].map(|cpu| sched.rq[CpuId(cpu)].last_blocked_load_update_tick), [now; 3]);
        assert_eq!(sched.nohz.next_blocked, now + 32);
    }
}

#[test]
fn in_v4_19_a_kick_that_only_ages_puts_the_next_balance_off_too() {
    for (kernel, ages, balances) in [(V4_19, 1, 1), (V5_4, 0, 6)] {
        let put_off = |flags: NohzFlags| {
            let mut sched = one_busy_cpu(kernel, CpuTopology::symmetric(1, 1, 1, 4, 1));
            let before = sched.jiffies() - 5;
            sched.nohz.next_balance = before;
            sched.on_cpu(CPU0);
            sched.kick_ilb(flags);
            assert_eq!(sched.arch.interrupts, [(CPU0, CPU1)]);
            sched.nohz.next_balance - before
        };
        let found = [NohzFlags::NOHZ_STATS_KICK, NohzFlags::NOHZ_KICK_MASK].map(put_off);
        assert_eq!(found, [ages, balances], "{}", kernel.name);
    }
}

#[test]
fn in_v4_19_the_next_balance_is_when_the_others_are_due_not_the_kicked_cpu() {
    for (kernel, own) in [(V4_19, false), (V5_4, true)] {
        let mut sched = one_busy_cpu(kernel, CpuTopology::symmetric(1, 1, 1, 4, 1));
        let now = sched.jiffies();
        sched.nohz.next_balance = now;
        for (cpu, due) in [(CPU1, now), (CPU2, now + 70), (CpuId(3), now + 90)] {
            sched.rq[cpu].next_balance = due;
        }
        sched.on_cpu(CPU1);
        sched.rq[CPU1].nohz_flags = NohzFlags::NOHZ_KICK_MASK;
        assert!(sched.nohz_idle_balance(CpuIdleType::Idle));
        let due = if own { sched.rq[CPU1].next_balance } else { now + 70 };
        assert!(sched.rq[CPU1].next_balance < now + 70);
        assert_eq!(sched.nohz.next_balance, due, "{}", kernel.name);
    }
}

#[test]
fn in_v4_19_and_v5_4_who_has_work_of_its_own_leaves_the_rest_for_later() {
    for kernel in [V4_19, V5_4] {
        let mut sched = one_busy_cpu(kernel, CpuTopology::symmetric(1, 1, 1, 4, 1));
        sched.on_cpu(CPU1);
        sched.rq[CPU1].nohz_flags = NohzFlags::NOHZ_KICK_MASK;
        sched.rq[CPU1].need_resched = true;
        let next_blocked = sched.nohz.next_blocked;
        assert!(sched.nohz_idle_balance(CpuIdleType::Idle));
        assert_eq!(sched.nr_running(), [2, 0, 0, 0]);
        assert_eq!((sched.nohz.has_blocked, sched.nohz.next_blocked), (true, next_blocked));
        // A CPU that is busy by then does nothing at all.
        sched.rq[CPU1].nohz_flags = NohzFlags::NOHZ_KICK_MASK;
        assert!(!sched.nohz_idle_balance(CpuIdleType::NotIdle));
        assert_eq!(sched.rq[CPU1].nohz_flags, NohzFlags::NONE);
    }
}

#[test]
fn who_is_about_to_idle_ages_for_others_at_once_until_v5_4_and_in_the_idle_loop_later() {
    for (kernel, at_once) in [(V4_19, true), (V5_4, true), (V5_10, false)] {
        let mut sched = flat(kernel, 3);
        [CPU1, CPU2].into_iter().for_each(|cpu| sched.go_idle(cpu));
        sched.pass_ms(100);
        sched.on_cpu(CPU0);
        sched.update_rq_clock(CPU0);
        sched.rq[CPU0].avg_idle = 10_000_000;
        assert!(sched.nohz.has_blocked && !sched.root_domain(CPU0).overload);
        sched.rq_lock(CPU0);
        assert_eq!(sched.idle_balance(CPU0), 0);
        sched.rq_unlock(CPU0);
        let now = sched.jiffies();
        let aged = [CPU1, CPU2].map(|cpu| sched.rq[cpu].last_blocked_load_update_tick == now);
        assert_eq!(aged, [at_once; 2], "{}", sched.kernel.name);
        assert_eq!(sched.nohz.next_blocked == now + 32, at_once);
        assert_eq!(sched.rq[CPU0].nohz_flags.has(NohzFlags::NOHZ_NEWILB_KICK), !at_once);
    }
}

#[test]
fn a_search_before_idling_ages_the_groups_that_it_sees_until_v5_4() {
    for (kernel, ages) in [(V4_19, true), (V5_4, true), (V5_10, false)] {
        let mut sched = flat(kernel, 3);
        [CPU1, CPU2].into_iter().for_each(|cpu| sched.go_idle(cpu));
        sched.pass_ms(100);
        sched.rq[CPU1].has_blocked_load = true;
        let before = sched.rq[CPU1].last_blocked_load_update_tick;
        let sd = sched.lowest_domain(CPU0);
        sched.balance(CPU0, sd, CpuIdleType::Idle);
        assert_eq!(sched.rq[CPU1].last_blocked_load_update_tick, before, "not if it idles already");
        sched.balance(CPU0, sd, CpuIdleType::NewlyIdle);
        assert_eq!(sched.rq[CPU1].last_blocked_load_update_tick == sched.jiffies(), ages, "{}", sched.kernel.name);
    }
}

#[test]
fn a_busy_tick_looks_for_idle_cpus_only_when_they_are_due() {
    for kernel in [V6_12, V6_18, V7_2] {
        let mut sched = one_busy_cpu(kernel, CpuTopology::symmetric(1, 1, 1, 2, 1));
        sched.on_cpu(CPU0);
        (sched.nohz.has_blocked, sched.nohz.needs_update) = (false, false);
        let lines = [GlobalLine::NohzMask, GlobalLine::NohzBalance].map(|line| sched.layout.global(line));
        let mut looks = |due: bool| {
            sched.nohz.next_balance = sched.jiffies() + u64::from(!due);
            sched.arch.loaded.clear();
            sched.nohz_balancer_kick(CPU0);
            let looks = lines.map(|line| sched.arch.loaded.contains(&line));
            (looks, std::mem::take(&mut sched.arch.interrupts).len())
        };
        // The mask is on a line of its own.
        assert_eq!(looks(false), ([false, true], 0), "{}", kernel.name);
        assert_eq!(looks(true), ([true, true], 1), "{}", kernel.name);
    }
}

#[test]
fn who_idles_without_ticks_is_counted_beside_when_they_are_due_and_away_from_the_mask() {
    for kernel in [V4_5_RC1, V6_12] {
        let mut sched = machine(kernel, CpuTopology::symmetric(1, 1, 1, 3, 1));
        let [mask, counts] = [GlobalLine::NohzMask, GlobalLine::NohzBalance].map(|line| sched.layout.global(line));
        let take = |sched: &mut Machine| std::mem::take(&mut sched.arch.touched);
        take(&mut sched);
        sched.go_idle(CPU1);
        let touched = take(&mut sched);
        assert!(touched.contains(&mask) && touched.contains(&counts), "{}", kernel.name);
        sched.hogs(CPU1, 1);
        sched.run_something(CPU1);
        sched.on_cpu(CPU1);
        take(&mut sched);
        sched.nohz_balance_exit_idle(CPU1);
        assert_eq!(take(&mut sched).into_iter().filter(|line| [mask, counts].contains(line)).count(), 2);
    }
    // Until v4.16 a kick postpones the next one, whichever CPU it finds.
    let mut sched = one_busy_cpu(V4_5_RC1, CpuTopology::symmetric(1, 1, 1, 2, 1));
    let [mask, counts] = [GlobalLine::NohzMask, GlobalLine::NohzBalance].map(|line| sched.layout.global(line));
    sched.on_cpu(CPU0);
    sched.arch.touched.clear();
    assert!(sched.nohz_kick_needed(CPU0));
    assert!(!sched.arch.touched.contains(&mask) && sched.arch.loaded.contains(&counts));
    sched.arch.stored.clear();
    sched.kick_ilb_once();
    assert!(sched.arch.stored.contains(&counts) && sched.arch.touched.contains(&mask));
}

#[test]
fn a_cpu_of_an_idle_core_is_kicked_rather_than_the_first_that_idles_since_v7_3() {
    // Two threads of each core: 0 and 4, 1 and 5, 2 and 6, 3 and 7.
    let kicked = |kernel, busy: &[u16]| {
        let mut sched = one_busy_cpu(kernel, CpuTopology::symmetric(1, 1, 1, 4, 2));
        for &cpu in busy {
            sched.hogs(CpuId(cpu), 1);
            sched.run_something(CpuId(cpu));
        }
        sched.arch.interrupts.clear();
        sched.nohz.next_balance = sched.jiffies();
        sched.on_cpu(CPU0);
        sched.nohz_balancer_kick(CPU0);
        sched.arch.interrupts.last().map(|&(_, to)| to)
    };
    let both = |busy: &[u16]| [V7_2, V7_3].map(|kernel| kicked(kernel, busy));
    // The first that idles shares its core with a busy CPU.
    assert_eq!(both(&[5]), [Some(CPU1), Some(CPU2)]);
    assert_eq!(both(&[5, 2]), [Some(CPU1), Some(CpuId(3))]);
    // No core idles: the first CPU that does, whether it or its sibling comes first.
    assert_eq!(both(&[5, 6, 7]), [Some(CPU1), Some(CPU1)]);
    assert_eq!(both(&[1, 2, 7]), [Some(CpuId(3)), Some(CpuId(3))]);
    assert_eq!(both(&[1, 2, 3, 4, 5, 6, 7]), [None, None]);
}

#[test]
fn where_nobody_idles_without_ticks_nobody_is_kicked() {
    for kernel in [V6_12, V6_18, V7_2] {
        let mut sched = flat(kernel, 2);
        sched.hogs(CPU0, 2);
        sched.run_something(CPU0);
        sched.nohz.next_balance = sched.jiffies();
        (sched.nohz.has_blocked, sched.nohz.next_blocked) = (true, 0);
        sched.on_cpu(CPU0);
        let before = sched.nohz.next_balance;
        sched.nohz_balancer_kick(CPU0);
        assert_eq!((sched.arch.interrupts.len(), sched.nohz.next_balance), (0, before), "{}", kernel.name);
    }
}

#[test]
fn the_domain_of_all_capacities_knows_how_far_to_search_for_an_idle_cpu() {
    // Two caches of two CPUs each, big and little, below one package.
    let mut topology = CpuTopology::symmetric(1, 1, 2, 2, 1);
    for little in [2, 3].map(CpuId) {
        topology.capacity[little] = 400;
    }
    for (kernel, counted) in [(V6_12, 99), (V6_18, 99), (V7_2, 4)] {
        let mut sched = machine(kernel, topology.clone());
        let package = sched.domains[sched.lowest_domain(CPU0)].parent.expect("two caches");
        assert_eq!(Some(package), sched.domains.sd_asym_cpucapacity[CPU0]);
        let shared = sched.domains.sd_balance_shared[CPU0].expect("shared");
        sched.domains[shared].nr_idle_scan = 99;
        sched.balance(CPU0, package, CpuIdleType::NewlyIdle);
        assert_eq!(sched.domains[shared].nr_idle_scan, 99, "newly idle CPUs leave that alone");
        sched.balance(CPU0, package, CpuIdleType::Idle);
        assert_eq!(sched.domains[shared].nr_idle_scan, counted, "{}", kernel.name);
    }
}
