//! Making micro-batches of what several streams bring.
//!
//! A micro-batch is closed when it is full, or when its oldest event has reached the age; if the pipeline has no room then, it goes
//! on filling, and nothing is taken any more once it is full: so Pub/Sub stops sending.

use super::lease::Lease;
use super::pull::Arrived;
use crate::config::BatchConfig;
use crate::event::Event;
use crate::source::{Batch, Leases, Progress, SourceError};
use crate::stop::Stop;
use std::collections::VecDeque;
use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

/// A micro-batch that fills.
#[derive(Default)]
struct Filling {
    events: Vec<Event>,
    leases: Vec<Lease>,
    weight: usize,
    oldest: Option<Instant>,
}

impl Filling {
    fn is_full(&self, limits: &BatchConfig) -> bool {
        self.events.len() >= limits.max_events || self.weight >= limits.max_bytes
    }

    fn add(&mut self, (event, lease): (Event, Lease)) {
        self.weight += event.weight();
        self.events.push(event);
        self.leases.push(lease);
        self.oldest.get_or_insert_with(Instant::now);
    }

    /// When it is to be closed although it is not full.
    fn due(&self, limits: &BatchConfig) -> Option<Instant> {
        self.oldest.map(|oldest| oldest + limits.max_age)
    }

    fn close(&mut self) -> Option<Batch> {
        let Self { events, leases, .. } = std::mem::take(self);
        (!events.is_empty()).then(|| Batch { events, position: None, leases: Leases::new(leases) })
    }
}

/// Makes micro-batches until the worker stops, the streams have ended or nobody takes them. What is taken and in no
/// micro-batch then is given back.
pub(super) async fn run(
    mut arrived: mpsc::Receiver<Arrived>,
    batches: mpsc::Sender<Result<Batch, SourceError>>,
    limits: BatchConfig,
    progress: Arc<Progress>,
    stop: Stop,
) {
    let mut filling = Filling::default();
    // What came together with what filled the micro-batch.
    let mut waiting: VecDeque<(Event, Lease)> = VecDeque::new();
    let end = loop {
        while !filling.is_full(&limits)
            && let Some(next) = waiting.pop_front()
        {
            progress.bytes.fetch_add(next.0.payload.len() as u64, Ordering::Relaxed);
            filling.add(next);
        }
        let full = filling.is_full(&limits);
        let due = async {
            match filling.due(&limits) {
                Some(_) if full => {}
                Some(due) => sleep_until(due).await,
                None => pending().await,
            }
        };
        tokio::select! {
            biased;
            () = stop.wait() => break None,
            () = batches.closed() => return,
            room = async { due.await; batches.reserve().await } => match room {
                Ok(room) => room.send(Ok(filling.close().expect("what is due is not empty"))),
                Err(_) => return,
            },
            came = arrived.recv(), if !full => match came {
                Some(Ok(came)) => waiting.extend(came),
                Some(Err(error)) => break Some(error),
                None => break None,
            },
        }
    };
    // No more is taken. What came and is in no micro-batch is given back when the streams are closed: before, it might
    // come again over one of them.
    let mut left = Vec::new();
    if end.is_none() {
        while let Some(came) = arrived.recv().await {
            left.push(came);
        }
    }
    drop((waiting, left, arrived));
    if let Some(batch) = filling.close()
        && batches.send(Ok(batch)).await.is_err()
    {
        return;
    }
    if let Some(error) = end {
        // Nobody to tell: then it is over anyway.
        batches.send(Err(error)).await.ok();
    }
}
