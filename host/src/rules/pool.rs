//! Threads that judge events, on all cores: a micro-batch is cut into one part per thread, and the parts' results come
//! back in order, so that they are the same with one thread and with many.

use super::engine::Sandbox;
use super::judge::{Isolation, Judge};
use super::limits::Limits;
use crate::event::Event;
use std::io;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use tokio::sync::oneshot;

/// Native stack of a thread that runs guests: theirs is [`Limits::STACK`], the rest is the host's.
pub const STACK: usize = 4 << 20;
/// Below this many events a part is not worth its thread.
const SMALLEST: usize = 64;

/// Threads with a judge each; a clone has the same ones. They end when the last clone is dropped.
#[derive(Clone)]
pub struct JudgePool {
    work: mpsc::Sender<Work>,
    threads: NonZeroUsize,
}

type Work = Box<dyn FnOnce(&mut Judge) + Send>;

impl JudgePool {
    /// Starts the threads.
    pub fn start(
        sandbox: &Arc<Sandbox>,
        limits: &Limits,
        isolation: Isolation,
        threads: NonZeroUsize,
    ) -> io::Result<Self> {
        let (work, queue) = mpsc::channel::<Work>();
        let queue = Arc::new(Mutex::new(queue));
        for number in 0..threads.get() {
            let mut judge = Judge::new(Arc::clone(sandbox), limits.clone(), isolation);
            let queue = Arc::clone(&queue);
            thread::Builder::new().name(format!("judge-{number}")).stack_size(STACK).spawn(move || {
                loop {
                    let work = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
                    let Ok(work) = work else { return };
                    work(&mut judge);
                    judge.end_batch();
                }
            })?;
        }
        Ok(Self { work, threads })
    }

    /// Hands a micro-batch to the threads at once. `judge` is called with each part of it; the results come in the order
    /// of the parts, and none comes from a thread that has ended, of which its panic tells.
    #[expect(clippy::needless_pass_by_value, reason = "each part has its own share of it")]
    pub fn submit<T: Send + 'static>(
        &self,
        events: Arc<Vec<Event>>,
        judge: impl Fn(&mut Judge, &Arc<Vec<Event>>, Range<usize>) -> T + Clone + Send + 'static,
    ) -> Vec<oneshot::Receiver<T>> {
        let size = events.len().div_ceil(self.threads.get()).max(SMALLEST);
        let mut results = Vec::new();
        for start in (0..events.len()).step_by(size) {
            let (reply, result) = oneshot::channel();
            let (events, judge) = (Arc::clone(&events), judge.clone());
            let range = start..events.len().min(start + size);
            // Nobody waits for the result when a neighbour has failed meanwhile.
            let work = move |thread: &mut Judge| drop(reply.send(judge(thread, &events, range)));
            // If every thread is gone the reply is dropped with the work, which the receiver sees.
            self.work.send(Box::new(work)).ok();
            results.push(result);
        }
        results
    }
}
