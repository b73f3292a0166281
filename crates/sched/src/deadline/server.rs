//! deadline.c: dl_server: a deadline entity on each CPU that runs fair tasks, 50 ms in each second, when higher classes do
//! not let them run (v6.12, in place of the real-time budget). Fair tasks that run without its help use up its budget as
//! well, so the server has nothing to do as long as they run: it is deferred until its last chance, `deadline - runtime`.
//!
//! Differs: its parameters are the defaults (`/sys/kernel/debug/sched/fair_server`).

use super::bandwidth::to_ratio;
use super::{DlSe, SchedDlEntity};
use crate::access::Path;
use crate::arch::Arch;
use crate::behaviour;
use crate::core::Sched;
use crate::core::class::Pick;
use crate::cpudeadline::dl_time_before;
use crate::hrtimer::{SchedTimer, hrtimer_forward};
use crate::rt::bandwidth::RtBandwidth;
use crate::sched::*;
use fentry::fentry;
use units::CpuId;

behaviour! {
    /// What the fair server makes of time in which its CPU idles.
    pub enum ServerIdle = "dl.server_idle" {
        Discounted = "discounted", since "v6.12", commit "", "it is taken off its budget, down to nothing, as a task comes";
        Accounted = "accounted", since "v6.19", commit "",
            "it counts, at each tick too, as if fair tasks had run: the server is put off, once, and then stops until one comes; what runs is looked at before it starts, and before its time has come";
    }
}

/// Nanoseconds.
const RUNTIME: u64 = 50_000_000;
const PERIOD: u64 = 1_000_000_000;
/// deadline.c: dl_server_min_res. A timer that is early by no more than this counts as in time.
#[allow(non_upper_case_globals)]
const dl_server_min_res: u64 = 1_000_000;

behaviour! {
    /// Whether a server that waits to run is one of the CPU's tasks (nr_running).
    pub enum ServerCounted = "dl.server_counted" {
        AsTask = "as-task", since "v6.12", commit "", "it is";
        Apart = "apart", since "v6.17", commit "52d15521eb75",
            "it is not; nor is one stopped that is not active, nor started at once whose next period has passed";
    }
}

impl<A: Arch> Sched<A> {
    /// Whether this kernel's CPUs have servers.
    #[inline]
    pub(crate) fn has_fair_server(&self) -> bool {
        self.kernel.rt.bandwidth == RtBandwidth::FairServer
    }

    /// fair.c: fair_server_init() and dl_server_apply_params(). Every CPU has run something while the machine booted.
    #[doc(alias = "dl_server_init")]
    #[doc(alias = "dl_server_apply_params")]
    pub(crate) fn fair_server_init(&mut self, cpu: CpuId) {
        if !self.has_fair_server() {
            return;
        }
        let bw = to_ratio(PERIOD, RUNTIME);
        self.dl[cpu].fair_server = SchedDlEntity {
            dl_runtime: RUNTIME,
            dl_deadline: PERIOD,
            dl_period: PERIOD,
            dl_bw: bw,
            dl_density: bw,
            dl_server: true,
            dl_defer: true,
            ..SchedDlEntity::default()
        };
        self.reserve_for_server(cpu, bw);
        self.setup_new_dl_entity(DlSe::FairServer(cpu));
    }

    /// deadline.c: dl_server_start(). The CPU has got fair tasks.
    pub(crate) fn dl_server_start(&mut self, cpu: CpuId) {
        if !self.has_fair_server() {
            return;
        }
        self.dl[cpu].fair_server.dl_defer_idle = false;
        if self.dl[cpu].fair_server.dl_server_active {
            return;
        }
        if self.kernel.dl.server_idle == ServerIdle::Accounted {
            self.class_update_curr(cpu);
        }
        self.path(Path::dl_server_start);
        let se = DlSe::FairServer(cpu);
        self.dl[cpu].fair_server.dl_server_active = true;
        self.enqueue_dl_entity(se, QueueFlags { wakeup: true, ..QueueFlags::default() }, false);
        if self.preempts_curr(cpu, se) {
            self.resched_curr(cpu);
        }
    }

    /// The part of enqueue_task_fair() that notices the CPU's first fair task.
    pub(crate) fn fair_server_wakes(&mut self, cpu: CpuId) {
        if self.rq[cpu].nr_running == 0 && self.kernel.dl.server_idle == ServerIdle::Discounted {
            self.dl_server_update_idle_time(cpu);
        }
        self.dl_server_start(cpu);
    }

    /// Whether an entity comes before what runs on `cpu`.
    fn preempts_curr(&self, cpu: CpuId, se: DlSe) -> bool {
        let curr = self.rq[cpu].curr.filter(|&curr| self.task[curr].sched_class == SchedClass::Dl);
        curr.is_none_or(|curr| dl_time_before(self.dl_entity(se).deadline, self.dl_se[curr].deadline))
    }

    /// deadline.c: dl_server_stop(). The server was asked for a task and has none.
    pub(crate) fn dl_server_stop(&mut self, cpu: CpuId) {
        if !self.has_fair_server() {
            return;
        }
        if self.kernel.dl.server_counted == ServerCounted::Apart && !self.dl[cpu].fair_server.dl_server_active {
            return;
        }
        self.path(Path::dl_server_stop);
        let se = DlSe::FairServer(cpu);
        self.dequeue_dl_entity(se, QueueFlags { sleep: true, ..QueueFlags::default() }, false);
        self.cancel_dl_timer(se);
        let server = &mut self.dl[cpu].fair_server;
        (server.dl_defer_armed, server.dl_throttled, server.dl_server_active) = (false, false, false);
        server.dl_defer_idle = false;
    }

    /// deadline.c: dl_server_update_idle(). The CPU was idle for `delta_exec` ns, in which a fair task could have run.
    pub(crate) fn dl_server_update_idle(&mut self, cpu: CpuId, delta_exec: u64) {
        let server = &self.dl[cpu].fair_server;
        if server.dl_server_active && server.dl_defer {
            self.update_curr_dl_se(cpu, DlSe::FairServer(cpu), delta_exec);
        }
    }

    /// deadline.c: dl_server_update(). A fair task has run for `delta_exec` ns, through the server or without it.
    #[inline(never)]
    pub(crate) fn dl_server_update(&mut self, cpu: CpuId, delta_exec: u64) {
        if self.dl[cpu].fair_server.dl_server_active {
            self.path(Path::update_curr_dl_se);
            self.update_curr_dl_se(cpu, DlSe::FairServer(cpu), delta_exec);
        }
    }

    /// deadline.c: dl_server_update_idle_time(). No task starved while the CPU was idle, so that time is charged, too.
    pub(crate) fn dl_server_update_idle_time(&mut self, cpu: CpuId) {
        let now = self.rq[cpu].clock_task;
        let server = &mut self.dl[cpu].fair_server;
        if !server.dl_defer || server.runtime < 0 {
            return;
        }
        let delta_exec = now.wrapping_sub(self.rq[cpu].idle.exec_start) as i64;
        if delta_exec < 0 {
            return;
        }
        server.runtime -= delta_exec;
        if server.runtime < 0 {
            server.dl_defer_running = false;
            server.runtime = 0;
        }
        self.rq[cpu].idle.exec_start = now;
    }

    /// deadline.c: dl_server_timer(). Fair tasks have not run until now, or the server's next period begins.
    #[fentry]
    pub(crate) fn dl_server_timer(&mut self, cpu: CpuId) {
        let se = DlSe::FairServer(cpu);
        self.rq_lock(cpu);
        if self.dl[cpu].fair_server.dl_throttled {
            self.update_rq_clock(cpu);
            if self.kernel.dl.server_idle == ServerIdle::Accounted && self.stops_idle_server(cpu) {
                return self.rq_unlock(cpu);
            }
            let clock = self.rq[cpu].clock;
            let server = &mut self.dl[cpu].fair_server;
            let chance = server.deadline.wrapping_sub(server.runtime as u64);
            if server.dl_defer_armed && dl_time_before(clock, chance.wrapping_sub(dl_server_min_res)) {
                // Fair tasks have run meanwhile: the server may be deferred further.
                let now = self.arch.sched_clock(self.this_cpu).0;
                let mut expires = self.hrtimers.expires(SchedTimer::DlServer(cpu));
                hrtimer_forward(&mut expires, now, chance - clock);
                self.hrtimer_start(self.this_cpu, SchedTimer::DlServer(cpu), expires);
            } else {
                server.dl_defer_running |= server.dl_defer_armed;
                self.enqueue_dl_entity(se, QueueFlags { replenish: true, ..QueueFlags::default() }, false);
                if self.preempts_curr(cpu, se) {
                    self.resched_curr(cpu);
                }
                if self.dl[cpu].has_pushable_dl_tasks() {
                    self.push_dl_task(cpu);
                }
            }
        }
        self.rq_unlock(cpu);
    }

    /// The part of dl_server_timer() since v7.2 that first accounts what has run until now. Returns whether the CPU has been
    /// idle since the server was deferred; then it stops the server.
    fn stops_idle_server(&mut self, cpu: CpuId) -> bool {
        self.class_update_curr(cpu);
        let idle = self.dl[cpu].fair_server.dl_defer_idle;
        if idle {
            self.dl_server_stop(cpu);
        }
        idle
    }

    /// deadline.c: inactive_task_timer(), for a server.
    pub(crate) fn dl_server_inactive_timer(&mut self, cpu: CpuId) {
        self.rq_lock(cpu);
        if self.dl[cpu].fair_server.dl_non_contending {
            self.update_rq_clock(cpu);
            self.sub_running_bw(DlSe::FairServer(cpu));
            self.dl[cpu].fair_server.dl_non_contending = false;
        }
        self.rq_unlock(cpu);
    }

    /// The server has the earliest deadline: picks its task (`server_pick_task()`). If there is no fair task it stops, and
    /// the next entity is asked.
    pub(crate) fn pick_by_server(&mut self, cpu: CpuId, prev: Option<TaskId>) -> Pick {
        match self.pick_fair_last(cpu, prev) {
            Some(p) => Pick::Task(p),
            None => {
                self.dl_server_stop(cpu);
                Pick::Retry
            }
        }
    }
}
