//! The numbers under which the directory knows cores.

use super::WORD;
use crate::topology::Topology;
use units::CpuId;

/// Where each core's bit is in a sharer set. The cores of one last level cache have adjacent bits, all in one word if
/// they fit, so that finding a sharer near a core takes a look at one word. Some bits may stay unused for that.
#[derive(Clone, Debug)]
pub(super) struct Berths {
    /// By the topology's core number.
    pub(super) of_core: Vec<u16>,
    /// The first CPU of each berth's core; `None` for an unused berth.
    cpus: Vec<Option<CpuId>>,
}

impl Berths {
    pub(super) fn new(topology: &Topology) -> Berths {
        let mut by_llc = vec![Vec::new(); topology.llcs().len()];
        for (core, part) in topology.cores().iter().enumerate() {
            let cpu = part.cpus.first().expect("a core has a CPU");
            by_llc[topology.cpu(cpu).llc as usize].push((core, cpu));
        }
        let mut berths = Berths { of_core: vec![0; topology.cores().len()], cpus: Vec::new() };
        for cores in by_llc {
            let next = berths.cpus.len();
            if cores.len() <= WORD && next % WORD + cores.len() > WORD {
                berths.cpus.resize(next.next_multiple_of(WORD), None);
            }
            for (core, cpu) in cores {
                berths.of_core[core] = berths.cpus.len() as u16;
                berths.cpus.push(Some(cpu));
            }
        }
        berths
    }

    /// The number of berths, unused ones included.
    pub(super) fn len(&self) -> usize {
        self.cpus.len()
    }

    /// The first CPU of each berth's core, `None` for an unused berth.
    pub(super) fn cpus(&self) -> impl Iterator<Item = Option<CpuId>> {
        self.cpus.iter().copied()
    }

    /// The first CPU of the core that has this berth.
    pub(super) fn cpu(&self, berth: u16) -> CpuId {
        self.cpus[berth as usize].expect("a holder of lines has a berth")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::{Numbering, from_synthetic};

    fn berths(synthetic: &str) -> Berths {
        Berths::new(&from_synthetic(synthetic, "test", Numbering::LinuxX86).expect("valid"))
    }

    #[test]
    fn no_last_level_cache_that_fits_into_a_word_stands_in_two() {
        let b = berths("pack:16 l3:1 core:15 pu:2");
        assert_eq!(b.of_core.len(), 240);
        // Four times fifteen in each word.
        assert_eq!((b.of_core[59], b.of_core[60], b.of_core[239]), (59, 64, 251));
        assert_eq!(b.len(), 252);
        for cores in b.of_core.chunks(15) {
            assert!(cores.iter().all(|berth| berth / WORD as u16 == cores[0] / WORD as u16));
        }
        for (core, &berth) in b.of_core.iter().enumerate() {
            assert_eq!(b.cpu(berth), CpuId::new(core), "a core's first CPU bears its number");
        }
        assert_eq!(b.cpus().flatten().count(), 240);
    }

    #[test]
    fn what_does_not_fit_is_not_moved_and_what_is_full_has_no_gaps() {
        assert_eq!(berths("pack:2 l3:1 core:80 pu:1").len(), 160);
        assert_eq!(berths("pack:4 l3:4 core:8 pu:2").len(), 128);
    }
}
