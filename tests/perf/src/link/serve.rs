//! The servers: the product's link, and tonic over TLS and TCP, with the same service that does
//! nothing. Each is a process of its own.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::task::{Context, Poll};

use anyhow::Result;
use clap::{Args, ValueEnum};
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use futures::{FutureExt as _, StreamExt as _};
use proto_identity::tls::{self, NodeCertificate};
use proto_link::{
    ALPN, LinkStatus, MeshServer, MeshServerConfig, NeverRevoked, Peer, Router, Sink,
};
use proto_mesh::{
    SwitchDesired, SwitchDesiredRequest, SwitchRegisterRequest, SwitchRegisterResponse,
    SwitchReport, SwitchReportResponse, SwitchService, SwitchServiceServer, switch_service,
};
use tokio_util::sync::CancellationToken;
use tonic::body::Body;
use tonic::server::{Grpc, NamedService};
use tonic::transport::{Certificate, Identity, Server, ServerTlsConfig};
use tonic::{Request, Response, Status};
use tonic_prost::ProstCodec;
use tower::{Service, service_fn};

use super::ca::{Ca, TRUST_DOMAIN};
use crate::certs::Certs;

/// Whose link it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Link {
    /// The product's: frames on QUIC streams.
    Ours,
    /// gRPC: HTTP/2 over TLS and TCP, with certificates on both sides.
    Tonic,
}

#[derive(Debug, Args)]
pub(crate) struct ServerArgs {
    #[arg(long, value_enum)]
    link: Link,
    /// Where the certificates are
    #[arg(long)]
    dir: PathBuf,
    #[arg(long)]
    listen: SocketAddr,
}

/// Serves until it is killed.
pub(crate) async fn run(args: ServerArgs) -> Result<()> {
    match args.link {
        Link::Ours => ours(args).await,
        Link::Tonic => tonic(args).await,
    }
}

async fn ours(args: ServerArgs) -> Result<()> {
    let ca = Ca::open(&args.dir)?;
    let node = ca.issue(&format!("spiffe://{TRUST_DOMAIN}/node/1"))?;
    let own = NodeCertificate::new(&node)?;
    let server = MeshServer::bind(MeshServerConfig {
        bind: args.listen,
        tls: tls::server_config(&ca.roots(), own, ALPN)?,
        trust_domain: TRUST_DOMAIN.into(),
        router: Router::new().add(SwitchServiceServer::new(Idle)),
        revocations: Arc::new(NeverRevoked::default()),
    })?;
    server.run(CancellationToken::new()).await;
    Ok(())
}

async fn tonic(args: ServerArgs) -> Result<()> {
    let certs = Certs::open(&args.dir)?;
    let (certificate, key) = (
        std::fs::read(&certs.certificate)?,
        std::fs::read(&certs.key)?,
    );
    let tls = ServerTlsConfig::new()
        .identity(Identity::from_pem(certificate, key))
        .client_ca_root(Certificate::from_pem(&certs.ca));
    let mut server = Server::builder().tls_config(tls)?.tcp_nodelay(true);
    server.add_service(Idle).serve(args.listen).await?;
    Ok(())
}

/// Answers at once; who asks what it shall do hears one word and then nothing more.
#[derive(Clone, Copy, Debug)]
struct Idle;

impl SwitchService for Idle {
    async fn register(
        &self,
        _: &Peer,
        _: SwitchRegisterRequest,
    ) -> Result<SwitchRegisterResponse, LinkStatus> {
        Ok(SwitchRegisterResponse {})
    }

    async fn desired(
        &self,
        _: &Peer,
        _: SwitchDesiredRequest,
        mut out: Sink<'_, SwitchDesired>,
    ) -> Result<(), LinkStatus> {
        out.send(&SwitchDesired::default()).await?;
        std::future::pending().await
    }

    async fn report(&self, _: &Peer, _: SwitchReport) -> Result<SwitchReportResponse, LinkStatus> {
        Ok(SwitchReportResponse {})
    }
}

impl NamedService for Idle {
    const NAME: &'static str = "metalmesh.mesh.v1.SwitchService";
}

impl Service<http::Request<Body>> for Idle {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        async move { Ok(answer(request).await) }.boxed()
    }
}

async fn answer(request: http::Request<Body>) -> http::Response<Body> {
    type Desired = BoxStream<'static, Result<SwitchDesired, Status>>;
    let path = request.uri().path();
    if path == switch_service::REPORT.path {
        let report = |_: Request<SwitchReport>| async {
            Ok::<_, Status>(Response::new(SwitchReportResponse {}))
        };
        return Grpc::new(ProstCodec::default())
            .unary(service_fn(report), request)
            .await;
    }
    if path == switch_service::DESIRED.path {
        let desired = |_: Request<SwitchDesiredRequest>| async {
            let once = futures::stream::once(async { Ok(SwitchDesired::default()) });
            let stream: Desired = once.chain(futures::stream::pending()).boxed();
            Ok::<_, Status>(Response::new(stream))
        };
        return Grpc::new(ProstCodec::default())
            .server_streaming(service_fn(desired), request)
            .await;
    }
    Status::unimplemented("there is no such method").into_http()
}
