//! Machines for the tests: with any numbering and any nesting, from text or at random.

use crate::cpu_topology::{CpuTopology, LOCAL_DISTANCE};
use crate::topology::{DomainParameters, DomainRules, DomainSetup, Domains, build_sched_domains};
use units::{CpuId, CpuMask, PerCpu, Prng};

/// One CPU. CPUs with equal ids share what the id denotes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cpu {
    pub core: u32,
    pub cluster: u32,
    pub llc: u32,
    pub package: u32,
    pub node: u16,
    pub capacity: u32,
    pub priority: i32,
    pub online: bool,
    pub active: bool,
}

/// A machine and its kernel's command line.
#[derive(Clone, Debug)]
pub struct Machine {
    pub cpus: Vec<Cpu>,
    pub distance: Vec<Vec<u32>>,
    pub hybrid: bool,
    pub sched_debug: bool,
    pub node_reclaim_distance: u32,
    pub itmt: bool,
    pub relax_domain_level: Option<u32>,
    pub force_sd_overlap: bool,
}

impl Machine {
    /// `nodes` x `llcs` x `clusters` x `cores` x `threads`, numbered in that order, one package per node. With one
    /// cluster there are none: then every core has a level-2 cache of its own.
    pub fn nested(nodes: usize, llcs: usize, clusters: usize, cores: usize, threads: usize) -> Machine {
        let cpus = (0..nodes * llcs * clusters * cores * threads).map(|cpu| {
            let core = cpu / threads;
            let node = core / (cores * clusters * llcs);
            Cpu {
                core: core as u32,
                cluster: if clusters == 1 { core } else { core / cores } as u32,
                llc: (core / (cores * clusters)) as u32,
                package: node as u32,
                node: node as u16,
                capacity: 1024,
                priority: 0,
                online: true,
                active: true,
            }
        });
        Machine {
            cpus: cpus.collect(),
            distance: Machine::distances(nodes, |_, _| 20),
            hybrid: false,
            sched_debug: false,
            node_reclaim_distance: 30,
            itmt: false,
            relax_domain_level: None,
            force_sd_overlap: false,
        }
    }

    pub fn with_distances(mut self, of: impl Fn(usize, usize) -> u32) -> Machine {
        self.distance = Machine::distances(self.distance.len(), of);
        self
    }

    fn distances(nodes: usize, of: impl Fn(usize, usize) -> u32) -> Vec<Vec<u32>> {
        (0..nodes).map(|a| (0..nodes).map(|b| if a == b { LOCAL_DISTANCE } else { of(a, b) }).collect()).collect()
    }

    pub fn topology(&self) -> CpuTopology {
        let nr_cpus = self.cpus.len();
        let same = |id: fn(&Cpu) -> u32| {
            PerCpu::from_fn(nr_cpus, |cpu| {
                let mine = id(&self.cpus[cpu.index()]);
                (0..nr_cpus).filter(|&other| id(&self.cpus[other]) == mine).map(CpuId::new).collect::<CpuMask>()
            })
        };
        CpuTopology {
            nr_cpus,
            smt: same(|cpu| cpu.core),
            cluster: same(|cpu| cpu.cluster),
            coregroup: same(|cpu| cpu.llc),
            llc_bytes: PerCpu::from_fn(nr_cpus, |_| 0),
            package: same(|cpu| cpu.package),
            node: PerCpu::from_fn(nr_cpus, |cpu| self.cpus[cpu.index()].node),
            distance: self.distance.clone(),
            capacity: PerCpu::from_fn(nr_cpus, |cpu| self.cpus[cpu.index()].capacity),
            energy_model: None,
            node_reclaim_distance: self.node_reclaim_distance,
            highest_perf: None,
            hybrid: self.hybrid,
        }
    }

    fn cpus_that(&self, are: fn(&Cpu) -> bool) -> CpuMask {
        (0..self.cpus.len()).filter(|&cpu| are(&self.cpus[cpu])).map(CpuId::new).collect()
    }

    pub fn build(&self, rules: &DomainRules) -> Domains {
        let topology = self.topology();
        let priorities = PerCpu::from_fn(self.cpus.len(), |cpu| self.cpus[cpu.index()].priority);
        let setup = DomainSetup {
            online: self.cpus_that(|cpu| cpu.online),
            booted: self.cpus_that(|cpu| cpu.online),
            jiffies: 1000,
            parameters: DomainParameters { relax_domain_level: self.relax_domain_level, sched_debug: self.sched_debug },
            node_reclaim_distance: self.node_reclaim_distance,
            arch_asym_cpu_priority: self.itmt.then_some(priorities),
            force_sd_overlap: self.force_sd_overlap,
            ..DomainSetup::boot(&topology)
        };
        build_sched_domains(&topology, &self.cpus_that(|cpu| cpu.active), rules, &setup)
    }

    /// Reads numbers in the order of [`Machine::text`]; `#` begins a comment.
    pub fn parse(text: &str) -> Machine {
        let numbers = text.lines().flat_map(|line| line.split('#').next().unwrap_or("").split_whitespace());
        let mut numbers = numbers.map(|number| number.parse::<i64>().expect("a number"));
        let mut next = || numbers.next().expect("one more number");
        let (nr_cpus, nodes) = (next(), next());
        let mut machine = Machine::nested(1, 1, 1, 1, 1);
        (machine.hybrid, machine.sched_debug) = (next() != 0, next() != 0);
        machine.node_reclaim_distance = next() as u32;
        machine.itmt = next() != 0;
        machine.relax_domain_level = u32::try_from(next()).ok();
        machine.force_sd_overlap = next() != 0;
        let cpu = |_| Cpu {
            core: next() as u32,
            cluster: next() as u32,
            llc: next() as u32,
            package: next() as u32,
            node: next() as u16,
            capacity: next() as u32,
            priority: next() as i32,
            online: next() != 0,
            active: next() != 0,
        };
        machine.cpus = (0..nr_cpus).map(cpu).collect();
        machine.distance = (0..nodes).map(|_| (0..nodes).map(|_| next() as u32).collect()).collect();
        machine
    }

    /// The machine as numbers: counts of CPUs and nodes and the settings; one line per CPU; the distances.
    pub fn text(&self) -> String {
        let relax = self.relax_domain_level.map_or(-1, i64::from);
        let mut out = format!(
            "{} {} {} {} {} {} {relax} {}\n",
            self.cpus.len(),
            self.distance.len(),
            u8::from(self.hybrid),
            u8::from(self.sched_debug),
            self.node_reclaim_distance,
            u8::from(self.itmt),
            u8::from(self.force_sd_overlap)
        );
        for cpu in &self.cpus {
            out += &format!(
                "{} {} {} {} {} {} {} {} {}\n",
                cpu.core,
                cpu.cluster,
                cpu.llc,
                cpu.package,
                cpu.node,
                cpu.capacity,
                cpu.priority,
                u8::from(cpu.online),
                u8::from(cpu.active)
            );
        }
        for row in &self.distance {
            out += &row.iter().map(u32::to_string).collect::<Vec<_>>().join(" ");
            out.push('\n');
        }
        out
    }

    /// A machine of up to 8 nodes, as odd as possible. Every fourth has CPUs of unequal capacity.
    pub fn random(seed: u64) -> Machine {
        let mut prng = Prng::stream(seed, "test machine", 0);
        let mut pick = |from: &[usize]| from[prng.below(from.len() as u64) as usize];
        let nodes = pick(&[1, 1, 2, 2, 3, 4, 4, 5, 6, 8]);
        let (llcs, clusters) = (pick(&[1, 1, 2, 3]), pick(&[1, 1, 2]));
        let (cores, threads) = (pick(&[1, 1, 2, 3]), pick(&[1, 2, 2, 4]));
        let nodes_per_package = pick(&[1, 1, 1, 2]);
        let mut machine = Machine::nested(nodes, llcs, clusters, cores, threads).with_distances({
            let (kind, near, far) = (pick(&[0, 1, 2, 3, 4, 5]), pick(&[12, 16, 20]), pick(&[21, 28, 31, 40]));
            let salt = pick(&[1, 3, 5, 7]);
            move |a, b| {
                let apart = a.abs_diff(b);
                let distance = match kind {
                    0 => far,
                    1 => 10 + 10 * apart.min(nodes - apart),
                    2 => 10 + 10 * apart,
                    3 => [near, far][usize::from((a ^ b).count_ones() > 1)],
                    4 => [near, far][usize::from(a / 2 != b / 2)],
                    _ => [near, far, 25, 33][(a.min(b) * salt + a.max(b)) % 4],
                };
                distance as u32
            }
        });
        let (hybrid, sched_debug, itmt) = (pick(&[0, 0, 0, 1]), pick(&[0, 0, 0, 1]), pick(&[0, 0, 1]));
        (machine.hybrid, machine.sched_debug, machine.itmt) = (hybrid == 1, sched_debug == 1, itmt == 1);
        machine.node_reclaim_distance = pick(&[30, 30, 32, 20]) as u32;
        machine.relax_domain_level = [None, Some(1), Some(2), Some(3)][pick(&[0, 0, 0, 1, 2, 3])];
        machine.force_sd_overlap = pick(&[0, 0, 0, 0, 0, 1]) == 1;
        let (offline, isolated, dead_threads) = (pick(&[0, 0, 0, 4]), pick(&[0, 0, 5]), pick(&[0, 0, 0, 9]));
        for (number, cpu) in machine.cpus.iter_mut().enumerate() {
            cpu.package = (usize::from(cpu.node) / nodes_per_package) as u32;
            cpu.priority = pick(&[1, 2, 3]) as i32;
            let unlucky = |odds: usize, drawn: usize| odds != 0 && number != 0 && drawn.is_multiple_of(odds);
            cpu.online = !unlucky(offline, pick(&[0, 1, 2, 3]));
            cpu.active = cpu.online && !unlucky(isolated, pick(&[0, 1, 2, 3, 4]));
            if seed.is_multiple_of(4) {
                cpu.capacity = [1024, 512, 300][(cpu.llc as usize + pick(&[0, 0, 0, 0, 1])) % 3];
            }
            if unlucky(dead_threads, pick(&[0, 1, 2, 3, 4, 5, 6, 7, 8])) {
                // A thread with a core of its own, as if its sibling were fused off.
                cpu.core = 10_000 + number as u32;
            }
        }
        match pick(&[0, 1, 2, 3]) {
            0 => {}
            1 => machine.cpus.sort_by_key(|cpu| cpu.core % 2),
            2 => (1..machine.cpus.len()).for_each(|at| machine.cpus.swap(at, 1 + pick(&[5, 11, 17, 23]) % at)),
            _ => machine.cpus.sort_by_key(|cpu| cpu.core % 5),
        }
        if pick(&[0, 0, 0, 0, 1]) == 1 {
            // A memory-only node.
            machine.distance.iter_mut().for_each(|row| row.push(33));
            machine.distance.push((0..=nodes).map(|node| if node == nodes { LOCAL_DISTANCE } else { 33 }).collect());
        }
        machine
    }
}
