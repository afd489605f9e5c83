//! Wires the services to a mesh endpoint.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use control_authz::{AuditedCall, Permit, SystemActor};
use control_pki::{Pki, PkiError, Revoked};
use control_presence::Presence;
use control_state::{Change, Command, ControlNode, Op, Reply, Tables, clip_reports};
use control_store::{AuditTrail, AuditWriter, Store, StoreError, Subscription};
use parking_lot::RwLock;
use proto_identity::Credential;
use proto_identity::profile::LEAF_VALIDITY;
use proto_identity::tls::{NodeCertificate, server_config};
use proto_link::{ALPN, LinkStatus, MeshServer, MeshServerConfig, Peer, Router, TlsSetter};
use proto_mesh::sealed::{self, Sealed};
use proto_mesh::{
    BmcServiceServer, BootServiceServer, EnrolServiceServer, IdentityServiceServer,
    MachineServiceServer, NodeServiceServer, PhoneHomeServiceServer, SwitchServiceServer,
};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tracing::{error, warn};

use crate::bounds::{Bounded, CallRates};
use crate::leases::Leases;
use crate::wakes::Wakes;
use crate::{access, status};

/// Pause after a node certificate could not be made.
const RENEW_RETRY: Duration = Duration::from_secs(10);

/// What a gateway needs.
#[derive(Debug)]
pub struct GatewayConfig {
    /// UDP address of the mesh.
    pub bind: SocketAddr,
    /// The state.
    pub store: Store,
    /// The authority.
    pub pki: Pki,
    /// Where it is noted who is heard.
    pub presence: Presence,
    /// Where machines and agents reach the mesh, host:port: goes into desired state.
    pub control: Vec<String>,
}

/// Why a gateway does not start.
#[derive(Debug, thiserror::Error)]
pub enum GatewayError {
    /// The socket.
    #[error("mesh endpoint {bind}")]
    Bind {
        /// Where.
        bind: SocketAddr,
        /// What happened.
        #[source]
        source: io::Error,
    },
    /// QUIC cannot be spoken with the certificate.
    #[error("TLS of the mesh endpoint")]
    Tls(#[source] io::Error),
    /// The authority.
    #[error("certificate of the mesh endpoint")]
    Pki(#[from] PkiError),
    /// The state.
    #[error("state")]
    Store(#[from] StoreError),
}

/// Everything that the services share. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Shared {
    pub(crate) store: Store,
    pub(crate) pki: Pki,
    pub(crate) control: Arc<[String]>,
    pub(crate) presence: Presence,
    pub(crate) leases: Arc<Leases>,
    pub(crate) wakes: Arc<Wakes>,
    pub(crate) trail: AuditTrail,
    /// What this node shows to agents, and signs their desired state with.
    pub(crate) node: Arc<RwLock<Credential>>,
    /// The call that these parts work for, where it is recorded.
    pub(crate) call: Option<Arc<AuditedCall>>,
}

/// The mesh endpoint of this node, bound.
pub struct Gateway {
    shared: Shared,
    /// Whether this node leads, and so serves sessions.
    leads: watch::Sender<bool>,
    server: MeshServer,
    own: Arc<NodeCertificate>,
    revoked: (Arc<Revoked>, Subscription<Change>),
    changes: Subscription<Change>,
    writer: AuditWriter,
}

impl fmt::Debug for Gateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gateway")
            .field("server", &self.server)
            .finish_non_exhaustive()
    }
}

impl Gateway {
    /// Binds the endpoint with a fresh certificate.
    pub fn bind(config: GatewayConfig) -> Result<Self, GatewayError> {
        let GatewayConfig {
            bind,
            store,
            pki,
            presence,
            control,
        } = config;
        let node = store.node_id().to_string();
        let credential = pki.node_credential(&node)?;
        let own = NodeCertificate::new(&credential).map_err(PkiError::Identity)?;
        let tls = server_config(&pki.roots(), own.clone(), ALPN).map_err(PkiError::Identity)?;
        let revoked = Revoked::open(&store)?;
        let (trail, writer) = AuditTrail::new(store.clone());
        let (wakes, changes) = Wakes::open(&store)?;
        let shared = Shared {
            presence,
            leases: Arc::new(Leases::new()),
            wakes: Arc::new(wakes),
            control: control.into(),
            store,
            pki,
            trail,
            node: Arc::new(RwLock::new(credential)),
            call: None,
        };
        let mesh = MeshServerConfig {
            bind,
            tls,
            trust_domain: shared.pki.trust_domain().to_owned(),
            router: router(&shared),
            revocations: revoked.0.clone(),
        };
        let leads = watch::Sender::new(shared.store.is_leader());
        let reset_key = shared.pki.node_secret(&node, "quic-reset");
        let server = MeshServer::bind_with_reset_key(mesh, &reset_key)
            .and_then(|server| server.with_gate(leads.subscribe()))
            .map_err(|source| GatewayError::Bind { bind, source })?;
        shared.presence.watch_sessions(server.presence());
        Ok(Self {
            shared,
            leads,
            server,
            own,
            revoked,
            changes,
            writer,
        })
    }

    /// The bound address.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.server.local_addr()
    }

    /// Serves until `stop`.
    pub async fn run(self, stop: CancellationToken) {
        let Self {
            shared,
            leads,
            server,
            own,
            revoked: (revoked, events),
            changes,
            writer,
        } = self;
        let mut tasks = JoinSet::new();
        tasks.spawn(revoked.follow(shared.store.clone(), events, stop.clone()));
        let wakes = Arc::clone(&shared.wakes);
        tasks.spawn(wakes.run(shared.store.clone(), changes, stop.clone()));
        let trust = server.trust();
        tasks.spawn(renew_node(shared.clone(), own, trust, stop.clone()));
        tasks.spawn(follow_leadership(shared.clone(), leads, stop.clone()));
        // Sessions end first, so that their last records are still written.
        let over = CancellationToken::new();
        tasks.spawn(writer.run(over.clone()));
        server.run(stop).await;
        over.cancel();
        while let Some(done) = tasks.join_next().await {
            if let Err(e) = done {
                error!(error = %e, "a task of the gateway panicked");
            }
        }
    }
}

fn router(shared: &Shared) -> Router {
    let rates = CallRates::new();
    Router::new()
        .add(Bounded::new(
            EnrolServiceServer::new(shared.clone()),
            &rates,
        ))
        .add(Bounded::new(
            IdentityServiceServer::new(shared.clone()),
            &rates,
        ))
        .add(Bounded::new(NodeServiceServer::new(shared.clone()), &rates))
        .add(Bounded::new(
            SwitchServiceServer::new(shared.clone()),
            &rates,
        ))
        .add(Bounded::new(BmcServiceServer::new(shared.clone()), &rates))
        .add(Bounded::new(BootServiceServer::new(shared.clone()), &rates))
        .add(Bounded::new(
            MachineServiceServer::new(shared.clone()),
            &rates,
        ))
        .add(Bounded::new(
            PhoneHomeServiceServer::new(shared.clone()),
            &rates,
        ))
}

/// Sessions are served by the leader: what is heard, and which address a BMC has, is known where
/// it is needed, and orders carry one node's term.
async fn follow_leadership(shared: Shared, leads: watch::Sender<bool>, stop: CancellationToken) {
    let mut led = *leads.borrow();
    loop {
        let changed = tokio::select! {
            () = stop.cancelled() => return,
            changed = shared.store.leadership(!led) => changed,
        };
        if !changed {
            return;
        }
        led = !led;
        if led {
            shared.presence.begin();
        }
        leads.send_replace(led);
    }
}

/// A fresh node certificate at half its life and when the authority is replaced, and the roots that
/// are trusted then; sessions that are open stay.
async fn renew_node(
    shared: Shared,
    own: Arc<NodeCertificate>,
    trust: TlsSetter,
    stop: CancellationToken,
) {
    let mut authority = shared.pki.watch();
    let mut pause = LEAF_VALIDITY / 2;
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = sleep(pause) => {}
            changed = authority.changed() => if !changed { return },
        }
        pause = match renew(&shared, &own, &trust) {
            Ok(()) => LEAF_VALIDITY / 2,
            Err(e) => {
                warn!(error = %e, "certificate of the mesh endpoint not renewed");
                RENEW_RETRY
            }
        };
    }
}

fn renew(
    shared: &Shared,
    own: &Arc<NodeCertificate>,
    trust: &TlsSetter,
) -> Result<(), GatewayError> {
    let node = shared.store.node_id().to_string();
    let fresh = shared.pki.node_credential(&node)?;
    own.replace(&fresh).map_err(PkiError::Identity)?;
    fresh.clone_into(&mut shared.node.write());
    let tls = server_config(&fresh.roots, own.clone(), ALPN).map_err(PkiError::Identity)?;
    trust.set(tls).map_err(GatewayError::Tls)
}

impl Shared {
    /// Has a command applied in the name of the caller.
    pub(crate) async fn propose(
        &self,
        peer: &Peer,
        op: impl Into<Op>,
    ) -> Result<Reply, LinkStatus> {
        let mut op = op.into();
        clip_reports(&mut op);
        let command = Command::new(self.store.now(), access::actor(peer), op);
        self.store
            .propose(&self.permit(), &command)
            .await
            .map_err(status::propose)
    }

    /// For what an agent's call changes.
    pub(crate) fn permit(&self) -> Permit {
        let permit = Permit::system(SystemActor::Gateway);
        match &self.call {
            Some(call) => permit.for_call(Arc::clone(call)),
            None => permit,
        }
    }

    /// Where machines and agents reach control: this node first, then the others.
    pub(crate) fn control(&self) -> Vec<String> {
        let others = self.store.read_local(|t| {
            let nodes = t.all::<ControlNode>().filter(|n| n.removed_at.is_none());
            nodes
                .flat_map(|n| n.mesh_addresses.clone())
                .collect::<Vec<_>>()
        });
        let mut all = self.control.to_vec();
        for address in others.unwrap_or_default() {
            if !all.contains(&address) {
                all.push(address);
            }
        }
        all
    }

    /// A desired state that its agent can keep. Without a signature it still is one: it went
    /// over a session of this node.
    pub(crate) fn sealed<M: Sealed + Clone>(&self, peer: &Peer, message: M) -> M {
        let Some(audience) = peer.id() else {
            return message;
        };
        let node = self.node.read();
        let now_ms = self.store.now().ms();
        sealed::seal(&node, audience, message.clone(), now_ms).unwrap_or_else(|e| {
            error!(agent = %audience, error = %e, "desired state not signed");
            message
        })
    }

    /// Reads what this node has applied. Fine for deciding whether a report says anything new.
    pub(crate) fn look<T>(&self, read: impl FnOnce(&Tables) -> T) -> Result<T, LinkStatus> {
        self.store.read_local(read).map_err(|e| status::store(&e))
    }
}
