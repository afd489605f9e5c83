//! A stand-in for control: a CA, and the services that a machine calls.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
use proto_identity::profile::{Authority, Purpose};
use proto_identity::tls::{self, NodeCertificate};
use proto_identity::{CertificateRequest, Credential, Key, SpiffeId};
use proto_link::{ALPN, MeshServer, MeshServerConfig, NeverRevoked, Router};
use proto_mesh::machine_order::Order;
use proto_mesh::*;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::story::UUID;

const DOMAIN: &str = "mesh.test";
const HOUR: Duration = Duration::from_secs(3600);
const TICKET: &str = "t-1";
const SECRET: &[u8] = b"once";

/// A message of the machine.
#[derive(Debug)]
pub(crate) enum News {
    Joined(String, String),
    Event(String),
    Registered(Box<MachineRegisterRequest>),
    Wiped(WipeReport),
    ProjectIdentity,
    Installed(InstallReport),
    /// Identity and kernel.
    PhonedHome(String, String),
}

pub(crate) struct Control {
    /// As machines reach it.
    pub(crate) endpoint: String,
    pub(crate) news: mpsc::UnboundedReceiver<News>,
    root: Vec<u8>,
    orders: watch::Sender<MachineOrder>,
    fake: Fake,
    own: Arc<NodeCertificate>,
    port: u16,
    stop: CancellationToken,
    tasks: JoinSet<()>,
}

#[derive(Clone)]
struct Fake(Arc<Inner>);

struct Inner {
    root: Authority,
    agents: Authority,
    news: mpsc::UnboundedSender<News>,
    orders: watch::Sender<MachineOrder>,
}

impl Control {
    /// Serves on loopback; `gateway` is the address that machines see it at.
    pub(crate) fn start(gateway: &str) -> Self {
        let now = now_ms();
        let root = Authority::root(DOMAIN, now).unwrap();
        let agents = root.intermediate(Purpose::Agents, now).unwrap();
        let nodes = root.intermediate(Purpose::Nodes, now).unwrap();
        let (sender, news) = mpsc::unbounded_channel();
        let orders = watch::Sender::new(MachineOrder::default());
        let own = issue(&root, &nodes, "spiffe://mesh.test/node/1");
        let root_der = root.certificate().to_vec();
        let fake = Fake(Arc::new(Inner {
            root,
            agents,
            news: sender,
            orders: orders.clone(),
        }));
        let own = NodeCertificate::new(&own).unwrap();
        let mut control = Self {
            endpoint: String::new(),
            news,
            root: root_der,
            orders,
            fake,
            own,
            port: free_port(),
            stop: CancellationToken::new(),
            tasks: JoinSet::new(),
        };
        control.serve();
        control.endpoint = format!("{gateway}:{}", control.port);
        control
    }

    /// Serves, again on the port that it had.
    pub(crate) fn serve(&mut self) {
        let roots = vec![self.fake.0.root.certificate().clone()];
        let server = MeshServer::bind(MeshServerConfig {
            bind: SocketAddr::from(([127, 0, 0, 1], self.port)),
            tls: tls::server_config(&roots, self.own.clone(), ALPN).unwrap(),
            trust_domain: DOMAIN.into(),
            router: Router::new()
                .add(EnrolServiceServer::new(self.fake.clone()))
                .add(IdentityServiceServer::new(self.fake.clone()))
                .add(MachineServiceServer::new(self.fake.clone()))
                .add(PhoneHomeServiceServer::new(self.fake.clone())),
            revocations: Arc::new(NeverRevoked::default()),
        })
        .unwrap();
        self.port = server.local_addr().unwrap().port();
        self.stop = CancellationToken::new();
        self.tasks.spawn(server.run(self.stop.clone()));
    }

    /// Goes away.
    pub(crate) async fn leave(&mut self) {
        self.stop.cancel();
        while self.tasks.join_next().await.is_some() {}
    }

    pub(crate) fn order(&self, generation: u64, order: Order) {
        self.orders.send_replace(MachineOrder {
            term: 1,
            generation,
            order: Some(order),
            ..MachineOrder::default()
        });
    }

    /// The ticket that pixie would answer.
    pub(crate) fn ticket_answer(&self) -> String {
        format!(
            r#"{{"ticket_id":"{TICKET}","secret":"{}","roots":["{}"],"control":["{}"],"time_ms":{},"machine_uuid":"{UUID}"}}"#,
            BASE64_URL_SAFE_NO_PAD.encode(SECRET),
            BASE64_STANDARD.encode(&self.root),
            self.endpoint,
            now_ms(),
        )
    }
}

/// A port that no outgoing socket takes while nobody serves there: those of the emulated machine's
/// network have one of the ephemeral range, which begins above.
fn free_port() -> u16 {
    let first = rand::random_range(20_000..30_000);
    (first..32_000)
        .find(|port| UdpSocket::bind(("127.0.0.1", *port)).is_ok())
        .unwrap()
}

fn issue(root: &Authority, by: &Authority, id: &str) -> Credential {
    let key = Key::generate().unwrap();
    let request = CertificateRequest::verify(&key.request().unwrap()).unwrap();
    let leaf = by
        .issue(&id.parse().unwrap(), &request, now_ms(), HOUR)
        .unwrap();
    Credential {
        key,
        chain: vec![leaf, by.certificate().clone()],
        roots: vec![root.certificate().clone()],
    }
}

impl Inner {
    fn tell(&self, news: News) {
        // The test is over when nobody listens.
        drop(self.news.send(news));
    }

    fn certificate(&self, id: &str, csr: &[u8]) -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
        let id: SpiffeId = id.parse().unwrap();
        let request = CertificateRequest::verify(csr).unwrap();
        let leaf = self.agents.issue(&id, &request, now_ms(), HOUR).unwrap();
        let chain = vec![leaf.to_vec(), self.agents.certificate().to_vec()];
        (chain, vec![self.root.certificate().to_vec()])
    }

    fn answer(&self, id: &str, csr: &[u8]) -> Certificate {
        let (chain, roots) = self.certificate(id, csr);
        Certificate {
            chain,
            roots,
            not_after_ms: now_ms() + 3_600_000,
            identity: id.into(),
        }
    }
}

fn now_ms() -> u64 {
    agents_hammer::net::clock::now_ms()
}

fn id_of(peer: &Peer) -> String {
    peer.id().map(ToString::to_string).unwrap_or_default()
}

impl EnrolService for Fake {
    async fn join(&self, _: &Peer, request: JoinRequest) -> Result<Certificate, LinkStatus> {
        if request.ticket_id != TICKET || request.secret != SECRET {
            return Err(LinkStatus::permission_denied("no such ticket"));
        }
        let id = format!("spiffe://{DOMAIN}/machine/{}", request.machine_uuid);
        let answer = self.0.answer(&id, &request.csr);
        self.0.tell(News::Joined(request.machine_uuid, request.mac));
        Ok(answer)
    }

    async fn challenge_tpm(
        &self,
        _: &Peer,
        _: TpmChallengeRequest,
    ) -> Result<TpmChallenge, LinkStatus> {
        Err(LinkStatus::unimplemented("no TPM here"))
    }

    async fn resume(&self, _: &Peer, _: ResumeRequest) -> Result<Certificate, LinkStatus> {
        Err(LinkStatus::permission_denied("no"))
    }
}

impl IdentityService for Fake {
    async fn renew(&self, peer: &Peer, request: RenewRequest) -> Result<Certificate, LinkStatus> {
        Ok(self.0.answer(&id_of(peer), &request.csr))
    }
}

impl MachineService for Fake {
    async fn register(
        &self,
        _: &Peer,
        request: MachineRegisterRequest,
    ) -> Result<MachineRegisterResponse, LinkStatus> {
        self.0.tell(News::Registered(Box::new(request)));
        Ok(MachineRegisterResponse {
            size: "s".into(),
            partition: "p".into(),
        })
    }

    async fn orders(
        &self,
        _: &Peer,
        _: MachineOrdersRequest,
        mut out: Sink<'_, MachineOrder>,
    ) -> Result<(), LinkStatus> {
        let mut orders = self.0.orders.subscribe();
        loop {
            let order = orders.borrow_and_update().clone();
            if order.order.is_some() {
                out.send(&order).await?;
            }
            orders
                .changed()
                .await
                .map_err(|_| LinkStatus::unavailable("over"))?;
        }
    }

    async fn event(
        &self,
        _: &Peer,
        event: MachineEvent,
    ) -> Result<MachineEventResponse, LinkStatus> {
        self.0.tell(News::Event(event.event));
        Ok(MachineEventResponse {})
    }

    async fn wipe_done(
        &self,
        _: &Peer,
        report: WipeReport,
    ) -> Result<WipeReportResponse, LinkStatus> {
        self.0.tell(News::Wiped(report));
        Ok(WipeReportResponse {})
    }

    async fn project_identity(
        &self,
        _: &Peer,
        request: ProjectIdentityRequest,
    ) -> Result<ProjectIdentityResponse, LinkStatus> {
        let identity = format!("spiffe://{DOMAIN}/project/p-1/machine/{UUID}");
        let (chain, roots) = self.0.certificate(&identity, &request.csr);
        self.0.tell(News::ProjectIdentity);
        Ok(ProjectIdentityResponse {
            chain,
            roots,
            not_after_ms: now_ms() + 3_600_000,
            identity,
        })
    }

    async fn install_done(
        &self,
        _: &Peer,
        report: InstallReport,
    ) -> Result<InstallReportResponse, LinkStatus> {
        self.0.tell(News::Installed(report));
        Ok(InstallReportResponse {})
    }
}

impl PhoneHomeService for Fake {
    async fn phone_home(
        &self,
        peer: &Peer,
        request: PhoneHomeRequest,
    ) -> Result<PhoneHomeResponse, LinkStatus> {
        self.0.tell(News::PhonedHome(id_of(peer), request.kernel));
        Ok(PhoneHomeResponse { interval_s: 60 })
    }
}
