//! Where task groups are in memory, and each of their members: `struct task_group` declares the order, an allocator the
//! distance.

use super::rules::{TaskGroupCache, TgLoadAvgLine};
use super::{LINE_BYTES, Line, Region};
use crate::sched::TgId;

/// Members of `struct task_group` that several CPUs touch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum TaskGroupField {
    /// The array of the group's entities, read on every walk up the hierarchy.
    Se,
    /// The array of the group's queues.
    CfsRq,
    Shares,
    LoadAvg,
    /// The group above.
    Parent,
    /// cfs_bandwidth.lock and the runtime pool behind it.
    CfsBandwidth,
}

const NR_FIELDS: usize = 6;
const NAMES: [&str; NR_FIELDS] = ["se", "cfs_rq", "shares", "load_avg", "parent", "cfs_bandwidth"];

/// `struct task_group` as one kernel version declares it, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TaskGroupStructure {
    /// Where `se`, `cfs_rq` and `shares` begin: `struct cgroup_subsys_state` precedes them.
    pub se: u32,
    pub cfs_rq: u32,
    pub shares: u32,
    /// Where the members declared before `load_avg` end: after `shares`, or `idle`.
    pub head: u32,
    /// Bytes between `load_avg`, including it, and `rcu`.
    pub behind_load_avg: u32,
    /// The size of `struct cfs_bandwidth` and what follows it.
    pub tail: u32,
}

impl TaskGroupStructure {
    /// That of v4.4, whose css has no `online_cnt` yet (aa226ff4a1ce, which v4.5 has; assumed to have come after its first
    /// release candidate). With hrtimers of 64 bytes (without `TIMER_STATS`).
    pub const V4_4: TaskGroupStructure = TaskGroupStructure::beginning_with_se(176, 200, 216);

    /// That of v4.5 to v4.16.
    pub const V4_5: TaskGroupStructure = TaskGroupStructure::beginning_with_se(184, 208, 216);

    /// From the types of 4.19.108 as the recorder builds old kernels: a css of 240 bytes, as each counts its references in line.
    pub const V4_19: TaskGroupStructure = TaskGroupStructure::beginning_with_se(240, 264, 216);

    /// From the types of 5.4.286, configured as Debian's 5.10: a css of 240 bytes, as each counts its references in line; a runtime pool of 208.
    pub const V5_4: TaskGroupStructure = TaskGroupStructure::beginning_with_se(240, 264, 208);

    /// From Debian's 5.10.262.
    pub const V5_10: TaskGroupStructure = TaskGroupStructure::beginning_with_se(200, 224, 208);

    /// From 5.15.135: `idle` after `shares`; `burst` in the runtime pool.
    pub const V5_15: TaskGroupStructure = TaskGroupStructure::beginning_with_se(200, 232, 216);

    /// The statistics of bursts in the runtime pool, too. 6.6.17's has the same offsets: load_avg 256, parent 296, cfs_bandwidth 344, 640
    /// bytes in all.
    pub const V6_1: TaskGroupStructure = TaskGroupStructure::beginning_with_se(200, 232, 240);

    /// `idle` before `se`.
    pub const V6_12: TaskGroupStructure = TaskGroupStructure::beginning_with_se(216, 240, 240);

    /// From the types of 6.18.35, configured as Debian's 6.18.15: `scx` of 40 bytes after `load_avg`, which moves `parent` to the next line, and
    /// clamps of 24 after a runtime pool of 240.
    pub const V6_18: TaskGroupStructure =
        TaskGroupStructure { behind_load_avg: 48, tail: 264, ..TaskGroupStructure::V6_12 };

    /// From the types of Debian's 7.2.13: a single pointer to per-CPU memory (`cfs_rq`) that contains a queue and then its
    /// entity, so that readers of the entity use it, too; `scx` of 40 bytes after `load_avg`, clamps of 24 after a runtime
    /// pool of 272.
    pub const V7_2: TaskGroupStructure =
        TaskGroupStructure { se: 256, cfs_rq: 256, shares: 264, head: 272, behind_load_avg: 48, tail: 296 };

    /// From the types of Debian's 7.3.4: `runnable_avg` right behind `load_avg`, on its line, then `scx` of 48 bytes. `parent`
    /// and the runtime pool lie 16 bytes further than in v7.2, on the same lines.
    pub const V7_3: TaskGroupStructure = TaskGroupStructure { behind_load_avg: 64, ..TaskGroupStructure::V7_2 };

    /// `se`, `cfs_rq` and `shares` in sequence, nothing between `load_avg` and `rcu`, nothing after the runtime pool.
    const fn beginning_with_se(se: u32, head: u32, cfs_bandwidth: u32) -> TaskGroupStructure {
        TaskGroupStructure { se, cfs_rq: se + 8, shares: se + 16, head, behind_load_avg: 8, tail: cfs_bandwidth }
    }
}

// From `rcu` on: rcu 16, list 16, parent 8, siblings 16, children 16, autogroup 8, cfs_bandwidth.
const PARENT_BEHIND_RCU: u32 = 32;
const CFS_BANDWIDTH_BEHIND_RCU: u32 = 80;

/// The addresses of task groups: that of group `tg` is `tg * stride`. The root group, which no slab contains, is placed as
/// if it were the first: nothing writes the part of it that is modelled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct TaskGroupLayout {
    stride: u32,
    /// Offset of each field within its group.
    offsets: [u32; NR_FIELDS],
}

impl TaskGroupLayout {
    pub(super) const fn new(of: TaskGroupStructure, load_avg: TgLoadAvgLine, cache: TaskGroupCache) -> TaskGroupLayout {
        let load_avg = match load_avg {
            TgLoadAvgLine::Shared => of.head,
            TgLoadAvgLine::OwnLine => of.head.next_multiple_of(LINE_BYTES),
        };
        let rcu = load_avg + of.behind_load_avg;
        let cfs_bandwidth = rcu + CFS_BANDWIDTH_BEHIND_RCU;
        let bytes = cfs_bandwidth + of.tail;
        let stride = match cache {
            TaskGroupCache::Kmalloc => bytes.next_power_of_two(),
            TaskGroupCache::Aligned => bytes.next_multiple_of(LINE_BYTES),
            TaskGroupCache::Packed => bytes.next_multiple_of(8),
        };
        let offsets = [of.se, of.cfs_rq, of.shares, load_avg, rcu + PARENT_BEHIND_RCU, cfs_bandwidth];
        TaskGroupLayout { stride, offsets }
    }

    #[inline]
    pub(super) fn line(&self, tg: TgId, field: TaskGroupField) -> Line {
        let address = tg.0 * self.stride + self.offsets[field as usize];
        Line { region: Region::TaskGroup, index: address / LINE_BYTES }
    }

    /// What is on one of their lines: each group that it touches, with its fields there.
    pub(super) fn on_line(&self, index: u32) -> Vec<(TgId, Vec<&'static str>)> {
        let (first, end) = (index * LINE_BYTES / self.stride, ((index + 1) * LINE_BYTES).div_ceil(self.stride));
        let here = |tg: TgId| {
            let at = self.offsets.map(|offset| (tg.0 * self.stride + offset) / LINE_BYTES);
            let fields: Vec<_> = NAMES.into_iter().zip(at).filter(|&(_, line)| line == index).map(|(n, _)| n).collect();
            (!fields.is_empty()).then_some((tg, fields))
        };
        (first..end).filter_map(|tg| here(TgId(tg))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::TaskGroupField::*;
    use super::*;

    const STRUCTURES: [TaskGroupStructure; 4] =
        [TaskGroupStructure::V4_4, TaskGroupStructure::V4_5, TaskGroupStructure::V6_1, TaskGroupStructure::V6_12];

    #[test]
    fn an_aligned_load_avg_shares_its_line_with_nothing_before_it() {
        for of in STRUCTURES {
            let layout = TaskGroupLayout::new(of, TgLoadAvgLine::OwnLine, TaskGroupCache::Aligned);
            for tg in (0..4).map(TgId) {
                for field in [Se, CfsRq, Shares] {
                    assert_ne!(layout.line(tg, LoadAvg), layout.line(tg, field));
                }
                // rcu and list fit beside it, and so does parent.
                assert_eq!(layout.line(tg, LoadAvg), layout.line(tg, Parent));
            }
        }
    }

    #[test]
    fn a_load_avg_that_asks_for_nothing_lies_with_shares() {
        for of in STRUCTURES {
            for cache in [TaskGroupCache::Aligned, TaskGroupCache::Kmalloc] {
                let layout = TaskGroupLayout::new(of, TgLoadAvgLine::Shared, cache);
                for tg in (0..4).map(TgId) {
                    assert_eq!(layout.line(tg, LoadAvg), layout.line(tg, Shares));
                }
            }
        }
        // Which of the pointers before it are there, too: 184 is the last word of its line.
        let beside = STRUCTURES.map(|of| {
            let layout = TaskGroupLayout::new(of, TgLoadAvgLine::Shared, TaskGroupCache::Kmalloc);
            [Se, CfsRq].map(|field| layout.line(TgId(1), field) == layout.line(TgId(1), LoadAvg))
        });
        assert_eq!(beside, [[false, false], [false, true], [true, true], [true, true]]);
    }

    #[test]
    fn sizes_are_what_the_allocators_make_of_them() {
        let stride = |load_avg, cache| TaskGroupLayout::new(TaskGroupStructure::V4_5, load_avg, cache).stride;
        assert_eq!(stride(TgLoadAvgLine::Shared, TaskGroupCache::Kmalloc), 512);
        let of_4_4 = TaskGroupLayout::new(TaskGroupStructure::V4_4, TgLoadAvgLine::Shared, TaskGroupCache::Kmalloc);
        assert_eq!(of_4_4.stride, 512);
        assert_eq!(stride(TgLoadAvgLine::OwnLine, TaskGroupCache::Kmalloc), 1024);
        assert_eq!(stride(TgLoadAvgLine::OwnLine, TaskGroupCache::Aligned), 576);
        assert_eq!(stride(TgLoadAvgLine::OwnLine, TaskGroupCache::Packed), 560);
    }

    #[test]
    fn v4_19_has_words_where_v5_4_has_them_and_a_larger_pool() {
        let of = |of| TaskGroupLayout::new(of, TgLoadAvgLine::OwnLine, TaskGroupCache::Aligned);
        let (before, after) = (TaskGroupStructure::V4_19, TaskGroupStructure::V5_4);
        assert_eq!(of(before).offsets, of(after).offsets);
        assert_eq!(before.tail, after.tail + 8);
    }

    #[test]
    fn v5_4_has_shares_a_line_further() {
        let layout = TaskGroupLayout::new(TaskGroupStructure::V5_4, TgLoadAvgLine::OwnLine, TaskGroupCache::Aligned);
        assert_eq!((layout.offsets, layout.stride), ([240, 248, 256, 320, 360, 408], 640));
    }

    #[test]
    fn v5_15_has_a_line_less_than_v6_1() {
        let of = |of| TaskGroupLayout::new(of, TgLoadAvgLine::OwnLine, TaskGroupCache::Aligned);
        let (before, after) = (of(TaskGroupStructure::V5_15), of(TaskGroupStructure::V6_1));
        assert_eq!((before.offsets, before.stride), ([200, 208, 216, 256, 296, 344], 576));
        assert_eq!((after.offsets, after.stride), (before.offsets, 640));
    }

    #[test]
    fn v6_18_has_a_parent_a_line_further() {
        let layout = TaskGroupLayout::new(TaskGroupStructure::V6_18, TgLoadAvgLine::OwnLine, TaskGroupCache::Aligned);
        assert_eq!((layout.offsets, layout.stride), ([216, 224, 232, 256, 336, 384], 704));
        let before = TaskGroupLayout::new(TaskGroupStructure::V6_12, TgLoadAvgLine::OwnLine, TaskGroupCache::Aligned);
        assert_eq!((before.offsets, before.stride), ([216, 224, 232, 256, 296, 344], 640));
    }

    #[test]
    fn v7_2_has_one_pointer_for_both_and_a_parent_a_line_further() {
        let layout = TaskGroupLayout::new(TaskGroupStructure::V7_2, TgLoadAvgLine::OwnLine, TaskGroupCache::Aligned);
        let tg = TgId(3);
        assert_eq!(layout.line(tg, Se), layout.line(tg, CfsRq));
        assert_ne!(layout.line(tg, LoadAvg), layout.line(tg, Shares));
        // The pointer to the queues is at 256, load_avg at 320, parent at 400, the pool at 448; 768 bytes in all.
        let lines = [CfsRq, LoadAvg, Parent, CfsBandwidth].map(|field| layout.line(tg, field).index - 3 * 12);
        assert_eq!((layout.stride, lines), (768, [4, 5, 6, 7]));
    }

    #[test]
    fn v7_3_keeps_each_member_on_its_line_beside_runnable_avg() {
        let of = |of| TaskGroupLayout::new(of, TgLoadAvgLine::OwnLine, TaskGroupCache::Aligned);
        let (before, after) = (of(TaskGroupStructure::V7_2), of(TaskGroupStructure::V7_3));
        assert_eq!(after.offsets, [256, 256, 264, 320, 416, 464]);
        assert_eq!(after.stride, 768);
        for field in [Se, CfsRq, Shares, LoadAvg, Parent, CfsBandwidth] {
            assert_eq!(after.line(TgId(3), field), before.line(TgId(3), field));
        }
        // `runnable_avg`, eight bytes behind.
        assert_eq!((after.offsets[LoadAvg as usize] + 8) / LINE_BYTES, after.offsets[LoadAvg as usize] / LINE_BYTES);
    }

    #[test]
    fn packed_groups_meet_on_a_line_and_aligned_ones_do_not() {
        let lines = |cache| {
            let layout = TaskGroupLayout::new(TaskGroupStructure::V4_5, TgLoadAvgLine::OwnLine, cache);
            (0..8u32).map(|tg| (tg * layout.stride) % LINE_BYTES).collect::<Vec<_>>()
        };
        assert_eq!(lines(TaskGroupCache::Aligned), [0; 8]);
        assert_eq!(lines(TaskGroupCache::Packed)[..4], [0, 48, 32, 16]);
        // A line that two groups share belongs to both: what each has there is listed.
        let layout = TaskGroupLayout::new(TaskGroupStructure::V4_5, TgLoadAvgLine::OwnLine, TaskGroupCache::Packed);
        let line = layout.line(TgId(1), LoadAvg);
        assert_eq!(line.index, (560 + 256) / 64);
        // 816 is 48 bytes into its line: nothing before it reaches that line.
        assert_eq!(layout.on_line(line.index), [(TgId(1), vec!["load_avg"])]);
        // That of the third group is 32 bytes into a line, on which shares, 56 bytes before it, no longer is; that of the
        // seventh is again 32 bytes in.
        let layout = TaskGroupLayout::new(TaskGroupStructure::V4_5, TgLoadAvgLine::Shared, TaskGroupCache::Packed);
        assert_eq!(layout.on_line(layout.line(TgId(0), Shares).index)[0].1, ["cfs_rq", "shares", "load_avg", "parent"]);
    }

    #[test]
    fn every_field_is_found_on_its_line() {
        for of in STRUCTURES {
            for load_avg in [TgLoadAvgLine::Shared, TgLoadAvgLine::OwnLine] {
                for cache in [TaskGroupCache::Kmalloc, TaskGroupCache::Aligned, TaskGroupCache::Packed] {
                    let layout = TaskGroupLayout::new(of, load_avg, cache);
                    for tg in (0..9).map(TgId) {
                        for (field, name) in [Se, CfsRq, Shares, LoadAvg, Parent, CfsBandwidth].into_iter().zip(NAMES) {
                            let here = layout.on_line(layout.line(tg, field).index);
                            assert!(here.iter().any(|(id, names)| *id == tg && names.contains(&name)));
                        }
                    }
                }
            }
        }
    }
}
