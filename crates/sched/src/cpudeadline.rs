//! cpudeadline.c: which CPUs have the latest deadlines: a heap of the earliest deadline of each CPU, the latest on top,
//! and the set of CPUs without deadline tasks.

use units::{CpuId, CpuMask};

/// Whether `a` is before `b` on a clock that wraps.
#[inline]
pub(crate) fn dl_time_before(a: u64, b: u64) -> bool {
    (a.wrapping_sub(b) as i64) < 0
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Item {
    dl: u64,
    cpu: CpuId,
}

/// struct cpudl.
#[derive(Clone, Debug, Default)]
pub struct Cpudl {
    elements: Vec<Item>,
    /// The position of each CPU in `elements`.
    idx: Vec<Option<u32>>,
    pub free_cpus: CpuMask,
}

impl Cpudl {
    fn place(&mut self, at: usize, item: Item) {
        self.elements[at] = item;
        self.idx[item.cpu.index()] = Some(at as u32);
    }

    fn index_of(&mut self, cpu: CpuId) -> Option<usize> {
        if self.idx.len() <= cpu.index() {
            self.idx.resize(cpu.index() + 1, None);
        }
        self.idx[cpu.index()].map(|at| at as usize)
    }

    /// cpudeadline.c: cpudl_heapify_down().
    fn cpudl_heapify_down(&mut self, at: usize) {
        let item = self.elements[at];
        let mut at = at;
        loop {
            let (left, right) = (2 * at + 1, 2 * at + 2);
            let (mut largest, mut largest_dl) = (at, item.dl);
            for child in [left, right] {
                if child < self.elements.len() && dl_time_before(largest_dl, self.elements[child].dl) {
                    (largest, largest_dl) = (child, self.elements[child].dl);
                }
            }
            if largest == at {
                break;
            }
            self.place(at, self.elements[largest]);
            at = largest;
        }
        self.place(at, item);
    }

    /// cpudeadline.c: cpudl_heapify_up(). An equal parent moves down.
    fn cpudl_heapify_up(&mut self, at: usize) {
        let item = self.elements[at];
        let mut at = at;
        while at > 0 {
            let parent = (at - 1) / 2;
            if dl_time_before(item.dl, self.elements[parent].dl) {
                break;
            }
            self.place(at, self.elements[parent]);
            at = parent;
        }
        self.place(at, item);
    }

    /// cpudeadline.c: cpudl_heapify().
    fn cpudl_heapify(&mut self, at: usize) {
        if at > 0 && dl_time_before(self.elements[(at - 1) / 2].dl, self.elements[at].dl) {
            self.cpudl_heapify_up(at);
        } else {
            self.cpudl_heapify_down(at);
        }
    }

    /// cpudeadline.c: cpudl_maximum(). The CPU whose earliest deadline is the latest of all.
    #[doc(alias = "cpudl_maximum")]
    pub fn latest(&self) -> Option<(CpuId, u64)> {
        self.elements.first().map(|item| (item.cpu, item.dl))
    }

    /// cpudeadline.c: cpudl_set(). Sets the earliest deadline of `cpu`, in ns.
    pub fn cpudl_set(&mut self, cpu: CpuId, dl: u64) {
        match self.index_of(cpu) {
            Some(at) => {
                self.elements[at].dl = dl;
                self.cpudl_heapify(at);
            }
            None => {
                self.elements.push(Item { dl, cpu });
                let at = self.elements.len() - 1;
                self.idx[cpu.index()] = Some(at as u32);
                self.cpudl_heapify_up(at);
                self.free_cpus.clear(cpu);
            }
        }
    }

    /// cpudeadline.c: cpudl_clear(). `cpu` has no deadline tasks, and takes some if it is online.
    #[doc(alias = "cpudl_set_freecpu")]
    #[doc(alias = "cpudl_clear_freecpu")]
    pub fn cpudl_clear(&mut self, cpu: CpuId, online: bool) {
        if let Some(at) = self.index_of(cpu) {
            let last = self.elements.pop().expect("it is in the heap");
            self.idx[cpu.index()] = None;
            if at < self.elements.len() {
                self.place(at, last);
                self.cpudl_heapify(at);
            }
        }
        match online {
            true => self.free_cpus.set(cpu),
            false => self.free_cpus.clear(cpu),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::Prng;

    #[test]
    fn the_top_is_the_latest_whatever_comes_and_goes() {
        let mut random = Prng::stream(1, "cpudl", 0);
        let mut cpudl = Cpudl::default();
        let mut model: Vec<Option<u64>> = vec![None; 9];
        for _ in 0..5_000 {
            let cpu = random.below(9) as usize;
            if random.below(3) == 0 {
                cpudl.cpudl_clear(CpuId::new(cpu), true);
                model[cpu] = None;
            } else {
                let dl = random.below(20);
                cpudl.cpudl_set(CpuId::new(cpu), dl);
                model[cpu] = Some(dl);
            }
            assert_eq!(cpudl.latest().map(|(_, dl)| dl), model.iter().flatten().copied().max());
            let busy = model.iter().flatten().count();
            assert!((0..9).all(|c| model[c].is_none() || !cpudl.free_cpus.contains(CpuId::new(c))));
            assert_eq!(cpudl.elements.len(), busy);
        }
    }

    #[test]
    fn clocks_wrap() {
        assert!(dl_time_before(u64::MAX, 1) && !dl_time_before(1, u64::MAX) && !dl_time_before(3, 3));
    }
}
