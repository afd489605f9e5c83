//! BMCs of machines.

use proto_types::Timestamp;
use serde::{Deserialize, Serialize};

use crate::blob;
use crate::machine::entity::Draw;

/// Longest time without a reading of a BMC that succeeded, milliseconds: two refreshes of what is
/// stored. Beyond it the BMC counts as not reached.
pub const BMC_SILENT_AFTER_MS: u64 = 20 * 60_000;

/// Longest time over which every attempt to read a BMC fails, milliseconds. Beyond it the BMC counts as
/// not reached.
pub const BMC_FAILED_AFTER_MS: u64 = 5 * 60_000;

/// Login of a BMC for agents of the published stack, which get it with their orders. Metalmesh's
/// own agents have it in their configuration.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct BmcAccess {
    /// User name.
    pub user: String,
    /// Password, sealed with the cluster's key; opaque here.
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
    /// `true` if a BMC agent read it. Otherwise only hammer saw its address in band.
    pub fn was_read(&self) -> bool {
        self.updated_at > Timestamp::ZERO
    }

    /// Time of the agent's last report by control's clock.
    pub(crate) fn read_at(&self) -> Timestamp {
        self.heard_at.unwrap_or(self.updated_at)
    }

    /// `true` if it counts as not reached at `now`. Silence and failures count from `since` at the
    /// earliest. One that was never read is not judged here: no agent may be there to read it.
    pub(crate) fn is_lost(&self, since: Timestamp, now: Timestamp) -> bool {
        let failing_since = self.error.as_ref().and(self.failing_since);
        let from = failing_since.unwrap_or_else(|| self.read_at()).max(since);
        // One attempt that failed says little, however long ago it was: the last one counts.
        let is_failing =
            self.error.is_some() && self.read_at().since_ms(from) >= BMC_FAILED_AFTER_MS;
        self.was_read() && (is_failing || now.since_ms(from) >= BMC_SILENT_AFTER_MS)
    }

    /// `true` if `address` is the address of this BMC, with any port.
    pub fn is_at(&self, address: &str) -> bool {
        bmc_host(&self.address) == bmc_host(address)
    }
}

/// The host of `host:port` or of a bare address.
pub fn bmc_host(address: &str) -> &str {
    // A bare IPv6 address has colons too, and no port.
    let is_bare = address.parse::<std::net::IpAddr>().is_ok();
    match address.rsplit_once(':') {
        Some((host, _)) if !is_bare => host.trim_matches(['[', ']']),
        _ => address,
    }
}

/// State of a machine's BMC, as last read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Bmc {
    /// `host:port`, or the bare address that hammer saw in band.
    pub address: String,
    /// MAC address; empty if unknown.
    pub mac: String,
    /// `redfish` or `ipmi`; empty if unknown.
    pub interface: String,
    /// Firmware version.
    pub version: String,
    /// `on`, `off` or `unknown`.
    pub power_state: String,
    /// User that Metalmesh's agent logs in as; empty if unknown. Users of published agents are
    /// stored with their passwords.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub user: String,
    /// Power that the machine draws; `None` means that its agent does not report it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub draw: Option<Draw>,
    /// Error of the last attempt to read it; `None` means that it succeeded.
    pub error: Option<String>,
    /// Time of the agent's last report; zero means never.
    pub updated_at: Timestamp,
    /// Time at which control heard that report, if `updated_at` is by the clock of an agent of the
    /// published stack: no machine leaves the offer because that clock is behind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heard_at: Option<Timestamp>,
    /// Time of the first of the attempts to read it that failed, up to the last one. `None` means that
    /// the last one succeeded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failing_since: Option<Timestamp>,
    /// `true` if no agent has reached it for too long, as the leader's tick found, or if hammer told of it
    /// and the agent of its partition has not read it yet: its machine is on offer to nobody.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unreached: bool,
}

/// A BMC that reports a machine's UUID, other than the one believed to be the machine's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BmcClaim {
    /// `host:port`.
    pub address: String,
    /// MAC address; empty if unknown.
    #[serde(default)]
    pub mac: String,
    /// Time of its first report.
    pub since: Timestamp,
    /// Time of its last report that was written.
    pub seen_at: Timestamp,
    /// `true` if an operator confirmed another BMC while this one claimed the machine.
    #[serde(default)]
    pub rejected: bool,
}
