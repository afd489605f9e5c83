//! The HTTP listener of one network: scripts, files, tickets, health.

mod files;
mod scripts;
mod slot;
mod tickets;

use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use proto_bounds::Places;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::clock::now_ms;
use crate::http::slot::ConnectionSlot;
use crate::installer::PairFile;
use crate::state::Shared;

/// Concurrent connections. Further ones wait in the listen queue.
const CONNECTIONS_MAX: usize = 512;
/// Concurrent connections of one address. Further ones are closed. Firmware opens one, the
/// installer a few.
const CONNECTIONS_EACH_MAX: usize = 16;
/// Time limit for the header of a request, also on an idle connection. Beyond it the connection is
/// closed.
const HEADER_TIMEOUT: Duration = Duration::from_secs(30);
/// A connection whose data is not acknowledged for this time is closed: the machine was switched
/// off.
const USER_TIMEOUT: Duration = Duration::from_secs(60);
/// Longest name of an asset, bytes. A longer one is not found.
const ASSET_NAME_LEN_MAX: usize = 128;

pub(crate) type Body = BoxBody<Bytes, io::Error>;

/// The context of one request.
#[derive(Clone)]
struct Context {
    shared: Arc<Shared>,
    network: usize,
    from: Ipv4Addr,
}

/// The HTTP listener of one network.
#[derive(Debug)]
pub(crate) struct Http {
    listener: TcpListener,
    shared: Arc<Shared>,
    network: usize,
    /// Free slots of connections.
    slots: Arc<Semaphore>,
}

impl Http {
    /// Opens the listener on the network's own address.
    pub(crate) async fn bind(shared: Arc<Shared>, network: usize) -> io::Result<Self> {
        let address = shared.config.networks[network].network.address;
        let listener = TcpListener::bind((address, shared.config.http_port)).await?;
        Ok(Self {
            listener,
            shared,
            network,
            slots: Arc::new(Semaphore::new(CONNECTIONS_MAX)),
        })
    }

    /// Serves until stopped.
    pub(crate) async fn run(self, stop: CancellationToken) -> io::Result<()> {
        let places = Places::each(CONNECTIONS_EACH_MAX);
        let mut connections = JoinSet::new();
        loop {
            let accepted = async {
                // The slot is taken before `accept`, so that connections beyond the bound wait in
                // the listen queue and use no descriptor. The wait is a branch of the `select`: all
                // slots may be in use for long, and the listener must still stop.
                let slot = Arc::clone(&self.slots).acquire_owned().await;
                let slot = slot.map_err(io::Error::other)?;
                let (stream, from) = self.listener.accept().await?;
                Ok::<_, io::Error>((slot, stream, from))
            };
            tokio::select! {
                () = stop.cancelled() => return Ok(()),
                Some(done) = connections.join_next() => {
                    // As in TFTP: a bug ends the process, and its supervisor restarts it.
                    if let Err(error) = done && error.is_panic() {
                        return Err(io::Error::other(error));
                    }
                }
                accepted = accepted => match accepted {
                    Ok((slot, stream, SocketAddr::V4(from))) => {
                        let Some(place) = places.take(*from.ip()) else {
                            // Closed, not queued: one address must not hold the queue of others.
                            tracing::debug!(%from, "too many connections of one address");
                            continue;
                        };
                        let context = Context {
                            shared: Arc::clone(&self.shared),
                            network: self.network,
                            from: *from.ip(),
                        };
                        let slot = ConnectionSlot { _all: slot, _of_address: place };
                        connections.spawn(serve(stream, context, slot));
                    }
                    // Never happens: the listener is bound to an IPv4 address.
                    Ok(_) => {}
                    // The error is of one connection, or descriptors are exhausted. The pause keeps
                    // the loop from spinning until some are free.
                    Err(error) => {
                        tracing::warn!(%error, "connection not accepted");
                        tokio::time::sleep(Duration::from_millis(50)).await;
                    }
                },
            }
        }
    }
}

async fn serve(stream: TcpStream, context: Context, slot: ConnectionSlot) {
    let socket = socket2::SockRef::from(&stream);
    // A machine that is switched off during a download sends nothing more. Without the timeout its
    // connection would hold a slot until TCP gives up, after a quarter of an hour.
    if let Err(error) = socket.set_tcp_user_timeout(Some(USER_TIMEOUT)) {
        tracing::debug!(%error, "no TCP user timeout");
    }
    let from = context.from;
    let service = service_fn(move |request| {
        let context = context.clone();
        async move { Ok::<_, Infallible>(respond(&context, request).await) }
    });
    let done = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .serve_connection(TokioIo::new(stream), service)
        .await;
    if let Err(error) = done {
        tracing::debug!(%from, %error, "connection ended");
    }
    drop(slot);
}

async fn respond(context: &Context, request: Request<Incoming>) -> Response<Body> {
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let config = &context.shared.config;
    // UEFI HTTP boot asks for the length by HEAD before it loads a file.
    let read = method == Method::GET || method == Method::HEAD;
    let response = match path.as_str() {
        "/v1/ticket" if method == Method::POST => tickets::ticket(context, request).await,
        "/v1/boot.ipxe" if read => {
            scripts::script(context, request.uri().query().unwrap_or_default()).await
        }
        "/kernel" if read => files::file(&config.kernel, &request).await,
        "/initrd" if read => files::file(&config.initrd, &request).await,
        "/healthz" if read => health(context),
        path if read => match named_file(context, path) {
            Some(file) => files::file(&file, &request).await,
            None => plain(StatusCode::NOT_FOUND, "not found\n"),
        },
        _ => plain(StatusCode::NOT_FOUND, "not found\n"),
    };
    let status = response.status().as_u16();
    // Pixie asks itself every few seconds.
    match path == "/healthz" {
        true => tracing::debug!(from = %context.from, %method, path, status, "HTTP"),
        false => tracing::info!(from = %context.from, %method, path, status, "HTTP"),
    }
    response
}

/// Path of a boot program or of a file of a fetched pair. `None` means that there is none.
fn named_file(context: &Context, path: &str) -> Option<PathBuf> {
    let shared = &context.shared;
    if let Some(name) = path.strip_prefix("/assets/") {
        return is_asset_name(name).then(|| shared.config.assets.join(name));
    }
    // The key is compared with those of the pairs and never joined to a path itself: no request
    // leads out of the directory.
    let (key, name) = path.strip_prefix("/boot/")?.split_once('/')?;
    let is_named = |file: &PairFile| file.name() == name;
    let file = [PairFile::Kernel, PairFile::Image]
        .into_iter()
        .find(is_named)?;
    shared.installer.path(key, file)
}

/// `true` if a name is a bare file name of letters, digits, dots, dashes and underscores that does
/// not start with a dot. Such a name cannot leave its directory.
pub(crate) fn is_asset_name(name: &str) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_');
    (1..=ASSET_NAME_LEN_MAX).contains(&name.len())
        && !name.starts_with('.')
        && name.bytes().all(plain)
}

fn health(context: &Context) -> Response<Body> {
    let shared = &context.shared;
    let desired = shared.desired();
    let answered_ms = shared.control_answered_ms();
    let age_s = (answered_ms > 0).then(|| now_ms().saturating_sub(answered_ms) / 1000);
    let body = serde_json::json!({
        "status": "ok",
        "control_answered_s_ago": age_s,
        "generation": desired.generation,
        "machines": desired.machines.len(),
        "installer": shared.installer.health(),
        "leases": shared.lease_count(),
        "dhcp_refused": shared.dhcp_refused(),
        "events_waiting": shared.spool.len(),
        "events_dropped": shared.spool.dropped(),
    });
    json(StatusCode::OK, &body)
}

fn full(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into())
        .map_err(|never| match never {})
        .boxed()
}

fn with_type(status: StatusCode, kind: &'static str, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

fn plain(status: StatusCode, text: impl Into<String>) -> Response<Body> {
    with_type(status, "text/plain", full(text.into()))
}

fn json(status: StatusCode, value: &serde_json::Value) -> Response<Body> {
    with_type(status, "application/json", full(value.to_string()))
}

/// A refusal as JSON: `{"error": …}`, with `Retry-After` if `retry_s` is given.
fn refusal(status: StatusCode, reason: &str, retry_s: Option<u32>) -> Response<Body> {
    let mut response = json(status, &serde_json::json!({ "error": reason }));
    if let Some(seconds) = retry_s {
        response
            .headers_mut()
            .insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

#[cfg(test)]
mod tests {
    use futures::future::BoxFuture;
    use proto_types::{MacAddr, MachineId};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;
    use crate::config::Config;
    use crate::control::{BmcLease, Control, ControlError, Seen, Ticket};

    const CONFIG: &str = r#"
        http_port = 8080
        [boot]
        kernel = "/boot/vmlinuz"
        initrd = "/boot/initrd"
        [[network]]
        interface = "br0"
        address = "10.77.1.2"
        subnet = "10.77.1.0/24"
        range = ["10.77.1.100", "10.77.1.199"]
        router = "10.77.1.2"
    "#;

    /// A control that never answers.
    struct NoControl;

    impl Control for NoControl {
        fn seen(&self, _: Seen) -> BoxFuture<'_, Result<Option<pixie_boot::Target>, ControlError>> {
            Box::pin(std::future::pending())
        }

        fn issue_ticket(
            &self,
            _: MachineId,
            _: MacAddr,
        ) -> BoxFuture<'_, Result<Ticket, ControlError>> {
            Box::pin(std::future::pending())
        }

        fn report_leases(&self, _: Vec<BmcLease>) -> BoxFuture<'_, Result<(), ControlError>> {
            Box::pin(std::future::pending())
        }
    }

    #[tokio::test]
    async fn a_listener_without_a_free_slot_stops() {
        let dir = tempfile::tempdir().unwrap();
        let config = Config::parse(CONFIG).unwrap();
        let shared = Shared::open(config, Arc::new(NoControl), &dir.path().join("state")).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let http = Http {
            listener,
            shared: Arc::new(shared),
            network: 0,
            slots: Arc::new(Semaphore::new(1)),
        };
        let stop = CancellationToken::new();
        let mut listeners = JoinSet::new();
        listeners.spawn(http.run(stop.clone()));
        let mut client = TcpStream::connect(address).await.unwrap();
        let request = b"GET /healthz HTTP/1.1\r\nhost: pixie\r\n\r\n";
        client.write_all(request).await.unwrap();
        // The response proves that this connection has the only slot. It stays open.
        client.read_u8().await.unwrap();
        stop.cancel();
        let stopped = tokio::time::timeout(Duration::from_secs(10), listeners.join_next()).await;
        stopped.expect("it stops").unwrap().unwrap().unwrap();
    }

    #[test]
    fn asset_names_are_bare() {
        assert!(is_asset_name("undionly.kpxe"));
        for name in [
            "",
            ".",
            "..",
            ".hidden",
            "a/b",
            "a b",
            "%2e",
            &"a".repeat(129),
        ] {
            assert!(!is_asset_name(name), "{name}");
        }
    }
}
