//! Wires the services to a mesh endpoint.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use control_pki::{Pki, PkiError, Revoked};
use control_presence::Presence;
use control_state::Change;
use control_store::{AuditTrail, AuditWriter, Store, Subscription};
use parking_lot::RwLock;
use proto_identity::profile::LEAF_VALIDITY;
use proto_identity::tls::{NodeCertificate, server_config};
use proto_link::{ALPN, MeshServer, MeshServerConfig, Router, TlsSetter};
use proto_mesh::{
    BmcServiceServer, BootServiceServer, EnrolServiceServer, FirewallServiceServer,
    IdentityServiceServer, MachineServiceServer, NodeServiceServer, PhoneHomeServiceServer,
    SwitchServiceServer, UpdateServiceServer,
};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tracing::{error, warn};

use crate::bounds::{CallRates, RateLimitedService};
use crate::error::GatewayError;
use crate::leases::Leases;
use crate::parts::GatewayParts;
use crate::wakes::Wakes;

/// Pause before the next attempt when no node certificate could be made.
const RENEW_RETRY: Duration = Duration::from_secs(10);

/// Settings and parts of a gateway.
#[derive(Debug)]
pub struct GatewayConfig {
    /// UDP address of the mesh.
    pub bind: SocketAddr,
    /// The state.
    pub store: Store,
    /// The authority.
    pub pki: Pki,
    /// Records when each agent and machine was last heard.
    pub presence: Presence,
    /// Addresses of the mesh for machines and agents, host:port; sent with desired state.
    pub control: Vec<String>,
}

/// The mesh endpoint of this node, bound.
pub struct Gateway {
    shared: GatewayParts,
    /// `true` while this node leads; only the leader serves sessions.
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
        let shared = GatewayParts {
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

fn router(shared: &GatewayParts) -> Router {
    let rates = CallRates::new();
    Router::new()
        .add(RateLimitedService::new(
            EnrolServiceServer::new(shared.clone()),
            &rates,
        ))
        .add(RateLimitedService::new(
            IdentityServiceServer::new(shared.clone()),
            &rates,
        ))
        .add(RateLimitedService::new(
            NodeServiceServer::new(shared.clone()),
            &rates,
        ))
        .add(RateLimitedService::new(
            SwitchServiceServer::new(shared.clone()),
            &rates,
        ))
        .add(RateLimitedService::new(
            BmcServiceServer::new(shared.clone()),
            &rates,
        ))
        .add(RateLimitedService::new(
            BootServiceServer::new(shared.clone()),
            &rates,
        ))
        .add(RateLimitedService::new(
            MachineServiceServer::new(shared.clone()),
            &rates,
        ))
        .add(RateLimitedService::new(
            PhoneHomeServiceServer::new(shared.clone()),
            &rates,
        ))
        .add(RateLimitedService::new(
            FirewallServiceServer::new(shared.clone()),
            &rates,
        ))
        .add(RateLimitedService::new(
            UpdateServiceServer::new(shared.clone()),
            &rates,
        ))
}

/// Opens and closes the endpoint with leadership. Only the leader serves sessions: presence and
/// BMC addresses are in its memory, and orders carry one node's term.
async fn follow_leadership(
    shared: GatewayParts,
    leads: watch::Sender<bool>,
    stop: CancellationToken,
) {
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
            // Before the first session: silence is counted from the start of leadership.
            shared.presence.begin();
        }
        leads.send_replace(led);
    }
}

/// Renews the node certificate at half its life and when the authority is replaced, and takes over
/// the roots of that moment. Open sessions stay.
async fn renew_node(
    shared: GatewayParts,
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
    shared: &GatewayParts,
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
