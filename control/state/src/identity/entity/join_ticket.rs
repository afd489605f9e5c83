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
    /// Of a switch.
    Core,
    /// Of a partition's BMCs.
    Bmc,
    /// Boot server.
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
    /// The key: public name.
    pub id: JoinTicketId,
    /// For what kind of agent.
    pub kind: AgentKind,
    /// Where.
    pub partition: PartitionId,
    /// The agent's name; of a core agent the switch's id.
    pub agent: String,
    /// SHA-256 of the secret; the secret itself is nowhere.
    pub secret: Digest,
    /// SHA-256 of the only public key that it is good for; any without one.
    #[serde(default)]
    pub key: Option<Digest>,
    /// SHA-256 of the endorsement key of the only TPM that it is good for; any host without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tpm: Option<Digest>,
    /// Login of its creator.
    #[serde(default)]
    pub created_by: String,
    /// When.
    pub created_at: Timestamp,
    /// End of validity.
    pub expires_at: Timestamp,
    /// When it was used.
    #[serde(default)]
    pub redeemed_at: Option<Timestamp>,
    /// SHA-256 of the public key that used it.
    #[serde(default)]
    pub redeemed_key: Option<Digest>,
    /// When it was revoked.
    #[serde(default)]
    pub revoked_at: Option<Timestamp>,
}

pub(crate) const fn first() -> u32 {
    1
}

pub(crate) const fn is_first(generation: &u32) -> bool {
    *generation == 1
}
