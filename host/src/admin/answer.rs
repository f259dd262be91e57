//! What is answered to which path.

use super::{readiness, view};
use crate::telemetry::metrics::CONTENT_TYPE;
use crate::telemetry::status::Board;
use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, CONNECTION, CONTENT_TYPE as TYPE};
use axum::http::{HeaderValue, StatusCode};
use axum::middleware::map_response;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use std::sync::Arc;

/// The paths. Others are not found, and methods other than GET and HEAD are not allowed.
pub(super) fn router(board: Arc<Board>) -> Router {
    Router::new()
        .route("/healthz", get(async || "ok\n"))
        .route("/readyz", get(ready))
        .route("/status", get(status))
        .route("/metrics", get(metrics))
        .with_state(board)
        .layer(map_response(closing))
}

async fn ready(State(board): State<Arc<Board>>) -> impl IntoResponse {
    let readiness = readiness::of(board.pipelines().iter().map(|(_, status)| (status.pipeline(), status.now())));
    let code = if readiness.ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (code, Json(readiness))
}

async fn status(State(board): State<Arc<Board>>) -> impl IntoResponse {
    Json(view::of(&board))
}

async fn metrics(State(board): State<Arc<Board>>) -> impl IntoResponse {
    ([(TYPE, CONTENT_TYPE)], board.metrics())
}

/// A connection carries one request; what is answered holds for that moment.
async fn closing(mut response: Response) -> Response {
    let headers = response.headers_mut();
    headers.insert(CONNECTION, HeaderValue::from_static("close"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
