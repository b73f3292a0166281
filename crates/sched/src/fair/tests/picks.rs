//! Which task real kernels picked, switch after switch, compared with our picks under the same ticks.

use super::*;

const RUNS_ON: CpuId = CPU1;
/// HZ=250.
const TICK: u64 = 4 * MS;

/// The time in ns of each switch, and the number of the hog that it switched to.
fn recorded(text: &str) -> Vec<(u64, usize)> {
    let switches = text.lines().filter(|line| !line.starts_with('#')).flat_map(str::split_whitespace);
    let number = |digits: &str| digits.parse::<u64>().expect("a whole number");
    let switch = |switch: &str| {
        let (time, hog) = switch.split_once(':').expect("time:hog");
        (number(time) * 1_000, number(hog) as usize)
    };
    switches.map(switch).collect()
}

/// The beginning of a recording, as far as the recording does not show it.
struct Beginning {
    /// The first hog to wake, which is picked, and those that wake while it runs.
    order: [usize; 3],
    /// Where the hogs start, in ns from the queue's min_vruntime; `None`: where they fell asleep.
    vruntimes: Option<[i64; 3]>,
    /// From the tick to the switch, in ns.
    switch_after: u64,
}

/// Three hogs of nice 0, 5 and -5 that have run for a moment and sleep, `ns` before the clock shows `start`.
fn hogs(kernel: Kernel, start: u64, ns: u64) -> (Sched<Hand>, [TaskId; 3]) {
    let boot = Boot { sysctl: Sysctl::new(2), ..Boot::new(kernel, CpuTopology::symmetric(1, 1, 1, 2, 1), 250) };
    let mut s = Sched::new(Hand { now: start - ns, ..Hand::default() }, boot);
    let hogs = [0, 5, -5].map(|nice| {
        let p = s.task(RUNS_ON, nice);
        assert_eq!(s.reschedule(RUNS_ON), Some(p));
        s.pass(MS / 10);
        s.sleep(RUNS_ON);
        p
    });
    (s, hogs)
}

/// How many recorded switches are reproduced here, from the first on.
fn agreed(kernel: Kernel, recorded: &[(u64, usize)], beginning: &Beginning) -> usize {
    let start = recorded[0].0;
    let (mut s, hogs) = hogs(kernel, start, 100 * MS);
    let origin = s.cfs_rq[s.rq[RUNS_ON].cfs].min_vruntime;
    if let Some(vruntimes) = beginning.vruntimes {
        for (p, vruntime) in hogs.into_iter().zip(vruntimes) {
            let se = s.task[p].se;
            s.se[se].vruntime = origin.wrapping_add_signed(vruntime);
        }
    }
    s.arch.now = start;
    s.wake_from(RUNS_ON, hogs[beginning.order[0]]);
    let mut runs = s.reschedule(RUNS_ON);
    for later in &beginning.order[1..] {
        s.pass(5_000);
        s.wake_from(RUNS_ON, hogs[*later]);
    }
    assert_eq!(runs, Some(hogs[recorded[0].1]));
    let phase = recorded[5].0 % TICK;
    let mut switch = start - start % TICK + phase;
    let mut next = 1;
    while let Some(&(time, hog)) = recorded.get(next) {
        switch += TICK;
        s.arch.now = switch - beginning.switch_after;
        s.on_cpu(RUNS_ON);
        s.scheduler_tick();
        if !s.rq[RUNS_ON].need_resched {
            continue;
        }
        s.arch.now = switch;
        let picked = s.reschedule(RUNS_ON);
        if picked == runs {
            continue;
        }
        // The recording's clock shows microseconds, and its ticks are a little late.
        if picked != Some(hogs[hog]) || time.abs_diff(switch) > MS {
            break;
        }
        (runs, next) = (picked, next + 1);
    }
    next
}

#[test]
fn a_real_6_12_is_followed_for_as_long_as_nobody_else_interferes() {
    let recorded = recorded(include_str!("../../../../../fidelity/linux-6.12/c-nice.picks.txt"));
    let beginning = Beginning { order: [1, 2, 0], vruntimes: None, switch_after: 2_000 };
    assert_eq!(recorded.len(), 154);
    // The last one is not at a tick: that hog has read its CPU time.
    assert_eq!(agreed(V6_12, &recorded, &beginning), 153);
}

#[test]
fn a_real_6_1_is_followed_from_where_its_hogs_began() {
    let recorded = recorded(include_str!("../../../../../fidelity/linux-6.1/c-nice.picks.txt"));
    // Two numbers that the recording does not show, fitted to it.
    let vruntimes = Some([2_729_200, 880_000, 0]);
    let beginning = Beginning { order: [2, 1, 0], vruntimes, switch_after: 3_000 };
    assert_eq!(recorded.len(), 290);
    // The last one is not at a tick: migration/1 has run.
    assert_eq!(agreed(V6_1, &recorded, &beginning), 289);
    // Another scheduler makes other picks.
    assert!(agreed(V6_12, &recorded, &beginning) < 20);
}
