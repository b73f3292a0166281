//! What a CPU does about its counters of memory as it goes idle.

use crate::booted;
use machine::prices::Prices;
use machine::profile::Frame;
use os::background::QuietVmstat;
use os::pipe::PAGE_SIZE;
use os::{OsRules, paths};
use sim::engine::{End, LinuxSim};
use sim::program::{Op, Steps, TaskSpec};
use units::{CpuId, Cycles, Ns, Ps};

/// What five entries into the idle loop of two nodes come to, before one of which a page was allocated: how often each line is changed, and how
/// many zones were looked at.
fn goes_idle(rule: QuietVmstat) -> ([u64; 5], u64) {
    let mut prices = Prices::free();
    prices.paths[paths::REFRESH_CPU_VM_STATS.0 as usize] = Cycles(10);
    let ps_per_cycle = prices.ps_per_cycle;
    let mut sim: LinuxSim<true> = booted("pack:2 [numa] core:1 pu:1", prices, OsRules::V4_5);
    sim.os.irq.rules.quiet_vmstat = rule;
    sim.sched.arch.start_profile(Ps::ZERO);
    sim.sched.arch.record_lines();
    let pipe = sim.os.create_pipe();
    let write = [Op::Write { pipe, bytes: PAGE_SIZE }];
    let sleeps = [1, 2, 3, 4].map(|ms| Op::SleepUntil(Ns::from_ms(ms)));
    sim.spawn(CpuId(0), TaskSpec::new("t", Steps(write.into_iter().chain(sleeps))));
    assert_eq!(sim.run(Ns::from_ms(10)), End::Finished);

    let touched = sim.sched.arch.lines_touched().expect("it records");
    let of = |name: &str| {
        let named = touched.lines().iter().filter(|touched| sim.os.line_name(touched.line).as_deref() == Some(name));
        named.flat_map(|touched| &touched.by).map(|(_, _, counts)| counts.atomics).sum::<u64>()
    };
    let atomics = [
        "cpu_stat_off",
        "vm_stat 0: NR_ALLOC_BATCH",
        "vm_stat 0: NUMA_HIT, NUMA_LOCAL",
        "zone 0: vm_stat[NR_ALLOC_BATCH]",
        "zone 1: vm_stat[NR_ALLOC_BATCH]",
    ]
    .map(of);
    let stacks = sim.sched.arch.profile().expect("it was started").stacks();
    let refresh = Some(&Frame::Kernel(paths::REFRESH_CPU_VM_STATS));
    let time: u64 = stacks.iter().filter(|(stack, _)| stack.last() == refresh).map(|(_, time)| time.0).sum();
    (atomics, time / ps_per_cycle / 10)
}

#[test]
fn v4_5_rc1_folds_its_counters_each_time_until_nothing_is_left() {
    // Five times, and once more where something was there, ZONE_DMA, ZONE_DMA32 and the two nodes' ZONE_NORMAL. The page is the first node's.
    assert_eq!(goes_idle(QuietVmstat::EachTime), ([5, 1, 2, 1, 0], 6 * 4));
}

#[test]
fn later_kernels_look_whether_they_have_done_that_or_wait_for_the_tick_to_stop() {
    assert_eq!(goes_idle(QuietVmstat::OnceOff), ([5, 0, 0, 0, 0], 0));
    assert_eq!(goes_idle(QuietVmstat::WithTick), ([0; 5], 0));
}
