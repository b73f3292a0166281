//! fair.c: task groups: what a group's entity weighs on each CPU, and how groups are created and destroyed.
//!
//! A group has a queue and an entity on each CPU; the entity represents the queue one level up. The group's shares are divided
//! among its entities in proportion to the load of their queues. This takes a sum over all CPUs (`tg->load_avg`), which each
//! queue corrects from time to time. Absent: real-time groups.

use super::rules::{Pick, ReweightLag, WakingVruntime};
use crate::arch::Arch;
use crate::behaviour;
use crate::core::{MoveQueued, Sched};
use crate::fair::bandwidth::MoveRunning;
use crate::fair::load::{Arithmetic, Step, TgLoadAvg, UpdateLoad, reweight_averages, with_arithmetic};
use crate::load_weight::LoadResolution;
use crate::pelt::{SchedAvg, load_avg_is_decayed};
use crate::sched::*;
use crate::syscalls::TaskChange;
use fentry::fentry;
use units::{CpuId, unlikely};

/// sched.h: MIN_SHARES, MAX_SHARES. Bounds of a group's shares as shown to users; the lower one, unscaled, also bounds the
/// weight of its entities.
pub const MIN_SHARES: u64 = 2;
pub const MAX_SHARES: u64 = 1 << 18;

behaviour! {
    /// What a group's entity weighs.
    pub enum GroupShares = "entity.group_shares" {
        QueueWeight = "queue-weight", since "v4.4", commit "fde7d22e01aa",
            "shares by the weight of its queue, corrected after something is queued below it (update_cfs_shares)";
        LoadAverage = "load-average", since "v4.15", commit "1ea6c46a23f1",
            "shares by its queue's weight or load average, the greater, corrected before it is queued itself, with a \
             runnable weight beside (update_cfs_group)";
        LoadAverageAlone = "load-average-alone", since "v5.7", commit "0dacee1bfa70",
            "the same without the runnable weight";
        /// The weight that an empty group's entity leaves with is needed while its dequeue is delayed.
        LoadAverageOfBusy = "load-average-of-busy", since "v6.13", commit "66951e4860d3",
            "the same, but an empty queue's entity keeps its weight, and a weight that stays is not set anew";
        /// As `cgroup_mode` has it: that is the default, `concur`. The number of tasks is the group's average of runnable ones
        /// (`tg->runnable_avg`), which queues correct together with its load.
        Concurrent = "concurrent", since "v7.3", commit "",
            "the same, of as many times the shares as the group has runnable tasks, at most one for each CPU";
    }
}

behaviour! {
    /// The order of `rq->leaf_cfs_rq_list`.
    pub enum LeafList = "entity.leaf_list" {
        HeadOrTail = "head-or-tail", since "v2.6.38", commit "",
            "a queue goes to the front if its parent is listed, else to the end";
        BeforeParent = "before-parent", since "v4.10", commit "9c2791f936ef",
            "a queue always stands before its parent, whole branches included";
        Propagated = "propagated", since "v5.10.y", commit "0258bdfaff5b",
            "the same, and load that comes or goes without being queued lists its queue and those above, from a throttled one on only up \
             to a connected one (as in 5.10.262)";
        PropagatedKept = "propagated-kept", since "v5.13", commit "fdaba61ef8a2",
            "the same, and a queue stays while a child stands before it";
        Connected = "connected", since "v6.0", commit "51bf903b64bd",
            "the same, but a queue that is throttled, or below one that is, is not listed by load that comes or goes";
    }
}

impl LeafList {
    /// Whether a queue stays on the list for a child before it.
    fn keeps_parents(self) -> bool {
        matches!(self, LeafList::PropagatedKept | LeafList::Connected)
    }
}

impl<A: Arch> Sched<A> {
    // Shares.

    /// Corrects the weight that changed with `se`, an entity of `cfs`: that of the group to which `cfs` belongs, or of `se`
    /// itself.
    #[inline]
    pub(crate) fn update_shares(&mut self, cfs: CfsRqId, se: SeId) {
        match self.kernel.load.group_shares {
            GroupShares::QueueWeight => self.update_cfs_shares(cfs),
            _ => self.update_cfs_group(se),
        }
    }

    /// The same, as part of one step of a walk.
    #[inline(always)]
    pub(crate) fn update_shares_in(&mut self, step: Step, cfs: CfsRqId, se: SeId, queued: bool) {
        match self.arithmetic_of(step).shares {
            GroupShares::QueueWeight => self.update_cfs_shares(cfs),
            _ => self.update_cfs_group_in(step, se, queued),
        }
    }

    /// fair.c: update_cfs_shares(), until v4.10. Updates the weight of the entity that represents `cfs` one level up.
    #[inline]
    pub(crate) fn update_cfs_shares(&mut self, cfs: CfsRqId) {
        let cfs_rq = &self.cfs_rq[cfs];
        if cfs_rq.tg != ROOT_TASK_GROUP && !self.hierarchy_is_off(cfs) {
            self.update_cfs_shares_of(cfs, cfs_rq.tg, cfs_rq.rq);
        }
    }

    #[fentry(update_cfs_shares)]
    fn update_cfs_shares_of(&mut self, cfs: CfsRqId, tg: TgId, cpu: CpuId) {
        self.read_tg_se(tg);
        let se = self.tg[tg].se[cpu.index()];
        let shares = self.calc_cfs_shares(cfs, tg);
        let load = LoadWeight { weight: shares, inv_weight: 0 };
        self.write_group_se(se);
        self.reweight_entity(self.any_arithmetic(), se, load, shares, self.se[se].on_rq);
    }

    /// fair.c: calc_cfs_shares(). In the scale of stored weights.
    ///
    /// `shares * load / (the group's load elsewhere + load)`, where `load` is this queue's weight.
    fn calc_cfs_shares(&mut self, cfs: CfsRqId, tg: TgId) -> u64 {
        let load = self.kernel.load_resolution.scale_load_down(self.cfs_rq[cfs].load.weight) as i64;
        let tg_weight = self.calc_tg_weight(cfs, tg, load);
        let tg_shares = self.tg_shares(tg) as i64;
        clamp_shares(divide(tg_shares.wrapping_mul(load), tg_weight), tg_shares)
    }

    /// fair.c: calc_tg_weight(). The group's load, with this queue's part as it is now.
    #[inline]
    pub(crate) fn calc_tg_weight(&mut self, cfs: CfsRqId, tg: TgId, load: i64) -> i64 {
        self.tg_load_avg(tg) as i64 - self.cfs_rq[cfs].tg_load_avg_contrib as i64 + load
    }

    /// fair.c: update_cfs_group() (update_cfs_shares() from v4.11). Updates the weight of a group's entity from its queue; does
    /// nothing for a task.
    #[inline]
    #[doc(alias = "update_cfs_shares")]
    pub(crate) fn update_cfs_group(&mut self, se: SeId) {
        if let Some(group) = self.se[se].my_q
            && !self.hierarchy_is_off(group)
        {
            self.update_cfs_group_of(se, group);
        }
    }

    /// The same, as part of one step of a walk, which knows whether the entity is queued.
    #[inline(always)]
    pub(crate) fn update_cfs_group_in(&mut self, step: Step, se: SeId, queued: bool) {
        match (step, self.se[se].my_q) {
            (Step::Any, _) => self.update_cfs_group(se),
            (Step::Group(arithmetic), Some(group)) if !self.hierarchy_is_off(group) => {
                self.update_cfs_group_in_line(arithmetic, se, group, queued);
            }
            (Step::Group(_), _) => {}
        }
    }

    #[inline(never)]
    fn update_cfs_group_of(&mut self, se: SeId, group: CfsRqId) {
        let queued = self.se[se].on_rq;
        with_arithmetic!(self, arithmetic, self.update_cfs_group_in_line(arithmetic, se, group, queued));
    }

    #[inline(always)]
    #[fentry(update_cfs_shares)]
    fn update_cfs_group_in_line(&mut self, arithmetic: Arithmetic, se: SeId, group: CfsRqId, queued: bool) {
        let of_busy = matches!(arithmetic.shares, GroupShares::LoadAverageOfBusy | GroupShares::Concurrent);
        if of_busy && self.cfs_rq[group].load.weight == 0 {
            return;
        }
        let tg = self.cfs_rq[group].tg;
        let shares = self.tg_shares(tg);
        let (weight, runnable) = match arithmetic.shares {
            GroupShares::Concurrent => {
                let weight = self.calc_mode_shares(arithmetic.resolution, group, shares);
                (weight, weight)
            }
            _ => {
                let tg_load = self.tg_load_avg(tg);
                calc_group_weights(arithmetic, &self.cfs_rq[group], shares, tg_load)
            }
        };
        // Virtual times follow each new weight, so there has to be one (6.6.y).
        let always = !of_busy && arithmetic.pick == Pick::Cfs;
        if always || self.se[se].load.weight != weight {
            let load = LoadWeight { weight, inv_weight: 0 };
            self.write_group_se(se);
            self.reweight_entity(arithmetic, se, load, runnable, queued);
        }
    }

    /// fair.c: reweight_entity(). The caller charges the write of the line that holds the weight.
    #[inline(always)]
    pub(crate) fn reweight_entity(
        &mut self,
        arithmetic: Arithmetic,
        se: SeId,
        load: LoadWeight,
        runnable: u64,
        queued: bool,
    ) {
        debug_assert_eq!(queued, self.se[se].on_rq, "whoever asks knows");
        let cfs = self.se[se].cfs_rq;
        if arithmetic.pick == Pick::Eevdf && !self.picks_flat() {
            return self.reweight_entity_eevdf(cfs, se, load, runnable);
        }
        if queued && self.cfs_rq[cfs].curr == Some(se) && arithmetic.pick == Pick::Cfs {
            self.update_curr(cfs);
        }
        let (cfs_rq, entity) = (&mut self.cfs_rq[cfs], &mut self.se[se]);
        let (before, on_root) = (entity.load.weight, queued && entity.parent.is_none());
        if queued {
            // The weight of its queue follows.
            debug_assert!(entity.task.is_none(), "a queued task keeps its weight");
            cfs_rq.load.update_load_sub(before);
            cfs_rq.load.update_load_add(load.weight);
        }
        let cpu = cfs_rq.rq;
        reweight_averages(arithmetic, cfs_rq, entity, load, runnable, queued);
        if on_root {
            self.reweight_rq(cpu, before, load.weight);
        }
    }

    /// The same since v6.6: virtual times follow the weight.
    #[inline(never)]
    fn reweight_entity_eevdf(&mut self, cfs: CfsRqId, se: SeId, load: LoadWeight, runnable: u64) {
        let arithmetic = self.any_arithmetic();
        if !self.se[se].on_rq {
            self.rescale_entity(se, load.weight, None);
            let (cfs_rq, entity) = (&mut self.cfs_rq[cfs], &mut self.se[se]);
            return reweight_averages(arithmetic, cfs_rq, entity, load, runnable, false);
        }
        if self.kernel.entity.reweight_lag == ReweightLag::FromAll || self.cfs_rq[cfs].curr == Some(se) {
            self.update_curr(cfs);
        }
        let mut relative = self.begin_reweight(cfs, se);
        self.rescale_entity(se, load.weight, Some(&mut relative));
        self.account_entity_reweight(cfs, se, load.weight);
        let (cfs_rq, entity) = (&mut self.cfs_rq[cfs], &mut self.se[se]);
        reweight_averages(arithmetic, cfs_rq, entity, load, runnable, true);
        self.end_reweight(cfs, se, relative);
    }

    // The list of queues that have load.

    /// fair.c: list_add_leaf_cfs_rq(). Keeps children before their parents.
    #[inline]
    pub(crate) fn list_add_leaf_cfs_rq(&mut self, cfs: CfsRqId) {
        if unlikely(!self.cfs_rq[cfs].on_list) {
            self.list_add_new_leaf(cfs);
        }
    }

    fn list_add_new_leaf(&mut self, cfs: CfsRqId) {
        let (cpu, tg) = (self.cfs_rq[cfs].rq, self.cfs_rq[cfs].tg);
        let parent = self.tg[tg].parent;
        if let Some(parent) = parent {
            self.read_tg_parent(tg);
            self.read_tg_cfs_rq(parent);
        }
        let parent_queue = parent.map(|parent| self.tg[parent].cfs_rq[cpu.index()]);
        let listed_parent = parent_queue.filter(|&parent| self.cfs_rq[parent].on_list);
        self.cfs_rq[cfs].on_list = true;
        let rq = &mut self.rq[cpu];
        let list = &mut rq.leaf_cfs_rq_list;
        match (self.kernel.load.leaf_list, listed_parent) {
            (LeafList::HeadOrTail, Some(_)) => list.list_add(&mut self.cfs_rq, cfs),
            (LeafList::HeadOrTail, None) => list.list_add_tail(&mut self.cfs_rq, cfs),
            // The branch is connected, so the next one begins at the head of the list again.
            (_, Some(listed)) => {
                list.list_add_before(&mut self.cfs_rq, cfs, listed);
                rq.tmp_alone_branch = None;
            }
            (_, None) if parent.is_none() => {
                list.list_add_tail(&mut self.cfs_rq, cfs);
                rq.tmp_alone_branch = None;
            }
            // The parent is added later in this enqueue, and must find its place behind this queue.
            (_, None) => {
                match rq.tmp_alone_branch {
                    None => list.list_add(&mut self.cfs_rq, cfs),
                    Some(branch) => list.list_add_behind(&mut self.cfs_rq, cfs, branch),
                }
                rq.tmp_alone_branch = Some(cfs);
            }
        }
    }

    /// fair.c: list_del_leaf_cfs_rq().
    pub(crate) fn list_del_leaf_cfs_rq(&mut self, cfs: CfsRqId) {
        let cfs_rq = &mut self.cfs_rq[cfs];
        if cfs_rq.on_list {
            cfs_rq.on_list = false;
            let rq = &mut self.rq[cfs_rq.rq];
            // A branch that is not connected to its parent yet now ends one entry earlier.
            if rq.tmp_alone_branch == Some(cfs) {
                rq.tmp_alone_branch = cfs_rq.leaf_cfs_rq_list.prev.get().map(CfsRqId);
            }
            rq.leaf_cfs_rq_list.list_del(&mut self.cfs_rq, cfs);
        }
    }

    /// fair.c: child_cfs_rq_on_list(). Whether the list has a child of this queue. It would be right before the queue, or wait
    /// at the end of its branch.
    fn child_cfs_rq_on_list(&self, cfs: CfsRqId) -> bool {
        let queue = &self.cfs_rq[cfs];
        let prev = if queue.on_list {
            queue.leaf_cfs_rq_list.prev.get().map(CfsRqId)
        } else {
            self.rq[queue.rq].tmp_alone_branch
        };
        prev.is_some_and(|prev| self.tg[self.cfs_rq[prev].tg].parent == Some(queue.tg))
    }

    /// fair.c: cfs_rq_is_decayed().
    pub(crate) fn cfs_rq_is_decayed(&self, cfs: CfsRqId) -> bool {
        let queue = &self.cfs_rq[cfs];
        queue.load.weight == 0
            && load_avg_is_decayed(&queue.avg)
            && !(self.kernel.load.leaf_list.keeps_parents() && self.child_cfs_rq_on_list(cfs))
            && (self.kernel.load.tg_load_avg == TgLoadAvg::EveryChange || queue.tg_load_avg_contrib == 0)
    }

    // Groups come and go.

    /// core.c: sched_init(), the fair part. Creates the root group's queues, one for each CPU, with the CPU's number.
    pub(crate) fn init_root_task_group(&mut self) {
        let shares = self.kernel.load_resolution.nice_0_load();
        let root = self.tg.insert(TaskGroup { shares, ..TaskGroup::default() });
        assert_eq!(root, ROOT_TASK_GROUP, "the root group is the first");
        for cpu in (0..self.nr_cpus()).map(CpuId::new) {
            let cfs = self.init_cfs_rq(root, cpu);
            assert_eq!(cfs, self.rq[cpu].cfs, "a root queue has its CPU's number");
        }
    }

    /// fair.c: init_cfs_rq(). vruntime starts shortly before it wraps, so that wrapping is always exercised.
    fn init_cfs_rq(&mut self, tg: TgId, cpu: CpuId) -> CfsRqId {
        let start = 0u64.wrapping_sub(1 << 20);
        // See cfs_rq_clock_pelt(): an entity attached before the first update must not be attached at time 0.
        let last_update_time = u64::from(self.rq[cpu].clock_task == 0);
        let avg = SchedAvg { last_update_time, ..SchedAvg::default() };
        let (min_vruntime, zero_vruntime) = (start, start);
        let of_group = tg != ROOT_TASK_GROUP;
        let queue = CfsRq { min_vruntime, zero_vruntime, rq: cpu, tg, of_group, avg, ..CfsRq::default() };
        let cfs = self.cfs_rq.insert(queue);
        self.cfs_rq[cfs].first_byte = self.layout.first_of_cfs_rq(cfs, (!of_group).then_some(cpu));
        self.bandwidth.init_cfs_rq_runtime(cfs);
        self.tg[tg].cfs_rq.push(cfs);
        cfs
    }

    /// core.c: sched_create_group() and sched_online_group(). Creates a group below `parent`, with `shares` as users see them
    /// (1024 is the default), clamped to [`MIN_SHARES`] and [`MAX_SHARES`].
    pub fn sched_create_group(&mut self, parent: TgId, name: &str, shares: u64) -> TgId {
        let default = self.kernel.load_resolution.nice_0_load();
        let group = TaskGroup { shares: default, parent: Some(parent), name: name.to_owned(), ..TaskGroup::default() };
        let tg = self.tg.insert(group);
        self.init_cfs_bandwidth(tg);
        self.tg[parent].children.push(tg);
        self.cpu_util_update_eff(tg);
        for cpu in (0..self.nr_cpus()).map(CpuId::new) {
            let cfs = self.init_cfs_rq(tg, cpu);
            self.init_tg_cfs_entry(tg, cfs, cpu, parent);
        }
        self.online_fair_sched_group(tg);
        self.sched_group_set_shares(tg, shares);
        self.psi_cgroup_alloc(tg);
        tg
    }

    /// fair.c: init_tg_cfs_entry(). Creates the entity of a group on one CPU, which always has weight.
    fn init_tg_cfs_entry(&mut self, tg: TgId, cfs: CfsRqId, cpu: CpuId, parent: TgId) {
        let parent_se = self.tg[parent].se.get(cpu.index()).copied();
        let se = self.se.insert(SchedEntity {
            load: LoadWeight { weight: self.kernel.load_resolution.nice_0_load(), inv_weight: 0 },
            cfs_rq: self.tg[parent].cfs_rq[cpu.index()],
            my_q: Some(cfs),
            parent: parent_se,
            depth: parent_se.map_or(0, |parent| self.se[parent].depth + 1),
            ..SchedEntity::default()
        });
        self.se[se].first_line = self.layout.first_of_se(se, None);
        *self.statistics(se) = SchedStatistics::default();
        self.init_entity_runnable_average(se);
        self.tg[tg].se.push(se);
    }

    /// fair.c: online_fair_sched_group() (v4.8). Attaches new entities at once; earlier kernels attach them when they are
    /// queued.
    fn online_fair_sched_group(&mut self, tg: TgId) {
        if self.kernel.pelt == crate::pelt::Pelt::ByPeriod {
            return;
        }
        for cpu in (0..self.nr_cpus()).map(CpuId::new) {
            self.rq_lock(cpu);
            self.update_rq_clock(cpu);
            self.attach_entity_cfs_rq(self.tg[tg].se[cpu.index()]);
            self.sync_throttle(tg, cpu);
            self.rq_unlock(cpu);
        }
    }

    /// fair.c: sched_group_set_shares(). `shares` as users see them. The root group's weight cannot be changed.
    ///
    /// # Panics
    /// For the root group and for idle groups; the kernel answers EINVAL.
    pub fn sched_group_set_shares(&mut self, tg: TgId, shares: u64) {
        assert!(!self.tg_is_idle(tg), "an idle group's shares are fixed");
        let shares = self.kernel.load_resolution.scale_load(shares.clamp(MIN_SHARES, MAX_SHARES));
        self.__sched_group_set_shares(tg, shares);
    }

    /// fair.c: __sched_group_set_shares(). In the scale of stored weights.
    pub(crate) fn __sched_group_set_shares(&mut self, tg: TgId, shares: u64) {
        assert_ne!(tg, ROOT_TASK_GROUP, "the root group's shares are fixed");
        if self.tg[tg].shares == shares {
            return;
        }
        self.tg[tg].shares = shares;
        for cpu in (0..self.nr_cpus()).map(CpuId::new) {
            self.rq_lock(cpu);
            self.update_rq_clock(cpu);
            let mut level = Some(self.tg[tg].se[cpu.index()]);
            while let Some(se) = level {
                self.update_shares_upwards(se);
                level = self.se[se].parent;
            }
            self.rq_unlock(cpu);
        }
    }

    /// One level of `sched_group_set_shares()`.
    fn update_shares_upwards(&mut self, se: SeId) {
        match self.kernel.load.group_shares {
            GroupShares::QueueWeight => {
                let group = self.se[se].my_q.expect("groups above groups");
                self.update_cfs_shares(group);
            }
            _ => {
                self.update_load_avg(self.se[se].cfs_rq, se, UpdateLoad::UPDATE_TG);
                self.update_cfs_group(se);
            }
        }
    }

    /// core.c: sched_offline_group() and sched_destroy_group(). The ids of the group, its queues and entities may be reused
    /// afterwards.
    ///
    /// # Panics
    /// If the group has tasks or children, or is the root group.
    pub fn sched_destroy_group(&mut self, tg: TgId) {
        let parent = self.tg[tg].parent.expect("the root group stays");
        assert!(self.tg[tg].children.is_empty(), "group {} has children", self.tg[tg].name);
        let inhabited = self.task.iter().any(|(_, task)| task.alive && task.sched_task_group == tg);
        assert!(!inhabited, "group {} has tasks", self.tg[tg].name);
        self.destroy_cfs_bandwidth(tg);
        self.psi_cgroup_free(tg);
        for cpu in 0..self.nr_cpus() {
            let (se, cfs) = (self.tg[tg].se[cpu], self.tg[tg].cfs_rq[cpu]);
            self.end_delayed_dequeue(CpuId::new(cpu), se);
            self.remove_entity_load_avg(se);
            self.list_del_leaf_cfs_rq(cfs);
            let above = &mut self.cfs_rq[self.se[se].cfs_rq];
            above.h_load_next = above.h_load_next.filter(|&next| next != se);
            above.skip = above.skip.filter(|&skip| skip != se);
            self.se.remove(se);
            self.cfs_rq.remove(cfs);
        }
        self.tg[parent].children.retain(|&child| child != tg);
        self.tg.remove(tg);
    }

    /// core.c: sched_move_task(). Moves a task to another group.
    /// Differs: a task that was never woken just takes the group, as cpu_cgroup_fork() would arrange (v4.8: TASK_SET_GROUP).
    #[fentry]
    pub(crate) fn sched_move_task(&mut self, p: TaskId, tg: TgId) {
        if self.task[p].state == TaskState::New {
            self.task[p].sched_task_group = tg;
            self.set_task_rq(p, self.task[p].cpu);
            return;
        }
        self.change_task(p, TaskChange::MOVE_GROUP, |sched| {
            sched.task[p].sched_task_group = tg;
            sched.task_change_group(p);
        });
        let cpu = self.task[p].cpu;
        if self.kernel.bandwidth.move_running == MoveRunning::Reschedules && self.rq[cpu].curr == Some(p) {
            self.resched_curr(cpu);
        } else if self.kernel.core.move_queued == MoveQueued::Preempts && self.task[p].on_rq == OnRq::Queued {
            self.check_preempt_curr(cpu, p, WakeFlags::NONE);
        }
    }

    /// fair.c: task_move_group_fair().
    pub(crate) fn task_move_group_fair(&mut self, p: TaskId) {
        self.detach_task_cfs_rq(p);
        self.set_task_rq(p, self.task[p].cpu);
        let se = self.task[p].se;
        self.se[se].avg.last_update_time = 0;
        self.attach_task_cfs_rq(p);
    }

    /// fair.c: vruntime_normalized(). Whether a task's vruntime is relative, and so tied to no queue.
    fn vruntime_normalized(&self, p: TaskId) -> bool {
        if self.kernel.entity.pick == Pick::Eevdf {
            // Since v6.6 the task keeps its lag instead, which is tied to no queue.
            return true;
        }
        let task = &self.task[p];
        let waking = match self.kernel.entity.waking_vruntime {
            WakingVruntime::Relative => true,
            WakingVruntime::RelativeIfMigrated => task.sched_remote_wakeup,
        };
        task.on_rq != OnRq::No || self.se[task.se].sum_exec_runtime == 0 || task.state == TaskState::Waking && waking
    }

    /// fair.c: detach_task_cfs_rq().
    pub(super) fn detach_task_cfs_rq(&mut self, p: TaskId) {
        let se = self.task[p].se;
        if !self.vruntime_normalized(p) {
            let cfs = self.se[se].cfs_rq;
            self.place_entity_cfs(cfs, se, false);
            self.se[se].vruntime = self.se[se].vruntime.wrapping_sub(self.cfs_rq[cfs].min_vruntime);
        }
        self.detach_entity_cfs_rq(se);
    }

    /// fair.c: attach_task_cfs_rq().
    pub(super) fn attach_task_cfs_rq(&mut self, p: TaskId) {
        let se = self.task[p].se;
        self.attach_entity_cfs_rq(se);
        if !self.vruntime_normalized(p) {
            let se = &mut self.se[se];
            se.vruntime = se.vruntime.wrapping_add(self.cfs_rq[se.cfs_rq].min_vruntime);
        }
    }
}

/// The weight of a group's entity, and how much of it is runnable. In the scale of stored weights.
#[inline(always)]
pub(super) fn calc_group_weights(arithmetic: Arithmetic, cfs_rq: &CfsRq, shares: u64, tg_load: u64) -> (u64, u64) {
    let (weight, load) = calc_group_shares(arithmetic.resolution, cfs_rq, shares, tg_load);
    let runnable = match arithmetic.shares {
        GroupShares::LoadAverage => calc_group_runnable(arithmetic.resolution, cfs_rq, weight as i64, load),
        _ => weight,
    };
    (weight, runnable)
}

/// fair.c: calc_group_shares(). In the scale of stored weights; also returns the `load` that it used. `shares` and `tg_load`
/// are the group's.
///
/// `shares * load / (the group's load elsewhere + load)`, where `load` is the greater of this queue's weight and load average.
#[inline(always)]
fn calc_group_shares(resolution: LoadResolution, cfs_rq: &CfsRq, shares: u64, tg_load: u64) -> (u64, i64) {
    calc_smp_shares(resolution, cfs_rq, shares, shares, tg_load)
}

/// The same with `shares` to divide and a bound of their own (`__calc_smp_shares()`, v7.3).
#[inline(always)]
pub(super) fn calc_smp_shares(
    resolution: LoadResolution,
    cfs_rq: &CfsRq,
    shares: u64,
    most: u64,
    tg_load: u64,
) -> (u64, i64) {
    let load = resolution.scale_load_down(cfs_rq.load.weight).max(cfs_rq.avg.load_avg) as i64;
    let tg_weight = tg_load as i64 - cfs_rq.tg_load_avg_contrib as i64 + load;
    (clamp_shares(divide((shares as i64).wrapping_mul(load), tg_weight), most as i64), load)
}

/// fair.c: calc_group_runnable(), until v5.6. In the scale of stored weights: `shares` times the part of the queue's `load`
/// that is runnable now.
#[inline(always)]
fn calc_group_runnable(resolution: LoadResolution, cfs_rq: &CfsRq, shares: i64, load: i64) -> u64 {
    let weight = resolution.scale_load_down(cfs_rq.runnable_weight);
    let runnable = cfs_rq.avg.runnable_avg.max(weight) as i64;
    clamp_shares(divide(runnable.wrapping_mul(shares), load), shares)
}

/// A division that returns the dividend if the divisor is zero.
#[inline(always)]
fn divide(dividend: i64, divisor: i64) -> i64 {
    if divisor == 0 {
        dividend
    } else if unlikely((dividend | divisor) as u64 > u64::from(u32::MAX)) {
        dividend / divisor
    } else {
        // The usual case, and the fastest division.
        i64::from(dividend as u32 / divisor as u32)
    }
}

/// Clamps to MIN_SHARES, which is deliberately unscaled (a small group must not grow on many CPUs), and `most`.
#[inline]
fn clamp_shares(shares: i64, most: i64) -> u64 {
    shares.max(MIN_SHARES as i64).min(most) as u64
}
