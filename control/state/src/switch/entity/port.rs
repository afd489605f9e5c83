//! Ports of switches: intent, and the state that the agent observes.

use proto_types::{MacAddr, Timestamp, Vni};
use serde::{Deserialize, Serialize};

use crate::switch::entity::Neighbour;

/// How a port's BGP session goes, as agents of the published stack report it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct BgpSession {
    /// Name of the other end.
    pub neighbour: Option<String>,
    /// Peer group.
    pub peer_group: String,
    /// VRF that the session is in.
    pub vrf: String,
    /// State of the session, a number of the public contract.
    pub state: i32,
    /// Since when it is established.
    pub established_at: Timestamp,
    /// Prefixes that were sent; written down along with what else changes.
    pub sent_prefixes: u64,
    /// Prefixes that were accepted; written down along with what else changes.
    pub accepted_prefixes: u64,
}

impl BgpSession {
    /// `true` if another report of the session differs in its counters at most: they change with
    /// every report, and are no reason to write one.
    pub fn is_like(&self, other: &Self) -> bool {
        let rest = |session: &Self| Self {
            sent_prefixes: 0,
            accepted_prefixes: 0,
            ..session.clone()
        };
        rest(self) == rest(other)
    }
}

/// Observed state of a port.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PortObserved {
    /// Switched on.
    pub admin_up: bool,
    /// Has a carrier.
    pub oper_up: bool,
    /// Segment that it is in.
    pub vni: Vni,
    /// Whom it hears by LLDP.
    pub neighbours: Vec<Neighbour>,
    /// Its BGP session, if its agent tells.
    pub bgp: Option<BgpSession>,
}

impl PortObserved {
    /// `true` if another report of the port differs in counters of its BGP session at most.
    pub fn is_like(&self, other: &Self) -> bool {
        let sessions = match (&self.bgp, &other.bgp) {
            (Some(mine), Some(theirs)) => mine.is_like(theirs),
            (None, None) => true,
            _ => false,
        };
        let rest = |port: &Self| Self {
            bgp: None,
            ..port.clone()
        };
        sessions && rest(self) == rest(other)
    }
}

/// A port.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SwitchPort {
    /// Its address, when the switch tells it.
    #[serde(default)]
    pub mac: Option<MacAddr>,
    /// Its LLDP port id. `None` means that it equals the name.
    #[serde(default)]
    pub identifier: Option<String>,
    /// Intent: switched on.
    pub admin_up: bool,
    /// Observed state. `None` means that there was no report yet.
    #[serde(default)]
    pub observed: Option<PortObserved>,
    /// The segment that the port stays in after a restore, because the state does not know whose
    /// machine is cabled to it now. `None` means that the port follows its machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<Vni>,
}
