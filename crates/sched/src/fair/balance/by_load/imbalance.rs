//! fair.c: find_busiest_group(): whether there is an imbalance, and how much load to move against it.

use super::groups::{GroupType, SdLbStats, group_has_capacity_by_load};
use crate::arch::Arch;
use crate::core::Sched;
use crate::cpu_topology::SCHED_CAPACITY_SCALE;
use crate::fair::balance::{ForceBalance, LbEnv, LoadAboveCapacity, NothingToMove, PackingOrder, PackingPull};
use crate::topology::{CpuIdleType, SdFlags, SgId};
use fentry::fentry;

const SCALE: u64 = SCHED_CAPACITY_SCALE as u64;
/// The weight of nice 0 as users see it (`scale_load_down(NICE_0_LOAD)`).
const NICE_0_WEIGHT: u64 = 1024;

impl<A: Arch> Sched<A> {
    /// fair.c: check_asym_packing(). Whether all load of the busiest group is to move to this better placed CPU.
    fn check_asym_packing(&self, env: &mut LbEnv, sds: &SdLbStats) -> bool {
        if !self.domains[env.sd].flags.has(SdFlags::SD_ASYM_PACKING) || env.idle == CpuIdleType::NotIdle {
            return false;
        }
        let Some(busiest) = sds.busiest else { return false };
        let busiest_cpu = self.packing_cpu(busiest);
        let stays = match self.kernel.balance.asym_packing {
            PackingOrder::LowestCpu => env.dst_cpu > busiest_cpu,
            PackingOrder::Priority | PackingOrder::PriorityAndSiblings | PackingOrder::IdleCores => {
                self.sched_asym_prefer(busiest_cpu, env.dst_cpu)
            }
        };
        if stays {
            return false;
        }
        let busiest = &sds.busiest_stat;
        let load = match self.kernel.balance.packing_pull {
            // DIV_ROUND_CLOSEST().
            PackingPull::NewlyIdle => (busiest.avg_load * busiest.group_capacity + SCALE / 2) / SCALE,
            PackingPull::AnyIdle => busiest.group_load,
        };
        env.imbalance = load as i64;
        true
    }

    /// fair.c: find_busiest_group(). `None` if there is nothing to pull; otherwise sets the load to move.
    #[fentry(find_busiest_group)]
    pub(in crate::fair::balance) fn find_busiest_group_by_load(&mut self, env: &mut LbEnv) -> Option<SgId> {
        let mut sds = self.update_sd_lb_stats_by_load(env);
        self.classify_busiest(env, sds.busiest, sds.busiest_stat.sum_nr_running);
        if !self.is_rd_overutilized(env.dst_cpu) && !self.root_domain(env.dst_cpu).pd.is_empty() {
            env.imbalance = 0;
            return None;
        }
        if self.check_asym_packing(env, &sds) {
            return sds.busiest;
        }
        if sds.busiest.is_none() || sds.busiest_stat.sum_nr_running == 0 {
            env.imbalance = 0;
            return None;
        }
        sds.avg_load = SCALE * sds.total_load / sds.total_capacity;
        if !self.is_out_of_balance(env, &sds) {
            env.imbalance = 0;
            return None;
        }
        env.src_misfit = sds.busiest_stat.group_type == GroupType::MisfitTask;
        self.calculate_imbalance_by_load(env, &mut sds);
        let nothing = env.imbalance == 0 && self.kernel.balance.nothing_to_move == NothingToMove::Balanced;
        sds.busiest.filter(|_| !nothing)
    }

    /// find_busiest_group() between its two `goto`s: whether to compute an imbalance at all.
    pub(in crate::fair::balance) fn is_out_of_balance(&self, env: &LbEnv, sds: &SdLbStats) -> bool {
        let (local, busiest) = (&sds.local_stat, &sds.busiest_stat);
        let imbalance_pct = self.domains[env.sd].imbalance_pct;
        // Averages say nothing about a group whose tasks are pinned.
        if busiest.group_type == GroupType::Imbalanced {
            return true;
        }
        let force = match self.kernel.balance.force_balance {
            ForceBalance::NewlyIdle => env.idle == CpuIdleType::NewlyIdle,
            ForceBalance::AnyIdle => env.idle != CpuIdleType::NotIdle,
        };
        if force && group_has_capacity_by_load(imbalance_pct, local) && busiest.group_no_capacity {
            return true;
        }
        if busiest.group_type == GroupType::MisfitTask {
            return true;
        }
        if local.avg_load >= busiest.avg_load || local.avg_load >= sds.avg_load {
            return false;
        }
        if env.idle == CpuIdleType::Idle {
            // A difference of one idle CPU is no imbalance: moving a task would only swap the groups.
            busiest.group_type == GroupType::Overloaded || local.idle_cpus > busiest.idle_cpus + 1
        } else {
            100 * busiest.avg_load > u64::from(imbalance_pct) * local.avg_load
        }
    }

    /// fair.c: calculate_imbalance(). The load to move, into `env.imbalance`.
    pub(in crate::fair::balance) fn calculate_imbalance_by_load(&mut self, env: &mut LbEnv, sds: &mut SdLbStats) {
        if sds.busiest_stat.group_type == GroupType::Imbalanced {
            sds.busiest_stat.load_per_task = sds.busiest_stat.load_per_task.min(sds.avg_load);
        }
        let (local, busiest) = (&sds.local_stat, &sds.busiest_stat);
        let misfit = busiest.group_type == GroupType::MisfitTask;
        if !misfit && (busiest.avg_load <= sds.avg_load || local.avg_load >= sds.avg_load) {
            env.imbalance = 0;
            return self.fix_small_imbalance(env, sds);
        }
        // If no CPU is idle, none is to become idle: only what exceeds the capacity may move.
        let mut load_above_capacity = u64::MAX;
        if busiest.group_type == GroupType::Overloaded && local.group_type == GroupType::Overloaded {
            let tasks = u64::from(busiest.sum_nr_running) * SCALE;
            if tasks > busiest.group_capacity {
                let above = tasks - busiest.group_capacity;
                load_above_capacity = match self.kernel.balance.above_capacity {
                    LoadAboveCapacity::Capacity => above,
                    LoadAboveCapacity::Load => above * NICE_0_WEIGHT / busiest.group_capacity,
                };
            }
        }
        // The busiest group must not fall below the average, nor the local one rise above it.
        // For a misfit task's sake it may be so already: then these differences wrap.
        let max_pull = busiest.avg_load.wrapping_sub(sds.avg_load).min(load_above_capacity);
        let from_busiest = max_pull.wrapping_mul(busiest.group_capacity);
        let to_local = sds.avg_load.wrapping_sub(local.avg_load).wrapping_mul(local.group_capacity);
        env.imbalance = (from_busiest.min(to_local) / SCALE) as i64;
        if misfit {
            env.imbalance = env.imbalance.max(busiest.group_misfit_task_load as i64);
        }
        if (env.imbalance as u64) < busiest.load_per_task {
            self.fix_small_imbalance(env, sds);
        }
    }

    /// fair.c: fix_small_imbalance(). Whether to move one task although it is more than the imbalance.
    pub(in crate::fair::balance) fn fix_small_imbalance(&mut self, env: &mut LbEnv, sds: &mut SdLbStats) {
        let mut imbn = 2;
        if sds.local_stat.sum_nr_running == 0 {
            sds.local_stat.load_per_task = self.cpu_avg_load_per_task(env.dst_cpu);
        } else if sds.busiest_stat.load_per_task > sds.local_stat.load_per_task {
            imbn = 1;
        }
        let (local, busiest) = (&sds.local_stat, &sds.busiest_stat);
        let scaled_busy_load_per_task = busiest.load_per_task * SCALE / busiest.group_capacity;
        if busiest.avg_load + scaled_busy_load_per_task >= local.avg_load + scaled_busy_load_per_task * imbn {
            env.imbalance = busiest.load_per_task as i64;
            return;
        }

        // The imbalance is too small for that, but a move may still put more capacity to use.
        let capa_now = busiest.group_capacity * busiest.load_per_task.min(busiest.avg_load)
            + local.group_capacity * local.load_per_task.min(local.avg_load);
        let mut capa_move = 0;
        if busiest.avg_load > scaled_busy_load_per_task {
            let left = busiest.avg_load - scaled_busy_load_per_task;
            capa_move += busiest.group_capacity * busiest.load_per_task.min(left);
        }
        let moved = (busiest.avg_load * busiest.group_capacity).min(busiest.load_per_task * SCALE);
        let arriving = moved / local.group_capacity;
        capa_move += local.group_capacity * local.load_per_task.min(local.avg_load + arriving);
        if capa_move / SCALE > capa_now / SCALE {
            env.imbalance = busiest.load_per_task as i64;
        }
    }
}
