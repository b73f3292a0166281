//! When TCP acknowledges.

use super::*;
use os::net::rules::{Pingpong, QuickAck};

/// What a reader finds of two small messages that came after it had sent twenty itself.
fn after_an_answer(quick_ack: QuickAck) -> u64 {
    let mut sim = machine(NetRules { quick_ack, ..NetRules::V6_1 }, Preempt::None, None);
    let (from, to) = sim.os.connect(Transport::Tcp { nodelay: false }, Buffers::default());
    sim.spawn(
        CpuId(0),
        task("sender", move |step, _| match step {
            0 | 3 | 4 => Op::Send { socket: from, bytes: 100 },
            1 => receive(from, 20 * 100),
            2 => Op::SleepFor(Ns::from_ms(50)),
            _ => Op::SleepFor(Ns::from_ms(1_000)),
        }),
    );
    sim.spawn(
        CpuId(1),
        task("reader", move |step, last| match step {
            0 => receive(to, 100),
            // So long that what follows is no answer.
            1 => Op::SleepFor(Ns::from_ms(60)),
            22 => Op::SleepFor(Ns::from_ms(200)),
            23 => Op::Receive { socket: to, bytes: 1_000, how: Receive::default() },
            24 => Op::Report { series: 0, value: last.value },
            25.. => Op::Exit,
            _ => Op::Send { socket: to, bytes: 100 },
        }),
    );
    sim.run(Ns::from_ms(900));
    sim.samples[0].value
}

/// What a reader that has given `answers` answers, one every `apart`, finds of two small messages 10 ms after they were sent.
fn after_answers(pingpong: Pingpong, answers: u32, apart: Ns) -> u64 {
    let mut sim = machine(NetRules { pingpong, ..NetRules::V5_4 }, Preempt::None, None);
    let (from, to) = sim.os.connect(Transport::Tcp { nodelay: false }, Buffers::default());
    sim.spawn(
        CpuId(0),
        task("sender", move |step, _| match (step / 3, step % 3) {
            (round, _) if round == answers + 1 => Op::SleepFor(Ns::from_ms(1_000)),
            (_, 0) => Op::SleepFor(apart),
            (round, 2) if round < answers => receive(from, 100),
            _ => Op::Send { socket: from, bytes: 100 },
        }),
    );
    sim.spawn(
        CpuId(1),
        task("reader", move |step, last| match step {
            _ if step < 2 * answers && step % 2 == 0 => receive(to, 100),
            _ if step < 2 * answers => Op::Send { socket: to, bytes: 100 },
            _ if step == 2 * answers => Op::SleepFor(apart + Ns::from_ms(10)),
            _ if step == 2 * answers + 1 => Op::Receive { socket: to, bytes: 1_000, how: Receive::default() },
            _ if step == 2 * answers + 2 => Op::Report { series: 0, value: last.value },
            _ => Op::Exit,
        }),
    );
    sim.run(Ns::from_ms(900));
    sim.samples[0].value
}

/// An interactive connection's acknowledgement waits for an answer, and so does the second small message for that.
#[test]
fn one_answer_makes_a_connection_interactive_and_in_v5_4_three_that_are_not_in_one_jiffy() {
    let (at_once, tick) = (Ns(1), Ns::from_ms(20));
    for pingpong in [Pingpong::Answer, Pingpong::AnswerAgain] {
        assert_eq!(after_answers(pingpong, 1, tick), 100, "{pingpong:?}");
    }
    assert_eq!(after_answers(Pingpong::ThreeAnswers, 2, tick), 200);
    assert_eq!(after_answers(Pingpong::ThreeAnswers, 3, tick), 100);
    assert_eq!(after_answers(Pingpong::ThreeAnswers, 3, at_once), 200);
}

#[test]
fn segments_with_nothing_to_acknowledge_use_up_acknowledgements_sent_at_once_until_v6_5() {
    assert_eq!(after_an_answer(QuickAck::Segments), 100, "the second waits until the first is acknowledged");
    assert_eq!(after_an_answer(QuickAck::Acknowledging), 200);
}
