//! The block device below a file system: each request ends after its latency, and a few are processed at a time.

use units::Ns;

/// A device, as far as the time of its requests goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// A write into the device's cache, without the time for its bytes.
    pub write: Ns,
    /// How long 1024 bytes take, in picoseconds. Requests transfer their bytes one after another.
    pub ps_per_kib: u64,
    /// A flush of that cache. A write that bypasses the cache takes this time in addition to [`Device::write`].
    pub flush: Ns,
    pub cache: WriteCache,
    pub completion: Completion,
    /// Until when each of its channels is busy.
    channels: Vec<Ns>,
    /// Until when bytes are being transferred to it.
    link: Ns,
}

/// What the device reports about its write cache, which decides how the block layer makes a request durable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WriteCache {
    /// It has no volatile cache: flushes are left out.
    Safe,
    /// It has one, and accepts writes that bypass it (FUA): NVMe.
    ForceUnitAccess,
    /// It has one, and a write that must bypass it becomes a write with a flush after it: SATA, where Linux does not
    /// use FUA (`libata.fua=0`).
    FlushOnly,
}

/// Which CPU is notified that a request is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Completion {
    /// Multi-queue: the CPU that submitted it.
    Submitter,
    /// Single queue: always the CPU at which the device's interrupt arrives. It leaves the rest to a softirq, there or
    /// on the submitting CPU.
    Fixed,
}

impl Device {
    /// `channels`: how many requests it processes at a time, at least 1.
    pub fn new(write: Ns, flush: Ns, channels: usize, cache: WriteCache, completion: Completion) -> Device {
        let mut device =
            Device { write, ps_per_kib: 0, flush, cache, completion, channels: Vec::new(), link: Ns::ZERO };
        device.set_channels(channels);
        device
    }

    /// Sets how many requests it processes at a time, at least 1. It is idle after that.
    pub fn set_channels(&mut self, channels: usize) {
        assert!(channels > 0, "a device that does nothing");
        self.channels = vec![Ns::ZERO; channels];
    }

    /// A write of this many bytes comes at `now`. Returns when it is done.
    pub(super) fn submit_write(&mut self, now: Ns, bytes: u64, past_cache: bool) -> Ns {
        let latency = if past_cache { self.write + self.flush } else { self.write };
        let first = self.channels.iter_mut().min().expect("it has a channel");
        let begins = (*first).max(now);
        self.link = self.link.max(begins) + Ns(bytes * self.ps_per_kib / 1_024_000);
        *first = self.link.max(begins) + latency;
        *first
    }

    /// A flush comes at `now`. Returns when it is done. SATA has no queued flush (libata: only NCQ commands run in
    /// parallel): a flush waits until the device is idle, and holds up what comes after it.
    pub(super) fn submit_flush(&mut self, now: Ns) -> Ns {
        if self.cache != WriteCache::FlushOnly {
            return now + self.flush;
        }
        let idle = *self.channels.iter().max().expect("it has a channel");
        let done = idle.max(self.link).max(now) + self.flush;
        self.channels.fill(done);
        done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(cache: WriteCache) -> Device {
        Device::new(Ns(40), Ns(60), 2, cache, Completion::Fixed)
    }

    #[test]
    fn requests_wait_when_all_channels_are_busy() {
        let mut device = device(WriteCache::Safe);
        let done: Vec<Ns> = (0..5).map(|_| device.submit_write(Ns(100), 0, false)).collect();
        assert_eq!(done, [140, 140, 180, 180, 220].map(Ns));
        assert_eq!(device.submit_write(Ns(1_000), 0, true), Ns(1_100));
    }

    #[test]
    fn bytes_come_one_requests_after_anothers() {
        let mut device = device(WriteCache::Safe);
        // 1 ns per byte.
        device.ps_per_kib = 1_024_000;
        assert_eq!(device.submit_write(Ns(100), 1_000, false), Ns(1_140));
        assert_eq!(
            device.submit_write(Ns(100), 500, false),
            Ns(1_640),
            "on the other channel, behind the first one's bytes"
        );
        assert_eq!(device.submit_write(Ns(5_000), 10, false), Ns(5_050));
    }

    #[test]
    fn a_flush_is_alone_at_a_device_that_cannot_queue_it() {
        let mut sata = device(WriteCache::FlushOnly);
        sata.submit_write(Ns(100), 0, false);
        assert_eq!(sata.submit_flush(Ns(110)), Ns(200), "behind the write");
        assert_eq!(sata.submit_write(Ns(120), 0, false), Ns(240), "behind the flush");
        let mut nvme = device(WriteCache::ForceUnitAccess);
        nvme.submit_write(Ns(100), 0, false);
        assert_eq!(nvme.submit_flush(Ns(110)), Ns(170));
        assert_eq!(nvme.submit_write(Ns(120), 0, false), Ns(160));
    }
}
