//! The chains of functions of each version, where they differ from the version before.

use super::PREFIX;

/// A caller's frame, a priced function called from it, and the function's chain, the outermost frame first. A star
/// marks the frame that the function's own time is booked on; frames after it are passed on the way to what the
/// function calls. A caller of `""` stands for any other. `task`, `idle` and `stopper` are the bottoms of stacks. A
/// `prefix` row is put before each chain at that bottom that has no row of its own.
pub(super) type Row = (&'static str, &'static str, &'static str);

pub(super) const V4_5: &[Row] = &[
    ("", "entry_SYSCALL_64", "entry_SYSCALL_64_fastpath*"),
    ("", "sys_read", "sys_read* vfs_read __vfs_read"),
    ("", "sys_write", "sys_write* vfs_write __vfs_write"),
    ("", "alloc_page", "alloc_pages_current __alloc_pages_nodemask*"),
    ("", "sys_sendto", "sys_sendto* sock_sendmsg inet_sendmsg"),
    ("", "sys_recvfrom", "sys_recvfrom* sock_recvmsg inet_recvmsg"),
    ("", "ip_queue_xmit", "ip_queue_xmit* ip_local_out ip_output ip_finish_output ip_finish_output2"),
    ("", "dev_queue_xmit", "dev_queue_xmit __dev_queue_xmit*"),
    ("dev_queue_xmit", "__do_softirq", "__local_bh_enable_ip do_softirq do_softirq_own_stack __do_softirq*"),
    ("", "net_rx_action", "net_rx_action* process_backlog"),
    ("", "ip_rcv", "ip_rcv* ip_rcv_finish ip_local_deliver ip_local_deliver_finish"),
    ("", "tcp_rcv_established", "tcp_v4_do_rcv tcp_rcv_established*"),
    ("", "sys_poll", "sys_poll do_sys_poll*"),
    (
        "sys_poll",
        "schedule",
        "poll_schedule_timeout schedule_hrtimeout_range schedule_hrtimeout_range_clock schedule __schedule*",
    ),
    ("", "sys_epoll_wait", "sys_epoll_wait ep_poll*"),
    ("", "ep_send_events", "ep_scan_ready_list ep_send_events_proc*"),
    ("", "__wake_up_sync_key", "__wake_up_sync_key* __wake_up_common autoremove_wake_function default_wake_function"),
    ("", "hrtimer_nanosleep", "sys_clock_nanosleep common_nsleep hrtimer_nanosleep* do_nanosleep"),
    ("", "blkdev_direct_IO", "blkdev_read_iter generic_file_read_iter blkdev_direct_IO* io_schedule"),
    ("", "_do_fork", "sys_clone _do_fork*"),
    ("_do_fork", "_do_fork", "copy_process*"),
    ("_do_fork", "clone_thread", "copy_process*"),
    ("_do_fork", "sched_fork", "copy_process sched_fork*"),
    ("", "do_exit", "sys_exit_group do_group_exit do_exit*"),
    ("", "sys_wait4", "sys_wait4 do_wait*"),
    ("", "sched_yield", "sys_sched_yield*"),
    ("", "futex_wait", "sys_futex do_futex futex_wait* futex_wait_queue_me"),
    ("", "futex_wake", "sys_futex do_futex futex_wake*"),
    ("futex_wake", "try_to_wake_up", "wake_up_q try_to_wake_up*"),
    ("", "schedule", "schedule __schedule*"),
    ("", "cpumask_next_wrap", "find_next_bit*"),
    ("", "switch_to", "__switch_to*"),
    ("task", "schedule", "exit_to_usermode_loop schedule __schedule*"),
    ("stopper", PREFIX, "ret_from_fork kthread smpboot_thread_fn"),
    ("idle", PREFIX, "cpu_startup_entry"),
    ("idle", "cpu_idle_loop", "cpu_startup_entry*"),
    ("idle", "schedule", "cpu_startup_entry schedule_preempt_disabled schedule __schedule*"),
    ("idle", "menu_select", "cpu_startup_entry cpuidle_select menu_select*"),
    ("idle", "cpuidle_enter_state", "cpu_startup_entry call_cpuidle cpuidle_enter cpuidle_enter_state*"),
    ("", "smp_apic_timer_interrupt", "apic_timer_interrupt smp_apic_timer_interrupt* local_apic_timer_interrupt"),
    ("", "smp_reschedule_interrupt", "reschedule_interrupt smp_reschedule_interrupt*"),
    ("", "hrtimer_interrupt", "hrtimer_interrupt* __hrtimer_run_queues"),
    ("", "hrtimer_wakeup", "hrtimer_wakeup* wake_up_process"),
    ("", "tick_sched_timer", "tick_sched_timer* tick_sched_handle"),
    ("smp_apic_timer_interrupt", "__do_softirq", "irq_exit __do_softirq*"),
    ("smp_reschedule_interrupt", "__do_softirq", "scheduler_ipi irq_exit __do_softirq*"),
];

pub(super) const V4_15: &[Row] = &[
    (
        "",
        "__wake_up_sync_key",
        "__wake_up_sync_key* __wake_up_common_lock __wake_up_common autoremove_wake_function default_wake_function",
    ),
    ("", "sys_wait4", "sys_wait4 kernel_wait4 do_wait*"),
    ("", "cpumask_next_wrap", "cpumask_next_wrap*"),
    ("do_exit", "schedule", "do_task_dead __schedule*"),
    ("", "switch_mm", "switch_mm_irqs_off*"),
    ("", "update_cfs_shares", "update_cfs_group*"),
    ("idle", PREFIX, "cpu_startup_entry do_idle"),
    ("idle", "cpu_idle_loop", "cpu_startup_entry do_idle*"),
    ("idle", "schedule", "cpu_startup_entry do_idle schedule_idle __schedule*"),
    ("idle", "menu_select", "cpu_startup_entry do_idle cpuidle_select menu_select*"),
    ("idle", "cpuidle_enter_state", "cpu_startup_entry do_idle call_cpuidle cpuidle_enter cpuidle_enter_state*"),
    ("", "smp_apic_timer_interrupt", "apic_timer_interrupt smp_apic_timer_interrupt*"),
];

pub(super) const V4_16: &[Row] = &[("", "entry_SYSCALL_64", "entry_SYSCALL_64_after_hwframe* do_syscall_64")];

/// From the sources of 4.19.108, and the functions that its build keeps.
pub(super) const V4_19: &[Row] = &[
    ("", "sys_read", "__x64_sys_read ksys_read* vfs_read __vfs_read"),
    ("", "sys_write", "__x64_sys_write ksys_write* vfs_write __vfs_write"),
    ("", "sys_sendto", "__x64_sys_sendto __sys_sendto* sock_sendmsg inet_sendmsg"),
    ("", "sys_recvfrom", "__x64_sys_recvfrom __sys_recvfrom* sock_recvmsg inet_recvmsg"),
    ("", "sys_poll", "__x64_sys_poll do_sys_poll*"),
    ("sys_poll", "schedule", "schedule_hrtimeout_range schedule_hrtimeout_range_clock schedule __schedule*"),
    ("", "sys_epoll_wait", "__x64_sys_epoll_wait do_epoll_wait ep_poll*"),
    ("", "hrtimer_nanosleep", "__x64_sys_clock_nanosleep common_nsleep hrtimer_nanosleep* do_nanosleep"),
    ("", "_do_fork", "__x64_sys_clone _do_fork*"),
    ("", "do_exit", "__x64_sys_exit_group do_group_exit do_exit*"),
    ("", "sys_wait4", "__x64_sys_wait4 kernel_wait4 do_wait*"),
    ("", "sched_yield", "__x64_sys_sched_yield do_sched_yield*"),
    ("", "futex_wait", "__x64_sys_futex do_futex futex_wait* futex_wait_queue_me"),
    ("", "futex_wake", "__x64_sys_futex do_futex futex_wake*"),
    ("idle", "tick_nohz_idle_enter", "cpu_startup_entry do_idle tick_nohz_idle_stop_tick*"),
];

/// From the sources of 5.4.286, and the functions that its build keeps.
pub(super) const V5_4: &[Row] = &[
    ("", "sys_epoll_wait", "__x64_sys_epoll_wait do_epoll_wait*"),
    ("", "idle_balance", "newidle_balance*"),
    ("", "rcu_check_callbacks", "rcu_sched_clock_irq*"),
    ("", "rcu_process_callbacks", "rcu_core_si rcu_core*"),
];

pub(super) const V5_10: &[Row] = &[
    ("", "sys_read", "__x64_sys_read ksys_read* vfs_read"),
    ("", "sys_write", "__x64_sys_write ksys_write* vfs_write"),
    ("", "pipe_wait", "prepare_to_wait_event*"),
    (
        "dev_queue_xmit",
        "__do_softirq",
        "__local_bh_enable_ip do_softirq do_softirq_own_stack asm_call_sysvec_on_stack __do_softirq*",
    ),
    (
        "",
        "blkdev_direct_IO",
        "blkdev_read_iter generic_file_read_iter blkdev_direct_IO* __blkdev_direct_IO_simple blk_io_schedule io_schedule",
    ),
    ("", "hrtimer_nanosleep", "__x64_sys_clock_nanosleep common_nsleep_timens hrtimer_nanosleep* do_nanosleep"),
    ("", "_do_fork", "__x64_sys_clone kernel_clone*"),
    ("task", "schedule", "exit_to_user_mode_prepare schedule __schedule*"),
    (
        "",
        "smp_apic_timer_interrupt",
        "asm_sysvec_apic_timer_interrupt sysvec_apic_timer_interrupt* asm_call_sysvec_on_stack __sysvec_apic_timer_interrupt",
    ),
    ("", "smp_reschedule_interrupt", "asm_sysvec_reschedule_ipi sysvec_reschedule_ipi*"),
    (
        "smp_apic_timer_interrupt",
        "__do_softirq",
        "irq_exit_rcu do_softirq_own_stack asm_call_sysvec_on_stack __do_softirq*",
    ),
    (
        "smp_reschedule_interrupt",
        "__do_softirq",
        "irq_exit_rcu do_softirq_own_stack asm_call_sysvec_on_stack __do_softirq*",
    ),
    ("", "idle_balance", "sched_balance_newidle*"),
];

/// From the sources of 5.15.135; which functions a compiler keeps was not looked at (v6.1's `poll_schedule_timeout`).
pub(super) const V5_15: &[Row] = &[
    ("", "idle_balance", "newidle_balance*"),
    ("", "cpumask_next_wrap", "_find_next_bit*"),
    ("dev_queue_xmit", "__do_softirq", "__local_bh_enable_ip do_softirq __do_softirq*"),
    ("", "alloc_page", "alloc_pages __alloc_pages*"),
    ("", "__free_pages_ok", "free_unref_page*"),
    ("", "ep_send_events", "ep_send_events*"),
    (
        "",
        "smp_apic_timer_interrupt",
        "asm_sysvec_apic_timer_interrupt sysvec_apic_timer_interrupt* __sysvec_apic_timer_interrupt",
    ),
    ("smp_apic_timer_interrupt", "__do_softirq", "irq_exit_rcu __do_softirq*"),
    ("smp_reschedule_interrupt", "__do_softirq", "irq_exit_rcu __do_softirq*"),
];

pub(super) const V6_1: &[Row] = &[
    ("", "sk_wmem_free_skb", "tcp_wmem_free_skb*"),
    (
        "sys_poll",
        "schedule",
        "poll_schedule_timeout schedule_hrtimeout_range schedule_hrtimeout_range_clock schedule __schedule*",
    ),
    (
        "",
        "blkdev_direct_IO",
        "blkdev_read_iter blkdev_direct_IO* __blkdev_direct_IO_simple blk_io_schedule io_schedule",
    ),
    ("", "futex_wait", "__x64_sys_futex do_futex futex_wait* futex_wait_queue"),
];

pub(super) const V6_6: &[Row] = &[("stopper", PREFIX, "ret_from_fork_asm ret_from_fork kthread smpboot_thread_fn")];

pub(super) const V6_12: &[Row] = &[
    ("", "alloc_page", "alloc_pages_noprof __alloc_pages_noprof*"),
    ("", "futex_wait", "__x64_sys_futex do_futex futex_wait* __futex_wait futex_wait_queue"),
    ("task", "schedule", "exit_to_user_mode_loop schedule __schedule*"),
    ("", "tick_sched_timer", "tick_nohz_handler* tick_sched_handle"),
    ("", "scheduler_tick", "sched_tick*"),
    ("", "__do_softirq", "handle_softirqs*"),
    ("dev_queue_xmit", "__do_softirq", "__local_bh_enable_ip do_softirq handle_softirqs*"),
    ("smp_apic_timer_interrupt", "__do_softirq", "irq_exit_rcu handle_softirqs*"),
    ("smp_reschedule_interrupt", "__do_softirq", "irq_exit_rcu handle_softirqs*"),
    ("", "run_rebalance_domains", "sched_balance_softirq*"),
    ("", "rebalance_domains", "sched_balance_domains*"),
    ("", "idle_balance", "sched_balance_newidle*"),
    ("", "load_balance", "sched_balance_rq*"),
    ("", "find_busiest_group", "sched_balance_find_src_group*"),
    ("", "find_busiest_queue", "sched_balance_find_src_rq*"),
    ("", "find_idlest_cpu", "sched_balance_find_dst_cpu*"),
    ("", "find_idlest_group", "sched_balance_find_dst_group*"),
    ("", "find_idlest_group_cpu", "sched_balance_find_dst_group_cpu*"),
    ("", "update_blocked_averages", "sched_balance_update_blocked_averages*"),
    ("", "trigger_load_balance", "sched_balance_trigger*"),
    ("", "check_preempt_wakeup", "check_preempt_wakeup_fair*"),
    ("", "check_preempt_curr_rt", "wakeup_preempt_rt*"),
    ("", "check_preempt_curr_dl", "wakeup_preempt_dl*"),
];

/// From the sources of 6.18.35.
pub(super) const V6_18: &[Row] = &[
    ("", "pipe_read", "anon_pipe_read*"),
    ("", "pipe_write", "anon_pipe_write*"),
    ("", "alloc_page", "alloc_pages_noprof alloc_frozen_pages_noprof __alloc_frozen_pages_noprof*"),
    ("", "__free_pages_ok", "free_frozen_pages*"),
    ("", "futex_wait", "__x64_sys_futex do_futex futex_wait* __futex_wait futex_do_wait"),
];

pub(super) const V7_2: &[Row] = &[
    ("task", "schedule", "__exit_to_user_mode_loop schedule __schedule*"),
    ("", "check_preempt_wakeup", "wakeup_preempt_fair*"),
    ("", "assign_cfs_rq_runtime", "__assign_cfs_rq_runtime*"),
    ("", "do_unlinkat", "filename_unlinkat*"),
    ("", "do_renameat2", "filename_renameat2*"),
];

/// `update_cfs_group()` is part of its callers there: what it calls for the group's weight (`cgroup_mode`) is a function of its
/// own, and reads `tg->load_avg`. That is the default mode's; the others' have other names.
pub(super) const V7_3: &[Row] = &[("", "update_cfs_shares", "calc_concur_shares*")];
