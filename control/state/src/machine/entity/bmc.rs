//! BMCs of machines.

use proto_types::Timestamp;
use serde::{Deserialize, Serialize};

use crate::blob;
use crate::machine::entity::Draw;

/// How a BMC lets an agent of the published stack in, which is told by whom it asks for orders.
/// Agents of ours know it themselves.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct BmcAccess {
    /// Login.
    pub user: String,
    /// Its password under the cluster's key; opaque here.
    #[serde(with = "blob")]
    pub sealed_password: Vec<u8>,
}

impl std::fmt::Debug for BmcAccess {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BmcAccess")
            .field("user", &self.user)
            .finish_non_exhaustive()
    }
}

impl Bmc {
    /// Whether a BMC agent read it; else hammer saw its address in band.
    pub fn was_read(&self) -> bool {
        self.updated_at > Timestamp::ZERO
    }

    /// Whether `address` is the address of this BMC, with any port.
    pub fn is_at(&self, address: &str) -> bool {
        bmc_host(&self.address) == bmc_host(address)
    }
}

/// The host of `host:port` or of a bare address.
pub fn bmc_host(address: &str) -> &str {
    let is_bare = address.parse::<std::net::IpAddr>().is_ok();
    match address.rsplit_once(':') {
        Some((host, _)) if !is_bare => host.trim_matches(['[', ']']),
        _ => address,
    }
}

/// What is known of a machine's BMC, beside how it lets somebody in.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Bmc {
    /// host:port, or the bare address that hammer saw in band.
    pub address: String,
    /// Address; empty when unknown.
    pub mac: String,
    /// `redfish` or `ipmi`; empty when unknown.
    pub interface: String,
    /// Firmware version.
    pub version: String,
    /// `on`, `off` or `unknown`.
    pub power_state: String,
    /// The user that our agent logs in as; empty when unknown. Those of the published agents are
    /// kept with their passwords.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub user: String,
    /// What the machine draws; none when its agent does not tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub draw: Option<Draw>,
    /// Why the BMC could not be read the last time.
    pub error: Option<String>,
    /// When the agent last read it.
    pub updated_at: Timestamp,
}

/// A BMC that tells a machine's UUID, beside the one that is believed to be the machine's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BmcClaim {
    /// host:port.
    pub address: String,
    /// MAC address; empty when unknown.
    #[serde(default)]
    pub mac: String,
    /// First report of it.
    pub since: Timestamp,
    /// Last report of it that was written.
    pub seen_at: Timestamp,
    /// `true` if an operator confirmed another BMC while this one claimed the machine.
    #[serde(default)]
    pub rejected: bool,
}
