//! What the compiler cannot know: which way a branch usually goes, and what is asked for later.

/// compiler.h: unlikely(). `condition`, which seldom holds: what hangs on it is laid out behind the usual path.
///
/// A simulated event passes through more code than a level-1 instruction cache holds when what is not executed lies in between
/// (docs/speed.md): so the switches of mechanisms that most runs do not use are asked through this. The hint does
/// not survive a return: a caller that branches on what a function says through `unlikely()` says it again.
#[inline(always)]
pub fn unlikely(condition: bool) -> bool {
    // A value for each way, so that the caller's branch and this one become one.
    if condition {
        std::hint::cold_path();
        true
    } else {
        false
    }
}

/// So many tasks do not fit into the host's nearer caches with all that hangs on them: only then [`prefetch`](crate::prefetch) is
/// worth its instructions.
pub const MANY_TASKS: usize = 2048;
