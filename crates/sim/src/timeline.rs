//! The timeline: what an administrator does to the machine at given times, from outside the tasks that run on it.

use crate::cpu::Run;
use crate::engine::Sim;
use crate::governors::Governed;
use crate::timers::{Fires, Timeout};
use machine::hardware::{Hardware, Notice};
use os::workqueue::DelayedWork;
use sched::core::cgroup::GroupFile;
use sched::errno::{Answer, Refusal};
use sched::features::Feature;
use sched::sched::TgId;
use sched::scheduler::Scheduler;
use sched::sysctl::Tunable;
use std::collections::VecDeque;
use units::{CpuId, CpuMask, Ns, Ps};

/// One change to the machine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Change {
    /// `echo 0 > /sys/devices/system/cpu/cpuN/online`
    CpuOffline(CpuId),
    /// `echo 1 > ...`
    CpuOnline(CpuId),
    /// Exclusive cpusets: the CPUs of each balance among themselves. The CPUs in none form one more.
    Partitions(Vec<CpuMask>),
    /// A tunable of the scheduler.
    Sysctl(Tunable, u64),
    /// `/sys/kernel/debug/sched_features`
    Feature(Feature, bool),
    /// Clocks or idle states.
    Governed(Governed),
    /// A file of a task group.
    Group { group: TgId, file: GroupFile, text: String },
}

/// A change that the kernel refused.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refused {
    /// How many changes were scheduled before it: the number of its call of [`Sim::at`].
    pub number: usize,
    pub at: Ns,
    pub change: Change,
    pub refusal: Refusal,
}

struct Entry {
    at: Ps,
    /// [`Refused::number`].
    number: usize,
    change: Change,
}

/// The changes still to be made, the earliest first.
pub(crate) struct Timeline {
    /// The time of the first one, or of `frequency` if that is earlier.
    next: Ps,
    entries: VecDeque<Entry>,
    /// How many changes were ever scheduled.
    scheduled: usize,
    /// When something is due for the machine's clocks.
    frequency: Ps,
}

impl Default for Timeline {
    fn default() -> Timeline {
        Timeline { next: Ps::NEVER, entries: VecDeque::new(), scheduled: 0, frequency: Ps::NEVER }
    }
}

impl Timeline {
    /// When something has to be done next.
    #[inline]
    pub fn next(&self) -> Ps {
        self.next
    }

    /// Whether no change is left. Clocks may still be due.
    pub fn is_done(&self) -> bool {
        self.entries.is_empty()
    }

    pub fn frequency(&self) -> Ps {
        self.frequency
    }

    pub fn set_frequency(&mut self, at: Ps) {
        self.frequency = at;
        self.find_next();
    }

    fn find_next(&mut self) {
        self.next = self.entries.front().map_or(Ps::NEVER, |entry| entry.at).min(self.frequency);
    }
}

impl<const COSTS: bool, S: Scheduler<Arch = Hardware<COSTS>>> Sim<COSTS, S> {
    /// Schedules a change for a time; several at one time are made in the order of the calls. A time that has passed
    /// means at once.
    pub fn at(&mut self, at: Ns, change: Change) {
        let at = Ps::from(at);
        let place = self.timeline.entries.partition_point(|entry| entry.at <= at);
        let number = self.timeline.scheduled;
        self.timeline.entries.insert(place, Entry { at, number, change });
        self.timeline.scheduled += 1;
        self.timeline.find_next();
    }

    /// The changes still to be made, the earliest first.
    pub fn ahead(&self) -> impl Iterator<Item = (Ns, &Change)> {
        self.timeline.entries.iter().map(|entry| (entry.at.ns(), &entry.change))
    }

    /// Does what is due at `self.timeline.next()`. Of several things at one time, those that hardware does by itself
    /// come first.
    pub(crate) fn change_machine(&mut self) {
        if self.timeline.frequency <= self.timeline.next {
            return self.change_frequencies();
        }
        let Entry { at, number, change } = self.timeline.entries.pop_front().expect("something is due");
        self.timeline.find_next();
        self.now = self.now.max(at);
        let by = self.administrator(&change);
        let answer = self.beside(by, |sim| sim.change(by, &change));
        if let Err(refusal) = answer {
            self.refused.push(Refused { number, at: self.now.ns(), change, refusal });
        }
    }

    /// The CPU on which the administrator's shell runs: the first one that is up and is not the subject of the change.
    fn administrator(&self, change: &Change) -> CpuId {
        let target = match change {
            Change::CpuOffline(cpu) | Change::CpuOnline(cpu) => Some(*cpu),
            Change::Partitions(_)
            | Change::Sysctl(..)
            | Change::Feature(..)
            | Change::Governed(_)
            | Change::Group { .. } => None,
        };
        let up = || (0..self.sched.nr_cpus()).map(CpuId::new).filter(|&cpu| self.sched.is_online(cpu));
        let other = up().find(|&cpu| Some(cpu) != target);
        other.or_else(|| up().next()).expect("a CPU is up")
    }

    fn change(&mut self, by: CpuId, change: &Change) -> Answer {
        match change {
            Change::CpuOffline(cpu) => self.sched.cpu_down(by, *cpu),
            Change::CpuOnline(cpu) => {
                self.sched.cpu_up(by, *cpu)?;
                self.unpark_ksoftirqd(by, *cpu);
                self.watchdog_enable(*cpu);
                Ok(())
            }
            Change::Partitions(partitions) => self.sched.set_partitions(by, partitions),
            Change::Sysctl(tunable, value) => self.sched.sysctl_write(by, *tunable, *value),
            Change::Feature(feature, on) => self.sched.sched_feat_set(by, *feature, *on),
            Change::Governed(change) => {
                self.govern(by, change);
                Ok(())
            }
            Change::Group { group, file, text } => self.sched.cgroup_write(by, *group, *file, text),
        }
    }

    /// Makes `cpu` do something, as if a process there had done it. The time this takes is `cpu`'s.
    pub(crate) fn beside<T>(&mut self, cpu: CpuId, body: impl FnOnce(&mut Self) -> T) -> T {
        let mut from = self.now.max(self.sched.arch().now(cpu));
        if let Run::User { since } = self.cpus[cpu].run {
            from = from.max(since);
            self.account_user(cpu, since, from);
        }
        self.sched.arch_mut().begin(cpu, from);
        let value = body(self);
        self.sched.arch_mut().answer_at_once(cpu);
        let to = self.sched.arch().now(cpu);
        match self.cpus[cpu].run {
            Run::Idle => self.sched.arch_mut().executed_beside_idle(cpu, to - from),
            // On the way back to user mode the task looks at its flags.
            Run::User { .. } => self.pause(cpu),
            Run::EnteringIdle | Run::LeavingIdle | Run::Kernel => self.cpus[cpu].at = self.cpus[cpu].at.max(to),
            Run::Unsettled => self.unsettled[cpu.index()].as_mut().expect("it is unsettled").delay(to - from),
        }
        if self.sched.need_resched(cpu) && self.sched.current(cpu).is_none() {
            // Nothing runs there that would look at its flags on the way out.
            self.cpus[cpu].notice(Notice::Monitor, to);
        }
        self.requeue(cpu);
        self.deliver();
        value
    }

    /// A timeout of a CPU that has gone offline fires on `to`, unless it was for that CPU's own sake.
    fn move_timeout(&mut self, to: CpuId, timeout: Timeout, deferrable: bool) {
        if matches!(timeout.fires, Fires::Work { work: DelayedWork::VmstatUpdate, .. }) {
            return;
        }
        let timers = &mut self.cpus[to].timers;
        if deferrable {
            timers.arm_deferrable(timeout.at, timeout.fires);
        } else {
            timers.arm_wheel(timeout.at, timeout.fires);
        }
    }

    /// The CPU has gone offline: the timers of its sleepers move to another CPU, and it rests in the deepest idle
    /// state.
    pub(crate) fn go_offline(&mut self, cpu: CpuId) {
        let up = (0..self.sched.nr_cpus()).map(CpuId::new).find(|&other| self.sched.is_online(other));
        let to = up.expect("a CPU stays up");
        for timer in self.cpus[cpu].timers.leave() {
            self.cpus[to].timers.arm(timer.soft, timer.hard, timer.task, timer.sleep);
        }
        for timer in self.cpus[cpu].timers.leave_wheel() {
            self.move_timeout(to, timer, false);
        }
        for timer in self.cpus[cpu].timers.leave_deferrable() {
            self.move_timeout(to, timer, true);
        }
        self.os.cancel_vmstat_work(cpu);
        self.cpus[cpu].timers.set_watchdog(Ps::NEVER);
        self.requeue(to);
        self.migrate_irqs(cpu);
        self.hand_over_do_timer(cpu, to);
        self.sched.arch_mut().play_dead(cpu);
        let now = self.sched.arch().now(cpu);
        let this = &mut self.cpus[cpu];
        (this.tick_at, this.ipi_at, this.monitor_at, this.ipis) = (Ps::NEVER, Ps::NEVER, Ps::NEVER, 0);
        this.run = Run::EnteringIdle;
        this.at = now;
    }
}
