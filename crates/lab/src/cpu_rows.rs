//! Tables with a row for each CPU, which stay readable on machines of hundreds.

use std::fmt::Write as _;
use units::CpuMask;

/// CPUs that have a row each; of more, those with equal figures share one.
pub const MOST_ROWS_OF_ONE: usize = 32;
/// Letters of a list of CPUs before it goes on in another line.
const LIST: usize = 24;

/// Rows of a table by CPU, or by what has some CPUs, whose first column has `width` letters. Where there are many, those with equal cells
/// share a row, in the order of their first.
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

/// How wide the first column of such a table is, with so many rows before equal ones share one.
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
        // Every CPU stands somewhere, and no line is long.
        let odd = rows(100, |cpu| format!("{:>6}", cpu % 2));
        assert_eq!(odd.lines().next().unwrap(), "0,2,4,6,8,10,12,14,16,         0");
        assert!(odd.lines().all(|line| line.len() <= LIST + 8) && odd.lines().count() > 8, "{odd}");
    }
}
