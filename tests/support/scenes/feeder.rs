//! Events at a steady rate into the worker's standard input.

use super::events;
use std::io::{self, Write};
use std::process::ChildStdin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How often a portion is due.
const TICK: Duration = Duration::from_millis(10);

/// The thread that feeds. When it ends, so does the worker's input, and with it the worker: also when this process is
/// killed.
pub(super) struct Feeder {
    stop: mpsc::Sender<()>,
    shared: Arc<Shared>,
    thread: JoinHandle<io::Result<u64>>,
}

#[derive(Default)]
struct Shared {
    fed: AtomicU64,
    version_2: AtomicBool,
}

impl Feeder {
    /// Starts with event 0, at so many events a second.
    pub(super) fn start(stdin: ChildStdin, rate: u64) -> io::Result<Self> {
        let (stop, stopped) = mpsc::channel();
        let shared = Arc::<Shared>::default();
        let seen = Arc::clone(&shared);
        let thread = thread::Builder::new().name("feeder".into()).spawn(move || feed(stdin, rate, &seen, &stopped))?;
        Ok(Self { stop, shared, thread })
    }

    /// How many events the worker's input has taken.
    pub(super) fn fed(&self) -> u64 {
        self.shared.fed.load(Ordering::Relaxed)
    }

    /// From now on every fifth event is of version 2.
    pub(super) fn send_version_2(&self) {
        self.shared.version_2.store(true, Ordering::Relaxed);
    }

    /// Stops, and says how many events were fed.
    pub(super) fn finish(self) -> io::Result<u64> {
        // If it has ended already, it says why.
        self.stop.send(()).ok();
        self.thread.join().unwrap_or_else(|_| Err(io::Error::other("the feeder panicked")))
    }
}

fn feed(mut stdin: ChildStdin, rate: u64, shared: &Shared, stopped: &mpsc::Receiver<()>) -> io::Result<u64> {
    let begun = Instant::now();
    let (mut number, mut lines) = (0, String::new());
    loop {
        let due = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX).saturating_mul(rate) / 1_000;
        let version_2 = shared.version_2.load(Ordering::Relaxed);
        // What is due after a long stop comes in portions, so that it can be stopped between them.
        for number in number..due.min(number + rate / 10 + 1) {
            events::write(&mut lines, number, if version_2 && number % 5 == 2 { 2 } else { 1 });
        }
        number = due.min(number + rate / 10 + 1).max(number);
        stdin.write_all(lines.as_bytes())?;
        lines.clear();
        shared.fed.store(number, Ordering::Relaxed);
        match stopped.recv_timeout(TICK) {
            Err(RecvTimeoutError::Timeout) => {}
            Ok(()) | Err(RecvTimeoutError::Disconnected) => return Ok(number),
        }
    }
}
