//! Commands about the BMC of a machine.

use proto_types::MachineId;
use serde::{Deserialize, Serialize};

use crate::machine::entity::BmcAccess;

/// See [`Op::KeepBmcAccess`](crate::Op::KeepBmcAccess).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KeepBmcAccess {
    /// The machine.
    pub machine: MachineId,
    /// Login of its BMC.
    pub access: BmcAccess,
}

/// See [`Op::ConfirmBmc`](crate::Op::ConfirmBmc).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ConfirmBmc {
    /// The machine.
    pub machine: MachineId,
    /// Address of the BMC, with or without a port.
    pub address: String,
}
