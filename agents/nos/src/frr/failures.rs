//! Reasons why BGP sessions went down, as FRR shows them.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::sessions::SESSIONS_MAX;

/// The command whose output tells why sessions are down.
pub(super) const COMMAND: &str = "show bgp vrf all summary failed json";

/// The reason why a session went down last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionFailure {
    /// Name of the VRF, "default" for the default VRF.
    pub vrf: String,
    /// The neighbour: its interface or address.
    pub neighbour: String,
    /// The reason in FRR's words.
    pub reason: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct FailedPeer {
    last_reset_due_to: String,
    last_notification_reason: String,
}

/// Reads the failed sessions of every VRF. Unknown members are passed over.
///
/// # Errors
/// When it is not JSON, or not an object by VRF.
pub fn decode(json: &[u8]) -> Result<Vec<SessionFailure>, serde_json::Error> {
    if json.iter().all(u8::is_ascii_whitespace) {
        return Ok(Vec::new());
    }
    let vrfs: BTreeMap<String, BTreeMap<String, Value>> = serde_json::from_slice(json)?;
    let mut failures = Vec::new();
    for (vrf, families) in vrfs {
        for peers in families.values().filter_map(|family| family.get("peers")) {
            let Ok(peers) = BTreeMap::<String, FailedPeer>::deserialize(peers) else {
                continue;
            };
            for (neighbour, peer) in peers {
                if failures.len() == SESSIONS_MAX {
                    return Ok(failures);
                }
                failures.push(SessionFailure {
                    vrf: vrf.clone(),
                    neighbour,
                    reason: peer.reason(),
                });
            }
        }
    }
    Ok(failures)
}

impl FailedPeer {
    fn reason(self) -> String {
        if self.last_notification_reason.is_empty() {
            return self.last_reset_due_to;
        }
        format!(
            "{} ({})",
            self.last_reset_due_to, self.last_notification_reason
        )
    }
}
