//! skbuff.c and dev.c: segments that are returned to the CPU that allocated them, to be freed there.

use super::Net;
use super::rules::DeferFree;
use crate::{Os, charge, paths};
use sched::arch::Arch;
use sched::layout::{Line, Region};
use sched::scheduler::Scheduler;
use units::{CpuId, Slots, unlikely};

impl DeferFree {
    /// net.core.skb_defer_max.
    fn max(self) -> u32 {
        if self == DeferFree::Lockless { 128 } else { 64 }
    }
}

/// softnet_data of one CPU: what other CPUs have left for it to free.
#[derive(Clone, Copy, Default, Debug)]
struct SoftNet {
    defer_count: u32,
    defer_ipi_scheduled: bool,
}

/// The softnet_data of all CPUs.
#[derive(Default)]
pub(super) struct Deferred {
    /// The line of CPU 0's `defer_lock`, `defer_count` and `defer_list`; those of the other CPUs follow.
    base: Option<Line>,
    of: Slots<SoftNet>,
}

impl Deferred {
    fn line(&self, cpu: CpuId) -> Option<Line> {
        self.base.map(|base| Line { region: Region::Os, index: base.index + cpu.index() as u32 })
    }
}

impl Net {
    /// skbuff.c: skb_attempt_defer_free(), for a segment that has been read as a whole.
    ///
    /// Differs: the segment's own lines, which its sender has to fetch again, are included in the price of freeing it.
    /// Since v6.18 a CPU has one list for the readers of each node, not one for all.
    pub(super) fn skb_attempt_defer_free<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, alloc_cpu: CpuId) {
        let line = self.deferred.line(alloc_cpu).filter(|_| alloc_cpu != cpu && sched.is_online(alloc_cpu));
        let Some(line) = line else { return charge(sched, cpu, paths::KFREE_SKB) };
        let (rule, max) = (self.rules.defer_free, self.rules.defer_free.max());
        let sd = &mut self.deferred.of[alloc_cpu.index()];
        let kick = sd.defer_count == max / 2;
        if rule == DeferFree::Lockless {
            // The list's counter: it still counts when no more can be left.
            sched.arch_mut().atomic(cpu, line);
            sd.defer_count += 1;
            if sd.defer_count >= max {
                return charge(sched, cpu, paths::KFREE_SKB);
            }
            sched.arch_mut().atomic(cpu, line);
        } else {
            sched.arch_mut().read(cpu, line);
            if sd.defer_count >= max {
                return charge(sched, cpu, paths::KFREE_SKB);
            }
            sched.arch_mut().lock(cpu, line);
            sd.defer_count += 1;
            sched.arch_mut().unlock(cpu, line);
        }
        if unlikely(kick) && !std::mem::replace(&mut sd.defer_ipi_scheduled, true) {
            sched.smp_call_function_single_async(cpu, alloc_cpu);
        }
    }

    /// dev.c: skb_defer_free_flush(), at the beginning and the end of a receive softirq.
    pub(super) fn skb_defer_free_flush<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId) {
        let Some(line) = self.deferred.line(cpu) else { return };
        sched.arch_mut().read(cpu, line);
        let sd = &mut self.deferred.of[cpu.index()];
        if sd.defer_count == 0 {
            return;
        }
        let mut count = std::mem::take(&mut sd.defer_count);
        if self.rules.defer_free == DeferFree::Lockless {
            sched.arch_mut().write(cpu, line);
            sched.arch_mut().atomic(cpu, line);
            count = count.min(DeferFree::Lockless.max() - 1);
        } else {
            sched.arch_mut().lock(cpu, line);
            sched.arch_mut().unlock(cpu, line);
        }
        for _ in 0..count {
            charge(sched, cpu, paths::KFREE_SKB);
        }
    }

    /// Whether another CPU has sent `cpu` an interrupt for this. Taking it makes room for the next.
    #[inline]
    pub(super) fn takes_defer_ipi(&mut self, cpu: CpuId) -> bool {
        self.deferred.of.get_mut(cpu.index()).is_some_and(|sd| std::mem::take(&mut sd.defer_ipi_scheduled))
    }
}

impl Os {
    /// Allocates the CPUs' lists, on kernels that have them, before the first packet.
    #[inline]
    pub(super) fn allocate_softnet(&mut self, nr_cpus: usize) {
        if unlikely(self.net.rules.defer_free != DeferFree::Reader && self.net.deferred.base.is_none()) {
            // In sequence, by CPU number.
            let lines =
                (0..nr_cpus).map(|_| self.allocate_named(&["softnet_data: defer_lock, defer_count, defer_list"]));
            self.net.deferred.base = lines.min_by_key(|line| line.index);
            self.net.deferred.of.grow_with(nr_cpus, SoftNet::default);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::OsRules;
    use sched::access::Path;
    use sched::core::{Boot, Sched};
    use sched::cpu_topology::CpuTopology;
    use sched::trace::Ipi;
    use sched::versions::V6_1;
    use units::Ns;

    /// Time stands still; interrupts are recorded, and how many segments were freed.
    #[derive(Default)]
    struct Still {
        interrupted: Vec<CpuId>,
        freed: u32,
    }

    impl Arch for Still {
        fn sched_clock(&self, _cpu: CpuId) -> Ns {
            Ns::from_ms(1_000)
        }
        fn send_ipi(&mut self, _from: CpuId, to: CpuId, _ipi: Ipi) {
            self.interrupted.push(to);
        }
        fn wake_polling_idle(&mut self, _from: CpuId, to: CpuId) {
            self.interrupted.push(to);
        }
        fn path(&mut self, _by: CpuId, path: Path) {
            self.freed += u32::from(path == paths::KFREE_SKB);
        }
    }

    #[test]
    fn segments_wait_for_the_cpu_that_allocated_them() {
        let [sender, reader] = [CpuId(0), CpuId(1)];
        let mut sched = Sched::new(Still::default(), Boot::new(V6_1, CpuTopology::symmetric(1, 1, 1, 2, 1), 250));
        let mut os = Os::new(OsRules::V6_1, 250);
        os.allocate_softnet(2);
        let waiting = |os: &Os| os.net.deferred.of[sender.index()].defer_count;
        os.net.skb_attempt_defer_free(&mut sched, sender, sender);
        assert_eq!(waiting(&os), 0, "its own are freed at once");
        for _ in 0..33 {
            assert_eq!(sched.arch.interrupted, [], "it is not told of the first half");
            os.net.skb_attempt_defer_free(&mut sched, reader, sender);
        }
        assert_eq!((waiting(&os), sched.arch.interrupted.as_slice()), (33, [sender].as_slice()));
        for _ in 0..40 {
            os.net.skb_attempt_defer_free(&mut sched, reader, sender);
        }
        assert_eq!((waiting(&os), sched.arch.interrupted.len()), (64, 1), "what is more is freed where it was read");
        assert!(os.net.takes_defer_ipi(sender) && !os.net.takes_defer_ipi(sender));
        os.net.skb_defer_free_flush(&mut sched, sender);
        assert_eq!(waiting(&os), 0);
        let mut later = Os::new(OsRules::V7_2, 250);
        later.allocate_softnet(2);
        sched.arch.interrupted.clear();
        for _ in 0..64 {
            later.net.skb_attempt_defer_free(&mut sched, reader, sender);
        }
        assert_eq!(sched.arch.interrupted, [], "half of more");
        later.net.skb_attempt_defer_free(&mut sched, reader, sender);
        assert_eq!(sched.arch.interrupted, [sender]);
        for _ in 0..100 {
            later.net.skb_attempt_defer_free(&mut sched, reader, sender);
        }
        assert_eq!(waiting(&later), 165, "it counts on");
        sched.arch.freed = 0;
        later.net.skb_defer_free_flush(&mut sched, sender);
        assert_eq!((waiting(&later), sched.arch.freed), (0, 127), "those after them were freed where they were read");
        let mut before = Os::new(OsRules::V4_15, 250);
        before.allocate_softnet(2);
        before.net.skb_attempt_defer_free(&mut sched, reader, sender);
        assert!(before.net.deferred.line(sender).is_none());
    }
}
