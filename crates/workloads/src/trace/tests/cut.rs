//! A file that was cut: each packet holds one CPU's events, so it has less of some CPUs than of others.

use super::*;
use observe::Tracepoint;
use sched::sched::{TaskId, TaskState};

const BUSY: TaskId = TaskId(0);
const HOG: TaskId = TaskId(1);

/// On CPU 0 `busy` runs for 40 us of each of 100 ms, and idles. On CPU 1 `hog` runs for all of them. Events tell so in
/// the first 4 ms: 400 of them, in two whole packets and the file's last.
fn file() -> Vec<u8> {
    let selection = [Tracepoint::SchedSwitch, Tracepoint::SchedWaking].into_iter().collect();
    let mut trace = Perfetto::new(Vec::new(), 2, Ns::ZERO, FORMATS, selection).expect("a small machine");
    let switch = |prev, next| Event::SchedSwitch { prev, prev_state: TaskState::Interruptible, preempt: false, next };
    trace.task(BUSY, 100, "busy", 120);
    trace.task(HOG, 101, "hog", 120);
    trace.event(Ns(0), CpuId(1), &switch(None, Some(HOG)));
    for at in 1..=400 {
        trace.event(Ns(10_000 * at), CpuId(1), &Event::SchedWaking { task: BUSY, target_cpu: CpuId(0) });
    }
    for at in 0..100 {
        trace.event(Ns(1_000_000 * at), CpuId(0), &switch(None, Some(BUSY)));
        trace.event(Ns(1_000_000 * at + 40_000), CpuId(0), &switch(Some(BUSY), None));
    }
    trace.finish().expect("memory does not fail")
}

#[test]
fn a_task_runs_no_longer_than_its_cpu_has_events() {
    let bytes = file();
    let whole = read(&bytes).expect("our own trace");
    assert_eq!(whole.end, Ns(99_040_000));
    // A hog that has a CPU to itself passes no events.
    assert_eq!(task(&whole, "hog").run_time(), whole.end);
    assert_eq!(whole.notice.line().filter(|line| line.contains("packet")), None);
    let cut = read(&bytes[..bytes.len() - 20]).expect("the rest of it");
    let ran = task(&cut, "hog").run_time();
    assert!((Ns::from_ms(2)..Ns::from_ms(4)).contains(&ran), "{ran}");
    assert_eq!((cut.end, task(&cut, "busy").run_time()), (whole.end, Ns(4_000_000)));
    let said = format!(
        "1 task that ran stops at the last event of its CPU, up to {} us before the end",
        (whole.end - ran).0 / 1_000
    );
    assert!(cut.notice.line().is_some_and(|line| line.contains(&said)), "{:?}", cut.notice.line());
}
