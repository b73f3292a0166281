//! Requests for clamps: of tasks (sched_setattr), groups (cpu.uclamp.min, cpu.uclamp.max) and the system (sysctls).

use super::{ClampId, Clamps, SCHED_CAPACITY_SCALE, UtilClamp, uclamp_none};
use crate::arch::Arch;
use crate::attr::{ClampRequest, SchedAttr};
use crate::core::Sched;
use crate::errno::{Answer, Errno, Refusal};
use crate::sched::*;
use crate::sysctl::Sysctl;
use crate::text::scan_lld;

/// A percentage in hundredths of a percent, as in cpu.uclamp.* (UCLAMP_PERCENT_SHIFT): 100%.
const UCLAMP_PERCENT_SCALE: u32 = 100 * 100;

/// core.c: capacity_from_percent(). Reads `max`, or a percentage, in hundredths of a percent.
fn capacity_from_percent(text: &str) -> Answer<u32> {
    let text = text.trim_ascii();
    if text == "max" {
        return Ok(UCLAMP_PERCENT_SCALE);
    }
    let percent =
        cgroup_parse_float(text, 2).ok_or(Refusal::new(Errno::EINVAL, "a percentage such as 37.5, or `max`"))?;
    match u32::try_from(percent) {
        Ok(percent) if percent <= UCLAMP_PERCENT_SCALE => Ok(percent),
        _ => Err(Refusal::new(Errno::ERANGE, "a percentage from 0 to 100")),
    }
}

/// cgroup.c: cgroup_parse_float(), `sscanf("%lld.%n%lld%n")`. A decimal number times ten to the power of `shift`, rounded. What
/// follows it is ignored.
fn cgroup_parse_float(text: &str, shift: usize) -> Option<i64> {
    let (whole, rest) = scan_lld(text)?;
    let after = rest.strip_prefix('.').unwrap_or_default();
    let (fraction, rest) = scan_lld(after).unwrap_or((0, after));
    if fraction < 0 {
        return None;
    }
    let digits = after.len() - rest.len();
    let fraction = match digits.checked_sub(shift) {
        None | Some(0) => fraction * 10_i64.pow((shift - digits) as u32),
        // So long a fraction is less than half of the last place.
        Some(more) => 10_i64.checked_pow(more as u32).map_or(0, |unit| (fraction + unit / 2) / unit),
    };
    Some(whole.wrapping_mul(10_i64.pow(shift as u32)).wrapping_add(fraction))
}

impl<A: Arch> Sched<A> {
    /// core.c: uclamp_validate(). A request for a clamp turns clamping on.
    #[doc(alias = "syscalls.c")]
    pub(crate) fn uclamp_validate(&mut self, p: TaskId, attr: &SchedAttr) -> Answer {
        if self.kernel.core.uclamp == UtilClamp::Absent {
            return Err(Refusal::new(Errno::E2BIG, "this kernel's struct sched_attr has no clamps"));
        }
        let wanted = ClampId::BOTH.map(|id| match requests(attr)[id as usize] {
            ClampRequest::Keep => Some(self.task_cold[p].uclamp_req[id].value),
            ClampRequest::Reset => None,
            ClampRequest::Set(value) => Some(value),
        });
        if wanted.iter().flatten().any(|&value| value > SCHED_CAPACITY_SCALE) {
            return Err(Refusal::new(Errno::EINVAL, "a clamp is from 0 to 1024"));
        }
        if let [Some(min), Some(max)] = wanted
            && min > max
        {
            return Err(Refusal::new(Errno::EINVAL, "the lower clamp is above the upper one"));
        }
        self.uclamp.sched_uclamp_used = true;
        Ok(())
    }

    /// core.c: __setscheduler_uclamp(), for a task that has its new priority already. Clamps that are not, or no
    /// longer, user-defined become the defaults of its class.
    #[doc(alias = "uclamp_reset")]
    pub(crate) fn __setscheduler_uclamp(&mut self, p: TaskId, attr: &SchedAttr) {
        if self.kernel.core.uclamp == UtilClamp::Absent {
            return;
        }
        let real_time = self.rt_task(&self.task[p]);
        for (id, request) in ClampId::BOTH.into_iter().zip(requests(attr)) {
            let of_class = match id {
                ClampId::Min if real_time => self.uclamp.util_min_rt_default,
                _ => uclamp_none(id),
            };
            let clamp = &mut self.task_cold[p].uclamp_req[id];
            if !attr.asks_for_clamps() && !clamp.user_defined || request == ClampRequest::Reset {
                clamp.set(of_class, false);
            }
            if let ClampRequest::Set(value) = request {
                clamp.set(value, true);
            }
        }
    }

    /// core.c: uclamp_fork() and uclamp_post_fork(). A child takes over its parent's requests, unless the parent resets
    /// its children (reset on fork); the child is counted nowhere yet.
    #[doc(alias = "uclamp_post_fork")]
    pub(in crate::core) fn uclamp_fork(&mut self, p: TaskId, parent: Option<TaskId>, attr: &SchedAttr) {
        if let Some(parent) = parent {
            let anew = self.task_cold[parent].sched_reset_on_fork;
            let of_parent = self.task_cold[parent].uclamp_req;
            self.task_cold[p].uclamp_req = if anew { Clamps::default() } else { of_parent };
        }
        self.uclamp_update_util_min_rt_default(p);
        if attr.asks_for_clamps() {
            self.uclamp.sched_uclamp_used = true;
            self.__setscheduler_uclamp(p, attr);
        }
    }

    /// core.c: uclamp_update_util_min_rt_default(). Real-time tasks request a default of their own.
    fn uclamp_update_util_min_rt_default(&mut self, p: TaskId) {
        let real_time = self.rt_task(&self.task[p]);
        let clamp = &mut self.task_cold[p].uclamp_req[ClampId::Min];
        if self.kernel.core.uclamp != UtilClamp::Absent && real_time && !clamp.user_defined {
            clamp.set(self.uclamp.util_min_rt_default, false);
        }
    }

    // Groups.

    /// core.c: cpu_uclamp_write(), for cpu.uclamp.min and cpu.uclamp.max.
    #[doc(alias = "cpu_uclamp_min_write")]
    #[doc(alias = "cpu_uclamp_max_write")]
    pub(in crate::core) fn cpu_uclamp_write(&mut self, tg: TgId, id: ClampId, text: &str) -> Answer {
        let percent = capacity_from_percent(text)?;
        let util = (percent * SCHED_CAPACITY_SCALE + UCLAMP_PERCENT_SCALE / 2) / UCLAMP_PERCENT_SCALE;
        self.uclamp.sched_uclamp_used = true;
        let clamps = &mut self.tg[tg].clamps;
        clamps.uclamp_req[id].set(util, false);
        clamps.uclamp_pct[id as usize] = percent;
        self.cpu_util_update_eff(tg);
        Ok(())
    }

    /// core.c: cpu_uclamp_print(), for the same files. Shows the value as requested.
    #[doc(alias = "cpu_uclamp_min_show")]
    #[doc(alias = "cpu_uclamp_max_show")]
    pub(in crate::core) fn cpu_uclamp_print(&self, tg: TgId, id: ClampId) -> String {
        let clamps = &self.tg[tg].clamps;
        if clamps.uclamp_req[id].value == SCHED_CAPACITY_SCALE {
            return "max\n".to_string();
        }
        let percent = clamps.uclamp_pct[id as usize];
        format!("{}.{:02}\n", percent / 100, percent % 100)
    }

    /// core.c: cpu_util_update_eff(). Updates the effective clamps of a group and those below it: what each requests,
    /// but no more than its parent has, and never a lower clamp above the upper one.
    pub(crate) fn cpu_util_update_eff(&mut self, tg: TgId) {
        let clamps = &self.tg[tg].clamps;
        let limit = self.tg[tg].parent.map(|parent| self.tg[parent].clamps.uclamp);
        let [min, max] = ClampId::BOTH.map(|id| {
            let request = clamps.uclamp_req[id].value;
            limit.map_or(request, |limit| request.min(limit[id].value))
        });
        let effective = [min.min(max), max];
        if ClampId::BOTH.iter().all(|&id| clamps.uclamp[id].value == effective[id as usize]) {
            return;
        }
        for id in ClampId::BOTH {
            self.tg[tg].clamps.uclamp[id].set(effective[id as usize], false);
        }
        self.uclamp_update_active_tasks(tg);
        for child in 0..self.tg[tg].children.len() {
            self.cpu_util_update_eff(self.tg[tg].children[child]);
        }
    }

    /// core.c: uclamp_update_active_tasks(). The group's queued tasks take on its new clamps at once.
    fn uclamp_update_active_tasks(&mut self, tg: TgId) {
        let members: Vec<TaskId> =
            self.task.iter().filter(|(_, task)| task.alive && task.sched_task_group == tg).map(|(p, _)| p).collect();
        for p in members {
            self.uclamp_update_active(p);
        }
    }

    // The system.

    /// core.c: sysctl_sched_uclamp_handler(). Sets kernel.sched_util_clamp_min and kernel.sched_util_clamp_max, the
    /// most that any task's clamps may be, and kernel.sched_util_clamp_min_rt_default.
    ///
    /// # Errors
    /// EINVAL for a value above 1024, or a limit of the lower clamp above that of the upper one.
    pub fn sysctl_sched_uclamp_handler(&mut self, sysctl: &Sysctl) -> Answer {
        let limits = [sysctl.sched_uclamp_util_min, sysctl.sched_uclamp_util_max];
        let of_rt = sysctl.sched_uclamp_util_min_rt_default;
        if limits[1].max(of_rt) > u64::from(SCHED_CAPACITY_SCALE) {
            return Err(Refusal::new(Errno::EINVAL, "a clamp is from 0 to 1024"));
        }
        if limits[0] > limits[1] {
            return Err(Refusal::new(Errno::EINVAL, "the lower clamp's limit is above the upper one's"));
        }
        if self.kernel.core.uclamp == UtilClamp::Absent {
            return Ok(());
        }
        if ClampId::BOTH.iter().any(|&id| u64::from(self.uclamp.uclamp_default[id].value) != limits[id as usize]) {
            self.uclamp.sched_uclamp_used = true;
            for id in ClampId::BOTH {
                self.uclamp.uclamp_default[id].set(limits[id as usize] as u32, false);
                self.tg[ROOT_TASK_GROUP].clamps.uclamp_req[id].set(limits[id as usize] as u32, false);
            }
            self.cpu_util_update_eff(ROOT_TASK_GROUP);
        }
        if u64::from(self.uclamp.util_min_rt_default) != of_rt {
            self.uclamp.sched_uclamp_used = true;
            self.uclamp.util_min_rt_default = of_rt as u32;
            // uclamp_sync_util_min_rt_default(): queued tasks are counted anew the next time they are enqueued.
            for p in self.task.iter().filter(|(_, task)| task.alive).map(|(p, _)| p).collect::<Vec<_>>() {
                self.uclamp_update_util_min_rt_default(p);
            }
        }
        Ok(())
    }
}

/// The requests for both clamps.
fn requests(attr: &SchedAttr) -> [ClampRequest; 2] {
    [attr.sched_util_min, attr.sched_util_max]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_have_two_decimals() {
        let read = |text: &str| capacity_from_percent(text).map_err(|refusal| refusal.errno);
        assert_eq!(read("max\n"), Ok(10_000));
        assert_eq!(read("50"), Ok(5_000));
        assert_eq!(read(" 37.5 "), Ok(3_750));
        assert_eq!(read("0.1"), Ok(10));
        assert_eq!(read("0.125"), Ok(13), "rounded");
        assert_eq!(read("99.994"), Ok(9_999));
        assert_eq!(read("100.00"), Ok(10_000));
        assert_eq!(read("100.01"), Err(Errno::ERANGE));
        assert_eq!(read("-1"), Err(Errno::ERANGE));
        assert_eq!(read("half"), Err(Errno::EINVAL));
        assert_eq!(read(""), Err(Errno::EINVAL));
        // What sscanf("%lld.%n%lld%n") ignores, and what it takes.
        assert_eq!(
            [read("50%"), read("37abc"), read("12.5.7"), read("8."), read("8.x")],
            [5_000, 3_700, 1_250, 800, 800].map(Ok)
        );
        assert_eq!(read("-0.5"), Ok(50));
        assert_eq!(read("1.-5"), Err(Errno::EINVAL));
        assert_eq!(read(&format!("1.{}", "9".repeat(18))), Ok(200));
        assert_eq!(read(&format!("1.{}1", "0".repeat(30))), Ok(100));
    }
}
