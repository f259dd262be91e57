//! Reaching the Storage Write interface: where it is, who we are there, how long a call may take.

use super::super::WarehouseError;
use super::tokens::Tokens;
use crate::config::BigqueryConfig;
use gcp_bigquery_client::google::cloud::bigquery::storage::v1::big_query_write_client::BigQueryWriteClient;
use std::fmt::Write as _;
use std::time::Duration;
use tonic::metadata::{AsciiMetadataValue, MetadataMap};
use tonic::transport::{Channel, ClientTlsConfig, Endpoint};
use tonic::{Code, Extensions, Request, Status};

/// Google's own address.
const GOOGLE: &str = "https://bigquerystorage.googleapis.com";
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// A connection on which a ping is not answered in time is dead, even if nobody says so.
const PING_EVERY: Duration = Duration::from_mins(1);
const PING_TIMEOUT: Duration = Duration::from_secs(20);
/// An answer names each refused row of a request.
const MAX_ANSWER: usize = 16 << 20;

pub(super) type WriteClient = BigQueryWriteClient<Channel>;

/// The way to the Storage Write interface.
#[derive(Clone)]
pub(super) struct Storage {
    endpoint: Endpoint,
    tokens: Tokens,
    /// How long a request may take.
    pub(super) timeout: Duration,
}

impl Storage {
    /// Connects to nobody yet.
    pub(super) fn new(config: &BigqueryConfig, tokens: Tokens) -> Result<Self, WarehouseError> {
        let url = config.storage_endpoint.as_ref().map_or(GOOGLE, |endpoint| &endpoint.url);
        let failed = |error: tonic::transport::Error| WarehouseError {
            text: format!("cannot use {url} as the Storage Write interface: {error}"),
            retryable: false,
        };
        let mut endpoint = Endpoint::from_shared(url.to_owned())
            .and_then(|endpoint| endpoint.user_agent(concat!("preflight/", env!("CARGO_PKG_VERSION"))))
            .map_err(failed)?
            .connect_timeout(CONNECT_TIMEOUT)
            .tcp_nodelay(true)
            .http2_keep_alive_interval(PING_EVERY)
            .keep_alive_timeout(PING_TIMEOUT)
            .keep_alive_while_idle(true);
        if !url.starts_with("http://") {
            endpoint = endpoint.tls_config(ClientTlsConfig::new().with_native_roots()).map_err(failed)?;
        }
        Ok(Self { endpoint, tokens, timeout: config.request_timeout })
    }

    /// A client on a connection of its own: one that hangs takes no other with it.
    pub(super) fn client(&self) -> WriteClient {
        BigQueryWriteClient::new(self.endpoint.connect_lazy()).max_decoding_message_size(MAX_ANSWER)
    }

    /// A request about a resource: with our token, and the header by which it is routed to the resource's region.
    pub(super) async fn request<T>(&self, message: T, field: &str, resource: &str) -> Result<Request<T>, Status> {
        let mut metadata = MetadataMap::from_headers(self.tokens.headers().await?);
        let routing = format!("{field}={}", escape(resource));
        let routing = AsciiMetadataValue::try_from(routing).expect("what is not ASCII is escaped");
        metadata.insert("x-goog-request-params", routing);
        Ok(Request::from_parts(metadata, Extensions::default(), message))
    }

    /// Runs a call that is answered once.
    pub(super) async fn call<T>(&self, call: impl Future<Output = Result<T, Status>>) -> Result<T, Status> {
        let answer = tokio::time::timeout(self.timeout, call).await;
        let answer = answer.unwrap_or_else(|_| {
            Err(Status::deadline_exceeded(format!("no answer within {} s", self.timeout.as_secs_f64())))
        });
        if let Err(status) = &answer {
            self.refused(status.code());
        }
        answer
    }

    /// Takes note of a refused token.
    pub(super) fn refused(&self, code: Code) {
        if code == Code::Unauthenticated {
            self.tokens.renew();
        }
    }
}

/// As in a URL, where a slash may stay.
pub(super) fn escape(resource: &str) -> String {
    let mut escaped = String::with_capacity(resource.len());
    for byte in resource.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~/".contains(&byte) {
            escaped.push(byte.into());
        } else {
            write!(escaped, "%{byte:02X}").expect("writing to a string cannot fail");
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resource_is_escaped_for_the_header() {
        assert_eq!(
            escape("projects/example.com:p/datasets/d/tables/tä"),
            "projects/example.com%3Ap/datasets/d/tables/t%C3%A4"
        );
    }
}
