//! Commands about the BMC of a machine.

use proto_types::MachineId;
use serde::{Deserialize, Serialize};

use crate::machine::entity::BmcAccess;

/// See [`Op::KeepBmcAccess`](crate::Op::KeepBmcAccess).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KeepBmcAccess {
    /// Of which machine.
    pub machine: MachineId,
    /// How its BMC lets an agent in.
    pub access: BmcAccess,
}

/// See [`Op::ConfirmBmc`](crate::Op::ConfirmBmc).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ConfirmBmc {
    /// Of which machine.
    pub machine: MachineId,
    /// Address of the BMC, with or without a port.
    pub address: String,
}
