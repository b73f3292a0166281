//! The names of what is on a cache line, for people.

use super::*;

/// Names of the lines of each object, in the order of their enums, and the fields on them.
const RQ: [(&str, &str); NR_RQ_LINES] = [
    ("Lock", "lock"),
    ("Load", "load, nr_switches, nohz_flags"),
    ("Cfs", "cfs.load, cfs.nr_running, cfs.min_vruntime"),
    ("CfsTimeline", "cfs.tasks_timeline, cfs.curr"),
    ("CfsAvg", "cfs.avg"),
    ("CfsContrib", "cfs.tg_load_avg_contrib, cfs.h_load"),
    ("Curr", "curr, idle, next_balance"),
    ("Clock", "clock, clock_task, nr_iowait"),
    ("Balance", "active_balance, cfs_tasks"),
    ("Stats", "rq_sched_info"),
    ("WakeList", "wake_list, idle_state"),
    ("AvgRt", "avg_rt"),
    ("AvgDl", "avg_dl"),
    ("AvgIrq", "avg_irq"),
    ("Uclamp", "uclamp"),
    ("Capacity", "rd, sd, cpu_capacity"),
    ("CfsRemoved", "cfs.removed"),
    ("Idle", "idle_stamp, avg_idle"),
    ("NrRunning", "nr_running, cpu_load"),
    // Left out.
    ("Pending", ""),
    ("Counts", "sched_count, ttwu_count"),
];
const TASK: [(&str, &str); NR_TASK_LINES] = [
    ("State", "state, on_cpu"),
    ("Se", "se.load, se.run_node, se.on_rq"),
    ("SeTimes", "se.exec_start, se.vruntime"),
    ("SeStatistics2", "statistics"),
    ("SeStatistics3", "statistics"),
    ("SeStatistics4", "statistics"),
    ("SeLinks", "se.parent, se.cfs_rq"),
    ("SeAvg", "se.avg"),
    ("SchedInfo", "cpus_allowed, sched_info"),
    ("PiLock", "pi_lock"),
    ("Switches", "nvcsw, nivcsw"),
    ("ThreadInfo", "thread_info.flags"),
    ("SeStatistics5", "statistics"),
    ("OnRq", "on_rq"),
    ("Wakees", "wakee_flips, last_wakee"),
];
const CFS_RQ: [(&str, &str); NR_CFS_RQ_LINES] = [
    ("Load", "load, nr_running, min_vruntime"),
    ("Timeline", "tasks_timeline, curr"),
    ("Avg", "avg"),
    ("Contrib", "tg_load_avg_contrib, h_load"),
    ("Removed", "removed"),
];
const SE: [(&str, &str); NR_SE_LINES] = [
    ("Load", "load, run_node, on_rq"),
    ("Times", "exec_start, vruntime"),
    ("Statistics", "statistics"),
    ("Avg", "avg"),
    ("Links", "parent, cfs_rq, my_q"),
];
const GLOBAL: [(&str, &str); NR_GLOBAL_LINES as usize] = [
    ("nohz.mask", "nohz.idle_cpus_mask"),
    ("nohz.balance", "nohz.nr_cpus, nohz.next_balance"),
    ("root_domain", "overload, span"),
    ("jiffies", "jiffies"),
    ("cpupri", "cpupri"),
    ("jiffies_lock", "jiffies_lock, last_jiffies_update"),
    ("timekeeper", "tk_core.seq, tk_core.timekeeper.tkr_mono"),
    ("timekeeper.offs", "tk_core.timekeeper: clock_was_set_seq, offs_real"),
    ("rcu_state", "rcu_state: gpnum, completed"),
];
const CACHE: [(&str, &str); NR_CACHE_LINES as usize] = [
    ("Epoch", "rq: cpu_epoch_lock, cpu_runtime, cpu_epoch"),
    ("Time", "sched_cache_time"),
    ("Counts", "sched_domain: llc_counts"),
    ("Group", "sched_cache_group: epoch, cpu, nr_running_avg"),
];
/// The lines of a domain's memory.
const DOMAIN: [&str; DOMAIN_LINES as usize] = [
    "sched_domain: span, groups, flags",
    "sched_domain: last_balance, balance_interval",
    "sched_domain: lb_count",
    "sched_domain",
    "sched_domain",
    "sched_domain: lb_count, ttwu_move_affine",
    "sched_domain_shared: nr_busy_cpus, has_idle_cores",
    "sched_group_capacity: capacity, nr_busy_cpus",
];

/// An object to which a line belongs in part.
pub struct Part {
    /// The kind of object, and which one.
    object: &'static str,
    pub number: u32,
    /// The line's short name, and the fields on it.
    name: &'static str,
    pub fields: String,
}

impl Layout {
    /// A description of a line, for people: `cpu3 rq.Lock`, `task 5 SeAvg`. Lines of `os` go by number.
    pub fn describe(&self, line: Line) -> String {
        let part = self.parts(line).swap_remove(0);
        let Part { object, number, name, .. } = part;
        match line.region {
            _ if line == self.idle_thread_info(CpuId(number as u16)) && object == "cpu" => {
                format!("cpu{number} idle flags")
            }
            Region::Rq => format!("cpu{number} rq.{name}"),
            Region::Global if object == "cpu" => format!("cpu{number} rq.{name}"),
            Region::Global if number == 0 => name.to_string(),
            Region::TaskGroup => format!("task_group {number} {}", part.fields),
            Region::Domain => format!("domain {number} line {}", line.index % DOMAIN_LINES),
            Region::Os | Region::Statistics | Region::Global => format!("{object} {number}"),
            Region::SchedCache if object == "cpu" => format!("cpu{number} cache.{name}"),
            Region::Task | Region::CfsRq | Region::Se | Region::SchedCache => format!("{object} {number} {name}"),
        }
    }

    /// The objects that a line touches, and their fields on it: `cpu3 rq: lock, nr_running, cpu_load`. Several where
    /// packed objects meet.
    pub fn contents(&self, line: Line) -> String {
        let told = |part: Part| {
            let Part { object, number, fields, .. } = part;
            match line.region {
                _ if object == "cpu" => format!("cpu{number} {fields}"),
                Region::Global => fields,
                Region::Os => format!("os line {number}"),
                _ => format!("{object} {number}: {fields}"),
            }
        };
        self.parts(line).into_iter().map(told).collect::<Vec<_>>().join("; ")
    }

    /// The parts of objects that lie on a line; at least one.
    pub fn parts(&self, line: Line) -> Vec<Part> {
        let index = line.index;
        let named = |object, lines: u32, at: &[u8], names: &[(&'static str, &'static str)]| {
            let (number, here) = (index / lines, index % lines);
            vec![part(object, number, at.iter().map(|&of| u32::from(of)).zip(names).filter(|&(of, _)| of == here))]
        };
        match line.region {
            Region::Rq => self.parts_of_rqs(index),
            Region::Task => named("task", TASK_LINES, &self.of.task, &TASK),
            Region::CfsRq => named("cfs_rq", self.of.cfs_rq_lines, &self.of.cfs_rq, &CFS_RQ),
            Region::Se => {
                let mut parts = named("se", self.of.se_lines, &self.of.se, &SE);
                let part = &mut parts[0];
                if part.name.is_empty() {
                    // Statistics are on several lines, only one of which has a name.
                    let (name, fields) = SE[SeLine::Statistics as usize];
                    (part.name, part.fields) = (name, fields.to_string());
                }
                parts
            }
            Region::Domain => {
                let fields = DOMAIN[(index % DOMAIN_LINES) as usize].to_string();
                vec![Part { object: "domain", number: index / DOMAIN_LINES, name: "", fields }]
            }
            Region::TaskGroup => {
                let groups = self.task_group.on_line(index).into_iter();
                groups
                    .map(|(tg, f)| Part { object: "task_group", number: tg.0, name: "", fields: f.join(", ") })
                    .collect()
            }
            Region::Global => vec![global_part(index)],
            Region::Os => vec![Part { object: "os line", number: index, name: "", fields: String::new() }],
            Region::SchedCache => {
                let (name, fields) = CACHE[(index % NR_CACHE_LINES) as usize];
                let object = if name == "Group" { "process" } else { "cpu" };
                vec![Part { object, number: index / NR_CACHE_LINES, name, fields: fields.to_string() }]
            }
            Region::Statistics => {
                let fields = if index == 0 { "latency_lock" } else { "psi_group_cpu" };
                vec![Part { object: "statistics line", number: index, name: "", fields: fields.to_string() }]
            }
        }
    }

    /// The CPUs whose `struct rq` touches a line.
    fn parts_of_rqs(&self, index: u32) -> Vec<Part> {
        let (region, first, lines) = self.idle_flags;
        if region == Region::Rq && index % lines == first {
            return vec![Part {
                object: "cpu",
                number: index / lines,
                name: "",
                fields: "idle: thread_info.flags".to_string(),
            }];
        }
        let (from, end) = (index * LINE_BYTES / self.rq_bytes, ((index + 1) * LINE_BYTES).div_ceil(self.rq_bytes));
        let of_cpu = |cpu: u32| {
            let line = |&offset: &u16| (cpu * self.rq_bytes + u32::from(offset)) / LINE_BYTES;
            let here = part("cpu", cpu, self.rq.iter().map(line).zip(&RQ).filter(|&(of, _)| of == index));
            (!here.fields.is_empty()).then(|| Part { fields: format!("rq: {}", here.fields), ..here })
        };
        (from..end).filter_map(of_cpu).collect()
    }
}

/// Merges the names of an object's parts: the short name of the first, the fields of all.
fn part<'a>(
    object: &'static str,
    number: u32,
    here: impl Iterator<Item = (u32, &'a (&'static str, &'static str))>,
) -> Part {
    let mut fields: Vec<&str> = Vec::new();
    let mut first = "";
    for (_, &(name, of_line)) in here {
        if first.is_empty() {
            first = name;
        }
        if !of_line.is_empty() && !fields.contains(&of_line) {
            fields.push(of_line);
        }
    }
    Part { object, number, name: first, fields: fields.join(", ") }
}

fn global_part(index: u32) -> Part {
    let own =
        |object, number, name: &'static str, fields: &str| Part { object, number, name, fields: fields.to_string() };
    match index {
        FIRST_ROOT_DOMAIN.. => own("root_domain", index - FIRST_ROOT_DOMAIN + 1, "", "root_domain: overload, span"),
        FIRST_IDLE_FLAGS.. => own("cpu", index - FIRST_IDLE_FLAGS, "", "idle: thread_info.flags"),
        FIRST_CLASS_QUEUE.. => {
            let of_class = index - FIRST_CLASS_QUEUE;
            let (name, fields) = [
                ("rt", "rq: rt.highest_prio, rt.rt_nr_running, rt.overloaded"),
                ("dl", "rq: dl.earliest_dl, dl.dl_nr_running, dl.overloaded"),
            ][(of_class % 2) as usize];
            own("cpu", of_class / 2, name, fields)
        }
        at if at == BALANCE_RUNNING.index => own("", 0, "balancing", "balancing (sched_balance_running)"),
        FIRST_RCU_LEAF.. => own("rcu_node", index - FIRST_RCU_LEAF, "", "rcu_node: lock, qsmask, gpnum"),
        _ => own("", 0, GLOBAL[index as usize].0, GLOBAL[index as usize].1),
    }
}
