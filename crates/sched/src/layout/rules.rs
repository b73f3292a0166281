//! What a kernel build decides about where its objects are, as behaviours that can be switched one by one.

use crate::behaviour;

behaviour! {
    /// Where `load_avg` of `struct task_group` lies, which every CPU of the group adds to.
    pub enum TgLoadAvgLine = "layout.tg_load_avg" {
        Shared = "shared", since "v4.3", commit "",
            "right behind se, cfs_rq and shares, which every CPU of the group reads at each tick";
        OwnLine = "own-line", since "v4.5", commit "",
            "aligned to a cache line (____cacheline_aligned), away from what stands before it";
    }
}

behaviour! {
    /// What `struct task_group` is allocated from.
    pub enum TaskGroupCache = "layout.task_group_cache" {
        /// From 192 bytes on every size class is a multiple of a line.
        Kmalloc = "kmalloc", since "v2.6.25", commit "",
            "kzalloc(): each group has a size class to itself, 512 or 1024 bytes";
        Aligned = "aligned", since "v4.5", commit "",
            "a cache of their own (task_group_cache), each group aligned to a cache line";
        /// What `KMEM_CACHE()` makes of a structure that asks for no alignment. No kernel here has it.
        Packed = "packed", since "none", commit "",
            "a cache of their own without alignment: a group ends on the line where the next one begins";
    }
}

behaviour! {
    /// Where CPUs' run queues lie.
    pub enum PerCpuAreas = "layout.percpu_areas" {
        Padded = "padded", since "v2.6.23", commit "",
            "each begins on a line of its own (DEFINE_PER_CPU_SHARED_ALIGNED)";
        /// No kernel here has it.
        Packed = "packed", since "none", commit "",
            "an array without alignment: wake_list of one CPU lies on the line of the next one's lock; nothing else since \
             v4.14, whose run queues fill whole lines (cfs.removed)";
    }
}

/// Where objects lie in memory, in one kernel version.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LayoutRules {
    pub tg_load_avg: TgLoadAvgLine,
    pub task_group_cache: TaskGroupCache,
    pub percpu_areas: PerCpuAreas,
}

impl LayoutRules {
    /// v4.5-rc1 and all later ones.
    pub const V4_5: LayoutRules = LayoutRules {
        tg_load_avg: TgLoadAvgLine::OwnLine,
        task_group_cache: TaskGroupCache::Aligned,
        percpu_areas: PerCpuAreas::Padded,
    };
}
