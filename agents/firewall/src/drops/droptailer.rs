//! Sends drops to a droptailer server, as the published client does: a gRPC call for each.

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio::time::sleep;
use tokio_rustls::TlsConnector;
use tokio_util::sync::CancellationToken;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::{Channel, Endpoint, Uri};
use tonic_prost::ProstCodec;
use tower::service_fn;
use tracing::{info, warn};

use super::log::{DropEvent, DropLog, DropSubscription};
use super::record::DropRecord;
use crate::config::DroptailerConfig;

/// Name in the server's certificate.
const SERVER_NAME: &str = "droptailer";
const PUSH: &str = "/proto.Droptailer/Push";
/// Time for a connection, and for a call.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const PUSH_TIMEOUT: Duration = Duration::from_secs(3);
/// Pauses between attempts, doubled each time.
const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(10);

/// `Drop` of the published `droptailer.proto`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct PushedDrop {
    /// Time of the packet.
    #[prost(message, optional, tag = "1")]
    pub timestamp: Option<PushedTime>,
    /// The packet, in the words of the kernel's log lines.
    #[prost(map = "string, string", tag = "2")]
    pub fields: HashMap<String, String>,
}

/// `google.protobuf.Timestamp`.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct PushedTime {
    /// Seconds since 1970.
    #[prost(int64, tag = "1")]
    pub seconds: i64,
    /// Nanoseconds of the second.
    #[prost(int32, tag = "2")]
    pub nanos: i32,
}

impl From<&DropRecord> for PushedDrop {
    fn from(record: &DropRecord) -> Self {
        let millis = record.time_ms % 1000;
        Self {
            timestamp: Some(PushedTime {
                seconds: i64::try_from(record.time_ms / 1000).unwrap_or(i64::MAX),
                nanos: i32::try_from(millis * 1_000_000).unwrap_or(0),
            }),
            fields: record.fields().into_iter().collect(),
        }
    }
}

/// Sends every drop from now on, until it is stopped. While the server is away the log keeps the
/// newest drops; the oldest ones are lost, and counted in this program's log.
pub async fn send_drops(config: DroptailerConfig, log: Arc<DropLog>, stop: CancellationToken) {
    let (_, mut events) = log.subscribe();
    let mut unsent = None;
    let mut pause = PAUSE_MIN;
    let work = async {
        loop {
            let error = match connect(&config).await {
                Ok(channel) => {
                    info!(address = config.address, "connected to the droptailer");
                    match send_until_error(channel, &mut events, &mut unsent, &mut pause).await {
                        Some(error) => format!("{error:#}"),
                        None => return,
                    }
                }
                Err(error) => format!("{error:#}"),
            };
            warn!(
                address = config.address,
                error, "drops cannot be sent to the droptailer"
            );
            sleep(pause).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
    };
    tokio::select! {
        () = work => {}
        () = stop.cancelled() => {}
    }
}

/// Sends until a call fails; what was not sent stays in `unsent`. `None` if the log is gone.
async fn send_until_error(
    channel: Channel,
    events: &mut DropSubscription,
    unsent: &mut Option<PushedDrop>,
    pause: &mut Duration,
) -> Option<anyhow::Error> {
    let mut client = tonic::client::Grpc::new(channel);
    loop {
        if unsent.is_none() {
            *unsent = match events.next().await? {
                DropEvent::Packet(record) => record.is_drop.then(|| PushedDrop::from(&record)),
                DropEvent::Lost { lost } => {
                    warn!(
                        lost,
                        "drops are lost: they came faster than they could be sent"
                    );
                    None
                }
            };
        }
        let Some(next) = unsent.clone() else {
            continue;
        };
        if let Err(error) = client.ready().await {
            return Some(error.into());
        }
        let mut request = tonic::Request::new(next);
        request.set_timeout(PUSH_TIMEOUT);
        let codec = ProstCodec::<PushedDrop, ()>::default();
        let path = PathAndQuery::from_static(PUSH);
        if let Err(status) = client.unary(request, path, codec).await {
            return Some(status.into());
        }
        *unsent = None;
        *pause = PAUSE_MIN;
    }
}

async fn connect(config: &DroptailerConfig) -> anyhow::Result<Channel> {
    // Read at each connection: the files may be replaced while the agent runs.
    let tls = TlsConnector::from(Arc::new(tls_config(config)?));
    let origin = Uri::from_static("https://droptailer");
    let endpoint = Endpoint::from_shared(format!("http://{}", config.address))?
        .origin(origin)
        .timeout(PUSH_TIMEOUT)
        .connect_timeout(CONNECT_TIMEOUT);
    let address = config.address.clone();
    let open = move |_: Uri| {
        let (address, tls) = (address.clone(), tls.clone());
        async move {
            let stream = TcpStream::connect(&address).await?;
            let name = ServerName::try_from(SERVER_NAME).map_err(io::Error::other)?;
            let stream = tls.connect(name, stream).await?;
            io::Result::Ok(TokioIo::new(stream))
        }
    };
    Ok(endpoint.connect_with_connector(service_fn(open)).await?)
}

fn tls_config(config: &DroptailerConfig) -> anyhow::Result<ClientConfig> {
    let certificates = |path: &Path| -> anyhow::Result<Vec<CertificateDer<'static>>> {
        let all = CertificateDer::pem_file_iter(path).map_err(|e| unreadable(path, &e))?;
        let all: Result<Vec<_>, _> = all.collect();
        all.map_err(|e| unreadable(path, &e))
    };
    let mut roots = RootCertStore::empty();
    for root in certificates(&config.ca_certificate)? {
        roots.add(root)?;
    }
    let chain = certificates(&config.client_certificate)?;
    let path = &config.client_key;
    let key = PrivateKeyDer::from_pem_file(path).map_err(|e| unreadable(path, &e))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut tls = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_client_auth_cert(chain, key)?;
    tls.alpn_protocols = vec![b"h2".to_vec()];
    Ok(tls)
}

fn unreadable(path: &Path, error: &rustls::pki_types::pem::Error) -> anyhow::Error {
    anyhow::anyhow!("cannot read {}: {error}", path.display())
}
