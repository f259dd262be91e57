//! Staging tables, and publishing what is in them: one transaction, run by a job whose id is that of the run, so that whoever
//! asks again after a lost answer finds the job and not only its rows.

use super::super::{Publication, Replaced, STAGED, WarehouseError};
use super::jobs::{self, Job};
use super::name::TableName;
use super::rest::{Failure, Rest, cell, parameter};
use super::tables::any_partition;
use std::time::{Duration, Instant};

/// A job that runs longer than this is looked at again later.
const LONGEST: Duration = Duration::from_mins(10);
/// How often is looked whether it is done.
const LOOK: Duration = Duration::from_millis(500);
/// Jobs of one run that may have failed before. What made so many fail will not pass.
const TRIES: u32 = 1_000;

/// Makes an empty table like another: the same columns, partitions and order.
pub(super) async fn create_staging(rest: &Rest, staging: &TableName, like: &TableName) -> Result<(), WarehouseError> {
    let sql = format!("CREATE TABLE IF NOT EXISTS {} LIKE {}", staging.sql(), like.sql());
    let made = rest.query(&sql, Vec::new()).await;
    made.map(drop).map_err(|failure| at(&format!("cannot make table {staging}"), failure))
}

/// Drops a table, unless it is gone.
pub(super) async fn drop_table(rest: &Rest, table: &TableName) -> Result<(), WarehouseError> {
    let dropped = rest.query(&format!("DROP TABLE IF EXISTS {}", table.sql()), Vec::new()).await;
    dropped.map(drop).map_err(|failure| at(&format!("cannot drop table {table}"), failure))
}

/// The staging tables of a table.
pub(super) async fn staging_tables(rest: &Rest, table: &TableName) -> Result<Vec<String>, WarehouseError> {
    let sql = format!(
        "SELECT table_name FROM `{}.{}.INFORMATION_SCHEMA.TABLES` WHERE STARTS_WITH(table_name, @prefix)",
        table.project, table.dataset
    );
    let prefix = parameter("prefix", "STRING", &format!("{}{STAGED}", table.table));
    let rows = rest.query(&sql, vec![prefix]).await;
    let rows = rows.map_err(|failure| at(&format!("cannot list the tables beside {table}"), failure))?;
    let named = |name: &str| TableName { table: name.to_owned(), ..table.clone() }.to_string();
    Ok(rows.iter().filter_map(|row| cell(row, 0)).map(named).collect())
}

/// Replaces the rows of all tables. A job of this run that is done is not run again.
pub(super) async fn publish(rest: &Rest, publication: &Publication) -> Result<(), WarehouseError> {
    let failed = |failure| at("the new rows cannot be published", failure);
    let Some(first) = publication.tables.first() else { return Ok(()) };
    let name = TableName::parse(&first.table, rest.project())?;
    let location = rest.dataset(&name.project, &name.dataset).await.map_err(failed)?.location;
    for number in 0..TRIES {
        let id = format!("preflight_{}_{number}", publication.run);
        let mut job = jobs::find(rest, &id, location.as_deref()).await.map_err(failed)?;
        let is_first = job.is_none();
        if is_first {
            let sql = transaction(rest, publication).await?;
            jobs::begin(rest, &id, location.as_deref(), &sql).await.map_err(failed)?;
        }
        let began = Instant::now();
        loop {
            match job {
                Some(Job::Done) => return Ok(()),
                // What failed has changed nothing, and its id is used up: another try has another.
                Some(Job::Failed(failure)) if is_first => return Err(failed(failure)),
                Some(Job::Failed(_)) => break,
                _ if began.elapsed() >= LONGEST => {
                    let text = format!("job {id} has run for {} min", LONGEST.as_secs() / 60);
                    return Err(failed(Failure { text, retryable: true, status: None }));
                }
                // The job that was begun in this turn may be done by now.
                None if began.elapsed() < LOOK => {}
                Some(Job::Runs) | None => tokio::time::sleep(LOOK).await,
            }
            job = jobs::find(rest, &id, location.as_deref()).await.map_err(failed)?;
        }
    }
    let text = format!("{TRIES} jobs of run {} have failed", publication.run);
    Err(failed(Failure { text, retryable: false, status: None }))
}

/// The statements. DELETE, not TRUNCATE: it can name all partitions where a table wants them to be named. Rows that were written
/// a short while ago, as a replay of quarantine writes them, cannot be changed in a transaction: then it fails for now.
async fn transaction(rest: &Rest, publication: &Publication) -> Result<String, WarehouseError> {
    let mut sql = "BEGIN TRANSACTION;\n".to_owned();
    for Replaced { table, staging, columns } in &publication.tables {
        let (table, staging) = (TableName::parse(table, rest.project())?, TableName::parse(staging, rest.project())?);
        let there = rest.table(&table).await.map_err(WarehouseError::from)?;
        let there = there.ok_or_else(|| gone(&table))?;
        if rest.table(&staging).await.map_err(WarehouseError::from)?.is_none() {
            return Err(gone(&staging));
        }
        // The staging table is made like it, and may want partitions to be named as well.
        let any = any_partition(&there);
        let columns = format!("`{}`", columns.join("`, `"));
        sql.push_str(&format!(
            "DELETE FROM {table} WHERE {any};\nINSERT INTO {table} ({columns}) SELECT {columns} FROM {staging} WHERE {any};\n",
            table = table.sql(),
            staging = staging.sql(),
        ));
    }
    sql.push_str("COMMIT TRANSACTION;");
    Ok(sql)
}

fn gone(table: &TableName) -> WarehouseError {
    WarehouseError { text: format!("the new rows cannot be published: table {table} is gone"), retryable: false }
}

#[expect(clippy::needless_pass_by_value, reason = "it becomes another error")]
fn at(what: &str, failure: Failure) -> WarehouseError {
    WarehouseError { text: format!("{what}: {}", failure.text), retryable: failure.retryable }
}
