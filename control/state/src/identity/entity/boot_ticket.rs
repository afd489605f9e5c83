//! Tickets by which hammer joins, for one boot of one machine.

use proto_types::{BootTicketId, Digest, MacAddr, MachineId, Timestamp};
use serde::{Deserialize, Serialize};

/// A one-time ticket of a booting machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BootTicket {
    /// The key: public id of the ticket.
    pub id: BootTicketId,
    /// The machine that may redeem it.
    pub machine: MachineId,
    /// MAC address of the boot request, which the machine must name.
    pub mac: MacAddr,
    /// SHA-256 of the ticket's secret. The secret itself is not stored.
    pub secret: Digest,
    /// End of validity.
    pub expires_at: Timestamp,
    /// Time of its use. `None` means that it is unused.
    #[serde(default)]
    pub redeemed_at: Option<Timestamp>,
    /// Number of the machine's binding to a claim when it was issued; it is refused in a later one. 0
    /// for a machine that was never bound.
    #[serde(default, skip_serializing_if = "crate::machine::entity::is_zero")]
    pub epoch: u64,
}
