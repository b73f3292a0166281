//! What the grammar means.

use super::*;
use units::{CpuId, CpuMask};

#[test]
fn a_plain_file_is_read_with_its_defaults() {
    let app = fixture("plain.json", Duplicates::Workgen);
    assert_eq!(app.global.duration_s, Some(Placed::new(2, at(6, 27))));
    let busy = &app.tasks[0];
    assert_eq!((busy.name.as_str(), busy.instances, busy.delay_us, busy.loops), ("busy", 1, 0, Loops::Forever));
    assert_eq!(busy.policy.value, Policy::Other { nice: 0, slice_us: None });
    assert_eq!(busy.phases[0].loops, Loops::Times(1));
    assert_eq!(events(&busy.phases[0]), [Event::Run { us: 3000 }, Event::Sleep { us: 7000 }]);
    assert_eq!(busy.phases[0].steps[1].position, at(3, 28));
    let steady = &app.tasks[1];
    assert_eq!((steady.instances, steady.loops, steady.phases[0].loops), (4, Loops::Times(1), Loops::Times(50)));
    let timer = Event::Timer { timer: TimerRef::Unique(UniqueTimerId(0)), period_us: 5000 };
    assert_eq!(events(&steady.phases[0]), [Event::Runtime { us: 500 }, timer]);
    assert_eq!(app.threads().collect::<Vec<_>>(), [0, 1, 1, 1, 1].map(TaskId));
    assert_eq!(app.thread_name(TaskId(1), 3, None), "steady-3");
    assert_eq!(app.thread_name(TaskId(1), 7, Some(2)), "steady-7-0002");
}

#[test]
fn repeated_events_are_kept_in_order_or_last_value_at_first_place() {
    let kept = fixture("pipeline.json", Duplicates::Workgen);
    assert_eq!(keys(&kept.tasks[0].phases[0]), ["run", "sem_post", "run1", "timer"]);
    assert_eq!(kept.tasks[0].phases[0].steps[2].event, Event::Run { us: 100 });
    let keys_of_filter = ["sem_wait", "lock", "run", "unlock", "run1", "lock1", "run2", "unlock2", "sem_post", "yield"];
    assert_eq!(keys(&kept.tasks[1].phases[0]), keys_of_filter, "workgen numbers with one counter for each object");
    let last = fixture("pipeline.json", Duplicates::JsonC);
    assert_eq!(keys(&last.tasks[0].phases[0]), ["run", "sem_post", "timer"]);
    let first = &last.tasks[0].phases[0].steps[0];
    assert_eq!((&first.event, first.position), (&Event::Run { us: 100 }, at(8, 4)));
    for app in [&kept, &last] {
        let texts = warned(app, WarningKind::Duplicates);
        assert_eq!(texts.len(), 2, "{texts:?}");
        assert!(texts[0].starts_with("8:4: repeated names in one object (\"run\"): "), "{texts:?}");
        assert!(
            texts[1].starts_with("18:4: repeated names in one object (\"run\", \"lock\", \"unlock\"): "),
            "{texts:?}"
        );
    }
}

#[test]
fn json_c_is_wider_than_json() {
    let app = fixture("pipeline.json", Duplicates::Workgen);
    assert_eq!(app.tasks[1].name, "filter", "single quotes");
    assert_eq!(app.tasks[1].phases[0].loops, Loops::Times(100), "leading zeros");
    assert_eq!(app.global.pi_enabled, Some(Placed::new(true, at(35, 18))), "keywords in any case");
    let no_effect = warned(&app, WarningKind::NoEffect);
    assert!(no_effect.contains(&"41:1: what stands after the description is not read".to_string()), "{no_effect:?}");
    let escapes = task(r#""run": 1, "sleep": 1, "lock": "a\nbA\"", "unlock": "a\nb\u0041\"""#);
    assert_eq!(escapes.resources.mutexes, ["a\nbA\""], "escapes are decoded before names are compared");
    let broken = "\"run\": 1, \"lock\": \"two\nlines\", \"unlock\": \"two\nlines\"";
    assert_eq!(task(broken).resources.mutexes, ["two\nlines"], "line ends in strings");
}

#[test]
fn events_are_recognised_by_how_their_names_begin() {
    for (key, value, name) in [
        ("run0", "1", "run"),
        ("runtime_x", "1", "runtime"),
        ("sleepy", "1", "sleep"),
        ("memory", "1", "mem"),
        ("memrun9", r#"{"type": "read", "size": 8, "count": 1}"#, "memrun"),
        ("timerA", r#"{"ref": "t", "period": 1}"#, "timer"),
        ("broadcast", r#""c""#, "broad"),
        ("semx", "1", ""),
    ] {
        let text = format!("{{\"tasks\": {{\"t\": {{\"{key}\": {value}, \"run\": 1}}}}}}");
        match parse(&text, "f", Duplicates::Workgen) {
            Ok(app) => assert_eq!(app.tasks[0].phases[0].steps[0].event.name(), name),
            Err(error) => assert!(name.is_empty() && error.found.contains(key), "{error}"),
        }
    }
    let misread = task("\"runtme\": 5, \"run_b\": 1, \"run17\": 1, \"sleep\": 1");
    let texts = warned(&misread, WarningKind::Reading);
    let expected = "1:18: \"runtme\" is read as \"run\", because it begins so; did you mean \"runtime\"?";
    assert_eq!(texts, [expected]);
}

#[test]
fn phases_change_what_they_name_and_cpus_fall_back_to_the_tasks() {
    let app = fixture("phases.json", Duplicates::Workgen);
    let task = &app.tasks[0];
    let mask = |cpus: &[u16]| cpus.iter().map(|&cpu| CpuId(cpu)).collect::<CpuMask>();
    let phases: Vec<&str> = task.phases.iter().map(|phase| phase.name.as_str()).collect();
    assert_eq!(phases, ["warm", "boosted", "batch", "batch1"]);
    assert_eq!((task.delay_us, task.loops, task.phases[0].loops), (1500, Loops::Times(3), Loops::Times(10)));
    let cpus: Vec<CpuMask> =
        task.phases.iter().map(|p| p.cpus.as_ref().expect("the task has cpus").value.clone()).collect();
    assert_eq!(cpus, [mask(&[4, 5]), mask(&[0]), mask(&[4, 5]), mask(&[4, 5])]);
    let policies: Vec<Option<Policy>> = task.phases.iter().map(|p| p.policy.as_ref().map(|p| p.value)).collect();
    let boosted = Policy::Other { nice: -10, slice_us: Some(3000) };
    assert_eq!(policies, [None, Some(boosted), Some(Policy::Batch { nice: 0, slice_us: None }), None]);
    assert_eq!(task.policy.value, Policy::Other { nice: -5, slice_us: None });
    assert_eq!((task.util_min.clone(), task.util_max.as_ref().map(|u| u.value)), (None, Some(800)));
    assert_eq!(task.phases[1].util_min.as_ref().map(|u| u.value), Some(512));
    assert_eq!(app.taskgroups, ["/upper", "/upper/inner", "/"]);
    let groups: Vec<Option<u32>> = task.phases.iter().map(|p| p.taskgroup.as_ref().map(|g| g.value.0)).collect();
    assert_eq!((task.taskgroup.as_ref().map(|g| g.value.0), groups), (Some(0), vec![None, Some(1), None, Some(2)]));
    assert_eq!(task.phases[2].nodes_membind.as_ref().map(|n| n.value.clone()), Some(vec![1, 0]));
    assert_eq!(
        task.unique_timers,
        [Timer { name: "uniqueX".into(), mode: TimerMode::Absolute }],
        "one name, one timer"
    );
    assert!(app.check_cpus(6).is_ok());
    let error = app.check_cpus(5).expect_err("CPU 5 is beyond 5 CPUs");
    assert_eq!((error.position, error.found.as_str()), (at(7, 13), "\"cpus\" names CPU 5, but the machine has 5 CPUs"));
}

#[test]
fn locks_and_conditions_become_dense_ids() {
    let app = fixture("locks.json", Duplicates::Workgen);
    assert_eq!(app.resources.mutexes, ["door", "table"]);
    assert_eq!(app.resources.conditions, ["bell", "turn"]);
    let (door, bell) = (MutexId(0), ConditionId(0));
    let guest = [
        Event::Lock(door),
        Event::Wait { condition: bell, mutex: door },
        Event::Run { us: 80 },
        Event::Unlock(door),
        Event::Run { us: 900 },
    ];
    assert_eq!(events(&app.tasks[0].phases[0]), guest);
    assert_eq!(app.tasks[0].phases[0].loops, Loops::Forever);
    assert_eq!(app.tasks[1].phases[1].steps[1].event, Event::Broad(bell));
    let sync = Event::Sync { condition: ConditionId(1), mutex: MutexId(1) };
    assert!([2, 3].iter().all(|&i: &usize| app.tasks[i].phases[0].steps[2].event == sync));
    assert!(app.global.cumulative_slack && app.ends());
    assert!(warned(&app, WarningKind::Waiting).is_empty());
}

#[test]
fn policies_are_resolved_in_the_order_of_the_file() {
    let app = fixture("realtime.json", Duplicates::Workgen);
    let policies: Vec<Policy> = app.tasks.iter().map(|task| task.policy.value).collect();
    let expected = [
        Policy::Fifo { priority: 40 },
        Policy::RoundRobin { priority: 10 },
        Policy::Deadline { runtime_us: 2000, deadline_us: 8000, period_us: 16000 },
        Policy::Deadline { runtime_us: 3000, deadline_us: 20000, period_us: 20000 },
        Policy::Other { nice: 0, slice_us: None },
    ];
    assert_eq!(policies, expected);
    let mixed: Vec<Option<Policy>> = app.tasks[4].phases.iter().map(|p| p.policy.as_ref().map(|p| p.value)).collect();
    let fifo = |priority| Some(Policy::Fifo { priority });
    assert_eq!(mixed, [None, fifo(10), fifo(20), Some(Policy::Idle)], "a priority alone keeps the policy");
    assert_eq!(app.resources.timers, [Timer { name: "beat".into(), mode: TimerMode::Relative }]);
    assert_eq!(app.global.calibration.map(|c| c.value), Some(Calibration::NsPerLoop(128)));
}

#[test]
fn a_phase_keeps_or_ignores_a_slice_as_rt_app_does() {
    let app = task(
        r#""dl-runtime": 3000, "loop": 1, "phases": {
            "a": {"priority": 3, "run": 1}, "b": {"dl-runtime": 500, "run": 1},
            "c": {"policy": "SCHED_BATCH", "run": 1}}"#,
    );
    let policies: Vec<Option<Policy>> =
        app.tasks[0].phases.iter().map(|p| p.policy.as_ref().map(|p| p.value)).collect();
    let kept = Policy::Other { nice: 3, slice_us: Some(3000) };
    assert_eq!(policies, [Some(kept), None, Some(Policy::Batch { nice: 0, slice_us: None })]);
    let ignored = "2:65: \"dl-runtime\" has no effect under a phase that changes neither policy nor priority";
    assert_eq!(warned(&app, WarningKind::NoEffect), [ignored]);
    let fifo = task(r#""policy": "SCHED_FIFO", "priority": 50, "phases": {"p": {"dl-runtime": 9, "run": 1}}"#);
    assert_eq!(fifo.tasks[0].phases[0].policy, None, "the priority stays 50");
}

#[test]
fn the_manual_names_the_whole_grammar() {
    let manual = include_str!("../../../../../docs/rt-app.md");
    let names =
        event::EVENTS.iter().chain(&policy::PROPERTIES).chain(&grammar::GLOBAL).chain(&super::super::task::TASK_ONLY);
    let missing: Vec<_> = names.filter(|name| !manual.contains(&format!("`{name}`"))).collect();
    assert!(missing.is_empty(), "docs/rt-app.md lacks {missing:?}");
}

#[test]
fn memory_buffers_are_shared_by_ref_or_by_shape_within_a_task() {
    let app = fixture("memory.json", Duplicates::Workgen);
    let buffers: Vec<u32> = app
        .steps()
        .filter_map(|(_, step)| if let Event::MemRun { buffer, .. } = step.event { Some(buffer.0) } else { None })
        .collect();
    assert_eq!(buffers, [0, 0, 1, 2, 1]);
    let chain = |stride_bytes, random| Some(Chain { stride_bytes, random });
    let shared = Buffer { shared_as: Some("big".into()), bytes: 8 << 20, chain: chain(64, true) };
    let own = Buffer { shared_as: None, bytes: 16384, chain: chain(128, false) };
    assert_eq!(app.resources.buffers[1..], [shared, own]);
    assert_eq!(app.global.mem_buffer_bytes, 1 << 20);
    assert_eq!(app.tasks[0].phases[0].steps[0].event, Event::Mem { bytes: 65536 });
    assert_eq!(app.tasks[0].phases[0].steps[3].event, Event::IoRun { bytes: 512 });
}

#[test]
fn suspended_tasks_wait_under_their_own_name() {
    let app = fixture("frames.json", Duplicates::Workgen);
    assert_eq!(app.resources.conditions, ["painter", "screen", "größe"]);
    let painter = (ConditionId(0), MutexId(0));
    let draw = &app.tasks[1].phases[0];
    assert_eq!(draw.steps[0].event, Event::Suspend { condition: painter.0, mutex: painter.1 });
    assert_eq!(draw.steps[0].position, at(14, 6));
    let resume = Event::Resume { task: Some(TaskId(1)), condition: painter.0, mutex: painter.1 };
    assert_eq!(app.tasks[0].phases[0].steps[0].event, resume);
    let load = &app.tasks[1].phases[1];
    assert_eq!(load.steps[1].event, Event::Fork(TaskId(5)));
    assert!(matches!(load.steps[3].event, Event::Resume { task: Some(TaskId(4)), .. }));
    // "screen" is no task: its two sleepers are the older reading of "suspend".
    let screen = (ConditionId(1), MutexId(1));
    for task in [2, 3] {
        let first = &app.tasks[task].phases[0].steps[0].event;
        assert_eq!(*first, Event::Suspend { condition: screen.0, mutex: screen.1 });
    }
    assert_eq!(app.resources.barriers, [Barrier { name: "meet".into(), users: 4 }]);
    assert_eq!(app.resources.timers[0].mode, TimerMode::Absolute);
    let position = app.tasks[4].phases[0].steps[1].position;
    assert_eq!(position, at(28, 44), "columns count characters, not bytes");
    assert_eq!(load.steps[1].position, at(20, 6));
}

#[test]
fn positions_are_the_users_after_a_bare_suspend() {
    let text = r#"{"tasks": {"a": {"suspend", "run": 5, 'suspend_b' /* none */ }, "b": {"run": 1, "resume": "a"}}}"#;
    let app = app(text);
    for (step, name) in app.steps().map(|(_, step)| step).zip(["\"suspend\"", "\"run\"", "'suspend_b'", "\"run\": 1"]) {
        let column = text.find(name).expect("the name is in the text") as u32 + 1;
        assert_eq!(step.position, at(1, column), "{name}");
    }
    assert!(warned(&app, WarningKind::Reading)[0].starts_with("1:18: \"suspend\" without a value"));
}

#[test]
fn a_null_property_counts_as_absent() {
    let app = app(r#"{"global": null, "resources": null,
            "tasks": {"t": {"loop": null, "phases": null, "cpus": null, "run": 1}}}"#);
    assert_eq!((app.tasks[0].loops, &app.tasks[0].phases[0].cpus), (Loops::Forever, &None));
}

#[test]
fn odd_waits_and_locks_are_warned_of() {
    let waiting = |contents: &str| warned(&task(contents), WarningKind::Waiting);
    let unheld = r#""run": 1, "unlock": "m", "sleep": 1"#;
    assert_eq!(waiting(unheld), ["1:28: \"unlock\" unlocks what the thread does not hold (mutex \"m\")"]);
    let twice = r#""loop": 2, "run": 1, "lock": "m""#;
    assert_eq!(waiting(twice), ["1:39: \"lock\" waits for ever: the thread holds it already (mutex \"m\")"]);
    let no_mutex = r#""run": 1, "signal": "c", "wait": {"ref": "c", "mutex": "m"}"#;
    assert_eq!(waiting(no_mutex), ["1:43: \"wait\" waits with a mutex that the thread does not hold (mutex \"m\")"]);
    assert_eq!(waiting(r#""run": 1, "suspend": """#), ["1:28: \"suspend\" waits for ever: nobody resumes \"t\""]);
    assert_eq!(waiting(r#""run": 1, "sem_wait": "s""#), ["1:28: \"sem_wait\" waits for ever: nobody posts \"s\""]);
    assert_eq!(waiting(r#""run": 1, "barrier": "b", "barrier": "b""#).len(), 1);
}

#[test]
fn other_readings_are_warned_of() {
    let both = task(
        r#""run": 1, "timer": {"ref": "a", "period": 1, "mode": "relative"},
           "timer": {"ref": "a", "period": 1, "mode": "absolute"}"#,
    );
    assert_eq!(both.resources.timers[0].mode, TimerMode::Absolute);
    assert!(warned(&both, WarningKind::Reading)[0].contains("timer \"a\" has another mode at line 1, column 71"));
    let deadline = task(r#""policy": "SCHED_DEADLINE", "runtime": 100, "period": 500, "sleep": 400"#);
    assert_eq!(deadline.tasks[0].policy.value, Policy::Deadline { runtime_us: 100, deadline_us: 500, period_us: 500 });
    assert_eq!(deadline.tasks[0].phases[0].steps[0].event, Event::Runtime { us: 100 }, "it is the event as well");
    assert_eq!(warned(&deadline, WarningKind::Reading).len(), 1);
    let idle = task(r#""policy": "SCHED_IDLE", "priority": 5, "dl-runtime": 9, "run": 1"#);
    assert_eq!((idle.tasks[0].policy.value, warned(&idle, WarningKind::NoEffect).len()), (Policy::Idle, 2));
    let unused = app(r#"{"tasks": {"a": {"instance": 0, "run": 1},
            "b": {"phases": {"p": {"loop": -1, "run": 1}, "q": {"run": 1}}}}}"#);
    let running = warned(&unused, WarningKind::Running);
    assert!(
        running[0].contains("\"a\" never runs")
            && running[1].contains("never ends")
            && running[2].contains("\"q\" never begins"),
        "{running:?}"
    );
}
