//! How agents and machines get their identities: tickets and certificates.

use proto_types::{
    AllocationId, BootTicketId, Digest, JoinTicketId, MacAddr, MachineId, PartitionId, Timestamp,
};
use serde::{Deserialize, Serialize};

/// What an agent is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
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
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Core => "core",
            Self::Bmc => "bmc",
            Self::Pixie => "pixie",
        }
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
    /// Who made it.
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

/// A one-time ticket of a booting machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BootTicket {
    /// The key: public name.
    pub id: BootTicketId,
    /// For which machine.
    pub machine: MachineId,
    /// That booted from this address.
    pub mac: MacAddr,
    /// SHA-256 of the secret; the secret itself is nowhere.
    pub secret: Digest,
    /// End of validity.
    pub expires_at: Timestamp,
    /// When it was used.
    #[serde(default)]
    pub redeemed_at: Option<Timestamp>,
}

/// A certificate that we issued and that has not ended yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Certificate {
    /// The key: serial number, lower-case hex.
    pub serial: String,
    /// SPIFFE id that it carries.
    pub identity: String,
    /// Begin of validity.
    pub issued_at: Timestamp,
    /// End of validity.
    pub not_after: Timestamp,
    /// The machine that it is for.
    #[serde(default)]
    pub machine: Option<MachineId>,
    /// The allocation that it is for: gone with it.
    #[serde(default)]
    pub allocation: Option<AllocationId>,
    /// SHA-256 of its public key; unknown of those from before identities were recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<Digest>,
    /// Which generation of the authority signed it.
    #[serde(default = "first", skip_serializing_if = "is_first")]
    pub authority: u32,
    /// When it was revoked.
    #[serde(default)]
    pub revoked_at: Option<Timestamp>,
    /// Why.
    #[serde(default)]
    pub revoked_reason: String,
}

const fn first() -> u32 {
    1
}

const fn is_first(generation: &u32) -> bool {
    *generation == 1
}
