//! `/sys/kernel/debug/sched/cgroup_mode` (kernel/sched/debug.c: sched_cgroup_show()), which v7.3 has.

use sched::fair::cgroup_mode::CgroupMode;

/// The line of the file, with the mode in parentheses. Each word has a space behind it, the last one too.
pub fn cgroup_mode_text(mode: u64) -> String {
    let words = CgroupMode::NAMES.into_iter().zip(0..);
    words.map(|(name, value)| if value == mode { format!("({name}) ") } else { format!("{name} ") }).collect::<String>()
        + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use sched::sysctl::Sysctl;

    #[test]
    fn the_mode_that_counts_stands_in_parentheses() {
        assert_eq!(cgroup_mode_text(Sysctl::new(1).cgroup_mode), "up smp (concur) max tasks \n");
        assert_eq!(cgroup_mode_text(0), "(up) smp concur max tasks \n");
    }
}
