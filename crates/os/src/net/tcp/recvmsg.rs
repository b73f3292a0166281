//! tcp.c: tcp_recvmsg().

use super::{SockLine, Ucopy};
use crate::net::rules::Prequeue;
use crate::net::{Net, NetCall, Receive, Stage};
use crate::{Step, charge, paths, within};
use sched::arch::Arch;
use sched::sched::TaskId;
use sched::scheduler::Scheduler;
use units::CpuId;

impl Net {
    /// tcp.c: tcp_recvmsg(): takes what there is. Sleeps if that is nothing, or less than it must have.
    pub(in crate::net) fn tcp_recvmsg<S: Scheduler>(
        &mut self,
        sched: &mut S,
        cpu: CpuId,
        task: TaskId,
        sk: u32,
        how: Receive,
        call: &mut NetCall,
    ) -> Step {
        match call.stage {
            Stage::Entry => {
                call.stage = Stage::Locking;
                within(sched, cpu, paths::SYS_RECVFROM, |sched| {
                    within(sched, cpu, paths::TCP_RECVMSG, |sched| self.receive_on(sched, cpu, task, sk, how, call))
                })
            }
            Stage::Locking => self.receive_on(sched, cpu, task, sk, how, call),
            Stage::Waiting => {
                if !self.lock_sock(sched, cpu, task, sk) {
                    return Step::Sleep;
                }
                charge(sched, cpu, paths::SK_WAIT_DATA);
                self.tcp[sk as usize].sk_wq.finish_wait(sched, cpu, task);
                self.tcp_delack_timer(sched, cpu, sk);
                self.tcp_probe_timers(sched, cpu, sk);
                self.copied_for_reader(sk, call);
                self.process_prequeue(sched, cpu, sk, call);
                self.take(sched, cpu, task, sk, how, call)
            }
            Stage::Copied => self.take(sched, cpu, task, sk, how, call),
            Stage::Rest => self.finish_receive(sched, cpu, task, sk, call),
            Stage::Release => self.release_and_return(sched, cpu, task, sk, call),
            Stage::Sent | Stage::Full => unreachable!("stages of sending"),
        }
    }

    fn receive_on<S: Scheduler>(
        &mut self,
        sched: &mut S,
        cpu: CpuId,
        task: TaskId,
        sk: u32,
        how: Receive,
        call: &mut NetCall,
    ) -> Step {
        if !self.lock_sock(sched, cpu, task, sk) {
            return Step::Sleep;
        }
        self.take(sched, cpu, task, sk, how, call)
    }

    /// The loop over what has arrived, up to the last part of the call.
    fn take<S: Scheduler>(
        &mut self,
        sched: &mut S,
        cpu: CpuId,
        task: TaskId,
        sk: u32,
        how: Receive,
        call: &mut NetCall,
    ) -> Step {
        let target = if how.wait_all { call.left + call.done } else { 1 };
        while call.left > 0 {
            if self.take_skb(sched, cpu, sk, how, call) {
                if call.left > 0 {
                    call.stage = Stage::Copied;
                    return Step::Continues;
                }
                break;
            }
            let tp = &self.tcp[sk as usize];
            let enough = call.done >= target;
            if enough && tp.sk_backlog.is_empty() || tp.fin_received {
                break;
            }
            self.tcp_cleanup_rbuf(sched, cpu, sk, call.done);
            if self.rules.prequeue == Prequeue::Used {
                let tp = &mut self.tcp[sk as usize];
                if tp.ucopy.is_none() && !how.discard {
                    tp.ucopy = Some(Ucopy { task, len: call.left });
                }
                if let Some(ucopy) = tp.ucopy.as_mut().filter(|ucopy| ucopy.task == task) {
                    ucopy.len = call.left;
                }
                if !tp.prequeue.is_empty() {
                    self.process_prequeue(sched, cpu, sk, call);
                    continue;
                }
            }
            if enough {
                self.flush_backlog(sched, cpu, sk);
            } else if let Some(step) = self.sk_wait_data(sched, cpu, task, sk, call) {
                return step;
            }
            self.copied_for_reader(sk, call);
            self.process_prequeue(sched, cpu, sk, call);
        }
        call.stage = Stage::Rest;
        Step::Continues
    }

    /// Takes data from the first waiting segment. Returns false if there is none.
    fn take_skb<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, sk: u32, how: Receive, call: &mut NetCall) -> bool {
        let tp = &mut self.tcp[sk as usize];
        sched.arch_mut().read(cpu, tp.line(SockLine::Receive));
        let Some(front) = tp.sk_receive_queue.front_mut() else { return false };
        let skb = *front;
        front.touched = true;
        let offset = (tp.copied_seq - skb.seq) as u32;
        let used = (skb.len - offset).min(call.left);
        if !skb.touched {
            Net::fetch_skb(sched, cpu, skb.writer, 0);
        }
        if !how.discard {
            sched.arch_mut().fetch(cpu, skb.writer, u64::from(used));
            charge(sched, cpu, paths::SKB_COPY_DATAGRAM);
            sched.arch_mut().copy(cpu, u64::from(used));
            Net::copy_page_to_iter(sched, cpu, skb.linear, used);
        }
        sched.arch_mut().write(cpu, tp.line(SockLine::Receive));
        tp.copied_seq += u64::from(used);
        call.left -= used;
        call.done += used;
        tp.tcp_rcv_space_adjust(sched.arch().sched_clock(cpu), self.rules.rcvbuf_growth);
        if offset + used == skb.len {
            // sk_eat_skb(), tcp_eat_recv_skb().
            self.skb_attempt_defer_free(sched, cpu, skb.writer);
            let tp = &mut self.tcp[sk as usize];
            sched.arch_mut().write(cpu, tp.line(SockLine::Lock));
            tp.sk_receive_queue.pop_front();
            tp.sk_rmem_alloc -= skb.truesize;
            self.free_frags(sched, cpu, sk, skb.end_seq());
        } else if let Some(skb) = tp.sk_receive_queue.front_mut() {
            // The rest of it is in this CPU's caches, except for the data.
            skb.seq = tp.copied_seq;
            skb.len -= offset + used;
            skb.linear = skb.linear.saturating_sub(offset + used);
        }
        true
    }

    /// Accounts for what was copied to the reader while it processed its backlog or prequeue.
    fn copied_for_reader(&mut self, sk: u32, call: &mut NetCall) {
        if let Some(ucopy) = &self.tcp[sk as usize].ucopy {
            let chunk = call.left.saturating_sub(ucopy.len);
            call.left -= chunk;
            call.done += chunk;
        }
    }

    fn process_prequeue<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, sk: u32, call: &mut NetCall) {
        let tp = &self.tcp[sk as usize];
        if !tp.prequeue.is_empty() && tp.rcv_nxt == tp.copied_seq {
            self.tcp_prequeue_process(sched, cpu, sk);
            self.copied_for_reader(sk, call);
        }
    }

    /// sock.c: sk_wait_data(): releases the socket and sleeps, unless something has come meanwhile.
    fn sk_wait_data<S: Scheduler>(
        &mut self,
        sched: &mut S,
        cpu: CpuId,
        task: TaskId,
        sk: u32,
        call: &mut NetCall,
    ) -> Option<Step> {
        charge(sched, cpu, paths::SK_WAIT_DATA);
        self.join_for_event(sched, cpu, task, sk);
        self.release_sock(sched, cpu, sk);
        let tp = &mut self.tcp[sk as usize];
        let copied = tp.ucopy.as_ref().is_some_and(|ucopy| ucopy.task == task && ucopy.len < call.left);
        if tp.sk_receive_queue.is_empty() && tp.prequeue.is_empty() && !tp.fin_received && !copied {
            call.stage = Stage::Waiting;
            return Some(self.sleep_for_event(sched, cpu, sk));
        }
        self.leave_awake(sched, cpu, task, sk);
        let owner = self.lock_sock(sched, cpu, task, sk);
        assert!(owner, "nobody can have taken the socket");
        None
    }

    /// The last part of the call: what still waits for this reader, the acknowledgement or window update, the backlog.
    fn finish_receive<S: Scheduler>(
        &mut self,
        sched: &mut S,
        cpu: CpuId,
        task: TaskId,
        sk: u32,
        call: &mut NetCall,
    ) -> Step {
        let tp = &mut self.tcp[sk as usize];
        if let Some(ucopy) = tp.ucopy.as_mut().filter(|ucopy| ucopy.task == task) {
            ucopy.len = if call.done > 0 { call.left } else { 0 };
            if !tp.prequeue.is_empty() {
                self.tcp_prequeue_process(sched, cpu, sk);
                if call.done > 0 {
                    self.copied_for_reader(sk, call);
                }
            }
            self.tcp[sk as usize].ucopy = None;
        }
        let copied = call.done;
        self.transmitting(task, sk, call, sched, |net, sched| net.tcp_cleanup_rbuf(sched, cpu, sk, copied));
        if call.raised {
            call.stage = Stage::Release;
            return Step::Continues;
        }
        self.release_and_return(sched, cpu, task, sk, call)
    }

    /// tcp.c: tcp_cleanup_rbuf(): tells the peer at once what was read, if an acknowledgement is due or the window has
    /// grown to twice what it was.
    fn tcp_cleanup_rbuf<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, sk: u32, copied: u32) {
        charge(sched, cpu, paths::TCP_CLEANUP_RBUF);
        let tp = &mut self.tcp[sk as usize];
        sched.arch_mut().read(cpu, tp.line(SockLine::Ack));
        let ack = tp.icsk_ack;
        let interactive = ack.pingpong >= self.rules.pingpong.threshold();
        let mut time_to_ack = ack.scheduled
            && (tp.rcv_nxt - tp.rcv_wup > u64::from(ack.rcv_mss)
                || copied > 0 && (ack.pushed2 || ack.pushed && !interactive) && tp.sk_rmem_alloc == 0);
        if copied > 0 && !time_to_ack && !tp.fin_received {
            let rcv_window_now = tp.tcp_receive_window();
            if 2 * rcv_window_now <= tp.window_clamp {
                let new_window = tp.__tcp_select_window();
                time_to_ack = new_window > 0 && new_window >= 2 * rcv_window_now;
            }
        }
        if time_to_ack {
            self.tcp_send_ack(sched, cpu, sk);
        }
    }
}
