//! What a task's run time takes from where it runs and from what runs beside it.

use machine::description::{Description, How, builtin, parse};
use machine::hardware::Hardware;
use machine::idle::{IdleOptions, IdleRules, Way};
use machine::prices::{IdleState, Prices};
use machine::smt::{SmtPrices, WorkKind};
use machine::topology::{Distance, Numbering, Topology, from_synthetic};
use os::memory::{RegionId, RegionSpec};
use os::preempt::Preempt;
use os::{Os, OsRules};
use sched::core::{Boot, Sched};
use sched::versions::V6_1;
use sim::engine::{End, LinuxSim, Sim};
use sim::program::{Op, Outcome, Program, Steps, TaskSpec};
use units::{CpuId, CpuMask, Cycles, Ns, Ps};

/// Does so much work, and reports how long it took in us.
struct Worker {
    series: u32,
    /// What it touches first: a region and a rate.
    touch: Option<(RegionId, u64)>,
    work: Option<Ns>,
    began: Option<Ns>,
}

impl Program for Worker {
    fn next(&mut self, last: Outcome) -> Op {
        if let Some((region, bytes_per_second)) = self.touch.take() {
            return Op::Touch { region, bytes_per_second };
        }
        if let Some(work) = self.work.take() {
            self.began = Some(last.now);
            return Op::WorkFor(work);
        }
        match self.began.take() {
            Some(began) => Op::Report { series: self.series, value: (last.now - began).0 / 1000 },
            None => Op::Exit,
        }
    }
}

fn machine(topology: &Topology, prices: Prices) -> LinuxSim<true> {
    let hardware = Hardware::new(topology.clone(), prices, V6_1.layout(), IdleRules::V6_1, 1);
    let boot = Boot::new(V6_1, topology.cpu_topology(), 250);
    let rules = OsRules { preempt: Preempt::None, ..OsRules::V6_1 };
    Sim::new(Sched::new(hardware, boot), Os::new(rules, 250))
}

/// A task that works for `ms` milliseconds on its CPU.
fn worker(series: u32, cpu: usize, ms: u64) -> TaskSpec {
    let program = Worker { series, touch: None, work: Some(Ns::from_ms(ms)), began: None };
    TaskSpec { cpus: Some(CpuMask::single(CpuId::new(cpu))), ..TaskSpec::new("worker", program) }
}

/// How long each took, in us.
fn took(mut sim: LinuxSim<true>, tasks: Vec<TaskSpec>) -> Vec<u64> {
    // CPUs that wait for work have halted.
    sim.idle(Ns::from_ms(1));
    let mut took = vec![0; tasks.len()];
    for task in tasks {
        sim.spawn(CpuId(0), task);
    }
    sim.run(Ns::from_ms(10_000));
    for sample in &sim.samples {
        took[sample.series as usize] = sample.value;
    }
    took
}

fn near(found: u64, expected: u64) -> bool {
    found.abs_diff(expected) * 100 <= expected
}

#[test]
fn a_thread_is_as_fast_as_its_sibling_leaves_it_until_that_halts() {
    let topology = from_synthetic("pack:1 l3:1 core:2 pu:2", "test", Numbering::LinuxX86).expect("a valid machine");
    let smt = SmtPrices { pair: [[500, 800], [750, 1000]], threads: Vec::new() };
    let run = |kinds: [WorkKind; 2], cpus: [usize; 2]| {
        let prices = Prices { smt: smt.clone(), ..Prices::free() };
        let tasks = [0, 1].map(|n| TaskSpec { kind: kinds[n], ..worker(n as u32, cpus[n], 20 * (n as u64 + 1)) });
        took(machine(&topology, prices), tasks.into())
    };
    let (compute, memory) = (WorkKind::Compute, WorkKind::Memory);
    // 20 and 40 ms of work: the second does half of its work beside the first, and the rest alone.
    let [first, second] = run([compute, compute], [0, 2])[..] else { unreachable!() };
    assert!(near(first, 40_000) && near(second, 60_000), "{first} {second}");
    let [first, second] = run([compute, memory], [0, 2])[..] else { unreachable!() };
    // The first takes 25 ms, in which the second does 18.75 of its 40.
    assert!(near(first, 25_000) && near(second, 46_250), "{first} {second}");
    let [first, second] = run([memory, memory], [0, 2])[..] else { unreachable!() };
    assert!(near(first, 20_000) && near(second, 40_000), "{first} {second}");
    // Cores of their own.
    let [first, second] = run([compute, compute], [0, 1])[..] else { unreachable!() };
    assert!(near(first, 20_000) && near(second, 40_000), "{first} {second}");
}

#[test]
fn a_sibling_that_polls_takes_its_share_from_boot_on() {
    for (cores, threads) in [("core:2 pu:2", 2), ("core:2 pu:4", 4)] {
        let topology = from_synthetic(&format!("pack:1 l3:1 {cores}"), "test", Numbering::AsListed).expect("valid");
        let run = |way: Way, busy: usize| {
            let smt = SmtPrices { pair: [[500; 2]; 2], threads: Vec::new() };
            let mut prices = Prices { smt, ..Prices::free() };
            prices.idle_states.insert(0, IdleState::declared("POLL", 0, 0));
            let mut sim = machine(&topology, prices);
            sim.sched.arch.set_idle_options(&IdleOptions { way, ..IdleOptions::default() });
            took(sim, (0..busy).map(|n| worker(n as u32, n, 10)).collect())
        };
        // Whether its siblings work or poll makes no difference, and none do on the other core.
        let shared = run(Way::Halt, threads);
        assert!(shared.iter().all(|&took| took > 19_000), "{shared:?}");
        for busy in [1, threads] {
            let took = run(Way::Poll, busy);
            assert!(took.iter().all(|&took| near(took, shared[0])), "{busy} of {threads}: {took:?}, not {shared:?}");
        }
        assert!(near(run(Way::Halt, 1)[0], 10_000));
    }
}

#[test]
fn four_threads_of_a_core_share_what_the_machine_says_that_four_do() {
    let topology = from_synthetic("pack:1 l3:1 core:2 pu:4", "test", Numbering::AsListed).expect("a valid machine");
    for (threads, expected) in [(vec![], 40_000), (vec![0, 0, 0, 0, 400], 25_000)] {
        let smt = SmtPrices { pair: [[500; 2]; 2], threads };
        let prices = Prices { smt, ..Prices::free() };
        let tasks = (0..4).map(|n| worker(n as u32, n, 10)).collect();
        let took = took(machine(&topology, prices), tasks);
        assert!(took.iter().all(|&took| near(took, expected)), "{took:?}");
    }
}

fn shipped(name: &str) -> Description {
    let (_, text) = builtin().iter().find(|(other, _)| *other == name).unwrap_or_else(|| panic!("no machine {name}"));
    parse(text, name).unwrap_or_else(|error| panic!("{error}"))
}

/// What so many busy threads of a core do, in permille of what one does alone: docs/cost-model.md, "What the second thread of a core
/// adds", and for POWER9 the sources in its file.
#[test]
fn a_core_of_a_machine_that_ships_does_what_was_found_of_it() {
    let (compute, memory) = (WorkKind::Compute, WorkKind::Memory);
    for (name, kind, threads, found) in [
        ("core-i9-12900k", compute, 2, 1312),
        ("epyc-7742-2s-nps4", compute, 2, 1358),
        ("epyc-7763-2s-nps1", compute, 2, 1332),
        ("epyc-9654", compute, 2, 1332),
        ("xeon-gold-6148-2s", compute, 2, 1296),
        ("xeon-platinum-8375c-2s", compute, 2, 1238),
        ("cloud-vm-2", compute, 2, 1238),
        ("xeon-platinum-8480-2s", compute, 2, 1312),
        ("xeon-platinum-8480-2s", memory, 2, 1869),
        ("power9-16c-2s", compute, 2, 1400),
        ("power9-16c-2s", compute, 4, 1600),
    ] {
        let description = shipped(name);
        let figure = match (kind, threads) {
            (WorkKind::Memory, _) => "smt.memory_beside_memory".to_string(),
            (_, 2) => "smt.speed".to_string(),
            (_, threads) => format!("smt.threads_{threads}"),
        };
        assert_ne!(description.figure(&figure).expect("given").how, How::Guess, "{name} {figure}");
        let cores = format!("pack:1 l3:1 core:2 pu:{threads}");
        let topology = from_synthetic(&cores, "test", Numbering::AsListed).expect("a valid machine");
        let prices = Prices { smt: description.smt(), ..Prices::free() };
        let tasks = (0..threads).map(|n| TaskSpec { kind, ..worker(n as u32, n, 20) }).collect();
        let took = took(machine(&topology, prices), tasks);
        let done: u64 = took.iter().map(|took| 20_000 * 1000 / took).sum();
        assert!(near(done, found), "{name}, {threads} threads: {done}");
    }
}

/// Two packages of eight cores; 1 ns a cycle, 16 MiB of last level cache at 20 ns, memory at 100 ns and 150 ns from the other package,
/// ten lines at once, 8 bytes a ns from each node.
fn with_memory() -> (Topology, Prices) {
    let topology =
        from_synthetic("pack:2 [numa] l3:1 core:8 pu:1", "test", Numbering::LinuxX86).expect("a valid machine");
    let mut prices = Prices::free();
    prices.lines.llc_hit = Ps::from_ns(20);
    prices.lines.memory = Ps::from_ns(100);
    prices.memory_far = vec![Ps::from_ns(100); Distance::Remote(1).index()];
    prices.memory_far.push(Ps::from_ns(150));
    (prices.llc_bytes, prices.refill_parallel, prices.memory_ps_per_kib) = (16 << 20, 10, 1024 * 125);
    (topology, prices)
}

/// A worker that uses so many mebibytes and fetches 50 lines of them in 1000 cycles.
fn fetcher(series: u32, cpu: usize, ms: u64, mib: u64) -> TaskSpec {
    TaskSpec { working_set: mib << 20, lines: 50, kind: WorkKind::Memory, ..worker(series, cpu, ms) }
}

#[test]
fn memory_delivers_what_it_can_and_work_that_misses_takes_as_much_longer() {
    let (topology, prices) = with_memory();
    // A cycle of 1 ns takes 1.5 with its lines from memory, 3200 bytes for each 1000: 2.13 bytes a ns of the 8 that there are.
    for (count, expected) in [(1, 15_000), (3, 15_000), (5, 20_000), (8, 32_000)] {
        let tasks = (0..count).map(|n| fetcher(n as u32, n, 10, 100_000)).collect();
        let took = took(machine(&topology, prices.clone()), tasks);
        assert!(took.iter().all(|&took| near(took, expected)), "{count}: {took:?}");
    }
    // On the other package there is another node's memory.
    let tasks = (0..8).map(|n| fetcher(n as u32, n % 2 * 8 + n / 2, 10, 100_000)).collect();
    let halves = took(machine(&topology, prices), tasks);
    assert!(halves.iter().all(|&took| near(took, 16_000)), "{halves:?}");
}

#[test]
fn work_that_misses_waits_for_the_narrowest_piece_of_its_way_to_memory() {
    let topology =
        from_synthetic("pack:2 [numa] l3:2 core:4 pu:1", "test", Numbering::LinuxX86).expect("a valid machine");
    let (_, prices) = with_memory();
    // 4 bytes a ns behind each last level cache, 3 between packages. 3200 bytes for 1000 cycles, which take 1.5 us alone.
    let prices = Prices { llc_link_ps_per_kib: 1024 * 250, package_link_ps_per_kib: 1024 * 1000 / 3, ..prices };
    let of = |cpus: &[usize], node: Option<u16>, ms: &[u64]| {
        let mut sim = machine(&topology, prices.clone());
        let region = node.map(|_| sim.os.memory.create_region(RegionSpec { bytes: 64 << 20, node, pinned: true }));
        let task = |n: usize| {
            let (series, ms) = (n as u32, ms[n % ms.len()]);
            let touch = region.map(|region| (region, 1 << 30));
            let program = Worker { series, touch, work: Some(Ns::from_ms(ms)), began: None };
            TaskSpec { program: Box::new(program), ..fetcher(series, cpus[n], ms, 100_000) }
        };
        took(sim, (0..cpus.len()).map(task).collect())
    };
    let all = |found: &[u64], expected: &[u64]| {
        let close = found.iter().zip(expected).all(|(&found, &expected)| near(found, expected));
        assert!(found.len() == expected.len() && close, "{found:?}, {expected:?}");
    };
    all(&of(&[0, 4], None, &[10]), &[15_000; 2]);
    all(&of(&[0, 1, 2], None, &[10]), &[24_000; 3]);
    // Two get 4 bytes a ns, until one is done.
    all(&of(&[0, 1], None, &[10, 20]), &[16_000, 16_000 + 15_000]);
    // From the other package, at 1.75 us alone: two ask for more than 3 bytes a ns.
    all(&of(&[8], Some(0), &[10]), &[17_500]);
    all(&of(&[8, 12], Some(0), &[10]), &[21_333; 2]);
}

#[test]
fn who_is_slowed_down_asks_memory_for_less_whenever_that_happens() {
    let (_, prices) = with_memory();
    let topology = from_synthetic("pack:1 l3:1 core:8 pu:2", "test", Numbering::LinuxX86).expect("a valid machine");
    let prices = Prices { smt: SmtPrices { pair: [[500; 2]; 2], threads: Vec::new() }, ..prices };
    // 1000 cycles of 10 million take 3200 ns, for which the eight wait together: whether they would work half of that or a sixth.
    for siblings_from in [None, Some(Ns(0)), Some(Ns::from_ms(5))] {
        let mut tasks: Vec<_> = (0..8).map(|n| fetcher(n as u32, n, 10, 100_000)).collect();
        for cpu in 8..16 {
            let Some(from) = siblings_from else { break };
            let steps = [Op::SleepFor(from), Op::WorkFor(Ns::from_ms(100))].into_iter();
            let cpus = Some(CpuMask::single(CpuId(cpu)));
            tasks.push(TaskSpec { cpus, ..TaskSpec::new("sibling", Steps(steps)) });
        }
        let took = took(machine(&topology, prices.clone()), tasks);
        assert!(took[..8].iter().all(|&took| near(took, 32_000)), "{siblings_from:?}: {took:?}");
    }
}

#[test]
fn work_waits_for_where_its_memory_comes_to_lie_meanwhile() {
    let (topology, prices) = with_memory();
    let mut sim = machine(&topology, prices);
    let region = sim.os.memory.create_region(RegionSpec { bytes: 64 << 20, node: None, pinned: false });
    // One page of 2 MiB is touched at the beginning, here.
    let program = Worker { series: 0, touch: Some((region, 1 << 20)), work: Some(Ns::from_ms(10)), began: None };
    let task = TaskSpec { program: Box::new(program), ..fetcher(0, 0, 10, 100_000) };
    // The other 31 after a millisecond, on the other package.
    let steps = [Op::SleepFor(Ns::from_ms(1)), Op::Populate(region), Op::WorkFor(Ns(1))].into_iter();
    let other = TaskSpec { cpus: Some(CpuMask::single(CpuId(8))), ..TaskSpec::new("other", Steps(steps)) };
    let found = took(sim, vec![task, other])[0];
    // 1.5 ns a cycle for 1 ms, then 1.74.
    assert!(near(found, 1_000 + (10_000 - 667) * 1_742 / 1_000), "{found}");
}

#[test]
fn work_is_as_fast_as_the_last_level_cache_has_room_for_its_data() {
    let (topology, prices) = with_memory();
    // Two of 8 MiB fit: 1.1 ns a cycle. Of four, half of the lines come from memory: 1.3 ns, until two have done their work.
    for (count, ms, expected) in
        [(2, [10; 4], [11_000; 4]), (4, [10; 4], [13_000; 4]), (4, [10, 10, 20, 20], [13_000, 13_000, 24_000, 24_000])]
    {
        let tasks = (0..count).map(|n| fetcher(n as u32, n, ms[n], 8)).collect();
        let took = took(machine(&topology, prices.clone()), tasks);
        assert!(took.iter().zip(expected).all(|(&took, expected)| near(took, expected)), "{count}: {took:?}");
    }
}

#[test]
fn those_who_go_through_the_same_memory_have_it_in_the_cache_once() {
    let (topology, prices) = with_memory();
    // Four through 12 MiB of one memory, or each of its own, in 16 MiB: 1.1 ns a cycle, or two thirds of the lines from memory.
    for (memories, expected) in [(1, 11_000), (4, 13_668)] {
        let mut sim = machine(&topology, prices.clone());
        let spec = RegionSpec { bytes: 12 << 20, node: Some(0), pinned: true };
        let regions: Vec<_> = (0..memories).map(|_| sim.os.memory.create_region(spec)).collect();
        let task = |n: usize| {
            let touch = Some((regions[n % memories], 1 << 30));
            let program = Worker { series: n as u32, touch, work: Some(Ns::from_ms(10)), began: None };
            TaskSpec { program: Box::new(program), ..fetcher(n as u32, n, 10, 12) }
        };
        let took = took(sim, (0..4).map(task).collect());
        assert!(took.iter().all(|&took| near(took, expected)), "{memories}: {took:?}");
    }
}

#[test]
fn work_far_from_its_memory_takes_longer() {
    let (topology, prices) = with_memory();
    for (node, expected) in [(0, 15_000), (1, 17_500)] {
        let mut sim = machine(&topology, prices.clone());
        let region = sim.os.memory.create_region(RegionSpec { bytes: 64 << 20, node: Some(node), pinned: true });
        let touch = Some((region, 1 << 30));
        let program = Worker { series: 0, touch, work: Some(Ns::from_ms(10)), began: None };
        let task = TaskSpec { program: Box::new(program), ..fetcher(0, 0, 10, 100_000) };
        let found = took(sim, vec![task])[0];
        assert!(near(found, expected), "node {node}: {found}");
    }
}

#[test]
fn who_moves_fetches_its_data_from_where_it_lies() {
    let (topology, mut prices) = with_memory();
    (prices.l1_bytes, prices.l2_bytes, prices.l2_load) = (32 << 10, 1 << 20, Cycles(12));
    prices.lines.transfer[Distance::Remote(1).index()] = Ps::from_ns(200);
    // When a task has done 2 ms of work, and as much on another CPU: us.
    let ends = |set: u64, to: usize| {
        let single = |cpu| CpuMask::single(CpuId::new(cpu));
        let work = || Op::WorkFor(Ns::from_ms(2));
        let steps = [work(), Op::SetAffinity(single(to)), work(), Op::Report { series: 0, value: 0 }];
        let task = TaskSpec::new("mover", Steps(steps.into_iter()));
        let task = TaskSpec { working_set: set, data: set, cpus: Some(single(0)), ..task };
        let mut sim = machine(&topology, prices.clone());
        sim.spawn(CpuId(0), task);
        sim.run(Ns::from_ms(100));
        sim.samples[0].at.0 / 1000
    };
    // 512 KiB are 8192 lines, ten at once, fetched when it first comes and when it has moved.
    for (to, way) in [(1, 20), (8, 200)] {
        let (more, expected) = (ends(512 << 10, to) - ends(0, to), 8192 * (20 + way) / 10_000);
        assert!(more.abs_diff(expected) <= 2, "to {to}: {more} us more, {expected} expected");
    }
}

#[test]
fn who_sleeps_until_its_core_has_emptied_its_caches_fetches_its_data_again() {
    let topology = from_synthetic("pack:1 l3:1 core:2 pu:2", "test", Numbering::LinuxX86).expect("a valid machine");
    let (_, mut prices) = with_memory();
    (prices.l1_bytes, prices.l2_bytes, prices.l2_load) = (32 << 10, 1 << 20, Cycles(12));
    let state = |name: &str, us: u32, flushes: bool| IdleState {
        name: name.to_string(),
        exit_latency_us: us,
        target_residency_us: 3 * us,
        polling: false,
        wake: Ps::ZERO,
        package_wake: Ps::ZERO,
        flushes,
    };
    // When a task has slept fifty times for so long, and each time done 1 ms of work on its data since: us. A sibling may be busy.
    let ends = |set: u64, sleep: Ns, flushes: bool, busy: bool| {
        let prices = Prices { idle_states: vec![state("C1", 1, false), state("C6", 100, flushes)], ..prices.clone() };
        let mut sim = machine(&topology, prices);
        let turn = move |_| [Op::WorkFor(Ns::from_ms(1)), Op::SleepFor(sleep)];
        let steps = (0..50).flat_map(turn).chain([Op::WorkFor(Ns::from_ms(1)), Op::Report { series: 0, value: 0 }]);
        let on = |cpu| Some(CpuMask::single(CpuId(cpu)));
        let task = TaskSpec { cpus: on(0), working_set: set, data: set, ..TaskSpec::new("sleeper", Steps(steps)) };
        sim.spawn(CpuId(0), task);
        if busy {
            let steps = [Op::WorkFor(Ns::from_ms(2_000))].into_iter();
            sim.spawn(CpuId(2), TaskSpec { cpus: on(2), ..TaskSpec::new("busy", Steps(steps)) });
        }
        sim.run(Ns::from_ms(10_000));
        sim.samples.iter().find(|sample| sample.series == 0).expect("it ends").at.0 / 1000
    };
    // 512 KiB are 8192 lines of 20 ns, ten at once: when it first comes, and after each deep sleep.
    let fetch = 8192 * 20 / 10_000;
    let (deep, shallow) = (Ns::from_ms(5), Ns(50_000));
    let data = |sleep, flushes, busy| ends(512 << 10, sleep, flushes, busy) - ends(0, sleep, flushes, busy);
    for (sleep, flushes, busy, fetches) in [
        (deep, true, false, 51),
        (deep, false, false, 1),
        (shallow, true, false, 1),
        // The core is awake as long as one of its threads is.
        (deep, true, true, 1),
    ] {
        let more = data(sleep, flushes, busy);
        let case = format!("{sleep:?}, flushes: {flushes}, busy: {busy}");
        assert!(more.abs_diff(fetches * fetch) <= fetches, "{case}: {more} us more, {fetches} times {fetch} expected");
    }
}

#[test]
fn who_shares_a_core_fetches_from_level_2_what_the_other_pushed_out_of_level_1() {
    let (topology, mut prices) = with_memory();
    (prices.l1_bytes, prices.l2_bytes, prices.l2_load) = (32 << 10, 1 << 20, Cycles(12));
    // Two tasks take turns on a CPU, a thousand times each: when both have ended, in us.
    let both = |set: u64| {
        let mut sim = machine(&topology, prices.clone());
        for _ in 0..2 {
            let turn = |_| [Op::WorkFor(Ns::from_ms(8)), Op::Yield];
            let steps = (0..100).flat_map(turn).chain([Op::Report { series: 0, value: 0 }]);
            let task = TaskSpec { cpus: Some(CpuMask::single(CpuId(0))), ..TaskSpec::new("turn", Steps(steps)) };
            sim.spawn(CpuId(0), TaskSpec { working_set: set, data: set, ..task });
        }
        sim.run(Ns::from_ms(10_000));
        (sim.samples[1].at.0 / 1000, sim.sched.rq[CpuId(0)].nr_switches)
    };
    // Two sets of 16 KiB fit, of 24 KiB 16 KiB have no room: 256 lines of 12 ns, ten at once, at each switch.
    let ((fit, _), (more, switches)) = (both(16 << 10), both(24 << 10));
    let first = 2 * (8 << 10) / 64 * 20 / 10_000;
    let expected = first + switches * 256 * 12 / 10_000;
    assert!(switches > 100 && (more - fit).abs_diff(expected) * 20 <= expected, "{fit} {more} {switches} {expected}");
}

/// What a node delivers bounds a faster clock as it bounds more tasks.
#[test]
fn who_is_clocked_faster_waits_longer_for_a_node_that_delivers_no_more() {
    use machine::frequency::{Band, Driver, Frequency, FrequencyRules, Governor, Model, Policy, Sharing};
    let topology = from_synthetic("pack:1 l3:1 core:2 pu:1", "test", Numbering::LinuxX86).expect("a valid machine");
    // 50 lines in 1000 cycles, ten at a time from a memory 100 ns away, of which none is in the cache; 4 bytes in a nanosecond.
    let mut prices = Prices { llc_bytes: 1 << 20, refill_parallel: 10, memory_ps_per_kib: 256_000, ..Prices::free() };
    prices.lines.memory = Ps::from_ns(100);
    prices.idle_states = vec![IdleState::declared("C6", 100, 100)];
    // 2 GHz with both cores active, 4 GHz with one.
    let band = Band {
        cpus: CpuMask::new(2),
        kind: 0,
        min_khz: 1_000_000,
        base_khz: 2_000_000,
        turbo_khz: vec![4_000_000, 2_000_000],
        points: Vec::new(),
    };
    let model = Model {
        sharing: Sharing::Core,
        autonomous: None,
        bands: vec![band],
        cap_khz: None,
        step_khz: 100_000,
        transition: Ps::ZERO,
        hold_off: Ps::ZERO,
        declared_latency_us: 10,
        turbo_exit_latency_us: 30,
        full_speed: None,
        fast_switch: None,
    };
    let policy = Policy::new(&model, Driver::IntelPstate, Governor::Performance, FrequencyRules::V6_1, 250);
    let mut hardware = Hardware::<true>::new(topology.clone(), prices, V6_1.layout(), IdleRules::V6_1, 1);
    hardware.set_frequency(Frequency::new(&topology, model, policy));
    let sched = Sched::new(hardware, Boot::new(V6_1, topology.cpu_topology(), 250));
    let mut sim: LinuxSim<true> = Sim::new(sched, Os::new(OsRules::V6_1, 250));
    let pinned = |comm, cpu, ops: Vec<Op>| TaskSpec {
        cpus: Some(CpuMask::single(cpu)),
        ..TaskSpec::new(comm, Steps(ops.into_iter()))
    };
    sim.spawn(CpuId(0), pinned("beside", CpuId(0), vec![Op::RunFor(Ns::from_ms(10))]));
    let work = vec![Op::Work(Cycles(40_000_000)), Op::Report { series: 0, value: 0 }];
    sim.spawn(CpuId(0), TaskSpec { lines: 50, working_set: 1 << 30, ..pinned("streams", CpuId(1), work) });
    assert_eq!(sim.run(Ns::from_ms(1_000)), End::Finished);
    // 0.5 ns a cycle and as long for its lines, for 10 ms; then 0.25 ns, and 0.8 in all for 3.2 bytes.
    let took = sim.samples[0].at.0;
    assert!((33_800_000..34_300_000).contains(&took), "{took} ns");
}
