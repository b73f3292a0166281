//! Equivalence: what must not change a run. Random setups of the invariants' kind, compared by a digest of every tracepoint.

use super::invariants::case::{Case, KERNELS, Kind, Step};
use machine::prices::Prices;
use sched::sched::TaskId;
use sched::trace::{Event, Sink};
use sim::engine::{End, LinuxSim};
use std::cell::RefCell;
use std::fmt::Write;
use std::path::Path;
use std::rc::Rc;
use units::{CpuId, Ns, Ps};

/// FNV-1a over the text of what passes.
struct Digest(u64);

impl Write for Digest {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.0 = text.bytes().fold(self.0, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
        Ok(())
    }
}

struct Trace {
    digest: Digest,
    events: u64,
}

struct Shared(Rc<RefCell<Trace>>);

impl Sink for Shared {
    fn event(&mut self, time: Ns, cpu: CpuId, event: &Event) {
        let mut trace = self.0.borrow_mut();
        trace.events += 1;
        writeln!(trace.digest, "{time} {cpu} {event:?}").expect("a digest takes everything");
    }
    fn task(&mut self, task: TaskId, pid: u32, comm: &str, prio: i32) {
        writeln!(self.0.borrow_mut().digest, "{task:?} {pid} {comm} {prio}").expect("a digest takes everything");
    }
}

#[derive(Clone, Copy)]
struct Listening {
    trace: bool,
    profile: bool,
}

const SILENT: Listening = Listening { trace: false, profile: false };
const TRACED: Listening = Listening { trace: true, profile: false };

/// What a run comes to without anybody listening: everything that the scheduler and the machine remember of it.
fn outcome<const COSTS: bool>(sim: &LinuxSim<COSTS>, end: End) -> String {
    let mut text = format!("{end:?} at {} after {} events, {} wakeups\n", sim.now(), sim.events, sim.sched.nr_wakeups);
    for (cpu, rq) in sim.sched.rq.iter() {
        let arch = &sim.sched.arch;
        let cfs = &sim.sched.cfs_rq[rq.cfs];
        writeln!(text, "{cpu} {} {} {:?}", rq.clock, rq.nr_switches, arch.residency(cpu)).expect("text");
        writeln!(text, "{} {:?} {} {:?}", arch.now(cpu), cfs.avg, cfs.min_vruntime, sim.busy(cpu)).expect("text");
    }
    // Without costs nobody counts transfers.
    writeln!(text, "{:?}", sim.sched.arch.line_totals().took).expect("text");
    text
}

struct Ran<const COSTS: bool> {
    sim: LinuxSim<COSTS>,
    outcome: String,
    trace: Trace,
}

fn run<const COSTS: bool>(case: &Case, prices: Prices, listening: Listening) -> Ran<COSTS> {
    let mut sim = case.boot::<COSTS>(prices);
    let trace = Rc::new(RefCell::new(Trace { digest: Digest(0xcbf2_9ce4_8422_2325), events: 0 }));
    if listening.trace {
        sim.sched.arch.set_sink(Box::new(Shared(trace.clone())));
    }
    if listening.profile {
        sim.sched.arch.start_profile(units::Ps::ZERO);
    }
    let (starts, _) = case.tasks(&mut sim);
    for start in starts {
        start.go(&mut sim, |_| ());
    }
    let end = sim.run(case.deadline());
    drop(sim.sched.arch.take_sink());
    let outcome = outcome(&sim, end);
    let trace = Rc::into_inner(trace).expect("the listener is gone").into_inner();
    Ran { sim, outcome, trace }
}

fn cases(count: u64, costs: bool) -> impl Iterator<Item = Case> {
    // Every third has paths that wait for answers.
    (0..count).map(move |number| Case { costs, disputes: number % 3 == 0, ..Case::random(10_000 + number) })
}

/// `listening` against nobody, or against a trace.
fn same<const A: bool, const B: bool>(case: &Case, a: (Prices, Listening), b: (Prices, Listening)) {
    let (ours, theirs) = (run::<A>(case, a.0, a.1), run::<B>(case, b.0, b.1));
    assert_eq!(ours.outcome, theirs.outcome, "{case:?}");
    if a.1.trace && b.1.trace {
        let sums = |ran: &Trace| (ran.events, ran.digest.0);
        assert!(ours.trace.events > 0, "something happened");
        assert_eq!(sums(&ours.trace), sums(&theirs.trace), "{case:?}");
    }
}

#[test]
fn the_same_setup_gives_the_same_trace() {
    for case in cases(60, true) {
        same::<true, true>(&case, (case.prices(), TRACED), (case.prices(), TRACED));
    }
    for case in cases(30, false) {
        same::<false, false>(&case, (case.prices(), TRACED), (case.prices(), TRACED));
    }
}

/// The same in debug and release builds, and on every machine: one digest stands in a file. When a change of behaviour is meant,
/// `UPDATE_DIGEST=1` writes the new one.
#[test]
fn a_trace_is_the_same_in_every_build() {
    // A line for the kernels of v4, and one for those of v6: what changes one of them alone is seen as such.
    let now: String = [&KERNELS[..3], &KERNELS[3..]].map(digest_among).concat();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/invariants/digest.txt");
    if std::env::var_os("UPDATE_DIGEST").is_some() {
        std::fs::write(&path, &now).expect("a writable digest");
    }
    assert_eq!(std::fs::read_to_string(&path).unwrap_or_default(), now, "a digest of 24 traces has changed");
}

/// A line with the digest of 24 traces of random setups with one of these kernels.
fn digest_among(kernels: &[&'static str]) -> String {
    let mut digest = Digest(0xcbf2_9ce4_8422_2325);
    for number in 0..24 {
        let case = Case { costs: true, ..Case::random_among(10_000 + number, kernels) };
        let trace = run::<true>(&case, case.prices(), TRACED).trace;
        writeln!(digest, "{} {}", trace.events, trace.digest.0).expect("a digest takes everything");
    }
    format!("{:016x}\n", digest.0)
}

#[test]
fn all_prices_zero_is_the_cost_model_off() {
    for case in cases(90, false) {
        same::<true, false>(&case, (case.prices(), TRACED), (case.prices(), TRACED));
    }
}

#[test]
fn who_listens_changes_nothing() {
    for case in cases(60, true) {
        same::<true, true>(&case, (case.prices(), SILENT), (case.prices(), TRACED));
        let profiled = Listening { trace: true, profile: true };
        same::<true, true>(&case, (case.prices(), TRACED), (case.prices(), profiled));
    }
}

/// Every CPU's time is in the profile: what its tasks and the kernel took, and what it idled.
#[test]
fn a_profile_holds_all_time_of_all_cpus() {
    let mut disputed = 0;
    for case in cases(90, true) {
        let mut ran = run::<true>(&case, case.prices(), Listening { trace: false, profile: true });
        assert!(ran.outcome.starts_with("Finished"), "{}", ran.outcome);
        // Whose way into idleness has put something off is told what that took.
        let later = ran.sim.now() + Ns::from_us(100);
        ran.sim.idle(later);
        let arch = &ran.sim.sched.arch;
        let cpus = || (0..ran.sim.sched.nr_cpus()).map(CpuId::new);
        // All tasks are gone: each CPU idles, which is booked when it ends, or is on the way there.
        let until = |cpu| match arch.idle_state(cpu) {
            Some((_, since)) => (Ps::from(ran.sim.now() + Ns::from_ms(1)).max(arch.now(cpu)), since),
            None => (arch.now(cpu), arch.now(cpu)),
        };
        let clocks: u64 = cpus().map(|cpu| until(cpu).0.0).sum();
        let idles_still: u64 = cpus().map(|cpu| (until(cpu).0 - until(cpu).1).0).sum();
        let stacks = arch.profile().expect("it was started").stacks();
        let booked: u64 = stacks.iter().map(|(_, time)| time.0).sum();
        assert_eq!(booked + idles_still, clocks, "{case:?}");
        let idle: u64 = cpus().flat_map(|cpu| arch.residency(cpu).idle.clone()).map(|time| time.0).sum();
        let idle_booked = |frames: &[_]| matches!(frames.last(), Some(machine::profile::Frame::Idle(_)));
        let in_idle: u64 = stacks.iter().filter(|(frames, _)| idle_booked(frames)).map(|(_, time)| time.0).sum();
        assert_eq!(in_idle, idle, "idle time in the profile, and in the residencies");
        disputed += arch.disputed_lines();
    }
    assert!(disputed > 10, "{disputed} lines were disputed");
}

/// Switches, and what each task ran, with the CPUs of the two sockets exchanged.
struct Mirrored {
    trace: Rc<RefCell<Trace>>,
    flip: u16,
}

impl Sink for Mirrored {
    fn event(&mut self, time: Ns, cpu: CpuId, event: &Event) {
        // Other events name CPUs.
        if matches!(event, Event::SchedSwitch { .. } | Event::SchedStatRuntime { .. }) {
            let mut trace = self.trace.borrow_mut();
            trace.events += 1;
            writeln!(trace.digest, "{time} {} {event:?}", cpu.0 ^ self.flip).expect("a digest takes everything");
        }
    }
}

/// The ensembles of `case` on one socket of two, each task bound to a CPU.
///
/// Bound, because CPUs are not alike to the kernel: searches begin at the lowest number, the first idle CPU of the whole
/// machine balances for all others, and the first CPU of a group for the group. Without costs, because that first CPU's
/// work takes time; without groups, because it ages the others' load in another order, and a group's load is one sum of all
/// CPUs'. Within the socket the order stays, so that what happens at one instant happens in the same order.
fn on_socket(case: &Case, socket: u16) -> (u64, u64, u64) {
    let mut sim = case.boot::<false>(case.prices());
    let trace = Rc::new(RefCell::new(Trace { digest: Digest(0xcbf2_9ce4_8422_2325), events: 0 }));
    sim.sched.arch.set_sink(Box::new(Mirrored { trace: trace.clone(), flip: 4 * socket }));
    let (starts, _) = case.tasks(&mut sim);
    for (number, mut start) in starts.into_iter().enumerate() {
        start.on = number % 4 + 4 * usize::from(socket);
        start.spec.cpus = Some(std::iter::once(CpuId::new(start.on)).collect());
        start.go(&mut sim, |_| ());
    }
    assert_eq!(sim.run(case.deadline()), End::Finished);
    let trace = trace.borrow();
    (trace.events, trace.digest.0, sim.now().0)
}

#[test]
fn exchanging_two_sockets_changes_nothing_for_bound_tasks() {
    let mut compared = 0;
    for mut case in cases(150, false) {
        case.machine = "pack:2 numa:1 core:4 pu:1".to_string();
        case.groups.clear();
        // Children may run anywhere.
        case.ensembles.retain(|ensemble| !matches!(ensemble.kind, Kind::Forks { .. }));
        for steps in case.ensembles.iter_mut().flat_map(|ensemble| &mut ensemble.members) {
            steps.retain(|step| !matches!(step, Step::Affinity(_)));
        }
        compared += u64::from(!case.ensembles.is_empty());
        assert_eq!(on_socket(&case, 0), on_socket(&case, 1), "{case:?}");
    }
    assert!(compared > 100, "most cases have tasks");
}
