//! What a machine's hardware and kernel paths cost, as plain integers for the simulation. Made from a machine file.

use crate::lines::LinePrices;
use crate::smt::SmtPrices;
use crate::topology::Distance;
use sched::access::Path;
use sched::cpu_topology::SCHED_CAPACITY_SCALE;
use units::{Capacity, CpuId, CpuMask, Cycles, Ps, unlikely};

/// How many paths can be priced: the scheduler's, then those of the rest of the kernel.
pub const NR_PATHS: usize = 512;

/// An idle state: what the driver declares and what leaving it really takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdleState {
    pub name: String,
    /// As declared by the driver, in microseconds: the governor uses these.
    pub exit_latency_us: u32,
    pub target_residency_us: u32,
    /// The CPU executes a loop that watches its flags word.
    pub polling: bool,
    /// From the wakeup event to the first instruction.
    pub wake: Ps,
    /// How much longer that takes after the whole package was in a state as deep; 0 where packages have no state of
    /// their own.
    pub package_wake: Ps,
    /// A core has emptied its own caches once all its threads are in such states.
    pub flushes: bool,
}

impl IdleState {
    /// A state as a driver declares it, in microseconds; one without a residency polls. Leaving it takes no time.
    pub fn declared(name: &str, exit_latency_us: u32, target_residency_us: u32) -> IdleState {
        IdleState {
            name: name.to_string(),
            exit_latency_us,
            target_residency_us,
            polling: target_residency_us == 0,
            wake: Ps::ZERO,
            package_wake: Ps::ZERO,
            flushes: false,
        }
    }
}

/// The prices of one machine. See `docs/cost-model.md` for what each stands for.
#[derive(Clone, Debug)]
pub struct Prices {
    /// Picoseconds of one core clock cycle of the biggest CPU at the frequency simulated.
    pub ps_per_cycle: u64,
    /// Whether a CPU of less speed takes proportionally longer for the same work; otherwise all are equally fast.
    pub by_speed: bool,
    /// How fast the threads of a core are beside each other.
    pub smt: SmtPrices,
    pub lines: LinePrices,
    /// From the sending of a reschedule interrupt to the first instruction of its handler on a running target: within a
    /// package, and to another package.
    pub ipi_delivery: Ps,
    pub ipi_delivery_remote: Ps,
    /// Ticks come at most this long after their time.
    pub tick_jitter: Ps,
    /// Bytes of a core's cache that a tick uses, and how many of its lines are fetched in parallel.
    pub tick_footprint: u64,
    pub tick_parallel: u64,
    /// Work of sending an interrupt.
    pub ipi_send: Cycles,
    /// Straight-line work of each path, by number.
    pub paths: Vec<Cycles>,
    /// Idle states from the shallowest. The first is polling where the driver polls.
    pub idle_states: Vec<IdleState>,
    /// The same states for kinds of CPU on which they are different.
    pub idle_states_of_kinds: Vec<(CpuMask, Vec<IdleState>)>,
    /// A round of the loop in which an idle CPU polls; 0: it looks at the clock at every moment.
    pub poll_round: Cycles,
    /// An idle CPU watches its flags word and needs no interrupt to wake.
    pub mwait: bool,
    /// The kernel function in which an idle CPU stands, unless it polls.
    pub halts_in: &'static str,
    /// Packages enter their own idle states all together or not at all.
    pub packages_together: bool,
    /// Bytes of a cache line.
    pub line_bytes: u64,
    /// A core's own caches: bytes of level 1 (data) and of level 2, and how long a load from level 2 takes.
    /// `bytes_of_cores` has both sizes by core where the machine file tells them; otherwise all cores have these sizes.
    pub l1_bytes: u64,
    pub l2_bytes: u64,
    pub l2_load: Cycles,
    pub bytes_of_cores: Vec<[u64; 2]>,
    /// Bytes of a last level cache; `bytes_of_llcs` has each one's where they differ.
    pub llc_bytes: u64,
    pub bytes_of_llcs: Vec<u64>,
    /// A line from memory, by the [`Distance::index`](crate::topology::Distance::index) of the node. A distance that is
    /// not in the list costs as much as the local node.
    pub memory_far: Vec<Ps>,
    /// How long a node's memory takes to deliver 1024 bytes at its highest bandwidth; 0: its bandwidth is unlimited.
    pub memory_ps_per_kib: u64,
    /// The same for a node without CPUs.
    pub far_memory_ps_per_kib: u64,
    /// The same for what leads from memory to a last level cache, and from one package to another.
    pub llc_link_ps_per_kib: u64,
    pub package_link_ps_per_kib: u64,
    /// Lines that a core fetches in parallel when it refills its caches.
    pub refill_parallel: u64,
    /// Copying between user and kernel memory.
    pub copy_ps_per_byte: u64,
}

impl Prices {
    pub fn path(&self, path: Path) -> Cycles {
        self.paths[path.0 as usize]
    }

    /// Bytes of level 1 and level 2 of a core.
    #[inline]
    pub fn core_bytes(&self, core: usize) -> [u64; 2] {
        self.bytes_of_cores.get(core).copied().unwrap_or([self.l1_bytes, self.l2_bytes])
    }

    #[inline]
    pub fn llc_bytes_of(&self, llc: usize) -> u64 {
        self.bytes_of_llcs.get(llc).copied().unwrap_or(self.llc_bytes)
    }

    /// Idle state number `state` as `cpu` has it.
    #[inline]
    pub fn idle_state_of(&self, cpu: CpuId, state: usize) -> &IdleState {
        let mut states = &self.idle_states;
        if unlikely(!self.idle_states_of_kinds.is_empty()) {
            let own = self.idle_states_of_kinds.iter().find(|(cpus, _)| cpus.contains(cpu));
            states = own.map_or(states, |(_, states)| states);
        }
        &states[state]
    }

    /// The idle states of every kind of CPU.
    pub fn all_idle_states(&self) -> impl Iterator<Item = &IdleState> {
        self.idle_states.iter().chain(self.idle_states_of_kinds.iter().flat_map(|(_, states)| states))
    }

    /// The lowest number of an idle state that empties caches, on any kind of CPU; `usize::MAX` if none does.
    pub fn flushing_from(&self) -> usize {
        let kinds = self.idle_states_of_kinds.iter().map(|(_, states)| states);
        let first = |states: &Vec<IdleState>| states.iter().position(|state| state.flushes);
        std::iter::once(&self.idle_states).chain(kinds).filter_map(first).min().unwrap_or(usize::MAX)
    }

    /// How long an interrupt takes to reach a running CPU.
    #[inline]
    pub fn ipi_delivery(&self, distance: Distance) -> Ps {
        match distance {
            Distance::Remote(_) => self.ipi_delivery_remote,
            _ => self.ipi_delivery,
        }
    }

    /// A line from memory at this distance.
    pub fn memory_load(&self, distance: Distance) -> Ps {
        self.memory_far.get(distance.index()).copied().unwrap_or(self.lines.memory)
    }

    /// [`Prices::ps_per_cycle`] for a CPU of this speed. Work is counted in the cycles that the biggest CPU would take
    /// for it, so programs and paths ask for the same number of cycles everywhere.
    pub fn ps_per_cycle_at(&self, speed: Capacity) -> u64 {
        self.stretched(self.ps_per_cycle, speed)
    }

    /// The same where a clock cycle takes `ps_per_cycle`.
    pub fn stretched(&self, ps_per_cycle: u64, speed: Capacity) -> u64 {
        let (full, speed) = (u64::from(SCHED_CAPACITY_SCALE), u64::from(speed.max(1)));
        if self.by_speed { ps_per_cycle * full / speed } else { ps_per_cycle }
    }

    /// The cost model off: everything is free, every CPU is equally fast at 1 GHz, and idle states are left at once.
    pub fn free() -> Prices {
        Prices {
            ps_per_cycle: 1000,
            by_speed: false,
            smt: SmtPrices::free(),
            lines: LinePrices {
                transfer: vec![Ps::ZERO; 5 + 256],
                llc_hit: Ps::ZERO,
                slice_spread: 0,
                memory: Ps::ZERO,
                read_stall: 1000,
                write_stall: 1000,
                contended: 1000,
                disputed_from: u64::MAX,
                window: Ps::ZERO,
                handoff: 1000,
            },
            ipi_delivery: Ps::ZERO,
            ipi_delivery_remote: Ps::ZERO,
            tick_jitter: Ps::ZERO,
            tick_footprint: 0,
            tick_parallel: 1,
            ipi_send: Cycles(0),
            paths: vec![Cycles(0); NR_PATHS],
            idle_states: vec![IdleState { polling: false, ..IdleState::declared("idle", 0, 0) }],
            idle_states_of_kinds: Vec::new(),
            poll_round: Cycles(0),
            mwait: true,
            halts_in: "intel_idle",
            packages_together: false,
            line_bytes: 64,
            l1_bytes: 0,
            l2_bytes: 0,
            l2_load: Cycles(0),
            bytes_of_cores: Vec::new(),
            llc_bytes: 0,
            bytes_of_llcs: Vec::new(),
            memory_far: Vec::new(),
            memory_ps_per_kib: 0,
            far_memory_ps_per_kib: 0,
            llc_link_ps_per_kib: 0,
            package_link_ps_per_kib: 0,
            refill_parallel: 1,
            copy_ps_per_byte: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hardware::Hardware;
    use crate::idle::IdleRules;
    use crate::topology::{Numbering, from_synthetic};
    use sched::arch::Arch;
    use sched::trace::Ipi;
    use sched::versions::V4_16;

    #[test]
    fn a_small_cpu_takes_longer_for_the_same_work() {
        let topology = from_synthetic("core:2 pu:1", "t", Numbering::AsListed).unwrap();
        let small = [CpuId(1)].into_iter().collect();
        let speeds = |by_speed: bool| {
            let topology = topology.clone().with_capacity(&small, 256);
            let prices = Prices { by_speed, ..Prices::free() };
            let hardware = Hardware::<true>::new(topology, prices, V4_16.layout(), IdleRules::V4_15, 1);
            (hardware.ps_per_cycle(CpuId(0)), hardware.ps_per_cycle(CpuId(1)))
        };
        assert_eq!(speeds(true), (1000, 4000));
        assert_eq!(speeds(false), (1000, 1000));
    }

    #[test]
    fn an_interrupt_takes_its_own_time_to_another_package() {
        let topology = from_synthetic("pack:2 [numa] l3:2 core:2 pu:2", "t", Numbering::AsListed).unwrap();
        let (near, far) = (Ps(600_000), Ps(900_000));
        let prices = Prices { ipi_delivery: near, ipi_delivery_remote: far, ..Prices::free() };
        let mut hardware = Hardware::<true>::new(topology, prices, V4_16.layout(), IdleRules::V4_15, 1);
        // A sibling, another core, another cache of the package, the other package.
        for (to, way) in [(1, near), (2, near), (4, near), (8, far), (15, far)] {
            hardware.begin(CpuId(0), Ps::ZERO);
            hardware.send_ipi(CpuId(0), CpuId(to), Ipi::Reschedule);
            let sent = hardware.outbox().pop().expect("one was sent");
            assert_eq!((sent.at, sent.to), (way, CpuId(to)));
        }
    }
}
