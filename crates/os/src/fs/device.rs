//! The block device below a file system: what it is given ends after its latency, a few requests at a time.

use units::Ns;

/// A device, as far as the time of its requests goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// A write that goes to the device's cache.
    pub write: Ns,
    /// A flush of that cache, or a write past it.
    pub flush: Ns,
    /// Until when each of its channels is busy.
    channels: Vec<Ns>,
    pub completion: Completion,
}

/// Which CPU hears that a request is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Completion {
    /// Multi-queue: the one that submitted it.
    Submitter,
    /// Single queue: always the one where the device's interrupt arrives.
    Fixed,
}

impl Device {
    /// `channels`: requests that it works on at a time, at least 1.
    pub fn new(write: Ns, flush: Ns, channels: usize, completion: Completion) -> Device {
        assert!(channels > 0, "a device that does nothing");
        Device { write, flush, channels: vec![Ns::ZERO; channels], completion }
    }

    /// A request that takes `latency` comes at `now`: when it is done.
    pub(super) fn submit(&mut self, now: Ns, latency: Ns) -> Ns {
        let first = self.channels.iter_mut().min().expect("it has a channel");
        *first = (*first).max(now) + latency;
        *first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_wait_when_all_channels_are_busy() {
        let mut device = Device::new(Ns(40), Ns(60), 2, Completion::Fixed);
        let done: Vec<Ns> = (0..5).map(|_| device.submit(Ns(100), Ns(40))).collect();
        assert_eq!(done, [140, 140, 180, 180, 220].map(Ns));
        assert_eq!(device.submit(Ns(1_000), Ns(60)), Ns(1_060));
    }
}
