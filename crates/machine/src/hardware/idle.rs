//! Idle CPUs: the states they enter and how long they stay there.

use super::Hardware;
use crate::idle::{
    Choice, Cpuidle, Device, Governor, IdleOptions, IdleRules, Outlook, PackageResidency, Packages, StateTable, Way,
    Woken,
};
use crate::prices::{IdleState, Prices};
use crate::profile::Frame;
use crate::topology::Topology;
use units::{CpuId, Ps};

/// What a CPU did in each of its idle states, from the shallowest: what `/sys/devices/system/cpu/cpuN/cpuidle` counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Residency {
    pub idle: Vec<Ps>,
    pub entries: Vec<u64>,
    /// Idles that were too short for their state although a shallower one was enabled.
    pub above: Vec<u64>,
    /// Idles that were long enough for the next deeper state.
    pub below: Vec<u64>,
}

/// What idle CPUs have in common: one set for each kind of CPU that has idle states of its own.
pub(super) struct Cpuidles {
    all: Vec<Cpuidle>,
    /// The number of each CPU's set; empty where all CPUs have the same.
    of_cpu: Vec<u8>,
}

impl Cpuidles {
    pub fn new(topology: &Topology, prices: &Prices, rules: IdleRules, options: &IdleOptions) -> Cpuidles {
        let cpuidle = |states: &[IdleState]| Cpuidle { rules, table: StateTable::new(states, options) };
        let kinds = &prices.idle_states_of_kinds;
        let of_kind = |(cpu, _)| kinds.iter().position(|(cpus, _)| cpus.contains(cpu)).map_or(0, |kind| kind as u8 + 1);
        Cpuidles {
            all: std::iter::once(&prices.idle_states)
                .chain(kinds.iter().map(|(_, states)| states))
                .map(|states| cpuidle(states))
                .collect(),
            of_cpu: if kinds.is_empty() { Vec::new() } else { topology.cpus().map(of_kind).collect() },
        }
    }

    #[inline(always)]
    pub fn of(&self, cpu: CpuId) -> &Cpuidle {
        &self.all[self.of_cpu.get(cpu.index()).map_or(0, |&kind| usize::from(kind))]
    }

    /// Any of the sets: the rules, and whether there is a state to choose, are the same in all.
    #[inline]
    fn any(&self) -> &Cpuidle {
        &self.all[0]
    }
}

/// One CPU's idling.
pub(super) struct Idling {
    device: Device,
    /// What the governor chose last.
    chosen: usize,
    state: Option<usize>,
    /// Whether the CPU is offline. Then it does not poll.
    dead: bool,
    /// Since when the CPU has been in the state, less the time it executed meanwhile.
    since: Ps,
    /// When it entered the state, if that polls.
    polls_since: Ps,
    /// When cpuidle_enter_state() read the clock before it entered the state: the governor's measurement begins there.
    entered: Ps,
    /// The state left last and the nanoseconds spent in it, for the governor to reflect on.
    left: (usize, u64),
    pub residency: Residency,
}

impl Idling {
    pub fn new(cpuidle: &Cpuidle) -> Idling {
        let states = cpuidle.table.states.len();
        Idling {
            device: cpuidle.device(),
            chosen: 0,
            state: None,
            dead: false,
            since: Ps::ZERO,
            polls_since: Ps::ZERO,
            entered: Ps::ZERO,
            left: (0, 0),
            residency: Residency {
                idle: vec![Ps::ZERO; states],
                entries: vec![0; states],
                above: vec![0; states],
                below: vec![0; states],
            },
        }
    }

    /// cpuidle.c: the part of cpuidle_enter_state() that judges the choice by how long the CPU stayed.
    fn judge(&mut self, table: &StateTable, state: usize, residency_ns: u64) {
        let enabled = |(index, state): (usize, &crate::idle::State)| (!state.disabled).then_some(index);
        let of = &table.states[state];
        if residency_ns < of.target_residency_ns {
            if table.states[..state].iter().enumerate().find_map(enabled).is_some() {
                self.residency.above[state] += 1;
            }
        } else if let Some(rest) = residency_ns.checked_sub(of.exit_latency_ns)
            && let Some(next) = table.states[state + 1..].iter().find(|next| !next.disabled)
            && rest >= next.target_residency_ns
        {
            self.residency.below[state] += 1;
        }
    }
}

impl<const COSTS: bool> Hardware<COSTS> {
    /// Applies what the command line says about idling. To be called before the first CPU idles.
    pub fn set_idle_options(&mut self, options: &IdleOptions) {
        let way = options.way;
        self.each_idle_table(|states| match way {
            Way::Governed => {}
            Way::Poll => states.truncate(1),
            Way::Off | Way::Halt => {
                let shallowest = states.iter().position(|state| !state.polling).unwrap_or(0);
                states.swap(0, shallowest);
                states.truncate(1);
            }
        });
        if way == Way::Halt {
            self.prices.mwait = false;
            self.prices.halts_in = "default_idle";
        }
        let before = self.cpuidles.any();
        let (rules, tick) = (before.rules, Ps::from_ns(before.table.tick_ns));
        self.cpuidles = Cpuidles::new(&self.topology, &self.prices, rules, options);
        self.set_tick(tick);
        let enterable = self.cpuidles.any().table.states.len();
        self.each_idle_table(|states| states.truncate(enterable));
        self.packages = Packages::new(&self.topology, &self.prices);
        self.flushing_from = self.prices.flushing_from();
        for cpu in self.topology.cpus().map(|(cpu, _)| cpu) {
            self.cpus[cpu.index()].idling = Idling::new(self.cpuidles.of(cpu));
        }
    }

    fn each_idle_table(&mut self, change: impl Fn(&mut Vec<IdleState>)) {
        change(&mut self.prices.idle_states);
        self.prices.idle_states_of_kinds.iter_mut().for_each(|(_, states)| change(states));
    }

    /// The length of a tick.
    pub fn set_tick(&mut self, tick: Ps) {
        self.cpuidles.all.iter_mut().for_each(|cpuidle| cpuidle.table.tick_ns = tick.ns().0);
    }

    pub fn idle_rules(&self) -> &IdleRules {
        &self.cpuidles.any().rules
    }

    /// Whether a governor is asked, because there is a state to choose.
    #[inline]
    pub fn idle_is_governed(&self) -> bool {
        self.cpuidles.any().is_governed()
    }

    /// sysfs.c: store_state_disable(), for that state of all CPUs, if the table has it. It counts from the next choice on.
    #[doc(alias = "store_state_disable")]
    pub fn disable_idle_state(&mut self, state: usize, disabled: bool) {
        let of = |cpuidle: &mut Cpuidle| {
            if let Some(state) = cpuidle.table.states.get_mut(state) {
                state.disabled = disabled;
            }
        };
        self.cpuidles.all.iter_mut().for_each(of);
        for cpu in self.topology.cpus().map(|(cpu, _)| cpu) {
            let idling = &mut self.cpus[cpu.index()].idling;
            self.cpuidles.of(cpu).cpuidle_state_store(&mut idling.device);
        }
    }

    /// governor.c: cpuidle_switch_governor(). Returns whether it is another one.
    pub fn cpuidle_switch_governor(&mut self, governor: Governor) -> bool {
        if self.cpuidles.any().rules.governor == governor {
            return false;
        }
        self.cpuidles.all.iter_mut().for_each(|cpuidle| cpuidle.rules.governor = governor);
        for cpu in self.topology.cpus().map(|(cpu, _)| cpu) {
            let idling = &mut self.cpus[cpu.index()].idling;
            self.cpuidles.of(cpu).cpuidle_enable_device(&mut idling.device);
        }
        true
    }

    /// kernel/power/qos.c: pm_qos_update_target(): the exit latency that is allowed in microseconds; `None`: any. Returns
    /// whether it is another one than before.
    pub fn pm_qos_update_target(&mut self, latency_us: Option<u32>) -> bool {
        let latency_req_ns = StateTable::latency_req_ns(latency_us);
        let before = self.cpuidles.any().table.latency_req_ns;
        self.cpuidles.all.iter_mut().for_each(|cpuidle| cpuidle.table.latency_req_ns = latency_req_ns);
        before != latency_req_ns
    }

    pub fn residency(&self, cpu: CpuId) -> &Residency {
        &self.cpus[cpu.index()].idling.residency
    }

    /// What each package has counted up to `end`; empty where packages have no states of their own.
    pub fn package_residency(&self, end: Ps) -> Vec<PackageResidency> {
        self.packages.residency(end)
    }

    /// The idle loop of `cpu` asks for a state.
    #[inline]
    pub fn choose_idle(&mut self, cpu: CpuId, outlook: &Outlook) -> Choice {
        let idling = &mut self.cpus[cpu.index()].idling;
        let choice = self.cpuidles.of(cpu).select(&mut idling.device, outlook);
        (idling.chosen, idling.dead) = (choice.state, false);
        choice
    }

    /// The same where there is no state to choose. `got_tick`: a tick has just ended an idle.
    #[inline]
    pub fn take_only_idle(&mut self, cpu: CpuId, got_tick: bool) -> Choice {
        let idling = &mut self.cpus[cpu.index()].idling;
        (idling.chosen, idling.dead) = (0, false);
        self.cpuidles.of(cpu).only_choice(got_tick)
    }

    /// cpuidle.c: cpuidle_play_dead(): a CPU that goes offline takes the deepest state that the machine has, whatever
    /// the rules allow otherwise. It halts even on a machine whose idle CPUs only poll.
    pub fn play_dead(&mut self, cpu: CpuId) {
        let deepest = self.prices.idle_states.iter().rposition(|state| !state.polling);
        let idling = &mut self.cpus[cpu.index()].idling;
        (idling.chosen, idling.dead) = (deepest.unwrap_or(0), true);
        self.begin_idle(cpu);
    }

    /// cpuidle.c: cpuidle_enter_state(): `cpu`, which executes, begins to enter the chosen state. The measured
    /// residency includes the time to enter the state and the time to leave it.
    #[inline(always)]
    pub fn begin_idle(&mut self, cpu: CpuId) {
        let now = self.now(cpu);
        self.cpus[cpu.index()].idling.entered = now;
    }

    /// When `cpu` began to enter its state.
    #[inline]
    pub fn idle_began(&self, cpu: CpuId) -> Ps {
        self.cpus[cpu.index()].idling.entered
    }

    /// Whether `cpu` executes while it is in this state. All kinds of CPU poll in the same states, as a machine file's rule
    /// wants it.
    #[inline]
    pub fn polls_in(&self, cpu: CpuId, state: usize) -> bool {
        self.prices.idle_states[state].polling && !self.cpus[cpu.index()].idling.dead
    }

    /// `cpu` has to reschedule before it has entered the chosen state.
    pub fn reject_idle(&mut self, cpu: CpuId) {
        let idling = &mut self.cpus[cpu.index()].idling;
        self.cpuidles.of(cpu).reject(&mut idling.device);
    }

    /// `cpu` enters the chosen state at `now`. Returns the state, and until when it polls there at the longest.
    pub fn enter_idle(&mut self, cpu: CpuId, now: Ps) -> (usize, Ps) {
        let polls = self.polls_in(cpu, self.cpus[cpu.index()].idling.chosen);
        let idling = &mut self.cpus[cpu.index()].idling;
        let state = idling.chosen;
        idling.state = Some(state);
        idling.since = now;
        idling.residency.entries[state] += 1;
        if self.packages.follow(state) {
            self.packages.enter(cpu, now);
        }
        let limit = match polls {
            true => self.cpuidles.of(cpu).cpuidle_poll_time(&idling.device),
            false => None,
        };
        if COSTS && state >= self.flushing_from {
            self.flush_core(cpu);
        }
        self.halt_clock(cpu, now, state);
        self.meter_idle(cpu, now, state);
        (state, limit.map_or(Ps::NEVER, |ns| self.poll_end(cpu, now, Ps::from_ns(ns))))
    }

    /// poll_state.c: poll_idle(): the time between two looks at the clock, which come after POLL_IDLE_RELAX_COUNT (200)
    /// rounds and one more.
    fn poll_looks(&self, cpu: CpuId) -> Ps {
        const POLL_IDLE_RELAX_COUNT: u64 = 200;
        let rounds = if COSTS { POLL_IDLE_RELAX_COUNT + 1 } else { 0 };
        Ps(rounds * self.prices.poll_round.0 * self.cpus[cpu.index()].alone)
    }

    /// When a CPU that polls from `now` on first sees that more than `limit` has passed.
    #[cold]
    fn poll_end(&mut self, cpu: CpuId, now: Ps, limit: Ps) -> Ps {
        self.cpus[cpu.index()].idling.polls_since = now;
        match self.poll_looks(cpu) {
            Ps::ZERO => now + limit,
            Ps(looks) => now + Ps((limit.0 / looks + 1) * looks),
        }
    }

    /// `cpu` has entered a state so deep that its core empties its own caches, once all other threads of the core are
    /// in such a state as well.
    #[inline(never)]
    fn flush_core(&mut self, cpu: CpuId) {
        let flushes = |cpu: CpuId| {
            let state = self.cpus[cpu.index()].idling.state;
            state.is_some_and(|state| self.prices.idle_state_of(cpu, state).flushes)
        };
        if flushes(cpu) && self.siblings.of(cpu).iter().all(|&other| flushes(other)) {
            self.warmth.emptied(&self.topology, cpu);
        }
    }

    /// Something wakes `cpu` at `now`; `iowait`: while tasks that last ran there wait for a device. Returns when the
    /// CPU executes its first instruction.
    pub fn leave_idle(&mut self, cpu: CpuId, now: Ps, iowait: bool) -> Ps {
        let idling = &mut self.cpus[cpu.index()].idling;
        let state = idling.state.take().expect("only an idle CPU leaves idle");
        let price = self.prices.idle_state_of(cpu, state);
        let mut wake = price.wake;
        if self.packages.follow(state) && self.packages.leave(cpu, now) {
            wake += price.package_wake;
        }
        let first = now + if COSTS { wake } else { Ps::ZERO };
        let idle = first.saturating_sub(idling.since);
        idling.residency.idle[state] += idle;
        let residency_ns = first.saturating_sub(idling.entered).ns().0;
        idling.left = (state, residency_ns);
        idling.judge(&self.cpuidles.of(cpu).table, state, residency_ns);
        self.resume_clock(cpu, first, iowait);
        self.meter_resume(cpu, first);
        if let Some(profile) = &mut self.profile {
            let since = first - idle;
            let booked = first.saturating_sub(since.max(profile.since()));
            profile.add_frame(cpu.index(), Frame::Idle(state as u8), booked);
        }
        first
    }

    /// An event that was pending at `now` ended the state of `cpu` as it was entered. Returns the state.
    pub fn bounce_off_idle(&mut self, cpu: CpuId, now: Ps) -> usize {
        let idling = &mut self.cpus[cpu.index()].idling;
        let state = idling.chosen;
        let residency_ns = now.saturating_sub(idling.entered).ns().0;
        idling.left = (state, residency_ns);
        idling.residency.entries[state] += 1;
        idling.judge(&self.cpuidles.of(cpu).table, state, residency_ns);
        state
    }

    /// The interrupt that ended the idle is over: the governor of `cpu` reflects on the idle.
    #[inline]
    pub fn reflect_on_idle(&mut self, cpu: CpuId, woken: Woken) {
        let idling = &mut self.cpus[cpu.index()].idling;
        let (state, residency_ns) = idling.left;
        self.cpuidles.of(cpu).reflect(&mut idling.device, state, residency_ns, woken);
    }

    /// `cpu` executed for `time` something that comes from outside the simulation, while it stays in its idle state.
    /// This is no idle time.
    pub fn executed_beside_idle(&mut self, cpu: CpuId, time: Ps) {
        let idling = &mut self.cpus[cpu.index()].idling;
        idling.since += time;
        idling.entered += time;
        let to = self.now(cpu);
        if let Some(meter) = &mut self.meter {
            meter.executed_beside(cpu, to.saturating_sub(time), to);
        }
    }

    /// `cpu` takes an interrupt while it polls; `iowait`: while tasks wait for a device.
    pub fn interrupts_polling(&mut self, cpu: CpuId, iowait: bool) {
        let now = self.now(cpu);
        if let Some(frequency) = &mut self.frequency {
            frequency.stop_idle(cpu, now, iowait);
        }
    }

    /// That interrupt took `time`. It is no idle time, but the governor does not see that. `end` is when the polling
    /// would have ended without it; returns when it does with it: the rounds wait, their limit does not.
    pub fn interrupted_polling(&mut self, cpu: CpuId, time: Ps, end: Ps) -> Ps {
        self.cpus[cpu.index()].idling.since += time;
        let now = self.now(cpu);
        if let Some(frequency) = &mut self.frequency {
            frequency.idle(cpu, now);
        }
        let idling = &self.cpus[cpu.index()].idling;
        let Some(limit) = self.cpuidles.of(cpu).cpuidle_poll_time(&idling.device) else { return end };
        let looks = self.poll_looks(cpu);
        if looks == Ps::ZERO || end == Ps::NEVER {
            return end;
        }
        let over = idling.polls_since + Ps::from_ns(limit);
        let later = end + time;
        let earlier = later.saturating_sub(now.max(over) + Ps(1)).0 / looks.0;
        later - Ps(earlier * looks.0)
    }

    /// The state `cpu` is in, and since when; `None` if it is not idle.
    pub fn idle_state(&self, cpu: CpuId) -> Option<(usize, Ps)> {
        let idling = &self.cpus[cpu.index()].idling;
        idling.state.map(|state| (state, idling.since))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::{Numbering, from_synthetic};
    use sched::versions::{V4_16, V5_10};
    use units::Cycles;

    const BIG: CpuId = CpuId(0);
    const LITTLE: CpuId = CpuId(1);

    fn state(name: &str, exit_latency_us: u32, target_residency_us: u32, wake_us: u64) -> IdleState {
        IdleState {
            polling: false,
            wake: Ps::from_ns(wake_us * 1_000),
            ..IdleState::declared(name, exit_latency_us, target_residency_us)
        }
    }

    /// A big CPU and a little one. The deep state pays off after 1.89 ms on the little one and after 0.95 ms on the big
    /// one.
    fn phone() -> Hardware<true> {
        let topology = from_synthetic("pack:1 core:2 pu:1", "test", Numbering::AsListed).expect("a valid machine");
        let mut prices = Prices::free();
        prices.idle_states = vec![state("WFI", 1, 1, 2), state("rail-off", 885, 952, 300)];
        let little = vec![state("WFI", 1, 1, 2), state("rail-off", 811, 1_890, 220)];
        prices.idle_states_of_kinds = vec![([LITTLE].into_iter().collect(), little)];
        Hardware::new(topology, prices, V4_16.layout(), IdleRules::V6_1, 1)
    }

    #[test]
    fn a_cpu_idles_by_the_table_of_its_kind() {
        let mut hardware = phone();
        let choose = |hardware: &mut Hardware<true>, cpu, us: u64| {
            let ns = us * 1_000;
            let outlook = Outlook {
                now_ns: 1_000_000,
                sleep_length_ns: ns,
                delta_tick_ns: ns,
                tick_stopped: true,
                nr_iowaiters: 0,
                utilized: false,
            };
            hardware.choose_idle(cpu, &outlook).state
        };
        assert_eq!([BIG, LITTLE].map(|cpu| choose(&mut hardware, cpu, 1_500)), [1, 0]);
        assert_eq!([BIG, LITTLE].map(|cpu| choose(&mut hardware, cpu, 2_500)), [1, 1]);
        let woken = [BIG, LITTLE].map(|cpu| {
            hardware.begin(cpu, Ps::from_ns(2_000_000));
            hardware.begin_idle(cpu);
            assert_eq!(hardware.enter_idle(cpu, Ps::from_ns(2_000_000)), (1, Ps::NEVER));
            hardware.leave_idle(cpu, Ps::from_ns(3_200_000), false).ns().0
        });
        assert_eq!(woken, [3_500_000, 3_420_000]);
        // 1.42 ms were too short for the little one only.
        assert_eq!([BIG, LITTLE].map(|cpu| hardware.residency(cpu).above.clone()), [vec![0, 0], vec![0, 1]]);
    }

    /// Two cores of two threads. Returns what coming back to CPU 0 costs a task that has left 6400 bytes there.
    #[test]
    fn a_core_loses_its_caches_once_all_its_threads_sleep_deeply() {
        let topology = from_synthetic("pack:1 l3:1 core:2 pu:2", "test", Numbering::LinuxX86).expect("a valid machine");
        let (here, sibling, task) = (CpuId(0), CpuId(2), sched::sched::TaskId(0));
        // The task leaves, then these CPUs enter these states, and those leave them again.
        let returns = |flushes: bool, enter: &[(CpuId, usize)], leave: &[CpuId]| {
            let mut prices = Prices { l2_bytes: 64 * 1024, ..Prices::free() };
            prices.lines.llc_hit = Ps::from_ns(20);
            prices.idle_states = vec![state("C1", 2, 2, 1), IdleState { flushes, ..state("C6", 133, 400, 50) }];
            let rules = IdleRules::V6_1;
            let mut hardware = Hardware::<true>::new(topology.clone(), prices, V4_16.layout(), rules, 1);
            let set = crate::warmth::WorkingSet { bytes: 6400, data: 6400 };
            let come = |hardware: &mut Hardware<true>| {
                hardware.begin(here, Ps::from_ns(1_000));
                let began = hardware.now(here);
                hardware.switch_in(here, task, set);
                hardware.switch_out(here, task);
                (hardware.now(here) - began).ns().0
            };
            assert_eq!(come(&mut hardware), 2_000);
            for &(cpu, state) in enter {
                hardware.cpus[cpu.index()].idling.chosen = state;
                hardware.enter_idle(cpu, Ps::from_ns(5_000));
            }
            for &cpu in leave {
                hardware.leave_idle(cpu, Ps::from_ns(6_000), false);
            }
            come(&mut hardware)
        };
        let (shallow, deep) = (0, 1);
        assert_eq!(returns(true, &[(here, deep), (sibling, deep)], &[here]), 2_000);
        assert_eq!(returns(true, &[(sibling, deep), (here, deep)], &[sibling, here]), 2_000, "whoever comes last");
        assert_eq!(returns(true, &[(here, deep)], &[here]), 0, "the other thread is awake");
        assert_eq!(returns(true, &[(sibling, shallow), (here, deep)], &[here]), 0, "or sleeps lightly");
        assert_eq!(returns(true, &[(here, shallow), (sibling, shallow)], &[here]), 0);
        assert_eq!(returns(false, &[(here, deep), (sibling, deep)], &[here]), 0, "nobody says that it flushes");
        let other = [(CpuId(1), deep), (CpuId(3), deep)];
        assert_eq!(returns(true, &other, &[]), 0, "another core's sleep is its own");
    }

    #[test]
    fn a_state_that_ends_as_it_begins_was_too_deep() {
        let mut hardware = phone();
        hardware.cpus[BIG.index()].idling.chosen = 1;
        hardware.begin(BIG, Ps::from_ns(1_000));
        hardware.begin_idle(BIG);
        hardware.bounce_off_idle(BIG, Ps::from_ns(1_080));
        assert_eq!(hardware.cpus[BIG.index()].idling.left, (1, 80), "the way in and out is measured");
        let residency = hardware.residency(BIG);
        assert_eq!((&residency.entries, &residency.above), (&vec![0, 1], &vec![0, 1]));
    }

    #[test]
    fn an_idle_was_long_enough_for_a_deeper_state_without_the_way_out_of_its_own() {
        // 1 us of the way out of WFI; rail-off is worth it from 952 us on.
        for (ns, below) in [(952_999, 0), (953_000, 1)] {
            let mut hardware = phone();
            hardware.cpus[BIG.index()].idling.chosen = 0;
            hardware.begin(BIG, Ps::from_ns(1_000));
            hardware.begin_idle(BIG);
            hardware.bounce_off_idle(BIG, Ps::from_ns(1_000 + ns));
            assert_eq!(hardware.residency(BIG).below, [below, 0], "{ns} ns");
        }
    }

    #[test]
    fn a_cpu_that_goes_offline_halts_whatever_the_command_line_says() {
        let poll = IdleState { polling: true, ..state("POLL", 0, 0, 0) };
        for way in [Way::Governed, Way::Poll] {
            let topology = from_synthetic("pack:1 core:2 pu:1", "test", Numbering::AsListed).expect("a valid machine");
            let prices = Prices { idle_states: vec![poll.clone(), state("C1", 2, 2, 1)], ..Prices::free() };
            let mut hardware = Hardware::<true>::new(topology, prices, V4_16.layout(), IdleRules::V6_1, 1);
            hardware.set_idle_options(&IdleOptions { way, states_off: 0b11, ..IdleOptions::default() });
            hardware.play_dead(BIG);
            let deepest = hardware.prices.idle_states.len() - 1;
            assert_eq!(hardware.enter_idle(BIG, Ps::ZERO), (deepest, Ps::NEVER));
            assert!(!hardware.polls_in(BIG, deepest));
            hardware.leave_idle(BIG, Ps::from_ns(1_000), false);
            hardware.take_only_idle(BIG, false);
            assert_eq!(hardware.polls_in(BIG, deepest), way == Way::Poll, "up again");
        }
    }

    #[test]
    fn the_command_line_speaks_of_every_kinds_states() {
        let mut hardware = phone();
        hardware.set_idle_options(&IdleOptions { way: Way::Halt, ..IdleOptions::default() });
        assert!(!hardware.idle_is_governed() && !hardware.prices.mwait);
        assert_eq!(hardware.prices.halts_in, "default_idle");
        let exit = |cpu| hardware.prices.idle_state_of(cpu, 0).name.clone();
        assert_eq!([exit(BIG), exit(LITTLE)], ["WFI", "WFI"]);
        assert_eq!(hardware.prices.all_idle_states().count(), 2);
    }

    /// A CPU at 1 GHz that polls for as long as its next state must last, in rounds of so many cycles.
    fn poller(round: u64, residency_us: u32) -> Hardware<true> {
        let topology = from_synthetic("pack:1 core:1 pu:1", "test", Numbering::LinuxX86).expect("valid");
        let idle_states = vec![IdleState::declared("POLL", 0, 0), IdleState::declared("C1", 2, residency_us)];
        let prices = Prices { idle_states, poll_round: Cycles(round), ..Prices::free() };
        Hardware::new(topology, prices, V5_10.layout(), IdleRules::V5_10, 1)
    }

    #[test]
    fn polling_ends_at_the_first_look_after_its_limit() {
        let end = |round, limit_us| poller(round, limit_us).enter_idle(BIG, Ps(500)).1 - Ps(500);
        assert_eq!(end(0, 2), Ps::from_ns(2_000), "at every moment");
        assert_eq!(end(10, 2), Ps::from_ns(2_010));
        assert_eq!(end(10, 3), Ps::from_ns(4_020));
        // As on a Skylake: a limit of 2 us is 28.
        assert_eq!(end(140, 2), Ps::from_ns(28_140));
    }

    #[test]
    fn rounds_wait_for_an_interrupt_and_the_limit_does_not() {
        let end = |limit_us, at_ns, took_ns| {
            let mut hardware = poller(10, limit_us);
            let (_, end) = hardware.enter_idle(BIG, Ps::ZERO);
            let (at, took) = (Ps::from_ns(at_ns), Ps::from_ns(took_ns));
            hardware.begin(BIG, at + took);
            hardware.interrupted_polling(BIG, took, end)
        };
        assert_eq!(end(2, 1_000, 500), Ps::from_ns(2_510));
        // The second look, at 4020 ns without the interrupt, is not needed: after it the first one is late enough.
        assert_eq!(end(3, 1_000, 3_000), Ps::from_ns(5_010));
        // That one had been.
        assert_eq!(end(3, 2_500, 3_000), Ps::from_ns(7_020));
    }
}
