//! When a task that executes in the kernel gives way to another: kernel/Kconfig.preempt, and `preempt=` since v5.12.
//!
//! | | on the way to user mode, asleep | `cond_resched()` | `might_sleep()` | anywhere outside of critical sections |
//! |---|---|---|---|---|
//! | none | yes | yes | | |
//! | voluntary | yes | yes | yes | |
//! | full | yes | | | yes |
//! | lazy (v6.13) | yes | | | yes, but for fair tasks only once a tick has come since one of them asked for it |
//!
//! A path is executed whole (docs/decisions/0003), so what can be seen of it is
//!
//! * after a wakeup in the middle of a system call: *full* preempts the waker there (between the waiters of a futex, before it goes to
//!   sleep on a full pipe, before a dying task is gone), the others at the call's end; *lazy* does as *full* for a real-time or deadline
//!   task, and as the others for a fair one;
//! * what stays in user mode (work, looks at the clock, locks that are free) is no way back to it, however many operations a program makes of
//!   it: only interrupts see there that somebody waits;
//! * fork and exit: [`PIECES`] points in each under all but *none*, which take interrupts and reschedule there;
//! * kernel threads, which never are on their way to user mode: under *full* they are preempted like everybody, under *lazy* too, but by
//!   fair tasks at a tick, under the others where their programs say `cond_resched` or `might_sleep`, or sleep.
//!
//! Absent: the points that *none* has in fork and exit (`cond_resched()` at each page table); points while a mutex is held, as in
//! a long write to a pipe, because contenders do not sleep here; what `preempt_count()` itself costs.

/// The preemption model of a kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Preempt {
    #[default]
    None,
    Voluntary,
    Full,
    Lazy,
}

impl Preempt {
    pub const ALL: [Preempt; 4] = [Preempt::None, Preempt::Voluntary, Preempt::Full, Preempt::Lazy];

    /// As `preempt=` has it.
    pub fn name(self) -> &'static str {
        match self {
            Preempt::None => "none",
            Preempt::Voluntary => "voluntary",
            Preempt::Full => "full",
            Preempt::Lazy => "lazy",
        }
    }

    /// The build choice that has it as its default.
    pub fn config(self) -> &'static str {
        match self {
            Preempt::None => "CONFIG_PREEMPT_NONE",
            Preempt::Voluntary => "CONFIG_PREEMPT_VOLUNTARY",
            Preempt::Full => "CONFIG_PREEMPT",
            Preempt::Lazy => "CONFIG_PREEMPT_LAZY",
        }
    }

    pub fn from_name(name: &str) -> Option<Preempt> {
        Preempt::ALL.into_iter().find(|model| model.name() == name)
    }

    /// Whether preempt_enable() and the end of an interrupt look at need_resched in the kernel (CONFIG_PREEMPTION, `preempt_schedule` and
    /// `irqentry_exit_cond_resched` on).
    #[inline]
    pub fn preempt_schedule(self) -> bool {
        matches!(self, Preempt::Full | Preempt::Lazy)
    }

    /// Whether cond_resched() looks at need_resched: where everything is preempted anyway it is empty.
    pub fn cond_resched(self) -> bool {
        !self.preempt_schedule()
    }

    /// Whether might_sleep() does: `might_resched()`.
    pub fn might_resched(self) -> bool {
        self == Preempt::Voluntary
    }
}

/// Into how many pieces points of preemption cut fork() and exit() of a process: a small one that is linked dynamically has about 30
/// mappings, for each of which dup_mmap() allocates memory and unmap_vmas() and free_pgtables() come by cond_resched() (mm/memory.c).
pub const PIECES: u32 = 32;
/// A thread's clone() copies no mappings: its points are where copy_process() allocates what it gives to the thread.
pub const PIECES_OF_CLONE: u32 = 8;
