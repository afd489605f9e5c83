//! Tickets by which hammer joins, for one boot of one machine.

use proto_types::{BootTicketId, Digest, MacAddr, MachineId, Timestamp};
use serde::{Deserialize, Serialize};

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
