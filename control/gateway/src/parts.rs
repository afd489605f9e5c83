//! The parts of a node that the mesh services share.

use std::sync::Arc;

use control_authz::{AuditedCall, Permit, SystemActor};
use control_pki::Pki;
use control_presence::Presence;
use control_state::{Command, ControlNode, Op, Reply, Tables, clip_reports};
use control_store::{AuditTrail, Store};
use parking_lot::RwLock;
use proto_identity::Credential;
use proto_link::{LinkStatus, Peer};
use proto_mesh::sealed::{self, Sealed};
use tracing::error;

use crate::leases::Leases;
use crate::wakes::Wakes;
use crate::{access, status};

/// The parts that every mesh service works with. Cheap to clone (`Arc`).
#[derive(Clone)]
pub(crate) struct GatewayParts {
    pub(crate) store: Store,
    pub(crate) pki: Pki,
    pub(crate) control: Arc<[String]>,
    pub(crate) presence: Presence,
    pub(crate) leases: Arc<Leases>,
    pub(crate) wakes: Arc<Wakes>,
    pub(crate) trail: AuditTrail,
    /// The credential that this node shows to agents and signs their desired state with.
    pub(crate) node: Arc<RwLock<Credential>>,
    /// The audited call that these parts work for. `None` means that the call is not audited.
    pub(crate) call: Option<Arc<AuditedCall>>,
}

impl GatewayParts {
    /// Proposes a command in the name of the caller.
    pub(crate) async fn propose(
        &self,
        peer: &Peer,
        op: impl Into<Op>,
    ) -> Result<Reply, LinkStatus> {
        let mut op = op.into();
        // Reports are clipped, not refused: an agent would repeat a refused one for ever.
        clip_reports(&mut op);
        let command = Command::new(self.store.now(), access::actor(peer), op);
        self.store
            .propose(&self.permit(), &command)
            .await
            .map_err(status::propose)
    }

    /// The permit of the gateway. It carries the audited call, if there is one, to the store.
    pub(crate) fn permit(&self) -> Permit {
        let permit = Permit::system(SystemActor::Gateway);
        match &self.call {
            Some(call) => permit.for_call(Arc::clone(call)),
            None => permit,
        }
    }

    /// Addresses of control for machines and agents: this node first, then the others.
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

    /// Signs a desired state, so that its agent may keep it. If signing fails, the message goes
    /// out unsigned: the session authenticates it, and the agent acts on it but cannot keep it.
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

    /// Reads the state that this node has applied, which may be older than the leader's. Good
    /// enough to decide whether a report says anything new.
    pub(crate) fn look<T>(&self, read: impl FnOnce(&Tables) -> T) -> Result<T, LinkStatus> {
        self.store.read_local(read).map_err(|e| status::store(&e))
    }
}
