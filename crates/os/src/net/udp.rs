//! net/ipv4/udp.c: datagrams over loopback. A sender never sleeps, because the device takes each packet off its account
//! at once. A datagram that finds the receive buffer full is dropped in the sender's context.

use super::rules::{self, Buffers, UdpReceive};
use super::{Net, NetCall, Packet, Socket, Stage, line};
use crate::wait::WaitQueue;
use crate::{Os, Step, charge, paths, within};
use sched::arch::Arch;
use sched::layout::Line;
use sched::sched::{TaskId, WakeFlags};
use sched::scheduler::Scheduler;
use std::collections::VecDeque;
use units::CpuId;

/// The lines of a `udp_sock` that both sides touch.
#[derive(Clone, Copy)]
enum SockLine {
    Common,
    /// sk_lock.
    Lock,
    /// sk_receive_queue, sk_rmem_alloc.
    Queue,
    /// socket_wq.
    Wait,
    Route,
    /// reader_queue, forward_deficit: the reader's own, on kernels that have them.
    Reader,
    /// udp_prod_queue, on kernels that have it.
    Producers,
}

/// The content of each line.
const LINES: &[&str] = &[
    "udp_sock: sock_common",
    "udp_sock: sk_lock",
    "udp_sock: sk_receive_queue, sk_rmem_alloc",
    "udp_sock: socket_wq",
    "udp_sock: reference count of its route",
    "udp_sock: reader_queue, forward_deficit",
    "udp_sock: udp_prod_queue",
];

/// Headers of UDP and IP, and the device's alignment, in bytes.
const HEADERS: u32 = 28 + 31;
/// The longest datagram.
pub const LONGEST: u32 = 65_507;

#[derive(Clone, Copy, Debug)]
pub(super) struct UdpPacket {
    pub to: u32,
    len: u32,
    truesize: u32,
    writer: CpuId,
}

/// struct udp_sock.
pub(crate) struct UdpSock {
    base: Line,
    peer: u32,
    sk_wq: WaitQueue,
    sk_rcvbuf: u32,
    sk_rmem_alloc: u32,
    sk_receive_queue: VecDeque<UdpPacket>,
    /// What the reader has moved to its own queue, and the memory of what it has read but not yet given back.
    reader_queue: VecDeque<UdpPacket>,
    forward_deficit: u32,
    sk_drops: u64,
}

impl UdpSock {
    fn line(&self, of: SockLine) -> Line {
        line(self.base, of as u32)
    }

    /// udp.c: __skb_recv_udp(), without its sleep: takes the first datagram of the reader's queue. If that is empty, it
    /// first takes over all that has come.
    #[doc(alias = "__skb_recv_udp")]
    fn skb_recv_udp<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId) -> Option<UdpPacket> {
        let (queue, reader) = (self.line(SockLine::Queue), self.line(SockLine::Reader));
        sched.arch_mut().lock(cpu, reader);
        let refills = self.reader_queue.is_empty();
        if refills {
            // skb_queue_empty_lockless()
            sched.arch_mut().read(cpu, queue);
            if !self.sk_receive_queue.is_empty() {
                sched.arch_mut().lock(cpu, queue);
                self.reader_queue.append(&mut self.sk_receive_queue);
            }
        }
        let packet = self.reader_queue.pop_front();
        if let Some(packet) = packet {
            self.udp_rmem_release(sched, cpu, packet.truesize, refills);
            if refills {
                sched.arch_mut().unlock(cpu, queue);
            }
        }
        sched.arch_mut().unlock(cpu, reader);
        packet
    }

    /// udp.c: udp_rmem_release(), in part; `locked`: the receive queue is locked.
    fn udp_rmem_release<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, size: u32, locked: bool) {
        self.forward_deficit += size;
        if self.forward_deficit < self.sk_rcvbuf >> 2 && !self.reader_queue.is_empty() {
            return;
        }
        let queue = self.line(SockLine::Queue);
        if !locked {
            sched.arch_mut().lock(cpu, queue);
        }
        sched.arch_mut().atomic(cpu, queue);
        self.sk_rmem_alloc -= std::mem::take(&mut self.forward_deficit);
        self.reader_queue.append(&mut self.sk_receive_queue);
        if !locked {
            sched.arch_mut().unlock(cpu, queue);
        }
    }
}

impl Os {
    pub(super) fn connect_udp(&mut self, buffers: Buffers) -> (Socket, Socket) {
        let first = self.net.udp.len() as u32;
        let most = self.net.rules.buffer_max;
        let last = match self.net.rules.udp_receive {
            UdpReceive::Locked | UdpReceive::Lockless => SockLine::Route,
            UdpReceive::Batched => SockLine::Reader,
            UdpReceive::Queues => SockLine::Producers,
        };
        for peer in [first + 1, first] {
            let base = self.allocate_named(&LINES[..=last as usize]);
            self.net.udp.push(UdpSock {
                base,
                peer,
                sk_wq: WaitQueue::new(line(base, SockLine::Wait as u32)),
                sk_rcvbuf: buffers.receive.map_or(rules::SK_MEM_DEFAULT, |asked| most.rcvbuf(asked)),
                sk_rmem_alloc: 0,
                sk_receive_queue: VecDeque::new(),
                reader_queue: VecDeque::new(),
                forward_deficit: 0,
                sk_drops: 0,
            });
        }
        (Socket::Udp(first), Socket::Udp(first + 1))
    }

    /// How many datagrams found the receive buffer of `socket` full.
    pub fn udp_drops(&self, socket: Socket) -> u64 {
        let Socket::Udp(sk) = socket else { return 0 };
        self.net.udp[sk as usize].sk_drops
    }
}

impl Net {
    /// udp.c: udp_sendmsg().
    pub(super) fn udp_sendmsg<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, sk: u32, call: &mut NetCall) -> Step {
        let len = call.left.min(LONGEST);
        within(sched, cpu, paths::SYS_SENDTO, |sched| {
            within(sched, cpu, paths::UDP_SENDMSG, |sched| {
                charge(sched, cpu, paths::IP_MAKE_SKB);
                sched.arch_mut().copy(cpu, u64::from(len));
                let sock = &self.udp[sk as usize];
                let truesize = self.rules.payload.truesize(len + HEADERS);
                let packet = UdpPacket { to: sock.peer, len, truesize, writer: cpu };
                let route = sock.line(SockLine::Route);
                self.ip_queue_xmit(sched, cpu, route, Packet::Udp(packet));
            });
        });
        Step::Done(u64::from(len))
    }

    /// udp.c: udp_rcv(), udp_queue_rcv_skb(), __udp_enqueue_schedule_skb(): puts the datagram into the buffer, if there
    /// is room, and wakes the reader.
    ///
    /// Differs: since v6.18 senders have one queue per node, from which the first sender moves everything to the reader's
    /// queue; here there is one queue, and each sender is the first.
    pub(super) fn udp_rcv<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, packet: UdpPacket) {
        within(sched, cpu, paths::UDP_RCV, |sched| {
            let sock = &mut self.udp[packet.to as usize];
            sched.arch_mut().read(cpu, sock.line(SockLine::Common));
            let (lock, queue) = (sock.line(SockLine::Lock), sock.line(SockLine::Queue));
            let producers = sock.line(SockLine::Producers);
            let full = match self.rules.udp_receive {
                UdpReceive::Locked => {
                    sched.arch_mut().lock(cpu, lock);
                    sock.sk_rmem_alloc >= sock.sk_rcvbuf
                }
                UdpReceive::Lockless | UdpReceive::Batched => {
                    sched.arch_mut().atomic(cpu, queue);
                    sock.sk_rmem_alloc > sock.sk_rcvbuf
                }
                UdpReceive::Queues => {
                    sched.arch_mut().read(cpu, queue);
                    sched.arch_mut().read(cpu, producers);
                    sock.sk_rmem_alloc > 0 && sock.sk_rmem_alloc + packet.truesize > sock.sk_rcvbuf
                }
            };
            let by_queue = self.rules.udp_receive == UdpReceive::Queues && !full;
            if by_queue {
                // The account of the queue, and the queue.
                sched.arch_mut().atomic(cpu, producers);
                sched.arch_mut().atomic(cpu, producers);
            }
            if full {
                charge(sched, cpu, paths::KFREE_SKB);
                sock.sk_drops += 1;
            } else {
                sched.arch_mut().lock(cpu, queue);
                sock.sk_rmem_alloc += packet.truesize;
                sock.sk_receive_queue.push_back(packet);
                if by_queue {
                    sched.arch_mut().atomic(cpu, queue);
                }
                sched.arch_mut().unlock(cpu, queue);
                within(sched, cpu, paths::SOCK_DEF_READABLE, |sched| {
                    sched.arch_mut().read(cpu, sock.line(SockLine::Wait));
                    if !sock.sk_wq.is_empty() {
                        sock.sk_wq.wake_up(sched, cpu, WakeFlags::SYNC, 1);
                    }
                });
            }
            if by_queue {
                sched.arch_mut().atomic(cpu, producers);
            }
            if self.rules.udp_receive == UdpReceive::Locked {
                sched.arch_mut().unlock(cpu, lock);
            }
        });
    }

    /// udp.c: udp_recvmsg(): takes one datagram. The part of it that does not fit is lost. Readers wait exclusively.
    pub(super) fn udp_recvmsg<S: Scheduler>(
        &mut self,
        sched: &mut S,
        cpu: CpuId,
        task: TaskId,
        sk: u32,
        call: &mut NetCall,
    ) -> Step {
        if call.stage == Stage::Entry {
            charge(sched, cpu, paths::SYS_RECVFROM);
            charge(sched, cpu, paths::UDP_RECVMSG);
        } else {
            charge(sched, cpu, paths::SKB_WAIT_FOR_MORE_PACKETS);
            self.udp[sk as usize].sk_wq.finish_wait(sched, cpu, task);
        }
        let sock = &mut self.udp[sk as usize];
        let queue = sock.line(SockLine::Queue);
        let batched = self.rules.udp_receive.has_reader_queue();
        let packet = if batched {
            sock.skb_recv_udp(sched, cpu)
        } else {
            sched.arch_mut().lock(cpu, queue);
            sched.arch_mut().unlock(cpu, queue);
            sock.sk_receive_queue.pop_front()
        };
        let Some(packet) = packet else {
            charge(sched, cpu, paths::SKB_WAIT_FOR_MORE_PACKETS);
            sock.sk_wq.prepare_to_wait(sched, cpu, task, true);
            call.stage = Stage::Waiting;
            return Step::Sleep;
        };
        let bytes = packet.len.min(call.left);
        Net::fetch_skb(sched, cpu, packet.writer, bytes);
        charge(sched, cpu, paths::SKB_COPY_DATAGRAM);
        sched.arch_mut().copy(cpu, u64::from(bytes));
        if self.rules.udp_receive == UdpReceive::Queues {
            // skb_consume_udp().
            self.skb_attempt_defer_free(sched, cpu, packet.writer);
            return Step::Done(u64::from(bytes));
        }
        charge(sched, cpu, paths::KFREE_SKB);
        if self.rules.udp_receive == UdpReceive::Locked {
            // skb_free_datagram_locked().
            sched.arch_mut().lock(cpu, sock.line(SockLine::Lock));
            sched.arch_mut().unlock(cpu, sock.line(SockLine::Lock));
        }
        if !batched {
            sched.arch_mut().atomic(cpu, queue);
            sock.sk_rmem_alloc -= packet.truesize;
        }
        Step::Done(u64::from(bytes))
    }
}
