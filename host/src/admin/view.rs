//! The answer of `/status`.

use crate::VERSION;
use crate::releases::worker::Worker;
use crate::telemetry::event_time::EventTimeNow;
use crate::telemetry::metrics::Metrics;
use crate::telemetry::status::{Board, Failing, Now, State, Status};
use crate::telemetry::tally::Outcomes;
use crate::time::{Micros, format_micros};
use crate::window::watermark::Hold;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

#[derive(Debug, Serialize)]
pub(super) struct View {
    version: &'static str,
    uptime_seconds: f64,
    pipelines: Vec<Pipeline>,
}

#[derive(Debug, Serialize)]
struct Pipeline {
    name: String,
    state: State,
    failing: Vec<Failing>,
    worker: Worker,
    counts: Counts,
    source: Option<Source>,
    publish_lag_seconds: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    event_time: Option<EventTime>,
}

/// Of a pipeline that measures over windows.
#[derive(Debug, Serialize)]
struct EventTime {
    watermark: Option<String>,
    watermark_lag_seconds: Option<f64>,
    frontier: Option<String>,
    held: Option<Hold>,
    out_of_orderness_declared_seconds: f64,
    out_of_orderness_p999_seconds: Option<f64>,
    open_windows: BTreeMap<String, u64>,
    open_windows_limit: u64,
}

/// Events whose rows are durable.
#[derive(Debug, Serialize)]
struct Counts {
    events: u64,
    accepted: u64,
    ignored: u64,
    duplicates: u64,
    redelivered: u64,
    rejected: u64,
    recovered_faults: u64,
    event_versions: BTreeMap<Box<str>, Outcomes>,
}

#[derive(Debug, Serialize)]
struct Source {
    read_bytes: u64,
    size_bytes: Option<u64>,
}

pub(super) fn of(board: &Board) -> View {
    View {
        version: VERSION,
        uptime_seconds: board.uptime().as_secs_f64(),
        pipelines: board.pipelines().iter().map(pipeline).collect(),
    }
}

fn pipeline((metrics, status): &(Metrics, Status)) -> Pipeline {
    let Now { state, worker, failing } = status.now();
    let tally = metrics.tally();
    Pipeline {
        name: status.pipeline().to_owned(),
        state,
        failing: failing.into_values().collect(),
        worker,
        counts: Counts {
            events: tally.read,
            accepted: tally.accepted(),
            ignored: tally.ignored(),
            duplicates: tally.duplicates(),
            redelivered: tally.redelivered,
            rejected: tally.quarantined(),
            recovered_faults: tally.recovered,
            event_versions: tally.versions().clone(),
        },
        source: metrics.progress().map(|progress| Source {
            read_bytes: progress.bytes.load(Ordering::Relaxed),
            size_bytes: Some(progress.total.load(Ordering::Relaxed)).filter(|size| *size > 0),
        }),
        publish_lag_seconds: metrics.publish_lag(),
        event_time: metrics.event_time_now().map(|now| event_time(metrics, &now)),
    }
}

fn event_time(metrics: &Metrics, now: &EventTimeNow) -> EventTime {
    let seconds = |micros: Micros| micros as f64 / 1e6;
    let watermark = now.watermark();
    EventTime {
        watermark: watermark.map(format_micros),
        watermark_lag_seconds: watermark.map(|watermark| metrics.seconds_since(watermark)),
        frontier: now.estimate.and_then(|estimate| estimate.frontier).map(format_micros),
        held: now.estimate.and_then(|estimate| estimate.hold),
        out_of_orderness_declared_seconds: seconds(now.declared),
        out_of_orderness_p999_seconds: now.measured_p999.map(seconds),
        open_windows: now.open.iter().map(|(aggregate, open)| (aggregate.to_string(), *open)).collect(),
        open_windows_limit: now.limit,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::time::{Clock, FixedClock};
    use crate::window::watermark::Estimate;
    use serde_json::{Value, json};
    use std::sync::Arc;

    const SECOND: Micros = 1_000_000;

    /// What is answered of event time.
    fn shown(config: &Config, then: impl FnOnce(&Metrics)) -> Option<Value> {
        let clock: Arc<dyn Clock> = Arc::new(FixedClock(100 * SECOND));
        let board = Board::new(["p"], &clock);
        let (metrics, _) = &board.pipelines()[0];
        metrics.shows(config);
        then(metrics);
        serde_json::to_value(of(&board)).expect("it is plain data")["pipelines"][0].get("event_time").cloned()
    }

    #[test]
    fn a_pipeline_that_measures_nothing_over_windows_has_no_event_time() {
        assert_eq!(shown(&Config::with_aggregates(&[]), |metrics| metrics.watermark(&Estimate::at(5))), None);
    }

    #[test]
    fn what_is_not_known_yet_is_null() {
        let expected = json!({
            "watermark": null,
            "watermark_lag_seconds": null,
            "frontier": null,
            "held": null,
            "out_of_orderness_declared_seconds": 30.0,
            "out_of_orderness_p999_seconds": null,
            "open_windows": {"a": 0},
            "open_windows_limit": 500,
        });
        let config = Config::with_aggregates(&["a"]);
        assert_eq!(shown(&config, |_| {}).as_ref(), Some(&expected));
        assert_eq!(shown(&config, |metrics| metrics.watermark(&Estimate::at(Micros::MIN))), Some(expected));
    }

    #[test]
    fn the_watermark_is_told_with_where_it_comes_from_and_why_it_is_held() {
        let shown = shown(&Config::with_aggregates(&["a", "b"]), |metrics| {
            let (watermark, frontier) = (40 * SECOND, Some(75 * SECOND));
            metrics.watermark(&Estimate { watermark, frontier, hold: Some(Hold::FlowControl) });
            metrics.windows_open(&"b".into(), 7);
            metrics.out_of_orderness([-3]);
        });
        let expected = json!({
            "watermark": "1970-01-01T00:00:40.000000Z",
            "watermark_lag_seconds": 60.0,
            "frontier": "1970-01-01T00:01:15.000000Z",
            "held": "flow_control",
            "out_of_orderness_declared_seconds": 30.0,
            "out_of_orderness_p999_seconds": 0.0,
            "open_windows": {"a": 0, "b": 7},
            "open_windows_limit": 500,
        });
        assert_eq!(shown, Some(expected));
    }
}
