//! Background noise: what a kernel does by itself while a benchmark runs, where somebody asks for it.
//!
//! Each thread sleeps by the timer wheel and then executes a function of the kernel, whose price stands in the machine file. Periods are
//! those of the sources; where each begins, and which of the unbound threads' rounds are longer, is chance, from a stream of its own.

use crate::engine::Sim;
use crate::program::{AddressSpace, Op, Outcome, Program, TaskSpec};
use machine::hardware::Hardware;
use os::paths;
use sched::access::Path;
use sched::scheduler::Scheduler;
use units::{CpuId, CpuMask, Prng};

/// A thread that the kernel runs by itself.
struct Source {
    comm: &'static str,
    /// One for each CPU, bound to it; otherwise one for the machine.
    per_cpu: bool,
    /// Between its rounds.
    period_ms: u64,
    work: Path,
}

/// Who they are, how often, and where that is said.
const SOURCES: &[Source] = &[
    // mm/vmstat.c: sysctl_stat_interval, one second; the work of its CPU's kworker.
    Source { comm: "kworker", per_cpu: true, period_ms: 1_000, work: paths::VMSTAT_UPDATE },
    // kernel/watchdog.c: sample_period, two fifths of watchdog_thresh (10 s).
    Source { comm: "watchdog", per_cpu: true, period_ms: 4_000, work: paths::WATCHDOG },
    // mm/page-writeback.c: dirty_writeback_interval, five seconds.
    Source { comm: "kworker/u", per_cpu: false, period_ms: 5_000, work: paths::WB_WORKFN },
    // include/linux/jbd2.h: JBD2_DEFAULT_MAX_COMMIT_AGE, five seconds; with nothing written a look.
    Source { comm: "jbd2", per_cpu: false, period_ms: 5_000, work: paths::KJOURNALD2 },
    // kernel/rcu/tree.c: a grace period looks for quiescent states one to three jiffies after it began; a machine with little to free has
    // some tens of them in a second (a guess).
    Source { comm: "rcu_sched", per_cpu: false, period_ms: 30, work: paths::RCU_GP_KTHREAD },
];

/// One of them: first a part of its period, then all of it again and again.
struct Noise {
    period_jiffies: u64,
    work: Path,
    chance: Prng,
    begun: bool,
    works: bool,
}

impl Program for Noise {
    fn next(&mut self, _last: Outcome) -> Op {
        self.works = !self.works;
        if !self.works {
            return Op::Execute(self.work);
        }
        if std::mem::replace(&mut self.begun, true) {
            return Op::ScheduleTimeout(self.period_jiffies);
        }
        Op::ScheduleTimeout(1 + self.chance.below(self.period_jiffies))
    }
}

impl<const COSTS: bool, S: Scheduler<Arch = Hardware<COSTS>>> Sim<COSTS, S> {
    /// Starts the kernel's own threads. They are there until the end, which does not wait for them.
    pub fn start_noise(&mut self, seed: u64) {
        let nr_cpus = self.sched.nr_cpus();
        let mut number = 0;
        for source in SOURCES {
            let cpus = if source.per_cpu { nr_cpus } else { 1 };
            for cpu in (0..cpus).map(CpuId::new) {
                let program = Noise {
                    period_jiffies: (source.period_ms * 1_000_000_000 / self.tick_period.0).max(1),
                    work: source.work,
                    chance: Prng::stream(seed, "noise", number),
                    begun: false,
                    works: false,
                };
                number += 1;
                let comm = match source.per_cpu {
                    true => format!("{}/{}", source.comm, cpu.index()),
                    false => source.comm.to_string(),
                };
                let cpus = source.per_cpu.then(|| CpuMask::single(cpu));
                self.spawn_daemon(TaskSpec { cpus, memory: AddressSpace::Kernel, ..TaskSpec::new(&comm, program) });
            }
        }
    }
}
