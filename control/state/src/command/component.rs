//! Commands about components, and tokens that are made for one purpose.

use proto_types::MachineId;
use serde::{Deserialize, Serialize};

use crate::command::CreateToken;
use crate::entities::TokenComponent;

/// See [`Op::CreateComponentToken`](crate::Op::CreateComponentToken).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CreateComponentToken {
    /// The token, without roles.
    pub token: CreateToken,
    /// For which component.
    pub component: TokenComponent,
}

/// See [`Op::CreateMachineToken`](crate::Op::CreateMachineToken).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CreateMachineToken {
    /// The token, with a role on the machine alone.
    pub token: CreateToken,
    /// Which machine boots.
    pub machine: MachineId,
}
