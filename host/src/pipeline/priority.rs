//! Threads that must not hold up the serving ones.

/// Lowers the calling thread's priority by a nice value. Where that is not allowed it competes like any other.
pub(super) fn lower(nice: i32) {
    // On Linux a nice value is a thread's own, and a thread's id is taken where a process's is.
    rustix::process::setpriority_process(Some(rustix::thread::gettid()), nice).ok();
}
