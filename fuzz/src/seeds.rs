//! Valid texts that cases are made from, and the words that mean something to each reader.

use lab::experiment::{Draft, Purpose};
use lab::machines::{Files, Machine};
use lab::measured::{Host, MeasuredOutcome, MeasuredRecord};
use lab::mistake::Unreadable;
use lab::record::{Ending, Outcome, Record};
use std::sync::OnceLock;

const EXAMPLE: &str = "\
name = \"example\"
about = \"all that may stand in an experiment\"
machine = \"core-i7-3770\"
iterations = 3
seed = 7
hz = 250
costs = true
time_limit_ms = 1000
report = { vintage = \"now\", stars = \"significant\" }

[[workload]]
name = \"hackbench-pipes\"
title = \"pipes\"
groups = [1, 4]
loops = 5
threads = true

[[workload]]
name = \"rt-app\"
file = \"app.json\"

[[workload]]
name = \"script\"
tasks = \"\"\"
task a: 3 x (run 1ms; sleep 2ms)
\"\"\"

[[arm]]
name = \"old\"
kernel = \"v4.5-rc1\"
behaviour = { \"stats.schedstats\" = \"tunable\" }
cmdline = \"schedstats=enable\"
sysctl = { kernel.sched_migration_cost_ns = 500000 }
features = [\"NO_TTWU_QUEUE\"]

[[arm]]
name = \"new\"
kernel = \"v4.16\"
hz = 1000
";

const CASE: &str = "\
machine = \"pack:1 l3:1 core:8 pu:1\"
recording = \"numbers.txt\"
iterations = 9
[[workload]]
name = \"script\"
file = \"pair.txt\"
[[arm]]
name = \"real\"
kernel = \"v6.1\"
[[figure]]
of = \"pt-*\"
figure = \"migrations_in_wakeup\"
over = \"sum\"
within = 2
";

const SCRIPT_TEXT: &str = "\
# Two that hand a byte to and fro, and some that compute.
task hog nice=5 cpus=0 count=3: until 100ms; spin 200ms
task a at=2ms group=/x/y: 10 x (run 1ms; write there; read back; yield)
task b: 10 x (read there; 2 x (run 10us; every 3ms); write back); sleep 1s
";

/// A computer with two cores of two threads and one CPU that is off, as lines of a path below `sys/devices/system` and
/// its content.
pub const SYSFS_TREE: &str = "\
cpu/online 0-3
cpu/present 0-4
cpu/possible 0-7
cpu/cpu0/topology/core_cpus_list 0,2
cpu/cpu1/topology/core_cpus_list 1,3
cpu/cpu2/topology/core_cpus_list 0,2
cpu/cpu3/topology/thread_siblings_list 1,3
cpu/cpu0/topology/package_cpus_list 0-3
cpu/cpu1/topology/package_cpus_list 0-3
cpu/cpu2/topology/core_siblings 0000000f
cpu/cpu3/topology/package_cpus_list 0-3
cpu/cpu0/topology/core_id 0
cpu/cpu1/topology/core_id 1
cpu/cpu0/topology/physical_package_id 0
cpu/cpu0/topology/die_cpus_list 0-3
cpu/cpu0/topology/cluster_cpus_list 0,2
cpu/cpu0/cache/index0/level 1
cpu/cpu0/cache/index0/type Data
cpu/cpu0/cache/index0/size 32K
cpu/cpu0/cache/index0/shared_cpu_list 0,2
cpu/cpu0/cache/index1/level 3
cpu/cpu0/cache/index1/type Unified
cpu/cpu0/cache/index1/size 8192K
cpu/cpu0/cache/index1/shared_cpu_list 0-3
cpu/cpu0/cpu_capacity 1024
cpu/cpu1/cpu_capacity 600
cpu/cpu3/online 1
node/online 0-1
node/node0/cpulist 0,2
node/node1/cpumap 0000000a
node/node0/distance 10 21
node/node1/distance 21 10
node/node0/meminfo Node 0 MemTotal: 1048576 kB
";

const NUMBERS: &str = "\
# a recording
pid comm wakeups migr_wake migr_other n_cpus run_ms invol vol slice_ms(p50,p90,max) wake_lat_us(p50,p90,p99,max)
169 pt-A 1001 0 0 1 1014.56 0 1002 1.012,1.019,1.971 9,9,11,23
170 pt-B 1000 0 0 1 1013.92 1 1001 1.012,1.023,1.722 nan,nan,nan,nan
";

const XML: [&str; 3] = [
    include_str!("../../crates/machine/tests/fixtures/two-packages-v1.xml"),
    include_str!("../../crates/machine/tests/fixtures/two-packages-v2.xml"),
    include_str!("../../crates/machine/tests/fixtures/two-packages-v3.xml"),
];

const APPS: [&str; 8] = [
    include_str!("../../experiments/rt-app-example.json"),
    include_str!("../../crates/workloads/tests/rt_app/plain.json"),
    include_str!("../../crates/workloads/tests/rt_app/pipeline.json"),
    include_str!("../../crates/workloads/tests/rt_app/phases.json"),
    include_str!("../../crates/workloads/tests/rt_app/locks.json"),
    include_str!("../../crates/workloads/tests/rt_app/realtime.json"),
    include_str!("../../crates/workloads/tests/rt_app/memory.json"),
    include_str!("../../crates/workloads/tests/rt_app/frames.json"),
];

/// A small machine file whose topology is listed.
fn listed() -> String {
    let machine = Machine::named("core-i7-3770").expect("it ships");
    let text = machine.description.to_toml();
    let begin = text.find("[topology]").expect("a machine has a topology");
    let end = text[begin..].find("\n[").map_or(text.len(), |at| begin + at);
    let topology = "[topology]\ncpus = 4\ncores = [\"0,2\", \"1,3\"]\npackages = [\"0-3\"]\nnodes = [\"0-3\"]\n\
                    caches = [{ level = 3, kind = \"unified\", bytes = 8388608, cpus = [\"0-3\"] }]\n\
                    kinds = [{ name = \"big\", cpus = \"0,2\" }]\nsource = \"a test\"\nhow = \"guess\"\n";
    format!("{}{topology}{}", &text[..begin], &text[end..])
}

/// Files that the texts below name, by path.
pub fn shelf() -> &'static [(&'static str, String)] {
    static SHELF: OnceLock<Vec<(&str, String)>> = OnceLock::new();
    SHELF.get_or_init(|| {
        vec![
            ("app.json", APPS[1].to_string()),
            ("pair.txt", SCRIPT_TEXT.to_string()),
            ("numbers.txt", NUMBERS.to_string()),
            ("m.xml", XML[1].to_string()),
            ("m.toml", listed()),
        ]
    })
}

pub fn experiments() -> Vec<String> {
    let minimal = EXAMPLE.lines().filter(|line| !line.starts_with("name = \"ex") && !line.starts_with("about"));
    let minimal = minimal.map(|line| format!("{line}\n")).collect::<String>();
    [EXAMPLE, CASE, include_str!("../../experiments/first-light.toml")]
        .map(str::to_string)
        .into_iter()
        .chain([minimal])
        .collect()
}

pub const EXPERIMENT: &[&str] = &[
    "host",
    "m.xml",
    "m.toml",
    "pack:2 core:2 pu:2",
    "pipetest",
    "hackbench-pipes",
    "rt-app",
    "script",
    "v4.15",
    "v6.1",
    "v6.12",
    "[[workload]]",
    "[[arm]]",
    "[[figure]]",
    "NO_",
    "true",
    "false",
    "wake.recent_used_cpu",
    "kernel.",
    "\"\"\"",
    "{",
    "}",
    "[",
    "]",
    "=",
    ".",
    "#",
];

pub fn machine_files() -> Vec<String> {
    let machine = |name| Machine::named(name).expect("it ships").text.to_string();
    vec![machine("core-i7-3770"), machine("skylake-uma-8"), listed()]
}

pub const MACHINE: &[&str] = &[
    "cycles",
    "ns",
    "us",
    "ps",
    "GHz",
    "KiB",
    "permille",
    "measured",
    "vendor",
    "guess",
    "linux-x86",
    "as-listed",
    "synthetic",
    "distances",
    "mwait",
    "[paths]",
    "[os]",
    "[topology]",
    "value",
    "range",
    "source",
    "how",
    "=",
    "[",
    "]",
    "\"",
];

pub fn hwloc_xml() -> Vec<String> {
    XML.map(str::to_string).to_vec()
}

pub const XML_WORDS: &[&str] = &[
    "<object ",
    "</object>",
    "/>",
    "<!--",
    "-->",
    "<![CDATA[",
    "<!ENTITY a \"b\">",
    "&a;",
    "&#0;",
    "type=\"PU\"",
    "type=\"Package\"",
    "type=\"NUMANode\"",
    "type=\"Group\"",
    "type=\"L5Cache\"",
    "0xf...f",
    "0xffffffff",
    "0x0",
    "version=\"3.0\"",
    "os_index=",
    "cpuset=",
];

pub fn synthetic() -> Vec<String> {
    [
        "pack:2 [numa] l3:1 core:12 pu:2",
        "(memory=1GB) Package:2 [NUMANode(memory=1GiB)] L3Cache:1(size=30MB) L2Cache:4(size=256KiB) Core:1 PU:2(indexes=2*4:1*2)",
        "numa:2(indexes=1,0) die:2 group:2 l2:2 core:1 pu:2(indexes=core:pu)",
        "2 3 2 2",
        "pack:1 core:2 l1d:1 l1i:1 pu:1(indexes=1,0)",
    ]
    .map(str::to_string)
    .to_vec()
}

pub const LEVELS: &[&str] = &[
    "pack:", "die:", "numa:", "[numa]", "l3:", "l2:", "l1i:", "core:", "pu:", "group:", "indexes=", "memory=", "size=",
    "*", ":", ",", "GiB", "(", ")", "[", "]",
];

pub fn sysfs() -> Vec<String> {
    vec![SYSFS_TREE.to_string()]
}

pub const SYSFS: &[&str] = &[
    "0-8191",
    "0-3",
    "cpu/cpu4/",
    "node/node2/",
    "online",
    "offline",
    "distance",
    "Unified",
    "-1",
    "00000000,0000000f",
    "K",
    "M",
];

pub fn cpu_sets() -> Vec<String> {
    ["0-3,8", "0,2,4-7,4096-8191", "00000410,41041041", "0x00000001,,0xff000000", "0xf...f"]
        .map(str::to_string)
        .to_vec()
}

pub fn rt_app() -> Vec<String> {
    APPS.map(str::to_string).to_vec()
}

pub const RT_APP: &[&str] = &[
    "\"run\"",
    "\"runtime\"",
    "\"sleep\"",
    "\"timer\"",
    "\"lock\"",
    "\"unlock\"",
    "\"wait\"",
    "\"signal\"",
    "\"broad\"",
    "\"sync\"",
    "\"barrier\"",
    "\"suspend\"",
    "\"resume\"",
    "\"mem\"",
    "\"iorun\"",
    "\"yield\"",
    "\"fork\"",
    "\"loop\"",
    "\"phases\"",
    "\"instance\"",
    "\"cpus\"",
    "\"policy\"",
    "\"priority\"",
    "\"taskgroup\"",
    "\"delay\"",
    "\"dl-runtime\"",
    "\"SCHED_FIFO\"",
    "\"unique\"",
    "\"mode\"",
    "\"absolute\"",
    "\"/a/b\"",
    "\"/\"",
    "true",
    "NULL",
    "NaN",
    "/*",
    "*/",
    "//",
    "{",
    "}",
    "[",
    "]",
    ":",
    ",",
];

pub fn scripts() -> Vec<String> {
    let memory = "memory heap 512MB node=1 pinned\ntask a count=2 process=p: touch heap 4GB/s; run 1ms; leave heap\n";
    vec![SCRIPT_TEXT.to_string(), memory.to_string()]
}

pub const SCRIPT: &[&str] = &[
    "task", "run", "spin", "sleep", "until", "every", "yield", "read", "write", "x", "(", ")", ";", ":", "nice=",
    "cpus=", "on=", "at=", "group=", "count=", "ns", "us", "ms", "s", "/", "memory", "touch", "leave", "process=",
    "node=", "pinned", "KB", "MB", "GB/s", "set=", "lines=",
];

/// One recording as ftrace, perf and trace-cmd's plugins print it, as Perfetto packs it, and as scripts.
pub fn traces() -> Vec<String> {
    let ftrace = "# tracer: nop\n\
        \x20   a-1     [000] d..2.     1.000000: sched_waking: comm=b pid=2 prio=120 target_cpu=001\n\
        \x20   a-1     [000] ....      1.000001: sched_process_fork: comm=a pid=1 child_comm=a child_pid=3\n\
        \x20   a-1     [000] d..2.     1.000002: sched_wakeup_new: comm=a pid=3 prio=139 target_cpu=000\n\
        CPU:1 [LOST 12 EVENTS]\n\
        \x20   a-1     [000] d..2.     1.000020: sched_switch: prev_comm=a prev_pid=1 prev_prio=120 prev_state=S ==> next_comm=a next_pid=3 next_prio=139\n\
        <idle>-0     [001] d..2.     1.000030: sched_switch: prev_comm=swapper/1 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=b next_pid=2 next_prio=98\n\
        \x20   b-2     [001] d.h2.     1.000040: sched_waking: comm=a pid=1 prio=120 target_cpu=000\n\
        \x20   a-3     [000] ....      1.000045: sys_enter: NR 1 (0)\n\
        \x20   a-3     [000] d..2.     1.000050: sched_switch: prev_comm=a prev_pid=3 prev_prio=139 prev_state=R+ ==> next_comm=a next_pid=1 next_prio=120\n\
        \x20   b-2     [001] d..2.     1.000061: sched_switch: prev_comm=b prev_pid=2 prev_prio=98 prev_state=D|K ==> next_comm=swapper/1 next_pid=0 next_prio=120\n";
    let perf = "  a     1 [000]  1.000000: sched:sched_waking: comm=b pid=2 prio=120 target_cpu=001\n\
        \x20 a   1/1 [000]  1.000020:          1 sched:sched_switch: a:1 [120] S ==> swapper/0:0 [120]\n\
        \x20 swapper  0 [001] 1.000030: sched:sched_switch: swapper/1:0 [120] R ==> b:2 [120]\n";
    let compact = "\n\x2a\n\x28\x08\x01\x22\x24\x2a\x01b\x2a\x01c\n\x04\x1e\x0c\x08\n\x12\x04\0\0\x01\x01\x1a\x04\x02\x03\x02\0\
        \x22\x04\x78\x62\x78\x78\x32\x04\0\x01\0\0";
    let scripts = "fairground trace 1\nend 200000\ntask prio=120 cpu=0 at=0 name=a\nw1 r20000 b1 f2 s50\n\
        task prio=98 cpu=1 waiting kernel bound process=7 name=b\nb0 r22000 w0 i100000 p120\ntask prio=-1 cpu=0 forked name=c\nr1\n";
    [ftrace, perf, compact, scripts].map(str::to_string).to_vec()
}

pub const TRACE: &[&str] = &[
    "sched_switch",
    "sched_waking",
    "sched_wakeup",
    "sched_wakeup_new",
    "sched_process_fork",
    "irq_handler_entry",
    "irq_handler_exit",
    "softirq_entry",
    "prev_comm=",
    "prev_state=",
    "next_pid=",
    "pid=",
    "prio=",
    "target_cpu=",
    "==>",
    "[000]",
    "[001]",
    "CPU:0 [LOST 1 EVENTS]",
    "<idle>-0",
    "migration/0",
    "kworker/0:1",
    "R+",
    "X",
    "D",
    "task",
    "at=",
    "forked",
    "waiting",
];

pub fn arguments() -> Vec<String> {
    [
        "--machine core-i7-3770\n--workload hackbench-pipes:groups=1+4,loops=5\n--arm old=v4.5-rc1,stats.schedstats=tunable\n\
         --arm v=v4.16,NO_SIS_PROP,hz=1000,sched_nr_migrate=8\n--iterations 3\n--seed 9\n--from 1.5\n--to 20",
        "--machine pack:2 l3:1 core:2 pu:2\n--workload pipetest:batches=1+2,loops=5+6\n--arm v4.15\n--arm v6.1\n--at 12",
        "--machine m.toml\n--workload rt-app:file=app.json\n--arm a=v4.15\n--arm b=v6.12,schedstats=enable\n--file /proc/1/sched",
        "--machine host\n--workload script:file=pair.txt\n--arm a=v4.15\n--arm b=v4.15,wake.recent_used_cpu=by-waker",
    ]
    .map(str::to_string)
    .to_vec()
}

pub const ARGUMENTS: &[&str] = &[
    "--machine ",
    "--workload ",
    "--arm ",
    "--iterations ",
    "--seed ",
    "--from ",
    "--at ",
    "--events sched_*,pelt_",
    "--file ",
    "=",
    ",",
    "+",
    ":",
    ".",
    "NO_",
    "host",
    "m.xml",
    "pipetest",
    "v4.16",
    "kernel.",
    "schedstats",
    "hz=",
    "\n",
];

pub fn records() -> Vec<String> {
    let record = |machine: &str, workload: &str, arm: &str| {
        let mut draft = Draft::default();
        draft.machine_option(machine);
        draft.workload_option(workload).expect("a workload");
        draft.arm_options(&[arm.to_string()], true).expect("an arm");
        let experiment = draft.resolve(Purpose::Watch, &Shelf).expect("an experiment");
        let setup = experiment.setup(&experiment.jobs()[0]);
        let outcome = Outcome {
            end: Ending::Finished,
            samples: vec![vec![10, 20]],
            reported: vec![(5, 0, 7)],
            events: 1,
            context_switches: 2,
            wakeups: 3,
            simulated_ns: 4,
            warnings: vec!["a word".to_string().into(), lab::warning::Warning::timed("at ", units::Ns(5), ": there")],
            digest: "d".to_string(),
        };
        Record::new(setup, Some(outcome), 7).to_json()
    };
    vec![
        record("core-i7-3770", "pipetest:batches=2", "v4.15"),
        record("core-i7-3770", "rt-app:file=app.json", "a=v6.12"),
        record("core-i7-3770", "script:file=pair.txt", "a=v4.5-rc1,stats.schedstats=tunable"),
    ]
}

pub fn measured() -> Vec<String> {
    let host = Host {
        cpu_model: "a CPU".to_string(),
        kernel: "6.1.0 #1".to_string(),
        cpus: "0-1".to_string(),
        virtual_machine: true,
        hz: Some(250),
        preempt: None,
        idle: Some("haltpoll".to_string()),
        halt_poll_ns: Some(200_000),
    };
    let outcome = MeasuredOutcome {
        samples: vec![vec![10, 20], vec![]],
        elapsed_ns: 1,
        began: "2026-01-01 00:00 UTC".to_string(),
        others_busy_permille: Some(5),
        stolen_permille: None,
        differs: String::new(),
    };
    let record = |workload: &str| {
        let mut draft = Draft::default();
        draft.workload_option(workload).expect("a workload");
        let tables = draft.tables(2, &Shelf, &mut Vec::new()).expect("it can be measured");
        MeasuredRecord::new(host.clone(), tables[0].workload(0), 3, outcome.clone()).to_json()
    };
    vec![record("pipetest:batches=2"), record("rt-app:file=app.json")]
}

pub const MEASURED: &[&str] = &[
    "null",
    "\"format\"",
    "\"setup\"",
    "\"host\"",
    "\"hz\"",
    "\"preempt\"",
    "\"workload\"",
    "\"iteration\"",
    "\"outcome\"",
    "\"samples\"",
    "\"stolen_permille\"",
    "18446744073709551616",
    "{",
    "}",
    "[",
    "]",
    ":",
    ",",
    "\n",
];

pub const RECORD: &[&str] = &[
    "null",
    "true",
    "\"format\"",
    "\"setup\"",
    "\"kernel\"",
    "\"v4.16\"",
    "\"behaviours\"",
    "\"features\"",
    "\"sysctls\"",
    "\"file\"",
    "\"rt-app\"",
    "\"script\"",
    "\"hackbench-pipes\"",
    "\"seed\"",
    "\"costs\"",
    "\"time_limit_ns\"",
    "{",
    "}",
    "[",
    "]",
    ":",
    ",",
    "\\n",
];

struct Shelf;

impl Files for Shelf {
    fn text(&self, path: &str) -> Result<String, Unreadable> {
        let found = shelf().iter().find(|(name, _)| *name == path);
        found.map(|(_, text)| text.clone()).ok_or_else(|| "no such file".to_string().into())
    }

    fn sysfs(&self, _: &str) -> Option<String> {
        None
    }
}
