//! The table of differences: written beside the commit protocol, since it is a diagnosis and not a result. A row that
//! cannot be written is logged and dropped.

use super::queue::Finding;
use crate::config::Problem;
use crate::row::{Column, ColumnType, Row, Value};
use crate::warehouse::{NewTable, TableColumn, Warehouse};
use std::sync::Arc;
use tokio::sync::mpsc;

/// Rows written at once.
const AT_ONCE: usize = 100;

/// The table as it is made.
pub fn table(name: &str) -> NewTable {
    let text = |name: &str| Column::new(name, ColumnType::Text, false);
    let columns = vec![
        Column::new("recorded_at", ColumnType::Timestamp, false),
        text("pipeline"),
        text("message_id"),
        text("event_version"),
        text("comparison"),
        Column::new("differences", ColumnType::Json, false),
        text("old_digest"),
        text("new_digest"),
        text("old_verdict"),
        text("new_verdict"),
    ];
    NewTable::plain(name, columns)
}

/// What is wrong with a table of that name which is there already.
pub fn unfit(name: &str, live: &[TableColumn]) -> Option<Problem> {
    let missing: Vec<String> = table(name)
        .columns
        .into_iter()
        .filter(|ours| !live.iter().any(|c| c.name.eq_ignore_ascii_case(&ours.name) && c.holds.contains(&ours.kind)))
        .map(|ours| format!("{} {}", ours.name, ours.kind))
        .collect();
    let what = format!("table {name} is there, and lacks {}: name another, it is made when needed", missing.join(", "));
    (!missing.is_empty()).then(|| Problem::new("rules.shadow.table", what))
}

/// Writes findings as they come, until nobody sends any more.
pub async fn write(
    warehouse: Arc<dyn Warehouse>,
    pipeline: String,
    name: String,
    mut findings: mpsc::UnboundedReceiver<Finding>,
) {
    let table = table(&name);
    let mut some = Vec::with_capacity(AT_ONCE);
    let mut failing = false;
    while findings.recv_many(&mut some, AT_ONCE).await > 0 {
        let rows: Vec<Row> = some.drain(..).map(|finding| row(&pipeline, finding)).collect();
        let count = rows.len();
        match warehouse.add(table.clone(), rows).await {
            Ok(()) => failing = false,
            // Said once, not with every row.
            Err(error) if !failing => {
                failing = true;
                tracing::warn!(rows = count, "differences between rules cannot be written, and are dropped: {error}");
            }
            Err(_) => {}
        }
    }
}

fn row(pipeline: &str, finding: Finding) -> Row {
    let key = &finding.pair.key;
    let differences: Vec<String> = finding.differences.iter().map(ToString::to_string).collect();
    let differences = serde_json::to_string(&differences).expect("a list of texts is JSON");
    vec![
        Value::Timestamp(finding.at),
        Value::Text(pipeline.to_owned()),
        Value::Text(finding.message_id),
        Value::Text(key.events.clone()),
        Value::Text(key.kind.as_str().to_owned()),
        Value::Json(differences),
        Value::Text(key.old.to_string()),
        Value::Text(key.new.to_string()),
        Value::Text(finding.old),
        Value::Text(finding.new),
    ]
}
