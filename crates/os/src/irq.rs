//! Interrupts of devices and the softirqs that they raise (kernel/irq, kernel/softirq.c).
//!
//! [`Irqs`] knows the interrupt lines that were requested, the CPU at which each arrives, and what is pending on each
//! CPU. The code that plays a device says when it raises which line, and what for ([`Irqs::raise`]); the run loop
//! delivers it to the CPU. What a softirq does is a list of [`SoftWork`]: rounds of polling, each a call of the
//! vector's action, that may end by waking a task.

use crate::background::{Kcompactd, NumaEvents, QuietVmstat, Softlockup, VmstatIsolated, VmstatTimer};
use crate::block::BioId;
use crate::paths;
use crate::timer_wheel::{TimerSlack, TimerWheel};
use crate::workqueue::DelayedWork;
use sched::access::Path;
use sched::sched::TaskId;
use sched::scheduler::Scheduler;
use sched::trace::{Event, Interrupt, Ipi, SCHED_SOFTIRQ, trace_interrupt};
use sched::{behaviour, rules};
use std::collections::VecDeque;
use units::{CpuId, CpuMask, Ns, Slots};

behaviour! {
    /// What the end of an interrupt does with softirqs while ksoftirqd is runnable.
    pub enum KsoftirqdRunning = "softirq.ksoftirqd" {
        Beside = "beside", since "v2.6.0", commit "", "runs them, as always";
        Yields = "yields", since "v4.9", commit "4cd13c21b207", "leaves them to ksoftirqd, until v6.4";
        Removed = "beside-again", since "v6.5", commit "d15121be7485", "runs them, as until v4.8";
    }
}

behaviour! {
    /// CONFIG_IRQ_TIME_ACCOUNTING: whether the time of interrupts and softirqs is taken off the tasks that they interrupt.
    pub enum IrqTime = "irq.time_accounting" {
        Off = "off", since "v2.6.37", commit "", "it is the interrupted task's time";
        On = "on", since "v2.6.37", commit "", "it is nobody's: clock_task stands still";
    }
}

/// What differs between kernels in interrupts and timers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IrqRules {
    pub ksoftirqd: KsoftirqdRunning,
    pub time: IrqTime,
    pub wheel: TimerWheel,
    pub slack: TimerSlack,
    pub softlockup: Softlockup,
    pub vmstat: VmstatTimer,
    pub vmstat_isolated: VmstatIsolated,
    pub quiet_vmstat: QuietVmstat,
    pub numa_events: NumaEvents,
    pub kcompactd: Kcompactd,
    /// irq_vectors.h: LOCAL_TIMER_VECTOR, which moves down for each new vector of the kernel's own.
    pub local_timer_vector: u8,
}

impl IrqRules {
    pub const V4_5: IrqRules = IrqRules {
        ksoftirqd: KsoftirqdRunning::Beside,
        time: IrqTime::Off,
        wheel: TimerWheel::Cascading,
        slack: TimerSlack::ByClass,
        softlockup: Softlockup::Threads,
        vmstat: VmstatTimer::Standard,
        vmstat_isolated: VmstatIsolated::Served,
        quiet_vmstat: QuietVmstat::EachTime,
        numa_events: NumaEvents::Among,
        kcompactd: Kcompactd::Asked,
        local_timer_vector: 0xef,
    };
    pub const V4_15: IrqRules = IrqRules {
        ksoftirqd: KsoftirqdRunning::Yields,
        wheel: TimerWheel::Levels,
        vmstat: VmstatTimer::Deferrable,
        quiet_vmstat: QuietVmstat::WithTick,
        local_timer_vector: 0xee,
        ..Self::V4_5
    };
    pub const V4_16: IrqRules = IrqRules { local_timer_vector: 0xed, ..Self::V4_15 };
    pub const V4_19: IrqRules = IrqRules { softlockup: Softlockup::Stopper, local_timer_vector: 0xec, ..Self::V4_16 };
    pub const V5_10: IrqRules = IrqRules { kcompactd: Kcompactd::Proactive, ..Self::V4_19 };
    pub const V5_15: IrqRules = IrqRules { numa_events: NumaEvents::Apart, ..Self::V5_10 };
    pub const V6_1: IrqRules = IrqRules { slack: TimerSlack::Kept, ..Self::V5_15 };
    pub const V6_6: IrqRules = IrqRules {
        ksoftirqd: KsoftirqdRunning::Removed,
        slack: TimerSlack::ByClass,
        vmstat_isolated: VmstatIsolated::Spared,
        ..Self::V6_1
    };
    pub const V6_12: IrqRules = IrqRules { slack: TimerSlack::Kept, ..Self::V6_6 };
}

rules! {
    IrqRules { ksoftirqd, time, wheel, slack, softlockup, vmstat, vmstat_isolated, quiet_vmstat, numa_events, kcompactd; local_timer_vector }
}

/// interrupt.h: the softirqs, in the order in which pending ones are run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum SoftIrq {
    Timer,
    NetRx,
    Block,
    Sched,
}

impl SoftIrq {
    /// All softirqs, in their order.
    pub const ALL: [SoftIrq; 4] = [SoftIrq::Timer, SoftIrq::NetRx, SoftIrq::Block, SoftIrq::Sched];

    fn bit(self) -> u8 {
        1 << self as u8
    }

    /// Its number in the kernel.
    pub fn vec(self) -> u8 {
        match self {
            SoftIrq::Timer => 1,
            SoftIrq::NetRx => 3,
            SoftIrq::Block => 4,
            SoftIrq::Sched => SCHED_SOFTIRQ,
        }
    }

    /// The vector's action, whose price is charged for each call.
    pub fn action(self) -> Path {
        match self {
            SoftIrq::Timer => paths::RUN_TIMER_SOFTIRQ,
            SoftIrq::NetRx => paths::NET_RX_ACTION,
            SoftIrq::Block => paths::BLK_DONE_SOFTIRQ,
            SoftIrq::Sched => unreachable!("the scheduler's own"),
        }
    }
}

/// RCU_SOFTIRQ, whose pending work is not recorded here.
pub const RCU_VEC: u8 = 9;

/// The tracepoint of __raise_softirq_irqoff(), by what executes on `cpu`.
#[inline]
pub fn trace_softirq_raise<S: Scheduler>(sched: &mut S, cpu: CpuId, by: Interrupt, vec: u8) {
    trace_interrupt(sched, cpu, by, || Event::SoftirqRaise { vec });
}

/// Runs a softirq's action between its tracepoints.
#[inline(always)]
pub fn traced_softirq<S: Scheduler, T>(sched: &mut S, cpu: CpuId, vec: u8, action: impl FnOnce(&mut S) -> T) -> T {
    trace_interrupt(sched, cpu, Interrupt::Softirq, || Event::SoftirqEntry { vec });
    let value = action(sched);
    trace_interrupt(sched, cpu, Interrupt::Softirq, || Event::SoftirqExit { vec });
    value
}

/// An interrupt line that was requested, by its number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IrqId(pub u32);

/// request_irq(): an interrupt line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Irq {
    pub name: String,
    /// `/proc/irq/N/smp_affinity`
    pub affinity: CpuMask,
    /// The CPU at which it arrives: `effective_affinity`.
    pub cpu: CpuId,
    /// How often it has arrived, on every CPU where it ever did: its line of `/proc/interrupts`.
    counts: Vec<(CpuId, u64)>,
}

impl Irq {
    /// How often it has arrived at `cpu`.
    pub fn count(&self, cpu: CpuId) -> u64 {
        self.counts.iter().find(|&&(at, _)| at == cpu).map_or(0, |&(_, count)| count)
    }
}

/// interrupt.h: NR_SOFTIRQS.
pub const NR_SOFTIRQS: usize = 10;

/// hardirq.h's irq_cpustat_t, and kernel_stat.h's softirqs: how often each interrupt and softirq has occurred on a CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct IrqStat {
    pub apic_timer_irqs: u32,
    pub irq_resched_count: u32,
    pub irq_call_count: u32,
    pub apic_irq_work_irqs: u32,
    /// By vector.
    pub softirqs: [u32; NR_SOFTIRQS],
}

impl IrqStat {
    /// The count of interrupts by `ipi`.
    #[inline]
    pub fn ipi(&mut self, ipi: Ipi) -> &mut u32 {
        match ipi {
            Ipi::Reschedule => &mut self.irq_resched_count,
            Ipi::CallFunctionSingle => &mut self.irq_call_count,
            Ipi::IrqWork => &mut self.apic_irq_work_irqs,
        }
    }
}

/// Rounds of a softirq. After each but the last the vector raises itself again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SoftWork {
    pub vector: SoftIrq,
    /// At least 1.
    pub rounds: u32,
    /// At the end of the last round.
    pub after: After,
}

/// What a softirq does when its rounds are over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum After {
    Nothing,
    Wake(TaskId),
    /// The timer of this number fires ([`Os::delayed_work_timer_fn`](crate::Os::delayed_work_timer_fn)).
    Queue {
        work: DelayedWork,
        timer: u32,
    },
}

/// What the handler of a line finds when it is called.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cause {
    /// A request of a sleeping task is done; `sleep` is the number of its sleep.
    Done { task: TaskId, sleep: u64 },
    /// A request of a file system is done.
    Bio(BioId),
    /// Work for a softirq.
    Work(SoftWork),
}

/// A line that a device has raised.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Raised {
    pub at: Ns,
    pub irq: IrqId,
    pub cause: Cause,
}

/// What is pending on a CPU.
#[derive(Clone, Debug, Default)]
struct Pending {
    bits: u8,
    work: VecDeque<SoftWork>,
}

#[derive(Clone, Debug)]
pub struct Irqs {
    pub rules: IrqRules,
    irqs: Vec<Irq>,
    /// Each CPU's own queue of the block device, if it was used: its line, which arrives at no other CPU.
    queues: Slots<Option<IrqId>>,
    pending: Slots<Pending>,
    /// By CPU, whether its ksoftirqd is runnable. Empty before these threads exist.
    awake: Vec<bool>,
    /// By CPU, up to the highest CPU that was interrupted.
    stat: Slots<IrqStat>,
    /// What devices have announced since the run loop last looked.
    pub raised: Vec<Raised>,
}

impl Default for Irqs {
    fn default() -> Irqs {
        let rules = IrqRules::V4_5;
        Irqs {
            rules,
            irqs: Vec::new(),
            queues: Slots::new(),
            pending: Slots::new(),
            awake: Vec::new(),
            stat: Slots::new(),
            raised: Vec::new(),
        }
    }
}

impl Irqs {
    /// The line of `cpu`'s queue of the block device (nvme/host/pci.c: queue_request_irq(), an interrupt that the kernel keeps on its CPU).
    pub fn queue_request_irq(&mut self, cpu: CpuId) -> IrqId {
        self.queues.grow_with(cpu.index() + 1, || None);
        if let Some(irq) = self.queues[cpu.index()] {
            return irq;
        }
        let irq = self.request_irq(&format!("nvme0q{}", cpu.index() + 1), CpuMask::single(cpu), &CpuMask::single(cpu));
        self.queues[cpu.index()] = Some(irq);
        irq
    }

    /// request_irq(), with the affinity that the line is to have. The line arrives at one CPU of the mask that is
    /// `online`: the one with the fewest lines so far, and the first of several such.
    /// Differs: irq_matrix_alloc() (v4.15 on x86) looks for the CPU with the most free vectors; here only lines use up
    /// vectors. Older kernels take the first CPU with a free one.
    pub fn request_irq(&mut self, name: &str, affinity: CpuMask, online: &CpuMask) -> IrqId {
        let cpu = self.place(&affinity, online);
        self.irqs.push(Irq { name: name.to_string(), affinity, cpu, counts: Vec::new() });
        IrqId(self.irqs.len() as u32 - 1)
    }

    /// The CPU at which a line with that affinity arrives. A mask without a CPU that is up counts as all CPUs.
    fn place(&self, affinity: &CpuMask, online: &CpuMask) -> CpuId {
        let lines = |cpu: &CpuId| self.irqs.iter().filter(|irq| irq.cpu == *cpu).count();
        let allowed = || online.iter().filter(|&cpu| affinity.contains(cpu));
        allowed().min_by_key(lines).or_else(|| online.iter().min_by_key(lines)).expect("a CPU is up")
    }

    /// irq_set_affinity(): writes `/proc/irq/N/smp_affinity`.
    pub fn irq_set_affinity(&mut self, irq: IrqId, affinity: CpuMask, online: &CpuMask) {
        let index = irq.0 as usize;
        if !affinity.contains(self.irqs[index].cpu) || !online.contains(self.irqs[index].cpu) {
            self.irqs[index].cpu = self.place(&affinity, online);
        }
        self.irqs[index].affinity = affinity;
    }

    /// fixup_irqs(): `cpu` goes offline. Its lines move, within their masks if those have another CPU.
    pub fn leave(&mut self, cpu: CpuId, online: &CpuMask) {
        for index in 0..self.irqs.len() {
            if self.irqs[index].cpu == cpu {
                let affinity = self.irqs[index].affinity.clone();
                self.irqs[index].cpu = self.place(&affinity, online);
            }
        }
    }

    /// All lines, by number.
    pub fn irqs(&self) -> &[Irq] {
        &self.irqs
    }

    /// A device raises `irq` at `at`. Its handler will find `cause`.
    pub fn raise(&mut self, at: Ns, irq: IrqId, cause: Cause) {
        self.raised.push(Raised { at, irq, cause });
    }

    /// The CPU at which a line arrives.
    pub fn cpu_of(&self, irq: IrqId) -> CpuId {
        self.irqs[irq.0 as usize].cpu
    }

    /// Counts one more handling of the line on `cpu`.
    pub fn handled(&mut self, irq: IrqId, cpu: CpuId) {
        let counts = &mut self.irqs[irq.0 as usize].counts;
        match counts.iter_mut().find(|(at, _)| *at == cpu) {
            Some((_, count)) => *count += 1,
            None => counts.push((cpu, 1)),
        }
    }

    /// The counts of `cpu`.
    #[inline]
    pub fn stat(&mut self, cpu: CpuId) -> &mut IrqStat {
        self.stat.grow_with(cpu.index() + 1, IrqStat::default);
        &mut self.stat[cpu.index()]
    }

    /// The same, read-only: all zero on a CPU without any interrupt yet.
    pub fn counted(&self, cpu: CpuId) -> IrqStat {
        self.stat.get(cpu.index()).copied().unwrap_or_default()
    }

    /// Counts the call of a softirq's action: kstat_incr_softirqs_this_cpu().
    #[inline]
    pub fn softirq(&mut self, cpu: CpuId, vec: u8) {
        self.stat(cpu).softirqs[usize::from(vec)] += 1;
    }

    /// softirq.c: __raise_softirq_irqoff(), with work for the vector's action.
    pub fn raise_softirq(&mut self, cpu: CpuId, work: SoftWork) {
        self.pending.grow_with(cpu.index() + 1, Pending::default);
        let pending = &mut self.pending[cpu.index()];
        pending.bits |= work.vector.bit();
        pending.work.push_back(work);
    }

    /// The same for a vector whose work is kept elsewhere. Returns whether it was not pending yet.
    pub fn raise_bare(&mut self, cpu: CpuId, vector: SoftIrq) -> bool {
        self.pending.grow_with(cpu.index() + 1, Pending::default);
        let bits = &mut self.pending[cpu.index()].bits;
        let before = *bits;
        *bits |= vector.bit();
        before != *bits
    }

    /// Moves what is pending on a CPU that went offline to `heir`. Returns whether there was any.
    pub fn inherit_softirqs(&mut self, offline: CpuId, heir: CpuId) -> bool {
        let Some(left) = self.pending.get_mut(offline.index()).map(std::mem::take).filter(|left| left.bits != 0) else {
            return false;
        };
        self.pending.grow_with(heir.index() + 1, Pending::default);
        let pending = &mut self.pending[heir.index()];
        pending.bits |= left.bits;
        pending.work.extend(left.work);
        true
    }

    /// softirq.c: ksoftirqd_running(): whether softirqs of `cpu` are left to ksoftirqd.
    #[inline]
    pub fn ksoftirqd_running(&self, cpu: CpuId) -> bool {
        self.awake.get(cpu.index()).is_some_and(|&awake| awake) && self.rules.ksoftirqd == KsoftirqdRunning::Yields
    }

    /// `cpu`'s ksoftirqd becomes runnable, or goes to sleep.
    pub fn set_ksoftirqd(&mut self, cpu: CpuId, awake: bool) {
        if self.awake.len() <= cpu.index() {
            self.awake.resize(cpu.index() + 1, false);
        }
        self.awake[cpu.index()] = awake;
    }

    /// local_softirq_pending().
    #[inline]
    pub fn local_softirq_pending(&self, cpu: CpuId) -> bool {
        self.pending.get(cpu.index()).is_some_and(|pending| pending.bits != 0)
    }

    /// Whether `vector` is pending on `cpu`.
    pub fn is_pending(&self, cpu: CpuId, vector: SoftIrq) -> bool {
        self.pending.get(cpu.index()).is_some_and(|pending| pending.bits & vector.bit() != 0)
    }

    /// Takes the vectors that are pending on `cpu`, in their order.
    pub fn take_pending(&mut self, cpu: CpuId) -> impl Iterator<Item = SoftIrq> + use<> {
        let bits = self.pending.get_mut(cpu.index()).map_or(0, |pending| std::mem::take(&mut pending.bits));
        SoftIrq::ALL.into_iter().filter(move |vector| bits & vector.bit() != 0)
    }

    /// One call of a vector's action on `cpu`: one round of the first item in its list. Returns what is to be done
    /// then.
    pub fn action(&mut self, cpu: CpuId, vector: SoftIrq) -> After {
        let Some(pending) = self.pending.get_mut(cpu.index()) else { return After::Nothing };
        let Some(place) = pending.work.iter().position(|work| work.vector == vector) else { return After::Nothing };
        let work = &mut pending.work[place];
        work.rounds = work.rounds.saturating_sub(1);
        let done = if work.rounds == 0 { pending.work.remove(place) } else { None };
        if pending.work.iter().any(|work| work.vector == vector) {
            pending.bits |= vector.bit();
        }
        done.map_or(After::Nothing, |work| work.after)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_arrive_where_their_masks_allow_and_spread_over_them() {
        let online: CpuMask = (0..4).map(CpuId::new).collect();
        let mut irqs = Irqs::default();
        let cpus: Vec<u16> = (0..5)
            .map(|_| {
                let irq = irqs.request_irq("disk", online.clone(), &online);
                irqs.cpu_of(irq).0
            })
            .collect();
        assert_eq!(cpus, [0, 1, 2, 3, 0]);
        let fixed = irqs.request_irq("net", CpuMask::single(CpuId(2)), &online);
        assert_eq!(irqs.cpu_of(fixed), CpuId(2));
        irqs.irq_set_affinity(fixed, CpuMask::single(CpuId(3)), &online);
        assert_eq!(irqs.cpu_of(fixed), CpuId(3));
        // Its only CPU goes offline: it arrives somewhere rather than nowhere, at the CPU with the fewest lines, after
        // the disk's has moved to CPU 1.
        let left: CpuMask = (0..3).map(CpuId::new).collect();
        irqs.leave(CpuId(3), &left);
        assert_eq!(irqs.cpu_of(fixed), CpuId(2));
        assert_eq!(irqs.queue_request_irq(CpuId(2)), irqs.queue_request_irq(CpuId(2)));
    }

    #[test]
    fn rounds_raise_their_vector_again() {
        let cpu = CpuId(1);
        let mut irqs = Irqs::default();
        assert!(!irqs.local_softirq_pending(cpu));
        irqs.raise_softirq(cpu, SoftWork { vector: SoftIrq::Block, rounds: 1, after: After::Nothing });
        irqs.raise_softirq(cpu, SoftWork { vector: SoftIrq::NetRx, rounds: 2, after: After::Wake(TaskId(7)) });
        assert_eq!(irqs.take_pending(cpu).collect::<Vec<_>>(), [SoftIrq::NetRx, SoftIrq::Block]);
        assert_eq!(irqs.action(cpu, SoftIrq::NetRx), After::Nothing);
        assert_eq!(irqs.action(cpu, SoftIrq::Block), After::Nothing);
        assert_eq!(irqs.take_pending(cpu).collect::<Vec<_>>(), [SoftIrq::NetRx]);
        assert_eq!(irqs.action(cpu, SoftIrq::NetRx), After::Wake(TaskId(7)));
        assert!(!irqs.local_softirq_pending(cpu) && irqs.action(cpu, SoftIrq::NetRx) == After::Nothing);
    }
}
