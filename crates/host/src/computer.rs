//! Identifies this computer, and measures how busy it is.

use crate::cgroup::folders;
use crate::statistics::median;
use crate::{Error, pinning};
use rustix::time::{ClockId, clock_getres};
use std::fs;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// What distinguishes this computer from others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Computer {
    /// As /proc/cpuinfo calls it.
    pub cpu_model: String,
    /// `6.1.0-13-amd64 #1 SMP ...`.
    pub kernel: String,
    /// Numbers of the CPUs that this process may use.
    pub allowed: Vec<usize>,
    /// CPUs that are online.
    pub online: usize,
    /// Whether a hypervisor stands between us and the hardware.
    pub virtual_machine: bool,
    /// CONFIG_HZ.
    pub tick_hertz: Option<u64>,
    /// The kernel's preemption model, if it can be determined: `none`, `voluntary` or `full`.
    pub preempt: Option<&'static str>,
    /// Scheduler options on the kernel's command line that kernel.org's kernels do not know.
    pub foreign_options: Vec<String>,
    /// `driver/governor` of cpuidle.
    pub idle: Option<String>,
    /// How long the governor haltpoll may poll, in nanoseconds, if it is in use.
    pub halt_poll_ns: Option<u64>,
    /// Idle states, the shallowest first, as the driver declares them.
    pub idle_states: Vec<IdleState>,
    /// What cpufreq shows for the first CPU we may use: the lowest and highest frequency in kHz, and its governor.
    pub frequency: Option<(u64, u64, String)>,
    /// The CPU time that a cgroup's quota allows this process, in thousandths of one CPU.
    pub quota: Option<u64>,
}

/// An idle state as cpuidle declares it: name, exit latency and target residency in microseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdleState {
    pub name: String,
    pub latency_us: u64,
    pub residency_us: u64,
}

impl Computer {
    /// Examines this computer.
    ///
    /// # Errors
    /// A system that does not say which CPUs may be used.
    pub fn this() -> Result<Computer, Error> {
        let allowed = pinning::allowed()?;
        let info = read("/proc/cpuinfo").unwrap_or_default();
        let uname = rustix::system::uname();
        let words = |text: &std::ffi::CStr| text.to_string_lossy().into_owned();
        let first = allowed.first().copied().unwrap_or(0);
        let idle = cpuidle();
        Ok(Computer {
            cpu_model: cpu_model(&info).unwrap_or_else(|| words(uname.machine())),
            kernel: format!("{} {}", words(uname.release()), words(uname.version())),
            online: info.lines().filter(|line| line.starts_with("processor")).count().max(allowed.len()),
            virtual_machine: virtual_machine(&info, &read),
            tick_hertz: tick_hertz(clock_getres(ClockId::MonotonicCoarse).tv_nsec),
            preempt: preempt(&read("/sys/kernel/debug/sched/preempt").unwrap_or_default(), &words(uname.version())),
            foreign_options: foreign_options(&read("/proc/cmdline").unwrap_or_default()),
            halt_poll_ns: idle
                .as_deref()
                .filter(|idle| idle.ends_with("/haltpoll"))
                .and_then(|_| number("/sys/module/haltpoll/parameters/guest_halt_poll_ns")),
            idle,
            idle_states: idle_states(first),
            frequency: cpufreq(first),
            quota: quota(&folders(&read("/proc/self/cgroup").unwrap_or_default(), None, "/sys/fs/cgroup")),
            allowed,
        })
    }

    /// The reason why this kernel may place tasks like no simulated kernel, if there is one.
    pub fn own_scheduler(&self) -> Option<String> {
        let options = self.foreign_options.join(" ");
        (!options.is_empty()).then(|| {
            format!("the kernel was booted with {options}, which kernel.org's do not know: it may place tasks by rules of its own, which are not simulated")
        })
    }

    /// The kernel's release alone, such as `6.1.0-13-amd64`.
    pub fn release(&self) -> &str {
        self.kernel.split_whitespace().next().unwrap_or("")
    }
}

fn read(path: &str) -> Option<String> {
    fs::read_to_string(path).ok()
}

fn word(path: &str) -> Option<String> {
    read(path).map(|text| text.trim().to_string()).filter(|text| !text.is_empty())
}

fn number(path: &str) -> Option<u64> {
    word(path)?.parse().ok()
}

fn cpu_model(info: &str) -> Option<String> {
    let named = |key: &str| {
        let mut lines = info.lines().filter_map(|line| line.split_once(':'));
        lines.find(|(name, _)| name.trim() == key).map(|(_, value)| value.trim().to_string())
    };
    let model = named("model name").or_else(|| named("cpu")).or_else(|| named("Model"))?;
    // Virtual machines hide the model's name, but not its numbers.
    match (named("cpu family"), named("model"), named("stepping")) {
        (Some(family), Some(number), Some(stepping)) => {
            Some(format!("{model} (family {family}, model {number}, stepping {stepping})"))
        }
        _ => Some(model),
    }
}

/// How firmware names a hypervisor's computers (`sys_vendor` or `product_name` of DMI), from systemd's table.
const HYPERVISORS: [&str; 18] = [
    "Alibaba Cloud ECS",
    "Amazon EC2",
    "Apple Virtualization",
    "Bochs",
    "BHYVE",
    "DigitalOcean",
    "Google Compute Engine",
    "KVM",
    "KubeVirt",
    "OpenStack",
    "Parallels",
    "QEMU",
    "VMW",
    "VMware",
    "Virtual Machine",
    "VirtualBox",
    "Xen",
    "innotek GmbH",
];

/// x86 has a CPU flag; elsewhere firmware or a device tree tells.
fn virtual_machine(info: &str, read: &dyn Fn(&str) -> Option<String>) -> bool {
    let firmware =
        ["sys_vendor", "product_name"].map(|file| read(&format!("/sys/class/dmi/id/{file}")).unwrap_or_default());
    // The same vendor rents out whole computers as well.
    let whole = firmware[1].trim().ends_with(".metal");
    let named = firmware.iter().any(|name| HYPERVISORS.iter().any(|known| name.starts_with(known)));
    info.lines().any(|line| line.starts_with("flags") && line.contains(" hypervisor"))
        || read("/sys/hypervisor/type").is_some()
        || read("/proc/device-tree/hypervisor/compatible").is_some()
        || named && !whole
}

/// The coarse clocks advance once a tick, so their resolution is the length of a tick.
fn tick_hertz(nanoseconds: i64) -> Option<u64> {
    (nanoseconds > 0).then(|| (1e9 / nanoseconds as f64).round() as u64)
}

/// The scheduler options of kernel.org's kernels with these prefixes: v6.1's whole kernel/sched was searched for
/// `early_param` and `__setup`; `sched_debug` is older kernels' name of `sched_verbose`, and `sched_proxy_exec` came
/// later.
const SCHEDULER_OPTIONS: [&str; 5] =
    ["sched_debug", "sched_proxy_exec", "sched_thermal_decay_shift", "sched_verbose", "schedstats"];

/// Words of a kernel's command line that look like a scheduler option but are not kernel.org's: such a kernel has
/// changes of its own.
fn foreign_options(command_line: &str) -> Vec<String> {
    // Words after it are for init.
    let words = command_line.split_whitespace().take_while(|&word| word != "--");
    let name = |word: &str| word.split('=').next().unwrap_or_default().replace('-', "_");
    let foreign = |word: &&str| name(word).starts_with("sched") && !SCHEDULER_OPTIONS.contains(&name(word).as_str());
    words.filter(foreign).map(str::to_string).collect()
}

/// From debugfs (`none (voluntary) full`, for root), else from the kernel's version.
fn preempt(debugfs: &str, version: &str) -> Option<&'static str> {
    let chosen =
        ["none", "voluntary", "full", "lazy"].into_iter().find(|model| debugfs.contains(&format!("({model})")));
    // The version of a dynamic kernel does not say which model it was booted with.
    chosen.or_else(|| version.split_whitespace().any(|word| word == "PREEMPT").then_some("full"))
}

fn cpuidle() -> Option<String> {
    let folder = "/sys/devices/system/cpu/cpuidle";
    let driver = word(&format!("{folder}/current_driver"))?;
    let governor = word(&format!("{folder}/current_governor"))
        .or_else(|| word(&format!("{folder}/current_governor_ro")))
        .unwrap_or_else(|| "unknown".to_string());
    (driver != "none").then(|| format!("{driver}/{governor}"))
}

fn idle_states(cpu: usize) -> Vec<IdleState> {
    let state = |index: usize| {
        let folder = format!("/sys/devices/system/cpu/cpu{cpu}/cpuidle/state{index}");
        Some(IdleState {
            name: word(&format!("{folder}/name"))?,
            latency_us: number(&format!("{folder}/latency"))?,
            residency_us: number(&format!("{folder}/residency")).unwrap_or(0),
        })
    };
    (0..32).map_while(state).collect()
}

fn cpufreq(cpu: usize) -> Option<(u64, u64, String)> {
    let folder = format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq");
    Some((
        number(&format!("{folder}/cpuinfo_min_freq"))?,
        number(&format!("{folder}/cpuinfo_max_freq"))?,
        word(&format!("{folder}/scaling_governor"))?,
    ))
}

/// The tightest `cpu.max` in these folders.
fn quota(folders: &[String]) -> Option<u64> {
    folders.iter().filter_map(|folder| quota_of(&read(&format!("{folder}/cpu.max"))?)).min()
}

fn quota_of(text: &str) -> Option<u64> {
    let (quota, period) = text.trim().split_once(' ')?;
    let (quota, period): (u64, u64) = (quota.parse().ok()?, period.parse().ok()?);
    (period > 0).then(|| quota * 1_000 / period)
}

/// Seconds since 1970, to record when something was measured.
pub fn now_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// A moment in UTC as `2026-01-31 13:05`.
pub fn utc(seconds: u64) -> String {
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    // Gregorian calendar: years counted from March, so that the leap day ends one. Howard Hinnant's "chrono-compatible
    // low-level date algorithms".
    let shifted = days + 719_468;
    let era = shifted / 146_097;
    let day_of_era = shifted % 146_097;
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02} {:02}:{:02}", rest / 3_600, rest % 3_600 / 60)
}

/// CPU time since boot, summed over some CPUs, in ticks of USER_HZ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct CpuTimes {
    pub idle: u64,
    pub busy: u64,
    /// Time that the hypervisor gave to others.
    pub steal: u64,
}

impl CpuTimes {
    /// The times of these CPUs.
    pub fn now(cpus: &[usize]) -> Option<CpuTimes> {
        times(&read("/proc/stat")?, cpus)
    }

    pub fn since(self, before: CpuTimes) -> CpuTimes {
        CpuTimes {
            idle: self.idle.saturating_sub(before.idle),
            busy: self.busy.saturating_sub(before.busy),
            steal: self.steal.saturating_sub(before.steal),
        }
    }

    fn all(self) -> u64 {
        self.idle + self.busy + self.steal
    }

    /// The share of the time, in thousandths, in which a CPU was neither idle nor taken by the hypervisor; 0 if no time
    /// passed.
    pub fn busy_permille(self) -> u64 {
        (self.busy + self.steal) * 1_000 / self.all().max(1)
    }

    pub fn steal_permille(self) -> u64 {
        self.steal * 1_000 / self.all().max(1)
    }
}

fn times(stat: &str, cpus: &[usize]) -> Option<CpuTimes> {
    let mut sum = CpuTimes::default();
    for line in stat.lines() {
        let mut words = line.split_whitespace();
        let cpu = words.next()?.strip_prefix("cpu").and_then(|number| number.parse().ok());
        if !cpu.is_some_and(|cpu: usize| cpus.contains(&cpu)) {
            continue;
        }
        let values: Vec<u64> = words.map_while(|word| word.parse().ok()).collect();
        // user nice system idle iowait irq softirq steal; guest time is within user's.
        let at = |index: usize| values.get(index).copied().unwrap_or(0);
        sum.idle += at(3) + at(4);
        sum.busy += at(0) + at(1) + at(2) + at(5) + at(6);
        sum.steal += at(7);
    }
    (sum.all() > 0).then_some(sum)
}

/// How much of these CPUs others use now, in thousandths: the median of three samples of 100 ms during which we sleep.
pub fn others_busy_permille(cpus: &[usize]) -> Option<u64> {
    let looks: Vec<f64> = (0..3)
        .filter_map(|_| {
            let before = CpuTimes::now(cpus)?;
            thread::sleep(Duration::from_millis(100));
            Some(CpuTimes::now(cpus)?.since(before).busy_permille() as f64)
        })
        .collect();
    median(&looks).map(|permille| permille as u64)
}

/// Waits until others use at most `permille` of these CPUs, but no longer than `patience`. Returns their use at the
/// end.
pub fn wait_for_quiet(cpus: &[usize], permille: u64, patience: Duration) -> Option<u64> {
    let since = Instant::now();
    loop {
        let busy = others_busy_permille(cpus)?;
        if busy <= permille || since.elapsed() >= patience {
            return Some(busy);
        }
        thread::sleep(Duration::from_millis(200));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_times_are_read_by_cpu() {
        let stat = "cpu  10 0 10 80 0 0 0 0 0 0\ncpu0 1 1 1 5 1 0 1 10 0 0\ncpu1 9 0 9 75 0 0 0 0 0 0\nintr 5\n";
        let times = |cpus: &[usize]| times(stat, cpus).unwrap();
        assert_eq!(times(&[0]), CpuTimes { idle: 6, busy: 4, steal: 10 });
        assert_eq!(times(&[0, 1]), CpuTimes { idle: 81, busy: 22, steal: 10 });
        assert_eq!(times(&[0]).busy_permille(), 700);
        assert_eq!(times(&[0]).steal_permille(), 500);
        assert_eq!(super::times(stat, &[7]), None);
        assert_eq!(super::times("", &[0]), None);
    }

    #[test]
    fn a_cpu_has_a_name_and_numbers() {
        let info =
            "processor\t: 0\nvendor_id\t: X\ncpu family\t: 6\nmodel\t\t: 63\nmodel name\t: Some CPU\nstepping\t: 2\n";
        assert_eq!(cpu_model(info).unwrap(), "Some CPU (family 6, model 63, stepping 2)");
        assert_eq!(cpu_model("cpu\t: POWER9\n").unwrap(), "POWER9");
        assert_eq!(cpu_model("processor : 0\n"), None);
    }

    #[test]
    fn a_virtual_machine_is_told_by_its_flag_or_by_its_firmware() {
        let told = |info: &str, files: &[(&str, &str)]| {
            virtual_machine(info, &|path| {
                files.iter().find(|file| path.ends_with(file.0)).map(|file| file.1.to_string())
            })
        };
        assert!(told("flags\t\t: fpu hypervisor lahf_lm\n", &[]));
        assert!(told("", &[("/sys/hypervisor/type", "xen\n")]));
        let arm = "processor\t: 0\nFeatures\t: fp asimd\n";
        assert!(told(arm, &[("id/sys_vendor", "QEMU\n"), ("id/product_name", "KVM Virtual Machine\n")]));
        assert!(told(arm, &[("id/sys_vendor", "Microsoft Corporation\n"), ("id/product_name", "Virtual Machine\n")]));
        assert!(told(arm, &[("device-tree/hypervisor/compatible", "linux,kvm\0")]));
        assert!(told(arm, &[("id/sys_vendor", "Amazon EC2\n"), ("id/product_name", "m7g.large\n")]));
        assert!(!told(arm, &[("id/sys_vendor", "Amazon EC2\n"), ("id/product_name", "m7g.metal\n")]));
        assert!(!told(arm, &[("id/sys_vendor", "Microsoft Corporation\n"), ("id/product_name", "Surface\n")]));
        assert!(!told(arm, &[]));
    }

    #[test]
    fn ticks_and_quotas() {
        assert_eq!(tick_hertz(4_000_000), Some(250));
        assert_eq!(tick_hertz(3_333_333), Some(300));
        assert_eq!(tick_hertz(0), None);
        assert_eq!(quota_of("50000 100000\n"), Some(500));
        assert_eq!(quota_of("max 100000\n"), None);
        assert_eq!(quota_of(""), None);
    }

    #[test]
    fn a_preemption_model_is_told_where_it_can_be() {
        assert_eq!(preempt("none (voluntary) full\n", ""), Some("voluntary"));
        assert_eq!(preempt("full (lazy)\n", ""), Some("lazy"));
        assert_eq!(preempt("", "#1 SMP PREEMPT Debian"), Some("full"));
        assert_eq!(preempt("", "#1 SMP PREEMPT_DYNAMIC @0"), None);
    }

    #[test]
    fn a_kernel_with_a_scheduler_of_its_own_is_told_by_its_options() {
        let found =
            foreign_options("quiet sched_pack=15 schedstats=enable sched-verbose isolcpus=3 sched_x -- sched_init=1\n");
        assert_eq!(found, ["sched_pack=15", "sched_x"]);
        assert_eq!(foreign_options(""), Vec::<String>::new());
    }

    #[test]
    fn moments_are_dates() {
        assert_eq!(utc(0), "1970-01-01 00:00");
        assert_eq!(utc(951_782_400), "2000-02-29 00:00");
        assert_eq!(utc(1_767_225_599), "2025-12-31 23:59");
    }

    #[test]
    fn this_computer_says_what_it_is() {
        let computer = Computer::this().unwrap();
        assert!(!computer.allowed.is_empty() && computer.online >= computer.allowed.len());
        assert!(!computer.cpu_model.is_empty() && !computer.release().is_empty());
        assert!(computer.tick_hertz.is_some_and(|hertz| (24..=10_000).contains(&hertz)));
    }
}
