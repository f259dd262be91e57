//! Which component judged which events, from the rows alone.

use super::warehouse::Warehouse;
use anyhow::{Result, ensure};
use std::collections::BTreeMap;

/// Events of one version in a row that one component judged. A component without a digest is nobody.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) version: String,
    pub(super) digest: Option<String>,
    pub(super) first: u64,
    pub(super) last: u64,
    pub(super) silver: u64,
    pub(super) quarantine: u64,
}

/// A row of silver or quarantine.
#[derive(Debug)]
pub(super) struct Judged {
    number: u64,
    version: String,
    digest: Option<String>,
    is_silver: bool,
}

/// Events that a replay brought from quarantine to silver.
const REPLAYED: &str = "SELECT source_message_id FROM poisoned_events WHERE resolved_at IS NOT NULL";

/// Every row of both tables, in the order of the events. Of an event that was replayed the first: the row in quarantine.
pub(super) fn rows(warehouse: &Warehouse) -> Result<Vec<Judged>> {
    let table = |table: &str, is_silver: bool| {
        let first = if is_silver { format!("source_message_id NOT IN ({REPLAYED})") } else { "true".to_owned() };
        let sql =
            format!("SELECT CAST(source_message_id AS INTEGER), event_version, rule_digest FROM {table} WHERE {first}");
        warehouse.all(&sql, |row| {
            Ok(Judged {
                number: row.get::<_, i64>(0)?.cast_unsigned(),
                version: row.get(1)?,
                digest: row.get(2)?,
                is_silver,
            })
        })
    };
    let mut rows = table("fact_bookings", true)?;
    rows.extend(table("poisoned_events", false)?);
    rows.sort_unstable_by_key(|row| row.number);
    Ok(rows)
}

/// Checks that every replayed event is in silver, once. How many there are.
pub(super) fn replayed_once(warehouse: &Warehouse) -> Result<u64> {
    let resolved = warehouse.count(&format!("SELECT count(*) FROM ({REPLAYED})"), [])?;
    let silver = format!("FROM fact_bookings WHERE source_message_id IN ({REPLAYED})");
    let rows = warehouse.count(&format!("SELECT count(*) {silver}"), [])?;
    let events = warehouse.count(&format!("SELECT count(DISTINCT source_message_id) {silver}"), [])?;
    ensure!(
        rows == resolved && events == resolved,
        "{resolved} rows are resolved; of their events {events} are in silver, in {rows} rows"
    );
    Ok(resolved)
}

/// Checks that every event from 0 on is there, once.
pub(super) fn each_once(rows: &[Judged], fed: u64) -> Result<()> {
    for (row, number) in rows.iter().zip(0..) {
        ensure!(row.number >= number, "event {} is there twice", row.number);
        ensure!(row.number <= number, "event {number} is lost");
    }
    ensure!(rows.len() as u64 == fed, "{fed} events were fed, {} have a row", rows.len());
    Ok(())
}

/// The spans, by event version and in the order of the events.
pub(super) fn spans(rows: &[Judged]) -> Vec<Span> {
    let mut spans: BTreeMap<&str, Vec<Span>> = BTreeMap::new();
    for row in rows {
        let spans = spans.entry(&row.version).or_default();
        if spans.last().is_none_or(|span| span.digest != row.digest) {
            let (version, digest, number) = (row.version.clone(), row.digest.clone(), row.number);
            spans.push(Span { version, digest, first: number, last: number, silver: 0, quarantine: 0 });
        }
        let span = spans.last_mut().expect("there is one now");
        span.last = row.number;
        *(if row.is_silver { &mut span.silver } else { &mut span.quarantine }) += 1;
    }
    spans.into_values().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(number: u64, digest: &str, is_silver: bool) -> Judged {
        Judged { number, version: "1".into(), digest: Some(digest.into()), is_silver }
    }

    #[test]
    fn a_lost_event_and_a_doubled_one_are_told() {
        let rows = |numbers: &[u64]| -> Vec<Judged> { numbers.iter().map(|n| row(*n, "a", true)).collect() };
        assert!(each_once(&rows(&[0, 1, 2]), 3).is_ok());
        let error = |numbers: &[u64]| each_once(&rows(numbers), 3).unwrap_err().to_string();
        assert_eq!(error(&[0, 2, 3]), "event 1 is lost");
        assert_eq!(error(&[0, 1, 1]), "event 1 is there twice");
        assert_eq!(error(&[0, 1]), "3 events were fed, 2 have a row");
    }

    #[test]
    fn a_component_that_comes_back_has_two_spans() {
        let rows = [row(0, "a", true), row(1, "a", false), row(2, "b", true), row(3, "a", true)];
        let spans: Vec<_> = spans(&rows).into_iter().map(|s| (s.digest.unwrap(), s.first, s.last, s.silver)).collect();
        assert_eq!(spans, [("a".into(), 0, 1, 1), ("b".into(), 2, 2, 1), ("a".into(), 3, 3, 1)]);
    }
}
