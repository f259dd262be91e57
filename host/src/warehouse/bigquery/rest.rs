//! The REST interface: tables as they are, and SQL.

use super::super::WarehouseError;
use super::live::LiveTable;
use super::name::TableName;
use super::storage::escape;
use super::tokens::{Tokens, chain};
use crate::config::BigqueryConfig;
use gcp_bigquery_client::Client;
use gcp_bigquery_client::auth::Authenticator as _;
use gcp_bigquery_client::client_builder::ClientBuilder;
use gcp_bigquery_client::error::{BQError, NestedResponseError};
use gcp_bigquery_client::model::dataset::Dataset;
use gcp_bigquery_client::model::get_query_results_parameters::GetQueryResultsParameters;
use gcp_bigquery_client::model::query_parameter::QueryParameter;
use gcp_bigquery_client::model::query_parameter_type::QueryParameterType;
use gcp_bigquery_client::model::query_parameter_value::QueryParameterValue;
use gcp_bigquery_client::model::query_request::QueryRequest;
use gcp_bigquery_client::model::query_response::QueryResponse;
use gcp_bigquery_client::model::table_row::TableRow;
use reqwest::RequestBuilder;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tonic::Code;

/// Google's own address.
const GOOGLE: &str = "https://bigquery.googleapis.com";
/// How long the server may keep us waiting for a statement before it says that it is still running.
const POLL: Duration = Duration::from_secs(10);
/// A statement that runs longer than this is given up; it may be run again.
const LONGEST: Duration = Duration::from_mins(10);

/// Why a call failed.
#[derive(Debug)]
pub(super) struct Failure {
    /// Why.
    pub(super) text: String,
    /// Whether it may pass.
    pub(super) retryable: bool,
    /// The HTTP status, if there was an answer that could be read.
    pub(super) status: Option<i64>,
}

impl From<Failure> for WarehouseError {
    fn from(failure: Failure) -> Self {
        Self { text: failure.text, retryable: failure.retryable }
    }
}

/// A named parameter of a statement.
pub(super) fn parameter(name: &str, kind: &str, value: &str) -> QueryParameter {
    QueryParameter {
        name: Some(name.to_owned()),
        parameter_type: Some(QueryParameterType { r#type: kind.to_owned(), ..QueryParameterType::default() }),
        parameter_value: Some(scalar(value)),
    }
}

/// A named parameter that is a list.
pub(super) fn list<'a>(name: &str, kind: &str, values: impl IntoIterator<Item = &'a str>) -> QueryParameter {
    let element = QueryParameterType { r#type: kind.to_owned(), ..QueryParameterType::default() };
    let values = values.into_iter().map(scalar).collect();
    QueryParameter {
        name: Some(name.to_owned()),
        parameter_type: Some(QueryParameterType {
            array_type: Some(Box::new(element)),
            r#type: "ARRAY".to_owned(),
            ..QueryParameterType::default()
        }),
        parameter_value: Some(QueryParameterValue { array_values: Some(values), ..QueryParameterValue::default() }),
    }
}

fn scalar(value: &str) -> QueryParameterValue {
    QueryParameterValue { value: Some(value.to_owned()), ..QueryParameterValue::default() }
}

/// The text of a cell of a result; none where it is null.
pub(super) fn cell(row: &TableRow, index: usize) -> Option<&str> {
    match row.columns.as_ref()?.get(index)?.value.as_ref()? {
        Value::String(text) => Some(text),
        _ => None,
    }
}

/// A client of the REST interface.
pub(super) struct Rest {
    client: Client,
    /// For what the client would not read.
    http: reqwest::Client,
    url: String,
    tokens: Tokens,
    project: String,
    timeout: Duration,
}

impl Rest {
    /// Connects to nobody yet.
    pub(super) async fn new(config: &BigqueryConfig, tokens: Tokens) -> Result<Self, WarehouseError> {
        let mut builder = ClientBuilder::new();
        let url = format!("{}/bigquery/v2", config.endpoint.as_ref().map_or(GOOGLE, |endpoint| &endpoint.url));
        builder.with_v2_base_url(url.clone());
        let http = reqwest::Client::new();
        builder.with_client(http.clone());
        let client = builder.build_from_authenticator(Arc::new(tokens.clone())).await;
        let client = client.map_err(|error| WarehouseError {
            text: format!("cannot set up a client of BigQuery: {error}"),
            retryable: false,
        })?;
        Ok(Self { client, http, url, tokens, project: config.project.clone(), timeout: config.request_timeout })
    }

    /// A table as it is; none if there is none, or no such dataset.
    ///
    /// The client knows the types of columns by a list, and reads no table that has another, such as RANGE. So this is read by
    /// ourselves.
    pub(super) async fn table(&self, name: &TableName) -> Result<Option<LiveTable>, Failure> {
        let [dataset, table] = [&name.dataset, &name.table].map(|part| escape(part));
        match self.get(&name.project, &format!("datasets/{dataset}/tables/{table}")).await {
            Ok(table) => Ok(Some(table)),
            Err(Failure { status: Some(404), .. }) => Ok(None),
            Err(failure) => Err(Failure { text: format!("cannot read table {name}: {}", failure.text), ..failure }),
        }
    }

    /// A resource of a project, by its path.
    pub(super) async fn get<T: DeserializeOwned>(&self, project: &str, path: &str) -> Result<T, Failure> {
        self.send(self.http.get(format!("{}/projects/{}/{path}", self.url, escape(project)))).await
    }

    /// Makes a resource of a project.
    pub(super) async fn post<T: DeserializeOwned>(
        &self,
        project: &str,
        path: &str,
        body: &Value,
    ) -> Result<T, Failure> {
        self.send(self.http.post(format!("{}/projects/{}/{path}", self.url, escape(project))).json(body)).await
    }

    async fn send<T: DeserializeOwned>(&self, request: RequestBuilder) -> Result<T, Failure> {
        let send = async {
            let token = self.tokens.access_token().await?;
            let answer = request.bearer_auth(token).send().await?;
            if answer.status().is_success() {
                return Ok(answer.json().await?);
            }
            Err(BQError::ResponseError { error: answer.json().await? })
        };
        self.call(self.timeout, send).await
    }

    /// The project that pays for what is asked.
    pub(super) fn project(&self) -> &str {
        &self.project
    }

    /// A dataset as it is.
    pub(super) async fn dataset(&self, project: &str, dataset: &str) -> Result<Dataset, Failure> {
        let datasets = self.client.dataset();
        self.call(self.timeout, datasets.get(project, dataset)).await
    }

    /// Makes a dataset.
    pub(super) async fn create_dataset(
        &self,
        project: &str,
        dataset: &str,
        location: Option<&str>,
    ) -> Result<(), Failure> {
        let wanted = Dataset { location: location.map(str::to_owned), ..Dataset::new(project, dataset) };
        let datasets = self.client.dataset();
        self.call(self.timeout, datasets.create(wanted)).await.map(drop)
    }

    /// Runs a statement, and returns all rows of its result.
    pub(super) async fn query(&self, sql: &str, parameters: Vec<QueryParameter>) -> Result<Vec<TableRow>, Failure> {
        let mut pages = self.pages(sql, parameters, None).await?;
        let mut rows = Vec::new();
        while let Some(page) = pages.next().await? {
            rows.extend(page);
        }
        Ok(rows)
    }

    /// Runs a statement whose result is read page by page, of so many rows at most.
    pub(super) async fn pages(
        &self,
        sql: &str,
        parameters: Vec<QueryParameter>,
        rows: Option<i32>,
    ) -> Result<Pages<'_>, Failure> {
        let started = Instant::now();
        let mut request = QueryRequest::new(sql);
        request.timeout_ms = i32::try_from(POLL.as_millis()).ok();
        request.max_results = rows;
        // Made anew for each try: what failed is not answered from memory.
        request.request_id = Some(format!("preflight-{:016x}{:016x}", fastrand::u64(..), fastrand::u64(..)));
        if !parameters.is_empty() {
            request.parameter_mode = Some("NAMED".to_owned());
            request.query_parameters = Some(parameters);
        }
        let answer = self.call(self.timeout + POLL, self.client.job().query(&self.project, request)).await?;
        Ok(Pages { rest: self, sql: sql.to_owned(), started, rows, answer: Some(answer) })
    }

    async fn call<T>(&self, limit: Duration, call: impl Future<Output = Result<T, BQError>>) -> Result<T, Failure> {
        let Ok(answer) = tokio::time::timeout(limit, call).await else {
            return Err(failure(&format!("no answer within {} s", limit.as_secs_f64()), true));
        };
        answer.map_err(|error| {
            let failure = read(error);
            if failure.status == Some(401) {
                self.tokens.renew();
            }
            failure
        })
    }
}

/// The result of a statement.
pub(super) struct Pages<'a> {
    rest: &'a Rest,
    sql: String,
    started: Instant,
    rows: Option<i32>,
    /// The last answer; none when there is nothing behind it.
    answer: Option<QueryResponse>,
}

impl Pages<'_> {
    /// The next rows, which may be none; no page is left when it gives none.
    pub(super) async fn next(&mut self) -> Result<Option<Vec<TableRow>>, Failure> {
        while let Some(mut answer) = self.answer.take() {
            let complete = answer.job_complete.unwrap_or(false);
            let rows = complete.then(|| answer.rows.take().unwrap_or_default());
            if !complete || answer.page_token.is_some() {
                self.answer = Some(self.behind(answer, complete).await?);
            }
            if rows.is_some() {
                return Ok(rows);
            }
        }
        Ok(None)
    }

    /// The answer behind another.
    async fn behind(&self, mut answer: QueryResponse, complete: bool) -> Result<QueryResponse, Failure> {
        let job = answer.job_reference.clone();
        let Some((id, location)) = job.and_then(|job| Some((job.job_id?, job.location))) else {
            return Err(failure("BigQuery runs the statement, and does not say by which name", true));
        };
        if !complete && self.started.elapsed() > LONGEST {
            let text = format!("the statement has run for {} min: {}", LONGEST.as_secs() / 60, self.sql);
            return Err(failure(&text, true));
        }
        let next = GetQueryResultsParameters {
            location,
            page_token: answer.page_token.take(),
            timeout_ms: i32::try_from(POLL.as_millis()).ok(),
            max_results: self.rows,
            ..Default::default()
        };
        let (rest, jobs) = (self.rest, self.rest.client.job());
        let more = rest.call(rest.timeout + POLL, jobs.get_query_results(&rest.project, &id, next)).await?;
        Ok(QueryResponse { job_reference: answer.job_reference, ..QueryResponse::from(more) })
    }
}

fn failure(text: &str, retryable: bool) -> Failure {
    Failure { text: text.to_owned(), retryable, status: None }
}

fn read(error: BQError) -> Failure {
    match error {
        BQError::ResponseError { error } => refusal(&error.error),
        BQError::TonicStatusError(status) => failure(status.message(), status.code() == Code::Unavailable),
        BQError::RequestError(error) if error.is_builder() => failure(&chain(&error), false),
        // An answer that cannot be read is a front end's page: BigQuery's own can be. So it may pass, and says nothing of what
        // was asked for, whatever its status.
        BQError::RequestError(error) => failure(&chain(&error), true),
        error => failure(&error.to_string(), false),
    }
}

/// Whether what BigQuery refused may be asked for again: cloud.google.com/bigquery/docs/error-messages.
fn refusal(error: &NestedResponseError) -> Failure {
    let reason = error.errors.iter().find_map(|error| error.get("reason")).map_or("", String::as_str);
    let retryable = matches!(error.code, 401 | 408 | 429 | 500..=599) || may_pass(reason, &error.message);
    let text = format!("{} ({})", error.message, error.code);
    Failure { text, retryable, status: Some(error.code) }
}

/// Whether an error may pass, by its reason and its words.
pub(super) fn may_pass(reason: &str, message: &str) -> bool {
    let passing = ["rateLimitExceeded", "jobRateLimitExceeded", "quotaExceeded", "backendError", "internalError"];
    // Other statements change the same table just now, or rows of it were streamed into it just now. It is told apart by its words
    // alone.
    let busy = [
        "could not serialize access",
        "due to concurrent update",
        "too many dml statements outstanding",
        "streaming buffer",
    ];
    let said = message.to_ascii_lowercase();
    passing.contains(&reason) || busy.iter().any(|words| said.contains(words))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[test]
    fn what_may_pass_is_told_by_status_and_reason() {
        let retryable = |code: i64, reason: &str| {
            let errors = vec![HashMap::from([("reason".to_owned(), reason.to_owned())])];
            let error = NestedResponseError { code, errors, message: "m".into(), status: String::new() };
            refusal(&error).retryable
        };
        for (code, reason) in
            [(401, "authError"), (408, ""), (429, ""), (500, ""), (503, "backendError"), (403, "rateLimitExceeded")]
        {
            assert!(retryable(code, reason), "{code} {reason}");
        }
        for (code, reason) in [(400, "invalidQuery"), (403, "accessDenied"), (404, "notFound"), (409, "duplicate")] {
            assert!(!retryable(code, reason), "{code} {reason}");
        }
    }

    /// Once ended a replay for good: two of them marked rows of one table at the same time.
    #[test]
    fn a_statement_that_met_another_may_be_run_again() {
        for (code, reason, message) in [
            (400, "invalidQuery", "Could not serialize access to table p:d.t due to concurrent update"),
            (400, "invalidQuery", "Transaction is aborted due to concurrent update against table p:d.t."),
            (
                400,
                "resourcesExceeded",
                "Resources exceeded during query execution: Too many DML statements outstanding against table p:d.t, \
                 limit is 20.",
            ),
        ] {
            let errors = vec![HashMap::from([("reason".to_owned(), reason.to_owned())])];
            let error = NestedResponseError { code, errors, message: message.into(), status: String::new() };
            assert!(refusal(&error).retryable, "{message}");
        }
    }
}
