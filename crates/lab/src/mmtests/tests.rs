//! Tables against what MMTests itself printed for the samples of [`crate::tables::fixtures`], at the commits that
//! [`Vintage`] names. (R's `qnorm` was replaced by one of the same seven digits; pipetest's rounding of 2018 was
//! switched off.)

use super::*;
use crate::statistics::{Better, percent_change};
use crate::tables::fixtures::{hackbench, pipetest, throughput};
use crate::tables::{Operation, TimeStatistic};

/// Compares without the title; `expected` begins and ends with a line break for readability.
fn assert_table(table: &Table, vintage: Vintage, stars: Stars, expected: &str) {
    let text = render(table, vintage, stars);
    let body =
        text.strip_prefix(table.title()).and_then(|rest| rest.strip_prefix('\n')).expect("the title comes first");
    assert_eq!(format!("\n{body}"), expected, "\n{text}");
}

#[test]
fn hackbench_of_2016() {
    let expected = r"
                        4.5.0-rc1             4.5.0-rc1
                          vanilla          nostats-v3r1
Min      1       0.1650 (  0.00%)      0.1580 (  4.24%)
Min      4       0.4640 (  0.00%)      0.4590 (  1.08%)
Min      12      1.2650 (  0.00%)      1.2610 (  0.32%)
Amean    1       0.1691 (  0.00%)      0.1634 (  3.38%)
Amean    4       0.4687 (  0.00%)      0.4630 (  1.22%)
Amean    12      1.2691 (  0.00%)      1.2664 (  0.21%)
Stddev   1       0.0032 (  0.00%)      0.0031 (  2.24%)
Stddev   4       0.0035 (  0.00%)      0.0027 ( 21.05%)
Stddev   12      0.0032 (  0.00%)      0.0031 (  2.24%)
CoeffVar 1       1.8810 (  0.00%)      1.9031 ( -1.18%)
CoeffVar 4       0.7365 (  0.00%)      0.5887 ( 20.08%)
CoeffVar 12      0.2507 (  0.00%)      0.2456 (  2.03%)
Max      1       0.1740 (  0.00%)      0.1680 (  3.45%)
Max      4       0.4740 (  0.00%)      0.4670 (  1.48%)
Max      12      1.2740 (  0.00%)      1.2710 (  0.24%)
";
    assert_table(&hackbench(2, 7), Vintage::Feb2016, Stars::OfTheVintage, expected);
}

#[test]
fn throughput_of_2016_with_three_arms() {
    let expected = r"
                         4.5.0-rc1             4.5.0-rc1                   4.6
                           vanilla          nostats-v3r1                  next
Min      1        101.30 (  0.00%)      105.90 (  4.54%)      110.50 (  9.08%)
Min      64      6402.00 (  0.00%)     6513.70 (  1.74%)     6617.90 (  3.37%)
Min      128    12804.00 (  0.00%)    13024.50 (  1.72%)    13235.30 (  3.37%)
Hmean    1        119.95 (  0.00%)      124.61 (  3.89%)      129.27 (  7.77%)
Hmean    64      6423.01 (  0.00%)     6534.71 (  1.74%)     6643.05 (  3.43%)
Hmean    128    12825.74 (  0.00%)    13046.24 (  1.72%)    13256.68 (  3.36%)
Stddev   1         14.17 (  0.00%)       14.17 (  0.00%)       14.17 ( -0.00%)
Stddev   64        14.34 (  0.00%)       14.34 (  0.00%)       14.74 ( -2.76%)
Stddev   128       14.34 (  0.00%)       14.34 (  0.00%)       14.26 (  0.59%)
CoeffVar 1         11.65 (  0.00%)       11.23 (  3.64%)       10.83 (  7.03%)
CoeffVar 64         0.22 (  0.00%)        0.22 (  1.71%)        0.22 (  0.65%)
CoeffVar 128        0.11 (  0.00%)        0.11 (  1.69%)        0.11 (  3.82%)
Max      1        142.30 (  0.00%)      146.90 (  3.23%)      151.50 (  6.47%)
Max      64      6444.80 (  0.00%)     6556.50 (  1.73%)     6666.20 (  3.44%)
Max      128    12846.80 (  0.00%)    13067.30 (  1.72%)    13278.10 (  3.36%)
";
    assert_table(&throughput(3, 3), Vintage::Feb2016, Stars::OfTheVintage, expected);
}

#[test]
fn pipetest_of_2016() {
    let expected = r"
                             4.5.0-rc1             4.5.0-rc1
                               vanilla          nostats-v3r1
Min         Time        4.13 (  0.00%)        4.05 (  1.99%)
1st-qrtle   Time        4.33 (  0.00%)        4.23 (  2.15%)
2nd-qrtle   Time        4.50 (  0.00%)        4.41 (  2.09%)
3rd-qrtle   Time        4.68 (  0.00%)        4.58 (  2.01%)
Max-90%     Time        4.78 (  0.00%)        4.69 (  1.88%)
Max-93%     Time        4.80 (  0.00%)        4.71 (  1.94%)
Max-95%     Time        4.82 (  0.00%)        4.72 (  1.99%)
Max-99%     Time        4.85 (  0.00%)        4.76 (  1.94%)
Max         Time        4.85 (  0.00%)        4.76 (  1.96%)
Mean        Time        4.49 (  0.00%)        4.40 (  2.00%)
Best99%Mean Time        4.49 (  0.00%)        4.40 (  2.00%)
Best95%Mean Time        4.48 (  0.00%)        4.39 (  2.00%)
Best90%Mean Time        4.46 (  0.00%)        4.37 (  2.01%)
Best50%Mean Time        4.32 (  0.00%)        4.23 (  2.09%)
Best10%Mean Time        4.17 (  0.00%)        4.09 (  2.11%)
Best5%Mean  Time        4.16 (  0.00%)        4.07 (  2.16%)
Best1%Mean  Time        4.14 (  0.00%)        4.05 (  2.11%)
";
    assert_table(&pipetest(2, 1), Vintage::Feb2016, Stars::OfTheVintage, expected);
}

#[test]
fn hackbench_of_2018() {
    let expected = r"
                          4.5.0-rc1              4.5.0-rc1                    4.6
                            vanilla           nostats-v3r1                   next
Min       1       0.1670 (   0.00%)      0.1580 (   5.39%)      0.1540 (   7.78%)
Min       4       0.4650 (   0.00%)      0.4600 (   1.08%)      0.4520 (   2.80%)
Min       12      1.2670 (   0.00%)      1.2610 (   0.47%)      1.2600 (   0.55%)
Amean     1       0.1703 (   0.00%)      0.1620 (   4.89%)      0.1573 (   7.63%)
Amean     4       0.4683 (   0.00%)      0.4637 (   1.00%)      0.4553 (   2.78%)
Amean     12      1.2703 (   0.00%)      1.2650 (   0.42%)      1.2633 (   0.55%)
Stddev    1       0.0035 (   0.00%)      0.0040 ( -13.90%)      0.0035 (  -0.00%)
Stddev    4       0.0035 (   0.00%)      0.0035 (  -0.00%)      0.0035 (  -0.00%)
Stddev    12      0.0035 (   0.00%)      0.0040 ( -13.90%)      0.0035 (   0.00%)
CoeffVar  1       2.0618 (   0.00%)      2.4691 ( -19.76%)      2.2321 (  -8.26%)
CoeffVar  4       0.7499 (   0.00%)      0.7574 (  -1.01%)      0.7713 (  -2.86%)
CoeffVar  12      0.2765 (   0.00%)      0.3162 ( -14.38%)      0.2780 (  -0.55%)
Max       1       0.1740 (   0.00%)      0.1660 (   4.60%)      0.1610 (   7.47%)
Max       4       0.4720 (   0.00%)      0.4670 (   1.06%)      0.4590 (   2.75%)
Max       12      1.2740 (   0.00%)      1.2690 (   0.39%)      1.2670 (   0.55%)
BAmean-50 1       0.1685 (   0.00%)      0.1600 (   5.04%)      0.1555 (   7.72%)
BAmean-50 4       0.4665 (   0.00%)      0.4620 (   0.96%)      0.4535 (   2.79%)
BAmean-50 12      1.2685 (   0.00%)      1.2630 (   0.43%)      1.2615 (   0.55%)
BAmean-95 1       0.1703 (   0.00%)      0.1620 (   4.89%)      0.1573 (   7.63%)
BAmean-95 4       0.4683 (   0.00%)      0.4637 (   1.00%)      0.4553 (   2.78%)
BAmean-95 12      1.2703 (   0.00%)      1.2650 (   0.42%)      1.2633 (   0.55%)
BAmean-99 1       0.1703 (   0.00%)      0.1620 (   4.89%)      0.1573 (   7.63%)
BAmean-99 4       0.4683 (   0.00%)      0.4637 (   1.00%)      0.4553 (   2.78%)
BAmean-99 12      1.2703 (   0.00%)      1.2650 (   0.42%)      1.2633 (   0.55%)
";
    assert_table(&hackbench(3, 3), Vintage::Jan2018, Stars::OfTheVintage, expected);
}

#[test]
fn a_single_sample_of_2018_has_no_deviation() {
    let expected = r"
                          4.5.0-rc1              4.5.0-rc1
                            vanilla           nostats-v3r1
Min       1       0.1670 (   0.00%)      0.1660 (   0.60%)
Min       4       0.4650 (   0.00%)      0.4640 (   0.22%)
Min       12      1.2670 (   0.00%)      1.2690 (  -0.16%)
Amean     1       0.1670 (   0.00%)      0.1660 (   0.60%)
Amean     4       0.4650 (   0.00%)      0.4640 (   0.22%)
Amean     12      1.2670 (   0.00%)      1.2690 (  -0.16%)
Stddev    1       0.0000 (   0.00%)      0.0000 (   0.00%)
Stddev    4       0.0000 (   0.00%)      0.0000 (   0.00%)
Stddev    12      0.0000 (   0.00%)      0.0000 (   0.00%)
CoeffVar  1       0.0000 (   0.00%)      0.0000 (   0.00%)
CoeffVar  4       0.0000 (   0.00%)      0.0000 (   0.00%)
CoeffVar  12      0.0000 (   0.00%)      0.0000 (   0.00%)
Max       1       0.1670 (   0.00%)      0.1660 (   0.60%)
Max       4       0.4650 (   0.00%)      0.4640 (   0.22%)
Max       12      1.2670 (   0.00%)      1.2690 (  -0.16%)
BAmean-50 1       0.1670 (   0.00%)      0.1660 (   0.60%)
BAmean-50 4       0.4650 (   0.00%)      0.4640 (   0.22%)
BAmean-50 12      1.2670 (   0.00%)      1.2690 (  -0.16%)
BAmean-95 1       0.1670 (   0.00%)      0.1660 (   0.60%)
BAmean-95 4       0.4650 (   0.00%)      0.4640 (   0.22%)
BAmean-95 12      1.2670 (   0.00%)      1.2690 (  -0.16%)
BAmean-99 1       0.1670 (   0.00%)      0.1660 (   0.60%)
BAmean-99 4       0.4650 (   0.00%)      0.4640 (   0.22%)
BAmean-99 12      1.2670 (   0.00%)      1.2690 (  -0.16%)
";
    assert_table(&hackbench(2, 1), Vintage::Jan2018, Stars::OfTheVintage, expected);
}

#[test]
fn throughput_of_2018() {
    let expected = r"
                           4.5.0-rc1              4.5.0-rc1                    4.6
                             vanilla           nostats-v3r1                   next
Min       1        101.30 (   0.00%)      105.90 (   4.54%)      110.50 (   9.08%)
Min       64      6402.00 (   0.00%)     6513.70 (   1.74%)     6617.90 (   3.37%)
Min       128    12804.00 (   0.00%)    13024.50 (   1.72%)    13235.30 (   3.37%)
Hmean     1        119.95 (   0.00%)      124.61 (   3.89%)      129.27 (   7.77%)
Hmean     64      6423.01 (   0.00%)     6534.71 (   1.74%)     6643.05 (   3.43%)
Hmean     128    12825.74 (   0.00%)    13046.24 (   1.72%)    13256.68 (   3.36%)
Stddev    1         14.67 (   0.00%)       14.67 (   0.00%)       14.67 (  -0.00%)
Stddev    64        14.84 (   0.00%)       14.84 (   0.00%)       15.25 (  -2.76%)
Stddev    128       14.84 (   0.00%)       14.84 (   0.00%)       14.76 (   0.59%)
CoeffVar  1         12.06 (   0.00%)       11.62 (   3.64%)       11.21 (   7.03%)
CoeffVar  64         0.23 (   0.00%)        0.23 (   1.71%)        0.23 (   0.65%)
CoeffVar  128        0.12 (   0.00%)        0.11 (   1.69%)        0.11 (   3.82%)
Max       1        142.30 (   0.00%)      146.90 (   3.23%)      151.50 (   6.47%)
Max       64      6444.80 (   0.00%)     6556.50 (   1.73%)     6666.20 (   3.44%)
Max       128    12846.80 (   0.00%)    13067.30 (   1.72%)    13278.10 (   3.36%)
BHmean-50 1        134.35 (   0.00%)      138.96 (   3.43%)      143.57 (   6.86%)
BHmean-50 64      6436.15 (   0.00%)     6547.85 (   1.74%)     6656.49 (   3.42%)
BHmean-50 128    12838.93 (   0.00%)    13059.43 (   1.72%)    13269.71 (   3.36%)
BHmean-95 1        121.55 (   0.00%)      126.21 (   3.83%)      130.86 (   7.66%)
BHmean-95 64      6424.51 (   0.00%)     6536.21 (   1.74%)     6644.86 (   3.43%)
BHmean-95 128    12827.30 (   0.00%)    13047.80 (   1.72%)    13258.21 (   3.36%)
BHmean-99 1        121.55 (   0.00%)      126.21 (   3.83%)      130.86 (   7.66%)
BHmean-99 64      6424.51 (   0.00%)     6536.21 (   1.74%)     6644.86 (   3.43%)
BHmean-99 128    12827.30 (   0.00%)    13047.80 (   1.72%)    13258.21 (   3.36%)
";
    assert_table(&throughput(3, 3), Vintage::Jan2018, Stars::OfTheVintage, expected);
}

#[test]
fn pipetest_of_2018() {
    let expected = r"
                               4.5.0-rc1              4.5.0-rc1
                                 vanilla           nostats-v3r1
Min          Time        4.13 (   0.00%)        4.05 (   1.99%)
1st-qrtle    Time        4.33 (   0.00%)        4.23 (   2.15%)
2nd-qrtle    Time        4.50 (   0.00%)        4.41 (   2.09%)
3rd-qrtle    Time        4.68 (   0.00%)        4.58 (   2.01%)
Max-90%      Time        4.78 (   0.00%)        4.69 (   1.88%)
Max-95%      Time        4.82 (   0.00%)        4.72 (   1.99%)
Max-99%      Time        4.85 (   0.00%)        4.76 (   1.94%)
Max          Time        4.85 (   0.00%)        4.76 (   1.96%)
Amean        Time        4.49 (   0.00%)        4.40 (   2.00%)
Stddev       Time        0.21 (   0.00%)        0.21 (   0.25%)
Coeff        Time        4.64 (   0.00%)        4.73 (  -1.79%)
Best99%Amean Time        4.49 (   0.00%)        4.40 (   2.00%)
Best95%Amean Time        4.48 (   0.00%)        4.39 (   2.00%)
Best90%Amean Time        4.46 (   0.00%)        4.37 (   2.01%)
Best75%Amean Time        4.41 (   0.00%)        4.32 (   2.04%)
Best50%Amean Time        4.32 (   0.00%)        4.23 (   2.09%)
Best25%Amean Time        4.23 (   0.00%)        4.14 (   2.13%)
";
    assert_table(&pipetest(2, 1), Vintage::Jan2018, Stars::OfTheVintage, expected);
}

#[test]
fn hackbench_of_today() {
    let expected = r"
                          4.5.0-rc1              4.5.0-rc1
                            vanilla           nostats-v3r1
Min       1       0.1650 (   0.00%)      0.1580 (   4.24%)
Min       4       0.4640 (   0.00%)      0.4590 (   1.08%)
Min       12      1.2650 (   0.00%)      1.2610 (   0.32%)
Amean     1       0.1691 (   0.00%)      0.1634 (   3.38%)
Amean     4       0.4687 (   0.00%)      0.4630 (   1.22%)
Amean     12      1.2691 (   0.00%)      1.2664 (   0.21%)
Stddev    1       0.0034 (   0.00%)      0.0034 (   2.24%)
Stddev    4       0.0037 (   0.00%)      0.0029 (  21.05%)
Stddev    12      0.0034 (   0.00%)      0.0034 (   2.24%)
CoeffVar  1       2.0317 (   0.00%)      2.0556 (  -1.18%)
CoeffVar  4       0.7956 (   0.00%)      0.6358 (  20.08%)
CoeffVar  12      0.2708 (   0.00%)      0.2653 (   2.03%)
Max       1       0.1740 (   0.00%)      0.1680 (   3.45%)
Max       4       0.4740 (   0.00%)      0.4670 (   1.48%)
Max       12      1.2740 (   0.00%)      1.2710 (   0.24%)
BAmean.95 1       0.1683 (   0.00%)      0.1627 (   3.37%)
BAmean.95 4       0.4678 (   0.00%)      0.4623 (   1.18%)
BAmean.95 12      1.2683 (   0.00%)      1.2657 (   0.21%)
";
    assert_table(&hackbench(2, 7), Vintage::Now, Stars::OfTheVintage, expected);
}

#[test]
fn throughput_of_today_bears_stars_on_its_mean() {
    let expected = r"
                           4.5.0-rc1              4.5.0-rc1                    4.6
                             vanilla           nostats-v3r1                   next
Min       1        101.30 (   0.00%)      105.90 (   4.54%)      110.50 (   9.08%)
Min       64      6402.00 (   0.00%)     6513.70 (   1.74%)     6617.90 (   3.37%)
Min       128    12804.00 (   0.00%)    13024.50 (   1.72%)    13235.30 (   3.37%)
Hmean     1        119.95 (   0.00%)      124.61 (   3.89%)      129.27 (   7.77%)
Hmean     64      6423.01 (   0.00%)     6534.71 *   1.74%*     6643.05 *   3.43%*
Hmean     128    12825.74 (   0.00%)    13046.24 *   1.72%*    13256.68 *   3.36%*
HStddev   1         14.20 (   0.00%)       14.19 (   0.01%)       14.19 (   0.02%)
HStddev   64        14.34 (   0.00%)       14.34 (  -0.00%)       14.74 (  -2.76%)
HStddev   128       14.34 (   0.00%)       14.34 (   0.00%)       14.26 (   0.59%)
HCoeffVar 1         11.83 (   0.00%)       11.39 (   3.75%)       10.98 (   7.22%)
HCoeffVar 64         0.22 (   0.00%)        0.22 (   1.71%)        0.22 (   0.65%)
HCoeffVar 128        0.11 (   0.00%)        0.11 (   1.69%)        0.11 (   3.82%)
Max       1        142.30 (   0.00%)      146.90 (   3.23%)      151.50 (   6.47%)
Max       64      6444.80 (   0.00%)     6556.50 (   1.73%)     6666.20 (   3.44%)
Max       128    12846.80 (   0.00%)    13067.30 (   1.72%)    13278.10 (   3.36%)
BHmean.95 1        121.55 (   0.00%)      126.21 (   3.83%)      130.86 (   7.66%)
BHmean.95 64      6424.51 (   0.00%)     6536.21 (   1.74%)     6644.86 (   3.43%)
BHmean.95 128    12827.30 (   0.00%)    13047.80 (   1.72%)    13258.21 (   3.36%)
";
    assert_table(&throughput(3, 3), Vintage::Now, Stars::OfTheVintage, expected);
}

#[test]
fn stars_may_be_forced_and_forbidden() {
    let lines = |stars| {
        let text = render(&throughput(2, 3), Vintage::Feb2016, stars);
        text.lines().filter(|line| line.contains('*')).map(str::to_string).collect::<Vec<_>>()
    };
    assert_eq!(lines(Stars::OfTheVintage), [] as [String; 0]);
    assert_eq!(
        lines(Stars::Significant),
        [
            "Hmean    64      6423.01 (  0.00%)     6534.71 *  1.74%*",
            "Hmean    128    12825.74 (  0.00%)    13046.24 *  1.72%*",
        ]
    );
    assert!(!render(&throughput(2, 3), Vintage::Now, Stars::Never).contains('*'));
}

/// The published quantiles of pipetest (Linux 4.5-rc1, schedstats on and off), laid out as a table of their time.
#[test]
fn the_published_pipetest() {
    let before = [4.13, 4.38, 4.46, 4.56, 4.67, 4.71, 4.74, 4.88, 4.93, 4.48, 4.47, 4.46, 4.45, 4.36, 4.23, 4.19, 4.13];
    let after = [3.99, 4.27, 4.39, 4.51, 4.60, 4.65, 4.71, 4.79, 4.83, 4.39, 4.39, 4.38, 4.36, 4.25, 4.10, 4.06, 4.00];
    let cell = |base, value| Cell { value, percent: percent_change(Better::Lower, base, value), starred: false };
    let lines: Vec<Line> = TimeStatistic::ALL
        .iter()
        .zip(before.iter().zip(after))
        .map(|(statistic, (&base, new))| Line {
            statistic: statistic.label().into(),
            operation: "Time".into(),
            cells: vec![cell(base, base), cell(base, new)],
        })
        .collect();
    let arms = ["4.5.0-rc1-vanilla".to_string(), "4.5.0-rc1-nostats-v3r1".to_string()];
    let expected = r"
                             4.5.0-rc1             4.5.0-rc1
                               vanilla          nostats-v3r1
Min         Time        4.13 (  0.00%)        3.99 (  3.39%)
1st-qrtle   Time        4.38 (  0.00%)        4.27 (  2.51%)
2nd-qrtle   Time        4.46 (  0.00%)        4.39 (  1.57%)
3rd-qrtle   Time        4.56 (  0.00%)        4.51 (  1.10%)
Max-90%     Time        4.67 (  0.00%)        4.60 (  1.50%)
Max-93%     Time        4.71 (  0.00%)        4.65 (  1.27%)
Max-95%     Time        4.74 (  0.00%)        4.71 (  0.63%)
Max-99%     Time        4.88 (  0.00%)        4.79 (  1.84%)
Max         Time        4.93 (  0.00%)        4.83 (  2.03%)
Mean        Time        4.48 (  0.00%)        4.39 (  2.01%)
Best99%Mean Time        4.47 (  0.00%)        4.39 (  1.79%)
Best95%Mean Time        4.46 (  0.00%)        4.38 (  1.79%)
Best90%Mean Time        4.45 (  0.00%)        4.36 (  2.02%)
Best50%Mean Time        4.36 (  0.00%)        4.25 (  2.52%)
Best10%Mean Time        4.23 (  0.00%)        4.10 (  3.07%)
Best5%Mean  Time        4.19 (  0.00%)        4.06 (  3.10%)
Best1%Mean  Time        4.13 (  0.00%)        4.00 (  3.15%)
";
    assert_eq!(format!("\n{}", lay_out(&arms, &lines, 6, 2)), expected);
}

#[test]
fn several_iterations_of_pipetest_show_the_mean_of_each_statistic() {
    let table = pipetest(2, 4);
    let text = render(&table, Vintage::Feb2016, Stars::OfTheVintage);
    let worst: f64 = table.operations[0].arms[0].iter().map(|run| run.iter().copied().fold(0.0, f64::max)).sum();
    let line = text.lines().find(|line| line.starts_with("Max  ")).unwrap();
    assert!(line.starts_with(&format!("Max         Time{:>12.2} (  0.00%)", worst / 4.0)), "{line}");
    // The current MMTests has no pipetest: the rows of 2016 in the current widths.
    let today = render(&table, Vintage::Now, Stars::Never);
    assert_eq!(today.lines().count(), text.lines().count());
    assert!(today.contains("\nBest99%Mean Time        4.49 (   0.00%)"), "{today}");
}

#[test]
fn a_single_figure_has_a_single_row() {
    let arms = |values: [f64; 2]| values.map(|value| vec![vec![value]]).to_vec();
    let table = Table {
        workload: "specjbb2015".into(),
        class: Class::Singleops { figure: "Ops".into() },
        better: Better::Higher,
        decimals: 2,
        operations: vec![
            Operation { label: "Max-jOPS".into(), arms: arms([907_533.0, 925_684.0]) },
            Operation { label: "Critical-jOPS".into(), arms: arms([134_877.0, 0.0]) },
        ],
        ..hackbench(2, 1)
    };
    let expected = r"
                               4.5.0-rc1              4.5.0-rc1
                                 vanilla           nostats-v3r1
Ops Max-jOPS        907533.00 (   0.00%)   925684.00 (   2.00%)
Ops Critical-jOPS   134877.00 (   0.00%)        0.00 (   0.00%)
";
    assert_table(&table, Vintage::Jan2018, Stars::OfTheVintage, expected);
}

#[test]
fn rates_of_zero_have_no_harmonic_mean() {
    let mut table = throughput(2, 3);
    table.operations.truncate(1);
    table.operations[0].arms[1][1][2] = 0.0;
    for vintage in [Vintage::Feb2016, Vintage::Jan2018, Vintage::Now] {
        let text = render(&table, vintage, Stars::OfTheVintage);
        let mean = text.lines().find(|line| line.starts_with("Hmean")).unwrap();
        let end = if vintage == Vintage::Feb2016 { "        0.00 (  0.00%)" } else { "        0.00 (   0.00%)" };
        assert!(mean.ends_with(end), "{mean}");
    }
}

#[test]
fn names_are_parted_at_the_first_hyphen_but_for_release_candidates() {
    let parts = [
        ("4.5.0-rc1-vanilla", ("4.5.0-rc1", "vanilla")),
        ("4.5.0-rc1-nostats-v3r1", ("4.5.0-rc1", "nostats-v3r1")),
        ("4.5.0-vanilla-rc1", ("4.5.0", "vanilla-rc1")),
        ("4.16-vanilla", ("4.16", "vanilla")),
        ("v4.5-rc1", ("v4.5-rc1", "")),
        ("v6.1-rc12-fix", ("v6.1-rc12", "fix")),
        ("schedstats-rcu", ("schedstats", "rcu")),
        ("4.5-rc1+", ("4.5-rc1", "+")),
        ("off", ("off", "")),
        ("", ("", "")),
        ("-x", ("", "x")),
    ];
    for (name, expected) in parts {
        assert_eq!(split_name(name), expected, "{name}");
    }
}

#[test]
fn columns_keep_their_width_under_any_name() {
    let mut table = hackbench(2, 3);
    table.arms = vec!["on".into(), "off".into()];
    let text = render(&table, Vintage::Feb2016, Stars::OfTheVintage);
    let widths: Vec<usize> = text.lines().skip(1).map(|line| line.chars().count()).collect();
    assert!(widths.iter().all(|&width| width == 8 + 1 + 2 + 2 * 22), "{widths:?}");
    assert!(text.lines().nth(1).unwrap().ends_with("                    on                   off"));
}

#[test]
fn a_single_arm_has_the_rows_of_the_table() {
    let table = pipetest(2, 3);
    for vintage in [Vintage::Feb2016, Vintage::Jan2018, Vintage::Now] {
        let text = render(&table, vintage, Stars::Never);
        let rows = series(&table, vintage);
        assert_eq!(text.lines().count(), 3 + rows.len());
        for (line, row) in text.lines().skip(3).zip(&rows) {
            let mean = row.arms[0].iter().sum::<f64>() / 3.0;
            assert_eq!(row.arms[0].len(), 3);
            let begin = format!("{} ", row.label);
            assert!(line.starts_with(&begin) && line.contains(&format!(" {mean:.2} (")), "{line} and {mean}");
        }
    }
    let other = hackbench(2, 3);
    assert_eq!(series(&other, Vintage::Jan2018), other.series());
}

#[test]
fn changes_are_of_the_rows_that_are_printed_but_for_how_far_samples_lie_apart() {
    for (vintage, rows) in [(Vintage::Feb2016, 17), (Vintage::Jan2018, 15), (Vintage::Now, 17)] {
        for table in [pipetest(2, 3), two_times()] {
            let text = render(&table, vintage, Stars::Never);
            let compared = compared(&table, vintage);
            assert_eq!(compared.len(), rows * table.operations.len());
            for row in &compared {
                let printed =
                    |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ").starts_with(&row.label);
                assert!(text.lines().skip(3).any(printed), "{} is not in {text}", row.label);
                assert!(!row.label.starts_with("Stddev") && !row.label.starts_with("Coeff"), "{}", row.label);
                let (statistic, _) = row.label.split_once(' ').unwrap_or((&row.label, ""));
                assert!(compares_time(vintage, statistic));
            }
        }
    }
    assert!(!compares_time(Vintage::Jan2018, "Mean") && !compares_time(Vintage::Jan2018, "Stddev"));
}

/// Times of two operations.
fn two_times() -> Table {
    let mut table = pipetest(2, 3);
    let other = Operation { label: "other".into(), ..table.operations[0].clone() };
    table.operations[0].label = "one".into();
    table.operations.push(other);
    table
}

/// The value of a row for one arm.
fn shown(table: &Table, vintage: Vintage, label: &str) -> f64 {
    let text = render(table, vintage, Stars::Never);
    let line = text.lines().find(|line| line.split_whitespace().next() == Some(label));
    let cell = line.unwrap_or_else(|| panic!("no row {label} in\n{text}")).split_whitespace().nth(2);
    cell.and_then(|cell| cell.parse().ok()).expect("a figure")
}

#[test]
fn load_files_have_percentiles_now_and_draws_in_2018() {
    let samples = vec![vec![5.0, 3.0, 8.0, 1.0, 7.0, 2.0, 6.0, 4.0]];
    let operations = vec![Operation { label: "64".to_string(), arms: vec![samples] }];
    let times = Table { class: Class::LeftSkewops, operations, ..hackbench(1, 1) };
    // The lowest are the best. Summarise.pm takes the element before int(n * percent / 100), counted from the lowest.
    for (label, value) in [
        ("Min", 1.0),
        ("Amean", 4.5),
        ("BAmean.50", 2.5),
        ("Pctile.50", 4.0),
        ("BAmean.75", 3.5),
        ("Pctile.75", 6.0),
        ("BAmean.90", 4.0),
        ("Pctile.90", 7.0),
        ("Pctile.99", 7.0),
        ("Max", 8.0),
    ] {
        assert_eq!(shown(&times, Vintage::Now, label), value, "{label}");
    }
    let labels = |vintage| {
        let text = render(&times, vintage, Stars::Never);
        text.lines().skip(3).map(|line| line.split_whitespace().next().unwrap().to_string()).collect::<Vec<_>>()
    };
    assert_eq!(labels(Vintage::Jan2018), ["Min", "Amean", "Stddev", "Max", "SubAmean", "SubAmeanCI"]);
    let drawn = shown(&times, Vintage::Jan2018, "SubAmean");
    assert!((4.0..5.0).contains(&drawn), "near the mean: {drawn}");
    // Six samples with a variance of about 5.25; the variance of the draws varies around it.
    let half = shown(&times, Vintage::Jan2018, "SubAmeanCI");
    assert!((1.5..2.2).contains(&half), "1.96 x sqrt(5.25 / 6) is 1.83: {half}");
    assert_eq!(labels(Vintage::Feb2016), ["Min", "Amean", "Stddev", "CoeffVar", "Max"]);
    let rates = Table { better: Better::Higher, ..times };
    assert_eq!([50, 99].map(|share| shown(&rates, Vintage::Now, &format!("Pctile.{share}"))), [5.0, 2.0]);
    assert_eq!(shown(&rates, Vintage::Now, "BHmean.50"), 6.3039, "4 / (1/8 + 1/7 + 1/6 + 1/5)");
    assert!(render(&rates, Vintage::Jan2018, Stars::Never).contains("BHmean-95"));
    // dbench and tbench have the digits of the current state, whatever they were before.
    let two = Table { decimals: 2, ..rates };
    assert!(render(&two, Vintage::Now, Stars::Never).contains(" 6.3039 "));
    assert!(render(&two, Vintage::Jan2018, Stars::Never).lines().all(|line| !line.contains("6.3039")));
}

#[test]
fn percentiles_that_a_run_prints_have_one_share_of_the_best() {
    let samples = vec![(1..=20).map(f64::from).collect()];
    let operations = vec![Operation { label: "Wakeup-99.0th-8".to_string(), arms: vec![samples] }];
    let table = Table { class: Class::Normalisedops, operations, ..hackbench(1, 1) };
    let text = render(&table, Vintage::Now, Stars::Never);
    let labels: Vec<&str> = text.lines().skip(3).filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(labels, ["Min", "Amean", "BAmean.95", "Pctile.95", "Stddev", "CoeffVar", "Max"]);
    // 19 of 20 samples: their mean, and the last of them.
    assert_eq!(shown(&table, Vintage::Now, "BAmean.95"), 10.0);
    assert_eq!(shown(&table, Vintage::Now, "Pctile.95"), 19.0);
}

/// Printed by Compare.pm of the current state, asked for ratios, on the same samples.
#[test]
fn ratios_are_printed_as_mmtests_prints_them() {
    let cases = [
        (
            hackbench(2, 7),
            r"
                      4.5.0-rc1              4.5.0-rc1
                        vanilla           nostats-v3r1
Ratio 1       1.0000 (0.00%) (+0.00s)      0.9662 (3.38%) (-0.43s)
Ratio 4       1.0000 (0.00%) (+0.00s)      0.9878 (1.22%) (-0.44s)
Ratio 12      1.0000 (0.00%) (+0.00s)      0.9979 (0.21%) (-0.20s)
Dmean Lower      0.0000                      -0.3566                 
Dmin  Lower      0.0000                      -0.4369                 
Dmax  Lower      0.0000                      -0.2038                 
Gmean Lower      1.0000                       0.9839                 
",
        ),
        (
            throughput(3, 3),
            r"
                       4.5.0-rc1              4.5.0-rc1                    4.6
                         vanilla           nostats-v3r1                   next
Ratio 1          1.00 (0.00%) (+0.00s)        1.04 (3.89%) (+0.08s)        1.08 (7.77%) (+0.17s)
Ratio 64         1.00 (0.00%) (+0.00s)        1.02 (1.74%) (+1.99s)        1.03 (3.43%) (+3.86s)
Ratio 128        1.00 (0.00%) (+0.00s)        1.02 (1.72%) (+3.92s)        1.03 (3.36%) (+7.69s)
Dmean Higher        0.00                         2.00                         3.91                 
Dmin  Higher        0.00                         0.08                         0.17                 
Dmax  Higher        0.00                         3.92                         7.69                 
Gmean Higher        1.00                         1.02                         1.05                 
",
        ),
    ];
    for (table, expected) in cases {
        assert_eq!(format!("\n{}", ratios(&table).split_once('\n').expect("a title").1), expected);
    }
}

/// The same for single figures, which have no interval.
#[test]
fn ratios_of_single_figures_are_apart_by_no_number() {
    let operation = |label: &str, values: [f64; 3]| Operation {
        label: label.into(),
        arms: values.iter().map(|&value| vec![vec![value]]).collect(),
    };
    let table = Table {
        class: Class::Singleops { figure: "Max-jOPs".into() },
        operations: vec![operation("a", [1000.0, 1100.0, 1200.0]), operation("bb", [1500.0, 1400.0, 1300.0])],
        ..throughput(3, 1)
    };
    let expected = r"
                      4.5.0-rc1              4.5.0-rc1                    4.6
                        vanilla           nostats-v3r1                   next
Ratio a         1.00 (0.00%) (NaNs)        1.10 (10.00%) (NaNs)        1.20 (20.00%) (NaNs)
Ratio bb        1.00 (0.00%) (NaNs)        0.93 (-6.67%) (NaNs)        0.87 (-13.33%) (NaNs)
Gmean Higher        1.00                         1.01                         1.02                 
";
    assert_eq!(format!("\n{}", ratios(&table).split_once('\n').expect("a title").1), expected);
}

#[test]
fn columns_grow_with_the_names_of_arms() {
    let mut table = hackbench(3, 2);
    table.arms[1] = "a".repeat(60);
    table.arms[2] = format!("4.6-{}", "b".repeat(60));
    let lines = |text: &str| text.lines().map(str::to_string).collect::<Vec<_>>();
    let compared = lines(&render(&table, Vintage::Feb2016, Stars::Never));
    let ends = |text: &str, end: char| text.match_indices(end).map(|(at, _)| at).collect::<Vec<_>>();
    // The names are apart, and above their columns.
    assert_eq!(compared[1].split("  ").filter(|name| !name.trim().is_empty()).count(), 3, "{compared:#?}");
    assert!(
        compared[1].trim_start().starts_with("4.5.0-rc1  ") && compared[2].ends_with(&format!("  {}", "b".repeat(60)))
    );
    let columns = ends(&compared[3], ')');
    assert_eq!((columns[1], columns[2]), (compared[1].rfind('a').unwrap(), compared[2].len() - 1), "{compared:#?}");
    let ratios = lines(&ratios(&table));
    assert!(
        ratios[1].contains(&format!("  {}  ", "a".repeat(60))) && ratios[2].ends_with(&format!("  {}", "b".repeat(60)))
    );
}
