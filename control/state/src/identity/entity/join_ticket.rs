//! Tickets by which agents join.

use proto_types::{Digest, JoinTicketId, PartitionId, Timestamp};
use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

/// The kind of an agent.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, IntoStaticStr,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "lowercase")]
pub enum AgentKind {
    /// The agent of a switch.
    Core,
    /// The agent of a partition's BMCs.
    Bmc,
    /// The boot server of a partition.
    Pixie,
}

impl AgentKind {
    /// The name in certificate ids.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// A one-time ticket of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JoinTicket {
    /// The key: public id of the ticket.
    pub id: JoinTicketId,
    /// The kind of agent that may join.
    pub kind: AgentKind,
    /// The partition that the agent serves.
    pub partition: PartitionId,
    /// Name of the agent. For a core agent it is the switch's id.
    pub agent: String,
    /// SHA-256 of the ticket's secret. The secret itself is not stored.
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
    /// Login of its creator.
    #[serde(default)]
    pub created_by: String,
    /// Time of creation.
    pub created_at: Timestamp,
    /// End of validity.
    pub expires_at: Timestamp,
    /// Time of its use. `None` means that it is unused.
    #[serde(default)]
    pub redeemed_at: Option<Timestamp>,
    /// SHA-256 of the public key that used it, or that replaced that one since. `None` means that
    /// it is unused.
    #[serde(default)]
    pub redeemed_key: Option<Digest>,
    /// Time of its revocation. `None` means that it is not revoked.
    #[serde(default)]
    pub revoked_at: Option<Timestamp>,
}

pub(crate) const fn first() -> u32 {
    1
}

pub(crate) const fn is_first(generation: &u32) -> bool {
    *generation == 1
}
