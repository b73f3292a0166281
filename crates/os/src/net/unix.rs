//! net/unix/af_unix.c: stream sockets of one machine. Each write becomes a packet in the receiver's queue, and counts
//! on the sender's account until it has been read. A sender that found its account full is woken once three quarters of
//! it are free.

use super::rules::{self, Buffers};
use super::{Net, NetCall, Receive, Socket, Stage, line};
use crate::wait::WaitQueue;
use crate::{Os, Step, charge, paths, within};
use sched::arch::Arch;
use sched::layout::Line;
use sched::sched::{TaskId, WakeFlags};
use sched::scheduler::Scheduler;
use std::collections::VecDeque;
use units::CpuId;

/// The lines of a `unix_sock` that more than one CPU touches.
#[derive(Clone, Copy)]
enum SockLine {
    /// unix_state_lock.
    State,
    /// sk_receive_queue with its lock.
    Queue,
    /// sk_wmem_alloc.
    Write,
    /// socket_wq.
    Wait,
    /// readlock, later iolock.
    Read,
}

/// The content of each line.
const LINES: [&str; SockLine::Read as usize + 1] = [
    "unix_sock: unix_state_lock",
    "unix_sock: sk_receive_queue",
    "unix_sock: sk_wmem_alloc",
    "unix_sock: socket_wq",
    "unix_sock: readlock (iolock)",
];

/// SKB_MAX_HEAD(0): what fits into one page with the shared information. More data go into separate pages, at most 32
/// KiB of them.
const SKB_MAX_HEAD: u32 = 4096 - rules::SKB_SHARED_INFO;
const UNIX_SKB_FRAGS_SZ: u32 = 32 * 1024;

#[derive(Clone, Copy, Debug)]
struct Skb {
    len: u32,
    truesize: u32,
    writer: CpuId,
}

/// struct unix_sock.
pub(crate) struct UnixSock {
    base: Line,
    peer: u32,
    sk_wq: WaitQueue,
    sk_sndbuf: u32,
    sk_wmem_alloc: u32,
    sk_receive_queue: VecDeque<Skb>,
    /// Whether the peer sends no more.
    rcv_shutdown: bool,
}

impl UnixSock {
    fn line(&self, of: SockLine) -> Line {
        line(self.base, of as u32)
    }

    pub(super) fn wait_queue(&mut self) -> &mut WaitQueue {
        &mut self.sk_wq
    }

    /// af_unix.c: unix_poll(), for data to read.
    pub(super) fn unix_poll<S: Scheduler>(&self, sched: &mut S, cpu: CpuId) -> bool {
        sched.arch_mut().read(cpu, self.line(SockLine::Queue));
        !self.sk_receive_queue.is_empty() || self.rcv_shutdown
    }
}

impl Os {
    pub(super) fn connect_unix(&mut self, buffers: Buffers) -> (Socket, Socket) {
        let first = self.net.unix.len() as u32;
        let most = self.net.rules.buffer_max;
        for peer in [first + 1, first] {
            let base = self.allocate_named(&LINES);
            self.net.unix.push(UnixSock {
                base,
                peer,
                sk_wq: WaitQueue::new(line(base, SockLine::Wait as u32)),
                sk_sndbuf: buffers.send.map_or(rules::SK_MEM_DEFAULT, |asked| most.sndbuf(asked)),
                sk_wmem_alloc: 0,
                sk_receive_queue: VecDeque::new(),
                rcv_shutdown: false,
            });
        }
        (Socket::Unix(first), Socket::Unix(first + 1))
    }
}

/// sock.c: alloc_skb_with_frags(): the memory of a packet of `len` bytes. Its pages are full; bytes that do not fill a
/// page are in the head.
fn truesize(len: u32) -> u32 {
    let pages = len.saturating_sub(SKB_MAX_HEAD).next_multiple_of(4096);
    rules::truesize(len.saturating_sub(pages)) + pages
}

impl Net {
    /// af_unix.c: unix_stream_sendmsg().
    pub(super) fn unix_stream_sendmsg<S: Scheduler>(
        &mut self,
        sched: &mut S,
        cpu: CpuId,
        task: TaskId,
        sk: u32,
        call: &mut NetCall,
    ) -> Step {
        if call.stage == Stage::Entry {
            charge(sched, cpu, paths::SYS_WRITE);
            charge(sched, cpu, paths::UNIX_STREAM_SENDMSG);
            call.stage = Stage::Locking;
        } else {
            charge(sched, cpu, paths::SOCK_WAIT_FOR_WMEM);
            self.unix[sk as usize].sk_wq.finish_wait(sched, cpu, task);
        }
        while call.left > 0 {
            let sock = &mut self.unix[sk as usize];
            let (write, other) = (sock.line(SockLine::Write), sock.peer);
            sched.arch_mut().read(cpu, write);
            if sock.sk_wmem_alloc >= sock.sk_sndbuf {
                // sock.c: sock_wait_for_wmem().
                charge(sched, cpu, paths::SOCK_WAIT_FOR_WMEM);
                sock.sk_wq.prepare_to_wait(sched, cpu, task, false);
                call.stage = Stage::Waiting;
                return Step::Sleep;
            }
            // Two messages to a buffer, so that both sides have something to do.
            let len = call.left.min((sock.sk_sndbuf >> 1) - 64).min(SKB_MAX_HEAD + UNIX_SKB_FRAGS_SZ);
            let skb = Skb { len, truesize: truesize(len), writer: cpu };
            charge(sched, cpu, paths::SOCK_ALLOC_SEND_PSKB);
            sched.arch_mut().atomic(cpu, write);
            sock.sk_wmem_alloc += skb.truesize;
            sched.arch_mut().copy(cpu, u64::from(len));
            let other = &mut self.unix[other as usize];
            sched.arch_mut().lock(cpu, other.line(SockLine::State));
            sched.arch_mut().lock(cpu, other.line(SockLine::Queue));
            other.sk_receive_queue.push_back(skb);
            sched.arch_mut().unlock(cpu, other.line(SockLine::Queue));
            sched.arch_mut().unlock(cpu, other.line(SockLine::State));
            call.left -= len;
            call.done += len;
            other.sock_def_readable(sched, cpu);
        }
        Step::Done(u64::from(call.done))
    }

    /// af_unix.c: unix_stream_recvmsg(), unix_stream_read_generic().
    pub(super) fn unix_stream_recvmsg<S: Scheduler>(
        &mut self,
        sched: &mut S,
        cpu: CpuId,
        task: TaskId,
        sk: u32,
        how: Receive,
        call: &mut NetCall,
    ) -> Step {
        if call.stage == Stage::Entry {
            charge(sched, cpu, paths::SYS_READ);
            charge(sched, cpu, paths::UNIX_STREAM_RECVMSG);
            call.stage = Stage::Locking;
        } else {
            charge(sched, cpu, paths::UNIX_STREAM_DATA_WAIT);
            self.unix[sk as usize].sk_wq.finish_wait(sched, cpu, task);
        }
        let sock = &self.unix[sk as usize];
        let (read, state, queue) = (sock.line(SockLine::Read), sock.line(SockLine::State), sock.line(SockLine::Queue));
        let target = if how.wait_all { call.left + call.done } else { 1 };
        sched.arch_mut().lock(cpu, read);
        while call.left > 0 {
            let sock = &mut self.unix[sk as usize];
            sched.arch_mut().lock(cpu, state);
            sched.arch_mut().unlock(cpu, state);
            let Some(skb) = sock.sk_receive_queue.front_mut() else {
                if call.done >= target || sock.rcv_shutdown {
                    break;
                }
                sched.arch_mut().unlock(cpu, read);
                charge(sched, cpu, paths::UNIX_STREAM_DATA_WAIT);
                sock.sk_wq.prepare_to_wait(sched, cpu, task, false);
                call.stage = Stage::Waiting;
                return Step::Sleep;
            };
            let chunk = skb.len.min(call.left);
            Net::fetch_skb(sched, cpu, skb.writer, chunk);
            charge(sched, cpu, paths::SKB_COPY_DATAGRAM);
            sched.arch_mut().copy(cpu, u64::from(chunk));
            call.left -= chunk;
            call.done += chunk;
            skb.len -= chunk;
            if skb.len > 0 {
                break;
            }
            let truesize = skb.truesize;
            sched.arch_mut().lock(cpu, queue);
            sock.sk_receive_queue.pop_front();
            sched.arch_mut().unlock(cpu, queue);
            let peer = sock.peer;
            self.unix_consume(sched, cpu, peer, truesize);
        }
        sched.arch_mut().unlock(cpu, read);
        Step::Done(u64::from(call.done))
    }

    /// sock.c: sock_wfree(), af_unix.c: unix_write_space(): takes a packet off the sender's account. While at most a
    /// quarter of the account is in use, all tasks that wait for room are woken, with the sync hint.
    fn unix_consume<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, sender: u32, truesize: u32) {
        charge(sched, cpu, paths::KFREE_SKB);
        within(sched, cpu, paths::UNIX_WRITE_SPACE, |sched| {
            let sender = &mut self.unix[sender as usize];
            sched.arch_mut().atomic(cpu, sender.line(SockLine::Write));
            sender.sk_wmem_alloc -= truesize;
            if sender.sk_wmem_alloc << 2 <= sender.sk_sndbuf {
                sched.arch_mut().read(cpu, sender.line(SockLine::Wait));
                if !sender.sk_wq.is_empty() {
                    sender.sk_wq.wake_up(sched, cpu, WakeFlags::SYNC, 1);
                }
            }
        });
    }

    /// af_unix.c: unix_shutdown(): the peer reads to the end and then sees it. All tasks that wait there are woken,
    /// without the sync hint (sock.c: sock_def_wakeup()).
    pub(super) fn unix_shutdown<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, sk: u32) -> Step {
        let peer = self.unix[sk as usize].peer;
        let peer = &mut self.unix[peer as usize];
        peer.rcv_shutdown = true;
        sched.arch_mut().read(cpu, peer.line(SockLine::Wait));
        if !peer.sk_wq.is_empty() {
            peer.sk_wq.wake_up(sched, cpu, WakeFlags::NONE, 0);
        }
        Step::Done(0)
    }
}

impl UnixSock {
    /// sock.c: sock_def_readable().
    fn sock_def_readable<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId) {
        within(sched, cpu, paths::SOCK_DEF_READABLE, |sched| {
            sched.arch_mut().read(cpu, self.line(SockLine::Wait));
            if !self.sk_wq.is_empty() {
                self.sk_wq.wake_up(sched, cpu, WakeFlags::SYNC, 1);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_a_page_lies_in_whole_pages() {
        // A message of 100 bytes; the longest that fits into one page with the shared information. With one byte more a
        // page is full, so the head is empty.
        assert_eq!([100, SKB_MAX_HEAD].map(truesize), [768, 4_352]);
        assert_eq!(truesize(SKB_MAX_HEAD + 1), 768 + 4_096);
        assert_eq!(truesize(8_192), 768 + 8_192);
        // 1000 bytes in the head, and two pages.
        assert_eq!(truesize(9_192), 2_304 + 8_192);
    }
}
