//! Profiles of a run: of the part that its workload marks as measured, and of the whole.

use crate::prices::path_name;
use crate::symbols::{Symbols, called};
use machine::profile::Frame;
use observe::Profile;
use sim::engine::{LinuxSim, Sample};
use units::{Ns, Ps};
use workloads::MEASURED;

/// Takes the profile of the part that a workload marks as measured, or of its whole run.
pub struct Window {
    functions: Vec<String>,
    /// How many samples have been examined.
    seen: usize,
    began: Option<Profile>,
    measured: Option<Profile>,
}

impl Window {
    /// `None` if no functions are asked for; they may have the names of any kernel.
    pub fn of(functions: &[String], kernel: &str) -> Option<Window> {
        let here = |function: &String| called(function, kernel).map_or_else(|| function.clone(), str::to_string);
        let functions: Vec<String> = functions.iter().map(here).collect();
        (!functions.is_empty()).then_some(Window { functions, seen: 0, began: None, measured: None })
    }

    /// Checks whether a mark has come; `now` makes the profile up to now.
    pub fn look(&mut self, samples: &[Sample], now: &dyn Fn() -> Profile) {
        for sample in samples[self.seen..].iter().filter(|sample| sample.series == MEASURED) {
            match (sample.value, &self.began) {
                (0, Some(began)) => self.measured = Some(now().since(began)),
                _ => self.began = Some(now()),
            }
        }
        self.seen = samples.len();
    }

    /// The rows: two shares for each function. `all` is the profile of the whole run.
    pub fn rows(self, all: &dyn Fn() -> Profile) -> Vec<Vec<u64>> {
        let profile = self.measured.unwrap_or_else(all);
        let shares: Vec<(u64, u64)> = self.functions.iter().map(|function| profile.share(function)).collect();
        shares.iter().map(|share| vec![share.0]).chain(shares.iter().map(|share| vec![share.1])).collect()
    }
}

/// When the last path of any CPU ended.
pub(crate) fn end_of<const COSTS: bool>(sim: &LinuxSim<COSTS>) -> Ns {
    let clocks = sim.sched.rq.iter().map(|(cpu, _)| sim.sched.arch.now(cpu).ns());
    clocks.fold(sim.now(), Ns::max)
}

/// What was booked from `start` on, under this kernel's names.
pub(crate) fn profile<const COSTS: bool>(sim: &LinuxSim<COSTS>, kernel: &str, start: Ns) -> Profile {
    let hardware = &sim.sched.arch;
    let end = Ps::from(end_of(sim));
    let mut stacks = hardware.profile().expect("the profile was started").stacks();
    // A CPU that sleeps at the end has not booked that time yet.
    let asleep = sim.sched.rq.iter().filter_map(|(cpu, _)| hardware.idle_state(cpu));
    stacks.extend(asleep.map(|(state, since)| {
        let since = since.max(Ps::from(start));
        (vec![Frame::Comm(0), Frame::Idle(state as u8)], end.saturating_sub(since))
    }));
    named(sim, kernel, start, &stacks)
}

/// The same without idle time.
pub(crate) fn executed<const COSTS: bool>(sim: &LinuxSim<COSTS>, kernel: &str, start: Ns) -> Profile {
    let mut stacks = sim.sched.arch.profile().expect("the profile was started").stacks();
    stacks.retain(|(frames, _)| !matches!(frames.last(), Some(Frame::Idle(_))));
    named(sim, kernel, start, &stacks)
}

fn named<const COSTS: bool>(sim: &LinuxSim<COSTS>, kernel: &str, start: Ns, stacks: &[(Vec<Frame>, Ps)]) -> Profile {
    let symbols = Symbols::of(kernel, &sim.sched.arch.prices, path_name);
    Profile {
        stacks: stacks.iter().map(|(frames, time)| symbols.stack(frames, sim.comms(), *time)).collect(),
        cpus: sim.sched.rq.len(),
        duration_ps: Ps::from(end_of(sim)).saturating_sub(Ps::from(start)).0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use observe::{Object, Stack};
    use units::Ns;

    fn profile(tick: u64, user: u64) -> Profile {
        let stack = |object, frames: &[&str], time_ps| Stack {
            task: "java".to_string(),
            object,
            frames: frames.iter().map(|frame| frame.to_string()).collect(),
            time_ps,
        };
        let stacks = vec![
            stack(Object::Kernel, &["tick", "update"], tick),
            stack(Object::Kernel, &["tick"], tick),
            stack(Object::Task, &["main"], user),
        ];
        Profile { stacks, cpus: 1, duration_ps: 0 }
    }

    #[test]
    fn what_lies_between_the_marks_is_measured() {
        let mark = |value| Sample { at: Ns(1), series: MEASURED, value };
        let functions = ["update".to_string(), "tick".to_string()];
        let mut window = Window::of(&functions, "v4.15").expect("there are functions");
        let mut samples = vec![mark(1)];
        window.look(&samples, &|| profile(50, 50));
        window.look(&samples, &|| panic!("the mark was seen"));
        samples.push(Sample { at: Ns(2), series: 0, value: 7 });
        samples.push(mark(0));
        window.look(&samples, &|| profile(60, 130));
        // 10 and 10 in the tick of 100.
        assert_eq!(window.rows(&|| panic!("it was marked")), [[10_000_000], [20_000_000], [10_000_000], [10_000_000]]);
    }

    #[test]
    fn a_run_without_marks_is_measured_as_a_whole() {
        let window = Window::of(&["update".to_string()], "v4.15").expect("there is a function");
        assert_eq!(window.rows(&|| profile(25, 50)), [[25_000_000], [25_000_000]]);
        assert!(Window::of(&[], "v4.15").is_none());
    }

    #[test]
    fn functions_are_looked_for_by_the_names_that_the_kernel_has() {
        let stack = |frame: &str| Stack {
            task: "t".to_string(),
            object: Object::Kernel,
            frames: vec![frame.to_string()],
            time_ps: 10,
        };
        let stacks = vec![stack("sched_tick"), stack("scheduler_tick")];
        let profile = Profile { stacks, cpus: 1, duration_ps: 0 };
        for kernel in ["v4.15", "v6.12"] {
            let window = Window::of(&["scheduler_tick".to_string()], kernel).expect("there is a function");
            assert_eq!(window.functions, [if kernel == "v4.15" { "scheduler_tick" } else { "sched_tick" }]);
            assert_eq!(window.rows(&|| profile.clone()), [[50_000_000], [50_000_000]]);
        }
    }
}
