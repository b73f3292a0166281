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
use std::cell::Cell;
use std::rc::Rc;
use units::{CpuId, CpuMask, Ns, Prng};

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

/// For a short warm-up that stands for a long one: how many times as often as they do the threads run until it is over.
#[derive(Clone, Debug)]
pub struct Haste {
    pub often: u64,
    pub over: Rc<Cell<bool>>,
}

/// By the timer wheel; but where they run more often than in reality, and by that more often than it turns, by timers of their own.
#[derive(Clone, Copy)]
enum Period {
    Jiffies(u64),
    Time(Ns),
}

impl Period {
    /// All of it, or up to the end of a part of it.
    fn sleep(self, chance: Option<&mut Prng>) -> Op {
        match self {
            Period::Jiffies(all) => Op::ScheduleTimeout(chance.map_or(all, |chance| 1 + chance.below(all))),
            Period::Time(all) => Op::SleepFor(chance.map_or(all, |chance| Ns(1 + chance.below(all.0)))),
        }
    }
}

/// One of them: first a part of its period, then all of it again and again.
struct Noise {
    period: Period,
    /// When there is no more haste, if there was: its true period then.
    haste: Option<(Rc<Cell<bool>>, Period)>,
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
        let begun = std::mem::replace(&mut self.begun, true);
        if self.haste.as_ref().is_some_and(|(over, _)| over.get()) {
            (_, self.period) = self.haste.take().expect("it is there");
            return self.period.sleep(Some(&mut self.chance));
        }
        self.period.sleep((!begun).then_some(&mut self.chance))
    }
}

impl<const COSTS: bool, S: Scheduler<Arch = Hardware<COSTS>>> Sim<COSTS, S> {
    /// Starts the kernel's own threads. They are there until the end, which does not wait for them.
    pub fn start_noise(&mut self, seed: u64, haste: Option<&Haste>) {
        let nr_cpus = self.sched.nr_cpus();
        let mut number = 0;
        for source in SOURCES {
            let cpus = if source.per_cpu { nr_cpus } else { 1 };
            let all = Ns::from_ms(source.period_ms);
            let jiffies = |time: Ns| Period::Jiffies((time.0 / self.os.tick_period().ns().0).max(1));
            let (period, haste) = match haste {
                None => (jiffies(all), None),
                Some(Haste { often, over }) => {
                    let short = Ns(all.0 / often);
                    let period = if short < self.os.tick_period().ns() { Period::Time(short) } else { jiffies(short) };
                    (period, Some((over.clone(), jiffies(all))))
                }
            };
            for cpu in (0..cpus).map(CpuId::new) {
                let program = Noise {
                    period,
                    haste: haste.clone(),
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
