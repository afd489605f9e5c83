//! BGP sessions as FRR shows them.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

/// The command whose output is read.
pub(super) const COMMAND: &str = "show bgp vrf all summary json";

/// Most sessions that are read; a switch has some per port. More are left out.
pub const SESSIONS_MAX: usize = 10_000;

/// One address family of one BGP session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BgpSession {
    /// Name of the VRF, "default" for the default VRF.
    pub vrf: String,
    /// The neighbour: its interface or address.
    pub neighbour: String,
    /// Address family as FRR names it: "ipv4Unicast", "ipv6Unicast", "l2VpnEvpn".
    pub family: String,
    /// Its autonomous system. 0 until it is known.
    pub remote_as: u32,
    /// State of the session, "Established" if it is up (RFC 4271 §8.2.2).
    pub state: String,
    /// Time since the session came up or went down.
    pub age: Duration,
    /// Prefixes received and accepted.
    pub received: u64,
    /// Prefixes sent.
    pub sent: u64,
    /// Times that the session came up.
    pub established: u64,
    /// Times that it went down.
    pub dropped: u64,
    /// Routes of the family in the VRF's table, from all neighbours.
    pub table: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FamilySummary {
    #[serde(default)]
    rib_count: u64,
    #[serde(default)]
    peers: BTreeMap<String, PeerSummary>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct PeerSummary {
    remote_as: u32,
    state: String,
    peer_uptime_msec: u64,
    pfx_rcd: u64,
    pfx_snt: u64,
    connections_established: u64,
    connections_dropped: u64,
}

impl BgpSession {
    /// `true` if routes are exchanged.
    #[must_use]
    pub fn is_established(&self) -> bool {
        self.state == "Established"
    }
}

/// Reads the summary of every VRF. Unknown fields, and members that are no address family with
/// peers, are passed over. FRR prints nothing at all where there is no BGP: no sessions.
///
/// # Errors
/// When it is not JSON, or not an object by VRF.
pub fn decode(json: &[u8]) -> Result<Vec<BgpSession>, serde_json::Error> {
    if json.iter().all(u8::is_ascii_whitespace) {
        return Ok(Vec::new());
    }
    let vrfs: BTreeMap<String, BTreeMap<String, Value>> = serde_json::from_slice(json)?;
    let mut sessions = Vec::new();
    for (vrf, families) in vrfs {
        for (family, value) in families {
            let Ok(summary) = serde_json::from_value::<FamilySummary>(value) else {
                continue;
            };
            for (neighbour, peer) in summary.peers {
                if sessions.len() == SESSIONS_MAX {
                    return Ok(sessions);
                }
                sessions.push(BgpSession {
                    vrf: vrf.clone(),
                    neighbour,
                    family: family.clone(),
                    remote_as: peer.remote_as,
                    state: peer.state,
                    age: Duration::from_millis(peer.peer_uptime_msec),
                    received: peer.pfx_rcd,
                    sent: peer.pfx_snt,
                    established: peer.connections_established,
                    dropped: peer.connections_dropped,
                    table: summary.rib_count,
                });
            }
        }
    }
    Ok(sessions)
}
