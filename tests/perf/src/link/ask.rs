//! The agents' side of both links.

use std::net::SocketAddr;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use anyhow::{Context as _, Result};
use http::uri::PathAndQuery;
use proto_identity::{Credential, tls};
use proto_link::{ALPN, MeshClient, MeshClientConfig, Socket, Streaming};
use proto_mesh::{
    PortState, SwitchDesired, SwitchDesiredRequest, SwitchReport, SwitchReportResponse,
    SwitchServiceClient, switch_service,
};
use tonic::client::Grpc;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};
use tonic_prost::ProstCodec;

/// Calls give up after this; none should.
const PATIENCE: Duration = Duration::from_secs(60);
const SOCKETS: usize = 8;

/// What is told, made once: to make it is no part of a call.
static REPORT: LazyLock<SwitchReport> = LazyLock::new(report);

/// How a server is reached.
#[derive(Clone, Debug)]
pub(super) enum Dial {
    Ours {
        address: SocketAddr,
        /// One for each agent: sessions of one identity are few.
        credentials: Arc<[Credential]>,
        sockets: Sockets,
    },
    Tonic {
        address: SocketAddr,
        ca: String,
        certificate: Arc<[u8]>,
        key: Arc<[u8]>,
    },
}

/// Sockets that the agents of this process share: each of its own would cost this process more
/// than what is measured.
#[derive(Clone, Debug)]
pub(super) struct Sockets(Arc<[Socket]>);

impl Sockets {
    pub(super) fn bind() -> Result<Self> {
        let sockets: std::io::Result<Vec<_>> = (0..SOCKETS).map(|_| Socket::bind()).collect();
        Ok(Self(sockets?.into()))
    }

    pub(super) fn of(&self, agent: usize) -> &Socket {
        &self.0[agent % SOCKETS]
    }
}

/// A session. Dropping it ends it.
#[derive(Clone, Debug)]
pub(super) enum Session {
    Ours(MeshClient),
    Tonic(Grpc<Channel>),
}

/// An open stream of desired state.
#[derive(Debug)]
pub(super) enum Stream {
    Ours(Streaming<SwitchDesired>),
    Tonic(Box<tonic::Streaming<SwitchDesired>>),
}

impl Dial {
    /// A session of an agent that was proved by a call, so that the handshake is over. It is a
    /// full one: each has a configuration of its own, and no ticket.
    pub(super) async fn open(&self, agent: usize) -> Result<Session> {
        let mut session = match self {
            Self::Ours {
                address,
                credentials,
                sockets,
            } => {
                let credential = credentials.get(agent).context("no such agent")?;
                let roots = proto_identity::Roots::Certificates(credential.roots.clone());
                let config = MeshClientConfig::new(
                    vec![address.to_string()],
                    tls::client_config(roots, Some(credential), ALPN)?,
                );
                let client = MeshClient::on(config, sockets.of(agent))?;
                Session::Ours(client.with_deadline(PATIENCE))
            }
            Self::Tonic {
                address,
                ca,
                certificate,
                key,
            } => {
                let tls = ClientTlsConfig::new()
                    .ca_certificate(Certificate::from_pem(ca))
                    .identity(Identity::from_pem(certificate, key))
                    .domain_name("localhost");
                let endpoint = Endpoint::from_shared(format!("https://{address}"))?;
                let endpoint = endpoint.connect_timeout(PATIENCE).tcp_nodelay(true);
                let channel = endpoint.tls_config(tls)?.connect().await?;
                Session::Tonic(Grpc::new(channel))
            }
        };
        session.report().await?;
        Ok(session)
    }
}

impl Session {
    /// One call: about a hundred bytes there, none back.
    pub(super) async fn report(&mut self) -> Result<()> {
        match self {
            Self::Ours(mesh) => {
                let client = SwitchServiceClient::from(mesh.clone());
                client.report(REPORT.clone()).await?;
            }
            Self::Tonic(grpc) => {
                grpc.ready().await?;
                let path = PathAndQuery::from_static(switch_service::REPORT.path);
                let codec = ProstCodec::<SwitchReport, SwitchReportResponse>::default();
                let request = tonic::Request::new(REPORT.clone());
                grpc.unary(request, path, codec).await?;
            }
        }
        Ok(())
    }

    /// A stream that has told something.
    pub(super) async fn watch(&mut self) -> Result<Stream> {
        match self {
            Self::Ours(mesh) => {
                let client = SwitchServiceClient::from(mesh.clone());
                let mut stream = client.desired(SwitchDesiredRequest::default()).await?;
                stream.message().await?.context("the stream ended")?;
                Ok(Stream::Ours(stream))
            }
            Self::Tonic(grpc) => {
                grpc.ready().await?;
                let path = PathAndQuery::from_static(switch_service::DESIRED.path);
                let codec = ProstCodec::<SwitchDesiredRequest, SwitchDesired>::default();
                let request = tonic::Request::new(SwitchDesiredRequest::default());
                let answer = grpc.server_streaming(request, path, codec).await?;
                let mut stream = answer.into_inner();
                stream.message().await?.context("the stream ended")?;
                Ok(Stream::Tonic(Box::new(stream)))
            }
        }
    }

    pub(super) async fn close(self) {
        if let Self::Ours(mesh) = self {
            mesh.close().await;
        }
    }
}

impl Stream {
    /// Whether it has not ended by itself.
    pub(super) async fn is_open(&mut self) -> bool {
        let moment = Duration::from_millis(1);
        let news = async {
            match self {
                Self::Ours(stream) => drop(stream.message().await),
                Self::Tonic(stream) => drop(stream.message().await),
            }
        };
        tokio::time::timeout(moment, news).await.is_err()
    }
}

fn report() -> SwitchReport {
    let port = |number: u32| PortState {
        name: format!("Ethernet{number}"),
        mac: format!("02:00:00:00:00:0{number}"),
        admin_up: true,
        oper_up: true,
        vni: 10_000 + number,
        neighbours: Vec::new(),
        ..PortState::default()
    };
    SwitchReport {
        applied_term: 3,
        applied_generation: 1_234_567,
        sync_duration_ms: 12,
        error: String::new(),
        ports: (0..3).map(port).collect(),
        ..SwitchReport::default()
    }
}
