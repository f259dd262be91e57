//! Threads beside the serving ones: they must not hold those up, nor the end of a run.

use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Lowers the calling thread's priority by a nice value. Where that is not allowed it competes like any other.
pub(super) fn lower(nice: i32) {
    // On Linux a nice value is a thread's own, and a thread's id is taken where a process's is.
    rustix::process::setpriority_process(Some(rustix::thread::gettid()), nice).ok();
}

/// Waits a while for a thread to end. Whether it has ended.
pub(super) fn ends_within(thread: &JoinHandle<()>, limit: Duration) -> bool {
    let until = Instant::now() + limit;
    while !thread.is_finished() && Instant::now() < until {
        thread::park_timeout(Duration::from_millis(5));
    }
    thread.is_finished()
}
