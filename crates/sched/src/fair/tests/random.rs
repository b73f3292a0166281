//! Sums and positions that must always hold, under random lives of tasks and groups.

use super::*;
use crate::behaviour::Rules;
use crate::fair::rules::Pick;
use crate::pelt::Pelt;
use units::Prng;

/// Everything that can be summed up from the entities must agree with what the queues hold.
fn check(s: &Sched<Hand>) {
    let mut weight = vec![0; s.cfs_rq.len()];
    let mut runnable_weight = vec![0; s.cfs_rq.len()];
    let mut queued = vec![0; s.cfs_rq.len()];
    let mut tasks_below = vec![0; s.cfs_rq.len()];
    let mut idle = vec![0; s.cfs_rq.len()];
    let mut idle_below = vec![0; s.cfs_rq.len()];
    let mut delayed_below = vec![0; s.cfs_rq.len()];
    for (id, se) in s.se.iter() {
        let (flat, cfs) = (s.kernel.picks_flat(), &s.cfs_rq[s.competes_on(id)]);
        assert_eq!(se.in_timeline, cfs.tasks_timeline.iter().any(|e| e == id), "{id:?}");
        if !se.on_rq {
            continue;
        }
        let curr = s.competing_curr(s.competes_on(id));
        let competes = se.task.is_some() || !flat;
        assert_eq!(se.in_timeline, competes && curr != Some(id), "{id:?} runs or waits");
        assert_eq!(se.depth, se.parent.map_or(0, |parent| s.se[parent].depth + 1));
        weight[se.cfs_rq.index()] += se.load.weight;
        runnable_weight[se.cfs_rq.index()] += se.runnable_weight;
        queued[se.cfs_rq.index()] += 1;
        idle[se.cfs_rq.index()] += u32::from(s.se_is_idle(id));
        if se.task.is_some() {
            let mut level = Some(id);
            let mut counts_idle = false;
            let delayed = u32::from(se.sched_delayed);
            while let Some(se) = level {
                delayed_below[s.se[se].cfs_rq.index()] += delayed;
                assert!(Some(se) == Some(id) || !s.se[se].sched_delayed, "a group with tasks is not delayed");
                counts_idle |= s.se_is_idle(se);
                idle_below[s.se[se].cfs_rq.index()] += u32::from(counts_idle);
                assert!(s.se[se].on_rq, "what is above a queued task is queued");
                tasks_below[s.se[se].cfs_rq.index()] += 1;
                level = s.se[se].parent;
            }
        }
    }
    let idle_task = s.task.iter().any(|(_, task)| task.policy == Policy::Idle);
    assert!(s.sched_idle_used || !idle_task && s.tg.iter().all(|(_, tg)| !tg.idle), "somebody is idle");
    for (id, cfs) in s.cfs_rq.iter() {
        let i = id.index();
        assert_eq!(
            (cfs.load.weight, cfs.nr_running, cfs.h_nr_running),
            (weight[i], queued[i], tasks_below[i]),
            "{id:?}"
        );
        if s.kernel.pelt != Pelt::RunnableAvg {
            assert_eq!(cfs.runnable_weight, runnable_weight[i], "{id:?}");
        }
        assert_eq!((cfs.idle_nr_running, cfs.idle_h_nr_running), (idle[i], idle_below[i]), "{id:?}");
        assert_eq!(cfs.h_nr_delayed, delayed_below[i], "{id:?}");
        assert!(cfs.nr_running == 0 || cfs.on_list, "{id:?} has load and is listed");
        let buddies = [cfs.next, cfs.last, cfs.skip];
        assert_eq!(cfs.buddies, buddies.iter().any(Option::is_some), "{id:?}");
        for buddy in buddies.into_iter().flatten() {
            assert!(s.se[buddy].on_rq && s.competes_on(buddy) == id, "{id:?} remembers {buddy:?}");
        }
        match s.kernel.entity.pick {
            Pick::Cfs => {
                let left = cfs.tasks_timeline.leftmost_vruntime();
                assert!(left.is_none_or(|left| left.wrapping_sub(cfs.min_vruntime) as i64 > -(1 << 40)));
            }
            Pick::Eevdf => super::eevdf::check_queue(s, id),
        }
    }
    check_cpus(s);
}

/// Checks what each CPU counts and lists.
fn check_cpus(s: &Sched<Hand>) {
    for (cpu, rq) in s.rq.iter() {
        let root = &s.cfs_rq[rq.cfs];
        assert_eq!((rq.load.weight, rq.nr_running), (root.load.weight, root.h_nr_running));
        let listed: Vec<TaskId> = rq.cfs_tasks.iter(&s.task).collect();
        assert_eq!(listed.len(), rq.nr_running as usize);
        assert!(listed.iter().all(|&p| s.task[p].cpu == cpu && s.se_of(p).on_rq));
        let leaves: Vec<CfsRqId> = rq.leaf_cfs_rq_list.iter(&s.cfs_rq).collect();
        assert!(leaves.iter().all(|&cfs| s.cfs_rq[cfs].on_list && s.cfs_rq[cfs].rq == cpu));
        assert_eq!(leaves.len(), s.cfs_rq.iter().filter(|(_, cfs)| cfs.on_list && cfs.rq == cpu).count());
        if s.kernel.load.leaf_list != crate::fair::group::LeafList::HeadOrTail {
            let place = |cfs: CfsRqId| leaves.iter().position(|&leaf| leaf == cfs);
            for &leaf in &leaves {
                let parent = s.tg[s.cfs_rq[leaf].tg].parent.map(|tg| s.tg[tg].cfs_rq[cpu.index()]);
                // A queue without load may leave the list before a child of it that is not right before it.
                assert!(
                    parent.and_then(place).is_none_or(|behind| behind > place(leaf).expect("it is listed")),
                    "children stand before their parents"
                );
            }
        }
    }
}

/// Does one random thing to one random task or CPU.
fn happen(s: &mut Sched<Hand>, random: &mut Prng, tasks: &mut Vec<TaskId>, groups: &mut Vec<TgId>) {
    let cpu = CpuId::new(random.below(s.nr_cpus() as u64) as usize);
    s.pass(random.below(2 * MS));
    let running = s.rq[cpu].curr;
    let group = groups[random.below(groups.len() as u64) as usize];
    let p = (!tasks.is_empty()).then(|| tasks[random.below(tasks.len() as u64) as usize]);
    match (random.below(12), p, running) {
        (0, ..) if tasks.len() < 24 => {
            let p = s.task_in(group, cpu, random.below(40) as i32 - 20);
            s.task[p].cpus_allowed = CpuMask::all(s.nr_cpus()).into();
            tasks.push(p);
        }
        (1, _, Some(_)) => {
            s.sleep(cpu);
        }
        (2, _, Some(_)) => {
            s.sleep_in(cpu, TaskState::Uninterruptible);
        }
        (3..=4, Some(p), _) if s.task[p].on_rq == OnRq::No => {
            // A wakeup that may change CPUs, as select_task_rq() would.
            s.on_cpu(cpu);
            s.task[p].state = TaskState::Waking;
            s.task_waking_fair(p);
            let migrated = s.task[p].cpu != cpu;
            s.set_task_cpu(p, cpu);
            let wakeup = QueueFlags { wakeup: true, waking: true, migrated, ..QueueFlags::default() };
            s.activate_task(cpu, p, wakeup);
            s.check_preempt_curr(cpu, p, WakeFlags::NONE);
            s.task[p].state = TaskState::Running;
        }
        (3..=4, Some(p), _) if s.se_of(p).sched_delayed => s.wake_from(cpu, p),
        (5, Some(p), _) if s.task[p].on_rq == OnRq::Queued && !s.task[p].on_cpu => s.move_queued_task(p, cpu),
        (6, Some(p), _) => s.set_user_nice(p, random.below(40) as i32 - 20),
        (7, Some(p), _) => s.sched_move_task(p, group),
        (8, Some(p), _) => {
            let policies = [Policy::Normal, Policy::Batch, Policy::Idle];
            s.set_policy(p, policies[random.below(3) as usize]);
        }
        (9, _, Some(p)) if random.below(4) == 0 => {
            s.on_cpu(cpu);
            s.exit_current();
            s.schedule(false);
            tasks.retain(|&other| other != p);
        }
        (10, ..) if groups.len() < 6 => {
            let name = format!("g{}", groups.len());
            groups.push(s.sched_create_group(group, &name, 2 + random.below(5_000)));
        }
        (11, _, Some(_)) if random.below(2) == 0 => {
            s.on_cpu(cpu);
            s.sched_yield();
            s.schedule(false);
        }
        (10, ..) if group != ROOT_TASK_GROUP => {
            let settable = s.kernel.entity.group_idle == crate::fair::rules::GroupIdle::Settable;
            if settable && random.below(3) == 0 {
                s.sched_group_set_idle(group, random.below(2) == 0);
            } else if !s.tg_is_idle(group) {
                s.sched_group_set_shares(group, 2 + random.below(9_000));
            }
        }
        _ => s.tick(cpu),
    }
}

#[test]
fn sums_and_places_hold_under_random_lives() {
    for &kernel in crate::versions::KERNELS {
        for seed in 0..6 {
            let mut random = Prng::stream(seed, "lives", 0);
            let mut s = machine(kernel, 3);
            let (mut tasks, mut groups) = (Vec::new(), vec![ROOT_TASK_GROUP]);
            for step in 0..3_000 {
                happen(&mut s, &mut random, &mut tasks, &mut groups);
                if step % 7 == 0 {
                    check(&s);
                }
            }
            check(&s);
        }
    }
}

#[test]
fn every_behaviour_can_be_switched_alone() {
    for &kernel in crate::versions::KERNELS {
        for setting in kernel.settings() {
            // Other tests cover how domains are built; nothing here depends on it.
            if setting.key.starts_with("sd_") || setting.key == "relax_domain_level" {
                continue;
            }
            for choice in setting.choices {
                let mut switched = kernel;
                switched.set(setting.key, choice.name);
                let mut random = Prng::stream(11, "switched", 0);
                let mut s = machine(switched, 2);
                let (mut tasks, mut groups) = (Vec::new(), vec![ROOT_TASK_GROUP]);
                for _ in 0..400 {
                    happen(&mut s, &mut random, &mut tasks, &mut groups);
                }
                check(&s);
            }
        }
    }
}
