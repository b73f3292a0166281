//! What differs between kernel versions in fs/pipe.c.

use super::PAGE_SIZE;
use sched::behaviour;

behaviour! {
    /// Who is woken when data or room appears.
    pub enum PipeRules = "pipe.wait" {
        Single = "single", since "v2.6.11", commit "",
            "readers and writers share one queue; every write wakes all of it, so does a reader that drained a page";
        Split = "split", since "v5.6", commit "0ddad21d3e99",
            "readers and writers wait apart and exclusively; woken one by one, when a pipe was empty or full";
    }
}

behaviour! {
    /// What guards a pipe's head and tail beside its mutex.
    pub enum PipeSlots = "pipe.slots" {
        Mutex = "mutex", since "v2.6.11", commit "", "nothing";
        RdWait = "rd-wait-lock", since "v5.5", commit "",
            "the lock of the readers' queue, for each slot that is filled and each that is drained: for watch queues, whose notes come without the mutex (seen in v6.1's source; which commit of v5.5 began it was not looked up)";
        MutexAgain = "mutex-again", since "v6.7", commit "478dbf121767", "nothing: that lock is for watch queues only (dfaabf916b1c for writers)";
    }
}

behaviour! {
    /// When a reader wakes writers who wait for room (where both wait apart, `pipe.wait=split`).
    pub enum PipeRoom = "pipe.room" {
        WasFull = "was-full", since "v5.6", commit "0ddad21d3e99", "when it found the pipe full, though it may be so still";
        Drained = "drained", since "v6.14", commit "aaec5a95d596", "when it has drained a page of a full one";
    }
}

behaviour! {
    /// Where the pages of a write come from.
    pub enum PipePages = "pipe.pages" {
        One = "one", since "v2.6.11", commit "", "a pipe keeps one that was drained; others are allocated under its mutex";
        Two = "two", since "v6.15", commit "", "a pipe keeps two; others are allocated under its mutex";
        Ahead = "ahead", since "v7.2", commit "",
            "a pipe keeps two; what is longer than a page allocates up to eight before it takes the mutex, and uses these first";
        Pool = "pool", since "v7.3", commit "",
            "each write allocates before it takes the mutex, but only what the pipe lacks of the up to eight that it needs; the pipe takes in up to eight, of which two stay at the end of a call";
    }
}

/// PIPE_PREALLOC_MAX.
pub(super) const PIPE_PREALLOC_MAX: u8 = 8;
/// PIPE_PREALLOC_KEEP.
pub(super) const PIPE_PREALLOC_KEEP: u8 = 2;

impl PipePages {
    /// How many drained pages a pipe takes in.
    pub(super) fn room(self) -> u8 {
        match self {
            PipePages::One => 1,
            PipePages::Two | PipePages::Ahead => 2,
            PipePages::Pool => PIPE_PREALLOC_MAX,
        }
    }

    /// How many pages a write of `bytes` into a pipe that has kept some allocates before it takes the mutex.
    pub(super) fn ahead(self, bytes: u64, kept: u8) -> u8 {
        let wanted = bytes.div_ceil(PAGE_SIZE).min(PIPE_PREALLOC_MAX.into()) as u8;
        match self {
            PipePages::One | PipePages::Two => 0,
            PipePages::Ahead if bytes <= PAGE_SIZE => 0,
            PipePages::Ahead => wanted,
            PipePages::Pool => wanted.saturating_sub(kept),
        }
    }
}

behaviour! {
    /// For whom each write wakes readers, though the pipe was not empty (where both wait apart, `pipe.wait=split`).
    pub enum PipePolled = "pipe.polled" {
        Any = "any", since "v5.14", commit "3b844826b6c6", "whoever has ever polled the pipe (which commit began it was not looked up)";
        EdgeTriggered = "edge-triggered", since "v7.3", commit "",
            "whoever polls its read end edge-triggered, as only epoll does: nobody here";
    }
}
