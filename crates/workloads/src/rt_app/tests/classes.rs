//! Policies of every class, clamps, and what becomes of an application when the kernel refuses one.

use super::running::Ran;
use super::*;
use machine::prices::Prices;
use sched::core::ClampId;
use sched::sched::Policy as KernelPolicy;
use sim::timeline::Change;
use units::{CpuId, Ns};

const KERNELS: [&str; 5] = ["v4.5-rc1", "v4.15", "v4.16", "v6.1", "v6.12"];

fn start(kernel: &str, cpus: usize, text: &str) -> Ran<false> {
    Ran::<false>::start_on(kernel, cpus, Prices::free(), text)
}

/// What the application reports about the refusal that ended it.
fn refused(ran: Ran<false>) -> String {
    let ran = ran.ended();
    ran.rt_app.application().refused(&ran.sim.samples).expect("something was refused").to_string()
}

#[test]
fn real_time_threads_run_before_fair_ones_by_priority() {
    let text = r#"{"tasks": {
        "fair": {"loop": 1, "delay": 500, "run": 5000},
        "robin": {"loop": 1, "policy": "SCHED_RR", "priority": 5, "sleep": 1000, "run": 5000},
        "fifo": {"loop": 1, "policy": "SCHED_FIFO", "sleep": 2000, "run": 5000}}}"#;
    for kernel in KERNELS {
        let mut ran = start(kernel, 1, text);
        for (us, name, policy, priority) in [
            (900, "fair-0", KernelPolicy::Normal, 0),
            (1_900, "robin-1", KernelPolicy::Rr, 5),
            (6_500, "fifo-2", KernelPolicy::Fifo, 10),
            (7_500, "robin-1", KernelPolicy::Rr, 5),
            (14_000, "fair-0", KernelPolicy::Normal, 0),
        ] {
            ran.sim.run(Ns::from_us(us));
            let sched = &ran.sim.sched;
            let curr = sched.rq[CpuId(0)].curr.unwrap_or_else(|| panic!("{kernel}: nobody runs at {us} us"));
            let task = (sched.task_cold[curr].comm.as_str(), sched.task[curr].policy, sched.task[curr].rt_priority);
            assert_eq!(task, (name, policy, priority), "{kernel} at {us} us");
        }
        let ran = ran.ended();
        assert_eq!(ran.rt_app.application().refused(&ran.sim.samples), None, "{kernel}");
    }
}

#[test]
fn a_deadline_thread_gets_its_budget_in_every_period() {
    // The task asks for 50 ms of CPU time and gets 2 of each 10: after 24 whole periods it has had 48, and the rest
    // comes in the next.
    let text = r#"{"tasks": {
        "edf": {"loop": 1, "policy": "SCHED_DEADLINE", "dl-runtime": 2000, "dl-period": 10000, "run": 50000},
        "fair": {"loop": 1, "run": 400000}}}"#;
    for kernel in KERNELS {
        let mut ran = start(kernel, 1, text);
        let find = |ran: &Ran<false>| {
            let named = |(id, _): &(_, _)| ran.sim.sched.task_cold[*id].comm == "edf-0";
            ran.sim.sched.task.iter().filter(|(_, task)| task.alive).find(named).map(|(id, _)| id)
        };
        ran.sim.run(Ns::from_ms(5));
        let edf = find(&ran).expect("it lives");
        let se = &ran.sim.sched.dl_se[edf];
        assert_eq!((se.dl_runtime, se.dl_deadline, se.dl_period), (2_000_000, 10_000_000, 10_000_000), "{kernel}");
        ran.sim.run(Ns::from_ms(235));
        assert!(find(&ran).is_some(), "{kernel}: more than its budget");
        ran.sim.run(Ns::from_ms(262));
        assert!(find(&ran).is_none(), "{kernel}: less than its budget");
        ran.ended();
    }
}

#[test]
fn clamps_are_those_of_the_task_and_then_of_the_phase() {
    let text = r#"{"tasks": {"t": {"loop": 1, "util_min": 100, "util_max": 800, "phases": {
        "first": {"run": 1000}, "second": {"util_max": 300, "run": 1000}, "third": {"policy": "SCHED_BATCH", "run": 1000}}}}}"#;
    for kernel in ["v6.1", "v6.12"] {
        let mut ran = start(kernel, 1, text);
        for (us, policy, clamps) in [
            (500, KernelPolicy::Normal, [100, 800]),
            (1_500, KernelPolicy::Normal, [100, 300]),
            (2_500, KernelPolicy::Batch, [100, 300]),
        ] {
            ran.sim.run(Ns::from_us(us));
            let sched = &ran.sim.sched;
            let curr = sched.rq[CpuId(0)].curr.expect("it runs");
            let asked = [ClampId::Min, ClampId::Max].map(|id| sched.task_cold[curr].uclamp_req[id].value);
            assert_eq!((sched.task[curr].policy, asked), (policy, clamps), "{kernel} at {us} us");
        }
        ran.ended();
    }
}

#[test]
fn a_kernel_without_clamps_refuses_them() {
    let text = "{\"tasks\": {\n\"t\": {\"util_max\": 300,\n\"run\": 1000}}}";
    let told = refused(start("v4.15", 1, text));
    let expected = "test.json:2:19: the kernel refused \"util_min\" and \"util_max\" of \"t\" with E2BIG (argument list too long) at ";
    assert!(told.starts_with(expected), "{told}");
    assert!(
        told.ends_with(" ms: this kernel has no clamps of a task's utilization (since v5.3); rt-app ends there"),
        "{told}"
    );
}

#[test]
fn an_affinity_to_cpus_that_are_down_is_refused() {
    let text = "{\"tasks\": {\"t\": {\"loop\": 1, \"phases\": {\n\"here\": {\"run\": 5000},\n\
                \"there\": {\"cpus\": [1, 2], \"run\": 5000}}}, \"other\": {\"loop\": 1, \"sleep\": 100000}}}";
    for kernel in KERNELS {
        let mut ran = start(kernel, 3, text);
        ran.sim.at(Ns::from_ms(1), Change::CpuOffline(CpuId(1)));
        let ran = ran.ended();
        assert_eq!(ran.rt_app.application().refused(&ran.sim.samples), None, "{kernel}: CPU 2 is up");

        let mut ran = start(kernel, 3, text);
        ran.sim.at(Ns::from_ms(1), Change::CpuOffline(CpuId(1)));
        ran.sim.at(Ns::from_ms(2), Change::CpuOffline(CpuId(2)));
        let ran = ran.ended();
        let told = ran.rt_app.application().refused(&ran.sim.samples).expect("nowhere to run").to_string();
        assert!(
            told.starts_with("test.json:3:19: the kernel refused \"cpus\" of \"t\" with EINVAL (invalid argument) at ")
        );
        assert!(told.ends_with(": none of these CPUs is up; rt-app ends there"), "{told}");
        assert!(ran.sim.now() < Ns::from_ms(50), "{kernel}: the others end with it");
    }
}

#[test]
fn deadline_threads_that_want_too_much_are_refused() {
    let text = "{\"tasks\": {\"t\": {\"instance\": 3, \"loop\": 1,\n\"policy\": \"SCHED_DEADLINE\", \"dl-runtime\": 7000, \
                \"dl-period\": 10000, \"run\": 50000}}}";
    for kernel in KERNELS {
        // Three times 70% of one CPU are more than 95% of two.
        let told = refused(start(kernel, 2, text));
        let expected =
            "test.json:2:11: the kernel refused \"SCHED_DEADLINE\" of \"t\" with EBUSY (device or resource busy) at ";
        assert!(told.starts_with(expected), "{kernel}: {told}");
        assert!(told.contains("reserved too much"), "{kernel}: {told}");
        let ran = start(kernel, 4, text).ended();
        assert_eq!(ran.rt_app.application().refused(&ran.sim.samples), None, "{kernel}");
    }
}

#[test]
fn a_deadline_thread_may_not_be_told_where_to_run() {
    let text = "{\"tasks\": {\"t\": {\"loop\": 1, \"cpus\": [0],\n\"phases\": {\"p\": {\"policy\": \"SCHED_DEADLINE\", \
                \"dl-runtime\": 1000, \"dl-period\": 10000, \"run\": 5000}}}}}";
    for kernel in KERNELS {
        let told = refused(start(kernel, 2, text));
        assert!(
            told.starts_with("test.json:2:28: the kernel refused \"SCHED_DEADLINE\" of \"t\" with EPERM "),
            "{told}"
        );
    }
}

#[test]
fn a_deadline_thread_does_not_fork() {
    let text = "{\"tasks\": {\"t\": {\"loop\": 1, \"policy\": \"SCHED_DEADLINE\", \"dl-runtime\": 1000, \"dl-period\": 10000,\n\
                \"run\": 100, \"fork\": \"u\"}, \"u\": {\"instance\": 0, \"loop\": 1, \"run\": 100}}}";
    for kernel in KERNELS {
        let told = refused(start(kernel, 2, text));
        assert!(told.contains("refused \"fork\" of \"t\" with EAGAIN (try again)"), "{told}");
    }
}

#[test]
fn the_real_time_fixture_runs() {
    let (_, text) = FIXTURES.iter().find(|(name, _)| *name == "realtime.json").expect("it is one of them");
    for kernel in KERNELS {
        let ran = start(kernel, 4, text).ended();
        assert_eq!(ran.rt_app.application().refused(&ran.sim.samples), None, "{kernel}");
        assert!(ran.rt_app.operations().len() == 5, "{kernel}");
        let rows = |task| ran.rt_app.samples_of(task, &ran.sim.samples).len();
        assert!((0..5).all(|task| rows(task) > 0), "{kernel}");
    }
}
