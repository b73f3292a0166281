//! What a thread has asked the scheduler for: policy, nice level, CPUs, task group. Changes become operations.

use super::description::{Placed, Policy, PolicyName};
use sched::attr::SchedAttr;
use sched::sched::{Policy as KernelPolicy, ROOT_TASK_GROUP, TgId};
use sim::program::{Op, TaskSpec};
use std::collections::VecDeque;
use units::CpuMask;

/// What is in force for a thread. A thread that it starts begins with the same.
#[derive(Clone)]
pub(super) struct Settings {
    policy: PolicyName,
    /// The phase that set the policy; `None` = the task, or whoever started the thread.
    policy_of: Option<usize>,
    nice: i8,
    /// The slice it asks for, if one of its own.
    slice_us: Option<u32>,
    /// `None`: the one that rt-app was started in.
    group: Option<TgId>,
    cpus: CpuMask,
    /// Where the thread may run in phases that name no CPUs: where it might when it was started.
    default_cpus: CpuMask,
}

impl Settings {
    /// Main's, which may run on every CPU.
    pub fn of_main(every_cpu: CpuMask) -> Settings {
        Settings {
            policy: PolicyName::Other,
            policy_of: None,
            nice: 0,
            slice_us: None,
            group: None,
            cpus: every_cpu.clone(),
            default_cpus: every_cpu,
        }
    }

    /// What a thread begins with that is started under these.
    pub fn inherited(&self) -> Settings {
        Settings { policy_of: None, default_cpus: self.cpus.clone(), ..self.clone() }
    }

    /// A task that begins with these.
    pub fn apply(&self, task: TaskSpec) -> TaskSpec {
        TaskSpec { attr: Some(self.attr()), cpus: Some(self.cpus.clone()), group: self.group, ..task }
    }

    /// The task's policy and nice level, which are set whatever they were.
    pub fn set_policy(&mut self, policy: &Policy, ops: &mut VecDeque<Op>) {
        ops.push_back(Op::SetPolicy { policy: kernel(policy.name()), priority: 0 });
        self.took_policy(policy, None, ops);
    }

    /// Those of a phase, unless they are in force.
    pub fn enter_policy(&mut self, policy: &Policy, phase: usize, ops: &mut VecDeque<Op>) {
        if self.policy_of == Some(phase) {
            return;
        }
        if policy.name() != self.policy {
            ops.push_back(Op::SetPolicy { policy: kernel(policy.name()), priority: 0 });
        }
        self.took_policy(policy, Some(phase), ops);
    }

    fn took_policy(&mut self, policy: &Policy, of: Option<usize>, ops: &mut VecDeque<Op>) {
        (self.policy, self.policy_of) = (policy.name(), of);
        if let Policy::Other { nice, slice_us } | Policy::Batch { nice, slice_us } = *policy {
            ops.push_back(Op::SetNice(nice.into()));
            self.nice = nice;
            if slice_us != self.slice_us {
                self.slice_us = slice_us;
                ops.push_back(Op::SetAttr(Box::new(self.attr())));
            }
        }
    }

    fn attr(&self) -> SchedAttr {
        let sched_runtime = self.slice_us.map_or(0, |slice_us| u64::from(slice_us) * 1_000);
        SchedAttr { sched_runtime, ..SchedAttr::fair(kernel(self.policy), self.nice.into()) }
    }

    pub fn set_cpus(&mut self, cpus: Option<&Placed<CpuMask>>, ops: &mut VecDeque<Op>) {
        let cpus = cpus.map_or(&self.default_cpus, |cpus| &cpus.value);
        if *cpus != self.cpus {
            self.cpus = cpus.clone();
            ops.push_back(Op::SetAffinity(cpus.clone()));
        }
    }

    pub fn set_group(&mut self, group: TgId, ops: &mut VecDeque<Op>) {
        let stays = match self.group {
            None => group == ROOT_TASK_GROUP,
            Some(there) => there == group,
        };
        if !stays {
            self.group = Some(group);
            ops.push_back(Op::MoveToGroup(group));
        }
    }
}

fn kernel(policy: PolicyName) -> KernelPolicy {
    match policy {
        PolicyName::Other => KernelPolicy::Normal,
        PolicyName::Batch => KernelPolicy::Batch,
        PolicyName::Idle => KernelPolicy::Idle,
        PolicyName::RoundRobin | PolicyName::Fifo | PolicyName::Deadline => {
            unreachable!("an application with a policy that is not modelled is refused")
        }
    }
}
