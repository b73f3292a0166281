//! `/proc/interrupts` and `/proc/softirqs` (kernel/irq/proc.c, arch/x86/kernel/irq.c, fs/proc/softirqs.c).
//!
//! Lines of interrupts that no machine here has (NMIs, TLB shootdowns, thermal events) are left out.

use crate::formats::Formats;
use std::fmt::Write;
use units::CpuId;

/// softirq.c: softirq_to_name[].
pub(crate) const SOFTIRQ_NAMES: [&str; 10] =
    ["HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU"];

/// The pins of the IO-APIC, of which no machine file tells: a single one, as guests have. Servers have several, and clients
/// since Skylake 120 pins.
const GSI_TOP: usize = 24;
/// NR_IRQS_LEGACY, all of which x86 has with a PIC.
const NR_LEGACY_IRQS: usize = 16;
const NR_VECTORS: usize = 256;

/// vector.c: arch_probe_nr_irqs() of x86: for how many interrupts a machine has room.
///
/// Differs: the pins of its IO-APICs are not known.
pub fn arch_probe_nr_irqs(nr_cpus: usize) -> usize {
    (NR_VECTORS * nr_cpus).min(GSI_TOP + NR_LEGACY_IRQS + 8 * nr_cpus + 16 * GSI_TOP)
}

/// The width of the first column (proc.c: show_interrupts()): three digits, or as many as there is room for interrupts.
fn prec(nr_irqs: usize) -> usize {
    (3..10).find(|&digits| 10_usize.pow(digits) > nr_irqs).unwrap_or(10) as usize
}

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
pub fn device_about(number: usize, name: &str, nr_irqs: usize) -> String {
    format!("{:>8} {number:>width$}-{:<8}  {name}", "PCI-MSI", "edge", width = prec(nr_irqs))
}

/// The text of `/proc/interrupts` of CPUs that are online, on a machine with room for so many interrupts.
pub fn interrupts_text(online: &[CpuId], lines: &[InterruptLine], nr_irqs: usize) -> String {
    let width = prec(nr_irqs);
    let mut text = " ".repeat(width + 8);
    // Writing to a String cannot fail.
    online.iter().for_each(|cpu| {
        let _ = write!(text, "CPU{:<8}", cpu.index());
    });
    text.push('\n');
    for InterruptLine { label, counts, about } in lines {
        let _ = write!(text, "{label:>width$}: ");
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
            line("1", [0, 15], &device_about(1, "nvme0q1", 440)),
            line("LOC", [1_301_315, 1_271_699], " Local timer interrupts"),
        ];
        let text = interrupts_text(&[0, 12].map(CpuId), &lines, 440);
        let expected = "           CPU0       CPU12      \n  \
                        1:          0         15   PCI-MSI   1-edge      nvme0q1\n\
                        LOC:    1301315    1271699   Local timer interrupts\n";
        assert_eq!(text, expected);
        let wide = interrupts_text(&[0, 12].map(CpuId), &lines[1..], 1_000);
        let expected = "            CPU0       CPU12      \n \
                        LOC:    1301315    1271699   Local timer interrupts\n";
        assert_eq!(wide, expected);
        assert!(device_about(1, "nvme0q1", 1_000).starts_with(" PCI-MSI    1-edge"));
    }

    #[test]
    fn room_for_interrupts_grows_with_cpus() {
        // A guest with two CPUs prints "nr_irqs: 440" at boot, one with eight 488.
        assert_eq!([1, 2, 8].map(arch_probe_nr_irqs), [256, 440, 488]);
        assert_eq!([72, 256].map(arch_probe_nr_irqs), [1_000, 2_472]);
        assert_eq!([440, 999, 1_000, 9_999, 10_000].map(prec), [3, 3, 4, 4, 5]);
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
