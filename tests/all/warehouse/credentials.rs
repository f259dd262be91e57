//! Application default credentials, as far as a machine that is not Google's can go: a token is asked for, and is sent to both
//! interfaces.

use axum::Json;
use axum::Router;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use futures::future::BoxFuture;
use futures::stream;
use preflight_tests::{Ended, Pipeline};
use serde_json::{Value, json};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::http;
use tonic::server::NamedService;

/// What came to the servers.
#[derive(Clone, Default)]
struct Seen(Arc<Mutex<Vec<(&'static str, String)>>>);

impl Seen {
    fn add(&self, what: &'static str, value: String) {
        self.0.lock().unwrap().push((what, value));
    }

    /// Each value once.
    fn all(&self, what: &str) -> Vec<String> {
        let seen = self.0.lock().unwrap();
        let mut values: Vec<String> =
            seen.iter().filter(|(kind, _)| *kind == what).map(|(_, value)| value.clone()).collect();
        values.dedup();
        values
    }
}

fn authorization(headers: &HeaderMap) -> String {
    headers.get("authorization").map_or("none", |value| value.to_str().unwrap()).to_owned()
}

/// A token server, and BigQuery as far as a check asks it: one table is there.
struct Servers {
    seen: Seen,
    web: SocketAddr,
    storage: SocketAddr,
    _runtime: Runtime,
}

impl Servers {
    /// `token` is what the token server answers.
    fn start(token: (StatusCode, Value)) -> Self {
        let runtime = Runtime::new().unwrap();
        let listen = || async { TcpListener::bind("127.0.0.1:0").await.unwrap() };
        let (web, storage) = runtime.block_on(async { (listen().await, listen().await) });
        let addresses = (web.local_addr().unwrap(), storage.local_addr().unwrap());
        let seen = Seen::default();
        let answer = move |State(seen): State<Seen>, Json(body): Json<Value>| async move {
            seen.add("refresh token", body["refresh_token"].as_str().unwrap_or_default().to_owned());
            token
        };
        let router = Router::new()
            .route(
                "/token",
                post(|state, body| async {
                    let (status, value) = answer(state, body).await;
                    (status, Json(value))
                }),
            )
            .route("/bigquery/v2/projects/{project}/datasets/{dataset}/tables/{table}", get(table))
            .with_state(seen.clone());
        runtime.spawn(async move { axum::serve(web, router).await });
        let service = Storage(seen.clone());
        runtime.spawn(async move {
            let connections = stream::unfold(storage, |storage| async {
                Some((storage.accept().await.map(|(tcp, _)| tcp), storage))
            });
            tonic::transport::Server::builder().add_service(service).serve_with_incoming(connections).await
        });
        Self { seen, web: addresses.0, storage: addresses.1, _runtime: runtime }
    }

    /// Checks a pipeline with an account that gcloud has left on the machine.
    fn check(&self) -> Ended {
        let pipeline = Pipeline::offvia("").warm();
        let account = json!({
            "type": "authorized_user",
            "client_id": "c",
            "client_secret": "s",
            "refresh_token": "the refresh token",
            "token_uri": format!("http://{}/token", self.web),
        });
        let file = pipeline.directory().join("account.json");
        std::fs::write(&file, account.to_string()).unwrap();
        check(pipeline.env("GOOGLE_APPLICATION_CREDENTIALS", file.to_str().unwrap()), self.web, self.storage)
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it is made for the call, and ends with it")]
fn check(pipeline: Pipeline, rest: SocketAddr, storage: SocketAddr) -> Ended {
    let text = std::fs::read_to_string(pipeline.file()).unwrap();
    let bigquery = format!(
        "[warehouse.bigquery]\nproject = \"p\"\nendpoint = \"http://{rest}\"\nstorage_endpoint = \"http://{storage}\"\n\
         credentials = \"application_default\""
    );
    std::fs::write(pipeline.file(), text.replace("[warehouse.sqlite]\npath = \"warehouse.db\"", &bigquery)).unwrap();
    pipeline.check()
}

async fn table(
    State(seen): State<Seen>,
    headers: HeaderMap,
    Path((project, dataset, table)): Path<(String, String, String)>,
) -> Response {
    seen.add("rest", authorization(&headers));
    if table != "poisoned_events" {
        let error = json!({ "code": 404, "message": "Not found", "errors": [{ "reason": "notFound" }] });
        return (StatusCode::NOT_FOUND, Json(json!({ "error": error }))).into_response();
    }
    let required = |name: &str| json!({ "name": name, "type": "STRING", "mode": "REQUIRED" });
    Json(json!({
        "tableReference": { "projectId": project, "datasetId": dataset, "tableId": table },
        "type": "TABLE",
        "schema": { "fields": [required("raw_payload"), required("error_reason"), required("error_stage")] },
    }))
    .into_response()
}

#[derive(Clone)]
struct Storage(Seen);

impl NamedService for Storage {
    const NAME: &'static str = "google.cloud.bigquery.storage.v1.BigQueryWrite";
}

impl tonic::codegen::Service<http::Request<Body>> for Storage {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        self.0.add("storage", authorization(request.headers()));
        Box::pin(async { Ok(Status::unimplemented("it is no BigQuery").into_http()) })
    }
}

#[test]
fn a_token_is_asked_for_and_sent_to_both_interfaces() {
    let token = json!({ "access_token": "the token", "expires_in": 3600, "token_type": "Bearer" });
    let servers = Servers::start((StatusCode::OK, token));
    let checked = servers.check().expect(0);
    assert_eq!(servers.seen.all("refresh token"), ["the refresh token"]);
    assert_eq!(servers.seen.all("rest"), ["Bearer the token"]);
    assert_eq!(servers.seen.all("storage"), ["Bearer the token"]);
    // What it would make it says in BigQuery's words.
    let text = checked.stdout;
    assert!(text.contains("CREATE TABLE IF NOT EXISTS `p.offvia_silver.fact_bookings`"), "{text}");
    assert!(!text.contains("CREATE TABLE IF NOT EXISTS `p.offvia_quarantine"), "{text}");
}

#[test]
fn an_account_that_gets_no_token_is_refused() {
    let refused = json!({ "error": "invalid_grant", "error_description": "Token has been revoked." });
    let servers = Servers::start((StatusCode::BAD_REQUEST, refused));
    let text = servers.check().expect(2).stderr;
    assert!(text.contains("cannot get an access token") && text.contains("revoked"), "{text}");
    assert!(servers.seen.all("rest").is_empty() && servers.seen.all("storage").is_empty());
}

#[test]
fn a_machine_without_an_account_is_told_how_to_get_one() {
    let token = json!({ "access_token": "t", "expires_in": 3600, "token_type": "Bearer" });
    let servers = Servers::start((StatusCode::OK, token));
    let pipeline = Pipeline::offvia("").warm().env("GOOGLE_APPLICATION_CREDENTIALS", "/nonexistent/account.json");
    let text = check(pipeline, servers.web, servers.storage).expect(2).stderr;
    assert!(text.contains("gcloud auth application-default login"), "{text}");
    assert!(servers.seen.all("rest").is_empty());
}
