//! Hints that the compiler cannot derive: which way a branch usually goes, and what will be needed later.

/// compiler.h: unlikely(). `condition` seldom holds: the code that depends on it is laid out behind the usual path.
///
/// A simulated event runs through more code than a level-1 instruction cache holds if code that is not executed lies in
/// between (docs/speed.md). So the switches of mechanisms that most runs do not use are tested through this function.
/// The hint does not survive a return: a caller that branches on a function's result repeats `unlikely()`.
#[inline(always)]
pub fn unlikely(condition: bool) -> bool {
    // Each way has its own value, so that the caller's branch and this one are merged.
    if condition {
        std::hint::cold_path();
        true
    } else {
        false
    }
}

/// With this many tasks, the tasks and all that belongs to them do not fit into the host's nearer caches. Only then
/// [`prefetch`](crate::prefetch) is worth its instructions.
pub const MANY_TASKS: usize = 2048;
