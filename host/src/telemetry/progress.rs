//! The progress bar: events, events a second of late, accepted, rejected, and how much of the file is read. A source that has
//! no end has no percentage.

use super::metrics::Metrics;
use super::tally::Tally;
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

const EVERY: Duration = Duration::from_millis(100);
/// The time that the rate is of.
const OVER: Duration = Duration::from_secs(5);

/// Draws a bar until it is dropped. It hides itself where standard error is no terminal.
pub struct Bar {
    bar: ProgressBar,
    task: tokio::task::JoinHandle<()>,
}

impl Bar {
    /// Adds a bar for a pipeline. It moves once the source is read.
    pub fn start(bars: &MultiProgress, name: &str, metrics: Metrics) -> Self {
        let bar = bars.add(ProgressBar::new(0));
        let known = "{prefix} {bar:30} {percent:>3}% {msg}";
        let unknown = "{prefix} {spinner} {msg}";
        bar.set_prefix(name.to_owned());
        let drawn = bar.clone();
        let task = tokio::spawn(async move {
            let style = |template| ProgressStyle::with_template(template).expect("the template is fixed");
            drawn.set_style(style(unknown));
            let progress = loop {
                match metrics.progress() {
                    Some(progress) => break progress,
                    None => tokio::time::sleep(EVERY).await,
                }
            };
            let started = Instant::now();
            let mut rate = Rate::default();
            let mut has_total = false;
            loop {
                let total = progress.total.load(Ordering::Relaxed);
                if total > 0 && !has_total {
                    drawn.set_style(style(known));
                    has_total = true;
                }
                drawn.set_length(total);
                drawn.set_position(progress.bytes.load(Ordering::Relaxed));
                drawn
                    .set_message(metrics.with_tally(|tally| message(tally, rate.after(started.elapsed(), tally.read))));
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

fn message(tally: &Tally, rate: f64) -> String {
    let (events, accepted, rejected) = (tally.read, tally.accepted(), tally.quarantined());
    format!("{events} events, {rate:.0}/s, {accepted} accepted, {rejected} rejected")
}

/// Events a second, over the last seconds: a source without an end has good and bad hours.
#[derive(Debug, Default)]
struct Rate(VecDeque<(Duration, u64)>);

impl Rate {
    /// The rate when so many events were counted after so long.
    fn after(&mut self, elapsed: Duration, events: u64) -> f64 {
        self.0.push_back((elapsed, events));
        while let Some((next, _)) = self.0.get(1)
            && elapsed.saturating_sub(*next) >= OVER
        {
            self.0.pop_front();
        }
        let (since, before) = self.0.front().copied().unwrap_or_default();
        (events - before) as f64 / elapsed.saturating_sub(since).as_secs_f64().max(0.001)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::tally::CountedVersion;
    use crate::verdict::{Rejection, stage};

    #[test]
    fn the_message_says_counts_and_rate() {
        let mut tally = Tally::default();
        tally.read = 300;
        let outcomes = tally.of(CountedVersion::new(Some("1"), true));
        outcomes.accepted = 299;
        outcomes.reject(&Rejection::by_host(stage::SINK_REJECTED, "row_too_large", ""));
        let text = message(&tally, 150.4);
        assert_eq!(text, "300 events, 150/s, 299 accepted, 1 rejected");
    }

    #[test]
    #[expect(clippy::float_cmp, reason = "they are whole numbers")]
    fn the_rate_is_of_the_last_seconds() {
        let second = Duration::from_secs;
        let mut rate = Rate::default();
        assert_eq!(rate.after(second(0), 0), 0.0);
        assert_eq!(rate.after(second(2), 200), 100.0);
        assert_eq!(rate.after(second(5), 200), 40.0);
        assert_eq!(rate.after(second(7), 200), 0.0);
        assert_eq!(rate.after(second(1_000), 5_165), 5.0, "over the time since the last look, if that is longer");
    }
}
