//! `/sys/kernel/debug/sched/cgroup_mode` (kernel/sched/debug.c: sched_cgroup_show()), which v7.3 has.

/// The modes in the order of the file: how the weight of a group becomes that of its part on one CPU.
const CGROUP_MODES: [&str; 5] = ["up", "smp", "concur", "max", "tasks"];

/// The mode that a kernel boots with.
pub const DEFAULT_CGROUP_MODE: &str = "concur";

/// The line of the file, with `mode` in parentheses. Each word has a space behind it, the last one too.
pub fn cgroup_mode_text(mode: &str) -> String {
    let word = |name: &str| if name == mode { format!("({name}) ") } else { format!("{name} ") };
    CGROUP_MODES.map(word).concat() + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mode_that_counts_stands_in_parentheses() {
        assert_eq!(cgroup_mode_text(DEFAULT_CGROUP_MODE), "up smp (concur) max tasks \n");
        assert_eq!(cgroup_mode_text("up"), "(up) smp concur max tasks \n");
    }
}
