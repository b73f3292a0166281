//! The content of a recording, in whatever format: the scheduler's events in the order of time.

use std::collections::BTreeMap;
use units::Ns;

/// A recording as read.
#[derive(Clone, Debug)]
pub(super) struct Recorded {
    pub events: Vec<Event>,
    names: Vec<String>,
    numbers: BTreeMap<String, u32>,
    /// The process of each thread id, where the recording gives it.
    pub processes: BTreeMap<u32, u32>,
    /// Events that the scripts do not use, by name.
    pub skipped: BTreeMap<String, u64>,
    /// Lines or packets that are not events.
    pub unreadable: u64,
    /// Whether the recording ends within a packet, so each CPU's events end where they happened to be written last.
    pub cut: bool,
    /// Losses before the first event, and how many events were lost.
    pub lost_first: (u64, u64),
    /// The time of each CPU's newest event.
    newest: BTreeMap<u32, Ns>,
    /// Whether events carry flags that tell interrupts from tasks.
    pub flags: bool,
    /// Whether there are events that tell when timers interrupt, and when devices or their softirqs do.
    pub timers: bool,
    pub devices: bool,
}

/// One event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Event {
    pub time: Ns,
    pub cpu: u32,
    /// The thread that ran there; 0 is idle, `None` is unknown.
    pub running: Option<u32>,
    /// The thread's name, if it is given.
    pub running_name: u32,
    pub context: Context,
    pub what: What,
}

/// On whose behalf the CPU executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Context {
    /// The running task, as far as is known.
    Task,
    /// A softirq: for an interrupt, or for the task itself, as when the task sends to the loopback device.
    Softirq,
    Interrupt,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    Switch {
        /// `None` if the format does not name the task that leaves.
        prev: Option<Who>,
        left: Left,
        next: Who,
    },
    Waking(Who),
    Wakeup(Who),
    WakeupNew(Who),
    Fork {
        child: Who,
        /// Whether the child is a thread of its parent's process.
        thread: bool,
    },
    /// A handler begins (true) or ends (false) on that CPU.
    Handler {
        of: Handler,
        begins: bool,
    },
    /// The softirq of that vector has been raised there.
    Raise(u32),
    /// Number of events of that CPU that are missing here; 0 if the number is unknown.
    Lost(u64),
}

/// The handler of a hardware interrupt, or the action of a softirq's vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Handler {
    Interrupt,
    Softirq(u32),
}

/// No vector, or an unknown one.
pub(super) const NO_VECTOR: u32 = u32::MAX;

/// A thread as an event names it. `prio` is the kernel's: 120 is nice 0, below 100 real-time, -1 deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Who {
    pub pid: u32,
    pub name: u32,
    pub prio: Option<i32>,
    /// For a wakeup: the CPU where it slept (`sched_waking`), or where it wakes.
    pub cpu: Option<u32>,
}

/// How a task left its CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Left {
    /// It was preempted, and could have gone on.
    Runnable,
    Asleep,
    /// In state D.
    Uninterruptible,
    Dead,
}

/// Longer names are cut. The kernel's names have at most 15 characters, those of worker threads a few more.
const LONGEST_NAME: usize = 48;

/// The number that stands for a missing name.
pub(super) const UNNAMED: u32 = 0;

impl Recorded {
    pub fn new() -> Recorded {
        Recorded {
            events: Vec::new(),
            names: vec![String::new()],
            numbers: BTreeMap::from([(String::new(), UNNAMED)]),
            processes: BTreeMap::new(),
            skipped: BTreeMap::new(),
            unreadable: 0,
            cut: false,
            lost_first: (0, 0),
            newest: BTreeMap::new(),
            flags: false,
            timers: false,
            devices: false,
        }
    }

    /// Notes that the recording has events of handlers with this name.
    pub fn tells_of_handler(&mut self, name: &str) {
        self.timers |= name.to_ascii_lowercase().contains("timer");
    }

    /// The number of a name. Characters that would disturb a terminal or a line of text are removed.
    pub fn name(&mut self, name: &str) -> u32 {
        if let Some(&number) = self.numbers.get(name) {
            return number;
        }
        let kept = name.trim().chars().map(|c| if c.is_control() { '?' } else { c }).take(LONGEST_NAME);
        let number = self.names.len() as u32;
        self.names.push(kept.collect());
        self.numbers.insert(name.to_string(), number);
        number
    }

    pub fn name_of(&self, number: u32) -> &str {
        &self.names[number as usize]
    }

    /// Records an event of that CPU and time. Fails with the time of the CPU's previous event if that is later.
    pub fn passes(&mut self, cpu: u32, time: Ns) -> Result<(), Ns> {
        let newest = self.newest.entry(cpu).or_insert(time);
        if time < *newest {
            return Err(*newest);
        }
        *newest = time;
        Ok(())
    }

    pub fn skip(&mut self, event: &str) {
        match self.skipped.get_mut(event) {
            Some(count) => *count += 1,
            None => drop(self.skipped.insert(event.chars().take(LONGEST_NAME).collect(), 1)),
        }
    }
}

/// The state letters of `sched_switch` in text, for every kernel since v4.5: `R`, `S`, `D|K`, `R+`, `x`.
pub(super) fn left_by_letters(letters: &str) -> Left {
    match letters.chars().next() {
        Some('R' | 'W' | 'N' | '0') | None => Left::Runnable,
        Some('D') => Left::Uninterruptible,
        Some('X' | 'x' | 'Z') => Left::Dead,
        // Stopped, traced, parked tasks and idle kernel threads sleep, too.
        Some(_) => Left::Asleep,
    }
}

/// The bits of `prev_state`. Above the visible states there is a bit for preemption, and older kernels' internal
/// states.
pub(super) fn left_by_bits(bits: i64) -> Left {
    match bits & 0xff {
        0 => Left::Runnable,
        state if state & 0x30 != 0 => Left::Dead,
        state if state & 0x02 != 0 => Left::Uninterruptible,
        _ => Left::Asleep,
    }
}

/// The kernel's flags of an event: TRACE_FLAG_HARDIRQ, TRACE_FLAG_SOFTIRQ.
pub(super) fn context_by_bits(flags: u64) -> Context {
    match flags {
        _ if flags & 0x08 != 0 => Context::Interrupt,
        _ if flags & 0x10 != 0 => Context::Softirq,
        _ => Context::Task,
    }
}
