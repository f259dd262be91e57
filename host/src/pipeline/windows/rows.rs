//! Rows of panes and of late events.

use super::aggregate::{Aggregate, Contribution};
use crate::digest::Digest;
use crate::event::Event;
use crate::ledger::{Frames, Part};
use crate::pipeline::plan::{AggregatePlan, LateColumn, LatePlan, PaneColumn, WindowsPlan};
use crate::row::{Value, ValueRef};
use crate::time::{Micros, format_micros};
use crate::warehouse::{Change, Layout, RowSet, Tier};
use crate::window::windows::Named;
use crate::window::{Pane, Span, Timing, key};
use serde_json::{Map, json};
use std::sync::Arc;

/// What rows say of the commit that they are of.
#[derive(Debug, Clone, Copy)]
pub(in crate::pipeline) struct Stamp<'a> {
    pub pipeline: &'a str,
    pub epoch: i64,
    pub processing_time: Micros,
    pub watermark: Micros,
}

impl Stamp<'_> {
    /// No time before the first event, nor at the end of a bounded source.
    fn watermark(&self) -> Value {
        match self.watermark {
            Micros::MIN | Micros::MAX => Value::Null,
            watermark => Value::Timestamp(watermark),
        }
    }
}

/// The rows of panes, by aggregate.
pub(in crate::pipeline) fn panes(plan: &WindowsPlan, panes: &[Named], stamp: &Stamp<'_>) -> Vec<Part> {
    let of = |planned: &AggregatePlan| {
        let mut rows = RowSet::default();
        for (_, pane) in panes.iter().filter(|(name, _)| *name == planned.aggregate.name) {
            let key = key::decode(&pane.key);
            let values: Vec<Value> = planned
                .columns
                .iter()
                .map(|column| pane_value(*column, &planned.aggregate, pane, &key, stamp))
                .collect();
            let change = if pane.timing == Timing::Retracted { Change::Delete } else { Change::Upsert };
            match planned.layout.upsert {
                Some(_) => push(&mut rows, 0, |bytes| {
                    planned.layout.encode_change(bytes, values.iter().map(ValueRef::from), change);
                }),
                None => push(&mut rows, 0, |bytes| planned.layout.encode(bytes, values.iter().map(ValueRef::from))),
            }
        }
        part(planned.tier, &planned.layout, rows)
    };
    plan.aggregates.iter().filter_map(of).collect()
}

fn pane_value(column: PaneColumn, aggregate: &Aggregate, pane: &Pane, key: &[Value], stamp: &Stamp<'_>) -> Value {
    match column {
        PaneColumn::WindowId => Value::Text(window_id(&aggregate.name, &pane.key, pane.window)),
        PaneColumn::WindowStart => Value::Timestamp(pane.window.start),
        PaneColumn::WindowEnd => Value::Timestamp(pane.window.end),
        PaneColumn::Group(index) => key.get(index).cloned().unwrap_or(Value::Null),
        PaneColumn::Measure(index) => pane.values[index].clone(),
        PaneColumn::Timing => Value::Text(pane.timing.to_string()),
        PaneColumn::PaneIndex => Value::Int64(i64::from(pane.index)),
        PaneColumn::Epoch => Value::Int64(stamp.epoch),
        PaneColumn::FiredAt => Value::Timestamp(stamp.processing_time),
        PaneColumn::Watermark => stamp.watermark(),
        PaneColumn::Error => overflow(aggregate, pane).map_or(Value::Null, Value::Text),
    }
}

/// What tells the window of a key of an aggregate from all others: half of a SHA-256, as text.
pub fn window_id(aggregate: &str, key: &[u8], window: Span) -> String {
    let mut bytes = Vec::with_capacity(aggregate.len() + key.len() + 17);
    bytes.extend_from_slice(aggregate.as_bytes());
    bytes.push(0);
    bytes.extend_from_slice(&window.start.to_be_bytes());
    bytes.extend_from_slice(&window.end.to_be_bytes());
    bytes.extend_from_slice(key);
    let digest = Digest::of(&bytes);
    let half: [u8; 16] = std::array::from_fn(|index| digest.bytes()[index]);
    format!("{:032x}", u128::from_be_bytes(half))
}

/// Which measures no column can hold.
pub fn overflow(aggregate: &Aggregate, pane: &Pane) -> Option<String> {
    let one = |index: &usize| {
        let (name, measure) = (&aggregate.measures[*index], aggregate.spec.measures[*index]);
        format!("the {} `{name}` is beyond {}", measure.function, measure.output())
    };
    (!pane.overflowed.is_empty()).then(|| pane.overflowed.iter().map(one).collect::<Vec<_>>().join("; "))
}

/// The values of a key by the names of their columns.
pub fn key_json(aggregate: &Aggregate, key: &[u8]) -> serde_json::Value {
    let names = aggregate.group.iter().map(|(name, _)| name.clone());
    names.zip(key::decode(key).iter().map(Value::to_json)).collect::<Map<_, _>>().into()
}

/// The windows that an event came too late for, with how long ago each was closed; and how long ago the newest was.
pub fn missed(aggregate: &Aggregate, windows: &[Span], watermark: Micros) -> (serde_json::Value, i64) {
    let late_by = |window: &Span| {
        let closed = window.end.saturating_add(aggregate.spec.allowed_lateness);
        watermark.saturating_sub(closed) / 1_000
    };
    let one = |window: &Span| {
        json!({
            "start": format_micros(window.start),
            "end": format_micros(window.end),
            "late_by_ms": late_by(window),
        })
    };
    let all: Vec<serde_json::Value> = windows.iter().map(one).collect();
    (all.into(), windows.iter().map(late_by).min().unwrap_or_default())
}

/// The rows of late events.
pub(super) struct LateRows<'a> {
    plan: &'a LatePlan,
    rows: RowSet,
}

impl<'a> LateRows<'a> {
    pub(super) fn new(plan: &'a WindowsPlan) -> Self {
        Self { plan: &plan.late, rows: RowSet::default() }
    }

    /// Adds an event that is too late for windows of an aggregate.
    pub(super) fn add(
        &mut self,
        planned: &AggregatePlan,
        contribution: &Contribution,
        event: &Event,
        windows: &[Span],
        stamp: &Stamp<'_>,
    ) {
        let aggregate = &planned.aggregate;
        let (windows, late_by_ms) = missed(aggregate, windows, stamp.watermark);
        let value = |column: &LateColumn| match column {
            LateColumn::Aggregate => Value::Text(aggregate.name.to_string()),
            LateColumn::MessageId => Value::Text(event.message_id.clone()),
            LateColumn::EventTime => Value::Timestamp(contribution.event_time),
            LateColumn::PublishTime => Value::Timestamp(event.publish_time),
            LateColumn::ReceivedTime => Value::Timestamp(event.received_time),
            LateColumn::Watermark => stamp.watermark(),
            LateColumn::Key => Value::Json(key_json(aggregate, &contribution.key).to_string()),
            LateColumn::MissedWindows => Value::Json(windows.to_string()),
            LateColumn::LateByMs => Value::Int64(late_by_ms),
            LateColumn::Pipeline => Value::Text(stamp.pipeline.to_owned()),
        };
        let values: Vec<Value> = self.plan.columns.iter().map(value).collect();
        let encode = |bytes: &mut Vec<u8>| self.plan.layout.encode(bytes, values.iter().map(ValueRef::from));
        push(&mut self.rows, contribution.event, encode);
    }

    pub(super) fn part(self) -> Option<Part> {
        part(Tier::Late, &self.plan.layout, self.rows)
    }
}

fn push(rows: &mut RowSet, event: u32, encode: impl FnOnce(&mut Vec<u8>)) {
    // It holds no more than a silver row that was within the limit, and some numbers.
    rows.push(event, usize::MAX, encode).ok();
}

fn part(tier: Tier, layout: &Arc<Layout>, rows: RowSet) -> Option<Part> {
    if rows.is_empty() {
        return None;
    }
    let mut frames = Frames::default();
    frames.push(&rows);
    Some(Part { tier, layout: Arc::clone(layout), rows: Arc::new(rows), frames })
}
