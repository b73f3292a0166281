//! Interrupts of devices, and the work left to their end: kernel/softirq.c.
//!
//! Differs: if a CPU goes offline while its ksoftirqd is runnable, the thread parks on the CPU to which it was moved,
//! when it next runs there; the kernel waits for that before the CPU goes offline.

use crate::engine::Sim;
use crate::program::{AddressSpace, Op, Outcome, Program, TaskSpec};
use crate::task::Pending;
use machine::hardware::Hardware;
use os::irq::{After, Cause, IrqId, Raised, SoftIrq, trace_softirq_raise, traced_softirq};
use os::{Syscall, paths};
use sched::access::Path;
use sched::arch::Arch;
use sched::autogroup::Session;
use sched::sched::{TaskId, TaskState, WakeFlags};
use sched::scheduler::Scheduler;
use sched::trace::{Event, Interrupt, trace_interrupt};
use std::collections::VecDeque;
use units::{CpuId, CpuMask, Ns, PerCpu, Ps, unlikely};

/// How often, and for how long, softirqs that are raised again while they run are run at the end of an interrupt.
const MAX_SOFTIRQ_RESTART: u32 = 10;
const MAX_SOFTIRQ_TIME: Ps = Ps::from_ns(2_000_000);

/// Device interrupts on their way, and the ksoftirqd threads.
pub(crate) struct Devices {
    /// By CPU, in the order of arrival; at equal times in the order in which they were announced.
    coming: PerCpu<VecDeque<Raised>>,
    /// By CPU. Empty until the first interrupt line is requested.
    ksoftirqd: Vec<TaskId>,
}

impl Devices {
    pub fn new(nr_cpus: usize) -> Devices {
        Devices { coming: PerCpu::from_fn(nr_cpus, |_| VecDeque::new()), ksoftirqd: Vec::new() }
    }
}

/// softirq.c: run_ksoftirqd(), for ever.
struct Ksoftirqd;

impl Program for Ksoftirqd {
    fn next(&mut self, _last: Outcome) -> Op {
        Op::RunKsoftirqd
    }
}

impl<const COSTS: bool, S: Scheduler<Arch = Hardware<COSTS>>> Sim<COSTS, S> {
    fn online(&self) -> CpuMask {
        (0..self.sched.nr_cpus()).map(CpuId::new).filter(|&cpu| self.sched.is_online(cpu)).collect()
    }

    /// request_irq(): a device's interrupt line, and the CPUs where its interrupts may arrive. They may raise softirqs,
    /// so each CPU gets its ksoftirqd.
    pub fn request_irq(&mut self, name: &str, affinity: CpuMask) -> IrqId {
        self.start_ksoftirqd();
        let online = self.online();
        self.os.irq.request_irq(name, affinity, &online)
    }

    /// `echo MASK > /proc/irq/N/smp_affinity`
    pub fn irq_set_affinity(&mut self, irq: IrqId, affinity: CpuMask) {
        let online = self.online();
        self.os.irq.irq_set_affinity(irq, affinity, &online);
    }

    /// `cpu`'s ksoftirqd; `None` before the first line was requested.
    pub fn ksoftirqd(&self, cpu: CpuId) -> Option<TaskId> {
        self.devices.ksoftirqd.get(cpu.index()).copied()
    }

    /// A device raises its line at `at`, or now if `at` has passed.
    pub fn raise_irq(&mut self, at: Ns, irq: IrqId, cause: Cause) {
        self.os.irq.raise(at, irq, cause);
        self.deliver_irqs();
    }

    /// Delivers the interrupts that devices have announced to the CPUs where they arrive.
    pub(crate) fn deliver_irqs(&mut self) {
        for raised in std::mem::take(&mut self.os.irq.raised) {
            let cpu = self.os.irq.cpu_of(raised.irq);
            self.announce(cpu, raised);
        }
    }

    fn announce(&mut self, cpu: CpuId, raised: Raised) {
        let coming = &mut self.devices.coming[cpu];
        let place = coming.partition_point(|other| other.at <= raised.at);
        coming.insert(place, raised);
        self.set_device(cpu);
        self.requeue(cpu);
    }

    fn set_device(&mut self, cpu: CpuId) {
        let first = self.devices.coming[cpu].front().map_or(Ps::NEVER, |raised| raised.at.into());
        self.cpus[cpu].timers.set_device(first);
    }

    /// `cpu` has gone offline: its lines are moved to other CPUs, with the interrupts that were on their way.
    pub(crate) fn migrate_irqs(&mut self, cpu: CpuId) {
        let online = self.online();
        self.os.irq.leave(cpu, &online);
        for raised in std::mem::take(&mut self.devices.coming[cpu]) {
            let to = self.os.irq.cpu_of(raised.irq);
            self.announce(to, raised);
        }
        self.set_device(cpu);
        // As dev.c: dev_cpu_dead() and blk-mq.c: blk_softirq_cpu_dead() do: the work left to softirqs there is moved to
        // another CPU.
        let heir = online.first().expect("a CPU stays up");
        self.os.dev_cpu_dead(cpu, heir);
        self.os.blk_softirq_cpu_dead(cpu, heir);
        if self.os.irq.inherit_softirqs(cpu, heir) {
            self.wakeup_softirqd(cpu, heir);
        }
    }

    /// smpboot.c: smpboot_unpark_threads(): a CPU is back, and its ksoftirqd is bound to it alone.
    pub(crate) fn unpark_ksoftirqd(&mut self, by: CpuId, cpu: CpuId) {
        if let Some(task) = self.ksoftirqd(cpu) {
            self.sched.set_cpus_allowed(by, task, CpuMask::single(cpu)).expect("the CPU is up");
        }
    }

    /// arch/x86: common_interrupt(): takes the first device interrupt that has come to `cpu`.
    #[cold]
    pub(crate) fn device_interrupt(&mut self, cpu: CpuId) {
        let Some(raised) = self.devices.coming[cpu].pop_front() else { return };
        self.set_device(cpu);
        self.os.irq.handled(raised.irq, cpu);
        self.within(cpu, paths::COMMON_INTERRUPT, |sim| {
            sim.within(cpu, paths::HANDLE_IRQ_EVENT, |sim| {
                let irq = raised.irq.0;
                let name = || sim.os.irq.irqs()[irq as usize].name.clone();
                let entry = || Event::IrqHandlerEntry { irq, name: name() };
                trace_interrupt(&mut sim.sched, cpu, Interrupt::Hardirq, entry);
                sim.handle_irq(cpu, raised.cause);
                trace_interrupt(&mut sim.sched, cpu, Interrupt::Hardirq, || Event::IrqHandlerExit { irq });
            });
        });
    }

    /// What the handler of an interrupt line does.
    fn handle_irq(&mut self, cpu: CpuId, cause: Cause) {
        match cause {
            Cause::Done { task, sleep } => {
                self.within(cpu, paths::NVME_IRQ, |sim| sim.request_done(cpu, task, sleep));
            }
            Cause::Bio(bio) => {
                self.within(cpu, paths::NVME_IRQ, |sim| sim.os.blk_complete_request(&mut sim.sched, cpu, bio));
            }
            Cause::Work(work) => {
                self.os.irq.raise_softirq(cpu, work);
                trace_softirq_raise(&mut self.sched, cpu, Interrupt::Hardirq, work.vector.vec());
            }
        }
    }

    /// A block device has answered. Wakes the task if that sleep still lasts.
    fn request_done(&mut self, cpu: CpuId, task: TaskId, sleep: u64) {
        let Some(Some(context)) = self.tasks.get(task.index()) else { return };
        if context.sleep == sleep && matches!(context.pending, Pending::Syscall(Syscall::BlockIo { .. })) {
            self.sched.wake(cpu, task, WakeFlags::NONE);
        }
    }

    // Softirqs.

    /// softirq.c: irq_exit(): runs the softirqs that interrupts have raised. `rebalance`: the scheduler's is among
    /// them; `last`: the interrupt.
    #[cold]
    pub(crate) fn invoke_softirq(&mut self, cpu: CpuId, rebalance: bool, last: Path) {
        if rebalance {
            self.os.irq.raise_bare(cpu, SoftIrq::Sched);
        }
        if self.ksoftirqd_running(cpu) {
            return;
        }
        self.sched.arch_mut().profile_enter(cpu, last);
        self.__do_softirq(cpu);
        self.sched.arch_mut().leave(cpu);
    }

    /// The tail of the idle loop: runs what other CPUs left for `cpu` while it polled, and the softirqs that this
    /// raises. `rebalance`: the scheduler's is among them.
    #[inline(always)]
    pub(crate) fn flush_idle_calls(&mut self, cpu: CpuId, rebalance: bool) {
        self.os.flush_smp_call_function_queue(&mut self.sched, cpu, Interrupt::None);
        if unlikely(rebalance || self.os.irq.local_softirq_pending(cpu)) {
            self.flush_idle_softirqs(cpu, rebalance);
        }
    }

    #[cold]
    #[inline(never)]
    fn flush_idle_softirqs(&mut self, cpu: CpuId, rebalance: bool) {
        if !self.os.irq.local_softirq_pending(cpu) {
            return self.within(cpu, paths::DO_SOFTIRQ, |sim| sim.rebalance_softirq(cpu));
        }
        if rebalance {
            self.os.irq.raise_bare(cpu, SoftIrq::Sched);
        }
        if !self.ksoftirqd_running(cpu) {
            self.__do_softirq(cpu);
            self.sched.irq_exit(cpu);
        }
    }

    /// The scheduler's softirq, which is usually the only one.
    #[inline]
    pub(crate) fn rebalance_softirq(&mut self, cpu: CpuId) {
        self.os.irq.softirq(cpu, SoftIrq::Sched.vec());
        traced_softirq(&mut self.sched, cpu, SoftIrq::Sched.vec(), |sched| sched.run_rebalance_domains(cpu));
    }

    /// softirq.c: ksoftirqd_running(): whether softirqs are left to ksoftirqd.
    #[inline]
    pub(crate) fn ksoftirqd_running(&self, cpu: CpuId) -> bool {
        self.os.irq.ksoftirqd_running(cpu)
    }

    /// softirq.c: __do_softirq(), handle_softirqs() in v6.12.
    fn __do_softirq(&mut self, cpu: CpuId) {
        self.sched.softirq_enter(cpu);
        self.within(cpu, paths::DO_SOFTIRQ, |sim| {
            let jiffies = |sim: &Self| sim.ticks.of(sim.sched.arch().now(cpu).0);
            let end = jiffies(sim) + MAX_SOFTIRQ_TIME.0.div_ceil(sim.os.tick_period().0);
            let mut max_restart = MAX_SOFTIRQ_RESTART;
            loop {
                for vector in sim.os.irq.take_pending(cpu) {
                    sim.softirq_action(cpu, vector);
                }
                if !sim.os.irq.local_softirq_pending(cpu) {
                    break;
                }
                max_restart -= 1;
                if jiffies(sim) >= end || sim.sched.need_resched(cpu) || max_restart == 0 {
                    sim.wakeup_softirqd(cpu, cpu);
                    break;
                }
            }
        });
    }

    fn softirq_action(&mut self, cpu: CpuId, vector: SoftIrq) {
        if vector == SoftIrq::Sched {
            return self.rebalance_softirq(cpu);
        }
        let vec = vector.vec();
        self.os.irq.softirq(cpu, vec);
        trace_interrupt(&mut self.sched, cpu, Interrupt::Softirq, || Event::SoftirqEntry { vec });
        self.within(cpu, vector.action(), |sim| {
            let after = sim.os.irq.action(cpu, vector);
            if sim.os.irq.is_pending(cpu, vector) {
                trace_softirq_raise(&mut sim.sched, cpu, Interrupt::Softirq, vec);
            }
            match after {
                After::Nothing => {}
                After::Wake(task) => _ = sim.sched.wake(cpu, task, WakeFlags::NONE),
                After::Queue { work, timer } => sim.os.delayed_work_timer_fn(&mut sim.sched, cpu, work, timer),
            }
            if vector == SoftIrq::NetRx {
                sim.os.net_rx_action(&mut sim.sched, cpu);
            }
            if vector == SoftIrq::Block {
                sim.os.blk_done_softirq(&mut sim.sched, cpu);
            }
        });
        trace_interrupt(&mut self.sched, cpu, Interrupt::Softirq, || Event::SoftirqExit { vec });
    }

    /// softirq.c: wakeup_softirqd(): wakes `cpu`'s thread.
    fn wakeup_softirqd(&mut self, by: CpuId, cpu: CpuId) {
        if let Some(&task) = self.devices.ksoftirqd.get(cpu.index()) {
            self.os.irq.set_ksoftirqd(cpu, true);
            self.sched.wake(by, task, WakeFlags::NONE);
        }
    }

    /// Starts each CPU's ksoftirqd, as if it had existed since boot.
    fn start_ksoftirqd(&mut self) {
        if !self.devices.ksoftirqd.is_empty() {
            return;
        }
        for cpu in (0..self.sched.nr_cpus()).map(CpuId::new) {
            let spec = TaskSpec {
                cpus: Some(CpuMask::single(cpu)),
                memory: AddressSpace::Kernel,
                ..TaskSpec::new(&format!("ksoftirqd/{}", cpu.index()), Ksoftirqd)
            };
            self.os.irq.set_ksoftirqd(cpu, true);
            let task = self.spawn_daemon(spec);
            self.devices.ksoftirqd.push(task);
        }
    }

    /// A kernel thread that outlives every program: the run does not wait for its end.
    pub(crate) fn spawn_daemon(&mut self, spec: TaskSpec) -> TaskId {
        let task = self.spawn(CpuId(0), spec);
        self.outlives_programs(task);
        task
    }

    /// The same, asleep since boot until something wakes it.
    pub(crate) fn daemon_asleep(&mut self, spec: TaskSpec) -> TaskId {
        let cpu = CpuId(0);
        let task =
            self.beside(cpu, |sim| sim.fork_task(cpu, None, spec, false)).expect("an ordinary task is never refused");
        self.sched.set_session(cpu, task, Session::Init);
        self.sched.asleep_since_boot(task);
        self.outlives_programs(task);
        task
    }

    /// The CPU whose ksoftirqd runs on `cpu`: not `cpu` itself if the thread's own CPU went offline.
    fn owner_of_ksoftirqd(&self, cpu: CpuId) -> CpuId {
        let current = self.sched.current(cpu).expect("a ksoftirqd runs");
        if self.devices.ksoftirqd[cpu.index()] == current {
            return cpu;
        }
        CpuId::new(self.devices.ksoftirqd.iter().position(|&task| task == current).expect("a ksoftirqd runs"))
    }

    /// softirq.c: run_ksoftirqd(), and the sleep when nothing is left to do. Returns whether the thread goes on in this
    /// step.
    pub(crate) fn run_ksoftirqd(&mut self, cpu: CpuId) -> bool {
        let owner = self.owner_of_ksoftirqd(cpu);
        if owner != cpu || !self.os.irq.local_softirq_pending(cpu) {
            self.os.irq.set_ksoftirqd(owner, false);
            self.sched.set_current_state(cpu, TaskState::Interruptible);
            self.switch(cpu, false);
            return false;
        }
        self.sched.irq_enter(cpu);
        self.__do_softirq(cpu);
        self.sched.irq_exit(cpu);
        self.preemption_point(cpu, &Op::CondResched)
    }
}
