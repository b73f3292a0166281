//! Machines whose CPUs differ in capacity: what fits, the search by capacity, and energy-aware placement.

use super::*;
use crate::attr::{ClampRequest, SchedAttr};
use crate::core::ClampId;
use crate::cpu_topology::{EmPerfDomain, EmState, EnergyModel};
use crate::errno::Errno;
use crate::fair::fit::{Fits, Needs};
use crate::scheduler::Scheduler;
use crate::sysctl::Tunable;

const KERNELS: [Kernel; 4] = [V6_1, V6_6, V6_12, V6_18];

/// Four little CPUs, 0 to 3, of capacity 400 and four big ones, all in one LLC. A made-up machine: at 500, 1000 and
/// 2000 MHz a little one draws 50, 120 and 400 mW, at 1000, 2000 and 3000 MHz a big one 300, 800 and 2000 mW.
fn big_little() -> CpuTopology {
    let domain = |cpus: std::ops::Range<usize>, states: [(u64, u64); 3]| EmPerfDomain {
        cpus: cpus.map(CpuId::new).collect(),
        states: states.iter().map(|&(mhz, mw)| EmState { frequency_khz: mhz * 1000, power_uw: mw * 1000 }).collect(),
    };
    let mut topology = CpuTopology::symmetric(1, 1, 1, 8, 1);
    for little in 0..4 {
        topology.capacity[cpu(little)] = 400;
    }
    let domains = vec![
        domain(0..4, [(500, 50), (1000, 120), (2000, 400)]),
        domain(4..8, [(1000, 300), (2000, 800), (3000, 2000)]),
    ];
    topology.energy_model = Some(EnergyModel { domains, schedutil: true });
    topology
}

fn without_energy_model(kernel: Kernel) -> Machine {
    Machine::new(kernel, CpuTopology { energy_model: None, ..big_little() })
}

impl Machine {
    /// A sleeper of that utilization, which is a part of its CPU's, and which never waited.
    fn sleeper_of(&mut self, on: usize, util: u64) -> TaskId {
        let p = self.sleeper(on);
        let avg = self.avg(p);
        (avg.util_avg, avg.runnable_avg) = (util, util);
        self.root_avg(on).util_avg += util;
        p
    }

    fn util(&mut self, cpus: &[usize], util: u64) {
        for &on in cpus {
            self.root_avg(on).util_avg += util;
        }
    }

    fn clamp(&mut self, p: TaskId, min: u32, max: u32) {
        let (min, max) = (ClampRequest::Set(min), ClampRequest::Set(max));
        self.0.sched_setattr(p, &SchedAttr::clamps(min, max)).expect("sound clamps");
    }
}

#[test]
fn what_fits_follows_utilization_capacity_and_clamps() {
    let mut m = without_energy_model(V6_1);
    let fits = |m: &Machine, util, uclamp_min, uclamp_max, on| {
        m.util_fits_cpu(Needs { util, uclamp_min, uclamp_max }, cpu(on))
    };
    // 319 * 1280 < 400 * 1024.
    assert_eq!((fits(&m, 319, 0, 1024, 0), fits(&m, 320, 0, 1024, 0)), (Fits::Yes, Fits::No));
    assert_eq!(fits(&m, 700, 0, 300, 0), Fits::No, "clamps do not count until somebody asks for one");
    let p = m.sleeper(0);
    m.clamp(p, 0, 1024);
    assert_eq!(fits(&m, 700, 0, 300, 0), Fits::Yes, "capped below the CPU's capacity");
    assert_eq!(fits(&m, 700, 0, 401, 0), Fits::No);
    assert_eq!(fits(&m, 1000, 0, 1024, 4), Fits::No, "the biggest CPU can be too small");
    assert_eq!(fits(&m, 1000, 0, 1023, 4), Fits::Yes);
    assert_eq!((fits(&m, 100, 400, 1024, 0), fits(&m, 100, 401, 1024, 0)), (Fits::Yes, Fits::ButClamp));
    assert_eq!(fits(&m, 100, 700, 300, 0), Fits::Yes, "an upper clamp below the lower one counts for both");
    m.rq[cpu(0)].cpu_capacity = 200;
    assert_eq!(fits(&m, 200, 0, 1024, 0), Fits::No, "what others take is gone");
    assert_eq!(fits(&m, 100, 400, 1024, 0), Fits::Yes, "but not from what the clamp asks for");
    let mut m = without_energy_model(V5_4);
    let p = m.sleeper(0);
    m.clamp(p, 0, 300);
    assert_eq!(fits(&m, 319, 1024, 1024, 0), Fits::Yes, "v5.4: clamps are for frequencies");
    assert_eq!(fits(&m, 700, 0, 300, 0), Fits::No, "v5.4");
}

#[test]
fn the_search_wants_the_first_idle_cpu_that_fits() {
    for kernel in KERNELS {
        // From CPU 2 on.
        let chosen = |util, busy: &[usize]| {
            let mut m = without_energy_model(kernel);
            m.run(2);
            m.busy(busy);
            let p = m.sleeper_of(2, util);
            m.select(2, p, true)
        };
        assert_eq!((chosen(319, &[]), chosen(320, &[])), (3, 4), "{}", kernel.name);
        assert_eq!(chosen(320, &[4, 5]), 6, "{}", kernel.name);
        assert_eq!(chosen(320, &[4, 5, 6, 7]), 3, "{}: none fits, the first of the biggest idle ones", kernel.name);
        assert_eq!(chosen(320, &[0, 1, 3, 4, 5, 6, 7]), 2, "{}: none is idle", kernel.name);
        assert_eq!(chosen(900, &[]), 4, "{}: fits nowhere, so the biggest", kernel.name);
    }
    let mut m = without_energy_model(with(V6_1, "wake.asym_idle", "unseen"));
    m.run(2);
    let p = m.sleeper_of(2, 700);
    assert_eq!(m.select(2, p, true), 3);
}

#[test]
fn an_idle_cpu_that_is_too_small_is_no_choice() {
    for kernel in KERNELS {
        // The previous CPU, the target, the recently used one: each idle.
        let chosen = |waker: (usize, bool), prev, recent, util| {
            let mut m = without_energy_model(kernel);
            if waker.1 {
                m.run(waker.0);
            }
            let p = m.sleeper_of(prev, util);
            m.task[p].recent_used_cpu = cpu(recent);
            m.select(waker.0, p, false)
        };
        assert_eq!((chosen((4, true), 1, 1, 300), chosen((4, true), 1, 1, 500)), (1, 5), "{}", kernel.name);
        assert_eq!((chosen((1, false), 1, 1, 300), chosen((1, false), 1, 1, 500)), (1, 4), "{}", kernel.name);
        assert_eq!(chosen((1, false), 1, 6, 500), 6, "{}: the recently used one is big", kernel.name);
        assert_eq!(chosen((1, false), 1, 3, 500), 4, "{}: and this one little", kernel.name);
    }
}

#[test]
fn clamps_move_a_task_between_little_and_big() {
    for kernel in KERNELS {
        let chosen = |util, clamps| {
            let mut m = without_energy_model(kernel);
            m.run(2);
            let p = m.sleeper_of(2, util);
            if let Some((min, max)) = clamps {
                m.clamp(p, min, max);
            }
            m.select(2, p, true)
        };
        assert_eq!(chosen(100, None), 3, "{}", kernel.name);
        assert_eq!(chosen(100, Some((500, 1024))), 4, "{}: it wants more than a little CPU has", kernel.name);
        assert_eq!(chosen(700, None), 4, "{}", kernel.name);
        assert_eq!(chosen(700, Some((0, 300))), 3, "{}: it is not to have more", kernel.name);
    }
}

#[test]
fn energy_awareness_can_be_written_where_the_kernel_could_reckon_with_it() {
    let write = |kernel: Kernel, change: &dyn Fn(&mut CpuTopology)| {
        let mut topology = big_little();
        change(&mut topology);
        let answer = Machine::new(kernel, topology).sysctl_write(Tunable::sched_energy_aware, 0);
        answer.map_err(|refusal| (refusal.errno, refusal.why))
    };
    let powersave = |t: &mut CpuTopology| t.energy_model.as_mut().unwrap().schedutil = false;
    let alike = |t: &mut CpuTopology| t.capacity = PerCpu::from_fn(8, |_| 1024);
    let refused = |why| Err((Errno::EOPNOTSUPP, why));
    assert_eq!(write(V6_12, &|_| ()), Ok(()));
    assert_eq!(write(V6_12, &powersave), refused("the frequency governor is not schedutil"));
    assert_eq!(write(V6_12, &alike), refused("no domain has CPUs of different capacity"));
    assert_eq!(write(V6_12, &|t| t.energy_model = None), refused("the machine has no energy model"));
    let unknown = with(V6_12, "load.frequency", "unknown");
    assert_eq!(write(unknown, &|_| ()), refused("load tracking does not know the frequency that CPUs run at"));
    assert_eq!((write(V6_1, &powersave), write(V6_1, &alike)), (Ok(()), Ok(())), "v6.1 does not ask");
}

#[test]
fn energy_is_reckoned_with_where_everything_is_there_for_it() {
    let enabled = |kernel: Kernel, change: &dyn Fn(&mut CpuTopology)| {
        let mut topology = big_little();
        change(&mut topology);
        Machine::new(kernel, topology).sched_energy_enabled()
    };
    for kernel in KERNELS {
        assert!(enabled(kernel, &|_| ()), "{}", kernel.name);
        assert!(!enabled(kernel, &|t| t.energy_model = None));
        assert!(!enabled(kernel, &|t| t.energy_model.as_mut().unwrap().schedutil = false), "another governor");
        assert!(!enabled(kernel, &|t| t.capacity = PerCpu::from_fn(8, |_| 1024)), "all alike");
        assert!(!enabled(kernel, &|t| drop(t.energy_model.as_mut().unwrap().domains.pop())), "CPUs nobody knows of");
        assert!(!enabled(with(kernel, "wake.energy", "absent"), &|_| ()));
        assert!(!enabled(with(kernel, "load.frequency", "unknown"), &|_| ()), "utilization must know frequencies");
        let threads = |t: &mut CpuTopology| {
            for on in 4..8 {
                let core = mask(&[on & !1, on | 1]);
                (t.smt[cpu(on)], t.cluster[cpu(on)]) = (core.clone(), core);
            }
        };
        assert!(!enabled(kernel, &threads), "threads share a core's energy");
        let sysctl = Sysctl { sched_energy_aware: 0, ..Sysctl::new(8) };
        let boot = Boot { sysctl, ..Boot::new(kernel, big_little(), 250) };
        assert!(!Sched::new(Hand::default(), boot).sched_energy_enabled());
    }
    assert!(!enabled(V4_16, &|_| ()));
    assert!(!enabled(with(V4_16, "wake.energy", "by-performance"), &|_| ()), "v4.16 sees no unequal CPUs");
}

#[test]
fn v5_4_reckons_with_energy_where_cores_have_threads() {
    let mut topology = big_little();
    for on in 4..8 {
        let core = mask(&[on & !1, on | 1]);
        (topology.smt[cpu(on)], topology.cluster[cpu(on)]) = (core.clone(), core);
    }
    let enabled = |kernel| Machine::new(kernel, topology.clone()).sched_energy_enabled();
    assert_eq!([V5_4, V5_10].map(enabled), [true, false]);
}

#[test]
fn a_small_task_goes_where_it_costs_least() {
    for kernel in KERNELS {
        // 60 on a big CPU costs 900 mW * 60 / 1024 = 52.7; on a little one 200 mW * 60 / 400 = 30. By performance, a
        // unit costs 8797 and 5000.
        let mut m = Machine::new(kernel, big_little());
        m.run(4);
        let p = m.sleeper_of(5, 60);
        assert_eq!(m.select(4, p, false), 0, "{}", kernel.name);
        // Too large for a little CPU: it stays on its previous CPU, because no other costs less.
        let p = m.sleeper_of(5, 320);
        assert_eq!(m.select(4, p, false), 5, "{}", kernel.name);
        // Of the little CPUs, the one with the most spare capacity.
        let mut m = Machine::new(kernel, big_little());
        m.util(&[0, 1, 3], 10);
        let p = m.sleeper_of(6, 60);
        assert_eq!(m.select(4, p, false), 2, "{}", kernel.name);
        // Its utilization is not known yet.
        let p = m.sleeper_of(6, 0);
        assert_eq!(m.select(4, p, false), 6, "{}", kernel.name);
        // It may not run there.
        let p = m.sleeper_of(6, 60);
        m.allow(p, &[1, 5, 6, 7]);
        assert_eq!(m.select(4, p, false), 1, "{}", kernel.name);
    }
}

#[test]
fn v5_10_leaves_only_for_a_sixteenth_of_what_all_domains_use() {
    let chosen = |kernel, busy: u64| {
        let mut m = Machine::new(kernel, big_little());
        m.util(&[4, 6, 7], busy);
        let p = m.sleeper_of(5, 60);
        m.select(4, p, false)
    };
    // 60 on a little CPU cost 30. On a big one beside idle ones 52.7, as above; beside others that do 500 each, at 2000 MHz, 1200 mW *
    // 60 / 1024 = 70, and they use 1757. A sixteenth of both is 114: more than the 40 that a little CPU would save.
    assert_eq!([V5_4, V5_10, V5_15, V6_1].map(|kernel| chosen(kernel, 0)), [0, 0, 0, 0]);
    assert_eq!([V5_4, V5_10, V5_15, V6_1].map(|kernel| chosen(kernel, 500)), [5, 5, 5, 0]);
    // The previous CPU takes part in the search for the most spare capacity of its domain, so no other one there is asked. A sixteenth
    // counts only against a previous CPU that fits.
    let mut m = Machine::new(V5_10, big_little());
    m.util(&[4, 6, 7], 500);
    let p = m.sleeper_of(5, 60);
    m.allow(p, &[1, 4]);
    assert_eq!(m.select(4, p, false), 1);
}

#[test]
fn what_a_task_adds_is_its_estimate_since_v5_15() {
    // It has slept for long: 5 is left of the 60 that it reached. Its previous CPU, a big one, has other sleepers with 100. With what is
    // left it costs nearly nothing there, with its estimate 52.7, and 30 on a little CPU.
    for (kernel, expect) in [(V5_10, 5), (V5_15, 0), (V6_1, 0)] {
        let mut m = Machine::new(kernel, big_little());
        m.util(&[5], 100);
        let p = m.sleeper_of(5, 5);
        m.avg(p).util_est.enqueued = 60;
        m.run(4);
        assert_eq!(m.select(4, p, false), expect, "{}", kernel.name);
    }
}

#[test]
fn a_task_that_would_raise_its_neighbours_frequency_goes_elsewhere() {
    for kernel in KERNELS {
        // The little CPUs do 150 each, at 1000 MHz (150 * 5/4 = 187 of 200): 240 mW * 600 / 400 = 360. With 60 more on
        // one of them, 262 of 400 are needed: 400 mW * 660 / 400 = 660. A big CPU costs 52.7.
        let mut m = Machine::new(kernel, big_little());
        m.util(&[0, 1, 2, 3], 150);
        let p = m.sleeper_of(0, 60);
        assert_eq!(m.select(0, p, false), 4, "{}", kernel.name);
        // At 20 each there is room at 500 MHz.
        let mut m = Machine::new(kernel, big_little());
        m.util(&[0, 1, 2, 3], 20);
        let p = m.sleeper_of(5, 60);
        assert_eq!(m.select(0, p, false), 0, "{}", kernel.name);
    }
}

#[test]
fn waiting_counts_since_v6_5() {
    // As before, but tasks of the little CPUs wait: 300 runnable. Then they already run at 2000 MHz, where a unit costs
    // 10000, while it costs 8797 on a big CPU.
    for (kernel, expect) in [(V6_1, 0), (V6_6, 5), (V6_12, 5), (V6_18, 5)] {
        let mut m = Machine::new(kernel, big_little());
        m.util(&[0, 1, 2, 3], 20);
        for on in 0..4 {
            m.root_avg(on).runnable_avg = 300;
        }
        let p = m.sleeper_of(5, 60);
        assert_eq!(m.select(4, p, false), expect, "{}", kernel.name);
    }
    // If the task itself waited, v6.6 does not see that: 80 on a little CPU are done at 500 MHz for 200 mW * 140 / 400 - 40 = 30, and 60 on
    // a big one cost 52.7. To v6.12 it needs more than 200 of a little CPU, 400 mW * 140 / 400 - 40 = 100, and more than 341 of a big one,
    // 1200 mW * 60 / 1024 = 70.
    for (kernel, expect) in [(V6_1, 0), (V6_6, 0), (V6_12, 5), (V6_18, 0), (V7_2, 5)] {
        let mut m = Machine::new(kernel, big_little());
        m.util(&[0, 1, 2, 3], 20);
        let p = m.sleeper_of(5, 60);
        m.avg(p).runnable_avg = 300;
        assert_eq!(m.select(4, p, false), expect, "{}", kernel.name);
    }
}

#[test]
fn clamps_count_in_fit_and_in_frequency() {
    for kernel in KERNELS {
        let chosen = |util, min, max| {
            let mut m = Machine::new(kernel, big_little());
            let p = m.sleeper_of(5, util);
            m.clamp(p, min, max);
            m.select(4, p, false)
        };
        assert_eq!(chosen(60, 0, 1024), 0, "{}", kernel.name);
        assert_eq!(chosen(60, 500, 1024), 5, "{}: a little CPU is too slow for it", kernel.name);
        assert_eq!(chosen(600, 0, 100), 0, "{}: it is to be slow", kernel.name);
    }
    // 60 at a lower clamp of 300 asks for 2000 MHz of a little CPU, and there is another task of 20 on each: 400 mW *
    // 140 / 400 - 200 mW * 80 / 400 = 100; on a big one 1200 mW * 60 / 1024 = 70.
    let mut m = Machine::new(V6_1, big_little());
    m.util(&[0, 1, 2, 3], 20);
    let p = m.sleeper_of(5, 60);
    m.clamp(p, 300, 1024);
    assert_eq!((m.select(4, p, false), m.uclamp_eff_value(p, ClampId::Min)), (5, 300));
}

#[test]
fn once_a_cpu_is_overutilized_energy_is_no_matter() {
    for kernel in KERNELS {
        let mut m = Machine::new(kernel, big_little());
        m.run(4);
        let p = m.sleeper_of(5, 60);
        // 319 fits on CPU 1, 320 does not.
        for (util, overutilized) in [(319, false), (320, true)] {
            m.root_avg(1).util_avg = util;
            m.check_update_overutilized_status(cpu(1));
            assert_eq!(m.is_rd_overutilized(cpu(7)), overutilized, "{}: {util}", kernel.name);
        }
        assert_eq!(m.select(4, p, false), 5, "{}: its previous CPU is idle", kernel.name);
        // A queue whose upper clamp caps it does not overutilize its CPU.
        let mut m = Machine::new(kernel, big_little());
        let q = m.sleeper(1);
        m.clamp(q, 0, 200);
        m.0.this_cpu = cpu(1);
        m.allow(q, &[1]);
        assert!(m.0.wake(cpu(1), q, WakeFlags::NONE));
        m.root_avg(1).util_avg = 390;
        m.check_update_overutilized_status(cpu(1));
        assert!(!m.is_rd_overutilized(cpu(1)), "{}", kernel.name);
    }
    assert!(without_energy_model(V6_1).is_rd_overutilized(cpu(0)), "where energy is no matter at all");
}

/// Two little and two big cores of two threads each, 0-1, 2-3, and 4-5, 6-7, in one LLC.
fn big_little_with_threads(kernel: Kernel) -> Machine {
    let mut topology = CpuTopology { energy_model: None, ..big_little() };
    for on in 0..8 {
        let core = mask(&[on & !1, on | 1]);
        (topology.smt[cpu(on)], topology.cluster[cpu(on)]) = (core.clone(), core);
    }
    Machine::new(kernel, topology)
}

#[test]
fn a_whole_core_goes_before_one_that_is_big_enough() {
    // From CPU 2 on; the task only fits on big CPUs. Also busy are one or more threads.
    let chosen = |kernel: Kernel, known: bool, busy: &[usize]| {
        let mut m = big_little_with_threads(kernel);
        m.run(2);
        m.busy(busy);
        let shared = m.domains.sd_balance_shared[cpu(2)].expect("the cache's");
        m.domains[shared].has_idle_cores = known;
        let p = m.sleeper_of(2, 500);
        (m.select(2, p, true), m.has_idle_cores(2))
    };
    assert_eq!(chosen(V6_12, true, &[4]), (5, true), "the first idle CPU that fits");
    assert_eq!(chosen(V7_2, true, &[4]), (6, true), "the first idle core that fits");
    assert_eq!(chosen(V7_2, true, &[4, 6]), (0, true), "an idle core, though too small");
    assert_eq!(chosen(V7_2, true, &[0, 4, 6]), (5, false), "none: an idle CPU that fits, and it is noted");
    assert_eq!(chosen(V7_2, true, &[0, 4, 5, 6, 7]), (3, false), "nor that: the first of equals");
    assert_eq!(chosen(V7_2, false, &[4]), (5, false), "no core is known of, so none is sought");
}

#[test]
fn the_search_by_capacity_is_no_longer_than_use_leaves_likely() {
    // From CPU 2 on, without success, because 4 CPUs fit and are busy: the biggest of the idle CPUs looked at.
    let chosen = |kernel: Kernel, nr: u32, util: bool| {
        let mut m = without_energy_model(kernel);
        m.features.set(Feature::SIS_UTIL, util);
        m.run(2);
        let shared = m.domains.sd_balance_shared[cpu(2)].expect("the cache's");
        m.domains[shared].nr_idle_scan = nr;
        let p = m.sleeper_of(2, 500);
        m.select(2, p, true)
    };
    assert_eq!((chosen(V6_12, 0, true), chosen(V6_12, 2, true)), (4, 4));
    assert_eq!((chosen(V7_2, 3, true), chosen(V7_2, 2, true)), (4, 3), "CPUs 2, 3 and 4");
    assert_eq!((chosen(V7_2, 0, true), chosen(V7_2, 0, false)), (2, 4), "none at all");
}

#[test]
fn a_cpu_beside_a_busy_thread_fits_nobody() {
    // The previous CPU is idle, its sibling busy; so is the target, CPU 0.
    for (kernel, known, expect) in [(V6_12, true, 5), (V7_2, true, 2), (V7_2, false, 1)] {
        let mut m = big_little_with_threads(kernel);
        m.busy(&[0, 4]);
        let shared = m.domains.sd_balance_shared[cpu(0)].expect("the cache's");
        m.domains[shared].has_idle_cores = known;
        let p = m.sleeper_of(5, 100);
        assert_eq!(m.select(0, p, true), expect, "{}", kernel.name);
    }
}
