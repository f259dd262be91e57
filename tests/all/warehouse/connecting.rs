//! Who BigQuery is, and what comes of an address where nobody is.

use super::place::{Place, Target};
use preflight::google::endpoint::Endpoint;
use preflight::warehouse::{AppendError, BigQuery, Warehouse as _};
use std::net::TcpListener;
use std::sync::Arc;

/// A port of this machine where nobody listens.
fn nobody() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

#[tokio::test]
async fn it_is_told_from_others_by_its_project_and_where_it_is() {
    let place = Place::fake();
    let mut config = place.bigquery();
    let identity = |config| async move { BigQuery::connect(&config).await.unwrap().identity().to_owned() };
    let authority = config.endpoint.as_ref().unwrap().authority().to_owned();
    assert_eq!(identity(config.clone()).await, format!("bigquery:preflight-test at {authority}"));
    (config.endpoint, config.storage_endpoint) = (None, None);
    assert_eq!(identity(config).await, "bigquery:preflight-test");
}

#[tokio::test]
async fn nobody_there_is_a_failure_that_may_pass() {
    let place = Place::fake();
    let mut target = Target::new(&place).await;
    for scheme in ["http", "https"] {
        let mut config = place.bigquery();
        let address = |port: u16| Some(Endpoint::parse(&format!("{scheme}://127.0.0.1:{port}")).unwrap());
        (config.endpoint, config.storage_endpoint) = (address(nobody()), address(nobody()));
        let warehouse = BigQuery::connect(&config).await.unwrap();
        let error = warehouse.columns(&target.table).await.unwrap_err();
        assert!(error.retryable && error.text.contains("cannot read table"), "{error}");
        let error = warehouse.create_stream("s", &target.layout.table).await.unwrap_err();
        assert!(error.retryable && error.text.contains("cannot make a stream"), "{error}");
        target.warehouse = Arc::new(warehouse);
        let error = target.append(0, &["a"]).await.unwrap_err();
        assert!(matches!(error, AppendError::Retryable(_)), "{error}");
    }
}
