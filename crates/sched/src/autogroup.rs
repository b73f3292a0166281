//! autogroup.c (auto_group.c until v4.10): one task group per session, created automatically.
//!
//! ```text
//! setsid() ─▶ a new group below the root, for the process and all it forks from now on
//! a task belongs to its session's group while kernel.sched_autogroup_enabled is set, its own cgroup is the root, and it
//! is not on its way out; otherwise to its cgroup
//! ```
//!
//! Differs: a process is the tasks that share an address space; until v4.8 setsid() moved no task while grouping was
//! off, and so could leave a task in a group that is gone. Absent: real-time groups.

use crate::arch::Arch;
use crate::behaviour;
use crate::core::Sched;
use crate::errno::{Answer, Errno, Refusal};
use crate::load_weight::sched_prio_to_weight;
use crate::sched::*;

behaviour! {
    /// Whether a kernel as its distribution builds it groups sessions.
    pub enum AutogroupDefault = "autogroup.default" {
        On = "on", since "v2.6.38", commit "", "yes, unless it is booted with noautogroup";
        Off = "off", since "v5.10", commit "",
            "no: Debian 11 and 12 switch it off, kernel.sched_autogroup_enabled switches it on";
    }
}

behaviour! {
    /// Where a task ends.
    pub enum AutogroupExit = "autogroup.exit" {
        InGroup = "in-group", since "v2.6.38", commit "", "in its session's group";
        InRoot = "in-root", since "v4.9", commit "8e5bfa8c1f84", "it moves to the root group first, as its session may be gone before it";
    }
}

/// How sessions are grouped in one kernel version.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AutogroupRules {
    pub default: AutogroupDefault,
    pub exit: AutogroupExit,
}

impl AutogroupRules {
    pub const V4_5: AutogroupRules = AutogroupRules { default: AutogroupDefault::On, exit: AutogroupExit::InGroup };
    pub const V4_15: AutogroupRules = AutogroupRules { exit: AutogroupExit::InRoot, ..AutogroupRules::V4_5 };
    pub const V5_10: AutogroupRules = AutogroupRules { default: AutogroupDefault::Off, ..AutogroupRules::V4_15 };
    /// 5.15.135 as its own configuration has it, not Debian's.
    pub const V5_15: AutogroupRules = AutogroupRules { default: AutogroupDefault::On, ..AutogroupRules::V5_10 };
    pub const V6_1: AutogroupRules = AutogroupRules::V5_10;
    pub const V6_6: AutogroupRules = AutogroupRules { default: AutogroupDefault::On, ..AutogroupRules::V6_1 };
}

/// autogroup.h: struct autogroup: a session's group.
#[derive(Clone, Copy, Debug)]
struct Autogroup {
    tg: TgId,
    /// `/autogroup-ID`
    id: u64,
    nice: i32,
    /// How many tasks refer to it, including dead ones until their memory is freed.
    kref: u32,
    number: Option<u32>,
}

/// The groups of all sessions, by their number in [`TaskCold::autogroup`]. Numbers are reused.
#[derive(Clone, Debug, Default)]
pub(crate) struct Autogroups {
    groups: Vec<Option<Autogroup>>,
    seq_nr: u64,
}

/// A session that a task can join.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Session {
    /// A new one: setsid().
    New,
    /// The session with that number in the setup of the machine; the first task to join creates it.
    Numbered(u32),
    /// That of init, which has no group of its own.
    Init,
}

impl Autogroups {
    fn get(&self, number: u32) -> &Autogroup {
        self.groups[number as usize].as_ref().expect("a task's session is there")
    }

    fn get_mut(&mut self, number: u32) -> &mut Autogroup {
        self.groups[number as usize].as_mut().expect("a task's session is there")
    }

    fn numbered(&self, number: u32) -> Option<u32> {
        let is = |group: &Option<Autogroup>| group.is_some_and(|group| group.number == Some(number));
        self.groups.iter().position(is).map(|at| at as u32)
    }

    fn insert(&mut self, group: Autogroup) -> u32 {
        let free = self.groups.iter().position(Option::is_none);
        let number = free.unwrap_or_else(|| {
            self.groups.push(None);
            self.groups.len() - 1
        });
        self.groups[number] = Some(group);
        number as u32
    }
}

impl<A: Arch> Sched<A> {
    /// autogroup.h: autogroup_task_group(). The group in which a member of the cgroup `tg` is scheduled.
    #[inline]
    pub(crate) fn autogroup_task_group(&self, p: TaskId, tg: TgId) -> TgId {
        match self.task_cold[p].autogroup {
            None => tg,
            Some(session) if self.sysctl.sched_autogroup_enabled != 0 && self.task_wants_autogroup(p, tg) => {
                self.autogroups.get(session).tg
            }
            Some(_) => tg,
        }
    }

    /// autogroup.c: task_wants_autogroup().
    fn task_wants_autogroup(&self, p: TaskId, tg: TgId) -> bool {
        tg == ROOT_TASK_GROUP && !self.task_cold[p].exiting
    }

    /// autogroup.h: task_group_is_autogroup().
    #[doc(alias = "task_group_is_autogroup")]
    pub fn is_autogroup(&self, tg: TgId) -> bool {
        self.autogroups.groups.iter().flatten().any(|autogroup| autogroup.tg == tg)
    }

    /// autogroup.c: autogroup_create().
    fn autogroup_create(&mut self, number: Option<u32>) -> u32 {
        self.autogroups.seq_nr += 1;
        let id = self.autogroups.seq_nr;
        let tg = self.sched_create_group(ROOT_TASK_GROUP, &format!("autogroup-{id}"), 1024);
        self.autogroups.insert(Autogroup { tg, id, nice: 0, kref: 0, number })
    }

    /// autogroup.c: autogroup_kref_put(), autogroup_destroy().
    #[doc(alias = "autogroup_destroy")]
    fn autogroup_kref_put(&mut self, session: Option<u32>) {
        let Some(session) = session else { return };
        let autogroup = self.autogroups.get_mut(session);
        autogroup.kref -= 1;
        if autogroup.kref == 0 {
            let tg = autogroup.tg;
            self.autogroups.groups[session as usize] = None;
            self.sched_destroy_group(tg);
        }
    }

    /// autogroup.c: sched_autogroup_fork(). A child is in its parent's session.
    pub(crate) fn sched_autogroup_fork(&mut self, parent: Option<TaskId>, p: TaskId) {
        let session = parent.and_then(|parent| self.task_cold[parent].autogroup);
        self.task_cold[p].autogroup = session;
        if let Some(session) = session {
            self.autogroups.get_mut(session).kref += 1;
        }
    }

    /// autogroup.c: sched_autogroup_exit(). `session` is that of a task whose memory is freed.
    pub(crate) fn sched_autogroup_exit(&mut self, session: Option<u32>) {
        self.autogroup_kref_put(session);
    }

    /// autogroup.c: sched_autogroup_exit_task(). The running task is exiting.
    /// Differs: a task that is in the right group already stays there; the kernel dequeues it and queues it again.
    pub(crate) fn sched_autogroup_exit_task(&mut self, p: TaskId) {
        self.task_cold[p].exiting = true;
        if self.task_cold[p].autogroup.is_some() && self.kernel.autogroup.exit == AutogroupExit::InRoot {
            self.update_task_group(p);
        }
    }

    /// Moves a task to the group that its cgroup and its session determine.
    fn update_task_group(&mut self, p: TaskId) {
        let tg = self.autogroup_task_group(p, self.task_cold[p].css);
        if self.task[p].sched_task_group != tg {
            self.sched_move_task(p, tg);
        }
    }

    /// autogroup.c: sched_autogroup_create_attach(), sched_autogroup_detach(), autogroup_move_group(). A process, with
    /// all its threads, joins a session.
    #[doc(alias = "sched_autogroup_create_attach")]
    #[doc(alias = "sched_autogroup_detach")]
    pub(crate) fn autogroup_move_group(&mut self, p: TaskId, session: Session) {
        let session = match session {
            Session::New => Some(self.autogroup_create(None)),
            Session::Numbered(number) => {
                Some(self.autogroups.numbered(number).unwrap_or_else(|| self.autogroup_create(Some(number))))
            }
            Session::Init => None,
        };
        if self.task_cold[p].autogroup == session {
            return;
        }
        let mm = self.task[p].mm;
        let thread =
            |(q, task): (TaskId, &TaskStruct)| (task.alive && (q == p || mm != 0 && task.mm == mm)).then_some(q);
        let threads: Vec<TaskId> = self.task.iter().filter_map(thread).collect();
        for thread in threads {
            if let Some(session) = session {
                self.autogroups.get_mut(session).kref += 1;
            }
            let before = std::mem::replace(&mut self.task_cold[thread].autogroup, session);
            self.update_task_group(thread);
            self.autogroup_kref_put(before);
        }
    }

    /// autogroup.c: proc_sched_autogroup_set_nice(): a write to `/proc/PID/autogroup`. The nice level weighs the whole
    /// session among the others, as a task's does among tasks.
    ///
    /// # Errors
    /// EINVAL for an invalid level.
    pub fn proc_sched_autogroup_set_nice(&mut self, p: TaskId, nice: i32) -> Answer {
        if !(-20..=19).contains(&nice) {
            return Err(Refusal::new(Errno::EINVAL, "a nice level is from -20 to 19"));
        }
        let Some(session) = self.task_cold[p].autogroup else {
            return Err(Refusal::new(
                Errno::EINVAL,
                "the task is in no session of its own, and the root group's weight is fixed",
            ));
        };
        let autogroup = self.autogroups.get_mut(session);
        autogroup.nice = nice;
        let tg = autogroup.tg;
        self.sched_group_set_shares(tg, u64::from(sched_prio_to_weight[(nice + 20) as usize]));
        Ok(())
    }

    /// autogroup.c: autogroup_path(). The name of a session's group; `None` for other groups.
    pub fn autogroup_path(&self, tg: TgId) -> Option<String> {
        let found = self.autogroups.groups.iter().flatten().find(|autogroup| autogroup.tg == tg);
        found.map(|autogroup| format!("/autogroup-{}", autogroup.id))
    }

    /// core.c: cpu_cgroup_attach(). A task becomes a member of a cgroup.
    ///
    /// Differs: the v4 kernels refuse a task that is not in the fair class (cpu_cgroup_can_attach(): EINVAL).
    pub(crate) fn cpu_cgroup_attach(&mut self, p: TaskId, css: TgId) {
        self.cgroup_move_task(p, css);
        let tg = self.autogroup_task_group(p, css);
        self.sched_move_task(p, tg);
    }
}
