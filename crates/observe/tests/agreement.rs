//! One random stream, several listeners: their findings must agree.

use observe::Formats;
use observe::{Ftrace, Gantt, Selection, Statistics, Tee, Window};
use sched::sched::{TaskId, TaskState};
use sched::trace::{Event, Sink};
use std::collections::BTreeMap;
use units::{CpuId, Ns, Prng};

const NR_CPUS: usize = 4;
const NR_TASKS: u64 = 9;
const US: u64 = 1_000;

/// Tasks run wherever a CPU is free, for random times of whole microseconds. Each task has a name of its own. Returns
/// the time of the last event.
fn play(seed: u64, sink: &mut dyn Sink) -> Ns {
    let mut random = Prng::stream(seed, "agreement", 0);
    for task in 0..NR_TASKS as u32 {
        sink.task(TaskId(task), 100 + task, &format!("task-{task}"), 120);
    }
    let mut clock = [0_u64; NR_CPUS];
    let mut running: [Option<TaskId>; NR_CPUS] = [None; NR_CPUS];
    for _ in 0..2_000 {
        let cpu = random.below(NR_CPUS as u64) as usize;
        // CPUs pass their events out of step, but by less than a millisecond.
        clock[cpu] = clock[cpu].max(clock.iter().max().copied().unwrap_or(0).saturating_sub(500 * US));
        clock[cpu] += random.below(40) * US;
        let (time, at) = (Ns(clock[cpu]), CpuId::new(cpu));
        let wanted = TaskId(random.below(NR_TASKS) as u32);
        let next = Some(wanted).filter(|_| !running.contains(&Some(wanted)));
        if next.is_none() && running[cpu].is_none() {
            continue;
        }
        if let Some(task) = next {
            sink.event(time, at, &Event::SchedWaking { task, target_cpu: at });
            sink.event(time, at, &Event::SchedWakeup { task, target_cpu: at });
        }
        let (prev, prev_state) = (running[cpu], TaskState::Interruptible);
        sink.event(time, at, &Event::SchedSwitch { prev, prev_state, preempt: false, next });
        running[cpu] = next;
    }
    Ns(clock.iter().max().copied().unwrap_or(0))
}

fn text_trace() -> Ftrace<Vec<u8>> {
    Ftrace::new(Vec::new(), NR_CPUS, Formats::V4_5, Selection::events(Formats::V4_5))
}

/// Run time of each pid within `from..to`, read back from the text.
fn run_times(text: &str, from: Ns, to: Ns) -> BTreeMap<u32, Ns> {
    let mut since = [(0_u32, from); NR_CPUS];
    let mut times: BTreeMap<u32, Ns> = BTreeMap::new();
    let mut add = |(pid, since): (u32, Ns), until: Ns| {
        if pid != 0 {
            *times.entry(pid).or_insert(Ns::ZERO) += until - since;
        }
    };
    for line in text.lines().filter(|line| line.contains(" sched_switch: ")) {
        let field = |name: &str| line.split_whitespace().find_map(|word| word.strip_prefix(name)).expect("a field");
        let cpu: usize = field("[").trim_end_matches(']').parse().expect("a CPU");
        let stamp = line.split_whitespace().find(|word| word.contains('.') && word.ends_with(':')).expect("a time");
        let us: u64 = stamp.trim_end_matches(':').replace('.', "").parse().expect("digits");
        assert_eq!(field("prev_pid=").parse(), Ok(since[cpu].0), "{line}");
        add(since[cpu], Ns(us * US));
        since[cpu] = (field("next_pid=").parse().expect("a pid"), Ns(us * US));
    }
    since.into_iter().for_each(|open| add(open, to));
    times
}

#[test]
fn text_statistics_and_chart_tell_the_same_run_times() {
    for seed in 0..20 {
        let (mut ftrace, mut statistics) = (text_trace(), Statistics::new(NR_CPUS, Ns::ZERO));
        let end = play(seed, &mut Tee(vec![&mut ftrace, &mut statistics]));
        // One column for each microsecond, so that every cell belongs to one task.
        let mut gantt = Gantt::new(NR_CPUS, Ns::ZERO, end, (end.0 / US) as usize);
        play(seed, &mut gantt);

        let text = String::from_utf8(ftrace.finish().expect("memory does not fail")).expect("text");
        let times = run_times(&text, Ns::ZERO, end);
        let report = statistics.report(end);
        let picture = gantt.finish();
        assert_eq!(times.len(), NR_TASKS as usize, "seed {seed}: all tasks run");
        for (pid, time) in times {
            let name = format!("task-{}", pid - 100);
            assert_eq!(report.names[&name].run, time, "seed {seed}, {name} in the statistics");
            assert_eq!(Ns(picture.cells_of(pid) as u64 * US), time, "seed {seed}, {name} in the chart");
        }
    }
}

#[test]
fn a_window_cuts_without_changing_what_is_inside() {
    for seed in 0..20 {
        let (from, to) = (Ns(3_000 * US), Ns(7_000 * US));
        let mut whole = Gantt::new(NR_CPUS, from, to, 400);
        assert!(play(seed, &mut whole) > Ns(9_000 * US), "seed {seed} is long enough");
        let cut = Gantt::new(NR_CPUS, from, to, 400);
        let mut window = Window::new(cut, NR_CPUS, from, to);
        play(seed, &mut window);
        assert_eq!(window.finish().finish().picture(), whole.finish().picture(), "seed {seed}");

        let mut window = Window::new(text_trace(), NR_CPUS, from, to);
        play(seed, &mut window);
        let text = String::from_utf8(window.finish().finish().expect("memory does not fail")).expect("text");
        let mut statistics = Window::new(Statistics::new(NR_CPUS, from), NR_CPUS, from, to);
        play(seed, &mut statistics);
        let busy: u64 = statistics.finish().report(to).busy.iter().map(|busy| busy.0).sum();
        assert_eq!(run_times(&text, from, to).values().map(|time| time.0).sum::<u64>(), busy, "seed {seed}");
    }
}
