//! Kernel functions outside kernel/sched whose time is charged. Their numbers follow the scheduler's.

use sched::access::Path;

macro_rules! os_paths {
    ($( $constant:ident = $name:literal: $doc:literal; )+) => {
        #[allow(non_camel_case_types, clippy::upper_case_acronyms)]
        #[repr(u16)]
        enum Number { $( $constant, )+ }

        $( #[doc = $doc] pub const $constant: Path = Path(Path::FIRST_OS + Number::$constant as u16); )+

        /// Names in order of their numbers, from [`Path::FIRST_OS`].
        pub const NAMES: &[&str] = &[ $( $name, )+ ];
    };
}

os_paths! {
    ENTRY_SYSCALL = "entry_SYSCALL_64": "entering and leaving a system call";
    SYS_READ = "sys_read": "file look-up, permission and position of a read";
    SYS_WRITE = "sys_write": "the same of a write";
    PIPE_READ = "pipe_read": "one call's own work, without waiting and copying";
    PIPE_WRITE = "pipe_write": "one call's own work, without waiting and copying";
    PIPE_WAIT = "pipe_wait": "queueing up and leaving the queue round one sleep";
    PIPE_BUF_ALLOC = "alloc_page": "a fresh page for a pipe buffer";
    PIPE_BUF_RELEASE = "anon_pipe_buf_release": "giving a drained page back";
    PIPE_POLL = "pipe_poll": "looking whether a pipe is readable";
    SYS_POLL = "sys_poll": "copying descriptors, registering, leaving";
    WAKE_UP_SYNC_KEY = "__wake_up_sync_key": "walking a wait queue; the wakeups themselves are the scheduler's";
    MUTEX_LOCK = "mutex_lock": "the fast path of a kernel mutex, lock and unlock";
    HRTIMER_NANOSLEEP = "hrtimer_nanosleep": "arming a sleep's timer";
    HRTIMER_WAKEUP = "hrtimer_wakeup": "a sleep's timer fires";
    DO_FORK = "_do_fork": "a new process: copying the task, its files and its address space";
    DO_CLONE_THREAD = "clone_thread": "a new thread of the same address space";
    DO_EXIT = "do_exit": "leaving: address space, files, signals";
    RELEASE_TASK = "release_task": "a parent collects a dead child";
    SYS_WAIT4 = "sys_wait4": "looking for a dead child";
    FUTEX_WAIT = "futex_wait": "hashing, queueing, checking the word";
    FUTEX_WAKE = "futex_wake": "hashing, finding waiters";
    USER_LOCK = "pthread_mutex_lock": "an uncontended lock or unlock in user space";
    SMP_APIC_TIMER_INTERRUPT = "smp_apic_timer_interrupt": "interrupt entry and exit of the local timer";
    HRTIMER_INTERRUPT = "hrtimer_interrupt": "finding and re-arming expired timers";
    TICK_SCHED_TIMER = "tick_sched_timer": "the tick's own work and jiffies";
    UPDATE_PROCESS_TIMES = "update_process_times": "process accounting, RCU, timers of the tick";
    KTIME_GET = "ktime_get": "reading the clock";
    KTIME_GET_UPDATE_OFFSETS_NOW = "ktime_get_update_offsets_now": "the same, and the offsets between clocks";
    UPDATE_WALL_TIME = "update_wall_time": "bringing the timekeeper up to date, by the CPU in charge of it";
    ACCOUNT_PROCESS_TICK = "account_process_tick": "whose time it was";
    RCU_CHECK_CALLBACKS = "rcu_check_callbacks": "whether RCU has something to do in this tick";
    RCU_PROCESS_CALLBACKS = "rcu_process_callbacks": "RCU's softirq, without callbacks";
    NOTE_GP_CHANGES = "note_gp_changes": "noting a grace period, or reporting to it, the leaf locked";
    SMP_RESCHEDULE_INTERRUPT = "smp_reschedule_interrupt": "interrupt entry and exit of the reschedule vector";
    DO_SOFTIRQ = "__do_softirq": "entering and leaving softirq processing";
    COMMON_INTERRUPT = "common_interrupt": "entry and exit of a device's interrupt";
    HANDLE_IRQ_EVENT = "handle_irq_event": "acknowledging a device's interrupt and calling its handler";
    NVME_IRQ = "nvme_irq": "a block device's handler: finding the request that is done and ending it";
    BLK_DONE_SOFTIRQ = "blk_done_softirq": "ending a request in the softirq";
    SCHEDULE_TIMEOUT = "schedule_timeout": "arming a kernel thread's timer of the wheel";
    VMSTAT_UPDATE = "vmstat_update": "background noise: folding a CPU's counters of memory";
    NEED_UPDATE = "need_update": "background noise: the look whether a CPU's counters of memory have changed";
    WATCHDOG = "watchdog_timer_fn": "background noise: the look whether a CPU is stuck";
    KCOMPACTD = "kcompactd": "background noise: the look how far a node's memory is in pieces";
    RCU_GP_KTHREAD = "rcu_gp_kthread": "background noise: the look whether all CPUs were quiescent";
    RUN_TIMER_SOFTIRQ = "run_timer_softirq": "expiring timers of the wheel";
    CPU_IDLE_LOOP = "cpu_idle_loop": "one turn of the idle loop around one idle state";
    QUIET_VMSTAT = "quiet_vmstat": "a CPU that goes idle looks after its counters of memory (v4.5)";
    REFRESH_CPU_VM_STATS = "refresh_cpu_vm_stats": "a CPU's counters of one zone, taken and looked at";
    FOLD_DIFF = "fold_diff": "what comes together of all zones, begun with nothing and looked at";
    TICK_NOHZ_IDLE_ENTER = "tick_nohz_idle_enter": "stopping the tick, reprogramming the timer";
    TICK_NOHZ_IDLE_EXIT = "tick_nohz_idle_exit": "restarting the tick";
    MENU_SELECT = "menu_select": "choosing an idle state";
    TEO_SELECT = "teo_select": "the same by the teo governor";
    LADDER_SELECT_STATE = "ladder_select_state": "the same by the ladder governor";
    HALTPOLL_SELECT = "haltpoll_select": "the same by the haltpoll governor";
    TICK_NOHZ_GET_SLEEP_LENGTH = "tick_nohz_get_sleep_length": "finding the next timer for the governor (v4.17 and later)";
    CPUIDLE_ENTER = "cpuidle_enter_state": "entering and leaving an idle state, without the state's own latency";
    BLKDEV_DIRECT_IO = "blkdev_direct_IO": "making a request of a block device and submitting it";
    QUEUE_WORK = "queue_work": "adding to a workqueue";
    PROCESS_ONE_WORK = "process_one_work": "a worker taking an item and coming back from it";
    DO_SYS_OPEN = "do_sys_open": "opening or creating a file, its directory's blocks in memory";
    LOOKUP_MISS = "path_lookupat": "looking for a name that is not there, and the program's search of the directory then";
    SYS_CLOSE = "filp_close": "closing a file";
    VFS_STATX = "vfs_statx": "stat() of a name that is there";
    VFS_FSTAT = "vfs_fstat": "stat() of an open file";
    VFS_STATFS = "vfs_statfs": "statfs()";
    DO_UTIMES = "do_utimes": "setting a file's times";
    ITERATE_DIR = "iterate_dir": "reading a directory of some tens of names";
    GENERIC_FILE_READ = "generic_file_read_iter": "a read from the page cache, without copying";
    GENERIC_FILE_WRITE = "generic_perform_write": "a write to the page cache, without copying";
    DO_UNLINKAT = "do_unlinkat": "removing a file";
    DO_RENAMEAT = "do_renameat2": "renaming a file";
    FCNTL_SETLK = "fcntl_setlk": "a byte lock";
    VFS_FSYNC = "vfs_fsync_range": "fsync()'s own work";
    WRITE_CACHE_PAGES = "write_cache_pages": "writing a file's dirty pages back: allocation and the request";
    SUBMIT_BIO = "submit_bio": "giving a request to the device";
    BIO_ENDIO = "bio_endio": "the end of a request, in its interrupt";
    BLK_MQ_RUN_WORK = "blk_mq_run_work_fn": "kblockd dispatching a request that waits for a flush";
    XFS_DIALLOC = "xfs_dialloc": "an inode taken from its allocation group or given back, the group's AGI locked, up to the commit";
    XFS_ALLOC_AG_VEXTENT = "xfs_alloc_ag_vextent": "the same of blocks, its AGF locked";
    EXT4_NEW_INODE = "__ext4_new_inode": "what a call changes inside a transaction of ext4";
    EXT4_END_IO_END = "ext4_end_io_end": "a small transaction of ext4 when a write to unwritten blocks has ended";
    XFS_END_IO = "xfs_end_io": "a small transaction when a write to fresh blocks has ended";
    XFS_LOG_FORCE = "_xfs_log_force_lsn": "forcing the log, without what workers do for it";
    XLOG_CIL_SWAP = "xlog_cil_push": "taking all committed changes for a checkpoint, those who commit kept out";
    XLOG_CIL_PUSH_WORK = "xlog_cil_push_work": "writing a checkpoint into the log's buffers";
    XLOG_SYNC = "xlog_sync": "closing a log buffer and submitting it";
    XFSAILD_PUSH_ITEM = "xfsaild_push_item": "looking at one change that is to be written to its place, and preparing that";
    XFS_BUF_IODONE = "xfs_buf_iodone_callbacks": "what is left to do when a buffer is in its place";
    XLOG_IODONE = "xlog_iodone": "the callbacks of what a log buffer held";
    JBD2_LOG_START_COMMIT = "jbd2_log_start_commit": "asking for a commit";
    JBD2_COMMIT_BLOCKS = "jbd2_journal_commit_transaction": "committing, up to the blocks' submission";
    JBD2_COMMIT_RECORD = "journal_submit_commit_record": "committing, the block that ends it";
    JBD2_COMMIT_DONE = "__jbd2_journal_refile_buffer": "committing, giving the blocks to the checkpoint list";
    CONTEXT_TRACKING = "user_exit": "context tracking, on CPUs of nohz_full= only: the end of user mode and its next beginning";
    DO_ANONYMOUS_PAGE = "do_anonymous_page": "the first touch of a page, or of a huge one";
    DO_NUMA_PAGE = "do_numa_page": "a hinting fault, without what the scheduler makes of it";
    MIGRATE_MISPLACED_PAGE = "migrate_misplaced_page": "unmapping and mapping a page that moves; its copy is apart";
    SYS_SENDTO = "sys_sendto": "finding the socket and checking a message to send";
    SYS_RECVFROM = "sys_recvfrom": "the same of a message to receive";
    LOCK_SOCK = "lock_sock_nested": "becoming a socket's owner";
    RELEASE_SOCK = "release_sock": "letting go of it";
    TCP_SENDMSG = "tcp_sendmsg": "one call's own work, without waiting and copying";
    SK_STREAM_ALLOC_SKB = "sk_stream_alloc_skb": "a fresh segment of the write queue";
    SKB_ADD_DATA = "skb_add_data_nocache": "finding a place for data in a segment; the copy is apart";
    SKB_COPY_TO_PAGE = "skb_copy_to_page_nocache": "finding a place for data in a page fragment; the copy is apart";
    SKB_PAGE_FRAG_REFILL = "skb_page_frag_refill": "eight fresh pages in one piece, for fragments";
    FREE_PAGES = "__free_pages_ok": "giving them back";
    TCP_WRITE_XMIT = "tcp_write_xmit": "whether, and how much, may be sent";
    TCP_EVENT_NEW_DATA_SENT = "tcp_event_new_data_sent": "noting a segment as sent, its timer armed";
    TCP_TRANSMIT_SKB = "tcp_transmit_skb": "a segment's copy, header and window";
    IP_QUEUE_XMIT = "ip_queue_xmit": "route, header and filters of a packet that leaves";
    DEV_QUEUE_XMIT = "dev_queue_xmit": "into the loopback device and the CPU's queue of packets";
    NET_RX_ACTION = "net_rx_action": "the softirq round the packets that it takes in";
    NETIF_RECEIVE_SKB = "__netif_receive_skb": "a packet up to its protocol";
    IP_RCV = "ip_rcv": "checks, route and delivery of a packet that arrives";
    TCP_V4_RCV = "tcp_v4_rcv": "finding the socket of a segment";
    TCP_PREQUEUE = "tcp_prequeue": "leaving a segment to its reader";
    SK_ADD_BACKLOG = "sk_add_backlog": "leaving a segment to the socket's owner";
    TCP_RCV_ESTABLISHED = "tcp_rcv_established": "a segment's own work, without what it acknowledges";
    TCP_ACK = "tcp_ack": "what an acknowledgement changes";
    TCP_CLEAN_RTX_QUEUE = "tcp_clean_rtx_queue": "looking what has arrived: round trip time, timer";
    SK_WMEM_FREE_SKB = "sk_wmem_free_skb": "giving back a segment that has arrived";
    TCP_COLLAPSE = "tcp_collapse": "copying small segments together";
    TCP_SEND_ACK = "tcp_send_ack": "an acknowledgement without data";
    ALLOC_SKB = "__alloc_skb": "memory of a packet";
    KFREE_SKB = "__kfree_skb": "giving it back";
    TCP_RECVMSG = "tcp_recvmsg": "one call's own work, without waiting and copying";
    SKB_COPY_DATAGRAM = "skb_copy_datagram_iter": "finding data in a packet; the copy is apart";
    COPY_PAGE_TO_ITER = "copy_page_to_iter": "the same of a page fragment";
    TCP_CLEANUP_RBUF = "tcp_cleanup_rbuf": "whether a reader must tell its peer what it has taken";
    SOCK_DEF_READABLE = "sock_def_readable": "looking for who waits for data";
    SK_STREAM_WRITE_SPACE = "sk_stream_write_space": "looking for who waits for room";
    SK_WAIT_DATA = "sk_wait_data": "one sleep for data of a stream";
    SK_STREAM_WAIT_MEMORY = "sk_stream_wait_memory": "one sleep for room in a stream";
    UDP_SENDMSG = "udp_sendmsg": "one call's own work";
    IP_MAKE_SKB = "ip_make_skb": "a datagram's packet; the copy is apart";
    UDP_RCV = "udp_rcv": "finding a datagram's socket and room in it";
    UDP_RECVMSG = "udp_recvmsg": "one call's own work, without waiting and copying";
    SKB_WAIT_FOR_MORE_PACKETS = "__skb_wait_for_more_packets": "one sleep for a datagram";
    UNIX_STREAM_SENDMSG = "unix_stream_sendmsg": "one call's own work, without waiting and copying";
    SOCK_ALLOC_SEND_PSKB = "sock_alloc_send_pskb": "a packet on its sender's account";
    SOCK_WAIT_FOR_WMEM = "sock_wait_for_wmem": "one sleep for room on that account";
    UNIX_STREAM_RECVMSG = "unix_stream_recvmsg": "one call's own work, without waiting and copying";
    UNIX_STREAM_DATA_WAIT = "unix_stream_data_wait": "one sleep for data";
    UNIX_WRITE_SPACE = "unix_write_space": "looking for who waits for room on an account";
    SOCK_POLL = "sock_poll": "looking whether a socket has something to read, by its protocol";
    SYS_EPOLL_WAIT = "sys_epoll_wait": "epoll_wait()'s own work, and queueing up for an epoll file";
    EP_SEND_EVENTS = "ep_send_events": "the walk over the sockets that may be ready, without asking each";
    EP_POLL_CALLBACK = "ep_poll_callback": "putting a socket on an epoll file's list";
    CHANGE_PROT_NUMA = "change_prot_numa": "taking a page, or a huge one, away until it is touched";
    DBS_WORK_HANDLER = "dbs_work_handler": "a sample of ondemand or conservative; asking the driver is charged apart";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_follow_the_schedulers() {
        assert!(Path::NAMES.len() < Path::FIRST_OS as usize);
        assert_eq!(ENTRY_SYSCALL.0, Path::FIRST_OS);
        assert_eq!(NAMES[(CPUIDLE_ENTER.0 - Path::FIRST_OS) as usize], "cpuidle_enter_state");
    }
}
