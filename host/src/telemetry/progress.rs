//! The progress bar: events, events a second, accepted, rejected, and how much of the file is read.

use crate::pipeline::Counts;
use crate::source::Progress;
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

const EVERY: Duration = Duration::from_millis(100);

/// Draws a bar until it is dropped. It hides itself where standard error is no terminal.
pub struct Bar {
    bar: ProgressBar,
    task: tokio::task::JoinHandle<()>,
}

impl Bar {
    /// Adds a bar for a pipeline.
    pub fn start(bars: &MultiProgress, name: &str, counts: Arc<Counts>, progress: Arc<Progress>) -> Self {
        let bar = bars.add(ProgressBar::new(0));
        let known = "{prefix} {bar:30} {percent:>3}% {msg}";
        let unknown = "{prefix} {spinner} {msg}";
        bar.set_prefix(name.to_owned());
        let drawn = bar.clone();
        let started = Instant::now();
        let task = tokio::spawn(async move {
            let style = |template| ProgressStyle::with_template(template).expect("the template is fixed");
            drawn.set_style(style(unknown));
            let mut has_total = false;
            loop {
                let total = progress.total.load(Ordering::Relaxed);
                if total > 0 && !has_total {
                    drawn.set_style(style(known));
                    has_total = true;
                }
                drawn.set_length(total);
                drawn.set_position(progress.bytes.load(Ordering::Relaxed));
                drawn.set_message(message(&counts, started.elapsed()));
                tokio::time::sleep(EVERY).await;
            }
        });
        Self { bar, task }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.task.abort();
        self.bar.finish_and_clear();
    }
}

fn message(counts: &Counts, elapsed: Duration) -> String {
    let events = counts.events.load(Ordering::Relaxed);
    let (accepted, rejected) = (counts.accepted.load(Ordering::Relaxed), counts.rejected.load(Ordering::Relaxed));
    let rate = events as f64 / elapsed.as_secs_f64().max(0.001);
    format!("{events} events, {rate:.0}/s, {accepted} accepted, {rejected} rejected")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_says_counts_and_rate() {
        let counts = Counts::default();
        counts.events.store(300, Ordering::Relaxed);
        counts.accepted.store(200, Ordering::Relaxed);
        counts.rejected.store(100, Ordering::Relaxed);
        let text = message(&counts, Duration::from_secs(2));
        assert_eq!(text, "300 events, 150/s, 200 accepted, 100 rejected");
    }
}
