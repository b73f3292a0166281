//! sock.c: page fragments: where the data of a segment lie that do not fit into its head.

use super::TcpSock;
use crate::net::Net;
use crate::{charge, paths};
use sched::scheduler::Scheduler;
use std::collections::VecDeque;
use units::CpuId;

/// Bytes of the pages that are allocated in one piece: SKB_FRAG_PAGE_ORDER is 3.
const SIZE: u32 = 32 << 10;
/// From this many bytes of room on sk_page_frag_refill() goes on with the same pages.
const LEAST: u32 = 32;

/// struct page_frag of a sender.
///
/// Differs: it is the connection's, not the task's that sends. The lock of the zone that the pages come from, and the line of their
/// reference count, cost nothing more.
#[derive(Default)]
pub(super) struct Frags {
    /// Bytes of room in the pages that are being filled, if there are any.
    left: Option<u32>,
    /// Pages that were filled before: the sequence number behind their last byte.
    full: VecDeque<u64>,
}

impl TcpSock {
    /// Whether nothing that was sent is left anywhere, so that nobody but the sender holds its pages.
    fn all_freed(&self, peer: &TcpSock) -> bool {
        self.sk_write_queue.iter().all(|skb| skb.len == 0) && peer.copied_seq == self.write_seq
    }
}

impl Net {
    /// sock.c: skb_page_frag_refill(), sock.h: skb_copy_to_page_nocache(), for `bytes` that are written next.
    pub(super) fn fill_frags<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, sk: u32, bytes: u32) {
        let tp = &self.tcp[sk as usize];
        let again = tp.frags.left.is_some() && tp.all_freed(&self.tcp[tp.peer as usize]);
        let tp = &mut self.tcp[sk as usize];
        let write_seq = tp.write_seq;
        let frags = &mut tp.frags;
        if again {
            frags.left = Some(SIZE);
        }
        let mut written = 0;
        while written < bytes {
            let left = frags.left.filter(|&left| left >= LEAST).unwrap_or_else(|| {
                charge(sched, cpu, paths::SKB_PAGE_FRAG_REFILL);
                if frags.left.is_some() {
                    frags.full.push_back(write_seq + u64::from(written));
                }
                SIZE
            });
            let chunk = left.min(bytes - written);
            frags.left = Some(left - chunk);
            written += chunk;
            charge(sched, cpu, paths::SKB_COPY_TO_PAGE);
        }
    }

    /// iov_iter.c: copy_page_to_iter(), for `bytes` of a segment whose first `linear` lie in its head.
    pub(super) fn copy_page_to_iter<S: Scheduler>(sched: &mut S, cpu: CpuId, linear: u32, bytes: u32) {
        for _ in 0..bytes.saturating_sub(linear).div_ceil(SIZE) {
            charge(sched, cpu, paths::COPY_PAGE_TO_ITER);
        }
    }

    /// The receiver `sk` has freed all segments up to `seq`, and with them its peer's pages.
    pub(super) fn free_frags<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, sk: u32, seq: u64) {
        let peer = self.tcp[sk as usize].peer;
        let full = &mut self.tcp[peer as usize].frags.full;
        while full.front().is_some_and(|&end| end <= seq) {
            full.pop_front();
            charge(sched, cpu, paths::FREE_PAGES);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::rules::Buffers;
    use crate::net::{Socket, Transport};
    use crate::{Os, OsRules};
    use sched::access::Path;
    use sched::arch::Arch;
    use sched::core::{Boot, Sched};
    use sched::cpu_topology::CpuTopology;
    use sched::trace::Ipi;
    use sched::versions::V4_5_RC1;
    use units::Ns;

    /// Time stands still; counts pages that are allocated and freed, and pieces of data that are put into them and taken out.
    #[derive(Default)]
    struct Counts([u32; 4]);

    const COUNTED: [Path; 4] =
        [paths::SKB_PAGE_FRAG_REFILL, paths::FREE_PAGES, paths::SKB_COPY_TO_PAGE, paths::COPY_PAGE_TO_ITER];

    impl Arch for Counts {
        fn sched_clock(&self, _cpu: CpuId) -> Ns {
            Ns::from_ms(1_000)
        }
        fn send_ipi(&mut self, _from: CpuId, _to: CpuId, _ipi: Ipi) {}
        fn wake_polling_idle(&mut self, _from: CpuId, _to: CpuId) {}
        fn path(&mut self, _by: CpuId, path: Path) {
            if let Some(at) = COUNTED.iter().position(|&counted| counted == path) {
                self.0[at] += 1;
            }
        }
    }

    #[test]
    fn pages_are_filled_in_turn_and_freed_when_all_in_them_has_been_read() {
        let cpu = CpuId(0);
        let topology = CpuTopology::symmetric(1, 1, 1, 1, 1);
        let mut sched = Sched::new(Counts::default(), Boot::new(V4_5_RC1, topology, 250));
        let mut os = Os::new(OsRules::V4_5, 250);
        let (Socket::Tcp(sender), Socket::Tcp(reader)) =
            os.connect(Transport::Tcp { nodelay: true }, Buffers::default())
        else {
            unreachable!("two ends of TCP")
        };
        let net = &mut os.net;
        let write = |sched: &mut Sched<Counts>, net: &mut Net, bytes: u32| {
            net.fill_frags(sched, cpu, sender, bytes);
            net.tcp[sender as usize].write_seq += u64::from(bytes);
            std::mem::take(&mut sched.arch.0)
        };
        assert_eq!(write(&mut sched, net, 20_000), [1, 0, 1, 0]);
        // 12768 bytes are left in the first pages. Then 20 bytes are left in the second, which are too few.
        assert_eq!(write(&mut sched, net, 12_768 + SIZE - 20), [1, 0, 2, 0]);
        assert_eq!(write(&mut sched, net, 2 * SIZE), [2, 0, 2, 0]);
        let read_to = |sched: &mut Sched<Counts>, net: &mut Net, seq: u64| {
            net.tcp[reader as usize].copied_seq = seq;
            net.free_frags(sched, cpu, reader, seq);
            std::mem::take(&mut sched.arch.0)
        };
        assert_eq!(read_to(&mut sched, net, 32_767), [0; 4]);
        assert_eq!(read_to(&mut sched, net, 65_516), [0, 2, 0, 0]);
        assert_eq!(read_to(&mut sched, net, 131_052), [0, 1, 0, 0], "the last pages are still the sender's");
        // Nobody else holds them: full as they are, they are filled again.
        assert_eq!(write(&mut sched, net, SIZE), [0, 0, 1, 0]);
        assert_eq!(write(&mut sched, net, 1), [1, 0, 1, 0]);
    }

    #[test]
    fn data_in_the_head_are_in_no_page() {
        let mut sched = Sched::new(Counts::default(), Boot::new(V4_5_RC1, CpuTopology::symmetric(1, 1, 1, 1, 1), 250));
        for (linear, bytes, pieces) in [(1408, 1408, 0), (1408, 1409, 1), (0, SIZE, 1), (0, SIZE + 1, 2)] {
            Net::copy_page_to_iter(&mut sched, CpuId(0), linear, bytes);
            assert_eq!(std::mem::take(&mut sched.arch.0), [0, 0, 0, pieces], "{bytes} of {linear}");
        }
    }
}
