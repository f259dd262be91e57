//! The answer of `/status`.

use crate::VERSION;
use crate::releases::worker::Worker;
use crate::telemetry::metrics::Metrics;
use crate::telemetry::status::{Board, Failing, Now, State, Status};
use crate::telemetry::tally::Outcomes;
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
    }
}
