//! When a task that executes in the kernel gives way to another: kernel/Kconfig.preempt, and `preempt=` since v5.12.
//!
//! | | on the way to user mode, asleep | `cond_resched()` | `might_sleep()` | anywhere outside of critical sections |
//! |---|---|---|---|---|
//! | none | yes | yes | | |
//! | voluntary | yes | yes | yes | |
//! | full | yes | | | yes |
//! | lazy (v6.13) | yes | | | yes, but for fair tasks only once a tick has come since one of them asked for it |
//!
//! A path is executed as a whole (docs/decisions/0003), so the model shows only in these places:
//!
//! - After a wakeup in the middle of a system call, *full* preempts the waker at once (between the waiters of a futex,
//!   before it goes to sleep on a full pipe, before a dying task is gone). The others preempt it at the call's end.
//!   *lazy* acts as *full* for a real-time or deadline task, and as the others for a fair one.
//! - What stays in user mode (work, reads of the clock, free locks) does not pass the way back to it, however many
//!   operations the program uses for it: there only interrupts notice that another task waits.
//! - fork and exit have [`PIECES`] points each, under all models but *none*, at which interrupts are taken and tasks
//!   preempted.
//! - Kernel threads never are on their way to user mode. *full* preempts them like any task; *lazy* does, too, but for
//!   fair tasks only at a tick. Under the others they give way where their programs say `cond_resched` or
//!   `might_sleep`, or sleep.
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

    /// Its name in `preempt=`.
    pub fn name(self) -> &'static str {
        match self {
            Preempt::None => "none",
            Preempt::Voluntary => "voluntary",
            Preempt::Full => "full",
            Preempt::Lazy => "lazy",
        }
    }

    /// The build option that makes it the default.
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

    /// Whether preempt_enable() and the end of an interrupt test need_resched in the kernel (CONFIG_PREEMPTION, with
    /// `preempt_schedule` and `irqentry_exit_cond_resched` enabled).
    #[inline]
    pub fn preempt_schedule(self) -> bool {
        matches!(self, Preempt::Full | Preempt::Lazy)
    }

    /// Whether cond_resched() tests need_resched: where tasks are preempted anywhere it is empty.
    pub fn cond_resched(self) -> bool {
        !self.preempt_schedule()
    }

    /// Whether might_sleep() tests it: `might_resched()`.
    pub fn might_resched(self) -> bool {
        self == Preempt::Voluntary
    }
}

/// Into how many pieces preemption points cut fork() and exit() of a process. A small, dynamically linked process has
/// about 30 mappings. For each of them dup_mmap() allocates memory, and unmap_vmas() and free_pgtables() pass
/// cond_resched() (mm/memory.c).
pub const PIECES: u32 = 32;
/// A thread's clone() copies no mappings: its points are the allocations in copy_process().
pub const PIECES_OF_CLONE: u32 = 8;
