use super::*;

const PING: TaskId = TaskId(0);
const PONG: TaskId = TaskId(1);

fn trace_of(nr_cpus: usize, selection: Selection) -> Perfetto<Vec<u8>> {
    Perfetto::new(Vec::new(), nr_cpus, Ns(100), Formats::V6_1, selection).expect("few CPUs")
}

fn trace(nr_cpus: usize) -> Perfetto<Vec<u8>> {
    trace_of(nr_cpus, Selection::with_message(Formats::V6_1))
}

fn switch(prev: Option<TaskId>, prev_state: TaskState, preempt: bool, next: Option<TaskId>) -> Event {
    Event::SchedSwitch { prev, prev_state, preempt, next }
}

/// One field of a message on the wire.
enum Field<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

fn number(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (first, rest) = bytes.split_first().expect("a whole number");
        *bytes = rest;
        value |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            break;
        }
    }
    value
}

fn fields(mut bytes: &[u8]) -> Vec<(u64, Field<'_>)> {
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let key = number(&mut bytes);
        let field = match key & 7 {
            0 => Field::Number(number(&mut bytes)),
            1 => {
                let (field, rest) = bytes.split_first_chunk().expect("eight bytes");
                bytes = rest;
                Field::Number(u64::from_le_bytes(*field))
            }
            2 => {
                let length = number(&mut bytes) as usize;
                let (field, rest) = bytes.split_at(length);
                bytes = rest;
                Field::Bytes(field)
            }
            wire_type => panic!("wire type {wire_type} is not used here"),
        };
        fields.push((key >> 3, field));
    }
    fields
}

/// The wire format as text, by field numbers alone, so it does not depend on how messages are declared. Printable bytes
/// are shown as text, others as a message.
fn text(bytes: &[u8]) -> String {
    let show = |(tag, field): (u64, Field<'_>)| match field {
        Field::Number(value) => format!("{tag}:{}", value as i64),
        Field::Bytes(bytes) if bytes.iter().all(|byte| (b' '..=b'~').contains(byte)) => {
            format!("{tag}:{}", String::from_utf8_lossy(bytes))
        }
        Field::Bytes(bytes) => format!("{tag}({})", text(bytes)),
    };
    fields(bytes).into_iter().map(show).collect::<Vec<_>>().join(" ")
}

fn packets(trace: Perfetto<Vec<u8>>) -> Vec<TracePacket> {
    let bytes = trace.finish().expect("memory does not fail");
    fields(&bytes)
        .into_iter()
        .map(|field| match field {
            (1, Field::Bytes(packet)) => TracePacket::decode(packet).expect("a packet"),
            (tag, _) => panic!("field {tag} in a trace"),
        })
        .collect()
}

fn bundles(packets: &[TracePacket]) -> Vec<FtraceEventBundle> {
    let bundle = |packet: &TracePacket| {
        packet.ftrace_events.as_deref().map(|bytes| FtraceEventBundle::decode(bytes).expect("a bundle"))
    };
    packets.iter().filter_map(bundle).collect()
}

#[test]
fn the_wire_carries_perfettos_tags() {
    let mut trace = trace(2);
    trace.task(PING, 101, "ping", 120);
    trace.event(Ns(200), CpuId(1), &switch(None, TaskState::Running, false, Some(PING)));
    trace.task(PONG, 102, "pong", 139);
    let events = [
        Event::SchedProcessFork { parent: Some(PING), child: PONG },
        Event::SchedWakeupNew { task: PONG, target_cpu: CpuId(0) },
        Event::NrRunning { cpu: CpuId(0), nr_running: 2 },
        Event::NrRunning { cpu: CpuId(0), nr_running: 2 },
        Event::SchedWaking { task: PONG, target_cpu: CpuId(0) },
        Event::SchedWakeup { task: PONG, target_cpu: CpuId(0) },
        Event::SchedMigrateTask { task: PONG, orig_cpu: CpuId(0), dest_cpu: CpuId(1) },
        Event::SchedStatRuntime { task: PING, runtime: Ns(5), vruntime: 6 },
        switch(Some(PING), TaskState::Running, true, Some(PONG)),
        Event::CpuFrequency { khz: 2_300_000 },
        Event::SchedProcessExec { task: PONG },
        Event::SchedProcessExit { task: PONG },
        switch(Some(PONG), TaskState::Dead, false, None),
        Event::CpuIdle { state: Some(2) },
        Event::CpuIdle { state: None },
    ];
    for (i, event) in events.iter().enumerate() {
        trace.event(Ns(300 + i as u64), CpuId(1), event);
    }
    let bytes = trace.finish().expect("memory does not fail");
    let lines: Vec<String> = fields(&bytes)
        .into_iter()
        .map(|(tag, field)| match field {
            Field::Bytes(packet) => format!("{tag} {}", text(packet)),
            Field::Number(_) => panic!("a number in a trace"),
        })
        .collect();
    let opening = "2(1:100 2:0 4(1:swapper/N 2:0 3:120 4:0 5:swapper/N 6:0 7:120))";
    let expected = [
        "1 10:2 13:1 60(1:1 2:Runnable tasks 11:3)",
        "1 2(1(1:101 2:0 3:ping 9:1)) 8:200 10:1",
        "1 10:2 60(1:8589934693 4(1:101 2:101))",
        "1 8:301 10:2 11(9:3 11:8589934693 23:wakes 47:1)",
        "1 8:304 10:2 11(9:3 11:8589934693 23:wakes 47:2)",
        "1 10:2 60(1:8589934694 4(1:102 2:102))",
        "1 8:308 10:2 11(9:3 11:8589934694 23:woken 48:2)",
        // Counts are written when their time has come.
        "1 10:2 60(1:2 2:CPU 0 runnable tasks 5:1 8(6:tasks 7:runnable tasks) 12:0)",
        "1 8:302 10:2 11(9:4 11:2 30:2)",
        &format!("1 1(1:0 {}) 10:1", opening.replace('N', "0")),
        // No task was ever counted there.
        "1 10:2 60(1:3 2:CPU 1 runnable tasks 5:1 8(6:tasks 7:runnable tasks) 12:1)",
        "1 8:100 10:2 11(9:4 11:3 30:0)",
        &[
            "1 1(1:1",
            &opening.replace('N', "1"),
            "2(1:200 2:0 4(1:swapper/1 2:0 3:120 4:0 5:ping 6:101 7:120))",
            "2(1:300 2:101 235(1:102 2:pong 3:0))",
            "2(1:300 2:101 239(1:ping 2:101 3:pong 4:102))",
            "2(1:301 2:101 114(1:pong 2:102 3:139 4:1 5:0))",
            "2(1:304 2:101 20(1:pong 2:102 3:139 4:1 5:0))",
            "2(1:305 2:101 17(1:pong 2:102 3:139 4:1 5:0))",
            "2(1:306 2:101 491(1:pong 2:102 3:139 4:0 5:1))",
            "2(1:308 2:101 4(1:ping 2:101 3:120 4:2048 5:pong 6:102 7:139))",
            "2(1:309 2:102 11(1:2300000 2:1))",
            "2(1:310 2:102 237(1:pong 2:102 3:102))",
            "2(1:311 2:102 238(1:pong 2:102 4:139))",
            "2(1:312 2:102 4(1:pong 2:102 3:139 4:16 5:swapper/1 6:0 7:120))",
            "2(1:313 2:0 13(1:2 2:1))",
            "2(1:314 2:0 13(1:4294967295 2:1)))",
            "10:1",
        ]
        .join(" "),
    ];
    assert_eq!(lines, expected);
}

#[test]
fn counters_of_runnable_tasks_and_the_kernels_event_show_the_count_at_each_time() {
    let mut trace = trace_of(2, [Tracepoint::SchedUpdateNrRunning].into_iter().collect());
    for (time, cpu, event) in crate::runnable::tests::stream() {
        let Event::NrRunning { cpu: of, nr_running } = event else { panic!("a count") };
        trace.event(time, cpu, &Event::SchedUpdateNrRunning { cpu: of, change: 0, nr_running });
        trace.event(time, cpu, &event);
    }
    let packets = packets(trace);
    let counter = |packet: &TracePacket| {
        let event = packet.track_event.as_ref().filter(|event| event.track_uuid == Some(RUNNABLE_TRACKS + 1))?;
        Some((packet.timestamp?, event.counter_value?))
    };
    let times = [0, 10, 20, 30, 35, 40, 50, 60, 70, 80];
    let expected: Vec<(u64, i64)> = times.into_iter().zip([8, 7, 6, 5, 6, 5, 4, 3, 2, 1]).collect();
    assert_eq!(packets.iter().filter_map(counter).collect::<Vec<_>>(), expected);
    let bundles = bundles(&packets);
    let mut told: Vec<(u64, i64)> = bundles
        .iter()
        .flat_map(|bundle| &bundle.event)
        .filter_map(|event| match event.event.as_ref()? {
            FtraceFields::Generic(generic) => match generic.field.last()?.value.as_ref()? {
                GenericValue::Uint(count) => Some((event.timestamp?, *count as i64)),
                _ => None,
            },
            _ => None,
        })
        .collect();
    told.sort_unstable();
    assert_eq!(told, expected);
}

#[test]
fn a_cpus_events_stand_in_the_order_of_time() {
    let mut trace = trace(1);
    trace.task(PING, 101, "ping", 120);
    trace.event(Ns(280), CpuId(0), &Event::SchedProcessFork { parent: None, child: PING });
    trace.event(Ns(100), CpuId(0), &Event::CpuIdle { state: Some(1) });
    let bundle = bundles(&packets(trace)).remove(0);
    let times: Vec<Option<u64>> = bundle.event.iter().map(|event| event.timestamp).collect();
    assert_eq!(times, [100, 100, 280, 280].map(Some));
}

#[test]
fn interrupts_have_perfettos_messages_and_the_reschedule_one_is_generic() {
    let all = Selection::events(Formats::V6_1);
    assert!(!Selection::with_message(Formats::V6_1).contains(Tracepoint::RescheduleEntry));
    let mut trace = trace_of(1, all);
    let events = [
        Event::LocalTimerEntry { vector: 236 },
        Event::SoftirqRaise { vec: 7 },
        Event::LocalTimerExit { vector: 236 },
        Event::SoftirqEntry { vec: 7 },
        Event::SoftirqExit { vec: 7 },
        Event::IrqHandlerEntry { irq: 3, name: "nvme0q1".to_string() },
        Event::IrqHandlerExit { irq: 3 },
        Event::IpiEntry(sched::trace::Ipi::Reschedule),
    ];
    for (i, event) in events.iter().enumerate() {
        trace.event(Ns(300 + i as u64), CpuId(0), event);
    }
    let bytes = trace.finish().expect("memory does not fail");
    let wire = text(&bytes);
    let expected = "2(1:300 2:0 559(1:236)) 2(1:301 2:0 26(1:7)) 2(1:302 2:0 560(1:236)) 2(1:303 2:0 24(1:7)) \
                    2(1:304 2:0 25(1:7)) 2(1:305 2:0 36(1:3 2:nvme0q1)) 2(1:306 2:0 37(1:3 2:1)) \
                    2(1:307 2:0 327(1:reschedule_entry 2(1:vector 5:253)))";
    assert!(wire.contains(expected), "{wire}");
}

#[test]
fn a_wakeup_from_idle_begins_on_the_cpus_track_and_one_that_comes_to_nothing_ends_nowhere() {
    let mut trace = trace(2);
    trace.task(PING, 101, "ping", 120);
    trace.event(Ns(200), CpuId(1), &Event::SchedWaking { task: PING, target_cpu: CpuId(0) });
    trace.event(Ns(300), CpuId(0), &switch(None, TaskState::Running, false, Some(PING)));
    // It is woken while it still runs, and sleeps again later: there must be no arrow to the next time it runs.
    trace.event(Ns(400), CpuId(1), &Event::SchedWaking { task: PING, target_cpu: CpuId(0) });
    trace.event(Ns(500), CpuId(0), &switch(Some(PING), TaskState::Interruptible, false, None));
    trace.event(Ns(600), CpuId(0), &switch(None, TaskState::Running, false, Some(PING)));
    let packets = packets(trace);
    let flows: Vec<_> = packets
        .iter()
        .filter_map(|packet| Some((packet.timestamp?, packet.track_event.as_ref()?)))
        .filter(|(_, event)| event.r#type == Some(TYPE_INSTANT))
        .map(|(time, event)| (time, event.track_uuid, event.flow_ids.clone(), event.terminating_flow_ids.clone()))
        .collect();
    let (idle, ping) = (Some(WAKEUP_TRACKS + 2), Some(TASK_TRACKS + 101));
    assert_eq!(flows, [(200, idle, vec![1], vec![]), (300, ping, vec![], vec![1]), (400, idle, vec![2], vec![])]);
    let names: Vec<&str> = packets
        .iter()
        .filter_map(|packet| packet.track_descriptor.as_ref()?.name.as_deref())
        .filter(|name| name.to_lowercase().contains("wakeups"))
        .collect();
    assert_eq!(names, ["Wakeups from idle", "CPU 1 wakeups from idle"]);
}

#[test]
fn bundles_are_bounded_and_hold_one_cpus_events_in_order() {
    let mut trace = trace(2);
    trace.task(PING, 101, "ping", 120);
    for i in 0..2_000_u64 {
        let cpu = CpuId((i % 2) as u16);
        // CPU 1 lags behind CPU 0.
        let time = Ns(10_000 + 10 * i - 900 * (i % 2));
        trace.event(time, cpu, &Event::SchedWaking { task: PING, target_cpu: cpu });
    }
    let packets = packets(trace);
    let largest = packets.iter().filter_map(|packet| packet.ftrace_events.as_ref()).map(Vec::len).max();
    assert!(largest.is_some_and(|bytes| bytes < BUNDLE_BYTES + 256), "{largest:?}");
    let bundles = bundles(&packets);
    assert!(bundles.len() > 4);
    for cpu in 0..2 {
        let times: Vec<u64> = bundles
            .iter()
            .filter(|bundle| bundle.cpu == Some(cpu))
            .flat_map(|bundle| bundle.event.iter().filter_map(|event| event.timestamp))
            .collect();
        assert_eq!(times.len(), 1_001);
        assert!(times.is_sorted());
    }
}

#[test]
fn reused_ids_are_told_apart_by_their_pids() {
    let mut trace = trace(1);
    trace.task(PING, 101, "first", 120);
    trace.event(Ns(200), CpuId(0), &switch(None, TaskState::Running, false, Some(PING)));
    trace.event(Ns(300), CpuId(0), &switch(Some(PING), TaskState::Dead, false, None));
    trace.task_gone(PING);
    trace.task(PING, 102, "second", 120);
    trace.task(PONG, 103, "never mentioned", 120);
    trace.task_gone(PONG);
    trace.event(Ns(400), CpuId(0), &switch(None, TaskState::Running, false, Some(PING)));
    let packets = packets(trace);
    let named: Vec<Option<i32>> = packets
        .iter()
        .filter_map(|packet| packet.process_tree.as_ref())
        .flat_map(|tree| tree.processes.iter().map(|process| process.pid))
        .collect();
    assert_eq!(named, [Some(101), Some(102)]);
    let nexts: Vec<Option<i32>> = bundles(&packets)
        .iter()
        .flat_map(|bundle| &bundle.event)
        .filter_map(|event| match &event.event {
            Some(FtraceFields::SchedSwitch(switch)) => Some(switch.next_pid),
            _ => None,
        })
        .collect();
    assert_eq!(nexts, [Some(0), Some(101), Some(0), Some(102)]);
}

#[test]
fn more_cpus_than_perfetto_shows_are_refused() {
    let begun = |nr_cpus| Perfetto::new(Vec::new(), nr_cpus, Ns::ZERO, Formats::V6_1, Selection::NONE).map(|_| ());
    assert!(begun(PERFETTO_MAX_CPUS).is_ok());
    let refused = begun(PERFETTO_MAX_CPUS + 1);
    let message = refused.expect_err("too many").to_string();
    assert_eq!(message, "Perfetto shows at most 1024 CPUs, the machine has 1025");
}

#[test]
fn events_without_a_message_of_their_own_are_generic_ones_where_asked_for() {
    let wanted = [Tracepoint::SchedStatRuntime, Tracepoint::PeltCfs, Tracepoint::SchedProcessFree];
    let mut trace = trace_of(1, wanted.into_iter().collect());
    trace.task(PING, 101, "ping", 120);
    let avg = sched::trace::Averages { load: 1, runnable: 2, util: 3, update_time: 4 };
    let events = [
        switch(None, TaskState::Running, false, Some(PING)),
        Event::SchedStatRuntime { task: PING, runtime: Ns(5), vruntime: 6 },
        Event::PeltCfs { cpu: CpuId(0), path: "/".to_string(), avg },
        Event::SchedUpdateNrRunning { cpu: CpuId(0), change: -1, nr_running: 2 },
        Event::SchedProcessFree { task: PING },
    ];
    for (i, event) in events.iter().enumerate() {
        trace.event(Ns(300 + i as u64), CpuId(0), event);
    }
    let bundle = bundles(&packets(trace)).remove(0);
    let shown: Vec<String> = bundle.event.iter().map(|event| text(&event.encode_to_vec())).collect();
    let expected = [
        "1:301 2:101 327(1:sched_stat_runtime 2(1:comm 3:ping) 2(1:pid 5:101) 2(1:runtime 5:5) 2(1:vruntime 5:6))",
        "1:302 2:101 327(1:pelt_cfs_tp 2(1:cpu 5:0) 2(1:path 3:/) 2(1:load 5:1) 2(1:runnable 5:2) 2(1:util 5:3) \
         2(1:update_time 5:4))",
        "1:304 2:101 240(1:ping 2:101 3:120)",
    ];
    assert_eq!(shown, expected);
}

#[test]
fn what_cpus_draw_is_a_counter_where_somebody_knows() {
    let of = |_, state: Option<u8>, khz: u32| state.map_or(u64::from(khz), |state| 5 - u64::from(state));
    let mut trace = trace(2).with_power(Box::new(of));
    let idle = |state| Event::CpuIdle { state };
    // The frequency is not known yet.
    trace.event(Ns(1), CpuId(1), &idle(Some(0)));
    trace.event(Ns(2), CpuId(1), &Event::CpuFrequency { khz: 900 });
    trace.event(Ns(3), CpuId(1), &idle(None));
    trace.event(Ns(4), CpuId(1), &Event::CpuFrequency { khz: 900 });
    trace.event(Ns(5), CpuId(1), &idle(Some(2)));
    let packets = packets(trace);
    let track = packets.iter().filter_map(|packet| packet.track_descriptor.as_ref());
    let track = track.filter(|track| track.name.as_deref() == Some("CPU 1 power")).collect::<Vec<_>>();
    assert_eq!(track.len(), 1);
    let shown = |packet: &TracePacket| {
        let event = packet.track_event.as_ref().filter(|event| event.track_uuid == track[0].uuid)?;
        Some((packet.timestamp?, event.counter_value?))
    };
    assert_eq!(packets.iter().filter_map(shown).collect::<Vec<_>>(), [(2, 5), (3, 900), (5, 3)]);
}

/// What is written can be read again: the reader knows all tags.
#[test]
fn an_exec_is_read_again() {
    let exec = SchedProcessExec { filename: Some("sh".to_string()), pid: Some(7), old_pid: Some(7) };
    let event = FtraceEvent { timestamp: Some(1), pid: Some(7), event: Some(FtraceFields::SchedProcessExec(exec)) };
    assert_eq!(FtraceEvent::decode(&event.encode_to_vec()[..]), Ok(event));
}
