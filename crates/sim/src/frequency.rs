//! CPUs whose speed changes while tasks run on them: by frequency, by what the other threads of their core do, by what others ask of
//! caches and memory.

use crate::cpu::Run;
use crate::engine::Sim;
use machine::frequency::Change;
use machine::hardware::Hardware;
use machine::memory::{Demand, Fetches};
use machine::smt::Beside;
use machine::smt::WorkKind;
use sched::sched::TaskId;
use sched::scheduler::Scheduler;
use units::{CpuId, Ps};

impl<const COSTS: bool, S: Scheduler<Arch = Hardware<COSTS>>> Sim<COSTS, S> {
    /// Does what the machine's clocks have due: what runs on a CPU that changes its frequency takes another time from now on.
    pub(crate) fn change_frequencies(&mut self) {
        let at = self.timeline.frequency();
        self.now = self.now.max(at);
        let mut changes = Vec::new();
        self.sched.arch_mut().frequency_step(&mut changes);
        for change in changes {
            self.change_frequency(change, at);
        }
        let due = self.sched.arch_mut().frequency_done();
        self.timeline.set_frequency(due);
    }

    fn change_frequency(&mut self, change: Change, at: Ps) {
        let cpus = self.sched.arch().domain_len(change.domain);
        // What was done so far was done at the old frequency.
        for index in 0..cpus {
            if let Some((cpu, since)) = self.user_of(change, index) {
                self.account_user(cpu, since, at.max(since));
            }
        }
        self.sched.arch_mut().change_frequency(change, at);
        for index in 0..cpus {
            if let Some((cpu, since)) = self.user_of(change, index) {
                self.resume_user(cpu, at.max(since));
                self.requeue(cpu);
            }
        }
    }

    /// A CPU of the domain by number, if it is in user mode, and since when.
    fn user_of(&self, change: Change, index: usize) -> Option<(CpuId, Ps)> {
        let cpu = self.sched.arch().domain_cpu(change.domain, index);
        match self.cpus[cpu].run {
            Run::User { since } => Some((cpu, since)),
            _ => None,
        }
    }

    /// `change` has the threads of `cpu`'s core leave each other other shares of it from `now` on: what its siblings are doing in user
    /// mode takes another time.
    #[inline(always)]
    pub(crate) fn share_core(&mut self, cpu: CpuId, now: Ps, change: impl FnOnce(&mut Hardware<COSTS>)) {
        match self.sched.arch().beside(cpu) {
            Beside::Nobody => change(self.sched.arch_mut()),
            beside => self.share_core_with(beside, cpu, now, change),
        }
    }

    #[inline(never)]
    fn share_core_with(&mut self, beside: Beside, cpu: CpuId, now: Ps, change: impl FnOnce(&mut Hardware<COSTS>)) {
        match beside {
            Beside::Nobody => {}
            Beside::One(sibling) => {
                let user_since = match self.cpus[sibling].run {
                    Run::User { since } => Some(since),
                    _ => None,
                };
                if let Some(since) = user_since {
                    // Its progress so far was at the old speed.
                    self.account_user(sibling, since, now.max(since));
                }
                change(self.sched.arch_mut());
                if let Some(since) = user_since {
                    self.resume_user(sibling, now.max(since));
                    self.requeue(sibling);
                }
            }
            Beside::Several => self.share_core_of_several(cpu, now, change),
        }
    }

    fn share_core_of_several(&mut self, cpu: CpuId, now: Ps, change: impl FnOnce(&mut Hardware<COSTS>)) {
        let siblings = self.sched.arch().siblings(cpu).len();
        for number in 0..siblings {
            if let Some((sibling, since)) = self.sibling_in_user_mode(cpu, number) {
                self.account_user(sibling, since, now.max(since));
            }
        }
        change(self.sched.arch_mut());
        for number in 0..siblings {
            if let Some((sibling, since)) = self.sibling_in_user_mode(cpu, number) {
                self.resume_user(sibling, now.max(since));
                self.requeue(sibling);
            }
        }
    }

    /// Another thread of the core by number, if it is in user mode, and since when.
    fn sibling_in_user_mode(&self, cpu: CpuId, number: usize) -> Option<(CpuId, Ps)> {
        let sibling = self.sched.arch().siblings(cpu)[number];
        match self.cpus[sibling].run {
            Run::User { since } => Some((sibling, since)),
            _ => None,
        }
    }

    /// What a task asks for that fetches this.
    pub(crate) fn demand_of(&self, task: TaskId, fetches: Fetches) -> Demand {
        Demand { fetches, nodes: self.os.memory.nodes_of(task) }
    }

    /// The work of a task that runs on `cpu` is of this kind, and fetches this, from now on.
    pub(crate) fn set_fetches(&mut self, cpu: CpuId, task: TaskId, kind: WorkKind, fetches: Fetches) {
        let context = self.context(task);
        (context.kind, context.fetches) = (kind, fetches);
        let now = self.sched.arch().now(cpu);
        if kind != self.sched.arch().work_kind(cpu) {
            self.share_core(cpu, now, |hardware| hardware.set_work_kind(cpu, kind));
        }
        if fetches.lines > 0 || self.sched.arch().demands(cpu) {
            let demand = (fetches.lines > 0).then(|| self.demand_of(task, fetches));
            self.share_memory(cpu, now, demand);
        }
    }

    /// A task that runs on `cpu` has its memory elsewhere than when it came to run.
    pub(crate) fn refresh_demand(&mut self, cpu: CpuId, task: TaskId) {
        let Some(Some(context)) = self.tasks.get(task.index()) else { return };
        let fetches = context.fetches;
        if fetches.lines > 0 && self.sched.arch().demands(cpu) {
            let (now, demand) = (self.sched.arch().now(cpu), self.demand_of(task, fetches));
            self.share_memory(cpu, now, Some(demand));
        }
    }

    /// What runs on `cpu` asks for that of the caches and memory from `now` on: whoever asks for something himself may get it later, or
    /// sooner.
    pub(crate) fn share_memory(&mut self, cpu: CpuId, now: Ps, demand: Option<Demand>) {
        let mut others = self.sched.arch().demanding();
        others.retain(|&other| other != cpu && matches!(self.cpus[other].run, Run::User { .. }));
        for &other in &others {
            let Run::User { since } = self.cpus[other].run else { continue };
            self.account_user(other, since, now.max(since));
        }
        self.sched.arch_mut().set_demand(cpu, demand);
        for &other in &others {
            let Run::User { since } = self.cpus[other].run else { continue };
            self.resume_user(other, now.max(since));
            self.requeue(other);
        }
    }
}
