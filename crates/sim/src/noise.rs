//! Background noise, on request: what a kernel does by itself while a benchmark runs.
//!
//! Each thread sleeps on a timeout of the timer wheel, then executes a kernel function whose price is in the machine
//! file. The periods are those of the kernel's sources. Where each period begins, and which rounds of the unbound
//! threads are longer, is drawn from a random stream of its own. What differs between kernels is in [`os::background`].

use crate::engine::Sim;
use crate::program::{AddressSpace, Op, Outcome, Program, TaskSpec};
use crate::task::Pending;
use machine::hardware::Hardware;
use os::background::{Softlockup, VmstatIsolated, VmstatTimer};
use os::paths;
use sched::access::Path;
use sched::autogroup::Session;
use sched::scheduler::Scheduler;
use std::cell::Cell;
use std::rc::Rc;
use units::{CpuId, CpuMask, Ns, Prng, Ps};

/// A kernel thread that runs by itself.
struct Source {
    comm: &'static str,
    /// Whether there is one for each CPU, bound to it; otherwise there is one for the machine.
    per_cpu: bool,
    /// Between two of its rounds.
    period_ms: u64,
    work: Path,
    timer: By,
}

/// What starts its rounds.
#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    Wheel,
    /// According to [`VmstatTimer`].
    Vmstat,
    /// According to [`Softlockup`].
    Watchdog,
}

/// The threads, their periods, and where the kernel's sources define these.
const SOURCES: &[Source] = &[
    // mm/vmstat.c: sysctl_stat_interval, one second; the work of its CPU's kworker.
    Source { comm: "kworker", per_cpu: true, period_ms: 1_000, work: paths::VMSTAT_UPDATE, timer: By::Vmstat },
    // kernel/watchdog.c: sample_period, two fifths of watchdog_thresh (10 s).
    Source { comm: "watchdog", per_cpu: true, period_ms: 4_000, work: paths::WATCHDOG, timer: By::Watchdog },
    // mm/page-writeback.c: dirty_writeback_interval, five seconds.
    Source { comm: "kworker/u", per_cpu: false, period_ms: 5_000, work: paths::WB_WORKFN, timer: By::Wheel },
    // include/linux/jbd2.h: JBD2_DEFAULT_MAX_COMMIT_AGE, five seconds; if nothing was written it only looks.
    Source { comm: "jbd2", per_cpu: false, period_ms: 5_000, work: paths::KJOURNALD2, timer: By::Wheel },
    // kernel/rcu/tree.c: a grace period looks for quiescent states one to three jiffies after it began. A machine with
    // little to free has some tens of them per second (a guess).
    Source { comm: "rcu_sched", per_cpu: false, period_ms: 30, work: paths::RCU_GP_KTHREAD, timer: By::Wheel },
];

/// A short warm-up can stand for a long one: until it is over, the threads run `often` times as often as they would.
#[derive(Clone, Debug)]
pub struct Haste {
    pub often: u64,
    pub over: Rc<Cell<bool>>,
}

/// How a thread sleeps: on the timer wheel, or on a high-resolution timer if haste makes its period too short for the
/// wheel.
#[derive(Clone, Copy)]
enum Period {
    Jiffies(u64),
    /// The same, and then until the CPU's next tick.
    Deferrable(u64),
    Time(Ns),
}

impl Period {
    /// A random part of the period.
    fn part(self, chance: &mut Prng) -> Period {
        match self {
            Period::Jiffies(all) => Period::Jiffies(1 + chance.below(all)),
            Period::Deferrable(all) => Period::Deferrable(1 + chance.below(all)),
            Period::Time(all) => Period::Time(Ns(1 + chance.below(all.0))),
        }
    }

    fn sleep(self) -> Op {
        match self {
            Period::Jiffies(jiffies) => Op::ScheduleTimeout(jiffies),
            Period::Deferrable(jiffies) => Op::DeferrableTimeout(jiffies),
            Period::Time(time) => Op::SleepFor(time),
        }
    }
}

/// One of these threads: it sleeps for a part of its period first, then for all of it again and again.
struct Noise {
    period: Period,
    /// Its true period, for when the haste is over; `None` if there is no haste.
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

/// watchdog.c: `watchdog_hrtimer` of a CPU, for kernels in which no thread does this.
pub(crate) struct Watchdog {
    period: Ps,
    haste: Option<(Rc<Cell<bool>>, Ps)>,
    chance: Prng,
}

impl Watchdog {
    /// hrtimer_forward_now(): when the timer that was to fire at `at` fires next.
    fn forward(&mut self, at: Ps, now: Ps) -> Ps {
        if self.haste.as_ref().is_some_and(|(over, _)| over.get()) {
            (_, self.period) = self.haste.take().expect("it is there");
            return now + Ps(1 + self.chance.below(self.period.0));
        }
        at + Ps(self.period.0 * (1 + now.saturating_sub(at).0 / self.period.0))
    }
}

impl<const COSTS: bool, S: Scheduler<Arch = Hardware<COSTS>>> Sim<COSTS, S> {
    /// Starts the kernel's own threads. They exist until the end of the run, which does not wait for them. Without
    /// haste they have existed since boot, and sleep; a benchmark in haste starts them all at once, like its own
    /// processes.
    pub fn start_noise(&mut self, seed: u64, haste: Option<&Haste>) {
        let nr_cpus = self.sched.nr_cpus();
        let mut number = 0;
        for source in SOURCES {
            let cpus = if source.per_cpu { nr_cpus } else { 1 };
            let all = Ns::from_ms(source.period_ms);
            let stopper = source.timer == By::Watchdog && self.os.irq.rules.softlockup == Softlockup::Stopper;
            let deferrable = source.timer == By::Vmstat && self.os.irq.rules.vmstat == VmstatTimer::Deferrable;
            let jiffies = |time: Ns| {
                let jiffies = (time.0 / self.os.tick_period().ns().0).max(1);
                if deferrable { Period::Deferrable(jiffies) } else { Period::Jiffies(jiffies) }
            };
            let often = haste.map_or(1, |haste| haste.often);
            let over = haste.map(|haste| haste.over.clone());
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
                let spared = self.is_spared(source.timer, cpu);
                if stopper {
                    let haste = over.clone().map(|over| (over, all.into()));
                    let watchdog = Watchdog { period: Ns(all.0 / often).into(), haste, chance };
                    self.start_watchdog(cpu, Some(watchdog).filter(|_| !spared));
                    continue;
                }
                if spared {
                    continue;
                }
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
                    Some(Period::Jiffies(jiffies)) => self.fork_asleep(cpu, spec, jiffies, false),
                    Some(Period::Deferrable(jiffies)) => self.fork_asleep(cpu, spec, jiffies, true),
                    Some(Period::Time(_)) | None => _ = self.spawn_daemon(spec),
                }
            }
        }
    }

    /// Whether `cpu` is isolated from this work.
    fn is_spared(&self, work: By, cpu: CpuId) -> bool {
        match work {
            By::Wheel => false,
            By::Vmstat => {
                self.os.irq.rules.vmstat_isolated == VmstatIsolated::Spared && self.sched.cpu_is_isolated(cpu)
            }
            // watchdog.c: lockup_detector_init(): `watchdog_cpumask`.
            By::Watchdog => self.sched.tick_nohz_full_cpu(cpu),
        }
    }

    /// A thread that has been asleep in schedule_timeout() since before the run, for this many jiffies more.
    ///
    /// If the threads were awake at first, every CPU would have two tasks at once, and would search the whole machine
    /// for more each time one goes to sleep. That takes time with the cube of the number of CPUs.
    fn fork_asleep(&mut self, cpu: CpuId, spec: TaskSpec, jiffies: u64, deferrable: bool) {
        let task = self.beside(cpu, |sim| {
            let task = sim.fork_task(cpu, None, spec, true).expect("an ordinary task is never refused");
            sim.sched.set_session(cpu, task, Session::Init);
            task
        });
        self.outlives_programs(task);
        self.context(task).pending = Pending::Unborn;
        self.arm_timeout(cpu, task, jiffies, deferrable);
        self.requeue(cpu);
    }

    /// `cpu`'s timer, if it has one, has been running since before the run. To be called for the CPUs in order.
    fn start_watchdog(&mut self, cpu: CpuId, mut watchdog: Option<Watchdog>) {
        debug_assert_eq!(cpu.index(), self.watchdogs.len());
        if let Some(Watchdog { period, chance, .. }) = &mut watchdog {
            let first = Ps(1 + chance.below(period.0));
            self.cpus[cpu].timers.set_watchdog(self.now + first);
            self.requeue(cpu);
        }
        self.watchdogs.push(watchdog);
    }

    /// watchdog.c: watchdog_enable(): the timer of a CPU that has come back.
    pub(crate) fn watchdog_enable(&mut self, cpu: CpuId) {
        if let Some(Some(watchdog)) = self.watchdogs.get(cpu.index()) {
            self.cpus[cpu].timers.set_watchdog(self.now + watchdog.period);
            self.requeue(cpu);
        }
    }

    /// watchdog.c: watchdog_timer_fn(): makes the CPU's stopper prove that it gets to run.
    ///
    /// Differs: fires after other high-resolution timers that are due at the same time.
    pub(crate) fn watchdog_timer_fn(&mut self, cpu: CpuId, now: Ps) {
        self.within(cpu, paths::WATCHDOG, |sim| sim.sched.stop_for_softlockup(cpu));
        let at = self.cpus[cpu].timers.watchdog();
        let watchdog = self.watchdogs[cpu.index()].as_mut().expect("only a watchdog sets its timer");
        let next = watchdog.forward(at, now);
        self.cpus[cpu].timers.set_watchdog(next);
    }
}
