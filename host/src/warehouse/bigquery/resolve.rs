//! Marking quarantine rows as resolved, so often as it is asked for: what is marked stays as it is.

use super::super::WarehouseError;
use super::super::events::{Resolution, Resolved};
use super::events::row_id;
use super::name::TableName;
use super::rest::{Rest, list, parameter};
use super::tables::any_partition;
use crate::time::format_micros;
use std::collections::BTreeMap;

/// Rows that are marked by one statement.
const AT_ONCE: usize = 2_000;

/// Marks the rows, those that one rule judged by one statement.
pub(super) async fn resolve(rest: &Rest, name: &TableName, resolution: &Resolution) -> Result<(), WarehouseError> {
    let failed = |error: WarehouseError| WarehouseError {
        text: format!("cannot mark replayed rows of table {name} as resolved: {}", error.text),
        ..error
    };
    // A table that is no longer there has none of these rows.
    let Some(table) = rest.table(name).await.map_err(|failure| failed(failure.into()))? else { return Ok(()) };
    let row_id = row_id(|name| table.field(name).is_some());
    let Some(row_id) = row_id else {
        let text =
            format!("its rows can no longer be told apart: {name} lacks a column that it had when they were read");
        return Err(failed(WarehouseError { text, retryable: false }));
    };
    let sql = format!(
        "UPDATE {} SET resolved_at = @at, resolved_by = @by WHERE pipeline = @pipeline AND source_message_id IN UNNEST(@ids) \
         AND {row_id} IN UNNEST(@rows) AND resolved_at IS NULL AND {}",
        name.sql(),
        any_partition(&table)
    );
    let mut by_digest: BTreeMap<&str, Vec<&Resolved>> = BTreeMap::new();
    for row in &resolution.rows {
        by_digest.entry(&row.digest).or_default().push(row);
    }
    for (digest, rows) in by_digest {
        for rows in rows.chunks(AT_ONCE) {
            let ids: Vec<String> = rows.iter().map(|row| row.id.to_string()).collect();
            let parameters = vec![
                parameter("at", "TIMESTAMP", &format_micros(resolution.at)),
                parameter("by", "STRING", &format!("{} ({digest})", resolution.by)),
                parameter("pipeline", "STRING", &resolution.pipeline),
                list("ids", "STRING", rows.iter().map(|row| row.message_id.as_str())),
                list("rows", "INT64", ids.iter().map(String::as_str)),
            ];
            rest.query(&sql, parameters).await.map_err(|failure| failed(failure.into()))?;
        }
    }
    Ok(())
}
