//! What a thread has asked the scheduler for: policy, clamps, CPUs, task group. Changes become operations.

use super::description::{Placed, Policy, PolicyName};
use sched::attr::{ClampRequest, SchedAttr};
use sched::sched::{Policy as KernelPolicy, ROOT_TASK_GROUP, TgId};
use sim::program::{Op, TaskSpec};
use std::collections::VecDeque;
use units::CpuMask;

/// The settings in force for a thread. A thread that it starts begins with the same.
#[derive(Clone)]
pub(super) struct Settings {
    policy: PolicyName,
    /// The phase that set the attributes; `None` = the task, or the thread that started this one.
    attributes_of: Option<usize>,
    /// The slice that the thread asks for, if it asks for one.
    slice_us: Option<u32>,
    /// `None`: the group that rt-app was started in.
    group: Option<TgId>,
    cpus: CpuMask,
    /// NUMA nodes that its memory comes from; `None`: any.
    nodes: Option<Vec<u16>>,
    /// Where the thread may run in phases that name no CPUs: the CPUs it was allowed when it was started.
    default_cpus: CpuMask,
}

/// The attributes of a task or a phase. rt-app sets all of them, or none.
pub(super) struct Attributes<'a> {
    /// `None`: the policy stays as it is.
    pub policy: Option<&'a Policy>,
    pub util_min: Option<u16>,
    pub util_max: Option<u16>,
}

impl Settings {
    /// The settings of main, which may run on every CPU.
    pub fn of_main(every_cpu: CpuMask) -> Settings {
        Settings {
            policy: PolicyName::Other,
            attributes_of: None,
            slice_us: None,
            group: None,
            cpus: every_cpu.clone(),
            nodes: None,
            default_cpus: every_cpu,
        }
    }

    /// The settings of a thread that is started under these.
    pub fn inherited(&self) -> Settings {
        Settings { attributes_of: None, default_cpus: self.cpus.clone(), ..self.clone() }
    }

    /// A task that begins with these settings: clone() passes on policy, clamps and CPUs.
    pub fn apply(&self, task: TaskSpec) -> TaskSpec {
        TaskSpec { attr: None, group: self.group, ..task }
    }

    /// Sets the task's attributes, whatever they were before.
    pub fn set_attributes(&mut self, of: &Attributes, ops: &mut VecDeque<Op>) {
        if let Some(policy) = of.policy.filter(|policy| policy.name().is_fair()) {
            ops.push_back(Op::SetPolicy { policy: kernel(policy.name()), priority: 0 });
            self.policy = policy.name();
        }
        self.took(of, None, ops);
    }

    /// Sets a phase's attributes, unless they are in force already.
    pub fn enter(&mut self, of: &Attributes, phase: usize, ops: &mut VecDeque<Op>) {
        let says = of.policy.is_some() || of.util_min.is_some() || of.util_max.is_some();
        if says && self.attributes_of != Some(phase) {
            self.took(of, Some(phase), ops);
        }
    }

    fn took(&mut self, of: &Attributes, phase: Option<usize>, ops: &mut VecDeque<Op>) {
        if let Some(policy) = of.policy {
            self.took_policy(policy, ops);
        }
        if (of.util_min, of.util_max) != (None, None) {
            let request = |clamp: Option<u16>| clamp.map_or(ClampRequest::Keep, |it| ClampRequest::Set(it.into()));
            let clamps = SchedAttr::clamps(request(of.util_min), request(of.util_max));
            ops.push_back(Op::SetAttr(Box::new(clamps)));
        }
        self.attributes_of = phase;
    }

    /// rt-app calls pthread_setschedparam() for a fair policy only if the policy is new, and for a real-time policy
    /// always.
    fn took_policy(&mut self, policy: &Policy, ops: &mut VecDeque<Op>) {
        let name = policy.name();
        let before = std::mem::replace(&mut self.policy, name);
        match *policy {
            Policy::Other { nice, slice_us } | Policy::Batch { nice, slice_us } => {
                if name != before {
                    ops.push_back(Op::SetPolicy { policy: kernel(name), priority: 0 });
                }
                ops.push_back(Op::SetNice(nice.into()));
                if slice_us != self.slice_us {
                    self.slice_us = slice_us;
                    let sched_runtime = slice_us.map_or(0, ns);
                    let attr = SchedAttr { sched_runtime, ..SchedAttr::fair(kernel(name), nice.into()) };
                    ops.push_back(Op::SetAttr(Box::new(attr)));
                }
            }
            Policy::Idle if name == before => {}
            Policy::Idle => ops.push_back(Op::SetPolicy { policy: KernelPolicy::Idle, priority: 0 }),
            Policy::RoundRobin { priority } | Policy::Fifo { priority } => {
                ops.push_back(Op::SetPolicy { policy: kernel(name), priority: priority.into() });
            }
            Policy::Deadline { runtime_us, deadline_us, period_us } => {
                let attr = SchedAttr {
                    sched_policy: KernelPolicy::Deadline,
                    sched_runtime: ns(runtime_us),
                    sched_deadline: ns(deadline_us),
                    sched_period: ns(period_us),
                    ..SchedAttr::NORMAL
                };
                ops.push_back(Op::SetAttr(Box::new(attr)));
            }
        }
    }

    pub fn set_cpus(&mut self, cpus: Option<&Placed<CpuMask>>, ops: &mut VecDeque<Op>) {
        let cpus = cpus.map_or(&self.default_cpus, |cpus| &cpus.value);
        if *cpus != self.cpus {
            self.cpus = cpus.clone();
            ops.push_back(Op::SetAffinity(cpus.clone()));
        }
    }

    /// rt-app: set_thread_membind(). A phase or task that names no nodes leaves them as they are.
    pub fn set_membind(&mut self, nodes: Option<&Placed<Vec<u16>>>, ops: &mut VecDeque<Op>) {
        let Some(nodes) = nodes.filter(|nodes| !nodes.value.is_empty()) else { return };
        if self.nodes.as_ref() != Some(&nodes.value) {
            self.nodes = Some(nodes.value.clone());
            ops.push_back(Op::SetMembind(nodes.value.clone()));
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

fn ns(us: u32) -> u64 {
    u64::from(us) * 1_000
}

fn kernel(policy: PolicyName) -> KernelPolicy {
    match policy {
        PolicyName::Other => KernelPolicy::Normal,
        PolicyName::Batch => KernelPolicy::Batch,
        PolicyName::Idle => KernelPolicy::Idle,
        PolicyName::RoundRobin => KernelPolicy::Rr,
        PolicyName::Fifo => KernelPolicy::Fifo,
        PolicyName::Deadline => KernelPolicy::Deadline,
    }
}
