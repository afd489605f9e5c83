//! Ports of switches: intent, and the state that the agent observes.

use proto_types::{MacAddr, Vni};
use serde::{Deserialize, Serialize};

use crate::switch::entity::{BgpSession, Neighbour, PlacedPort};

/// The kind of place that a port is observed in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ObservedPlace {
    /// In the bridge of a segment, or isolated.
    #[default]
    Segment,
    /// In a VRF.
    Routed,
    /// In the default VRF.
    Underlay,
    /// In a device that is not the agent's.
    Other,
}

impl ObservedPlace {
    fn is_segment(&self) -> bool {
        *self == Self::Segment
    }
}

/// Observed state of a port.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PortObserved {
    /// `true` if the port is administratively up.
    pub admin_up: bool,
    /// `true` if the port has a carrier.
    pub oper_up: bool,
    /// VNI of the segment that the port is in. [`Vni::NONE`] means none.
    pub vni: Vni,
    /// The kind of place that the VNI names.
    #[serde(skip_serializing_if = "ObservedPlace::is_segment")]
    pub place: ObservedPlace,
    /// LLDP neighbours that the port hears.
    pub neighbours: Vec<Neighbour>,
    /// BGP session of the port. `None` means that the agent reports none.
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
    /// MAC address of the port. `None` means unknown.
    #[serde(default)]
    pub mac: Option<MacAddr>,
    /// Its LLDP port id. `None` means that it equals the name.
    #[serde(default)]
    pub identifier: Option<String>,
    /// Desired state: `true` if the port is to be administratively up.
    pub admin_up: bool,
    /// Observed state. `None` means that there was no report yet.
    #[serde(default)]
    pub observed: Option<PortObserved>,
    /// The segment that the port stays in after a restore, because the state does not know whose
    /// machine is cabled to it now. `None` means that the port follows its machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<Vni>,
    /// The segment that it proved to be in. `None` means that control never wanted it in the one
    /// that it is seen in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placed: Option<PlacedPort>,
}
