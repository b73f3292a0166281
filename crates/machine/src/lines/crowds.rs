//! Lines that many cores wait for, on machines whose caches hand such a line from waiter to waiter.
//!
//! Requests for a line meet at its home: the part of the last level cache or of the directory that answers for it. A
//! request that waits there has already made part of its way. When its turn comes, the line only has to go from the
//! previous holder to the asker ([`LinePrices::handoff`] is that share of the whole way).
//!
//! Also, the line goes to nearby waiters before it goes far: in published figures for counters that hundreds of cores
//! add to, one long transfer comes with many short ones (docs/cost-model.md). So the waiters of one core that ask
//! before the first of them has its turn are one *party*; so are those of one last level cache, and those of one
//! package. The first of a party gets the line from outside, all others get it from within the party. The model has
//! what each request adds to the line's round, not its place in the round: each still waits until all who asked before
//! it have had their turn.
//!
//! None of this applies on machines without such a share. Nor does it apply to locks: their own rules decide the order,
//! and their line travels for each look at the lock.

use super::berths::Berths;
use super::entry::{Entry, MODIFIED};
use super::ways::Ways;
use super::{LinePrices, Seat};
use crate::topology::{Distance, Topology};
use sched::layout::Line;
use units::{Permille, Ps};

/// The share of a way that is left for a request that waits for a lock: all of it.
pub(super) const WHOLE: Permille = Permille::new(1000);

/// How many lines' crowds are known at a time. One more line replaces another, whose crowd then forms anew.
const KNOWN: usize = 64;

#[derive(Debug)]
pub(super) struct Crowds {
    pub(super) handoff: Permille,
    /// A request that waits longer than this has others waiting before it. `u64::MAX` on machines without handing on.
    patience: Ps,
    known: Vec<Crowd>,
    /// For each last level cache, the [berth](Berths) of one of its cores, and its package.
    llcs: Vec<(u16, u16)>,
}

/// The cores that wait for one line.
#[derive(Clone, Debug)]
struct Crowd {
    line: Option<Line>,
    /// For the latest party of each core, last level cache and package: when its first member has its turn, so that
    /// nobody can join any more.
    cores: Vec<Ps>,
    llcs: Vec<Ps>,
    packages: Vec<Ps>,
}

impl Crowds {
    pub(super) fn new(topology: &Topology, berths: &Berths, prices: &LinePrices) -> Crowds {
        let modelled = prices.handoff < 1000;
        let mut llcs = vec![(0, 0); topology.llcs().len()];
        for (_, cpu) in topology.cpus() {
            llcs[cpu.llc as usize] = (berths.of_core[cpu.core as usize], cpu.package);
        }
        let packages = vec![Ps::ZERO; topology.packages().len()];
        let crowd =
            Crowd { line: None, cores: vec![Ps::ZERO; berths.len()], llcs: vec![Ps::ZERO; llcs.len()], packages };
        Crowds {
            handoff: Permille::new(prices.handoff),
            patience: if modelled { prices.transfer[Distance::Llc.index()] } else { Ps(u64::MAX) },
            known: if modelled { vec![crowd; KNOWN] } else { Vec::new() },
            llcs,
        }
    }

    /// A request that waits no longer than this is in no crowd.
    pub(super) fn patience(&self) -> Ps {
        self.patience
    }

    /// Whether `by` asks at `now` for a line that another core modified and others already wait for.
    #[inline(always)]
    pub(super) fn is_crowded(&self, entry: &Entry, by: &Seat, now: Ps) -> bool {
        entry.wait(now) > self.patience && entry.holder & MODIFIED != 0 && entry.holder != by.alone
    }

    /// How long such a line travels to `by`, which asks at `now`: from its own party, from the nearest other party, or
    /// `way`, as from whichever core asked last.
    #[inline(never)]
    pub(super) fn nearest(&mut self, line: Line, by: &Seat, now: Ps, way: Ps, ways: &Ways) -> Ps {
        let crowd = &mut self.known[line.index as usize % KNOWN];
        if crowd.line != Some(line) {
            crowd.line = Some(line);
            for parties in [&mut crowd.cores, &mut crowd.llcs, &mut crowd.packages] {
                parties.fill(Ps::ZERO);
            }
        }
        if crowd.cores[by.core as usize] > now {
            return Ps::ZERO;
        }
        if crowd.llcs[by.llc()] > now {
            return way.min(ways.near);
        }
        let (_, own) = self.llcs[by.llc()];
        let joins = crowd.packages[own as usize] > now;
        let others = self.llcs.iter().zip(&crowd.llcs).filter(|&(_, &turn)| turn > now).map(|(&llc, _)| llc);
        let others = others.filter(|&(_, package)| (package == own) == joins);
        others.map(|(core, _)| ways.between(core, by)).fold(way, Ps::min)
    }

    /// `by`, which asked at `now` for the [nearest](Crowds::nearest) way, has its turn at `turn`: where its core, cache
    /// or package has no open party, it begins one.
    pub(super) fn join(&mut self, line: Line, by: &Seat, now: Ps, turn: Ps) {
        let crowd = &mut self.known[line.index as usize % KNOWN];
        debug_assert_eq!(crowd.line, Some(line));
        let (_, package) = self.llcs[by.llc()];
        let Crowd { cores, llcs, packages, .. } = crowd;
        for party in [&mut cores[by.core as usize], &mut llcs[by.llc()], &mut packages[package as usize]] {
            if *party <= now {
                *party = turn;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{LATE, LINE, prices};
    use super::super::{Directory, LinePrices, Seat};
    use crate::topology::{Numbering, from_synthetic};
    use units::Ps;

    /// Two packages of two last level caches of two cores with two threads, siblings numbered side by side; 40 ns
    /// within a cache, 60 ns within a package, 118 ns between packages; half of a way is left after a wait.
    fn crowd() -> (Vec<Seat>, Directory) {
        let topology = from_synthetic("pack:2 l3:2 core:2 pu:2", "test", Numbering::AsListed).expect("valid");
        let mut directory = Directory::new(&topology, LinePrices { handoff: 500, ..prices() }, 1);
        let seats = directory.seats.to_vec();
        directory.atomic(&seats[0], LINE, Ps::ZERO);
        (seats, directory)
    }

    /// These CPUs all ask at [`LATE`]: when each has what it asked for, in nanoseconds from then.
    fn served(d: &mut Directory, seats: &[Seat], cpus: &[usize]) -> Vec<u64> {
        cpus.iter().map(|&cpu| d.atomic(&seats[cpu], LINE, LATE).0 / 1000).collect()
    }

    #[test]
    fn a_request_travels_while_it_waits() {
        let (seats, mut d) = crowd();
        assert_eq!(served(&mut d, &seats, &[2, 0, 2]), [40, 60, 80]);
        // A request that comes when the line is nearly there has travelled only for as long as it waited.
        let (seats, mut d) = crowd();
        d.atomic(&seats[2], LINE, LATE);
        let asked = LATE + Ps::from_ns(35);
        assert_eq!(d.atomic(&seats[0], LINE, asked), Ps::from_ns(40));
        assert_eq!(d.read(&seats[4], LINE, asked), Ps::from_ns(40 + 30));
    }

    #[test]
    fn one_of_a_party_has_the_line_come_from_afar() {
        let (seats, mut d) = crowd();
        let order = [2, 0, 8, 4, 12, 10, 1, 3, 6, 14, 9];
        // 40 and 40 / 2; from here on others wait. Then 118 / 2 for each of: to the other package, and back. The first
        // of its cache but not of its package, 60 / 2; its neighbour, 40 / 2; the same two in the first package; two
        // whose caches already wait; and a sibling, which gets the line together with CPU 8.
        assert_eq!(served(&mut d, &seats, &order), [40, 60, 119, 178, 208, 228, 258, 278, 298, 318, 318]);
        // In the order of the requests the line would cross between the packages five times.
        let topology = from_synthetic("pack:2 l3:2 core:2 pu:2", "test", Numbering::AsListed).expect("valid");
        let mut plain = Directory::new(&topology, prices(), 1);
        plain.atomic(&seats[0], LINE, Ps::ZERO);
        let last = 5 * 118 + 3 * 60 + 3 * 40;
        assert_eq!(served(&mut plain, &seats, &order).last(), Some(&last));
    }

    #[test]
    fn who_comes_after_his_partys_first_begins_another() {
        let (seats, mut d) = crowd();
        assert_eq!(served(&mut d, &seats, &[2, 0, 8, 4]), [40, 60, 119, 178]);
        // The line leaves for CPU 8 after 60 ns; until then CPU 8's neighbour can join its party.
        let before = LATE + Ps::from_ns(59);
        assert_eq!(d.atomic(&seats[10], LINE, before), Ps::from_ns(178 - 59 + 20));
        // A later request waits for all of these, and for a long way.
        let after = LATE + Ps::from_ns(60);
        assert_eq!(
            d.atomic(&seats[12], LINE, after),
            Ps::from_ns(198 - 60 + 30),
            "from CPU 10, in the order of the requests"
        );
        assert_eq!(d.atomic(&seats[6], LINE, after), Ps::from_ns(228 - 60 + 20), "CPU 4's party is open");
        let late = LATE + Ps::from_ns(200);
        assert_eq!(
            d.atomic(&seats[10], LINE, late),
            Ps::from_ns(248 - 200 + 118 - 48),
            "he has waited for less than half of the way"
        );
    }

    #[test]
    fn whoever_waits_for_a_lock_waits_as_ever() {
        let topology = from_synthetic("pack:2 l3:2 core:2 pu:2", "test", Numbering::AsListed).expect("valid");
        let (seats, mut d) = crowd();
        let mut plain = Directory::new(&topology, prices(), 1);
        plain.atomic(&seats[0], LINE, Ps::ZERO);
        for cpu in [2, 8, 4, 12, 10, 0, 6, 14] {
            let stalls = [&mut d, &mut plain].map(|lines| lines.lock(&seats[cpu], LINE, LATE));
            assert_eq!(stalls[0], stalls[1], "{cpu}");
        }
    }
}
