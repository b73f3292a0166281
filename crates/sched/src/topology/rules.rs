//! The differences between kernel versions in how domains are built, each as a behaviour of its own.

use super::flags::FlagNumbering;
use crate::behaviour;
use crate::itmt::SiblingRank;

/// How one kernel version builds scheduling domains. A version is its predecessor with a few fields changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DomainRules {
    pub flag_numbering: FlagNumbering,
    pub cluster_level: ClusterLevel,
    pub package_level: PackageLevel,
    pub node_level: NodeLevel,
    pub numa_distances: NumaDistances,
    pub numa_type: NumaType,
    pub reclaim_distance: ReclaimDistance,
    pub tuning: LevelTuning,
    pub smt_capacity: SmtCapacity,
    pub degeneration: Degeneration,
    pub groups: GroupBuilding,
    pub overlap: OverlapGroups,
    pub overlap_capacity: OverlapCapacity,
    pub group_flags: GroupFlags,
    pub group_cores: GroupCores,
    pub busy_cpus: BusyCpus,
    pub asym_capacity: AsymCapacity,
    pub asym_siblings: AsymSiblings,
    pub asym_packing: AsymPacking,
    pub sibling_rank: SiblingRank,
    pub imb_numa_nr: ImbNumaNr,
    pub highest_flag: HighestFlag,
    pub relax_domain_level: RelaxDomainLevel,
    pub newidle: NewidleHistory,
    pub smt_level: SmtLevel,
    pub interval_weight: IntervalWeight,
    pub shared: DomainShared,
    pub llc_id: LlcId,
}

behaviour! {
    /// Whether there is a level for CPUs that share a level-2 cache (CLS), between SMT and MC.
    pub enum ClusterLevel = "domains.cluster_level" {
        Absent = "absent", since "v2.6.7", commit "", "no such level";
        NotOnHybrid = "not-on-hybrid", since "v5.16", commit "66558b730f25",
            "CLS between SMT and MC, except on x86 CPUs with big and small cores (cabdc3a8475b)";
        Everywhere = "everywhere", since "v6.6", commit "17953249bf02", "CLS on hybrid CPUs too";
        Flagged = "flagged", since "v6.7", commit "b95303e0aeaf", "the same, marked SD_CLUSTER";
    }
}

behaviour! {
    /// What the level of a whole node below NUMA is called.
    pub enum PackageLevel = "domains.package_level" {
        Die = "die", since "v3.16", commit "143e1e28cb40", "DIE (CPU before)";
        Pkg = "pkg", since "v6.7", commit "f577cd57bfaa", "PKG";
    }
}

behaviour! {
    /// Whether a single node is a level of the NUMA part.
    pub enum NodeLevel = "domains.node_level" {
        Absent = "absent", since "v3.6", commit "", "NUMA levels start at the nearest remote distance";
        Present = "present", since "v4.15", commit "051f3ca02e46",
            "NODE, the level of distance to itself, precedes NUMA";
    }
}

behaviour! {
    /// Which entries of the distance table make NUMA levels.
    pub enum NumaDistances = "domains.numa_distances" {
        FromNode0 = "from-node-0", since "v3.6", commit "",
            "the distances from node 0, CPU-less nodes included; all rows with the parameter sched_debug";
        BetweenNodes = "between-nodes", since "v5.12", commit "620a6dc40754", "all distances between nodes (in 5.4.y and 5.10.y, too)";
        BetweenCpuNodes = "between-cpu-nodes", since "v5.18", commit "0fb3978b0aac", "those between nodes that have CPUs";
    }
}

behaviour! {
    /// How many distances make a machine more than directly connected.
    pub enum NumaType = "domains.numa_type" {
        OneRemoteDistance = "one-remote-distance", since "v3.19", commit "e3fe70b1f72e", "at most one remote distance: direct";
        LevelsCountedTwice = "levels-counted-twice", since "v4.15", commit "051f3ca02e46",
            "the node itself counts as a level but the threshold stayed, so two plain nodes are a backplane";
        OneRemoteDistanceAgain = "one-remote-distance-again", since "v4.19", commit "e5e96fafd902",
            "the threshold counts the level of the node itself (after v4.16); direct where nothing else fits";
    }
}

behaviour! {
    /// From which distance on tasks stay away at fork, exec and wakeup.
    pub enum ReclaimDistance = "domains.reclaim_distance" {
        Constant = "constant", since "v3.6", commit "", "RECLAIM_DISTANCE, 30 on x86";
        OfMachine = "of-machine", since "v5.4", commit "a55c7454a8c8",
            "node_reclaim_distance, which AMD EPYC sets to 32";
    }
}

behaviour! {
    /// What sd_init() sets for each kind of level.
    pub enum LevelTuning = "domains.level_tuning" {
        SiblingsSmtAndPackage = "siblings-smt-and-package", since "v3.16", commit "143e1e28cb40",
            "busy_factor 32, imbalance_pct 125; SD_PREFER_SIBLING in SMT and DIE; load indices";
        SiblingsBelowNuma = "siblings-below-numa", since "v4.15", commit "",
            "SD_PREFER_SIBLING in MC too";
        WithoutIndices = "without-indices", since "v5.3", commit "0e1fef63d92d", "the same, but no load indices";
        Tighter = "tighter", since "v5.10", commit "2208cdaa56c9",
            "busy_factor 16 (6e7499135db7), imbalance_pct 117; no load indices, no SD_LOAD_BALANCE (36c5bdc43870)";
    }
}

behaviour! {
    /// What a hardware thread counts as while its core has others.
    pub enum SmtCapacity = "domains.smt_capacity" {
        Gain = "gain", since "v2.6.30", commit "", "smt_gain (1178) divided by the core's threads";
        Full = "full", since "v5.0", commit "765d0af19f5f", "the CPU's own capacity";
    }
}

behaviour! {
    /// Which flags lose their meaning in a domain with one group.
    pub enum Degeneration = "domains.degeneration" {
        ListedFlags = "listed-flags", since "v2.6.7", commit "",
            "those listed in sd_degenerate() and sd_parent_degenerate()";
        NeedsGroups = "needs-groups", since "v5.10", commit "6f349818621d",
            "those with SDF_NEEDS_GROUPS: all but SD_WAKE_AFFINE";
    }
}

behaviour! {
    /// How the groups of a level without overlaps are linked.
    pub enum GroupBuilding = "domains.group_building" {
        ByFirstCpu = "by-first-cpu", since "v2.6.38", commit "", "once, by the domain's first CPU, in ascending order";
        ByEveryCpu = "by-every-cpu", since "v4.13", commit "0c0e776a9b0f",
            "by every CPU starting at itself, so that the last CPU's order stays; balance mask = span";
    }
}

behaviour! {
    /// How the groups of a NUMA level are chosen, linked and balanced.
    pub enum OverlapGroups = "domains.overlap_groups" {
        FromFirstCpu = "from-first-cpu", since "v3.0", commit "",
            "from the domain's first CPU on; capacity and mask belong to the CPU that began the group";
        FromOwnCpu = "from-own-cpu", since "v4.13", commit "73bb059f9b8a",
            "from the CPU itself on; the balance mask holds the CPUs whose child domain is the group (1676330ecfa8)";
        Descended = "descended", since "v5.13", commit "585b6d2723dc",
            "as before, but a child that reaches out of the domain is replaced by a lower one that does not";
    }
}

behaviour! {
    /// What the capacity of a group above a NUMA level is summed from.
    pub enum OverlapCapacity = "domains.overlap_capacity" {
        OfFirstGroups = "of-first-groups", since "v3.13", commit "",
            "the lowest group of each of its CPUs; min_capacity (v4.10: bf475ce0a3dd) is the smallest partial sum";
        OfCpus = "of-cpus", since "v5.6", commit "4c58f57fa6e9", "each of its CPUs";
    }
}

behaviour! {
    /// Whether a group remembers its child domain's flags.
    pub enum GroupFlags = "domains.group_flags" {
        Absent = "absent", since "v2.6.7", commit "", "no";
        OfChild = "of-child", since "v5.16", commit "16d364ba6ef2", "a copy made when the group is built";
        OfKeptChild = "of-kept-child", since "v6.6", commit "4efcc8bc7e08",
            "updated in the own group when a level in between is removed";
    }
}

behaviour! {
    /// Whether a group knows its number of cores.
    pub enum GroupCores = "domains.group_cores" {
        Absent = "absent", since "v2.6.7", commit "", "no";
        Counted = "counted", since "v6.6", commit "d24cb0d9113f", "yes";
    }
}

behaviour! {
    /// Where the number of busy CPUs of a last level cache is kept.
    pub enum BusyCpus = "domains.busy_cpus" {
        InGroupOfParent = "in-group-of-parent", since "v3.13", commit "",
            "in the capacity of the first group of sd_busy, the parent of the cache's domain";
        InDomainShared = "in-domain-shared", since "v4.9", commit "0e369d757578",
            "in sched_domain_shared, one for each domain of CPUs that share cache";
    }
}

behaviour! {
    /// Whether unequal capacities are looked for.
    pub enum AsymCapacity = "domains.asym_capacity" {
        Unseen = "unseen", since "v2.6.7", commit "", "no (from v4.10 an architecture may flag a level; none does)";
        OneLevel = "one-level", since "v4.20", commit "",
            "SD_ASYM_CPUCAPACITY at the lowest level where every CPU sees the biggest one, not above; there and below SD_BALANCE_WAKE, for \
             wakeups that look for the idlest CPU (as in 5.4.286)";
        FromOneLevel = "from-one-level", since "v5.7", commit "a526d466798d",
            "SD_ASYM_CPUCAPACITY from that level on; no SD_BALANCE_WAKE";
        Classified = "classified", since "v5.14", commit "c744dc4ab58d",
            "SD_ASYM_CPUCAPACITY and _FULL of each domain by its CPUs' capacities";
    }
}

behaviour! {
    /// Whether tasks are spread over groups whose CPUs differ in capacity: what becomes of SD_PREFER_SIBLING in the child of
    /// a domain with SD_ASYM_CPUCAPACITY.
    pub enum AsymSiblings = "domains.asym_siblings" {
        Cleared = "cleared", since "v4.20", commit "9c63e84db29b", "no: the child loses it";
        Kept = "kept", since "v7.3", commit "", "yes, as over any others: the child keeps it";
    }
}

behaviour! {
    /// Which x86 levels have SD_ASYM_PACKING where Turbo Boost Max 3.0 ranks the cores.
    pub enum AsymPacking = "domains.asym_packing" {
        Never = "never", since "v2.6.7", commit "", "none";
        UpToCache = "up-to-cache", since "v4.10", commit "d3d37d850d1d", "SMT, CLS and MC";
        AboveSmt = "above-smt", since "v6.5", commit "995998ebdebd", "CLS, MC and DIE or PKG (108af4b4bd38)";
    }
}

behaviour! {
    /// Which imbalance between nodes is allowed.
    pub enum ImbNumaNr = "domains.imb_numa_nr" {
        Absent = "absent", since "v2.6.7", commit "", "none";
        Pair = "pair", since "v5.6", commit "b396f52326de",
            "any while two tasks run; and a new task stays on its node while a CPU idles there";
        Quarter = "quarter", since "v5.11", commit "7d2b5dd0bcc4",
            "two tasks more than elsewhere while less than a quarter of a node's CPUs is busy, and just as long a new task stays";
        ByLlcs = "by-llcs", since "v6.0", commit "026b98a93bbd",
            "one task for each last level cache of a node, or 12.5% of the node's CPUs where it has one \
             (v5.18: e496132ebedd)";
    }
}

behaviour! {
    /// Where highest_flag_domain() ends its search.
    pub enum HighestFlag = "domains.highest_flag" {
        StopsAtFirstWithout = "stops-at-first-without", since "v2.6.32", commit "",
            "at the first domain without the flag";
        SkipsUnlessShared = "skips-unless-shared", since "v6.5", commit "40b4d3dc3282",
            "there only for flags with SDF_SHARED_CHILD, which SD_ASYM_PACKING has no more (ca528cc50189); \
             on to the top for others";
    }
}

behaviour! {
    /// What relax_domain_level does.
    pub enum RelaxDomainLevel = "domains.relax_domain_level" {
        SwitchesBothWays = "switches-both-ways", since "v2.6.26", commit "",
            "SD_BALANCE_WAKE and SD_BALANCE_NEWIDLE on up to that level, off above";
        SwitchesOffAbove = "switches-off-above", since "v5.5", commit "9ae7ab20b483", "both off above that level, never on";
        SwitchesOff = "switches-off", since "v6.10", commit "a1fd0b9d751f",
            "both off from that level on; in v6.1.y since 6.1.93";
    }
}

behaviour! {
    /// Whether a domain keeps the success rate of its newly-idle balancing.
    pub enum NewidleHistory = "domains.newidle_history" {
        Absent = "absent", since "v2.6.7", commit "", "no";
        HalfAtFirst = "half-at-first", since "v6.19", commit "33cf66d88306",
            "yes, beginning at one half; also in late releases of v6.1.y and v6.12.y";
    }
}

behaviour! {
    /// Whether cores of one thread have a level for their threads, which is removed again, but counts in the numbers of levels.
    pub enum SmtLevel = "domains.smt_level" {
        Always = "always", since "v2.6.7", commit "", "yes";
        IfThreads = "if-threads", since "v6.17", commit "f79c9aa446d6", "no, if all cores have one thread";
    }
}

behaviour! {
    /// Of which CPUs a domain's first balance interval is a millisecond each.
    pub enum IntervalWeight = "domains.interval_weight" {
        OfLevel = "of-level", since "v2.6.38", commit "", "all that are up, also those that are isolated or in another partition";
        OfSpan = "of-span", since "v7.1", commit "", "those of the domain";
    }
}

behaviour! {
    /// Which domains' CPUs share what wakeups know of idle cores and of how far to search.
    pub enum DomainShared = "domains.shared" {
        CacheLevels = "cache-levels", since "v4.9", commit "",
            "those of each level that shares cache; begins without a search for idle CPUs";
        CacheAndCapacities = "cache-and-capacities", since "v7.2", commit "fdfe5a8cd873",
            "those of the widest one that shares cache and, where capacities differ, of the narrowest with all of them, unless it spans nodes; begins with a search of as many CPUs as the number of the flag says";
    }
}

behaviour! {
    /// Which CPUs share a cache, to placement.
    pub enum LlcId = "domains.llc_id" {
        OfDomain = "of-domain", since "v3.3", commit "", "those of one domain: not those of two partitions, nor isolated ones";
        OfHardware = "of-hardware", since "v7.2", commit "",
            "those that do, in whatever domain; CPUs isolated since the boot all count as one cache";
    }
}

impl DomainRules {
    /// v4.5-rc1 and v4.5.
    pub const V4_5: DomainRules = DomainRules {
        flag_numbering: FlagNumbering::ByHand,
        cluster_level: ClusterLevel::Absent,
        package_level: PackageLevel::Die,
        node_level: NodeLevel::Absent,
        numa_distances: NumaDistances::FromNode0,
        numa_type: NumaType::OneRemoteDistance,
        reclaim_distance: ReclaimDistance::Constant,
        tuning: LevelTuning::SiblingsSmtAndPackage,
        smt_capacity: SmtCapacity::Gain,
        degeneration: Degeneration::ListedFlags,
        groups: GroupBuilding::ByFirstCpu,
        overlap: OverlapGroups::FromFirstCpu,
        overlap_capacity: OverlapCapacity::OfFirstGroups,
        group_flags: GroupFlags::Absent,
        group_cores: GroupCores::Absent,
        busy_cpus: BusyCpus::InGroupOfParent,
        asym_capacity: AsymCapacity::Unseen,
        asym_siblings: AsymSiblings::Cleared,
        asym_packing: AsymPacking::Never,
        sibling_rank: SiblingRank::Divided,
        imb_numa_nr: ImbNumaNr::Absent,
        highest_flag: HighestFlag::StopsAtFirstWithout,
        relax_domain_level: RelaxDomainLevel::SwitchesBothWays,
        newidle: NewidleHistory::Absent,
        smt_level: SmtLevel::Always,
        interval_weight: IntervalWeight::OfLevel,
        shared: DomainShared::CacheLevels,
        llc_id: LlcId::OfDomain,
    };

    pub const V4_15: DomainRules = DomainRules {
        node_level: NodeLevel::Present,
        numa_type: NumaType::LevelsCountedTwice,
        tuning: LevelTuning::SiblingsBelowNuma,
        groups: GroupBuilding::ByEveryCpu,
        overlap: OverlapGroups::FromOwnCpu,
        busy_cpus: BusyCpus::InDomainShared,
        asym_packing: AsymPacking::UpToCache,
        ..DomainRules::V4_5
    };

    pub const V4_16: DomainRules = DomainRules::V4_15;

    pub const V4_19: DomainRules = DomainRules { numa_type: NumaType::OneRemoteDistanceAgain, ..DomainRules::V4_16 };

    /// As in the long-term release 5.4.286, which is newer in `numa_distances` and `relax_domain_level` than v5.4 itself.
    pub const V5_4: DomainRules = DomainRules {
        numa_distances: NumaDistances::BetweenNodes,
        reclaim_distance: ReclaimDistance::OfMachine,
        tuning: LevelTuning::WithoutIndices,
        smt_capacity: SmtCapacity::Full,
        asym_capacity: AsymCapacity::OneLevel,
        relax_domain_level: RelaxDomainLevel::SwitchesOff,
        ..DomainRules::V4_19
    };

    /// As in 5.10.262, which is newer in `numa_distances` and `relax_domain_level` than v5.10 itself.
    pub const V5_10: DomainRules = DomainRules {
        flag_numbering: FlagNumbering::ListedWithoutFull,
        tuning: LevelTuning::Tighter,
        asym_capacity: AsymCapacity::FromOneLevel,
        imb_numa_nr: ImbNumaNr::Pair,
        degeneration: Degeneration::NeedsGroups,
        overlap_capacity: OverlapCapacity::OfCpus,
        ..DomainRules::V5_4
    };

    /// As in 5.15.135, which is older in `relax_domain_level` than 5.10.262.
    pub const V5_15: DomainRules = DomainRules {
        flag_numbering: FlagNumbering::Listed,
        overlap: OverlapGroups::Descended,
        asym_capacity: AsymCapacity::Classified,
        imb_numa_nr: ImbNumaNr::Quarter,
        relax_domain_level: RelaxDomainLevel::SwitchesOffAbove,
        ..DomainRules::V5_10
    };

    /// As in the long-term release 6.1.192, which is newer in `relax_domain_level` and `newidle` than v6.1 itself.
    pub const V6_1: DomainRules = DomainRules {
        cluster_level: ClusterLevel::NotOnHybrid,
        numa_distances: NumaDistances::BetweenCpuNodes,
        group_flags: GroupFlags::OfChild,
        sibling_rank: SiblingRank::DividedBySquare,
        imb_numa_nr: ImbNumaNr::ByLlcs,
        relax_domain_level: RelaxDomainLevel::SwitchesOff,
        newidle: NewidleHistory::HalfAtFirst,
        ..DomainRules::V5_15
    };

    /// As in the long-term release 6.6.17.
    pub const V6_6: DomainRules = DomainRules {
        cluster_level: ClusterLevel::Everywhere,
        group_flags: GroupFlags::OfKeptChild,
        group_cores: GroupCores::Counted,
        asym_packing: AsymPacking::AboveSmt,
        sibling_rank: SiblingRank::Alike,
        highest_flag: HighestFlag::SkipsUnlessShared,
        relax_domain_level: RelaxDomainLevel::SwitchesOffAbove,
        newidle: NewidleHistory::Absent,
        ..DomainRules::V6_1
    };

    /// As in the long-term release 6.12.117, which is newer in `newidle` than v6.12 itself.
    pub const V6_12: DomainRules = DomainRules {
        flag_numbering: FlagNumbering::ListedWithCluster,
        cluster_level: ClusterLevel::Flagged,
        package_level: PackageLevel::Pkg,
        relax_domain_level: RelaxDomainLevel::SwitchesOff,
        newidle: NewidleHistory::HalfAtFirst,
        ..DomainRules::V6_6
    };

    /// As in 6.18.35, which is newer in `interval_weight` than v6.18 itself.
    ///
    /// Differs: priorities of cores do not change (`sched_update_asym_prefer_cpu()`).
    pub const V6_18: DomainRules = DomainRules {
        flag_numbering: FlagNumbering::ListedWithoutOverlap,
        smt_level: SmtLevel::IfThreads,
        interval_weight: IntervalWeight::OfSpan,
        ..DomainRules::V6_12
    };

    /// As in 7.2.13.
    ///
    /// Differs: distances between the nodes of a Granite Rapids are not evened out (`arch_sched_node_distance()`).
    pub const V7_2: DomainRules =
        DomainRules { shared: DomainShared::CacheAndCapacities, llc_id: LlcId::OfHardware, ..DomainRules::V6_18 };

    /// As in 7.3.4.
    pub const V7_3: DomainRules = DomainRules { asym_siblings: AsymSiblings::Kept, ..DomainRules::V7_2 };
}
