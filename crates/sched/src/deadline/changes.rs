//! deadline.c: tasks that enter the deadline class, change in it or leave it, and CPUs that go on- and offline.

use super::DlSe;
use super::bandwidth::BandwidthTracking;
use crate::arch::Arch;
use crate::behaviour;
use crate::core::Sched;
use crate::cpudeadline::dl_time_before;
use crate::errno::{Answer, Errno, Refusal};
use crate::sched::*;
use units::CpuId;

behaviour! {
    /// When a waiting task whose parameters change preempts.
    pub enum DlPrioChanged = "dl.prio_changed" {
        EarliestHere = "earliest-here", since "v3.14", commit "",
            "when its deadline is behind the earliest one here, as the running task is looked at";
        Preempts = "preempts", since "v6.3", commit "7ea98dfa4491", "when its deadline comes before the running task's";
        Moved = "moved", since "v6.19", commit "",
            "the same, if its deadline is another one than before; others are pulled if it is a later one";
    }
}

behaviour! {
    /// Whether a waiting task that comes to the class preempts.
    pub enum DlSwitchedTo = "dl.switched_to" {
        PushOnly = "push-only", since "v3.14", commit "",
            "no: it may be pushed elsewhere, and otherwise waits until somebody has the CPU choose again (only machines with one \
             CPU had it preempt)";
        Preempts = "preempts", since "v4.11", commit "",
            "as one that wakes there";
    }
}

behaviour! {
    /// What becomes of the bandwidth of a task that leaves the class asleep, before its 0-lag time.
    pub enum DlLeaveAsleep = "dl.leave_asleep" {
        KeepsRunning = "keeps-running", since "v4.13", commit "209a0cbda7a0", "its CPU takes it for used for ever";
        Subtracted = "subtracted", since "v4.18", commit "", "it is used no more (after v4.16, by v4.19)";
    }
}

behaviour! {
    /// What the CPUs that stay must be able to give when one goes.
    pub enum HotplugBandwidth = "dl.hotplug" {
        All = "all", since "v3.14", commit "", "all that is reserved in the root domain, the fair servers' share with it";
        LessServer = "less-server", since "v6.14", commit "53916d5fd3c0",
            "the same without what the fair server of the CPU that goes has: nobody will need it; where that is all, the last one may go, too";
    }
}

impl<A: Arch> Sched<A> {
    /// deadline.c: switched_from_dl(). The task's bandwidth is freed once what it has used would have been replenished
    /// (0-lag).
    pub(crate) fn switched_from_dl(&mut self, cpu: CpuId, p: TaskId) {
        let (se, queued) = (DlSe::Task(p), self.task[p].on_rq == OnRq::Queued);
        match self.kernel.dl.tracking {
            BandwidthTracking::TotalOnly => {
                if !self.start_dl_timer(se) {
                    self.dl_se[p].__dl_clear_params();
                }
            }
            BandwidthTracking::Running => {
                if queued && self.dl_se[p].dl_runtime > 0 {
                    self.task_non_contending(se, false);
                }
                if !queued {
                    let forgotten = self.kernel.dl.leave_asleep == DlLeaveAsleep::KeepsRunning;
                    if self.dl_se[p].dl_non_contending && !forgotten {
                        self.sub_running_bw(se);
                    }
                    self.sub_rq_bw(se);
                }
                self.dl_se[p].dl_non_contending = false;
            }
        }
        if queued && self.dl[cpu].dl_nr_running == 0 {
            self.deadline_queue_pull_task(cpu);
        }
    }

    /// deadline.c: switched_to_dl().
    pub(crate) fn switched_to_dl(&mut self, cpu: CpuId, p: TaskId) {
        let tracked = self.kernel.dl.tracking == BandwidthTracking::Running;
        if tracked {
            self.cancel_inactive_timer(DlSe::Task(p));
        }
        if self.task[p].on_rq != OnRq::Queued {
            self.add_rq_bw(DlSe::Task(p));
            return;
        }
        if self.rq[cpu].curr == Some(p) {
            self.update_dl_rq_load_avg(cpu, false);
            return;
        }
        if self.task[p].nr_cpus_allowed > 1 && self.dl[cpu].overloaded {
            self.deadline_queue_push_tasks(cpu);
        }
        match (self.kernel.dl.switched_to, self.curr_class(cpu)) {
            (DlSwitchedTo::PushOnly, _) => {}
            (_, SchedClass::Dl) => self.check_preempt_curr_dl(cpu, p),
            _ => self.resched_curr(cpu),
        }
    }

    /// deadline.c: get_prio_dl(), since v7.2.
    pub(crate) fn get_prio_dl(&mut self, cpu: CpuId, p: TaskId) -> u64 {
        if self.kernel.dl.prio_changed == DlPrioChanged::Moved && self.rq[cpu].curr == Some(p) {
            self.update_curr_dl(cpu);
        }
        self.dl_se[p].deadline
    }

    /// deadline.c: prio_changed_dl(). The task's parameters have changed.
    pub(crate) fn prio_changed_dl(&mut self, cpu: CpuId, p: TaskId, old_deadline: u64) {
        if self.task[p].on_rq != OnRq::Queued {
            return;
        }
        let deadline = self.dl_se[p].deadline;
        let pulls = match self.kernel.dl.prio_changed {
            DlPrioChanged::EarliestHere | DlPrioChanged::Preempts => !self.dl[cpu].overloaded,
            DlPrioChanged::Moved if deadline == old_deadline => return,
            DlPrioChanged::Moved => dl_time_before(old_deadline, deadline),
        };
        if pulls {
            self.deadline_queue_pull_task(cpu);
        }
        let runs = self.rq[cpu].curr == Some(p);
        if runs || self.kernel.dl.prio_changed == DlPrioChanged::EarliestHere {
            let earliest = self.dl[cpu].earliest_dl.curr.unwrap_or(0);
            if dl_time_before(earliest, deadline) {
                self.resched_curr(cpu);
            }
            return;
        }
        let curr = self.rq[cpu].curr.filter(|&curr| self.task[curr].sched_class == SchedClass::Dl);
        if curr.is_none_or(|curr| dl_time_before(deadline, self.dl_se[curr].deadline)) {
            self.resched_curr(cpu);
        }
    }

    /// deadline.c: rq_online_dl().
    pub(crate) fn rq_online_dl(&mut self, cpu: CpuId) {
        if self.dl[cpu].overloaded {
            self.dl_set_overload(cpu);
        }
        match self.dl[cpu].earliest_dl.curr {
            Some(deadline) => self.cpudl_set(cpu, deadline),
            None => self.cpudl_clear(cpu, true),
        }
    }

    /// deadline.c: rq_offline_dl().
    pub(crate) fn rq_offline_dl(&mut self, cpu: CpuId) {
        if self.dl[cpu].overloaded {
            self.dl_clear_overload(cpu);
        }
        self.cpudl_clear(cpu, false);
    }

    /// deadline.c: dl_bw_check_overflow() (dl_cpu_busy() until v5.18, dl_bw_deactivate() in v7.2). Called before `cpu` goes
    /// offline.
    ///
    /// # Errors
    /// EBUSY when the remaining CPUs cannot provide what deadline tasks, and fair servers, have reserved.
    #[doc(alias = "dl_bw_manage")]
    #[doc(alias = "dl_cpu_busy")]
    #[doc(alias = "dl_bw_deactivate")]
    #[doc(alias = "dl_server_read_bw")]
    pub(crate) fn dl_bw_check_overflow(&self, cpu: CpuId) -> Answer {
        let mut stay = self.root_domain(cpu).span.and(&self.cpu_active_mask);
        stay.clear(cpu);
        let total = self.root_domain(cpu).total_bw;
        let lacks =
            |wanted: u64| self.dl_bw_limit().is_some_and(|bw| (bw * self.capacity_for_dl(&stay)) >> 10 < wanted);
        let overflow = match self.kernel.dl.hotplug {
            HotplugBandwidth::All => lacks(total),
            HotplugBandwidth::LessServer => {
                // If a rebuild forgets servers (`dl.rebuild`) this may wrap: the kernel's arithmetic is unsigned, too.
                let wanted = total.wrapping_sub(self.dl[cpu].fair_server.dl_bw);
                wanted > 0 && (stay.is_empty() || lacks(wanted))
            }
        };
        let who = if self.has_fair_server() {
            "deadline tasks and fair servers have reserved more than the other CPUs of its root domain can give"
        } else {
            "deadline tasks have reserved more than the other CPUs of its root domain can give"
        };
        if overflow { Err(Refusal::new(Errno::EBUSY, who)) } else { Ok(()) }
    }
}
