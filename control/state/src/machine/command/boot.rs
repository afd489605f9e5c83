//! Commands about one boot of a machine, and what hammer is given for it.

use proto_types::{BootTicketId, Digest, MacAddr, MachineId, PartitionId, Timestamp};
use serde::{Deserialize, Serialize};

use crate::identity::command::CreateToken;

/// See [`Op::CreateMachineToken`](crate::Op::CreateMachineToken).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CreateMachineToken {
    /// The token, with a role on the machine alone.
    pub token: CreateToken,
    /// Which machine boots.
    pub machine: MachineId,
}

/// See [`Op::IssueBootTicket`](crate::Op::IssueBootTicket).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct IssueBootTicket {
    /// Public name.
    pub id: BootTicketId,
    /// For which machine.
    pub machine: MachineId,
    /// That booted from this address.
    pub mac: MacAddr,
    /// Where pixie is: the machine must be there.
    pub partition: PartitionId,
    /// SHA-256 of the secret.
    pub secret: Digest,
    /// End of validity.
    pub expires_at: Timestamp,
}

/// See [`Op::RedeemBootTicket`](crate::Op::RedeemBootTicket).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RedeemBootTicket {
    /// Public name.
    pub id: BootTicketId,
    /// SHA-256 of the secret that was shown.
    pub secret: Digest,
    /// Machine that says so.
    pub machine: MachineId,
    /// Address that it says it booted from.
    pub mac: MacAddr,
    /// SHA-256 of what it read in its BMC, where its partition demands that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nonce: Option<Digest>,
}
