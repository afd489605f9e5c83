//! Commands about one boot of a machine and hammer's credentials for it.

use proto_types::{BootTicketId, Digest, MacAddr, MachineId, PartitionId, Timestamp};
use serde::{Deserialize, Serialize};

use crate::identity::command::CreateToken;

/// See [`Op::CreateMachineToken`](crate::Op::CreateMachineToken).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CreateMachineToken {
    /// The token, with a role on the machine alone.
    pub token: CreateToken,
    /// The machine that boots.
    pub machine: MachineId,
}

/// See [`Op::IssueBootTicket`](crate::Op::IssueBootTicket).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct IssueBootTicket {
    /// Public id of the ticket.
    pub id: BootTicketId,
    /// The machine that boots.
    pub machine: MachineId,
    /// MAC address of its boot request.
    pub mac: MacAddr,
    /// Partition of pixie, which must be the machine's.
    pub partition: PartitionId,
    /// SHA-256 of the secret.
    pub secret: Digest,
    /// End of validity.
    pub expires_at: Timestamp,
}

/// See [`Op::RedeemBootTicket`](crate::Op::RedeemBootTicket).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RedeemBootTicket {
    /// Public id of the ticket.
    pub id: BootTicketId,
    /// SHA-256 of the secret that was shown.
    pub secret: Digest,
    /// The machine that the caller says it is.
    pub machine: MachineId,
    /// The MAC address that it says it booted from.
    pub mac: MacAddr,
    /// SHA-256 of the nonce that it read from its BMC; `None` if it read none. Some partitions
    /// demand one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nonce: Option<Digest>,
}
