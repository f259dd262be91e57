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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Messages;
    use std::time::Duration;

    const HOUR: Duration = Duration::from_hours(1);

    /// A merge with room for `ready` micro-batches.
    struct Merge {
        arriving: mpsc::Sender<Arrived>,
        batches: mpsc::Receiver<Result<Batch, SourceError>>,
        messages: Arc<Messages>,
        progress: Arc<Progress>,
        stop: Stop,
        ended: tokio::task::JoinHandle<()>,
    }

    impl Merge {
        fn start(limits: BatchConfig, ready: usize) -> Self {
            let (arriving, arrived) = mpsc::channel(1);
            let (sender, batches) = mpsc::channel(ready);
            let (progress, stop) = (Arc::new(Progress::default()), Stop::default());
            let ended = tokio::spawn(run(arrived, sender, limits, Arc::clone(&progress), stop.clone()));
            Self { arriving, batches, messages: Arc::default(), progress, stop, ended }
        }

        async fn bring(&self, ids: std::ops::Range<u32>) {
            let message = |id: u32| {
                let event = Event {
                    payload: "ten bytes.".into(),
                    attributes: Vec::new(),
                    message_id: id.to_string(),
                    publish_time: 0,
                    received_time: 0,
                    ordering_key: None,
                    delivery_attempt: None,
                    form: crate::event::Form::Whole,
                };
                (event, Lease::of_nothing(0, &self.messages))
            };
            self.arriving.send(Ok(ids.map(message).collect())).await.expect("it is taken");
        }

        async fn next(&mut self) -> Option<Result<Vec<u32>, SourceError>> {
            let batch = self.batches.recv().await?;
            Some(batch.map(|batch| {
                assert_eq!(batch.leases.len(), batch.events.len());
                batch.events.iter().map(|event| event.message_id.parse().unwrap()).collect()
            }))
        }
    }

    fn limits(max_events: usize, max_age: Duration) -> BatchConfig {
        BatchConfig { max_events, max_bytes: 1 << 20, max_age }
    }

    #[tokio::test]
    async fn a_full_micro_batch_is_closed_and_what_came_with_it_begins_the_next() {
        let mut merge = Merge::start(limits(3, HOUR), 2);
        merge.bring(0..2).await;
        merge.bring(2..7).await;
        assert_eq!(merge.next().await.unwrap().unwrap(), [0, 1, 2]);
        assert_eq!(merge.next().await.unwrap().unwrap(), [3, 4, 5]);
        merge.stop.request();
        drop(merge.arriving);
        assert_eq!(merge.batches.recv().await.unwrap().unwrap().events[0].message_id, "6");
        assert_eq!(merge.progress.bytes.load(Ordering::Relaxed), 70);
    }

    #[tokio::test]
    async fn bytes_fill_a_micro_batch_too() {
        let mut merge = Merge::start(BatchConfig { max_events: 100, max_bytes: 1, max_age: HOUR }, 2);
        merge.bring(0..2).await;
        assert_eq!(merge.next().await.unwrap().unwrap(), [0]);
        assert_eq!(merge.next().await.unwrap().unwrap(), [1]);
    }

    #[tokio::test]
    async fn a_micro_batch_that_is_not_full_is_closed_when_it_is_old() {
        let mut merge = Merge::start(limits(100, Duration::from_millis(1)), 2);
        merge.bring(0..2).await;
        let first = merge.next().await.unwrap().unwrap();
        assert_eq!(first, [0, 1]);
    }

    #[tokio::test]
    async fn while_the_pipeline_has_no_room_the_next_fills_up_and_then_nothing_is_taken() {
        let mut merge = Merge::start(limits(4, Duration::from_millis(1)), 1);
        merge.bring(0..4).await;
        merge.bring(4..5).await;
        merge.bring(5..8).await;
        // One in the channel of those that arrive; the next waits for room there.
        merge.bring(8..9).await;
        let has_room = merge.arriving.try_reserve().is_ok();
        assert!(!has_room, "the one that is ready, the one that is full and what has arrived is all");
        assert_eq!(merge.next().await.unwrap().unwrap(), [0, 1, 2, 3]);
        assert_eq!(merge.next().await.unwrap().unwrap(), [4, 5, 6, 7]);
        assert_eq!(merge.next().await.unwrap().unwrap(), [8]);
    }

    #[tokio::test]
    async fn when_it_stops_the_micro_batch_in_progress_is_handed_over_and_the_rest_given_back() {
        let merge = Merge::start(limits(3, HOUR), 1);
        merge.bring(0..5).await;
        merge.bring(5..9).await;
        // Ready: 0, 1, 2. Filling: 3, 4, 5, which is full. Left: 6, 7, 8.
        merge.bring(9..10).await;
        merge.stop.request();
        let Merge { arriving, batches, messages, ended, .. } = merge;
        drop(arriving);
        let mut batches = batches;
        let mut kept = Vec::new();
        while let Some(batch) = batches.recv().await {
            kept.push(batch.unwrap());
        }
        ended.await.unwrap();
        let events: Vec<&str> =
            kept.iter().flat_map(|batch| &batch.events).map(|event| event.message_id.as_str()).collect();
        assert_eq!(events, ["0", "1", "2", "3", "4", "5"]);
        assert_eq!((messages.nacked.load(Ordering::Relaxed), messages.held()), (4, 6));
    }

    #[tokio::test]
    async fn an_error_comes_after_what_was_taken_before_it() {
        let mut merge = Merge::start(limits(100, HOUR), 2);
        merge.bring(0..2).await;
        let gone = SourceError::Pubsub { subscription: "s".into(), error: "gone".into(), retryable: false };
        merge.arriving.send(Err(gone)).await.unwrap();
        assert_eq!(merge.next().await.unwrap().unwrap(), [0, 1]);
        assert!(merge.next().await.unwrap().is_err());
        assert!(merge.next().await.is_none());
        // Also for the streams that have not failed.
        merge.arriving.closed().await;
    }

    #[tokio::test]
    async fn when_nobody_takes_micro_batches_any_more_all_is_given_back() {
        let merge = Merge::start(limits(2, HOUR), 1);
        merge.bring(0..5).await;
        let Merge { arriving, batches, messages, ended, .. } = merge;
        drop(batches);
        arriving.closed().await;
        ended.await.unwrap();
        assert_eq!((messages.nacked.load(Ordering::Relaxed), messages.held()), (5, 0));
    }
}
