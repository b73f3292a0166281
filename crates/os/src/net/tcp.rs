//! net/ipv4/tcp*.c: a TCP connection over loopback, segment by segment, with the kernel's arithmetic of buffers and windows.
//!
//! Fields have the kernel's names. Sequence numbers begin at 0 and do not wrap; a closed direction ends one later
//! (FIN).

mod frag;
mod input;
mod output;
mod recvmsg;
mod sendmsg;
mod space;
mod window;

use super::poll::Watch;
use super::rules::{self, Buffers, DefaultBuffer, NetRules, TCP_SKB_MIN_TRUESIZE, WaitEvent, WindowShare};
use super::{Net, NetCall, Socket, Stage, line};
use crate::wait::WaitQueue;
use crate::{Os, Step, charge, paths, within};
use sched::arch::Arch;
use sched::layout::Line;
use sched::sched::{TaskId, TaskState, WakeFlags};
use sched::scheduler::Scheduler;
use space::{RcvRttEst, RcvqSpace};
use std::collections::VecDeque;
use units::{CpuId, Ns};

/// Bytes of data in a full segment on loopback: an MTU of 65536 without headers and timestamps.
pub const LOOPBACK_MSS: u32 = 65_483;
/// TCP_INIT_CWND.
const TCP_INIT_CWND: u32 = 10;
/// TCP_MSS_DEFAULT.
const TCP_MSS_DEFAULT: u32 = 536;
/// TCP_ATO_MIN and TCP_DELACK_MIN: HZ / 25.
const TCP_ATO_MIN: Ns = Ns::from_ms(40);
/// HZ / 5.
const TCP_RTO_MIN: Ns = Ns::from_ms(200);
/// tcp_wmem[2], as a machine with some GB of memory sets it.
const TCP_WMEM_MAX: u32 = 4 << 20;

/// The lines of a `tcp_sock` that both sides of a connection touch, each named for what lies there.
#[derive(Clone, Copy)]
enum SockLine {
    /// sock_common: addresses, state, reference count.
    Common,
    /// sk_lock with the owner, sk_receive_queue, sk_rmem_alloc, sk_backlog.
    Lock,
    /// sk_wmem_alloc, sk_write_queue, sk_forward_alloc, sk_wmem_queued.
    Write,
    /// socket_wq.
    Wait,
    /// icsk_ack.
    Ack,
    /// rcv_nxt, copied_seq, rcv_wup, prequeue.
    Receive,
    /// snd_una, snd_nxt, snd_wnd, write_seq.
    Send,
    /// packets_out, snd_cwnd, round trip times.
    Congestion,
    /// The route's reference count.
    Route,
    LockWait,
}

/// The content of each line.
const LINES: [&str; SockLine::LockWait as usize + 1] = [
    "tcp_sock: sock_common",
    "tcp_sock: sk_lock, sk_receive_queue, sk_rmem_alloc, sk_backlog",
    "tcp_sock: sk_wmem_alloc, sk_write_queue, sk_forward_alloc, sk_wmem_queued",
    "tcp_sock: socket_wq",
    "tcp_sock: icsk_ack",
    "tcp_sock: rcv_nxt, copied_seq, rcv_wup",
    "tcp_sock: snd_una, snd_nxt, snd_wnd, write_seq",
    "tcp_sock: packets_out, snd_cwnd, srtt",
    "tcp_sock: reference count of its route",
    "tcp_sock: sk_lock.wq",
];

/// struct sk_buff with data.
#[derive(Clone, Copy, Debug)]
struct Skb {
    seq: u64,
    len: u32,
    /// For how many bytes of data its head has room; 0 if nothing will be added to it.
    linear: u32,
    truesize: u32,
    /// TCPHDR_PSH: a send ended with this segment.
    psh: bool,
    /// The CPU whose caches hold it; `touched`: its reader has read its structure.
    writer: CpuId,
    touched: bool,
}

impl Skb {
    fn end_seq(&self) -> u64 {
        self.seq + u64::from(self.len)
    }
}

/// A segment, as its receiver sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct TcpPacket {
    pub to: u32,
    seq: u64,
    len: u32,
    /// For how many bytes of data its head has room.
    linear: u32,
    truesize: u32,
    psh: bool,
    fin: bool,
    /// Time stamps: when it was sent, and the one that its sender had received last.
    tsval: u64,
    tsecr: u64,
    ack_seq: u64,
    window: u32,
    writer: CpuId,
}

impl TcpPacket {
    fn end_seq(&self) -> u64 {
        self.seq + u64::from(self.len) + u64::from(self.fin)
    }
}

/// icsk_ack.
#[derive(Clone, Copy, Debug, Default)]
struct Ack {
    /// ICSK_ACK_SCHED, ICSK_ACK_PUSHED, ICSK_ACK_PUSHED2.
    scheduled: bool,
    pushed: bool,
    pushed2: bool,
    /// ICSK_ACK_TIMER: when it fires.
    timeout: Option<Ns>,
    /// How many answers counted since it was no longer interactive ([`super::rules::Pingpong`]).
    pingpong: u8,
    quick: u32,
    ato: Ns,
    lrcvtime: Ns,
    /// tp->lsndtime.
    lsndtime: Ns,
    rcv_mss: u32,
    last_seg_size: u32,
}

/// tp->ucopy: a reader that sleeps, or that processes what arrived for it.
#[derive(Clone, Copy, Debug)]
struct Ucopy {
    task: TaskId,
    len: u32,
}

/// struct tcp_sock.
pub(crate) struct TcpSock {
    base: Line,
    peer: u32,
    sk_wq: WaitQueue,
    /// The epoll file that watches it, if any.
    pub(super) watch: Option<Watch>,
    /// sk_lock.wq.
    lock_wq: WaitQueue,
    /// sk_lock.owned: the owner.
    owned: Option<TaskId>,
    sk_backlog: VecDeque<TcpPacket>,
    sk_sndbuf: u32,
    sk_rcvbuf: u32,
    /// SOCK_SNDBUF_LOCK, SOCK_RCVBUF_LOCK: whether an application has set the sizes, so that they stay.
    sndbuf_locked: bool,
    rcvbuf_locked: bool,
    sk_wmem_queued: u32,
    sk_rmem_alloc: u32,
    /// SOCK_NOSPACE, SOCK_QUEUE_SHRUNK.
    nospace: bool,
    queue_shrunk: bool,

    nodelay: bool,
    /// The first `packets_out` segments are sent and unacknowledged.
    sk_write_queue: VecDeque<Skb>,
    frags: frag::Frags,
    packets_out: usize,
    write_seq: u64,
    pushed_seq: u64,
    snd_una: u64,
    snd_nxt: u64,
    snd_sml: u64,
    snd_wnd: u32,
    max_window: u32,
    mss_cache: u32,
    snd_cwnd: u32,
    is_cwnd_limited: bool,
    /// SEND_SHUTDOWN: a FIN follows the last data; `fin_sent`: it has been sent.
    shutdown: bool,
    fin_sent: bool,

    sk_receive_queue: VecDeque<Skb>,
    rcv_nxt: u64,
    rcv_wup: u64,
    copied_seq: u64,
    rcv_wnd: u32,
    window_clamp: u32,
    rcv_ssthresh: u32,
    /// By how many bits its window announcements are scaled.
    rcv_wscale: u32,
    /// net.ipv4.tcp_rmem[2].
    rmem_max: u32,
    /// How many of 256 bytes of buffer may be data, on kernels that measure this.
    scaling_ratio: Option<u32>,
    window_share: WindowShare,
    rcv_rtt_est: RcvRttEst,
    rcvq_space: RcvqSpace,
    ts_recent: u64,
    prequeue: VecDeque<TcpPacket>,
    prequeue_memory: u32,
    ucopy: Option<Ucopy>,
    icsk_ack: Ack,
    /// ICSK_TIME_PROBE0: when a window without room for the next segment is probed, and by how many bits the interval
    /// has grown.
    probe0: Option<Ns>,
    icsk_backoff: u32,
    /// RCV_SHUTDOWN: whether the peer's FIN has come.
    fin_received: bool,
}

impl TcpSock {
    fn line(&self, of: SockLine) -> Line {
        line(self.base, of as u32)
    }

    /// tcp_send_head().
    fn send_head(&self) -> Option<&Skb> {
        self.sk_write_queue.get(self.packets_out)
    }

    /// Whether one segment waits to be sent: `skb == tcp_send_head(sk)` for the write queue's last.
    fn is_send_head_last(&self) -> bool {
        self.packets_out + 1 == self.sk_write_queue.len()
    }

    /// sk_stream_memory_free().
    fn memory_free(&self) -> bool {
        self.sk_wmem_queued < self.sk_sndbuf
    }

    pub(super) fn wait_queue(&mut self) -> &mut WaitQueue {
        &mut self.sk_wq
    }

    /// tcp.c: tcp_poll(), for data to read.
    pub(super) fn tcp_poll<S: Scheduler>(&self, sched: &mut S, cpu: CpuId) -> bool {
        sched.arch_mut().read(cpu, self.line(SockLine::Receive));
        self.rcv_nxt > self.copied_seq || self.fin_received
    }

    fn tcp_space(&self) -> i64 {
        self.tcp_win_from_space(i64::from(self.sk_rcvbuf) - i64::from(self.sk_rmem_alloc))
    }

    fn tcp_full_space(&self) -> i64 {
        self.tcp_win_from_space(i64::from(self.sk_rcvbuf))
    }

    /// How much of the window announced to the peer is still usable.
    fn tcp_receive_window(&self) -> u32 {
        (self.rcv_wup + u64::from(self.rcv_wnd)).saturating_sub(self.rcv_nxt) as u32
    }
}

impl Os {
    pub(super) fn connect_tcp(&mut self, nodelay: bool, buffers: Buffers) -> (Socket, Socket) {
        let first = self.net.tcp.len() as u32;
        for (sk, peer) in [(first, first + 1), (first + 1, first)] {
            let base = self.allocate_named(&LINES);
            let sock = TcpSock::established(base, peer, nodelay, buffers, &self.net.rules);
            assert_eq!(self.net.tcp.len() as u32, sk);
            self.net.tcp.push(sock);
        }
        (Socket::Tcp(first), Socket::Tcp(first + 1))
    }
}

impl TcpSock {
    /// The state after connect() and accept(): tcp_init_buffer_space(), and what the handshake said about windows.
    fn established(base: Line, peer: u32, nodelay: bool, buffers: Buffers, rules: &NetRules) -> TcpSock {
        let tcp_rmem_1 = match rules.default_buffer {
            DefaultBuffer::Fixup => 87_380,
            DefaultBuffer::Initial => 131_072,
        };
        let asked = buffers.receive.map(|asked| rules.buffer_max.rcvbuf(asked));
        let mut sock = TcpSock::unconnected(base, peer, nodelay, buffers, rules);
        sock.sk_rcvbuf = asked.unwrap_or(tcp_rmem_1);
        // tcp_select_initial_window(): whole segments, if there is room for one.
        let space = sock.tcp_full_space() as u32;
        let offered = if space > LOOPBACK_MSS { space / LOOPBACK_MSS * LOOPBACK_MSS } else { space };
        sock.rcv_wscale = rcv_wscale(asked.map_or(sock.rmem_max, |_| space));
        // Both ends ask for the same buffers.
        (sock.snd_wnd, sock.max_window, sock.rcv_wnd) = (offered, offered, offered);
        if asked.is_none() && rules.default_buffer == DefaultBuffer::Fixup {
            // Two full segments, twice, times four.
            let segment = LOOPBACK_MSS + rules::MAX_TCP_HEADER + rules::SKB + rules::SKB_SHARED_INFO;
            sock.sk_rcvbuf = (2 * segment * 2 * 4).min(sock.rmem_max);
        }
        match buffers.send {
            Some(asked) => sock.sk_sndbuf = rules.buffer_max.sndbuf(asked),
            None => sock.tcp_sndbuf_expand(),
        }
        let full_space = sock.tcp_full_space() as u32;
        // One segment is kept in reserve, if there is room for it.
        let reserves = full_space > 2 * LOOPBACK_MSS;
        sock.window_clamp = if reserves { (full_space - LOOPBACK_MSS).max(2 * LOOPBACK_MSS) } else { full_space };
        sock.rcv_ssthresh = offered.min(sock.window_clamp);
        sock.rcvq_space.space = u64::from(offered.min(TCP_INIT_CWND * LOOPBACK_MSS));
        sock.tcp_sync_mss();
        // tcp_initialize_rcv_mss().
        sock.icsk_ack.rcv_mss = sock.mss_cache.min(offered / 2).clamp(88, TCP_MSS_DEFAULT);
        sock
    }

    fn unconnected(base: Line, peer: u32, nodelay: bool, buffers: Buffers, rules: &NetRules) -> TcpSock {
        TcpSock {
            base,
            peer,
            sk_wq: WaitQueue::new(line(base, SockLine::Wait as u32)),
            watch: None,
            lock_wq: WaitQueue::new(line(base, SockLine::LockWait as u32)),
            owned: None,
            sk_backlog: VecDeque::new(),
            sk_sndbuf: 0,
            sk_rcvbuf: 0,
            sndbuf_locked: buffers.send.is_some(),
            rcvbuf_locked: buffers.receive.is_some(),
            sk_wmem_queued: 0,
            sk_rmem_alloc: 0,
            nospace: false,
            queue_shrunk: false,
            nodelay,
            sk_write_queue: VecDeque::new(),
            frags: frag::Frags::default(),
            packets_out: 0,
            write_seq: 0,
            pushed_seq: 0,
            snd_una: 0,
            snd_nxt: 0,
            snd_sml: 0,
            snd_wnd: 0,
            max_window: 0,
            mss_cache: 0,
            snd_cwnd: TCP_INIT_CWND,
            is_cwnd_limited: false,
            shutdown: false,
            fin_sent: false,
            sk_receive_queue: VecDeque::new(),
            rcv_nxt: 0,
            rcv_wup: 0,
            copied_seq: 0,
            rcv_wnd: 0,
            window_clamp: 0,
            rcv_ssthresh: 0,
            rcv_wscale: 0,
            rmem_max: rules.rmem_max.bytes(),
            scaling_ratio: rules.window_share.scaling_ratio(),
            window_share: rules.window_share,
            rcv_rtt_est: RcvRttEst::default(),
            rcvq_space: RcvqSpace::default(),
            ts_recent: 0,
            prequeue: VecDeque::new(),
            prequeue_memory: 0,
            ucopy: None,
            icsk_ack: Ack::default(),
            probe0: None,
            icsk_backoff: 0,
            fin_received: false,
        }
    }
}

/// tcp_output.c: tcp_select_initial_window(): how a window of up to `space` is scaled into 16 bits.
fn rcv_wscale(space: u32) -> u32 {
    (0..14).find(|shift| space >> shift <= 65_535).unwrap_or(14)
}

// The socket's lock: net/core/sock.c.

impl Net {
    /// sock.c: lock_sock(): makes `task` the owner. Returns false if another task is the owner; then `task` has queued
    /// up and is about to sleep.
    fn lock_sock<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, task: TaskId, sk: u32) -> bool {
        let tp = &mut self.tcp[sk as usize];
        let lock = tp.line(SockLine::Lock);
        charge(sched, cpu, paths::LOCK_SOCK);
        sched.arch_mut().lock(cpu, lock);
        sched.arch_mut().unlock(cpu, lock);
        match tp.owned {
            Some(owner) if owner != task => {
                tp.lock_wq.prepare_uninterruptible(sched, cpu, task, true);
                false
            }
            _ => {
                tp.lock_wq.finish_wait(sched, cpu, task);
                tp.owned = Some(task);
                true
            }
        }
    }

    /// sock.c: release_sock(): processes what came meanwhile, then releases the lock.
    fn release_sock<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, sk: u32) {
        within(sched, cpu, paths::RELEASE_SOCK, |sched| {
            let lock = self.tcp[sk as usize].line(SockLine::Lock);
            sched.arch_mut().lock(cpu, lock);
            sched.arch_mut().unlock(cpu, lock);
            self.flush_backlog(sched, cpu, sk);
            let tp = &mut self.tcp[sk as usize];
            tp.owned = None;
            if !tp.lock_wq.is_empty() {
                tp.lock_wq.wake_up(sched, cpu, WakeFlags::NONE, 1);
            }
        });
    }

    /// Transmits in a call that goes on with another path. If nobody sleeps at the other end, what leaves is received in a
    /// path in between: its owner is about to look at what has arrived, and must not see it before its time.
    fn transmitting<S: Scheduler, R>(
        &mut self,
        task: TaskId,
        sk: u32,
        call: &mut NetCall,
        sched: &mut S,
        transmit: impl FnOnce(&mut Net, &mut S) -> R,
    ) -> R {
        let peer = self.tcp[sk as usize].peer;
        let awake = self.tcp[peer as usize].sk_wq.is_empty();
        let was_disabled = self.bh_disabled;
        self.bh_disabled |= awake;
        let result = transmit(self, sched);
        self.bh_disabled = was_disabled;
        call.raised = !self.input_pkt_queue.is_empty();
        self.raised.extend(self.input_pkt_queue.drain(..).map(|packet| (task, packet)));
        result
    }

    /// The end of a call by the socket's owner: processes what came meanwhile, one packet to a path where that makes it send
    /// something, and releases the socket.
    fn release_and_return<S: Scheduler>(
        &mut self,
        sched: &mut S,
        cpu: CpuId,
        task: TaskId,
        sk: u32,
        call: &mut NetCall,
    ) -> Step {
        while let Some(packet) = self.tcp[sk as usize].sk_backlog.pop_front() {
            self.transmitting(task, sk, call, sched, |net, sched| net.tcp_v4_do_rcv(sched, cpu, packet));
            if call.raised {
                call.stage = Stage::Release;
                return Step::Continues;
            }
        }
        self.release_sock(sched, cpu, sk);
        Step::Done(u64::from(call.done))
    }

    /// sock.c: __release_sock(): the owner processes the backlog.
    fn flush_backlog<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, sk: u32) {
        while let Some(packet) = self.tcp[sk as usize].sk_backlog.pop_front() {
            self.tcp_v4_do_rcv(sched, cpu, packet);
        }
    }

    // include/net/sock.h: sk_wait_event(), in parts.

    /// Joins the queue of `sk`'s events.
    ///
    /// Differs: a task that is still on this queue, and already sleeps for the socket's lock, is woken by an event,
    /// too, and sleeps again.
    fn join_for_event<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, task: TaskId, sk: u32) {
        let queue = &mut self.tcp[sk as usize].sk_wq;
        match self.rules.wait_event {
            WaitEvent::Autoremove => queue.prepare_to_wait(sched, cpu, task, false),
            WaitEvent::Woken => queue.add_wait_queue(sched, cpu, task),
        }
    }

    /// Sleeps for an event: wait.c: wait_woken(); until v4.9 in the state that prepare_to_wait() has set.
    fn sleep_for_event<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, sk: u32) -> Step {
        if self.rules.wait_event == WaitEvent::Woken {
            sched.set_current_state(cpu, TaskState::Interruptible);
        }
        let tp = &self.tcp[sk as usize];
        let timers = [tp.icsk_ack.timeout, tp.probe0, self.tcp[tp.peer as usize].probe0];
        timers.into_iter().flatten().min().map_or(Step::Sleep, Step::SleepUntil)
    }

    /// Leaves the queue without having slept.
    fn leave_awake<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, task: TaskId, sk: u32) {
        if self.rules.wait_event == WaitEvent::Autoremove {
            sched.set_current_state(cpu, TaskState::Running);
        }
        self.tcp[sk as usize].sk_wq.finish_wait(sched, cpu, task);
    }

    /// sock.c: sock_def_readable(): wakes a task that waits for data, with the hint that the waker is about to sleep.
    fn tcp_data_ready<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, sk: u32) {
        self.wake_at(sched, cpu, sk, WakeFlags::SYNC, 1);
    }

    /// sock.c: sock_def_wakeup(), when the connection's state has changed: wakes all waiting tasks, without that hint.
    fn sock_def_wakeup<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, sk: u32) {
        self.wake_at(sched, cpu, sk, WakeFlags::NONE, 0);
    }

    fn wake_at<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, sk: u32, flags: WakeFlags, nr_exclusive: usize) {
        within(sched, cpu, paths::SOCK_DEF_READABLE, |sched| {
            let tp = &mut self.tcp[sk as usize];
            sched.arch_mut().read(cpu, tp.line(SockLine::Wait));
            if !tp.sk_wq.is_empty() {
                tp.sk_wq.wake_up(sched, cpu, flags, nr_exclusive);
            }
            if let Some(watch) = tp.watch {
                let queue = tp.line(SockLine::Wait);
                within(sched, cpu, paths::WAKE_UP_SYNC_KEY, |sched| {
                    sched.arch_mut().lock(cpu, queue);
                    self.ep_poll_callback(sched, cpu, watch, flags);
                    sched.arch_mut().unlock(cpu, queue);
                });
            }
        });
    }
}
