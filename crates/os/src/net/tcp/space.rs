//! How much of its buffers a connection may use, and how buffers grow whose size no application has set: tcp_input.c.

use super::{LOOPBACK_MSS, TCP_INIT_CWND, TCP_WMEM_MAX, TcpPacket, TcpSock};
use crate::net::rules::{MAX_TCP_HEADER, RcvbufGrowth, SKB, SKB_SHARED_INFO, WindowShare};
use units::Ns;

/// tcp_sock.rcv_rtt_est: the receiver's estimate of a round trip. `rtt`: eight times that, in us; 0 before the first
/// sample.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RcvRttEst {
    rtt: u64,
    seq: u64,
    time: Option<Ns>,
    /// rcv_rtt_last_tsecr.
    pub last_tsecr: u64,
}

/// tcp_sock.rcvq_space: how much the reader took in the last round trip, and since when the next one is measured.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RcvqSpace {
    pub space: u64,
    seq: u64,
    time: Ns,
}

/// A time stamp in a segment's header, in ms.
pub(super) fn tcp_time_stamp(now: Ns) -> u64 {
    now.0 / 1_000_000
}

/// net.ipv4.tcp_rcvbuf_low_rtt.
const TCP_RCVBUF_LOW_RTT_US: u64 = 1_000;

/// SKB_TRUESIZE() of a full segment with its header.
const FULL_SEGMENT: u64 = (LOOPBACK_MSS + MAX_TCP_HEADER + SKB + SKB_SHARED_INFO) as u64;

impl TcpSock {
    /// tcp_input.c: tcp_rcv_rtt_update(). `window`: the sample is the time in which a window's data came; the least of
    /// these counts.
    ///
    /// Differs: 6.12.y and 6.1.y also take any other sample that is less than the estimate, unsmoothed.
    fn tcp_rcv_rtt_update(&mut self, sample_us: u64, window: bool, growth: RcvbufGrowth) {
        let waits = self.rcv_nxt != self.copied_seq;
        let rtt = &mut self.rcv_rtt_est.rtt;
        if growth == RcvbufGrowth::RoundTrip && *rtt != 0 {
            if sample_us << 3 < *rtt {
                *rtt = sample_us << 3;
                return;
            } else if waits {
                return;
            }
        }
        *rtt = match (*rtt, window) {
            (0, _) => sample_us << 3,
            (_, true) => (*rtt).min(sample_us << 3),
            (_, false) => *rtt - (*rtt >> 3) + sample_us,
        };
    }

    /// tcp_input.c: tcp_rcv_rtt_measure(): how long the data of a whole window take to come.
    ///
    /// Differs: until v4.12 times were measured in jiffies.
    pub(super) fn tcp_rcv_rtt_measure(&mut self, now: Ns, growth: RcvbufGrowth) {
        if let Some(since) = self.rcv_rtt_est.time {
            if self.rcv_nxt < self.rcv_rtt_est.seq {
                return;
            }
            self.tcp_rcv_rtt_update(((now.0 - since.0) / 1_000).max(1), true, growth);
        }
        self.rcv_rtt_est.seq = self.rcv_nxt + u64::from(self.rcv_wnd);
        self.rcv_rtt_est.time = Some(now);
    }

    /// tcp_input.c: tcp_rcv_rtt_measure_ts(): the age of the time stamp that the sender had seen last when it sent a
    /// full segment.
    ///
    /// Differs: v4.14 and older also take a repeated echo as a sample.
    pub(super) fn tcp_rcv_rtt_measure_ts(&mut self, now: Ns, packet: &TcpPacket, growth: RcvbufGrowth) {
        if packet.tsecr == self.rcv_rtt_est.last_tsecr {
            return;
        }
        self.rcv_rtt_est.last_tsecr = packet.tsecr;
        if packet.len >= self.icsk_ack.rcv_mss {
            let sample_us = tcp_time_stamp(now).saturating_sub(packet.tsecr).max(1) * 1_000;
            self.tcp_rcv_rtt_update(sample_us, false, growth);
        }
    }

    /// tcp_input.c: tcp_rcv_space_adjust(), after each copy to the reader: a buffer whose size nobody set grows with
    /// what the reader takes in a round trip.
    ///
    /// Differs: v6.18 and later use the time of the connection's last activity as the present; 6.12.y, too, does not count data
    /// that still wait.
    pub(super) fn tcp_rcv_space_adjust(&mut self, now: Ns, growth: RcvbufGrowth) {
        let rtt = self.rcv_rtt_est.rtt;
        if rtt == 0 || (now.0 - self.rcvq_space.time.0) / 1_000 < rtt >> 3 {
            return;
        }
        let (mut copied, space) = (self.copied_seq - self.rcvq_space.seq, self.rcvq_space.space);
        if growth == RcvbufGrowth::RoundTrip {
            copied = copied.saturating_sub(self.rcv_nxt - self.copied_seq);
        }
        if copied > space {
            if !self.rcvbuf_locked {
                self.grow_rcvbuf(copied, space, growth);
            }
            self.rcvq_space.space = copied;
        }
        self.rcvq_space.seq = self.copied_seq;
        self.rcvq_space.time = now;
    }

    /// tcp_input.c: tcp_rcvbuf_grow(): `copied` bytes were read in this round trip, and `space` in the last one that
    /// counted.
    fn grow_rcvbuf(&mut self, copied: u64, space: u64, growth: RcvbufGrowth) {
        let mss = u64::from(LOOPBACK_MSS);
        let cushion = if growth == RcvbufGrowth::RoundTrip { 0 } else { 16 * mss };
        let mut rcvwin = 2 * copied + cushion;
        match growth {
            RcvbufGrowth::Steps if copied >= space + (space >> 1) => rcvwin *= 2,
            RcvbufGrowth::Steps if copied >= space + (space >> 2) => rcvwin += rcvwin >> 1,
            RcvbufGrowth::Steps => {}
            RcvbufGrowth::Proportional => rcvwin += 2 * (rcvwin * (copied - space) / space.max(1)),
            RcvbufGrowth::RoundTrip if self.rcv_rtt_est.rtt >> 3 < TCP_RCVBUF_LOW_RTT_US => {
                rcvwin += rcvwin * (self.rcv_rtt_est.rtt >> 3) / TCP_RCVBUF_LOW_RTT_US;
            }
            RcvbufGrowth::RoundTrip => rcvwin += 2 * rcvwin * (copied - space) / space.max(1),
        }
        let rcvbuf = match self.scaling_ratio {
            Some(ratio) => (rcvwin << 8) / u64::from(ratio),
            // This many segments, each with enough memory that half of it holds a full segment.
            None => rcvwin / mss * (FULL_SEGMENT + (2 * mss - 1 - FULL_SEGMENT).next_multiple_of(128)),
        };
        let rcvbuf = rcvbuf.min(u64::from(self.rmem_max)) as u32;
        if rcvbuf > self.sk_rcvbuf {
            self.sk_rcvbuf = rcvbuf;
            self.window_clamp = match growth {
                // The size that was wanted, even if the buffer may not grow that large.
                RcvbufGrowth::Steps => u32::try_from(rcvwin).unwrap_or(u32::MAX),
                RcvbufGrowth::Proportional | RcvbufGrowth::RoundTrip => self.tcp_full_space() as u32,
            };
        }
    }

    /// tcp_input.c: tcp_clamp_window(): more waits to be read than the buffer may hold.
    pub(super) fn tcp_clamp_window(&mut self) {
        self.icsk_ack.quick = 0;
        if !self.rcvbuf_locked && self.sk_rcvbuf < self.rmem_max {
            self.sk_rcvbuf = self.sk_rmem_alloc.min(self.rmem_max);
        }
        if self.sk_rmem_alloc > self.sk_rcvbuf {
            self.rcv_ssthresh = self.window_clamp.min(2 * LOOPBACK_MSS);
        }
    }

    /// tcp_input.c: tcp_sndbuf_expand(): a send buffer whose size nobody set holds two congestion windows of full
    /// segments. The memory of each is a power of two.
    pub(super) fn tcp_sndbuf_expand(&mut self) {
        let segment = (LOOPBACK_MSS + MAX_TCP_HEADER + SKB_SHARED_INFO).next_power_of_two() + SKB;
        let sndmem = u64::from(self.snd_cwnd.max(TCP_INIT_CWND)) * 2 * u64::from(segment);
        self.sk_sndbuf = self.sk_sndbuf.max(sndmem.min(u64::from(TCP_WMEM_MAX)) as u32);
    }

    /// tcp_input.c: tcp_should_expand_sndbuf().
    pub(super) fn tcp_should_expand_sndbuf(&self) -> bool {
        !self.sndbuf_locked && (self.packets_out as u32) < self.snd_cwnd
    }

    /// tcp.h: tcp_win_from_space(): how much of a buffer may be data.
    pub(super) fn tcp_win_from_space(&self, space: i64) -> i64 {
        match self.scaling_ratio {
            Some(ratio) => (space * i64::from(ratio)) >> 8,
            None => space - (space >> 1),
        }
    }

    /// In tcp_input.c: tcp_measure_rcv_mss(): measures the share of a segment's memory that is data, when a segment is
    /// longer than any before.
    pub(super) fn measure_scaling_ratio(&mut self, packet: &TcpPacket) {
        if self.scaling_ratio.is_none() || packet.len <= self.icsk_ack.rcv_mss {
            return;
        }
        let ratio = Some((((u64::from(packet.len)) << 8) / u64::from(packet.truesize)).max(1) as u32);
        let changed = std::mem::replace(&mut self.scaling_ratio, ratio) != ratio;
        if changed && self.window_share != WindowShare::QuarterFirst {
            let clamp = self.tcp_full_space() as u32;
            if self.window_share == WindowShare::Measured {
                self.window_clamp = clamp;
            } else {
                self.tcp_set_window_clamp(clamp);
            }
            self.rcvq_space.space = self.rcvq_space.space.min(u64::from(self.window_clamp));
        }
    }

    /// tcp.c: tcp_set_window_clamp(): sets the highest window that is offered; the present offer follows it.
    fn tcp_set_window_clamp(&mut self, val: u32) {
        let clamp = val.max(super::TCP_SKB_MIN_TRUESIZE / 2);
        match clamp.cmp(&self.window_clamp) {
            std::cmp::Ordering::Less => self.rcv_ssthresh = self.rcv_ssthresh.min(clamp),
            std::cmp::Ordering::Equal => return,
            std::cmp::Ordering::Greater => self.rcv_ssthresh = self.rcv_ssthresh.max(self.rcv_wnd.min(clamp)),
        }
        self.window_clamp = clamp;
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Buffers, NetRules};
    use super::*;
    use crate::net::rules::RmemMax;
    use sched::layout::{Line, Region};

    fn sock(rules: &NetRules, receive: Option<u32>) -> TcpSock {
        let mut sock = TcpSock::established(
            Line { region: Region::Os, index: 0 },
            0,
            true,
            Buffers { send: None, receive },
            rules,
        );
        sock.tcp_rcv_rtt_update(1_000, false, rules.rcvbuf_growth);
        sock
    }

    /// The buffer and the window's limit after round trips of a millisecond in which this many bytes were read.
    fn after(sock: &mut TcpSock, growth: RcvbufGrowth, trips: &[u64]) -> (u32, u32) {
        for copied in trips {
            sock.copied_seq += copied;
            sock.rcv_nxt = sock.copied_seq;
            let now = sock.rcvq_space.time + Ns(999_999);
            sock.tcp_rcv_space_adjust(now, growth);
            assert_ne!(sock.rcvq_space.time, now, "the round trip is not over");
            sock.tcp_rcv_space_adjust(now + Ns(1), growth);
        }
        (sock.sk_rcvbuf, sock.window_clamp)
    }

    fn segment(len: u32, truesize: u32) -> TcpPacket {
        let (linear, psh, fin, tsval, tsecr, ack_seq, window) = (0, false, false, 0, 0, 0, 0);
        let writer = units::CpuId(0);
        TcpPacket { to: 0, seq: 0, len, linear, truesize, psh, fin, tsval, tsecr, ack_seq, window, writer }
    }

    // By hand: twice what was read, plus 16 segments of 65483, in 131019 bytes each if half a buffer is the window.
    #[test]
    fn a_buffer_grows_with_what_is_read_in_a_round_trip() {
        let rules = NetRules::V4_15;
        // From 43690 before: as much again. Then less than a quarter more, which results in less than it has.
        let grown = (38 * 131_019, 2_495_456);
        assert_eq!(after(&mut sock(&rules, None), rules.rcvbuf_growth, &[100_000]), grown);
        assert_eq!(after(&mut sock(&rules, None), rules.rcvbuf_growth, &[100_000, 110_000]), grown);
        // The limit bounds everything; the window becomes what was wanted.
        let (rcvbuf, clamp) = after(&mut sock(&rules, None), rules.rcvbuf_growth, &[1_000_000]);
        assert_eq!((rcvbuf, clamp), (6 << 20, 2 * (2_000_000 + 16 * 65_483)));
        // From 65483 before, 34517 more: 2 * 657694 for that.
        let wanted = 1_247_728 + 2 * 657_694;
        let rules = NetRules::V6_1;
        let rcvbuf = wanted / 65_483 * 131_019;
        assert_eq!(after(&mut sock(&rules, None), rules.rcvbuf_growth, &[100_000]), (rcvbuf, rcvbuf - rcvbuf / 2));
        let rules = NetRules::V6_12;
        assert_eq!(after(&mut sock(&rules, None), rules.rcvbuf_growth, &[100_000]), (2 * wanted, wanted));
        // Without those segments: 200000, plus the share 34517 of 65483 of twice that. The limit is far above v6.12's.
        let rules = NetRules::V6_18;
        let wanted = 200_000 + (400_000u64 * 34_517 / 65_483) as u32;
        assert_eq!(after(&mut sock(&rules, None), rules.rcvbuf_growth, &[100_000]), (2 * wanted, wanted));
        assert_eq!(after(&mut sock(&rules, None), rules.rcvbuf_growth, &[2_000_000]).0, 32 << 20);
        let cut = NetRules { rmem_max: RmemMax::SixMegabytes, ..rules };
        assert_eq!(after(&mut sock(&cut, None), rules.rcvbuf_growth, &[2_000_000]).0, 6 << 20);
    }

    #[test]
    fn v6_6_offers_a_quarter_until_the_buffer_grows() {
        // 65 of 256 parts of twice 100000.
        let mut set = sock(&NetRules::V6_6, Some(100_000));
        assert_eq!((set.tcp_full_space(), set.window_clamp), (50_781, 50_781));
        set.measure_scaling_ratio(&segment(60_000, 80_000));
        assert_eq!((set.tcp_full_space(), set.window_clamp), (150_000, 50_781));
        // One whose size nobody set begins with 128 KiB, and grows for what was read beyond that window, in shares of the measured.
        let mut own = sock(&NetRules::V6_6, None);
        assert_eq!(own.window_clamp, 33_280);
        own.measure_scaling_ratio(&segment(60_000, 80_000));
        let (rcvbuf, clamp) = after(&mut own, NetRules::V6_6.rcvbuf_growth, &[40_000]);
        let wanted = {
            let twice = 2 * 40_000 + 16 * 65_483_u64;
            twice + 2 * (twice * (40_000 - 33_280) / 33_280)
        };
        assert_eq!((u64::from(rcvbuf), u64::from(clamp)), (wanted * 256 / 192, wanted * 256 / 192 * 192 / 256));
    }

    #[test]
    fn v7_2_grows_by_the_round_trip_and_by_what_was_read_of_what_came() {
        let growth = NetRules::V6_18.rcvbuf_growth;
        // A quarter of a millisecond: a quarter more than twice.
        let mut quick = sock(&NetRules::V6_18, None);
        quick.tcp_rcv_rtt_update(250, false, growth);
        quick.copied_seq = 100_000;
        quick.rcv_nxt = 100_000;
        quick.tcp_rcv_space_adjust(quick.rcvq_space.time + Ns(250_000), growth);
        assert_eq!((quick.rcvq_space.space, quick.window_clamp), (100_000, 250_000));
        // Of 200000 bytes that were read 120000 count, because 80000 still wait.
        quick.copied_seq += 200_000;
        quick.rcv_nxt = quick.copied_seq + 80_000;
        quick.tcp_rcv_space_adjust(quick.rcvq_space.time + Ns(250_000), growth);
        assert_eq!((quick.rcvq_space.space, quick.window_clamp), (120_000, 300_000));
        // A longer round trip is due to the queue, as long as there is one.
        quick.tcp_rcv_rtt_update(9_000, false, growth);
        assert_eq!(quick.rcv_rtt_est.rtt, 8 * 250);
        quick.copied_seq = quick.rcv_nxt;
        quick.tcp_rcv_rtt_update(9_000, false, growth);
        assert_eq!(quick.rcv_rtt_est.rtt, 7 * 250 + 9_000);
        let mut before = sock(&NetRules::V6_12, None);
        before.tcp_rcv_rtt_update(250, false, NetRules::V6_12.rcvbuf_growth);
        assert_eq!(before.rcv_rtt_est.rtt, 7 * 1_000 + 250, "smoothed");
    }

    #[test]
    fn a_buffer_that_was_set_stays() {
        for rules in [NetRules::V4_5, NetRules::V6_1, NetRules::V6_12, NetRules::V6_18] {
            let mut sock = sock(&rules, Some(100_000));
            let before = (sock.sk_rcvbuf, sock.window_clamp);
            assert_eq!(after(&mut sock, rules.rcvbuf_growth, &[200_000, 400_000]), before);
        }
    }

    #[test]
    fn the_share_of_data_in_the_longest_segment_becomes_the_windows() {
        let mut sock = sock(&NetRules::V6_12, Some(100_000));
        assert_eq!(sock.tcp_full_space(), 100_000);
        // Not longer than the estimate of a full segment.
        sock.measure_scaling_ratio(&segment(sock.icsk_ack.rcv_mss, 4_096));
        assert_eq!(sock.tcp_full_space(), 100_000);
        sock.measure_scaling_ratio(&segment(3_000, 4_000));
        assert_eq!((sock.tcp_full_space(), sock.window_clamp), (150_000, 150_000));
    }

    #[test]
    fn what_is_offered_follows_a_lower_limit_at_once_since_v6_18() {
        for (rules, offered) in [(NetRules::V6_12, 90_000), (NetRules::V6_18, 50_000)] {
            let mut sock = sock(&rules, Some(100_000));
            sock.rcv_ssthresh = 90_000;
            sock.measure_scaling_ratio(&segment(1_000, 4_000));
            assert_eq!((sock.window_clamp, sock.rcv_ssthresh), (50_000, offered));
        }
    }
}
