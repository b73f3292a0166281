//! The functions whose time is charged, by number. The machine decides what they cost.

/// A kernel function whose time is charged and shows in profiles. Numbers from [`Path::FIRST_OS`] on belong to `os`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Path(pub u16);

macro_rules! paths {
    ($( $name:ident )+) => {
        #[allow(non_camel_case_types, clippy::upper_case_acronyms)]
        #[repr(u16)]
        enum Number { $( $name, )+ }

        #[allow(non_upper_case_globals)]
        impl Path {
            $( pub const $name: Path = Path(Number::$name as u16); )+
            /// The scheduler's own functions, by number.
            pub const NAMES: &'static [&'static str] = &[ $( stringify!($name), )+ ];
        }
    };
}

paths! {
    sched_clock_cpu update_rq_clock idle_cpu
    try_to_wake_up ttwu_queue ttwu_queue_remote ttwu_do_activate ttwu_do_wakeup ttwu_stat sched_ttwu_pending scheduler_ipi
    select_task_rq_fair wake_wide wake_affine wake_affine_idle wake_affine_weight effective_load wake_cap record_wakee
    select_idle_sibling select_idle_core select_idle_cpu select_idle_smt __update_idle_core find_idlest_cpu find_idlest_group find_idlest_group_cpu
    task_waking_fair migrate_task_rq_fair set_task_cpu
    activate_task deactivate_task enqueue_task_fair dequeue_task_fair enqueue_entity dequeue_entity
    enqueue_entity_load_avg update_load_avg
    attach_entity_load_avg detach_entity_load_avg remove_entity_load_avg
    update_cfs_shares update_curr
    update_stats_wait_start update_stats_wait_end update_stats_dequeue enqueue_sleeper
    sched_info_arrive sched_info_depart cpuacct_charge
    check_preempt_wakeup resched_curr
    schedule pick_next_task pick_next_task_fair pick_next_task_idle pick_next_entity set_next_entity put_prev_entity put_prev_task_fair
    context_switch switch_mm switch_to finish_task_switch
    sched_yield yield_task_fair
    scheduler_tick task_tick_fair entity_tick check_preempt_tick update_cpu_load calc_global_load_tick
    trigger_load_balance nohz_balancer_kick nohz_balance_enter_idle nohz_balance_exit_idle set_cpu_sd_state_busy set_cpu_sd_state_idle
    run_rebalance_domains rebalance_domains nohz_idle_balance idle_balance load_balance find_busiest_group
    update_sd_lb_stats update_sg_lb_stats update_group_capacity find_busiest_queue detach_tasks can_migrate_task attach_tasks
    update_blocked_averages task_h_load active_load_balance_cpu_stop stop_one_cpu
    sched_fork task_fork_fair wake_up_new_task do_exit sched_move_task sched_setscheduler set_cpus_allowed_ptr
    hrtimer_start_range_ns hrtimer_try_to_cancel
    __account_cfs_rq_runtime assign_cfs_rq_runtime __return_cfs_rq_runtime throttle_cfs_rq unthrottle_cfs_rq
    sched_cfs_period_timer sched_cfs_slack_timer distribute_cfs_runtime __cfsb_csd_unthrottle
    select_idle_capacity find_energy_efficient_cpu
    enqueue_task_rt dequeue_task_rt yield_task_rt update_curr_rt check_preempt_curr_rt pick_next_task_rt put_prev_task_rt
    task_tick_rt select_task_rq_rt find_lowest_rq push_rt_task pull_rt_task cpupri_find cpupri_set sched_rt_period_timer
    enqueue_task_dl dequeue_task_dl yield_task_dl update_curr_dl check_preempt_curr_dl pick_next_task_dl put_prev_task_dl
    task_tick_dl select_task_rq_dl find_later_rq push_dl_task pull_dl_task cpudl_find cpudl_set start_dl_timer dl_task_timer
    inactive_task_timer dl_server_timer
    psi_task_change psi_task_switch psi_group_change
    sched_tick_remote
    pick_eevdf place_entity avg_vruntime update_entity_lag update_deadline requeue_delayed_entity util_est_update
    nohz_run_idle_balance flush_smp_call_function_queue dl_server_start dl_server_stop update_curr_dl_se
    __account_scheduler_latency
    task_numa_work task_numa_fault task_numa_placement task_numa_migrate update_numa_stats task_numa_compare sched_setnuma
    cpufreq_update_util sugov_update sugov_get_util get_next_freq sugov_update_next_freq
    sugov_deferred_update sugov_irq_work sugov_work
    irq_work_queue dbs_irq_work __cpufreq_driver_target
    account_mm_sched task_tick_cache task_cache_work fraction_mm_sched
    cpumask_next_wrap
}

impl Path {
    /// The first number that `os` may give to a function of the rest of the kernel.
    pub const FIRST_OS: u16 = 256;
}
