//! The slow path since v5.5, which classifies groups by type.

use super::*;

const KERNELS: [Kernel; 4] = [V6_1, V6_6, V6_12, V6_18];

impl Machine {
    /// Uses all of a CPU's capacity, with tasks of that load.
    fn fully_busy(&mut self, on: usize, load: u64) {
        self.run(on);
        let avg = self.root_avg(on);
        (avg.load_avg, avg.util_avg) = (load, 1024);
    }

    fn allow_numa_imbalance(&mut self, tasks: u32) {
        for on in 0..self.nr_cpus() {
            let sd = self.domains.sd_numa[cpu(on)].expect("two nodes");
            self.domains[sd].imb_numa_nr = tasks;
        }
    }
}

#[test]
fn a_child_goes_where_most_cpus_idle() {
    for kernel in KERNELS {
        // Here 7 CPUs are idle, there 8. The first CPU there; its core and thread have no less to spare than the
        // others.
        let mut m = two_sockets(kernel);
        m.run(0);
        assert_eq!(m.fork_from(0, &[]), 4, "{}", kernel.name);
        // Two tasks on a node are no imbalance: then the first core here that is entirely idle.
        m.allow_numa_imbalance(2);
        assert_eq!(m.fork_from(0, &[]), 1, "{}", kernel.name);
        // A third one would be. Idle: 6 here, 8 there.
        m.run(1);
        assert_eq!(m.fork_from(0, &[]), 4, "{}", kernel.name);
    }
    // Not for a task that may use only one CPU here: none is idle here, two are there. To v6.6 all eight count: six are idle here.
    for (kernel, chosen) in [(V6_1, 4), (V6_6, 1), (V6_12, 4), (V6_18, 1), (V7_2, 4)] {
        let mut m = two_sockets(kernel);
        m.allow_numa_imbalance(2);
        m.busy(&[0, 1, 6, 7]);
        assert_eq!(m.fork_from(0, &[1, 4, 5]), chosen, "{}", kernel.name);
    }
}

#[test]
fn v5_10_keeps_a_child_on_its_node_while_a_cpu_idles_there() {
    let mut m = two_sockets(V5_10);
    m.busy(&[0, 1, 2, 3, 8, 9, 10]);
    assert_eq!(m.fork_from(0, &[]), 11, "the last idle one here, of nine");
    m.run(11);
    assert_eq!(m.fork_from(0, &[]), 4);
}

#[test]
fn of_equally_idle_groups_the_less_used_one() {
    for kernel in KERNELS {
        let mut m = uma(kernel);
        m.run(0);
        for (on, util) in [(1, 50), (2, 40), (3, 30), (4, 45), (5, 30), (6, 60), (7, 70)] {
            m.root_avg(on).util_avg = util;
        }
        assert_eq!(m.fork_from(0, &[]), 3, "{}: the first of two", kernel.name);
    }
}

#[test]
fn a_busy_machines_child_leaves_for_a_sixth_less_load() {
    for kernel in KERNELS {
        // Every CPU has a task. 100 * here > 117 * 900, and 900 < here + 174.
        let chosen = |here| {
            let mut m = uma(kernel);
            for on in 0..8 {
                m.fully_busy(on, if on == 3 { 900 } else { 1024 });
            }
            m.root_avg(0).load_avg = here;
            m.fork_from(0, &[])
        };
        assert_eq!((chosen(1053), chosen(1054)), (0, 3), "{}", kernel.name);
    }
}

#[test]
fn between_nodes_the_margin_counts_against_leaving() {
    for kernel in KERNELS {
        // 1000 there; 1000 + 174 < here.
        let leaves = |here| {
            let mut m = two_sockets(kernel);
            for on in 0..16 {
                m.fully_busy(on, if on % 8 < 4 { here } else { 1000 });
            }
            matches!(m.fork_from(0, &[]), 4..8 | 12..16)
        };
        assert!(!leaves(1174) && leaves(1175), "{}", kernel.name);
    }
}

#[test]
fn more_tasks_than_cpus_and_no_capacity_is_worse_than_busy() {
    for kernel in KERNELS {
        let mut m = uma(kernel);
        for on in 0..8 {
            m.fully_busy(on, 1024);
        }
        // CPU 0 has a second task and is overloaded. The others are busy, and CPU 1 is the first of equals.
        m.fully_busy(0, 500);
        assert_eq!(m.fork_from(0, &[]), 1, "{}", kernel.name);
        // All are overloaded or busy, but CPU 5 has capacity left.
        m.root_avg(5).util_avg = 800;
        assert_eq!(m.fork_from(0, &[]), 5, "{}", kernel.name);
    }
}

#[test]
fn a_large_child_goes_where_it_fits() {
    let mut topology = CpuTopology::symmetric(1, 1, 1, 8, 1);
    for little in 0..4 {
        topology.capacity[cpu(little)] = 446;
    }
    for kernel in KERNELS {
        let chosen = |util, busy: &[usize]| {
            let mut m = Machine::new(kernel, topology.clone());
            m.busy(busy);
            let p = m.sleeper(0);
            m.avg(p).last_update_time = 0;
            m.avg(p).util_avg = util;
            m.0.this_cpu = cpu(0);
            m.select_task_rq_fair(p, cpu(0), FORK, WakeFlags::FORK).index()
        };
        // 356 * 1280 < 446 * 1024: a little CPU will do, and the waking one is idle.
        assert_eq!((chosen(356, &[]), chosen(357, &[])), (0, 4), "{}", kernel.name);
        // Each big CPU runs a task, but none is fully used: still better than a CPU that does not fit.
        assert_eq!(chosen(700, &[4, 5, 6]), 7, "{}", kernel.name);
    }
}

#[test]
fn a_task_about_to_exec_does_not_count_against_its_cpu() {
    for kernel in KERNELS {
        let mut m = uma(kernel);
        let p = m.run(2);
        m.task[p].on_rq = OnRq::Queued;
        let cfs = m.rq[cpu(2)].cfs;
        m.cfs_rq[cfs].h_nr_running = 1;
        let se = m.task[p].se;
        m.avg(p).util_avg = 300;
        m.root_avg(2).util_avg = 300;
        assert_eq!(m.se[se].avg.load_avg, FULL);
        m.0.this_cpu = cpu(2);
        let to = m.select_task_rq_fair(p, cpu(2), EXEC, WakeFlags::NONE);
        assert_eq!(to, cpu(2), "{}: without it the CPU idles", kernel.name);
    }
}

#[test]
fn the_old_way_to_choose_can_be_switched_on_alone() {
    for kernel in KERNELS {
        let mut m = two_sockets(with(kernel, "wake.idlest_group", "by-load"));
        // Enough for a margin of a fifth of a task on eight CPUs.
        m.run(0);
        m.run(1);
        m.allow_numa_imbalance(8);
        assert!(matches!(m.fork_from(0, &[]), 4..8 | 12..16), "{}: by load", kernel.name);
    }
    let mut m = two_sockets(with(V4_16, "wake.idlest_group", "by-type"));
    m.run(0);
    assert_eq!(m.fork_from(0, &[]), 4, "no imbalance is allowed: nobody has written it down");
}

#[test]
fn v5_15_keeps_a_child_on_its_node_while_less_than_a_quarter_is_busy() {
    // 16 CPUs in a node: up to three tasks, the child among them.
    let mut m = Machine::new(V5_15, CpuTopology::symmetric(2, 1, 1, 8, 2));
    for (busy, expect) in [(0, 1), (1, 2), (2, 8)] {
        m.run(busy);
        assert_eq!(m.fork_from(0, &[]), expect);
    }
}

#[test]
fn v5_15_counts_cpus_that_the_child_may_not_use() {
    // Six CPUs idle here, four there; but of the two that the child may use, the one there.
    for (kernel, expect) in [(V5_10, 5), (V5_15, 1), (V6_1, 5)] {
        let mut m = two_sockets(kernel);
        m.busy(&[0, 1, 4, 6, 7, 12]);
        assert_eq!(m.fork_from(0, &[1, 5]), expect, "{}", kernel.name);
    }
}
