//! BGP and EVPN of a switch, as its agent reports them.

use proto_types::Timestamp;
use serde::{Deserialize, Serialize};

/// One address family of a BGP session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RoutingSession {
    /// VRF, `default` for the default VRF.
    pub vrf: String,
    /// Interface or address of the neighbour.
    pub neighbour: String,
    /// Address family as FRR names it: `ipv4Unicast`, `ipv6Unicast`, `l2VpnEvpn`.
    pub family: String,
    /// AS number of the neighbour; 0 until it is known.
    pub remote_asn: u32,
    /// State (RFC 4271 §8.2.2): `Established` if routes are exchanged.
    pub state: String,
    /// Time at which the session came up or went down. A change of it alone is not written: agents
    /// compute it from an age.
    pub since: Timestamp,
    /// Prefixes received. A change of it alone is not written.
    pub received: u64,
    /// Prefixes sent. A change of it alone is not written.
    pub sent: u64,
    /// How often the session came up.
    pub established: u64,
    /// Reason why it went down last. Empty means unknown.
    pub last_error: String,
}

/// Sizes of EVPN's tables.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct EvpnTables {
    /// VNIs of segments.
    pub l2_vnis: u32,
    /// VNIs of VRFs.
    pub l3_vnis: u32,
    /// Routes of all types. A change of it alone is not written.
    pub routes: u64,
}

impl RoutingSession {
    /// `true` if routes are exchanged.
    pub fn is_established(&self) -> bool {
        self.state == "Established"
    }

    /// Clears what changes with every report: the numbers, and the state of a session that is
    /// down, which goes to and fro between attempts.
    pub(super) fn clear_numbers(&mut self) {
        if !self.is_established() {
            self.state.clear();
        }
        self.since = Timestamp::default();
        self.received = 0;
        self.sent = 0;
    }
}
