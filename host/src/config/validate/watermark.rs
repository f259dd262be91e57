//! How the watermark moves, and what has to outlast a window.

use super::check::Check;
use super::window::MAX_SPAN;
use crate::config::raw::RawWatermark;
use crate::config::units::shown;
use crate::config::{AggregateConfig, DedupConfig, Follows, Format, SourceConfig, WatermarkConfig};
use crate::window::Windowing;
use std::time::Duration;

const OUT_OF_ORDERNESS: Duration = Duration::from_secs(10);
const BACKLOG: Duration = Duration::from_secs(30);
const IDLE: Duration = Duration::from_mins(2);

impl Check {
    pub(super) fn watermark(&mut self, raw: &RawWatermark, source: Option<&SourceConfig>) -> WatermarkConfig {
        let follows = self.follows(raw.follows.as_deref(), source);
        let given = [
            ("watermark.out_of_orderness", raw.out_of_orderness.as_deref(), OUT_OF_ORDERNESS, Duration::ZERO),
            ("watermark.backlog", raw.backlog.as_deref(), BACKLOG, Duration::from_millis(1)),
            ("watermark.idle", raw.idle.as_deref(), IDLE, Duration::from_millis(1)),
        ];
        let [out_of_orderness, backlog, idle] = given.map(|(key, text, default, min)| {
            let duration = self.duration(key, text, default);
            if duration < min {
                self.refuse::<()>(key, "must be at least 1 ms");
            } else if duration > MAX_SPAN {
                self.refuse::<()>(key, format!("must be at most {}", shown(MAX_SPAN)));
            }
            duration
        });
        WatermarkConfig { follows, out_of_orderness, backlog, idle }
    }

    fn follows(&mut self, text: Option<&str>, source: Option<&SourceConfig>) -> Follows {
        let key = "watermark.follows";
        let subscription = matches!(source, Some(SourceConfig::Pubsub(_)));
        match text {
            None if subscription => Follows::PublishTime,
            None => Follows::EndOfInput,
            Some("publish_time") => {
                let has_none = match source.map(SourceConfig::format) {
                    Some(Format::Lines) => "lines have",
                    Some(Format::Csv(_)) => "CSV records have",
                    Some(Format::JsonArray) => "values of a JSON array have",
                    Some(Format::Envelope) | None => "",
                };
                if !subscription && !has_none.is_empty() {
                    let what = format!(
                        "{has_none} no publish times: use format = \"envelope\", or follows = \"end_of_input\""
                    );
                    self.refuse::<()>(key, what);
                }
                Follows::PublishTime
            }
            Some("end_of_input") => {
                if subscription {
                    self.refuse::<()>(key, "a subscription has no end: use \"publish_time\"");
                }
                Follows::EndOfInput
            }
            Some(other) => {
                let what = format!("{other:?} is not known: use \"publish_time\" or \"end_of_input\"");
                self.refuse::<()>(key, what);
                Follows::EndOfInput
            }
        }
    }

    /// A duplicate that is taken for a new event would be counted twice in a window that is still open. Of a file the
    /// horizon is the run.
    pub(super) fn horizon_of_windows(
        &mut self,
        source: Option<&SourceConfig>,
        dedup: Option<&DedupConfig>,
        aggregates: &[AggregateConfig],
        out_of_orderness: Duration,
    ) {
        let (Some(SourceConfig::Pubsub(_)), Some(dedup)) = (source, dedup) else { return };
        let open = |aggregate: &AggregateConfig| {
            let (Windowing::Fixed { size, .. } | Windowing::Sliding { size, .. } | Windowing::Session { gap: size }) =
                aggregate.windowing;
            Duration::from_micros((size + aggregate.allowed_lateness).unsigned_abs()) + out_of_orderness
        };
        let Some(longest) = aggregates.iter().max_by_key(|aggregate| open(aggregate)) else { return };
        let needed = open(longest);
        if dedup.horizon < needed {
            let what = format!(
                "{} is less than window, allowed lateness and out_of_orderness of the aggregate `{}` together, {}: a duplicate that comes later \
                 would count twice in a window that is still open. Make it at least as long",
                shown(dedup.horizon),
                longest.name,
                shown(needed),
            );
            self.refuse::<()>("dedup.horizon", what);
        }
    }
}
