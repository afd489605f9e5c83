//! Commands about the VPN.

use std::net::IpAddr;

use proto_types::AllocationId;
use serde::{Deserialize, Serialize};

/// See [`Op::ReportVpn`](crate::Op::ReportVpn).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReportVpn {
    /// Whose node.
    pub allocation: AllocationId,
    /// Whether it is there.
    pub connected: bool,
    /// Its addresses inside of the VPN.
    pub ips: Vec<IpAddr>,
}

/// See [`Op::ForgetVpn`](crate::Op::ForgetVpn).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ForgetVpn {
    /// Whose node and key are gone.
    pub allocation: AllocationId,
}
