//! Who we are: application default credentials, or nobody, which is what emulators want.

use google_cloud_auth::credentials::{self, Credentials};

/// What may be read and written of BigQuery and Pub/Sub.
const SCOPE: &str = "https://www.googleapis.com/auth/cloud-platform";

/// Whose credentials are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Identity {
    /// Application default credentials: `GOOGLE_APPLICATION_CREDENTIALS`, gcloud's own, or the machine's service account.
    ApplicationDefault,
    /// None.
    Anonymous,
}

impl Identity {
    /// The credentials; nothing is asked of anybody yet.
    pub fn credentials(self) -> Result<Credentials, String> {
        match self {
            Self::Anonymous => Ok(credentials::anonymous::Builder::new().build()),
            Self::ApplicationDefault => credentials::Builder::default()
                .with_scopes([SCOPE])
                .build()
                .map_err(|error| format!("no application default credentials: {error}. Run `gcloud auth application-default login`, or set GOOGLE_APPLICATION_CREDENTIALS")),
        }
    }
}
