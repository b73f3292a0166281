use crate::fixture::run;

#[test]
fn an_answer_to_all_is_one_wakeup_for_each_worker_and_one_for_the_message_thread() {
    // Four workers, each alone on a CPU, spin for 1 ms and are answered 10 to 12.5 ms later, all in one batch.
    let ran = run(
        "schbench-2016",
        8,
        &[("messengers", 1), ("workers", 4), ("runtime", 1), ("cputime", 1_000), ("sleeptime", 10_000)],
    );
    let latencies: Vec<u64> = ran.rows().concat();
    assert_eq!(latencies.len(), 7);
    // A wakeup takes no time here, and latencies below a microsecond are not counted.
    assert_eq!(latencies, [0; 7]);
    // A round takes 11 ms, half the jitter of 2.5 ms and the timer's slack: 1000 / 12.3 rounds. Each round has six
    // wakeups: the message thread is posted, its sleep ends, and four workers are answered.
    let rounds = ran.wakeups() / 6;
    assert!((78..=84).contains(&rounds), "{} wakeups", ran.wakeups());
}

#[test]
fn workers_that_share_a_cpu_wait_for_each_other() {
    let ran = run(
        "schbench-2016",
        1,
        &[("messengers", 1), ("workers", 3), ("runtime", 2), ("cputime", 5_000), ("sleeptime", 1_000)],
    );
    let latencies: Vec<u64> = ran.rows().concat();
    assert!(latencies.is_sorted(), "{latencies:?}");
    assert!(latencies[0] >= 1_000 && latencies[6] <= 30_000, "{latencies:?}");
}

#[test]
fn spinning_counts_time_off_the_cpu_as_well() {
    // Two workers on one CPU both watch the clock for 100 ms: they share that time, and both are done at its end.
    let alone = [("messengers", 1), ("runtime", 1), ("cputime", 100_000), ("sleeptime", 0)];
    let one = run("schbench-2016", 1, &[&alone[..], &[("workers", 1)]].concat());
    let two = run("schbench-2016", 1, &[&alone[..], &[("workers", 2)]].concat());
    assert!(two.wakeups() > one.wakeups() * 3 / 2, "{} and {}", one.wakeups(), two.wakeups());
}

#[test]
fn a_request_takes_its_sleep_and_its_work() {
    let alone = [("messengers", 1), ("workers", 2), ("runtime", 4), ("interval", 2), ("sleep_usec", 500)];
    let ran = run("schbench", 4, &alone);
    let rows = ran.rows();
    assert_eq!(rows.len(), 8);
    // Two intervals, with a figure of each.
    assert!(rows.iter().all(|row| row.len() == 2));
    // 5 multiplications of side 104 (256 KiB / 24 B is 104.5 squared) at 9 cycles, 1 GHz: 50.6 ms; the sleep and its slack: 0.55 ms.
    let request = 5 * 104 * 104 * 104 * 9 / 1_000 + 550;
    for row in &rows[4..] {
        assert!(row.iter().all(|us| us.abs_diff(request) <= request / 256), "{row:?} instead of {request}");
    }
}

#[test]
fn who_finds_the_lock_of_its_cpu_taken_spins_until_its_holder_runs_again() {
    let pair = [("messengers", 1), ("workers", 3), ("runtime", 4), ("interval", 4), ("operations", 1)];
    let locked = run("schbench", 1, &pair).rows();
    let free = run("schbench", 1, &[&pair[..], &[("no_locking", 1)]].concat()).rows();
    // Most of the median request's time is spent spinning.
    assert!(locked[4][0] > free[4][0], "{} us with locks, {} us without", locked[4][0], free[4][0]);
}

#[test]
fn requests_at_a_rate_are_served_at_that_rate() {
    let rate = [("messengers", 2), ("workers", 2), ("runtime", 5), ("interval", 5), ("operations", 0), ("rps", 200)];
    let ran = run("schbench", 4, &rate);
    // Each message thread hands out its 100 requests at one instant of the second. A worker serves 50 of them and
    // sleeps for 150 us in each; the message thread wakes it once, before the first.
    let rows = ran.rows();
    let request = rows[4][0];
    assert!((150..=152).contains(&request), "{request}");
    // The first thread wakes each second as well.
    let of_requests = 5 * 200;
    assert!((of_requests..of_requests + 60).contains(&ran.wakeups()), "{} wakeups", ran.wakeups());
}

#[test]
fn requests_per_second_are_those_that_were_served_in_it() {
    // Two workers, each alone on a CPU: a request takes 10.1 ms of work and 150 us of sleep, at 1 GHz.
    let free = [("workers", 2), ("runtime", 4), ("interval", 2), ("operations", 1)];
    let rows = run("schbench-rps", 4, &free).rows();
    let expected = 2 * 1_000_000 / (104 * 104 * 104 * 9 / 1_000 + 150);
    assert!(rows.len() == 3 && rows.iter().all(|row| row.len() == 2), "a figure of each of two intervals: {rows:?}");
    assert!(rows.concat().iter().all(|rate| rate.abs_diff(expected) <= 2), "{rows:?} instead of {expected}");
    // At a fixed rate the number of requests is that rate, less what timers are late.
    let rows =
        run("schbench-rps", 4, &[("workers", 2), ("runtime", 5), ("interval", 5), ("operations", 0), ("rps", 300)])
            .rows();
    assert!(rows[1][0].abs_diff(300) <= 4, "{rows:?}");
}
