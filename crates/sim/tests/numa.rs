//! NUMA balancing, as far as a picture does not show it.

use super::scenario::Scenario;
use sched::behaviour::Rules;
use sched::fair::numa::NumaTask;
use sched::trace::{Event, Sink};
use sim::engine::LinuxSim;
use std::cell::RefCell;
use std::rc::Rc;
use units::{CpuId, Ns, Prng};

/// Hears the tracepoints of NUMA balancing.
#[derive(Default, Clone)]
struct Heard(Rc<RefCell<Vec<Event>>>);

impl Sink for Heard {
    fn event(&mut self, _time: Ns, _cpu: CpuId, event: &Event) {
        if matches!(event, Event::SchedMoveNuma { .. } | Event::SchedSwapNuma { .. } | Event::SchedStickNuma { .. }) {
            self.0.borrow_mut().push(event.clone());
        }
    }
}

/// Runs a scenario without a picture.
fn run(text: &str) -> (LinuxSim<false>, Vec<Event>) {
    let scenario = Scenario::parse(text);
    let heard = Heard::default();
    let sim = scenario.run(scenario.topology(), Box::new(heard.clone()));
    let events = heard.0.borrow().clone();
    (sim, events)
}

fn task<'a>(sim: &'a LinuxSim<false>, comm: &str) -> &'a NumaTask {
    let named = sim.sched.task.iter().find(|(p, task)| task.alive && sim.sched.task_cold[*p].comm == comm);
    sim.sched.numa.task(named.expect("it lives").0).expect("it has memory")
}

const KERNELS: [&str; 5] = ["v4.5-rc1", "v4.15", "v4.16", "v6.1", "v6.12"];

#[test]
fn the_scan_period_grows_while_all_memory_is_where_it_should_be() {
    for kernel in KERNELS {
        let text = format!(
            "machine pack:2 numa:1 core:2 pu:1\nkernel {kernel}\nmemory heap 512MB\n\
             task a on=0: touch heap 4GB/s; run 100s\npicture 0ms..30000ms in 1 columns\n"
        );
        let (sim, _) = run(&text);
        let a = task(&sim, "a");
        // Two windows of 256 MB: from half a second on, three tenths more after each full scan.
        assert!(a.numa_scan_period > 1500 && a.numa_scan_period <= 30_000, "{kernel}: {}", a.numa_scan_period);
        assert_eq!(a.numa_preferred_nid, Some(sim.sched.topology.node[CpuId(sim_cpu(&sim, "a"))]), "{kernel}");
        assert_eq!(a.numa_pages_migrated, 0, "{kernel}");
        let mm = sim.sched.numa.mm.values().next().expect("its memory");
        // Sums of growing periods: far fewer than 30 s of half-second scans of half the memory.
        assert!((3..15).contains(&mm.numa_scan_seq), "{kernel}: {} scans", mm.numa_scan_seq);
        assert_eq!(mm.rss, 512 * 256, "{kernel}");
    }
}

fn sim_cpu(sim: &LinuxSim<false>, comm: &str) -> u16 {
    let named = sim.sched.task.iter().find(|(p, task)| task.alive && sim.sched.task_cold[*p].comm == comm);
    named.expect("it lives").1.cpu.0
}

#[test]
fn private_memory_comes_to_its_task() {
    for kernel in KERNELS {
        let text = format!(
            "machine pack:2 numa:1 core:2 pu:1\nkernel {kernel}\nmemory heap 256MB node=1\n\
             task a cpus=0: touch heap 4GB/s; run 100s\npicture 0ms..3000ms in 1 columns\n"
        );
        let (sim, _) = run(&text);
        assert_eq!(task(&sim, "a").numa_pages_migrated, 256 * 256, "{kernel}");
        assert_eq!(sim.os.memory.pages_on(os::memory::RegionId(0), 0), 256 * 256, "{kernel}");
    }
}

#[test]
fn until_v4_19_a_node_receives_so_much_in_a_while() {
    let text = |limit: &str| {
        format!(
            "machine pack:2 numa:1 core:2 pu:1\nkernel v4.15\nset memory.migration_limit={limit}\n\
             memory heap 256MB node=1\ntask a cpus=0: touch heap 64GB/s; run 100s\npicture 0ms..1500ms in 1 columns\n"
        )
    };
    // All 256 MB are found within 4 ms: 128 of them may move, and the batch that goes beyond.
    let (sim, _) = run(&text("per-window"));
    assert_eq!(task(&sim, "a").numa_pages_migrated, 130 * 256);
    assert_eq!(task(&sim, "a").numa_faults_locality[2], 126 * 256);
    let (sim, _) = run(&text("none"));
    assert_eq!(task(&sim, "a").numa_pages_migrated, 256 * 256);
}

#[test]
fn switched_off_nothing_is_scanned_and_on_again_it_is() {
    let machine = "machine pack:2 numa:1 core:2 pu:1\nkernel v6.12\nset kernel.numa_balancing=0\n";
    let tasks = "memory heap 256MB node=1\ntask a cpus=0: touch heap 4GB/s; run 100s\n";
    let (sim, events) = run(&format!("{machine}{tasks}picture 0ms..5000ms in 1 columns\n"));
    assert!(task(&sim, "a").numa_faults.is_empty() && events.is_empty());
    let on = "at 2000ms set kernel.numa_balancing=1\n";
    let (sim, _) = run(&format!("{machine}{on}{tasks}picture 0ms..5000ms in 1 columns\n"));
    assert_eq!(task(&sim, "a").numa_pages_migrated, 256 * 256);
}

#[test]
fn queues_count_who_prefers_a_node_and_who_is_there() {
    for kernel in KERNELS {
        let text = format!(
            "machine pack:2 numa:1 core:4 pu:1\nkernel {kernel}\nmemory near 256MB\nmemory far 256MB node=1 pinned\n\
             memory both 256MB\ntask a count=3 on=0: touch near 2GB/s; 100000 x (run 3ms; sleep 1ms)\n\
             task b count=4 on=4: touch far 2GB/s; touch both 1GB/s; run 100s\n\
             task c count=3 process=p nice=5: touch both 1GB/s; 100000 x (run 2ms; sleep 500us)\n\
             picture 0ms..6000ms in 1 columns\n"
        );
        let (sim, _) = run(&text);
        let sched = &sim.sched;
        for (cpu, counted) in sched.numa.rq.iter() {
            let queued = sched.task.iter().filter(|(_, task)| {
                task.alive && task.cpu == cpu && sched.se[task.se].on_rq && !sched.se[task.se].sched_delayed
            });
            let delayed = sched.task.iter().filter(|(_, task)| {
                task.alive && task.cpu == cpu && sched.se[task.se].on_rq && sched.se[task.se].sched_delayed
            });
            let preferred = |p| sched.numa.task(p).and_then(|task| task.numa_preferred_nid);
            let all: Vec<_> = queued.chain(delayed).map(|(p, _)| preferred(p)).collect();
            let node = sched.topology.node[cpu];
            assert_eq!(counted.nr_numa_running as usize, all.iter().flatten().count(), "{kernel} {cpu}");
            let there = all.iter().filter(|&&nid| nid == Some(node)).count();
            assert_eq!(counted.nr_preferred_running as usize, there, "{kernel} {cpu}");
            assert!(!counted.numa_migrate_on, "{kernel} {cpu}: nobody is on the way");
        }
        // A group's sums are those of its tasks.
        for (group, of) in sched.numa.group.iter().filter(|(_, group)| group.nr_tasks > 0) {
            let members: Vec<_> = sched.numa.task.iter().filter(|(_, task)| task.numa_group == Some(group)).collect();
            assert_eq!(members.len(), of.nr_tasks as usize, "{kernel}");
            let total = members.iter().map(|(_, task)| task.total_numa_faults).fold(0, u64::wrapping_add);
            assert_eq!(total, of.total_faults, "{kernel}");
        }
    }
}

#[test]
fn every_behaviour_of_numa_balancing_can_be_switched_alone() {
    let keys = sched::versions::kernel("v6.1").unwrap().settings();
    for setting in keys.iter().filter(|setting| setting.key.starts_with("numa.")) {
        for choice in setting.choices {
            for kernel in ["v4.5-rc1", "v6.12"] {
                let text = format!(
                    "machine pack:4 numa:1 core:2 pu:1\nkernel {kernel}\nset {}={}\n\
                     distances 10 16 32 32; 16 10 32 32; 32 32 10 16; 32 32 16 10\n\
                     memory far 256MB node=3 pinned\nmemory both 256MB\n\
                     task a count=3: touch far 2GB/s; touch both 2GB/s; run 100s\n\
                     task b count=3 process=p: touch both 2GB/s; 100000 x (run 3ms; sleep 1ms)\n\
                     picture 0ms..5000ms in 1 columns\n",
                    setting.key, choice.name
                );
                let (sim, _) = run(&text);
                let faults: u64 = sim.sched.numa.task.iter().map(|(_, task)| task.total_numa_faults).sum();
                assert!(faults > 0, "{} {}", setting.key, choice.name);
            }
        }
    }
}

#[test]
fn a_swap_is_told_once_and_both_change_places() {
    for kernel in KERNELS {
        let text = format!(
            "machine pack:2 numa:1 core:1 pu:1\nkernel {kernel}\nmemory theirs 256MB node=1 pinned\n\
             memory ours 256MB node=0 pinned\ntask a cpus=0: run 10ms; touch theirs 4GB/s; run 100s\n\
             task b cpus=1: run 10ms; touch ours 4GB/s; run 100s\npicture 0ms..5000ms in 1 columns\n"
        );
        // Bound to their CPUs they only stick.
        let (_, events) = run(&text);
        assert!(events.iter().all(|event| matches!(event, Event::SchedStickNuma { .. })), "{kernel}");
        // Free, those who are on the wrong node change places.
        let (sim, events) = run(&text.replace(" cpus=0", " on=0").replace(" cpus=1", " on=1"));
        let swaps = events.iter().filter(|event| matches!(event, Event::SchedSwapNuma { .. })).count();
        assert_eq!((sim_cpu(&sim, "a"), sim_cpu(&sim, "b")), (1, 0), "{kernel}");
        assert!(swaps <= 1, "{kernel}: {swaps} swaps");
    }
}

#[test]
fn the_file_of_a_task_says_what_is_known_of_its_memory() {
    let file = |kernel: &str, formats| {
        let text = format!(
            "machine pack:2 numa:1 core:2 pu:1\nkernel {kernel}\nmemory far 200MB node=1 pinned\n\
             task a on=0 cpus=0: touch far 4GB/s; run 100s\npicture 0ms..3500ms in 1 columns\n"
        );
        let (sim, _) = run(&text);
        let named = sim.sched.task.iter().find(|(p, _)| sim.sched.task_cold[*p].comm == "a");
        let sched = &sim.sched;
        let task = named.expect("it lives").0;
        let text = observe::proc::TaskSched { sched, task, threads: 1, formats }.to_string();
        text[text.find("mm->numa_scan_seq").expect("its process is scanned")..].to_string()
    };
    // 100 batches of 512 pages, found after the first scan; older kernels call private ones shared.
    let expected = "\
mm->numa_scan_seq                            :                    2
numa_pages_migrated                          :                    0
numa_preferred_nid                           :                    1
total_numa_faults                            :                51200
current_node=0, numa_group_id=0
numa_faults node=0 task_private=0 task_shared=0 group_private=0 group_shared=0
numa_faults node=1 task_private=51200 task_shared=0 group_private=0 group_shared=0
";
    assert_eq!(file("v6.1", observe::Formats::V6_1), expected);
    let older = expected.replace("task_private=51200 task_shared=0", "task_private=0 task_shared=51200");
    assert_eq!(file("v4.15", observe::Formats::V4_15), older);
}

/// Random tasks and memory while CPUs come and go: nothing is lost on the way of a migration or a swap.
#[test]
fn cpus_may_come_and_go_while_tasks_are_on_their_way() {
    for seed in 0..20 {
        let mut random = Prng::stream(seed, "numa", 0);
        let mut pick = |bound: u64| random.below(bound);
        let machine = ["pack:2 numa:1 core:2 pu:2", "pack:4 numa:1 core:2 pu:1"][pick(2) as usize];
        let mut text = format!("machine {machine}\nkernel {}\n", KERNELS[pick(5) as usize]);
        // Scans in quick succession: many migrations.
        text += if text.contains("v6") {
            "set sched/numa_balancing/scan_delay_ms=10\nset sched/numa_balancing/scan_period_min_ms=20\n"
        } else {
            "set kernel.numa_balancing_scan_delay_ms=10\nset kernel.numa_balancing_scan_period_min_ms=20\n"
        };
        for region in 0..4 {
            let place = ["", " node=0", " node=1 pinned"][pick(3) as usize];
            text += &format!("memory m{region} {}MB{place}\n", 16 + 16 * pick(6));
        }
        for task in 0..3 + pick(8) {
            let process = if pick(2) == 0 { " process=p" } else { "" };
            let work =
                ["run 100s", "100000 x (run 3ms; sleep 1ms)", "100000 x (run 300us; sleep 200us)"][pick(3) as usize];
            let (a, b) = (pick(4), pick(4));
            text += &format!("task t{task}{process}: touch m{a} 4GB/s; touch m{b} 1GB/s; {work}\n");
            if pick(3) == 0 {
                text += &format!("task short{task}{process} at={}ms: touch m{a} 2GB/s; run 200ms\n", 100 * pick(10));
            }
        }
        for round in 0..6 {
            let (cpu, at) = (1 + pick(7), 200 + 300 * round);
            text += &format!("at {at}ms offline {cpu}\nat {}ms online {cpu}\n", at + 50 + pick(200));
        }
        text += "picture 0ms..2500ms in 1 columns\n";
        let (sim, _) = run(&text);
        let living = sim.sched.task.iter().filter(|(_, task)| task.alive && task.mm != 0).count();
        assert_eq!(living, text.matches("task t").count(), "seed {seed}");
        assert!(sim.sched.numa.rq.iter().all(|(_, rq)| !rq.numa_migrate_on), "seed {seed}: nobody is on the way");
        assert_eq!(sim.refused, [], "seed {seed}");
    }
}
