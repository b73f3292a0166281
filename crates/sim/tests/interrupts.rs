//! Devices' interrupts, softirqs and ksoftirqd, whose time they take; timers of sleepers and of the wheel.

use machine::hardware::Hardware;
use machine::idle::IdleRules;
use machine::prices::{IdleState, Prices};
use machine::topology::{Numbering, from_synthetic};
use os::irq::{After, Cause, IrqRules, KsoftirqdRunning, SoftIrq, SoftWork};
use os::net::{Buffers, Receive, Transport};
use os::preempt::Preempt;
use os::timer_wheel::TimerSlack;
use os::{Os, OsRules, paths};
use sched::attr::SchedAttr;
use sched::core::{Boot, Sched};
use sched::sched::{Policy, TaskId};
use sched::scheduler::Scheduler;
use sched::trace::Sink;
use sched::versions::V6_1;
use sim::engine::{End, LinuxSim, Sim};
use sim::program::{Op, Outcome, Program, Steps, TaskSpec};
use sim::timeline::Change;
use std::collections::VecDeque;
use units::{CpuId, CpuMask, Cycles, Ns, Ps};

pub const CPU1: CpuId = CpuId(1);
pub const CPU2: CpuId = CpuId(2);
/// What an interrupt takes, and a round of a softirq.
pub const IRQ: Ns = Ns(1_000);
pub const ROUND: Ns = Ns(100_000);

struct List(VecDeque<Op>);

impl Program for List {
    fn next(&mut self, last: Outcome) -> Op {
        match self.0.pop_front() {
            // The time at which all before it was done.
            Some(Op::Report { series, .. }) => Op::Report { series, value: last.now.0 },
            other => other.unwrap_or(Op::Exit),
        }
    }
}

pub fn pinned(comm: &str, cpu: CpuId, ops: impl IntoIterator<Item = Op>) -> TaskSpec {
    TaskSpec { cpus: Some(CpuMask::single(cpu)), ..TaskSpec::new(comm, List(ops.into_iter().collect())) }
}

pub fn report(series: u32) -> Op {
    Op::Report { series, value: 0 }
}

/// Four CPUs of 1 GHz on which nothing of the kernel takes time but interrupts and softirqs.
pub fn machine(rules: IrqRules, idle: IdleRules, sink: Option<Box<dyn Sink>>) -> LinuxSim<true> {
    machine_of(rules, idle, sink, |_| ())
}

/// The same with other prices.
pub fn machine_of(
    rules: IrqRules,
    idle: IdleRules,
    sink: Option<Box<dyn Sink>>,
    change: impl FnOnce(&mut Prices),
) -> LinuxSim<true> {
    let topology = from_synthetic("pack:1 core:4 pu:1", "test", Numbering::LinuxX86).expect("a valid machine");
    let mut prices = Prices::free();
    prices.paths[paths::COMMON_INTERRUPT.0 as usize] = Cycles(IRQ.0);
    prices.paths[paths::NET_RX_ACTION.0 as usize] = Cycles(ROUND.0);
    let states = [("POLL", 0, 0, 0), ("C1", 2, 2, 1_000), ("C1E", 10, 20, 5_000), ("C6", 133, 400, 60_000)];
    prices.idle_states = states
        .map(|(name, exit_latency_us, target_residency_us, wake)| IdleState {
            wake: Ps::from_ns(wake),
            ..IdleState::declared(name, exit_latency_us, target_residency_us)
        })
        .to_vec();
    change(&mut prices);
    let kernel = V6_1;
    let mut hardware = Hardware::new(topology.clone(), prices, kernel.layout(), idle, 1);
    if let Some(sink) = sink {
        hardware.set_sink(sink);
    }
    if rules.time == os::irq::IrqTime::On {
        hardware.set_irq_accounting();
    }
    let boot = Boot::new(kernel, topology.cpu_topology(), 250);
    let mut os = Os::new(OsRules { preempt: Preempt::None, ..OsRules::V6_1 }, 250);
    os.irq.rules = rules;
    Sim::new(Sched::new(hardware, boot), os)
}

pub fn finish(sim: &mut LinuxSim<true>) {
    assert_eq!(sim.run(Ns::from_ms(10_000)), End::Finished);
}

pub fn value(sim: &LinuxSim<true>, series: u32) -> u64 {
    sim.samples.iter().find(|sample| sample.series == series).expect("it was reported").value
}

fn ran(sim: &LinuxSim<true>, task: TaskId) -> u64 {
    sim.sched.se[sim.sched.task[task].se].sum_exec_runtime
}

pub fn net(rounds: u32) -> Cause {
    Cause::Work(SoftWork { vector: SoftIrq::NetRx, rounds, after: After::Nothing })
}

#[test]
fn an_interrupt_lands_on_a_cpu_of_its_mask_and_takes_that_cpus_time() {
    let mut sim = machine(IrqRules::V4_15, IdleRules::V6_1, None);
    let irq = sim.request_irq("eth0", CpuMask::single(CPU2));
    for cpu in [CPU1, CPU2] {
        sim.spawn(CpuId(0), pinned("hog", cpu, [Op::RunFor(Ns::from_ms(20)), report(cpu.0.into())]));
    }
    for n in 0..10 {
        sim.raise_irq(Ns::from_ms(5 + n), irq, net(1));
    }
    finish(&mut sim);
    assert_eq!([CPU1, CPU2].map(|cpu| sim.os.irq.irqs()[0].count(cpu)), [0, 10]);
    assert_eq!([CPU1, CPU2].map(|cpu| sim.os.irq.counted(cpu).softirqs[3]), [0, 10]);
    // Ten interrupts with a round each: the one CPU's task ends so much later than the other's.
    let late = value(&sim, 2) - value(&sim, 1);
    assert_eq!(late, 10 * (IRQ.0 + ROUND.0));
}

#[test]
fn a_new_mask_moves_a_line() {
    let mut sim = machine(IrqRules::V4_15, IdleRules::V6_1, None);
    let irq = sim.request_irq("eth0", CpuMask::single(CPU2));
    sim.irq_set_affinity(irq, CpuMask::single(CPU1));
    for cpu in [CPU1, CPU2] {
        sim.spawn(CpuId(0), pinned("hog", cpu, [Op::RunFor(Ns::from_ms(20)), report(cpu.0.into())]));
    }
    sim.raise_irq(Ns::from_ms(5), irq, net(1));
    finish(&mut sim);
    assert_eq!(value(&sim, 1) - value(&sim, 2), IRQ.0 + ROUND.0);
}

#[test]
fn a_softirq_that_comes_again_and_again_goes_to_ksoftirqd() {
    let by_ksoftirqd = |rounds| {
        let mut sim = machine(IrqRules::V4_15, IdleRules::V6_1, None);
        let irq = sim.request_irq("eth0", CpuMask::single(CPU1));
        let thread = sim.ksoftirqd(CPU1).expect("each CPU has one");
        sim.spawn(CpuId(0), pinned("hog", CPU1, [Op::RunFor(Ns::from_ms(50))]));
        sim.raise_irq(Ns::from_ms(10), irq, net(rounds));
        finish(&mut sim);
        assert!(!sim.os.irq.local_softirq_pending(CPU1));
        ran(&sim, thread) / ROUND.0
    };
    // Ten passes are made at the end of the interrupt; what is left after them is its thread's.
    assert_eq!(by_ksoftirqd(10), 0);
    assert_eq!(by_ksoftirqd(11), 1);
    assert_eq!(by_ksoftirqd(35), 25);
}

#[test]
fn softirqs_that_take_long_go_to_ksoftirqd_before_their_tenth_pass() {
    // A pass of 1 ms, eight times: 2 ms are a jiffy of 4 ms, and the next one begins 3.9 ms after the interrupt, or 1.9.
    let by_ksoftirqd = |at: u64| {
        let slow = |prices: &mut Prices| prices.paths[paths::NET_RX_ACTION.0 as usize] = Cycles(1_000_000);
        let mut sim = machine_of(IrqRules::V4_15, IdleRules::V6_1, None, slow);
        let irq = sim.request_irq("eth0", CpuMask::single(CPU1));
        let thread = sim.ksoftirqd(CPU1).expect("each CPU has one");
        sim.spawn(CpuId(0), pinned("hog", CPU1, [Op::RunFor(Ns::from_ms(50))]));
        sim.raise_irq(Ns(at), irq, net(8));
        finish(&mut sim);
        ran(&sim, thread) / 1_000_000
    };
    assert_eq!([20_100_000, 22_100_000].map(by_ksoftirqd), [4, 6]);
}

#[test]
fn the_thread_of_a_cpu_that_goes_offline_parks_and_another_one_inherits_its_work() {
    let mut sim = machine(IrqRules::V4_15, IdleRules::V6_1, None);
    let irq = sim.request_irq("eth0", CpuMask::single(CPU1));
    let [heir, thread] = [CpuId(0), CPU1].map(|cpu| sim.ksoftirqd(cpu).expect("each CPU has one"));
    for cpu in [CPU1, CPU2] {
        sim.spawn(CpuId(0), pinned("hog", cpu, [Op::RunFor(Ns::from_ms(200))]));
    }
    // 40 ms of work, of which the thread has had a little, beside a hog, when its CPU goes.
    sim.raise_irq(Ns::from_ms(10), irq, net(400));
    sim.at(Ns::from_ms(20), Change::CpuOffline(CPU1));
    sim.at(Ns::from_ms(150), Change::CpuOnline(CPU1));
    assert_eq!(sim.run(Ns::from_ms(30)), End::Time);
    assert!(!sim.sched.is_online(CPU1) && !sim.os.irq.local_softirq_pending(CPU1));
    let alone = ran(&sim, thread) / ROUND.0;
    assert!((1..100).contains(&alone), "{alone} rounds");
    assert_eq!(sim.run(Ns::from_ms(160)), End::Time);
    // Ten were the interrupt's; those that another interrupt's end made, while the thread was between its two CPUs, are nobody's.
    let inherited = ran(&sim, heir) / ROUND.0;
    assert_eq!(ran(&sim, thread) / ROUND.0, alone, "it is parked");
    assert!(!sim.os.irq.local_softirq_pending(CpuId(0)), "all is done");
    assert!((380..=390).contains(&(alone + inherited)), "{alone} and {inherited} rounds");
    assert_eq!(sim.sched.cpus_allowed(thread).list(), "1", "its CPU is back, and it is bound again");
    finish(&mut sim);
}

#[test]
fn while_ksoftirqd_is_runnable_interrupts_leave_softirqs_to_it_from_v4_9_to_v6_4() {
    let woken = |ksoftirqd| {
        let mut sim = machine(IrqRules { ksoftirqd, ..IrqRules::V4_15 }, IdleRules::V6_1, None);
        let irq = sim.request_irq("eth0", CpuMask::single(CPU1));
        let disk = sim.request_irq("sda", CpuMask::single(CPU1));
        sim.spawn(CpuId(0), pinned("hog", CPU1, [Op::RunFor(Ns::from_ms(60))]));
        let sleeper = pinned("sleeper", CpuId(0), [Op::BlockIo(Ns::from_ms(500)), report(7)]);
        let sleeper = sim.spawn(CpuId(0), sleeper);
        // Many rounds: the hog gets its turns between them. Then another device asks for a softirq that wakes.
        sim.raise_irq(Ns::from_ms(10), irq, net(200));
        let wake = SoftWork { vector: SoftIrq::Block, rounds: 1, after: After::Wake(sleeper) };
        let mut at = Ns::from_ms(0);
        for ms in 12..40 {
            at = Ns::from_ms(ms);
            sim.run(at);
            // While the hog runs and the thread waits for its turn.
            let thread = sim.ksoftirqd(CPU1).expect("each CPU has one");
            if sim.sched.rq[CPU1].curr != Some(thread) && sim.sched.rq[CPU1].nr_running > 1 {
                break;
            }
        }
        sim.raise_irq(at, disk, Cause::Work(wake));
        let mut ms = 0;
        while sim.sched.task[sleeper].state == sched::sched::TaskState::Uninterruptible && ms < 100 {
            ms += 1;
            sim.run(at + Ns(ms * 100_000));
        }
        ms
    };
    assert_eq!(woken(KsoftirqdRunning::Beside), 1);
    assert_eq!(woken(KsoftirqdRunning::Removed), 1);
    assert!(woken(KsoftirqdRunning::Yields) > 1);
}

/// A sender on CPU 1, beside a hog and a ksoftirqd with much to do, and its reader on CPU 2; and what the sender does after the first
/// of `sends`. All that was sent arrives, or the run would not end.
pub fn over_loopback(ksoftirqd: KsoftirqdRunning, transport: Transport, sends: u32, then: Vec<Op>) -> LinuxSim<true> {
    let mut sim = machine(IrqRules { ksoftirqd, ..IrqRules::V4_15 }, IdleRules::V6_1, None);
    let irq = sim.request_irq("eth0", CpuMask::single(CPU1));
    let (from, to) = sim.os.connect(transport, Buffers::default());
    let send = || Op::Send { socket: from, bytes: 1000 };
    let mut ops = vec![Op::SleepFor(Ns::from_ms(20)), Op::RunFor(Ns(10_000)), send(), report(1)];
    ops.extend(then);
    ops.extend((1..sends).map(|_| send()));
    ops.push(Op::RunFor(Ns::from_ms(2)));
    sim.spawn(CpuId(0), pinned("sender", CPU1, ops));
    let receive = || Op::Receive { socket: to, bytes: 1000, how: Receive { wait_all: true, discard: false } };
    let mut ops = vec![receive(), report(2)];
    ops.extend((1..sends).map(|_| receive()));
    sim.spawn(CpuId(0), pinned("reader", CPU2, ops));
    sim.raise_irq(Ns::from_ms(10), irq, net(400));
    sim
}

#[test]
fn what_loopback_sends_waits_for_a_runnable_ksoftirqd_from_v4_9_to_v6_4() {
    for transport in [Transport::Udp, Transport::Tcp { nodelay: true }] {
        let later = |ksoftirqd| {
            let mut sim = over_loopback(ksoftirqd, transport, 1, Vec::new());
            finish(&mut sim);
            Ns(value(&sim, 2) - value(&sim, 1))
        };
        // The reader is woken before the sender's call returns; what is left is its CPU's way out of an idle state, 60 us. Or it is woken when
        // the thread has got its turn, and has taken a round.
        for (ksoftirqd, waits) in
            [(KsoftirqdRunning::Beside, false), (KsoftirqdRunning::Yields, true), (KsoftirqdRunning::Removed, false)]
        {
            let later = later(ksoftirqd);
            assert_eq!(later > ROUND, waits, "{transport:?}, {ksoftirqd:?}: {later:?}");
        }
    }
}

#[test]
fn what_was_left_to_ksoftirqd_is_not_overtaken_and_survives_its_cpu() {
    for transport in [Transport::Udp, Transport::Tcp { nodelay: true }] {
        let mut sim =
            over_loopback(KsoftirqdRunning::Yields, transport, 70, vec![Op::SetAffinity(CpuMask::single(CpuId(3)))]);
        finish(&mut sim);
        let mut sim = over_loopback(KsoftirqdRunning::Yields, transport, 3, Vec::new());
        while sim.samples.is_empty() {
            sim.run(sim.now() + Ns(50_000));
        }
        assert!(value(&sim, 1) > 0 && sim.samples.len() == 1, "it is sent and has not arrived");
        sim.at(sim.now(), Change::CpuOffline(CPU1));
        finish(&mut sim);
    }
}

#[test]
fn time_in_interrupts_is_not_the_tasks_where_it_is_accounted() {
    let ran_for = |time| {
        let mut sim = machine(IrqRules { time, ..IrqRules::V4_15 }, IdleRules::V6_1, None);
        let irq = sim.request_irq("eth0", CpuMask::single(CPU1));
        let hog = sim.spawn(CpuId(0), pinned("hog", CPU1, [Op::RunFor(Ns::from_ms(50)), Op::SleepFor(Ns::from_ms(9))]));
        for n in 0..100 {
            sim.raise_irq(Ns(10_000_000 + n * 300_000), irq, net(1));
        }
        assert_eq!(sim.run(Ns::from_ms(65)), End::Time);
        ran(&sim, hog)
    };
    let (off, on) = (ran_for(os::irq::IrqTime::Off), ran_for(os::irq::IrqTime::On));
    assert_eq!(on, Ns::from_ms(50).0);
    assert_eq!(off - on, 100 * (IRQ.0 + ROUND.0));
}

#[test]
fn a_task_leaves_a_cpu_that_interrupts_take_if_their_time_is_accounted() {
    let ends_on = |time| {
        let mut sim = machine(IrqRules { time, ..IrqRules::V4_15 }, IdleRules::V6_1, None);
        let irq = sim.request_irq("eth0", CpuMask::single(CPU1));
        let ops = [Op::RunFor(Ns::from_ms(5)), Op::SetAffinity(CpuMask::all(4)), Op::RunFor(Ns::from_ms(500))];
        let hog = sim.spawn(CpuId(0), pinned("hog", CPU1, ops));
        // Half of the CPU, in pieces that no tick sees anything of.
        for n in 0..1_000 {
            sim.raise_irq(Ns(10_000_000 + n * 200_000), irq, net(1));
        }
        assert_eq!(sim.run(Ns::from_ms(200)), End::Time);
        sim.sched.task_cpu(hog)
    };
    // Unaccounted it is the task's own time, and the CPU as big as ever (avg_irq, scale_rt_capacity()).
    assert_eq!(ends_on(os::irq::IrqTime::Off), CPU1);
    assert_ne!(ends_on(os::irq::IrqTime::On), CPU1);
}

#[test]
fn a_block_device_answers_by_the_interrupt_of_its_queue() {
    let mut sim = machine(IrqRules::V4_15, IdleRules::V6_1, None);
    sim.spawn(CpuId(0), pinned("reader", CPU2, [Op::BlockIo(Ns::from_ms(3)), report(1)]));
    finish(&mut sim);
    let line = &sim.os.irq.irqs()[0];
    assert_eq!((line.name.as_str(), line.cpu, line.count(CPU2)), ("nvme0q3", CPU2, 1));
    // The device's time, the way out of the state, the interrupt.
    assert!((Ns::from_ms(3) + IRQ).0 <= value(&sim, 1) && value(&sim, 1) < Ns::from_ms(4).0);
}

// Timers.

#[test]
fn who_sleeps_until_a_time_that_has_passed_sleeps_and_another_runs_meanwhile() {
    let slept = |past: u64| {
        let mut sim = machine(IrqRules::V6_1, IdleRules::V6_1, None);
        let until = Ns(2_000_000 - past);
        let late =
            [Op::RunFor(Ns::from_ms(2)), report(1), Op::SleepUntil(until), report(2), Op::RunFor(Ns::from_ms(1))];
        let late = sim.spawn(CpuId(0), pinned("late", CPU1, late));
        let idle = SchedAttr { sched_policy: Policy::Idle, ..SchedAttr::NORMAL };
        let hog = pinned("hog", CPU1, [Op::RunFor(Ns::from_ms(1)), report(3)]);
        sim.spawn(CpuId(0), TaskSpec { attr: Some(idle), ..hog });
        assert_eq!(sim.run(Ns(2_500_000)), End::Time);
        assert!(value(&sim, 1) == 2_000_000 && sim.sched.task[late].nvcsw == 1);
        value(&sim, 2) - value(&sim, 1)
    };
    // What is left of its slack of 50 us; where that has passed too, the least that a clock is set to.
    assert_eq!([20_000, 80_000].map(slept), [30_000, 1_000]);
}

#[test]
fn timeouts_fire_at_jiffies_and_later_on_wheels_with_levels() {
    let woken = |wheel| {
        let mut sim = machine(IrqRules { wheel, ..IrqRules::V4_15 }, IdleRules::V6_1, None);
        // 100 jiffies of 4 ms from the first on.
        sim.spawn(CpuId(0), pinned("thread", CPU1, [Op::ScheduleTimeout(100), report(1)]));
        finish(&mut sim);
        value(&sim, 1) / 4_000_000
    };
    assert_eq!(woken(os::timer_wheel::TimerWheel::Cascading), 100);
    // 63 jiffies and more are kept by eights: 104.
    assert_eq!(woken(os::timer_wheel::TimerWheel::Levels), 104);
}

#[test]
fn who_is_forked_by_a_real_time_task_may_have_no_slack_for_good() {
    let late = |slack| {
        let mut sim = machine(IrqRules { slack, ..IrqRules::V6_1 }, IdleRules::V6_1, None);
        let nap = |series| [Op::SleepUntil(Ns::from_ms(20)), report(series)];
        // A normal child that a SCHED_FIFO task forks, and one of a normal task's.
        let child = |series| Op::Fork(Box::new(pinned("child", CPU2, nap(series))));
        let fifo = SchedAttr { sched_policy: Policy::Fifo, sched_priority: 10, ..SchedAttr::NORMAL };
        sim.spawn(CpuId(0), TaskSpec { attr: Some(fifo), ..pinned("rt", CPU1, [child(1)]) });
        finish(&mut sim);
        let of_rt = value(&sim, 1) - 20_000_000;
        let mut sim = machine(IrqRules { slack, ..IrqRules::V6_1 }, IdleRules::V6_1, None);
        sim.spawn(CpuId(0), pinned("normal", CPU1, [child(1)]));
        finish(&mut sim);
        (of_rt, value(&sim, 1) - 20_000_000)
    };
    let wake = late(TimerSlack::Kept).0;
    // All that is left is the way out of C6.
    assert_eq!(wake, 60_000);
    assert_eq!(late(TimerSlack::Kept), (wake, wake + 50_000));
    assert_eq!(late(TimerSlack::ByClass), (wake + 50_000, wake + 50_000));
}

#[test]
fn a_timeout_within_the_next_jiffy_keeps_the_tick() {
    let ticks = |jiffies| {
        let mut sim = machine(IrqRules::V4_5, IdleRules::V4_15, None);
        let ops = (0..50).flat_map(|_| [Op::ScheduleTimeout(jiffies), Op::RunFor(Ns(5_000))]);
        sim.spawn(CpuId(0), pinned("thread", CPU1, ops));
        finish(&mut sim);
        sim.ticks(CPU1)
    };
    assert!(ticks(1) >= 49, "{}", ticks(1));
    assert!(ticks(4) < 10, "{}", ticks(4));
}

/// Where idle CPUs are woken by interrupts, a woken task is known to nobody while one is on its way. The engine looks for machines that nothing
/// will ever happen on after each 65536th event, and must not take that moment for one.
#[test]
fn a_wakeup_on_its_way_is_no_deadlock() {
    const LOOKS: u64 = 8;
    let slow = |prices: &mut Prices| (prices.mwait, prices.ipi_delivery) = (false, Ps::from_ns(900));
    let mut sim = machine_of(IrqRules::V6_1, IdleRules::V4_15, None, slow);
    let (ping, pong) = (sim.os.create_pipe(), sim.os.create_pipe());
    let rounds = 10_000 * LOOKS;
    for (cpu, (read, write)) in [(ping, pong), (pong, ping)].into_iter().enumerate() {
        let turn = move |_| [Op::Read { pipe: read, bytes: 1 }, Op::Write { pipe: write, bytes: 1 }];
        let steps = (0..rounds).flat_map(turn);
        // The first begins.
        let begin = (cpu == 0).then_some(Op::Write { pipe: write, bytes: 1 });
        let cpus = Some(CpuMask::single(CpuId::new(cpu)));
        let task = TaskSpec { cpus, ..TaskSpec::new("turn", Steps(begin.into_iter().chain(steps))) };
        sim.spawn(CpuId::new(cpu), task);
    }
    assert_eq!(sim.run(Ns::from_ms(60_000)), End::Finished);
    assert!(sim.events > LOOKS << 16, "{} events", sim.events);
}
