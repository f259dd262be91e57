//! Append at an offset: the rows and the stream's new end in one transaction.

use super::super::{AppendError, Appended, Entry};
use super::{encode, schema, streams};
use rusqlite::{Connection, ErrorCode, TransactionBehavior};

/// Appends entries in order. Either an entry's rows are all there afterwards, or none is.
pub(super) fn append(connection: &mut Connection, entries: &[Entry]) -> Vec<Result<Appended, AppendError>> {
    let attempt = |connection: &mut Connection| -> Result<Vec<Result<Appended, AppendError>>, AppendError> {
        let mut transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failure)?;
        let mut results = Vec::with_capacity(entries.len());
        for entry in entries {
            let mut savepoint = transaction.savepoint().map_err(failure)?;
            let result = append_one(&savepoint, entry);
            match &result {
                Ok(_) => {}
                // Nothing of the whole send is kept: it is repeated as it is.
                Err(AppendError::Retryable(_)) => return Err(result.expect_err("it was just matched")),
                // A trigger with RAISE(ROLLBACK) has ended the transaction, and with it everything before.
                Err(_) if savepoint.is_autocommit() => return Err(result.expect_err("it was just matched")),
                Err(_) => savepoint.rollback().map_err(failure)?,
            }
            savepoint.commit().map_err(failure)?;
            results.push(result);
        }
        transaction.commit().map_err(failure)?;
        Ok(results)
    };
    attempt(connection).unwrap_or_else(|error| vec![Err(error); entries.len()])
}

fn append_one(connection: &Connection, entry: &Entry) -> Result<Appended, AppendError> {
    let Some((end, finalized)) = streams::state(connection, &entry.stream).map_err(failure)? else {
        return Err(AppendError::StreamGone(entry.stream.clone()));
    };
    if finalized {
        return Err(AppendError::StreamGone(entry.stream.clone()));
    }
    if entry.first_offset < end {
        let past = entry.first_offset + entry.rows.len() as u64;
        // Appends are whole or not at all, so an end in the middle of an entry is not of our making.
        return if past <= end {
            Ok(Appended::AlreadyThere)
        } else {
            Err(AppendError::Fatal(format!("stream {} ends at {end}, in the middle of an append", entry.stream)))
        };
    }
    if entry.first_offset > end {
        return Err(AppendError::OutOfRange { offset: entry.first_offset, end });
    }
    insert(connection, entry)?;
    streams::advance(connection, &entry.stream, end + entry.rows.len() as u64).map_err(failure)?;
    Ok(Appended::Written)
}

/// Inserts the rows. All that the table refuses are found, not only the first.
fn insert(connection: &Connection, entry: &Entry) -> Result<(), AppendError> {
    let columns: Vec<String> = entry.layout.columns.iter().map(|name| schema::quote(name)).collect();
    let places = vec!["?"; columns.len()].join(", ");
    let table = schema::quote(&entry.layout.table);
    // `OR ABORT` overrules a table whose ON CONFLICT clause would swallow the row, replace another, or end the transaction.
    let sql = format!("INSERT OR ABORT INTO {table} ({}) VALUES ({places})", columns.join(", "));
    let mut statement = connection.prepare_cached(&sql).map_err(failure)?;
    let mut refused = Vec::new();
    for (index, row) in entry.rows.iter().enumerate() {
        encode::decode(row, |column, cell| statement.raw_bind_parameter(column + 1, cell.bind()))
            .map_err(|error| AppendError::Fatal(format!("a row of the ledger cannot be read: {error}")))?
            .map_err(failure)?;
        match statement.raw_execute().map_err(failure) {
            Ok(0) => refused.push((index, "a trigger of the table dropped the row".to_owned())),
            Ok(_) => {}
            // A trigger that rolls back has undone the rows before, and the rows after it would be written outside of any
            // transaction: twice, once the entry is sent again.
            Err(AppendError::Rows(why)) if connection.is_autocommit() => {
                let why = why.first().map_or("", |(_, why)| why);
                return Err(AppendError::Fatal(format!(
                    "the table ended the transaction of the append, it rolls the whole transaction back when it refuses a row: {why}"
                )));
            }
            Err(AppendError::Rows(mut why)) => {
                refused.push((index, why.pop().map_or_else(String::new, |(_, why)| why)));
            }
            Err(error) => return Err(error),
        }
    }
    if refused.is_empty() { Ok(()) } else { Err(AppendError::Rows(refused)) }
}

/// What a SQLite error means for an append. A row that a constraint refuses is the row's fault; a lock, a full disk
/// or a failing one may pass; a missing table or column does not.
#[expect(clippy::needless_pass_by_value, reason = "it is the argument of map_err")]
fn failure(error: rusqlite::Error) -> AppendError {
    let rusqlite::Error::SqliteFailure(code, _) = &error else {
        return AppendError::Fatal(error.to_string());
    };
    match code.code {
        ErrorCode::ConstraintViolation | ErrorCode::TypeMismatch | ErrorCode::TooBig => {
            AppendError::Rows(vec![(0, error.to_string())])
        }
        ErrorCode::DatabaseBusy
        | ErrorCode::DatabaseLocked
        | ErrorCode::DiskFull
        | ErrorCode::SystemIoFailure
        | ErrorCode::OutOfMemory
        | ErrorCode::CannotOpen
        | ErrorCode::SchemaChanged => AppendError::Retryable(error.to_string()),
        _ => AppendError::Fatal(error.to_string()),
    }
}
