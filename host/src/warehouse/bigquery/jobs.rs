//! Statements as jobs whose ids we choose: one id is run once, however often it is asked for.

use super::rest::{Failure, Rest, may_pass};
use super::storage::escape;
use serde::Deserialize;
use serde_json::{Value, json};

/// How a job stands.
#[derive(Debug)]
pub(super) enum Job {
    /// It waits or runs.
    Runs,
    /// It is done.
    Done,
    /// It has failed, and changed nothing.
    Failed(Failure),
}

#[derive(Deserialize)]
struct Resource {
    status: Status,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Status {
    state: String,
    error_result: Option<Error>,
}

#[derive(Deserialize)]
struct Error {
    #[serde(default)]
    reason: String,
    #[serde(default)]
    message: String,
}

/// How a job stands; none if there is no such job. BigQuery remembers them for half a year.
pub(super) async fn find(rest: &Rest, id: &str, location: Option<&str>) -> Result<Option<Job>, Failure> {
    let at = location.map_or_else(String::new, |location| format!("?location={}", escape(location)));
    match rest.get::<Resource>(rest.project(), &format!("jobs/{}{at}", escape(id))).await {
        Ok(Resource { status: Status { error_result: Some(Error { reason, message }), .. } }) => {
            let retryable = may_pass(&reason, &message);
            Ok(Some(Job::Failed(Failure { text: format!("{message} ({reason})"), retryable, status: None })))
        }
        Ok(Resource { status }) if status.state == "DONE" => Ok(Some(Job::Done)),
        Ok(_) => Ok(Some(Job::Runs)),
        Err(Failure { status: Some(404), .. }) => Ok(None),
        Err(failure) => Err(failure),
    }
}

/// Begins a job, unless there is one of this id.
pub(super) async fn begin(rest: &Rest, id: &str, location: Option<&str>, sql: &str) -> Result<(), Failure> {
    let mut reference = json!({ "projectId": rest.project(), "jobId": id });
    if let Some(location) = location {
        reference["location"] = location.into();
    }
    let query = json!({ "query": sql, "useLegacySql": false });
    let body = json!({ "jobReference": reference, "configuration": { "query": query } });
    match rest.post::<Value>(rest.project(), "jobs", &body).await {
        Ok(_) | Err(Failure { status: Some(409), .. }) => Ok(()),
        Err(failure) => Err(failure),
    }
}
