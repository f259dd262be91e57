//! Being asked to stop.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::Notify;

/// A request to stop: the source ends, what was read is finished.
#[derive(Debug, Clone, Default)]
pub struct Stop(Arc<(AtomicBool, Notify)>);

impl Stop {
    /// Asks to stop.
    pub fn request(&self) {
        self.0.0.store(true, Ordering::SeqCst);
        self.0.1.notify_waiters();
    }

    /// Whether it was asked.
    pub fn requested(&self) -> bool {
        self.0.0.load(Ordering::SeqCst)
    }

    /// Returns once it is asked.
    pub async fn wait(&self) {
        loop {
            let asked = self.0.1.notified();
            if self.requested() {
                return;
            }
            asked.await;
        }
    }
}
