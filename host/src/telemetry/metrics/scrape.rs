//! What is looked up when metrics are asked for: the tally, which is counted elsewhere already, the source, and lag.

use super::event_time::event_time;
use super::handle::Metrics;
use super::label::{self, Label};
use super::names::{self, Name};
use crate::source::Messages;
use crate::telemetry::tally::{NO_VERSION, Tally};
use crate::verdict::stage;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeGaugeValue, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// The pipelines of the process.
#[derive(Debug, Clone, Default)]
pub(super) struct Scrape(Arc<RwLock<Vec<Metrics>>>);

impl Scrape {
    pub(super) fn add(&self, metrics: Metrics) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).push(metrics);
    }
}

impl Collector for Scrape {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let pipelines = self.0.read().unwrap_or_else(PoisonError::into_inner);
        // One look at each, so that the families of a scrape fit together.
        let tallies: Vec<(Label, Tally)> = pipelines.iter().map(|metrics| (own(metrics), metrics.tally())).collect();
        let mut family = start(&mut encoder, names::EVENTS, MetricType::Counter)?;
        for (own, tally) in &tallies {
            events(&mut family, own, tally)?;
            if tally.redelivered > 0 {
                // Nobody looked at its version.
                count(&mut family, &event_labels(own, "redelivered", "", NO_VERSION), tally.redelivered)?;
            }
        }
        let mut family = start(&mut encoder, names::RULE_FAULTS, MetricType::Counter)?;
        for (own, tally) in &tallies {
            faults(&mut family, own, tally)?;
        }
        let mut family = start(&mut encoder, names::RECOVERED_FAULTS, MetricType::Counter)?;
        for (own, tally) in &tallies {
            count(&mut family, std::array::from_ref(own), tally.recovered)?;
        }
        let bytes = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
        gauges(&mut encoder, &pipelines, names::SOURCE_READ, |metrics| {
            metrics.progress().map(|progress| bytes(progress.bytes.load(Ordering::Relaxed)))
        })?;
        gauges(&mut encoder, &pipelines, names::SOURCE_SIZE, |metrics| {
            let total = metrics.progress()?.total.load(Ordering::Relaxed);
            (total > 0).then(|| bytes(total))
        })?;
        gauges(&mut encoder, &pipelines, names::PUBLISH_LAG, Metrics::publish_lag)?;
        event_time(&mut encoder, &pipelines, &tallies)?;
        messages(&mut encoder, &pipelines)
    }
}

pub(super) fn own(metrics: &Metrics) -> Label {
    (label::PIPELINE, metrics.pipeline())
}

pub(super) fn start<'s>(
    encoder: &'s mut DescriptorEncoder<'_>,
    name: Name,
    kind: MetricType,
) -> Result<MetricEncoder<'s>, fmt::Error> {
    encoder.encode_descriptor(name.0, &format!("{}.", name.1), None, kind)
}

pub(super) fn count<const N: usize>(family: &mut MetricEncoder<'_>, labels: &[Label; N], value: u64) -> fmt::Result {
    family.encode_family(labels)?.encode_counter::<NoLabelSet, _, u64>(&value, None)
}

pub(super) fn gauges<V: EncodeGaugeValue>(
    encoder: &mut DescriptorEncoder<'_>,
    pipelines: &[Metrics],
    name: Name,
    value: impl Fn(&Metrics) -> Option<V>,
) -> fmt::Result {
    let mut family = start(encoder, name, MetricType::Gauge)?;
    for metrics in pipelines {
        if let Some(value) = value(metrics) {
            family.encode_family(&[own(metrics)])?.encode_gauge(&value)?;
        }
    }
    Ok(())
}

/// One of the counts.
type Counter = fn(&Messages) -> &AtomicU64;

/// What is counted of messages: of pipelines whose events come in messages.
fn messages(encoder: &mut DescriptorEncoder<'_>, pipelines: &[Metrics]) -> fmt::Result {
    let of = |metrics: &Metrics| metrics.progress()?.messages.clone();
    let counters: [(Name, Counter); 6] = [
        (names::MESSAGES_RECEIVED, |messages| &messages.received),
        (names::MESSAGES_REDELIVERED, |messages| &messages.redelivered),
        (names::MESSAGES_ACKED, |messages| &messages.acked),
        (names::ACKS_UNCONFIRMED, |messages| &messages.unconfirmed),
        (names::MESSAGES_NACKED, |messages| &messages.nacked),
        (names::STREAM_REOPENINGS, |messages| &messages.reopened),
    ];
    for (name, counter) in counters {
        let mut family = start(encoder, name, MetricType::Counter)?;
        for metrics in pipelines {
            if let Some(messages) = of(metrics) {
                count(&mut family, &[own(metrics)], counter(&messages).load(Ordering::Relaxed))?;
            }
        }
    }
    let gauge = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    gauges(encoder, pipelines, names::OUTSTANDING_MESSAGES, |metrics| Some(gauge(of(metrics)?.held())))?;
    gauges(encoder, pipelines, names::OUTSTANDING_BYTES, |metrics| Some(gauge(of(metrics)?.held_bytes())))?;
    gauges(encoder, pipelines, names::OLDEST_UNACKED, |metrics| {
        Some(of(metrics)?.oldest().map_or(0.0, |published| metrics.seconds_since(published)))
    })
}

/// Every series of a version has the same labels: an accepted event's stage is empty.
fn events(family: &mut MetricEncoder<'_>, own: &Label, tally: &Tally) -> fmt::Result {
    for (version, outcomes) in tally.versions() {
        let mut one = |outcome: &'static str, stage: &str, value: u64| {
            count(family, &event_labels(own, outcome, stage, version), value)
        };
        one("accepted", "", outcomes.accepted)?;
        one("ignored", "", outcomes.ignored)?;
        // Where nothing is looked for there is no series of it.
        if outcomes.duplicates > 0 {
            one("duplicate", "", outcomes.duplicates)?;
        }
        let mut stages: BTreeMap<&str, u64> = BTreeMap::new();
        for rejected in outcomes.rejected.iter() {
            *stages.entry(&rejected.stage).or_default() += rejected.events;
        }
        for (stage, events) in stages {
            one("rejected", stage, events)?;
        }
    }
    Ok(())
}

fn event_labels(own: &Label, outcome: &'static str, stage: &str, version: &str) -> [Label; 4] {
    [
        own.clone(),
        (label::OUTCOME, outcome.into()),
        (label::STAGE, stage.into()),
        (label::EVENT_VERSION, version.into()),
    ]
}

fn faults(family: &mut MetricEncoder<'_>, own: &Label, tally: &Tally) -> fmt::Result {
    for (version, outcomes) in tally.versions() {
        for rejected in outcomes.rejected.iter().filter(|rejected| rejected.stage == stage::RULE_FAULT) {
            let code = rejected.code.as_deref().unwrap_or_default();
            let version = (label::EVENT_VERSION, version.as_ref().into());
            count(family, &[own.clone(), (label::CODE, code.into()), version], rejected.events)?;
        }
    }
    Ok(())
}
