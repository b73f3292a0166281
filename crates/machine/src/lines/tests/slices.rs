//! Where in the last level cache a line is: its slice.

use super::*;

#[test]
fn slices_are_nearer_and_farther_but_not_on_average() {
    let topology = from_synthetic("pack:1 l3:1 core:8 pu:1", "test", Numbering::LinuxX86).expect("valid");
    let prices = LinePrices { slice_spread: 250, ..even_prices() };
    let mut directory = Directory::new(&topology, prices, 1);
    let [a, b] = [0, 1].map(|cpu| directory.seat(CpuId(cpu)));
    let ways: Vec<u64> = (0..4000)
        .map(|index| {
            let line = Line { region: Region::Task, index };
            directory.write(&a, line, Ps::ZERO);
            directory.read(&b, line, LATE).0
        })
        .collect();
    let mean = ways.iter().sum::<u64>() / ways.len() as u64;
    assert!(mean.abs_diff(40_000) < 400, "{mean}");
    assert!(ways.iter().all(|way| (30_000..=50_000).contains(way)));
    assert!(ways.iter().any(|&way| way < 32_000) && ways.iter().any(|&way| way > 48_000));
}

#[test]
fn the_slices_of_lines_next_to_each_other_have_nothing_to_do_with_each_other() {
    const SEEDS: i64 = 1000;
    // Evenly between 20 and 60 ns: the variance of one way is this, in ps squared.
    const SPREAD: i64 = 20_000;
    const OF_ONE: i64 = SPREAD * SPREAD / 3;
    let topology = from_synthetic("pack:1 l3:1 core:2 pu:1", "test", Numbering::LinuxX86).expect("valid");
    // How much the sum of some lines' ways varies from seed to seed, in percent of the variance of independent draws.
    let variation = |lines: &[Line]| {
        let expected = lines.len() as i64 * 2 * SPREAD;
        let squares = (1..=SEEDS).map(|seed| {
            let prices = LinePrices { slice_spread: 500, ..even_prices() };
            let mut directory = Directory::new(&topology, prices, seed as u64);
            let [a, b] = [0, 1].map(|cpu| directory.seat(CpuId(cpu)));
            let way = |&line: &Line| {
                directory.write(&a, line, Ps::ZERO);
                directory.read(&b, line, LATE).0 as i64
            };
            (lines.iter().map(way).sum::<i64>() - expected).pow(2)
        });
        squares.sum::<i64>() / SEEDS * 100 / (lines.len() as i64 * OF_ONE)
    };
    for region in [Region::Task, Region::Rq] {
        for lines in [2, 16, 48] {
            for apart in [1, 5, 64] {
                let of_one: Vec<Line> = (0..lines).map(|line| Line { region, index: 640 + line * apart }).collect();
                let seen = variation(&of_one);
                assert!((80..120).contains(&seen), "{lines} lines of {region:?}, {apart} apart: {seen} %");
            }
        }
    }
}

#[test]
fn a_way_that_only_its_farthest_slice_makes_too_long_for_the_table_is_as_long_as_it_is() {
    let topology = from_synthetic("pack:2 l3:1 core:4 pu:1", "test", Numbering::LinuxX86).expect("valid");
    let mut prices = LinePrices { slice_spread: 250, ..prices() };
    // Slices are up to 10 ns nearer or farther.
    let (way, spread) = (u64::from(u32::MAX) - 5_000, 10_000);
    prices.transfer[5] = Ps(way);
    let mut directory = Directory::new(&topology, prices, 1);
    let seats = directory.seats.to_vec();
    let ways = (0..448).step_by(7).map(|index| {
        let line = Line { index, ..LINE };
        directory.atomic(&seats[0], line, Ps::ZERO);
        let usual = directory.atomic_usual(&seats[4], line, LATE);
        usual.unwrap_or_else(|| directory.atomic(&seats[4], line, LATE)).0
    });
    let ways: Vec<u64> = ways.collect();
    assert!(ways.iter().all(|taken| taken.abs_diff(way) <= spread), "{ways:?}");
    assert!(ways.iter().any(|&taken| taken > u32::MAX.into()) && ways.iter().any(|&taken| taken < way), "{ways:?}");
}
