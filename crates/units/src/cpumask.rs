//! Sets of CPUs, and arrays with one element for each.

use crate::{CpuId, Slots, unlikely};
use std::fmt;
use std::ops::{Index, IndexMut};

/// A set of CPUs. Equality is equality of the sets, whatever the capacities.
#[derive(Clone, Default)]
pub struct CpuMask {
    words: Vec<u64>,
}

impl CpuMask {
    /// The empty set, with room for `nr_cpus` CPUs; it grows when needed.
    pub fn new(nr_cpus: usize) -> CpuMask {
        CpuMask { words: vec![0; nr_cpus.div_ceil(64)] }
    }

    /// CPUs `0..nr_cpus`.
    pub fn all(nr_cpus: usize) -> CpuMask {
        (0..nr_cpus).map(CpuId::new).collect()
    }

    pub fn single(cpu: CpuId) -> CpuMask {
        std::iter::once(cpu).collect()
    }

    #[inline]
    pub fn set(&mut self, cpu: CpuId) {
        let word = cpu.index() / 64;
        if unlikely(word >= self.words.len()) {
            self.words.resize(word + 1, 0);
        }
        self.words[word] |= 1 << (cpu.index() % 64);
    }

    #[inline]
    pub fn clear(&mut self, cpu: CpuId) {
        if let Some(word) = self.words.get_mut(cpu.index() / 64) {
            *word &= !(1 << (cpu.index() % 64));
        }
    }

    #[inline]
    pub fn contains(&self, cpu: CpuId) -> bool {
        self.words.get(cpu.index() / 64).is_some_and(|w| w >> (cpu.index() % 64) & 1 == 1)
    }

    /// How many CPUs are in the set (`cpumask_weight`).
    pub fn weight(&self) -> usize {
        self.words.iter().map(|w| w.count_ones() as usize).sum()
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|&w| w == 0)
    }

    /// The set as it is kept, 64 CPUs to a word.
    #[inline]
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    #[inline]
    pub fn first(&self) -> Option<CpuId> {
        self.next_from(0)
    }

    /// The lowest member that is at least `from` (`cpumask_next` with `from` = previous + 1).
    #[inline]
    pub fn next_from(&self, from: usize) -> Option<CpuId> {
        let mut at = from / 64;
        let mut word = self.words.get(at)? & (u64::MAX << (from % 64));
        while word == 0 {
            at += 1;
            word = *self.words.get(at)?;
        }
        Some(CpuId((at * 64 + word.trailing_zeros() as usize) as u16))
    }

    /// Members in ascending order.
    #[inline]
    pub fn iter(&self) -> Members<'_> {
        let word = self.words.first().copied().unwrap_or(0);
        Members { words: &self.words, at: 0, word, left: self.words.len().saturating_sub(1), last: u64::MAX }
    }

    /// Members in ascending order from `start`, wrapping round (`for_each_cpu_wrap`).
    #[inline]
    pub fn iter_wrap(&self, start: CpuId) -> Members<'_> {
        let (at, from) = (start.index() / 64, u64::MAX << (start.index() % 64));
        match self.words.get(at) {
            // The word that contains the start comes again at the end, for the members before the start.
            Some(word) => Members { words: &self.words, at, word: word & from, left: self.words.len(), last: !from },
            None => self.iter(),
        }
    }

    /// Removes the members of `other` (`cpumask_andnot`).
    #[inline]
    pub fn subtract(&mut self, other: &CpuMask) {
        for (word, out) in self.words.iter_mut().zip(&other.words) {
            *word &= !out;
        }
    }

    pub fn intersects(&self, other: &CpuMask) -> bool {
        self.words.iter().zip(&other.words).any(|(a, b)| a & b != 0)
    }

    pub fn is_subset(&self, of: &CpuMask) -> bool {
        self.words.iter().enumerate().all(|(i, w)| w & !of.words.get(i).copied().unwrap_or(0) == 0)
    }

    pub fn and(&self, other: &CpuMask) -> CpuMask {
        CpuMask { words: self.words.iter().zip(&other.words).map(|(a, b)| a & b).collect() }
    }

    pub fn or(&self, other: &CpuMask) -> CpuMask {
        let mut union = self.clone();
        union.or_with(other);
        union
    }

    pub fn or_with(&mut self, other: &CpuMask) {
        if other.words.len() > self.words.len() {
            self.words.resize(other.words.len(), 0);
        }
        for (a, b) in self.words.iter_mut().zip(&other.words) {
            *a |= b;
        }
    }

    /// `self = a & b`, without an allocation if there is room (`cpumask_and`).
    pub fn assign_and(&mut self, a: &CpuMask, b: &CpuMask) {
        self.words.clear();
        self.words.extend(a.words.iter().zip(&b.words).map(|(x, y)| x & y));
    }

    /// The kernel's list syntax: `0-3,8`.
    pub fn list(&self) -> String {
        let mut out = String::new();
        let mut cpus = self.iter().map(CpuId::index).peekable();
        while let Some(first) = cpus.next() {
            let mut last = first;
            while cpus.peek() == Some(&(last + 1)) {
                last = cpus.next().unwrap_or(last);
            }
            if !out.is_empty() {
                out.push(',');
            }
            out.push_str(&first.to_string());
            if last > first {
                out.push('-');
                out.push_str(&last.to_string());
            }
        }
        out
    }

    /// The kernel's `%*pb` form: 32-bit words in hexadecimal, most significant first, for `nr_cpus` CPUs.
    pub fn hex(&self, nr_cpus: usize) -> String {
        let half = |i: usize| (self.words.get(i / 2).copied().unwrap_or(0) >> (32 * (i % 2))) as u32;
        let top_bits = if nr_cpus.is_multiple_of(32) { 32 } else { nr_cpus % 32 };
        let words = nr_cpus.div_ceil(32).max(1);
        (0..words)
            .rev()
            .map(|i| format!("{:0width$x}", half(i), width = if i + 1 == words { top_bits.div_ceil(4) } else { 8 }))
            .collect::<Vec<_>>()
            .join(",")
    }
}

/// An iterator over a set's members.
#[derive(Clone, Debug)]
pub struct Members<'a> {
    words: &'a [u64],
    /// The index of the present word, and the members of it that are still to come.
    at: usize,
    word: u64,
    /// How many words are still to come, and which bits count in the last one.
    left: usize,
    last: u64,
}

impl Iterator for Members<'_> {
    type Item = CpuId;

    #[inline]
    fn next(&mut self) -> Option<CpuId> {
        while self.word == 0 {
            self.left = self.left.checked_sub(1)?;
            self.at += 1;
            if self.at >= self.words.len() {
                self.at = 0;
            }
            self.word = self.words[self.at];
            if self.left == 0 {
                self.word &= self.last;
            }
        }
        let bit = self.word.trailing_zeros() as usize;
        self.word &= self.word - 1;
        Some(CpuId((self.at * 64 + bit) as u16))
    }

    /// The same to the end, word by word: faster for walks that are never cut short.
    #[inline]
    fn fold<B, F: FnMut(B, CpuId) -> B>(mut self, start: B, mut add: F) -> B {
        let mut sum = start;
        loop {
            let first = self.at * 64;
            while self.word != 0 {
                sum = add(sum, CpuId((first + self.word.trailing_zeros() as usize) as u16));
                self.word &= self.word - 1;
            }
            if self.left == 0 {
                return sum;
            }
            self.left -= 1;
            self.at = if self.at + 1 < self.words.len() { self.at + 1 } else { 0 };
            self.word = self.words[self.at];
            if self.left == 0 {
                self.word &= self.last;
            }
        }
    }
}

impl PartialEq for CpuMask {
    fn eq(&self, other: &CpuMask) -> bool {
        let longest = self.words.len().max(other.words.len());
        (0..longest).all(|i| self.words.get(i).copied().unwrap_or(0) == other.words.get(i).copied().unwrap_or(0))
    }
}

impl Eq for CpuMask {}

impl FromIterator<CpuId> for CpuMask {
    fn from_iter<I: IntoIterator<Item = CpuId>>(cpus: I) -> CpuMask {
        let mut mask = CpuMask::default();
        for cpu in cpus {
            mask.set(cpu);
        }
        mask
    }
}

impl fmt::Debug for CpuMask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{{}}}", self.list())
    }
}

/// One `T` for each CPU (`DEFINE_PER_CPU`).
#[derive(Clone, Debug, Default)]
pub struct PerCpu<T>(Slots<T>);

impl<T> PerCpu<T> {
    pub fn from_fn(nr_cpus: usize, make: impl FnMut(CpuId) -> T) -> PerCpu<T> {
        PerCpu((0..nr_cpus).map(CpuId::new).map(make).collect())
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = (CpuId, &T)> {
        self.0.iter().enumerate().map(|(i, t)| (CpuId(i as u16), t))
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = (CpuId, &mut T)> {
        self.0.iter_mut().enumerate().map(|(i, t)| (CpuId(i as u16), t))
    }
}

impl<T> Index<CpuId> for PerCpu<T> {
    type Output = T;
    #[inline]
    fn index(&self, cpu: CpuId) -> &T {
        &self.0[cpu.index()]
    }
}

impl<T> IndexMut<CpuId> for PerCpu<T> {
    #[inline]
    fn index_mut(&mut self, cpu: CpuId) -> &mut T {
        &mut self.0[cpu.index()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mask(cpus: &[usize]) -> CpuMask {
        cpus.iter().map(|&c| CpuId::new(c)).collect()
    }

    #[test]
    fn iteration_wraps_where_the_kernel_wraps() {
        let m = mask(&[1, 3, 64, 130]);
        let order = |start| m.iter_wrap(CpuId::new(start)).map(CpuId::index).collect::<Vec<_>>();
        assert_eq!(order(3), [3, 64, 130, 1]);
        assert_eq!(order(65), [130, 1, 3, 64]);
        assert_eq!(order(131), [1, 3, 64, 130]);
        assert_eq!(order(0), [1, 3, 64, 130]);
        assert_eq!(order(200), [1, 3, 64, 130]);
        for start in 0..200 {
            let mut whole = Vec::new();
            m.iter_wrap(CpuId::new(start)).for_each(|cpu| whole.push(cpu.index()));
            let mut walk = m.iter_wrap(CpuId::new(start));
            let steps: Vec<usize> = std::iter::from_fn(|| walk.next()).map(CpuId::index).collect();
            assert_eq!(whole, steps, "from {start}");
        }
        assert_eq!(mask(&[7]).iter_wrap(CpuId(8)).collect::<Vec<_>>(), [CpuId(7)]);
        assert_eq!(CpuMask::default().iter_wrap(CpuId(8)).next(), None);
    }

    #[test]
    fn walks_agree_with_looking_at_every_cpu() {
        let mut random = crate::Prng::stream(3, "cpumask", 0);
        for _ in 0..500 {
            let nr_cpus = 1 + random.below(200) as usize;
            let density = 1 + random.below(20);
            let members: Vec<usize> = (0..nr_cpus).filter(|_| random.below(20) < density).collect();
            let mask = mask(&members);
            let start = random.below(nr_cpus as u64 + 70) as usize;
            let of = |cpus: Members| cpus.map(CpuId::index).collect::<Vec<_>>();
            assert_eq!(of(mask.iter()), members);
            let (before, from): (Vec<usize>, Vec<usize>) = members.iter().partition(|&&cpu| cpu < start);
            assert_eq!(of(mask.iter_wrap(CpuId::new(start))), [from, before].concat());
        }
    }

    #[test]
    fn what_is_subtracted_is_gone() {
        let mut rest = mask(&[1, 2, 70, 130]);
        rest.subtract(&mask(&[2, 3, 70]));
        assert_eq!(rest, mask(&[1, 130]));
    }

    #[test]
    fn lists_and_hex_are_the_kernels() {
        assert_eq!(mask(&[0, 1, 2, 5, 7, 8]).list(), "0-2,5,7-8");
        assert_eq!(mask(&[0, 35]).hex(48), "0008,00000001");
        assert_eq!(mask(&[0, 7]).hex(8), "81");
    }

    #[test]
    fn sets_compare_as_sets() {
        let mut wide = CpuMask::new(256);
        wide.set(CpuId(2));
        assert_eq!(wide, mask(&[2]));
        assert!(mask(&[2]).is_subset(&wide) && wide.is_subset(&mask(&[2, 3])));
        assert!(!mask(&[2, 200]).is_subset(&mask(&[2])));
        let mut into = CpuMask::default();
        into.assign_and(&mask(&[1, 2, 3]), &mask(&[2, 3, 4]));
        assert_eq!(into, mask(&[2, 3]));
    }
}
