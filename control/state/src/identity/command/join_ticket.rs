//! Commands about tickets of agents.

use proto_types::{Digest, JoinTicketId, PartitionId, Timestamp};
use serde::{Deserialize, Serialize};

use crate::identity::entity::AgentKind;

/// See [`Op::CreateJoinTicket`](crate::Op::CreateJoinTicket).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CreateJoinTicket {
    /// Public name.
    pub id: JoinTicketId,
    /// For what kind of agent.
    pub kind: AgentKind,
    /// Where.
    pub partition: PartitionId,
    /// The agent's name; of a core agent the switch's id.
    pub agent: String,
    /// SHA-256 of the secret.
    pub secret: Digest,
    /// SHA-256 of the only public key that it is good for.
    #[serde(default)]
    pub key: Option<Digest>,
    /// SHA-256 of the endorsement key of the only TPM that it is good for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tpm: Option<Digest>,
    /// End of validity.
    pub expires_at: Timestamp,
}

/// See [`Op::RedeemJoinTicket`](crate::Op::RedeemJoinTicket).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RedeemJoinTicket {
    /// Public name.
    pub id: JoinTicketId,
    /// SHA-256 of the secret that was shown.
    pub secret: Digest,
    /// SHA-256 of the public key of the request.
    pub key: Digest,
    /// SHA-256 of the endorsement key of the TPM that the caller proved to sit at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tpm: Option<Digest>,
}

/// See [`Op::RevokeJoinTicket`](crate::Op::RevokeJoinTicket).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RevokeJoinTicket {
    /// Public name.
    pub id: JoinTicketId,
}
