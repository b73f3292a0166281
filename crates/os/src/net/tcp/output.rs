//! tcp_output.c: which segments leave, and when.

use super::space::tcp_time_stamp;
use super::{LOOPBACK_MSS, Skb, SockLine, TCP_ATO_MIN, TCP_MSS_DEFAULT, TcpPacket, TcpSock};
use crate::net::rules::{Payload, Pingpong, QuickAck};
use crate::net::{Net, Packet};
use crate::{charge, jiffies, paths, within};
use sched::arch::Arch;
use sched::sched::WakeFlags;
use sched::scheduler::Scheduler;
use units::{CpuId, Ns};

/// tcp_probe0_base(): the least retransmission time, which results from TCP_RTO_MIN and a short round trip with ticks
/// of 4 ms.
const PROBE0_BASE: Ns = Ns::from_ms(204);
/// The longest retransmission time: 120 HZ.
const TCP_RTO_MAX: Ns = Ns::from_ms(120_000);
/// By how many bits the interval between probes grows at most: tcp_probe0_when().
const MAX_BACKOFF: u32 = 10;

/// tp->nonagle of a push: the socket's own, or TCP_NAGLE_PUSH.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Nagle {
    Own,
    Push,
}

impl TcpSock {
    /// tcp_output.c: tcp_sync_mss(), with tcp_bound_to_half_wnd(): segments of at most half the largest window that the peer offered.
    pub(super) fn tcp_sync_mss(&mut self) {
        let cutoff = if self.max_window > TCP_MSS_DEFAULT { self.max_window >> 1 } else { self.max_window };
        self.mss_cache = if cutoff > 0 { LOOPBACK_MSS.min(cutoff.max(68)) } else { LOOPBACK_MSS };
    }

    /// tcp_output.c: tcp_nagle_test(): whether a small segment may leave while another small one is in flight.
    fn tcp_nagle_test(&self, len: u32, nonagle: Nagle) -> bool {
        let minshall = self.snd_sml > self.snd_una && self.snd_sml <= self.snd_nxt;
        nonagle == Nagle::Push || self.nodelay || len >= self.mss_cache || self.packets_out == 0 || !minshall
    }

    /// tcp_output.c: tcp_cwnd_test(), tcp_snd_wnd_test(), tcp_nagle_test(): whether the next segment may leave.
    pub(super) fn may_transmit(&self, nonagle: Nagle) -> bool {
        let Some(skb) = self.send_head() else { return false };
        let nonagle = if self.is_send_head_last() { nonagle } else { Nagle::Push };
        (self.packets_out as u32) < self.snd_cwnd
            && skb.end_seq() <= self.snd_una + u64::from(self.snd_wnd)
            && (self.shutdown || self.tcp_nagle_test(skb.len, nonagle))
    }

    /// tcp.c: tcp_mark_push(): a send ends with what was written last.
    pub(super) fn tcp_mark_push(&mut self) {
        self.pushed_seq = self.write_seq;
        if let Some(skb) = self.sk_write_queue.back_mut() {
            skb.psh = true;
        }
    }

    /// tcp.h: tcp_check_probe_timer(), and tcp_input.c: tcp_ack_probe(): nothing is in flight, and the window has no
    /// room for the next segment. Returns whether it will be probed and would not have been before.
    fn tcp_check_probe_timer(&mut self, now: Ns) -> bool {
        if self.packets_out > 0 || self.send_head().is_none() {
            (self.probe0, self.icsk_backoff) = (None, 0);
            return false;
        }
        let arms = self.probe0.is_none();
        if arms {
            self.probe0 = Some(now + Ns(PROBE0_BASE.0 << self.icsk_backoff).min(TCP_RTO_MAX));
        }
        arms
    }

    /// tcp_output.c: tcp_fragment(): cuts the next segment off at the end of the window. Returns whether any of it may
    /// leave.
    fn tcp_fragment_at_window(&mut self, payload: Payload) -> bool {
        let window_end = self.snd_una + u64::from(self.snd_wnd);
        let at = self.packets_out;
        let Some(skb) = self.sk_write_queue.get_mut(at) else { return false };
        if skb.seq >= window_end {
            return false;
        }
        let first = (window_end - skb.seq) as u32;
        if first < skb.len {
            let mut rest = Skb { seq: skb.seq + u64::from(first), len: skb.len - first, linear: 0, ..*skb };
            let empty = payload.empty_truesize(0);
            rest.truesize = empty + rest.len;
            skb.truesize -= rest.len;
            (skb.len, skb.psh) = (first, true);
            self.sk_wmem_queued += empty;
            self.sk_write_queue.insert(at + 1, rest);
        }
        true
    }

    /// tcp_output.c: forced_push(): half of the largest window has been written since the last push.
    pub(super) fn forced_push(&self) -> bool {
        self.write_seq > self.pushed_seq + u64::from(self.max_window >> 1)
    }
}

impl Net {
    /// tcp_output.c: __tcp_push_pending_frames(), tcp_write_xmit(): sends what may be sent. `push_one`: at most one segment.
    /// Returns whether any data has left.
    ///
    /// Differs: a segment never is more than one MSS, as it is on loopback.
    pub(super) fn tcp_write_xmit<S: Scheduler>(
        &mut self,
        sched: &mut S,
        cpu: CpuId,
        sk: u32,
        nonagle: Nagle,
        push_one: bool,
    ) -> bool {
        within(sched, cpu, paths::TCP_WRITE_XMIT, |sched| {
            let tp = &self.tcp[sk as usize];
            sched.arch_mut().read(cpu, tp.line(SockLine::Send));
            sched.arch_mut().read(cpu, tp.line(SockLine::Congestion));
            let mut sent = false;
            while self.tcp[sk as usize].may_transmit(nonagle) {
                let tp = &mut self.tcp[sk as usize];
                let skb = *tp.send_head().expect("a segment that may be sent");
                // tcp_minshall_update(). The kernel counts the packet when the device has it.
                charge(sched, cpu, paths::TCP_EVENT_NEW_DATA_SENT);
                sched.arch_mut().write(cpu, tp.line(SockLine::Congestion));
                tp.packets_out += 1;
                tp.snd_nxt = skb.end_seq();
                if skb.len < tp.mss_cache {
                    tp.snd_sml = skb.end_seq();
                }
                sent = true;
                let packet = TcpPacket {
                    linear: skb.linear,
                    psh: skb.psh,
                    ..self.segment(cpu, sk, skb.seq, skb.len, skb.truesize)
                };
                self.tcp_transmit_skb(sched, cpu, sk, packet);
                if push_one {
                    break;
                }
            }
            let tp = &mut self.tcp[sk as usize];
            if sent {
                tp.is_cwnd_limited = tp.packets_out as u32 >= tp.snd_cwnd;
            }
            if tp.shutdown && !tp.fin_sent && tp.send_head().is_none() {
                tp.fin_sent = true;
                let fin = TcpPacket { fin: true, ..self.segment(cpu, sk, self.tcp[sk as usize].write_seq, 0, 0) };
                self.tcp[sk as usize].snd_nxt += 1;
                self.tcp_transmit_skb(sched, cpu, sk, fin);
            }
            let now = sched.arch().sched_clock(cpu);
            if self.tcp[sk as usize].tcp_check_probe_timer(now) {
                self.watch_probe_timer(sched, cpu, sk);
            }
            sent
        })
    }

    /// A task that sleeps at the peer, because it has read everything, did not know of the probe: it is woken, and then
    /// sleeps until the probe is due.
    fn watch_probe_timer<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, sk: u32) {
        let peer = self.tcp[sk as usize].peer;
        let peer = &mut self.tcp[peer as usize];
        let read = peer.owned.is_none() && peer.sk_receive_queue.is_empty() && peer.prequeue.is_empty();
        if read && !peer.sk_wq.is_empty() {
            peer.sk_wq.wake_up(sched, cpu, WakeFlags::NONE, 0);
        }
    }

    /// tcp_timer.c: tcp_probe_timer() for `sk`, which the caller owns, and for its peer.
    ///
    /// Differs: it fires only while a task sleeps in a call of one of the two, and wakes it.
    pub(super) fn tcp_probe_timers<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, sk: u32) {
        self.tcp_send_probe0(sched, cpu, sk);
        let peer = self.tcp[sk as usize].peer;
        if self.tcp[peer as usize].owned.is_none() {
            self.tcp_send_probe0(sched, cpu, peer);
        }
    }

    /// tcp_output.c: tcp_send_probe0() and tcp_write_wakeup(), if the probe is due: sends as much of the next segment
    /// as there is room for.
    ///
    /// Differs: does not probe a window that is completely closed, because that opens as soon as everything has been
    /// read.
    fn tcp_send_probe0<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, sk: u32) {
        let now = sched.arch().sched_clock(cpu);
        let tp = &mut self.tcp[sk as usize];
        if tp.probe0.is_none_or(|due| due > now) {
            return;
        }
        tp.icsk_backoff = (tp.icsk_backoff + 1).min(MAX_BACKOFF);
        tp.probe0 = None;
        if tp.tcp_fragment_at_window(self.rules.payload) {
            self.tcp_write_xmit(sched, cpu, sk, Nagle::Push, true);
        } else {
            tp.tcp_check_probe_timer(now);
        }
    }

    /// A segment to the peer of `sk`. Its time stamps, acknowledgement and window are filled in when it leaves.
    fn segment(&self, cpu: CpuId, sk: u32, seq: u64, len: u32, truesize: u32) -> TcpPacket {
        let to = self.tcp[sk as usize].peer;
        let (linear, psh, fin) = (0, false, false);
        TcpPacket { to, seq, len, linear, truesize, psh, fin, tsval: 0, tsecr: 0, ack_seq: 0, window: 0, writer: cpu }
    }

    /// tcp_output.c: tcp_transmit_skb(): fills in the header and hands the segment to the device.
    fn tcp_transmit_skb<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, sk: u32, mut packet: TcpPacket) {
        within(sched, cpu, paths::TCP_TRANSMIT_SKB, |sched| {
            let now = sched.arch().sched_clock(cpu);
            let tp = &mut self.tcp[sk as usize];
            sched.arch_mut().write(cpu, tp.line(SockLine::Receive));
            sched.arch_mut().write(cpu, tp.line(SockLine::Send));
            sched.arch_mut().write(cpu, tp.line(SockLine::Ack));
            sched.arch_mut().atomic(cpu, tp.line(SockLine::Write));
            packet.window = tp.tcp_select_window();
            packet.ack_seq = tp.rcv_nxt;
            (packet.tsval, packet.tsecr) = (tcp_time_stamp(now), tp.ts_recent);
            // tcp_event_ack_sent(), tcp_dec_quickack_mode().
            let ack = &mut tp.icsk_ack;
            let counts = ack.scheduled || self.rules.quick_ack == QuickAck::Segments;
            if ack.quick == 1 && counts {
                ack.ato = TCP_ATO_MIN;
            }
            ack.quick = ack.quick.saturating_sub(u32::from(counts));
            (ack.scheduled, ack.pushed, ack.pushed2, ack.timeout) = (false, false, false, None);
            // tcp_event_data_sent(): an answer to what has just come.
            if packet.len > 0 {
                let first = self.rules.pingpong != Pingpong::ThreeAnswers
                    || jiffies(ack.lsndtime, self.tick_period) < jiffies(ack.lrcvtime, self.tick_period);
                if first && now.0.saturating_sub(ack.lrcvtime.0) < ack.ato.0 {
                    ack.pingpong = ack.pingpong.saturating_add(1);
                }
                ack.lsndtime = now;
            }
            let route = tp.line(SockLine::Route);
            self.ip_queue_xmit(sched, cpu, route, Packet::Tcp(packet));
        });
    }

    /// tcp_output.c: tcp_send_ack(): an acknowledgement that carries no data.
    pub(super) fn tcp_send_ack<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, sk: u32) {
        within(sched, cpu, paths::TCP_SEND_ACK, |sched| {
            charge(sched, cpu, paths::ALLOC_SKB);
            let packet = self.segment(cpu, sk, self.tcp[sk as usize].snd_nxt, 0, 0);
            self.tcp_transmit_skb(sched, cpu, sk, packet);
        });
    }

    /// tcp_output.c: tcp_send_delayed_ack(): due in 40 ms at the latest.
    pub(super) fn tcp_send_delayed_ack<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, sk: u32) {
        let now = sched.arch().sched_clock(cpu);
        let ack = &mut self.tcp[sk as usize].icsk_ack;
        let ato = ack.ato.min(TCP_ATO_MIN);
        ack.scheduled = true;
        match ack.timeout {
            Some(timeout) if timeout <= now + units::Ns(ato.0 >> 2) => self.tcp_send_ack(sched, cpu, sk),
            earlier => {
                let due = now + ato;
                ack.timeout = Some(earlier.map_or(due, |timeout| timeout.min(due)));
            }
        }
    }

    /// tcp_timer.c: tcp_delack_timer_handler(), if it is due.
    pub(super) fn tcp_delack_timer<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, sk: u32) {
        let now = sched.arch().sched_clock(cpu);
        let tp = &mut self.tcp[sk as usize];
        if tp.icsk_ack.timeout.is_none_or(|timeout| timeout > now) {
            return;
        }
        tp.icsk_ack.timeout = None;
        self.tcp_prequeue_process(sched, cpu, sk);
        let ack = &mut self.tcp[sk as usize].icsk_ack;
        if !ack.scheduled {
            return;
        }
        if ack.pingpong >= self.rules.pingpong.threshold() {
            ack.pingpong = 0;
            ack.ato = TCP_ATO_MIN;
        } else {
            ack.ato = units::Ns(ack.ato.0 << 1).min(units::Ns::from_ms(200));
        }
        self.tcp_send_ack(sched, cpu, sk);
    }
}
