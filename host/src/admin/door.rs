//! The way in: how many may come, how long they may stay and how much they may say.

use axum::serve::Listener;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Sleep, sleep};

/// Connections at a time; further ones wait to be taken.
const CONNECTIONS: usize = 32;
/// A connection is cut after this, whatever it is doing: it carries one request, whose answer takes milliseconds.
const LIFETIME: Duration = Duration::from_secs(5);
/// What may be received on a connection, bytes: a request is its head, no more. A read that begins below it may end above.
const RECEIVED: usize = 16 * 1024;

/// Takes connections.
pub(super) struct Door {
    listener: TcpListener,
    places: Arc<Semaphore>,
}

impl Door {
    pub(super) fn new(listener: TcpListener) -> Self {
        Self { listener, places: Arc::new(Semaphore::new(CONNECTIONS)) }
    }
}

impl Listener for Door {
    type Io = Visitor;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Visitor, SocketAddr) {
        let place = Arc::clone(&self.places).acquire_owned().await.expect("the semaphore is never closed");
        let (stream, address) = Listener::accept(&mut self.listener).await;
        (Visitor { stream, leave: Box::pin(sleep(LIFETIME)), received: 0, _place: place }, address)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// A connection within its bounds.
pub(super) struct Visitor {
    stream: TcpStream,
    leave: Pin<Box<Sleep>>,
    received: usize,
    _place: OwnedSemaphorePermit,
}

impl Visitor {
    /// Fails once the time is up; until then whoever waits for the connection is woken then, too.
    fn has_time(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        match self.leave.as_mut().poll(cx) {
            Poll::Ready(()) => Err(io::Error::new(ErrorKind::TimedOut, "the connection took too long")),
            Poll::Pending => Ok(()),
        }
    }
}

impl AsyncRead for Visitor {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.has_time(cx)?;
        if self.received >= RECEIVED {
            return Poll::Ready(Err(io::Error::new(ErrorKind::InvalidData, "the request is too large")));
        }
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buf))?;
        self.received += buf.filled().len() - before;
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Visitor {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.has_time(cx)?;
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.has_time(cx)?;
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
