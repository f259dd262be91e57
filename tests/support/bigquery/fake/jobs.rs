//! Jobs whose ids are chosen by who begins them: an id is used once. The one statement that they are begun with is a transaction
//! that replaces tables.

use super::path_in;
use super::refusal::Refusal;
use super::state::{State, Written};
use serde_json::{Value, json};
use tonic::Code;

/// Begins a job, and runs it to its end.
pub(super) fn begin(state: &mut State, project: &str, body: &Value) -> Result<Value, Refusal> {
    let id = body["jobReference"]["jobId"].as_str().unwrap_or_default().to_owned();
    if state.jobs.contains_key(&id) {
        return Err(Refusal::new(Code::AlreadyExists, format!("Already Exists: Job {project}:{id}")));
    }
    let sql = body["configuration"]["query"]["query"].as_str().unwrap_or_default();
    let failed = transaction(state, project, sql).err();
    state.jobs.insert(id.clone(), failed);
    find(state, project, &id)
}

/// How a job has ended.
pub(super) fn find(state: &State, project: &str, id: &str) -> Result<Value, Refusal> {
    let failed =
        state.jobs.get(id).ok_or_else(|| Refusal::new(Code::NotFound, format!("Not found: Job {project}:{id}")))?;
    let mut status = json!({ "state": "DONE" });
    if let Some(message) = failed {
        status["errorResult"] = json!({ "reason": "invalidQuery", "message": message });
    }
    Ok(json!({ "kind": "bigquery#job", "jobReference": { "projectId": project, "jobId": id }, "status": status }))
}

/// Runs `DELETE` and `INSERT … SELECT` of whole tables between `BEGIN TRANSACTION` and `COMMIT TRANSACTION`: all of them or none.
fn transaction(state: &mut State, project: &str, sql: &str) -> Result<(), String> {
    let unknown = || format!("the fake does not know this transaction: {sql}");
    let statements: Vec<&str> = sql.split(';').map(str::trim).filter(|statement| !statement.is_empty()).collect();
    let ["BEGIN TRANSACTION", statements @ .., "COMMIT TRANSACTION"] = statements.as_slice() else {
        return Err(unknown());
    };
    let table = |statement: &str, before: &str| -> Result<String, String> {
        let behind = statement.split_once(before).ok_or_else(unknown)?.1;
        let name = behind.split('`').next().ok_or_else(unknown)?;
        Ok(path_in(project, name))
    };
    let mut replaced = Vec::new();
    for pair in statements.chunks(2) {
        let [delete, insert] = pair else { return Err(unknown()) };
        let (target, into) = (table(delete, "DELETE FROM `")?, table(insert, "INSERT INTO `")?);
        if target != into {
            return Err(unknown());
        }
        replaced.push((target, table(insert, " FROM `")?, *delete, *insert));
    }
    for (target, staging, delete, insert) in &replaced {
        for (path, statement) in [(target, delete), (staging, insert)] {
            let table = state.table(path).map_err(|refusal| refusal.message)?;
            let condition = statement.split_once(" WHERE ").ok_or_else(unknown)?.1;
            if let Some(by) = table.partition_by.as_ref().filter(|_| table.require_partition_filter)
                && !condition.contains(by.as_str())
            {
                return Err(format!("Cannot query over table '{path}' without a filter over column(s) '{by}'"));
            }
        }
        if state.rows(target).any(|row| row.offset.is_some()) && !state.forgets_streamed {
            return Err(format!(
                "UPDATE or DELETE statement over table {target} would affect rows in the streaming buffer, which is not supported"
            ));
        }
    }
    for (target, staging, ..) in &replaced {
        let rows: Vec<Written> = state.rows(staging).map(|row| row.moved(target)).collect();
        state.written.retain(|row| *row.table != **target);
        state.written.extend(rows);
    }
    Ok(())
}
