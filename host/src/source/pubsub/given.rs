//! What is still to be told to Pub/Sub when nothing is held any more.

use futures::FutureExt as _;
use google_cloud_pubsub::subscriber::ShutdownToken;
use std::sync::{Arc, Mutex, PoisonError};

/// Streams that were closed and may still have acks and nacks to send.
#[derive(Debug, Clone, Default)]
pub(super) struct Given(Arc<Mutex<Vec<ShutdownToken>>>);

impl Given {
    /// A stream is closed.
    pub fn closes(&self, token: ShutdownToken) {
        let mut tokens = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Those that have nothing more to send are forgotten: streams are opened again and again while a permission is missing.
        tokens.retain(|token| token.shutdown().now_or_never().is_none());
        tokens.push(token);
    }

    /// Returns when everything is sent, after nothing is held any more.
    pub async fn finish(&self) {
        let tokens = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        for token in tokens {
            token.shutdown().await;
        }
    }
}
