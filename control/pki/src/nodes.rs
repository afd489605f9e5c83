//! Invitations of control nodes, and their redemption.

use std::sync::Arc;
use std::time::Duration;

use control_authz::Permit;
use control_state::{Command, ControlNode, ErrorCode, InviteNode, JoinNode, StateError};
use proto_identity::profile::LEAF_VALIDITY;
use proto_identity::ticket::JoinTicket as TicketFile;
use proto_identity::{CertificateDer, CertificateRequest, SpiffeId, Subject, sha256};
use proto_types::Digest;
use tracing::info;

use crate::judge::REPEAT_MAX;
use crate::tickets::{JOIN_TICKET_LIFE, JOIN_TICKET_LIFE_MAX, secret};
use crate::validity::after;
use crate::{Pki, PkiError, WrappedKey};

/// Prefix of the id of an invitation; the node number follows.
const NAME: &str = "node-";

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
    /// Invites the node with this key, on behalf of a user. The second value is the content of the
    /// ticket file, which contains the secret and is stored nowhere.
    ///
    /// # Errors
    /// When the lifetime is not between a minute and a day, or there are too many nodes.
    pub async fn invite_node(
        &self,
        permit: &Permit,
        actor: &str,
        key: Digest,
        life: Duration,
        control: Vec<String>,
    ) -> Result<(Arc<ControlNode>, String), PkiError> {
        let (secret, digest) = secret()?;
        let life = match life.is_zero() {
            true => JOIN_TICKET_LIFE,
            false => life.min(JOIN_TICKET_LIFE_MAX),
        };
        let now = self.now();
        let invite = InviteNode {
            secret: digest,
            key,
            expires_at: after(now, life),
        };
        let command = Command::new(now, actor, invite);
        let node = self.inner.store.propose(permit, &command).await?;
        let node = node.control_node()?;
        let file = TicketFile {
            id: format!("{NAME}{}", node.id),
            secret,
            roots: self.root_hashes(),
            control,
            tpm: false,
        };
        Ok((node, file.encode()))
    }

    /// Admits an invited node: issues its certificate and wraps the data key. It is not a member
    /// yet.
    ///
    /// # Errors
    /// When the invitation is unknown, expired, withdrawn, or bound to another key.
    pub async fn admit_node(&self, join: &NodeJoin) -> Result<NodeAdmission, PkiError> {
        let unknown =
            || StateError::new(ErrorCode::TicketUnknown, ErrorCode::TicketUnknown.title());
        let id = join.ticket_id.strip_prefix(NAME);
        let id: u64 = id.and_then(|id| id.parse().ok()).ok_or_else(unknown)?;
        let request = CertificateRequest::verify(&join.request)?;
        let key: Digest = request.fingerprint().parse().map_err(|_| unknown())?;
        let secret = Digest::sha256(sha256(&join.secret));
        let now = self.now();
        // The answer to the first request may have been lost. Its command was applied then, and a
        // second one would be refused because the invitation is used up.
        let is_repeated = self.inner.store.read(|tables| {
            let node = tables
                .get::<ControlNode>(&id)
                .filter(|node| node.removed_at.is_none());
            node.is_some_and(|node| {
                node.secret.as_ref().is_some_and(|s| s.same_as(&secret))
                    && node.key.as_ref().is_some_and(|k| k.same_as(&key))
                    && node
                        .joined_at
                        .is_some_and(|at| now.since_ms(at) <= REPEAT_MAX)
            })
        });
        let spiffe = SpiffeId::new(self.trust_domain(), Subject::Peer { node: id })?;
        if !is_repeated.await? {
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
