use super::*;
use sched::trace::{Averages, Estimate, Ipi};

const PING: TaskId = TaskId(0);
const PONG: TaskId = TaskId(1);

fn started(formats: Formats) -> Ftrace<Vec<u8>> {
    let all = Tracepoint::of_kernel(formats).collect();
    let mut trace = Ftrace::new(Vec::new(), 2, formats, all);
    trace.task(PING, 101, "ping", 120);
    trace.task(PONG, 20_102, "pong-with-a-long-name", 139);
    trace
}

fn body(trace: Ftrace<Vec<u8>>) -> String {
    let text = String::from_utf8(trace.finish().expect("memory does not fail")).expect("text");
    text.strip_prefix(HEADER).expect("the header comes first").to_string()
}

fn switch(prev: Option<TaskId>, prev_state: TaskState, preempt: bool, next: Option<TaskId>) -> Event {
    Event::SchedSwitch { prev, prev_state, preempt, next }
}

#[test]
fn every_event_prints_as_the_kernel_prints_it() {
    let mut trace = started(Formats::V4_15);
    let events = [
        Event::SchedProcessFork { parent: None, child: PING },
        Event::SchedWakeupNew { task: PING, target_cpu: CpuId(1) },
        Event::CpuIdle { state: None },
        switch(None, TaskState::Running, false, Some(PING)),
        Event::SchedWaking { task: PONG, target_cpu: CpuId(0) },
        Event::SchedWakeup { task: PONG, target_cpu: CpuId(0) },
        Event::SchedMigrateTask { task: PONG, orig_cpu: CpuId(1), dest_cpu: CpuId(0) },
        Event::SchedStatWait { task: PONG, delay: Ns(12) },
        Event::SchedStatSleep { task: PONG, delay: Ns(13) },
        Event::SchedStatIowait { task: PONG, delay: Ns(14) },
        Event::SchedStatBlocked { task: PONG, delay: Ns(15) },
        Event::SchedStatRuntime { task: PING, runtime: Ns(4_000_000), vruntime: 77 },
        Event::SchedWakeIdleWithoutIpi { cpu: CpuId(1) },
        switch(Some(PING), TaskState::Running, true, Some(PONG)),
        Event::NrRunning { cpu: CpuId(0), nr_running: 2 },
        Event::CpuFrequency { khz: 2_300_000 },
        Event::SchedProcessExec { task: PONG },
        Event::SchedProcessExit { task: PONG },
        switch(Some(PONG), TaskState::Dead, false, None),
        Event::CpuIdle { state: Some(2) },
    ];
    for (i, event) in events.iter().enumerate() {
        trace.event(Ns(5_000_000_000 + 1_000 * i as u64), CpuId(0), event);
    }
    let expected = "          \
          <idle>-0     [000] ....     5.000000: sched_process_fork: comm=swapper/0 pid=0 child_comm=ping child_pid=101
          <idle>-0     [000] d...     5.000001: sched_wakeup_new: comm=ping pid=101 prio=120 target_cpu=001
          <idle>-0     [000] d...     5.000002: cpu_idle: state=4294967295 cpu_id=0
          <idle>-0     [000] d...     5.000003: sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=ping next_pid=101 next_prio=120
            ping-101   [000] d...     5.000004: sched_waking: comm=pong-with-a-lon pid=20102 prio=139 target_cpu=000
            ping-101   [000] d...     5.000005: sched_wakeup: comm=pong-with-a-lon pid=20102 prio=139 target_cpu=000
            ping-101   [000] d...     5.000006: sched_migrate_task: comm=pong-with-a-lon pid=20102 prio=139 orig_cpu=1 dest_cpu=0
            ping-101   [000] d...     5.000007: sched_stat_wait: comm=pong-with-a-lon pid=20102 delay=12 [ns]
            ping-101   [000] d...     5.000008: sched_stat_sleep: comm=pong-with-a-lon pid=20102 delay=13 [ns]
            ping-101   [000] d...     5.000009: sched_stat_iowait: comm=pong-with-a-lon pid=20102 delay=14 [ns]
            ping-101   [000] d...     5.000010: sched_stat_blocked: comm=pong-with-a-lon pid=20102 delay=15 [ns]
            ping-101   [000] d...     5.000011: sched_stat_runtime: comm=ping pid=101 runtime=4000000 [ns] vruntime=77 [ns]
            ping-101   [000] d...     5.000012: sched_wake_idle_without_ipi: cpu=1
            ping-101   [000] d...     5.000013: sched_switch: prev_comm=ping prev_pid=101 prev_prio=120 prev_state=R+ ==> next_comm=pong-with-a-lon next_pid=20102 next_prio=139
 pong-with-a-lon-20102 [000] ....     5.000015: cpu_frequency: state=2300000 cpu_id=0
 pong-with-a-lon-20102 [000] ....     5.000016: sched_process_exec: filename=pong-with-a-lon pid=20102 old_pid=20102
 pong-with-a-lon-20102 [000] ....     5.000017: sched_process_exit: comm=pong-with-a-lon pid=20102 prio=139
 pong-with-a-lon-20102 [000] d...     5.000018: sched_switch: prev_comm=pong-with-a-lon prev_pid=20102 prev_prio=139 prev_state=X ==> next_comm=swapper/0 next_pid=0 next_prio=120
          <idle>-0     [000] d...     5.000019: cpu_idle: state=2 cpu_id=0
";
    assert_eq!(body(trace), expected);
}

#[test]
fn later_kernels_have_other_columns_and_bare_tracepoints() {
    let mut trace = started(Formats::V6_12);
    let avg = Averages { load: 1, runnable: 2, util: 3, update_time: 4 };
    let (cpu, path) = (CpuId(1), "/a/b".to_string());
    let estimate = Estimate { enqueued: 5, ewma: 6, util: 7 };
    let events = [
        Event::SchedProcessWait { child: None },
        Event::SchedProcessFree { task: PING },
        Event::SchedStatRuntime { task: PING, runtime: Ns(9), vruntime: 77 },
        Event::PeltCfs { cpu, path: path.clone(), avg },
        Event::PeltSe { cpu, path: path.clone(), task: None, avg },
        Event::PeltSe { cpu, path: path.clone(), task: Some(PING), avg },
        Event::PeltRt { cpu, avg },
        Event::PeltDl { cpu, avg },
        Event::PeltIrq { cpu, avg },
        Event::SchedCpuCapacity { cpu, capacity: 900, capacity_orig: 1024 },
        Event::SchedOverutilized { overutilized: true, span: [CpuId(0), CpuId(1)].into_iter().collect() },
        Event::SchedUtilEstCfs { cpu, path: path.clone(), estimate },
        Event::SchedUtilEstSe { cpu, path, task: PONG, estimate },
        Event::SchedUpdateNrRunning { cpu, change: -1, nr_running: 2 },
    ];
    for (i, event) in events.iter().enumerate() {
        trace.event(Ns(5_000_000_000 + 1_000 * i as u64), CpuId(0), event);
    }
    let text = String::from_utf8(trace.finish().expect("memory does not fail")).expect("text");
    let lines: Vec<&str> = text.strip_prefix(HEADER_WITH_MIGRATE_DISABLE).expect("the header").lines().collect();
    let head = "          <idle>-0       [000] .....     5.000000: ";
    assert_eq!(lines[0], format!("{head}sched_process_wait: comm=swapper/0 pid=0 prio=120"));
    let bodies: Vec<&str> = lines[1..].iter().map(|line| &line[head.len()..]).collect();
    assert_eq!(
        bodies,
        [
            "sched_process_free: comm=ping pid=101 prio=120",
            "sched_stat_runtime: comm=ping pid=101 runtime=9 [ns]",
            "pelt_cfs_tp: cpu=1 path=/a/b load=1 runnable=2 util=3 update_time=4",
            "pelt_se_tp: cpu=1 path=/a/b comm=(null) pid=-1 load=1 runnable=2 util=3 update_time=4",
            "pelt_se_tp: cpu=1 path=/a/b comm=ping pid=101 load=1 runnable=2 util=3 update_time=4",
            "pelt_rt_tp: cpu=1 load=1 runnable=2 util=3 update_time=4",
            "pelt_dl_tp: cpu=1 load=1 runnable=2 util=3 update_time=4",
            "pelt_irq_tp: cpu=1 load=1 runnable=2 util=3 update_time=4",
            "sched_cpu_capacity_tp: cpu=1 capacity=900 capacity_orig=1024",
            "sched_overutilized_tp: overutilized=1 span=0x3",
            "sched_util_est_cfs_tp: cpu=1 path=/a/b util_est=5 util=7",
            "sched_util_est_se_tp: cpu=1 path=/a/b comm=pong-with-a-lon pid=20102 util_est=5 util=7",
            "sched_update_nr_running_tp: cpu=1 change=-1 nr_running=2",
        ]
    );
}

#[test]
fn only_what_is_selected_is_shown_and_the_context_stays_true() {
    let wanted = [Tracepoint::SchedWakeup].into_iter().collect();
    let mut trace = Ftrace::new(Vec::new(), 2, Formats::V4_5, wanted);
    trace.task(PING, 101, "ping", 120);
    trace.event(Ns(1_000), CpuId(0), &switch(None, TaskState::Running, false, Some(PING)));
    trace.event(Ns(2_000), CpuId(0), &Event::SchedWakeup { task: PING, target_cpu: CpuId(1) });
    let expected =
        "            ping-101   [000] d...     0.000002: sched_wakeup: comm=ping pid=101 prio=120 target_cpu=001\n";
    assert_eq!(body(trace), expected);
}

#[test]
fn the_state_of_the_cpu_stands_before_the_time() {
    let mut trace = started(Formats::V4_15);
    let wakeup = Event::SchedWakeup { task: PING, target_cpu: CpuId(0) };
    let states = [
        (true, false, Interrupt::Hardirq, "dNh."),
        (false, false, Interrupt::Softirq, "d.s."),
        (true, false, Interrupt::None, "dN.."),
        (false, true, Interrupt::None, "dl.."),
        (true, true, Interrupt::Hardirq, "dBh."),
    ];
    for (need_resched, need_resched_lazy, interrupt, _) in states {
        trace.context(Context { need_resched, need_resched_lazy, interrupt });
        trace.event(Ns(1_000), CpuId(0), &wakeup);
    }
    // Nothing has been reported about this task.
    trace.event(Ns(1_000), CpuId(0), &wakeup);
    let text = body(trace);
    let seen: Vec<&str> = text.lines().filter_map(|line| line.split_whitespace().nth(2)).collect();
    let expected: Vec<&str> = states.iter().map(|state| state.3).chain(["d..."]).collect();
    assert_eq!(seen, expected);
}

#[test]
fn interrupts_and_softirqs_print_as_the_kernel_prints_them() {
    let mut trace = started(Formats::V4_15);
    let hard = |event| (Interrupt::Hardirq, event);
    let soft = |event| (Interrupt::Softirq, event);
    let events = [
        hard(Event::LocalTimerEntry { vector: 238 }),
        hard(Event::SoftirqRaise { vec: 7 }),
        hard(Event::LocalTimerExit { vector: 238 }),
        soft(Event::SoftirqEntry { vec: 7 }),
        soft(Event::SoftirqExit { vec: 7 }),
        hard(Event::IrqHandlerEntry { irq: 3, name: "nvme0q1".to_string() }),
        hard(Event::IrqHandlerExit { irq: 3 }),
        hard(Event::IpiEntry(Ipi::Reschedule)),
        hard(Event::IpiExit(Ipi::Reschedule)),
    ];
    for (i, (interrupt, event)) in events.into_iter().enumerate() {
        trace.context(Context { interrupt, ..Context::default() });
        trace.event(Ns(5_000_000_000 + 1_000 * i as u64), CpuId(1), &event);
    }
    let text = body(trace);
    let lines: Vec<&str> =
        text.lines().map(|line| line.strip_prefix("          <idle>-0     [001] ").unwrap()).collect();
    assert_eq!(
        lines,
        [
            "d.h.     5.000000: local_timer_entry: vector=238",
            "d.h.     5.000001: softirq_raise: vec=7 [action=SCHED]",
            "d.h.     5.000002: local_timer_exit: vector=238",
            "..s.     5.000003: softirq_entry: vec=7 [action=SCHED]",
            "..s.     5.000004: softirq_exit: vec=7 [action=SCHED]",
            "d.h.     5.000005: irq_handler_entry: irq=3 name=nvme0q1",
            "d.h.     5.000006: irq_handler_exit: irq=3 ret=handled",
            "d.h.     5.000007: reschedule_entry: vector=253",
            "d.h.     5.000008: reschedule_exit: vector=253",
        ]
    );
}

#[test]
fn an_exit_shows_another_letter_before_v4_14() {
    let states = [
        (TaskState::Running, "R", "R"),
        (TaskState::Interruptible, "S", "S"),
        (TaskState::Uninterruptible, "D", "D"),
        (TaskState::Waking, "W", "R"),
        (TaskState::Dead, "x", "X"),
    ];
    for (state, raw, reported) in states {
        assert_eq!(prev_state(PrevState::Raw, state, false), raw);
        assert_eq!(prev_state(PrevState::Reported, state, false), reported);
    }
}

#[test]
fn lines_of_all_cpus_come_in_order_of_time_and_times_round_to_the_nearest_microsecond() {
    let mut trace = started(Formats::V4_5);
    trace.event(Ns(3_600), CpuId(0), &Event::CpuIdle { state: Some(0) });
    trace.event(Ns(1_400), CpuId(1), &Event::CpuIdle { state: Some(1) });
    trace.event(Ns(3_600), CpuId(1), &Event::CpuIdle { state: Some(2) });
    trace.event(Ns(12_000_000), CpuId(0), &Event::CpuIdle { state: None });
    assert_eq!(trace.waiting.len(), 1, "what no straggler can precede has been written");
    let text = body(trace);
    let seen: Vec<&str> = text.lines().map(|line| &line[23..]).collect();
    assert_eq!(
        seen,
        [
            "[001] d...     0.000001: cpu_idle: state=1 cpu_id=1",
            "[000] d...     0.000004: cpu_idle: state=0 cpu_id=0",
            "[001] d...     0.000004: cpu_idle: state=2 cpu_id=1",
            "[000] d...     0.012000: cpu_idle: state=4294967295 cpu_id=0",
        ]
    );
}

#[test]
#[should_panic(expected = "TaskId(7), which was never announced")]
fn an_unknown_task_is_our_own_bug() {
    started(Formats::V4_5).event(Ns(0), CpuId(0), &Event::SchedProcessExit { task: TaskId(7) });
}

#[test]
fn counts_of_runnable_tasks_are_those_at_their_times() {
    let mut trace = started(Formats::V6_1);
    for (time, cpu, event) in crate::runnable::tests::stream() {
        trace.event(time, cpu, &event);
        let Event::NrRunning { cpu: of, nr_running } = event else { panic!("a count") };
        // The kernel's own event, of the same change.
        trace.event(time, cpu, &Event::SchedUpdateNrRunning { cpu: of, change: 0, nr_running });
    }
    let text = String::from_utf8(trace.finish().expect("memory does not fail")).expect("text");
    let counts: Vec<&str> =
        text.lines().filter_map(|line| line.split_once("nr_running=")).map(|(_, count)| count).collect();
    assert_eq!(counts, ["8", "7", "6", "5", "6", "5", "4", "3", "2", "1"]);
}
