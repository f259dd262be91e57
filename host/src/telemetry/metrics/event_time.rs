//! Event time: what is told of it, and how it stands in the text. Of pipelines that measure nothing over windows there is none
//! of it.

use super::handle::Metrics;
use super::label::{self, Label};
use super::names;
use super::scrape::{count, gauges, own, start};
use crate::config::Config;
use crate::telemetry::event_time::{EventTime, EventTimeNow};
use crate::telemetry::tally::Tally;
use crate::time::Micros;
use crate::window::watermark::{Estimate, Hold};
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::metrics::MetricType;
use std::fmt;
use std::sync::Arc;

impl Metrics {
    /// The watermark was estimated.
    pub fn watermark(&self, estimate: &Estimate) {
        if let Some(event_time) = self.event_time() {
            event_time.estimate(*estimate);
        }
    }

    /// So many windows of an aggregate are open.
    pub fn windows_open(&self, aggregate: &Arc<str>, windows: u64) {
        if let Some(event_time) = self.event_time() {
            event_time.open(aggregate, windows);
        }
    }

    /// Events were accepted whose event time was so far behind their publish time.
    pub fn out_of_orderness(&self, publish_minus_event: impl IntoIterator<Item = Micros>) {
        if let Some(event_time) = self.event_time() {
            event_time.measured(publish_minus_event, self.processing_time());
        }
    }

    /// Event time as it is now; none of a pipeline that measures nothing over windows.
    pub fn event_time_now(&self) -> Option<EventTimeNow> {
        Some(self.event_time()?.now(self.processing_time()))
    }

    /// What this pipeline measures over windows, if anything, is shown from now on.
    pub fn shows(&self, config: &Config) {
        if let Some(event_time) = EventTime::of(config, self.processing_time()) {
            self.shows_event_time(event_time);
        }
    }
}

/// Writes all of it.
pub(super) fn event_time(
    encoder: &mut DescriptorEncoder<'_>,
    pipelines: &[Metrics],
    tallies: &[(Label, Tally)],
) -> fmt::Result {
    let now: Vec<(&Metrics, EventTimeNow)> =
        pipelines.iter().filter_map(|metrics| Some((metrics, metrics.event_time_now()?))).collect();
    if now.is_empty() {
        return Ok(());
    }
    let of = |metrics: &Metrics| now.iter().find(|(of, _)| of.pipeline() == metrics.pipeline()).map(|(_, now)| now);
    let watermark = |metrics: &Metrics| of(metrics)?.watermark();
    gauges(encoder, pipelines, names::WATERMARK, |metrics| watermark(metrics).map(seconds))?;
    gauges(encoder, pipelines, names::WATERMARK_LAG, |metrics| Some(metrics.seconds_since(watermark(metrics)?)))?;
    let mut family = start(encoder, names::WATERMARK_HELD, MetricType::Gauge)?;
    for (metrics, now) in &now {
        for hold in Hold::ALL {
            let is_held = now.estimate.is_some_and(|estimate| estimate.hold == Some(hold));
            let labels = [own(metrics), (label::REASON, hold.as_str().into())];
            family.encode_family(&labels)?.encode_gauge(&i64::from(is_held))?;
        }
    }
    gauges(encoder, pipelines, names::OUT_OF_ORDERNESS_DECLARED, |metrics| Some(seconds(of(metrics)?.declared)))?;
    gauges(encoder, pipelines, names::OUT_OF_ORDERNESS_P999, |metrics| of(metrics)?.measured_p999.map(seconds))?;
    let windows = |windows: u64| i64::try_from(windows).unwrap_or(i64::MAX);
    let mut family = start(encoder, names::OPEN_WINDOWS, MetricType::Gauge)?;
    for (metrics, now) in &now {
        for (aggregate, open) in &now.open {
            let labels = [own(metrics), aggregate_label(aggregate)];
            family.encode_family(&labels)?.encode_gauge(&windows(*open))?;
        }
    }
    gauges(encoder, pipelines, names::OPEN_WINDOWS_LIMIT, |metrics| Some(windows(of(metrics)?.limit)))?;
    let mut family = start(encoder, names::PANES, MetricType::Counter)?;
    for (own, tally) in tallies {
        for ((aggregate, timing), panes) in &tally.windows.panes {
            let labels = [own.clone(), aggregate_label(aggregate), (label::TIMING, (*timing).into())];
            count(&mut family, &labels, *panes)?;
        }
    }
    let mut family = start(encoder, names::LATE_EVENTS, MetricType::Counter)?;
    for (own, tally) in tallies {
        for (aggregate, events) in &tally.windows.late {
            count(&mut family, &[own.clone(), aggregate_label(aggregate)], *events)?;
        }
    }
    Ok(())
}

fn aggregate_label(aggregate: &str) -> Label {
    (label::AGGREGATE, aggregate.into())
}

fn seconds(micros: Micros) -> f64 {
    micros as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::metrics::Exposition;
    use crate::telemetry::metrics::tests::{metrics, parse};
    use crate::window::Timing;
    use std::collections::BTreeMap;

    const WORDS: [&str; 5] = ["watermark", "out_of_orderness", "windows", "panes", "late"];

    /// Those of event time, of the pipeline `name`.
    fn shown(exposition: &Exposition, name: &str) -> BTreeMap<String, String> {
        let mut samples = parse(&exposition.text());
        samples.retain(|series, _| {
            WORDS.iter().any(|word| series.contains(word)) && series.contains(&format!("pipeline=\"{name}\""))
        });
        samples
    }

    #[test]
    fn a_pipeline_that_measures_nothing_over_windows_shows_nothing_of_event_time() {
        let exposition = Exposition::default();
        let plain = metrics(&exposition, "plain");
        plain.shows(&Config::with_aggregates(&[]));
        plain.watermark(&Estimate::at(5));
        plain.windows_open(&"a".into(), 3);
        plain.out_of_orderness([5]);
        assert_eq!(plain.event_time_now(), None);
        let text = exposition.text();
        assert!(WORDS.iter().all(|word| !text.contains(&format!("preflight_{word}"))), "not even a help text: {text}");
        metrics(&exposition, "measures").shows(&Config::with_aggregates(&["a"]));
        assert_eq!(shown(&exposition, "plain"), BTreeMap::new());
    }

    #[test]
    fn before_there_is_a_watermark_it_is_absent_and_everything_else_begins_at_nothing() {
        let exposition = Exposition::default();
        let metrics = metrics(&exposition, "p");
        metrics.shows(&Config::with_aggregates(&["a"]));
        let expected = [
            (r#"preflight_late_events_total{pipeline="p",aggregate="a"}"#, "0"),
            (r#"preflight_open_windows_limit{pipeline="p"}"#, "500"),
            (r#"preflight_open_windows{pipeline="p",aggregate="a"}"#, "0"),
            (r#"preflight_out_of_orderness_declared_seconds{pipeline="p"}"#, "30.0"),
            (r#"preflight_panes_total{pipeline="p",aggregate="a",timing="ON_TIME"}"#, "0"),
            (r#"preflight_watermark_held{pipeline="p",reason="backlog"}"#, "0"),
            (r#"preflight_watermark_held{pipeline="p",reason="flow_control"}"#, "0"),
            (r#"preflight_watermark_held{pipeline="p",reason="start"}"#, "0"),
        ];
        let expected: BTreeMap<String, String> =
            expected.into_iter().map(|(series, value)| (series.to_owned(), value.to_owned())).collect();
        for watermark in [None, Some(Micros::MIN), Some(Micros::MAX)] {
            if let Some(watermark) = watermark {
                metrics.watermark(&Estimate::at(watermark));
            }
            assert_eq!(shown(&exposition, "p"), expected, "{watermark:?}");
        }
    }

    #[test]
    fn the_watermark_and_what_windows_say_stand_in_the_text() {
        let exposition = Exposition::default();
        let metrics = metrics(&exposition, "p");
        metrics.shows(&Config::with_aggregates(&["a", "b"]));
        metrics.watermark(&Estimate { watermark: 7_500_000, frontier: Some(9_000_000), hold: Some(Hold::Backlog) });
        metrics.windows_open(&"a".into(), 12);
        metrics.windows_open(&"a".into(), 11);
        metrics.out_of_orderness([0, -1, 2_000_000]);
        let mut tally = Tally::default();
        tally.windows.pane(&"a".into(), Timing::Early);
        tally.windows.pane(&"b".into(), Timing::OnTime);
        tally.windows.late(&"b".into());
        metrics.durable(&tally);
        metrics.durable(&tally);
        let samples = shown(&exposition, "p");
        for (series, expected) in [
            (r#"preflight_watermark_timestamp_seconds{pipeline="p"}"#, "7.5"),
            (r#"preflight_watermark_lag_seconds{pipeline="p"}"#, "2.5"),
            (r#"preflight_watermark_held{pipeline="p",reason="backlog"}"#, "1"),
            (r#"preflight_watermark_held{pipeline="p",reason="start"}"#, "0"),
            (r#"preflight_open_windows{pipeline="p",aggregate="a"}"#, "11"),
            (r#"preflight_open_windows{pipeline="p",aggregate="b"}"#, "0"),
            (r#"preflight_panes_total{pipeline="p",aggregate="a",timing="EARLY"}"#, "2"),
            (r#"preflight_panes_total{pipeline="p",aggregate="b",timing="ON_TIME"}"#, "2"),
            (r#"preflight_late_events_total{pipeline="p",aggregate="a"}"#, "0"),
            (r#"preflight_late_events_total{pipeline="p",aggregate="b"}"#, "2"),
        ] {
            assert_eq!(samples.get(series).map(String::as_str), Some(expected), "{series} in {samples:#?}");
        }
        let measured: f64 =
            samples[r#"preflight_out_of_orderness_p999_seconds{pipeline="p"}"#].parse().expect("a number");
        assert!((1.98..=2.02).contains(&measured), "{measured}");
    }
}
