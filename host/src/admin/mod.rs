//! The admin endpoint: whether the process serves, what its pipelines are doing, and its metrics, over HTTP.
//!
//! It only reads, and answers GET and HEAD. One request per connection, of bounded size, within bounded time, on a
//! bounded number of connections: whoever connects can use up none of the process, nor keep it from ending.

mod answer;
mod door;
mod readiness;
mod view;

use crate::config::AdminConfig;
use crate::telemetry::status::Board;
use door::Door;
use std::collections::BTreeSet;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// How long answers that are under way may take when the process ends.
const LAST_ANSWERS: Duration = Duration::from_secs(1);

/// Why an endpoint cannot be opened.
#[derive(Debug, thiserror::Error)]
#[error(
    "the admin endpoint cannot listen on {address}: {error}. Set [admin] listen to another address; port 0 is any free one"
)]
pub struct AdminError {
    /// The address.
    pub address: SocketAddr,
    /// Why.
    pub error: io::Error,
}

impl AdminError {
    /// Whether the pipeline file is to blame: this machine does not have the address, or the user may not use the port.
    /// Else another program holds it.
    pub fn is_configuration(&self) -> bool {
        matches!(self.error.kind(), ErrorKind::AddrNotAvailable | ErrorKind::PermissionDenied)
    }
}

/// The endpoints of a process. They answer until they are stopped.
#[derive(Debug)]
pub struct Endpoints {
    stop: watch::Sender<bool>,
    serving: Vec<JoinHandle<()>>,
}

impl Endpoints {
    /// Listens on every address that the pipelines name: one that several of them name is opened once. Each endpoint
    /// tells of all pipelines of the process.
    pub async fn open<'a>(
        configs: impl IntoIterator<Item = &'a AdminConfig>,
        board: &Arc<Board>,
    ) -> Result<Self, AdminError> {
        let addresses: BTreeSet<SocketAddr> = configs.into_iter().map(|config| config.listen).collect();
        let mut listeners = Vec::new();
        for address in addresses {
            listeners.push(listen(address).await?);
        }
        let (stop, stopped) = watch::channel(false);
        let mut serving = Vec::new();
        for (listener, address) in listeners {
            tracing::info!("admin endpoint listens on http://{address}");
            let mut stopped = stopped.clone();
            // An error means that the endpoints are gone, which is a stop, too.
            let stop = async move { drop(stopped.wait_for(|stop| *stop).await) };
            let server = axum::serve(Door::new(listener), answer::router(Arc::clone(board)));
            serving.push(tokio::spawn(async move {
                server.with_graceful_shutdown(stop).await.expect("serving ends without an error");
            }));
        }
        Ok(Self { stop, serving })
    }

    /// Takes no more requests and finishes the answers that are under way, within a second.
    pub async fn stop(self) {
        self.stop.send_replace(true);
        // Who is not done by then is cut off by the end of the process.
        tokio::time::timeout(LAST_ANSWERS, futures::future::join_all(self.serving)).await.ok();
    }
}

/// A listener and the address it has: port 0 has become a port.
async fn listen(address: SocketAddr) -> Result<(TcpListener, SocketAddr), AdminError> {
    let bound = async {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        Ok((listener, address))
    };
    bound.await.map_err(|error| AdminError { address, error })
}
