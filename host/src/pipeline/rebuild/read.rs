//! Reading: the silver rows of the range, which are measured as they come, and which windows the aggregate's table shows.

use super::{Measured, RebuildError};
use crate::pipeline::windows::Aggregate;
use crate::pipeline::windows::rows::window_id;
use crate::row::{ColumnType, Row, Value};
use crate::time::{MAX_MICROS, Micros};
use crate::warehouse::{Scan, Warehouse, WarehouseError};
use crate::window::open::Place;
use crate::window::{Element, Pane, Span, Spec, Timing, Trigger, Windowing, Windows, key};
use futures::StreamExt as _;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Windows by their keys.
pub type Places = BTreeSet<Place>;

/// What was read.
pub enum Found {
    /// Everything.
    All(Box<Read>),
    /// There are more windows than may be held.
    TooMany,
    /// It is not to be done any more.
    Left,
}

/// The windows of a range.
pub struct Read {
    windows: Windows,
    /// Silver rows.
    pub rows: u64,
    /// Windows that the table shows.
    pub shown: Places,
    /// The highest epoch in the table, of what was read of it.
    pub newest_epoch: i64,
}

impl Read {
    /// A pane for each window that was measured.
    pub fn panes(&mut self, processing_time: Micros) -> Vec<Pane> {
        let mut panes = Vec::new();
        while self.windows.fire(Micros::MAX, processing_time, usize::MAX, &mut panes) {}
        panes.into_iter().map(|(_, pane)| pane).collect()
    }
}

/// Where an aggregate is read from.
pub struct Reader<'a> {
    aggregate: &'a Aggregate,
    silver: Scan,
    /// The tables of the aggregate, by each time that is looked at.
    table: Vec<Scan>,
    /// Where the scanned silver rows have the inputs of the measures.
    inputs: Vec<Option<usize>>,
    max_windows: u64,
}

/// What the newest pane of a window says of it: epoch, index, and whether the window is taken back.
type Newest = (i64, i64, bool);

impl<'a> Reader<'a> {
    /// A reader of what a range has.
    pub fn new(measured: &Measured, aggregate: &'a Aggregate, range: Span) -> Result<Self, RebuildError> {
        let mut times = aggregate.event_times.iter();
        let (Some(event_time), None) = (times.next(), times.next()) else {
            let times: Vec<&str> = aggregate.event_times.iter().map(String::as_str).collect();
            return Err(RebuildError::Refused(format!(
                "rules have the event time in different columns ({}), and a row does not say which is its own: give aggregate {} an \
                 event_time that all of them have",
                times.join(", "),
                aggregate.name
            )));
        };
        let mut columns = vec![(event_time.clone(), ColumnType::Timestamp)];
        columns.extend(aggregate.group.iter().cloned());
        let inputs = aggregate.measured.iter().zip(&aggregate.spec.measures).map(|(column, measure)| {
            let wanted = (column.clone()?, measure.input?);
            let index = columns.iter().position(|known| *known == wanted).unwrap_or(columns.len());
            if index == columns.len() {
                columns.push(wanted);
            }
            Some(index)
        });
        let inputs = inputs.collect();
        let silver = Scan {
            table: measured.silver.clone(),
            columns,
            time: event_time.clone(),
            from: range.start,
            to: range.end,
        };
        let table = &measured.tables[&*aggregate.name];
        Ok(Self { aggregate, silver, table: scans(table, aggregate, range), inputs, max_windows: measured.max_windows })
    }

    /// Reads everything.
    pub async fn read(
        &self,
        warehouse: &dyn Warehouse,
        goes_on: &(dyn Fn() -> bool + Sync),
    ) -> Result<Found, WarehouseError> {
        // All that is to be known of a window is known at its end.
        let spec = Spec { trigger: Trigger::default(), ..self.aggregate.spec.clone() };
        let mut windows = Windows::new([(Arc::clone(&self.aggregate.name), spec)]);
        let mut rows = 0;
        let mut chunks = warehouse.scan(self.silver.clone());
        while let Some(chunk) = chunks.next().await {
            let chunk = chunk?;
            rows += chunk.len() as u64;
            for row in &chunk {
                self.measure(row, &mut windows);
            }
            if windows.open() > self.max_windows {
                return Ok(Found::TooMany);
            }
            if !goes_on() {
                return Ok(Found::Left);
            }
        }
        let mut newest: BTreeMap<Place, Newest> = BTreeMap::new();
        for scan in &self.table {
            // A table that is not there yet shows nothing.
            if warehouse.columns(&scan.table).await?.is_none() {
                continue;
            }
            let mut chunks = warehouse.scan(scan.clone());
            while let Some(chunk) = chunks.next().await {
                chunk?.iter().for_each(|row| self.note(row, &mut newest));
                if newest.len() as u64 > self.max_windows {
                    return Ok(Found::TooMany);
                }
                if !goes_on() {
                    return Ok(Found::Left);
                }
            }
        }
        let newest_epoch = newest.values().map(|(epoch, ..)| *epoch).max().unwrap_or_default();
        let shown = newest.into_iter().filter(|(_, (.., is_taken_back))| !is_taken_back).map(|(place, _)| place);
        Ok(Found::All(Box::new(Read { windows, rows, shown: shown.collect(), newest_epoch })))
    }

    /// Adds a silver row to its windows.
    fn measure(&self, row: &Row, windows: &mut Windows) {
        // The range has no row without a time.
        let Value::Timestamp(event_time) = row[0] else { return };
        let key = key::encode(&row[1..=self.aggregate.group.len()]);
        let input = |index: &Option<usize>| index.map_or(Value::Null, |index| row[index].clone());
        let inputs: Vec<Value> = self.inputs.iter().map(input).collect();
        windows.add(&self.aggregate.name, Element { key: &key, event_time, inputs: &inputs }, 0);
    }

    /// Notes a row of the aggregate's table, unless it is another's: of a table that several share.
    fn note(&self, row: &Row, newest: &mut BTreeMap<Place, Newest>) {
        let [
            Value::Text(id),
            Value::Timestamp(start),
            Value::Timestamp(end),
            Value::Int64(epoch),
            Value::Int64(index),
            Value::Text(timing),
            group @ ..,
        ] = row.as_slice()
        else {
            return;
        };
        let (key, span) = (key::encode(group), Span { start: *start, end: *end });
        if *id != window_id(&self.aggregate.name, &key, span) {
            return;
        }
        let pane = (*epoch, *index, timing == Timing::Retracted.as_str());
        newest.entry((key.into(), span)).and_modify(|newest| *newest = pane.max(*newest)).or_insert(pane);
    }
}

/// The scans of an aggregate's table for windows of a range. Sessions are also looked for that began before it: they may reach
/// into it, and be longer than anything. One that is longer than the range itself is not found.
fn scans(table: &str, aggregate: &Aggregate, range: Span) -> Vec<Scan> {
    let known = [
        ("window_id", ColumnType::Text),
        ("window_start", ColumnType::Timestamp),
        ("window_end", ColumnType::Timestamp),
        ("epoch", ColumnType::Int64),
        ("pane_index", ColumnType::Int64),
        ("timing", ColumnType::Text),
    ];
    let known = known.map(|(name, kind)| (name.to_owned(), kind));
    let columns: Vec<(String, ColumnType)> = known.into_iter().chain(aggregate.group.iter().cloned()).collect();
    let scan =
        |time: &str, from, to| Scan { table: table.to_owned(), columns: columns.clone(), time: time.into(), from, to };
    let mut scans = vec![scan("window_start", range.start, range.end)];
    if let Windowing::Session { .. } = aggregate.spec.windowing {
        scans.push(scan("window_end", range.start.saturating_add(1), range.end.saturating_add(1).min(MAX_MICROS)));
    }
    scans
}
