//! `/proc/latency_stats` and `/proc/PID/latency` (kernel/latencytop.c: lstats_show(); fs/proc/base.c: lstats_show_proc()), and the
//! table that readprofile(8) makes of `/proc/profile`.

use sched::access::Path;
use sched::latencytop::{LatencyRecord, WaitChannel};
use std::fmt::Write;

/// latencytop.h: LT_BACKTRACEDEPTH. Functions of a backtrace that are kept.
const LT_BACKTRACEDEPTH: usize = 12;

/// The file's text: count, sum and maximum in us, then where the task slept, the innermost function first. `names`
/// gives the backtrace there, the outermost function first.
pub fn latency_text(records: &[LatencyRecord], names: impl Fn(WaitChannel) -> Vec<String>) -> String {
    let mut text = "Latency Top version : v0.1\n".to_string();
    for record in records {
        let _ = write!(text, "{} {} {}", record.count, record.time, record.max);
        for name in names(record.backtrace).iter().rev().take(LT_BACKTRACEDEPTH) {
            let _ = write!(text, " {name}");
        }
        text.push('\n');
    }
    text
}

/// readprofile's columns: hits and function, in order of address (here: of our numbers), and the sum. Its load per byte
/// is left out, because functions have no length here.
pub fn readprofile_text(hits: impl Iterator<Item = (Path, u64)>, name: impl Fn(Path) -> String) -> String {
    let (mut text, mut total) = (String::new(), 0);
    for (function, hits) in hits {
        total += hits;
        let _ = writeln!(text, "{hits:>6} {}", name(function));
    }
    let _ = writeln!(text, "{total:>6} total");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_innermost_function_comes_first_and_no_more_than_twelve() {
        const PLACE: WaitChannel = &[Path(1), Path(2)];
        let record = LatencyRecord { backtrace: PLACE, count: 107, time: 23_239, max: 669 };
        let names = |place: WaitChannel| place.iter().map(|path| format!("f{}", path.0)).collect();
        assert_eq!(latency_text(&[record], names), "Latency Top version : v0.1\n107 23239 669 f2 f1\n");
        let deep = |_: WaitChannel| (0..20).map(|depth| depth.to_string()).collect();
        let text = latency_text(&[record], deep);
        assert!(text.ends_with("669 19 18 17 16 15 14 13 12 11 10 9 8\n"), "{text}");
    }

    #[test]
    fn hits_have_readprofiles_columns() {
        let text = readprofile_text([(Path(3), 7), (Path(9), 12_345)].into_iter(), |path| format!("f{}", path.0));
        assert_eq!(text, "     7 f3\n 12345 f9\n 12352 total\n");
    }
}
