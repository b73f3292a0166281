//! CPUs whose speed changes while tasks run on them: by frequency, by the other threads of their core, or by what other
//! tasks ask of caches and memory.

use crate::cpu::Run;
use crate::engine::Sim;
use machine::frequency::Change;
use machine::hardware::Hardware;
use machine::memory::{Demand, Fetches, InMemory};
use machine::smt::Beside;
use machine::smt::WorkKind;
use sched::sched::TaskId;
use sched::scheduler::Scheduler;
use units::{CpuId, Ps, unlikely};

impl<const COSTS: bool, S: Scheduler<Arch = Hardware<COSTS>>> Sim<COSTS, S> {
    /// Does what is due for the machine's clocks: a task on a CPU that changes its frequency takes a different time
    /// from now on.
    pub(crate) fn change_frequencies(&mut self) {
        let at = self.timeline.frequency();
        self.now = self.now.max(at);
        let mut changes = Vec::new();
        self.sched.arch_mut().frequency_step(&mut changes);
        let mut demands = false;
        for change in changes {
            demands |= self.change_frequency(change, at);
        }
        if demands {
            self.settle_memory(None, at);
        }
        let due = self.sched.arch_mut().frequency_done();
        self.timeline.set_frequency(due);
    }

    /// Returns whether a CPU of that clock waits for memory: how much it asks for depends on its speed.
    fn change_frequency(&mut self, change: Change, at: Ps) -> bool {
        let cpus = self.sched.arch().domain_len(change.domain);
        // The work so far was done at the old frequency.
        for index in 0..cpus {
            if let Some((cpu, since)) = self.user_of(change, index) {
                self.account_user(cpu, since, at.max(since));
            }
        }
        self.sched.arch_mut().change_frequency(change, at);
        let mut demands = false;
        for index in 0..cpus {
            demands |= self.sched.arch().demands(self.sched.arch().domain_cpu(change.domain, index));
            if let Some((cpu, since)) = self.user_of(change, index) {
                self.resume_user(cpu, at.max(since));
                self.requeue(cpu);
            }
        }
        demands
    }

    /// The domain's CPU number `index` and since when it has been in user mode, if it is.
    fn user_of(&self, change: Change, index: usize) -> Option<(CpuId, Ps)> {
        let cpu = self.sched.arch().domain_cpu(change.domain, index);
        match self.cpus[cpu].run {
            Run::User { since } => Some((cpu, since)),
            _ => None,
        }
    }

    /// `change` alters, from `now` on, how fast the threads of `cpu`'s core are beside each other. So what its siblings
    /// do in user mode takes a different time.
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
                    // The sibling's progress so far was at the old speed.
                    self.account_user(sibling, since, now.max(since));
                }
                change(self.sched.arch_mut());
                if let Some(since) = user_since {
                    self.resume_user(sibling, now.max(since));
                    self.requeue(sibling);
                }
                if unlikely(self.sched.arch().demands(sibling)) {
                    self.settle_memory(Some(cpu), now);
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
        let mut demands = false;
        for number in 0..siblings {
            demands |= self.sched.arch().demands(self.sched.arch().siblings(cpu)[number]);
            if let Some((sibling, since)) = self.sibling_in_user_mode(cpu, number) {
                self.resume_user(sibling, now.max(since));
                self.requeue(sibling);
            }
        }
        if demands {
            self.settle_memory(Some(cpu), now);
        }
    }

    /// The sibling number `number` and since when it has been in user mode, if it is.
    fn sibling_in_user_mode(&self, cpu: CpuId, number: usize) -> Option<(CpuId, Ps)> {
        let sibling = self.sched.arch().siblings(cpu)[number];
        match self.cpus[sibling].run {
            Run::User { since } => Some((sibling, since)),
            _ => None,
        }
    }

    /// What a task with these fetches asks of caches and memory.
    pub(crate) fn demand_of(&self, task: TaskId, fetches: Fetches) -> Demand {
        let touched = self.os.memory.touched_by(task);
        let memories = touched.map(|(region, bytes, share)| InMemory { memory: region.0, bytes, share }).collect();
        Demand { fetches, nodes: self.os.memory.nodes_of(task), memories }
    }

    /// From now on the work of a task that runs on `cpu` is of this kind and fetches this.
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

    /// While `cpu` executes, memory has moved to other nodes: running tasks that own part of it fetch it from there.
    pub(crate) fn refresh_demands(&mut self, cpu: CpuId) {
        let mut moved = false;
        for of in self.sched.arch().demanding() {
            let task = self.sched.current(of);
            let Some(Some(context)) = task.and_then(|task| self.tasks.get(task.index())) else { continue };
            let demand = task.map(|task| self.demand_of(task, context.fetches));
            if demand.as_ref() != self.sched.arch().demand(of) {
                self.sched.arch_mut().set_demand(of, demand);
                moved = true;
            }
        }
        if moved {
            self.settle_memory(Some(cpu), self.sched.arch().now(cpu));
        }
    }

    /// What runs on `cpu` asks for this of the caches and memory from `now` on. Other tasks that ask for something may
    /// then be faster or slower.
    pub(crate) fn share_memory(&mut self, cpu: CpuId, now: Ps, demand: Option<Demand>) {
        self.sched.arch_mut().set_demand(cpu, demand);
        self.settle_memory(Some(cpu), now);
    }

    /// Demands or speeds have changed: tasks whose share of caches and memory changes take a different time from `now`
    /// on. `executing` is in the kernel.
    fn settle_memory(&mut self, executing: Option<CpuId>, now: Ps) {
        for share in self.sched.arch_mut().settle_memory() {
            let cpu = share.cpu;
            let user_since = match self.cpus[cpu].run {
                Run::User { since } if executing != Some(cpu) => Some(since),
                _ => None,
            };
            if let Some(since) = user_since {
                self.account_user(cpu, since, now.max(since));
            }
            self.sched.arch_mut().take_share(share);
            if let Some(since) = user_since {
                self.resume_user(cpu, now.max(since));
                self.requeue(cpu);
            }
        }
    }
}
