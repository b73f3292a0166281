//! System calls as paths of their CPU: one with the way into the kernel, unless an interrupt comes on it.

use crate::booted;
use crate::interrupts::{CPU1, net, pinned};
use machine::prices::Prices;
use os::{OsRules, paths};
use sim::engine::{End, LinuxSim};
use sim::program::Op;
use units::{CpuId, CpuMask, Cycles, Ns};

/// Two CPUs of 1 GHz on which nothing takes time but interrupts and the way into the kernel.
const IRQ: Ns = Ns(1_000);
const ENTRY: Ns = Ns(10_000);

fn machine() -> LinuxSim<true> {
    let mut prices = Prices::free();
    prices.paths[paths::COMMON_INTERRUPT.0 as usize] = Cycles(IRQ.0);
    prices.paths[paths::ENTRY_SYSCALL.0 as usize] = Cycles(ENTRY.0);
    booted("pack:1 core:2 pu:1", prices, OsRules::V6_1)
}

#[test]
fn a_call_that_wakes_nobody_is_one_event() {
    let events = |calls: usize| {
        let mut sim = machine();
        let pipe = sim.os.create_pipe();
        sim.spawn(CpuId(0), pinned("writer", CpuId(0), (0..calls).map(move |_| Op::Write { pipe, bytes: 1 })));
        assert_eq!(sim.run(Ns::from_ms(4)), End::Finished);
        sim.events
    };
    assert_eq!(events(200) - events(100), 100);
}

#[test]
fn an_interrupt_on_the_way_in_comes_before_the_call() {
    let read_at = |irq_at: u64| {
        let mut sim = machine();
        let pipe = sim.os.create_pipe();
        let irq = sim.request_irq("device", CpuMask::single(CpuId(0)));
        sim.raise_irq(Ns(irq_at), irq, net(1));
        sim.spawn(CpuId(1), pinned("reader", CPU1, [Op::Read { pipe, bytes: 1 }, Op::Report { series: 1, value: 0 }]));
        sim.spawn(CpuId(0), pinned("writer", CpuId(0), [Op::RunFor(Ns::from_ms(2)), Op::Write { pipe, bytes: 1 }]));
        assert_eq!(sim.run(Ns::from_ms(4)), End::Finished);
        sim.samples[0].at
    };
    let entered = Ns::from_ms(2) + ENTRY;
    assert_eq!(read_at(2_005_000), entered + IRQ);
    assert_eq!(read_at(2_015_000), entered, "it is written by then");
}
