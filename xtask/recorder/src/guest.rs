//! The guest: its machine, its kernel's command line, and QEMU.
//!
//! With `-icount shift=0,sleep=off` guest time is the number of executed instructions, one a nanosecond, and idle time
//! is skipped. So two runs give the same bytes, however busy the computer is. All CPUs share one thread: when n of them
//! are busy, each executes n times as slowly. Work is therefore always given as CPU time, never as loops.

use crate::arguments::Arguments;
use machine::topology::{Cpu, Topology};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const QEMU: &str = "qemu-system-x86_64";

const MEMORY: &str = "2048M";
const MEMORY_MB: usize = 2048;

/// Clocks that do not drift, no randomised addresses, and nothing that runs by itself in the background.
const COMMAND_LINE: &str = "console=ttyS0 panic=-1 tsc=reliable nokaslr norandmaps mitigations=off random.trust_cpu=off nmi_watchdog=0 \
                            initcall_blacklist=cmos_init cryptomgr.notests damon_stat.enabled=N";

/// The paths of QEMU and of the kernel.
///
/// # Errors
/// What is missing, and how to get it.
pub fn found(arguments: &Arguments) -> Result<(PathBuf, PathBuf), String> {
    if !arguments.kernel.is_file() {
        return Err(format!(
            "there is no kernel {}; expected a vmlinuz: on Debian `apt-get download linux-image-VERSION-amd64`, \
             `dpkg-deb -x` of that, then --kernel boot/vmlinuz-VERSION-amd64",
            arguments.kernel.display()
        ));
    }
    let qemu = match &arguments.qemu {
        Some(qemu) => Some(qemu.clone()).filter(|qemu| qemu.is_file()),
        None => {
            let path = std::env::var_os("PATH").unwrap_or_default();
            std::env::split_paths(&path).map(|folder| folder.join(QEMU)).find(|program| program.is_file())
        }
    };
    let qemu = qemu.ok_or_else(|| {
        format!(
            "there is no {QEMU} in PATH or where --qemu says; on Debian install qemu-system-x86 (on Debian 12 from its \
             backports: 7.2 hangs when it counts the instructions of several CPUs)"
        )
    })?;
    Ok((qemu, arguments.kernel.clone()))
}

/// A program of `guest/`, which is to be the guest's first process, built now.
pub fn built(source: &str) -> Result<Vec<u8>, String> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("guest").join(source);
    let built = std::env::temp_dir().join(format!("fairground-guest-init-{}", std::process::id()));
    let mut compiler = Command::new("cc");
    compiler.args(["-O2", "-static", "-Wall", "-Wextra", "-o"]).arg(&built).arg(&source);
    let missing = "expected a C compiler and static libraries: on Debian gcc and libc6-dev";
    let status = compiler.status().map_err(|error| format!("cc: {error}; {missing}"))?;
    if !status.success() {
        return Err(format!("cc could not build {}; {missing}", source.display()));
    }
    let bytes = std::fs::read(&built).map_err(|error| error.to_string());
    let _ = std::fs::remove_file(&built);
    bytes
}

/// QEMU's command-line arguments for a machine.
///
/// # Errors
/// What a guest cannot have.
pub fn machine(topology: &Topology) -> Result<Vec<String>, String> {
    let (cpus, cores, packages) = (topology.nr_cpus(), topology.cores().len(), topology.packages().len());
    // QEMU gives each die one last level cache.
    let dies = topology.llcs().len();
    let even = cpus.is_multiple_of(cores) && cores.is_multiple_of(dies) && dies.is_multiple_of(packages);
    let of_cpu = |per: usize| topology.cpus().all(|(id, cpu)| usize::from(cpu.thread) < per && id.index() < cpus);
    let nodes = topology.nodes();
    let whole = nodes.len() <= 1
        || nodes.len() == packages
            && nodes.iter().zip(topology.packages()).all(|(node, package)| node.cpus == package.cpus);
    // QEMU numbers the threads of a core consecutively.
    let threads = cpus / cores;
    let place = |cpu: &Cpu| usize::from(cpu.core) * threads + usize::from(cpu.thread);
    let in_line = topology.cpus().all(|(id, cpu)| place(cpu) == id.index());
    if !in_line {
        return Err(
            "siblings whose numbers are apart; expected numbering = \"as-listed\" in the machine file, as a guest's siblings are neighbours"
                .into(),
        );
    }
    if !even || !of_cpu(threads) || !whole {
        let expected = "a machine of equal cores, with as many last level caches in each package and one node, or one in each package, is \
                        what a guest can be";
        return Err(expected.into());
    }
    let (sockets, dies, cores) = (packages, dies / packages, cores / dies);
    // The kernel sees the threads of an Intel model; the instructions that yield random numbers are disabled. QEMU 10.0
    // aborts at a query for dies (leaf 0x1f of CPUID), so that leaf is not offered; leaf 4 tells which CPUs share a
    // cache.
    let model = "Skylake-Client-v1,l3-cache=on,-rdrand,-rdseed";
    let several = if dies == 1 { "" } else { ",level=0xd" };
    let model = format!("{model}{several}");
    let words = ["-M", "pc,hpet=off", "-cpu", &model, "-m", MEMORY, "-smp"];
    let mut words: Vec<String> = words.map(String::from).to_vec();
    let dies = if dies == 1 { String::new() } else { format!("dies={dies},") };
    words.push(format!("{cpus},sockets={sockets},{dies}cores={cores},threads={threads}"));
    if nodes.len() > 1 {
        words.extend(numa(topology, cpus / packages));
    }
    Ok(words)
}

/// Nodes of one package each, with equal shares of the memory, and their distances.
fn numa(topology: &Topology, cpus_of_each: usize) -> Vec<String> {
    let nodes = topology.nodes().len();
    let mut words = Vec::new();
    for node in 0..nodes {
        // QEMU numbers the CPUs of a package consecutively, too.
        let (first, last) = (node * cpus_of_each, (node + 1) * cpus_of_each - 1);
        words.extend(["-object".to_string(), format!("memory-backend-ram,id=m{node},size={}M", MEMORY_MB / nodes)]);
        words.extend(["-numa".to_string(), format!("node,nodeid={node},cpus={first}-{last},memdev=m{node}")]);
    }
    let pairs = (0..nodes).flat_map(|from| (0..nodes).map(move |to| (from, to))).filter(|(from, to)| from != to);
    for (from, to) in pairs {
        let distance = topology.node_distance(from as u16, to as u16);
        words.extend(["-numa".to_string(), format!("dist,src={from},dst={to},val={distance}")]);
    }
    words
}

/// The kernel's command line.
pub fn command_line(parameters: &[String], arguments: &Arguments, sample: u32) -> String {
    let more = Some(arguments.append.clone()).filter(|text| !text.is_empty());
    // A word that the kernel does not know shifts everything by some instructions, as many as it has letters.
    let sample = (sample > 1).then(|| format!("sample={}", "x".repeat(sample as usize)));
    let parameters = parameters.iter().cloned().chain(more).chain(sample);
    [COMMAND_LINE.to_string()].into_iter().chain(parameters).collect::<Vec<_>>().join(" ")
}

/// What is booted.
pub struct Guest<'a> {
    pub qemu: &'a Path,
    pub kernel: &'a Path,
    /// [`machine()`]'s words.
    pub machine: &'a [String],
    pub command_line: &'a str,
    /// Its file system.
    pub image: &'a [u8],
}

impl Guest<'_> {
    /// Boots it and waits until it is off. What it sent.
    pub fn run(&self, arguments: &Arguments) -> Result<String, String> {
        in_a_folder(|folder| self.boot(arguments, folder))
    }

    fn boot(&self, arguments: &Arguments, folder: &Path) -> Result<String, String> {
        let mut command = self.command(EMULATED, folder)?;
        command.arg("-debugcon").arg(format!("file:{}", folder.join("sent").display()));
        let mut child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().map_err(words)?;
        let end = Instant::now() + Duration::from_secs(arguments.limit_s);
        let status = loop {
            match child.try_wait().map_err(words)? {
                Some(status) => break Some(status),
                None if Instant::now() >= end => {
                    child.kill().map_err(words)?;
                    child.wait().map_err(words)?;
                    break None;
                }
                None => std::thread::sleep(Duration::from_millis(200)),
            }
        };
        let sent = text_of(&folder.join("sent"));
        if sent.contains("=== end\n") {
            return Ok(sent);
        }
        let ended = match status {
            Some(status) => format!("QEMU ended early ({status})"),
            None => format!("no end after {} s (--limit)", arguments.limit_s),
        };
        let mistake = sent.lines().find(|line| line.starts_with("=== error")).unwrap_or_default();
        let mistake = format!("{ended}: {mistake}");
        Err(failed(&mistake, &mut child, folder))
    }

    /// Boots it with every instruction a block of its own, waits until it is ready, and has QEMU log the kernel's instructions until the log
    /// has so many bytes: where.
    pub fn trace(&self, arguments: &Arguments, bytes: u64) -> Result<PathBuf, String> {
        in_a_folder(|folder| self.log(arguments, bytes, folder))
    }

    fn log(&self, arguments: &Arguments, bytes: u64, folder: &Path) -> Result<PathBuf, String> {
        let log = std::env::temp_dir().join(format!("fairground-instructions-{}", std::process::id()));
        let mut command = self.command(one_at_a_time(version(self.qemu)?), folder)?;
        command.arg("-D").arg(&log).args(["-dfilter", KERNEL, "-monitor", "stdio"]);
        let piped = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = piped.spawn().map_err(words)?;
        let end = Instant::now() + Duration::from_secs(arguments.limit_s);
        let until = |what: &str, child: &mut Child, done: &dyn Fn() -> bool| {
            while !done() {
                let ended = child.try_wait().map_err(words)?.is_some();
                let said = text_of(&folder.join("console")).contains("=== error");
                if ended || said || Instant::now() >= end {
                    let _ = child.kill();
                    return Err(failed(&format!("{what} by the end of --limit or of QEMU"), child, folder));
                }
                std::thread::sleep(Duration::from_millis(100));
            }
            Ok(())
        };
        until("not ready", &mut child, &|| text_of(&folder.join("console")).contains("=== ready"))?;
        let mut monitor = child.stdin.take().expect("it is piped");
        writeln!(monitor, "log exec,nochain").map_err(words)?;
        until("not logged", &mut child, &|| std::fs::metadata(&log).is_ok_and(|file| file.len() >= bytes))?;
        writeln!(monitor, "quit").map_err(words)?;
        child.wait().map_err(words)?;
        Ok(log)
    }

    /// QEMU's, with what is the same for all guests.
    fn command(&self, accelerator: &[&str], folder: &Path) -> Result<Command, String> {
        let image = folder.join("image");
        std::fs::write(&image, self.image).map_err(words)?;
        let mut command = Command::new(self.qemu);
        command.args(accelerator).args(["-icount", "shift=0,sleep=off"]).args(self.machine);
        command.args([
            "-rtc",
            "base=2024-01-01,clock=vm",
            "-seed",
            "1",
            "-nodefaults",
            "-display",
            "none",
            "-no-reboot",
        ]);
        command.arg("-kernel").arg(self.kernel).arg("-initrd").arg(image).args(["-append", self.command_line]);
        command.arg("-serial").arg(format!("file:{}", folder.join("console").display()));
        Ok(command)
    }
}

/// The kernel's half of all addresses: what user space executes while it waits is not logged.
const KERNEL: &str = "0xffff800000000000..0xffffffffffffffff";

fn words(error: std::io::Error) -> String {
    error.to_string()
}

fn in_a_folder<T>(run: impl FnOnce(&Path) -> Result<T, String>) -> Result<T, String> {
    let folder = std::env::temp_dir().join(format!("fairground-guest-{}", std::process::id()));
    std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let result = run(&folder);
    let _ = std::fs::remove_dir_all(&folder);
    result
}

fn text_of(file: &Path) -> String {
    std::fs::read(file).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
}

/// What went wrong, what QEMU said, and the end of the guest's console.
fn failed(what: &str, child: &mut Child, folder: &Path) -> String {
    let console = text_of(&folder.join("console"));
    let console = console.lines().rev().take(8).map(|line| format!("\n  {line}")).collect::<String>();
    let mut said = String::new();
    let _ = child.stderr.take().map(|mut stderr| stderr.read_to_string(&mut said));
    format!("{what} {}; the console's last lines, latest first:{console}", said.trim())
}

/// What QEMU says that it is: major and minor version.
fn version(qemu: &Path) -> Result<(u32, u32), String> {
    let output = Command::new(qemu).arg("--version").output().map_err(words)?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let number =
        text.split_whitespace().find(|word| word.starts_with(|c: char| c.is_ascii_digit())).unwrap_or_default();
    let mut parts = number.split('.').map(str::parse);
    match (parts.next(), parts.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => Ok((major, minor)),
        _ => Err(format!("{} --version says {text:?}, which has no version", qemu.display())),
    }
}

/// Words that have QEMU emulate the processor, all CPUs in one thread.
const EMULATED: &[&str] = &["-accel", "tcg,thread=single"];

/// Words that also have it translate one instruction at a time, so that each is logged. A second `-accel` would be another
/// choice, not more of the first.
fn one_at_a_time(version: (u32, u32)) -> &'static [&'static str] {
    if version >= (8, 1) {
        &["-accel", "tcg,thread=single,one-insn-per-tb=on"]
    } else {
        &["-accel", "tcg,thread=single", "-singlestep"]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use machine::topology::{Numbering, from_synthetic};

    fn words(text: &str) -> Result<Vec<String>, String> {
        machine(&from_synthetic(text, "test", Numbering::AsListed).expect("a machine"))
    }

    #[test]
    fn each_version_of_qemu_has_its_words_for_one_instruction_at_a_time() {
        assert!(one_at_a_time((8, 0)).contains(&"-singlestep") && one_at_a_time((7, 2)).contains(&"-singlestep"));
        let newer = one_at_a_time((10, 0));
        assert_eq!(newer.iter().filter(|&&word| word == "-accel").count(), 1, "{newer:?}");
        assert!(newer.iter().any(|word| word.ends_with("one-insn-per-tb=on")), "{newer:?}");
    }

    #[test]
    fn a_machine_becomes_words() {
        assert_eq!(words("pack:1 l3:1 core:2 pu:1").unwrap().last().unwrap(), "2,sockets=1,cores=2,threads=1");
        assert_eq!(words("pack:2 l3:1 core:4 pu:2").unwrap().last().unwrap(), "16,sockets=2,cores=4,threads=2");
        assert_eq!(words("pack:1 l3:2 core:4 pu:1").unwrap().last().unwrap(), "8,sockets=1,dies=2,cores=4,threads=1");
        let numa = words("pack:2 [numa] l3:1 core:2 pu:1").unwrap().join(" ");
        let node = "-object memory-backend-ram,id=m1,size=1024M -numa node,nodeid=1,cpus=2-3,memdev=m1";
        assert!(numa.contains(node) && numa.contains("-numa dist,src=0,dst=1,val="), "{numa}");
        assert!(words("pack:1 numa:2 l3:1 core:2 pu:1").is_err());
        let apart = from_synthetic("pack:1 l3:1 core:2 pu:2", "test", Numbering::LinuxX86).expect("a machine");
        assert!(machine(&apart).unwrap_err().starts_with("siblings whose numbers are apart"));
    }
}
