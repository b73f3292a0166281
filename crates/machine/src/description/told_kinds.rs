//! The kinds of CPUs of a topology that borrows its prices: their figures come from the lender if it has the same CPUs,
//! or else from the frequencies and highest performances that the computer itself reports, or else from the lender's
//! kinds of such names.
//!
//! - Firmware's highest performance (CPPC) counts as speed, as in Linux where it needs capacities of such processors
//!   (v6.12, drivers/cpufreq/intel_pstate.c: hybrid_set_cpu_capacity()).
//! - From frequencies alone the speed is a guess: as if all kinds did the same work in a cycle, except for Intel's
//!   smaller cores.
//! - Capacities, if they differ, are already speeds.

use super::figure::{Figure, How, Unit};
use super::names::kind_key_of;
use super::{Description, Fact, NamedFact, NamedFigure};
use crate::topology::{CpuKind, Location, Topology, apart};
use std::cmp::Ordering;

/// How much of a performance core's work per cycle an efficiency core does, in thousandths: Intel's performance levels
/// are steps of 78.741 MHz for the one and of 100 MHz for the other (Linux v6.1, drivers/cpufreq/intel_pstate.c:
/// HYBRID_SCALING_FACTOR; for later processors 80 and 86.957).
const PERMILLE_IN_A_CYCLE: u64 = 787;

/// Linux's and hwloc's names of Intel's biggest cores.
const BIGGEST: [&str; 2] = ["cpu_core", "IntelCore"];
/// Their names of the smaller cores.
const SMALLER: [&str; 4] = ["cpu_atom", "cpu_lowpower", "IntelAtom", "IntelLowPower"];

/// The error of a speed derived from highest performances, in percent: the scale is made for the driver's steps, not
/// for any particular work. For the 12900K the file's range is 0.4 to 0.75, and highest performances say 0.59.
const OFF_PERCENT: u64 = 30;

/// The figures and facts `kind.NAME...` of a topology that comes from `told_by`, for prices of `lender`.
pub(super) fn of_kinds(lender: &Description, topology: &Topology, told_by: &Fact) -> Lent {
    if topology.kinds().len() < 2 {
        return (Vec::new(), Vec::new());
    }
    let (mut figures, mut facts) = match of_same_cpus(lender, topology) {
        Some(lent) => lent,
        None => (told(lender, topology, told_by), Vec::new()),
    };
    if figures.is_empty() && topology.has_one_capacity() {
        (figures, facts) = of_same_names(lender, topology).unwrap_or_default();
    }
    for told in highest_perfs(lender, topology, told_by) {
        figures.retain(|known| known.name != told.name);
        figures.push(told);
    }
    // A ranking must cover all CPUs: if there are capacities, or some CPU belongs to no kind, Linux has no ranking.
    let of_kinds: usize = topology.kinds().iter().map(|kind| kind.cpus.weight()).sum();
    let ranked = |kind: &CpuKind| figures.iter().any(|named| named.name == format!("kind.{}.highest_perf", kind.name));
    let all = of_kinds == topology.nr_cpus() && topology.has_one_capacity() && topology.kinds().iter().all(ranked);
    figures.retain(|named| all || !named.name.ends_with(".highest_perf"));
    (figures, facts)
}

/// The lender's own figures, if the CPUs of each kind are of one kind there too, and any two kinds relate to each other
/// as those do.
fn of_same_cpus(lender: &Description, topology: &Topology) -> Option<Lent> {
    let theirs = &lender.topology;
    if theirs.nr_cpus() != topology.nr_cpus() {
        return None;
    }
    let same = |kind: &CpuKind| theirs.kinds().iter().find(|of| kind.cpus.iter().all(|cpu| of.cpus.contains(cpu)));
    let speeds = topology.kinds().iter().map(|kind| Some((kind, speed_of(lender, same(kind)?))));
    let speeds: Vec<(&CpuKind, u32)> = speeds.collect::<Option<_>>()?;
    let agree = |a: &(&CpuKind, u32), b: &(&CpuKind, u32)| told_order(topology, a.0, b.0) == a.1.cmp(&b.1);
    let all_agree = speeds.iter().enumerate().all(|(index, a)| speeds[index + 1..].iter().all(|b| agree(a, b)));
    if all_agree { lent(lender, topology, same) } else { None }
}

/// Which of two kinds does more work, by the first thing that distinguishes them: capacities, firmware, Intel's names,
/// frequencies.
fn told_order(topology: &Topology, a: &CpuKind, b: &CpuKind) -> Ordering {
    let capacity = |kind: &CpuKind| kind.cpus.iter().map(|cpu| u64::from(topology.cpu(cpu).capacity)).max();
    let by = |a: Option<u64>, b: Option<u64>| match (a, b) {
        (Some(a), Some(b)) if apart(a, b) => a.cmp(&b),
        _ => Ordering::Equal,
    };
    by(capacity(a), capacity(b))
        .then(by(a.highest_perf.map(u64::from), b.highest_perf.map(u64::from)))
        .then(is_smaller(b).cmp(&is_smaller(a)))
        .then(by(a.max_hertz, b.max_hertz))
}

fn speed_of(machine: &Description, kind: &CpuKind) -> u32 {
    kind.cpus.first().map_or(0, |cpu| machine.topology.cpu(cpu).speed)
}

/// The lender's figures: those of its slowest kind for Intel's smaller cores, and of its fastest for the others.
fn of_same_names(lender: &Description, topology: &Topology) -> Option<Lent> {
    let smaller = topology.kinds().iter().filter(|kind| is_smaller(kind)).count();
    let theirs = lender.topology.kinds();
    let speed = |kind: &&CpuKind| speed_of(lender, kind);
    let (slowest, fastest) = (theirs.iter().min_by_key(speed), theirs.iter().max_by_key(speed));
    let mixed = (1..topology.kinds().len()).contains(&smaller);
    if mixed { lent(lender, topology, |kind| if is_smaller(kind) { slowest } else { fastest }) } else { None }
}

/// Whether Linux or hwloc name a kind as one of Intel's.
pub(super) fn is_intels(kind: &CpuKind) -> bool {
    is_smaller(kind) || BIGGEST.iter().any(|name| kind.name.starts_with(name))
}

fn is_smaller(kind: &CpuKind) -> bool {
    SMALLER.iter().any(|name| kind.name.starts_with(name))
}

type Lent = (Vec<NamedFigure>, Vec<NamedFact>);

/// The lender's figures and facts of the kind that is the `same` as each; capacities are already speeds.
fn lent<'a>(
    lender: &'a Description,
    topology: &Topology,
    same: impl Fn(&CpuKind) -> Option<&'a CpuKind>,
) -> Option<Lent> {
    let (mut figures, mut facts) = (Vec::new(), Vec::new());
    for kind in topology.kinds() {
        let same = same(kind)?;
        let theirs = format!("kind.{}.", same.name);
        let own = |name: &str| Some(format!("kind.{}.{}", kind.name, name.strip_prefix(&theirs)?));
        figures.extend(lender.figures.iter().filter_map(|named| {
            let name = own(&named.name)?;
            if name.ends_with(".speed") && !topology.has_one_capacity() {
                return None;
            }
            let key = name.rsplit('.').next().and_then(kind_key_of);
            let bounds = key.map_or((0, u64::MAX), |key| key.bounds);
            let figure = named.figure.clone().borrowed(&lender.name, bounds);
            Some(NamedFigure { name, figure, ..named.clone() })
        }));
        facts.extend(lender.facts.iter().filter_map(|named| {
            let name = own(&named.name)?;
            let source = format!("taken from {}: {}", lender.name, named.fact.source);
            Some(NamedFact { name, fact: Fact { source, how: How::Guess, ..named.fact.clone() }, at: named.at.clone() })
        }));
    }
    Some((figures, facts))
}

/// Speeds and highest frequencies, as far as the computer reports them.
fn told(lender: &Description, topology: &Topology, told_by: &Fact) -> Vec<NamedFigure> {
    let mut figures = Vec::new();
    let perfs = of_all(topology, |kind| kind.highest_perf.map(u64::from));
    let hertz = of_all(topology, |kind| kind.max_hertz);
    let speeds = match (perfs, &hertz) {
        _ if !topology.has_one_capacity() => Vec::new(),
        (Some(perfs), _) => by_performance(&perfs),
        (None, Some(hertz)) => by_frequency(hertz),
        (None, None) => Vec::new(),
    };
    for Speed { kind, permille, range, how, why } in speeds {
        let source = format!("{}: {why}", told_by.source);
        figures.push(named(lender, kind, "speed", "ratio", (permille, range), how, source));
    }
    let most = most(hertz.iter().flatten());
    let (max, min) = (lender.turbo_hertz(1), lender.min_hertz());
    for (kind, of_kind) in hertz.into_iter().flatten() {
        // If the fastest kind's frequency is borrowed, the others are in proportion to it.
        let value = u128::from(max) * u128::from(of_kind) / u128::from(most);
        let value = (value as u64 / MHZ * MHZ).clamp(min, max);
        let why = format!("highest frequency of {} MHz, the fastest kind's is {}", of_kind / MHZ, most / MHZ);
        let source = format!("{}: {why}; in proportion to {}'s {} MHz", told_by.source, lender.name, max / MHZ);
        figures.push(named(lender, kind, "max", "GHz", (value, (value, value)), How::Derived, source));
    }
    figures
}

const MHZ: u64 = 1_000_000;

/// How much a kind does in the time of the fastest one.
struct Speed<'a> {
    kind: &'a CpuKind,
    permille: u64,
    range: (u64, u64),
    how: How,
    why: String,
}

/// A figure of each kind, if all kinds have it.
fn of_all(topology: &Topology, figure: impl Fn(&CpuKind) -> Option<u64>) -> Option<Vec<(&CpuKind, u64)>> {
    topology.kinds().iter().map(|kind| Some((kind, figure(kind)?))).collect()
}

fn most<'a>(figures: impl Iterator<Item = &'a (&'a CpuKind, u64)>) -> u64 {
    figures.map(|&(_, figure)| figure).max().unwrap_or(1)
}

fn by_performance<'a>(perfs: &[(&'a CpuKind, u64)]) -> Vec<Speed<'a>> {
    let most = most(perfs.iter());
    let speed = |&(kind, perf): &(&'a CpuKind, u64)| {
        let permille = (perf * 1_000 / most).max(1);
        let off = if perf == most { 0 } else { permille * OFF_PERCENT / 100 };
        let why = format!("highest performance of {perf}, the best kind's is {most} (CPPC)");
        Speed { kind, permille, range: (permille - off, (permille + off).min(1_000)), how: How::Derived, why }
    };
    perfs.iter().map(speed).collect()
}

fn by_frequency<'a>(hertz: &[(&'a CpuKind, u64)]) -> Vec<Speed<'a>> {
    let mixed = hertz.iter().any(|(kind, _)| !is_smaller(kind));
    let in_a_cycle = |kind: &CpuKind| if mixed && is_smaller(kind) { PERMILLE_IN_A_CYCLE } else { 1_000 };
    let work = |&(kind, hertz): &(&'a CpuKind, u64)| hertz / MHZ * in_a_cycle(kind);
    let most = hertz.iter().map(work).max().unwrap_or(1).max(1);
    let speed = |told: &(&'a CpuKind, u64)| {
        let permille = (work(told) * 1_000 / most).max(1);
        let (low, high, how) = match work(told) == most {
            true => (1_000, 1_000, How::Derived),
            false => ((permille / 2).max(1), (permille * 2).min(1_000), How::Guess),
        };
        let why = format!(
            "highest frequency of {} MHz, and {} thousandths of the biggest cores' work in a cycle",
            told.1 / MHZ,
            in_a_cycle(told.0)
        );
        Speed { kind: told.0, permille, range: (low, high), how, why }
    };
    hertz.iter().map(speed).collect()
}

/// Highest performances from firmware, if it reports them for every kind.
fn highest_perfs(lender: &Description, topology: &Topology, told_by: &Fact) -> Vec<NamedFigure> {
    let perfs = of_all(topology, |kind| kind.highest_perf.map(u64::from));
    let figure = |(kind, perf): (&CpuKind, u64)| {
        let source = format!("{}: its best CPU's acpi_cppc/highest_perf", told_by.source);
        named(lender, kind, "highest_perf", "count", (perf, (perf, perf)), told_by.how, source)
    };
    perfs.into_iter().flatten().map(figure).collect()
}

fn named(
    lender: &Description,
    kind: &CpuKind,
    name: &str,
    unit: &str,
    (value, range): (u64, (u64, u64)),
    how: How,
    source: String,
) -> NamedFigure {
    let unit = Unit::named(unit).expect("a unit of machine files");
    let figure = Figure { value, unit, source, how, range };
    NamedFigure { name: format!("kind.{}.{name}", kind.name), figure, at: Location::of(&lender.file), depth: 0 }
}

#[cfg(test)]
mod tests {
    use super::super::builtin::topology_of;
    use super::super::{builtin, parse, with_prices};
    use super::*;
    use crate::topology::{Numbering, from_synthetic};
    use units::{CpuId, CpuMask};

    /// Six cores, the last two of another kind, with these highest frequencies in MHz and highest performances.
    fn of_two_kinds(names: [&str; 2], mhz: [u64; 2], perfs: [u32; 2]) -> Topology {
        let mut topology = from_synthetic("pack:1 l3:1 core:6 pu:1", "t", Numbering::AsListed).expect("valid");
        let kind = |index: usize| CpuKind {
            max_hertz: Some(mhz[index] * MHZ).filter(|&hertz| hertz > 0),
            highest_perf: Some(perfs[index]).filter(|&perf| perf > 0),
            ..CpuKind::new(names[index], [0..4, 4..6][index].clone().map(CpuId::new).collect())
        };
        topology.kinds = vec![kind(0), kind(1)];
        topology
    }

    fn borrow(topology: Topology) -> Description {
        borrow_of("skylake-uma-8", topology)
    }

    fn borrow_of(lender: &str, topology: Topology) -> Description {
        let machine = with_prices(lender, "mine", topology, "the computer", How::Measured);
        // What is written reads back, with the same speeds.
        let again = parse(&machine.to_toml(), "again.toml").unwrap_or_else(|error| panic!("{error}"));
        let speeds =
            |of: &Description| of.topology().cpus().map(|(_, cpu)| (cpu.speed, cpu.highest_perf)).collect::<Vec<_>>();
        assert_eq!(speeds(&again), speeds(&machine));
        machine
    }

    fn speeds(machine: &Description) -> [u32; 2] {
        [0, 5].map(|cpu| machine.topology().cpu(CpuId(cpu)).speed)
    }

    /// The values of a figure for the two kinds, if both have it.
    fn figures(machine: &Description, name: &str) -> Option<[u64; 2]> {
        let of = |kind: &CpuKind| machine.figure(&format!("kind.{}.{name}", kind.name)).map(|figure| figure.value);
        let kinds = machine.topology().kinds();
        Some([of(&kinds[0])?, of(&kinds[1])?])
    }

    #[test]
    fn speeds_are_those_of_firmware() {
        let machine = borrow(of_two_kinds(["cpu_core", "cpu_atom"], [5_200, 3_900], [67, 39]));
        // 39 of 67 are 582 thousandths.
        assert_eq!((speeds(&machine), figures(&machine, "speed")), ([1024, 596], Some([1_000, 582])));
        assert_eq!(figures(&machine, "highest_perf"), Some([67, 39]));
        // The lender's highest frequency is 4 GHz; the slower kind has three quarters of it.
        assert_eq!(figures(&machine, "max"), Some([4_000 * MHZ, 3_000 * MHZ]));
        let speed = machine.figure("kind.cpu_atom.speed").expect("as above");
        let source = "the computer: highest performance of 39, the best kind's is 67 (CPPC)";
        assert_eq!((speed.how, speed.range, speed.source.as_str()), (How::Derived, (408, 756), source));
        let perf = machine.figure("kind.cpu_atom.highest_perf").expect("as above");
        assert_eq!((perf.how, perf.range), (How::Measured, (39, 39)));
    }

    #[test]
    fn speeds_by_frequency_are_guesses() {
        let of = |names, mhz| borrow(of_two_kinds(names, mhz, [0, 0]));
        let zen = of(["5100-MHz", "3500-MHz"], [5_100, 3_500]);
        assert_eq!((figures(&zen, "speed"), figures(&zen, "highest_perf")), (Some([1_000, 686]), None));
        // An efficiency core of the same frequency does less work.
        let lake = of(["IntelCore", "IntelAtom 2"], [5_200, 3_900]);
        assert_eq!(figures(&lake, "speed"), Some([1_000, 590]));
        let speed = lake.figure("kind.IntelAtom 2.speed").expect("as above");
        assert_eq!((speed.how, speed.range), (How::Guess, (295, 1_000)));
        // All are small: only their frequencies distinguish them.
        assert_eq!(figures(&of(["IntelAtom", "IntelLowPower"], [4_000, 2_000]), "speed"), Some([1_000, 500]));
    }

    #[test]
    fn where_nothing_is_told_nothing_is_made_up() {
        let machine = borrow(of_two_kinds(["IntelCore", "IntelAtom"], [5_200, 0], [67, 0]));
        assert!(["speed", "max", "highest_perf"].iter().all(|name| figures(&machine, name).is_none()));
        assert_eq!(speeds(&machine), [1024, 1024]);
        // But a machine with such kinds knows Intel's names.
        let of_names = |lender: &str, names| {
            let topology = of_two_kinds(names, [0, 0], [0, 0]);
            speeds(&with_prices(lender, "mine", topology, "the computer", How::Measured))
        };
        assert_eq!(of_names("core-i9-12900k", ["IntelCore", "IntelAtom"]), [1024, 564]);
        assert_eq!(of_names("core-i9-12900k", ["cpu_lowpower", "cpu_core"]), [564, 1024]);
        assert_eq!(of_names("core-i9-12900k", ["AMDPerformance", "AMDEfficiency"]), [1024, 1024]);
        assert_eq!(of_names("skylake-uma-8", ["IntelCore", "IntelAtom"]), [1024, 1024]);
        // Capacities are speeds, and Linux does not rank cores if it knows capacities.
        let small: CpuMask = [4, 5].map(CpuId).into_iter().collect();
        let arm = of_two_kinds(["3900-MHz", "2808-MHz"], [3_900, 2_808], [150, 108]).with_capacity(&small, 718);
        let machine = borrow(arm);
        assert_eq!((speeds(&machine), figures(&machine, "speed")), ([1024, 718], None));
        assert_eq!(
            (figures(&machine, "highest_perf"), figures(&machine, "max")),
            (None, Some([4_000 * MHZ, 2_880 * MHZ]))
        );
    }

    /// The topology of a built-in machine, as a computer would report it.
    fn shipped(name: &str) -> Topology {
        let (name, text) = builtin().iter().find(|it| it.0 == name).expect("it ships");
        topology_of(name, text)
    }

    fn renamed(kind: &str, cpus: std::ops::Range<usize>) -> CpuKind {
        CpuKind::new(kind, cpus.map(CpuId::new).collect())
    }

    #[test]
    fn whatever_is_borrowed_reads_back() {
        for (lender, _) in builtin() {
            let mut topology = shipped(lender);
            let (nr_cpus, half) = (topology.nr_cpus(), topology.nr_cpus() / 2);
            for cuts in [[half, nr_cpus], [half, nr_cpus - half / 2]] {
                for (names, mhz, perfs) in [
                    (["cpu_core", "cpu_atom"], [5_000, 1], [0, 0]),
                    (["IntelAtom", "IntelCore"], [1_000, 4_000], [60, 0]),
                    (["5-MHz", "5-MHz 2"], [0, 9], [1, 254]),
                ] {
                    let told = of_two_kinds(names, mhz, perfs);
                    topology.kinds = vec![
                        CpuKind { cpus: renamed("", 0..cuts[0]).cpus, ..told.kinds[0].clone() },
                        CpuKind { cpus: renamed("", cuts[0]..cuts[1]).cpus, ..told.kinds[1].clone() },
                    ];
                    let machine = borrow_of(lender, topology.clone());
                    let ranked = machine.topology().cpus().filter(|(_, cpu)| cpu.highest_perf.is_some()).count();
                    assert!(
                        ranked == 0 || (ranked == nr_cpus && cuts[1] == nr_cpus),
                        "{lender}: {ranked} of {nr_cpus}"
                    );
                }
            }
        }
    }

    #[test]
    fn kinds_that_contradict_the_lenders_are_not_the_same() {
        // By number alone, the CPUs below would be the 12900K's P-cores or E-cores, which are 16-23.
        let told = |kinds: [(&str, std::ops::Range<usize>, u64); 2]| {
            let mut topology = shipped("core-i9-12900k");
            topology.kinds = kinds
                .into_iter()
                .map(|(name, cpus, mhz)| CpuKind { max_hertz: Some(mhz * MHZ), ..renamed(name, cpus) })
                .collect();
            let machine = borrow_of("core-i9-12900k", topology);
            [0, 15, 23].map(|cpu| machine.topology().cpu(CpuId(cpu)).speed)
        };
        assert_eq!(told([("IntelCore", 0..16, 5_200), ("IntelAtom", 16..24, 3_900)]), [1024, 1024, 564]);
        // 0.787 of 39 / 52, though the file says 0.55.
        let reversed = told([("IntelAtom", 0..16, 3_900), ("IntelCore", 16..24, 5_200)]);
        assert_eq!(reversed, [605, 605, 1024]);
        // There both are P-cores, but here they differ; CPUs of no kind are as fast as any.
        assert_eq!(told([("cpu_core", 0..8, 5_200), ("cpu_atom", 8..16, 3_900)]), [1024, 605, 1024]);
        // Alike here, but not there.
        assert_eq!(told([("a", 0..16, 5_000), ("b", 16..24, 4_900)]), [1024, 1024, 1004]);
        // Capacities come first, and are already speeds.
        let small = renamed("", 16..24).cpus;
        let mut topology = shipped("core-i9-12900k").with_capacity(&small, 800);
        topology.kinds = vec![renamed("cpu_core", 0..16), renamed("cpu_atom", 16..24)];
        let machine = borrow_of("core-i9-12900k", topology);
        let figures = ["speed", "highest_perf"].map(|name| figures(&machine, name));
        assert_eq!((figures, machine.topology().cpu(CpuId(23)).speed), ([None, None], 800));
        assert!(machine.figure("kind.cpu_atom.max").is_some(), "the rest is lent");
    }

    #[test]
    fn a_machine_of_the_same_kinds_lends_theirs() {
        let name = "core-i9-12900k";
        let mut topology = shipped(name);
        // hwloc makes two kinds of performance cores, because some are favoured.
        topology.kinds =
            vec![renamed("IntelAtom", 16..24), renamed("IntelCore", 0..12), renamed("IntelCore 2", 12..16)];
        let lend = |topology: &Topology| with_prices(name, "mine", topology.clone(), "XML", How::Measured);
        let machine = lend(&topology);
        let figure = |name: &str| machine.figure(name).map(|figure| (figure.value, figure.how));
        assert_eq!(figure("kind.IntelAtom.speed"), Some((550, How::Guess)));
        assert_eq!(figure("kind.IntelAtom.max"), Some((3_900 * MHZ, How::Guess)));
        assert_eq!(figure("kind.IntelCore 2.highest_perf"), Some((66, How::Guess)));
        assert_eq!([0, 15, 16].map(|cpu| machine.topology().cpu(CpuId(cpu)).speed), [1024, 1024, 564]);
        let range = machine.figure("kind.IntelAtom.speed").map(|figure| figure.range);
        assert_eq!(range, Some((200, 1_000)), "twice the room, inside of the bounds");
        // What the computer itself reports comes first.
        for (kind, perf) in topology.kinds.iter_mut().zip([40, 64, 67]) {
            kind.highest_perf = Some(perf);
        }
        let told = lend(&topology);
        let perf = told.figure("kind.IntelAtom.highest_perf").map(|figure| (figure.value, figure.how));
        assert_eq!(perf, Some((40, How::Measured)));
        assert_eq!(told.topology().cpu(CpuId(15)).highest_perf, Some(67));
    }
}
