//! Network connections that can be cut.

use futures::task::AtomicWaker;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tonic::transport::server::Connected;

/// Cuts a connection.
#[derive(Clone, Default)]
pub(super) struct Cutter(Arc<Cut>);

#[derive(Default)]
struct Cut {
    is_cut: AtomicBool,
    waker: AtomicWaker,
}

impl Cutter {
    pub(super) fn cut(&self) {
        self.0.is_cut.store(true, Ordering::SeqCst);
        self.0.waker.wake();
    }

    fn check(&self, context: &Context<'_>) -> io::Result<()> {
        self.0.waker.register(context.waker());
        if self.0.is_cut.load(Ordering::SeqCst) { Err(io::ErrorKind::ConnectionReset.into()) } else { Ok(()) }
    }
}

/// A connection.
pub(super) struct Wire {
    tcp: TcpStream,
    cutter: Cutter,
}

impl Wire {
    pub(super) fn new(tcp: TcpStream) -> Self {
        Self { tcp, cutter: Cutter::default() }
    }
}

impl Connected for Wire {
    type ConnectInfo = Cutter;

    fn connect_info(&self) -> Cutter {
        self.cutter.clone()
    }
}

impl AsyncRead for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.cutter.check(context)?;
        Pin::new(&mut self.tcp).poll_read(context, buffer)
    }
}

impl AsyncWrite for Wire {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.cutter.check(context)?;
        Pin::new(&mut self.tcp).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.cutter.check(context)?;
        Pin::new(&mut self.tcp).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tcp).poll_shutdown(context)
    }
}
