//! Where the watermark of a pipeline comes from: the end of a source that has one, the publish times of what was recorded, or
//! the messages of a subscription.

use crate::config::{Follows, WatermarkConfig};
use crate::source::Messages;
use crate::time::{Clock, Micros};
use crate::window::watermark::{Estimate, Estimator, Hold};
use std::sync::Arc;
use std::time::Duration;

/// Says how far the watermark is. It remembers nothing of where it was: that is what the ledger has.
pub struct WatermarkSource {
    clock: Arc<dyn Clock>,
    kind: Kind,
}

enum Kind {
    /// The end of the source, which others see: until then there is no watermark.
    EndOfInput,
    /// Events that were recorded, in an order that is as good as that of their publish times. Nothing is ever waited for but
    /// the next of them.
    Recorded { estimator: Estimator, newest: Option<Micros> },
    /// Messages that come.
    Subscription { estimator: Estimator, messages: Arc<Messages> },
}

impl WatermarkSource {
    /// The watermark of a pipeline whose source was just started. `current` is the watermark in the ledger: where there is one,
    /// it is held for as long as what an earlier process has held may take to come again.
    pub fn new(
        config: &WatermarkConfig,
        messages: Option<Arc<Messages>>,
        comes_again_within: Duration,
        current: Micros,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let estimator = estimator(config);
        let kind = match (config.follows, messages) {
            (Follows::EndOfInput, _) => Kind::EndOfInput,
            (Follows::PublishTime, None) => Kind::Recorded { estimator, newest: None },
            (Follows::PublishTime, Some(messages)) => {
                // Also where the ledger has none: who was killed before its first commit has held messages, too.
                let held_until = Some(clock.now().saturating_add(micros(comes_again_within)));
                // So that what comes before the first estimate is known for what it is.
                messages.seen(clock.now(), estimator.floor(current));
                Kind::Subscription { estimator: Estimator { held_until, ..estimator }, messages }
            }
        };
        Self { clock, kind }
    }

    /// Events with these publish times are committed.
    pub fn committed(&mut self, publish_times: impl IntoIterator<Item = Micros>) {
        if let Kind::Recorded { newest, .. } = &mut self.kind {
            *newest = (*newest).max(publish_times.into_iter().max());
        }
    }

    /// How far the watermark is, which was at `current` before. It never goes back.
    pub fn estimate(&self, current: Micros) -> Estimate {
        let now = self.clock.now();
        match &self.kind {
            Kind::EndOfInput => Estimate::at(current),
            Kind::Recorded { estimator, newest } => {
                let frontier = newest.map(|newest| newest.min(now));
                let watermark = frontier.map_or(current, |frontier| estimator.behind(frontier).max(current));
                Estimate { watermark, frontier, hold: None }
            }
            Kind::Subscription { estimator, messages } => {
                estimator.estimate(current, &messages.seen(now, estimator.floor(current)))
            }
        }
    }

    /// How far the watermark can be at most: as far as what is held lets it, whatever else would hold it.
    pub fn unheld(&self, current: Micros) -> Micros {
        let Estimate { watermark, frontier, hold } = self.estimate(current);
        match (&self.kind, frontier) {
            // What a process that died has held must come first.
            (Kind::Subscription { estimator, .. }, Some(frontier)) if hold != Some(Hold::Start) => {
                estimator.behind(frontier).max(watermark)
            }
            _ => watermark,
        }
    }
}

fn estimator(config: &WatermarkConfig) -> Estimator {
    Estimator {
        out_of_orderness: micros(config.out_of_orderness),
        backlog: micros(config.backlog),
        idle: micros(config.idle),
        held_until: None,
    }
}

fn micros(duration: Duration) -> Micros {
    Micros::try_from(duration.as_micros()).unwrap_or(Micros::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::FixedClock;
    use crate::window::watermark::Hold;

    const SECOND: Micros = 1_000_000;
    const NOW: Micros = 1_000 * SECOND;

    fn source(follows: Follows, messages: Option<&Arc<Messages>>, current: Micros) -> WatermarkSource {
        let config = WatermarkConfig {
            follows,
            out_of_orderness: Duration::from_secs(10),
            backlog: Duration::from_secs(30),
            idle: Duration::from_mins(2),
        };
        let clock = Arc::new(FixedClock(NOW));
        // As if nobody had died before the first.
        let within = if current == Micros::MIN { Duration::ZERO } else { Duration::from_secs(20) };
        WatermarkSource::new(&config, messages.cloned(), within, current, clock)
    }

    #[test]
    fn of_a_source_with_an_end_it_stays_where_it_is() {
        let mut source = source(Follows::EndOfInput, None, Micros::MIN);
        source.committed([5 * SECOND]);
        assert_eq!(source.estimate(Micros::MIN), Estimate::at(Micros::MIN));
        assert_eq!(source.estimate(Micros::MAX), Estimate::at(Micros::MAX));
    }

    #[test]
    fn of_what_was_recorded_it_follows_the_newest_that_is_committed_and_nothing_holds_it() {
        let mut source = source(Follows::PublishTime, None, 7 * SECOND);
        assert_eq!(source.estimate(7 * SECOND), Estimate::at(7 * SECOND));
        source.committed([15 * SECOND, 12 * SECOND]);
        assert_eq!(source.estimate(7 * SECOND).watermark, 7 * SECOND, "never back");
        source.committed([20 * SECOND]);
        source.committed([]);
        let estimate = Estimate { watermark: 10 * SECOND, frontier: Some(20 * SECOND), hold: None };
        assert_eq!(source.estimate(7 * SECOND), estimate);
        source.committed([NOW + 90 * SECOND]);
        assert_eq!(source.estimate(Micros::MIN).watermark, NOW - 10 * SECOND);
    }

    #[test]
    fn of_a_subscription_it_follows_its_messages() {
        let messages = Arc::new(Messages::default());
        let source = source(Follows::PublishTime, Some(&messages), Micros::MIN);
        assert_eq!(source.estimate(Micros::MIN), Estimate::at(Micros::MIN));
        messages.pass(NOW - 2 * SECOND, NOW);
        let estimate = Estimate { watermark: NOW - 12 * SECOND, frontier: Some(NOW - 2 * SECOND), hold: None };
        assert_eq!(source.estimate(Micros::MIN), estimate);
        assert_eq!(source.estimate(NOW - 12 * SECOND), estimate);
        messages.pass(NOW - 40 * SECOND, NOW);
        assert_eq!(source.estimate(NOW - 12 * SECOND), estimate, "it is behind the floor");
        assert_eq!(source.estimate(NOW - 60 * SECOND).hold, None, "it was when it came");
        messages.pass(NOW - 40 * SECOND, NOW);
        assert_eq!(source.estimate(NOW - 60 * SECOND).hold, Some(Hold::Backlog));
    }

    #[test]
    fn after_a_restart_it_is_held_but_a_first_watermark_is_not() {
        let messages = Arc::new(Messages::default());
        messages.pass(NOW - 2 * SECOND, NOW);
        let held = source(Follows::PublishTime, Some(&messages), 0).estimate(0);
        assert_eq!((held.watermark, held.hold), (0, Some(Hold::Start)));
        let first = source(Follows::PublishTime, Some(&messages), Micros::MIN).estimate(Micros::MIN);
        assert_eq!((first.watermark, first.hold), (NOW - 12 * SECOND, None));
    }
}
