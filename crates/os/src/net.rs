//! net/: sockets between tasks of one machine. TCP and UDP over the loopback device, AF_UNIX streams.
//!
//! What is sent over loopback is received in the sender's own context. The device hands the packet to the CPU's backlog
//! queue and raises a softirq. The softirq runs as soon as the system call allows it, does the receiver's protocol work
//! and wakes the receiver. So each end of a connection works on the other's socket, and the sockets' locks and cache
//! lines move between the two CPUs.
//!
//! A socket on which a task works is *owned*: what arrives meanwhile waits in its backlog until the owner releases it.
//! A path is executed as a whole ([decision 3]), so the calls that own a TCP socket for long are cut into several
//! ([`Step::Continues`]), at the end of each segment's copy and of each transmission. What arrives in between finds the
//! socket owned. If the other end is awake, the softirq that follows a transmission is a path of its own.
//!
//! Connections exist from the start. Handshakes are absent, and so is what loopback never needs (loss, retransmission,
//! reordering, congestion other than the initial window of ten packets and its growth). A receive queue over its limit
//! is collapsed if its buffer may not grow, and nothing of TCP is dropped. The timers of a delayed acknowledgement, and
//! of a window without room for the next segment, fire only while a task sleeps in a call of the connection, and wake
//! it to send.
//!
//! Kernels that leave softirqs to a runnable ksoftirqd (`softirq.ksoftirqd`, v4.9 to v6.4) leave it packets over
//! loopback as well: it receives 64 packets at a time. Packets to the same socket that are sent later from another CPU
//! wait behind them.
//!
//! Differs: because of that, segments never overtake each other, which TCP would have to put back in order; and the
//! queue is never full (net.core.netdev_max_backlog, 1000).
//!
//! [decision 3]: ../../../../docs/decisions/0003-paths-are-atomic.md

mod defer;
pub mod poll;
pub mod rules;
pub mod tcp;
pub mod udp;
pub mod unix;

use crate::irq::{SoftIrq, trace_softirq_raise, traced_softirq};
use crate::{Os, Step, paths, within};
pub use rules::{Buffers, NetRules};
use sched::access::Path;
use sched::arch::Arch;
use sched::layout::{Line, Region};
use sched::sched::TaskId;
use sched::scheduler::Scheduler;
use sched::trace::Interrupt;
use std::collections::VecDeque;
use tcp::{TcpPacket, TcpSock};
use udp::{UdpPacket, UdpSock};
use units::{CpuId, Ps, Slots, unlikely};
use unix::UnixSock;

/// One end of a connection.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Socket {
    Tcp(u32),
    Udp(u32),
    Unix(u32),
}

/// The kind of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Transport {
    /// `nodelay`: TCP_NODELAY at both ends.
    Tcp {
        nodelay: bool,
    },
    Udp,
    Unix,
}

/// How a receive wants its data.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Receive {
    /// MSG_WAITALL: waits for all that was asked for.
    pub wait_all: bool,
    /// MSG_TRUNC on a stream: the data is discarded in the kernel instead of copied.
    pub discard: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Ask {
    Send,
    Receive(Receive),
    Shutdown,
}

/// The progress of a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    /// Nothing has happened.
    Entry,
    /// In the kernel, but not the socket's owner yet.
    Locking,
    /// Asleep for data, or for room.
    Waiting,
    // Between the paths of a call, as the socket's owner:
    /// With a segment copied.
    Copied,
    /// With a segment sent.
    Sent,
    /// With all sent that the full send buffer has.
    Full,
    /// With everything copied.
    Rest,
    /// With nothing left to do but to release the socket.
    Release,
}

impl Stage {
    fn owns(self) -> bool {
        !matches!(self, Stage::Entry | Stage::Locking | Stage::Waiting)
    }
}

/// A send or receive under way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NetCall {
    pub socket: Socket,
    ask: Ask,
    stage: Stage,
    /// Whether its next path is the softirq for what it has sent ([`Net::raised`]).
    raised: bool,
    /// Bytes still to move, and bytes moved.
    left: u32,
    done: u32,
}

impl NetCall {
    pub fn send(socket: Socket, bytes: u32) -> NetCall {
        NetCall { socket, ask: Ask::Send, stage: Stage::Entry, raised: false, left: bytes, done: 0 }
    }

    pub fn receive(socket: Socket, bytes: u32, how: Receive) -> NetCall {
        NetCall { socket, ask: Ask::Receive(how), stage: Stage::Entry, raised: false, left: bytes, done: 0 }
    }

    pub fn shutdown(socket: Socket) -> NetCall {
        NetCall { socket, ask: Ask::Shutdown, stage: Stage::Entry, raised: false, left: 0, done: 0 }
    }

    /// Whether its task is in the middle of kernel code, where not every kind of preemption takes its CPU away.
    pub fn is_in_the_middle(&self) -> bool {
        self.stage.owns()
    }

    /// Whether might_sleep() comes next: that of the next segment's allocation.
    pub fn might_sleep(&self) -> bool {
        self.ask == Ask::Send && self.stage == Stage::Sent && !self.raised
    }

    /// Whether it is between a transmission and its softirq, where no kernel preempts it.
    pub fn has_raised_softirq(&self) -> bool {
        self.raised
    }
}

/// A packet on its way through the loopback device.
#[derive(Clone, Copy, Debug)]
enum Packet {
    Tcp(TcpPacket),
    Udp(UdpPacket),
}

impl Packet {
    /// The socket to which it goes.
    fn to(&self) -> Socket {
        match self {
            Packet::Tcp(packet) => Socket::Tcp(packet.to),
            Packet::Udp(packet) => Socket::Udp(packet.to),
        }
    }
}

/// All sockets, and what is on its way between them.
pub struct Net {
    pub rules: NetRules,
    /// 1 / HZ.
    tick_period: Ps,
    tcp: Slots<TcpSock>,
    udp: Slots<UdpSock>,
    unix: Slots<UnixSock>,
    epolls: Vec<poll::EventPoll>,
    /// softnet_data.input_pkt_queue of the CPU that executes. It is empty whenever a path ends.
    input_pkt_queue: VecDeque<Packet>,
    /// Whether the queue is being emptied, or bottom halves are off.
    bh_disabled: bool,
    /// What calls have sent whose next path is the softirq.
    raised: Vec<(TaskId, Packet)>,
    /// ksoftirqd_running() of the CPU that executes.
    ksoftirqd_running: bool,
    /// softnet_data.input_pkt_queue of all CPUs, as far as it is left to ksoftirqd, in the order of sending.
    left: VecDeque<(CpuId, Packet)>,
    deferred: defer::Deferred,
    /// Softirqs that have run on the executing CPU and are still to be counted.
    ran: u32,
}

/// dev.c: dev_rx_weight: how many packets a call of net_rx_action() takes from a CPU's queue.
const DEV_RX_WEIGHT: usize = 64;

impl Net {
    pub(crate) fn new(rules: NetRules, tick_period: Ps) -> Net {
        Net {
            rules,
            tick_period,
            tcp: Slots::new(),
            udp: Slots::new(),
            unix: Slots::new(),
            epolls: Vec::new(),
            input_pkt_queue: VecDeque::new(),
            bh_disabled: false,
            raised: Vec::new(),
            ksoftirqd_running: false,
            left: VecDeque::new(),
            deferred: defer::Deferred::default(),
            ran: 0,
        }
    }

    pub(crate) fn step<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, task: TaskId, call: &mut NetCall) -> Step {
        if call.raised {
            return self.softirq_of_call(sched, cpu, task, call);
        }
        match (call.socket, call.ask) {
            (Socket::Tcp(sk), Ask::Send) => self.tcp_sendmsg(sched, cpu, task, sk, call),
            (Socket::Tcp(sk), Ask::Receive(how)) => self.tcp_recvmsg(sched, cpu, task, sk, how, call),
            (Socket::Tcp(sk), Ask::Shutdown) => {
                self.eventpoll_release(sk);
                self.tcp_shutdown(sched, cpu, task, sk, call)
            }
            (Socket::Udp(sk), Ask::Send) => self.udp_sendmsg(sched, cpu, sk, call),
            (Socket::Udp(sk), Ask::Receive(_)) => self.udp_recvmsg(sched, cpu, task, sk, call),
            (Socket::Unix(sk), Ask::Send) => self.unix_stream_sendmsg(sched, cpu, task, sk, call),
            (Socket::Unix(sk), Ask::Receive(how)) => self.unix_stream_recvmsg(sched, cpu, task, sk, how, call),
            (Socket::Udp(_), Ask::Shutdown) => Step::Done(0),
            (Socket::Unix(sk), Ask::Shutdown) => self.unix_shutdown(sched, cpu, sk),
        }
    }

    // The path of a packet: net/ipv4/ip_output.c, net/core/dev.c, drivers/net/loopback.c.

    /// ip_output.c: ip_queue_xmit(), dev.c: dev_queue_xmit(), loopback.c: loopback_xmit(): down to the queue of this
    /// CPU, and up again from there unless a softirq is the sender. `route`: the line of the route's reference count,
    /// which each packet takes.
    fn ip_queue_xmit<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, route: Line, packet: Packet) {
        within(sched, cpu, paths::IP_QUEUE_XMIT, |sched| {
            within(sched, cpu, paths::DEV_QUEUE_XMIT, |sched| {
                sched.arch_mut().atomic(cpu, route);
                self.input_pkt_queue.push_back(packet);
                self.do_softirq(sched, cpu);
            });
        });
    }

    /// The softirq that a call has left to a path of its own.
    fn softirq_of_call<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, task: TaskId, call: &mut NetCall) -> Step {
        call.raised = false;
        self.input_pkt_queue
            .extend(self.raised.iter().filter(|(sender, _)| *sender == task).map(|&(_, packet)| packet));
        self.raised.retain(|&(sender, _)| sender != task);
        self.do_softirq(sched, cpu);
        Step::Continues
    }

    /// kernel/softirq.c: do_softirq(), for the waiting packets: dev.c: net_rx_action() and process_backlog().
    fn do_softirq<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId) {
        if self.bh_disabled || self.input_pkt_queue.is_empty() {
            return;
        }
        if unlikely(self.ksoftirqd_running || !self.left.is_empty()) {
            self.leave_to_ksoftirqd(cpu);
            if self.input_pkt_queue.is_empty() {
                return;
            }
        }
        self.bh_disabled = true;
        self.ran += 1;
        let vec = SoftIrq::NetRx.vec();
        trace_softirq_raise(sched, cpu, Interrupt::None, vec);
        within(sched, cpu, paths::DO_SOFTIRQ, |sched| {
            traced_softirq(sched, cpu, vec, |sched| {
                within(sched, cpu, paths::NET_RX_ACTION, |sched| {
                    self.skb_defer_free_flush(sched, cpu);
                    while let Some(packet) = self.input_pkt_queue.pop_front() {
                        self.netif_receive_skb(sched, cpu, packet);
                    }
                    self.skb_defer_free_flush(sched, cpu);
                });
            });
        });
        self.bh_disabled = false;
    }

    fn netif_receive_skb<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, packet: Packet) {
        within(sched, cpu, paths::NETIF_RECEIVE_SKB, |sched| {
            within(sched, cpu, paths::IP_RCV, |sched| match packet {
                Packet::Tcp(packet) => self.tcp_v4_rcv(sched, cpu, packet),
                Packet::Udp(packet) => self.udp_rcv(sched, cpu, packet),
            });
        });
    }

    /// Leaves waiting packets to ksoftirqd: each to the CPU where an earlier packet to its socket waits, or else to
    /// `cpu`, if its ksoftirqd is runnable.
    #[cold]
    fn leave_to_ksoftirqd(&mut self, cpu: CpuId) {
        for packet in std::mem::take(&mut self.input_pkt_queue) {
            let before = self.left.iter().find(|(_, other)| other.to() == packet.to()).map(|&(at, _)| at);
            match before.or(self.ksoftirqd_running.then_some(cpu)) {
                Some(at) => self.left.push_back((at, packet)),
                None => self.input_pkt_queue.push_back(packet),
            }
        }
    }

    /// dev.c: process_backlog(), for what was left to the ksoftirqd of `cpu`. Returns whether more is left than it
    /// takes at a time.
    #[cold]
    fn process_backlog<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId) -> bool {
        (self.bh_disabled, self.ksoftirqd_running) = (true, false);
        for _ in 0..DEV_RX_WEIGHT {
            let first = self.left.iter().position(|&(at, _)| at == cpu);
            let left = first.and_then(|first| self.left.remove(first)).map(|(_, packet)| packet);
            let Some(packet) = left else { break };
            self.netif_receive_skb(sched, cpu, packet);
            // What it sends itself is queued behind the rest.
            let sent = std::mem::take(&mut self.input_pkt_queue);
            self.left.extend(sent.into_iter().map(|packet| (cpu, packet)));
        }
        self.bh_disabled = false;
        self.left.iter().any(|&(at, _)| at == cpu)
    }

    /// A CPU reads a packet that another one wrote: its structure, then `bytes` of data.
    fn fetch_skb<S: Scheduler>(sched: &mut S, cpu: CpuId, writer: CpuId, bytes: u32) {
        sched.arch_mut().fetch(cpu, writer, u64::from(SKB_TOUCHED + bytes));
    }
}

/// Bytes of struct sk_buff, its shared information and a packet's headers that a receiver reads.
const SKB_TOUCHED: u32 = 256;

impl Os {
    /// A send or receive. Afterwards raises the softirqs for what it has left to ksoftirqd.
    #[inline]
    pub(crate) fn net_step<S: Scheduler>(
        &mut self,
        sched: &mut S,
        cpu: CpuId,
        task: TaskId,
        call: &mut NetCall,
    ) -> Step {
        self.allocate_softnet(sched.nr_cpus());
        self.net.ksoftirqd_running = self.irq.ksoftirqd_running(cpu);
        let step = self.net.step(sched, cpu, task, call);
        let ran = std::mem::take(&mut self.net.ran);
        self.irq.stat(cpu).softirqs[usize::from(SoftIrq::NetRx.vec())] += ran;
        if unlikely(!self.net.left.is_empty()) {
            self.raise_left(sched, cpu);
        }
        step
    }

    /// Raises the softirqs for what was left to ksoftirqd.
    #[cold]
    fn raise_left<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId) {
        for &(at, _) in &self.net.left {
            if self.irq.raise_bare(at, SoftIrq::NetRx) && at == cpu {
                trace_softirq_raise(sched, cpu, Interrupt::None, SoftIrq::NetRx.vec());
            }
        }
    }

    /// dev.c: net_rx_action(), for what loopback and other CPUs have left on `cpu`.
    #[inline]
    pub fn net_rx_action<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId) {
        self.net.skb_defer_free_flush(sched, cpu);
        if unlikely(!self.net.left.is_empty()) && self.net.process_backlog(sched, cpu) {
            self.irq.raise_bare(cpu, SoftIrq::NetRx);
            trace_softirq_raise(sched, cpu, Interrupt::Softirq, SoftIrq::NetRx.vec());
        }
    }

    /// dev.c: trigger_rx_softirq(), if another CPU has asked `cpu` to free segments that wait there.
    #[inline]
    pub(crate) fn trigger_rx_softirq<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, by: Interrupt) {
        if unlikely(self.net.takes_defer_ipi(cpu)) {
            self.irq.raise_bare(cpu, SoftIrq::NetRx);
            trace_softirq_raise(sched, cpu, by, SoftIrq::NetRx.vec());
        }
    }

    /// dev.c: dev_cpu_dead(): what waits on a CPU that went offline is moved to `heir`. Only the segments that it has
    /// to free wait until it is back.
    pub fn dev_cpu_dead(&mut self, offline: CpuId, heir: CpuId) {
        self.net.takes_defer_ipi(offline);
        for (at, _) in self.net.left.iter_mut().filter(|(at, _)| *at == offline) {
            *at = heir;
        }
    }

    /// Makes an established connection. Returns its two ends. Both have these `buffers`, set before the connection is
    /// made.
    pub fn connect(&mut self, transport: Transport, buffers: Buffers) -> (Socket, Socket) {
        match transport {
            Transport::Tcp { nodelay } => self.connect_tcp(nodelay, buffers),
            Transport::Udp => self.connect_udp(buffers),
            Transport::Unix => self.connect_unix(buffers),
        }
    }

    /// The functions in which a call stands when it goes on, or while it is `asleep`.
    pub(crate) fn net_frames(call: &NetCall, asleep: bool) -> &'static [Path] {
        use paths::*;
        let frames: &[Path] = match (call.socket, call.ask) {
            (Socket::Tcp(_), Ask::Send) => &[ENTRY_SYSCALL, SYS_SENDTO, TCP_SENDMSG, SK_STREAM_WAIT_MEMORY],
            (Socket::Tcp(_), Ask::Receive(_)) => &[ENTRY_SYSCALL, SYS_RECVFROM, TCP_RECVMSG, SK_WAIT_DATA],
            (Socket::Udp(_), Ask::Send) => &[ENTRY_SYSCALL, SYS_SENDTO, UDP_SENDMSG],
            (Socket::Udp(_), Ask::Receive(_)) => &[ENTRY_SYSCALL, SYS_RECVFROM, UDP_RECVMSG, SKB_WAIT_FOR_MORE_PACKETS],
            (Socket::Unix(_), Ask::Send) => &[ENTRY_SYSCALL, SYS_WRITE, UNIX_STREAM_SENDMSG, SOCK_WAIT_FOR_WMEM],
            (Socket::Unix(_), Ask::Receive(_)) => {
                &[ENTRY_SYSCALL, SYS_READ, UNIX_STREAM_RECVMSG, UNIX_STREAM_DATA_WAIT]
            }
            (_, Ask::Shutdown) => &[ENTRY_SYSCALL],
        };
        match (call.stage, asleep) {
            (Stage::Entry, _) => &frames[..1],
            (_, false) => &frames[..2.min(frames.len())],
            (_, true) => frames,
        }
    }
}

/// Line `index` of an object.
fn line(base: Line, index: u32) -> Line {
    Line { region: Region::Os, index: base.index + index }
}
