//! Figures of a recorded trace: a table with a line for each task, as the recordings in `fidelity/` have them.
//!
//! ```text
//! pid comm wakeups migr_wake migr_other ... n_cpus run_ms invol vol slice_ms(p50,p90,max) wake_lat_us(p50,p90,p99,max) ...
//! 124 hog0 0 0 0 - 1 2284.42 571 2 4.000,4.000,5.136 nan,nan,nan,nan 1:2284.4
//! group /gm nr_periods 52 nr_throttled 50
//! ```
//!
//! The last kind of line gives a group's `cpu.stat`: how much the counts grew during the recording. Each line of column
//! names begins another sample of the same case.

use super::figure::{Measure, Tasks, Values};
use crate::mistake::{Location, Mistake, Written, excerpt};
use observe::TaskFigures;

/// What each column holds. A column with parentheses holds several numbers.
const COLUMNS: &[(&str, &[Measure])] = &[
    ("wakeups", &[Measure::Wakeups]),
    ("migr_wake", &[Measure::MigrationsInWakeup]),
    ("migr_other", &[Measure::MigrationsOther]),
    ("n_cpus", &[Measure::Cpus]),
    ("run_ms", &[Measure::RunMs]),
    ("invol", &[Measure::Involuntary]),
    ("vol", &[Measure::Voluntary]),
    ("slice_ms(p50,p90,max)", &[Measure::SliceP50Ms, Measure::SliceP90Ms, Measure::SliceMaxMs]),
    (
        "wake_lat_us(p50,p90,p99,max)",
        &[Measure::LatencyP50Us, Measure::LatencyP90Us, Measure::LatencyP99Us, Measure::LatencyMaxUs],
    ),
];

/// The line of column names of a recording.
pub fn header() -> String {
    let columns = COLUMNS.iter().map(|(name, _)| format!(" {name}"));
    format!("pid comm{}\n", columns.collect::<String>())
}

/// A task's figures from a trace, as a line of a recording without its end.
pub fn line(pid: usize, name: &str, of: &TaskFigures) -> String {
    let values = Values::from(of);
    // Milliseconds are printed to the microsecond, and microseconds to the nanosecond.
    let number = |measure: &Measure| match values.0.get(measure) {
        Some(value) => ((value * 1e3).round() / 1e3).to_string(),
        None => "nan".to_string(),
    };
    let column = |(_, measures): &(_, &[Measure])| measures.iter().map(number).collect::<Vec<_>>().join(",");
    format!("{pid} {name} {}", COLUMNS.iter().map(column).collect::<Vec<_>>().join(" "))
}

/// The tasks of each sample by name, and its groups by path. If several tasks share a name, only the last is kept.
pub fn parse(written: &Written) -> Result<Vec<Tasks>, Mistake> {
    let mut head: Vec<&str> = Vec::new();
    let mut samples: Vec<Tasks> = Vec::new();
    for (index, line) in written.text.lines().enumerate() {
        let words: Vec<&str> = line.split_whitespace().collect();
        if let ["pid", "comm", ..] = words[..] {
            head = words;
            samples.push(Tasks::new());
            continue;
        }
        let Some(tasks) = samples.last_mut() else { continue };
        if let ["group", path, counts @ ..] = &words[..] {
            tasks.insert(path.to_string(), Values::of_group(counts));
            continue;
        }
        let [pid, name, ..] = words[..] else { continue };
        if !pid.bytes().all(|b| b.is_ascii_digit()) {
            continue;
        }
        // The last column may have several words, or none.
        if words.len() + 1 < head.len() {
            let at = Location { line: Some(index as u32 + 1), ..written.at.clone() };
            let found = format!("{} words of `{}`", words.len(), excerpt(name, 40));
            return Err(Mistake::new(&at, found, format!("one for each of {} columns", head.len())));
        }
        let mut values = Values::default();
        for (column, word) in head.iter().zip(&words) {
            let Some((_, measures)) = COLUMNS.iter().find(|(name, _)| name == column) else { continue };
            for (measure, number) in measures.iter().zip(word.split(',')) {
                match number.parse::<f64>() {
                    Ok(number) if number.is_finite() => drop(values.0.insert(*measure, number)),
                    Ok(_) => {}
                    Err(_) => {
                        let at = Location { line: Some(index as u32 + 1), ..written.at.clone() };
                        return Err(Mistake::new(
                            &at,
                            format!("`{word}` as {column}"),
                            "numbers with commas between them",
                        ));
                    }
                }
            }
        }
        tasks.insert(name.to_string(), values);
    }
    if samples.is_empty() || samples.iter().any(Tasks::is_empty) {
        return Err(
            written.mistake("no task", "a recording: a line of column names that begins with `pid comm`, then tasks")
        );
    }
    Ok(samples)
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::{CpuId, Ns};

    const TEXT: &str = "\
# c-nice.trace.txt: 10.102 s
pid comm wakeups migr_wake migr_other migr_per_1000_wakeups n_cpus run_ms invol vol slice_ms(p50,p90,max) wake_lat_us(p50,p90,p99,max) top_cpus(ms)
124 hog0 0 0 0 - 1 2284.42 571 2 4.000,4.000,5.136 nan,nan,nan,nan 1:2284.4
161 per0 125 1 2 0.0 2 126.24 0 126 1.006,1.006,1.383 5,5,355,5953 1:126.2 0:1.0
TOTAL wakeups=0 migrations_in_wakeup=0
group /gm nr_periods 52 nr_throttled 50
";

    #[test]
    fn what_is_written_is_read_again() {
        let mut of = TaskFigures { wakeups: 3, slices: vec![Ns(4_000_123)], ..TaskFigures::default() };
        of.run.insert(CpuId(1), Ns(4_000_123));
        let text = header() + &line(7, "hog0", &of) + "\n";
        let samples = parse(&Written { text: text.repeat(2), at: Location::of("x.numbers.txt") }).unwrap();
        assert_eq!(samples.len(), 2);
        let hog = &samples[1]["hog0"].0;
        assert_eq!((hog[&Measure::Wakeups], hog[&Measure::RunMs], hog[&Measure::SliceP90Ms]), (3.0, 4.0, 4.0));
        assert!(!hog.contains_key(&Measure::LatencyP50Us));
    }

    #[test]
    fn columns_become_figures() {
        let written = |text: &str| Written { text: text.to_string(), at: Location::of("x.numbers.txt") };
        let samples = parse(&written(TEXT)).unwrap();
        let [tasks] = &samples[..] else { panic!("one") };
        assert_eq!(tasks.len(), 3);
        let hog = &tasks["hog0"].0;
        assert_eq!((hog[&Measure::RunMs], hog[&Measure::SliceMaxMs]), (2284.42, 5.136));
        assert!(!hog.contains_key(&Measure::LatencyP50Us));
        let periodic = &tasks["per0"].0;
        assert_eq!((periodic[&Measure::LatencyMaxUs], periodic[&Measure::MigrationsOther]), (5953.0, 2.0));
        let group = &tasks["/gm"].0;
        assert_eq!((group[&Measure::NrPeriods], group[&Measure::NrThrottled]), (52.0, 50.0));
        let error = parse(&written(&TEXT.replace("2284.42", "much"))).unwrap_err().to_string();
        assert_eq!(error, "x.numbers.txt:3: found `much` as run_ms; expected numbers with commas between them");
        assert!(parse(&written("nothing")).unwrap_err().to_string().contains("found no task"));
        // A truncated text is no recording, and must not cause a panic.
        for text in ["pid\n\n12\n", "pid comm\n12\n", "pid comm\n\n"] {
            assert!(parse(&written(text)).unwrap_err().to_string().contains("found no task"), "{text}");
        }
        let cut = TEXT.split_inclusive("161 per0 125").next().expect("a part");
        let error = parse(&written(cut)).unwrap_err().to_string();
        assert_eq!(error, "x.numbers.txt:4: found 3 words of `per0`; expected one for each of 13 columns");
    }
}
