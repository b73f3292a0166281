//! From a machine file's figures to the plain integers that a simulation pays.

use machine::description::Description;
use machine::lines::LinePrices;
use machine::prices::{IdleState, NR_PATHS, Prices};
use os::paths;
use sched::access::Path;
use units::{CpuId, Cycles, Ps};

/// Every function that has a price, by name: the scheduler's, then those of the rest of the kernel.
pub fn path_names() -> Vec<&'static str> {
    Path::NAMES.iter().chain(paths::NAMES).copied().collect()
}

/// A function's name, by its number.
pub fn path_name(path: Path) -> &'static str {
    let number = path.0 as usize;
    let name = match number.checked_sub(Path::FIRST_OS as usize) {
        None => Path::NAMES.get(number),
        Some(number) => paths::NAMES.get(number),
    };
    name.copied().unwrap_or_else(|| panic!("path number {number} has no name"))
}

/// What `machine` costs. Functions that it does not list take its `default_path_cycles`; the reschedule interrupt, if it is
/// not listed, what the machine says of receiving an interrupt.
///
/// Frequency is fixed for now (`frequency.fixed`); memory is the local node's; copying loses what is below a picosecond for
/// each byte.
pub fn prices(machine: &Description) -> Prices {
    let mut cycles = vec![Cycles(0); NR_PATHS];
    for (number, name) in Path::NAMES.iter().enumerate() {
        cycles[number] = machine.path_cycles(name);
    }
    for (number, name) in paths::NAMES.iter().enumerate() {
        cycles[Path::FIRST_OS as usize + number] = machine.path_cycles(name);
    }
    let interrupt = paths::SMP_RESCHEDULE_INTERRUPT;
    if machine.figure(&format!("paths.{}", path_name(interrupt))).is_none() {
        cycles[interrupt.0 as usize] = machine.ipi_receive();
    }
    Prices {
        ps_per_cycle: 1_000_000_000_000 / machine.fixed_hertz(),
        smt_speed: machine.smt_speed(),
        lines: LinePrices {
            transfer: machine.line_transfers(),
            llc_hit: machine.llc_hit(),
            memory: machine.memory_load(machine::topology::Distance::Same),
            read_stall: machine.read_stall(),
            slice_spread: machine.slice_spread(),
            write_stall: machine.write_stall(),
        },
        ipi_delivery: machine.ipi_delivery(machine::topology::Distance::Llc),
        ipi_send: machine.ipi_send(),
        paths: cycles,
        idle_states: machine.idle_states().into_iter().map(idle_state).collect(),
        mwait: machine.wakes_by_mwait(),
        l2_bytes: machine.l2_bytes(CpuId(0)),
        refill_parallel: machine.refill_parallel(),
        copy_ps_per_byte: machine.copy_ps_per_kib() / 1024,
    }
}

/// Drivers declare whole microseconds.
fn idle_state(state: machine::description::IdleState) -> IdleState {
    let us = |time: Ps| u32::try_from(time.0 / 1_000_000).expect("at most ten seconds, as the loader has checked");
    IdleState {
        name: state.name,
        exit_latency_us: us(state.exit_latency),
        target_residency_us: us(state.target_residency),
        wake: state.wake,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use machine::description::{builtin, parse};

    #[test]
    fn every_machine_that_ships_prices_every_function() {
        for (name, text) in builtin() {
            let machine = parse(text, name).unwrap_or_else(|error| panic!("{error}"));
            machine.check_names("paths", &path_names()).unwrap_or_else(|error| panic!("{error}"));
            let prices = prices(&machine);
            let distances = machine.topology().distances();
            assert!(distances.iter().all(|distance| distance.index() < prices.lines.transfer.len()), "{name}");
            assert!(prices.ps_per_cycle > 0 && prices.refill_parallel > 0 && !prices.idle_states.is_empty(), "{name}");
        }
    }

    #[test]
    fn names_and_numbers_agree() {
        assert_eq!(path_name(Path::schedule), "schedule");
        assert_eq!(path_name(paths::PIPE_READ), "pipe_read");
        let mut names = path_names();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count, "one price for one name");
    }

    #[test]
    fn a_listed_function_costs_what_the_file_says() {
        let (name, text) = builtin()[0];
        let listed = "{ value = 321, unit = \"cycles\", range = [1, 999], how = \"guess\", source = \"a test\" }";
        let text = format!("{text}\n[paths]\nschedule = {listed}\nmutex_lock = {listed}\n");
        let text = text.replacen("\n[paths]\n\n", "\n\n", 1);
        let prices = prices(&parse(&text, name).unwrap_or_else(|error| panic!("{error}")));
        assert_eq!((prices.path(Path::schedule), prices.path(paths::MUTEX_LOCK)), (Cycles(321), Cycles(321)));
        assert_ne!(prices.path(Path::pick_next_task), Cycles(321));
    }
}
