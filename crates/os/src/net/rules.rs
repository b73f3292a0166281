//! What differs between kernel versions in net/, and the arithmetic of socket buffers.

use super::poll::EpollWakeup;
use sched::{behaviour, rules};

behaviour! {
    /// Who does the work of a segment that arrives for a reader who sleeps.
    pub enum Prequeue = "tcp.prequeue" {
        Used = "used", since "v2.4", commit "",
            "who sleeps in recv() is woken first and processes the segment itself, copying past the receive queue";
        Gone = "gone", since "v4.14", commit "e7942d0633c4", "the softirq does, in the sender's context on loopback";
    }
}

behaviour! {
    /// How much of a segment's data lies behind its header, which decides what the segment takes of the buffers.
    pub enum Payload = "tcp.payload" {
        Linear = "linear", since "v2.6", commit "", "up to 1408 bytes in each segment's head of 2 KiB";
        FirstLinear = "first-linear", since "v4.9", commit "3613b3dbd1ad",
            "in the first of an empty queue only";
        Pages = "pages", since "v5.2", commit "472c2e07eef0", "none: all data lies in page fragments";
        TcpHeads = "tcp-heads", since "v6.3", commit "bf9f1baa279f", "none, and heads come from a slab of their own size";
        SmallHeads = "small-heads", since "v6.14", commit "14ad6ed30a10", "the same, with another line in each";
    }
}

behaviour! {
    /// When a sender processes what arrived while it owned its socket.
    pub enum SendBacklog = "tcp.send_backlog" {
        AtRelease = "at-release", since "v2.4", commit "", "when it lets go of the socket";
        PerSegment = "per-segment", since "v4.7", commit "d41a69f1d390", "before each new segment as well";
    }
}

behaviour! {
    /// What a segment as long as the longest so far, with which a send ends, means to its reader.
    pub enum FullSegment = "tcp.full_segment" {
        Plain = "plain", since "v2.6", commit "", "nothing: every second one is acknowledged";
        /// v5.4.y, v5.10.y, v5.15.y and v6.1.y have it too.
        Pushes = "pushes", since "v6.6", commit "4720852ed9af",
            "what a shorter one does: an acknowledgement once all has been read, unless the reader answers";
    }
}

behaviour! {
    /// Which segments use up those acknowledgements that a connection sends at once in its beginning.
    pub enum QuickAck = "tcp.quick_ack" {
        Segments = "segments", since "v2.6", commit "", "all that leave";
        /// v5.4.y, v5.10.y, v5.15.y and v6.1.y have it too.
        Acknowledging = "acknowledging", since "v6.6", commit "059217c18be6", "those with an acknowledgement that was due";
    }
}

behaviour! {
    /// When a connection becomes interactive (`icsk_ack.pingpong`), so that an acknowledgement waits for the data of an answer.
    pub enum Pingpong = "tcp.pingpong" {
        Answer = "answer", since "v2.6", commit "", "with the first answer that comes soon enough";
        ThreeAnswers = "three-answers", since "v5.1", commit "",
            "with the third; of those in one jiffy only the first counts (after v4.19, by v5.4)";
        AnswerAgain = "answer-again", since "v5.19", commit "", "with the first again";
    }
}

behaviour! {
    /// How a task that sleeps in sk_wait_event() stands on its socket's queue.
    pub enum WaitEvent = "sock.wait_event" {
        Autoremove = "autoremove", since "v2.6", commit "", "who wakes it takes it off: what comes before it runs wakes nobody";
        Woken = "woken", since "v4.10", commit "d9dc8b0f8b4e",
            "until it runs and leaves by itself: whatever comes until then tries to wake it again";
    }
}

behaviour! {
    /// The most that an application's wish for a buffer counts for (net.core.rmem_max, net.core.wmem_max).
    pub enum BufferMax = "sock.buffer_max" {
        Default = "default", since "v2.6.26", commit "", "what it gets by itself, 212992 bytes";
        FourMegabytes = "4m", since "v6.18", commit "", "4 MiB";
    }
}

behaviour! {
    /// The receive buffer of a connection that has not been given one.
    pub enum DefaultBuffer = "tcp.default_buffer" {
        Fixup = "fixup", since "v2.6", commit "", "what eight times two full segments take: 1 MB on loopback";
        Initial = "initial", since "v4.20", commit "a337531b942b", "tcp_rmem[1], 128 KiB, to begin with";
    }
}

behaviour! {
    /// By how much a receive buffer that nobody set grows when its reader takes more in a round trip than before.
    pub enum RcvbufGrowth = "tcp.rcvbuf_growth" {
        Steps = "steps", since "v3.13", commit "b0983d3c9b13",
            "for twice that and 16 segments; half as much again if it is a quarter more, as much again if it is half more";
        Proportional = "proportional", since "v4.16", commit "c3916ad9320e",
            "the same, and twice the share by which it is more";
        /// Late releases of v6.18.y have it too (the tree is 6.18.35).
        RoundTrip = "round-trip", since "v6.19", commit "",
            "of what it took, less what still waits, for twice that, and once more by what the round trip has of a millisecond; from there on by twice the share. A longer round trip counts only where nothing waits, a shorter one at once";
    }
}

behaviour! {
    /// The most that such a buffer grows to (net.ipv4.tcp_rmem[2]), as a machine with some GB of memory sets it.
    pub enum RmemMax = "tcp.rmem_max" {
        SixMegabytes = "6m", since "v3.4", commit "", "6 MiB";
        ThirtyTwo = "32m", since "v6.16", commit "572be9bf9d0d", "32 MiB";
    }
}

behaviour! {
    /// Up to where the window that a receiver would offer grows with each segment that fits well.
    pub enum GrowWindow = "tcp.grow_window" {
        ToClamp = "to-clamp", since "v2.6", commit "", "to the most that it offers at all";
        ToSpace = "to-space", since "v5.1", commit "50ce163a72d8", "to what of the buffer is free now, if that is less";
    }
}

behaviour! {
    /// What becomes of a receive queue that takes more memory than its buffer may, where nobody set that.
    pub enum Prune = "tcp.prune" {
        Collapses = "collapses", since "v2.6", commit "", "the buffer grows to it, and it is copied together";
        Grows = "grows", since "v4.18", commit "f4a3313d8e2c", "the buffer grows to it; it is copied only where that is not enough";
    }
}

behaviour! {
    /// How much of a receive buffer is offered as a window.
    pub enum WindowShare = "tcp.window_share" {
        Half = "half", since "v3.4", commit "", "half, as net.ipv4.tcp_adv_win_scale says";
        QuarterFirst = "quarter-first", since "v6.6", commit "dfa2f0483360",
            "what data take of the memory of the longest segment so far, a quarter at first; but no more than the limit that came of it, \
             until the buffer grows";
        /// Half at first since v6.9.
        Measured = "measured", since "v6.11", commit "a2cbb1603943",
            "the same, half at first; the limit follows at once";
        MeasuredOffer = "measured-offer", since "v6.14", commit "f5da7c45188e",
            "the same, and what is offered now follows the limit (tcp_set_window_clamp(); after v6.12, by v6.18)";
    }
}

behaviour! {
    /// Where a segment is freed that its reader has read whole.
    pub enum DeferFree = "skb.defer_free" {
        Reader = "reader", since "v2.6", commit "", "where it was read";
        Allocator = "allocator", since "v5.19", commit "68822bdf76f1",
            "on the CPU that allocated it, in its next receive softirq, up to 64 of them; who leaves it the 33rd sends it an interrupt";
        Lockless = "lockless", since "v6.18", commit "",
            "there, from a list that needs no lock, up to 128; an interrupt comes with the 65th";
    }
}

behaviour! {
    /// How a UDP socket takes a datagram in.
    pub enum UdpReceive = "udp.receive" {
        Locked = "locked", since "v2.6", commit "", "under the socket's lock; dropped if the buffer was full before";
        Lockless = "lockless", since "v4.10", commit "850cbaddb52d",
            "without that lock; dropped if it overfills the buffer, which may hold one more than full";
        Batched = "batched", since "v4.13", commit "2276f58ac589",
            "the same; its reader takes all there is to a queue of its own, and gives their memory back together: when that is empty, or a quarter of the buffer (6b229cf77d68)";
        Queues = "queues", since "v6.18", commit "",
            "the same by way of a queue of the senders' own; dropped if it would overfill the buffer, unless that is empty; what was read is freed where it was allocated";
    }
}

/// What differs between kernel versions in net/.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NetRules {
    pub prequeue: Prequeue,
    pub payload: Payload,
    pub send_backlog: SendBacklog,
    pub full_segment: FullSegment,
    pub quick_ack: QuickAck,
    pub pingpong: Pingpong,
    pub wait_event: WaitEvent,
    pub buffer_max: BufferMax,
    pub default_buffer: DefaultBuffer,
    pub rcvbuf_growth: RcvbufGrowth,
    pub rmem_max: RmemMax,
    pub grow_window: GrowWindow,
    pub prune: Prune,
    pub window_share: WindowShare,
    pub defer_free: DeferFree,
    pub udp_receive: UdpReceive,
    pub epoll_wakeup: EpollWakeup,
}

impl NetRules {
    pub const V4_5: NetRules = NetRules {
        prequeue: Prequeue::Used,
        payload: Payload::Linear,
        send_backlog: SendBacklog::AtRelease,
        full_segment: FullSegment::Plain,
        quick_ack: QuickAck::Segments,
        pingpong: Pingpong::Answer,
        wait_event: WaitEvent::Autoremove,
        buffer_max: BufferMax::Default,
        default_buffer: DefaultBuffer::Fixup,
        rcvbuf_growth: RcvbufGrowth::Steps,
        rmem_max: RmemMax::SixMegabytes,
        grow_window: GrowWindow::ToClamp,
        prune: Prune::Collapses,
        window_share: WindowShare::Half,
        defer_free: DeferFree::Reader,
        udp_receive: UdpReceive::Locked,
        epoll_wakeup: EpollWakeup::Plain,
    };
    pub const V4_15: NetRules = NetRules {
        prequeue: Prequeue::Gone,
        payload: Payload::FirstLinear,
        send_backlog: SendBacklog::PerSegment,
        wait_event: WaitEvent::Woken,
        udp_receive: UdpReceive::Batched,
        ..NetRules::V4_5
    };
    pub const V4_16: NetRules = NetRules { rcvbuf_growth: RcvbufGrowth::Proportional, ..NetRules::V4_15 };

    /// As in 4.19.108, which is newer in `default_buffer` and `grow_window` than v4.19 itself.
    pub const V4_19: NetRules = NetRules {
        default_buffer: DefaultBuffer::Initial,
        grow_window: GrowWindow::ToSpace,
        prune: Prune::Grows,
        ..NetRules::V4_16
    };

    /// As in 5.4.286, which is newer in `full_segment` and `quick_ack` than v5.4 itself.
    pub const V5_4: NetRules = NetRules {
        full_segment: FullSegment::Pushes,
        quick_ack: QuickAck::Acknowledging,
        pingpong: Pingpong::ThreeAnswers,
        payload: Payload::Pages,
        ..NetRules::V4_19
    };

    /// As in 5.10.262, which is newer in `full_segment`, `quick_ack` and `epoll_wakeup` than v5.10 itself.
    pub const V5_10: NetRules =
        NetRules { epoll_wakeup: EpollWakeup::Sync, pingpong: Pingpong::AnswerAgain, ..NetRules::V5_4 };

    /// As in 5.15.135, which is older in `epoll_wakeup` than 5.10.262.
    pub const V5_15: NetRules = NetRules { epoll_wakeup: EpollWakeup::Plain, ..NetRules::V5_10 };
    pub const V6_1: NetRules =
        NetRules { epoll_wakeup: EpollWakeup::Sync, defer_free: DeferFree::Allocator, ..NetRules::V5_15 };
    pub const V6_6: NetRules = NetRules {
        payload: Payload::TcpHeads,
        window_share: WindowShare::QuarterFirst,
        epoll_wakeup: EpollWakeup::Plain,
        ..NetRules::V6_1
    };
    /// As in 6.12.117, which is newer in `payload` and `epoll_wakeup` than v6.12 itself.
    pub const V6_12: NetRules = NetRules {
        payload: Payload::SmallHeads,
        window_share: WindowShare::Measured,
        epoll_wakeup: EpollWakeup::Sync,
        ..NetRules::V6_6
    };
    /// As in 6.18.35, which is newer in `rcvbuf_growth` than v6.18 itself. v7.2 differs in nothing of this.
    pub const V6_18: NetRules = NetRules {
        buffer_max: BufferMax::FourMegabytes,
        rcvbuf_growth: RcvbufGrowth::RoundTrip,
        rmem_max: RmemMax::ThirtyTwo,
        defer_free: DeferFree::Lockless,
        udp_receive: UdpReceive::Queues,
        window_share: WindowShare::MeasuredOffer,
        ..NetRules::V6_12
    };
}

rules! {
    NetRules {
        prequeue, payload, send_backlog, full_segment, quick_ack, pingpong, wait_event, buffer_max, default_buffer, rcvbuf_growth,
        rmem_max, grow_window, prune, window_share, defer_free, udp_receive, epoll_wakeup,
    }
}

/// The sizes that an application requests for a socket's buffers, in bytes (SO_SNDBUF, SO_RCVBUF); `None`: no request.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Buffers {
    pub send: Option<u32>,
    pub receive: Option<u32>,
}

// Sizes on x86-64, in bytes.

/// sizeof(struct sk_buff), as the slab allocates it.
pub const SKB: u32 = 256;
/// sizeof(struct skb_shared_info), aligned: at the end of each packet's head.
pub const SKB_SHARED_INFO: u32 = 320;
/// include/net/tcp.h: MAX_TCP_HEADER.
pub const MAX_TCP_HEADER: u32 = 320;
/// include/net/sock.h: TCP_SKB_MIN_TRUESIZE.
pub const TCP_SKB_MIN_TRUESIZE: u32 = 2048 + SKB;
/// net.core.rmem_default and wmem_default: SKB_TRUESIZE(256) times 256.
pub const SK_MEM_DEFAULT: u32 = 212_992;

impl BufferMax {
    fn bytes(self) -> u32 {
        match self {
            BufferMax::Default => SK_MEM_DEFAULT,
            BufferMax::FourMegabytes => 4 << 20,
        }
    }

    /// sock.c: sock_setsockopt(), SO_SNDBUF: the size that the socket gets for a request of `asked`.
    pub fn sndbuf(self, asked: u32) -> u32 {
        (asked.min(self.bytes()) * 2).max(2 * TCP_SKB_MIN_TRUESIZE)
    }

    /// The same for SO_RCVBUF.
    pub fn rcvbuf(self, asked: u32) -> u32 {
        (asked.min(self.bytes()) * 2).max(TCP_SKB_MIN_TRUESIZE)
    }
}

/// skb->truesize: what kmalloc() allocates for `head` bytes of a packet's head and its shared information, plus the
/// packet's own structure.
pub fn truesize(head: u32) -> u32 {
    (head + SKB_SHARED_INFO).next_power_of_two() + SKB
}

/// skbuff.c: GRO_MAX_HEAD_PAD, in whole lines.
const GRO_MAX_HEAD_PAD: u32 = 384;

impl Payload {
    /// skbuff.c: the room in a head from its own slab (SKB_SMALL_HEAD_SIZE, without its shared information), if there is one.
    fn small_head(self) -> Option<u32> {
        match self {
            Payload::Linear | Payload::FirstLinear | Payload::Pages => None,
            Payload::TcpHeads => Some(MAX_TCP_HEADER),
            Payload::SmallHeads => Some(GRO_MAX_HEAD_PAD),
        }
    }

    /// skb->truesize of an empty segment that has room for `linear` bytes of data in its head.
    pub fn empty_truesize(self, linear: u32) -> u32 {
        match self.small_head() {
            Some(small) if linear == 0 => small + SKB_SHARED_INFO + SKB,
            _ => truesize(MAX_TCP_HEADER + linear),
        }
    }

    /// skb->truesize of a packet with `head` bytes in its head, for a socket whose memory is not charged to a cgroup
    /// (AF_UNIX's is, so it does not use that slab).
    pub fn truesize(self, head: u32) -> u32 {
        match self.small_head() {
            Some(small) if head <= small => small + SKB_SHARED_INFO + SKB,
            _ => truesize(head),
        }
    }
}

impl UdpReceive {
    /// Whether the reader has a queue of its own.
    pub fn has_reader_queue(self) -> bool {
        match self {
            UdpReceive::Locked | UdpReceive::Lockless => false,
            UdpReceive::Batched | UdpReceive::Queues => true,
        }
    }
}

impl Pingpong {
    /// inet_connection_sock.h: TCP_PINGPONG_THRESH: how many answers make a connection interactive.
    pub fn threshold(self) -> u8 {
        match self {
            Pingpong::Answer | Pingpong::AnswerAgain => 1,
            Pingpong::ThreeAnswers => 3,
        }
    }
}

impl RmemMax {
    /// In bytes.
    pub fn bytes(self) -> u32 {
        match self {
            RmemMax::SixMegabytes => 6 << 20,
            RmemMax::ThirtyTwo => 32 << 20,
        }
    }
}

impl WindowShare {
    /// tcp.h: tcp_scaling_ratio_init() (until v6.8 of 1200 bytes in a page), of 256.
    #[doc(alias = "tcp_scaling_ratio_init")]
    pub fn scaling_ratio(self) -> Option<u32> {
        const PAGE: u32 = 4096;
        match self {
            WindowShare::Half => None,
            WindowShare::QuarterFirst => Some((1200 << 8) / (PAGE + SKB + SKB_SHARED_INFO)),
            WindowShare::Measured | WindowShare::MeasuredOffer => Some(128),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_of_message_size_and_256_come_out_as_measured() {
        // Confirmed on a running kernel: the least that setsockopt() grants is 4608 and 2304 bytes.
        let cases = [(320, 4608, 2304), (1280, 4608, 2560), (2304, 4608, 4608), (16_640, 33_280, 33_280)];
        for (asked, send, receive) in cases {
            for most in [BufferMax::Default, BufferMax::FourMegabytes] {
                assert_eq!((most.sndbuf(asked), most.rcvbuf(asked)), (send, receive), "{asked}");
            }
        }
        let most = |of: BufferMax| (of.sndbuf(1 << 20), of.rcvbuf(8 << 20));
        assert_eq!(most(BufferMax::Default), (425_984, 425_984));
        assert_eq!(most(BufferMax::FourMegabytes), (2 << 20, 8 << 20));
    }

    #[test]
    fn heads_take_what_the_slab_has() {
        assert_eq!(truesize(MAX_TCP_HEADER + 1408), 2304);
        assert_eq!(truesize(MAX_TCP_HEADER), 1280);
        let later = [Payload::Pages, Payload::TcpHeads, Payload::SmallHeads];
        assert_eq!(later.map(|of| of.empty_truesize(0)), [1280, 896, 960]);
        assert_eq!(Payload::Linear.empty_truesize(1408), 2304);
        // A message of 100 bytes in an AF_UNIX socket, and in a datagram; one that is too long for a small head.
        assert_eq!(truesize(100), 768);
        assert_eq!(later.map(|of| of.truesize(100)), [768, 896, 960]);
        assert_eq!(Payload::SmallHeads.truesize(GRO_MAX_HEAD_PAD + 1), truesize(GRO_MAX_HEAD_PAD + 1));
    }
}
