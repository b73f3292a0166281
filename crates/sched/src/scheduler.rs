//! The interface of a scheduler: what the rest of the kernel and the clock may ask of it. Another scheduler replaces `Sched` by implementing
//! it.

use crate::arch::Arch;
use crate::attr::SchedAttr;
use crate::autogroup::Session;
use crate::core::cgroup::GroupFile;
use crate::core::{LazilyPreempted, Sched, SleepsSinceBoot, TaskInit, ToldToGovernors, WakesIdle};
use crate::cpufreq::FollowsGovernors;
use crate::cpufreq_schedutil::thread::CpufreqThreads;
use crate::errno::Answer;
use crate::exit::Exits;
use crate::fair::balance::NohzBalance;
use crate::fair::cache::TaskCacheWork;
use crate::fair::numa::{CpuPid, HintingFault};
use crate::features::Feature;
use crate::foresee::Foresee;
use crate::hrtimer::ProgramsClock;
use crate::isolation::FullTick;
use crate::latencytop::WaitChannel;
use crate::leave::LeavesToOthers;
use crate::profile::ProfileType;
use crate::sched::{DEFAULT_PRIO, Policy, SchedClass, TaskId, TaskState, TgId, WakeFlags};
use crate::stop_task::AsksStopper;
use crate::sysctl::Tunable;
use crate::task_work::TaskWork;
use crate::trace::{Event, Interrupt};
use units::{CpuId, CpuMask, Ns, unlikely};

/// A scheduler. `cpu` is always the CPU that executes the call; the call's cost is charged to that CPU's clock.
pub trait Scheduler:
    CpufreqThreads
    + FollowsGovernors
    + ToldToGovernors
    + Foresee
    + LeavesToOthers
    + Exits
    + AsksStopper
    + TaskWork
    + TaskCacheWork
    + LazilyPreempted
    + WakesIdle
    + SleepsSinceBoot
    + ProgramsClock
{
    type Arch: Arch;

    fn arch(&self) -> &Self::Arch;
    fn arch_mut(&mut self) -> &mut Self::Arch;
    fn nr_cpus(&self) -> usize;

    /// Creates a task on behalf of what runs on `cpu`; the task does not run before `wake_up_new_task`.
    fn fork(&mut self, cpu: CpuId, init: TaskInit) -> Answer<TaskId>;
    fn wake_up_new_task(&mut self, cpu: CpuId, task: TaskId);
    /// Wakes `task`. Returns whether it slept and no longer does.
    fn wake(&mut self, cpu: CpuId, task: TaskId, flags: WakeFlags) -> bool;
    /// Whether `task` runs or is runnable.
    fn is_awake(&self, task: TaskId) -> bool;
    /// The running task of `cpu` is about to sleep, or has changed its mind.
    fn set_current_state(&mut self, cpu: CpuId, state: TaskState);
    /// Whether the running task sleeps for a block device.
    fn set_in_iowait(&mut self, cpu: CpuId, in_iowait: bool);
    /// Whether anything records where in the kernel tasks sleep.
    fn keeps_wait_channels(&self) -> bool;
    /// Says where `task` is about to sleep.
    fn set_wait_channel(&mut self, task: TaskId, channel: WaitChannel);
    /// Chooses what runs next and switches to it; `None` is idle. `preempt`: a wakeup or a tick asked for it, not the running task.
    fn schedule(&mut self, cpu: CpuId, preempt: bool) -> Option<TaskId>;
    fn sched_yield(&mut self, cpu: CpuId);

    /// Between these two, interrupts and softirqs execute: what they wake is not woken by the running task.
    fn irq_enter(&mut self, cpu: CpuId);
    fn irq_exit(&mut self, cpu: CpuId);
    /// From now on, softirqs execute (within `irq_enter` and `irq_exit`).
    fn softirq_enter(&mut self, cpu: CpuId);

    /// Accounts a tick to the running task, which it interrupted in user mode (`user_tick`) or in the kernel.
    fn account_process_tick(&mut self, cpu: CpuId, user_tick: bool);
    /// The periodic tick. Returns whether `run_rebalance_domains` is due (SCHED_SOFTIRQ).
    fn scheduler_tick(&mut self, cpu: CpuId) -> bool;
    /// The reschedule interrupt, or the idle loop having left its polling. Returns whether SCHED_SOFTIRQ is due.
    fn scheduler_ipi(&mut self, cpu: CpuId) -> bool;
    /// The head of the idle loop, each time that the CPU goes idle.
    fn idle_loop_enter(&mut self, cpu: CpuId);
    /// The tail of the idle loop: finishes wakeups that were queued while it polled. Returns the same as `scheduler_ipi`.
    fn idle_loop_exit(&mut self, cpu: CpuId) -> bool;
    /// When the scheduler's own timers next want an interrupt on `cpu`; `None`: never. A change is announced through
    /// `Arch::clockevents_program_event`.
    fn next_event(&self, cpu: CpuId) -> Option<Ns>;
    /// The timer interrupt: runs the first of `cpu`'s timers if it has expired. Returns whether it had.
    fn hrtimer_run(&mut self, cpu: CpuId) -> bool;
    /// The balancing softirq.
    fn run_rebalance_domains(&mut self, cpu: CpuId);
    /// The work of a `migration/N` task. Returns false if it waits for another CPU and has to be called again soon.
    fn cpu_stopper_thread(&mut self, cpu: CpuId) -> bool;

    /// The idle loop begins (or stops) to poll its flags word.
    fn set_polling(&mut self, cpu: CpuId, polling: bool);
    /// `sched_idle_set_state()`: the idle task enters a state of cpuidle that takes `exit_latency_us` to leave, or (`None`) has left it.
    fn set_idle_state(&mut self, cpu: CpuId, exit_latency_us: Option<u32>);
    /// The cache-line write of `sched_idle_set_state()`, on the way into the state and out of it.
    fn write_idle_state(&mut self, cpu: CpuId);
    /// `stops`: the idle loop stops the tick (it does not if the tick is stopped already, or a timeout keeps it). `tick_nohz_idle_restart`
    /// restarts the tick when the CPU leaves the idle loop, and returns whether it does.
    fn tick_nohz_idle_stop(&mut self, cpu: CpuId, stops: bool);
    fn tick_nohz_idle_restart(&mut self, cpu: CpuId) -> bool;

    /// The CPU time that the running task of `cpu` has had so far, in user mode and in the kernel.
    fn task_sched_runtime(&self, cpu: CpuId) -> Ns;

    /// Whether some CPUs run without ticks (nohz_full=), so that the first CPU always ticks for them; and whether `cpu` is one of those.
    fn tick_nohz_full_enabled(&self) -> bool;
    fn tick_nohz_full_cpu(&self, cpu: CpuId) -> bool;
    /// Whether `cpu` is one of isolcpus= or nohz_full=.
    fn cpu_is_isolated(&self, cpu: CpuId) -> bool;
    /// The end of an interrupt on a nohz_full CPU that runs a task.
    fn tick_nohz_full_update_tick(&mut self, cpu: CpuId) -> FullTick;
    /// The CPU on which a timer waits that a task on `cpu` arms.
    fn get_nohz_timer_target(&mut self, cpu: CpuId) -> CpuId;
    /// Where an unbound kernel thread may run; `None`: everywhere.
    fn kthread_cpus(&self) -> Option<CpuMask>;

    fn need_resched(&self, cpu: CpuId) -> bool;
    /// Whether the running task of `cpu` has a nice level above 0.
    fn current_is_nice(&self, cpu: CpuId) -> bool;
    /// What runs on `cpu`; `None` is idle.
    fn current(&self, cpu: CpuId) -> Option<TaskId>;
    fn task_cpu(&self, task: TaskId) -> CpuId;
    /// Whether `task` is a `migration/N` task, which has no program, only `cpu_stopper_thread`.
    fn is_stopper(&self, task: TaskId) -> bool;
    /// Whether `task` has a real-time or the deadline policy, so that its timers have no slack.
    fn rt_or_dl_task_policy(&self, task: TaskId) -> bool;

    /// EINVAL if no CPU of the mask is up.
    fn set_cpus_allowed(&mut self, cpu: CpuId, task: TaskId, mask: CpuMask) -> Answer;
    fn cpus_allowed(&self, task: TaskId) -> &CpuMask;
    /// The current task of `cpu` is about to execute another program: it may be moved before it does.
    fn sched_exec(&mut self, _cpu: CpuId) {}
    /// The current task of `cpu`, wherever it is now, has begun to execute the other program.
    fn executed(&mut self, _cpu: CpuId) {}
    /// Takes a CPU offline. It is gone once nothing is left on it, see `is_online`. EBUSY for the last one.
    fn cpu_down(&mut self, cpu: CpuId, down: CpuId) -> Answer;
    /// Brings an offline CPU back, idle. EBUSY while it is still on its way down.
    fn cpu_up(&mut self, cpu: CpuId, up: CpuId) -> Answer;
    fn is_online(&self, cpu: CpuId) -> bool;
    /// Exclusive cpusets: the CPUs of each balance among themselves; CPUs in none of them form one more. EINVAL if they overlap.
    fn set_partitions(&mut self, cpu: CpuId, partitions: &[CpuMask]) -> Answer;
    /// `echo VALUE > FILE` of a tunable, while the kernel runs.
    fn sysctl_write(&mut self, cpu: CpuId, tunable: Tunable, value: u64) -> Answer;
    /// `echo FEATURE > sched_features`, or `NO_FEATURE`.
    fn sched_feat_set(&mut self, cpu: CpuId, feature: Feature, on: bool) -> Answer;
    /// A new group below `parent` with `shares` (1024 = a default group).
    fn create_group(&mut self, parent: TgId, name: &str, shares: u64) -> TgId;
    /// A new group with the default weight: mkdir in the cgroup file system.
    fn cgroup_mkdir(&mut self, cpu: CpuId, parent: TgId, name: &str) -> Answer<TgId>;
    fn cgroup_rmdir(&mut self, cpu: CpuId, group: TgId) -> Answer;
    /// `echo TEXT > FILE` in a group's directory; the root group is [`ROOT_TASK_GROUP`](crate::sched::ROOT_TASK_GROUP).
    fn cgroup_write(&mut self, cpu: CpuId, group: TgId, file: GroupFile, text: &str) -> Answer;
    fn cgroup_read(&self, group: TgId, file: GroupFile) -> Answer<String>;
    fn move_to_group(&mut self, cpu: CpuId, task: TaskId, group: TgId);
    /// The cgroup that `task` is a member of.
    fn task_css(&self, task: TaskId) -> TgId;
    /// Moves the process of `task` into a session; [`Session::New`] is setsid().
    fn set_session(&mut self, cpu: CpuId, task: TaskId, session: Session);
    /// Sets the weight of the session of `task` among the others: a write to `/proc/PID/autogroup`.
    fn set_autogroup_nice(&mut self, cpu: CpuId, task: TaskId, nice: i32) -> Answer;
    fn set_user_nice(&mut self, cpu: CpuId, task: TaskId, nice: i32);
    /// Sets another policy, with a priority from 1 to 99 for a real-time one; the nice level stays.
    fn sched_setscheduler(&mut self, cpu: CpuId, task: TaskId, policy: Policy, priority: u32) -> Answer;
    /// Sets all scheduling attributes at once.
    fn sched_setattr(&mut self, cpu: CpuId, task: TaskId, attr: &SchedAttr) -> Answer;

    // Priority inheritance. A scheduler without it leaves these as they are.

    /// The current priority of `task`, smaller is higher: below 0 deadline, 0..=98 real-time, 100..=139 fair.
    fn task_prio(&self, _task: TaskId) -> i32 {
        DEFAULT_PRIO
    }
    /// The deadline of a task in the deadline class, its own or a lent one, in ns of its queue's clock; otherwise 0.
    fn task_deadline(&self, _task: TaskId) -> u64 {
        0
    }
    /// `pi_task`, the first task that waits for a lock held by `task`, lends it its priority and deadline; `None`: none waits any more.
    fn rt_mutex_setprio(&mut self, _cpu: CpuId, _task: TaskId, _pi_task: Option<TaskId>) {}

    // NUMA balancing. A scheduler without it leaves these as they are.

    /// topology.h: cpu_to_node().
    fn cpu_to_node(&self, cpu: CpuId) -> u16;
    /// topology.h: node_distance(), 10 within a node.
    fn node_distance(&self, from: u16, to: u16) -> u32;
    /// mmap(): the address space `mm` gains an area of `pages` pages of 4 KiB; `area` is its number in the page tables.
    fn numa_map(&mut self, _mm: u32, _pages: u64, _area: u32) {}
    /// The address space gained, or lost, so many resident pages.
    fn add_mm_rss(&mut self, _mm: u32, _pages: i64) {}
    /// A task of the address space has exited. Returns whether it was the last.
    fn exit_numa_mm(&mut self, _mm: u32) -> bool {
        false
    }
    /// The running task was seen to touch that area (a hinting fault).
    fn vma_set_access_pid_bit(&mut self, _cpu: CpuId, _area: u32) {}
    /// Whether a page of `src_nid`, which the running task touches and `page` touched before, is to move to this node. `page` becomes the
    /// running task.
    fn should_numa_migrate_memory(&mut self, _cpu: CpuId, _page: &mut CpuPid, _src_nid: u16) -> bool {
        false
    }
    /// The running task touched a page that NUMA balancing had unmapped.
    fn task_numa_fault(&mut self, _cpu: CpuId, _fault: HintingFault) {}
}

impl<A: Arch> Scheduler for Sched<A> {
    type Arch = A;

    #[inline]
    fn arch(&self) -> &A {
        &self.arch
    }

    #[inline]
    fn arch_mut(&mut self) -> &mut A {
        &mut self.arch
    }

    fn nr_cpus(&self) -> usize {
        Sched::nr_cpus(self)
    }

    fn fork(&mut self, cpu: CpuId, init: TaskInit) -> Answer<TaskId> {
        self.on_cpu(cpu);
        self.may_fork(self.rq[cpu].curr, &init)?;
        Ok(self.sched_fork(self.rq[cpu].curr, init))
    }

    fn wake_up_new_task(&mut self, cpu: CpuId, task: TaskId) {
        self.on_cpu(cpu);
        Sched::wake_up_new_task(self, task);
    }

    fn wake(&mut self, cpu: CpuId, task: TaskId, flags: WakeFlags) -> bool {
        self.on_cpu(cpu);
        self.try_to_wake_up(task, flags)
    }

    fn is_awake(&self, task: TaskId) -> bool {
        self.task[task].state == TaskState::Running
    }

    fn set_current_state(&mut self, cpu: CpuId, state: TaskState) {
        self.on_cpu(cpu);
        let p = self.rq[cpu].curr.expect("only a task can change its state");
        self.write_task(p);
        self.task[p].state = state;
    }

    fn set_in_iowait(&mut self, cpu: CpuId, in_iowait: bool) {
        self.current_in_iowait(cpu, in_iowait);
    }

    #[inline]
    fn keeps_wait_channels(&self) -> bool {
        unlikely(self.latencytop.enabled) || self.profiles(ProfileType::Sleep)
    }

    fn set_wait_channel(&mut self, task: TaskId, channel: WaitChannel) {
        self.task_cold[task].wchan = channel;
    }

    #[inline(always)]
    fn schedule(&mut self, cpu: CpuId, preempt: bool) -> Option<TaskId> {
        self.on_cpu(cpu);
        Sched::schedule(self, preempt)
    }

    fn sched_yield(&mut self, cpu: CpuId) {
        self.on_cpu(cpu);
        Sched::sched_yield(self);
    }

    #[inline]
    fn irq_enter(&mut self, _cpu: CpuId) {
        self.interrupt = Interrupt::Hardirq;
    }

    #[inline]
    fn softirq_enter(&mut self, _cpu: CpuId) {
        self.interrupt = Interrupt::Softirq;
    }

    #[inline]
    fn irq_exit(&mut self, _cpu: CpuId) {
        self.interrupt = Interrupt::None;
    }

    fn account_process_tick(&mut self, cpu: CpuId, user_tick: bool) {
        Sched::account_process_tick(self, cpu, user_tick);
    }

    fn scheduler_tick(&mut self, cpu: CpuId) -> bool {
        self.on_cpu(cpu);
        Sched::scheduler_tick(self)
    }

    fn scheduler_ipi(&mut self, cpu: CpuId) -> bool {
        self.on_cpu(cpu);
        self.irq_work_run();
        Sched::scheduler_ipi(self)
    }

    #[inline(always)]
    fn idle_loop_enter(&mut self, cpu: CpuId) {
        self.on_cpu(cpu);
        self.nohz_run_idle_balance(cpu);
        self.tick_nohz_idle_enter(cpu);
    }

    #[inline(always)]
    fn idle_loop_exit(&mut self, cpu: CpuId) -> bool {
        self.on_cpu(cpu);
        // Before v5.8 a kick always came with an interrupt.
        let kicked = self.kernel.balance.nohz == NohzBalance::Flags && self.got_nohz_idle_kick();
        self.flush_smp_call_function_queue();
        kicked
    }

    #[inline]
    fn next_event(&self, cpu: CpuId) -> Option<Ns> {
        self.hrtimers.next_event(cpu)
    }

    fn hrtimer_run(&mut self, cpu: CpuId) -> bool {
        self.on_cpu(cpu);
        Sched::hrtimer_run(self)
    }

    fn run_rebalance_domains(&mut self, cpu: CpuId) {
        self.on_cpu(cpu);
        Sched::run_rebalance_domains(self);
    }

    fn cpu_stopper_thread(&mut self, cpu: CpuId) -> bool {
        self.on_cpu(cpu);
        Sched::cpu_stopper_thread(self)
    }

    fn set_polling(&mut self, cpu: CpuId, polling: bool) {
        self.rq[cpu].polling = polling;
    }

    fn set_idle_state(&mut self, cpu: CpuId, exit_latency_us: Option<u32>) {
        self.rq[cpu].idle_exit_latency = exit_latency_us;
    }

    #[inline(always)]
    fn write_idle_state(&mut self, cpu: CpuId) {
        self.on_cpu(cpu);
        Sched::write_idle_state(self, cpu);
    }

    #[inline(always)]
    fn tick_nohz_idle_stop(&mut self, cpu: CpuId, stops: bool) {
        self.count_idle_call(cpu);
        if !stops || std::mem::replace(&mut self.rq[cpu].tick_stopped, true) {
            return;
        }
        self.on_cpu(cpu);
        self.nohz_balance_enter_idle(cpu);
    }

    #[inline(always)]
    fn tick_nohz_idle_restart(&mut self, cpu: CpuId) -> bool {
        self.on_cpu(cpu);
        if self.tick_nohz_full_cpu(cpu) && self.stays_without_tick(cpu) {
            return false;
        }
        self.rq[cpu].tick_stopped = false;
        self.tick_nohz_idle_exit(cpu);
        true
    }

    fn task_sched_runtime(&self, cpu: CpuId) -> Ns {
        Sched::task_sched_runtime(self, cpu)
    }

    #[inline]
    fn tick_nohz_full_enabled(&self) -> bool {
        Sched::tick_nohz_full_enabled(self)
    }

    fn tick_nohz_full_cpu(&self, cpu: CpuId) -> bool {
        Sched::tick_nohz_full_cpu(self, cpu)
    }

    fn cpu_is_isolated(&self, cpu: CpuId) -> bool {
        Sched::cpu_is_isolated(self, cpu)
    }

    fn tick_nohz_full_update_tick(&mut self, cpu: CpuId) -> FullTick {
        self.on_cpu(cpu);
        Sched::tick_nohz_full_update_tick(self, cpu)
    }

    #[inline]
    fn get_nohz_timer_target(&mut self, cpu: CpuId) -> CpuId {
        Sched::get_nohz_timer_target(self, cpu)
    }

    fn kthread_cpus(&self) -> Option<CpuMask> {
        Sched::kthread_cpus(self)
    }

    #[inline]
    fn need_resched(&self, cpu: CpuId) -> bool {
        self.rq[cpu].need_resched
    }

    #[inline]
    fn current(&self, cpu: CpuId) -> Option<TaskId> {
        self.rq[cpu].curr
    }

    fn task_cpu(&self, task: TaskId) -> CpuId {
        self.task[task].cpu
    }

    fn current_is_nice(&self, cpu: CpuId) -> bool {
        self.rq[cpu].curr.is_some_and(|curr| self.task[curr].static_prio > DEFAULT_PRIO)
    }

    fn is_stopper(&self, task: TaskId) -> bool {
        self.task[task].sched_class == SchedClass::Stop
    }

    #[inline]
    fn rt_or_dl_task_policy(&self, task: TaskId) -> bool {
        self.task[task].policy.rt_or_dl_policy()
    }

    fn set_cpus_allowed(&mut self, cpu: CpuId, task: TaskId, mask: CpuMask) -> Answer {
        self.on_cpu(cpu);
        self.sched_setaffinity(task, mask)
    }

    fn sched_exec(&mut self, cpu: CpuId) {
        self.on_cpu(cpu);
        self.sched_exec();
    }

    fn executed(&mut self, cpu: CpuId) {
        self.on_cpu(cpu);
        if unlikely(self.arch.tracing())
            && let Some(task) = self.rq[cpu].curr
        {
            self.trace(Event::SchedProcessExec { task });
        }
    }

    fn cpus_allowed(&self, task: TaskId) -> &CpuMask {
        &self.task[task].cpus_allowed
    }

    fn cpu_down(&mut self, cpu: CpuId, down: CpuId) -> Answer {
        self.on_cpu(cpu);
        Sched::cpu_down(self, down)
    }

    fn cpu_up(&mut self, cpu: CpuId, up: CpuId) -> Answer {
        self.on_cpu(cpu);
        Sched::cpu_up(self, up)
    }

    fn is_online(&self, cpu: CpuId) -> bool {
        self.rq[cpu].hotplug.is_online()
    }

    fn set_partitions(&mut self, cpu: CpuId, partitions: &[CpuMask]) -> Answer {
        self.on_cpu(cpu);
        Sched::set_partitions(self, partitions)
    }

    fn sysctl_write(&mut self, cpu: CpuId, tunable: Tunable, value: u64) -> Answer {
        self.on_cpu(cpu);
        Sched::sysctl_write(self, tunable, value)
    }

    fn sched_feat_set(&mut self, cpu: CpuId, feature: Feature, on: bool) -> Answer {
        self.on_cpu(cpu);
        Sched::sched_feat_set(self, feature, on)
    }

    fn create_group(&mut self, parent: TgId, name: &str, shares: u64) -> TgId {
        self.sched_create_group(parent, name, shares)
    }

    fn cgroup_mkdir(&mut self, cpu: CpuId, parent: TgId, name: &str) -> Answer<TgId> {
        self.on_cpu(cpu);
        Sched::cgroup_mkdir(self, parent, name)
    }

    fn cgroup_rmdir(&mut self, cpu: CpuId, group: TgId) -> Answer {
        self.on_cpu(cpu);
        Sched::cgroup_rmdir(self, group)
    }

    fn cgroup_write(&mut self, cpu: CpuId, group: TgId, file: GroupFile, text: &str) -> Answer {
        self.on_cpu(cpu);
        Sched::cgroup_write(self, group, file, text)
    }

    fn cgroup_read(&self, group: TgId, file: GroupFile) -> Answer<String> {
        Sched::cgroup_read(self, group, file)
    }

    fn move_to_group(&mut self, cpu: CpuId, task: TaskId, group: TgId) {
        self.on_cpu(cpu);
        self.cpu_cgroup_attach(task, group);
    }

    fn task_css(&self, task: TaskId) -> TgId {
        self.task_cold[task].css
    }

    fn set_session(&mut self, cpu: CpuId, task: TaskId, session: Session) {
        self.on_cpu(cpu);
        self.autogroup_move_group(task, session);
    }

    fn set_autogroup_nice(&mut self, cpu: CpuId, task: TaskId, nice: i32) -> Answer {
        self.on_cpu(cpu);
        self.proc_sched_autogroup_set_nice(task, nice)
    }

    fn set_user_nice(&mut self, cpu: CpuId, task: TaskId, nice: i32) {
        self.on_cpu(cpu);
        Sched::set_user_nice(self, task, nice);
    }

    fn sched_setscheduler(&mut self, cpu: CpuId, task: TaskId, policy: Policy, priority: u32) -> Answer {
        self.on_cpu(cpu);
        Sched::sched_setscheduler(self, task, policy, priority)
    }

    fn sched_setattr(&mut self, cpu: CpuId, task: TaskId, attr: &SchedAttr) -> Answer {
        self.on_cpu(cpu);
        Sched::sched_setattr(self, task, attr)
    }

    fn task_prio(&self, task: TaskId) -> i32 {
        self.task[task].prio
    }

    fn task_deadline(&self, task: TaskId) -> u64 {
        match self.task[task].sched_class {
            SchedClass::Dl => self.dl_se[task].deadline,
            _ => 0,
        }
    }

    fn rt_mutex_setprio(&mut self, cpu: CpuId, task: TaskId, pi_task: Option<TaskId>) {
        self.on_cpu(cpu);
        Sched::rt_mutex_setprio(self, task, pi_task);
    }

    fn cpu_to_node(&self, cpu: CpuId) -> u16 {
        Sched::cpu_to_node(self, cpu)
    }

    fn node_distance(&self, from: u16, to: u16) -> u32 {
        self.topology.node_distance(from, to)
    }

    fn numa_map(&mut self, mm: u32, pages: u64, area: u32) {
        Sched::numa_map(self, mm, pages, area);
    }

    fn add_mm_rss(&mut self, mm: u32, pages: i64) {
        Sched::add_mm_rss(self, mm, pages);
    }

    fn exit_numa_mm(&mut self, mm: u32) -> bool {
        Sched::exit_numa_mm(self, mm)
    }

    fn vma_set_access_pid_bit(&mut self, cpu: CpuId, area: u32) {
        self.on_cpu(cpu);
        Sched::vma_set_access_pid_bit(self, area);
    }

    fn should_numa_migrate_memory(&mut self, cpu: CpuId, page: &mut CpuPid, src_nid: u16) -> bool {
        self.on_cpu(cpu);
        let p = self.rq[cpu].curr.expect("only a task touches memory");
        Sched::should_numa_migrate_memory(self, p, page, src_nid, cpu)
    }

    fn task_numa_fault(&mut self, cpu: CpuId, fault: HintingFault) {
        self.on_cpu(cpu);
        Sched::task_numa_fault(self, fault);
    }
}
