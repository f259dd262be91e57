//! How guests are held to fuel and wall clock: the epoch, its ticker, and how a duration is told in ticks.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;
use wasmtime::Engine;

/// How often the epoch moves; the wall clock of a guest is measured in these.
pub const TICK: Duration = Duration::from_millis(10);

/// Whether guests are metered. `Off` exists for the benchmark's baseline and is never used to serve.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Metering {
    /// Fuel and epoch.
    On,
    /// Neither.
    Off,
}

/// Ticks that are surely at least `wall_clock`: the first may come at once.
pub(super) fn ticks(wall_clock: Duration) -> u64 {
    u64::try_from(wall_clock.as_millis().div_ceil(TICK.as_millis())).unwrap_or(u64::MAX / 2).saturating_add(1)
}

/// A thread that moves the epoch until it is dropped.
pub(super) struct Ticker {
    stop: Option<mpsc::Sender<()>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Ticker {
    pub(super) fn start(engine: &Engine) -> wasmtime::Result<Self> {
        let engine = engine.weak();
        let (stop, stopped) = mpsc::channel::<()>();
        let thread = thread::Builder::new().name("epoch".into()).spawn(move || {
            while stopped.recv_timeout(TICK) == Err(mpsc::RecvTimeoutError::Timeout) {
                match engine.upgrade() {
                    Some(engine) => engine.increment_epoch(),
                    None => return,
                }
            }
        })?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.stop.take();
        if let Some(thread) = self.thread.take() {
            // The thread only ticks: it cannot have panicked, and nothing is lost if it did.
            thread.join().ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_is_never_shorter_than_asked() {
        assert_eq!(ticks(Duration::from_millis(10)), 2);
        assert_eq!(ticks(Duration::from_millis(11)), 3);
        assert_eq!(ticks(Duration::from_secs(1)), 101);
    }
}
