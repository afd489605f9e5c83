//! The release of the firewalls' agent.

use proto_types::Digest;
use serde::{Deserialize, Serialize};

/// See [`Op::SetFirewallRelease`](crate::Op::SetFirewallRelease).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetFirewallRelease {
    /// Its version.
    pub version: String,
    /// Its place.
    pub url: String,
    /// SHA-256 of its signed head.
    pub head_digest: Digest,
}

/// See [`Op::RemoveFirewallRelease`](crate::Op::RemoveFirewallRelease).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemoveFirewallRelease {}
