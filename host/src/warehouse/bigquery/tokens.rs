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
    source: Arc<Source>,
    credentials: Arc<Mutex<Credentials>>,
}

/// Looks for credentials anew.
type Source = dyn Fn() -> Result<Credentials, String> + Send + Sync;

impl Tokens {
    /// Looks for credentials; nothing is asked of anybody yet.
    pub(super) fn new(identity: Identity) -> Result<Self, WarehouseError> {
        Self::of(Arc::new(move || identity.credentials()))
    }

    fn of(source: Arc<Source>) -> Result<Self, WarehouseError> {
        let credentials = source().map_err(|text| WarehouseError { text, retryable: false })?;
        Ok(Self { source, credentials: Arc::new(Mutex::new(credentials)) })
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
                Err(Status::new(code, format!("{NO_TOKEN}: {}", chain(&error))))
            }
        }
    }

    /// Forgets the token: it was refused, though it should still hold.
    pub(super) fn renew(&self) {
        match (self.source)() {
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

/// An error with its causes, which the outermost does not name.
pub(super) fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use google_cloud_auth::credentials::{CredentialsProvider, EntityTag};
    use google_cloud_auth::errors::CredentialsError;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Credentials whose token is the number of times they were looked for. The third has none.
    #[derive(Debug)]
    struct Numbered(usize);

    impl CredentialsProvider for Numbered {
        async fn headers(&self, _: Extensions) -> Result<CacheableResource<HeaderMap>, CredentialsError> {
            if self.0 == 2 {
                return Err(CredentialsError::from_msg(false, "the account is gone"));
            }
            let token = format!("Bearer token-{}", self.0).parse().unwrap();
            let data = HeaderMap::from_iter([("authorization".parse().unwrap(), token)]);
            Ok(CacheableResource::New { entity_tag: EntityTag::new(), data })
        }

        async fn universe_domain(&self) -> Option<String> {
            None
        }
    }

    /// Credentials whose token never comes.
    #[derive(Debug)]
    struct Silent;

    impl CredentialsProvider for Silent {
        async fn headers(&self, _: Extensions) -> Result<CacheableResource<HeaderMap>, CredentialsError> {
            std::future::pending().await
        }

        async fn universe_domain(&self) -> Option<String> {
            None
        }
    }

    impl Tokens {
        /// Tokens that are asked for in vain.
        pub(in super::super) fn silent() -> Self {
            Self::of(Arc::new(|| Ok(Credentials::from(Silent)))).unwrap()
        }
    }

    #[tokio::test]
    async fn a_refused_token_is_not_sent_again() {
        let looked = AtomicUsize::new(0);
        let source = move || Ok(Credentials::from(Numbered(looked.fetch_add(1, Ordering::Relaxed))));
        let tokens = Tokens::of(Arc::new(source)).unwrap();
        assert_eq!(tokens.access_token().await.unwrap(), "token-0");
        assert_eq!(tokens.clone().access_token().await.unwrap(), "token-0");
        tokens.clone().renew();
        assert_eq!(tokens.access_token().await.unwrap(), "token-1");
        assert_eq!(tokens.headers().await.unwrap()["authorization"], "Bearer token-1");
        tokens.renew();
        let status = tokens.headers().await.unwrap_err();
        assert_eq!(status.code(), Code::Unauthenticated);
        assert!(status.message().contains(NO_TOKEN) && status.message().contains("the account is gone"));
    }
}
