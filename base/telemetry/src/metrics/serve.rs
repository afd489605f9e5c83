//! `GET /metrics` over HTTP/1.1.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use prometheus_client::encoding::text;
use prometheus_client::registry::Registry;
use proto_bounds::{Places, network};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Mutex, Semaphore};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{debug, error, info, warn};

/// Path of the metrics.
pub const PATH: &str = "/metrics";
/// Most open connections. Further ones wait in the kernel's accept queue.
const CONNECTIONS_MAX: usize = 64;
/// Most open connections of one client network (IPv4 address or IPv6 /64). Further ones are closed.
const CONNECTIONS_EACH_MAX: usize = 8;
/// Time limit for the headers of a request. After it the connection is closed.
const HEADER_TIMEOUT: Duration = Duration::from_secs(30);
/// Time for which the result of a scrape is served again, so that many scrapers cost as much as one.
const FRESH: Duration = Duration::from_secs(1);
/// Pause after a failed accept, such as one without a free file descriptor. Without it the loop
/// would spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
const OPENMETRICS: HeaderValue =
    HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8");

struct Page {
    registry: Registry,
    /// The result and time of the last scrape. `None` before the first.
    found: Mutex<Option<(Instant, Bytes)>>,
}

/// Serves the registry until `stop`.
pub fn spawn(
    tasks: &mut JoinSet<()>,
    listener: TcpListener,
    registry: Registry,
    stop: CancellationToken,
) {
    let page = Arc::new(Page {
        registry,
        found: Mutex::new(None),
    });
    if let Ok(address) = listener.local_addr() {
        info!(%address, "metrics are served");
    }
    tasks.spawn(async move {
        tokio::select! {
            () = stop.cancelled() => {}
            () = run(listener, page) => {}
        }
    });
}

async fn run(listener: TcpListener, page: Arc<Page>) {
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let shares = Places::each(CONNECTIONS_EACH_MAX);
    let mut connections = JoinSet::new();
    loop {
        let Ok(place) = Arc::clone(&room).acquire_owned().await else {
            return;
        };
        match listener.accept().await {
            Ok((stream, from)) => {
                let page = Arc::clone(&page);
                if let Some(share) = shares.take(network(from.ip())) {
                    connections.spawn(async move {
                        connection(stream, page).await;
                        drop((place, share));
                    });
                }
            }
            Err(e) => {
                warn!(error = %e, "a connection for metrics could not be accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
        while connections.try_join_next().is_some() {}
    }
}

async fn connection(stream: TcpStream, page: Arc<Page>) {
    let service = service_fn(move |request: Request<hyper::body::Incoming>| {
        let page = Arc::clone(&page);
        async move { Ok::<_, Infallible>(answer(&request, page).await) }
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .serve_connection(TokioIo::new(stream), service);
    if let Err(e) = served.await {
        debug!(error = %e, "a connection for metrics ended early");
    }
}

async fn answer<B>(request: &Request<B>, page: Arc<Page>) -> Response<Full<Bytes>> {
    if request.uri().path() != PATH {
        return plain(StatusCode::NOT_FOUND, "metrics are at /metrics\n");
    }
    if request.method() != Method::GET {
        return plain(StatusCode::METHOD_NOT_ALLOWED, "use GET\n");
    }
    // Held during the scrape: concurrent requests wait here and then find its result.
    let mut found = page.found.lock().await;
    if let Some((at, text)) = &*found
        && at.elapsed() < FRESH
    {
        return metrics(text.clone());
    }
    let asked = Arc::clone(&page);
    // Collectors read `/proc` and take locks of the program, so they run on a blocking thread.
    let made = tokio::task::spawn_blocking(move || {
        let mut out = String::new();
        text::encode(&mut out, &asked.registry).map(|()| Bytes::from(out))
    });
    match made.await {
        Ok(Ok(text)) => {
            *found = Some((Instant::now(), text.clone()));
            metrics(text)
        }
        failed => {
            error!(error = ?failed, "metrics could not be written");
            let text = "the metrics could not be written; see the log\n";
            plain(StatusCode::INTERNAL_SERVER_ERROR, text)
        }
    }
}

fn metrics(text: Bytes) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(text));
    response.headers_mut().insert(CONTENT_TYPE, OPENMETRICS);
    response
}

fn plain(status: StatusCode, text: &'static str) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from_static(text.as_bytes())));
    *response.status_mut() = status;
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, plain);
    response
}
