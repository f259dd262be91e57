//! Marking quarantine rows as resolved, so often as it is asked for: what is marked stays as it is.

use super::super::events::{Resolution, Resolved};
use super::schema;
use crate::time::format_micros;
use rusqlite::{Connection, OptionalExtension as _, Transaction, TransactionBehavior, params};

/// Marks the rows in one transaction.
pub(super) fn resolve(connection: &mut Connection, resolution: &Resolution) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // A table that was made anew without row numbers has none of these rows.
    if let Some(row_id) = schema::row_id(&transaction, &resolution.table)? {
        let (table, at) = (schema::quote(&resolution.table), format_micros(resolution.at));
        let marking = Marking { table, row_id, pipeline: &resolution.pipeline, at };
        for row in &resolution.rows {
            marking.mark(&transaction, row, &format!("{} ({})", resolution.by, row.digest))?;
        }
    }
    transaction.commit()
}

struct Marking<'a> {
    table: String,
    row_id: &'static str,
    pipeline: &'a str,
    at: String,
}

impl Marking<'_> {
    fn mark(&self, transaction: &Transaction<'_>, row: &Resolved, by: &str) -> rusqlite::Result<()> {
        let Self { table, row_id, pipeline, at } = self;
        let update = format!("UPDATE {table} SET resolved_at = ?1, resolved_by = ?2 WHERE {row_id} = ?3");
        let marked = transaction
            .prepare_cached(&format!("{update} AND source_message_id = ?4 AND pipeline = ?5 AND resolved_at IS NULL"))?
            .execute(params![at, by, row.id, row.message_id, pipeline])?;
        let is = format!("SELECT 1 FROM {table} WHERE source_message_id = ?1 AND pipeline = ?2");
        let there = format!("{is} AND {row_id} = ?3");
        if marked > 0 || transaction.prepare_cached(&there)?.exists(params![row.message_id, pipeline, row.id])? {
            return Ok(());
        }
        // VACUUM numbers the rows of a table without INTEGER PRIMARY KEY anew.
        let before = format!("{is} AND resolved_at = ?3 AND resolved_by = ?4");
        if transaction.prepare_cached(&before)?.exists(params![row.message_id, pipeline, at, by])? {
            return Ok(());
        }
        let mine = "source_message_id = ?1 AND pipeline = ?2 AND resolved_at IS NULL";
        let moved = format!("SELECT {row_id} FROM {table} WHERE {mine} LIMIT 1");
        let moved: Option<i64> = transaction
            .prepare_cached(&moved)?
            .query_row(params![row.message_id, pipeline], |row| row.get(0))
            .optional()?;
        if let Some(id) = moved {
            transaction.prepare_cached(&update)?.execute(params![at, by, id])?;
        } else {
            tracing::warn!(row = row.id, "a replayed row is no longer in quarantine");
        }
        Ok(())
    }
}
