//! CPU masks, each stored once: every CPU has its own domain on a level, but only a few spans differ.

use units::{CpuId, CpuMask};

/// A mask of [`Masks`]. Two ids are equal if and only if the sets are.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct MaskId(pub u32);

/// Distinct masks with their weights.
#[derive(Clone, Debug, Default)]
pub struct Masks {
    masks: Vec<CpuMask>,
    weights: Vec<u32>,
    /// Highest member; CPU 0 for the empty set.
    last: Vec<CpuId>,
    /// The ids of the masks by the index of their first CPU; few masks share a first CPU.
    by_first: Vec<Vec<MaskId>>,
    /// The id of the empty set.
    empty: Option<MaskId>,
}

impl Masks {
    /// The id of this set, new or known.
    pub fn intern(&mut self, mask: CpuMask) -> MaskId {
        let next = MaskId(self.masks.len() as u32);
        let Some(first) = mask.first() else {
            let id = *self.empty.get_or_insert(next);
            if id == next {
                self.push(mask);
            }
            return id;
        };
        if first.index() >= self.by_first.len() {
            self.by_first.resize(first.index() + 1, Vec::new());
        }
        let known = &mut self.by_first[first.index()];
        if let Some(&id) = known.iter().find(|id| self.masks[id.0 as usize] == mask) {
            return id;
        }
        known.push(next);
        self.push(mask);
        next
    }

    fn push(&mut self, mask: CpuMask) {
        self.weights.push(mask.weight() as u32);
        self.last.push(mask.iter().last().unwrap_or_default());
        self.masks.push(mask);
    }

    #[inline]
    pub fn get(&self, id: MaskId) -> &CpuMask {
        &self.masks[id.0 as usize]
    }

    /// `cpumask_weight()`, counted once.
    #[inline]
    pub fn weight(&self, id: MaskId) -> u32 {
        self.weights[id.0 as usize]
    }

    /// `cpumask_first()`.
    ///
    /// # Panics
    /// If the set is empty.
    pub fn first(&self, id: MaskId) -> CpuId {
        self.get(id).first().expect("a mask with members")
    }

    /// The highest member.
    pub fn last(&self, id: MaskId) -> CpuId {
        self.last[id.0 as usize]
    }

    /// How many distinct masks there are; ids are smaller.
    pub fn len(&self) -> usize {
        self.masks.len()
    }

    pub fn is_empty(&self) -> bool {
        self.masks.is_empty()
    }

    pub fn is_subset(&self, inner: MaskId, outer: MaskId) -> bool {
        inner == outer || self.get(inner).is_subset(self.get(outer))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_sets_have_equal_ids() {
        let mask = |cpus: &[u16]| cpus.iter().map(|&c| CpuId(c)).collect::<CpuMask>();
        let mut masks = Masks::default();
        let (a, b) = (masks.intern(mask(&[3, 70])), masks.intern(mask(&[3, 71])));
        let empty = masks.intern(CpuMask::new(64));
        assert_ne!(a, b);
        assert_eq!(masks.intern(mask(&[70, 3])), a);
        assert_eq!(masks.intern(CpuMask::default()), empty);
        assert_eq!((masks.len(), masks.weight(a), masks.weight(empty)), (3, 2, 0));
        let both = masks.intern(mask(&[3, 70, 71]));
        assert!(masks.is_subset(a, both) && !masks.is_subset(both, a) && masks.is_subset(empty, a));
    }
}
