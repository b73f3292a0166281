//! From a machine file's figures to the integers that a simulation pays.

use crate::mistake::Mistake;
use machine::description::{Description, Figure};
use machine::lines::LinePrices;
use machine::prices::{IdleState, NR_PATHS, Prices};
use machine::topology::Distance;
use observe::HALTED;
use os::paths;
use sched::access::Path;
use units::{Cycles, Ps};

/// Checks the functions of a machine file: the scheduler's belong in `[paths]`, those of the rest of the kernel in
/// `[os]`, `[net]`, `[fs]` and `[idle_loop]`.
pub fn check(machine: &Description) -> Result<(), Mistake> {
    machine.check_names("paths", Path::NAMES)?;
    machine.check_names("os", paths::NAMES)?;
    machine.check_names("net", paths::NAMES)?;
    machine.check_names("fs", paths::NAMES)?;
    Ok(machine.check_names("idle_loop", paths::NAMES)?)
}

/// The name of a function, by its number.
pub fn path_name(path: Path) -> &'static str {
    let number = path.0 as usize;
    let name = match number.checked_sub(Path::FIRST_OS as usize) {
        None => Path::NAMES.get(number),
        Some(number) => paths::NAMES.get(number),
    };
    name.copied().unwrap_or_else(|| panic!("path number {number} has no name"))
}

/// The prices of `machine`, whose file has passed [`check`], for the kernel of that name ([`Description::as_of`]).
/// Functions that it does not list cost its `default_path_cycles`; the reschedule interrupt, if it is not listed, costs what the machine says of receiving an
/// interrupt.
///
/// The frequency is the file's `frequency.fixed`, unless a driver governs it ([`crate::cpufreq`]). Memory is the local
/// node's. The price of copying a byte drops fractions of a picosecond.
pub fn prices(machine: &Description, kernel: &str) -> Prices {
    let machine = &machine.as_of(kernel);
    let mut cycles = vec![Cycles(0); NR_PATHS];
    for (number, name) in Path::NAMES.iter().enumerate() {
        cycles[number] = machine.listed_path(name).unwrap_or_else(|| machine.default_path_cycles());
    }
    for (number, name) in paths::NAMES.iter().enumerate() {
        let listed = machine.listed_os(name);
        let interrupt = Path::FIRST_OS as usize + number == paths::SMP_RESCHEDULE_INTERRUPT.0 as usize;
        let unlisted = || if interrupt { machine.ipi_receive() } else { machine.default_path_cycles() };
        cycles[Path::FIRST_OS as usize + number] = listed.unwrap_or_else(unlisted);
    }
    let (l1d, l2, llcs) = (machine.l1d_bytes(), machine.l2_bytes(), machine.llc_bytes());
    let biggest = machine.topology().cpu(machine.topology().biggest_cpu()).core as usize;
    Prices {
        ps_per_cycle: 1_000_000_000_000 / machine.fixed_hertz(),
        by_speed: true,
        smt: machine.smt(),
        lines: LinePrices {
            transfer: machine.line_transfers(),
            llc_hit: machine.llc_hit(),
            memory: machine.memory_load(Distance::Same),
            read_stall: machine.read_stall(),
            slice_spread: machine.figure("line.slice_spread").map_or(0, Figure::permille),
            write_stall: machine.write_stall(),
            contended: machine.figure("line.contended").map_or(1000, Figure::permille),
            disputed_from: machine.figure("line.disputed_from").map_or(u64::MAX, Figure::count),
            window: machine.figure("line.window").map_or(Ps::ZERO, Figure::time),
            handoff: machine.figure("line.handoff").map_or(1000, Figure::permille),
        },
        ipi_delivery: machine.ipi_delivery(Distance::Llc),
        ipi_delivery_remote: machine.ipi_delivery(Distance::Remote(1)),
        tick_jitter: machine.figure("tick.jitter").map_or(Ps::ZERO, Figure::time),
        tick_footprint: machine.figure("tick.footprint").map_or(0, Figure::bytes),
        tick_parallel: machine.figure("tick.fetched_at_once").map_or(1, Figure::count),
        ipi_send: machine.ipi_send(),
        paths: cycles,
        idle_states: machine.idle_states().into_iter().map(idle_state).collect(),
        idle_states_of_kinds: machine
            .idle_states_of_kinds()
            .into_iter()
            .map(|(cpus, states)| (cpus, states.into_iter().map(idle_state).collect()))
            .collect(),
        poll_round: machine.figure("idle.relax").map_or(Cycles(0), Figure::cycles),
        mwait: machine.wakes_by_mwait(),
        halts_in: halts_in(machine.vendor(), machine.wakes_by_mwait()),
        packages_together: machine.packages_sleep_together(),
        line_bytes: machine.line_bytes(),
        l1_bytes: l1d[biggest],
        l2_bytes: l2[biggest],
        bytes_of_cores: l1d.into_iter().zip(l2).map(|(l1d, l2)| [l1d, l2]).collect(),
        l2_load: machine.l2_load(),
        llc_bytes: llcs[machine.topology().cpu(machine.topology().biggest_cpu()).llc as usize],
        bytes_of_llcs: llcs,
        memory_far: machine.memory_loads(),
        memory_ps_per_kib: machine.memory_ps_per_kib(),
        far_memory_ps_per_kib: machine.far_memory_ps_per_kib(),
        llc_link_ps_per_kib: machine.llc_link_ps_per_kib(),
        package_link_ps_per_kib: machine.package_link_ps_per_kib(),
        refill_parallel: machine.refill_parallel(),
        copy_ps_per_byte: machine.copy_ps_per_kib() / 1024,
    }
}

/// The idle driver's function in which a CPU of this vendor halts, from drivers/idle/intel_idle.c or
/// drivers/acpi/processor_idle.c; on POWER from drivers/cpuidle/cpuidle-powernv.c. On ARM it is the function that waits
/// for an interrupt on behalf of any driver; on SPARC, which has no driver, the architecture's. (A guest's haltpoll
/// halts in a function of its own, which is not distinguished.)
fn halts_in(vendor: Option<&str>, mwait: bool) -> &'static str {
    let name = match vendor {
        Some("intel") | None if mwait => "intel_idle",
        Some("arm") => "cpu_do_idle",
        Some("ibm") => "stop_loop",
        Some("oracle") => "arch_cpu_idle",
        _ => "acpi_idle_enter",
    };
    debug_assert!(HALTED.contains(&name), "{name} counts as work in a profile's shares");
    name
}

/// Drivers declare idle states in whole microseconds.
fn idle_state(state: machine::description::IdleState) -> IdleState {
    let us = |time: Ps| u32::try_from(time.0 / 1_000_000).expect("at most ten seconds, as the loader has checked");
    IdleState {
        name: state.name,
        exit_latency_us: us(state.exit_latency),
        target_residency_us: us(state.target_residency),
        polling: state.target_residency == Ps::ZERO,
        wake: state.wake,
        package_wake: state.package_wake,
        flushes: state.flushes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use machine::description::{How, Unit, builtin, parse};

    #[test]
    fn every_machine_that_ships_prices_every_function() {
        for (name, text) in builtin() {
            let machine = parse(text, name).unwrap_or_else(|error| panic!("{error}"));
            check(&machine).unwrap_or_else(|error| panic!("{error}"));
            // `default_path_cycles` is only for machine files that list a few functions.
            let paths = Path::NAMES.iter().filter(|name| machine.listed_path(name).is_none());
            let missing: Vec<_> =
                paths.chain(paths::NAMES.iter().filter(|name| machine.listed_os(name).is_none())).collect();
            assert!(missing.is_empty(), "{name} has no price for {missing:?}");
            let prices = prices(&machine, "v4.5-rc1");
            let distances = machine.topology().distances();
            assert!(distances.iter().all(|distance| distance.index() < prices.lines.transfer.len()), "{name}");
            assert!(prices.ps_per_cycle > 0 && prices.refill_parallel > 0 && !prices.idle_states.is_empty(), "{name}");
        }
    }

    #[test]
    fn names_and_numbers_agree() {
        assert_eq!(path_name(Path::schedule), "schedule");
        assert_eq!(path_name(paths::PIPE_READ), "pipe_read");
        for names in [Path::NAMES, paths::NAMES] {
            let mut unique = names.to_vec();
            unique.sort_unstable();
            unique.dedup();
            assert_eq!(unique.len(), names.len(), "one price for one name");
        }
    }

    #[test]
    fn a_listed_function_costs_what_the_file_says() {
        let (name, text) = builtin()[0];
        let mut machine = parse(text, name).unwrap_or_else(|error| panic!("{error}"));
        let before = prices(&machine, "v4.5-rc1");
        let unit = Unit::named("cycles").expect("a unit");
        let figure = Figure { value: 321, unit, source: "a test".to_string(), how: How::Guess, range: (1, 999) };
        machine.replace("paths.schedule", figure.clone());
        machine.replace("os.mutex_lock", figure);
        let after = prices(&machine, "v4.5-rc1");
        assert_eq!((after.path(Path::schedule), after.path(paths::MUTEX_LOCK)), (Cycles(321), Cycles(321)));
        let changed = before.paths.iter().zip(&after.paths).filter(|(before, after)| before != after).count();
        assert_eq!(changed, 2);
    }
}
