//! A parallel build: make starts compilers, as many at a time as it has jobs, and links at the end.
//!
//! For each file make starts a shell, which starts a compiler driver, which starts first the compiler proper and then
//! the assembler. Each is a process that its parent waits for: four processes, three of them asleep most of the time.
//! make and the driver call vfork() (GNU make's job.c, libiberty's pex-unix.c; posix_spawn() comes to the same) and
//! sleep until the child has executed the other program; the shell forks. The compiler reads its sources before it
//! works (page-cache misses for some files), and its time varies widely from file to file. After the last file one
//! linker runs alone. The figure is the elapsed time.
//!
//! Sizes are guesses for a kernel's build: 400 ms of compiling a file on a core of 3 GHz, one file in ten read from a disk; see
//! the constants. Processes that make itself runs between files (scripts, dependency files) are part of the shell's time.

use crate::chance::lognormal;
use crate::{Instance, Parameter, Summary, Values, Workload};
use os::Os;
use sim::engine::Sample;
use sim::program::{AddressSpace, Op, Outcome, Program, Steps, TaskSpec};
use units::{Cycles, Ns, Prng};

/// Cycles of the driver, the shell and make's own work for one file (guess).
const SMALL: Cycles = Cycles(6_000_000);
/// Assembling takes one part in so many of a file's compile time (guess).
const ASSEMBLE_PART: u64 = 12;
/// Cycles of linking, for each file (guess).
const LINK: u64 = 4_000_000;
/// Spread of compile times: the logarithm's standard deviation, in thousandths.
const SIGMA_PERMILLE: u64 = 700;
/// One file in so many is read from the disk, and how long that takes.
const MISS_ONE_IN: u64 = 10;
const MISS: Ns = Ns(4_000_000);
/// Bytes that each program uses again and again (guesses): the compiler 2 to 16 MiB and the assembler 256 KiB to 2 MiB
/// of trees, tables and their own code, more than a core's caches hold; the linker all symbols, 16 to 256 MiB.
const COMPILER_DATA: u64 = 4 << 20;
const ASSEMBLER_DATA: u64 = 512 << 10;
const LINKER_DATA: u64 = 32 << 20;
/// Lines of this data that each fetches from beyond its core's caches in 1000 cycles (guesses: 1 to 10, 1 to 5 and 2 to
/// 20).
const COMPILER_LINES: u32 = 3;
const ASSEMBLER_LINES: u32 = 2;
const LINKER_LINES: u32 = 8;

pub const WORKLOAD: Workload = Workload {
    name: "kernel-build",
    summary: "make -j: compilers in parallel, then a linker alone",
    parameters: &[
        Parameter { name: "jobs", default: 4, range: (1, 8_192), unit: "jobs", doc: "files at a time" },
        Parameter { name: "files", default: 200, range: (1, 100_000), unit: "files", doc: "to compile" },
        Parameter {
            name: "file_cycles",
            default: 1_200,
            range: (1, 1_000_000),
            unit: "Mcycles",
            doc: "mean work of compiling one",
        },
    ],
    key: Some("jobs"),
    operation: "elapsed",
    rows: &["elapsed"],
    statistics: Summary::Time,
    unit: "s",
    per_unit: 1_000_000_000,
    decimals: 2,
    build: |values: &Values| {
        let mean = values.get("file_cycles") * 1_000_000;
        Box::new(Build { jobs: values.get("jobs"), files: values.get("files"), mean })
    },
};

struct Build {
    jobs: u64,
    files: u64,
    mean: u64,
}

impl Instance for Build {
    fn start(&self, os: &mut Os) -> Vec<TaskSpec> {
        let make = Make {
            chance: os.chance("kernel-build", 0),
            idle_jobs: self.jobs,
            left: self.files,
            files: self.files,
            mean: self.mean,
            started: None,
            state: MakeState::Next,
        };
        vec![TaskSpec::new("make", make)]
    }

    fn samples(&self, reported: &[Sample]) -> Vec<u64> {
        reported.iter().map(|sample| sample.value).collect()
    }
}

enum MakeState {
    Next,
    Waited,
    Link,
    Report,
    Exit,
}

struct Make {
    chance: Prng,
    idle_jobs: u64,
    left: u64,
    files: u64,
    mean: u64,
    started: Option<Ns>,
    state: MakeState,
}

impl Make {
    /// The processes of one file, the shell outermost.
    fn file(&mut self) -> TaskSpec {
        let compile = lognormal(&mut self.chance, self.mean, SIGMA_PERMILLE);
        let read = (self.chance.below(MISS_ONE_IN) == 0).then_some(Op::BlockIo(MISS));
        let compiler = read.into_iter().chain([Op::Work(Cycles(compile))]).collect();
        let assembler = vec![Op::Work(Cycles(compile / ASSEMBLE_PART))];
        let driver = vec![
            Op::Work(SMALL),
            vfork(spec("cc1", (COMPILER_DATA, COMPILER_LINES), compiler)),
            Op::Wait,
            vfork(spec("as", (ASSEMBLER_DATA, ASSEMBLER_LINES), assembler)),
            Op::Wait,
        ];
        let gcc = Op::Fork(Box::new(spec("gcc", (0, 0), driver)));
        spec("sh", (0, 0), vec![Op::Work(SMALL), gcc, Op::Wait])
    }
}

impl Program for Make {
    fn next(&mut self, last: Outcome) -> Op {
        let started = *self.started.get_or_insert(last.now);
        loop {
            match self.state {
                MakeState::Next if self.left > 0 && self.idle_jobs > 0 => {
                    self.left -= 1;
                    self.idle_jobs -= 1;
                    return vfork(self.file());
                }
                MakeState::Next => {
                    self.state = MakeState::Waited;
                    return Op::Wait;
                }
                MakeState::Waited if last.value != 0 => {
                    self.idle_jobs += 1;
                    self.state = MakeState::Next;
                }
                MakeState::Waited => {
                    self.state = MakeState::Link;
                    let link = vec![Op::Work(Cycles(LINK * self.files))];
                    return vfork(spec("ld", (LINKER_DATA, LINKER_LINES), link));
                }
                MakeState::Link => {
                    self.state = MakeState::Report;
                    return Op::Wait;
                }
                MakeState::Report => {
                    self.state = MakeState::Exit;
                    return Op::Report { series: 0, value: (last.now - started).0 };
                }
                MakeState::Exit => return Op::Exit,
            }
        }
    }
}

/// A process that executes a program and does one thing after the other, with its data: bytes, and lines fetched in
/// 1000 cycles.
fn spec(comm: &str, (data, lines): (u64, u32), steps: Vec<Op>) -> TaskSpec {
    let steps = [Op::Exec].into_iter().chain(steps).collect::<Vec<_>>();
    TaskSpec { working_set: data, data, lines, ..TaskSpec::new(comm, Steps(steps.into_iter())) }
}

fn vfork(spec: TaskSpec) -> Op {
    Op::Fork(Box::new(TaskSpec { memory: AddressSpace::Borrowed, ..spec }))
}

#[cfg(test)]
mod tests {
    use crate::fixture::{boot, instance, play, run};
    use sched::scheduler::Scheduler;
    use sched::versions::V4_15;
    use units::Ps;

    fn milliseconds(cpus: usize, jobs: u64) -> u64 {
        run("kernel-build", cpus, &[("files", 40), ("file_cycles", 100), ("jobs", jobs)]).rows()[0][0] / 1_000_000
    }

    #[test]
    fn jobs_help_until_there_are_as_many_as_cpus() {
        // 40 files take 100 ms, a twelfth of that and 12 ms each: 4.8 s; the linker takes 0.16 s. A few files wait for
        // the disk.
        let one = milliseconds(4, 1);
        assert!((4_200..6_000).contains(&one), "{one}");
        let four = milliseconds(4, 4);
        assert!((250..360).contains(&(four * 1_000 / one)), "{four} after {one}");
        let many = milliseconds(4, 40);
        assert!(many < four * 11 / 10, "{many} after {four}");
    }

    #[test]
    fn compilers_share_the_last_level_cache() {
        // Four at a time, no file read from the disk: the time it takes with a last level cache of so many MiB.
        let took = |llc: u64| {
            let mut sim = boot::<true>(4, V4_15, None);
            let prices = &mut sim.sched.arch_mut().prices;
            (prices.lines.llc_hit, prices.lines.memory) = (Ps::from_ns(20), Ps::from_ns(100));
            (prices.llc_bytes, prices.refill_parallel) = (llc << 20, 1);
            let parameters = [("files", 40), ("file_cycles", 100), ("jobs", 4)];
            play(instance("kernel-build", &parameters), sim).rows()[0][0] / 1_000_000
        };
        // Lines come one after the other: in 1000 cycles of 1 ns, 3 lines of 20 ns, or 3 of 100 ns where the cache
        // holds nothing. The compilers do nine tenths of the work.
        let (roomy, none) = (took(1 << 10), took(0));
        let ratio = none * 1000 / roomy;
        assert!((1_150..1_250).contains(&ratio), "{none} ms for {roomy}");
        // Four sets of 4 MiB compete for 8 MiB, so half of each stays.
        let half = took(8);
        assert!((half - roomy).abs_diff((none - roomy) / 2) * 8 < none - roomy, "{half} ms between {roomy} and {none}");
    }

    #[test]
    fn a_file_is_four_processes() {
        let ran = run("kernel-build", 2, &[("files", 1), ("file_cycles", 10)]);
        assert_eq!(ran.sim.comms(), ["swapper", "make", "sh", "gcc", "cc1", "as", "ld"]);
        // Each process's end wakes its parent. Each child's exec wakes a parent in vfork(), except for the compiler
        // driver, which the shell forks. A process may also have waited for a disk.
        assert!((9..=10).contains(&ran.wakeups()), "{}", ran.wakeups());
    }
}
