//! psi.c: pressure stall information: for what part of the time tasks of a group waited for a CPU or a block device.
//!
//! At each moment a CPU is in some of these states with respect to a group, depending on how many of the group's tasks are queued
//! or wait there:
//!
//! ```text
//! IO_SOME   a task waits for a device          CPU_SOME  more tasks are queued than run
//! IO_FULL   ... and none is queued             CPU_FULL  tasks are queued and none of the group runs
//! NONIDLE   any of this
//! ```
//!
//! The times in these states are summed up for each CPU. Every two seconds they are averaged over the CPUs, each weighted by its
//! time that was not idle. Averages over 10, 60 and 300 s use the load average's fixed point.
//!
//! It is on in kernels that have it, as Debian builds them, unless they are booted with `psi=0`: then it costs the read of one
//! flag. A change of a task's state costs a function's time and one cache line for each level of groups.
//!
//! Differs: what a kworker does every two seconds is done when the group next changes, with the states of the time it was due; it
//! takes no time. Memory stalls do not happen here, and interrupt time does not count as pressure (CONFIG_IRQ_TIME_ACCOUNTING
//! off). Triggers (poll()) are absent.

use crate::arch::Arch;
use crate::behaviour;
use crate::core::Sched;
use crate::core::cgroup::Hierarchy;
use crate::errno::{Answer, Errno, Refusal};
use crate::sched::*;
use fentry::fentry;
use units::{CpuId, unlikely};

behaviour! {
    /// Whether pressure is accounted, and what that takes.
    pub enum Psi = "psi.accounting" {
        Absent = "absent", since "v2.6.23", commit "", "there is no pressure stall information";
        /// The variant is v5.4's.
        ByQueued = "by-queued", since "v4.20", commit "eb414681d5a0",
            "time some tasks wait for CPUs, and some and all for devices; two tasks of a group that are queued on a CPU count as a wait, \
             and one does not, whatever runs there: a switch accounts for nothing; each group of a task reads the clock, when the task \
             enters or leaves its queue";
        /// The variant is v5.10's.
        AtDequeue = "at-dequeue", since "v5.7", commit "36b238d57172",
            "the same, but who is queued and does not run waits for a CPU; each group of a task reads the clock, when the task leaves its \
             queue, and again at the switch that follows";
        /// The variant is v5.15's.
        AtSwitch = "at-switch", since "v5.13", commit "4117cebf1a9f",
            "the same, and all for CPUs (not of the whole system); a sleep is accounted for by the switch, where both tasks' groups \
             are alike once; the clock is read once for all groups";
        /// The clock is read once in v5.13 (df77430639c9) to v6.11 and, in another way (570c8efd5eb7), in late releases of v6.12.y and after.
        PerChangeClock = "per-change-clock", since "v6.2", again "v6.17", commit "52b33d87b919",
            "the same, and whoever is moved leaves nothing behind";
        PerGroupClock = "per-group-clock", since "v6.12", commit "3840cbe24cf0",
            "the same, but each group reads the clock; also in late releases of v6.1.y, and no more in those of v6.12.y";
    }
}

/// psi_types.h: TSK_IOWAIT, TSK_RUNNING, TSK_ONCPU: how a task counts.
const TSK_IOWAIT: u8 = 1 << NR_IOWAIT;
const TSK_RUNNING: u8 = 1 << NR_RUNNING;
const TSK_ONCPU: u8 = 1 << 2;
const NR_IOWAIT: usize = 0;
const NR_RUNNING: usize = 1;
const NR_PSI_TASK_COUNTS: usize = 2;

/// psi_types.h: enum psi_states, without memory and interrupts.
const PSI_IO_SOME: usize = 0;
const PSI_IO_FULL: usize = 1;
const PSI_CPU_SOME: usize = 2;
const PSI_CPU_FULL: usize = 3;
const PSI_NONIDLE: usize = 4;
const NR_PSI_STATES: usize = 5;
/// After the states: a task of the group runs.
const PSI_ONCPU: u8 = 1 << NR_PSI_STATES;
/// The states when all queued tasks run.
const NOBODY_WAITS: u8 = 1 << PSI_NONIDLE;

/// loadavg.h: FSHIFT, FIXED_1. Averages are multiples of 1/2^11.
const FSHIFT: u32 = 11;
const FIXED_1: u64 = 1 << FSHIFT;
/// psi.c: EXP_10s, EXP_60s, EXP_300s. What is left of an average after two seconds.
const EXP: [u64; 3] = [1677, 1981, 2034];

/// The resource that is under pressure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PsiRes {
    Io,
    Cpu,
}

/// psi_types.h: struct psi_group_cpu. Times in ns, in 32 bits as in the kernel: only differences matter.
#[derive(Clone, Copy, Debug, Default)]
struct PsiGroupCpu {
    tasks: [u32; NR_PSI_TASK_COUNTS],
    state_mask: u8,
    times: [u32; NR_PSI_STATES],
    times_prev: [u32; NR_PSI_STATES],
    state_start: u64,
}

/// psi_types.h: struct psi_group.
#[derive(Clone, Debug)]
pub struct PsiGroup {
    pcpu: Vec<PsiGroupCpu>,
    avg_last_update: u64,
    avg_next_update: u64,
    /// When the averages are to be updated next, in ns; `u64::MAX`: no update is pending.
    avgs_work: u64,
    avg_total: [u64; NR_PSI_STATES - 1],
    /// In ns.
    total: [u64; NR_PSI_STATES - 1],
    /// Percent, over 10, 60 and 300 s, out of 2^11.
    avg: [[u64; 3]; NR_PSI_STATES - 1],
}

/// The state of the accounting: `psi_system`, and one group for each cgroup.
#[derive(Clone, Debug, Default)]
pub struct PsiState {
    /// `!psi_disabled`
    enabled: bool,
    /// By task group; the root's is `psi_system`. Autogroups have none.
    groups: Vec<Option<PsiGroup>>,
    /// In ns.
    psi_period: u64,
    tick_nsec: u64,
}

/// psi.c: test_states() (test_state() until v6.11). The states of a CPU with these tasks.
#[doc(alias = "test_state")]
#[inline]
fn test_states(tasks: &[u32; NR_PSI_TASK_COUNTS], state_mask: u8) -> u8 {
    let oncpu = u32::from(state_mask & PSI_ONCPU != 0);
    let (waiting, running) = (tasks[NR_IOWAIT], tasks[NR_RUNNING]);
    // Branch-free, because the states vary from call to call.
    let on = |holds: bool, state: usize| u8::from(holds) << state;
    state_mask
        | on(waiting != 0, PSI_IO_SOME)
        | on((waiting != 0) & (running == 0), PSI_IO_FULL)
        | on(running > oncpu, PSI_CPU_SOME)
        | on((running != 0) & (oncpu == 0), PSI_CPU_FULL)
        | on(waiting | running != 0, PSI_NONIDLE)
}

/// The same until v5.10, which takes one queued task, if there is any, for one that runs.
fn states_by_queued(tasks: &[u32; NR_PSI_TASK_COUNTS]) -> u8 {
    let one_runs = if tasks[NR_RUNNING] == 0 { 0 } else { PSI_ONCPU };
    test_states(tasks, one_runs) & !PSI_ONCPU
}

/// loadavg.h: calc_load(). One step of an average towards `active`.
fn calc_load(load: u64, exp: u64, active: u64) -> u64 {
    let newload = load * exp + active * (FIXED_1 - exp);
    // A rising average is rounded up.
    let up = if active >= load { FIXED_1 - 1 } else { 0 };
    (newload + up) / FIXED_1
}

/// loadavg.c: fixed_power_int(). `x` to the power of `n`, in multiples of 1/2^11.
fn fixed_power_int(mut x: u64, mut n: u64) -> u64 {
    let times = |a: u64, b: u64| (a * b + (1 << (FSHIFT - 1))) >> FSHIFT;
    let mut result = FIXED_1;
    while n != 0 {
        if n & 1 == 1 {
            result = times(result, x);
        }
        n >>= 1;
        if n != 0 {
            x = times(x, x);
        }
    }
    result
}

/// loadavg.c: calc_load_n(). `n` steps at once.
fn calc_load_n(load: u64, exp: u64, active: u64, n: u64) -> u64 {
    calc_load(load, fixed_power_int(exp, n), active)
}

/// psi.c: calc_avgs(). `time` ns of `period` were stalled, after `missed_periods` without activity.
fn calc_avgs(avg: &mut [u64; 3], missed_periods: u64, time: u64, period: u64) {
    if missed_periods != 0 {
        for (avg, exp) in avg.iter_mut().zip(EXP) {
            *avg = calc_load_n(*avg, exp, 0, missed_periods);
        }
    }
    let percent = (time * 100).checked_div(period).unwrap_or(0) * FIXED_1;
    for (avg, exp) in avg.iter_mut().zip(EXP) {
        *avg = calc_load(*avg, exp, percent);
    }
}

impl PsiGroupCpu {
    /// psi.c: record_times(). Adds the time since the last change to the states that held.
    #[inline]
    fn record_times(&mut self, now: u64) {
        let delta = now.saturating_sub(self.state_start) as u32;
        self.state_start = self.state_start.max(now);
        // Usually the CPU was idle, or a task ran and none waited.
        match self.state_mask & !PSI_ONCPU {
            0 => {}
            NOBODY_WAITS => self.times[PSI_NONIDLE] = self.times[PSI_NONIDLE].wrapping_add(delta),
            _ => self.record_waits(delta),
        }
    }

    #[inline(never)]
    fn record_waits(&mut self, delta: u32) {
        // A state can only be full if it is also some.
        for (state, time) in self.times.iter_mut().enumerate() {
            let on = u32::from(self.state_mask >> state & 1);
            *time = time.wrapping_add(delta & on.wrapping_neg());
        }
    }

    /// psi.c: get_recent_times(). The times since the last call, including the current states.
    fn get_recent_times(&mut self, now: u64) -> [u32; NR_PSI_STATES] {
        let running = now.saturating_sub(self.state_start) as u32;
        std::array::from_fn(|state| {
            let on = self.state_mask & 1 << state != 0;
            let time = self.times[state].wrapping_add(if on { running } else { 0 });
            time.wrapping_sub(std::mem::replace(&mut self.times_prev[state], time))
        })
    }
}

impl PsiGroup {
    /// psi.c: group_init().
    fn group_init(nr_cpus: usize, now: u64, psi_period: u64) -> PsiGroup {
        PsiGroup {
            pcpu: vec![PsiGroupCpu { state_start: now, ..PsiGroupCpu::default() }; nr_cpus],
            avg_last_update: now,
            avg_next_update: now + psi_period,
            avgs_work: u64::MAX,
            avg_total: [0; NR_PSI_STATES - 1],
            total: [0; NR_PSI_STATES - 1],
            avg: [[0; 3]; NR_PSI_STATES - 1],
        }
    }

    /// psi.c: collect_percpu_times(). Returns whether any CPU was not idle.
    fn collect_percpu_times(&mut self, now: u64, tick_nsec: u64) -> bool {
        let mut deltas = [0_u64; NR_PSI_STATES - 1];
        let (mut nonidle_total, mut nonidle_changed) = (0, false);
        for groupc in &mut self.pcpu {
            let times = groupc.get_recent_times(now);
            nonidle_changed |= times[PSI_NONIDLE] != 0;
            let nonidle = u64::from(times[PSI_NONIDLE]) / tick_nsec;
            nonidle_total += nonidle;
            for (delta, time) in deltas.iter_mut().zip(times) {
                *delta += u64::from(time) * nonidle;
            }
        }
        for (total, delta) in self.total.iter_mut().zip(deltas) {
            *total += delta / nonidle_total.max(1);
        }
        nonidle_changed
    }

    /// psi.c: update_averages(). Returns when the next update is due.
    fn update_averages(&mut self, now: u64, psi_period: u64) -> u64 {
        let expires = self.avg_next_update;
        let missed_periods = (now - expires) / psi_period;
        let next = expires + (1 + missed_periods) * psi_period;
        let period = now - (self.avg_last_update + missed_periods * psi_period);
        self.avg_last_update = now;
        for state in 0..NR_PSI_STATES - 1 {
            // What exceeds the period is reported with the next one.
            let sample = (self.total[state] - self.avg_total[state]).min(period);
            self.avg_total[state] += sample;
            calc_avgs(&mut self.avg[state], missed_periods, sample, period);
        }
        next
    }

    /// psi.c: psi_avgs_work().
    ///
    /// Differs: there is no kworker whose own running must not keep the work going.
    fn psi_avgs_work(&mut self, psi_period: u64, tick_nsec: u64) {
        let now = self.avgs_work;
        let nonidle = self.collect_percpu_times(now, tick_nsec);
        if now >= self.avg_next_update {
            self.avg_next_update = self.update_averages(now, psi_period);
        }
        self.avgs_work = match nonidle {
            true => now + ((self.avg_next_update - now) / tick_nsec + 1) * tick_nsec,
            false => u64::MAX,
        };
    }

    /// Does the updates that were due by `now`.
    #[inline]
    fn catch_up(&mut self, now: u64, psi_period: u64, tick_nsec: u64) {
        while self.avgs_work <= now {
            self.psi_avgs_work(psi_period, tick_nsec);
        }
    }
}

/// One line of a pressure file: averages in hundredths of a percent over 10, 60 and 300 s, and the total in us.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pressure {
    pub avg: [u64; 3],
    pub total: u64,
}

impl<A: Arch> Sched<A> {
    /// psi.c: setup_psi(): `psi=0` or `psi=1` on the command line. Called before any task is created.
    ///
    /// # Errors
    /// EOPNOTSUPP for a kernel without PSI.
    pub fn setup_psi(&mut self, psi_enable: bool) -> Answer {
        if self.kernel.psi == Psi::Absent {
            return Err(Refusal::new(Errno::EOPNOTSUPP, "this kernel has no pressure stall information"));
        }
        self.psi = PsiState::default();
        if psi_enable {
            self.psi_init();
        }
        Ok(())
    }

    /// psi.c: psi_init().
    pub(crate) fn psi_init(&mut self) {
        if self.kernel.psi == Psi::Absent {
            return;
        }
        let ticks_per_second = 1_000_000_000 / self.tick_nsec;
        self.psi.psi_period = (2 * ticks_per_second + 1) * self.tick_nsec;
        self.psi.tick_nsec = self.tick_nsec;
        self.psi.enabled = true;
        self.psi_cgroup_alloc(ROOT_TASK_GROUP);
    }

    /// Whether pressure is accounted.
    #[inline]
    pub fn psi_enabled(&self) -> bool {
        self.psi.enabled
    }

    /// psi.c: psi_cgroup_alloc().
    pub(crate) fn psi_cgroup_alloc(&mut self, tg: TgId) {
        if !self.psi.enabled {
            return;
        }
        let now = self.arch.sched_clock(self.this_cpu).0;
        let nr_cpus = self.nr_cpus();
        let groups = &mut self.psi.groups;
        if groups.len() <= tg.index() {
            groups.resize_with(tg.index() + 1, || None);
        }
        groups[tg.index()] = Some(PsiGroup::group_init(nr_cpus, now, self.psi.psi_period));
    }

    /// psi.c: psi_cgroup_free().
    pub(crate) fn psi_cgroup_free(&mut self, tg: TgId) {
        if let Some(group) = self.psi.groups.get_mut(tg.index()) {
            *group = None;
        }
    }

    /// Whether a sleep is accounted for as the task leaves its queue, and not by the switch after it.
    #[inline]
    fn psi_at_dequeue(&self) -> bool {
        matches!(self.kernel.psi, Psi::ByQueued | Psi::AtDequeue)
    }

    /// psi.c: task_psi_group(). With cgroup v1 only the system has one.
    fn task_psi_group(&self, p: TaskId) -> TgId {
        match self.cgroup_hierarchy {
            Hierarchy::Legacy => ROOT_TASK_GROUP,
            Hierarchy::Unified => self.task_cold[p].css,
        }
    }

    /// psi.c: psi_group_change(). `now` is that of [`Psi::AtSwitch`] and [`Psi::PerChangeClock`].
    #[fentry]
    fn psi_group_change(&mut self, group: TgId, cpu: CpuId, clear: u8, set: u8, now: Option<u64>) {
        self.write_psi_group(group, cpu);
        let now = now.unwrap_or_else(|| self.local_clock());
        let PsiState { groups, psi_period, tick_nsec, .. } = &mut self.psi;
        let group = groups[group.index()].as_mut().expect("a cgroup that is there has its pressure");
        group.catch_up(now, *psi_period, *tick_nsec);
        let groupc = &mut group.pcpu[cpu.index()];
        let state_mask = match (clear & TSK_ONCPU != 0, set & TSK_ONCPU != 0) {
            (true, _) => 0,
            (false, true) => PSI_ONCPU,
            (false, false) => groupc.state_mask & PSI_ONCPU,
        };
        for (task, count) in groupc.tasks.iter_mut().enumerate() {
            let (gone, come) = (u32::from(clear >> task & 1), u32::from(set >> task & 1));
            *count = count.checked_sub(gone).expect("psi: task underflow") + come;
        }
        let by_queued = unlikely(self.kernel.psi == Psi::ByQueued);
        let state_mask =
            if by_queued { states_by_queued(&groupc.tasks) } else { test_states(&groupc.tasks, state_mask) };
        groupc.record_times(now);
        groupc.state_mask = state_mask;
        if group.avgs_work == u64::MAX {
            group.avgs_work = (now / *tick_nsec) * *tick_nsec + *psi_period;
        }
    }

    /// psi.c: psi_flags_change().
    fn psi_flags_change(&mut self, p: TaskId, clear: u8, set: u8) {
        let flags = &mut self.task[p].psi_flags;
        assert!(*flags & set == 0 && *flags & clear == clear, "psi: inconsistent task state: {flags} -{clear} +{set}");
        *flags = *flags & !clear | set;
    }

    fn psi_clock(&mut self) -> Option<u64> {
        matches!(self.kernel.psi, Psi::AtSwitch | Psi::PerChangeClock).then(|| self.local_clock())
    }

    /// psi.c: psi_task_change(), in the task's group and all above.
    #[fentry]
    fn psi_task_change(&mut self, p: TaskId, clear: u8, set: u8) {
        let cpu = self.task[p].cpu;
        self.psi_flags_change(p, clear, set);
        let now = self.psi_clock();
        let mut level = Some(self.task_psi_group(p));
        while let Some(group) = level {
            self.psi_group_change(group, cpu, clear, set, now);
            level = self.tg[group].parent;
        }
    }

    /// psi.c: psi_task_switch(). `sleep`: `prev` has left its queue.
    #[fentry]
    fn psi_task_switch(&mut self, cpu: CpuId, prev: Option<TaskId>, next: Option<TaskId>, sleep: bool) {
        let now = self.psi_clock();
        let mut common = None;
        if let Some(next) = next {
            self.psi_flags_change(next, 0, TSK_ONCPU);
            let mut level = Some(self.task_psi_group(next));
            while let Some(group) = level {
                let groupc = self.psi.groups[group.index()].as_ref().expect("a cgroup's pressure").pcpu[cpu.index()];
                if groupc.state_mask & PSI_ONCPU != 0 {
                    common = Some(group);
                    break;
                }
                self.psi_group_change(group, cpu, 0, TSK_ONCPU, now);
                level = self.tg[group].parent;
            }
        }
        let Some(prev) = prev else { return };
        let at_dequeue = self.kernel.psi == Psi::AtDequeue;
        if at_dequeue && sleep {
            return;
        }
        let (mut clear, mut set) = (TSK_ONCPU, 0);
        if sleep {
            clear |= TSK_RUNNING;
            if self.task[prev].in_iowait {
                set |= TSK_IOWAIT;
            }
        }
        self.psi_flags_change(prev, clear, set);
        let mut level = Some(self.task_psi_group(prev));
        while let Some(group) = level.filter(|&group| Some(group) != common) {
            self.psi_group_change(group, cpu, clear, set, now);
            level = self.tg[group].parent;
        }
        if at_dequeue {
            return;
        }
        let next_flags = next.map_or(0, |next| self.task[next].psi_flags);
        if (self.task[prev].psi_flags ^ next_flags) & !TSK_ONCPU != 0 {
            clear &= !TSK_ONCPU;
            while let Some(group) = level {
                self.psi_group_change(group, cpu, clear, set, now);
                level = self.tg[group].parent;
            }
        }
    }

    /// stats.h: psi_enqueue().
    ///
    /// Differs: called after the class's own enqueue, as since v6.12, and always knows about delayed sleepers.
    #[inline]
    pub(crate) fn psi_enqueue(&mut self, p: TaskId, flags: QueueFlags) {
        if unlikely(self.psi.enabled) && !flags.save_restore {
            self.count_psi_enqueue(p, flags);
        }
    }

    #[inline(never)]
    fn count_psi_enqueue(&mut self, p: TaskId, flags: QueueFlags) {
        let task = &self.task[p];
        let waits = if task.in_iowait { TSK_IOWAIT } else { 0 };
        if task.on_cpu && !self.psi_at_dequeue() {
            // The switch will account for it.
            return;
        }
        let (clear, set) = match (self.se[task.se].sched_delayed, flags.migrated) {
            (true, _) => (0, waits),
            (false, true) => (0, TSK_RUNNING),
            (false, false) => (waits, TSK_RUNNING),
        };
        self.psi_task_change(p, clear, set);
    }

    /// stats.h: psi_dequeue().
    #[inline]
    pub(crate) fn psi_dequeue(&mut self, p: TaskId, flags: QueueFlags) {
        if unlikely(self.psi.enabled) && !flags.save_restore && (self.psi_at_dequeue() || !flags.sleep) {
            self.count_psi_dequeue(p, flags.sleep);
        }
    }

    #[inline(never)]
    fn count_psi_dequeue(&mut self, p: TaskId, sleep: bool) {
        let task = &self.task[p];
        let waits = if sleep && task.in_iowait { TSK_IOWAIT } else { 0 };
        // Until v5.15 a running task that is only moved keeps its CPU until the switch.
        let keeps = !sleep && matches!(self.kernel.psi, Psi::ByQueued | Psi::AtDequeue | Psi::AtSwitch);
        let gone = if keeps { task.psi_flags & !TSK_ONCPU } else { task.psi_flags };
        self.psi_task_change(p, gone, waits);
    }

    /// stats.h: psi_ttwu_dequeue(). A sleeper wakes on another CPU: it no longer waits for a device on the old one.
    #[inline]
    pub(crate) fn psi_ttwu_dequeue(&mut self, p: TaskId) {
        if unlikely(self.psi.enabled) && self.task[p].psi_flags != 0 {
            self.psi_task_change(p, self.task[p].psi_flags, 0);
        }
    }

    /// stats.h: psi_sched_switch().
    #[inline]
    pub(crate) fn psi_sched_switch(&mut self, cpu: CpuId, prev: Option<TaskId>, next: Option<TaskId>) {
        if unlikely(self.psi.enabled) && self.kernel.psi != Psi::ByQueued {
            let sleep = prev.is_some_and(|p| {
                let task = &self.task[p];
                task.on_rq != OnRq::Queued || self.se[task.se].sched_delayed
            });
            self.psi_task_switch(cpu, prev, next, sleep);
        }
    }

    /// psi.c: cgroup_move_task(). A task becomes a member of another cgroup.
    pub(crate) fn cgroup_move_task(&mut self, p: TaskId, to: TgId) {
        let flags = self.task[p].psi_flags;
        if flags != 0 {
            self.psi_task_change(p, flags, 0);
        }
        self.task_cold[p].css = to;
        if flags != 0 {
            self.psi_task_change(p, 0, flags);
        }
    }

    /// How many of a group's tasks wait for a device, and are queued, on `cpu`, and whether one runs there, as accounted: by
    /// [`Psi::ByQueued`] never.
    pub fn psi_counts(&self, group: TgId, cpu: CpuId) -> Option<(u32, u32, bool)> {
        let groupc = &self.psi.groups.get(group.index())?.as_ref()?.pcpu[cpu.index()];
        Some((groupc.tasks[NR_IOWAIT], groupc.tasks[NR_RUNNING], groupc.state_mask & PSI_ONCPU != 0))
    }

    /// Whether a pressure file has the line `full`.
    pub fn psi_shows_full(&self, res: PsiRes) -> bool {
        res == PsiRes::Io || !self.psi_at_dequeue()
    }

    /// psi.c: psi_show(). The lines `some` and `full` of a group's pressure file at `now` (ns), which may be after the last
    /// change; of CPUs some kernels show the first alone ([`Sched::psi_shows_full`]). Reading changes nothing.
    ///
    /// # Errors
    /// EOPNOTSUPP while pressure is not accounted.
    pub fn psi_show(&self, group: TgId, res: PsiRes, now: u64) -> Answer<[Pressure; 2]> {
        let off = Refusal::new(Errno::EOPNOTSUPP, "pressure is not accounted: psi=0");
        let found = self.psi.groups.get(group.index()).and_then(Option::as_ref).filter(|_| self.psi.enabled);
        let mut of = found.ok_or(off)?.clone();
        of.catch_up(now, self.psi.psi_period, self.psi.tick_nsec);
        of.collect_percpu_times(now, self.psi.tick_nsec);
        if now >= of.avg_next_update {
            of.avg_next_update = of.update_averages(now, self.psi.psi_period);
        }
        let states = match res {
            PsiRes::Io => [PSI_IO_SOME, PSI_IO_FULL],
            PsiRes::Cpu => [PSI_CPU_SOME, PSI_CPU_FULL],
        };
        Ok(states.map(|state| {
            // This is not defined for the whole system: wherever a task is queued, one runs.
            if group == ROOT_TASK_GROUP && state == PSI_CPU_FULL {
                return Pressure { avg: [0; 3], total: 0 };
            }
            // LOAD_INT() and LOAD_FRAC().
            let hundredths = |avg: u64| (avg >> FSHIFT) * 100 + (((avg & (FIXED_1 - 1)) * 100) >> FSHIFT);
            Pressure { avg: of.avg[state].map(hundredths), total: of.total[state] / 1000 }
        }))
    }
}

#[cfg(test)]
mod tests;
