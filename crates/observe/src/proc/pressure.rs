//! `/proc/pressure/cpu` and a group's `cpu.pressure` (kernel/sched/psi.c: psi_show()), and the same of `io`.

use sched::psi::Pressure;

/// The lines of the file, the second only where the kernel has it: percent over 10, 60 and 300 s, and the sum in us.
pub fn pressure_text(lines: &[Pressure; 2], with_full: bool) -> String {
    let line = |(name, line): (&str, &Pressure)| {
        let [avg10, avg60, avg300] = line.avg.map(|avg| format!("{}.{:02}", avg / 100, avg % 100));
        format!("{name} avg10={avg10} avg60={avg60} avg300={avg300} total={}\n", line.total)
    };
    ["some", "full"].into_iter().zip(lines).take(1 + usize::from(with_full)).map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hundredths_stand_behind_the_point() {
        let lines = [Pressure { avg: [1205, 7, 100], total: 123 }, Pressure { avg: [0; 3], total: 0 }];
        let expected =
            "some avg10=12.05 avg60=0.07 avg300=1.00 total=123\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n";
        assert_eq!(pressure_text(&lines, true), expected);
        assert_eq!(pressure_text(&lines, false), expected.lines().next().unwrap_or_default().to_string() + "\n");
    }
}
