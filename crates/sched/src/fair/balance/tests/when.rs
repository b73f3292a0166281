//! When a CPU balances, and when it does not.

use super::*;
use crate::core::class::BalanceFair;
use crate::layout::{BALANCE_RUNNING, RqLine};
use crate::versions::CoreRules;

#[test]
fn newidle_pulls_and_measures_itself() {
    let mut sched = flat(V4_5_RC1, 4);
    sched.hogs(CPU0, 2);
    sched.run_something(CPU0);
    sched.cool_down();
    assert!(sched.root_domain(CPU0).overload);
    sched.arch.ns_per_read = 10;
    sched.on_cpu(CPU1);
    sched.rq_lock(CPU1);
    assert_eq!(sched.idle_balance(CPU1), 1);
    sched.rq_unlock(CPU1);
    assert_eq!(sched.nr_running(), [1, 1, 0, 0]);
    assert_eq!(sched.rq[CPU1].idle_stamp, 0, "not idle after all");
    let sd = sched.lowest_domain(CPU1);
    let cost = sched.domains[sd].max_newidle_lb_cost;
    assert!(cost >= 4 * 4 * 10, "at least four lines of four CPUs: {cost}");
    assert_eq!(sched.domains.stats(sd).lb_count, [0, 0, 1]);
}

#[test]
fn newidle_gives_up_where_it_would_cost_more_than_it_brings() {
    let mut sched = flat(V4_5_RC1, 2);
    sched.hogs(CPU0, 2);
    sched.run_something(CPU0);
    sched.cool_down();
    let sd = sched.lowest_domain(CPU1);
    sched.rq[CPU1].avg_idle = 600_000;
    sched.domains[sd].max_newidle_lb_cost = 600_001;
    sched.on_cpu(CPU1);
    assert_eq!(sched.idle_balance(CPU1), 0);
    assert_eq!(sched.rq[CPU1].idle_stamp, sched.rq[CPU1].clock);
    // Not even tried: the idle time is shorter than a migration costs, or no CPU has two tasks.
    sched.domains[sd].max_newidle_lb_cost = 0;
    sched.rq[CPU1].avg_idle = 499_999;
    assert_eq!(sched.idle_balance(CPU1), 0);
    sched.rq[CPU1].avg_idle = 600_000;
    sched.root_domain_mut(CPU0).overload = false;
    assert_eq!(sched.idle_balance(CPU1), 0);
    assert_eq!(sched.domains.stats(sd).lb_count, [0, 0, 0]);
    sched.root_domain_mut(CPU0).overload = true;
    assert_eq!(sched.idle_balance(CPU1), 1);
}

#[test]
fn newidle_asks_everybody_for_work_only_once_it_has_time_for_it() {
    // All CPUs write the line of `rd->overload`; `avg_idle` is the CPU's own.
    for (kernel, asks_first) in [(V4_5_RC1, false), (V6_12, true)] {
        let mut sched = flat(kernel, 2);
        let overload = sched.layout.root_domain(0);
        let mut looks = |avg_idle: u64| {
            sched.rq[CPU1].avg_idle = avg_idle;
            sched.on_cpu(CPU1);
            sched.arch.loaded.clear();
            assert_eq!(sched.idle_balance(CPU1), 0);
            sched.arch.loaded.contains(&overload)
        };
        assert_eq!([looks(499_999), looks(500_000)], [asks_first, true], "{}", kernel.name);
    }
}

#[test]
fn newidle_tells_of_a_stopper_that_came_meanwhile() {
    let mut sched = flat(V4_5_RC1, 2);
    let stopper = sched.rq[CPU1].stop.expect("every CPU has one");
    sched.on_cpu(CPU1);
    sched.enqueue_task_stop(CPU1, stopper);
    assert_eq!(sched.idle_balance(CPU1), -1);
}

#[test]
fn newidle_takes_one_task_where_the_kernel_is_preemptible() {
    for (newidle_detach, pulled) in [(NewidleDetach::Imbalance, 3), (NewidleDetach::One, 1)] {
        let balance = BalanceRules { newidle_detach, ..BalanceRules::V4_5 };
        let mut sched = flat(Kernel { balance, ..V4_5_RC1 }, 2);
        sched.hogs(CPU0, 6);
        sched.run_something(CPU0);
        sched.cool_down();
        let sd = sched.lowest_domain(CPU1);
        assert_eq!(sched.balance(CPU1, sd, CpuIdleType::NewlyIdle), pulled);
    }
}

#[test]
fn one_cpu_balances_for_its_group() {
    let mut sched = machine(V4_5_RC1, CpuTopology::symmetric(2, 1, 1, 3, 1));
    let socket = |sched: &Machine, cpu: CpuId| sched.domains[sched.lowest_domain(cpu)].parent.expect("two sockets");
    let balancer = |sched: &mut Machine| {
        let may = |sched: &mut Machine, cpu| {
            let env = sched.env(cpu, socket(sched, cpu), CpuIdleType::NotIdle);
            sched.should_we_balance(&env)
        };
        (0..3).map(CpuId).filter(|&cpu| may(sched, cpu)).collect::<Vec<_>>()
    };
    assert_eq!(balancer(&mut sched), [CPU0], "the first idle one");
    sched.hogs(CPU0, 1);
    assert_eq!(balancer(&mut sched), [CPU1]);
    for cpu in [CPU1, CpuId(2)] {
        sched.hogs(cpu, 1);
    }
    assert_eq!(balancer(&mut sched), [CPU0], "all busy: the first");
    let env = sched.env(CpuId(2), socket(&sched, CpuId(2)), CpuIdleType::NewlyIdle);
    assert!(sched.should_we_balance(&env), "whoever is about to idle may");
}

#[test]
fn two_sockets_even_out_from_tick_to_tick() {
    for kernel in [V4_5_RC1, V4_15] {
        // Two sockets of two cores of two threads; 8 hogs start on one thread.
        let mut sched = machine(kernel, CpuTopology::symmetric(2, 1, 1, 2, 2));
        sched.hogs(CPU0, 8);
        sched.run_something(CPU0);
        for _ in 0..400 {
            sched.jiffy();
        }
        assert_eq!(sched.nr_running(), [1; 8], "{}", sched.kernel.name);
        assert!(!sched.root_domain(CPU0).overload, "the top domain saw that no CPU has two tasks");
    }
}

#[test]
fn no_cpu_idles_while_tasks_wait_whatever_the_machine() {
    let machines = [(1, 1, 1, 8, 1), (2, 1, 1, 2, 2), (2, 2, 1, 2, 1), (1, 1, 2, 3, 2), (4, 1, 1, 2, 1)];
    for (kernel, shape) in [V4_5_RC1, V4_15].into_iter().flat_map(|kernel| machines.map(|shape| (kernel, shape))) {
        let (packages, nodes, llcs, cores, threads) = shape;
        let topology = CpuTopology::symmetric(packages, nodes, llcs, cores, threads);
        let nr_cpus = topology.nr_cpus as u64;
        for seed in 0..6 {
            let mut random = units::Prng::stream(seed, "balance", nr_cpus);
            let mut sched = machine(kernel, topology.clone());
            let tasks = random.between(2, 2 * nr_cpus);
            for _ in 0..tasks {
                let cpu = CpuId(random.below(nr_cpus) as u16);
                sched.hogs(cpu, 1);
            }
            for _ in 0..2000 {
                sched.jiffy();
            }
            let nr_running = sched.nr_running();
            assert_eq!(u64::from(nr_running.iter().sum::<u32>()), tasks);
            let wasted = nr_running.contains(&0) && nr_running.iter().any(|&running| running > 1);
            assert!(!wasted, "{} {shape:?} seed {seed}: {nr_running:?}", sched.kernel.name);
        }
    }
}

#[test]
fn a_task_that_sleeps_makes_room_for_one_that_waits_elsewhere() {
    for kernel in [V4_5_RC1, V4_15] {
        let mut sched = flat(kernel, 2);
        let sleeper = sched.hogs(CPU1, 1)[0];
        sched.run_something(CPU1);
        sched.hogs(CPU0, 2);
        sched.run_something(CPU0);
        sched.cool_down();
        sched.on_cpu(CPU1);
        sched.task[sleeper].state = TaskState::Interruptible;
        let pulled = sched.schedule(false).expect("a task was pulled");
        assert_ne!(pulled, sleeper);
        assert_eq!((sched.task[pulled].cpu, sched.nr_running()), (CPU1, vec![1, 1]));
        assert_eq!(sched.se[sched.task[pulled].se].nr_migrations, 1);
    }
}

/// Two hogs on the first of two CPUs, and no dice that decide whether a CPU may look for tasks.
fn two_hogs_beside_an_idle_cpu(kernel: Kernel) -> Machine {
    let mut sched = flat(kernel, 2);
    assert_eq!(sched.sched_feat_set(Feature::NI_RANDOM, false), Ok(()));
    sched.hogs(CPU0, 2);
    sched.run_something(CPU0);
    sched.cool_down();
    sched.on_cpu(CPU1);
    sched.rq[CPU1].avg_idle = 1_000_000;
    sched
}

#[test]
fn an_idle_cpu_that_is_told_to_reschedule_looks_for_tasks_until_v6_11() {
    for (kernel, looks) in [(V6_1, true), (V6_12, false)] {
        let mut sched = two_hogs_beside_an_idle_cpu(kernel);
        let sd = sched.lowest_domain(CPU1);
        sched.rq[CPU1].need_resched = true;
        assert_eq!(sched.schedule(false).is_some(), looks, "{}", sched.kernel.name);
        assert_eq!(sched.domains.stats(sd).lb_count[2], u32::from(looks), "{}", sched.kernel.name);
        assert!(!sched.rq[CPU1].need_resched, "it was heard in either");
    }
    // No CPU has a task to give: this counts as going idle once more, or does not.
    for (kernel, goidle) in [(V6_1, 1), (V6_12, 0)] {
        let mut sched = flat(kernel, 2);
        sched.on_cpu(CPU1);
        let before = sched.rq[CPU1].sched_goidle;
        assert_eq!(sched.schedule(false), None);
        assert_eq!(sched.rq[CPU1].sched_goidle - before, goidle, "{}", sched.kernel.name);
    }
}

#[test]
fn a_fair_task_that_leaves_looks_for_another_one_before_a_real_time_task_runs_since_v6_12() {
    for (kernel, looks) in [(V6_1, 0), (V6_12, 1)] {
        let mut sched = two_hogs_beside_an_idle_cpu(kernel);
        let only_here = cpus(&[1]);
        let two = [(); 2].map(|()| sched.hog_for(CPU1, only_here.clone()));
        let fair = sched.run_something(CPU1);
        let fifo = if two[0] == fair { two[1] } else { two[0] };
        assert_eq!(sched.sched_setscheduler(fifo, Policy::Fifo, 10), Ok(()));
        let sd = sched.lowest_domain(CPU1);
        let before = sched.domains.stats(sd).lb_count[2];
        sched.on_cpu(CPU1);
        assert_eq!(sched.rq[CPU1].curr, Some(fair), "{}", sched.kernel.name);
        sched.task[fair].state = TaskState::Interruptible;
        sched.rq[CPU1].avg_idle = 1_000_000;
        assert_eq!(sched.schedule(false), Some(fifo), "{}", sched.kernel.name);
        assert_eq!(sched.domains.stats(sd).lb_count[2] - before, looks, "{}", sched.kernel.name);
    }
}

/// v7.2, but with a choice of when the fair class looks for tasks elsewhere.
fn looking(balance_fair: BalanceFair) -> Kernel {
    Kernel { core: CoreRules { balance_fair, ..V7_2.core }, ..V7_2 }
}

/// [`two_hogs_beside_an_idle_cpu`], but the other CPU runs a fair task, which may run nowhere else, while a real-time
/// task waits.
fn two_hogs_beside_two_classes(kernel: Kernel) -> (Machine, TaskId, TaskId) {
    let mut sched = two_hogs_beside_an_idle_cpu(kernel);
    let [first, second] = [(); 2].map(|()| sched.hog_for(CPU1, cpus(&[1])));
    let fair = sched.run_something(CPU1);
    let fifo = if first == fair { second } else { first };
    assert_eq!(sched.sched_setscheduler(fifo, Policy::Fifo, 10), Ok(()));
    sched.rq[CPU1].avg_idle = 1_000_000;
    sched.on_cpu(CPU1);
    (sched, fair, fifo)
}

#[test]
fn a_fair_task_that_leaves_is_not_replaced_where_the_class_looks_as_it_picks() {
    assert_eq!(looking(BalanceFair::InPick), V7_2);
    for (balance_fair, looks) in [(BalanceFair::NothingRuns, 0), (BalanceFair::NoFairTask, 1), (BalanceFair::InPick, 0)]
    {
        let (mut sched, fair, fifo) = two_hogs_beside_two_classes(looking(balance_fair));
        let sd = sched.lowest_domain(CPU1);
        let before = sched.domains.stats(sd).lb_count[2];
        sched.task[fair].state = TaskState::Interruptible;
        assert_eq!(sched.schedule(false), Some(fifo), "{balance_fair:?}");
        assert_eq!(sched.domains.stats(sd).lb_count[2] - before, looks, "{balance_fair:?}");
    }
}

/// It finds none, because no level is searched for a CPU that has any task: it is called, refuses, and the CPU counts
/// as idle.
#[test]
fn the_fair_server_looks_for_tasks_elsewhere_where_the_class_looks_as_it_picks() {
    for (balance_fair, looks) in [(BalanceFair::NothingRuns, 0), (BalanceFair::NoFairTask, 0), (BalanceFair::InPick, 1)]
    {
        let (mut sched, fair, fifo) = two_hogs_beside_two_classes(looking(balance_fair));
        let sd = sched.lowest_domain(CPU1);
        // The server waits for its time; nothing cancels that, although the only fair task changes its class and
        // sleeps.
        assert_eq!(sched.sched_setscheduler(fair, Policy::Fifo, 20), Ok(()));
        assert_eq!(sched.schedule(true), Some(fair), "{balance_fair:?}");
        sched.task[fair].state = TaskState::Interruptible;
        assert_eq!(sched.schedule(false), Some(fifo), "{balance_fair:?}");
        sched.pass_ms(1_000);
        sched.on_cpu(CPU1);
        sched.rq[CPU1].avg_idle = 1_000_000;
        let before = sched.domains.stats(sd).lb_count[2];
        sched.dl_server_timer(CPU1);
        assert!(sched.dl[CPU1].fair_server.dl_server_active);
        assert_eq!(sched.schedule(true), Some(fifo), "{balance_fair:?}");
        assert!(!sched.dl[CPU1].fair_server.dl_server_active, "nobody is there to be served");
        assert_eq!(sched.domains.stats(sd).lb_count[2] - before, looks, "{balance_fair:?}");
        // A task that waited before does not count as one that came meanwhile (rq_modified_above()).
        let clock = sched.rq[CPU1].clock;
        assert_eq!(sched.rq[CPU1].idle_stamp, if looks == 1 { clock } else { 0 }, "{balance_fair:?}");
    }
}

#[test]
fn a_real_time_task_that_goes_on_is_not_put_back_since_v6_12() {
    for (kernel, waits) in [(V6_1, 1), (V6_12, 0)] {
        let mut sched = flat(kernel, 1);
        let fifo = sched.hogs(CPU0, 1)[0];
        assert_eq!(sched.sched_setscheduler(fifo, Policy::Fifo, 10), Ok(()));
        assert_eq!(sched.run_something(CPU0), fifo);
        let stats = |sched: &Machine| sched.task_cold[fifo].statistics.wait_count;
        let before = stats(&sched);
        Scheduler::sched_yield(&mut sched, CPU0);
        assert_eq!(sched.schedule(false), Some(fifo));
        assert_eq!(stats(&sched) - before, waits, "{}", sched.kernel.name);
    }
}

#[test]
fn levels_that_are_serialized_are_balanced_by_one_at_a_time() {
    let held = Balancing { from: Ns(100), until: Ns(200) };
    assert!(held.is_held_at(Ns(100)) && held.is_held_at(Ns(199)));
    assert!(!held.is_held_at(Ns(99)) && !held.is_held_at(Ns(200)));
    assert!(!Balancing::default().is_held_at(Ns(0)));

    let mut sched = machine(V4_5_RC1, CpuTopology::symmetric(2, 1, 1, 2, 1));
    let cache = sched.lowest_domain(CPU0);
    let nodes = sched.domains[cache].parent.expect("two sockets");
    let counts = |sched: &Machine| [cache, nodes].map(|sd| sched.domains.stats(sd).lb_count[0]);
    sched.rq[CPU0].idle_balance = true;
    let now = Ns(sched.arch.now);
    sched.balance.balancing = Balancing { from: now, until: now + Ns(1) };
    Scheduler::run_rebalance_domains(&mut sched, CPU0);
    assert_eq!(counts(&sched), [1, 0]);
    sched.pass_ms(100);
    sched.arch.ns_per_read = 1;
    Scheduler::run_rebalance_domains(&mut sched, CPU0);
    assert_eq!(counts(&sched), [2, 1]);
    // The lock was held while that level was balanced, which took some time.
    let Balancing { from, until } = sched.balance.balancing;
    assert!(now < from && from < until && until.0 <= sched.arch.now);
}

#[test]
fn who_finds_a_serialized_level_taken_has_looked_at_the_lock_or_written_the_flag() {
    for (kernel, looks) in [(V4_5_RC1, 1), (V6_1, 1), (V6_12, 0)] {
        let mut sched = machine(kernel, CpuTopology::symmetric(2, 1, 1, 2, 1));
        sched.rq[CPU0].idle_balance = true;
        let mut visit = |held: bool| {
            let now = Ns(sched.arch.now);
            sched.balance.balancing =
                if held { Balancing { from: now, until: now + Ns(1) } } else { Balancing::default() };
            let arch = &mut sched.arch;
            for lines in [&mut arch.loaded, &mut arch.stored, &mut arch.touched] {
                lines.clear();
            }
            sched.on_cpu(CPU0);
            sched.rebalance_domains(CPU0, CpuIdleType::Idle);
            [&sched.arch.loaded, &sched.arch.stored, &sched.arch.touched]
                .map(|lines| lines.iter().filter(|&&line| line == BALANCE_RUNNING).count())
        };
        assert_eq!(visit(true), [looks, 0, 1], "{}", kernel.name);
        assert_eq!(visit(false), [0, 1, 2], "{}", kernel.name);
    }
}

#[test]
fn busy_cpus_balance_rarely_and_costs_decay() {
    let mut sched = flat(V4_5_RC1, 4);
    let sd = sched.lowest_domain(CPU0);
    assert_eq!((sched.domains[sd].balance_interval, sched.domains[sd].busy_factor), (4, 32));
    sched.domains[sd].max_newidle_lb_cost = 2_560_000;
    sched.hogs(CPU0, 1);
    sched.run_something(CPU0);
    sched.on_cpu(CPU0);
    sched.rq[CPU0].idle_balance = false;
    sched.run_rebalance_domains();
    // Balanced: the interval doubles to 8 ms, and is 32 times that while busy.
    assert_eq!(sched.rq[CPU0].next_balance, 1000 + 8 * 32);
    assert_eq!(sched.domains[sd].max_newidle_lb_cost, 2_530_000);
    assert_eq!(sched.rq[CPU0].max_idle_balance_cost, 2_530_000);
    assert_eq!(sched.domains[sd].next_decay_max_lb_cost, 2000);
    // Nothing is due until then.
    let count = sched.domains.stats(sd).lb_count;
    sched.pass_ms(200);
    sched.run_rebalance_domains();
    assert_eq!(sched.domains.stats(sd).lb_count, count);
}

#[test]
fn between_nodes_one_cpu_searches_at_a_time_and_the_others_count_as_balanced() {
    // No CPU has a task to give: a search ends without a busiest group.
    for (kernel, searches) in [(V6_12, 1), (V6_18, 0), (V7_2, 0)] {
        for idle in [CpuIdleType::Idle, CpuIdleType::NewlyIdle] {
            let mut sched = machine(kernel, CpuTopology::symmetric(2, 1, 1, 2, 1));
            let nodes = sched.domains[sched.lowest_domain(CPU0)].parent.expect("two sockets");
            let now = Ns(sched.arch.now);
            let held = Balancing { from: now, until: now + Ns(1) };
            sched.balance.balancing = held;
            assert_eq!(sched.balance(CPU0, nodes, idle), 0);
            let at = idle as usize;
            let counts = |sched: &Machine| {
                let stats = sched.domains.stats(nodes);
                [stats.lb_count[at], stats.lb_balanced[at], stats.lb_nobusyg[at]]
            };
            assert_eq!(counts(&sched), [1, 1, searches], "{} {idle:?}", sched.kernel.name);
            assert_eq!((sched.balance.balancing.from, sched.balance.balancing.until), (held.from, held.until));
            // Free again.
            sched.pass_ms(1);
            sched.arch.touched.clear();
            assert_eq!(sched.balance(CPU0, nodes, idle), 0);
            assert_eq!(counts(&sched), [2, 2, searches + 1], "{} {idle:?}", sched.kernel.name);
            let touched = sched.arch.touched.iter().filter(|&&line| line == BALANCE_RUNNING).count();
            assert_eq!(touched, if searches == 0 { 2 } else { 0 }, "taken and let go of");
        }
    }
}

#[test]
fn who_is_not_to_balance_does_not_take_the_lock_of_the_nodes() {
    let mut sched = machine(V7_2, CpuTopology::symmetric(2, 1, 1, 2, 1));
    let nodes = sched.domains[sched.lowest_domain(CPU1)].parent.expect("two sockets");
    sched.balance(CPU1, nodes, CpuIdleType::Idle);
    assert!(!sched.arch.touched.contains(&BALANCE_RUNNING), "CPU 0 idles too, and comes first");
    let cache = sched.lowest_domain(CPU0);
    sched.balance(CPU0, cache, CpuIdleType::Idle);
    assert!(!sched.arch.touched.contains(&BALANCE_RUNNING), "no level between nodes");
    sched.balance(CPU0, nodes, CpuIdleType::Idle);
    assert!(sched.arch.touched.contains(&BALANCE_RUNNING));
}

#[test]
fn load_is_aged_before_the_lock_is_dropped() {
    for (kernel, locked) in [(V6_12, 2), (V6_18, 2), (V7_2, 1)] {
        let mut sched = two_hogs_beside_an_idle_cpu(kernel);
        sched.rq_lock(CPU1);
        sched.pass_ms(1);
        sched.arch.locked.clear();
        let clock = sched.rq[CPU1].clock;
        // A wakeup is pending: nothing is pulled, so that there is no other reason to lock the queue.
        sched.root_domain_mut(CPU1).overload = true;
        let sd = sched.lowest_domain(CPU1);
        sched.domains[sd].max_newidle_lb_cost = 0;
        let hogs = sched.rq[CPU0].cfs_tasks.iter(&sched.task).collect::<Vec<_>>();
        for p in hogs {
            sched.task[p].cpus_allowed = cpus(&[0]).into();
        }
        assert_eq!(sched.idle_balance(CPU1), 0, "{}", sched.kernel.name);
        let own = sched.layout.rq(CPU1, RqLine::Lock);
        let count = sched.arch.locked.iter().filter(|&&line| line == own).count();
        assert_eq!(count, locked, "{}: to age, and at the end", sched.kernel.name);
        assert_eq!(sched.rq[CPU1].clock > clock, locked == 2, "{}: by what time", sched.kernel.name);
        sched.rq_unlock(CPU1);
    }
}

#[test]
fn searches_that_are_seldom_count_as_successful() {
    // The ratio after 1024 calls, `success` of which found something, in that time.
    let ratio = |kernel: Kernel, success, ms, rate| {
        let mut sched = flat(kernel, 2);
        let sd = sched.lowest_domain(CPU0);
        if sched.features.has(Feature::NI_RATE) {
            sched.features.set(Feature::NI_RATE, rate);
        }
        let now = sched.arch.now;
        let domain = &mut sched.domains[sd];
        (domain.newidle_call, domain.newidle_success, domain.newidle_stamp) = (1023, success, now);
        sched.pass_ms(ms);
        sched.update_newidle_stats(sd, 0);
        let domain = &sched.domains[sd];
        assert_eq!((domain.newidle_call, domain.newidle_success), (512, success / 2));
        domain.newidle_ratio
    };
    // 1 s >> 22 = 238; 4 s >> 22 = 953.
    assert_eq!((ratio(V7_2, 100, 1000, true), ratio(V7_2, 100, 1000, false)), (338, 100));
    assert_eq!((ratio(V7_2, 100, 4000, true), ratio(V7_2, 1500, 1, true)), (1024, 1024), "no more than all");
    for kernel in [V6_12, V6_18] {
        assert_eq!((ratio(kernel, 100, 1000, false), ratio(kernel, 1500, 1, false)), (100, 1500));
    }
    assert!(V7_2.features.sched_feat(Feature::NI_RATE) && !V6_12.features.has(Feature::NI_RATE));
}

#[test]
fn a_wakeup_on_the_way_ends_the_search_for_tasks_since_v5_13() {
    for (kernel, begins, goes_on) in [(V5_10, true, true), (V5_15, false, true), (V6_1, false, false)] {
        let mut sched = flat(kernel, 2);
        let tasks = sched.hogs(CPU0, 2);
        sched.run_something(CPU0);
        sched.cool_down();
        sched.on_cpu(CPU1);
        sched.rq[CPU1].avg_idle = 1_000_000;
        // Whose wakeup that is, nobody asks.
        sched.rq[CPU1].wake_list.push(tasks[0]);
        let sd = sched.lowest_domain(CPU1);
        let env = sched.env(CPU1, sd, CpuIdleType::NewlyIdle);
        assert_eq!(sched.should_we_balance(&env), goes_on, "{}: within a domain", kernel.name);
        assert_eq!(sched.idle_balance(CPU1), i32::from(begins), "{}", kernel.name);
        assert_eq!(sched.domains.stats(sd).lb_count[2], u32::from(begins), "{}", kernel.name);
    }
}
