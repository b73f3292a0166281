//! Compiles the usual simulation once, in builds for tests; that takes about a minute. Generic code is compiled in the
//! crate that first uses it, so without this module each crate that uses the simulation would compile it again.
//! Optimised builds do not share such code between crates, so there this module would only add one more copy.

use crate::engine::{End, LinuxSim};
use crate::program::TaskSpec;
use crate::timeline::Change;
use machine::hardware::Hardware;
use os::Os;
use sched::core::{Boot, Sched};
use sched::errno::Answer;
use sched::sched::TaskId;
use units::{CpuId, Ns};

/// The functions that other crates call, and through them nearly everything else. Nothing reads the fields: naming a
/// function here compiles it.
#[expect(dead_code)]
struct Entries<const COSTS: bool> {
    boot: fn(Hardware<COSTS>, Boot) -> Sched<Hardware<COSTS>>,
    new: fn(Sched<Hardware<COSTS>>, Os) -> LinuxSim<COSTS>,
    at: fn(&mut LinuxSim<COSTS>, Ns, Change),
    spawn: fn(&mut LinuxSim<COSTS>, CpuId, TaskSpec) -> TaskId,
    try_spawn: fn(&mut LinuxSim<COSTS>, CpuId, TaskSpec) -> Answer<TaskId>,
    start_kernel_threads: fn(&mut LinuxSim<COSTS>),
    start_cpufreq_threads: fn(&mut LinuxSim<COSTS>, bool),
    idle: fn(&mut LinuxSim<COSTS>, Ns),
    run: fn(&mut LinuxSim<COSTS>, Ns) -> End,
    run_events: fn(&mut LinuxSim<COSTS>, Ns, u64) -> Option<End>,
}

impl<const COSTS: bool> Entries<COSTS> {
    const ALL: Entries<COSTS> = Entries {
        boot: Sched::new,
        new: LinuxSim::new,
        at: LinuxSim::at,
        spawn: LinuxSim::spawn,
        try_spawn: LinuxSim::try_spawn,
        start_kernel_threads: LinuxSim::start_kernel_threads,
        start_cpufreq_threads: LinuxSim::start_cpufreq_threads,
        idle: LinuxSim::idle,
        run: LinuxSim::run,
        run_events: LinuxSim::run_events,
    };
}

#[used]
static WITH_COSTS: Entries<true> = Entries::ALL;
#[used]
static WITHOUT: Entries<false> = Entries::ALL;
