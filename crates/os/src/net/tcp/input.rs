//! tcp_ipv4.c and tcp_input.c: the processing of a segment that arrives.

use super::output::Nagle;
use super::{Ack, Skb, SockLine, TCP_ATO_MIN, TCP_MSS_DEFAULT, TCP_RTO_MIN, TcpPacket, TcpSock, Ucopy};
use crate::net::Net;
use crate::net::rules::{FullSegment, Payload, Prequeue, Prune};
use crate::{charge, paths, within};
use sched::arch::Arch;
use sched::sched::WakeFlags;
use sched::scheduler::Scheduler;
use units::{CpuId, Ns};

/// TCP_MAX_QUICKACKS.
const TCP_MAX_QUICKACKS: u32 = 16;
/// From this many bytes of header on, tcp_measure_rcv_mss() counts a segment as full although it is not: TCP and
/// timestamps.
const TCP_HEADER: u32 = 32;

impl Net {
    /// tcp_ipv4.c: tcp_v4_rcv(), in the sender's softirq: leaves the segment to the socket's owner or to a task that
    /// sleeps in a receive, or processes it at once.
    pub(in crate::net) fn tcp_v4_rcv<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, packet: TcpPacket) {
        within(sched, cpu, paths::TCP_V4_RCV, |sched| {
            let sk = packet.to;
            let tp = &mut self.tcp[sk as usize];
            sched.arch_mut().read(cpu, tp.line(SockLine::Common));
            let lock = tp.line(SockLine::Lock);
            sched.arch_mut().lock(cpu, lock);
            if tp.owned.is_some() {
                charge(sched, cpu, paths::SK_ADD_BACKLOG);
                tp.sk_backlog.push_back(packet);
            } else if !self.tcp_prequeue(sched, cpu, packet) {
                self.tcp_v4_do_rcv(sched, cpu, packet);
            }
            sched.arch_mut().unlock(cpu, lock);
        });
    }

    /// tcp_ipv4.c: tcp_prequeue(): leaves the segment to the task that sleeps in recv() (until v4.13).
    fn tcp_prequeue<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, packet: TcpPacket) -> bool {
        let tp = &self.tcp[packet.to as usize];
        if self.rules.prequeue == Prequeue::Gone || tp.ucopy.is_none() || packet.len == 0 && tp.prequeue.is_empty() {
            return false;
        }
        within(sched, cpu, paths::TCP_PREQUEUE, |sched| {
            let tp = &mut self.tcp[packet.to as usize];
            sched.arch_mut().write(cpu, tp.line(SockLine::Receive));
            tp.prequeue.push_back(packet);
            tp.prequeue_memory += packet.truesize;
            if tp.prequeue_memory > tp.sk_rcvbuf {
                self.tcp_prequeue_process(sched, cpu, packet.to);
            } else if tp.prequeue.len() == 1 {
                tp.sk_wq.wake_up(sched, cpu, WakeFlags::SYNC, 1);
                if !tp.icsk_ack.scheduled {
                    // Three quarters of the shortest retransmission time, 200 ms.
                    tp.icsk_ack.timeout = Some(sched.arch().sched_clock(cpu) + Ns::from_ms(150));
                }
            }
        });
        true
    }

    /// tcp.c: tcp_prequeue_process(): processes what waited for the reader, with bottom halves off.
    pub(super) fn tcp_prequeue_process<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, sk: u32) {
        if self.tcp[sk as usize].prequeue.is_empty() {
            return;
        }
        let was_disabled = std::mem::replace(&mut self.bh_disabled, true);
        while let Some(packet) = self.tcp[sk as usize].prequeue.pop_front() {
            self.tcp_v4_do_rcv(sched, cpu, packet);
        }
        self.tcp[sk as usize].prequeue_memory = 0;
        self.bh_disabled = was_disabled;
        self.do_softirq(sched, cpu);
    }

    /// tcp_ipv4.c: tcp_v4_do_rcv(), tcp_input.c: tcp_rcv_established(): by header prediction, if it is only data or
    /// only an acknowledgement and the window is unchanged; otherwise on the slow path, which wakes the reader first.
    ///
    /// Differs: memory that the socket has yet to reserve does not lead to the slow path.
    pub(super) fn tcp_v4_do_rcv<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, packet: TcpPacket) {
        within(sched, cpu, paths::TCP_RCV_ESTABLISHED, |sched| {
            let sk = packet.to;
            let now = sched.arch().sched_clock(cpu);
            let tp = &mut self.tcp[sk as usize];
            if tp.rcv_nxt == tp.rcv_wup {
                // tcp_store_ts_recent()
                tp.ts_recent = packet.tsval;
            }
            let predicted = packet.window == tp.snd_wnd && !packet.fin;
            sched.arch_mut().read(cpu, tp.line(SockLine::Send));
            sched.arch_mut().read(cpu, tp.line(SockLine::Receive));
            if packet.len == 0 && !packet.fin {
                tp.rcv_rtt_est.last_tsecr = packet.tsecr;
                self.tcp_ack(sched, cpu, sk, packet);
                charge(sched, cpu, paths::KFREE_SKB);
                self.tcp_data_snd_check(sched, cpu, sk);
                if !predicted && self.tcp[sk as usize].icsk_ack.scheduled {
                    self.__tcp_ack_snd_check(sched, cpu, sk);
                }
                return;
            }
            assert_eq!(packet.seq, tp.rcv_nxt, "a loopback segment out of order");
            tp.tcp_rcv_rtt_measure_ts(now, &packet, self.rules.rcvbuf_growth);
            if predicted {
                let direct = self.direct_copy(cpu, sched, sk, &packet, true);
                if direct < packet.len {
                    self.tcp_queue_rcv(sched, cpu, sk, &packet, 0);
                }
                self.tcp_event_data_recv(sched, cpu, sk, &packet);
                let acks = packet.ack_seq != self.tcp[sk as usize].snd_una;
                if acks {
                    self.tcp_ack(sched, cpu, sk, packet);
                    self.tcp_data_snd_check(sched, cpu, sk);
                }
                if !acks || self.tcp[sk as usize].icsk_ack.scheduled {
                    self.__tcp_ack_snd_check(sched, cpu, sk);
                }
                self.tcp_data_ready(sched, cpu, sk);
                return;
            }
            self.tcp_ack(sched, cpu, sk, packet);
            let direct = self.direct_copy(cpu, sched, sk, &packet, false);
            if direct < packet.len {
                self.tcp_queue_rcv(sched, cpu, sk, &packet, direct);
            }
            if packet.len > 0 {
                self.tcp_event_data_recv(sched, cpu, sk, &packet);
            }
            if packet.fin {
                self.tcp_fin(sched, cpu, sk, &packet);
            }
            self.tcp_data_ready(sched, cpu, sk);
            self.tcp_data_snd_check(sched, cpu, sk);
            if self.tcp[sk as usize].icsk_ack.scheduled {
                self.__tcp_ack_snd_check(sched, cpu, sk);
            }
        });
    }

    /// tcp_input.c: tcp_fin(): the peer sends no more. An end that may still send acknowledges it later; all tasks that
    /// wait at the socket are woken.
    fn tcp_fin<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, sk: u32, packet: &TcpPacket) {
        let tp = &mut self.tcp[sk as usize];
        tp.rcv_nxt = packet.end_seq();
        tp.fin_received = true;
        tp.icsk_ack.scheduled = true;
        if tp.fin_sent {
            self.tcp_send_ack(sched, cpu, sk);
        } else {
            tp.icsk_ack.pingpong = self.rules.pingpong.threshold();
        }
        self.sock_def_wakeup(sched, cpu, sk);
    }

    /// tcp_input.c: tcp_copy_to_iovec(), or the copy in tcp_data_queue(): bypasses the receive queue if the reader
    /// itself processes the segment. `whole`: copy all of it or nothing. Returns the bytes copied.
    fn direct_copy<S: Scheduler>(
        &mut self,
        cpu: CpuId,
        sched: &mut S,
        sk: u32,
        packet: &TcpPacket,
        whole: bool,
    ) -> u32 {
        let tp = &mut self.tcp[sk as usize];
        let Some(Ucopy { task, len }) = &mut tp.ucopy else { return 0 };
        let here = tp.owned == Some(*task) && tp.copied_seq == packet.seq;
        if !here || packet.len == 0 || *len == 0 || whole && packet.len > *len {
            return 0;
        }
        let chunk = packet.len.min(*len);
        *len -= chunk;
        tp.copied_seq += u64::from(chunk);
        tp.rcv_nxt = packet.seq + u64::from(packet.len);
        Net::fetch_skb(sched, cpu, packet.writer, chunk);
        charge(sched, cpu, paths::SKB_COPY_DATAGRAM);
        sched.arch_mut().copy(cpu, u64::from(chunk));
        tp.tcp_rcv_space_adjust(sched.arch().sched_clock(cpu), self.rules.rcvbuf_growth);
        Net::copy_page_to_iter(sched, cpu, packet.linear, chunk);
        if chunk == packet.len {
            charge(sched, cpu, paths::KFREE_SKB);
            self.free_frags(sched, cpu, sk, packet.end_seq());
        }
        chunk
    }

    /// tcp_input.c: tcp_queue_rcv(), tcp_try_rmem_schedule(), tcp_try_coalesce(): appends to what waits to be read, and
    /// collapses the queue if it is too much. `taken`: bytes that the reader has already had. Data are merged into the
    /// queue's last segment if its sender holds no copy of that any more, that is, once it has been acknowledged.
    fn tcp_queue_rcv<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, sk: u32, packet: &TcpPacket, taken: u32) {
        let tp = &mut self.tcp[sk as usize];
        sched.arch_mut().write(cpu, tp.line(SockLine::Lock));
        sched.arch_mut().write(cpu, tp.line(SockLine::Receive));
        if !tp.sk_receive_queue.is_empty() && tp.sk_rmem_alloc > tp.sk_rcvbuf {
            // tcp_prune_queue()
            tp.tcp_clamp_window();
            if self.rules.prune == Prune::Collapses || tp.sk_rmem_alloc > tp.sk_rcvbuf {
                charge(sched, cpu, paths::TCP_COLLAPSE);
                tp.tcp_collapse(cpu);
            }
        }
        let acked = self.tcp[self.tcp[sk as usize].peer as usize].snd_una;
        let payload = self.rules.payload;
        let tp = &mut self.tcp[sk as usize];
        let queued = Skb {
            seq: packet.seq + u64::from(taken),
            len: packet.len - taken,
            linear: packet.linear,
            truesize: packet.truesize,
            psh: packet.psh,
            writer: packet.writer,
            touched: false,
        };
        let tail = tp.sk_receive_queue.back_mut().filter(|tail| tail.end_seq() <= acked);
        if let Some(added) = tail.and_then(|tail| tail.skb_try_coalesce(&queued, payload)) {
            tp.sk_rmem_alloc += added;
            Net::fetch_skb(sched, cpu, packet.writer, 0);
            if added == 0 {
                sched.arch_mut().copy(cpu, u64::from(queued.len));
            }
            charge(sched, cpu, paths::KFREE_SKB);
        } else {
            tp.sk_rmem_alloc += queued.truesize;
            tp.sk_receive_queue.push_back(queued);
        }
        tp.rcv_nxt = packet.seq + u64::from(packet.len);
    }

    /// tcp_input.c: tcp_event_data_recv(): an acknowledgement is due. How soon depends on what kind of traffic this
    /// looks like.
    fn tcp_event_data_recv<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, sk: u32, packet: &TcpPacket) {
        let now = sched.arch().sched_clock(cpu);
        let tp = &mut self.tcp[sk as usize];
        sched.arch_mut().write(cpu, tp.line(SockLine::Ack));
        tp.icsk_ack.scheduled = true;
        tp.measure_scaling_ratio(packet);
        tp.tcp_measure_rcv_mss(packet.len, packet.psh && self.rules.full_segment == FullSegment::Pushes);
        tp.tcp_rcv_rtt_measure(now, self.rules.rcvbuf_growth);
        let ack = &mut tp.icsk_ack;
        if ack.ato == Ns::ZERO {
            ack.ato = TCP_ATO_MIN;
            ack.tcp_incr_quickack(tp.rcv_wnd);
        } else {
            let gap = Ns(now.0.saturating_sub(ack.lrcvtime.0));
            if gap.0 <= TCP_ATO_MIN.0 / 2 {
                ack.ato = Ns(ack.ato.0 / 2 + TCP_ATO_MIN.0 / 2);
            } else if gap < ack.ato {
                ack.ato = Ns(ack.ato.0 / 2) + gap;
            } else if gap > TCP_RTO_MIN {
                // Its sender seems to have started anew.
                ack.tcp_incr_quickack(tp.rcv_wnd);
            }
        }
        ack.lrcvtime = now;
        if packet.len >= 128 {
            tp.tcp_grow_window(packet.truesize, packet.len, self.rules.grow_window);
        }
    }

    /// tcp_input.c: __tcp_ack_snd_check(): acknowledges at once more than a full segment, or while the connection is
    /// young; otherwise later.
    fn __tcp_ack_snd_check<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, sk: u32) {
        let tp = &mut self.tcp[sk as usize];
        let interactive = tp.icsk_ack.pingpong >= self.rules.pingpong.threshold();
        let much = tp.rcv_nxt - tp.rcv_wup > u64::from(tp.icsk_ack.rcv_mss) && tp.__tcp_select_window() >= tp.rcv_wnd;
        if much || tp.icsk_ack.quick > 0 && !interactive {
            self.tcp_send_ack(sched, cpu, sk);
        } else {
            self.tcp_send_delayed_ack(sched, cpu, sk);
        }
    }

    /// tcp_input.c: tcp_ack(): takes what the peer has received off the write queue, and notes the peer's window.
    fn tcp_ack<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, sk: u32, packet: TcpPacket) {
        within(sched, cpu, paths::TCP_ACK, |sched| {
            let tp = &mut self.tcp[sk as usize];
            assert!(packet.ack_seq <= tp.snd_nxt, "an acknowledgement of what was not sent");
            if packet.ack_seq < tp.snd_una {
                return;
            }
            sched.arch_mut().write(cpu, tp.line(SockLine::Send));
            tp.snd_una = packet.ack_seq;
            tp.snd_wnd = packet.window;
            if packet.window > tp.max_window {
                tp.max_window = packet.window;
                tp.tcp_sync_mss();
            }
            if tp.packets_out == 0 {
                return;
            }
            charge(sched, cpu, paths::TCP_CLEAN_RTX_QUEUE);
            sched.arch_mut().write(cpu, tp.line(SockLine::Congestion));
            sched.arch_mut().write(cpu, tp.line(SockLine::Write));
            let mut acked = 0;
            while tp.packets_out > 0 && tp.sk_write_queue[0].end_seq() <= packet.ack_seq {
                let skb = tp.sk_write_queue.pop_front().expect("a packet that is out");
                charge(sched, cpu, paths::SK_WMEM_FREE_SKB);
                tp.packets_out -= 1;
                tp.sk_wmem_queued -= skb.truesize;
                tp.queue_shrunk = true;
                acked += 1;
            }
            if tp.is_cwnd_limited {
                // tcp_slow_start(): nothing is ever lost.
                tp.snd_cwnd = tp.snd_cwnd.saturating_add(acked);
            }
        });
    }

    /// tcp_input.c: tcp_data_snd_check(): sends what may be sent now, then wakes a task that waits for room.
    fn tcp_data_snd_check<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, sk: u32) {
        let tp = &self.tcp[sk as usize];
        if tp.send_head().is_some() || tp.shutdown && !tp.fin_sent {
            self.tcp_write_xmit(sched, cpu, sk, Nagle::Own, false);
        }
        self.tcp_check_space(sched, cpu, sk);
    }

    /// tcp_input.c: tcp_check_space(), stream.c: sk_stream_write_space(): wakes the sender, without the sync hint, once
    /// it can write half as much as is queued.
    fn tcp_check_space<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, sk: u32) {
        let tp = &mut self.tcp[sk as usize];
        if !std::mem::take(&mut tp.queue_shrunk) || !tp.nospace {
            return;
        }
        if tp.tcp_should_expand_sndbuf() {
            tp.tcp_sndbuf_expand();
        }
        within(sched, cpu, paths::SK_STREAM_WRITE_SPACE, |sched| {
            let wspace = tp.sk_sndbuf.saturating_sub(tp.sk_wmem_queued);
            if wspace < tp.sk_wmem_queued >> 1 || !tp.memory_free() {
                return;
            }
            tp.nospace = false;
            sched.arch_mut().read(cpu, tp.line(SockLine::Wait));
            if !tp.sk_wq.is_empty() {
                tp.sk_wq.wake_up(sched, cpu, WakeFlags::NONE, 1);
            }
        });
    }
}

impl Skb {
    /// skbuff.c: skb_try_coalesce(): takes in another segment's data, if they fit into the free room of its head, or
    /// lie in page fragments only. Returns by how much its memory grows. Differs: the number of fragments is not
    /// limited.
    fn skb_try_coalesce(&mut self, from: &Skb, payload: Payload) -> Option<u32> {
        let head = payload.empty_truesize(0);
        let added = if self.len + from.len <= self.linear {
            0
        } else if from.linear == 0 && from.truesize > head {
            from.truesize - head
        } else {
            return None;
        };
        self.len += from.len;
        self.truesize += added;
        Some(added)
    }
}

impl Ack {
    /// tcp_input.c: tcp_incr_quickack(): one quick acknowledgement for every two segments of the window.
    fn tcp_incr_quickack(&mut self, rcv_wnd: u32) {
        let quickacks = match rcv_wnd / (2 * self.rcv_mss) {
            0 => 2,
            pairs => pairs.min(TCP_MAX_QUICKACKS),
        };
        self.quick = self.quick.max(quickacks);
    }
}

impl TcpSock {
    /// tcp_input.c: tcp_measure_rcv_mss(): estimates the size of the peer's full segments. A smaller segment calls for
    /// an acknowledgement once it has been read; so does a full one if `pushes`.
    fn tcp_measure_rcv_mss(&mut self, len: u32, pushes: bool) {
        let ack = &mut self.icsk_ack;
        let lss = std::mem::take(&mut ack.last_seg_size);
        if len >= ack.rcv_mss {
            ack.rcv_mss = len;
            ack.pushed |= pushes;
            return;
        }
        if len + TCP_HEADER >= TCP_MSS_DEFAULT + 20 {
            ack.last_seg_size = len;
            if len == lss {
                ack.rcv_mss = len;
                return;
            }
        }
        ack.pushed2 |= ack.pushed;
        ack.pushed = true;
    }

    /// tcp_input.c: tcp_collapse(): copies what waits to be read together, without the overhead of each segment.
    fn tcp_collapse(&mut self, cpu: CpuId) {
        let len: u32 = self.sk_receive_queue.iter().map(|skb| skb.len).sum();
        let Some(&first) = self.sk_receive_queue.front() else { return };
        let truesize = crate::net::rules::truesize(len);
        self.sk_receive_queue.clear();
        self.sk_receive_queue.push_back(Skb { len, linear: 0, truesize, writer: cpu, touched: true, ..first });
        self.sk_rmem_alloc = truesize;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_young_connection_acknowledges_one_segment_at_once_for_two_of_its_window() {
        for (rcv_wnd, quick) in [(0, 2), (1_071, 2), (1_072, 1), (1_152, 1), (5_360, 5), (1 << 20, 16)] {
            let mut ack = Ack { rcv_mss: 536, ..Ack::default() };
            ack.tcp_incr_quickack(rcv_wnd);
            assert_eq!(ack.quick, quick, "{rcv_wnd}");
            ack.quick = 30;
            ack.tcp_incr_quickack(rcv_wnd);
            assert_eq!(ack.quick, 30, "it takes none away");
        }
    }
}
