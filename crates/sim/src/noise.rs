//! Background noise, on request: what a kernel does by itself while a benchmark runs.
//!
//! Threads of their own sleep on a timeout of the timer wheel, then execute a kernel function whose price is in the
//! machine file. Counters of memory are added up by the CPUs' kworkers (mm/vmstat.c). The periods are those of the
//! kernel's sources. Where each period begins is drawn from random streams of its own. What differs between kernels is in
//! [`os::background`].

use crate::engine::Sim;
use crate::program::{AddressSpace, Op, Outcome, Program, TaskSpec};
use crate::timers::Fires;
use machine::hardware::Hardware;
use os::background::{Kcompactd, Softlockup, VmstatTimer};
use os::paths;
use os::timer_wheel::round_jiffies_relative;
use os::workqueue::DelayedWork;
use sched::access::Path;
use sched::scheduler::Scheduler;
use std::cell::Cell;
use std::rc::Rc;
use units::{CpuId, CpuMask, Ns, Prng, Ps};

/// A kernel thread that runs by itself.
struct Source {
    comm: &'static str,
    /// Between two of its rounds.
    period_ms: u64,
    work: Path,
}

/// kernel/watchdog.c: sample_period, two fifths of watchdog_thresh (10 s). A thread until v4.18, see [`Softlockup`].
const WATCHDOG: Source = Source { comm: "watchdog/", period_ms: 4_000, work: paths::WATCHDOG };

/// kernel/rcu/tree.c: a grace period looks for quiescent states one to three jiffies after it began. A machine with
/// little to free has some tens of them per second (a guess).
const RCU: Source = Source { comm: "rcu_sched", period_ms: 30, work: paths::RCU_GP_KTHREAD };

/// mm/compaction.c: HPAGE_FRAG_CHECK_INTERVAL_MSEC.
const KCOMPACTD: Source = Source { comm: "kcompactd", period_ms: 500, work: paths::KCOMPACTD };

/// mm/vmstat.c: sysctl_stat_interval.
const STAT_INTERVAL: Ns = Ns::from_ms(1_000);

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
    Time(Ns),
}

impl Period {
    /// A random part of the period.
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

/// When the works of mm/vmstat.c are done.
pub(crate) struct Vmstat {
    /// Jiffies since boot when the run began, of which only the part of a second matters.
    boot: u64,
    haste: Option<Haste>,
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
    /// Starts what the kernel does by itself. It goes on until the end of the run, which does not wait for it. Without
    /// haste the threads have existed since boot, and sleep; a benchmark in haste starts them all at once, like its own
    /// processes.
    pub fn start_noise(&mut self, seed: u64, haste: Option<&Haste>) {
        let stopper = self.os.irq.rules.softlockup == Softlockup::Stopper;
        let nr_cpus = self.sched.nr_cpus();
        let mut chances = (0..).map(|number| Prng::stream(seed, "noise", number));
        let mut chance = || chances.next().expect("numbers do not end");
        for cpu in (0..nr_cpus).map(CpuId::new) {
            let chance = chance();
            // watchdog.c: lockup_detector_init(): `watchdog_cpumask`.
            let spared = self.sched.tick_nohz_full_cpu(cpu);
            if stopper {
                let all = Ns::from_ms(WATCHDOG.period_ms);
                let period = Ns(all.0 / haste.map_or(1, |haste| haste.often)).into();
                let haste = haste.map(|haste| (haste.over.clone(), all.into()));
                self.start_watchdog(cpu, Some(Watchdog { period, haste, chance }).filter(|_| !spared));
            } else if !spared {
                self.start_source(&WATCHDOG, Some((cpu.index(), CpuMask::single(cpu))), chance, haste);
            }
        }
        self.start_source(&RCU, None, chance(), haste);
        if self.os.irq.rules.kcompactd == Kcompactd::Proactive {
            let nodes = self.sched.arch().topology.nodes().iter().map(|node| node.cpus.clone()).enumerate();
            for node in nodes.filter(|(_, cpus)| !cpus.is_empty()).collect::<Vec<_>>() {
                self.start_source(&KCOMPACTD, Some(node), chance(), haste);
            }
        }
        self.start_vmstat(seed, haste);
    }

    /// Starts a thread, if `of` says so that of a CPU or of a node, by its number, which runs there.
    fn start_source(&mut self, source: &Source, of: Option<(usize, CpuMask)>, mut chance: Prng, haste: Option<&Haste>) {
        let (comm, cpus) = match of {
            Some((number, cpus)) => (format!("{}{number}", source.comm), Some(cpus)),
            None => (source.comm.to_string(), None),
        };
        let cpu = cpus.as_ref().and_then(CpuMask::first).unwrap_or(CpuId(0));
        let tick = self.os.tick_period().ns();
        let jiffies = |time: Ns| Period::Jiffies((time.0 / tick.0).max(1));
        let all = Ns::from_ms(source.period_ms);
        let (period, haste) = match haste {
            None => (jiffies(all), None),
            Some(Haste { often, over }) => {
                let short = Ns(all.0 / often);
                let period = if short < tick { Period::Time(short) } else { jiffies(short) };
                (period, Some((over.clone(), jiffies(all))))
            }
        };
        let asleep = haste.is_none().then(|| period.part(&mut chance));
        let (begun, works) = (asleep.is_some(), asleep.is_some());
        let program = Noise { period, haste, work: source.work, chance, begun, works };
        let spec = TaskSpec { cpus, memory: AddressSpace::Kernel, ..TaskSpec::new(&comm, program) };
        match asleep {
            Some(Period::Jiffies(jiffies)) => {
                // If the threads were awake at first, every CPU would have two tasks at once, and would search the
                // whole machine for more each time one goes to sleep: the cube of the number of CPUs.
                let task = self.daemon_asleep(spec);
                self.arm_timeout(cpu, task, jiffies);
                self.requeue(cpu);
            }
            Some(Period::Time(_)) | None => _ = self.spawn_daemon(spec),
        }
    }

    /// vmstat.c: start_shepherd_timer(), at some time before the run: since then the shepherd has found nothing to do.
    ///
    /// Differs: the shepherd is a work of the first CPU's that stays there; until some version before v4.15 that was the
    /// CPU that initialised the module.
    fn start_vmstat(&mut self, seed: u64, haste: Option<&Haste>) {
        let mut chance = Prng::stream(seed, "vmstat", 0);
        let hz = self.hz();
        let boot = chance.below(hz);
        let running = self.vmstat.replace(Vmstat { boot, haste: haste.cloned() }).is_some();
        debug_assert!(!running, "noise is started once");
        self.start_workers();
        self.os.start_shepherd_timer(self.sched.nr_cpus());
        let jiffies = haste.map_or(hz - boot, |haste| 1 + chance.below((hz / haste.often).max(1)));
        self.arm_delayed_work(CpuId(0), DelayedWork::VmstatShepherd, jiffies);
        self.requeue(CpuId(0));
    }

    /// workqueue.c: queue_delayed_work_on(): `cpu` queues this work in its interval, at a whole second.
    pub(crate) fn queue_delayed_work(&mut self, cpu: CpuId, work: DelayedWork) {
        let hz = self.hz();
        let Some(Vmstat { boot, haste }) = &mut self.vmstat else { unreachable!("its work is done") };
        let interval = STAT_INTERVAL.0 / self.os.tick_period().ns().0;
        haste.take_if(|haste| haste.over.get());
        let jiffies = match haste {
            Some(haste) => (interval / haste.often).max(1),
            None => {
                let now = self.ticks.of(self.sched.arch().now(cpu).0);
                round_jiffies_relative(interval, *boot + now, cpu, hz)
            }
        };
        self.arm_delayed_work(cpu, work, jiffies);
    }

    fn arm_delayed_work(&mut self, cpu: CpuId, work: DelayedWork, jiffies: u64) {
        let at = self.timeout(cpu, jiffies);
        let fires = Fires::Work { work, timer: self.os.delayed_work_timer(cpu, work) };
        let deferrable = work == DelayedWork::VmstatShepherd || self.os.irq.rules.vmstat == VmstatTimer::Deferrable;
        let timers = &mut self.cpus[cpu].timers;
        if deferrable {
            timers.arm_deferrable(at, fires);
        } else {
            timers.arm_wheel(at, fires);
        }
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
