//! The small part of the REST interface that a worker and who makes its tables need: datasets, a table as it is, and a few
//! statements.

use super::faults::{Call, Due, Ending, Fault};
use super::refusal::Refusal;
use super::state::State;
use super::table::{Column, Created};
use super::{Shared, jobs};
use axum::Json;
use axum::Router;
use axum::extract::{Path, State as Extract};
use axum::http::StatusCode;
use axum::response::{Html, IntoResponse, Response};
use axum::routing::{get, post};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use tonic::Code;

/// The routes.
pub(super) fn router(shared: Arc<Shared>) -> Router {
    Router::new()
        .route("/bigquery/v2/projects/{project}/datasets/{dataset}/tables/{table}", get(table))
        .route("/bigquery/v2/projects/{project}/queries", post(query))
        .route("/bigquery/v2/projects/{project}/jobs", post(begin_job))
        .route("/bigquery/v2/projects/{project}/jobs/{job}", get(job))
        .route("/bigquery/v2/projects/{project}/datasets", post(create_dataset))
        .route("/bigquery/v2/projects/{project}/datasets/{dataset}", get(dataset))
        .with_state(shared)
}

async fn table(
    Extract(shared): Extract<Arc<Shared>>,
    Path((project, dataset, table)): Path<(String, String, String)>,
) -> Response {
    let path = format!("projects/{project}/datasets/{dataset}/tables/{table}");
    let name = path.clone();
    carry_out(&shared, Call::Table, &path, move |state| {
        if let Some(query) = state.views.get(&name) {
            return Ok(json!({ "kind": "bigquery#table", "type": "VIEW", "view": { "query": query } }));
        }
        let table = state
            .tables
            .get(&name)
            .ok_or_else(|| Refusal::new(Code::NotFound, format!("Not found: Table {project}:{dataset}.{table}")))?;
        Ok(table.resource(&name))
    })
    .await
}

/// Where what was not made by a dataset of its own is.
const LOCATION: &str = "EU";

/// A dataset is there if it was made, or has a table.
async fn dataset(Extract(shared): Extract<Arc<Shared>>, Path((project, dataset)): Path<(String, String)>) -> Response {
    let path = format!("projects/{project}/datasets/{dataset}");
    let tables = format!("{path}/tables/");
    let location = shared.change(|state| {
        let has_table = state.tables.keys().any(|table| table.starts_with(&tables));
        state.datasets.get(&path).cloned().or_else(|| has_table.then(|| LOCATION.to_owned()))
    });
    let Some(location) = location else {
        return refused(&Refusal::new(Code::NotFound, format!("Not found: Dataset {project}:{dataset}")));
    };
    let reference = json!({ "projectId": project, "datasetId": dataset });
    Json(json!({ "kind": "bigquery#dataset", "datasetReference": reference, "location": location })).into_response()
}

async fn create_dataset(
    Extract(shared): Extract<Arc<Shared>>,
    Path(project): Path<String>,
    Json(body): Json<Value>,
) -> Response {
    let dataset = body["datasetReference"]["datasetId"].as_str().unwrap_or_default();
    let path = format!("projects/{project}/datasets/{dataset}");
    let location = body["location"].as_str().unwrap_or(LOCATION).to_owned();
    if shared.change(|state| state.datasets.insert(path, location)).is_some() {
        return refused(&Refusal::new(Code::AlreadyExists, format!("Already Exists: Dataset {project}:{dataset}")));
    }
    Json(body).into_response()
}

async fn query(
    Extract(shared): Extract<Arc<Shared>>,
    Path(project): Path<String>,
    Json(body): Json<Value>,
) -> Response {
    let sql = body["query"].as_str().unwrap_or_default().to_owned();
    let name = quoted(&sql, 0).unwrap_or_default();
    carry_out(&shared, Call::Query, &super::path_in(&project, name), |state| {
        let rows = run(state, &project, &sql, &body)?;
        let rows: Vec<Value> = rows.into_iter().map(|value| json!({ "f": [{ "v": value }] })).collect();
        Ok(json!({
            "kind": "bigquery#queryResponse",
            "jobComplete": true,
            "jobReference": { "projectId": project, "jobId": "job_1", "location": "EU" },
            "schema": { "fields": [{ "name": "value", "type": "STRING", "mode": "NULLABLE" }] },
            "totalRows": rows.len().to_string(),
            "rows": rows,
        }))
    })
    .await
}

async fn begin_job(
    Extract(shared): Extract<Arc<Shared>>,
    Path(project): Path<String>,
    Json(body): Json<Value>,
) -> Response {
    carry_out(&shared, Call::Begin, "", |state| jobs::begin(state, &project, &body)).await
}

async fn job(Extract(shared): Extract<Arc<Shared>>, Path((project, job)): Path<(String, String)>) -> Response {
    carry_out(&shared, Call::Job, "", |state| jobs::find(state, &project, &job)).await
}

/// The statements of a worker: the fake knows these and no others.
fn run(state: &mut State, project: &str, sql: &str, body: &Value) -> Result<Vec<Value>, Refusal> {
    let invalid = |why: String| Refusal::new(Code::InvalidArgument, why);
    if let Some(sql) = sql.strip_prefix("CREATE TABLE IF NOT EXISTS `")
        && let Some((name, like)) = sql.split_once("` LIKE `")
    {
        let like = state.table(&super::path_in(project, like.trim_end_matches('`')))?.clone();
        state.tables.entry(super::path_in(project, name)).or_insert(like);
        return Ok(Vec::new());
    }
    if let Some(name) = sql.strip_prefix("DROP TABLE IF EXISTS ") {
        let path = super::path_in(project, name.trim_matches('`'));
        state.tables.remove(&path);
        return Ok(Vec::new());
    }
    if sql.starts_with("SELECT table_name FROM `") {
        let dataset =
            quoted(sql, 0).and_then(|name| name.strip_suffix("INFORMATION_SCHEMA.TABLES")).unwrap_or_default();
        let wanted = body["queryParameters"][0]["parameterValue"]["value"].as_str().unwrap_or_default();
        let prefix = super::path_in(project, &format!("{dataset}{wanted}"));
        let names = state.tables.keys().filter(|path| path.starts_with(&prefix));
        return Ok(names.filter_map(|path| path.rsplit('/').next()).map(Value::from).collect());
    }
    if sql.starts_with("CREATE TABLE ") {
        let Created { name, if_not_exists, table } = Created::parse(sql).map_err(invalid)?;
        let path = super::path_in(project, &name);
        if state.tables.contains_key(&path) && !if_not_exists {
            return Err(Refusal::new(Code::AlreadyExists, format!("Already Exists: Table {name}")));
        }
        state.tables.entry(path).or_insert(table);
        return Ok(Vec::new());
    }
    if let Some(view) = sql.strip_prefix("CREATE VIEW IF NOT EXISTS ") {
        // It is kept, and answers nothing.
        let (name, query) = view.split_once(" AS\n").ok_or_else(|| invalid(format!("the fake cannot read {sql:?}")))?;
        let path = super::path_in(project, name.trim_matches('`'));
        state.views.entry(path).or_insert_with(|| query.to_owned());
        return Ok(Vec::new());
    }
    let unknown = || invalid(format!("the fake does not know this statement: {sql}"));
    if sql.starts_with("ALTER TABLE `") {
        let name = quoted(sql, 0).ok_or_else(unknown)?;
        let path = super::path_in(project, name);
        let adds = sql.split_once("ADD COLUMN ").ok_or_else(unknown)?.1;
        let table = state
            .tables
            .get_mut(&path)
            .ok_or_else(|| Refusal::new(Code::NotFound, format!("Not found: Table {name}")))?;
        let mut columns = table.columns.clone();
        for add in adds.split("ADD COLUMN ") {
            let column = add.trim().trim_end_matches(',').trim_start_matches("IF NOT EXISTS ");
            let column = Column::parse(column).map_err(invalid)?;
            if !columns.iter().any(|known| known.name.eq_ignore_ascii_case(&column.name)) {
                columns.push(column);
            }
        }
        table.change(columns, true);
        return Ok(Vec::new());
    }
    let (column, name) = if sql.starts_with("SELECT 1 FROM `") {
        (None, quoted(sql, 0))
    } else if sql.starts_with("SELECT DISTINCT `") {
        (quoted(sql, 0), quoted(sql, 1))
    } else {
        return Err(unknown());
    };
    let path = super::path_in(project, name.ok_or_else(unknown)?);
    let table = state.table(&path)?;
    if let Some(by) = table.partition_by.as_ref().filter(|_| table.require_partition_filter)
        && !sql.split_once(" WHERE ").is_some_and(|(_, condition)| condition.contains(by.as_str()))
    {
        return Err(invalid(format!("Cannot query over table '{path}' without a filter over column(s) '{by}'")));
    }
    let mut rows = state.rows(&path);
    let Some(column) = column else { return Ok(rows.next().map(|_| "1".into()).into_iter().collect()) };
    let parameter = body["queryParameters"][0]["parameterValue"]["arrayValues"].as_array().ok_or_else(unknown)?;
    let wanted: BTreeSet<&str> = parameter.iter().filter_map(|value| value["value"].as_str()).collect();
    let found: BTreeSet<String> = rows
        .filter_map(|row| row.content().get(column)?.as_str().map(str::to_owned))
        .filter(|value| wanted.contains(value.as_str()))
        .collect();
    Ok(found.into_iter().map(Value::String).collect())
}

/// The name between the n-th pair of backticks.
fn quoted(sql: &str, index: usize) -> Option<&str> {
    sql.split('`').nth(2 * index + 1)
}

async fn carry_out(
    shared: &Shared,
    call: Call,
    table: &str,
    run: impl FnOnce(&mut State) -> Result<Value, Refusal> + Send,
) -> Response {
    let due = shared.change(|state| state.faults.due(call, table)).map(|Due { fault, .. }| fault);
    if let Some(Fault::Page(status)) = due {
        let status = StatusCode::from_u16(status).expect("it is a status");
        return (status, Html("<html><title>Error</title><h1>Try again in 30 seconds.</h1></html>")).into_response();
    }
    let (answer, ending) = shared.change(|state| match due {
        Some(Fault::Before(ending)) => (None, Some(ending)),
        Some(Fault::After(ending)) => (Some(run(state)), Some(ending)),
        Some(Fault::Answer(refusal)) => (Some(Err(refusal)), None),
        _ => (Some(run(state)), None),
    });
    match (answer, ending) {
        (_, Some(Ending::Error(refusal))) | (Some(Err(refusal)), None) => refused(&refusal),
        (_, Some(Ending::Hang | Ending::Reset | Ending::Close)) | (None, None) => futures::future::pending().await,
        (Some(Ok(value)), None) => Json(value).into_response(),
    }
}

fn refused(refusal: &Refusal) -> Response {
    let (status, reason) = match refusal.code {
        Code::InvalidArgument => (StatusCode::BAD_REQUEST, "invalidQuery"),
        Code::Unauthenticated => (StatusCode::UNAUTHORIZED, "authError"),
        Code::PermissionDenied => (StatusCode::FORBIDDEN, "accessDenied"),
        Code::ResourceExhausted => (StatusCode::FORBIDDEN, "rateLimitExceeded"),
        Code::NotFound => (StatusCode::NOT_FOUND, "notFound"),
        Code::AlreadyExists => (StatusCode::CONFLICT, "duplicate"),
        Code::Unavailable => (StatusCode::SERVICE_UNAVAILABLE, "backendError"),
        _ => (StatusCode::INTERNAL_SERVER_ERROR, "internalError"),
    };
    let errors = [json!({ "message": refusal.message, "domain": "global", "reason": reason })];
    let error = json!({ "code": status.as_u16(), "message": refusal.message, "errors": errors });
    (status, Json(json!({ "error": error }))).into_response()
}
