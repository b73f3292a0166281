//! Counters of the power that each CPU draws, from its events of frequency and idle state.

use super::schema::{CounterDescriptor, TYPE_COUNTER, TrackDescriptor, TrackEvent};
use super::{ORDER_EXPLICIT, Perfetto};
use sched::trace::Event;
use std::io::Write;
use units::{CpuId, Ns, PerCpu};

/// The group of these counters; CPU `n` has the number after it plus `n`.
const POWER_TRACKS: u64 = 3 << 32;

/// The microwatts that a CPU draws in an idle state, or while it executes, at a clock in kHz.
pub type PowerOf = dyn Fn(CpuId, Option<u8>, u32) -> u64;

/// What CPUs draw, and the current state of each.
pub(super) struct Power {
    of: Box<PowerOf>,
    cpus: PerCpu<Drawn>,
}

#[derive(Clone, Copy, Default)]
struct Drawn {
    state: Option<u8>,
    khz: Option<u32>,
    /// The value that its counter shows.
    microwatts: Option<u64>,
}

impl<W: Write> Perfetto<W> {
    /// Adds a counter of power for each CPU, beginning with the first event that gives its frequency.
    pub fn with_power(mut self, of: Box<PowerOf>) -> Perfetto<W> {
        let descriptor = TrackDescriptor {
            uuid: Some(POWER_TRACKS),
            name: Some("Power".to_string()),
            child_ordering: Some(ORDER_EXPLICIT),
            ..TrackDescriptor::default()
        };
        self.describe(descriptor);
        let cpus = PerCpu::from_fn(self.tasks.nr_cpus(), |_| Drawn::default());
        self.power = Some(Power { of, cpus });
        self
    }

    pub(super) fn count_power(&mut self, time: Ns, cpu: CpuId, event: &Event) {
        let Some(power) = &mut self.power else { return };
        let drawn = &mut power.cpus[cpu];
        match *event {
            Event::CpuIdle { state } => drawn.state = state,
            Event::CpuFrequency { khz } => drawn.khz = Some(khz),
            _ => return,
        }
        let Some(khz) = drawn.khz else { return };
        let microwatts = (power.of)(cpu, drawn.state, khz);
        let before = drawn.microwatts.replace(microwatts);
        let uuid = Some(POWER_TRACKS + 1 + u64::from(cpu.0));
        if before.is_none() {
            let counter =
                CounterDescriptor { unit_name: Some("uW".to_string()), y_axis_share_key: Some("power".to_string()) };
            self.describe(TrackDescriptor {
                uuid,
                name: Some(format!("CPU {cpu} power")),
                parent_uuid: Some(POWER_TRACKS),
                counter: Some(counter),
                sibling_order_rank: Some(i32::from(cpu.0)),
                ..TrackDescriptor::default()
            });
        }
        if before != Some(microwatts) {
            let counter_value = i64::try_from(microwatts).ok();
            let r#type = Some(TYPE_COUNTER);
            self.track_event(time, TrackEvent { r#type, track_uuid: uuid, counter_value, ..TrackEvent::default() });
        }
    }
}
