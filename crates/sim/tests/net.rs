//! Sockets: who wakes whom, what is dropped, where a sender sleeps; and that nothing is lost or stuck, by random sizes.

mod acks;

use machine::hardware::Hardware;
use machine::idle::IdleRules;
use machine::prices::Prices;
use machine::topology::{Numbering, from_synthetic};
use os::net::rules::{FullSegment, UdpReceive};
use os::net::{Buffers, NetRules, Receive, Socket, Transport};
use os::preempt::Preempt;
use os::{Os, OsRules};
use sched::core::{Boot, Sched};
use sched::sched::TaskId;
use sched::trace::{Event, Ipi, Sink};
use sched::versions::V4_15;
use sim::engine::{End, LinuxSim, Sim};
use sim::program::{Op, Outcome, Program, TaskSpec};
use std::cell::RefCell;
use std::rc::Rc;
use units::{CpuId, Cycles, Ns, Prng};

/// Two CPUs on which nothing takes time but what programs compute.
fn machine(net: NetRules, preempt: Preempt, sink: Option<Box<dyn Sink>>) -> LinuxSim<false> {
    machine_of("pack:1 l3:1 core:2 pu:1", net, preempt, sink)
}

fn machine_of(cpus: &str, net: NetRules, preempt: Preempt, sink: Option<Box<dyn Sink>>) -> LinuxSim<false> {
    let topology = from_synthetic(cpus, "test", Numbering::LinuxX86).expect("a valid machine");
    let kernel = V4_15;
    let mut hardware = Hardware::new(topology.clone(), Prices::free(), kernel.layout(), IdleRules::V4_15, 1);
    if let Some(sink) = sink {
        hardware.set_sink(sink);
    }
    let boot = Boot::new(kernel, topology.cpu_topology(), 250);
    Sim::new(Sched::new(hardware, boot), Os::new(OsRules { preempt, net, ..OsRules::V4_15 }, 250))
}

/// A program made of a closure: the number of its step, and the last outcome.
struct Steps<F>(u32, F);

impl<F: FnMut(u32, Outcome) -> Op> Program for Steps<F> {
    fn next(&mut self, last: Outcome) -> Op {
        self.0 += 1;
        (self.1)(self.0 - 1, last)
    }
}

fn task(comm: &str, steps: impl FnMut(u32, Outcome) -> Op + 'static) -> TaskSpec {
    TaskSpec::new(comm, Steps(0, steps))
}

fn receive(socket: Socket, bytes: u32) -> Op {
    Op::Receive { socket, bytes, how: Receive { wait_all: true, discard: false } }
}

/// Counts wakeups by who ran where they came from.
#[derive(Clone, Default)]
struct Wakeups(Rc<RefCell<(Running, Woken)>>);

/// By CPU.
type Running = Vec<Option<TaskId>>;
/// Who ran where it came from, and whom it woke.
type Woken = Vec<(Option<TaskId>, TaskId)>;

impl Sink for Wakeups {
    fn event(&mut self, _at: Ns, cpu: CpuId, event: &Event) {
        let (running, wakeups) = &mut *self.0.borrow_mut();
        running.resize(running.len().max(cpu.index() + 1), None);
        match event {
            Event::SchedSwitch { next, .. } => running[cpu.index()] = *next,
            Event::SchedWaking { task, .. } => wakeups.push((running[cpu.index()], *task)),
            _ => {}
        }
    }

    fn task(&mut self, _task: TaskId, _pid: u32, _comm: &str, _prio: i32) {}
}

impl Wakeups {
    fn of(&self, waker: TaskId, wakee: TaskId) -> usize {
        self.0.borrow().1.iter().filter(|&&pair| pair == (Some(waker), wakee)).count()
    }
}

impl Wakeups {
    /// How often `wakee` was woken, whoever ran there.
    fn times(&self, wakee: TaskId) -> usize {
        self.0.borrow().1.iter().filter(|pair| pair.1 == wakee).count()
    }
}

const TCP: Transport = Transport::Tcp { nodelay: true };
const VERSIONS: [NetRules; 5] = [NetRules::V4_5, NetRules::V4_15, NetRules::V6_1, NetRules::V6_12, NetRules::V6_6];

#[test]
fn a_request_wakes_the_server_once_and_its_answer_the_client() {
    for net in VERSIONS {
        for transport in [TCP, Transport::Udp, Transport::Unix] {
            let wakeups = Wakeups::default();
            let mut sim = machine(net, Preempt::None, Some(Box::new(wakeups.clone())));
            let (client, server) = sim.os.connect(transport, Buffers::default());
            const ROUNDS: u32 = 100;
            let answers = sim.spawn(
                CpuId(0),
                task("server", move |step, _| match step % 3 {
                    _ if step == 3 * ROUNDS => Op::Exit,
                    0 => receive(server, 100),
                    1 => Op::Work(Cycles(1_000)),
                    _ => Op::Send { socket: server, bytes: 200 },
                }),
            );
            let asks = sim.spawn(
                CpuId(1),
                task("client", move |step, last| {
                    if step % 3 == 0 && step > 0 {
                        assert_eq!(last.value, 200);
                    }
                    match step % 3 {
                        _ if step == 3 * ROUNDS => Op::Exit,
                        0 => Op::Work(Cycles(3_000)),
                        1 => Op::Send { socket: client, bytes: 100 },
                        _ => receive(client, 200),
                    }
                }),
            );
            assert_eq!(sim.run(Ns::from_ms(1_000)), End::Finished);
            let rounds = ROUNDS as usize;
            let counts = (wakeups.of(asks, answers), wakeups.of(answers, asks));
            // Readers and writers of an AF_UNIX socket share its queue: room that appears wakes who waits for the answer, in vain.
            let answered = if transport == Transport::Unix { 2 * rounds } else { rounds };
            // The first rounds may find both on one CPU.
            let near = |count: usize, usual: usize| (usual - 5..=usual).contains(&count);
            assert!(near(counts.0, rounds) && near(counts.1, answered), "{transport:?} {net:?}: {counts:?}");
        }
    }
}

#[test]
fn a_datagram_is_dropped_when_the_buffer_was_full_or_would_be_overfull() {
    // Four datagrams of 2304 bytes with their overhead, into 4608.
    for (udp_receive, room) in
        [(UdpReceive::Locked, 2), (UdpReceive::Lockless, 3), (UdpReceive::Batched, 3), (UdpReceive::Queues, 2)]
    {
        let mut sim = machine(NetRules { udp_receive, ..NetRules::V4_5 }, Preempt::None, None);
        let buffers = Buffers { send: None, receive: Some(2_304) };
        let (from, to) = sim.os.connect(Transport::Udp, buffers);
        let sender = move |step, _| if step < 4 { Op::Send { socket: from, bytes: 1_024 } } else { Op::Exit };
        sim.spawn(CpuId(0), task("sender", sender));
        assert_eq!(sim.run(Ns::from_ms(10)), End::Finished);
        assert_eq!(sim.os.udp_drops(to), 4 - room, "{udp_receive:?}");
    }
}

#[test]
fn a_writer_to_a_full_unix_socket_waits_until_three_quarters_are_free() {
    // 100 bytes take 768 of the 212992 of an account: 278 messages fill it, 69 of them are a quarter.
    for (reads, writes) in [(208, 278), (209, 300)] {
        let mut sim = machine(NetRules::V4_5, Preempt::None, None);
        let (from, to) = sim.os.connect(Transport::Unix, Buffers::default());
        let writer = move |step: u32, _| match step {
            600 => Op::Exit,
            _ if step % 2 == 1 => Op::Report { series: 0, value: 0 },
            _ => Op::Send { socket: from, bytes: 100 },
        };
        sim.spawn(CpuId(0), task("writer", writer));
        sim.run(Ns::from_ms(5));
        assert_eq!(sim.samples.len(), 278, "it sleeps in the next");
        let reader = move |step, _| if step < reads { receive(to, 100) } else { Op::SleepFor(Ns::from_ms(100)) };
        sim.spawn(CpuId(1), task("reader", reader));
        sim.run(Ns::from_ms(50));
        assert_eq!(sim.samples.len(), writes, "after {reads} reads");
    }
}

#[test]
fn whoever_reads_to_the_end_sees_it() {
    for transport in [TCP, Transport::Unix] {
        let mut sim = machine(NetRules::V4_15, Preempt::None, None);
        let (from, to) = sim.os.connect(transport, Buffers::default());
        sim.spawn(
            CpuId(0),
            task("sender", move |step, _| match step {
                0 => Op::Send { socket: from, bytes: 1_000 },
                1 => Op::SleepFor(Ns::from_ms(5)),
                2 => Op::Shutdown { socket: from },
                _ => Op::Exit,
            }),
        );
        sim.spawn(
            CpuId(1),
            task("reader", move |step, last| match (step, last.value) {
                (0, _) => receive(to, 600),
                (1, got) => Op::Report { series: 0, value: got },
                // Asks for more than there will ever be.
                (2, _) => receive(to, 600),
                (3, got) => Op::Report { series: 1, value: got },
                (4, _) => receive(to, 600),
                (5, got) => Op::Report { series: 2, value: got },
                _ => Op::Exit,
            }),
        );
        assert_eq!(sim.run(Ns::from_ms(100)), End::Finished);
        let values: Vec<u64> = sim.samples.iter().map(|it| it.value).collect();
        assert_eq!(values, [600, 400, 0], "{transport:?}");
    }
}

#[test]
fn a_sender_sleeps_while_its_window_is_closed_and_is_woken_by_what_is_read() {
    for net in VERSIONS {
        let wakeups = Wakeups::default();
        let mut sim = machine(net, Preempt::None, Some(Box::new(wakeups.clone())));
        let asked = Some(4_096 + 256);
        let buffers = Buffers { send: asked, receive: asked };
        let (from, to) = sim.os.connect(Transport::Tcp { nodelay: false }, buffers);
        const MESSAGES: u32 = 50;
        let sends = sim.spawn(
            CpuId(0),
            task("sender", move |step, _| match step {
                _ if step < MESSAGES => Op::Send { socket: from, bytes: 4_096 },
                MESSAGES => Op::Shutdown { socket: from },
                _ => Op::Exit,
            }),
        );
        let reads = sim.spawn(
            CpuId(1),
            task("reader", move |step, last| match step % 2 {
                _ if step > 0 && step % 2 == 0 && last.value == 0 => Op::Exit,
                0 => Op::Work(Cycles(50_000)),
                _ => Op::Receive { socket: to, bytes: 4_096, how: Receive::default() },
            }),
        );
        assert_eq!(sim.run(Ns::from_ms(1_000)), End::Finished, "{net:?}");
        // A window holds about one message, so each read lets the sender go on.
        let woken = wakeups.of(reads, sends);
        assert!((20..=110).contains(&woken), "{net:?}: {woken}");
    }
}

/// A sender of 60 small messages without an answer, more than are acknowledged at once in the beginning; what its peer gets, who begins to
/// read after 5 ms.
fn small_messages(nodelay: bool) -> Vec<u64> {
    let mut sim = machine(NetRules::V4_15, Preempt::None, None);
    let (from, to) = sim.os.connect(Transport::Tcp { nodelay }, Buffers::default());
    let sender = move |step, _| if step < 60 { Op::Send { socket: from, bytes: 100 } } else { Op::Exit };
    sim.spawn(CpuId(0), task("sender", sender));
    sim.run(Ns::from_ms(5));
    sim.spawn(
        CpuId(1),
        task("reader", move |step, last| match step {
            0 | 2 => Op::Receive { socket: to, bytes: 10_000, how: Receive::default() },
            1 | 3 => Op::Report { series: 0, value: last.value },
            _ => Op::Exit,
        }),
    );
    sim.run(Ns::from_ms(500));
    sim.samples.iter().map(|it| it.value).collect()
}

#[test]
fn a_small_segment_is_held_back_while_another_is_unacknowledged() {
    assert_eq!(small_messages(true), [6_000]);
    // What gathered behind the first that was not acknowledged leaves when that has been read.
    let held = small_messages(false);
    assert!(held.len() == 2 && held[0] < 3_000 && held[0] + held[1] == 6_000, "{held:?}");
}

#[test]
fn what_is_on_its_way_is_at_most_the_window() {
    // Of v4.5, with buffers of a message and 256 bytes: the windows of half the receive buffer.
    let windows = [
        (64, 1_152),
        (128, 1_152),
        (256, 1_152),
        (1_024, 1_280),
        (2_048, 2_304),
        (3_312, 3_568),
        (4_096, 4_352),
        (8_192, 8_448),
        (16_384, 16_640),
    ];
    for (size, window) in windows {
        let mut sim = machine(NetRules::V4_5, Preempt::None, None);
        let asked = Some(size + 256);
        let buffers = Buffers { send: asked, receive: asked };
        let (from, to) = sim.os.connect(Transport::Tcp { nodelay: false }, buffers);
        sim.spawn(CpuId(0), task("sender", move |_, _| Op::Send { socket: from, bytes: size }));
        sim.run(Ns::from_ms(5));
        sim.spawn(
            CpuId(1),
            task("reader", move |step, last| match step {
                0 => Op::Receive { socket: to, bytes: 100_000, how: Receive::default() },
                1 => Op::Report { series: 0, value: last.value },
                _ => Op::SleepFor(Ns::from_ms(1_000)),
            }),
        );
        sim.run(Ns::from_ms(10));
        let queued = sim.samples[0].value;
        // Of what fits not all leaves: it goes in segments of half a window.
        assert!(queued <= window && queued > window / 2, "messages of {size} bytes: {queued} of {window}");
        assert!(size < 1_024 || queued == u64::from(size), "from 1 KiB on it has room for one message");
    }
}

/// Sends messages of random sizes until `bytes` are through; the peer reads in random portions. Returns what arrived.
fn stream(seed: u64) -> (u64, u64) {
    let mut chance = Prng::stream(seed, "net", 0);
    let net = VERSIONS[chance.below(3) as usize];
    let preempt = Preempt::ALL[chance.below(3) as usize];
    let mut sim = machine(net, preempt, None);
    let asked = |chance: &mut Prng| (chance.below(3) > 0).then(|| chance.between(1, 20_000) as u32);
    let buffers = Buffers { send: asked(&mut chance), receive: asked(&mut chance) };
    let transport = match chance.below(3) {
        0 => Transport::Unix,
        1 => Transport::Tcp { nodelay: true },
        _ => Transport::Tcp { nodelay: false },
    };
    let largest = 1 << chance.between(1, 17);
    let (from, to) = sim.os.connect(transport, buffers);
    let total = largest * chance.between(5, 200);
    let mut left = total;
    let mut sizes = Prng::stream(seed, "sender", 0);
    sim.spawn(
        CpuId(0),
        task("sender", move |step, _| {
            if step % 2 == 1 {
                return Op::Work(Cycles(sizes.below(3_000)));
            }
            if left == 0 {
                left = u64::MAX;
                return Op::Shutdown { socket: from };
            }
            if left == u64::MAX {
                return Op::Exit;
            }
            let bytes = sizes.between(1, largest).min(left);
            left -= bytes;
            Op::Send { socket: from, bytes: bytes as u32 }
        }),
    );
    let mut sizes = Prng::stream(seed, "reader", 0);
    sim.spawn(
        CpuId(chance.below(2) as u16),
        task("reader", move |step, last| match step % 3 {
            0 => Op::Work(Cycles(sizes.below(3_000))),
            1 => {
                let how = Receive { wait_all: sizes.below(2) == 0, discard: sizes.below(4) == 0 };
                Op::Receive { socket: to, bytes: sizes.between(1, largest) as u32, how }
            }
            _ if last.value == 0 => Op::Exit,
            _ => Op::Report { series: 0, value: last.value },
        }),
    );
    assert_eq!(sim.run(Ns::from_ms(3_600_000)), End::Finished, "seed {seed}: {net:?} {preempt:?} {buffers:?}");
    (sim.samples.iter().map(|it| it.value).sum(), total)
}

#[test]
fn random_streams_arrive_whole() {
    for seed in 0..300 {
        let (arrived, sent) = stream(seed);
        assert_eq!(arrived, sent, "seed {seed}");
    }
}

#[test]
fn the_timer_of_an_acknowledgement_that_has_gone_wakes_nobody() {
    for net in VERSIONS {
        let wakeups = Wakeups::default();
        let mut sim = machine(net, Preempt::None, Some(Box::new(wakeups.clone())));
        let (client, server) = sim.os.connect(TCP, Buffers::default());
        const ROUNDS: u32 = 30;
        // Each request comes in two parts. After the first the server sleeps with an acknowledgement to be sent within 40 ms; it goes with the
        // answer, 5 ms later, and then the server sleeps for the next request, which comes after 200 ms.
        let answers = sim.spawn(
            CpuId(0),
            task("server", move |step, _| match step % 2 {
                _ if step == 2 * ROUNDS => Op::Exit,
                0 => receive(server, 200),
                _ => Op::Send { socket: server, bytes: 100 },
            }),
        );
        sim.spawn(
            CpuId(1),
            task("client", move |step, _| match step % 5 {
                _ if step == 5 * ROUNDS => Op::Exit,
                0 => Op::SleepFor(Ns::from_ms(200)),
                1 | 3 => Op::Send { socket: client, bytes: 100 },
                2 => Op::SleepFor(Ns::from_ms(5)),
                _ => receive(client, 100),
            }),
        );
        assert_eq!(sim.run(Ns::from_ms(20_000)), End::Finished);
        let woken = wakeups.times(answers);
        assert!(woken <= 2 * ROUNDS as usize, "{net:?}: {woken} times for {ROUNDS} requests of two parts");
    }
}

#[test]
fn the_memory_of_datagrams_comes_back_when_a_batch_is_read() {
    // Thirteen datagrams of 2304 bytes with their overhead fit into 27648, the last overfilling it. Three are a quarter of it.
    for (udp_receive, dropped) in [(UdpReceive::Lockless, [13, 11, 10]), (UdpReceive::Batched, [13, 13, 10])] {
        // Of twenty that come behind six, of which so many were read.
        let drops = |reads: u32| {
            let mut sim = machine(NetRules { udp_receive, ..NetRules::V4_5 }, Preempt::None, None);
            let (from, to) = sim.os.connect(Transport::Udp, Buffers { send: None, receive: Some(13_824) });
            let send = move |count| {
                move |step, _| if step < count { Op::Send { socket: from, bytes: 1_024 } } else { Op::Exit }
            };
            sim.spawn(CpuId(0), task("sender", send(6)));
            sim.run(Ns::from_ms(1));
            let reader = move |step, _| if step < reads { receive(to, 1_024) } else { Op::SleepFor(Ns::from_ms(100)) };
            sim.spawn(CpuId(1), task("reader", reader));
            sim.run(Ns::from_ms(2));
            sim.spawn(CpuId(0), task("sender", send(20)));
            sim.run(Ns::from_ms(3));
            sim.os.udp_drops(to)
        };
        assert_eq!([0, 2, 3].map(drops), dropped, "{udp_receive:?}");
    }
}

/// Counts the interrupts by which one CPU asks another to call a function.
#[derive(Clone, Default)]
struct Calls(Rc<RefCell<u32>>);

impl Sink for Calls {
    fn event(&mut self, _at: Ns, _cpu: CpuId, event: &Event) {
        if *event == Event::IpiEntry(Ipi::CallFunctionSingle) {
            *self.0.borrow_mut() += 1;
        }
    }

    fn task(&mut self, _task: TaskId, _pid: u32, _comm: &str, _prio: i32) {}
}

#[test]
fn datagrams_are_left_to_the_cpu_that_allocated_them_since_v6_18() {
    for (net, reads, calls) in [(NetRules::V6_12, 100, 0), (NetRules::V6_18, 64, 0), (NetRules::V6_18, 65, 1)] {
        let counted = Calls::default();
        let mut sim = machine(net, Preempt::None, Some(Box::new(counted.clone())));
        let (from, to) = sim.os.connect(Transport::Udp, Buffers::default());
        // Afterwards it computes, so that its CPU has to be interrupted.
        let send = move |step, _| match step {
            0..100 => Op::Send { socket: from, bytes: 100 },
            100 => Op::RunFor(Ns::from_ms(3)),
            _ => Op::Exit,
        };
        sim.spawn(CpuId(0), task("sender", send));
        sim.run(Ns::from_ms(1));
        let before = *counted.0.borrow();
        let reader = move |step, _| if step < reads { receive(to, 100) } else { Op::SleepFor(Ns::from_ms(100)) };
        sim.spawn(CpuId(1), task("reader", reader));
        sim.run(Ns::from_ms(2));
        assert_eq!(*counted.0.borrow() - before, calls, "{reads}");
    }
}

/// Which CPUs tasks began to run on, in order.
#[derive(Clone, Default)]
struct Places(Rc<RefCell<Vec<(TaskId, CpuId)>>>);

impl Sink for Places {
    fn event(&mut self, _at: Ns, cpu: CpuId, event: &Event) {
        if let Event::SchedSwitch { next: Some(task), .. } = event {
            self.0.borrow_mut().push((*task, cpu));
        }
    }

    fn task(&mut self, _task: TaskId, _pid: u32, _comm: &str, _prio: i32) {}
}

#[test]
fn whoever_waits_is_told_of_an_end_without_the_hint_that_the_waker_sleeps_next() {
    for net in VERSIONS {
        for (ends, stays) in [(true, true), (false, false)] {
            // Two CPUs without a common cache: a sync wakeup brings the reader to the CPU of who wakes it.
            let places = Places::default();
            let cpus = "pack:1 l3:2 core:1 pu:1";
            let mut sim = machine_of(cpus, net, Preempt::None, Some(Box::new(places.clone())));
            let (from, to) = sim.os.connect(TCP, Buffers::default());
            let reads =
                task("reader", move |step, _| if step == 0 { receive(to, 100) } else { Op::Work(Cycles(1_000)) });
            let reader = sim.spawn(CpuId(1), reads);
            sim.spawn(
                CpuId(0),
                task("sender", move |step, _| match step {
                    0 => Op::SleepFor(Ns::from_ms(5)),
                    2 if ends => Op::Shutdown { socket: from },
                    2 => Op::Send { socket: from, bytes: 100 },
                    1 => Op::Work(Cycles(3_000_000)),
                    _ => Op::Exit,
                }),
            );
            sim.run(Ns::from_ms(100));
            let ran: Vec<CpuId> = places.0.borrow().iter().filter(|it| it.0 == reader).map(|it| it.1).collect();
            assert!(ran.len() > 1, "{net:?}: it was woken");
            assert_eq!(ran[0] == ran[1], stays, "{net:?}: {ran:?}");
        }
    }
}

/// When a reader has got sixty messages of 2000 bytes, one a millisecond, each of which waits until the one before is acknowledged.
fn nagled_messages(full_segment: FullSegment) -> Ns {
    let mut sim = machine(NetRules { full_segment, ..NetRules::V6_1 }, Preempt::None, None);
    let (from, to) = sim.os.connect(Transport::Tcp { nodelay: false }, Buffers::default());
    let sends = move |step, _| match step {
        _ if step >= 120 => Op::Exit,
        _ if step % 2 == 0 => Op::SleepFor(Ns::from_ms(1)),
        _ => Op::Send { socket: from, bytes: 2_000 },
    };
    sim.spawn(CpuId(0), task("sender", sends));
    let mut left = 60 * 2_000;
    sim.spawn(
        CpuId(1),
        task("reader", move |_, last| {
            left -= last.value;
            if left == 0 { Op::Exit } else { Op::Receive { socket: to, bytes: 2_000, how: Receive::default() } }
        }),
    );
    assert_eq!(sim.run(Ns::from_ms(10_000)), End::Finished);
    sim.now()
}

#[test]
fn a_full_segment_that_ends_a_send_is_acknowledged_once_it_is_read() {
    let (plain, pushes) = (nagled_messages(FullSegment::Plain), nagled_messages(FullSegment::Pushes));
    assert!(pushes < Ns::from_ms(80), "{pushes:?}");
    assert!(plain > Ns::from_ms(90), "some wait for the timer of an acknowledgement: {plain:?}");
}

/// When a reader who looks after a millisecond has got this many messages of 64 bytes over a buffer of 2304, and their sender's end, in ms.
fn small_window(net: NetRules, messages: u32) -> u64 {
    let mut sim = machine(net, Preempt::None, None);
    let small = Buffers { send: Some(320), receive: Some(320) };
    let (from, to) = sim.os.connect(Transport::Tcp { nodelay: false }, small);
    sim.spawn(
        CpuId(0),
        task("sender", move |step, _| match step {
            _ if step < messages => Op::Send { socket: from, bytes: 64 },
            _ if step == messages => Op::Shutdown { socket: from },
            _ => Op::Exit,
        }),
    );
    let reads = move |step, last: Outcome| match step {
        0 => Op::SleepFor(Ns::from_ms(1)),
        2.. if last.value == 0 => Op::Exit,
        _ => receive(to, 64),
    };
    sim.spawn(CpuId(1), task("reader", reads));
    assert_eq!(sim.run(Ns::from_ms(5_000)), End::Finished, "{messages}");
    sim.now().0 / 1_000_000
}

#[test]
fn a_window_without_room_for_the_next_segment_is_probed() {
    // 64, 64 and 576 bytes come before anything is read, and leave 448 of 1152 for the next 576. Once all is read half of the buffer makes that
    // 1152 again; of the 864 that the measured share allows, a window becomes 576 only if it is 288 or less. Whoever is left then: the reader
    // alone, or a sender who sleeps for room.
    for messages in [20, 100] {
        assert_eq!(small_window(NetRules::V6_1, messages), 1, "{messages}");
        assert_eq!(small_window(NetRules::V6_12, messages), 205, "{messages}");
    }
}
