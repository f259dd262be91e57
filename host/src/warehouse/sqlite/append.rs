//! Append at an offset: the rows and the stream's new end in one transaction. Upserts are in it too.

use super::super::{AppendError, Appended, Entry};
use super::{encode, may_pass, schema, streams, upsert};
use rusqlite::{Connection, ErrorCode, Transaction, TransactionBehavior};

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
        match transaction.execute_batch("COMMIT") {
            Ok(()) => Ok(results),
            Err(error) if is_refusal(&error) => Ok(refused_at_commit(&transaction, entries, &error)),
            Err(error) => Err(failure(error)),
        }
    };
    attempt(connection).unwrap_or_else(|error| vec![Err(error); entries.len()])
}

/// A constraint that is checked only at the commit names no row. The tables that break it are looked for, so that no
/// other one is blamed; the transaction is still open, and ends with nothing written.
fn refused_at_commit(
    transaction: &Transaction<'_>,
    entries: &[Entry],
    error: &rusqlite::Error,
) -> Vec<Result<Appended, AppendError>> {
    let breaks = |entry: &Entry| {
        let sql = format!("PRAGMA foreign_key_check({})", schema::quote(&entry.layout.table));
        transaction.prepare(&sql).and_then(|mut statement| statement.exists([])).unwrap_or(false)
    };
    let broken: Vec<bool> = entries.iter().map(breaks).collect();
    let known = broken.contains(&true);
    let result = |(entry, broken): (&Entry, bool)| {
        let table = &entry.layout.table;
        Err(if broken || !known {
            AppendError::Fatal(format!(
                "{error}: table {table} checks a constraint only at the commit, so which row breaks it is not known. \
                 Declare its foreign key immediate (not DEFERRABLE INITIALLY DEFERRED), then such rows go to quarantine"
            ))
        } else {
            AppendError::Retryable(format!("nothing was written to {table}: the commit failed for another table"))
        })
    };
    entries.iter().zip(broken).map(result).collect()
}

fn append_one(connection: &Connection, entry: &Entry) -> Result<Appended, AppendError> {
    if let Some(by) = &entry.layout.upsert {
        return upsert::write(connection, entry, by).map(|()| Appended::Written);
    }
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
        return Err(AppendError::OutOfRange { offset: entry.first_offset, end: Some(end) });
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
    let mut statement = connection.prepare_cached(&sql).map_err(|error| unfit(entry, error))?;
    let mut refused = Vec::new();
    for (index, row) in entry.rows.iter().enumerate() {
        let bound = encode::decode(row, |column, cell| statement.raw_bind_parameter(column + 1, cell.bind()))
            .map_err(|error| AppendError::Fatal(format!("a row of the ledger cannot be read: {error}")))?;
        match bound.and_then(|()| statement.raw_execute()) {
            Ok(0) => refused.push((index, "a trigger of the table dropped the row".to_owned())),
            Ok(_) => {}
            Err(error) => refused.push((index, refusal(connection, error)?)),
        }
    }
    if refused.is_empty() { Ok(()) } else { Err(AppendError::Rows(refused)) }
}

/// Why the table refuses a row, if that is what failed.
pub(super) fn refusal(connection: &Connection, error: rusqlite::Error) -> Result<String, AppendError> {
    if !is_refusal(&error) {
        return Err(failure(error));
    }
    // A trigger that rolls back has undone the rows before, and the rows after it would be written outside of any
    // transaction: twice, once the entry is sent again.
    if connection.is_autocommit() {
        return Err(AppendError::Fatal(format!(
            "the table ended the transaction of the append, it rolls the whole transaction back when it refuses a row: {error}"
        )));
    }
    Ok(error.to_string())
}

/// Whether a constraint or a limit refuses what is written, so that the row is at fault.
fn is_refusal(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::ConstraintViolation | ErrorCode::TypeMismatch | ErrorCode::TooBig)
    )
}

/// The rows are encoded for a table and columns that are no longer there.
pub(super) fn unfit(entry: &Entry, error: rusqlite::Error) -> AppendError {
    if may_pass(&error) {
        return failure(error);
    }
    let why = match error {
        rusqlite::Error::SqlInputError { msg, .. } => msg,
        error => error.to_string(),
    };
    AppendError::Fatal(format!(
        "table {} is not what it was when the ledger took its rows: {why}. Put the table or the column back; or, if \
         those rows are not wanted, delete the ledger and run with --new-ledger, which reads the source from its start",
        entry.layout.table
    ))
}

/// What a SQLite error that is no row's fault means for an append.
#[expect(clippy::needless_pass_by_value, reason = "it is the argument of map_err")]
pub(super) fn failure(error: rusqlite::Error) -> AppendError {
    if may_pass(&error) { AppendError::Retryable(error.to_string()) } else { AppendError::Fatal(error.to_string()) }
}
