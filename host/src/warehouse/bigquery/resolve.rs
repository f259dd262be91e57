//! Marking quarantine rows as resolved, so often as it is asked for: what is marked stays as it is.

use super::super::WarehouseError;
use super::super::events::Resolution;
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
    let mut by_digest: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for row in &resolution.rows {
        by_digest.entry(&row.digest).or_default().push(&row.message_id);
    }
    let sql = format!(
        "UPDATE {} SET resolved_at = @at, resolved_by = @by \
         WHERE pipeline = @pipeline AND source_message_id IN UNNEST(@ids) AND resolved_at IS NULL AND {}",
        name.sql(),
        any_partition(&table)
    );
    for (digest, ids) in by_digest {
        for ids in ids.chunks(AT_ONCE) {
            let parameters = vec![
                parameter("at", "TIMESTAMP", &format_micros(resolution.at)),
                parameter("by", "STRING", &format!("{} ({digest})", resolution.by)),
                parameter("pipeline", "STRING", &resolution.pipeline),
                list("ids", "STRING", ids.iter().copied()),
            ];
            rest.query(&sql, parameters).await.map_err(|failure| failed(failure.into()))?;
        }
    }
    Ok(())
}
