//! Being asked to stop.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use tokio::sync::Notify;

/// It was asked to stop.
const ASKED: u8 = 1;
/// It was asked to stop without finishing anything.
const HURRIED: u8 = 2;

/// A request to stop: the source ends, what was read is finished. It may be asked to hurry: then nothing is finished any more,
/// and what is held is given back.
#[derive(Debug, Clone, Default)]
pub struct Stop(Arc<(AtomicU8, Notify)>);

impl Stop {
    /// Asks to stop.
    pub fn request(&self) {
        self.ask(ASKED);
    }

    /// Asks to stop at once.
    pub fn hurry(&self) {
        self.ask(HURRIED);
    }

    fn ask(&self, how: u8) {
        self.0.0.fetch_max(how, Ordering::SeqCst);
        self.0.1.notify_waiters();
    }

    /// Whether it was asked.
    pub fn requested(&self) -> bool {
        self.asked(ASKED)
    }

    fn asked(&self, how: u8) -> bool {
        self.0.0.load(Ordering::SeqCst) >= how
    }

    /// Returns once it is asked.
    pub async fn wait(&self) {
        self.wait_for(ASKED).await;
    }

    /// Returns once it is asked to stop at once.
    pub async fn hurried(&self) {
        self.wait_for(HURRIED).await;
    }

    async fn wait_for(&self, how: u8) {
        loop {
            let asked = self.0.1.notified();
            if self.asked(how) {
                return;
            }
            asked.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn to_hurry_is_to_stop_and_not_the_other_way_round() {
        let stop = Stop::default();
        assert!(!stop.requested());
        stop.request();
        stop.wait().await;
        assert!(stop.requested() && !stop.asked(HURRIED));
        let waiting = tokio::spawn({
            let stop = stop.clone();
            async move { stop.hurried().await }
        });
        stop.hurry();
        stop.request();
        waiting.await.unwrap();
        stop.hurried().await;
    }
}
