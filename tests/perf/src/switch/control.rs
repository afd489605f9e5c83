//! A control of the bench's own for one agent: it sends orders, and receives reports.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use anyhow::Result;
use proto_identity::Credential;
use proto_identity::tls::{self, NodeCertificate};
use proto_link::{
    ALPN, LinkStatus, MeshServer, MeshServerConfig, NeverRevoked, Peer, Router, Sink, now_ms,
};
use proto_mesh::{
    SwitchDesired, SwitchDesiredRequest, SwitchRegisterRequest, SwitchRegisterResponse,
    SwitchReport, SwitchReportResponse, SwitchService, SwitchServiceServer, sealed,
};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::link::{Ca, TRUST_DOMAIN};

/// The running control. Ends when dropped.
#[derive(Debug)]
pub(super) struct Control {
    pub(super) address: SocketAddr,
    /// The agent's.
    pub(super) credential: Credential,
    pub(super) orders: watch::Sender<SwitchDesired>,
    /// The last report, and when it came.
    pub(super) reports: watch::Receiver<Option<(SwitchReport, Instant)>>,
    #[expect(dead_code, reason = "owns the task")]
    tasks: JoinSet<()>,
}

impl Control {
    pub(super) fn start(dir: &Path, first: SwitchDesired) -> Result<Self> {
        let ca = Ca::make(dir)?;
        let node = ca.issue(&format!("spiffe://{TRUST_DOMAIN}/node/1"))?;
        let own = NodeCertificate::new(&node)?;
        let orders = watch::Sender::new(first);
        let (reported, reports) = watch::channel(None);
        let service = Service {
            node: Arc::new(node),
            orders: orders.clone(),
            reported: Arc::new(reported),
        };
        let server = MeshServer::bind(MeshServerConfig {
            bind: SocketAddr::from(([127, 0, 0, 1], 0)),
            tls: tls::server_config(&ca.roots(), own, ALPN)?,
            trust_domain: TRUST_DOMAIN.into(),
            router: Router::new().add(SwitchServiceServer::new(service)),
            revocations: Arc::new(NeverRevoked::default()),
        })?;
        let address = server.local_addr()?;
        let mut tasks = JoinSet::new();
        tasks.spawn(server.run(CancellationToken::new()));
        let credential = ca.issue(&format!(
            "spiffe://{TRUST_DOMAIN}/partition/hall/core/leaf-0"
        ))?;
        Ok(Self {
            address,
            credential,
            orders,
            reports,
            tasks,
        })
    }
}

#[derive(Clone, Debug)]
struct Service {
    node: Arc<Credential>,
    orders: watch::Sender<SwitchDesired>,
    reported: Arc<watch::Sender<Option<(SwitchReport, Instant)>>>,
}

impl SwitchService for Service {
    async fn register(
        &self,
        _: &Peer,
        _: SwitchRegisterRequest,
    ) -> Result<SwitchRegisterResponse, LinkStatus> {
        Ok(SwitchRegisterResponse::default())
    }

    async fn desired(
        &self,
        peer: &Peer,
        _: SwitchDesiredRequest,
        mut out: Sink<'_, SwitchDesired>,
    ) -> Result<(), LinkStatus> {
        let mut orders = self.orders.subscribe();
        let ended = |_| LinkStatus::unavailable("the bench is over");
        loop {
            let next = orders.borrow_and_update().clone();
            let agent = peer.id().ok_or_else(|| LinkStatus::unavailable("no id"))?;
            let sealed = sealed::seal(&self.node, agent, next, now_ms());
            let sealed = sealed.map_err(|error| LinkStatus::unavailable(error.to_string()))?;
            out.send(&sealed).await?;
            orders.changed().await.map_err(ended)?;
        }
    }

    async fn report(
        &self,
        _: &Peer,
        report: SwitchReport,
    ) -> Result<SwitchReportResponse, LinkStatus> {
        self.reported.send_replace(Some((report, Instant::now())));
        Ok(SwitchReportResponse::default())
    }
}
