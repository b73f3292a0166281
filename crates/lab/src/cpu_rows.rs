//! Tables with a row for each CPU, which stay readable on machines of hundreds.

use std::fmt::Write as _;
use units::CpuMask;

/// The most CPUs that get a row each. With more CPUs, those with equal figures share one.
pub const MOST_ROWS_OF_ONE: usize = 32;
/// The most letters of a CPU list in one line.
const LIST: usize = 24;

/// The rows of a table by CPU, or by something that owns several CPUs; the first column is `width` letters wide. If
/// there are many rows, those with equal cells share one, in the order of their first CPU.
pub(crate) fn by_cpu(width: usize, cells: impl Iterator<Item = (CpuMask, String)>) -> String {
    let mut rows: Vec<(CpuMask, String)> = Vec::new();
    let all: Vec<(CpuMask, String)> = cells.collect();
    let shared = all.len() > MOST_ROWS_OF_ONE;
    for (cpus, cells) in all {
        match rows.iter_mut().find(|row| shared && row.1 == cells) {
            Some((all, _)) => all.or_with(&cpus),
            None => rows.push((cpus, cells)),
        }
    }
    let mut text = String::new();
    for (cpus, cells) in rows {
        let mut lines = folded(&cpus.list()).into_iter();
        let _ = writeln!(text, "{:<width$}{cells}", lines.next().unwrap_or_default());
        lines.for_each(|line| {
            let _ = writeln!(text, "{line}");
        });
    }
    text
}

/// The width of such a table's first column, given the number of rows before equal ones are merged.
pub(crate) fn width_by_cpu(rows: usize, narrow: usize) -> usize {
    if rows > MOST_ROWS_OF_ONE { LIST + 2 } else { narrow }
}

/// A list of CPUs in lines.
fn folded(list: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for part in list.split_inclusive(',') {
        match lines.last_mut() {
            Some(line) if line.is_empty() || line.len() + part.len() <= LIST => line.push_str(part),
            _ => lines.push(part.to_string()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::CpuId;

    fn rows(nr_cpus: usize, cell: impl Fn(usize) -> String) -> String {
        let width = width_by_cpu(nr_cpus, 4);
        by_cpu(width, (0..nr_cpus).map(|cpu| (CpuMask::single(CpuId::new(cpu)), cell(cpu))))
    }

    #[test]
    fn few_cpus_have_a_row_each_and_many_share_equal_ones() {
        assert_eq!(rows(3, |_| "same".to_string()), "0   same\n1   same\n2   same\n");
        let of_thirds = rows(480, |cpu| format!("{:>6}", if cpu == 7 { 1 } else { cpu / 160 }));
        let expected = "\
0-6,8-159                      0
7,160-319                      1
320-479                        2
";
        assert_eq!(of_thirds, expected);
        // Every CPU appears somewhere, and no line is long.
        let odd = rows(100, |cpu| format!("{:>6}", cpu % 2));
        assert_eq!(odd.lines().next().unwrap(), "0,2,4,6,8,10,12,14,16,         0");
        assert!(odd.lines().all(|line| line.len() <= LIST + 8) && odd.lines().count() > 8, "{odd}");
    }
}
