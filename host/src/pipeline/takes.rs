//! What tables take: checked before a row is promised, so that no table refuses it behind the commit.

use super::plan::{Plan, Silver, WindowsPlan};
use super::windows::Contribution;
use crate::event::Event;
use crate::row::{Value, ValueRef};
use crate::rules::Manifest;
use crate::rules::compare::Opinion;
use crate::time::{DAY, Micros};
use crate::verdict::{Rejection, Verdict, stage};

/// BigQuery takes partitions from ten years back to one year ahead, and counts the years as 365 days.
const PARTITION_PAST: Micros = 3_650 * DAY;
const PARTITION_AHEAD: Micros = 365 * DAY;

/// What an event may add to a window, bytes: the rows of panes and of late events must fit a request, however many it is of.
const CONTRIBUTION: usize = 64 << 10;

/// A row that its table would refuse.
pub fn sink(code: &'static str, reason: String) -> Rejection {
    Rejection::by_host(stage::SINK_REJECTED, code, reason)
}

/// What the host makes of an opinion: a row that the table would refuse is a rejection, whoever made the row.
pub fn outcome(plan: &Plan, manifest: &Manifest, event: &Event, opinion: Opinion) -> Opinion {
    let silver = &plan.silver;
    match opinion {
        Ok(Verdict::Accept(row)) => {
            let value = |index: usize| {
                let column = manifest.column(&silver.layout.columns[index]);
                column.map_or(ValueRef::Null, |index| ValueRef::from(&row[index]))
            };
            Ok(match table_takes(silver, value, event.received_time) {
                Ok(()) => Verdict::Accept(row),
                Err(rejection) => Verdict::Reject(rejection),
            })
        }
        other => other,
    }
}

/// Checks what the table says of its values: how wide they may be, and which days it has partitions for. `value` is that of a
/// column of the layout.
pub fn table_takes<'a>(
    silver: &Silver,
    value: impl Fn(usize) -> ValueRef<'a>,
    received_time: Micros,
) -> Result<(), Rejection> {
    let columns = &silver.layout.columns;
    if let Some(index) = silver.partition {
        partition_in_range(&columns[index], value(index), received_time)?;
    }
    for (index, limit) in &silver.limits {
        if let Some(why) = limit.broken_by(value(*index)) {
            return Err(sink("value_too_wide", format!("`{}` {why}", columns[*index])));
        }
    }
    Ok(())
}

/// Checks what an accepted event adds to windows against what their tables take: like its own row, it must not be refused by a
/// table behind the commit.
pub fn windows_take(
    windows: &WindowsPlan,
    contributions: &[Contribution],
    received_time: Micros,
) -> Result<(), Rejection> {
    for contribution in contributions {
        let planned = &windows.aggregates[contribution.aggregate];
        let name = &planned.aggregate.name;
        let size = contribution.size();
        if size > CONTRIBUTION {
            let what = format!(
                "aggregate {name}: group columns and measured values have {size} bytes, the limit is {CONTRIBUTION}"
            );
            return Err(sink("row_too_large", what));
        }
        if windows.partitioned {
            let spans = planned.aggregate.spec.windowing.windows(contribution.event_time);
            let bounds = spans.flat_map(|span| [span.start, span.end]).chain([contribution.event_time]);
            for bound in bounds {
                partition_in_range("the event time or a window of it", ValueRef::Timestamp(bound), received_time)?;
            }
        }
    }
    Ok(())
}

fn partition_in_range(column: &str, value: ValueRef<'_>, received_time: Micros) -> Result<(), Rejection> {
    let at = match value {
        ValueRef::Timestamp(micros) => micros,
        ValueRef::Date(days) => i64::from(days) * DAY,
        _ => return Ok(()),
    };
    if (received_time.saturating_sub(PARTITION_PAST)..=received_time.saturating_add(PARTITION_AHEAD)).contains(&at) {
        return Ok(());
    }
    let shown = Value::Timestamp(at).to_json();
    Err(sink(
        "partition_range",
        format!("`{column}` is {shown}: the table takes 3650 days back to 365 days ahead of the time it was received"),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::{Column, ColumnType};
    use crate::warehouse::{Encoding, Layout, Limit};
    use bytes::Bytes;
    use std::collections::BTreeMap;
    use std::sync::Arc;

    /// A rule that writes milliseconds where microseconds are meant accepts everything, and the table would take nothing of it.
    #[test]
    fn a_row_out_of_the_tables_range_is_no_accepted_one() {
        let layout = |columns: &[&str]| {
            Arc::new(Layout {
                table: "t".into(),
                columns: columns.iter().map(|c| (*c).into()).collect(),
                encoding: Encoding::Cells,
                upsert: None,
            })
        };
        let mut plan = Plan {
            bronze: None,
            quarantine: None,
            rejects: None,
            silver: Silver {
                layout: layout(&["n", "at"]),
                message_id: None,
                partition: Some(1),
                count_by: None,
                limits: vec![],
                by_rule: BTreeMap::new(),
            },
            max_row: 0,
            pipeline: String::new(),
            source_name: String::new(),
            row_keys: BTreeMap::new(),
            windows: None,
        };
        let manifest = Manifest {
            name: "r".into(),
            version: "1.0.0".into(),
            event_versions: vec!["1".into()],
            attributes: vec![],
            columns: vec![Column::new("AT", ColumnType::Timestamp, true)],
            event_time: None,
        };
        let event = Event {
            payload: Bytes::new(),
            attributes: vec![],
            message_id: String::new(),
            publish_time: 0,
            received_time: 20_000 * DAY,
            ordering_key: None,
            delivery_attempt: None,
            form: crate::event::Form::Whole,
        };
        let of = |plan: &Plan, at: Micros| {
            outcome(plan, &manifest, &event, Ok(Verdict::Accept(vec![Value::Timestamp(at)]))).unwrap()
        };
        assert_eq!(of(&plan, 20_000 * DAY), Verdict::Accept(vec![Value::Timestamp(20_000 * DAY)]));
        let Verdict::Reject(rejection) = of(&plan, 20 * DAY) else { panic!("it is out of range") };
        assert_eq!((rejection.stage.as_ref(), rejection.code.as_deref()), ("SINK_REJECTED", Some("partition_range")));
        plan.silver.partition = None;
        assert_eq!(of(&plan, 0), Verdict::Accept(vec![Value::Timestamp(0)]));
        // A column that is narrower than its type.
        let manifest = Manifest { columns: vec![Column::new("N", ColumnType::Numeric, true)], ..manifest.clone() };
        let wide = |plan: &Plan, text: &str| {
            let row = vec![Value::Numeric(text.into())];
            outcome(plan, &manifest, &event, Ok(Verdict::Accept(row))).unwrap()
        };
        assert!(matches!(wide(&plan, "1.255"), Verdict::Accept(_)));
        plan.silver.limits = vec![(0, Limit::Digits { before: 8, behind: 2 })];
        assert!(matches!(wide(&plan, "1.25"), Verdict::Accept(_)));
        let Verdict::Reject(rejection) = wide(&plan, "1.255") else { panic!("it would be rounded") };
        assert_eq!((rejection.stage.as_ref(), rejection.code.as_deref()), ("SINK_REJECTED", Some("value_too_wide")));
    }
}
