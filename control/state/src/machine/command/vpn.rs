//! Commands about the VPN.

use std::net::IpAddr;

use proto_types::AllocationId;
use serde::{Deserialize, Serialize};

/// See [`Op::ReportVpn`](crate::Op::ReportVpn).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReportVpn {
    /// Allocation of the node.
    pub allocation: AllocationId,
    /// `true` if the node is present.
    pub connected: bool,
    /// Its addresses inside the VPN.
    pub ips: Vec<IpAddr>,
}

/// See [`Op::ForgetVpn`](crate::Op::ForgetVpn).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ForgetVpn {
    /// Allocation whose node and key are gone.
    pub allocation: AllocationId,
}
