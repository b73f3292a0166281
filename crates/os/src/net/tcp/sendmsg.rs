//! tcp.c: tcp_sendmsg().

use super::output::Nagle;
use super::{Skb, SockLine};
use crate::net::rules::{Payload, SendBacklog};
use crate::net::{Net, NetCall, Stage};
use crate::{Step, charge, paths, within};
use sched::arch::Arch;
use sched::sched::TaskId;
use sched::scheduler::Scheduler;
use units::CpuId;

/// Bytes of data behind the header in a head of 2 KiB.
const LINEAR: u32 = 1408;

impl Net {
    /// tcp.c: tcp_sendmsg(): copies into the write queue, sends what may leave, and sleeps while the send buffer is
    /// full.
    pub(in crate::net) fn tcp_sendmsg<S: Scheduler>(
        &mut self,
        sched: &mut S,
        cpu: CpuId,
        task: TaskId,
        sk: u32,
        call: &mut NetCall,
    ) -> Step {
        match call.stage {
            Stage::Entry => {
                call.stage = Stage::Locking;
                within(sched, cpu, paths::SYS_SENDTO, |sched| {
                    within(sched, cpu, paths::TCP_SENDMSG, |sched| self.send_on(sched, cpu, task, sk, call))
                })
            }
            Stage::Locking => self.send_on(sched, cpu, task, sk, call),
            Stage::Waiting => {
                if !self.lock_sock(sched, cpu, task, sk) {
                    return Step::Sleep;
                }
                charge(sched, cpu, paths::SK_STREAM_WAIT_MEMORY);
                self.tcp_delack_timer(sched, cpu, sk);
                self.tcp_probe_timers(sched, cpu, sk);
                if !self.tcp[sk as usize].memory_free() {
                    return self.sk_stream_wait_memory(sched, cpu, task, sk).unwrap_or(Step::Continues);
                }
                self.tcp[sk as usize].sk_wq.finish_wait(sched, cpu, task);
                self.fill(sched, cpu, task, sk, call)
            }
            Stage::Copied => {
                if self.transmitting(task, sk, call, sched, |net, sched| net.send_segment(sched, cpu, sk)) {
                    call.stage = Stage::Sent;
                    return Step::Continues;
                }
                self.fill(sched, cpu, task, sk, call)
            }
            Stage::Sent => self.fill(sched, cpu, task, sk, call),
            Stage::Full => {
                call.stage = Stage::Waiting;
                match self.sk_stream_wait_memory(sched, cpu, task, sk) {
                    Some(step) => step,
                    None => self.fill(sched, cpu, task, sk, call),
                }
            }
            Stage::Rest => {
                self.transmitting(task, sk, call, sched, |net, sched| net.tcp_push(sched, cpu, sk, Nagle::Own));
                if call.raised {
                    call.stage = Stage::Release;
                    return Step::Continues;
                }
                self.release_and_return(sched, cpu, task, sk, call)
            }
            Stage::Release => self.release_and_return(sched, cpu, task, sk, call),
        }
    }

    fn send_on<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, task: TaskId, sk: u32, call: &mut NetCall) -> Step {
        if !self.lock_sock(sched, cpu, task, sk) {
            return Step::Sleep;
        }
        self.fill(sched, cpu, task, sk, call)
    }

    /// The copying loop, up to the push of what it leaves in the queue.
    fn fill<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, task: TaskId, sk: u32, call: &mut NetCall) -> Step {
        while call.left > 0 {
            let tp = &self.tcp[sk as usize];
            // The value of tcp_xmit_size_goal() on loopback.
            let size_goal = tp.mss_cache;
            let tail = tp.send_head().and(tp.sk_write_queue.back()).map_or(0, |skb| size_goal.saturating_sub(skb.len));
            if tail == 0 {
                if !tp.memory_free() {
                    if let Some(step) = self.wait_for_sndbuf(sched, cpu, task, sk, call) {
                        return step;
                    }
                    continue;
                }
                if self.rules.send_backlog == SendBacklog::PerSegment {
                    self.flush_backlog(sched, cpu, sk);
                }
                self.sk_stream_alloc_skb(sched, cpu, sk);
            }
            let room = if tail == 0 { size_goal } else { tail };
            self.append(sched, cpu, sk, room.min(call.left), call);
            let tp = &self.tcp[sk as usize];
            let full = tp.sk_write_queue.back().is_some_and(|skb| skb.len >= size_goal);
            if call.left > 0 && full && (tp.forced_push() || tp.is_send_head_last()) {
                call.stage = Stage::Copied;
                return Step::Continues;
            }
        }
        if self.tcp[sk as usize].may_transmit(Nagle::Own) {
            call.stage = Stage::Rest;
            return Step::Continues;
        }
        self.tcp_push(sched, cpu, sk, Nagle::Own);
        self.release_and_return(sched, cpu, task, sk, call)
    }

    /// Within a message, the push of a segment that is full: of all, if half of the largest window has been written, or of this
    /// one, if it is the only one. Returns whether anything has left.
    fn send_segment<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, sk: u32) -> bool {
        let tp = &mut self.tcp[sk as usize];
        if tp.forced_push() {
            tp.tcp_mark_push();
            self.tcp_write_xmit(sched, cpu, sk, Nagle::Push, false)
        } else {
            tp.is_send_head_last() && self.tcp_write_xmit(sched, cpu, sk, Nagle::Push, true)
        }
    }

    /// tcp.c: tcp_push(). Differs: nothing is held back for more data (autocorking), as the loopback device keeps no packets.
    fn tcp_push<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, sk: u32, nonagle: Nagle) {
        let tp = &mut self.tcp[sk as usize];
        if tp.send_head().is_some() {
            tp.tcp_mark_push();
            self.tcp_write_xmit(sched, cpu, sk, nonagle, false);
        }
    }

    /// tcp.c: sk_stream_alloc_skb(), skb_entail(): adds a fresh segment at the end of the write queue.
    fn sk_stream_alloc_skb<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, sk: u32) {
        charge(sched, cpu, paths::SK_STREAM_ALLOC_SKB);
        let first = self.tcp[sk as usize].sk_write_queue.is_empty();
        let (linear, payload) = (self.linear(first), self.rules.payload);
        let tp = &mut self.tcp[sk as usize];
        sched.arch_mut().write(cpu, tp.line(SockLine::Write));
        let truesize = payload.empty_truesize(linear);
        let (seq, len, psh) = (tp.write_seq, 0, false);
        tp.sk_write_queue.push_back(Skb { seq, len, linear, truesize, psh, writer: cpu, touched: false });
        tp.sk_wmem_queued += truesize;
    }

    /// tcp.c: select_size(): how much of a segment's data lies in its head.
    fn linear(&self, first: bool) -> u32 {
        match self.rules.payload {
            Payload::Linear => LINEAR,
            Payload::FirstLinear if first => LINEAR,
            Payload::FirstLinear | Payload::Pages | Payload::TcpHeads | Payload::SmallHeads => 0,
        }
    }

    /// Appends `bytes` to the last segment.
    fn append<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, sk: u32, bytes: u32, call: &mut NetCall) {
        let skb = self.tcp[sk as usize].sk_write_queue.back().expect("a segment to fill");
        // What does not fit into the head lies in page fragments, which count by their bytes.
        let paged = (skb.len + bytes).saturating_sub(skb.linear.max(skb.len));
        if paged < bytes {
            charge(sched, cpu, paths::SKB_ADD_DATA);
        }
        self.fill_frags(sched, cpu, sk, paged);
        let tp = &mut self.tcp[sk as usize];
        sched.arch_mut().copy(cpu, u64::from(bytes));
        let skb = tp.sk_write_queue.back_mut().expect("a segment to fill");
        skb.len += bytes;
        skb.truesize += paged;
        skb.psh &= call.done > 0;
        skb.writer = cpu;
        tp.sk_wmem_queued += paged;
        tp.write_seq += u64::from(bytes);
        sched.arch_mut().write(cpu, tp.line(SockLine::Send));
        call.left -= bytes;
        call.done += bytes;
    }

    /// The send buffer is full: pushes what there is, and sleeps if that did not help.
    fn wait_for_sndbuf<S: Scheduler>(
        &mut self,
        sched: &mut S,
        cpu: CpuId,
        task: TaskId,
        sk: u32,
        call: &mut NetCall,
    ) -> Option<Step> {
        self.tcp[sk as usize].nospace = true;
        if call.done > 0 {
            self.transmitting(task, sk, call, sched, |net, sched| net.tcp_push(sched, cpu, sk, Nagle::Push));
            if call.raised {
                call.stage = Stage::Full;
                return Some(Step::Continues);
            }
        }
        call.stage = Stage::Waiting;
        self.sk_stream_wait_memory(sched, cpu, task, sk)
    }

    /// stream.c: sk_stream_wait_memory(): releases the socket and sleeps, unless what came meanwhile made room.
    fn sk_stream_wait_memory<S: Scheduler>(
        &mut self,
        sched: &mut S,
        cpu: CpuId,
        task: TaskId,
        sk: u32,
    ) -> Option<Step> {
        charge(sched, cpu, paths::SK_STREAM_WAIT_MEMORY);
        self.tcp[sk as usize].nospace = true;
        self.join_for_event(sched, cpu, task, sk);
        self.release_sock(sched, cpu, sk);
        if !self.tcp[sk as usize].memory_free() {
            return Some(self.sleep_for_event(sched, cpu, sk));
        }
        self.leave_awake(sched, cpu, task, sk);
        let owner = self.lock_sock(sched, cpu, task, sk);
        assert!(owner, "nobody can have taken the socket");
        None
    }

    /// tcp.c: tcp_shutdown(), as shutdown() and close() call it: the peer reads to the end and then sees it.
    pub(in crate::net) fn tcp_shutdown<S: Scheduler>(
        &mut self,
        sched: &mut S,
        cpu: CpuId,
        task: TaskId,
        sk: u32,
        call: &mut NetCall,
    ) -> Step {
        call.stage = Stage::Locking;
        if !self.lock_sock(sched, cpu, task, sk) {
            return Step::Sleep;
        }
        self.tcp[sk as usize].shutdown = true;
        self.tcp_write_xmit(sched, cpu, sk, Nagle::Push, false);
        self.release_sock(sched, cpu, sk);
        Step::Done(0)
    }
}
