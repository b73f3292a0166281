//! The figures and facts that a machine file may give, and those that it must give.

use super::figure::Dimension;
use crate::topology::MOST_HERTZ;

/// One figure's name, dimension and bounds.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// `section.name`; a name that ends in `_N` stands for `_1`, `_2` ...
    pub name: &'static str,
    pub dimension: Dimension,
    /// The smallest and largest value that is not absurd, in base units.
    pub bounds: (u64, u64),
    pub required: bool,
    /// What it is, and who uses it.
    pub meaning: &'static str,
}

const SECOND: u64 = 1_000_000_000_000;
const TIME: (u64, u64) = (0, SECOND);
/// At least 100 MB/s: then the time that thousands of CPUs wait for each other fits into all sums.
const MEMORY: (u64, u64) = (1, 10_240_000);
const MICROSECOND: u64 = 1_000_000;
/// A period after which hardware looks again. Each look is an event, and a period of zero would never reach the next
/// one.
const PERIOD: (u64, u64) = (10 * MICROSECOND, SECOND);
const CYCLES: (u64, u64) = (0, 1_000_000_000);
const HERTZ: (u64, u64) = (1_000_000, MOST_HERTZ);
const BYTES: (u64, u64) = (1, 1 << 40);
/// In thousandths of cycles.
const PER_INSTRUCTION: (u64, u64) = (10, 100_000);
const SHARE: (u64, u64) = (0, 1_000);

macro_rules! keys {
    ($($name:literal $need:ident $dimension:ident $bounds:expr, $meaning:literal;)+) => {
        /// Every figure outside of the sections of [`WORK`] and the idle states.
        pub const KEYS: &[Key] = &[$(Key {
            name: $name,
            dimension: Dimension::$dimension,
            bounds: $bounds,
            required: keys!(@ $need),
            meaning: $meaning,
        },)+];
    };
    (@ required) => { true };
    (@ optional) => { false };
}

/// The sections with straight-line work of kernel functions, which accept any function's name: kernel/sched, the rest
/// of the kernel, its network stack, its file systems, and the way into and out of idleness.
pub const WORK: &[&str] = &["paths", "os", "net", "fs", "idle_loop"];

keys! {
    "default_path_cycles" required Cycles CYCLES, "straight-line work of a kernel function that [paths] does not list";
    "cycles_per_instruction.paths" optional CyclesPerInstruction PER_INSTRUCTION, "what an instruction of [paths] takes, its lines in the first-level cache";
    "cycles_per_instruction.os" optional CyclesPerInstruction PER_INSTRUCTION, "what an instruction of [os] takes, with the lines that are not charged apart";
    "cycles_per_instruction.net" optional CyclesPerInstruction PER_INSTRUCTION, "what an instruction of [net] takes; its sockets' lines are charged apart";
    "cycles_per_instruction.fs" optional CyclesPerInstruction PER_INSTRUCTION, "what an instruction of [fs] takes, with the lines that are not charged apart";
    "cycles_per_instruction.idle_loop" optional CyclesPerInstruction PER_INSTRUCTION, "what an instruction of [idle_loop] takes";
    "frequency.base" required Frequency HERTZ, "the marked frequency";
    "frequency.min" required Frequency HERTZ, "the lowest that the governor may choose";
    "frequency.max" required Frequency HERTZ, "the highest turbo frequency, with one core active";
    "frequency.turbo_N" optional Frequency HERTZ, "the highest frequency with up to N cores active, for the N that are known";
    "frequency.cap" optional Frequency HERTZ, "what power or temperature allow for long, whatever is asked for";
    "frequency.power_limit" optional Power (1, 10_000_000_000), "what a package may draw, as a moving mean";
    "frequency.power_window" optional Time (1, 10_000 * SECOND), "the time constant of that mean";
    "frequency.power_interval" optional Time (10_000_000, SECOND), "so often a package looks at what it drew; 1 ms where not given, and no more often than its clocks can follow";
    "frequency.step" optional Frequency HERTZ, "distance between two frequencies that can be asked for";
    "frequency.transition_latency" optional Time TIME, "from a request to the new frequency";
    "frequency.hold_off" optional Time TIME, "the least time between two changes of one clock";
    "frequency.declared_latency" optional Time TIME, "what firmware tells governors that a change takes";
    "frequency.turbo_exit_latency" optional Time TIME, "a core whose idle state declares at least this exit latency counts as inactive for turbo";
    "frequency.hwp_window" optional Time PERIOD, "over so long hardware that chooses by itself looks at how busy a CPU was";
    "frequency.hwp_history" optional Time TIME, "how long what it saw counts: the time constant of a moving mean, where it is longer than one window";
    "frequency.hwp_efficient" optional Frequency HERTZ, "where such hardware works most efficiently: it chooses no lower frequency by itself, where not given down to the lowest";
    "frequency.hwp_ramp" optional Time (MICROSECOND, SECOND), "how long such hardware takes from the lowest to the highest frequency, once a core is busier than the target";
    "frequency.hwp_burst" optional Time TIME, "how long a core that was idle takes to the highest frequency if it is busy without a pause; by default as long as history and ramp take";
    "frequency.hwp_burst_still" optional Ratio (1, 999), "the share of that for which the frequency stays where it was";
    "frequency.hwp_target" optional Ratio (1, 1_000), "the share of time for which such hardware lets a CPU be busy, at the preference balance_performance";
    "frequency.fixed" required Frequency HERTZ, "what all CPUs run at while frequency is not simulated";
    "smt.speed" required Ratio (1, 1_000), "speed of a thread that computes beside one that computes, as a share of its speed alone";
    "smt.compute_beside_memory" optional Ratio (1, 1_000), "the same beside one that waits for memory; as smt.speed where not given";
    "smt.memory_beside_compute" optional Ratio (1, 1_000), "speed of a thread that waits for memory, beside one that computes";
    "smt.memory_beside_memory" optional Ratio (1, 1_000), "the same beside another one that waits for memory";
    "smt.threads_N" optional Ratio (1, 1_000), "speed of each of N computing threads of a core, for N above 2; where not given, N threads do what fewer do";
    "cache.line_size" required Size (16, 1_024), "bytes of a cache line";
    "cache.l1d_size" required Size BYTES, "bytes of a core's first-level data cache";
    "cache.l2_size" required Size BYTES, "bytes of a second-level cache";
    "cache.llc_size" required Size BYTES, "bytes of a last level cache";
    "cache.l1_load" required Cycles CYCLES, "from a load to its value, first level";
    "cache.l2_load" required Cycles CYCLES, "from a load to its value, second level";
    "cache.refill_parallel" required Count (1, 1_000), "lines a core fetches at once when it refills its caches";
    "line.llc_hit" required Time TIME, "a clean line found in the own last level cache";
    "line.smt" optional Time TIME, "a modified line, from one thread of a core to another";
    "line.cluster" optional Time TIME, "a modified line, between cores that share a second-level cache or cluster";
    "line.llc" optional Time TIME, "a modified line, between cores that share the last level cache";
    "line.package" optional Time TIME, "a modified line, between last level caches of one package";
    "line.remote_N" optional Time TIME, "a modified line, between packages at the Nth distance";
    "line.read_stall" required Ratio SHARE, "share of a read's way that the core cannot hide";
    "line.slice_spread" optional Ratio SHARE, "how much nearer or farther than the mean a line's cache slice may be, as a share of a transfer within the cache";
    "line.contended" optional Ratio (1_000, 100_000), "how many times as long a way beyond the last level cache takes where others spin for the lock on the line; once where not given";
    "line.disputed_from" optional Count (1, 10_000), "where somebody has waited for a line of everybody's for longer than so many of its ways take, requests for it are answered in the order of simulated time from then on; never where not given";
    "line.window" optional Time TIME, "for so long other loads of a core can begin while one waits for a line: its reorder buffer, in time";
    "line.handoff" optional Ratio (1, 1_000), "share of a line's way that is left once the request for it has waited for others'; where given, those from nearby are served first; all of it, and whoever asks first, where not given";
    "line.write_stall" required Ratio SHARE, "share of a write's way that the core cannot hide";
    "memory.local" required Time TIME, "a line from the own NUMA node's memory";
    "memory.package" optional Time TIME, "a line from the memory of another NUMA node of the package";
    "memory.remote_N" optional Time TIME, "a line from memory at the Nth distance between packages";
    "memory.delivery" optional TimePerBytes MEMORY, "what a node's memory takes to deliver, at its fastest and all CPUs together; no limit where not given";
    "memory.delivery_far" optional TimePerBytes MEMORY, "the same of a node without CPUs; as memory.delivery where not given";
    "memory.delivery_llc" optional TimePerBytes MEMORY, "what leads from memory to a last level cache takes to deliver, for all CPUs of the cache together; no limit of its own where not given";
    "memory.delivery_remote" optional TimePerBytes MEMORY, "what the links from one package to another take to deliver, in one direction; no limit of their own where not given";
    "ipi.send" required Cycles CYCLES, "work of sending an interrupt to another CPU";
    "ipi.delivery" required Time TIME, "from sending to the first instruction on a running CPU of the same package";
    "ipi.delivery_remote" optional Time TIME, "the same, to another package; as ipi.delivery where not given";
    "ipi.receive" required Cycles CYCLES, "entry to and return from an interrupt";
    "idle.halt_poll" optional Time TIME, "the longest that the governor haltpoll polls before it halts (its parameter guest_halt_poll_ns), where it is another than the kernel's 200 us";
    "idle.relax" optional Cycles CYCLES, "a round of the loop in which an idle CPU polls, most of which is cpu_relax(): from v4.19 on the loop looks at the clock after 201 of them; at every moment where not given";
    "copy.user" required TimePerBytes (0, SECOND), "copying between user and kernel memory, both cached";
    "disk.write" optional Time TIME, "a write of the disk, from the command to its end, without its bytes";
    "disk.delivery" optional TimePerBytes (0, SECOND), "what its bytes take, one request's after another's";
    "disk.flush" optional Time TIME, "a flush of its cache of writes; a write past that cache takes as much longer";
    "disk.channels" optional Count (1, 1_024), "writes that it works on at a time";
    "tick.footprint" optional Size (0, 1 << 20), "code and data that a tick's way through the kernel touches, which others push out of a core's cache meanwhile; nothing where not given";
    "tick.fetched_at_once" optional Count (1, 1_000), "lines of it that a core fetches at a time; one where not given";
    "tick.jitter" optional Time (0, 1_000_000_000), "within so long of its time a tick comes, another one on each CPU; exactly then where not given";
    "java.task" optional Cycles (1, 1_000_000_000), "mean work of one of SPECjbb2015's messages";
    "java.issue" optional Cycles CYCLES, "drawing a request and encoding it";
    "java.select" optional Cycles CYCLES, "what a selector takes for a message that has arrived";
    "java.decode" optional Cycles CYCLES, "what decoding it takes";
    "java.scan" optional Cycles CYCLES, "a fork-join worker's look through its pool before it parks";
    "java.message" optional Size (1, 65_536), "bytes of a message between virtual machines";
    "java.allocation" optional Size BYTES, "bytes that one request allocates";
    "java.young" optional Size BYTES, "bytes of a young generation";
    "java.pause" optional Time (0, 100 * SECOND), "what a collection of it stops a virtual machine for";
    "java.passes" optional Size (0, 64_000), "bytes that 1000 cycles of a server's work bring through a core's cache";
    "tick.rate" required Frequency (1, 100_000), "CONFIG_HZ of the kernels that ran on this machine";
}

/// The figures that a cpufreq driver needs beyond those of every machine file.
pub const NEEDED_BY_DRIVERS: &[&str] = &[
    "frequency.step",
    "frequency.transition_latency",
    "frequency.hold_off",
    "frequency.declared_latency",
    "frequency.turbo_exit_latency",
];

/// The figures of a kind of CPU (`[kind.NAME]`).
pub const KIND_KEYS: &[Key] = &[
    Key {
        name: "speed",
        dimension: Dimension::Ratio,
        bounds: (1, 1_000),
        required: false,
        meaning: "what such a CPU does in the time of the fastest, each at its highest frequency",
    },
    Key {
        name: "min",
        dimension: Dimension::Frequency,
        bounds: HERTZ,
        required: false,
        meaning: "its lowest frequency, where that is not the machine's",
    },
    Key { name: "base", dimension: Dimension::Frequency, bounds: HERTZ, required: false, meaning: "its marked one" },
    Key { name: "max", dimension: Dimension::Frequency, bounds: HERTZ, required: false, meaning: "its highest one" },
    Key {
        name: "turbo_N",
        dimension: Dimension::Frequency,
        bounds: HERTZ,
        required: false,
        meaning: "the highest with up to N cores of its kind active, for the N that are known",
    },
    Key {
        name: "highest_perf",
        dimension: Dimension::Count,
        // 255 is what firmware reports if it does not know.
        bounds: (1, 254),
        required: false,
        meaning: "what firmware tells of its highest performance (CPPC)",
    },
];

/// The key of a name in `[kind.NAME]`.
pub fn kind_key_of(name: &str) -> Option<&'static Key> {
    KIND_KEYS.iter().find(|key| is_called(key, name))
}

/// Whether a name in `[kind.NAME]` is that of a frequency.
pub fn is_frequency_of_kind(name: &str) -> bool {
    kind_key_of(name).is_some_and(|key| key.dimension == Dimension::Frequency)
}

/// The figures that a driver needs whose hardware chooses by itself.
pub const NEEDED_BY_HARDWARE: &[&str] = &["frequency.hwp_window", "frequency.hwp_ramp", "frequency.hwp_target"];

/// The figures of an idle state (`[[idle.state]]`), each with whether it must be given.
pub const IDLE_KEYS: &[(&str, bool, &str)] = &[
    ("exit_latency", true, "declared by the driver: what the governor reckons with"),
    ("target_residency", true, "declared by the driver: what the governor reckons with"),
    ("wake", true, "from the wakeup event to the first instruction, as it really is"),
    (
        "package_wake",
        false,
        "what that takes longer where all CPUs of the package are in this state or a deeper one, and the package is too",
    ),
];

/// Facts of an idle state that are words. All are optional.
pub const IDLE_STATE_FACTS: &[(&str, &[&str], &str)] = &[(
    FLUSHES,
    &[OWN_CACHES, "nothing"],
    "what a core loses of its own caches once all its threads are in states that say so; nothing where not given",
)];

/// The fact that says whether a state empties the core's own caches.
pub(super) const FLUSHES: &str = "flushes";
pub(super) const OWN_CACHES: &str = "own-caches";

/// Facts that are words and not numbers: their names and possible values.
pub const FACTS: &[(&str, &[&str], &str)] = &[
    (
        "frequency.control",
        &["core", "cluster", "package", "machine", "hardware"],
        "who shares one frequency, or that hardware chooses by itself (each core its own)",
    ),
    (
        "idle.wake_by",
        &["mwait", "interrupt"],
        "whether a store to the monitored line wakes an idle CPU, or an interrupt must",
    ),
];

/// The vendor of the processors.
pub(super) const MAKE: &str = "processor.make";
/// cpufreq's drivers, and the vendors whose processors each drives: drivers/cpufreq/Kconfig.x86 and Kconfig.arm.
const DRIVERS: &[(&str, &[&str])] = &[
    ("acpi-cpufreq", &["intel", "amd"]),
    ("intel_pstate", &["intel"]),
    ("intel_cpufreq", &["intel"]),
    ("amd-pstate", &["amd"]),
    ("amd-pstate-epp", &["amd"]),
    ("cppc_cpufreq", &["arm"]),
    ("scmi", &["arm"]),
    ("cpufreq-dt", &["arm"]),
];

/// The vendors whose processors a cpufreq driver drives; empty for an unknown name.
pub fn vendors_of_driver(name: &str) -> &'static [&'static str] {
    DRIVERS.iter().find(|(driver, _)| *driver == name).map_or(&[], |(_, vendors)| vendors)
}

/// What governs the frequencies.
pub(super) const GOVERNED_BY: &str = "frequency.governed_by";
pub(super) const HOST: &str = "host";

/// AMD's processors from Zen 1 on.
pub(super) const AMD_ZEN: &str = "amd-zen";
/// amd.c: init_amd_zen_common().
pub(super) const ZEN_RECLAIM_DISTANCE: u32 = 32;

/// Optional facts.
pub const OPTIONAL_FACTS: &[(&str, &[&str], &str)] = &[
    (
        "frequency.driver",
        &[
            "acpi-cpufreq",
            "intel_pstate",
            "intel_cpufreq",
            "amd-pstate",
            "amd-pstate-epp",
            "cppc_cpufreq",
            "scmi",
            "cpufreq-dt",
        ],
        "cpufreq's driver on this machine: with it frequencies are simulated, without it all CPUs run at `fixed`",
    ),
    (
        GOVERNED_BY,
        &["kernel", HOST],
        "whose business frequencies are: the kernel's, as they are where nothing is said, or those of a host, of whose clocks this guest sees nothing, so that no driver of cpufreq finds any",
    ),
    (
        "frequency.governor",
        &["performance", "powersave", "userspace", "ondemand", "conservative", "schedutil"],
        "the governor that this machine boots with, where it is another than its kernel's default",
    ),
    (
        "frequency.fast_switch",
        &["yes", "no"],
        "whether firmware lets amd-pstate, cppc_cpufreq or scmi switch in the middle of the scheduler, as they do where nothing is said; otherwise schedutil's threads ask them",
    ),
    (
        "frequency.full_speed",
        &["four-cores", "halfway", "highest"],
        "what load tracking takes for full speed, where it is not what the driver's vendor has",
    ),
    (
        "idle.governor",
        &["ladder", "menu", "teo", "haltpoll"],
        "the governor of idle states that this machine's driver or its boot brings, where it is another than its kernel's default",
    ),
    (
        "idle.package_scope",
        &["package", "machine"],
        "whether a package enters its own idle state by itself, as it does where nothing is said, or only with all others",
    ),
    (
        MAKE,
        &["intel", AMD_ZEN, "amd", "arm", "ibm", "oracle", "other"],
        "what Linux knows of the processor by CPUID and the like (arm: by whomever it is built): drivers of others' are refused, and from v5.4 on nodes up to 32 apart are near on AMD's Zen, elsewhere up to 30",
    ),
    (
        "disk.write_cache",
        &["safe", "force-unit-access", "flush-only"],
        "what makes a write durable: nothing more; a write past the disk's cache; or a flush behind it",
    ),
    (
        "disk.interrupts",
        &["submitter", "one-cpu"],
        "which CPU hears that a request is done: the one that submitted it, or always the same",
    ),
];

/// The key of a name such as `line.remote_2`.
pub fn key_of(name: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| is_called(key, name))
}

fn is_called(key: &Key, name: &str) -> bool {
    match key.name.strip_suffix('N') {
        None => key.name == name,
        Some(stem) => name
            .strip_prefix(stem)
            .and_then(|number| Some((number, number.parse::<u8>().ok()?)))
            .is_some_and(|(text, number)| number > 0 && !text.starts_with(['0', '+'])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbered_names_find_their_key() {
        assert_eq!(key_of("line.remote_2").map(|key| key.name), Some("line.remote_N"));
        assert_eq!(key_of("line.llc").map(|key| key.name), Some("line.llc"));
        for name in
            ["line.remote_0", "line.remote_", "line.remote_01", "line.remote_256", "line.remote_N", "line.remote_+1"]
        {
            assert!(key_of(name).is_none(), "{name}");
        }
    }
}
