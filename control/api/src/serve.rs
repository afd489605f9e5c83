//! The listener: HTTP/1.1 and HTTP/2 with prior knowledge on one TCP port, with TLS or without.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::Request;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use crate::front::{Front, Gate, Inner};

/// Connections at the same time; more wait in the kernel's queue.
pub const CONNECTIONS_MAX: usize = 4096;
/// How long the headers of a request may take after the answer before: clients keep idle
/// connections for 90 s and more, and one that is closed under a request loses it.
const HEADER_TIMEOUT: Duration = Duration::from_secs(120);
/// How long a TLS handshake may take.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a stop waits for calls that run.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(15);
/// The largest headers of a request, bytes.
const HEADER_BYTES_MAX: u32 = 16 << 10;
/// Calls at the same time on one connection.
const STREAMS_MAX: u32 = 256;
/// A silent HTTP/2 client is asked whether it is there.
const PING_INTERVAL: Duration = Duration::from_secs(20);
/// And given up when it does not answer.
const PING_TIMEOUT: Duration = Duration::from_secs(20);
/// A silent connection is asked after this whether it is there, as HTTP/1 cannot ask.
const KEEPALIVE_AFTER: Duration = Duration::from_secs(30);
/// And again as often as this.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);
/// And given up after so many questions.
const KEEPALIVE_RETRIES: u32 = 3;
/// Pause after the system refused a connection, for instance for lack of descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Serves until stopped, then lets running calls end.
pub async fn serve<S: Inner, G: Gate>(
    listener: TcpListener,
    tls: Option<Arc<rustls::ServerConfig>>,
    front: Front<S, G>,
    stop: CancellationToken,
) {
    let server = Server {
        front,
        tls: tls.map(TlsAcceptor::from),
        builder: builder(),
    };
    let server = Arc::new(server);
    let graceful = GracefulShutdown::new();
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let mut connections = JoinSet::new();
    while let Some((stream, peer, place)) = accept(&listener, &room, &stop).await {
        let (server, watcher) = (Arc::clone(&server), graceful.watcher());
        connections.spawn(async move {
            server.connection(stream, peer, watcher).await;
            drop(place);
        });
        while connections.try_join_next().is_some() {}
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

/// The next connection and its place; nothing once stopped.
async fn accept(
    listener: &TcpListener,
    room: &Arc<Semaphore>,
    stop: &CancellationToken,
) -> Option<(TcpStream, SocketAddr, OwnedSemaphorePermit)> {
    let next = async {
        let place = Arc::clone(room).acquire_owned().await.ok()?;
        loop {
            match listener.accept().await {
                Ok((stream, peer)) => return Some((stream, peer, place)),
                Err(error) => {
                    tracing::warn!(error = %error, "a connection could not be accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    };
    tokio::select! {
        () = stop.cancelled() => None,
        next = next => next,
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
        .keep_alive_interval(PING_INTERVAL)
        .keep_alive_timeout(PING_TIMEOUT);
    builder
}

struct Server<S, G> {
    front: Front<S, G>,
    tls: Option<TlsAcceptor>,
    builder: Builder<TokioExecutor>,
}

impl<S: Inner, G: Gate> Server<S, G> {
    async fn connection(&self, stream: TcpStream, peer: SocketAddr, watcher: Watcher) {
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(error = %error, "TCP_NODELAY cannot be set");
        }
        // HTTP/1 has no ping: a machine that died while it waits is noticed by this.
        let keepalive = TcpKeepalive::new()
            .with_time(KEEPALIVE_AFTER)
            .with_interval(KEEPALIVE_INTERVAL)
            .with_retries(KEEPALIVE_RETRIES);
        if let Err(error) = SockRef::from(&stream).set_tcp_keepalive(&keepalive) {
            tracing::debug!(error = %error, "TCP keepalive cannot be set");
        }
        let outcome = match &self.tls {
            None => self.http(stream, peer, watcher).await,
            Some(tls) => match handshake(tls, stream).await {
                Ok(stream) => self.http(stream, peer, watcher).await,
                Err(error) => Err(error.into()),
            },
        };
        if let Err(error) = outcome {
            tracing::debug!(peer = %peer, error = %error, "a connection ended early");
        }
    }

    async fn http<IO>(
        &self,
        stream: IO,
        peer: SocketAddr,
        watcher: Watcher,
    ) -> Result<(), Box<dyn std::error::Error + Send + Sync>>
    where
        IO: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let front = self.front.clone();
        let service = service_fn(move |request: Request<Incoming>| {
            let front = front.clone();
            async move { Ok::<_, std::convert::Infallible>(front.handle(request, Some(peer)).await) }
        });
        let connection = self.builder.serve_connection(TokioIo::new(stream), service);
        watcher.watch(connection.into_owned()).await
    }
}

async fn handshake(
    tls: &TlsAcceptor,
    stream: TcpStream,
) -> io::Result<tokio_rustls::server::TlsStream<TcpStream>> {
    match tokio::time::timeout(HANDSHAKE_TIMEOUT, tls.accept(stream)).await {
        Ok(outcome) => outcome,
        Err(_) => Err(io::Error::new(
            io::ErrorKind::TimedOut,
            "the TLS handshake took too long",
        )),
    }
}
