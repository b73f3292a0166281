//! Which idle state a CPU enters: drivers/cpuidle, its governors and its table of states.
//!
//! [`Cpuidle`] is what the CPUs of a machine have in common (the table of states, the kernel's rules), [`Device`] what
//! each has of its own. The idle loop tells a governor what it knows ([`Outlook`]). The governor answers with a state
//! and whether the tick is to stop ([`Choice`]). After the wakeup the idle loop tells it what happened.

mod haltpoll;
mod ladder;
mod menu;
mod package;
mod table;
mod teo;

pub use package::{PackageResidency, Packages};
pub use table::{IdleOptions, State, StateTable, Way};

use haltpoll::Haltpoll;
use ladder::Ladder;
use menu::Menu;
use sched::{behaviour, rules};
use teo::Teo;
use units::unlikely;

behaviour! {
    /// The governor in use: of those that are built in, the one with the best rating, or the one that the command line names.
    pub enum Governor = "idle.governor" {
        Ladder = "ladder", since "v2.6.24", commit "",
            "one state deeper after four idles that were long enough, one back after one that was too short; the default of kernels with a periodic tick";
        Menu = "menu", since "v2.6.24", commit "", "the next timer, corrected by experience, against the typical length of the last idles; the default of tickless kernels";
        Teo = "teo", since "v5.1", commit "b26bf6ab716f", "how often idles ended with the timer, and how often before, by state; the default where menu is not built in";
        Haltpoll = "haltpoll", since "v5.4", commit "2cffe9f6b96f", "polls first, for as long as that has been worth it, then halts; for guests of KVM";
    }
}

behaviour! {
    /// The form of the menu governor.
    pub enum MenuRule = "idle.menu" {
        Interactivity = "interactivity", since "v4.5", commit "a9ceb78bc75c",
            "poll when the predicted idle time is 20 us or less; a typical interval replaces the corrected timer";
        NextTimerOff = "next-timer-off", since "v4.6", commit "e132b9b3bc7f",
            "no polling while the next timer is more than 20 us away (or C1's residency, if longer); the shorter of both predictions holds; where no \
             deeper state fits, the shallowest is entered even if it is disabled";
        NextTimer = "next-timer", since "v4.13", commit "", "the same, but then the shallowest that is enabled";
        TickBound = "tick-bound", since "v4.17", commit "554c8aa8ecad",
            "decides about the tick too: it goes on where a short idle is predicted or a deeper state would take too long to leave; once it is \
             stopped, an idle of a tick is expected rather than a shorter one; polls as before";
        TickNextTimer = "tick-next-timer", since "v4.19", commit "",
            "the same, but it goes on where the state is shallow, too, and who is stopped in a shallow state is not left there (after v4.17, by 4.19.108)";
        TickRetained = "tick-retained", since "v4.20", commit "",
            "the same, but polls where no state fits, and at once where the next timer or the latency allowed leaves nothing else";
        Tick = "tick", since "v5.4", commit "",
            "the same, but the tick goes on where a short idle is predicted alone, and stops where the only choice does not poll";
        TypicalAlone = "typical-alone", since "v6.6", commit "5484e31bbbff",
            "looks at the next timer only where the typical interval is longer than 15 us, be the tick stopped or not";
        TypicalUncapped = "typical-uncapped", since "v6.17", commit "779b1a1cb13a",
            "the same, but a state may take longer to leave than the idle is predicted to last";
        TypicalShallow = "typical-shallow", since "v6.19", commit "",
            "the same, but a state that stands in for polling must be shallow, and be left within the prediction";
        TypicalFirst = "typical-first", since "v6.12.y", again "v7.0", commit "",
            "the same, but looks at the next timer always while the tick is stopped (late releases of v6.12.y and v6.18.y have it, too)";
    }
}

behaviour! {
    /// Whether tasks that wait for devices make the menu governor cautious.
    pub enum MenuIowait = "idle.menu_iowait" {
        Counts = "counts", since "v2.6.32", commit "",
            "idles with tasks in iowait are counted apart, and each such task lowers the exit latency that is allowed";
        Ignored = "ignored", since "v6.12.y", again "v6.13", commit "38f83090f515", "they make no difference";
    }
}

behaviour! {
    /// What the menu governor makes of a state that was not entered after all.
    pub enum MenuRejected = "idle.menu_rejected" {
        Nothing = "nothing", since "v2.6.24", commit "", "nothing: it learns from idles alone";
        Forgets = "forgets", since "v6.17", commit "fa3fa55de0d6",
            "it forgets the oldest of the last eight idles; also in late releases of v6.1.y and v6.12.y";
    }
}

behaviour! {
    /// What the menu governor leaves out of the last eight idles where they do not agree.
    pub enum MenuOutliers = "idle.menu_outliers" {
        Longest = "longest", since "v3.0", commit "", "the longest ones";
        EitherSideOrMost = "either-side-or-most", since "v6.15", commit "85975daeaa4d",
            "those that are farthest from their mean, be they the longest or the shortest; the variance is reckoned from squares; if even the last four to six do not agree, the longest of them is the typical length";
        EitherSide = "either-side", since "v6.18", commit "10fad4012234", "the same, but then there is no typical length";
    }
}

behaviour! {
    /// What the menu governor makes of a short prediction while the tick is stopped, and a timer alone may end a shallow state.
    pub enum MenuStopped = "idle.menu_stopped" {
        Distrusts = "distrusts", since "v4.17", commit "", "it takes the time to the next timer instead";
        NearTimer = "near-timer", since "v7.1", commit "", "the same, but where that timer is at most two ticks away";
    }
}

behaviour! {
    /// What the haltpoll governor makes of a limit that it has halved to less than it began with.
    pub enum HaltpollShrink = "idle.haltpoll_shrink" {
        Halves = "halves", since "v5.4", commit "2cffe9f6b96f", "it polls for that long";
        Resets = "resets", since "v6.9", commit "496d0a648509", "it does not poll until it begins anew";
    }
}

behaviour! {
    /// The form of the teo governor.
    pub enum TeoRule = "idle.teo" {
        EarlyHits = "early-hits", since "v5.1", commit "b26bf6ab716f",
            "early, hits and misses by state, and the mean of eight of the last nine idles where most of them were shorter than the state requires";
        Hits = "hits", since "v5.4", commit "",
            "the same, with the last eight, where most of them were shorter than expected; counts of disabled states speak for the next shallower one";
        Recent = "recent", since "v5.14", commit "77577558f25d",
            "hits and intercepts by state, and the last nine intercepts apart; the next timer is always looked at";
        RecentUtilized = "recent-utilized", since "v6.3", commit "9ce0f7c4bc64",
            "the same, and one state shallower where the CPU has been busy for more than a 64th of late";
        Utilized = "utilized", since "v6.6", commit "",
            "the same, with idles longer than a tick apart; the next timer is looked at last, unless the shallowest states are chosen";
        Intercepts = "intercepts", since "v6.11", commit "449914398083",
            "hits and intercepts alone, longer ones than a tick apart; the next timer is looked at where it could matter";
        TickIntercepts = "tick-intercepts", since "v6.14", commit "",
            "the same, but idles of a tick and more are counted apart only where no timer ended them, and the timer is looked at unless most idles are short";
        TickWakeups = "tick-wakeups", since "v6.19", commit "",
            "the same, but ticks that wake are counted apart, and so are the idles of at most a tick that no timer ended";
        MostIntercepts = "most-intercepts", since "v7.0", commit "",
            "the same, but a hit ends with the timer, and a state is no deeper than where most intercepts are";
        ShortIdles = "short-idles", since "v7.1", commit "",
            "the same, but while the tick is stopped the timer is always looked at, and a CPU is kept from shallow states only if it is far away";
    }
}

behaviour! {
    /// What the teo governor does, while the tick is stopped, where a timer comes before a state is worth it and those that fit need less than a tick.
    pub enum TeoStopped = "idle.teo_stopped" {
        Stays = "stays", since "v6.6", commit "", "it stays with the state";
        Follows = "follows", since "v6.12.y", again "v6.19", commit "",
            "it takes the deepest that fits";
    }
}

behaviour! {
    /// Who decides about the tick of an idle CPU.
    pub enum TickStop = "idle.tick" {
        Always = "always", since "v3.10", commit "", "the idle loop stops the tick before a state is chosen";
        Governor = "governor", since "v4.17", commit "554c8aa8ecad", "the governor is asked first";
    }
}

behaviour! {
    /// Whether the tick of an idle CPU stops for which nobody chooses: there is no driver, or one state alone.
    pub enum TickUnchosen = "idle.tick_unchosen" {
        Stops = "stops", since "v3.10", commit "", "yes, unless that state is polling";
        AfterTick = "after-tick", since "v6.12.y", again "v7.0", commit "",
            "once a tick has ended an idle, and not before (long-term trees that have it are 5.10.262, 6.1.192 and 6.12.117, but not 6.6.17)";
    }
}

behaviour! {
    /// How long a CPU polls that has entered the polling state.
    pub enum PollLimit = "idle.poll" {
        None = "unlimited", since "v2.6.24", commit "", "until it must reschedule; interrupts alone do not end it";
        SixteenthOfTick = "sixteenth-of-tick", since "v4.17", commit "", "at most a sixteenth of a tick";
        FirstState = "first-state", since "v4.20", commit "",
            "at most the residency of the first enabled state after it, however short, or a tick if there is none (v4.20 itself takes the first, enabled or not)";
        Residency = "residency", since "v5.11", commit "7a25759eaa04",
            "at most the residency of the first enabled state that needs 10 us or more, and a sixteenth of a tick";
    }
}

/// What differs between kernel versions when a CPU idles.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IdleRules {
    pub governor: Governor,
    pub menu: MenuRule,
    pub menu_iowait: MenuIowait,
    pub menu_rejected: MenuRejected,
    pub menu_outliers: MenuOutliers,
    pub menu_stopped: MenuStopped,
    pub haltpoll_shrink: HaltpollShrink,
    pub teo: TeoRule,
    pub teo_stopped: TeoStopped,
    pub tick: TickStop,
    pub tick_unchosen: TickUnchosen,
    pub poll: PollLimit,
    /// Those that the kernel is built with.
    pub governors: &'static [Governor],
    /// Whether the parameter `intel_idle.states_off` exists.
    pub states_off: bool,
    /// Whether `current_governor` can be written without `cpuidle_sysfs_switch` (since v5.8).
    pub governor_switch: bool,
}

impl IdleRules {
    pub const V4_5: IdleRules = IdleRules {
        governor: Governor::Menu,
        menu: MenuRule::Interactivity,
        menu_iowait: MenuIowait::Counts,
        menu_rejected: MenuRejected::Nothing,
        menu_outliers: MenuOutliers::Longest,
        menu_stopped: MenuStopped::Distrusts,
        haltpoll_shrink: HaltpollShrink::Halves,
        teo: TeoRule::EarlyHits,
        teo_stopped: TeoStopped::Stays,
        tick: TickStop::Always,
        tick_unchosen: TickUnchosen::Stops,
        poll: PollLimit::None,
        governors: &[Governor::Ladder, Governor::Menu],
        states_off: false,
        governor_switch: false,
    };
    pub const V4_15: IdleRules = IdleRules { menu: MenuRule::NextTimer, ..Self::V4_5 };
    pub const V4_19: IdleRules = IdleRules {
        menu: MenuRule::TickNextTimer,
        tick: TickStop::Governor,
        poll: PollLimit::SixteenthOfTick,
        ..Self::V4_15
    };
    pub const V5_4: IdleRules = IdleRules {
        menu: MenuRule::Tick,
        teo: TeoRule::Hits,
        poll: PollLimit::FirstState,
        governors: &[Governor::Ladder, Governor::Menu, Governor::Teo, Governor::Haltpoll],
        ..Self::V4_19
    };
    /// As in 5.10.262, which is newer in `menu_rejected` and `tick_unchosen` than v5.10 itself.
    pub const V5_10: IdleRules = IdleRules {
        menu_rejected: MenuRejected::Forgets,
        tick_unchosen: TickUnchosen::AfterTick,
        states_off: true,
        governor_switch: true,
        ..Self::V5_4
    };
    /// As in 5.15.135, which is older in `menu_rejected` and `tick_unchosen` than 5.10.262.
    pub const V5_15: IdleRules = IdleRules {
        menu_rejected: MenuRejected::Nothing,
        teo: TeoRule::Recent,
        tick_unchosen: TickUnchosen::Stops,
        poll: PollLimit::Residency,
        ..Self::V5_10
    };
    pub const V6_1: IdleRules =
        IdleRules { menu_rejected: MenuRejected::Forgets, tick_unchosen: TickUnchosen::AfterTick, ..Self::V5_15 };
    pub const V6_6: IdleRules = IdleRules {
        menu: MenuRule::TypicalAlone,
        menu_rejected: MenuRejected::Nothing,
        teo: TeoRule::Utilized,
        tick_unchosen: TickUnchosen::Stops,
        ..Self::V6_1
    };
    /// As in 6.12.117, which is newer in `menu`, `menu_iowait`, `menu_rejected`, `teo`, `teo_stopped` and `tick_unchosen` than
    /// v6.12 itself.
    pub const V6_12: IdleRules = IdleRules {
        menu: MenuRule::TypicalFirst,
        menu_iowait: MenuIowait::Ignored,
        menu_rejected: MenuRejected::Forgets,
        haltpoll_shrink: HaltpollShrink::Resets,
        teo: TeoRule::Intercepts,
        teo_stopped: TeoStopped::Follows,
        tick_unchosen: TickUnchosen::AfterTick,
        ..Self::V6_6
    };

    /// As in 6.18.35, which is newer in `menu` than v6.18 itself.
    pub const V6_18: IdleRules =
        IdleRules { menu_outliers: MenuOutliers::EitherSide, teo: TeoRule::TickIntercepts, ..Self::V6_12 };

    pub const V7_2: IdleRules =
        IdleRules { menu_stopped: MenuStopped::NearTimer, teo: TeoRule::ShortIdles, ..Self::V6_18 };

    pub fn has(&self, governor: Governor) -> bool {
        self.governors.contains(&governor)
    }
}

rules! {
    IdleRules {
        governor, menu, menu_iowait, menu_rejected, menu_outliers, menu_stopped, haltpoll_shrink, teo, teo_stopped, tick, tick_unchosen,
        poll;
        governors, states_off, governor_switch
    }
}

/// The longest time to a timer that is distinguished, in nanoseconds: the kernel's clock event devices reach a few
/// hundred seconds. If no timer is armed at all, it stands for what the kernel then uses (until v4.16 the time for
/// which the clock may go unread, since then KTIME_MAX).
pub const FAR_NS: u64 = 1_000_000_000_000;

/// governors/gov.h: RESIDENCY_THRESHOLD_NS.
const RESIDENCY_THRESHOLD_NS: u64 = 15_000;

/// governors/gov.h: SAFE_TIMER_RANGE_NS, in ticks.
const SAFE_TIMER_TICKS: u64 = 2;

/// What the idle loop knows when a state is to be chosen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Outlook {
    pub now_ns: u64,
    /// From the begin of the idle, or its last interrupt, to the next timer. Includes the next tick only if it goes on
    /// whatever is chosen. At most [`FAR_NS`].
    pub sleep_length_ns: u64,
    /// From the same moment to the next event as things stand: the tick counts as long as it runs. At most [`FAR_NS`].
    pub delta_tick_ns: u64,
    pub tick_stopped: bool,
    /// Tasks that wait for devices and last ran here.
    pub nr_iowaiters: u32,
    /// The CPU has been busy for more than a 64th of its capacity of late; told only to who asks ([`TeoRule::RecentUtilized`], [`TeoRule::Utilized`]).
    pub utilized: bool,
}

/// What a governor answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Choice {
    pub state: usize,
    pub stop_tick: bool,
    /// Whether it asked for the time to the next timer, which takes time.
    pub looked_at_timers: bool,
}

impl Choice {
    fn of(state: usize) -> Choice {
        Choice { state, stop_tick: true, looked_at_timers: true }
    }
}

/// cpuidle.h: struct cpuidle_device, as far as governors use it.
#[derive(Clone, Debug)]
struct Usage {
    /// The length of the last idle, including the time to leave the state; 0 if the state was not entered after all.
    last_residency_ns: u64,
    /// The state entered last; `None` once teo has seen it.
    last_state: Option<u8>,
    /// Whether polling ended because its time was up.
    poll_time_limit: bool,
    /// Haltpoll's own limit.
    poll_limit_ns: u64,
}

#[derive(Clone, Debug)]
enum PerGovernor {
    Menu(Menu),
    Ladder(Box<Ladder>),
    Teo(Box<Teo>),
    Haltpoll(Haltpoll),
}

/// One CPU's side of cpuidle.
#[derive(Clone, Debug)]
pub struct Device {
    usage: Usage,
    governor: PerGovernor,
}

/// What idle CPUs have in common.
#[derive(Clone, Debug)]
pub struct Cpuidle {
    pub rules: IdleRules,
    pub table: StateTable,
}

impl Cpuidle {
    pub fn device(&self) -> Device {
        let usage = Usage { last_residency_ns: 1, last_state: None, poll_time_limit: false, poll_limit_ns: 0 };
        Device { usage, governor: self.enabled() }
    }

    /// What the governor begins with on a CPU.
    fn enabled(&self) -> PerGovernor {
        match self.rules.governor {
            Governor::Menu => PerGovernor::Menu(Menu::new()),
            Governor::Ladder => PerGovernor::Ladder(Box::new(Ladder::new(&self.table))),
            Governor::Teo => PerGovernor::Teo(Box::new(Teo::new(&self.table))),
            Governor::Haltpoll => PerGovernor::Haltpoll(Haltpoll),
        }
    }

    /// cpuidle.c: cpuidle_enable_device(): another governor has come.
    pub fn cpuidle_enable_device(&self, device: &mut Device) {
        device.governor = self.enabled();
        device.usage.poll_limit_ns = 0;
    }

    /// sysfs.c: cpuidle_state_store(): the limit of polling is found anew.
    pub fn cpuidle_state_store(&self, device: &mut Device) {
        device.usage.poll_limit_ns = 0;
    }

    /// Whether a governor is asked, because there is a state to choose.
    #[inline]
    pub fn is_governed(&self) -> bool {
        self.table.way == Way::Governed && self.table.states.len() > 1
    }

    /// The choice where neither governor nor driver has a say. A CPU that is told to poll keeps its tick. `got_tick`:
    /// since the CPU went idle, its previous idle state was ended by the tick.
    #[inline]
    pub fn only_choice(&self, got_tick: bool) -> Choice {
        let stop_tick = match self.rules.tick_unchosen {
            TickUnchosen::AfterTick if self.table.way != Way::Poll => got_tick,
            _ => !self.table.states[0].polling || self.rules.tick == TickStop::Always,
        };
        Choice { state: 0, stop_tick, looked_at_timers: false }
    }

    /// cpuidle.c: cpuidle_select(), with what cpuidle_idle_call() does where there is no state to choose.
    #[inline]
    pub fn select(&self, device: &mut Device, outlook: &Outlook) -> Choice {
        let Device { usage, governor } = device;
        if unlikely(!self.is_governed()) {
            return self.only_choice(false);
        }
        match governor {
            PerGovernor::Menu(menu) => menu.menu_select(&self.rules, &self.table, usage, outlook),
            PerGovernor::Ladder(ladder) => ladder.ladder_select_state(&self.table, usage),
            PerGovernor::Teo(teo) => match self.rules.teo {
                TeoRule::EarlyHits => teo.teo_select_early_hits(&self.table, usage, outlook),
                TeoRule::Hits => teo.teo_select_hits(&self.table, usage, outlook),
                TeoRule::Recent => teo.teo_select_recent(&self.table, usage, outlook, false),
                TeoRule::RecentUtilized => teo.teo_select_recent(&self.table, usage, outlook, outlook.utilized),
                TeoRule::Utilized => teo.teo_select_utilized(&self.table, usage, outlook),
                TeoRule::Intercepts => teo.teo_select_intercepts(&self.rules, &self.table, usage, outlook),
                TeoRule::TickIntercepts => teo.teo_select_tick_intercepts(&self.rules, &self.table, usage, outlook),
                TeoRule::TickWakeups | TeoRule::MostIntercepts | TeoRule::ShortIdles => {
                    teo.teo_select_short_idles(self.rules.teo, &self.table, usage, outlook)
                }
            },
            PerGovernor::Haltpoll(haltpoll) => haltpoll.haltpoll_select(&self.table, usage),
        }
    }

    /// The chosen state was not entered, because the CPU had to reschedule.
    pub fn reject(&self, device: &mut Device) {
        device.usage.last_residency_ns = 0;
    }

    /// cpuidle.c: cpuidle_reflect(): `state` was left `residency_ns` after it was entered, for the reason in `woken`.
    #[inline(always)]
    pub fn reflect(&self, device: &mut Device, state: usize, residency_ns: u64, woken: Woken) {
        let Device { usage, governor } = device;
        usage.last_residency_ns = residency_ns;
        if self.table.states[state].polling {
            usage.poll_time_limit = woken.poll_time_limit;
        }
        match governor {
            PerGovernor::Menu(menu) => menu.menu_reflect(usage, state, woken.got_tick),
            PerGovernor::Ladder(ladder) => ladder.ladder_reflect(state),
            PerGovernor::Teo(teo) => teo.teo_reflect(self.rules.teo, &self.table, usage, state, woken),
            PerGovernor::Haltpoll(haltpoll) => haltpoll.haltpoll_reflect(&self.rules, &self.table, usage, state),
        }
    }

    /// cpuidle.c: cpuidle_poll_time(): how long `device`'s CPU polls; `None`: until it must reschedule.
    pub fn cpuidle_poll_time(&self, device: &Device) -> Option<u64> {
        if self.table.way == Way::Poll {
            return None;
        }
        match (&device.governor, self.rules.poll) {
            (PerGovernor::Haltpoll(_), _) if device.usage.poll_limit_ns > 0 => Some(device.usage.poll_limit_ns),
            (_, PollLimit::None) => None,
            (_, PollLimit::SixteenthOfTick) => Some(self.table.tick_ns / 16),
            (_, PollLimit::FirstState) => Some(self.table.first_residency_ns()),
            (_, PollLimit::Residency) => Some(self.table.poll_time_ns()),
        }
    }
}

/// What ended an idle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Woken {
    pub now_ns: u64,
    /// The tick ended it; the tick had not been stopped.
    pub got_tick: bool,
    pub poll_time_limit: bool,
}

#[cfg(test)]
mod tests;
