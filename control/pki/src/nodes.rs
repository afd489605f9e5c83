//! Invitations of control nodes, and their redemption.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use control_authz::Permit;
use control_state::{Command, ControlNode, ErrorCode, InviteNode, JoinNode, StateError};
use proto_identity::invitation::NodeInvitation;
use proto_identity::profile::LEAF_VALIDITY;
use proto_identity::ticket::JoinTicket as TicketFile;
use proto_identity::{CertificateDer, CertificateRequest, SpiffeId, Subject, sha256};
use proto_types::Digest;
use tracing::info;

use crate::judge::invitation::{self, InvitationStanding};
use crate::tickets::{JOIN_TICKET_LIFE, JOIN_TICKET_LIFE_MAX, secret};
use crate::validity::after;
use crate::{Pki, PkiError, WrappedKey, node_source};

/// Prefix of the id of an invitation; the node number follows.
const NAME: &str = "node-";

/// Parameters of a new invitation of a control node.
#[derive(Clone, Debug)]
pub struct NewNodeInvitation {
    /// SHA-256 of the only public key that may join. `None` means the first key that shows the
    /// secret, from `peer_address`.
    pub key: Option<Digest>,
    /// The only address for other control nodes, host:port, with which the node may join. Empty
    /// means any, which needs a key.
    pub peer_address: String,
    /// Lifetime. Zero means [`JOIN_TICKET_LIFE`]; the maximum is [`JOIN_TICKET_LIFE_MAX`].
    pub life: Duration,
    /// Addresses of control for the node, host:port.
    pub control: Vec<String>,
}

/// Join request of a control node.
#[derive(Clone)]
pub struct NodeJoin {
    /// Id of the invitation.
    pub ticket_id: String,
    /// Secret of the invitation.
    pub secret: Vec<u8>,
    /// Certificate request of the invited key, DER.
    pub request: Vec<u8>,
    /// X25519 public key that the data key is wrapped to.
    pub wrap_to: Vec<u8>,
    /// Its peer address, host:port.
    pub peer_address: String,
    /// Address that the request came from.
    pub remote: IpAddr,
    /// The highest feature level that its program knows.
    pub level: u32,
}

impl std::fmt::Debug for NodeJoin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NodeJoin")
            .field("ticket_id", &self.ticket_id)
            .field("secret", &"<redacted>")
            .field("peer_address", &self.peer_address)
            .finish_non_exhaustive()
    }
}

/// Answer to a [`NodeJoin`] that is admitted.
#[derive(Clone, Debug)]
pub struct NodeAdmission {
    /// Number of the node.
    pub node: u64,
    /// Its first certificate.
    pub chain: Vec<CertificateDer<'static>>,
    /// The peers' intermediate.
    pub anchor: CertificateDer<'static>,
    /// The data key, wrapped to the key of this node.
    pub data_key: WrappedKey,
}

impl Pki {
    /// Invites a node on behalf of a user. The second value is the invitation with the ticket, which
    /// contains the secret and is stored nowhere.
    ///
    /// # Errors
    /// When the lifetime is not between a minute and a day (an hour without a key), the invitation is
    /// bound to neither a key nor an address, or there are too many nodes.
    pub async fn invite_node(
        &self,
        permit: &Permit,
        actor: &str,
        new: NewNodeInvitation,
    ) -> Result<(Arc<ControlNode>, NodeInvitation), PkiError> {
        let (secret, digest) = secret()?;
        let life = match new.life.is_zero() {
            true => JOIN_TICKET_LIFE,
            false => new.life.min(JOIN_TICKET_LIFE_MAX),
        };
        let now = self.now();
        let invite = InviteNode {
            secret: digest,
            key: new.key,
            expires_at: after(now, life),
            peer_address: new.peer_address,
        };
        let command = Command::new(now, actor, invite);
        let node = self.inner.store.propose(permit, &command).await?;
        let node = node.control_node()?;
        let ticket = TicketFile {
            id: format!("{NAME}{}", node.id),
            secret,
            roots: self.root_hashes(),
            control: new.control,
            tpm: false,
        };
        let store = &self.inner.store;
        let invitation = NodeInvitation {
            ticket,
            cluster: store.cluster().to_owned(),
            cluster_id: store.cluster_id(),
            trust_domain: self.trust_domain().to_owned(),
            peer_address: node.peer_address.clone(),
        };
        Ok((node, invitation))
    }

    /// Admits an invited node: issues its certificate and wraps the data key. It is not a member
    /// yet.
    ///
    /// # Errors
    /// When the invitation is unknown, expired, withdrawn, or bound to another key or address, and
    /// when an invitation without a key is used from elsewhere than its address.
    pub async fn admit_node(&self, join: &NodeJoin) -> Result<NodeAdmission, PkiError> {
        let unknown =
            || StateError::new(ErrorCode::TicketUnknown, ErrorCode::TicketUnknown.title());
        let id = join.ticket_id.strip_prefix(NAME);
        let id: u64 = id.and_then(|id| id.parse().ok()).ok_or_else(unknown)?;
        let request = CertificateRequest::verify(&join.request)?;
        let key: Digest = request.fingerprint().parse().map_err(|_| unknown())?;
        let secret = Digest::sha256(sha256(&join.secret));
        let now = self.now();
        let read = self.inner.store.read(|tables| {
            let node = tables.get::<ControlNode>(&id);
            node.map_or(InvitationStanding::Unproven, |node| {
                invitation::standing(node, &secret, &key, now)
            })
        });
        let standing = read.await?;
        let spiffe = SpiffeId::new(self.trust_domain(), Subject::Peer { node: id })?;
        if standing == InvitationStanding::Keyless {
            // The answer has the data key, and nothing but the secret has spoken for the caller yet:
            // the line may have been read by somebody else.
            node_source::check(&join.peer_address, join.remote).await?;
        }
        if standing != InvitationStanding::Repeated {
            let joined = JoinNode {
                id,
                secret,
                key,
                peer_address: join.peer_address.clone(),
                level: join.level,
            };
            self.propose(spiffe.to_string(), joined).await?;
        }
        let authorities = self.in_force();
        let peers = &authorities.peers;
        let leaf = peers.issue(&spiffe, &request, now.ms(), LEAF_VALIDITY)?;
        info!(node = id, address = %join.peer_address, "control node admitted");
        Ok(NodeAdmission {
            node: id,
            chain: vec![leaf],
            anchor: peers.certificate().clone(),
            data_key: self.inner.seal.wrap(&join.wrap_to)?,
        })
    }
}
