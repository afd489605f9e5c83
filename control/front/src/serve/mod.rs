//! The listener: HTTP/1.1 and HTTP/2 with prior knowledge on one TCP port, with TLS or without.
//!
//! Connections are bounded in total and per caller ([`connections`]); calls are bounded by the front
//! itself.

mod connection;
mod connection_limits;
mod connection_table;
mod connections;

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use crate::{Abandoned, Front, Gate, InnerService, ReplyBody};

pub(crate) use connection::Connection;
use connection::RunningCall;
pub use connection_limits::ConnectionLimits;
use connections::{Connections, OpenConnection};

/// Time limit for the headers of a request, from the previous answer on. Clients keep idle
/// connections for 90 s and more, and lose a request if the connection is closed under it.
const HEADER_TIMEOUT: Duration = Duration::from_secs(120);
/// Grace period of a stop for running calls.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(15);
/// Largest headers of a request, bytes.
const HEADER_BYTES_MAX: u32 = 16 << 10;
/// Most concurrent calls on one connection. HTTP/2 clients queue further ones.
const STREAMS_MAX: u32 = 256;
/// Most reset streams of a connection that are still in memory. A client that resets more loses the
/// connection (rapid reset).
const RESETS_MAX: usize = 64;
/// Interval of HTTP/2 pings to a silent client.
const PING_INTERVAL: Duration = Duration::from_secs(20);
/// Time limit for the answer to a ping. After it the connection is closed.
const PING_TIMEOUT: Duration = Duration::from_secs(20);
/// Idle time before the first TCP keepalive probe. HTTP/1 has no pings.
const KEEPALIVE_AFTER: Duration = Duration::from_secs(30);
/// Interval of further TCP keepalive probes.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);
/// Unanswered probes after which the connection is closed.
const KEEPALIVE_RETRIES: u32 = 3;
/// Time without progress in reading an answer. After it the connection is closed.
const UNREAD_TIMEOUT: Duration = Duration::from_secs(60);
/// Pause after a failed accept, such as one without a free descriptor.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Serves until stopped, then waits for running calls, at most [`DRAIN_TIMEOUT`].
pub async fn serve<S: InnerService, G: Gate>(
    listener: TcpListener,
    tls: Option<Arc<rustls::ServerConfig>>,
    front: Front<S, G>,
    stop: CancellationToken,
) {
    serve_within(ConnectionLimits::default(), listener, tls, front, stop).await;
}

/// As [`serve`], with other bounds on connections.
pub async fn serve_within<S: InnerService, G: Gate>(
    limits: ConnectionLimits,
    listener: TcpListener,
    tls: Option<Arc<rustls::ServerConfig>>,
    front: Front<S, G>,
    stop: CancellationToken,
) {
    let server = Server {
        front,
        tls: tls.map(TlsAcceptor::from),
        builder: builder(),
        limits,
    };
    let server = Arc::new(server);
    let graceful = GracefulShutdown::new();
    let all = Connections::new(limits);
    let mut connections = JoinSet::new();
    while let Some((stream, peer)) = accept(&listener, &stop).await {
        while connections.try_join_next().is_some() {}
        let Some(open) = all.open(peer.ip()) else {
            tracing::debug!(peer = %peer, "no room for a connection: a call runs on each");
            continue;
        };
        let (server, watcher) = (Arc::clone(&server), graceful.watcher());
        connections.spawn(async move { server.connection(stream, peer, open, watcher).await });
    }
    drop(listener);
    if tokio::time::timeout(DRAIN_TIMEOUT, graceful.shutdown())
        .await
        .is_err()
    {
        tracing::warn!("calls were cut off: they did not end in time");
    }
    connections.shutdown().await;
}

/// The next connection. `None` means that the listener was stopped.
async fn accept(
    listener: &TcpListener,
    stop: &CancellationToken,
) -> Option<(TcpStream, SocketAddr)> {
    let next = async {
        loop {
            match listener.accept().await {
                Ok(accepted) => return accepted,
                Err(error) => {
                    tracing::warn!(error = %error, "a connection could not be accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    };
    tokio::select! {
        () = stop.cancelled() => None,
        next = next => Some(next),
    }
}

fn builder() -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .max_buf_size(64 << 10);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_header_list_size(HEADER_BYTES_MAX)
        .max_concurrent_streams(STREAMS_MAX)
        .max_pending_accept_reset_streams(RESETS_MAX)
        .keep_alive_interval(PING_INTERVAL)
        .keep_alive_timeout(PING_TIMEOUT);
    builder
}

struct Server<S, G> {
    front: Front<S, G>,
    tls: Option<TlsAcceptor>,
    builder: Builder<TokioExecutor>,
    limits: ConnectionLimits,
}

impl<S: InnerService, G: Gate> Server<S, G> {
    async fn connection(
        &self,
        stream: TcpStream,
        peer: SocketAddr,
        open: OpenConnection,
        watcher: Watcher,
    ) {
        prepare(&stream);
        let serving = self.requests(stream, peer, open.connection(), watcher);
        tokio::select! {
            biased;
            reason = open.over() => tracing::debug!(peer = %peer, reason, "a connection is ended"),
            outcome = serving => if let Err(error) = outcome {
                tracing::debug!(peer = %peer, error = %error, "a connection ended early");
            },
        }
    }

    async fn requests(
        &self,
        stream: TcpStream,
        peer: SocketAddr,
        connection: &Arc<Connection>,
        watcher: Watcher,
    ) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        let limit = self.limits.first_byte;
        // hyper has no time limit for the first byte of HTTP.
        within(limit, "the first byte", stream.peek(&mut [0])).await?;
        match &self.tls {
            None => self.http(stream, peer, connection, watcher).await,
            Some(tls) => {
                let stream = within(limit, "the TLS handshake", tls.accept(stream)).await?;
                self.http(stream, peer, connection, watcher).await
            }
        }
    }

    async fn http<IO>(
        &self,
        stream: IO,
        peer: SocketAddr,
        connection: &Arc<Connection>,
        watcher: Watcher,
    ) -> Result<(), Box<dyn std::error::Error + Send + Sync>>
    where
        IO: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let front = self.front.clone();
        let connection = Arc::clone(connection);
        let service = service_fn(move |mut request: Request<Incoming>| {
            let front = front.clone();
            let call = connection.call();
            request.extensions_mut().insert(Arc::clone(&connection));
            async move {
                let answer = front.handle(request, Some(peer)).await;
                let answer = answer.map(|body| SentBody { body, _call: call });
                Ok::<_, std::convert::Infallible>(answer)
            }
        });
        let connection = self.builder.serve_connection(TokioIo::new(stream), service);
        watcher.watch(connection.into_owned()).await
    }
}

fn prepare(stream: &TcpStream) {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(error = %error, "TCP_NODELAY cannot be set");
    }
    // HTTP/1 has no ping: without the probes, a client whose host died would hold its place.
    let keepalive = TcpKeepalive::new()
        .with_time(KEEPALIVE_AFTER)
        .with_interval(KEEPALIVE_INTERVAL)
        .with_retries(KEEPALIVE_RETRIES);
    let socket = SockRef::from(stream);
    let set = socket.set_tcp_keepalive(&keepalive);
    if let Err(error) = set.and_then(|()| socket.set_tcp_user_timeout(Some(UNREAD_TIMEOUT))) {
        tracing::debug!(error = %error, "TCP keepalive cannot be set");
    }
}

async fn within<T>(
    limit: Duration,
    what: &str,
    work: impl Future<Output = io::Result<T>>,
) -> io::Result<T> {
    let late = || io::Error::new(io::ErrorKind::TimedOut, format!("{what} took too long"));
    tokio::time::timeout(limit, work)
        .await
        .unwrap_or_else(|_| Err(late()))
}

/// The body of an answer. Its call counts as running until the body was sent or dropped.
struct SentBody {
    body: ReplyBody,
    _call: RunningCall,
}

impl Body for SentBody {
    type Data = Bytes;
    type Error = Abandoned;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
