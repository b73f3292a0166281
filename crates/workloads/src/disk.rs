//! The disk of the simulated machine as its kernel drives it.

use machine::disk::{self, Disk};
use os::fs::{Completion, Device, WriteCache};

pub(crate) fn device(disk: Disk) -> Device {
    let cache = match disk.cache {
        disk::WriteCache::Safe => WriteCache::Safe,
        disk::WriteCache::ForceUnitAccess => WriteCache::ForceUnitAccess,
        disk::WriteCache::FlushOnly => WriteCache::FlushOnly,
    };
    let completion = if disk.one_interrupt { Completion::Fixed } else { Completion::Submitter };
    let channels = usize::try_from(disk.channels).expect("at most 1024, as the loader has checked");
    let mut device = Device::new(disk.write.ns(), disk.flush.ns(), channels, cache, completion);
    device.ps_per_kib = disk.ps_per_kib;
    device
}
