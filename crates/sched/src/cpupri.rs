//! cpupri.c: which CPUs run at which priority, so that a real-time task finds the CPU that loses the least.
//!
//! It uses its own levels: 0 is a CPU without real-time tasks, 1 to 99 are SCHED_FIFO 1 to 99, and above these come the
//! CPUs to which nothing may be pushed (those that run a deadline task, since v5.9).
//!
//! Differs: kernels until v5.10 have two more levels, one for idle CPUs, which they never use, and one for priority 0,
//! which no user has: the order of the levels in use is the same.

use units::{CpuId, CpuMask};

/// CPUPRI_NORMAL: only fair tasks, or none.
const CPUPRI_NORMAL: u8 = 0;
/// CPUPRI_HIGHER
const CPUPRI_HIGHER: u8 = 100;
/// The levels from `CPUPRI_NORMAL` to `CPUPRI_HIGHER`.
const CPUPRI_NR_PRIORITIES: usize = 101;

/// The state of a CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CpuPriority {
    /// The highest priority queued there, in the kernel's numbers: 0..=98 real-time, 99 or more none.
    Queued(i32),
    /// The CPU runs something above all real-time tasks.
    Higher,
    /// The CPU is not online.
    Invalid,
}

/// cpupri.c: convert_prio(). `None` is CPUPRI_INVALID.
fn convert_prio(priority: CpuPriority) -> Option<u8> {
    match priority {
        CpuPriority::Queued(prio) if prio < 99 => Some((99 - prio) as u8),
        CpuPriority::Queued(_) => Some(CPUPRI_NORMAL),
        CpuPriority::Higher => Some(CPUPRI_HIGHER),
        CpuPriority::Invalid => None,
    }
}

/// struct cpupri.
#[derive(Clone, Debug)]
pub struct Cpupri {
    /// `pri_to_cpu[]`
    pri_to_cpu: Vec<CpuMask>,
    cpu_to_pri: Vec<Option<u8>>,
}

/// cpupri.c: cpupri_init(). No CPU is known.
impl Default for Cpupri {
    fn default() -> Cpupri {
        Cpupri { pri_to_cpu: vec![CpuMask::default(); CPUPRI_NR_PRIORITIES], cpu_to_pri: Vec::new() }
    }
}

impl Cpupri {
    /// cpupri.c: cpupri_find(). The CPUs at the lowest priority below `prio` that are among `allowed`.
    pub fn cpupri_find(&self, prio: i32, allowed: &CpuMask) -> Option<CpuMask> {
        let below = usize::from(convert_prio(CpuPriority::Queued(prio))?);
        let vec = self.pri_to_cpu[..below].iter().find(|vec| vec.intersects(allowed))?;
        Some(vec.and(allowed))
    }

    /// cpupri.c: cpupri_find_fitness(). The same among the CPUs that `fit`, even at a higher priority; if none fits,
    /// the lowest without that condition.
    pub fn cpupri_find_fitness(&self, prio: i32, allowed: &CpuMask, fits: impl Fn(CpuId) -> bool) -> Option<CpuMask> {
        let below = usize::from(convert_prio(CpuPriority::Queued(prio))?);
        let fitting = |vec: &CpuMask| vec.and(allowed).iter().filter(|&cpu| fits(cpu)).collect::<CpuMask>();
        let found = self.pri_to_cpu[..below].iter().map(fitting).find(|mask| !mask.is_empty());
        found.or_else(|| self.cpupri_find(prio, allowed))
    }

    /// cpupri.c: cpupri_set().
    pub fn cpupri_set(&mut self, cpu: CpuId, priority: CpuPriority) {
        let new = convert_prio(priority);
        if self.cpu_to_pri.len() <= cpu.index() {
            self.cpu_to_pri.resize(cpu.index() + 1, None);
        }
        let old = std::mem::replace(&mut self.cpu_to_pri[cpu.index()], new);
        if new == old {
            return;
        }
        if let Some(new) = new {
            self.pri_to_cpu[usize::from(new)].set(cpu);
        }
        if let Some(old) = old {
            self.pri_to_cpu[usize::from(old)].clear(cpu);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_cpus_are_found_and_no_equals() {
        let mut cpupri = Cpupri::default();
        let all = CpuMask::all(4);
        assert_eq!(cpupri.cpupri_find(0, &all), None, "nobody is online");
        for (cpu, prio) in [(0, 100), (1, 49), (2, 49), (3, 0)] {
            cpupri.cpupri_set(CpuId(cpu), CpuPriority::Queued(prio));
        }
        let find = |cpupri: &Cpupri, prio, cpus: &str| {
            let allowed = cpus.bytes().map(|digit| CpuId(u16::from(digit - b'0'))).collect();
            cpupri.cpupri_find(prio, &allowed).map(|mask| mask.list())
        };
        assert_eq!(find(&cpupri, 98, "0123").as_deref(), Some("0"), "even priority 1 finds the CPU without any");
        assert_eq!(find(&cpupri, 30, "123").as_deref(), Some("1-2"));
        assert_eq!(find(&cpupri, 49, "123"), None, "an equal one is not pushed away");
        assert_eq!(find(&cpupri, 0, "3"), None);
        cpupri.cpupri_set(CpuId(1), CpuPriority::Higher);
        assert_eq!(find(&cpupri, 0, "123").as_deref(), Some("2"));
        cpupri.cpupri_set(CpuId(0), CpuPriority::Invalid);
        cpupri.cpupri_set(CpuId(1), CpuPriority::Queued(100));
        assert_eq!(find(&cpupri, 98, "0123").as_deref(), Some("1"));
    }

    #[test]
    fn a_cpu_that_fits_goes_before_a_lower_one_and_a_lower_one_before_none() {
        let mut cpupri = Cpupri::default();
        let all = CpuMask::all(4);
        for (cpu, prio) in [(0, 100), (1, 80), (2, 60), (3, 40)] {
            cpupri.cpupri_set(CpuId(cpu), CpuPriority::Queued(prio));
        }
        let find = |prio, fitting: &[u16]| {
            cpupri.cpupri_find_fitness(prio, &all, |cpu| fitting.contains(&cpu.0)).map(|mask| mask.list())
        };
        assert_eq!(find(50, &[0, 1, 2, 3]).as_deref(), Some("0"));
        assert_eq!(find(50, &[2, 3]).as_deref(), Some("2"), "not the lowest, but below");
        assert_eq!(find(50, &[3]).as_deref(), Some("0"), "what fits runs somebody above: any is better");
        assert_eq!(find(99, &[3]), None, "no real-time priority");
    }
}
