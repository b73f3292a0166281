//! Writes the machine file. It extends what all Linux machines on x86-64 share (`machines/bases/linux-x86.toml`) and
//! gives everything else.

use super::fit::{Check, Fitted, Range, crossing};
use super::lines::Line;
use super::{Measurement, Observed};
use crate::mistake::Mistake;
use machine::description::{How, is_hz, topology_section};
use machine::idle::Governor;
use machine::topology::Distance;
use std::fmt::Write;

/// Without `checks` the file is for the fits. Exits, which end every run, then take next to nothing, so that their
/// timing does not enter the fit.
pub(super) fn machine_file(
    observed: &Observed,
    fitted: &Fitted,
    kernel: &str,
    checks: Option<&[Check]>,
) -> Result<String, Mistake> {
    let mut out = String::new();
    head(observed, kernel, checks.unwrap_or_default(), &mut out);
    let host = &observed.host;
    let source = format!("sysfs of {}, {}", host.cpu_model, observed.when);
    out.push_str(&topology_section(&observed.topology, &source, How::Measured));
    frequency(observed, &mut out)?;
    siblings(observed, &mut out);
    caches(observed, &mut out)?;
    lines(observed, &mut out);
    wakeups(observed, fitted, &mut out)?;
    kernel_work(observed, fitted, kernel, &mut out)?;
    match checks {
        Some(_) => exits(observed, &mut out)?,
        None => figure(&mut out, "do_exit", Range::exactly(100.0), "cycles", How::Guess, "for fitting"),
    }
    idle(observed, fitted, kernel, &mut out);
    Ok(out)
}

fn head(observed: &Observed, kernel: &str, checks: &[Check], out: &mut String) {
    let host = &observed.host;
    let mut line = |text: &str| {
        // Comments quote texts of the system: a line break in them must not end a comment.
        let _ = writeln!(out, "# {}", text.replace(['\n', '\r'], " "));
    };
    line(&format!("Measured by `fairground calibrate` on {}, UTC.", observed.when));
    line(&format!("CPU: {}{}", host.cpu_model, if host.virtual_machine { ", in a virtual machine" } else { "" }));
    line(&format!("Kernel: Linux {}; fitted with the simulation of {kernel}, the nearest that there is", host.kernel));
    for unseen in &observed.unseen {
        line(&format!("Not seen: {unseen}"));
    }
    for Check { name, unit, measured, simulated, fitted } in checks {
        let kind = if *fitted { "fitted to" } else { "not fitted to" };
        line(&format!(
            "Simulated with this file: {name} {simulated:.0} {unit}; {kind} the measured {measured:.0} {unit}"
        ));
    }
    let _ = writeln!(out, "\nname = {}\nextends = \"linux-x86\"", quoted(&observed.name));
    let about = format!("{}, {}, as `fairground calibrate` found it.", host.cpu_model, observed.topology.summary());
    let _ = writeln!(out, "description = {}\n", quoted(&about));
}

/// A TOML basic string; JSON's strings are a subset.
fn quoted(text: &str) -> String {
    serde_json::to_string(text).expect("a text serialises")
}

/// One figure, rounded to what its unit can hold.
fn figure(out: &mut String, name: &str, range: Range, unit: &str, how: How, source: &str) {
    let decimals = match unit {
        "cycles" | "Hz" | "B" | "count" | "ps/KiB" => 0,
        "GHz" | "ns" | "ns/B" | "us" | "cycles/instruction" | "ratio" => 3,
        other => unreachable!("no figure here has the unit {other}"),
    };
    let [value, low, high] = [range.value, range.low.min(range.value), range.high.max(range.value)]
        .map(|number| format!("{:.decimals$}", number.max(0.0)));
    let source = quoted(source);
    let how = how.name();
    let _ = writeln!(
        out,
        "{name} = {{ value = {value}, unit = \"{unit}\", range = [{low}, {high}], how = \"{how}\", source = {source} }}"
    );
}

pub(super) fn ran(measurement: &Measurement) -> String {
    format!("{}; lower quartile of {} bursts", measurement.ran, measurement.bursts)
}

fn range(measurement: &Measurement) -> Range {
    Range { value: measurement.value, low: measurement.low, high: measurement.high }
}

impl Range {
    fn times(self, factor: f64) -> Range {
        Range { value: self.value * factor, low: self.low * factor, high: self.high * factor }
    }
}

fn fact(out: &mut String, name: &str, value: &str, how: How, source: &str) {
    let _ = writeln!(out, "{name} = {{ value = \"{value}\", how = \"{}\", source = {} }}", how.name(), quoted(source));
}

fn frequency(observed: &Observed, out: &mut String) -> Result<(), Mistake> {
    let _ = writeln!(out, "\n[frequency]");
    let seen = observed.needed("frequency")?;
    let source = ran(seen);
    match &observed.frequency {
        Some((low, high, governor)) => {
            let control = if governor == "powersave" || governor == "performance" { "hardware" } else { "core" };
            fact(
                out,
                "control",
                control,
                How::Guess,
                &format!("cpufreq's governor is {governor}; who shares a frequency is not seen"),
            );
            // Real clocks deviate from their nominal frequency, and the turbo frequency may not be declared at all.
            for (name, khz, bound) in [
                ("min", low, f64::min(seen.value, *low as f64 / 1e6)),
                ("max", high, f64::max(seen.value, *high as f64 / 1e6)),
            ] {
                let told = *khz as f64 / 1e6;
                let source = format!("cpufreq in sysfs: cpuinfo_{name}_freq");
                match bound == told {
                    true => figure(out, name, Range::exactly(told), "GHz", How::Vendor, &source),
                    false => {
                        let source = format!("{source} is {told} GHz; the frequency that was observed lies beyond");
                        figure(out, name, Range { value: bound, ..range(seen) }, "GHz", How::Measured, &source);
                    }
                }
            }
        }
        None => {
            fact(
                out,
                "control",
                "hardware",
                How::Guess,
                "no cpufreq in sysfs: whoever chooses the frequency, this system does not",
            );
            let source = "no cpufreq in sysfs; the frequency that was observed";
            figure(out, "min", range(seen), "GHz", How::Guess, source);
            figure(out, "max", range(seen), "GHz", How::Guess, source);
        }
    }
    figure(
        out,
        "base",
        range(seen),
        "GHz",
        How::Guess,
        "the frequency that was observed; the marked one is not asked for",
    );
    figure(out, "fixed", range(seen), "GHz", How::Measured, &source);
    Ok(())
}

/// The speed next to a busy sibling, if the computer shows one.
fn siblings(observed: &Observed, out: &mut String) {
    let Some(seen) = observed.measurement("speed_beside_sibling") else { return };
    let _ = writeln!(out, "\n[smt]");
    // A disturbed burst alone could make a share of more than 1.
    let share = |value: f64| value.clamp(0.001, 1.0);
    let speed = Range { value: share(seen.value), low: share(seen.low), high: share(seen.high) };
    let source = format!("{}; upper quartile of {} bursts", seen.ran, seen.bursts);
    figure(out, "speed", speed, "ratio", How::Measured, &source);
}

fn caches(observed: &Observed, out: &mut String) -> Result<(), Mistake> {
    let gigahertz = observed.gigahertz()?;
    let _ = writeln!(out, "\n[cache]");
    figure(out, "line_size", Range::exactly(64.0), "B", How::Guess, "as on all x86 and most ARM processors");
    for (name, measured, guess) in
        [("l1d_size", "size.l1", 32 << 10), ("l2_size", "size.l2", 1 << 20), ("llc_size", "size.llc", 16 << 20)]
    {
        match observed.measurement(measured) {
            Some(size) => figure(out, name, range(size), "B", How::Measured, &size.ran),
            None => figure(out, name, Range::exactly(f64::from(guess)), "B", How::Guess, "not in sysfs"),
        }
    }
    for (name, measured) in [("l1_load", "load.l1"), ("l2_load", "load.l2")] {
        let load = observed.needed(measured)?;
        let source = format!("{}; the index's arithmetic included", ran(load));
        figure(out, name, range(load).times(gigahertz), "cycles", How::Measured, &source);
    }
    let parallel = Range { value: 12.0, low: 3.0, high: 32.0 };
    figure(out, "refill_parallel", parallel, "count", How::Guess, "line fill buffers of a large core; not measured");
    let _ = writeln!(out, "\n[memory]");
    let local = observed.needed("load.memory")?;
    let source = format!("{}; the walk of page tables included", ran(local));
    figure(out, "local", range(local), "ns", How::Measured, &source);
    delivery(observed, out);
    for distance in observed.topology.memory_distances().into_iter().skip(1) {
        // The value and the most, as multiples of the own node's figure.
        let (value, most, source) = match distance {
            Distance::Remote(class) => {
                let source = "half as much again as the own node's, for each class of distance; not measured";
                (1.0 + 0.5 * f64::from(class), 1.5 + 1.5 * f64::from(class), source)
            }
            _ => (1.2, 2.0, "a fifth more than the own node's; not measured"),
        };
        let range = Range { value: local.value * value, low: local.value, high: local.value * most };
        figure(out, &distance.name(), range, "ns", How::Guess, source);
    }
    Ok(())
}

/// If twice as many CPUs read this many times as much, they have not met the memory's limit.
const UNSATURATED: f64 = 1.25;

/// The most that a node's memory delivers: what all its CPUs read together. If that is clearly more than half of them
/// read, memory may deliver even more, but these CPUs cannot ask for it.
pub(super) fn delivery(observed: &Observed, out: &mut String) {
    let Some(all) = observed.measurement("bandwidth.all").filter(|all| all.low > 0.0) else { return };
    let half = observed.measurement("bandwidth.half");
    let more = half.is_none_or(|half| all.value > half.value * UNSATURATED);
    // Bytes per nanosecond are gigabytes per second.
    let ps = |bytes: f64| 1_024.0 * 1_000.0 / bytes;
    let (least, doubt) = match more {
        true => (ps(all.value) / 4.0, "; these CPUs can ask for no more, and memory may deliver it"),
        false => (ps(all.high), ""),
    };
    let range =
        Range { value: ps(all.value), low: least.min(ps(all.value) * 0.9), high: ps(all.low).max(ps(all.value) * 1.1) };
    let source = format!("{}; upper quartile of {} bursts{doubt}", all.ran, all.bursts);
    figure(out, "delivery", range, "ps/KiB", How::Measured, &source);
}

fn lines(observed: &Observed, out: &mut String) {
    let _ = writeln!(out, "\n[line]");
    if let Some(hit) = observed.measurement("load.llc") {
        figure(out, "llc_hit", range(hit), "ns", How::Measured, &ran(hit));
    }
    for Line { distance, range, how, source } in super::lines::lines(observed) {
        figure(out, &distance.name(), range, "ns", how, &source);
    }
    let read = Range { value: 0.8, low: 0.5, high: 1.0 };
    figure(
        out,
        "read_stall",
        read,
        "ratio",
        How::Guess,
        "as fitted on the E5-2670 v3; not to be measured from user space",
    );
    let write = Range { value: 0.32, low: 0.1, high: 1.0 };
    figure(
        out,
        "write_stall",
        write,
        "ratio",
        How::Guess,
        "as fitted on the E5-2670 v3; not to be measured from user space",
    );
}

fn wakeups(observed: &Observed, fitted: &Fitted, out: &mut String) -> Result<(), Mistake> {
    let _ = writeln!(out, "\n[ipi]");
    let source = match observed.measurement("wake_call.100") {
        Some(call) => format!(
            "{}; less half a round of two threads that wake each other on one CPU, which holds the call, a sleep and a switch",
            ran(call)
        ),
        None => "this process may use one CPU only: nothing was measured".to_string(),
    };
    let how = if observed.measurement("wake_call.100").is_some() { How::Derived } else { How::Guess };
    figure(out, "send", fitted.send, "cycles", how, &source);
    let delivery = Range { value: 500.0, low: 100.0, high: 10_000.0 };
    let source = "not measured apart: on the way to an idle CPU it is a part of that state's wake";
    figure(out, "delivery", delivery, "ns", How::Guess, source);
    let receive = Range { value: 900.0, low: 400.0, high: 10_000.0 };
    figure(out, "receive", receive, "cycles", How::Guess, "as on the E5-2670 v3; not to be measured from user space");
    let _ = writeln!(out, "\n[copy]");
    let copy = observed.needed("copy")?;
    figure(out, "user", range(copy), "ns/B", How::Measured, &ran(copy));
    let _ = writeln!(out, "\n[tick]");
    match observed.host.hz {
        Some(hertz) if is_hz(hertz) => {
            let source = "resolution of CLOCK_MONOTONIC_COARSE, which advances once a tick";
            figure(out, "rate", Range::exactly(hertz as f64), "Hz", How::Measured, source);
        }
        other => {
            let rate = Range { value: 250.0, low: 100.0, high: 1_000.0 };
            let source = match other {
                Some(hertz) => format!("the coarse clock advances {hertz} times a second, which no kernel here does"),
                None => "the coarse clock does not tell".to_string(),
            };
            figure(out, "rate", rate, "Hz", How::Guess, &source);
        }
    }
    Ok(())
}

fn kernel_work(observed: &Observed, fitted: &Fitted, kernel: &str, out: &mut String) -> Result<(), Mistake> {
    let gigahertz = observed.gigahertz()?;
    let _ = writeln!(out, "\n[cycles_per_instruction]");
    let same = observed.needed("futex_pair.same")?;
    let source = |measurement: &Measurement| {
        format!("so that the simulation of {kernel} takes {:.0} ns: {}", measurement.value, ran(measurement))
    };
    figure(out, "paths", fitted.paths, "cycles/instruction", How::Fitted, &source(same));
    figure(out, "idle_loop", fitted.paths, "cycles/instruction", How::Fitted, "with paths");
    figure(out, "os", fitted.os, "cycles/instruction", How::Fitted, &source(observed.needed("pipe_self")?));
    switch(observed, gigahertz, out);
    let _ = writeln!(out, "\n[os]");
    for (name, measured, what) in [
        ("entry_SYSCALL_64", "syscall", "the call's own few instructions included"),
        ("futex_wake", "futex_wake", "the way into the kernel and back included"),
        ("futex_wait", "futex_wait_refused", "the way into the kernel and back included; queueing is not"),
    ] {
        let measurement = observed.needed(measured)?;
        let source = format!("{}; {what}", ran(measurement));
        figure(out, name, range(measurement).times(gigahertz), "cycles", How::Measured, &source);
    }
    Ok(())
}

/// The time of a switch to another address space, if a difference could be measured.
fn switch(observed: &Observed, gigahertz: f64, out: &mut String) {
    let Some(longer) = observed.measurement("switch.processes").filter(|longer| longer.value > 0.0) else { return };
    let _ = writeln!(out, "\n[paths]");
    let source = format!("{}; median of {} bursts of each by turns", longer.ran, longer.bursts);
    figure(out, "switch_mm", range(longer).times(gigahertz), "cycles", How::Derived, &source);
}

/// The last lines of `[os]`.
fn exits(observed: &Observed, out: &mut String) -> Result<(), Mistake> {
    let exit = observed.needed("process_exit")?;
    let source = format!("{}; telling, the wakeup and waiting for it included; the program is this one", ran(exit));
    figure(out, "do_exit", range(exit).times(observed.gigahertz()?), "cycles", How::Measured, &source);
    Ok(())
}

fn idle(observed: &Observed, fitted: &Fitted, kernel: &str, out: &mut String) {
    let driver = observed.host.idle.as_deref().unwrap_or("none");
    let _ = writeln!(out, "\n[idle]");
    let (word, why) = match observed.wakes_by_mwait() {
        true => ("mwait", "this driver's states are entered by mwait, as a rule"),
        false => ("interrupt", "this driver halts the CPU until an interrupt comes"),
    };
    fact(out, "wake_by", word, How::Derived, &format!("cpuidle's driver and governor: {driver}; {why}"));
    if let Some((_, name)) = driver.split_once('/').filter(|(_, name)| Governor::from_name(name).is_some()) {
        fact(out, "governor", name, How::Measured, "cpuidle/current_governor in sysfs");
    }
    if let Some(limit) = observed.host.halt_poll_ns {
        let source = "the parameter guest_halt_poll_ns of the module haltpoll, in sysfs";
        figure(out, "halt_poll", Range::exactly(limit as f64), "ns", How::Measured, source);
    }
    let halt = [("HLT".to_string(), 0, 0)];
    let states = if observed.idle_states.is_empty() { &halt[..] } else { &observed.idle_states };
    let crossing = crossing(observed).map(|(pair, _)| pair);
    for (name, latency_us, residency_us) in states {
        // Machine files use plain names: "haltpoll idle" becomes haltpoll-idle.
        let plain = name.replace(|c: char| !c.is_ascii_alphanumeric() && c != '_', "-");
        let _ = writeln!(out, "\n[[idle.state]]\nname = {}", quoted(&plain));
        let declared = format!("as the driver declares it in sysfs: {driver}");
        let how = if observed.idle_states.is_empty() { How::Guess } else { How::Vendor };
        figure(out, "exit_latency", Range::exactly(*latency_us as f64), "us", how, &declared);
        figure(out, "target_residency", Range::exactly(*residency_us as f64), "us", how, &declared);
        if name == "POLL" {
            let polling = Range { value: 30.0, low: 5.0, high: 200.0 };
            figure(out, "wake", polling, "ns", How::Guess, "the loop tests a flag between two pauses; not measured");
            continue;
        }
        let (more, after) = beyond(observed, *residency_us);
        let wake = Range { value: fitted.wake.value + more, low: fitted.wake.low, high: fitted.wake.high + more };
        match crossing {
            Some(pair) => {
                let source =
                    format!("so that the simulation of {kernel} takes {:.0} ns: {}{after}", pair.value, ran(pair));
                figure(out, "wake", wake, "ns", How::Fitted, &source);
            }
            None => {
                let guess = Range { value: 1_000.0, low: 200.0, high: 50_000.0 };
                figure(out, "wake", guess, "ns", How::Guess, "this process may use one CPU only: nothing was measured");
            }
        }
    }
}

/// How many nanoseconds longer a wakeup takes after an idle time that suits a state of that residency, than after the
/// shortest.
fn beyond(observed: &Observed, residency_us: u64) -> (f64, String) {
    let after =
        |measurement: &Measurement| measurement.name.strip_prefix("wake.").and_then(|us| us.parse::<u64>().ok());
    let mut wakes: Vec<(u64, f64)> =
        observed.measurements.iter().filter_map(|measurement| Some((after(measurement)?, measurement.value))).collect();
    wakes.sort_by_key(|&(us, _)| us);
    let fits = wakes.iter().find(|&&(us, _)| us >= residency_us * 2).or(wakes.last());
    match (wakes.first(), fits) {
        (Some(&(first, shortest)), Some(&(us, value))) if us > first => {
            let more = (value - shortest).max(0.0);
            (
                more,
                format!(
                    "; {more:.0} ns more, by which waking after {us} us of idleness took longer than after {first} us"
                ),
            )
        }
        _ => (0.0, String::new()),
    }
}
