//! `/proc/interrupts` and `/proc/softirqs` (kernel/irq/proc.c, arch/x86/kernel/irq.c, fs/proc/softirqs.c).
//!
//! Lines of interrupts that no machine here has (NMIs, TLB shootdowns, thermal events) are left out.

use crate::formats::Formats;
use std::fmt::Write;
use units::CpuId;

/// softirq.c: softirq_to_name[].
pub(crate) const SOFTIRQ_NAMES: [&str; 10] =
    ["HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU"];

/// Width of the first column if there are fewer than a thousand interrupts.
const PREC: usize = 3;

/// One line of `/proc/interrupts`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InterruptLine {
    /// A number, or three letters for interrupts that belong to no device.
    pub label: String,
    /// One count for each CPU that is online.
    pub counts: Vec<u64>,
    /// The text after the counts.
    pub about: String,
}

/// The text after the counts of a device's line: its chip, its number there, how it is triggered, and its device.
///
/// Differs: a message's number in its chip is made of its device's address, which no device here has; the line's own stands for it.
pub fn device_about(number: usize, name: &str) -> String {
    format!("{:>8} {number:>PREC$}-{:<8}  {name}", "PCI-MSI", "edge")
}

/// The text of `/proc/interrupts` of CPUs that are online.
pub fn interrupts_text(online: &[CpuId], lines: &[InterruptLine]) -> String {
    let mut text = " ".repeat(PREC + 8);
    // Writing to a String cannot fail.
    online.iter().for_each(|cpu| {
        let _ = write!(text, "CPU{:<8}", cpu.index());
    });
    text.push('\n');
    for InterruptLine { label, counts, about } in lines {
        let _ = write!(text, "{label:>PREC$}: ");
        counts.iter().for_each(|count| {
            let _ = write!(text, "{count:>10} ");
        });
        let _ = writeln!(text, " {about}");
    }
    text
}

/// The text of `/proc/softirqs`, by CPU, offline ones included.
pub fn softirqs_text(counts: &[[u32; SOFTIRQ_NAMES.len()]], formats: Formats) -> String {
    let mut text = " ".repeat(20);
    (0..counts.len()).for_each(|cpu| {
        let _ = write!(text, "CPU{cpu:<8}");
    });
    text.push('\n');
    for (vec, name) in SOFTIRQ_NAMES.iter().enumerate() {
        let name = if *name == "IRQ_POLL" { formats.irq_poll } else { name };
        let _ = write!(text, "{name:>12}:");
        counts.iter().for_each(|counts| {
            let _ = write!(text, " {:>10}", counts[vec]);
        });
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interrupts_print_as_the_kernel_prints_them() {
        let line = |label: &str, counts: [u64; 2], about: &str| InterruptLine {
            label: label.to_string(),
            counts: counts.to_vec(),
            about: about.to_string(),
        };
        let lines = [
            line("1", [0, 15], &device_about(1, "nvme0q1")),
            line("LOC", [1_301_315, 1_271_699], " Local timer interrupts"),
        ];
        let text = interrupts_text(&[0, 12].map(CpuId), &lines);
        let expected = "           CPU0       CPU12      \n  \
                        1:          0         15   PCI-MSI   1-edge      nvme0q1\n\
                        LOC:    1301315    1271699   Local timer interrupts\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn softirqs_print_as_the_kernel_prints_them() {
        let mut counts = [[0; 10]; 2];
        (counts[0][1], counts[1][7]) = (100_418, 3);
        let text = softirqs_text(&counts, Formats::V4_15);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 11);
        assert_eq!(lines[0], "                    CPU0       CPU1       ");
        assert_eq!(lines[2], "       TIMER:     100418          0");
        assert_eq!(lines[6], "    IRQ_POLL:          0          0");
        assert_eq!(lines[8], "       SCHED:          0          3");
        // Read on a v4.5 in QEMU.
        let old = softirqs_text(&counts, Formats::V4_5);
        assert_eq!(old.lines().nth(6), Some("BLOCK_IOPOLL:          0          0"));
    }
}
