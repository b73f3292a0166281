//! `SD_*`: what a scheduling domain is, and what may be done in it.
//!
//! The kernel renumbered and renamed these flags over time. So a set is stored in a numbering of our own, and shown in
//! a version's ([`SdFlags::value`], [`SdFlags::names`]).

use std::fmt;
use std::ops::{BitAnd, BitOr, BitOrAssign, Not, SubAssign};

/// A set of `SD_*` flags.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct SdFlags(u32);

macro_rules! sd_flags {
    ($( $(#[$doc:meta])* $name:ident = $bit:literal; )+) => {
        impl SdFlags {
            $( $(#[$doc])* pub const $name: SdFlags = SdFlags(1 << $bit); )+
        }
    };
}

sd_flags! {
    /// Balance load in this domain at all. Until v5.7 (36c5bdc43870 removed it, because it was always set).
    SD_LOAD_BALANCE = 0;
    /// Balance when about to become idle.
    SD_BALANCE_NEWIDLE = 1;
    /// Balance on exec.
    SD_BALANCE_EXEC = 2;
    /// Balance on fork and clone.
    SD_BALANCE_FORK = 3;
    /// Balance on wakeup.
    SD_BALANCE_WAKE = 4;
    /// Consider waking a task on the waking CPU.
    SD_WAKE_AFFINE = 5;
    /// CPUs of different capacities.
    SD_ASYM_CPUCAPACITY = 6;
    /// CPUs of every capacity that the machine has (v5.14: 2309a05d2abe).
    SD_ASYM_CPUCAPACITY_FULL = 7;
    /// The CPUs share one core's capacity: SMT.
    SD_SHARE_CPUCAPACITY = 8;
    /// The CPUs share a power domain. Until v5.9; no x86 level has it.
    SD_SHARE_POWERDOMAIN = 9;
    /// The CPUs share a level-2 cache or last-level-cache tags (v6.7: b95303e0aeaf).
    SD_CLUSTER = 10;
    /// The CPUs share the last level cache (`SD_SHARE_PKG_RESOURCES` before v6.9: 54de44274703).
    #[doc(alias = "SD_SHARE_PKG_RESOURCES")]
    SD_SHARE_LLC = 11;
    /// Only one CPU at a time balances levels like this.
    SD_SERIALIZE = 12;
    /// Busy CPUs are packed towards those of high priority.
    SD_ASYM_PACKING = 13;
    /// Tasks are spread over the child domains before two share one.
    SD_PREFER_SIBLING = 14;
    /// Groups of this level overlap.
    SD_OVERLAP = 15;
    /// The domain spans NUMA nodes.
    SD_NUMA = 16;
}

impl SdFlags {
    pub const NONE: SdFlags = SdFlags(0);

    /// Whether any of `flags` is set: the kernel's `sd->flags & flags`.
    #[inline]
    pub const fn has(self, flags: SdFlags) -> bool {
        self.0 & flags.0 != 0
    }

    /// Whether all of `flags` are set.
    #[inline]
    pub const fn has_all(self, flags: SdFlags) -> bool {
        self.0 & flags.0 == flags.0
    }

    #[inline]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The union, usable in constants.
    pub const fn with(self, flags: SdFlags) -> SdFlags {
        SdFlags(self.0 | flags.0)
    }

    /// The number in `sd->flags` of a kernel with this numbering.
    ///
    /// # Panics
    /// If a flag is set that such a kernel does not have.
    pub fn value(self, numbering: FlagNumbering) -> u32 {
        self.listed(numbering).map(|(_, bit, _)| 1 << bit).sum()
    }

    /// The names as a kernel with this numbering prints them, lowest bit first.
    ///
    /// # Panics
    /// If a flag is set that such a kernel does not have.
    pub fn names(self, numbering: FlagNumbering) -> Vec<&'static str> {
        self.listed(numbering).map(|(_, _, name)| name).collect()
    }

    fn listed(self, numbering: FlagNumbering) -> impl Iterator<Item = Listed> {
        let known = numbering.table().iter().fold(SdFlags::NONE, |all, &(flag, ..)| all | flag);
        assert!(known.has_all(self), "{self:?}: not all of these flags exist in {numbering:?}");
        numbering.table().iter().filter(move |(flag, ..)| self.has(*flag)).copied()
    }
}

/// Flags without effect in a domain that has one group, as sd_degenerate() and sd_parent_degenerate() list them. The
/// latter adds SD_PREFER_SIBLING, and SD_SERIALIZE on a machine with one node.
pub(super) const LISTED_GROUPS_MASK: SdFlags = SdFlags::SD_LOAD_BALANCE
    .with(SdFlags::SD_BALANCE_NEWIDLE)
    .with(SdFlags::SD_BALANCE_FORK)
    .with(SdFlags::SD_BALANCE_EXEC)
    .with(SdFlags::SD_SHARE_CPUCAPACITY)
    .with(SdFlags::SD_ASYM_CPUCAPACITY)
    .with(SdFlags::SD_SHARE_LLC)
    .with(SdFlags::SD_SHARE_POWERDOMAIN);

/// Flags with SDF_NEEDS_GROUPS: all but SD_WAKE_AFFINE.
pub(super) const SD_DEGENERATE_GROUPS_MASK: SdFlags = SdFlags(((1 << 17) - 1) & !SdFlags::SD_WAKE_AFFINE.0);

/// Flags with SDF_SHARED_CHILD, since SD_ASYM_PACKING lost it: if a domain has one, all domains below have it, too.
pub(super) const SD_SHARED_CHILD_MASK: SdFlags = SdFlags::SD_BALANCE_NEWIDLE
    .with(SdFlags::SD_BALANCE_EXEC)
    .with(SdFlags::SD_BALANCE_FORK)
    .with(SdFlags::SD_BALANCE_WAKE)
    .with(SdFlags::SD_WAKE_AFFINE)
    .with(SdFlags::SD_SHARE_CPUCAPACITY)
    .with(SdFlags::SD_SHARE_LLC);

/// A domain whose groups may overlap has one of these: SD_NUMA on NUMA levels, SD_OVERLAP where FORCE_SD_OVERLAP sets
/// it.
pub(super) const OVERLAPPING: SdFlags = SdFlags::SD_OVERLAP.with(SdFlags::SD_NUMA);

/// A flag, its bit number and its name in some version.
type Listed = (SdFlags, u32, &'static str);

crate::behaviour! {
    /// How the flags are numbered and called.
    pub enum FlagNumbering = "domains.flag_numbering" {
        ByHand = "by-hand", since "v2.6.7", commit "", "numbers written by hand in include/linux/sched.h, with gaps";
        ListedWithoutFull = "listed-without-full", since "v5.10", commit "b6e862f38672",
            "numbered by their place in include/linux/sched/sd_flags.h";
        Listed = "listed", since "v5.14", commit "c744dc4ab58d", "the same, with SD_ASYM_CPUCAPACITY_FULL inserted";
        ListedWithCluster = "listed-with-cluster", since "v6.7", commit "b95303e0aeaf",
            "SD_CLUSTER inserted; SD_SHARE_PKG_RESOURCES is called SD_SHARE_LLC (v6.9: 54de44274703)";
        ListedWithoutOverlap = "listed-without-overlap", since "v6.17", commit "1eec89a67141",
            "the same without SD_OVERLAP, which SD_NUMA says as well";
    }
}

impl FlagNumbering {
    fn table(self) -> &'static [Listed] {
        match self {
            FlagNumbering::ByHand => BY_HAND,
            FlagNumbering::ListedWithoutFull => LISTED_WITHOUT_FULL,
            FlagNumbering::Listed => LISTED,
            FlagNumbering::ListedWithCluster => LISTED_WITH_CLUSTER,
            FlagNumbering::ListedWithoutOverlap => LISTED_WITHOUT_OVERLAP,
        }
    }
}

const BY_HAND: &[Listed] = &[
    (SdFlags::SD_LOAD_BALANCE, 0, "SD_LOAD_BALANCE"),
    (SdFlags::SD_BALANCE_NEWIDLE, 1, "SD_BALANCE_NEWIDLE"),
    (SdFlags::SD_BALANCE_EXEC, 2, "SD_BALANCE_EXEC"),
    (SdFlags::SD_BALANCE_FORK, 3, "SD_BALANCE_FORK"),
    (SdFlags::SD_BALANCE_WAKE, 4, "SD_BALANCE_WAKE"),
    (SdFlags::SD_WAKE_AFFINE, 5, "SD_WAKE_AFFINE"),
    (SdFlags::SD_ASYM_CPUCAPACITY, 6, "SD_ASYM_CPUCAPACITY"),
    (SdFlags::SD_SHARE_CPUCAPACITY, 7, "SD_SHARE_CPUCAPACITY"),
    (SdFlags::SD_SHARE_POWERDOMAIN, 8, "SD_SHARE_POWERDOMAIN"),
    (SdFlags::SD_SHARE_LLC, 9, "SD_SHARE_PKG_RESOURCES"),
    (SdFlags::SD_SERIALIZE, 10, "SD_SERIALIZE"),
    (SdFlags::SD_ASYM_PACKING, 11, "SD_ASYM_PACKING"),
    (SdFlags::SD_PREFER_SIBLING, 12, "SD_PREFER_SIBLING"),
    (SdFlags::SD_OVERLAP, 13, "SD_OVERLAP"),
    (SdFlags::SD_NUMA, 14, "SD_NUMA"),
];

const LISTED_WITHOUT_FULL: &[Listed] = &[
    (SdFlags::SD_BALANCE_NEWIDLE, 0, "SD_BALANCE_NEWIDLE"),
    (SdFlags::SD_BALANCE_EXEC, 1, "SD_BALANCE_EXEC"),
    (SdFlags::SD_BALANCE_FORK, 2, "SD_BALANCE_FORK"),
    (SdFlags::SD_BALANCE_WAKE, 3, "SD_BALANCE_WAKE"),
    (SdFlags::SD_WAKE_AFFINE, 4, "SD_WAKE_AFFINE"),
    (SdFlags::SD_ASYM_CPUCAPACITY, 5, "SD_ASYM_CPUCAPACITY"),
    (SdFlags::SD_SHARE_CPUCAPACITY, 6, "SD_SHARE_CPUCAPACITY"),
    (SdFlags::SD_SHARE_LLC, 7, "SD_SHARE_PKG_RESOURCES"),
    (SdFlags::SD_SERIALIZE, 8, "SD_SERIALIZE"),
    (SdFlags::SD_ASYM_PACKING, 9, "SD_ASYM_PACKING"),
    (SdFlags::SD_PREFER_SIBLING, 10, "SD_PREFER_SIBLING"),
    (SdFlags::SD_OVERLAP, 11, "SD_OVERLAP"),
    (SdFlags::SD_NUMA, 12, "SD_NUMA"),
];

const LISTED: &[Listed] = &[
    (SdFlags::SD_BALANCE_NEWIDLE, 0, "SD_BALANCE_NEWIDLE"),
    (SdFlags::SD_BALANCE_EXEC, 1, "SD_BALANCE_EXEC"),
    (SdFlags::SD_BALANCE_FORK, 2, "SD_BALANCE_FORK"),
    (SdFlags::SD_BALANCE_WAKE, 3, "SD_BALANCE_WAKE"),
    (SdFlags::SD_WAKE_AFFINE, 4, "SD_WAKE_AFFINE"),
    (SdFlags::SD_ASYM_CPUCAPACITY, 5, "SD_ASYM_CPUCAPACITY"),
    (SdFlags::SD_ASYM_CPUCAPACITY_FULL, 6, "SD_ASYM_CPUCAPACITY_FULL"),
    (SdFlags::SD_SHARE_CPUCAPACITY, 7, "SD_SHARE_CPUCAPACITY"),
    (SdFlags::SD_SHARE_LLC, 8, "SD_SHARE_PKG_RESOURCES"),
    (SdFlags::SD_SERIALIZE, 9, "SD_SERIALIZE"),
    (SdFlags::SD_ASYM_PACKING, 10, "SD_ASYM_PACKING"),
    (SdFlags::SD_PREFER_SIBLING, 11, "SD_PREFER_SIBLING"),
    (SdFlags::SD_OVERLAP, 12, "SD_OVERLAP"),
    (SdFlags::SD_NUMA, 13, "SD_NUMA"),
];

const LISTED_WITH_CLUSTER: &[Listed] = &[
    (SdFlags::SD_BALANCE_NEWIDLE, 0, "SD_BALANCE_NEWIDLE"),
    (SdFlags::SD_BALANCE_EXEC, 1, "SD_BALANCE_EXEC"),
    (SdFlags::SD_BALANCE_FORK, 2, "SD_BALANCE_FORK"),
    (SdFlags::SD_BALANCE_WAKE, 3, "SD_BALANCE_WAKE"),
    (SdFlags::SD_WAKE_AFFINE, 4, "SD_WAKE_AFFINE"),
    (SdFlags::SD_ASYM_CPUCAPACITY, 5, "SD_ASYM_CPUCAPACITY"),
    (SdFlags::SD_ASYM_CPUCAPACITY_FULL, 6, "SD_ASYM_CPUCAPACITY_FULL"),
    (SdFlags::SD_SHARE_CPUCAPACITY, 7, "SD_SHARE_CPUCAPACITY"),
    (SdFlags::SD_CLUSTER, 8, "SD_CLUSTER"),
    (SdFlags::SD_SHARE_LLC, 9, "SD_SHARE_LLC"),
    (SdFlags::SD_SERIALIZE, 10, "SD_SERIALIZE"),
    (SdFlags::SD_ASYM_PACKING, 11, "SD_ASYM_PACKING"),
    (SdFlags::SD_PREFER_SIBLING, 12, "SD_PREFER_SIBLING"),
    (SdFlags::SD_OVERLAP, 13, "SD_OVERLAP"),
    (SdFlags::SD_NUMA, 14, "SD_NUMA"),
];

const LISTED_WITHOUT_OVERLAP: &[Listed] = &[
    (SdFlags::SD_BALANCE_NEWIDLE, 0, "SD_BALANCE_NEWIDLE"),
    (SdFlags::SD_BALANCE_EXEC, 1, "SD_BALANCE_EXEC"),
    (SdFlags::SD_BALANCE_FORK, 2, "SD_BALANCE_FORK"),
    (SdFlags::SD_BALANCE_WAKE, 3, "SD_BALANCE_WAKE"),
    (SdFlags::SD_WAKE_AFFINE, 4, "SD_WAKE_AFFINE"),
    (SdFlags::SD_ASYM_CPUCAPACITY, 5, "SD_ASYM_CPUCAPACITY"),
    (SdFlags::SD_ASYM_CPUCAPACITY_FULL, 6, "SD_ASYM_CPUCAPACITY_FULL"),
    (SdFlags::SD_SHARE_CPUCAPACITY, 7, "SD_SHARE_CPUCAPACITY"),
    (SdFlags::SD_CLUSTER, 8, "SD_CLUSTER"),
    (SdFlags::SD_SHARE_LLC, 9, "SD_SHARE_LLC"),
    (SdFlags::SD_SERIALIZE, 10, "SD_SERIALIZE"),
    (SdFlags::SD_ASYM_PACKING, 11, "SD_ASYM_PACKING"),
    (SdFlags::SD_PREFER_SIBLING, 12, "SD_PREFER_SIBLING"),
    (SdFlags::SD_NUMA, 13, "SD_NUMA"),
];

impl BitOr for SdFlags {
    type Output = SdFlags;
    #[inline]
    fn bitor(self, other: SdFlags) -> SdFlags {
        SdFlags(self.0 | other.0)
    }
}

impl BitAnd for SdFlags {
    type Output = SdFlags;
    #[inline]
    fn bitand(self, other: SdFlags) -> SdFlags {
        SdFlags(self.0 & other.0)
    }
}

impl Not for SdFlags {
    type Output = SdFlags;
    #[inline]
    fn not(self) -> SdFlags {
        SdFlags(!self.0)
    }
}

impl BitOrAssign for SdFlags {
    #[inline]
    fn bitor_assign(&mut self, other: SdFlags) {
        self.0 |= other.0;
    }
}

/// `flags -= SD_X` is the kernel's `flags &= ~SD_X`.
impl SubAssign for SdFlags {
    #[inline]
    fn sub_assign(&mut self, other: SdFlags) {
        self.0 &= !other.0;
    }
}

impl fmt::Debug for SdFlags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = BY_HAND
            .iter()
            .chain(LISTED_WITH_CLUSTER.iter().filter(|(flag, ..)| !BY_HAND.iter().any(|(old, ..)| old == flag)))
            .filter(|(flag, ..)| self.has(*flag))
            .map(|&(_, _, name)| name)
            .collect::<Vec<_>>();
        f.write_str(if names.is_empty() { "0" } else { "" })?;
        f.write_str(&names.join("|"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_numbering_gives_the_kernels_own_number() {
        let llc = SdFlags::SD_BALANCE_NEWIDLE | SdFlags::SD_WAKE_AFFINE | SdFlags::SD_SHARE_LLC;
        assert_eq!((llc | SdFlags::SD_LOAD_BALANCE).value(FlagNumbering::ByHand), 0x0001 | 0x0002 | 0x0020 | 0x0200);
        assert_eq!(llc.value(FlagNumbering::ListedWithoutFull), 0x001 | 0x010 | 0x080);
        assert_eq!(llc.value(FlagNumbering::Listed), 0x001 | 0x010 | 0x100);
        assert_eq!(llc.value(FlagNumbering::ListedWithCluster), 0x001 | 0x010 | 0x200);
        assert_eq!(
            llc.names(FlagNumbering::Listed),
            ["SD_BALANCE_NEWIDLE", "SD_WAKE_AFFINE", "SD_SHARE_PKG_RESOURCES"]
        );
        assert_eq!(llc.names(FlagNumbering::ListedWithCluster)[2], "SD_SHARE_LLC");
        assert_eq!(SdFlags::SD_NUMA.value(FlagNumbering::ByHand), 0x4000);
        assert_eq!(SdFlags::SD_NUMA.value(FlagNumbering::Listed), 0x2000);
        assert_eq!(SdFlags::SD_NUMA.value(FlagNumbering::ListedWithCluster), 0x4000);
        assert_eq!(SdFlags::SD_NUMA.value(FlagNumbering::ListedWithoutOverlap), 0x2000);
    }

    #[test]
    #[should_panic(expected = "not all of these flags exist")]
    fn a_flag_of_another_version_has_no_number() {
        SdFlags::SD_LOAD_BALANCE.value(FlagNumbering::Listed);
    }
}
