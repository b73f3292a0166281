//! cpufreq_schedutil.c for drivers that cannot switch inside the scheduler: an interrupt to the CPU itself wakes the
//! policy's thread `sugov:N`, which calls the driver and waits for it.

use super::{SugovPolicy, sugov_policy};
use crate::access::Path;
use crate::arch::Arch;
use crate::attr::{SchedAttr, SchedFlags};
use crate::behaviour;
use crate::core::Sched;
use crate::cpufreq::Hook;
use crate::sched::{IrqWork, Policy, TaskId, WakeFlags};
use units::{CpuId, CpuMask, Ns};

behaviour! {
    /// What the thread is that asks a driver which cannot switch in the middle of the scheduler.
    pub enum SugovThread = "frequency.sugov_thread" {
        Fifo = "fifo", since "v4.10", commit "02a7b1ee3baa", "a real-time task, SCHED_FIFO with priority 50 (by v4.15)";
        Deadline = "deadline", since "v4.16", commit "794a56ebd9a5",
            "a deadline task before all others, without a budget, for which nothing is reserved";
    }
}

behaviour! {
    /// What becomes of a frequency that is chosen while the thread has not done its work.
    pub enum SugovBusy = "frequency.sugov_busy" {
        Refused = "refused", since "v4.7", commit "9bdcb44e391d", "none is chosen before the driver is done";
        Joined = "joined", since "v4.18", commit "152db033d775", "the thread takes the last one when it comes to ask";
    }
}

behaviour! {
    /// Which CPUs have the thread ask for the frequency of others, and where it runs.
    pub enum SugovRemote = "frequency.sugov_remote" {
        Anybody = "anybody", since "v4.14", commit "c49cbc19b31e",
            "any CPU, whatever the driver says; it runs everywhere where the driver lets any CPU ask (e2cabe48c20e)";
        /// v4.19.y and v5.4.y have it too.
        Allowed = "allowed", since "v5.5", commit "85572c2c4a45",
            "CPUs of the policy, and others if the driver lets them; it stays on the policy's CPUs";
    }
}

/// `MAX_USER_RT_PRIO / 2`
const FIFO_PRIORITY: u32 = 50;
const NSEC_PER_MSEC: u64 = 1_000_000;

/// The part of struct sugov_policy that only such policies need.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SugovWork {
    pub thread: Option<TaskId>,
    pub work_in_progress: bool,
    /// Whether `work` is in the worker's list.
    queued: bool,
    /// The worker's `current_work`: the frequency requested from the driver, in kHz.
    current: Option<u32>,
}

/// A thread that is to be started for a policy, named by the policy's number.
#[derive(Clone, Debug)]
pub struct SugovKthread {
    pub policy: u16,
    pub comm: String,
    pub attr: SchedAttr,
    /// The CPUs to which it is bound; `None`: it is not bound.
    pub cpus: Option<CpuMask>,
}

/// The rest of the kernel's part for governors that hand work to threads: schedutil, if its driver needs that, to `sugov:N`;
/// ondemand and conservative to kworkers.
pub trait CpufreqThreads {
    /// The next policy whose sample an interrupt makes `cpu` hand to a kworker.
    fn dbs_work(&mut self, _cpu: CpuId) -> Option<u16> {
        None
    }
    /// The threads of schedutil that are to be started.
    fn sugov_kthread_create(&self) -> Vec<SugovKthread> {
        Vec::new()
    }
    /// The thread of a policy has been started.
    fn sugov_kthread_started(&mut self, _policy: u16, _thread: TaskId) {}
    /// The thread of a policy, running on `cpu`, requests the chosen frequency from the driver. Returns how long it waits;
    /// `None`: there was no work.
    fn sugov_work(&mut self, _cpu: CpuId, _policy: u16) -> Option<Ns> {
        None
    }
    /// The driver is done.
    fn sugov_work_done(&mut self, _cpu: CpuId, _policy: u16) {}
    /// The thread that runs on `cpu` is to end, because the governor has been stopped.
    fn sugov_kthread_should_stop(&self, _cpu: CpuId, _policy: u16) -> bool {
        false
    }
}

impl<A: Arch> CpufreqThreads for Sched<A> {
    #[inline]
    fn dbs_work(&mut self, cpu: CpuId) -> Option<u16> {
        self.next_dbs_work(cpu)
    }

    /// cpufreq_schedutil.c: sugov_kthread_create(), for every policy that needs a thread.
    fn sugov_kthread_create(&self) -> Vec<SugovKthread> {
        let Some(Hook::Schedutil(sugov)) = self.cpufreq.as_ref().map(|cpufreq| &cpufreq.hook) else {
            return Vec::new();
        };
        let rules = &self.kernel.cpufreq;
        let attr = match rules.sugov_thread {
            SugovThread::Fifo => {
                SchedAttr { sched_policy: Policy::Fifo, sched_priority: FIFO_PRIORITY, ..SchedAttr::NORMAL }
            }
            SugovThread::Deadline => SchedAttr {
                sched_policy: Policy::Deadline,
                sched_flags: SchedFlags { sugov: true, ..SchedFlags::default() },
                sched_runtime: NSEC_PER_MSEC,
                sched_deadline: 10 * NSEC_PER_MSEC,
                sched_period: 10 * NSEC_PER_MSEC,
                ..SchedAttr::NORMAL
            },
        };
        let slow = sugov.policies.iter().filter(|sg_policy| !sg_policy.policy.fast_switch);
        slow.map(|sg_policy| {
            let policy = &sg_policy.policy;
            let anywhere = rules.sugov_remote == SugovRemote::Anybody && policy.dvfs_possible_from_any_cpu;
            SugovKthread {
                policy: sg_policy.number,
                comm: format!("sugov:{}", policy.cpus[0].index()),
                attr,
                cpus: (!anywhere).then(|| policy.cpus.iter().copied().collect()),
            }
        })
        .collect()
    }

    fn sugov_kthread_started(&mut self, policy: u16, thread: TaskId) {
        self.sugov_work_mut(policy).thread = Some(thread);
    }

    /// cpufreq_schedutil.c: sugov_work(), up to where the driver waits, including the part of kthread_worker_fn().
    fn sugov_work(&mut self, cpu: CpuId, policy: u16) -> Option<Ns> {
        self.on_cpu(cpu);
        if !std::mem::take(&mut self.sugov_work_mut(policy).queued) {
            return None;
        }
        self.path(Path::sugov_work);
        let joined = self.kernel.cpufreq.sugov_busy == SugovBusy::Joined;
        let sg_policy = self.sugov_policy_mut(policy);
        sg_policy.work.work_in_progress = !joined;
        let (of, freq) = (sg_policy.policy.cpus[0], sg_policy.next_freq);
        let (khz, wait) = self.arch.cpufreq_driver_target(cpu, of, freq);
        self.sugov_work_mut(policy).current = Some(khz);
        Some(wait)
    }

    /// kthread.c: kthread_should_stop(), of a policy's thread: schedutil has left the policy, or has come back to it with
    /// another thread.
    #[doc(alias = "kthread_should_stop")]
    fn sugov_kthread_should_stop(&self, cpu: CpuId, policy: u16) -> bool {
        let thread = match self.cpufreq.as_ref().map(|cpufreq| &cpufreq.hook) {
            Some(Hook::Schedutil(sugov)) => sugov.policies[usize::from(policy)].work.thread,
            Some(Hook::Driver) | None => return true,
        };
        thread.is_some_and(|thread| self.rq[cpu].curr != Some(thread))
    }

    /// The rest of sugov_work(): cpufreq_freq_transition_end(); until v4.17, only now may other frequencies be chosen again.
    fn sugov_work_done(&mut self, _cpu: CpuId, policy: u16) {
        let joined = self.kernel.cpufreq.sugov_busy == SugovBusy::Joined;
        let sg_policy = self.sugov_policy_mut(policy);
        if let Some(khz) = sg_policy.work.current.take() {
            sg_policy.policy.cur = khz;
        }
        if !joined {
            sg_policy.work.work_in_progress = false;
        }
    }
}

impl<A: Arch> Sched<A> {
    fn sugov_policy_mut(&mut self, number: u16) -> &mut SugovPolicy {
        let cpufreq = self.cpufreq.as_mut().expect("schedutil governs");
        sugov_policy(&mut cpufreq.hook, number)
    }

    fn sugov_work_mut(&mut self, number: u16) -> &mut SugovWork {
        &mut self.sugov_policy_mut(number).work
    }

    /// cpufreq_schedutil.c: sugov_deferred_update().
    pub(super) fn sugov_deferred_update(&mut self, sg_policy: &mut SugovPolicy) {
        if !std::mem::replace(&mut sg_policy.work.work_in_progress, true) {
            self.irq_work_queue_on(self.this_cpu, IrqWork::Sugov(sg_policy.number));
        }
    }

    /// cpufreq_schedutil.c: sugov_irq_work(), with kthread.c's kthread_queue_work(). A busy worker looks again before it
    /// sleeps.
    #[doc(alias = "kthread_queue_work")]
    pub(crate) fn sugov_irq_work(&mut self, policy: u16) {
        self.path(Path::sugov_irq_work);
        let work = self.sugov_work_mut(policy);
        work.queued = true;
        if let (Some(thread), None) = (work.thread, work.current) {
            self.try_to_wake_up(thread, WakeFlags::NONE);
        }
    }
}
