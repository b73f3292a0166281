//! Background noise: what a kernel does by itself while a benchmark runs, where somebody asks for it.
//!
//! Each thread sleeps by the timer wheel and then executes a function of the kernel, whose price stands in the machine file. Periods are
//! those of the sources; where each begins, and which of the unbound threads' rounds are longer, is chance, from a stream of its own.

use crate::engine::Sim;
use crate::program::{AddressSpace, Op, Outcome, Program, TaskSpec};
use crate::task::Pending;
use machine::hardware::Hardware;
use os::paths;
use sched::access::Path;
use sched::autogroup::Session;
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
    /// Up to the end of a part of it.
    fn part(self, chance: &mut Prng) -> Period {
        match self {
            Period::Jiffies(all) => Period::Jiffies(1 + chance.below(all)),
            Period::Time(all) => Period::Time(Ns(1 + chance.below(all.0))),
        }
    }

    fn sleep(self) -> Op {
        match self {
            Period::Jiffies(jiffies) => Op::ScheduleTimeout(jiffies),
            Period::Time(time) => Op::SleepFor(time),
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
        let mut begun = std::mem::replace(&mut self.begun, true);
        if self.haste.as_ref().is_some_and(|(over, _)| over.get()) {
            (_, self.period) = self.haste.take().expect("it is there");
            begun = false;
        }
        let sleeps = if begun { self.period } else { self.period.part(&mut self.chance) };
        sleeps.sleep()
    }
}

impl<const COSTS: bool, S: Scheduler<Arch = Hardware<COSTS>>> Sim<COSTS, S> {
    /// Starts the kernel's own threads. They are there until the end, which does not wait for them. Without haste they have been there
    /// since boot, and sleep; a benchmark that is in haste starts them, all at once as its own processes.
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
                let mut chance = Prng::stream(seed, "noise", number);
                number += 1;
                let asleep = haste.is_none().then(|| period.part(&mut chance));
                let program = Noise {
                    period,
                    haste: haste.clone(),
                    work: source.work,
                    chance,
                    begun: asleep.is_some(),
                    works: asleep.is_some(),
                };
                let comm = match source.per_cpu {
                    true => format!("{}/{}", source.comm, cpu.index()),
                    false => source.comm.to_string(),
                };
                let cpus = source.per_cpu.then(|| CpuMask::single(cpu));
                let spec = TaskSpec { cpus, memory: AddressSpace::Kernel, ..TaskSpec::new(&comm, program) };
                match asleep {
                    Some(Period::Jiffies(jiffies)) => self.fork_asleep(cpu, spec, jiffies),
                    _ => _ = self.spawn_daemon(spec),
                }
            }
        }
    }

    /// A thread that has slept in schedule_timeout() since before the run, for so many jiffies more.
    ///
    /// Were they awake to begin with, every CPU would have two tasks at once and look for more over the whole machine as each goes to sleep,
    /// which takes the cube of the number of CPUs.
    fn fork_asleep(&mut self, cpu: CpuId, spec: TaskSpec, jiffies: u64) {
        let task = self.beside(cpu, |sim| {
            let task = sim.fork_task(cpu, None, spec, true).expect("an ordinary task is never refused");
            sim.sched.set_session(cpu, task, Session::Init);
            task
        });
        self.live_tasks -= 1;
        self.context(task).pending = Pending::Unborn;
        self.arm_timeout(cpu, task, jiffies);
        self.requeue(cpu);
    }
}
