//! Who we are in each request: one place for both interfaces.

use super::super::WarehouseError;
use crate::google::credentials::Identity;
use futures::future::BoxFuture;
use gcp_bigquery_client::auth::Authenticator;
use gcp_bigquery_client::error::BQError;
use google_cloud_auth::credentials::{CacheableResource, Credentials};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use tonic::codegen::http::{Extensions, HeaderMap};
use tonic::{Code, Status};

/// How the error begins when there is no token to send.
pub(super) const NO_TOKEN: &str = "cannot get an access token";

/// Credentials that both interfaces share. They ask for a new token by themselves before the old one ends.
#[derive(Clone)]
pub(super) struct Tokens {
    identity: Identity,
    credentials: Arc<Mutex<Credentials>>,
}

impl Tokens {
    /// Looks for credentials; nothing is asked of anybody yet.
    pub(super) fn new(identity: Identity) -> Result<Self, WarehouseError> {
        let credentials = identity.credentials().map_err(|text| WarehouseError { text, retryable: false })?;
        Ok(Self { identity, credentials: Arc::new(Mutex::new(credentials)) })
    }

    /// The headers of a request that say who we are.
    pub(super) async fn headers(&self) -> Result<HeaderMap, Status> {
        let credentials = self.credentials.lock().unwrap_or_else(PoisonError::into_inner).clone();
        match credentials.headers(Extensions::new()).await {
            Ok(CacheableResource::New { data, .. }) => Ok(data),
            // Only where a tag of what we know is given, and none is.
            Ok(CacheableResource::NotModified) => Ok(HeaderMap::new()),
            Err(error) => {
                let code = if error.is_transient() { Code::Unavailable } else { Code::Unauthenticated };
                Err(Status::new(code, format!("{NO_TOKEN}: {error}")))
            }
        }
    }

    /// Forgets the token: it was refused, though it should still hold.
    pub(super) fn renew(&self) {
        match self.identity.credentials() {
            Ok(credentials) => *self.credentials.lock().unwrap_or_else(PoisonError::into_inner) = credentials,
            Err(error) => tracing::warn!("the access token was refused, and no new one can be got: {error}"),
        }
    }
}

/// The REST client wants the token alone.
impl Authenticator for Tokens {
    fn access_token<'a, 'f>(&'a self) -> Pin<Box<dyn Future<Output = Result<String, BQError>> + Send + 'f>>
    where
        'a: 'f,
        Self: 'f,
    {
        let token: BoxFuture<'f, Result<String, BQError>> = Box::pin(async move {
            let headers = self.headers().await.map_err(BQError::TonicStatusError)?;
            let bearer = headers.get("authorization").and_then(|value| value.to_str().ok());
            // Emulators look at no token, but the client sends one in any case.
            Ok(bearer.and_then(|value| value.strip_prefix("Bearer ")).unwrap_or("anonymous").to_owned())
        });
        token
    }
}
