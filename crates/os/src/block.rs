//! Block devices, as far as a task meets one: block/fops.c, a read that bypasses the page cache (O_DIRECT).
//!
//! The device answers after a given time, whatever else it has to do. It has a queue for each CPU, whose interrupt
//! comes to the CPU that submitted the request. The request ends there, in the handler.

use crate::{Step, charge, paths};
use sched::arch::Arch;
use sched::sched::TaskState;
use sched::scheduler::Scheduler;
use units::{CpuId, Ns};

/// A request to a device, by its number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BioId(pub(crate) u32);

/// block/fops.c: blkdev_direct_IO(), with core.c's io_schedule(): the current task of `cpu` sleeps until the device has answered.
pub(crate) fn blkdev_direct_io<S: Scheduler>(sched: &mut S, cpu: CpuId, time: Ns, until: &mut Option<Ns>) -> Step {
    let due = match *until {
        Some(due) => due,
        None => {
            charge(sched, cpu, paths::SYS_READ);
            charge(sched, cpu, paths::BLKDEV_DIRECT_IO);
            sched.set_in_iowait(cpu, true);
            *until.insert(sched.arch().sched_clock(cpu) + time)
        }
    };
    if sched.arch().sched_clock(cpu) >= due {
        sched.set_in_iowait(cpu, false);
        return Step::Done(0);
    }
    sched.set_current_state(cpu, TaskState::Uninterruptible);
    Step::SleepUntil(due)
}
