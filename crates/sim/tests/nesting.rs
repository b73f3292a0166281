//! Tracepoints of interrupts and softirqs: each entry has its exit on the same CPU, nothing else is entered or switched in between that a
//! kernel would not, and what a softirq does was raised.

use super::interrupts::{CPU1, CPU2, finish, machine, net, over_loopback, pinned};
use super::invariants::case::{Case, KERNELS};
use machine::idle::IdleRules;
use os::irq::{After, Cause, IrqRules, KsoftirqdRunning, SoftIrq, SoftWork};
use os::net::Transport;
use sched::trace::{Context, Event, Interrupt, Ipi, Sink};
use sim::engine::LinuxSim;
use sim::program::Op;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use units::{CpuId, CpuMask, Ns};

/// What a CPU is in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum In {
    Handler(u32),
    LocalTimer(u8),
    Ipi(Ipi),
    Softirq(u8),
}

#[derive(Default)]
struct Seen {
    inside: BTreeMap<CpuId, Vec<In>>,
    raised: BTreeMap<CpuId, BTreeSet<u8>>,
    /// Events by their kind, and softirqs that were entered.
    counts: BTreeMap<&'static str, u64>,
    softirqs: BTreeSet<u8>,
    /// Softirqs that may begin on a CPU where nobody has raised them since they did last.
    left_by_others: &'static [u8],
    context: Option<Interrupt>,
}

#[derive(Clone, Default)]
struct Nesting(Rc<RefCell<Seen>>);

impl Seen {
    fn count(&mut self, kind: &'static str) {
        *self.counts.entry(kind).or_default() += 1;
    }

    fn enter(&mut self, cpu: CpuId, what: In) {
        let inside = self.inside.entry(cpu).or_default();
        // Interrupts are off in a handler, and softirqs are not interrupted here: a path ends before the next begins.
        assert_eq!(*inside, [], "{cpu} enters {what:?}");
        inside.push(what);
        let context = if let In::Softirq(_) = what { Interrupt::Softirq } else { Interrupt::Hardirq };
        assert_eq!(self.context, Some(context), "{cpu} enters {what:?}");
    }

    fn leave(&mut self, cpu: CpuId, what: In) {
        assert_eq!(self.inside.entry(cpu).or_default().pop(), Some(what), "{cpu}");
    }

    fn pass(&mut self, cpu: CpuId, event: &Event) {
        match *event {
            Event::IrqHandlerEntry { irq, ref name } => {
                assert!(!name.is_empty());
                self.count("handler");
                self.enter(cpu, In::Handler(irq));
            }
            Event::IrqHandlerExit { irq } => self.leave(cpu, In::Handler(irq)),
            Event::LocalTimerEntry { vector } => {
                self.count("local timer");
                self.enter(cpu, In::LocalTimer(vector));
            }
            Event::LocalTimerExit { vector } => self.leave(cpu, In::LocalTimer(vector)),
            Event::IpiEntry(ipi) => {
                self.count(match ipi {
                    Ipi::Reschedule => "reschedule",
                    Ipi::CallFunctionSingle => "call function",
                    Ipi::IrqWork => "irq work",
                });
                self.enter(cpu, In::Ipi(ipi));
            }
            Event::IpiExit(ipi) => self.leave(cpu, In::Ipi(ipi)),
            Event::SoftirqRaise { vec } => {
                self.raised.entry(cpu).or_default().insert(vec);
            }
            Event::SoftirqEntry { vec } => {
                self.count("softirq");
                self.softirqs.insert(vec);
                let raised = self.raised.entry(cpu).or_default().remove(&vec);
                assert!(raised || self.left_by_others.contains(&vec), "{cpu}: softirq {vec} was not raised");
                self.enter(cpu, In::Softirq(vec));
            }
            Event::SoftirqExit { vec } => self.leave(cpu, In::Softirq(vec)),
            Event::SchedSwitch { .. } | Event::CpuIdle { .. } => {
                assert_eq!(*self.inside.entry(cpu).or_default(), [], "{cpu}: {event:?}");
            }
            _ => {}
        }
        self.context = None;
    }
}

impl Sink for Nesting {
    fn event(&mut self, _time: Ns, cpu: CpuId, event: &Event) {
        self.0.borrow_mut().pass(cpu, event);
    }

    fn context(&mut self, context: Context) {
        self.0.borrow_mut().context = Some(context.interrupt);
    }
}

impl Nesting {
    /// How often each kind was entered, once all have been left; and which softirqs were.
    fn entered(&self) -> (BTreeMap<&'static str, u64>, Vec<u8>) {
        let seen = self.0.borrow();
        assert!(seen.inside.values().all(Vec::is_empty), "{:?}", seen.inside);
        (seen.counts.clone(), seen.softirqs.iter().copied().collect())
    }
}

/// What `/proc/interrupts` and `/proc/softirqs` count, of all CPUs together; nothing of what has not been.
fn counted<const COSTS: bool>(sim: &LinuxSim<COSTS>) -> BTreeMap<&'static str, u64> {
    let irq = &sim.os.irq;
    let mut counts = BTreeMap::new();
    for cpu in (0..sim.sched.nr_cpus()).map(CpuId::new) {
        let stat = irq.counted(cpu);
        for (kind, count) in [
            ("handler", irq.irqs().iter().map(|line| line.count(cpu)).sum::<u64>()),
            ("local timer", stat.apic_timer_irqs.into()),
            ("reschedule", stat.irq_resched_count.into()),
            ("call function", stat.irq_call_count.into()),
            ("irq work", stat.apic_irq_work_irqs.into()),
            ("softirq", stat.softirqs.into_iter().map(u64::from).sum()),
        ] {
            *counts.entry(kind).or_default() += count;
        }
    }
    counts.retain(|_, count| *count > 0);
    counts
}

#[test]
fn entries_and_exits_nest_on_every_cpu() {
    // Wakeups of other CPUs are calls of functions since v5.8.
    for (kernels, call) in [(&KERNELS[..3], &[][..]), (&KERNELS[3..], &["call function"])] {
        let mut kinds = BTreeMap::new();
        for number in 0..40 {
            let case = Case { costs: true, disputes: number % 3 == 0, ..Case::random_among(20_000 + number, kernels) };
            let mut sim = case.boot::<true>(case.prices());
            let nesting = Nesting::default();
            // CPUs that go away leave what was raised there to others.
            nesting.0.borrow_mut().left_by_others = &[1, 3, 4, 7];
            sim.sched.arch.set_sink(Box::new(nesting.clone()));
            let (starts, _) = case.tasks(&mut sim);
            for start in starts {
                start.go(&mut sim, |_| ());
            }
            sim.run(case.deadline());
            let (seen, _) = nesting.entered();
            assert_eq!(counted(&sim), seen, "{case:?}");
            kinds.extend(seen);
        }
        let expected = [call, &["handler", "local timer", "reschedule", "softirq"]].concat();
        assert_eq!(kinds.into_keys().collect::<Vec<_>>(), expected);
    }
}

#[test]
fn handlers_raise_what_softirqs_do() {
    let nesting = Nesting::default();
    let mut sim = machine(IrqRules::V4_15, IdleRules::V6_1, Some(Box::new(nesting.clone())));
    sim.start_noise(1, None);
    let eth = sim.request_irq("eth0", CpuMask::single(CPU1));
    let disk = sim.request_irq("sda", CpuMask::single(CPU2));
    for cpu in [CPU1, CPU2] {
        sim.spawn(CpuId(0), pinned("hog", cpu, [Op::RunFor(Ns::from_ms(60))]));
    }
    let sleeper = sim.spawn(CpuId(0), pinned("sleeper", CPU2, [Op::BlockIo(Ns::from_ms(50))]));
    sim.raise_irq(Ns::from_ms(10), eth, net(20));
    let wake = SoftWork { vector: SoftIrq::Block, rounds: 1, after: After::Wake(sleeper) };
    sim.raise_irq(Ns::from_ms(12), disk, Cause::Work(wake));
    finish(&mut sim);
    let (counts, softirqs) = nesting.entered();
    // The two, and that of the disk which the sleeper waits for.
    assert_eq!(counts["handler"], 3);
    // Rounds of NET_RX up to the limit, then ksoftirqd; the wheel's timers of the noise; ticks.
    assert_eq!(softirqs, [1, 3, 4, 7, 9]);
}

#[test]
fn loopback_enters_its_softirq_in_who_sends_or_leaves_it_to_ksoftirqd() {
    for rule in [KsoftirqdRunning::Beside, KsoftirqdRunning::Yields] {
        let nesting = Nesting::default();
        let mut sim = over_loopback(rule, Transport::Tcp { nodelay: true }, 20, Vec::new());
        // A sender's softirq leaves what else waits for the same vector.
        nesting.0.borrow_mut().left_by_others = &[3];
        sim.sched.arch.set_sink(Box::new(nesting.clone()));
        finish(&mut sim);
        let (counts, softirqs) = nesting.entered();
        assert!(counts["softirq"] > 20 && softirqs.contains(&3), "{counts:?} {softirqs:?}");
    }
}
