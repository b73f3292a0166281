//! The differences between kernel versions in NUMA balancing, each as a behaviour of its own.

use crate::behaviour;

behaviour! {
    /// Which nodes a group of tasks counts as its own: memory is spread over these, and faults between them are local.
    pub enum ActiveNodes = "numa.active_nodes" {
        Mask = "mask", since "v3.14", commit "",
            "a mask that a node enters with more than 6/16 of the most faults of a node, and leaves with less than 3/16";
        Share = "share", since "v4.6", commit "4142c3ebb685",
            "those with more than a third of the most faults; memory is spread by CPU use of the nodes";
    }
}

behaviour! {
    /// By what the scan period of a task is bounded.
    pub enum ScanBounds = "numa.scan_bounds" {
        Size = "size", since "v3.13", commit "", "by the size of its memory alone";
        Sharing = "sharing", since "v4.14", commit "b5dd77c8bdad",
            "a task of a group begins with, and may come to, a longer period: by the group's tasks and its share of shared faults";
    }
}

behaviour! {
    /// What the scan period follows.
    pub enum ScanAdjust = "numa.scan_adjust" {
        LocalFaults = "local-faults", since "v3.13", commit "",
            "the share of local faults; shared memory keeps it from becoming shorter";
        PrivateFaults = "private-faults", since "v4.14", commit "37ec97deb3a8",
            "the share of private faults, or else that of local ones: either makes it longer";
    }
}

behaviour! {
    /// When the scan period begins anew.
    pub enum ScanReset = "numa.scan_reset" {
        NumaMigration = "numa-migration", since "v3.13", commit "", "when NUMA balancing migrates the task";
        /// What it does not begin for came with 05cbdf4f5c19 (v4.19).
        NodeChange = "node-change", since "v4.19", commit "3f9672baaa70",
            "when the task comes to another node, unless that is the preferred one or it was on the wrong one before";
    }
}

behaviour! {
    /// What becomes of the count of local, remote and failed faults when the period is only doubled.
    pub enum LocalityReset = "numa.locality_reset" {
        Kept = "kept", since "v3.13", commit "", "it stays: a failed migration doubles every later period";
        Cleared = "cleared", since "v7.3", commit "e81ee0630837", "it is cleared as always (6.12.117 and 7.3.4 have it, 6.18.35 and 7.2.13 do not)";
    }
}

behaviour! {
    /// Whether a page must be found twice by tasks of a node before it moves there.
    pub enum EarlyMigration = "numa.early_migration" {
        Filtered = "filtered", since "v3.13", commit "", "always, but for its first fault";
        AtOnce = "at-once", since "v4.19", commit "37355bdc5a12",
            "not for the first and private faults of a task that prefers no node yet or was scanned at most four times";
    }
}

behaviour! {
    /// When faults are averaged and the preferred node is chosen.
    pub enum Placement = "numa.placement" {
        EachScan = "each-scan", since "v3.13", commit "", "at the first fault after each scan of the whole memory, and the task migrates then";
        WhenDue = "when-due", since "v4.19", commit "b6a60cf36d49",
            "the same, but only when another try to migrate is due, which is the one that migrates";
    }
}

behaviour! {
    /// Whose faults say which node a task of a group prefers.
    pub enum Preference = "numa.preference" {
        TaskAndGroup = "task-and-group", since "v3.14", commit "", "the group's, if the task has faults of its own";
        Group = "group", since "v4.19", commit "f03bb6760b8e", "the group's";
    }
}

behaviour! {
    /// Where on another node a task goes.
    pub enum Destination = "numa.destination" {
        ByCapacity = "by-capacity", since "v3.13", commit "",
            "to nodes of less load; to an idle CPU or for another task, as the sum of both weighs, if the loads of the \
             nodes stay within imbalance_pct";
        ByLoad = "by-load", since "v4.19", commit "",
            "to an idle CPU where the loads of the nodes would not differ more than they do; else for another task, and never \
             for little (after v4.16, by v4.19)";
        ByNodeType = "by-node-type", since "v5.7", commit "ff7db0bf24db",
            "to an idle CPU at once while the node has spare capacity (numa_type) and the load balancer would let it; \
             else for another task, and never for little";
    }
}

behaviour! {
    /// When a task of a group prefers from now on the node that it could go to.
    pub enum SecondChoice = "numa.second_choice" {
        ActiveNode = "active-node", since "v3.14", commit "", "when its group is active there: the last node looked at";
        AnyNode = "any-node", since "v4.19", commit "8cd45eee43bd", "always, and its own node if it can go nowhere";
    }
}

behaviour! {
    /// Which nodes near another one count with it on a machine with a backplane.
    pub enum NearbyNodes = "numa.nearby_nodes" {
        UpToDistance = "up-to-distance", since "v3.19", commit "", "those at most as far as the two nodes that are compared";
        Nearer = "nearer", since "v4.19", commit "0ee7e74dc0dc", "those nearer than that";
    }
}

behaviour! {
    /// What load balancing between nodes asks about a task whose memory is known.
    pub enum Locality = "numa.locality" {
        Faults = "faults", since "v4.3", commit "", "on which of both nodes it, or its group, has more faults";
        FaultsIfBusy = "faults-if-busy", since "v4.13", commit "739294fb03f5",
            "the same, for a CPU that is busy: an idle one takes it";
        WeightsUnlessIdle = "weights-unless-idle", since "v4.19", commit "f35678b6a170",
            "what both weigh with the nodes around them, unless the CPU idles; newly idle ones ask";
    }
}

behaviour! {
    /// Whether a new thread stays on the node that its creator prefers, when it is placed between nodes.
    pub enum NewThreads = "numa.new_threads" {
        Anywhere = "anywhere", since "v3.13", commit "", "no";
        Preferred = "preferred", since "v5.5", commit "57abff067a08",
            "yes, and one that prefers the idlest group's goes there";
    }
}

behaviour! {
    /// When a new task may first try to migrate to its memory.
    pub enum FirstMigration = "numa.first_migration" {
        WithCreator = "with-creator", since "v3.13", commit "", "when its creator may, whose time it is born with";
        AtOnce = "at-once", since "v6.0", commit "70ce3ea9aa4e", "at once";
    }
}

behaviour! {
    /// When the first scan of a new thread may come.
    pub enum FirstScan = "numa.first_scan" {
        Together = "together", since "v3.13", commit "", "as soon as it has run as long as its period";
        Staggered = "staggered", since "v4.18", commit "137844759843", "later, the more tasks share the memory";
    }
}

behaviour! {
    /// What the scanner walks over.
    pub enum ScanAreas = "numa.scan_areas" {
        All = "all", since "v3.8", commit "", "all memory of the process";
        AccessedAlone = "accessed-alone", since "v6.4", commit "fc137c0ddab2",
            "areas that the scanning task was seen to touch, after a delay, and from the process's third scan on no others";
        Accessed = "accessed", since "v6.7", commit "f169c62ff7cd",
            "areas that the scanning task was seen to touch, after a delay, once a scan, and others when none of these is left, the first two times, or after many scans";
    }
}

behaviour! {
    /// Whether a task may prefer a node without CPUs.
    pub enum MemoryNodes = "numa.memory_nodes" {
        AsOthers = "as-others", since "v3.13", commit "", "yes, though it cannot run there";
        Nearest = "nearest", since "v5.18", commit "5c7b1aaf139d", "no: the nearest node with CPUs is meant";
    }
}

behaviour! {
    /// Whether load balancing may take a task as hot that is as near to its memory on one node as on the other.
    pub enum EqualLocality = "numa.equal_locality" {
        Cold = "cold", since "v3.13", commit "", "no: it counts as drawn there";
        MayBeHot = "may-be-hot", since "v6.14", commit "a430d99e3490", "yes, if it ran a moment ago: its memory says nothing";
    }
}

behaviour! {
    /// With which tasks a task may change places that moves to its memory.
    pub enum SwapPartners = "numa.swap_partners" {
        AnyTask = "any-task", since "v3.13", commit "", "any that runs and does not end";
        OtherGroups = "other-groups", since "v6.0", commit "13ede3315087",
            "the same, but none of its own group while the node has spare capacity";
        WithMemory = "with-memory", since "v6.16", commit "9709eb0f845b",
            "of these those with memory of their own: in place of a kernel thread it moves alone";
    }
}

/// How one kernel version balances memory and tasks between nodes. A version is its predecessor with a few fields
/// changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NumaRules {
    pub active_nodes: ActiveNodes,
    pub scan_bounds: ScanBounds,
    pub scan_adjust: ScanAdjust,
    pub scan_reset: ScanReset,
    pub locality_reset: LocalityReset,
    pub early_migration: EarlyMigration,
    pub placement: Placement,
    pub preference: Preference,
    pub destination: Destination,
    pub second_choice: SecondChoice,
    pub nearby_nodes: NearbyNodes,
    pub locality: Locality,
    pub new_threads: NewThreads,
    pub first_scan: FirstScan,
    pub first_migration: FirstMigration,
    pub scan_areas: ScanAreas,
    pub memory_nodes: MemoryNodes,
    pub equal_locality: EqualLocality,
    pub swap_partners: SwapPartners,
}

impl NumaRules {
    pub const V4_5: NumaRules = NumaRules {
        active_nodes: ActiveNodes::Mask,
        scan_bounds: ScanBounds::Size,
        scan_adjust: ScanAdjust::LocalFaults,
        scan_reset: ScanReset::NumaMigration,
        locality_reset: LocalityReset::Kept,
        early_migration: EarlyMigration::Filtered,
        placement: Placement::EachScan,
        preference: Preference::TaskAndGroup,
        destination: Destination::ByCapacity,
        second_choice: SecondChoice::ActiveNode,
        nearby_nodes: NearbyNodes::UpToDistance,
        locality: Locality::Faults,
        new_threads: NewThreads::Anywhere,
        first_scan: FirstScan::Together,
        first_migration: FirstMigration::WithCreator,
        scan_areas: ScanAreas::All,
        memory_nodes: MemoryNodes::AsOthers,
        equal_locality: EqualLocality::Cold,
        swap_partners: SwapPartners::AnyTask,
    };

    /// Unchanged in v4.16.
    pub const V4_15: NumaRules = NumaRules {
        active_nodes: ActiveNodes::Share,
        scan_bounds: ScanBounds::Sharing,
        scan_adjust: ScanAdjust::PrivateFaults,
        locality: Locality::FaultsIfBusy,
        ..NumaRules::V4_5
    };

    /// As in 4.19.108, and in 5.4.286.
    pub const V4_19: NumaRules = NumaRules {
        destination: Destination::ByLoad,
        scan_reset: ScanReset::NodeChange,
        early_migration: EarlyMigration::AtOnce,
        placement: Placement::WhenDue,
        preference: Preference::Group,
        second_choice: SecondChoice::AnyNode,
        nearby_nodes: NearbyNodes::Nearer,
        locality: Locality::WeightsUnlessIdle,
        first_scan: FirstScan::Staggered,
        ..NumaRules::V4_15
    };

    pub const V5_10: NumaRules =
        NumaRules { destination: Destination::ByNodeType, new_threads: NewThreads::Preferred, ..NumaRules::V4_19 };

    /// v5.15, as 5.15.135, balances as 5.10.262 does.
    pub const V5_15: NumaRules = NumaRules::V5_10;

    pub const V6_1: NumaRules = NumaRules {
        first_migration: FirstMigration::AtOnce,
        memory_nodes: MemoryNodes::Nearest,
        swap_partners: SwapPartners::OtherGroups,
        ..NumaRules::V5_10
    };

    /// As in 6.6.17.
    pub const V6_6: NumaRules = NumaRules { scan_areas: ScanAreas::AccessedAlone, ..NumaRules::V6_1 };

    pub const V6_12: NumaRules =
        NumaRules { locality_reset: LocalityReset::Cleared, scan_areas: ScanAreas::Accessed, ..NumaRules::V6_6 };

    /// As in 6.18.35, which is older in `locality_reset` than 6.12.117.
    pub const V6_18: NumaRules = NumaRules {
        locality_reset: LocalityReset::Kept,
        equal_locality: EqualLocality::MayBeHot,
        swap_partners: SwapPartners::WithMemory,
        ..NumaRules::V6_12
    };

    pub const V7_2: NumaRules = NumaRules::V6_18;

    pub const V7_3: NumaRules = NumaRules { locality_reset: LocalityReset::Cleared, ..NumaRules::V7_2 };
}
