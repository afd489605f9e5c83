//! LLDP neighbours of switch ports and of NICs of machines.

use proto_types::MacAddr;
use serde::{Deserialize, Serialize};

/// An LLDP neighbour of a port or NIC.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Neighbour {
    /// Chassis id: a MAC address, or a name.
    pub chassis_id: String,
    /// Port id: `swp1`, or a MAC address.
    pub port_id: String,
    /// Another name of the port, reported beside `port_id`. Empty means that there is none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub identifier: String,
    /// System name; of a switch its id.
    pub system_name: String,
    /// System description.
    pub system_description: String,
    /// Source MAC address of its frames. `None` means that the receiver does not report it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mac: Option<MacAddr>,
}

/// The addresses by which a switch tells a neighbour.
pub(crate) fn addresses(neighbour: &Neighbour) -> impl Iterator<Item = MacAddr> + '_ {
    let ids = [&neighbour.chassis_id, &neighbour.port_id];
    let told = ids.into_iter().filter_map(|id| id.parse().ok());
    neighbour.mac.into_iter().chain(told)
}
