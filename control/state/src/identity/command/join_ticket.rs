//! Commands about tickets of agents.

use proto_types::{Digest, JoinTicketId, PartitionId, Timestamp};
use serde::{Deserialize, Serialize};

use crate::identity::entity::AgentKind;

/// See [`Op::CreateJoinTicket`](crate::Op::CreateJoinTicket).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CreateJoinTicket {
    /// Public id of the ticket.
    pub id: JoinTicketId,
    /// The kind of agent that may join.
    pub kind: AgentKind,
    /// The partition that the agent serves.
    pub partition: PartitionId,
    /// Name of the agent. For a core agent it is the switch's id.
    pub agent: String,
    /// SHA-256 of the ticket's secret.
    pub secret: Digest,
    /// SHA-256 of the only public key that may join. `None` means any key.
    #[serde(default)]
    pub key: Option<Digest>,
    /// SHA-256 of the endorsement key of the only TPM that may join. `None` means any host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tpm: Option<Digest>,
    /// `true` if it may let an agent in again whose identity was revoked.
    #[serde(default)]
    pub reenrols: bool,
    /// End of validity, at most a day away.
    pub expires_at: Timestamp,
}

/// See [`Op::RedeemJoinTicket`](crate::Op::RedeemJoinTicket).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RedeemJoinTicket {
    /// Public id of the ticket.
    pub id: JoinTicketId,
    /// SHA-256 of the secret that the caller shows.
    pub secret: Digest,
    /// SHA-256 of the public key of the caller's certificate request.
    pub key: Digest,
    /// SHA-256 of the endorsement key of the TPM that the caller proved to run on. `None` means
    /// that it proved none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tpm: Option<Digest>,
}

/// See [`Op::RevokeJoinTicket`](crate::Op::RevokeJoinTicket).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RevokeJoinTicket {
    /// Public id of the ticket.
    pub id: JoinTicketId,
}
