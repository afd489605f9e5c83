//! One control node in a temporary directory, and agents that talk to it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use control_gateway::{Gateway, GatewayConfig};
use control_pki::{NewJoinTicket, Pki, SealingKey};
use control_presence::Presence;
use control_state::{AgentKind, CreatePartition, Machine, Op, Reply};
use control_store::{ManualClock, Store, StoreConfig};
use proto_identity::ticket::JoinTicket;
use proto_identity::{CertificateDer, Credential, Key, Roots, tls};
use proto_link::{
    ALPN, DialError, LinkStatus, MeshClient, MeshClientConfig, SessionState, Streaming, now_ms,
};
use proto_mesh::{BootSeenRequest, Certificate, EnrolServiceClient, JoinRequest};
use proto_types::{Digest, MachineId, Timestamp};
use tests_support::objects::partition;
use tests_support::{CLUSTER, announcement, permit_for, propose, restore_into};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// Longer than any wait of a test that works.
pub const PATIENCE: Duration = Duration::from_secs(30);

pub struct Control {
    pub store: Store,
    pub pki: Pki,
    pub clock: Arc<ManualClock>,
    pub presence: Presence,
    addr: Option<SocketAddr>,
    stop: CancellationToken,
    tasks: JoinSet<()>,
    dir: tempfile::TempDir,
}

impl Control {
    /// With partitions p1 and p2, serving.
    pub async fn start() -> Self {
        let mut control = Self::idle(now_ms()).await;
        control.serve();
        control
    }

    async fn open(dir: tempfile::TempDir, now: Timestamp) -> Self {
        let clock = Arc::new(ManualClock::at(now));
        let mut config = StoreConfig::new(dir.path().join("data"), 1, CLUSTER);
        config.clock = clock.clone();
        let store = Store::open(config).await.unwrap();
        let seal = SealingKey::load(&dir.path().join("seal.key"), true).unwrap();
        let pki = Pki::open(store.clone(), &seal, "mesh.test").await.unwrap();
        Self {
            presence: Presence::new(store.clone()),
            store,
            pki,
            clock,
            addr: None,
            stop: CancellationToken::new(),
            tasks: JoinSet::new(),
            dir,
        }
    }

    /// Another cluster, restored from a backup of this moment, a minute later; it serves.
    pub async fn restored(self) -> Self {
        let now = self.store.now();
        let dir = tempfile::tempdir().unwrap();
        let keys = self.dir.path().join("seal.key");
        std::fs::copy(keys, dir.path().join("seal.key")).unwrap();
        restore_into(&self.store, &dir.path().join("data")).await;
        self.stop().await;
        let mut control = Self::open(dir, now.plus_ms(60_000)).await;
        control.announce().await;
        control.serve();
        control
    }

    /// The node says what it knows, as it does at each start.
    async fn announce(&self) {
        self.propose(announcement(1)).await.unwrap();
    }

    /// At a time of the caller's choice, not serving yet.
    pub async fn idle(now_ms: u64) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let control = Self::open(dir, Timestamp::from_ms(now_ms)).await;
        control.announce().await;
        for id in ["p1", "p2"] {
            control
                .propose(CreatePartition(partition(id)))
                .await
                .unwrap();
        }
        control
    }

    pub fn serve(&mut self) {
        let gateway = Gateway::bind(GatewayConfig {
            bind: "127.0.0.1:0".parse().unwrap(),
            store: self.store.clone(),
            pki: self.pki.clone(),
            presence: self.presence.clone(),
            control: vec!["192.0.2.1:4443".into()],
        })
        .unwrap();
        self.addr = Some(gateway.local_addr().unwrap());
        self.tasks.spawn(gateway.run(self.stop.clone()));
    }

    /// As the leader's own duties and the API would.
    pub async fn propose(&self, op: impl Into<Op>) -> Result<Reply, String> {
        let written = propose(&self.store, op).await;
        written.map_err(|error| error.to_string())
    }

    pub fn machine(&self, id: MachineId) -> Arc<Machine> {
        self.store
            .read_local(|t| t.get::<Machine>(&id).cloned())
            .unwrap()
            .expect("a machine")
    }

    pub fn new_ticket(kind: AgentKind, partition: &str, agent: &str) -> NewJoinTicket {
        NewJoinTicket {
            kind,
            partition: partition.parse().unwrap(),
            agent: agent.into(),
            key: None,
            tpm: None,
            reenrols: false,
            life: Duration::ZERO,
            control: vec![],
        }
    }

    pub async fn ticket(&self, new: NewJoinTicket) -> JoinTicket {
        let permit = permit_for("CreateJoinTicket");
        let (_, file) = self
            .pki
            .create_join_ticket(&permit, "admin", new)
            .await
            .unwrap();
        JoinTicket::parse(&file).unwrap()
    }

    /// Where it serves.
    pub fn address(&self) -> SocketAddr {
        self.addr.expect("serving")
    }

    /// A session with a credential, or without one.
    pub fn client(&self, credential: Option<&Credential>) -> MeshClient {
        let roots = Roots::Sha256(self.pki.root_hashes());
        let tls = tls::client_config(roots, credential, ALPN).unwrap();
        let addresses = vec![self.addr.expect("serving").to_string()];
        MeshClient::new(MeshClientConfig::new(addresses, tls)).unwrap()
    }

    pub async fn join(&self, ticket: &JoinTicket, key: &Key) -> Result<Credential, LinkStatus> {
        self.join_as(&ticket.id, &ticket.secret, key, "", "").await
    }

    pub async fn join_as(
        &self,
        ticket_id: &str,
        secret: &[u8],
        key: &Key,
        machine_uuid: &str,
        mac: &str,
    ) -> Result<Credential, LinkStatus> {
        let request = JoinRequest {
            ticket_id: ticket_id.into(),
            secret: secret.to_vec(),
            csr: key.request().unwrap(),
            machine_uuid: machine_uuid.into(),
            mac: mac.into(),
            ..JoinRequest::default()
        };
        let answer = EnrolServiceClient::from(self.client(None))
            .join(request)
            .await?;
        Ok(credential(answer, key))
    }

    /// Joins an agent and opens its session.
    pub async fn agent<C: From<MeshClient>>(
        &self,
        kind: AgentKind,
        partition: &str,
        name: &str,
    ) -> C {
        let ticket = self.ticket(Self::new_ticket(kind, partition, name)).await;
        let credential = self.join(&ticket, &Key::generate().unwrap()).await.unwrap();
        self.client(Some(&credential)).into()
    }

    pub async fn stop(mut self) {
        self.stop.cancel();
        while self.tasks.join_next().await.is_some() {}
        self.store.shutdown().await;
    }
}

pub fn credential(answer: Certificate, key: &Key) -> Credential {
    let list = |l: Vec<Vec<u8>>| l.into_iter().map(CertificateDer::from).collect();
    Credential {
        key: key.clone(),
        chain: list(answer.chain),
        roots: list(answer.roots),
    }
}

pub fn fingerprint(key: &Key) -> Digest {
    key.fingerprint().parse().unwrap()
}

/// A machine that pixie saw boot.
pub fn seen_at_boot(uuid: &str, mac: &str) -> BootSeenRequest {
    BootSeenRequest {
        machine_uuid: uuid.into(),
        mac: mac.into(),
        arch: 7,
        seen_ms: 0,
        to_disk: false,
        told_ms: 0,
        relay_switch: String::new(),
        relay_port: String::new(),
    }
}

/// The next message, or a failed test.
pub async fn next<M: prost::Message + Default>(stream: &mut Streaming<M>) -> M {
    let message = timeout(PATIENCE, stream.message())
        .await
        .expect("a message in time");
    message.expect("a stream that goes on").expect("a message")
}

/// Waits for a message that is as wanted.
pub async fn wait_for<M: prost::Message + Default>(
    stream: &mut Streaming<M>,
    wanted: impl Fn(&M) -> bool,
) -> M {
    loop {
        let message = next(stream).await;
        if wanted(&message) {
            return message;
        }
    }
}

/// Waits until control has ended the session because the identity was revoked.
pub async fn wait_until_revoked(mesh: &MeshClient) {
    let mut state = mesh.state();
    let revoked =
        |s: &SessionState| matches!(s, SessionState::Down(Some(DialError::Revoked { .. })));
    let ended = timeout(PATIENCE, state.wait_for(revoked)).await;
    drop(ended.expect("the end of the session").unwrap());
}
