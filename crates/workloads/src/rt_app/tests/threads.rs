//! Threads that meet: locks, conditions, barriers, semaphores, forks, and what ends them.

use super::running::{KERNELS, Ran, one_cpu, run_on};
use super::*;
use machine::prices::Prices;
use sim::engine::End;
use sim::sleepers::{Mutex, Sleeper};
use units::{CpuId, Ns};

/// A task that first moves to its CPU and sleeps there, so that no thread computes where another one still has to
/// leave. Its `rounds` begin `us` plus the timer slack of 50 us after the start.
fn settled(cpu: u32, us: u32, rounds: u32, events: &str) -> String {
    format!(
        r#"{{"cpus": [{cpu}], "loop": 1,
            "phases": {{"settle": {{"sleep": {us}}}, "work": {{"loop": {rounds}, {events}}}}}}}"#
    )
}

/// Microseconds after the start at which the rounds of a [`settled`] thread ended.
fn ends(ran: &Ran<false>, thread: &str) -> Vec<u64> {
    ran.rows(thread).iter().skip(1).map(|row| row.end_us).collect()
}

#[test]
fn a_mutex_is_held_by_one() {
    let text = format!(
        r#"{{"tasks": {{"a": {}, "b": {}}}}}"#,
        settled(0, 1000, 1, r#""lock": "m", "run": 3000, "unlock": "m", "run": 500"#),
        settled(1, 2000, 1, r#""lock": "m", "run": 1000, "unlock": "m""#),
    );
    for kernel in KERNELS {
        let ran = run_on(kernel, 2, &text);
        assert_eq!(ends(&ran, "a-0"), [4550], "{kernel}");
        assert_eq!(ends(&ran, "b-1"), [5050], "{kernel}");
    }
}

#[test]
fn who_waits_lends_its_priority_where_the_file_says_so() {
    let fifo = |priority: u32, task: String| {
        task.replacen('{', &format!("{{\"policy\": \"SCHED_FIFO\", \"priority\": {priority}, "), 1)
    };
    // The middle thread comes while the high one waits for the low one, which owns the mutex and has half its work
    // left.
    let tasks = format!(
        r#""tasks": {{"low": {}, "high": {}, "middle": {}}}"#,
        settled(0, 1000, 1, r#""lock": "m", "run": 5000, "unlock": "m""#),
        fifo(50, settled(0, 2000, 1, r#""lock": "m", "run": 1000, "unlock": "m""#)),
        fifo(20, settled(0, 3000, 1, r#""run": 8000"#)),
    );
    for (inherit, high, middle) in [(true, 7050, 15_050), (false, 15_050, 11_000)] {
        let text = format!(r#"{{"global": {{"pi_enabled": {inherit}}}, {tasks}}}"#);
        for kernel in KERNELS {
            let ran = run_on(kernel, 1, &text);
            assert_eq!((ends(&ran, "high-1"), ends(&ran, "middle-2")), (vec![high], vec![middle]), "{kernel}");
        }
    }
}

#[test]
fn who_waits_lends_its_deadline_where_the_file_says_so() {
    let with = |policy: &str, task: String| task.replacen('{', &format!("{{\"policy\": {policy}, "), 1);
    let middle = with("\"SCHED_FIFO\", \"priority\": 20", settled(0, 3000, 1, r#""run": 8000"#));
    // The owner uses four of the lent 1 ms budgets in a row: the task that lends does not wait for its own next period.
    for (budget, work) in [(10_000, 1000), (1_000, 500)] {
        let deadline = format!("\"SCHED_DEADLINE\", \"dl-runtime\": {budget}, \"dl-period\": 30000");
        let tasks = format!(
            r#""tasks": {{"low": {}, "high": {}, "middle": {middle}}}"#,
            settled(0, 1000, 1, r#""lock": "m", "run": 5000, "unlock": "m""#),
            with(&deadline, settled(0, 2000, 1, &format!(r#""lock": "m", "run": {work}, "unlock": "m""#))),
        );
        for (inherit, high, middle) in [(true, 6050 + work, 14_050 + work), (false, 14_050 + work, 11_000)] {
            let text = format!(r#"{{"global": {{"pi_enabled": {inherit}}}, {tasks}}}"#);
            for kernel in ["v4.5-rc1", "v4.15", "v4.16", "v6.1", "v6.12"] {
                let ran = run_on(kernel, 1, &text);
                let (of_high, of_middle) = (ends(&ran, "high-1"), ends(&ran, "middle-2"));
                assert_eq!((of_high, of_middle), (vec![high], vec![middle]), "{kernel} budget {budget} {inherit}");
            }
        }
    }
}

#[test]
fn until_v6_2_a_lent_deadline_may_be_overlooked() {
    // The owner's budget of 2 ms is used up when the other thread comes to lend it more. Its CPU idles, and nothing
    // makes that CPU reschedule.
    let text = r#"{"global": {"pi_enabled": true}, "tasks": {
        "owner": {"policy": "SCHED_DEADLINE", "dl-runtime": 2000, "dl-period": 100000, "loop": 1,
            "lock": "m", "run": 5000, "unlock": "m"},
        "lender": {"policy": "SCHED_DEADLINE", "dl-runtime": 4000, "dl-period": 20000, "delay": 8000, "loop": 1,
            "lock": "m", "run": 100, "unlock": "m"}}}"#;
    for (kernel, overlooked) in [("v4.15", true), ("v4.16", true), ("v6.1", true), ("v6.12", false)] {
        let mut ran = Ran::<false>::start_on(kernel, 2, Prices::free(), text);
        let end = ran.sim.run(Ns::from_ms(1_000));
        assert_eq!(end, if overlooked { End::Deadlock { sleeping: 3 } } else { End::Finished }, "{kernel}");
        if !overlooked {
            assert!(ran.sim.now() < Ns::from_ms(20), "{kernel} ended at {}", ran.sim.now());
        }
    }
}

#[test]
fn a_condition_is_handed_over_in_the_order_of_waiting() {
    let waiter = |us| settled(0, us, 1, r#""lock": "m", "wait": {"ref": "c", "mutex": "m"}, "unlock": "m""#);
    let host = settled(1, 10_000, 3, r#""lock": "m", "signal": "c", "unlock": "m", "run": 1000"#);
    let text = format!(
        r#"{{"tasks": {{"third": {}, "first": {}, "second": {}, "host": {host}}}}}"#,
        waiter(3000),
        waiter(1000),
        waiter(2000),
    );
    for kernel in KERNELS {
        let ran = run_on(kernel, 2, &text);
        let order = ["first-1", "second-2", "third-0"].map(|thread| ends(&ran, thread)[0]);
        assert_eq!(order, [10_050, 11_050, 12_050], "{kernel}");
    }
}

#[test]
fn a_broadcast_wakes_all_and_the_mutex_lets_them_out_one_by_one() {
    let waits = r#""lock": "m", "wait": {"ref": "c", "mutex": "m"}, "run": 1000, "unlock": "m""#;
    let text = format!(
        r#"{{"tasks": {{"w0": {}, "w1": {}, "host": {}}}}}"#,
        settled(0, 1000, 1, waits),
        settled(1, 1000, 1, waits),
        settled(2, 10_000, 1, r#""lock": "m", "broad": "c", "run": 500, "unlock": "m""#),
    );
    for kernel in KERNELS {
        let ran = run_on(kernel, 3, &text);
        let mut woken = [ends(&ran, "w0-0")[0], ends(&ran, "w1-1")[0]];
        woken.sort_unstable();
        assert_eq!(woken, [11_550, 12_550], "{kernel}");
    }
}

#[test]
fn a_pair_that_syncs_takes_turns() {
    let turn = |us| format!(r#""lock": "m", "run": {us}, "sync": {{"ref": "c", "mutex": "m"}}, "unlock": "m""#);
    let text = format!(
        r#"{{"tasks": {{"a": {}, "b": {}}}, "global": {{"duration": 1}}}}"#,
        settled(0, 1000, 10, &turn(100)),
        settled(1, 2000, 10, &turn(300)),
    );
    for kernel in KERNELS {
        let ran = run_on(kernel, 2, &text);
        let (a, b) = (ends(&ran, "a-0"), ends(&ran, "b-1"));
        // b's first signal, at 2350 us, lets a go on when b waits. From then on they alternate: 100 us, 300 us.
        assert_eq!(a[..3], [2350, 2750, 3150], "{kernel}");
        assert_eq!(b[..3], [2450, 2850, 3250], "{kernel}");
        assert_eq!((a.len(), b.len()), (10, 9), "{kernel}: the last one waits in vain");
    }
}

#[test]
fn a_barrier_opens_for_all_when_the_last_comes() {
    let arrives = |cpu, us| settled(cpu, 1000, 3, &format!(r#""run": {us}, "barrier": "meet""#));
    let text =
        format!(r#"{{"tasks": {{"a": {}, "b": {}, "c": {}}}}}"#, arrives(0, 1000), arrives(1, 2000), arrives(2, 3000));
    for kernel in KERNELS {
        let ran = run_on(kernel, 3, &text);
        for thread in ["a-0", "b-1", "c-2"] {
            assert_eq!(ends(&ran, thread), [4050, 7050, 10_050], "{kernel}, {thread}");
        }
    }
}

#[test]
fn suspended_threads_are_resumed_together() {
    let text = format!(
        r#"{{"tasks": {{"chief": {},
            "crew": {{"instance": 2, "cpus": [0, 1], "loop": 2, "suspend": "", "run": 100}}}}}}"#,
        settled(2, 5000, 2, r#""resume": "crew", "run": 2000"#)
    );
    for kernel in KERNELS {
        let ran = run_on(kernel, 3, &text);
        let rows = [ran.rows("crew-1"), ran.rows("crew-2")].concat();
        let mut woken: Vec<u64> = rows.iter().map(|row| row.end_us).collect();
        woken.sort_unstable();
        // They ran side by side, or one after the other.
        assert!(woken[0] == 5150 && woken[1] <= 5250 && woken[2] == 7150 && woken[3] <= 7250, "{kernel}: {woken:?}");
    }
}

#[test]
fn semaphores_remember_posts() {
    let pair = |run_us, sink_us| {
        format!(
            r#"{{"tasks": {{"source": {}, "sink": {}}}}}"#,
            settled(0, 1000, 3, &format!(r#""run": {run_us}, "sem_post": "s""#)),
            settled(1, sink_us, 3, r#""sem_wait": "s", "run": 10"#),
        )
    };
    for kernel in KERNELS {
        let ran = run_on(kernel, 2, &pair(100, 2000));
        assert_eq!(ends(&ran, "source-0"), [1150, 1250, 1350], "{kernel}");
        assert_eq!(ends(&ran, "sink-1"), [2060, 2070, 2080], "{kernel}");
        let ran = run_on(kernel, 2, &pair(1000, 1000));
        assert_eq!(ends(&ran, "sink-1"), [2060, 3060, 4060], "{kernel}");
    }
}

#[test]
fn those_who_yield_take_turns() {
    let text = r#"{"tasks": {"y": {"instance": 2, "cpus": [0], "loop": 100, "run": 100, "yield": ""}}}"#;
    for kernel in KERNELS {
        let ran = run_on(kernel, 1, text);
        let halves = ["y-0", "y-1"].map(|thread| ran.rows(thread)[49].end_us);
        assert!(halves[0].abs_diff(halves[1]) <= 200, "{kernel}: {halves:?}");
    }
}

#[test]
fn forked_threads_get_names_outlive_their_starter_and_are_waited_for() {
    let text = r#"{"tasks": {
        "mother": {"loop": 3, "run": 1000, "fork": "child"},
        "aside": {"loop": 1, "run": 50},
        "child": {"instance": 0, "loop": 2, "fork": "grandchild", "run": 100, "sleep": 30000},
        "grandchild": {"instance": 0, "loop": 1, "sleep": 50000}}}"#;
    for kernel in KERNELS {
        let ran = run_on(kernel, 2, text);
        let logs = ran.rt_app.logs(&ran.sim.samples);
        let mut names: Vec<&str> = logs.iter().map(|log| log.thread.as_str()).collect();
        assert_eq!(names[..2], ["mother-0", "aside-1"]);
        names.sort_unstable();
        assert_eq!(names.iter().filter(|name| name.starts_with("child-")).count(), 3, "{names:?}");
        assert_eq!(names.iter().filter(|name| name.starts_with("grandchild-")).count(), 6, "{names:?}");
        assert!(names.contains(&"child-2-0000") && names.contains(&"grandchild-3-0000"), "{names:?}");
        let indices: Vec<u32> = logs.iter().map(|log| log.index).collect();
        assert_eq!(indices, (0..11).collect::<Vec<_>>());
        assert_eq!(ran.rt_app.operations(), ["mother", "aside", "child", "grandchild"]);
        assert_eq!(ran.rt_app.samples_of(3, &ran.sim.samples).len(), 6);
        assert!(ran.sim.now() >= Ns::from_ms(80), "the last grandchild was waited for");
        assert_eq!(ran.rt_app.application().fork_limit_reached(&ran.sim.samples), None);
    }
}

#[test]
fn forked_threads_inherit_cpus_nice_level_and_group() {
    // "pinned" forks "plain", which names nothing itself. Only its policy is its own: rt-app always sets that.
    let text = r#"{"tasks": {
        "pinned": {"loop": 1, "phases": {"p": {"cpus": [1], "taskgroup": "/g", "fork": "plain", "run": 100}}},
        "plain": {"instance": 0, "loop": 1, "delay": 1000, "priority": -3, "phases": {
            "own": {"run": 5000}, "elsewhere": {"cpus": [0], "run": 5000}, "back": {"run": 5000}}}}}"#;
    for kernel in KERNELS {
        let mut ran = Ran::<false>::start_on(kernel, 2, Prices::free(), text);
        for (ms, cpu) in [(3, 1), (8, 0), (13, 1)] {
            ran.sim.run(Ns::from_ms(ms));
            let task = ran.sim.sched.rq[CpuId(cpu)].curr.expect("the forked thread runs");
            let sched = &ran.sim.sched;
            assert_eq!(sched.task_cold[task].comm, "plain-1-0000", "{kernel} at {ms} ms");
            assert_eq!(sched.tg[sched.task[task].sched_task_group].name, "g", "{kernel} at {ms} ms");
            assert_eq!(sched.task[task].static_prio, 117, "{kernel} at {ms} ms");
        }
        ran.ended();
    }
}

#[test]
fn too_many_forks_end_the_application() {
    let text = r#"{"tasks": {
        "bomb": {"loop": -1, "fork": "spark", "sleep": 100},
        "idler": {"sleep": 1000},
        "waiter": {"lock": "m", "wait": {"ref": "c", "mutex": "m"}, "unlock": "m"},
        "spark": {"instance": 0, "loop": 1, "run": 1}}}"#;
    let ran = run_on("v4.15", 2, text);
    assert_eq!(ran.rt_app.application().fork_limit_reached(&ran.sim.samples), Some(TaskId(3)));
    assert_eq!(ran.rt_app.samples_of(3, &ran.sim.samples).len(), FORK_LIMIT as usize);
}

#[test]
fn the_duration_ends_whoever_computes_sleeps_or_waits() {
    let text = r#"{"tasks": {
        "hog": {"cpus": [0], "run": 300000},
        "sleeper": {"sleep": 1000000000},
        "late": {"delay": 2000000000, "run": 1},
        "timer": {"timer": {"ref": "unique", "period": 700000}},
        "holder": {"cpus": [1], "lock": "held", "sleep": 1000000000, "unlock": "held"},
        "blocked": {"delay": 50000, "lock": "held", "run": 1, "unlock": "held"},
        "waiter": {"instance": 2, "lock": "m", "wait": {"ref": "never", "mutex": "m"}, "unlock": "m", "run": 10},
        "suspended": {"instance": 2, "suspend": "", "run": 10},
        "taker": {"instance": 2, "sem_wait": "s", "run": 10},
        "early": {"loop": 1, "barrier": "b"},
        "never": {"loop": 1, "sleep": 1000000000, "barrier": "b"},
        "host": {"delay": 1000000000, "broad": "never", "resume": "suspended", "sem_post": "s", "run": 10}},
        "global": {"duration": 1}}"#;
    for kernel in KERNELS {
        let ran = run_on(kernel, 2, text);
        let end = ran.sim.now();
        // The hog's fourth round is the last: it began at 900 ms.
        assert!((Ns::from_ms(1200)..Ns::from_ms(1201)).contains(&end), "{kernel}: {end}");
        assert_eq!(ran.rows("hog-0").len(), 3, "{kernel}: a round that is cut short has no row");
        assert_eq!(ran.rows("timer-3").len(), 1, "{kernel}");
        for thread in ["sleeper-1", "blocked-5", "waiter-6", "suspended-8", "taker-10", "early-12"] {
            assert_eq!(ran.rows(thread).len(), 0, "{kernel}, {thread}");
        }
    }
}

#[test]
fn a_thread_that_holds_locks_at_the_end_goes_on_to_its_unlocks() {
    // "b" gets the mutex when "a" has computed and unlocked, and then has nothing left to do.
    let text = r#"{"tasks": {
        "a": {"cpus": [0], "loop": 1,
            "lock": "m", "run": 1500000, "sleep": 1000000, "signal": "c", "unlock": "m", "run": 10},
        "b": {"cpus": [1], "loop": 1, "delay": 1000, "lock": "m", "run": 1000000, "unlock": "m"}},
        "global": {"duration": 1}}"#;
    let ran = run_on("v4.16", 2, text);
    assert_eq!(ran.sim.now(), Ns::from_ms(1500));
}

#[test]
fn a_duration_is_waited_for_though_all_have_ended() {
    let ran = run_on("v4.15", 1, r#"{"tasks": {"t": {"loop": 2, "run": 100}}, "global": {"duration": 3}}"#);
    assert_eq!(ran.sim.now(), Ns(3_000_050_000));
    assert_eq!(ran.rows("t-0").len(), 2);
}

#[test]
fn threads_that_wait_for_ever_are_a_deadlock_without_a_duration() {
    let text = r#"{"tasks": {"t": {"loop": 1, "suspend": ""}, "u": {"loop": 1, "run": 1}}}"#;
    let mut ran = Ran::<false>::start_on("v4.15", 1, Prices::free(), text);
    // The thread and main, which waits for it.
    assert_eq!(ran.sim.run(Ns::from_ms(100_000)), End::Deadlock { sleeping: 2 });
    assert_eq!(told(&ran), ["t-0: \"suspend\": \"t\" at 1:29"]);
}

/// Tasks that nothing will ever wake, and the position in the file where they wait.
fn told(ran: &Ran<false>) -> Vec<String> {
    let one = |sleeper: Sleeper| {
        let at = sleeper.stands.expect("it is in an event");
        let kept = match sleeper.mutex {
            Mutex::None => String::new(),
            Mutex::KeptBy(task) => format!(", kept by {task}"),
            Mutex::KeptForGood => ", kept by who has ended".to_string(),
        };
        format!("{}: {} at {}:{}{kept}", at.task, at.step, at.line, at.column)
    };
    ran.sim.sleepers().into_iter().map(one).collect()
}

#[test]
fn who_waits_for_good_is_told_by_its_event() {
    for (tasks, expected) in [
        // One task comes to the barrier more often than the other.
        (
            r#""a": {"loop": 2, "run": 5, "barrier": "b"}, "long-task-name": {"loop": 3, "barrier": "b", "run": 9}"#,
            vec![r#"long-task-name-1: "barrier": "b" at 1:86"#],
        ),
        (
            r#""a": {"instance": 2, "loop": 1, "run": 5, "sem_wait": "s"}, "b": {"loop": 1, "lock": "m", "wait": {"ref": "c", "mutex": "m"}, "unlock": "m"}"#,
            vec![r#"a-0: "sem_wait": "s" at 1:54"#, r#"a-1: "sem_wait": "s" at 1:54"#, r#"b-2: "wait": "c" at 1:102"#],
        ),
        // The thread that ended has kept the mutex.
        (
            r#""a": {"loop": 1, "lock": "m", "run": 5}, "b": {"loop": 1, "delay": 1000, "lock": "m", "unlock": "m"}"#,
            vec![r#"b-1: "lock": "m" at 1:85, kept by who has ended"#],
        ),
    ] {
        let text = format!("{{\"tasks\": {{{tasks}}}}}");
        let mut ran = Ran::<false>::start_on("v6.1", 2, Prices::free(), &text);
        assert!(matches!(ran.sim.run(Ns::from_ms(100_000)), End::Deadlock { .. }), "{tasks}");
        assert_eq!(told(&ran), expected, "{tasks}");
    }
}

#[test]
fn a_thread_that_locks_twice_waits_for_itself() {
    let text = |global: &str| {
        format!(r#"{{"tasks": {{"t": {{"loop": 1, "lock": "m", "lock": "m", "run": 1}}}}, "global": {{{global}}}}}"#)
    };
    let mut ran = Ran::<false>::start_on("v4.15", 1, Prices::free(), &text(""));
    assert_eq!(ran.sim.run(Ns::from_ms(100_000)), End::Deadlock { sleeping: 2 });
    assert_eq!(told(&ran), ["t-0: \"lock\": \"m\" at 1:42"]);
    assert_eq!(run_on("v4.15", 1, &text("\"duration\": 1")).rows("t-0").len(), 0);
}

#[test]
fn the_example_of_the_manual_does_what_it_says() {
    let text = include_str!("../../../../../experiments/rt-app-example.json");
    for kernel in KERNELS {
        let ran = run_on(kernel, 4, text);
        assert_eq!(ran.rt_app.operations(), ["periodic", "hog", "producer", "consumer"]);
        let samples: Vec<usize> = (0..4).map(|row| ran.rt_app.samples_of(row, &ran.sim.samples).len()).collect();
        assert!(samples.iter().all(|&count| count > 20), "{kernel}: {samples:?}");
        assert!(ran.rows("periodic-0").iter().skip(1).all(|row| row.c_period_us == 10_000), "{kernel}");
    }
}

#[test]
fn nodes_matter_only_where_memory_is_used_and_must_be_there() {
    let application = app(r#"{"tasks": {"t": {"loop": 1, "nodes_membind": [0, 2], "run": 1}}}"#);
    let warnings: Vec<String> = application.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(warnings, ["1:46: \"nodes_membind\" has no effect in a file without \"mem\" and \"memrun\""]);
    assert!(instance(application.clone(), one_cpu()).is_ok() && application.check_nodes(3).is_ok());
    let error = application.check_nodes(2).expect_err("node 2 is missing").to_string();
    assert_eq!(error, "test.json:1:46: \"nodes_membind\" names node 2, but the machine has 2 nodes; use nodes 0 to 1");
}

#[test]
fn cpus_that_the_machine_lacks_are_refused() {
    let application = app(r#"{"tasks": {"t": {"cpus": [0, 4], "run": 1}}, "global": {"pi_enabled": false}}"#);
    let cpus = |nr_cpus| Cores { nr_cpus, ..one_cpu() };
    assert!(instance(application.clone(), cpus(5)).is_ok());
    let error = instance(application, cpus(4)).expect_err("CPU 4 is missing").to_string();
    assert_eq!(error, "test.json:1:26: \"cpus\" names CPU 4, but the machine has 4 CPUs; use CPUs 0 to 3");
}

#[test]
fn long_names_of_threads_are_cut_to_what_the_kernel_holds() {
    let text = r#"{"tasks": {"einer sehr große": {"run": 1000}}, "global": {"duration": 1}}"#;
    let mut ran = Ran::<false>::start_on("v4.15", 1, Prices::free(), text);
    ran.sim.run(Ns(500_000));
    assert_eq!(ran.running_on(0).as_deref(), Some("einer sehr gro"));
}
