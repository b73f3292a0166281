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
