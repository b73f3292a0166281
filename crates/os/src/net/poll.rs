//! fs/select.c and fs/eventpoll.c: tasks that wait for data on one of several sockets, or together with other tasks.
//!
//! poll() joins the socket's wait queue, and every poller is woken when data arrive. An epoll file is on the wait
//! queues of all its sockets. Data for a socket put that socket on the file's list of those that may be ready, and wake
//! the one task that waits for the file. epoll_wait() then polls each socket of the list. A socket that was reported
//! goes back to the list unless it was added with EPOLLET, so that the next call polls it again.
//!
//! Modelled: waiting for data to read (EPOLLIN) only; sockets are added before anything arrives. Absent: several tasks
//! that wait for one file, epoll files within epoll files.

use super::{Net, Socket, line};
use crate::wait::WaitQueue;
use crate::{Os, Step, charge, paths, within};
use sched::arch::Arch;
use sched::behaviour;
use sched::layout::Line;
use sched::sched::{TaskId, TaskState, WakeFlags};
use sched::scheduler::Scheduler;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use units::CpuId;

behaviour! {
    /// How a task that waits for an epoll file is woken by what wakes those who wait for the socket itself with the sync hint.
    pub enum EpollWakeup = "epoll.wakeup" {
        Plain = "plain", since "v2.6.0", commit "", "without the hint";
        /// v6.1.y has it too.
        Sync = "sync", since "v6.13", commit "900bbaae67e9", "with it";
    }
}

/// An epoll file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct EpollId(u32);

/// The array in user memory into which epoll_wait() writes: which sockets have something to read.
pub type Events = Rc<RefCell<Vec<Socket>>>;

/// epoll_wait() under way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EpollCall {
    epoll: EpollId,
    entered: bool,
}

impl EpollCall {
    pub fn new(epoll: EpollId) -> EpollCall {
        EpollCall { epoll, entered: false }
    }
}

/// struct eventpoll.
pub(super) struct EventPoll {
    base: Line,
    wq: WaitQueue,
    items: Vec<Item>,
    /// rdllist: items that may be ready.
    ready: VecDeque<u32>,
    events: Events,
    maxevents: usize,
}

/// struct epitem.
struct Item {
    socket: Socket,
    edge_triggered: bool,
    listed: bool,
}

/// Which item of which epoll file is on a socket's wait queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct Watch {
    epoll: u32,
    item: u32,
}

/// `ep->lock` with the list, and `ep->wq`.
const LINES: u32 = 2;

impl Os {
    /// epoll_create(), for a program that takes at most `maxevents` events at a time.
    pub fn create_epoll(&mut self, maxevents: usize) -> (EpollId, Events) {
        let base = self.allocate_named(&["epoll file: lock, rdllist", "epoll file: wq"]);
        let events = Events::default();
        self.net.epolls.push(EventPoll {
            base,
            wq: WaitQueue::new(line(base, LINES - 1)),
            items: Vec::new(),
            ready: VecDeque::new(),
            events: events.clone(),
            maxevents,
        });
        (EpollId(self.net.epolls.len() as u32 - 1), events)
    }

    /// epoll_ctl(EPOLL_CTL_ADD) of a TCP socket, for data to read. It takes no time: a server does it once per
    /// connection.
    pub fn epoll_add(&mut self, epoll: EpollId, socket: Socket, edge_triggered: bool) {
        let Socket::Tcp(sk) = socket else { unreachable!("only TCP sockets are watched") };
        let items = &mut self.net.epolls[epoll.0 as usize].items;
        items.push(Item { socket, edge_triggered, listed: false });
        self.net.tcp[sk as usize].watch = Some(Watch { epoll: epoll.0, item: items.len() as u32 - 1 });
    }
}

impl Net {
    /// select.c: do_poll() of one socket.
    ///
    /// Differs: there is no time limit.
    pub(crate) fn socket_poll<S: Scheduler>(
        &mut self,
        sched: &mut S,
        cpu: CpuId,
        task: TaskId,
        socket: Socket,
        registered: &mut bool,
    ) -> Step {
        if !*registered {
            charge(sched, cpu, paths::SYS_POLL);
            self.queue_of(socket).poll_wait(sched, cpu, task);
            *registered = true;
        }
        if !self.sock_poll(sched, cpu, socket) {
            sched.set_current_state(cpu, TaskState::Interruptible);
            return Step::Sleep;
        }
        self.queue_of(socket).finish_wait(sched, cpu, task);
        Step::Done(1)
    }

    fn queue_of(&mut self, socket: Socket) -> &mut WaitQueue {
        match socket {
            Socket::Unix(sk) => self.unix[sk as usize].wait_queue(),
            Socket::Tcp(sk) => self.tcp[sk as usize].wait_queue(),
            Socket::Udp(_) => unreachable!("nobody polls a UDP socket"),
        }
    }

    /// `sock->ops->poll()`: whether there is something to read, or never will be.
    fn sock_poll<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, socket: Socket) -> bool {
        charge(sched, cpu, paths::SOCK_POLL);
        match socket {
            Socket::Unix(sk) => self.unix[sk as usize].unix_poll(sched, cpu),
            Socket::Tcp(sk) => self.tcp[sk as usize].tcp_poll(sched, cpu),
            Socket::Udp(_) => unreachable!("nobody polls a UDP socket"),
        }
    }

    /// eventpoll.c: eventpoll_release(), when a socket is closed: no epoll file reports it any more.
    ///
    /// Differs: it takes no time.
    pub(super) fn eventpoll_release(&mut self, sk: u32) {
        if let Some(watch) = self.tcp[sk as usize].watch.take() {
            let ep = &mut self.epolls[watch.epoll as usize];
            ep.ready.retain(|&item| item != watch.item);
        }
    }

    /// eventpoll.c: ep_poll_callback(), under the lock of the socket's wait queue.
    ///
    /// Differs: whatever arrives is what the task waits for; no item is exclusive.
    pub(super) fn ep_poll_callback<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, watch: Watch, flags: WakeFlags) {
        let flags = if self.rules.epoll_wakeup == EpollWakeup::Sync { flags } else { WakeFlags::NONE };
        let ep = &mut self.epolls[watch.epoll as usize];
        within(sched, cpu, paths::EP_POLL_CALLBACK, |sched| {
            sched.arch_mut().lock(cpu, ep.base);
            let item = &mut ep.items[watch.item as usize];
            if !std::mem::replace(&mut item.listed, true) {
                ep.ready.push_back(watch.item);
            }
            if !ep.wq.is_empty() {
                ep.wq.wake_up(sched, cpu, flags, 1);
            }
            sched.arch_mut().unlock(cpu, ep.base);
        });
    }

    /// eventpoll.c: ep_poll(), which returns how many events it has written.
    ///
    /// Differs: there is no time limit and no busy polling.
    pub(crate) fn epoll_wait<S: Scheduler>(
        &mut self,
        sched: &mut S,
        cpu: CpuId,
        task: TaskId,
        call: &mut EpollCall,
    ) -> Step {
        let number = call.epoll.0 as usize;
        if call.entered {
            self.epolls[number].wq.finish_wait(sched, cpu, task);
        } else {
            charge(sched, cpu, paths::SYS_EPOLL_WAIT);
            call.entered = true;
        }
        loop {
            let ep = &mut self.epolls[number];
            sched.arch_mut().read(cpu, ep.base);
            if ep.ready.is_empty() {
                ep.wq.prepare_to_wait(sched, cpu, task, true);
                return Step::Sleep;
            }
            let told = self.ep_send_events(sched, cpu, number);
            if told > 0 {
                return Step::Done(told as u64);
            }
        }
    }

    /// eventpoll.c: ep_send_events(): reports the listed sockets that have something to read.
    ///
    /// Differs: nothing arrives while sockets are polled, so there is no overflow list (ovflist).
    #[doc(alias = "ep_scan_ready_list")]
    #[doc(alias = "ep_start_scan")]
    #[doc(alias = "ep_done_scan")]
    fn ep_send_events<S: Scheduler>(&mut self, sched: &mut S, cpu: CpuId, number: usize) -> usize {
        let ep = &mut self.epolls[number];
        let (base, events, maxevents) = (ep.base, ep.events.clone(), ep.maxevents);
        let mut list = std::mem::take(&mut ep.ready);
        sched.arch_mut().lock(cpu, base);
        sched.arch_mut().unlock(cpu, base);
        let mut events = events.borrow_mut();
        events.clear();
        within(sched, cpu, paths::EP_SEND_EVENTS, |sched| {
            while events.len() < maxevents {
                let Some(place) = list.pop_front() else { break };
                let Item { socket, edge_triggered, .. } = self.epolls[number].items[place as usize];
                let readable = self.sock_poll(sched, cpu, socket);
                let ep = &mut self.epolls[number];
                let again = readable && !edge_triggered;
                ep.items[place as usize].listed = again;
                if readable {
                    events.push(socket);
                }
                if again {
                    ep.ready.push_back(place);
                }
            }
        });
        sched.arch_mut().lock(cpu, base);
        // Sockets for which there was no room come first.
        let ep = &mut self.epolls[number];
        list.append(&mut ep.ready);
        ep.ready = list;
        sched.arch_mut().unlock(cpu, base);
        events.len()
    }
}
